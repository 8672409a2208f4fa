import json
import re
from pathlib import Path

import pytest

import babyagi
from babyagi.cli.root import run_guarded
from tests.cli import homes, looked_at

PAGE = Path(babyagi.__file__).parent / "guide" / "looking.md"

# what must be read in the answer, by the question on the page; where it ends with an objective that
# has ended, it is asked there
ANSWERS = {
    "What is it doing now?": ["it is working on task 6"],
    "How far is it, and how much is left of its limits?": ["2 done", "tasks 4/50", "of $1"],
    "Which tasks are there?": ["Compare the prices", "after 4", "waits for your answer"],
    "What is still to be done?": ["Compare the prices"],
    "Which tasks were given up?": ["Read missing.md", "Find the tax"],
    "Who works on it, and on what?": ["name-w1", "task 6"],
    "Why does task 3 not start?": ["it waits for task 4", "babyagi show 4"],
    "Why was task 5 given up, and how is it tried again?": [
        "no such file",
        "babyagi tasks retry 5",
    ],
    "What waits for me?": ["May I ask for a discount?", "babyagi inbox answer"],
    "What has it found so far?": ["limits.md says fifty tasks", "Prices are in euros."],
    "What did task 1 find?": ["limits.md says fifty tasks"],
    "What did task 1 cost, and how long did it take?": ["$0.0008", "done at"],
    "What did it ask the model in task 1?": ["Read the documents.", "--step 2 shows all"],
    "What did it ask the model, word for word?": ["system", "line 39 of a long document"],
    "What did the model reply?": ['read_file(path="limits.md")'],
    "Which tools did task 1 call?": ['tool read_file(path="limits.md") → 17 bytes'],
    "What did a tool return?": ["1 dollar"],
    "Which model answered?": [f"model {looked_at.MODEL}"],
    "Which earlier results was task 2 given, and why?": ["task 1, score 0.40, the task depends on"],
    "Which task did task 2 come from?": ["the result of task 1"],
    "What did it ask me, and what did I answer?": ["asks: Which currency?", "answer: Use euros"],
    "Which calls were cut off and counted as paid?": [
        "1 call cut off and counted as paid",
        "$0.25",
        "Calls without an outcome",
        "1/execute/9/model · nothing was counted",
    ],
    "What does task 7 still lack?": ["the tax rate of Norway"],
    "What happened to task 5, from its beginning?": [
        "task 5 added",
        "failed: Read missing.md (no such file)",
    ],
    "What happened in the last ten minutes?": ["objective 1 created", "task 6 claimed"],
    "What happened last?": ["task 6 claimed"],
    "What happens from now on?": ["the report is written"],
    "Which proposed tasks were left out?": ["Write a novel"],
    "Why were these tasks proposed?": ["Which tasks are missing?", "Ask for prices"],
    "Why is the list in this order?": ["In which order?", "[2, 4]"],
    "What did the check find missing?": ['{"missing": ["the prices"]}'],
    "How was the report written?": ["Write the report.", "Fifty tasks."],
    "Why did it stop, and what goes on with it?": ["limit:tasks", "babyagi extend", "--max-tasks"],
}
OF_AN_END = {
    "What happens from now on?",
    "How was the report written?",
    "Why did it stop, and what goes on with it?",
}


pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def look(capsys):
    """Types a command and returns what is printed."""

    def type_(*line, code=0):
        assert run_guarded(list(line)) == code
        captured = capsys.readouterr()
        assert code or captured.err == ""
        return captured.out if code == 0 else captured.err

    return type_


def questions():
    rows = re.findall(r"^\| ([^|]+\?) \| `babyagi ([^`]+)` \|$", PAGE.read_text(), re.MULTILINE)
    return [(question, command.split()) for question, command in rows]


def test_the_page_answers_at_least_thirty_questions_and_each_has_a_test():
    assert [question for question, _ in questions()] == list(ANSWERS)
    assert len(ANSWERS) >= 30


def test_each_command_on_the_page_shows_what_was_asked_for(look):
    looked_at.fill_running_home()
    wrong = find_wrong(look, is_ended=False)

    assert wrong == {}


def test_each_command_on_the_page_shows_what_was_asked_for_after_the_end(look):
    looked_at.fill_ended_home()

    assert find_wrong(look, is_ended=True) == {}


def find_wrong(look, *, is_ended):
    """What is missing in the answers, by question."""
    wrong = {}
    for question, command in questions():
        if (question in OF_AN_END) is is_ended:
            said = " ".join(look(*command).split())
            missing = [words for words in ANSWERS[question] if words not in said]
            if missing:
                wrong[question] = (missing, said)
    return wrong


def test_no_key_and_no_escape_is_shown_in_any_form(look):
    looked_at.fill_running_home()

    for command in (
        ["show", "1"],
        ["show", "1", "--full"],
        ["show", "1", "--json"],
        ["show", "log"],
    ):
        said = look(*command)
        assert looked_at.KEY not in said and "\x1b" not in said
    assert "line 39 of a long document" in look("show", "1", "--full")
    assert "line 39 of a long document" not in look("show", "1")


def test_a_prompt_names_the_messages_of_the_one_before_and_shows_them_whole_when_asked(look):
    looked_at.fill_running_home()

    folded, whole = look("show", "1"), look("show", "1", "--step", "4")
    assert "3 messages as in the step before" in folded
    assert whole.count("Role: execution agent") == 1
    assert folded.count("Role: execution agent") == 1


def test_a_step_as_json_has_its_texts_and_its_cost(look):
    looked_at.fill_running_home()

    steps = json.loads(look("show", "1", "--json"))["steps"]
    assert [step["n"] for step in steps] == [1, 2, 3, 4]
    assert steps[1]["usage"]["cost_usd"] == 0.0004
    assert [part["label"] for part in steps[1]["parts"]] == ["system", "user", "tools", "calls"]
    plan = json.loads(look("show", "plan", "--json"))
    assert plan["duty"] == "plan" and len(plan["steps"]) == 4


def test_steps_of_a_duty_keep_their_numbers_when_only_some_are_shown(look, monkeypatch):
    looked_at.fill_running_home()
    monkeypatch.setattr("babyagi.cli.show.N_TIMES", 1)

    assert "made 4 times" in look("show", "plan")
    assert "\n   4  " in look("show", "plan") and "\n   3  " not in look("show", "plan")
    assert "Which tasks are missing?" in look("show", "plan", "--step", "1")
    assert "try:     babyagi show plan" in look("show", "plan", "--step", "5", code=8)


def test_a_cost_without_a_price_is_unknown_and_a_rehearsal_costs_nothing(look):
    homes.fill_home(model="rehearsal")

    assert "no cost (rehearsal)" in look("show", "1")
    assert "cost nothing" in look("status")
    for command in (["show", "1"], ["status"], ["show", "log"], ["show", "objectives"]):
        assert "$0.0000" not in look(*command)


def test_the_last_lines_are_the_last_ones_of_the_whole_log(look):
    looked_at.fill_running_home()

    every = look("show", "log").splitlines()
    assert look("show", "log", "-n", "4").splitlines() == every[-4:]
    assert look("show", "log", "-n", "10000").splitlines() == every
    of_five = look("show", "log", "5").splitlines()
    assert of_five == [line for line in every if "task 5" in line]


def test_a_log_in_json_is_one_event_a_line_with_its_words(look):
    looked_at.fill_running_home()

    entries = [json.loads(line) for line in look("show", "log", "--json").splitlines()]
    assert [entry["id"] for entry in entries] == sorted({entry["id"] for entry in entries})
    (tool,) = [entry for entry in entries if entry["text"].startswith("task 1: tool")]
    assert (tool["kind"], tool["task_id"]) == ("step.recorded", 1)


@pytest.mark.thorough
@pytest.mark.parametrize("page", [1, 2, 7])
def test_a_log_is_the_same_in_pages_of_any_size(look, monkeypatch, page):
    looked_at.fill_running_home()
    whole, last = look("show", "log"), look("show", "log", "-n", "5")
    monkeypatch.setattr("babyagi.cli.show.PAGE", page)

    assert look("show", "log") == whole
    assert look("show", "log", "-n", "5") == last


@pytest.mark.parametrize("page", [1, 2, 1000])
def test_a_list_of_tasks_is_the_same_in_pages_of_any_size(look, monkeypatch, page):
    looked_at.fill_running_home()
    whole = json.loads(look("tasks", "--json"))
    monkeypatch.setattr("babyagi.verbs.actions.PAGE", page)

    assert json.loads(look("tasks", "--json")) == whole
    assert [task["id"] for task in whole] == [1, 2, 4, 3, 5, 6, 7]
    assert {task["id"]: task["why"]["why"] for task in whole} == {
        1: "done",
        2: "done",
        3: "after",
        4: "answer",
        5: "dead",
        6: "running",
        7: "dead",
    }


def test_a_short_list_begins_with_what_is_done_now_and_says_how_to_see_the_rest(look):
    looked_at.fill_running_home()

    said = look("tasks", "--limit", "3").splitlines()
    assert [line.split()[0] for line in said[1:4]] == ["6", "4", "3"]
    assert "and 4 more: --limit 0 shows all" in said[4]
    assert len(look("tasks", "--limit", "0").splitlines()) == 8
    done = look("tasks", "--status", "done", "--limit", "1")
    assert "Read the documents" in done and "and 1 more" in done
    listed = json.loads(look("tasks", "--status", "dead", "--json"))
    assert [task["id"] for task in listed] == [5, 7]


@pytest.mark.parametrize("line", [["show", "99"], ["show", "log", "99"]], ids=" ".join)
def test_a_task_that_is_not_there_is_not_found_and_the_list_is_named(line, look):
    looked_at.fill_running_home()

    assert "try:     babyagi tasks --objective 1" in look(*line, code=8)


@pytest.mark.parametrize(
    "line",
    [["show", "x"], ["show", "-1"], ["show", "log", "--since", "x"]],
    ids=" ".join,
)
def test_nonsense_is_a_usage_error_with_something_to_try(line, look):
    looked_at.fill_running_home()

    assert "try:" in look(*line, code=2)
