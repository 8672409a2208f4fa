"""The home folder: what tells it from others, and the names that workers have in it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import socket
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from babyagi import private
from babyagi.errors import SettingsError, StoreUnusableError

MAX_WORKERS_PER_NAME = 64
MAX_TOUCHED = 100
TOUCHED = "touched"
SCRATCH = "scratch"  # files of tasks' programs, by the uid of the objective and the task
PAGES = "pages"  # of the web that were fetched, by the uid of the objective
MEMORIES = "memories"  # of agents, by name; that of an objective's agent by its uid
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def new_worker_id(name: str) -> str:
    return f"{name}-{secrets.token_hex(4)}"


def make_home(home: Path) -> None:
    try:
        private.make_folder(home)
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(13, "not writable")
    except OSError as error:
        raise StoreUnusableError(
            f"the home {home} cannot be used",
            why=str(error.strerror or error),
            fix="set BABYAGI_HOME to a folder that you may write to",
            guide="settings",
        ) from error


def home_id(home: Path) -> str:
    """What tells this home from all others, made at its first use: two machines may call a worker
    by the same name."""
    path = home / "home_id"
    if not path.is_file():
        made = path.with_name(f"home_id.{os.getpid()}")
        private.write_file(made, secrets.token_hex(8))
        with suppress(FileExistsError):  # another process was quicker
            os.link(made, path)
        made.unlink()
    return path.read_text(encoding="utf-8")


@contextmanager
def take_name(home: Path, wanted: str, *, taken: Collection[str] = ()) -> Iterator[str]:
    """Hold the lock of a worker's name in this home while we live: the first free one of `name`,
    `name-2`, …

    Who holds a name's lock knows that whoever had the name before is dead, and need not wait for
    leases.

    Args:
        taken: names that workers of other homes have, which share the task store.
    """
    base = wanted or socket.gethostname()
    private.make_folder(home / "locks")
    for number in range(1, MAX_WORKERS_PER_NAME + 1):
        name = base if number == 1 else f"{base}-{number}"
        if name in taken:
            continue
        with open(_lock_path(home, name), "a", opener=private.open_file) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            lock.truncate(0)
            lock.write(_boot_id())
            lock.flush()
            yield name
            return
    raise SettingsError(
        f"{MAX_WORKERS_PER_NAME} workers called {base} run in this home already",
        fix="set BABYAGI_WORKER_NAME",
    )


def is_bearer_dead(home: Path, name: str) -> bool:
    """Whether the last bearer of this name in this home is dead for sure: it ran under this very
    kernel, which frees the lock of the name with the process. Where another kernel shares the
    folder, its locks may not be seen here, so nothing is known."""
    try:
        with _lock_path(home, name).open(encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return "" != lock.read() == _boot_id()
    except OSError:  # held, or not there
        return False


def _lock_path(home: Path, name: str) -> Path:
    return home / "locks" / f"{name.replace('/', '_')}.lock"


def _boot_id() -> str:
    """What tells this start of this kernel from all others; empty where that cannot be known."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def remember_folder(home: Path, uid: str, folder: Path) -> None:
    """Keep the path of an objective's folder in this home, so that `resume` finds it. It is this
    worker's, so it is not in the store."""
    path = home / "folders" / uid
    private.make_folder(path.parent)
    private.write_file(path, str(folder.resolve()))


def remember_concurrency(home: Path, uid: str, concurrency: int) -> None:
    """Keep how many tasks of an objective a person wants at once in this home; as the folder, it is
    not in the store."""
    path = home / "concurrency" / uid
    private.make_folder(path.parent)
    private.write_file(path, str(concurrency))


def remembered_concurrency(home: Path, uid: str) -> int | None:
    path = home / "concurrency" / uid
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return int(text) if text.isdecimal() else None


def remember_touch(home: Path, uid: str, objective_id: int) -> None:
    """Keep that a person has just had to do with this objective: it is the latest one here,
    whatever others do in a task store that is shared."""
    known, entry = touched(home), (uid, objective_id)
    if known[-1:] != [entry]:
        kept = [*(one for one in known if one != entry), entry][-MAX_TOUCHED:]
        _write_touched(home, kept)


def _write_touched(home: Path, entries: Sequence[tuple[str, int]]) -> None:
    private.make_folder(home)
    lines = [f"{uid} {number}" for uid, number in entries]
    private.write_file(home / TOUCHED, "\n".join(lines))


def touched(home: Path) -> list[tuple[str, int]]:
    """The objectives that a person had to do with here, by uid and number, the latest last."""
    try:
        lines = (home / TOUCHED).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    entries = [line.rpartition(" ") for line in lines]
    return [(uid, int(number)) for uid, _, number in entries if number.isdecimal()]


def memory_of(uid: str) -> str:
    """The name of the memory that an objective's agent has in this home."""
    return f"objective-{uid}"


def forget(home: Path, uid: str) -> None:
    """Forget an objective that was deleted."""
    for kind in ("folders", "concurrency"):
        (home / kind / uid).unlink(missing_ok=True)
    for kind in (PAGES, SCRATCH):
        shutil.rmtree(home / kind / uid, ignore_errors=True)
    for suffix in (".jsonl", ".updating"):
        (home / MEMORIES / f"{memory_of(uid)}{suffix}").unlink(missing_ok=True)
    kept = [one for one in touched(home) if one[0] != uid]
    if kept != touched(home):
        _write_touched(home, kept)


def remember_abilities(home: Path, address: str, text: str) -> None:
    """Keep what was found out about a model; `address` names its server and the model."""
    path = _abilities_path(home, address)
    private.make_folder(path.parent)
    private.write_file(path, text)


def remembered_abilities(home: Path, address: str) -> str:
    """What was kept, empty where nothing was."""
    try:
        return _abilities_path(home, address).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _abilities_path(home: Path, address: str) -> Path:
    return home / "abilities" / hashlib.sha256(address.encode()).hexdigest()[:24]


def remembered_folder(home: Path, uid: str) -> Path | None:
    path = home / "folders" / uid
    return Path(path.read_text(encoding="utf-8")) if path.is_file() else None
