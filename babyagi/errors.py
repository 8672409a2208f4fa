"""Every error of this project, ordered by who can mend it.

BabyagiError
├── the model mends it: its text becomes the next message
│   ├── MalformedReplyError         a reply that could not be read
│   └── ToolError                   a tool call that did not work
├── time mends it: a later try may work
│   ├── StoreUnavailableError       busy, locked, disk full
│   ├── IndexUnavailableError       the result store's index; the loop goes on without it
│   ├── ModelUnavailableError       outage, rate limit, cut connection
│   │   └── OverdueError            no whole answer in time
│   └── MachineShortError           too many open files, or no memory or thread to be had
├── the task ends with it, the others go on
│   ├── ContextTooLongError         the prompt does not fit the model
│   ├── RequestRefusedError         this request can never work (content filter, refusal)
│   ├── EndlessAnswerError          an answer that is too long, or that does not end
│   └── NoAnswerError               an agent's run without an answer of the required type
├── a person mends it: four lines on stderr, an exit code, no traceback
│   ├── SettingsError               usage: a wrong flag, variable or file
│   │   └── RequestError                a request that cannot be read or is not allowed
│   ├── CredentialsError            no key, or a key that is refused
│   ├── ModelRejectedError          unknown model, no quota, wrong address
│   │   └── ToolsUnsupportedError   no tool support; a prompt without tools may work
│   ├── StoreUnusableError          damaged, newer than this program, or not writable
│   └── NotFoundError               the objective, task or report does not exist
├── nobody is at fault: the program catches it and changes course
│   ├── LimitReachedError           the next call does not fit under a limit
│   ├── ObjectiveStoppedError       paused or ended: no further call
│   ├── ParkedError                 a person was asked; the task waits, its claim is given up
│   └── LeaseLostError              another worker holds the claim now
└── any other error is a programmer's mistake, and is caught once, in `worker/serving.py`
"""

import errno
import re
from typing import Any

SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
NO_THREAD = "can't start new thread"  # all that Python says


class BabyagiError(Exception):
    """An error that tells a person what happened, why, and what to do. A traceback shows all three.

    Args:
        what: what happened, with the value that caused it.
        why: the cause or the evidence (a measured fact, the server's words); empty when `what` says
            it all.
        fix: what to type; empty when there is nothing to type.
        guide: the page of `babyagi guide` that says more.
        may_be_billed: True if the provider may charge for the call, because the request was sent (a
            cut answer, a time-out).

    `refusal` is what an endpoint reported, if its request may work without one of its parts.
    `said_usage` is the raw usage reported by an answer that could not be read; `billed` is the same
    usage as a `Usage`.
    """

    said_usage: Any = None
    refusal: Any = None
    billed: Any = None

    def __init__(
        self,
        what: str,
        *,
        why: str = "",
        fix: str = "",
        guide: str = "",
        may_be_billed: bool = False,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix
        self.guide = guide
        self.may_be_billed = may_be_billed
        for label, text in (("because", why), ("try", fix)):
            if text:  # a traceback shows the notes below the error's text
                self.add_note(f"  {label}: {text}")


class MalformedReplyError(BabyagiError):
    """A model's reply could not be read; the text says what was expected."""


class ToolError(BabyagiError):
    """A tool call failed. The text is one line for the model, without paths of this machine."""


class StoreUnavailableError(BabyagiError):
    """The task store cannot answer now: busy, locked, out of space."""


class IndexUnavailableError(BabyagiError):
    """The result store's index or its embedder cannot answer now. `is_owned_elsewhere`: another
    process has the index open and writes the results to it, so nothing is wrong."""

    is_owned_elsewhere = False


class ModelUnavailableError(BabyagiError):
    """The model cannot answer now.

    Args:
        retry_after_s: how long to wait before the next call, as the endpoint or its circuit breaker
            says.
        is_limit: True if the endpoint works and refused the call because of a rate limit (429).

    `is_unreached`: no connection to the endpoint was ever made in this process.
    """

    is_unreached = False

    def __init__(
        self,
        what: str,
        *,
        why: str = "",
        fix: str = "",
        may_be_billed: bool = False,
        retry_after_s: float | None = None,
        is_limit: bool = False,
    ) -> None:
        super().__init__(what, why=why, fix=fix, guide="models", may_be_billed=may_be_billed)
        self.retry_after_s = retry_after_s
        self.is_limit = is_limit


class OverdueError(ModelUnavailableError):
    """A call of a model was cut off at its deadline.

    Args:
        has_begun: True if part of the answer had arrived. The worker then sends the model a small
            test call, to find out whether there is an outage or this one answer is too long.
        server_lives: True if the server showed life when the call was cut off, so that there is no
            outage.
    """

    def __init__(
        self, what: str, *, fix: str = "", has_begun: bool = False, server_lives: bool = False
    ) -> None:
        super().__init__(what, fix=fix, may_be_billed=True)
        self.has_begun = has_begun
        self.server_lives = server_lives


class MachineShortError(BabyagiError):
    """The system opens no more files, or gives no more memory or threads, which is no fault of the
    work."""


class ContextTooLongError(BabyagiError):
    """The prompt does not fit into the model's context."""


class RequestRefusedError(BabyagiError):
    """The endpoint or the model refuses this request; sending it again cannot help."""


class EndlessAnswerError(BabyagiError):
    """An answer was too long, or was incomplete at the deadline although the model answers other
    calls. The call is made once more."""


class NoAnswerError(BabyagiError):
    """An agent's run ended without an answer of the required type; `why` gives the reason."""


class SettingsError(BabyagiError):
    """A flag, a variable or a file has an invalid value."""


class RequestError(SettingsError):
    """A program's request cannot be read or is not allowed.

    Args:
        status: the HTTP status of the answer.
    """

    def __init__(self, what: str, why: str = "", *, status: int = 422) -> None:
        super().__init__(what, why=why)
        self.status = status


class CredentialsError(BabyagiError):
    """There is no key, or the endpoint refuses it."""


class ModelRejectedError(BabyagiError):
    """The endpoint refuses every request of this kind: unknown model, no quota, wrong address."""


class ToolsUnsupportedError(ModelRejectedError):
    """The endpoint does not support tools for this model. The model may still answer a prompt
    without tools."""


class StoreUnusableError(BabyagiError):
    """The store is damaged, newer than this program, or cannot be written."""


class NotFoundError(BabyagiError):
    """The objective, task or report that was asked for does not exist."""


class LimitReachedError(BabyagiError):
    """The next call would exceed a limit.

    Args:
        limit: `tasks`, `calls`, `tokens`, `cost` or `time`.
        is_final: False if the call may fit later, because calls in flight may cost less than was
            reserved for them.
    """

    def __init__(self, what: str, *, limit: str, is_final: bool, fix: str = "") -> None:
        super().__init__(what, fix=fix, guide="limits")
        self.limit = limit
        self.is_final = is_final


class ObjectiveStoppedError(BabyagiError):
    """The objective is paused or ended; the next call must not be made."""


class ParkedError(BabyagiError):
    """A person was asked: the task waits, and the worker has released its claim."""


class LeaseLostError(BabyagiError):
    """This worker no longer holds its claim, so what it wanted to record was not recorded."""


def kind_of(error: type[BabyagiError]) -> str:
    """Return the name of a class of errors in the API: `not-found` for `NotFoundError`."""
    return re.sub("(?<!^)([A-Z])", r"-\1", error.__name__.removesuffix("Error")).lower()


def by_kind() -> dict[str, type[BabyagiError]]:
    """Return all classes of errors by their names in the API."""
    found, left = dict[str, type[BabyagiError]](), [BabyagiError]
    while left:
        found[kind_of(left[-1])] = left[-1]
        left += left.pop().__subclasses__()
    return found


FAULTS_OF_THE_TASK = (
    ContextTooLongError,
    RequestRefusedError,
    EndlessAnswerError,
    MalformedReplyError,
)
"""The errors that concern only one try of one task, and not the model or other tasks."""

PERSON_MENDS = (
    CredentialsError,
    ModelRejectedError,
    SettingsError,
    StoreUnusableError,
    NotFoundError,
)
"""The errors that only a person can mend; waiting does not help."""


def find_shortage(error: BaseException) -> MachineShortError | None:
    """Return the error to handle in the place of one that says only that this machine is short of
    something, and nothing about what was tried; None for any other."""
    if isinstance(error, MachineShortError):
        return error
    is_short = isinstance(error, OSError) and error.errno in SHORTAGES
    if is_short or (isinstance(error, RuntimeError) and str(error) == NO_THREAD):
        return MachineShortError(f"this machine is short of something: {error}")
    return None


def first_error(error: BaseException) -> BaseException:
    """Return the first error in an exception group, which caused the others to be cancelled. Return
    any other error unchanged."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


FIX_BY_ERROR: dict[type[BabyagiError], str] = {
    StoreUnavailableError: "try again in a moment; babyagi doctor shows the problem",
    IndexUnavailableError: "babyagi doctor shows the problem; once the index works again, run "
    "babyagi store rebuild",
    ModelUnavailableError: "try again in a moment; babyagi doctor checks the model",
    MachineShortError: "end other programs, or let this one open more files (ulimit -n)",
    CredentialsError: "set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server",
    ModelRejectedError: "set LLM_MODEL to a model that is served there; babyagi config shows it",
    RequestRefusedError: "rephrase what you ask for, or set LLM_MODEL to another model",
    ContextTooLongError: "set BABYAGI_CONTEXT_TOKENS lower, or LLM_MODEL to a model that takes "
    "more",
    EndlessAnswerError: "set BABYAGI_MAX_OUTPUT_TOKENS lower, or LLM_MODEL to another model",
    StoreUnusableError: "babyagi doctor shows the problem; babyagi store verify checks every row",
    NotFoundError: "babyagi show objectives lists what exists",
    LimitReachedError: "babyagi extend raises a limit",
    ObjectiveStoppedError: "babyagi resume continues it",
    RequestError: "send what the operation takes; GET /api/v1/openapi.json lists it",
    SettingsError: "babyagi config shows every setting and where it comes from",
}
"""What to type for an error without a `fix` of its own. The first class that matches is used."""


def find_fix(error: BabyagiError) -> str:
    """Return what to type: the error's own `fix`, else the default of its class."""
    if error.fix:
        return error.fix
    found = (fix for kind, fix in FIX_BY_ERROR.items() if isinstance(error, kind))
    return next(found, "babyagi status shows the objective; babyagi doctor looks for the problem")
