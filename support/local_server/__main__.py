"""`python -m support.local_server`: the server as a process. Its first line of output is its base
URL; SIGTERM and SIGINT end it."""

from __future__ import annotations

import argparse
import asyncio
import signal

from support.local_server.answers import Answerer, agreeing, echo_answer, rehearsal_answer
from support.local_server.server import LocalServer

ANSWERS: dict[str, Answerer] = {
    "rehearsal": rehearsal_answer,
    "agreeing": agreeing(rehearsal_answer),
    "echo": echo_answer,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m support.local_server", description="A local OpenAI-compatible server."
    )
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--model-behind", choices=sorted(ANSWERS), default="rehearsal")
    parser.add_argument("--latency-s", type=float, default=0.0)
    parser.add_argument("--embedding-latency-s", type=float, default=0.0)
    parser.add_argument("--piece-latency-s", type=float, default=0.0)
    asyncio.run(serve(parser.parse_args()))


async def serve(options: argparse.Namespace) -> None:
    asked_to_end = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, asked_to_end.set)
    server = LocalServer(
        ANSWERS[options.model_behind],
        latency_s=options.latency_s,
        embedding_latency_s=options.embedding_latency_s,
        piece_latency_s=options.piece_latency_s,
        port=options.port,
    )
    async with server:
        print(server.base_url, flush=True)
        await asked_to_end.wait()


if __name__ == "__main__":
    main()
