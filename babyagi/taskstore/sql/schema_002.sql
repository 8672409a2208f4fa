-- The schema, version 2: tasks that lack something, planning as a duty, and what the checks found.

-- `n_begun` counts tasks that were ever started, `n_fruitless` tries in a row without an answer, `plan_no` the plannings.
-- `checks` is JSON: what the last check found, and how many in a row brought nothing.
ALTER TABLE objective ADD COLUMN n_begun INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN n_fruitless INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN n_answers INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN plan_no INTEGER NOT NULL DEFAULT 1;
ALTER TABLE objective ADD COLUMN checks TEXT NOT NULL DEFAULT '{}';

-- `sense` is what a name asks for, '' where it is not known (tasks of version 1); `lack` is JSON: what the last try lacked, '' for nothing.
ALTER TABLE task ADD COLUMN sense TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN lack TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN n_lacks INTEGER NOT NULL DEFAULT 0;
CREATE INDEX task_sense ON task (sense, objective_id) WHERE sense <> '';
CREATE INDEX task_after_task ON task_after (objective_id, task_id);
CREATE INDEX task_lacking ON task (objective_id, id) WHERE lack <> '' AND blockers > 0;

-- What a result that answers only in part lacks.
ALTER TABLE result ADD COLUMN lack TEXT NOT NULL DEFAULT '';

UPDATE objective SET n_begun = (SELECT count(*) FROM task AS t WHERE t.objective_id = objective.id AND t.started_at_us IS NOT NULL),
                     n_answers = (SELECT count(*) FROM result AS r WHERE r.objective_id = objective.id);

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
UPDATE task SET blockers = (SELECT count(*) FROM task_after AS a JOIN task AS t ON t.objective_id = a.objective_id AND t.id = a.after_id
                             WHERE a.objective_id = task.objective_id AND a.task_id = task.id AND t.status NOT IN ('done', 'dead', 'cancelled'));

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

UPDATE meta SET value = '2' WHERE key = 'schema_version';
