"""Python that a model wrote, as a tool."""

import pytest

from babyagi.errors import ToolError
from babyagi.tools.python import build_python, strip_fence

CODE = "final_result = 6 * 7"
WRITTEN = {
    CODE: CODE,
    f"```python\n{CODE}\n```": CODE,
    f"Here it is:\n```\n{CODE}\n```\nIt assigns the result.\n```\nother\n```": CODE,
    f"  ```py\n{CODE}\n  ```  ": CODE,
    "```python\nno end": "```python\nno end",
    "a = '```'\nb = 1": "a = '```'\nb = 1",
    "": "",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_fence_around_the_code_is_taken_off(text):
    assert strip_fence(text) == WRITTEN[text]


@pytest.mark.system
async def test_the_result_is_what_the_code_assigned():
    tool = build_python(name="Calculator", description="computes")

    passage = await tool.run({"code": f"```python\n{CODE}\nprint('noise')\n```"})

    assert (passage.text, passage.origin) == ("42", "tool:Calculator")
    with pytest.raises(ToolError):
        await tool.run({"code": "open('/etc/passwd')"})


@pytest.mark.system
async def test_what_the_code_prints_is_the_answer_and_the_model_is_told_so():
    tool = build_python(name="Python", description="computes")

    passage = await tool.run({"code": "for n in range(3):\n    print(n, n ** 2)"})

    assert passage.text == "0 0\n1 1\n2 4"
    # indented as a whole
    assert (await tool.run({"code": "    x = 6\n    if x:\n        x * 7\n    x * 7"})).text == "42"
    assert "What it prints is the answer" in tool.parameters["properties"]["code"]["description"]
