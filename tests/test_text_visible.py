import random
import sys
import unicodedata

import pytest
from rich.cells import cell_len

from babyagi.cli.text import cell_width, fit
from babyagi.text import MAX_MARKS, UNSEEN, exact, harmless, harmless_lines
from tests.cli.screen import read_spelled

# number signs
SHOWN_THOUGH_FORMAT = set(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u0890\u0891\u08e2\U000110bd\U000110cd"
)
EVERY_CHARACTER = [chr(code) for code in range(sys.maxunicode + 1)]


def test_every_control_format_private_and_surrogate_character_is_known_as_unseen():
    hidden = {
        character
        for character in EVERY_CHARACTER
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co")
    }

    assert {
        character for character in hidden - SHOWN_THOUGH_FORMAT if not UNSEEN.match(character)
    } == set()


@pytest.mark.thorough
def test_no_character_alone_is_left_that_steers_hides_or_is_wider_than_counted():
    shown = {
        harmless(f"a{character}")[1:]
        for character in EVERY_CHARACTER[:0x20000] + EVERY_CHARACTER[0x20000::64]
    }

    assert {
        one for one in shown if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    } == SHOWN_THOUGH_FORMAT
    assert [ascii(one) for one in shown if cell_len(one) > cell_width(one)] == []


@pytest.mark.parametrize(
    "text",
    [
        *(
            "naïve Việt Nam ẫ",
            "日本語 葛",
            "עִבְרִית",
            "العَرَبِيَّة",
            "می‌خواهم",
            "क्‍ष हिन्दी",
            "ཨོཾ་མ་ཎི་པདྨེ་ཧཱུྃ",
            "ภาษาไทยที่นี่",
            "ភាសាខ្មែរ",
        ),
        *("👩‍👩‍👧 👍🏽 ❤️ 1️⃣ ©️ ↔️ 🏳️‍🌈 👩🏽‍💻", "y = ∑ x² ≤ 3·10⁻⁴", "a\u20dd", "🇬🇧"),
    ],
)
def test_ordinary_text_in_any_script_is_unchanged(text):
    assert harmless(text) == text


@pytest.mark.parametrize(
    "hidden",
    [
        "\u200b",
        "\u2060",
        "\xad",
        "\u034f",
        "\u3164",
        "\u2800",
        "\ue000",
        "\U000f0001",
        "\U000e0101",
        "\U000e0041",
        "\u202e",
        "\x9b",
        "\ufe01",
    ],
    ids=ascii,
)
def test_what_cannot_be_seen_between_letters_becomes_visible(hidden):
    assert harmless(f"pay{hidden}pal") == "pay\ufffdpal"


@pytest.mark.parametrize("joiner", ["\u200c", "\u200d", "\ufe0f"], ids=ascii)
def test_a_joiner_or_selector_is_visible_where_writing_does_not_need_it(joiner):
    assert harmless(f"pay{joiner}pal") == "pay\ufffdpal"
    assert harmless(joiner) == "\ufffd"


@pytest.mark.parametrize(
    "mark", ["\u0301", "\u0489", "\u093c", "\u093c\u200d", "\U0001e94a", "\u0301\u0302"], ids=ascii
)
def test_a_flood_of_marks_is_a_count(mark):
    shown = harmless("क" + mark * 100_000 + "क")

    assert len(shown) < 40
    assert cell_width(shown) <= 40
    assert "more marks]" in shown or "\ufffd" in shown


def test_a_mark_without_a_letter_is_a_count():
    assert harmless("\u0301!") == "[1 more marks]!"


def test_a_line_of_eighty_cells_is_short_however_many_marks_it_has():
    assert len(fit("e\u0301" * 40 + "\u0301" * 100_000, 80)) < 200


def texts(n):
    choose = random.Random(7)
    pool = "ab <U+>\n\n\n\t\u200b\u0301\u0302\U000e0101\u202eрaΑ9\r\xa0日\ud800\x00"
    for _ in range(n):
        yield "".join(
            choose.choice(pool) * choose.choice((1, 1, 1, 2, 7, 50))
            for _ in range(choose.randrange(14))
        )


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_an_exact_text_can_be_read_back_and_holds_nothing_unseen(encoding):
    for text in texts(1000):
        spelled = exact(text, encoding=encoding)
        assert read_spelled(spelled) == text
        assert not UNSEEN.search(spelled.replace("\n", ""))
        assert harmless_lines(spelled) == spelled
        spelled.encode(encoding)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("a plain line\n    with a margin\n", "a plain line\n    with a margin\n"),
        ("ends with a blank \nb", "ends with a blank<U+0020>\nb"),
        ("a" + " " * 4000 + "b", "a<U+0020 x4000>b"),
        ("a" + "\n" * 40 + "b", "a\n<U+000A x38>\nb"),
        ("раypal и рай", "<U+0440><U+0430>ypal и рай"),
        ("5 μm", "5 <U+03BC>m"),
        ("<U+200B>", "<U+003C>U+200B>"),
        ("e" + "\u0301" * 9, "e" + "\u0301" * MAX_MARKS + "<U+0301 x5>"),
        ("\u0301", "<U+0301>"),
    ],
    ids=ascii,
)
def test_what_is_spelled_out_and_what_is_not(text, spelled):
    assert exact(text) == spelled
