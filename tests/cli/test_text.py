import io
import json
import os
import select

import pytest

from babyagi.cli import text
from babyagi.text import harmless, harmless_lines
from tests.cli.samples import HOSTILE
from tests.cli.screen import Terminal


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[2J",
        "\x1b]0;title\x07",
        "\x9b31m",
        "a\rb",
        "a\bb",
        "\x00",
        "\x7f",
        "\u202eabc",
        "\u2066x\u2069",
        "\u200f",
        "\u2028",
        "\ud800",
        "\U000e0041",
        "\ufeff",
    ],
)
def test_no_character_that_steers_a_terminal_is_left(hostile):
    assert harmless(hostile).isprintable()
    harmless(hostile).encode("utf-8")


def test_newlines_are_kept_only_where_asked():
    assert harmless("a\nb") == "a b"
    assert harmless_lines("a\r\nb\nc") == "a\nb\nc"


def test_ordinary_text_of_any_script_is_left_as_it_is():
    words = "naïve 日本語 עברית العربية 👩‍👩‍👧 https://x.com/v2.1?id=3"

    assert harmless(words) == words


def test_wide_characters_count_twice_and_combining_ones_not_at_all():
    assert text.cell_width("日本") == 4
    assert text.cell_width("e\u0301") == 1


@pytest.mark.parametrize("width", [0, 1, 2, 5, 6, 7, 100])
def test_a_fitted_line_is_never_wider_than_asked(width):
    assert text.cell_width(text.fit("日本語 and more", width)) <= width


def test_every_printed_text_is_neutralised(capsys):
    text.echo(HOSTILE)
    text.warn(HOSTILE)

    captured = capsys.readouterr()
    assert captured.out == "read␛[31m �files␇�\nnow\n"
    assert captured.err == captured.out


def test_json_is_ascii_and_gives_back_every_character(capsys):
    text.print_json([HOSTILE, "\x9b", "日本"])

    out = capsys.readouterr().out
    assert all(" " <= character <= "~" for character in out.replace("\n", ""))
    assert json.loads(out) == [HOSTILE, "\x9b", "日本"]


def test_a_terminal_that_speaks_no_unicode_still_gets_the_line(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))

    text.echo("日本 done")

    assert raw.getvalue() == b"?? done\n"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({}, True),
    ],
)
def test_colour_needs_a_terminal_that_can_and_nobody_who_said_no(environ, expected):
    assert text.has_colour(Terminal(), environ) is expected
    assert text.has_colour(io.StringIO(), environ) is False


def test_a_styled_line_brings_its_own_colour_only(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")

    text.echo("\x1b[35mpink", text.Style.RED)

    assert terminal.getvalue() == "\x1b[31m␛[35mpink\x1b[0m\n"


LONG = (
    "22:05:09 a worker is blocked (no key for the model gpt-6-luna on this machine, and none other)",
    "Status:   ended, finished: nothing is left to do, and a check found every part answered",
    '- "Decision: nightly snapshots go to Frankfurt and are kept 30 days." (weekly.md:15)',
    "  try:     babyagi run --continue latest, or babyagi run, or babyagi show objectives shows all",
    "a text of many words that are told from each other by nothing but the blanks between them",
    "日本語 の 文 は 二 倍 の 幅 を 取る の で 早く 折り返さ れる こと に なり ます ね そう です か はい",
)


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("line", LONG)
def test_a_line_on_a_terminal_is_never_wider_than_it_and_is_broken_between_words(
    line, width, monkeypatch
):
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(width))

    text.echo(line)

    rows = terminal.getvalue().splitlines()
    assert all(text.cell_width(row) <= width for row in rows)
    assert " ".join(terminal.getvalue().split()) == " ".join(line.split())


def test_further_rows_begin_under_the_text_and_a_long_address_stays_whole():
    address = "https://example.org/" + "a" * 40

    assert text.flow("Status:   ended, as nothing is left to do", 34) == (
        "Status:   ended, as nothing is\n          left to do"
    )
    assert text.flow(f"- see {address} and go on", 30) == f"- see\n  {address}\n  and go on"


def test_what_goes_into_a_file_or_a_pipe_is_not_broken(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")

    text.echo("word " * 30 + "end")

    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.parametrize("width", [20, 33, 47])
def test_a_line_that_is_cut_ends_with_a_whole_word(width):
    line = "Read the notes of the last meeting and quote what bears on the objective"

    head = text.fit(line, width).removesuffix("…")

    assert line[len(head)] == " "


def test_input_typed_before_a_question_was_shown_does_not_answer_it():
    typing, reading = os.openpty()
    try:
        os.write(typing, b"y\n")
        select.select([reading], [], [], 5)
        text.forget_typed(reading)
        os.write(typing, b"n\n")
        select.select([reading], [], [], 5)
        assert os.read(reading, 100) == b"n\n"
    finally:
        os.close(typing)
        os.close(reading)


@pytest.mark.parametrize("width", [1, 5, 12, 40])
def test_the_end_of_a_text_fits_in_its_width(width):
    said = "日本語の text with\nwide 漢字 and more"
    shown = text.fit_end(said, width)

    assert text.cell_width(shown) <= width and " ".join(said.split()).endswith(shown)
