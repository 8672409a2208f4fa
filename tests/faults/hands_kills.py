"""Runs whose tasks an agent of a file with an entity memory carries out: they search, open pages, run
Python, call an MCP server and ask another agent of the file, killed at random instants and gone on
with: is a call that must not be repeated made twice, is anything fetched or said again that was
journaled, does the memory hold each turn once, is the report another one?

`python -m tests.faults.hands_kills [--kills 30] [--seed 1]`: `babyagi run` processes against a model,
a search engine, pages, indexed documents and an MCP server on this machine. A person who is asked
whether a payment was made looks it up in the server's ledger.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from babyagi.files.home import MEMORIES
from babyagi.llm.prompt import Prompt, Speaker, ToolCall
from babyagi.memory.log import parse
from support.local_server import LocalServer
from support.local_server.dialects import Answer, ChatRequest
from support.processes import Ended, babyagi, environ, finish, rows, start
from support.prompts import results_in
from support.scripted import agree
from support.table import print_table, verdict
from tests.web_server import Asked, Reply, WebServer

N_TASKS = 4
OBJECTIVE = "Say what the pages, the ledger and the squares of 1 to 4 are"
NAME = "Find fact {}"
LATENCY_S = 0.05
LATEST_KILL_S = 2.5  # after the first request of a life
LEDGER = str(Path(__file__).parents[1] / "mcp_ledger_server.py")
WAITING = 5  # the exit code
MAX_LIVES = 60
AGENTS = """
version: ignore
components:
  - {name: Thinker, type: PromptNode}
  - {name: Documents, type: HaystackPipeline, params: {base_url: URL}}
agents:
  - name: doer
    params:
      prompt_node: Thinker
      memory: {type: EntityMemory, params: {update_every: 1}}
      tools: [{name: Look, pipeline_or_node: Documents, description: looks into the documents}]
  - name: expert
    params:
      prompt_node: Thinker
      tools: [{name: Archive, pipeline_or_node: Documents, description: looks into the archive}]
"""


# -- what the runs meet
# --------------------------------------------------------------------------------------------------


class Model:
    """Does the same in each task, whatever was said to it before: search, open, compute, look up,
    pay, ask the expert, answer. The expert looks into the archive; the memory notes each lamp."""

    def __init__(self) -> None:
        self.n_asked = 0

    def __call__(self, request: ChatRequest) -> Answer:
        self.n_asked += 1
        text = request.messages[-1].text
        if "memory agent" in request.messages[0].text:
            return _note(text)
        if request.tools and request.tools[0].name == "Archive":
            return _advise(request)
        match request.agent:
            case "execution":
                return self._execute(request)
            case "creation":
                names = [NAME.format(n) for n in range(2, N_TASKS + 1)]
                is_first = f"Task 1: {NAME.format(1)}" in request.messages[1].text
                tasks = [{"name": name, "after": []} for name in names] if is_first else []
                return Answer(text=json.dumps({"tasks": tasks, "objective_met": False}))
            case "check":
                return Answer(text=agree(Prompt(messages=request.messages)))
            case "report":
                found = sorted(text for *_, text in results_in(request.messages[1].text))
                return Answer(text="\n\n".join(found))
        return Answer(text=json.dumps({"order": re.findall(r"^(\d+):", text, re.MULTILINE)}))

    def _execute(self, request: ChatRequest) -> Answer:
        asked = next(one.text for one in request.messages if one.speaker is Speaker.USER)
        seen = "\n".join(one.text for one in request.messages if one.speaker is Speaker.TOOL)
        n = int(re.findall(r"Find fact (\d+)", asked.rpartition("<<task ")[2])[0])
        page = re.search(rf"http\S+/page/{n}\b", seen)
        if page is None:
            return _call("web_search", query=f"fact {n}")
        steps: Sequence[tuple[str, str, dict[str, Any]]] = (
            (f"Fact {n} is", "open_page", {"url": page[0]}),
            (f"square {n * n}", "run_python", {"code": f"print('square', {n} * {n})"}),
            (f"entry {n} is fine", "ledger__look", {"number": n}),
            (f"receipt {n}", "ledger__pay", {"number": n}),
            (f"Lamp {n} hangs", "expert", {"question": f"Where does lamp {n} hang?"}),
        )
        for sign, tool, arguments in steps:
            if sign not in seen:
                return _call(tool, **arguments)
        return Answer(
            text=f'The page says: "{say_fact(n)}" ({page[0]}). The square is {n * n}, the entry is '
            f"fine, and it is paid: receipt {n}. {say_place(n)}"
        )


def _advise(request: ChatRequest) -> Answer:
    """The expert's part: look once, answer with what was found."""
    asked = next(one.text for one in request.messages if one.speaker is Speaker.USER)
    n = int(re.findall(r"Where does lamp (\d+) hang", asked)[0])
    if any(one.speaker is Speaker.TOOL for one in request.messages):
        return Answer(text=say_place(n))
    return _call("Archive", query=f"place {n}")


def _note(text: str) -> Answer:
    """The memory's part: one fact of each turn that is shown, whatever is known already."""
    found = re.findall(r"<<answer (\d+) .*?Lamp (\d+) hangs", text, re.DOTALL)
    facts = [
        {"entity": f"Lamp {lamp}", "fact": say_place(int(lamp)), "turn": int(turn)}
        for turn, lamp in found
    ]
    return Answer(text=json.dumps({"facts": facts}))


def _call(tool: str, **arguments: object) -> Answer:
    call = ToolCall(id="c1", name=tool, arguments=json.dumps(arguments))
    return Answer(text="", tool_calls=(call,), finish_reason="tool_calls")


def say_fact(n: int) -> str:
    return f"Fact {n} is that lamp number {n} burns for {100 + n} hours."


def say_place(n: int) -> str:
    return f"Lamp {n} hangs in room {200 + n}."


@dataclass
class Place:
    """The servers of all runs."""

    model: LocalServer
    web: WebServer = field(init=False)

    def __post_init__(self) -> None:
        self.web = WebServer(self._answer)

    def _answer(self, asked: Asked) -> Reply | None:
        if asked.path == "/search":
            n = asked.params["q"].rpartition(" ")[2]
            url = f"{self.web.base_url}/page/{n}"
            found = [{"title": f"Page {n}", "url": url, "content": "A page about lamps."}]
            return Reply({"results": found}, content_type="application/json")
        if asked.path == "/query":
            place = say_place(int(_query(asked).rpartition(" ")[2]))
            documents = [{"content": place, "meta": {"name": "plan.txt"}}]
            return Reply({"documents": documents}, content_type="application/json")
        if asked.path.startswith("/page/"):
            text = say_fact(int(asked.path.rpartition("/")[2]))
            return Reply(f"<title>A page</title><h1>Lamps</h1><p>{text}</p>")
        return None

    def asked(self) -> list[str]:
        """Each search, page and question to the documents that was asked for, in order."""
        return [
            f"{one.path} {one.params.get('q', '') or _query(one)}".strip()
            for one in self.web.asked
            if one.path != "/robots.txt"
        ]


def _query(asked: Asked) -> str:
    return str(json.loads(asked.body)["query"]) if asked.body else ""


# -- one run
# --------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """One objective in a home of its own, and what went wrong with it."""

    place: Place
    folder: Path
    faults: list[str] = field(default_factory=list)
    n_kills: int = 0
    n_asked_person: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.ledger = self.folder / "ledger"
        self.ledger.touch()
        self.n_asked_before = len(self.place.asked())
        servers = self.folder / "servers.json"
        entry = {
            "command": sys.executable,
            "args": ["-S", LEDGER, str(self.ledger)],
            "effects": {"look": "read"},
            "public": True,  # nobody is there to say yes to what would leave
        }
        servers.write_text(json.dumps({"mcpServers": {"ledger": entry}}))
        agents = self.folder / "agents.yaml"
        agents.write_text(AGENTS.replace("URL", self.place.web.base_url))
        self.env = environ(
            self.folder / "home",
            self.place.model.base_url,
            OPENAI_API_KEY="sk-test",
            BABYAGI_EMBEDDING_MODEL="hash",
            BABYAGI_TOOLS="web,python",
            SUPPORT_DEFAULTS=f"mcp={servers} agent={agents}#doer tools_from={agents}#expert "
            f"agent_hosts=127.0.0.1:{self.place.web.port}",
            BABYAGI_APPROVE="none",
            BABYAGI_SEARCH=self.place.web.base_url,
            BABYAGI_WEB_ALLOW=f"127.0.0.1:{self.place.web.port}",
            BABYAGI_CONCURRENCY="2",
            BABYAGI_MAX_TOKENS="0",
        )

    def asked(self) -> list[str]:
        return self.place.asked()[self.n_asked_before :]

    def journaled(self) -> set[str]:
        """The searches, pages and questions whose calls stand in the journal."""
        found = set()
        steps = "SELECT request FROM step WHERE kind = 'tool' AND state = 'done'"
        for row in rows(self.folder / "home", steps):
            call = json.loads(row["request"])
            if call["tool"] == "web_search":
                found.add(f"/search {call['arguments']['query']}")
            elif call["tool"] == "open_page":
                found.add("/page/" + call["arguments"]["url"].rpartition("/")[2])
            elif call["tool"] == "Archive":
                found.add(f"/query {call['arguments']['query']}")
        return found

    async def live(self, kill_after_s: float | None) -> Ended | None:
        """Go on with the objective, to its end or until it is killed."""
        journaled, n_before, n_model = self.journaled(), len(self.asked()), self.model_calls()
        process = await start("run", OBJECTIVE, "--task", NAME.format(1), env=self.env)
        ending = asyncio.ensure_future(finish(process))
        if kill_after_s is not None:
            while not ending.done() and self.model_calls() == n_model:
                await asyncio.sleep(0.005)
            await asyncio.wait([ending], timeout=kill_after_s)
            if not ending.done():
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                self.n_kills += 1
        ended = await ending
        again = journaled & set(self.asked()[n_before:])
        self.faults += [f"{one} was journaled, and asked for again" for one in sorted(again)]
        if "Traceback" in ended.said:
            self.faults.append(ended.said[-1000:])
        return None if ended.code < 0 else ended

    def model_calls(self) -> int:
        return len(self.place.model.requests)

    async def answer(self) -> None:
        """Say of each call that may have been made whether it was, as the ledger has it."""
        asked = json.loads((await babyagi("inbox", "--json", env=self.env)).out)
        for one in asked:
            self.n_asked_person += 1
            n = one["arguments"]["number"]
            is_paid = f"pay {n}" in self.ledger.read_text().splitlines()
            said = ("inbox", "answer", str(one["number"]), f"receipt {n}")
            line = said if is_paid else ("inbox", "reject", str(one["number"]))
            await babyagi(*line, env=self.env)

    async def play(self, chance: random.Random | None, n_kills: int) -> str:
        """Live to the end, killed up to so many times; returns the report."""
        for _ in range(MAX_LIVES):
            is_killed = chance is not None and self.n_kills < n_kills
            after_s = chance.uniform(0.0, LATEST_KILL_S) if chance and is_killed else None
            ended = await self.live(after_s)
            if ended is None:
                continue
            if ended.code != WAITING:
                break
            await self.answer()
        if ended is None or ended.code != 0:
            self.faults.append(f"it ended with {ended}")
        self.count()
        return comparable((await babyagi("report", env=self.env)).out, self.place)

    def count(self) -> None:
        paid = Counter(
            line for line in self.ledger.read_text().splitlines() if line.startswith("pay")
        )
        expected = {f"pay {n}": 1 for n in range(1, N_TASKS + 1)}
        if paid != expected:
            self.faults.append(f"paid was {dict(paid)}")
        self.count_memory()

    def count_memory(self) -> None:
        """Each task is one turn of the agent's memory, and each lamp one fact of it."""
        files = [*(self.folder / "home" / MEMORIES).glob("*.json")]
        known = parse(files[0].read_bytes()) if len(files) == 1 else None
        if known is None:
            self.faults.append(f"there are {len(files)} memories")
            return
        lamps = {f"Lamp {n}": 1 for n in range(1, N_TASKS + 1)}
        asked_n = Counter(turn.question.rpartition(" ")[2] for turn in known.turns)
        if asked_n != {str(n): 1 for n in range(1, N_TASKS + 1)}:
            self.faults.append(f"the turns were {dict(asked_n)}")
        if (noted := Counter(fact.entity for fact in known.facts)) != lamps:
            self.faults.append(f"noted was {dict(noted)}")


def comparable(report: str, place: Place) -> str:
    """The report without what no two runs have in common: times, what was spent, how often, and
    which tasks lean on a source, as a later task is shown what the earlier ones found."""
    text = re.sub(
        r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?( ?UTC|Z|[+-]\d\d:\d\d)?", "TIME", report
    )
    text = re.sub(r"\b[\d,.]+ (calls|tokens|s|min|seconds)\b", r"N \1", text)
    text = re.sub(r"N min N s", "N s", text)
    text = re.sub(r"\btasks? \d+(, \d+)*\)", "TASKS)", text)
    lines = [line for line in text.splitlines() if not _SPENT.search(line)]
    return "\n".join(sorted(lines))


_SPENT = re.compile(r"tokens|task(s)? (were )?done|took|asked", re.IGNORECASE)


async def campaign(
    n_kills: int, seed: int, folder: Path, *, shows: bool = False
) -> tuple[list[Run], int]:
    """All runs, and how many of their reports are other than that of the unkilled one."""
    chance = random.Random(seed)
    async with LocalServer(Model(), latency_s=LATENCY_S) as model:
        place = Place(model)
        async with place.web:
            calm = Run(place, folder / "calm")
            expected = await calm.play(None, 0)
            if shows:
                print(expected)
            runs, n_other = [calm], 0
            while not calm.faults and (left := n_kills - sum(run.n_kills for run in runs)) > 0:
                run = Run(place, folder / f"{len(runs)}")
                found = await run.play(chance, left)
                if found != expected:
                    n_other += 1
                    show_difference(expected, found)
                runs.append(run)
                if run.faults or not run.n_kills:  # it would go on like that
                    break
    return runs, n_other


def show_difference(expected: str, found: str) -> None:
    for mark, ours, other in (("-", expected, found), ("+", found, expected)):
        for line in ours.splitlines():
            if line not in other:
                print(f"{mark} {line[:300]}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.hands_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="what is compared")
    options = parser.parse_args(argv)
    began_s = time.monotonic()
    with TemporaryDirectory(prefix="babyagi-hands-") as folder:
        runs, n_other = asyncio.run(
            campaign(options.kills, options.seed, Path(folder), shows=options.show)
        )
    faults = [fault for run in runs for fault in run.faults]
    for fault in faults[:20]:
        print(f"  {fault}")
    head = ("runs", "kills", "a person was asked", "other reports", "faults", "s")
    row = (
        len(runs) - 1,
        sum(run.n_kills for run in runs),
        sum(run.n_asked_person for run in runs),
        n_other,
        len(faults),
        f"{time.monotonic() - began_s:.0f}",
    )
    print_table("runs with all hands, and one unkilled", head, [row])
    is_good = not faults and not n_other
    print(f"nothing is done or fetched twice, and the report is the same: {verdict(is_good)}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
