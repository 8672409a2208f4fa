"""What the prompt of a task is made from."""

import pytest

from babyagi.llm.prompt import ToolCall
from babyagi.tasks import Effect, Passage, Proposal, Role
from babyagi.tools.base import Sink, Tool, takes_text
from support.scripted import ScriptedModel
from support.world import World

FOUND = "Mia Berg earns 7431 euros a month at Acme, so it was about limits."
ASKED = "Say what Mia Berg at Acme earns"


def answer(prompt, role):
    if role is Role.CREATION:
        return '{"tasks": []}'
    is_first = ": Begin" in prompt.messages[1].text
    if role is Role.EXECUTION and is_first and len(prompt.messages) == 2:
        return (ToolCall(id="c1", name="read_file", arguments="{}"),)
    return FOUND


async def read(arguments):
    return Passage(text=FOUND, origin="file:pay.csv")


async def send(arguments):
    return Passage(text="heard", origin="tool:send")


def make_tools(sink):
    reading = Tool(
        name="read_file",
        description="",
        parameters={"type": "object"},
        effect=Effect.READ,
        run=read,
    )
    sending = Tool(
        name="send",
        description="",
        parameters=takes_text("query", "what"),
        effect=Effect.READ,
        run=send,
        sink=sink,
    )
    return reading, sending


@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("sink", [None, Sink(host="far.example")])
async def test_a_task_that_can_send_is_shown_a_private_result_only_if_it_follows_it(sink, is_named):
    model = ScriptedModel(answer)
    world = World(model=model, tools=make_tools(sink))
    objective = await world.run()
    after = (1,) if is_named else ()
    await world.store.add_tasks(objective.id, [Proposal(name=ASKED, after=after)])
    await world.run(await world.store.objective(objective.id))

    prompts = [prompt for role, prompt in model.calls if role is Role.EXECUTION]
    asked, *_ = [one for one in prompts if f": {ASKED}" in one.messages[1].text]
    assert ("7431" in asked.messages[1].text) is (is_named or sink is None)
    offered = {tool.name for tool in asked.tools}
    assert ("recall" in offered) is (sink is not None and not is_named)
