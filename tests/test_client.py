"""One client, two ways: what a program does with a home, and with a server, is the same."""

import asyncio
import dataclasses
import inspect
import typing
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
import typing_extensions

from babyagi import Client, client, errors
from babyagi.errors import (
    CredentialsError,
    LimitReachedError,
    NotFoundError,
    RequestError,
    SettingsError,
    StoreUnavailableError,
    find_fix,
)
from babyagi.tasks import Level, ObjectiveStatus, StopReason, TaskStatus
from babyagi.verbs.verb_table import VERBS
from support.served import serving
from tests.cli import homes, looked_at


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name, value in {
        "BABYAGI_HOME": str(tmp_path / "home"),
        "BABYAGI_RESULT_STORE": "builtin",
        "BABYAGI_EMBEDDING_MODEL": "hash",
        "LLM_MODEL": "rehearsal",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@asynccontextmanager
async def opened(way, home):
    if way == "home":
        async with Client(home=home) as found:
            yield found
        return
    async with serving(home) as served, Client(url=served.url, token=served.token()) as found:
        yield found


@pytest_asyncio.fixture(params=["home", "url"])
async def fresh(request, home):
    """A client of a store without an objective."""
    async with opened(request.param, home) as found:
        yield found


@pytest_asyncio.fixture(params=["home", "url"])
async def running(request, home):
    """A client of a store with an objective in the midst of its work."""
    await asyncio.to_thread(looked_at.fill_running_home)
    async with opened(request.param, home) as found:
        yield found


@pytest_asyncio.fixture(params=["home", "url"])
async def ended(request, home):
    """A client of a store with an objective that has its report."""
    await asyncio.to_thread(looked_at.fill_ended_home)
    async with opened(request.param, home) as found:
        yield found


# -- both ways
# --------------------------------------------------------------------------------------------------


async def test_what_is_submitted_is_there_with_its_limits(fresh):
    made = await fresh.submit("Look after the tea", first_task="Boil", max_tasks=7)

    found = await fresh.status(made.objective_id)
    (listed,) = await fresh.list_objectives()
    assert (made.is_new, made.status) == (True, ObjectiveStatus.ACTIVE)
    assert (found.objective.text, found.limits.max_tasks) == ("Look after the tea", 7)
    assert (listed.uid, listed.tasks.queued) == (made.uid, 1)
    assert listed.created_at.utcoffset() is not None
    assert await fresh.status("latest") == await fresh.status(made.objective_id)


async def test_a_submission_with_a_key_is_made_once(fresh):
    first, again = [await fresh.submit("Know it", key="k1", new=True) for _ in range(2)]

    assert first == again
    assert len(await fresh.list_objectives()) == 1
    with pytest.raises(SettingsError):
        await fresh.submit("Know more", key="k1", new=True)


async def test_an_objective_is_paused_resumed_extended_and_cancelled(running):
    assert (await running.pause(1)).status is ObjectiveStatus.PAUSED
    assert (await running.resume(1)).status is ObjectiveStatus.ACTIVE
    assert (await running.extend(1, max_cost_usd=2.5)).limits.max_cost_usd == 2.5
    assert (await running.cancel(1)).stop_reason is StopReason.CANCELLED


async def test_tasks_are_added_moved_edited_skipped_and_tried_again(running):
    added = await running.add_task(1, "Sing", after=[4])
    moved = await running.move_task(1, added.task.id, to="first")
    edited = await running.edit_task(1, added.task.id, "Dance")
    skipped = await running.skip_task(1, edited.task.id)
    retried = await running.retry_task(1, 5)

    assert (added.task.name, added.task.after) == ("Sing", (4,))
    assert moved.task.id == added.task.id
    assert edited.replaced_task_id == added.task.id
    assert skipped.task.status is TaskStatus.CANCELLED
    assert (retried.task.id, retried.is_reopened) == (5, False)
    assert "Dance" in [one.name for one in await running.list_tasks(1, status=["cancelled"])]


async def test_a_request_of_a_task_is_answered(running):
    (asked,) = await running.inbox()
    with pytest.raises(RequestError) as unseen:
        await running.approve(asked.number, seen="what nobody was shown")
    assert unseen.value.status == 409
    decided = await running.answer(asked.number, "Euros", key="k")

    assert (decided.task_id, decided) == (
        asked.task_id,
        await running.answer(asked.number, "Euros", key="k"),
    )
    assert await running.inbox(objective=1) == []


async def test_what_is_known_is_looked_at(running):
    shown = await running.show_task(1, 1)
    results = await running.list_results(1, limit=1)

    assert shown.task == dataclasses.replace(shown.task, id=1)
    assert shown.result is not None and shown.result == results[0]
    assert shown.steps and shown.steps[0].parts
    assert (await running.show_duty(1, "plan")).duty == "plan"
    assert (await running.search(1, "limits", k=1)).hits
    assert shown.why is not None and shown.why.says
    assert (await running.status("latest")).why.says
    assert [one.id for one in await running.list_tasks(1, after=1, limit=1)] != [1]
    assert [one.name for one in await running.workers()]


async def test_a_report_is_read_and_a_further_question_asked(ended):
    report = await ended.report(1)
    asked = await ended.ask_further(1, "And the tax?", max_tasks=100)

    assert report.markdown == homes.REPORT
    assert (asked.status, asked.objective.further) == (ObjectiveStatus.ACTIVE, ("And the tax?",))


async def test_a_schedule_is_added_paused_and_removed(fresh):
    made = (await fresh.add_schedule("Look after the tea", every="1h", max_cost_usd=1.0)).schedule

    assert (await fresh.pause_schedule(made.id)).schedule.status == "paused"
    assert (await fresh.resume_schedule(made.id)).schedule.status == "active"
    assert (await fresh.show_schedule(made.id)).ticks == ()
    assert (await fresh.remove_schedule(made.id)).schedule.status == "removed"
    assert await fresh.list_schedules() == []


async def test_events_come_as_they_happen_and_after_the_last_that_is_known(running):
    known = await running.log(1)
    stream = running.events(1, after=known[0].id)

    told = [await anext(stream) for _ in known[1:]]
    await running.pause(1)
    last = await anext(stream)
    await stream.aclose()

    assert told == known[1:]
    assert last.kind == "objective.paused"


async def test_the_events_of_what_was_deleted_end_with_an_error(ended):
    stream = ended.events(1, after=(await ended.log(1))[-2].id)
    await anext(stream)

    await ended.delete(1)

    with pytest.raises(NotFoundError):
        await anext(stream)


# -- errors
# --------------------------------------------------------------------------------------------------


FAULTS: tuple[tuple[Any, type[errors.BabyagiError]], ...] = (
    (lambda it: it.status(99), NotFoundError),
    (lambda it: it.status("1/tasks"), NotFoundError),
    (lambda it: it.show_task(1, 99), NotFoundError),
    (lambda it: it.retry_task(1, 1), SettingsError),
    (lambda it: it.extend(1), RequestError),
    (lambda it: it.add_task(1, "x" * 100_001), RequestError),
    (lambda it: it.add_task(1, 7), RequestError),
    (lambda it: it.extend(1, max_tasks=2**60), RequestError),
    (lambda it: it.submit("x", max_task=1), RequestError),
    (lambda it: it.list_tasks(1, status=["odd"]), RequestError),
    (lambda it: it.submit("x", files="/etc"), SettingsError),
    (lambda it: anext(it.events(99)), NotFoundError),
)


async def test_an_error_is_one_of_ours(running):
    for ask, kind in FAULTS:
        with pytest.raises(kind) as caught:
            await ask(running)

        assert type(caught.value) is kind
        assert caught.value.what


async def test_both_ways_say_the_same_of_an_error(home):
    said = []
    for way in ("url", "home"):
        async with opened(way, home) as it:
            with pytest.raises(NotFoundError) as caught:
                await it.status(99)
            with pytest.raises(RequestError) as wrong:
                await it.list_objectives(limit=0)
        error = caught.value
        said += [(error.what, error.why, find_fix(error), wrong.value.what, wrong.value.status)]

    assert said[0] == said[1]


async def test_a_client_makes_a_home_only_for_what_it_adds(home):
    async with Client(home=home) as it:
        assert await it.list_objectives() == []
        with pytest.raises(NotFoundError, match="there is no objective yet"):
            await it.pause(1)
        assert not home.exists()

        made = await it.submit("Compare the licences")

        assert (await it.status(made.objective_id)).objective.id == made.objective_id


async def test_a_limit_that_is_used_up_is_named(ended):
    with pytest.raises(LimitReachedError) as caught:
        await ended.add_task(1, "Sing")

    assert (caught.value.limit, caught.value.is_final) == ("tasks", True)
    assert "extend" in caught.value.fix


async def test_a_wrong_key_and_one_of_a_low_level_are_refused(home):
    async with serving(home) as served:
        for token, what in (("wrong", "token"), (served.token(Level.READ), "level")):
            async with Client(url=served.url, token=token) as it:
                with pytest.raises(CredentialsError, match=what):
                    await it.submit("Know it")


async def test_a_server_that_is_not_there_is_named_with_what_starts_one():
    async with Client(url="http://127.0.0.1:9", token="t") as it:
        with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1:9") as caught:
            await it.workers()

    assert "babyagi serve" in caught.value.fix


async def test_a_client_is_used_within_its_block(home):
    with pytest.raises(RuntimeError, match="async with"):
        await Client(home=home).workers()


@pytest.mark.parametrize(
    "given", [{"url": "x", "home": "y"}, {"token": "t"}, {"max_task": 3}, {"uri": "x"}]
)
def test_what_does_not_go_together_is_refused(given):
    with pytest.raises(TypeError):
        Client(**given)


def test_every_error_has_a_name_of_its_own_in_the_api():
    kinds = {errors.kind_of(kind): kind for kind in errors.by_kind().values()}

    assert kinds == errors.by_kind()
    assert kinds["not-found"] is NotFoundError


# -- the methods and the table
# --------------------------------------------------------------------------------------------------

OF_A_SERVER = {"metrics": "text for Prometheus", "events": "the places of its ids are a server's"}
STREAM = "objectives_objective_events"
LEFT_OUT = {"report": {"format"}}  # a client has the Markdown within the answer
EMPTY = {inspect.Parameter.empty, None, ""}


def methods():
    return {
        name: one
        for name, one in vars(Client).items()
        if callable(one) and not name.startswith("_")
    }


def defaults_of(given):
    if typing_extensions.is_typeddict(given):
        return dict.fromkeys(given.__annotations__, dataclasses.MISSING)
    return {one.name: one.default for one in dataclasses.fields(given)}


def test_every_verb_has_a_method_and_every_method_a_verb():
    verbs = {verb.name for verb in VERBS} - OF_A_SERVER.keys()

    assert verbs - {STREAM} | {"events"} == methods().keys()


@pytest.mark.parametrize(
    "verb",
    [verb for verb in VERBS if verb.name not in OF_A_SERVER and verb.run],
    ids=lambda verb: verb.name,
)
def test_a_method_takes_and_returns_what_the_table_says(verb):
    method = methods()[verb.name]
    known = {**vars(client), **vars(typing)}
    signature = inspect.signature(method, globals=known, eval_str=True)
    taken = dict[str, Any]()
    for one in list(signature.parameters.values())[1:]:
        options = typing.get_args(one.annotation) if one.kind is one.VAR_KEYWORD else ()
        for kind in options:
            taken |= dict.fromkeys(typing.get_type_hints(kind, known), inspect.Parameter.empty)
        taken |= {one.name: one.default} if not options else {}

    in_path = set(verb.path.replace("}", "{").split("{")[1::2])
    fields = defaults_of(verb.given)
    for name in LEFT_OUT.get(verb.name, ()):
        del fields[name]
    assert taken.keys() == in_path | fields.keys() | ({"key"} if verb.takes_key else set())
    for name, default in fields.items():
        given = taken[name]
        wanted = inspect.Parameter.empty if default is dataclasses.MISSING else default
        assert given == wanted or given in EMPTY, name
    assert signature.return_annotation == verb.returns
    assert (method.__doc__ or "").strip()
