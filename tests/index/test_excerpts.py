"""A cut result keeps what it found."""

import pytest

from babyagi.index.excerpts import MAX_CUT_CHARS, cut_result
from babyagi.tasks import Result
from tests.index.library import START

FILLER = "Nothing of this is about what is asked. "


def make_result(text, *, name="Why was the bridge closed"):
    return Result(
        task_id=1, objective_id=1, task_name=name, text=text, origins=(), created_at=START
    )


def test_the_passages_that_fit_best_stay_in_their_order():
    text = (
        f"{FILLER * 40}The bridge was closed in May.\n{FILLER * 40}It was the flood that "
        f"closed the bridge. {FILLER * 40}"
    )

    cut = cut_result(make_result(text), 240)

    assert cut.index("closed in May") < cut.index("the flood")
    assert "… It was the flood" in cut and cut.endswith("…")
    assert len(cut.encode()) <= 240


@pytest.mark.parametrize("behind", [0, 1000])
def test_what_the_reader_asks_is_found_at_the_end_of_a_very_long_result(behind):
    rows = "".join(f"Row {n} of the ledger has {n % 9}00 entries.\n" for n in range(4000))
    text = rows + "The fee of Kestrel is 4217 EUR.\n" + rows[:behind]

    cut = cut_result(make_result(text, name="Read"), 600, task_name="Find the fee of Kestrel")

    assert "The fee of Kestrel is 4217 EUR." in cut


@pytest.mark.parametrize("before", [0, 30, 60])
def test_a_value_stays_although_the_reader_asks_for_what_comes_next(before):
    text = (
        FILLER * before
        + "The yield of K-7 is 4711. Next, find the load of K-8 from the yield of K-7. "
        + FILLER * (60 - before)
    )

    cut = cut_result(
        make_result(text, name="Find the yield of K-7"),
        240,
        task_name="Find the load of K-8, which needs the slope of K-9",
    )

    assert "4711" in cut


def test_a_value_that_its_sentence_does_not_name_stays_with_the_sentence_before():
    text = f"{FILLER * 30}The mill of Oster was measured twice. It is 14 m high. {FILLER * 30}"

    assert "14 m" in cut_result(make_result(text, name="Measure the mill of Oster"), 200)


def test_a_row_of_a_table_brings_its_first_row_and_its_heading():
    rows = "\n".join(f"| Town {n} | {n * 37} | {n * 53} |" for n in range(100))
    text = (
        f"{FILLER * 10}\n## Levels of the towns\n| Town | Low | High |\n| --- | --- | --- "
        f"|\n{rows}\n{FILLER * 10}"
    )

    cut = cut_result(make_result(text, name="Find the levels of Town 61"), 200)

    assert "| Town 61 | 2257 | 3233 |" in cut
    assert "## Levels of the towns\n| Town | Low | High |" in cut


def test_a_text_without_passages_is_cut_anywhere():
    assert cut_result(make_result("x" * 4800), 240) == "x" * 237 + "…"


@pytest.mark.parametrize("max_bytes", [0, 1, 3, 10, 50, 240, 1000])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "é" * 900,
        "東京。" * 500,
        "a b. " * 900,
        "| a | b |\n" * 300,
        "# " * 900,
        "\ud800. " * 900,
        "\n" * 2000,
    ],
)
def test_a_bound_is_never_passed(max_bytes, text):
    assert (
        len(cut_result(make_result(text), max_bytes, task_name="東京 a").encode("utf-8", "replace"))
        <= max_bytes
    )


def test_what_lies_behind_the_part_that_is_looked_at_is_marked():
    text = "The bridge was closed. " + "a " * MAX_CUT_CHARS

    assert cut_result(make_result(text), 300).endswith("…")
