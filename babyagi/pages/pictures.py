"""Draws two SVG pictures of an objective: a timeline, whose bars are tries of tasks, and a graph of
the tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from babyagi import events
from babyagi.pages.html import Html, escape, join
from babyagi.tasks import Event, Task, TaskStatus
from babyagi.text import one_line, say_duration, shorten

MAX_BARS = 1500
# A pause is drawn at most this long: a part of the total time in which anything was done.
MAX_GAP_SHARE = 0.1
WIDTH, LEFT, LANE_HEIGHT, BAR_HEIGHT = 1000.0, 185.0, 24.0, 16.0
N_TICKS = 5

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
KINDS = (events.WORKER_JOINED, events.TASK_CLAIMED, *_OUTCOMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar of the timeline: a try of a task.

    Attributes:
        lane: the name of the worker.
        outcome: how the try ended, in words; '' while it is running.
    """

    task_id: int
    lane: str
    started_at: datetime
    ended_at: datetime
    outcome: str = ""

    @property
    def length_s(self) -> float:
        return max(0.0, (self.ended_at - self.started_at).total_seconds())


def find_bars(found: Iterable[Event], *, now: datetime) -> list[Bar]:
    """Return the bars of the timeline: first the tries that have ended, in the order of their ends,
    then those that are running, with `now` as their end."""
    names: dict[str, str] = {}
    running: dict[int, Bar] = {}
    ended: list[Bar] = []
    for event in found:
        worker_id = str(event.data.get("worker_id", ""))
        if event.kind == events.WORKER_JOINED:
            names[worker_id] = str(event.data.get("name", ""))
        if event.task_id is None:
            continue
        if bar := running.pop(event.task_id, None):
            outcome = _OUTCOMES.get(event.kind, "cut off")
            ended.append(replace(bar, ended_at=event.at, outcome=outcome))
        if event.kind == events.TASK_CLAIMED:
            lane = names.get(worker_id) or worker_id
            running[event.task_id] = Bar(
                task_id=event.task_id, lane=lane, started_at=event.at, ended_at=now
            )
    return [*ended, *running.values()]


# -- placing bars
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Maps times to positions on a time axis on which long pauses are shortened.

    Attributes:
        start: the time at the beginning of the axis.
        cuts: the shortened pauses, each as (seconds from `start` to its begin, its real length in
            seconds, its shortened length in seconds).
        length_s: the length of the axis in seconds, with shortened pauses.
    """

    start: datetime
    cuts: tuple[tuple[float, float, float], ...]
    length_s: float

    def place(self, at: datetime) -> float:
        """Return the x coordinate of the time in the picture."""
        seconds = (at - self.start).total_seconds()
        drawn = seconds
        for begins_s, pause_s, drawn_s in self.cuts:
            passed = min(max(0.0, seconds - begins_s), pause_s)
            drawn -= passed * (1 - drawn_s / pause_s)
        share = min(1.0, max(0.0, drawn / self.length_s)) if self.length_s else 0.0
        return LEFT + (WIDTH - LEFT) * share


def make_scale(bars: Sequence[Bar]) -> Scale:
    """Return a scale from the begin of the first bar to the end of the last one, with long pauses
    shortened. There must be a bar."""
    spans = sorted((bar.started_at, max(bar.started_at, bar.ended_at)) for bar in bars)
    start = end = spans[0][0]
    busy_s, gaps = 0.0, []
    for begins, ends in spans:
        if begins > end:
            gaps.append(((end - start).total_seconds(), (begins - end).total_seconds()))
        busy_s += max(0.0, (ends - max(begins, end)).total_seconds())
        end = max(end, ends)
    longest_s = max(1.0, MAX_GAP_SHARE * busy_s)
    cuts = tuple((at, pause, longest_s) for at, pause in gaps if pause > longest_s)
    whole_s = (end - start).total_seconds()
    drawn_s = whole_s - sum(pause - drawn for _, pause, drawn in cuts)
    return Scale(start=start, cuts=cuts, length_s=max(drawn_s, 0.001))


def assign_lanes(bars: Sequence[Bar]) -> list[tuple[str, list[Bar]]]:
    """Return the rows of the timeline, each with its label and bars. A worker has as many rows as
    it had tries at the same time; only the first one has its name as label."""
    lanes: dict[str, list[list[Bar]]] = {}
    for bar in sorted(bars, key=lambda bar: bar.started_at):
        rows = lanes.setdefault(bar.lane, [])
        free = next((row for row in rows if row[-1].ended_at <= bar.started_at), None)
        if free is None:
            rows.append([bar])
        else:
            free.append(bar)
    return [(name if n == 0 else "", row) for name, of in lanes.items() for n, row in enumerate(of)]


# -- drawing
# --------------------------------------------------------------------------------------------------


def render_timeline(
    bars: Sequence[Bar],
    *,
    known_tasks: Mapping[int, str],
    link: Callable[[int], str] = "#task-{}".format,
) -> Html:
    """Return the timeline as HTML with SVG; '' if there are no bars. If there are too many bars,
    only the longest are drawn, and a line says how many are left out.

    Args:
        known_tasks: the names of tasks, by id. The bars of these tasks become links.
        link: returns the URL to which the bars of a task link, from its id.
    """
    if not bars:
        return Html("")
    chosen = sorted(bars, key=lambda bar: -bar.length_s)[:MAX_BARS]
    scale, lanes = make_scale(chosen), assign_lanes(chosen)
    height = LANE_HEIGHT * (len(lanes) + 1)
    head = Html(
        f'<svg class="timeline" viewBox="0 0 {WIDTH:.0f} {height:.0f}" '
        'role="img" aria-label="Timeline">'
    )
    parts = [head, *_draw_axis(scale, height)]
    for number, (label, lane) in enumerate(lanes):
        top = LANE_HEIGHT * number
        cut = escape(shorten(label, 25))
        parts.append(Html(f'<text class="lane" x="0" y="{top + 12:.0f}">{cut}</text>'))
        for bar in lane:
            name = known_tasks.get(bar.task_id, "")
            drawn = _draw_bar(bar, top, scale, name)
            parts.append(
                Html(f'<a href="{escape(link(bar.task_id))}">{drawn}</a>') if name else drawn
            )
    parts.append(Html("</svg>"))
    if left_out := len(bars) - len(chosen):
        parts.append(Html(f"<p class=quiet>{left_out:,} shorter bars are not drawn.</p>"))
    return join(parts)


def _draw_bar(bar: Bar, top: float, scale: Scale, name: str) -> Html:
    left, right = scale.place(bar.started_at), scale.place(bar.ended_at)
    kind = _CLASS_BY_OUTCOME.get(bar.outcome, "part")
    words = f"{say_duration(bar.length_s)}, {bar.outcome or 'still at work'}"
    title = escape(f"task {bar.task_id}{f': {name[:120]}' if name else ''} ({words})")
    return Html(
        f'<rect class="{kind}" x="{left:.1f}" y="{top:.0f}" '
        f'width="{max(1.0, right - left):.1f}" height="{BAR_HEIGHT:.0f}" rx="2">'
        f"<title>{title}</title></rect>"
    )


def _draw_axis(scale: Scale, height: float) -> Iterator[Html]:
    bottom = height - LANE_HEIGHT
    for number in range(N_TICKS + 1):
        x = LEFT + (WIDTH - LEFT) * number / N_TICKS
        anchor = "end" if number == N_TICKS else "middle" if number else "start"
        words = "" if scale.cuts else say_duration(scale.length_s * number / N_TICKS)
        yield Html(
            f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="0" '
            f'y2="{bottom:.0f}"/>{_say_below(words, x, bottom, anchor)}'
        )
    for begins_s, pause_s, drawn_s in scale.cuts:
        before = sum(pause - drawn for at, pause, drawn in scale.cuts if at < begins_s)
        x = LEFT + (WIDTH - LEFT) * (begins_s - before) / scale.length_s
        width = (WIDTH - LEFT) * drawn_s / scale.length_s
        yield Html(
            f'<rect class="pause" x="{x:.1f}" y="0" width="{width:.1f}" '
            f'height="{bottom:.0f}">'
            f"<title>nothing was done for {say_duration(pause_s)}</title></rect>"
            f"{_say_below(say_duration(pause_s), x + width / 2, bottom, 'middle')}"
        )


def _say_below(words: str, x: float, bottom: float, anchor: str) -> Html:
    return Html(
        f'<text class="tick" x="{x:.1f}" y="{bottom + 15:.0f}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )


# -- the graph of the tasks: each stands in a row below its parent, the task from which it was
# planned, and to the right of it. A dashed line leads to it from each task on which it depends.
# --------------------------------------------------------------------------------------------------


MAX_DEPTH = 40
BOX_WIDTH, BOX_HEIGHT, COLUMN, ROW, MARGIN = 258, 30, 300, 40, 8
MAX_LABEL_CHARS = 32
SIGNS: Mapping[TaskStatus, str] = {
    TaskStatus.QUEUED: "○",
    TaskStatus.RUNNING: "●",
    TaskStatus.RECORDED: "◐",
    TaskStatus.DONE: "✓",
    TaskStatus.WAITING: "?",
    TaskStatus.DEAD: "✕",
    TaskStatus.CANCELLED: "–",
}


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


def render_graph(tasks: Sequence[Task], *, link: Callable[[int], str]) -> Html:
    """Return the graph of the tasks as SVG; '' if there are no tasks.

    Args:
        link: returns the URL to which the box of a task links, from its id.
    """
    if not tasks:
        return Html("")
    drawn = list(walk_tree(sorted(tasks, key=lambda task: task.id)))
    places = {
        task.id: (MARGIN + min(depth, MAX_DEPTH) * COLUMN, MARGIN + row * ROW)
        for row, (task, depth) in enumerate(drawn)
    }
    width = MARGIN + BOX_WIDTH + max(left for left, _ in places.values())
    height = MARGIN * 2 + ROW * len(drawn)
    parts = [
        Html(
            f'<svg class="graph" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'role="group" aria-label="Graph of the tasks">'
        )
    ]
    for task, depth in drawn:
        for kind, others in (("came", [task.parent_id] if depth else []), ("waits", task.after)):
            before = [one for one in others if kind == "came" or one != task.parent_id]
            parts += [_curve(kind, places[one], places[task.id]) for one in before if one in places]
    parts += [_draw_box(task, places[task.id], link(task.id)) for task, _ in drawn]
    parts.append(Html("</svg>"))
    return join(parts, "\n")


def _curve(kind: str, first: tuple[int, int], box: tuple[int, int]) -> Html:
    """Return a curve between two boxes, whose left and top are given. It begins at the right of the
    first one if the other stands right of it, else at its left, and ends at the other's left."""
    is_right = first[0] < box[0]
    x1, x2 = first[0] + is_right * BOX_WIDTH, box[0]
    y1, y2 = first[1] + BOX_HEIGHT // 2, box[1] + BOX_HEIGHT // 2
    bend = max(20, abs(x2 - x1) // 2)
    out = x1 + (bend if is_right else -bend)
    return Html(
        f'<path class="{kind}" fill="none" d="M{x1} {y1}C{out} {y1} {x2 - bend} {y2} {x2} {y2}"/>'
    )


def _draw_box(task: Task, place: tuple[int, int], href: str) -> Html:
    left, top = place
    name = one_line(task.name)
    title = f"Task {task.id}, {task.status.value}: {shorten(name, 300)}"
    label = f"{SIGNS[task.status]} {task.id} {name}"
    if len(label) > MAX_LABEL_CHARS:  # the last word often tells one task from another
        label = f"{label[: MAX_LABEL_CHARS - 1]}…"
    return Html(
        f'<a data-drawer class="{task.status.value}" href="{escape(href)}">'
        f'<title>{escape(title)}</title><rect x="{left}" y="{top}" width="{BOX_WIDTH}" '
        f'height="{BOX_HEIGHT}" rx="6"/>'
        f'<text x="{left + 10}" y="{top + 20}">{escape(label)}</text></a>'
    )
