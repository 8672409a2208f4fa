"""Self-reflection: judge, put differently, try again; bounded, journaled, and off unless it is
asked for."""

import json
from dataclasses import replace

import pytest

from babyagi.react.executor import Executor
from babyagi.tasks import Effect, Passage
from tests.react.test_executor import ASK, call, echo_tool
from tests.test_journal import open_desk

GOOD = '{"aligned": true, "input": null}'


def better(word):
    return json.dumps({"aligned": False, "input": {"word": word}})


def model_of(*verdicts):
    """A model that calls echo once, judges as told, and answers with what it was shown."""
    left = list(verdicts)

    def answer(prompt, role):
        if "You judge one call" in prompt.messages[0].text:
            return left.pop(0)
        return prompt.messages[-1].text if len(prompt.messages) > 1 else (call("sun"),)

    return answer


async def reflect(verdicts, *, reflect=2, tool=None, desk=None):
    seen: list[str] = []
    desk = desk or await open_desk(model_of(*verdicts))
    executor = Executor(
        tools=[replace(tool or echo_tool(seen), reflect=reflect)],
        calls=desk.open_journal(),
        protocol="native",
    )
    run = await executor.run(ASK)
    return run, seen, desk


async def test_a_call_that_fits_is_made_once_and_judged_once():
    run, seen, desk = await reflect([GOOD])

    assert seen == ["sun"]
    assert "echo sun" in run.output
    assert len(desk.model.calls) == 3


async def test_a_call_that_does_not_fit_is_put_differently_and_the_last_one_counts():
    run, seen, _ = await reflect([better("sunlight"), GOOD])

    assert seen == ["sun", "sunlight"]
    assert "echo sunlight" in run.output
    assert '(asked with other words: {"word": "sunlight"})' in run.output


async def test_no_more_is_tried_than_the_tool_allows():
    run, seen, _ = await reflect([better("a"), better("b"), better("c")], reflect=2)

    assert seen == ["sun", "a", "b"]
    assert "echo b" in run.output


async def test_by_default_nothing_is_reflected_upon():
    _, seen, desk = await reflect([], reflect=0)

    assert (seen, len(desk.model.calls)) == (["sun"], 2)


@pytest.mark.parametrize(
    "verdict",
    [
        "nonsense",
        "{}",
        '{"aligned": "no"}',
        better("sun"),
        '{"aligned": false, "input": {"nothing": 1}}',
    ],
)
async def test_a_judge_that_cannot_be_understood_leaves_the_call_as_it_is(verdict):
    _, seen, _ = await reflect([verdict] * 3)

    assert seen == ["sun"]


async def test_a_judge_is_asked_again_for_the_form_of_a_verdict():
    told: list[str] = []

    def answer(prompt, role):
        if "You judge one call" not in prompt.messages[0].text:
            return prompt.messages[-1].text if len(prompt.messages) > 1 else (call("sun"),)
        told.append(prompt.messages[-1].text)
        return "nonsense" if len(told) == 1 else GOOD

    await reflect([], desk=await open_desk(answer))

    assert len(told) == 2
    assert '"aligned"' in told[1] and "tool_input" not in told[1]


async def test_every_call_and_judgement_is_a_step_and_a_replay_makes_none_again():
    _, _, desk = await reflect([better("sunlight"), GOOD])
    n_calls = len(desk.model.calls)

    _, again, _ = await reflect([], desk=desk)

    keys = [
        step.key
        for step in await desk.world.store.steps(desk.claim.task.objective_id, owner="task:1")
    ]
    path = "1/execute/1/tool/1"
    assert {f"{path}/call/1", f"{path}/judge/1", f"{path}/call/2", f"{path}/judge/2", path} <= set(
        keys
    )
    assert (len(desk.model.calls), again) == (n_calls, [])


async def test_a_failing_call_can_be_mended_and_what_it_says_is_the_error():
    async def run(arguments):
        if arguments["word"] == "sun":
            raise RuntimeError("broken")
        return Passage(text="it works", origin="tool:echo")

    mended, _, _ = await reflect([better("sunlight"), GOOD], tool=replace(echo_tool([]), run=run))
    failed, _, _ = await reflect([GOOD], tool=replace(echo_tool([]), run=run))

    assert "it works" in mended.output
    assert (
        failed.steps[0].observations[0].is_error
        and "echo failed: RuntimeError" in failed.steps[0].observations[0].passage.text
    )


def test_a_call_that_must_not_be_repeated_cannot_be_reflected_upon():
    with pytest.raises(ValueError, match="must not be repeated"):
        replace(echo_tool([]), effect=Effect.ONCE, reflect=1)
