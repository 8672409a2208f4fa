"""What an event tells a person who watches: a finding, a call with its arguments, a question, or a
change of state in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from babyagi import events
from babyagi.cli.picture import Told
from babyagi.cli.text import Style, fit
from babyagi.cli.views import describe_event
from babyagi.errors import BabyagiError
from babyagi.inbox import describe, read_request
from babyagi.tasks import Event, Step
from babyagi.taskstore.port import TaskStore
from babyagi.tools.base import Observation

MAX_FINDING_CHARS = 300
MAX_QUESTION_CHARS = 120  # the picture shows more of it while it is open
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
# said by what the picture shows already, or by the event beside it
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
    """Puts events into words, with what the store has on them; each batch asks it once a task."""

    def __init__(self, store: TaskStore, objective_id: int) -> None:
        self._store = store
        self._objective_id = objective_id
        self._steps: dict[str, Sequence[Step]] = {}
        self.doing: dict[int, str] = {}

    async def tell(self, batch: Sequence[Event]) -> list[Told]:
        self._steps = {}
        told = [one for event in batch if (one := await self._tell(event)) is not None]
        self._steps = {}
        return told

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
                new = f"brought {n_added} new {'task' if n_added == 1 else 'tasks'}"
                return new if n_added else "", Style.DIM
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
        return (
            f"asks: {fit(describe(step)[:400], MAX_QUESTION_CHARS)}"
            if step is not None
            else "waits for a person"
        )

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
    """What a result says, as one line: its headings are left out where there is more."""
    lines = [line.strip() for line in text[:4000].splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith("#")] or [
        line.lstrip("# ") for line in lines
    ]
    return fit(" ".join(said), MAX_FINDING_CHARS)


def describe_call(step: Step) -> str:
    """`read_file(path="a.md") gave 3,120 characters`, or what the tool said that went wrong."""
    gave = ""
    if step.output:
        observation = Observation.from_json(step.output)
        text = observation.passage.text
        gave = (
            f" failed: {fit(text, 120)}"
            if observation.is_error
            else f" gave {len(text):,} characters"
        )
    if step.request:
        tool, arguments = read_request(step)
        return f"{fit(tool, 40)}({_short(arguments)}){gave}"
    origin = Observation.from_json(step.output).passage.origin if step.output else "a tool"
    return f"{fit(origin, 80)}{gave}"


def _short(arguments: Mapping[str, Any]) -> str:
    given = [
        f"{name}={fit(json.dumps(value, ensure_ascii=False)[:200], 40)}"
        for name, value in list(arguments.items())[:6]
    ]
    return fit(", ".join(given), 100)
