-- The store itself: its version, its secret, and every row of every table, for `verify`.

-- schema_version --
-- The version of the schema.
SELECT value FROM meta WHERE key = 'schema_version';

-- has_living_worker --
-- A row if some worker has a living lease.
SELECT 1 FROM worker WHERE lease_until_us BETWEEN :now_us AND :now_us + lease_us LIMIT 1;

-- every_objective --
-- The objective :objective_id, or every objective when it is NULL. The following queries `every_…` do the same.
SELECT *, report IS NOT NULL AS has_report FROM objective WHERE CAST(:objective_id AS BIGINT) IS NULL OR id = :objective_id ORDER BY id;

-- every_task --
SELECT * FROM task WHERE CAST(:objective_id AS BIGINT) IS NULL OR objective_id = :objective_id ORDER BY objective_id, id;

-- every_after --
SELECT * FROM task_after WHERE CAST(:objective_id AS BIGINT) IS NULL OR objective_id = :objective_id ORDER BY objective_id, task_id, after_id;

-- every_step --
SELECT * FROM step WHERE CAST(:objective_id AS BIGINT) IS NULL OR objective_id = :objective_id ORDER BY id;

-- every_result --
SELECT r.*, '' AS task_name, '' AS task_status FROM result AS r
 WHERE CAST(:objective_id AS BIGINT) IS NULL OR r.objective_id = :objective_id ORDER BY r.id;

-- every_vector --
SELECT * FROM vector WHERE CAST(:objective_id AS BIGINT) IS NULL OR objective_id = :objective_id ORDER BY objective_id, space, task_id;

-- every_event --
SELECT * FROM event WHERE CAST(:objective_id AS BIGINT) IS NULL OR objective_id = :objective_id ORDER BY id;

-- every_duty --
SELECT * FROM duty WHERE CAST(:objective_id AS BIGINT) IS NULL OR objective_id = :objective_id ORDER BY objective_id, duty;

-- every_joined --
SELECT * FROM worker_objective WHERE CAST(:objective_id AS BIGINT) IS NULL OR objective_id = :objective_id ORDER BY worker_id, objective_id;

-- contradictions --
-- The names of the rows that contradict other rows: a task, a duty and an objective of a worker that is not there, a task whose id was never
-- given, what a task comes after where its row, `task_after` and the statuses of those tasks differ, and rows of a task that is not there.
SELECT 'task ' || t.id || ' of objective ' || t.objective_id AS name
  FROM task AS t LEFT JOIN objective AS o ON o.id = t.objective_id LEFT JOIN worker AS w ON w.id = t.worker_id
 WHERE (CAST(:objective_id AS BIGINT) IS NULL OR t.objective_id = :objective_id)
   AND (t.id < 1 OR t.id > o.last_task_id OR (t.worker_id IS NOT NULL AND w.id IS NULL))
UNION ALL
SELECT 'the duty to ' || d.duty || ' of objective ' || d.objective_id FROM duty AS d LEFT JOIN worker AS w ON w.id = d.worker_id
 WHERE (CAST(:objective_id AS BIGINT) IS NULL OR d.objective_id = :objective_id) AND d.worker_id IS NOT NULL AND w.id IS NULL
UNION ALL
SELECT 'an objective that worker ' || j.worker_id || ' serves' FROM worker_objective AS j LEFT JOIN worker AS w ON w.id = j.worker_id
 WHERE (CAST(:objective_id AS BIGINT) IS NULL OR j.objective_id = :objective_id) AND w.id IS NULL
UNION ALL
SELECT 'the tasks that task ' || t.id || ' of objective ' || t.objective_id || ' comes after'
  FROM task AS t
  LEFT JOIN (SELECT a.objective_id, a.task_id, count(*) AS n, sum(CASE WHEN b.status IN ('done', 'dead', 'cancelled') THEN 0 ELSE 1 END) AS n_open,
                    sum(CASE WHEN b.id IS NULL OR replace(replace(c.after_ids, '[', ','), ']', ',') NOT LIKE '%,' || a.after_id || ',%'
                             THEN 1 ELSE 0 END) AS n_wrong
               FROM task_after AS a
               LEFT JOIN task AS b ON b.objective_id = a.objective_id AND b.id = a.after_id
               LEFT JOIN task AS c ON c.objective_id = a.objective_id AND c.id = a.task_id
              GROUP BY a.objective_id, a.task_id) AS f ON f.objective_id = t.objective_id AND f.task_id = t.id
 WHERE (CAST(:objective_id AS BIGINT) IS NULL OR t.objective_id = :objective_id)
   AND (t.blockers <> coalesce(f.n_open, 0) OR f.n_wrong > 0
        OR coalesce(f.n, 0) <> CASE WHEN t.after_ids = '[]' THEN 0 ELSE length(t.after_ids) - length(replace(t.after_ids, ',', '')) + 1 END)
UNION ALL
SELECT 'the tasks that task ' || a.task_id || ' of objective ' || a.objective_id || ' comes after'
  FROM task_after AS a LEFT JOIN task AS t ON t.objective_id = a.objective_id AND t.id = a.task_id
 WHERE (CAST(:objective_id AS BIGINT) IS NULL OR a.objective_id = :objective_id) AND t.id IS NULL
UNION ALL
SELECT 'step ' || s.key || ' of ' || s.owner || ' of objective ' || s.objective_id || ' (row ' || s.id || ')' FROM step AS s
 WHERE (CAST(:objective_id AS BIGINT) IS NULL OR s.objective_id = :objective_id) AND s.owner LIKE 'task:%'
   AND NOT EXISTS (SELECT 1 FROM task AS t WHERE t.objective_id = s.objective_id AND s.owner = 'task:' || t.id)
UNION ALL
SELECT 'the result of task ' || r.task_id || ' of objective ' || r.objective_id || ' (row ' || r.id || ')'
  FROM result AS r LEFT JOIN task AS t ON t.objective_id = r.objective_id AND t.id = r.task_id
 WHERE (CAST(:objective_id AS BIGINT) IS NULL OR r.objective_id = :objective_id) AND t.id IS NULL
UNION ALL
SELECT 'the vector of task ' || v.task_id || ' of objective ' || v.objective_id || ' in ' || v.space
  FROM vector AS v LEFT JOIN task AS t ON t.objective_id = v.objective_id AND t.id = v.task_id
 WHERE (CAST(:objective_id AS BIGINT) IS NULL OR v.objective_id = :objective_id) AND t.id IS NULL
UNION ALL
SELECT 'event ' || e.id || ' of objective ' || e.objective_id FROM event AS e LEFT JOIN task AS t ON t.objective_id = e.objective_id AND t.id = e.task_id
 WHERE (CAST(:objective_id AS BIGINT) IS NULL OR e.objective_id = :objective_id) AND e.task_id IS NOT NULL AND t.id IS NULL
UNION ALL
SELECT 'the tick of schedule ' || k.schedule_id || ' at ' || k.due_us FROM tick AS k LEFT JOIN schedule AS c ON c.id = k.schedule_id
 WHERE CAST(:objective_id AS BIGINT) IS NULL AND c.id IS NULL;

-- keep_secret --
-- Keep the secret from which the marks of prompts are made, unless there is one already, and return the one that is kept.
INSERT INTO meta (key, value) VALUES ('fence_marks', :secret) ON CONFLICT (key) DO UPDATE SET value = meta.value RETURNING value;
