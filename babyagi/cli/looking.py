"""The commands that look into a run: show, why, log."""

from __future__ import annotations

import click

from babyagi.cli.completion import complete_tasks
from babyagi.cli.options import json_option, objective_option


@click.command()
@click.argument("what", metavar="TASK|plan|order|check|report", shell_complete=complete_tasks)
@objective_option
@click.option("--step", type=click.IntRange(min=1), metavar="N", help="One step, whole.")
@click.option("--full", "is_full", is_flag=True, help="Every text whole, not only its beginning.")
@json_option
def show(what: str, objective: str, step: int | None, is_full: bool, as_json: bool) -> None:
    """Show a task with its prompts, replies and tool calls.

    `plan`, `order`, `check` and `report` show the same of the objective's own calls.
    """
    from babyagi.cli.show import show_calls

    show_calls(what, selector=objective, step=step, is_full=is_full, as_json=as_json)


@click.command()
@click.argument("task", metavar="[TASK]", required=False, shell_complete=complete_tasks)
@objective_option
@json_option
def why(task: str | None, objective: str, as_json: bool) -> None:
    """Say why a task does not run, and what would change that.

    Without a task it says why the objective does not move, or what is being done.
    """
    from babyagi.cli.show import show_why

    show_why(task, selector=objective, as_json=as_json)


def _take_task(context: click.Context, _parameter: click.Parameter, task: int | None) -> None:
    """What stands without --task means the same."""
    if task is not None:
        context.params["task_id"] = task


@click.command()
@click.argument(
    "task",
    metavar="[TASK]",
    required=False,
    type=int,
    expose_value=False,
    callback=_take_task,
    shell_complete=complete_tasks,
)
@objective_option
@click.option("-f", "--follow", is_flag=True, help="Go on until the objective has ended.")
@click.option(
    "--task",
    "task_id",
    type=int,
    metavar="N",
    help="Only what concerns this task.",
    shell_complete=complete_tasks,
)
@click.option("--since", metavar="DURATION", help="Only the last while, such as 90s, 10m or 2h.")
@click.option("-n", "n_last", type=click.IntRange(min=1), metavar="N", help="Only the last lines.")
@json_option
def log(
    objective: str,
    follow: bool,
    task_id: int | None,
    since: str | None,
    n_last: int | None,
    as_json: bool,
) -> None:
    """Show what happened, a line for each change and call.

    With a task only what concerns it, as with --task.
    """
    from babyagi.cli.log import Selection, parse_since, show_log

    since_s = parse_since(since)
    wanted = Selection(task_id=task_id, since_s=since_s, n_last=n_last or 0, is_followed=follow)
    show_log(objective, wanted, as_json=as_json)
