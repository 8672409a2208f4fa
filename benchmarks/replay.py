"""The same seed gives the same run: the whole loop on a virtual clock, twice for each seed, with
what is ready shuffled by the seed.

The model answers after a time that depends on the prompt, four tasks run at once, and the outcome
of a run is every event that the task store holds then, with its time, and the report.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from babyagi.errors import ModelUnavailableError
from babyagi.llm.port import Completion, OnText
from babyagi.llm.prompt import Prompt
from babyagi.tasks import Limits, Role
from support.scripted import ScriptedModel
from support.table import verdict
from support.virtual import VirtualWorld, run_virtually


class MoodyModel(ScriptedModel):
    """Plans from what it reads, takes its time, and is away now and then; `chance` is its mood."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(self._reply)
        self._chance = chance

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        await asyncio.sleep(self._chance.choice((0.0, 0.1, 0.5, 0.5, 2.0, 40.0)))
        if self._chance.random() < 0.05:
            raise ModelUnavailableError(
                "away for a moment", may_be_billed=self._chance.random() < 0.5
            )
        return await super().complete(prompt, role=role, on_text=on_text)

    def _reply(self, prompt: Prompt, role: Role) -> str:
        match role:
            case Role.EXECUTION:
                return f"Found {hashlib.sha256(prompt.messages[-1].text.encode()).hexdigest()}."
            case Role.CREATION:
                n = len(self.calls)
                names = [f"Look into part {n} of {k}" for k in range(self._chance.randint(0, 2))]
                return json.dumps(
                    {
                        "tasks": [{"name": name, "after": [1]} for name in names],
                        "objective_met": self._chance.random() < 0.05,
                    }
                )
            case Role.PRIORITIZATION:
                return json.dumps({"order": [self._chance.randint(1, 30) for _ in range(6)]})
            case _:
                return "The report."


def run_once(seed: int) -> str:
    """Return a digest of everything that came of the run."""

    async def live() -> str:
        world = VirtualWorld(model=MoodyModel(random.Random(seed)))
        objective = await world.start(limits=Limits(max_tasks=15, max_calls=120, max_cost_usd=0))
        ended = await world.run(objective)
        events = await world.store.events(objective.id, limit=100_000)
        outcome = [
            [asdict(event) for event in events],
            await world.store.report(objective.id),
            ended.usage,
        ]
        return hashlib.sha256(json.dumps(outcome, default=str, sort_keys=True).encode()).hexdigest()

    return run_virtually(live(), seed=seed)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    options = parser.parse_args(argv)
    began_s = time.monotonic()
    first = [run_once(seed) for seed in range(options.seeds)]
    second = [run_once(seed) for seed in range(options.seeds)]
    unlike = [
        seed for seed, (one, other) in enumerate(zip(first, second, strict=True)) if one != other
    ]
    took_s = time.monotonic() - began_s
    print(f"{options.seeds} seeds, each twice, {len(set(first))} different runs, {took_s:.0f} s")
    print(
        f"{len(unlike)} seeds gave two different runs, goal 0: {verdict(not unlike)} "
        f"{unlike[:20] or ''}"
    )
    return 1 if unlike else 0


if __name__ == "__main__":
    sys.exit(main())
