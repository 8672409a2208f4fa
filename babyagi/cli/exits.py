"""Exit codes: what a script or an init system learns about how the program ended."""

from __future__ import annotations

import signal
from enum import IntEnum

from babyagi import errors
from babyagi.tasks import Objective, StopReason


class ExitCode(IntEnum):
    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    LIMIT = 3
    CREDENTIALS = 4
    WAITING = 5
    FAILED = 6
    STORE = 7
    NOT_FOUND = 8
    CANCELLED = 130
    INTERRUPTED = 128 + signal.SIGINT
    TERMINATED = 128 + signal.SIGTERM


_CODE_BY_REASON = {
    **dict.fromkeys((StopReason.FINISHED, StopReason.OBJECTIVE_MET), ExitCode.OK),
    **{reason: ExitCode.LIMIT for reason in StopReason if reason.startswith("limit:")},
    **dict.fromkeys((StopReason.UNMET, StopReason.STALLED, StopReason.FAILED), ExitCode.FAILED),
    StopReason.WAITING: ExitCode.WAITING,
    StopReason.CANCELLED: ExitCode.CANCELLED,
}

_ERRORS_BY_CODE: dict[ExitCode, tuple[type[errors.BabyagiError], ...]] = {
    ExitCode.USAGE: (errors.SettingsError, errors.ObjectiveStoppedError),
    ExitCode.LIMIT: (errors.LimitReachedError,),
    ExitCode.CREDENTIALS: (errors.CredentialsError,),
    ExitCode.FAILED: (
        errors.MachineShortError,
        errors.ModelRejectedError,
        errors.ModelUnavailableError,
    ),
    ExitCode.STORE: (
        errors.IndexUnavailableError,
        errors.StoreUnavailableError,
        errors.StoreUnusableError,
    ),
    ExitCode.NOT_FOUND: (errors.NotFoundError,),
}


def code_of_objective(objective: Objective) -> int:
    """Return the exit code of a command that worked on the objective: that of the stop reason,
    else 0 (such as for a paused objective)."""
    reason = objective.stop_reason
    return int(_CODE_BY_REASON[reason] if reason is not None else ExitCode.OK)


def code_of_error(error: errors.BabyagiError) -> int:
    """Return the exit code for an error; 1 if its class has none, because such an error should
    never reach the command line."""
    found = (code for code, kinds in _ERRORS_BY_CODE.items() if isinstance(error, kinds))
    return int(next(found, ExitCode.UNEXPECTED))


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM by commands that have no running work to wait for. It is an exception, so
    that the terminal is restored on the way out."""
