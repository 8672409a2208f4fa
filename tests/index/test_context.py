"""What a prompt holds of the results: what a task needs and little else, each fact once, within the
budget."""

from dataclasses import replace

import pytest

from babyagi.errors import IndexUnavailableError
from babyagi.index.builtin import BuiltinIndex
from babyagi.index.context import choose_context, choose_for_objective, fit
from babyagi.index.search import N_CANDIDATES, ResultSearch, drop_equals
from babyagi.tasks import Result
from tests.index.library import START, TEXTS, Embedding, id_by_name, open_library
from tests.index.planted import make_facts


async def choose(
    store, objective, task, *, embed=None, budget_tokens=4000, lacks=(), shown_before=()
):
    search = ResultSearch(store, BuiltinIndex(), objective=objective)
    chosen, _ = await choose_context(
        task,
        search=search,
        embed=embed or Embedding(),
        budget_tokens=budget_tokens,
        lacks=lacks,
        shown_before=shown_before,
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
    assert [entry.score for entry in chosen[:3]] == [None] * 3
    assert 0 < chosen[3].score <= 1 and all(entry.is_whole for entry in chosen)


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


async def test_what_all_earlier_tries_lacked_counts_as_much_as_the_name():
    store, objective, task = await open_task("Write the summary", texts=CODED)

    chosen = await choose(
        store, objective, task, lacks=["the reading of K-121 is missing", "the reading of K-12"]
    )

    assert set(names(chosen)) == {"Find K-121", "Find K-12"}


async def test_what_earlier_tries_were_shown_is_given_again_after_what_the_task_depends_on():
    store, objective, task = await open_task("Find K-40", after=["Find K-12"], texts=CODED)
    ids = await id_by_name(store, objective)
    shown = {ids["Describe the weather"], ids["Find K-12"]}

    chosen = await choose(store, objective, task, lacks=["K-121"], shown_before=shown)

    assert [(entry.result.task_name, entry.reason) for entry in chosen] == [
        ("Find K-12", "after"),
        ("Describe the weather", "before"),
        ("Find K-121", "marks"),
    ]


async def test_of_results_with_the_same_mark_the_one_that_is_meant_is_given():
    texts = {
        "Find the height of the north tower of Oster": "It is 12.",
        "Find the height of the south tower of Oster": "It is 13.",
        "Find the height of the north tower of Vell": "It is 14.",
        "Find the depth of the well of Oster": "It is 15.",
    }
    store, objective, task = await open_task(
        "Compare the tower of Vell with the height of the south tower of Oster", texts=texts
    )

    chosen = names(await choose(store, objective, task))

    assert "Find the height of the south tower of Oster" in chosen
    assert "Find the height of the north tower of Vell" in chosen
    assert "Find the depth of the well of Oster" not in chosen


async def test_a_mark_of_very_many_results_brings_none_of_them():
    texts = {f"Read page {'x' * n} of Oster": f"Nothing {'x' * n} is there." for n in range(1, 20)}
    store, objective, task = await open_task("Describe Oster", texts=texts)

    assert "marks" not in {entry.reason for entry in await choose(store, objective, task)}


PRICED = {
    "Look up what the Korvo costs": "It costs 300.",
    "Look up what the Fjell costs": "It costs 420.",
    "Look up what the Tamsin costs": "It costs 275.",
    "Look up what the Dorn costs": "It costs 310.",
    "Read the makers' terms": "Returns are free.",
}


@pytest.mark.parametrize("name", ["Write it all down", "まとめを書く"])
async def test_a_task_for_which_nothing_is_found_is_given_everything_that_fits(name):
    store, objective, task = await open_task(name, texts=PRICED)

    chosen = names(await choose(store, objective, task))

    assert chosen == list(PRICED)[::-1]
    assert len(await choose(store, objective, task, budget_tokens=12)) < len(PRICED)


async def test_a_task_that_names_its_inputs_is_given_little():
    store, objective, task = await open_task("Rank the Korvo and the Fjell", texts=PRICED)

    assert set(names(await choose(store, objective, task))) == set(list(PRICED)[:2])


async def test_results_of_equal_spelling_are_given_once_and_the_newest_of_them():
    text = "The museum of K-7 is open on {} days of the week, and closed in winter. " * 4
    texts = {
        "First": text.format(3, 3, 3, 3),
        "Other": text.format(3, 3, 3, 3).upper(),
        "Third": text.format(5, 5, 5, 5),
    }
    store, objective, task = await open_task("Visit K-7", texts=texts)

    assert set(names(await choose(store, objective, task))) <= {"Other", "Third"}


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


async def test_a_result_that_was_read_for_one_task_is_not_read_again_for_the_next():
    store, objective, task = await open_task("Opening hours of the exhibition", parent="Solar")
    search, read = ResultSearch(store, BuiltinIndex(), objective=objective), []
    store_results = store.results

    async def results(objective_id, *, task_ids=None):
        read.extend(task_ids)
        return await store_results(objective_id, task_ids=task_ids)

    store.results = results
    for _ in range(2):
        await choose_context(task, search=search, embed=Embedding(), budget_tokens=1200)

    assert len(read) == len(set(read)) == len(TEXTS)


@pytest.mark.parametrize(
    ("surface", "is_join"), [("codes", False), ("codes", True), ("words", False)]
)
@pytest.mark.parametrize("n_chars", [300, 1500, 7500])
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

    assert n_bytes(fit(results, budget, n_needed=n_needed)) <= budget


def test_short_needed_results_are_whole_and_the_long_ones_share_what_is_left():
    short = make_result(0, "It is short.")
    # 4,400 bytes each
    long = [make_result(n, f"Sentence {n} of this. " * 220) for n in range(1, 4)]

    first, second, third, near = fit([*long[:2], short, long[2]], 6_000, n_needed=3)

    assert third == short.text
    assert all(2_400 < len(text.encode()) < 3_000 for text in (first, second)) and near == ""
    assert 240 <= len(fit([*long[:2], short, long[2]], 20_000, n_needed=3)[3]) <= 1500


def test_what_is_dropped_as_a_repetition_is_spelled_like_one_that_stays():
    said = "Something is said here at length of the bridge, of its piers and of its arches. " * 4
    texts = [said, said.upper(), said.replace("bridge", "ferry")]
    results = [make_result(n, text) for n, text in enumerate(texts)]

    assert [one.task_id for one in drop_equals(results)] == [0, 2]
    assert [one.task_id for one in drop_equals(results, beside=[make_result(9, texts[2])])] == [0]


def test_equal_answers_to_different_questions_are_no_repetition():
    results = [
        make_result(n, "It is 42.", name=f"Find the {side} yield") for n, side in enumerate("ab")
    ]

    assert len(drop_equals(results)) == 2


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
