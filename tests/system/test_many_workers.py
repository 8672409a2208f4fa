"""Many worker processes on one task store: nothing is lost or doubled, and nobody leaves early.

Workers that are killed or frozen: `tests/faults/test_takeover.py`.
"""

import asyncio
import json
import signal
import sqlite3
from contextlib import closing, suppress
from datetime import datetime

import pytest

from support.local_server import Answer, LocalServer, agree_answer
from support.processes import babyagi, environ, finish, look, start

pytestmark = pytest.mark.system

N_TASKS = 11  # as many as one planning may bring
LEASE_S = 3.0
SYLLABLES = ("ba", "cor", "dil", "fen", "gam", "hup", "jit", "kol", "lum", "mer", "nop", "pag")


def word(number):
    """No two of them look alike to whoever compares names."""
    return (
        SYLLABLES[number % 12]
        + SYLLABLES[number * 5 % 12]
        + SYLLABLES[(number // 12 + 3 * number) % 12]
        + chr(97 + number % 26)
    )


class Script:
    """The first task brings the others, each of which has a result of its own. `gate` holds
    execution calls back while it is closed, all of them or those after `n_free`."""

    def __init__(self, n_tasks=N_TASKS):
        self.n_tasks = n_tasks
        self.executed = []
        self.n_free = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self._is_planned = False

    async def __call__(self, request):
        match request.agent:
            case "creation":
                names = (
                    []
                    if self._is_planned
                    else [f"{word(2 * n)} {word(2 * n + 1)}" for n in range(self.n_tasks - 1)]
                )
                self._is_planned = True
                return Answer(
                    text=json.dumps(
                        {
                            "tasks": [{"name": name, "after": []} for name in names],
                            "objective_met": False,
                        }
                    )
                )
            case "prioritization":
                return Answer(text=json.dumps({"order": []}))
            case "execution":
                self.executed.append(request.messages[-1].text)
                number = len(self.executed)
                if number > self.n_free:
                    await self.gate.wait()
                return Answer(text=f"Result {number}: {word(7 * number)} {word(7 * number + 3)}.")
            case "check":
                return agree_answer(request)
            case _:
                return Answer(text="The report.")


class Board:
    """One task store, the model behind it, and every process of ours that works there."""

    def __init__(self, folder, script, server):
        self.folder, self.script, self.server = folder, script, server
        self.task_store = f"sqlite://{folder}/board.db"
        self._processes = []

    def env(self, home="home", **more):
        (self.folder / home).mkdir(exist_ok=True)
        fixed = {
            "BABYAGI_TASK_STORE": self.task_store,
            "OPENAI_API_KEY": "sk-test",
            "BABYAGI_EMBEDDING_MODEL": "hash",
            "BABYAGI_LEASE_S": str(LEASE_S),
        }
        return environ(self.folder / home, self.server.base_url, **fixed | more)

    async def start(self, *line, **more):
        process = await start(*line, env=self.env(**more))
        self._processes.append(process)
        return process

    async def submit(self, *flags, text="Know it all", **more):
        ended = await babyagi("submit", text, "--json", *flags, env=self.env(**more))
        assert ended.code == 0, ended.err
        return json.loads(ended.out)["objective_id"]

    async def events(self, objective_id):
        """All events of an objective that has ended."""
        ended = await babyagi("watch", "--objective", str(objective_id), "--json", env=self.env())
        *events, _outcome = [json.loads(line) for line in ended.out.splitlines()]
        return events

    def workers(self):
        return self._rows("SELECT id, name FROM worker")

    def is_hindered(self):
        return bool(self._rows("SELECT * FROM worker_objective WHERE hindrance != ''"))

    def _rows(self, query):
        """Read the task store's file, as often as it takes."""
        with closing(sqlite3.connect(self.folder / "board.db", timeout=300)) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(query).fetchall()

    async def until(self, is_so, *, timeout_s=300.0):
        """Ask again and again."""
        async with asyncio.timeout(timeout_s):
            while not is_so():
                await asyncio.sleep(0.02)

    def is_over(self, objective_id):
        with suppress(sqlite3.OperationalError):  # as long as there is no store
            query = f"SELECT id FROM objective WHERE id = {objective_id} AND report IS NOT NULL"
            return bool(self._rows(query))
        return False

    def is_executing(self, n):
        return len(self.script.executed) >= n

    async def stop(self, process):
        process.send_signal(signal.SIGTERM)
        return await finish(process)

    async def close(self):
        self.script.gate.set()
        for process in self._processes:
            if process.returncode is None:
                process.kill()
            await process.communicate() if not process.stdout.at_eof() else await process.wait()


@pytest.fixture
async def script():
    return Script()


@pytest.fixture
async def board(tmp_path, script):
    async with LocalServer(script, latency_s=0.05) as server:
        board = Board(tmp_path, script, server)
        try:
            yield board
        finally:
            await board.close()


def at_s(event):
    return datetime.fromisoformat(event["at"]).timestamp()


def tasks_of(events, kind):
    return [event["task_id"] for event in events if event["kind"] == kind]


SUBMIT, WORKER, JOIN, RUN = (
    ("submit", "Know it all"),
    ("worker",),
    ("run", "--join", "Know it all"),
    ("run", "Know it all"),
)


@pytest.mark.parametrize(
    "order",
    [
        (JOIN, RUN, WORKER),
        (JOIN, WORKER, SUBMIT, JOIN),
    ],
    ids=lambda order: "-".join(x[0] if len(x) < 3 else "join" for x in order),
)
async def test_in_any_start_order_each_task_is_done_once_and_nobody_leaves_early_or_hangs(
    board, order
):
    processes = {}
    for number, line in enumerate(order):
        processes[number] = await board.start(*line)
        await asyncio.sleep(0.2)

    await board.until(lambda: board.is_over(1))
    for number, line in enumerate(order):
        ended = await (
            board.stop(processes[number]) if line is WORKER else finish(processes[number])
        )
        assert "Traceback" not in ended.said
        assert ended.code == (143 if line is WORKER else 0), ended.said

    events = await board.events(1)
    assert (
        sorted(tasks_of(events, "task.recorded"))
        == sorted(tasks_of(events, "task.done"))
        == list(range(1, N_TASKS + 1))
    )
    assert len(board.script.executed) == N_TASKS
    written_id = next(event["id"] for event in events if event["kind"] == "report.written")
    assert [
        event["kind"]
        for event in events
        if event["kind"] == "worker.left" and event["id"] < written_id
    ] == []
    assert board.workers() == []


async def test_a_worker_of_another_name_joins_the_newest_objective_of_the_text_and_says_which(
    board, script
):
    script.n_tasks = 3
    script.gate.clear()
    objective_id = await board.submit("--name", "day")
    join = ("run", "--join", "Know it all")
    joiner = await board.start(*join, INSTANCE_NAME="night")
    await board.until(lambda: board.is_executing(1))
    await board.submit("--name", "noon")

    second = await board.start(*join, INSTANCE_NAME="night")
    script.gate.set()
    joined, joined_too = await finish(joiner), await finish(second)

    assert (joined.code, board.is_over(objective_id)) == (0, True), joined.said
    assert f"joins objective {objective_id}, named day" in joined.err
    assert joined_too.code == 0 and "joins objective 2, named noon" in joined_too.err
    assert (await finish(await board.start(*join, INSTANCE_NAME="day"))).code == 0


async def test_a_worker_restarted_under_its_name_goes_on_long_before_its_lease_ends(board, script):
    script.n_tasks = 1
    script.gate.clear()
    objective_id = await board.submit()
    env = {"SUPPORT_DEFAULTS": "worker_name=me", "BABYAGI_LEASE_S": "3600"}
    doomed = await board.start("worker", **env)
    await board.until(lambda: board.is_executing(1))

    doomed.kill()
    await doomed.wait()
    again = await board.start("worker", **env)
    await board.until(lambda: board.is_executing(2))
    script.gate.set()
    await board.until(lambda: board.is_over(objective_id))
    await board.stop(again)

    claims = [
        event for event in await board.events(objective_id) if event["kind"] == "task.claimed"
    ]
    assert len(claims) == 2  # the second while the lease of the first, an hour long, still ran


async def test_a_pause_from_a_third_process_stops_all_and_work_goes_on_after_it(board, script):
    objective_id = await board.submit()
    script.n_free = 4
    script.gate.clear()
    workers = [await board.start("worker", BABYAGI_CONCURRENCY="2") for _ in range(2)]
    await board.until(lambda: board.is_executing(6))

    assert (await babyagi("pause", "--objective", str(objective_id), env=board.env())).code == 0
    script.gate.set()
    n_asked = -1
    async with asyncio.timeout(120):
        while len(board.server.requests) != n_asked:  # what was in flight may end
            n_asked = len(board.server.requests)
            await asyncio.sleep(1.0)
    assert n_asked < 3 * N_TASKS

    resumed = await board.start("resume", "--objective", str(objective_id))
    assert (await finish(resumed)).code == 0
    for process in workers:
        await board.stop(process)
    assert sorted(tasks_of(await board.events(objective_id), "task.recorded")) == list(
        range(1, N_TASKS + 1)
    )
    assert len(script.executed) == N_TASKS


async def test_a_limit_of_calls_is_shared_by_three_workers_and_never_passed(board):
    objective_id = await board.submit("--max-calls", "12", "--max-tasks", "0")
    # a slow machine must not make a living worker lose a task, which is then asked for again
    unhurried = {"BABYAGI_LEASE_S": "30"}
    joiners = [
        await board.start("worker", "--objective", str(objective_id), **unhurried) for _ in range(3)
    ]

    assert [(await finish(process)).code for process in joiners] == [3] * 3
    status = await look("status", env=board.env())
    assert status["stop_reason"].startswith("limit:")
    assert 9 <= len(board.server.requests) <= 12  # two calls are kept back for a check


async def test_a_worker_that_lacks_the_folder_says_so_once_and_claims_nothing(
    board, script, tmp_path
):
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "a.md").write_text("Tea is hot.\n")
    script.n_tasks = 2
    script.gate.clear()
    objective_id = await board.submit("--files", str(folder))
    defaults = "worker_name=lacking"
    lacking = await board.start("worker", home="elsewhere", SUPPORT_DEFAULTS=defaults)

    await board.until(board.is_hindered)
    (worker,) = await look("show", "workers", env=board.env())
    (served,) = worker["objectives"]
    status = await look("status", env=board.env())
    able = await board.start("worker")
    script.gate.set()
    await board.until(lambda: board.is_over(objective_id))
    said = (await board.stop(lacking)).said
    await board.stop(able)

    assert "needs a folder to read" in served["hindrance"] and status["n_workers"] == 0
    assert said.count("needs a folder to read") == 1
    claims = [
        event["data"]["worker_id"]
        for event in await board.events(objective_id)
        if event["kind"] == "task.claimed"
    ]
    assert claims and not any(worker_id.startswith("lacking") for worker_id in claims)


async def test_one_process_serves_two_objectives_fairly(board, script):
    first = await board.submit("--task", "Begin here", text="The first one")
    second = await board.submit("--task", "Begin there", text="The second one")
    worker = await board.start("worker", "--concurrency", "1")

    await board.until(lambda: board.is_over(first))
    await board.until(lambda: board.is_over(second))
    await board.stop(worker)

    done_at = {
        number: [
            at_s(event) for event in await board.events(number) if event["kind"] == "task.done"
        ]
        for number in (first, second)
    }
    short, long = sorted(done_at.values(), key=len)
    assert len(short) == 1 and len(long) == N_TASKS
    assert short[0] < long[-1]
