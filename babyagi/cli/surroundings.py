"""The commands about the program itself: config, doctor, guide."""

from __future__ import annotations

import click

from babyagi.cli.options import json_option
from babyagi.cli.text import Style, echo, echo_lines, print_json, terminal_width


@click.command()
@json_option
def config(as_json: bool) -> None:
    """Show every setting, its value, and where that comes from.

    Secrets stay hidden.
    """
    from babyagi.cli.config import list_values, render_values
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
    """Check the surroundings, and say what is wrong."""
    from babyagi.cli.doctor import FAIL, run_checks
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
@click.argument("topic", required=False)
def guide(topic: str | None) -> None:
    """Print a page of the guide, or list its pages."""
    from babyagi.cli.guide import list_topics, read_page

    if topic is not None:
        echo(read_page(topic).rstrip("\n"))
        return
    topics = list_topics()
    for name, title in topics:
        echo(f"babyagi guide {name:<14} {title}")
    if not topics:
        echo("This installation has no guide pages; babyagi --help lists the commands.")
