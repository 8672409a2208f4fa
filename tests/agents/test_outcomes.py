"""Only the form of a reply can show that it is no answer: empty, cut, a loop, or its own prompt."""

import pytest

from babyagi.agents.outcomes import find_fault
from babyagi.agents.prompting import build_messages, say
from babyagi.tasks import Passage

PROMPT = build_messages(
    "prioritization",
    {
        "objective": [("objective", Passage(text="Find the price", origin="person"))],
        "queue": [("queued tasks", Passage(text="3: Read a.md", origin="model"))],
    },
)


def fault_of(reply, *, task="Find the price"):
    return find_fault(reply, task_name=task, messages=PROMPT)


@pytest.mark.parametrize("reply", ["", " \n", "...", "—"])
def test_nothing_is_no_answer(reply):
    assert fault_of(reply) == say("empty")


@pytest.mark.parametrize("reply", ['{"price": 4', '[{"price": "4', '["a", "b'])
def test_json_that_is_cut_off_is_no_answer(reply):
    assert fault_of(reply) == say("begun_json")


@pytest.mark.parametrize(
    "reply",
    [
        "and so it goes on " * 20,
        "The price is known. " + "It was found in the list of prices of the year. " * 9 + "It was",
        "価格は四です。" * 30,
        "no " * 200,
        "The lever turns, and the wheel follows it. " * 3
        + "".join(f"{n}: word. " for n in range(90))
        + "力が働かない限り、" * 60,
        "The areas are:\n" + "".join(f"{n}. Maritime trade\n" for n in range(1, 40)),
        "Go on.\n" + "".join(f"{n}. Turn left\n{n + 1}. Turn right\n" for n in range(1, 60, 2)),
        "一般的に、" + "銃で守られるし、銃で殺される。" * 12,
        "The share is " + "(1/2) * " * 200,
        "とても良い商品です" + "！" * 200,
        "It is met." + "<|im_start|>\n<|im_end|>\n<|im_end|>\n" * 15 + "<|im_start|>\n" * 2,
        "The dates are " + "setting " * 90 + "\nPlease ask us.",
        "| name | team |\n" + "| | |\n" * 100,
    ],
)
def test_a_loop_is_no_answer(reply):
    assert fault_of(reply) == say("loop")


@pytest.mark.parametrize(
    ("task", "reply"),
    [
        ("Write 'I will not be late' thirty times", "I will not be late.\n" * 30),
        ("Write thirty times: I will not be late", "I will not be late.\n" * 30 + "Yours, Bart"),
        ("Fill in the plan", "| what | who |\n| cups | Ann |" + " " * 20_000 + "|"),
        ("Count", " ".join(map(str, range(200)))),
        ("List", "\n".join(f"| item {n} | in stock | {n * 7} |" for n in range(40))),
        ("List", "\n".join(f"* {name} – yes" for name in "abcdefghijklmnopqrstuvwxyz")),
        ("Match an address", r"One pattern that does it is ^(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})$"),
        ("Compare the players", "| name | team |\n" + "|          |          |\n" * 18),
        ("Answer each", "".join(f"{n}. True\n" for n in range(1, 21))),
        ("Name the files", "".join(f"{n}. frame_{n:03}.png\n" for n in range(1, 81))),
        ("Draw a wall", f"A wall, {list(range(40))} bricks\n" + "|___|___|\n" * 45),
        ("Write a refrain", "Row the boat, row the boat.\nOver the sea.\n" * 2),
    ],
)
def test_tables_lists_and_repetitions_that_were_asked_for_are_none(task, reply):
    assert fault_of(reply, task=task) == ""


@pytest.mark.parametrize(
    "reply",
    [
        "Order the queued tasks so that the objective is reached soonest: first the tasks that "
        "others depend on, last those that matter little.",
        "<<objective vjjv from person\nFind the price\nvjjv>>",
        "The block was:\n<<queued tasks zpzw from model\n3: Read a.md",
    ],
)
def test_a_copy_of_the_instructions_or_of_a_fence_is_no_answer(reply):
    assert fault_of(reply) == say("echo")


@pytest.mark.parametrize(
    ("task", "reply"),
    [
        ("Which language is it written in?", "It is written in the Rust programming language."),
        ("Find the price", "I'm sorry, but I can't help with that."),
        ("Find the price", "Before the price can be found, the list must be known."),
        ("Find the price", "Nicht gefunden: die Liste nennt keinen Preis."),
        ("Correct the spacing: Find the price", "Find the price"),
        ("Which operator adds one?", "++"),
        ("Show an empty code block", "```\n```"),
        ("Write the call", 'search({"query": "price"})'),
        ("Give it as JSON", '{"price": 4}'),
        ("Find the price", "4"),
    ],
)
def test_no_wording_in_any_language_fails_a_reply(task, reply):
    assert fault_of(reply, task=task) == ""
