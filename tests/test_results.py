"""What a person does with the results of one objective, while workers are at work on it."""

import pytest

from babyagi.errors import IndexUnavailableError
from babyagi.journal import Backends, Gate
from babyagi.results import Results
from babyagi.resultstore.builtin import BuiltinIndex
from babyagi.resultstore.hashing import HashEmbedder
from babyagi.resultstore.projector import Projector, collection_of
from babyagi.tasks import Worker
from tests.resultstore.library import START, TEXTS, Busy, Embedding, LaggingIndex, open_library


async def test_what_a_worker_ticks_off_just_before_a_rebuild_drops_the_collection_is_fed_again():
    store, objective = await open_library()
    index, task_ids = LaggingIndex(), await store.result_ids(objective.id)
    await Projector(store, index, objective=objective, sleep=index.catch_up).run_once(embed=Embedding())
    await index.catch_up(0)  # so that what is dropped is still seen for a while

    async def tick_off():
        await store.mark_indexed(objective.id, task_ids=task_ids[:5])

    busy = Busy(store, method="claim_duty", work=tick_off)
    backends = Backends(store=busy, models={}, embedder=HashEmbedder(), gate=Gate(), sleep=index.catch_up)
    identity = Worker(id="me", name="me", host="here", pid=2, lease_until=START)

    await Results(backends, index, objective=objective, identity=identity, lease_s=60).rebuild(lambda n_done, n_all: None)

    assert len(await BuiltinIndex.ids(index, collection_of(objective))) == len(TEXTS)


async def test_a_rebuild_never_puts_vectors_of_another_space_beside_those_of_the_objective():
    store, objective = await open_library()
    backends = Backends(store=store, models={}, embedder=HashEmbedder(64), gate=Gate(), sleep=LaggingIndex().catch_up)
    identity = Worker(id="me", name="me", host="here", pid=2, lease_until=START)
    results = Results(backends, BuiltinIndex(), objective=objective, identity=identity, lease_s=60)

    with pytest.raises(IndexUnavailableError, match="embedded as hash:v1:768, not as hash:v1:64"):
        await results.rebuild(lambda n_done, n_all: None)

    assert await store.vectors(objective.id, space=objective.spec.embedding_space) == {}
