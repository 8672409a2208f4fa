"""An agent of a file in the loop of real processes: frozen with its objective, asked of whoever
works on it, killed and gone on with."""

import asyncio
import json
import signal

import pytest

from babyagi.llm.prompt import Speaker, ToolCall
from babyagi.memory.log import parse
from support.local_server import Answer, LocalServer, agree_answer
from support.processes import babyagi, environ, finish, start

pytestmark = pytest.mark.system

FILE = """
version: ignore
components:
  - {name: Node, type: PromptNode}
  - {name: Ask, type: PromptNode}
agents:
  - name: shopper
    params:
      prompt_node: Node
      memory: {type: ConversationSummaryMemory, params: {summary_frequency: 1}}
      tools: [{name: Prices, pipeline_or_node: Ask, description: knows what things cost}]
"""


class Model:
    """Carries tasks out with one call each; `hold` names the kind of request that is not answered
    before `gate` is set. Nor is a check where the summary is held, so that the objective cannot
    end beside it."""

    def __init__(self, hold=""):
        self.asked: list[str] = []
        self.hold = hold
        self.gate = asyncio.Event()

    async def __call__(self, request):
        kind, answer = self._answer(request)
        self.asked.append(kind)
        if kind == self.hold or (kind, self.hold) == ("check", "summary"):
            await self.gate.wait()
        return answer

    def _answer(self, request):
        system = request.messages[0].text
        if "You keep" in system:
            return "summary", Answer(text="They asked for prices.")
        if request.agent == "unknown":
            return "node", Answer(text="Tea costs 5 euros.")
        if request.agent == "check":
            return "check", agree_answer(request)
        if request.agent != "execution":
            said = '{"tasks": []}' if request.agent == "creation" else "Tea costs 5 euros."
            return request.agent, Answer(text=said)
        if any(message.speaker is Speaker.TOOL for message in request.messages):
            return "answer", Answer(text="Tea costs 5 euros, as the list of prices says.")
        call = ToolCall(id="c", name="Prices", arguments='{"query": "tea"}')
        return "call", Answer(tool_calls=(call,))


@pytest.fixture
def env(tmp_path):
    (tmp_path / "agents.yaml").write_text(FILE, "utf-8")

    def build(server, **more):
        return environ(
            tmp_path / "home", server.base_url, OPENAI_API_KEY="K", LLM_MODEL="some-model", **more
        )

    return build


async def until(look, timeout_s=300):
    async with asyncio.timeout(timeout_s):
        while not (found := await look()):
            await asyncio.sleep(0.1)
    return found


async def test_a_worker_that_lacks_the_file_says_so_and_one_that_has_it_goes_on(env):
    async with LocalServer(Model()) as server:
        line = ("submit", "What does tea cost?", "--agent", "agents.yaml#shopper")
        submitted = await babyagi(*line, env=env(server))
        assert submitted.code == 0, submitted.said
        lacking = await start("worker", env=env(server))

        async def why():
            said = await babyagi("show", "1", env=env(server))
            return said.out if "does not have it" in " ".join(said.out.split()) else ""

        said = await until(why)
        able = await start("worker", "--agent", "agents.yaml", env=env(server))

        async def is_over():
            status = await babyagi("status", "--json", env=env(server))
            return json.loads(status.out)["stop_reason"]

        await until(is_over)
        for process in (lacking, able):
            process.send_signal(signal.SIGTERM)
            await finish(process)
        results = await babyagi("show", "results", env=env(server))

    assert "agent shopper, and this worker does not have it" in " ".join(said.split())
    assert "Tea costs 5 euros, as the list of prices says." in results.out


@pytest.mark.parametrize("hold", ["node", "summary", "answer"])
async def test_a_run_that_is_killed_anywhere_asks_for_nothing_that_was_answered_again(
    tmp_path, env, hold
):
    model = Model(hold)
    run = ("run", "What does tea cost?", "--agent", "agents.yaml#shopper")
    async with LocalServer(model) as server:
        process = await start(*run, env=env(server))

        async def is_held():
            return hold in model.asked

        await until(is_held)
        process.kill()
        await process.communicate()
        model.gate.set()
        ended = await babyagi(*run, env=env(server))

    assert "Tea costs 5 euros" in ended.out, ended.said
    # only what was never answered is asked for again
    assert {kind: model.asked.count(kind) for kind in ("call", "node", "answer", "summary")} == {
        kind: 2 if kind == hold else 1 for kind in ("call", "node", "answer", "summary")
    }
    (path,) = (tmp_path / "home" / "memories").glob("objective-*.json")
    known = parse(path.read_bytes())
    assert [turn.n for turn in known.turns] == [1] and known.summary.upto == 1
