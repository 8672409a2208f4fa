"""The report that the program writes around the model's answer."""

import click
import pytest

from babyagi.agents.report import Written, render_report
from babyagi.cli.root import babyagi
from babyagi.tasks import Checks, StopReason, TaskStatus
from tests.cli import samples


@pytest.mark.parametrize("reason", [reason for reason in StopReason if reason.startswith("limit:")])
def test_a_report_of_a_run_that_a_limit_ended_names_the_option_that_raises_it(reason):
    option = f"--max-{reason.removeprefix('limit:')}"

    report = render_report(
        samples.objective(stop_reason=reason),
        written=Written(text="It is so."),
        tasks=[],
        results=[],
    )

    assert f"`babyagi extend --objective 3 {option} N`" in report
    assert option in [
        name for parameter in babyagi.commands["extend"].params for name in parameter.opts
    ]


def test_a_report_of_an_unmet_objective_begins_with_what_is_missing_and_says_how_to_add_tasks():
    objective = samples.objective(
        stop_reason=StopReason.UNMET, checks=Checks(missing=("the price of\nlamps", "their weight"))
    )

    report = render_report(objective, written=Written(text="It is so."), tasks=[], results=[])

    assert (
        "**These parts of the objective are not answered:**\n\n* the price of lamps\n* their "
        "weight\n\nIt is so."
    ) in report
    assert "`babyagi tasks add --objective 3 " in report
    tasks = babyagi.commands["tasks"]
    assert isinstance(tasks, click.Group) and "add" in tasks.commands


def test_a_report_of_an_unmet_objective_without_a_list_of_what_is_missing_says_why():
    objective = samples.objective(
        stop_reason=StopReason.UNMET, stop_detail="the check could not be made: it was refused"
    )

    report = render_report(objective, written=Written(text="It is so."), tasks=[], results=[])

    assert "* the check could not be made: it was refused\n" in report


def test_a_report_of_a_failed_run_says_how_to_try_what_was_given_up_again():
    tasks = [samples.task(status=TaskStatus.DEAD, error="it says nothing")]

    report = render_report(
        samples.objective(stop_reason=StopReason.FAILED),
        written=Written(text="", why_not="no task was finished"),
        tasks=tasks,
        results=[],
    )

    assert "There are no results (no task was finished)." in report
    assert (
        "`babyagi retry TASK --objective 3` with one of the tasks that were given up, then "
        "`babyagi resume --objective 3`"
    ) in report
    assert "retry" in babyagi.commands


@pytest.mark.parametrize(
    "reason", [StopReason.FINISHED, StopReason.OBJECTIVE_MET, StopReason.CANCELLED]
)
def test_a_report_of_what_is_over_for_good_says_nothing_of_going_on(reason):
    report = render_report(
        samples.objective(stop_reason=reason),
        written=Written(text="It is so."),
        tasks=[],
        results=[],
    )

    assert "To go on" not in report


def test_a_report_names_the_results_that_it_was_written_without():
    result = samples.result()

    report = render_report(
        samples.objective(),
        written=Written(text="It is so.", left_out=(result,)),
        tasks=[],
        results=[result],
    )

    assert f"* task {result.task_id}: {result.task_name}" in report
    assert "it was written without them" in report
