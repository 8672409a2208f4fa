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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import click

from babyagi import __version__
from babyagi.cli import (
    ask,
    inbox,
    objectives,
    report,
    schedules,
    serve,
    store,
    toolbox,
    trusting,
)
from babyagi.cli.exits import ExitCode, Terminated, code_of_error
from babyagi.cli.options import (
    LIMITS,
    SET_ONCE,
    Duration,
    Family,
    WrongUsage,
    given_flags,
    json_option,
    new_option,
    objective_option,
    require_words,
    setting_options,
    went,
    wrong_usage,
)
from babyagi.cli.renamed import RENAMED, rename
from babyagi.cli.report import FORMATS, Output, choose_output, output_options
from babyagi.cli.text import NO_ROOM, Style, echo, echo_lines, print_json, terminal_width, warn
from babyagi.errors import BabyagiError, SettingsError, find_fix, first_error
from babyagi.reporting.next_command import quoted
from babyagi.settings.fields import declared_fields
from babyagi.settings.values import parse_duration_s
from babyagi.text import nearest

# -- the commands that work or watch work: demo, run, watch, resume, and plain `babyagi`
# --------------------------------------------------------------------------------------------------

DEFAULT_QUESTION = "What is lost when the program is killed, and how much can a run spend?"


@click.command()
@click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--question", metavar="TEXT", help="The question that the report answers.")
@setting_options((*LIMITS, "concurrency"))
@click.option(
    "--new",
    "always_new",
    is_flag=True,
    help="Start a new demo instead of continuing one that was cut off.",
)
@output_options
@json_option
def demo(
    folder: Path | None, question: str | None, always_new: bool, as_json: bool, **flags: Any
) -> int:
    """Try babyagi on real files, without a key or a network.

    It reads the documents of FOLDER, or this program's own guide. Only the language model is
    replaced: a rehearsal model quotes sentences, each with its file and line.
    """
    from babyagi.cli.run import run_demo

    output, given = _take_output(flags, as_json), given_flags(flags)
    question = question or DEFAULT_QUESTION
    return run_demo(folder, question, flags=given, always_new=always_new, output=output)


@click.command()
@click.argument("objective_words", metavar="[OBJECTIVE]...", nargs=-1)
@setting_options(but=("log_format", "serve_host", "serve_port"), hidden=SET_ONCE)
@new_option
@click.option(
    "--output", metavar="FILE", help="Write the report to this file; its suffix names the format."
)
@click.option(
    "--format",
    "report_format",
    type=click.Choice(FORMATS),
    **went("give --output a suffix (.md, .html, .json), or type babyagi report --format"),
)
@json_option
@click.option("--objective", **went("type babyagi worker --objective"))
@click.option(
    "--continue",
    "continued",
    metavar="ID|latest",
    help="Ask a further question of this objective; limits that are given replace its old ones.",
)
def run(
    objective_words: tuple[str, ...],
    always_new: bool,
    as_json: bool,
    objective: str | None,
    continued: str | None,
    **flags: Any,
) -> int:
    """Run an objective until it ends, and print its report.

    The objective `-` stands for the text on standard input. Standard output holds the report and
    nothing else. If an objective with the same text, first task and name exists, it is continued,
    or if it has ended, its report is printed again. With --json every event is one line, and the
    last line is the outcome. With --join it works on an objective that another process started, or
    waits until one does. With --continue the words are a further question to an objective; its
    results are used to answer it.
    """
    from babyagi.cli.run import continue_objective, run_objective

    output, given = _take_output(flags, as_json), given_flags(flags)
    if continued is not None:
        if always_new or objective:
            raise wrong_usage("--continue cannot be combined with --new or --objective")
        before = f"--continue {continued} "
        question = require_words(objective_words, "a further question", before=before)
        return continue_objective(question, selector=continued, flags=given, output=output)
    if objective_words:
        given["objective"] = require_words(objective_words)
    return run_objective(given, selector=objective or "", always_new=always_new, output=output)


def _take_output(flags: dict[str, Any], as_json: bool) -> Output:
    """Return where the report is to be written. The options for it are removed from the flags,
    which then contain only settings."""
    return choose_output(flags.pop("output"), flags.pop("report_format"), as_json=as_json)


@click.command()
@objective_option
@setting_options("concurrency files tools mcp tools_from agent agent_hosts use_my_model".split())
@output_options
@json_option
def resume(objective: str, as_json: bool, **flags: Any) -> int:
    """Continue an objective that was killed, paused or stopped."""
    from babyagi.cli.run import resume_objective

    output = _take_output(flags, as_json)
    return resume_objective(objective, flags=given_flags(flags), output=output)


@click.command()
@objective_option
@output_options
@json_option
def watch(objective: str, as_json: bool, **output: str | None) -> int:
    """Watch an objective that runs in another process.

    When the objective ends, its report is printed. With --json every event from the first on is one
    line, and the last line is the outcome.
    """
    from babyagi.cli.run import watch_objective

    return watch_objective(objective, output=_take_output(output, as_json))


def run_from_settings() -> int:
    """Do what `babyagi` does without a command: run the OBJECTIVE of the environment, or print what
    can be typed if there is none."""
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


# -- the commands of working together: submit, worker, show workers
# --------------------------------------------------------------------------------------------------

NOT_OF_SUBMIT = (
    "serve_host serve_port join_existing_objective use_my_model concurrency log_format no_color"
).split()


@click.command()
@click.argument("objective_words", metavar="[OBJECTIVE]...", nargs=-1)
@setting_options(but=NOT_OF_SUBMIT, hidden=SET_ONCE)
@new_option
@json_option
def submit(objective_words: tuple[str, ...], always_new: bool, as_json: bool, **flags: Any) -> int:
    """Queue an objective for workers.

    Its number is printed. To work on it, type `babyagi worker`, in this home or wherever the task
    store can be reached.
    """
    from babyagi.cli.run import submit_objective

    given = given_flags(flags)
    if objective_words:
        given["objective"] = require_words(objective_words)
    return submit_objective(given, always_new=always_new, as_json=as_json)


@click.command()
@click.option(
    "--objective",
    metavar="ID|NAME|latest",
    help="Work on this objective only; wait for it if it does not exist yet. Default: on all.",
)
@setting_options(
    "concurrency files tools mcp tools_from agent agent_hosts use_my_model log_format".split()
)
@output_options
@json_option
def worker(objective: str | None, as_json: bool, **flags: Any) -> int:
    """Work on all active objectives until told to stop.

    Objectives submitted later are included. While there is nothing to do, the worker waits. On
    Ctrl-C or SIGTERM it lets the calls in flight end, and stops. --output and --format need
    --objective.
    """
    from babyagi.cli.run import join_objective
    from babyagi.cli.worker import serve_all

    if objective is None and (flags["output"] or flags["report_format"]):
        raise wrong_usage(
            "--output and --format can only be used with --objective: a worker for all objectives "
            "writes no report to a file"
        )
    output, given = _take_output(flags, as_json), given_flags(flags)
    if objective is None:
        return serve_all(given, as_json=as_json)
    return join_objective(given, selector=objective, output=output)


@click.command()
@json_option
def workers(as_json: bool) -> None:
    """List the workers, and what each works on.

    Each objective is shown with the time since the worker joined it, or with the reason why the
    worker cannot work on it.
    """
    from babyagi.cli import session, views
    from babyagi.verbs.json_shapes import worker_shape

    found = session.with_store(lambda store: store.workers())
    if as_json:
        print_json([worker_shape(one) for one in found])
    elif found:
        echo_lines(views.render_workers(found, terminal_width()))
    else:
        echo("No worker is running. Type: babyagi worker, or babyagi resume")


# -- the commands about the program itself: config, config trust, doctor, guide
# --------------------------------------------------------------------------------------------------


@click.command("config")
@json_option
def show_settings(as_json: bool) -> None:
    """Show every setting, its value, and where the value comes from.

    Secrets stay hidden.
    """
    from babyagi.cli import about, session

    values = about.list_values(session.load(needs=session.NOTHING))
    if as_json:
        print_json({"v": 1, "settings": [value.to_json() for value in values]})
    else:
        echo_lines(about.render_values(values, terminal_width()))


config = Family(show_settings)
config.add_command(trusting.trust)


@click.command()
@click.option(
    "--quick",
    "is_quick",
    is_flag=True,
    help="Check only the settings, the home folder and the task store.",
)
@click.option(
    "--probe",
    "is_probing",
    is_flag=True,
    help="Ask the model at a custom address two small questions: what can it do?",
)
@json_option
def doctor(is_quick: bool, is_probing: bool, as_json: bool) -> int:
    """Check settings, task store, model, network and index."""
    from babyagi.cli.about import FAIL, run_checks

    checks = run_checks(is_quick=is_quick, is_probing=is_probing)
    is_sound = all(check.state != FAIL for check in checks)
    if as_json:
        print_json({"v": 1, "is_sound": is_sound, "checks": [check.to_json() for check in checks]})
    styles = {"ok": Style.GREEN, "warn": Style.YELLOW, "fail": Style.RED}
    for check in () if as_json else checks:
        echo(f"{check.state:<5} {check.name}: {check.found}", styles[check.state])
        if check.fix:
            echo(f"      try: {check.fix}")
    return int(ExitCode.OK if is_sound else ExitCode.FAILED)


@click.command()
@click.argument("topic", required=False)
def guide(topic: str | None) -> None:
    """Print a page of the guide, or list its pages."""
    from babyagi.cli.about import list_topics

    if topic is not None:
        _show_page(topic)
        return
    topics = list_topics()
    for name, title in topics:
        echo(f"babyagi guide {name:<14} {title}")
    if not topics:
        echo("This installation has no guide pages; babyagi help lists the commands.")


def _show_page(topic: str) -> None:
    from babyagi.cli.about import read_page
    from babyagi.cli.markdown import show_page

    show_page(read_page(topic))


# -- the commands that look: show, and what it shows
# --------------------------------------------------------------------------------------------------


def _take_target(value: str) -> str:
    """Return the value if it is the number of a task, or one of the duties that can be shown."""
    if not value.isdecimal() and value not in ("plan", "order", "check", "report"):
        raise ValueError(value)
    return value


@click.command("show")
@click.argument("what", metavar="TASK|plan|order|check|report", type=_take_target, required=False)
@objective_option
@click.option(
    "--step", type=click.IntRange(min=1), metavar="N", help="Show only this step, with whole texts."
)
@click.option(
    "--full", "is_full", is_flag=True, help="Show every text whole, not only its beginning."
)
@click.option("--artifact", metavar="NAME", help="Show only this file of the result.")
@click.option(
    "--why",
    "is_why",
    is_flag=True,
    help="Say only why TASK does not run, and what would change that; without TASK, why the "
    "objective makes no progress.",
)
@json_option
def show_one(
    what: str | None,
    objective: str,
    artifact: str | None,
    is_why: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Show a task, or a list: tasks, results, log and more.

    A TASK is shown with its result, prompts, replies and tool calls; `plan`, `order`, `check` and
    `report` show the calls made for the objective itself.
    """
    from babyagi.cli.show import show_artifact, show_calls, show_why

    if is_why:
        show_why(what, selector=objective, as_json=as_json)
    elif what is None:
        raise wrong_usage("say what to show: a task's number, or a list", "babyagi show tasks")
    elif artifact is not None:
        show_artifact(what, artifact, selector=objective)
    else:
        show_calls(what, selector=objective, **how, as_json=as_json)


def _take_task(context: click.Context, _parameter: click.Parameter, task: int | None) -> None:
    """Take the value of the argument TASK as the value of --task."""
    if task is not None:
        context.params["task_id"] = task


MAX_LINES = 1_000  # of the log, unless -n says otherwise


@click.command()
@click.argument(
    "task",
    metavar="[TASK]",
    required=False,
    type=int,
    expose_value=False,
    callback=_take_task,
)
@objective_option
@click.option("-f", "--follow", is_flag=True, help="Keep printing until the objective has ended.")
@click.option(
    "--task",
    "task_id",
    type=int,
    metavar="N",
    help="Show only events of this task.",
)
@click.option(
    "--since",
    type=Duration(),
    metavar="DURATION",
    help="Show only events of this last period, such as 90s, 10m or 2h.",
)
@click.option(
    "-n",
    "n_last",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show only this many of the last lines; 0 means all. Default: {MAX_LINES:,}.",
)
@json_option
def log(
    objective: str,
    follow: bool,
    task_id: int | None,
    since: str | None,
    n_last: int | None,
    as_json: bool,
) -> None:
    """Show what happened, one line for each change and call.

    With a TASK, show only the events of that task, as with --task.
    """
    from babyagi.cli.show import Selection, show_log

    n_shown = MAX_LINES if n_last is None else n_last
    since_s = parse_duration_s(since) if since else None
    wanted = Selection(task_id=task_id, since_s=since_s, n_last=n_shown, is_followed=follow)
    show_log(objective, wanted, as_json=as_json, says_cut=n_last is None)


show = Family(show_one)
for command in (
    *(objectives.tasks_list, objectives.results, log),
    *(objectives.objectives, workers, ask.memory),
):
    show.add_command(command)


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


# in the order in which they are listed, a row for each subject
COMMANDS = (
    *(demo, run, watch, ask.ask, submit, worker, serve.serve, schedules.schedule),
    *(objectives.status, show, report.report, inbox.inbox, objectives.tasks),
    *(resume, objectives.pause, objectives.cancel, objectives.extend),
    *(store.store, toolbox.tools, config, doctor, guide),
)


@click.group(
    cls=Commands,
    commands=COMMANDS,
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
    from babyagi.cli.about import list_topics

    pages = dict(list_topics())
    words = tuple(word for word in rename(words) if not word.startswith("--"))
    found = _walk(words)
    if found is not None:
        found.meta[LISTS_ALL] = True
    if found is None and len(words) == 1 and words[0] in pages:
        _show_page(words[0])
        return
    if found is None:
        raise no_help(words, pages)
    echo(found.command.get_help(found))
    if found.command is guide:
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
    context = click.Context(run, info_name="babyagi", help_option_names=list(HELP_FLAGS))
    here = click.Context(babyagi, info_name="babyagi")
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
