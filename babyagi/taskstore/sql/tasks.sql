-- Tasks, results, vectors and workers. `status || ''` keeps the planner from using the index of statuses,
-- where the primary key or the index of claimable tasks finds fewer rows.

-- count_tasks --
-- Add to the number of tasks of the objective.
UPDATE objective SET last_task_id = last_task_id + :n WHERE id = :objective_id;

-- insert_task --
-- Insert a queued task at the end of the list.
INSERT INTO task (objective_id, id, name, name_key, rank, parent_id, origins, created_at_us, seal)
VALUES (:objective_id, :id, :name, :name_key, :id, :parent_id, :origins, :created_at_us, :seal);

-- delete_task_after --
-- Delete all dependencies of the task.
DELETE FROM task_after WHERE objective_id = :objective_id AND task_id = :task_id;

-- insert_task_after --
-- Insert the tasks that the task waits for.
INSERT INTO task_after (objective_id, after_id, task_id)
SELECT :objective_id, CAST(named.value AS BIGINT), :task_id FROM json_each(:after_ids) AS named;

-- count_blockers --
-- Store which tasks the task comes after, and how many of them are still to be done; returns the task.
UPDATE task
   SET after_ids = :after_ids,
       blockers = (SELECT count(*) FROM task_after AS a JOIN task AS t ON t.objective_id = a.objective_id AND t.id = a.after_id
                    WHERE a.objective_id = :objective_id AND a.task_id = :task_id AND t.status NOT IN ('done', 'dead', 'cancelled'))
 WHERE objective_id = :objective_id AND id = :task_id
RETURNING *;

-- alike --
-- The tasks of the objective, in any status, whose name has the same key, and the task that the proposal says it repeats, oldest first.
SELECT * FROM task
 WHERE objective_id = :objective_id
   AND id IN (SELECT id FROM task WHERE objective_id = :objective_id AND name_key = :name_key
              UNION SELECT id FROM task WHERE objective_id = :objective_id AND id = :task_id)
 ORDER BY id;

-- blockers --
-- The tasks that the task waits for and that are still to be done.
SELECT t.* FROM task_after AS a JOIN task AS t ON t.objective_id = a.objective_id AND t.id = a.after_id
 WHERE a.objective_id = :objective_id AND a.task_id = :task_id AND t.status NOT IN ('done', 'dead', 'cancelled') ORDER BY a.after_id;

-- blocked_lacking --
-- The queued tasks that lacked information and wait for the tasks that bring it.
SELECT * FROM task WHERE objective_id = :objective_id AND lack <> '' AND blockers > 0 AND status || '' = 'queued' ORDER BY id LIMIT :limit;

-- task_names --
-- Names and statuses of the newest tasks, newest first.
SELECT id, name, status, lack, origins FROM task WHERE objective_id = :objective_id ORDER BY id DESC LIMIT :limit;

-- changed_names --
-- The same as `task_names`, for the tasks that have events after an id.
SELECT t.id, t.name, t.status, t.lack, t.origins
  FROM (SELECT DISTINCT task_id FROM event WHERE objective_id = :objective_id AND id > :after_id) AS told
 CROSS JOIN task AS t
 WHERE t.objective_id = :objective_id AND t.id = told.task_id ORDER BY t.id DESC LIMIT :limit;

-- task --
-- One task.
SELECT * FROM task WHERE objective_id = :objective_id AND id = :task_id;

-- some_tasks --
-- The tasks with these ids.
SELECT t.* FROM json_each(:task_ids) AS named CROSS JOIN task AS t WHERE t.objective_id = :objective_id AND t.id = CAST(named.value AS BIGINT);

-- tasks --
-- The tasks, in the list's order.
SELECT * FROM task WHERE objective_id = :objective_id ORDER BY rank, id LIMIT :limit;

-- tasks_with_status --
-- The tasks with one of the statuses, in the list's order.
SELECT * FROM task WHERE objective_id = :objective_id AND status IN (SELECT named.value FROM json_each(:statuses) AS named) ORDER BY rank, id LIMIT :limit;

-- queue_head --
-- The first queued tasks.
SELECT * FROM task WHERE objective_id = :objective_id AND status = 'queued' ORDER BY rank, id LIMIT :limit;

-- queue_news --
-- The newest queued tasks with an id above this one.
SELECT * FROM task WHERE objective_id = :objective_id AND id > :after_id AND status || '' = 'queued' ORDER BY id DESC LIMIT :limit;

-- last_finished --
-- The tasks that were finished last, the latest first.
SELECT * FROM task WHERE objective_id = :objective_id AND finished_at_us IS NOT NULL ORDER BY finished_at_us DESC, id DESC LIMIT :limit;

-- finished_ids --
-- The ids of the tasks that were finished last, the latest first.
SELECT id FROM task WHERE objective_id = :objective_id AND finished_at_us IS NOT NULL ORDER BY finished_at_us DESC, id DESC LIMIT :limit;

-- counts --
-- How many tasks have each status.
SELECT named.value AS status, (SELECT count(*) FROM task WHERE objective_id = :objective_id AND status = named.value) AS n
  FROM json_each(:statuses) AS named;

-- tally --
-- How many tasks wait for planning, and how many queued tasks wait neither for another task nor for a person's answer (both counted up to
-- :limit); whether a worker holds a task; and whether a queued task was added since the last order (the newest tasks are read first).
SELECT (SELECT count(*) FROM (SELECT 1 FROM task WHERE objective_id = :objective_id AND status = 'recorded' LIMIT :limit) AS recorded) AS n_recorded,
       EXISTS (SELECT 1 FROM task WHERE objective_id = :objective_id AND status = 'running') AS has_held,
       (SELECT count(*) FROM (SELECT 1 FROM task
                               WHERE objective_id = :objective_id AND status || '' = 'queued' AND blockers = 0
                                 AND (not_before_us IS NULL OR not_before_us < :until_answered_us)
                               LIMIT :limit) AS unblocked) AS n_unblocked,
       EXISTS (SELECT 1 FROM (SELECT 1 FROM task
                               WHERE objective_id = :objective_id AND status || '' = 'queued'
                                 AND id > (SELECT ordered_upto FROM objective WHERE id = :objective_id)
                               ORDER BY id DESC LIMIT 1) AS unordered) AS has_unordered;

-- ends --
-- Whether a task waits for a person, whether one is done, and how many were given up.
SELECT EXISTS (SELECT 1 FROM task WHERE objective_id = :objective_id AND status = 'waiting') AS has_waiting,
       EXISTS (SELECT 1 FROM task WHERE objective_id = :objective_id AND status = 'done') AS has_done,
       (SELECT count(*) FROM task WHERE objective_id = :objective_id AND status = 'dead') AS n_dead;

-- begun_unblocked --
-- A row if a queued task that was claimed before waits neither for another task nor for a person's answer.
SELECT 1 FROM task
 WHERE objective_id = :objective_id AND status || '' = 'queued' AND blockers = 0 AND started_at_us IS NOT NULL
   AND (not_before_us IS NULL OR not_before_us < :until_answered_us) LIMIT 1;

-- unindexed --
-- A row if some result is not indexed.
SELECT 1 FROM result WHERE objective_id = :objective_id AND is_indexed = 0 LIMIT 1;

-- best_queued --
-- The first queued task whose `after` tasks are all done, dead or cancelled. With :may_begin = 0, only a task that was claimed before. A task
-- with which :suspect_from or more workers in a row were lost may be what killed them. A worker holds only one such task at a time, so that the
-- losses which one of them causes are not counted for another.
SELECT * FROM task
 WHERE objective_id = :objective_id AND status || '' = 'queued' AND blockers = 0
   AND (not_before_us IS NULL OR NOT (not_before_us > :now_us AND not_before_us - delay_us <= :now_us))
   AND (:may_begin = 1 OR started_at_us IS NOT NULL)
   AND (n_lost < :suspect_from OR NOT EXISTS (SELECT 1 FROM task AS held
        WHERE held.status = 'running' AND held.worker_id = :worker_id AND held.n_lost >= :suspect_from))
 ORDER BY rank, id LIMIT 1;

-- claim_task --
-- Lease a queued task.
UPDATE task SET claim_no = :claim_no, worker_id = :worker_id, not_before_us = NULL, started_at_us = :now_us, status = 'running'
 WHERE objective_id = :objective_id AND id = :task_id;

-- put_task --
-- Store the new state of a task that is released.
UPDATE task
   SET status = :status, worker_id = NULL, try_no = :try_no, failures = :failures, n_lost = :n_lost, error = :error, lack = :lack,
       n_lacks = :n_lacks, not_before_us = :not_before_us, delay_us = :delay_us,
       finished_at_us = CASE WHEN :status IN ('done', 'dead') THEN :now_us END
 WHERE objective_id = :objective_id AND id = :task_id;

-- note_progress --
-- A step of the task was recorded: set its number of lost workers to 0.
UPDATE task SET n_lost = 0 WHERE objective_id = :objective_id AND id = :task_id;

-- wake_task --
-- waiting → queued: a person has answered.
UPDATE task SET status = 'queued', n_lost = 0 WHERE objective_id = :objective_id AND id = :task_id AND status = 'waiting';

-- hold_back --
-- Make a queued task wait until one of the open questions is answered.
UPDATE task SET not_before_us = :until_answered_us, delay_us = :until_answered_us WHERE objective_id = :objective_id AND id = :task_id AND status = 'queued';

-- allow_questions --
-- Make the first tasks claimable that had to wait because too many questions were open.
UPDATE task SET not_before_us = NULL, delay_us = 0
 WHERE objective_id = :objective_id
   AND id IN (SELECT id FROM task
               WHERE objective_id = :objective_id AND status || '' = 'queued' AND not_before_us = :until_answered_us
               ORDER BY rank, id LIMIT :limit);

-- settle_task --
-- The tasks that come after a task wait for one task less, because it is done, dead or cancelled now.
UPDATE task SET blockers = blockers - 1
 WHERE objective_id = :objective_id
   AND id IN (SELECT a.task_id FROM task_after AS a WHERE a.objective_id = :objective_id AND a.after_id = :task_id);

-- unsettle_task --
-- The tasks that come after a task wait for it again, because it is retried.
UPDATE task SET blockers = blockers + 1
 WHERE objective_id = :objective_id
   AND id IN (SELECT a.task_id FROM task_after AS a WHERE a.objective_id = :objective_id AND a.after_id = :task_id);

-- reopen_result --
-- done → recorded: the result is planned from once more. `finished_at_us` stays, and says that the result was counted.
UPDATE task SET status = 'recorded', not_before_us = NULL WHERE objective_id = :objective_id AND id = :task_id AND status = 'done';

-- cancel_task --
-- queued | waiting → cancelled.
UPDATE task SET status = 'cancelled', not_before_us = NULL WHERE objective_id = :objective_id AND id = :task_id;

-- retry_task --
-- dead → queued, as a new try.
UPDATE task
   SET status = 'queued', failures = 0, n_lost = 0, try_no = try_no + 1, error = '', n_lacks = 0, finished_at_us = NULL, not_before_us = NULL
 WHERE objective_id = :objective_id AND id = :task_id;

-- dependents --
-- The tasks that come after a task and have not been started.
SELECT t.* FROM task_after AS a JOIN task AS t ON t.objective_id = a.objective_id AND t.id = a.task_id
 WHERE a.objective_id = :objective_id AND a.after_id = :task_id AND t.status IN ('queued', 'waiting') ORDER BY t.id;

-- ranks --
-- The ranks of those tasks that are queued.
SELECT DISTINCT t.id, t.rank FROM json_each(:task_ids) AS named CROSS JOIN task AS t
 WHERE t.objective_id = :objective_id AND t.id = CAST(named.value AS BIGINT) AND t.status || '' = 'queued';

-- set_rank --
-- Set a task's rank in the list.
UPDATE task SET rank = :rank WHERE objective_id = :objective_id AND id = :task_id;

-- tasks_held_by --
-- The tasks of an objective that a worker holds, in no order.
SELECT id FROM task WHERE objective_id = :objective_id AND status = 'running' AND worker_id = :worker_id;

-- held --
-- Every claimed task and duty, with the worker that holds it.
SELECT worker_id, objective_id, id AS task_id, NULL AS duty FROM task WHERE status = 'running'
UNION ALL
SELECT worker_id, objective_id, NULL, duty FROM duty WHERE worker_id IS NOT NULL ORDER BY task_id, duty;

-- insert_result --
-- Insert the result of a task.
INSERT INTO result (objective_id, task_id, text, origins, lack, created_at_us, checksum)
VALUES (:objective_id, :task_id, :text, :origins, :lack, :created_at_us, :checksum);

-- mark_result --
-- Record what a result lacks.
UPDATE result SET lack = :lack, checksum = :checksum WHERE objective_id = :objective_id AND task_id = :task_id;

-- delete_result --
-- Delete a result that does not answer its task.
DELETE FROM result WHERE objective_id = :objective_id AND task_id = :task_id;

-- delete_vectors --
-- Delete the vectors of a result that does not answer its task.
DELETE FROM vector WHERE objective_id = :objective_id AND task_id = :task_id;

-- newest_results --
-- The newest results that were recorded after a moment, newest first.
SELECT r.*, t.name AS task_name, t.status AS task_status FROM result AS r JOIN task AS t ON t.objective_id = r.objective_id AND t.id = r.task_id
 WHERE r.objective_id = :objective_id AND r.created_at_us > :after_us ORDER BY r.id DESC LIMIT :limit;

-- results --
-- Every result, in the order in which they were recorded.
SELECT r.*, t.name AS task_name, t.status AS task_status FROM result AS r JOIN task AS t ON t.objective_id = r.objective_id AND t.id = r.task_id
 WHERE r.objective_id = :objective_id ORDER BY r.id;

-- result_ids --
-- The tasks that have a result: all, or those whose result is indexed (1) or not (0). One row with NULL if there is none; no row if the objective does not exist.
SELECT r.task_id FROM objective AS o LEFT JOIN result AS r ON r.objective_id = o.id AND (CAST(:is_indexed AS BIGINT) IS NULL OR r.is_indexed = :is_indexed)
 WHERE o.id = :objective_id ORDER BY r.id;

-- n_results --
-- How many results there are; no row if the objective does not exist.
SELECT (SELECT count(*) FROM result WHERE objective_id = :objective_id) AS n FROM objective WHERE id = :objective_id;

-- results_of --
-- The results of some tasks, in the order in which they were recorded.
SELECT r.*, t.name AS task_name, t.status AS task_status FROM result AS r JOIN task AS t ON t.objective_id = r.objective_id AND t.id = r.task_id
 WHERE r.objective_id = :objective_id AND r.task_id IN (SELECT CAST(named.value AS BIGINT) FROM json_each(:task_ids) AS named) ORDER BY r.id;

-- unindexed_results --
-- The oldest results that are not indexed.
SELECT r.*, t.name AS task_name, t.status AS task_status FROM result AS r JOIN task AS t ON t.objective_id = r.objective_id AND t.id = r.task_id
 WHERE r.objective_id = :objective_id AND r.is_indexed = 0 ORDER BY r.id LIMIT :limit;

-- pending_results --
-- The oldest results that are not indexed, each with its vector of a space, if there is one.
SELECT r.*, t.name AS task_name, t.status AS task_status, v.vector
  FROM result AS r JOIN task AS t ON t.objective_id = r.objective_id AND t.id = r.task_id
  LEFT JOIN vector AS v ON v.objective_id = r.objective_id AND v.space = :space AND v.task_id = r.task_id
 WHERE r.objective_id = :objective_id AND r.is_indexed = 0 ORDER BY r.id LIMIT :limit;

-- n_unindexed --
-- How many results are not indexed.
SELECT COUNT(*) AS n FROM result WHERE objective_id = :objective_id AND is_indexed = 0;

-- mark_indexed --
-- Mark the results of these tasks as indexed.
UPDATE result SET is_indexed = 1
 WHERE objective_id = :objective_id AND is_indexed = 0 AND task_id IN (SELECT CAST(named.value AS BIGINT) FROM json_each(:task_ids) AS named);

-- owe_index --
-- Mark all results as not indexed.
UPDATE result SET is_indexed = 0 WHERE objective_id = :objective_id AND is_indexed = 1;

-- put_vector --
-- Store a result's vector.
INSERT INTO vector (objective_id, space, task_id, vector, seal) VALUES (:objective_id, :space, :task_id, :vector, :seal)
ON CONFLICT (objective_id, space, task_id) DO UPDATE SET vector = excluded.vector, seal = excluded.seal;

-- vectors_of --
-- The vectors of some tasks.
SELECT task_id, vector FROM vector
 WHERE objective_id = :objective_id AND space = :space AND task_id IN (SELECT CAST(named.value AS BIGINT) FROM json_each(:task_ids) AS named) ORDER BY task_id;

-- put_worker --
-- Insert a worker, or give it a new lease.
INSERT INTO worker (id, name, host, pid, home, since_us, lease_us, lease_until_us)
VALUES (:worker_id, :name, :host, :pid, :home, :now_us, :lease_us, :now_us + :lease_us)
ON CONFLICT (id) DO UPDATE
   SET name = excluded.name, host = excluded.host, pid = excluded.pid, home = excluded.home,
       lease_us = excluded.lease_us, lease_until_us = excluded.lease_until_us;

-- renew_worker --
-- Renew the worker's lease from now on.
UPDATE worker SET lease_us = :lease_us, lease_until_us = :now_us + :lease_us WHERE id = :worker_id;

-- worker --
-- One worker.
SELECT * FROM worker WHERE id = :worker_id;

-- workers --
-- Every worker.
SELECT * FROM worker ORDER BY id;

-- dead_workers --
-- The workers whose lease has run out, or ends later than any lease can end.
SELECT * FROM worker WHERE NOT lease_until_us BETWEEN :now_us AND :now_us + lease_us ORDER BY id;

-- delete_worker --
-- Delete a worker.
DELETE FROM worker WHERE id = :worker_id;

-- put_joined --
-- Let the worker serve the objective, with the reason why it is blocked there ('' for none).
INSERT INTO worker_objective (worker_id, objective_id, hindrance, since_us) VALUES (:worker_id, :objective_id, :hindrance, :now_us)
ON CONFLICT (worker_id, objective_id) DO UPDATE SET hindrance = excluded.hindrance;

-- joined --
-- The objective with the worker (NULL if it is unknown) and the reason why the worker is blocked there ('' for none, NULL if it does not serve it).
SELECT o.*, w.id AS worker_id, w.name AS worker_name, j.hindrance FROM ({{objective}}) AS o
  LEFT JOIN worker AS w ON w.id = :worker_id
  LEFT JOIN worker_objective AS j ON j.worker_id = w.id AND j.objective_id = o.id;

-- joined_by --
-- The objectives that the worker serves, by id, which is the order in which objectives are locked.
SELECT * FROM worker_objective WHERE worker_id = :worker_id ORDER BY objective_id;

-- delete_joined --
-- Let the worker no longer serve the objective.
DELETE FROM worker_objective WHERE worker_id = :worker_id AND objective_id = :objective_id;

-- standing --
-- The version of the schema, and whether the worker has a living lease, serves the objective and is not blocked there.
SELECT (SELECT value FROM meta WHERE key = 'schema_version') AS schema_version,
       EXISTS (SELECT 1 FROM worker_objective AS j JOIN worker AS w ON w.id = j.worker_id
                WHERE j.worker_id = :worker_id AND j.objective_id = :objective_id AND j.hindrance = ''
                  AND w.lease_until_us BETWEEN :now_us AND :now_us + w.lease_us) AS can_serve;
