"""What a check's reply shows: parts whose quotes stand in results, and nothing else."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from babyagi.agents.check import (
    MAX_TEXT_CHARS,
    CheckReply,
    CheckReplyPart,
    look_up,
    settle,
    still_shown,
)
from babyagi.tasks import Result

OBJECTIVE = "Find the value of K-30 and the licence of Flask"


def result(task_id, text):
    return Result(
        task_id=task_id,
        objective_id=1,
        task_name="a task",
        text=text,
        origins=(),
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


RESULTS = [
    result(3, "Page 4 says: K-30 = 4711-QX, as of May."),
    result(5, "Flask is published under the “BSD-3-Clause” licence."),
]


def reply(*parts, missing=(), is_met=True):
    named = tuple(
        CheckReplyPart(part=part, task_id=task_id, quote=quote) for part, task_id, quote in parts
    )
    return CheckReply(
        is_met=is_met,
        parts=named,
        missing=tuple(missing),
        is_readable=True,
        reason="; ".join(missing),
    )


def check(*parts, **more):
    return look_up(reply(*parts, **more), RESULTS, objective_text=OBJECTIVE)


def test_an_objective_is_met_when_every_quote_stands_in_a_result():
    is_met, checked = check(("K-30", 3, "K-30 = 4711-QX"), ("the licence", 5, "BSD-3-Clause"))

    assert is_met
    assert [(part.part, part.task_id) for part in checked.parts] == [
        ("K-30", 3),
        ("the licence", 5),
    ]
    assert checked.missing == ()


@pytest.mark.parametrize(
    "quote",
    [
        "k-30 =  4711-qx",
        '"K-30 = 4711-QX"',
        "K-30 = 4711-QX …",
        "Page 4 … 4711-QX",
        "Page 4 says ... as of May.",
    ],
)
def test_a_quote_may_differ_in_case_blanks_quotation_marks_and_gaps(quote):
    assert check(("K-30", 3, quote))[0]


def test_a_quote_that_stands_in_another_result_counts_for_that_one():
    _, checked = check(("the licence", 3, "BSD-3-Clause"))

    assert [part.task_id for part in checked.parts] == [5]


@pytest.mark.parametrize(
    "quote",
    ["K-30 = 4711-ZZ", "4711-Q", "", "…", "as of May … Page 4", "K-30", "the licence", "Flask"],
)
def test_a_quote_that_does_not_stand_there_or_only_names_what_was_asked_does_not_count(quote):
    is_met, checked = check(("the part", 3, quote))

    assert not is_met
    assert checked.missing == ("the part",)


@pytest.mark.parametrize(
    ("asked", "quote", "origins", "is_met"),
    [
        ("Which is cheaper, Norden or Kaldi?", "Kaldi is cheaper", (), True),
        ("Which is cheaper, Norden or Kaldi?", "Kaldi", (), True),
        ("Which is cheaper, Norden or Kaldi?", "Kaldi is cheaper", ("file:a.md",), True),
        ("Which is cheaper, Norden or Kaldi?", "Kaldi", ("file:a.md",), False),
        ("Which is cheaper, Norden or Kaldi?", "Norden or Kaldi", (), False),
        ("Which is cheaper, Norden or Kaldi?", "cheaper", (), False),
        ("Should we use SQLite or PostgreSQL for it?", "use SQLite", ("file:a.md",), True),
        ("Ist Norden oder Kaldi billiger?", "Kaldi ist billiger", ("file:a.md",), True),
        ("Which burnt first, the mill, the barn or the gate?", "the barn", (), True),
        ("Is it Kaldi Nord or Kaldi Süd that pays?", "Kaldi Süd pays", (), True),
        ("Is it Kaldi Nord or Kaldi Süd that pays?", "Kaldi", (), False),
        ("Find the price of tea or coffee", "coffee", (), False),
    ],
)
def test_one_of_the_alternatives_of_a_question_answers_it(asked, quote, origins, is_met):
    results = [replace(result(3, f"The lists were read. {quote}. That was all."), origins=origins)]

    found, _ = look_up(reply(("the choice", 3, quote)), results, objective_text=asked)

    assert found == is_met


@pytest.mark.parametrize(
    ("text", "is_met"),
    [
        ("Kaldi. It is 12 euros below Norden, so Kaldi is cheaper.", True),
        ("Norden: 48 EUR; Kaldi: 36 EUR. Kaldi is the cheaper one.", True),
        ("Norden is cheaper. The list begins with Kaldi.", False),
        ("Kaldi and Norden were read. Which one is cheaper was determined.", False),
        ("Kaldi. That Kaldi is cheaper was determined, so the objective is met.", False),
    ],
)
def test_a_bare_alternative_from_a_file_counts_where_its_result_says_so_of_it(text, is_met):
    asked, results = "Which is cheaper, Norden or Kaldi?", [result(3, text)]
    results = [replace(results[0], origins=("model:m", "file:offers.md"))]

    found, _ = look_up(reply(("the choice", 3, "Kaldi")), results, objective_text=asked)

    assert found == is_met


@pytest.mark.parametrize(
    ("asked", "text", "quote", "origins", "is_met"),
    [
        ("Compute 2+2", "4", "4", ("tool:calculator",), True),
        ("Compute 2+2", "4", "4.", ("tool:run_python",), True),
        ("Compute 2-0", "2", "2", ("tool:calculator",), True),
        ("Compute 2-0", "2", "2", ("tool:calculator", "file:a.txt"), False),
        ("Compute 2-0", "2", "2", (), False),
        ("How many rows are there?", "4", "4", ("tool:run_python", "file:a.csv"), True),
        ("Compute 2+2", "2 + 2 = 4", "4", ("tool:calculator",), True),
        ("Compute 2+2", "2 + 2 = 4", "4", ("tool:calculator", "file:a.txt"), False),
        ("Compute 2+2", "2 + 2 = 40", "4", ("tool:calculator",), False),
        ("Compute 2+2", "2+2", "2", ("tool:calculator",), False),
        ("Compute the sum", "the sum", "the sum", ("tool:calculator",), False),
    ],
)
def test_a_bare_number_that_was_computed_is_an_answer(asked, text, quote, origins, is_met):
    made = replace(result(3, text), origins=origins)

    assert look_up(reply(("it", 3, quote)), [made], objective_text=asked)[0] is is_met


def test_met_needs_a_part_and_nothing_missing():
    assert not check()[0]
    assert not check(("K-30", 3, "4711-QX"), missing=["the licence"])[0]
    assert not check(("K-30", 3, "4711-QX"), is_met=False)[0]


def test_a_no_that_names_nothing_makes_nothing_up():
    assert check(is_met=False)[1].missing == ()


# -- two checks, and a third where they disagree
# -----------------------------------------------------------------------------------


BOTH = (("the value of K-30", 3, "4711-QX"), ("the licence of Flask", 5, "BSD-3-Clause"))
MET = check(*BOTH)
NO_LICENCE = check(BOTH[0], missing=["no result gives the licence of Flask"], is_met=False)
NOTHING = check(missing=["the value of K-30", "the licence of Flask"], is_met=False)


def test_two_checks_that_find_it_met_settle_it():
    settled = settle([MET, MET])

    assert settled.is_met and [part.part for part in settled.checked.parts] == [
        "the value of K-30",
        "the licence of Flask",
    ]


def test_what_two_checks_miss_is_missing_once_whatever_their_words():
    settled = settle([NO_LICENCE, check(BOTH[0], missing=["the licence of Flask"], is_met=False)])

    assert (
        not settled.is_met
        and settled.checked.missing == ("no result gives the licence of Flask",)
        and not settled.contested
    )


@pytest.mark.parametrize(
    "views", [[MET, NO_LICENCE], [NO_LICENCE, MET], [NO_LICENCE, check(BOTH[1], is_met=True)]]
)
def test_what_one_check_misses_and_another_shows_is_contested(views):
    settled = settle(views)

    assert (
        not settled.is_met
        and not settled.checked.missing
        and settled.contested == ("no result gives the licence of Flask",)
    )


def test_a_third_check_decides_what_is_contested():
    assert settle([NO_LICENCE, MET, MET]).is_met
    assert settle([NO_LICENCE, MET, NOTHING]).checked.missing == (
        "no result gives the licence of Flask",
    )


def test_the_previous_check_counts_as_one_more_check():
    known = MET[1].parts

    assert settle([NO_LICENCE, MET], known).is_met
    assert settle([NO_LICENCE, NO_LICENCE], known).contested
    assert settle([NO_LICENCE, NO_LICENCE, NO_LICENCE], known).checked.missing
    assert [
        part.part for part in settle([NO_LICENCE, NO_LICENCE, NO_LICENCE], known).checked.parts
    ] == ["the value of K-30"]


def test_a_part_whose_quote_stands_in_its_result_no_more_is_not_known():
    assert still_shown(MET[1].parts, RESULTS, objective_text=OBJECTIVE) == MET[1].parts
    assert [
        part.part for part in still_shown(MET[1].parts, RESULTS[:1], objective_text=OBJECTIVE)
    ] == ["the value of K-30"]


def test_a_part_that_nearly_says_the_same_is_no_answer_to_another():
    def view(is_met, *missing):
        return check(
            ("the slope with most old trees", 3, "4711-QX"), missing=missing, is_met=is_met
        )

    views = [view(False, "no result answers this: the old trees of all slopes")] * 3

    assert settle(views[:2]).checked.missing and settle(views).checked.missing
    assert not settle(views).is_met


def test_two_parts_are_two_though_they_are_missed_in_the_same_words():
    view = check(
        missing=[
            "no result answers this: the value of K-30",
            "no result answers this: the licence of Flask",
        ],
        is_met=False,
    )

    assert len(settle([view, view]).checked.missing) == 2


def test_where_something_is_surely_missing_nothing_else_is_contested():
    settled = settle(
        [NO_LICENCE, check(missing=["the licence of Flask", "the value of K-30"], is_met=False)]
    )

    assert (
        settled.checked.missing == ("no result gives the licence of Flask",)
        and not settled.contested
    )


def test_a_check_that_names_neither_a_part_nor_what_is_missing_settles_nothing():
    assert not settle([check(is_met=False), check(is_met=False)]).is_met
    assert not settle([MET, check(is_met=False)]).is_met


@pytest.mark.parametrize("quote", ["东京", "首都是东京", "K-30 的数值为 7.3 千焦。", "7.3", "BSD"])
def test_a_quote_in_a_script_without_spaces_is_found_anywhere(quote):
    made = result(3, "日本的首都是东京。K-30 的数值为 7.3 千焦。Flask采用BSD许可证")

    is_met, found = look_up(reply(("a part", 3, quote)), [made], objective_text=OBJECTIVE)

    assert (is_met, [part.quote for part in found.parts]) == (True, [quote])


def test_a_long_quote_may_end_within_a_word_where_the_bound_of_the_reply_cut_it_off():
    text = "So: " + "Old customers keep their price, as the letter of the company says. " * 6
    cut = text[:MAX_TEXT_CHARS]
    assert cut.endswith(" pri")

    is_met, _ = look_up(
        reply(("prices", 7, cut)), [result(7, text)], objective_text="What about prices?"
    )

    assert is_met


@pytest.mark.parametrize("quote", ["7.3 k", "SD", "30"])
def test_a_quote_cuts_through_no_word_where_words_have_spaces(quote):
    made = result(3, "It is 7.3 kJ, BSD, 4300")

    assert not look_up(reply(("a part", 3, quote)), [made], objective_text=OBJECTIVE)[0]
