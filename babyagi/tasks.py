"""The nouns: objective, task, result, step, event, and the small values they are made of.

Frozen, slotted, keyword-only; a wrong one cannot be built. Times are aware UTC datetimes, money is
US dollars. Nothing here touches a disk, a clock or a network.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any


class TaskStatus(StrEnum):
    """queued → running → recorded → done, or after a lack → queued again; the side exits are
    waiting, dead and cancelled."""

    QUEUED = "queued"
    RUNNING = "running"
    # the result, or what it lacked, is committed; the planning from it is still owed
    RECORDED = "recorded"
    DONE = "done"
    WAITING = "waiting"  # a person was asked
    DEAD = "dead"  # its failures are used up, or what it lacked never came
    CANCELLED = "cancelled"


class ObjectiveStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class StopReason(StrEnum):
    """Why an objective ended. `words` follow on "it stopped:"."""

    words: str

    def __new__(cls, value: str, words: str = "") -> StopReason:
        reason = str.__new__(cls, value)
        reason._value_, reason.words = value, words
        return reason

    FINISHED = (
        "finished",
        "nothing is left to do, and a check found every part of the objective answered",
    )
    OBJECTIVE_MET = "objective_met", "the objective is met, and a check agreed"
    UNMET = "unmet", "nothing is left to do, and parts of the objective are not answered"
    LIMIT_TASKS = "limit:tasks", "the limit of tasks is reached"
    LIMIT_CALLS = "limit:calls", "the limit of model calls is reached"
    LIMIT_TOKENS = "limit:tokens", "the limit of tokens is reached"
    LIMIT_COST = "limit:cost", "the limit of money is reached"
    LIMIT_TIME = "limit:time", "the limit of time is reached"
    WAITING = "waiting", "only a person can go on"
    STALLED = "stalled", "nothing new came of the last tasks"
    FAILED = "failed", "it could not go on"
    CANCELLED = "cancelled", "a person ended it"


class Place(StrEnum):
    """An end of the list of what is still to be done."""

    FIRST = "first"
    LAST = "last"


class Role(StrEnum):
    """Who asks a model; the objective freezes one model name per role."""

    EXECUTION = "execution"
    CREATION = "creation"
    PRIORITIZATION = "prioritization"
    REPORT = "report"
    EMBEDDING = "embedding"


class Effect(StrEnum):
    """What repeating a tool call does to the world."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    ONCE = "once"


class Approval(StrEnum):
    """Which tool calls ask a person before they are made; frozen with the objective."""

    ONCE = "once"  # those with the effect `once`
    NONE = "none"


class Memory(StrEnum):
    """Whose results a task may be given; frozen with the objective."""

    OBJECTIVE = "objective"
    SHARED = "shared"  # those of the store's other objectives as well


class Planning(StrEnum):
    """Who proposes new tasks; frozen with the objective."""

    SEPARATE = "separate"  # the creation agent, from results that came in together
    COMBINED = "combined"  # the execution agent, at the end of its result


class Duty(StrEnum):
    """Work for the whole objective, claimed apart from tasks, one worker at a time."""

    ORDER = "order"  # ask for a new order of the list
    PLAN = "plan"  # propose tasks from what was recorded
    CHECK = "check"  # is the objective met?
    REPORT = "report"
    INDEX = "index"  # feed the result store


ASKED_FURTHER = "Asked further: "  # begins the line of a question beside an objective's text
MAX_SOURCES = 30  # that a text is said to be made from
MAX_ARTIFACTS = 20  # of one tool call
_OUTSIDE = re.compile(r"file:|scratch:|web:|search:|tool:|more:\d{1,9}$|result:\d+/")


def _require_utc(name: str, at: datetime | None) -> None:
    if at is not None and at.utcoffset() != UTC.utcoffset(None):
        raise ValueError(f"{name} must be an aware UTC datetime, got {at!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A page of the web as it was fetched: its address, the one that was asked for where a redirect
    led on from there, its title, and the SHA-256 of its bytes."""

    url: str
    title: str
    fetched_at: datetime
    digest: str
    asked_url: str = ""

    def __post_init__(self) -> None:
        _require_utc("fetched_at", self.fetched_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that a tool made beside its answer, as text: its path, what it is (`text/csv`,
    `image/svg+xml`, …), and the SHA-256 of the text in UTF-8."""

    name: str
    media_type: str
    text: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text and where it came from.

    `origin` is `person`, `program`, `model:NAME`, `tool:NAME`, `file:PATH`, `web:ADDRESS`,
    `scratch:PATH` (which an earlier call of the task wrote), `search:ENGINE`, `result:TASK_ID` or,
    of another objective, `result:OBJECTIVE_ID/TASK_ID`.
    Whatever is not from a person or from this program is data: fenced and labelled in prompts,
    escaped on a terminal. `sources` are the origins from outside that it was made from, `pages`
    what is known of those that are pages, `artifacts` the files that were made with it, which no
    model is shown.
    """

    text: str
    origin: str
    sources: tuple[str, ...] = ()
    pages: tuple[Fetched, ...] = ()
    artifacts: tuple[Artifact, ...] = ()

    @property
    def origins(self) -> tuple[str, ...]:
        return (self.origin, *self.sources)


def find_sources(origins: Iterable[str]) -> tuple[str, ...]:
    """Return the origins from outside, each once, files first: what this objective's own model,
    person and results are not.

    Of more than `MAX_SOURCES` the last one is `more:N`, for N others.
    """
    found = [origin for origin in dict.fromkeys(origins) if _OUTSIDE.match(origin)]
    named = sorted(
        (origin for origin in found if not origin.startswith("more:")),
        key=lambda origin: not origin.startswith(("file:", "web:")),
    )
    n_more = max([0, *(int(origin[5:]) for origin in found if origin.startswith("more:"))]) + max(
        0, len(named) - MAX_SOURCES
    )
    return (*named[:MAX_SOURCES], *([f"more:{n_more}"] if n_more else []))


def make_passage(text: str, origins: Sequence[str]) -> Passage:
    """Return a text that was made from texts of these origins: a model's, unless only a person or
    only the program had a part in it."""
    sources = find_sources(origins)
    author = origins[0] if origins and set(origins) in ({"person"}, {"program"}) else "model"
    return Passage(text=text, origin=author, sources=sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where an objective must stop. 0 means: no such limit."""

    max_tasks: int = 50
    max_calls: int = 0
    max_tokens: int = 2_000_000
    max_cost_usd: float = 1.0
    max_time_s: float = 7200.0

    def __post_init__(self) -> None:
        for name in ("max_tasks", "max_calls", "max_tokens", "max_cost_usd", "max_time_s"):
            if not getattr(self, name) >= 0:
                raise ValueError(
                    f"{name} must be 0 (no limit) or more, got {getattr(self, name)!r}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What calls cost. Money is counted in whole micro-dollars, rounded up call by call.

    `unconfirmed_tokens` and `unconfirmed_cost_usd` are the part that no answer has confirmed: calls
    that a kill or an outage left open, and answers that do not say what they cost. They are counted
    with all that was reserved for them.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    unconfirmed_tokens: int = 0
    unconfirmed_cost_usd: float = 0.0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=round(self.cost_usd + other.cost_usd, 6),
            unconfirmed_tokens=self.unconfirmed_tokens + other.unconfirmed_tokens,
            unconfirmed_cost_usd=round(self.unconfirmed_cost_usd + other.unconfirmed_cost_usd, 6),
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls - other.calls,
            prompt_tokens=self.prompt_tokens - other.prompt_tokens,
            completion_tokens=self.completion_tokens - other.completion_tokens,
            cost_usd=round(self.cost_usd - other.cost_usd, 6),
            unconfirmed_tokens=self.unconfirmed_tokens - other.unconfirmed_tokens,
            unconfirmed_cost_usd=round(self.unconfirmed_cost_usd - other.unconfirmed_cost_usd, 6),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The most that one call may cost; held from the intended step until it is settled."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolGrant:
    """A tool that the objective may use, as frozen at its creation.

    `description` and `parameters` (a JSON Schema) are there for a function of a Python program,
    which must be handed in again by whoever goes on with the objective, and for a tool of a server.
    `refused` is the `digest_form` of what that tool became, where a person did not allow it.
    """

    name: str
    effect: Effect
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    refused: str = ""


def write_form(description: str, parameters: Mapping[str, Any] | None) -> str:
    """What a model is told of a tool, as one text: JSON in lines, the same for the same tool."""
    form = {"description": description, "parameters": parameters}
    return json.dumps(form, sort_keys=True, indent=1, ensure_ascii=False)


def digest_form(form: str) -> str:
    return hashlib.sha256(form.encode("utf-8", "replace")).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveSpec:
    """What belongs to the objective and is frozen with it. Keys, addresses, folders and concurrency
    are the worker's.

    `text`, `initial_task` and `instance_name` together say which objective this is: starting the
    same three again goes on with it. `further` are the questions that a person asked later, in
    their order; they are changed by an event, as the limits are.
    """

    text: str
    initial_task: str
    instance_name: str = "babyagi"
    limits: Limits = field(default_factory=Limits)
    model_by_role: Mapping[Role, str]
    temperature: float | None = None
    has_price: bool = True  # the price of its models was known, so what it costs is known in money
    embedding_space: str
    results_store_name: str = "babyagi"
    tools: tuple[ToolGrant, ...] = ()
    approval: Approval = Approval.ONCE
    memory: Memory = Memory.OBJECTIVE
    planning: Planning = Planning.SEPARATE
    output_schema: Mapping[str, Any] | None = None  # what a program wants the report's answer to be
    agent: str = ""  # of a file, that carries the tasks out; its tools are among `tools`
    prompt_version: str
    further: tuple[str, ...] = ()

    @property
    def models(self) -> str:
        """The names of the models that are asked, and of what makes vectors."""
        names = {name for role, name in self.model_by_role.items() if role is not Role.EMBEDDING}
        embedder = self.model_by_role.get(Role.EMBEDDING)
        return ", ".join(sorted(names)) + (f"; embeddings by {embedder}" if embedder else "")

    @property
    def asked(self) -> str:
        """All that the objective asks: its text, and each further question on a line of its own."""
        return "\n".join([self.text, *(f"{ASKED_FURTHER}{one}" for one in self.further)])

    def __post_init__(self) -> None:
        if not self.text.strip() or not self.initial_task.strip():
            raise ValueError("an objective needs a text and an initial task")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPart:
    """A part of the objective, as the check names it, and the words of a result that answer it."""

    part: str
    task_id: int
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What the last check of an objective found, and how the checks went that found the list empty
    and something missing.

    `n_idle` of them in a row had no new answer since the one before, `n_stuck` in a row found no
    fewer parts missing than the best one (`least_missing`). `n_answers` is how many answers there
    were at the last check.
    """

    parts: tuple[CheckedPart, ...] = ()
    missing: tuple[str, ...] = ()
    n_idle: int = 0
    n_stuck: int = 0
    least_missing: int = 0
    n_answers: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """One objective as the store has it. `uid` is the random root of every outside id;
    `is_claimed_met`: an agent says that it is met, and no check has looked since; `overspent` is
    the limit (`cost`, `tokens`) that cannot be held any more, because a call went over what was
    reserved for it, or its cost was not said; `n_begun` counts every task that was ever begun;
    `report_no` counts the reports that were owed.
    `stop_detail` says more of why it ended, or of why it was set aside (`is_set_aside`)."""

    id: int
    uid: str
    spec: ObjectiveSpec
    status: ObjectiveStatus
    stop_reason: StopReason | None = None
    stop_detail: str = ""
    usage: Usage = Usage()
    held: Reservation = Reservation()
    active_s: float = 0.0  # wall time that counts against max_time_s
    order_revision: int = 0
    is_claimed_met: bool = False
    overspent: str = ""
    n_begun: int = 0
    checks: Checks = Checks()
    has_report: bool = False
    report_no: int = 1
    created_at: datetime
    ended_at: datetime | None = None

    def __post_init__(self) -> None:
        _require_utc("created_at", self.created_at)
        _require_utc("ended_at", self.ended_at)
        if (self.status is ObjectiveStatus.ENDED) != (self.stop_reason is not None):
            raise ValueError("an objective has a stop reason exactly when it has ended")

    @property
    def is_free(self) -> bool:
        """Whether no call costs money: the rehearsal is asked, a person, or a model in this
        process."""
        return self.spec.model_by_role.get(Role.EXECUTION) in (
            "rehearsal",
            "human",
            "llama",
        )

    @property
    def is_set_aside(self) -> bool:
        """Whether it is paused because a run of it got no answer; no worker takes it up by
        itself."""
        return self.status is ObjectiveStatus.PAUSED and bool(self.stop_detail)

    @property
    def spent(self) -> str:
        """What it cost in words: `$0.2100`, `$0.2100 (perhaps $1.3700 more)` with what no answer
        has confirmed, `unknown`, or `nothing` where no language model is asked."""
        if self.is_free and not self.usage.cost_usd:
            return "nothing"
        if not self.spec.has_price:
            return "unknown"
        confirmed = f"${self.usage.cost_usd - self.usage.unconfirmed_cost_usd:.4f}"
        perhaps = self.usage.unconfirmed_cost_usd
        return f"{confirmed} (perhaps ${perhaps:.4f} more)" if perhaps > 0 else confirmed


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """What a try of a task lacked, in the model's words, and the results that stood in its
    prompt."""

    what: str
    shown: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task. `id` and `name` never change; the list is ordered by `(rank, id)`.

    `lack` is what its last try lacked, None when that is answered or was never so; `n_lacks` tries
    of it lacked something. `n_lost` workers in a row were lost while they held it, without a step
    of it that was recorded.
    """

    id: int
    objective_id: int
    name: str
    status: TaskStatus
    rank: int
    parent_id: int | None = None
    after: tuple[int, ...] = ()
    origins: tuple[str, ...] = ("person",)
    try_no: int = 1
    claim_no: int = 0
    failures: int = 0
    n_lost: int = 0
    error: str = ""
    lack: Lack | None = None
    n_lacks: int = 0
    usage: Usage = Usage()
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    not_before: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("created_at", "started_at", "finished_at", "not_before"):
            _require_utc(name, getattr(self, name))
        if not self.name.strip():
            raise ValueError("a task needs a name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A task that an agent or a person proposes; it has no id before the store accepts it.

    `after` names tasks by their ids, and others that are proposed with it by their `label` or name.
    `parent_id` is the task whose result or lack it comes from. `is_missing`: a check found that its
    part of the objective is not answered.
    """

    name: str
    after: tuple[int | str, ...] = ()
    label: str = ""
    parent_id: int | None = None
    is_missing: bool = False
    origins: tuple[str, ...] = ("person",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A task that is recorded and not answered: what it lacks, and the tasks that bring it, named
    as in `Proposal.after`.

    `shown` are the results that stood in its prompt.
    """

    task_id: int
    lack: str
    after: tuple[int | str, ...] = ()
    shown: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskName:
    """A task as a list shows it."""

    id: int
    name: str
    status: TaskStatus
    is_lacking: bool
    origins: tuple[str, ...] = ("person",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a finished task found; one for each task. `lack` is what it does not answer of its task,
    empty when it answers all of it.

    `is_planned`: it stands for ever; before, the creation agent may still say that it is no answer,
    and then it is withdrawn.
    """

    task_id: int
    objective_id: int
    task_name: str
    text: str
    origins: tuple[str, ...]
    lack: str = ""
    is_planned: bool = True
    created_at: datetime

    def __post_init__(self) -> None:
        _require_utc("created_at", self.created_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """How many results there are, the oldest that the result store does not have yet, and which of
    these have a vector, by task id. `with_words` are the tasks in whose results some words stand,
    the best match first."""

    n_results: int
    results: tuple[Result, ...]
    vectors: Mapping[int, bytes]
    with_words: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Who may change what: the owner of steps, the number of the claim, the worker that holds it.

    `owner` is `task:ID`, `order:REVISION`, `plan:N`, `check:N`, `report` or `index`.
    """

    objective_id: int
    owner: str
    claim_no: int
    worker_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A task that this worker holds while its lease lives."""

    task: Task
    fence: Fence


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyClaim:
    """A duty that this worker holds while its lease lives. `is_new`: nobody has held it before for
    the same round, so no step of it is recorded."""

    duty: Duty
    fence: Fence
    is_new: bool = False


class StepState(StrEnum):
    INTENDED = "intended"
    DONE = "done"
    UNKNOWN = "unknown"  # intended and never confirmed; a person must say
    ASKED = "asked"  # a person was asked and has not answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One journaled call, known by `(objective_id, owner, key)`.

    `kind` is `model`, `tool`, `embedding`, `inputs`, `once` (a tool call that must not be
    repeated), `question` or `approval`; `output` is JSON text, None before the step is done.
    `request` is what was asked, as JSON text: the prompt (`llm/kept.py`), or the tool call (""
    for a step of an earlier version that no person has to decide). `id` is the step's number, for
    answers. `unconfirmed` is what `usage` holds, by number, for claims that ended with
    the call in flight.
    """

    objective_id: int
    owner: str
    key: str
    kind: str
    request_hash: str
    state: StepState
    output: str | None = None
    model: str = ""
    origins: tuple[str, ...] = ()
    reservation: Reservation = Reservation()
    usage: Usage = Usage()
    unconfirmed: tuple[tuple[int, Usage], ...] = ()
    claim_no: int = 0
    created_at: datetime
    done_at: datetime | None = None
    request: str = ""
    id: int = field(default=0, compare=False)

    @property
    def n_unconfirmed(self) -> int:
        """How many of the calls that were charged gave no outcome that anybody heard of."""
        return sum(usage.calls for _, usage in self.unconfirmed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change of state, in the order in which the store committed them."""

    id: int
    objective_id: int
    task_id: int | None
    kind: str
    data: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """That a worker serves an objective: since when, what keeps it from claiming there ("" for
    nothing), and what it holds of it."""

    objective_id: int
    blocked_reason: str
    since: datetime
    task_ids: tuple[int, ...] = ()
    duties: tuple[Duty, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process that works, and until when its lease lives. The store fills in `since`,
    `lease_left_s` and `joined`.

    `home` is the random id of its home folder: within one home, a name has one bearer at a time.
    """

    id: str
    name: str
    host: str
    pid: int
    lease_until: datetime
    home: str = ""
    since: datetime | None = None
    lease_left_s: float = 0.0
    joined: tuple[Joined, ...] = ()
