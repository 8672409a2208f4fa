"""Worlds over real sockets: real `babyagi` processes, or another program, against a local server
with the simulated model behind it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from support.local_server import Answer, Answerer, ChatRequest, LocalServer
from support.processes import DEFAULTS, environ, finish, start
from support.worlds.generator import World
from support.worlds.house import ROOM, Outcome, Way
from support.worlds.model import SimulatedModel
from support.worlds.noise import NO_NOISE, Noise
from support.worlds.tally import Tally

SOCKET_LATENCY_S = 0.02
TIMEOUT_S = 1200.0
LOOK_S = 0.1
CALLS_A_FACT = 10  # after so many the other program is stopped: it has no end of its own


async def run_over_sockets(
    world: World,
    way: Way,
    *,
    seed: int = 0,
    noise: Noise = NO_NOISE,
    dialect: str = "",
    latency_s: float = SOCKET_LATENCY_S,
) -> Outcome:
    """Run `babyagi run`, and `babyagi run --join` for every further worker, to the objective's
    end."""
    tally = Tally(SimulatedModel(world, seed=seed, noise=noise))
    with TemporaryDirectory() as folder:
        async with LocalServer(_answerer(tally), latency_s=latency_s) as server:
            env = environ(
                Path(folder) / "home", server.base_url, **_settings(world, way, folder, dialect)
            )
            began_s = time.monotonic()
            first = await start(
                "run", world.objective, "--task", world.initial_task, env=env, is_timed=True
            )
            others = [
                await start("run", "--join", "--objective", "1", env=env, is_timed=True)
                for _ in range(way.n_workers - 1)
            ]
            await asyncio.gather(
                *(finish(process, timeout_s=TIMEOUT_S) for process in (first, *others))
            )
            wall_s = time.monotonic() - began_s
            report = (await finish(await start("report", "--objective", "1", env=env))).out
    stopped = next(
        (line.split(": ")[1] for line in report.splitlines() if line.startswith("* Stopped: ")),
        "no report",
    )
    return Outcome(
        world=world,
        tally=tally,
        report=report,
        stop_reason=stopped,
        wall_s=wall_s,
        latency_s=latency_s,
    )


def _settings(world: World, way: Way, folder: str, dialect: str) -> dict[str, str]:
    max_tasks = max(50, ROOM * len(world.facts))
    fixed = {
        "HOME": folder,
        "LLM_MODEL": "simulated",
        "OPENAI_API_KEY": "none",
        "BABYAGI_EMBEDDING_MODEL": "hash",
    }
    limits = {
        "BABYAGI_MAX_TASKS": str(max_tasks),
        "BABYAGI_MAX_TOKENS": "0",
        "BABYAGI_MAX_COST_USD": "0",
        "BABYAGI_MAX_TIME_S": "0",
    }
    chosen = {
        "BABYAGI_CONCURRENCY": str(way.concurrency),
        "BABYAGI_PROTOCOL": "untested" if way.protocol == "auto" else way.protocol,
        "BABYAGI_CADENCE": way.cadence,
        DEFAULTS: f"planning={way.planning}" + (f" dialect={dialect}" if dialect else ""),
    }
    return fixed | limits | chosen


def _answerer(tally: Tally) -> Answerer:
    def answer(request: ChatRequest) -> Answer:
        reply, _ = tally.answer(request)
        return Answer(text=reply.text, tool_calls=reply.tool_calls)

    return answer


# -- programs of others
# --------------------------------------------------------------------------------------------------


async def run_program(
    world: World, command: list[str], *, name: str, seed: int = 0, noise: Noise = NO_NOISE
) -> Outcome:
    """Run a program that speaks chat completions until it ends or has made `CALLS_A_FACT` calls for
    each fact.

    It is given the variables that the original reads. It writes no report that could be judged.
    """
    tally = Tally(SimulatedModel(world, seed=seed, noise=noise))
    async with LocalServer(_answerer(tally), latency_s=0.0) as server:
        told = {
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_BASE": server.base_url,
            "OPENAI_API_KEY": "none",
        }
        asked = {
            "OBJECTIVE": world.objective,
            "INITIAL_TASK": world.initial_task,
            "RESULTS_STORE_NAME": name,
            "LLM_MODEL": "gpt-3.5-turbo",
        }
        own = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
        began_s = time.monotonic()
        quiet = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *command, env=own | told | asked, stdin=quiet, stdout=quiet, stderr=quiet
        )
        while (
            process.returncode is None
            and tally.n_calls < CALLS_A_FACT * len(world.facts)
            and time.monotonic() < began_s + TIMEOUT_S
        ):
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await process.wait()
        why = "cap" if process.returncode is None else f"exit {process.returncode}"
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Outcome(
        world=world,
        tally=tally,
        report="",
        stop_reason=why,
        wall_s=time.monotonic() - began_s,
        latency_s=SOCKET_LATENCY_S,
    )


def original_command(checkout: Path) -> list[str]:
    """The command that runs the original `babyagi.py` of a checkout; what it imports must be
    installed for this Python."""
    return [sys.executable, str(checkout / "babyagi.py")]


def langchain_command(python: str) -> list[str]:
    """The command that runs LangChain's BabyAGI chain; `python` is one that has
    langchain-experimental."""
    return [python, str(Path(__file__).with_name("langchain_loop.py"))]
