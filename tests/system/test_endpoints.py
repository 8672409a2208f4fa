"""The same objective through real sockets in both dialects, and with a person at a terminal: what
is asked, how often, and by whom."""

import asyncio
import json
import os
import pty
import re
import sys
from collections import Counter

import pytest

from support.local_server import Answer, LocalServer, agreeing, rehearsal_answer
from support.local_server.dialects import CHAT, RESPONSES
from support.processes import COMMAND, SUBJECTS, babyagi, environ, look, rows, write_documents
from support.prompts import results_in

pytestmark = pytest.mark.system

PATHS = {"chat": CHAT, "responses": RESPONSES}


def propose(*batches):
    """A model that proposes the batches, one for each finished task, and answers everything else
    with a sentence on what it was told; every check agrees."""
    left = list(batches)

    def answer(request):
        match request.agent:
            case "creation":
                n_finished = len(results_in(request.messages[-1].text))
                names = [name for _ in range(n_finished) for name in (left.pop(0) if left else ())]
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
            case agent:
                told = re.findall(r"^\d+: .*$", request.messages[-1].text, re.MULTILINE)[-1:]
                return Answer(text=" ".join([f"The {agent} agent has nothing to add to", *told]))

    return agreeing(answer)


def calls_by_owner(home):
    """Owner → how many calls of each agent were made for it."""
    steps = rows(home, "SELECT owner, key FROM step WHERE kind = 'model'")
    calls: dict[str, Counter[str]] = {}
    for step in steps:
        parts = step["key"].split("/")
        agent = parts[1] if parts[0].isdecimal() else parts[0]
        calls.setdefault(step["owner"], Counter())[agent] += 1
    return calls


@pytest.mark.parametrize("dialect", PATHS)
async def test_an_objective_runs_to_its_report_and_every_call_is_counted(dialect, tmp_path):
    home, documents = tmp_path / "home", write_documents(tmp_path / "docs")
    prices = {"BABYAGI_PRICE": "1/2"}
    async with LocalServer(rehearsal_answer) as server:
        env = environ(home, server.base_url + PATHS[dialect].removeprefix("/v1"), **prices)

        ended = await babyagi(
            "run",
            "What do the documents say about large stores?",
            "-t",
            "Look around",
            "--files",
            str(documents),
            env=env,
        )

    status = await look("status", env=env)
    results = await look("show", "results", env=env)
    usage = status["usage"]
    assert ended.code == 0, ended.said
    assert status["stop_reason"] == "finished"
    assert len(results) == status["tasks"]["done"] == 10
    assert {record.path for record in server.requests} == {PATHS[dialect]}
    assert usage["calls"] == len(server.requests) == sum(server.calls_by_agent.values())
    assert usage["prompt_tokens"] + usage["completion_tokens"] == sum(
        server.tokens_by_agent.values()
    )
    assert usage["cost_usd"] == pytest.approx(
        usage["prompt_tokens"] / 1e6 + usage["completion_tokens"] * 2 / 1e6,
        abs=len(server.requests) * 1e-6,
    )
    assert (status["held"]["calls"], status["held"]["tokens"]) == (0, 0)
    report = (await look("report", env=env))["markdown"]
    cited = re.findall(r'^- "(.+)" \((\w+)\.md:(\d+)\)(?: under .+)?$', report, re.MULTILINE)
    assert len(cited) >= 5
    for text, subject, line in cited:
        lines = (documents / f"{subject}.md").read_text().splitlines()[int(line) - 1 :]
        assert " ".join(lines).startswith(text)
    assert {subject for _, subject, _ in cited} <= set(SUBJECTS)


async def test_a_task_costs_one_execution_and_one_planning_and_orders_and_checks_are_rare(tmp_path):
    names = [f"Look at side {letter}" for letter in "ABCDEF"]
    home = tmp_path / "home"
    async with LocalServer(propose(names), latency_s=0.02) as server:
        env = environ(home, server.base_url, BABYAGI_CONCURRENCY="1")

        ended = await babyagi("run", "Look at all sides", env=env)

    assert ended.code == 0, ended.said
    assert server.calls_by_agent == {
        "execution": 7,
        "creation": 7,
        "prioritization": 1,
        "check": 2,
    }
    calls = calls_by_owner(home)
    tasks = {f"task:{task_id}": {"execute": 1} for task_id in range(1, 8)}
    plans = {f"plan:{number}": {"create": 1} for number in range(1, 8)}
    duties = {"order:0": {"order": 1}, "check:1": {"check": 2}}
    assert {owner: dict(counts) for owner, counts in calls.items()} == tasks | plans | duties


class Terminal:
    """A pseudo-terminal with a program on it."""

    def __init__(self):
        self.here, self.there = pty.openpty()
        self.shown = ""
        self._at = 0

    async def start(self, *line, env, cwd):
        there = self.there
        self.process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *line,
            env=env,
            cwd=cwd,
            stdin=there,
            stdout=there,
            stderr=there,
            start_new_session=True,
        )
        os.close(there)
        asyncio.get_running_loop().add_reader(self.here, self._read)

    def _read(self):
        try:
            chunk = os.read(self.here, 65_536)
        except OSError:  # the program is gone
            chunk = b""
        if not chunk:
            asyncio.get_running_loop().remove_reader(self.here)
        self.shown += chunk.decode("utf-8", "replace")

    async def wait_for(self, text, *, timeout_s=300.0):
        """Return what was shown since the last wait, up to the text."""
        async with asyncio.timeout(timeout_s):
            while (found := self.shown.find(text, self._at)) < 0:
                assert self.process.returncode is None or text in self.shown[self._at :], self.shown
                await asyncio.sleep(0.01)
        before, self._at = self.shown[self._at : found], found + len(text)
        return before

    def type(self, *lines):
        os.write(self.here, "".join(line + "\n" for line in lines).encode())

    async def close(self):
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        asyncio.get_running_loop().remove_reader(self.here)
        os.close(self.here)


@pytest.mark.skipif(sys.platform != "linux", reason="pseudo-terminals differ")
async def test_a_person_at_a_terminal_takes_the_models_place(tmp_path):
    env = environ(tmp_path / "home", "", LLM_MODEL="human", TERM="xterm", NO_COLOR="1")
    terminal = Terminal()
    await terminal.start("run", "Ask somebody", "-t", "Say hello", env=env, cwd=tmp_path)
    try:
        asked = []
        for answer in (
            "Hello from a person.",
            '{"tasks": [], "objective_met": false}',
            "yes",
            "The person said hello.",
        ):
            asked.append(await terminal.wait_for("your answer"))
            terminal.type(answer, ".")
        async with asyncio.timeout(120):
            code = await terminal.process.wait()
    finally:
        await terminal.close()

    assert code == 0, terminal.shown
    assert "Traceback" not in terminal.shown
    assert re.findall(r"Role: (\w+) agent", "".join(asked)) == [
        "execution",
        "creation",
        "check",
        "report",
    ]
    assert "Say hello" in asked[0]
    assert [row["result"] for row in await look("show", "results", env=env)] == [
        "Hello from a person."
    ]
    assert "The person said hello." in (await look("report", env=env))["markdown"]
