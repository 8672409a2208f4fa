"""Several processes on one list: they claim, pay and finish; one is killed, and a person moves
tasks meanwhile."""

import asyncio
import random
import signal
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from babyagi.errors import LeaseLostError, SettingsError
from babyagi.runtime.offload import run_inline
from babyagi.tasks import Duty, Place, Proposal, Reservation, TaskStatus, Usage
from babyagi.taskstore.nouns import Intention, Outcome, Planned
from babyagi.taskstore.sql.store import TaskStore, open_postgres
from babyagi.taskstore.sqlite import open_sqlite
from support.forked import FORKS
from support.workers import join
from tests.taskstore.contract import make_spec, make_worker

N_TASKS = 201
LEASE_S = 0.4


def _now() -> datetime:
    return datetime.now(UTC)


async def open_place(place: Path | str) -> TaskStore:
    """A file, or the URL of a server."""
    if isinstance(place, Path):
        return await open_sqlite(place, clock=_now, offload=run_inline)
    return await open_postgres(place, offload=run_inline)


def _work(place, objective_id, worker_id, barrier):
    """A worker process, until nothing is left."""

    async def run():
        store = await open_place(place)
        await join(store, make_worker(worker_id), objective_id, lease_s=LEASE_S)
        barrier.wait(300)
        while ((await store.standing(objective_id)).counts)[TaskStatus.DONE] != N_TASKS:
            await store.reap_workers()
            try:
                await store.renew_lease(worker_id, lease_s=LEASE_S)
            except LeaseLostError:
                await join(store, make_worker(worker_id), objective_id, lease_s=LEASE_S)
            claim = await store.claim_task(objective_id, worker_id)
            planner = await store.claim_duty(objective_id, worker_id, Duty.PLAN)
            if claim is None and planner is None:
                await store.wait_for_events(
                    objective_id, after_id=await store.last_event_id(objective_id), timeout_s=0.1
                )
                continue
            # a lease that ran out on a slow machine; the task goes to another
            with suppress(LeaseLostError):
                if claim is not None:
                    await store.intend_step(
                        claim.fence,
                        intention=Intention(
                            key="k",
                            kind="model",
                            request_hash="h",
                            reservation=Reservation(calls=1),
                        ),
                    )
                    await store.record_step(
                        claim.fence, Outcome(key="k", output=f'"{worker_id}"', usage=Usage(calls=1))
                    )
                    await store.record_result(claim, text=worker_id, origins=[])
                if planner is not None:
                    task_ids = [
                        task.id
                        for task in await store.tasks(
                            objective_id, statuses=[TaskStatus.RECORDED], limit=3
                        )
                    ]
                    await store.record_plan(planner, task_ids=task_ids, plan=Planned())
        await store.close()

    asyncio.run(run())


async def do_each_task_once(place: Path | str) -> None:
    """Three processes do a list, one of them is killed: each task has one result and was done once,
    and every counter is exact."""
    store = await open_place(place)
    objective, _ = await store.create_objective(make_spec(), uid="u1")
    await store.add_tasks(
        objective.id, [Proposal(name=f"Task {number}") for number in range(N_TASKS - 1)]
    )
    barrier = FORKS.Barrier(3)
    processes = [
        FORKS.Process(target=_work, args=(place, objective.id, f"w{number}", barrier))
        for number in range(3)
    ]
    try:
        for process in processes:
            process.start()
        await _move_tasks_until(store, objective.id, n_done=40)
        processes[0].kill()
        await _move_tasks_until(store, objective.id, n_done=120)
        for process in processes[1:]:
            await asyncio.to_thread(process.join, 60)
        assert [process.exitcode for process in processes] == [-signal.SIGKILL, 0, 0]
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
            process.join()
    await _check(store, objective.id)
    await store.close()


async def _move_tasks_until(store: TaskStore, objective_id: int, *, n_done: int) -> None:
    chance, deadline = random.Random(n_done), time.monotonic() + 300
    while ((await store.standing(objective_id)).counts)[
        TaskStatus.DONE
    ] < n_done and time.monotonic() < deadline:
        with suppress(SettingsError):  # it was claimed meanwhile
            await store.move_task(
                objective_id,
                chance.randint(1, N_TASKS),
                to=chance.choice((Place.FIRST, Place.LAST)),
            )
        await asyncio.sleep(0.01)


async def _check(store: TaskStore, objective_id: int) -> None:
    every = list(range(1, N_TASKS + 1))
    results, tasks = await store.results(objective_id), await store.tasks(objective_id)
    events = await store.events(objective_id, limit=100_000)
    done = [event.task_id for event in events if event.kind == "task.done" and event.task_id]
    assert (
        sorted(done)
        == sorted(result.task_id for result in results)
        == sorted(task.rank for task in tasks)
        == every
    )
    assert [event.id for event in events] == sorted(event.id for event in events)
    claims = [
        (event.task_id, event.data["claim_no"]) for event in events if event.kind == "task.claimed"
    ]
    assert len(claims) == len(set(claims))
    assert [len(await store.steps(objective_id, owner=f"task:{number}")) for number in every] == [
        1
    ] * N_TASKS
    objective = await store.objective(objective_id)
    assert objective.held == Reservation()
    assert objective.usage == Usage(calls=sum(task.usage.calls for task in tasks))
    assert ((await store.standing(objective_id)).counts)[TaskStatus.DONE] == N_TASKS
