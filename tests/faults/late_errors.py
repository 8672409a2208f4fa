"""Errors that come after success: a commit went through and the caller is told that the store is
unavailable; a model answered and was paid, and the caller is told that it is not there.

Each run is the whole loop in one process on a virtual clock, on the task store in memory or, every
tenth, on SQLite. Each verb of the store that changes something, and each call of the model, fails
in this way with a probability of 5 %; the seed decides which.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import logging
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from babyagi.errors import ModelUnavailableError, StoreUnavailableError
from babyagi.llm.port import Completion, OnText
from babyagi.llm.prompt import Prompt
from babyagi.runtime.offload import run_inline
from babyagi.tasks import Limits, Objective, Reservation, Role, TaskStatus, Usage
from babyagi.taskstore.sqlite import open_sqlite
from babyagi.worker.lease import reap_namesakes
from support.prompts import asks_for_missing, results_in
from support.scripted import agree, is_check, is_probe
from support.table import print_table, verdict
from support.virtual import VirtualClock, VirtualWorld, run_virtually
from support.world import make_spec
from tests.faults.spread import spread

MAX_S = 60.0
N_LISTED = 6
CALL = Reservation(calls=1, tokens=250, cost_usd=0.002)
SPENT = Usage(calls=1, prompt_tokens=150, completion_tokens=50, cost_usd=0.001)
MAX_CALLS = (12, 16, 20, 24, 60)  # a run that nothing hits makes some 17 calls
READS = frozenset(
    "claimable wait_for_change "
    "objective objectives standing workers window report inbox steps verify task "
    "tasks results "
    "result_ids events last_event_id wait_for_events vectors close "
    "task_names plannable pending_results".split()
)


class LateStore:
    """A task store whose commits now and then go through although the caller sees an error."""

    def __init__(self, store: Any, chance: random.Random, rate: float) -> None:
        self._store = store
        self._chance = chance
        self._rate = rate
        self.n_by_verb: Counter[str] = Counter()

    def __getattr__(self, verb: str) -> Any:
        method = getattr(self._store, verb)
        if verb in READS or not inspect.iscoroutinefunction(method):
            return method

        async def call(*args: Any, **fields: Any) -> Any:
            done = await method(*args, **fields)
            if self._chance.random() < self._rate:
                self.n_by_verb[verb] += 1
                raise StoreUnavailableError(f"{verb} seemed to fail")
            return done

        return call


class LateModel:
    """Plans a list of `N_LISTED` tasks from what it reads; now and then its answer is paid and
    lost."""

    name = "late"

    def __init__(self, chance: random.Random, rate: float) -> None:
        self._chance = chance
        self._rate = rate
        self.n_asked = self.n_lost = 0

    def reserve(self, prompt: Prompt) -> Reservation:
        return CALL

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        self.n_asked += 1
        await asyncio.sleep(self._chance.choice((0.1, 0.5, 2.0)))
        if self._chance.random() < self._rate:
            self.n_lost += 1
            raise ModelUnavailableError("the answer was lost", may_be_billed=True)
        return Completion(text=_answer(prompt, role), model=self.name, usage=SPENT)

    async def close(self) -> None:
        return None


def _answer(prompt: Prompt, role: Role) -> str:
    text = "\n".join(message.text for message in prompt.messages)
    if is_probe(prompt):
        return "ok"
    match role:
        case Role.EXECUTION:
            return f"The result of {re.findall(r'^[0-9]+: (.*)$', text, re.MULTILINE)[-1]}."
        case Role.CREATION if is_check(prompt):
            return agree(prompt)
        case Role.CREATION:
            is_first = not asks_for_missing(text) and any(
                number == 1 for number, _, _ in results_in(text)
            )
            names = [f"Part {'ABCDEF'[n]}" for n in range(N_LISTED)] if is_first else []
            return json.dumps(
                {"tasks": [{"name": name, "after": []} for name in names], "objective_met": False}
            )
        case Role.PRIORITIZATION:
            return json.dumps(
                {
                    "order": [
                        int(number)
                        for number in reversed(re.findall(r"^(\d+): ", text, re.MULTILINE))
                    ]
                }
            )
        case _:
            return "The report."


async def _live(seed: int, rate: float, folder: Path | None) -> Counter[str]:
    """One run to its end; raises when a promise breaks. Returns how often each verb, and the model,
    failed late."""
    chance = random.Random(seed)
    clock, model = VirtualClock(), LateModel(chance, rate)
    store = (
        await open_sqlite(folder / "tasks.db", clock=clock, offload=run_inline) if folder else None
    )
    world = VirtualWorld(model=model, clock=clock, store=store)
    late = LateStore(world.store, chance, rate)
    limits = Limits(
        max_tasks=0, max_calls=chance.choice(MAX_CALLS), max_tokens=0, max_cost_usd=0, max_time_s=0
    )
    objective = await world.start(make_spec(limits=limits))
    world.store = late
    await _run(world, objective)
    await _check(late, model, objective.id)
    await late.close()
    return late.n_by_verb + Counter({"model": model.n_lost})


async def _run(world: VirtualWorld, objective: Objective) -> None:
    """As somebody who starts the program again when it could not even join."""
    for _ in range(10):
        with suppress(StoreUnavailableError):
            ended = await world.run(objective, timeout_s=3600.0)
            assert ended.has_report, "it came back without a report"
            return
        with suppress(StoreUnavailableError):
            await reap_namesakes(
                world.store, await world.store.workers(), name=world.worker_name, home=""
            )
    raise AssertionError("it could not be started in ten tries")


async def _check(store: Any, model: LateModel, objective_id: int) -> None:
    objective = await store.objective(objective_id)
    tasks, results = await store.tasks(objective_id), await store.results(objective_id)
    n_by_kind = Counter(event.kind for event in await store.events(objective_id, limit=100_000))
    names = [task.name for task in tasks]
    assert len(set(names)) == len(names), "a task is doubled"
    assert sorted(result.task_id for result in results) == [
        task.id for task in sorted(tasks, key=lambda task: task.id) if _is_done(task)
    ]
    assert n_by_kind["task.recorded"] == len(results), "a result without its event"
    assert n_by_kind["report.written"] == 1, "not one report"
    assert objective.held == Reservation(), "something is still held"
    steps = [
        step
        for owner in _owners(tasks)
        for step in await store.steps(objective_id, owner=owner)
        if step.kind == "model"
    ]
    assert len({(step.owner, step.key) for step in steps}) == len(steps)
    n_done = sum(step.output is not None for step in steps)
    assert n_done <= model.n_asked <= objective.usage.calls, (
        f"{n_done} answers, {model.n_asked} asked, {objective.usage.calls} counted"
    )
    assert model.n_asked - n_done <= model.n_lost, (
        f"{model.n_asked - n_done - model.n_lost} journaled answers were paid again"
    )
    assert objective.usage.calls <= objective.spec.limits.max_calls, "over the limit"
    if objective.stop_reason == "finished":
        assert len(tasks) == N_LISTED + 1 and all(map(_is_done, tasks)), "a task is lost"
    else:
        assert str(objective.stop_reason).startswith("limit:"), objective.stop_reason


def _is_done(task: Any) -> bool:
    return task.status in (TaskStatus.DONE, TaskStatus.RECORDED)


def _owners(tasks: Sequence[Any]) -> list[str]:
    duties = [f"{duty}:{n}" for duty in ("order", "plan", "check") for n in range(20)]
    return [*(f"task:{task.id}" for task in tasks), *duties, "report"]


def run_once(seed: int, *, rate: float = 0.05, on_sqlite: bool = False) -> Counter[str]:
    if not on_sqlite:
        return run_virtually(_live(seed, rate, None), seed=seed)
    with tempfile.TemporaryDirectory(prefix="late-errors-") as name:
        return run_virtually(_live(seed, rate, Path(name)), seed=seed)


def _try(seed: int) -> tuple[Counter[str], str]:
    """What failed late in a run, and the promise that it broke."""
    logging.disable(logging.CRITICAL)
    try:
        return run_once(seed, on_sqlite=seed % 10 == 0), ""
    except Exception as error:
        return Counter(), f"seed {seed}: {type(error).__name__}: {error}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.late_errors", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=180.0, help="the most for all of them")
    options = parser.parse_args(argv)
    began_s = time.monotonic()
    tried = spread(_try, range(options.seeds), within_s=options.seconds)
    took_s = time.monotonic() - began_s
    n_by_verb = sum((errors for errors, _ in tried), Counter[str]())
    faults = [fault for _, fault in tried if fault]
    print_table("Errors after success", ("where", "errors"), n_by_verb.most_common())
    print(
        f"{len(tried)} runs with {n_by_verb.total()} errors after success: "
        f"{len(faults)} broke a promise, goal 0: {verdict(not faults)}"
    )
    print(f"{took_s:.0f} s, goal at most {MAX_S:.0f} s: {verdict(took_s <= MAX_S)}")
    print(*faults[:20], sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
