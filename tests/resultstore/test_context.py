"""What a task is given: what it was derived from, then what bears on it, each thing once, within the budget."""

from dataclasses import replace

import pytest

from babyagi.errors import IndexUnavailableError
from babyagi.resultstore.builtin import BuiltinIndex
from babyagi.resultstore.context import choose_context, choose_within, drop_repetitions
from babyagi.resultstore.search import N_CANDIDATES, RankedResult, ResultSearch
from babyagi.resultstore.words import Words
from babyagi.tasks import Result
from tests.resultstore.library import START, TEXTS, Embedding, id_by_name, open_library


async def choose(store, objective, task, *, embed=None, budget_tokens=1200):
    search = ResultSearch(store, BuiltinIndex(), objective=objective)
    chosen, _ = await choose_context(task, objective=objective, search=search, embed=embed or Embedding(), budget_tokens=budget_tokens)
    return chosen


async def open_task(name, *, after=(), parent=None, texts=TEXTS):
    """A library, and a task of this name that comes after the named ones."""
    store, objective = await open_library(texts)
    ids = await id_by_name(store, objective)
    task = replace(
        (await store.tasks(objective.id))[0], id=999, name=name, after=tuple(ids[one] for one in after), parent_id=ids.get(parent)
    )
    return store, objective, task


async def test_what_a_task_was_derived_from_is_always_in_and_comes_first():
    store, objective, task = await open_task("Opening hours of the exhibition", after=["Tomato", "Bakery"], parent="Solar")

    chosen = await choose(store, objective, task)

    assert [(entry.result.task_name, entry.reason) for entry in chosen[:4]] == [
        ("Bakery", "after"),
        ("Tomato", "after"),
        ("Solar", "parent"),
        ("Museum", "near"),
    ]
    assert all(0 <= entry.score <= 1 for entry in chosen)


async def test_a_task_that_comes_after_very_many_is_given_a_piece_of_each():
    texts = {f"Task {n}": f"Report {n}. " + f"There is much to say about number {n}. " * 40 for n in range(30)}
    store, objective, task = await open_task("Compare the numbers", after=list(texts), texts=texts)

    chosen = await choose(store, objective, task, budget_tokens=600)

    assert {entry.result.task_name for entry in chosen} == set(texts)
    assert sum(len(entry.text.encode()) for entry in chosen) <= 2400


async def test_the_objective_has_its_say_in_what_is_near():
    texts = {"Water": "The lake is deep.", "Bread": "The oven is hot.", "Other": "The road is long."}
    store, objective, task = await open_task("Measure it", texts=texts)
    about_bread = replace(objective, spec=replace(objective.spec, text="Bake with an oven"))

    chosen = await choose(store, about_bread, task)

    assert chosen[0].result.task_name == "Bread"


async def test_repetitions_are_given_once_and_the_same_words_with_another_figure_are_no_repetition():
    texts = {
        "First": "The museum of manuscripts is open on 3 days of the week, and closed in winter.",
        "Other": "The museum of manuscripts is open on 3 days of the week, and closed in winter!",
        "Third": "The museum of manuscripts is open on 5 days of the week, and closed in winter.",
    }
    store, objective, task = await open_task("When is the museum of manuscripts open", texts=texts)

    chosen = await choose(store, objective, task)

    assert sorted(entry.result.task_name for entry in chosen) == ["Other", "Third"]  # of equals the latest


async def test_without_an_embedder_the_context_is_found_by_words():
    store, objective, task = await open_task("Exhibition of medieval manuscripts")
    embed = Embedding()
    embed.error = IndexUnavailableError("no embedder")

    chosen = await choose(store, objective, task, embed=embed)

    assert chosen[0].result.task_name == "Museum"


@pytest.mark.parametrize("query", ["opnening huors of the exhibtion", "exhibitions, manuscript, medievals"])
async def test_misspelt_and_inflected_words_are_found(query):
    store, objective, task = await open_task(query)

    assert (await choose(store, objective, task))[0].result.task_name == "Museum"


async def test_a_word_that_only_one_result_has_is_found_however_many_others_are_nearer():
    texts = {f"Task {n}": f"The quarterly budget of office {n} was approved by the board." for n in range(3 * N_CANDIDATES)}
    texts["Needle"] = "Quenby signed. " + "Nothing else of what was said that day bears on anything that is asked here. " * 5
    store, objective, task = await open_task("The quarterly budget of the office that was approved by the board and by Quenby", texts=texts)

    assert "Needle" in [entry.result.task_name for entry in await choose(store, objective, task)]


# -- cutting -----------------------------------------------------------------------------------------------------------------


def make_result(n, text):
    return Result(task_id=n, objective_id=1, task_name=f"Task {n}", text=text, origins=(), created_at=START)


def test_of_a_long_text_the_passages_that_fit_stay_in_their_order():
    filler = "Nothing of this is about what is asked. " * 40
    text = f"{filler}The bridge was closed in May.\n{filler}It was the flood that closed the bridge. {filler}"

    ((_, cut),) = choose_within([make_result(1, text)], 60, words=Words("why was the bridge closed"))

    assert cut.index("closed in May") < cut.index("the flood")
    assert " … It was the flood" in cut and cut.endswith("…")
    assert len(cut.encode()) <= 240


def test_a_text_without_passages_is_cut_at_its_end():
    ((_, cut),) = choose_within([make_result(1, "x" * 5000)], 60, words=Words("bridge"))

    assert cut == "x" * 237 + "…"


@pytest.mark.parametrize("budget_tokens", [1, 30, 61, 500, 1999])
def test_passages_never_pass_the_budget(budget_tokens):
    results = [make_result(n, "Ein Satz über Brücken. Noch einer… 東京! " * size) for n, size in enumerate([90, 1, 40, 200])]

    chosen = choose_within(results, budget_tokens, words=Words("Brücken"))

    assert sum(len(text.encode()) for _, text in chosen) <= 4 * budget_tokens


async def test_a_result_that_was_read_for_one_task_is_not_read_again_for_the_next():
    store, objective, task = await open_task("Opening hours of the exhibition", parent="Solar")
    search, read = ResultSearch(store, BuiltinIndex(), objective=objective), []
    store_results = store.results

    async def results(objective_id, *, task_ids=None):
        read.extend(task_ids)
        return await store_results(objective_id, task_ids=task_ids)

    store.results = results
    for _ in range(2):
        await choose_context(task, objective=objective, search=search, embed=Embedding(), budget_tokens=1200)

    assert len(read) == len(set(read)) == len(TEXTS)


def test_what_is_dropped_as_a_repetition_is_like_one_that_stays():
    ranked = [RankedResult(result=make_result(n, text), score=0.5) for n, text in enumerate(["One thing.", "one THING", "another thing"])]

    assert [entry.result.task_id for entry in drop_repetitions(ranked, limit=5)] == [0, 2]
    assert [entry.result.task_id for entry in drop_repetitions(ranked, limit=5, beside=[make_result(9, "another thing")])] == [0]
