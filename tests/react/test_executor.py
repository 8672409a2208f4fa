import asyncio
import json
import re
from dataclasses import replace

import pytest

from babyagi.errors import LeaseLostError, RequestRefusedError, ToolsUnsupportedError
from babyagi.journal import Journal
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Message, Speaker, ToolCall
from babyagi.react.executor import MAX_CALLS_PER_STEP, NO_ANSWER, Executor, to_step
from babyagi.react.protocols.base import say
from babyagi.react.protocols.choice import HELD
from babyagi.react.steps import (
    AgentBounds,
    AgentStep,
    AtLimit,
    Finish,
    ModelAsked,
    ModelDecided,
    RunEnded,
    RunStarted,
    StepEnded,
    Stopped,
    ToolEnded,
    ToolStarted,
)
from babyagi.react.values import output_type_of
from babyagi.tasks import Approval, Effect, Passage, Usage
from babyagi.tools.base import Observation, Tool
from tests.test_journal import open_desk

ASK = (Message(speaker=Speaker.USER, text="do it", origins=("person",)),)


def completion(text="", **fields):
    return Completion(text=text, model="scripted", usage=Usage(calls=1), **fields)


def echo_tool(seen):
    async def run(arguments):
        seen.append(arguments["word"])
        return Passage(text=f"echo {arguments['word']}", origin="tool:echo")

    schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    return Tool(
        name="echo", description="says it again", parameters=schema, effect=Effect.READ, run=run
    )


def call(word, *, name="echo", number=1):
    return ToolCall(id=f"call_{number}", name=name, arguments=json.dumps({"word": word}))


def open_executor(desk, tools=(), *, protocol="native", **bounds):
    within = AgentBounds(**{"max_output_tokens": 100, **bounds})
    return Executor(tools=tools, calls=desk.open_journal(), bounds=within, protocol=protocol)


async def execute(desk, tools=(), **bounds):
    return await open_executor(desk, tools, **bounds).run(ASK)


CALLS = {
    "json": '{"thought": "", "tool": "echo", "tool_input": {"word": "a"}}',
    HELD: '{"thought": "", "tool": "echo", "tool_input": {"word": "a"}}',
    "text": "Thought: a\nAction: echo\nAction Input: a",
}


@pytest.mark.parametrize("protocol", CALLS)
async def test_the_last_request_begins_as_the_first_so_that_a_server_reads_only_what_is_new(
    protocol,
):
    desk = await open_desk(answering(CALLS[protocol], "done"))

    await execute(desk, [echo_tool([])], protocol=protocol, max_steps=1)

    (_, first), (_, last) = desk.model.calls
    assert last.messages[: len(first.messages)] == first.messages


def answering(*replies):
    left = list(replies)
    return lambda prompt, role: left.pop(0) if len(left) > 1 else left[0]


async def test_without_tools_a_task_costs_one_call():
    desk = await open_desk(answering("done"))

    answer = await execute(desk)

    assert (answer.output, len(answer.steps), len(desk.model.calls)) == ("done", 1, 1)


async def test_a_tool_is_run_and_the_model_sees_what_it_gave():
    seen: list[str] = []
    desk = await open_desk(answering((call("hello"),), "it said hello"))

    answer = await execute(desk, [echo_tool(seen)])

    assert seen == ["hello"]
    assert "echo hello" in desk.model.calls[1][1].messages[-1].text
    assert answer.output == "it said hello"
    assert answer.origins == ("person", "model:scripted", "tool:echo")


async def test_an_unknown_tool_and_bad_arguments_are_told_to_the_model():
    wrong = (call("x", name="ecko"), ToolCall(id="call_2", name="echo", arguments="{}"))
    seen: list[str] = []
    desk = await open_desk(answering(wrong, "done"))

    await execute(desk, [echo_tool(seen)])

    said = [
        message.text
        for message in desk.model.calls[1][1].messages
        if message.speaker is Speaker.TOOL
    ]
    assert "there is no tool 'ecko'; there are: echo" in said[0]
    assert "word" in said[1]
    assert seen == []


def always_call(prompt, role):
    """A new call in every step, as long as there are tools."""
    return (call(f"word {len(prompt.messages)}"),) if prompt.tools else "enough"


async def test_at_the_limit_of_steps_the_model_is_asked_once_more_without_tools():
    desk = await open_desk(always_call)

    run = await execute(desk, [echo_tool([])], max_steps=3)

    assert (run.output, run.stopped, len(run.steps)) == ("enough", Stopped.MAX_STEPS, 4)
    assert desk.model.calls[-1][1].messages[-1].text == say("answer_now")


async def test_at_the_limit_of_steps_force_makes_no_further_call():
    desk = await open_desk(always_call)

    run = await execute(desk, [echo_tool([])], max_steps=3, at_limit=AtLimit.FORCE)

    assert (run.output, run.stopped, len(desk.model.calls)) == (NO_ANSWER, Stopped.MAX_STEPS, 3)


async def test_a_model_that_still_wants_a_tool_at_the_limit_leaves_the_fixed_sentence():
    desk = await open_desk(lambda prompt, role: (call(f"word {len(prompt.messages)}"),))

    run = await execute(desk, [echo_tool([])], max_steps=2)

    assert (run.output, run.stopped) == (NO_ANSWER, Stopped.MAX_STEPS)


async def test_a_final_answer_on_the_last_allowed_call_counts():
    desk = await open_desk(answering((call("hello"),), "it said hello"))

    run = await execute(desk, [echo_tool([])], max_steps=2, at_limit=AtLimit.FORCE)

    assert (run.output, run.stopped) == ("it said hello", Stopped.FINISH)


async def test_a_flood_of_calls_is_bounded_and_each_is_answered():
    flood = tuple(call(str(n), number=n) for n in range(50))
    seen: list[str] = []
    desk = await open_desk(answering(flood, "done"))

    await execute(desk, [echo_tool(seen)])

    assert len(seen) == MAX_CALLS_PER_STEP
    assert sum(message.speaker is Speaker.TOOL for message in desk.model.calls[1][1].messages) == 50


async def test_an_empty_reply_is_asked_again_and_an_empty_model_is_a_malformed_one():
    patient, hopeless = await open_desk(answering("", "at last")), await open_desk(answering(""))

    assert (await execute(patient)).output == "at last"
    run = await execute(hopeless)
    assert (run.stopped, run.output) == (Stopped.MAX_ERRORS, "")
    assert len(hopeless.model.calls) == 3


async def test_a_cut_answer_is_asked_for_again_with_more_room_and_then_taken_as_it_is():
    cut = completion("the beginning of", finish_reason="length")
    desk = await open_desk(answering(cut))

    answer = await execute(desk)

    assert answer.output == "the beginning of"
    assert [prompt.max_output_tokens for _, prompt in desk.model.calls] == [100, 200, 200]


async def test_half_a_tool_call_is_never_run():
    half = completion(tool_calls=(call("half"),), finish_reason="length")
    seen: list[str] = []
    desk = await open_desk(answering(half, "done"))

    answer = await execute(desk, [echo_tool(seen)])

    assert (seen, answer.output) == ([], "done")


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


async def test_calls_that_fail_three_times_in_a_row_end_the_run_with_the_last_reason():
    wrong = [(call(f"x{n}", name="ecko"),) for n in range(4)]
    patient = await open_desk(
        answering(wrong[0], wrong[1], (call("y"),), wrong[2], wrong[3], "done")
    )
    hopeless = await open_desk(answering(*wrong))

    assert (await execute(patient, [echo_tool([])])).output == "done"
    run = await execute(hopeless, [echo_tool([])])
    assert run.stopped is Stopped.MAX_ERRORS
    assert "there is no tool 'ecko'" in run.detail
    assert len(hopeless.model.calls) == 3


async def test_a_refusal_by_a_person_is_no_error_of_the_model():
    desk = await open_desk(answering(*((call(f"{n}"),) for n in range(4)), "done"))
    journal = desk.open_journal()
    tool = echo_tool([])
    for n in range(1, 5):
        no = Observation(passage=Passage(text=f"no {n}", origin="person"), is_error=True)
        await journal._put_observation(f"execute/{n}/tool/1", no, "request")

    assert (await execute(desk, [tool])).output == "done"


async def test_after_the_same_call_with_the_same_outcome_three_times_only_the_answer_is_asked_for():
    seen: list[str] = []
    desk = await open_desk(
        answering((call("a"),), (call("b"),), (call("a"),), (call("a"),), "done")
    )

    run = await execute(desk, [echo_tool(seen)])

    assert (run.stopped, run.text) == (Stopped.REPEATED, "done")
    assert desk.model.calls[-1][1].messages[-1].text == say("answer_now")
    assert "echo was called 3 times with the same arguments and the same outcome" in run.detail
    assert seen == ["a", "b", "a", "a"]


async def test_the_same_call_with_another_outcome_each_time_is_no_loop():
    seen: list[str] = []

    async def count_up(arguments):
        seen.append("call")
        return Passage(text=str(len(seen)), origin="tool:echo")

    desk = await open_desk(answering(*((call("a"),) for _ in range(5)), "done"))

    run = await execute(desk, [replace(echo_tool([]), run=count_up)])

    assert (run.output, len(seen)) == ("done", 5)


async def test_the_limit_of_time_cancels_the_call_that_is_in_flight():
    cancelled: list[str] = []

    async def hang(arguments):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("tool")
            raise

    desk = await open_desk(answering((call("a"),), "late"))

    run = await execute(
        desk, [replace(echo_tool([]), run=hang)], max_time_s=0.05, at_limit=AtLimit.FORCE
    )

    assert (run.output, run.stopped, cancelled) == (NO_ANSWER, Stopped.MAX_TIME, ["tool"])


async def test_a_time_out_of_a_tool_is_no_end_of_the_run():
    async def hang(arguments):
        await asyncio.Event().wait()

    desk = await open_desk(answering((call("a"),), "done"))

    run = await execute(desk, [replace(echo_tool([]), run=hang, timeout_s=0.01)], max_time_s=30)

    assert run.output == "done"
    assert "took longer than 0.01 s" in run.steps[0].observations[0].passage.text


async def test_calls_of_one_reply_run_side_by_side_up_to_the_cap_and_keep_their_order():
    running, peak = 0, 0

    async def slow(arguments):
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running -= 1
        return Passage(text=f"echo {arguments['word']}", origin="tool:echo")

    desk = await open_desk(answering(tuple(call(str(n), number=n) for n in range(6)), "done"))

    run = await execute(desk, [replace(echo_tool([]), run=slow)], max_parallel=3)

    assert peak == 3
    assert [observation.passage.text for observation in run.steps[0].observations] == [
        f"echo {n}" for n in range(6)
    ]
    steps = await desk.world.store.steps(desk.claim.task.objective_id, owner="task:1")
    key_by_text = {
        json.loads(step.output)["passage"]["text"]: step.key
        for step in steps
        if step.kind == "tool"
    }
    assert key_by_text == {f"echo {n}": f"1/execute/1/tool/{n + 1}" for n in range(6)}


async def test_a_call_that_must_not_be_repeated_runs_alone_in_its_place():
    order: list[str] = []

    async def note(arguments):
        order.append(f"begin {arguments['word']}")
        await asyncio.sleep(0)
        order.append(f"end {arguments['word']}")
        return Passage(text=arguments["word"], origin="tool:x")

    read = replace(echo_tool([]), run=note)
    once = replace(read, name="once", effect=Effect.ONCE)
    calls = (
        call("a", number=1),
        call("b", number=2),
        call("c", name="once", number=3),
        call("d", number=4),
    )
    desk = await open_desk(answering(calls, "done"))
    journal = Journal(
        desk.open_journal()._backends, fence=desk.claim.fence, prefix="1/", approval=Approval.NONE
    )

    await Executor(tools=[read, once], calls=journal, protocol="native").run(ASK)

    assert order == ["begin a", "begin b", "end a", "end b", "begin c", "end c", "begin d", "end d"]


async def test_a_fault_of_the_store_in_one_call_is_raised_as_it_is():
    class Broken:
        def __init__(self, calls):
            self._calls = calls

        def __getattr__(self, name):
            return getattr(self._calls, name)

        async def call_tool(self, path, tool, arguments):
            raise LeaseLostError("gone")

    desk = await open_desk(answering((call("a", number=1), call("b", number=2))))

    with pytest.raises(LeaseLostError):
        await Executor(tools=[echo_tool([])], calls=Broken(desk.open_journal())).run(ASK)


async def test_a_tool_that_returns_directly_ends_the_run_with_what_it_gave():
    desk = await open_desk(answering((call("hello"),)))

    run = await execute(desk, [replace(echo_tool([]), return_direct=True)])

    assert (run.output, run.stopped, len(desk.model.calls)) == ("echo hello", Stopped.FINISH, 1)


async def test_the_signals_tell_every_step_in_order_and_the_last_holds_the_run():
    desk = await open_desk(answering((call("hello"),), "it said hello"))

    signals = [signal async for signal in open_executor(desk, [echo_tool([])]).iter(ASK)]

    kinds = [type(signal) for signal in signals]
    first = [RunStarted, ModelAsked, ModelDecided, ToolStarted, ToolEnded, StepEnded]
    assert kinds == [*first, ModelAsked, ModelDecided, StepEnded, RunEnded]
    assert signals[-1].run.output == "it said hello"


async def test_a_callback_sees_what_iter_yields():
    desk = await open_desk(answering("done"))
    seen: list[object] = []

    await open_executor(desk).run(ASK, on_signal=seen.append)

    assert [type(signal) for signal in seen] == [
        RunStarted,
        ModelAsked,
        ModelDecided,
        StepEnded,
        RunEnded,
    ]


async def test_a_run_can_be_driven_by_hand_plan_call_append():
    seen: list[str] = []
    desk = await open_desk(answering((call("hello"),), (call("again"),), "it said hello"))
    executor, steps = open_executor(desk, [echo_tool(seen)]), list[AgentStep]()

    for n, before in enumerate(([], ["hello"], ["hello", "again"]), start=1):
        planned = await executor.plan(ASK, steps)
        assert seen == before
        steps.append(to_step(n, planned, await executor.call(planned.value, n=n)))

    assert isinstance(steps[-1].decision, Finish) and steps[-1].decision.output == "it said hello"


async def test_trimming_shortens_the_request_and_never_the_result():
    desk = await open_desk(answering((call("one"),), (call("two"),), (call("three"),), "done"))

    run = await execute(desk, [echo_tool([])], trim=lambda steps: steps[-1:])

    last = "".join(message.text for message in desk.model.calls[-1][1].messages)
    assert "echo three" in last and "echo two" not in last
    assert len(run.steps) == 4


async def test_a_replay_calls_neither_the_model_nor_a_tool():
    seen: list[str] = []
    desk = await open_desk(answering((call("hello"),), "it said hello"))
    first = await execute(desk, [echo_tool(seen)])

    again = await execute(desk, [echo_tool(seen)])

    assert again == first
    assert (len(desk.model.calls), seen) == (2, ["hello"])


def takes_no_tools(prompt, role):
    """An endpoint that refuses tools, in front of a model that writes what text asks for."""
    if prompt.tools:
        return ToolsUnsupportedError("this model does not support tools")
    n = sum(message.speaker is Speaker.ASSISTANT for message in prompt.messages)
    return (
        f"I say it.\nAction: echo\nAction Input: word {n}" if n < 2 else "Final Answer: it said so"
    )


async def test_auto_goes_over_to_text_when_the_endpoint_takes_no_tools_and_remembers_it():
    seen: list[str] = []
    desk = await open_desk(takes_no_tools)
    executor = open_executor(desk, [echo_tool(seen)], protocol="auto")

    run = await executor.run(ASK)

    assert (run.output, seen, executor.has_fallen_back) == (
        "it said so",
        ["word 0", "word 1"],
        True,
    )
    assert sum(bool(prompt.tools) for _, prompt in desk.model.calls) == 1


async def test_a_replay_after_the_change_to_text_asks_nothing_again():
    seen: list[str] = []
    desk = await open_desk(takes_no_tools)
    first = await open_executor(desk, [echo_tool(seen)], protocol="auto").run(ASK)
    n_calls = len(desk.model.calls)

    again = await open_executor(desk, [echo_tool(seen)], protocol="auto").run(ASK)

    assert again == first
    assert (len(desk.model.calls), seen) == (n_calls, ["word 0", "word 1"])


async def test_a_protocol_that_was_set_is_not_changed():
    desk = await open_desk(takes_no_tools)

    with pytest.raises(ToolsUnsupportedError):
        await execute(desk, [echo_tool([])])


async def test_a_reply_that_cannot_be_read_is_asked_for_again_and_leaves_the_conversation():
    desk = await open_desk(
        answering("no label", "Action: echo\nAction Input: hello", "Final Answer: done")
    )

    run = await open_executor(desk, [echo_tool([])], protocol="text").run(ASK)

    assert run.output == "done"
    told = desk.model.calls[1][1].messages[-1].text
    assert 'Expected the lines "Action:"' in told
    assert "no label" not in "".join(message.text for message in desk.model.calls[2][1].messages)


UNREADABLE = {"text": "no label", "json": "no object"}
ANSWERS = {
    "text": "Final Answer: done",
    "json": '{"thought": "", "tool": "final_answer", "tool_input": "done"}',
}


@pytest.mark.parametrize("protocol", UNREADABLE)
@pytest.mark.parametrize(
    ("on_malformed", "told"),
    [
        (True, {"text": "Expected the lines", "json": "not valid JSON"}),
        ("Mind the form.", dict.fromkeys(UNREADABLE, "Mind the form. Reply again.")),
        (lambda hint: f"No: {hint}", {"text": "No: Expected", "json": "No: The reply is not"}),
    ],
    ids=["true", "text", "function"],
)
async def test_the_message_to_the_model_about_an_unreadable_reply_can_be_chosen(
    protocol, on_malformed, told
):
    desk = await open_desk(answering(UNREADABLE[protocol], ANSWERS[protocol]))

    run = await open_executor(
        desk, [echo_tool([])], protocol=protocol, on_malformed=on_malformed
    ).run(ASK)

    assert run.output == "done"
    assert told[protocol] in desk.model.calls[1][1].messages[-1].text


@pytest.mark.parametrize("protocol", UNREADABLE)
async def test_a_reply_that_cannot_be_read_can_end_the_run_at_once(protocol):
    desk = await open_desk(answering(UNREADABLE[protocol], ANSWERS[protocol]))

    run = await open_executor(desk, [echo_tool([])], protocol=protocol, on_malformed=False).run(ASK)

    assert (run.stopped, run.output, len(desk.model.calls)) == (Stopped.MAX_ERRORS, "", 1)
    assert run.detail.startswith("the model gave a reply that cannot be read: ")


@pytest.mark.parametrize(
    ("protocol", "text"),
    [
        ("text", "Final Answer: the beginning of"),
        ("json", '{"thought": "", "tool": "final_answer", "tool_input": "the beginning of'),
        ("native", "the beginning of"),
    ],
)
async def test_an_answer_that_is_cut_off_every_time_is_taken_as_it_is_in_every_protocol(
    protocol, text
):
    desk = await open_desk(answering(completion(text, finish_reason="length")))

    run = await open_executor(desk, [echo_tool([])], protocol=protocol).run(ASK)

    assert (run.output, run.stopped) == ("the beginning of", Stopped.FINISH)
    assert len(desk.model.calls) == 3


async def test_a_call_whose_text_was_cut_off_is_never_run():
    half = completion("Action: echo\nAction Input: hel", finish_reason="length")
    seen: list[str] = []
    desk = await open_desk(answering(half))

    run = await open_executor(desk, [echo_tool(seen)], protocol="text").run(ASK)

    assert (seen, run.stopped) == ([], Stopped.MAX_ERRORS)


@pytest.mark.parametrize(
    ("protocol", "reply"),
    [
        ("json", '{"thought": "", "tool": "fail_task", "tool_input": "no network"}'),
        ("text", "Thought: it is off\nAction: fail_task\nAction Input: no network"),
        ("native", (ToolCall(id="c", name="fail_task", arguments='{"reason": "no network"}'),)),
        ("native", '{"tool": "fail_task", "tool_input": "no network"}'),
    ],
)
async def test_a_task_that_the_model_gives_up_says_why(protocol, reply):
    desk = await open_desk(answering(reply))

    run = await open_executor(desk, [echo_tool([])], protocol=protocol).run(ASK)

    assert (run.stopped, run.detail, run.output) == (Stopped.FAIL, "no network", "")
    assert len(desk.model.calls) == 1


@pytest.mark.parametrize("protocol", ["text", "json", "native"])
async def test_plain_text_at_the_limit_is_the_answer_in_every_protocol(protocol):
    forced = await open_executor(
        await open_desk(answering("plain words")), [echo_tool([])], protocol=protocol
    )._generate(ASK, [], None)

    assert forced[1] == "plain words"


@pytest.mark.parametrize("protocol", UNREADABLE)
@pytest.mark.parametrize(
    "reply", ["The capital is Paris.", "I will echo hello.", 'Action:\n{"word": "hello"}']
)
async def test_three_unreadable_replies_end_the_run_say_why_and_the_last_one_is_kept(
    protocol, reply
):
    desk = await open_desk(lambda prompt, role: reply)

    run = await open_executor(desk, [echo_tool([])], protocol=protocol).run(ASK)

    assert (run.output, run.stopped, run.unread) == ("", Stopped.MAX_ERRORS, reply)
    assert "no usable reply in 3 tries" in run.detail and len(desk.model.calls) == 3


async def test_a_reply_that_was_read_leaves_nothing_unread():
    desk = await open_desk(answering("no label", "Final Answer: done"))

    run = await open_executor(desk, [echo_tool([])], protocol="text").run(ASK)

    assert (run.output, run.unread) == ("done", "")


@pytest.mark.parametrize(
    ("protocol", "reply"),
    [
        ("native", "a"),
        ("json", '{"tool": "final_answer", "tool_input": "a"}'),
        ("text", "Final Answer: a"),
    ],
)
async def test_stop_words_are_sent_beside_those_of_the_protocol(protocol, reply):
    desk = await open_desk(answering(reply))

    await open_executor(
        desk, [echo_tool([])], protocol=protocol, stop_words=("Stop", "\nObservation:")
    ).run(ASK)

    (stop,) = [prompt.stop for _, prompt in desk.model.calls]
    assert {"Stop", "\nObservation:"} <= set(stop)
    assert len(stop) == len(set(stop)) == (3 if protocol == "text" else 2)


# -- what is lacking, and an answer that was chosen in JSON
# --------------------------------------------------------------------------------------------------


def open_lacking(desk, tools=(), *, protocol="native", **bounds):
    return Executor(
        tools=tools,
        calls=desk.open_journal(),
        protocol=protocol,
        says_lacking=True,
        bounds=AgentBounds(max_output_tokens=100, **bounds),
    )


def lacking(what):
    return ToolCall(id="c", name="lacking", arguments=json.dumps({"what": what}))


LACKS = {
    "native": (lacking("the price"),),
    "json": '{"thought": "", "tool": "lacking", "tool_input": "the price"}',
    HELD: '{"thought": "", "tool": "lacking", "tool_input": "the price"}',
    "text": "Action: fail_task\nAction Input: the price",
}


@pytest.mark.parametrize("protocol", LACKS)
async def test_a_lack_before_any_look_is_answered_once_with_look_first(protocol):
    desk = await open_desk(answering(LACKS[protocol]))

    run = await open_lacking(desk, [echo_tool([])], protocol=protocol).run(ASK)

    assert (run.stopped, run.detail, run.text) == (Stopped.FAIL, "the price", "")
    assert say("look_first") in desk.model.calls[1][1].messages[-1].text
    assert len(desk.model.calls) == 2
    again = await open_lacking(desk, [echo_tool([])], protocol=protocol).run(ASK)
    assert again == run and len(desk.model.calls) == 2


async def test_a_lack_after_a_look_ends_the_run_with_what_was_said_beside_it():
    partly = completion("April cost 3.", tool_calls=(lacking("the price of May"),))
    desk = await open_desk(answering((call("a"),), partly))

    run = await open_lacking(desk, [echo_tool([])]).run(ASK)

    assert (run.stopped, run.detail) == (Stopped.FAIL, "the price of May")
    assert run.text == "April cost 3."


async def test_a_lack_at_the_last_question_is_a_lack():
    partly = completion("April cost 3.", tool_calls=(lacking("the price of May"),))
    numbers = iter(range(100))
    desk = await open_desk(
        lambda prompt, role: partly if len(prompt.tools) == 1 else (call(str(next(numbers))),)
    )

    run = await open_lacking(desk, [echo_tool([])], max_steps=2).run(ASK)

    assert (run.stopped, run.detail) == (Stopped.FAIL, "the price of May")
    assert run.text == "April cost 3."


@pytest.mark.parametrize("tools", [[], ["recall"]], ids=["none", "recall"])
async def test_with_nothing_to_look_with_a_lack_counts_at_once(tools):
    desk = await open_desk(answering((lacking("the price"),)))

    run = await open_lacking(desk, [replace(echo_tool([]), name=one) for one in tools]).run(ASK)

    assert (run.stopped, len(desk.model.calls)) == (Stopped.FAIL, 1)


async def test_a_recall_is_no_look():
    recall = replace(echo_tool([]), name="recall")
    desk = await open_desk(answering((call("a", name="recall"),), (lacking("the price"),)))

    await open_lacking(desk, [echo_tool([]), recall]).run(ASK)

    assert len(desk.model.calls) == 3


async def test_with_other_calls_a_lack_is_left_out_and_the_model_decides_anew():
    seen: list[str] = []
    desk = await open_desk(answering((lacking("the price"), call("a")), "It is 3."))

    run = await open_lacking(desk, [echo_tool(seen)]).run(ASK)

    assert (run.output, seen) == ("It is 3.", ["a"])


async def test_an_agent_of_ones_own_keeps_giving_up_without_a_look():
    desk = await open_desk(
        answering((ToolCall(id="c", name="fail_task", arguments='{"reason": "no network"}'),))
    )

    run = await execute(desk, [echo_tool([])])

    assert (run.stopped, run.detail, len(desk.model.calls)) == (Stopped.FAIL, "no network", 1)


async def test_an_answer_chosen_in_json_is_asked_for_as_plain_text_at_a_key_of_its_own():
    step = '{"thought": "I know.", "tool": "answer"}'
    desk = await open_desk(lambda prompt, role: step if prompt.schema else "It is 3.")

    run = await open_executor(desk, [echo_tool([])], protocol=HELD).run(ASK)

    assert (run.output, run.stopped, run.usage.calls) == ("It is 3.", Stopped.FINISH, 2)
    assert list(await desk.outputs()) == ["1/execute/1/model", "1/execute/1/answer"]
    again = await open_executor(desk, [echo_tool([])], protocol=HELD).run(ASK)
    assert again == run and len(desk.model.calls) == 2


async def test_an_answer_of_a_type_is_held_to_its_schema_after_the_choice():
    def answer(prompt, role):
        return '{"thought": "", "tool": "answer"}' if prompt.schema_name == "step" else "[3]"

    desk = await open_desk(answer)
    executor = Executor(
        tools=[echo_tool([])],
        calls=desk.open_journal(),
        protocol=HELD,
        output=output_type_of(list[int]),
    )

    run = await executor.run(ASK)

    assert run.output == [3]
    assert [prompt.schema_name for _, prompt in desk.model.calls] == ["step", "answer"]


async def test_without_tools_auto_offers_the_lack_alone_where_native_calls_were_seen():
    desk = await open_desk(answering((lacking("the price"),)))

    run = await open_lacking(desk, protocol="auto").run(ASK)

    assert [tool.name for tool in desk.model.calls[0][1].tools] == ["lacking"]
    assert (run.stopped, run.detail) == (Stopped.FAIL, "the price")


async def test_the_mark_of_the_fences_is_one_for_all_calls_and_goes_into_no_argument():
    seen: list[str] = []
    marks: list[str] = []

    def answer(prompt, role):
        found = re.search(r"<<observation (\w+) from", prompt.messages[-1].text)
        marks.extend(found.groups() if found else ())
        if len(marks) == 2:
            return "done"
        return (call(f"see {marks[-1]}" if marks else "a"),)

    desk = await open_desk(answer)

    await execute(desk, [echo_tool(seen)])

    assert seen == ["a", "see "] and marks[0] == marks[1]
