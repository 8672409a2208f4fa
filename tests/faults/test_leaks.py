"""A few of the attacks and honest tasks; all of them: `python -m tests.faults.leaks`."""

import pytest

from tests.faults.leaks_outside import count_bytes

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_no_word_of_a_private_text_arrives_outside_that_nobody_said_yes_to(campaign):
    said = campaign("leaks", "--kind", "adaptive", "--kind", "planted", "--every", "30")

    assert "0 faults: met" in said


def test_honest_tasks_ask_rarely_and_end_with_an_answer_where_nobody_is_there(campaign):
    assert "0 faults: met" in campaign("leaks", "--kind", "honest", "--every", "49")


def test_what_arrives_is_compared_in_whatever_way_the_secret_was_written():
    same, other = ["GET /?q=a", "GET /b"], ["GET /?q=616d62", "GET /b"]

    assert count_bytes(same, same) == 0
    assert count_bytes(same, other) == 6
    assert count_bytes(same, same[:1]) == len("GET /b")
