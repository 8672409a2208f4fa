"""The text of a page, whatever its bytes are."""

import codecs
import sys

import pytest

from babyagi.retrieval import page_text
from babyagi.retrieval.page_text import MAX_CHARS, UnreadableError, read_text
from tests.small_web import make_pdf

OPS = """<!doctype html><html><head><title> Backups &amp; more </title><style>p{}</style></head><body>
<nav><a href="/">Home</a></nav><h1>Ops</h1><h2>Backups</h2>
<p>Nightly snapshots go to <a href="../fra?x=1#y">Frankfurt</a> and are<br>kept 30&nbsp;days.</p>
<ul><li>one<li>two</ul><table><tr><th>a<th>b<tr><td>1<td>2</table>
<script>evil("<p>shown</p>")</script><template>hidden</template><noscript>no</noscript></body>"""


def read(body, content_type="text/html", url="https://site.test/a/b"):
    return read_text(
        body if isinstance(body, bytes) else body.encode(), content_type=content_type, url=url
    )


def test_a_page_is_read_with_its_headings_items_rows_and_links():
    page = read(OPS)

    assert page.title == "Backups & more"
    assert page.text.split("\n\n") == [
        "# Ops",
        "## Backups",
        "Nightly snapshots go to [Frankfurt](https://site.test/fra?x=1#y) and are\nkept 30 days.",
        "- one\n- two",
        "| a | b",
        "| 1 | 2",
        "# The rest of the page",
        "[Home](https://site.test/)",
    ]


MENU = "".join(f"<li><a href='/topic/{n}'>Topic number {n}</a></li>" for n in range(300))
ARTICLES = {
    "English": "The swing bridge opens at nine and is closed to carriages in a storm. ",
    "German": "Die Drehbrücke öffnet um neun und ist bei Sturm für Wagen gesperrt. ",
    "Japanese": "旋回橋は九時に開き、嵐のときは馬車の通行が禁止されます。",
    "Arabic": "يفتح الجسر الدوار في التاسعة ويغلق أمام العربات عند العاصفة. ",
}
LAYOUTS = {
    "a nav element": "<nav><ul>{menu}</ul></nav><div>{text}</div><footer>{end}</footer>",
    "plain elements": "<div><ul>{menu}</ul></div><div>{text}</div><div>{end}</div>",
    "roles": "<div role=navigation><div>{menu}</div></div><div role=main>{text}</div>{end}",
    "a main element": "<div>{end}{menu}</div><main>{text}<aside>{menu}</aside></main>",
    "an article": "<div>{menu}</div><p>A tag line.</p><article><header>{text}</header></article>{end}",
    "a menu never closed": "<nav><ul>{menu}<main>{text}</main>{end}",
    "in the middle": "<p>A tag line.</p><ul>{menu}</ul>{text}<ul>{menu}</ul>{end}",
}


@pytest.mark.thorough
@pytest.mark.parametrize("has_library", [True, False])
@pytest.mark.parametrize("language", ARTICLES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_article_comes_before_a_menu_of_300_links(layout, language, has_library, monkeypatch):
    if not has_library:
        monkeypatch.setitem(sys.modules, "trafilatura", None)
    paragraphs = "".join(f"<p>Nr {n}: {ARTICLES[language] * 3}</p>" for n in range(9))
    page = LAYOUTS[layout].format(
        menu=MENU, text=f"<h1>Bridge</h1>{paragraphs}", end="<p>Legal.</p>"
    )

    text = read(f"<title>Bridge</title><body>{page}</body>").text

    for n in range(9):
        assert f"Nr {n}: {ARTICLES[language].strip()}" in text.partition("Topic number")[0]


def test_a_page_keeps_its_order_where_nothing_stands_before_its_article_and_loses_no_link():
    inline = "<p>See <a href=/a>the first</a>, and much more text than that.</p>"
    list_within = f"{inline}<ul><li><a href=/b>a link</a></ul>{inline}<ul>{MENU}</ul>"

    text = read(list_within).text

    assert text.index("the first") < text.index("a link") < text.rindex("much more")
    assert page_text.REST_HEADING not in text and "Topic number 299" in text


def test_a_page_of_links_alone_keeps_its_order():
    assert read(f"<ul>{MENU}</ul>").text.startswith("- [Topic number 0](https://site.test/topic/0)")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<p>café €".encode(), "text/html; charset=utf-8"),
        ("<p>café €".encode("cp1252"), 'text/html; charset="ISO-8859-1"'),
        ("<p>café €".encode("cp1252"), "text/html"),
        ("<p>café €".encode("cp1252"), "text/html; charset=utf-8"),
        (b'<meta charset="utf-8">' + "<p>café €".encode("cp1252"), "text/html; charset=utf-8"),
        ("<p>café €".encode(), "text/html"),
        ("<p>café €".encode(), "text/html; charset=zlib_codec"),
        ("<p>café €".encode(), "text/html; charset=punycode"),
        ("<p>café €".encode(), "text/html; charset=no-such"),
        (codecs.BOM_UTF8 + "<p>café €".encode(), "text/html; charset=latin-1"),
        ("<p>café €".encode("utf-16"), "text/html"),
        (b'<meta charset="utf-8">' + "<p>café €".encode(), "text/html"),
        (b'<meta http-equiv=x content="text/html; charset=cp1252"><p>caf\xe9 \x80', "text/html"),
        ("café €".encode(), "text/plain"),
        ("café €".encode(), ""),
        ("<p>café €".encode(), "application/octet-stream"),
        ('"café €"'.encode(), "application/json"),
    ],
)
def test_the_characters_are_read_whatever_is_said_of_them(body, content_type):
    assert read(body, content_type).text.strip('"') == "café €"


def test_a_page_that_is_cut_in_mid_character_keeps_its_encoding():
    cut = "<p>caf\u00e9 abc \u20ac".encode()[:-1]

    assert read(cut, "text/html; charset=utf-8").text.startswith("caf\u00e9 abc")


@pytest.mark.parametrize(
    ("body", "content_type", "why"),
    [
        (b"\x89PNG\r\n\0", "image/png", "the page is image/png"),
        (b"\0\0\0", "application/octet-stream", "octet-stream, which has no text"),
        (b"PK\x03\x04", "application/zip", "application/zip"),
        (b"x", "video/mp4", "video/mp4"),
        (b"\0", "", "an unknown type"),
        (b"%PDF-1.7 junk", "application/pdf", "not a readable PDF"),
        (b"%PDF-1.7 junk", "text/html", "not a readable PDF"),
        (make_pdf(""), "application/pdf", "the PDF has no text, perhaps only pictures"),
    ],
)
def test_what_has_no_text_says_so(body, content_type, why):
    with pytest.raises(UnreadableError, match=why):
        read(body, content_type)


def test_a_pdf_that_is_too_long_says_that_its_end_is_not_read(monkeypatch):
    assert read(make_pdf("word")).text == "## Page 1\n\nword"

    monkeypatch.setattr(page_text, "MAX_CHARS", 12)

    assert read(make_pdf("word")).text == (
        "## Page 1\n\nw\n\n[the PDF is longer: its end is not read]"
    )


ODD = {
    "nothing": b"",
    "blanks": b" \n" * 9,
    "only tags": b"<p><div><br>" * 900,
    "deep": b"<div>" * 20_000 + b"deep",
    "never closed": b"<p " + b"a=b " * 20_000,
    "a comment without end": b"<!-- x" * 900,
    "a script without end": b"<script>" + b"x" * 90_000,
    "nested scripts": b"<svg><svg></svg>in</svg>out",
    "ends of what never began": b"</p></a></script></li>" * 900 + b"end",
    "entities": b"&amp;&#x41;&nosuch;&#9999999;&#0;" * 900,
    "control characters": b"<p>a\x00b\x1b[31mc\x7f",
    "a frame": b"<frameset><frame src=x></frameset>",
    "XML": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>',
    "declarations": b"<![CDATA[ x ]]><!foo><?php ?>" * 90,
    "a broken link": b"<a href='http://[::1'>x</a><a href='//[z'>y</a>",
    "surrogates": b"<p>\xed\xa0\x80 x",
    "half a character": "<p>é".encode()[:-1],
    "long words": b"<p>" + b"w" * 900_000,
    "many links": b"<a href=/x>y</a>" * 5000,
    "tables in tables": b"<table><tr><td>" * 3000 + b"x",
    "a title only": b"<title>t</title>",
    "two titles": b"<title>a</title><title>b</title><p>x",
    "attributes twice": b"<a href=/1 href=/2>x</a>",
    "null bytes": b"<p>\0\0x",
}


@pytest.mark.parametrize("name", ODD)
def test_no_page_is_too_odd_to_be_read(name):
    page = read(ODD[name])

    assert len(page.text) <= MAX_CHARS
    assert len(page.title) <= 300


@pytest.mark.parametrize("odd", ["<![foo bar]>", "<![>", "<![ x]>", "<![if !IE]>", "<!foo[ ]>"])
def test_a_declaration_that_is_none_costs_no_text(odd):
    found = read_text(f"<p>before</p>{odd}<p>after".encode(), content_type="text/html", url="")

    assert found.text.startswith("before") and found.text.endswith("after")
