"""Every error of this project, ordered by who can mend it.

BabyagiError
├── the model mends it: its text becomes the next message
│   ├── MalformedReplyError     a reply that could not be read
│   └── ToolError               a tool call that did not work
├── time mends it: a later try may work
│   ├── StoreUnavailableError   busy, locked, disk full
│   ├── IndexUnavailableError   the result store's index; the loop goes on without it
│   │   └── IndexOwnedElsewhereError   another process feeds it
│   └── ModelUnavailableError   outage, rate limit, cut connection
│       └── OverdueError        no whole answer in time
├── the task ends with it, the others go on
│   ├── ContextTooLongError     the prompt does not fit the model
│   ├── RequestRefusedError     this request can never work (content filter, refusal)
│   ├── EndlessAnswerError      an answer that is too long, or that does not end
│   └── NoAnswerError           an agent's run without an answer of the type that was asked for
├── a person mends it: four lines on stderr, an exit code, no traceback
│   ├── SettingsError           usage: a wrong flag, variable or file
│   ├── CredentialsError        no key, or a key that is refused
│   ├── ModelRejectedError      the endpoint refuses us: unknown model, no quota, wrong address
│   │   └── ToolsUnsupportedError   the model takes no tools; whoever can do without them goes on
│   ├── StoreUnusableError      a store that is damaged, newer than we are, or not writable
│   └── NotFoundError           no such objective, task or report
├── not a fault: the loop reads it and does what it says
│   ├── LimitReachedError       the next call does not fit under a limit
│   ├── ObjectiveStoppedError   paused or ended: no further call
│   ├── ParkedError             a person was asked; the task waits, its claim is given up
│   ├── LeaseLostError          somebody else holds this now
│   └── StaleOrderError         the list changed while the prioritizer was thinking
└── anything else is a programmer's, and is caught once, in `worker/serving.py`
"""

from typing import Any


class BabyagiError(Exception):
    """An error with what a person needs to go on.

    Args:
        what: what happened, with the value that caused it.
        why: why we think so (the measured fact, the server's words); empty when `what` says it all.
        fix: what to type; empty when there is nothing to type.
        guide: the page of `babyagi guide` that says more.
        may_be_billed: True when a request was sent that may have been worked on (a cut answer, a
            time-out).

    `said_usage` is what an answer that could not be read says that it cost, as it came; `billed`
    the same as a `Usage`.
    """

    said_usage: Any = None
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


class MalformedReplyError(BabyagiError):
    """A model's reply could not be read; its text says what was expected."""


class ToolError(BabyagiError):
    """A tool call did not work; one line for the model, without paths of this machine."""


class StoreUnavailableError(BabyagiError):
    """The task store cannot answer now: busy, locked, out of space."""


class IndexUnavailableError(BabyagiError):
    """The result store's index or its embedder cannot answer now."""


class IndexOwnedElsewhereError(IndexUnavailableError):
    """Another process owns the index, and feeds it."""


class ModelUnavailableError(BabyagiError):
    """The model cannot answer now.

    Args:
        retry_after_s: how long to wait before the next call, as the endpoint or its circuit breaker
            says.
        is_limit: True when the endpoint is up and limits us (429).
    """

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
    """A call was cut off at its deadline.

    Args:
        has_begun: its answer had begun to come; where the model answers something small meanwhile,
            it was the fault of this call.
    """

    def __init__(self, what: str, *, fix: str = "", has_begun: bool = False) -> None:
        super().__init__(what, fix=fix, may_be_billed=True)
        self.has_begun = has_begun


class ContextTooLongError(BabyagiError):
    """The prompt does not fit into the model's context."""


class RequestRefusedError(BabyagiError):
    """The endpoint or the model refuses this very request; sending it again cannot help."""


class EndlessAnswerError(BabyagiError):
    """An answer was longer than we take, was stopped because it only said the same or the prompt
    again, or was still coming at the deadline from a model that answers others; it is asked for
    once more."""


class NoAnswerError(BabyagiError):
    """A run ended without an answer of the type that was asked for; `why` says for what reason."""


class SettingsError(BabyagiError):
    """A flag, a variable or a file says something that cannot be."""


class CredentialsError(BabyagiError):
    """There is no key, or the endpoint refuses it."""


class ModelRejectedError(BabyagiError):
    """The endpoint refuses every request of this kind: unknown model, no quota, wrong address."""


class ToolsUnsupportedError(ModelRejectedError):
    """The endpoint takes no tools for this model. It may still answer a prompt that offers none."""


class StoreUnusableError(BabyagiError):
    """The store is damaged, newer than this program, or cannot be written."""


class NotFoundError(BabyagiError):
    """There is no such objective, task or report."""


class LimitReachedError(BabyagiError):
    """The next call does not fit under a limit.

    Args:
        limit: `tasks`, `calls`, `tokens`, `cost` or `time`.
        is_final: False while calls in flight hold a reservation that may come back.
    """

    def __init__(self, what: str, *, limit: str, is_final: bool, fix: str = "") -> None:
        super().__init__(what, fix=fix, guide="limits")
        self.limit = limit
        self.is_final = is_final


class ObjectiveStoppedError(BabyagiError):
    """The objective is paused or ended; the next call must not be made."""


class ParkedError(BabyagiError):
    """A person was asked: the task waits, and whoever worked on it has given its claim up
    already."""


class LeaseLostError(BabyagiError):
    """The claim is no longer ours; nothing was recorded under it."""


class StaleOrderError(BabyagiError):
    """The list's order changed since it was read; nothing was changed."""


PERSON_MENDS = (
    CredentialsError,
    ModelRejectedError,
    SettingsError,
    StoreUnusableError,
    NotFoundError,
)
"""What no waiting mends."""


def first_error(error: BaseException) -> BaseException:
    """The first error inside a group, which is the one that ended the others."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
