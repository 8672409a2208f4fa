import asyncio
import os

import pytest

from babyagi.cli.inbox import Asker, read_line
from babyagi.inbox import Decision, decide, write_request
from babyagi.settings.load import load_settings
from babyagi.tasks import StopReason
from tests.cli import homes


@pytest.fixture
def pipe():
    read_end, write_end = os.pipe()
    yield read_end, write_end
    os.close(read_end)
    os.close(write_end)


async def park(store, objective, kind="question", **arguments):
    claim = await store.claim_task(objective.id, homes.WORKER.id)
    request = write_request("ask_user", arguments or {"question": "Which day?"})
    return await store.park_task(claim.fence, key="1/q", kind=kind, request=request)


@pytest.fixture
def asker(store, objective, pipe, tmp_path):
    environ = {"BABYAGI_HOME": str(tmp_path)}
    settings = load_settings(flags={}, environ=environ, cwd=tmp_path).settings
    return Asker(
        store=store,
        objective_id=objective.id,
        settings=settings,
        descriptor=pipe[0],
        may_read=lambda: True,
    )


async def until_decided(store, objective, asker):
    asking = asyncio.ensure_future(asker.ask())
    async with asyncio.timeout(120):
        while await store.inbox(objective.id) and not asking.done():
            await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_a_question_is_shown_and_what_is_typed_is_its_answer(
    store, objective, asker, pipe, capsys
):
    await park(store, objective)
    os.write(pipe[1], b"\n  the second of May \n")

    await until_decided(store, objective, asker)

    shown = capsys.readouterr().err
    assert "Which day?" in shown and shown.count("Your answer to task 1") == 2
    (step,) = await store.steps(objective.id, owner="task:1")
    assert '"the second of May"' in (step.output or "")


@pytest.mark.parametrize(
    ("typed", "said"), [(b"maybe\ny\n", "approved"), (b"n\n", "did not allow this call")]
)
async def test_a_call_takes_a_y_or_an_n_and_nothing_else(
    typed, said, store, objective, asker, pipe, capsys
):
    await park(store, objective, "approval", amount=3)
    os.write(pipe[1], typed)

    await until_decided(store, objective, asker)

    assert "amount = 3" in capsys.readouterr().err
    (step,) = await store.steps(objective.id, owner="task:1")
    assert said in (step.output or "")


async def test_where_the_input_ends_nobody_is_there_any_more(store, objective, asker, capsys):
    read_end, write_end = os.pipe()
    os.close(write_end)
    asker.descriptor = read_end
    await park(store, objective)

    assert asker.is_person_there()
    await asker.ask()

    assert not asker.is_person_there()
    assert "babyagi inbox shows the open ones" in capsys.readouterr().err
    os.close(read_end)


async def test_a_question_that_was_answered_elsewhere_is_not_asked_any_more(
    store, objective, asker, capsys, monkeypatch
):
    monkeypatch.setattr("babyagi.cli.inbox.LOOK_S", 0.01)
    step = await park(store, objective)
    asking = asyncio.ensure_future(asker.ask())
    while "Your answer" not in (shown := capsys.readouterr().err):
        await asyncio.sleep(0)
    assert "Which day?" in shown or shown
    said = decide(step, Decision.ANSWER, "today")
    await store.answer_step(step.id, output=said.to_json())
    async with asyncio.timeout(120):
        while "answered elsewhere" not in capsys.readouterr().err:
            await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_after_an_end_that_asks_nothing_nobody_is_waited_for(store, objective, asker):
    await homes.end(store, objective.id, StopReason.FINISHED)
    asking = asyncio.ensure_future(asker.ask())
    async with asyncio.timeout(120):
        while asker.is_person_there():
            await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_nothing_is_read_while_another_program_has_the_terminal(pipe, monkeypatch):
    monkeypatch.setattr("babyagi.cli.inbox.BACKGROUND_PAUSE_S", 0.0)
    looks = iter([False, False, True])
    os.write(pipe[1], b"typed\n")

    assert await read_line(pipe[0], bytearray(), may_read=lambda: next(looks)) == "typed"
