"""The command `babyagi`: its commands, what its bare form means, and how it fails."""

from __future__ import annotations

import difflib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import click

from babyagi import __version__
from babyagi.cli import (
    ask,
    commands,
    inbox,
    index,
    lists,
    looking,
    report,
    steering,
    toolbox,
    trusting,
)
from babyagi.cli.exits import ExitCode, code_of_error
from babyagi.cli.text import Style, echo, warn
from babyagi.errors import BabyagiError

HELP_FLAGS = ("-h", "--help")
ORIGINAL_FLAGS = {
    "instance_name",
    "cooperative_mode",
    "initial_task",
    "join_existing_objective",
    "gpt_4",
    "llama",
    "extra_env_files",
}


class Commands(click.Group):
    """A group that lists its commands in the order of their definition and knows what a mistyped
    one meant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            raise click.UsageError(what_was_meant([args[0]]), ctx)
        return super().resolve_command(ctx, args)


COMMANDS = (
    commands.demo,
    commands.run,
    commands.watch,
    ask.ask,
    commands.submit,
    commands.worker,
    commands.workers,
    lists.objectives,
    lists.status,
    lists.tasks,
    lists.results,
    looking.show,
    looking.why,
    looking.log,
    report.report,
    inbox.inbox,
    inbox.answer,
    inbox.approve,
    inbox.reject,
    commands.resume,
    steering.pause,
    steering.cancel,
    steering.extend,
    steering.retry,
    steering.delete,
    index.index,
    index.journal,
    commands.migrate,
    toolbox.tools,
    commands.config,
    trusting.trust,
    commands.doctor,
    commands.guide,
)


@click.group(
    cls=Commands,
    commands=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": list(HELP_FLAGS)},
)
@click.option("--version", is_flag=True, help="Print the version and end.")
@click.pass_context
def babyagi(context: click.Context, version: bool) -> int | None:
    """An autonomous task-loop daemon: an objective goes in, a report comes out.

    \b
    babyagi demo                  the real job on real files, without a key and without a network
    babyagi run "an objective"    with a model (OPENAI_API_KEY, or OPENAI_BASE_URL for a local one)
    babyagi resume                go on where it was
    babyagi guide                 read more

    Bare `babyagi` runs the OBJECTIVE of the environment or of .env; the original's flags (-n -m -t
    -j -4 -l -e) work as in `babyagi run`.
    """
    if version:
        echo(f"babyagi {__version__}")
        return None
    if context.invoked_subcommand is None:
        return commands.run_from_settings()
    return None


def run_command_line(args: Sequence[str]) -> int:
    """Run one command line and return its exit code. Errors are raised, not told."""
    try:
        code = babyagi.main(args=route(args), prog_name="babyagi", standalone_mode=False)
    except SystemExit as error:
        # click's way of saying that a completion was printed, or that the reader is gone
        if not error.code:
            return 0
        raise BrokenPipeError from error
    return code if isinstance(code, int) else 0


def route(args: Sequence[str]) -> list[str]:
    """Return the arguments with `run` put before those that mean it.

    Raises:
        click.UsageError: bare words that are no command and no run.
    """
    first = args[0] if args else ""
    if not args or first in babyagi.commands or first in (*HELP_FLAGS, "--version"):
        return list(args)
    context = click.Context(commands.run, info_name="babyagi", help_option_names=list(HELP_FLAGS))
    given, _, _ = commands.run.make_parser(context).parse_args(list(args))
    found = given.get("objective_words")
    words = found if isinstance(found, tuple) else ()
    if words and not _is_run(words, set(given)):
        raise click.UsageError(what_was_meant(words), click.Context(babyagi, info_name="babyagi"))
    return ["run", *args]


def _is_run(words: Sequence[str], flags: set[str]) -> bool:
    """Whether words beside flags are an objective: with a first task always, with another of the
    original's flags when they are no single word."""
    if words[0] in babyagi.commands:
        return False
    return "initial_task" in flags or (bool(flags & ORIGINAL_FLAGS) and " " in " ".join(words))


def what_was_meant(words: Sequence[str]) -> str:
    """Say why bare words are not run, and what may have been meant."""
    text = " ".join(words)
    if words[0] in babyagi.commands:
        return (
            f"flags go after the command: babyagi {words[0]} … (or babyagi run … for an "
            f"objective that begins with {words[0]!r})"
        )
    if " " in text:
        return f"to run an objective type: babyagi run {quoted(text)}"
    near = difflib.get_close_matches(text, babyagi.commands, n=1)
    meant = (
        f"did you mean `babyagi {near[0]}`?"
        if near
        else f"to run an objective type: babyagi run {quoted(text)}"
    )
    return f"there is no command {text!r}; {meant}"


def quoted(text: str) -> str:
    """The text as a shell takes it for one word."""
    return (
        '"'
        + "".join(f"\\{character}" if character in '"\\$`' else character for character in text)
        + '"'
    )


# --------------------------------------------------------------------------------------------------
# How the command line fails: four lines for what a person can mend, one line for what nobody
# expected, never a traceback.
# --------------------------------------------------------------------------------------------------

BROKEN_PIPE_CODE = 141  # what a process has that SIGPIPE ended


class Terminated(KeyboardInterrupt):
    """SIGTERM outside a run, which drains on its own. An exception, so that the terminal is left as
    it was found."""


def run_guarded(args: list[str]) -> int:
    """Run the command line and return its exit code, every error told on standard error."""
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
    from babyagi.cli.session import record_crash

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
