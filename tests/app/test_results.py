"""What a person does with the results of one objective, while workers are at work on it."""

import asyncio
from typing import Any

import pytest

from babyagi.app.application import Results
from babyagi.errors import IndexUnavailableError, ModelRejectedError
from babyagi.index.builtin import BuiltinIndex
from babyagi.index.hashing import HashEmbedder
from babyagi.index.indexer import Indexer, collection_of
from babyagi.journal import Backends, Gate
from babyagi.tasks import Worker
from babyagi.taskstore.sqlite import MemoryTaskStore
from support.virtual import VirtualClock, virtually
from tests.index.library import (
    START,
    TEXTS,
    Embedding,
    LaggingIndex,
    fill_library,
    make_busy,
    open_library,
    vectors_of,
)


async def test_what_a_worker_ticks_off_just_before_a_rebuild_drops_the_collection_is_fed_again():
    store, objective = await open_library()
    index, task_ids = LaggingIndex(), await store.result_ids(objective.id)
    await Indexer(store, index, objective=objective, sleep=index.catch_up).run_once(
        embed=Embedding()
    )
    await index.catch_up(0)  # so that what is dropped is still seen for a while

    async def tick_off():
        await store.mark_indexed(objective.id, task_ids=task_ids[:5])

    busy: Any = make_busy(store, method="claim_duty", work=tick_off)
    backends = Backends(
        store=busy, models={}, embedder=HashEmbedder(), gate=Gate(), sleep=index.catch_up
    )
    identity = Worker(id="me", name="me", host="here", pid=2, lease_until=START)

    await Results(backends, index, objective=objective, identity=identity, lease_s=60).rebuild(
        lambda n_done, n_all: None
    )

    assert len(await BuiltinIndex.ids(index, collection_of(objective))) == len(TEXTS)


async def test_a_rebuild_never_puts_vectors_of_another_space_beside_those_of_the_objective():
    store, objective = await open_library()
    backends = Backends(
        store=store,
        models={},
        embedder=HashEmbedder(64),
        gate=Gate(),
        sleep=LaggingIndex().catch_up,
    )
    identity = Worker(id="me", name="me", host="here", pid=2, lease_until=START)
    results = Results(backends, BuiltinIndex(), objective=objective, identity=identity, lease_s=60)

    with pytest.raises(
        IndexUnavailableError,
        match="embedded as hash:v1:768, and this process embeds as hash:v1:64",
    ):
        await results.rebuild(lambda n_done, n_all: None)

    assert await vectors_of(store, objective) == {}


class Unknown(HashEmbedder):
    """An embedder by a name that nobody knows."""

    def __init__(self) -> None:
        super().__init__()
        self.space = "openai:mistyped:native:v1"

    async def embed(self, texts):
        raise ModelRejectedError("there is no model mistyped")


async def test_an_embedding_model_that_cannot_be_had_changes_nothing():
    store, objective = await open_library()
    index = BuiltinIndex()
    await Indexer(store, index, objective=objective).run_once(embed=Embedding())
    await store.remove_worker("w")
    backends = Backends(
        store=store, models={}, embedder=Unknown(), gate=Gate(), sleep=asyncio.sleep
    )
    identity = Worker(id="me", name="me", host="here", pid=2, lease_until=START)

    with pytest.raises(ModelRejectedError):
        await Results(backends, index, objective=objective, identity=identity, lease_s=60).rebuild(
            print, model="mistyped"
        )

    assert (await store.objective(objective.id)).spec == objective.spec
    assert len(await index.ids(collection_of(objective))) == len(TEXTS)


class Slow(HashEmbedder):
    """Takes longer than a lease lasts."""

    async def embed(self, texts):
        await asyncio.sleep(0.6)
        return await super().embed(texts)


@virtually
async def test_a_batch_that_takes_longer_than_the_lease_is_fed_while_others_free_what_the_dead_held():
    store = MemoryTaskStore(VirtualClock())
    objective = await fill_library(store, TEXTS)
    backends = Backends(store=store, models={}, embedder=Slow(), gate=Gate(), sleep=asyncio.sleep)
    identity = Worker(id="me", name="me", host="here", pid=2, lease_until=START)

    async def reap():
        while True:
            await store.reap_workers()
            await asyncio.sleep(0.05)

    reaping = asyncio.create_task(reap())
    n_fed = await Results(
        backends, BuiltinIndex(), objective=objective, identity=identity, lease_s=0.3
    ).rebuild(lambda *_: None)
    reaping.cancel()

    assert n_fed == len(TEXTS)
