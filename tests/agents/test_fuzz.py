"""Random replies; 100,000 of them and the times in full: `python -m benchmarks.fuzz_replies`."""

import asyncio

from benchmarks.fuzz_replies import fuzz, is_linear, measure_times


def test_no_random_text_loses_or_renames_a_task_as_the_prioritizers_reply_or_the_creation_agents():
    lists = asyncio.run(fuzz(3000, seed=7))

    assert lists.n_lost == 0
    assert lists.n_orders > 50 and lists.n_added > 500 and lists.n_malformed > 50


def test_reading_a_reply_takes_linear_time_whatever_its_shape():
    slow = {shape: times for shape, times in measure_times((50_000, 100_000)).items() if not is_linear(times)}

    assert slow == {}
