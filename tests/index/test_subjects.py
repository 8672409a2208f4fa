"""What names are about, and where that stands in what somebody asks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from babyagi.index.subjects import Subjects, content, head, phrases
from tests.linear import grows_faster_than_linearly


def subjects(*names):
    return [" ".join(subject) for subject in Subjects(names).subjects]


def found(text, *names):
    return [names[one.place] for one in Subjects(names).find(text)]


def test_phrases_end_at_common_words_and_at_signs():
    assert phrases("the width of the north barns, and its roof") == (
        ("width",),
        ("north", "barn"),
        ("roof",),
    )


def test_a_code_is_one_word():
    assert content("Find K-17 and M-17") == ("k-17", "m-17")


def test_the_adjective_of_a_question_and_the_verb_of_asking_are_no_content():
    assert content("How tall is the mill?") == content("Find the mill") == ("mill",)


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("Find the width of the barn, given the plan of 1911", "width barn"),
        ("Look up T-360 (needs H-868)", "t-360"),
        ("Find K-30 from K-12", "k-30"),
        ("Measure the wheat on the north field: its weight", "measure wheat north field weight"),
        ("Find the price, weight and size of the lamp", "price weight size lamp"),
        ("Translate from German to English", "translate german english"),
    ],
)
def test_a_name_is_about_what_stands_before_what_it_takes(name, subject):
    assert " ".join(content(head(name))) == subject


def test_a_name_is_about_what_stands_before_what_earlier_names_are_about_however_they_are_joined():
    names = (
        "Weigh the wheat of the north field",
        "Rate the mill of Ebbley weighed against the wheat of the north field",
    )

    assert subjects(*names) == [
        "weigh wheat north field",
        "rate mill ebbley weighed against wheat north field",
    ]
    assert (
        subjects("the wheat of the north field", names[1])[1] == "rate mill ebbley weighed against"
    )


def test_a_name_that_begins_with_what_others_are_about_is_about_the_rest():
    assert (
        subjects(
            "the north cellar yield", "Use the north cellar yield to work out the orchard pressure"
        )[1]
        == "orchard pressure"
    )


def test_a_subject_is_found_in_any_order_of_its_words():
    assert found(
        "knowing Oak Hill's height", "Find the height of Oak Hill", "Find the height of Elm Hill"
    ) == ["Find the height of Oak Hill"]


def test_a_subject_is_not_found_where_another_word_stands_within_it():
    assert (
        found(
            "the yield of the upper north slope of Orm",
            "Find the yield of the lower north slope of Orm",
        )
        == []
    )


def test_the_best_of_several_is_the_first():
    names = ("Find the sheep count of Carr Hollow", "Find the upper sheep count of Carr Hollow")

    assert found("the upper sheep count of Carr Hollow", *names)[0] == names[1]


PIECES = "report every x/25-every-with-b.md how with.md from/given if notes-using 12 , ; ( how many need based".split()


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map(" ".join), max_size=4))
def test_names_with_files_in_them_are_found_like_others(names):
    Subjects(names).find(" ".join(names))


def test_a_name_is_not_cut_within_the_name_of_a_file():
    name = "Read decisions/0025-every-result-with-a-rare-word.md"
    assert head(name) == name.lower()


def test_looking_takes_linear_time():
    names = [f"Find the yield of slope {number} of valley {number % 7}" for number in range(30)]

    assert not grows_faster_than_linearly(
        lambda n: Subjects(names).find("the yield of slope 3 " * (n // 20)), 64_000
    )
