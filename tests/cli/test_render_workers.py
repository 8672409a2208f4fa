from datetime import timedelta

from babyagi.cli.render import render_serving, render_workers
from babyagi.tasks import Duty
from babyagi.verbs.actions import serving
from babyagi.verbs.json_shapes import worker_shape
from tests.cli import samples


def test_only_the_living_who_are_not_hindered_are_at_work():
    workers = [
        samples.worker("able"),
        samples.worker("hindered", blocked_reason="no key"),
        samples.worker("dead", lease_left_s=-1.0),
        samples.worker("elsewhere", objective_id=4),
    ]

    assert [worker.name for worker in serving(workers, 3)] == ["able"]
    assert render_serving(workers, 3) == "1 worker: able"
    assert render_serving([], 3) == ""


def test_workers_who_do_not_serve_the_objective_are_said_with_where_to_look():
    idle, dead = samples.worker("idle", joined=()), samples.worker("dead", lease_left_s=-1.0)
    elsewhere = samples.worker("elsewhere", objective_id=4)
    blocked = samples.worker("blocked", blocked_reason="no key\x1b[31m")

    for others in ([idle, elsewhere], [blocked], [dead]):
        said = render_serving(others, 3)
        assert said == "no worker on this objective; babyagi show workers says why"
    assert render_serving([samples.worker("able"), idle, elsewhere], 3) == "1 worker: able"


def test_a_line_says_on_what_since_when_and_what_keeps_one():
    busy = samples.worker("busy", task_ids=(4, 9))
    lines = [
        line.text
        for line in render_workers(
            [
                busy,
                samples.worker("poor", blocked_reason="no key"),
                samples.worker("idle", joined=()),
                samples.worker("gone", lease_left_s=-5.0),
            ],
            100,
        )
    ]

    assert lines[0].split() == ["NAME", "PID", "LEASE", "AT", "WORK"]
    assert lines[1].split(maxsplit=4) == [
        "busy",
        "7",
        "20",
        "s",
        "objective 3 for 1 min 10 s: task 4, task 9",
    ]
    assert lines[2].endswith("objective 3: blocked: no key")
    assert lines[3].endswith("waits for an objective")
    assert " over " in lines[4]


def test_the_json_of_a_worker_has_what_it_holds_and_its_hindrance():
    (joined,) = (worker := samples.worker("busy", task_ids=(4,))).joined
    shape = worker_shape(worker)

    assert (shape["name"], shape["lease_left_s"]) == ("busy", 20.0)
    assert shape["objectives"] == [
        {
            "objective_id": 3,
            "since": joined.since.isoformat(),
            "hindrance": "",
            "tasks": [4],
            "duties": [],
        },
    ]
    assert Duty.ORDER not in shape["objectives"][0][
        "duties"
    ] and worker.lease_until - joined.since > timedelta(0)
