"""Views for pipes, logs and scripts: one plain line, or one line of JSON, for each change of
state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from babyagi import log
from babyagi.cli.json_shapes import event_shape
from babyagi.cli.text import echo, fit, print_json_line
from babyagi.resultstore.availability import describe_trouble
from babyagi.tasks import Event
from babyagi.taskstore.base import TaskStore

NAME_WIDTH = 80
REPORT_LINE = (
    "babyagi report --objective {id} shows what was found; the model is asked for its summary"
)
N_CATCHING_UP = 100  # results that go into the index at once only when it is behind, a full batch

_TASK_WORDS = {
    log.TASK_ADDED: "added",
    log.TASK_CLAIMED: "started",
    log.TASK_RECORDED: "has its result",
    log.TASK_LACKED: "lacks something",
    log.TASK_REQUEUED: "is queued again",
    log.TASK_WOKEN: "can be tried again: a result holds what it lacked",
    log.TASK_AFTER_DROPPED: "need not wait for a task that it named",
    log.TASK_DONE: "done",
    log.TASK_FAILED: "failed",
    log.TASK_DEAD: "given up",
    log.TASK_RELEASED: "put back",
    log.TASK_CANCELLED: "cancelled",
    log.TASK_MOVED: "moved in the list by a person",
    log.TASK_RETRIED: "is tried again",
    log.TASK_PARKED: "waits for a person",
    log.TASK_ANSWERED: "got its answer and is queued",
    log.TASK_TOO_DEEP_DROPPED: (
        "proposed a task further from the first one than BABYAGI_MAX_DEPTH allows"
    ),
    log.TASK_DUPLICATE_DROPPED: "proposed a task that is there already",
}

_OTHER_WORDS = {
    log.OBJECTIVE_CREATED: "objective {id} created",
    log.OBJECTIVE_PAUSED: "objective {id} paused",
    log.OBJECTIVE_RESUMED: "objective {id} goes on",
    log.OBJECTIVE_EXTENDED: "objective {id} has new limits",
    log.OBJECTIVE_SPACE_CHANGED: "objective {id}: results are embedded anew",
    log.OBJECTIVE_CLAIMED_MET: "the objective is said to be met; that is checked now",
    log.OBJECTIVE_CHECKED: "checked whether the objective is met",
    log.OBJECTIVE_ENDED: "objective {id} ended",
    log.OBJECTIVE_REOPENED: "objective {id} is open again",
    log.TASK_DUPLICATE_DROPPED: "a proposed task is there already",
    log.TASK_PROPOSAL_DROPPED: (
        "a proposed task was left out: more were proposed than may be, or it lies too deep"
    ),
    log.PLAN_FAILED: "nothing could be planned from a result",
    log.CONTEXT_CUT: "a prompt does not hold all of what it needs",
    log.ORDER_APPLIED: "the list was ordered",
    log.REPORT_WRITTEN: "the report is written",
    log.RESULTS_INDEXED: "the index catches up",
    log.INDEX_UNAVAILABLE: "results do not get into the result store; the run goes on without it",
    log.INDEX_AVAILABLE: "results get into the result store again",
    log.STEP_UNCONFIRMED: "a call was cut off; it is counted as paid and made anew",
    log.STEP_OVERSPENT: "the cost of an answer is not what it should be",
    log.STEP_LEFT_UNKNOWN: (
        "a tool call was cut off that must not be repeated; a person must say what came of it"
    ),
    log.STEP_REQUEST_CHANGED: (
        "a finished call is used again although its request would be another now"
    ),
    log.MODEL_UNAVAILABLE: "waiting for the model",
    log.MODEL_AVAILABLE: "the model answers again",
    log.WORKER_HINDERED: "a worker cannot work on it",
    log.WORKER_LOST: "a worker was lost; what it held is free again",
}


def describe_event(event: Event, task_name: str) -> str | None:
    """Return the change of state in words, None for an event that changes none."""
    if event.kind in _TASK_WORDS and event.task_id is not None:
        name = f": {fit(task_name, NAME_WIDTH)}" if task_name else ""
        return f"task {event.task_id} {_TASK_WORDS[event.kind]}{name}{_describe_data(event)}"
    if event.kind == log.RESULTS_INDEXED and event.data.get("n", 0) < N_CATCHING_UP:
        return None  # as results come
    if event.kind in _OTHER_WORDS:
        return _OTHER_WORDS[event.kind].format(id=event.objective_id) + _describe_data(event)
    return None


def _describe_data(event: Event) -> str:
    """What the event says beside its kind: how many tasks came of it, a reason, an error."""
    data = event.data
    match event.kind:
        case log.STEP_OVERSPENT:
            return _describe_overspending(data)
        case log.MODEL_UNAVAILABLE:
            return (
                f": {fit(str(data.get('reason', '')), 200)}, next try in "
                f"{data.get('retry_in_s', 0):.0f} s"
            )
        case log.INDEX_UNAVAILABLE:
            return f": {fit(describe_trouble(data), 400)}"
        case log.RESULTS_INDEXED:
            return f": {data['n']} results more, {data.get('n_owed', 0):,} are left"
    words = "; ".join(str(word) for word in _words_of(event) if word)
    return f" ({fit(words, 200)})" if words else ""


def _describe_overspending(data: Mapping[str, Any]) -> str:
    said = (
        f"{data.get('tokens', 0):,} tokens, where {data.get('reserved_tokens', 0):,} were reserved"
    )
    if not data.get("is_said", True):
        said = f"{fit(str(data.get('model', '')), 100)} does not say how many tokens it took"
    end = (
        f"; no further call is made, because the limit of {data['limit']} cannot be held"
        if data.get("limit")
        else ""
    )
    return f": {said}{end}"


def _words_of(event: Event) -> list[Any]:
    data = event.data
    match event.kind:
        case log.TASK_DONE:
            return [f"{data['n_added']} new" if data.get("n_added") else ""]
        case log.ORDER_APPLIED:
            return [f"{data.get('n_moved', 0)} moved"]
        case log.TASK_REQUEUED:
            return [_after(data.get("waits_for", ()))]
        case log.CONTEXT_CUT:
            return [f"task {event.task_id}: of results {', '.join(map(str, data.get('cut', ())))}"]
        case log.TASK_DUPLICATE_DROPPED | log.TASK_PROPOSAL_DROPPED:
            return [data.get("name")]
        case log.OBJECTIVE_CHECKED:
            return ["it is met" if data.get("is_met") else "it is not met", data.get("reason")]
    return [data.get(key) for key in ("reason", "error", "detail", "hindrance", "lack", "named")]


def _after(task_ids: Sequence[int]) -> str:
    return f"after {', '.join(map(str, task_ids))}" if task_ids else ""


class EventNames:
    """Renders events with the names of their tasks, which never change and are asked of the store
    once."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store
        self._name_by_id: dict[int, str] = {}

    async def render_event(self, event: Event) -> str | None:
        """`12:01:07 task 4 done: Read limits.md (2 new)` in local time; None for an event that
        changes no state."""
        text = describe_event(event, await self._name_of(event))
        return f"{event.at.astimezone():%H:%M:%S} {text}" if text else None

    async def _name_of(self, event: Event) -> str:
        if event.task_id is None or event.kind not in _TASK_WORDS:
            return ""
        if event.task_id not in self._name_by_id:
            self._name_by_id[event.task_id] = (
                await self._store.task(event.objective_id, event.task_id)
            ).name
        name = self._name_by_id[event.task_id]
        if event.kind in (log.TASK_DONE, log.TASK_DEAD, log.TASK_CANCELLED):
            del self._name_by_id[event.task_id]
        return name


class PlainView:
    """One plain line for each change of state."""

    tick_s = 5.0
    pause_s = 0.0

    def __init__(self, store: TaskStore) -> None:
        self._names = EventNames(store)
        self._pending: list[str] = []

    async def fetch(self, events: Sequence[Event]) -> None:
        self._pending = [
            line for event in events if (line := await self._names.render_event(event))
        ]
        self._pending += [
            REPORT_LINE.format(id=event.objective_id)
            for event in events
            if event.kind == log.OBJECTIVE_ENDED
        ]

    def draw(self) -> None:
        lines, self._pending = self._pending, []
        for line in lines:
            echo(line)

    def close(self) -> None:
        pass


class JsonView:
    """Every event as one line of JSON."""

    tick_s = 5.0
    pause_s = 0.0

    def __init__(self) -> None:
        self._pending: Sequence[Event] = ()

    async def fetch(self, events: Sequence[Event]) -> None:
        self._pending = events

    def draw(self) -> None:
        events, self._pending = self._pending, ()
        for event in events:
            print_json_line(event_shape(event))

    def close(self) -> None:
        pass
