import asyncio
import json

import pytest

from babyagi.app.backends import open_store
from babyagi.cli.root import run_guarded
from babyagi.tasks import Reservation, StopReason
from babyagi.taskstore.nouns import Intention
from support.workers import join
from tests.cli import homes
from tests.cli.homes import printed_json

pytestmark = pytest.mark.usefixtures("home")


LOOKING = [
    ["status"],
    ["tasks"],
    ["show", "results"],
    ["report"],
    ["show", "1"],
    ["watch"],
    ["resume"],
    ["extend", "--max-tasks", "9"],
]


@pytest.mark.parametrize("line", LOOKING, ids=" ".join)
def test_an_empty_home_is_not_found_and_says_what_to_type(line, capsys):
    assert run_guarded(line) == 8

    err = capsys.readouterr().err
    assert "try:" in err
    assert "Traceback" not in err


def test_an_empty_home_has_no_objectives(capsys):
    assert printed_json(capsys, "show", "objectives") == []
    assert run_guarded(["show", "objectives"]) == 0
    assert "babyagi demo" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        ["status"],
        ["tasks"],
        ["show", "results"],
        ["report"],
        ["show", "1"],
        ["pause"],
        ["store", "delete", "--yes"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(("selector", "code"), [("99", 8), ("first", 2), ("-1", 2)])
def test_an_objective_that_is_not_there_is_not_found_and_nonsense_is_a_usage_error(
    line, selector, code, capsys
):
    homes.fill_home()

    assert run_guarded([*line, f"--objective={selector}"]) == code
    assert capsys.readouterr().err


def test_several_objectives_live_side_by_side_and_the_latest_is_meant(capsys):
    first, second = homes.fill_home("The first"), homes.fill_home("The second")

    assert printed_json(capsys, "status")["objective"]["text"] == "The second"
    assert printed_json(capsys, "status", "--objective", "latest")["objective"]["id"] == second
    assert (
        printed_json(capsys, "status", "--objective", str(first))["objective"]["text"]
        == "The first"
    )
    assert [row["id"] for row in printed_json(capsys, "show", "objectives")] == [first, second]


def test_status_says_how_it_stands(capsys):
    homes.fill_home()

    status = printed_json(capsys, "status")
    assert status["status"] == "active"
    assert status["stop_reason"] is None
    assert (status["tasks"]["done"], status["tasks"]["queued"]) == (1, 2)
    assert status["usage"]["calls"] == 1
    assert status["report"] == {"is_written": False}
    assert status["is_rehearsal"] is True

    assert run_guarded(["status"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("REHEARSAL: no language model was asked\n")
    assert "1 done, 2 queued" in out
    assert "Next:     babyagi resume --objective 1\n" in out


def test_status_says_that_a_worker_is_running_and_idle(capsys):
    homes.fill_home()
    assert run_guarded(["status"]) == 0
    out = capsys.readouterr().out
    assert out.count("no worker is running") == 1 and "At work:" not in out

    async def start():
        async with open_store(homes.settings()) as store:
            await store.register_worker(homes.WORKER, lease_s=60)

    asyncio.run(start())
    assert run_guarded(["status"]) == 0
    out = capsys.readouterr().out
    assert "At work:  no worker on this objective; babyagi show workers says why\n" in out


@pytest.mark.parametrize("line", [["tasks"], ["show", "tasks"]], ids=" ".join)
def test_tasks_are_listed_in_their_order(line, capsys):
    homes.fill_home()

    tasks = printed_json(capsys, *line)
    assert [(task["id"], task["name"], task["status"]) for task in tasks] == [
        (1, "Read the documents", "done"),
        (2, "Read limits.md", "queued"),
        (3, "Compare them", "queued"),
    ]
    assert run_guarded(line) == 0
    assert "Read limits.md" in capsys.readouterr().out


def test_results_are_listed(capsys):
    homes.fill_home()

    assert [
        (result["task_id"], result["task"], result["result"])
        for result in printed_json(capsys, "show", "results")
    ] == [(1, "Read the documents", "limits.md:3 says fifty tasks.")]
    assert run_guarded(["show", "results"]) == 0
    assert "limits.md:3 says fifty tasks." in capsys.readouterr().out


def test_a_groups_options_count_for_its_list(capsys):
    first = homes.fill_home("The first")
    homes.fill_home("The second")

    assert run_guarded(["show", "results", "--objective", str(first), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_one_task_is_shown_with_its_calls(capsys):
    homes.fill_home()

    shown = printed_json(capsys, "show", "1")
    assert shown["result"]["result"] == "limits.md:3 says fifty tasks."
    assert [(step["key"], step["usage"]["prompt_tokens"]) for step in shown["steps"]] == [
        ("1/execute/1/model", 100)
    ]
    assert printed_json(capsys, "show", "2")["result"] is None
    assert run_guarded(["show", "1"]) == 0
    out = capsys.readouterr().out
    assert "1/execute/1/model" in out
    assert "reply     | what the model said" in out
    assert run_guarded(["show", "77"]) == 8


def test_a_flipped_bit_is_found_by_journal_verify_and_is_a_store_error(home, capsys):
    homes.fill_home()
    assert run_guarded(["store", "verify"]) == 0
    assert capsys.readouterr().out == "18 rows read (1 steps, 1 results): nothing damaged.\n"
    path = home / "tasks.db"
    path.write_bytes(
        path.read_bytes().replace(
            b"limits.md:3 says fifty tasks.", b"limits.md:3 says sixty tasks."
        )
    )

    assert run_guarded(["store", "verify", "--objective", "latest", "--json"]) == 7
    found = json.loads(capsys.readouterr().out)
    assert (found["n_steps"], found["n_results"]) == (1, 1)
    assert found["damages"] == ["the result of task 1 of objective 1 (row 1)"]
    assert run_guarded(["store", "verify"]) == 7
    assert "damaged: the result of task 1" in capsys.readouterr().out
    assert run_guarded(["show", "results"]) == 7
    assert "sixty" not in capsys.readouterr().out


def test_a_call_that_was_cut_off_and_counted_as_paid_is_seen_in_the_steps(capsys):
    async def cut_off():
        async with open_store(homes.settings()) as store:
            await join(store, homes.WORKER, 1)
            claim = await store.claim_task(1, homes.WORKER.id)
            assert claim is not None
            reservation = Reservation(calls=1, tokens=500, cost_usd=0.25)
            await store.intend_step(
                claim.fence,
                intention=Intention(
                    key="1/execute/1/model", kind="model", request_hash="h", reservation=reservation
                ),
            )
            await store.remove_worker(homes.WORKER.id)

    homes.fill_home()
    asyncio.run(cut_off())

    (step,) = printed_json(capsys, "show", "2")["steps"]
    assert (step["state"], step["n_unconfirmed"], step["usage"]["cost_usd"]) == (
        "intended",
        1,
        0.25,
    )
    assert run_guarded(["show", "2"]) == 0
    out = capsys.readouterr().out
    assert "500+0" in out
    assert "$0.2500" in out
    assert "1 call cut off and counted as paid" in out
    assert printed_json(capsys, "show", "1")["steps"][0]["n_unconfirmed"] == 0


def test_the_report_is_given_as_markdown_as_json_and_into_a_file(tmp_path, capsys):
    homes.fill_home(reason=StopReason.FINISHED)

    assert run_guarded(["report"]) == 0
    assert capsys.readouterr().out == homes.REPORT
    assert printed_json(capsys, "report")["markdown"] == homes.REPORT
    assert run_guarded(["report", "--format", "json", "--output", str(tmp_path / "r.json")]) == 0
    assert run_guarded(["report", "--output", str(tmp_path / "r.md")]) == 0
    assert (tmp_path / "r.md").read_text() == homes.REPORT
    assert json.loads((tmp_path / "r.json").read_text())["markdown"] == homes.REPORT
    assert run_guarded(["report", "--output", str(tmp_path / "no" / "r.md")]) == 2


def test_the_report_of_an_objective_that_has_not_ended_is_what_there_is_so_far_and_how_to_go_on(
    capsys,
):
    homes.fill_home()

    assert run_guarded(["report"]) == 0
    out = capsys.readouterr().out
    assert "has not ended: it is active" in out and "babyagi resume --objective" in out
    assert "Stopped" not in out


def test_pause_cancel_and_extend_change_what_status_says(capsys):
    homes.fill_home()

    assert printed_json(capsys, "pause")["status"] == "paused"
    assert printed_json(
        capsys, "extend", "--max-tasks", "7", "--max-time", "1h30m", "--max-cost", "0"
    )["limits"] == {
        "max_tasks": 7,
        "max_calls": 0,
        "max_tokens": 2_000_000,
        "max_cost_usd": 0.0,
        "max_time_s": 5400.0,
    }
    cancelled = printed_json(capsys, "cancel")
    assert (cancelled["status"], cancelled["stop_reason"]) == ("ended", "cancelled")
    assert cancelled["tasks"]["cancelled"] == 2


def test_an_objective_that_ended_by_a_limit_is_extended_and_says_how_to_go_on(capsys):
    objective_id = homes.fill_home(reason=StopReason.LIMIT_TASKS)

    assert run_guarded(["extend", "--max-tasks", "100"]) == 0

    said = capsys.readouterr().out
    assert f"babyagi resume --objective {objective_id}" in said
    assert said.count("active") == 1
    assert printed_json(capsys, "status")["status"] == "active"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["--max-tasks", "1"], "1 task is used already; give --max-tasks 2 or more"),
        (["--max-calls", "1"], "1 call is used already; give --max-calls 2 or more"),
        (["--max-tokens", "120"], "120 tokens are used already; give --max-tokens 121 or more"),
    ],
)
def test_a_limit_that_is_used_up_already_is_refused_and_the_objective_stays_ended(
    typed, said, capsys
):
    homes.fill_home(reason=StopReason.LIMIT_TASKS)

    assert run_guarded(["extend", *typed]) == 2

    assert said in capsys.readouterr().err
    assert printed_json(capsys, "status")["status"] == "ended"


@pytest.mark.parametrize("verb", ["pause", "cancel"])
def test_what_has_ended_is_neither_paused_nor_cancelled_and_that_is_said(verb, capsys):
    homes.fill_home(reason=StopReason.FINISHED)

    assert run_guarded([verb]) == 2

    said = capsys.readouterr().err
    assert "objective 1 has already ended (finished); nothing was " in said


def test_extend_without_a_limit_is_a_usage_error(capsys):
    homes.fill_home()

    assert run_guarded(["extend"]) == 2
    assert run_guarded(["extend", "--max-tasks", "many"]) == 2
    assert "--max-tasks must be a whole number" in capsys.readouterr().err


def test_delete_needs_a_person_or_yes(capsys):
    homes.fill_home()

    assert run_guarded(["store", "delete"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert len(printed_json(capsys, "show", "objectives")) == 1
    assert run_guarded(["store", "delete", "--yes"]) == 0
    capsys.readouterr()
    assert printed_json(capsys, "show", "objectives") == []


@pytest.mark.parametrize(
    ("reason", "code"),
    [(StopReason.FINISHED, 0), (StopReason.LIMIT_COST, 3), (StopReason.STALLED, 6)],
)
def test_watching_an_objective_that_has_ended_ends_with_its_exit_code(reason, code, capsys):
    homes.fill_home(reason=reason)

    assert run_guarded(["watch"]) == code
    said = capsys.readouterr()
    assert said.out == homes.REPORT
    assert reason.value in said.err


def test_watch_as_json_gives_every_event_one_a_line(capsys):
    homes.fill_home(reason=StopReason.FINISHED)

    assert run_guarded(["watch", "--json"]) == 0

    *events, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert last["outcome"]["report"] == homes.REPORT
    assert [event["id"] for event in events] == sorted({event["id"] for event in events})
    assert events[0]["kind"] == "objective.created"
    assert "report.written" in [event["kind"] for event in events]
    assert all(
        set(event) == {"v", "id", "at", "objective_id", "task_id", "kind", "data"}
        for event in events
    )


def test_a_home_that_cannot_be_made_is_a_store_error(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "file" / "home"))

    assert run_guarded(["submit", "x"]) == 7
    assert "Traceback" not in capsys.readouterr().err
