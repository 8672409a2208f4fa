"""Runs a loop on a world in this process, on a clock that jumps: calls take their time and cost
none of ours."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, fields, replace
from typing import Any

from babyagi.journal import Gate
from babyagi.llm.port import Completion, OnText
from babyagi.llm.prompt import Message, Prompt, bound_tokens
from babyagi.loop import Bounds, Loop
from babyagi.settings.fields import Settings
from babyagi.tasks import Limits, Objective, Planning, Reservation, Role
from babyagi.worker.serving import Pace
from support.virtual import VirtualWorld, run_virtually
from support.worlds.generator import World
from support.worlds.model import SimulatedModel
from support.worlds.noise import NO_NOISE, Noise
from support.worlds.plain import run_plain
from support.worlds.tally import Tally

LATENCY_S = 1.0
# how much larger than the world the limits are made, where the world is larger than they are
ROOM = 4
MAX_VIRTUAL_S = 200_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a loop is set: its name, and for ours how many workers do how much at once, whether the
    planning is combined, and when planning and ordering are due."""

    loop: str
    concurrency: int = 4
    n_workers: int = 1
    planning: str = "separate"
    protocol: str = "auto"
    cadence: str = "each"

    @property
    def label(self) -> str:
        if self.loop != "ours":
            return self.loop
        return (
            f"ours ×{self.concurrency}×{self.n_workers} {self.planning}"
            f"{f' {self.protocol}' if self.protocol != 'auto' else ''}"
            f"{f' {self.cadence}' if self.cadence != 'each' else ''}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended. `is_reported`: every goal's value stands in the report. `wall_s` is the
    loop's own clock."""

    world: World
    tally: Tally
    report: str
    stop_reason: str
    wall_s: float
    latency_s: float = LATENCY_S

    @property
    def is_solved(self) -> bool:
        return self.tally.is_solved

    @property
    def is_reported(self) -> bool:
        return all(self.world.facts[number].value in self.report for number in self.world.goals)

    @property
    def is_false(self) -> bool:
        """Whether the report gives what the model invented, or what was worked out from it, as a
        goal's only value."""
        return any(self._tells(goal) == (False, True) for goal in self.world.goals)

    @property
    def is_contradiction_told(self) -> bool:
        return any(self._tells(goal) == (True, True) for goal in self.world.goals)

    @property
    def is_false_end(self) -> bool:
        """Whether the run ended as if the objective were reached, and the report lacks the value
        of a goal."""
        return self.stop_reason in ("finished", "objective_met") and not self.is_reported

    def _tells(self, goal: int) -> tuple[bool, bool]:
        """Whether the report holds the goal's value, and an invented one."""
        fact = self.world.facts[goal]
        is_wrong = bool(fact.wrong_value) and fact.wrong_value in self.report
        return fact.value in self.report, is_wrong


class CountedModel:
    """The tally as a `ChatModel`, each of whose calls takes `latency_s`."""

    def __init__(self, tally: Tally, *, latency_s: float = LATENCY_S) -> None:
        self.name = "simulated"
        self._tally = tally
        self._latency_s = latency_s

    def reserve(self, prompt: Prompt) -> Reservation:
        return Reservation(calls=1, tokens=bound_tokens(prompt) + prompt.max_output_tokens)

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        reply, usage = self._tally.answer(prompt)
        await asyncio.sleep(self._latency_s)
        reason = "tool_calls" if reply.tool_calls else "stop"
        return Completion(
            text=reply.text,
            tool_calls=reply.tool_calls,
            finish_reason=reason,
            model=self.name,
            usage=usage,
        )


def run_world(world: World, way: Way, *, seed: int = 0, noise: Noise = NO_NOISE) -> Outcome:
    """Run one loop on one world to its end."""
    tally = Tally(SimulatedModel(world, seed=seed, noise=noise))
    run = run_the_plain_loop if way.loop == "plain" else run_our_loop
    report, stop_reason, wall_s = run_virtually(run(world, tally, way))
    return Outcome(world=world, tally=tally, report=report, stop_reason=stop_reason, wall_s=wall_s)


async def run_the_plain_loop(world: World, tally: Tally, way: Way) -> tuple[str, str, float]:
    model = CountedModel(tally)

    async def ask(messages: tuple[Message, ...]) -> str:
        return (await model.complete(Prompt(messages=messages), role=Role.EXECUTION)).text

    cap = ROOM * len(world.facts)
    report, why = await run_plain(
        ask, objective=world.objective, first_task=world.initial_task, max_executions=cap
    )
    return report, why, asyncio.get_running_loop().time()


# -- ours
# --------------------------------------------------------------------------------------------------


async def run_our_loop(world: World, tally: Tally, way: Way) -> tuple[str, str, float]:
    house = House(
        model=CountedModel(tally),
        pace=Pace(concurrency=way.concurrency, is_batched=way.cadence == "batched"),
        loop_bounds=replace(default_bounds(), protocol=way.protocol),
    )
    max_tasks = max(Limits().max_tasks, ROOM * len(world.facts))
    limits = Limits(max_tasks=max_tasks, max_tokens=0, max_cost_usd=0, max_time_s=0)
    planning = Planning(way.planning)
    objective = await house.start(
        text=world.objective, initial_task=world.initial_task, limits=limits, planning=planning
    )
    async with asyncio.timeout(MAX_VIRTUAL_S), asyncio.TaskGroup() as group:
        for _ in range(way.n_workers):
            group.create_task(house.open_worker(objective).run(objective.id))
    ended = await house.store.objective(objective.id)
    report = await house.store.report(objective.id)
    return report or "", str(ended.stop_reason), asyncio.get_running_loop().time()


def default_bounds() -> Bounds:
    """What a person gets who sets nothing."""
    settings, names = Settings(), {field.name for field in fields(Bounds)} - {"memory"}
    chosen: dict[str, Any] = {
        name: getattr(settings, name) for name in names if hasattr(settings, name)
    }
    return Bounds(**chosen)


@dataclass
class House(VirtualWorld):
    """Our loop in one process."""

    loop_bounds: Bounds | None = None

    def open_loop(self, objective: Objective, gate: Gate) -> Loop:
        loop = super().open_loop(objective, gate)
        if self.loop_bounds is not None:
            loop._resources = replace(loop._resources, bounds=self.loop_bounds)
            loop._protocol = self.loop_bounds.protocol
        return loop
