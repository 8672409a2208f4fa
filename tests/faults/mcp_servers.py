"""MCP servers that each do one thing wrong, over both transports, each beside a good one in a run:
the run goes on, a call costs a bounded time, memory stays bounded, and no process is left.

`python -m tests.faults.mcp_servers [--every N] [--only NAME]`
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import re
import resource
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from babyagi.inbox import CHANGED
from babyagi.llm.prompt import Prompt, Speaker, ToolCall
from babyagi.sandbox import tree
from babyagi.tasks import Effect, Objective, Role, StopReason, ToolGrant
from babyagi.tools import mcp
from babyagi.tools.base import Tool
from babyagi.tools.mcp import Connection, McpServer, open_servers
from support.scripted import ScriptedModel
from support.table import print_table, verdict
from support.world import World, make_spec
from tests.mcp_hostile_server import CALLS, LISTS, SCHEMA, STARTS
from tests.mcp_http_server import BEHAVIOURS, HttpServer

CONNECT_S, END_S = 8.0, 10
SHORT_S = 2.0  # of a call that never ends well
LONG_S = 120.0  # of a call that does, on a machine that does much else
RUN_S = 600.0
N_AT_ONCE = 6
MAX_GROWTH_MB = 400.0  # N_AT_ONCE answers of at most 64 MiB each, and what reading them takes
MAX_SEEN_CHARS = 17_000
HERE = Path(__file__).parents[1]

HELLO, ERROR, ASKS = "hello", "error", "asks"
NO_ANSWER = frozenset(
    name.strip()
    for name in """
    a flood without end | messages without end | a deep answer | a rather deep answer
    | a list of answers | an answer without version | an answer of both kinds | a number beyond all
    | a result of another type | an empty failure | a huge error | an odd error
    | byte by byte without end | stopped | dead in an answer | not to be ended | a mark before
    | blocks of no known type | a deep schema | tools without names | no tools
    | a schema that refers away
    """.split("|")
)
OTHER_TEXT = {  # an answer, though it does not say hello
    "a number that is none": "NaN|null|nothing",
    "an image of 3 MB": "image that is not text",
    "an odd link": r"n: javascript:",
    "nothing at all": r"\(nothing\)",
}
CHANGES = frozenset(
    name.strip()
    for name in """
    changes with each list | other words | another schema | a surrogate in the words
    | a schema that refers to itself
    """.split("|")
)
OVER_HTTP = {  # all others give no answer; some of these take another's, which is the same server's
    "as it should": HELLO,
    "in a stream": HELLO,
    "a stream byte by byte": HELLO,
    "others in the stream": r"hello|\(nothing\)",
    "a stream that floods": "hello|failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A server, and what a call of its tool comes to: HELLO, ERROR, ASKS, or a pattern."""

    name: str
    expected: str
    is_http: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    case: Case
    took_s: float
    said: str = ""
    fault: str = ""


def cases() -> list[Case]:
    at_hand = [Case(name=name, expected=expect(name)) for name in (*STARTS, *LISTS, *CALLS)]
    return at_hand + [
        Case(name=name, expected=OVER_HTTP.get(name, ERROR), is_http=True) for name in BEHAVIOURS
    ]


def expect(name: str) -> str:
    if name in CHANGES:
        return ASKS
    return ERROR if name in NO_ANSWER else OTHER_TEXT.get(name, HELLO)


GRANTED = ToolGrant(
    name="s__echo",
    effect=Effect.READ,
    description="Say it again.",
    parameters=SCHEMA,
)


class Model:
    """Calls the bad tool, then the good one, and says what both gave."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, prompt: Prompt, role: Role) -> object:
        if role is not Role.EXECUTION:
            return '{"tasks": []}'
        given = [one.text for one in prompt.messages if one.speaker is Speaker.TOOL]
        if len(given) < 2:
            name, text = (("s__echo", "hello"), ("good__echo", "still here"))[len(given)]
            return (ToolCall(id=f"c{len(given)}", name=name, arguments=json.dumps({"text": text})),)
        self.seen = given
        return "the limit is 40 euros a day:\nboth were asked"


@contextlib.asynccontextmanager
async def opened(case: Case) -> AsyncIterator[tuple[Connection, HttpServer | None]]:
    """The case's server."""
    common: dict[str, Any] = {
        "name": "s",
        "timeout_s": SHORT_S if case.expected == ERROR else LONG_S,
        "effects": {"echo": Effect.READ},
    }
    async with contextlib.AsyncExitStack() as stack:
        web = None
        if case.is_http:
            web = await stack.enter_async_context(HttpServer(case.name))
            server = McpServer(url=web.url, headers={"Authorization": "KEY-OF-OURS"}, **common)
        else:
            program = str(HERE / "mcp_hostile_server.py")
            server = McpServer(command=sys.executable, args=("-S", program, case.name), **common)
        (connection,) = await stack.enter_async_context(open_servers([server]))
        yield connection, web


async def run_case(case: Case, good: Tool) -> Seen:
    """One run with the bad server and the good one."""
    began_s, model = time.monotonic(), Model()
    try:
        async with opened(case) as (connection, web):
            bad = connection.open_granted(GRANTED)
            assert bad is not None
            world = World(model=ScriptedModel(model), tools=[bad, good])
            grants = (GRANTED, ToolGrant(name=good.name, effect=Effect.READ))
            async with asyncio.timeout(RUN_S):
                ended = await world.run(await world.start(make_spec(tools=grants)))
            kinds = [step.kind for step in await world.store.inbox(ended.id)]
            fault = judge(case, ended, kinds, model.seen) or judge_requests(web)
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    said = model.seen[0] if model.seen else ""
    return Seen(case=case, took_s=time.monotonic() - began_s, said=said, fault=fault)


def judge(case: Case, ended: Objective, asked: Sequence[str], seen: Sequence[str]) -> str:
    """What went wrong in a run, empty if nothing did."""
    if case.expected == ASKS:
        is_good = ended.stop_reason is StopReason.WAITING and asked == [CHANGED]
        return "" if is_good else f"nobody was asked: {ended.stop_reason}, {asked}, {seen}"
    if ended.stop_reason is not StopReason.FINISHED or len(seen) != 2:
        return f"the run ended as {ended.stop_reason}"
    if "still here" not in seen[1]:
        return f"the good server gave {seen[1][:200]!r}"
    if any("KEY-OF-OURS" in one for one in seen):
        return "a key of ours was shown to the model"
    if len(seen[0]) > MAX_SEEN_CHARS:
        return f"the model was shown {len(seen[0]):,} characters"
    if any("\x1b" in one or "\x00" in one for one in seen):
        return "the model was shown an escape"
    pattern = "failed|failure|took longer" if case.expected == ERROR else case.expected
    return "" if re.search(pattern, seen[0]) else f"expected {case.expected}: {seen[0][:300]!r}"


def judge_requests(web: HttpServer | None) -> str:
    if web is not None and web.elsewhere.n_requests:
        return f"another address was asked: {web.elsewhere.paths}"
    return ""


async def run_all(chosen: Sequence[Case]) -> tuple[list[Seen], list[int]]:
    """All of them, some at once, and the processes that are left."""
    turns = asyncio.Semaphore(N_AT_ONCE)
    good = McpServer(
        name="good",
        command=sys.executable,
        args=("-S", str(HERE / "mcp_hostile_server.py"), "good"),
        effects={"echo": Effect.READ},
    )

    async def one(case: Case, tool: Tool) -> Seen:
        async with turns:
            return await run_case(case, tool)

    before = set(tree._descendants(os.getpid()))
    async with open_servers([good]) as (connection,):
        (tool,) = await connection.list_tools()
        seen = await asyncio.gather(*(one(case, tool) for case in chosen))
    return list(seen), await find_left(before)


async def find_left(before: set[int]) -> list[int]:
    """The processes that were not there before, and still are some seconds after the last
    connection was closed."""
    left = list[int]()
    for _ in range(END_S * 10):
        left = [one for one in tree._descendants(os.getpid()) if one not in before]
        if not left:
            break
        await asyncio.sleep(0.1)
    return left


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mcp_servers", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="each Nth behaviour only")
    parser.add_argument("--only", help="one behaviour")
    options = parser.parse_args(argv)
    chosen = [one for one in cases() if options.only in (None, one.name)][:: options.every]
    mcp.CONNECT_TIMEOUT_S = CONNECT_S
    logging.disable(logging.CRITICAL)  # what the library tells of these servers
    before_mb, began_s = peak_mb(), time.monotonic()
    seen, left = asyncio.run(run_all(chosen))
    growth_mb = peak_mb() - before_mb
    guard_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    for one in seen:
        if one.fault or options.only:
            print(f"{one.case.name} (http: {one.case.is_http}): {one.fault or one.said[:500]}")
    slowest = max(seen, key=lambda one: one.took_s)
    head = ("behaviours", "as expected", "left processes", "grew MB", "child MB", "slowest s", "s")
    row = (
        len(seen),
        sum(not one.fault for one in seen),
        len(left),
        f"{growth_mb:.0f}",
        f"{guard_mb:.0f}",
        f"{slowest.took_s:.1f} ({slowest.case.name})",
        f"{time.monotonic() - began_s:.0f}",
    )
    print_table("servers that do one thing wrong, each beside a good one in a run", head, [row])
    is_good = not left and growth_mb <= MAX_GROWTH_MB and not any(one.fault for one in seen)
    print(f"every run goes on, memory within {MAX_GROWTH_MB:g} MB: {verdict(is_good)}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
