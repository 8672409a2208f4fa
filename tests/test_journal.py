import asyncio
import json
import math
from dataclasses import replace

import pytest

from babyagi import events
from babyagi.errors import (
    LeaseLostError,
    LimitReachedError,
    ModelUnavailableError,
    ObjectiveStoppedError,
    OverdueError,
    ParkedError,
    SettingsError,
    StoreUnavailableError,
    ToolError,
)
from babyagi.inbox import ONCE, Decision, decide, write_request
from babyagi.index.hashing import HashEmbedder
from babyagi.journal import Backends, Gate, Journal, TextPiece
from babyagi.llm.kept import read_prompt
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolCall
from babyagi.llm.retry import Deadline
from babyagi.tasks import Effect, Limits, ObjectiveStatus, Passage, Role, StepState, Usage
from babyagi.taskstore.nouns import Intention
from babyagi.taskstore.sqlite import MemoryTaskStore
from babyagi.tools.base import Preview, Tool
from support.scripted import ScriptedModel
from support.virtual import VirtualWorld, virtually
from support.workers import join
from support.world import World


def ask(text):
    return Prompt(
        messages=(Message(speaker=Speaker.USER, text=text, origins=("person",)),),
        max_output_tokens=10,
    )


class Desk:
    """A claimed task with a journal to write in."""

    def __init__(self, world, model, claim):
        self.world, self.model, self.claim, self.gate = world, model, claim, Gate()

    def open_journal(self, prefix="1/", claim=None, **fields):
        backends = Backends(
            store=self.world.store,
            models={Role.EXECUTION: self.model},
            embedder=HashEmbedder(),
            gate=self.gate,
            sleep=self.world.sleep,
            **fields,
        )
        return Journal(backends, fence=(claim or self.claim).fence, prefix=prefix)

    async def usage(self):
        return (await self.world.store.objective(self.claim.task.objective_id)).usage

    async def outputs(self):
        """What is recorded for the claim, by key."""
        steps = await self.world.store.steps(
            self.claim.task.objective_id, owner=self.claim.fence.owner
        )
        return {step.key: step.output for step in steps if step.output is not None}

    async def kinds(self):
        return [event.kind for event in await self.world.store.events(self.claim.task.objective_id)]


async def open_desk(answer=lambda prompt, role: "an answer", *, limits=None, world=None):
    world = world or World()
    objective = await world.start(limits=limits)
    worker = world.open_worker(objective)
    await join(world.store, worker.worker_lease.identity, objective.id)
    claim = await world.store.claim_task(objective.id, worker.worker_lease.identity.id)
    return Desk(world, ScriptedModel(answer), claim)


async def test_a_finished_call_is_never_made_again():
    desk = await open_desk()

    first = await desk.open_journal().complete("execute/1/model", ask("what?"), role=Role.EXECUTION)
    second = await desk.open_journal().complete(
        "execute/1/model", ask("what?"), role=Role.EXECUTION
    )

    assert first == second
    assert len(desk.model.calls) == 1
    assert (await desk.usage()).calls == 1


async def test_what_is_handed_on_before_it_is_recorded_is_what_is_read_afterwards():
    calls = (ToolCall(id="c1", name="calculator", arguments='{"expression": "1 \\u00e9"}'),)
    desk = await open_desk(lambda prompt, role: calls)
    async with desk.open_journal() as journal:
        first = await journal.complete("model", ask("Count."), role=Role.EXECUTION)
    again = await desk.open_journal().complete("model", ask("Count."), role=Role.EXECUTION)
    assert again == first and again.tool_calls == calls
    assert len(desk.model.calls) == 1


async def test_a_step_whose_request_has_changed_still_holds_and_an_event_says_so():
    desk = await open_desk()
    await desk.open_journal().complete("execute/1/model", ask("what?"), role=Role.EXECUTION)

    again = await desk.open_journal().complete(
        "execute/1/model", ask("something else"), role=Role.EXECUTION
    )

    assert again.text == "an answer"
    assert len(desk.model.calls) == 1
    assert events.STEP_REQUEST_CHANGED in await desk.kinds()


async def test_the_request_to_a_model_or_a_tool_is_stored_with_the_step():
    desk = await open_desk()
    journal, more = desk.open_journal(), Message(speaker=Speaker.USER, text="and why?")
    first = ask("what?")

    async def give(_):
        return Passage(text="seven", origin="tool:look")

    async with journal:
        await journal.complete("execute/1/model", first, role=Role.EXECUTION)
        await journal.call_tool("execute/1/tool/1", make_tool(give), {"path": "a.md"})
        second = Prompt(messages=(*first.messages, more), max_output_tokens=10)
        await journal.complete("execute/2/model", second, role=Role.EXECUTION)

    steps = await desk.world.store.steps(desk.claim.task.objective_id, owner="task:1")
    kept = {step.key: step.request for step in steps}
    assert json.loads(kept["1/execute/1/tool/1"]) == {
        "tool": "look",
        "arguments": {"path": "a.md"},
    }
    found = read_prompt(kept["1/execute/2/model"], kept.get)
    assert found is not None
    assert [message.text for message in found.messages] == ["what?", "and why?"]
    assert "what?" not in kept["1/execute/2/model"]


async def test_another_try_is_really_made_anew():
    desk = await open_desk()
    await desk.open_journal("1/").complete("execute/1/model", ask("what?"), role=Role.EXECUTION)

    await desk.open_journal("2/").complete("execute/1/model", ask("what?"), role=Role.EXECUTION)

    assert len(desk.model.calls) == 2


async def test_a_call_is_intended_before_it_is_made():
    states: list[tuple[StepState, int]] = []
    desk = await open_desk()

    async def look():
        steps = await desk.world.store.steps(
            desk.claim.task.objective_id, owner=desk.claim.fence.owner
        )
        states.extend((step.state, step.reservation.calls) for step in steps)

    class Looking(ScriptedModel):
        async def complete(self, prompt, *, role, on_text=None):
            await look()
            return await super().complete(prompt, role=role, on_text=on_text)

    desk.model = Looking(lambda prompt, role: "x")
    await desk.open_journal().complete("execute/1/model", ask("what?"), role=Role.EXECUTION)

    assert states == [(StepState.INTENDED, 1)]


async def test_a_call_that_does_not_fit_under_a_limit_is_not_made():
    desk = await open_desk(limits=Limits(max_tokens=5))

    with pytest.raises(LimitReachedError) as caught:
        await desk.open_journal().complete("execute/1/model", ask("what?"), role=Role.EXECUTION)

    assert caught.value.limit == "tokens"
    assert desk.model.calls == []
    assert (await desk.usage()).calls == 0


async def test_a_call_that_cost_more_than_it_reserved_is_counted_in_full_said_and_stops_the_next_one():
    usage = Usage(calls=1, prompt_tokens=600, completion_tokens=600)
    greedy = Completion(text="much", model="scripted", usage=usage)
    desk = await open_desk(lambda prompt, role: greedy, limits=Limits(max_tokens=100_000))
    journal = desk.open_journal()

    await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)
    assert (await desk.usage()).tokens == 1200
    assert (await desk.kinds()).count(events.STEP_OVERSPENT) == 1
    with pytest.raises(LimitReachedError) as caught:
        await journal.complete("execute/2/model", ask("what?"), role=Role.EXECUTION)
    assert caught.value.limit == "tokens" and caught.value.is_final and len(desk.model.calls) == 1


@pytest.mark.parametrize(("may_be_billed", "calls"), [(True, 1), (False, 0)])
async def test_a_call_without_an_outcome_is_charged_only_when_it_may_be_billed(
    may_be_billed, calls
):
    desk = await open_desk(
        lambda prompt, role: ModelUnavailableError("cut off", may_be_billed=may_be_billed)
    )

    with pytest.raises(ModelUnavailableError):
        await desk.open_journal().complete("execute/1/model", ask("what?"), role=Role.EXECUTION)

    assert (await desk.usage()).calls == calls
    assert (await desk.world.store.objective(desk.claim.task.objective_id)).held.calls == 0


async def test_a_closed_gate_lets_no_call_through():
    desk = await open_desk()
    desk.gate.close("stopping")

    with pytest.raises(ObjectiveStoppedError, match="stopping"):
        await desk.open_journal().complete("execute/1/model", ask("what?"), role=Role.EXECUTION)

    assert desk.model.calls == []


async def test_a_lost_claim_makes_no_call():
    desk = await open_desk()
    await desk.world.store.remove_worker(desk.claim.fence.worker_id)

    with pytest.raises(LeaseLostError):
        await desk.open_journal().complete("execute/1/model", ask("what?"), role=Role.EXECUTION)

    assert desk.model.calls == []


async def test_the_origins_of_a_step_are_those_of_its_prompt_and_its_model():
    desk = await open_desk()
    await desk.open_journal().complete("execute/1/model", ask("what?"), role=Role.EXECUTION)

    (step,) = await desk.world.store.steps(
        desk.claim.task.objective_id, owner=desk.claim.fence.owner
    )

    assert step.origins == ("person", "model:scripted")


async def test_each_piece_of_an_answer_is_passed_on_with_its_call_and_stored_nowhere():
    class Streaming(ScriptedModel):
        async def complete(self, prompt, *, role, on_text=None):
            for piece in ("an ", "answer"):
                on_text(piece)
            return await super().complete(prompt, role=role)

    desk = await open_desk()
    desk.model = Streaming(lambda prompt, role: "an answer")
    heard: list[TextPiece] = []
    journal = desk.open_journal()
    journal._backends = replace(
        journal._backends, models={Role.EXECUTION: desk.model}, on_piece=heard.append
    )
    n_events = await desk.world.store.last_event_id(desk.claim.task.objective_id)

    await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)

    assert [piece.text for piece in heard] == ["an ", "answer"]
    assert {(piece.owner, piece.key) for piece in heard} == {
        (desk.claim.fence.owner, "1/execute/1/model")
    }
    objective_id = desk.claim.task.objective_id
    added = await desk.world.store.events(objective_id, after_id=n_events)
    assert {event.kind for event in added} <= {"step.intended", "step.recorded"}


class Watched(ScriptedModel):
    """A model that looks, before it answers, at what of the claim is in the store."""

    def __init__(self, desk, answers):
        super().__init__(lambda prompt, role: next(answers))
        self._desk, self.seen = desk, []

    async def complete(self, prompt, *, role, on_text=None):
        self.seen.append(await self._desk.outputs())
        return await super().complete(prompt, role=role, on_text=on_text)


async def ask_twice(journal, desk):
    await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)
    await journal.complete("execute/1/model/again/1", ask("what?"), role=Role.EXECUTION)
    return desk.model.seen[-1]


async def ask_and_look(journal, desk):
    seen = []

    async def run(arguments):
        seen.append(await desk.outputs())
        return Passage(text="", origin="tool:look")

    await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)
    await journal.call_tool("execute/1/tool/1", make_tool(run), {})
    return seen[-1]


async def ask_and_keep(journal, desk):
    await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)
    await journal.keep("execute/text", "text")
    return await desk.outputs()


async def ask_and_commit(journal, desk):
    async def record(first):
        return await desk.world.store.record_result(
            desk.claim, text="found", origins=[], first=first
        )

    await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)
    await journal.commit(record)
    assert (await desk.world.store.results(desk.claim.task.objective_id))[0].text == "found"
    return await desk.outputs()


async def ask_side_by_side(journal, desk):
    """The second answer comes while the first call is still waited for."""
    release = asyncio.Event()

    class Late(ScriptedModel):
        async def complete(self, prompt, *, role, on_text=None):
            if len(self.calls) == 0:
                self.calls.append((role, prompt))
                await release.wait()
            return await super().complete(prompt, role=role, on_text=on_text)

    desk.model = Late(lambda prompt, role: "an answer")
    journal._backends.models[Role.EXECUTION] = desk.model
    async with asyncio.TaskGroup() as group:
        late = group.create_task(
            journal.complete("execute/2/model", ask("late?"), role=Role.EXECUTION)
        )
        await asyncio.sleep(0)
        await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)
        seen = await desk.outputs()
        assert not late.done()
        release.set()
    return seen


@pytest.mark.parametrize(
    "goes_on", [ask_twice, ask_and_look, ask_and_keep, ask_and_commit, ask_side_by_side]
)
async def test_nothing_made_from_an_outcome_leaves_before_the_outcome_is_recorded(goes_on):
    desk = await open_desk()
    desk.model = Watched(desk, iter(["an answer"] * 2))

    async with desk.open_journal() as journal:
        seen = await goes_on(journal, desk)

    assert "an answer" in seen.get("1/execute/1/model", "")


@pytest.mark.parametrize("error", [ModelUnavailableError("down"), asyncio.CancelledError()])
async def test_the_last_outcome_of_a_turn_is_recorded_however_the_turn_ends(error):
    desk = await open_desk()

    with pytest.raises(type(error)):
        async with desk.open_journal() as journal:
            await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)
            raise error

    assert list(await desk.outputs()) == ["1/execute/1/model"]
    assert (await desk.usage()).calls == 1


async def test_a_cancelled_turn_waits_for_no_store_that_cannot_record_its_outcome():
    world = World()
    world.store = FullStore(world.clock)
    desk = await open_desk(world=world)
    world.store.n_refusals = 10**9

    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(120), desk.open_journal() as journal:
            await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)
            raise asyncio.CancelledError

    assert world.store.n_refusals == 10**9 - 1


async def test_an_outcome_that_a_store_cannot_record_with_a_result_is_kept_until_it_can():
    world = World()
    world.store = FullStore(world.clock)
    desk = await open_desk(world=world)
    world.store.n_refusals = 3

    async def refuse(first):
        raise StoreUnavailableError("the disk is full")

    with pytest.raises(StoreUnavailableError, match="the disk is full"):
        async with desk.open_journal() as journal:
            await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)
            await journal.commit(refuse)

    assert list(await desk.outputs()) == ["1/execute/1/model"]


async def test_an_outcome_whose_next_call_must_not_be_made_is_recorded_all_the_same():
    desk = await open_desk()
    store, objective_id = desk.world.store, desk.claim.task.objective_id

    with pytest.raises(ObjectiveStoppedError):
        async with desk.open_journal() as journal:
            await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)
            await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
            await journal.complete("execute/2/model", ask("more?"), role=Role.EXECUTION)

    assert list(await desk.outputs()) == ["1/execute/1/model"]
    assert (await store.objective(objective_id)).held.calls == 0


async def test_inputs_the_first_call_an_answer_and_the_result_are_two_transactions():
    desk = await open_desk()
    world, n_writes = desk.world, 0
    write = world.store._write

    async def count(*args, **more):
        nonlocal n_writes
        n_writes += 1
        return await write(*args, **more)

    async def build():
        return {"n": 1}

    await world.store.secret("s")
    world.store._write = count
    async with desk.open_journal() as journal:
        await journal.inputs(build)
        await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)
        await journal.commit(
            lambda first: world.store.record_result(
                desk.claim, text="found", origins=[], first=first
            )
        )

    assert n_writes == 2
    assert list(await desk.outputs()) == ["1/inputs", "1/execute/1/model"]


async def test_inputs_are_chosen_once_and_read_ever_after():
    desk = await open_desk()
    built = []

    async def build():
        built.append(1)
        return {"n": len(built)}

    assert await desk.open_journal().inputs(build) == {"n": 1}
    assert await desk.open_journal().inputs(build) == {"n": 1}
    assert built == [1]


def make_tool(run, **more):
    return Tool(
        name="look",
        description="",
        parameters={"type": "object"},
        effect=Effect.READ,
        run=run,
        **more,
    )


async def test_a_tool_call_is_made_once_and_read_ever_after():
    desk, runs = await open_desk(), []

    async def run(arguments):
        runs.append(arguments)
        return Passage(text="seen", origin="file:a.md")

    first = await desk.open_journal().call_tool("execute/1/tool/1", make_tool(run), {"a": 1})
    second = await desk.open_journal().call_tool("execute/1/tool/1", make_tool(run), {"a": 1})

    assert first == second
    assert first.passage == Passage(text="seen", origin="file:a.md")
    assert runs == [{"a": 1}]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (ToolError("no such file"), "no such file"),
        (RuntimeError("/secret/path"), "look failed: RuntimeError: …/path"),
        (KeyError("tea\nand more"), "look failed: KeyError: 'tea\\nand more'"),
        (ValueError("one\ntwo sk-abcdefghijklmnop12345"), "look failed: ValueError: one two ***"),
        (ValueError("x" * 900), f"look failed: ValueError: {'x' * 299}…"),
    ],
)
async def test_nothing_that_a_tool_raises_ends_a_run(fault, said):
    desk = await open_desk()

    async def run(arguments):
        raise fault

    observation = await desk.open_journal().call_tool("execute/1/tool/1", make_tool(run), {})

    assert observation.is_error
    assert observation.passage.text == said


async def test_a_tool_that_hangs_is_stopped_and_its_flood_is_cut():
    desk = await open_desk()

    async def hang(arguments):
        await asyncio.sleep(60)
        return Passage(text="", origin="tool:look")

    async def flood(arguments):
        return Passage(text="x" * 1000, origin="tool:look")

    hung = await desk.open_journal().call_tool(
        "execute/1/tool/1", make_tool(hang, timeout_s=0.01), {}
    )
    flooded = await desk.open_journal().call_tool(
        "execute/1/tool/2", make_tool(flood, max_output_chars=10), {}
    )

    assert hung.is_error
    assert "longer than 0.01 s" in hung.passage.text
    assert flooded.passage.text == "x" * 10 + "\n… cut: 990 more characters"


class FullStore(MemoryTaskStore):
    """A store that cannot record an outcome `n_refusals` times, as one whose disk is full."""

    n_refusals = 0

    async def record_step(self, *args, **kwargs):
        if self.n_refusals:
            self.n_refusals -= 1
            raise StoreUnavailableError("the disk is full")
        return await super().record_step(*args, **kwargs)


async def test_an_answer_that_is_paid_for_is_kept_until_the_store_can_record_it():
    world = World()
    world.store = FullStore(world.clock)
    desk = await open_desk(world=world)
    world.store.n_refusals = 3

    completion = await desk.open_journal().complete(
        "execute/1/model", ask("what?"), role=Role.EXECUTION
    )

    assert completion.text == "an answer"
    assert len(desk.model.calls) == 1
    assert (await desk.usage()).calls == 1


async def test_a_worker_that_stops_gives_up_what_the_store_cannot_record():
    world = World()
    world.store = FullStore(world.clock)
    desk = await open_desk(world=world)
    world.store.n_refusals = 10**9
    asyncio.get_running_loop().call_later(0.05, desk.gate.close, "asked to stop")

    with pytest.raises(StoreUnavailableError):
        await desk.open_journal().complete("execute/1/model", ask("what?"), role=Role.EXECUTION)


async def test_an_error_that_a_person_must_mend_before_a_tool_can_work_reaches_the_person():
    async def run(arguments):
        raise SettingsError("this machine cannot do that")

    desk = await open_desk()
    tool = Tool(
        name="t", description="d", parameters={"type": "object"}, effect=Effect.READ, run=run
    )

    with pytest.raises(SettingsError, match="this machine cannot"):
        await desk.open_journal().call_tool("execute/1/tool/1", tool, {})


async def park_and_approve(desk, arguments, tool, *, seen=""):
    """Let the call wait, approve it, and claim the task again; return the new claim."""
    store, objective_id = desk.world.store, desk.claim.task.objective_id
    with pytest.raises(ParkedError):
        await desk.open_journal().call_tool("execute/1/tool/1", tool, arguments)
    (step,) = await store.inbox()
    said = json.loads(decide(step, Decision.APPROVE, "").to_json()) | {"seen": seen}
    await store.answer_step(step.id, output=json.dumps(said))
    return await store.claim_task(objective_id, desk.claim.fence.worker_id)


def paying(given, **more):
    async def pay(arguments):
        given.append(arguments)
        return Passage(text="paid", origin="tool:pay")

    return Tool(
        name="pay",
        description="",
        parameters={"type": "object"},
        effect=Effect.ONCE,
        run=pay,
        **more,
    )


async def test_a_call_that_is_not_the_one_that_was_approved_is_not_made():
    given: list[object] = []
    tool, desk = paying(given), await open_desk()
    claim = await park_and_approve(desk, {"amount": 1}, tool)

    other = await desk.open_journal(claim=claim).call_tool(
        "execute/1/tool/1", tool, {"amount": 1000}
    )
    again = await desk.open_journal(claim=claim).call_tool("execute/1/tool/1", tool, {"amount": 1})

    assert (other.is_error, given) == (True, [])
    assert "a person approved another call" in other.passage.text
    assert again == other  # what the model was told once, it is told again


async def test_a_call_that_may_have_been_made_is_asked_about_whatever_its_server_says_now():
    async def offered():
        raise ToolError("the server is gone")

    given: list[object] = []
    desk = await open_desk()
    tool = paying(given, offered=offered, asks_approval=False)
    store, fence = desk.world.store, desk.claim.fence
    request = write_request("pay", {"amount": 1})
    await store.intend_step(
        fence, intention=Intention(key="1/execute/1/tool/1", kind="once", request=request)
    )

    with pytest.raises(ParkedError):
        await desk.open_journal().call_tool("execute/1/tool/1", tool, {"amount": 1})

    (step,) = await store.inbox()
    assert (step.kind, step.key, given) == (ONCE, "1/execute/1/tool/1", [])


async def test_a_call_whose_server_is_gone_is_an_error_that_is_told_again():
    async def offered():
        raise ToolError("the server is gone")

    given: list[object] = []
    tool, desk = paying(given, offered=offered), await open_desk()

    said = await desk.open_journal().call_tool("execute/1/tool/1", tool, {"amount": 1})
    again = await desk.open_journal().call_tool("execute/1/tool/1", paying(given), {"amount": 1})

    assert (said.is_error, said.passage.text, given) == (True, "the server is gone", [])
    assert again == said


@pytest.mark.parametrize(("seen", "n_made"), [("as it was", 1), ("", 1), ("as it once was", 0)])
async def test_a_call_that_would_change_something_else_than_the_person_saw_is_not_made(
    seen, n_made
):
    given: list[object] = []

    async def preview(arguments):
        return Preview(state="as it was", note="")

    tool, desk = paying(given, preview=preview), await open_desk()
    claim = await park_and_approve(desk, {"amount": 1}, tool, seen=seen)

    observation = await desk.open_journal(claim=claim).call_tool(
        "execute/1/tool/1", tool, {"amount": 1}
    )

    assert len(given) == n_made
    assert observation.is_error is (n_made == 0)


async def test_a_call_whose_effect_cannot_be_seen_any_more_is_not_made():
    async def preview(arguments):
        raise ToolError("gone")

    given: list[object] = []
    tool, desk = paying(given, preview=preview), await open_desk()
    claim = await park_and_approve(desk, {}, tool, seen="as it was")

    assert (await desk.open_journal(claim=claim).call_tool("execute/1/tool/1", tool, {})).is_error
    assert given == []


# How long an answer may be


async def test_no_answer_is_longer_than_what_is_allowed_whatever_the_call_asks_for():
    desk = await open_desk()
    journal = desk.open_journal(max_output_tokens=160)

    assert await journal.bound_output("create", 2000) == 160
    assert await journal.bound_output("create", 100) == 100
    assert await desk.open_journal().bound_output("create", 2000) == 2000


class LateModel(ScriptedModel):
    """Is late with every answer, and has a deadline of 480 s from now on."""

    deadline = Deadline(120.0)
    deadline.now_s = 480.0


@pytest.mark.parametrize(
    ("left_s", "bound"), [(math.inf, 2000), (480.0, 2000), (479.0, 1000), (-1.0, 2000)]
)
async def test_a_late_call_is_asked_for_a_shorter_answer_only_if_no_longer_deadline_is_left(
    left_s, bound
):
    desk = await open_desk()
    desk.model = LateModel(lambda prompt, role: OverdueError("no answer in 480 s"))
    desk.gate.left_s = left_s
    journal = desk.open_journal()

    with pytest.raises(OverdueError):
        await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)

    assert await journal.bound_output("execute/1/model", 2000) == bound


@pytest.mark.parametrize(
    ("left_s", "takes_s", "waited_s"),
    [
        (math.inf, 900.0, None),
        (500.0, 400.0, None),
        (500.0, 900.0, 500),
        (-1.0, 119.0, None),
        (-1.0, 900.0, 120),
    ],
)
@virtually
async def test_no_call_is_waited_for_beyond_its_first_deadline_and_the_time_of_the_objective(
    left_s, takes_s, waited_s
):
    desk = await open_desk(world=VirtualWorld())
    desk.model = LateModel(lambda prompt, role: "an answer", latency_s=takes_s)
    desk.gate.left_s = left_s
    call = desk.open_journal().complete("execute/1/model", ask("what?"), role=Role.EXECUTION)

    if waited_s is None:
        assert (await call).text == "an answer"
        return
    with pytest.raises(OverdueError, match=f"gave no answer within {waited_s} s"):
        await call
    usage = await desk.usage()
    assert usage.calls == 1 and usage.unconfirmed_tokens == usage.tokens


async def test_a_late_call_is_asked_for_half_the_answer_and_others_of_the_try_are_not():
    def late(prompt, role):
        raise OverdueError("no answer in 120 s")

    desk = await open_desk(late)
    for n_late, bound in [(0, 2000), (1, 1000), (2, 500), (3, 250)]:
        journal = desk.open_journal()
        assert await journal.bound_output("execute/1/model", 2000) == bound, n_late
        assert await journal.bound_output("execute/2/model", 2000) == 2000
        with pytest.raises(OverdueError):
            await journal.complete("execute/1/model", ask("what?"), role=Role.EXECUTION)

    # what an earlier try was late with, the next one does not ask for
    assert await desk.open_journal("2/").bound_output("execute/1/model", 8000) == 8000 >> 4
    assert await desk.open_journal("2/").bound_output("execute/1/model", 100) == 64
