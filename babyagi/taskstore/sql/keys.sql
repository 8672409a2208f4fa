-- Requests with a key, which take effect once.

-- keyed_request --
SELECT * FROM keyed_request WHERE key = :key;

-- begin_keyed --
-- Take the key for this request, unless a request has it. Another transaction that takes the same key at the same time waits for this one.
INSERT INTO keyed_request (key, request, at_us) VALUES (:key, :request, :now_us) ON CONFLICT (key) DO NOTHING;

-- keep_made --
UPDATE keyed_request SET made = :made, objective_id = :objective_id WHERE key = :key;

-- keep_answer --
-- Keep the first answer to the request.
UPDATE keyed_request SET answer = :answer, objective_id = coalesce(objective_id, :objective_id) WHERE key = :key AND answer IS NULL;

-- forget_keys --
DELETE FROM keyed_request WHERE at_us < :now_us - :age_us;

-- forget_answers --
-- Forget the texts about an objective that is deleted. The keys stay, so that no request makes it anew.
UPDATE keyed_request SET answer = NULL WHERE objective_id = :objective_id;

-- every_keyed --
SELECT * FROM keyed_request WHERE CAST(:objective_id AS BIGINT) IS NULL ORDER BY key;
