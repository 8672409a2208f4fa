"""Renders Markdown from a model as harmless HTML: embedded HTML is shown as text, links are
checked, and dangerous characters are replaced."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from threading import get_ident

from markdown_it import MarkdownIt
from markdown_it.token import Token

from babyagi.pages.html import Html, escape
from babyagi.text import harmless, harmless_lines

Attributes = dict[str, str | int | float]

MAX_PARSED_CHARS = 150_000
MAX_LINE_CHARS = 20_000  # parsing a longer line takes too long
MAX_COLONS = 100  # in a line; with more, it takes too long to find URLs without markup
MAX_PARSERS = 16
_MAY_BE_OPENED = re.compile(r"(?:https?://|mailto:)[^\s<>\"]+", re.IGNORECASE)
_CLASS_BY_STYLE = {"text-align:right": "right", "text-align:center": "center"}


def can_be_parsed(text: str) -> bool:
    """Return whether the text is short enough to be parsed."""
    longest = max(map(len, text.split("\n")))
    return len(text) <= MAX_PARSED_CHARS and longest <= MAX_LINE_CHARS


def parse(text: str) -> list[Token]:
    """Parse Markdown into harmless tokens of markdown-it: HTML becomes text, an image becomes a
    link, and a link to anything but http, https or mailto becomes text."""
    return list(_make_harmless(_open_parser(get_ident()).parse(text)))


def render_html(text: str) -> Html:
    """Return Markdown as HTML that can run and load nothing. A text that is too long to be parsed
    becomes plain text in `<pre>`."""
    if not can_be_parsed(text):
        return Html(f"<pre>{escape(text)}</pre>")
    has_few = all(line.count(":") <= MAX_COLONS for line in text.split("\n"))
    parser = _open_parser(get_ident(), finds_addresses=has_few)
    tokens = list(_make_harmless(parser.parse(text)))
    return Html(parser.renderer.render(tokens, parser.options, {}))


@lru_cache(maxsize=MAX_PARSERS)
def _open_parser(_thread_id: int, *, finds_addresses: bool = False) -> MarkdownIt:
    """Return a parser for one thread. (To make one takes longer than to render a short text.)"""
    parser = MarkdownIt("commonmark", {"html": False, "linkify": finds_addresses})
    parser.enable(["table", "strikethrough"])
    # the definition of an unused link reference would be invisible
    parser.disable(["html_block", "html_inline", "reference"])
    if finds_addresses:
        parser.enable("linkify")
        assert parser.linkify is not None
        parser.linkify.set({"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False})
    parser.validateLink = may_be_opened  # type: ignore[method-assign,assignment]
    # a URL is shown as it was written, because decoded names can look alike
    parser.normalizeLinkText = str  # type: ignore[method-assign,assignment]
    return parser


def may_be_opened(address: str) -> bool:
    """Return whether the URL may be shown as a link: whether it is http, https or mailto."""
    return _MAY_BE_OPENED.fullmatch(address) is not None


def _make_harmless(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield the tokens with harmless texts and attributes, and with links instead of images. This
    is done after parsing, because the parser decodes character references."""
    for token in tokens:
        token.content, token.info = harmless_lines(token.content), ""
        if token.type == "image":
            yield from _to_link(token)
            continue
        token.attrs = _vet(token)
        if token.children:
            token.children = list(_make_harmless(token.children))
        yield token


def _vet(token: Token) -> Attributes:
    """Return the attributes that the token may keep: the first number of a list, the alignment of a
    cell, or the URL of a link."""
    if token.type == "link_open":
        return _link_to(str(token.attrs.get("href", "")))
    style = str(token.attrs.get("style", ""))
    kept = {key: value for key, value in token.attrs.items() if key == "start"}
    return {**kept, "class": _CLASS_BY_STYLE[style]} if style in _CLASS_BY_STYLE else kept


def _link_to(address: str) -> Attributes:
    if not may_be_opened(address):
        return {}
    return {"href": harmless(address), "rel": "noopener noreferrer nofollow"}


def _to_link(image: Token) -> Sequence[Token]:
    text = f"image: {image.content}" if image.content else "image"
    return (
        Token("link_open", "a", 1, attrs=_link_to(str(image.attrs.get("src", "")))),
        Token("text", "", 0, content=text),
        Token("link_close", "a", -1),
    )
