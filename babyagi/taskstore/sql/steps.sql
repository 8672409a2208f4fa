-- The steps of the journal, and the totals of what they cost.

-- step --
-- One step.
SELECT * FROM step WHERE objective_id = :objective_id AND owner = :owner AND key = :key;

-- step_by_id --
-- One step by its number.
SELECT * FROM step WHERE id = :step_id;

-- inbox --
-- The open steps of waiting tasks, of one objective or of all when none is named, oldest first.
SELECT s.* FROM step AS s
  JOIN task AS t ON t.objective_id = s.objective_id AND s.owner = 'task:' || t.id AND t.status = 'waiting'
 WHERE s.state IN ('unknown', 'asked') AND (CAST(:objective_id AS BIGINT) IS NULL OR s.objective_id = :objective_id)
 ORDER BY s.id;

-- steps --
-- The steps of some owners, in the order in which they were created.
SELECT * FROM step
 WHERE objective_id = :objective_id AND owner IN (SELECT named.value FROM json_each(:owners) AS named) ORDER BY id;

-- duty_steps --
-- The steps of all runs of a duty, in the order in which they were created.
SELECT * FROM step WHERE objective_id = :objective_id AND (owner = :duty OR owner LIKE :duty || ':%') ORDER BY id;

-- answered_steps --
-- The questions and approvals of an objective that a person has answered, in the order in which they were asked.
SELECT * FROM step
 WHERE objective_id = :objective_id AND kind IN ('question', 'approval') AND output IS NOT NULL ORDER BY id;

-- unsettled_steps --
-- The steps of all owners that still hold their reservation, or that wait for a person.
SELECT * FROM step WHERE objective_id = :objective_id AND is_held = 1
 UNION ALL
SELECT * FROM step WHERE objective_id = :objective_id AND state IN ('unknown', 'asked') AND is_held = 0;

-- put_step --
-- Insert a step, or replace it.
INSERT INTO step (objective_id, owner, key, kind, request_hash, state, output, request, model, origins, is_held, held_calls, held_tokens,
                  held_cost_microusd, calls, prompt_tokens, completion_tokens, cost_microusd, unconfirmed, claim_no, created_at_us, done_at_us,
                  checksum)
VALUES (:objective_id, :owner, :key, :kind, :request_hash, :state, :output, :request, :model, :origins, :is_held, :held_calls, :held_tokens,
        :held_cost_microusd, :calls, :prompt_tokens, :completion_tokens, :cost_microusd, :unconfirmed, :claim_no, :created_at_us, :done_at_us,
        :checksum)
ON CONFLICT (objective_id, owner, key) DO UPDATE
   SET kind = excluded.kind, request_hash = excluded.request_hash, state = excluded.state, output = excluded.output,
       request = excluded.request, model = excluded.model, origins = excluded.origins, is_held = excluded.is_held, held_calls = excluded.held_calls,
       held_tokens = excluded.held_tokens, held_cost_microusd = excluded.held_cost_microusd, calls = excluded.calls,
       prompt_tokens = excluded.prompt_tokens, completion_tokens = excluded.completion_tokens, cost_microusd = excluded.cost_microusd,
       unconfirmed = excluded.unconfirmed, claim_no = excluded.claim_no, done_at_us = excluded.done_at_us, checksum = excluded.checksum;

-- delete_step --
-- Delete a step that was only intended.
DELETE FROM step WHERE objective_id = :objective_id AND owner = :owner AND key = :key;

-- charge_objective --
-- Add usage to the totals of the objective.
UPDATE objective
   SET calls = calls + :calls, prompt_tokens = prompt_tokens + :prompt_tokens, completion_tokens = completion_tokens + :completion_tokens,
       cost_microusd = cost_microusd + :cost_microusd, unconfirmed_tokens = unconfirmed_tokens + :unconfirmed_tokens,
       unconfirmed_cost_microusd = unconfirmed_cost_microusd + :unconfirmed_cost_microusd
 WHERE id = :objective_id;

-- set_overspent --
-- Store the limit that can no longer be guaranteed, '' when each can.
UPDATE objective SET overspent = :limit WHERE id = :objective_id;

-- charge_task --
-- Add usage to the totals of the task. If a step of it was recorded, set its number of lost workers to 0.
UPDATE task
   SET calls = calls + :calls, prompt_tokens = prompt_tokens + :prompt_tokens, completion_tokens = completion_tokens + :completion_tokens,
       cost_microusd = cost_microusd + :cost_microusd, unconfirmed_tokens = unconfirmed_tokens + :unconfirmed_tokens,
       unconfirmed_cost_microusd = unconfirmed_cost_microusd + :unconfirmed_cost_microusd,
       n_lost = CASE WHEN :has_progressed = 1 THEN 0 ELSE n_lost END
 WHERE objective_id = :objective_id AND id = :task_id;
