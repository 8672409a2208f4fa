"""Draws the timeline of an objective as SVG: a row for each task, below the task from which it was
planned, with a bar for each try of the task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from babyagi import events
from babyagi.pages.html import Html, escape, join
from babyagi.tasks import Event, Task, TaskStatus
from babyagi.text import one_line, say_duration, shorten

MAX_ROWS = 240
MAX_BARS = 1500
MAX_DEPTH = 8  # deeper tasks are not indented further
MAX_LABEL_CHARS = 44
WIDTH, LEFT, ROW_HEIGHT, BAR_HEIGHT, INDENT = 1000, 330, 24, 16, 10
N_TICKS = 5

SIGNS: Mapping[TaskStatus, str] = {
    TaskStatus.QUEUED: "○",
    TaskStatus.RUNNING: "●",
    TaskStatus.RECORDED: "◐",
    TaskStatus.DONE: "✓",
    TaskStatus.WAITING: "?",
    TaskStatus.DEAD: "✕",
    TaskStatus.CANCELLED: "–",
}
_OUTCOMES = {
    events.TASK_RECORDED: "answered",
    events.TASK_LACKED: "lacked something",
    events.TASK_FAILED: "failed",
    events.TASK_DEAD: "given up",
    events.TASK_PARKED: "asked a person",
    events.TASK_RELEASED: "released",
    events.TASK_CANCELLED: "cancelled",
}
_CLASS_BY_OUTCOME = {"answered": "good", "": "good", "given up": "bad", "failed": "bad"}
# the kinds of events that `find_bars` needs
KINDS = (events.TASK_CLAIMED, *_OUTCOMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar of the timeline: a try of a task. `outcome` is how it ended, in words; '' while it is
    running."""

    task_id: int
    started_at: datetime
    ended_at: datetime
    outcome: str = ""

    @property
    def length_s(self) -> float:
        return max(0.0, (self.ended_at - self.started_at).total_seconds())


def find_bars(found: Iterable[Event], *, now: datetime) -> list[Bar]:
    """Return the bars of the timeline: first the tries that have ended, in the order of their ends,
    then those that are running, with `now` as their end."""
    running: dict[int, Bar] = {}
    ended: list[Bar] = []
    for event in found:
        task_id = event.task_id or 0
        if bar := running.pop(task_id, None):
            outcome = _OUTCOMES.get(event.kind, "cut off")
            ended.append(replace(bar, ended_at=event.at, outcome=outcome))
        if event.kind == events.TASK_CLAIMED:
            running[task_id] = Bar(task_id=task_id, started_at=event.at, ended_at=now)
    return [*ended, *running.values()]


def walk_tree(tasks: Sequence[Task]) -> Iterator[tuple[Task, int]]:
    """Yield each task with its depth in the tree: after its parent, and after the subtrees of its
    earlier siblings. Siblings keep the order that they have in `tasks`."""
    known = {task.id for task in tasks}
    children: dict[int, list[Task]] = {}
    for task in tasks:
        parent = task.parent_id if task.parent_id in known and task.parent_id < task.id else None
        children.setdefault(parent or 0, []).append(task)
    waiting = [(task, 0) for task in reversed(children.get(0, []))]
    while waiting:
        task, depth = waiting.pop()
        yield task, depth
        waiting += [(child, depth + 1) for child in reversed(children.get(task.id, []))]


def render_timeline(
    tasks: Sequence[Task],
    bars: Iterable[Bar],
    *,
    link: Callable[[int], str] = "#task-{}".format,
) -> Html:
    """Return the timeline of the tasks with the smallest numbers, at most `MAX_ROWS`, and of their
    longest bars; '' if there are no tasks.

    Args:
        link: returns the URL to which the row of a task links, from its id.
    """
    if not tasks:
        return Html("")
    rows = list(walk_tree(sorted(tasks, key=lambda task: task.id)[:MAX_ROWS]))
    shown = {task.id for task, _ in rows}
    chosen = sorted((bar for bar in bars if bar.task_id in shown), key=lambda bar: -bar.length_s)
    begins, whole_s = _place(chosen[:MAX_BARS])
    height = ROW_HEIGHT * (len(rows) + 1)
    parts = [
        Html(
            f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="group" '
            'aria-label="Timeline">'
        ),
        *_draw_axis(whole_s, height - ROW_HEIGHT),
    ]
    for number, (task, depth) in enumerate(rows):
        top = ROW_HEIGHT * number
        drawn = [_draw_bar(bar, at_s, top, whole_s) for bar, at_s in begins[task.id]]
        label = _draw_label(task, INDENT * min(depth, MAX_DEPTH), top)
        href = escape(link(task.id))
        parts.append(Html(f'<a data-drawer href="{href}">{label}{join(drawn)}</a>'))
    return join([*parts, Html("</svg>")], "\n")


def _place(bars: Sequence[Bar]) -> tuple[Mapping[int, list[tuple[Bar, float]]], float]:
    """Return the bars by task, each with the seconds of work before it, and the seconds of work
    until the last end. Pauses in which no task was worked on do not count."""
    placed = defaultdict[int, list[tuple[Bar, float]]](list)
    work_s, end = 0.0, None
    for bar in sorted(bars, key=lambda bar: bar.started_at):
        ahead_s = min(work_s, (end - bar.started_at).total_seconds()) if end else 0.0
        begins_s = work_s - max(0.0, ahead_s)
        placed[bar.task_id].append((bar, begins_s))
        work_s = max(work_s, begins_s + bar.length_s)
        end = max(end or bar.ended_at, bar.ended_at)
    return placed, max(work_s, 0.001)


def _draw_label(task: Task, left: int, top: int) -> Html:
    """Return the task's sign, number and name, of which a long one is cut at its end: its last word
    often tells one task from another."""
    name = one_line(task.name)
    after = f", after {', '.join(map(str, task.after))}" if task.after else ""
    title = f"Task {task.id}, {task.status.value}{after}: {shorten(name, 300)}"
    label = f"{SIGNS[task.status]} {task.id} {name}"
    if len(label) > (most := MAX_LABEL_CHARS - left // 6):
        label = f"{label[: most - 1]}…"
    return Html(
        f'<text x="{left}" y="{top + 12}"><title>{escape(title)}</title>{escape(label)}</text>'
    )


def _draw_bar(bar: Bar, begins_s: float, top: int, whole_s: float) -> Html:
    scale = (WIDTH - LEFT) / whole_s
    kind = _CLASS_BY_OUTCOME.get(bar.outcome, "part")
    return Html(
        f'<rect class="{kind}" x="{LEFT + begins_s * scale:.1f}" y="{top}" '
        f'width="{max(1.0, bar.length_s * scale):.1f}" height="{BAR_HEIGHT}" rx="2">'
        f"<title>task {bar.task_id} ({say_duration(bar.length_s)}, "
        f"{bar.outcome or 'still at work'})</title></rect>"
    )


def _draw_axis(whole_s: float, bottom: int) -> Iterator[Html]:
    for number in range(N_TICKS + 1):
        x = LEFT + (WIDTH - LEFT) * number / N_TICKS
        anchor = "end" if number == N_TICKS else "middle" if number else "start"
        yield Html(
            f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{bottom}"/>'
            f'<text class="tick" x="{x:.1f}" y="{bottom + 15}" text-anchor="{anchor}">'
            f"{say_duration(whole_s * number / N_TICKS)}</text>"
        )
