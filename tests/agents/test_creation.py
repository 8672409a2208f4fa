"""Which tasks of a list bring what one lacks: by codes, and by subjects in plain words."""

import pytest

from babyagi.agents.creation import (
    find_bringers,
    is_about_the_same,
    renames,
)
from babyagi.tasks import Lack, TaskName, TaskStatus
from tests.noun import make_task


def name(id_, text, status=TaskStatus.DONE):
    return TaskName(id=id_, name=text, status=status, is_lacking=False)


def find(lack, names, *, task="Compute the dowry of Ann", shown=(), n_lacks=0):
    return find_bringers(make_task(task, n_lacks=n_lacks), Lack(what=lack, shown=shown), names)


LISTED = [
    name(2, "Find the width of the north barn, given the plan of 1911"),
    name(3, "Compare the width of the north barn with the width of the south barn"),
    name(4, "What is the south barn's width?", TaskStatus.QUEUED),
]


@pytest.mark.parametrize(
    ("lack", "ids", "is_all"),
    [
        ("the width of the north barn", (2,), True),
        ("The north barn's width is missing", (2,), True),
        ("the widths of the north barn and of the south barn", (2,), False),
        ("the width of the north barn and the width of the south barn", (2, 4), True),
        ("the width of the north barn and the height of the tower", (2,), False),
        ("the height of the tower", (), False),
    ],
)
def test_a_lack_is_brought_by_the_tasks_whose_subjects_it_names(lack, ids, is_all):
    found = find(lack, LISTED)

    assert (set(found.ids), found.is_all) == (set(ids), is_all)


def test_a_code_is_brought_by_the_task_that_is_about_it_and_by_none_that_only_needs_it():
    listed = [name(2, "Find K-12"), name(3, "Find K-30 (needs K-12)"), name(4, "Find M-12")]

    found = find("the value of K-12", listed, task="Find K-40 from K-12")

    assert (found.ids, found.is_all) == ((2,), True)


def test_a_task_that_asks_for_another_property_of_a_code_does_not_bring_what_is_lacked():
    listed = [name(2, "Find the price of K-12"), name(3, "Find the weight of M-12")]

    assert find("the weight of K-12", listed, task="Find the freight of K-40").ids == ()
    assert find("the weight of M-12", listed, task="Find the freight of K-40").ids == (3,)


def test_what_is_waited_for_is_not_proposed_again_under_a_shorter_name():
    found = find("the width of the north barn", LISTED)

    assert found.cover("Look up the width of the north barn") and not found.cover(
        "Look up the width of the south barn"
    )


def test_a_result_that_was_in_the_prompt_is_not_waited_for_and_is_asked_for_again_the_second_time():
    first, second = (
        find("the width of the north barn", LISTED, shown=(2,), n_lacks=n) for n in (0, 1)
    )

    assert (first.ids, first.again, first.is_all) == ((), (), False)
    assert (second.ids, second.again, second.is_all) == ((), (LISTED[0].name,), True)


def test_what_was_given_up_is_asked_again_and_what_was_cancelled_is_not_there():
    found = find("the width of the north barn", [name(2, LISTED[0].name, TaskStatus.DEAD)])
    nothing = find("the width of the north barn", [name(2, LISTED[0].name, TaskStatus.CANCELLED)])

    assert found.again == (LISTED[0].name,) and not nothing.again and not nothing.ids


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Find T-360", "Open entry T-360, which depends on H-868", True),
        ("Find T-360", "Find H-868 with T-360", False),
        ("Find the width of the north barn", "Look up the north barn's width using the plan", True),
        ("Find the width of the north barn", "Find the width of the south barn", False),
        ("Translate the letter", "Translate the will", False),
        ("Find the price of K-17", "Find the weight of K-17", False),
    ],
)
def test_two_names_are_about_the_same_by_their_subjects(one, other, is_same):
    assert is_about_the_same(one, other) is is_same
    assert renames(one, make_task(other)) is is_same
