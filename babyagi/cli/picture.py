"""Draws the picture of the live view: the current state of objectives and tasks, in a given number
of rows and cells. Nothing here reads the store or writes to the terminal."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from babyagi.cli import render
from babyagi.cli.text import Line, Style, cell_width, cut_words, fit, fit_end, safe, wrap
from babyagi.cli.views import count_serving
from babyagi.inbox import asking_task, describe
from babyagi.json_shapes import is_rehearsal, model_of
from babyagi.tasks import Objective, ObjectiveStatus, Step, Task, TaskStatus, Worker
from babyagi.text import say_count

MAX_RUNNING = 50
MAX_QUEUED = 100
MAX_TROUBLED = 20
MAX_FINISHED = 100
MAX_TOLD = 200
MAX_WRITTEN_CHARS = 1000  # of an answer that is being written; only its end is kept
MAX_ROWS_OF_ONE = 3  # rows of one message
BAR_WIDTH = 24
N_BEFORE_NAME = 8  # cells: the mark and the number of a task
MOST_FOR_DOING = 30  # cells by which a task's name is shortened to show what the task does now
NARROW = 60  # cells; on a narrower screen, parts that are not needed are left out
FEW_KEYS = "? keys · q {q}"
KEYS = "p pause · a answer · enter open · q {q} · ? help"

Key = tuple[int, int]
"""The number of an objective, and the number of one of its tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveState:
    """The state of an objective at one instant, read from the store. The lists of tasks may be cut
    short; `counts` has the full numbers.

    Attributes:
        troubled: tasks that are dead or wait for a person; those with a request in `asked` are
            shown only once, as that request.
        finished: finished tasks, the latest first.
        asked: open requests to a person.
        doing: what each running task does now in words, by task id.
    """

    objective: Objective
    counts: Mapping[TaskStatus, int]
    running: Sequence[Task] = ()
    queued: Sequence[Task] = ()
    troubled: Sequence[Task] = ()
    finished: Sequence[Task] = ()
    asked: Sequence[Step] = ()
    workers: Sequence[Worker] = ()
    doing: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A recent message of the live view: one event in words, and the task that it is about."""

    at: datetime
    key: Key | None
    text: str
    style: Style = Style.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the picture; `key` is the task in it, None if it shows no task."""

    line: Line
    key: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """The last words of an answer that a model is writing, with the owner (a task, or work for the
    whole objective such as `plan:2`) and the key of the recorded model call."""

    owner: str
    key: str
    text: str

    def add(self, piece: str) -> Writing:
        return replace(self, text=(self.text + piece)[-MAX_WRITTEN_CHARS:])


class Board:
    """What the live view shows now: objectives, recent messages, and the selected task.

    Args:
        title: the first line; '' for no such line.
        leaves: the word for what the key q does, `stop` or `leave`.
    """

    def __init__(self, *, title: str = "", leaves: str = "stop") -> None:
        self.title = title
        self.leaves = leaves
        self.states: dict[int, LiveState] = {}
        self.told: collections.deque[Told] = collections.deque(maxlen=MAX_TOLD)
        self.notice = ""
        self.writing: dict[int, Writing] = {}
        self.selected: Key | None = None

    @property
    def asked(self) -> list[Step]:
        return [step for state in self.states.values() for step in state.asked]

    def keys(self) -> list[Key]:
        """Return the tasks that can be selected, in the order in which they are shown."""
        rows = [row.key for row in _tasks(self, now=None, width=200)]
        return [key for key in rows if key is not None]

    def move(self, by: int) -> None:
        """Move the selection by a number of rows; a positive number moves it down."""
        keys = self.keys()
        outside = -1 if by > 0 else len(keys)
        at = (keys.index(self.selected) if self.selected in keys else outside) + by
        self.selected = keys[max(0, min(at, len(keys) - 1))] if keys else None


def draw(board: Board, *, now: datetime, width: int, height: int) -> list[Row]:
    """Return the picture as at most `height` rows of at most `width` cells. If there is not enough
    room, the least important rows are left out."""
    head, tail = _head(board, width, height), _tail(board, width, height)
    room = max(0, height - len(head) - len(tail))
    tasks = _tasks(board, now=now, width=width)
    n_told = len(_told(board, width, room))
    n_urgent = sum(row.line.style in (Style.YELLOW, Style.BOLD) for row in tasks)
    n_tasks = min(len(tasks), max(room - n_told, min(n_urgent, room - room // 3), room // 2))
    rows = [
        *head,
        *_around(tasks, board.selected, n_tasks),
        *_told(board, width, max(0, min(n_told, room - n_tasks))),
    ]
    blank = [Row(line=Line(""))] * max(0, height - len(rows) - len(tail))
    return [_fitted(row, width) for row in [*rows, *blank, *tail]][:height]


def _fitted(row: Row, width: int) -> Row:
    text = cut_words(safe(row.line.text), width)
    return Row(line=Line(text, row.line.style), key=row.key)


def _around(rows: list[Row], selected: Key | None, n: int) -> list[Row]:
    """Return `n` consecutive rows, among them the row of the selected task."""
    at = next((at for at, row in enumerate(rows) if row.key == selected), 0) if selected else 0
    start = max(0, min(at - n // 2, len(rows) - n))
    return rows[start : start + n]


# -- above: the objectives
# --------------------------------------------------------------------------------------------------


def _head(board: Board, width: int, height: int) -> list[Row]:
    lines = [Line(board.title, Style.BOLD)] if board.title and height >= 10 else []
    states = list(board.states.values())
    if len(states) == 1:
        return [Row(line=line) for line in [*lines, *_head_of_one(states[0], width)]]
    if not states:
        lines.append(Line("Nothing to do now; waiting for an objective.", Style.DIM))
    n_shown = max(1, height // 5)
    lines += [_one_of_many(state, width) for state in states[:n_shown]]
    if len(states) > n_shown:
        lines.append(Line(f"and {len(states) - n_shown} more objectives", Style.DIM))
    return [Row(line=line) for line in lines]


def _head_of_one(state: LiveState, width: int) -> list[Line]:
    objective = state.objective
    lines = [Line(render.REHEARSAL_LINE, Style.YELLOW)] if is_rehearsal(objective) else []
    lines.append(Line(fit(f"Objective {objective.id}: {objective.spec.text}", width), Style.BOLD))
    n_over, n_known = _progress(state)
    counts = f"{n_over}/{n_known} tasks · {render.render_counts(state.counts)}"
    lines.append(Line(f"{_bar(n_over, n_known)} {counts}" if width >= NARROW else counts))
    return [*lines, *_standing(objective)]


def _standing(objective: Objective) -> list[Line]:
    if objective.status is ObjectiveStatus.PAUSED:
        return [Line("It is paused: p resumes it.", Style.YELLOW)]
    if objective.status is ObjectiveStatus.ENDED:
        return [Line(f"It {render.render_status_words(objective)}", Style.YELLOW)]
    return []


def _one_of_many(state: LiveState, width: int) -> Line:
    objective = state.objective
    n_over, n_known = _progress(state)
    status = "" if objective.status is ObjectiveStatus.ACTIVE else f"{objective.status.value}, "
    head = f"{objective.id:>4}  {status}{n_over}/{n_known} tasks, cost {objective.spent}  "
    return Line(head + fit(objective.spec.text, max(10, width - len(head))), Style.BOLD)


def _progress(state: LiveState) -> tuple[int, int]:
    """Return the number of done or dead tasks, and the number of all tasks except cancelled
    ones."""
    counts = state.counts
    n_known = sum(counts.values()) - counts.get(TaskStatus.CANCELLED, 0)
    return counts.get(TaskStatus.DONE, 0) + counts.get(TaskStatus.DEAD, 0), n_known


def _bar(n_over: int, n_known: int) -> str:
    filled = BAR_WIDTH * n_over // n_known if n_known else 0
    return f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}]"


# -- below: the cost, the last message, the keys


def _tail(board: Board, width: int, height: int) -> list[Row]:
    lines = []
    states = list(board.states.values())
    if len(states) == 1:
        objective = states[0].objective
        lines.append(Line(_used(states[0])))
        limits = " · ".join(render.render_limits(objective, states[0].counts)) or "no limits"
        lines += [Line(f"limits: {limits}")] if height >= 12 else []
    lines += [Line(_tail_of(one, width), Style.DIM) for one in list(board.writing.values())[-1:]]
    if board.notice:
        lines.append(Line(board.notice, Style.YELLOW))
    lines.append(Line((KEYS if width >= 50 else FEW_KEYS).format(q=board.leaves), Style.DIM))
    return [Row(line=line) for line in lines]


def _tail_of(writing: Writing, width: int) -> str:
    """Return one line such as `task 3 writes: …` with the last words of the answer."""
    kind, _, number = writing.owner.partition(":")
    head = f"{f'task {number}' if kind == 'task' else f'the {kind}'} writes: "
    return head + fit_end(writing.text, width - cell_width(head))


def _used(state: LiveState) -> str:
    """Return one line with the cost, calls and tokens so far, the number of workers and the
    model."""
    objective = state.objective
    usage = objective.usage
    used = f"cost {objective.spent} · {say_count(usage.calls, 'call')} · {usage.tokens:,} tokens"
    return f"{used} · {count_serving(state.workers, objective.id)} · {model_of(objective)}"


# -- between: the tasks that can be selected
# --------------------------------------------------------------------------------------------------


def _tasks(board: Board, *, now: datetime | None, width: int) -> list[Row]:
    """Return a row for each task: first tasks that ask the person, then running, troubled, queued
    and finished ones. If `now` is None, no times are shown."""
    groups = (_asking, partial(_running, now=now, width=width), _troubled, _queued, _finished)
    states = board.states.values()
    return [row for group in groups for state in states for row in group(state, board)]


def _row(board: Board, mark: str, task: Task, text: str, style: Style) -> Row:
    number = _number(board, task.objective_id, task.id)
    return Row(line=Line(f"{mark} {number:>4}  {text}", style), key=(task.objective_id, task.id))


def _asking(state: LiveState, board: Board) -> list[Row]:
    rows = []
    for step in state.asked:
        key = (step.objective_id, asking_task(step))
        asks = f"asks you (a answers): {fit(describe(step)[:400], 400)}"
        rows.append(Row(line=Line(f"? {_number(board, *key):>4}  {asks}", Style.YELLOW), key=key))
    return rows


def _number(board: Board, objective_id: int, task_id: int) -> str:
    return f"{objective_id}/{task_id}" if len(board.states) > 1 else str(task_id)


def _running(state: LiveState, board: Board, *, now: datetime | None, width: int) -> list[Row]:
    rows = []
    for task in state.running[:MAX_RUNNING]:
        since = f"{_elapsed(task, now):>10}  " if now is not None and width >= NARROW else ""
        is_recorded = task.status is TaskStatus.RECORDED
        doing = "is planned from" if is_recorded else state.doing.get(task.id, "")
        n_left = width - len(since) - N_BEFORE_NAME - min(cell_width(doing) + 3, MOST_FOR_DOING)
        name = fit(task.name, max(20, min(width // 2, n_left)) if doing else width)
        text = since + name + (f" · {doing}" if doing else "")
        rows.append(_row(board, ">", task, text, Style.BOLD))
    return rows


def _elapsed(task: Task, now: datetime) -> str:
    return render.render_duration((now - (task.started_at or now)).total_seconds())


def _troubled(state: LiveState, board: Board) -> list[Row]:
    asking = {asking_task(step) for step in state.asked}
    rows = []
    for task in state.troubled[:MAX_TROUBLED]:
        if task.id in asking:
            continue
        text = f"{task.name}: {task.error}" if task.error else task.name
        style = Style.RED if task.status is TaskStatus.DEAD else Style.YELLOW
        what = "given up" if task.status is TaskStatus.DEAD else "waits for a person"
        rows.append(_row(board, "!", task, f"{what}: {fit(text, 300)}", style))
    return rows


def _queued(state: LiveState, board: Board) -> list[Row]:
    rows = []
    for task in state.queued[:MAX_QUEUED]:
        after = f" (after {', '.join(map(str, task.after[:5]))})" if task.after else ""
        rows.append(_row(board, " ", task, fit(task.name, 200) + after, Style.PLAIN))
    n_more = state.counts.get(TaskStatus.QUEUED, 0) - len(rows)
    more = [Row(line=Line(f"        and {n_more:,} more to do", Style.DIM))] if n_more > 0 else []
    return rows + more


def _finished(state: LiveState, board: Board) -> list[Row]:
    done = [task for task in state.finished[:MAX_FINISHED] if task.status is TaskStatus.DONE]
    return [_row(board, "+", task, fit(task.name, 200), Style.DIM) for task in done]


# -- recent messages, the latest last
# --------------------------------------------------------------------------------------------------


def _told(board: Board, width: int, room: int) -> list[Row]:
    """Return the rows of the latest messages that fit into `room` rows. The latest message is shown
    even if only its beginning fits."""
    rows: list[Row] = []
    for told in reversed(board.told):
        more = _rows_of(told, board, width)
        if rows and len(rows) + len(more) > room:
            break
        rows = more + rows
    return rows[:room]


def _rows_of(told: Told, board: Board, width: int) -> list[Row]:
    clock = told.at.astimezone().strftime("%H:%M:%S" if width >= NARROW else "%H:%M")
    number = _number(board, *told.key) if told.key is not None else ""
    head = f"{clock} {number:>4} " if width >= 40 else f"{number:>3} "
    pieces = wrap_words(told.text, max(10, width - len(head)), max_rows=MAX_ROWS_OF_ONE)
    return [
        Row(line=Line((" " * len(head) if n else head) + piece, told.style))
        for n, piece in enumerate(pieces)
    ]


def wrap_words(text: str, width: int, *, max_rows: int) -> list[str]:
    """Return the text in at most `max_rows` rows of at most `width` cells, broken between words. A
    text that is cut ends with an ellipsis."""
    rows = list(wrap(fit(text[: 4 * width * max_rows], 4 * width * max_rows), width))
    first, last = rows[: max_rows - 1], fit(" ".join(rows[max_rows - 1 :]), width)
    return [row for row in (*first, last) if row]
