-- Queries that need the syntax of SQLite.

-- tables --
-- The names of all tables.
SELECT name FROM sqlite_schema WHERE type = 'table';

-- word_counts --
-- How many results of the objective contain each of the words, counted up to :limit.
SELECT w.value AS word,
       (SELECT count(*) FROM (SELECT 1 FROM result_words
         WHERE result_words MATCH 'objective_id:"' || :objective_id || '" AND text:"' || w.value || '"' LIMIT :limit)) AS n
  FROM json_each(:words) AS w;

-- results_with_words --
-- A row for each word and each result that contains it, with the length of the result.
SELECT w.value AS word, r.task_id, length(r.text) AS n_chars FROM json_each(:words) AS w
  JOIN result_words ON result_words MATCH 'objective_id:"' || :objective_id || '" AND text:"' || w.value || '"'
  JOIN result AS r ON r.id = result_words.rowid;
