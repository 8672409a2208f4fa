"""The document of the API, and random requests that are made from it."""

import re

import pytest

from babyagi.serve.operations import OPERATIONS, make_document
from babyagi.verbs.verb_table import BASE
from tests.faults.door import fuzz


def test_the_document_has_every_operation_with_what_it_takes():
    paths = make_document()["paths"]

    for one in OPERATIONS:
        said = paths[BASE + one.path][one.method.lower()]
        in_path = [each["name"] for each in said["parameters"] if each["in"] == "path"]
        assert in_path == re.findall(r"{(\w+)}", one.path)
        assert ("requestBody" in said) == (one.has_body)
        assert said["summary"] == one.says


def test_every_operation_has_a_name_and_a_sentence():
    assert all(one.says.endswith((".", ").")) for one in OPERATIONS)


async def test_the_document_is_given_to_who_may_read(served):
    reply = await served.ask("GET", f"{BASE}/openapi.json")

    assert reply.json() == make_document()


@pytest.mark.faults
@pytest.mark.system
def test_no_random_request_breaks_the_server(tmp_path):
    found = fuzz(tmp_path, n_requests=150, seed=1)

    assert found.faults == []
    assert found.n_requests >= 150
