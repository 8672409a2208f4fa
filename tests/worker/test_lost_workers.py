"""Processes that die, freeze and sleep, clocks that jump and a store that is locked, on a virtual
clock: no healthy task is given up."""

import asyncio
import random
import signal
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from babyagi.errors import StoreUnavailableError
from babyagi.tasks import Limits, Proposal, Role, StopReason, TaskStatus
from babyagi.taskstore import lifecycle
from babyagi.taskstore.sqlite import MemoryTaskStore
from babyagi.worker.lease import reap_namesakes
from babyagi.worker.serving import Pace
from support.virtual import VirtualClock, VirtualWorld, run_virtually, virtually
from tests.test_loop import Script, task_of
from tests.worker.test_process import SlowModel

LATENCY_S = 5.0
LEASE_S = 30.0
LOCK_S = 60.0
LOCK_TIMEOUT_S = 10.0
NO_LIMITS = Limits(max_tasks=0, max_tokens=0, max_cost_usd=0, max_time_s=0)
WRITES = frozenset(
    "register_worker join_objective renew_lease remove_worker "
    "reap_workers claim_next claim_duty intend_step "
    "record_step record_result record_lack record_plan fail_task "
    "release finish_check reorder "
    "record_report end_objective append_event mark_indexed store_vectors".split()
)


class Line:
    """A process's way to the store. Once it is dead nobody hears it, while it is frozen it waits,
    and a locked store takes no write."""

    def __init__(self, city):
        self.city = city
        self.is_dead = False
        self.awake = asyncio.Event()
        self.awake.set()

    def __getattr__(self, name):
        verb = getattr(self.city.store, name)

        async def ask(*args, **options):
            await self.wait()
            if name in WRITES and self.city.is_locked:
                await asyncio.sleep(LOCK_TIMEOUT_S)
                raise StoreUnavailableError("the store is locked")
            found = await verb(*args, **options)
            await self.wait()
            return found

        return ask

    async def wait(self):
        await self.awake.wait()
        if self.is_dead:
            await asyncio.Event().wait()


class FullStore:
    """A store whose disk becomes full when one method has been called: it takes no write then, but
    releases work, where it has room for that. It counts what it refused."""

    def __init__(self, store, *, full_after, releases):
        self.store = store
        self.full_after = full_after
        self.releases = releases
        self.is_full = False
        self.n_refused = 0
        self.on_refused = lambda: None

    def __getattr__(self, name):
        verb = getattr(self.store, name)

        async def write(*args, **options):
            if self.is_full and not (self.releases and name == "release"):
                self.n_refused += 1
                self.on_refused()
                raise StoreUnavailableError("the disk is full")
            found = await verb(*args, **options)
            self.is_full = self.is_full or (name == self.full_after and self.n_refused == 0)
            return found

        return write if name in WRITES else verb


class DeafStore:
    """A store that takes the first intention to make a call, but whose answer to it is lost."""

    def __init__(self, store):
        self.store = store
        self.n_lost = 0

    def __getattr__(self, name):
        return getattr(self.store, name)

    async def intend_step(self, *args, **options):
        step = await self.store.intend_step(*args, **options)
        if not self.n_lost:
            self.n_lost += 1
            raise StoreUnavailableError("the connection was cut")
        return step


@virtually
async def test_what_a_call_holds_whose_answer_from_the_store_was_lost_holds_up_no_other_work():
    world = VirtualWorld(
        model=SlowModel(Script(), lambda: asyncio.sleep(LATENCY_S)), pace=Pace(lease_s=LEASE_S)
    )
    objective = await world.start(limits=replace(NO_LIMITS, max_calls=3))
    await world.store.add_tasks(objective.id, [Proposal(name=f"Task {n}") for n in range(3)])
    world.store = DeafStore(world.store)

    ended = await world.run(objective, timeout_s=600.0)

    assert world.store.n_lost == 1
    assert ended.stop_reason is StopReason.LIMIT_CALLS and ended.usage.calls == 3


async def work_on_a_disk_that_fills_up(**room):
    model = SlowModel(Script(), lambda: asyncio.sleep(LATENCY_S))
    world = VirtualWorld(model=model, pace=Pace(lease_s=LEASE_S))
    objective = await world.start(limits=NO_LIMITS)
    await world.store.add_tasks(objective.id, [Proposal(name=f"Task {n}") for n in range(8)])
    world.store = FullStore(world.store, **room)
    worker = world.open_worker()
    running = asyncio.create_task(worker.run(objective.id))
    await asyncio.sleep(LATENCY_S + 1)
    assert world.store.is_full
    return world.store, worker, running


@virtually
async def test_a_refused_write_that_changes_the_file_is_not_tried_again_at_once():
    store, worker, running = await work_on_a_disk_that_fills_up(
        full_after="claim_next", releases=True
    )
    store.on_refused = lambda: asyncio.get_running_loop().call_later(0.1, worker.wake)
    n_before = store.n_refused
    await asyncio.sleep(60)
    n_in_minute = store.n_refused - n_before
    store.is_full = False
    async with asyncio.timeout(600):
        ended, _ = await running

    assert n_in_minute < 200  # two thirds are of the lease
    assert ended.stop_reason is StopReason.FINISHED


@pytest.mark.parametrize("full_after", ["join_objective", "claim_next", "intend_step"])
@pytest.mark.parametrize("releases", [False, True])
@virtually
async def test_a_worker_whose_store_takes_no_write_stops_when_it_is_told_to(full_after, releases):
    _, worker, running = await work_on_a_disk_that_fills_up(
        full_after=full_after, releases=releases
    )

    worker.stop()
    async with asyncio.timeout(2 * Pace().drain_s):
        ended, stopped_by = await running

    assert ended.stop_reason is None
    assert stopped_by == signal.SIGTERM


class City:
    """Some processes on one store, each of which is started again under its name when it died."""

    def __init__(self, script, *, n_processes, names):
        self.clock = VirtualClock()
        self.store = MemoryTaskStore(self.clock)
        self.is_locked = False
        self.script = script
        self.n_processes = n_processes
        self.names = names
        self.lines = {}  # of the living
        self.ever = []
        self.runs = {}
        self.numbers = count(1)

    async def live(self, name):
        """One life of a process, until the objective is over."""
        line: Any = Line(self)
        self.lines[name] = line
        self.ever.append(line)
        model = SlowModel(self.script, lambda: asyncio.sleep(LATENCY_S))
        world = VirtualWorld(
            model=model,
            store=line,
            clock=self.clock,
            pace=Pace(lease_s=LEASE_S),
            worker_name=name,
            _worker_numbers=self.numbers,
        )
        await reap_namesakes(line, await line.workers(), name=name, home="")
        await world.open_worker().run(self.objective_id)

    def start(self, name):
        self.runs.setdefault(name, []).append(asyncio.create_task(self.live(name)))

    def kill(self, name):
        self.lines[name].is_dead = True

    async def run(self, disturb):
        """Let things happen until they end, then let the processes end; returns the objective and
        its tasks."""
        world = VirtualWorld(store=self.store, clock=self.clock)
        self.objective_id = (await world.start(limits=NO_LIMITS)).id
        await self.store.add_tasks(self.objective_id, [Proposal(name=name) for name in self.names])
        for number in range(self.n_processes):
            self.start(f"p{number}")
        await asyncio.sleep(0)
        await disturb(self)
        async with asyncio.timeout(100_000):
            await asyncio.gather(*(runs[-1] for runs in self.runs.values()))
        objective = await self.store.objective(self.objective_id)
        tasks = await self.store.tasks(self.objective_id)
        for line in self.ever:  # from here on the dead do what no dead process does: end in order
            line.is_dead = False
        for run in (run for runs in self.runs.values() for run in runs):
            run.cancel()
        await asyncio.gather(
            *(run for runs in self.runs.values() for run in runs), return_exceptions=True
        )
        return objective, tasks


async def happen(city, chance):
    """One thing that says nothing about any task."""
    name = chance.choice(sorted(city.lines))
    match chance.choice(("kill", "kill", "kill", "freeze", "suspend", "jump", "lock")):
        case "kill":
            city.kill(name)
            await asyncio.sleep(chance.uniform(0, 2))
            city.start(name)
            await asyncio.sleep(0)
        case "freeze":
            city.lines[name].awake.clear()
            await asyncio.sleep(LEASE_S + chance.uniform(1, 30))
            city.lines[name].awake.set()
        case "suspend":
            for line in city.lines.values():
                line.awake.clear()
            # a clock that stands still meanwhile, or goes on
            await asyncio.sleep(chance.choice((0, 2 * LEASE_S)))
            city.clock.offset_s += chance.choice((0, 8 * 3600))
            for line in city.lines.values():
                line.awake.set()
        case "jump":
            city.clock.offset_s = chance.choice((-3600, 0, 3600))
        case "lock":
            city.is_locked = True
            await asyncio.sleep(LOCK_S)
            city.is_locked = False


@pytest.mark.thorough
@pytest.mark.parametrize("n_processes", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_kills_freezes_suspends_jumps_and_locks_give_no_healthy_task_up(seed, n_processes):
    chance = random.Random(f"{seed} {n_processes}")

    async def disturb(city):
        for _ in range(30):
            await asyncio.sleep(chance.uniform(1, 12))
            await happen(city, chance)

    async def live():
        return await City(
            Script(), n_processes=n_processes, names=[f"Task {number}" for number in range(40)]
        ).run(disturb)

    objective, tasks = run_virtually(live(), seed=seed)
    assert {(task.status, task.failures, task.n_lost) for task in tasks} == {
        (TaskStatus.DONE, 0, 0)
    }
    assert (len(tasks), objective.stop_reason, objective.has_report) == (
        41,
        StopReason.FINISHED,
        True,
    )


class Poisoned(Script):
    """The poison task kills whoever asks for its result."""

    city: Any = None

    def __call__(self, prompt, role):
        if role is Role.EXECUTION and "Poison" in task_of(prompt):
            for name, line in self.city.lines.items():
                if not line.is_dead:
                    self.city.kill(name)
                    asyncio.get_running_loop().call_later(1.0, self.city.start, name)
        return super().__call__(prompt, role)


@pytest.mark.thorough
@pytest.mark.parametrize("n_poisons", [1, 3])
def test_a_task_that_kills_its_worker_each_time_is_given_up_after_ten_and_the_others_go_on(
    n_poisons,
):
    poisons, others = (
        [f"Poison {number}" for number in range(n_poisons)],
        [f"Task {number}" for number in range(12)],
    )

    async def all_given_up(city):
        while ((await city.store.standing(city.objective_id)).counts)[TaskStatus.DEAD] < n_poisons:
            await asyncio.sleep(1)
        await asyncio.sleep(2)  # until the last process is started

    async def live():
        script = Poisoned()
        script.city = City(script, n_processes=1, names=[*poisons, *others])
        return await script.city.run(all_given_up)

    _, tasks = run_virtually(live())
    dead = [task for task in tasks if task.status is TaskStatus.DEAD]
    assert [(task.name, task.n_lost) for task in dead] == [
        (name, lifecycle.MAX_LOST) for name in poisons
    ]
    assert {task.error for task in dead} == {
        "10 workers in a row were lost while they worked on this task"
    }
    assert {task.status for task in tasks if task not in dead} == {TaskStatus.DONE}
