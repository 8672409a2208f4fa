"""Where `crash_points` kills, and what its lives call: points round every statement, request and
tool, and the other side of each wire.

The other side keeps what it was asked in a file, as an endpoint's bill would: that file outlives a
killed process.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from babyagi.errors import MalformedReplyError, ModelUnavailableError
from babyagi.index.hashing import HashEmbedder
from babyagi.llm.port import Completion, OnText
from babyagi.llm.prompt import Prompt, Speaker, ToolCall
from babyagi.tasks import Effect, Passage, Reservation, Role, Usage
from babyagi.taskstore.sql import database as sql_pieces
from babyagi.tools.base import Tool
from support.prompts import asks_for_missing, block_in, results_in
from support.scripted import is_check

CALL_TOKENS = 100  # what the model says that each of its answers took
RESERVED = Reservation(calls=1, tokens=250, cost_usd=0.002)
COST_USD = 0.001
# what outlives a killed process
LEFT_BEHIND = ("tasks.db", "tasks.db-wal", "bill", "refused", "paid")


# -- the points
# --------------------------------------------------------------------------------------------------


class Points:
    """Counts the points of this process and kills it at the `kill_at`th; 0 never."""

    current: ClassVar[Points]

    def __init__(self, *, kill_at: int = 0) -> None:
        self._kill_at = kill_at
        self._n = 0

    def reach(self, label: str) -> None:
        self._n += 1
        if self._n == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


class Survey(Points):
    """Kills nobody, and notes each point with a digest of what a kill there leaves behind."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._seen: list[tuple[str, str]] = []

    def reach(self, label: str) -> None:
        self._seen.append((label, digest_of(self._folder)))

    def save(self) -> None:
        (self._folder / "survey.json").write_text(json.dumps(self._seen), encoding="utf-8")


Points.current = Points()


def reach(label: str) -> None:
    Points.current.reach(label)


def digest_of(folder: Path) -> str:
    """A digest of every byte that outlives a process killed now."""
    contents = (
        path.read_bytes() if path.exists() else b""
        for path in (folder / name for name in LEFT_BEHIND)
    )
    return " ".join(hashlib.blake2b(content, digest_size=8).hexdigest() for content in contents)


class WatchedCursor(sqlite3.Cursor):
    """A cursor with a point before and after what it does for many rows."""

    def executemany(self, sql: str, rows: Any) -> Any:
        reach(f"before sql {WatchedConnection.names[sql]}")
        cursor = super().executemany(sql, rows)
        reach(f"after sql {WatchedConnection.names[sql]}")
        return cursor


class WatchedConnection(sqlite3.Connection):
    """A connection with a point before and after each statement."""

    names: ClassVar[Mapping[str, str]] = {}  # of the queries of SQL, by their text

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        label = f"sql {self.names.get(sql) or ' '.join(sql.split()[:2])}"
        reach(f"before {label}")
        cursor = super().execute(sql, *values)
        reach(f"after {label}")
        return cursor

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or WatchedCursor)

    def executescript(self, script: str) -> sqlite3.Cursor:
        self.set_trace_callback(lambda statement: reach("before sql schema"))
        cursor = super().executescript(script)
        self.set_trace_callback(None)
        reach("after sql schema")
        return cursor


def put_points_round_sql() -> Mapping[str, str]:
    """From now on every connection of this process and its children has points; returns the queries
    of SQL by name."""
    queries = sql_pieces.load_queries("sqlite")
    WatchedConnection.names = {sql: name for name, sql in queries.items()}
    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **kwargs: connect(
        *args, **{"factory": WatchedConnection, **kwargs}
    )
    return queries


# -- what is called
# --------------------------------------------------------------------------------------------------


class Ledger:
    """Lines in a file that outlives this process, as the other side of a wire would keep them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines(self) -> list[str]:
        return self._path.read_text().split() if self._path.exists() else []

    def add(self, line: str) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, f"{line}\n".encode())
        os.close(fd)


def digest_request(text: str) -> str:
    """As the journal writes it into a step."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class CountingModel:
    """Answers from what it reads, and bills each request to a file under the digest that the
    journal has of it."""

    name = "counting"

    def __init__(self, folder: Path) -> None:
        self._bill = Ledger(folder / "bill")
        self._refused = Ledger(folder / "refused")

    def reserve(self, prompt: Prompt) -> Reservation:
        return RESERVED

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        text = "\n".join(message.text for message in prompt.messages)
        digest = digest_request(repr(prompt))
        reach(f"before request {role}")
        self._refuse(role, text)
        self._bill.add(digest)
        await asyncio.sleep(0.01 + int(digest[:2], 16) / 5000)
        reach(f"after response {role}")
        usage = Usage(calls=1, prompt_tokens=CALL_TOKENS, cost_usd=COST_USD)
        return replace(_answer(prompt, role, text), model=self.name, usage=usage)

    def _refuse(self, role: Role, text: str) -> None:
        """`Garbled` gets no completion at first, and then no plan at first"""
        if "Garbled" in _subjects(role, text) and role not in self._refused.lines():
            self._refused.add(role)
            if role is Role.CREATION:
                raise ModelUnavailableError("away for a moment")
            raise MalformedReplyError("no completion", may_be_billed=True)

    async def close(self) -> None:
        return None


def _subjects(role: Role, text: str) -> list[str]:
    """The names of the tasks that a prompt is about: the one that is carried out, those that are
    planned from."""
    if role is Role.CREATION:
        return [name for _, name, _ in results_in(text)] if "creation agent" in text[:40] else []
    return re.findall(r"^\d+: (.*)$", text, re.MULTILINE)[-1:]


# what comes of a task, and whether it says that the objective is met
PLANS: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "Read": (("One", "read.", "Two"), True),
}
FIRST_SAID: Mapping[str, tuple[str, str]] = {  # until a try is told that this was lacking
    "Lack": ("", "the key"),
    "Find": ("Perhaps it is here.", "the place itself"),
}
LACKING = "Not answered"  # how a prompt of the creation agent says that a task lacks something
MISSED = "Missed"  # what the check misses in the objective that begins with `Lack`


def _answer(prompt: Prompt, role: Role, text: str) -> Completion:
    empty = Completion(text="", model="", usage=Usage())
    match role:
        case Role.EXECUTION:
            (subject,) = _subjects(role, text)
            observed = "".join(
                message.text for message in prompt.messages if message.speaker is Speaker.TOOL
            )
            name, arguments = _wanted_call(prompt, subject, observed)
            if name:
                call = ToolCall(id="1", name=name, arguments=json.dumps(arguments))
                return replace(empty, tool_calls=(call,), finish_reason="tool_calls")
            first, lack = FIRST_SAID.get(subject, ("", ""))
            is_told = lack in block_in(text, "last try")
            if lack and not first and not is_told:
                call = ToolCall(id="2", name="lacking", arguments=json.dumps({"what": lack}))
                return replace(empty, tool_calls=(call,), finish_reason="tool_calls")
            return replace(
                empty, text=f"The result of {subject} about limits." if is_told else first
            )
        case Role.CREATION:
            return replace(empty, text=_check(text) if is_check(prompt) else _plan(text))
        case Role.PRIORITIZATION:
            queued = sorted(
                re.findall(r"^(\d+): (.*)", text, re.MULTILINE),
                key=lambda task: task[1],
                reverse=True,
            )
            return replace(empty, text=json.dumps({"order": [int(number) for number, _ in queued]}))
        case _:
            return replace(empty, text="The report.")


def _check(text: str) -> str:
    """A part for each result: where there are several, the report has to be written."""
    results = results_in(text)
    names = {name for _, name, _ in results}
    if "Lack" in names and MISSED not in names:
        return json.dumps({"parts": [], "missing": ["a part"], "met": False})
    parts = [{"part": name, "task": number, "quote": said} for number, name, said in results]
    return json.dumps({"parts": parts, "missing": [], "met": bool(parts)})


def _plan(text: str) -> str:
    """What comes of all that is planned from: proposals, what is not answered, and whether somebody
    says that the objective is met."""
    names, unanswered, is_met = ([MISSED] if asks_for_missing(text) else []), [], False
    for number, subject, result in [] if asks_for_missing(text) else results_in(text):
        planned, says_met = PLANS.get(
            subject, (("Find",) if result.startswith(LACKING) else (), False)
        )
        names += planned
        is_met |= says_met
        if result.startswith("Perhaps"):
            unanswered.append({"task": number, "lacks": FIRST_SAID[subject][1], "after": []})
    tasks = [{"name": name, "after": [1] if "Read" in text else []} for name in names]
    return json.dumps({"tasks": tasks, "unanswered": unanswered, "objective_met": is_met})


def _wanted_call(prompt: Prompt, subject: str, observed: str) -> tuple[str, Mapping[str, Any]]:
    """The tool that is called next; a task that has to pay does so until it reads that it has."""
    if subject == "Read" and prompt.tools and not observed:
        return "look", {"at": subject}
    if subject == "Pay" and "receipt" not in observed:
        return "pay", {"amount": 5}
    return "", {}


class CountingEmbedder:
    """An embedder behind a wire; like the model, it bills to a file."""

    dimension = 8
    space = "counting:8"
    is_local = False

    def __init__(self, folder: Path) -> None:
        self._hash = HashEmbedder(self.dimension)
        self._bill = Ledger(folder / "bill")

    def reserve(self, texts: Sequence[str]) -> Reservation:
        return RESERVED

    async def embed(self, texts: Sequence[str]) -> tuple[list[bytes], Usage]:
        reach("before request embedding")
        self._bill.add(digest_request("\0".join(texts)))
        await asyncio.sleep(0.02)
        reach("after response embedding")
        return [self._hash.embed_text(text) for text in texts], Usage(
            calls=1, prompt_tokens=CALL_TOKENS, cost_usd=COST_USD
        )

    async def close(self) -> None:
        return None


def make_tools(folder: Path) -> list[Tool]:
    async def look(arguments: Mapping[str, Any]) -> Passage:
        reach("before tool look")
        await asyncio.sleep(0.01)
        reach("after tool look")
        return Passage(text=f"What stands at {arguments['at']}.", origin="tool:look")

    async def pay(arguments: Mapping[str, Any]) -> Passage:
        reach("before tool pay")
        Ledger(folder / "paid").add(str(arguments["amount"]))
        await asyncio.sleep(0.6)  # long enough for a lease to be renewed
        reach("after tool pay")
        return Passage(text="receipt 1", origin="tool:pay")

    def schema(name: str, kind: str) -> Mapping[str, Any]:
        return {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}

    return [
        Tool(
            name="look",
            description="Look at something.",
            parameters=schema("at", "string"),
            effect=Effect.READ,
            run=look,
        ),
        Tool(
            name="pay",
            description="Pay.",
            parameters=schema("amount", "integer"),
            effect=Effect.ONCE,
            run=pay,
        ),
    ]
