"""What a server can do is found out: servers that differ as real ones do, over real sockets."""

import asyncio
import json
from functools import partial

import pytest

from babyagi.errors import ContextTooLongError
from babyagi.llm.client import Endpoint
from babyagi.llm.learning import (
    LearningModel,
    is_known_provider,
    read_abilities,
    write_abilities,
)
from babyagi.llm.port import Abilities
from babyagi.llm.prompt import Message, Prompt, Speaker
from babyagi.react.asking import find_abilities
from babyagi.react.executor import Executor
from babyagi.react.protocols.base import say
from babyagi.react.protocols.choice import HELD, choose_protocol, step_down
from babyagi.react.steps import Act, AgentBounds, Stopped
from babyagi.tasks import Effect, Passage, Role
from babyagi.tools.base import Tool
from support.connections import HERE, Connections
from tests.test_journal import open_desk

CONTEXT = 2048
LONG = "What the file says about tools. " * 12


class Server:
    """One of them. A model behind it calls a tool where it is shown one in fields of its own,
    writes an object where it is held to one, and else follows the labels."""

    def __init__(self, kind):
        self.kind = kind
        self.requests = []
        self._connections = Connections()

    async def __aenter__(self):
        port = await self._connections.listen(self._serve, HERE, 0)
        self.base_url = f"http://{HERE}:{port}/v1"
        return self

    async def __aexit__(self, *_):
        await self._connections.close()

    async def _serve(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                )
                request = json.loads(await reader.readexactly(size))
                self.requests.append(request)
                status, body = self.answer(request)
                content, kind = json.dumps(body).encode(), "application/json"
                if request.get("stream") and self.kind == "streams without a count":
                    content, kind = as_stream(body), "text/event-stream"
                writer.write(
                    f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n"
                    f"content-length: {len(content)}\r\n\r\n".encode()
                    + content
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    def answer(self, request):
        tools, held = request.get("tools"), request.get("response_format")
        if tools and self.kind == "refuses tools":
            return 400, {"error": {"message": "this model does not support tools"}}
        if held and self.kind == "refuses schemas":
            return 400, {"error": {"message": "response_format json_schema is not supported"}}
        if refused := self.refuse(request):
            return 400, {"error": {"message": refused, "type": "invalid_request_error"}}
        if self.kind in DROP_TOOLS:
            tools = None
        if self.kind == "knows functions only":
            held = None
        message, n_output = self.say(request, tools, held)
        if self.kind == "thinks aloud" and message["content"]:
            message["content"] = f"<think>\nLet me see.\n</think>\n\n{message['content']}"
        if self.kind == "speaks in parts":
            message["content"] = [{"type": "text", "text": message["content"]}]
        usage = self.count(request["messages"], tools, n_output)
        return 200, {
            "model": "m",
            "choices": [{"message": message, "finish_reason": "stop"}],
            **({} if self.kind == "counts nothing" else {"usage": usage}),
        }

    def refuse(self, request):
        roles = [message["role"] for message in request["messages"]]
        if self.kind == "refuses what it does not know":
            unknown = sorted(set(request) - {"model", "messages", "max_tokens"})
            return f"Unrecognized request argument supplied: {unknown[0]}" if unknown else ""
        if self.kind == "wants max_completion_tokens" and "max_tokens" in request:
            return "Unsupported parameter: use 'max_completion_tokens' in place of 'max_tokens'."
        if self.kind == "takes no system message" and "system" in roles:
            return "System role not supported"
        if self.kind == "wants roles in turn" and roles != alternating(roles):
            return "Conversation roles must alternate user/assistant/user/assistant/..."
        return ""

    def count(self, messages, tools, n_output):
        n = len(json.dumps(messages)) // 4 + (len(json.dumps(tools)) // 4 if tools else 0) + 10
        if self.kind == "cuts at 2,048":
            n = min(n, CONTEXT)
        n_output += 100 if self.kind == "reasons apart" else 0
        return {"prompt_tokens": n, "completion_tokens": n_output, "total_tokens": n + n_output}

    def say(self, request, tools, held):
        if self.kind == "reasons apart" and request["max_tokens"] < 100:
            # all of the room went into what it thought
            return {"content": "", "reasoning_content": "Let me see."}, request["max_tokens"]
        asked = json.dumps(request["messages"])
        if "note_colour" in asked:
            if tools:
                return self._call("note_colour", {"name": "blue"})
            if held:
                return {"content": '{"colours": ["blue"], "is_sure": true}'}, 15
            return {"content": "I will note the colour blue for you."}, 10
        has_looked = "nine at night" in asked
        if tools:
            return (
                ({"content": "Backups are made at nine at night."}, 12)
                if has_looked
                else self._call("look", {"word": "backups"})
            )
        if held:
            step = {"tool": "answer"} if has_looked else {"tool": "look", "tool_input": "backups"}
            return {"content": json.dumps({"thought": "I see.", **step})}, 30
        if has_looked:
            label = "" if say("write_answer") in asked else "Thought: I know it.\nFinal Answer: "
            return {"content": f"{label}Backups are made at nine at night."}, 20
        return {"content": "Thought: look\nAction: look\nAction Input: backups"}, 15

    def _call(self, name, arguments):
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        }, 15


DROP_TOOLS = (
    "drops tools",
    "knows functions only",
    "takes no system message",
    "wants roles in turn",
    "streams without a count",
    "thinks aloud",
)


def alternating(roles):
    return [("user", "assistant")[n % 2] for n in range(len(roles))]


def as_stream(body):
    (choice,) = body["choices"]
    events = [
        {"choices": [{"delta": choice["message"]}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
    ]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


def look(made):
    async def run(arguments):
        made.append(arguments)
        return Passage(text="Backups are made at nine at night.", origin="tool:look")

    return Tool(
        name="look",
        description=f"Looks a word up in the handbook. {LONG}",
        parameters={
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
        },
        effect=Effect.READ,
        run=run,
    )


ASK = (Message(speaker=Speaker.USER, text="When are backups made?", origins=("person",)),)


async def no_wait(_):
    await asyncio.sleep(0)


class Place:
    """A model at a server, with what is remembered of it."""

    def __init__(self, server):
        self.server, self.kept = server, ""

    async def run(self, *, ask=ASK):
        endpoint = Endpoint(base_url=self.server.base_url, sleep=no_wait, random=lambda: 0.5)
        model = LearningModel(
            "m",
            endpoint,
            known=read_abilities(self.kept),
            remember=lambda found: setattr(self, "kept", write_abilities(found)),
        )
        desk, made = await open_desk(), list[object]()
        desk.model = model
        executor = Executor(
            tools=[look(made)],
            calls=desk.open_journal(),
            bounds=AgentBounds(max_output_tokens=300),
        )
        try:
            run = await executor.run(ask)
        finally:
            await endpoint.close()
        assert (run.stopped, run.text) == (Stopped.FINISH, "Backups are made at nine at night.")
        assert [isinstance(step.decision, Act) for step in run.steps] == [True, False]
        assert made == [{"word": "backups"}]
        return executor, desk


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [
        ("drops tools", HELD),
        ("refuses tools", HELD),
        ("refuses schemas", "native"),
        ("counts nothing", "native"),
        ("reasons apart", "native"),
        ("cuts at 2,048", "native"),
    ],
)
async def test_auto_finds_what_works_with_two_questions_at_most_and_asks_them_once(kind, protocol):
    async with Server(kind) as server:
        place = Place(server)

        executor, desk = await place.run()

        assert executor.protocol.name == protocol
        n_probes = sum("note_colour" in json.dumps(one) for one in server.requests)
        n_asked = 3 if protocol == HELD else 2  # the answer is asked for after it was chosen
        assert n_probes <= 2 and len(server.requests) == n_probes + n_asked
        probes = [key for key in await desk.outputs() if "/probe/" in key]
        assert len(probes) <= 2  # what was refused is no step

        server.requests.clear()
        executor, _ = await place.run()

        assert executor.protocol.name == protocol and len(server.requests) == n_asked


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [
        ("knows functions only", "text"),
        ("refuses what it does not know", "text"),
        ("wants max_completion_tokens", "native"),
        ("takes no system message", HELD),
        ("wants roles in turn", HELD),
        ("streams without a count", HELD),
        ("speaks in parts", "native"),
        ("thinks aloud", HELD),
    ],
)
async def test_what_a_server_refuses_costs_no_answer_and_is_not_said_to_it_again(kind, protocol):
    async with Server(kind) as server:
        place = Place(server)

        executor, desk = await place.run()

        assert executor.protocol.name == protocol
        assert len([key for key in await desk.outputs() if "/probe/" in key]) <= 2
        assert len(server.requests) <= 8


async def test_tasks_that_begin_at_once_ask_once_what_a_model_can_do():
    async with Server("drops tools") as server:
        endpoint = Endpoint(base_url=server.base_url, sleep=no_wait, random=lambda: 0.5)
        model = LearningModel("m", endpoint, known=Abilities(), remember=str)

        async def begin():
            desk, made = await open_desk(), list[object]()
            desk.model = model
            bounds = AgentBounds(max_output_tokens=300)
            executor = Executor(tools=[look(made)], calls=desk.open_journal(), bounds=bounds)
            await executor.run(ASK)
            return executor.protocol.name

        found = await asyncio.gather(*(begin() for _ in range(4)))
        await endpoint.close()

    assert found == [HELD] * 4
    assert sum("note the colour" in json.dumps(one).lower() for one in server.requests) == 2


async def test_a_prompt_that_the_server_cuts_is_noticed_and_the_next_is_not_sent():
    async with Server("cuts at 2,048") as server:
        kept = list[Abilities]()
        endpoint = Endpoint(base_url=server.base_url, sleep=no_wait, random=lambda: 0.5)
        model = LearningModel("m", endpoint, known=Abilities(), remember=kept.append)

        def ask_for(n):
            message = Message(speaker=Speaker.USER, text="nine at night " * n, origins=("person",))
            return Prompt(messages=(message,), max_output_tokens=200)

        await model.complete(ask_for(100), role=Role.EXECUTION)
        with pytest.raises(ContextTooLongError) as caught:
            await model.complete(ask_for(1000), role=Role.EXECUTION)
        assert caught.value.may_be_billed and kept[-1].context_tokens == CONTEXT

        n_sent = len(server.requests)
        with pytest.raises(ContextTooLongError) as caught:
            await model.complete(ask_for(1000), role=Role.EXECUTION)
        assert not caught.value.may_be_billed and len(server.requests) == n_sent

        assert (await model.complete(ask_for(400), role=Role.EXECUTION)).text
        await endpoint.close()


async def test_a_server_that_counts_too_little_is_not_taken_for_one_that_cuts():
    class Modest(Server):
        def count(self, messages, tools, n_output):
            return {"prompt_tokens": 1100, "completion_tokens": n_output}

    async with Modest("counts little") as server:
        kept = list[Abilities]()
        endpoint = Endpoint(base_url=server.base_url, sleep=no_wait, random=lambda: 0.5)
        model = LearningModel("m", endpoint, known=Abilities(), remember=kept.append)
        message = Message(speaker=Speaker.USER, text="nine at night " * 900, origins=("person",))

        for _ in range(2):
            prompt = Prompt(messages=(message,), max_output_tokens=200)
            assert (await model.complete(prompt, role=Role.EXECUTION)).text
        await endpoint.close()

    assert kept == []


class Silent(Server):
    """A model that is shown tools, and whose server counts them, but that never calls one."""

    def _call(self, name, arguments):
        return {"content": "I would rather talk."}, 15


async def test_native_calls_are_chosen_only_after_one_was_brought():
    async with Silent("refuses schemas") as server:
        endpoint = Endpoint(base_url=server.base_url, sleep=no_wait, random=lambda: 0.5)
        kept = list[Abilities]()
        model = LearningModel("m", endpoint, known=Abilities(), remember=kept.append)
        desk = await open_desk()
        desk.model = model

        ask_at = partial(desk.open_journal().complete, role=Role.EXECUTION)
        await find_abilities(ask_at, "probe", model)
        await endpoint.close()

    assert (kept[-1].takes_tools, kept[-1].holds_schema) == (False, False)
    assert choose_protocol(kept[-1]) == "text"


def test_without_calls_one_steps_down_to_held_json_and_then_to_text():
    assert (step_down("native"), step_down(HELD)) == (HELD, "text")
    assert (step_down("json"), step_down("text")) == ("text", "text")


def test_what_works_is_chosen_by_what_is_known():
    assert choose_protocol(Abilities(takes_tools=True)) == "native"
    assert choose_protocol(Abilities(takes_tools=False, holds_schema=True)) == "json with a schema"
    assert choose_protocol(Abilities(takes_tools=False, holds_schema=False)) == "text"


@pytest.mark.parametrize(
    ("address", "is_known"),
    [
        ("", True),
        ("https://api.openai.com/v1", True),
        ("https://my.openai.azure.com/openai", True),
        ("https://openrouter.ai/api/v1", True),
        ("http://127.0.0.1:11434/v1", False),
        ("https://notopenai.com/v1", False),
        ("https://models.example/openai.com", False),
    ],
)
def test_only_an_address_of_a_known_provider_is_not_probed(address, is_known):
    assert is_known_provider(address) is is_known


@pytest.mark.parametrize(
    "text",
    ["", "x", "[]", '{"a": 1}', '"x"', "[" * 100_000],
    ids=["empty", "no JSON", "a list", "another object", "a text", "a list without end"],
)
def test_what_cannot_be_read_is_not_known(text):
    assert read_abilities(text) == Abilities()
