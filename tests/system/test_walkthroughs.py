"""Two questions from start to end in every protocol, by processes that are killed at every point
round every call.

Promised is: what was recorded is never called again. A call that was made and not yet recorded when
the process died is made once more
(a model, a tool that reads), or a person is asked whether it was made (a tool that must not be
repeated). Each test has one protocol, and with `LONG_TESTS` all of them; every walk in every
protocol, with kills that are exceptions: `tests/react/test_walkthroughs.py`.
"""

import asyncio
import os
import random
import signal
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import product

import pytest

from babyagi.inbox import Decision, decide
from babyagi.tasks import StepState
from support.forked import FORKS
from support.local_server import Answer, LocalServer, agree_answer
from support.processes import babyagi, environ, finish, look, rows, start
from tests import walk_child
from tests.react.walkthroughs import PROTOCOLS, WALKTHROUGHS, Walkthrough, count_observations

pytestmark = pytest.mark.system

IS_LONG = "LONG_TESTS" in os.environ
FIRST = "wanted execute/1/model"
# behind "recorded" nothing happens before the next call
BETWEEN = {"harbour": ("intended", "recorded"), "invoices": ("recorded",)}
N_KILLS = 4
UNTIL_NEXT_POINT_S = 0.02  # about what a process takes from one point to the next


def in_form(one):
    return pytest.mark.parametrize("spoken", list(PROTOCOLS) if IS_LONG else [one])


class Server(LocalServer):
    """The model of a walk behind a socket; `asked` holds, for each request, how many observations
    it showed."""

    def __init__(self, walk, spoken):
        super().__init__(self._say)
        self.asked = []
        self._model = WALKTHROUGHS[walk].model_answer(spoken)

    def _say(self, request):
        self.asked.append(count_observations(request.messages))
        said = self._model(request, None)
        return Answer(text=said) if isinstance(said, str) else Answer(tool_calls=said)


class Walk:
    """A walk and the processes that it takes, one after the other. They are forked from one that
    has loaded the code and done nothing."""

    def __init__(self, server, life):
        self.server = server
        self.life = life

    async def live(self, kill, *, within_s=lambda: 0.0, **change):
        """Let one process go on until `kill` says so of a point, and kill it within so many
        seconds; return its answer, None if killed."""
        here, there = FORKS.Pipe()
        process = FORKS.Process(target=walk_child.live, args=(replace(self.life, **change), there))
        process.start()
        there.close()
        try:
            while True:
                said = await asyncio.to_thread(_receive, here)
                assert said is not None, f"the process ended by itself: {process.exitcode}"
                if said.startswith("ended "):
                    process.join()
                    return said.removeprefix("ended ")
                if kill(said):
                    if delay_s := within_s():
                        here.send("go on")
                        await asyncio.sleep(delay_s)
                    process.kill()
                    process.join()
                    assert process.exitcode in (-signal.SIGKILL, 0)
                    return None
                here.send("go on")
        finally:
            process.kill()
            process.join()
            here.close()

    async def live_on(self, points):
        """Live again and again, killed the first time that each of these points is reached; return
        the answer and where it was killed."""
        killed = []

        def kill(said):
            is_first = said.startswith(points) and said not in killed
            killed.extend([said] if is_first else [])
            return is_first

        while (answer := await self.live(kill)) is None:
            pass
        return answer, killed

    @property
    def calls_made(self):
        return (
            self.life.calls_file.read_text().splitlines() if self.life.calls_file.exists() else []
        )

    @property
    def recorded(self):
        """The keys of the steps that the journal holds the outcome of."""
        return {
            row["key"] for row in rows(self.life.home, "SELECT key FROM step WHERE state = 'done'")
        }


def _receive(connection):
    try:
        return connection.recv()
    except (EOFError, ConnectionResetError):
        return None


@asynccontextmanager
async def open_walk(home, walk, spoken, **more):
    async with Server(walk, spoken) as server:
        yield Walk(
            server,
            walk_child.Life(home=home, walk=walk, spoken=spoken, base_url=server.base_url, **more),
        )


def paths_of(walk):
    """The paths of a walk's calls, in their order."""
    return [
        *(
            f"execute/{n}/{what}"
            for n in range(1, len(walk.calls) + 1)
            for what in ("model", "tool/1")
        ),
        f"execute/{len(walk.calls) + 1}/model",
    ]


def never(said):
    return False


def at_point_number(n):
    left = n

    def kill(said):
        nonlocal left
        left -= 1
        return left <= 0

    return kill


@pytest.mark.parametrize(
    ("walk", "spoken"),
    list(product(WALKTHROUGHS, PROTOCOLS)) if IS_LONG else [("harbour", "native")],
)
async def test_a_kill_between_any_two_calls_repeats_none(walk, spoken, tmp_path):
    expected = WALKTHROUGHS[walk]
    async with open_walk(tmp_path, walk, spoken) as walked:
        answer, killed = await walked.live_on((FIRST, *BETWEEN[walk]))

    points = [f"{point} {path}" for path in paths_of(expected) for point in BETWEEN[walk]]
    assert (answer, killed) == (expected.answer, [FIRST, *points])
    assert walked.server.asked == list(range(len(expected.calls) + 1))
    assert walked.calls_made == expected.calls_made


@in_form("json")
async def test_a_call_that_was_made_and_not_yet_recorded_is_made_once_more(spoken, tmp_path):
    expected = WALKTHROUGHS["harbour"]
    async with open_walk(tmp_path, "harbour", spoken) as walked:
        answer, killed = await walked.live_on(("made",))

    assert (answer, killed) == (expected.answer, [f"made {path}" for path in paths_of(expected)])
    assert walked.server.asked == [n for n in range(len(expected.calls) + 1) for _ in range(2)]
    assert walked.calls_made == [call for call in expected.calls_made for _ in range(2)]


@in_form("text in Japanese")
async def test_a_kill_at_any_instant_repeats_nothing_that_was_recorded(spoken, tmp_path):
    expected, chance, answer = WALKTHROUGHS["invoices"], random.Random(f"walks {spoken}"), None
    path_by_call = {
        call: f"1/execute/{n}/tool/1" for n, call in enumerate(expected.calls_made, start=1)
    }
    async with open_walk(tmp_path, "invoices", spoken) as walked:
        for n in range(N_KILLS + 1):
            kill = never if n == N_KILLS else at_point_number(chance.randrange(1, 14))
            recorded, n_asked, n_made = (
                walked.recorded,
                len(walked.server.asked),
                len(walked.calls_made),
            )

            # another worker takes over when the lease of the one before has run out
            answer = await walked.live(
                kill,
                within_s=lambda: chance.uniform(0.0001, UNTIL_NEXT_POINT_S),
                name=f"walker-{n}",
                later_s=2 * n * walk_child.LEASE_S,
            )

            called = {f"1/execute/{shown + 1}/model" for shown in walked.server.asked[n_asked:]}
            called |= {path_by_call[call] for call in walked.calls_made[n_made:]}
            assert not called & recorded
            assert walked.recorded >= recorded

    assert answer == expected.answer
    assert set(walked.server.asked) == set(range(len(expected.calls) + 1))
    assert set(walked.calls_made) == set(expected.calls_made)
    assert len(walked.server.asked) + len(walked.calls_made) <= len(paths_of(expected)) + N_KILLS


@in_form("text")
async def test_a_call_that_must_not_be_repeated_is_asked_about_and_never_made_again(
    spoken, tmp_path
):
    expected, killed_at = WALKTHROUGHS["harbour"], "made execute/3/tool/1"
    async with open_walk(tmp_path, "harbour", spoken, once="calculator") as walked:
        assert await walked.live(lambda said: said == killed_at) is None
        assert await walked.live(never) == walk_child.WAITING
        await answer_the_open_step(walked.life, "2.4242784855673896")
        answer = await walked.live(never)

    assert answer == expected.answer
    assert walked.calls_made == expected.calls_made
    assert walked.server.asked == [0, 1, 2, 3]


async def answer_the_open_step(life, text):
    store = await walk_child.open_life_store(life, walk_child.Clock(life.later_s))
    (step,) = await store.inbox()
    assert step.state is StepState.UNKNOWN
    await store.answer_step(step.id, output=decide(step, Decision.ANSWER, text).to_json())
    await store.close()


LEDGER = Walkthrough(
    question="What is the age of the harbour master of Norvik, raised to the power of 0.23?",
    calls=(
        ("search_files", {"words": "harbour master of Norvik"}),
        ("search_files", {"words": "Ada Brook is aged"}),
        ("calculator", {"expression": "47^0.23"}),
    ),
    given=(),
    answer="2.4242784855673896",
)


class Endpoint:
    """A model behind a whole run; the first time that an execution was shown two observations, its
    answer does not come."""

    def __init__(self, spoken):
        self.asked = []
        self.is_held = asyncio.Event()
        self._model = LEDGER.model_answer(spoken)

    async def __call__(self, request):
        match request.agent:
            case "execution":
                return await self._execute(request)
            case "creation":
                return Answer(text='{"tasks": []}')
            case "check":
                return agree_answer(request)
            case _:
                return Answer(text="It was found out.")

    async def _execute(self, request):
        n_shown = count_observations(request.messages)
        self.asked.append(n_shown)
        if n_shown == 2 and not self.is_held.is_set():
            self.is_held.set()
            await asyncio.Event().wait()  # until the server closes
        said = self._model(request, None)
        return Answer(text=said) if isinstance(said, str) else Answer(tool_calls=said)


@pytest.mark.parametrize(
    ("setting", "spoken"),
    [("native", "native"), ("json", "json"), ("untested", "text")],
)
async def test_a_person_chooses_the_protocol_and_a_killed_run_goes_on_in_it(
    setting, spoken, tmp_path
):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "people.md").write_text(
        "The harbour master of Norvik is Ada Brook.\nAda Brook is aged 47.\n"
    )
    model = Endpoint(spoken)
    async with LocalServer(model) as server:
        if setting == "untested":
            server.fail_next("400-tools-ollama", n=None)
        env = environ(tmp_path / "home", server.base_url, BABYAGI_PROTOCOL=setting)
        # the first task is said, for else the folder's texts are shown and nothing is searched
        asked = (LEDGER.question, "--task", "Find the age and raise it to the power")
        line = ("run", *asked, "--files", str(folder), "--tools", "calculator")
        process = await start(*line, env=env)
        await asyncio.wait_for(model.is_held.wait(), 300)
        process.kill()
        assert (await finish(process)).code == -signal.SIGKILL

        ended = await babyagi(*line, env=env)

    assert ended.code == 0, ended.said
    (result,) = await look("show", "results", env=env)
    assert result["result"] == LEDGER.answer
    assert model.asked == [0, 1, 2, 2, 3]
    steps = rows(tmp_path / "home", "SELECT key FROM step WHERE kind = 'tool' ORDER BY id")
    assert [step["key"] for step in steps] == [f"1/execute/{n}/tool/1" for n in (1, 2, 3)]
    with_tools = sum(bool(record.body.get("tools")) for record in server.requests)
    assert with_tools == {"native": 5, "json": 0, "untested": 1}[setting]
