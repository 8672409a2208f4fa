"""The content of a memory, as lines that are only appended: the turns of a conversation, and what
was derived from them.

A named memory is a file in babyagi's home folder that only its owner can read; one without a name
exists as long as its `MemoryLog`. All state is computed from the lines, so a kill loses at most the
line that is being written. Several processes may append: each writes whole lines under a lock.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from babyagi.errors import SettingsError, StoreUnusableError
from babyagi.files import private
from babyagi.files.home import MEMORIES
from babyagi.llm.port import Completion
from babyagi.tasks import Usage, find_sources
from babyagi.text import clean

SUFFIX = ".jsonl"
MAX_SAID_CHARS = 8000  # of a question or an answer
MAX_FAULT_CHARS = 300
MAX_BYTES = 2**20  # a longer file is rewritten, with its newest turns and facts only
N_KEPT_TURNS = 100  # the newest turns, which stay even if the summary or the facts cover them
N_MOST_TURNS = 500  # older turns go even if the summary or the facts do not cover them
N_KEPT_FACTS = 1000
VERSION = 1

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A question and its answer.

    Attributes:
        n: its number in the memory, from 1.
        key: identifies the turn, so that it is stored only once.
        asked_from: the origins of the question; `person` if a person asked it.
        made_from: the origins of the answer: the model, and the sources that it used.
    """

    n: int
    key: str
    at: datetime
    question: str
    answer: str
    asked_from: tuple[str, ...]
    made_from: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The summary that a model wrote of the turns up to number `upto`."""

    text: str = ""
    upto: int = 0
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact about a name (`entity`), from the turn with the number `turn`. `origins` says who
    stated it."""

    entity: str
    text: str
    turn: int
    origins: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The content of a memory now.

    Attributes:
        id: the memory's id; a memory that was deleted and begun again has a new one. Empty if
            nothing is stored.
        facts: in the order in which they were found, from the turns up to number `facts_upto`.
        completions: the model's replies for an update that is not finished, by the path of each
            call.
        used: the usage of all calls for updates of the memory.
        fault: why the last update failed; empty if it did not.
        n_damaged: how many lines cannot be read.
    """

    id: str = ""
    turns: tuple[Turn, ...] = ()
    summary: Summary = field(default_factory=Summary)
    facts: tuple[Fact, ...] = ()
    facts_upto: int = 0
    completions: Mapping[str, Completion] = field(default_factory=dict)
    used: Usage = field(default_factory=Usage)
    fault: str = ""
    n_damaged: int = 0

    @property
    def last(self) -> int:
        """Return the number of the last turn; 0 if there was none."""
        return self.turns[-1].n if self.turns else max(self.summary.upto, self.facts_upto)


class MemoryLog:
    """Reads and writes the lines of one memory.

    Args:
        path: the memory's file; None to keep the lines in this object only.
        clock: returns the time.
        new_id: returns a new id for the memory.
    """

    def __init__(
        self, path: Path | None, *, clock: Callable[[], datetime], new_id: Callable[[], str]
    ) -> None:
        self._path = path
        self._clock = clock
        self._new_id = new_id
        self._bytes = b""
        self._adding = threading.Lock()
        self._updating = threading.Lock()

    async def read(self) -> Known:
        """Return the content of the memory. Raises `StoreUnusableError` if its file cannot be
        read."""
        return await asyncio.to_thread(lambda: parse_lines(self._load()))

    async def add_turn(
        self,
        question: str,
        answer: str,
        *,
        key: str,
        asked_from: Sequence[str] = ("person",),
        made_from: Sequence[str] = (),
    ) -> None:
        """Store a turn on the disk, unless one with the same key is stored."""

        def build(known: Known) -> list[Record]:
            if any(turn.key == key for turn in known.turns):
                return []
            said = {"question": _bound(question), "answer": _bound(answer)}
            origins = {"asked_from": [*asked_from], "made_from": [*made_from]}
            turn = {"kind": "turn", "n": known.last + 1, "key": key, **said, **origins}
            return [turn | {"at": self._clock().isoformat()}]

        await asyncio.to_thread(self._add, build)

    async def add(self, record: Record, *, to: str) -> None:
        """Store a record that was derived from the memory with the id `to`, unless that memory has
        been deleted since."""
        await asyncio.to_thread(self._add, lambda known: [record] if known.id == to else [])

    async def forget(self) -> bool:
        """Delete the content of the memory. Return whether there was any."""
        return await asyncio.to_thread(self._forget)

    @contextmanager
    def updating(self) -> Iterator[bool]:
        """Hold the lock for updates of the memory during the context, and yield True; yield False
        if an update in this process or another holds it."""
        if self._path is None:
            is_mine = self._updating.acquire(blocking=False)
            try:
                yield is_mine
            finally:
                if is_mine:
                    self._updating.release()
            return
        with _open_lock(self._path.with_suffix(".updating")) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    # -- the bytes
    # ----------------------------------------------------------------------------------------------

    def _load(self) -> bytes:
        if self._path is None:
            return self._bytes
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise _unusable(self._path, error) from error

    def _add(self, build: Callable[[Known], list[Record]]) -> None:
        with self._lock():
            body = self._load()
            known = parse_lines(body)
            records = build(known)
            if not records:
                return
            if not known.id:
                head = {"kind": "memory", "v": VERSION, "id": self._new_id()}
                records = [head, *records]
            # a line that a kill cut off stays a line of its own
            torn = b"\n" if body and not body.endswith(b"\n") else b""
            self._append(torn + b"".join(map(_write, records)))
            if len(body) > MAX_BYTES:
                self._compact()

    def _append(self, body: bytes) -> None:
        if self._path is None:
            self._bytes += body
            return
        try:
            with open(self._path, "ab", opener=private.open_file) as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _unusable(self._path, error) from error

    def _compact(self) -> None:
        text = b"".join(map(_write, _shorten(parse_lines(self._load())))).decode()
        if self._path is None:
            self._bytes = text.encode()
        else:
            private.write_file(self._path, text)

    def _forget(self) -> bool:
        with self._lock():
            was_there = bool(self._load())
            self._bytes = b""
            if self._path is not None:
                for path in (self._path, self._path.with_suffix(".updating")):
                    path.unlink(missing_ok=True)
        return was_there

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with self._adding:
            if self._path is None:
                yield
                return
            with _open_lock(self._path.with_name("lock")) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield


@contextmanager
def _open_lock(path: Path) -> Iterator[int]:
    try:
        private.make_folder(path.parent)
        file = private.open_file(path)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        yield file
    finally:
        os.close(file)


def _unusable(path: Path, error: OSError) -> StoreUnusableError:
    return StoreUnusableError(
        f"the memory {path.name.removesuffix(SUFFIX)} cannot be used",
        why=str(error.strerror or error),
        fix=f"check {path}, or set BABYAGI_HOME to a folder that you may write to",
        guide="tools",
    )


def _bound(text: str) -> str:
    text = clean(text)
    n_more = len(text) - MAX_SAID_CHARS
    return f"{text[:MAX_SAID_CHARS]}… cut: {n_more} more characters" if n_more > 0 else text


# -- names
# --------------------------------------------------------------------------------------------------


def require_name(name: str) -> str:
    """Return the name of a memory unchanged. Raises `SettingsError` if it is invalid."""
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"the name of a memory has 1 to 64 letters, digits, . _ or -, got {name[:80]!r}",
            fix="choose a name such as tea",
            guide="tools",
        )
    return name


def path_of(home: Path, name: str) -> Path:
    """Return the path of a named memory. Raises `SettingsError` if the name is invalid."""
    return home / MEMORIES / f"{require_name(name)}{SUFFIX}"


def names_in(home: Path) -> list[str]:
    """Return the names of all memories in a home folder."""
    return sorted(path.name.removesuffix(SUFFIX) for path in (home / MEMORIES).glob(f"*{SUFFIX}"))


# -- from lines to content, and back
# --------------------------------------------------------------------------------------------------


def parse_lines(body: bytes) -> Known:
    """Return the content of a memory, computed from its lines. A line that cannot be read is
    counted and ignored."""
    known = Known()
    for line in body.split(b"\n"):
        if not line.strip():
            continue
        try:
            known = _take(known, json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            known = replace(known, n_damaged=known.n_damaged + 1)
    return known


def _take(known: Known, record: Record) -> Known:
    """Return the content of the memory after one more line."""
    match record["kind"]:
        case "memory":
            return replace(known, id=str(record["id"]))
        case "turn":
            return replace(known, turns=(*known.turns, _read_turn(record)))
        case "completion":
            completion = Completion.from_json(record["output"])
            completions = {**known.completions, str(record["path"]): completion}
            return replace(known, completions=completions, used=known.used + completion.usage)
        case "used":
            return replace(known, used=Usage(**record["usage"]))
        case "fault":
            return replace(known, fault=str(record["why"]))
    return replace(_take_made(known, record), completions={}, fault="")


def _take_made(known: Known, record: Record) -> Known:
    """Return the content of the memory after a record that was derived from its turns, such as a
    summary."""
    match record["kind"]:
        case "summary":
            text, upto = str(record["text"]), int(record["upto"])
            summary = Summary(text=text, upto=upto, origins=_texts(record))
            return replace(known, summary=summary)
        case "facts":
            facts = tuple(map(_read_fact, record["facts"]))
            upto = int(record["upto"])
            return replace(known, facts=(*known.facts, *facts), facts_upto=upto)
        case "condensed":
            fact = _read_fact(record["fact"])
            others = [
                one
                for one in known.facts
                if fold_name(one.entity) != fold_name(fact.entity) or one.turn > fact.turn
            ]
            return replace(known, facts=(*others, fact))
    raise ValueError(f"a line is no record of a memory in the format of version {VERSION}")


def _read_turn(record: Record) -> Turn:
    return Turn(
        n=int(record["n"]),
        key=str(record["key"]),
        at=datetime.fromisoformat(record["at"]),
        question=str(record["question"]),
        answer=str(record["answer"]),
        asked_from=_texts(record, "asked_from"),
        made_from=_texts(record, "made_from"),
    )


def _read_fact(record: Record) -> Fact:
    return Fact(
        entity=str(record["entity"]),
        text=str(record["text"]),
        turn=int(record["turn"]),
        origins=_texts(record),
    )


def _texts(record: Record, name: str = "origins") -> tuple[str, ...]:
    return tuple(map(str, record[name]))


def write_fact(fact: Fact) -> dict[str, Any]:
    return asdict(fact) | {"origins": [*fact.origins]}


def _shorten(known: Known) -> Iterator[Record]:
    """Yield the records of a shorter file: the newest turns and, as far as `N_MOST_TURNS` allows,
    those that the summary or the facts do not cover; the summary; the newest facts."""
    yield {"kind": "memory", "v": VERSION, "id": known.id}
    made = [upto for upto in (known.summary.upto, known.facts_upto) if upto]
    first = max(min([known.last - N_KEPT_TURNS, *made]), known.last - N_MOST_TURNS)
    for turn in known.turns:
        if turn.n > first:
            fields = {name: getattr(turn, name) for name in Turn.__slots__}
            yield {"kind": "turn", **fields, "at": turn.at.isoformat()}
    if known.summary.upto:
        yield {"kind": "summary", **asdict(known.summary)}
    if known.facts_upto:
        facts = [*map(write_fact, known.facts[-N_KEPT_FACTS:])]
        yield {"kind": "facts", "facts": facts, "upto": known.facts_upto}
    for path, completion in known.completions.items():
        yield {"kind": "completion", "path": path, "output": completion.to_json()}
    yield {"kind": "used", "usage": asdict(known.used)}


def _write(record: Record) -> bytes:
    return json.dumps(dict(record), ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def fold_name(name: str) -> str:
    """Return a name for comparison: without case and extra blanks."""
    return " ".join(name.casefold().split())


def join_origins(*groups: Sequence[str]) -> tuple[str, ...]:
    """Return the origins of a text that was derived from texts with these origins: persons and
    models, then the sources from outside."""
    found = list(dict.fromkeys(origin for group in groups for origin in group))
    outside = find_sources(found)
    own = [one for one in found if one == "person" or one.startswith("model")]
    return (*own, *outside)
