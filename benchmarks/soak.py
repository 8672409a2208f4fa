"""A soak: thousands of tasks through the whole loop on SQLite, with memory, descriptors and threads
measured on the way.

Everything is real but the model, which answers at once from what it reads: each finished task
proposes one new one, and sometimes two,
until there are as many as wanted. The database lies in memory (/dev/shm), so that the disk is not
what is measured.

The built-in index keeps every vector in memory, so its share grows with the results and the
dimension of the vectors, as it is meant to. The small default dimension shows the loop without it;
`--dimension 768` is what the embedder that needs no key has in life.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import re
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from babyagi.index.hashing import HashEmbedder
from babyagi.llm.port import Completion, OnText
from babyagi.llm.prompt import Prompt, bound_tokens
from babyagi.runtime.offload import ThreadOffload
from babyagi.tasks import Limits, Reservation, Role, StopReason, TaskStatus, Usage
from babyagi.taskstore.sqlite import open_sqlite
from support.prompts import results_in
from support.scripted import agree, is_check
from support.table import print_table, verdict
from support.world import World

MAX_MB_PER_1000 = 1.0
N_SAMPLES = 20
DIMENSION = 16
SUBJECTS = (
    "tokens queues ledgers meadows rivers engines lanterns bridges orchards compilers "
    "harbours glaciers parsers"
).split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What the process held when `n_done` tasks were done, `at_s` after the start."""

    n_done: int
    at_s: float
    rss_mb: float
    n_fds: int
    n_threads: int


def take_sample(n_done: int, began_s: float) -> Sample:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Sample(
        n_done=n_done,
        at_s=time.monotonic() - began_s,
        rss_mb=pages * 4096 / 1e6,
        n_fds=len(list(Path("/proc/self/fd").iterdir())),
        n_threads=threading.active_count(),
    )


class EndlessModel:
    """Answers at once; proposes tasks until there were enough."""

    name = "endless"

    def __init__(self, n_tasks: int) -> None:
        self._numbers = count(2)
        self._n_tasks = n_tasks
        self._n_proposed = 1

    def reserve(self, prompt: Prompt) -> Reservation:
        return Reservation(calls=1, tokens=bound_tokens(prompt) + prompt.max_output_tokens)

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        match role:
            case Role.EXECUTION:
                task = re.findall(r"^\d+: (.*)$", prompt.messages[-1].text, re.MULTILINE)[-1]
                text = f"About {task}: " + " ".join(
                    f"{subject} {len(task)}" for subject in SUBJECTS
                )
            case Role.CREATION if is_check(prompt):
                text = agree(prompt)
            case Role.CREATION:
                text = json.dumps(
                    {
                        "tasks": self._propose(len(results_in(prompt.messages[-1].text))),
                        "objective_met": False,
                    }
                )
            case Role.PRIORITIZATION:
                queued = re.findall(r"^(\d+): ", prompt.messages[-1].text, re.MULTILINE)
                text = json.dumps({"order": [int(number) for number in reversed(queued)]})
            case _:
                text = "The report."
        return Completion(
            text=text,
            model=self.name,
            usage=Usage(calls=1, prompt_tokens=400, completion_tokens=60),
        )

    def _propose(self, n_finished: int) -> list[dict[str, object]]:
        n_new = min(
            n_finished * (2 if self._n_proposed < 40 else 1), self._n_tasks - self._n_proposed
        )
        self._n_proposed += n_new
        return [{"name": self._next(), "after": []} for _ in range(n_new)]

    def _next(self) -> str:
        n = next(self._numbers)
        return (
            f"Study {SUBJECTS[n % len(SUBJECTS)]} of {SUBJECTS[n // 13 % len(SUBJECTS)]}, part {n}"
        )

    async def close(self) -> None:
        return None


class SoakWorld(World):
    """Waits are real here, and as long as they say."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def soak(n_tasks: int, folder: Path, *, dimension: int = DIMENSION) -> list[Sample]:
    """Run as many tasks to their end; return samples, the first after a tenth of them, the last
    after the end with everything closed."""
    began_s, samples = time.monotonic(), []
    offload = ThreadOffload()
    before = take_sample(0, began_s)
    store = await open_sqlite(folder / "tasks.db", clock=lambda: datetime.now(UTC), offload=offload)
    world = SoakWorld(model=EndlessModel(n_tasks), store=store, embedder=HashEmbedder(dimension))
    limits = Limits(max_tasks=0, max_calls=0, max_tokens=0, max_cost_usd=0, max_time_s=0)
    objective = await world.start(initial_task="Begin", limits=limits)

    async def watch() -> None:
        for n in range(1, N_SAMPLES + 1):
            n_done = 0
            while n_done < n * n_tasks // N_SAMPLES:
                await asyncio.sleep(0.1)  # as another process would
                n_done = ((await store.standing(objective.id)).counts)[TaskStatus.DONE]
            samples.append(take_sample(n_done, began_s))

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch())
        ended, _ = await world.open_worker(objective).run(objective.id)
        await asyncio.wait_for(watching, timeout=10)
    counts = (await store.standing(objective.id)).counts
    assert ended.stop_reason is StopReason.FINISHED and counts[TaskStatus.DONE] == n_tasks, (
        ended.stop_reason,
        counts,
    )
    assert ended.has_report
    await store.close()
    offload.close()
    after = take_sample(n_tasks, began_s)
    return [before, *samples, after]


def slope_mb_per_1000(samples: Sequence[Sample]) -> float:
    """The slope of the line of least squares through the samples, from a fifth of the run to
    shortly before its report."""
    points = [
        (sample.n_done / 1000, sample.rss_mb) for sample in samples[N_SAMPLES // 5 : N_SAMPLES]
    ]
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    slope: float = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum(
        (x - mean_x) ** 2 for x, _ in points
    )
    return slope


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument(
        "--dimension", type=int, default=DIMENSION, help="numbers in a vector of the built-in index"
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(
        prefix="soak-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as name:
        samples = asyncio.run(soak(options.tasks, Path(name), dimension=options.dimension))
        size_mb = sum(path.stat().st_size for path in Path(name).iterdir()) / 1e6
    rows = [(s.n_done, f"{s.at_s:.0f}", f"{s.rss_mb:.1f}", s.n_fds, s.n_threads) for s in samples]
    print_table("Soak", ("tasks done", "s", "RSS MB", "descriptors", "threads"), rows)
    first, last, slope = samples[0], samples[-1], slope_mb_per_1000(samples)
    is_closed = (first.n_fds, first.n_threads) == (last.n_fds, last.n_threads)
    print(
        f"{slope:.2f} MB per 1,000 tasks, goal at most {MAX_MB_PER_1000:g}: "
        f"{verdict(slope <= MAX_MB_PER_1000)}"
    )
    print(f"descriptors and threads at the end as at the start: {verdict(is_closed)}")
    print(
        f"{options.tasks / last.at_s:.0f} tasks/s; the file holds "
        f"{1000 * size_mb / options.tasks:.1f} kB a task"
    )
    return 0 if is_closed and slope <= MAX_MB_PER_1000 else 1


if __name__ == "__main__":
    sys.exit(main())
