"""The JSON that others script against, held to what stands in `snapshots/`.

A snapshot is changed by hand, together with its documentation.
"""

import json
from pathlib import Path

import pytest

from babyagi.verbs import json_shapes
from babyagi.verbs.actions import Shown
from babyagi.worker.notify import event_fields
from tests.cli import samples

SNAPSHOTS = Path(__file__).parents[1] / "cli" / "snapshots"


def shown(**more):
    return Shown(objective=samples.objective(), task=samples.task(), **more)


SHAPES = {
    "tasks": lambda: [json_shapes.task_shape(samples.task())],
    "results": lambda: [json_shapes.result_shape(samples.result(), samples.made())],
    "status": lambda: json_shapes.status_shape(samples.objective(), samples.COUNTS),
    "objectives": lambda: [
        json_shapes.objective_shape(
            samples.objective(), samples.COUNTS, last_event_at=samples.START
        )
    ],
    "report": lambda: json_shapes.report_shape(
        samples.objective(), "# Report\n", samples.sources(), samples.made()
    ),
    "show": lambda: json_shapes.shown_shape(
        shown(
            result=samples.result(),
            sources=samples.sources(),
            made=samples.made(),
            times={"task:4": [samples.inputs_step(), samples.step()]},
        ),
        secrets=(),
    ),
    "index_check": lambda: json_shapes.index_check_shape(
        samples.objective(), samples.check_report()
    ),
    "search": lambda: json_shapes.search_shape(samples.objective(), "limits", samples.ranking()),
    "event": lambda: event_fields(samples.event()),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_json_that_others_script_against_stays_as_it_is(name):
    snapshot = json.loads((SNAPSHOTS / f"{name}.json").read_text(encoding="utf-8"))

    assert json.loads(json.dumps(SHAPES[name]())) == snapshot


def test_a_task_without_a_result_shows_null():
    shape = json_shapes.shown_shape(shown(times={}), secrets=())

    assert shape["result"] is None
    assert shape["steps"] == []


def test_a_word_that_was_kept_beside_what_a_try_was_given_is_none_of_it():
    kept = samples.step(key="1/execute/protocol", kind="inputs", output='"text"')
    steps = [samples.inputs_step(), kept]

    given = json_shapes.given_results(steps)

    assert given == json_shapes.given_results(steps[:1])


def test_a_rehearsal_is_said_in_the_status_and_the_report():
    rehearsed = samples.objective(spec=samples.spec(model="rehearsal"))

    assert json_shapes.status_shape(rehearsed, samples.COUNTS)["is_rehearsal"] is True
    assert json_shapes.report_shape(rehearsed, "", samples.sources())["is_rehearsal"] is True
