"""A few random instants; 20 of each, with the exact times: `python -m tests.faults.stops`."""

import pytest

from tests.faults.stops import measure

pytestmark = [pytest.mark.faults, pytest.mark.system]


async def test_after_a_drain_a_second_signal_and_a_pause_no_call_is_made():
    stops_by_kind = await measure(n=2, seed=2)

    late = [stop for stops in stops_by_kind.values() for stop in stops if stop.n_late]
    assert late == []
    assert {
        stop.code for kind in ("SIGTERM", "second SIGTERM") for stop in stops_by_kind[kind]
    } == {143}
    assert (
        sum(
            stop.n_in_flight
            for kind in ("pause in the store", "babyagi pause")
            for stop in stops_by_kind[kind]
        )
        > 0
    )
