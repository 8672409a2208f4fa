"""A store as version 1 of the schema left it, for both engines, and what must be true of it after
an upgrade."""

import json
import re
from dataclasses import replace

from babyagi import names
from babyagi.tasks import Checks, Duty, Limits, ObjectiveStatus, Planning, Result, TaskStatus
from babyagi.taskstore import lifecycle
from babyagi.taskstore.sql.database import result_to_values, spec_to_json, to_json, to_time
from support.workers import join
from tests.taskstore.contract import (
    NO_LIMITS,
    check,
    find_words,
    finish_one,
    make_spec,
    make_worker,
    plan_from,
)

# Status, what it comes after, how many of these version 1 waited for, whether it was begun, and who
# holds it. Two wait for a dead one.
TASKS = {
    1: ("done", [], 0, True, None),
    2: ("dead", [], 0, True, None),
    3: ("queued", [1, 2], 1, False, None),
    4: ("queued", [3, 2], 2, False, None),
    5: ("cancelled", [], 0, False, None),
    6: ("queued", [5, 7], 1, False, None),
    7: ("running", [], 0, True, "gone"),
    8: ("recorded", [2], 0, True, None),
    9: ("recorded", [], 0, True, "gone"),
}
RESULTS = {1: "The lake froze", 8: "The sea did not", 9: "Nor did the river"}


def rows_of_version_1():
    """The rows, by table, in the order in which they can be inserted."""
    spec = json.loads(spec_to_json(make_spec()))
    del spec["planning"]
    objective = {
        "uid": "old",
        "identity": lifecycle.identity_key(make_spec()),
        "spec": to_json(spec),
        "created_at_us": 1,
        "seen_us": 1,
    }
    objective |= {
        "last_task_id": len(TASKS),
        "ordered_upto": len(TASKS),
        "is_claimed_met": 1,
        "n_barren": 2,
    }
    tasks, afters = [], []
    for task_id, (status, after, blockers, is_begun, worker_id) in TASKS.items():
        task = {
            "objective_id": 1,
            "id": task_id,
            "name": f"Task {task_id}",
            "name_key": names.name_key(f"Task {task_id}"),
            "rank": task_id,
        }
        task |= {
            "status": status,
            "after_ids": to_json(after),
            "blockers": blockers,
            "origins": '["person"]',
            "created_at_us": 1,
        }
        task |= {
            "started_at_us": 2 if is_begun else None,
            "finished_at_us": 3 if status in ("done", "dead") else None,
        }
        tasks.append(task | {"worker_id": worker_id, "claim_no": int(is_begun)})
        afters += [
            {"objective_id": 1, "after_id": after_id, "task_id": task_id} for after_id in after
        ]
    results = [_result(task_id, text) for task_id, text in RESULTS.items()]
    worker = {
        "id": "gone",
        "name": "gone",
        "host": "h",
        "pid": 1,
        "home": "",
        "since_us": 1,
        "lease_us": 1,
        "lease_until_us": 2,
    }
    joined = {"worker_id": "gone", "objective_id": 1, "hindrance": "", "since_us": 1}
    duty = {
        "objective_id": 1,
        "duty": "check",
        "owner": "check:1",
        "claim_no": 6,
        "worker_id": "gone",
        "upto": 0,
    }
    event = {"objective_id": 1, "kind": "objective.created", "data": "{}", "at_us": 1}
    return [
        *[
            ("objective", objective),
            *[("task", task) for task in tasks],
            *[("task_after", after) for after in afters],
        ],
        *[("result", result) for result in results],
        *[("worker", worker), ("worker_objective", joined), ("duty", duty), ("event", event)],
    ]


def _result(task_id, text):
    result = Result(
        task_id=task_id,
        objective_id=1,
        task_name="",
        text=text,
        origins=("model:m",),
        created_at=to_time(2),
    )
    values = result_to_values(result)
    del values["lack"]
    return values


def fill_version_1(execute, *, placeholder):
    """Insert the rows.

    Args:
        execute: takes a statement and its values. placeholder: what stands for a value in it.
    """
    for table, row in rows_of_version_1():
        execute(
            (
                f"INSERT INTO {table} ({', '.join(row)}) VALUES "
                f"({', '.join([placeholder] * len(row))})"
            ),
            list(row.values()),
        )


def statements_of(script, *, is_whole):
    """The statements of a script, each with what is said about it.

    Args:
        is_whole: whether a text that ends with `;` is a whole statement.
    """
    statements, current = [], ""
    for query in re.split(r"(?<=;\n)", script):
        current += query
        if current.strip() and is_whole(current):
            statements.append(current)
            current = ""
    assert not current.strip()
    return statements


async def check_upgraded(store):
    """Everything of version 1 is there, and a worker can go on from it."""
    objective = await store.objective(1)
    assert (objective.spec.planning, objective.status, objective.checks) == (
        Planning.SEPARATE,
        ObjectiveStatus.ACTIVE,
        Checks(),
    )
    tasks = await store.tasks(1)
    assert [(task.id, task.status, list(task.after)) for task in tasks] == [
        (id, row[0], row[1]) for id, row in TASKS.items()
    ]
    assert {(task.lack, task.n_lacks) for task in tasks} == {(None, 0)}
    assert [(result.task_id, result.text, result.lack) for result in await store.results(1)] == [
        (*row, "") for row in RESULTS.items()
    ]
    assert (
        (await store.verify()).damages,
        await find_words(store, 1, words=["froze"], limit=5),
    ) == ((), [1])

    assert await store.reap_workers() == 2
    assert (await store.counts(1))[TaskStatus.RECORDED] == 2
    await join(store, make_worker("w"), 1)
    claim = await store.claim_duty(1, "w", Duty.CHECK)
    assert (claim.fence.owner, claim.fence.claim_no) == ("check:1", 7)
    await store.release_duty(claim)
    assert (await check(store, 1)).checks.n_answers == len(RESULTS)
    assert await store.recorded_ids(1, limit=9) == [8, 9]
    await plan_from(store, 1)
    await store.extend_objective(1, limits=replace(NO_LIMITS, max_tasks=5))
    assert (await finish_one(store, 1))[0] == 7, "as many were begun as may be"
    assert await store.claim_task(1, "w") is None
    await store.extend_objective(1, limits=Limits(max_tasks=8))
    assert [(await finish_one(store, 1))[0] for _ in range(3)] == [3, 4, 6]
    await store.retry_task(1, 2)
    assert (await store.claim_task(1, "w")).task.id == 2
