-- Schedules and their ticks.

-- insert_schedule --
-- Insert an active schedule; returns its id.
INSERT INTO schedule (uid, spec, policy, due_us, fires_at_us, created_at_us, seal)
VALUES (:uid, :spec, :policy, :due_us, :due_us, :created_at_us, :seal) RETURNING id;

-- schedule --
-- One schedule.
SELECT * FROM schedule WHERE id = :schedule_id;

-- schedules --
-- The schedules that are not removed, or all schedules; oldest first.
SELECT * FROM schedule WHERE status <> 'removed' OR :with_removed = 1 ORDER BY id;

-- due_schedules --
-- The schedules with a tick that is due by now, the longest overdue first.
SELECT * FROM schedule WHERE fires_at_us <= :now_us AND status IN ('active', 'paused') ORDER BY fires_at_us, id;

-- next_tick --
-- When the next tick of any schedule is due; NULL when none is to come.
SELECT min(fires_at_us) AS fires_at_us FROM schedule WHERE fires_at_us IS NOT NULL AND status IN ('active', 'paused');

-- is_schedule_busy --
-- A row if the objective of one of the schedule's newest ticks has not ended, or has no report yet.
SELECT 1 FROM (SELECT objective_id FROM tick WHERE schedule_id = :schedule_id AND objective_id IS NOT NULL
                ORDER BY decided_at_us DESC LIMIT 100) AS newest
  JOIN objective AS o ON o.id = newest.objective_id
 WHERE o.status <> 'ended' OR o.report IS NULL LIMIT 1;

-- ticks_of_day --
-- The objectives that the schedule's ticks began within a span of time: their status and cost.
SELECT o.id, o.spec, o.status, o.report IS NOT NULL AS has_report, o.cost_microusd
  FROM tick AS t JOIN objective AS o ON o.id = t.objective_id
 WHERE t.schedule_id = :schedule_id AND t.decided_at_us >= :from_us AND t.decided_at_us < :until_us AND t.objective_id IS NOT NULL;

-- ticks --
-- The newest ticks, newest first.
SELECT * FROM tick WHERE schedule_id = :schedule_id ORDER BY due_us DESC LIMIT :limit;

-- insert_tick --
-- Insert a decided tick; the same tick cannot be inserted again.
INSERT INTO tick (schedule_id, due_us, outcome, reason, objective_id, decided_at_us)
VALUES (:schedule_id, :due_us, :outcome, :reason, :objective_id, :now_us);

-- prune_ticks --
-- Delete the ticks that were decided before :before_us, except the newest 100 and those whose objective has not ended with a report.
DELETE FROM tick
 WHERE schedule_id = :schedule_id AND due_us < :before_us AND decided_at_us < :before_us
   AND due_us < (SELECT min(due_us) FROM (SELECT due_us FROM tick WHERE schedule_id = :schedule_id
                                           ORDER BY due_us DESC LIMIT 100) AS newest)
   AND NOT EXISTS (SELECT 1 FROM objective AS o
                    WHERE o.id = tick.objective_id AND (o.status <> 'ended' OR o.report IS NULL));

-- set_next_tick --
-- Store when the schedule's next tick is due.
UPDATE schedule SET due_us = :due_us, fires_at_us = :due_us, status = :status WHERE id = :schedule_id;

-- set_schedule_status --
-- Set the schedule's status to active, paused or removed.
UPDATE schedule SET status = :status WHERE id = :schedule_id;

-- every_schedule --
SELECT * FROM schedule WHERE CAST(:objective_id AS BIGINT) IS NULL ORDER BY id;

-- every_tick --
SELECT * FROM tick WHERE CAST(:objective_id AS BIGINT) IS NULL ORDER BY schedule_id, due_us;
