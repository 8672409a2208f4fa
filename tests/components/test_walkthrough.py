"""The file that the behaviours come from, as it is: its question is answered in every protocol, and
no call is made twice."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from babyagi.agent import Agent
from babyagi.llm.prompt import Prompt
from babyagi.react.executor import Executor
from babyagi.react.steps import Act, StepEnded, Stopped, ToolEnded
from support.scripted import ScriptedModel
from tests.react.test_walkthroughs import Killed, MortalCalls
from tests.react.walkthroughs import Walkthrough
from tests.search_server import SearchServer
from tests.test_journal import open_desk

pytestmark = pytest.mark.system  # the file runs Python in a sandbox

FILE = Path(__file__).parent.parent / "data" / "agents.haystack.yaml"
SPOKEN = pytest.mark.parametrize("spoken", ["text", "json", "native"])
POWER = "2.4242784855673896"
WALK = Walkthrough(
    question="What is the age of the harbour master of Norvik, raised to the power of 0.23?",
    calls=(
        ("Search", {"query": "harbour master of Norvik"}),
        ("Search", {"query": "age of Ada Brook"}),
        ("Calculator", {"query": "47^0.23"}),
    ),
    given=(
        "1. Harbour office\nhttps://norvik.example\nThe harbour master is Ada Brook.",
        "1. Answer: 47",
        POWER,
    ),
    answer=f"It is {POWER}.",
)
CODE = (
    "```python\nimport math\n\n\ndef power():\n    return math.pow(47, "
    "0.23)\n\n\nfinal_result = power()\n```"
)


def find(query):
    if query == "harbour master of Norvik":
        snippet = "The harbour master is Ada Brook."
        return {
            "organic_results": [
                {"title": "Harbour office", "link": "https://norvik.example", "snippet": snippet}
            ]
        }
    return {"answer_box": {"answer": 47}}


def is_for_the_calculator(prompt: Prompt):
    return prompt.messages[-1].text.endswith("# Start with import statement\n")


def answering(spoken):
    """The model of the agent, which is that of the calculator, too."""
    say = WALK.model_answer(spoken)
    return lambda prompt, role: CODE if is_for_the_calculator(prompt) else say(prompt, role)


@pytest.fixture
async def server(monkeypatch):
    async with SearchServer(find) as server:
        monkeypatch.setenv("SERP_PARAMS_BASE_URL", server.base_url)
        yield server


@SPOKEN
async def test_the_file_answers_its_question_unchanged_in_every_protocol(server, spoken):
    model, told = ScriptedModel(answering(spoken)), list[object]()

    run = await Agent.from_yaml(FILE, model=model, protocol=spoken).run_async(
        WALK.question, on_signal=told.append
    )

    assert (run.output, run.stopped) == (WALK.answer, Stopped.FINISH)
    assert [
        step.observations[0].passage.text for step in run.steps if isinstance(step.decision, Act)
    ] == list(WALK.given)
    assert server.queries == ["harbour master of Norvik", "age of Ada Brook"]
    assert run.usage.calls == len(model.calls) == 5
    asked = [prompt for _, prompt in model.calls]
    assert [is_for_the_calculator(prompt) for prompt in asked] == [False, False, False, True, False]
    assert all(
        "Observation:" in prompt.stop for prompt in asked if not is_for_the_calculator(prompt)
    )
    assert [
        signal.observation.passage.origin for signal in told if isinstance(signal, ToolEnded)
    ] == [
        "tool:Search",
        "tool:Search",
        "tool:Calculator",
    ]
    assert sum(isinstance(signal, StepEnded) for signal in told) == 4


async def test_a_kill_between_any_two_calls_of_the_file_repeats_none(server):
    # in every protocol: tests/react/test_walkthroughs.py
    agent = Agent.from_yaml(FILE, model="rehearsal", protocol="json")
    n_calls = 4 + 3 + 2  # of the agent's model, of its tools, of the two nodes in its calculator
    for dies_before in range(1, n_calls + 1):
        server.requests.clear()
        desk, made = await open_desk(answering("json")), Counter[str]()
        with pytest.raises(Killed):
            await open_executor(desk, agent, made, dies_before=dies_before).run(WALK.messages)

        run = await open_executor(desk, agent, made, dies_before=0).run(WALK.messages)

        assert (run.output, run.stopped) == (WALK.answer, Stopped.FINISH)
        assert len(desk.model.calls) == 5
        assert Counter(server.queries) == {"harbour master of Norvik": 1, "age of Ada Brook": 1}
        assert made == {"python": 1}


async def test_after_the_last_call_there_is_nothing_left_that_could_be_killed(server):
    desk = await open_desk(answering("text"))

    run = await open_executor(
        desk, Agent.from_yaml(FILE, protocol="text"), Counter(), dies_before=10
    ).run(WALK.messages)

    assert run.stopped is Stopped.FINISH


def open_executor(desk, agent, made, *, dies_before):
    """An executor whose process dies before its call `dies_before`, those within a composed tool
    included."""
    calls = MortalCalls(desk.open_journal(), dies_before)
    tools = [
        replace(tool, compose=mortal(tool.compose, calls, made)) if tool.compose else tool
        for tool in agent.tools
    ]
    return Executor(tools=tools, calls=calls, protocol=agent.protocol, bounds=agent.bounds)


def mortal(compose, mortal_calls, made):
    """The composing, in the process that may die, counting the runs of its tools."""

    class Inner:
        def __init__(self, calls):
            self._calls = calls

        def __getattr__(self, name):
            return getattr(self._calls, name)

        async def complete(self, path, prompt, *, role):
            mortal_calls._live()
            return await self._calls.complete(path, prompt, role=role)

        async def call_tool(self, path, tool, arguments):
            mortal_calls._live()

            async def run(given):
                made[tool.name] += 1
                return await tool.run(given)

            return await self._calls.call_tool(path, replace(tool, run=run), arguments)

    return lambda arguments, calls: compose(arguments, Inner(calls))
