"""Extracts the text of a page from its bytes. It runs as a separate program, because a hostile page
may cost much time or memory: content type and address are arguments, the bytes are on standard
input, one JSON object is on standard output.

HTML is read by trafilatura where it is installed (the extra `web`), which finds the main text, else
by the plain reader below; PDF by pypdf (the same extra).
"""

from __future__ import annotations

import codecs
import io
import json
import re
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urljoin

MAX_CHARS = 400_000
MAX_HTML_CHARS = 3_000_000
MAX_PDF_PAGES = 200
MAX_CPU_S = 15
MAX_MEMORY_BYTES = 1536 * 2**20
MAX_WHOLE_CHARS = 6000  # a longer page is given with its menus
MIN_MAIN_PART = 0.2  # of the plain text; a main text below that share has lost what was asked for
_NOT_FOR_TEXT = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf_7"})
_BEYOND_ASCII = re.compile("[^\x00-\x7f\N{REPLACEMENT CHARACTER}]")
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageText:
    """The readable content of a page: its title, possibly empty, and its text as Markdown."""

    title: str
    text: str


class UnreadableError(ValueError):
    """Why a page has no text, as one line."""


def read_text(body: bytes, *, content_type: str, url: str) -> PageText:
    """Return the text of a page.

    Raises:
        UnreadableError: it has no text, or is malformed.
    """
    media_type, _, parameters = content_type.partition(";")
    match _kind_of(media_type.strip().casefold(), body):
        case "pdf":
            return _read_pdf(body)
        case "html":
            html = _decode(body, parameters)[:MAX_HTML_CHARS]
            return _read_html(html, url)
        case "text":
            return PageText(title="", text=_decode(body, parameters)[:MAX_CHARS])
    raise UnreadableError(f"it is {media_type[:60] or 'of an unknown type'}, which has no text")


def _kind_of(media_type: str, body: bytes) -> str:
    head = body[:1024].lstrip()
    if head.startswith(b"%PDF-"):
        return "pdf"
    if media_type in ("text/html", "application/xhtml+xml"):
        return "html"
    if media_type.startswith("text/") or media_type.endswith(("json", "xml", "yaml", "javascript")):
        return "text"
    if media_type in ("", "application/octet-stream") and b"\0" not in head:
        return "html" if head.startswith(b"<") else "text"
    return ""


# -- bytes to characters ---------------------------------------------------------------------------


def _decode(body: bytes, parameters: str) -> str:
    """Return the characters, decoded by byte order mark, by the server's header, by the page's own
    declaration, and finally as UTF-8 if that fits, else as Windows-1252."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if body.startswith(mark):
            return body.decode(encoding, "replace")
    said = re.search(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", parameters)
    in_page = _CHARSET.search(body[:4096])
    names = [said[1] if said else "", in_page[1].decode() if in_page else ""]
    for encoding in filter(None, map(_text_encoding, names)):
        text = body.decode(encoding, "replace")
        if encoding != "utf-8" or not _is_wrongly_read(text):
            return text
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data"  # in the middle of a character
        return body.decode("utf-8" if is_cut else "cp1252", "replace")


def _is_wrongly_read(text: str) -> bool:
    """Return whether the bytes were decoded with the wrong encoding: they gave replacement
    characters and no other character beyond ASCII. A replacement character at the end may come from
    a cut."""
    return "\N{REPLACEMENT CHARACTER}" in text[:-1] and not _BEYOND_ASCII.search(text)


def _text_encoding(name: str) -> str:
    """Return Python's name of a text encoding; '' when it is not one."""
    try:
        found = codecs.lookup(name)
        b"a".decode(found.name, "replace")  # raises for codecs that do not decode to text
    except (LookupError, ValueError):
        return ""
    if found.name.replace("-", "_") in _NOT_FOR_TEXT:
        return ""
    # pages use these names for Windows-1252, which has more characters
    return "cp1252" if found.name in ("iso8859-1", "ascii") else found.name


# -- HTML ------------------------------------------------------------------------------------------


def _read_html(html: str, url: str) -> PageText:
    plain = _PlainReader(url)
    plain.feed(html)
    plain.close()
    whole = plain.text()
    main = _find_main_text(html, url) if len(whole) > MAX_WHOLE_CHARS else ""
    text = main if len(main) > MIN_MAIN_PART * len(whole) else whole
    return PageText(title=plain.title[:300], text=text[:MAX_CHARS])


def _find_main_text(html: str, url: str) -> str:
    """Return the main text by trafilatura; '' when that is not installed or finds none."""
    try:
        import trafilatura
    except ImportError:
        return ""
    try:
        found = trafilatura.extract(
            html,
            url=url,
            output_format="markdown",
            include_tables=True,
            include_links=True,
            include_comments=False,
            favor_recall=True,
        )
    except Exception:  # it may raise anything at a broken page; the plain reader has handled it
        return ""
    return found or ""


_SILENT = frozenset("script style noscript template svg math iframe object canvas select".split())
_BLOCKS = frozenset(
    "p div section article main aside header footer nav ul ol dl dt dd table tr blockquote pre "
    "form fieldset figure figcaption address details summary hr h1 h2 h3 h4 h5 h6 title".split()
)


class _PlainReader(HTMLParser):
    """Collects the visible text of a page as Markdown: headings, items, rows, links."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self._url = url
        self._parts: list[str] = []
        self._n_silent = 0
        self._silent_tag = ""
        self._is_title = False
        self._links: list[str] = []

    def text(self) -> str:
        lines = [" ".join(line.split()) for line in "".join(self._parts).split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()

    def parse_html_declaration(self, i: int) -> int:
        """Skip an invalid declaration, such as `<![foo`, as browsers do."""
        try:
            return super().parse_html_declaration(i)
        except AssertionError:
            return self.parse_bogus_comment(i)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._n_silent:
            self._n_silent += tag == self._silent_tag
            return
        if tag in _SILENT:
            self._n_silent, self._silent_tag = 1, tag
            return
        self._is_title = tag == "title"
        if tag == "a":
            href = dict(attrs).get("href") or ""
            is_link = bool(href) and not href.startswith(("#", "javascript:", "data:"))
            self._links.append(self._join(href) if is_link else "")
            self._parts.append("[" if self._links[-1] else "")
        elif tag == "li":
            self._parts.append("\n- ")
        elif tag in ("td", "th"):
            self._parts.append(" | ")
        elif tag == "br":
            self._parts.append("\n")
        elif tag in _BLOCKS:
            is_heading = len(tag) == 2 and tag[0] == "h" and tag[1].isdigit()
            self._parts.append("\n\n" + ("#" * int(tag[1]) + " " if is_heading else ""))

    def handle_endtag(self, tag: str) -> None:
        if self._n_silent:
            self._n_silent -= tag == self._silent_tag
            return
        if tag == "title":
            self._is_title = False
        if tag == "a" and self._links:
            href = self._links.pop()
            self._parts.append(f"]({href})" if href else "")
        elif tag == "tr":
            self._parts.append("\n")
        elif tag in _BLOCKS:
            self._parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if self._n_silent:
            return
        if self._is_title:
            self.title = " ".join((self.title + data).split())
        else:
            self._parts.append(data.replace("\n", " "))

    def _join(self, href: str) -> str:
        try:
            return urljoin(self._url, href)
        except ValueError:
            return ""


# -- PDF -------------------------------------------------------------------------------------------


def _read_pdf(body: bytes) -> PageText:
    try:
        import pypdf
    except ImportError:
        raise UnreadableError(
            "it is a PDF, and its reader is not installed: pip install pypdf"
        ) from None
    try:
        reader = pypdf.PdfReader(io.BytesIO(body))
        title = str(reader.metadata.title or "") if reader.metadata else ""
        pages, n_chars = [], 0
        for n, page in enumerate(reader.pages[:MAX_PDF_PAGES], start=1):
            pages.append(f"## Page {n}\n\n{page.extract_text()}")
            n_chars += len(pages[-1])
            if n_chars > MAX_CHARS:
                break
    except Exception as error:  # the library may raise anything at a broken file
        raise UnreadableError(f"it is a PDF that cannot be read ({type(error).__name__})") from None
    return PageText(title=title[:300], text="\n\n".join(pages)[:MAX_CHARS])


def main() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    content_type, url = sys.argv[1:3]
    try:
        page = read_text(sys.stdin.buffer.read(), content_type=content_type, url=url)
        said = {"title": page.title, "text": page.text}
    except UnreadableError as error:
        said = {"error": str(error)}
    sys.stdout.buffer.write(json.dumps(said).encode("ascii"))


if __name__ == "__main__":
    main()
