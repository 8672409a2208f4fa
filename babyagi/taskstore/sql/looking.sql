-- What a person looks at: the list in pages, the events, and the steps. `status || ''` keeps the planner from using the index of statuses, where
-- the index of claimable tasks finds fewer rows.

-- tasks_page --
-- The tasks of one status that follow a position (rank, id), in the list's order.
SELECT * FROM task WHERE status = :status AND objective_id = :objective_id AND (rank, id) > (:rank, :task_id) ORDER BY rank, id LIMIT :limit;

-- statuses --
-- The statuses of some tasks.
SELECT id, status FROM task WHERE objective_id = :objective_id AND id IN (SELECT CAST(named.value AS BIGINT) FROM json_each(:task_ids) AS named) ORDER BY id;

-- n_startable_before --
-- How many tasks that can be claimed now come before a position (rank, id), counted up to a bound.
SELECT count(*) AS n FROM (SELECT 1 FROM task
                            WHERE objective_id = :objective_id AND status || '' = 'queued' AND blockers = 0 AND (rank, id) < (:rank, :task_id)
                              AND (not_before_us IS NULL OR NOT (not_before_us > :now_us AND not_before_us - delay_us <= :now_us))
                            LIMIT :limit) AS earlier;

-- history --
-- The events of an objective after an id, of one task or of all, oldest first.
SELECT * FROM event
 WHERE objective_id = :objective_id AND id > :after_id AND (CAST(:task_id AS BIGINT) IS NULL OR task_id = :task_id) ORDER BY id LIMIT :limit;

-- history_before --
-- The last events of an objective before an id, of one task or of all, newest first.
SELECT * FROM event
 WHERE objective_id = :objective_id AND id < :before_id AND (CAST(:task_id AS BIGINT) IS NULL OR task_id = :task_id) ORDER BY id DESC LIMIT :limit;

-- last_event_before --
-- The id of the last event before a moment, 0 when there is none.
SELECT coalesce(max(id), 0) AS id FROM event WHERE objective_id = :objective_id AND at_us < :until_us;

-- duty_owners --
-- The owners of a duty's steps (one for each run of the duty), oldest first, and how many steps each has.
SELECT owner, count(*) AS n FROM step WHERE objective_id = :objective_id AND (owner = :duty OR owner LIKE :duty || ':%') GROUP BY owner ORDER BY min(id);
