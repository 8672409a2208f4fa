-- The measurements of the whole store, in a number of queries that does not grow with it.

-- queues --
-- The queued tasks of each objective, counted by what they wait for, and since when the oldest of those that wait only for a worker has done so.
SELECT t.objective_id, o.status,
       sum(CASE WHEN t.blockers > 0 AND t.lack = '' THEN 1 ELSE 0 END) AS n_after,
       sum(CASE WHEN t.blockers > 0 AND t.lack <> '' THEN 1 ELSE 0 END) AS n_lack,
       sum(CASE WHEN t.blockers = 0 AND t.not_before_us >= :until_answered_us THEN 1 ELSE 0 END) AS n_asking,
       sum(CASE WHEN t.blockers = 0 AND t.not_before_us < :until_answered_us AND t.not_before_us > :now_us
                 AND t.not_before_us - t.delay_us <= :now_us THEN 1 ELSE 0 END) AS n_delayed,
       sum(CASE WHEN t.blockers = 0 AND (t.not_before_us IS NULL OR NOT (t.not_before_us > :now_us AND t.not_before_us - t.delay_us <= :now_us)
                 AND t.not_before_us < :until_answered_us) THEN 1 ELSE 0 END) AS n_free,
       min(CASE WHEN t.blockers = 0 AND (t.not_before_us IS NULL OR NOT (t.not_before_us > :now_us AND t.not_before_us - t.delay_us <= :now_us)
                 AND t.not_before_us < :until_answered_us)
                THEN CASE WHEN t.not_before_us > t.created_at_us THEN t.not_before_us ELSE t.created_at_us END END) AS since_us
  FROM task AS t JOIN objective AS o ON o.id = t.objective_id WHERE t.status = 'queued' GROUP BY t.objective_id, o.status;

-- outages --
-- Of the objective :objective_id, or of every objective when it is NULL: the event of the outage in which its model did not answer when it was
-- last called, if there is one. The kinds are those of the index `event_counted`.
SELECT e.* FROM event AS e
  JOIN (SELECT max(CASE kind WHEN 'model.unavailable' THEN id ELSE 0 END) AS down_id,
               max(CASE kind WHEN 'model.available' THEN id ELSE 0 END) AS up_id
          FROM event
         WHERE kind IN ('task.failed', 'task.dead', 'worker.lost', 'model.unavailable', 'model.available')
           AND (CAST(:objective_id AS BIGINT) IS NULL OR objective_id = :objective_id)
         GROUP BY objective_id) AS n ON n.down_id = e.id
 WHERE n.down_id > n.up_id;

-- totals --
-- Numbers of rows by name and two words, and sums.
SELECT 'objectives' AS name, status AS word, coalesce(stop_reason, '') AS more, count(*) AS n FROM objective GROUP BY status, stop_reason
UNION ALL SELECT 'owed_reports', '', '', count(*) FROM objective WHERE status = 'ended' AND report IS NULL
UNION ALL SELECT 'tasks', status, '', count(*) FROM task GROUP BY status
UNION ALL SELECT 'queued', o.status, '', count(*) FROM task AS t JOIN objective AS o ON o.id = t.objective_id WHERE t.status = 'queued' GROUP BY o.status
UNION ALL SELECT 'events', kind, '', count(*) FROM event
 WHERE kind IN ('task.failed', 'task.dead', 'worker.lost', 'model.unavailable', 'model.available') GROUP BY kind
UNION ALL SELECT 'schedules', status, '', count(*) FROM schedule GROUP BY status
UNION ALL SELECT 'ticks', outcome, reason, count(*) FROM tick GROUP BY outcome, reason
UNION ALL SELECT 'calls', '', '', CAST(coalesce(sum(calls), 0) AS BIGINT) FROM objective
UNION ALL SELECT 'tokens', 'prompt', '', CAST(coalesce(sum(prompt_tokens), 0) AS BIGINT) FROM objective
UNION ALL SELECT 'tokens', 'completion', '', CAST(coalesce(sum(completion_tokens), 0) AS BIGINT) FROM objective
UNION ALL SELECT 'cost_microusd', '', '', CAST(coalesce(sum(cost_microusd), 0) AS BIGINT) FROM objective
UNION ALL SELECT 'unconfirmed_microusd', '', '', CAST(coalesce(sum(unconfirmed_cost_microusd), 0) AS BIGINT) FROM objective;
