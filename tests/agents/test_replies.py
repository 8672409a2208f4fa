"""Model text to typed replies: every shape is read or left alone, and nothing is invented."""

import json
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from babyagi.agents.check import CheckReplyPart, parse_check
from babyagi.agents.creation import parse_order
from babyagi.agents.replies.creation import (
    parse_creation,
    split_combined,
)
from babyagi.errors import MalformedReplyError
from babyagi.tasks import Proposal, Unanswered
from tests.linear import grows_faster_than_linearly

proposed = partial(Proposal, origins=("model",))

DATA = Path(__file__).parent.parent / "data"
SHAPES = json.loads((DATA / "prioritizer_replies.json").read_text(encoding="utf-8"))
CREATIONS = json.loads((DATA / "creation_replies.json").read_text(encoding="utf-8"))
HELD_OUT = json.loads((DATA / "creation_replies_held_out.json").read_text(encoding="utf-8"))
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


# -- order
# --------------------------------------------------------------------------------------------------


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
    assert parse_order(
        "1. gamma\n2. something new", window=[(1, "alpha"), (2, "beta"), (3, "gamma")]
    ) == (3,)


def test_the_longest_name_wins_where_one_begins_like_another():
    window = [(1, "Read a"), (2, "Read a and b"), (3, "Read a and b twice")]

    assert parse_order("1. Read a and b twice\n2. Read a\n3. Read a and b", window=window) == (
        3,
        1,
        2,
    )


def test_a_name_inside_a_longer_word_is_not_recognised():
    assert parse_order("- Task 12", window=[(5, "Task 1"), (6, "Other")]) == ()


def test_tasks_of_the_same_name_are_told_apart_by_their_ids():
    assert parse_order(
        "9: Look again\n8: Look again", window=[(8, "Look again"), (9, "Look again")]
    ) == (9, 8)


def test_a_long_name_is_recognised_as_the_prompt_cut_it():
    long = "word " * 60 + "end"

    assert parse_order(f"- {long[:200]}…\n- short", window=[(1, "short"), (2, long)]) == (2, 1)


def test_a_name_without_a_letter_breaks_nothing():
    assert parse_order("2: ***\n1: ...", window=[(1, "***"), (2, "...")]) == (2, 1)


@pytest.mark.parametrize(
    "text",
    [
        '{"order": [{"id": 3}, {"id": 1}]}',
        '{"order": [{"task": 3}, {"task": "1"}]}',
        '[{"id": 1, "rank": 2}, {"id": 3, "rank": 1}]',
        '{"1": "gamma", "2": "alpha"}',
        '{"1": 3, "2": 1}',
        '{"order": {"2": 1, "1": 3}}',
        '{"3": 1, "1": 2}',
        '{"3": "urgent", "1": "can wait"}',
        '{"first": 3, "second": 1}',
        '{"id": 3}\n{"id": 1}',
        '1. {"id": 3}\n2. {"id": 1}',
        '{"name": "gamma"}\n{"name": "alpha"}',
        "{'order': [3, 1]}",
    ],
)
def test_an_order_of_objects_loses_none_of_them(text):
    assert parse_order(text, window=[(1, "alpha"), (2, "beta"), (3, "gamma")]) == (3, 1)


@settings(max_examples=300, derandomize=True)
@given(HOSTILE)
@example("[" * 3000)
@example('{"order": ' * 3000)
def test_no_text_yields_an_unknown_id_or_one_twice(text):
    order = parse_order(text, window=[(7, "Read"), (8, "a"), (9, "\ud800 | -> 7")])

    assert set(order) <= {7, 8, 9}
    assert len(set(order)) == len(order)


# -- creation
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        (
            '{"tasks": [{"name": "A", "after": []}, {"name": "B", "after": []}], '
            '"objective_met": false}'
        ),
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


def test_lines_that_begin_with_verbs_of_task_names_are_a_list():
    lines = ["Export the prices", "Import the ledger", "Paint the barn"]

    assert names_of("\n".join(lines)) == lines


def read_labelled(reply):
    """What the reply is read as, in the words of the labelled data; None for one that cannot be
    read."""
    try:
        read = parse_creation(reply, known_ids={3, 7}, finished_ids={12, 14}, max_tasks=20)
    except MalformedReplyError:
        return None
    return {
        "tasks": [
            {
                "name": task.name,
                "after": list(task.after),
                **({"from": task.parent_id} if task.parent_id else {}),
            }
            for task in read.tasks
        ],
        "unanswered": [
            {"task": lack.task_id, "lacks": lack.lack, "after": list(lack.after)}
            for lack in read.unanswered
        ],
        "is_met": read.is_met,
    }


def labelled(shape):
    if shape.get("is_malformed"):
        return None
    return {
        "tasks": shape["tasks"],
        "unanswered": shape.get("unanswered", []),
        "is_met": shape.get("is_met", False),
    }


@pytest.mark.parametrize("shape", CREATIONS, ids=lambda shape: shape["name"])
def test_a_reply_of_any_shape_is_read_as_its_label_says(shape):
    assert read_labelled(shape["reply"]) == labelled(shape)


def test_of_the_replies_that_were_held_out_nine_of_ten_are_read_and_of_the_others_none_becomes_another_task():
    read = {shape["name"]: (read_labelled(shape["reply"]), labelled(shape)) for shape in HELD_OUT}
    wrong = {name: got for name, (got, wanted) in read.items() if got != wanted}

    assert len(wrong) <= len(HELD_OUT) / 10
    assert not any(wrong.values())


def test_no_reply_is_in_both_halves_of_the_labelled_data():
    replies = [shape["reply"] for shape in CREATIONS + HELD_OUT]

    assert len(replies) >= 120
    assert len(set(replies)) == len(replies)


@pytest.mark.parametrize(
    "text",
    [
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
        '{"tasks": [{"name": ""}, null, []]}',
    ],
)
def test_a_reply_that_proposes_nothing_is_readable(text):
    reply = parse_creation(text, known_ids=(1,), max_tasks=5)

    assert reply.tasks == ()
    assert not reply.is_met


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        '{"tasks": [{"name": 7}, 7, {"after": [1]}]}',
        "Sure. Here is your list",
        "The work goes on well. In 2024. Then more.",
        "I'm sorry, I can't help with that.",
        "I'm sorry, I can't do that, because:\n- it is harmful\n- it is illegal",
        "As shown in [1] and [2], 1.5 GB is enough.",
        "<think>\n1. A",
        "---\n***\n===",
        "The objective is met. objective_met: true",
    ],
)
def test_a_reply_that_says_neither_what_is_needed_nor_that_nothing_is_asks_for_another(text):
    with pytest.raises(MalformedReplyError, match=r'expected JSON: \{"tasks"'):
        parse_creation(text, known_ids=(1,), max_tasks=5)


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
    assert [names_of(f"{mark} {name}") for mark in ("1.", "2)", "-")] == [[name]] * 3


def test_wrapped_lines_belong_to_their_item():
    text = (
        "1. Search the\nweb for More\n2. Read the page\n   and the notes\n3. Group:\n   - by "
        "year\n   - by place\n4. End."
    )

    assert names_of(text) == [
        "Search the web for More",
        "Read the page and the notes",
        "Group: - by year - by place",
        "End.",
    ]


def test_a_new_sentence_under_the_list_is_not_a_part_of_it():
    assert names_of("1. Read it.\nLet me know what you think.") == ["Read it."]


def test_of_a_reply_that_was_cut_off_only_complete_tasks_count():
    text = (
        '{"tasks": [{"name": "A", "after": [1]}, {"name": "B", "after": [1, 2]}, {"name": '
        '"Half a na'
    )

    reply = parse_creation(text, known_ids=(1,), max_tasks=9)

    assert reply.tasks == (proposed(name="A", after=(1,)), proposed(name="B", after=(1,)))
    assert not reply.is_met


@pytest.mark.parametrize(
    "text",
    [
        '{"tasks": [{"name": "Half',
        '```json\n{"tasks": [',
        '{"foo": 1}',
        '[{"tasks',
        '{"tasks": [{name: A}]}',
        "{" * 3000,
    ],
)
def test_json_that_cannot_be_read_says_what_was_expected(text):
    with pytest.raises(MalformedReplyError, match=r'expected JSON: \{"tasks"'):
        parse_creation(text, known_ids=(), max_tasks=5)


def test_only_ids_that_the_agent_was_shown_count_in_after():
    text = (
        '{"tasks": [{"name": "A", "after": [2, "3", 4.0, 2, 99, -2, true, null, "x", NaN]}, '
        '{"name": "B", "after": 3}]}'
    )

    reply = parse_creation(text, known_ids={1, 2, 3, 4}, max_tasks=5)

    assert [task.after for task in reply.tasks] == [(2, 3, 4), (3,)]


def test_the_claim_that_the_objective_is_met_is_read_from_a_whole_reply_only():
    assert parse_creation('{"tasks": [], "objective_met": true}', known_ids=(), max_tasks=5).is_met
    assert parse_creation('{"objective_met": "true"}', known_ids=(), max_tasks=5).is_met
    assert not parse_creation(
        '{"objective_met": true, "tasks": ["A", "B', known_ids=(), max_tasks=5
    ).is_met


def test_a_text_says_that_something_is_left_out():
    long = parse_creation("1. " + "x" * 501 + "\n2. fits", known_ids=(), max_tasks=5)
    many = parse_creation("- a\n- b\n- c", known_ids=(), max_tasks=2)

    assert ([task.name for task in long.tasks], long.note) == (
        ["fits"],
        "left out: 1 with a name over 500 characters",
    )
    assert ([task.name for task in many.tasks], many.note) == (
        ["a", "b"],
        "left out: 1 over the 2 allowed",
    )
    assert (long.dropped, many.dropped) == (("x" * 500,), ("c",))
    assert parse_creation("- a", known_ids=(), max_tasks=2).dropped == ()


def test_a_name_holds_nothing_that_a_store_cannot_keep():
    (name,) = names_of('{"tasks": ["a\\ud800b\\u0000c\\n\\td"]}')

    assert name == "a\ufffdb\ufffdc d"


def test_another_task_of_the_reply_is_named_by_its_label_or_by_its_name():
    after = ["a", "compare.", "Look", "z", "Write", 5]
    tasks = [{"id": "A", "name": "Look"}, {"name": "Compare"}, {"name": "Write", "after": after}]

    reply = parse_creation(json.dumps({"tasks": tasks}), known_ids=(5,), max_tasks=5)

    assert reply.tasks[2].after == ("A", "Compare", 5)


def test_a_task_that_is_left_out_is_no_reference():
    text = '{"tasks": [{"name": "Look", "after": ["b"]}, {"id": "b", "name": "Compare"}]}'

    assert parse_creation(text, known_ids=(), max_tasks=1).tasks == (proposed(name="Look"),)


def test_a_number_is_the_id_of_a_task_and_never_a_place_in_the_reply():
    text = (
        '{"tasks": [{"id": 1, "name": "Look"}, {"id": "2", "name": "Compare", "after": [1, '
        '"2", "task 3"]}]}'
    )

    assert [task.after for task in parse_creation(text, known_ids=(3,), max_tasks=5).tasks] == [
        (),
        (3,),
    ]
    assert [
        task.after for task in parse_creation(text, known_ids=(1, 2, 3), max_tasks=5).tasks
    ] == [(), (1, 2, 3)]


def test_a_finished_task_counts_in_after_and_only_a_finished_one_as_where_a_task_comes_from():
    text = '{"tasks": [{"name": "A", "after": [12], "from": 12}, {"name": "B", "from": 3}]}'

    reply = parse_creation(text, known_ids=(3,), finished_ids=(12,), max_tasks=5)

    assert reply.tasks == (proposed(name="A", after=(12,), parent_id=12), proposed(name="B"))


@pytest.mark.parametrize(
    "text",
    [
        '{"answered": false, "lacks": "x"}',
        '{"unanswered": [{"lacks": "x"}]}',
        '{"tasks": [], "lacks": "x"}',
    ],
)
def test_a_number_may_be_left_out_when_only_one_task_is_finished(text):
    one = parse_creation(text, known_ids=(3,), finished_ids=(12,), max_tasks=5)
    two = parse_creation(text + '{"tasks": []}', known_ids=(3,), finished_ids=(12, 14), max_tasks=5)

    assert one.unanswered == (Unanswered(task_id=12, lack="x"),)
    assert two.unanswered == ()


@pytest.mark.parametrize(
    ("said", "lack"),
    [
        ("Task 12 is not answered: it lacks the tide table.", "the tide table"),
        ("Task 12 was not fully answered because the tide table is missing.",
         "the tide table is missing"),
        ("**Task 12:** unanswered – still needs the tide table", "the tide table"),
        ("- Task 12 lacks the tide table", "the tide table"),
        ("Task #12 remains open.", ""),
    ],
)  # fmt: skip
def test_a_sentence_beside_or_without_a_list_calls_a_finished_task_unanswered(said, lack):
    read = partial(parse_creation, known_ids=(3,), finished_ids=(12, 14), max_tasks=5)
    listed = f"1. Ask the pilot\n2. Ask the cook\n{said}"
    table = f"| Task | After |\n|---|---|\n| Ask the pilot | 3 |\n\n{said}"

    assert read(said).tasks == ()
    assert [one.name for one in read(listed).tasks] == ["Ask the pilot", "Ask the cook"]
    assert [one.name for one in read(table).tasks] == ["Ask the pilot"]
    for text in (said, listed, table):
        assert read(text).unanswered == (Unanswered(task_id=12, lack=lack),)


@pytest.mark.parametrize(
    "text",
    [
        "Task 12: Open the ledger\nTask 14: Lack of sleep: ask the crew about it",
        "1. Task 12 needs to be read again by the cook\n2. Ask the pilot",
    ],
)
def test_a_proposal_is_no_verdict_on_the_task_that_it_names(text):
    assert len(names_of(text)) == 2
    assert not parse_creation(
        text, known_ids=(3,), finished_ids=(12, 14), max_tasks=5
    ).unanswered  # fmt: skip


def test_a_verdict_on_a_task_that_was_not_shown_is_no_reply():
    with pytest.raises(MalformedReplyError):
        parse_creation("Task 9 is not answered.", known_ids=(3,), finished_ids=(12,), max_tasks=5)


@pytest.mark.parametrize(
    "text",
    [
        "- **Ask the pilot** (high priority)\n- **Ask the cook** (medium)",
        "1. Ask the pilot (priority 2)\n2. Ask the cook [P1]",
        "- [High] Ask the pilot\n- [low priority] Ask the cook",
        '{"tasks": ["Ask the pilot (Priority: high)", "**Ask the cook** (after 3)"]}',
    ],
)
def test_how_urgent_a_task_is_does_not_belong_to_its_name(text):
    reply = parse_creation(text, known_ids=(3,), max_tasks=5)

    assert [one.name for one in reply.tasks] == ["Ask the pilot", "Ask the cook"]


def test_words_in_brackets_that_say_no_priority_belong_to_the_name():
    names = ["Measure the tide (high)", "Read the rules [2024]", "Ask both (pilot and cook)"]

    assert names_of("\n".join(f"- {name}" for name in names)) == names


def test_the_first_column_of_a_table_labels_its_rows():
    text = "| # | Task | After |\n|---|---|---|\n| a | Ask the pilot | – |\n| b | Ask her | a, 3 |"

    reply = parse_creation(text, known_ids=(3,), max_tasks=5)

    assert [one.after for one in reply.tasks] == [(), ("a", 3)]


# -- a result and the plan behind it
# --------------------------------------------------------------------------------------------

PLAN = (
    '{"lacks": "the price", "tasks": [{"id": "a", "name": "Look", "after": [3]}], '
    '"objective_met": false}'
)
DATA_OF_ANSWER = '```json\n{"limits": [1, 2]}\n```'


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (f"The answer.\n\n{PLAN}", "The answer."),
        (f"The answer.\n\n```json\n{PLAN}\n```", "The answer."),
        (f"The answer.\n\n## Next tasks\n\n```json\n{PLAN}\n```", "The answer."),
        (f"The answer.\n---\n**Plan:**\n{PLAN}", "The answer."),
        (f"The answer.\n\n{PLAN}\n\nSource: limits.md:3", "The answer.\n\nSource: limits.md:3"),
        (f"{DATA_OF_ANSWER}\n\n{PLAN}", DATA_OF_ANSWER),
        (f"{DATA_OF_ANSWER}\n{PLAN}<|im_end|>", DATA_OF_ANSWER),
        (f'The list ["a", "b"\n{PLAN}', 'The list ["a", "b"'),
        ("User: hello\nUser: again\n" + PLAN, "User: hello\nUser: again"),
        ("The answer.\n" + PLAN.replace('"', "'").replace("false", "False"), "The answer."),
        (f"<think>\n{PLAN}\n</think>\nThe answer.\n{PLAN}", "The answer."),
        ("word " * 50_000 + "\n" + PLAN, ("word " * 50_000).strip()),
        (PLAN, ""),
        (f"```json\n{PLAN}\n```\nDone.", ""),
    ],
)
def test_the_plan_is_cut_from_behind_the_result(text, result):
    said, plan, lacks = split_combined(text, known_ids={3}, max_tasks=5)

    assert said == result
    assert plan is not None and plan.tasks == (proposed(name="Look", after=(3,), label="a"),)
    assert lacks == "the price"


@pytest.mark.parametrize(
    "text",
    [
        "The answer.",
        f"The answer:\n\n{DATA_OF_ANSWER}",
        'The key {"tasks": 3} counts.',
        "f(x) { return [1]; }",
        "1. Look\n2. Compare",
        "",
    ],
)
def test_a_result_without_a_plan_stays_as_it_is(text):
    assert split_combined(text, known_ids={3}, max_tasks=5) == (text, None, "")


@pytest.mark.parametrize("n_chars", range(1, len(PLAN)))
def test_a_plan_that_is_cut_off_is_none_and_does_not_stay_in_the_result(n_chars):
    result, plan, lacks = split_combined(
        f"The answer.\n\n{PLAN[:n_chars]}", known_ids={3}, max_tasks=5
    )

    assert (result, plan) == ("The answer.", None)
    assert lacks in ("", "the price")


@settings(max_examples=300, derandomize=True)
@given(HOSTILE)
@example("1. " * 3000)
def test_no_text_raises_anything_but_a_malformed_reply(text):
    try:
        reply = parse_creation(text, known_ids={7, 8}, max_tasks=3)
    except MalformedReplyError:
        return
    assert len(reply.tasks) <= 3
    siblings = {task.label for task in reply.tasks} | {task.name for task in reply.tasks}
    assert all(
        task.name.strip() and len(task.name) <= 500 and set(task.after) <= {7, 8} | siblings
        for task in reply.tasks
    )
    parse_check(text)
    split_combined(text, known_ids={7, 8}, max_tasks=3)


@pytest.mark.thorough
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
def test_anything_is_read_in_linear_time(piece):
    def read_all(n):
        text = piece * (n // len(piece))
        parse_order(text, window=[(7, "Read"), (8, "aaaa"), (9, "a b")])
        parse_check(text)
        split_combined(text, known_ids={7}, max_tasks=3)
        try:
            parse_creation(text, known_ids={7}, max_tasks=3)
        except MalformedReplyError as error:
            assert "expected JSON" in error.what

    assert grows_faster_than_linearly(read_all, 125_000) == ""


# -- check
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_met", "missing"),
    [
        ('{"met": true, "missing": ""}', True, ()),
        ('```json\n{"met": false, "missing": "the sums"}\n```', False, ("the sums",)),
        (
            '{"parts": [], "missing": ["the sums", "the year", "the sums"], "met": false}',
            False,
            ("the sums", "the year"),
        ),
        ('{"missing": [{"part": "the sums"}], "met": false}', False, ("the sums",)),
        ("{'met': True, 'missing': []}", True, ()),
        ('{"met": "yes", "missing": "nothing"}', True, ()),
        ('{"met": true, "missing": ["the sums"]}', False, ("the sums",)),
        ("Yes, all of it.", True, ()),
        ("met: true", True, ()),
        ("**No** - the sums\nare missing.", False, ("the sums are missing",)),
        ("<think>\nYes\n</think>\nNo", False, ()),
    ],
)
def test_a_check_says_whether_the_objective_is_met_and_what_is_missing(text, is_met, missing):
    check = parse_check(text)

    assert (check.is_met, check.missing, check.is_readable) == (is_met, missing, True)
    assert check.reason == "; ".join(missing)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Yesterday it was.",
        "It may be met.",
        '{"met": 1, "missing": 2}',
        '{"met": true, "miss',
        '{"parts": [], "missing": []}',
        "[1, 2]",
    ],
)
def test_a_check_that_cannot_be_read_is_not_met(text):
    check = parse_check(text)

    assert not check.is_met and not check.is_readable
    assert check.reason == "the reply of the check could not be read"


def test_a_check_names_the_task_and_the_words_that_answer_a_part():
    parts = [
        {"part": "limits", "task": 12, "quote": "5 a second"},
        {"part": "costs", "task": "task 14"},
        {"part": "", "task": 3},
        "x",
    ]

    check = parse_check(json.dumps({"parts": parts, "missing": [], "met": True}))

    assert check.is_met
    assert check.parts == (
        CheckReplyPart(part="limits", task_id=12, quote="5 a second"),
        CheckReplyPart(part="costs", task_id=14, quote=""),
    )
