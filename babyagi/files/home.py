"""The home folder: its id, the names of its workers, and the files that it has for each objective
and model."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from babyagi.errors import SettingsError, StoreUnusableError
from babyagi.files import private

MAX_WORKERS_PER_NAME = 64
MAX_TOUCHED = 100
PLACES = "places"  # locks of the programs of `run_python`, which take turns
TOUCHED = "touched"
SCRATCH = "scratch"  # files of the programs that tasks run, by objective uid and task
LENT = "lent"  # what a person allowed here, by the uid of an objective or a schedule
ANSWERS_KEY = "answers_key"
PAGES = "pages"  # fetched web pages, by objective uid
MEMORIES = "memories"  # memories of agents, by name; see `memory_of`
_UID = re.compile(r"[A-Za-z0-9][\w-]{0,99}", re.ASCII)
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def new_worker_id(name: str) -> str:
    """Return a new random id for a worker of this name."""
    return f"{name}-{secrets.token_hex(4)}"


def make_home(home: Path) -> None:
    """Create the home folder if it is missing.

    Raises:
        StoreUnusableError: the folder cannot be created or written to.
    """
    with _using(home):
        private.make_folder(home)
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(13, "not writable")


@contextmanager
def _using(home: Path) -> Iterator[None]:
    """Turn an error of the body, which uses files of the home folder, into an error for a person.

    Raises:
        StoreUnusableError: a file cannot be read or written, or is not text.
    """
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        name = (error.filename2 or error.filename) if isinstance(error, OSError) else None
        raise StoreUnusableError(
            f"the home folder {home} cannot be used",
            why=f"{name}: {why}" if name and Path(str(name)) != home else why,
            fix="set BABYAGI_HOME to a folder that has room and that you may write to, or remove "
            "what is in the way",
            guide="settings",
        ) from error


def home_id(home: Path) -> str:
    """Return the random id of this home folder, which is created at its first use. It tells apart
    the home folders of two machines whose workers have the same name."""
    with _using(home):
        return private.keep_word(home / "home_id", new_word=lambda: secrets.token_hex(8))


@contextmanager
def take_name(home: Path, wanted: str, *, taken: Collection[str] = ()) -> Iterator[str]:
    """Yield a worker name that no running worker of this home folder has: the first free one of
    `wanted`, `wanted-2`, … The lock of the name is held during the context.

    The holder of the lock knows that the previous worker of this name has ended, and need not wait
    for its lease to end.

    Args:
        wanted: the preferred name; empty for the host name.
        taken: names of workers of other home folders that share the task store.

    Raises:
        SettingsError: `MAX_WORKERS_PER_NAME` workers have this name already.
    """
    base = wanted or socket.gethostname()
    with _using(home):
        private.make_folder(home / "locks")
    for number in range(1, MAX_WORKERS_PER_NAME + 1):
        name = base if number == 1 else f"{base}-{number}"
        with _using(home):
            lock = None if name in taken else private.try_lock(_lock_path(home, name))
        if lock is None:
            continue
        with lock:
            with _using(home):
                lock.truncate(0)
                lock.write(_boot_id())
                lock.flush()
            yield name
        return
    what = f"{MAX_WORKERS_PER_NAME} workers called {base} use this home folder already"
    raise SettingsError(what, fix="set BABYAGI_HOME to another folder")


def is_bearer_dead(home: Path, name: str) -> bool:
    """Return whether the last worker of this name in this home folder has certainly ended.

    It has if it ran on this machine since the last boot, and its lock is free: the kernel releases
    the lock when the process ends. For a worker on another machine that shares the folder the
    answer is False, because its lock may be invisible here.
    """
    try:
        with _lock_path(home, name).open(encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return "" != lock.read() == _boot_id()
    except OSError:  # the lock is held, or the file does not exist
        return False


def _lock_path(home: Path, name: str) -> Path:
    return home / "locks" / f"{name.replace('/', '_')}.lock"


def _boot_id() -> str:
    """Return an id of the current boot; "" if it is unknown."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def remember_folder(home: Path, uid: str, folder: Path) -> None:
    """Store the path of an objective's folder, so that `babyagi resume` finds it. It is stored in
    this home folder and not in the task store, because it is valid on this machine only."""
    _remember(home, "folders", uid, str(folder.resolve()))


def remember_lent(
    home: Path,
    uid: str,
    *,
    asked: str,
    tools: Iterable[str] = (),
    forms: Mapping[str, str] | None = None,
) -> None:
    """Store that a person allowed an objective these tools on this machine, besides those that were
    allowed before. `asked` is the digest of what the objective asks (`lifecycle.identity_key`):
    whoever can write to the task store can give another objective the same uid. `forms` are tools
    of servers as they were allowed (`tasks.write_form`), by their names."""
    kept = {
        "asked": asked,
        "tools": sorted({*tools, *remembered_lent(home, uid, asked=asked)}),
        "forms": {**remembered_forms(home, uid, asked=asked), **(forms or {})},
    }
    _remember(home, LENT, uid, json.dumps(kept))


def remembered_lent(home: Path, uid: str, *, asked: str) -> frozenset[str]:
    """Return the names of the tools that `remember_lent` stored for this objective."""
    return frozenset(_recall_lent(home, uid, asked).get("tools", ()))


def remembered_forms(home: Path, uid: str, *, asked: str) -> dict[str, str]:
    """Return the forms of tools that `remember_lent` stored for this objective, by their names."""
    return dict(_recall_lent(home, uid, asked).get("forms", {}))


def _recall_lent(home: Path, uid: str, asked: str) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(_recall(home, LENT, uid) or "{}")
    return kept if kept.get("asked") == asked else {}


def answers_key(home: Path) -> str:
    """Return the key with which this home folder signs a person's answers. It is created at its
    first use; a home folder that gets a copy of it answers for this one as well."""
    with _using(home):
        private.make_folder(home)
        return private.keep_word(home / ANSWERS_KEY, new_word=lambda: secrets.token_hex(32))


def place_of(home: Path, kind: str, uid: str) -> Path:
    """Return where this home folder keeps something about the objective or schedule with this uid.

    Raises:
        SettingsError: the uid is no plain name. It comes from the task store, and must not lead to
            another folder.
    """
    if not _UID.fullmatch(uid):
        raise SettingsError(
            "the task store holds an objective whose uid is no plain name",
            why=f"its uid is {uid[:80]!r}",
            fix="babyagi store verify names every damaged row of the task store",
            guide="store",
        )
    return home / kind / uid


def _remember(home: Path, kind: str, uid: str, text: str) -> None:
    path = place_of(home, kind, uid)
    with _using(home):
        private.make_folder(path.parent)
        private.write_file(path, text)


def _recall(home: Path, kind: str, uid: str) -> str:
    path = place_of(home, kind, uid)
    with _using(home):
        return path.read_text(encoding="utf-8") if path.is_file() else ""


def remember_touch(home: Path, uid: str, objective_id: int) -> None:
    """Store that a person has just used this objective, which makes it the latest one of this home
    folder, whatever other people use in a shared task store."""
    known, entry = touched(home), (uid, objective_id)
    if known[-1:] != [entry]:
        kept = [*(one for one in known if one != entry), entry][-MAX_TOUCHED:]
        _write_touched(home, kept)


def _write_touched(home: Path, entries: Sequence[tuple[str, int]]) -> None:
    lines = [f"{uid} {number}" for uid, number in entries]
    with _using(home):
        private.make_folder(home)
        private.write_file(home / TOUCHED, "\n".join(lines))


def touched(home: Path) -> list[tuple[str, int]]:
    """Return the objectives that a person used with this home folder, as (uid, id), the latest
    last."""
    try:
        lines = (home / TOUCHED).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    entries = [line.rpartition(" ") for line in lines]
    return [(uid, int(number)) for uid, _, number in entries if number.isdecimal()]


def memory_of(uid: str) -> str:
    """Return the name under which this home folder stores the memory of an objective's agent."""
    return f"objective-{uid}"


def is_memory_of_objective(name: str) -> bool:
    """Return whether the memory with this name belongs to an objective's agent, and not to a
    person's conversation."""
    return re.fullmatch("objective-[0-9a-f]{16}(-[0-9a-f]+)?", name) is not None


def forget(home: Path, uid: str) -> None:
    """Remove what this home folder stores about a deleted objective."""
    for kind in ("folders", LENT):
        place_of(home, kind, uid).unlink(missing_ok=True)
    for kind in (PAGES, SCRATCH):
        shutil.rmtree(place_of(home, kind, uid), ignore_errors=True)
    for suffix in (".json", ".updating"):
        (home / MEMORIES / f"{memory_of(uid)}{suffix}").unlink(missing_ok=True)
    kept = [one for one in touched(home) if one[0] != uid]
    if kept != touched(home):
        _write_touched(home, kept)


def remember_abilities(home: Path, address: str, text: str) -> None:
    """Store what calls have shown that a model can do. `address` names the model and its server."""
    path = _abilities_path(home, address)
    private.make_folder(path.parent)
    private.write_file(path, text)


def remembered_abilities(home: Path, address: str) -> str:
    """Return what `remember_abilities` stored; "" if there is nothing."""
    try:
        return _abilities_path(home, address).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _abilities_path(home: Path, address: str) -> Path:
    return home / "abilities" / hashlib.sha256(address.encode()).hexdigest()[:24]


def remembered_folder(home: Path, uid: str) -> Path | None:
    """Return the path that `remember_folder` stored; None if there is none."""
    text = _recall(home, "folders", uid)
    return Path(text) if text else None
