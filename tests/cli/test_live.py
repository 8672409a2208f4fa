import asyncio
from contextlib import asynccontextmanager

import pytest
from textual.events import Key
from textual.widgets import Static

from babyagi.cli.live import Desk, LiveApp, LiveView, QuestionScreen, ReadingScreen, _Caught
from babyagi.cli.picture import Board
from babyagi.cli.views import Follower
from babyagi.inbox import write_request
from babyagi.journal import TextPiece
from babyagi.settings.load import load_settings
from babyagi.tasks import ObjectiveStatus, Role, StopReason, TaskStatus
from support.workers import join
from tests.cli import homes, samples
from tests.cli.screen import Terminal

MARKUP = "[bold red]not[/] [link=file:///etc]x[/link] [@click=app.quit]y[/]"


@pytest.fixture
async def objective(store):
    created, _ = await store.create_objective(samples.spec(f"Find {MARKUP}"), uid="u1")
    await join(store, homes.WORKER, created.id)
    return created


class Sitting:
    """A person at the live view of an objective."""

    def __init__(self, store, objective, tmp_path):
        self.stops: list[int] = []
        settings = load_settings(
            flags={}, environ={"BABYAGI_HOME": str(tmp_path)}, cwd=tmp_path
        ).settings
        self.app = LiveApp(Board(), Desk(store, settings, stop=lambda: self.stops.append(1)))
        self.view = LiveView(store, objective.id, self.app)
        self.follower = Follower(store, objective.id, self.view)

    async def look(self, pilot):
        """All that is on the screen, after what has happened was shown."""
        await self.follower.drain()
        self.app._board_screen.redraw()
        await pilot.pause()
        return "\n".join(str(one.content) for one in self.app.screen.query(Static))


@pytest.fixture
def seat(store, objective, tmp_path):
    @asynccontextmanager
    async def sit(size=(80, 24)):
        sitting = Sitting(store, objective, tmp_path)
        async with sitting.app.run_test(size=size) as pilot:
            yield sitting, pilot

    return sit


async def park(store, objective, kind, arguments, *, tool="pay"):
    claim = await store.claim_task(objective.id, homes.WORKER.id)
    return await store.park_task(
        claim.fence,
        key="1/execute/1/tool/1",
        kind=kind,
        request=write_request(tool, arguments),
    )


async def test_findings_and_tasks_are_shown_and_their_text_is_text(store, objective, seat):
    await homes.finish_a_task(store, objective.id, proposals=(f"Read {MARKUP}",))
    async with seat() as (sitting, pilot):
        shown = await sitting.look(pilot)

    assert "found: limits.md:3 says fifty tasks." in shown
    assert f"Find {MARKUP}"[:40] in shown and f"Read {MARKUP}"[:40] in shown


def piece(objective, text, *, key="1/execute/1/model"):
    return TextPiece(
        objective_id=objective.id, owner="task:1", key=key, role=Role.EXECUTION, text=text
    )


async def test_the_end_of_an_answer_is_shown_while_it_is_written(store, objective, seat):
    async with seat(size=(60, 24)) as (sitting, pilot):
        await sitting.look(pilot)
        for text in ("It begins so. ", "and\n\x1b[31m goes on " * 20, f"to {MARKUP} the end"):
            sitting.view.hear(piece(objective, text))
        while "the end" not in (shown := await read_screen(sitting, pilot)):
            pass
        (line,) = [one for one in shown.splitlines() if "writes:" in one]
        sitting.view.hear(piece(objective, "Another", key="1/execute/2/model"))
        other = await sitting.look(pilot)
        await homes.finish_a_task(store, objective.id)
        after = await sitting.look(pilot)

    assert line.startswith("task 1 writes: ") and line.rstrip().endswith("the end")
    assert len(line) <= 60 and "It begins" not in line and "\x1b" not in line
    assert "task 1 writes: Another" in other and "goes on" not in other
    assert "writes:" not in after


async def read_screen(sitting, pilot):
    """What is on the screen without anybody asking for it."""
    await pilot.pause(0.02)
    return "\n".join(str(one.content) for one in sitting.app.screen.query(Static))


async def test_an_answer_is_typed_where_the_question_is_shown(store, objective, seat):
    step = await park(store, objective, "question", {"question": f"Which {MARKUP}?"})
    async with seat() as (sitting, pilot):
        assert "asks you (a answers): Which" in await sitting.look(pilot)
        await pilot.press("a")
        await pilot.pause()
        assert isinstance(sitting.app.screen, QuestionScreen)
        await pilot.press(*"the qp", "enter")
        await pilot.pause()
        shown = await sitting.look(pilot)

    assert "task 1 continues with your answer" in shown and "asks you" not in shown
    (stored,) = [one for one in await store.steps(objective.id, owner=step.owner) if one.output]
    assert '"the qp"' in (stored.output or "")
    assert (await store.task(objective.id, 1)).status is TaskStatus.QUEUED
    assert sitting.stops == []


async def test_an_empty_answer_decides_nothing_and_escape_leaves_the_question(
    store, objective, seat
):
    await park(store, objective, "question", {"question": "Which?"})
    async with seat() as (sitting, pilot):
        await sitting.look(pilot)
        await pilot.press("a", "space", "enter")
        assert isinstance(sitting.app.screen, QuestionScreen)
        await pilot.press("escape")
        assert not isinstance(sitting.app.screen, QuestionScreen)

    assert len(await store.inbox(objective.id)) == 1


async def test_a_call_is_approved_only_after_its_end_was_on_the_screen(store, objective, seat):
    text = "\n".join(f"line {n}" for n in range(60))
    await park(store, objective, "approval", {"text": text})
    async with seat() as (sitting, pilot):
        await sitting.look(pilot)
        await pilot.press("a")
        await pilot.pause()
        await pilot.press("y")
        await pilot.pause()
        assert len(await store.inbox(objective.id)) == 1
        await pilot.press(*["space"] * 5)
        await pilot.pause()
        await pilot.press("y")
        await pilot.pause()
        await sitting.look(pilot)

    assert await store.inbox(objective.id) == []


@pytest.mark.parametrize("text", ["a line", "a line\n" * 60], ids=["short", "long"])
async def test_a_call_is_not_approved_by_what_was_typed_before_it_was_on_the_screen(
    store, objective, seat, text
):
    await park(store, objective, "approval", {"text": text})
    async with seat() as (sitting, pilot):
        await sitting.look(pilot)
        sitting.app.post_message(Key("a", "a"))
        while not isinstance(sitting.app.screen, QuestionScreen):
            await asyncio.sleep(0)
        sitting.app.post_message(Key("y", "y"))
        await pilot.pause()
        await pilot.pause()

    assert len(await store.inbox(objective.id)) == 1


async def test_a_call_is_refused_with_n_and_a_stray_y_on_the_board_approves_nothing(
    store, objective, seat
):
    await park(store, objective, "approval", {"amount": 3})
    async with seat() as (sitting, pilot):
        await sitting.look(pilot)
        await pilot.press("y")
        await pilot.pause()
        assert len(await store.inbox(objective.id)) == 1
        await pilot.press("a", "n")
        await pilot.pause()

    (step,) = await store.steps(objective.id, owner="task:1")
    assert "did not allow" in (step.output or "")


async def test_what_was_answered_elsewhere_is_said(store, objective, seat):
    step = await park(store, objective, "question", {"question": "Which?"})
    async with seat() as (sitting, pilot):
        await sitting.look(pilot)
        await pilot.press("a")
        await pilot.pause()
        await store.answer_step(step.id, output='{"passage": {"text": "a", "origin": "person"}}')
        await pilot.press("x", "enter")
        await pilot.pause()
        shown = await sitting.look(pilot)

    assert "waits for a person" in shown


async def test_p_pauses_and_goes_on(store, objective, seat):
    async with seat() as (sitting, pilot):
        await sitting.look(pilot)
        await pilot.press("p")
        await pilot.pause()
        assert "It is paused: p resumes it." in await sitting.look(pilot)
        await pilot.press("p")
        await pilot.pause()

    assert (await store.objective(objective.id)).status is ObjectiveStatus.ACTIVE


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_q_and_ctrl_c_stop_the_work_and_not_the_view(key, seat):
    async with seat() as (sitting, pilot):
        await pilot.press(key)
        await pilot.pause()
        assert sitting.stops == [1]
        assert sitting.app.is_running


async def test_ctrl_c_stops_on_every_screen(store, objective, seat):
    await park(store, objective, "question", {"question": "Which?"})
    async with seat() as (sitting, pilot):
        await sitting.look(pilot)
        await pilot.press("a", "ctrl+c")
        await pilot.pause()
        assert sitting.stops == [1]


async def test_a_task_is_opened_read_and_left(store, objective, seat):
    await homes.finish_a_task(store, objective.id)
    async with seat() as (sitting, pilot):
        await sitting.look(pilot)
        await pilot.press("end", "enter")
        await pilot.pause()
        assert isinstance(sitting.app.screen, ReadingScreen)
        await pilot.pause()
        shown = "\n".join(str(one.content) for one in sitting.app.screen.query(Static))
        assert "Task 1: Read the documents" in shown and "limits.md:3 says fifty tasks." in shown
        await pilot.press("q")
        assert not isinstance(sitting.app.screen, ReadingScreen)
        assert sitting.stops == []


async def test_the_help_says_every_key(seat):
    async with seat() as (sitting, pilot):
        await pilot.press("question_mark")
        await pilot.pause()
        shown = "\n".join(str(one.content) for one in sitting.app.screen.query(Static))
    assert "stop: calls in flight may end" in shown and "answer what a task asks" in shown


@pytest.mark.thorough
@pytest.mark.parametrize("size", [(20, 8), (60, 10), (200, 60)])
async def test_it_is_drawn_at_every_size_and_redrawn_at_another(store, objective, seat, size):
    await homes.finish_a_task(store, objective.id)
    await park(store, objective, "approval", {"text": samples.HOSTILE * 20})
    async with seat(size=(80, 24)) as (sitting, pilot):
        await sitting.look(pilot)
        for press in ((), ("a",), ("escape", "question_mark"), ("escape", "enter")):
            await pilot.press(*press)
            await pilot.resize_terminal(*size)
            await pilot.pause()
            await pilot.resize_terminal(80, 24)
        assert sitting.app.is_running


async def test_stray_keys_and_a_paste_change_nothing(store, objective, seat):
    await park(store, objective, "approval", {"amount": 3})
    before = await store.last_event_id(objective.id)
    async with seat() as (sitting, pilot):
        await sitting.look(pilot)
        await pilot.press(*"yYnNzx1 /#~", "tab", "f5", "delete", "left", "ctrl+d", "ctrl+p")
        await pilot.pause()
        assert sitting.app.is_running and sitting.stops == []
    assert await store.last_event_id(objective.id) == before


async def test_text_pasted_into_an_answer_becomes_one_line(store, objective, seat):
    from textual.events import Paste

    await park(store, objective, "question", {"question": "Which?"})
    async with seat() as (sitting, pilot):
        await sitting.look(pilot)
        await pilot.press("a")
        await pilot.pause()
        sitting.app.screen.focused.post_message(Paste("one\ntwo\x1b[31m\nthree"))
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
    (step,) = await store.steps(objective.id, owner="task:1")
    assert "one two" in (step.output or "") and "three" in (step.output or "")


async def test_a_person_is_there_until_the_objective_ends_without_a_question(
    store, objective, seat
):
    async with seat() as (sitting, pilot):
        await sitting.look(pilot)
        assert sitting.view.is_person_there()
        await homes.end(store, objective.id, StopReason.FINISHED)
        await sitting.look(pilot)
        assert not sitting.view.is_person_there()


async def test_where_the_view_has_ended_plain_lines_take_its_place(store, objective, seat, capsys):
    async with seat() as (sitting, pilot):
        await sitting.look(pilot)
        sitting.app.exit()
    await homes.finish_a_task(store, objective.id)
    assert not sitting.view.is_person_there()
    await sitting.follower.drain()
    out, err = capsys.readouterr()
    assert "task 1 done" in out + err and "plain lines follow" in err


async def test_many_changes_are_few_drawings(store, objective, seat, monkeypatch):
    async with seat() as (sitting, _):
        drawn: list[int] = []
        monkeypatch.setattr(sitting.app._board_screen, "redraw", lambda: drawn.append(1))
        for _ in range(1000):
            sitting.app.changed()
        sitting.app._tick()
        sitting.app._tick()
        await asyncio.sleep(0)
        assert len(drawn) <= 2


async def test_what_was_printed_behind_the_view_fits_the_terminal_afterwards(seat, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    async with seat() as (sitting, _):
        caught = _Caught(terminal, sitting.app)
        caught.write("note: stopping: waiting up to 10 s for 1 piece of work\n")
        caught.release()

    assert terminal.getvalue() == "note: stopping: waiting up to 10 s for 1\npiece of work\n"
