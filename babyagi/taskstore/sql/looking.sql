-- What a person looks at: the list in pages, the events, and the steps. `status || ''` keeps the planner from using the index of statuses, where
-- the index of claimable tasks finds fewer rows.

-- tasks_page --
-- The tasks of one status that follow a position (rank, id), in the list's order.
SELECT * FROM task WHERE status = :status AND objective_id = :objective_id AND (rank, id) > (:rank, :task_id) ORDER BY rank, id LIMIT :limit;

-- tasks_page_of_some --
-- The tasks of some statuses that follow a position (rank, id), in the list's order.
SELECT * FROM task WHERE objective_id = :objective_id AND status IN (SELECT named.value FROM json_each(:statuses) AS named) AND (rank, id) > (:rank, :task_id) ORDER BY rank, id LIMIT :limit;
