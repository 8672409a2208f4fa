-- What the store itself is.

-- schema_version --
-- The version of the schema.
SELECT value FROM meta WHERE key = 'schema_version';

-- has_living_worker --
-- A row when some worker has a living lease.
SELECT 1 FROM worker WHERE lease_until_us BETWEEN :now_us AND :now_us + lease_us LIMIT 1;

-- secret --
-- What marks are made from; no row before it is kept.
SELECT value FROM meta WHERE key = 'secret';

-- keep_secret --
-- The first one stays.
INSERT INTO meta (key, value) VALUES ('secret', :secret) ON CONFLICT (key) DO NOTHING;
