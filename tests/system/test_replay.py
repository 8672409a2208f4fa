"""The same seed gives the same run; a thousand seeds: `python -m benchmarks.replay`."""

from benchmarks.replay import run_once

N_SEEDS = 100


def test_the_same_seed_and_the_same_model_give_the_same_events():
    runs = [run_once(seed) for seed in range(N_SEEDS)]

    assert [run_once(seed) for seed in range(N_SEEDS)] == runs
    assert len(set(runs)) > N_SEEDS * 0.9
