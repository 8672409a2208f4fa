"""The thread that looks at SQLite's write-ahead log."""

import asyncio
import queue

import pytest

from babyagi.offload import ThreadOffload, run_inline
from babyagi.taskstore.sqlite import LOOK_S, FileWatch, open_sqlite
from tests.taskstore.contract import Clock, begin


def test_a_change_is_said_and_once_more_at_the_next_look_because_a_second_commit_may_leave_the_same_sign(
    tmp_path,
):
    said: queue.Queue[None] = queue.Queue()
    path = tmp_path / "tasks.db-wal"
    watch = FileWatch(path, on_sign=lambda: said.put(None))
    said.get(timeout=5)  # nobody knows what came before
    with pytest.raises(queue.Empty):
        said.get(timeout=3 * LOOK_S)

    (tmp_path / "written").write_bytes(b"a commit")
    (tmp_path / "written").rename(path)  # a file that is made and then written is two changes

    said.get(timeout=5)
    said.get(timeout=5)
    with pytest.raises(queue.Empty):
        said.get(timeout=3 * LOOK_S)
    watch.close()
    watch.close()


def test_a_store_outlives_the_event_loop_that_waited_in_it(tmp_path):
    offload = ThreadOffload()

    async def wait():
        store = await open_sqlite(tmp_path / "tasks.db", clock=Clock(), offload=offload)
        await store.wait_for_change(timeout_s=60)
        return store

    async def commit():
        store = await open_sqlite(tmp_path / "tasks.db", clock=Clock(), offload=run_inline)
        await begin(store)
        await asyncio.sleep(3 * LOOK_S)
        await store.close()

    store = asyncio.run(wait())
    asyncio.run(commit())

    asyncio.run(store.close())
    offload.close()
