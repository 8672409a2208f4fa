"""Finding earlier results: complete whatever is not indexed yet, and answering whatever is
broken."""

from dataclasses import replace

import pytest

from babyagi.errors import (
    CredentialsError,
    IndexUnavailableError,
    LimitReachedError,
    StoreUnusableError,
)
from babyagi.index.builtin import BuiltinIndex
from babyagi.index.hashing import HashEmbedder
from babyagi.index.indexer import Indexer, collection_of, item_id
from babyagi.index.port import IndexItem
from babyagi.index.search import MAX_PENDING, ResultSearch, fuse
from babyagi.tasks import Proposal
from babyagi.taskstore.sqlite import MemoryTaskStore
from tests.index.library import (
    START,
    TEXTS,
    Embedding,
    add_result,
    fill_library,
    id_by_name,
    make_busy,
    open_library,
    vectors_of,
)

QUERY = "opening hours of the exhibition of manuscripts"


class CountingIndex(BuiltinIndex):
    """Counts queries, gives `max_hits` at most, and raises `error` when it is set."""

    is_memory = False

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None
        self.n_queries = 0
        self.n_counts = 0
        self.max_hits = 1000

    async def ids(self, collection):
        self.n_counts += 1
        return await super().ids(collection)

    async def query(self, collection, vector, *, k):
        self.n_queries += 1
        if self.error is not None:
            raise self.error
        return await super().query(collection, vector, k=min(k, self.max_hits))


async def open_indexed(texts=TEXTS, **spec):
    store = MemoryTaskStore(lambda: START)
    objective = await fill_library(store, texts, **spec)
    index, embed = CountingIndex(), Embedding()
    indexer = Indexer(store, index, objective=objective)
    while await indexer.run_once(embed=embed):
        pass
    index.n_queries = 0
    embed.asked.clear()
    return store, objective, index, embed


def names(ranking):
    return [entry.result.task_name for entry in ranking]


@pytest.mark.usefixtures("many_results")
async def test_the_index_gives_the_nearest_results_and_their_texts():
    store, objective, index, embed = await open_indexed()

    found = await ResultSearch(store, index, objective=objective).relevant(QUERY, k=3, embed=embed)

    assert names(found)[0] == "Museum"
    assert len(found) == 3 and found.degraded == ""
    assert [entry.score for entry in found] == sorted(
        (entry.score for entry in found), reverse=True
    )
    assert next(iter(found)).result.text == TEXTS["Museum"]
    assert (index.n_queries, embed.asked) == (1, [QUERY])


async def test_few_results_are_all_compared_without_the_index_and_the_embedder():
    store, objective, index, embed = await open_indexed()
    index.error = IndexUnavailableError("the index is away")

    found = await ResultSearch(store, index, objective=objective).relevant(
        QUERY, k=len(TEXTS), embed=embed
    )

    assert names(found)[0] == "Museum" and set(names(found)) == set(TEXTS)
    assert (found.degraded, index.n_queries, embed.asked) == ("", 0, [])


async def test_of_few_results_a_new_one_is_found_by_the_next_search():
    store, objective, index, embed = await open_indexed()
    search = ResultSearch(store, index, objective=objective)
    before = await search.relevant("octopus podcast", k=2, embed=embed)
    await store.add_tasks(objective.id, [Proposal(name="Octopus")])
    await add_result(store, objective, {"Octopus": "A podcast about the octopus was downloaded."})

    found = await search.relevant("octopus podcast", k=2, embed=embed)

    assert "Octopus" not in names(before) and names(found)[0] == "Octopus"


async def test_few_results_that_contain_a_mark_are_found_beyond_the_nearest():
    store, objective, index, embed = await open_indexed()
    texts = {f"Crate {n}": f"The crate {n} of lot QX-7731 stands in hall {n}." for n in range(3)}
    await store.add_tasks(objective.id, [Proposal(name=name) for name in texts])
    for _ in texts:
        await add_result(store, objective, texts)

    found = await ResultSearch(store, index, objective=objective).relevant(
        "opening hours", k=1, embed=embed, marks=["QX-7731"]
    )

    assert {result.task_name for result in found.with_marks} == set(texts)


async def test_once_there_are_more_results_than_are_compared_the_index_is_asked(monkeypatch):
    store, objective, index, embed = await open_indexed()
    monkeypatch.setattr("babyagi.index.search.MAX_COMPARED", len(TEXTS))
    search = ResultSearch(store, index, objective=objective)
    await search.relevant(QUERY, k=3, embed=embed)
    n_before = index.n_queries
    await store.add_tasks(objective.id, [Proposal(name="Octopus")])
    await add_result(store, objective, {"Octopus": "A podcast about the octopus was downloaded."})

    found = await search.relevant(QUERY, k=3, embed=embed)

    assert (n_before, index.n_queries, names(found)[0]) == (0, 1, "Museum")


async def test_excluded_tasks_leave_their_place_to_others():
    store, objective, index, embed = await open_indexed()
    excluded = (await id_by_name(store, objective))["Museum"]

    found = await ResultSearch(store, index, objective=objective).relevant(
        QUERY, k=9, embed=embed, exclude={excluded}
    )

    assert len(found) == 9 and "Museum" not in names(found)


@pytest.mark.parametrize("space", ["another:v1:768", "hash:v1:768"])
@pytest.mark.usefixtures("many_results")
async def test_a_result_that_is_not_indexed_yet_is_found_and_embedded_only_once(space):
    store, objective, index, embed = await open_indexed(embedding_space=space)
    texts = {"Octopus": "The podcast about the intelligence of the octopus was downloaded often."}
    await store.add_tasks(objective.id, [Proposal(name="Octopus")])
    await add_result(store, objective, texts)
    search = ResultSearch(store, index, objective=objective)

    first = await search.relevant("how clever is an octopus", k=2, embed=embed)
    second = await search.relevant("octopus podcast", k=2, embed=embed)
    await Indexer(store, index, objective=objective).run_once(embed=embed)

    assert names(first)[0] == names(second)[0] == "Octopus"
    assert first.degraded == ""
    embedded = [text for text in embed.asked if text.startswith("Octopus\n")]
    assert embedded == [f"Octopus\n{texts['Octopus']}"]


@pytest.mark.parametrize(
    "error", [IndexUnavailableError("no answer"), StoreUnusableError("compaction failed")]
)
@pytest.mark.usefixtures("many_results")
async def test_without_its_index_the_search_is_exact_over_the_stored_vectors(error):
    store, objective, index, embed = await open_indexed()
    search = ResultSearch(store, index, objective=objective)
    with_index = await search.relevant(QUERY, k=5, embed=embed)
    index.error = error

    without = await search.relevant(QUERY, k=5, embed=embed)

    assert names(without) == names(with_index)
    assert [entry.score for entry in without] == pytest.approx(
        [entry.score for entry in with_index], abs=1e-5
    )
    assert error.what in without.degraded


@pytest.mark.usefixtures("many_results")
async def test_an_index_that_lacks_results_is_passed_over():
    store, objective, _, embed = await open_indexed()
    index = CountingIndex()
    some = (await id_by_name(store, objective))["Bakery"]
    vector = (await vectors_of(store, objective))[some]
    await index.upsert(
        collection_of(objective),
        [IndexItem(id=item_id(objective.uid, some), vector=vector, text="", task_id=some)],
    )

    found = await ResultSearch(store, index, objective=objective).relevant(QUERY, k=3, embed=embed)

    assert names(found)[0] == "Museum"
    assert "the index has only 1 of 10 results" in found.degraded


@pytest.mark.usefixtures("many_results")
async def test_an_index_that_holds_results_and_does_not_find_them_is_passed_over():
    store, objective, index, embed = await open_indexed()
    index.max_hits = 1

    found = await ResultSearch(store, index, objective=objective).relevant(QUERY, k=3, embed=embed)

    assert names(found)[0] == "Museum" and len(found) == 3
    assert "the index found only 1 of" in found.degraded


async def test_an_index_that_is_far_behind_is_passed_over():
    texts = {f"Task {n}": f"number {n}" for n in range(MAX_PENDING + 20)} | {
        "Museum": TEXTS["Museum"]
    }
    store, objective, index, embed = await open_indexed(texts)
    await store.owe_index(objective.id)

    found = await ResultSearch(store, index, objective=objective).relevant(QUERY, k=3, embed=embed)

    assert names(found)[0] == "Museum"
    assert "not indexed yet" in found.degraded and index.n_queries == 0


async def test_the_newest_result_is_looked_at_however_many_are_not_indexed():
    texts = {f"Task {n}": f"number {n}" for n in range(MAX_PENDING + 20)} | {
        "Museum": TEXTS["Museum"]
    }
    store, objective = await open_library(texts)

    found = await ResultSearch(store, CountingIndex(), objective=objective).relevant(
        "openning huors", k=3, embed=Embedding()
    )

    assert names(found)[0] == "Museum"


@pytest.mark.parametrize("others", [[2], [3]], ids=["the-same", "another"])
async def test_what_is_read_beside_another_search_comes_once_and_whole(others, monkeypatch):
    store, objective = await open_library()
    monkeypatch.setattr("babyagi.index.search.N_KEPT", 1)
    reads: list[list[int]] = []

    async def read_too():
        if reads:
            await search.results(reads.pop())

    search = ResultSearch(
        make_busy(store, method="results", work=read_too), CountingIndex(), objective=objective
    )
    await search.results([1])
    reads.append(others)

    found = await search.results([1, 2])

    assert [result.task_id for result in found] == [1, 2]


async def test_what_was_used_last_is_kept_longest(monkeypatch):
    store, objective = await open_library()
    monkeypatch.setattr("babyagi.index.search.N_KEPT", 2)
    reads = []

    async def count():
        reads.append(1)

    busy = make_busy(store, method="results", work=count)
    search = ResultSearch(busy, CountingIndex(), objective=objective)
    for task_ids in ([1, 2], [1], [3]):
        await search.results(task_ids)
    n_reads = len(reads)

    found = await search.results([1])

    assert [result.task_id for result in found] == [1]
    assert (n_reads, len(reads)) == (2, 2)


async def test_a_result_that_was_planned_from_is_loaded_again_only_when_it_is_forgotten(
    monkeypatch,
):
    store, objective = await open_library()
    search = ResultSearch(store, CountingIndex(), objective=objective)
    before = await search.results([1])

    async def load_changed(*given, **named):
        return [replace(one, text="It says something else.") for one in before]

    monkeypatch.setattr(store, "results", load_changed)

    assert await search.results([1]) == before
    search.forget(1)
    assert [one.text for one in await search.results([1])] == ["It says something else."]


@pytest.mark.usefixtures("many_results")
async def test_a_word_that_was_common_is_not_searched_for_again(monkeypatch):
    store, objective = await open_library()
    searched: list[list[str]] = []
    read = store.pending_results

    async def read_pending(*given, words=(), **more):
        searched.append(sorted(words))
        found = await read(*given, words=words, **more)
        return replace(found, common_words=frozenset({"octopus"}))

    monkeypatch.setattr(store, "pending_results", read_pending)
    search = ResultSearch(store, CountingIndex(), objective=objective)
    for _ in range(2):
        await search.relevant("octopus podcast", k=2, embed=Embedding())

    assert searched == [["octopus", "podcast"], ["podcast"]]


async def test_an_index_that_answers_again_while_a_search_does_without_it_does_not_disturb_that():
    store, objective, index, embed = await open_indexed(embedding_space="another:v1:768")
    index.error = IndexUnavailableError("no answer")

    async def recover():
        if index.error is not None:
            index.error = None
            await search.relevant(QUERY, k=3, embed=embed)

    search = ResultSearch(
        make_busy(store, method="result_ids", work=recover), index, objective=objective
    )

    found = await search.relevant(QUERY, k=3, embed=embed)

    assert names(found)[0] == "Museum" and "no answer" in found.degraded


async def test_the_built_in_index_is_filled_once_and_the_results_are_not_listed_for_each_search():
    store, objective, _, embed = await open_indexed(embedding_space="another:v1:768")
    listed: list[None] = []

    async def note():
        listed.append(None)

    counted = make_busy(store, method="result_ids", work=note)
    search = ResultSearch(counted, BuiltinIndex(), objective=objective)

    found = [names(await search.relevant(QUERY, k=3, embed=embed))[0] for _ in range(3)]

    assert (found, len(listed)) == (["Museum"] * 3, 1)


async def test_what_the_index_holds_is_counted_again_when_the_results_have_grown_by_a_hundredth():
    store, objective, index, embed = await open_indexed(
        {f"Task {n}": f"number {n}" for n in range(300)}
    )
    search, indexer = (
        ResultSearch(store, index, objective=objective),
        Indexer(store, index, objective=objective),
    )
    counts = []

    for n in range(301, 309):
        await store.add_tasks(objective.id, [Proposal(name=f"Task {n}")])
        await add_result(store, objective, {f"Task {n}": f"number {n}"})
        await indexer.run_once(embed=embed)
        before = index.n_counts
        found = await search.relevant("number", k=3, embed=embed)
        counts.append(index.n_counts - before)
        assert found.degraded == ""

    assert counts == [1, 0, 0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize("space", ["hash:v1:768", "another:v1:768"])
async def test_of_equal_results_the_latest_comes_first_whatever_the_vectors_know(space):
    store = MemoryTaskStore(lambda: START)
    objective = await fill_library(
        store, dict.fromkeys("ABCDE", "The same."), embedding_space=space
    )

    async def embed(texts):
        return (await HashEmbedder().embed(["one text"] * len(texts)))[0]

    found = await ResultSearch(store, CountingIndex(), objective=objective).relevant(
        "the same", k=5, embed=embed
    )

    assert names(found) == list("EDCBA")


async def test_ghosts_in_the_index_are_dropped():
    store, objective, index, embed = await open_indexed()
    vector = (await embed([QUERY]))[0]
    ghosts = [item_id(objective.uid, 999), item_id("another objective", 1), "no id at all"]
    await index.upsert(
        collection_of(objective),
        [IndexItem(id=ghost, vector=vector, text="", task_id=1) for ghost in ghosts],
    )

    found = await ResultSearch(store, index, objective=objective).relevant(QUERY, k=3, embed=embed)

    assert names(found)[0] == "Museum" and len(found) == 3


@pytest.mark.parametrize(
    "error", [IndexUnavailableError("no embedder"), CredentialsError("key refused")]
)
@pytest.mark.usefixtures("many_results")
async def test_without_an_embedder_results_are_compared_by_words(error):
    store, objective, index, embed = await open_indexed()
    await store.add_tasks(objective.id, [Proposal(name="Octopus")])
    await add_result(store, objective, {"Octopus": "An octopus is clever."})
    embed.error = error
    search = ResultSearch(store, index, objective=objective)

    found = await search.relevant(QUERY, k=3, embed=embed)
    newest = await search.relevant("clever octopus", k=3, embed=embed)

    assert names(found)[0] == "Museum" and names(newest)[0] == "Octopus"
    assert "by words only" in found.degraded and error.what in found.degraded


@pytest.mark.usefixtures("many_results")
async def test_a_limit_is_no_trouble_of_the_embedder():
    store, objective, index, embed = await open_indexed()
    embed.error = LimitReachedError("no calls left", limit="calls", is_final=True)

    with pytest.raises(LimitReachedError):
        await ResultSearch(store, index, objective=objective).relevant(QUERY, k=3, embed=embed)


async def test_an_objective_without_results_has_none():
    store, objective = await open_library({"Only": "x"})
    claimed = (await id_by_name(store, objective))["Only"]

    found = await ResultSearch(store, BuiltinIndex(), objective=objective).relevant(
        "x", k=3, embed=Embedding(), exclude={claimed}
    )

    assert list(found) == []


def test_what_one_way_puts_first_comes_before_what_both_put_in_the_middle():
    meant, spelt = [1, *range(10, 40)], [2, *reversed(range(10, 40))]

    scores = fuse(meant, spelt)

    assert set(sorted(scores, key=lambda task_id: -scores[task_id])[:2]) == {1, 2}
    assert fuse([1, 2], [1, 2])[1] == 1.0
