import asyncio
from collections.abc import Sequence

from babyagi.cli.run import Follower, LoggedView
from babyagi.cli.views import PlainView
from babyagi.tasks import Event
from tests.cli import homes


class Collecting:
    """A view that keeps what it is given."""

    tick_s = 0.05
    pause_s = 0.0

    def __init__(self):
        self.pending: Sequence[Event] = ()
        self.shown: list[int] = []

    async def fetch(self, events):
        await asyncio.sleep(0)
        self.pending = events

    def draw(self):
        self.shown += [event.id for event in self.pending]
        self.pending = ()

    def close(self):
        pass


async def all_ids(store, objective_id):
    return [event.id for event in await store.events(objective_id)]


async def test_every_event_is_shown_once_and_in_order_however_often_the_follower_is_cut_off(
    store, objective
):
    view = Collecting()
    follower = Follower(store, objective.id, view)

    for n in range(8):
        following = asyncio.create_task(follower.follow())
        await store.append_event(objective.id, kind="order.applied", data={"n": n})
        await asyncio.sleep(0.003 * n)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    await follower.drain()

    assert view.shown == await all_ids(store, objective.id)


async def test_a_follower_that_starts_late_shows_only_what_comes(store, objective):
    view = Collecting()
    after_id = await store.last_event_id(objective.id)
    follower = Follower(store, objective.id, view, after_id=after_id)

    await homes.finish_a_task(store, objective.id)
    await follower.drain()

    assert view.shown == [
        event_id for event_id in await all_ids(store, objective.id) if event_id > after_id
    ]


async def test_a_plain_view_says_one_line_for_each_finished_task(store, objective, capsys):
    await homes.finish_a_task(store, objective.id)

    await Follower(store, objective.id, PlainView(store)).drain()

    lines = [line.split(" ", 1)[1] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        f"objective {objective.id} created",
        "task 1 done: Read the documents (2 new) → limits.md:3 says fifty tasks. · $0.0000",
    ]


async def test_each_change_of_state_is_one_record_in_the_log(store, objective, caplog):
    caplog.set_level("INFO", logger="babyagi")
    await homes.finish_a_task(store, objective.id)

    await Follower(store, objective.id, LoggedView(Collecting())).drain()

    done = [record for record in caplog.records if record.__dict__.get("event") == "task.done"]
    assert [(record.levelname, record.__dict__["task_id"]) for record in done] == [("INFO", 1)]
