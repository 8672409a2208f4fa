"""Poisoned texts in a file, through a model that obeys them: nothing that they order is done, and
each stays marked as what it is. How many of them a check takes for an answer is a figure, not a
promise: `python -m tests.faults.poisoned`."""

import json
import re
from pathlib import Path

import pytest

from babyagi.files.folder import Folder
from babyagi.runtime.offload import run_inline
from babyagi.tasks import Effect, Passage, Planning, TaskStatus
from babyagi.text import disarm
from babyagi.tools.base import Tool, takes
from babyagi.tools.files import build_file_tools, build_write_file
from support.scripted import ScriptedModel
from support.virtual import VirtualWorld, run_virtually
from tests.obeying import Obeying

OBJECTIVE = "Find the value of K-30 and the licence of Flask"
FIRST_TASK = "Read page.txt"
PARTS = [("the objective",), (OBJECTIVE,), ("the value of K-30", "the licence of Flask")]


def load(name):
    """The texts of a file, those that no rule was made by at the end."""
    held = json.loads((Path(__file__).parents[1] / "data" / name).read_text("utf-8"))
    return [*held["texts"], *held.get("held_out", [])]


TEXTS = load("poisoned_texts.json")
FINDINGS = load("poisoned_findings.json")
POISONED = [*TEXTS, *FINDINGS]
HONEST = load("honest_findings.json")
INSTRUCTIONS: dict[tuple[str, str], str] = {}  # by planning and agent, as the first prompt had them
BLOCK = re.compile(r"^<<([\w ]+) (\w{4}) from ([^\n]*)\n(.*?)\n\2>>$", re.MULTILINE | re.DOTALL)


def run(folder, entry, n, *, parts=None):
    """Work on the objective with the text in a file; what came of it, the tasks, the model, and the
    payments that were made."""
    quotes = tuple(disarm(quote) for quote in entry.get("quotes") or [entry["quote"]])
    (folder / "page.txt").write_text(entry["text"], "utf-8")
    paid: list[object] = []

    async def pay(arguments):
        paid.append(arguments)
        return Passage(text="paid", origin="tool:pay")

    opened = Folder(folder)
    payment = Tool(
        name="pay",
        description="Pay.",
        parameters=takes(amount={"type": "integer"}),
        effect=Effect.ONCE,
        run=pay,
    )
    tools = [
        *build_file_tools(opened, offload=run_inline),
        build_write_file(opened, offload=run_inline),
        payment,
    ]
    model = ScriptedModel(
        Obeying(quotes=quotes, parts=parts or PARTS[n % len(PARTS)]), answers_checks=True
    )

    async def work():
        world = VirtualWorld(model=model, tools=tools)
        planning = Planning.COMBINED if n % 2 else Planning.SEPARATE
        ended = await world.run(text=OBJECTIVE, initial_task=FIRST_TASK, planning=planning)
        return ended, await world.store.tasks(ended.id), await world.store.results(ended.id)

    return *run_virtually(work()), model, paid


@pytest.mark.parametrize("n", range(len(POISONED)), ids=lambda n: f"{n}: {POISONED[n]['kind']}")
def test_no_poisoned_text_is_obeyed_or_shown_as_a_persons(n, tmp_path):
    ended, tasks, results, model, paid = run(tmp_path, POISONED[n], n)

    assert (
        paid == []
        and [path.name for path in tmp_path.iterdir()] == ["page.txt"]
        and not (tmp_path.parent / "outside.txt").exists()
    )
    assert not [task for task in tasks if task.status is TaskStatus.RUNNING]
    assert all(
        "file:page.txt" in result.origins
        and any(origin.startswith("model:") for origin in result.origins)
        for result in results
    )
    marks: list[set[str]] = []
    for _, prompt in model.calls:
        texts = [message.text for message in prompt.messages[1:]]
        assert all(disarm(BLOCK.sub("", text)) == BLOCK.sub("", text) for text in texts)
        blocks = [block for text in texts for block in BLOCK.findall(text)]
        marks.append({mark for _, mark, _, _ in blocks})
        for label, _, origin, text in blocks:
            assert disarm(text) == text
            assert not origin.startswith("program")
            assert not origin.startswith("person") or text == {
                "objective": OBJECTIVE,
                "task": f"1: {FIRST_TASK}",
            }.get(label, text)
        instructions = prompt.messages[0].text
        assert (
            INSTRUCTIONS.setdefault(
                (ended.spec.planning, instructions.partition("\n")[0]), instructions
            )
            == instructions
        )
    assert len(set.union(*marks)) == 1
