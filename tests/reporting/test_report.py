"""The report that the program writes around the model's answer."""

import click
import pytest

from babyagi import events
from babyagi.agents.report import Written
from babyagi.cli.root import babyagi
from babyagi.pages.markdown import render_html
from babyagi.reporting.report import ReportNotes, compose_report, render_report
from babyagi.tasks import Checks, StopReason, TaskStatus
from support.world import World
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

    assert f"`babyagi extend --objective 3 {option} " in report
    assert option in [
        name for parameter in babyagi.commands["extend"].params for name in parameter.opts
    ]


def test_a_report_of_an_unmet_objective_names_what_is_missing_and_says_how_to_add_tasks():
    objective = samples.objective(
        stop_reason=StopReason.UNMET, checks=Checks(missing=("the price of\nlamps", "their weight"))
    )

    report = render_report(objective, written=Written(text="It is so."), tasks=[], results=[])

    assert (
        "It is so.\n\n**These parts of the objective are not answered:**\n\n* the price of lamps\n"
        "* their weight\n"
    ) in report
    assert report.index("> **Not complete:** nothing is left") < report.index("It is so.")
    assert "`babyagi tasks add --objective 3 " in report
    tasks = babyagi.commands["tasks"]
    assert isinstance(tasks, click.Group) and "add" in tasks.commands


def test_a_report_of_an_objective_that_no_check_could_judge_says_why_and_what_helps():
    objective = samples.objective(
        stop_reason=StopReason.UNMET, stop_detail="the check could not be made: it was refused"
    )

    report = render_report(objective, written=Written(text="It is so."), tasks=[], results=[])

    assert (
        "**Why it is not confirmed:**\n\n* the check could not be made: it was refused\n" in report
    )
    assert "> **Not confirmed:** nothing is left to do, and no check could say" in report
    assert "are not answered" not in report and "tasks add" not in report
    assert (
        "`babyagi extend --objective 3 --max-tasks 50`, then `BABYAGI_ROLE_MODELS=creation=MODEL "
        "babyagi resume --objective 3 --use-my-model`"
    ) in report


def test_the_way_on_is_a_limit_that_extend_accepts_where_all_tasks_are_used():
    objective = samples.objective(stop_reason=StopReason.UNMET, n_begun=50)

    report = render_report(objective, written=Written(text="It is so."), tasks=[], results=[])

    assert "`babyagi extend --objective 3 --max-tasks 51`" in report


def test_a_rehearsal_that_does_not_answer_says_so_and_what_to_type_with_a_language_model():
    spec = samples.spec(model="rehearsal", further=("Who?", 'Who "counts"?'))
    for missing in ((), ("Who?",)):
        objective = samples.objective(
            stop_reason=StopReason.UNMET, spec=spec, checks=Checks(missing=missing)
        )

        report = render_report(objective, written=Written(text="So."), tasks=[], results=[])

        assert "the rehearsal cannot answer this" in report
        assert r'`LLM_MODEL=MODEL babyagi run "Who \"counts\"?"`' in report
        assert "extend" not in report and "tasks add" not in report


def test_a_report_of_the_rehearsal_model_does_not_say_that_every_part_is_answered():
    for model, is_said in (("rehearsal", False), ("gpt", True)):
        spec = samples.spec(model=model)
        objective = samples.objective(stop_reason=StopReason.FINISHED, spec=spec)

        report = render_report(objective, written=Written(text="So."), tasks=[], results=[])

        assert ("found every part of the objective answered" in report) == is_said
        assert ("the check was rehearsed as well and only compared words" in report) != is_said


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
        "`babyagi tasks retry TASK --objective 3` with the number of a dead task (babyagi tasks), "
        "then `babyagi resume --objective 3`"
    ) in report


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
    assert "which was written without them" in report


def test_the_answer_comes_first_then_how_it_ended_and_what_it_cost():
    report = render_report(
        samples.objective(stop_reason=StopReason.FINISHED),
        written=Written(text="It is so."),
        tasks=[samples.task()],
        results=[samples.result()],
    )

    assert report.startswith("# Report: Find what the documents promise\n\nIt is so.\n\n---\n")
    assert "* Stopped: finished: " in report and "* Tasks: 1 done\n" in report
    assert "* Cost: $0.0123 of $1; 7 model calls, 1,200 tokens in and 345 out\n" in report
    assert len(report.splitlines()) < 16


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (StopReason.LIMIT_COST, "> **Not complete:** the limit of money is reached (1 task not"),
        (StopReason.FINISHED, "> 1 task not done, 1 task given up; see below the answer."),
    ],
)
def test_one_line_before_the_answer_says_that_it_is_not_the_whole_answer(reason, said):
    tasks = [
        samples.task(id=1, status=TaskStatus.DEAD, error="it says nothing"),
        samples.task(id=2, status=TaskStatus.QUEUED),
    ]

    report = render_report(
        samples.objective(stop_reason=reason),
        written=Written(text="It is so."),
        tasks=tasks,
        results=[],
    )

    assert said in report
    assert report.index(said) < report.index("It is so.") < report.index("it says nothing")


def test_lists_of_tasks_are_short_and_say_how_many_there_are():
    tasks = [samples.task(id=number, status=TaskStatus.QUEUED) for number in range(1, 41)]

    report = render_report(
        samples.objective(), written=Written(text="It is so."), tasks=tasks, results=[]
    )

    assert "## Not done (40)" in report and "* task 5: " in report
    assert "* task 6: " not in report
    assert "* and 35 more; `babyagi tasks --objective 3` lists them" in report


def test_without_a_summary_the_results_on_which_nothing_was_built_come_first():
    tasks = [samples.task(id=1, parent_id=None, after=()), samples.task(id=2, after=(1,))]
    results = [
        samples.result(task_id=1, text="the first step " * 100),
        samples.result(task_id=2, text="the last step"),
    ]

    report = render_report(
        samples.objective(), written=Written(why_not="no money"), tasks=tasks, results=results
    )

    assert report.index("> the last step") < report.index("**What led to this:**")
    assert report.index("**What led to this:**") < report.index("> the first step")
    assert report.count("the first step") < 60


@pytest.mark.parametrize("text", ["```python\nx = 1", "~~~~\n~~~\nx", "```\na\n```\n````\nb\n```"])
def test_a_block_of_code_without_an_end_takes_nothing_else_with_it(text):
    report = render_report(samples.objective(), written=Written(text=text), tasks=[], results=[])

    assert "<h2>How it ended</h2>" in render_html(report)


def test_without_a_summary_no_more_results_stand_there_than_a_person_reads():
    results = [samples.result(task_id=n, text=f"item {n} " * 90) for n in range(1, 1001)]

    report = render_report(
        samples.objective(), written=Written(why_not="no money"), tasks=[], results=results
    )

    n_shown = report.count("### Task")
    assert 100 < n_shown < 1000
    assert (
        f"**{1000 - n_shown} more results: `babyagi show results --objective 3` lists all.**"
        in report
    )


def test_an_unknown_cost_is_called_unknown():
    report = render_report(
        samples.objective(spec=samples.spec(has_price=False)),
        written=Written(text="It is so."),
        tasks=[],
        results=[],
    )

    assert "* Cost: unknown" in report


def test_a_question_that_waits_has_the_number_that_is_typed_to_answer_it():
    report = render_report(
        samples.objective(stop_reason=StopReason.WAITING),
        written=Written(),
        tasks=[],
        results=[],
        aside=ReportNotes(asked=[(12, "What is the budget?")]),
    )

    assert "* task 12: What is the budget?\n" in report


async def test_a_report_says_that_the_model_did_not_answer_until_it_does_again():
    world = World()
    store, objective = world.store, await world.start()
    down = {"reason": "http://lamp cannot be reached", "why": "Connection refused"}

    await store.append_event(objective.id, kind=events.MODEL_UNAVAILABLE, data=down)
    report = await compose_report(store, objective, Written())
    await store.append_event(objective.id, kind=events.MODEL_AVAILABLE, data={})
    later = await compose_report(store, objective, Written())

    said = "it did not answer when it was last asked: http://lamp cannot be reached (Connection"
    assert said in report
    assert said not in later
