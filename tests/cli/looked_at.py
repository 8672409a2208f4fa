"""A home in which everything has happened that a person may ask about, filled through the task
store as workers would."""

import asyncio
import json

from babyagi import events
from babyagi.app.backends import open_store
from babyagi.inbox import QUESTION, write_request
from babyagi.llm.kept import write_prompt
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolCall, ToolSpec
from babyagi.tasks import (
    Duty,
    Lack,
    Passage,
    Proposal,
    Reservation,
    StopReason,
    Usage,
    Worker,
)
from babyagi.taskstore.nouns import Checked, Intention, Kept, Outcome, Planned
from babyagi.tools.base import Observation
from support.workers import join
from tests.cli import homes, samples

MODEL = "gpt-6-luna"
KEY = "sk-proj-" + "a1B2c3D4" * 5
CALL = Reservation(calls=1, tokens=5000, cost_usd=0.25)
USAGE = Usage(calls=1, prompt_tokens=812, completion_tokens=120, cost_usd=0.0004)
SYSTEM = Message(speaker=Speaker.SYSTEM, text="Role: execution agent")
CALLED = ToolCall(id="c1", name="read_file", arguments='{"path": "limits.md"}')
READ = Message(speaker=Speaker.ASSISTANT, text="", tool_calls=(CALLED,))
SEEN = Message(speaker=Speaker.TOOL, text="50 tasks\n1 dollar", tool_call_id="c1")
LONG = "\n".join(f"line {n} of a long document" for n in range(40))


def worker(worker_id):
    return Worker(
        id=worker_id, name=f"name-{worker_id}", host="here", pid=1, lease_until=samples.START
    )


class Run:
    """An objective that is worked on."""

    def __init__(self, store, objective_id):
        self.store, self.id = store, objective_id

    async def claim(self, worker_id="w1"):
        claim = await self.store.claim_task(self.id, worker_id)
        assert claim is not None
        return claim

    async def ask(self, fence, key, *messages, text="", calls=(), before=((), "")):
        """A call of a model, with what it replied."""
        prompt = Prompt(
            messages=messages,
            tools=(ToolSpec(name="read_file", description="", parameters={}),),
        )
        request = write_prompt(prompt, before=before[0], before_key=before[1])
        intention = Intention(
            key=key, kind="model", request_hash="h", reservation=CALL, model=MODEL, request=request
        )
        await self.store.intend_step(fence, intention=intention)
        completion = Completion(text=text, tool_calls=calls, model=MODEL, usage=USAGE)
        await self.store.record_step(
            fence, Outcome(key=key, output=completion.to_json(), usage=USAGE, model=MODEL)
        )

    async def keep(self, fence, key, kind, output, request=""):
        kept = Kept(key=key, kind=kind, request_hash="h", output=output, request=request)
        await self.store.record_step(fence, kept)

    async def do_duty(self, duty, key, *messages, text):
        claim = await self.store.claim_duty(self.id, "w1", duty)
        assert claim is not None, duty
        await self.ask(claim.fence, key, *messages, text=text)
        return claim


def user(text):
    return Message(speaker=Speaker.USER, text=text)


async def read_documents(run):
    """Task 1: two calls of the model and one of a tool, and what is planned from its result."""
    claim = await run.claim()
    first = (SYSTEM, user(f"Read the documents. My key is {KEY}\n{LONG}"))
    await run.keep(claim.fence, "1/inputs", "inputs", json.dumps({"excerpts": []}))
    await run.ask(claim.fence, "1/execute/1/model", *first, calls=(CALLED,))
    gave = Observation(passage=Passage(text=SEEN.text, origin="file:limits.md")).to_json()
    request = write_request("read_file", {"path": "limits.md"})
    await run.keep(claim.fence, "1/execute/1/tool/1", "tool", gave, request)
    before = (first, "1/execute/1/model")
    found = "limits.md says fifty tasks\x1b[31m."
    key = "1/execute/2/model"
    await run.ask(claim.fence, key, *first, READ, SEEN, text=found, before=before)
    await run.store.record_result(claim, text=found, origins=["file:limits.md"])
    asked = user("Which tasks are missing?")
    duty = await run.do_duty(Duty.PLAN, "create", asked, text='{"tasks": ["Ask for prices"]}')
    await run.store.record_plan(
        duty,
        task_ids=[1],
        plan=Planned(
            proposals=(
                Proposal(name="Ask for prices", parent_id=1, label="a"),
                Proposal(name="Compare the prices", parent_id=1, after=("b",)),
                Proposal(name="Ask for a discount", parent_id=1, label="b"),
                Proposal(name="Read missing.md", parent_id=1),
                Proposal(name="Summarize limits.md", parent_id=1),
                Proposal(name="Find the tax", parent_id=1),
            ),
            is_met=True,
            dropped=("Write a novel",),
        ),
    )


async def check_and_order(run):
    asked = user("Is the objective met?")
    duty = await run.do_duty(Duty.CHECK, "check", asked, text='{"missing": ["the prices"]}')
    checked = Checked(missing=("the prices",))
    await run.store.finish_check(
        duty, is_met=False, reason="the prices are missing", checked=checked, proposals=()
    )
    asked = user("In which order?")
    duty = await run.do_duty(Duty.ORDER, "order", asked, text='{"order": [2, 4]}')
    await run.store.reorder(duty, task_ids=[2, 4, 3, 5, 6, 7], revision=0)


async def ask_person(run, question, answer=""):
    claim = await run.claim()
    request = write_request("ask_person", {"question": question})
    key = f"{claim.task.try_no}/execute/1/tool/1"
    step = await run.store.park_task(claim.fence, key=key, kind=QUESTION, request=request)
    if answer:
        said = Observation(passage=Passage(text=answer, origin="person"))
        await run.store.answer_step(step.id, output=said.to_json())


async def finish_asking(run):
    """Task 2, whose question was answered: it is given an earlier result, and done."""
    claim = await run.claim()
    excerpts = {"excerpts": [{"task_id": 1, "score": 0.4, "reason": "after"}]}
    await run.keep(claim.fence, "1/inputs", "inputs", json.dumps(excerpts))
    await run.store.record_result(claim, text="Prices are in euros.", origins=["person"])
    duty = await run.do_duty(Duty.PLAN, "create", user("And now?"), text='{"tasks": []}')
    await run.store.record_plan(duty, task_ids=[2], plan=Planned())


async def lack_tax(run, claim):
    """The task lacks something in all three of its tries."""
    for left in (2, 1, 0):
        await run.store.record_lack(claim, lack=Lack(what="the tax rate of Norway"))
        if left:
            duty = await run.do_duty(Duty.PLAN, "create", user("And now?"), text="{}")
            await run.store.record_plan(duty, task_ids=[claim.task.id], plan=Planned())
            claim = await run.claim()


def fill_running_home():
    """Seven tasks: 1 and 2 done, 3 after 4, 4 waiting for an answer, 5 and 7 given up, 6 running;
    a call of it was cut off before."""

    async def fill():
        async with open_store(homes.settings()) as store:
            objective, _ = await store.create_objective(samples.spec("Know the prices"), uid="u")
            run = Run(store, objective.id)
            await join(store, worker("w1"), objective.id, lease_s=3600)
            await read_documents(run)
            await check_and_order(run)
            await ask_person(run, "Which currency?", "Use euros")
            await finish_asking(run)
            await ask_person(run, "May I ask for a discount?")
            await store.fail_task(await run.claim(), error="no such file", max_failures=1)
            await join(store, worker("w2"), objective.id)
            lost = await run.claim("w2")
            intention = Intention(
                key="1/execute/1/model", kind="model", request_hash="h", reservation=CALL
            )
            await store.intend_step(lost.fence, intention=intention)
            tax = await run.claim()
            await lack_tax(run, tax)
            await store.remove_worker("w2")
            silent = await run.claim()
            key = "1/execute/9/model"
            intention = Intention(
                key=key, kind="model", request_hash="h", reservation=CALL, model=MODEL
            )
            await store.intend_step(silent.fence, intention=intention)
            await store.record_step(silent.fence, Outcome(key=key, output=None, usage=Usage()))
            return objective.id

    return asyncio.run(fill())


def fill_ended_home():
    """An objective that ended at its limit of tasks, with its report."""

    async def fill():
        async with open_store(homes.settings()) as store:
            objective, _ = await store.create_objective(samples.spec("Know the prices"), uid="u")
            run = Run(store, objective.id)
            await join(store, worker("w1"), objective.id)
            await read_documents(run)
            await store.end_objective(objective.id, reason=StopReason.LIMIT_TASKS)
            asked = user("Write the report.")
            duty = await run.do_duty(Duty.REPORT, "report", asked, text="Fifty tasks.")
            await store.record_report(duty, markdown=homes.REPORT)
            await store.append_event(objective.id, kind=events.MODEL_AVAILABLE, data={})
            return objective.id

    return asyncio.run(fill())
