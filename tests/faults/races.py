"""Eight worker processes race on one objective with a limit: it is never passed, and little is left
under it.

What is spent and held is read from outside, again and again while they race; in the end the model
server's own bill is compared. Every answer takes another length, up to what was asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from babyagi.llm.prompt import Prompt, bound_tokens
from babyagi.tasks import Limits, Usage
from babyagi.taskstore.limits import kept_back
from support.board import STORES, Board, Surveyor, open_board, open_stores
from support.local_server import Answer, ChatRequest
from support.local_server.dialects import count_usage
from support.table import print_table, verdict

N_WORKERS = 8
LIMITS = Limits(max_cost_usd=1.0, max_tasks=100)
PRICE_IN, PRICE_OUT = 10.0, 20.0  # US dollars for a million tokens: one to four cents a call
RACE_S = 120.0
WATCH_EVERY_S = 0.02
SURVEY = 1
ENDLESS = 100_000


class RandomLengths(Surveyor):
    """Each answer takes a random part of the tokens that it may, and a random time."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        # reservation for a call that was made, in US dollars, but those for the report
        self.largest = 0.0
        self._chance = random.Random(seed)

    async def __call__(self, chat: ChatRequest) -> Answer:
        prompt = Prompt(
            messages=chat.messages,
            tools=chat.tools,
            schema_name=chat.schema_name,
            schema=chat.schema,
        )
        if chat.agent != "report":
            self.largest = max(
                self.largest, (bound_tokens(prompt) * PRICE_IN + chat.max_tokens * PRICE_OUT) / 1e6
            )
        self.latency_s = self._chance.uniform(0.0, 0.05)
        answer = await super().__call__(chat)
        usage = count_usage(chat, answer)
        # no server bills more than it was allowed to write, however many tasks are planned from
        least = min(usage.completion_tokens, chat.max_tokens)
        length = self._chance.randint(least, chat.max_tokens)
        return replace(
            answer,
            usage=Usage(calls=1, prompt_tokens=usage.prompt_tokens, completion_tokens=length),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The objective at one moment. Money in millionths of a US dollar; `n_tasks` are those that
    were begun."""

    spent: int
    held: int
    n_tasks: int
    is_over: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """One race. `most` is the largest sum of spent and held that was ever seen, `billed` what the
    server counted, `left` what lay under the limit and the report's slice in the end, `largest` the
    largest reservation."""

    seed: int
    took_s: float
    n_looks: int
    most: int
    most_tasks: int
    billed: int
    left: int
    largest: int
    n_worked: int
    ended: str
    codes: tuple[int | None, ...]
    limits: Limits

    def is_good(self, *, by_cost: bool) -> bool:
        if set(self.codes) != {143} or self.n_worked < 2:
            return False
        if not by_cost:
            return self.most_tasks == self.limits.max_tasks and self.ended == "limit:tasks"
        return (
            max(self.most, self.billed) <= self.limits.max_cost_usd * 1e6
            and self.left < self.largest
            and self.ended == "limit:cost"
        )


async def race(
    url: str, *, seed: int, by_cost: bool, n_workers: int = N_WORKERS, limits: Limits = LIMITS
) -> Race:
    """Let the workers wait for the objective, put it on the board, and watch."""
    prices = {
        "BABYAGI_PRICE": f"{PRICE_IN}/{PRICE_OUT}",
        "BABYAGI_MAX_OUTPUT_TOKENS": "1000",
    }
    variables = (
        {"BABYAGI_MAX_COST_USD": str(limits.max_cost_usd)}
        if by_cost
        else {"BABYAGI_MAX_COST_USD": "0", "BABYAGI_MAX_TASKS": str(limits.max_tasks)}
    )
    model = RandomLengths(seed)
    async with open_board(url, model=model, is_timed=False) as board:
        workers = await board.start_workers(*(f"w{n}" for n in range(n_workers)), env=prices)
        objective_id, began_s = (
            await board.submit(SURVEY, ENDLESS, **prices, **variables),
            time.monotonic(),
        )
        seen = [look(board, objective_id)]
        while not seen[-1].is_over and time.monotonic() < began_s + RACE_S:
            await asyncio.sleep(WATCH_EVERY_S)
            seen.append(look(board, objective_id))
        took_s = time.monotonic() - began_s
        for worker in workers:
            worker.send(signal.SIGTERM)
        codes = tuple(await asyncio.gather(*(worker.wait(300) for worker in workers)))
        return sum_up(
            board,
            objective_id,
            seen,
            seed=seed,
            took_s=took_s,
            codes=codes,
            limits=limits,
            largest=round(model.largest * 1e6),
        )


def look(board: Board, objective_id: int) -> Seen:
    """Read what is spent, held and begun in one statement."""
    of = f"WHERE objective_id = {objective_id}"
    row = board.rows(
        f"SELECT cost_microusd AS spent, report IS NOT NULL AS is_over,"
        f" (SELECT coalesce(sum(held_cost_microusd), 0) FROM step {of} AND is_held = 1) AS held,"
        f" (SELECT count(*) FROM task {of} AND status IN ('running', 'recorded', 'done', "
        "'dead')) AS n_tasks"
        f" FROM objective WHERE id = {objective_id}"
    )[0]
    return Seen(
        spent=int(row["spent"]),
        held=int(row["held"]),
        n_tasks=int(row["n_tasks"]),
        is_over=bool(row["is_over"]),
    )


def sum_up(
    board: Board, objective_id: int, seen: Sequence[Seen], *, limits: Limits, **known: Any
) -> Race:
    """What became of it, beside what is known of the race."""
    of, last = f"WHERE objective_id = {objective_id}", look(board, objective_id)
    steps = board.rows(f"SELECT owner, cost_microusd FROM step {of}")
    report = sum(step["cost_microusd"] for step in steps if step["owner"].startswith("report"))
    kept = round(kept_back(Limits(max_cost_usd=limits.max_cost_usd), "task:1").cost_usd * 1e6)
    claimed = board.rows(f"SELECT data FROM event {of} AND kind = 'task.claimed'")
    billed = sum(
        record.prompt_tokens * PRICE_IN + record.completion_tokens * PRICE_OUT
        for record in board.server.requests
    )
    return Race(
        n_looks=len(seen),
        most=max(one.spent + one.held for one in (*seen, last)),
        most_tasks=max(one.n_tasks for one in (*seen, last)),
        billed=round(billed),
        left=round(limits.max_cost_usd * 1e6) - kept - (last.spent - report) - last.held,
        n_worked=len({json.loads(row["data"])["worker_id"] for row in claimed}),
        ended=board.objective(objective_id)["stop_reason"] or "",
        limits=limits,
        **known,
    )


async def measure(kind: str, *, seeds: Sequence[int], by_cost: bool) -> list[Race]:
    races = []
    with open_stores(kind) as make_store:
        for seed in seeds:
            races.append(await race(make_store(f"seed{seed}"), seed=seed, by_cost=by_cost))
            if not races[-1].is_good(by_cost=by_cost):
                print(f"{kind}, seed {seed}: {races[-1]}", file=sys.stderr)
    return races


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.races", description=__doc__)
    parser.add_argument("--races", type=int, default=3, help="for each limit and store")
    parser.add_argument("--seed", type=int, default=1, help="that of the first race")
    parser.add_argument("--store", choices=STORES, action="append", help="default: both")
    options = parser.parse_args(argv)
    table, is_met = [], True
    for kind in options.store or STORES:
        for by_cost in (True, False):
            seeds = range(options.seed, options.seed + options.races)
            races = asyncio.run(measure(kind, seeds=seeds, by_cost=by_cost))
            is_met = is_met and all(one.is_good(by_cost=by_cost) for one in races)
            table.append(row_of(kind, races, by_cost=by_cost))
    head = (
        "store",
        "limit",
        "races",
        "looks",
        "most spent and held",
        "billed",
        "left at most",
        "of a reservation of",
        "slowest s",
    )
    print_table(f"{N_WORKERS} worker processes race on one objective with a limit", head, table)
    print(f"never over, and less left than the largest reservation: {verdict(is_met)}")
    return 0 if is_met else 1


def row_of(kind: str, races: Sequence[Race], *, by_cost: bool) -> tuple[object, ...]:
    n_looks, slowest = sum(one.n_looks for one in races), f"{max(one.took_s for one in races):.1f}"
    if not by_cost:
        return (
            kind,
            f"{LIMITS.max_tasks} tasks",
            len(races),
            n_looks,
            f"{max(one.most_tasks for one in races)} tasks",
            "",
            "",
            "",
            slowest,
        )
    tightest = max(races, key=lambda one: one.left / max(one.largest, 1))
    figures: tuple[str, ...] = (
        f"${max(one.most for one in races) / 1e6:.4f}",
        f"${max(one.billed for one in races) / 1e6:.4f}",
    )
    return (
        kind,
        f"${LIMITS.max_cost_usd:g}",
        len(races),
        n_looks,
        *figures,
        f"${tightest.left / 1e6:.4f}",
        f"${tightest.largest / 1e6:.4f}",
        slowest,
    )


if __name__ == "__main__":
    sys.exit(main())
