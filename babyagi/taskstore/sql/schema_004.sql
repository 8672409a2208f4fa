-- The schema, version 4: schedules, and one row for each tick that was due.

-- `due_us` is when the next tick is due, `fires_at_us` the same with its jitter; NULL where none comes. `policy` is JSON: the rule and what
-- becomes of ticks; `spec` is what each of them begins.
CREATE TABLE schedule (
    id {{numbered}},
    uid TEXT NOT NULL UNIQUE,
    spec TEXT NOT NULL,
    policy TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'done', 'removed')),
    due_us BIGINT,
    fires_at_us BIGINT,
    created_at_us BIGINT NOT NULL,
    seal BIGINT
);
CREATE INDEX schedule_next ON schedule (fires_at_us) WHERE fires_at_us IS NOT NULL;

CREATE TABLE tick (
    schedule_id BIGINT NOT NULL REFERENCES schedule (id) ON DELETE CASCADE,
    due_us BIGINT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('fired', 'queued', 'coalesced', 'skipped', 'missed')),
    reason TEXT NOT NULL,
    objective_id BIGINT REFERENCES objective (id) ON DELETE SET NULL,
    decided_at_us BIGINT NOT NULL,
    PRIMARY KEY (schedule_id, due_us)
) {{by_key}};
CREATE INDEX tick_queued ON tick (schedule_id) WHERE outcome = 'queued';
CREATE INDEX tick_begun ON tick (schedule_id, decided_at_us) WHERE objective_id IS NOT NULL;
CREATE INDEX tick_objective ON tick (objective_id) WHERE objective_id IS NOT NULL;

-- What is counted of all that happened, and whether models answer.
CREATE INDEX event_counted ON event (objective_id, kind, id)
 WHERE kind IN ('task.failed', 'task.dead', 'worker.lost', 'model.unavailable', 'model.available');

{{tell_of_schedules}}

UPDATE meta SET value = '4' WHERE key = 'schema_version';
