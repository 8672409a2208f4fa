"""A few random instants; 20 of each, with the exact times: `python -m benchmarks.stops`."""

import pytest

from benchmarks.stops import GOAL_S, measure

SLACK_S = 1.0  # tests run beside each other; the benchmark has the machine to itself

pytestmark = pytest.mark.system


async def test_a_drain_a_second_signal_and_a_pause_are_in_time_and_no_call_is_made_after_them():
    stops_by_kind = await measure(n=2, seed=2)

    late = [stop for stops in stops_by_kind.values() for stop in stops if stop.n_late]
    slow = [
        (kind, stop)
        for kind, stops in stops_by_kind.items()
        for stop in stops
        if stop.took_s > (GOAL_S[kind] or 30) + SLACK_S
    ]
    assert late == []
    assert slow == []
    assert {
        stop.code for kind in ("SIGTERM", "second SIGTERM") for stop in stops_by_kind[kind]
    } == {143}
    assert (
        sum(
            stop.n_in_flight
            for kind in ("pause_objective", "babyagi pause")
            for stop in stops_by_kind[kind]
        )
        > 0
    )
