"""Metrics of a task store, as text for Prometheus.

All are gauges, because numbers fall when an objective is deleted. Values of labels come from closed
lists; they contain no text of a person or a model.
"""

from __future__ import annotations

from collections.abc import Mapping

from babyagi import events
from babyagi.tasks import ObjectiveStatus, StopReason, TaskStatus
from babyagi.taskstore.nouns import Vitals
from babyagi.taskstore.schedules import ScheduleStatus, TickOutcome
from babyagi.taskstore.sql.store import TaskStore

_COUNTED = {
    "task_failures": (events.TASK_FAILED, "Tries that failed."),
    "tasks_given_up": (events.TASK_DEAD, "How many times a task became dead."),
    "takeovers": (events.WORKER_LOST, "Lost workers, counted once for each of their objectives."),
    "outages": (events.MODEL_UNAVAILABLE, "How many times a model was found not to answer."),
}


async def read_metrics(store: TaskStore) -> str:
    """Return the current metrics in the text format of Prometheus, including those with value
    0."""
    vitals = await store.vitals()
    measured = [*_measure_tasks(vitals), *_measure_money(vitals), *_measure_schedules(vitals)]
    return "".join(measured)


def _measure_tasks(vitals: Vitals) -> list[str]:
    totals = vitals.totals
    ended = {str(reason): totals.get(("objectives", "ended", reason), 0) for reason in StopReason}
    objectives = {
        str(status): sum(n for key, n in totals.items() if key[:2] == ("objectives", status))
        for status in ObjectiveStatus
    }
    tasks = {str(status): totals.get(("tasks", status, ""), 0) for status in TaskStatus}
    n_owed = totals.get(("owed_reports", "", ""), 0)
    queues = [queue for _, queue in vitals.standings]
    held = {
        "after": sum(queue.n_after for queue in queues),
        "lack": sum(queue.n_lack for queue in queues),
        "questions": sum(queue.n_asking for queue in queues),
        "delayed": sum(queue.n_delayed for queue in queues),
        "paused": totals.get(("queued", "paused", ""), 0),
        "ended": totals.get(("queued", "ended", ""), 0),
    }
    waits_s = max((queue.free_s for queue in queues if queue.n_free), default=0.0)
    says_held = "Queued tasks that are not to be started now, by reason."
    says_oldest = "How long the oldest task has waited that is to be started; 0 if there is none."
    return [
        _by("objectives", "Objectives by status.", "status", objectives),
        _by("objectives_ended", "Objectives that have ended, by stop reason.", "reason", ended),
        _one("reports_owed", "Ended objectives without a report.", n_owed),
        _by("tasks", "Tasks by status; a waiting task waits for a person.", "status", tasks),
        _by("tasks_held", says_held, "reason", held),
        _one("oldest_runnable_task_seconds", says_oldest, waits_s),
        *_measure_workers(vitals),
        *(
            _one(name, says, totals.get(("events", kind, ""), 0))
            for name, (kind, says) in _COUNTED.items()
        ),
    ]


def _measure_workers(vitals: Vitals) -> list[str]:
    living = [worker for worker in vitals.workers if worker.lease_left_s >= 0]
    n_blocked = sum(any(one.is_blocked for one in worker.joined) for worker in living)
    says_blocked = "Running workers that lack something that an objective needs."
    return [
        _one("workers", "Workers that are running: their leases have not ended.", len(living)),
        _one("workers_blocked", says_blocked, n_blocked),
    ]


def _measure_money(vitals: Vitals) -> list[str]:
    totals = vitals.totals
    cost = totals.get(("cost_microusd", "", ""), 0) / 1e6
    perhaps = totals.get(("unconfirmed_microusd", "", ""), 0) / 1e6
    n_calls = totals.get(("calls", "", ""), 0)
    tokens = {kind: totals.get(("tokens", kind, ""), 0) for kind in ("prompt", "completion")}
    held = sum(standing.objective.held.cost_usd for standing, _ in vitals.standings)
    return [
        _one("model_calls", "Calls of models, for all objectives.", n_calls),
        _by("tokens", "Tokens of calls of models, by kind.", "kind", tokens),
        _one("spent_usd", "US dollars spent, as answers reported.", round(cost - perhaps, 6)),
        _one("perhaps_spent_usd", "US dollars of calls whose cost no answer reported.", perhaps),
        _one("held_usd", "US dollars that calls in flight may cost.", round(held, 6)),
    ]


def _measure_schedules(vitals: Vitals) -> list[str]:
    totals = vitals.totals
    schedules = {str(status): totals.get(("schedules", status, ""), 0) for status in ScheduleStatus}
    ticks = {_labels(outcome=outcome, reason=""): 0.0 for outcome in TickOutcome}
    ticks |= {
        _labels(outcome=outcome, reason=reason): n
        for (name, outcome, reason), n in sorted(totals.items())
        if name == "ticks"
    }
    metrics = [
        _by("schedules", "Schedules by status.", "status", schedules),
        _write("ticks", "Ticks of schedules, by outcome and reason.", ticks),
    ]
    if vitals.next_tick_s is not None:
        says = "Time until the next tick of a schedule is due; 0 if one is due now."
        metrics.append(_one("next_tick_seconds", says, vitals.next_tick_s))
    return metrics


def _one(name: str, says: str, value: float) -> str:
    return _write(name, says, {"": value})


def _by(name: str, says: str, label: str, values: Mapping[str, float]) -> str:
    return _write(name, says, {_labels(**{label: one}): n for one, n in values.items()})


def _labels(**values: str) -> str:
    """Return labels in braces. The values are of closed lists, so that nothing need be quoted."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in values.items()) + "}"


def _write(name: str, says: str, values: Mapping[str, float]) -> str:
    """Return a metric as lines: its help, its type, and its values by labels."""
    lines = [f"# HELP babyagi_{name} {says}", f"# TYPE babyagi_{name} gauge"]
    lines += [f"babyagi_{name}{labels} {value:.10g}" for labels, value in values.items()]
    return "\n".join([*lines, ""])
