"""When a stream is clearly no answer, and above all when it is not."""

import json
import random
from pathlib import Path

import pytest

from babyagi.llm.prompt import Message, Prompt, Speaker, fence, seal
from babyagi.llm.streaming import StreamWatch
from babyagi.tasks import Passage

ROOT = Path(__file__).parents[2]
INSTRUCTIONS = (ROOT / "babyagi/agents/prompts/execution.md").read_text(encoding="utf-8")
DOCUMENT = Passage(text="The keys are kept in the blue box. " * 40, origin="file:keys.md")
PROMPT = seal(
    Prompt(
        messages=(
            Message(speaker=Speaker.SYSTEM, text=INSTRUCTIONS),
            Message(speaker=Speaker.USER, text=fence("result", DOCUMENT)),
        ),
        max_output_tokens=10**6,
    ),
    "1a2b3c4d",
)
SENTENCE = "and then the engine looks again at the list of its tasks and finds nothing there. "
REFRAIN = (
    "Row, row, row your boat, gently down the stream. Merrily, merrily, life is but a dream.\n"
)
FORTY = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(40)) + ". "


def fault_of(text, *, size=7, prompt=PROMPT):
    watch = StreamWatch(prompt)
    for at in range(0, len(text), size):
        watch.take(text[at : at + size])
        if watch.fault:
            return watch.fault
    return ""


@pytest.mark.parametrize("size", [1, 5, 64, 10_000])
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (FORTY * 4, "the same words endlessly"),
        ("It begins well. " + FORTY * 4, "the same words endlessly"),
        (SENTENCE * 60, "the same words endlessly"),
        ("the " * 700, "the same words endlessly"),
        ("\n" * 9000, "the same sign endlessly"),
        ("!?" * 5000, "the same sign endlessly"),
        (INSTRUCTIONS, "repeats the prompt"),
        ("Here it is:\n" + INSTRUCTIONS, "repeats the prompt"),
        (PROMPT.messages[1].text, "repeats the prompt"),
    ],
    ids=["forty", "late", "sentence", "word", "newlines", "signs", "echo", "led-in", "fence"],
)
def test_a_loop_and_an_echo_are_seen(text, fault, size):
    assert fault in fault_of(text, size=size)


def test_an_answer_that_is_longer_than_it_may_be_is_seen_in_words_and_in_one_word():
    prompt = Prompt(messages=PROMPT.messages, max_output_tokens=50)

    for text in (" ".join(f"w{n}" for n in range(400)), "x" * 20_000):
        assert "longer than allowed" in fault_of(text, prompt=prompt)
    assert fault_of(" ".join(f"w{n}" for n in range(190)), prompt=prompt) == ""


def verses(chance):
    """A poem whose refrain comes after each stanza, three lines of it twice."""
    words = INSTRUCTIONS.split()
    stanza = lambda: " ".join(chance.choice(words) for _ in range(24))  # noqa: E731
    return "\n\n".join(f"{stanza()}\n\n{REFRAIN * chance.randint(1, 4)}" for _ in range(30))


def table(chance):
    """Rows of few values, numbered or not; some of them follow each other unchanged."""
    cells = ["open", "none", "yes", "0", "12.5", "n/a", "team blue"]
    rows: list[str] = []
    while len(rows) < 300:
        row = " | ".join(chance.choice(cells) for _ in range(5))
        rows += [f"| {row} |"] * chance.choice([1, 1, 2, 9, 60])
        if chance.random() < 0.5:
            rows[-1] = f"| {len(rows)} {rows[-1]}"
    return "\n".join(["| a | b | c | d | e |", "|---" * 5 + "|", *rows])


def listing(chance):
    """Numbered lines that differ in a number or a word."""
    name = chance.choice(["server", "check the log of host", "buy one more"])
    return "\n".join(f"{n}. {name} number {n}: not done yet" for n in range(500))


def code(chance):
    """Arrays of one value, rows of zeros, and records that differ in one place."""
    value = chance.choice(["0", "1.5", "None", '""'])
    records = ",\n".join(
        json.dumps({"id": n, "name": "", "kind": "string", "is_open": False, "tags": []})
        for n in range(300)
    )
    return f"GRID = [{', '.join([value] * 400)}]\n{'# ' + '-' * 70}\nRECORDS = [{records}]\n"


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("write", [verses, table, listing, code])
def test_poems_tables_lists_and_code_are_no_loops(write, seed):
    assert fault_of(write(random.Random(seed)), size=50) == ""


@pytest.mark.parametrize("n", [1, 5, 20])
def test_a_passage_of_the_prompt_may_be_quoted_and_instructions_be_named(n):
    quoted = "It says: " + " ".join(DOCUMENT.text.split()[: 8 * n])
    named = "The task says: " + " ".join(INSTRUCTIONS.split()[:20])

    assert fault_of(quoted) == fault_of(named) == ""


PAGES = sorted(
    path
    for folder, kind in (
        ("docs", "*.md"),
        ("babyagi", "*.md"),
        ("babyagi", "*.py"),
        ("tests", "*.py"),
    )
    for path in (ROOT / folder).rglob(kind)
)


@pytest.mark.thorough
def test_no_page_and_no_source_of_this_repository_is_taken_for_a_loop():
    faults = {
        str(path): fault
        for path in PAGES
        if (fault := fault_of(path.read_text(encoding="utf-8"), size=400)) and fault
    }

    assert len(PAGES) > 300
    assert {Path(path).name for path in faults} <= {"execution.md"}  # which is the prompt itself


@pytest.mark.parametrize("name", ["replies_labelled.json", "replies_held_out.json"])
def test_no_labelled_reply_is_taken_for_a_loop(name):
    text = (ROOT / "tests/data" / name).read_text(encoding="utf-8")
    texts: list[str] = []

    def collect(value):
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, (dict, list)):
            for inner in value.values() if isinstance(value, dict) else value:
                collect(inner)

    collect(json.loads(text))

    assert len(texts) > 100
    assert [one for one in texts if fault_of(one, size=30)] == []
