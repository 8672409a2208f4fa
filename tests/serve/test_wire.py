import json

import pytest

from babyagi import errors
from babyagi.errors import (
    BabyagiError,
    LimitReachedError,
    NotFoundError,
    RequestError,
    SettingsError,
)
from babyagi.serve.wire import (
    parse_body,
    parse_parameters,
    status_of,
    to_bytes,
    write_error,
)
from babyagi.tasks import TaskStatus
from babyagi.verbs.verb_table import VERBS, Submission, TasksQuery

(Addition,) = (verb.given for verb in VERBS if verb.name == "add_task")
(LogQuery,) = (verb.given for verb in VERBS if verb.name == "log")

JSON = "application/json"


def kinds(of=BabyagiError):
    yield of
    for kind in of.__subclasses__():
        yield from kinds(kind)


@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: kind.__name__)
def test_no_error_of_ours_is_a_fault_of_the_server(kind):
    error = kind("x", limit="tasks", is_final=True) if kind is LimitReachedError else kind("x")

    assert status_of(error) in (404, 409, 422, 503)
    assert hasattr(errors, kind.__name__)


def test_an_error_says_what_it_says_on_the_command_line_and_shows_no_key():
    error = SettingsError("no SECRET-KEY-123", why="so it is", fix="babyagi doctor", guide="serve")

    problem = json.loads(bytes(write_error(error, ["SECRET-KEY-123"]).body))

    assert problem == {
        "type": "urn:babyagi:settings",
        "title": "no ***",
        "status": 422,
        "detail": "so it is",
        "try": "babyagi doctor",
        "guide": "serve",
    }


def test_an_error_without_a_remedy_gets_that_of_its_kind():
    problem = json.loads(bytes(write_error(NotFoundError("there is no task 9"), []).body))

    assert problem["try"] == "babyagi show objectives lists what exists"


def test_a_body_is_read_into_its_type_with_clean_texts():
    data = b'{"name": "a\\u0000b\\ud800", "after": [1, 2]}'

    assert parse_body(data, JSON, Addition) == Addition(name="a\ufffdb\ufffd", after=(1, 2))


def test_an_empty_body_is_an_empty_object():
    with pytest.raises(RequestError) as caught:
        parse_body(b"", "", Submission)
    assert caught.value.status == 422


def test_parameters_are_read_into_their_types():
    query = parse_parameters([("status", "done"), ("status", "dead"), ("limit", "5")], TasksQuery)

    assert query == TasksQuery(status=(TaskStatus.DONE, TaskStatus.DEAD), limit=5)


@pytest.mark.parametrize(
    "pairs",
    [
        [("limit", "x")],
        [("limit", "1"), ("limit", "2")],
        [("after", "9" * 30)],
        [("more", "1")],
        [("a", "1")] * 60,
    ],
)
def test_parameters_that_make_no_sense_are_refused(pairs):
    with pytest.raises(RequestError):
        parse_parameters(pairs, LogQuery)


def test_json_holds_no_sign_of_markup():
    value = {"<b>": "</script>&\u2028é"}

    data = to_bytes(value)

    assert not set(data) & set(b"<>&")
    assert data.isascii()
    assert json.loads(data) == value
