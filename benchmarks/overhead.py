"""What this program itself takes: its own time per task, the time to its first model call, its
memory, its imports.

Own time: a model that answers at once, the task store and the index on disk, commits included. The
others are measured on
`python -m babyagi` as a process of its own, which talks to a server here.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from babyagi.index.builtin import BuiltinIndex
from babyagi.index.hashing import HashEmbedder
from babyagi.index.indexer import Indexer
from babyagi.index.port import VectorIndex
from babyagi.index.search import ResultSearch
from babyagi.index.vendors.chroma import ChromaIndex
from babyagi.journal import Backends, Gate
from babyagi.llm.prompt import Prompt
from babyagi.loop import Bounds, Loop
from babyagi.runtime.offload import ThreadOffload
from babyagi.tasks import Limits, Objective, Proposal, Role, Worker
from babyagi.taskstore.sqlite import open_sqlite
from babyagi.worker.process import Runtime, WorkerLoop
from babyagi.worker.serving import Pace
from benchmarks.child import Child, endpoint_variables, run_child
from benchmarks.script import OBJECTIVE, Script
from support.local_server import LocalServer
from support.scripted import ScriptedModel
from support.table import print_table, verdict
from support.world import make_spec

OWN_TIME_MS = 7.0
FIRST_CALL_S = 0.5
PEAK_MIB = {"builtin": 150.0, "chroma": 300.0}
# openai is measured as part of what comes before a first call
IMPORT_MS = {"import babyagi": 60, "babyagi --help": 150}
IMPORTED = {
    "import babyagi": ["-c", "import babyagi"],
    "babyagi --help": ["-m", "babyagi", "--help"],
    "import httpx2": ["-c", "import httpx2"],
}
STORES = ("builtin", "chroma")
N_QUEUED = 20
RESULT_BYTES = 500
N_WINDOW = 500  # tasks
SAMPLE_S = 0.001  # of the processor's time
# What the work of a function is called; where its name is not enough, with its file before it. Of
# the functions on the stack, the innermost one decides.
WORK_BY_FUNCTION = {
    "choose_context": "choosing what a task is shown",
    "execute_task": "executing: prompt, journal",
    "judge_reply": "executing: judging the reply",
    "Loop._execute": "executing: inputs of the try",
    "Loop._commit": "recording the result",
    "planning.plan": "planning",
    "Loop._order": "ordering the list",
    "checking.check": "check",
    "report.write": "report",
    "IndexFeed.feed": "indexing",
    "Serving._dispatch": "claiming",
    "BaseSelectorEventLoop._read_from_self": "hops between threads",
    "ThreadOffload.__call__": "hops between threads",
    "EpollSelector.select": "the loop waits: statements, commits, the disk",
}
OTHER_WORK = "the rest: the event loop, the lease, the benchmark itself"


async def measure_own_time(
    store: str,
    *,
    concurrency: int,
    n_tasks: int,
    on_task: Callable[[], None] = lambda: None,
) -> tuple[float, float]:
    """Return the seconds that a task takes when the model takes none: on the wall's clock, and of
    the processor. `on_task` is called whenever a task is carried out."""
    script = Script(result_bytes=RESULT_BYTES)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        offload = ThreadOffload()
        stack.callback(offload.close)
        tasks = await open_sqlite(folder / "tasks.db", clock=_utc_now, offload=offload)
        stack.push_async_callback(tasks.close)
        index = _open_index(store, folder, stack)
        await index.ids("none")  # to open Chroma takes half a second once, which is no task's
        limits = Limits(max_tasks=n_tasks, max_tokens=0, max_cost_usd=0, max_time_s=0)
        objective, _ = await tasks.create_objective(
            make_spec(text=OBJECTIVE, initial_task=script.next_name(), limits=limits),
            uid="benchmark",
        )
        await tasks.add_tasks(
            objective.id, [Proposal(name=script.next_name()) for _ in range(N_QUEUED)]
        )

        def reply(prompt: Prompt, role: Role) -> str:
            if role is Role.EXECUTION:
                on_task()
            return script.reply(role, prompt.messages[-1].text)

        model = ScriptedModel(reply)
        roles = (Role.EXECUTION, Role.CREATION, Role.PRIORITIZATION, Role.REPORT)

        def open_loop(objective: Objective, gate: Gate) -> Loop:
            models = dict.fromkeys(roles, model)
            return Loop(
                Backends(
                    store=tasks,
                    models=models,
                    embedder=HashEmbedder(),
                    gate=gate,
                    sleep=asyncio.sleep,
                ),
                search=ResultSearch(tasks, index, objective=objective),
                indexer=Indexer(tasks, index, objective=objective),
                tools=(),
                bounds=Bounds(context_tokens=4000, max_output_tokens=2000, max_new_tasks=10),
                clock=_utc_now,
            )

        identity = Worker(id="worker", name="benchmark", host="here", pid=0, lease_until=_utc_now())
        runtime = Runtime(
            identity=identity, sleep=asyncio.sleep, random=random.random, new_id=lambda: "another"
        )
        worker = WorkerLoop(tasks, open_loop, pace=Pace(concurrency=concurrency), runtime=runtime)
        began_s, cpu_s = time.perf_counter(), time.process_time()
        await worker.run(objective.id)
        return (time.perf_counter() - began_s) / n_tasks, (time.process_time() - cpu_s) / n_tasks


def _open_index(store: str, folder: Path, stack: AsyncExitStack) -> VectorIndex:
    if store == "builtin":
        return BuiltinIndex()
    offload = ThreadOffload(name="chroma")
    stack.callback(offload.close)
    index = ChromaIndex(folder / "chroma", offload=offload)
    stack.push_async_callback(index.close)
    return index


def _utc_now() -> datetime:
    return datetime.now(UTC)


async def measure_run(store: str, *, n_tasks: int) -> tuple[Child, float]:
    """Run an objective as a process; return how it came out, and the seconds from its start to its
    first model call."""
    script = Script(result_bytes=2048)
    with TemporaryDirectory() as folder:
        async with LocalServer(script.answer) as server:
            variables = endpoint_variables(
                server.base_url, Path(folder) / "home", BABYAGI_RESULT_STORE=store
            )
            line = [
                "-m",
                "babyagi",
                "run",
                OBJECTIVE,
                "-t",
                script.next_name(),
                "--max-tasks",
                str(n_tasks),
            ]
            child = await run_child(line, environ=variables, cwd=Path(folder))
            if not server.requests:
                raise RuntimeError(f"no call was made, exit code {child.code}: {child.said}")
            return child, server.requests[0].at - child.began_at


def measure_imports(n_runs: int) -> dict[str, float]:
    """Return seconds over bare Python; each the median of runs that take turns, so that a slow
    moment strikes all alike."""
    lines = {"bare": ["-c", "pass"], **IMPORTED}
    took_s: dict[str, list[float]] = {name: [] for name in lines}
    with TemporaryDirectory() as folder:
        for _ in range(n_runs + 1):
            for name, line in lines.items():
                began_s = time.perf_counter()
                subprocess.run(
                    [sys.executable, *line], stdout=subprocess.DEVNULL, check=True, cwd=folder
                )
                took_s[name].append(time.perf_counter() - began_s)
    # the first warms the disk's cache
    median = {name: statistics.median(found[1:]) for name, found in took_s.items()}
    return {name: median[name] - median["bare"] for name in IMPORTED}


async def show_runs(n_runs: int, n_tasks: int) -> None:
    rows = []
    for store in STORES:
        found = [await measure_run(store, n_tasks=n_tasks) for _ in range(n_runs)]
        first_call_s = statistics.median(seconds for _, seconds in found)
        peak_mib = max(child.peak_mib for child, _ in found)
        rows.append(
            (
                f"first model call, {store}",
                f"{first_call_s:.2f} s",
                f"{FIRST_CALL_S} s",
                verdict(first_call_s <= FIRST_CALL_S),
            )
        )
        rows.append(
            (
                f"peak memory, {store}",
                f"{peak_mib:.0f} MiB",
                f"{PEAK_MIB[store]:.0f} MiB",
                verdict(peak_mib <= PEAK_MIB[store]),
            )
        )
    print_table(
        f"A run of {n_tasks} tasks as a process (of {n_runs} runs)",
        ("what", "measured", "goal", ""),
        rows,
    )


def show_imports(n_runs: int) -> None:
    found = measure_imports(n_runs)
    rows = [
        (
            name,
            f"{1000 * s:.0f} ms",
            *(
                (f"{goal} ms", verdict(1000 * s <= goal))
                if (goal := IMPORT_MS.get(name))
                else ("", "")
            ),
        )
        for name, s in found.items()
    ]
    print_table(
        f"Imports, over bare Python (median of {n_runs})", ("what", "measured", "goal", ""), rows
    )


async def show_own_time(n_runs: int, n_tasks: int) -> None:
    rows = []
    for store in STORES:
        for concurrency in (1, 4):
            found = [
                await measure_own_time(store, concurrency=concurrency, n_tasks=n_tasks)
                for _ in range(n_runs)
            ]
            wall_ms, cpu_ms = (
                1000 * statistics.median(times) for times in zip(*found, strict=True)
            )
            measured = (f"{wall_ms:.1f} ms", f"{1000 * min(found)[0]:.1f} ms", f"{cpu_ms:.1f} ms")
            rows.append(
                (
                    store,
                    concurrency,
                    *measured,
                    f"{OWN_TIME_MS:g} ms",
                    verdict(wall_ms <= OWN_TIME_MS),
                )
            )
    title = f"Own time per task, {n_tasks} tasks, model of 0 latency, SQLite on disk"
    print_table(
        title,
        ("index", "concurrency", f"median of {n_runs}", "least", "processor", "goal", ""),
        rows,
    )


@contextmanager
def sampling(n_by_work: Counter[str]) -> Iterator[None]:
    """During the context, count what the main thread is at after each further `SAMPLE_S` seconds of
    the processor, of all threads together."""

    def note(_number: int, frame: FrameType | None) -> None:
        work = None
        while frame is not None and work is None:
            name = frame.f_code.co_qualname
            room = frame.f_globals.get("__name__", "").rpartition(".")[2]
            work = WORK_BY_FUNCTION.get(name) or WORK_BY_FUNCTION.get(f"{room}.{name}")
            frame = frame.f_back
        n_by_work[work or OTHER_WORK] += 1

    before = signal.signal(signal.SIGPROF, note)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def show_work(n_runs: int, n_tasks: int) -> None:
    """Print what the processor's time of a task is spent on."""
    n_by_work: Counter[str] = Counter()
    cpu_s = []
    asyncio.run(measure_own_time("builtin", concurrency=1, n_tasks=10))  # what a process does once
    for _ in range(n_runs):
        with sampling(n_by_work):
            cpu_s.append(
                asyncio.run(measure_own_time("builtin", concurrency=1, n_tasks=n_tasks))[1]
            )
    cpu_ms, n_samples = 1000 * statistics.median(cpu_s), n_by_work.total()
    rows = [
        (work, f"{100 * n / n_samples:.0f} %", f"{cpu_ms * n / n_samples:.2f} ms")
        for work, n in n_by_work.most_common()
    ]
    print_table(
        f"Processor time of a task, {cpu_ms:.1f} ms ({n_tasks} tasks, built-in index, one at once)",
        ("work", "share", "a task"),
        rows,
    )


def show_growth(n_tasks: int) -> None:
    """Print what a task takes of the processor in each window of a run, and how much more that is
    than in the second one; the first one starts everything."""
    cpu_s: list[float] = []
    asyncio.run(
        measure_own_time(
            "builtin",
            concurrency=1,
            n_tasks=n_tasks,
            on_task=lambda: cpu_s.append(time.process_time()),
        )
    )
    found = [
        (n, 1000 * (cpu_s[n] - cpu_s[n - N_WINDOW]) / N_WINDOW)
        for n in range(N_WINDOW, len(cpu_s), N_WINDOW)
    ]
    base_ms = found[1][1] if len(found) > 1 else found[0][1]
    rows = [(f"{n - N_WINDOW} to {n}", f"{ms:.1f} ms", f"{ms / base_ms:.2f}") for n, ms in found]
    print_table(
        f"Processor time of a task as results grow to {n_tasks}, built-in index, one at a time",
        ("results", "processor", f"of {N_WINDOW} to {2 * N_WINDOW}"),
        rows,
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument(
        "--tasks", type=int, default=200, help="tasks of a run that measures own time"
    )
    parser.add_argument(
        "--run-tasks", type=int, default=30, help="tasks of a run that measures start and memory"
    )
    parser.add_argument("--runs", type=int, default=3, help="runs of each")
    parser.add_argument("--import-runs", type=int, default=10)
    parser.add_argument(
        "--grow",
        type=int,
        metavar="TASKS",
        help=f"only print how the time of a task grows in a run of so many, {N_WINDOW} at a time",
    )
    parser.add_argument(
        "--work", action="store_true", help="only print what the processor's time is spent on"
    )
    options = parser.parse_args(argv)
    if options.work:
        show_work(options.runs, options.tasks)
        return
    if options.grow:
        show_growth(max(options.grow, N_WINDOW + 1))
        return
    show_imports(options.import_runs)
    asyncio.run(show_runs(options.runs, options.run_tasks))
    asyncio.run(show_own_time(options.runs, options.tasks))


if __name__ == "__main__":
    main()
