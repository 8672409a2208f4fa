"""Tasks that wait for a person: questions, approvals, and calls that nobody knows the outcome
of."""

import asyncio
import json
import re
import signal
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from babyagi.errors import RequestRefusedError, SettingsError
from babyagi.inbox import (
    APPROVAL,
    Decision,
    decide,
    decisions,
    describe,
    take_words,
    write_request,
)
from babyagi.llm.prompt import Speaker, ToolCall
from babyagi.runtime.offload import run_inline
from babyagi.tasks import (
    Approval,
    Effect,
    Passage,
    Proposal,
    Role,
    Step,
    StepState,
    StopReason,
    TaskStatus,
)
from babyagi.taskstore.sqlite import open_sqlite
from babyagi.tools.base import Sink, Tool, takes_text
from babyagi.tools.catalog import build_ask_user
from support.forked import FORKS
from support.scripted import ScriptedModel
from support.world import START, Clock, World
from tests import once_child
from tests.once_child import POINTS


def calling(name, arguments="{}"):
    """A model that calls the tool once in each task named Begin, and answers with what it gave."""

    def answer(prompt, role):
        if role is Role.CREATION:
            return '{"tasks": []}'
        is_asked = any(message.speaker is Speaker.TOOL for message in prompt.messages)
        if role is Role.EXECUTION and not is_asked and ": Begin" in prompt.messages[-1].text:
            return (ToolCall(id="c1", name=name, arguments=arguments),)
        return tell(prompt)

    return ScriptedModel(answer)


def tell(prompt):
    told = re.sub(r"<<[\w ]+ \w{4} (?=from)|\w{4}>>", "", prompt.messages[-1].text)
    return f"the limit is 40 euros a day; so it was about limits:\n{told}"


def make_tool(run, **more):
    return Tool(
        name="pay",
        description="",
        parameters={"type": "object", "properties": {}},
        effect=Effect.ONCE,
        run=run,
        **more,
    )


class Till:
    """A tool that counts its calls."""

    def __init__(self):
        self.n_calls = 0

    async def __call__(self, arguments):
        self.n_calls += 1
        return Passage(text="paid", origin="tool:pay")


async def say(world, decision, text=""):
    (step,) = await world.store.inbox()
    await world.store.answer_step(step.id, output=decide(step, decision, text).to_json())


async def text_of_result(world, objective):
    return (await world.store.results(objective.id, task_ids=[1]))[0].text


async def test_a_question_parks_its_task_while_the_others_go_on_and_the_answer_is_what_the_call_gave():
    world = World(
        model=calling("ask_user", '{"question": "Which day?\\u001b[2J"}'), tools=(build_ask_user(),)
    )
    objective = await world.start()
    await world.store.add_tasks(objective.id, [Proposal(name="Another")])

    ended = await world.run(objective)

    assert ended.stop_reason is StopReason.WAITING
    assert [task.status for task in await world.store.tasks(objective.id)] == [
        TaskStatus.WAITING,
        TaskStatus.DONE,
    ]
    report = await world.store.report(objective.id)
    assert "These questions wait for a person" in report
    assert "Which day?" in report
    assert "\x1b" not in report
    n_executions = len(world.model.asked(Role.EXECUTION))
    await say(world, Decision.ANSWER, "the second of May")
    ended = await world.run(await world.store.objective(objective.id))

    assert ended.stop_reason is StopReason.FINISHED
    # what was asked before is read from the journal
    assert len(world.model.asked(Role.EXECUTION)) == n_executions + 1
    assert "from person\nthe second of May" in await text_of_result(world, objective)
    assert "wait for a person" not in await world.store.report(objective.id)
    (result,) = await world.store.results(objective.id, task_ids=[1])
    assert "person" in result.origins


async def test_a_call_that_must_not_be_repeated_is_made_only_after_it_was_approved():
    till = Till()
    world = World(model=calling("pay"), tools=(make_tool(till),))
    objective = await world.run()

    assert (objective.stop_reason, till.n_calls) == (StopReason.WAITING, 0)
    (step,) = await world.store.inbox()
    assert (step.kind, describe(step)) == ("approval", "may this call be made? pay()")
    await say(world, Decision.APPROVE)
    objective = await world.run(await world.store.objective(objective.id))

    assert (objective.stop_reason, till.n_calls) == (StopReason.FINISHED, 1)
    assert "paid" in await text_of_result(world, objective)


async def test_a_rejected_call_is_not_made_and_the_model_reads_why():
    till = Till()
    world = World(model=calling("pay"), tools=(make_tool(till),))
    objective = await world.run()
    await say(world, Decision.REJECT, "too dear")
    objective = await world.run(await world.store.objective(objective.id))

    assert (objective.stop_reason, till.n_calls) == (StopReason.FINISHED, 0)
    assert "Not done: a person did not allow this call. too dear" in await text_of_result(
        world, objective
    )


async def test_without_approval_the_call_is_made_at_once():
    till = Till()
    world = World(model=calling("pay"), tools=(make_tool(till),))

    objective = await world.run(approval=Approval.NONE)

    assert (objective.stop_reason, till.n_calls) == (StopReason.FINISHED, 1)


@pytest.mark.parametrize("fault", [RuntimeError("half way"), TimeoutError()])
async def test_a_call_that_does_not_come_back_is_unknown_and_never_made_again_unasked(fault):
    till = Till()

    async def pay(arguments):
        await till(arguments)
        raise fault

    world = World(model=calling("pay"), tools=(make_tool(pay),))
    objective = await world.run(approval=Approval.NONE)

    assert objective.stop_reason is StopReason.WAITING
    (step,) = await world.store.inbox()
    assert (step.kind, step.state) == ("once", StepState.UNKNOWN)
    await say(world, Decision.ANSWER, "the bank says it went through")
    objective = await world.run(await world.store.objective(objective.id))

    assert (objective.stop_reason, till.n_calls) == (StopReason.FINISHED, 1)
    assert "the bank says it went through" in await text_of_result(world, objective)
    (result,) = await world.store.results(objective.id)
    assert "tool:pay" in result.origins  # the call was made, whoever told of it


async def test_a_new_try_reads_what_the_same_call_gave_before_instead_of_making_it_again():
    till, model = Till(), calling("pay")

    def refuse_after_the_call(prompt, role):
        is_asked = any(message.speaker is Speaker.TOOL for message in prompt.messages)
        return (
            RequestRefusedError("refused")
            if is_asked and role is Role.EXECUTION
            else model._answer(prompt, role)
        )

    refusing = ScriptedModel(refuse_after_the_call)
    world = World(model=refusing, tools=(make_tool(till),))
    objective = await world.run(approval=Approval.NONE)
    assert (await world.store.task(objective.id, 1)).status is TaskStatus.DEAD
    assert till.n_calls == 1

    world.model = model
    await world.store.retry_task(objective.id, 1)
    objective = await world.run(await world.store.objective(objective.id))

    assert (objective.stop_reason, till.n_calls) == (StopReason.FINISHED, 1)
    assert (await world.store.task(objective.id, 1)).status is TaskStatus.DONE


def lacking_after(name, arguments="{}"):
    """A model that calls the tool in every try of the first task, and then finds in its first try
    that something is missing."""

    def answer(prompt, role):
        if role is not Role.EXECUTION:
            return '{"tasks": []}' if role is Role.CREATION else "the report"
        if not any(message.speaker is Speaker.TOOL for message in prompt.messages):
            return (ToolCall(id="c1", name=name, arguments=arguments),)
        is_second = "<<last try" in prompt.messages[1].text
        return (
            "the limit is 40 euros a day:\n" + prompt.messages[-1].text
            if is_second
            else (ToolCall(id="c2", name="lacking", arguments='{"what": "the day of the week"}'),)
        )

    return ScriptedModel(answer)


async def test_a_question_that_was_answered_is_not_asked_again_after_a_lack():
    world = World(
        model=lacking_after("ask_user", '{"question": "Which day?"}'), tools=(build_ask_user(),)
    )
    objective = await world.run()
    assert objective.stop_reason is StopReason.WAITING
    await say(world, Decision.ANSWER, "the second of May")

    objective = await world.run(await world.store.objective(objective.id))

    task = await world.store.task(objective.id, 1)
    assert (objective.stop_reason, task.n_lacks, task.try_no) == (StopReason.FINISHED, 1, 2)
    assert "the second of May" in await text_of_result(world, objective)


async def test_a_call_that_must_not_be_repeated_is_not_made_again_after_a_lack():
    till = Till()
    world = World(model=lacking_after("pay"), tools=(make_tool(till),))

    objective = await world.run(approval=Approval.NONE)

    task = await world.store.task(objective.id, 1)
    assert (objective.stop_reason, task.n_lacks, task.try_no, till.n_calls) == (
        StopReason.FINISHED,
        1,
        2,
        1,
    )
    assert "paid" in await text_of_result(world, objective)


async def test_what_is_offered_in_place_of_approving_a_question_can_be_typed():
    world = World(
        model=calling("ask_user", '{"question": "Which day?"}'), tools=(build_ask_user(),)
    )
    await world.run()
    (step,) = await world.store.inbox()

    with pytest.raises(SettingsError) as caught:
        decide(step, Decision.APPROVE, "")
    assert caught.value.fix == 'babyagi inbox answer 4 "…", or babyagi inbox reject 4'


async def test_what_cannot_be_said_about_a_step_is_refused_with_what_can():
    world = World(model=calling("pay"), tools=(make_tool(Till()),))
    await world.run()
    (step,) = await world.store.inbox()

    with pytest.raises(SettingsError, match="something else than `babyagi inbox answer`") as caught:
        decide(step, Decision.ANSWER, "yes")
    assert "babyagi inbox approve 4" in caught.value.fix


# -- words that would leave this machine


def reading_then_sending(*queries):
    """A model that reads the file in the task Begin, and then sends each query."""

    def answer(prompt, role):
        if role is Role.CREATION:
            return '{"tasks": []}'
        n_asked = sum(message.speaker is Speaker.TOOL for message in prompt.messages)
        is_first = ": Begin" in prompt.messages[1].text
        if role is Role.EXECUTION and is_first and n_asked <= len(queries):
            read = ToolCall(id="c0", name="read_file", arguments="{}")
            sent = [
                ToolCall(id=f"c{n}", name="send", arguments=json.dumps({"query": one}))
                for n, one in enumerate(queries, start=1)
            ]
            return ([read, *sent][n_asked],)
        return tell(prompt)

    return ScriptedModel(answer)


class Wire:
    """A tool whose arguments leave this machine, and one that reads a file."""

    def __init__(self, host="far.example"):
        self.sent, self.host = [], host

    async def send(self, arguments):
        self.sent.append(arguments["query"])
        return Passage(text="heard", origin="tool:send")

    async def read(self, arguments):
        return Passage(text="Mia earns 7431", origin="file:pay.csv")

    @property
    def tools(self):
        said: dict[str, Any] = {"description": "", "effect": Effect.READ}
        return (
            Tool(name="read_file", parameters={"type": "object"}, run=self.read, **said),
            Tool(
                name="send",
                parameters=takes_text("query", "what"),
                run=self.send,
                sink=Sink(host=self.host),
                **said,
            ),
        )


async def test_words_of_a_file_leave_only_after_a_person_was_shown_them_and_said_yes():
    wire = Wire()
    world = World(model=reading_then_sending("Mia 7431"), tools=wire.tools)
    objective = await world.run()

    assert (objective.stop_reason, wire.sent) == (StopReason.WAITING, [])
    (step,) = await world.store.inbox()
    assert describe(step) == 'may these words be sent to far.example? send(query="Mia 7431")'
    assert set(decisions(step)) == {Decision.APPROVE, Decision.REJECT, Decision.ALWAYS}
    await say(world, Decision.APPROVE)
    objective = await world.run(await world.store.objective(objective.id))

    assert (objective.stop_reason, wire.sent) == (StopReason.FINISHED, ["Mia 7431"])


@pytest.mark.parametrize(
    ("decision", "sent"),
    [
        (Decision.ALWAYS, ["Mia 7431", "Olu 5200"]),
        (Decision.REJECT, []),
    ],
)
async def test_always_and_a_refusal_hold_for_the_host_in_the_rest_of_the_run(decision, sent):
    wire = Wire()
    world = World(model=reading_then_sending("Mia 7431", "Olu 5200"), tools=wire.tools)
    objective = await world.run()
    await say(world, decision)
    objective = await world.run(await world.store.objective(objective.id))

    assert (objective.stop_reason, wire.sent) == (StopReason.FINISHED, sent)


async def test_a_refusal_holds_for_its_call_alone_where_no_host_is_named():
    wire = Wire(host="")
    world = World(model=reading_then_sending("Mia 7431", "Olu 5200"), tools=wire.tools)
    objective = await world.run()
    await say(world, Decision.REJECT)
    objective = await world.run(await world.store.objective(objective.id))
    await say(world, Decision.APPROVE)
    objective = await world.run(await world.store.objective(objective.id))

    assert (objective.stop_reason, wire.sent) == (StopReason.FINISHED, ["Olu 5200"])


async def test_a_yes_holds_for_its_call_alone():
    wire = Wire()
    world = World(model=reading_then_sending("Mia 7431", "Olu 5200"), tools=wire.tools)
    objective = await world.run()
    await say(world, Decision.APPROVE)
    objective = await world.run(await world.store.objective(objective.id))

    assert (objective.stop_reason, wire.sent) == (StopReason.WAITING, ["Mia 7431"])


async def test_where_nobody_may_be_asked_nothing_leaves_and_the_work_goes_on():
    wire = Wire()
    world = World(model=reading_then_sending("Mia 7431"), tools=wire.tools)
    objective = await world.run(approval=Approval.NONE)

    assert (objective.stop_reason, wire.sent) == (StopReason.FINISHED, [])
    assert "nobody can be asked" in await text_of_result(world, objective)


async def work(home, point, approval):
    here, there = FORKS.Pipe()
    process = FORKS.Process(target=once_child.live, args=(home, point, approval, there))
    process.start()
    there.close()
    await asyncio.to_thread(process.join, 300)
    said = ""
    with here, suppress(EOFError):
        said = here.recv() if here.poll() else ""
    return process.exitcode, said


async def answer_in(home, decision, text=""):
    store = await open_sqlite(home / "tasks.db", clock=Clock(), offload=run_inline)
    (step,) = await store.inbox()
    await store.answer_step(step.id, output=decide(step, decision, text).to_json())
    await store.close()
    return step


def n_calls(home):
    path = home / "calls"
    return path.read_text().count("paid") if path.exists() else 0


@pytest.mark.system
@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_any_point_round_a_call_it_is_never_silently_made_twice(point, tmp_path):
    code, said = await work(tmp_path, point, "none")
    assert code == -signal.SIGKILL, said

    n_before = n_calls(tmp_path)
    code, said = await work(tmp_path, "never", "none")

    assert code == 0, said
    if point in ("before it is intended", "after it is recorded"):
        assert (said, n_calls(tmp_path)) == ("finished", 1)
        return
    assert (said, n_calls(tmp_path)) == ("waiting", n_before)
    step = await answer_in(
        tmp_path, Decision.ANSWER if n_before else Decision.REJECT, "I looked" if n_before else ""
    )
    assert (step.kind, step.state) == ("once", StepState.UNKNOWN)
    assert await work(tmp_path, "never", "none") == (0, "finished")
    assert n_calls(tmp_path) == n_before <= 1


@pytest.mark.system
async def test_an_approval_survives_a_kill_and_is_given_once(tmp_path):
    assert await work(tmp_path, "never", "once") == (0, "waiting")
    assert (await answer_in(tmp_path, Decision.APPROVE)).kind == "approval"
    code, said = await work(tmp_path, "before it is intended", "once")
    assert code == -signal.SIGKILL, said

    assert await work(tmp_path, "never", "once") == (0, "finished")
    assert n_calls(tmp_path) == 1


def asked(step_id, *, task, objective=1):
    return Step(
        objective_id=objective,
        owner=f"task:{task}",
        key="1/q",
        kind="question",
        request_hash="",
        state=StepState.ASKED,
        created_at=START,
        request=write_request("ask_user", {"question": "Which?"}),
        id=step_id,
    )


@pytest.mark.parametrize("said", ["no", "No!", "nope", "never", "not now", "", None, "yesterday"])
def test_only_a_yes_allows_a_call(said):
    assert take_words(replace(asked(1, task=1), kind=APPROVAL), said).is_error


@pytest.mark.parametrize("said", ["y", "Yes", " yes, do it", "approve", True])
def test_a_yes_allows_a_call(said):
    assert not take_words(replace(asked(1, task=1), kind=APPROVAL), said).is_error
