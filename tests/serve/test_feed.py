import asyncio
import json

import pytest

from babyagi.serve.feed import BATCH, Feed
from babyagi.tasks import Event
from babyagi.taskstore.sqlite import MemoryTaskStore
from support.served import Served, serving
from support.workers import join
from tests.cli import homes, samples


def event(id_, objective_id=1):
    return Event(
        id=id_,
        objective_id=objective_id,
        task_id=None,
        kind="x.happened",
        data={},
        at=samples.START,
    )


class Overtaken(MemoryTaskStore):
    """A task store in which an event is committed after one with a later id."""

    def __init__(self):
        super().__init__(lambda: samples.START)
        self.happened = [event(1), event(3, objective_id=2)]
        self.settled = 0

    async def events(self, objective_id, *, after_id=0, limit=0, **_wanted):
        found = sorted(self.happened, key=lambda one: one.id)
        return [one for one in found if one.id > after_id][:limit]

    async def last_event_id(self, objective_id, *, older_than_s=0):
        return self.settled

    async def wait_for_change(self, *, timeout_s):
        await asyncio.sleep(timeout_s)


async def read_once(feed, after):
    """The first events that a listener gets who knows all up to that id."""
    frames = feed.listen(None, after)
    await anext(frames)
    try:
        return await anext(frames)
    finally:
        await frames.aclose()


async def test_an_event_that_was_overtaken_is_sent_as_well_and_once():
    store = Overtaken()
    store.settled = 1

    first = await read_once(Feed(store), 0)
    store.happened.append(event(2))
    store.settled = 3
    late = await read_once(Feed(store), int(ids_of(first)[-1]))

    assert [json.loads(one)["id"] for one in data_of(first) + data_of(late)] == [1, 2, 3]
    assert ids_of(late) == ["2", "3"]


def ids_of(frames):
    return [line[4:] for line in frames.decode().splitlines() if line.startswith("id: ")]


def data_of(frames):
    return [line[6:] for line in frames.decode().splitlines() if line.startswith("data: ")]


class Listener:
    """Reads events over a real connection, until it is cut, and knows where it is."""

    def __init__(self, served: Served, path: str, after: str = ""):
        self.served, self.path, self.last_id = served, path, after
        self.got: list[int] = []

    async def read(self, n: int) -> None:
        """Take `n` events on a connection of its own, then cut it."""
        head = {"last_event_id": self.last_id}
        reader, writer = await asyncio.open_connection("127.0.0.1", self.served.port)
        try:
            writer.write(self.served.request("GET", self.path, **head))
            while n:
                line = (await reader.readline()).decode().rstrip("\r\n")
                assert line or not reader.at_eof(), "the server has ended"
                if line.startswith("id: "):
                    self.last_id = line[4:]
                if line.startswith("data: "):
                    self.got.append(json.loads(line[6:])["id"])
                    n -= 1
        finally:
            writer.close()


@pytest.mark.parametrize("path", ["/api/v1/objectives/1/events", "/api/v1/events"])
async def test_who_is_cut_off_goes_on_where_it_was_with_either_of_two_servers(path, tmp_path):
    async with serving(tmp_path / "home") as one, serving(tmp_path / "home") as two:
        store = one.app.store
        objective, _ = await store.create_objective(samples.spec(), uid="u")
        known = [found.id for found in await store.events(objective.id)]
        listener = Listener(one, path, after="0")

        async def write():
            for n in range(60):
                await store.append_event(objective.id, kind="x.happened", data={"n": n})

        async with asyncio.timeout(300), asyncio.TaskGroup() as group:
            group.create_task(write())
            await listener.read(len(known) + 3)
            for n in (1, 4, 2, 20, 30):
                listener.served = two if listener.served is one else one
                await listener.read(n)

        assert listener.got == [found.id for found in await store.events(objective.id)]


async def test_events_that_another_process_commits_are_sent_at_once(tmp_path):
    async with serving(tmp_path / "home") as served:
        objective, _ = await served.app.store.create_objective(samples.spec(), uid="u")
        listener = Listener(served, f"/api/v1/objectives/{objective.id}/events")
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            group.create_task(listener.read(1))
            while not served.desk.feed.n_listeners:
                await asyncio.sleep(0.01)
            await join(served.app.store, homes.WORKER, objective.id)
        assert len(listener.got) == 1


async def test_more_than_a_batch_is_sent_in_order(served):
    store = served.app.store
    objective, _ = await store.create_objective(samples.spec(), uid="u")
    for _ in range(BATCH + 50):
        await store.append_event(objective.id, kind="x.happened", data={})
    for path in ("/api/v1/objectives/1/events", "/api/v1/events"):
        listener = Listener(served, path, after="0")
        async with asyncio.timeout(300):
            await listener.read(BATCH + 50)
        assert listener.got == sorted(set(listener.got))
        assert len(listener.got) == BATCH + 50


async def test_the_events_of_an_objective_that_is_deleted_end(served):
    store = served.app.store
    objective, _ = await store.create_objective(samples.spec(), uid="u")
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    try:
        writer.write(served.request("GET", f"/api/v1/objectives/{objective.id}/events"))
        async with asyncio.timeout(120):
            while not served.desk.feed.n_listeners:
                await asyncio.sleep(0.01)
            await store.delete_objective(objective.id)
            assert b"event: gone" in await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("said", ["x", "1;2", "1.2-3", "-1", "9" * 17])
async def test_what_is_no_id_of_an_event_of_the_objective_is_refused(said, served):
    await served.app.store.create_objective(samples.spec(), uid="u")

    reply = await served.ask("GET", "/api/v1/objectives/1/events", last_event_id=said)

    assert reply.status == 422
