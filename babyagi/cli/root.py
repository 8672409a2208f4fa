"""The command `babyagi`: its subcommands, what it does without a subcommand, and how it reports
errors.

Most of a subcommand's work is in a module that is imported only when the subcommand is called.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections import UserDict
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import Any

import click

from babyagi import __version__
from babyagi.cli.exits import ExitCode, Terminated, code_of_error
from babyagi.cli.options import WrongUsage
from babyagi.cli.text import NO_ROOM, Style, echo, warn
from babyagi.errors import BabyagiError, SettingsError, find_fix, first_error
from babyagi.text import nearest, quoted

HELP_FLAGS = ("-h", "--help")
VERSION_FLAGS = ("-V", "--version")
LISTS_ALL = "babyagi.lists_all"  # in the context of a help text
# how similar the first of several words must be to a command's name; a less similar word is taken
# as the beginning of an objective
SURELY_MEANT = 0.75
ORIGINAL_FLAGS = set(
    "instance_name cooperative_mode initial_task join_existing_objective gpt_4 llama "
    "extra_env_files".split()
)


# in the order in which they are listed, a row for each subject: a command, and the module in
# which it has the same name
MODULES = {
    **dict.fromkeys(("demo", "run", "watch"), "run"),
    **{"ask": "ask", "submit": "run", "worker": "worker"},
    **{"serve": "worker", "schedule": "schedules", "status": "objectives", "show": "show"},
    **{"report": "report", "inbox": "inbox", "tasks": "objectives", "resume": "run"},
    **dict.fromkeys(("pause", "cancel", "extend"), "objectives"),
    **{"store": "store", "tools": "toolbox"},
    **dict.fromkeys(("config", "doctor", "guide"), "about"),
}


class Modules(UserDict[str, Any]):
    """The commands by name. The module of a command is imported when the command is asked for."""

    def __getitem__(self, name: str) -> Any:
        found = self.data[name]
        if isinstance(found, str):
            return getattr(import_module(f"babyagi.cli.{found}"), name)
        return found


class Commands(click.Group):
    """A command group that lists its commands in the order of their definition where `babyagi
    help` asks for all."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.meta.get(LISTS_ALL):
            super().format_commands(ctx, formatter)


@click.group(
    cls=Commands,
    commands=Modules(MODULES),
    invoke_without_command=True,
    context_settings={"help_option_names": list(HELP_FLAGS)},
)
@click.option(*VERSION_FLAGS, is_flag=True, help="Print the version and end.")
@click.pass_context
def babyagi(context: click.Context, version: bool) -> Any:
    """An autonomous task-loop daemon: an objective goes in, a report comes out.

    \b
    babyagi demo                  try it on real files, without a key and without a network
    babyagi run "an objective"    with a model (OPENAI_API_KEY, or OPENAI_BASE_URL for a local one)
    babyagi status                how far it is, and what to type next
    babyagi inbox                 what waits for an answer of yours
    babyagi resume                continue where it stopped
    babyagi guide                 the handbook
    babyagi help                  all commands; with a name, that command

    `babyagi` alone runs the objective in the variable OBJECTIVE, if the environment or .env sets
    it; the flags of the original BabyAGI (-n -m -t -j -4 -l -e) work as in `babyagi run`.
    """
    if version:
        echo(f"babyagi {__version__}")
    elif context.invoked_subcommand is None:
        from babyagi.cli.session import load
        from babyagi.settings.load import DEFAULT_SOURCE

        loaded = load()
        if loaded.settings.objective or loaded.sources["initial_task"] != DEFAULT_SOURCE:
            return context.invoke(babyagi.commands["run"])
        echo(context.get_help())
    return None


@babyagi.command("help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
def help_(words: tuple[str, ...]) -> None:
    """Show the help of a command, or of all."""
    words = tuple(word for word in rename(words) if not word.startswith("--"))
    found = _walk(words)
    if words and found.parent is None:
        raise not_understood(words[:1], found)
    found.meta[LISTS_ALL] = True
    echo(found.command.get_help(found))


def _walk(words: Sequence[str]) -> click.Context:
    """Return the click context of the command with which the words begin, such as `tasks add`."""
    context = click.Context(babyagi, info_name="babyagi", help_option_names=list(HELP_FLAGS))
    for word in words:
        group = context.command
        command = group.get_command(context, word) if isinstance(group, click.Group) else None
        if command is None:
            break
        context = click.Context(command, parent=context, info_name=word)
    return context


def route(args: Sequence[str]) -> list[str]:
    """Return the command line's arguments, with `run` put before them if they have no command but
    describe a run, as in the original BabyAGI: a flag gives a first task, or there are several
    words and any flag of the original.

    Raises:
        click.UsageError: the arguments neither begin with a command nor describe a run.
    """
    first = args[0] if args else ""
    if not args or first in babyagi.commands or first in (*HELP_FLAGS, *VERSION_FLAGS):
        return list(args)
    context = _walk(["run"])
    try:
        given, _, _ = context.command.make_parser(context).parse_args(list(args))
    except click.NoSuchOption:
        if first.startswith("-"):
            raise
        raise not_understood(args, _walk(())) from None
    found = given.get("objective_words")
    words = found if isinstance(found, tuple) else ()
    is_run = "initial_task" in given or (given.keys() & ORIGINAL_FLAGS and " " in " ".join(words))
    if words and not is_run:
        raise not_understood(words, _walk(()))
    return ["run", *args]


def not_understood(words: Sequence[str], context: click.Context) -> click.UsageError:
    """Return an error that says why the words are no command, and what to type instead."""
    text, first = " ".join(words), words[0]
    run_it = f"babyagi run {quoted(text)}"
    meant = _command_meant(first, cutoff=SURELY_MEANT if " " in text else 0.6)
    guess = f"did you mean `babyagi {meant}`?" if meant else ""
    if " " in text:
        or_guess = f"; or {guess}" if guess else ""
        return WrongUsage(f"to run an objective type: {run_it}{or_guess}", run_it, context)
    what = f"there is no command {text!r}; {guess or f'to run an objective type: {run_it}'}"
    return WrongUsage(what, f"babyagi {meant}" if meant else run_it, context)


def _command_meant(typed: str, *, cutoff: float = 0.6) -> str:
    """Return what to type after `babyagi` for a mistyped name of a command, also of one in a family
    or one that was renamed; '' if none is near enough."""
    within = {
        name: f"{family.name} {name}"
        for family in babyagi.commands.values()
        if isinstance(family, click.Group)
        for name in family.commands
    }
    before = {old[-1]: " ".join(new) for old, new in RENAMED.items()}
    known = {**within, **before, **{name: name for name in babyagi.commands}}
    return known.get(nearest(typed.casefold(), known, cutoff=cutoff), "")


# -- names of commands that were renamed: they still do what they did, and a line says today's name
# --------------------------------------------------------------------------------------------------

# by the words that were typed: the words to type
RENAMED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("answer",): ("inbox", "answer"),
    ("approve",): ("inbox", "approve"),
    ("delete",): ("store", "delete"),
    ("index",): ("store", "verify", "--index"),
    ("index", "check"): ("store", "verify", "--index"),
    ("index", "rebuild"): ("store", "rebuild"),
    ("index", "status"): ("store", "verify", "--index"),
    ("journal",): ("store", "verify"),
    ("journal", "verify"): ("store", "verify"),
    ("log",): ("show", "log"),
    ("mcp",): ("tools",),
    ("mcp", "list"): ("tools",),
    ("mcp", "test"): ("tools", "test"),
    ("memory",): ("show", "memory"),
    ("memory", "forget"): ("store", "delete", "--memory"),
    ("memory", "list"): ("show", "memory"),
    ("memory", "show"): ("show", "memory"),
    ("metrics",): ("store", "metrics"),
    ("migrate",): ("store", "migrate"),
    ("objectives",): ("show", "objectives"),
    ("objectives", "list"): ("show", "objectives"),
    ("objectives", "prune"): ("store", "delete", "--old"),
    ("open",): ("serve", "open"),
    ("reject",): ("inbox", "reject"),
    ("results",): ("show", "results"),
    ("results", "list"): ("show", "results"),
    ("results", "search"): ("show", "results"),
    ("retry",): ("tasks", "retry"),
    ("schedule", "list"): ("schedule",),
    ("schedule", "show"): ("schedule",),
    ("tasks", "list"): ("tasks",),
    ("trust",): ("config", "trust"),
    ("why",): ("show",),
    ("workers",): ("show", "workers"),
}


def rename(args: Sequence[str]) -> list[str]:
    """Return the command line's arguments with today's name of a command that was renamed. What to
    type is said on standard error."""
    for n in (2, 1):
        if new := RENAMED.get(tuple(args[:n])):
            warn(f"babyagi {' '.join(args[:n])} is now: babyagi {' '.join(new)}", Style.DIM)
            return [*new, *args[n:]]
    return [*args]


# --------------------------------------------------------------------------------------------------
# How the command line reports errors: in four lines if a person can mend the error, in one line if
# it was unexpected, never as a traceback.
# --------------------------------------------------------------------------------------------------

BROKEN_PIPE_CODE = 141  # the exit code of a process that was ended by SIGPIPE


def run_guarded(args: list[str]) -> int:
    """Run the command line, print any error on standard error, and return the exit code."""
    _open_closed_streams()
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        args = rename(args)
        code = babyagi.main(args=route(args), prog_name="babyagi", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SystemExit as error:
        # click raises this with code 0 after a completion, with 1 if the reader of a pipe is gone
        return _tell(BrokenPipeError()) if error.code else 0
    except BaseException as raised:
        if isinstance(raised, click.UsageError) and raised.ctx is None:
            raised.ctx = _walk(args)
        return _tell(first_error(raised))
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(_signal_number: int, _frame: FrameType | None) -> None:
    raise Terminated


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
            warn("babyagi: interrupted; what was stored is kept, and `babyagi resume` continues it")
            return ExitCode.INTERRUPTED
        case BrokenPipeError() | OSError(errno=errno.EIO):  # the reader, or the terminal, is gone
            return BROKEN_PIPE_CODE
        case OSError(filename=None) if error.errno in NO_ROOM:
            return _tell(
                SettingsError(
                    "standard output cannot be written",
                    why=f"{error.strerror}; nothing stored is lost",
                    fix="make room where the output goes, or send it elsewhere, then type the same "
                    "again",
                    guide="report",
                )
            )
        case _:
            return _tell_crash(error)


def tell_error(error: BabyagiError) -> None:
    """Print an error: what happened, why, what to type, and which page of the guide to read."""
    warn(f"babyagi: {error.what}", Style.RED)
    if error.why:
        warn(f"  because: {error.why}")
    warn(f"  try:     {find_fix(error)}")
    warn(f"  more:    babyagi guide {error.guide}".rstrip())


def _tell_usage(error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "babyagi"
    # a group was called without a command
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        warn(error.format_message())
        return ExitCode.USAGE
    warn(f"babyagi: {error.format_message()}", Style.RED)
    if isinstance(error, click.UsageError):
        warn(f"  try:     {getattr(error, 'fix', '') or f'{command} --help'}")
        warn("  more:    babyagi guide commands")
    return ExitCode.USAGE


def _tell_crash(error: BaseException) -> int:
    from babyagi.cli.session import record_crash

    what = f"unexpected {type(error).__name__}; nothing stored is lost"
    warn(f"babyagi: {what}; the traceback is in {record_crash(error)}", Style.RED)
    return ExitCode.UNEXPECTED


def _open_closed_streams() -> None:
    """Open /dev/null in the place of each standard stream that the caller closed. Otherwise the
    next file that is opened, such as the task store, would get the stream's file descriptor, and
    output would be written into it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 (open to the end)
