"""A command that is forked does as one that is started."""

import signal

import pytest

from support.processes import environ, finish, start

pytestmark = pytest.mark.system


@pytest.mark.parametrize("line", ["config --json", "statsu"])
async def test_a_forked_command_says_and_returns_what_a_started_one_does(line, tmp_path):
    env = environ(tmp_path / "home", LLM_MODEL="rehearsal", SUPPORT_DEFAULTS="lease_s=77")
    (tmp_path / ".env").write_text("BABYAGI_CONCURRENCY=3\n", encoding="utf-8")

    forked = await finish(await start(*line.split(), env=env))
    started = await finish(await start(*line.split(), env=env, is_timed=True))

    assert forked == started
    assert line == "statsu" or '"value": "77"' in forked.out


async def test_a_forked_command_dies_of_a_signal(tmp_path):
    env = environ(tmp_path / "home", LLM_MODEL="rehearsal")
    process = await start("run", "Wait", env=env)

    process.kill()

    assert (await finish(process)).code == -signal.SIGKILL
