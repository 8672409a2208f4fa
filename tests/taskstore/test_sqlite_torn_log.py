"""A log that was cut anywhere: what a machine leaves behind that lost its power while the file was
written."""

import sqlite3
from contextlib import closing

import pytest

from babyagi.runtime.offload import run_inline
from babyagi.taskstore.nouns import Intention, Outcome
from babyagi.taskstore.sqlite import open_sqlite
from tests.taskstore.contract import CALL, SPENT, Clock, begin, plan_from

SECTOR_BYTES = 512


async def leave_a_log(folder):
    """Some work on a list, whose log nobody has folded into the file. Returns the bytes of both
    files."""
    store = await open_sqlite(folder / "tasks.db", clock=Clock(), offload=run_inline)
    await store.close()  # the tables are in the file, and not in the log
    store = await open_sqlite(folder / "tasks.db", clock=Clock(), offload=run_inline)
    objective_id = await begin(store, *[f"Task {number}" for number in range(2)])
    for _ in range(2):
        claim = await store.claim_task(objective_id, "w")
        assert claim is not None
        await store.intend_step(
            claim.fence,
            intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL),
        )
        await store.record_step(claim.fence, Outcome(key="k", output='"said"' * 100, usage=SPENT))
        await store.record_result(claim, text="found " * 200, origins=["model:m"])
        await plan_from(store, objective_id)
    left = [(folder / name).read_bytes() for name in ("tasks.db", "tasks.db-wal")]
    await store.close()
    return left


def read_events(path):
    """Every event of the file; nothing in it is half."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        events = db.execute("SELECT id, kind, task_id, data FROM event ORDER BY id").fetchall()
        (n_results,) = db.execute("SELECT count(*) FROM result").fetchone()
        (n_counted,) = db.execute("SELECT coalesce(sum(calls), 0) FROM objective").fetchone()
    kinds = [kind for _, kind, _, _ in events]
    assert (n_results, n_counted) == (kinds.count("task.recorded"), kinds.count("step.recorded"))
    return events


def open_cut(folder, main, log):
    (folder / "tasks.db").write_bytes(main)
    (folder / "tasks.db-wal").write_bytes(log)
    return read_events(folder / "tasks.db")


async def open_by_the_program(path):
    store = await open_sqlite(path, clock=Clock(), offload=run_inline)
    assert (await store.verify()).damages == ()
    await store.close()


@pytest.mark.thorough
async def test_a_log_that_was_cut_anywhere_opens_and_holds_the_first_of_the_commits(tmp_path):
    (tmp_path / "whole").mkdir()
    main, log = await leave_a_log(tmp_path / "whole")
    whole = open_cut(tmp_path, main, log)
    seen: set[int] = set()
    for n, length in enumerate([*range(0, len(log), SECTOR_BYTES), len(log)]):
        events = open_cut(tmp_path, main, log[:length])
        if n % 50 == 0:
            open_cut(tmp_path, main, log[:length])
            await open_by_the_program(tmp_path / "tasks.db")
        assert events == whole[: len(events)]
        assert len(events) >= max(seen, default=0)
        seen.add(len(events))
    assert {0, len(whole)} <= seen and len(seen) > 10, seen


async def test_a_log_whose_last_sectors_are_not_what_was_written_holds_the_commits_before_them(
    tmp_path,
):
    (tmp_path / "whole").mkdir()
    main, log = await leave_a_log(tmp_path / "whole")
    whole = open_cut(tmp_path, main, log)
    seen: set[int] = set()
    for length in range(SECTOR_BYTES, len(log), 16 * SECTOR_BYTES):
        torn = log[:length] + b"\xa5" * SECTOR_BYTES + log[length + SECTOR_BYTES :]
        events = open_cut(tmp_path, main, torn)
        assert events == whole[: len(events)]
        seen.add(len(events))
    assert {0} <= seen and max(seen) < len(whole) and len(seen) > 5, seen
