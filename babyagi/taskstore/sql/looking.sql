-- What a person looks at: the list in pages, the events, and the steps. `status || ''` keeps the planner from using the index of statuses, where
-- the index of claimable tasks finds fewer rows.

-- tasks_page --
-- The tasks of one status that follow a position (rank, id), in the list's order.
SELECT * FROM task WHERE status = :status AND objective_id = :objective_id AND (rank, id) > (:rank, :task_id) ORDER BY rank, id LIMIT :limit;

-- tasks_page_of_some --
-- The tasks of some statuses that follow a position (rank, id), in the list's order.
SELECT * FROM task WHERE objective_id = :objective_id AND status IN (SELECT named.value FROM json_each(:statuses) AS named) AND (rank, id) > (:rank, :task_id) ORDER BY rank, id LIMIT :limit;

-- n_startable_before --
-- How many tasks that can be claimed now come before a position (rank, id), counted up to a bound.
SELECT count(*) AS n FROM (SELECT 1 FROM task
                            WHERE objective_id = :objective_id AND status || '' = 'queued' AND blockers = 0 AND (rank, id) < (:rank, :task_id)
                              AND (not_before_us IS NULL OR NOT (not_before_us > :now_us AND not_before_us - delay_us <= :now_us))
                            LIMIT :limit) AS earlier;
