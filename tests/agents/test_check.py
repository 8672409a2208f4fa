"""What a check's reply shows: parts whose quotes stand in results, and nothing else."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from babyagi.agents.check import (
    MAX_TEXT_CHARS,
    look_up,
    parse_check,
    settle,
)
from babyagi.errors import MalformedReplyError
from babyagi.tasks import CheckedPart, Result
from babyagi.taskstore.nouns import Checked

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
        CheckedPart(part=part, task_id=task_id, quote=quote) for part, task_id, quote in parts
    )
    return Checked(is_met=is_met, parts=named, missing=tuple(missing))


def check(*parts, **more):
    return look_up(reply(*parts, **more), RESULTS, objective_text=OBJECTIVE)


def test_an_objective_is_met_when_every_quote_stands_in_a_result():
    checked = check(("K-30", 3, "K-30 = 4711-QX"), ("the licence", 5, "BSD-3-Clause"))

    assert checked.is_met
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
    assert check(("K-30", 3, quote)).is_met


def test_a_quote_that_stands_in_another_result_counts_for_that_one():
    checked = check(("the licence", 3, "BSD-3-Clause"))

    assert [part.task_id for part in checked.parts] == [5]


@pytest.mark.parametrize("quote", ["K-30 = 4711-ZZ", "4711-Q", "", "…", "as of May … Page 4"])
def test_a_part_whose_quote_stands_in_no_result_is_not_proven_and_not_missing(quote):
    checked = check(("the part", 3, quote))

    assert not checked.is_met
    assert (checked.unproven, checked.missing) == (("the part",), ())


@pytest.mark.parametrize("task_id", [0, 4])
def test_a_part_is_missing_if_no_result_is_named_and_no_result_holds_its_quote(task_id):
    checked = check(("the part", task_id, "4711-ZZ"))

    assert not checked.is_met
    assert (checked.unproven, checked.missing) == ((), ("the part",))


def test_a_part_that_one_of_two_checks_proves_is_proven():
    proven, unproven = check(BOTH[0], is_met=False), check((BOTH[0][0], 5, "?"), is_met=False)

    for views in ((proven, unproven), (unproven, proven)):
        assert verdict(*views).parts == proven.parts


def test_a_part_that_one_of_two_quotes_proves_is_proven():
    found = check(*BOTH, (BOTH[0][0], 5, "?"))

    assert found.is_met and not found.unproven


@pytest.mark.parametrize(
    ("text", "quote", "origins", "is_met"),
    [
        ("The list was read. Kaldi is the one.", "Kaldi is the one", ("file:a.md",), True),
        ("Kaldi.", "Kaldi", ("file:a.md",), True),
        ("Which is cheaper, Norden or Kaldi? It is met.", "Norden or Kaldi", ("web:x",), False),
        ("Which is cheaper, Norden or Kaldi? It is met.", "cheaper", ("tool:fetch",), False),
        ("Kaldi is cheaper, as everybody knows.", "Kaldi is cheaper", (), True),
    ],
)
def test_a_quote_from_outside_says_more_than_the_objective_or_is_the_whole_result(
    text, quote, origins, is_met
):
    results = [replace(result(3, text), origins=("model:m", *origins))]

    found = look_up(
        reply(("the choice", 3, quote)),
        results,
        objective_text="Which is cheaper, Norden or Kaldi?",
    )

    assert found.is_met == is_met


def test_a_deed_is_shown_only_by_a_task_that_called_a_tool_with_an_effect():
    said = Checked(
        is_met=True,
        parts=(CheckedPart(part="send it", task_id=3, quote="was sent", is_deed=True),),
    )
    told = replace(result(3, "The letter was sent to all."), origins=("model:m", "file:a.md"))
    done = replace(told, origins=("model:m", "tool:send_mail"))

    def is_met(one):
        doers = {"tool:send_mail"}
        return look_up(said, [one], objective_text="Send the letter", doers=doers).is_met

    assert is_met(done) and not is_met(told)


def test_met_needs_a_part_and_nothing_missing():
    assert not check().is_met
    assert not check(("K-30", 3, "4711-QX"), missing=["the licence"]).is_met
    assert not check(("K-30", 3, "4711-QX"), is_met=False).is_met


def test_a_no_that_names_nothing_makes_nothing_up():
    assert check(is_met=False).missing == ()


# -- several checks of the same results
# -----------------------------------------------------------------------------------


BOTH = (("the value of K-30", 3, "4711-QX"), ("the licence of Flask", 5, "BSD-3-Clause"))
MET = check(*BOTH)
NO_LICENCE = check(BOTH[0], missing=["the licence of Flask"], is_met=False)


def verdict(*views):
    settled = settle(views)
    assert settled is not None
    return settled


def test_two_checks_that_agree_settle_it():
    found = verdict(MET, MET)

    assert found.is_met and [part.part for part in found.parts] == [one[0] for one in BOTH]
    assert verdict(NO_LICENCE, NO_LICENCE).missing == ("the licence of Flask",)


def test_where_two_checks_disagree_a_third_decides():
    assert settle([MET, NO_LICENCE]) is None
    assert verdict(MET, NO_LICENCE, MET).is_met
    assert not verdict(MET, NO_LICENCE, NO_LICENCE).is_met


def test_a_contradiction_that_the_last_check_still_names_stays():
    contradicting = replace(MET, contradictions=("tasks 3, 5: the price",))

    assert verdict(contradicting, MET).contradictions == ()
    assert verdict(MET, contradicting).contradictions == ("tasks 3, 5: the price",)


# -- reading a reply, and what the program looks up for it
# -----------------------------------------------------------------------------------


def test_a_reply_names_parts_what_is_missing_and_what_is_contradictory():
    said = parse_check(
        'My verdict: {"parts": [{"part": "the price", "task": 3, "quote": "4 EUR", "deed": false}],'
        ' "missing": ["the weight"], "contradictions": [{"tasks": [3, 5], "about": "the price"}],'
        ' "met": true}'
    )

    assert said.parts == (CheckedPart(part="the price", task_id=3, quote="4 EUR"),)
    assert (said.missing, said.contradictions) == (("the weight",), ("tasks 3, 5: the price",))
    assert not said.is_met


@pytest.mark.parametrize("text", ["", "Yes, it is met.", '{"parts": []}', "[]"])
def test_a_reply_that_says_nothing_of_met_is_asked_for_again(text):
    with pytest.raises(MalformedReplyError):
        parse_check(text)


@pytest.mark.parametrize("quote", ["东京", "首都是东京", "K-30 的数值为 7.3 千焦。", "7.3", "BSD"])
def test_a_quote_in_a_script_without_spaces_is_found_anywhere(quote):
    made = result(3, "日本的首都是东京。K-30 的数值为 7.3 千焦。Flask采用BSD许可证")

    found = look_up(reply(("a part", 3, quote)), [made], objective_text=OBJECTIVE)

    assert (found.is_met, [part.quote for part in found.parts]) == (True, [quote])


def test_a_long_quote_may_end_within_a_word_where_the_bound_of_the_reply_cut_it_off():
    text = "So: " + "Old customers keep their price, as the letter of the company says. " * 6
    cut = text[:MAX_TEXT_CHARS]
    assert cut.endswith(" company s")

    found = look_up(
        reply(("prices", 7, cut)), [result(7, text)], objective_text="What about prices?"
    )

    assert found.is_met


@pytest.mark.parametrize("quote", ["7.3 k", "SD", "30"])
def test_a_quote_cuts_through_no_word_where_words_have_spaces(quote):
    made = result(3, "It is 7.3 kJ, BSD, 4300")

    assert not look_up(reply(("a part", 3, quote)), [made], objective_text=OBJECTIVE).is_met
