import asyncio
import json
import logging
import os
import signal
import sys

import pytest

from babyagi.cli.session import LineFormatter
from support.processes import environ, start


def format_record(message, *arguments, as_json=False, secrets=(), **fields):
    record = logging.LogRecord("babyagi.events", logging.INFO, "", 0, message, arguments, None)
    record.created = 1_796_000_000.25
    for name, value in fields.items():
        setattr(record, name, value)
    return LineFormatter(secrets, worker="w-1" if as_json else "").format(record)


def test_a_record_is_one_line_with_its_time_and_level():
    line = format_record("task %d done", 2, event="task.done", objective_id=1, task_id=2)

    assert line.startswith("2026-11-30 ")
    assert line.endswith(f" INFO {os.getpid()} babyagi.events: task 2 done")


def test_a_record_is_an_object_of_json_where_that_is_wanted():
    line = format_record('a "b"\n\x1b[31m', as_json=True, event="task.failed", task_id=7)

    assert json.loads(line) | {"msg": ""} == {
        "at": "2026-11-30T00:53:20.250+00:00",
        "level": "info",
        "worker": "w-1",
        "logger": "babyagi.events",
        "event": "task.failed",
        "task_id": 7,
        "msg": "",
    }
    assert "\n" not in line and "\x1b" not in json.loads(line)["msg"]


@pytest.mark.parametrize("as_json", [False, True])
def test_no_record_forges_another_or_shows_a_key(as_json):
    line = format_record(
        "failed: sk-verysecret12345\r\nlevel=error msg=forged\u2028x",
        as_json=as_json,
        secrets=["sk-verysecret12345"],
    )

    assert len(line.splitlines()) == 1
    assert "verysecret" not in line


@pytest.mark.parametrize("worker", ["", "w"])
def test_an_exception_is_said_in_the_same_line(worker):
    try:
        raise ValueError("what\nwent wrong")
    except ValueError:
        record = logging.LogRecord("babyagi", logging.ERROR, "", 0, "it broke", (), sys.exc_info())
    line = LineFormatter(worker=worker).format(record)

    assert "it broke" in line and "ValueError: what" in line
    assert len(line.splitlines()) == 1


REPORTED = ("the report is written", "report.written")


@pytest.mark.system
@pytest.mark.parametrize("log_format", ["text", "json"])
async def test_a_worker_that_nobody_watches_writes_a_record_for_each_change_on_standard_error(
    tmp_path, log_format
):
    env = environ(tmp_path / "home", LLM_MODEL="rehearsal")
    line = ("submit", "Learn about the secret tea", "--task", "Look", "--max-tasks", "1")
    submit = await start(*line, env=env)
    assert await submit.wait() == 0
    await submit.communicate()
    worker = await start("worker", "--log-format", log_format, env=env)
    lines: list[str] = []
    assert worker.stderr is not None
    try:
        async with asyncio.timeout(300):
            while not any(said in line for line in lines for said in REPORTED):
                lines.append((await worker.stderr.readline()).decode().rstrip("\n"))
        os.kill(worker.pid, signal.SIGTERM)
        async with asyncio.timeout(120):
            out, err = await worker.communicate()
        lines += err.decode().splitlines()
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()
    assert out == b""
    if log_format == "json":
        kinds = ("task.claimed", "task.recorded", "task.done", "objective.ended", "report.written")
        records = [json.loads(line) for line in lines]
        found = [record.get("event") for record in records]
        assert [kind for kind in kinds if found.count(kind) != 1] == []
        assert all(record["worker"] for record in records)
    else:
        words = ("task 1 claimed", "task 1 recorded", "task 1 done", "no further task", REPORTED[0])
        assert [said for said in words if sum(said in line for line in lines) != 1] == []
        assert all(line.startswith("20") for line in lines)
