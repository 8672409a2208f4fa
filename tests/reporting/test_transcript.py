import json

import pytest

from babyagi.inbox import APPROVAL, QUESTION, write_request
from babyagi.llm.kept import write_prompt
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolCall
from babyagi.reporting.transcript import describe_step, first_line, read_exchanges, write_call
from babyagi.tasks import Passage, StepState, Usage
from babyagi.tools.base import Observation
from tests.cli import samples

KEY = "sk-proj-" + "a1B2c3D4" * 5


def gave(text, *, is_error=False, origin="file:a.md"):
    return Observation(passage=Passage(text=text, origin=origin), is_error=is_error).to_json()


def tool_step(**changes):
    request = write_request("read_file", {"path": "a.md"})
    values = {"kind": "tool", "key": "1/execute/1/tool/1", "request": request, "output": gave("x")}
    return samples.step(**{**values, **changes})


def texts(step):
    (exchange,) = read_exchanges([step])
    return {part.label: part.text for part in exchange.parts}


def test_a_call_of_a_model_is_its_prompt_and_its_reply():
    prompt = Prompt(messages=(Message(speaker=Speaker.USER, text="Which year?"),))
    call = ToolCall(id="1", name="search", arguments='{"text": "year"}')
    reply = Completion(text="Let me look.", tool_calls=(call,), model="m", usage=Usage())
    step = samples.step(request=write_prompt(prompt), output=reply.to_json())

    assert texts(step) == {
        "user": "Which year?",
        "reply": "Let me look.",
        "calls": 'search(text="year")',
    }
    (exchange,) = read_exchanges([step])
    assert (exchange.took_s, exchange.missing) == (2.0, "")


def test_a_call_that_has_no_outcome_shows_what_was_asked():
    prompt = Prompt(messages=(Message(speaker=Speaker.USER, text="Which year?"),))
    step = samples.step(
        request=write_prompt(prompt), output=None, state=StepState.INTENDED, done_at=None
    )

    assert texts(step) == {"user": "Which year?"}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (tool_step(), 'tool read_file(path="a.md") → 1 byte'),
        (tool_step(output=gave("x" * 3100)), 'tool read_file(path="a.md") → 3.1 kB'),
        (
            tool_step(output=gave("there is no\nsuch file", is_error=True)),
            'tool read_file(path="a.md") failed: there is no',
        ),
        (tool_step(request=""), "tool ? → 1 byte"),
        (
            tool_step(state=StepState.INTENDED, output=None),
            'tool read_file(path="a.md") (intended)',
        ),
        (tool_step(kind=QUESTION, output=gave("1999", origin="person")), "question: answer"),
        (
            tool_step(kind=QUESTION, state=StepState.ASKED, output=None),
            "question: not answered yet",
        ),
        (
            tool_step(kind=APPROVAL, output=gave("no", is_error=True)),
            'approval of read_file(path="a.md"): rejected',
        ),
        (samples.step(), "model gpt-6-luna"),
    ],
)
def test_a_step_is_described_in_one_line(step, said):
    assert describe_step(step) == said


def test_no_text_and_no_title_of_a_step_shows_a_key():
    request = write_request("send", {"token": KEY, "to": "hidden-word"})
    step = tool_step(request=request, output=gave(f"the key is {KEY}, hidden-word"))

    (exchange,) = read_exchanges([step], secrets=["hidden-word"])

    said = exchange.title + "".join(part.text for part in exchange.parts)
    assert KEY not in said and "hidden-word" not in said


@pytest.mark.parametrize("output", ["", "no JSON", "[]", "7", '{"text": 1}', "[" * 100_000])
@pytest.mark.parametrize("kind", ["model", "tool", "question", "inputs", "embedding"])
def test_a_step_that_cannot_be_read_is_shown_without_its_texts(kind, output):
    step = samples.step(kind=kind, output=output, request=output)

    (exchange,) = read_exchanges([step])

    assert exchange.title


def test_a_call_is_written_as_one_bounded_line():
    assert write_call("f", {}) == "f()"
    assert write_call("f", "not JSON\n") == "f(not JSON)"
    assert write_call("f", json.dumps({"a": [1, "é"]})) == 'f(a=[1, "é"])'
    assert len(write_call("f", {"a": "x" * 9999, "b": "y" * 9999}, is_short=True)) < 200


def test_the_first_line_of_a_result_says_something():
    assert first_line("\n\n## Findings\nmore") == "Findings"
    assert first_line("It holds:\n\n- one\n- two") == "It holds: one"
    assert first_line("**Answer:**\n\nThey run at **02:00**.") == "Answer: They run at 02:00."
    assert first_line("**Answer:** at 02:00") == "Answer: at 02:00"
    assert first_line("**Answer**") == "Answer"
    assert first_line("---\n\n* at 02:00") == "at 02:00"
    assert first_line("-3 degrees") == "-3 degrees"
    assert first_line("") == ""
