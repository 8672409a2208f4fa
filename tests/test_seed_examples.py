"""The examples of the systems that this program contains, each with a model from a script."""

import asyncio
import json

from babyagi.llm.prompt import ToolCall
from examples import executor_by_hand, json_react, mrkl_agent
from support.scripted import ScriptedModel


def script(*replies):
    left = iter(replies)
    return ScriptedModel(lambda prompt, role: next(left))


def test_the_agent_that_reasons_in_text_searches_twice_and_computes():
    model = script(
        "I look who it is.\nTool: Search\nTool Input: harbour master of Norvik",
        "I look how old she is.\nTool: Search\nTool Input: age of Ada Brook",
        "Action: Power\nAction Input: 47^0.23",
        "Final Answer: 2.4242784855673896",
    )

    assert mrkl_agent.main(model) == "2.4242784855673896"
    assert "2.4242784855673896" in model.calls[-1][1].messages[-1].text


def test_the_agent_that_writes_json_fills_a_basket_and_a_tool_ends_its_run():
    steps = [("add", {"item": "tea", "n": 2}), ("add", "cake"), ("order", None)]
    model = script(
        *(json.dumps({"thought": "", "tool": name, "tool_input": given}) for name, given in steps)
    )

    assert json_react.main(model) == "Ordered: tea, tea, cake"
    assert "tea, tea" in model.calls[1][1].messages[0].text


def test_the_executor_is_driven_by_hand():
    months = ({"month": "March"}, {"month": "April"})
    calls = (ToolCall(id=one["month"], name="invoice", arguments=json.dumps(one)) for one in months)

    assert asyncio.run(executor_by_hand.main(script(tuple(calls), "21100"))) == "21100"
