"""A worker that is gone in the middle of it, at many instants of a run in which tasks lack
something, are planned and tried again."""

import asyncio

import pytest

from babyagi.tasks import Limits, Planning
from babyagi.worker.serving import Pace
from support.virtual import run_virtually
from support.worlds.generator import make_world
from support.worlds.house import CountedModel, House
from support.worlds.model import SimulatedModel
from support.worlds.tally import Tally

N_FACTS = 6
LATENCY_S = 1.0


class Mortal:
    """A store that answers nobody any more once it is dead: what a killed worker sees of the world,
    and the world of it."""

    def __init__(self, store):
        self._store = store
        self.is_dead = False

    def __getattr__(self, name):
        verb = getattr(self._store, name)

        async def ask(*args, **options):
            if self.is_dead:
                await asyncio.Event().wait()
            return await verb(*args, **options)

        return ask


class DeadSilence(CountedModel):
    """A model whose answers reach nobody once the worker is dead."""

    def __init__(self, tally, mortal):
        super().__init__(tally, latency_s=LATENCY_S)
        self._mortal = mortal

    async def complete(self, prompt, *, role, on_text=None):
        completion = await super().complete(prompt, role=role, on_text=on_text)
        if self._mortal.is_dead:
            await asyncio.Event().wait()
        return completion


async def run_with_a_kill(world, tally, planning, *, at_s):
    """Let one worker work until `at_s`, then another to the end; returns the objective."""
    heir = House(model=CountedModel(tally, latency_s=LATENCY_S), pace=Pace(concurrency=2))
    mortal = Mortal(heir.store)
    victim = House(
        model=DeadSilence(tally, mortal),
        store=mortal,
        clock=heir.clock,
        pace=Pace(concurrency=2),
        worker_name="victim",
    )
    objective = await heir.start(
        text=world.objective,
        initial_task=world.initial_task,
        limits=Limits(max_tokens=0, max_cost_usd=0, max_time_s=0),
        planning=planning,
    )
    first = asyncio.create_task(victim.open_worker(objective).run(objective.id))
    await asyncio.sleep(at_s)
    mortal.is_dead = True
    ended, _ = await heir.open_worker(objective).run(objective.id)
    mortal.is_dead = False  # so that its worker can end in order
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    return ended


@pytest.mark.thorough
@pytest.mark.parametrize("planning", list(Planning))
@pytest.mark.parametrize("nth", range(10))
def test_a_worker_that_is_gone_costs_at_most_the_calls_it_had_in_flight(nth, planning):
    world = make_world("join", N_FACTS, 4)
    tally = Tally(SimulatedModel(world))

    ended = run_virtually(run_with_a_kill(world, tally, planning, at_s=0.5 + 1.5 * nth))

    assert ended.stop_reason in ("finished", "objective_met")
    assert tally.is_solved
    assert max(tally.n_by_prompt.values()) <= 2
    # two slots: what was in flight is asked again, and nothing else
    assert sum(n - 1 for n in tally.n_by_prompt.values()) <= 2
