from babyagi.duties.planning import PLAN_TOKENS
from babyagi.journal import Gate
from babyagi.tasks import Duty, Proposal, TaskStatus, Worker
from babyagi.taskstore.nouns import Planned
from support.world import World

LONG = "word " * PLAN_TOKENS


async def test_a_planning_that_is_given_up_leaves_the_tasks_that_did_not_fit_into_it_to_the_next():
    world = World()
    store, objective = world.store, await world.start()
    worker = Worker(id="w", name="w", host="here", pid=1, lease_until=world.clock())
    await store.register_worker(worker, lease_s=600)
    await store.join_objective("w", objective.id)
    await store.record_result(
        await store.claim_task(objective.id, "w"),
        text=LONG,
        origins=[],
        plan=Planned(proposals=(Proposal(name="Look at A"), Proposal(name="Look at B"))),
    )
    for _ in range(2):
        await store.record_result(await store.claim_task(objective.id, "w"), text=LONG, origins=[])

    claim = await store.claim_duty(objective.id, "w", Duty.PLAN)
    await world.open_loop(objective, Gate()).give_up_duty(claim, objective, why="no")

    statuses = [task.status for task in await store.tasks(objective.id)]
    assert sorted(statuses) == sorted([TaskStatus.DONE, TaskStatus.DONE, TaskStatus.RECORDED])
