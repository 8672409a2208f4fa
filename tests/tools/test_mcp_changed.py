"""A server's tool that is not what was granted any more: its task waits, and a person decides."""

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from babyagi.app.toolbox import grant_given
from babyagi.cli.inbox import render_request
from babyagi.inbox import CHANGED, Authority, Decision, decide, describe, sign_decision, take_words
from babyagi.llm.prompt import Speaker, ToolCall
from babyagi.settings.fields import Settings
from babyagi.tasks import Approval, Effect, Role, StopReason, TaskStatus
from babyagi.tools.mcp import McpServer, open_servers
from babyagi.verbs.actions import gather_request
from support.scripted import ScriptedModel
from support.world import World, make_spec

pytestmark = pytest.mark.system
SERVER = str(Path(__file__).parent.parent / "mcp_server.py")
OTHER = {"description": "Send it to everybody."}
OTHER_SCHEMA = {
    "inputSchema": {
        "type": "object",
        "properties": {"words": {"type": "string"}},
        "required": ["words"],
    }
}


class Calls:
    """A model that calls the tool with these texts, one after another, in each task, and says what
    came of it."""

    def __init__(self, *texts, parameter="text"):
        self.texts, self.parameter = texts, parameter
        self.seen = []

    def __call__(self, prompt, role):
        if role is not Role.EXECUTION:
            return '{"tasks": []}'
        given = [one for one in prompt.messages if one.speaker is Speaker.TOOL]
        if len(given) < len(self.texts):
            arguments = json.dumps({self.parameter: self.texts[len(given)]})
            return (ToolCall(id=f"c{len(given)}", name="s__echo", arguments=arguments),)
        self.seen = [one.text for one in given]
        return "the limit is 40 euros a day:\n" + "\n".join(self.seen)


class Place:
    """A server that describes its tool as a file says, and objectives that were granted the tool as
    it was at first."""

    def __init__(self, folder):
        self.form = folder / "form.json"
        self.say({})
        effects = {"echo": Effect.READ}
        args = ("-S", SERVER, "changing", str(self.form))
        self.server = McpServer(name="s", command=sys.executable, args=args, effects=effects)

    def say(self, form):
        self.form.write_text(json.dumps(form))

    @asynccontextmanager
    async def world(self, model, **more):
        """A world that has the tool as it was granted."""
        async with open_servers([self.server]) as (connection,):
            (tool,) = await connection.list_tools()
            self.grant = getattr(self, "grant", None) or grant_given(tool)
            granted = connection.open_granted(self.grant)
            assert granted is not None
            self.model = model
            yield World(model=ScriptedModel(model), tools=[granted], **more)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


async def granted(place):
    """The grant of the tool as the server describes it now."""
    async with place.world(Calls()):
        pass
    return place.grant


async def begin(world, place, **more):
    return await world.start(make_spec(tools=(place.grant,), **more))


async def asked(world, objective):
    (step,) = await world.store.inbox(objective.id)
    return step


async def test_a_tool_that_is_as_it_was_granted_is_called_and_nobody_is_asked(place):
    async with place.world(Calls("hello")) as world:
        ended = await world.run(await begin(world, place))

    assert ended.stop_reason is StopReason.FINISHED
    assert "hello" in place.model.seen[0]


@pytest.mark.parametrize("form", [OTHER, OTHER_SCHEMA])
async def test_a_call_of_a_changed_tool_waits_for_a_person_who_is_shown_the_difference(form, place):
    await granted(place)
    place.say(form)
    async with place.world(Calls("hello")) as world:
        objective = await begin(world, place)
        ended = await world.run(objective)
        step = await asked(world, objective)
        request = await gather_request(world.store, step, Settings())
        shown = "\n".join(line.text for line in render_request(request, 100, is_whole=True))

    assert ended.stop_reason is StopReason.WAITING
    assert step.kind == CHANGED
    assert "+" in shown and "-" in shown and "babyagi inbox approve 4" in shown
    assert ("Send it to everybody." if form is OTHER else '"words"') in shown


async def test_what_a_person_allows_is_granted_from_then_on_and_nobody_is_asked_again(place):
    await granted(place)
    place.say(OTHER)
    async with place.world(Calls("hello", "and again")) as world:
        objective = await begin(world, place)
        await world.run(objective)
        step = await asked(world, objective)
        said = decide(step, Decision.APPROVE, "")
        await world.store.answer_step(step.id, output=said.to_json())
        ended = await world.run(await world.store.objective(objective.id))

    assert ended.stop_reason is StopReason.FINISHED
    assert "hello" in place.model.seen[0] and "and again" in place.model.seen[1]
    assert ended.spec.tools[0].description == OTHER["description"]
    assert (await world.store.verify()).damages == ()


async def test_a_call_that_a_person_refuses_is_not_made_and_not_asked_about_again(place):
    await granted(place)
    place.say(OTHER)
    async with place.world(Calls("hello", "and again")) as world:
        objective = await begin(world, place)
        await world.run(objective)
        step = await asked(world, objective)
        await world.store.answer_step(step.id, output=take_words(step, "no").to_json())
        ended = await world.run(await world.store.objective(objective.id))

    assert ended.stop_reason is StopReason.FINISHED
    assert all("did not allow it as it is now" in one for one in place.model.seen)
    assert "hello" not in "".join(place.model.seen)
    assert ended.spec.tools[0].description == "Say it again."


async def test_a_call_that_does_not_fit_the_allowed_form_is_told_what_does(place):
    await granted(place)
    place.say(OTHER_SCHEMA)
    async with place.world(Calls("hello")) as world:
        objective = await begin(world, place)
        await world.run(objective)
        step = await asked(world, objective)
        await world.store.answer_step(step.id, output=take_words(step, "yes").to_json())
        await world.run(await world.store.objective(objective.id))

    assert "it takes a JSON object" in place.model.seen[0]


async def test_a_tool_that_changes_during_a_run_is_asked_about_before_its_next_call(place):
    await granted(place)
    async with place.world(Calls("change", "hello")) as world:
        objective = await begin(world, place)
        ended = await world.run(objective)

        assert ended.stop_reason is StopReason.WAITING
        assert (await asked(world, objective)).kind == CHANGED
        (task,) = await world.store.tasks(objective.id, statuses=[TaskStatus.WAITING])
    assert task.failures == 0


async def test_a_server_that_is_gone_costs_a_call_and_not_the_run(place):
    await granted(place)
    async with place.world(Calls("hello")) as world:
        objective = await begin(world, place, approval=Approval.NONE)
        place.form.unlink()  # the server dies of it at its next list
        await world.tools[0].offered.func.__self__.close()
        ended = await world.run(objective)

    assert ended.stop_reason is StopReason.FINISHED
    assert "the server s failed" in place.model.seen[0]


HERE = "the key of this home"


async def test_an_answer_from_elsewhere_lets_no_changed_tool_be_called(place):
    await granted(place)
    place.say(OTHER)
    async with place.world(Calls("hello"), authority=Authority(key=HERE)) as world:
        objective = await begin(world, place)
        await world.run(objective)
        step = await asked(world, objective)
        said = decide(step, Decision.APPROVE, "").to_json()
        await world.store.answer_step(step.id, output=said)
        ended = await world.run(await world.store.objective(objective.id))
        again = await asked(world, objective)

        assert (ended.stop_reason, place.model.seen) == (StopReason.WAITING, [])
        assert "asked again" in describe(again)

        await world.store.answer_step(again.id, output=sign_decision(said, again, key=HERE))
        ended = await world.run(await world.store.objective(objective.id))

    assert ended.stop_reason is StopReason.FINISHED
    assert "hello" in place.model.seen[0]
