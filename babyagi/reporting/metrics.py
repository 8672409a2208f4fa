"""Metrics of a task store, as text for Prometheus.

All are gauges, because numbers fall when an objective is deleted. Values of labels come from closed
lists; they contain no text of a person or a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from babyagi import events
from babyagi.reporting.why import Facts, Why, find_hold
from babyagi.tasks import ObjectiveStatus, StopReason, TaskStatus
from babyagi.taskstore.nouns import Vitals
from babyagi.taskstore.schedules import ScheduleStatus, TickOutcome
from babyagi.taskstore.sql.store import TaskStore

_HOLDS = (
    Why.AFTER,
    Why.LACK,
    Why.QUESTIONS,
    Why.DELAYED,
    Why.LIMIT,
    Why.NO_WORKER,
    Why.BLOCKED,
    Why.ENDPOINT,
    Why.CHECKING,
    Why.STALLED,
    Why.PAUSED,
    Why.ENDED,
)
_RUNNABLE = (Why.NEXT, Why.NO_WORKER, Why.BLOCKED, Why.ENDPOINT)
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
    holds = [  # why tasks do not run although they can be claimed
        find_hold(Facts(standing=standing, workers=vitals.workers))
        if queue.n_free or queue.n_delayed
        else Why.NEXT
        for standing, queue in vitals.standings
    ]
    says_held = "Queued tasks that cannot run, by reason."
    return [
        _by("objectives", "Objectives by status.", "status", objectives),
        _by("objectives_ended", "Objectives that have ended, by stop reason.", "reason", ended),
        _one("reports_owed", "Ended objectives without a report.", n_owed),
        _by("tasks", "Tasks by status; a waiting task waits for a person.", "status", tasks),
        _by("tasks_held", says_held, "reason", _count_held(vitals, holds)),
        _measure_oldest(vitals, holds),
        *_measure_workers(vitals),
        *(
            _one(name, says, totals.get(("events", kind, ""), 0))
            for name, (kind, says) in _COUNTED.items()
        ),
    ]


def _count_held(vitals: Vitals, holds: Sequence[Why]) -> dict[str, int]:
    held = Counter({str(why): 0 for why in _HOLDS})
    held[Why.PAUSED] += vitals.totals.get(("queued", "paused", ""), 0)
    held[Why.ENDED] += vitals.totals.get(("queued", "ended", ""), 0)
    for (_, queue), why in zip(vitals.standings, holds, strict=True):
        held[Why.AFTER] += queue.n_after
        held[Why.LACK] += queue.n_lack
        held[Why.QUESTIONS] += queue.n_asking
        held[Why.DELAYED if why is Why.NEXT else why] += queue.n_delayed
        if why is not Why.NEXT:
            held[why] += queue.n_free
    return {str(why): n for why, n in held.items()}


def _measure_oldest(vitals: Vitals, holds: Sequence[Why]) -> str:
    """Return the metric of how long the oldest runnable task has waited. A task that only lacks a
    worker or an answering model counts as runnable."""
    waits_s = [
        queue.free_s
        for (_, queue), why in zip(vitals.standings, holds, strict=True)
        if queue.n_free and why in _RUNNABLE
    ]
    says = (
        "How long the oldest task has waited that could run, given a worker with an answering "
        "model; 0 if there is none."
    )
    return _one("oldest_runnable_task_seconds", says, max(waits_s, default=0.0))


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
