"""The benchmarks at their smallest: each prints its table. Time is not judged here; what is always
the same is."""

import importlib
import re

import pytest

from support.modules import run_module

pytestmark = pytest.mark.system


def start(name, *options):
    return run_module(f"benchmarks.{name}", *options)


def run(name, *options):
    done = start(name, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def run_here(capsys):
    """Runs one in this process, which has imported the program; it measures no start of one."""

    def run(name, *options):
        assert not importlib.import_module(f"benchmarks.{name}").main(options)
        return capsys.readouterr().out

    return run


def cells(out):
    """The rows of all tables: those that begin with a number."""
    return [re.split(r"  +", line) for line in out.splitlines() if re.match(r"\d+  ", line)]


def test_a_task_costs_the_same_tokens_at_any_length_of_the_queue_but_for_a_bounded_list(run_here):
    out = run_here("tokens", "--lengths", "10", "500", "--tasks", "12")

    assert "Results of 2 kB" in out and "Results of one sentence" in out
    assert [row[0] for row in cells(out)] == ["10", "500"] * 2
    assert all(float(tokens) > 0 for row in cells(out) for tokens in row[1:7])
    assert [row[-1] for row in cells(out)] == ["1511", "31744"] * 2
    assert out.count(": met\n") == 4, out


def test_the_first_token_is_seen_and_a_call_that_is_given_up_is_left():
    out = run("first_token", "--pieces", "5", "--runs", "1")

    for what in ("to the callback", "to the screen", "the closed connection"):
        assert re.search(rf"{what} +[\d.]+ ms +[\d.]+ ms", out), out
    for what in ("with openai", "httpx2 alone"):
        assert re.search(rf"{what} +[\d.]+ s +\d+ MiB", out), out
    for what in ("through openai", "the rehearsal of the demo"):
        assert re.search(rf"{what} +[\d.]+ s +[\d.]+ s +\d+ MiB", out), out


def test_the_worlds_have_a_row_for_each_loop_and_world():
    out = run("worlds", *"--worlds chain,brief --facts 8 --seeds 1 --loops plain".split())

    lines = out.splitlines()
    assert [line.split(" | ")[0] for line in lines] == [
        "| world",
        "| ---",
        "| chain of 8",
        "| brief of 8",
    ]
    assert all(line.count("|") == lines[0].count("|") for line in lines)


def test_what_is_held_out_must_be_asked_for_by_name():
    world = "--worlds chain --facts 4 --loops plain".split()

    for refused in ("--surface post --seeds 1", "--seeds 10"):
        assert start("worlds", *world, *refused.split()).returncode == 2
    assert "1/1" in run("worlds", *world, *"--surface post --seeds 1 --held-out".split())


def test_a_world_is_run_over_sockets():
    out = run("worlds", *"--sockets --worlds chain --facts 4 --seeds 1 --loops ours".split())

    _, loop, solved, reported, *_, stopped, _, _ = out.splitlines()[-1].strip("| ").split(" | ")
    assert (solved, reported, stopped) == ("1/1", "1/1", "objective_met 1"), loop


def test_a_long_run_leaves_no_descriptor_and_no_thread_over():
    out = start("soak", "--tasks", "100").stdout

    first, *running, last = [row[-2:] for row in cells(out)]
    assert first == last and len(running) == 20
    assert len({tuple(row) for row in running}) == 1
    assert "descriptors and threads at the end as at the start: met" in out


def test_the_same_seed_and_the_same_model_give_the_same_events(run_here):
    out = run_here("replay", "--seeds", "20")

    assert "0 seeds gave two different runs" in out
    assert int(re.findall(r"(\d+) different runs", out)[0]) > 17


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


def test_the_overhead_benchmark_prints_what_the_processor_time_of_a_task_is_spent_on():
    out = run("overhead", "--work", "--tasks", "60", "--runs", "3")

    shares = re.findall(r"^(\S.*\S) +\d+ % +\d+\.\d\d ms$", out, re.MULTILINE)
    assert {"choosing what a task is shown", "planning", "indexing"} <= set(shares)


def test_the_parallel_benchmark_prints_how_long_the_tasks_took():
    few = ("--tasks", "2", "--slot-tasks", "3", "--shared-tasks", "0")
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
    assert "3 independent tasks, calls of 0.05 s, 64 at once" in out
    assert len([line for line in out.splitlines() if line.startswith("8 ")]) == 1


def test_workers_may_join_late_and_leave_and_nothing_is_lost(run_here):
    out = run_here("joining", "--repetitions", "1", "--seed", "4", "--store", "sqlite")

    assert "nothing lost, nothing done twice, nobody left early or hung: met" in out


def test_the_steps_benchmark_prints_its_goal_beside_its_figure(run_here):
    out = run_here("steps", "--steps", "3", "--rounds", "1")

    assert "Own time per step" in out and "2 ms" in out
    assert [line.split("  ")[0] for line in out.splitlines() if line.startswith("this, ")] == [
        "this, journal on SQLite",
        "this, journal in memory",
    ]


def test_the_sandbox_benchmark_prints_what_a_run_costs():
    out = run("sandbox", "--runs", "1")

    for said in ("an interpreter that does nothing", "no import, 8 at once", "processor"):
        assert said in out
