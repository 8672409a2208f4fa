"""How the command line fails: four lines for what a person can mend, one line for what nobody
expected, never a traceback."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

import click

from babyagi.cli.exits import ExitCode, code_of_error
from babyagi.cli.text import Style, warn
from babyagi.errors import BabyagiError

BROKEN_PIPE_CODE = 141  # what a process has that SIGPIPE ended


class Terminated(KeyboardInterrupt):
    """SIGTERM outside a run, which drains on its own. An exception, so that the terminal is left as
    it was found."""


def run_guarded(args: list[str]) -> int:
    """Run the command line and return its exit code, every error told on standard error."""
    from babyagi.cli.root import run_command_line

    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        return run_command_line(args)
    except BaseException as raised:
        return _tell(_single(raised))
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(_signal_number: int, _frame: FrameType | None) -> None:
    raise Terminated


def _single(error: BaseException) -> BaseException:
    """The first error inside a group, which is the one that ended the others."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _tell(error: BaseException) -> int:
    match error:
        case BabyagiError():
            tell_error(error)
            return code_of_error(error)
        case click.ClickException():
            return _tell_usage(error)
        case Terminated() | click.Abort(__cause__=Terminated()):
            return ExitCode.TERMINATED
        case KeyboardInterrupt() | click.Abort():
            warn("babyagi: interrupted; what was stored is kept, and `babyagi resume` goes on")
            return ExitCode.INTERRUPTED
        case BrokenPipeError():
            _silence_stdout()
            return BROKEN_PIPE_CODE
        case _:
            return _tell_crash(error)


def tell_error(error: BabyagiError) -> None:
    """Say what happened, why we think so, what to type, and where to read more."""
    warn(f"babyagi: {error.what}", Style.RED)
    if error.why:
        warn(f"  because: {error.why}")
    if error.fix:
        warn(f"  try:     {error.fix}")
    warn(f"  more:    babyagi guide {error.guide}".rstrip())


def _tell_usage(error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "babyagi"
    warn(f"babyagi: {error.format_message()}", Style.RED)
    if isinstance(error, click.UsageError):
        warn(f"  try:     {command} --help")
        warn("  more:    babyagi guide commands")
    return ExitCode.USAGE


def _tell_crash(error: BaseException) -> int:
    from babyagi.cli.logfile import record_crash

    path = record_crash(error)
    warn(
        (
            f"babyagi: unexpected {type(error).__name__}; nothing stored is lost; the traceback "
            f"is in {path}"
        ),
        Style.RED,
    )
    return ExitCode.UNEXPECTED


def _silence_stdout() -> None:
    """The reader is gone; keep the interpreter from flushing to it at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
