-- The schema, version 1. Times are microseconds since 1970 (`_us`), money is in micro-dollars (`_microusd`).

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE objective (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    identity TEXT NOT NULL,
    spec TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'ended')),
    stop_reason TEXT,
    stop_detail TEXT NOT NULL DEFAULT '',
    calls INTEGER NOT NULL DEFAULT 0,
    prompt_tokens INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    cost_microusd INTEGER NOT NULL DEFAULT 0,
    active_us INTEGER NOT NULL DEFAULT 0,
    seen_us INTEGER NOT NULL,
    order_revision INTEGER NOT NULL DEFAULT 0,
    ordered_upto INTEGER NOT NULL DEFAULT 0,
    last_task_id INTEGER NOT NULL DEFAULT 0,
    is_claimed_met INTEGER NOT NULL DEFAULT 0,
    n_barren INTEGER NOT NULL DEFAULT 0,
    check_no INTEGER NOT NULL DEFAULT 1,
    report_no INTEGER NOT NULL DEFAULT 1,
    report TEXT,
    created_at_us INTEGER NOT NULL,
    ended_at_us INTEGER,
    CHECK ((status = 'ended') = (stop_reason IS NOT NULL))
);
CREATE INDEX objective_identity ON objective (identity, id);
CREATE INDEX objective_open ON objective (id) WHERE status = 'active' OR (status = 'ended' AND report IS NULL);

-- A task's id counts from 1 within its objective, and its first rank is its id: ranks are only ever dealt out anew.
CREATE TABLE task (
    objective_id INTEGER NOT NULL REFERENCES objective (id) ON DELETE CASCADE,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'running', 'recorded', 'done', 'waiting', 'dead', 'cancelled')),
    rank INTEGER NOT NULL,
    parent_id INTEGER,
    after_ids TEXT NOT NULL DEFAULT '[]',
    blockers INTEGER NOT NULL DEFAULT 0 CHECK (blockers >= 0),
    origins TEXT NOT NULL,
    try_no INTEGER NOT NULL DEFAULT 1,
    claim_no INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    worker_id TEXT,
    calls INTEGER NOT NULL DEFAULT 0,
    prompt_tokens INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    cost_microusd INTEGER NOT NULL DEFAULT 0,
    created_at_us INTEGER NOT NULL,
    started_at_us INTEGER,
    finished_at_us INTEGER,
    not_before_us INTEGER,
    PRIMARY KEY (objective_id, id),
    CHECK (worker_id IS NOT NULL OR status <> 'running'),
    CHECK (worker_id IS NULL OR status IN ('running', 'recorded'))
);
CREATE INDEX task_ready ON task (objective_id, rank, id) WHERE status || '' = 'queued' AND blockers = 0;
CREATE INDEX task_status ON task (status, objective_id, rank, id);
CREATE INDEX task_name ON task (name_key, objective_id);
CREATE INDEX task_held ON task (worker_id, objective_id) WHERE worker_id IS NOT NULL;
CREATE INDEX task_finished ON task (objective_id, finished_at_us, id) WHERE finished_at_us IS NOT NULL;

CREATE TABLE task_after (
    objective_id INTEGER NOT NULL,
    after_id INTEGER NOT NULL,
    task_id INTEGER NOT NULL,
    PRIMARY KEY (objective_id, after_id, task_id),
    FOREIGN KEY (objective_id, after_id) REFERENCES task (objective_id, id) ON DELETE CASCADE
) WITHOUT ROWID;

-- How many tasks have each status; kept by triggers, so that no verb can forget it.
CREATE TABLE task_count (
    objective_id INTEGER NOT NULL REFERENCES objective (id) ON DELETE CASCADE,
    status TEXT NOT NULL,
    n INTEGER NOT NULL CHECK (n >= 0),
    PRIMARY KEY (objective_id, status)
) WITHOUT ROWID;

CREATE TRIGGER task_added AFTER INSERT ON task BEGIN
    INSERT INTO task_count VALUES (new.objective_id, new.status, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER task_moved AFTER UPDATE OF status ON task WHEN old.status <> new.status BEGIN
    UPDATE task_count SET n = n - 1 WHERE objective_id = old.objective_id AND status = old.status;
    INSERT INTO task_count VALUES (new.objective_id, new.status, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;

-- A task need not wait for one that is done or was cancelled.
CREATE TRIGGER task_settled AFTER UPDATE OF status ON task
WHEN new.status IN ('done', 'cancelled') AND old.status NOT IN ('done', 'cancelled') BEGIN
    UPDATE task SET blockers = blockers - 1
     WHERE objective_id = new.objective_id
       AND id IN (SELECT task_id FROM task_after WHERE objective_id = new.objective_id AND after_id = new.id);
END;

CREATE TABLE result (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    objective_id INTEGER NOT NULL,
    task_id INTEGER NOT NULL,
    text TEXT NOT NULL,
    origins TEXT NOT NULL,
    created_at_us INTEGER NOT NULL,
    is_indexed INTEGER NOT NULL DEFAULT 0,
    checksum TEXT NOT NULL,
    UNIQUE (objective_id, task_id),
    FOREIGN KEY (objective_id, task_id) REFERENCES task (objective_id, id) ON DELETE CASCADE
);
CREATE INDEX result_unindexed ON result (objective_id, id) WHERE is_indexed = 0;

-- The words of the results, stemmed, without their texts. The objective is a word, too, so that one look-up serves both.
CREATE VIRTUAL TABLE result_words USING fts5 (objective_id, text, content = 'result', content_rowid = 'id', tokenize = 'porter unicode61');

CREATE TRIGGER result_added AFTER INSERT ON result BEGIN
    INSERT INTO result_words (rowid, objective_id, text) VALUES (new.id, new.objective_id, new.text);
END;

CREATE TRIGGER result_deleted AFTER DELETE ON result BEGIN
    INSERT INTO result_words (result_words, rowid, objective_id, text) VALUES ('delete', old.id, old.objective_id, old.text);
END;

CREATE TABLE vector (
    objective_id INTEGER NOT NULL,
    space TEXT NOT NULL,
    task_id INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (objective_id, space, task_id),
    FOREIGN KEY (objective_id) REFERENCES objective (id) ON DELETE CASCADE
);

-- `is_held` says that the reservation still counts against the limits.
CREATE TABLE step (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    objective_id INTEGER NOT NULL REFERENCES objective (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('intended', 'done', 'unknown', 'asked')),
    output TEXT,
    request TEXT NOT NULL,
    model TEXT NOT NULL,
    origins TEXT NOT NULL,
    is_held INTEGER NOT NULL,
    held_calls INTEGER NOT NULL,
    held_tokens INTEGER NOT NULL,
    held_cost_microusd INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost_microusd INTEGER NOT NULL,
    unconfirmed TEXT NOT NULL,
    claim_no INTEGER NOT NULL,
    created_at_us INTEGER NOT NULL,
    done_at_us INTEGER,
    checksum TEXT NOT NULL,
    UNIQUE (objective_id, owner, key)
);
CREATE INDEX step_held ON step (objective_id, owner) WHERE is_held = 1;
CREATE INDEX step_open ON step (objective_id, owner) WHERE state IN ('unknown', 'asked');

CREATE TABLE duty (
    objective_id INTEGER NOT NULL REFERENCES objective (id) ON DELETE CASCADE,
    duty TEXT NOT NULL CHECK (duty IN ('order', 'check', 'report', 'index')),
    owner TEXT NOT NULL,
    claim_no INTEGER NOT NULL,
    worker_id TEXT,
    not_before_us INTEGER,
    upto INTEGER NOT NULL,
    PRIMARY KEY (objective_id, duty)
);

CREATE TABLE worker (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    home TEXT NOT NULL,
    since_us INTEGER NOT NULL,
    lease_us INTEGER NOT NULL,
    lease_until_us INTEGER NOT NULL
);

-- Who serves what; a hindrance says what keeps the worker from claiming there.
CREATE TABLE worker_objective (
    worker_id TEXT NOT NULL REFERENCES worker (id) ON DELETE CASCADE,
    objective_id INTEGER NOT NULL REFERENCES objective (id) ON DELETE CASCADE,
    hindrance TEXT NOT NULL,
    since_us INTEGER NOT NULL,
    PRIMARY KEY (worker_id, objective_id)
) WITHOUT ROWID;
CREATE INDEX worker_objective_served ON worker_objective (objective_id);

CREATE TABLE event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    objective_id INTEGER NOT NULL REFERENCES objective (id) ON DELETE CASCADE,
    task_id INTEGER,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    at_us INTEGER NOT NULL
);
CREATE INDEX event_objective ON event (objective_id, id);

INSERT INTO meta VALUES ('schema_version', '1');
