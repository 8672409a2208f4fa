-- The schema, version 3: what no answer has confirmed of the money.

-- The part of the usage that no answer has confirmed. `overspent` names the limit that cannot be held any more, '' where each can.
ALTER TABLE objective ADD COLUMN unconfirmed_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN unconfirmed_cost_microusd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objective ADD COLUMN overspent TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN unconfirmed_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN unconfirmed_cost_microusd INTEGER NOT NULL DEFAULT 0;

UPDATE meta SET value = '3' WHERE key = 'schema_version';
