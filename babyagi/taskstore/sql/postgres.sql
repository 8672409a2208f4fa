-- Queries that need the syntax of PostgreSQL.

-- tables --
-- The names of all tables of the store's own schema.
SELECT tablename AS name FROM pg_tables WHERE schemaname = 'babyagi';

-- create_schema --
-- Create the store's own schema in a database that may have other tables.
CREATE SCHEMA babyagi;

-- has_schema --
-- A row if the store's own schema exists; an administrator may have made it.
SELECT 1 FROM pg_namespace WHERE nspname = 'babyagi';

-- lock_schema --
-- Keep all other processes from writing, and from making or changing the schema, until the transaction ends.
SELECT pg_advisory_xact_lock(7089336938131513954);

-- lock_for_writing --
-- Begin to write: lock one objective, or with NULL the whole store. Returns the time and the id of the transaction.
SELECT now_us, transaction FROM lock_for_writing(CAST(:objective_id AS BIGINT));

-- clock --
-- The time.
SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) AS now_us;

-- outcome --
-- The outcome of a transaction: committed, aborted or in progress; NULL if the server no longer knows it.
SELECT pg_xact_status(CAST(CAST(:transaction AS TEXT) AS xid8)) AS outcome;

-- encoding --
-- The encoding of the database.
SELECT current_setting('server_encoding') AS encoding;

-- listen --
-- Listen for the commits of other processes.
LISTEN babyagi;

-- ping --
-- Whether the server is still there.
SELECT 1;

-- word_counts --
-- How many results of the objective contain each of the words, counted up to :limit. MATERIALIZED hides the limit from the planner, and `+ 0`
-- the index on the objective. Otherwise it would read the objective's results one by one, which takes seconds at 20,000 results.
SELECT w.value AS word,
       (WITH having_it AS MATERIALIZED (SELECT 1 FROM result AS r WHERE r.objective_id + 0 = :objective_id
           AND to_tsvector('english', translate(left(r.text, 100000), './\:@-_+<>&=~', repeat(' ', 13))) @@ plainto_tsquery('english', w.value))
        SELECT count(*) FROM (SELECT 1 FROM having_it LIMIT :limit) AS counted) AS n
  FROM json_each(:words) AS w;

-- results_with_words --
-- A row for each word and each result that contains it, with the length of the result.
SELECT w.value AS word, r.task_id, r.n_chars
  FROM json_each(:words) AS w
 CROSS JOIN LATERAL (SELECT r.task_id, length(r.text) AS n_chars FROM result AS r WHERE r.objective_id + 0 = :objective_id
   AND to_tsvector('english', translate(left(r.text, 100000), './\:@-_+<>&=~', repeat(' ', 13))) @@ plainto_tsquery('english', w.value) OFFSET 0) AS r;
