"""An agent that remembers: from Python, from a file, within its limits."""

import asyncio
import json

import pytest

import babyagi
from babyagi.agent import Agent
from babyagi.errors import ModelUnavailableError, SettingsError
from babyagi.llm.prompt import Speaker, ToolCall
from babyagi.memory.log import path_of
from babyagi.react.steps import RunEnded, Stopped
from babyagi.tasks import Passage
from babyagi.tools.base import Tool, takes_text
from support.scripted import ScriptedModel


def is_update(prompt):
    return prompt.messages[0].text.startswith("Role: memory agent")


def remembering(answer=lambda prompt: f"said: {prompt.messages[-1].text.rsplit(chr(10), 1)[-1]}"):
    """A model that answers, summarizes, and notes that Rex is a dog."""

    def reply(prompt, role):
        system = prompt.messages[0].text
        if "You keep the summary" in system:
            return "They spoke of Rex."
        if "You note" in system:
            n = int(prompt.messages[-1].text.split("<<question ")[1].split(" ")[0])
            return json.dumps({"facts": [{"entity": "Rex", "fact": "Rex is a dog.", "turn": n}]})
        return answer(prompt)

    return ScriptedModel(reply)


def questions(model):
    return [prompt for _, prompt in model.calls if not is_update(prompt)]


def shown(prompt):
    return prompt.messages[-1].text


def test_the_next_question_is_shown_the_turns_before_it_one_for_each_run():
    model = remembering()
    agent = Agent(model, memory=babyagi.ConversationMemory(window_size=1))

    runs = [agent.run(question) for question in ("one?", "two?", "three?")]

    assert runs[2].output == "said: three?"
    last = shown(questions(model)[2])
    assert "two?" in last and "said: two?" in last and "one?" not in last
    assert "<<" not in shown(questions(model)[0])


def test_a_run_with_tools_is_one_turn_with_its_question_and_its_final_answer():
    def answer(prompt):
        if any(message.speaker is Speaker.TOOL for message in prompt.messages):
            return "Two euros."
        return (ToolCall(id="c", name="price", arguments='{"item": "tea"}'),)

    async def look_up(arguments):
        return Passage(text="2", origin="web:https://shop.example")

    tool = Tool(
        name="price",
        description="a price",
        parameters=takes_text("item", "what"),
        effect=babyagi.Effect.READ,
        run=look_up,
    )
    agent = Agent(remembering(answer), [tool], memory=babyagi.ConversationMemory())

    agent.run("What does tea cost?")

    (turn,) = asyncio.run(agent.recall()).turns
    assert (turn.question, turn.answer) == ("What does tea cost?", "Two euros.")
    assert "web:https://shop.example" in turn.made_from


def test_where_an_answer_came_from_goes_on_to_the_answers_that_are_made_with_it():
    model = remembering()
    agent = Agent(model, memory=babyagi.ConversationMemory())
    log = agent._open_log()
    asyncio.run(
        log.add_turn("a?", "b", key="k", made_from=["model:m", "person", "file:notes/a.md"])
    )

    run = agent.run("And now?")

    assert "file:notes/a.md" in run.origins
    assert "file:notes/a.md" in asyncio.run(agent.recall()).turns[-1].made_from
    assert "after file:notes/a.md" in shown(questions(model)[0])


def test_a_summary_is_written_every_three_turns_and_shown_from_then_on():
    model = remembering()
    agent = Agent(model, memory=babyagi.ConversationSummaryMemory(window_size=0))

    for n in range(5):
        agent.run(f"question {n}?")

    assert sum(map(is_update, (prompt for _, prompt in model.calls))) == 1
    last = shown(questions(model)[4])
    assert "They spoke of Rex." in last and "question 3?" in last and "question 2?" not in last


def test_what_is_known_of_a_name_is_shown_where_the_question_names_it():
    model = remembering()
    agent = Agent(model, memory=babyagi.EntityMemory(window_size=0, update_every=2))

    for question in ("Rex is a dog.", "What is tea?", "What is REX?", "Tea?", "Coffee?"):
        agent.run(question)

    asked = questions(model)
    assert "Rex is a dog. (turn 1)" in shown(asked[2])
    # a question for "it" may mean what the last one named
    assert "(turn 1)" in shown(asked[3]) and "(turn 1)" not in shown(asked[4])


def test_a_named_memory_is_kept_and_shared_by_those_who_name_it(tmp_path, monkeypatch):
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path))
    Agent(remembering(), memory="tea").run("one?")

    model = remembering()
    Agent(model, memory=babyagi.ConversationMemory(name="tea")).run("two?")

    assert "one?" in shown(questions(model)[0])
    assert path_of(tmp_path, "tea").is_file()
    agent = Agent(model, memory="tea")
    assert asyncio.run(agent.forget()) and asyncio.run(agent.recall()).turns == ()
    with pytest.raises(SettingsError, match="1 to 64 letters"):
        Agent(model, memory="../tea")


async def test_two_askers_at_once_on_one_memory_lose_no_turn(tmp_path, monkeypatch):
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path))
    agents = [Agent(remembering(), memory="tea") for _ in range(4)]

    await asyncio.gather(
        *(agent.run_async(f"{n}-{m}?") for n, agent in enumerate(agents) for m in range(5))
    )

    known = await agents[0].recall()
    assert sorted(turn.question for turn in known.turns) == sorted(
        f"{n}-{m}?" for n in range(4) for m in range(5)
    )
    assert known.summary.upto <= 20


async def test_in_a_conversation_an_update_goes_on_beside_the_next_question():
    gate = asyncio.Event()
    model = remembering()
    complete = model.complete

    async def slow(prompt, *, role):
        if is_update(prompt):
            await gate.wait()
        return await complete(prompt, role=role)

    model.complete = slow
    async with Agent(model, memory=babyagi.ConversationSummaryMemory(summary_frequency=1)) as agent:
        for n in range(3):
            await agent.run_async(f"{n}?")
        assert (await agent.recall()).summary.upto == 0
        gate.set()

    known = await agent.recall()
    assert known.summary.upto == 3
    await agent.run_async("after?")
    assert (await agent.recall()).summary.upto == 4


async def test_the_answer_is_told_before_the_memory_is_brought_up_to_date():
    model = remembering()
    agent = Agent(model, memory=babyagi.ConversationSummaryMemory(summary_frequency=1))
    n_calls = []

    await agent.run_async(
        "one?",
        on_signal=lambda signal: (
            n_calls.append(len(model.calls)) if isinstance(signal, RunEnded) else None
        ),
    )

    assert (n_calls, len(model.calls)) == ([1], 2)


def test_what_the_memory_makes_of_the_turns_counts_against_the_limits_of_the_run():
    model = remembering()
    agent = Agent(model, memory=babyagi.ConversationSummaryMemory(summary_frequency=1), max_calls=1)

    run = agent.run("one?")

    assert run.stopped is Stopped.FINISH and len(model.calls) == 1
    # it is made up for where there is room
    agent = Agent(model, memory=agent.memory, max_calls=2)
    agent.run("two?")
    assert len(model.calls) == 3 and asyncio.run(agent.recall()).summary.upto == 1


def test_a_question_without_an_answer_is_no_turn():
    def fail(prompt):
        return ModelUnavailableError("down")

    agent = Agent(remembering(fail), memory=babyagi.ConversationMemory())
    with pytest.raises(ModelUnavailableError):
        agent.run("one?")

    assert asyncio.run(agent.recall()).turns == ()


def test_an_answer_is_given_even_if_it_cannot_be_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path))
    agent = Agent(remembering(), memory="tea")
    told = []

    def tell(signal):
        if not path_of(tmp_path, "tea").exists():
            path_of(tmp_path, "tea").mkdir(parents=True)
        told.append(signal)

    with pytest.raises(babyagi.BabyagiError, match="the memory tea cannot be used"):
        asyncio.run(agent.run_async("one?", on_signal=tell))

    assert isinstance(told[-1], RunEnded) and told[-1].run.output == "said: one?"


FILE = """
version: ignore
components:
  - {name: Node, type: PromptNode}
  - {name: Run, type: PythonRuntime}
  - {name: Notes, type: EntityMemory, params: {update_every: 2, window_size: 4, prompt_node: Node}}
agents:
  - name: one
    params:
      prompt_node: Node
      memory: %s
      tools: [{name: Try, pipeline_or_node: Run, description: runs}]
"""


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Notes", babyagi.EntityMemory(update_every=2, window_size=4)),
        ("{type: EntityMemory, params: {update_every: 5}}", babyagi.EntityMemory(update_every=5)),
        (
            "{type: ConversationSummaryMemory, params: {summary_frequency: 4, input_key: input}}",
            babyagi.ConversationSummaryMemory(summary_frequency=4),
        ),
        (
            "{type: ConversationMemory, params: {window_size: 2, max_tokens: 500}}",
            babyagi.ConversationMemory(window_size=2, max_tokens=500),
        ),
        ("{type: NoMemory}", None),
    ],
)
def test_a_file_says_what_its_agent_remembers_and_a_person_under_which_name(
    tmp_path, written, expected
):
    path = tmp_path / "agents.yaml"
    path.write_text(FILE % written, "utf-8")
    model = remembering()

    agent = Agent.from_yaml(path, model=model)

    assert agent.memory == expected
    if expected is not None:
        agent.run("one?")
        agent.run("two?")
        assert "one?" in shown(questions(model)[1])
    named = Agent.from_yaml(path, model=model, memory="tea").memory
    assert named is not None and named.name == "tea"
    assert type(named) is (type(expected) if expected else babyagi.ConversationSummaryMemory)
