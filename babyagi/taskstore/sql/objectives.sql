-- Objectives, their events and their duties.

-- insert_objective --
-- Insert an active objective; returns the row.
INSERT INTO objective (uid, identity, spec, seen_us, created_at_us, seal)
VALUES (:uid, :identity, :spec, :created_at_us, :created_at_us, :seal) RETURNING *, 0 AS has_report;

-- newest_objective --
-- The newest objective with this identity, if there is one.
SELECT id FROM objective WHERE identity = :identity ORDER BY id DESC LIMIT 1;

-- objective --
-- One objective without its report, with the sum of what its calls in flight have reserved, and the longest lease of the living workers that
-- serve it and are not blocked there (0 if there are none).
SELECT o.id, o.uid, o.identity, o.spec, o.status, o.stop_reason, o.stop_detail, o.calls, o.prompt_tokens, o.completion_tokens, o.cost_microusd,
       o.active_us, o.seen_us, o.order_revision, o.ordered_upto, o.last_task_id, o.is_claimed_met, o.n_barren, o.check_no, o.report_no,
       o.report IS NOT NULL AS has_report, o.created_at_us, o.ended_at_us, o.n_begun, o.n_fruitless, o.n_answers, o.plan_no, o.checks,
       o.unconfirmed_tokens, o.unconfirmed_cost_microusd, o.overspent, h.held_calls, h.held_tokens, h.held_cost_microusd,
       (SELECT coalesce(max(w.lease_us), 0) FROM worker_objective AS j JOIN worker AS w ON w.id = j.worker_id
         WHERE j.objective_id = :objective_id AND j.hindrance = '' AND w.lease_until_us BETWEEN :now_us AND :now_us + w.lease_us) AS lease_us
  FROM objective AS o
 CROSS JOIN (SELECT coalesce(sum(held_calls), 0) AS held_calls, coalesce(sum(held_tokens), 0) AS held_tokens,
                    coalesce(sum(held_cost_microusd), 0) AS held_cost_microusd
               FROM step WHERE objective_id = :objective_id AND is_held = 1) AS h
 WHERE o.id = :objective_id;

-- report --
-- An objective's report, NULL before it is written.
SELECT report FROM objective WHERE id = :objective_id;

-- objectives --
-- The newest objectives, newest first, with the columns of the query `objective`.
{{any_objective}} ORDER BY o.id DESC LIMIT :limit;

-- open_objectives --
-- The same, for those that have work for workers: active, or ended without a report.
{{any_objective}} WHERE o.status = 'active' OR (o.status = 'ended' AND o.report IS NULL) ORDER BY o.id DESC LIMIT :limit;

-- any_objective --
-- How the queries of several objectives begin.
SELECT o.id, o.uid, o.identity, o.spec, o.status, o.stop_reason, o.stop_detail, o.calls, o.prompt_tokens, o.completion_tokens, o.cost_microusd,
       o.active_us, o.seen_us, o.order_revision, o.ordered_upto, o.last_task_id, o.is_claimed_met, o.n_barren, o.check_no, o.report_no,
       o.report IS NOT NULL AS has_report, o.created_at_us, o.ended_at_us, o.n_begun, o.n_fruitless, o.n_answers, o.plan_no, o.checks,
       o.unconfirmed_tokens, o.unconfirmed_cost_microusd, o.overspent,
       (SELECT coalesce(sum(h.held_calls), 0) FROM step AS h WHERE h.objective_id = o.id AND h.is_held = 1) AS held_calls,
       (SELECT coalesce(sum(h.held_tokens), 0) FROM step AS h WHERE h.objective_id = o.id AND h.is_held = 1) AS held_tokens,
       (SELECT coalesce(sum(h.held_cost_microusd), 0) FROM step AS h WHERE h.objective_id = o.id AND h.is_held = 1) AS held_cost_microusd,
       (SELECT coalesce(max(w.lease_us), 0) FROM worker_objective AS j JOIN worker AS w ON w.id = j.worker_id
         WHERE j.objective_id = o.id AND j.hindrance = '' AND w.lease_until_us BETWEEN :now_us AND :now_us + w.lease_us) AS lease_us
  FROM objective AS o

-- store_active_time --
-- Store the active time that was counted up to now.
UPDATE objective SET active_us = :active_us, seen_us = :now_us WHERE id = :objective_id;

-- set_status --
-- active ⇄ paused; the detail says why no worker could work on the objective.
UPDATE objective SET status = :status, stop_detail = :detail WHERE id = :objective_id;

-- end_objective --
-- active | paused → ended.
UPDATE objective SET status = 'ended', stop_reason = :reason, stop_detail = :detail, ended_at_us = :now_us, is_claimed_met = 0
 WHERE id = :objective_id;

-- reopen_objective --
-- ended → active; a new report is due, under a new owner.
UPDATE objective
   SET status = 'active', stop_reason = NULL, stop_detail = '', ended_at_us = NULL, seen_us = :now_us, report = NULL,
       report_no = report_no + 1, n_barren = 0, n_fruitless = 0, checks = '{}'
 WHERE id = :objective_id;

-- set_spec --
-- Replace the objective's spec.
UPDATE objective SET spec = :spec, seal = :seal WHERE id = :objective_id;

-- count_progress --
-- How many tasks in a row brought nothing new, how many tries in a row gave no answer, and how many answers there are.
UPDATE objective SET n_barren = :n_tasks_without_progress, n_fruitless = :n_tries_without_answer, n_answers = :n_answers WHERE id = :objective_id;

-- count_no_answer --
-- One more try in a row gave no answer.
UPDATE objective SET n_fruitless = n_fruitless + 1 WHERE id = :objective_id;

-- count_afresh --
-- A person has changed something: set the counts of tasks and tries without progress to 0.
UPDATE objective SET n_barren = 0, n_fruitless = 0, checks = '{}' WHERE id = :objective_id;

-- count_begun --
-- Count a task that is claimed for the first time.
UPDATE objective SET n_begun = n_begun + 1 WHERE id = :objective_id;

-- finish_plan --
-- Planning is finished: give the next planning a new number, and set the counts of `count_progress`.
UPDATE objective SET plan_no = plan_no + 1, n_barren = :n_tasks_without_progress, n_fruitless = :n_tries_without_answer, n_answers = :n_answers
 WHERE id = :objective_id;

-- set_claimed_met --
-- An agent claims that the objective is met.
UPDATE objective SET is_claimed_met = 1 WHERE id = :objective_id;

-- finish_check --
-- A check is finished: drop the claim that the objective is met, give the next check a new number, and store how many tasks in a row
-- have brought nothing new.
UPDATE objective SET is_claimed_met = 0, check_no = check_no + 1, n_barren = :n_tasks_without_progress, checks = :checks
WHERE id = :objective_id;

-- forget_check --
-- Drop a running check and a claim that the objective is met, because a further question was added.
UPDATE objective SET is_claimed_met = 0, check_no = check_no + 1 WHERE id = :objective_id;

-- set_order --
-- The list was ordered. Store the newest task that the order took into account.
UPDATE objective SET order_revision = order_revision + 1, ordered_upto = :upto WHERE id = :objective_id;

-- bump_order --
-- A person moved a task: raise the revision, so that an order that was begun before is refused.
UPDATE objective SET order_revision = order_revision + 1 WHERE id = :objective_id;

-- set_report --
-- Store the report.
UPDATE objective SET report = :report, report_seal = :seal WHERE id = :objective_id;

-- delete_objective --
-- Delete the objective, and with it every row that belongs to it.
DELETE FROM objective WHERE id = :objective_id;

-- is_held_by_the_living --
-- A row if a living worker holds a task or a duty of the objective.
SELECT 1 FROM worker AS w
 WHERE w.lease_until_us BETWEEN :now_us AND :now_us + w.lease_us
   AND (EXISTS (SELECT 1 FROM task AS t WHERE t.objective_id = :objective_id AND t.status = 'running' AND t.worker_id = w.id)
        OR EXISTS (SELECT 1 FROM duty AS d WHERE d.objective_id = :objective_id AND d.worker_id = w.id))
 LIMIT 1;

-- insert_event --
-- Append an event.
INSERT INTO event (objective_id, task_id, kind, data, at_us, seal) VALUES (:objective_id, :task_id, :kind, :data, :at_us, :seal);

-- events --
-- The first events after an id, of one task or of all, of some kinds or of any, oldest first.
SELECT * FROM event
 WHERE objective_id = :objective_id AND id > :after_id AND (CAST(:task_id AS BIGINT) IS NULL OR task_id = :task_id)
   AND (CAST(:kinds AS TEXT) IS NULL OR kind IN (SELECT named.value FROM json_each(CAST(:kinds AS TEXT)) AS named))
 ORDER BY id LIMIT :limit;

-- newest_events --
-- The last events after an id, of one task or of all, of some kinds or of any, newest first.
SELECT * FROM event
 WHERE objective_id = :objective_id AND id > :after_id AND (CAST(:task_id AS BIGINT) IS NULL OR task_id = :task_id)
   AND (CAST(:kinds AS TEXT) IS NULL OR kind IN (SELECT named.value FROM json_each(CAST(:kinds AS TEXT)) AS named))
 ORDER BY id DESC LIMIT :limit;

-- newest_event --
-- The newest id of an event.
SELECT coalesce(max(id), 0) AS id FROM event;

-- events_of_all --
-- Events of all objectives after an id, oldest first.
SELECT * FROM event WHERE id > :after_id ORDER BY id LIMIT :limit;

-- last_event_id --
-- The id of the newest event before a moment, 0 when there is none.
SELECT coalesce((SELECT id FROM event WHERE objective_id = :objective_id AND at_us < :until_us ORDER BY id DESC LIMIT 1), 0) AS id;

-- duty --
-- One duty of an objective, if it was ever claimed.
SELECT * FROM duty WHERE objective_id = :objective_id AND duty = :duty;

-- claim_duty --
-- Lease the duty under the owner of its steps.
INSERT INTO duty (objective_id, duty, owner, claim_no, worker_id, not_before_us, upto)
VALUES (:objective_id, :duty, :owner, :claim_no, :worker_id, NULL, :upto)
ON CONFLICT (objective_id, duty) DO UPDATE
   SET owner = :owner, claim_no = :claim_no, worker_id = :worker_id, not_before_us = NULL, delay_us = 0, upto = :upto;

-- free_duty --
-- Release the duty.
UPDATE duty SET worker_id = NULL, not_before_us = :not_before_us, delay_us = :delay_us WHERE objective_id = :objective_id AND duty = :duty;

-- forget_duty --
-- Delete the duty's row, as if it had never been claimed.
DELETE FROM duty WHERE objective_id = :objective_id AND duty = :duty;

-- duties --
-- The duties of an objective that were ever claimed.
SELECT * FROM duty WHERE objective_id = :objective_id;

-- duties_held_by --
-- The duties of an objective that a worker holds.
SELECT * FROM duty WHERE worker_id = :worker_id AND objective_id = :objective_id ORDER BY duty;
