"""The nouns of an agent's run: the decisions of the model, a step, the bounds, the outcome, and the
signals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, cast

from babyagi.errors import NoAnswerError
from babyagi.llm.prompt import Message, Prompt, ToolCall
from babyagi.tasks import Usage
from babyagi.tools.base import Observation

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=str)
else:
    from typing import TypeVar

    T = TypeVar("T")


# The names by which a model ends its work in place of a tool's: with its answer, without one, or
# with what is lacking for it.
FINAL_ANSWER, FAIL_TASK, LACKING = "final_answer", "fail_task", "lacking"
ENDS = frozenset({FINAL_ANSWER, FAIL_TASK, LACKING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """The model's decision to call these tools. `log` is its reply as the conversation repeats
    it."""

    calls: tuple[ToolCall, ...]
    thought: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The model's decision to end with this answer. `log` is the model's reply in the
    form in which a later prompt repeats it."""

    output: str
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The model's decision to give up, for this reason, or because this is lacking. `log` is the
    model's reply in the form in which a later prompt repeats it, and `text` what it said beside the
    call, which may be a part of the answer."""

    reason: str
    log: str = ""
    text: str = ""


AgentDecision = Act | Finish | Fail


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStep:
    """One decision of the model, and the observations of its calls, in the order of the calls. `n`
    counts from 1.

    `origins` names every source in the prompt of this step, the model, and the sources of the
    observations. `is_cut`: the reply was cut off at its maximum length every time.
    """

    n: int
    decision: AgentDecision
    observations: tuple[Observation, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    origins: tuple[str, ...] = ()
    is_cut: bool = False

    # each request looks all of its steps up in a cache, and their decisions tell them apart
    def __hash__(self) -> int:
        return hash((self.n, self.decision))


class Stopped(StrEnum):
    """Why a run ended."""

    FINISH = "finish"
    FAIL = "fail"
    MAX_STEPS = "max_steps"
    MAX_TIME = "max_time"
    MAX_ERRORS = "max_errors"
    REPEATED = "repeated"


class AtLimit(StrEnum):
    """What an agent does when its limit of steps, time or equal calls is reached."""

    FORCE = "force"  # end at once, with a fixed sentence in place of the answer
    GENERATE = "generate"  # ask the model once more, without tools


MAX_STOP_WORDS = 2  # endpoints accept four, two of which the text protocol uses

Trim = Callable[[Sequence[AgentStep]], Sequence[AgentStep]]


OnMalformed = bool | str | Callable[[str], str]
"""What happens after a reply that cannot be read. True: the model is told what was expected, and
asked again. A text: the model is told this text instead. A function: it gets what was expected, and
returns the text. False: the run ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBounds:
    """Where a run must stop; 0 means no limit.

    Attributes:
        max_errors: the run ends after so many steps in a row whose calls all failed.
        on_malformed: what happens after a reply that cannot be read. A reply that is empty or cut
            off is always asked for again.
        trim: chooses the steps that the model is shown; the result of the run always has all of
            them.
        stop_words: a reply should also end before the first of these words; at most
            `MAX_STOP_WORDS`, besides those of the protocol.
    """

    max_steps: int = 8
    max_errors: int = 3
    max_time_s: float = 0.0
    max_parallel: int = 4
    max_repeats: int = 3
    max_output_tokens: int = 2000
    at_limit: AtLimit = AtLimit.GENERATE
    on_malformed: OnMalformed = True
    trim: Trim | None = None
    stop_words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Generic[T]):
    """The outcome of a run. `text` is the answer as the model wrote it; if it is empty, `detail`
    says why. If the model gave up, `detail` is its reason, or what is lacking, and `text` what it
    said beside that.

    Attributes:
        unread: the last reply, if the run ended because no reply could be read.
        values: if a type was asked for, the answer as a value of that type, in a tuple; an empty
            tuple if there is no such answer. None if no type was asked for.
        origins: every source in any prompt of the run, or in the outcome of any of its calls.
        messages: the conversation, including the answer; pass it as `history` with the next
            question.
    """

    text: str
    stopped: Stopped
    detail: str = ""
    steps: tuple[AgentStep, ...]
    usage: Usage = field(default_factory=Usage)
    origins: tuple[str, ...] = field(default=(), repr=False)
    values: tuple[T, ...] | None = None
    messages: tuple[Message, ...] = field(default=(), repr=False)
    unread: str = field(default="", repr=False)

    @property
    def output(self) -> T:
        """The answer: its text or, if a type was asked for, the value of that type.

        Raises:
            NoAnswerError: a type was asked for, and the answer has no value of it.
        """
        if self.values is None:
            return cast(T, self.text)
        if not self.values:
            raise NoAnswerError(
                f"the agent ended ({self.stopped}) without an answer of the requested type",
                why=self.detail,
            )
        return self.values[0]

    def __str__(self) -> str:
        return self.text or self.detail


# --------------------------------------------------------------------------------------------------
# What an executor reports while it works, in this order (`*`: repeated): started, (asked, decided,
# (tool started, tool ended)*, step ended)*, ended.
#
# Signals are not stored; what must be stored is in the journal.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAsked:
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDecided:
    """What the model decided in step `n`, and the prompt as it was sent last."""

    n: int
    decision: AgentDecision
    prompt: Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """Call `m` (counted from 1) of step `n` starts. All calls of a parallel batch are reported as
    started before any of them ends."""

    n: int
    m: int
    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnded:
    n: int
    m: int
    call: ToolCall
    observation: Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded:
    step: AgentStep


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    run: Run[Any]


Signal = RunStarted | ModelAsked | ModelDecided | ToolStarted | ToolEnded | StepEnded | RunEnded
