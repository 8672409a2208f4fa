-- What only SQLite says in this way.

-- tables --
-- The names of all tables.
SELECT name FROM sqlite_schema WHERE type = 'table';
