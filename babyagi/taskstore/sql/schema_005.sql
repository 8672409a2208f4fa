-- The schema, version 5: how many tasks have a status is counted from their index when somebody asks, and whoever settles a task tells the
-- tasks that wait for it. Triggers did both at each change of a status.

{{drop_task_triggers}}
DROP TABLE task_count;

-- A task that a worker holds is running, or recorded where version 1 was planning from it, so the index of statuses finds it.
DROP INDEX task_held;

-- Claimable tasks are counted from their index alone, delayed or not.
DROP INDEX task_ready;
CREATE INDEX task_ready ON task (objective_id, rank, id, not_before_us) WHERE status || '' = 'queued' AND blockers = 0;

UPDATE meta SET value = '5' WHERE key = 'schema_version';
