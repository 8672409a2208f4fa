"""How soon what a model writes is seen, how soon a call that is given up is left, and how long it
is from a start to the first call: through OpenAI's client, in rehearsal, and in this process.

Arrival is the moment at which a server here has written a piece to its socket.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import random
import sqlite3
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, redirect_stderr
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from babyagi.app.backends import utc_now
from babyagi.cli.views import LiveView
from babyagi.journal import TextPiece
from babyagi.llm.client import Endpoint, OpenAIModel
from babyagi.llm.llama import Engine, LlamaModel
from babyagi.llm.prompt import Message, Prompt, Speaker
from babyagi.tasks import Role
from babyagi.taskstore.sqlite import MemoryTaskStore
from benchmarks.child import endpoint_variables, run_child
from benchmarks.script import Script
from support.local_server import LocalServer, echo_answer
from support.table import print_table, verdict
from support.world import make_spec

EVERY_S = 0.02  # between two pieces
LOOK_S = 0.002  # between two looks at the terminal
SEEN_MS = 100.0
CLOSED_MS = 200.0
PROMPT = Prompt(
    messages=(Message(speaker=Speaker.USER, text="hello there"),), max_output_tokens=9999
)
STORY = replace(
    PROMPT, messages=(Message(speaker=Speaker.USER, text="Tell a long story about a town."),)
)
PIECE = TextPiece(objective_id=1, owner="task:1", key="1", role=Role.EXECUTION, text="")
ASK = """
import asyncio, sys
from babyagi.llm.client import Endpoint, OpenAIModel
from babyagi.llm.prompt import Message, Prompt, Speaker
from babyagi.tasks import Role
async def main():
    endpoint = Endpoint(base_url=sys.argv[1], sleep=asyncio.sleep, random=lambda: 0.5)
    prompt = Prompt(messages=(Message(speaker=Speaker.USER, text="hello"),), max_output_tokens=9)
    await OpenAIModel("m", endpoint).complete(prompt, role=Role.EXECUTION)
    await endpoint.close()
asyncio.run(main())
"""
ASK_BARELY = """
import asyncio, sys
import babyagi.llm.client
import httpx2
body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
async def main():
    transport = httpx2.AsyncHTTPTransport(verify=False)
    async with httpx2.AsyncClient(transport=transport) as client:
        await client.post(sys.argv[1] + "/chat/completions", json=body)
asyncio.run(main())
"""


class Speaking:
    """A server that streams `n_pieces` words, then is silent; it notes when each was written and
    when its client left."""

    def __init__(self, n_pieces: int) -> None:
        self.written_s: list[float] = []
        self.left = asyncio.Event()
        self.left_s = 0.0
        self.base_url = ""
        self._n_pieces = n_pieces

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Speaking]:
        server = await asyncio.start_server(self._speak, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        try:
            yield self
        finally:
            server.close()

    async def _speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        for n in range(self._n_pieces):
            await asyncio.sleep(EVERY_S)
            event = {"choices": [{"index": 0, "delta": {"content": f"word{n}. "}}]}
            writer.write(f"data: {json.dumps(event)}\n\n".encode())
            await writer.drain()
            self.written_s.append(time.perf_counter())
        while await reader.read(65_536):
            pass
        self.left_s = time.perf_counter()
        self.left.set()
        writer.close()


class Terminal(io.StringIO):
    """Takes what is written to a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


async def measure_pieces(n_pieces: int) -> tuple[list[float], list[float], float]:
    """Return the seconds from each piece's arrival to the callback and to the screen, and from
    giving the call up to its end at the server."""
    heard_s: list[float] = []
    seen_s: dict[int, float] = {}
    store, terminal = MemoryTaskStore(utc_now), Terminal()
    objective, _ = await store.create_objective(make_spec(), uid="pieces")
    drawn = LiveView(store=store, objective_id=objective.id, may_draw=lambda: True)
    with redirect_stderr(terminal), drawn as view:
        await view.fetch([])

        def on_text(text: str) -> None:
            heard_s.append(time.perf_counter())
            view.hear(replace(PIECE, objective_id=objective.id, text=text))

        async with Speaking(n_pieces).listening() as server:
            endpoint = Endpoint(base_url=server.base_url, sleep=asyncio.sleep, random=random.random)
            model = OpenAIModel("m", endpoint)
            call = asyncio.ensure_future(
                model.complete(PROMPT, role=Role.EXECUTION, on_text=on_text)
            )
            while len(seen_s) < n_pieces and not call.done():
                shown = terminal.getvalue()
                for n in range(len(heard_s)):
                    if n not in seen_s and f"word{n}." in shown:
                        seen_s |= dict.fromkeys(range(n + 1), time.perf_counter()) | seen_s
                await asyncio.sleep(LOOK_S)
            call.cancel()
            given_up_s = time.perf_counter()
            await server.left.wait()
            await asyncio.wait([call])
            await endpoint.close()
    await store.close()
    to_callback = [heard - sent for heard, sent in zip(heard_s, server.written_s, strict=True)]
    to_screen = [seen_s[n] - sent for n, sent in enumerate(server.written_s)]
    return to_callback, to_screen, server.left_s - given_up_s


async def measure_start(program: str) -> tuple[float, float]:
    """Return the seconds from a process's start to its first request, and its peak memory in
    MiB."""
    with TemporaryDirectory() as folder:
        async with LocalServer(echo_answer) as server:
            line = ["-c", program, server.base_url]
            path = str(Path(__file__).parent.parent)
            child = await run_child(line, environ={"PYTHONPATH": path}, cwd=Path(folder))
            if not server.requests:
                raise RuntimeError(f"no call was made, exit code {child.code}: {child.said}")
            return server.requests[0].at - child.began_at, child.peak_mib


async def show_pieces(n_pieces: int) -> None:
    to_callback, to_screen, closed_s = await measure_pieces(n_pieces)
    rows = []
    for what, found_s in (("to the callback", to_callback), ("to the screen", to_screen)):
        found_ms = sorted(1000 * one for one in found_s)
        rows.append(
            (
                f"from a piece's arrival {what}",
                f"{statistics.median(found_ms):.1f} ms",
                f"{found_ms[-1]:.1f} ms",
                f"{SEEN_MS:g} ms",
                verdict(found_ms[-1] <= SEEN_MS),
            )
        )
    closed_ms = 1000 * closed_s
    closed = f"{closed_ms:.1f} ms"
    met = verdict(closed_ms <= CLOSED_MS)
    rows.append(
        ("from giving up to the closed connection", closed, closed, f"{CLOSED_MS:g} ms", met)
    )
    head = ("what", "median", "most", "goal", "")
    print_table(f"A stream of {n_pieces} pieces, one each {1000 * EVERY_S:g} ms", head, rows)


async def show_start(n_runs: int) -> None:
    rows = []
    for name, program in (("with openai", ASK), ("httpx2 alone", ASK_BARELY)):
        found = [await measure_start(program) for _ in range(n_runs + 1)][1:]
        seconds, mib = zip(*found, strict=True)
        rows.append(
            (f"one call, {name}", f"{statistics.median(seconds):.2f} s", f"{max(mib):.0f} MiB")
        )
    head = ("what", "start to the first call", "peak memory")
    print_table(f"Processes that ask a model (median of {n_runs})", head, rows)


async def measure_first_call(name: str, model: Path | None) -> tuple[float, float, float]:
    """Return the seconds from the start of `babyagi run` to its first call of a model and to the
    answer of that call, and its peak memory in MiB.

    Args:
        name: `openai`, `rehearsal` or `llama`. model: the file that `llama` loads.
    """
    script = Script(result_bytes=200)
    with TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        async with LocalServer(script.answer) as server:
            variables = endpoint_variables(server.base_url, home, BABYAGI_RESULT_STORE="builtin")
            if name != "openai":
                variables |= {"LLM_MODEL": name, "OPENAI_BASE_URL": ""}
            if model is not None:
                few = {"LLAMA_CTX_MAX": "2048", "BABYAGI_MAX_OUTPUT_TOKENS": "16"}
                variables |= {"LLAMA_MODEL_PATH": str(model), **few}
            line = ["-m", "babyagi", "run", "Find out what a day on the moon is"]
            line += ["--max-tasks", "1", "--max-calls", "4"]
            monotonic_to_wall_s = time.time() - time.monotonic()
            child = await run_child(line, environ=variables, cwd=Path(folder))
        with closing(sqlite3.connect(home / "tasks.db")) as store:
            found = store.execute(
                "SELECT created_at_us, done_at_us FROM step WHERE kind = 'model' ORDER BY id"
            ).fetchone()
    if found is None:
        raise RuntimeError(f"no call was made, exit code {child.code}: {child.said}")
    began_s = child.began_at + monotonic_to_wall_s
    return found[0] / 1e6 - began_s, found[1] / 1e6 - began_s, child.peak_mib


async def show_first_calls(n_runs: int, model: Path | None) -> None:
    ways: list[tuple[str, str, Path | None]] = [
        ("through openai", "openai", None),
        ("the rehearsal of the demo", "rehearsal", None),
        *([("in this process", "llama", model)] if model is not None else []),
    ]
    rows = []
    for what, name, path in ways:
        found = [await measure_first_call(name, path) for _ in range(n_runs)]
        to_call_s, to_answer_s, mib = (statistics.median(one) for one in zip(*found, strict=True))
        rows.append((what, f"{to_call_s:.2f} s", f"{to_answer_s:.2f} s", f"{mib:.0f} MiB"))
    head = ("`babyagi run`", "start to the first call", "to its answer", "peak memory")
    print_table(f"Runs on an empty home (median of {n_runs})", head, rows)


async def show_engine(path: Path, n_runs: int) -> None:
    """How long a call that is given up keeps the engine in this process at work."""
    engine = Engine(path, context_tokens=2048)
    model, closed_ms = LlamaModel(engine), list[float]()
    for _ in range(n_runs):
        begun = asyncio.Event()

        def hear(_: str, begun: asyncio.Event = begun) -> None:
            begun.set()

        call = asyncio.create_task(model.complete(STORY, role=Role.EXECUTION, on_text=hear))
        await begun.wait()
        given_up_s = time.perf_counter()
        call.cancel()
        await asyncio.wait([call])
        closed_ms.append(1000 * (time.perf_counter() - given_up_s))
    await engine.close()
    most = max(closed_ms)
    median = f"{statistics.median(closed_ms):.1f} ms"
    row = ("from giving up to the closed connection", median, f"{most:.1f} ms", f"{CLOSED_MS:g} ms")
    head = ("what", "median", "most", "goal", "")
    print_table("A model in this process", head, [(*row, verdict(most <= CLOSED_MS))])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_token", description=__doc__)
    parser.add_argument("--pieces", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5, help="of each process")
    parser.add_argument("--llama", type=Path, metavar="FILE.gguf", help="a model on this disk")
    options = parser.parse_args(argv)
    asyncio.run(show_pieces(options.pieces))
    asyncio.run(show_start(options.runs))
    llama = options.llama.resolve() if options.llama else None  # a run has a folder of its own
    asyncio.run(show_first_calls(options.runs, llama))
    if options.llama is not None:
        asyncio.run(show_engine(options.llama, options.runs))


if __name__ == "__main__":
    main()
