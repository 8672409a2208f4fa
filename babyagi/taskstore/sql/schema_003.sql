-- The schema, version 3: what no answer has confirmed of the money, lost workers apart from failures, delays that a clock cannot lengthen,
-- and seals.

-- The part of the usage that no answer has confirmed. `overspent` names the limit that cannot be held any more, '' where each can.
ALTER TABLE objective ADD COLUMN unconfirmed_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN unconfirmed_cost_microusd BIGINT NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN overspent TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN unconfirmed_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN unconfirmed_cost_microusd BIGINT NOT NULL DEFAULT 0;

-- `n_lost` counts the workers in a row that were lost while they held the task, without a step of it. `delay_us` is how long the delay was
-- that ends at `not_before_us`, so that a clock which jumped back is noticed. A `seal` is the checksum of what never changes, NULL in rows
-- of earlier versions.
ALTER TABLE task ADD COLUMN n_lost BIGINT NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN delay_us BIGINT NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN seal BIGINT;

ALTER TABLE duty ADD COLUMN delay_us BIGINT NOT NULL DEFAULT 0;

ALTER TABLE objective ADD COLUMN seal BIGINT;
ALTER TABLE objective ADD COLUMN report_seal BIGINT;
ALTER TABLE event ADD COLUMN seal BIGINT;
ALTER TABLE vector ADD COLUMN seal BIGINT;

UPDATE meta SET value = '3' WHERE key = 'schema_version';
