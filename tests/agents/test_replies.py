"""Finding JSON in a reply, whatever stands around it, and what in it was asked for."""

import pytest

from babyagi.agents.replies import find_list, find_object, to_id, to_line, to_list, visible

PLAN = {"tasks": [{"name": "Read a.md"}], "objective_met": False}


@pytest.mark.parametrize(
    "reply",
    [
        '{"tasks": [{"name": "Read a.md"}], "objective_met": false}',
        'Here it is:\n```json\n{"tasks": [{"name": "Read a.md"}], "objective_met": false}\n```\nOk?',
        '{{"tasks": [{"name": "Read a.md"}], "objective_met": false}}',
        "{'tasks': [{'name': 'Read a.md',},], 'objective_met': False,}",
        '{"plan": {"Tasks": [{"name": "Read a.md"}], "objectiveMet": false}}',
        '{"tasks": ["an example"]}\nNo, this:\n'
        '{"tasks": [{"name": "Read a.md"}], "objective-met": false}',
    ],
)
def test_the_last_object_that_has_a_wanted_key_is_found_in_whatever_form(reply):
    assert find_object(reply, "tasks", "objective_met")[0] == PLAN


@pytest.mark.parametrize("reply", ["", "There is nothing to do.", "[1, 2]", '{"other": 1}', "{x}"])
def test_a_reply_without_such_an_object_has_none(reply):
    assert find_object(reply, "tasks")[0] == {}


def test_a_value_that_is_cut_off_is_none():
    cut = '{"tasks": [{"name": "Read a"}, {"name": "Read b", "after": [1'

    assert find_object(cut, "tasks")[0] == {}


def test_the_last_list_is_found():
    assert find_list("First [1], then ['a', 'b'].") == ["a", "b"]
    assert find_list("None.") is None


def test_invisible_characters_are_no_part_of_a_reply():
    assert visible("\u200bThe answer.\ufeff") == "The answer."


@pytest.mark.parametrize(
    ("value", "id_"),
    [(3, 3), (3.0, 3), ("3", 3), (" #3 ", 3), ("task 3", None), (True, None), (None, None)],
)
def test_a_number_of_a_task_is_a_number(value, id_):
    assert to_id(value) == id_


def test_a_line_has_letters_or_digits_in_any_script_and_a_list_is_one():
    assert to_line(" the\nprice ") == "the price" and to_line("価格") == "価格"
    assert to_line("…") == to_line(None) == "" and len(to_line("a" * 900)) == 500
    assert (to_list(None), to_list("a"), to_list(["a"])) == ([], ["a"], ["a"])
