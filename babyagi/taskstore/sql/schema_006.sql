-- The schema, version 6: what requests with a key have made, and what they were answered.

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

UPDATE meta SET value = '6' WHERE key = 'schema_version';
