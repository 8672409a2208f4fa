"""The one door to the objective's folder: what is in it, what its text files say, writing one; and nothing outside it.

A path is checked, and then opened beneath the root without following links (`beneath.py`), so that nothing that changes in between
can lead outside. What `list` does not show (hidden files, caches) is neither read nor written.

Does not cover: formats other than plain text.
"""

from __future__ import annotations

import codecs
import difflib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path, PurePosixPath

from babyagi.errors import ToolError
from babyagi.files.beneath import FOLDER_FLAGS, open_beneath
from babyagi.files.writing import put_file

MAX_LISTED = 500
MAX_WALKED = 20_000  # directory entries looked at by one listing
MAX_DEPTH = 32
MAX_FILE_BYTES = 5_000_000
MAX_LINE_CHARS = 2000
MAX_HITS = 60
MAX_HIT_CHARS = 300
MAX_SEARCHED_BYTES = 50_000_000  # read by one search
MAX_UNREADABLE_RATIO = 0.1
MAX_PATH_CHARS = 1000

SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "CVS"})

_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LINE_BREAKERS = re.compile(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_FILE_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Regular files in natural order. `n_files` counts also those that did not fit; `is_cut`: the folder is too large to count."""

    files: tuple[ListedFile, ...]
    n_files: int
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """Lines `first_line` to `last_line` (from 1, both included) of a file of `n_lines`.

    `is_cut`: the file goes on behind the `MAX_FILE_BYTES` that are read, and `n_lines` counts only these.
    """

    path: str
    text: str
    first_line: int
    last_line: int
    n_lines: int
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A line that holds what was searched for."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """Lines in the order of the files. `is_cut`: there may be more, in these files or in others."""

    hits: tuple[Hit, ...]
    n_files: int
    is_cut: bool


class Folder:
    """Access below `root`. Calls block; paths in and out are relative, with `/`.

    Every failure is a `ToolError` of one line that names no path outside the folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def list(self, pattern: str = "", limit: int = MAX_LISTED) -> Listing:
        """Return the files whose path matches: a glob (`*.md`, `docs/*`), or a part of the path; empty means all."""
        found, is_cut = self._walk()
        wanted = pattern.strip().removeprefix("./")[:MAX_PATH_CHARS]
        files = sorted((file for file in found if _matches(file.path, wanted)), key=lambda file: _natural(file.path))
        return Listing(files=tuple(files[: min(limit, MAX_LISTED)]), n_files=len(files), is_cut=is_cut)

    def read(self, path: str, *, first_line: int = 1, max_lines: int = 200, max_chars: int = 12_000) -> FileText:
        """Return lines of a text file, as many as fit and at least one.

        Line ends become `\\n`; a line over `MAX_LINE_CHARS` is cut and says so; bytes that are no UTF-8 become U+FFFD.
        """
        parts = self._resolve(path)
        name = "/".join(parts)
        data = self._read_bytes(parts)
        is_cut = len(data) > MAX_FILE_BYTES
        lines = _split_lines(_decode(name, data[:MAX_FILE_BYTES]), is_cut=is_cut)
        if first_line > max(len(lines), 1):
            has = "is too large, what can be read of it has" if is_cut else "has"
            raise ToolError(f"{_show(name)} {has} {len(lines)} lines, there is no line {first_line}")
        shown: list[str] = []
        n_chars = 0
        for line in lines[first_line - 1 : first_line - 1 + max_lines]:
            bounded = _bound_line(line)
            n_chars += len(bounded) + 1
            if shown and n_chars > max_chars:
                break
            shown.append(bounded)
        last_line = first_line + len(shown) - 1
        return FileText(path=name, text="\n".join(shown), first_line=first_line, last_line=last_line, n_lines=len(lines), is_cut=is_cut)

    def search(self, words: str, pattern: str = "", limit: int = MAX_HITS) -> Hits:
        """Return the lines that hold these words, in upper or lower case, in the text files whose path matches."""
        wanted, listing = words.strip().casefold(), self.list(pattern)
        if not wanted:
            raise ToolError("there is nothing to search for: give some words")
        hits: list[Hit] = []
        n_files, left_bytes = 0, MAX_SEARCHED_BYTES
        for file in listing.files:
            left_bytes -= min(file.size_bytes, MAX_FILE_BYTES)
            if left_bytes < 0 or len(hits) >= limit:
                return Hits(hits=tuple(hits), n_files=n_files, is_cut=True)
            n_files += 1
            hits += self._search_file(file.path, wanted, limit - len(hits))
        is_cut = len(hits) >= limit or listing.is_cut or listing.n_files > len(listing.files)
        return Hits(hits=tuple(hits), n_files=n_files, is_cut=is_cut)

    def _search_file(self, path: str, wanted: str, limit: int) -> Sequence[Hit]:
        try:
            lines = _split_lines(_decode(path, self._read_bytes(tuple(path.split("/")))[:MAX_FILE_BYTES]), is_cut=False)
        except ToolError:  # no text, or gone meanwhile
            return []
        found = (
            Hit(path=path, line=n, text=_bound_line(line)[:MAX_HIT_CHARS]) for n, line in enumerate(lines, 1) if wanted in line.casefold()
        )
        return tuple(islice(found, limit))

    def write(self, path: str, text: str, *, replace: bool = False) -> int:
        """Write a text file whole, or not at all, making the folders on its way. Returns its size in bytes.

        A link is never followed or replaced; a file that is there only with `replace`.
        """
        data = text.encode("utf-8", "replace")
        if len(data) > MAX_FILE_BYTES:
            raise ToolError(f"the text is over {MAX_FILE_BYTES} bytes")
        parts = self._check(path)
        if not parts or path.endswith("/"):
            raise ToolError(f"{_show(path)} names a folder; a file needs a name")
        with self._open_folder(()) as root_fd:
            try:
                put_file(root_fd, parts, data, replace=replace)
            except FileExistsError:
                raise ToolError(f"{_show(path)} is there already; pass replace=true to write it anew") from None
            except OSError as error:
                raise ToolError(f"{_show(path)} cannot be written: {error.strerror}") from None
        return len(data)

    def look(self, path: str) -> bytes | None:
        """Return what `write` would replace, or its first `MAX_FILE_BYTES` and one more; None where there is nothing."""
        parts = self._check(path)
        try:
            with self._open_folder(()) as root_fd:
                os.close(open_beneath(root_fd, parts, _FILE_FLAGS))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ToolError(f"{_show(path)} cannot be read: {error.strerror}") from None
        return self._read_bytes(parts)

    def _check(self, path: str) -> tuple[str, ...]:
        """The components of a path as a model wrote it, none of them leading upwards or hidden; links are not looked at."""
        if not path.strip() or len(path) > MAX_PATH_CHARS or _UNSHOWABLE.search(path):
            raise ToolError(f"{_show(path)} is not a path of a file in this folder")
        parts = PurePosixPath(path).parts
        if PurePosixPath(path).is_absolute() or ".." in parts or "\\" in path:
            raise ToolError(f"{_show(path)} is outside the folder; paths are relative to it, as list_files shows them")
        if not all(map(_is_shown, parts)) or len(parts) > MAX_DEPTH:
            raise ToolError(f"{_show(path)} is hidden or too deep; such files are left alone")
        return parts

    def _resolve(self, path: str) -> tuple[str, ...]:
        """The components below the root of a path as a model wrote it, links resolved."""
        if not path.strip() or len(path) > MAX_PATH_CHARS or _UNSHOWABLE.search(path):
            raise ToolError(f"{_show(path)} is not a path of a file in this folder")
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise ToolError(f"{_show(path)} is outside the folder; paths are relative to it, as list_files shows them")
        root = os.path.realpath(self._root)
        try:
            resolved = Path(os.path.realpath(os.path.join(root, path)))  # noqa: PTH118 - as given, a Path would drop nothing we check
        except (OSError, ValueError):
            raise ToolError(f"{_show(path)} cannot be read") from None
        if not resolved.is_relative_to(root):
            raise ToolError(f"{_show(path)} leads outside the folder")
        parts = resolved.relative_to(root).parts
        if not all(map(_is_shown, parts)):
            raise ToolError(f"{_show(path)} is hidden; hidden files are not read")
        return parts

    def _read_bytes(self, parts: tuple[str, ...]) -> bytes:
        """At most `MAX_FILE_BYTES` and one byte of a regular file."""
        name = "/".join(parts)
        if not parts:
            raise ToolError("this is the folder itself; list_files shows what it holds")
        try:
            with self._open_folder(()) as root_fd:
                fd = open_beneath(root_fd, parts, _FILE_FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            raise ToolError(f"no file {_show(name)}{self._suggest(name)}") from None
        except OSError as error:
            raise ToolError(f"{_show(name)} cannot be read: {error.strerror}") from None
        try:
            mode = os.fstat(fd).st_mode
            if stat.S_ISDIR(mode):
                raise ToolError(f"{_show(name)} is a folder; list_files with pattern {_show(name + '/*')} shows what it holds")
            if not stat.S_ISREG(mode):
                raise ToolError(f"{_show(name)} is not a regular file")
            with open(fd, "rb", closefd=False) as file:
                return file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise ToolError(f"{_show(name)} cannot be read: {error.strerror}") from None
        finally:
            os.close(fd)

    @contextmanager
    def _open_folder(self, parts: tuple[str, ...]) -> Iterator[int]:
        """A descriptor of the folder with these components below the root, reached without following a link."""
        root_fd = os.open(os.path.realpath(self._root), FOLDER_FLAGS)
        try:
            fd = open_beneath(root_fd, parts, FOLDER_FLAGS)
        finally:
            os.close(root_fd)
        try:
            yield fd
        finally:
            os.close(fd)

    def _walk(self) -> tuple[Sequence[ListedFile], bool]:
        """Every file that may be shown, and whether the walk had to stop early."""
        found: list[ListedFile] = []
        waiting: list[tuple[str, ...]] = [()]
        n_walked = 0
        while waiting:
            parts = waiting.pop()
            for entry in self._scan(parts, MAX_WALKED - n_walked):
                n_walked += 1
                if isinstance(entry, ListedFile):
                    found.append(entry)
                elif entry is not None and len(entry) <= MAX_DEPTH:
                    waiting.append(entry)
            if n_walked >= MAX_WALKED:
                return found, True
        return found, False

    def _scan(self, parts: tuple[str, ...], max_entries: int) -> Iterator[ListedFile | tuple[str, ...] | None]:
        """Each entry of a folder: a file, the components of an inner folder, or None for what is not shown."""
        try:
            with self._open_folder(parts) as fd, os.scandir(fd) as entries:
                for _, entry in zip(range(max_entries), entries, strict=False):
                    yield _to_listed(entry, parts)
        except OSError as error:
            if not parts:
                raise ToolError(f"the folder cannot be read: {error.strerror}") from None

    def _suggest(self, name: str) -> str:
        paths = [file.path for file in self.list().files]
        same_name = [path for path in paths if path.rpartition("/")[2].casefold() == name.rpartition("/")[2].casefold()]
        nearest = (same_name or difflib.get_close_matches(name, paths, n=3, cutoff=0.5))[:3]
        return f"; nearest: {', '.join(nearest)}" if nearest else "; list_files shows what there is"


def _is_shown(name: str) -> bool:
    return not name.startswith(".") and name not in SKIPPED_FOLDERS and not _UNSHOWABLE.search(name)


def _to_listed(entry: os.DirEntry[str], parts: tuple[str, ...]) -> ListedFile | tuple[str, ...] | None:
    if not _is_shown(entry.name):
        return None
    try:
        if entry.is_dir(follow_symlinks=False):
            return (*parts, entry.name)
        if entry.is_file(follow_symlinks=False):
            return ListedFile(path="/".join((*parts, entry.name)), size_bytes=entry.stat(follow_symlinks=False).st_size)
    except FileNotFoundError:  # removed while we looked
        return None
    return None


def _matches(path: str, pattern: str) -> bool:
    path, pattern = path.casefold(), pattern.casefold()
    if not any(char in pattern for char in "*?["):
        return pattern in ("", ".") or pattern in path
    flat = pattern.replace("**/", "*")
    return fnmatchcase(path, flat) or fnmatchcase(path.rpartition("/")[2], flat)


def _natural(path: str) -> list[tuple[list[str | int], str]]:
    """A key that sorts folder by folder, and `part2` before `part10`."""
    return [([int(piece) if i % 2 else piece for i, piece in enumerate(re.split(r"(\d+)", p.casefold()))], p) for p in path.split("/")]


def _decode(name: str, data: bytes) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
    elif b"\0" in data:
        raise ToolError(f"{_show(name)} is not a text file")
    else:
        text = data.decode("utf-8-sig", "replace")
    if text.count("\N{REPLACEMENT CHARACTER}") > MAX_UNREADABLE_RATIO * len(text):
        raise ToolError(f"{_show(name)} is not a text file")
    return text


def _split_lines(text: str, *, is_cut: bool) -> list[str]:
    """The lines, as editors count them; of a text that was cut off only the complete ones."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "" or (is_cut and len(lines) > 1):
        lines.pop()
    return lines


def _bound_line(line: str) -> str:
    line = _LINE_BREAKERS.sub(" ", line)
    n_more = len(line) - MAX_LINE_CHARS
    return line if n_more <= 0 else f"{line[:MAX_LINE_CHARS]} … ({n_more} more characters in this line)"


def _show(path: str) -> str:
    return repr(path if len(path) <= 200 else path[:200] + "…")
