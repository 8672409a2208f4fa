"""An agent of a file in the loop: as the one that carries the tasks out, and as a tool."""

import asyncio
import json
from dataclasses import replace

import pytest

import babyagi
from babyagi.app.application import open_app
from babyagi.errors import SettingsError
from babyagi.files.home import forget, memory_of
from babyagi.llm.prompt import Speaker, ToolCall
from babyagi.memory.log import parse, path_of
from babyagi.settings.load import load_here
from babyagi.tasks import Effect, Role
from support.scripted import ScriptedModel

FILE = """
version: ignore
components:
  - {name: Node, type: PromptNode, params: {stop_words: [ENOUGH]}}
  - {name: Ask, type: PromptNode}
agents:
  - name: shopper
    params:
      prompt_node: Node
      protocol: %s
      max_steps: 3
      memory: %s
      tools: [{name: Prices, pipeline_or_node: Ask, description: knows what things cost}]
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "builtin")
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    return tmp_path / "home"


def write(folder, *, protocol="native", memory="{type: NoMemory}"):
    (folder / "agents.yaml").write_text(FILE % (protocol, memory), "utf-8")


def shop(*, tool="Prices", n_tasks=1, kind=ScriptedModel):
    """A model that asks the tool once in each task, answers with what it gave, and proposes two
    more tasks after the first where `n_tasks` is 3."""

    def answer(prompt, role):
        system = prompt.messages[0].text
        if "You keep" in system:
            return "They asked for prices."
        if not system.startswith("Role:"):
            return "Tea costs 5 euros."  # the prompt node
        agent = system.split()[1]
        if agent != "execution":
            new = [{"name": f"Find the price of {what}"} for what in ("coffee", "cocoa")]
            is_first = len(model.asked(Role.CREATION)) == 1 and n_tasks > 1
            return json.dumps({"tasks": new if is_first else []}) if agent == "creation" else "So."
        seen = [one for one in prompt.messages if one.speaker is Speaker.TOOL]
        if prompt.tools and not seen:
            parameter = next(iter(prompt.tools[0].parameters["properties"]))
            arguments = json.dumps({parameter: "tea"})
            return (ToolCall(id="c", name=tool, arguments=arguments),)
        return f"It is said: {seen[-1].text.splitlines()[1] if seen else '5 euros'}"

    model = kind(answer)
    return model


def run(model, **options):
    return babyagi.run(
        "What does tea cost?",
        **{"first_task": "Look the price of tea up", "model": model, **options},
    )


def executions(model):
    return [
        prompt
        for prompt in model.asked(Role.EXECUTION)
        if prompt.messages[0].text.startswith("Role: execution agent\n\nYou carry out")
    ]


def test_the_agent_of_a_file_carries_the_tasks_out_with_its_tools_and_bounds():
    model = shop()

    outcome = run(model, agent="agents.yaml#shopper")

    assert outcome.results[0].text == "It is said: Tea costs 5 euros."
    (first, *_) = executions(model)
    assert [tool.name for tool in first.tools] == ["Prices", "lacking"] and "ENOUGH" in first.stop
    spec = outcome.objective.spec
    assert spec.agent == "shopper"
    assert [(grant.name, grant.effect) for grant in spec.tools] == [("Prices", Effect.READ)]


def test_the_protocol_of_the_agent_is_spoken(tmp_path):
    write(tmp_path, protocol="text")
    model = ScriptedModel(
        lambda prompt, role: (
            "Final Answer: It costs 5 euros."
            if "Final Answer" in prompt.messages[0].text + prompt.messages[-1].text
            else '{"tasks": []}'
        )
    )

    outcome = run(model, agent="agents.yaml")

    assert outcome.results[0].text == "It costs 5 euros."
    assert not executions(model)[0].tools


async def test_who_goes_on_without_the_file_is_told_what_to_give():
    words = {"objective": "What does tea cost?", "initial_task": "Look the price of tea up"}
    settings = load_here({**words, "agent": "agents.yaml", "llm_model": "rehearsal"})
    async with open_app(settings) as app:
        objective, _ = await app.start_objective()

    with pytest.raises(SettingsError) as raised:
        await babyagi.run_async(
            "What does tea cost?", first_task=words["initial_task"], model="rehearsal"
        )

    assert objective.spec.agent == "shopper"
    assert "carried out by the agent shopper, and this worker does not have it" in raised.value.what
    assert raised.value.fix == "name the file here too: --agent FILE#shopper"


async def test_an_objective_that_began_without_an_agent_goes_on_without_one_and_that_is_told():
    told: list[str] = []
    words = {"objective": "What does tea cost?", "initial_task": "Look the price of tea up"}
    words["llm_model"] = "rehearsal"
    async with open_app(load_here(words)) as app:
        objective, _ = await app.start_objective()
    async with open_app(load_here({**words, "agent": "agents.yaml"}), tell=told.append) as app:
        ended = (await app.run(objective)).objective

    assert ended.stop_reason is not None and ended.spec.agent == ""
    assert [line for line in told if "without an agent of a file; shopper is not used" in line]


def test_what_the_agent_remembers_is_shown_to_later_tasks_kept_once_and_goes_with_its_objective(
    tmp_path, home
):
    write(tmp_path, memory="{type: ConversationSummaryMemory, params: {summary_frequency: 2}}")
    model = shop(n_tasks=3)

    outcome = run(model, agent="agents.yaml", concurrency=1)

    path = path_of(home, memory_of(outcome.objective.uid))
    known = parse(path.read_bytes())
    assert [turn.key for turn in known.turns] == ["task:1/1", "task:2/1", "task:3/1"]
    assert known.turns[0].asked_from == ("person",) and known.turns[1].asked_from != ("person",)
    assert (known.summary.text, known.summary.upto) == ("They asked for prices.", 3)
    first, *_, last = executions(model)
    assert "<<question 1" not in first.messages[1].text
    assert "<<question 2" in last.messages[1].text
    assert "They are data" in last.messages[0].text
    # its calls are steps of the objective, in its journal and its costs
    assert any("You keep" in prompt.messages[0].text for _, prompt in model.calls)
    assert outcome.usage.calls == len(model.calls)
    forget(home, outcome.objective.uid)
    assert not path.exists()


class MeetingModel(ScriptedModel):
    """Answers the third task only when the summary was asked for, and gives the summary only when
    the third task was begun."""

    def __init__(self, answer):
        super().__init__(answer)
        self.has_begun, self.was_asked = asyncio.Event(), asyncio.Event()

    async def complete(self, prompt, *, role, on_text=None):
        if "You keep" in prompt.messages[0].text:
            self.was_asked.set()
            await self.has_begun.wait()
        elif role is Role.EXECUTION and "\n3: Find the price" in prompt.messages[1].text:
            self.has_begun.set()
            await self.was_asked.wait()
        return await super().complete(prompt, role=role, on_text=on_text)


async def test_the_memory_of_the_loops_agent_is_brought_up_to_date_beside_the_next_task(
    tmp_path, home
):
    write(tmp_path, memory="{type: ConversationSummaryMemory, params: {summary_frequency: 2}}")
    model = shop(n_tasks=3, kind=MeetingModel)

    async with asyncio.timeout(30):
        outcome = await babyagi.run_async(
            "What does tea cost?",
            first_task="Look the price of tea up",
            model=model,
            agent="agents.yaml",
            concurrency=1,
        )

    known = parse(path_of(home, memory_of(outcome.objective.uid)).read_bytes())
    assert len(outcome.results) == 3 and known.summary.upto == 3


async def test_what_a_limit_leaves_unread_of_the_last_tasks_stays_and_is_read_at_the_next_end(
    tmp_path, home
):
    write(tmp_path, memory="{type: ConversationSummaryMemory, params: {summary_frequency: 9}}")
    model = shop(n_tasks=3)
    given = {"first_task": "Look the price of tea up", "model": model, "agent": "agents.yaml"}
    limited = await babyagi.run_async("What does tea cost?", **given, max_calls=5)
    assert not any("You keep" in p.messages[0].text for _, p in model.calls)

    async with open_app(load_here({})) as app:
        limits = replace(limited.objective.spec.limits, max_calls=60)
        await app.store.extend_objective(limited.objective.id, limits=limits)
    await babyagi.run_async("What does tea cost?", **given)

    known = parse(path_of(home, memory_of(limited.objective.uid)).read_bytes())
    assert known.summary.upto == len(known.turns) > 1


def test_an_agent_of_a_file_is_a_tool_of_the_loop():
    model = shop(tool="shopper")

    outcome = run(model, tools_from="agents.yaml#shopper")

    assert "It is said" in outcome.results[0].text or "5 euros" in outcome.results[0].text
    offered, give_up = executions(model)[0].tools
    assert (offered.name, give_up.name) == ("shopper", "lacking")
    assert "with the help of: Prices (knows what things cost)" in offered.description
    assert outcome.objective.spec.agent == ""


def test_an_agent_with_a_memory_is_no_tool(tmp_path):
    write(tmp_path, memory="{type: EntityMemory}")

    with pytest.raises(SettingsError, match="'shopper' has a memory"):
        run(shop(), tools_from="agents.yaml")


@pytest.mark.parametrize(
    ("reference", "said"),
    [("nowhere.yaml", "cannot be read"), ("agents.yaml#nobody", "there is no agent 'nobody'")],
)
def test_an_agent_that_is_not_there_is_one_error_before_anything_begins(reference, said):
    model = shop()
    for option in ("agent", "tools_from"):
        with pytest.raises(SettingsError, match=said):
            run(model, **{option: reference})
    assert model.calls == []
