-- The schema on PostgreSQL, version 2: the same as `schema_002.sql`.

ALTER TABLE objective ADD COLUMN n_begun BIGINT NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN n_fruitless BIGINT NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN n_answers BIGINT NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN plan_no BIGINT NOT NULL DEFAULT 1;
ALTER TABLE objective ADD COLUMN checks TEXT NOT NULL DEFAULT '{}';

ALTER TABLE task ADD COLUMN sense TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN lack TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN n_lacks BIGINT NOT NULL DEFAULT 0;
CREATE INDEX task_sense ON task (sense, objective_id) WHERE sense <> '';
CREATE INDEX task_after_task ON task_after (objective_id, task_id);
CREATE INDEX task_lacking ON task (objective_id, id) WHERE lack <> '' AND blockers > 0;

ALTER TABLE result ADD COLUMN lack TEXT NOT NULL DEFAULT '';

UPDATE objective SET n_begun = (SELECT count(*) FROM task AS t WHERE t.objective_id = objective.id AND t.started_at_us IS NOT NULL),
                     n_answers = (SELECT count(*) FROM result AS r WHERE r.objective_id = objective.id);

-- A task need not wait for one that is done, dead or was cancelled; it does again when a dead one is retried.
CREATE FUNCTION unsettle_task() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE task SET blockers = blockers + 1
     WHERE objective_id = new.objective_id
       AND id IN (SELECT a.task_id FROM task_after AS a WHERE a.objective_id = new.objective_id AND a.after_id = new.id);
    RETURN NULL;
END $$;
DROP TRIGGER task_settled ON task;
CREATE TRIGGER task_settled AFTER UPDATE OF status ON task FOR EACH ROW
WHEN (new.status IN ('done', 'dead', 'cancelled') AND old.status NOT IN ('done', 'dead', 'cancelled')) EXECUTE FUNCTION settle_task();
CREATE TRIGGER task_unsettled AFTER UPDATE OF status ON task FOR EACH ROW
WHEN (new.status NOT IN ('done', 'dead', 'cancelled') AND old.status IN ('done', 'dead', 'cancelled')) EXECUTE FUNCTION unsettle_task();
UPDATE task SET blockers = (SELECT count(*) FROM task_after AS a JOIN task AS t ON t.objective_id = a.objective_id AND t.id = a.after_id
                             WHERE a.objective_id = task.objective_id AND a.task_id = task.id AND t.status NOT IN ('done', 'dead', 'cancelled'));

ALTER TABLE duty DROP CONSTRAINT duty_duty_check;
ALTER TABLE duty ADD CONSTRAINT duty_duty_check CHECK (duty IN ('order', 'plan', 'check', 'report', 'index'));

UPDATE meta SET value = '2' WHERE key = 'schema_version';
