import asyncio
import os

import pytest

from babyagi.cli.inbox import find_person, read_text
from babyagi.cli.root import run_guarded


@pytest.fixture
def pipe():
    read_end, write_end = os.pipe()
    yield read_end, write_end
    os.close(read_end)


async def test_an_answer_ends_at_a_line_with_a_full_stop(pipe):
    os.write(pipe[1], b"one\n\ntwo.\n.\nnot this\n")

    assert await read_text(pipe[0], may_read=lambda: True) == "one\n\ntwo."
    os.close(pipe[1])


async def test_an_answer_ends_where_the_input_ends(pipe):
    os.write(pipe[1], b"one\ntwo")
    os.close(pipe[1])

    assert await read_text(pipe[0], may_read=lambda: True) == "one\ntwo"


async def test_an_answer_that_comes_in_pieces_is_put_together(pipe):
    reading = asyncio.create_task(read_text(pipe[0], may_read=lambda: True))
    for piece in (b"on", b"e\n.", b"\n"):
        os.write(pipe[1], piece)
        await asyncio.sleep(0)

    assert await reading == "one"
    os.close(pipe[1])


async def test_waiting_for_a_person_can_be_ended(pipe):
    reading = asyncio.create_task(read_text(pipe[0], may_read=lambda: True))
    await asyncio.sleep(0)
    reading.cancel()

    with pytest.raises(asyncio.CancelledError):
        await reading
    os.close(pipe[1])


def test_without_a_terminal_nobody_is_there(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    assert find_person() is None
    assert run_guarded(["run", "x", "--model", "human"]) == 4
    assert "terminal" in capsys.readouterr().err
