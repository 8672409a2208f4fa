"""What `crash_points` kills: one life of the program in a process of its own, with a point before
and after everything that it does.

A life opens the task store, goes on with one small objective to its end, and closes, as `babyagi
run` does. The objectives together pass through every kind of point: `plan` uses a tool, plans,
checks and reports; `person` has a payment approved and pays once; `trouble` has a failing try, an
outage, and an embedder behind a wire; `two` orders and works on two tasks at once; `lacking` has a
task that lacks something, a result that is no answer, and a check that misses a part; `steering` is
what a person does to a list. Only `plan` begins without a file.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from babyagi import events, inbox
from babyagi.index.hashing import HashEmbedder
from babyagi.runtime.offload import run_inline
from babyagi.tasks import (
    Limits,
    ObjectiveStatus,
    Place,
    Proposal,
    Step,
    StopReason,
    Task,
    TaskStatus,
    Worker,
)
from babyagi.taskstore.sqlite import open_sqlite
from babyagi.worker.lease import reap_namesakes
from babyagi.worker.serving import Pace
from support.virtual import VirtualClock, VirtualWorld, run_virtually
from support.world import START, make_spec
from tests.faults.crash_wire import (
    CountingEmbedder,
    CountingModel,
    Ledger,
    Points,
    Survey,
    make_tools,
)

# with the first task as many as are worth an order
BESIDE = ("Ask Ann", "Buy bread", "Count coins", "Draw doors")
LIFE_S = 600.0  # from one life's start to the next one's, and the most that a life may take
NO_LIMITS = Limits(max_tasks=0, max_calls=0, max_tokens=10**9, max_cost_usd=1000.0, max_time_s=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What a person has in hand who works with one objective."""

    folder: Path
    store: Any
    world: VirtualWorld
    objective_id: int

    async def run(self) -> None:
        """As `babyagi run`: nothing happens when the objective has ended and its report is
        written."""
        objective = await self.store.switch_objective(self.objective_id, to=ObjectiveStatus.ACTIVE)
        if not (objective.status is ObjectiveStatus.ENDED and objective.has_report):
            await self.world.run(objective, timeout_s=LIFE_S)

    async def kinds(self) -> list[str]:
        return [event.kind for event in await self.store.events(self.objective_id)]


async def _just_run(life: Life) -> None:
    await life.run()


async def _run_and_answer(life: Life) -> None:
    """Answer whatever is asked, and run, until nothing is asked any more."""
    await life.run()
    while asked := await life.store.inbox(life.objective_id):
        for step in asked:
            decision, text = _say(step, life.folder)
            await life.store.answer_step(
                step.id, output=inbox.decide(step, decision, text).to_json()
            )
        await life.run()


def _say(step: Step, folder: Path) -> tuple[inbox.Decision, str]:
    """An honest person: whether an interrupted payment was made stands in the other side's
    ledger."""
    if step.kind == inbox.APPROVAL:
        return inbox.Decision.APPROVE, ""
    return (
        (inbox.Decision.ANSWER, "receipt 1")
        if Ledger(folder / "paid").lines()
        else (inbox.Decision.REJECT, "")
    )


async def _add_and_run(life: Life) -> None:
    if (await life.kinds()).count(events.TASK_ADDED) == 1:
        await life.store.add_tasks(life.objective_id, [Proposal(name=name) for name in BESIDE])
    await life.run()


async def _steer(life: Life) -> None:
    """Change the list, go on after a task that failed, cancel everything; each only if it is not
    done yet. The model is never called."""
    store, objective_id = life.store, life.objective_id
    kinds = await life.kinds()
    if events.OBJECTIVE_ENDED not in kinds:
        if events.OBJECTIVE_RESUMED not in kinds:
            await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
            await _change_the_list(store, objective_id)
            await store.switch_objective(objective_id, to=ObjectiveStatus.ACTIVE)
        if not any(event.data.get("is_retry") for event in await store.events(objective_id)):
            await _let_one_die(life)
            await store.retry_task(objective_id, 1)
        await store.extend_objective(objective_id, limits=NO_LIMITS)
        await store.end_objective(objective_id, reason=StopReason.CANCELLED)
    await life.run()
    await store.owe_index(objective_id)
    for other in await store.objectives():
        if other.id != objective_id:
            await store.delete_objective(other.id)
    assert (await store.verify()).damages == ()


async def _let_one_die(life: Life) -> None:
    """As a worker whose first task fails for good."""
    (task,) = await life.store.tasks(
        life.objective_id, statuses=[TaskStatus.QUEUED, TaskStatus.DEAD]
    )
    if task.status is TaskStatus.DEAD:
        return
    number = next(life.world._worker_numbers)
    worker = Worker(
        id=f"person-{number}",
        name=life.world.worker_name,
        host="here",
        pid=number,
        lease_until=life.world.clock(),
    )
    await life.store.register_worker(worker, lease_s=30.0)
    await life.store.join_objective(worker.id, life.objective_id)
    while not (claim := await life.store.claim_task(life.objective_id, worker.id)):
        await asyncio.sleep(1.0)  # held back, as two workers were lost with it
    await life.store.fail_task(claim, error="no use", max_failures=1)
    await life.store.remove_worker(worker.id)


async def _change_the_list(store: Any, objective_id: int) -> None:
    """From `Begin` alone to `Begin` and cancelled ones, of which two were added, one replaced, one
    moved."""
    await store.create_objective(make_spec(text="Another one"), uid="other")

    async def find(name: str) -> list[Task]:
        return [task for task in await store.tasks(objective_id) if task.name == name]

    if not await find("Old"):
        await store.add_tasks(objective_id, [Proposal(name="Old")], to=Place.FIRST)
    (old,) = await find("Old")
    if not await find("Beside"):
        await store.add_tasks(objective_id, [Proposal(name="Beside", after=(old.id,))])
    if not await find("New"):
        await store.cancel_task(objective_id, old.id, replacement="New")
    (new,) = await find("New")
    if new.status is TaskStatus.QUEUED:
        await store.move_task(objective_id, (await find("Beside"))[0].id, to=Place.FIRST)
        await store.cancel_task(objective_id, new.id)
    (beside,) = await find("Beside")
    if beside.status is TaskStatus.QUEUED:
        await store.cancel_task(objective_id, beside.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One objective, how it is lived, and what it must have come to: the status by name of its
    tasks."""

    name: str
    initial_task: str
    play: Callable[[Life], Awaitable[None]]
    ends: Mapping[str, str]
    stop_reason: StopReason = StopReason.FINISHED
    tools: tuple[str, ...] = ()
    limits: Limits = NO_LIMITS
    concurrency: int = 1
    n_paid: int = 0
    may_fail: bool = False  # tasks may have had another try
    lease_s: float = 30.0
    has_schema: bool = True  # the file was made before; one scenario kills that too
    is_wired: bool = False  # the embedder is called over a wire


SCENARIOS = (
    Scenario(
        name="plan",
        initial_task="Read",
        play=_just_run,
        ends={"Read": "done", "One": "cancelled", "Two": "cancelled"},
        stop_reason=StopReason.OBJECTIVE_MET,
        tools=("look",),
        has_schema=False,
    ),
    Scenario(
        name="person",
        initial_task="Pay",
        play=_run_and_answer,
        ends={"Pay": "done"},
        tools=("pay",),
        n_paid=1,
        lease_s=1.5,
    ),
    Scenario(
        name="trouble",
        initial_task="Garbled",
        play=_just_run,
        ends={"Garbled": "done"},
        may_fail=True,
        is_wired=True,
    ),
    Scenario(
        name="two",
        initial_task="Begin",
        play=_add_and_run,
        ends=dict.fromkeys(("Begin", *BESIDE), "done"),
        concurrency=2,
    ),
    Scenario(
        name="lacking",
        initial_task="Lack",
        play=_just_run,
        ends=dict.fromkeys(("Lack", "Find", "Missed"), "done"),
        may_fail=True,
    ),
    Scenario(
        name="steering",
        initial_task="Begin",
        play=_steer,
        ends=dict.fromkeys(("Begin", "Old", "New", "Beside"), "cancelled"),
        stop_reason=StopReason.CANCELLED,
        may_fail=True,
    ),
)


async def make_file(folder: Path) -> None:
    """An empty task store, as the program leaves it when it closes."""
    store = await open_sqlite(folder / "tasks.db", clock=VirtualClock(), offload=run_inline)
    await store.close()


async def play(scenario: Scenario, folder: Path, *, life: int) -> None:
    """Live one life to its end."""
    clock = VirtualClock(start=START + timedelta(seconds=LIFE_S * life))
    store = await open_sqlite(folder / "tasks.db", clock=clock, offload=run_inline)
    tools = [tool for tool in make_tools(folder) if tool.name in scenario.tools]
    embedder: Any = CountingEmbedder(folder) if scenario.is_wired else HashEmbedder(8)
    world = VirtualWorld(
        model=CountingModel(folder),
        clock=clock,
        store=store,
        tools=tools,
        embedder=embedder,
        pace=Pace(concurrency=scenario.concurrency, lease_s=scenario.lease_s, max_failures=1000),
        _worker_numbers=iter(range(1000 * life, 1000 * life + 1000)),
    )
    await reap_namesakes(store, await store.workers(), name=world.worker_name, home="")
    spec = make_spec(
        initial_task=scenario.initial_task, limits=scenario.limits, embedding_space=embedder.space
    )
    objective, _ = await store.create_objective(spec, uid="uid")
    await scenario.play(Life(folder=folder, store=store, world=world, objective_id=objective.id))
    await store.close()


def live(
    scenario: Scenario, folder: Path, *, life: int, kill_at: int = 0, is_survey: bool = False
) -> bool:
    """Live one life in a child process; returns whether it was killed at the point.

    Raises:
        AssertionError: it ended in any other way than it should.
    """
    pid = os.fork()
    if pid == 0:
        os._exit(_guarded(partial(_child, scenario, folder, life, kill_at, is_survey)))
    _, status = os.waitpid(pid, 0)
    is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert is_killed or status == 0, f"life {life} ended with status {status}"
    return is_killed


def _guarded(work: Callable[[], None]) -> int:
    try:
        work()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        return 1
    return 0


def _child(scenario: Scenario, folder: Path, life: int, kill_at: int, is_survey: bool) -> None:
    Points.current = Survey(folder) if is_survey else Points(kill_at=kill_at)
    run_virtually(play(scenario, folder, life=life))
    if isinstance(Points.current, Survey):
        Points.current.save()
