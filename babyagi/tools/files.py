"""The tools that list, search, read and write the files of the person's folder."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from posixpath import commonprefix, splitext
from threading import RLock
from typing import Any

from babyagi.errors import ToolError
from babyagi.files.folder import (
    MAX_FILE_BYTES,
    OFFICE_BY_SUFFIX,
    FileText,
    Folder,
    ListedFile,
    Listing,
)
from babyagi.retrieval.pages import read_document
from babyagi.retrieval.rank import Counted, Part, count_words, score_words, split_parts
from babyagi.runtime.offload import Offload
from babyagi.tasks import Effect, FolderTexts, Passage
from babyagi.text import shorten
from babyagi.tools.base import Preview, Tool, number_schema, takes, text_schema

# The lines of each text from the first change to the last. The time to compare may grow with the
# product of the two numbers of lines.
MAX_COMPARED_LINES = 4000
N_AROUND = 3  # lines shown on each side of a change

SignedLine = tuple[str, str]


def compare(before: str, after: str) -> tuple[SignedLine, ...] | None:
    r"""Return the difference of two texts as (sign, line): `-` for a removed, `+` for an added, a
    blank for a kept line; `@` with the number of kept lines that are left out. None if too many
    lines differ.

    Lines end only with `\n`; any other line end is part of a line.
    """
    old, new = before.split("\n"), after.split("\n")
    n_head = len(commonprefix([old, new]))
    n_tail = len(commonprefix([old[n_head:][::-1], new[n_head:][::-1]]))
    if max(len(old), len(new)) - n_head - n_tail > MAX_COMPARED_LINES:
        return None
    start, n_end = max(0, n_head - N_AROUND), max(0, n_tail - N_AROUND)
    old, new = old[start : len(old) - n_end], new[start : len(new) - n_end]
    kept: list[SignedLine] = []
    at = -start
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(N_AROUND):
        kept += _leave_out(group[0][1] - at)
        for kind, old_from, old_to, new_from, new_to in group:
            is_kept = kind == "equal"
            kept += ((" " if is_kept else "-", line) for line in old[old_from:old_to])
            kept += (("+", line) for line in new[new_from:new_to] if not is_kept)
        at = group[-1][2]
    return (*kept, *_leave_out(len(old) + n_end - at))


def _leave_out(n_lines: int) -> list[SignedLine]:
    return [("@", str(n_lines))] if n_lines else []


# --------------------------------------------------------------------------------------------------
# The tools: list the files, read one with line numbers to cite, search them, write one.
# --------------------------------------------------------------------------------------------------


PATTERN = text_schema(
    "Only these: a glob such as *.md or docs/*, or a part of the path. All if left out."
)

NO_FILES = "There is no file to search; without a pattern, all files are searched."
MAX_OUTPUT_CHARS = 16_000
DEFAULT_LINES = 200
MAX_LINES = 400
MAX_WHOLE_FILES = 100  # a larger folder is searched
NUMBERING_CHARS = 8  # of `123456: ` before each line
FRAME_CHARS = 1500  # of the lines before and after the text, each with a path
TIMEOUT_S = 120.0  # a call may wait for searches and documents of other tasks


def build_file_tools(folder: Folder, *, offload: Offload) -> tuple[Tool, ...]:
    """Return the tools `list_files`, `read_file` and `search_files` for the folder."""
    search = FileSearch(folder)
    return (
        _build_list_files(folder, offload),
        _build_read_file(search, offload),
        _build_search_files(search, offload),
    )


def find_texts(folder: Folder, *, question: str, max_bytes: int) -> FolderTexts:
    """Return the texts of all files of the folder, if together they have at most `max_bytes` bytes;
    else the passages that come closest to the question, in as many bytes. Blocks."""
    search, passages, left = FileSearch(folder), list[Passage](), max_bytes
    listing = folder.list("", limit=MAX_WHOLE_FILES)
    is_whole = listing.n_files == len(listing.files) and not listing.is_cut
    for file in listing.files if is_whole else ():
        try:
            text = search.read(file.path, first_line=1, max_lines=left, max_chars=left)
        except ToolError:
            is_whole = False  # a picture, say: the tool says why it cannot be read
            continue
        left -= len(text.text.encode("utf-8", "replace"))
        if left < 0 or text.last_line < text.n_lines or text.is_cut:
            return _find_nearest(search, question=question, max_bytes=max_bytes)
        passages.append(Passage(text=text.text, origin=f"file:{text.path}"))
    if not listing.files or passages:
        return FolderTexts(passages=tuple(passages), is_whole=is_whole)
    return _find_nearest(search, question=question, max_bytes=max_bytes)


def _find_nearest(search: FileSearch, *, question: str, max_bytes: int) -> FolderTexts:
    passages: list[Passage] = []
    for extract in search.find(question).extracts:
        text = _render_extract(extract)
        max_bytes -= len(text.encode("utf-8", "replace"))
        if max_bytes < 0:
            break
        passages.append(Passage(text=text, origin=f"file:{extract.path}"))
    return FolderTexts(passages=tuple(passages))


def _build_list_files(folder: Folder, offload: Offload) -> Tool:
    async def list_files(arguments: Mapping[str, Any]) -> Passage:
        pattern = arguments.get("pattern", "")
        listing = await offload(lambda: folder.list(pattern))
        return Passage(text=render_listing(listing, pattern=pattern), origin="tool:list_files")

    return Tool(
        name="list_files",
        description="List the files of the folder, with their sizes.",
        parameters=takes(pattern=PATTERN),
        effect=Effect.READ,
        run=list_files,
        max_output_chars=MAX_OUTPUT_CHARS,
    )


def _build_read_file(search: FileSearch, offload: Offload) -> Tool:
    async def read_file(arguments: Mapping[str, Any]) -> Passage:
        n_lines = arguments.get("n_lines", DEFAULT_LINES)
        max_chars = MAX_OUTPUT_CHARS - FRAME_CHARS - NUMBERING_CHARS * n_lines
        text = await offload(
            lambda: search.read(
                arguments["path"],
                first_line=arguments.get("first_line", 1),
                max_lines=n_lines,
                max_chars=max_chars,
            )
        )
        return Passage(text=render_text(text), origin=f"file:{text.path}")

    return Tool(
        name="read_file",
        description=(
            "Read a text file, a PDF, a Word document or a workbook of the folder. Each "
            "line comes with its number, so that it can be cited as path:number."
        ),
        parameters=takes(
            "path",
            path=text_schema("The file's path, as list_files shows it."),
            first_line=number_schema("The line to begin with; 1 if left out.", least=1),
            n_lines=number_schema(
                f"How many lines at most; {DEFAULT_LINES} if left out.", least=1, most=MAX_LINES
            ),
        ),
        effect=Effect.READ,
        run=read_file,
        timeout_s=TIMEOUT_S,
        max_output_chars=MAX_OUTPUT_CHARS,
    )


def _build_search_files(search: FileSearch, offload: Offload) -> Tool:
    async def search_files(arguments: Mapping[str, Any]) -> Passage:
        words = arguments["words"]
        found = await offload(lambda: search.find(words, pattern=arguments.get("pattern", "")))
        sources = tuple(dict.fromkeys(f"file:{extract.path}" for extract in found.extracts))
        return Passage(
            text=render_found(found, words=words), origin="tool:search_files", sources=sources
        )

    return Tool(
        name="search_files",
        description=(
            "Find the passages of the folder's files that come closest to a question or to some "
            "words, the best first. Each line comes with its number, so that it can be "
            "cited as path:number, and read_file reads on from there. In a folder of many files, "
            "search before you read."
        ),
        parameters=takes(
            "words",
            words=text_schema("The question, or words that its answer would have."),
            pattern=PATTERN,
        ),
        effect=Effect.READ,
        run=search_files,
        timeout_s=TIMEOUT_S,
        max_output_chars=MAX_OUTPUT_CHARS,
    )


def build_write_file(folder: Folder, *, offload: Offload) -> Tool:
    """Return the tool `write_file` for the folder. An objective has this tool only if a person has
    granted it, because it changes files."""

    async def write_file(arguments: Mapping[str, Any]) -> Passage:
        path, is_new = arguments["path"], not arguments.get("replace", False)
        n_bytes = await offload(lambda: folder.write(path, arguments["text"], replace=not is_new))
        return Passage(text=f"{path} is written, {n_bytes} bytes", origin="tool:write_file")

    async def preview(arguments: Mapping[str, Any]) -> Preview:
        return _preview(await offload(lambda: folder.look(arguments["path"])), arguments)

    return Tool(
        name="write_file",
        description="Write a text file into the folder, whole.",
        parameters=takes(
            "path",
            "text",
            path=text_schema("The file's path, relative to the folder."),
            text=text_schema("The whole content of the file."),
            replace={
                "type": "boolean",
                "description": "Whether an existing file is replaced; false if left out.",
            },
        ),
        effect=Effect.ONCE,
        run=write_file,
        preview=preview,
    )


def _preview(before: bytes | None, arguments: Mapping[str, Any]) -> Preview:
    """Return what a call of `write_file` would change, if the file's content is `before` (None: the
    file does not exist)."""
    if before is None:
        return Preview(state="nothing", note="The file is new.")
    state, text = hashlib.sha256(before).hexdigest(), _read_text(before)
    if not arguments.get("replace", False):
        return Preview(
            state=state, note="The file exists already, so without replace this call will fail."
        )
    lines = None if text is None else compare(text, arguments["text"])
    if lines is None:
        return Preview(state=state, note=f"The file is replaced, all {len(before):,} bytes of it.")
    changes = [sign for sign, _ in lines if sign in "+-"]
    note = (
        f"The file is changed: +{changes.count('+')} and -{changes.count('-')} lines."
        if changes
        else "The file stays unchanged."
    )
    return Preview(state=state, note=note, parameter="text", lines=lines)


def _read_text(data: bytes) -> str | None:
    try:
        return data.decode() if len(data) <= MAX_FILE_BYTES else None
    except UnicodeDecodeError:
        return None


def render_found(found: Found, *, words: str) -> str:
    """Return the passages as text for a model: numbered lines under a line such as `PATH, lines
    12-18, under HEADING`. The end says what was not searched, and what is not shown."""
    notes = []
    if found.n_files + len(found.late) < found.n_listed:
        notes.append(
            f"[{found.n_files} of {found.n_listed} files searched; a pattern such as docs/* "
            "searches others]"
        )
    if found.textless:
        notes.append(
            f"[not searched, because they are not readable as text: {_name(found.textless)}; "
            "read_file says why]"
        )
    if found.late:
        notes.append(
            f"[not searched, because one search reads only so much: {_name(found.late)}; search "
            "again, or with a pattern such as docs/*]"
        )
    if not found.extracts:
        n_read = found.n_files - len(found.textless)
        said = f"No passage of {n_read} files contains {words[:100]!r}."
        return "\n".join([said if found.n_listed else NO_FILES, *notes])
    shown = _fit(map(_render_extract, found.extracts), between=2)
    if len(shown) < found.n_extracts:
        notes.append(
            f"[{len(shown)} of {found.n_extracts} passages that contain some of these words; other "
            "words or a pattern find others]"
        )
    return "\n\n".join([*shown, *notes])


def _name(paths: Sequence[str]) -> str:
    n_more = len(paths) - MAX_NAMED
    return ", ".join(paths[:MAX_NAMED]) + (f" and {n_more} more" if n_more > 0 else "")


def _render_extract(extract: Extract) -> str:
    part = extract.part
    last_line = part.first_line + len(part.lines) - 1
    under = f", under {' > '.join(part.headings)}" if part.headings else ""
    head = f"{extract.path}, lines {part.first_line}-{last_line}{under}"
    numbered = (f"{n}: {line}" for n, line in enumerate(part.lines, part.first_line))
    return "\n".join([head, *numbered])


def render_listing(listing: Listing, *, pattern: str) -> str:
    """Return the list of files as text for a model: a line `path (size)` for each file. If not all
    of them fit, the end says so, and how to list the others."""
    if not listing.files:
        return f"No file matches {pattern!r}." if pattern else "The folder has no files."
    texts = (f"{file.path}  ({_render_size(file.size_bytes)})" for file in listing.files)
    lines = _fit(texts, between=1)
    total = f"{listing.n_files}{' or more' if listing.is_cut else ''} files"
    if listing.is_cut or len(lines) < listing.n_files:
        how = "a pattern such as docs/* or *.md shows others"
        lines.append(f"[{len(lines)} of {total} shown; {how}]")
    return "\n".join([total, *lines])


def _fit(texts: Iterable[str], *, between: int) -> list[str]:
    """Return as many texts as an output may have, at least one; `between` characters are added to
    each."""
    shown: list[str] = []
    n_chars = 0
    for text in texts:
        n_chars += len(text) + between
        if shown and n_chars > MAX_OUTPUT_CHARS - FRAME_CHARS:
            break
        shown.append(text)
    return shown


def render_text(text: FileText) -> str:
    """Return lines of a file as text for a model: numbered, under a line such as `PATH, lines 1-80
    of 210`. If the file has more lines, the end says how to read on."""
    if not text.n_lines:
        return f"{text.path} is empty"
    head = f"{text.path}, lines {text.first_line}-{text.last_line} of {text.n_lines}"
    lines = [
        f"{number}: {line}"
        for number, line in enumerate(text.text.split("\n"), start=text.first_line)
    ]
    if text.last_line < text.n_lines:
        lines.append(f"[more: read_file with first_line={text.last_line + 1}]")
    elif text.is_cut:
        lines.append("[the file is larger than what can be read; its end is not shown]")
    return "\n".join([head, *lines])


def _render_size(size_bytes: int) -> str:
    if size_bytes < 1000:
        return f"{size_bytes} B"
    return f"{size_bytes / 1e3:.1f} kB" if size_bytes < 1e6 else f"{size_bytes / 1e6:.1f} MB"


# --------------------------------------------------------------------------------------------------
# Searching the folder: its files in passages, ranked by the words they share with a question.
# --------------------------------------------------------------------------------------------------

MAX_SEARCHED_FILES = 5000
MAX_READ_CHARS = 20_000_000  # after so many characters, a search reads no further file
MAX_READING_S = 15.0  # after so many seconds, too
MAX_KEPT_CHARS = 8_000_000  # of all passages that are cached for the next search
MAX_EXTRACTS = 10
MAX_EXTRACTS_OF_FILE = 3  # further passages of a file come after those of other files
EXTRACT_CHARS = 400  # after so many characters, the next blank line ends a passage
MAX_QUESTION_CHARS = 1000
MAX_NAMED = 5  # files that a note names

_DOCUMENTS = frozenset({".pdf", *OFFICE_BY_SUFFIX})


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """A passage of a file, with its words as they are counted."""

    path: str
    part: Part
    counted: Counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The outcome of a search in files.

    Attributes:
        extracts: the best passages, the best first.
        n_extracts: how many passages contain at least one of the words.
        n_files: how many files were opened.
        n_listed: how many files match the pattern.
        textless: the opened files that cannot be read as text, and so were not searched.
        late: the files that were not opened, because one search reads only so much.
    """

    extracts: tuple[Extract, ...]
    n_extracts: int
    n_files: int
    n_listed: int
    textless: tuple[str, ...]
    late: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What is cached of a file: its passages, or None if it cannot be read as text.

    A document, such as a PDF, is slow to read, so its lines are cached as well; if it cannot be
    read, `fault` says why.
    """

    extracts: tuple[Extract, ...] | None
    lines: tuple[str, ...] = ()
    fault: str = ""


class FileSearch:
    """Reads the text files and documents of a folder, and finds passages in them. The passages of a
    file and the text of a document are cached until the file changes. The methods block; one search
    at a time reads files, and one document at a time is parsed."""

    def __init__(self, folder: Folder, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._monotonic = monotonic
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._turn = RLock()

    def read(self, path: str, *, first_line: int, max_lines: int, max_chars: int) -> FileText:
        """Return lines of a text file or a document, as `Folder.read` does."""
        return self._folder.read(
            path,
            first_line=first_line,
            max_lines=max_lines,
            max_chars=max_chars,
            read_document=self._read_document,
        )

    def find(self, words: str, *, pattern: str = "") -> Found:
        """Return the passages that fit the words best. Passages that contain the words as a phrase
        come first.

        Args:
            pattern: only files whose path matches it are searched; '' means all files.

        Raises:
            ToolError: `words` is blank, or the folder cannot be read.
        """
        words = words.strip()[:MAX_QUESTION_CHARS]
        wanted = " ".join(words.casefold().split())
        if not wanted:
            raise ToolError("there is nothing to search for: write some words")
        listing = self._folder.list(pattern, limit=MAX_SEARCHED_FILES)
        files = listing.files
        with self._turn:
            split = self._split(files)
        opened = [(file.path, split[_key(file)]) for file in files if _key(file) in split]
        extracts = [extract for _, kept in opened for extract in kept.extracts or ()]
        scores = score_words(words, [extract.counted for extract in extracts])
        held = [at for at, score in enumerate(scores) if score > 0] or range(len(extracts))
        exact = {at for at in held if wanted in " ".join(extracts[at].part.lines).casefold()}
        ranked = sorted(
            (at for at in held if scores[at] > 0 or at in exact),
            key=lambda at: (at not in exact, -scores[at], at),
        )
        return Found(
            extracts=tuple(_choose([extracts[at] for at in ranked])),
            n_extracts=len(ranked),
            n_files=len(opened),
            n_listed=listing.n_files,
            textless=tuple(path for path, kept in opened if kept.extracts is None),
            late=tuple(file.path for file in files if _key(file) not in split),
        )

    def _split(self, files: Sequence[ListedFile]) -> dict[tuple[str, str], _Kept]:
        """Return the passages of the files that are cached or could be read within the
        bounds. Text files are read before documents; of each kind, files that can be cached before
        others, and then small files before large ones."""
        split = {key: self._kept[key] for key in map(_key, files) if key in self._kept}
        new = [file for file in files if _key(file) not in split]
        new.sort(key=lambda file: (_is_document(file), not file.state, file.size_bytes))
        ends_at, n_chars = self._monotonic() + MAX_READING_S, 0
        for file, lines in self._folder.read_lines(new, read_document=self._read_document):
            # a document is in the cache already
            split[_key(file)] = self._kept.get(_key(file)) or _Kept(
                extracts=None if lines is None else tuple(split_extracts(file.path, lines))
            )
            n_chars += sum(map(len, lines or ()))
            if n_chars >= MAX_READ_CHARS or self._monotonic() >= ends_at:
                break
        self._keep(split)
        return split

    def _read_document(self, file: ListedFile, media_type: str, data: bytes) -> str:
        """Return the text of a document, from the cache if the file has not changed. Raises
        `ToolError` if the document has no text."""
        with self._turn:
            kept = self._kept.get(_key(file))
            if kept is None or not (kept.lines or kept.fault):
                kept = _parse_document(file.path, media_type, data)
                self._keep({_key(file): kept})
        if kept.fault:
            raise ToolError(kept.fault)
        return "\n".join(kept.lines)

    def _keep(self, split: Mapping[tuple[str, str], _Kept]) -> None:
        """Cache the passages of these files, and as many of those cached before as fit. Only the
        latest state of each file stays."""
        paths = {path for path, _ in split}
        before = {key: kept for key, kept in self._kept.items() if key[0] not in paths}
        n_chars, self._kept = 0, {}
        for key, kept in {**split, **before}.items():
            n_chars += sum(len(extract.counted.joined) for extract in kept.extracts or ())
            if key[1] and n_chars <= MAX_KEPT_CHARS:
                self._kept[key] = kept


def _parse_document(path: str, media_type: str, data: bytes) -> _Kept:
    try:
        text = read_document(repr(shorten(path, 200)), data, media_type=media_type)
    except ToolError as error:
        return _Kept(extracts=None, fault=error.what)
    lines = tuple(text.split("\n"))
    return _Kept(extracts=tuple(split_extracts(path, lines)), lines=lines)


def _key(file: ListedFile) -> tuple[str, str]:
    return file.path, file.state


def _is_document(file: ListedFile) -> bool:
    return splitext(file.path)[1].casefold() in _DOCUMENTS


def _choose(ranked: Sequence[Extract]) -> list[Extract]:
    """Return the best passages. If a file has more than `MAX_EXTRACTS_OF_FILE` of them, its other
    passages come after those of all other files."""
    n_of_file: Counter[str] = Counter()
    first: list[Extract] = []
    later: list[Extract] = []
    for extract in ranked:
        n_of_file[extract.path] += 1
        (first if n_of_file[extract.path] <= MAX_EXTRACTS_OF_FILE else later).append(extract)
    return [*first, *later][:MAX_EXTRACTS]


def split_extracts(path: str, lines: Sequence[str]) -> Iterator[Extract]:
    """Yield the passages of a file."""
    for part in split_parts(lines, min_chars=EXTRACT_CHARS):
        counted = count_words(" ".join([path, *part.headings, *part.lines]))
        yield Extract(path=path, part=part, counted=counted)
