"""The commands that work or watch work: demo, run, watch, resume, and what bare `babyagi` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from babyagi.cli.options import (
    LIMITS,
    given_flags,
    json_option,
    objective_option,
    require_words,
    setting_options,
)
from babyagi.cli.text import echo, is_person_there

DEFAULT_QUESTION = (
    "What does this program promise, and what should a person know before leaving it alone?"
)


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
@json_option
def demo(
    folder: Path | None, question: str | None, always_new: bool, as_json: bool, **flags: Any
) -> int:
    """Do the real job without a key and without a network.

    It reads the documents of FOLDER, or else this program's own guide. Everything is real but the
    model: a rehearsal takes its place, which quotes sentences and says where they stand.
    """
    from babyagi.cli.run import run_demo

    return run_demo(
        folder,
        question or DEFAULT_QUESTION,
        flags=given_flags(flags),
        always_new=always_new,
        as_json=as_json,
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
@json_option
@click.option("--objective", metavar="ID|NAME|latest", help="With --join: which one.")
def run(
    objective_words: tuple[str, ...],
    always_new: bool,
    as_json: bool,
    objective: str | None,
    **flags: Any,
) -> int:
    """Run an objective until it ends, with a report at the end.

    The same objective, first task and name go on where they were stopped. With --json every event
    is one line. With --join it works on what somebody else started, or waits for it.
    """
    from babyagi.cli.run import run_objective

    given = given_flags(flags)
    if objective_words:
        given["objective"] = require_words(" ".join(objective_words))
    return run_objective(given, selector=objective or "", always_new=always_new, as_json=as_json)


@click.command()
@objective_option
@setting_options(("concurrency", "files"))
@json_option
def resume(objective: str, as_json: bool, **flags: Any) -> int:
    """Go on with an objective that was killed, paused or stopped."""
    from babyagi.cli.run import resume_objective

    return resume_objective(objective, flags=given_flags(flags), as_json=as_json)


@click.command()
@objective_option
@json_option
def watch(objective: str, as_json: bool) -> int:
    """Watch an objective that runs in another process.

    It ends when the objective does. With --json: every event from the first, one a line.
    """
    from babyagi.cli.run import watch_objective

    return watch_objective(objective, as_json=as_json)


def run_from_settings() -> int:
    """Bare `babyagi`: run the OBJECTIVE of the environment, or say what to type."""
    from babyagi.cli.run import run_objective
    from babyagi.cli.session import load

    if not load().settings.objective and is_person_there():
        for line in HINTS:
            echo(line)
        return 0
    return run_objective({}, always_new=False, as_json=False)


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
