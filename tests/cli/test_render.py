from dataclasses import replace
from datetime import timedelta

import pytest

from babyagi.cli import render
from babyagi.cli.text import cell_width
from babyagi.reporting.why import Reason, Why
from babyagi.tasks import Limits, ObjectiveStatus, StopReason, TaskStatus, Usage
from babyagi.verbs.actions import Stand
from tests.cli import samples

GOES_ON_WITH = {
    StopReason.LIMIT_TASKS: "babyagi extend --objective 3 --max-tasks 100, then babyagi resume --objective 3",
    StopReason.LIMIT_COST: "babyagi extend --objective 3 --max-cost 2, then babyagi resume --objective 3",
    StopReason.LIMIT_TIME: "babyagi extend --objective 3 --max-time 14400s, then babyagi resume --objective 3",
    StopReason.LIMIT_TOKENS: "babyagi extend --objective 3 --max-tokens 4000000, then babyagi resume --objective 3",
}


def stand(objective):
    return Stand(
        objective=objective,
        counts=samples.COUNTS,
        workers=(),
        index_trouble="",
        reason=Reason(why=Why.DONE, word="", says=""),
    )


def joined(lines):
    return "\n".join(line.text for line in lines)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (-3, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (725, "12 min 5 s"),
        (7200, "2 h"),
        (7380, "2 h 3 min"),
    ],
)
def test_a_duration_is_said_in_its_two_largest_units(seconds, text):
    assert render.render_duration(seconds) == text


@pytest.mark.parametrize("reason", GOES_ON_WITH)
def test_a_run_that_a_limit_ended_says_the_command_that_goes_on(reason):
    ended = samples.objective(stop_reason=reason)

    assert GOES_ON_WITH[reason] in joined(render.render_closing(ended, samples.COUNTS))


def test_the_closing_lines_say_why_what_and_where():
    text = joined(render.render_closing(samples.objective(), samples.COUNTS))

    assert "ended, limit:tasks: the limit of tasks is reached" in text
    assert "4 done" in text
    assert "1 dead" in text
    assert "$0.0123" in text
    assert "babyagi report --objective 3" in text


def test_what_is_spent_and_what_is_perhaps_spent_are_two_numbers_and_an_unknown_price_is_called_that():
    usage = Usage(
        calls=3,
        prompt_tokens=9000,
        cost_usd=1.58,
        unconfirmed_tokens=8000,
        unconfirmed_cost_usd=1.37,
    )
    priced = samples.objective(usage=usage)
    unpriced = samples.objective(
        usage=replace(usage, cost_usd=0.0, unconfirmed_cost_usd=0.0),
        spec=samples.spec(has_price=False),
    )

    screens = [
        joined(render.render_status(stand(priced), 100)),
        joined(render.render_closing(priced, samples.COUNTS)),
        joined(
            render.render_objectives(
                [(priced, samples.COUNTS, samples.START)], 100, now=samples.START
            )
        ),
    ]
    assert all("$0.2100" in screen and "$1.3700" in screen for screen in screens)
    assert "8,000 of them unconfirmed" in screens[0]
    for screen in (
        render.render_status(stand(unpriced), 100),
        render.render_objectives(
            [(unpriced, samples.COUNTS, samples.START)], 100, now=samples.START
        ),
    ):
        assert "unknown" in joined(screen) and "$0.0000" not in joined(screen)


def test_an_interrupted_or_paused_run_is_gone_on_with_by_resume():
    for status in (ObjectiveStatus.ACTIVE, ObjectiveStatus.PAUSED):
        unfinished = samples.objective(
            status=status, stop_reason=None, has_report=False, ended_at=None
        )

        assert "babyagi resume --objective 3" in joined(
            render.render_closing(unfinished, samples.COUNTS)
        )


def test_a_stalled_run_says_what_goes_on_a_dead_task_or_the_limits_as_they_are():
    stalled = samples.objective(stop_reason=StopReason.STALLED)

    with_dead = joined(render.render_closing(stalled, samples.COUNTS))
    without = joined(render.render_closing(stalled, {TaskStatus.QUEUED: 3}))

    assert (
        "babyagi tasks retry TASK --objective 3 with the number of a dead task (babyagi tasks), "
        "then babyagi resume --objective 3"
    ) in with_dead
    assert (
        f"babyagi extend --objective 3 --max-tasks {stalled.spec.limits.max_tasks}, then "
        "babyagi resume --objective 3"
    ) in without


@pytest.mark.parametrize("stop_reason", [StopReason.FINISHED, StopReason.OBJECTIVE_MET])
def test_a_finished_run_offers_no_way_on(stop_reason):
    text = joined(render.render_closing(samples.objective(stop_reason=stop_reason), samples.COUNTS))

    assert "go on" not in text


def test_every_screen_of_a_rehearsal_says_so():
    rehearsed = samples.objective(spec=samples.spec(model="rehearsal"))

    assert (
        render.render_status(stand(rehearsed), 80)[0].text
        == "REHEARSAL: no language model was asked"
    )
    assert (
        render.render_closing(rehearsed, samples.COUNTS)[-1].text
        == "REHEARSAL: no language model was asked"
    )


def test_what_a_worker_works_on_is_watched_and_what_none_works_on_is_resumed():
    active = samples.objective(stop_reason=None, status=ObjectiveStatus.ACTIVE)
    paused = samples.objective(stop_reason=None, status=ObjectiveStatus.PAUSED)

    def after(objective, is_served):
        return render.render_next(objective, samples.COUNTS, is_served=is_served)

    assert after(active, True) == "babyagi watch --objective 3"
    assert after(active, False) == after(paused, True) == "babyagi resume --objective 3"
    assert after(active, None) == "babyagi resume --objective 3"


def test_only_limits_that_are_set_are_shown():
    spec = samples.spec(limits=Limits(max_tasks=0, max_cost_usd=0.0, max_tokens=0, max_time_s=0.0))

    assert render.render_limits(samples.objective(spec=spec), samples.COUNTS) == []


@pytest.mark.parametrize("width", [80, 200])
def test_a_row_of_the_list_stays_within_the_terminal(width):
    tasks = [
        samples.task(name="日本語 " * 100),
        samples.task(name=samples.HOSTILE, status=TaskStatus.DEAD),
    ]

    for task in tasks:
        line = render.render_task(task, width, word="waits for your answer")
        assert cell_width(line.text) <= width


def test_results_keep_their_lines():
    text = joined(render.render_results([samples.result(), samples.result(task_id=5)]))

    assert text.splitlines()[:3] == [
        "Task 4: Compare limits.md with https://x.com/v2.1?id=3",
        "limits.md:3 says fifty tasks.",
        "Nothing else differs.",
    ]


def test_objectives_are_listed_one_a_line():
    rows = [
        (samples.objective(), samples.COUNTS, samples.START - timedelta(minutes=12, seconds=4)),
        (samples.running_objective(id=4), samples.COUNTS, samples.START - timedelta(days=30)),
    ]

    lines = render.render_objectives(rows, 80, now=samples.START)

    assert len(lines) == 3 and "LAST" in lines[0].text
    assert " 12 min " in lines[1].text and " 30 days " in lines[2].text
    assert "limit:tasks" in lines[1].text
    assert "active" in lines[2].text


@pytest.mark.parametrize("width", [52, 60, 80, 100, 140])
def test_a_list_of_objectives_stays_within_the_terminal(width):
    long = samples.objective(spec=samples.spec(text="Find what the documents promise " * 9))

    perhaps = replace(long, usage=replace(long.usage, unconfirmed_cost_usd=0.01))

    for found in (long, perhaps):
        lines = render.render_objectives(
            [(found, samples.COUNTS, samples.START)], width, now=samples.START
        )
        assert all(len(line.text) <= max(width, 58) for line in lines)


@pytest.mark.parametrize(
    ("status", "text"), [(ObjectiveStatus.ACTIVE, "2 s"), (ObjectiveStatus.ENDED, "2.8 s")]
)
def test_the_time_of_work_is_as_in_the_report_once_the_objective_has_ended(status, text):
    one = samples.objective(status=status, active_s=2.8)

    assert render.render_worked(one) == text
