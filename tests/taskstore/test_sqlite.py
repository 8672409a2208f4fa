import asyncio
import errno
import fcntl
import functools
import multiprocessing
import os
import random
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from babyagi.errors import StoreUnavailableError, StoreUnusableError
from babyagi.runtime.offload import ThreadOffload, run_inline
from babyagi.tasks import Duty, ObjectiveStatus, Proposal, StopReason
from babyagi.taskstore import sqlite
from babyagi.taskstore.nouns import Intention, Kept, Outcome, Planned
from babyagi.taskstore.sql import database
from babyagi.taskstore.sql.database import from_time
from babyagi.taskstore.sqlite import (
    LOOK_S,
    SqliteDatabase,
    open_for_looking,
    open_sqlite,
)
from support.processes import open_files_left
from support.workers import join
from tests.taskstore.contract import (
    CALL,
    KEPT,
    NEXT_CALL,
    SPENT,
    Clock,
    TaskStoreContract,
    begin,
    finish_one,
    make_spec,
    make_worker,
    plan_from,
)
from tests.taskstore.empty import put_empty_store
from tests.taskstore.old_home import (
    VERSION,
    check_nothing_lost,
    load_described,
    statements_of,
    unpack_file,
)
from tests.taskstore.races import do_each_task_once


class TestSqliteTaskStore(TaskStoreContract):
    async def open_store(self, clock, tmp_path):
        put_empty_store(tmp_path / "tasks.db")
        offload = ThreadOffload()
        return await open_sqlite(tmp_path / "tasks.db", clock=clock, offload=offload), offload.close


async def open_inline(path, clock=None):
    return await open_sqlite(path, clock=clock or Clock(), offload=run_inline)


async def make_filled(path, n_tasks=3):
    store = await open_inline(path)
    objective_id = await begin(store, *[f"Task {number}" for number in range(n_tasks)])
    claim = await store.claim_task(objective_id, "w")
    await store.intend_step(
        claim.fence, intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL)
    )
    await store.record_step(
        claim.fence, Outcome(key="k", output='"the step said this"', usage=SPENT)
    )
    await store.record_result(
        claim, text="the result said this", origins=["model:m"], lack="the rest"
    )
    await plan_from(store, objective_id)
    await store.close()
    return objective_id


# -- the file
# --------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_store_is_closed_although_a_read_that_an_error_cut_off_still_holds_its_cursor(tmp_path):
    database = SqliteDatabase(tmp_path / "tasks.db", clock=Clock())
    assert database._connection is not None
    held = database._connection.execute("SELECT * FROM meta UNION ALL SELECT * FROM meta")
    next(held)

    database.close()

    SqliteDatabase(tmp_path / "tasks.db", clock=Clock()).close()


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


async def test_a_store_behind_a_link_is_the_store_itself_with_one_lock(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "tasks.db").symlink_to(tmp_path / "disk" / "store.db")

    linked = await open_inline(tmp_path / "home" / "tasks.db")
    direct = await open_inline(tmp_path / "disk" / "store.db")
    made = await begin(linked)
    seen = await direct.objectives()
    await linked.close()
    await direct.close()

    assert [objective.id for objective in seen] == [made]
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["tasks.db"]
    assert (tmp_path / "disk" / "store.db.lock").exists()


async def test_a_disk_without_locks_is_unusable_and_says_so(tmp_path, monkeypatch):
    def no_locks(*_args):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)

    with pytest.raises(StoreUnusableError, match="cannot be locked") as caught:
        await open_inline(tmp_path / "tasks.db")

    assert "No locks available" in caught.value.why


async def test_a_file_that_is_no_database_is_unusable_and_left_alone(tmp_path):
    path = tmp_path / "tasks.db"
    path.write_bytes(b"these are my notes, and no database at all\n" * 100)
    with pytest.raises(StoreUnusableError) as caught:
        await open_inline(path)
    assert "move it" in caught.value.fix
    assert path.read_bytes().startswith(b"these are my notes")


async def test_a_file_that_cannot_be_opened_is_not_called_damaged(tmp_path):
    path = tmp_path / "tasks.db"
    await make_filled(path)

    with open_files_left(1), pytest.raises(StoreUnusableError) as caught:
        await open_inline(path)

    assert "backup" not in caught.value.fix
    assert "move it" not in caught.value.fix
    assert "ulimit" in caught.value.fix


async def test_somebody_elses_database_is_unusable(tmp_path):
    with sqlite3.connect(tmp_path / "tasks.db") as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    with pytest.raises(StoreUnusableError, match="not a task store"):
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
    assert f"and {SCRIPTS.version}" in caught.value.why
    assert "pip install" in caught.value.fix


async def test_a_new_file_has_small_pages_because_a_commit_writes_each_one_whole(tmp_path):
    store = await open_inline(tmp_path / "tasks.db")
    await store.close()
    with closing(sqlite3.connect(tmp_path / "tasks.db")) as connection:
        assert connection.execute("PRAGMA page_size").fetchone() == (2048,)


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


async def test_every_flipped_bit_in_a_result_or_a_step_is_found_by_verifying_and_the_other_rows_are_read(
    tmp_path,
):
    path = tmp_path / "tasks.db"
    objective_id = await make_filled(path)
    whole = path.read_bytes()
    places = [
        whole.index(text) + at
        for text in (b"the result said this", b"the step said this")
        for at in range(len(text))
    ]
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
        connection.execute(
            "UPDATE sqlite_schema SET sql = sql || ' AND blockers > 99' WHERE name = 'task_ready'"
        )
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
    with pytest.raises(StoreUnavailableError) as raised:
        await store.add_tasks(
            objective_id, [Proposal(name="x" * 2000 + str(number)) for number in range(50)]
        )
    assert raised.value.fix.startswith("make room on its disk")
    assert len(await store.tasks(objective_id)) == 1
    connection.execute("PRAGMA max_page_count = 1000000")
    await store.add_tasks(objective_id, [Proposal(name="fits now")])
    assert len(await store.tasks(objective_id)) == 2
    await store.close()


@asynccontextmanager
async def store_whose_thread_is_busy(path):
    """A store with an objective whose writes line up, and what lets them run."""
    offload, may_end = ThreadOffload(), threading.Event()
    store = await open_sqlite(path, clock=Clock(), offload=offload)
    objective_id = await begin(store, "Task 2", "Task 3")
    busy = asyncio.create_task(offload(may_end.wait))
    try:
        yield store, objective_id, may_end.set
    finally:
        may_end.set()
        await busy
        await store.close()
        offload.close()


async def line_up(*writes):
    tasks = [asyncio.create_task(write) for write in writes]
    await asyncio.sleep(0)  # each has its first step now
    return tasks


def adding(store, objective_id, name):
    return store.add_tasks(objective_id, [Proposal(name=name)])


async def names_of(path, objective_id):
    store = await open_inline(path)
    names = [task.name for task in await store.tasks(objective_id)]
    await store.close()
    return names


async def test_a_refused_write_leaves_no_trace_and_harms_none_beside_it(tmp_path):
    def fail_at_the_end(tx):
        tx.run("set_rank", objective_id=1, task_id=1, rank=99)
        raise ValueError("after a change")

    async with store_whose_thread_is_busy(tmp_path / "tasks.db") as (store, objective_id, go):
        first, refused, second = await line_up(
            adding(store, objective_id, "First"),
            store._write(fail_at_the_end, objective_id),
            adding(store, objective_id, "Second"),
        )
        go()
        await asyncio.gather(first, second)
        with pytest.raises(ValueError, match="after a change"):
            await refused
        assert (await store.task(objective_id, 1)).rank == 1
    names = await names_of(tmp_path / "tasks.db", objective_id)
    assert names[-2:] == ["First", "Second"]


async def test_a_write_that_nobody_waits_for_any_more_is_not_made(tmp_path):
    async with store_whose_thread_is_busy(tmp_path / "tasks.db") as (store, objective_id, go):
        first, given_up, second = await line_up(
            *(adding(store, objective_id, name) for name in ("First", "Given up", "Second"))
        )
        given_up.cancel()
        await asyncio.sleep(0)
        go()
        await asyncio.gather(first, second)
    names = await names_of(tmp_path / "tasks.db", objective_id)
    assert names[-2:] == ["First", "Second"]
    assert "Given up" not in names


@pytest.fixture
def syncs(monkeypatch):
    """What is asked of the disk, one entry for each time that it was waited for: the names of the
    files that another process could lock meanwhile."""
    found = []
    sync = os.fdatasync

    def sync_seen(fd):
        lock = Path(str(Path(f"/proc/self/fd/{fd}").readlink()).removesuffix("-wal") + ".lock")
        with lock.open("r+b") as other:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found.append(lock.name)
        sync(fd)

    monkeypatch.setattr(os, "fdatasync", sync_seen)
    return found


async def test_only_what_would_be_had_again_for_nothing_does_not_wait_for_the_disk(tmp_path, syncs):
    store = await open_inline(tmp_path / "tasks.db")
    objective_id = await begin(store)

    async def waits(verb):
        syncs.clear()
        found = await verb
        assert syncs in ([], ["tasks.db.lock"])
        return bool(syncs), found

    is_waited_for, claim = await waits(store.claim_task(objective_id, "w"))
    assert not is_waited_for
    fence = claim.fence
    for verb, is_lasting in (
        (
            store.record_step(
                fence, Kept(key="inputs", kind="inputs", request_hash="h", output="{}")
            ),
            False,
        ),
        (
            store.intend_step(
                fence,
                intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL),
            ),
            True,
        ),
        (store.record_step(fence, Outcome(key="k", output='"said"', usage=SPENT)), True),
        (store.renew_lease("w", lease_s=30), False),
        (store.intend_step(fence, intention=replace(NEXT_CALL, key="n"), first=KEPT), True),
        (store.record_step(fence, Outcome(key="n", output='"said"', usage=SPENT)), True),
        (
            store.intend_step(fence, intention=Intention(key="once", kind="once", request="{}")),
            True,
        ),
        (store.record_step(fence, Outcome(key="once", output=None, usage=SPENT)), True),
        (store.record_result(claim, text="found", origins=["model:m"]), True),
    ):
        assert (await waits(verb))[0] is is_lasting, verb
    is_waited_for, planner = await waits(store.claim_duty(objective_id, "w", Duty.PLAN))
    assert not is_waited_for
    for verb, is_lasting in (
        (store.record_plan(planner, task_ids=[1], plan=Planned()), True),
        (store.store_vectors(objective_id, space="s", vectors={1: b"1234"}), False),
        (store.mark_indexed(objective_id, task_ids=[1]), False),
        (store.end_objective(objective_id, reason=StopReason.CANCELLED), True),
    ):
        assert (await waits(verb))[0] is is_lasting, verb
    await store.close()


async def test_what_waits_for_the_disk_is_waited_for_until_the_disk_has_it(tmp_path, monkeypatch):
    store = await open_inline(tmp_path / "tasks.db")
    objective_id = await begin(store)
    sync, answers, synced = os.fdatasync, [OSError(errno.EIO, "Input/output error")], [0]

    def sync_or_fail(fd):
        if answers:
            raise answers.pop()
        sync(fd)
        synced.append(fd)

    monkeypatch.setattr(os, "fdatasync", sync_or_fail)
    with pytest.raises(StoreUnavailableError, match="cannot answer now") as raised:
        await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
    assert "Input/output error" in raised.value.why
    await store.switch_objective(
        objective_id, to=ObjectiveStatus.PAUSED
    )  # it is paused already, and not yet on the disk
    assert len(synced) == 2
    await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
    assert len(synced) == 2
    await store.close()


async def test_a_store_that_another_program_locks_is_unavailable_and_not_for_ever(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sqlite, "LOCK_TIMEOUT_S", 0.05)
    store = await open_inline(tmp_path / "tasks.db")
    objective_id = await begin(store)
    with (tmp_path / "tasks.db.lock").open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(StoreUnavailableError):
            await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
    assert (
        await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
    ).status == "paused"
    await store.close()


# -- a file that is gone, or another one
# ---------------------------------------------------------------------------------------


def _remove(path):
    path.unlink()


def _remove_folder(path):
    shutil.rmtree(path.parent)


def _move_folder(path):
    path.parent.rename(path.parent.with_name("moved"))


def _replace_by_a_backup(path):
    shutil.copy(path, path.with_name("backup"))
    path.with_name("backup").replace(path)


def _replace_folder_by_a_copy(path):
    shutil.copytree(path.parent, path.parent.with_name("copy"))
    path.parent.rename(path.parent.with_name("old"))
    path.parent.with_name("copy").rename(path.parent)


@pytest.mark.parametrize(
    "happens",
    [_remove, _remove_folder, _move_folder, _replace_by_a_backup, _replace_folder_by_a_copy],
)
async def test_a_file_that_was_removed_or_replaced_is_noticed_before_the_next_call_and_at_the_next_heartbeat(
    tmp_path, happens
):
    path = tmp_path / "home" / "tasks.db"
    path.parent.mkdir()
    store = await open_inline(path)
    objective_id = await begin(store)
    fence = (await store.claim_task(objective_id, "w")).fence
    happens(path)
    for verb in (
        lambda: store.intend_step(
            fence, intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL)
        ),
        lambda: store.intend_step(fence, intention=Intention(key="o", kind="once", request="{}")),
        lambda: store.record_step(fence, Outcome(key="k", output='"paid"', usage=SPENT)),
        lambda: store.renew_lease("w", lease_s=30),
        store.workers,
    ):
        with pytest.raises(
            StoreUnusableError,
            match="gone"
            if "remove" in happens.__name__ or "move" in happens.__name__
            else "another",
        ) as told:
            await verb()
        assert str(path) in told.value.what
        assert "babyagi resume" in told.value.fix
    await store.close()


# -- damage
# --------------------------------------------------------------------------------------------------


async def make_rich(path):
    """A store with a row in every table; the worker `w` holds the task 2, which comes after 1, and
    a duty."""
    store = await open_inline(path)
    objective_id = await begin(store, "Task two")
    await store.join_objective("w", objective_id)
    claim = await store.claim_task(objective_id, "w")
    await store.intend_step(
        claim.fence, intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL)
    )
    await store.record_step(claim.fence, Outcome(key="k", output='"said"', usage=SPENT))
    await store.record_result(claim, text="a result", origins=["model:m"])
    await plan_from(
        store, objective_id, 1, proposals=[Proposal(name="Task three", after=(2,), parent_id=1)]
    )
    await store.store_vectors(objective_id, space="s", vectors={1: b"\0\0\x80\x3f"})
    await store.claim_task(objective_id, "w")
    await store.claim_duty(objective_id, "w", Duty.INDEX)
    ended, _ = await store.create_objective(make_spec(), uid="ended", always_new=True)
    await store.join_objective("w", ended.id)
    await store.end_objective(ended.id, reason=StopReason.STALLED)
    await store.record_report(
        await store.claim_duty(ended.id, "w", Duty.REPORT), markdown="The end"
    )
    await store.close()
    return objective_id


DAMAGES = {  # what is done to the file, and how the row is called
    "UPDATE task SET origins = '[\"pers' WHERE id = 2": "task 2 of objective 1",
    "UPDATE task SET origins = '{}' WHERE id = 2": "task 2 of objective 1",
    "UPDATE task SET origins = '[\"persom\"]' WHERE id = 2": "task 2 of objective 1",
    "UPDATE task SET after_ids = '[2' WHERE id = 3": "task 3 of objective 1",
    "UPDATE task SET after_ids = '[\"2\"]' WHERE id = 3": "task 3 of objective 1",
    "UPDATE task SET after_ids = '[1]' WHERE id = 3": "the tasks that task 3 of objective 1 comes after",
    "UPDATE task SET blockers = 0 WHERE id = 3": "the tasks that task 3 of objective 1 comes after",
    "UPDATE task_after SET after_id = 1": "the tasks that task 3 of objective 1 comes after",
    "UPDATE task SET name = 'Task tvo' WHERE id = 2": "task 2 of objective 1",
    "UPDATE task SET name = CAST('Task two' AS BLOB) WHERE id = 2": "task 2 of objective 1",
    "UPDATE task SET name = CAST(X'54FF' AS TEXT) WHERE id = 2": "task 2 of objective 1",
    "UPDATE task SET name = ' ' WHERE id = 2": "task 2 of objective 1",
    "UPDATE task SET status = 'runnin' WHERE id = 2": "task 2 of objective 1",
    "UPDATE task SET created_at_us = 1 << 62 WHERE id = 2": "task 2 of objective 1",
    "UPDATE task SET rank = 'x' WHERE id = 2": "task 2 of objective 1",
    "UPDATE task SET not_before_us = 'soon' WHERE id = 2": "task 2 of objective 1",
    "UPDATE task SET lack = '{' WHERE id = 2": "task 2 of objective 1",
    "UPDATE task SET parent_id = 2 WHERE id = 3": "task 3 of objective 1",
    "UPDATE task SET worker_id = 'nobody' WHERE id = 2": "task 2 of objective 1",
    "UPDATE objective SET spec = substr(spec, 2) WHERE id = 1": "objective 1",
    "UPDATE objective SET spec = replace(spec, 'objective', 'objectiwe')": "objective 1",
    "UPDATE objective SET spec = '[]'": "objective 1",
    "UPDATE objective SET checks = 'x' WHERE id = 1": "objective 1",
    "UPDATE objective SET uid = 'v' WHERE id = 1": "objective 1",
    "UPDATE objective SET n_barren = 'x'": "objective 1",
    "UPDATE objective SET report = replace(report, 'e', 'a') WHERE id = 2": "objective 2",
    "UPDATE event SET data = '{' WHERE id = 2": "event 2 of objective 1",
    "UPDATE event SET data = replace(data, 'a', 'b') WHERE id = 2": "event 2 of objective 1",
    "UPDATE event SET kind = 'task.addec' WHERE id = 2": "event 2 of objective 1",
    "UPDATE event SET at_us = 1 << 62 WHERE id = 2": "event 2 of objective 1",
    "UPDATE step SET owner = 'task:9'": "step k of task:9 of objective 1 (row 1)",
    "UPDATE result SET task_id = 2": "the result of task 2 of objective 1 (row 1)",
    "UPDATE vector SET vector = X'00000040'": "the vector of task 1 of objective 1 in s",
    "UPDATE worker SET lease_until_us = 'x'": "worker w",
    "UPDATE worker_objective SET worker_id = 'nobody'": "an objective that worker nobody serves",
    "UPDATE worker_objective SET since_us = 'x'": "an objective that worker w serves",
    "UPDATE duty SET duty = 'rest' WHERE duty = 'index'": "the duty to rest of objective 1",
    "UPDATE duty SET worker_id = 'nobody'": "the duty to index of objective 1",
}


def damage(path, statement):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for name in [
            row[0]
            for row in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
            ).fetchall()
        ]:
            connection.execute(f"DROP TRIGGER {name}")
        assert connection.execute(statement).rowcount > 0


@pytest.fixture(scope="module")
def rich_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("rich") / "tasks.db"
    asyncio.run(make_rich(path))
    return path.read_bytes()


@pytest.mark.parametrize("statement", DAMAGES)
async def test_a_damaged_row_of_any_table_is_named_by_verifying(tmp_path, rich_file, statement):
    path = tmp_path / "tasks.db"
    path.write_bytes(rich_file)
    damage(path, statement)
    store = await open_inline(path)
    assert DAMAGES[statement] in (await store.verify()).damages
    await store.close()


READ_BY_A_RUN = [
    statement
    for statement in DAMAGES
    if statement.endswith(("= '{}' WHERE id = 2", "'[\"pers' WHERE id = 2", "'[2' WHERE id = 3"))
]
READ_BY_A_RUN += [
    statement
    for statement in DAMAGES
    if "substr(spec" in statement or "checks = 'x'" in statement or "rank = 'x'" in statement
]


@pytest.mark.parametrize("statement", READ_BY_A_RUN)
async def test_a_row_that_cannot_be_read_is_named_by_whoever_reads_it(
    tmp_path, rich_file, statement
):
    path = tmp_path / "tasks.db"
    path.write_bytes(rich_file)
    damage(path, statement)
    store = await open_inline(path)
    with pytest.raises(StoreUnusableError, match=DAMAGES[statement]) as told:
        await store.objectives()
        await store.tasks(1)
    assert "store verify" in told.value.fix
    await store.close()


@pytest.mark.thorough
async def test_a_flipped_bit_anywhere_in_the_file_is_met_in_our_words(tmp_path, rich_file):
    chance, path, n_told = random.Random(5), tmp_path / "tasks.db", 0
    used = [at for at, byte in enumerate(rich_file) if byte]
    for _ in range(100):
        content = bytearray(rich_file)
        content[chance.choice(used)] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        store = None
        try:
            store = await open_inline(path)
            n_told += bool((await store.verify()).damages)
            for objective in await store.objectives():
                await store.tasks(objective.id)
                await store.events(objective.id)
                await store.claimable(objective.id)
            await store.workers()
        except StoreUnusableError:
            n_told += 1
        finally:
            with suppress(StoreUnusableError):
                await store.close() if store else None
        for left in tmp_path.iterdir():
            left.unlink()
    assert n_told > 50


async def test_a_column_whose_name_was_damaged_is_met_in_our_words(tmp_path, rich_file):
    path = tmp_path / "tasks.db"
    path.write_bytes(rich_file)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE vector RENAME COLUMN objective_id TO OBJECTIVE_ID")
    store = await open_inline(path)
    with pytest.raises(StoreUnusableError, match="damaged") as told:
        await store.verify()
    assert "objective_id" in told.value.why
    await store.close()


async def test_a_whole_store_has_no_damage_and_every_row_of_it_is_read(tmp_path, rich_file):
    path = tmp_path / "tasks.db"
    path.write_bytes(rich_file)
    store = await open_inline(path)
    found = await store.verify()
    with closing(sqlite3.connect(path)) as connection:
        tables = (
            "objective task task_after step result vector event duty worker worker_objective"
        ).split()
        n_rows = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables
        ]
    assert (found.damages, found.n_rows) == ((), sum(n_rows))
    assert all(n_rows)
    await store.close()


# -- an upgrade
# --------------------------------------------------------------------------------------------------

SCRIPTS = database.load_scripts("sqlite")
EVERY_NTH_STATEMENT = 1 if "LONG_TESTS" in os.environ else 2  # a process is killed before it
UPGRADE = statements_of(SCRIPTS.upgrade, is_whole=sqlite3.complete_statement)
NEWER = replace(
    SCRIPTS,
    version=SCRIPTS.version + 1,
    upgrade=f"UPDATE meta SET value = '{SCRIPTS.version + 1}' WHERE key = 'schema_version';",
)
DESCRIBED = load_described("sqlite")


def dump(path):
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


async def test_a_store_of_the_version_before_is_upgraded_when_it_is_opened_and_a_copy_is_kept(
    tmp_path,
):
    path = tmp_path / "tasks.db"
    unpack_file(path)
    before = dump(path)
    store = await open_inline(path)
    await check_nothing_lost(store, DESCRIBED)
    await store.close()
    copy = tmp_path / f"tasks.db.version-{VERSION}"
    assert dump(copy) == before
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


async def test_an_upgraded_store_has_the_same_schema_as_a_new_one(tmp_path):
    unpack_file(tmp_path / "old.db")
    for name in ("old.db", "new.db"):
        await (await open_inline(tmp_path / name)).close()
    old, new = (read_schema(tmp_path / name) for name in ("old.db", "new.db"))
    assert old == new


def read_schema(path):
    """What each piece of the schema says, by its type and name. The columns and constraints of a
    table are in no order, because ALTER TABLE puts a new column behind the constraints."""
    with closing(sqlite3.connect(path)) as connection:
        listed = "SELECT type, name, coalesce(sql, '') FROM sqlite_schema"
        said = {(kind, name): sql for kind, name, sql in connection.execute(listed)}
    return {key: sorted(parts_of(sql)) if key[0] == "table" else sql for key, sql in said.items()}


def parts_of(sql):
    body = " ".join(sql.partition("(")[2].replace("BIGINT", "INTEGER").split())
    return re.split(r" ?, (?![^(]*\))", body.rpartition(")")[0].strip())


@pytest.mark.parametrize("version", [1, VERSION - 1])
async def test_every_other_older_store_is_refused_with_the_version_that_upgrades_it(
    version, tmp_path
):
    unpack_file(tmp_path / "tasks.db")
    with closing(sqlite3.connect(tmp_path / "tasks.db")) as connection, connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(version)])
    before = dump(tmp_path / "tasks.db")
    for open_it in (open_inline, functools.partial(open_for_looking, offload=run_inline)):
        with pytest.raises(StoreUnusableError, match="older babyagi") as caught:
            await open_it(tmp_path / "tasks.db", clock=Clock())
        assert f"schema version {version}" in caught.value.why
        assert f"git checkout {database.UPGRADER}" in caught.value.fix
    assert dump(tmp_path / "tasks.db") == before


async def test_no_upgrade_runs_under_a_living_worker(tmp_path):
    path = tmp_path / "tasks.db"
    unpack_file(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE worker SET lease_us = 30, lease_until_us = ?", [from_time(Clock()()) + 30]
        )
    before = dump(path)
    with pytest.raises(StoreUnusableError, match="cannot be upgraded now") as caught:
        await open_inline(path)
    assert "stop every worker" in caught.value.fix
    assert dump(path) == before


async def test_a_newer_schema_ends_the_claiming_of_a_living_worker(tmp_path):
    path = tmp_path / "tasks.db"
    store = await open_inline(path)
    objective_id = await begin(store)
    await store.remove_worker("w")
    SqliteDatabase(path, clock=Clock(), scripts=NEWER).close()
    await join(store, make_worker("w"), objective_id)
    with pytest.raises(StoreUnusableError) as caught:
        await store.claim_task(objective_id, "w")
    assert f"version {NEWER.version}" in caught.value.why
    await store.close()
    with pytest.raises(StoreUnusableError, match="newer babyagi"):
        await open_inline(path)


@pytest.mark.parametrize("at", range(len(UPGRADE) + 1))
async def test_an_upgrade_that_fails_anywhere_leaves_the_old_file_whole(at, tmp_path):
    path = tmp_path / "tasks.db"
    unpack_file(path)
    before = dump(path)
    broken = "".join([*UPGRADE[:at], "SELECT no_such_function();", *UPGRADE[at:]])
    with pytest.raises(sqlite3.OperationalError):
        SqliteDatabase(path, clock=Clock(), scripts=replace(SCRIPTS, upgrade=broken))
    assert dump(path) == before
    store = await open_inline(path)
    await check_nothing_lost(store, DESCRIBED)
    await store.close()


def _upgrade_and_die(path, at):
    """Upgrade in a process that is killed before the statement of this number."""
    seen = []

    class Deadly(sqlite3.Connection):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.set_trace_callback(self.count)

        def count(self, statement):
            seen.append(statement)
            if len(seen) > at:
                os.kill(os.getpid(), signal.SIGKILL)

    sqlite3.connect = functools.partial(sqlite3.connect, factory=Deadly)  # type: ignore[assignment]  # in a process of its own
    SqliteDatabase(path, clock=Clock()).close()


@pytest.mark.system
async def test_an_upgrade_that_is_killed_before_any_of_its_statements_is_done_by_the_next_who_opens(
    tmp_path,
):
    unpack_file(tmp_path / "tasks.db")
    whole, context, exits = (
        (tmp_path / "tasks.db").read_bytes(),
        multiprocessing.get_context("fork"),
        [],
    )
    for at in range(0, 200, EVERY_NTH_STATEMENT):
        path = tmp_path / str(at) / "tasks.db"
        path.parent.mkdir()
        path.write_bytes(whole)
        process = context.Process(target=_upgrade_and_die, args=(path, at))
        process.start()
        process.join(300)
        exits.append(process.exitcode)
        store = await open_inline(path)
        await check_nothing_lost(store, DESCRIBED)
        await store.close()
        if process.exitcode == 0:
            break
    assert exits[-1] == 0
    assert exits.count(-signal.SIGKILL) == len(exits) - 1 > len(UPGRADE) // EVERY_NTH_STATEMENT


async def test_the_events_of_a_transaction_are_in_their_order_however_many_they_are(tmp_path):
    store = await open_inline(tmp_path / "tasks.db")
    objective_id = await begin(store)
    last_id = await store.last_event_id(objective_id)

    await store.add_tasks(objective_id, [Proposal(name=f"Task {number}") for number in range(61)])

    added = await store.events(objective_id, after_id=last_id, limit=1000)
    assert [event.data["name"] for event in added] == [f"Task {number}" for number in range(61)]
    await store.close()


# -- size
# --------------------------------------------------------------------------------------------------


LOOKED_UP = (
    "best_queued tally begun_unblocked blocked_lacking count_blockers queue_head last_finished objective "
    "unsettled_steps tasks_held_by"
).split()


# what a plan says of how its parts lie together
PARTS = (
    r"CO-ROUTINE \w+|SCAN (unblocked|unordered|recorded|h|CONSTANT ROW)|MATERIALIZE h|SCALAR SUBQUERY \d|MERGE .*|LEFT|RIGHT|"
    r"COMPOUND QUERY|LEFT-MOST SUBQUERY|UNION ALL"
)


def plan_of(database, query):
    """How SQLite goes about a query of SQL, line by line."""
    statement = database._queries[query]
    values = {
        name: "[1]" if name.endswith("_ids") else 1 for name in re.findall(r":(\w+)", statement)
    }
    return [
        str(row[3]) for row in database._open().execute("EXPLAIN QUERY PLAN " + statement, values)
    ]


@pytest.mark.thorough
async def test_claiming_among_ten_thousand_queued_uses_the_index_of_claimable_tasks(tmp_path):
    store = await open_inline(tmp_path / "tasks.db")
    objective_id = await begin(store)
    await store.add_tasks(
        objective_id,
        [
            Proposal(name=f"Task {number}", after=(1,) if number % 2 else ())
            for number in range(10_000)
        ],
    )
    database = store._database
    for query in LOOKED_UP:
        plan = [line for line in plan_of(database, query) if not re.fullmatch(PARTS, line)]
        assert all(re.search(r"USING .*(INDEX|PRIMARY KEY)", line) for line in plan), (query, plan)
        assert not any("TEMP B-TREE" in line or line.startswith("SCAN step") for line in plan), (
            query,
            plan,
        )
    for query, n_ready in (("best_queued", 1), ("tally", 1), ("begun_unblocked", 1)):
        plan = plan_of(database, query)
        assert sum("task_ready" in line for line in plan) == n_ready, plan
        assert not any(line.endswith("task_1 (objective_id=?)") for line in plan), plan
    for query in ("count_blockers", "ranks", "task", "some_tasks"):
        assert any("(objective_id=? AND id=?)" in line for line in plan_of(database, query)), (
            plan_of(database, query)
        )
    first, _ = await finish_one(store, objective_id)
    second = await store.claim_task(objective_id, "w")
    assert (first, second.task.id) == (1, 2)
    await store.close()


@pytest.mark.parametrize("query", ["alike", "blockers", "tasks_page", "changed_names"])
async def test_what_planning_looks_up_is_found_by_an_index_without_going_through_all_tasks(
    tmp_path, query
):
    store = await open_inline(tmp_path / "tasks.db")
    plan = plan_of(store._database, query)
    assert not [
        line
        for line in plan
        if (line.startswith("SCAN") and line != "SCAN told")
        or line.endswith("task_1 (objective_id=?)")
    ], plan
    await store.close()


async def test_a_restart_keeps_the_count_of_barren_tasks(tmp_path):
    path = tmp_path / "tasks.db"
    store = await open_inline(path)
    objective_id = await begin(store, *(f"T{n}" for n in range(9)))
    for _ in range(5):
        claim = await store.claim_task(objective_id, "w")
        await store.record_result(claim, text="r", origins=[])
        await plan_from(store, objective_id, repeats=(claim.task.id,))
        await store.close()
        store = await open_inline(path)
    assert await store.claim_task(objective_id, "w") is None
    assert (await store.end_objective(objective_id)).stop_reason is StopReason.STALLED
    await store.close()


# -- several processes
# --------------------------------------------------------------------------------------------------


@pytest.mark.system
async def test_three_processes_one_of_them_killed_do_each_task_exactly_once(tmp_path):
    await do_each_task_once(tmp_path / "tasks.db")


async def test_a_write_of_another_connection_wakes_who_waits(two_stores):
    waiting, writing = two_stores
    objective_id = await begin(writing)
    last = await waiting.last_event_id(objective_id)
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(waiting.wait_for_events(objective_id, after_id=last, timeout_s=3600))
        await asyncio.sleep(0)
        await writing.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)


@pytest.mark.parametrize("n_turns", range(5))
async def test_a_wait_that_is_cancelled_as_something_is_written_ends_at_once(tmp_path, n_turns):
    store = await open_inline(tmp_path / "tasks.db")
    objective_id = await begin(store)
    last = await store.last_event_id(objective_id)
    waiting = asyncio.create_task(
        store.wait_for_events(objective_id, after_id=last + 100, timeout_s=3600)
    )
    await take_turns(20)
    await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
    await take_turns(n_turns)

    waiting.cancel()
    await take_turns(20)

    assert waiting.done()
    await store.close()


async def take_turns(n):
    """Let the event loop go round."""
    for _ in range(n):
        await asyncio.sleep(0)


@pytest.fixture
async def two_stores(tmp_path):
    """One that waits, as a worker does, and one that writes."""
    offload = ThreadOffload()
    waiting = await open_sqlite(tmp_path / "tasks.db", clock=Clock(), offload=offload)
    writing = await open_inline(tmp_path / "tasks.db")
    yield waiting, writing
    await waiting.close()
    await writing.close()
    offload.close()
    assert "taskstore-watch" not in [thread.name for thread in threading.enumerate()]


async def test_a_commit_of_another_store_ends_the_wait_for_a_change_and_ones_own_do_not(two_stores):
    waiting, writing = two_stores
    objective_id = await begin(waiting)
    await waiting.wait_for_change(timeout_s=3600)
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        wait = group.create_task(waiting.wait_for_change(timeout_s=3600))
        await waiting.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
        await asyncio.sleep(3 * LOOK_S)
        assert not wait.done()
        await writing.switch_objective(objective_id, to=ObjectiveStatus.ACTIVE)


async def test_a_waiter_is_woken_by_every_commit_even_after_an_abandoned_wait(two_stores):
    waiting, writing = two_stores
    objective_id = await begin(writing)
    await waiting.wait_for_change(timeout_s=3600)
    async with asyncio.timeout(120):
        for number in range(10):
            given_up = asyncio.create_task(waiting.wait_for_change(timeout_s=3600))
            await asyncio.wait([given_up], timeout=0.013 * number)
            await writing.append_event(objective_id, kind="said", data={})
            given_up.cancel()
            await waiting.wait_for_change(timeout_s=3600)


async def test_a_wait_for_a_change_that_is_under_way_when_the_store_is_closed_ends_at_its_timeout(
    two_stores,
):
    waiting, _ = two_stores
    wait = asyncio.create_task(waiting.wait_for_change(timeout_s=0.3))
    await asyncio.sleep(0)
    await waiting.close()
    async with asyncio.timeout(120):
        await wait


async def test_who_waits_for_events_can_be_cancelled_as_one_comes(tmp_path):
    store = await open_inline(tmp_path / "tasks.db")
    objective_id = await begin(store)
    later = await store.last_event_id(objective_id) + 2
    waiting = asyncio.create_task(
        store.wait_for_events(objective_id, after_id=later, timeout_s=3600)
    )
    await asyncio.sleep(0.01)
    await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
    waiting.cancel()
    done, _ = await asyncio.wait({waiting}, timeout=120)
    waiting.cancel()
    assert done == {waiting} and waiting.cancelled()
    await store.close()


LOOK = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(c.execute('SELECT count(*) FROM objective').fetchone()[0]); c.close()"


@pytest.mark.system
async def test_a_second_opening_in_a_process_takes_no_lock_from_the_first(tmp_path):
    path = tmp_path / "tasks.db"
    first, second = await open_inline(path), await open_inline(path)
    seen = []
    for n in range(3):
        await first.create_objective(make_spec(text=f"Know {n}"), uid=f"u{n}")
        looked = subprocess.run(
            [sys.executable, "-c", LOOK, str(path)], capture_output=True, check=True, timeout=300
        )
        seen.append(int(looked.stdout))
    await first.close()
    await second.close()

    assert seen == [1, 2, 3]
