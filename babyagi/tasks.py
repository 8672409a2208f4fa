"""The data types: objective, task, result, step, event, and the small values they consist of.

All are frozen, slotted and keyword-only. Times are aware UTC datetimes, and money is in US dollars.
Invalid values are refused when an object is built. Objectives, tasks and results are an exception:
only the task store builds them, and it checks the rows (`taskstore/sql/database.py`). Nothing here
uses a disk, a clock or a network.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Any


class TaskStatus(StrEnum):
    """The status of a task: queued → running → recorded (the outcome is stored, and new tasks are
    planned from it) → done. After a try that lacked information, a recorded task is queued again. A
    task can also become waiting, dead or cancelled."""

    QUEUED = "queued"
    RUNNING = "running"
    # its result, or what it lacked, is stored; tasks are still to be planned from it
    RECORDED = "recorded"
    DONE = "done"
    WAITING = "waiting"  # for a person's answer
    DEAD = "dead"  # it failed too often, or the information that it lacked was never found
    CANCELLED = "cancelled"


class ObjectiveStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class StopReason(StrEnum):
    """Why an objective ended. `words` is the phrase for a person, to follow "it stopped:"."""

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
    WAITING = "waiting", "it waits for a person"
    STALLED = "stalled", "the last tasks brought nothing new"
    FAILED = "failed", "it could not go on"
    CANCELLED = "cancelled", "a person ended it"


class Place(StrEnum):
    """An end of the task list."""

    FIRST = "first"
    LAST = "last"


class Role(StrEnum):
    """The purpose for which a model is called. An objective has one model name for each role."""

    EXECUTION = "execution"
    CREATION = "creation"
    PRIORITIZATION = "prioritization"
    REPORT = "report"
    EMBEDDING = "embedding"


class Effect(StrEnum):
    """What repeating a call of a tool does to the world."""

    READ = "read"  # the tool changes nothing
    IDEMPOTENT = "idempotent"  # a repetition changes nothing more
    ONCE = "once"  # the call must not be repeated


class Approval(StrEnum):
    """Which tool calls a person must approve first; fixed when the objective is created."""

    ONCE = "once"  # those with the effect `once`
    NONE = "none"


class Memory(StrEnum):
    """Which earlier results a task may be shown; fixed when the objective is created."""

    OBJECTIVE = "objective"
    SHARED = "shared"  # those of the store's other objectives as well


class Planning(StrEnum):
    """Which agent proposes new tasks; fixed when the objective is created."""

    SEPARATE = "separate"  # the creation agent, one call for several results
    COMBINED = "combined"  # the execution agent, at the end of its result


class Duty(StrEnum):
    """Work for the whole objective, such as planning. Like a task, each kind is claimed by one
    worker at a time."""

    ORDER = "order"  # put the task list in a new order
    PLAN = "plan"  # propose new tasks from recorded ones
    CHECK = "check"  # decide whether the objective is met
    REPORT = "report"  # write the report
    INDEX = "index"  # write results to the index


class Level(IntEnum):
    """What a client may do: READ only reads, STEER also changes things, and ADMIN also deletes and
    sets limits above the server's."""

    READ = 1
    STEER = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        return self.name.lower()


ASKED_FURTHER = "Asked further: "  # prefix of a further question in `ObjectiveSpec.asked`
MAX_SOURCES = 30  # the most sources that are named for one text
MAX_ARTIFACTS = 20  # the most artifacts of one tool call
_OUTSIDE = re.compile(r"file:|scratch:|private:|web:|search:|tool:|more:\d{1,9}$|result:\d+/")
# what every objective with a folder has; a prompt that holds the whole folder offers none of them
READING_TOOLS = ("list_files", "read_file", "search_files")
# what needs a folder; its texts are private, because it names files even where it reads none
FOLDER_TOOLS = (*READING_TOOLS, "write_file")
_PRIVATE = re.compile(rf"file:|private:|tool:(?:{'|'.join(FOLDER_TOOLS)})$")


def require_utc(name: str, at: datetime | None) -> None:
    if at is not None and at.tzinfo is not UTC and at.utcoffset() != UTC.utcoffset(None):
        raise ValueError(f"{name} must be an aware UTC datetime, got {at!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A fetched web page: its address, the requested address if that was redirected, its title, and
    the SHA-256 of its bytes."""

    url: str
    title: str
    fetched_at: datetime
    digest: str
    asked_url: str = ""

    def __post_init__(self) -> None:
        require_utc("fetched_at", self.fetched_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that a tool made in addition to its answer: its path, its media type (`text/csv`,
    `image/svg+xml`, …), its text, and the SHA-256 of its bytes."""

    name: str
    media_type: str
    text: str
    digest: str

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self.text.encode("utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text and its origin.

    `origin` is `person`, `program`, `model:NAME`, `tool:NAME`, `private:TOOL` (a tool whose texts
    are private), `file:PATH`, `web:ADDRESS`, `scratch:PATH` (written by an earlier call of the
    task), `search:ENGINE`, `result:TASK_ID` or, for a result of another objective,
    `result:OBJECTIVE_ID/TASK_ID`. Every text that is not from a person or from this program is
    data: fenced and labelled in prompts, escaped on a terminal.

    Attributes:
        sources: the outside origins that the text was derived from.
        pages: the recorded data of sources that are web pages.
        artifacts: files that were made with the text; they are not shown to models.
    """

    text: str
    origin: str
    sources: tuple[str, ...] = ()
    pages: tuple[Fetched, ...] = ()
    artifacts: tuple[Artifact, ...] = ()

    @property
    def origins(self) -> tuple[str, ...]:
        """The origin and the sources."""
        return (self.origin, *self.sources)


def is_private(origin: str) -> bool:
    """Return whether a text of this origin must not leave this machine unasked: files, and servers
    that the person has not named public. A result is as private as its sources."""
    return bool(_PRIVATE.match(origin))


def find_sources(origins: Iterable[str]) -> tuple[str, ...]:
    """Return the origins outside this objective (files, pages, searches, tools, results of other
    objectives), each once, private ones and pages first. The person, the models and the results of
    this objective are left out.

    If there are more than `MAX_SOURCES`, the last entry is `more:N`, which stands for N others.
    """
    found = [origin for origin in dict.fromkeys(origins) if _OUTSIDE.match(origin)]
    named = sorted(
        (origin for origin in found if not origin.startswith("more:")),
        key=lambda origin: (not is_private(origin), not origin.startswith("web:")),
    )
    n_more = max([0, *(int(origin[5:]) for origin in found if origin.startswith("more:"))]) + max(
        0, len(named) - MAX_SOURCES
    )
    return (*named[:MAX_SOURCES], *([f"more:{n_more}"] if n_more else []))


def make_passage(text: str, origins: Sequence[str]) -> Passage:
    """Return the text, which was derived from texts with these origins, as a passage. Its origin is
    the model, unless only a person or only the program contributed."""
    sources = find_sources(origins)
    author = origins[0] if origins and set(origins) in ({"person"}, {"program"}) else "model"
    return Passage(text=text, origin=author, sources=sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When an objective must stop. 0 means no limit."""

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
    """The cost of calls. Money is in US dollars, rounded up to whole micro-dollars for each call.

    `unconfirmed_tokens` and `unconfirmed_cost_usd` are the part of the totals that no answer has
    confirmed: the calls that a kill or an outage interrupted, and the answers that do not state
    their cost. Such calls are counted with everything that was reserved for them.
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
    """The maximum cost of one call. It is reserved from the time when the call is recorded as
    intended until its outcome is recorded."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolGrant:
    """A tool that the objective may use, in the form that it had when the objective was created.

    `description` and `parameters` (a JSON Schema) are set for a tool of a server and for a function
    of a Python program, which must be passed in again to continue the objective. `refused` is the
    `digest` of a changed form of the tool that a person did not allow.
    """

    name: str
    effect: Effect
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    refused: str = ""


def write_form(description: str, parameters: Mapping[str, Any] | None) -> str:
    """Return a tool's description and parameters as lines of JSON; equal for equal tools."""
    form = {"description": description, "parameters": parameters}
    return json.dumps(form, sort_keys=True, indent=1, ensure_ascii=False)


def digest(text: str) -> str:
    """Return 32 hexadecimal digits that are equal for equal texts: of a tool's form, or of the
    request of a step."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveSpec:
    """What an objective is created with. Later only commands of a person change it: the limits, the
    further questions, the embedder. Keys, addresses, folders and concurrency are not part of it;
    they belong to the worker.

    `text`, `initial_task` and `instance_name` together identify the objective: starting with the
    same three continues it. `further` are the questions that a person added later, in order.
    """

    text: str
    initial_task: str
    instance_name: str = "babyagi"
    limits: Limits = field(default_factory=Limits)
    model_by_role: Mapping[Role, str]
    temperature: float | None = None
    has_price: bool = True  # whether the prices of its models, and so its cost, are known
    embedding_space: str
    results_store_name: str = "babyagi"
    tools: tuple[ToolGrant, ...] = ()
    approval: Approval = Approval.ONCE
    memory: Memory = Memory.OBJECTIVE
    planning: Planning = Planning.SEPARATE
    # the JSON Schema that a program requested for the answer in the report
    output_schema: Mapping[str, Any] | None = None
    agent: str = ""  # the agent from a file that executes the tasks; `tools` includes its tools
    # who gave the text and the first task: `person`, or `file:.env` for a file that nobody trusts
    text_origin: str = "person"
    task_origin: str = "person"
    prompt_version: str
    further: tuple[str, ...] = ()

    @property
    def models(self) -> str:
        """The names of the language models and of the embedder, as a phrase for a person."""
        names = {name for role, name in self.model_by_role.items() if role is not Role.EMBEDDING}
        embedder = self.model_by_role.get(Role.EMBEDDING)
        return ", ".join(sorted(names)) + (f"; embeddings by {embedder}" if embedder else "")

    @property
    def is_free(self) -> bool:
        """Whether no call costs money, because the execution model is the rehearsal model (which
        only quotes documents), a person, or a model that runs in this process."""
        return self.model_by_role.get(Role.EXECUTION) in ("rehearsal", "human", "llama")

    @property
    def asked(self) -> str:
        """Everything that the objective asks: its text, and each further question on a line of its
        own."""
        return "\n".join([self.text, *(f"{ASKED_FURTHER}{one}" for one in self.further)])

    @property
    def passage(self) -> Passage:
        """What the objective asks, as a prompt shows it."""
        return Passage(text=self.asked, origin=self.text_origin)

    def __post_init__(self) -> None:
        if not self.text.strip() or not self.initial_task.strip():
            raise ValueError("an objective needs a text and an initial task")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPart:
    """A part of the objective, as the check names it, and a quote from the result of task `task_id`
    that answers it; '' if the words that the check quoted stand in no result. `is_deed`: the part
    asks for an action."""

    part: str
    task_id: int
    quote: str
    is_deed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """The outcome of the last check of an objective, and counts of the checks that were made with
    an empty task list and found something missing.

    Attributes:
        parts: the parts that are answered, proven by a quote or not.
        missing: the parts that are not answered.
        contradictions: what results contradict each other about, one line each.
        n_idle: how many such checks in a row saw no new answer since the check before.
        n_stuck: how many such checks in a row found no fewer open parts than `least_missing`.
        least_missing: the lowest number of open parts (missing, or not proven) that a check found.
        n_answers: the number of answers at the last check.
    """

    parts: tuple[CheckedPart, ...] = ()
    missing: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()
    n_idle: int = 0
    n_stuck: int = 0
    least_missing: int = 0
    n_answers: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A stored objective.

    Attributes:
        uid: a random id, from which every id that is used outside the store is derived.
        is_claimed_met: a check is owed before another task starts, because an agent has said that
            the objective is met, or because the last tasks brought nothing new.
        overspent: the limit (`cost`, `tokens`) that can no longer be guaranteed, because a call
            cost more than was reserved for it, or its cost was not stated; '' if there is none.
        n_begun: the number of tasks that were ever started.
        report_no: how many times a report became due.
        stop_detail: more about why it ended, or why it was set aside (`is_set_aside`).
    """

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

    @property
    def is_set_aside(self) -> bool:
        """Whether the objective is paused because a run got no answer. Workers do not work on it
        until a person resumes it."""
        return self.status is ObjectiveStatus.PAUSED and bool(self.stop_detail)

    @property
    def spent(self) -> str:
        """The cost in words: `$0.2100`, `$0.2100 (perhaps $1.3700 more)` if a part is unconfirmed,
        `unknown`, or `nothing` if no call costs money."""
        if self.spec.is_free and not self.usage.cost_usd:
            return "nothing"
        if not self.spec.has_price:
            return "unknown"
        confirmed = f"${self.usage.cost_usd - self.usage.unconfirmed_cost_usd:.4f}"
        perhaps = self.usage.unconfirmed_cost_usd
        return f"{confirmed} (perhaps ${perhaps:.4f} more)" if perhaps > 0 else confirmed


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """The information that a try of a task lacked, in the model's words. `shown`: the ids of the
    tasks whose results were in the prompts of the tries. `found`: what the try found, if it
    answered in part. `before`: what earlier tries lacked."""

    what: str
    shown: tuple[int, ...] = ()
    found: str = ""
    before: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task. `id` and `name` never change; the list is ordered by `(rank, id)`.

    Attributes:
        lack: the information that the last try lacked; None if it lacked nothing.
        n_lacks: the number of tries that lacked information.
        n_lost: how many workers in a row were lost while they held the task, without recording a
            step.
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

    @property
    def is_answer(self) -> bool:
        """Whether this is the first task that stands for the objective itself."""
        return self.parent_id is None and self.name == ANSWER_TASK


ANSWER_TASK = "Answer the objective"
"""The first task where a person gave none: the objective itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTexts:
    """Texts of a folder for a prompt: of the whole folder, or those that come closest to a
    question."""

    passages: tuple[Passage, ...] = ()
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A task that an agent or a person proposes; it has no id before the store accepts it.

    Attributes:
        after: ids of tasks, and labels or names of tasks that are proposed together with it.
        parent_id: the task whose result, or whose missing information, led to the proposal.
        repeats: the task that this one only says in other words, as the model says; None for none.
        is_missing: the task is for a part of the objective that a check found unanswered.
    """

    name: str
    after: tuple[int | str, ...] = ()
    label: str = ""
    parent_id: int | None = None
    repeats: int | None = None
    is_missing: bool = False
    origins: tuple[str, ...] = ("person",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A task whose outcome is recorded, but does not answer it.

    Attributes:
        lack: the information that the task lacks.
        after: the tasks that will provide this information, named as in `Proposal.after`.
        shown: the ids of the tasks whose results were in the task's prompt.
    """

    task_id: int
    lack: str
    after: tuple[int | str, ...] = ()
    shown: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskName:
    """A task's id, name and status, for lists."""

    id: int
    name: str
    status: TaskStatus
    is_lacking: bool
    origins: tuple[str, ...] = ("person",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a finished task; one for each task.

    Attributes:
        lack: the part of its task that it does not answer; empty if it answers all.
        is_planned: whether tasks have been planned from it. Until then, it is withdrawn if the
            creation agent decides that it does not answer its task. A result from which its own
            author planned is planned from once more if a check finds parts missing.
    """

    task_id: int
    objective_id: int
    task_name: str
    text: str
    origins: tuple[str, ...]
    lack: str = ""
    is_planned: bool = True
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What a search needs to know about results that the index does not have yet.

    Attributes:
        n_results: the number of all results of the objective.
        results: the oldest results that are not indexed.
        vectors: the stored vectors of these, by task id.
        with_words: ids of tasks whose results contain the searched words, best match first.
        with_marks: the same for the searched marks (codes, numbers, names).
        common_words: searched words that so many results contain that they were ignored.
    """

    n_results: int
    results: tuple[Result, ...]
    vectors: Mapping[int, bytes]
    with_words: tuple[int, ...] = ()
    with_marks: tuple[int, ...] = ()
    common_words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Identifies a claim: what was claimed (`owner`), the number of the claim, and the worker that
    holds it. A worker passes it with every change; the store refuses the change if the claim has
    ended.

    `owner` is `task:ID`, `order:REVISION`, `plan:N`, `check:N`, `report` or `index`.
    """

    objective_id: int
    owner: str
    claim_no: int
    worker_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A task that a worker has claimed, and may work on as long as its lease lives."""

    task: Task
    fence: Fence


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyClaim:
    """A duty (work for the whole objective, such as planning) that this worker holds while its
    lease lives. `is_new`: no worker has begun this planning, check or report before, so none of its
    steps is recorded."""

    duty: Duty
    fence: Fence
    is_new: bool = False


class StepState(StrEnum):
    INTENDED = "intended"
    DONE = "done"
    UNKNOWN = "unknown"  # intended, but perhaps never made; a person must decide
    ASKED = "asked"  # a person was asked and has not answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One journaled call, identified by `(objective_id, owner, key)`.

    Attributes:
        kind: `model`, `tool`, `embedding`, `inputs`, `once` (a tool call that must not be
            repeated), `question` or `approval`.
        output: JSON text; None before the step is done.
        request: the prompt (`llm/kept.py`) or the tool call, as JSON text; may be "" for a step
            that an earlier version of this program recorded.
        id: the number by which a person can name the step to answer it.
        unconfirmed: the part of `usage` that was charged because claims ended while the call was in
            flight, as pairs of claim number and usage.
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
        """The number of calls that were charged although their outcome is unknown."""
        return sum(usage.calls for _, usage in self.unconfirmed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change of state. Ids rise in the order in which the store committed the changes."""

    id: int
    objective_id: int
    task_id: int | None
    kind: str
    data: Mapping[str, Any]
    at: datetime


WAITS_FOR_PERSON = "nothing is left to do until a person has answered"
"""The `blocked_reason` of a worker that has a person to answer, while it lets no time pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """An objective that a worker serves: since when, why the worker cannot claim anything there (""
    if it can), and what it has claimed."""

    objective_id: int
    blocked_reason: str
    since: datetime
    task_ids: tuple[int, ...] = ()
    duties: tuple[Duty, ...] = ()

    @property
    def is_blocked(self) -> bool:
        """Whether something keeps the worker from its work other than a person's silence."""
        return self.blocked_reason not in ("", WAITS_FOR_PERSON)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A running worker process, and when its lease of `lease_s` seconds ends. The store fills in
    `since`, `lease_s`, `lease_left_s` and `joined`.

    `home` is the random id of its home folder. Running workers of one home folder have different
    names.
    """

    id: str
    name: str
    host: str
    pid: int
    lease_until: datetime
    home: str = ""
    since: datetime | None = None
    lease_s: float = 0.0
    lease_left_s: float = 0.0
    joined: tuple[Joined, ...] = ()

    @property
    def has_run_out(self) -> bool:
        """Whether the lease has ended by the store's clock, or ends later than a lease can. This
        does not prove that the worker is dead: the clock may have jumped, or the store may have
        refused writes for a while."""
        return not 0 <= self.lease_left_s <= self.lease_s
