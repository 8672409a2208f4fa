"""How much of what is asked stands in a text, whatever its script, its length and what it is
beside."""

import pytest

from babyagi.index.trigrams import MAX_PIECES, Words


def best(asked, *texts):
    scores = Words(asked).score(texts)
    return texts[scores.index(max(scores))]


@pytest.mark.parametrize(
    ("asked", "right", "other"),
    [
        ("opnening huors", "The opening hours are long.", "The open house is near."),
        ("réservoirs d'été", "LE RÉSERVOIR EST PLEIN EN ÉTÉ.", "Le repas est servi."),
        ("ледник растаял", "Ледники растаяли весной.", "Леденец растворился."),
        ("東京の橋", "昨日、東京の橋が閉鎖された。", "昨日、京都の寺が閉鎖された。"),
        ("𝔖alt 😀 mine", "salt 😀 mine.", "malt, vine."),
    ],
)
def test_a_text_with_more_of_the_query_scores_higher(asked, right, other):
    assert best(asked, other, right) == right


def test_words_in_one_passage_score_higher_than_scattered_ones():
    filler = "Nothing is said here. " * 5
    together = f"{filler}The bridge was closed in May. {filler}"
    scattered = f"The bridge is old. {filler}The shop was closed. {filler}It rained in May. "

    assert best("bridge closed in May", scattered, together) == together


def test_a_piece_of_every_text_counts_when_what_is_rare_among_them_was_not_asked_for():
    """Where most candidates were brought by the same words, the rest of the question must not
    outweigh them."""
    right = "Find out what the lake trail costs in a year, wages and taxes included."
    texts = [
        f"Find out what the {name} costs in a year, wages and taxes included."
        for name in ("lime kiln", "old mill", "tram line", "salt mine") * 20
    ]
    mentions = ["Compared with the lake trail, little is known."] * 20

    assert (
        best(
            (
                "Verify and compare: find out what the lake trail costs in a year, wages and "
                "taxes included"
            ),
            *mentions,
            *texts,
            right,
        )
        == right
    )


def test_equal_texts_have_equal_scores_wherever_they_stand():
    assert len({round(score, 6) for score in Words("the same").score(["The same."] * 5)}) == 1


@pytest.mark.parametrize(
    "texts", [[], [""], ["", "\n\n", "...", "\ud800", "a"], ["word " * 20_000, "x" * 100_000]]
)
@pytest.mark.parametrize(
    "asked", ["", "!", "a", "word", "\ud800 x", " ".join(f"word{n}" for n in range(MAX_PIECES))]
)
def test_whatever_is_compared_gets_a_score_from_0_to_1(asked, texts):
    scores = Words(asked).score(texts)

    assert len(scores) == len(texts) and all(0 <= score <= 1 for score in scores)
