"""The live view: shows the state of objectives on a terminal while it changes, and lets a person
steer, answer and read with keys. The terminal is restored however the view ends."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import signal
import sys
import termios
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, ClassVar, TextIO

from textual import events as keys
from textual.app import App, ComposeResult, ScreenStackError
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Input, Static

from babyagi import events
from babyagi.backends import utc_now
from babyagi.cli import picture
from babyagi.cli.inbox import render_request
from babyagi.cli.picture import Board, Key, LiveState, Told, Writing
from babyagi.cli.show import Look, render_shown
from babyagi.cli.text import Line, Style, fit, flow, row_width, safe, warn
from babyagi.cli.views import PlainView, describe_event
from babyagi.errors import BabyagiError
from babyagi.inbox import Decision, asking_task, describe, needs_leave, read_request
from babyagi.journal import TextPiece
from babyagi.settings.fields import Settings
from babyagi.tasks import Event, ObjectiveStatus, Step, Task, TaskStatus
from babyagi.taskstore.port import TaskStore
from babyagi.text import say_count
from babyagi.tools.base import Observation
from babyagi.verbs import Request, fetch_task, gather_request, settle

logger = logging.getLogger(__name__)

TICK_S = 0.25
HURRY_S = 0.05  # words that a model writes appear on the screen within this time
LEAVE_S = 3.0  # longest wait for the view to close; after it the terminal is restored anyway
MAX_READ_CHARS = 30_000  # of a task, on one screen
MAX_WAITING_WRITES = 8  # with more, the terminal accepts no output, and nothing is drawn
RESTORE = "\x1b[?2004l\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"

_STYLES = {
    Style.PLAIN: "",
    Style.BOLD: "bold",
    Style.DIM: "dim",
    Style.RED: "ansi_red",
    Style.GREEN: "ansi_green",
    Style.YELLOW: "ansi_yellow",
}

HELP = """\
up, down       select a task (page up, page down, home, end)
enter          open it: its result and its steps; esc goes back
a              answer what a task asks: the selected one, or the first
p              pause; p again resumes
q, Ctrl-C      {q}
?              this page

Above are the tasks: ? asks you, > runs, ! was given up, + is done.
Below is what has happened: results, tool calls, questions.
Tasks go on while you read or type."""
WHAT_Q_DOES = {
    "stop": "stop: calls in flight may end; a second time stops at once",
    "leave": "leave this view; the work goes on",
}


def to_content(lines: Iterable[Line]) -> Content:
    """Return the lines as text for the screen. Markup and escapes in the lines have no effect."""
    parts: list[str | tuple[str, str]] = []
    for line in lines:
        parts += [(safe(line.text, keep_newlines=True), _STYLES[line.style]), "\n"]
    return Content.assemble(*parts[:-1])


def _flowing(lines: Iterable[Line], width: int) -> Iterator[Line]:
    """Yield the lines in rows of at most `width` cells, wrapped as `echo` would print them."""
    for line in lines:
        for row in safe(line.text, keep_newlines=True).split("\n"):
            yield Line(flow(row, width), line.style)


# -- what the keys do
# --------------------------------------------------------------------------------------------------


class Desk:
    """The actions that a person can start with keys in the live view: to read a task, answer,
    pause, resume and stop.

    Args:
        stop: called for the key q.
    """

    def __init__(self, store: TaskStore, settings: Settings, *, stop: Callable[[], None]) -> None:
        self._store = store
        self._settings = settings
        self.stop = stop

    async def read_task(self, key: Key, width: int) -> list[Line]:
        """Return the task as lines, with its result and its recorded calls. After `MAX_READ_CHARS`
        characters they are cut, and the last line names the command that shows all."""
        objective_id, task_id = key
        objective = await self._store.objective(objective_id)
        shown = await fetch_task(self._store, objective, task_id)
        lines = render_shown(shown, Look(width=width), secrets=self._settings.known_secrets)
        more = f"… babyagi show {task_id} --objective {objective_id} shows all"
        return _bounded(lines, MAX_READ_CHARS, more)

    async def request(self, step: Step, among: Sequence[Step]) -> Request:
        return await gather_request(self._store, step, self._settings, among=among)

    async def decide(self, request: Request, decision: Decision, text: str) -> str:
        """Record the person's decision about the request, and return a sentence to show."""
        home = self._settings.home
        await settle(self._store, request.step, decision, text, home=home, seen=request)
        return f"task {request.task.id} continues with your answer"

    async def pause_or_resume(self, objective_id: int) -> str:
        objective = await self._store.objective(objective_id)
        match objective.status:
            case ObjectiveStatus.ACTIVE:
                await self._store.pause_objective(objective_id)
                return "paused: calls in flight end, and no further call is made; p resumes"
            case ObjectiveStatus.PAUSED:
                await self._store.resume_objective(objective_id)
                return f"objective {objective_id} goes on"
        return f"objective {objective_id} has ended"


def _bounded(lines: Iterable[Line], max_chars: int, more: str) -> list[Line]:
    kept: list[Line] = []
    for line in lines:
        if len(line.text) > max_chars:
            return [*kept, Line(line.text[:max_chars], line.style), Line(more, Style.YELLOW)]
        kept.append(line)
        max_chars -= len(line.text) + 1
    return kept


# -- the screens
# --------------------------------------------------------------------------------------------------


class BoardScreen(Screen[None]):
    """The main screen of the live view: the objectives, their tasks, and recent messages."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)"),
        Binding("down,j", "move(1)"),
        Binding("pageup", "move(-10)"),
        Binding("pagedown", "move(10)"),
        Binding("home", "move(-100000)"),
        Binding("end", "move(100000)"),
        Binding("enter", "open"),
        Binding("p", "pause"),
        Binding("a", "answer"),
        Binding("q", "app.stop"),
        Binding("question_mark", "help"),
        Binding("escape", "unselect"),
    ]

    def __init__(self, board: Board, desk: Desk) -> None:
        super().__init__()
        self._board = board
        self._desk = desk
        self._picture = Static(id="picture")

    def compose(self) -> ComposeResult:
        yield self._picture

    def on_resize(self, event: keys.Resize) -> None:
        self.redraw(event.size)

    def on_screen_resume(self) -> None:
        self.redraw()

    def redraw(self, size: Size | None = None) -> None:
        width, height = size or self.size
        if not width or not height:
            return
        rows = picture.draw(self._board, now=utc_now(), width=width, height=height)
        parts: list[str | tuple[str, str]] = []
        for row in rows:
            is_selected = row.key is not None and row.key == self._board.selected
            style = _STYLES[row.line.style] + (" reverse" if is_selected else "")
            parts += [(safe(row.line.text), style.strip()), "\n"]
        self._picture.update(Content.assemble(*parts[:-1]))

    def say(self, notice: str) -> None:
        self._board.notice = notice
        self.redraw()

    def action_move(self, by: int) -> None:
        self._board.move(by)
        self.redraw()

    def action_unselect(self) -> None:
        self._board.selected = None
        self.say("")

    def action_help(self) -> None:
        text = HELP.format(q=WHAT_Q_DOES[self._board.leaves])
        lines = [Line(line) for line in text.splitlines()]
        self.app.push_screen(ReadingScreen(lambda _: _at_once(lines)))

    async def action_open(self) -> None:
        if self._board.selected is None:
            self._board.move(1)
        key = self._board.selected
        if key is not None:
            self.app.push_screen(ReadingScreen(lambda width: self._desk.read_task(key, width)))

    async def action_pause(self) -> None:
        selected, states = self._board.selected, list(self._board.states)
        if selected is None and len(states) != 1:
            self.say("to pause an objective, first select one of its tasks")
            return
        await self._try(self._desk.pause_or_resume(selected[0] if selected else states[0]))

    async def action_answer(self) -> None:
        asked, selected = self._board.asked, self._board.selected
        mine = [step for step in asked if (step.objective_id, asking_task(step)) == selected]
        if not asked:
            self.say("nothing waits for you")
            return
        try:
            request = await self._desk.request((mine or asked)[0], asked)
        except BabyagiError as error:
            self.say(error.what)
            return
        self.app.push_screen(QuestionScreen(request), self._decide(request))

    def _decide(self, request: Request) -> Any:
        async def decide(said: tuple[Decision, str] | None) -> None:
            if said is not None:
                await self._try(self._desk.decide(request, *said))

        return decide

    async def _try(self, work: Any) -> None:
        try:
            self.say(await work)
        except BabyagiError as error:
            self.say(error.what)


async def _at_once(lines: list[Line]) -> list[Line]:
    return lines


class ReadingScreen(Screen[None]):
    """A screen with a text that scrolls. `read` is called with the width in cells and returns the
    lines of the text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark", "app.pop_screen")
    ]

    def __init__(self, read: Callable[[int], Any]) -> None:
        super().__init__()
        self._read = read
        self._text = Static(id="text")

    def compose(self) -> ComposeResult:
        yield VerticalScroll(self._text)
        yield Static("up, down scroll · esc goes back", classes="keys")

    async def on_resize(self, event: keys.Resize) -> None:
        width = max(20, event.size.width - 2)
        try:
            self._text.update(to_content(_flowing(await self._read(width), width)))
        except BabyagiError as error:
            self._text.update(to_content([Line(error.what, Style.RED)]))


class Answer(Input):
    """The input line for an answer. Pasted text becomes one line."""

    def on_paste(self, event: keys.Paste) -> None:
        event.prevent_default().stop()
        self.insert_text_at_cursor(" ".join(event.text.split()))


class QuestionScreen(Screen[tuple[Decision, str] | None]):
    """The screen with the whole request of a task, and a line to type the answer. A tool call can
    be approved only after its last row was on the screen; before, the key has no effect."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)"),
        Binding("ctrl+r", "reject"),
        Binding("y", "approve"),
        Binding("n", "reject"),
        Binding("up", "scroll(-1)", priority=True),
        Binding("down", "scroll(1)", priority=True),
        Binding("pageup", "scroll_pages(-1)", priority=True),
        Binding("pagedown", "scroll_pages(1)", priority=True),
        Binding("space", "scroll_pages(1)"),
    ]

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request
        self._is_call = needs_leave(request.step)
        self._is_drawn = False
        self._text = Static(id="text")
        self._scroll = VerticalScroll(self._text, can_focus=False)
        of_call = "y allow this · n refuse it · esc later"
        of_question = "enter sends · Ctrl-R refuses · esc later"
        self._hint = Static(of_call if self._is_call else of_question, classes="keys")

    def compose(self) -> ComposeResult:
        yield self._scroll
        if not self._is_call:
            yield Answer(placeholder="your answer", compact=True)
        yield self._hint

    def on_resize(self, event: keys.Resize) -> None:
        lines = render_request(self._request, max(24, event.size.width - 2), is_whole=True)[:-1]
        self._text.update(to_content(lines))
        self._is_drawn = False
        self.call_after_refresh(self._note_drawn)

    def _note_drawn(self) -> None:
        self._is_drawn = True

    def action_scroll(self, by: int) -> None:
        self._scroll.scroll_relative(y=by, animate=False, immediate=True)

    def action_scroll_pages(self, by: int) -> None:
        self.action_scroll(by * max(1, self._scroll.size.height - 1))

    def action_approve(self) -> None:
        if not self._is_call or not self._is_drawn:
            return
        if self._scroll.scroll_offset.y < self._scroll.max_scroll_y:
            self._hint.update("read it to its end first: space goes down · n refuse it · esc later")
            return
        self.dismiss((Decision.APPROVE, ""))

    def action_reject(self) -> None:
        self.dismiss((Decision.REJECT, ""))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.dismiss((Decision.ANSWER, event.value))


class LiveApp(App[None]):
    """The application of the live view: it shows the screens, and draws the picture again after
    changes."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: ansi_default; color: ansi_default; }
    #picture { width: 100%; height: 100%; text-wrap: nowrap; text-overflow: clip; }
    #text { width: 100%; height: auto; }
    VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    Answer { height: 1; }
    .keys { height: 1; text-style: dim; text-wrap: nowrap; text-overflow: clip; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q", "stop", priority=True),
        Binding("ctrl+z", "suspend_process", priority=True),
    ]

    def __init__(self, board: Board, desk: Desk) -> None:
        super().__init__(driver_class=Terminal)
        self.theme = "ansi-dark"
        self.board = board
        self.ready = asyncio.Event()
        self._desk = desk
        self._board_screen = BoardScreen(board, desk)
        self._is_changed = True
        self._is_hurried = False
        self._n_ticks = 0

    def get_default_screen(self) -> Screen[None]:
        return self._board_screen

    def on_mount(self) -> None:
        self.set_interval(TICK_S, self._tick)
        self.ready.set()

    def changed(self) -> None:
        """Have the picture drawn again when the view's timer fires next."""
        self._is_changed = True

    def hurry(self) -> None:
        """Have the picture drawn again within `HURRY_S`, without waiting for the view's timer."""
        self._is_changed = True
        if not self._is_hurried:
            self._is_hurried = True
            asyncio.get_running_loop().call_later(HURRY_S, self.call_later, self._draw_soon)

    def _draw_soon(self) -> None:
        self._is_hurried = False
        self._draw()

    def _tick(self) -> None:
        """Draw the picture if it has changed, and at least once a second so that times advance."""
        self._n_ticks += 1
        if self._n_ticks % 4 == 0 and isinstance(self._driver, Terminal) and self._driver.is_gone:
            logger.info("the terminal is gone; the work goes on without a view")
            self.exit()
        self._is_changed = self._is_changed or self._n_ticks % 4 == 0
        self._draw()

    def _draw(self) -> None:
        is_clogged = isinstance(self._driver, Terminal) and self._driver.is_clogged
        if self._is_changed and not is_clogged:
            self._is_changed = False
            with suppress(ScreenStackError):  # the view is closing
                if self.screen is self._board_screen:
                    self._board_screen.redraw()

    def action_stop(self) -> None:
        self._desk.stop()

    async def action_quit(self) -> None:
        self._desk.stop()

    def _handle_exception(self, error: Exception) -> None:
        """End the view after an error in it. The traceback goes to the log only."""
        logger.error("the live view failed", exc_info=error)
        self._exception = self._exception or error
        self._exception_event.set()
        self.exit(return_code=1)


# -- the terminal
# --------------------------------------------------------------------------------------------------


class Terminal(LinuxDriver):
    """Draws on standard error, so that standard output can be a pipe or a file. It never blocks on
    a terminal that is closed or accepts no output."""

    has_left = True

    def start_application_mode(self) -> None:
        self.has_left = False
        # untyped in textual
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def stop_application_mode(self) -> None:
        super().stop_application_mode()
        self.has_left = True

    @property
    def is_clogged(self) -> bool:
        """Whether so much output waits for the terminal that no more should be added."""
        thread = self._writer_thread
        return thread is not None and thread._queue.qsize() > MAX_WAITING_WRITES

    @property
    def is_gone(self) -> bool:
        """Whether the terminal was closed while this process used it."""
        try:
            termios.tcgetattr(self.fileno)
        except (termios.error, OSError, ValueError):
            return True
        return False

    def write(self, data: str) -> None:
        thread = self._writer_thread
        if thread is not None and thread.is_alive() and not thread._queue.full():
            super().write(data)

    def _get_terminal_size(self) -> tuple[int, int]:
        for stream in (sys.__stderr__, sys.__stdin__):
            try:
                size = os.get_terminal_size(stream.fileno() if stream is not None else -1)
            except (OSError, ValueError):
                continue
            return size.columns or 80, size.lines or 24
        return 80, 24


@contextmanager
def kept_terminal() -> Iterator[Callable[[], None]]:
    """After the body, restore the modes of the terminal and the signal handlers that a view
    replaces. Yield a function that restores the screen; call it if the view did not close."""
    stdin, stderr = sys.__stdin__, sys.__stderr__
    modes = None
    with suppress(termios.error, OSError, ValueError):
        modes = termios.tcgetattr(stdin.fileno()) if stdin is not None else None
    numbers = (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH, signal.SIGTTOU, signal.SIGTTIN)
    handlers = {number: signal.getsignal(number) for number in numbers}

    def restore() -> None:
        if stderr is not None:
            with suppress(OSError):  # the terminal is gone
                stderr.write(RESTORE)
                stderr.flush()

    try:
        yield restore
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if modes is not None and stdin is not None:
            with suppress(termios.error, OSError, ValueError):
                termios.tcsetattr(stdin.fileno(), termios.TCSANOW, modes)


class _Caught(io.TextIOBase):
    """Takes the place of an output stream while the view is on the screen. The view shows the last
    text that was written; `release` writes all texts to the stream afterwards."""

    def __init__(self, stream: TextIO, app: LiveApp) -> None:
        self.stream = stream
        self._app = app
        self._texts: list[str] = []

    @property
    # read-only, unlike in the base class
    def encoding(self) -> str:  # type: ignore[override]
        return self.stream.encoding or "utf-8"

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self.stream.fileno()

    def write(self, text: str) -> int:
        self._texts.append(text)
        if text.strip():
            self._app.board.notice = text.strip()
            self._app.changed()
        return len(text)

    def release(self) -> None:
        width = row_width(self.stream)
        rows = [flow(row, width) for row in "".join(self._texts).split("\n")]
        with suppress(OSError):  # the terminal is gone
            self.stream.write("\n".join(rows))
            self.stream.flush()


@asynccontextmanager
async def open_live(board: Board, desk: Desk) -> AsyncIterator[LiveApp]:
    """Show the board in the live view on the terminal while the body runs. What the body prints is
    printed after the view has closed."""
    loop = asyncio.get_running_loop()
    factory = loop.get_task_factory()
    no_color = os.environ.get("NO_COLOR")
    app = LiveApp(board, desk)
    if no_color is not None:
        os.environ["NO_COLOR"] = no_color  # textual changes this variable
    out, err = _Caught(sys.stdout, app), _Caught(sys.stderr, app)
    with kept_terminal() as restore:
        running = asyncio.ensure_future(app.run_async(mouse=False))
        try:
            ready = asyncio.ensure_future(app.ready.wait())
            await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
            ready.cancel()
            # textual's task factory is not for the tasks of the body
            loop.set_task_factory(factory)
            sys.stdout, sys.stderr = out, err
            yield app
        finally:
            loop.set_task_factory(factory)
            app.exit()
            await asyncio.wait({running}, timeout=LEAVE_S)
            running.cancel()
            sys.stdout, sys.stderr = out.stream, err.stream
            if not getattr(app._driver, "has_left", True):
                restore()
    out.release()
    err.release()


# -- one objective on the board
# --------------------------------------------------------------------------------------------------


class LiveView:
    """Shows one objective on the board until `close` is called. If the app ends earlier, this view
    prints plain lines instead."""

    tick_s = 1.0
    pause_s = TICK_S

    def __init__(self, store: TaskStore, objective_id: int, app: LiveApp) -> None:
        self._store = store
        self._objective_id = objective_id
        self._app = app
        self._teller = Teller(store, objective_id)
        self._plain: PlainView | None = None

    async def fetch(self, batch: Sequence[Event]) -> None:
        if not self._app.is_running and self._plain is None:
            self._plain = PlainView(self._store)
            with suppress(OSError):
                warn("note: the live view has ended; plain lines follow", Style.YELLOW)
        if self._plain is not None:
            await self._plain.fetch(batch)
            return
        board = self._app.board
        self._forget_written(batch)
        board.told.extend(await self._teller.tell(batch[-picture.MAX_TOLD :]))
        before, now = board.states.get(self._objective_id), await self._look()
        board.states[self._objective_id] = now
        if len(now.asked) > len(before.asked if before is not None else ()):
            self._app.bell()  # a question is open, and the person may look elsewhere

    def hear(self, piece: TextPiece) -> None:
        """Show the end of the answer that a model is writing, with this piece of it added."""
        if piece.objective_id != self._objective_id or not self._app.is_running:
            return
        written = self._app.board.writing
        before = written.pop(self._objective_id, None)  # the latest one is last
        if before is None or (before.owner, before.key) != (piece.owner, piece.key):
            before = Writing(owner=piece.owner, key=piece.key, text="")
        written[self._objective_id] = before.add(piece.text)
        self._app.hurry()

    def _forget_written(self, batch: Sequence[Event]) -> None:
        """Remove an answer from the screen once its outcome is known."""
        written = self._app.board.writing.get(self._objective_id)
        if written is not None and any(_ends(event, written) for event in batch):
            del self._app.board.writing[self._objective_id]

    async def _look(self) -> LiveState:
        store, objective_id = self._store, self._objective_id

        async def tasks(*statuses: TaskStatus, limit: int) -> list[Task]:
            return await store.tasks(objective_id, statuses=statuses, limit=limit)

        return LiveState(
            objective=await store.objective(objective_id),
            counts=await store.counts(objective_id),
            running=await tasks(TaskStatus.RUNNING, TaskStatus.RECORDED, limit=picture.MAX_RUNNING),
            queued=await tasks(TaskStatus.QUEUED, limit=picture.MAX_QUEUED),
            troubled=await tasks(TaskStatus.DEAD, TaskStatus.WAITING, limit=picture.MAX_TROUBLED),
            finished=await store.last_finished(objective_id, limit=picture.MAX_FINISHED),
            asked=await store.inbox(objective_id),
            workers=await store.workers(),
            doing=dict(self._teller.doing),
        )

    def draw(self) -> None:
        if self._plain is not None:
            with suppress(OSError):  # the terminal is gone
                self._plain.draw()
        self._app.changed()

    def is_person_there(self) -> bool:
        """Return whether a question can be put to the person: the view is on the screen, and the
        objective has not ended or has an open question."""
        state = self._app.board.states.get(self._objective_id)
        is_ended = state is not None and state.objective.status is ObjectiveStatus.ENDED
        return self._app.is_running and not (is_ended and state is not None and not state.asked)

    def close(self) -> None:
        self._app.board.states.pop(self._objective_id, None)
        self._app.board.writing.pop(self._objective_id, None)
        self._app.changed()


def _ends(event: Event, written: Writing) -> bool:
    """Return whether the event means that the shown answer is no longer being written: its outcome
    is recorded, or its task, report or objective has ended."""
    match event.kind:
        case events.STEP_RECORDED | events.STEP_ABANDONED:
            return (event.data.get("owner"), event.data.get("key")) == (written.owner, written.key)
        case events.TASK_RECORDED | events.TASK_LACKED | events.TASK_FAILED | events.TASK_DEAD:
            return written.owner == f"task:{event.task_id}"
    return event.kind in (events.REPORT_WRITTEN, events.OBJECTIVE_ENDED)


# -- events in words, for a person who watches


MAX_FINDING_CHARS = 300
MAX_QUESTION_CHARS = 120  # in a message; the picture shows more of a question while it is open
_CALLS = ("tool", "once")
_BAD = (
    events.TASK_FAILED,
    events.TASK_DEAD,
    events.MODEL_UNAVAILABLE,
    events.INDEX_UNAVAILABLE,
    events.WORKER_BLOCKED,
    events.WORKER_LOST,
    events.STEP_LEFT_UNKNOWN,
    events.STEP_OVERSPENT,
    events.PLAN_FAILED,
)
# the picture or the next event already says it
_SAID_ELSEWHERE = (
    events.TASK_ADDED,
    events.TASK_CLAIMED,
    events.ORDER_APPLIED,
    events.OBJECTIVE_CREATED,
    events.STEP_REQUEST_CHANGED,
    events.TASK_DUPLICATE_DROPPED,
    events.TASK_PROPOSAL_DROPPED,
)


class Teller:
    """Puts events into words for the live view, with results and questions from the store. The
    recorded calls of a task are read at most once for each batch of events.

    Attributes:
        doing: what each running task does now, by task id.
    """

    def __init__(self, store: TaskStore, objective_id: int) -> None:
        self._store = store
        self._objective_id = objective_id
        self._steps: dict[str, Sequence[Step]] = {}
        self.doing: dict[int, str] = {}

    async def tell(self, batch: Sequence[Event]) -> list[Told]:
        self._steps = {}
        return [one for event in batch if (one := await self._tell(event)) is not None]

    async def _tell(self, event: Event) -> Told | None:
        text, style = await self._words(event)
        self._note_doing(event, text)
        if not text:
            return None
        key = (event.objective_id, event.task_id) if event.task_id is not None else None
        return Told(at=event.at, key=key, text=text, style=style)

    def _note_doing(self, event: Event, text: str) -> None:
        if event.task_id is None:
            return
        if event.kind == events.STEP_INTENDED and event.data.get("kind") == "model":
            self.doing[event.task_id] = "asks the model"
        elif event.kind == events.STEP_RECORDED and event.data.get("kind") in _CALLS:
            self.doing[event.task_id] = text
        elif event.kind.startswith("task."):
            self.doing.pop(event.task_id, None)

    async def _words(self, event: Event) -> tuple[str, Style]:
        match event.kind:
            case events.TASK_RECORDED:
                return await self._finding(event), Style.GREEN
            case events.STEP_RECORDED if event.data.get("kind") in _CALLS:
                return await self._call(event), Style.DIM
            case events.TASK_PARKED:
                return await self._question(event), Style.YELLOW
            case events.TASK_DONE:
                n_added = event.data.get("n_added", 0)
                return f"brought {say_count(n_added, 'new task')}" if n_added else "", Style.DIM
            case kind if kind in _SAID_ELSEWHERE:
                return "", Style.DIM
        style = Style.RED if event.kind in _BAD else Style.DIM
        text = describe_event(event, "") or ""
        return text.removeprefix(f"task {event.task_id} "), style

    async def _finding(self, event: Event) -> str:
        results = await self._store.results(self._objective_id, task_ids=[event.task_id or 0])
        return f"found: {first_words(results[0].text)}" if results else "has its result"

    async def _call(self, event: Event) -> str:
        step = await self._step(event)
        return describe_call(step) if step is not None else "called a tool"

    async def _question(self, event: Event) -> str:
        step = await self._step(event)
        if step is None:
            return "waits for a person"
        return f"asks: {fit(describe(step)[:400], MAX_QUESTION_CHARS)}"

    async def _step(self, event: Event) -> Step | None:
        owner = f"task:{event.task_id}"
        if owner not in self._steps:
            try:
                self._steps[owner] = await self._store.steps(self._objective_id, owner=owner)
            except BabyagiError:
                self._steps[owner] = ()
        key = event.data.get("key")
        return next((step for step in self._steps[owner] if step.key == key), None)


def first_words(text: str) -> str:
    """Return the beginning of a result as one line. Headings are left out, unless the result
    consists of headings only."""
    lines = [line.strip() for line in text[:4000].splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith("#")]
    return fit(" ".join(said or [line.lstrip("# ") for line in lines]), MAX_FINDING_CHARS)


def describe_call(step: Step) -> str:
    """Return words about a tool call, such as `read_file(path="a.md") gave 3,120 characters`, or
    the call with the tool's error."""
    origin, gave = "a tool", ""
    if step.output:
        observation = Observation.from_json(step.output)
        origin, text = observation.passage.origin, observation.passage.text
        failed = f" failed: {fit(text, 120)}"
        gave = failed if observation.is_error else f" gave {len(text):,} characters"
    if step.request:
        tool, arguments = read_request(step)
        return f"{fit(tool, 40)}({_short(arguments)}){gave}"
    return f"{fit(origin, 80)}{gave}"


def _short(arguments: Mapping[str, Any]) -> str:
    given = [
        f"{name}={fit(json.dumps(value, ensure_ascii=False)[:200], 40)}"
        for name, value in list(arguments.items())[:6]
    ]
    return fit(", ".join(given), 100)
