"""What a machine or a server lacks: a disk that can be written, an older worker's schema, the usage of
a stream, descriptors. Commands that look work all the same and change nothing; a priced run goes on
where streams say no cost; no answer that was paid for is thrown away.

`python -m tests.faults.shortages [--kind disks|streams|descriptors] [--every N]`
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from babyagi.app.application import Company, open_app
from babyagi.cli.root import run_guarded
from babyagi.cli.session import close_log
from babyagi.settings.load import load_settings
from babyagi.tasks import StopReason, Usage
from babyagi.taskstore.sql import database
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import SqliteDatabase
from support.local_server import LocalServer
from support.local_server.dialects import chat_usage
from support.processes import COMMAND, babyagi, environ, fill_disk, rows, write_documents
from support.table import print_table, verdict
from tests.cli import homes, looked_at, samples
from tests.faults.usages import WAYS
from tests.system.test_limits import PRICE_IN, PRICE_OUT
from tests.taskstore import old_home

LOOKS = ("status", "show 1", "show plan", "show log", "report", "tasks", "show results",
         "inbox", "show workers", "show objectives", "store verify", "store verify --index",
         "show results price")  # fmt: skip
ALIKE = ("tasks", "show results", "store verify")  # these print no times
DISK_BYTES = 24_000_000
DESCRIPTORS = (16, 20, 24, 28, 32, 36, 40, 44, 48, 56, 64, 128)
Fault = str


# -- disks
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A home in which something lies, and what a command may not do there."""

    home: Path
    most_file_bytes: int | None = None  # of a file that a command writes


def fill(home: Path, *, is_ended: bool) -> None:
    """Put an objective into the home that has ended or is under way."""
    os.environ["BABYAGI_HOME"], os.environ["BABYAGI_RESULT_STORE"] = str(home), "builtin"
    looked_at.fill_ended_home() if is_ended else looked_at.fill_running_home()


def leave_log(home: Path) -> None:
    """Leave the last commits in the log, as a worker does that is killed."""
    path, kept = home / "tasks.db", home / "kept"
    kept.mkdir()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("UPDATE meta SET value = value")
        db.commit()
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", kept / f"tasks.db{suffix}")
    for left in home.glob("tasks.db*"):
        if not left.name.endswith(".lock"):
            left.unlink()
    for copy in kept.iterdir():
        copy.rename(home / copy.name)
    kept.rmdir()


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of its own, where mounting is permitted."""
    folder.mkdir()
    options = f"size={DISK_BYTES}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def full_disk(folder: Path, prepare: Callable[[Path], None]) -> Iterator[Place]:
    with small_disk(folder) as disk:
        prepare(disk / "home")
        fill_disk(disk / "filler")
        yield Place(home=disk / "home")


@contextmanager
def read_only_disk(folder: Path, prepare: Callable[[Path], None]) -> Iterator[Place]:
    with small_disk(folder) as disk:
        prepare(disk / "home")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        yield Place(home=disk / "home")


@contextmanager
def no_bytes(folder: Path, prepare: Callable[[Path], None]) -> Iterator[Place]:
    """No file may grow, which every system can say of a process."""
    prepare(folder / "home")
    yield Place(home=folder / "home", most_file_bytes=0)


@contextmanager
def older_worker(folder: Path, _: Callable[[Path], None]) -> Iterator[Place]:
    """A worker of an earlier version is working, in its own schema."""
    home = folder / "home"
    home.mkdir(parents=True)
    old_home.unpack_file(home / "tasks.db")
    scripts = replace(database.load_scripts("sqlite"), version=old_home.VERSION)
    opened = SqliteDatabase(home / "tasks.db", clock=lambda: samples.START, scripts=scripts)
    store = TaskStore(opened, offload=_inline, tell=lambda _: None)

    async def fill_older() -> None:
        created, _ = await store.create_objective(samples.spec("Sing"), uid="u1")
        await homes.enter(store, created.id)

    asyncio.run(fill_older())
    try:
        yield Place(home=home)
    finally:
        opened.close()


async def _inline(work: Callable[[], Any]) -> Any:
    return work()


def running(home: Path) -> None:
    fill(home, is_ended=False)


def ended(home: Path) -> None:
    fill(home, is_ended=True)


def killed(home: Path) -> None:
    fill(home, is_ended=True)
    leave_log(home)


DISKS = {
    f"{kind}, {state.__name__}": (partial(place), state)
    for kind, place in (("full", full_disk), ("read-only", read_only_disk), ("no bytes", no_bytes))
    for state in (running, ended, killed)
} | {"beside an older worker": (partial(older_worker), running)}


def look_at(name: str, folder: Path) -> list[Fault]:
    """Every command that looks, in the place and beside it on an ordinary disk."""
    make, state = DISKS[name]
    folder.mkdir()
    is_older, ordinary = "older" in name, folder / "ordinary"
    if not is_older:
        state(ordinary)
    found: list[Fault] = []
    with make(folder / "disk", state) as place:
        before = content(place.home)
        for line in LOOKS:
            code, out, err = _run(line, place.home, place.most_file_bytes)
            # whatever the comparison of the index finds, it has looked; an older schema knows less
            may_differ = (7,) if line == "store verify --index" else ()
            right = {0, *may_differ, *((7, 8) if is_older else ())}
            if code not in right:
                found.append(f"{name}: `{line}` ended with {code}: {err.strip()[:300]}")
            elif line in ALIKE and not is_older and _run(line, ordinary)[1] != out:
                found.append(f"{name}: `{line}` printed something else than usual")
        if content(place.home) != before:
            found.append(f"{name}: something was written")
    return found


def _run(line: str, home: Path, most_file_bytes: int | None = None) -> tuple[int, str, str]:
    """The command in this process: its exit code, and what it printed."""
    os.environ["BABYAGI_HOME"] = str(home)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    out, err = StringIO(), StringIO()
    try:
        if most_file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_file_bytes, hard))
        with redirect_stdout(out), redirect_stderr(err):
            code = run_guarded(line.split())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        close_log()
    return code, out.getvalue(), err.getvalue()


def content(home: Path) -> dict[str, bytes]:
    """The bytes of all files by path, without the index of the log, where readers leave marks."""
    found = [path for path in home.rglob("*") if not path.name.endswith("-shm")]
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in found}


# -- streams without usage
# --------------------------------------------------------------------------------------------------

UNSAID = {
    **{name: WAYS[name] for name in
       ("nothing", "empty", "null", "negative", "no number", "a list", "ones", "zeros")},
    "a text": lambda *_: "unknown",
    "words": lambda *_: {"prompt_tokens": "many", "completion_tokens": "few"},
    "too many": lambda *_: {"prompt_tokens": 1e999, "completion_tokens": 1e999},
}  # fmt: skip


async def stream_without_usage(name: str, folder: Path) -> list[Fault]:
    """A priced run whose streams say their usage in this form: it ends well, what a stream took is
    charged with no less, and what follows is asked for whole."""
    documents = write_documents(_made(folder) / "docs")
    async with LocalServer() as server:

        def say(usage: Usage) -> tuple[Any, Usage]:
            is_stream = bool(server.requests[-1].body.get("stream"))
            said = UNSAID[name](usage.prompt_tokens, usage.completion_tokens, 0)
            return (said if is_stream else chat_usage(usage)), usage

        server.say_usage = say
        settings = _priced(folder, server, documents)
        async with open_app(settings) as app:
            objective, _ = await app.start_objective()
            done = (await app.run(objective, Company(on_piece=lambda _: None))).objective
            done = await app.store.objective(done.id)
        records = list(server.requests)
    billed = sum(
        (one.prompt_tokens * PRICE_IN + one.completion_tokens * PRICE_OUT) / 1e6 for one in records
    )
    n_streams = sum(bool(one.body.get("stream")) for one in records)
    found = []
    if done.stop_reason not in (StopReason.FINISHED, StopReason.OBJECTIVE_MET):
        found.append(f"{name}: the run ended as {done.stop_reason} after {len(records)} calls")
    if done.usage.cost_usd < billed - 1e-6:
        found.append(f"{name}: {done.usage.cost_usd} was charged for {billed}")
    if not 1 <= n_streams <= settings.concurrency:
        found.append(f"{name}: {n_streams} of {len(records)} calls were streams")
    return found


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _priced(folder: Path, server: LocalServer, documents: Path) -> Any:
    flags = {"objective": "Which stores are large?", "llm_model": "some-model", "max_tasks": "5",
             "max_cost_usd": "5", "files": documents, "dialect": "chat"}  # fmt: skip
    environment: Mapping[str, str] = {
        "BABYAGI_HOME": str(folder / "home"),
        "BABYAGI_RESULT_STORE": "builtin",
        "OPENAI_BASE_URL": server.base_url,
        "BABYAGI_PROTOCOL": "untested",
        "BABYAGI_PRICE": f"{PRICE_IN}/{PRICE_OUT}",
        "BABYAGI_EMBEDDING_MODEL": "hash",
    }
    return load_settings(flags=flags, environ=environment, cwd=folder).settings


# -- descriptors
# --------------------------------------------------------------------------------------------------


async def few_descriptors(name: str, folder: Path) -> list[Fault]:
    """A run in a process that may open so many files: it is refused before the first call, or each
    answer that was paid for is recorded. Looking works in either case."""
    home, most = _made(folder) / "home", int(name)
    documents = write_documents(folder / "docs")
    async with LocalServer() as server:
        env = environ(home, server.base_url, BABYAGI_EMBEDDING_MODEL="hash", OPENAI_API_KEY="k")
        line = ["run", "Which stores are large?", "--files", str(documents), "--max-tasks", "4",
                "--model", "some-model", "--max-cost", "0"]  # fmt: skip
        code, said = await _limited(line, env, most)
        n_paid = len(server.answered)
    kept = rows(home, "SELECT count(*) AS n FROM step WHERE kind = 'model' AND state = 'done'")
    n_kept = kept[0]["n"] if kept else 0
    found = []
    if code == 2 and "ulimit -n" in said:
        found += [f"{most}: {n_paid} calls before it was refused"] if n_paid else []
    elif code not in (0, 3, 6) or n_kept != n_paid:
        found.append(
            f"{most}: exit code {code}, {n_paid} answers paid, {n_kept} kept: {said[-300:]}"
        )
    if (looked := await babyagi("show", "objectives", env=env)).code != 0:
        found.append(f"{most}: `objectives` ended with {looked.code} afterwards")
    code, said = await _limited(["show", "objectives"], env, most)
    return found + ([f"{most}: `objectives` ended with {code}: {said[-300:]}"] if code else [])


async def _limited(line: list[str], env: Mapping[str, str], most: int) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *line, env=env, cwd="/", stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)),
    )  # fmt: skip
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


# -- the command
# --------------------------------------------------------------------------------------------------

Try = Callable[[str, Path], list[Fault]]


def awaited(attempt: Callable[[str, Path], Coroutine[Any, Any, list[Fault]]]) -> Try:
    return lambda case, folder: asyncio.run(attempt(case, folder))


KINDS: dict[str, tuple[list[str], Try]] = {
    "disks": (list(DISKS), look_at),
    "streams": (list(UNSAID), awaited(stream_without_usage)),
    "descriptors": ([str(most) for most in DESCRIPTORS], awaited(few_descriptors)),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.shortages", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind")
    parser.add_argument("--every", type=int, default=1, help="only each Nth case of a kind")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    table, faults = [], []
    with tempfile.TemporaryDirectory(prefix="babyagi-short-") as name:
        for kind in given.kind or KINDS:
            began_s, (cases, attempt) = time.monotonic(), KINDS[kind]
            cases = [
                case for case in cases[:: given.every] if os.geteuid() == 0 or "disk" not in kind
                or "no bytes" in case or "older" in case
            ]  # fmt: skip
            found = [attempt(case, Path(name) / f"{kind}-{n}") for n, case in enumerate(cases)]
            n_faults = sum(map(len, found))
            took_s = f"{time.monotonic() - began_s:.0f}"
            table.append([kind, len(cases), n_faults, "0", verdict(not n_faults), took_s])
            faults += [fault for one in found for fault in one]
    print_table("Shortages", ("of", "cases", "faults", "goal", "", "s"), table)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults: {verdict(not faults)}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
