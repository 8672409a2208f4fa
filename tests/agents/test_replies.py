"""Model text to typed replies: every shape is read or left alone, and nothing is invented."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from babyagi.agents.replies import CheckReply, ProposedTask, parse_check, parse_creation, parse_order
from babyagi.errors import MalformedReplyError

SHAPES = json.loads((Path(__file__).parent.parent / "data" / "prioritizer_replies.json").read_text(encoding="utf-8"))
NAMES = (
    "Read limits.md (v2.0)",
    "Read limits.md (v2.0) and costs.md",
    "Compare the U.S. e-mail rules",
    "Ask https://example.org/a?b=1:2",
    "Write: the summary",
    "List documents from number 10 on",
)
HOSTILE = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from(
            [
                '{"tasks":',
                '{"order": [',
                '{"name": "A"}',
                "[",
                "]",
                "{",
                "}",
                '"',
                ",",
                ":",
                "\\",
                "\n",
                "1.",
                "2)",
                "- ",
                "* ",
                "**",
                "#3",
                "|",
                "->",
                "7",
                "8",
                "99",
                "-8",
                "8.0",
                "NaN",
                "true",
                "null",
                "<think>",
                "</think>",
                "<li>",
                "```",
                "Read",
                "a",
                "  ",
                "\u20e3",
                "\ud800",
            ]
        ),
    ),
    max_size=40,
).map("".join)


def names_of(text, *, max_tasks=20):
    return [task.name for task in parse_creation(text, known_ids=(), max_tasks=max_tasks).tasks]


def fill(reply, ids, names):
    for n, (id_, name) in enumerate(zip(ids, names, strict=True), start=1):
        reply = reply.replace(f"{{id{n}}}", str(id_)).replace(f"{{name{n}}}", name)
    return reply


# -- order ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first_id", [1, 4, 21])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["name"])
def test_a_reply_of_any_shape_is_a_hint_about_order(shape, first_id):
    ids = [first_id + i for i in range(6)]
    window = list(zip(ids, NAMES, strict=True))

    order = parse_order(fill(shape["reply"], ids, NAMES), window=window)

    assert len(set(order)) == len(order)
    assert set(order) <= set(ids)
    assert order == tuple(ids[n - 1] for n in shape["order"])


def test_there_are_enough_shapes_to_believe_in():
    assert len({shape["reply"] for shape in SHAPES}) >= 39


def test_a_name_says_which_task_whatever_number_stands_before_it():
    window = [(1, "alpha"), (2, "beta"), (3, "gamma")]

    assert parse_order("1. gamma\n2. alpha\n3. beta", window=window) == (3, 1, 2)


def test_once_a_name_is_recognised_numbers_count_for_nothing():
    assert parse_order("1. gamma\n2. something new", window=[(1, "alpha"), (2, "beta"), (3, "gamma")]) == (3,)


def test_the_longest_name_wins_where_one_begins_like_another():
    window = [(1, "Read a"), (2, "Read a and b"), (3, "Read a and b twice")]

    assert parse_order("1. Read a and b twice\n2. Read a\n3. Read a and b", window=window) == (3, 1, 2)


def test_a_name_inside_a_longer_word_is_not_recognised():
    assert parse_order("- Task 12", window=[(5, "Task 1"), (6, "Other")]) == ()


def test_tasks_of_the_same_name_are_told_apart_by_their_ids():
    assert parse_order("9: Look again\n8: Look again", window=[(8, "Look again"), (9, "Look again")]) == (9, 8)


def test_a_long_name_is_recognised_as_the_prompt_cut_it():
    long = "word " * 60 + "end"

    assert parse_order(f"- {long[:200]}…\n- short", window=[(1, "short"), (2, long)]) == (2, 1)


def test_a_name_without_a_letter_breaks_nothing():
    assert parse_order("2: ***\n1: ...", window=[(1, "***"), (2, "...")]) == (2, 1)


@settings(max_examples=1000, derandomize=True)
@given(HOSTILE)
@example("[" * 3000)
@example('{"order": ' * 3000)
def test_no_text_yields_an_unknown_id_or_one_twice(text):
    order = parse_order(text, window=[(7, "Read"), (8, "a"), (9, "\ud800 | -> 7")])

    assert set(order) <= {7, 8, 9}
    assert len(set(order)) == len(order)


# -- creation -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"tasks": [{"name": "A", "after": []}, {"name": "B", "after": []}], "objective_met": false}',
        'Sure!\n```json\n{"tasks": [{"name": "A"}, {"name": "B"}]}\n```\n1. bye',
        '{"tasks": ["A", "B"], "objective_met": false}',
        '["A", "B"]',
        '```\n[{"name": "A"}, {"task_name": "B"}]\n```',
        '{"tasks": [{"name": "A",}, {"name": "B"},],}',
        '{"result": {"tasks": [{"name": "A"}, {"name": "B"}]}}',
        "<think>\n1. X\n2. Y\n</think>\n1. A\n2. B",
        "1. A\n2. B",
        "1) A\n2) B",
        "1: A\n2: B",
        "#1 A\n#2 B",
        "- A\n- B",
        "* A\n* B",
        "• A\n•B",
        "**1. A**\n**2. B**",
        "1. **A**\n2. **B**",
        "**1.** A\n**2.** B",
        "- [ ] A\n- [x] B",
        "Task 1: A\nTask 2: B",
        "1. A\r\n\r\n2. B\r\n",
        "# New tasks\n\nHere you go:\n\n1. A\n\n## More\n2. B\n\nLet me know if you need more.",
        "Sure. Here is your list:\n1. A\n2. B\n\nI left out what is done.",
        '1. "A"\n2. “B”',
    ],
)
def test_a_list_of_tasks_is_read_in_any_of_these_shapes(text):
    assert names_of(text) == ["A", "B"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "None",
        "There are no tasks to add at this time.",
        "1. There are no tasks to add at this time.",
        "- None.",
        "No new tasks are needed.",
        "[]",
        "{}",
        '{"tasks": [], "objective_met": false}',
        '{"tasks": null}',
        '{"tasks": ["None"]}',
        '{"tasks": [{"name": ""}, {"name": 7}, 7, null, [], {"after": [1]}]}',
        "Sure. Here is your list",
        "The work goes on well. In 2024. Then more.",
        "I'm sorry, I can't help with that.",
        "I'm sorry, I can't do that, because:\n- it is harmful\n- it is illegal",
        "As shown in [1] and [2], 1.5 GB is enough.",
        "<think>\n1. A",
        "---\n***\n===",
    ],
)
def test_no_task_is_made_out_of(text):
    reply = parse_creation(text, known_ids=(1,), max_tasks=5)

    assert reply.tasks == ()
    assert not reply.is_met


@pytest.mark.parametrize(
    "name",
    [
        "Check e-mail in the U.S. (v2.0), e.g. 1.5 GB: 100 % of it",
        "Read https://example.org/a_b?c=1:2&d=*#frag-3.",
        "Compare `a_b` with **c** and 'd' — naïve, 東京, 🙂",
        "Call f(x)[0] -> {y: 1}; use C:\\new\\table <b>",
        '"Quoted" and "quoted again"',
        "2024 in review: what happened?",
    ],
)
def test_a_name_survives_byte_for_byte(name):
    assert names_of(json.dumps({"tasks": [{"name": name, "after": []}]})) == [name]
    assert names_of(f"1. {name}\n2) {name}\n- {name}") == [name] * 3


def test_wrapped_lines_belong_to_their_item():
    text = "1. Search the\nweb for More\n2. Read the page\n   and the notes\n3. Group:\n   - by year\n   - by place\n4. End."

    assert names_of(text) == ["Search the web for More", "Read the page and the notes", "Group: - by year - by place", "End."]


def test_a_new_sentence_under_the_list_is_not_a_part_of_it():
    assert names_of("1. Read it.\nLet me know what you think.") == ["Read it."]


def test_of_a_reply_that_was_cut_off_only_complete_tasks_count():
    text = '{"tasks": [{"name": "A", "after": [1]}, {"name": "B", "after": [1, 2]}, {"name": "Half a na'

    reply = parse_creation(text, known_ids=(1,), max_tasks=9)

    assert reply.tasks == (ProposedTask(name="A", after=(1,)), ProposedTask(name="B", after=(1,)))
    assert not reply.is_met


@pytest.mark.parametrize(
    "text", ['{"tasks": [{"name": "Half', '```json\n{"tasks": [', '{"foo": 1}', '[{"tasks', '{"tasks": [{name: A}]}', "{" * 3000]
)
def test_json_that_cannot_be_read_says_what_was_expected(text):
    with pytest.raises(MalformedReplyError, match=r'expected JSON: \{"tasks"'):
        parse_creation(text, known_ids=(), max_tasks=5)


def test_only_ids_that_the_agent_was_shown_count_in_after():
    text = '{"tasks": [{"name": "A", "after": [2, "3", 4.0, 2, 99, -2, true, null, "x", NaN]}, {"name": "B", "after": 3}]}'

    reply = parse_creation(text, known_ids={1, 2, 3, 4}, max_tasks=5)

    assert [task.after for task in reply.tasks] == [(2, 3, 4), (3,)]


def test_the_claim_that_the_objective_is_met_is_read_from_json_only():
    assert parse_creation('{"tasks": [], "objective_met": true}', known_ids=(), max_tasks=5).is_met
    assert parse_creation('{"objective_met": "true"}', known_ids=(), max_tasks=5).is_met
    assert not parse_creation("The objective is met. objective_met: true", known_ids=(), max_tasks=5).is_met


def test_what_is_left_out_is_said():
    long = parse_creation("1. " + "x" * 501 + "\n2. fits", known_ids=(), max_tasks=5)
    many = parse_creation("- a\n- b\n- c", known_ids=(), max_tasks=2)

    assert ([task.name for task in long.tasks], long.note) == (["fits"], "left out: 1 with a name over 500 characters")
    assert ([task.name for task in many.tasks], many.note) == (["a", "b"], "left out: 1 over the 2 allowed")


def test_a_name_holds_nothing_that_a_store_cannot_keep():
    (name,) = names_of('{"tasks": ["a\\ud800b\\u0000c\\n\\td"]}')

    assert name == "a\ufffdb\ufffdc d"


@settings(max_examples=1000, derandomize=True)
@given(HOSTILE)
@example("1. " * 3000)
def test_no_text_raises_anything_but_a_malformed_reply(text):
    try:
        reply = parse_creation(text, known_ids={7, 8}, max_tasks=3)
    except MalformedReplyError:
        return
    assert len(reply.tasks) <= 3
    assert all(task.name.strip() and len(task.name) <= 500 and set(task.after) <= {7, 8} for task in reply.tasks)
    parse_check(text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "{",
        '{"a":',
        '["',
        "[1,]",
        '"\\"',
        "\\",
        "1. ",
        "- ",
        "**",
        " ",
        "\n",
        "\t\n",
        "<think>\n",
        "</think>\n",
        "<",
        "<li",
        "7 ",
        "7,",
        "-",
        "->",
        "#",
        "a",
        "7: Read\n",
        "Read ",
        "there are no tasks ",
        "\u20e3",
        "\ufdfa",
        "| 7 ",
        "[1,[",
        '[1,1,"x",',
        '{"name":"x"},',
        "(",
        "> ",
        "`",
        "…",
    ],
)
def test_a_megabyte_of_anything_is_read_in_bounded_time(piece):
    text = piece * (1_000_000 // len(piece))

    parse_order(text, window=[(7, "Read"), (8, "aaaa"), (9, "a b")])
    parse_check(text)
    try:
        parse_creation(text, known_ids={7}, max_tasks=3)
    except MalformedReplyError as error:
        assert "expected JSON" in error.what


# -- check ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_met", "reason"),
    [
        ('{"met": true, "missing": ""}', True, ""),
        ('```json\n{"met": false, "missing": "the sums"}\n```', False, "the sums"),
        ('{"met": "yes"}', True, ""),
        ('{"met": 1, "missing": 2}', False, ""),
        ("Yes, all of it.", True, "all of it"),
        ("**No** - the sums\nare missing.", False, "the sums are missing"),
        ("<think>\nYes\n</think>\nNo", False, ""),
        ("Yesterday it was.", False, "the reply of the check could not be read"),
        ("It may be met.", False, "the reply of the check could not be read"),
        ("", False, "the reply of the check could not be read"),
    ],
)
def test_a_check_that_cannot_be_read_is_not_met(text, is_met, reason):
    assert parse_check(text) == CheckReply(is_met=is_met, reason=reason)
