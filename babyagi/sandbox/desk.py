"""The files of a program that cannot open any file: some that it may read, and a folder of its own,
both in memory.

It stands beside `confined.py` in the same process, which imports it by its bare name.
`Desk.install` replaces `open`, `os.stat` and similar functions by ones that work on these files;
like everything behind the filter, this protects nothing. What the program leaves is returned as
bytes, and the receiver checks each name and each size.

Not covered: links, permissions, times, folders that are empty at the end.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import posixpath
import stat

TYPE_CHECKING = False  # not from `typing`, which takes as long to load as half of the interpreter
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

MAX_FILES = 100  # in the folder of a program's own
MAX_BYTES = 8 * 2**20  # of all of these
MAX_NAMED = 12  # in a message


class Desk:
    """Files by their paths, which are relative to the one folder that there is.

    Args:
        given: may be read. kept: the program's own; what it writes is added here.
        listed: the sizes of files that may be read and were not handed in.
    """

    def __init__(
        self, given: Mapping[str, bytes], kept: Mapping[str, bytes], listed: Mapping[str, int]
    ) -> None:
        self.given, self.listed = dict(given), dict(listed)
        self.kept = {path: bytearray(data) for path, data in kept.items()}
        self._before = dict(kept)
        self._folders: set[str] = set()
        self._unflushed: list[Any] = []

    def install(self) -> None:
        """Replace the functions that work on the disk by those of this desk."""
        self._replace(builtins, open=self.open)
        self._replace(io, open=self.open)
        self._replace(
            os,
            stat=self.stat,
            lstat=self.stat,
            listdir=self.list_names,
            scandir=self.scan,
            mkdir=self.make_folder,
            rmdir=self.remove_folder,
            remove=self.remove,
            unlink=self.remove,
            rename=self.rename,
            replace=self.rename,
            access=lambda path, *_args, **_kwargs: self._exists(self._name(path)),
            getcwd=lambda: "/",
        )

    def _replace(self, owner: Any, **new: Any) -> None:
        for name, value in new.items():
            setattr(owner, name, value)

    # -- what is changed
    # ----------------------------------------------------------------------------------------------

    @property
    def has_changed(self) -> bool:
        return any(True for _ in self.changed()) or any(True for _ in self.removed())

    def changed(self) -> Iterator[tuple[str, bytes]]:
        """Return its own files that are new or changed."""
        self._flush()
        for path, data in self.kept.items():
            if path not in self._before or self._before[path] != bytes(data):
                yield path, bytes(data)

    def removed(self) -> Iterator[str]:
        return (path for path in self._before if path not in self.kept)

    def pack(self, outcome: str) -> bytes:
        """Return the outcome, the number of removed files, their names, then each changed file's
        name and bytes, each part as `LENGTH:BYTES`."""
        removed = [path.encode("utf-8", "replace") for path in self.removed()]
        parts = [outcome.encode("utf-8", "replace"), str(len(removed)).encode(), *removed]
        for path, data in self.changed():
            parts += [path.encode("utf-8", "replace"), data]
        return b"".join(b"%d:%b" % (len(part), part) for part in parts)

    def _flush(self) -> None:
        for file in self._unflushed:
            if not file.closed:
                file.flush()

    # -- the functions that the program calls
    # ----------------------------------------------------------------------------------------------

    def open(
        self,
        file: Any,
        mode: str = "r",
        _buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        *_more: Any,
        **_named: Any,
    ) -> Any:
        """Do the same as the built-in; buffering and opener are ignored."""
        self._flush()
        letters = set(mode)
        if len(letters & set("rwax")) != 1 or letters - set("rwaxbt+") or len(letters) < len(mode):
            raise ValueError(f"invalid mode: {mode!r}")
        path = self._name(file)
        is_written = bool(letters & set("wax+"))
        data = self._take(path, letters) if is_written else self._find(path)
        raw = _Raw(self, path, data, is_readable=bool(letters & set("r+")), is_writable=is_written)
        if "a" in letters:
            raw.seek(0, io.SEEK_END)
        if not is_written or "+" in letters:
            buffered: Any = io.BufferedRandom(raw) if is_written else io.BufferedReader(raw)
        else:
            buffered = raw
        if "+" in letters:
            self._unflushed.append(buffered)
        if "b" in letters:
            return buffered
        text = io.TextIOWrapper(
            buffered, encoding or "utf-8", errors, newline, write_through=is_written
        )
        self._replace(text, mode=mode)
        return text

    def stat(self, path: Any, *_args: Any, **_kwargs: Any) -> os.stat_result:
        name = self._name(path)
        if self._is_folder(name):
            return _status(stat.S_IFDIR | 0o700, 0)
        if name in self.listed:
            return _status(stat.S_IFREG | 0o400, self.listed[name])
        is_mine = name in self.kept
        return _status(stat.S_IFREG | (0o600 if is_mine else 0o400), len(self._find(name)))

    def list_names(self, path: Any = ".") -> list[str]:
        name = self._name(path)
        if not self._is_folder(name):
            raise _error(errno.ENOTDIR if self._exists(name) else errno.ENOENT, name)
        start = f"{name}/" if name else ""
        inner = [one[len(start) :] for one in self._all() if one.startswith(start) and one != name]
        return sorted({one.partition("/")[0] for one in inner})

    def scan(self, path: Any = ".") -> _Scan:
        shown = os.fspath(path)
        shown = shown.decode() if isinstance(shown, bytes) else shown
        return _Scan(
            [_Entry(self, name, posixpath.join(shown, name)) for name in self.list_names(path)]
        )

    def make_folder(self, path: Any, *_args: Any, **_kwargs: Any) -> None:
        name = self._name(path)
        if self._exists(name):
            raise _error(errno.EEXIST, name)
        self._folders.add(name)

    def remove_folder(self, path: Any, *_args: Any, **_kwargs: Any) -> None:
        name = self._name(path)
        if self.list_names(name):
            raise _error(errno.ENOTEMPTY, name)
        self._folders.discard(name)

    def remove(self, path: Any, *_args: Any, **_kwargs: Any) -> None:
        name = self._require_mine(self._name(path))
        self.kept.pop(name)

    def rename(self, source: Any, target: Any, *_args: Any, **_kwargs: Any) -> None:
        old, new = self._require_mine(self._name(source)), self._name(target)
        self._take(new, {"w"})[:] = self.kept[old]
        if old != new:
            del self.kept[old]

    # -- what there is
    # ----------------------------------------------------------------------------------------------

    def _name(self, path: Any) -> str:
        """Return the path relative to the one folder, '' for the folder itself."""
        if isinstance(path, int):
            raise PermissionError(errno.EPERM, "there are no descriptors here")
        path = os.fspath(path)
        text = path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else path
        return posixpath.normpath(f"/{text}").strip("/")

    def _all(self) -> Iterator[str]:
        yield from self.given
        yield from self.listed
        yield from self.kept
        yield from self._folders

    def _is_folder(self, name: str) -> bool:
        return (
            not name
            or name in self._folders
            or any(one.startswith(f"{name}/") for one in self._all())
        )

    def _exists(self, name: str) -> bool:
        return self._is_folder(name) or name in set(self._all())

    def _find(self, name: str) -> bytes | bytearray:
        for files in (self.kept, self.given):
            if name in files:
                return files[name]
        if name in self.listed:
            raise OSError(
                errno.EACCES,
                "it was not handed in: write its name into the code, as it is listed; "
                f"at most 16 MB are handed in, and no file over 5 MB ({self.listed[name]:,} bytes)",
                name,
            )
        if self._is_folder(name):
            raise _error(errno.EISDIR, name)
        raise self._missing(name)

    def _missing(self, name: str) -> OSError:
        there = sorted({*self.given, *self.listed, *self.kept})
        named = ", ".join(there[:MAX_NAMED]) or "none"
        more = f" and {len(there) - MAX_NAMED} more" if len(there) > MAX_NAMED else ""
        return MissingFileError(
            errno.ENOENT, f"there is no file of that name here; there are: {named}{more}", name
        )

    def _take(self, name: str, letters: set[str]) -> bytearray:
        """Return the bytes of a file that is to be written."""
        if name in self.given or name in self.listed:
            raise PermissionError(
                errno.EACCES,
                "it belongs to the objective and is only read; choose another name",
                name,
            )
        if self._is_folder(name):
            raise _error(errno.EISDIR, name)
        self._require_folder(name)
        if name in self.kept:
            if "x" in letters:
                raise _error(errno.EEXIST, name)
            if "w" in letters:
                self.kept[name] = bytearray()
        elif "r" in letters:
            raise self._missing(name)
        elif len(self.kept) >= MAX_FILES:
            raise OSError(errno.ENOSPC, f"no more than {MAX_FILES} files can be kept", name)
        else:
            self.kept[name] = bytearray()
        return self.kept[name]

    def _require_folder(self, name: str) -> None:
        """Raise when the parent of this file is a file itself."""
        parents = name.split("/")[:-1]
        files = {*self.given, *self.listed, *self.kept}
        if any("/".join(parents[:n]) in files for n in range(1, len(parents) + 1)):
            raise _error(errno.ENOTDIR, name)

    def _require_mine(self, name: str) -> str:
        if name not in self.kept:
            self._find(name)
            raise PermissionError(
                errno.EACCES, "it belongs to the objective and is only read", name
            )
        return name

    def require_room(self, name: str, n_more: int) -> None:
        n_bytes = sum(map(len, self.kept.values())) + max(0, n_more)
        if n_bytes > MAX_BYTES:
            raise OSError(
                errno.ENOSPC,
                f"the files of a task have at most {MAX_BYTES >> 20} MB together",
                name,
            )


class MissingFileError(FileNotFoundError):
    """There is no such file; the text names those that exist."""


class _Raw(io.RawIOBase):
    """An open file without a buffer; its bytes are those of the desk."""

    def __init__(
        self,
        desk: Desk,
        name: str,
        data: bytes | bytearray,
        *,
        is_readable: bool,
        is_writable: bool,
    ) -> None:
        self.name = name
        self._desk, self._data, self._at = desk, data, 0
        self._is_readable, self._is_writable = is_readable, is_writable

    def readable(self) -> bool:
        return self._is_readable

    def writable(self) -> bool:
        return self._is_writable

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        found = self._data[self._at : self._at + len(buffer)]
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)

    def write(self, data: Any, /) -> int:
        if not self._is_writable or not isinstance(self._data, bytearray):
            raise io.UnsupportedOperation("not writable")
        view = bytes(data)
        end = self._at + len(view)
        self._desk.require_room(self.name, end - len(self._data))
        if self._at > len(self._data):
            self._data.extend(bytes(self._at - len(self._data)))
        self._data[self._at : end] = view
        self._at = end
        return len(view)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._data)}[whence]
        if start + offset < 0:
            raise _error(errno.EINVAL, self.name)
        self._at = start + offset
        return self._at

    def truncate(self, size: int | None = None, /) -> int:
        wanted = self._at if size is None else size
        if not isinstance(self._data, bytearray):
            raise io.UnsupportedOperation("not writable")
        self._desk.require_room(self.name, wanted - len(self._data))
        self._data[wanted:] = bytes(max(0, wanted - len(self._data)))
        return wanted


class _Entry:
    """The counterpart of `os.DirEntry`."""

    def __init__(self, desk: Desk, name: str, path: str) -> None:
        self.name, self.path = name, path
        self._desk = desk

    def __fspath__(self) -> str:
        return self.path

    def stat(self, **_kwargs: Any) -> os.stat_result:
        return self._desk.stat(self.path)

    def is_dir(self, **_kwargs: Any) -> bool:
        return stat.S_ISDIR(self.stat().st_mode)

    def is_file(self, **_kwargs: Any) -> bool:
        return not self.is_dir()

    def is_symlink(self) -> bool:
        return False


class _Scan:
    """What `os.scandir` returns."""

    def __init__(self, entries: list[_Entry]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[_Entry]:
        return self._entries

    def __next__(self) -> _Entry:
        return next(self._entries)

    def __enter__(self) -> _Scan:
        return self

    def __exit__(self, *_args: object) -> None: ...

    def close(self) -> None: ...


def _status(mode: int, n_bytes: int) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 1, 0, 0, n_bytes, 0, 0, 0))


def _error(code: int, name: str) -> OSError:
    return OSError(code, os.strerror(code), name)
