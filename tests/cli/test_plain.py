import re

import pytest

from babyagi import log
from babyagi.cli.plain import describe_event
from tests.cli import samples

KINDS = {
    name: value for name, value in vars(log).items() if name.isupper() and isinstance(value, str)
}
SILENT = {
    log.STEP_INTENDED,
    log.STEP_RECORDED,
    log.STEP_ABANDONED,
    log.WORKER_JOINED,
    log.WORKER_LEFT,
    log.RESULTS_INDEXED,
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_every_change_of_state_has_words(kind):
    said = describe_event(samples.event(kind=kind, data={}), "Read a.md")

    assert (said is None) == (kind in SILENT)


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        (log.TASK_DONE, {"n_added": 2, "n_duplicates": 0}, "task 4 done: Read a.md (2 new)"),
        (log.TASK_DONE, {"n_added": 0}, "task 4 done: Read a.md"),
        (log.TASK_CLAIMED, {"worker_id": "w", "try_no": 1}, "task 4 started: Read a.md"),
        (
            log.WORKER_HINDERED,
            {"name": "w", "hindrance": "no key"},
            "a worker cannot work on it (no key)",
        ),
        (log.TASK_DEAD, {"error": "no such\nfile"}, "task 4 given up: Read a.md (no such file)"),
        (
            log.RESULTS_INDEXED,
            {"n": 100, "n_owed": 1400},
            "the index catches up: 100 results more, 1,400 are left",
        ),
        (log.ORDER_APPLIED, {"n_moved": 3, "task_ids": [1]}, "the list was ordered (3 moved)"),
        (
            log.OBJECTIVE_ENDED,
            {"reason": "limit:tasks", "detail": "50 of 50"},
            "objective 3 ended (limit:tasks; 50 of 50)",
        ),
        (
            log.MODEL_UNAVAILABLE,
            {"reason": "http://here/v1 answered 500", "why": "overloaded", "retry_in_s": 12.2},
            "waiting for the model: http://here/v1 answered 500, next try in 12 s",
        ),
        (
            log.OBJECTIVE_CHECKED,
            {"is_met": False, "reason": "no"},
            "checked whether the objective is met (it is not met; no)",
        ),
        (
            log.OBJECTIVE_CHECKED,
            {"is_met": True, "reason": ""},
            "checked whether the objective is met (it is met)",
        ),
        (
            log.TASK_LACKED,
            {"lack": "the price", "n_lacks": 1},
            "task 4 lacks something: Read a.md (the price)",
        ),
        (
            log.TASK_REQUEUED,
            {"try_no": 2, "waits_for": [7, 9]},
            "task 4 is queued again: Read a.md (after 7, 9)",
        ),
        (log.TASK_REQUEUED, {"try_no": 2, "waits_for": []}, "task 4 is queued again: Read a.md"),
        (
            log.TASK_DUPLICATE_DROPPED,
            {"name": "Read b.md", "repeats": 2},
            "task 4 proposed a task that is there already: Read a.md (Read b.md)",
        ),
        (
            log.STEP_OVERSPENT,
            {"tokens": 9000, "reserved_tokens": 3000, "is_said": True, "limit": "cost"},
            "the cost of an answer is not what it should be: 9,000 tokens, where 3,000 "
            "were reserved; no further call is made, "
            "because the limit of cost cannot be held",
        ),
        (
            log.STEP_OVERSPENT,
            {"model": "m", "is_said": False, "limit": ""},
            (
                "the cost of an answer is not what it should be: m does not say how many "
                "tokens it took"
            ),
        ),
        (
            log.PLAN_FAILED,
            {"task_ids": [1], "reason": "no JSON"},
            "nothing could be planned from a result (no JSON)",
        ),
        (
            log.CONTEXT_CUT,
            {"cut": [1, 2]},
            "a prompt does not hold all of what it needs (task 4: of results 1, 2)",
        ),
    ],
)
def test_a_change_of_state_is_said_in_one_plain_line(kind, data, said):
    assert describe_event(samples.event(kind=kind, data=data), "Read a.md") == said


def test_hostile_names_and_errors_come_out_harmless_and_bounded():
    said = describe_event(
        samples.event(kind=log.TASK_FAILED, data={"error": samples.HOSTILE * 500}),
        samples.HOSTILE * 500,
    )

    assert said is not None
    assert said.isprintable()
    assert len(said) < 400
    assert re.match(r"task 4 failed: ", said)
