"""Workers as a person and a script see them: nouns in, lines and JSON out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from babyagi.cli.render import render_duration
from babyagi.cli.text import Line, Style, fit
from babyagi.tasks import Joined, Worker


def serving(workers: Sequence[Worker], objective_id: int) -> list[Worker]:
    """Those with a living lease that serve the objective and are not hindered there."""
    return [
        worker
        for worker in workers
        if worker.lease_left_s >= 0
        and any(one.objective_id == objective_id and not one.hindrance for one in worker.joined)
    ]


def count_serving(workers: Sequence[Worker], objective_id: int) -> str:
    """`2 workers`, or that nobody is at work."""
    n_serving = len(serving(workers, objective_id))
    return (
        f"{n_serving} worker{'' if n_serving == 1 else 's'}" if n_serving else "nobody is at work"
    )


def render_serving(workers: Sequence[Worker], objective_id: int) -> str:
    """The same, with their names."""
    names = ", ".join(worker.name for worker in serving(workers, objective_id))
    return count_serving(workers, objective_id) + (f": {fit(names, 200)}" if names else "")


def render_workers(workers: Sequence[Worker], width: int) -> list[Line]:
    """A head and one line for each objective that a worker serves."""
    lines = [Line(f"{'NAME':<20} {'PID':>8} {'LEASE':>7}  AT WORK", Style.DIM)]
    for worker in workers:
        head = f"{fit(worker.name, 20):<20} {worker.pid:>8} {_lease(worker):>7}  "
        texts = [_describe(one, worker) for one in worker.joined] or [
            ("waits for an objective", Style.PLAIN)
        ]
        for at, (text, style) in enumerate(texts):
            start = head if at == 0 else " " * len(head)
            lines.append(Line(start + fit(text, max(30, width - len(head))), style))
    return lines


def _lease(worker: Worker) -> str:
    return f"{worker.lease_left_s:.0f} s" if worker.lease_left_s >= 0 else "over"


def _describe(joined: Joined, worker: Worker) -> tuple[str, Style]:
    place = f"objective {joined.objective_id}"
    if joined.hindrance:
        return f"{place}: cannot work on it: {joined.hindrance}", Style.YELLOW
    held = [f"task {task_id}" for task_id in joined.task_ids] + [
        f"the {duty}" for duty in joined.duties
    ]
    # both by the store's clock
    since_s = (worker.lease_until - joined.since).total_seconds() - worker.lease_left_s
    return (
        f"{place} for {render_duration(since_s)}: {', '.join(held) or 'nothing to do now'}",
        Style.PLAIN,
    )


def worker_shape(worker: Worker) -> dict[str, Any]:
    """One entry of `workers --json`."""
    return {
        "id": worker.id,
        "name": worker.name,
        "host": worker.host,
        "pid": worker.pid,
        "home": worker.home,
        "since": worker.since.isoformat() if worker.since is not None else None,
        "lease_left_s": worker.lease_left_s,
        "objectives": [
            {
                "objective_id": one.objective_id,
                "since": one.since.isoformat(),
                "hindrance": one.hindrance,
                "tasks": list(one.task_ids),
                "duties": [duty.value for duty in one.duties],
            }
            for one in worker.joined
        ],
    }
