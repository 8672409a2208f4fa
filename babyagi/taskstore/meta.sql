-- What the file itself is.

-- tables --
-- The names of all tables.
SELECT name FROM sqlite_schema WHERE type = 'table';

-- schema_version --
-- The version of the schema that the file has.
SELECT value FROM meta WHERE key = 'schema_version';
