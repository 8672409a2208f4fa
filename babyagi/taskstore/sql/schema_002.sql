-- The schema, version 2: tasks that lack something, planning as a duty, and what the checks found.

-- `n_begun` counts tasks that were ever started, `n_fruitless` tries in a row without an answer, `plan_no` the plannings.
-- `checks` is JSON: what the last check found, and how many in a row brought nothing.
ALTER TABLE objective ADD COLUMN n_begun BIGINT NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN n_fruitless BIGINT NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN n_answers BIGINT NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN plan_no BIGINT NOT NULL DEFAULT 1;
ALTER TABLE objective ADD COLUMN checks TEXT NOT NULL DEFAULT '{}';

-- `sense` is what a name asks for, '' where it is not known (tasks of version 1); `lack` is JSON: what the last try lacked, '' for nothing.
ALTER TABLE task ADD COLUMN sense TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN lack TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN n_lacks BIGINT NOT NULL DEFAULT 0;
CREATE INDEX task_sense ON task (sense, objective_id) WHERE sense <> '';
CREATE INDEX task_after_task ON task_after (objective_id, task_id);
CREATE INDEX task_lacking ON task (objective_id, id) WHERE lack <> '' AND blockers > 0;

-- What a result that answers only in part lacks.
ALTER TABLE result ADD COLUMN lack TEXT NOT NULL DEFAULT '';

UPDATE objective SET n_begun = (SELECT count(*) FROM task AS t WHERE t.objective_id = objective.id AND t.started_at_us IS NOT NULL),
                     n_answers = (SELECT count(*) FROM result AS r WHERE r.objective_id = objective.id);

-- A task need not wait for one that is done, dead or was cancelled; it does again when a dead one is retried.
{{settle_dead_tasks}}
UPDATE task SET blockers = (SELECT count(*) FROM task_after AS a JOIN task AS t ON t.objective_id = a.objective_id AND t.id = a.after_id
                             WHERE a.objective_id = task.objective_id AND a.task_id = task.id AND t.status NOT IN ('done', 'dead', 'cancelled'));

-- Duties may be `plan` as well.
{{allow_plan}}

UPDATE meta SET value = '2' WHERE key = 'schema_version';
