"""Feeding the index: nothing lost, nothing paid twice, whatever crashes in between."""

import re
from array import array
from dataclasses import replace

import pytest

from babyagi import events
from babyagi.errors import IndexUnavailableError, LimitReachedError, StoreUnusableError
from babyagi.index.builtin import BuiltinIndex
from babyagi.index.hashing import HashEmbedder
from babyagi.index.indexer import (
    BATCH,
    MAX_REBUILDS,
    Indexer,
    collection_of,
    item_id,
    scores_of,
)
from babyagi.index.port import Hit, IndexItem
from babyagi.tasks import Proposal
from tests.index.library import (
    TEXTS,
    Embedding,
    LaggingIndex,
    add_result,
    id_by_name,
    make_busy,
    open_library,
    vectors_of,
)


class Crash(BaseException):
    """The process is gone."""


class TroubledIndex(BuiltinIndex):
    """A built-in index that raises `error` from the named methods."""

    def __init__(self) -> None:
        super().__init__()
        self.error: BaseException | None = None
        self.failing: set[str] = set()

    def _fail(self, method):
        if self.error is not None and method in self.failing:
            raise self.error

    async def upsert(self, collection, items):
        self._fail("upsert")
        await super().upsert(collection, items)
        self._fail("after upsert")

    async def ids(self, collection):
        self._fail("ids")
        return await super().ids(collection)

    async def drop(self, collection):
        self._fail("drop")
        await super().drop(collection)


def crash_at(store, method):
    """The next call of the store's method finds the process gone: before it did anything."""
    original = getattr(store, method)

    async def crash(*args, **options):
        setattr(store, method, original)
        raise Crash

    setattr(store, method, crash)


async def feed_all(indexer, embed, limit=3):
    counts = []
    while count := await indexer.run_once(embed=embed, limit=limit):
        counts.append(count)
    return counts


async def test_every_result_is_embedded_once_and_indexed():
    store, objective = await open_library()
    index, embed = BuiltinIndex(), Embedding()
    indexer = Indexer(store, index, objective=objective)

    counts = await feed_all(indexer, embed)

    assert counts == [3, 3, 3, 1]
    assert sorted(embed.asked) == sorted(f"{name}\n{text}" for name, text in TEXTS.items())
    assert len(await index.ids(collection_of(objective))) == len(TEXTS)
    assert await indexer.check() == await indexer.check()
    assert not (await indexer.check()).is_damaged


@pytest.mark.parametrize("moment", ["store_vectors", "mark_indexed", "upsert", "after upsert"])
async def test_a_crash_between_any_two_steps_leaves_a_replay_with_the_same_ids(moment):
    store, objective = await open_library()
    index, embed = TroubledIndex(), Embedding()
    if moment in ("store_vectors", "mark_indexed"):
        crash_at(store, moment)
    else:
        index.error, index.failing = Crash(), {moment}
    with pytest.raises(Crash):
        await Indexer(store, index, objective=objective).run_once(embed=embed)
    index.error = None

    await feed_all(Indexer(store, index, objective=objective), embed)

    ids = {
        item_id(objective.uid, task_id) for task_id in (await id_by_name(store, objective)).values()
    }
    assert sorted(await index.ids(collection_of(objective))) == sorted(ids)
    assert await store.results(objective.id, only_unindexed=True, limit=10) == []
    assert len(embed.asked) == len(TEXTS) * (2 if moment == "store_vectors" else 1)


async def test_after_a_restart_the_index_in_memory_is_filled_from_the_stored_vectors():
    store, objective = await open_library()
    embed = Embedding()
    await feed_all(Indexer(store, BuiltinIndex(), objective=objective), embed)
    n_embedded, index = len(embed.asked), BuiltinIndex()

    await Indexer(store, index, objective=objective).run_once(embed=embed)

    assert len(await index.ids(collection_of(objective))) == len(TEXTS)
    assert len(embed.asked) == n_embedded


async def test_another_index_is_fed_everything_in_batches_that_say_how_far_it_is_and_nothing_is_embedded_again():
    class Kept(BuiltinIndex):
        is_memory = False

    texts = {f"Task {n}": f"Number {n} is done." for n in range(2 * BATCH + 50)}
    store, objective = await open_library(texts)
    embed = Embedding()
    await feed_all(Indexer(store, Kept(), objective=objective), embed, limit=BATCH)
    before_id, index = await store.last_event_id(objective.id), Kept()

    counts = await feed_all(Indexer(store, index, objective=objective), embed, limit=BATCH)

    indexed = [
        event.data
        for event in await store.events(objective.id, after_id=before_id)
        if event.kind == events.RESULTS_INDEXED
    ]
    assert counts == [BATCH, BATCH, 50]
    assert [data["n_owed"] for data in indexed] == [BATCH + 50, 50, 0]
    assert len(await index.ids(collection_of(objective))) == len(embed.asked) == len(texts)


async def test_a_damaged_index_is_begun_anew_without_embedding_again():
    store, objective = await open_library()
    index, embed = TroubledIndex(), Embedding()
    indexer = Indexer(store, index, objective=objective)
    await indexer.run_once(embed=embed, limit=5)
    index.error, index.failing = StoreUnusableError("compaction failed"), {"upsert"}

    assert await indexer.run_once(embed=embed, limit=5) == 0
    index.error = None
    counts = await feed_all(indexer, embed, limit=5)

    assert counts == [5, 5]
    assert (indexer.n_rebuilds, len(embed.asked)) == (1, len(TEXTS))


async def test_an_index_that_stays_damaged_is_left_to_time():
    store, objective = await open_library()
    index, embed = TroubledIndex(), Embedding()
    index.error, index.failing = StoreUnusableError("compaction failed"), {"upsert"}
    indexer = Indexer(store, index, objective=objective)
    for _ in range(MAX_REBUILDS):
        assert await indexer.run_once(embed=embed) == 0

    with pytest.raises(IndexUnavailableError, match="damaged again"):
        await indexer.run_once(embed=embed)

    assert len(embed.asked) == len(TEXTS)


async def test_an_embedder_that_changes_its_dimension_under_one_name_does_not_have_the_index_made_anew_for_ever():
    texts = {f"Task {n}": f"Number {n} is done." for n in range(BATCH + 20)}
    store, objective = await open_library(texts)
    embed, indexer = Embedding(), Indexer(store, BuiltinIndex(), objective=objective)
    await feed_all(indexer, embed, limit=BATCH)
    await store.add_tasks(objective.id, [Proposal(name="Last")])
    await add_result(store, objective, {"Last": "The end."})
    embed.embedder = HashEmbedder(64)

    with pytest.raises(IndexUnavailableError, match="damaged again"):
        for _ in range(20):
            await indexer.run_once(embed=embed)


async def test_a_damaged_index_that_cannot_be_dropped_is_left_to_time():
    store, objective = await open_library()
    index = TroubledIndex()
    index.error, index.failing = StoreUnusableError("no"), {"upsert", "drop"}

    with pytest.raises(IndexUnavailableError, match="cannot be removed"):
        await Indexer(store, index, objective=objective).run_once(embed=Embedding())


async def test_an_index_that_is_down_is_raised_and_nothing_is_ticked_off():
    store, objective = await open_library()
    index, embed = TroubledIndex(), Embedding()
    index.error, index.failing = IndexUnavailableError("no answer"), {"upsert"}
    indexer = Indexer(store, index, objective=objective)

    with pytest.raises(IndexUnavailableError, match="no answer"):
        await indexer.run_once(embed=embed)

    assert len(await store.results(objective.id, only_unindexed=True, limit=100)) == len(TEXTS)
    index.error = None
    assert await feed_all(indexer, embed, limit=100) == [len(TEXTS)]
    assert len(embed.asked) == len(TEXTS)


@pytest.mark.parametrize(
    "error",
    [IndexUnavailableError("down"), LimitReachedError("no money", limit="cost", is_final=True)],
)
async def test_an_error_of_the_embedder_is_raised(error):
    store, objective = await open_library()
    embed = Embedding()
    embed.error = error

    with pytest.raises(type(error)):
        await Indexer(store, BuiltinIndex(), objective=objective).run_once(embed=embed)


async def test_too_few_vectors_are_never_given_to_the_wrong_results():
    store, objective = await open_library()

    async def embed(texts):
        return (await Embedding()(texts))[1:]

    with pytest.raises(
        IndexUnavailableError, match="10 texts were sent to the embedder, but it returned 9 vectors"
    ):
        await Indexer(store, BuiltinIndex(), objective=objective).run_once(embed=embed)

    assert await vectors_of(store, objective) == {}


async def test_the_check_names_what_is_missing_what_is_too_much_and_what_is_not_found():
    store, objective = await open_library()
    index, embed, collection = BuiltinIndex(), Embedding(), collection_of(objective)
    indexer = Indexer(store, index, objective=objective)
    await feed_all(indexer, embed)
    task_ids = sorted((await id_by_name(store, objective)).values())
    whole = dict(await vectors_of(store, objective))
    opposite = array("f", whole[task_ids[0]])
    await index.drop(collection)
    await index.upsert(
        collection,
        [
            IndexItem(
                id=item_id(objective.uid, task_ids[0]),
                vector=array("f", (-value for value in opposite)).tobytes(),
                text="",
                task_id=task_ids[0],
            ),
            *[
                IndexItem(id=item_id(objective.uid, n), vector=whole[n], text="", task_id=n)
                for n in task_ids[1:-1]
            ],
            IndexItem(
                id=item_id(objective.uid, 999), vector=whole[task_ids[-1]], text="", task_id=999
            ),
        ],
    )

    report = await indexer.check()

    assert report.missing == (task_ids[-1],)
    assert report.extra == (item_id(objective.uid, 999),)
    assert report.probe_misses == (task_ids[0],)
    assert report.n_probes == 9


async def open_unfinished_library():
    """A library, and what carries its next task out, of which there are 30 more."""
    texts = TEXTS | {f"Shelf {n}": f"Shelf {n} holds {n * n} books." for n in range(30)}
    store, objective = await open_library()
    await store.add_tasks(
        objective.id, [Proposal(name=name) for name in texts if name not in TEXTS]
    )
    return store, objective, lambda: add_result(store, objective, texts)


@pytest.mark.parametrize("method", ["result_ids", "vectors"])
async def test_a_result_that_is_recorded_while_the_index_is_checked_is_not_missing(method):
    store, objective, work = await open_unfinished_library()
    index = BuiltinIndex()
    await feed_all(Indexer(store, index, objective=objective), Embedding())

    report = await Indexer(
        make_busy(store, method=method, work=work), index, objective=objective
    ).check()

    assert report.is_whole and report.extra == ()


@pytest.mark.parametrize("method", ["ids", "query"])
async def test_a_result_that_is_fed_while_the_index_is_checked_is_not_too_much(method):
    store, objective, work = await open_unfinished_library()
    index, embed = BuiltinIndex(), Embedding()
    feeding = Indexer(store, index, objective=objective)
    await feed_all(feeding, embed)

    async def work_and_feed():
        await work()
        await feed_all(feeding, embed)

    report = await Indexer(
        store, make_busy(index, method=method, work=work_and_feed), objective=objective
    ).check()

    assert report.is_whole and report.extra == ()


async def test_where_reads_lag_behind_writes_only_what_is_missing_after_a_while_is_called_missing():
    store, objective = await open_library()
    index = LaggingIndex()
    indexer = Indexer(store, index, objective=objective, sleep=index.catch_up)
    await feed_all(indexer, Embedding())
    index.slept_s.clear()

    fed = await indexer.check()
    await index.drop(collection_of(objective))
    await index.seen.drop(collection_of(objective))
    lost = await indexer.check()

    assert fed.is_whole and (fed.n_held, fed.n_expected) == (10, 10)
    assert len(lost.missing) == 10
    assert index.slept_s == [5.0, 5.0]


async def test_an_index_that_was_away_and_came_back_with_less_is_compared_before_it_is_fed_on():
    store, objective = await open_library()
    index, embed = TroubledIndex(), Embedding()
    indexer = Indexer(store, index, objective=objective)
    await indexer.run_once(embed=embed, limit=5)
    index.error, index.failing = IndexUnavailableError("no answer"), {"upsert"}
    with pytest.raises(IndexUnavailableError):
        await indexer.run_once(embed=embed, limit=1)
    index.error = None
    await index.drop(collection_of(objective))

    await indexer.run_once(embed=embed, limit=1)

    assert len(await index.ids(collection_of(objective))) == 6
    assert len(embed.asked) == 6


def test_an_id_says_which_task_it_is_of_and_belongs_to_one_objective_only():
    hits = [
        Hit(id=item_id("0a1b", 7), score=0.5),
        Hit(id=item_id("other", 8), score=0.4),
        Hit(id="no id", score=0.3),
    ]
    assert scores_of("0a1b", hits) == {7: 0.5}
    assert item_id("0a1b", 7) == item_id("0a1b", 7) != item_id("0a1b", 8)
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-000000000007", item_id("0a1b", 7)
    )


@pytest.mark.parametrize(
    "store_name", ["babyagi", "", "../../etc", "my results!", "東京", "x" * 1000, "\ud800"]
)
async def test_a_collection_name_fits_whatever_the_store_is_called(store_name):
    _, objective = await open_library()

    def name_of(store_name, space):
        spec = replace(objective.spec, results_store_name=store_name, embedding_space=space)
        return collection_of(replace(objective, spec=spec))

    name = name_of(store_name, "hash:v1:768")
    assert re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]", name)
    assert name != name_of(store_name, "hash:v1:1024")
    assert name != name_of(store_name + "a", "hash:v1:768")
    assert name != collection_of(replace(objective, uid="0a1b"))
