"""What words alone tell: the sense of a name, the marks of a text, where sentences end."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from babyagi.marks import find_marks, held_marks
from babyagi.text import one_line, say_count, shorten, split_sentences
from tests.linear import grows_faster_than_linearly

DATA = Path(__file__).parent / "data"


# -- marks
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("Compare K-17 with x_12", {"k-17", "x_12"}),
        ("Get certified for ISO 9001, soon", {"iso 9001", "iso", "9001"}),
        ("It is 1,200 km, 5km, $30 or 7.5 %", {"1200", "5", "30", "7.5"}),
        (
            "Read src/main.py, file.py and https://x.org/a?b=1.",
            {"src/main.py", "file.py", "https://x.org/a?b=1"},
        ),
        ("Tagged #ai by @anna", {"#ai", "@anna"}),
        (
            "Explain “to lease”, 'claim', `load_x`, «bail» and 「東京」",
            {"to lease", "claim", "load_x", "bail", "東京"},
        ),
        ("The boys' and the girls' rooms don't count", set()),
        ("The tram of Saint Petersburg's centre", {"saint petersburg", "saint", "petersburg"}),
        ("He works at the Bank of England", {"bank", "england"}),
        ("Find Norway", {"norway"}),
        ("Norway's king", set()),
        ("1. Find it: The mill in Oslo", {"1", "oslo"}),
        ("Suche die Miete von Oslo", {"miete", "oslo"}),
        ("「東京」の人口と K-17 を調べる", {"東京", "k-17"}),
        ("It seems I'm late", set()),
        ("Today Angela Merkel spoke", {"angela merkel", "angela", "merkel"}),
        ("Rain fell. Snow fell.", set()),
        ("iPhone users trust NASA", {"iphone", "nasa"}),
        ("The Annual Report Of Sales Figures", set()),
        ("In Oslo and Bergen, I saw it", {"oslo", "bergen"}),
        ("Compare Oslo/Bergen", {"oslo", "bergen"}),
        ("it is **Oslo**.", {"oslo"}),
        ("| in | Oslo | K-9 |", {"k-9", "oslo"}),
    ],
)
def test_marks_are_codes_numbers_quoted_terms_and_names(text, marks):
    assert find_marks(text) == marks


@pytest.mark.parametrize(
    ("text", "mark", "is_held"),
    [
        ("Part K-17 fits", "k-1", False),
        ("Part K-17 fits", "k-17", True),
        ("Part K-17 fits", "17", False),
        ("In 1700.", "17", False),
        ("In 17.", "17", True),
        ("It is 17.5", "17", False),
        ("It is 1,200 km", "1200", True),
        ("It is 1200km", "1200", True),
        ("It costs $1,200.", "1,200", True),
        ("(see src/main.py)", "src/main.py", True),
        ("(see src/main.py)", "main", False),
        ("the mayor of Saint\nPetersburg’s port", "saint petersburg", True),
        ("Petersburg, Saint", "saint petersburg", False),
        ("Osloan", "oslo", False),
        ("**Oslo**: yes", "Oslo", True),
        ("Oslo/Bergen", "bergen", True),
        ("anything", "", False),
        ("", "", False),
    ],
)
def test_a_mark_is_held_as_whole_words_only(text, mark, is_held):
    assert bool(held_marks(text, [mark])) is is_held


def test_those_marks_are_named_that_a_text_holds():
    assert held_marks("Oslo has 709,000 people.", ["oslo", "709000", "bergen", "709"]) == {
        "oslo",
        "709000",
    }


MARKED_TEXTS = st.lists(
    st.sampled_from(
        [
            "Oslo",
            "K-17",
            "1,200",
            "'old thing'",
            "in",
            "Saint",
            "Petersburg’s",
            "x_1.",
            "(NASA)",
            "**Rome**",
            "of",
            "a/B",
            "|",
            "\n",
            ".",
        ]
    )
).map(" ".join)


@given(st.one_of(st.text(), MARKED_TEXTS))
@example("“”")
@example("A/")
def test_a_text_holds_its_own_marks(text):
    marks = find_marks(text)

    assert held_marks(text, marks) == marks


@pytest.mark.thorough
@pytest.mark.parametrize(
    "piece", ["Oslo ", "Oslo of ", "K-17, ", "'a ", "“", "1,", "a/B", "((", "A.", "«", "| ", "é-"]
)
def test_marks_are_found_in_linear_time(piece):
    assert not grows_faster_than_linearly(
        lambda n: held_marks(piece * n, find_marks(piece * n)), 16_000
    )


# -- sentences
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rains. It pours! Does it? Yes", ["It rains.", "It pours!", "Does it?", "Yes"]),
        (
            "Pi is 3.14 today. See v1.2 at https://a.b/c.d now.",
            ["Pi is 3.14 today.", "See v1.2 at https://a.b/c.d now."],
        ),
        (
            "Dr. Smith, e.g. John F. Kennedy, ate approx. 5.",
            ["Dr. Smith, e.g. John F. Kennedy, ate approx. 5."],
        ),
        ("See No. 5. He said no. Then he left.", ["See No. 5.", "He said no.", "Then he left."]),
        ("Take vitamin C. It helps.", ["Take vitamin C.", "It helps."]),
        (
            "Apples, pears etc. are fruit. Nuts etc. We eat them.",
            ["Apples, pears etc. are fruit.", "Nuts etc.", "We eat them."],
        ),
        ("He said “Go.” She went.", ["He said “Go.”", "She went."]),
        ("Wait... what? no. Wait... What?", ["Wait... what? no.", "Wait...", "What?"]),
        ("One line\nnext. line\r\n\n  third", ["One line", "next. line", "third"]),
        ("- Buy milk. Today.\n2. Call Bob. Now.", ["- Buy milk. Today.", "2. Call Bob. Now."]),
        ("| a. B | c. D |\n|---|---|", ["| a. B | c. D |", "|---|---|"]),
        ("これは本。それは？はい", ["これは本。", "それは？", "はい"]),
        (" \n\t", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text, sentences):
    assert split_sentences(text) == sentences


@given(
    st.one_of(
        st.text(),
        st.lists(
            st.sampled_from(
                [
                    "Dr.",
                    "No.",
                    "5.",
                    "end.",
                    "A.",
                    "- x",
                    "\n",
                    "!",
                    "?",
                    "...",
                    "Up",
                    "。",
                    '"',
                    "|",
                ]
            )
        ).map(" ".join),
    )
)
def test_sentences_are_the_exact_text_without_the_blanks_between(text):
    sentences = split_sentences(text)

    at = 0
    for sentence in sentences:
        at = text.index(sentence, at) + len(sentence)
    assert "".join("".join(sentences).split()) == "".join(text.split())


@pytest.mark.thorough
@pytest.mark.parametrize("piece", [".", "a. ", "! ", ".'", '."', "。", "A. ", "| ", "\n", "x"])
def test_sentences_are_split_in_linear_time(piece):
    assert not grows_faster_than_linearly(lambda n: split_sentences(piece * n + "x"), 64_000)


# -- lines
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "max_chars", "short"),
    [
        ("short", 5, "short"),
        ("a longer text", 9, "a longer…"),
        ("a longer text", 12, "a longer…"),
        ("unbreakable", 5, "unbr…"),
        ("a unbreakable", 8, "a unbre…"),
        ("anything", 1, "…"),
        ("anything", 0, ""),
        ("", 0, ""),
    ],
)
def test_a_text_is_cut_between_words(text, max_chars, short):
    assert shorten(text, max_chars) == short


@given(st.text(), st.integers(0, 30))
def test_a_shortened_text_fits(text, max_chars):
    short = shorten(text, max_chars)

    assert len(short) <= max_chars and shorten(short, max_chars) == short


@given(st.text())
@example("a\r\n b\x1b[31m\x00\u2028c")
@example("\x00 a \x00")
def test_one_line_has_no_break_and_no_control_character(text):
    line = one_line(text)

    assert line.splitlines() in ([], [line]) and line == line.strip() and one_line(line) == line
    assert not any(char < " " for char in line)


# -- patterns
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "said"), [(0, "0 calls"), (1, "1 call"), (2, "2 calls"), (1000, "1,000 calls")]
)
def test_a_count_agrees_with_its_noun(n, said):
    assert say_count(n, "call") == said
