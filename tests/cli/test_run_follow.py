import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import pytest

from babyagi import events
from babyagi.app.application import RunOutcome
from babyagi.cli.report import Output
from babyagi.cli.run import work_on
from babyagi.cli.views import PlainView, View
from babyagi.errors import CredentialsError
from babyagi.tasks import Event, StopReason
from tests.cli import homes


@dataclass(eq=False, kw_only=True)
class Collecting(View):
    """A view that keeps what it is given."""

    tick_s: ClassVar = 0.05
    pause_s: ClassVar = 0.0
    pending: Sequence[Event] = ()
    shown: list[int] = field(default_factory=list)

    async def fetch(self, events):
        await asyncio.sleep(0)
        self.pending = events

    def draw(self):
        self.shown += [event.id for event in self.pending]
        self.pending = ()


async def all_ids(store, objective_id):
    return [event.id for event in await store.events(objective_id)]


async def test_every_event_is_shown_once_and_in_order_however_often_the_view_is_cut_off(
    store, objective
):
    view = Collecting(store=store, objective_id=objective.id)

    for n in range(8):
        following = asyncio.create_task(view.follow())
        await store.append_event(objective.id, kind="order.applied", data={"n": n})
        await asyncio.sleep(0.003 * n)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    await view.drain()

    assert view.shown == await all_ids(store, objective.id)


async def test_a_view_that_starts_late_shows_only_what_comes(store, objective):
    after_id = await store.last_event_id(objective.id)
    view = Collecting(store=store, objective_id=objective.id, after_id=after_id)

    await homes.finish_a_task(store, objective.id)
    await view.drain()

    assert view.shown == [
        event_id for event_id in await all_ids(store, objective.id) if event_id > after_id
    ]


async def test_a_plain_view_says_one_line_for_each_finished_task(store, objective, capsys):
    await homes.finish_a_task(store, objective.id)

    await PlainView(store=store, objective_id=objective.id).drain()

    lines = [line.split(" ", 1)[1] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        f"objective {objective.id} created",
        "task 1 done: Read the documents (2 new) → limits.md:3 says fifty tasks. · $0.0000",
    ]


async def test_each_change_of_state_is_one_record_in_the_log(store, objective, caplog):
    caplog.set_level("INFO", logger="babyagi")
    await homes.finish_a_task(store, objective.id)

    await Collecting(store=store, objective_id=objective.id, is_logged=True).drain()

    done = [record for record in caplog.records if record.__dict__.get("event") == "task.done"]
    assert [(record.levelname, record.__dict__["task_id"]) for record in done] == [("INFO", 1)]


class Working:
    """An app whose work goes on after the report, as while the result store is fed."""

    def __init__(self, store, *, rest=None):
        self.store, self.settings = store, None
        self._rest = rest

    async def run(self, objective, _company, *, after_id):
        await homes.end(self.store, objective.id, StopReason.FINISHED)
        if self._rest is not None:
            await self._rest()
        return RunOutcome(objective=await self.store.objective(objective.id), stopped_by_signal=2)


async def work(app, objective, *, as_json=False):
    async def find(_app):
        return objective, None

    async with asyncio.timeout(120):
        opening = contextlib.nullcontext(cast(Any, app))
        return await work_on(opening, find, output=Output(as_json=as_json))


async def test_a_report_is_printed_while_the_result_store_is_still_fed(store, objective, capsys):
    said: list[str] = []

    async def feed():
        while "limits.md:3 says so." not in "".join(said):
            await asyncio.sleep(0.01)
            said.append(capsys.readouterr().out)
        data = {"reason": "nobody listens", "why": "", "fix": ""}
        await store.append_event(objective.id, kind=events.INDEX_UNAVAILABLE, data=data)

    assert await work(Working(store, rest=feed), objective) == 0

    told = capsys.readouterr().err
    assert "nobody listens" in told and "babyagi store rebuild --objective 1" in told


@pytest.mark.parametrize("as_json", [False, True])
async def test_where_a_refused_key_ends_the_work_it_is_said_how_to_go_on(
    store, objective, capsys, as_json
):
    class Refused(Working):
        async def run(self, objective, _company, *, after_id):
            await homes.finish_a_task(self.store, objective.id)
            raise CredentialsError("the key is refused")

    with pytest.raises(CredentialsError):
        await work(Refused(store), objective, as_json=as_json)

    said = capsys.readouterr()
    assert "So far:     babyagi report --objective 1" in said.err
    assert "To go on:   babyagi resume --objective 1" in said.err
    if as_json:
        outcome = json.loads(said.out.splitlines()[-1])["outcome"]
        assert (outcome["exit_code"], len(outcome["results"])) == (4, 1)


async def test_work_that_ends_with_the_report_is_followed_to_its_end(store, objective, capsys):
    assert await work(Working(store), objective) == 0

    said = capsys.readouterr()
    assert "limits.md:3 says so." in said.out and "no further task starts" in said.err


async def test_a_signal_before_the_report_has_its_own_exit_code(store, objective, capsys):
    class Stopped(Working):
        async def run(self, objective, _company, *, after_id):
            return RunOutcome(objective=objective, stopped_by_signal=15)

    assert await work(Stopped(store), objective) == 143
    assert capsys.readouterr().out == ""
