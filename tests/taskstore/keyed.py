"""The promises about requests with a key, one test each, as part of the contract of every task store."""

import asyncio
from contextlib import suppress
from functools import partial

import pytest

from babyagi.errors import NotFoundError, SettingsError
from babyagi.tasks import ObjectiveStatus, Proposal, Worker
from babyagi.taskstore.nouns import KEY_AGE_S, KeyedRequest
from tests.taskstore.schedules import BEGINS, make_schedule

REQUEST = KeyedRequest(key="k1", content="c1")
OTHER = KeyedRequest(key="k2", content="c1")
SPEC = make_schedule().objective


async def add_objective(store, uid="u1"):
    objective, _ = await store.create_objective(SPEC, uid=uid, always_new=True)
    return objective.id


class Killed(Exception):
    """The process ends before the answer is kept."""


async def carry_out(store, request, write):
    """Carry the request out in a process that is killed then; return what its write made."""
    made = []

    async def make(_made, _is_repeated):
        made.append(await write())
        raise Killed

    with suppress(Killed):
        await store.carry_out(request, make)
    return made[0]


async def answer(store, request, text):
    """Carry out a request that writes nothing and is answered so; return the kept answer."""

    async def make(_made, _is_repeated):
        return text, None

    return await store.carry_out(request, make)


async def find_earlier(store, request):
    """What a process that carries the request out is told of an earlier one."""
    told: list[object] = []

    async def make(made, is_repeated):
        told.extend((made, is_repeated))
        raise Killed

    with suppress(Killed):
        await store.carry_out(request, make)
    return told


async def ask(store, objective_id):
    """Let a task wait for a person, and return its step."""
    worker = Worker(id="w", name="w", host="here", pid=1, lease_until=BEGINS)
    await store.register_worker(worker, lease_s=30)
    await store.join_objective("w", objective_id)
    claim = await store.claim_task(objective_id, "w")
    return await store.park_task(claim.fence, key="1/q", kind="question", request="{}")


class KeyContract:
    async def test_what_is_sent_again_before_it_was_answered_is_done_once_and_gives_the_same(
        self, store
    ):
        objective_id = await add_objective(store)
        add = partial(store.add_tasks, objective_id, [Proposal(name="Sing")])

        first = await carry_out(store, REQUEST, add)
        again = await carry_out(store, REQUEST, add)
        other = await carry_out(store, OTHER, add)

        assert again == first != other
        assert len(await store.tasks(objective_id)) == 3

    async def test_what_is_sent_many_times_at_once_is_done_once(self, store):
        objective_id = await add_objective(store)
        add = partial(store.add_tasks, objective_id, [Proposal(name="Sing")])

        made = await asyncio.gather(*(carry_out(store, REQUEST, add) for _ in range(4)))

        assert len({added[0].id for added in made}) == 1
        assert len(await store.tasks(objective_id)) == 2

    async def test_whatever_a_request_makes_is_found_again(self, store):
        objective_id = await add_objective(store)
        step = await ask(store, objective_id)
        writes = (
            partial(store.create_objective, SPEC, uid="u2", always_new=True),
            partial(store.switch_objective, objective_id, to=ObjectiveStatus.PAUSED),
            partial(store.add_schedule, make_schedule(), uid="s1"),
            partial(store.answer_step, step.id, output="{}"),
            partial(store.cancel_task, objective_id, 1),
        )
        for number, write in enumerate(writes):
            request = KeyedRequest(key=str(number), content="")
            made = await carry_out(store, request, write)

            assert await carry_out(store, request, write) == made
            assert await find_earlier(store, request) == [made, True]

    async def test_only_the_first_write_of_a_request_has_its_key(self, store):
        objective_id = await add_objective(store)

        async def add_both():
            await store.add_tasks(objective_id, [Proposal(name="Sing")])
            await store.append_event(objective_id, kind="told", data={})
            return len(await store.tasks(objective_id))

        assert [await carry_out(store, REQUEST, add_both) for _ in range(2)] == [2, 2]

    async def test_the_first_answer_is_kept_and_given_again(self, store):
        assert await find_earlier(store, REQUEST) == [None, False]

        kept = [await answer(store, REQUEST, text) for text in ('"a"', '"b"')]

        assert kept == ['"a"', '"a"']

    async def test_of_two_that_are_answered_at_once_the_first_answer_is_kept(self, store):
        async def make(_made, _is_repeated):
            return await answer(store, REQUEST, '"a"') and '"b"', None

        assert await store.carry_out(REQUEST, make) == '"a"'

    async def test_a_request_that_failed_leaves_its_key_free(self, store):
        objective_id = await add_objective(store)
        with pytest.raises(NotFoundError):
            await carry_out(store, REQUEST, partial(store.cancel_task, objective_id, 9))

        assert await find_earlier(store, REQUEST) == [None, False]

    async def test_a_key_holds_for_one_request_alone(self, store):
        objective_id = await add_objective(store)
        add = partial(store.add_tasks, objective_id, [Proposal(name="Sing")])
        await carry_out(store, REQUEST, add)
        wrong = KeyedRequest(key=REQUEST.key, content="c2")

        with pytest.raises(SettingsError, match="different request"):
            await carry_out(store, wrong, add)
        assert len(await store.tasks(objective_id)) == 2

    async def test_keys_are_forgotten_after_a_day(self, store, clock):
        await answer(store, REQUEST, '"a"')
        clock.tick(KEY_AGE_S - 1)
        await answer(store, OTHER, '"b"')
        assert await answer(store, REQUEST, '"c"') == '"a"'
        clock.tick(2)
        await answer(store, KeyedRequest(key="k3", content="c1"), '"c"')

        assert await answer(store, REQUEST, '"c"') == '"c"'

    async def test_with_an_objective_the_answers_about_it_go_and_nothing_makes_it_anew(self, store):
        create = partial(store.create_objective, SPEC, uid="u1", always_new=True)
        created, _ = await carry_out(store, REQUEST, create)
        await answer(store, REQUEST, '"its text"')

        await store.delete_objective(created.id)

        with pytest.raises(NotFoundError):
            await carry_out(store, REQUEST, create)
        assert await store.objectives() == []

    async def test_a_key_that_cannot_be_read_is_named_as_damage(self, store):
        await answer(store, REQUEST, "{")

        assert (await store.verify()).damages == ("the request with the key k1",)
