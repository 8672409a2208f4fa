"""Random texts as the replies of the prioritizer and of the creation agent: no task is lost or
renamed, and reading takes linear time.

The texts are built from what replies are made of (JSON, halves of JSON, lists, names and numbers of
the list's own tasks, tags of thinking, fences of code, escapes, lone surrogates) and from random
characters, and are mutated by cutting, doubling and swapping parts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

from babyagi.agents.check import parse_check
from babyagi.agents.creation import MAX_PROPOSED_CHARS, parse_creation, split_combined
from babyagi.agents.outcomes import find_fault
from babyagi.agents.prioritization import parse_order
from babyagi.errors import MalformedReplyError
from babyagi.llm.prompt import Message, Speaker
from babyagi.tasks import (
    Claim,
    Duty,
    Limits,
    ObjectiveSpec,
    Proposal,
    Role,
    Task,
    TaskStatus,
    Worker,
)
from babyagi.taskstore.nouns import Planned
from babyagi.taskstore.sqlite import MemoryTaskStore
from support.table import print_table, verdict

NAMES = (
    "Read the docs of x", "Read the docs of x v2", "3. Compare 2 and 4", "Überprüfe “alles”",
    "order: 5, 4, 3", '{"name": "odd"}', "A",
    "Fetch https://x.com/v2.1?id=3", "读取文件", "*bold* task", "a" * 400,
)  # fmt: skip
PARTS = (
    '{"order": [', "]}", "[", "]", "{", "}", ",", ":",
    '"', "\\", "\n", "\n\n", " ", "- ", "1. ", "2) ", "#3. ", "**", "```json\n", "```",
    "<think>", "</think>",
    '{"tasks": [', '{"name": "', '", "after": [', '"objective_met": true', "null", "true", "NaN",
    "1e999", "-1",
    "The order is: ", "I'm sorry, I can't", "<li>", "</td>", "→", ">>",
    "\x1b[31m", "\x00", "\ud800", "\ufeff", "\u200b", "ﬁ", "0️⃣", "\r\n",
    "999999999999999999999", "task ", "[x] ", "| ",
)  # fmt: skip
MAX_RATIO = 3.0  # of the times for a text of twice the size; 2 is linear, 4 is quadratic
SIZES = (25_000, 50_000, 100_000, 200_000)


def random_text(chance: random.Random, names: Sequence[str]) -> str:
    """A text of up to some hundred parts."""
    n = chance.choice((0, 1, 3, 10, 30, 100, 300))
    parts = [_part(chance, names) for _ in range(n)]
    for _ in range(chance.randint(0, 3)):
        at, to = sorted((chance.randrange(len(parts) + 1), chance.randrange(len(parts) + 1)))
        parts = chance.choice(
            (parts[:at], parts[at:], parts + parts[at:to], parts[at:to] + parts[:at] + parts[to:])
        )
    if chance.random() < 0.2:
        return json.dumps(
            {"order": parts, "tasks": [{"name": part, "after": [1, part, None]} for part in parts]}
        )
    return "".join(parts)


def _part(chance: random.Random, names: Sequence[str]) -> str:
    match chance.randrange(6):
        case 0 | 1 | 2:
            return chance.choice(PARTS)
        case 3:
            return str(chance.randint(-2, 15))
        case 4:
            return chance.choice(names)
        case _:
            return "".join(
                chr(chance.choice((chance.randint(0, 127), chance.randint(0, 0x2FFF), 0xD900)))
                for _ in range(chance.randint(1, 9))
            )


class Lists:
    """One objective on the store in memory, to which replies are applied as the loop does. Nobody
    but a reply changes its list."""

    def __init__(self) -> None:
        self.store = MemoryTaskStore(lambda: datetime(2030, 1, 1, tzinfo=UTC))
        self.n_lost = self.n_added = self.n_orders = self.n_malformed = 0
        self._tasks: list[Task] = []

    async def begin(self) -> None:
        limits = Limits(max_tasks=0, max_calls=0, max_tokens=0, max_cost_usd=0, max_time_s=0)
        spec = ObjectiveSpec(
            text="o",
            initial_task="First",
            limits=limits,
            model_by_role={Role.CREATION: "m"},
            embedding_space="s",
            prompt_version="1",
        )
        objective, _ = await self.store.create_objective(spec, uid="u", always_new=True)
        self.id = objective.id
        worker = Worker(
            id="w", name="w", host="h", pid=1, lease_until=datetime(2030, 1, 1, tzinfo=UTC)
        )
        await self.store.register_worker(worker, lease_s=60)
        await self.store.join_objective(worker.id, self.id)
        await self.store.add_tasks(self.id, [Proposal(name=name) for name in NAMES])
        self._tasks = await self.store.tasks(self.id)

    async def order(self, text: str) -> None:
        """The prioritizer replies with the text."""
        await self.store.add_tasks(self.id, [Proposal(name=f"News {len(self._tasks)}")])
        claim = await self.store.claim_duty(self.id, "w", Duty.ORDER)
        assert claim is not None
        window = await self.store.window(self.id, n_head=12, n_new=8)
        ids: tuple[int, ...] = ()
        with suppress(MalformedReplyError):
            ids = parse_order(text, ids=[task.id for task in window.tasks])
        assert len(set(ids)) == len(ids) and set(ids) <= {task.id for task in window.tasks}
        await self.store.reorder(claim, revision=window.revision, task_ids=ids)
        self.n_orders += len(ids) > 1
        await self._compare()

    async def create(self, text: str) -> None:
        """The creation agent replies with the text, and whoever checks what it claims finds it not
        met."""
        claim: Claim | None = await self.store.claim_task(self.id, "w")
        assert claim is not None
        task_id = claim.task.id
        await self.store.record_result(claim, text="r", origins=[])
        plan = self._read_plan(text, task_id, known={task.id for task in self._tasks})
        duty = await self.store.claim_duty(self.id, "w", Duty.PLAN)
        assert duty is not None
        self.n_added += len(await self.store.record_plan(duty, task_ids=[task_id], plan=plan))
        check = await self.store.claim_duty(self.id, "w", Duty.CHECK)
        assert check is None or plan.is_met
        if check is not None:
            await self.store.finish_check(check, is_met=False, reason="no")
        await self.store.add_tasks(self.id, [Proposal(name="Go on")])
        await self._compare(without_id=task_id)
        assert ((await self.store.task(self.id, task_id)).status is TaskStatus.DONE) is not bool(
            plan.unanswered
        )

    def _read_plan(self, text: str, task_id: int, *, known: set[int]) -> Planned:
        """What the text proposes, as the loop reads it."""
        try:
            reply = parse_creation(text, known_ids=known, finished_ids=[task_id], max_tasks=10)
        except MalformedReplyError:
            self.n_malformed += 1
            return Planned(failure="malformed")
        afters = [*(task.after for task in reply.tasks), *(one.after for one in reply.unanswered)]
        assert len(reply.tasks) <= 10 and all(
            0 < len(task.name) <= MAX_PROPOSED_CHARS for task in reply.tasks
        )
        assert all(id_ in known for after in afters for id_ in after if isinstance(id_, int))
        assert all(one.task_id == task_id for one in reply.unanswered) and all(
            one.parent_id in (None, task_id) for one in reply.tasks
        )
        proposals = [replace(one, parent_id=task_id) for one in reply.tasks]
        return Planned(
            proposals=tuple(proposals),
            unanswered=reply.unanswered,
            is_met=reply.is_met,
            dropped=reply.dropped,
        )

    async def _compare(self, *, without_id: int = 0) -> None:
        """Ids, names and statuses stand as they were, and the ranks are the same ones."""
        before, after = self._tasks, await self.store.tasks(self.id)
        after_by_id = {task.id: (task.name, task.status) for task in after}
        self.n_lost += sum(
            after_by_id.get(task.id) != (task.name, task.status)
            for task in before
            if task.id != without_id
        )
        self.n_lost += sorted(task.rank for task in after) != list(range(1, len(after) + 1))
        self._tasks = after


async def fuzz(n_texts: int, *, seed: int) -> Lists:
    """Apply that many random texts as replies of each of the two agents; the list is begun anew
    every 25."""
    chance, lists = random.Random(seed), Lists()
    for n in range(n_texts):
        if n % 25 == 0:
            fresh = Lists()
            fresh.n_lost, fresh.n_added, fresh.n_orders, fresh.n_malformed = (
                lists.n_lost,
                lists.n_added,
                lists.n_orders,
                lists.n_malformed,
            )
            await lists.store.close()
            lists = fresh
            await lists.begin()
        text = random_text(chance, NAMES)
        await lists.order(text)
        await lists.create(text)
    return lists


# -- time
# --------------------------------------------------------------------------------------------------

SHAPES: dict[str, Callable[[int], str]] = {
    "open brackets": lambda n: "[" * n,
    "broken objects": lambda n: '{"a": [1, ' * (n // 10),
    "quotes": lambda n: '"' * n,
    "backslashes": lambda n: '{"name": "' + "\\" * n,
    "trailing commas": lambda n: '{"order": [' + "1," * (n // 2) + "]}",
    "list items": lambda n: "- do this\n" * (n // 10),
    "numbers": lambda n: "12, " * (n // 4),
    "names": lambda n: (NAMES[0] + "\n") * (n // 19),
    "thinking": lambda n: "<think>" * (n // 7),
    "ends of thinking": lambda n: "</think> " * (n // 9),
    "spaces": lambda n: "- a" + " " * n + "b",
    "bold": lambda n: "**" * (n // 2),
    "colons": lambda n: "a:" * (n // 2),
    "tags": lambda n: "<li " * (n // 4),
    "blanks in JSON": lambda n: "[" + " " * n,
    "zero widths": lambda n: "\u200b" * n,
}


def read_as_each(text: str) -> None:
    """Read the text as a reply of each agent."""
    told = [Message(speaker=Speaker.SYSTEM, text=" ".join(NAMES), origins=("program",))]
    with suppress(MalformedReplyError):
        parse_order(text, ids=range(1, len(NAMES)))
    with suppress(MalformedReplyError):
        parse_creation(text, known_ids={1}, max_tasks=10)
    with suppress(MalformedReplyError):
        parse_check(text)
    split_combined(text, known_ids={1}, max_tasks=10)
    find_fault(text, task_name=NAMES[0], messages=told)


def read_s(text: str) -> float:
    """Seconds of processor time for reading the text as each, the better of two."""
    times = []
    for _ in range(2):
        began_s = time.process_time()
        read_as_each(text)
        times.append(time.process_time() - began_s)
    return min(times)


def measure_times(sizes: Sequence[int] = SIZES) -> dict[str, list[float]]:
    return {name: [read_s(shape(size)) for size in sizes] for name, shape in SHAPES.items()}


def is_linear(times: Sequence[float]) -> bool:
    """Whether doubling the size no more than about doubled the time; what takes under 20 ms is too
    short to judge."""
    return all(
        after < 0.02 or after / max(before, 1e-6) <= MAX_RATIO for before, after in pairwise(times)
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.fuzz_replies", description=__doc__
    )
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    began_s = time.monotonic()
    lists = asyncio.run(fuzz(options.texts, seed=options.seed))
    took_s = time.monotonic() - began_s
    print(
        (
            f"{options.texts:,} texts as replies of each agent in {took_s:.0f} s: "
            f"{lists.n_orders:,} were read as an order, {lists.n_added:,} "
        ),
        end="",
    )
    print(f"tasks were proposed, {lists.n_malformed:,} could not be read")
    print(f"{lists.n_lost} tasks lost or renamed, goal 0: {verdict(lists.n_lost == 0)}\n")
    times = measure_times()
    rows = [
        (name, *(f"{1000 * s:.1f}" for s in row), "yes" if is_linear(row) else "NO")
        for name, row in times.items()
    ]
    print_table(
        "Milliseconds to read a text of one shape, by its size",
        ("shape", *(f"{size // 1000} kB" for size in SIZES), "linear"),
        rows,
    )
    are_linear = all(map(is_linear, times.values()))
    print(f"twice the size takes at most {MAX_RATIO:g} times as long: {verdict(are_linear)}")
    return 1 if lists.n_lost or not are_linear else 0


if __name__ == "__main__":
    sys.exit(main())
