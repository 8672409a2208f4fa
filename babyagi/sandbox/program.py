"""Runs an ordinary Python program in a process that can only compute. It provides the program's
modules and files in memory, and captures its output and its value.

`confined.py` imports this module by its bare name in the same process. It calls `prepare` before it
installs the filter of system calls, and `run` after that. This module protects nothing. With it, a
program that only computes runs unchanged, and any other program gets an error that says what to do.

Not covered: waiting (a sleep returns at once), threads and event loops.
"""

from __future__ import annotations

import _ast
import builtins
import errno
import io
import marshal
import os
import posixpath
import stat
import sys
import time
import types

TYPE_CHECKING = False  # not from `typing`, which takes as long to load as half of the interpreter
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ANSWER, FAULT = "A", "F"
RESULT = "final_result"  # the variable whose value is the answer, if the code assigns it

CODE_NAME = "<code>"
MAX_FAULT_CHARS = 300
MAX_PRINTED_BYTES = 32 * 2**20
# The value of the last line of a longer program is not computed, because the syntax tree of a
# megabyte takes 400 MB.
MAX_SPLIT_CHARS = 100_000
MAX_ZONES = 200

# Modules that a program may not import: they need a network, other programs, machine code or a
# screen, or they do something when they are imported.
NOT_HERE = frozenset(
    "antigravity asynchat asyncore cgi cgitb crypt ctypes curses ensurepip ftplib http.client "
    "http.server idlelib imaplib lib2to3 multiprocessing nis nntplib ossaudiodev poplib pty pydoc "
    "pydoc_data readline rlcompleter select selectors site smtpd smtplib socket socketserver spwd "
    "ssl subprocess telnetlib test this tkinter turtle turtledemo "
    "urllib.request venv webbrowser wsgiref xmlrpc".split()
)
# The modules that each module needs in Python 3.11 to 3.13: its submodules, and those that it
# imports only when they are used.
NEEDED_BY = {
    "argparse": "copy gettext locale shutil textwrap",
    "collections": "collections.abc copy heapq",
    "concurrent": "concurrent.futures.thread",
    "doctest": "pdb",
    "email": (
        "email.generator email.message email.mime.multipart email.mime.text email.parser "
        "email.policy email.utils"
    ),
    "fractions": "decimal",
    "gettext": "copy locale",
    "html": "html.entities html.parser",
    "importlib": "importlib.util",
    "inspect": "importlib",
    "linecache": "tokenize",
    "logging": "traceback",
    "pathlib": "urllib.parse",
    "random": "hashlib",
    "sqlite3": "sqlite3.dump",
    "statistics": "heapq",
    "tarfile": "bz2 gzip lzma",
    "timeit": "linecache traceback",
    "traceback": "ast linecache",
    "unittest": "unittest._log unittest.async_case unittest.mock",
    "urllib": "urllib.parse",
    "uuid": "hashlib",
    "weakref": "atexit copy gc",
    "xml": "pyexpat xml.dom.expatbuilder xml.dom.minidom xml.etree.ElementTree xml.sax.saxutils",
    "zipfile": "encodings.cp437",
    "zoneinfo": "importlib.resources",
}
ALWAYS_LOADED = "copy unicodedata warnings weakref".split()
_CODECS = " ".join(
    f"encodings.{name}"
    for name in "ascii base64_codec cp1250 cp1251 cp1252 cp437 cp850 "
    "hex_codec iso8859_1 iso8859_15 iso8859_2 latin_1 punycode raw_unicode_escape rot_13 shift_jis "
    "unicode_escape utf_16 utf_16_be utf_16_le utf_32 utf_7 utf_8_sig".split()
)
# By word: the modules that code needs if it contains the word.
NEEDED_FOR = {
    "decode": _CODECS,
    "encode": _CODECS,
    "encoding": _CODECS,
    "idna": "encodings.idna",
    "most_common": "heapq",
    "random": "hashlib",
    "singledispatch": "typing",
    "singledispatchmethod": "typing",
    "strptime": "_strptime",
}


class NotHereError(ImportError):
    """The program used something that this process does not have. The text says what to do
    instead."""


class Output(io.BytesIO):
    """Captures what a program writes, even if it closes its output."""

    name = "<output>"

    def close(self) -> None: ...

    def write(self, data: Any, /) -> int:
        if self.tell() > MAX_PRINTED_BYTES:
            raise NotHereError("the code prints more than it may: print only the answer")
        return super().write(data)

    def open(self) -> io.TextIOWrapper:
        """Return a text stream that writes to this object without buffering."""
        return io.TextIOWrapper(self, "utf-8", "replace", write_through=True)

    def read_text(self, max_chars: int) -> str:
        return cut(self.getvalue().decode("utf-8", "replace").rstrip("\r\n"), max_chars)


# -- before the filter
# --------------------------------------------------------------------------------------------------


def unpack(packed: bytes) -> tuple[str, MemoryFiles]:
    """Return the code that this process was given, and its files. They were packed by `marshal`, as
    the code and the arguments of `MemoryFiles`."""
    code, *files = marshal.loads(packed)
    return code, MemoryFiles(*files)


def prepare(code: str) -> None:
    """Import the allowed modules that the code names, and replace the functions that wait. This
    runs before the filter is installed, because no file can be opened after that."""
    load_modules(code)
    replace(time, sleep=lambda _seconds: None)
    if "zoneinfo" in sys.modules:
        load_zones(code)
    if "sqlite3" in sys.modules:
        keep_databases_in_memory()


def load_modules(code: str) -> None:
    split = str.maketrans(dict.fromkeys(".,;:()[]{}=+-*/%<>!&|^~@#'\"\\`", " "))
    lines = code.replace("\\\n", " ").split("\n")
    imports = "\n".join(line for line in lines if "import" in line)
    imported = set(imports.translate(split).split())
    asked = NEEDED_FOR.keys() & set(code.translate(split).split())
    allowed = (imported & sys.stdlib_module_names) - NOT_HERE
    load([*ALWAYS_LOADED, *sorted(allowed), *(NEEDED_FOR[word] for word in sorted(asked))])
    seen: set[str] = set()
    while new := [name for name in NEEDED_BY if name in sys.modules and name not in seen]:
        seen.update(new)
        load([NEEDED_BY[name] for name in new])


def load(lists: list[str]) -> None:
    for name in " ".join(lists).split():
        try:
            __import__(name)
        except Exception:
            # some modules exist only on other systems or versions; the code's own import says so
            continue


def load_zones(code: str) -> None:
    """Load the time zones that the code names, such as `Berlin` or `Europe/Berlin`. References to
    them are kept, because the library's cache drops zones that nothing refers to."""
    import zoneinfo

    names = zoneinfo.available_timezones()
    asked = sorted(name for name in names if name.rpartition("/")[2] in code)[:MAX_ZONES]
    kept = [zoneinfo.ZoneInfo(name) for name in asked]
    replace(zoneinfo, kept=kept, available_timezones=lambda: set(names))


def keep_databases_in_memory() -> None:
    import sqlite3

    real = sqlite3.connect

    def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = real(*args, **kwargs)
        connection.execute("PRAGMA temp_store = MEMORY").close()
        return connection

    for module in (sqlite3, sqlite3.dbapi2):
        replace(module, connect=connect)


def replace(owner: Any, **new: Any) -> None:
    for name, value in new.items():
        setattr(owner, name, value)


# -- behind the filter
# --------------------------------------------------------------------------------------------------


def run(code: str, max_chars: int, memory_bytes: int, files: MemoryFiles) -> str:
    """Run the code, and return its outcome: `ANSWER` and a text of at most `max_chars`, or `FAULT`
    and one line.

    The answer is the value of the variable `RESULT` if the code assigned it, else the printed text,
    else the value of the last line.
    """
    output, errors = Output(), Output()
    streams = {"stdin": NoInput(), "stdout": output.open(), "stderr": errors.open()}
    for name, stream in streams.items():
        replace(sys, **{name: stream, f"__{name}__": stream})
    try:
        said = compute(code, max_chars, (output, errors), files)
        return ANSWER + said
    except BaseException as error:
        try:
            before = output.read_text(MAX_FAULT_CHARS)
            said = f"; it had printed: {before}" if before.strip() else ""
            return FAULT + describe(error, memory_bytes) + said
        except BaseException:
            return f"{FAULT}the code raised an error that cannot be shown"


def compute(code: str, max_chars: int, outputs: tuple[Output, Output], files: MemoryFiles) -> str:
    main = types.ModuleType("__main__")
    scope = vars(main)
    scope["__builtins__"] = {**vars(builtins), "__import__": import_module, "input": refuse_input}
    scope["__builtins__"] |= {"exit": sys.exit, "quit": sys.exit}
    sys.modules["__main__"], sys.argv[:] = main, ["code.py"]
    value = None
    try:
        value = execute(code, scope)
    except SystemExit as error:
        if error.code:
            raise
    if RESULT in scope:
        return cut(str(scope[RESULT]), max_chars)
    printed, reported = (output.read_text(max_chars) for output in outputs)
    if printed.strip():
        return printed
    if value is not None:
        return cut(str(value), max_chars)
    if reported.strip():
        return reported
    if files.changed() or files.removed():
        return ""
    fix = f"print the answer, end with an expression, or assign it to {RESULT}"
    raise NotHereError(f"the code gave no output: {fix}")


def execute(code: str, scope: dict[str, Any]) -> Any:
    """Run the code, and return the value of its last line; None if that is not an expression."""
    if len(code) > MAX_SPLIT_CHARS:
        return exec(compile(code, CODE_NAME, "exec", dont_inherit=True), scope)
    tree: Any = compile(code, CODE_NAME, "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) else None
    exec(compile(tree, CODE_NAME, "exec", dont_inherit=True), scope)
    if last is None:
        return None
    return eval(compile(_ast.Expression(last.value), CODE_NAME, "eval", dont_inherit=True), scope)


def import_module(name: str, *given: Any) -> types.ModuleType:
    """Take the place of `__import__`: refuse modules that this process does not have. C code calls
    it as well, for inner modules."""
    first = name.partition(".")[0]
    if first in NOT_HERE or name in NOT_HERE:
        why = "it can only compute, without network, other programs or a screen"
        raise NotHereError(f"the code may not import {name[:100]}: {why}")
    if first not in sys.modules and first not in sys.stdlib_module_names:
        why = "only those that come with Python can be imported"
        raise NotHereError(f"there is no module {name[:100]} here: {why}")
    return __import__(name, *given)


def refuse_input(*_args: Any) -> Any:
    raise NotHereError("there is no input and there are no arguments: put the value into the code")


class NoInput:
    """The program's standard input. Any use of it raises an error that says what to do instead."""

    __iter__ = __next__ = __getattr__ = refuse_input


def cut(text: str, max_chars: int) -> str:
    """Return the text, or its beginning and its end if it is longer than `max_chars`. A note
    between them counts the missing characters."""
    if len(text) <= max_chars:
        return text
    kept = max(0, max_chars - 60) // 2
    mark = f"\n… cut: {len(text) - 2 * kept} more characters …\n"
    return text[:kept] + mark + (text[-kept:] if kept else "")


def describe(error: BaseException, memory_bytes: int) -> str:
    """Return the error as one line for the model, with the number of the code's line that raised
    it."""
    line, traceback = 0, error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == CODE_NAME:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    error.__traceback__ = None
    if isinstance(error, SyntaxError):
        line = error.lineno or 0
    said = explain(error, memory_bytes)
    said = said if len(said) <= 2 * MAX_FAULT_CHARS else said[:MAX_FAULT_CHARS] + " …"
    return f"{said} (line {line})" if line else said


def explain(error: BaseException, memory_bytes: int) -> str:
    text = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
    if isinstance(error, NotHereError):
        return text
    if wants_outside(error, text):
        never = "no database on a file, no network, no threads, no other programs"
        return (
            f"the code may only compute and use its files by open, pathlib or os.listdir: {never}"
        )
    if isinstance(error, MemoryError):
        return f"the code needs more memory than the {memory_bytes >> 20} MiB that it may use"
    if isinstance(error, SystemExit):
        return f"the code ended itself: {text}"
    return f"{type(error).__name__}: {text}".removesuffix(": ")


def wants_outside(error: BaseException, text: str) -> bool:
    """Return whether the error shows that the code tried something that the filter of system calls
    refuses."""
    if isinstance(error, OSError):
        return error.errno == errno.EPERM or type(error).__name__ == "gaierror"
    return "unable to open database" in text or "can't start new thread" in text


# -- the files of a program, in memory: files that it may only read, and files of its own.
# `MemoryFiles.install` replaces `open`, `os.stat` and similar functions by methods that use these
# files. The bytes of changed files are returned; the receiver checks each name and size. Not
# covered: links, permissions, times, and folders that are empty at the end.
# --------------------------------------------------------------------------------------------------


MAX_FILES = 100  # of a program's own
MAX_BYTES = 8 * 2**20  # of all these files together
MAX_NAMED = 12  # files that an error message names


class MemoryFiles:
    """The files of a program, in memory. Paths are relative to a single folder.

    Args:
        given: files that the program may only read.
        kept: the program's own files, which it may change. New files are added here.
        listed: the sizes of files whose names the program sees, but whose content it does not have.
    """

    def __init__(
        self, given: Mapping[str, bytes], kept: Mapping[str, bytes], listed: Mapping[str, int]
    ) -> None:
        self.given, self.kept, self.listed = dict(given), dict(kept), dict(listed)
        self.open_by_name: dict[str, _File] = {}  # of the program's own files
        self._before = dict(kept)
        self._folders: set[str] = set()

    def install(self) -> None:
        """Replace Python's functions for files, such as `open` and `os.stat`, by methods of this
        object."""
        replace(builtins, open=self.open)
        replace(io, open=self.open)
        replace(
            os, stat=self.stat, lstat=self.stat, listdir=self.list_names, scandir=self.scan,
            mkdir=self.make_folder, remove=self.remove, unlink=self.remove, rename=self.rename,
            replace=self.rename, getcwd=lambda: "/",
        )  # fmt: skip

    # -- changes
    # ----------------------------------------------------------------------------------------------

    def changed(self) -> dict[str, bytes]:
        """Return the content of each of the program's own files that is new or changed, by path."""
        self._take_over()
        before = self._before
        return {path: data for path, data in self.kept.items() if before.get(path) != data}

    def removed(self) -> list[str]:
        return [path for path in self._before if path not in self.kept]

    def pack(self, outcome: str) -> bytes:
        """Return the bytes for the parent process: the outcome, the number of removed files, their
        names, then the name and the content of each changed file. Each part has the form
        `LENGTH:BYTES`."""
        said = [outcome, str(len(self.removed())), *self.removed()]
        parts = [one.encode("utf-8", "replace") for one in said]
        for path, data in self.changed().items():
            parts += [path.encode("utf-8", "replace"), data]
        return b"".join(b"%d:%b" % (len(part), part) for part in parts)

    def _take_over(self) -> None:
        """Keep what stands in files that are still open."""
        for name, file in self.open_by_name.items():
            self.kept[name] = file.getvalue()

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
        """Take the place of the built-in `open`, for files in memory. Buffering and opener are
        ignored."""
        letters = set(mode)
        if len(letters & set("rwax")) != 1 or letters - set("rwaxbt+") or len(letters) < len(mode):
            raise ValueError(f"invalid mode: {mode!r}")
        path = self._name(file)
        is_written = bool(letters & set("wax+"))
        data = self._take(path, letters) if is_written else self._find(path)
        opened = _File(self, path, data, letters)
        if is_written:
            self.open_by_name[path] = opened
        if "b" in letters:
            return opened
        text = io.TextIOWrapper(
            opened, encoding or "utf-8", errors, newline, write_through=is_written
        )
        replace(text, mode=mode)
        return text

    def stat(self, path: Any, *_args: Any, **_kwargs: Any) -> os.stat_result:
        name = self._name(path)
        if self._is_folder(name):
            mode, n_bytes = stat.S_IFDIR | 0o700, 0
        elif name in self.listed:
            mode, n_bytes = stat.S_IFREG | 0o400, self.listed[name]
        else:
            mode, n_bytes = stat.S_IFREG | 0o600, len(self._find(name))
        return os.stat_result((mode, 0, 0, 1, 0, 0, n_bytes, 0, 0, 0))

    def list_names(self, path: Any = ".") -> list[str]:
        name = self._name(path)
        if not self._is_folder(name):
            raise _error(errno.ENOTDIR if name in self._all() else errno.ENOENT, name)
        start = f"{name}/" if name else ""
        inner = [one[len(start) :] for one in self._all() if one.startswith(start) and one != name]
        return sorted({one.partition("/")[0] for one in inner})

    def scan(self, path: Any = ".") -> _Scan:
        paths = [posixpath.join(os.fsdecode(path), name) for name in self.list_names(path)]
        return _Scan(self._look_at, paths)

    def _look_at(self, path: str) -> types.SimpleNamespace:
        """Return what takes the place of an `os.DirEntry`."""
        status = self.stat(path)
        is_dir = stat.S_ISDIR(status.st_mode)
        return types.SimpleNamespace(
            name=posixpath.basename(path), path=path, stat=lambda **_: status,
            is_dir=lambda **_: is_dir, is_file=lambda **_: not is_dir, is_symlink=lambda: False,
        )  # fmt: skip

    def make_folder(self, path: Any, *_args: Any, **_kwargs: Any) -> None:
        name = self._name(path)
        if self._is_folder(name) or name in self._all():
            raise _error(errno.EEXIST, name)
        self._folders.add(name)

    def remove(self, path: Any, *_args: Any, **_kwargs: Any) -> None:
        name = self._require_mine(self._name(path))
        self.open_by_name.pop(name, None)
        del self.kept[name]

    def rename(self, source: Any, target: Any, *_args: Any, **_kwargs: Any) -> None:
        old, new = self._require_mine(self._name(source)), self._name(target)
        self._take(new, {"a"})
        self.open_by_name.pop(old, None)
        self.kept[new] = self.kept.pop(old)

    # -- lookups
    # ----------------------------------------------------------------------------------------------

    def _name(self, path: Any) -> str:
        """Return the path relative to the folder; '' is the folder itself."""
        if isinstance(path, int):
            fix = "files cannot be opened by descriptor number here; give the file's path"
            raise PermissionError(errno.EPERM, fix)
        self._take_over()
        return posixpath.normpath(f"/{os.fsdecode(path)}").strip("/")

    def _all(self) -> set[str]:
        return {*self.given, *self.listed, *self.kept, *self._folders}

    def _is_folder(self, name: str) -> bool:
        if not name or name in self._folders:
            return True
        return any(one.startswith(f"{name}/") for one in self._all())

    def _find(self, name: str) -> bytes:
        for files in (self.kept, self.given):
            if name in files:
                return files[name]
        if name in self.listed:
            most = (
                f"at most 16 MB are passed in, and no file over 5 MB ({self.listed[name]:,} bytes)"
            )
            what = (
                f"the file was not passed in: write its name into the code, as it is listed; {most}"
            )
            raise OSError(errno.EACCES, what, name)
        if self._is_folder(name):
            raise _error(errno.EISDIR, name)
        there = sorted({*self.given, *self.listed, *self.kept})
        named = ", ".join(there[:MAX_NAMED]) or "none"
        more = f" and {len(there) - MAX_NAMED} more" if len(there) > MAX_NAMED else ""
        what = f"there is no file of that name here; there are: {named}{more}"
        raise FileNotFoundError(errno.ENOENT, what, name)

    def _require_mine(self, name: str) -> str:
        if name not in self.kept:
            self._find(name)
            what = "the file belongs to the objective and is read-only; choose another name"
            raise PermissionError(errno.EACCES, what, name)
        return name

    def _take(self, name: str, letters: set[str]) -> bytes:
        """Return the content with which a file is opened for writing, as the `letters` of the mode
        demand. A missing file is created."""
        if name in self.kept and "x" in letters:
            raise _error(errno.EEXIST, name)
        if name in (*self.given, *self.listed) or "r" in letters:
            self._require_mine(name)
        if self._is_folder(name):
            raise _error(errno.EISDIR, name)
        if any(name.startswith(f"{one}/") for one in (*self.given, *self.listed, *self.kept)):
            raise _error(errno.ENOTDIR, name)
        if name not in self.kept and len(self.kept) >= MAX_FILES:
            raise OSError(errno.ENOSPC, f"no more than {MAX_FILES} files can be kept", name)
        self.kept[name] = b"" if "w" in letters else self.kept.get(name, b"")
        return self.kept[name]

    def require_room(self, name: str, n_bytes: int) -> None:
        others = sum(len(data) for path, data in self.kept.items() if path != name)
        if others + n_bytes > MAX_BYTES:
            what = f"the files of a task have at most {MAX_BYTES >> 20} MB together"
            raise OSError(errno.ENOSPC, what, name)


class _File(io.BytesIO):
    """An open file in memory."""

    def __init__(self, files: MemoryFiles, name: str, data: bytes, letters: set[str]) -> None:
        super().__init__(data)
        self.name, self._files, self._letters = name, files, letters
        self.seek(0, io.SEEK_END if "a" in letters else io.SEEK_SET)

    def readable(self) -> bool:
        return bool(self._letters & set("r+"))

    def writable(self) -> bool:
        return bool(self._letters & set("wax+"))

    def write(self, data: Any, /) -> int:
        if not self.writable():
            raise io.UnsupportedOperation("not writable")
        self._files.require_room(self.name, self.tell() + memoryview(data).nbytes)
        return super().write(data)

    def close(self) -> None:
        if self._files.open_by_name.get(self.name) is self:
            self._files.kept[self.name] = self.getvalue()
            del self._files.open_by_name[self.name]
        super().close()


class _Scan(map):  # type: ignore[type-arg]  # at run time `map` has none
    """Takes the place of the iterator of `os.scandir`, for files in memory."""

    def __enter__(self) -> _Scan:
        return self

    def __exit__(self, *_args: object) -> None: ...

    close = __exit__


def _error(code: int, name: str) -> OSError:
    return OSError(code, os.strerror(code), name)
