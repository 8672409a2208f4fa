"""Extracts the text of a web page or a document from its bytes.

It runs as a separate program that can only compute, within bounds of time and memory: a hostile
page may cost much of both, or take the parser over. Its arguments are the folder of the sandbox,
the content type and the URL; it reads the bytes from standard input, and writes one JSON object to
standard output: `title` and `text`, or `error`.

An HTML page is read by `_PlainReader`, its article first; of a long one trafilatura finds the main
text, if it is installed (the extra `web`). PDF is read by pypdf, Word by mammoth, workbooks by
calamine. Pictures, headers and footers are not extracted.
"""

from __future__ import annotations

import codecs
import contextlib
import encodings
import importlib
import io
import json
import os
import pkgutil
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from urllib.parse import urljoin

MAX_CHARS = 400_000
MAX_HTML_CHARS = 3_000_000
MAX_PDF_PAGES = 200
MAX_OFFICE_CHARS = 2_000_000
MAX_CELLS = 5_000_000  # of a sheet, including empty ones between its first and its last value
MAX_CPU_S = 15
MAX_MEMORY_BYTES = 1536 * 2**20
MAX_WHOLE_CHARS = 6000  # a longer page is reduced to its main text, without menus
MIN_MAIN_PART = 0.5  # a main text with a smaller part of the article has lost too much
_KIND_BY_MEDIA_TYPE = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "word",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "sheets",
}
# by kind: the modules that its parser imports only for some documents
_LOADED_LATE = {
    "pdf": (
        "pypdf pypdf.filters pypdf.xmp pypdf._codecs.core_font_metrics pypdf._text_extraction "
        "pypdf.generic._image_xobject fontTools.cffLib"
    ),
    "word": "mammoth xml.dom.expatbuilder",
    "sheets": "python_calamine",
}
_BEYOND_ASCII = re.compile("[^\x00-\x7f\N{REPLACEMENT CHARACTER}]")
_BOMS_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHARSET = rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageText:
    """The title of a page, which may be empty, and its text as Markdown."""

    title: str
    text: str


class UnreadableError(ValueError):
    """A page has no text that can be extracted. The message is one line that says why."""


def read_text(body: bytes, *, content_type: str, url: str) -> PageText:
    """Return the text of a page.

    Args:
        content_type: the page's Content-Type header; may be empty.
        url: the page's URL, to which its links are relative.

    Raises:
        UnreadableError: the page is of a type without text, or is a damaged document.
    """
    media_type, _, parameters = content_type.partition(";")
    match _kind_of(media_type.strip().casefold(), body):
        case "pdf" | "word" | "sheets" as document:
            return _read_document(document, body)
        case "html":
            return _read_html(_decode(body, parameters)[:MAX_HTML_CHARS], url)
        case "text":
            return PageText(title="", text=_decode(body, parameters)[:MAX_CHARS])
    kind = media_type[:60] or "of an unknown type"
    raise UnreadableError(f"the page is {kind}, which has no text")


def _kind_of(media_type: str, body: bytes) -> str:
    head = body[:1024].lstrip()
    if head.startswith(b"%PDF-"):
        return "pdf"
    if media_type in _KIND_BY_MEDIA_TYPE:
        return _KIND_BY_MEDIA_TYPE[media_type]
    if media_type.startswith("text/") or media_type.endswith(("json", "xml", "yaml", "javascript")):
        return "text"
    if media_type in ("", "application/octet-stream") and b"\0" not in head:
        return "html" if head.startswith(b"<") else "text"
    return ""


# -- bytes to characters ---------------------------------------------------------------------------


def _decode(body: bytes, parameters: str) -> str:
    """Decode the bytes of a page. The encoding is the first one that fits: by a byte order mark, by
    the Content-Type header (`parameters`), by a declaration in the page, UTF-8, or Windows-1252."""
    marks = {codecs.BOM_UTF8: "utf-8-sig", **dict.fromkeys(_BOMS_UTF16, "utf-16")}
    marked = [name for mark, name in marks.items() if body.startswith(mark)]
    said = re.search(_CHARSET, parameters.encode())
    in_page = re.search(rb"<meta[^>]{0,200}?" + _CHARSET, body[:4096], re.IGNORECASE)
    given = [found[1].decode() for found in (said, in_page) if found]
    for name in [*marked, *given, "utf-8"]:
        with contextlib.suppress(LookupError, ValueError):
            encoding = codecs.lookup(name).name
            # pages use these names for Windows-1252, which has more characters
            encoding = "cp1252" if encoding in ("iso8859-1", "ascii") else encoding
            text = body.decode(encoding, "replace")
            if encoding != "utf-8" or not _is_wrongly_read(text):
                return text
    return body.decode("cp1252", "replace")


def _is_wrongly_read(text: str) -> bool:
    """Return whether a text that was decoded as UTF-8 has another encoding: it has replacement
    characters, but no other characters beyond ASCII. A replacement character at the very end does
    not count, because the page may have been cut there."""
    return "\N{REPLACEMENT CHARACTER}" in text[:-1] and not _BEYOND_ASCII.search(text)


# -- HTML ------------------------------------------------------------------------------------------


def _read_html(html: str, url: str) -> PageText:
    plain = _PlainReader(url)
    whole = plain.read(html)
    article, rest = plain.split_article()
    main = _find_main_text(html, url) if len(whole) > MAX_WHOLE_CHARS else ""
    if len(main) > MIN_MAIN_PART * len(article or whole):
        text = main
    elif not article or whole.startswith(article):
        text = whole
    else:
        text = f"{article}\n\n{REST_HEADING}\n\n{rest}"
    return PageText(title=plain.title[:300], text=text[:MAX_CHARS])


def _find_main_text(html: str, url: str) -> str:
    """Return the main text of a page as Markdown, found by trafilatura; '' if trafilatura is not
    installed or finds none."""
    try:
        import trafilatura

        found = trafilatura.extract(
            html,
            url=url,
            output_format="markdown",
            include_tables=True,
            include_links=True,
            include_comments=False,
            favor_recall=True,
        )
    except Exception:  # it is not installed, or the page is broken: it may raise anything
        return ""
    return found or ""


REST_HEADING = "# The rest of the page"
_MAIN, _AROUND = "main", "around"
_PLACES = {
    **dict.fromkeys("main article".split(), _MAIN),
    **dict.fromkeys("nav aside header footer".split(), _AROUND),
    **dict.fromkeys("navigation banner contentinfo complementary".split(), _AROUND),
}
"""By tag or ARIA role, which part of a page an element is."""
_SIGNS = {"li": "\n- ", "td": " | ", "th": " | ", "br": "\n"}
_SILENT = frozenset("script style noscript template svg math iframe object canvas select".split())
_BLOCKS = frozenset(
    "p div section article main aside header footer nav ul ol dl dt dd table tr blockquote pre "
    "form fieldset figure figcaption address details summary hr h1 h2 h3 h4 h5 h6 title".split()
)


@dataclass(slots=True, kw_only=True)
class _Block:
    """A block of a page, such as a paragraph or an item.

    Attributes:
        place: `_MAIN` or `_AROUND` if the page's elements say so, else ''.
        n_plain, n_linked: its characters outside and inside of links, without blanks.
    """

    place: str
    parts: list[str] = field(default_factory=list)
    n_plain: int = 0
    n_linked: int = 0


class _PlainReader(HTMLParser):
    """Converts the visible text of an HTML page to Markdown, with headings, lists, tables and
    links. It can tell the article from what stands around it."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.title, self._is_title, self._url = "", False, url
        self._blocks = [_Block(place="")]
        self._links: list[str] = []
        self._n_silent, self._silent_tag = 0, ""
        self._open: list[tuple[str, str]] = []  # tag and place of each open element with a place
        self._n_open: Counter[str] = Counter()

    def read(self, html: str) -> str:
        """Return the text of the whole page, in its order."""
        self.feed(html)
        self.close()
        return _join(self._blocks)

    def split_article(self) -> tuple[str, str]:
        """Return the text of the article, and that of the rest of the page, such as its menus."""
        article = set(_find_article(self._blocks))
        blocks = [*enumerate(self._blocks)]
        return (
            _join(block for at, block in blocks if at in article),
            _join(block for at, block in blocks if at not in article),
        )

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
        given = dict(attrs)
        self._enter(tag, given.get("role") or "")
        if tag == "a":
            href = given.get("href") or ""
            is_link = bool(href) and not href.startswith(("#", "javascript:", "data:"))
            self._links.append(self._join(href) if is_link else "")
            self._put("[" if self._links[-1] else "")
        elif tag in _SIGNS:
            self._put(_SIGNS[tag])
        elif tag in _BLOCKS:
            is_heading = len(tag) == 2 and tag[0] == "h" and tag[1].isdigit()
            self._put("\n\n" + ("#" * int(tag[1]) + " " if is_heading else ""))

    def handle_endtag(self, tag: str) -> None:
        if self._n_silent:
            self._n_silent -= tag == self._silent_tag
            return
        self._leave(tag)
        if tag == "title":
            self._is_title = False
        if tag == "a" and self._links:
            href = self._links.pop()
            self._put(f"]({href})" if href else "")
        elif tag == "tr":
            self._put("\n")
        elif tag in _BLOCKS:
            self._put("\n\n")

    def handle_data(self, data: str) -> None:
        if self._n_silent:
            return
        if self._is_title:
            self.title = " ".join((self.title + data).split())
            return
        self._put(data.replace("\n", " "))
        n_chars = sum(map(len, data.split()))
        if self._links:
            self._blocks[-1].n_linked += n_chars
        else:
            self._blocks[-1].n_plain += n_chars

    def _put(self, text: str) -> None:
        if text.startswith("\n"):
            self._blocks.append(_Block(place=self._open[-1][1] if self._open else ""))
        self._blocks[-1].parts.append(text)

    def _enter(self, tag: str, role: str) -> None:
        """Note an element that can say which part of the page it is, if it is not a header or
        footer of the article itself."""
        place = _PLACES.get(role.strip().casefold(), "") or _PLACES.get(tag, "")
        inherited = self._open[-1][1] if self._open else ""
        if tag in ("header", "footer") and inherited == _MAIN:
            place = ""
        if place or self._n_open[tag]:  # an inner element of the same tag has an end of its own
            self._open.append((tag, place or inherited))
            self._n_open[tag] += 1

    def _leave(self, tag: str) -> None:
        while self._n_open[tag]:
            inner, _ = self._open.pop()
            self._n_open[inner] -= 1
            if inner == tag:
                return

    def _join(self, href: str) -> str:
        try:
            return urljoin(self._url, href)
        except ValueError:
            return ""


def _find_article(blocks: Sequence[_Block]) -> list[int]:
    """Return the indexes of the blocks that are the article: of all runs of blocks, those of the
    run with the most text outside of links, where each character of a link, or of an element that
    stands around the article, counts against it.

    The elements `main` and `article` are the place of the article if more than half of the plain
    text stands there; then what stands outside of them counts as around it.
    """
    n_main = sum(block.n_plain for block in blocks if block.place == _MAIN)
    n_plain = sum(block.n_plain for block in blocks if block.place != _AROUND)
    outside = (_AROUND, "") if 2 * n_main > n_plain else (_AROUND,)
    best, first, last = 0, 0, 0
    so_far, start = 0, 0
    for at, block in enumerate(blocks):
        if so_far <= 0:
            so_far, start = 0, at
        sign = -1 if block.place in outside else 1
        so_far += sign * block.n_plain - block.n_linked
        if so_far > best:
            best, first, last = so_far, start, at + 1
    return [at for at in range(first, last) if blocks[at].place not in outside]


def _join(blocks: Iterable[_Block]) -> str:
    text = "".join(part for block in blocks for part in block.parts)
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


# -- PDF, Word and Excel ---------------------------------------------------------------------------


def _read_document(kind: str, body: bytes) -> PageText:
    name, read = _DOCUMENTS[kind]
    try:
        page = read(body)
    except Exception as error:  # the libraries may raise anything at a broken file
        why = "it is damaged, encrypted or of another format"
        what = f"it is not a readable {name} ({type(error).__name__}): {why}"
        raise UnreadableError(what) from None
    if not page.text.strip():
        raise UnreadableError(f"the {name} has no text, perhaps only pictures")
    max_chars = MAX_CHARS if kind == "pdf" else MAX_OFFICE_CHARS
    if len(page.text) > max_chars:
        return replace(page, text=page.text[:max_chars] + _LONGER.format(name))
    return page


_LONGER = "\n\n[the {} is longer: its end is not read]"


def _read_pdf(body: bytes) -> PageText:
    import pypdf

    reader = pypdf.PdfReader(io.BytesIO(body))
    texts, n_chars = list[str](), 0
    for page in reader.pages[:MAX_PDF_PAGES]:
        texts.append(page.extract_text())
        n_chars += len(texts[-1])
        if n_chars > MAX_CHARS:
            break
    if not any(text.strip() for text in texts):
        return PageText(title="", text="")
    text = "\n\n".join(f"## Page {n}\n\n{text}" for n, text in enumerate(texts, start=1))
    end = _LONGER.format("PDF") if len(texts) < len(reader.pages) else ""
    title = str(reader.metadata.title or "") if reader.metadata else ""
    return PageText(title=title[:300], text=text + end)


class _WordReader(_PlainReader):
    """Converts the HTML that mammoth makes of a Word document. The paragraphs of a table's cell are
    joined to one line."""

    _n_cells = 0  # how many cells are open: a cell may contain a table

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("p", "br", "li") or not self._n_cells:
            super().handle_starttag(tag, attrs)
        else:
            self._put(" ")
        self._n_cells += tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        self._n_cells -= tag in ("td", "th")
        if tag not in ("p", "ul", "ol") or not self._n_cells:
            super().handle_endtag(tag)


def _read_word(body: bytes) -> PageText:
    """Return a Word document as Markdown, with tracked changes accepted."""
    import mammoth  # python-docx leaves out text that a tracked change has inserted

    html = mammoth.convert_to_html(
        io.BytesIO(body), convert_image=lambda image: [], external_file_access=False
    )
    return PageText(title="", text=_WordReader("").read(html.value))


def _read_sheets(body: bytes) -> PageText:
    """Return each sheet of a workbook (.xlsx) as a Markdown table. A formula is shown
    as its last calculated value. Empty rows are left out."""
    from python_calamine import CalamineWorkbook

    tables, n_chars = list[str](), 0
    workbook = CalamineWorkbook.from_filelike(io.BytesIO(body))
    for name in workbook.sheet_names:
        sheet = workbook.get_sheet_by_name(name)
        if sheet.height * sheet.width > MAX_CELLS:
            raise ValueError(f"the sheet {name!r} has over {MAX_CELLS:,} cells")
        # rows of the same length; none for a sheet that is only a diagram
        rows = [[_show_cell(cell) for cell in row] for row in sheet.to_python()]
        lines = [f"| {' | '.join(row)} |" for row in rows if any(row)]
        if lines:
            lines.insert(1, "|" + " --- |" * len(rows[0]))
            tables.append("\n".join([f"## {' '.join(name.split())}", "", *lines]))
            n_chars += len(tables[-1])
        if n_chars > MAX_OFFICE_CHARS:
            break
    return PageText(title="", text="\n\n".join(tables))


def _show_cell(value: object) -> str:
    """Return a cell's value on one line: a number with at most 15 digits, as in Excel, and a date
    in ISO 8601."""
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, bool):
        return str(value).upper()
    return " ".join(str(value).split()).replace("|", r"\|")


# by kind: its name for people, and what reads it
_DOCUMENTS = {
    "pdf": ("PDF", _read_pdf),
    "word": ("Word document", _read_word),
    "sheets": ("workbook", _read_sheets),
}


# -- the program
# --------------------------------------------------------------------------------------------------


def main() -> None:
    """Read the page within `sandbox/confined.py`, which stands in the folder that is the first
    argument. Where the machine cannot confine, only time and memory are bounded."""
    folder, content_type, url = sys.argv[1:4]
    sys.path.insert(0, folder)
    import confined  # type: ignore[import-not-found]  # it is on the path only here

    body = sys.stdin.buffer.read()
    load_parsers(_kind_of(content_type.partition(";")[0].strip().casefold(), body), len(body))
    with contextlib.suppress(confined.CannotConfineError):
        confined.confine(MAX_CPU_S, MAX_MEMORY_BYTES)
    try:
        page = read_text(body, content_type=content_type, url=url)
        said = {"title": page.title, "text": page.text}
    except UnreadableError as error:
        said = {"error": str(error)}
    except BaseException:  # the interpreter's normal exit needs system calls that are now forbidden
        os._exit(1)
    confined.write_all(json.dumps(said).encode())
    os._exit(0)


def load_parsers(kind: str, n_bytes: int) -> None:
    """Load what the parsers of such a page load only when they need it: behind the filter no file
    can be opened."""
    late = [f"encodings.{module.name}" for module in pkgutil.iter_modules(encodings.__path__)]
    for name in [*late, *_LOADED_LATE.get(kind, "").split()]:
        # some codecs exist only on other systems, and a package may be missing
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if (
        kind == "html" and n_bytes > MAX_WHOLE_CHARS // 4
    ):  # a page's text is hardly four times as long
        _find_main_text("<html><body><p>word</p></body></html>", "https://site.test/")


if __name__ == "__main__":
    main()
