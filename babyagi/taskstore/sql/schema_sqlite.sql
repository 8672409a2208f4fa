-- The parts of `schema.sql` whose syntax only SQLite has. The scripts contain their names in double braces.

-- numbered --
-- The type of an id that counts by itself, and is never given twice.
INTEGER PRIMARY KEY AUTOINCREMENT

-- bytes --
-- The type of bytes.
BLOB

-- name --
-- The type of a text that is sorted byte by byte.
TEXT

-- by_key --
-- The table is stored in the order of its key.
WITHOUT ROWID

-- begin --
-- Nothing: SQLite has all of it.

-- index_words --
-- The words of the results, stemmed, without their texts. The objective is a word, too, so that one look-up serves both.
CREATE VIRTUAL TABLE result_words USING fts5 (objective_id, text, content = 'result', content_rowid = 'id', tokenize = 'porter unicode61');

CREATE TRIGGER result_added AFTER INSERT ON result BEGIN
    INSERT INTO result_words (rowid, objective_id, text) VALUES (new.id, new.objective_id, new.text);
END;

CREATE TRIGGER result_deleted AFTER DELETE ON result BEGIN
    INSERT INTO result_words (result_words, rowid, objective_id, text) VALUES ('delete', old.id, old.objective_id, old.text);
END;

-- tell_of_events --
-- Nothing: the driver watches the file.

-- tell_of_schedules --
-- Nothing: the driver watches the file.
