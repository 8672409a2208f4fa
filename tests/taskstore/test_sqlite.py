import asyncio
import fcntl
import multiprocessing
import shutil
import signal
import sqlite3
import stat
import time
from datetime import UTC, datetime

import pytest

from babyagi.errors import StoreUnavailableError, StoreUnusableError
from babyagi.tasks import Proposal, Reservation, StopReason, TaskStatus, Usage
from babyagi.taskstore import sqlite as driver
from babyagi.taskstore.offload import ThreadOffload, run_inline
from babyagi.taskstore.sql import POLL_S, open_sqlite
from tests.taskstore.contract import CALL, SPENT, Clock, TaskStoreContract, begin, finish_one, make_spec, make_worker
from tests.workers import join


class TestSqliteTaskStore(TaskStoreContract):
    async def open_store(self, clock, tmp_path):
        offload = ThreadOffload()
        return await open_sqlite(tmp_path / "tasks.db", clock=clock, offload=offload), offload.close


async def open_inline(path, clock=None):
    return await open_sqlite(path, clock=clock or Clock(), offload=run_inline)


async def make_filled(path, n_tasks=3):
    store = await open_inline(path)
    objective_id = await begin(store, *[f"Task {number}" for number in range(n_tasks)])
    claim = await store.claim_task(objective_id, "w")
    await store.intend_step(claim.fence, key="k", kind="model", request_hash="h", reservation=CALL)
    await store.record_step(claim.fence, key="k", output='"the step said this"', usage=SPENT)
    await store.record_result(claim, text="the result said this", origins=["model:m"])
    await store.record_plan(claim, proposals=[])
    await store.close()
    return objective_id


# -- the file ----------------------------------------------------------------------------------------------------------------


async def test_a_closed_store_opens_again_with_everything_in_it(tmp_path):
    objective_id = await make_filled(tmp_path / "tasks.db")
    store = await open_inline(tmp_path / "tasks.db")
    assert [result.text for result in await store.results(objective_id)] == ["the result said this"]
    assert (await store.objective(objective_id)).usage == SPENT
    await store.close()
    await store.close()


async def test_the_file_is_for_its_owner_only(tmp_path):
    store = await open_inline(tmp_path / "tasks.db")
    await begin(store)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    await store.close()
    assert set(modes.values()) == {0o600}, modes


@pytest.mark.parametrize("place", ["missing/tasks.db", "file/tasks.db", ""])
async def test_a_place_that_cannot_be_written_is_unusable(tmp_path, place):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreUnusableError):
        await open_inline(tmp_path / place)


async def test_a_file_that_is_no_database_is_unusable_and_left_alone(tmp_path):
    path = tmp_path / "tasks.db"
    path.write_bytes(b"these are my notes, and no database at all\n" * 100)
    with pytest.raises(StoreUnusableError) as caught:
        await open_inline(path)
    assert "move it" in caught.value.fix
    assert path.read_bytes().startswith(b"these are my notes")


async def test_somebody_elses_database_is_unusable(tmp_path):
    with sqlite3.connect(tmp_path / "tasks.db") as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    with pytest.raises(StoreUnusableError, match="no task store"):
        await open_inline(tmp_path / "tasks.db")


async def test_a_newer_schema_is_refused_with_both_versions(tmp_path):
    path = tmp_path / "tasks.db"
    await make_filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET value = '9' WHERE key = 'schema_version'")
    connection.close()
    with pytest.raises(StoreUnusableError) as caught:
        await open_inline(path)
    assert "version 9" in caught.value.why
    assert "up to 1" in caught.value.why
    assert "--upgrade" in caught.value.fix


async def test_damaged_pages_are_found_when_the_file_is_opened(tmp_path):
    path = tmp_path / "tasks.db"
    await make_filled(path, n_tasks=200)
    content = bytearray(path.read_bytes())
    for page in range(1, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(content)
    with pytest.raises(StoreUnusableError):
        await open_inline(path)


@pytest.mark.parametrize("text", [b"the result said this", b"the step said this"])
async def test_a_flipped_byte_in_a_result_or_a_step_is_noticed_when_it_is_read(tmp_path, text):
    path = tmp_path / "tasks.db"
    objective_id = await make_filled(path)
    path.write_bytes(path.read_bytes().replace(text, text.replace(b"said", b"sajd")))
    store = await open_inline(path)
    with pytest.raises(StoreUnusableError, match=r"task 1 of|task:1 of"):
        await store.results(objective_id)
        await store.steps(objective_id, owner="task:1")
    await store.close()


async def test_every_flipped_bit_in_a_result_or_a_step_is_found_by_verifying_and_the_other_rows_are_read(tmp_path):
    path = tmp_path / "tasks.db"
    objective_id = await make_filled(path)
    whole = path.read_bytes()
    places = [whole.index(text) + at for text in (b"the result said this", b"the step said this") for at in range(len(text))]
    for bit, place in enumerate(places):
        content = bytearray(whole)
        content[place] ^= 1 << bit % 8  # the highest bit makes it no UTF-8 any more
        path.write_bytes(content)
        store = await open_inline(path)
        found = await store.verify()
        assert (found.n_steps, found.n_results, len(found.damages)) == (1, 1, 1), bit
        assert ("the result of task 1" in found.damages[0]) == (bit < 20)
        assert await store.verify(objective_id) == found
        with pytest.raises(StoreUnusableError):
            await store.results(objective_id)
            await store.steps(objective_id, owner="task:1")
        await store.close()


async def test_a_lost_entry_of_an_index_is_found_by_verifying(tmp_path):
    path = tmp_path / "tasks.db"
    await make_filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = sql || ' AND blockers > 99' WHERE name = 'task_ready'")
    connection.close()
    store = await open_inline(path)
    assert any("task_ready" in damage for damage in (await store.verify()).damages)
    await store.close()


async def test_every_cut_of_the_log_opens_clean_with_the_commits_before_it(tmp_path):
    store = await open_inline(tmp_path / "tasks.db")
    objective_id = await begin(store)
    for number in range(10):
        await store.add_tasks(objective_id, [Proposal(name=f"Task {number}")])
    n_seen = []
    log = (tmp_path / "tasks.db-wal").read_bytes()
    start = log.rfind(b"Task 0")
    for cut in range(start, len(log), 2048):
        home = tmp_path / f"cut{cut}"
        home.mkdir()
        shutil.copy(tmp_path / "tasks.db", home)
        (home / "tasks.db-wal").write_bytes(log[:cut])
        torn = await open_inline(home / "tasks.db")
        n_seen.append(len(await torn.tasks(objective_id)) if await torn.objectives() else 0)
        await torn.close()
        shutil.rmtree(home)
    await store.close()
    assert n_seen == sorted(n_seen)
    assert n_seen[-1] >= 10


async def test_a_full_disk_is_passing_and_loses_nothing(tmp_path):
    store = await open_inline(tmp_path / "tasks.db")
    objective_id = await begin(store)
    connection = store._database._open()
    n_pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {n_pages}")
    with pytest.raises(StoreUnavailableError):
        await store.add_tasks(objective_id, [Proposal(name="x" * 2000 + str(number)) for number in range(50)], allow_duplicates=True)
    assert len(await store.tasks(objective_id)) == 1
    connection.execute("PRAGMA max_page_count = 1000000")
    await store.add_tasks(objective_id, [Proposal(name="fits now")])
    assert len(await store.tasks(objective_id)) == 2
    await store.close()


async def test_a_store_that_another_program_locks_is_unavailable_and_not_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "LOCK_TRIES", 3)
    store = await open_inline(tmp_path / "tasks.db")
    objective_id = await begin(store)
    with (tmp_path / "tasks.db.lock").open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(StoreUnavailableError):
            await store.pause_objective(objective_id)
    assert (await store.pause_objective(objective_id)).status == "paused"
    await store.close()


# -- size --------------------------------------------------------------------------------------------------------------------


async def test_claiming_among_ten_thousand_queued_uses_the_index_of_claimable_tasks(tmp_path):
    store = await open_inline(tmp_path / "tasks.db")
    objective_id = await begin(store)
    await store.add_tasks(objective_id, [Proposal(name=f"Task {number}", after=(1,) if number % 2 else ()) for number in range(10_000)])
    database = store._database
    for piece in ("best_queued", "has_unblocked_task", "best_recorded", "queue_head", "has_held_task", "last_finished", "held"):
        values = {"objective_id": objective_id, "limit": 5}
        plan = [str(row["detail"]) for row in database._open().execute("EXPLAIN QUERY PLAN " + database._pieces[piece], values)]
        assert all("USING" in line and "INDEX" in line for line in plan), (piece, plan)
        assert not any("TEMP B-TREE" in line or line.startswith("SCAN step") for line in plan), (piece, plan)
    for piece, ids in (("insert_task", "after_ids"), ("ranks", "task_ids")):
        values = dict.fromkeys(("objective_id", "task_id", "name", "name_key", "parent_id", "origins"), 1) | {ids: "[1]"}
        plan = [str(row["detail"]) for row in database._open().execute("EXPLAIN QUERY PLAN " + database._pieces[piece], values)]
        assert any("(objective_id=? AND id=?)" in line for line in plan), (piece, plan)
    first, _ = await finish_one(store, objective_id)
    second = await store.claim_task(objective_id, "w")
    assert (first, second.task.id) == (1, 2)
    await store.close()


async def test_a_restart_keeps_the_count_of_barren_tasks(tmp_path):
    path = tmp_path / "tasks.db"
    store = await open_inline(path)
    objective_id = await begin(store, *(f"T{n}" for n in range(9)))
    for _ in range(5):
        claim = await store.claim_task(objective_id, "w")
        await store.record_result(claim, text="r", origins=[])
        await store.record_plan(claim, proposals=[], is_repeat=True)
        await store.close()
        store = await open_inline(path)
    assert await store.claim_task(objective_id, "w") is None
    assert (await store.conclude_objective(objective_id)).stop_reason is StopReason.STALLED
    await store.close()


# -- several processes -------------------------------------------------------------------------------------------------------


def _now():
    return datetime.now(UTC)


def _work(path, objective_id, worker_id, barrier):
    """A worker process: claim, pay, finish, until nothing is left."""

    async def run():
        store = await open_sqlite(path, clock=_now, offload=run_inline)
        await join(store, make_worker(worker_id), objective_id, lease_s=0.4)
        barrier.wait(30)
        while (await store.counts(objective_id))[TaskStatus.DONE] != 201:
            await store.reap_workers()
            try:
                await store.renew_lease(worker_id, lease_s=0.4)
            except Exception:
                await join(store, make_worker(worker_id), objective_id, lease_s=0.4)
            claim = await store.claim_task(objective_id, worker_id)
            if claim is None:
                await store.wait_for_events(objective_id, after_id=await store.last_event_id(objective_id), timeout_s=0.1)
                continue
            try:
                if claim.task.status is TaskStatus.RUNNING:
                    await store.intend_step(claim.fence, key="k", kind="model", request_hash="h", reservation=Reservation(calls=1))
                    await store.record_step(claim.fence, key="k", output=f'"{worker_id}"', usage=Usage(calls=1))
                    await store.record_result(claim, text=worker_id, origins=[])
                await store.record_plan(claim, proposals=[])
            except Exception as error:  # a lease that ran out on a slow machine; the task goes to another
                print(worker_id, error)
        await store.close()

    asyncio.run(run())


@pytest.mark.system
async def test_three_processes_one_of_them_killed_do_each_task_exactly_once(tmp_path):
    path = tmp_path / "tasks.db"
    store = await open_sqlite(path, clock=_now, offload=run_inline, max_failures=99)
    objective, _ = await store.create_objective(make_spec(), uid="u1")
    await store.add_tasks(objective.id, [Proposal(name=f"Task {number}") for number in range(200)])
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    processes = [context.Process(target=_work, args=(path, objective.id, f"w{number}", barrier)) for number in range(3)]
    try:
        for process in processes:
            process.start()
        deadline = time.monotonic() + 60
        while (await store.counts(objective.id))[TaskStatus.DONE] < 40 and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        processes[0].kill()
        for process in processes[1:]:
            await asyncio.to_thread(process.join, 60)
        assert [process.exitcode for process in processes] == [-signal.SIGKILL, 0, 0]
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
            process.join()
    results = await store.results(objective.id)
    events = await store.events(objective.id, limit=100_000)
    done = [event.task_id for event in events if event.kind == "task.done" and event.task_id]
    assert sorted(done) == sorted(result.task_id for result in results) == list(range(1, 202))
    assert [event.id for event in events] == sorted(event.id for event in events)
    kept = [step for number in range(1, 202) for step in await store.steps(objective.id, owner=f"task:{number}")]
    assert len(kept) == 201
    assert (await store.objective(objective.id)).held == Reservation()
    await store.close()


async def test_a_write_of_another_connection_wakes_who_waits(tmp_path):
    waiting, writing = await open_inline(tmp_path / "tasks.db"), await open_inline(tmp_path / "tasks.db")
    objective_id = await begin(writing)
    last = await waiting.last_event_id(objective_id)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(waiting.wait_for_events(objective_id, after_id=last, timeout_s=60))
        await asyncio.sleep(0)
        await writing.pause_objective(objective_id)
    await waiting.close()
    await writing.close()


async def test_a_commit_of_another_store_ends_the_wait_for_a_change_and_ones_own_do_not(tmp_path):
    waiting, writing = await open_inline(tmp_path / "tasks.db"), await open_inline(tmp_path / "tasks.db")
    objective_id = await begin(waiting)
    await waiting.wait_for_change(timeout_s=60)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        wait = group.create_task(waiting.wait_for_change(timeout_s=60))
        await waiting.pause_objective(objective_id)
        await asyncio.sleep(3 * POLL_S)
        assert not wait.done()
        await writing.resume_objective(objective_id)
    await waiting.close()
    await writing.close()
