"""Processes that need not start Python nor import anything: they are forked from a server of the
standard library that has imported what the command and the children of tests need."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path

from support.command import run

_IMPORTED = (
    "anyio._backends._asyncio",
    "babyagi.app.application",
    "babyagi.cli.root",
    "babyagi.cli.run",
    "babyagi.llm.client",
    "httpcore2",
    "numpy",
    "openai.resources.chat",
    "openai.resources.responses",
    "rich.console",
    "support.forked",
    "tests.once_child",
    "tests.walk_child",
    "truststore",
)
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(list(_IMPORTED))


class Forked:
    """A process with what the tests use of an `asyncio.subprocess.Process`."""

    def __init__(
        self,
        line: tuple[str, ...],
        env: Mapping[str, str],
        cwd: Path,
        *,
        out: int,
        err: int,
    ) -> None:
        """Fork it with these files as its standard streams, which the caller may close then."""
        self.stdout = self.stderr = _at_its_end()
        self.returncode: int | None = None
        self._has_ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        with _kept(out) as kept_out, _kept(err) as kept_err:
            streams = kept_out, kept_err
            self._process = FORKS.Process(
                target=_become, args=(line, dict(env), str(cwd), *streams)
            )
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self._loop.add_reader(self._process.sentinel, self._end)

    def _end(self) -> None:
        self._loop.remove_reader(self._process.sentinel)
        self._process.join()
        self.returncode = self._process.exitcode
        self._process.close()
        self._has_ended.set()

    async def wait(self) -> int:
        await self._has_ended.wait()
        assert self.returncode is not None
        return self.returncode

    async def communicate(self) -> tuple[bytes, bytes]:
        out, err, _ = await asyncio.gather(self.stdout.read(), self.stderr.read(), self.wait())
        return out, err

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


async def fork(
    line: tuple[str, ...], env: Mapping[str, str], cwd: Path, *, is_mute: bool = False
) -> Forked:
    """Fork it with pipes as its standard output and, unless `is_mute`, its standard error."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    (from_out, out), (from_err, err) = os.pipe(), os.pipe()
    try:
        forked = Forked(line, env, cwd, out=out, err=nothing if is_mute else err)
    finally:
        for fd in (nothing, out, err):
            os.close(fd)
    forked.stdout, forked.stderr = await _read_from(from_out), await _read_from(from_err)
    return forked


async def _read_from(fd: int) -> asyncio.StreamReader:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    pipe = os.fdopen(fd, "rb", buffering=0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


def _at_its_end() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_eof()
    return reader


def _kept(fd: int) -> Connection:
    """The file in the only form in which another process can be handed it."""
    return Connection(os.dup(fd), readable=False)


def _become(
    line: tuple[str, ...], env: dict[str, str], cwd: str, out: Connection, err: Connection
) -> None:
    """Be that command, with its environment, its folder and its standard streams."""
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, fd in enumerate((nothing, out.fileno(), err.fileno())):
        os.dup2(fd, number)
    os.close(nothing)
    out.close()
    err.close()
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (open to the end)
    sys.argv = ["babyagi", *line]
    run()
