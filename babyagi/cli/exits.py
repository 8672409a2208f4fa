"""Exit codes: what a script or an init system learns about how the program ended."""

from __future__ import annotations

import signal
from enum import IntEnum
from typing import TYPE_CHECKING

from babyagi.errors import (
    BabyagiError,
    CredentialsError,
    IndexUnavailableError,
    LimitReachedError,
    ModelRejectedError,
    ModelUnavailableError,
    NotFoundError,
    ObjectiveStoppedError,
    SettingsError,
    StoreUnavailableError,
    StoreUnusableError,
)
from babyagi.tasks import Objective, StopReason

if TYPE_CHECKING:
    from babyagi.react.steps import Stopped


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
    StopReason.FINISHED: ExitCode.OK,
    StopReason.OBJECTIVE_MET: ExitCode.OK,
    StopReason.LIMIT_TASKS: ExitCode.LIMIT,
    StopReason.LIMIT_CALLS: ExitCode.LIMIT,
    StopReason.LIMIT_TOKENS: ExitCode.LIMIT,
    StopReason.LIMIT_COST: ExitCode.LIMIT,
    StopReason.LIMIT_TIME: ExitCode.LIMIT,
    StopReason.WAITING: ExitCode.WAITING,
    StopReason.UNMET: ExitCode.FAILED,
    StopReason.STALLED: ExitCode.FAILED,
    StopReason.FAILED: ExitCode.FAILED,
    StopReason.CANCELLED: ExitCode.CANCELLED,
}

_CODE_BY_ERROR: dict[type[BabyagiError], ExitCode] = {
    SettingsError: ExitCode.USAGE,
    CredentialsError: ExitCode.CREDENTIALS,
    ModelRejectedError: ExitCode.FAILED,
    ModelUnavailableError: ExitCode.FAILED,
    IndexUnavailableError: ExitCode.STORE,
    StoreUnavailableError: ExitCode.STORE,
    StoreUnusableError: ExitCode.STORE,
    NotFoundError: ExitCode.NOT_FOUND,
    ObjectiveStoppedError: ExitCode.USAGE,
    LimitReachedError: ExitCode.LIMIT,
}


def code_of_objective(objective: Objective, *, stopped_by_signal: int | None = None) -> int:
    """Return the exit code of a command that worked on the objective: 128 plus the number of the
    signal if a signal stopped it before the report was written, else the code of the stop reason,
    else 0 (such as for a paused objective)."""
    if stopped_by_signal and not objective.has_report:
        return 128 + stopped_by_signal
    return int(
        _CODE_BY_REASON[objective.stop_reason] if objective.stop_reason is not None else ExitCode.OK
    )


def code_of_run(stopped: Stopped) -> ExitCode:
    """Return the exit code of `babyagi ask`, from the reason why the agent stopped."""
    from babyagi.react.steps import Stopped

    if stopped is Stopped.FINISH:
        return ExitCode.OK
    return ExitCode.LIMIT if stopped in (Stopped.MAX_STEPS, Stopped.MAX_TIME) else ExitCode.FAILED


def code_of_error(error: BabyagiError) -> int:
    """Return the exit code for an error; 1 if its class has none, because such an error should
    never reach the command line."""
    return int(
        next(
            (code for kind, code in _CODE_BY_ERROR.items() if isinstance(error, kind)),
            ExitCode.UNEXPECTED,
        )
    )


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM by commands that have no running work to wait for. It is an exception, so
    that the terminal is restored on the way out."""
