"""Conversations that real processes keep: killed at any instant, and asked by several at once."""

import asyncio
import json
import random
import stat

import pytest

from babyagi.memory.log import parse, path_of
from support.local_server import Answer, LocalServer
from support.processes import babyagi, environ, finish, start

pytestmark = pytest.mark.system

FILE = """
version: ignore
components:
  - {name: Node, type: PromptNode, params: {model_name_or_path: some-model}}
  - {name: Run, type: PythonRuntime}
agents:
  - name: one
    params:
      prompt_node: Node
      memory: {type: EntityMemory, params: {update_every: 1}}
      tools: [{name: Try, pipeline_or_node: Run, description: computes}]
"""
N_FACTS = 14


class Model:
    """Answers questions, and notes facts when `may_note` is set."""

    def __init__(self):
        self.asked: list[str] = []
        self.shown: list[str] = []
        self.may_note = asyncio.Event()
        self.may_note.set()

    async def __call__(self, request):
        system, shown = request.messages[0].text, request.messages[-1].text
        if "You note" in system:
            self.asked.append("note")
            await self.may_note.wait()
            n = int(shown.rsplit("<<question ", 1)[1].split(" ")[0])
            facts = [
                {"entity": "Rex", "fact": f"Rex knows trick {n}-{m}.", "turn": n}
                for m in range(N_FACTS)
            ]
            return Answer(text=json.dumps({"facts": facts if n == 1 else []}))
        self.asked.append("answer")
        self.shown.append(shown)
        return Answer(text="Yes.")


@pytest.fixture
def env(tmp_path):
    (tmp_path / "agents.yaml").write_text(FILE, "utf-8")

    def build(server):
        return environ(tmp_path / "home", server.base_url, OPENAI_API_KEY="K")

    return build


def line(question):
    return ("ask", "agents.yaml", question, "--memory", "tea")


async def wait_for(model, what, n=1):
    async with asyncio.timeout(300):
        while model.asked.count(what) < n:
            await asyncio.sleep(0.02)


async def test_a_kill_during_a_note_keeps_the_turn_and_the_next_question_makes_up_for_it(
    tmp_path, env
):
    model = Model()
    model.may_note.clear()
    async with LocalServer(model) as server:
        process = await start(*line("Is Rex clever?"), env=env(server))
        await wait_for(model, "note")
        process.kill()
        await process.communicate()
        model.may_note.set()

        ended = await babyagi(*line("Is he?"), env=env(server))

    assert ended.code == 0, ended.said
    path = path_of(tmp_path / "home", "tea")
    known = parse(path.read_bytes())
    assert "conversation tea: 1 turn" in ended.err and ended.out == "Yes.\n"
    assert [turn.question for turn in known.turns] == ["Is Rex clever?", "Is he?"]
    assert known.facts_upto == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_several_processes_that_ask_at_once_lose_no_turn_and_note_each_once(tmp_path, env):
    model = Model()
    async with LocalServer(model) as server:
        processes = [await start(*line(f"Question {n}?"), env=env(server)) for n in range(4)]
        ended = await asyncio.gather(*map(finish, processes))
        assert [one.code for one in ended] == [0] * 4, [one.said for one in ended]
        last = await babyagi(*line("And now?"), env=env(server))

    known = parse(path_of(tmp_path / "home", "tea").read_bytes())
    assert last.code == 0 and known.facts_upto == 5
    assert [turn.n for turn in known.turns] == [1, 2, 3, 4, 5]
    assert {turn.question for turn in known.turns[:4]} == {f"Question {n}?" for n in range(4)}
    assert model.asked.count("answer") == 5 and model.asked.count("note") <= 5


async def test_a_conversation_can_be_looked_at_and_forgotten(tmp_path, env):
    model = Model()
    async with LocalServer(model) as server:
        await babyagi(*line("Is Rex clever?"), env=env(server))
        shown = await babyagi("show", "memory", "tea", env=env(server))
        as_json = await babyagi("show", "memory", "tea", "--json", env=env(server))
        listed = await babyagi("show", "memory", "--json", env=env(server))
        forgotten = await babyagi("store", "delete", "--memory", "tea", env=env(server))
        gone = await babyagi("show", "memory", "tea", env=env(server))

    assert "Rex (turn 1): Rex knows trick 1-0." in shown.out
    assert "from model:some-model, person" in shown.out and "Is Rex clever?" in shown.out
    assert "The notes took 1 call, " in shown.out
    found = json.loads(as_json.out)
    assert (found["used"]["calls"], found["facts"][0]["turn"], found["fault"]) == (1, 1, "")
    assert found["said"][0]["asked_from"] == ["person"]
    assert [(one["name"], one["turns"]) for one in json.loads(listed.out)] == [("tea", 1)]
    assert forgotten.out == "The conversation tea is deleted, with 1 turn.\n"
    assert gone.code == 8 and gone.err.startswith("babyagi: there is no conversation tea")
    assert [path.name for path in (tmp_path / "home" / "memories").iterdir()] == ["lock"]


async def test_a_conversation_that_is_killed_at_random_instants_goes_on_with_every_turn_it_told(
    tmp_path, env
):
    model, chance, told, n_kills = Model(), random.Random(16), [], 0
    async with LocalServer(model) as server:
        for n in range(10):
            process = await start(*line(f"Question {n}?"), env=env(server))
            communicating = asyncio.ensure_future(process.communicate())
            done, _ = await asyncio.wait([communicating], timeout=chance.uniform(0.05, 0.5))
            if not done:
                process.kill()
                n_kills += 1
            out, _ = await communicating
            told += [f"Question {n}?"] if out else []
        last = await babyagi(*line("And now?"), env=env(server))

    known = parse(path_of(tmp_path / "home", "tea").read_bytes())
    assert last.code == 0, last.said
    questions = [turn.question for turn in known.turns]
    assert len(questions) == len(set(questions)) and {*told, "And now?"} <= set(questions)
    assert known.facts_upto == known.last == len(questions)
    # a kill costs at most the one reply that was under way
    assert model.asked.count("note") <= len(questions) + n_kills
