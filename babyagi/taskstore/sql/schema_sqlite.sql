-- The parts of the scripts `schema_001.sql` and so on whose syntax only SQLite has. The scripts contain their names in double braces.

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

-- count_tasks --
-- `task_count` is kept.
CREATE TRIGGER task_added AFTER INSERT ON task BEGIN
    INSERT INTO task_count VALUES (new.objective_id, new.status, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER task_moved AFTER UPDATE OF status ON task WHEN old.status <> new.status BEGIN
    UPDATE task_count SET n = n - 1 WHERE objective_id = old.objective_id AND status = old.status;
    INSERT INTO task_count VALUES (new.objective_id, new.status, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;

-- settle_tasks --
-- A task need not wait for one that is done or was cancelled.
CREATE TRIGGER task_settled AFTER UPDATE OF status ON task
WHEN new.status IN ('done', 'cancelled') AND old.status NOT IN ('done', 'cancelled') BEGIN
    UPDATE task SET blockers = blockers - 1
     WHERE objective_id = new.objective_id
       AND id IN (SELECT task_id FROM task_after WHERE objective_id = new.objective_id AND after_id = new.id);
END;

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

-- settle_dead_tasks --
-- A task need not wait for one that is done, dead or was cancelled; it does again when a dead one is retried.
DROP TRIGGER task_settled;
CREATE TRIGGER task_settled AFTER UPDATE OF status ON task
WHEN new.status IN ('done', 'dead', 'cancelled') AND old.status NOT IN ('done', 'dead', 'cancelled') BEGIN
    UPDATE task SET blockers = blockers - 1
     WHERE objective_id = new.objective_id
       AND id IN (SELECT task_id FROM task_after WHERE objective_id = new.objective_id AND after_id = new.id);
END;
CREATE TRIGGER task_unsettled AFTER UPDATE OF status ON task
WHEN new.status NOT IN ('done', 'dead', 'cancelled') AND old.status IN ('done', 'dead', 'cancelled') BEGIN
    UPDATE task SET blockers = blockers + 1
     WHERE objective_id = new.objective_id
       AND id IN (SELECT task_id FROM task_after WHERE objective_id = new.objective_id AND after_id = new.id);
END;

-- allow_plan --
-- Duties may be `plan` as well.
CREATE TABLE duty_2 (
    objective_id INTEGER NOT NULL REFERENCES objective (id) ON DELETE CASCADE,
    duty TEXT NOT NULL CHECK (duty IN ('order', 'plan', 'check', 'report', 'index')),
    owner TEXT NOT NULL,
    claim_no INTEGER NOT NULL,
    worker_id TEXT,
    not_before_us INTEGER,
    upto INTEGER NOT NULL,
    PRIMARY KEY (objective_id, duty)
);
INSERT INTO duty_2 SELECT objective_id, duty, owner, claim_no, worker_id, not_before_us, upto FROM duty;
DROP TABLE duty;
ALTER TABLE duty_2 RENAME TO duty;

-- tell_of_schedules --
-- Nothing: the driver watches the file.

-- drop_task_triggers --
-- Nothing follows a changed status by itself.
DROP TRIGGER task_added;
DROP TRIGGER task_moved;
DROP TRIGGER task_settled;
DROP TRIGGER task_unsettled;
