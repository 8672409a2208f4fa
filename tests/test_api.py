"""Objectives from Python: functions as tools, answers of a type, what happens as it happens."""

import asyncio
import os
import signal
import threading
import traceback
from dataclasses import dataclass
from typing import Any, Literal, cast

import pytest

import babyagi
from babyagi import api, events
from babyagi.app.backends import open_store, utc_now
from babyagi.errors import CredentialsError, SettingsError
from babyagi.journal import TextPiece
from babyagi.llm.prompt import Speaker, ToolCall
from babyagi.settings.load import load_here
from babyagi.tasks import Duty, Role
from babyagi.taskstore.sqlite import MemoryTaskStore
from babyagi.verbs.json_shapes import status_shape
from support.scripted import ScriptedModel
from support.workers import join
from tests.cli import samples
from tests.taskstore.contract import make_worker


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "builtin")
    monkeypatch.chdir(tmp_path)


@dataclass
class Price:
    item: str
    cost: float


@babyagi.tool(effect="read")
def price(item: str) -> float:
    """Look up what an item costs."""
    return 5.0


def shop(output="", *, tool="price", arguments='{"item": "tea"}'):
    """A model that looks the price up once, and reports it."""

    def answer(prompt, role):
        agent = prompt.messages[0].text.split()[1]
        if agent == "execution":
            seen = [one for one in prompt.messages if one.speaker is Speaker.TOOL]
            if not seen:
                return (ToolCall(id="c", name=tool, arguments=arguments),)
            return f"Tea: {seen[-1].text.splitlines()[1]}, as the list of prices says."
        said = {"creation": '{"tasks": []}', "output": output}
        return said.get(agent, "Tea costs 5.0.")

    return ScriptedModel(answer)


def run(model=None, **options):
    return babyagi.run(
        "What does tea cost?",
        **{"first_task": "Look the price up", "model": model or shop(), **options},
    )


def test_functions_are_tools_of_the_loop():
    outcome = run(tools=[price])

    assert outcome.results[0].text == "Tea: 5.0, as the list of prices says."
    assert outcome.stop_reason is babyagi.StopReason.FINISHED
    assert outcome.output == outcome.report and outcome.report.startswith("# Report")
    assert repr(outcome).startswith("<ObjectiveOutcome: objective 1, finished, 1 results")
    assert str(outcome) == outcome.report


@pytest.mark.parametrize("option", [{"files": ["notes", "more"]}, {"model": ["a", "b"]}])
def test_a_list_where_one_value_is_wanted_is_refused_before_anything_is_begun(option):
    with pytest.raises((babyagi.BabyagiError, TypeError), match=r"one FOLDER, not 2|not list"):
        run(**option)


def test_a_bare_function_is_called_without_asking_for_approval_and_may_fail():
    def buy(item: str) -> str:
        """Buy an item."""
        raise LookupError("it is sold out")

    outcome = run(shop(tool="buy"), tools=[buy])

    assert "buy failed: LookupError: it is sold out; it may have been" in outcome.results[0].text


@pytest.mark.parametrize("is_async", [False, True])
def test_a_result_can_be_enriched_before_it_is_recorded(is_async):
    given = []

    def enrich(task, result):
        given.append((task, result))
        return f"{result}\n\nChecked: {len(result)} characters."

    async def enrich_later(task, result):
        return enrich(task, result)

    outcome = run(shop(), tools=[price], enrich=enrich_later if is_async else enrich)

    (found,) = outcome.results
    (one,) = given
    assert found.task_name == one[0]
    assert found.text == f"{one[1]}\n\nChecked: {len(one[1])} characters."


@pytest.mark.parametrize("given", ["", "  ", 5])
def test_a_hook_that_gives_nothing_leaves_the_result_and_one_that_gives_no_text_fails(given):
    outcome = run(shop(), tools=[price], enrich=lambda task, result: given, max_failures=1)

    if isinstance(given, str):
        assert outcome.results[0].text.startswith("Tea: 5.0")
    else:
        assert outcome.results == ()


def test_a_function_that_is_to_be_approved_waits_for_a_person():
    asked = []

    def approve(question):
        asked.append(question)
        return "yes"

    @babyagi.tool(asks_approval=True)
    def buy(item: str) -> str:
        """Buy an item."""
        return "bought for 5.0"

    outcome = run(shop(tool="buy"), tools=[buy], ask=approve)

    assert asked == ['may this call be made? buy(item="tea")']
    assert outcome.results[0].text.startswith("Tea: bought")


async def test_a_question_is_put_to_whoever_can_be_asked():
    async def ask(question):
        return "green tea"

    model = shop(tool="ask_user", arguments='{"question": "Which tea?"}')
    outcome = await babyagi.run_async("What does it cost?", model=model, ask=ask)

    assert outcome.results[0].text.startswith("Tea: green tea")


async def test_while_a_person_thinks_the_objective_does_not_end_and_no_report_is_paid_for():
    async def ask(question):
        async with open_store(load_here({})) as store:
            last = 0
            while (newest := await store.last_event_id(1)) != last:  # until nothing happens
                last = newest
                await store.wait_for_events(1, after_id=last, timeout_s=0.3)
        return "green tea"

    model = shop(tool="ask_user", arguments='{"question": "Which tea?"}')
    outcome = await babyagi.run_async("What does it cost?", model=model, ask=ask)

    assert outcome.results[0].text.startswith("Tea: green tea")
    async with open_store(load_here({})) as store:
        ends = await store.events(1, kinds=[events.OBJECTIVE_ENDED], limit=9, from_end=True)
        assert [event.data["reason"] for event in ends] == ["finished"]


def test_names_of_tools_that_ship_and_functions_stand_in_one_list():
    model = shop()
    run(model, tools=["calculator", price])

    offered = [tool.name for tool in model.calls[0][1].tools]
    assert offered == ["calculator", "price", "lacking"]
    with pytest.raises(ValueError, match="'calculator' is a built-in tool"):
        run(tools=[babyagi.tool(name="calculator")(price.function)])


def stopped_after_its_start(**options):
    for event in babyagi.stream("What does tea cost?", first_task="Look", **options):
        if isinstance(event, babyagi.TaskStarted):
            break


def test_continuing_needs_the_same_functions_again():
    started = threading.Event()

    def wait(item: str) -> float:
        """Look up what an item costs."""
        started.set()
        return 5.0

    stopped_after_its_start(model=shop(tool="wait"), tools=[wait], max_tasks=3)

    def other(item: str, n: int) -> float:
        """Look up what an item costs."""
        return 1.0

    same = {"first_task": "Look", "model": shop(tool="wait")}
    with pytest.raises(
        SettingsError, match="needs the tool wait, and this worker does not have it"
    ) as no:
        run(**same)
    assert "tools=[wait]" in no.value.fix
    with pytest.raises(SettingsError, match="wait has other parameters than when objective 1"):
        run(**same, tools=[babyagi.tool(name="wait")(other)])
    with pytest.raises(SettingsError, match="wait has other effect"):
        run(**same, tools=[babyagi.tool(effect="read")(wait)])
    assert "Tea: 5.0" in run(**same, tools=[wait]).results[0].text


def test_a_report_is_read_into_a_type():
    outcome = run(shop('{"item": "tea", "cost": 5}'), tools=[price], output_type=Price)

    assert outcome.output == Price("tea", 5.0)


def test_a_bad_reading_of_the_report_is_told_what_is_wrong_and_read_again():
    said = iter(["five", '{"answer": "cheap"}'])
    model = shop()
    first = model._answer

    def answer(prompt, role):
        if prompt.messages[0].text.startswith("Role: output"):
            return next(said)
        return first(prompt, role)

    model._answer = answer
    outcome = run(model, tools=[price], output_type=Literal["cheap", "dear"])

    assert outcome.output == "cheap"
    assert "The answer: Input should be 'cheap' or 'dear'" in model.calls[-1][1].messages[-1].text


def test_a_report_that_cannot_be_read_leaves_no_output_and_says_why():
    outcome = run(shop("I cannot say."), tools=[price], output_type=Price)

    assert outcome.output is None and "no usable reply in 3 tries" in outcome.why_no_output
    assert outcome.report and outcome.results


def test_the_reading_is_kept_and_its_type_is_frozen():
    model = shop('{"item": "tea", "cost": 5}')
    first = run(model, tools=[price], output_type=Price)
    n_calls = len(model.calls)

    again = run(model, tools=[price], output_type=Price)
    other = run(model, tools=[price], output_type=int)
    anew = run(model, tools=[price], output_type=Price, new=True)

    assert (again.output, again.usage) == (first.output, first.usage)
    assert other.output is None and "started with another output type" in other.why_no_output
    assert anew.objective.id == 2 and len(model.calls) == 2 * n_calls


def test_the_reading_of_an_earlier_report_is_none_of_the_one_that_followed():
    options = {"tools": [price], "output_type": Price, "model": shop('{"item": "tea", "cost": 5}')}
    assert run(**options).output == Price("tea", 5.0)

    async def report_again():
        async with open_store(load_here({})) as store:
            await store.extend_objective(1, question="And coffee?")
            await store.end_objective(1, reason=babyagi.StopReason.FINISHED)
            await join(store, make_worker("w"), 1)
            claim = await store.claim_duty(1, "w", Duty.REPORT)
            assert claim is not None
            await store.record_report(claim, markdown="# Report\n\nWithout a model")

    asyncio.run(report_again())
    outcome = run(**options)

    assert outcome.report == "# Report\n\nWithout a model" and outcome.output is None
    assert outcome.why_no_output.startswith("the report was not written by the model; ")


@pytest.mark.parametrize(
    ("max_calls", "output", "why"),
    [
        (
            2,
            None,
            "the report was not written by the model; outcome.results has the tasks' results",
        ),
        (5, None, "the next call would exceed the limit of calls; outcome.report has"),
        (6, 5, ""),
    ],
)
def test_the_reading_of_a_report_is_under_the_limits(max_calls, output, why):
    outcome = run(shop("5"), tools=[price], output_type=int, max_calls=max_calls)

    assert outcome.output == output and outcome.why_no_output.startswith(why)
    assert outcome.report and outcome.usage.calls <= max_calls
    assert output is not None or "new=True" in outcome.why_no_output


def test_a_stream_tells_what_happens_in_order():
    told = list(babyagi.stream("What does tea cost?", model=shop(), tools=[price]))

    assert [type(event).__name__ for event in told] == [
        "TaskStarted",
        "ToolCalled",
        "ResultFound",
        "ReportWritten",
        "ObjectiveEnded",
    ]
    call, result, end = told[1], told[2], told[-1]
    assert isinstance(call, babyagi.ToolCalled) and isinstance(result, babyagi.ResultFound)
    assert (call.tool, call.arguments, call.text) == ("price", '{"item": "tea"}', "5.0")
    assert result.text.startswith("Tea: 5.0")
    assert isinstance(end, babyagi.ObjectiveEnded) and end.outcome.results


async def test_of_what_is_written_faster_than_it_is_fetched_the_latest_is_kept():
    store = MemoryTaskStore(utc_now)
    teller = api._Teller(store, 1)
    for n in range(5000):
        teller.hear(
            TextPiece(
                objective_id=1, owner="task:1", key="1", role=Role.EXECUTION, text=f"{n:>100}"
            )
        )

    kept = [event.text for event in teller._heard]
    await store.close()

    assert sum(map(len, kept)) <= api.MAX_HEARD_CHARS and kept[-1].endswith("4999")
    assert len(kept) == api.MAX_HEARD_CHARS // 100


def test_a_stream_tells_what_is_written_as_it_is_written_before_what_comes_of_it():
    class Streaming(ScriptedModel):
        async def complete(self, prompt, *, role, on_text=None):
            completion = await super().complete(prompt, role=role)
            for word in completion.text.split():
                on_text(f"{word} ")
                await asyncio.sleep(0)
            return completion

    told = list(
        babyagi.stream("What does tea cost?", model=Streaming(shop()._answer), tools=[price])
    )

    written = [event for event in told if isinstance(event, babyagi.TextWritten)]
    result = next(event for event in told if isinstance(event, babyagi.ResultFound))
    of_task = [event for event in written if event.task_id == result.task_id]
    assert "".join(event.text for event in of_task).strip() == result.text
    assert told.index(of_task[-1]) < told.index(result)
    assert {event.key for event in of_task} == {"1/execute/2/model"}
    assert any(event.task_id is None for event in written)


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("json", '{"thought": "", "tool": "price", "tool_input": {"item": "tea"}}'),
        ("text", 'Thought: look\nAction: price\nAction Input: {"item": "tea"}'),
    ],
)
def test_a_stream_tells_calls_of_every_protocol(protocol, said):
    answers = {"json": '{"thought": "", "tool": "final_answer", "tool_input": "Tea costs 5.0"}'}

    def answer(prompt, role):
        agent = prompt.messages[0].text.split()[1]
        if agent == "execution":
            is_first = len(prompt.messages) == 2
            return said if is_first else answers.get(protocol, "Final Answer: Tea costs 5.0")
        return '{"tasks": []}' if agent == "creation" else "Tea costs 5.0."

    told = list(
        babyagi.stream(
            "What does tea cost?", model=ScriptedModel(answer), tools=[price], protocol=protocol
        )
    )

    calls = [event for event in told if isinstance(event, babyagi.ToolCalled)]
    assert [(call.tool, call.arguments, call.text) for call in calls] == [
        ("price", '{"item": "tea"}', "5.0")
    ]


async def test_a_stream_that_is_left_early_stops_the_run_which_then_goes_on_from_there():
    events = aiter(babyagi.stream("What does tea cost?", model="rehearsal"))
    async for event in events:
        if isinstance(event, babyagi.TaskStarted):
            break
    await events.aclose()

    assert asyncio.all_tasks() == {asyncio.current_task()}
    async with open_store(load_here({})) as store:
        objective = await store.objective(1)
        assert not objective.has_report
        assert await store.workers() == []
    outcome = await babyagi.run_async("What does tea cost?", model="rehearsal")
    assert outcome.objective.id == 1 and outcome.report


@pytest.mark.parametrize("is_stream", [False, True])
def test_ctrl_c_lets_calls_in_flight_end_and_the_same_call_goes_on_from_there(is_stream):
    calls = []

    def buy(item: str) -> str:
        """Buy an item."""
        calls.append(item)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return "bought"

    model = shop(tool="buy")

    def go():
        if not is_stream:
            return babyagi.run("Buy tea", model=model, tools=[buy])
        stream = babyagi.stream("Buy tea", model=model, tools=[buy])
        assert list(stream)
        return stream.outcome

    with pytest.raises(KeyboardInterrupt):
        go()
    assert go().results[0].text.startswith("Tea: bought")
    assert calls == ["tea"]


async def test_a_question_of_a_stream_is_answered_through_it():
    told = []
    stream = babyagi.stream(
        "What does tea cost?",
        model=shop(tool="ask_user", arguments='{"question": "Which tea?"}'),
        ask=True,
    )
    async for event in stream:
        told.append(event)

    (question,) = [event for event in told if isinstance(event, babyagi.QuestionAsked)]
    assert (question.text, question.is_approval) == ("Which tea?", False)
    assert isinstance(told[-1], babyagi.ObjectiveEnded)
    assert told[-1].outcome.stop_reason is babyagi.StopReason.WAITING
    with pytest.raises(RuntimeError, match="this run has ended"):
        await stream.answer(question, "green tea")


async def test_an_error_of_a_run_is_raised_by_its_stream():
    with pytest.raises(babyagi.BabyagiError, match="key"):
        async for _ in babyagi.stream("What does tea cost?", model="gpt-6-luna"):
            pass


async def test_everything_works_where_an_event_loop_runs_already():
    outcome = run(tools=[price])
    said = babyagi.Agent(ScriptedModel(lambda prompt, role: "yes")).run("Is it?").output
    told = [type(event) for event in babyagi.stream("What?", model="rehearsal")]

    assert outcome.report and said == "yes" and told[-1] is babyagi.ObjectiveEnded


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"max_taks": 3}, TypeError, "did you mean max_tasks"),
        ({"tools": price}, TypeError, r"must be a list: tools=\[price\]"),
        ({"tools": [price, price]}, ValueError, "two tools are called 'price'"),
        ({"tools": [len]}, ValueError, "tool len"),
        ({"output_type": type}, ValueError, "cannot be described to a model"),
        (
            {"output_type": "json"},
            ValueError,
            r"'json' is a value, not a type; .* dict\[str, str\]",
        ),
        ({"model": "a/b.gguf"}, SettingsError, "LLM_MODEL=llama LLAMA_MODEL_PATH=a/b.gguf"),
        ({"max_tasks": "many"}, SettingsError, "^max_tasks must be a whole number"),
        ({"model": 5}, TypeError, "a name or a ChatModel as its model, not int"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_started(options, error, said):
    with pytest.raises(error, match=said):
        babyagi.run("What does tea cost?", **{"model": "rehearsal", **options})


def test_an_objective_that_is_no_text_is_named_as_what_it_is():
    with pytest.raises(TypeError, match=r'an objective is text, not int: babyagi.run\("What '):
        babyagi.run(cast(Any, 42), model="rehearsal")


def test_a_run_without_a_key_leaves_no_objective_that_a_later_run_would_take_up():
    with pytest.raises(CredentialsError):
        babyagi.run("What does tea cost?")

    assert babyagi.run("What does tea cost?", model="rehearsal").objective.id == 1


def test_a_folder_that_is_not_there_is_told_by_its_name_and_no_objective_is_left():
    with pytest.raises(SettingsError, match=r"(?m)^there is no folder .*nowhere$"):
        babyagi.run("Read the notes", model="rehearsal", files="nowhere")

    assert babyagi.run("Read the notes", model="rehearsal").objective.id == 1


def test_a_traceback_says_why_and_what_to_do():
    with pytest.raises(SettingsError) as raised:
        babyagi.run("Read the notes", model="rehearsal", files="nowhere")

    shown = "".join(traceback.format_exception(raised.value))
    assert shown.rstrip().endswith("\n  try: correct the folder's name")


def test_everything_public_is_there_and_says_what_it_is():
    for name in babyagi.__all__:
        assert getattr(babyagi, name).__doc__ or name == "__version__", name
        assert name in dir(babyagi)
    with pytest.raises(AttributeError):
        babyagi.nothing  # noqa: B018


@pytest.mark.parametrize(("has_price", "cost_usd"), [(True, 0.0123), (False, None)])
def test_a_cost_is_none_where_no_price_is_known_as_in_the_json(has_price, cost_usd):
    objective = samples.objective(spec=samples.spec(has_price=has_price))
    outcome = babyagi.ObjectiveOutcome(objective=objective, report="", results=())

    assert outcome.cost_usd == cost_usd
    assert status_shape(objective, {})["usage"]["cost_usd"] == cost_usd
