"""Gives tools access to one folder: they may read its files, and write if the person allows it. No
path leads outside the folder."""

from __future__ import annotations

import codecs
import difflib
import errno
import hashlib
import os
import posixpath
import re
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import accumulate, takewhile
from pathlib import Path, PurePosixPath

from babyagi.errors import BabyagiError, ToolError, find_shortage
from babyagi.files.private import NO_LINKS
from babyagi.text import shorten

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_beneath(folder_fd: int, parts: Sequence[str], flags: int, mode: int = 0) -> int:
    """Open the file or folder that these path components name below the folder, and return its
    descriptor. Each component is opened in the folder before it, without following a link, so a
    folder that is replaced by a link meanwhile cannot lead outside.

    Args:
        parts: names without `/`, not empty, not `.`, not `..`. No parts: the folder itself.
        flags: as for `os.open`.
        mode: the permissions of a file that is created.

    Raises:
        OSError: as `os.open`; ELOOP or ENOTDIR for a symbolic link anywhere on the path.
    """
    if any(part in ("", ".", "..") or "/" in part for part in parts):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    *folders, name = parts or ["."]
    fd = os.dup(folder_fd)
    try:
        for folder in folders:
            inner = os.open(folder, FOLDER_FLAGS, dir_fd=fd)
            os.close(fd)
            fd = inner
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=fd)
    finally:
        os.close(fd)


# -- writing a file beneath a folder: the whole file or nothing, and never through a link
# --------------------------------------------------------------------------------------------------

_TEMPORARY = re.compile(r"\.[0-9a-f]{24}\.part")
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_MODE = 0o644
FOLDER_MODE = 0o755


def put_file(root_fd: int, parts: Sequence[str], data: bytes, *, replace: bool) -> None:
    """Write the file that these path components name below the root: the whole file or nothing,
    through a temporary file beside it. Missing folders are created.

    Raises:
        FileExistsError: the file exists and `replace` is False; nothing was written.
        OSError: nothing could be written.
    """
    *folders, name = parts
    folder_fd = _make_folders(root_fd, folders)
    try:
        _require_place(folder_fd, name, replace=replace)
        temporary = f".{hashlib.sha256(name.encode() + data).hexdigest()[:24]}.part"
        _write(folder_fd, temporary, data)
        try:
            if replace:
                os.replace(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
            else:
                _name_new(folder_fd, temporary, name)
        except OSError:
            os.unlink(temporary, dir_fd=folder_fd)
            raise
        os.fsync(folder_fd)
    finally:
        os.close(folder_fd)


def _name_new(folder_fd: int, temporary: str, name: str) -> None:
    """Give the temporary file its name. Raises `FileExistsError` if there is a file of this name,
    even one that another process has just created."""
    try:
        os.link(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.close(open_beneath(folder_fd, [name], _NEW_FILE, FILE_MODE))  # takes the name
        os.replace(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    else:
        os.unlink(temporary, dir_fd=folder_fd)


def is_temporary(name: str) -> bool:
    """Return whether `put_file` gives names of this form to temporary files. While `put_file` runs,
    or after it was killed, a file may have a temporary name besides its own."""
    return _TEMPORARY.fullmatch(name) is not None


def _make_folders(root_fd: int, folders: Sequence[str]) -> int:
    """Create the missing folders, and return a descriptor of the innermost one."""
    for depth, name in enumerate(folders):
        parent_fd = open_beneath(root_fd, folders[:depth], FOLDER_FLAGS)
        try:
            with suppress(FileExistsError):
                os.mkdir(name, FOLDER_MODE, dir_fd=parent_fd)
        finally:
            os.close(parent_fd)
    return open_beneath(root_fd, folders, FOLDER_FLAGS)


def _require_place(folder_fd: int, name: str, *, replace: bool) -> None:
    try:
        mode = os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(code, os.strerror(code))
    if not replace:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _write(folder_fd: int, name: str, data: bytes) -> None:
    try:
        fd = open_beneath(folder_fd, [name], _NEW_FILE, FILE_MODE)
    except FileExistsError:
        # a writer of the same content left it when it was killed: the name is a hash of the content
        os.unlink(name, dir_fd=folder_fd)
        fd = open_beneath(folder_fd, [name], _NEW_FILE, FILE_MODE)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        os.fsync(fd)
    except OSError:
        os.unlink(name, dir_fd=folder_fd)
        raise
    finally:
        os.close(fd)


# --------------------------------------------------------------------------------------------------
# The only access to the objective's folder: it lists the files, reads text files, and writes files.
#
# A path is checked, and then opened beneath the root without following links, so no change in
# between can lead outside. Files that `list` does not show (hidden files, caches) are neither read
# nor written. A file with another hard link, which may be outside the folder, is not read. `..` and
# absolute paths are accepted if they stay inside.
#
# Text files are decoded here. The text of a document (a PDF, a Word document or a workbook)
# comes from a function that the caller passes.
#
# Not covered: other formats, and the files that other workers of the same objective write.
# --------------------------------------------------------------------------------------------------

MAX_LISTED = 500
MAX_WALKED = 20_000  # directory entries that one listing examines
MAX_DEPTH = 32
MAX_FILE_BYTES = 5_000_000
MAX_DOCUMENT_BYTES = 20_000_000
MAX_LINE_CHARS = 2000
MAX_WRITTEN_FILES = 1000  # through one `Folder`; each worker has one for each objective
MAX_WRITTEN_BYTES = 50_000_000
MAX_UNREADABLE_RATIO = 0.1
MAX_ACCENTED_RATIO = 0.25  # of a text in a Western language; French has less than a tenth
MAX_PATH_CHARS = 1000

PDF = "application/pdf"
_OPEN_XML = "application/vnd.openxmlformats-officedocument"
OFFICE_BY_SUFFIX = {
    ".docx": f"{_OPEN_XML}.wordprocessingml.document",
    ".xlsx": f"{_OPEN_XML}.spreadsheetml.sheet",
}
_KIND_BY_MEDIA_TYPE = {  # in words
    PDF: "a PDF",
    OFFICE_BY_SUFFIX[".docx"]: "a Word document",
    OFFICE_BY_SUFFIX[".xlsx"]: "a workbook",
}

SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "CVS"})

_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LINE_BREAKERS = re.compile(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")  # what no text has
_FILE_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A file of a listing. `state` is a text that differs after each change of the file; it is
    empty if a change may go unnoticed."""

    path: str
    size_bytes: int
    state: str = ""


# returns the text of a document of this media type, or raises `ToolError`
ReadDocument = Callable[[ListedFile, str, bytes], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Regular files in natural order (`part2` before `part10`).

    Attributes:
        n_files: the number of matching files, including those beyond the limit, which `files`
            lacks.
        is_cut: whether the folder has more entries than were examined.
    """

    files: tuple[ListedFile, ...]
    n_files: int
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """Lines of a file, from `first_line` to `last_line`. Both are included, and counted from 1.

    Attributes:
        n_lines: how many lines the file has.
        is_cut: whether only the first `MAX_FILE_BYTES` of the file were read. `n_lines` counts the
            lines in these.
    """

    path: str
    text: str
    first_line: int
    last_line: int
    n_lines: int
    is_cut: bool


class Folder:
    """Access to the files below `root`. The methods block, and return relative paths with `/`.

    Every failure is a `ToolError` of one line, which names no path outside the folder. At most
    `MAX_WRITTEN_FILES` files and `MAX_WRITTEN_BYTES` bytes can be written.

    Args:
        without: a folder that counts as hidden if it is below `root`, such as the home folder,
            which contains keys.
    """

    def __init__(self, root: Path, *, without: Path | None = None) -> None:
        self._root = root
        self._without = _parts_below(root, without) if without is not None else None
        self._n_written, self._written_bytes = 0, 0
        self._quota = threading.Lock()

    def list(self, pattern: str = "", limit: int = MAX_LISTED) -> Listing:
        """Return the files whose path matches the pattern.

        Args:
            pattern: a glob (`*.md`, `docs/*`), a part of the path, or several paths with blanks or
                commas between them; empty for all files.
        """
        relative = self._relative(pattern.strip()).removeprefix("./")
        plain = posixpath.normpath(relative) if ".." in relative.split("/") else relative
        wanted = plain[:MAX_PATH_CHARS]
        found, is_cut = self._walk(_folder_of(wanted))
        files = [
            ListedFile(path=path, size_bytes=status.st_size, state=_state_of(status))
            for path, status in found
            if _is_shown(path.rpartition("/")[2]) and _matches(path, wanted)
        ]
        files.sort(key=lambda file: _natural(file.path))
        return Listing(files=tuple(files[:limit]), n_files=len(files), is_cut=is_cut)

    def read(
        self,
        path: str,
        *,
        first_line: int = 1,
        max_lines: int = 200,
        max_chars: int = 12_000,
        read_document: ReadDocument | None = None,
    ) -> FileText:
        """Return lines of a text file, or of the text of a document if `read_document` is given: as
        many from `first_line` on as `max_lines` and `max_chars` allow, and at least one.

        Line ends become `\\n`. A line over `MAX_LINE_CHARS` is cut, with a note. The text is UTF-8,
        UTF-16 with a byte order mark, or Windows-1252; other bytes become U+FFFD.
        """
        parts = self._resolve_shown(path)
        name = "/".join(parts)
        file, data = self._read(parts, self._count_names)
        lines, is_cut = _read_lines(file, data, read_document)
        if first_line > max(len(lines), 1):
            has = "is too large; the part that can be read has" if is_cut else "has"
            where = f"{len(lines)} lines, there is no line {first_line}"
            raise ToolError(f"{_show(name)} {has} {where}")
        shown: list[str] = []
        n_chars = 0
        for line in lines[first_line - 1 : first_line - 1 + max_lines]:
            bounded = _bound_line(line)
            n_chars += len(bounded) + 1
            if shown and n_chars > max_chars:
                break
            shown.append(bounded)
        last_line, text = first_line + len(shown) - 1, "\n".join(shown)
        return FileText(
            path=name, text=text, first_line=first_line, last_line=last_line, n_lines=len(lines),
            is_cut=is_cut,
        )  # fmt: skip

    def read_bytes(self, path: str) -> bytes:
        """Return the bytes of a file.

        Raises:
            ToolError: the file cannot be read, or is larger than `MAX_FILE_BYTES`.
        """
        _, data = self._read(self._resolve_shown(path), self._count_names)
        if len(data) > MAX_FILE_BYTES:
            raise ToolError(f"{_show(path)} is over {MAX_FILE_BYTES} bytes")
        return data

    def read_lines(
        self, files: Iterable[ListedFile], *, read_document: ReadDocument | None = None
    ) -> Iterator[tuple[ListedFile, Sequence[str] | None]]:
        """Yield each file with its lines; None in place of the lines of a file that cannot be read
        as text. Only the beginning of a text file over `MAX_FILE_BYTES` is read."""
        count_names = cache(self._count_names)
        for file in files:
            try:
                _, data = self._read(tuple(file.path.split("/")), count_names)
                lines, _ = _read_lines(file, data, read_document)
            except ToolError:  # not a text file, not allowed, or deleted meanwhile
                yield file, None
            else:
                yield file, lines

    def write(self, path: str, text: str, *, replace: bool = False) -> int:
        """Write a text file, the whole file or nothing, and create missing folders. Return its size
        in bytes.

        A link is never followed or replaced. An existing file is replaced only with `replace`.
        """
        data = text.encode("utf-8", "replace")
        if len(data) > MAX_FILE_BYTES:
            raise ToolError(f"the text is over {MAX_FILE_BYTES} bytes")
        parts = self._resolve_plain(path)
        if not parts or path.endswith("/"):
            raise ToolError(f"{_show(path)} names a folder; a file needs a name")
        with self._quota, self._open_folder(()) as root_fd:
            self._require_quota(len(data))
            try:
                put_file(root_fd, parts, data, replace=replace)
            except FileExistsError:
                fix = "pass replace=true to replace it"
                raise ToolError(f"{_show(path)} exists already; {fix}") from None
            except OSError as error:
                raise ToolError(f"{_show(path)} cannot be written: {error.strerror}") from None
            self._n_written += 1
            self._written_bytes += len(data)
        return len(data)

    def look(self, path: str) -> bytes | None:
        """Return the first `MAX_FILE_BYTES + 1` bytes of the file that `write` would replace; None
        if no file is there."""
        try:
            return self._read(self._resolve_plain(path), self._count_names)[1][: MAX_FILE_BYTES + 1]
        except ToolError as error:
            if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                return None
            raise

    def _require_quota(self, n_bytes: int) -> None:
        if self._n_written >= MAX_WRITTEN_FILES:
            what = f"{MAX_WRITTEN_FILES:,} files were written for this objective"
            raise ToolError(f"{what}, which is the limit; put the rest into your answer")
        if self._written_bytes + n_bytes > MAX_WRITTEN_BYTES:
            left = f"{MAX_WRITTEN_BYTES - self._written_bytes:,} of {MAX_WRITTEN_BYTES:,} bytes"
            what = f"this file has {n_bytes:,} bytes, but only {left} are left"
            raise ToolError(f"{what} for this objective; write less")

    def _below(self, path: str) -> tuple[str, ...]:
        """Return the components, below the root, of a path that a model wrote. They may contain
        `..`, but never lead above the root."""
        if not path.strip() or len(path) > MAX_PATH_CHARS or _UNSHOWABLE.search(path):
            raise ToolError(f"{_show(path)} is not a path of a file in this folder")
        parts = PurePosixPath(self._relative(path)).parts
        depths = accumulate(-1 if part == ".." else 1 for part in parts)
        if PurePosixPath(*parts).is_absolute() or min(depths, default=0) < 0:
            what = "is outside the folder; paths are relative to it, as list_files shows them"
            raise ToolError(f"{_show(path)} {what}")
        return parts

    def _relative(self, path: str) -> str:
        """Return an absolute path below the root as a relative one, and any other path
        unchanged."""
        for root in (os.path.abspath(self._root), os.path.realpath(self._root)):  # noqa: PTH100 - both as they are written
            if path == root or path.startswith(f"{root}/"):
                return path[len(root) :].lstrip("/") or "."
        return path

    def _resolve(self, path: str) -> tuple[str, ...]:
        """Return the components, below the root, of a path that a model wrote, with links
        resolved."""
        below = self._below(path)
        try:
            parts = _parts_below(self._root, self._root.joinpath(*below))
        except (OSError, ValueError):
            raise ToolError(f"{_show(path)} cannot be read") from None
        if parts is None:
            raise ToolError(f"{_show(path)} leads outside the folder")
        return parts

    def _resolve_shown(self, path: str) -> tuple[str, ...]:
        """Return what `_resolve` does. Raises `ToolError` if a component is hidden."""
        parts = self._resolve(path)
        if self._is_hidden(parts):
            raise ToolError(f"{_show(path)} is hidden; hidden files are not read")
        return parts

    def _resolve_plain(self, path: str) -> tuple[str, ...]:
        """Return the components of a path to write. Raises `ToolError` if one is hidden or a
        link."""
        parts = self._resolve(path)
        if parts != PurePosixPath(posixpath.normpath("/".join(self._below(path)))).parts:
            raise ToolError(f"{_show(path)} leads through a link; name the file without it")
        if "\\" in path or self._is_hidden(parts) or len(parts) > MAX_DEPTH:
            what = "is hidden or too deep, or not written with /; such files cannot be used"
            raise ToolError(f"{_show(path)} {what}")
        return parts

    def _is_hidden(self, parts: Sequence[str]) -> bool:
        return self._is_left_out(parts) or not all(map(_is_shown, parts))

    def _is_left_out(self, parts: Sequence[str]) -> bool:
        return self._without is not None and tuple(parts[: len(self._without)]) == self._without

    def _read(
        self, parts: tuple[str, ...], count_names: Callable[[], Mapping[str, int]]
    ) -> tuple[ListedFile, bytes]:
        """Open a regular file, and return it with its first bytes: at most `MAX_FILE_BYTES + 1`, or
        `MAX_DOCUMENT_BYTES + 1` of a document. A file with several hard links is read only if
        `count_names` finds all its names inside the folder."""
        name = "/".join(parts)
        if not parts:
            raise ToolError("this is the folder itself; list_files shows its files")
        try:
            with self._open_folder(()) as root_fd:
                fd = open_beneath(root_fd, parts, _FILE_FLAGS)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ToolError(f"no file {_show(name)}{self._suggest(name)}") from error
        except OSError as error:
            raise _fault(f"{_show(name)} cannot be read", error) from None
        try:
            status = os.fstat(fd)
            mode = status.st_mode
            if stat.S_ISDIR(mode):
                how = f"list_files with the pattern {_show(name + '/*')} shows its files"
                raise ToolError(f"{_show(name)} is a folder; {how}")
            if not stat.S_ISREG(mode):
                raise ToolError(f"{_show(name)} is not a regular file")
            if status.st_nlink > 1 and count_names().get(_identify(status), 0) < status.st_nlink:
                why = "it is a hard link, and its other name may be outside the folder"
                raise ToolError(
                    f"{_show(name)} is not read: {why}; a copy of it in the folder would be read"
                )
            listed = ListedFile(path=name, size_bytes=status.st_size, state=_state_of(status))
            return listed, _read_beginning(name, fd)
        except OSError as error:
            raise _fault(f"{_show(name)} cannot be read", error) from None
        finally:
            os.close(fd)

    @contextmanager
    def _open_folder(self, parts: tuple[str, ...]) -> Iterator[int]:
        """Open the folder that these components name below the root, without following a link, and
        yield its descriptor."""
        root_fd = os.open(os.path.realpath(self._root), FOLDER_FLAGS)
        try:
            fd = open_beneath(root_fd, parts, FOLDER_FLAGS)
        finally:
            os.close(root_fd)
        try:
            yield fd
        finally:
            os.close(fd)

    def _count_names(self) -> Mapping[str, int]:
        """Return how many names (hard links) each file with several names has in the folder."""
        return Counter(_identify(status) for _, status in self._walk()[0] if status.st_nlink > 1)

    def _walk(
        self, start: tuple[str, ...] = ()
    ) -> tuple[Sequence[tuple[str, os.stat_result]], bool]:
        """Return the regular files below `start` that may be shown or are temporary, and whether
        there were too many entries to examine all."""
        found: list[tuple[str, os.stat_result]] = []
        waiting = [start if self._root.joinpath(*start).is_dir() else ()]
        n_walked = 0
        while waiting and n_walked < MAX_WALKED:
            parts = waiting.pop()
            for name, status in self._scan(parts, MAX_WALKED - n_walked):
                n_walked += 1
                if status and stat.S_ISREG(status.st_mode):
                    found.append(("/".join((*parts, name)), status))
                elif status and len(parts) < MAX_DEPTH:
                    waiting.append((*parts, name))
        return found, n_walked >= MAX_WALKED

    def _scan(
        self, parts: tuple[str, ...], max_entries: int
    ) -> Iterator[tuple[str, os.stat_result | None]]:
        """Yield the name of each entry of a folder, with its status if it is a file or folder that
        may be shown, else with None."""
        if self._is_left_out(parts):
            return
        try:
            with self._open_folder(parts) as fd, os.scandir(fd) as entries:
                for _, entry in zip(range(max_entries), entries, strict=False):
                    yield entry.name, _look_at(entry)
        except OSError as error:
            if not parts or find_shortage(error):
                raise _fault("the folder cannot be read", error) from None

    def _suggest(self, name: str) -> str:
        paths = [file.path for file in self.list().files]
        wanted = posixpath.basename(name).casefold()
        same_name = [path for path in paths if posixpath.basename(path).casefold() == wanted]
        nearest = (same_name or difflib.get_close_matches(name, paths, n=3, cutoff=0.5))[:3]
        return f"; nearest: {', '.join(nearest)}" if nearest else "; list_files shows what there is"


def _fault(what: str, error: OSError) -> BabyagiError:
    return find_shortage(error) or ToolError(f"{what}: {error.strerror}")


def _parts_below(root: Path, folder: Path) -> tuple[str, ...] | None:
    """Return the path components of the folder below the root; None if it is not below the
    root."""
    whole, place = Path(os.path.realpath(root)), Path(os.path.realpath(folder))
    return place.relative_to(whole).parts if place.is_relative_to(whole) else None


def _is_shown(name: str) -> bool:
    return not name.startswith(".") and name not in SKIPPED_FOLDERS and not _UNSHOWABLE.search(name)


def _look_at(entry: os.DirEntry[str]) -> os.stat_result | None:
    if not _is_shown(entry.name) and not is_temporary(entry.name):
        return None
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # removed while we looked
        return None
    return status if stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode) else None


def _state_of(status: os.stat_result) -> str:
    """Return a text that differs after each change of the file; '' for a file with several hard
    links, which must be checked each time, because all links must be in the folder."""
    if status.st_nlink > 1:
        return ""
    return f"{_identify(status)}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


def _folder_of(pattern: str) -> tuple[str, ...]:
    """Return the innermost folder that a glob names without wildcards; () for a pattern that is not
    a glob."""
    folders = pattern.split("/")[:-1] if _is_glob(pattern) else []
    named = tuple(takewhile(lambda name: not _is_glob(name), folders))
    return named if all(map(_is_shown, named)) and "" not in named and ".." not in named else ()


def _is_glob(pattern: str) -> bool:
    return not set("*?[").isdisjoint(pattern)


def _identify(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


def _matches(path: str, pattern: str) -> bool:
    path, pattern = path.casefold(), pattern.casefold()
    if not _is_glob(pattern):
        return pattern in ("", ".") or pattern in path or path in re.split(r"[\s,]+", pattern)
    flat = pattern.replace("**/", "*")
    return fnmatchcase(path, flat) or fnmatchcase(path.rpartition("/")[2], flat)


def _natural(path: str) -> list[tuple[list[str | int], str]]:
    """Return a sort key that compares folder by folder, and puts `part2` before `part10`."""
    pieces = ((re.split(r"(\d+)", name.casefold()), name) for name in path.split("/"))
    return [([int(one) if i % 2 else one for i, one in enumerate(p)], name) for p, name in pieces]


def _read_beginning(name: str, fd: int) -> bytes:
    with open(fd, "rb", closefd=False) as file:
        data = file.read(MAX_FILE_BYTES + 1)
        is_document = _media_type(name, data) != ""
        return data + file.read(MAX_DOCUMENT_BYTES + 1 - len(data)) if is_document else data


def _media_type(name: str, data: bytes) -> str:
    """Return the media type of a document; '' for any other file. A PDF is recognised by its
    content, other documents by their names."""
    if data.startswith(b"%PDF-"):
        return PDF
    return OFFICE_BY_SUFFIX.get(posixpath.splitext(name)[1].casefold(), "")


def _read_lines(
    file: ListedFile, data: bytes, read_document: ReadDocument | None
) -> tuple[Sequence[str], bool]:
    """Return the lines of a file, and whether they are only those of its beginning."""
    media_type = _media_type(file.path, data)
    if media_type and len(data) > MAX_DOCUMENT_BYTES:
        kind = _KIND_BY_MEDIA_TYPE[media_type]
        raise ToolError(f"{_show(file.path)} is {kind} over {MAX_DOCUMENT_BYTES:,} bytes")
    if not media_type or read_document is None:
        return _decode_lines(file.path, data)
    return read_document(file, media_type, data).splitlines(), False


def _decode_lines(path: str, data: bytes) -> tuple[list[str], bool]:
    """Return the lines of a text file, and whether these are only the lines in its first
    `MAX_FILE_BYTES`.

    Raises:
        ToolError: the bytes are not text.
    """
    is_cut = len(data) > MAX_FILE_BYTES
    text = _LINE_BREAKERS.sub(" ", _decode(path, data[:MAX_FILE_BYTES]))
    lines = text.splitlines()
    if is_cut and len(lines) > 1 and not text.endswith(("\n", "\r")):
        lines.pop()  # its end is not read
    return lines, is_cut


def _decode(name: str, data: bytes) -> str:
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16", "replace") if is_wide else _decode_bytes(data)
    n_unreadable = text.count("\N{REPLACEMENT CHARACTER}")
    if "\0" in text or n_unreadable > MAX_UNREADABLE_RATIO * len(text):
        raise ToolError(f"{_show(name)} is not a text file")
    return text


def _decode_bytes(data: bytes) -> str:
    """Return the bytes decoded as UTF-8; as Windows-1252 (a superset of Latin-1) if of the
    characters beyond ASCII more are broken UTF-8 than valid, and the result looks like a text."""
    text = data.decode("utf-8-sig", "replace")
    n_broken = text.count("\N{REPLACEMENT CHARACTER}")
    n_valid = len(_BEYOND_ASCII.findall(text)) - n_broken
    if n_broken <= n_valid:
        return text
    try:
        old = data.decode("cp1252")
    except UnicodeDecodeError:
        return text
    n_accented = len(_BEYOND_ASCII.findall(old))
    is_text = n_accented <= MAX_ACCENTED_RATIO * len(old) and not _BINARY.search(old)
    return old if is_text else text


def _bound_line(line: str) -> str:
    n_more = len(line) - MAX_LINE_CHARS
    if n_more <= 0:
        return line
    return f"{line[:MAX_LINE_CHARS]} … ({n_more} more characters in this line)"


def _show(path: str) -> str:
    return repr(shorten(path, 200))
