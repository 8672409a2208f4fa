"""The command `babyagi`: its subcommands, what it does without a subcommand, and how it reports
errors.

Most of a subcommand's work is in a module that is imported only when the subcommand is called.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import shlex
import signal
import sys
from collections import UserDict
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import click

from babyagi import __version__
from babyagi.cli.exits import ExitCode, Terminated, code_of_error
from babyagi.cli.options import Family, WrongUsage, wrong_usage
from babyagi.cli.renamed import RENAMED, rename
from babyagi.cli.text import NO_ROOM, Style, echo, warn
from babyagi.errors import BabyagiError, SettingsError, find_fix, first_error
from babyagi.reporting.next_command import quoted
from babyagi.settings.fields import declared_fields
from babyagi.text import nearest


def run_from_settings() -> int:
    """Do what `babyagi` does without a command: run the OBJECTIVE of the environment, or print what
    can be typed if there is none."""
    from babyagi.cli.report import Output
    from babyagi.cli.run import run_objective
    from babyagi.cli.session import load
    from babyagi.settings.load import DEFAULT_SOURCE

    loaded = load()
    if not loaded.settings.objective and loaded.sources["initial_task"] == DEFAULT_SOURCE:
        for line in HINTS:
            echo(line)
        return ExitCode.OK
    return run_objective({}, always_new=False, output=Output())


HINTS = (
    "babyagi works on an objective with a language model and tools, and ends with a report.",
    "",
    "  babyagi demo                  see it work, without a key and without a network",
    '  babyagi run "an objective"    let a model work; needs OPENAI_API_KEY, or OPENAI_BASE_URL',
    "                                for a server of your own",
    "  babyagi guide start           the first steps, page by page",
    "",
    'All commands: babyagi help. OBJECTIVE="…" babyagi runs that objective.',
)


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
    **{"serve": "serve", "schedule": "schedules", "status": "objectives", "show": "show"},
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
    help` asks for all, and suggests a command if a name is mistyped."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.meta.get(LISTS_ALL):
            super().format_commands(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            raise not_understood([args[0]], ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands,
    commands=Modules(MODULES),
    invoke_without_command=True,
    context_settings={"help_option_names": list(HELP_FLAGS)},
)
@click.option(*VERSION_FLAGS, is_flag=True, help="Print the version and end.")
@click.pass_context
def babyagi(context: click.Context, version: bool) -> int | None:
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
        return run_from_settings()
    return None


@babyagi.command("help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
def help_(words: tuple[str, ...]) -> None:
    """Show the help of a command, or of all.

    With the name of a page of the guide, show that page.
    """
    from babyagi.cli.about import list_topics, show_topic

    pages = dict(list_topics())
    words = tuple(word for word in rename(words) if not word.startswith("--"))
    found = _walk(words)
    if found is not None:
        found.meta[LISTS_ALL] = True
    if found is None and len(words) == 1 and words[0] in pages:
        show_topic(words[0])
        return
    if found is None:
        raise no_help(words, pages)
    echo(found.command.get_help(found))
    if found.command.name == "guide":
        echo(f"\nPages: {', '.join(pages)}")
    elif words and words[0] in pages:
        echo(f"\nMore: babyagi guide {words[0]}")


def no_help(words: Sequence[str], pages: Iterable[str]) -> click.UsageError:
    """Return the error that `babyagi help` does not know the words, with a suggestion."""
    near = _command_meant(words[0]) or nearest(words[0], pages)
    said = f"; did you mean `babyagi help {near}`?" if near else "; babyagi help lists them"
    what = f"there is no command {' '.join(words)!r}{said}"
    context = click.Context(babyagi, info_name="babyagi")
    return wrong_usage(what, f"babyagi help {near}".rstrip(), context)


def _walk(words: Sequence[str]) -> click.Context | None:
    """Return the click context of the command that the words name, such as `tasks add`; None if
    there is no such command."""
    context = click.Context(babyagi, info_name="babyagi", help_option_names=list(HELP_FLAGS))
    for word in words:
        group = context.command
        command = group.get_command(context, word) if isinstance(group, click.Group) else None
        if command is None:
            return None
        context = click.Context(command, parent=context, info_name=word)
    return context


def route(args: Sequence[str]) -> list[str]:
    """Return the command line's arguments, with `run` put before them if they have no command but
    describe a run, as in the original BabyAGI.

    Raises:
        click.UsageError: the arguments neither begin with a command nor describe a run.
    """
    first = args[0] if args else ""
    if not args or first in babyagi.commands or first in (*HELP_FLAGS, *VERSION_FLAGS):
        return list(args)
    here = click.Context(babyagi, info_name="babyagi", help_option_names=list(HELP_FLAGS))
    run = babyagi.commands["run"]
    context = click.Context(run, info_name="babyagi", help_option_names=list(HELP_FLAGS))
    try:
        given, _, _ = run.make_parser(context).parse_args(list(args))
    except click.NoSuchOption:
        if first.startswith("-"):
            raise
        raise not_understood(args, here) from None
    found = given.get("objective_words")
    words = found if isinstance(found, tuple) else ()
    if words and not _is_run(words, set(given)):
        raise not_understood(words, here)
    return ["run", *args]


def _is_run(words: Sequence[str], flags: set[str]) -> bool:
    """Return whether the words are an objective to run, and not a mistyped command. They are an
    objective if a flag gives a first task, or if there are several words and any flag of the
    original BabyAGI. `flags`: the names of the typed flags."""
    if words[0] in babyagi.commands:
        return False
    return "initial_task" in flags or (bool(flags & ORIGINAL_FLAGS) and " " in " ".join(words))


def not_understood(words: Sequence[str], context: click.Context) -> click.UsageError:
    """Return an error that says why the words are no command, and what to type instead."""
    text, first = " ".join(words), words[0]
    run_it = f"babyagi run {quoted(text)}"
    if first in babyagi.commands:
        what = (
            f"flags go after the command: babyagi {first} … (or babyagi run … for an "
            f"objective that begins with {first!r})"
        )
        return wrong_usage(what, f"babyagi {first} --help", context)
    meant = _command_meant(first, cutoff=SURELY_MEANT if " " in text else 0.6)
    if not meant:
        said = "" if " " in text else f"there is no command {text!r}; "
        return wrong_usage(f"{said}to run an objective type: {run_it}", run_it, context)
    guess = f"did you mean `babyagi {meant}`?"
    is_misspelt = meant in babyagi.commands and first.casefold() not in OTHER_WORDS
    if " " in text and not (is_misspelt or _takes(meant, words[1:])):
        return wrong_usage(f"to run an objective type: {run_it}; or {guess}", run_it, context)
    what = f"there is no command {first!r}; {guess}"
    return wrong_usage(what, _whole_command(meant, words[1:]), context)


# the words that other programs have for a command, and what they are called here
OTHER_WORDS = {
    **dict.fromkeys(("ls", "list", "ps", "jobs", "history"), "show objectives"),
    **dict.fromkeys(("start", "exec", "go"), "run"),
    **dict.fromkeys(("stop", "suspend"), "pause"),
    **dict.fromkeys(("kill", "abort", "end"), "cancel"),
    **dict.fromkeys(("continue", "restart"), "resume"),
    **dict.fromkeys(("rm", "remove"), "store delete"),
    **dict.fromkeys(("init", "setup", "quickstart", "tutorial"), "guide start"),
    **dict.fromkeys(("man", "docs"), "guide"),
    **dict.fromkeys(("login", "auth"), "guide models"),
    **dict.fromkeys(("env", "settings"), "config"),
    **dict.fromkeys(("check", "health"), "doctor"),
    **dict.fromkeys(("board", "dashboard", "ui"), "serve open"),
    **dict.fromkeys(("chat", "agent"), "ask"),
    **dict.fromkeys(("example", "examples", "try"), "demo"),
    **dict.fromkeys(("info", "state"), "status"),
    **dict.fromkeys(("search", "find"), "show results"),
    "cron": "schedule",
    "completion": "guide commands",
    "daemon": "worker",
    "service": "guide schedules",
    "version": "--version",
}


def _command_meant(typed: str, *, cutoff: float = 0.6) -> str:
    """Return what to type after `babyagi` for a mistyped word, a command of a family, an option, or
    a word of other programs; '' if none is near enough."""
    word, known = typed.casefold(), _known_names()
    if word in known:
        return known[word]
    swapped = next((name for name in known if sorted(name) == sorted(word)), "")
    options = [option for option in _options() if option.endswith(f" --{word}")]
    if len(options) == 1 and not swapped:
        return options[0]
    return known.get(swapped or nearest(word, known, cutoff=cutoff), "")


def _known_names() -> dict[str, str]:
    """Return what to type for each name of a command, of a command in a family, and of both where
    they were before, and for each word of other programs."""
    within = {
        name: f"{family.name} {name}"
        for family in babyagi.commands.values()
        if isinstance(family, Family)
        for name in family.commands
    }
    before = {old[-1]: " ".join(new) for old, new in RENAMED.items()}
    return {**within, **before, **OTHER_WORDS, **{name: name for name in babyagi.commands}}


def _options() -> Iterator[str]:
    """Yield each option of each command, with the words before it, such as `doctor --probe`."""
    for path in {*babyagi.commands, *_known_names().values()}:
        context = _walk(path.split())
        for param in context.command.params if context is not None else ():
            yield from (f"{path} {name}" for name in param.opts if name.startswith("--"))


def _takes(meant: str, words: Sequence[str]) -> bool:
    """Return whether the words are arguments of the command that was meant, and no free text."""
    context = _walk(meant.split())
    if context is None or _takes_text(context.command):
        return False
    try:
        context.command.parse_args(context, [*words])
    except (click.ClickException, click.exceptions.Exit):
        return False
    return True


def _takes_text(command: click.Command) -> bool:
    return any(isinstance(one, click.Argument) and one.nargs < 0 for one in command.params)


def _whole_command(meant: str, words: Sequence[str]) -> str:
    """Return the whole command line to type for the command that was meant, with these words."""
    context = _walk(meant.split())
    if context is None or (words and not _takes_text(context.command)):
        return shlex.join(["babyagi", *meant.split(), *words])
    return f"babyagi {meant} {quoted(' '.join(words))}" if words else _usage_of(context)


def _usage_of(context: click.Context) -> str:
    """Return the command with the arguments that it needs."""
    pieces = (
        []
        if isinstance(context.command, click.Group)
        else (context.command.collect_usage_pieces(context))
    )
    # of several forms the first, because typed literally the others would be a pipe
    words = [word.strip("{}").split("|")[0] for word in pieces if not word.startswith("[")]
    return " ".join([context.command_path, *words])


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
            raised.ctx = _context_of(args)
        return _tell(first_error(raised))
    finally:
        signal.signal(signal.SIGTERM, before)


def _context_of(args: Sequence[str]) -> click.Context | None:
    """Return the click context of the command with which the command line begins."""
    names = list(itertools.takewhile(lambda word: not word.startswith("-"), args))
    found = (_walk(names[:n]) for n in range(len(names), -1, -1))
    return next((one for one in found if one is not None), None)


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
            return _tell(_no_room(error))
        case FileNotFoundError() if not _has_working_folder():
            return _tell(_no_folder())
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
    what, fix = error.format_message(), f"{command} --help"
    if isinstance(error, click.UsageError) and context is not None:
        what, fix = _mend_usage(error, context)
    warn(f"babyagi: {what}", Style.RED)
    if isinstance(error, click.UsageError):
        warn(f"  try:     {fix}")
        warn("  more:    babyagi guide commands")
    return ExitCode.USAGE


NUMBERS = (click.types.IntParamType, click.types.FloatParamType)
EXTRA_WORDS = re.compile(r"Got unexpected extra arguments? \((.*)\)", re.DOTALL)
NO_COMMAND = re.compile(r"No such command '(.*)'", re.DOTALL)


def _mend_usage(error: click.UsageError, context: click.Context) -> tuple[str, str]:
    """Return what is wrong with the typed command, and what to type instead, in words better than
    click's."""
    command, text = context.command_path, error.format_message()
    if isinstance(error, WrongUsage):
        return text, error.fix or f"{command} --help"
    if extra := EXTRA_WORDS.match(error.message):
        return _mend_extra(extra[1], context)
    if unknown := NO_COMMAND.match(error.message):
        return _mend_unknown(unknown[1], context)
    if isinstance(error, click.NoSuchOption):
        return _mend_option(error.option_name, context)
    if isinstance(error, click.BadOptionUsage):
        return _mend_valueless(error, context)
    param = getattr(error, "param", None)
    if isinstance(error, click.MissingParameter) and param is not None:
        return f"{_name_of(param, context)} is missing", _usage_of(context)
    if isinstance(error, click.BadParameter) and param is not None:
        return _mend_value(error, param, context)
    return text, f"{command} --help"


def _name_of(param: click.Parameter, context: click.Context) -> str:
    return param.get_error_hint(context).strip("'[]")


def _mend_value(
    error: click.BadParameter, param: click.Parameter, context: click.Context
) -> tuple[str, str]:
    """Return the message for a value that an option or argument cannot have: what it can be, what
    was given, and the nearest value."""
    given = re.match(r"'?(.+?)'? is not ", error.message)
    name, kind, command = _name_of(param, context), param.type, context.command_path
    if given is None or not isinstance(kind, (click.Choice, *NUMBERS)):
        return f"{name}: {error.message.rstrip('.')}", f"{command} --help"
    if isinstance(kind, click.Choice):
        meant = nearest(given[1].casefold(), kind.choices)
        guess, fix = f"; did you mean {meant}?" if meant else "", f"{command} {name} {meant}"
        listed = ", ".join(kind.choices)
        what = f"{name} must be one of {listed}, got {given[1]!r}{guess}"
        return what, fix if meant else f"{command} --help"
    noun = "a whole number" if isinstance(kind, click.types.IntParamType) else "a number"
    least = getattr(kind, "min", None)
    wanted = noun if least is None else f"{noun} from {least:g} on"
    return f"{name} must be {wanted}, got {given[1]!r}", f"{command} --help"


def _mend_option(typed: str, context: click.Context) -> tuple[str, str]:
    """Return the message for an option that the command does not have: the nearest of its own, or
    the variable of a setting of this name."""
    params = [*context.command.params, *(() if context.parent else babyagi.params)]
    names = [name for param in params for name in param.opts if name.startswith("--")]
    setting = declared_fields().get(typed.strip("-").replace("-", "_"))
    if setting is not None and not setting.flags:
        said = f"there is no option {typed}; the variable {setting.label} sets it"
        return said, f"{setting.label}=… {context.command_path} …"
    near = nearest(typed, [*names, "--help"])
    meant = f"; did you mean {near}?" if near else ""
    return f"there is no option {typed}{meant}", f"{context.command_path} --help"


def _mend_valueless(error: click.BadOptionUsage, context: click.Context) -> tuple[str, str]:
    """Return the message for an option that was given without its value, or with one that it does
    not take."""
    command, name = context.command_path, error.option_name
    param = next((one for one in context.command.params if name in one.opts), None)
    if param is None or "requires an argument" not in error.message:
        return error.message.rstrip("."), f"{command} --help"
    value = param.make_metavar(context).strip("[]").split("|")[0]
    return f"{name} needs a value", f"{command} {name} {value}"


def _mend_extra(words: str, context: click.Context) -> tuple[str, str]:
    command = context.command_path
    takes_objective = any("--objective" in param.opts for param in context.command.params)
    if takes_objective and (words.isdecimal() or words == "latest"):
        right = f"{command} --objective {words}"
        return f"an objective is chosen with --objective: {right}", right
    return f"{command} takes no words such as {words!r}", f"{command} --help"


REMOVALS = ("cancel", "delete", "drop", "forget", "remove", "rm", "skip", "prune")


def _mend_unknown(word: str, context: click.Context) -> tuple[str, str]:
    command, group = context.command_path, context.command
    if word.isdecimal() and group.name in ("tasks", "results"):
        show_it = f"babyagi show {word}"
        return f"to show one task with its result, type `{show_it}`", show_it
    names = list(group.commands) if isinstance(group, click.Group) else []
    removal = next((name for name in names if name in REMOVALS and word in REMOVALS), None)
    near = removal or nearest(word, names)
    fix = f"{command} {near or '--help'}"
    top = babyagi.commands.get(word)
    own = top.own if isinstance(top, Family) else top
    if not near and own is not None and any(isinstance(one, click.Argument) for one in own.params):
        fix = f"babyagi {word}"
    return f"{command} has no command {word!r}, only {', '.join(names)}", fix


def _tell_crash(error: BaseException) -> int:
    from babyagi.cli.session import record_crash

    what = f"unexpected {type(error).__name__}; nothing stored is lost"
    warn(f"babyagi: {what}; the traceback is in {record_crash(error)}", Style.RED)
    return ExitCode.UNEXPECTED


def _no_room(error: OSError) -> SettingsError:
    return SettingsError(
        "standard output cannot be written",
        why=f"{error.strerror}; nothing stored is lost",
        fix="make room where the output goes, or send it elsewhere, then type the same again",
        guide="report",
    )


def _has_working_folder() -> bool:
    try:
        return Path.cwd().is_dir()
    except FileNotFoundError:
        return False


def _no_folder() -> SettingsError:
    return SettingsError(
        "the working folder does not exist any more",
        fix="change to a folder that exists, then type the command again",
        guide="settings",
    )


def _open_closed_streams() -> None:
    """Open /dev/null in the place of each standard stream that the caller closed. Otherwise the
    next file that is opened, such as the task store, would get the stream's file descriptor, and
    output would be written into it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 (open to the end)
