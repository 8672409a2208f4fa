-- What only SQLite says in this way.

-- tables --
-- The names of all tables.
SELECT name FROM sqlite_schema WHERE type = 'table';

-- word_counts --
-- How many results of the objective have each of the words, counted up to a bound.
SELECT w.value AS word,
       (SELECT count(*) FROM (SELECT 1 FROM result_words
         WHERE result_words MATCH 'objective_id:"' || :objective_id || '" AND text:"' || w.value || '"' LIMIT :limit)) AS n
  FROM json_each(:words) AS w;

-- results_with_words --
-- The results that have at least one of the words, the best by BM25 first.
SELECT r.task_id FROM result_words JOIN result AS r ON r.id = result_words.rowid
 WHERE result_words MATCH (SELECT 'objective_id:"' || :objective_id || '" AND text:(' || group_concat('"' || value || '"', ' OR ') || ')'
                             FROM json_each(:words))
 ORDER BY bm25(result_words, 0.0, 1.0), r.id DESC LIMIT :limit;
