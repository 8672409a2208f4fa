"""The door for programs: an agent with tools, without a store on disk."""

import asyncio
import json
from dataclasses import dataclass
from datetime import date
from typing import Literal

import pytest

import babyagi
from babyagi.agent import Agent, ProtocolName
from babyagi.errors import CredentialsError, LimitReachedError, ParkedError, SettingsError
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Speaker, ToolCall
from babyagi.react.steps import Act, ModelDecided, RunEnded, RunStarted, Stopped
from babyagi.tasks import Usage
from babyagi.tools.catalog import build_ask_user
from support.local_server import Answer, LocalServer
from support.scripted import ScriptedModel
from tests.react.test_executor import answering


def price(item: str, n: int = 1) -> int:
    """Look up what something costs.

    Args:
        item: what it is
        n: how many
    """
    return 10_000 * n


def wanting(name, arguments):
    """A model that makes one call, then answers with what it was shown last."""

    def answer(prompt, role):
        if not any(message.speaker is Speaker.TOOL for message in prompt.messages):
            return (ToolCall(id="c1", name=name, arguments=json.dumps(arguments)),)
        return "It says: " + prompt.messages[-1].text.split("\n")[1]

    return ScriptedModel(answer)


def test_a_question_and_a_function_are_enough_for_an_answer():
    run = babyagi.Agent(model=wanting("price", {"item": "tea", "n": 2}), tools=[price]).run(
        "What do two teas cost?"
    )

    assert (run.output, run.stopped) == ("It says: 20000", Stopped.FINISH)
    assert str(run) == run.text
    assert run.steps[0].observations[0].passage.text == "20000"
    assert run.usage.calls == 2


def test_the_bound_of_an_answer_holds_for_the_judge_of_a_tool_as_well():
    model = wanting("price", {"item": "tea"})

    judged = babyagi.tool(effect="read", reflect=1)(price)

    Agent(model, [judged], max_output_tokens=90).run("What does tea cost?")

    assert len(model.calls) > 2
    assert {prompt.max_output_tokens for _, prompt in model.calls} == {90}


async def test_the_setting_bounds_the_answers_of_an_agent_as_well(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BABYAGI_MAX_OUTPUT_TOKENS", "90")
    async with LocalServer(lambda request: Answer(text="10000")) as server:
        await Agent("m", openai_base_url=server.base_url).run_async("What does tea cost?")

    assert {record.body["max_tokens"] for record in server.requests} == {90}


def test_several_questions_are_answered_each_by_itself_and_in_order():
    agent = Agent(ScriptedModel(lambda prompt, role: prompt.messages[-1].text.upper()))

    assert [run.output for run in agent.run_batch(["one", "two", "three"])] == [
        "ONE",
        "TWO",
        "THREE",
    ]
    assert agent.run_batch([]) == []


async def test_what_happens_can_be_seen_as_it_happens():
    agent = Agent(wanting("price", {"item": "tea"}), [price])
    told: list[object] = []

    signals = [signal async for signal in agent.iter("What does tea cost?")]
    await agent.run_async("What does tea cost?", on_signal=told.append)

    assert isinstance(signals[0], RunStarted) and isinstance(signals[-1], RunEnded)
    assert [type(signal) for signal in told] == [type(signal) for signal in signals]


async def test_the_same_agent_speaks_any_protocol():
    replies: dict[ProtocolName, list[object]] = {
        "text": ["Action: price\nAction Input: tea", "Final Answer: 10000"],
        "json": [
            '{"thought": "", "tool": "price", "tool_input": "tea"}',
            '{"thought": "", "tool": "final_answer", "tool_input": "10000"}',
        ],
        "native": [(ToolCall(id="c", name="price", arguments='{"item": "tea"}'),), "10000"],
    }
    for protocol, said in replies.items():
        run = await Agent(ScriptedModel(answering(*said)), [price], protocol=protocol).run_async(
            "?"
        )
        assert (run.output, len(run.steps)) == ("10000", 2)


async def test_a_person_is_asked_where_somebody_can_be_asked():
    asked: list[str] = []

    async def ask(question):
        asked.append(question)
        return "on Friday"

    signals: list[object] = []
    model = wanting("ask_user", {"question": "Which day?"})
    run = await Agent(model, [build_ask_user()], ask=ask).run_async(
        "When?", on_signal=signals.append
    )

    assert (asked, run.output) == (["Which day?"], "It says: on Friday")
    assert len(model.calls) == 2
    assert sum(isinstance(signal, ModelDecided) for signal in signals) == 2
    with pytest.raises(ParkedError):
        await Agent(wanting("ask_user", {"question": "Which day?"}), [build_ask_user()]).run_async(
            "When?"
        )


async def test_an_agent_is_a_tool_of_another_and_its_calls_count_there():
    def answer(prompt, role):
        is_inner = "You know prices." in prompt.messages[0].text
        has_looked = any(message.speaker is Speaker.TOOL for message in prompt.messages)
        if is_inner:
            return (
                "Ten thousand."
                if has_looked
                else (ToolCall(id="i", name="price", arguments='{"item": "tea"}'),)
            )
        return (
            prompt.messages[-1].text.split("\n")[1]
            if has_looked
            else (ToolCall(id="o", name="shop", arguments='{"question": "tea?"}'),)
        )

    shop = Agent(tools=[price], instruction="You know prices.").as_tool(
        "shop", "Knows what things cost."
    )
    model = ScriptedModel(answer)
    run = await Agent(model, [shop]).run_async("What does tea cost?")

    assert run.output == "Ten thousand."
    assert len(model.calls) == 4


async def test_an_inner_agent_that_fails_is_an_error_that_the_outer_one_reads():
    def answer(prompt, role):
        if "You know prices." in prompt.messages[0].text:
            return ""
        if any(message.speaker is Speaker.TOOL for message in prompt.messages):
            return prompt.messages[-1].text.split("\n")[1]
        return (ToolCall(id="o", name="shop", arguments='{"question": "tea?"}'),)

    shop = Agent(tools=[price], instruction="You know prices.").as_tool(
        "shop", "Knows what things cost."
    )
    run = await Agent(ScriptedModel(answer), [shop]).run_async("What does tea cost?")

    assert run.output.startswith("shop found no answer")
    assert run.steps[0].observations[0].is_error


def test_two_tools_of_one_name_and_an_agent_without_a_name_are_refused():
    with pytest.raises(ValueError, match="two tools are called 'price'"):
        Agent("rehearsal", [price, price])
    with pytest.raises(ValueError):
        Agent("rehearsal", [Agent("rehearsal")])  # type: ignore[list-item]  # that is the fault


def test_a_tool_can_be_added_and_replaced_only_when_that_is_meant():
    def dearer(item: str) -> str:
        """Look up what something costs now.

        Args:
            item: what it is
        """
        return "more"

    agent = Agent(wanting("price", {"item": "tea"}))
    agent.add_tool(price)
    with pytest.raises(ValueError, match="two tools are called 'price'"):
        agent.add_tool(babyagi.tool(name="price")(dearer))
    agent.add_tool(babyagi.tool(name="price")(dearer), replace=True)

    assert agent.run("What does tea cost?").output == "It says: more"


class Pipeline:
    """A pipeline in the form of another library."""

    def run(self, query):
        return {"answers": [{"answer": f"{query}: 4"}], "documents": ["a", "b"]}


def test_whatever_runs_is_a_tool_under_a_name_and_a_description(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    agent = Agent(ScriptedModel(lambda prompt, role: "never"))
    agent.add_tool("upper", lambda text: text.upper(), "Puts a text in capitals.")
    agent.add_tool("price", price, "Says a price.")
    agent.add_tool("ask", Pipeline(), "Asks a pipeline.")
    agent.add_tool("helper", Agent(ScriptedModel(lambda prompt, role: "x")), "Helps.")
    agent.add_tool("Calculator", "tests/data/agents.haystack.yaml#calculator_pipeline", "Computes.")

    said = {tool.name: tool.description for tool in agent.tools}
    assert list(said) == ["upper", "price", "ask", "helper", "Calculator"]
    assert (said["price"], said["Calculator"]) == ("Says a price.", "Computes.")
    assert agent.run_tool("upper", "tea").passage.text == "TEA"
    assert agent.run_tool("ask", "tea").passage.text == "tea: 4"
    assert agent.run_tool("helper", "tea").passage.text == "never"
    assert agent.run_tool("nothing", "tea").is_error


def test_of_a_pipeline_the_named_variable_is_shown():
    found = babyagi.tool(Pipeline(), name="ask", description="Asks.", output_variable="documents")

    agent = Agent(ScriptedModel(lambda prompt, role: ""), [found])

    assert agent.run_tool("ask", "tea").passage.text == '["a", "b"]'


class Till:
    """A till whose count lasts from call to call."""

    def __init__(self):
        self.n = 0

    @babyagi.tool
    def sell(self, item: str, context: babyagi.ToolContext) -> str:
        """Sell something."""
        self.n += 1
        context.agent.add_context("sold", f"{self.n} sold")
        if item == "last":
            context.finish(f"{context.tool_name}: {self.n}")
        if item == "none":
            context.fail("sold out")
        return str(self.n)


def selling(*items):
    left = iter(items)
    return ScriptedModel(
        lambda prompt, role: (ToolCall(id="c", name="sell", arguments=json.dumps(next(left))),)
    )


def test_a_tool_is_lent_the_run_keeps_its_state_and_can_end_the_run():
    model = selling("tea", "last")
    agent = Agent(model, [Till])

    run = agent.run("Sell")

    assert (run.output, run.stopped, len(run.steps)) == ("sell: 2", Stopped.FINISH, 2)
    assert list(agent.tools[0].parameters["properties"]) == ["item"]
    assert "1 sold" in model.calls[1][1].messages[0].text


def test_a_tool_can_end_the_run_in_failure():
    run = Agent(selling("none"), babyagi.tools_of(Till())).run("Sell")

    assert (run.output, run.stopped, run.detail) == ("", Stopped.FAIL, "sold out")


def test_a_text_stands_in_every_request_until_it_is_replaced_or_has_been_shown_often_enough():
    model = ScriptedModel(lambda prompt, role: "ok")
    agent = Agent(model)
    agent.add_context("stock", lambda: f"{len(model.calls)} asked")
    agent.add_context("news", "sun", n_calls=2)
    agent.add_context("news", "rain", n_calls=1)

    for _ in range(2):
        agent.run("What?")
    agent.add_context("stock", "")
    agent.run("What?")

    first, second, third = (prompt.messages[0].text for _, prompt in model.calls)
    assert "0 asked" in first and "rain" in first and "sun" not in first
    assert "1 asked" in second and "rain" not in second
    assert "asked" not in third
    with pytest.raises(ValueError, match="letters, digits and blanks"):
        agent.add_context("<<", "x")


def test_what_happens_can_be_read_in_code_that_is_not_async_and_anew():
    told = Agent(wanting("price", {"item": "tea"}), [price]).iter("What does tea cost?")

    first, again = list(told), list(told)

    assert isinstance(first[-1], RunEnded)
    assert len(first) == len(again)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("{}", "no reason was given"),
        ('{"reason": null}', "no reason was given"),
        ('{"reason": 5}', "5"),
        ('{"reason": "shut", "error": "at noon"}', "shut; at noon"),
    ],
)
def test_a_reason_is_told_plainly_however_odd_it_is(arguments, reason):
    call = ToolCall(id="c", name="fail_task", arguments=arguments)

    run = Agent(ScriptedModel(lambda prompt, role: (call,)), [price]).run("What?")

    assert (run.stopped, run.detail, run.output) == (Stopped.FAIL, reason, "")


def test_an_end_without_an_answer_is_no_answer():
    call = ToolCall(id="c", name="final_answer", arguments="{}")
    model = ScriptedModel(lambda prompt, role: (call,))

    run = Agent(model, [price]).run("What?")

    assert (run.stopped, run.output, len(model.calls)) == (Stopped.MAX_ERRORS, "", 3)
    assert "no answer" in run.detail


def test_an_answer_that_was_cut_off_says_so():
    cut = Completion(text="It is", model="m", usage=Usage(), finish_reason="length")

    run = Agent(ScriptedModel(lambda prompt, role: cut), [price]).run("What?")

    assert (run.stopped, run.output) == (Stopped.FINISH, "It is")
    assert "cut off" in run.detail


def test_a_model_can_be_named_and_is_opened_as_the_loop_does(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    run = Agent(model="rehearsal").run("What?")

    assert run.output == "Not found: nothing was read."
    assert list(tmp_path.iterdir()) == []


def test_a_missing_key_is_one_error_that_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(CredentialsError) as caught:
        Agent().run("What?")
    assert "OPENAI_API_KEY" in caught.value.why and "export" in caught.value.fix


def test_bounds_and_settings_are_given_by_name():
    agent = Agent(
        "rehearsal", max_steps=3, at_limit="force", openai_base_url="http://127.0.0.1:1/v1"
    )

    assert agent.bounds.max_steps == 3
    with pytest.raises(ValueError):
        Agent("rehearsal", at_limit="never")  # type: ignore[call-overload]  # that is the fault


# -- answers of a type, history, runs by hand
# -------------------------------------------------------------------------------------------------


@dataclass
class Price:
    item: str
    cost: float


CALL = ToolCall(id="c", name="price", arguments='{"item": "tea"}')
SAID_OF_A_PRICE: dict[ProtocolName, list[object]] = {
    "native": [(CALL,), "Five, I think.", '```json\n{"item": "tea", "cost": "5"}\n```'],
    "json": [
        '{"thought": "", "tool": "price", "tool_input": "tea"}',
        '{"thought": "", "tool": "final_answer", "tool_input": "five"}',
        '{"thought": "", "tool": "final_answer", "tool_input": {"item": "tea", "cost": 5}}',
    ],
    "text": [
        "Action: price\nAction Input: tea",
        "Final Answer: five",
        'Thought: now\nFinal Answer: {"item": "tea", "cost": 5}',
    ],
}


@pytest.mark.parametrize("protocol", list(SAID_OF_A_PRICE))
def test_an_answer_is_a_value_of_the_type_and_one_that_is_not_is_asked_for_again(protocol):
    model = ScriptedModel(answering(*SAID_OF_A_PRICE[protocol]))

    run = Agent(model, [price], output_type=Price, protocol=protocol).run("What does tea cost?")

    assert run.output == Price("tea", 5.0) and run.stopped is Stopped.FINISH
    assert "an object" in model.calls[2][1].messages[-1].text
    assert '"cost": {"type": "number"}' in model.calls[0][1].messages[0].text


@pytest.mark.parametrize(
    ("output_type", "said", "output"),
    [
        (int, "42", 42),
        (int, '{"answer": 42}', 42),
        (list[int], "Here they are: [1, 2].", [1, 2]),
        (Literal["yes", "no"], "Yes.", "yes"),
        (date, "2026-11-22", date(2026, 11, 22)),
        (Price | None, "null", None),
        (Price, 'Not {"item": 1} but {"item": "tea", "cost": 1}', Price("tea", 1.0)),
        (str, "plain text", "plain text"),
    ],
)
def test_answers_are_read_however_a_model_puts_them(output_type, said, output):
    model = ScriptedModel(lambda prompt, role: said)

    assert Agent(model, output_type=output_type).run("?").output == output
    assert len(model.calls) == 1


def test_without_an_answer_of_the_type_the_run_says_why_and_keeps_its_steps():
    model = ScriptedModel(lambda prompt, role: "I do not know")

    run = Agent(model, output_type=int).run("?")

    assert run.stopped is Stopped.MAX_ERRORS and run.usage.calls == 3
    with pytest.raises(babyagi.NoAnswerError) as caught:
        _ = run.output
    assert "a valid integer" in caught.value.why


def test_an_endpoint_is_sent_the_schema_where_nothing_else_can_be_said():
    bare, with_tools = (ScriptedModel(lambda prompt, role: "1") for _ in range(2))

    Agent(bare, output_type=int).run("?")
    Agent(with_tools, [price], output_type=int).run("?")

    schema = bare.calls[0][1].schema
    assert schema is not None and schema["properties"] == {"answer": {"type": "integer"}}
    assert with_tools.calls[0][1].schema is None


@pytest.mark.parametrize("protocol", list(SAID_OF_A_PRICE))
def test_a_question_can_follow_on_another(protocol):
    said = SAID_OF_A_PRICE[protocol]
    model = ScriptedModel(answering(said[0], *said[2:], *said[2:], *said[2:]))
    agent = Agent(model, [price], protocol=protocol)

    first = agent.run("What does tea cost?")
    second = agent.run("And two?", history=first)
    agent.run("And three?", history=second.messages)

    shown = "\n".join(message.text for message in model.calls[-1][1].messages)
    assert [shown.count(text) for text in ("What does tea cost?", "And two?", "And three?")] == [
        1,
        1,
        1,
    ]
    assert "10000" in shown and shown.count("Role: ") == 1


async def test_a_run_can_be_driven_by_hand():
    model = wanting("price", {"item": "tea"})

    async with Agent(model, [price]).by_hand("What does tea cost?") as hand:
        decision = await hand.plan()
        assert isinstance(decision, Act) and decision.calls[0].name == "price"
        assert [given.passage.text for given in await hand.call()] == ["10000"]
        with pytest.raises(RuntimeError, match="plan"):
            await hand.call()
        assert not hand.is_done and hand.output == ""
        step = await hand.step()

    assert (hand.is_done, hand.output, step.n, len(hand.steps)) == (True, "It says: 10000", 2, 2)


def test_a_function_that_raises_is_told_the_model_and_ends_no_run():
    def find(item: str) -> str:
        """Find it."""
        raise babyagi.ToolError("there is no such item")

    def lose(item: str) -> str:
        """Lose it."""
        raise KeyError("tea")

    found = Agent(wanting("find", {"item": "tea"}), [find]).run("?")
    lost = Agent(wanting("lose", {"item": "tea"}), [lose]).run("?")

    assert found.output == "It says: there is no such item"
    assert lost.output.startswith("It says: lose failed: KeyError: 'tea'")


def test_a_question_to_a_person_may_be_put_by_a_plain_function():
    model = wanting("ask_user", {"question": "Which day?"})

    run = Agent(model, [build_ask_user()], ask=lambda question: "Friday").run("When?")

    assert run.output == "It says: Friday"


@pytest.mark.parametrize(("said", "n_bought"), [("yes", 1), ("no", 0), ("nope", 0), ("", 0)])
def test_a_function_that_asks_is_called_by_an_agent_only_after_a_yes(said, n_bought):
    asked, bought = [], []

    @babyagi.tool(asks_approval=True)
    def buy(item: str) -> str:
        """Buy an item."""
        bought.append(item)
        return "bought"

    def ask(question):
        asked.append(question)
        return said

    run = Agent(wanting("buy", {"item": "tea"}), [buy], ask=ask).run("Buy tea")

    assert asked == ['may this call be made? buy(item="tea")']
    assert len(bought) == n_bought and run.output.startswith("It says: ")


def test_a_function_that_asks_is_heeded_in_an_agent_within_an_agent():
    bought = []

    @babyagi.tool(asks_approval=True)
    def buy(item: str) -> str:
        """Buy an item."""
        bought.append(item)
        return "bought"

    def answer(prompt, role):
        is_inner = "You buy." in prompt.messages[0].text
        if any(message.speaker is Speaker.TOOL for message in prompt.messages):
            return "It is done or not."
        name, given = ("buy", {"item": "tea"}) if is_inner else ("shop", {"question": "tea"})
        return (ToolCall(id="c", name=name, arguments=json.dumps(given)),)

    shop = Agent(tools=[buy], instruction="You buy.").as_tool("shop", "Buys things.")
    Agent(ScriptedModel(answer), [shop], ask=lambda question: "no").run("Buy tea")

    assert bought == []


# -- limits, over real sockets
# -------------------------------------------------------------------------------------------------


def look_for_ever(request):
    """A model that has a further question whatever it is shown."""
    n = len(request.messages)
    return Answer(
        tool_calls=(ToolCall(id=f"c{n}", name="price", arguments=json.dumps({"item": f"tea {n}"})),)
    )


def ask_there(server, **options):
    return Agent(
        "some-model", [price], openai_base_url=server.base_url, protocol="native", **options
    )


async def test_a_money_limit_that_cannot_be_held_is_refused_before_the_first_call(
    monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    async with LocalServer(look_for_ever) as server:
        with pytest.raises(SettingsError, match=r"\$2 cannot be guaranteed") as caught:
            await ask_there(server, max_cost_usd=2).run_async("What does tea cost?")

        assert server.requests == []
    assert "some-model" in caught.value.why and "(price;" in caught.value.fix


async def test_the_money_limit_that_nobody_set_is_off_where_no_price_is_known(
    monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    async with LocalServer(lambda request: Answer(text="ten")) as server:
        assert (await ask_there(server).run_async("?")).output == "ten"
        assert (await ask_there(server, max_cost_usd=0).run_async("?")).output == "ten"


@pytest.mark.parametrize(
    ("limit", "name", "n_calls"),
    [
        (
            {"max_cost_usd": 0.5, "price": (0, 100.0), "max_output_tokens": 1000},
            "cost",
            5,
        ),
        ({"max_tokens": 4500, "max_output_tokens": 1000}, "tokens", None),
        ({"max_calls": 3}, "calls", 3),
    ],
    ids=["cost", "tokens", "calls"],
)
async def test_a_limit_of_a_run_ends_it_before_the_call_that_would_not_fit(
    limit, name, n_calls, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)

    def answer(request):
        said = look_for_ever(request)
        return Answer(
            tool_calls=said.tool_calls,
            usage=Usage(calls=1, prompt_tokens=100, completion_tokens=1000),
        )

    async with LocalServer(answer) as server:
        with pytest.raises(LimitReachedError) as caught:
            await ask_there(server, max_steps=50, **limit).run_async("What does tea cost?")

        assert caught.value.limit == name
        n_paid = len(server.requests)
        assert n_paid == n_calls if n_calls else 2 <= n_paid <= 4


@pytest.mark.parametrize("hangs", ["model", "tool"])
async def test_the_limit_of_time_cancels_what_hangs(hangs, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    async def never():
        """Never come back."""
        await asyncio.Event().wait()

    async def answer(request):
        if hangs == "model":
            await never()
        return Answer(tool_calls=(ToolCall(id="c", name="never", arguments="{}"),))

    async with LocalServer(answer) as server:
        agent = Agent(
            "some-model",
            [babyagi.tool(effect="read")(never)],
            openai_base_url=server.base_url,
            max_time_s=0.5,
            at_limit="force",
        )
        run = await agent.run_async("?")

    assert run.stopped is Stopped.MAX_TIME


async def test_a_longer_time_than_the_default_is_the_one_that_holds(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    async with (
        Agent("rehearsal", max_time_s=20_000)._open_desk("?") as longer,
        Agent("rehearsal")._open_desk("?") as usual,
    ):
        assert (
            longer.objective.spec.limits.max_time_s,
            usual.objective.spec.limits.max_time_s,
        ) == (0, 7200)


async def test_limits_hold_for_a_model_that_is_given_as_an_object_and_no_setting_is_ignored():
    def answer(prompt, role):
        call = ToolCall(
            id="c", name="price", arguments=json.dumps({"item": f"tea {len(prompt.messages)}"})
        )
        return Completion(
            text="",
            tool_calls=(call,),
            model="m",
            usage=Usage(calls=1, prompt_tokens=10, completion_tokens=10, cost_usd=0.4),
        )

    for limit, name in (
        ({"max_calls": 2}, "calls"),
        ({"max_tokens": 3000}, "tokens"),
        ({"max_cost_usd": 1.0}, "cost"),
    ):
        model = ScriptedModel(answer, cost_usd=0.4)
        with pytest.raises(LimitReachedError) as caught:
            await Agent(model, [price], max_steps=50, **limit).run_async("?")
        assert (caught.value.limit, 0 < len(model.calls) < 20) == (name, True)
    with pytest.raises(TypeError, match="openai_base_url"):
        Agent(ScriptedModel(answer), openai_base_url="http://127.0.0.1:1/v1")
    with pytest.raises(TypeError, match="a client or a ChatModel as its model, not int"):
        Agent(5)  # type: ignore[call-overload]  # that is the fault
    with pytest.raises(TypeError, match="a question is text, not int"):
        await Agent("rehearsal").run_async(5)  # type: ignore[arg-type]  # that is the fault
    with pytest.raises(TypeError, match="'max_stepz'; did you mean max_steps"):
        Agent("rehearsal", max_stepz=3)  # type: ignore[call-overload]  # that is the fault
