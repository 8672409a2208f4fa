import asyncio
from dataclasses import replace

import pytest

from babyagi.app.backends import open_store
from babyagi.cli.root import run_guarded
from babyagi.files.home import home_id
from babyagi.inbox import write_request
from babyagi.tasks import StopReason
from babyagi.taskstore.nouns import Kept
from support.workers import join
from tests.cli import homes
from tests.cli.homes import printed_json
from tests.cli.samples import HOSTILE


@pytest.fixture(autouse=True)
def filled(home):
    homes.fill_home()


def park(kind, tool, arguments, *, key="1/execute/1/tool/1", reason=StopReason.WAITING):
    """Let the next queued task wait, end the objective for this reason, and return the number to
    answer to."""

    async def fill():
        async with open_store(homes.settings()) as store:
            await join(store, homes.WORKER, 1)
            claim = await store.claim_task(1, homes.WORKER.id)
            assert claim is not None
            step = await store.park_task(
                claim.fence, key=key, kind=kind, request=write_request(tool, arguments)
            )
            await homes.end(store, 1, reason)
            await store.remove_worker(homes.WORKER.id)
            return step.id

    return asyncio.run(fill())


def test_an_answer_to_an_objective_that_ended_at_a_limit_names_the_command_that_raises_it(capsys):
    park("question", "ask_user", {"question": "Which day?"}, reason=StopReason.LIMIT_CALLS)

    assert run_guarded(["inbox", "answer", "3", "Friday"]) == 0

    said = capsys.readouterr().out
    assert "babyagi extend --objective 1 --max-calls" in said
    assert said.index("babyagi extend") < said.index("babyagi resume")


@pytest.mark.parametrize("is_served", [True, False])
def test_who_decides_is_told_when_no_worker_goes_on_with_it(is_served, capsys):
    park("approval", "pay", {"amount": 3})

    async def serve():
        async with open_store(homes.settings()) as store:
            await join(store, homes.WORKER, 1)

    if is_served:
        asyncio.run(serve())
    assert run_guarded(["inbox", "approve", "3", "--yes"]) == 0

    said = capsys.readouterr().out
    assert ("No worker works on this objective now" in said) is not is_served
    assert ("Next: babyagi resume" in said) is not is_served


def test_an_answer_to_what_only_waited_for_it_names_the_command_that_goes_on(capsys):
    park("question", "ask_user", {"question": "Which day?"})

    assert run_guarded(["inbox", "answer", "3", "Friday"]) == 0

    said = capsys.readouterr().out
    assert "babyagi resume --objective 1" in said
    assert "extend" not in said


def test_an_empty_inbox_says_so(capsys):
    assert printed_json(capsys, "inbox") == []
    assert run_guarded(["inbox"]) == 0
    assert capsys.readouterr().out == "Nothing waits for a person.\n"


def test_a_question_is_shown_with_its_number_and_answered(capsys):
    number = park("question", "ask_user", {"question": "Which day?"})

    (asked,) = printed_json(capsys, "inbox")
    assert (asked["number"], asked["task_id"], asked["kind"], asked["question"]) == (
        number,
        2,
        "question",
        "Which day?",
    )
    assert asked["decisions"] == ["answer", "reject"]
    assert run_guarded(["inbox", "--objective", "latest"]) == 0
    out = capsys.readouterr().out
    assert "Which day?" in out
    assert 'babyagi inbox answer 3 "…"' in out
    assert run_guarded(["status"]) == 0
    assert "babyagi inbox" in capsys.readouterr().out
    assert run_guarded(["inbox", "answer", "3", "the second of May"]) == 0
    assert "babyagi resume --objective 1" in capsys.readouterr().out
    assert printed_json(capsys, "status")["status"] == "active"
    assert printed_json(capsys, "tasks")[1]["status"] == "queued"
    assert run_guarded(["inbox", "answer", str(number), "again"]) == 8


def test_a_call_is_approved_or_rejected_and_nothing_else(capsys):
    number = park("approval", "pay", {"amount": 3})

    assert run_guarded(["inbox", "answer", str(number), "yes"]) == 2
    err = capsys.readouterr().err
    assert "babyagi inbox approve 3, or babyagi inbox reject 3" in err
    assert printed_json(capsys, "inbox", "approve", str(number), "--yes") == {
        "v": 1,
        "number": number,
        "decision": "approve",
        "objective_id": 1,
        "task_id": 2,
        "elsewhere": [],
    }
    other = park("approval", "pay", {"amount": 4}, key="1/execute/1/tool/2")
    assert run_guarded(["inbox", "reject", str(other), "too dear"]) == 0


@pytest.mark.parametrize("is_here", [True, False])
def test_who_decides_in_another_home_than_the_workers_is_told_where_it_counts(is_here, capsys):
    park("approval", "pay", {"amount": 3}, key="1/execute/1/tool/1/approval")
    home = home_id(homes.settings().home) if is_here else "another home"

    async def serve():
        async with open_store(homes.settings()) as store:
            await join(store, replace(homes.WORKER, host="there", home=home), 1)

    asyncio.run(serve())

    assert run_guarded(["inbox", "approve", "3", "--yes"]) == 0

    said = capsys.readouterr().err
    assert (
        "test on there" in said and "babyagi inbox approve 3 in its home" in said
    ) is not is_here


@pytest.mark.parametrize(
    "line",
    [["inbox", "answer", "77", "x"], ["inbox", "approve", "77"], ["inbox", "reject", "77"]],
    ids=" ".join,
)
def test_a_number_that_nothing_waits_under_is_not_found(line, capsys):
    assert run_guarded(line) == 8
    assert "babyagi inbox" in capsys.readouterr().err


def test_a_hostile_question_reaches_the_screen_harmless(capsys):
    park("question", "ask_user", {"question": HOSTILE})

    assert run_guarded(["inbox"]) == 0
    out = capsys.readouterr().out
    assert not set(out) & set("\x1b\x07\u202e")


def test_every_question_is_shown_with_what_becomes_of_an_answer(capsys):
    number = park("question", "ask_user", {"question": "Which day?"})

    assert run_guarded(["inbox", str(number)]) == 0

    assert "give no secret" in capsys.readouterr().out


def test_one_request_alone_is_shown_whole_and_a_list_shows_its_beginning_and_says_so(capsys):
    words = " ".join(f"word{n}" for n in range(2000))
    number = park("question", "ask_user", {"question": words})

    assert run_guarded(["inbox"]) == 0
    listed = capsys.readouterr().out
    assert run_guarded(["inbox", str(number)]) == 0
    alone = capsys.readouterr().out

    assert "lines; babyagi inbox 3 shows all" in listed and "word1999" not in listed
    assert "word1999" in alone and "shows all" not in alone


def test_sources_are_followed_through_results_to_their_origin(capsys):
    async def fill():
        async with open_store(homes.settings()) as store:
            await join(store, homes.WORKER, 1)
            claim = await store.claim_task(1, homes.WORKER.id)
            assert claim is not None
            await store.record_step(
                claim.fence,
                Kept(
                    key="1/inputs",
                    kind="inputs",
                    request_hash="ab",
                    output="{}",
                    origins=("result:1", "result:77", "result:x"),
                ),
            )
            await store.park_task(
                claim.fence,
                key="1/execute/1/tool/1",
                kind="approval",
                request=write_request("pay", {"amount": 3}),
            )
            await homes.end(store, 1, StopReason.WAITING)
            await store.remove_worker(homes.WORKER.id)

    asyncio.run(fill())

    assert run_guarded(["inbox"]) == 0
    assert "after reading file:limits.md, result:1, result:77, result:x." in capsys.readouterr().out
