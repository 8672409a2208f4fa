"""Every answer to "why does it not run?", from facts that bring it about."""

from dataclasses import replace

import pytest

from babyagi import events
from babyagi.inbox import APPROVAL, ONCE, QUESTION, write_request
from babyagi.reporting.why import Facts, Why, explain_objective, explain_task
from babyagi.tasks import (
    Duty,
    Joined,
    Lack,
    Limits,
    StepState,
    StopReason,
    TaskStatus,
    Usage,
)
from babyagi.taskstore.nouns import Standing
from tests.cli import samples

NOW = samples.at(100)
ASKING = {
    "owner": "task:4",
    "state": StepState.ASKED,
    "output": None,
    "request": write_request("ask_person", {"question": "Which year?"}),
}


def facts(*, workers=None, asked=(), outage=None, counts=None, **changes):
    """An objective that one worker serves, unless something is changed."""
    plain = samples.running_objective()
    ended = {"status", "stop_reason"} & set(changes)
    standing = Standing(
        objective=samples.objective(**changes) if ended else replace(plain, **changes),
        counts={TaskStatus.QUEUED: 1} if counts is None else counts,
        n_tasks_without_progress=0,
        n_tries_without_answer=0,
        outage=outage,
        at=NOW,
    )
    return Facts(
        standing=standing,
        workers=[samples.worker("ada")] if workers is None else workers,
        asked=asked,
    )


def queued(**changes):
    values = {"status": TaskStatus.QUEUED, "after": (), "started_at": None, "finished_at": None}
    return samples.task(**{**values, "failures": 0, **changes})


def spec(**limits):
    return samples.spec(limits=Limits(**limits))


def down(retry_in_s):
    data = {"reason": "http://here/v1 answered 500", "retry_in_s": retry_in_s}
    return samples.event(kind=events.MODEL_UNAVAILABLE, data=data, at=NOW)


def duty(name):
    joined = Joined(objective_id=3, blocked_reason="", since=samples.START, duties=(name,))
    return samples.worker("ada", joined=(joined,))


FAR = samples.START.replace(year=9998)

TASKS = [
    (
        samples.task(status=TaskStatus.RUNNING),
        facts(workers=[samples.worker("ada", task_ids=(4,))]),
        Why.RUNNING,
        "worker ada claimed it",
    ),
    (samples.task(status=TaskStatus.RUNNING), facts(), Why.LOST, "its worker is gone"),
    (samples.task(status=TaskStatus.RECORDED), facts(), Why.PLANNING, "being planned"),
    (samples.task(), facts(), Why.DONE, "it is done; it finished at "),
    (samples.task(status=TaskStatus.CANCELLED), facts(), Why.CANCELLED, "cancelled"),
    (
        samples.task(status=TaskStatus.DEAD, error="no such file", failures=3),
        facts(),
        Why.DEAD,
        "it failed 3 times and is dead: no such file",
    ),
    (
        samples.task(status=TaskStatus.DEAD, failures=0, lack=Lack(what="the price")),
        facts(),
        Why.DEAD,
        "it was given up: the price",
    ),
    (queued(after=(1, 2, 7)), facts(), Why.AFTER, "it waits for tasks 1, 7"),
    (
        queued(after=(7,), lack=Lack(what="the price")),
        facts(),
        Why.LACK,
        "it waits for task 7, which should bring what it lacked: the price",
    ),
    (
        samples.task(status=TaskStatus.WAITING),
        facts(asked=[samples.step(kind=QUESTION, id=9, **ASKING)]),
        Why.ANSWER,
        "it waits for your answer: Which year?",
    ),
    (
        samples.task(status=TaskStatus.WAITING),
        facts(asked=[samples.step(kind=APPROVAL, id=9, **ASKING)]),
        Why.DECISION,
        "it needs a decision: may this call be made?",
    ),
    (
        samples.task(status=TaskStatus.WAITING),
        facts(asked=[samples.step(kind=ONCE, id=9, **ASKING)]),
        Why.DECISION,
        "this call may have been made",
    ),
    (queued(not_before=FAR), facts(), Why.QUESTIONS, "enough questions are open"),
    (queued(), facts(outage=down(60)), Why.ENDPOINT, "answered 500; next try at"),
    (queued(), facts(outage=down(0)), Why.ENDPOINT, "it is being tried again"),
    (queued(), facts(spec=spec(max_tasks=5), n_begun=5), Why.LIMIT, "the limit of tasks"),
    (queued(), facts(spec=spec(max_time_s=60.0)), Why.LIMIT, "the limit of time"),
    (
        queued(),
        facts(spec=spec(max_cost_usd=0.1), usage=Usage(calls=1, cost_usd=0.1)),
        Why.LIMIT,
        "the limit of cost is reached",
    ),
    (queued(), facts(overspent="cost"), Why.LIMIT, "the limit of cost cannot be guaranteed"),
    (queued(), facts(is_claimed_met=True), Why.CHECKING, "an agent has said that the objective"),
    (queued(), facts(stop_reason=None, status="paused"), Why.PAUSED, "is paused"),
    (
        queued(),
        facts(stop_reason=StopReason.STALLED),
        Why.ENDED,
        "the objective has ended (stalled): the last tasks",
    ),
    (queued(), facts(stop_reason=StopReason.LIMIT_COST), Why.LIMIT, "limit:cost"),
    (
        queued(),
        facts(stop_reason=StopReason.FAILED, has_report=False),
        Why.REPORT,
        "has ended (failed)",
    ),
    (queued(), facts(workers=[]), Why.NO_WORKER, "no worker is running"),
    (
        queued(),
        facts(workers=[samples.worker("ada", lease_left_s=-1.0)]),
        Why.NO_WORKER,
        "no worker is running",
    ),
    (
        queued(),
        facts(workers=[samples.worker("ada", blocked_reason="no key for gpt-6")]),
        Why.BLOCKED,
        "no worker can work on the objective; ada: no key for gpt-6",
    ),
    (
        queued(not_before=samples.at(130), error="time-out", try_no=2),
        facts(),
        Why.DELAYED,
        "try 1 failed: time-out; it is tried again at ",
    ),
    (queued(), facts(counts={TaskStatus.RUNNING: 4}), Why.NEXT, "4 tasks are running"),
]


def ask(task, known):
    statuses = {1: TaskStatus.QUEUED, 2: TaskStatus.DONE, 7: TaskStatus.RUNNING}
    return explain_task(task, known, status_by_id=statuses)


@pytest.mark.parametrize(
    ("task", "known", "why", "says"), TASKS, ids=[f"{case[2]}-{n}" for n, case in enumerate(TASKS)]
)
def test_a_task_is_explained_by_the_first_thing_that_keeps_it(task, known, why, says):
    reason = ask(task, known)

    assert reason.why is why
    assert says in reason.says
    assert "\n" not in reason.says + reason.change
    assert 0 < len(reason.word) <= 21
    settled = (Why.RUNNING, Why.PLANNING, Why.DONE, Why.CHECKING)
    assert bool(reason.change) == (why not in settled)


def test_every_value_of_the_list_is_the_answer_to_some_question():
    stalled = replace(facts().standing, n_tasks_without_progress=99)
    answers = {case[2] for case in TASKS} | {
        ask(queued(), Facts(standing=stalled, workers=[samples.worker("ada")])).why
    }

    assert answers == set(Why)


def test_a_check_before_a_list_stalls_is_not_called_an_agents_claim():
    checked = facts(is_claimed_met=True)
    barren = replace(checked, standing=replace(checked.standing, n_tasks_without_progress=5))

    assert ask(queued(), barren).says.startswith("the last tasks brought nothing new")


def test_an_end_a_pause_and_what_comes_first_are_said_before_what_else_would_keep_a_task():
    alone = facts(workers=[], outage=down(60))

    assert ask(queued(after=(7,)), alone).why is Why.AFTER
    assert ask(queued(), alone).why is Why.NO_WORKER
    paused = facts(stop_reason=None, status="paused", workers=[])
    assert ask(queued(after=(7,)), paused).why is Why.PAUSED


def test_a_task_that_was_begun_may_go_on_at_the_limit_of_tasks():
    full = facts(spec=spec(max_tasks=5), n_begun=5)

    assert ask(queued(started_at=samples.START), full).why is Why.NEXT


def test_an_outage_is_told_with_its_evidence_and_with_what_may_mend_it():
    data = {"reason": "m sent an invalid answer", "why": "a web page", "fix": "check the address"}
    told = samples.event(kind=events.MODEL_UNAVAILABLE, data=data, at=NOW)

    reason = explain_objective(facts(outage=told))

    assert "is down: m sent an invalid answer (a web page); " in reason.says
    assert reason.change == "check the address; it is retried until it answers"


def test_an_objective_that_was_set_aside_says_for_what():
    known = facts(stop_reason=None, status="paused", stop_detail="there is no folder here")

    assert explain_objective(known).says.endswith("is paused (there is no folder here)")


@pytest.mark.parametrize(
    ("known", "running", "why", "says"),
    [
        (facts(), [4], Why.RUNNING, "working on task 4"),
        (facts(), [4, 5, 6], Why.RUNNING, "working on tasks 4, 5, 6"),
        (facts(outage=down(60)), [4], Why.ENDPOINT, "the endpoint of the model is down"),
        (facts(workers=[]), [4], Why.NO_WORKER, "no worker"),
        (facts(workers=[duty(Duty.CHECK)]), [], Why.CHECKING, "the objective is being checked"),
        (facts(workers=[duty(Duty.PLAN)]), [], Why.PLANNING, "new tasks are being planned"),
        (facts(workers=[duty(Duty.INDEX)]), [], Why.NEXT, "1 task is queued"),
        (facts(counts={TaskStatus.RECORDED: 2}), [], Why.PLANNING, "new tasks are being planned"),
        (facts(counts={TaskStatus.WAITING: 2}), [], Why.ANSWER, "2 tasks wait for your answer"),
        (facts(counts={TaskStatus.DONE: 2}), [], Why.CHECKING, "all tasks are done"),
        (facts(spec=spec(max_tasks=1), n_begun=1), [], Why.LIMIT, "the limit of tasks is reached"),
        (
            facts(stop_reason=StopReason.FINISHED),
            [],
            Why.ENDED,
            "the objective has ended (finished)",
        ),
        (facts(stop_reason=None, status="paused"), [], Why.PAUSED, "the objective is paused"),
    ],
)
def test_an_objective_says_what_is_done_or_what_keeps_it(known, running, why, says):
    tasks = [samples.task(id=task_id, status=TaskStatus.RUNNING) for task_id in running]

    reason = explain_objective(known, running=tasks)

    assert reason.why is why
    assert says in reason.says


def test_text_of_a_model_or_an_endpoint_is_shown_as_one_bounded_line():
    dead = samples.task(status=TaskStatus.DEAD, error=samples.HOSTILE * 500)

    reason = ask(dead, facts())

    assert "\n" not in reason.says and len(reason.says) < 400
