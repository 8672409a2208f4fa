"""The picture of a running objective: what is known now in, at most so many lines out. Knows no
terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from babyagi.cli import render
from babyagi.cli.json_shapes import is_rehearsal, model_of
from babyagi.cli.text import Line, Style, cell_width, fit
from babyagi.cli.worker_lines import count_serving
from babyagi.tasks import Objective, Task, TaskStatus, Worker

MAX_RUNNING = 8
MAX_NEXT = 5
MAX_TROUBLED = 3
MAX_EVENTS = 5
BAR_WIDTH = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the store said at one moment. `queued` and `troubled` may be cut short; `counts` says
    how many there are."""

    objective: Objective
    counts: Mapping[TaskStatus, int]
    running: Sequence[Task]
    queued: Sequence[Task]
    troubled: Sequence[Task]  # dead or waiting for a person
    workers: Sequence[Worker] = ()


def build_lines(
    snapshot: Snapshot, events: Sequence[str], *, now: datetime, width: int, height: int
) -> list[Line]:
    """Return the picture, the least important lines left out where `height` is short.

    Args:
        events: the latest changes in words, oldest first.
    """
    head = _head(snapshot, width)
    tail = _tail(snapshot)
    room = max(0, height - len(head) - len(tail))
    running = _running(snapshot, now, width)[:room]
    troubled = _troubled(snapshot, width)[: room - len(running)]
    queued = _next(snapshot, width)[: room - len(running) - len(troubled)]
    history = _history(events, width)
    n_history = min(len(history), max(0, room - len(running) - len(troubled) - len(queued)))
    lines = [*head, *running, *troubled, *queued, *tail, *history[len(history) - n_history :]]
    return [
        Line(fit(line.text, width) if cell_width(line.text) > width else line.text, line.style)
        for line in lines
    ]


def _head(snapshot: Snapshot, width: int) -> list[Line]:
    objective = snapshot.objective
    lines = [Line(render.REHEARSAL_LINE, Style.YELLOW)] if is_rehearsal(objective) else []
    lines.append(Line(fit(f"Objective {objective.id}: {objective.spec.text}", width), Style.BOLD))
    lines.append(Line(_progress(snapshot)))
    return lines


def _progress(snapshot: Snapshot) -> str:
    n_known = sum(snapshot.counts.values())
    n_over = sum(snapshot.counts.get(status, 0) for status in render.FINISHED)
    filled = BAR_WIDTH * n_over // n_known if n_known else 0
    return (
        f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {n_over}/{n_known} tasks · "
        f"{render.render_counts(snapshot.counts)}"
    )


def _running(snapshot: Snapshot, now: datetime, width: int) -> list[Line]:
    lines = []
    for task in snapshot.running[:MAX_RUNNING]:
        elapsed_s = (now - task.started_at).total_seconds() if task.started_at is not None else 0.0
        head = f"  > {task.id:>4}  {render.render_duration(elapsed_s):>9}  "
        lines.append(Line(head + fit(task.name, max(10, width - len(head))), Style.BOLD))
    return lines + _more(len(snapshot.running) - MAX_RUNNING, "running")


def _troubled(snapshot: Snapshot, width: int) -> list[Line]:
    lines = []
    for task in snapshot.troubled[:MAX_TROUBLED]:
        head = f"  ! {task.id:>4}  {task.status.value:>9}  "
        text = f"{task.name}: {task.error}" if task.error else task.name
        style = Style.RED if task.status is TaskStatus.DEAD else Style.YELLOW
        lines.append(Line(head + fit(text, max(10, width - len(head))), style))
    n_troubled = snapshot.counts.get(TaskStatus.DEAD, 0) + snapshot.counts.get(
        TaskStatus.WAITING, 0
    )
    return lines + _more(n_troubled - len(lines), "dead or waiting")


def _next(snapshot: Snapshot, width: int) -> list[Line]:
    lines = []
    for task in snapshot.queued[:MAX_NEXT]:
        after = (
            f" (after {', '.join(str(task_id) for task_id in task.after)})" if task.after else ""
        )
        head = f"    {task.id:>4}  {'queued':>9}  "
        lines.append(Line(head + fit(task.name, max(10, width - len(head) - len(after))) + after))
    return lines + _more(snapshot.counts.get(TaskStatus.QUEUED, 0) - len(lines), "queued")


def _more(n_more: int, what: str) -> list[Line]:
    return [Line(f"          and {n_more} more {what}", Style.DIM)] if n_more > 0 else []


def _tail(snapshot: Snapshot) -> list[Line]:
    objective = snapshot.objective
    limits = " · ".join(render.render_limits(objective, snapshot.counts)) or "no limits"
    at_work = count_serving(snapshot.workers, objective.id)
    return [
        Line(f"{at_work} · {model_of(objective)} · {render.render_usage(objective)}"),
        Line(f"limits: {limits}"),
    ]


def _history(events: Sequence[str], width: int) -> list[Line]:
    return [Line(fit(text, width), Style.DIM) for text in events[-MAX_EVENTS:]]
