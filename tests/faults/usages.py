"""What endpoints say of their usage, and what they bill: how far the bill goes over a limit, for
many ways of saying it.

Each run is the whole program in one process against a local server that keeps its own bill, with a
model that proposes new tasks for ever. A run may go over its limit by what was in flight when the
first answer came that went over its reservation, or did not say what it cost.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path
from typing import Any

from babyagi import events
from babyagi.app.application import open_app
from babyagi.settings.load import load_settings
from babyagi.tasks import Event, StopReason, Usage
from support.local_server import LocalServer
from support.local_server.dialects import chat_usage
from support.table import print_table, verdict
from tests.system.test_limits import PRICE_IN, PRICE_OUT, never_done

MAX_COST_USD = 0.6
MAX_TOKENS = 40_000
MAX_OUTPUT_TOKENS = 500
LATENCY_S = 0.02
# answers, before the others: so that several calls are in flight when the first of those comes
N_HONEST = 6
MAX_RUN_S = 60.0

Say = Callable[[int, int, int], Any]
"""What is said of a call with so many tokens in the prompt, in the answer, and hidden beside the
answer."""

WAYS: dict[str, Say] = {
    "whole numbers": lambda p, c, h: {
        "prompt_tokens": p,
        "completion_tokens": c + h,
        "total_tokens": p + c + h,
    },
    "no total": lambda p, c, h: {"prompt_tokens": p, "completion_tokens": c + h},
    "texts": lambda p, c, h: {"prompt_tokens": str(p), "completion_tokens": str(c + h)},
    "floats": lambda p, c, h: {"prompt_tokens": float(p), "completion_tokens": float(c + h)},
    "texts of floats": lambda p, c, h: {
        "prompt_tokens": f" {p}.0",
        "completion_tokens": f"{c + h}.0 ",
    },
    "the other names": lambda p, c, h: {"input_tokens": p, "output_tokens": c + h},
    "the total alone": lambda p, c, h: {"total_tokens": p + c + h},
    "no prompt": lambda p, c, h: {"completion_tokens": c + h, "total_tokens": p + c + h},
    "no answer": lambda p, c, h: {"prompt_tokens": p, "total_tokens": p + c + h},
    "reasoning within": lambda p, c, h: {
        "prompt_tokens": p,
        "completion_tokens": c + h,
        "total_tokens": p + c + h,
        "completion_tokens_details": {"reasoning_tokens": h},
    },
    "reasoning beside, in the total": lambda p, c, h: {
        "prompt_tokens": p,
        "completion_tokens": c,
        "total_tokens": p + c + h,
        "completion_tokens_details": {"reasoning_tokens": h},
    },
    "reasoning beside, no total": lambda p, c, h: {
        "prompt_tokens": p,
        "completion_tokens": c,
        "completion_tokens_details": {"reasoning_tokens": h},
    },
    "reasoning beside, not in the total": lambda p, c, h: {
        "prompt_tokens": p,
        "completion_tokens": c,
        "total_tokens": p + c,
        "completion_tokens_details": {"reasoning_tokens": h},
    },
    "nothing": lambda p, c, h: None,
    "empty": lambda p, c, h: {},
    "null": lambda p, c, h: {
        "prompt_tokens": None,
        "completion_tokens": None,
        "total_tokens": None,
    },
    "negative": lambda p, c, h: {
        "prompt_tokens": -p,
        "completion_tokens": -1,
        "total_tokens": -p - 1,
    },
    "no number": lambda p, c, h: {"prompt_tokens": p, "completion_tokens": float("nan")},
    "a list": lambda p, c, h: [p, c + h],
    "ones": lambda p, c, h: {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    "zeros": lambda p, c, h: {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
}
TIMES_THE_BOUND = (0.0, 0.5, 9.0, 11.0, 1000.0)  # hidden tokens, in largest answers
# vectors without a price are charged, and go on
UNSAID = ("nothing", "empty", "null", "negative", "no number", "a list", "ones", "zeros")
DIALECTS = ("chat", "responses", "embeddings")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One way of saying, with so many hidden tokens, in one place."""

    way: str
    times: float
    dialect: str
    concurrency: int
    n_workers: int

    def say(self, usage: Usage) -> tuple[Any, Usage]:
        hidden = int(self.times * MAX_OUTPUT_TOKENS)
        billed = Usage(
            calls=1,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens + hidden,
        )
        return WAYS[self.way](usage.prompt_tokens, usage.completion_tokens, hidden), billed

    @property
    def is_about_vectors(self) -> bool:
        return self.dialect == "embeddings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What came of a run: the bill over the limit, what may be over it, and the calls that began
    after the first bad answer."""

    kind: Kind
    over: float
    may_be_over: float
    n_after: int
    stop_reason: str

    @property
    def is_held(self) -> bool:
        return (
            self.over <= self.may_be_over + 1e-9
            and self.n_after == 0
            and self.stop_reason.startswith("limit:")
        )


async def run_one(kind: Kind) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        async with (
            LocalServer(never_done(), latency_s=LATENCY_S, embedding_latency_s=LATENCY_S) as server,
            AsyncExitStack() as stack,
        ):
            numbers = count(1)

            def say(usage: Usage) -> tuple[Any, Usage]:
                is_honest = next(numbers) <= N_HONEST or (
                    kind.is_about_vectors and usage.completion_tokens > 0
                )
                return (chat_usage(usage), usage) if is_honest else kind.say(usage)

            server.say_usage = say
            apps = [
                await stack.enter_async_context(open_app(_settings(kind, server, Path(folder), n)))
                for n in range(kind.n_workers)
            ]
            objective, _ = await apps[0].start_objective()
            async with asyncio.timeout(MAX_RUN_S):
                await asyncio.gather(*(app.run(objective) for app in apps))
            events = await apps[0].store.events(objective.id, limit=100_000)
            ended = await apps[0].store.objective(objective.id)
            bills = [
                _bill(kind, record.prompt_tokens, record.completion_tokens)
                for record in server.requests
            ]
    limit = MAX_TOKENS if kind.is_about_vectors else MAX_COST_USD
    n_in_flight, n_after = _calls_round_the_first_bad_answer(events)
    return Found(
        kind=kind,
        over=max(0.0, sum(bills) - limit),
        may_be_over=n_in_flight * max(bills, default=0.0),
        n_after=n_after,
        stop_reason=str(ended.stop_reason or StopReason.FAILED),
    )


def _settings(kind: Kind, server: LocalServer, folder: Path, n: int) -> Any:
    flags = {
        "objective": "Never be done",
        "llm_model": "some-model",
        "max_tasks": "60",
        "concurrency": str(kind.concurrency),
    }
    limits = (
        {"max_tokens": str(MAX_TOKENS), "max_cost_usd": "0"}
        if kind.is_about_vectors
        else {"max_cost_usd": str(MAX_COST_USD)}
    )
    environ = {
        "BABYAGI_HOME": str(folder / "home"),
        "BABYAGI_RESULT_STORE": "builtin",
        "OPENAI_BASE_URL": server.base_url,
        "BABYAGI_PROTOCOL": "untested",
        "BABYAGI_MAX_OUTPUT_TOKENS": str(MAX_OUTPUT_TOKENS),
        "BABYAGI_PRICE": f"{PRICE_IN}/{PRICE_OUT}",
        "BABYAGI_EMBEDDING_MODEL": "some-embedder" if kind.is_about_vectors else "hash",
    }
    flags |= {"worker_name": f"worker-{n}"}
    flags |= {"dialect": "chat" if kind.is_about_vectors else kind.dialect}
    return load_settings(flags={**flags, **limits}, environ=environ, cwd=folder).settings


def _bill(kind: Kind, prompt_tokens: int, completion_tokens: int) -> float:
    if kind.is_about_vectors:
        return prompt_tokens + completion_tokens
    return (prompt_tokens * PRICE_IN + completion_tokens * PRICE_OUT) / 1e6


def _calls_round_the_first_bad_answer(rows: list[Event]) -> tuple[int, int]:
    """How many calls were in flight when the first answer came that ends the run, that one among
    them; and how many began after it."""
    in_flight: set[tuple[str, str]] = set()
    n_in_flight = n_after = 0
    ended_by = next(
        (event.id for event in rows if event.kind == events.STEP_OVERSPENT and event.data["limit"]),
        None,
    )
    for event in rows:
        step = (str(event.data.get("owner")), str(event.data.get("key")))
        if event.kind == events.STEP_INTENDED:
            in_flight.add(step)
            n_after += ended_by is not None and event.id > ended_by
        elif event.kind == events.STEP_OVERSPENT and event.id == ended_by:
            n_in_flight = len(in_flight) + 1
        elif event.kind in (events.STEP_RECORDED, events.STEP_ABANDONED):
            in_flight.discard(step)
    return n_in_flight, n_after


def choose(*, every: int, dialects: list[str]) -> Iterator[Kind]:
    kinds = product(WAYS, TIMES_THE_BOUND, dialects, (1, 8), (1, 3))
    for place, (way, times, dialect, concurrency, n_workers) in enumerate(kinds):
        is_possible = dialect != "embeddings" or not (
            "reasoning" in way or way == "no answer" or (way in UNSAID and times)
        )
        if place % every == 0 and is_possible:
            yield Kind(
                way=way, times=times, dialect=dialect, concurrency=concurrency, n_workers=n_workers
            )


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="only every Nth run")
    parser.add_argument("--dialects", nargs="+", choices=DIALECTS, default=list(DIALECTS))
    chosen = parser.parse_args()
    found = [await run_one(kind) for kind in choose(every=chosen.every, dialects=chosen.dialects)]
    rows = []
    for way in WAYS:
        of_way = [one for one in found if one.kind.way == way]
        if of_way:
            n_bad = sum(not one.is_held for one in of_way)
            worst = max(of_way, key=lambda one: one.over - one.may_be_over)
            rows.append(
                [
                    way,
                    len(of_way),
                    f"{worst.over:.4g}",
                    f"{worst.may_be_over:.4g}",
                    sum(one.n_after for one in of_way),
                    n_bad,
                ]
            )
    n_bad, n_kinds = (
        sum(not one.is_held for one in found),
        len({(one.kind.way, one.kind.times) for one in found}),
    )
    print_table(
        f"{len(found)} runs of {n_kinds} kinds of usage: {n_bad} over, {verdict(n_bad == 0)}",
        ["way of saying", "runs", "worst over", "in flight then", "calls after", "bad"],
        rows,
    )
    for one in found:
        if not one.is_held:
            print("BAD", one)
    return int(n_bad > 0)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
