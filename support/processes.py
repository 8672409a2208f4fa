"""Real `babyagi` processes against a server in the test's own process, and a look into the homes
that they leave."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from support.forked import Forked, fork

ROOT = Path(__file__).parents[1]
Process = asyncio.subprocess.Process | Forked
COMMAND = (sys.executable, "-m", "babyagi")
DEFAULTS = "SUPPORT_DEFAULTS"  # see `support.command`
SUBJECTS = ("glacier", "harbour", "orchard", "lantern", "monsoon", "quarry", "saffron", "telegraph")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A process that has ended."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err

    @property
    def four_lines(self) -> list[str]:
        """The error, which is the last of what stands on standard error."""
        lines = self.err.splitlines()
        return next(
            (lines[at:] for at, line in enumerate(lines) if line.startswith("babyagi: ")), []
        )


def environ(home: Path, base_url: str = "", **more: str) -> dict[str, str]:
    """The whole environment of a process: its home, its server, the program that these tests belong
    to, and nothing of ours."""
    server = {"OPENAI_BASE_URL": base_url, "BABYAGI_PROTOCOL": "untested"} if base_url else {}
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "BABYAGI_HOME": str(home),
        "BABYAGI_RESULT_STORE": "builtin",
        **server,
        **more,
    }


def can_fork(env: Mapping[str, str]) -> bool:
    """Whether it is a process of the program that these tests belong to, with nothing put before
    it."""
    return env.get("PYTHONPATH") == str(ROOT)


def command(env: Mapping[str, str]) -> tuple[str, ...]:
    """The command line for this environment, which may name defaults of settings."""
    return (sys.executable, "-m", "support.command") if DEFAULTS in env else COMMAND


async def start(
    *line: str,
    env: Mapping[str, str],
    cwd: Path | None = None,
    is_mute: bool = False,
    is_timed: bool = False,
) -> Process:
    """Start the command line; `is_mute` where nobody reads its standard error, which would fill
    up. It is forked where it is the program that these tests belong to and is not timed."""
    folder = cwd or Path(env["BABYAGI_HOME"]).parent
    if can_fork(env) and not is_timed:
        return await fork(line, env, folder, is_mute=is_mute)
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *command(env),
        *line,
        env=env,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=asyncio.subprocess.DEVNULL if is_mute else pipe,
    )


async def finish(process: Process, *, timeout_s: float = 300.0) -> Ended:
    """Await the end of the process, which is killed when it takes longer."""
    communicating = asyncio.ensure_future(process.communicate())
    done, _ = await asyncio.wait([communicating], timeout=timeout_s)
    if not done:
        process.kill()
    out, err = await communicating
    assert done, f"no end after {timeout_s} s: {out.decode()} {err.decode()}"
    assert process.returncode is not None
    return Ended(code=process.returncode, out=out.decode(), err=err.decode())


async def babyagi(
    *line: str, env: Mapping[str, str], cwd: Path | None = None, timeout_s: float = 300.0
) -> Ended:
    """Run one command to its end. No command may show a traceback or send an escape to what is no
    terminal."""
    ended = await finish(await start(*line, env=env, cwd=cwd), timeout_s=timeout_s)
    assert "Traceback" not in ended.said, ended.said
    assert "\x1b" not in ended.said
    return ended


async def look(*line: str, env: Mapping[str, str]) -> Any:
    """What a command with `--json` prints."""
    ended = await babyagi(*line, "--json", env=env)
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def rows(home: Path, query: str) -> list[dict[str, Any]]:
    """Read the task store's file as it lies there, as nobody of ours would."""
    path = home / "tasks.db"
    if not path.exists():
        return []
    try:
        return _read_rows(f"file:{path}?mode=ro", query)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY:
            raise
    # a killed process left what only a writer may mend: a copy is mended
    with TemporaryDirectory() as folder:
        for one in home.glob("tasks.db*"):
            if not one.name.endswith("-shm"):
                shutil.copy(one, folder)
        return _read_rows(f"file:{folder}/tasks.db?mode=rw", query)


def _read_rows(address: str, query: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(address, uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in connection.execute(query)]
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            raise


def write_documents(folder: Path, *, n_lines: int = 12) -> Path:
    """Eight documents with three lines each that can be quoted, no two of which are equally near to
    an objective."""
    folder.mkdir()
    for number, subject in enumerate(SUBJECTS):
        lines = [f"# The {subject}", "", *(f"{line}: too short" for line in range(3, n_lines + 1))]
        for place in range(3):
            # a weight of its own
            words = (
                f"{subject[:3]}{chr(97 + place)}{chr(97 + n)}"
                for n in range(3 * number + place + 1)
            )
            lines[n_lines // 4 * (place + 1)] = (
                f"The {subject} has large stores of {' '.join(words)}."
            )
        (folder / f"{subject}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def fill_disk(path: Path) -> None:
    """Write to the file until the disk is full."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * 4096)


@contextmanager
def open_files_left(n: int) -> Iterator[None]:
    """In this context, this process can open n more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    next_fd = os.dup(0)
    os.close(next_fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_fd + n, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
