"""One task store, one model server that counts, and the worker processes that a campaign starts on
them.

An objective here is a survey of numbered items: each item is a task, its result has words of its
own, and it proposes the next
items until there are as many as were asked for. So it is known beforehand which tasks there must be
in the end, and each call to the model says which of them it is about.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from babyagi.runtime.offload import ThreadOffload
from babyagi.taskstore.sql.store import TaskStore, open_postgres
from babyagi.taskstore.sqlite import open_sqlite
from support.forked import Forked
from support.local_server import Answer, ChatRequest, LocalServer, agree_answer
from support.postgres_server import PostgresServer
from support.processes import DEFAULTS, Process, can_fork, command, environ
from support.prompts import asks_for_missing, results_in

STORES = ("sqlite", "postgresql")
LEASE_S = 3.0
WAITING = "works on all active objectives"  # says a worker that serves all, when it has begun
FAN_OUT = 5
NOTHING_MORE: Mapping[str, str] = MappingProxyType({})

_ITEM = re.compile(r"item (\d+) of survey (\d+)")
_QUEUED = re.compile(r"^(\d+): ", re.MULTILINE)


class Surveyor:
    """The model. Before it answers what an item's result is, it awaits `before_result`."""

    def __init__(self) -> None:
        self.n_items_by_survey: dict[int, int] = {}
        self.asked: Counter[tuple[int, int]] = Counter()  # (survey, item): requests for its result
        self.latency_s = 0.0

    async def before_result(self, survey: int, item: int) -> None:
        """Takes the time that an answer takes."""
        await asyncio.sleep(self.latency_s)

    async def __call__(self, chat: ChatRequest) -> Answer:
        said = chat.messages[-1].text
        match chat.agent:
            case "execution":
                # the task comes last
                item, survey = (int(part) for part in _ITEM.findall(said)[-1])
                self.asked[survey, item] += 1
                await self.before_result(survey, item)
                return Answer(text=f"Of {item} it is known that {_words(survey, item)}.")
            case "creation":
                await asyncio.sleep(self.latency_s)
                tasks = (
                    []
                    if asks_for_missing(said)
                    else [
                        task for _, name, _ in results_in(said) for task in self._next_items(name)
                    ]
                )
                return Answer(text=json.dumps({"tasks": tasks, "objective_met": False}))
            case "check":
                await asyncio.sleep(self.latency_s)
                return agree_answer(chat)
            case "prioritization":
                await asyncio.sleep(self.latency_s)
                return Answer(
                    text=json.dumps(
                        {"order": [int(number) for number in reversed(_QUEUED.findall(said))]}
                    )
                )
        return Answer(text="What the survey found.")

    def _next_items(self, name: str) -> list[dict[str, object]]:
        """What the finished task of this name brings."""
        item, survey = (int(part) for part in _ITEM.findall(name)[0])
        last = min(FAN_OUT * item + 1, self.n_items_by_survey[survey])
        return [
            {"name": name_of(survey, n), "after": []}
            for n in range(FAN_OUT * (item - 1) + 2, last + 1)
        ]


def name_of(survey: int, item: int) -> str:
    return f"Look into item {item} of survey {survey}"


def _words(survey: int, item: int) -> str:
    """Words that no other item has, so that no two results are nearly equal."""
    digits = hashlib.sha256(f"{survey} {item}".encode()).hexdigest()
    return " ".join(
        digits[at : at + 6].translate(str.maketrans("0123456789", "ghijklmnop"))
        for at in range(0, 48, 6)
    )


@dataclass(slots=True, kw_only=True)
class WorkerProcess:
    """A process of this program, and the file that holds what it says."""

    name: str
    line: tuple[str, ...]
    process: Process
    said_in: Path

    @property
    def said(self) -> str:
        return self.said_in.read_text(encoding="utf-8", errors="replace")

    @property
    def is_alive(self) -> bool:
        return self.process.returncode is None

    def send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def wait(self, timeout_s: float) -> int | None:
        """Return its exit code, None when it did not end in time (it is killed then)."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self.process.wait()
        except TimeoutError:
            self.send(signal.SIGKILL)
            await self.process.wait()
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How a survey stands. `n_lost` are items without a finished task; `n_doubled` items that were
    carried out or finished twice, or that have two tasks or two results; `n_asked_again` requests
    to the model beyond one for each result."""

    n_done: int
    n_lost: int
    n_doubled: int
    n_failures: int
    n_asked_again: int
    ended: str  # the stop reason, empty while it goes on
    has_report: bool

    @property
    def is_whole(self) -> bool:
        return self.n_lost == self.n_doubled == 0 and self.has_report


class Board:
    """What all workers of a campaign share. Whoever leaves the block takes every process with him
    that still lives."""

    def __init__(
        self,
        folder: Path,
        store_url: str,
        server: LocalServer,
        model: Surveyor,
        *,
        is_timed: bool = True,
    ) -> None:
        """In a campaign that is not timed, processes are forked."""
        self.is_timed = is_timed
        self.folder = folder
        self.store_url = store_url
        self.server = server
        self.model = model
        self.processes: list[WorkerProcess] = []
        self._connection: Any = None

    def environ(self, name: str, **more: str) -> dict[str, str]:
        """The whole environment of a process that has a home of its own."""
        home = self.folder / name
        home.mkdir(exist_ok=True)
        fixed = {
            "HOME": str(home),
            "BABYAGI_TASK_STORE": self.store_url,
            "BABYAGI_LEASE_S": str(LEASE_S),
            DEFAULTS: f"worker_name={name}",
            "BABYAGI_EMBEDDING_MODEL": "hash",
            "LLM_MODEL": "local",
            "OPENAI_API_KEY": "none",
        }
        return environ(home / "babyagi", self.server.base_url, **fixed | more)

    async def start(
        self,
        name: str,
        *line: str,
        env: Mapping[str, str] = NOTHING_MORE,
        prefix: tuple[str, ...] = (),
    ) -> WorkerProcess:
        """Start this program in a home of that name; what it says goes to a file. `prefix` is a
        command that starts it."""
        variables, said_in = self.environ(name, **env), self.folder / f"{name}.said"
        with said_in.open("ab") as said:
            process = await self._start(prefix, line, variables, self.folder / name, said.fileno())
        running = WorkerProcess(name=name, line=line, process=process, said_in=said_in)
        self.processes.append(running)
        return running

    async def _start(
        self,
        prefix: tuple[str, ...],
        line: tuple[str, ...],
        env: Mapping[str, str],
        cwd: Path,
        said: int,
    ) -> Process:
        if not self.is_timed and not prefix and can_fork(env):
            return Forked(line, env, cwd, out=said, err=said)
        nothing = asyncio.subprocess.DEVNULL
        return await asyncio.create_subprocess_exec(
            *prefix, *command(env), *line, env=env, cwd=cwd, stdin=nothing, stdout=said, stderr=said
        )

    async def submit(self, survey: int, n_items: int, **more: str) -> int:
        """Put a survey on the board and return the objective's number."""
        self.model.n_items_by_survey[survey] = n_items
        limits = {"BABYAGI_MAX_TASKS": "0"}
        process = await self.start(
            f"submit-{survey}", "submit", *survey_line(survey), "--json", env=limits | more
        )
        code = await process.wait(300)
        if code != 0:
            raise RuntimeError(f"submit ended with {code}: {process.said}")
        # notices stand in the same file
        answer, _ = json.JSONDecoder().raw_decode(process.said[process.said.index("{\n") :])
        number: int = answer["objective_id"]
        return number

    async def start_workers(
        self, *names: str, env: Mapping[str, str] = NOTHING_MORE
    ) -> list[WorkerProcess]:
        """Start workers that serve all, and return when each waits for work. It is the first time
        that they bear these names."""
        workers = [await self.start(name, "worker", env=env) for name in names]
        if not await self.until(
            lambda: all(WAITING in worker.said for worker in workers), timeout_s=300
        ):
            raise RuntimeError(f"a worker does not begin: {[worker.said for worker in workers]}")
        return workers

    async def until(
        self, is_so: Callable[[], bool], *, timeout_s: float, every_s: float = 0.02
    ) -> bool:
        """Look again and again; return False when it did not become so in time."""
        until_s = time.monotonic() + timeout_s
        while not is_so():
            if time.monotonic() > until_s:
                return False
            await asyncio.sleep(every_s)
        return True

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Read the task store as nobody of ours would."""
        if self.store_url.startswith("sqlite"):
            return self._sqlite_rows(query)
        import psycopg

        try:
            return self._postgres_rows(query)
        except psycopg.OperationalError:  # the server was away
            self._connection = None
            return self._postgres_rows(query)

    def _sqlite_rows(self, query: str) -> list[dict[str, Any]]:
        path = self.store_url.removeprefix("sqlite://")
        if self._connection is None:
            self._connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=300)
            self._connection.row_factory = sqlite3.Row
        return [dict(row) for row in self._connection.execute(query).fetchall()]

    def _postgres_rows(self, query: str) -> list[dict[str, Any]]:
        import psycopg
        from psycopg.rows import dict_row

        if self._connection is None:
            self._connection = psycopg.connect(
                self.store_url,
                autocommit=True,
                row_factory=dict_row,
                options="-c search_path=babyagi",
                connect_timeout=5,
            )
        found: list[dict[str, Any]] = self._connection.execute(query.encode()).fetchall()
        return found

    def objective(self, objective_id: int) -> dict[str, Any]:
        return self.rows(
            f"SELECT *, report IS NOT NULL AS has_report FROM objective WHERE id = {objective_id}"
        )[0]

    def is_over(self, objective_id: int) -> bool:
        return bool(self.objective(objective_id)["has_report"])

    def n_done(self, objective_id: int) -> int:
        found = self.rows(
            "SELECT count(*) AS n FROM task WHERE status = 'done' AND objective_id = "
            f"{objective_id}"
        )
        return int(found[0]["n"])

    def look_over(self, objective_id: int, survey: int) -> Found:
        """Compare the store, its events and the model's own count."""
        where, n_items = (
            f"WHERE objective_id = {objective_id}",
            self.model.n_items_by_survey[survey],
        )
        tasks = self.rows(f"SELECT id, name, status, failures FROM task {where}")
        events = self.rows(
            f"SELECT task_id, kind FROM event {where} AND kind IN ('task.recorded', 'task.done')"
        )
        n_results = self.rows(f"SELECT count(*) AS n FROM result {where}")[0]["n"]
        wanted = {name_of(survey, item) for item in range(1, n_items + 1)}
        done = {task["name"] for task in tasks if task["status"] == "done"}
        n_by_event = Counter((event["task_id"], event["kind"]) for event in events)
        n_twice = len(tasks) - len({task["name"] for task in tasks}) + max(0, n_results - n_items)
        objective = self.objective(objective_id)
        return Found(
            n_done=len(done),
            n_lost=len(wanted - done),
            n_doubled=sum(n > 1 for n in n_by_event.values()) + n_twice,
            n_failures=sum(task["failures"] for task in tasks),
            n_asked_again=sum(n - 1 for (of, _), n in self.model.asked.items() if of == survey),
            ended=objective["stop_reason"] or "",
            has_report=bool(objective["has_report"]),
        )

    async def close(self) -> None:
        """Kill what still lives, each by its own number."""
        for running in self.processes:
            if running.is_alive:
                running.send(signal.SIGCONT)
                running.send(signal.SIGKILL)
                await running.process.wait()
        if self._connection is not None:
            self._connection.close()


@asynccontextmanager
async def open_store(url: str) -> AsyncIterator[TaskStore]:
    """The store with the verbs of the program, for what no command does."""
    offload = ThreadOffload(name="taskstore")
    try:
        if url.startswith("postgres"):
            store = await open_postgres(url, offload=offload)
        else:
            store = await open_sqlite(
                Path(url.removeprefix("sqlite://")),
                clock=lambda: datetime.now(UTC),
                offload=offload,
            )
        try:
            yield store
        finally:
            await store.close()
    finally:
        offload.close()


def survey_line(survey: int) -> tuple[str, ...]:
    """The words and flags of an objective that is a survey."""
    return (f"Write survey {survey}.", "--task", name_of(survey, 1), "--name", f"survey-{survey}")


@contextmanager
def open_stores(kind: str) -> Iterator[Callable[[str], str]]:
    """Gives a function from a name to the URL of an empty task store of that kind; all are gone
    afterwards."""
    if kind == "sqlite":
        with TemporaryDirectory(prefix="babyagi-stores-") as folder:
            yield lambda name: f"sqlite://{folder}/{name}.db"
        return
    server = PostgresServer()
    try:
        server.start()

        def make(name: str) -> str:
            server.run(f"CREATE DATABASE {name}")
            return server.url(name)

        yield make
    finally:
        server.close()


@asynccontextmanager
async def open_board(
    store_url: str,
    *,
    model: Surveyor | None = None,
    host: str = "127.0.0.1",
    is_timed: bool = True,
) -> AsyncIterator[Board]:
    """A board in a folder of its own, with a model server at `host`."""
    model = model or Surveyor()
    with TemporaryDirectory(prefix="babyagi-board-") as folder:
        async with LocalServer(model, host=host) as server:
            board = Board(Path(folder), store_url, server, model, is_timed=is_timed)
            try:
                yield board
            finally:
                await board.close()
