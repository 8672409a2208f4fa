"""Models, tools and callers that do what nobody should: the run keeps its bounds, and no answer is
made up or lost."""

import asyncio
import json
from dataclasses import replace

import pytest

from babyagi.llm import prompt
from babyagi.llm.prompt import ToolCall
from babyagi.react.executor import NO_ANSWER, Executor, build_agent_tool
from babyagi.react.steps import AgentBounds, AtLimit, Stopped
from babyagi.tasks import Limits
from tests.react.test_executor import (
    ASK,
    answering,
    call,
    completion,
    echo_tool,
    execute,
    open_executor,
)
from tests.test_journal import open_desk


async def hang(arguments):
    await asyncio.Event().wait()


async def test_text_beside_a_cancelled_call_is_not_taken_for_the_answer():
    said = completion("Let me look it up.", tool_calls=(call("a"),), finish_reason="tool_calls")
    desk = await open_desk(answering(said, "the answer"))

    run = await execute(desk, [replace(echo_tool([]), run=hang)], max_time_s=0.05)

    assert (run.output, run.stopped) == ("the answer", Stopped.MAX_TIME)
    assert len(desk.model.calls) == 2


async def test_the_last_question_of_a_run_whose_time_is_over_is_bounded_too():
    asked: list[object] = []

    class Hanging:
        def __init__(self, calls):
            self._calls = calls

        def __getattr__(self, name):
            return getattr(self._calls, name)

        async def complete(self, path, prompt, *, role):
            asked.append(path)
            await hang({})

    desk = await open_desk()
    bounds = AgentBounds(max_time_s=0.05, at_limit=AtLimit.GENERATE)

    run = await Executor(
        tools=[], calls=Hanging(desk.open_journal()), protocol="native", bounds=bounds
    ).run(ASK)

    assert (run.output, run.stopped, len(asked)) == (NO_ANSWER, Stopped.MAX_TIME, 2)


@pytest.mark.parametrize("name", ["final_answer", "fail_task", "none", "None", "-"])
async def test_a_tool_that_no_model_could_call_is_refused_when_the_agent_is_made(name):
    desk = await open_desk()

    with pytest.raises(ValueError, match=name):
        open_executor(desk, [replace(echo_tool([]), name=name)])


async def test_two_tools_of_one_name_are_refused_by_the_executor():
    desk = await open_desk()

    with pytest.raises(ValueError, match="two tools are called 'echo'"):
        open_executor(desk, [echo_tool([]), echo_tool([])])


async def test_a_callback_that_raises_ends_the_run_with_its_error_and_leaves_nothing_open():
    desk = await open_desk(answering((call("a"),), "done"))
    executor, is_closed = open_executor(desk, [echo_tool([])]), []
    iter_ = executor.iter

    async def watched(messages):
        try:
            async for signal in iter_(messages):
                yield signal
        finally:
            is_closed.append(True)

    executor.iter = watched

    with pytest.raises(ZeroDivisionError):
        await executor.run(ASK, on_signal=lambda signal: 1 / 0)

    assert is_closed == [True]


async def test_an_inner_agent_that_a_limit_stopped_gave_no_answer():
    def answer(prompt, role):
        if prompt.messages[0].text == "inner":
            return (call(f"w{len(prompt.messages)}"),)
        return prompt.messages[-1].text if len(prompt.messages) > 1 else (call("?", name="inner"),)

    bounds = AgentBounds(max_steps=2, at_limit=AtLimit.FORCE)
    inner = build_agent_tool(
        "inner",
        "Looks.",
        instruction="inner",
        tools=[echo_tool([])],
        bounds=bounds,
        protocol="native",
    )
    asking = ToolCall(id="c", name="inner", arguments='{"question": "?"}')
    desk = await open_desk(
        lambda prompt, role: (asking,) if len(prompt.messages) == 1 else answer(prompt, role)
    )

    run = await execute(desk, [inner])

    assert run.steps[0].observations[0].is_error
    assert "inner found no answer" in run.output


async def test_an_agent_cannot_be_among_its_own_tools():
    tools = [echo_tool([])]
    tools.append(
        build_agent_tool(
            "again",
            "Asks.",
            instruction="inner",
            tools=tools,
            bounds=AgentBounds(),
            protocol="native",
        )
    )
    asking = ToolCall(id="c", name="again", arguments='{"question": "?"}')
    desk = await open_desk(
        lambda prompt, role: (
            prompt.messages[-1].text
            if "there is no tool" in prompt.messages[-1].text
            else (asking,)
        )
    )

    run = await execute(desk, tools)

    assert "there is no tool 'again'; there are: echo" in run.steps[0].observations[0].passage.text


async def test_a_thousand_calls_are_each_answered_and_few_are_made():
    seen: list[str] = []
    flood = tuple(call(f"w{n}", number=n) for n in range(1000))
    desk = await open_desk(answering(flood, "done"))

    run = await execute(desk, [echo_tool(seen)])

    assert (run.output, len(seen), len(run.steps[0].observations)) == ("done", 8, 1000)


@pytest.mark.parametrize(
    "arguments",
    [
        json.dumps({"word": "x" * 300_000}),
        "[" * 100_000,
        '{"word":' + '{"a":' * 3000 + "1" + "}" * 3001,
        '{"word": 1' + "0" * 5000 + "}",
        '{"word": "a", "word": "b"}',
        '{"\ud800": "\u202e"}',
    ],
    ids=["large", "deep", "deep objects", "a huge number", "a key twice", "surrogates"],
)
async def test_arguments_that_nobody_should_send_come_back_as_one_line(arguments):
    seen: list[str] = []
    desk = await open_desk(answering((ToolCall(id="c", name="echo", arguments=arguments),), "done"))

    run = await execute(desk, [echo_tool(seen)])

    observation = run.steps[0].observations[0]
    assert (run.output, seen, observation.is_error) == ("done", [], True)
    assert len(observation.passage.text) < 500 and "\n" not in observation.passage.text


@pytest.mark.parametrize("protocol", ["text", "json", "native"])
async def test_a_reply_without_measure_does_not_fill_the_requests_that_follow(protocol):
    word = "x" * 2_000_000
    calls = {
        "text": f"Action: echo\nAction Input: {word}",
        "json": json.dumps({"tool": "echo", "tool_input": word}),
        "native": (call(word),),
    }
    ends = {
        "text": "Final Answer: done",
        "json": '{"tool": "final_answer", "tool_input": "done"}',
        "native": "done",
    }
    seen: list[str] = []
    replies = [calls[protocol], *([] if protocol == "native" else [word]), ends[protocol]]
    # else so long a reply ends the run
    desk = await open_desk(answering(*replies), limits=Limits(max_tokens=0))

    run = await open_executor(desk, [echo_tool(seen)], protocol=protocol).run(ASK)

    assert (run.output, seen) == ("done", [])
    assert len(desk.model.calls) == len(replies)
    assert all(prompt.prompt_text_bytes(asked) < 100_000 for _, asked in desk.model.calls)
