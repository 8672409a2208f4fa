"""Reading a plan: which tasks it proposes, which it calls unanswered, and what it refers to."""

from dataclasses import replace

import pytest

from babyagi.agents.creation import Finished, parse_creation, split_combined
from babyagi.errors import MalformedReplyError
from babyagi.tasks import Lack
from tests.noun import make_task


def parse(reply, *, known=(3, 7), finished=(12,), max_tasks=5):
    return parse_creation(reply, known_ids=known, finished_ids=finished, max_tasks=max_tasks)


def test_a_plan_names_tasks_with_what_they_come_after_and_what_they_come_from():
    reply = parse(
        '{"tasks": [{"id": "a", "name": "Find  the price", "after": ["3", 99], "from": 12},'
        ' {"id": "b", "name": "Compare", "after": ["a", 7]}], "objective_met": true}'
    )

    first, second = reply.tasks
    assert (first.name, first.after, first.parent_id) == ("Find the price", (3,), 12)
    assert (second.after, second.parent_id) == (("a", 7), None)
    assert reply.is_met


def test_a_task_may_say_which_known_task_it_repeats():
    reply = parse('{"tasks": [{"name": "A", "repeats": 7}, {"name": "B", "repeats": 99}]}')

    assert [task.repeats for task in reply.tasks] == [7, None]


def test_finished_tasks_can_be_called_unanswered_with_what_brings_what_they_lack():
    reply = parse(
        '{"tasks": [{"id": "a", "name": "Find the price"}], "unanswered": '
        '[{"task": 12, "lacks": "the price", "after": ["a"]}, {"task": 3, "lacks": "more"}]}'
    )

    (one,) = reply.unanswered
    assert (one.task_id, one.lack, one.after) == (12, "the price", ("a",))


@pytest.mark.parametrize("reply", ['["Find the price"]', 'Tasks:\n[{"name": "Find the price"}]'])
def test_a_bare_list_is_a_list_of_tasks(reply):
    assert [task.name for task in parse(reply).tasks] == ["Find the price"]


def test_tasks_over_the_bounds_are_dropped_by_name():
    names = ", ".join(f'"Read {n}.md"' for n in range(4))

    reply = parse(f'{{"tasks": [{names}, "{"a" * 600}"]}}', max_tasks=3)

    assert len(reply.tasks) == 3 and reply.dropped == ("a" * 500, "Read 3.md")


@pytest.mark.parametrize(
    "reply", ["", "Nothing more is needed.", '{"answer": 4}', '{"tasks": [{"id": "a"}]}']
)
def test_a_reply_without_a_plan_is_asked_for_again(reply):
    with pytest.raises(MalformedReplyError):
        parse(reply)


@pytest.mark.parametrize("tasks", ["[]", '[{"id": "a", "name": ""}]', '[{"name": "…"}, ""]'])
def test_an_empty_plan_is_a_plan(tasks):
    assert parse(f'{{"objective_met": false, "unanswered": [], "tasks": {tasks}}}').tasks == ()


# -- a result with its plan
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "block",
    [
        '{"lacks": "", "after": [], "tasks": [], "objective_met": false}',
        '```json\n{"lacks": "", "after": [], "tasks": [], "objective_met": false}\n```',
        '{{"lacks": "", "tasks": []}}',
    ],
)
def test_a_plan_at_the_end_is_no_part_of_the_result(block):
    text, plan, lacks, after = split_combined(f"It is 4.\n\n{block}", known_ids={3}, max_tasks=4)

    assert (text, lacks, after) == ("It is 4.", "", ()) and plan is not None


def test_a_lack_names_what_brings_it():
    text, plan, lacks, after = split_combined(
        'Half of it.\n{"lacks": "the width", "after": [3, "a", 99], "tasks": '
        '[{"id": "a", "name": "Find the width"}], "objective_met": false}',
        known_ids={3},
        max_tasks=4,
    )

    assert (text, lacks, after) == ("Half of it.", "the width", (3, "a"))
    assert plan is not None and [task.name for task in plan.tasks] == ["Find the width"]


@pytest.mark.parametrize(
    "reply",
    ["It is 4.", '{"tasks": 4, "name": "a config"}\nThis file is good.', 'It is {"lacks": "x"}'],
)
def test_other_json_belongs_to_the_result(reply):
    text, plan, lacks, _ = split_combined(reply, known_ids={3}, max_tasks=4)

    assert (text, plan, lacks) == (reply, None, "")


def test_what_a_task_lacks_is_shown_with_what_it_found():
    task = replace(make_task("Compare"), lack=Lack(what="the width", found="It is 4 high."))

    assert (
        Finished(task=task, result=None).text == "It is 4 high.\nNot answered; it lacks: the width"
    )
