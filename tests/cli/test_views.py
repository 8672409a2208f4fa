import re
from dataclasses import replace
from datetime import timedelta

import pytest

from babyagi import events
from babyagi.cli.views import PlainView, describe_event
from support.world import World
from tests.cli import samples

KINDS = {
    name: value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)
}
SILENT = {
    events.STEP_INTENDED,
    events.STEP_RECORDED,
    events.STEP_ABANDONED,
    events.WORKER_JOINED,
    events.WORKER_LEFT,
    events.PERSON_TOLD,
}


async def test_an_outage_is_said_once_a_minute_until_it_is_over():
    view, said = PlainView(store=World().store, objective_id=3), []
    down, released = events.MODEL_UNAVAILABLE, events.TASK_RELEASED
    for at_s, kind in (
        (0, down), (1, released), (19, down), (61, down), (70, events.MODEL_AVAILABLE), (71, down),
    ):  # fmt: skip
        reason = "the model is unavailable: m is away" if kind == released else "m is away"
        event = samples.event(kind=kind, data={"reason": reason}, task_id=None)
        if await view.render_event(replace(event, at=event.at + timedelta(seconds=at_s))):
            said.append(at_s)

    assert said == [0, 61, 70, 71]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_every_change_of_state_has_words(kind):
    said = describe_event(samples.event(kind=kind, data={}), "Read a.md")

    assert (said is None) == (kind in SILENT)


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        (events.TASK_DONE, {"n_added": 2, "n_duplicates": 0}, "task 4 done: Read a.md (2 new)"),
        (events.TASK_DONE, {"n_added": 0}, "task 4 done: Read a.md"),
        (events.TASK_CLAIMED, {"worker_id": "w", "try_no": 1}, "task 4 claimed: Read a.md"),
        (
            events.WORKER_BLOCKED,
            {"name": "w", "hindrance": "no key"},
            "a worker cannot work on this objective (no key)",
        ),
        (events.TASK_DEAD, {"error": "no such\nfile"}, "task 4 given up: Read a.md (no such file)"),
        (
            events.RESULTS_INDEXED,
            {"n": 100, "n_owed": 1400},
            "the index is catching up: 100 more results, 1,400 are left",
        ),
        (events.ORDER_APPLIED, {"n_moved": 3, "task_ids": [1]}, "the list was ordered (3 moved)"),
        (
            events.OBJECTIVE_ENDED,
            {"reason": "limit:tasks", "detail": "50 of 50"},
            "objective 3: no further task starts (limit:tasks; 50 of 50)",
        ),
        (
            events.MODEL_UNAVAILABLE,
            {"reason": "http://here/v1 answered 500", "why": "overloaded", "retry_in_s": 12.2},
            "waiting for the model: http://here/v1 answered 500 (overloaded), next try in 12 s",
        ),
        (
            events.MODEL_UNAVAILABLE,
            {
                "reason": "m at http://here sent an invalid answer",
                "why": "a web page",
                "fix": "check OPENAI_BASE_URL",
                "retry_in_s": 1.0,
            },
            "waiting for the model: m at http://here sent an invalid answer (a web page), next "
            "try in 1 s; check OPENAI_BASE_URL",
        ),
        (
            events.OBJECTIVE_CHECKED,
            {"is_met": False, "reason": "no"},
            "checked whether the objective is met (it is not met; no)",
        ),
        (
            events.OBJECTIVE_CHECKED,
            {"is_met": True, "reason": ""},
            "checked whether the objective is met (it is met)",
        ),
        (
            events.TASK_LACKED,
            {"lack": "the price", "n_lacks": 1},
            "task 4 lacks something: Read a.md (the price)",
        ),
        (
            events.TASK_REQUEUED,
            {"try_no": 2, "waits_for": [7, 9]},
            "task 4 queued again: Read a.md (after 7, 9)",
        ),
        (events.TASK_REQUEUED, {"try_no": 2, "waits_for": []}, "task 4 queued again: Read a.md"),
        (events.TASK_REQUEUED, {"try_no": 2, "is_retry": True}, "task 4 retried: Read a.md"),
        (
            events.TASK_REQUEUED,
            {"is_answered": True},
            "task 4 has its answer and is queued again: Read a.md",
        ),
        (
            events.TASK_AFTER_DROPPED,
            {"by": 3},
            "task 4 no longer waits: a result has what it lacked: Read a.md",
        ),
        (
            events.STEP_ABANDONED,
            {"is_unconfirmed": True},
            "a call was cut off; it is counted as paid and made again",
        ),
        (events.OBJECTIVE_EXTENDED, {"space": "s"}, "objective 3: results are embedded again"),
        (
            events.TASK_DUPLICATE_DROPPED,
            {"name": "Read b.md", "repeats": 2},
            "task 4 proposed a task that exists already: Read b.md",
        ),
        (
            events.TASK_DUPLICATE_DROPPED,
            {"name": "Read a.md", "repeats": 4},
            "task 4 proposed a task that exists already: Read a.md",
        ),
        (
            events.STEP_OVERSPENT,
            {"tokens": 9000, "reserved_tokens": 3000, "is_said": True, "limit": "cost"},
            "the cost of an answer differs from its reservation: 9,000 tokens, where 3,000 "
            "were reserved; no further call is made, "
            "because the limit of cost cannot be guaranteed",
        ),
        (
            events.STEP_OVERSPENT,
            {"model": "m", "is_said": False, "limit": ""},
            (
                "the cost of an answer differs from its reservation: m does not say how many "
                "tokens it used"
            ),
        ),
        (
            events.PLAN_FAILED,
            {"task_ids": [1], "reason": "no JSON"},
            "nothing could be planned from a result (no JSON)",
        ),
        (
            events.CONTEXT_CUT,
            {"cut": [1, 2]},
            "a prompt had no room for whole results (task 4: of results 1, 2)",
        ),
    ],
)
def test_a_change_of_state_is_said_in_one_plain_line(kind, data, said):
    assert describe_event(samples.event(kind=kind, data=data), "Read a.md") == said


def test_hostile_names_and_errors_come_out_harmless_and_bounded():
    said = describe_event(
        samples.event(kind=events.TASK_FAILED, data={"error": samples.HOSTILE * 500}),
        samples.HOSTILE * 500,
    )

    assert said is not None
    assert said.isprintable()
    assert len(said) < 400
    assert re.match(r"task 4 failed: ", said)
