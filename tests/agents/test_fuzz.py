"""Random replies; 100,000 of them and the times in full: `python -m benchmarks.fuzz_replies`."""

import asyncio

import pytest

from benchmarks.fuzz_replies import SHAPES, fuzz, read_s
from tests.linear import grows_faster_than_linearly


def test_no_random_text_loses_or_renames_a_task_as_the_prioritizers_reply_or_the_creation_agents():
    lists = asyncio.run(fuzz(3000, seed=7))

    assert lists.n_lost == 0
    assert lists.n_orders > 50 and lists.n_added > 500 and lists.n_malformed > 50


@pytest.mark.parametrize("shape", SHAPES)
def test_reading_a_reply_takes_linear_time_whatever_its_shape(shape):
    assert not grows_faster_than_linearly(lambda n: read_s(SHAPES[shape](n)), 200_000)
