"""Random replies; 100,000 of them and the times in full: `python -m tests.faults.fuzz_replies`."""

import asyncio
import random
from contextlib import suppress

import pytest

from babyagi.agents.check import parse_check
from babyagi.agents.creation import parse_creation, split_combined
from babyagi.agents.prioritization import parse_order
from babyagi.errors import MalformedReplyError
from tests.faults.fuzz_replies import SHAPES, fuzz, read_as_each
from tests.linear import grows_faster_than_linearly

pytestmark = pytest.mark.faults

REPLIES = (
    '{"tasks": [{"id": "a", "name": "Find the price", "after": [3], "from": 12, "repeats": 0}], '
    '"unanswered": [{"task": 14, "lacks": "the width", "after": ["a"]}], "objective_met": false}',
    'Here it is:\n```json\n{"tasks": [{"id": "a", "name": "Read a.md"}, {"id": "b", "name": '
    '"Compare", "after": ["a", 7]}]}\n```\nIs that all?',
    "{'tasks': ['Read a.md', 'Read b.md',], 'objective_met': True}",
    '["Read a.md", "Read b.md"]',
    '<think>Perhaps [1, 2].</think>{"order": [7, 3]}',
    '{"parts": [{"part": "the price", "task": 3, "quote": "4 EUR", "deed": false}], "missing": '
    '[], "contradictions": [{"tasks": [3, 7], "about": "the price"}], "met": true}',
    'It is 4.\n{"lacks": "the width", "after": [3], "tasks": [], "objective_met": false}',
)
PIECES = (
    *("{}[]\",:\\'|<>/#*-`.()=\n\t 0cqxf9ae“”①\ud800\x00"),
    *(
        "<think>",
        "</think>",
        "<|im_end|>",
        "\nHuman: ",
        "```json\n",
        "null",
        "None",
        "NaN",
        '"tasks"',
        '"after"',
        '"unanswered"',
        '"lacks"',
    ),
    *(
        "<task>",
        "</task>",
        "<li>",
        "1e999",
        "9" * 30,
        "<![CDATA[",
        '\\"',
        "\\u12",
        "<<x cqxf from y\n",
    ),
)
UNENDING = {
    "openings of tags": "<task>",
    "tags on lines": "<li>a\n",
    "character data": "<![CDATA[",
    "ends of character data": "]]>",
    "fences of a prompt": "<<x cqxf from y\n",
    "ends of turns": "<|im_end|>",
    "speakers": "\nHuman: ",
    "speakers in a line": " Human: a?",
    "single quotes": "{'a",
    "typographic quotes": "{“a",
    "quotes in text": '{"a"b',
    "empty objects": "{}",
    "comments": "{//",
    "rules of tables": "|-",
    "cells": "a|",
    "keys": "name: a\n",
    "sections": "tasks:\n",
    "letters": "a) b\n",
    "indented traces": "\tat a.b(",
    "actions": "action:\n",
    "blank lines": "\n",
    "half plans": '{"lacks": "',
    "plans": '{"lacks": ""}\n',
    "escaped quotes": '{\\"a',
    "encoded plans": '{"a": "{\\"a\\": ',
}


def mutate(text: str, chance: random.Random) -> str:
    """The text with up to thirty pieces cut out, doubled, put in or taken from another reply."""
    for _ in range(chance.choice((1, 1, 2, 3, 8, 30))):
        at, to = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        match chance.randrange(6):
            case 0:
                text = text[:at] + chance.choice(PIECES) + text[at:]
            case 1:
                text = text[:at] + text[at + chance.randrange(1, 4) :]
            case 2:
                text = text[:at] + text[at:to] * 2 + text[to:]
            case 3:
                text = text[:to]
            case 4:
                text = text[:at] + chance.choice(REPLIES)[: chance.randrange(60)] + text[at:]
            case _:
                text = text[:at] + text[to:]
        text = text[:8000]
    return text


def check_that_nothing_is_invented(text: str) -> bool:
    """Read the text as a reply of each agent; whether it could be read as one of the creation
    agent."""
    with suppress(MalformedReplyError):
        order = parse_order(text, ids={3, 7})
        assert set(order) <= {3, 7} and len(set(order)) == len(order)
    with suppress(MalformedReplyError):
        parse_check(text)
    split_combined(text, known_ids={3}, max_tasks=4)
    try:
        reply = parse_creation(text, known_ids={3, 7}, finished_ids={12, 14}, max_tasks=4)
    except MalformedReplyError:
        return False
    references = {
        3,
        7,
        12,
        14,
        *(task.label for task in reply.tasks),
        *(task.name for task in reply.tasks),
    }
    assert len(reply.tasks) <= 4
    assert all(
        task.name.strip() and len(task.name.encode()) <= 2000 and set(task.after) <= references
        for task in reply.tasks
    )
    assert all(task.parent_id in (None, 12, 14) for task in reply.tasks)
    assert {lack.task_id for lack in reply.unanswered} <= {12, 14}
    return True


def test_no_random_text_loses_or_renames_a_task_as_the_prioritizers_reply_or_the_creation_agents():
    lists = asyncio.run(fuzz(200, seed=7))

    assert lists.n_lost == 0
    assert lists.n_orders > 3 and lists.n_added > 33 and lists.n_malformed > 3


def test_a_mutated_reply_is_read_or_malformed_and_invents_nothing():
    chance = random.Random(11)

    n_read = sum(
        check_that_nothing_is_invented(mutate(chance.choice(REPLIES), chance)) for _ in range(1500)
    )

    assert 300 < n_read < 1350


@pytest.mark.parametrize("shape", SHAPES)
def test_reading_a_reply_takes_linear_time_whatever_its_shape(shape):
    assert not grows_faster_than_linearly(lambda n: read_as_each(SHAPES[shape](n)), 15_000)


@pytest.mark.parametrize("name", UNENDING)
def test_reading_what_never_ends_takes_linear_time(name):
    piece = UNENDING[name]

    assert not grows_faster_than_linearly(
        lambda n: check_that_nothing_is_invented(piece * (n // len(piece))), 15_000
    )
