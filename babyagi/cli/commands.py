"""The commands that begin work, join workers, or say something about the program: what they take.

What they do is in the modules that they import when they are called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from babyagi.cli.completion import complete_objectives, complete_pages
from babyagi.cli.options import (
    LIMITS,
    given_flags,
    json_option,
    objective_option,
    require_words,
    setting_options,
)
from babyagi.cli.report import Output, choose_output, output_options
from babyagi.cli.text import Style, echo, echo_lines, is_person_there, print_json, terminal_width

if TYPE_CHECKING:
    from babyagi.tasks import Worker
    from babyagi.taskstore.port import TaskStore


# -- the commands that work or watch work: demo, run, watch, resume, and what bare `babyagi` does
# --------------------------------------------------------------------------------------------------

DEFAULT_QUESTION = "What is lost when the program is killed, and how much can a run spend?"


@click.command()
@click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--question", metavar="TEXT", help="What the report is to answer.")
@setting_options((*LIMITS, "concurrency"))
@click.option(
    "--new",
    "always_new",
    is_flag=True,
    help="Start afresh, even where an earlier demo was cut off.",
)
@output_options
@json_option
def demo(
    folder: Path | None, question: str | None, always_new: bool, as_json: bool, **flags: Any
) -> int:
    """Do the real job without a key and without a network.

    It reads the documents of FOLDER, or else this program's own guide. Everything is real but the
    model: a rehearsal takes its place, which quotes sentences and says where they stand.
    """
    from babyagi.cli.run import run_demo

    output = _take_output(flags, as_json)
    return run_demo(
        folder,
        question or DEFAULT_QUESTION,
        flags=given_flags(flags),
        always_new=always_new,
        output=output,
    )


@click.command()
@click.argument("objective_words", metavar="[OBJECTIVE]...", nargs=-1)
@setting_options(but=("agent_hosts",))
@click.option(
    "--new",
    "always_new",
    is_flag=True,
    help="Start afresh, even where the same objective was started before.",
)
@output_options
@json_option
@click.option(
    "--objective",
    metavar="ID|NAME|latest",
    help="With --join: which one.",
    shell_complete=complete_objectives,
)
@click.option(
    "--continue",
    "continued",
    metavar="ID|latest",
    help="Ask something further of an objective; limits that are given are its new ones.",
    shell_complete=complete_objectives,
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

    Standard output holds the report and nothing else. The same objective, first task and name go on
    where they were stopped. With --json every event is one line, and the last line is the outcome.
    With --join it works on what somebody else started, or waits for it. With --continue the words
    are a further question, which is answered from the results that there are.
    """
    from babyagi.cli.run import continue_objective, run_objective

    output = _take_output(flags, as_json)
    given = given_flags(flags)
    if continued is not None:
        if always_new or objective:
            raise click.UsageError(
                "--continue goes with no --new and no --objective", click.get_current_context()
            )
        question = require_words(" ".join(objective_words), "the further question is missing")
        return continue_objective(question, selector=continued, flags=given, output=output)
    if objective_words:
        given["objective"] = require_words(" ".join(objective_words))
    return run_objective(given, selector=objective or "", always_new=always_new, output=output)


def _take_output(flags: dict[str, Any], as_json: bool) -> Output:
    """Where the report goes; what says so is taken out of the flags, which are settings."""
    return choose_output(flags.pop("output"), flags.pop("report_format"), as_json=as_json)


@click.command()
@objective_option
@setting_options(("concurrency", "files", "mcp", "tools_from"))
@output_options
@json_option
def resume(objective: str, as_json: bool, **flags: Any) -> int:
    """Go on with an objective that was killed, paused or stopped."""
    from babyagi.cli.run import resume_objective

    output = _take_output(flags, as_json)
    return resume_objective(objective, flags=given_flags(flags), output=output)


@click.command()
@objective_option
@output_options
@json_option
def watch(objective: str, as_json: bool, **output: str | None) -> int:
    """Watch an objective that runs in another process.

    It ends when the objective does, with its report. With --json: every event from the first, one a
    line, and the outcome as the last line.
    """
    from babyagi.cli.run import watch_objective

    return watch_objective(objective, output=_take_output(output, as_json))


def run_from_settings() -> int:
    """Bare `babyagi`: run the OBJECTIVE of the environment, or say what to type."""
    from babyagi.cli.run import run_objective
    from babyagi.cli.session import load

    if not load().settings.objective and is_person_there():
        for line in HINTS:
            echo(line)
        return 0
    return run_objective({}, always_new=False, output=Output())


HINTS = (
    "babyagi: an objective goes in, a report comes out. Type:",
    "",
    (
        "  babyagi demo                  the real job on real files, without a key and "
        "without a network"
    ),
    (
        '  babyagi run "an objective"    with a model (OPENAI_API_KEY, or OPENAI_BASE_URL '
        "for a local server)"
    ),
    "  babyagi --help                all commands",
    "  babyagi guide                 read more",
)


# -- the commands of working together: submit, worker, workers, migrate
# --------------------------------------------------------------------------------------------------

NOT_OF_SUBMIT = (
    "agent_hosts",
    "join_existing_objective",
    "use_my_model",
    "concurrency",
    "no_color",
)


@click.command()
@click.argument("objective_words", metavar="[OBJECTIVE]...", nargs=-1)
@setting_options(but=NOT_OF_SUBMIT)
@click.option(
    "--new",
    "always_new",
    is_flag=True,
    help="Start afresh, even where the same objective was started before.",
)
@json_option
def submit(objective_words: tuple[str, ...], always_new: bool, as_json: bool, **flags: Any) -> int:
    """Put an objective on the board, for workers.

    Its number is printed. Nothing works on it here: that does `babyagi worker`, in this home or
    wherever the task store can be reached.
    """
    from babyagi.cli.worker import submit_objective

    given = given_flags(flags)
    if objective_words:
        given["objective"] = require_words(" ".join(objective_words))
    return submit_objective(given, always_new=always_new, as_json=as_json)


@click.command()
@click.option(
    "--objective",
    metavar="ID|NAME|latest",
    shell_complete=complete_objectives,
    help="Work on this one alone, waited for if it has not begun. Default: on all.",
)
@setting_options(("concurrency", "files", "mcp", "tools_from", "use_my_model"))
@output_options
@json_option
def worker(objective: str | None, as_json: bool, **flags: Any) -> int:
    """Work on all active objectives until told to stop.

    Those that are submitted later are among them. It waits where there is nothing to do. Ctrl-C or
    SIGTERM lets the calls in flight end.
    """
    from babyagi.cli.run import join_objective
    from babyagi.cli.worker import serve_all

    if objective is None and (flags["output"] or flags["report_format"]):
        raise click.UsageError(
            "--output and --format go with --objective: a worker for all has no report of its own",
            click.get_current_context(),
        )
    output = _take_output(flags, as_json)
    given = given_flags(flags)
    if objective is None:
        return serve_all(given, as_json=as_json)
    return join_objective(given, selector=objective, output=output)


@click.command()
@json_option
def workers(as_json: bool) -> None:
    """Show who is at work, and on what.

    Also since when, and what keeps a worker from claiming.
    """
    from babyagi.cli.session import with_store
    from babyagi.cli.views import render_workers, worker_shape

    async def fetch(store: TaskStore) -> list[Worker]:
        return await store.workers()

    found = with_store(fetch)
    if as_json:
        print_json([worker_shape(one) for one in found])
    elif found:
        echo_lines(render_workers(found, terminal_width()))
    else:
        echo("Nobody is at work. Type: babyagi worker, or babyagi resume")


@click.command()
def migrate() -> None:
    """Bring a PostgreSQL task store to this program's version.

    No worker may live meanwhile.
    """
    import asyncio

    from babyagi.backends import migrate_store
    from babyagi.cli.session import STORE, load

    before, after = asyncio.run(migrate_store(load(needs=STORE).settings))
    echo(
        f"The task store has version {after} already."
        if before == after
        else f"The task store went from version {before} to {after}."
    )


# -- the commands about the program itself: config, doctor, guide
# --------------------------------------------------------------------------------------------------


@click.command()
@json_option
def config(as_json: bool) -> None:
    """Show every setting, its value, and where that comes from.

    Secrets stay hidden.
    """
    from babyagi.cli.about import list_values, render_values
    from babyagi.cli.session import NOTHING, load

    values = list_values(load(needs=NOTHING))
    if as_json:
        print_json({"v": 1, "settings": [value.to_json() for value in values]})
    else:
        echo_lines(render_values(values, terminal_width()))


@click.command()
@click.option(
    "--quick",
    "is_quick",
    is_flag=True,
    help="Only whether the settings, the home and its store can be used.",
)
@json_option
def doctor(is_quick: bool, as_json: bool) -> int:
    """Check the runtime, and say what is wrong."""
    from babyagi.cli.about import FAIL, run_checks
    from babyagi.cli.exits import ExitCode

    checks = run_checks(is_quick=is_quick)
    is_sound = all(check.state != FAIL for check in checks)
    if as_json:
        print_json({"v": 1, "is_sound": is_sound, "checks": [check.to_json() for check in checks]})
        return int(ExitCode.OK if is_sound else ExitCode.FAILED)
    styles = {"ok": Style.GREEN, "warn": Style.YELLOW, "fail": Style.RED}
    for check in checks:
        echo(f"{check.state:<5} {check.name}: {check.found}", styles[check.state])
        if check.fix:
            echo(f"      try: {check.fix}")
    return int(ExitCode.OK if is_sound else ExitCode.FAILED)


@click.command()
@click.argument("topic", required=False, shell_complete=complete_pages)
def guide(topic: str | None) -> None:
    """Print a page of the guide, or list its pages."""
    from babyagi.cli.about import list_topics, read_page

    if topic is not None:
        from babyagi.cli.paging import show_page

        show_page(read_page(topic))
        return
    topics = list_topics()
    for name, title in topics:
        echo(f"babyagi guide {name:<14} {title}")
    if not topics:
        echo("This installation has no guide pages; babyagi --help lists the commands.")
