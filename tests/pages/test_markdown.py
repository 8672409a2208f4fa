"""What a model wrote, on a page: it runs nothing, loads nothing, and none of it is lost."""

import random
import re

import pytest

from babyagi.pages.markdown import can_be_parsed, may_be_opened, render_html

PIECES = [
    *("# ", "* ", "1. ", "> ", "```\n", "~~~", "    ", "\n", "\n\n", "**", "_", "`", "~~", "|"),
    *tuple("[x]( ![i]( https://a.b javascript:x ) <b> <script> <!-- <https://a>".split()),
    *("| a | b |\n|--|--:|\n| 1 | 2 |\n", "&#x202e;", "&#27;", "\x1b[2J", "\u202e", "\ud800", "\t"),
]


def test_tables_lists_and_code_become_html():
    page = render_html("| a | b |\n|---|--:|\n| 1 | 2 |\n\n* one\n\n`x < y`")

    assert '<td class="right">2</td>' in page
    assert "<li>one</li>" in page and "<code>x &lt; y</code>" in page


@pytest.mark.parametrize(
    "text",
    [
        "[x](javascript:alert(1))",
        "[x](data:text/html,hi)",
        "[x](file:///etc/passwd)",
        "[x](//evil.example)",
        "[x]()",
        "<javascript:alert(1)>",
        "![x](data:image/png;base64,AA==)",
        '<a href="javascript:x">x</a>',
    ],
)
def test_only_addresses_of_the_web_and_of_mail_can_be_clicked(text):
    assert "href" not in render_html(text).replace("&lt;a href", "")


def test_an_image_is_a_link_to_it_and_not_loaded():
    page = render_html("![a plan](https://a.b/plan.png)")

    assert "<img" not in page
    assert '<a href="https://a.b/plan.png"' in page and ">image: a plan</a>" in page


def test_html_and_unused_definitions_are_shown_as_text():
    page = render_html("List<String> <script>x</script>\n\n[1]: https://a.b/source")

    assert "List&lt;String&gt; &lt;script&gt;" in page
    assert "[1]: " in page and "https://a.b/source" in page


@pytest.mark.parametrize("seed", range(60))
def test_nothing_acts_or_hides_whatever_is_written(seed):
    chance = random.Random(seed)
    page = render_html("".join(chance.choice(PIECES) for _ in range(60)))

    assert not re.search(r"<(?:script|img|iframe|b>|!--)", page)
    assert not re.search(r"href=\"(?!https?:|mailto:)", page)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", page)


def test_a_flood_is_shown_as_it_stands_and_not_parsed():
    line = "word " * 20_000

    assert not can_be_parsed(line)
    assert render_html(line).startswith("<pre>word")


@pytest.mark.parametrize(
    ("address", "is_fine"),
    [("https://a.b", True), ("MAILTO:a@b.c", True), ("java\nscript:x", False), ("ftp://a", False)],
)
def test_an_address_is_vetted_by_its_scheme(address, is_fine):
    assert may_be_opened(address) is is_fine


def test_addresses_in_a_text_become_links_but_not_those_of_a_flood():
    assert '<a href="https://a.test/x"' in render_html("see https://a.test/x")
    assert "<a " not in render_html("https://a" * 150)


@pytest.mark.parametrize("written", ["{}", "<{}>", "see {} there"])
def test_an_address_is_shown_as_it_was_written_and_not_as_a_name_that_looks_like_another(written):
    address = "https://xn--80ak6aa92e.com/a%20b"

    assert f">{address}</a>" in render_html(written.format(address))
