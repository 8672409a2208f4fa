import asyncio
import os

import pytest

from babyagi.cli.root import run_guarded
from babyagi.cli.run import _read_lines, find_person


@pytest.fixture
def pipe():
    read_end, write_end = os.pipe()
    yield read_end, write_end
    os.close(read_end)


async def test_an_answer_ends_at_a_line_with_a_full_stop(pipe):
    os.write(pipe[1], b"one\n\ntwo.\n.\nnot this\n")

    assert await _read_lines(pipe[0]) == b"one\n\ntwo."
    os.close(pipe[1])


async def test_an_answer_ends_where_the_input_ends(pipe):
    os.write(pipe[1], b"one\ntwo")
    os.close(pipe[1])

    assert await _read_lines(pipe[0]) == b"one\ntwo"


async def test_an_answer_that_comes_in_pieces_is_put_together(pipe):
    reading = asyncio.create_task(_read_lines(pipe[0]))
    for piece in (b"on", b"e\n.", b"\n"):
        os.write(pipe[1], piece)
        await asyncio.sleep(0)

    assert await reading == b"one"
    os.close(pipe[1])


async def test_waiting_for_a_person_can_be_ended(pipe):
    reading = asyncio.create_task(_read_lines(pipe[0]))
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
