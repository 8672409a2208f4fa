"""Homes with something in them, filled through the task store as a worker would."""

import asyncio
import json
import os
from pathlib import Path

from babyagi.app.backends import open_store
from babyagi.cli.root import run_guarded
from babyagi.settings.load import load_settings
from babyagi.tasks import Duty, Proposal, Reservation, StopReason, Usage, Worker
from babyagi.taskstore.nouns import Intention, Outcome, Planned
from support.workers import join
from tests.cli import samples
from tests.taskstore.empty import put_empty_store

WORKER = Worker(id="w1", name="test", host="here", pid=1, lease_until=samples.START)
REPORT = "# Report: find\n\nlimits.md:3 says so.\n"


def settings():
    return load_settings(flags={}, environ=os.environ, cwd=Path.cwd()).settings


def read_index_state():
    """How many results of the first objective are still to be indexed, how many it has, and the
    space in which they are embedded."""

    async def read():
        async with open_store(settings()) as store:
            (one,) = await store.objectives()
            owed = await store.result_ids(one.id, is_indexed=False)
            return len(owed), len(await store.result_ids(one.id)), one.spec.embedding_space

    return asyncio.run(read())


def printed_json(capsys, *line):
    """What the command prints with `--json`, and nothing besides."""
    assert run_guarded([*line, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def fill_home(text="Find what the documents promise", *, model="rehearsal", reason=None):
    """Put an objective with one finished and two queued tasks into the home of the environment;
    return its id.

    With a stop reason it has ended, and its report is written.
    """

    at = settings().home / "tasks.db"
    if not at.exists():
        put_empty_store(at)

    async def fill():
        async with open_store(settings()) as store:
            objective, _ = await store.create_objective(
                samples.spec(text, model=model),
                uid=f"uid-{text.replace(' ', '-')}",
                always_new=True,
            )
            await join(store, WORKER, objective.id)
            await finish_a_task(store, objective.id)
            if reason is not None:
                await end(store, objective.id, reason)
            await store.remove_worker(WORKER.id)
            return objective.id

    return asyncio.run(fill())


async def enter(store, objective_id):
    """The worker joins."""
    await join(store, WORKER, objective_id)


async def finish_a_task(store, objective_id, proposals=("Read limits.md", "Compare them")):
    claim = await store.claim_task(objective_id, WORKER.id)
    await store.intend_step(
        claim.fence,
        intention=Intention(
            key="1/execute/1/model",
            kind="model",
            request_hash="ab",
            reservation=Reservation(calls=1, tokens=500),
            model="rehearsal",
        ),
    )
    await store.record_step(
        claim.fence,
        Outcome(
            key="1/execute/1/model",
            output='{"text": "what the model said"}',
            usage=Usage(calls=1, prompt_tokens=100, completion_tokens=20),
            model="rehearsal",
        ),
    )
    await store.record_result(
        claim, text="limits.md:3 says fifty tasks.", origins=("file:limits.md",)
    )
    duty = await store.claim_duty(objective_id, WORKER.id, Duty.PLAN)
    plan = Planned(
        proposals=tuple(Proposal(name=name, parent_id=claim.task.id) for name in proposals)
    )
    await store.record_plan(duty, task_ids=[claim.task.id], plan=plan)


async def end(store, objective_id, reason=StopReason.LIMIT_TASKS):
    await store.end_objective(objective_id, reason=reason)
    duty = await store.claim_duty(objective_id, WORKER.id, Duty.REPORT)
    await store.record_report(duty, markdown=REPORT)
