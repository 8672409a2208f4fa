"""The log of a conversation with an agent: its turns, and what was derived from them.

A named memory is a file in babyagi's home folder that only its owner can read; one without a name
exists as long as its `MemoryLog`. Each change replaces the file as a whole, under a lock, so a kill
loses at most the change that is being written, and several processes may change it.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from babyagi.errors import SettingsError, StoreUnusableError
from babyagi.files import private
from babyagi.files.home import MEMORIES
from babyagi.runtime.heavy_imports import import_whole
from babyagi.tasks import Usage, find_sources
from babyagi.text import clean

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SUFFIX = ".json"
MAX_SAID_CHARS = 8000  # of a question or an answer
MAX_FAULT_CHARS = 300
MAX_BYTES = 2**20  # a longer file keeps only its newest turns and facts
N_KEPT_TURNS = 100  # the newest turns, which stay even if the summary or the facts cover them
N_MOST_TURNS = 500  # older turns go even if the summary or the facts do not cover them
N_KEPT_FACTS = 1000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


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
        used: the usage of all calls for updates of the memory.
        fault: why the last update failed; empty if it did not.
    """

    id: str = ""
    turns: tuple[Turn, ...] = ()
    summary: Summary = field(default_factory=Summary)
    facts: tuple[Fact, ...] = ()
    facts_upto: int = 0
    used: Usage = field(default_factory=Usage)
    fault: str = ""

    @property
    def last(self) -> int:
        """Return the number of the last turn; 0 if there was none."""
        return self.turns[-1].n if self.turns else max(self.summary.upto, self.facts_upto)


class MemoryLog:
    """Reads and changes the content of one memory.

    Args:
        path: the memory's file; None to keep the content in this object only.
        clock: returns the time.
        new_id: returns a new id for the memory.
    """

    def __init__(
        self, path: Path | None, *, clock: Callable[[], datetime], new_id: Callable[[], str]
    ) -> None:
        self._path = path
        self._clock = clock
        self._new_id = new_id
        self._known = Known()  # if there is no file
        self._changing = threading.Lock()
        self._updating = threading.Lock()

    async def read(self) -> Known:
        """Return the content of the memory. Raises `StoreUnusableError` if its file cannot be
        read."""
        return await asyncio.to_thread(self._read)

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

        def add(known: Known) -> Known:
            if any(turn.key == key for turn in known.turns):
                return known
            turn = Turn(
                n=known.last + 1,
                key=key,
                at=self._clock(),
                question=_bound(question),
                answer=_bound(answer),
                asked_from=tuple(asked_from),
                made_from=tuple(made_from),
            )
            return replace(known, id=known.id or self._new_id(), turns=(*known.turns, turn))

        await asyncio.to_thread(self._change, add)

    async def change(self, derive: Callable[[Known], Known], *, to: str) -> None:
        """Store what `derive` returns for the content of the memory with the id `to`, unless that
        memory has been deleted since."""
        await asyncio.to_thread(
            self._change, lambda known: derive(known) if known.id == to else known
        )

    async def forget(self) -> bool:
        """Delete the content of the memory. Return whether there was any."""
        return await asyncio.to_thread(self._forget)

    def updating(self) -> AbstractContextManager[bool]:
        """Hold the lock for updates of the memory during the context, and yield True; yield False
        if an update in this process or another holds it."""
        name = self._path.with_suffix(".updating").name if self._path else ""
        return self._hold(self._updating, name, waits=False)

    # -- the file
    # ----------------------------------------------------------------------------------------------

    def _read(self) -> Known:
        if self._path is None:
            return self._known
        try:
            return parse(self._path.read_bytes())
        except FileNotFoundError:
            return Known()
        except (OSError, ValueError) as error:
            raise _unusable(self._path, error) from error

    def _change(self, make: Callable[[Known], Known]) -> None:
        with self._hold(self._changing, "lock", waits=True):
            known = self._read()
            made = make(known)
            if made is known:
                return
            body = _type().dump_json(made)
            if len(body) > MAX_BYTES:
                made = _shorten(made)
                body = _type().dump_json(made)
            if self._path is None:
                self._known = made
                return
            try:
                private.write_bytes(self._path, body)
            except OSError as error:
                raise _unusable(self._path, error) from error

    def _forget(self) -> bool:
        with self._hold(self._changing, "lock", waits=True):
            if self._path is None:
                known, self._known = self._known, Known()
                return bool(known.id)
            was_there = self._path.exists()
            for path in (self._path, self._path.with_suffix(".updating")):
                path.unlink(missing_ok=True)
            return was_there

    @contextmanager
    def _hold(self, lock: threading.Lock, name: str, *, waits: bool) -> Iterator[bool]:
        """Yield whether the lock is held during the context: the file `name` beside that of the
        memory, which excludes other processes too, or `lock` if there is no file."""
        if self._path is None:
            is_mine = lock.acquire(blocking=waits)
            try:
                yield is_mine
            finally:
                if is_mine:
                    lock.release()
            return
        path = self._path.with_name(name)
        try:
            private.make_folder(path.parent)
            file = private.try_lock(path, waits=waits)
        except OSError as error:
            raise _unusable(path, error) from error
        with file or nullcontext():
            yield file is not None


def _unusable(path: Path, error: OSError | ValueError) -> StoreUnusableError:
    """Return the error for a memory whose file cannot be read or written. It shows nothing of what
    the file holds."""
    is_damaged = isinstance(error, ValueError)
    why = "the file is damaged" if is_damaged else getattr(error, "strerror", "") or str(error)
    other = "move it away" if is_damaged else "set BABYAGI_HOME to a folder that you may write to"
    return StoreUnusableError(
        f"the memory {path.name.removesuffix(SUFFIX)} cannot be used",
        why=why,
        fix=f"check {path}, or {other}",
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


# -- from bytes to content
# --------------------------------------------------------------------------------------------------


@cache
def _type() -> TypeAdapter[Known]:
    import_whole("pydantic")
    from pydantic import TypeAdapter

    return TypeAdapter(Known)


def parse(body: bytes) -> Known:
    """Return the content of a memory from the bytes of its file. Raises `ValueError` if they are
    damaged."""
    return _type().validate_json(body)


def _shorten(known: Known) -> Known:
    """Return the content without old turns and facts: with the newest turns and, as far as
    `N_MOST_TURNS` allows, those that the summary or the facts do not cover; and the newest
    facts."""
    made = [upto for upto in (known.summary.upto, known.facts_upto) if upto]
    first = max(min([known.last - N_KEPT_TURNS, *made]), known.last - N_MOST_TURNS)
    return replace(
        known,
        turns=tuple(turn for turn in known.turns if turn.n > first),
        facts=known.facts[-N_KEPT_FACTS:],
    )


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
