-- The schema on PostgreSQL, version 3: the same as `schema_003.sql`.

ALTER TABLE objective ADD COLUMN unconfirmed_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN unconfirmed_cost_microusd BIGINT NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN overspent TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN unconfirmed_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN unconfirmed_cost_microusd BIGINT NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN n_lost BIGINT NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN delay_us BIGINT NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN seal BIGINT;

ALTER TABLE duty ADD COLUMN delay_us BIGINT NOT NULL DEFAULT 0;

ALTER TABLE objective ADD COLUMN seal BIGINT;
ALTER TABLE objective ADD COLUMN report_seal BIGINT;
ALTER TABLE event ADD COLUMN seal BIGINT;
ALTER TABLE vector ADD COLUMN seal BIGINT;

UPDATE meta SET value = '3' WHERE key = 'schema_version';
