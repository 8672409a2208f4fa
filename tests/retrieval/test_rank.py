import pytest
from hypothesis import given
from hypothesis import strategies as st

from babyagi.retrieval.rank import Scored, rank, split_parts, top_p

CITIES = ["Paris is the capital of France.", "Oslo is in Norway.", "The capital of Peru is Lima."]


def test_the_text_with_the_rare_words_of_the_question_comes_first():
    ranked = rank("What is the capital of Peru?", CITIES)

    assert [one.index for one in ranked] == [2, 0, 1]
    assert sum(one.share for one in ranked) == pytest.approx(1)


def test_forms_of_a_word_are_one_word():
    assert rank("backup", ["About parking.", "Backups are kept."])[0].index == 1


def test_a_question_that_nothing_bears_on_ranks_nothing():
    assert rank("zebra", CITIES) == rank("", CITIES) == rank("x", []) == []


@pytest.mark.parametrize(
    ("p", "kept"), [(0.0, 1), (0.5, 1), (0.51, 2), (0.8, 2), (0.81, 3), (0.95, 3), (1.0, 4)]
)
def test_top_p_keeps_the_smallest_number_whose_shares_reach_p(p, kept):
    ranked = [
        Scored(index=at, score=share, share=share)
        for at, share in enumerate((0.5, 0.3, 0.15, 0.05))
    ]

    assert [one.index for one in top_p(ranked, p)] == list(range(kept))
    assert top_p([], p) == []


def test_a_text_is_split_at_its_paragraphs_under_their_headings():
    parts = split_parts("intro\n\n# Ops\n\n## Backups\n\nNightly.\n\nKept.\n\n# Home\n\nParking.")

    assert [(part.headings, part.text) for part in parts] == [
        ((), "intro"),
        (("Ops", "Backups"), "Nightly.\n\nKept."),
        (("Home",), "Parking."),
    ]


@given(st.text(alphabet="ab .\n#", max_size=400), st.integers(5, 60))
def test_a_part_has_at_most_its_length_and_no_word_is_lost(text, max_chars):
    parts = split_parts(text, max_chars=max_chars)

    assert all(len(part.text) <= max_chars + 2 for part in parts)
    joined = "".join(part.text for part in parts)
    assert joined.count("a") <= text.count("a")
    if "#" not in text:
        assert joined.count("a") == text.count("a")


def test_headings_with_nothing_below_them_are_parts():
    parts = split_parts("# News\n\n## Rain\n\n## Snow\n\nIt snows.\n\n## Sun")

    assert [(part.headings, part.text) for part in parts] == [
        (("News",), "Rain"),
        (("News", "Snow"), "It snows."),
        (("News",), "Sun"),
    ]


def test_what_stands_between_paragraphs_counts_as_well():
    parts = split_parts("aa\n\na\n\na", max_chars=5)

    assert [part.text for part in parts] == ["aa\n\na", "a"]
