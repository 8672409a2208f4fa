"""Markdown on a terminal: readable at any width, and harmless."""

import random
import re

import pytest

from babyagi.cli.markdown import MAX_TOKENS, render_markdown
from tests.pages.test_markdown import PIECES

SGR = re.compile(r"\x1b\[[0-9;]*m")
TEXT = """# Report: teas

The answer is **two** ([shop](https://a.b/shop)), <https://c.d>.

| tea   | price |
|-------|------:|
| green |  3.50 |

1. List<String> stays
   * nested, with so many words that it has to be wrapped between two of them at the edge

```python
print("[bold]hi[/bold]")
```
"""


def shown(text, *, width=60):
    return render_markdown(text, width=width, has_colour=False)


def test_headings_tables_and_lists_are_drawn_and_links_are_text():
    out = shown(TEXT)

    assert out.startswith("Report: teas\n")
    assert "The answer is two (shop (https://a.b/shop)), https://c.d." in out
    assert re.search(r"^ green +3\.50", out, re.MULTILINE)
    assert "List<String> stays" in out and 'print("[bold]hi[/bold]")' in out
    assert "\x1b" not in out


@pytest.mark.parametrize("width", [20, 60, 80, 120])
def test_lines_stay_within_the_terminal(width):
    assert max(map(len, shown(TEXT, width=width).splitlines())) <= width


def test_words_are_not_cut():
    said = {word for line in shown(TEXT, width=40).splitlines() for word in line.split()}

    assert {"nested,", "between", "wrapped", "many"} <= said


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("has_colour", [False, True])
def test_nothing_steers_the_terminal_whatever_is_written(seed, has_colour):
    chance = random.Random(seed)
    text = "".join(chance.choice(PIECES) for _ in range(60))

    out = SGR.sub("", render_markdown(text, width=50, has_colour=has_colour))

    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", out)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    ["word " * 20_000, "* a\n" * MAX_TOKENS],
    ids=["a line of 100 kB", "a long list"],
)
def test_markdown_that_cannot_be_drawn_well_is_printed_as_it_was_written(text):
    assert shown(text) == text.rstrip("\n")


def test_an_empty_text_is_nothing():
    assert shown("\n") == ""


def test_a_terminal_that_is_called_dumb_is_as_wide_as_it_is(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")

    shown = render_markdown("word " * 60, width=40, has_colour=False)

    assert max(map(len, shown.splitlines())) <= 40
