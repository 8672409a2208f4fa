"""Whole runs through the command line, with the rehearsal model on real files."""

import json
import socket

import pytest

from babyagi.cli.root import run_guarded

REHEARSAL = "REHEARSAL: no language model was asked"
READING = "run/Say what the limits are/-t/Read it/--model/rehearsal/--files".split("/")
DOCUMENTS = {
    "limits.md": (
        "# Limits\n\nA run stops at fifty tasks unless the limit is raised.\nThe money limit "
        "is one dollar.\n"
    ),
    "recovery.md": "# Recovery\n\nA killed run goes on where it was.\nNothing is paid for twice.\n",
    "models.md": (
        "# Models\n\nA local server needs no key.\nThe rehearsal model reads files and "
        "quotes them.\n"
    ),
}


pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def documents(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text)
    return folder


def status_of(capsys, *line):
    capsys.readouterr()
    assert run_guarded(["status", "--json", *line]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_demo_does_the_job_and_says_that_it_is_a_rehearsal(documents, capsys):
    assert run_guarded(["demo", str(documents), "--question", "At what does a run stop?"]) == 0

    out, err = capsys.readouterr()
    assert out.startswith("# Report: ") and REHEARSAL in out
    assert err.startswith(REHEARSAL + "\n") and err.endswith(REHEARSAL + "\n")
    assert "limits.md:3" in out
    assert "A run stops at fifty tasks unless the limit is raised." in out
    assert "babyagi report --objective 1" in err
    assert status_of(capsys)["report"]["is_written"] is True


def test_a_second_demo_is_a_fresh_objective(documents, capsys):
    assert run_guarded(["demo", str(documents)]) == 0
    assert run_guarded(["demo", str(documents)]) == 0

    assert status_of(capsys)["objective"]["id"] == 2


def test_the_demo_as_json_prints_events_and_nothing_else(documents, capsys):
    assert run_guarded(["demo", str(documents), "--json"]) == 0

    *events, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kinds = [event["kind"] for event in events]
    assert set(last) == {"v", "outcome"}
    assert kinds[0] == "objective.created"
    assert "report.written" in kinds


@pytest.mark.thorough
def test_the_demo_needs_no_folder(capsys):
    assert run_guarded(["demo"]) == 0
    assert ".md:" in capsys.readouterr().out


def test_a_folder_that_is_not_there_is_a_usage_error(capsys):
    assert run_guarded(["demo", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_an_objective_that_ended_is_not_run_again_however_often_it_is_started(documents, capsys):
    line = [*READING, str(documents), "--max-tasks", "2"]
    assert run_guarded(line) == 3
    before = status_of(capsys)

    for _ in range(3):
        assert run_guarded(line) == 3
        out, err = capsys.readouterr()
        assert out.startswith("# Report: Say what the limits are")
        assert "ended already" in err and "--new" in err

    assert status_of(capsys) == before
    assert run_guarded([*line, "--new"]) == 3
    assert status_of(capsys)["objective"]["id"] == 2


def test_an_objective_that_a_limit_ended_goes_on_after_extend_and_resume(documents, capsys):
    line = [*READING, str(documents), "--max-tasks", "1"]
    assert run_guarded(line) == 3

    assert run_guarded(["extend", "--max-tasks", "50"]) == 0
    assert run_guarded(["resume"]) == 0

    assert status_of(capsys)["tasks"]["done"] > 1
    assert run_guarded(["resume"]) == 2


def test_the_bare_command_runs_the_objective_of_the_environment(documents, monkeypatch, capsys):
    monkeypatch.setenv("OBJECTIVE", "Say what the limits are")
    monkeypatch.setenv("LLM_MODEL", "rehearsal")
    monkeypatch.setenv("BABYAGI_FILES", str(documents))

    assert run_guarded([]) == 0
    assert status_of(capsys)["objective"]["text"] == "Say what the limits are"


def test_the_originals_command_line_runs(monkeypatch, capsys):
    monkeypatch.setenv("LLM_MODEL", "rehearsal")

    assert run_guarded(["-n", "B1", "-t", "first task", "some", "objective", "words"]) == 6

    status = status_of(capsys)
    assert status["objective"]["text"] == "some objective words"
    assert status["objective"]["initial_task"] == "first task"
    assert status["instance_name"] == "B1"


def test_without_a_key_and_without_a_terminal_the_ways_out_come_before_anything_is_made(
    home, capsys
):
    assert run_guarded(["run", "an objective"]) == 4

    err = capsys.readouterr().err
    for way in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "babyagi demo",
        "LLM_MODEL=human",
        "babyagi guide models",
    ):
        assert way in err
    assert not (home / "tasks.db").exists()


def test_bare_without_an_objective_it_says_what_it_is_and_what_to_type(capsys):
    assert run_guarded([]) == 0

    said = capsys.readouterr()
    for typed in ("babyagi demo", "babyagi run", "babyagi guide", "babyagi help"):
        assert typed in said.out
    assert said.err == ""


def test_bare_with_a_first_task_alone_the_objective_is_missed(monkeypatch, capsys):
    monkeypatch.setenv("INITIAL_TASK", "Look the price up")

    assert run_guarded([]) == 2
    assert "no objective was given" in capsys.readouterr().err


@pytest.mark.parametrize("line", [["run"], ["run", ""], ["run", "  "]])
def test_without_an_objective_the_ways_out_are_a_usage_error(line, monkeypatch, capsys):
    if line[1:]:
        monkeypatch.setenv("OBJECTIVE", "another one")

    assert run_guarded(line) == 2
    assert "babyagi" in capsys.readouterr().err


def test_a_port_that_nobody_listens_on_is_one_clear_error_and_nothing_is_lost(monkeypatch, capsys):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
    monkeypatch.setattr("babyagi.llm.retry.MAX_REQUESTS", 1)

    assert run_guarded(["run", "an objective"]) == 6

    assert f"http://127.0.0.1:{port}/v1 cannot be reached" in capsys.readouterr().err
    assert status_of(capsys)["tasks"]["queued"] == 1


def test_hostile_text_in_an_objective_reaches_neither_the_screen_nor_the_log(
    documents, home, capsys
):
    assert (
        run_guarded(
            [
                "run",
                "limits\x1b[2J \u202eof\x07 this\nand that",
                "--model",
                "rehearsal",
                "--files",
                str(documents),
            ]
        )
        == 0
    )

    captured = capsys.readouterr()
    for text in (captured.out, captured.err, (home / "babyagi.log").read_text()):
        assert not set(text) & set("\x1b\x07\u202e")


def test_every_change_of_a_task_is_in_the_log_file_and_no_prompt_is(documents, home, capsys):
    assert run_guarded(["demo", str(documents)]) == 0

    log_lines = (home / "babyagi.log").read_text().splitlines()
    n_done = status_of(capsys)["tasks"]["done"]
    assert (
        sum("done" in line and " task " in line and "INFO" in line for line in log_lines) == n_done
    )
    assert not any("Role:" in line for line in log_lines)


def given_to(capsys, objective):
    """What the tasks of the objective were given of other objectives, as `show` prints it."""
    found = []
    assert run_guarded(["tasks", "--json", "--objective", objective]) == 0
    for task in json.loads(capsys.readouterr().out):
        assert run_guarded(["show", str(task["id"]), "--objective", objective, "--json"]) == 0
        found += [
            given
            for given in json.loads(capsys.readouterr().out)["given"]
            if given["objective_id"] is not None
        ]
    return found


def test_results_of_another_objective_are_given_only_with_memory_shared(documents, capsys):
    run = ["run", "--model", "rehearsal", "--files", str(documents), "--max-tasks", "3"]
    assert (
        run_guarded(
            [*run, "-t", "Read limits.md: at what does a run stop?", "Say what the limits are"]
        )
        == 3
    )
    assert run_guarded([*run, "-t", "Say again at what a run stops", "Know the limits"]) == 3
    assert (
        run_guarded(
            [
                *run,
                "-t",
                "Say again at what a run stops",
                "Know the limits of a run",
                "--memory",
                "shared",
            ]
        )
        == 3
    )
    capsys.readouterr()

    alone, shared = given_to(capsys, "2"), given_to(capsys, "3")

    assert alone == []
    assert shared and {(given["reason"], given["objective_id"] in (1, 2)) for given in shared} == {
        ("shared", True)
    }
    assert status_of(capsys, "--objective", "2")["memory"] == "objective"
    assert status_of(capsys, "--objective", "3")["memory"] == "shared"
    task_id = str(shared[0]["task_id"])
    assert run_guarded(["show", "1", "--objective", "3"]) == 0
    assert (
        f"objective {shared[0]['objective_id']}, task {task_id}, score" in capsys.readouterr().out
    )


def nobody(monkeypatch):
    """An address of this machine that no server listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{free.getsockname()[1]}/v1")
    monkeypatch.setenv("LLM_MODEL", "some")
    monkeypatch.setenv("BABYAGI_MAX_COST_USD", "0")
    monkeypatch.setattr("babyagi.llm.retry.MAX_REQUESTS", 1)


def test_a_further_question_is_answered_from_the_results_and_in_the_report(documents, capsys):
    assert run_guarded(["demo", str(documents), "--question", "At what does a run stop?"]) == 0
    asked_before = status_of(capsys)["usage"]["calls"]

    line = ["run", "--continue", "1", "What goes on where it was?"]
    assert run_guarded(line) == 0

    assert (
        "objective 1 has a further question (What goes on where it was?)" in capsys.readouterr().err
    )
    status = status_of(capsys)
    assert (status["stop_reason"], status["objective"]["further"]) == (
        "finished",
        ["What goes on where it was?"],
    )
    assert run_guarded(["report"]) == 0
    report = capsys.readouterr().out
    assert "* Asked further: What goes on where it was?" in report
    answer = report.split("## How it ended")[0]
    assert "A killed run goes on where it was." in answer
    assert run_guarded(line) == 0
    assert "no model is asked" in capsys.readouterr().err
    assert status_of(capsys)["usage"]["calls"] > asked_before


def test_a_further_question_at_a_limit_changes_nothing_and_says_what_to_type(documents, capsys):
    line = ["--task", "Read", "--model", "rehearsal", "--files", str(documents), "--max-tasks", "2"]
    assert run_guarded(["run", "At what does a run stop?", *line]) == 3
    before = status_of(capsys)

    assert run_guarded(["run", "--continue", "latest", 'Is it "$5"?']) == 3

    assert r'try:     babyagi run --continue 1 --max-tasks 4 "Is it \"\$5\"?"' in (
        capsys.readouterr().err
    )
    assert run_guarded(["tasks", "add", "Ask Ann"]) == 3
    assert "try:     babyagi extend --objective 1 --max-tasks 4" in capsys.readouterr().err
    assert status_of(capsys) == before
    assert run_guarded(["run", "--continue", "1", "--max-tasks", "20", "What is a limit?"]) == 0
    assert status_of(capsys)["limits"]["max_tasks"] == 20


AGENTS = """
version: ignore
components:
  - {name: Node, type: PromptNode}
  - {name: Run, type: PythonRuntime}
agents:
  - {name: one, params: {prompt_node: Node, tools: [{name: Try, pipeline_or_node: Run, description: computes}]}}
"""


def test_a_further_question_without_the_agent_of_the_objective_changes_nothing(
    documents, capsys, tmp_path
):
    agents = tmp_path / "agents.yaml"
    agents.write_text(AGENTS, "utf-8")
    run_guarded(["run", "What is a limit?", "--model", "rehearsal", "--agent", str(agents)])
    before = status_of(capsys)

    assert run_guarded(["run", "--continue", "1", "What is a run?", "--model", "rehearsal"]) == 2

    assert "try:     name the file here too: --agent FILE#one" in capsys.readouterr().err
    assert status_of(capsys) == before


def test_what_is_frozen_is_not_changed_by_a_further_question(capsys):
    for more in (["-t", "first"], ["--new"], ["--planning", "combined"]):
        assert run_guarded(["run", "--continue", "1", "a question", *more]) == 2
    assert run_guarded(["run", "--continue", "1"]) == 2
    assert "the further question is missing" in capsys.readouterr().err


def test_a_start_that_gets_no_answer_is_left_to_no_worker_and_to_no_bare_resume(
    documents, capsys, monkeypatch
):
    with monkeypatch.context() as broken:
        nobody(broken)
        assert run_guarded(["run", "Count the bridges"]) == 6
        assert run_guarded(["run", "Name the towers"]) == 6
    assert run_guarded(["demo", str(documents)]) == 0

    status = status_of(capsys, "--objective", "1")
    assert (status["status"], status["is_set_aside"]) == ("paused", True)
    assert "cannot be reached" in status["stop_detail"]
    assert run_guarded(["show", "objectives"]) == 0
    assert capsys.readouterr().out.count("not begun") == 2
    assert run_guarded(["resume"]) == 2
    with monkeypatch.context() as broken:
        nobody(broken)
        assert run_guarded(["run", "Count the bridges"]) == 6
    assert run_guarded(["store", "delete", "--old", "--yes"]) == 0
    assert "2 deleted." in capsys.readouterr().out


def test_a_run_that_a_person_must_mend_is_set_aside_and_goes_on_when_it_is_mended(
    documents, capsys, monkeypatch
):
    monkeypatch.setenv("LLM_MODEL", "rehearsal")
    assert run_guarded(["submit", "At what does a run stop?", "--files", str(documents)]) == 0
    moved = documents.rename(documents.with_name("moved"))

    assert run_guarded(["resume"]) == 2

    assert "needs a folder" in capsys.readouterr().err
    status = status_of(capsys)
    assert status["is_set_aside"] is True and "needs a folder" in status["stop_detail"]
    moved.rename(documents)
    assert run_guarded(["resume"]) == 0
    assert status_of(capsys)["is_set_aside"] is False


def test_latest_is_what_the_person_had_to_do_with_last(documents, capsys):
    assert run_guarded(["demo", str(documents)]) == 0
    assert run_guarded(["demo", str(documents)]) == 0
    assert status_of(capsys)["objective"]["id"] == 2

    assert run_guarded(["tasks", "add", "Ask Ann", "--objective", "1"]) == 0

    assert "objective 1 is active again: babyagi resume --objective 1" in capsys.readouterr().out
    assert status_of(capsys)["objective"]["id"] == 1
    assert run_guarded(["status", "--objective", "2"]) == 0
    assert status_of(capsys)["objective"]["id"] == 1


def test_in_an_empty_home_resume_names_what_begins_and_not_what_goes_on(capsys):
    assert run_guarded(["resume"]) == 8

    said = capsys.readouterr().err
    assert "there is no objective yet" in said and "babyagi demo" in said
    assert "--continue" not in said
