"""Results of other objectives: found where the objective shares their memory, few, marked, and
never in the way of its own."""

from dataclasses import replace
from typing import Any

import pytest

from babyagi.errors import IndexUnavailableError, LimitReachedError
from babyagi.index.builtin import BuiltinIndex
from babyagi.index.context import choose_context
from babyagi.index.hashing import HashEmbedder
from babyagi.index.indexer import Indexer
from babyagi.index.search import N_OBJECTIVES, N_OTHERS, SharedSearch, open_search
from babyagi.runtime.offload import run_inline
from babyagi.tasks import Memory
from babyagi.taskstore.sql.store import open_postgres
from babyagi.taskstore.sqlite import MemoryTaskStore, open_sqlite
from tests.index.library import START, TEXTS, Embedding, fill_library, vectors_of

QUERY = "opening hours of the exhibition of manuscripts"
HOURS = {
    "Hours": "The museum is open from nine to five, and its exhibition of manuscripts until eight."
}
BREAD = {"Bread": "Rye bread needs a hot oven.", "Leak": "The roof of the barn leaks."}


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.system)])
async def store(request, tmp_path):
    store: Any = None
    if request.param == "memory":
        store = MemoryTaskStore(lambda: START)
    elif request.param == "sqlite":
        store = await open_sqlite(tmp_path / "tasks.db", clock=lambda: START, offload=run_inline)
    else:
        store = await open_postgres(
            request.getfixturevalue("postgres_url"), clock=lambda: START, offload=run_inline
        )
    yield store
    await store.close()


@pytest.fixture
def memory_store():
    return MemoryTaskStore(lambda: START)


def whose(found):
    return [(entry.result.objective_id, entry.result.task_name) for entry in found]


async def find(store, objective, *, k=5, embed=None, **more):
    return await SharedSearch(store, BuiltinIndex(), objective=objective, **more).relevant(
        QUERY, k=k, embed=embed or Embedding()
    )


async def test_results_of_other_objectives_are_found_in_every_store_with_what_they_came_from(store):
    other = await fill_library(store, TEXTS, uid="aa")
    mine = await fill_library(store, BREAD, uid="bb")

    found = await find(store, mine)

    assert whose(found)[0] == (other.id, "Museum")
    assert found.ranked[0].result.text == TEXTS["Museum"] and found.ranked[0].result.origins == (
        "model:rehearsal",
    )
    assert found.degraded == ""


async def test_at_most_two_places_go_to_others_however_many_fit(memory_store):
    for number in range(4):
        texts = {
            f"Hours {number}": (
                f"Exhibition of manuscripts number {number}: opening hours are {number} to "
                f"{number + 5}."
            )
        }
        await fill_library(memory_store, texts, uid=f"other {number}")
    mine = await fill_library(memory_store, BREAD, uid="mine")

    assert [objective_id for objective_id, _ in whose(await find(memory_store, mine))].count(
        mine.id
    ) == 2
    assert len(await find(memory_store, mine)) == 2 + N_OTHERS
    assert len(await find(memory_store, mine, k=9, n_others=None)) == 2 + 4


async def test_an_own_result_wins_over_an_equal_one_and_a_repetition_of_it_is_left_out(
    memory_store,
):
    await fill_library(memory_store, HOURS | BREAD, uid="other")
    mine = await fill_library(memory_store, HOURS, uid="mine")

    found = await find(memory_store, mine)

    assert whose(found)[0] == (mine.id, "Hours")
    assert [name for _, name in whose(found)].count("Hours") == 1


@pytest.mark.usefixtures("many_results")
async def test_the_query_is_embedded_once_and_nothing_of_other_objectives(memory_store):
    others = [await fill_library(memory_store, TEXTS, uid=f"other {number}") for number in range(3)]
    mine = await fill_library(memory_store, HOURS, uid="mine")
    embed = Embedding()

    await SharedSearch(memory_store, BuiltinIndex(), objective=mine).relevant(
        QUERY, k=5, embed=embed
    )

    assert embed.asked == [QUERY, f"Hours\n{HOURS['Hours']}"]
    assert [await vectors_of(memory_store, other) for other in others] == [{}, {}, {}]


@pytest.mark.usefixtures("many_results")
async def test_an_objective_without_a_result_of_its_own_finds_those_of_others(memory_store):
    other = await fill_library(memory_store, TEXTS, uid="other")
    mine = await fill_library(memory_store, {}, uid="mine")
    embed = Embedding()

    assert whose(await find(memory_store, mine, embed=embed))[0] == (other.id, "Museum")
    assert embed.asked == [QUERY]


async def test_another_space_is_passed_over_with_a_note_and_an_empty_objective_without_one(
    memory_store,
):
    await fill_library(memory_store, TEXTS, uid="elsewhere", embedding_space="openai:m:8:v1")
    await fill_library(memory_store, {}, uid="empty", embedding_space="openai:m:8:v1")
    mine = await fill_library(memory_store, BREAD, uid="mine")

    found = await find(memory_store, mine)

    assert {objective_id for objective_id, _ in whose(found)} == {mine.id}
    assert found.degraded == (
        "objective 1 was skipped: its results are embedded as openai:m:8:v1, not as hash:v1:768"
    )


@pytest.mark.usefixtures("many_results")
async def test_an_objective_that_is_deleted_during_the_search_is_passed_over(memory_store):
    gone = await fill_library(memory_store, TEXTS, uid="gone")
    other = await fill_library(memory_store, HOURS, uid="other")
    mine = await fill_library(memory_store, {}, uid="mine")
    embedding = Embedding()

    async def embed(texts):
        await memory_store.delete_objective(gone.id)
        return await embedding(texts)

    found = await find(memory_store, mine, embed=embed)

    assert whose(found) == [(other.id, "Hours")]
    assert found.degraded == f"objective {gone.id} was deleted meanwhile"


async def test_an_objective_that_is_deleted_after_its_results_were_found_disturbs_no_search(
    memory_store,
):
    other = await fill_library(memory_store, TEXTS, uid="other")
    gone = await fill_library(memory_store, HOURS, uid="gone")
    mine = await fill_library(memory_store, {}, uid="mine")
    result_ids = memory_store.result_ids

    async def list_and_delete(objective_id, **wanted):
        if objective_id == other.id and gone.id in [
            one.id for one in await memory_store.objectives()
        ]:
            # the newest first, so its results are there
            await memory_store.delete_objective(gone.id)
        return await result_ids(objective_id, **wanted)

    memory_store.result_ids = list_and_delete
    found = await find(memory_store, mine)

    assert (other.id, "Museum") in whose(found) and found.degraded == ""


@pytest.mark.usefixtures("many_results")
async def test_the_embedder_is_asked_once_when_it_is_in_trouble_and_words_find_the_others(
    memory_store,
):
    for number in range(3):
        await fill_library(memory_store, TEXTS, uid=f"other {number}")
    mine = await fill_library(memory_store, BREAD, uid="mine")
    asked = []

    async def embed(texts):
        asked.append(texts)
        raise IndexUnavailableError("the embedder is away")

    found = await find(memory_store, mine, embed=embed)

    assert whose(found)[0][1] == "Museum" and len(asked) == 1
    assert found.degraded == "compared by words only: the embedder is away"


@pytest.mark.usefixtures("many_results")
async def test_a_limit_ends_the_search_as_it_ends_one_in_the_own_results(memory_store):
    await fill_library(memory_store, TEXTS, uid="other")
    mine = await fill_library(memory_store, {}, uid="mine")
    embed = Embedding()
    embed.error = LimitReachedError("no calls are left", limit="calls", is_final=True)

    with pytest.raises(LimitReachedError):
        await find(memory_store, mine, embed=embed)


async def test_the_newest_objectives_are_looked_at_unless_they_are_very_large(
    memory_store, monkeypatch
):
    for number in range(N_OBJECTIVES + 2):
        await fill_library(
            memory_store,
            {f"Task {number}": f"Manuscripts of the year {number}."},
            uid=f"other {number}",
        )
    mine = await fill_library(memory_store, {}, uid="mine")
    newest = {number + 1 for number in range(2, N_OBJECTIVES + 2)}

    every = await find(memory_store, mine, k=50, n_others=None)
    large = await fill_library(memory_store, TEXTS, uid="large")
    monkeypatch.setattr("babyagi.index.search.MAX_RESULTS", len(TEXTS) - 1)
    small = await find(memory_store, mine, k=50, n_others=None)

    assert {objective_id for objective_id, _ in whose(every)} == newest
    assert {objective_id for objective_id, _ in whose(small)} == newest - {min(newest)}
    assert small.degraded == f"objective {large.id} was skipped: it has more than 9 results"


async def test_where_vectors_know_meaning_they_have_their_say_about_the_results_of_others(
    memory_store,
):
    meaning = {
        QUERY: "museum",
        "Visit": "museum",
        "Train": "train",
        "Bread": "bread",
        "Leak": "leak",
    }

    async def embed(texts):
        return [HashEmbedder().embed_text(meaning[text.split("\n")[0]]) for text in texts]

    texts = {"Visit": "Doors of the exhibition close at eight.", "Train": "It leaves at nine."}
    other = await fill_library(memory_store, texts, uid="other", embedding_space="knows:meaning")
    await Indexer(memory_store, BuiltinIndex(), objective=other).run_once(embed=embed)
    texts = {"Bread": f"The {QUERY} sells no bread.", "Leak": "The roof leaks."}
    mine = await fill_library(memory_store, texts, uid="mine", embedding_space="knows:meaning")
    lexical = await fill_library(memory_store, texts, uid="lexical")
    await fill_library(
        memory_store, {"Visit": "Doors of the exhibition close at eight."}, uid="lexical other"
    )

    assert whose(await find(memory_store, mine, embed=embed))[0] == (other.id, "Visit")
    assert whose(await find(memory_store, lexical))[0] == (lexical.id, "Bread")


async def test_a_task_is_given_results_of_others_only_when_its_objective_shares_their_memory(
    memory_store,
):
    other = await fill_library(memory_store, TEXTS, uid="other")
    texts = {name: f"{name} is done." for name in ("Bread", "Leak")}

    async def choose(memory):
        mine = await fill_library(memory_store, texts, uid=memory, memory=memory)
        task = replace((await memory_store.tasks(mine.id))[0], id=99, name=QUERY, after=(1,))
        search = open_search(memory_store, BuiltinIndex(), objective=mine)
        chosen, _ = await choose_context(task, search=search, embed=Embedding(), budget_tokens=1200)
        return [
            (entry.result.objective_id == other.id, entry.result.task_name, entry.reason)
            for entry in chosen
        ]

    shared = await choose(Memory.SHARED)
    assert (True, "Museum", "shared") in shared
    # although a task of the other has this number, too
    assert shared[0] == (False, "Bread", "after")
    assert await choose(Memory.OBJECTIVE) == [(False, "Bread", "after")]
