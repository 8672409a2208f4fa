import asyncio
import os
from dataclasses import replace
from datetime import timedelta

import pytest

from babyagi.cli.inbox import Asker
from babyagi.cli.text import Style, accepts_output
from babyagi.cli.views import LiveView, render_state
from babyagi.inbox import write_request
from babyagi.journal import TextPiece
from babyagi.reporting.why import Facts
from babyagi.settings.load import load_settings
from babyagi.tasks import ObjectiveStatus, Role, TaskStatus
from support.workers import join
from tests.cli import homes, samples
from tests.cli.screen import Terminal

MARKUP = "[bold red]not[/] \x1b[31m[link=file:///etc]x[/link]"
DRAWN = "tasks: "


@pytest.fixture
async def objective(store):
    created, _ = await store.create_objective(samples.spec(initial_task=MARKUP), uid="u1")
    await join(store, homes.WORKER, created.id)
    return created


@pytest.fixture
def sit(store, objective, monkeypatch):
    """Sit down at a terminal, in a test: pytest sets standard error anew before it."""
    views: list[LiveView] = []

    def sit_down(*, may_draw=True):
        terminal = Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.delenv("NO_COLOR", raising=False)
        views.append(LiveView(store=store, objective_id=objective.id, may_draw=lambda: may_draw))
        return views[0], terminal

    yield sit_down
    for view in views:
        view.__exit__()


async def park(store, objective):
    claim = await store.claim_task(objective.id, homes.WORKER.id)
    request = write_request("ask_user", {"question": "Which day?"})
    return await store.park_task(claim.fence, key="1/q", kind="question", request=request)


def say(text, key="1"):
    return TextPiece(objective_id=1, owner="task:1", key=key, role=Role.EXECUTION, text=text)


async def until_shown(terminal, words):
    async with asyncio.timeout(60):
        while words not in terminal.getvalue():
            await asyncio.sleep(0)


async def test_lines_of_events_stand_above_the_state_and_their_text_is_text(store, objective, sit):
    view, terminal = sit()
    claim = await store.claim_task(objective.id, homes.WORKER.id)
    await view.drain()

    shown = terminal.getvalue()
    assert f"objective {objective.id} created" in shown.partition(f">    {claim.task.id}")[0]
    assert "[bold red]not[/]" in shown and "\x1b[31m" not in shown
    assert "1 running" in shown


async def test_the_state_is_gone_when_the_view_has_closed(store, objective, sit):
    view, terminal = sit()
    await view.drain()
    n_shown = terminal.getvalue().count(DRAWN)
    view.__exit__()
    view.draw()

    # it is drawn once more where it is removed, row by row
    assert terminal.getvalue().count(DRAWN) <= n_shown + 1
    assert terminal.getvalue().endswith("\x1b[1A\x1b[2K" * 3)
    assert "\x1b[?25h" in terminal.getvalue()


async def test_the_end_of_an_answer_is_shown_while_it_is_written(sit, monkeypatch):
    view, terminal = sit()
    monkeypatch.setattr("babyagi.cli.views.HURRY_S", 0)
    await view.fetch([])
    view.hear(say("Once upon a time " * 100))
    view.hear(say("there was \x1b[31ma town"))
    await until_shown(terminal, "a town")
    assert "task 1 writes: " in terminal.getvalue() and "\x1b[31m" not in terminal.getvalue()

    view.hear(say("Anew", key="2"))
    await until_shown(terminal, "task 1 writes: Anew")


async def test_nothing_is_drawn_while_a_question_is_asked(store, objective, sit, tmp_path):
    view, terminal = sit()
    environ = {"BABYAGI_HOME": str(tmp_path)}
    settings = load_settings(flags={}, environ=environ, cwd=tmp_path).settings
    read_end, write_end = os.pipe()
    asker = Asker(
        store=store,
        objective_id=objective.id,
        settings=settings,
        aside=view.aside,
        descriptor=read_end,
        may_read=lambda: True,
    )
    await park(store, objective)
    asking = asyncio.ensure_future(asker.ask())
    await until_shown(terminal, "Your answer to task 1")
    await view.drain()
    assert "waits for your answer" in terminal.getvalue() and DRAWN not in terminal.getvalue()

    os.write(write_end, b"Monday\n")
    await until_shown(terminal, "continues with your answer")
    view.draw()
    assert DRAWN in terminal.getvalue()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    os.close(read_end)
    os.close(write_end)


async def test_in_the_background_only_lines_are_printed(store, objective, sit):
    view, terminal = sit(may_draw=False)
    await view.drain()

    assert "created" in terminal.getvalue() and DRAWN not in terminal.getvalue()


async def test_lines_wait_for_a_terminal_that_accepts_no_output(store, objective, sit, monkeypatch):
    view, terminal = sit()
    monkeypatch.setattr("babyagi.cli.views.accepts_output", lambda _: False)
    await view.drain()
    assert terminal.getvalue() == ""

    monkeypatch.setattr("babyagi.cli.views.accepts_output", lambda _: True)
    view.draw()
    assert "created" in terminal.getvalue()


def test_a_full_pipe_accepts_no_output():
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with os.fdopen(write_end, "wb", buffering=0) as stream:
        assert accepts_output(stream)
        while stream.write(b"x" * 65_536):
            pass
        assert not accepts_output(stream)
    os.close(read_end)


async def test_the_state_says_who_asks_what_runs_and_what_was_used(store, objective):
    await park(store, objective)
    task = samples.task(id=7, name="Read\nthe notes", status=TaskStatus.RUNNING)
    now = task.started_at + timedelta(seconds=72)
    paused = samples.objective(spec=objective.spec, status=ObjectiveStatus.PAUSED)
    standing = replace(
        await store.standing(objective.id), objective=paused, counts={TaskStatus.RUNNING: 1}
    )
    facts = Facts(standing=standing, asked=await store.inbox(objective.id))

    lines = render_state(facts, [task], {7: "asks the model"}, now=now, width=60)

    text = [line.text for line in lines]
    assert text[0].startswith("?    1  asks you") and lines[0].style is Style.YELLOW
    assert text[1].startswith(">    7 1 min 12 s  asks the model: Read")
    assert "paused" in text[2] and text[3] == "tasks: 1 running"
    assert max(map(len, text)) <= 60
