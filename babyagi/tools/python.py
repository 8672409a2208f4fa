"""The tool that runs a model's Python code in a process that can only compute, gives it files, and
keeps the files that it writes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from textwrap import dedent
from typing import Any

from babyagi.errors import ToolError
from babyagi.files.folder import MAX_FILE_BYTES, Folder
from babyagi.files.private import make_folder, write_bytes
from babyagi.pages.html import sanitise_svg
from babyagi.runtime.offload import Offload
from babyagi.sandbox.program import RESULT
from babyagi.sandbox.python import (
    START_TIMEOUT_S,
    TIMEOUT_S,
    TURN_TIMEOUT_S,
    Files,
    Ran,
    is_plain_path,
    run_python,
)
from babyagi.tasks import MAX_ARTIFACTS, Artifact, Effect, Passage
from babyagi.text import clean
from babyagi.tools.base import Tool, takes_text

_FENCED = re.compile(
    r"^[ \t]*```[^\n`]*\n(?P<code>.*?)\n?[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE
)
_TICKED = re.compile(r"(`+)(?:python\b|py\b)?(?P<code>[^`]+)\1")
CODE = (
    "Python code. What it prints is the answer; if it prints nothing, the value of its last line. "
    f"If it assigns the variable {RESULT}, that alone is the answer. It can import what comes with "
    "Python, and can only compute: no files, no network, no input, no other packages."
)
CODE_WITH_FILES = (
    "Python code. What it prints is the answer; if it prints nothing, the value of its last line. "
    f"If it assigns the variable {RESULT}, that alone is the answer. "
    "It can import what comes with Python; no network, no input, no other packages. "
    "open('data.csv') reads a file of the objective by the path that list_files shows; name each "
    "file in the code. Files that it writes stay for later calls of this task, and .csv, .svg, "
    ".json, .md and .txt files are shown with the result: draw a plot as SVG text."
)
TOOL_TIMEOUT_S = TURN_TIMEOUT_S + START_TIMEOUT_S + TIMEOUT_S


MAX_GIVEN_BYTES = 16 * 2**20  # of the objective's files that one call gets
MAX_SHOWN_CHARS = 300_000  # of one file that is shown with a result
MAX_ALL_SHOWN_CHARS = 1_000_000  # of all files of one call that are shown
MAX_NAMED = 20
UNDO = ".undo"  # a folder; programs cannot use names that begin with a full stop
_MEDIA_TYPES = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".md": "text/markdown",
    ".txt": "text/plain",
}
_LOOKS_AROUND = re.compile(r"\b(?:glob|rglob|iglob|listdir|scandir|iterdir|walk)\b")
_OPENS = re.compile(r"\b(?:open|read_text|read_bytes)\b")


def strip_fence(text: str) -> str:
    """Return the code in the first code fence of the text, or between the backticks that surround
    the whole text; without these, the whole text."""
    found = _FENCED.search(text) or _TICKED.fullmatch(text.strip())
    return found["code"] if found else text


def build_python(
    *,
    name: str,
    description: str,
    offload: Offload,
    folder: Folder | None = None,
    files: Path | None = None,
    places: Path | None = None,
) -> Tool:
    """Return a tool that runs Python. Its output is the value of the variable `final_result`, else
    what the code prints, else the value of its last line. Files that the code writes stay for later
    calls of the same task. Tables, plots and texts among them also belong to the tool's output, as
    artifacts.

    A call that is repeated, because a crash lost its outcome, finds the files as they were before
    its first attempt.

    Args:
        offload: runs a function that uses the disk outside the event loop.
        folder: the objective's folder, which is only read; None if it has none.
        files: the folder that has one folder for each task, for the files that its programs write;
            None if no files are kept after a call.
        places: the folder in which programs take turns.

    Raises:
        ValueError: `name` is not a valid name for a tool.
    """

    has_files = folder is not None or files is not None

    async def run(scratch: Scratch | None, arguments: Mapping[str, Any]) -> Passage:
        code = dedent(strip_fence(arguments["code"]))
        given = await offload(lambda: _hand_in(code, folder, scratch))
        ran = await run_python(code, given, places=places)
        return await offload(lambda: _hand_out(ran, given, scratch, f"tool:{name}"))

    def for_call(owner: str, key: str) -> Tool:
        kind, _, number = owner.partition(":")
        if files is None or kind != "task" or not number.isdecimal():
            return replace(tool, for_call=None)
        scratch = Scratch(files / number, key=key)
        return replace(tool, run=partial(run, scratch), for_call=None)

    tool = Tool(
        name=name,
        description=description,
        parameters=takes_text("code", CODE_WITH_FILES if has_files else CODE),
        effect=Effect.READ,
        run=partial(run, None),
        is_private=folder is not None,
        timeout_s=TOOL_TIMEOUT_S,
        for_call=None if files is None else for_call,
    )
    return tool


def _hand_in(code: str, folder: Folder | None, scratch: Scratch | None) -> Files:
    """Return the files for the process: the task's own, and the files of the objective's folder
    that the code names. If the code lists folders, or opens files without naming one, it gets as
    many files of the folder as fit."""
    kept = scratch.read() if scratch is not None else {}
    sizes = {}
    if folder is not None:
        listing = folder.list()
        sizes = {file.path: file.size_bytes for file in listing.files if file.path not in kept}
    named = {path for path in (*sizes, *kept) if PurePosixPath(path).name in code}
    takes_all = bool(_LOOKS_AROUND.search(code)) or (not named and bool(_OPENS.search(code)))
    given: dict[str, bytes] = {}
    left_bytes = MAX_GIVEN_BYTES
    for path in sorted(sizes, key=lambda path: path not in named):
        is_wanted = takes_all or path in named
        if folder is None or not is_wanted or sizes[path] > min(left_bytes, MAX_FILE_BYTES):
            continue
        with suppress(ToolError):  # the file stays listed; opening it reports that it is missing
            given[path] = folder.read_bytes(path)
            left_bytes -= len(given[path])
    listed = {path: size for path, size in sizes.items() if path not in given}
    return Files(given=given, kept=kept, listed=listed)


class Scratch:
    """The folder with the files of a task, for the tool call with this key. Its methods block.

    Before the call changes files, their old contents are stored in a hidden file of the folder. So
    the call can be undone and repeated after a crash.
    """

    def __init__(self, folder: Path, *, key: str) -> None:
        self._folder = folder
        turn = _digest(key.rpartition("/")[0])  # the calls of a turn may run side by side
        self._undo = folder / UNDO / f"{turn}-{_digest(key)}.json"
        self._others = f"{turn}-"

    def read(self) -> dict[str, bytes]:
        """Return the files that earlier calls of the task left, by path. If this call was made
        before, its changes are undone first."""
        self._take_back()
        found = {}
        for path in sorted(self._folder.rglob("*")):
            name = path.relative_to(self._folder).as_posix()
            if is_plain_path(name) and path.is_file() and not path.is_symlink():
                found[name] = path.read_bytes()
        return found

    def keep(self, ran: Ran) -> None:
        """Store the files that the program has written or removed. Raises `OSError` if that
        fails."""
        make_folder(self._undo.parent)
        for path in self._undo.parent.iterdir():
            # an earlier turn's calls are recorded, so they are not repeated
            if not path.name.startswith(self._others):
                path.unlink(missing_ok=True)
        before = {name: self._look(name) for name in (*ran.removed, *ran.written)}
        write_bytes(self._undo, json.dumps(before).encode("ascii"))
        for name, data in {**dict.fromkeys(ran.removed), **ran.written}.items():
            self._put(name, data)

    def _take_back(self) -> None:
        if not self._undo.is_file():
            return
        before: Mapping[str, str | None] = json.loads(self._undo.read_bytes())
        for name, data in before.items():
            self._put(name, None if data is None else base64.b64decode(data))
        self._undo.unlink()

    def _look(self, name: str) -> str | None:
        path = self._folder / name
        return base64.b64encode(path.read_bytes()).decode() if path.is_file() else None

    def _put(self, name: str, data: bytes | None) -> None:
        """Write the file, or remove it if there are no data."""
        path = self._folder / name
        if data is None:
            path.unlink(missing_ok=True)
        else:
            make_folder(path.parent)
            write_bytes(path, data)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _hand_out(ran: Ran, files: Files, scratch: Scratch | None, origin: str) -> Passage:
    """Store the files that the program wrote, and return the tool's output: the program's output,
    the names of the files, and the artifacts."""
    if scratch is not None and (ran.written or ran.removed):
        try:
            scratch.keep(ran)
        except OSError as error:
            raise ToolError(f"the files cannot be kept: {error.strerror}") from None
    artifacts, faults = _find_artifacts(ran.written)
    said = [f"{name} ({len(data):,} bytes)" for name, data in ran.written.items()]
    more = [f"and {len(said) - MAX_NAMED} more"] if len(said) > MAX_NAMED else []
    lines = [f"Written: {', '.join([*said[:MAX_NAMED], *more])}"] if said else []
    text = "\n\n".join(filter(None, [ran.text.rstrip("\n"), "\n".join([*lines, *faults])]))
    sources = [f"file:{path}" for path in files.given] + [f"scratch:{path}" for path in files.kept]
    return Passage(text=text, origin=origin, sources=tuple(sources), artifacts=tuple(artifacts))


def _find_artifacts(written: Mapping[str, bytes]) -> tuple[list[Artifact], list[str]]:
    """Return the written files to show with a result, and a line for each other file of such a
    type, which says why it is not shown."""
    artifacts: list[Artifact] = []
    faults: list[str] = []
    left_chars = MAX_ALL_SHOWN_CHARS
    for name, data in written.items():
        media_type = _MEDIA_TYPES.get(PurePosixPath(name).suffix.casefold())
        if media_type is None:
            continue
        try:
            artifact = _make_artifact(name, media_type, data)
            if len(artifact.text) > left_chars or len(artifacts) == MAX_ARTIFACTS:
                raise ValueError("the call wrote too many files")
        except ValueError as error:
            faults.append(f"{name} is stored but not shown with the result: {error}")
        else:
            artifacts.append(artifact)
            left_chars -= len(artifact.text)
    return artifacts, faults[:MAX_NAMED]


def _make_artifact(name: str, media_type: str, data: bytes) -> Artifact:
    """Return the file as an artifact. Raises `ValueError` with the reason if the file cannot be
    shown."""
    try:
        text = clean(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("the file is not text in UTF-8") from None
    if len(text) > MAX_SHOWN_CHARS:
        raise ValueError(f"the file has more than {MAX_SHOWN_CHARS:,} characters")
    text = sanitise_svg(text) if media_type == "image/svg+xml" else text
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Artifact(name=name, media_type=media_type, text=text, digest=digest)
