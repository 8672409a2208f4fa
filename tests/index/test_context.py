"""What a prompt holds of the results: what a task needs and little else, each fact once, within the
budget."""

from dataclasses import replace

import pytest

from babyagi.errors import IndexUnavailableError
from babyagi.index.builtin import BuiltinIndex
from babyagi.index.context import choose_context, choose_for_objective, drop_repetitions, fit
from babyagi.index.hashing import find_words
from babyagi.index.search import N_CANDIDATES, RankedResult, ResultSearch
from babyagi.names import takes_all
from babyagi.tasks import Result
from tests.index.library import START, TEXTS, Embedding, id_by_name, open_library
from tests.index.planted import make_facts


async def choose(store, objective, task, *, embed=None, budget_tokens=4000, lack=""):
    search = ResultSearch(store, BuiltinIndex(), objective=objective)
    chosen, _ = await choose_context(
        task,
        objective=objective,
        search=search,
        embed=embed or Embedding(),
        budget_tokens=budget_tokens,
        lack=lack,
    )
    return chosen


async def open_task(name, *, after=(), parent=None, texts=TEXTS):
    """A library, and a task of this name that comes after the named ones."""
    store, objective = await open_library(texts)
    ids = await id_by_name(store, objective)
    task = replace(
        (await store.tasks(objective.id))[0],
        id=999,
        name=name,
        after=tuple(ids[one] for one in after),
        parent_id=ids.get(parent),
    )
    return store, objective, task


def names(chosen):
    return [entry.result.task_name for entry in chosen]


# -- what is chosen
# --------------------------------------------------------------------------------------------------


async def test_what_a_task_was_derived_from_is_always_in_and_comes_first():
    store, objective, task = await open_task(
        "Opening hours of the exhibition", after=["Tomato", "Bakery"], parent="Solar"
    )

    chosen = await choose(store, objective, task)

    assert [(entry.result.task_name, entry.reason) for entry in chosen[:4]] == [
        ("Bakery", "after"),
        ("Tomato", "after"),
        ("Solar", "parent"),
        ("Museum", "near"),
    ]
    assert all(0 <= entry.score <= 1 and entry.is_whole for entry in chosen)


async def test_a_task_that_comes_after_very_many_is_given_a_piece_of_each():
    texts = {
        f"Task {n}": f"Report {n}. " + f"There is much to say about number {n}. " * 40
        for n in range(30)
    }
    store, objective, task = await open_task("Compare the numbers", after=list(texts), texts=texts)

    chosen = await choose(store, objective, task, budget_tokens=600)

    assert set(names(chosen)) == set(texts)
    assert sum(len(entry.text.encode()) for entry in chosen) <= 2400


CODED = {
    "Find K-12": "The reading of K-12 is 4711.",
    "Find K-121": "The reading of K-121 is 9000. It is near K-12.",
    "Find K-30 from K-12": "K-30 came out as 8822 with K-12.",
    "Describe the weather": "It rained, and K-30 was wet.",
}


async def test_a_code_brings_the_result_that_established_it_and_none_that_only_mentions_it():
    store, objective, task = await open_task("Find K-40 from K-12 and K-30", texts=CODED)

    chosen = await choose(store, objective, task)

    assert set(names(chosen)) == {"Find K-12", "Find K-30 from K-12"}
    assert {entry.reason for entry in chosen} == {"marks"}


async def test_the_lack_of_an_earlier_try_counts_as_much_as_the_name():
    store, objective, task = await open_task("Write the summary", texts=CODED)

    assert names(await choose(store, objective, task)) == []
    assert names(
        await choose(store, objective, task, lack="the reading of K-121 is not among the results")
    ) == ["Find K-121"]


async def test_of_names_in_plain_words_each_input_is_found_though_all_share_their_words():
    texts = {
        "Find the north slope yield": "It is 12.",
        "Find the south slope yield": "It is 13.",
        "Find the north cellar depth": "It is 14.",
        "Find the south cellar depth, using the north slope yield": "It is 15.",
    }
    store, objective, task = await open_task(
        "Work out the ridge load from the south slope yield and the north cellar depth", texts=texts
    )

    chosen = names(await choose(store, objective, task))

    assert set(chosen[:2]) == {"Find the south slope yield", "Find the north cellar depth"}
    assert len(chosen) <= 3


PRICED = {
    "Look up what the Korvo costs": "It costs 300.",
    "Look up what the Fjell costs": "It costs 420.",
    "Look up what the Tamsin costs": "It costs 275.",
    "Look up what the Dorn costs": "It costs 310.",
    "Read the makers' terms": "Returns are free.",
}


@pytest.mark.parametrize(
    "name",
    [
        "Establish the dearest machine of the shortlist",
        "Rank the machines",
        "Say how much the machines come to altogether",
    ],
)
async def test_a_task_over_everything_that_names_no_input_is_given_everything(name):
    store, objective, task = await open_task(name, texts=PRICED)

    assert set(names(await choose(store, objective, task))) == set(PRICED)


async def test_a_task_over_everything_that_tries_again_is_not_given_only_what_it_lacked():
    store, objective, task = await open_task("Rank the machines", texts=PRICED)

    chosen = await choose(store, objective, task, lack="what the Dorn costs")

    assert names(chosen)[0] == "Look up what the Dorn costs"
    assert set(names(chosen)) == set(PRICED)


@pytest.mark.parametrize("name", ["Rank the Korvo and the Fjell", "Describe the shop floor"])
async def test_a_task_that_names_its_inputs_or_compares_nothing_is_given_little(name):
    store, objective, task = await open_task(name, texts=PRICED)

    assert len(await choose(store, objective, task)) <= 3


async def test_the_words_of_the_objective_make_no_result_near():
    texts = {
        "Water": "The lake is deep.",
        "Bread": "The oven is hot.",
        "Other": "The road is long.",
    }
    store, objective, task = await open_task("Measure it", texts=texts)
    about_bread = replace(objective, spec=replace(objective.spec, text="Bake with an oven"))

    assert await choose(store, about_bread, task) == []


async def test_a_task_that_shares_no_word_with_its_parent_is_given_what_the_parent_was_made_from():
    store, objective, task = await open_task("Write the summary", parent="Bakery")
    ids = await id_by_name(store, objective)
    read_task = store.task

    async def task_with_kin(objective_id, task_id):
        return replace(
            await read_task(objective_id, task_id), after=(ids["Leak"],), parent_id=ids["Train"]
        )

    store.task = task_with_kin
    chosen = await choose(store, objective, task)

    assert {(entry.result.task_name, entry.reason) for entry in chosen} == {
        ("Bakery", "parent"),
        ("Leak", "provenance"),
        ("Train", "provenance"),
    }


async def test_repetitions_are_given_once_and_the_same_words_with_another_figure_are_no_repetition():
    texts = {
        "First": "The museum of manuscripts is open on 3 days of the week, and closed in winter.",
        "Other": "The museum of manuscripts is open on 3 days of the week, and closed in winter!",
        "Third": "The museum of manuscripts is open on 5 days of the week, and closed in winter.",
        "Fourth": "The museum of instruments is open on 3 days of the week, and closed in winter.",
    }
    store, objective, task = await open_task(
        "Compare them", after=["First", "Other", "Third", "Fourth"], texts=texts
    )

    # of equals the latest
    assert names(await choose(store, objective, task)) == ["Other", "Third", "Fourth"]


async def test_without_an_embedder_the_context_is_found_by_words():
    store, objective, task = await open_task("Exhibition of medieval manuscripts")
    embed = Embedding()
    embed.error = IndexUnavailableError("no embedder")

    assert names(await choose(store, objective, task, embed=embed))[0] == "Museum"


@pytest.mark.parametrize(
    "query", ["opnening huors of the exhibtion", "exhibitions, manuscript, medievals"]
)
async def test_misspelt_and_inflected_words_are_found(query):
    store, objective, task = await open_task(query)

    assert names(await choose(store, objective, task))[0] == "Museum"


async def test_a_name_that_only_one_result_has_is_found_however_many_others_are_nearer():
    texts = {
        f"Task {n}": f"The quarterly budget of office {n} was approved by the board."
        for n in range(3 * N_CANDIDATES)
    }
    texts["Needle"] = (
        "Quenby signed. "
        + "Nothing else of what was said that day bears on anything that is asked here. " * 5
    )
    store, objective, task = await open_task(
        "The quarterly budget of the office that was approved by the board and by Quenby",
        texts=texts,
    )

    assert "Needle" in names(await choose(store, objective, task))


def test_the_words_of_a_result_are_found_once_however_many_prompts_it_is_compared_for(monkeypatch):
    results = [
        make_result(n, f"The kiln of hall {n} was lit in {1900 + n}, and no one saw it go out.")
        for n in range(3)
    ]
    ranked = [RankedResult(result=result, score=0.5) for result in results]
    found: list[str] = []

    def find(folded):
        found.append(folded)
        return find_words(folded)

    monkeypatch.setattr("babyagi.index.context.find_words", find)

    kept = [drop_repetitions(ranked, limit=3) for _ in range(2)]

    assert kept == [ranked, ranked]
    assert len(found) == len(results)


async def test_a_result_that_was_read_for_one_task_is_not_read_again_for_the_next():
    store, objective, task = await open_task("Opening hours of the exhibition", parent="Solar")
    search, read = ResultSearch(store, BuiltinIndex(), objective=objective), []
    store_results = store.results

    async def results(objective_id, *, task_ids=None):
        read.extend(task_ids)
        return await store_results(objective_id, task_ids=task_ids)

    store.results = results
    for _ in range(2):
        await choose_context(
            task, objective=objective, search=search, embed=Embedding(), budget_tokens=1200
        )

    assert len(read) == len(set(read)) == len(TEXTS)


@pytest.mark.parametrize("surface", ["codes", "words"])
@pytest.mark.parametrize("n_chars", [300, 1500, 7500])
@pytest.mark.parametrize("is_join", [False, True])
async def test_a_prompt_holds_every_value_that_its_task_needs(surface, n_chars, is_join):
    facts = make_facts(surface, n=24, n_chars=n_chars, seed=1, is_join=is_join)
    store, objective = await open_library({fact["name"]: fact["text"] for fact in facts[:-6]})
    ids = await id_by_name(store, objective)
    known = set(range(len(facts) - 6))
    asked = [fact for fact in facts[-6:] if known.issuperset(fact["needs"])]
    assert asked

    for fact in asked:
        task = replace(
            (await store.tasks(objective.id))[0],
            id=999,
            name=fact["name"],
            parent_id=ids[facts[max(fact["needs"])]["name"]],
        )
        chosen = await choose(store, objective, task)

        shown = "\n".join(entry.text for entry in chosen)
        assert [facts[one]["value"] in shown for one in fact["needs"]] == [True] * len(
            fact["needs"]
        )
        assert len(chosen) <= len(fact["needs"]) + 3
        assert len(shown.encode()) <= 4 * 4000 + len(chosen)


# -- a budget
# --------------------------------------------------------------------------------------------------


def make_result(n, text, *, name=None):
    return Result(
        task_id=n,
        objective_id=1,
        task_name=name or f"Task {n}",
        text=text,
        origins=(),
        created_at=START,
    )


def n_bytes(texts):
    return sum(len(text.encode()) for text in texts)


def test_a_text_that_fits_is_not_cut():
    assert fit([make_result(1, "one"), make_result(2, "two")], 400, n_needed=2) == ["one", "two"]


@pytest.mark.parametrize("budget", [0, 1, 12, 200, 244, 2000, 7996])
@pytest.mark.parametrize("n_needed", [0, 2, 6])
@pytest.mark.parametrize(
    "text", ["a", "é", "東", "🦑", "Ein Satz über Brücken. Noch einer… 東京! "]
)
def test_a_budget_is_never_passed(budget, n_needed, text):
    results = [make_result(n, text * size) for n, size in enumerate([300, 10, 500, 40, 400, 90])]

    assert n_bytes(fit(results, budget, n_needed=n_needed, n_always=1)) <= budget


def test_needed_results_are_whole_while_the_budget_lasts_and_near_ones_share_what_is_left():
    # 4,400 bytes each
    results = [make_result(n, f"Sentence {n} of this. " * 220) for n in range(4)]

    first, second, third, near = fit(results, 10_000, n_needed=3)

    assert (first, second) == (results[0].text, results[1].text)
    assert 600 <= len(third) <= 1200 and near == ""
    assert 240 <= len(fit(results, 20_000, n_needed=3)[3]) <= 1500


def test_what_is_dropped_as_a_repetition_is_like_one_that_stays():
    texts = [
        "One thing is said here of the bridge.",
        "one THING is said here of the bridge",
        "another thing is said here of the bridge",
    ]
    ranked = [RankedResult(result=make_result(n, text), score=0.5) for n, text in enumerate(texts)]

    assert [entry.result.task_id for entry in drop_repetitions(ranked, limit=5)] == [0, 2]
    assert [
        entry.result.task_id
        for entry in drop_repetitions(ranked, limit=5, beside=[make_result(9, texts[2])])
    ] == [0]


def test_equal_answers_to_different_questions_are_no_repetition():
    ranked = [
        RankedResult(result=make_result(n, "It is 42.", name=f"Find the {side} yield"), score=0.5)
        for n, side in enumerate("ab")
    ]

    assert len(drop_repetitions(ranked, limit=5)) == 2


@pytest.mark.parametrize(
    ("name", "is_taken"),
    [
        ("Add up all costs", True),
        ("Combine the findings into a JSON list", True),
        ("Merge the lists into one table", True),
        ("Put everything together on one page", True),
        ("Write the final report", True),
        ("Draw up an overview of all results", True),
        ("Fasse alle Ergebnisse zusammen", True),
        ("Additionne tous les coûts", True),
        ("Find the results page of the club", False),
        ("What was the answer to the letter?", False),
        ("Merge branch dev into main", False),
        ("Summarise chapter 3", False),
        ("Find the price of tea", False),
    ],
)
def test_a_name_that_asks_to_combine_the_results_takes_all_of_them(name, is_taken):
    assert takes_all(name) is is_taken


# -- for the objective
# --------------------------------------------------------------------------------------------------

FILLER = "Nothing of this is about what is asked. "


def test_an_objective_is_shown_what_decides_it_whole_and_of_every_other_result_the_best_passage():
    results = [
        make_result(
            n, f"{FILLER * 40}The reading of K-{n} is {n}47. {FILLER * 40}", name=f"Find K-{n}"
        )
        for n in range(1, 31)
    ]

    chosen, left_out = choose_for_objective(
        results, "Find the reading of K-7", budget_tokens=4000, leaf_ids={30}
    )

    assert {entry.result.task_id for entry in chosen if entry.is_whole} >= {7, 30}
    assert chosen[0].reason == "marks"
    assert all(f"{entry.result.task_id}47" in entry.text for entry in chosen)
    assert {entry.result.task_id for entry in chosen} == set(range(1, 31)) and left_out == []
    assert sum(len(entry.text.encode()) for entry in chosen) <= 16_000


@pytest.mark.parametrize("before", [0, 40, 400])
def test_of_a_long_result_a_check_is_shown_what_the_objective_asks_for(before):
    values = [f"The {one} of Kestrel is {n}417 EUR." for n, one in enumerate(("fee", "deposit"), 1)]
    rows = [f"Row {n} of the ledger has {n % 9}00 entries." for n in range(500)]
    text = "\n".join([*rows[:before], *values, *rows[before:]])
    register = make_result(1, text, name="Read the ledger")
    others = [make_result(n, FILLER * 9, name=f"Find K-{n}") for n in range(2, 9)]

    chosen, _ = choose_for_objective(
        [register, *others], "Find the fee and the deposit of Kestrel", budget_tokens=6000
    )

    shown = next(entry.text for entry in chosen if entry.result == register)
    assert all(value in shown for value in values)


def test_what_an_earlier_check_quoted_is_shown_again_however_many_results_came_since():
    rumours = "Some say who lay awake. Others ask who lay awake. " * 10
    quoted = make_result(
        1, f"{FILLER * 99}The lamps burnt until dawn. {FILLER * 99}{rumours}", name="Ask the keeper"
    )
    later = [
        make_result(n, f"The reading of K-{n} is {n}47. {FILLER * 9}", name=f"Find K-{n} at dawn")
        for n in range(2, 90)
    ]

    def shown(proven):
        chosen, _ = choose_for_objective(
            [quoted, *later], "Find K-7 and who lay awake", budget_tokens=3000, proven=proven
        )
        assert sum(len(entry.text.encode()) for entry in chosen) <= 12_000
        return {entry.result.task_id: entry.text for entry in chosen}

    assert "The lamps burnt" not in shown({}).get(1, "")
    assert "The lamps burnt until dawn." in shown({1: "lamps burnt until dawn"})[1]


def test_unread_results_are_shown_whole_beside_the_quoted_passages_of_the_others():
    results = [
        make_result(n, f"{FILLER * 180}The lamp burnt {n}47 hours. {FILLER * 8}", name=f"Ask {n}")
        for n in range(1, 7)
    ]

    chosen, left_out = choose_for_objective(
        results,
        "Find the reading of K-7",
        budget_tokens=6000,
        proven={1: "burnt 147 hours", 2: "burnt 247 hours"},
        unread={3, 5},
    )

    assert [one.result.task_id for one in chosen if one.is_whole] == [5, 3]
    by_id = {one.result.task_id: one.text for one in chosen}
    assert "147" in by_id[1] and "247" in by_id[2] and len(by_id[1].encode()) <= 600
    assert sum(len(one.text.encode()) for one in chosen) <= 24_000 and left_out == []


def test_what_does_not_fit_at_all_is_named_and_a_repetition_is_not():
    results = [
        make_result(
            n, f"{FILLER * 40}The reading of K-{n} is {n}47. {FILLER * 40}", name=f"Find K-{n}"
        )
        for n in range(1, 31)
    ]
    again = make_result(31, results[6].text, name="Find K-7 again")

    chosen, left_out = choose_for_objective(
        [*results, again], "Find the reading of K-7", budget_tokens=1000
    )

    shown = [entry.result.task_id for entry in chosen]
    assert 31 in shown and 7 not in shown
    assert sorted([*shown, *(result.task_id for result in left_out)]) == [
        *range(1, 7),
        *range(8, 32),
    ]
