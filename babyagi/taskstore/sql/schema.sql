-- The schema, one for both engines. What each of them says in its own way stands in `schema_sqlite.sql` and
-- `schema_postgres.sql`; the scripts here contain those names in double braces.
-- SQLite keeps a BIGINT as its INTEGER. Times are microseconds since 1970 (`_us`), money is in micro-dollars (`_microusd`).

-- create --
-- The whole schema, in an empty database.
{{begin}};

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- `n_begun` counts tasks that were ever started, `n_fruitless` tries in a row without an answer, `plan_no` the plannings.
-- `checks` is JSON: what the last check found, and how many in a row brought nothing.
-- `unconfirmed_…` is the part of the usage that no answer has confirmed. `overspent` names the limit that cannot be held any more, ''
-- where each can. A `seal` is the checksum of what never changes, NULL in rows that were written before there were seals.
CREATE TABLE objective (
    id {{numbered}},
    uid TEXT NOT NULL UNIQUE,
    identity TEXT NOT NULL,
    spec TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'ended')),
    stop_reason TEXT,
    stop_detail TEXT NOT NULL DEFAULT '',
    calls BIGINT NOT NULL DEFAULT 0,
    prompt_tokens BIGINT NOT NULL DEFAULT 0,
    completion_tokens BIGINT NOT NULL DEFAULT 0,
    cost_microusd BIGINT NOT NULL DEFAULT 0,
    active_us BIGINT NOT NULL DEFAULT 0,
    seen_us BIGINT NOT NULL,
    order_revision BIGINT NOT NULL DEFAULT 0,
    ordered_upto BIGINT NOT NULL DEFAULT 0,
    last_task_id BIGINT NOT NULL DEFAULT 0,
    is_claimed_met BIGINT NOT NULL DEFAULT 0,
    n_barren BIGINT NOT NULL DEFAULT 0,
    check_no BIGINT NOT NULL DEFAULT 1,
    report_no BIGINT NOT NULL DEFAULT 1,
    report TEXT,
    created_at_us BIGINT NOT NULL,
    ended_at_us BIGINT,
    n_begun BIGINT NOT NULL DEFAULT 0,
    n_fruitless BIGINT NOT NULL DEFAULT 0,
    n_answers BIGINT NOT NULL DEFAULT 0,
    plan_no BIGINT NOT NULL DEFAULT 1,
    checks TEXT NOT NULL DEFAULT '{}',
    unconfirmed_tokens BIGINT NOT NULL DEFAULT 0,
    unconfirmed_cost_microusd BIGINT NOT NULL DEFAULT 0,
    overspent TEXT NOT NULL DEFAULT '',
    seal BIGINT,
    report_seal BIGINT,
    CHECK ((status = 'ended') = (stop_reason IS NOT NULL))
);
CREATE INDEX objective_identity ON objective (identity, id);
CREATE INDEX objective_open ON objective (id) WHERE status = 'active' OR (status = 'ended' AND report IS NULL);

-- `lack` is JSON: what the last try lacked, '' for nothing. `n_lost` counts the
-- workers in a row that were lost while they held the task, without a step of it. `delay_us` is how long the delay was that ends at
-- `not_before_us`, so that a clock which jumped back is noticed.
-- A task's id counts from 1 within its objective, and its first rank is its id: ranks are only ever dealt out anew.
CREATE TABLE task (
    objective_id BIGINT NOT NULL REFERENCES objective (id) ON DELETE CASCADE,
    id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'running', 'recorded', 'done', 'waiting', 'dead', 'cancelled')),
    rank BIGINT NOT NULL,
    parent_id BIGINT,
    after_ids TEXT NOT NULL DEFAULT '[]',
    blockers BIGINT NOT NULL DEFAULT 0 CHECK (blockers >= 0),
    origins TEXT NOT NULL,
    try_no BIGINT NOT NULL DEFAULT 1,
    claim_no BIGINT NOT NULL DEFAULT 0,
    failures BIGINT NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    worker_id TEXT,
    calls BIGINT NOT NULL DEFAULT 0,
    prompt_tokens BIGINT NOT NULL DEFAULT 0,
    completion_tokens BIGINT NOT NULL DEFAULT 0,
    cost_microusd BIGINT NOT NULL DEFAULT 0,
    created_at_us BIGINT NOT NULL,
    started_at_us BIGINT,
    finished_at_us BIGINT,
    not_before_us BIGINT,
    lack TEXT NOT NULL DEFAULT '',
    n_lacks BIGINT NOT NULL DEFAULT 0,
    unconfirmed_tokens BIGINT NOT NULL DEFAULT 0,
    unconfirmed_cost_microusd BIGINT NOT NULL DEFAULT 0,
    n_lost BIGINT NOT NULL DEFAULT 0,
    delay_us BIGINT NOT NULL DEFAULT 0,
    seal BIGINT,
    PRIMARY KEY (objective_id, id),
    CHECK (worker_id IS NOT NULL OR status <> 'running'),
    CHECK (worker_id IS NULL OR status IN ('running', 'recorded'))
);
CREATE INDEX task_ready ON task (objective_id, rank, id, not_before_us) WHERE status || '' = 'queued' AND blockers = 0;
CREATE INDEX task_status ON task (status, objective_id, rank, id);
CREATE INDEX task_name ON task (name_key, objective_id);
CREATE INDEX task_finished ON task (objective_id, finished_at_us, id) WHERE finished_at_us IS NOT NULL;
CREATE INDEX task_lacking ON task (objective_id, id) WHERE lack <> '' AND blockers > 0;

CREATE TABLE task_after (
    objective_id BIGINT NOT NULL,
    after_id BIGINT NOT NULL,
    task_id BIGINT NOT NULL,
    PRIMARY KEY (objective_id, after_id, task_id),
    FOREIGN KEY (objective_id, after_id) REFERENCES task (objective_id, id) ON DELETE CASCADE
) {{by_key}};
CREATE INDEX task_after_task ON task_after (objective_id, task_id);

-- `lack` says what a result that answers only in part lacks.
CREATE TABLE result (
    id {{numbered}},
    objective_id BIGINT NOT NULL,
    task_id BIGINT NOT NULL,
    text TEXT NOT NULL,
    origins TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    is_indexed BIGINT NOT NULL DEFAULT 0,
    checksum TEXT NOT NULL,
    lack TEXT NOT NULL DEFAULT '',
    UNIQUE (objective_id, task_id),
    FOREIGN KEY (objective_id, task_id) REFERENCES task (objective_id, id) ON DELETE CASCADE
);
CREATE INDEX result_unindexed ON result (objective_id, id) WHERE is_indexed = 0;

-- The words of the results, stemmed.
{{index_words}};

CREATE TABLE vector (
    objective_id BIGINT NOT NULL,
    space TEXT NOT NULL,
    task_id BIGINT NOT NULL,
    vector {{bytes}} NOT NULL,
    seal BIGINT,
    PRIMARY KEY (objective_id, space, task_id),
    FOREIGN KEY (objective_id) REFERENCES objective (id) ON DELETE CASCADE
);

-- `is_held` says that the reservation still counts against the limits.
CREATE TABLE step (
    id {{numbered}},
    objective_id BIGINT NOT NULL REFERENCES objective (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('intended', 'done', 'unknown', 'asked')),
    output TEXT,
    request TEXT NOT NULL,
    model TEXT NOT NULL,
    origins TEXT NOT NULL,
    is_held BIGINT NOT NULL,
    held_calls BIGINT NOT NULL,
    held_tokens BIGINT NOT NULL,
    held_cost_microusd BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    cost_microusd BIGINT NOT NULL,
    unconfirmed TEXT NOT NULL,
    claim_no BIGINT NOT NULL,
    created_at_us BIGINT NOT NULL,
    done_at_us BIGINT,
    checksum TEXT NOT NULL,
    UNIQUE (objective_id, owner, key)
);
CREATE INDEX step_held ON step (objective_id, owner) WHERE is_held = 1;
CREATE INDEX step_open ON step (objective_id, owner) WHERE state IN ('unknown', 'asked');

CREATE TABLE duty (
    objective_id BIGINT NOT NULL REFERENCES objective (id) ON DELETE CASCADE,
    duty {{name}} NOT NULL CHECK (duty IN ('order', 'plan', 'check', 'report', 'index')),
    owner TEXT NOT NULL,
    claim_no BIGINT NOT NULL,
    worker_id TEXT,
    not_before_us BIGINT,
    upto BIGINT NOT NULL,
    delay_us BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (objective_id, duty)
);

CREATE TABLE worker (
    id {{name}} PRIMARY KEY,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid BIGINT NOT NULL,
    home TEXT NOT NULL,
    since_us BIGINT NOT NULL,
    lease_us BIGINT NOT NULL,
    lease_until_us BIGINT NOT NULL
);

-- Who serves what; a hindrance says what keeps the worker from claiming there.
CREATE TABLE worker_objective (
    worker_id {{name}} NOT NULL REFERENCES worker (id) ON DELETE CASCADE,
    objective_id BIGINT NOT NULL REFERENCES objective (id) ON DELETE CASCADE,
    hindrance TEXT NOT NULL,
    since_us BIGINT NOT NULL,
    PRIMARY KEY (worker_id, objective_id)
) {{by_key}};
CREATE INDEX worker_objective_served ON worker_objective (objective_id);

CREATE TABLE event (
    id {{numbered}},
    objective_id BIGINT NOT NULL REFERENCES objective (id) ON DELETE CASCADE,
    task_id BIGINT,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    at_us BIGINT NOT NULL,
    seal BIGINT
);
CREATE INDEX event_objective ON event (objective_id, id);
-- What is counted of all that happened, and whether models answer.
CREATE INDEX event_counted ON event (objective_id, kind, id)
 WHERE kind IN ('task.failed', 'task.dead', 'worker.lost', 'model.unavailable', 'model.available');

{{tell_of_events}};

-- Schedules, and one row for each tick that was due.
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

{{tell_of_schedules}};

{{keyed_requests}};

INSERT INTO meta VALUES ('schema_version', '{{version}}');

-- keyed_requests --
-- What requests with a key have made, and what they were answered.
-- `request` is the hash of what was asked; `made` is JSON: what the request's write returned, by its ids; `answer` is NULL until it is known.
CREATE TABLE keyed_request (
    key TEXT PRIMARY KEY,
    request TEXT NOT NULL,
    objective_id BIGINT,
    made TEXT NOT NULL DEFAULT 'null',
    answer TEXT,
    at_us BIGINT NOT NULL
);
CREATE INDEX keyed_request_age ON keyed_request (at_us);
CREATE INDEX keyed_request_objective ON keyed_request (objective_id) WHERE objective_id IS NOT NULL;

-- upgrade --
-- A store of the version before becomes one of this version.
{{keyed_requests}};

-- The seals of that version cover the column.
DROP INDEX task_sense;
ALTER TABLE task DROP COLUMN sense;
UPDATE task SET seal = NULL;

UPDATE meta SET value = '{{version}}' WHERE key = 'schema_version';
