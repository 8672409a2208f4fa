"""What came of what: the tasks of an objective as a graph from left to right, as SVG. A task stands
right of the one that it was planned from; dashed lines lead to it from those that it waits for.

Of a large objective the beginnings of all branches are drawn; what is left out is counted where it
would stand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from babyagi.pages.html import Html, escape, join
from babyagi.tasks import Task, TaskStatus
from babyagi.text import one_line, shorten

MAX_DRAWN = 240
MAX_CHILDREN = 12  # of one task, the fold of the others included
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


@dataclass(slots=True)
class _Box:
    """A task, or without one the fold of `n_folded` tasks, and where it stands."""

    task: Task | None
    depth: int
    n_folded: int = 0
    below: list[_Box] = field(default_factory=list)
    row: float = 0.0

    @property
    def left(self) -> float:
        return MARGIN + self.depth * COLUMN

    @property
    def top(self) -> float:
        return MARGIN + self.row * ROW


def render_graph(tasks: Sequence[Task], *, link: Callable[[int], str]) -> Html:
    """Return the drawing; empty where there is no task.

    Args:
        link: the address of a task's page.
    """
    if not tasks:
        return Html("")
    roots = _fold(tasks)
    n_rows = _place(roots)
    boxes = list(_walk(roots))
    width = MARGIN * 2 + BOX_WIDTH + COLUMN * max(box.depth for box in boxes)
    height = MARGIN * 2 + ROW * n_rows
    by_id = {box.task.id: box for box in boxes if box.task is not None}
    head = Html(
        f'<svg class="graph" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="group" aria-label="What came of what">'
    )
    parts = [head, *_draw_lines(boxes), *_draw_waits(by_id)]
    parts += [_draw_box(box, link) for box in boxes]
    return join([*parts, Html("</svg>")], "\n")


# -- what is drawn
# --------------------------------------------------------------------------------------------------


def _fold(tasks: Sequence[Task]) -> list[_Box]:
    """The first boxes of the graph with those below them; breadth first, so that every branch has
    its beginning drawn."""
    children = _group(tasks)
    n_below = _count(children)
    roots, room = _open(children.get(None, []), 0, n_below, MAX_DRAWN)
    waiting = deque(roots)
    while waiting:
        box = waiting.popleft()
        if box.task is None:
            continue
        found = children.get(box.task.id, [])
        box.below, room = _open(found, box.depth + 1, n_below, room)
        waiting += box.below
    return roots


def _group(tasks: Sequence[Task]) -> dict[int | None, list[Task]]:
    """The tasks by the one that they were planned from, None for those of a person."""
    known = {task.id for task in tasks}
    children: dict[int | None, list[Task]] = {}
    for task in sorted(tasks, key=lambda one: one.id):
        has_parent = task.parent_id in known and (task.parent_id or 0) < task.id
        children.setdefault(task.parent_id if has_parent else None, []).append(task)
    return children


def _count(children: Mapping[int | None, list[Task]]) -> dict[int, int]:
    """How many tasks came of each, and of those; a child has the larger number."""
    n_below: dict[int, int] = {}
    tasks = [task for found in children.values() for task in found]
    for task in sorted(tasks, key=lambda one: -one.id):
        n_below[task.id] = sum(1 + n_below[one.id] for one in children.get(task.id, []))
    return n_below


def _open(
    found: Sequence[Task], depth: int, n_below: Mapping[int, int], room: int
) -> tuple[list[_Box], int]:
    """Boxes for as many as there is room for, and the room that is left."""
    fits = len(found) <= min(MAX_CHILDREN, room) and depth < MAX_DEPTH
    n = len(found) if fits else max(0, min(MAX_CHILDREN - 1, room - 1))
    n = 0 if depth >= MAX_DEPTH else n
    boxes = [_Box(task=task, depth=depth) for task in found[:n]]
    n_folded = sum(1 + n_below[task.id] for task in found[n:])
    if n_folded:
        boxes.append(_Box(task=None, depth=depth, n_folded=n_folded))
    return boxes, room - len(boxes)


def _place(roots: Sequence[_Box]) -> int:
    """Give every box its row: those without others below them one each, the others the middle of
    what is below them. Returns the number of rows."""
    boxes = list(_walk(roots))
    leaves = [box for box in boxes if not box.below]
    for row, box in enumerate(leaves):
        box.row = row
    for box in reversed(boxes):
        if box.below:
            box.row = (box.below[0].row + box.below[-1].row) / 2
    return len(leaves)


def _walk(roots: Sequence[_Box]) -> Iterator[_Box]:
    """Each box before those below it."""
    waiting = list(reversed(roots))
    while waiting:
        box = waiting.pop()
        yield box
        waiting += reversed(box.below)


# -- how it is drawn
# --------------------------------------------------------------------------------------------------


def _draw_lines(boxes: Sequence[_Box]) -> Iterator[Html]:
    for box in boxes:
        for other in box.below:
            yield _curve("came", box.left + BOX_WIDTH, box.top, other.left, other.top)


def _draw_waits(by_id: Mapping[int, _Box]) -> Iterator[Html]:
    for box in by_id.values():
        assert box.task is not None
        for task_id in box.task.after:
            first = by_id.get(task_id)
            if first is not None and task_id != box.task.parent_id:
                yield _draw_wait(first, box)


def _draw_wait(first: _Box, box: _Box) -> Html:
    """From the one that comes first, which may stand on either side."""
    if first.left < box.left:
        return _curve("waits", first.left + BOX_WIDTH, first.top, box.left, box.top)
    if first.left == box.left:
        return _curve("waits", first.left, first.top, box.left, box.top, side=-1)
    return _curve("waits", first.left, first.top + 6, box.left + BOX_WIDTH, box.top + 6, side=-1)


def _curve(kind: str, x1: float, y1: float, x2: float, y2: float, *, side: int = 1) -> Html:
    """A line that leaves its beginning to the right, or to the left (`side` -1)."""
    y1, y2 = y1 + BOX_HEIGHT / 2, y2 + BOX_HEIGHT / 2
    bend = side * max(20.0, abs(x2 - x1) / 2)
    back = bend if x1 != x2 else -bend
    return Html(
        f'<path class="{kind}" fill="none" d="M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} '
        f'{x2 - back:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"/>'
    )


def _cut(label: str) -> str:
    return label if len(label) <= MAX_LABEL_CHARS else f"{label[: MAX_LABEL_CHARS - 1].rstrip()}…"


def _draw_box(box: _Box, link: Callable[[int], str]) -> Html:
    at = f'x="{box.left:.0f}" y="{box.top:.0f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"'
    text_at = f'x="{box.left + 10:.0f}" y="{box.top + 20:.0f}"'
    if box.task is None:
        return Html(f'<g class="fold"><rect {at}/><text {text_at}>{box.n_folded:,} more</text></g>')
    task = box.task
    name = one_line(task.name)
    label = f"{SIGNS[task.status]} {task.id} {name}"
    title = escape(f"Task {task.id}, {task.status.value}: {shorten(name, 300)}")
    return Html(
        f'<a data-drawer class="{task.status.value}" href="{escape(link(task.id))}">'
        f"<title>{title}</title><rect {at}/>"
        f"<text {text_at}>{escape(_cut(label))}</text></a>"
    )
