import json

import pytest

from babyagi.errors import MalformedReplyError, RequestRefusedError
from babyagi.llm.base import Completion
from babyagi.llm.prompt import Message, Speaker, ToolCall
from babyagi.react.executor import ANSWER_NOW, MAX_CALLS_PER_STEP, MAX_STEPS, run_steps
from babyagi.tasks import Effect, Passage, Usage
from babyagi.tools.base import Tool
from tests.test_journal import open_desk

ASK = (Message(speaker=Speaker.USER, text="do it", origins=("person",)),)


def completion(text="", **fields):
    return Completion(text=text, model="scripted", usage=Usage(calls=1), **fields)


def echo_tool(seen):
    async def run(arguments):
        seen.append(arguments["word"])
        return Passage(text=f"echo {arguments['word']}", origin="tool:echo")

    schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    return Tool(name="echo", description="says it again", parameters=schema, effect=Effect.READ, run=run)


def call(word, *, name="echo", number=1):
    return ToolCall(id=f"call_{number}", name=name, arguments=json.dumps({"word": word}))


async def execute(desk, tools=()):
    return await run_steps(ASK, tools=tools, journal=desk.open_journal(), max_output_tokens=100)


def answering(*replies):
    left = list(replies)
    return lambda prompt, role: left.pop(0) if len(left) > 1 else left[0]


async def test_without_tools_a_task_costs_one_call():
    desk = await open_desk(answering("done"))

    answer = await execute(desk)

    assert (answer.text, answer.n_steps, len(desk.model.calls)) == ("done", 1, 1)


async def test_a_tool_is_run_and_the_model_sees_what_it_gave():
    seen: list[str] = []
    desk = await open_desk(answering((call("hello"),), "it said hello"))

    answer = await execute(desk, [echo_tool(seen)])

    assert seen == ["hello"]
    assert "echo hello" in desk.model.calls[1][1].messages[-1].text
    assert answer.text == "it said hello"
    assert answer.origins == ("person", "model:scripted", "tool:echo")


async def test_an_unknown_tool_and_bad_arguments_are_told_to_the_model():
    wrong = (call("x", name="ecko"), ToolCall(id="call_2", name="echo", arguments="{}"))
    seen: list[str] = []
    desk = await open_desk(answering(wrong, "done"))

    await execute(desk, [echo_tool(seen)])

    said = [message.text for message in desk.model.calls[1][1].messages if message.speaker is Speaker.TOOL]
    assert "there is no tool 'ecko'; there are: echo" in said[0]
    assert "word" in said[1]
    assert seen == []


async def test_on_the_last_step_no_tool_is_offered_so_that_there_is_an_answer():
    def always_call(prompt, role):
        return (call("again"),) if prompt.tools else "enough"

    desk = await open_desk(always_call)

    answer = await execute(desk, [echo_tool([])])

    assert (answer.text, answer.n_steps) == ("enough", MAX_STEPS)
    assert desk.model.calls[-1][1].messages[-1].text == ANSWER_NOW


async def test_a_flood_of_calls_is_bounded_and_each_is_answered():
    flood = tuple(call(str(n), number=n) for n in range(50))
    seen: list[str] = []
    desk = await open_desk(answering(flood, "done"))

    await execute(desk, [echo_tool(seen)])

    assert len(seen) == MAX_CALLS_PER_STEP
    assert sum(message.speaker is Speaker.TOOL for message in desk.model.calls[1][1].messages) == 50


async def test_an_empty_reply_is_asked_again_and_an_empty_model_is_a_malformed_one():
    patient, hopeless = await open_desk(answering("", "at last")), await open_desk(answering(""))

    assert (await execute(patient)).text == "at last"
    with pytest.raises(MalformedReplyError):
        await execute(hopeless)
    assert len(hopeless.model.calls) == 3


async def test_a_cut_answer_is_asked_for_again_with_more_room_and_then_taken_as_it_is():
    cut = completion("the beginning of", finish_reason="length")
    desk = await open_desk(answering(cut))

    answer = await execute(desk)

    assert answer.text == "the beginning of"
    assert [prompt.max_output_tokens for _, prompt in desk.model.calls] == [100, 200, 200]


async def test_half_a_tool_call_is_never_run():
    half = completion(tool_calls=(call("half"),), finish_reason="length")
    seen: list[str] = []
    desk = await open_desk(answering(half, "done"))

    answer = await execute(desk, [echo_tool(seen)])

    assert (seen, answer.text) == ([], "done")


@pytest.mark.parametrize(
    ("reply", "n_calls"),
    [(completion(refusal="I will not"), 2), (completion(finish_reason="content_filter"), 1)],
    ids=["refusal", "filter"],
)
async def test_a_refusal_is_asked_about_once_and_a_filter_never(reply, n_calls):
    desk = await open_desk(answering(reply))

    with pytest.raises(RequestRefusedError):
        await execute(desk)
    assert len(desk.model.calls) == n_calls


async def test_tools_that_are_called_wrongly_three_times_in_a_row_end_the_try():
    wrong = (call("x", name="ecko"),)
    right = (call("y"),)
    patient = await open_desk(answering(wrong, wrong, right, wrong, wrong, "done"))
    hopeless = await open_desk(answering(wrong))

    assert (await execute(patient, [echo_tool([])])).text == "done"
    with pytest.raises(MalformedReplyError, match="there is no tool 'ecko'"):
        await execute(hopeless, [echo_tool([])])
    assert len(hopeless.model.calls) == 3


async def test_a_replay_calls_neither_the_model_nor_a_tool():
    seen: list[str] = []
    desk = await open_desk(answering((call("hello"),), "it said hello"))
    first = await execute(desk, [echo_tool(seen)])

    again = await execute(desk, [echo_tool(seen)])

    assert again == first
    assert (len(desk.model.calls), seen) == (2, ["hello"])
