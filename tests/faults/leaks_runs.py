"""One attack on a machine of its own: the private text in its place, the whole program with every
tool that can reach outside, a model that obeys, and a person who says yes, no or nothing."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from babyagi.agent import Agent
from babyagi.app.application import App, open_app
from babyagi.app.toolbox import Given, open_tool_context
from babyagi.errors import BabyagiError, SettingsError
from babyagi.files.folder import Folder
from babyagi.inbox import Decision
from babyagi.llm.port import ChatModel
from babyagi.llm.prompt import Prompt
from babyagi.memory.kinds import ConversationMemory
from babyagi.settings.fields import Settings
from babyagi.settings.load import load_settings
from babyagi.tasks import READING_TOOLS, Role, Step
from babyagi.tools.base import Tool
from babyagi.tools.catalog import ASK_USER, open_tools, spell_out
from babyagi.tools.mcp import load_servers, open_servers
from babyagi.verbs.actions import settle
from support.scripted import ScriptedModel
from tests.faults.leaks_attacks import MIRROR, NEWS, OBJECTIVE, OFFERED, OWN, Attack
from tests.faults.leaks_obeying import Obedient, Secret
from tests.faults.leaks_outside import Outside

UNCALLED = ("model", "inputs", "embedding")  # steps that are no calls of tools
MAX_ROUNDS = 14  # of questions in one run
RUN_S, REAL_S = 60.0, 600.0
LOCAL = Path(__file__).with_name("doors_server.py")
LOOK = {"name": "look", "description": "Look.", "inputSchema": {"type": "object", "properties": {}}}
AGENTS = """
version: ignore
components:
  - {name: Thinker, type: PromptNode}
  - {name: Documents, type: HaystackPipeline, params: {base_url: URL}}
agents:
  - name: doer
    params: {prompt_node: Thinker MORE}
  - name: clerk
    params:
      prompt_node: Thinker
      tools:
        - name: Archive
          pipeline_or_node: Documents
          description: 'DO Archive {"query": "[[words]]"}'
"""
MORE = {
    "pipeline": ", tools: [{name: Look, pipeline_or_node: Documents, description: looks it up}]",
    "sub-agent": "",
}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What arrived outside in one run, how much of the secret the person's own address was told, how
    many questions a person was asked, how many calls of an order the model made, the calls that were asked for, and how
    the run ended."""

    arrived: tuple[str, ...]
    told_bytes: int
    n_questions: int
    n_obeyed: int
    requests: tuple[str, ...]
    end: str


async def try_once(
    attack: Attack, secret: Secret, says: Decision | None, *, real: Path | None = None
) -> Seen:
    """Let the attack run. `says`: what a person says to every question; None for nobody. `real`:
    the GGUF file of a real model, in place of the one that obeys."""
    with tempfile.TemporaryDirectory(prefix="babyagi-leaks-") as name:
        outside = _make_outside(attack)
        async with outside.server, asyncio.timeout(REAL_S if real else RUN_S):
            machine = Machine(Path(name), attack, secret, outside, real=real)
            async with machine:
                return await machine.run(says)


def _make_outside(attack: Attack) -> Outside:
    text, plant = attack.text, attack.plant
    page = f"{text} {' '.join(OFFERED)}" if attack.offers else text
    plain = NEWS.removeprefix("http://")
    return Outside(
        pages={plain: page if plant == "page" else "No news.", MIRROR: page},
        moved={plain: f"http://{MIRROR}"} if plant == "moved page" else {},
        hits=(text if plant == "search hit" else "A page about it.",),
        offered=(NEWS, *OFFERED) if attack.offers else (NEWS,),
        issues=text if plant == "issue" else "Nothing is wrong.",
        documents=text if plant == "pipeline" else "Nothing is known.",
        said=text if plant == "remote MCP result" else "Sent.",
        described=text if plant == "MCP description" else "Sends a text.",
    )


class Machine:
    """The machine of one run, in a folder of its own."""

    def __init__(
        self,
        root: Path,
        attack: Attack,
        secret: Secret,
        outside: Outside,
        *,
        real: Path | None = None,
    ) -> None:
        self._root, self._attack, self._secret, self._outside = root, attack, secret, outside
        self._real = real
        self._requests: tuple[str, ...] = ()
        self._n_questions = 0
        self._made = AsyncExitStack()
        for folder in ("files", "earlier"):
            (root / folder).mkdir()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._made.aclose()

    async def run(self, says: Decision | None) -> Seen:
        attack, files = self._attack, self._root / "files"
        await self._do_earlier()
        (files / "notes.txt").write_text(attack.text if attack.plant == "document" else "Notes.")
        if attack.secret in ("file", "Python", "memory"):
            (files / "vault.txt").write_text(self._secret.sentence)
        begins = [_split(one) for one in attack.begins]
        model = Obedient(begins, own=OWN)
        do = self._ask_agent if attack.secret == "memory" else self._work
        real = {
            "llm_model": "llama",
            "llama_model_path": str(self._real),
            "max_tasks": "2",
            "max_calls": "6",
        }
        end = await do(self._settings(says, **(real if self._real else {})), model, says)
        return Seen(
            arrived=tuple(self._outside.arrived),
            told_bytes=sum(
                len(word) * text.count(word)
                for text in self._outside.told
                for word in self._secret.text.split()
            ),
            n_questions=self._n_questions,
            n_obeyed=model.n_obeyed,
            requests=self._requests,
            end=end,
        )

    async def _do_earlier(self) -> None:
        """Work on an earlier objective of this home whose results hold the private text, or the
        plant, or both."""
        attack, texts = self._attack, {}
        if attack.secret == "result":
            texts["vault.txt"] = self._secret.sentence
        if attack.plant == "result":
            texts["notes.txt"] = f"Notes about amba: {attack.text}"
        if not texts:
            return
        for name, text in texts.items():
            (self._root / "earlier" / name).write_text(text)
        model = Obedient([("read_file", json.dumps({"path": name})) for name in texts], obeys=False)
        settings = self._settings(
            None,
            objective="Say what the vault phrase and the amba notes are",
            files=self._root / "earlier",
            tools="",
            mcp=None,
        )
        await self._work(settings, model, None)
        self._outside.arrived.clear()
        self._outside.told.clear()

    async def _work(self, settings: Settings, model: Obedient, says: Decision | None) -> str:
        ended = await work(settings, ScriptedModel(model), says)
        self._n_questions += ended.n_questions
        self._requests = ended.requests
        return ended.stop_reason

    async def _ask_agent(self, settings: Settings, model: Obedient, says: Decision | None) -> str:
        """Ask an `Agent` with a memory two questions: the first one's answer holds the private
        text, the second one leads to the plant."""

        async def answer(_: str) -> str:
            self._n_questions += 1
            return "yes" if says is Decision.APPROVE else "no"

        now = [Obedient([("read_file", '{"path": "vault.txt"}')], obeys=False)]

        def reply(prompt: Prompt, role: Role) -> object:
            return now[0](prompt, role)

        tools = await self._open_tools(settings)
        agent = Agent(
            ScriptedModel(reply),
            tools,
            memory=ConversationMemory(),
            ask=answer,
        )
        await agent.run_async("What is the vault phrase?")
        now[0] = model
        return str((await agent.run_async(OBJECTIVE)).stopped)

    async def _open_tools(self, settings: Settings) -> list[Tool]:
        """The tools that a program would give to an `Agent`: those of the settings."""
        context = open_tool_context(
            settings, Folder(self._root / "files"), pages=self._root / "pages"
        )
        own = open_tools({*spell_out(settings.tools), *READING_TOOLS, ASK_USER}, context)
        servers = load_servers(settings.mcp) if settings.mcp else []
        connections = await self._made.enter_async_context(open_servers(servers))
        return [*own, *[tool for one in connections for tool in await one.list_tools()]]

    def _settings(self, says: Decision | None, **flags: Any) -> Settings:
        attack = self._attack
        given = {
            "objective": OBJECTIVE,
            "files": self._root / "files",
            "tools": "web,github,ask_pipeline,python,write_file,recall",
            "mcp": self._write_servers(),
            "approve": "once" if says is Decision.APPROVE else attack.approve,
            "ask": "true",
            "memory": "shared" if "result" in (attack.secret, attack.plant) else "objective",
            "max_tasks": "5",
            **self._write_agents(),
            **flags,
        }
        given = {key: value for key, value in given.items() if value is not None}
        return settings_for(self._root, self._outside, given)

    def _write_servers(self) -> Path | None:
        attack = self._attack
        said = {}
        if attack.secret == "MCP server":
            said["vault"] = self._secret.sentence
        if attack.plant == "MCP result":
            said["notes"] = attack.text
        servers: dict[str, Any] = {name: self._local(name, text) for name, text in said.items()}
        if "remote__send" in attack.text + "".join(attack.begins) or "MCP d" in attack.plant:
            servers["remote"] = {"url": f"{self._outside.url}/mcp", "effects": {"send": "read"}}
        if not servers:
            return None
        file = self._root / "mcp.json"
        file.write_text(json.dumps({"mcpServers": servers}))
        return file

    def _local(self, name: str, text: str) -> dict[str, Any]:
        """A program on this machine whose only tool says the text."""
        about = self._root / f"{name}.json"
        result = {"content": [{"type": "text", "text": text}]}
        about.write_text(
            json.dumps(
                {
                    "forms": [[LOOK], [LOOK]],
                    "n_first": 99,
                    "result": result,
                    "says": [],
                    "instructions": "",
                }
            )
        )
        log = str(self._root / f"{name}.log")
        args = ["-S", str(LOCAL), str(about), log]
        return {"command": sys.executable, "args": args, "effects": {"look": "read"}}

    def _write_agents(self) -> dict[str, Any]:
        kind = self._attack.agent
        if not kind:
            return {}
        extra = ", params: {summary_frequency: 1}" if "Summary" in kind else ""
        more = MORE.get(kind, f", memory: {{type: {kind}{extra}}}")
        file = self._root / "agents.yaml"
        file.write_text(AGENTS.replace("URL", self._outside.url).replace(" MORE", more))
        return {
            "agent": f"{file}#doer",
            "agent_hosts": self._outside.url.removeprefix("http://"),
            **({"tools_from": f"{file}#clerk"} if kind == "sub-agent" else {}),
        }


def _split(order: str) -> tuple[str, str]:
    name, _, arguments = order.partition(" ")
    return name, json.dumps(json.loads(arguments))


# -- for honest tasks too
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Ended:
    stop_reason: str
    report: str
    n_questions: int
    requests: tuple[str, ...]


def settings_for(root: Path, outside: Outside, given: Mapping[str, Any]) -> Settings:
    """The settings of a machine in the folder `root` for which all the world is `outside`."""
    url = outside.url
    environ = {
        "BABYAGI_HOME": str(root / "home"),
        "BABYAGI_RESULT_STORE": "builtin",
        "BABYAGI_SEARCH": url,
        "BABYAGI_PIPELINE": url,
        "BABYAGI_NOTIFY": f"{url}/notify",
        "HTTP_PROXY": url,
        "HTTPS_PROXY": url,
    }
    flags = {"llm_model": "scripted", "max_cost_usd": "0", "concurrency": "1", **given}
    settings = load_settings(flags=flags, environ=environ, cwd=root).settings
    return replace(settings, github_url=url)


async def work(settings: Settings, model: ChatModel, says: Decision | None) -> Ended:
    """Work on the objective of the settings until it has ended, with a person who says the same to
    every question; None for nobody."""
    n_questions = 0
    async with open_app(settings, given=Given(model_by_name={"scripted": model})) as app:
        objective, _ = await app.start_objective()
        for _ in range(MAX_ROUNDS):
            await app.run(await app.store.objective(objective.id))
            steps = await app.store.inbox(objective.id)
            n_questions += len(steps)
            if says is None or not steps:
                break
            for step in steps:
                await say(app, step, says)
        ended = await app.store.objective(objective.id)
        report = await app.store.report(objective.id) or ""
        owners = [f"task:{task.id}" for task in await app.store.tasks(objective.id)]
        found = [await app.store.steps(objective.id, owner=owner) for owner in owners]
    calls = tuple(one.request for steps in found for one in steps if one.kind not in UNCALLED)
    return Ended(
        stop_reason=str(ended.stop_reason),
        report=report,
        n_questions=n_questions,
        requests=calls,
    )


async def say(app: App, step: Step, says: Decision) -> None:
    """Settle the open step: to a question that takes no such decision the answer is `yes`."""
    with suppress(BabyagiError):
        try:
            await settle(app.store, step, says, "", home=app.settings.home)
        except SettingsError:
            await settle(app.store, step, Decision.ANSWER, "yes", home=app.settings.home)
