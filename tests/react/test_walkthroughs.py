"""Two questions from start to end in every protocol, killed between any two steps, with no call
made twice. The kills here are exceptions; real ones are in `tests/system/test_walkthroughs.py`."""

import pytest

from babyagi.react.executor import Executor
from babyagi.react.steps import Act, AgentBounds, Stopped
from tests.react.walkthroughs import HARBOUR, INVOICES, PROTOCOLS, build_tools
from tests.test_journal import open_desk

WALKTHROUGHS = pytest.mark.parametrize("walk", [HARBOUR, INVOICES], ids=["harbour", "invoices"])
SPOKEN = pytest.mark.parametrize("spoken", PROTOCOLS)


class Killed(BaseException):
    """The end of the process, as far as the code that runs can tell."""


class MortalCalls:
    """A journal whose process dies before its call number `dies_before`."""

    def __init__(self, calls, dies_before):
        self._calls, self._left = calls, dies_before

    def _live(self):
        self._left -= 1
        if self._left == 0:
            raise Killed

    async def complete(self, path, prompt, *, role):
        self._live()
        return await self._calls.complete(path, prompt, role=role)

    async def call_tool(self, path, tool, arguments):
        self._live()
        return await self._calls.call_tool(path, tool, arguments)

    def __getattr__(self, name):
        return getattr(self._calls, name)


def open_executor(desk, spoken, made, *, dies_before=0):
    calls = MortalCalls(desk.open_journal(), dies_before)
    return Executor(
        tools=build_tools(made.append),
        calls=calls,
        protocol=PROTOCOLS[spoken],
        bounds=AgentBounds(max_steps=len(INVOICES.calls) + 1),
    )


@SPOKEN
@WALKTHROUGHS
async def test_the_question_is_answered_in_every_protocol(walk, spoken):
    desk, made = await open_desk(walk.model_answer(spoken)), list[str]()

    run = await open_executor(desk, spoken, made).run(walk.messages)

    assert (run.output, run.stopped) == (walk.answer, Stopped.FINISH)
    acts = [step for step in run.steps if isinstance(step.decision, Act)]
    assert [call.name for step in acts for call in step.decision.calls] == [
        name for name, _ in walk.calls
    ]
    assert [step.observations[0].passage.text for step in acts] == list(walk.given)
    assert len(desk.model.calls) == len(walk.calls) + 1


@pytest.mark.thorough
@SPOKEN
@WALKTHROUGHS
async def test_a_kill_between_any_two_steps_repeats_no_call(walk, spoken):
    n_calls = 2 * len(walk.calls) + 1
    for dies_before in range(1, n_calls + 1):
        desk, made = await open_desk(walk.model_answer(spoken)), list[str]()
        with pytest.raises(Killed):
            await open_executor(desk, spoken, made, dies_before=dies_before).run(walk.messages)

        run = await open_executor(desk, spoken, made).run(walk.messages)

        assert (run.output, run.stopped) == (walk.answer, Stopped.FINISH)
        assert len(desk.model.calls) == len(walk.calls) + 1
        assert made == walk.calls_made


@SPOKEN
async def test_text_that_a_model_made_up_is_not_in_its_next_prompt(spoken):
    desk = await open_desk(INVOICES.model_answer(spoken))

    await open_executor(desk, spoken, []).run(INVOICES.messages)

    assert not any(
        "made up" in message.text for _, prompt in desk.model.calls for message in prompt.messages
    )
