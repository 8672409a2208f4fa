"""The command `babyagi`: its commands, what its bare form means, and how it fails."""

from __future__ import annotations

import difflib
import errno
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from types import FrameType

import click
from click.shell_completion import CompletionItem

from babyagi import __version__
from babyagi.cli import (
    ask,
    commands,
    completion,
    inbox,
    index,
    lists,
    looking,
    objectives,
    report,
    steering,
    toolbox,
    trusting,
)
from babyagi.cli.exits import ExitCode, code_of_error
from babyagi.cli.text import Style, echo, warn
from babyagi.errors import (
    BabyagiError,
    ContextTooLongError,
    CredentialsError,
    EndlessAnswerError,
    IndexUnavailableError,
    LimitReachedError,
    ModelRejectedError,
    ModelUnavailableError,
    NotFoundError,
    ObjectiveStoppedError,
    RequestRefusedError,
    SettingsError,
    StoreUnavailableError,
    StoreUnusableError,
)
from babyagi.next_command import quoted

Items = list[CompletionItem]

HELP_FLAGS = ("-h", "--help")
SURELY_MEANT = 0.75  # of the first word of several, which may as well begin an objective
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
    objectives.objectives,
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
    toolbox.mcp,
    commands.config,
    trusting.trust,
    commands.doctor,
    commands.guide,
    completion.completion,
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


def complete_help(context: click.Context, _param: click.Parameter, typed: str) -> Items:
    """Commands, and those of the group that the words before name."""
    found = _walk(tuple(context.params.get("words") or ()))
    command = babyagi if found is None else found.command
    names = list(command.commands) if isinstance(command, click.Group) else []
    return [CompletionItem(name) for name in names if name.startswith(typed)]


@babyagi.command("help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1, shell_complete=complete_help)
def help_(words: tuple[str, ...]) -> None:
    """Show the help of a command, or of all.

    The name of a page of the guide shows that page.
    """
    from babyagi.cli.about import list_topics, read_page

    pages = dict(list_topics())
    found = _walk(words)
    if found is None and len(words) == 1 and words[0] in pages:
        echo(read_page(words[0]).rstrip("\n"))
        return
    if found is None:
        raise click.UsageError(no_help(words, pages), click.Context(babyagi, info_name="babyagi"))
    echo(found.command.get_help(found))
    if found.command is commands.guide:
        echo(f"\nPages: {', '.join(pages)}")
    elif words and words[0] in pages:
        echo(f"\nMore: babyagi guide {words[0]}")


def no_help(words: Sequence[str], pages: Iterable[str]) -> str:
    near = difflib.get_close_matches(words[0], [*babyagi.commands, *pages], n=1)
    return f"there is no command {' '.join(words)!r}" + (
        f"; did you mean `babyagi help {near[0]}`?" if near else "; babyagi help lists them"
    )


def _walk(words: Sequence[str]) -> click.Context | None:
    """The context of the command that the words name, None where there is none."""
    context = click.Context(babyagi, info_name="babyagi", help_option_names=list(HELP_FLAGS))
    for word in words:
        group = context.command
        command = group.get_command(context, word) if isinstance(group, click.Group) else None
        if command is None:
            return None
        context = click.Context(command, parent=context, info_name=word)
    return context


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
        near = difflib.get_close_matches(
            text.split()[0], babyagi.commands, n=1, cutoff=SURELY_MEANT
        )
        or_else = f"; or did you mean `babyagi {near[0]}`?" if near else ""
        return f"to run an objective type: babyagi run {quoted(text)}{or_else}"
    near = difflib.get_close_matches(text, babyagi.commands, n=1)
    meant = (
        f"did you mean `babyagi {near[0]}`?"
        if near
        else f"to run an objective type: babyagi run {quoted(text)}"
    )
    return f"there is no command {text!r}; {meant}"


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
        case BrokenPipeError() | OSError(errno=errno.EIO):  # the reader, or the terminal, is gone
            _silence_stdout()
            return BROKEN_PIPE_CODE
        case _:
            return _tell_crash(error)


FIX_BY_ERROR: tuple[tuple[type[BabyagiError], str], ...] = (
    (StoreUnavailableError, "the same again in a moment; babyagi doctor says what is wrong"),
    (IndexUnavailableError, "babyagi doctor; when it can be used: babyagi index rebuild"),
    (ModelUnavailableError, "the same again in a moment; babyagi doctor asks the model"),
    (CredentialsError, "set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server"),
    (ModelRejectedError, "set LLM_MODEL to a model that is served there; babyagi config shows it"),
    (RequestRefusedError, "put it in other words, or set LLM_MODEL to another model"),
    (
        ContextTooLongError,
        "set BABYAGI_CONTEXT_TOKENS lower, or LLM_MODEL to a model that takes more",
    ),
    (EndlessAnswerError, "set BABYAGI_MAX_OUTPUT_TOKENS lower, or LLM_MODEL to another model"),
    (
        StoreUnusableError,
        "babyagi doctor says what is wrong; babyagi journal verify looks at every row",
    ),
    (NotFoundError, "babyagi objectives"),
    (LimitReachedError, "babyagi extend raises a limit"),
    (ObjectiveStoppedError, "babyagi resume"),
    (SettingsError, "babyagi config shows every setting and where it comes from"),
)
"""What to type where an error itself does not say it: by what mends errors of its kind."""


def find_fix(error: BabyagiError) -> str:
    found = (fix for kind, fix in FIX_BY_ERROR if isinstance(error, kind))
    return next(found, "babyagi status, and babyagi doctor")


def tell_error(error: BabyagiError) -> None:
    """Say what happened, why we think so, what to type, and where to read more."""
    warn(f"babyagi: {error.what}", Style.RED)
    if error.why:
        warn(f"  because: {error.why}")
    warn(f"  try:     {error.fix or find_fix(error)}")
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
