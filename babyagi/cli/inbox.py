"""The requests of tasks that wait for a person: shows them, takes the answers by commands, and asks
at the terminal."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import chain

import click

from babyagi.cli import render, session
from babyagi.cli.options import Family, json_option, objectives_option, require_words
from babyagi.cli.text import (
    Line,
    Style,
    cell_width,
    confirm,
    echo_lines,
    fit,
    forget_typed,
    give,
    is_in_foreground,
    is_person_there,
    safe_line,
    take,
    terminal_width,
    warn,
)
from babyagi.errors import NotFoundError, SettingsError, StoreUnavailableError
from babyagi.inbox import (
    CHANGED,
    QUESTION,
    Decision,
    asking_task,
    decide,
    decisions,
    goes_to,
    name_command,
    needs_leave,
    read_request,
)
from babyagi.settings.fields import Settings
from babyagi.tasks import ObjectiveStatus, Step, Worker
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import exact
from babyagi.verbs import actions, json_shapes

EXCERPT_LINES = 12
MAX_ORIGINS = 6  # shown in the list; a single request shows all of them
_MARGIN = " " * 6
_PLAIN_KEY = re.compile(r"[A-Za-z_]\w{0,39}", re.ASCII)
_OURS = ("person", "program", "model")
_LEGEND = (
    "<U+200B> stands for a character that cannot be seen or is not what it looks like, x4000 "
    "for how many of them."
)
_NO_SECRET = (
    "An answer is stored in plain text in the task store, and shown to the model: give no secret."
)


def render_request(request: actions.Request, width: int, *, is_whole: bool) -> list[Line]:
    """Return the lines of the request; the last line has the commands that answer it. Without
    `is_whole`, a long request is cut, and a line says how to see all of it."""

    step, task = request.step, request.task
    texts = {Decision.ANSWER: ' "…"', Decision.REJECT: ' "why"'}
    name = str(step.id)
    ways = [name_command(one, name) + texts.get(one, "") for one in decisions(step)]
    said = list(call_lines(request, width))
    shown = said if is_whole else said[:EXCERPT_LINES]
    lines = [
        Line(
            f"{step.id}: task {task.id} of objective {step.objective_id}: {fit(task.name, 80)}",
            Style.BOLD,
        ),
        *(Line(_MARGIN + text) for text in _explain(request, is_whole=is_whole)),
        *(Line(_MARGIN + text, Style.YELLOW) for text in shown),
    ]
    if len(shown) < len(said):
        note = f"… {len(shown):,} of {len(said):,} lines; babyagi inbox {name} shows all"
        lines.append(Line(_MARGIN + note, Style.RED))
    if any("<U+" in text for text in shown):
        lines.append(Line(_MARGIN + _LEGEND, Style.DIM))
    if step.kind == QUESTION:
        lines.append(Line(_MARGIN + _NO_SECRET, Style.DIM))
    return [*lines, Line(_MARGIN + "   ".join(ways))]


def call_lines(request: actions.Request, width: int) -> Iterator[str]:
    """Yield all arguments of the requested tool call as rows.

    A sign precedes each row: `|` for a line of a text, `:` for the rest of the row above, and `=`
    for a line of any other value as JSON. In a diff of a file the sign is `+`, `-`, `@` or a blank
    instead, so that a plain text cannot look like a diff.
    """

    _, arguments = read_request(request.step)
    if request.preview is not None and request.step.kind == CHANGED:
        arguments = {"now": arguments["now"]}  # the difference shows what was before
    found = {key if _PLAIN_KEY.fullmatch(key) else json.dumps(key): key for key in arguments}
    label_width = min(max(map(len, found), default=0), 24)
    if not found:
        yield "without arguments"
    room = max(20, width - len(_MARGIN) - label_width - 3)
    preview = request.preview
    for label, key in found.items():
        value = arguments[key]
        if preview is not None and preview.parameter == label:
            rows = [
                (sign, f"{int(line):,} lines stay as they are" if sign == "@" else _spell(line))
                for sign, line in preview.lines
            ]
        elif isinstance(value, str):
            rows = [("|", line) for line in _spell(value).split("\n")]
        else:
            rows = [("=", line) for line in json.dumps(value, indent=1).split("\n")]
        head = label
        for mark, text in rows:
            for piece in _wrap(text, room):
                yield f"{head:<{label_width}} {mark} {piece}"
                head, mark = "", ":"  # noqa: PLW2901  # the rest of the row


def _spell(text: str) -> str:
    return exact(text, encoding=getattr(sys.stderr, "encoding", None) or "utf-8")


def _wrap(text: str, room: int) -> Iterator[str]:
    """Yield the text in rows of at most `room` cells, at least one row. Blanks at the end of a row
    move to the beginning of the next one, where they can be seen."""
    while cell_width(text) > room:
        head = take(text, room) or text[:1]
        head = head.rstrip(" ") or head
        yield head
        text = text[len(head) :]
    yield text


def _explain(request: actions.Request, *, is_whole: bool) -> Iterator[str]:

    tool, _ = read_request(request.step)
    model = f"The model {safe_line(request.model)}".rstrip() if request.model else "The model"
    read = _say_origins(request.origins, max_named=None if is_whole else MAX_ORIGINS)
    match request.step.kind:
        case "question":
            yield f"{model} asks this{read}."
        case "approval":
            yield f"{model} wants to make this call of {safe_line(tool)}{read}."
            if to := goes_to(request.step):
                yield (
                    f"It sends words to {safe_line(to)} that you did not say; they may come from "
                    "what it read. Always holds for this place in the whole run; a refusal does "
                    "too if it is a host, else for this call."
                )
        case "changed":
            yield (
                f"{model} wants to use {safe_line(tool)}. The tool's server has changed its "
                f"description since the objective was started{read}. It is not called before you "
                "decide."
            )
        case _:
            yield (
                f"{model} wanted to make this call of {safe_line(tool)}{read}. It may have been "
                "made; its outcome is unknown."
            )
    if request.preview is not None or request.trouble:
        yield safe_line(request.preview.note if request.preview is not None else request.trouble)


def _say_origins(origins: tuple[str, ...], *, max_named: int | None) -> str:
    """Return words such as `, after reading file:page.txt, result:3`, for the origins from which
    the model's request was made: first files and pages, then results. At most `max_named` are
    named."""
    outside = [origin for origin in origins if origin.partition(":")[0] not in _OURS]
    if not outside:
        return ", after reading only what you and this program wrote" if origins else ""
    ordered = sorted(outside, key=lambda origin: origin.startswith("result:"))
    named = [fit(origin, 60) for origin in ordered[:max_named]]
    more = f" and {len(ordered) - len(named)} more" if len(ordered) > len(named) else ""
    return f", after reading {', '.join(named)}{more}"


# -- the commands that answer waiting tasks: inbox, inbox answer, inbox approve, inbox reject
# --------------------------------------------------------------------------------------------------


@click.command("inbox")
@click.argument("request", type=int, required=False)
@objectives_option
@json_option
def list_requests(request: int | None, objective: str, as_json: bool) -> None:
    """List the requests that wait for a person, and what to type.

    A long request is cut in the list; `babyagi inbox REQUEST` shows it whole.
    """

    settings = session.load(needs=session.NOTHING).settings

    async def fetch(store: TaskStore) -> list[actions.Request]:
        chosen = await session.pick_or_all(store, objective) if request is None else None
        steps = await store.inbox(chosen, step_id=request)
        return [await actions.gather_request(store, step, settings) for step in steps]

    requests = session.with_store(fetch)
    is_whole = request is not None
    shown = (render_request(one, terminal_width(), is_whole=is_whole) for one in requests)
    shapes = [json_shapes.request_shape(one) for one in requests]
    give(as_json, shapes, chain.from_iterable(shown), empty="Nothing waits for a person.")


inbox = Family(list_requests)


@inbox.command()
@click.argument("request", type=int)
@click.argument("words", metavar="TEXT...", nargs=-1)
@json_option
def answer(request: int, words: tuple[str, ...], as_json: bool) -> None:
    """Answer a question.

    For a call whose outcome is unknown, say what its outcome was. The task continues with the
    answer.
    """

    text = require_words(words, "an answer", before=f"{request} ")
    _decide(request, Decision.ANSWER, text, as_json=as_json)


@inbox.command()
@click.argument("request", type=int)
@click.option("--yes", is_flag=True, help="Approve without being shown the call.")
@click.option(
    "--always", is_flag=True, help="Allow all that goes to the same host in this run, unasked."
)
@json_option
def approve(request: int, yes: bool, always: bool, as_json: bool) -> None:
    """Show the whole call that is asked about, and allow it.

    A worker makes the call when it claims the task again.
    """

    decision = Decision.ALWAYS if always else Decision.APPROVE
    _decide(request, decision, "", as_json=as_json, is_seen=yes)


@inbox.command()
@click.argument("request", type=int)
@click.argument("why", metavar="[WHY]...", nargs=-1)
@json_option
def reject(request: int, why: tuple[str, ...], as_json: bool) -> None:
    """Refuse a call or a question.

    For a call whose outcome is unknown, record that it was not carried out. The task continues with
    the refusal.
    """

    _decide(request, Decision.REJECT, " ".join(why), as_json=as_json)


def _decide(
    number: int, decision: Decision, text: str, *, as_json: bool, is_seen: bool = False
) -> None:
    """Decide the request with this number, and print the outcome."""
    settings = session.load(needs=session.STORE).settings

    async def change(store: TaskStore) -> tuple[Step, str, list[Worker]] | None:
        (step,) = await store.inbox(step_id=number)
        decide(step, decision, text)  # checked before the person is shown and asked anything
        request = None
        if decision in (Decision.APPROVE, Decision.ALWAYS):
            request = await actions.gather_request(store, step, settings)
            if not is_seen and not _is_confirmed(request, decision):
                return None
        home = settings.home
        elsewhere = await actions.find_asking_elsewhere(store, step, home=home)
        settled = await actions.settle(store, step, decision, text, home=home, seen=request)
        now = await store.standing(step.objective_id)
        objective = session.touch(now.objective)
        is_served = bool(actions.serving(await store.workers(), objective.id))
        idle = "" if is_served else "No worker works on this objective now. "
        going_on = render.render_next(objective, now.counts, is_served=is_served)
        return settled, f"{idle}Next: {going_on}", elsewhere

    changed = session.with_store(change, changes=True)
    if changed is None:
        warn(f"You decided nothing; request {number} still waits.")
        return
    step, going_on, elsewhere = changed
    if elsewhere:
        warn(_say_elsewhere(elsewhere, step, decision), Style.YELLOW)
    said = f"Task {asking_task(step)} of objective {step.objective_id} is queued again with your "
    lines = [Line(f"{said}decision."), Line(going_on)]
    give(as_json, json_shapes.decided_shape(step, decision), lines)


def _say_elsewhere(workers: Sequence[Worker], step: Step, decision: Decision) -> str:

    where = ", ".join(safe_line(f"{one.name} on {one.host}") for one in workers[:5])
    way = name_command(decision, str(step.id))
    return (
        f"This is not the home of the worker that asks ({where}). If its own settings ask, your "
        "decision is shown there and does not count, and it asks again: type "
        f"{way} in its home."
    )


def _is_confirmed(request: actions.Request, decision: Decision) -> bool:
    """Show the whole requested call, and return whether the person approves it. Raises
    `SettingsError` if there is no terminal."""

    name = str(request.step.id)
    if not is_person_there():
        raise SettingsError(
            f"request {name} is not approved: there is no terminal to show it on",
            fix=f"babyagi inbox {name} shows all of it, {name_command(decision, name)} --yes "
            "approves it",
            guide="inbox",
        )
    echo_lines(render_request(request, terminal_width(), is_whole=True)[:-1], warn)
    forget_typed()
    return confirm(ask_leave(request.step))


def ask_leave(step: Step) -> str:
    """Return the yes-or-no question that the person is asked about the requested call."""
    if step.kind == "changed":
        return "May the tool be used with its new description?"
    return "Make this call as shown?"


# -- asking at the terminal: prompts when LLM_MODEL=human, and the questions of tasks
# --------------------------------------------------------------------------------------------------

_log = logging.getLogger(__name__)

LOOK_S = 1.0
BACKGROUND_PAUSE_S = 1.0
MAX_LINE_BYTES = 100_000
_NO_MORE = "No more questions are asked here; babyagi inbox shows the open ones."
END_LINE = "."


def find_person() -> Callable[[str], Awaitable[str]] | None:
    """Return `ask_person`; None if there is no terminal to ask on."""
    return ask_person if is_person_there() else None


async def ask_person(prompt: str) -> str:
    """Show the person the prompt for a model, and return the typed answer. The answer ends with a
    line that contains only a full stop, or at the end of input."""
    warn("──── the prompt " + "─" * 40, Style.DIM)
    warn(prompt)
    how = "end it with a line that holds only a full stop, or with Ctrl-D"
    warn(f"──── your answer; {how} " + "─" * 8, Style.DIM)
    return await read_text(sys.stdin.fileno())


async def read_text(descriptor: int, *, may_read: Callable[[], bool] = is_in_foreground) -> str:
    """Return the typed lines up to END_LINE or the end of input. For `may_read` see
    `read_line`."""
    typed, lines = bytearray(), list[str]()
    try:
        while (line := await read_line(descriptor, typed, may_read=may_read)) != END_LINE:
            lines.append(line)
    except EOFError:
        lines.append(typed.decode("utf-8", "replace"))
    return "\n".join(lines)


async def read_line(
    descriptor: int, typed: bytearray, *, may_read: Callable[[], bool] = is_in_foreground
) -> str:
    """Return the next typed line. It is awaited without a thread, so that the waiting can be
    cancelled.

    Args:
        typed: a buffer for input that was read but not returned yet; pass the same one to each
            call.
        may_read: called before each reading; nothing is read while it returns False, because
            another program uses the terminal.

    Raises:
        EOFError: the input has ended.
    """
    loop = asyncio.get_running_loop()
    while b"\n" not in typed:
        readable = asyncio.Event()
        loop.add_reader(descriptor, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(descriptor)
        if not may_read():
            await asyncio.sleep(BACKGROUND_PAUSE_S)
            continue
        chunk = os.read(descriptor, 4096)
        if not chunk:
            raise EOFError
        typed += chunk[: max(0, MAX_LINE_BYTES - len(typed))] or b"\n"
    line, _, rest = bytes(typed).partition(b"\n")
    typed[:] = rest
    return line.decode("utf-8", "replace")


@dataclass(eq=False, kw_only=True)
class Asker:
    """Asks the person at the terminal the open questions of an objective, one after the other,
    until the person ends the input.

    Attributes:
        descriptor: where the person types.
        aside: a context manager in which a question is asked; it keeps others off the terminal.
        may_read: as for `read_line`.
    """

    store: TaskStore
    objective_id: int
    settings: Settings
    descriptor: int
    aside: Callable[[], AbstractContextManager[None]] = nullcontext
    may_read: Callable[[], bool] = is_in_foreground
    _typed: bytearray = field(default_factory=bytearray, init=False)
    _is_there: bool = field(default=True, init=False)
    _has_ended: bool = field(default=False, init=False)

    def is_person_there(self) -> bool:
        """Return whether a question would still be put to the person: the person has not ended the
        input, and the objective has not ended or has an open question."""
        return self._is_there and not self._has_ended

    async def ask(self) -> None:
        """Ask each question as soon as it is open, until cancelled or until the person ends the
        input."""
        try:
            while True:
                await self._ask_next()
        except EOFError:
            warn(_NO_MORE, Style.YELLOW)
        except Exception:  # our bug: the work goes on, and the question waits in the inbox
            _log.exception("asking at the terminal raised an unexpected error")
            warn(_NO_MORE, Style.YELLOW)
        finally:
            self._is_there = False

    async def _ask_next(self) -> None:
        steps = await self._look()
        if not steps:
            last_id = await self.store.last_event_id(self.objective_id)
            await self.store.wait_for_events(self.objective_id, after_id=last_id, timeout_s=LOOK_S)
            return
        request = await actions.gather_request(self.store, steps[0], self.settings)
        with self.aside():
            echo_lines(render_request(request, terminal_width(), is_whole=True)[:-1], warn)
            if needs_leave(request.step):
                self._forget_typed()
            await self._until_decided(request)

    def _forget_typed(self) -> None:
        """Drop input that was typed before the tool call was shown, so that this input does not
        approve the call."""
        self._typed.clear()
        forget_typed(self.descriptor)

    async def _look(self) -> list[Step]:
        steps = await self.store.inbox(self.objective_id)
        objective = await self.store.objective(self.objective_id)
        self._has_ended = objective.status is ObjectiveStatus.ENDED and not steps
        return steps

    async def _until_decided(self, request: actions.Request) -> None:
        """Read lines until one of them decides the request, or until it was answered elsewhere."""
        is_decided = False
        while not is_decided:
            warn(_prompt(request), Style.BOLD)
            typed = await self._read(request.step)
            is_decided = typed is None or await self._decide(request, typed)
        if typed is None:
            warn("This request was answered elsewhere.")

    async def _read(self, step: Step) -> str | None:
        """Return the next typed line; None once the request is not open any more."""
        reading = asyncio.ensure_future(
            read_line(self.descriptor, self._typed, may_read=self.may_read)
        )
        try:
            while not (await asyncio.wait({reading}, timeout=LOOK_S))[0]:
                with suppress(StoreUnavailableError):
                    open_ids = {one.id for one in await self.store.inbox(self.objective_id)}
                    if step.id not in open_ids:
                        return None
            return reading.result().strip()
        finally:
            reading.cancel()

    async def _decide(self, request: actions.Request, typed: str) -> bool:
        decision = _read(request, typed)
        if decision is None:
            return False
        text = typed if decision is Decision.ANSWER else ""
        try:
            home = self.settings.home
            await actions.settle(self.store, request.step, decision, text, home=home, seen=request)
        except NotFoundError:
            warn("This request was answered elsewhere.")
        else:
            warn(f"Task {request.task.id} continues with your answer.")
        return True


def _prompt(request: actions.Request) -> str:
    if needs_leave(request.step):
        ways = "y, n or always" if goes_to(request.step) else "y or n"
        return f"Task {request.task.id}: {ask_leave(request.step)} {ways} (Ctrl-D: later)"
    return f"Your answer to task {request.task.id}, on one line (Ctrl-D: later):"


def _read(request: actions.Request, typed: str) -> Decision | None:
    """Return the decision that the typed line means for this request; None if the line decides
    nothing."""
    if not needs_leave(request.step):
        return Decision.ANSWER if typed else None
    match typed.lower():
        case "y" | "yes":
            return Decision.APPROVE
        case "always" if goes_to(request.step):
            return Decision.ALWAYS
        case "n" | "no":
            return Decision.REJECT
    return None
