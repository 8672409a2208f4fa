import random

import pytest

from babyagi.tools.files import MAX_COMPARED_LINES, compare
from tests.cli.screen import apply_difference

LINES = [f"line {n}" for n in range(100)]


def joined(lines):
    return [sign + line for sign, line in lines]


def test_what_stays_is_counted_and_what_changes_is_shown_with_what_stands_around_it():
    after = [*LINES[:50], "anew", *LINES[51:]]

    assert joined(compare("\n".join(LINES), "\n".join(after))) == [
        *(
            "@47",
            " line 47",
            " line 48",
            " line 49",
            "-line 50",
            "+anew",
            " line 51",
            " line 52",
            " line 53",
            "@46",
        ),
    ]


def test_the_same_text_is_all_left_out():
    assert joined(compare("a\nb", "a\nb")) == ["@2"]


@pytest.mark.parametrize("seed", range(20))
def test_the_new_text_can_be_made_from_the_old_one_and_the_difference(seed):
    choose = random.Random(seed)
    before, after = (
        "\n".join(
            choose.choice(["", "a", "b", "+c", "-d", "@ 3 lines", "\r"])
            for _ in range(choose.randrange(60))
        )
        for _ in "12"
    )

    assert (
        apply_difference(before, [sign + line for sign, line in compare(before, after) or ()])
        == after
    )


def test_texts_that_differ_in_too_much_are_not_compared():
    assert compare("a", "\n".join(map(str, range(MAX_COMPARED_LINES + 1)))) is None
    assert compare("\n".join("a" * 5000), "\n".join("a" * 5000) + "\nb") is not None


def test_the_worst_that_is_compared_is_compared():
    compare("\n".join("ab" * 2000), "\n".join("ba" * 2000))
    compare("\n".join(map(str, range(4000))), "\n".join(map(str, reversed(range(4000)))))
