"""Tools that list, search, read and write in the person's folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, TypeVar

from babyagi.files import MAX_FILE_BYTES, FileText, Folder, FoundLines, Listing
from babyagi.offload import Offload
from babyagi.tasks import Effect, Passage
from babyagi.tools.base import Preview, Tool, takes

# lines on either side, after the equal ones at both ends; comparing takes their product in the
# worst case
MAX_COMPARED_LINES = 4000
N_AROUND = 3  # lines shown on each side of a change

SignedLine = tuple[str, str]


def compare(before: str, after: str) -> tuple[SignedLine, ...] | None:
    """Return the lines with `-` (removed), `+` (added) or a blank (kept), and `@` with the number
    of kept lines that are left out.

    Lines end with `\\n` alone, so any other line end is part of a line. None when too much differs.
    """
    old, new = before.split("\n"), after.split("\n")
    n_head = _count_same(old, new)
    n_tail = _count_same(old[n_head:][::-1], new[n_head:][::-1])
    old_middle, new_middle = old[n_head : len(old) - n_tail], new[n_head : len(new) - n_tail]
    if max(len(old_middle), len(new_middle)) > MAX_COMPARED_LINES:
        return None
    changes = _compare_middle(old_middle, new_middle)
    lines = [
        *((" ", line) for line in old[:n_head]),
        *changes,
        *((" ", line) for line in old[len(old) - n_tail :]),
    ]
    return tuple(_leave_out(lines))


def _count_same(one: Sequence[str], other: Sequence[str]) -> int:
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def _compare_middle(old: Sequence[str], new: Sequence[str]) -> Iterator[SignedLine]:
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            yield from ((" ", line) for line in old[old_from:old_to])
        else:
            yield from (("-", line) for line in old[old_from:old_to])
            yield from (("+", line) for line in new[new_from:new_to])


def _leave_out(lines: Sequence[SignedLine]) -> Iterator[SignedLine]:
    """Return the lines, with a number in place of lines further than `N_AROUND` from any change."""
    changed = [at for at, (sign, _) in enumerate(lines) if sign != " "]
    shown = {near for at in changed for near in range(at - N_AROUND, at + N_AROUND + 1)}
    n_left_out = 0
    for at, line in enumerate(lines):
        if at not in shown:
            n_left_out += 1
            continue
        if n_left_out:
            yield "@", str(n_left_out)
            n_left_out = 0
        yield line
    if n_left_out:
        yield "@", str(n_left_out)


# --------------------------------------------------------------------------------------------------
# The tools on the objective's folder: list files, read them with line numbers to cite, search words
# in them, write one.
# --------------------------------------------------------------------------------------------------

T = TypeVar("T")

PATTERN = {
    "type": "string",
    "description": "Only these: a glob such as *.md or docs/*, or a "
    "part of the path. All if left out.",
}

MAX_OUTPUT_CHARS = 16_000
DEFAULT_LINES = 200
MAX_LINES = 400
NUMBERING_CHARS = 8  # `123456: ` before each line
FRAME_CHARS = 1500  # the lines before and after, with a path in each


def build_file_tools(folder: Folder, *, offload: Offload) -> tuple[Tool, ...]:
    """Return `list_files`, `read_file` and `search_files` on this folder."""
    return (
        _build_list_files(folder, offload),
        _build_read_file(folder, offload),
        _build_search_files(folder, offload),
    )


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


def _build_read_file(folder: Folder, offload: Offload) -> Tool:
    async def read_file(arguments: Mapping[str, Any]) -> Passage:
        n_lines = arguments.get("n_lines", DEFAULT_LINES)
        max_chars = MAX_OUTPUT_CHARS - FRAME_CHARS - NUMBERING_CHARS * n_lines
        text = await offload(
            lambda: folder.read(
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
            "Read a text file of the folder. Each line comes with its number, so that it can "
            "be cited as path:number."
        ),
        parameters=takes(
            "path",
            path={"type": "string", "description": "The file's path, as list_files shows it."},
            first_line={
                "type": "integer",
                "minimum": 1,
                "description": "The line to begin with; 1 if left out.",
            },
            n_lines={
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_LINES,
                "description": f"How many lines at most; {DEFAULT_LINES} if left out.",
            },
        ),
        effect=Effect.READ,
        run=read_file,
        max_output_chars=MAX_OUTPUT_CHARS,
    )


def _build_search_files(folder: Folder, offload: Offload) -> Tool:
    async def search_files(arguments: Mapping[str, Any]) -> Passage:
        words, pattern = arguments["words"], arguments.get("pattern", "")
        found = await offload(lambda: folder.search(words, pattern))
        sources = tuple(dict.fromkeys(f"file:{line.path}" for line in found.lines))
        return Passage(
            text=render_found(found, words=words), origin="tool:search_files", sources=sources
        )

    return Tool(
        name="search_files",
        description=(
            "Find the lines of the folder's text files that hold these words, each as path:number."
        ),
        parameters=takes(
            "words",
            words={"type": "string", "description": "What the line holds, word for word."},
            pattern=PATTERN,
        ),
        effect=Effect.READ,
        run=search_files,
        max_output_chars=MAX_OUTPUT_CHARS,
    )


def build_write_file(folder: Folder, *, offload: Offload) -> Tool:
    """Return `write_file` on this folder. It changes files, so only an objective that was started
    with it gets it."""

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
            path={"type": "string", "description": "The file's path, relative to the folder."},
            text={"type": "string", "description": "All that the file shall hold."},
            replace={
                "type": "boolean",
                "description": "Whether a file that is there is replaced; false if left out.",
            },
        ),
        effect=Effect.ONCE,
        run=write_file,
        preview=preview,
    )


def _preview(before: bytes | None, arguments: Mapping[str, Any]) -> Preview:
    """Return what writing the file would change in it."""
    if before is None:
        return Preview(state="nothing", note="The file is new.")
    state, text = hashlib.sha256(before).hexdigest(), _read_text(before)
    if not arguments.get("replace", False):
        return Preview(
            state=state, note="A file is there already, so without replace this call will fail."
        )
    lines = None if text is None else compare(text, arguments["text"])
    if lines is None:
        return Preview(state=state, note=f"The file is replaced, all {len(before):,} bytes of it.")
    changes = [sign for sign, _ in lines if sign in "+-"]
    note = (
        f"The file is changed: +{changes.count('+')} and -{changes.count('-')} lines."
        if changes
        else "The file stays as it is."
    )
    return Preview(state=state, note=note, parameter="text", lines=lines)


def _read_text(data: bytes) -> str | None:
    try:
        return data.decode() if len(data) <= MAX_FILE_BYTES else None
    except UnicodeDecodeError:
        return None


def render_found(found: FoundLines, *, words: str) -> str:
    """Return each line that was found, `path:number: line`, as many as fit."""
    if not found.lines:
        return f"No line of {found.n_files} files holds {words[:100]!r}."
    lines: list[str] = []
    n_chars = 0
    for one in found.lines:
        line = f"{one.path}:{one.line}: {one.text.strip()}"
        n_chars += len(line) + 1
        if n_chars > MAX_OUTPUT_CHARS - FRAME_CHARS:
            break
        lines.append(line)
    is_cut = found.is_cut or len(lines) < len(found.lines)
    return "\n".join(
        [*lines, "[there may be more; longer words or a pattern find others]"] if is_cut else lines
    )


def render_listing(listing: Listing, *, pattern: str) -> str:
    """Return one line for each file, `path  (size)`, as many as fit; then what is not shown, and
    how to see it."""
    if not listing.files:
        return f"No file matches {pattern!r}." if pattern else "The folder holds no files."
    lines: list[str] = []
    n_chars = 0
    for file in listing.files:
        line = f"{file.path}  ({_render_size(file.size_bytes)})"
        n_chars += len(line) + 1
        if n_chars > MAX_OUTPUT_CHARS - FRAME_CHARS:
            break
        lines.append(line)
    total, n_more = f"{listing.n_files} files", f"{listing.n_files - len(lines)} more"
    if listing.is_cut:
        total = f"{listing.n_files} or more files"
        lines.append(
            f"[{len(lines)} of {total} shown, {n_more} or many more; the folder is too "
            "large to look through: docs/* looks into docs]"
        )
    elif len(lines) < listing.n_files:
        lines.append(
            f"[{len(lines)} of {total} shown, {n_more}; a pattern such as docs/* or *.md "
            "shows others]"
        )
    return "\n".join([total, *lines])


def render_text(text: FileText) -> str:
    """Return a head line `PATH, lines 1-80 of 210`, the numbered lines, and how to read on when
    there is more."""
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
