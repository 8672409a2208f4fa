"""A person steers while a worker works: what they say holds before the next call."""

from babyagi.tasks import ObjectiveStatus, Place, Proposal, Role, StopReason, TaskStatus
from support.scripted import ScriptedModel
from support.world import World

NO_NEW_TASKS = '{"tasks": []}'


def make_world(on_first, **fields):
    """A world in which `on_first` is awaited while the first execution is answered."""
    world = World(concurrency=1, **fields)

    class Interrupted(ScriptedModel):
        async def complete(self, prompt, *, role, on_text=None):
            completion = await super().complete(prompt, role=role, on_text=on_text)
            if role is Role.EXECUTION and len(self.asked(Role.EXECUTION)) == 1:
                await on_first()
            return completion

    world.model = Interrupted(
        lambda prompt, role: NO_NEW_TASKS if role is Role.CREATION else "an answer"
    )
    return world


def asked(world):
    """The agents that were asked, after the first execution and what came before it."""
    agents = [
        prompt.messages[0].text.split("\n")[0].removeprefix("Role: ")
        for _, prompt in world.model.calls
    ]
    return agents[agents.index("execution agent") + 1 :]


async def test_a_cancelled_objective_makes_no_further_call_but_that_of_its_report():
    async def cancel():
        await world.store.end_objective(1, reason=StopReason.CANCELLED)

    world = make_world(cancel)
    objective = await world.start()
    await world.store.add_tasks(objective.id, [Proposal(name="B")])

    ended = await world.run(objective)

    assert ended.stop_reason is StopReason.CANCELLED
    assert ended.has_report
    assert asked(world) == ["report agent"]
    counts = (await world.store.standing(objective.id)).counts
    assert counts[TaskStatus.CANCELLED] + counts[TaskStatus.DONE] + counts[TaskStatus.RECORDED] == 2


async def test_a_paused_objective_makes_no_further_call_and_a_resumed_one_goes_on_from_there():
    async def pause():
        await world.store.switch_objective(1, to=ObjectiveStatus.PAUSED)

    world = make_world(pause)
    objective = await world.run()
    assert objective.status is ObjectiveStatus.PAUSED
    assert asked(world) == []

    await world.store.switch_objective(objective.id, to=ObjectiveStatus.ACTIVE)
    ended = await world.run(objective)

    assert ended.stop_reason is StopReason.FINISHED and ended.has_report
    assert asked(world) == ["creation agent", "check agent", "check agent"]


async def test_what_a_person_puts_first_or_skips_while_a_task_runs_holds_at_the_next_claim():
    async def steer():
        await world.store.move_task(1, 3, to=Place.FIRST)
        await world.store.cancel_task(1, 2)

    world = make_world(steer)
    objective = await world.start()
    await world.store.add_tasks(objective.id, [Proposal(name="B"), Proposal(name="C")])

    await world.run(objective)

    claimed = [
        event.task_id
        for event in await world.store.events(objective.id)
        if event.kind == "task.claimed"
    ]
    assert claimed[1] == 3
    assert 2 not in claimed
