"""The benchmarks at their smallest: each prints its table. Time is not judged here; the tokens are,
because they are always the same."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import tokens

ROOT = Path(__file__).parent.parent


def run(name, *options):
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def cost_by_length(result_bytes):
    return [
        asyncio.run(tokens.measure(n, result_bytes=result_bytes, n_measured=6)) for n in (10, 500)
    ]


def test_a_task_costs_the_same_tokens_at_any_length_of_the_queue():
    costs = cost_by_length(2048)

    assert tokens.spread(costs) <= tokens.MAX_SPREAD
    assert all(cost.context_tokens >= tokens.MIN_CONTEXT_TOKENS for cost in costs)
    assert all(tokens_ > 0 for cost in costs for tokens_ in cost.tokens_by_agent.values())


def test_a_task_with_a_short_result_costs_less_than_the_goal():
    assert all(cost.tokens < tokens.MAX_SHORT_TOKENS for cost in cost_by_length(120))


def test_the_tokens_benchmark_prints_both_tables(capsys):
    tokens.main(["--lengths", "10", "--tasks", "3"])

    out = capsys.readouterr().out
    assert "Results of 2 kB" in out
    assert "Results of one sentence" in out
    assert "1511" in out


@pytest.mark.system
def test_the_overhead_benchmark_prints_every_figure_beside_its_goal():
    out = run("overhead", "--tasks", "3", "--run-tasks", "2", "--runs", "1", "--import-runs", "1")

    for said in (
        "import babyagi",
        "60 ms",
        "first model call, chroma",
        "0.5 s",
        "peak memory, builtin",
        "150 MiB",
        "Own time per task",
        "7 ms",
    ):
        assert said in out


@pytest.mark.system
def test_the_parallel_benchmark_prints_how_long_the_tasks_took():
    few = ("--tasks", "2", "--shared-tasks", "12")
    out = run(
        "parallel",
        *few,
        "--latency-s",
        "0.05",
        "--embedding-latency-s",
        "0.01",
        "--skip-one-by-one",
    )

    assert "2 independent tasks" in out
    assert len([line for line in out.splitlines() if line.startswith("8 ")]) == 1


@pytest.mark.system
def test_the_steps_benchmark_prints_its_goal_beside_its_figure():
    out = run("steps", "--steps", "3", "--rounds", "1")

    assert "Own time per step" in out and "2 ms" in out
    assert [line.split("  ")[0] for line in out.splitlines() if line.startswith("this, ")] == [
        "this, journal on SQLite",
        "this, journal in memory",
    ]


@pytest.mark.system
def test_the_sandbox_benchmark_prints_what_a_run_costs():
    out = run("sandbox", "--runs", "1")

    for said in ("an interpreter that does nothing", "no import, 8 at once", "processor"):
        assert said in out
