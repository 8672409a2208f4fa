"""How long independent tasks take that are queued already: 20 in one process, eight at once and one
by one; hundreds in 64 slots; 200 in one worker and in four.

For the 20 a server in a process of its own answers every call in 1 s and every embedding in 0.2 s,
and `python -m babyagi resume` does the work. The ideal of the 64 slots is a second for each round
of them. For the 200 every call takes 1 s, and `python -m babyagi worker` does it, eight at once.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from babyagi.app import backends
from babyagi.app.application import open_app
from babyagi.events import TASK_CLAIMED, TASK_DONE, TASK_RECORDED
from babyagi.settings.load import load_settings
from babyagi.tasks import Proposal
from benchmarks.child import endpoint_variables, run_child
from benchmarks.script import OBJECTIVE, Script
from support.board import STORES, name_of, open_board, open_store, open_stores
from support.table import print_table, verdict

GOAL_S = 9.0
N_TASKS = 20
CONCURRENCY = 8
LATENCY_S = 1.0
EMBEDDING_LATENCY_S = 0.2
N_SHARED_TASKS, N_WORKERS = 200, 4
GOAL_SHARE = 1.3  # of a quarter of the time that one worker takes
N_SLOTS, N_SLOT_TASKS = 64, 640
GOAL_OVER_IDEAL = 1.15
TIMEOUT_S = 200.0


@asynccontextmanager
async def serving(latency_s: float, embedding_latency_s: float) -> AsyncIterator[str]:
    """A server that answers as the rehearsal model does, which proposes nothing new where there is
    no folder, except that every check agrees; gives its base URL."""
    latencies = ("--latency-s", str(latency_s), "--embedding-latency-s", str(embedding_latency_s))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "support.local_server", "--model-behind", "agreeing", *latencies),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parent.parent,
    )
    try:
        assert process.stdout is not None
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds: from the start of the process to the end of the last task, and to its own end; from
    the first claim to the last result, and to the last planning from it."""

    done_s: float
    ended_s: float
    worked_s: float
    planned_s: float


async def measure(
    base_url: str, *, n_tasks: int, concurrency: int, embedding_model: str = ""
) -> Took:
    script = Script(result_bytes=0)
    with TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        variables = endpoint_variables(
            base_url,
            home,
            BABYAGI_EMBEDDING_MODEL=embedding_model,
            BABYAGI_MAX_TASKS=str(n_tasks + 1),
            BABYAGI_MAX_TOKENS="0",
        )
        options = {"objective": OBJECTIVE, "initial_task": script.next_name()}
        settings = load_settings(flags=options, environ=variables, cwd=Path(folder)).settings
        async with open_app(settings) as app:
            objective, _ = await app.start_objective()
            await app.store.add_tasks(
                objective.id, [Proposal(name=script.next_name()) for _ in range(n_tasks - 1)]
            )
        child = await run_child(
            ["-m", "babyagi", "resume", "--concurrency", str(concurrency)],
            environ=variables,
            cwd=Path(folder),
        )
        async with backends.open_store(settings) as store:
            events = await store.events(objective.id, limit=100 * n_tasks)
        done_at: list[datetime] = [event.at for event in events if event.kind == TASK_DONE]
        if child.code != 0 or len(done_at) != n_tasks:
            raise RuntimeError(
                f"{len(done_at)} of {n_tasks} tasks were done, exit code {child.code}: {child.said}"
            )
        claimed_at = min(event.at for event in events if event.kind == TASK_CLAIMED)
        recorded_at = max(event.at for event in events if event.kind == TASK_RECORDED)
        return Took(
            done_s=child.took_s - (events[-1].at - max(done_at)).total_seconds(),
            ended_s=child.took_s,
            worked_s=(recorded_at - claimed_at).total_seconds(),
            planned_s=(max(done_at) - claimed_at).total_seconds(),
        )


async def compare(options: argparse.Namespace) -> None:
    rows = []
    async with serving(options.latency_s, options.embedding_latency_s) as base_url:
        for concurrency in (CONCURRENCY,) if options.skip_one_by_one else (CONCURRENCY, 1):
            took = await measure(
                base_url,
                n_tasks=options.tasks,
                concurrency=concurrency,
                embedding_model="text-embedding-3-small",
            )
            is_judged = concurrency > 1 and options.tasks == N_TASKS
            goal = (f"{GOAL_S:g} s", verdict(took.done_s <= GOAL_S)) if is_judged else ("", "")
            rows.append((concurrency, f"{took.done_s:.1f} s", *goal, f"{took.ended_s:.1f} s"))
    title = (
        f"{options.tasks} independent tasks, calls of {options.latency_s:g} s, embeddings of "
        f"{options.embedding_latency_s:g} s"
    )
    print_table(title, ("concurrency", "all done", "goal", "", "with the report"), rows)


async def compare_slots(n_tasks: int, latency_s: float) -> None:
    """Many slots, in which the program's own work must not become what takes the time. Planning is
    one call after the other for `MAX_PLANNED` results each, so it ends later."""
    async with serving(latency_s, 0.0) as base_url:
        took = await measure(base_url, n_tasks=n_tasks, concurrency=N_SLOTS)
    ideal_s = math.ceil(n_tasks / N_SLOTS) * latency_s
    goal_s = GOAL_OVER_IDEAL * ideal_s
    row = (
        f"{ideal_s:.1f} s",
        f"{took.worked_s:.1f} s",
        f"{goal_s:.1f} s",
        f"{verdict(took.worked_s <= goal_s)}, {took.worked_s / ideal_s:.2f} times the ideal",
        f"{took.planned_s:.1f} s",
    )
    title = f"{n_tasks} independent tasks, calls of {latency_s:g} s, {N_SLOTS} at once"
    print_table(title, ("ideal", "all results", "goal", "", "all planned from"), [row])


async def measure_workers(kind: str, *, n_workers: int, n_tasks: int, latency_s: float) -> float:
    """Seconds from the commit of the tasks to the end of the last one, with workers that waited for
    them."""
    with open_stores(kind) as make_store:
        async with (
            open_board(make_store("parallel")) as board,
            open_store(board.store_url) as store,
        ):
            first_id = await board.submit(1, 1)
            names = (f"w{n}" for n in range(n_workers))
            await board.start_workers(*names, env={"BABYAGI_CONCURRENCY": str(CONCURRENCY)})
            await board.until(lambda: board.is_over(first_id), timeout_s=60)
            board.model.latency_s, board.model.n_items_by_survey[2] = latency_s, 0
            spec = replace(
                (await store.objective(first_id)).spec,
                text="Write survey 2.",
                initial_task=name_of(2, 1),
            )
            objective, _ = await store.create_objective(spec, uid="parallel")
            await store.add_tasks(
                objective.id, [Proposal(name=name_of(2, item)) for item in range(2, n_tasks + 1)]
            )
            if not await board.until(
                lambda: board.is_over(objective.id), timeout_s=TIMEOUT_S, every_s=0.2
            ):
                raise RuntimeError(
                    f"{board.n_done(objective.id)} of {n_tasks} tasks were done in {TIMEOUT_S:g} s"
                )
            events = await store.events(objective.id, limit=100 * n_tasks)
    done_at = [event.at for event in events if event.kind == TASK_DONE]
    assert len(done_at) == n_tasks
    return (max(done_at) - events[0].at).total_seconds()


async def compare_workers(kind: str, n_tasks: int, latency_s: float) -> None:
    one_s, four_s = [
        await measure_workers(kind, n_workers=n, n_tasks=n_tasks, latency_s=latency_s)
        for n in (1, N_WORKERS)
    ]
    goal_s = GOAL_SHARE * one_s / N_WORKERS
    share = f"{four_s / (one_s / N_WORKERS):.2f} times a quarter"
    rows = [
        ("1", f"{one_s:.1f} s", "", ""),
        (N_WORKERS, f"{four_s:.1f} s", f"{goal_s:.1f} s", f"{verdict(four_s <= goal_s)}, {share}"),
    ]
    title = (
        f"{n_tasks} independent tasks on {kind}, calls of {latency_s:g} s, {CONCURRENCY} at "
        "once in each worker"
    )
    print_table(title, ("workers", "all done", "goal", ""), rows)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parallel", description=__doc__)
    parser.add_argument("--tasks", type=int, default=N_TASKS)
    parser.add_argument("--latency-s", type=float, default=LATENCY_S)
    parser.add_argument("--embedding-latency-s", type=float, default=EMBEDDING_LATENCY_S)
    parser.add_argument(
        "--skip-one-by-one",
        action="store_true",
        help="leave out the run of a minute that nothing does at once",
    )
    parser.add_argument(
        "--slot-tasks", type=int, default=N_SLOT_TASKS, help=f"in {N_SLOTS} slots; 0 for none"
    )
    parser.add_argument(
        "--shared-tasks",
        type=int,
        default=N_SHARED_TASKS,
        help="that one worker, and then four, carry out; 0 for none",
    )
    parser.add_argument(
        "--workers-on",
        choices=STORES,
        action="append",
        help="the tasks of several workers alone, on this store",
    )
    options = parser.parse_args(argv)
    if not options.workers_on:
        asyncio.run(compare(options))
        if options.slot_tasks:
            asyncio.run(compare_slots(options.slot_tasks, options.latency_s))
    for kind in (options.workers_on or STORES) if options.shared_tasks else ():
        asyncio.run(compare_workers(kind, options.shared_tasks, options.latency_s))


if __name__ == "__main__":
    main()
