"""A short soak; 10,000 tasks, and what they cost in memory: `python -m benchmarks.soak`."""

from benchmarks.soak import soak


async def test_a_long_run_leaves_no_descriptor_and_no_thread_over(tmp_path):
    samples = await soak(300, tmp_path)

    first, last = samples[0], samples[-1]
    assert (last.n_fds, last.n_threads) == (first.n_fds, first.n_threads)
    assert len({(sample.n_fds, sample.n_threads) for sample in samples[1:-1]}) == 1
