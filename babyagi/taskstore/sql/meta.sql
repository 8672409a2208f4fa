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

-- keep_secret --
-- Keep the secret from which the marks of prompts are made, unless there is one already, and return the one that is kept.
INSERT INTO meta (key, value) VALUES ('fence_marks', :secret) ON CONFLICT (key) DO UPDATE SET value = meta.value RETURNING value;
