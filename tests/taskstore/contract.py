"""The promises of `TaskStore`, one test each. Every database runs them: subclass and override
`open_store`."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from babyagi import events
from babyagi.errors import (
    LeaseLostError,
    LimitReachedError,
    NotFoundError,
    ObjectiveStoppedError,
    SettingsError,
)
from babyagi.index.trigrams import searchable
from babyagi.tasks import (
    CheckedPart,
    Checks,
    Claim,
    Duty,
    Effect,
    Lack,
    Limits,
    Memory,
    ObjectiveSpec,
    ObjectiveStatus,
    Place,
    Proposal,
    Reservation,
    Role,
    StepState,
    StopReason,
    TaskName,
    TaskStatus,
    ToolGrant,
    Unanswered,
    Usage,
    Worker,
    digest,
    write_form,
)
from babyagi.taskstore import lifecycle
from babyagi.taskstore.nouns import (
    Checked,
    Deferral,
    Intention,
    Kept,
    Outcome,
    Planned,
)
from babyagi.taskstore.sql.store import COMMON_WORD
from support.workers import join
from tests.taskstore.keyed import KeyContract
from tests.taskstore.schedules import ScheduleContract

NO_LIMITS = Limits(max_tasks=0, max_calls=0, max_tokens=0, max_cost_usd=0, max_time_s=0)
CALL = Reservation(calls=1, tokens=1000, cost_usd=0.01)
SPENT = Usage(calls=1, prompt_tokens=300, completion_tokens=100, cost_usd=0.004)
# all of CALL
UNCONFIRMED = Usage(
    calls=1, prompt_tokens=1000, cost_usd=0.01, unconfirmed_tokens=1000, unconfirmed_cost_usd=0.01
)

NEXT_CALL = Intention(key="k", kind="model", request_hash="h", reservation=CALL)
NOTHING_WAITS = Deferral(min_startable=0, min_unordered=0, min_recorded=0)
KEPT = Kept(key="inputs", kind="inputs", request_hash="h", output='"kept"')


class Clock:
    """The time, moved by hand."""

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def tick(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def make_spec(
    *,
    limits: Limits = NO_LIMITS,
    text: str = "Know all about tea",
    memory: Memory = Memory.OBJECTIVE,
    tools: Sequence[ToolGrant] = (),
) -> ObjectiveSpec:
    return ObjectiveSpec(
        tools=tuple(tools),
        text=text,
        initial_task="Make a list",
        limits=limits,
        model_by_role={Role.EXECUTION: "rehearsal"},
        embedding_space="hashing",
        memory=memory,
        prompt_version="1",
    )


def make_worker(worker_id: str, *, name: str = "", home: str = "") -> Worker:
    return Worker(
        id=worker_id,
        name=name or worker_id,
        host="here",
        pid=1,
        lease_until=datetime(2030, 1, 1, tzinfo=UTC),
        home=home,
    )


async def begin(
    store,
    *names: str,
    limits: Limits = NO_LIMITS,
    worker_id: str = "w",
    tools: Sequence[ToolGrant] = (),
):
    """An objective with its first task and the named ones queued, and a worker with a lease of 30
    s."""
    objective, _ = await store.create_objective(
        make_spec(limits=limits, tools=tools), uid=secrets.token_hex(4), always_new=True
    )
    await store.add_tasks(objective.id, [Proposal(name=name) for name in names])
    await join(store, make_worker(worker_id), objective.id)
    return objective.id


async def plan_from(store, objective_id, *task_ids, worker_id="w", **planned):
    """Plan from these tasks, or from all that are recorded."""
    claim = await store.claim_duty(objective_id, worker_id, Duty.PLAN)
    named = task_ids or [
        task.id
        for task in await store.tasks(objective_id, statuses=[TaskStatus.RECORDED], limit=100)
    ]
    return await store.record_plan(claim, task_ids=named, plan=Planned(**planned))


async def find_words(store, objective_id, *, words, limit):
    """The tasks whose results contain one of the words, the best match first."""
    found = await store.pending_results(
        objective_id, space="s", limit=1, words=words, n_found=limit
    )
    return [*found.with_words]


async def finish_one(store, objective_id, *, text="", proposals=(), worker_id="w", **planned):
    """Carry out the next task, and plan from it; what is proposed comes from its result."""
    claim = await store.claim_task(objective_id, worker_id)
    await store.record_result(
        claim, text=text or f"found by {claim.task.name}", origins=["model:m"]
    )
    proposals = tuple(replace(proposal, parent_id=claim.task.id) for proposal in proposals)
    return claim.task.id, await plan_from(
        store, objective_id, claim.task.id, worker_id=worker_id, proposals=proposals, **planned
    )


async def finish_with(store, objective_id, *texts, worker_id="w"):
    """Carry out the next tasks with these results."""
    for text in texts:
        await finish_one(store, objective_id, text=text, worker_id=worker_id)


async def lack_in(store, objective_id, what="prices", *, shown=(), worker_id="w"):
    """A try of the next task that lacks something."""
    claim = await store.claim_task(objective_id, worker_id)
    return await store.record_lack(claim, lack=Lack(what=what, shown=shown))


async def check(
    store,
    objective_id,
    *proposals,
    is_met=False,
    missing=("a part",),
    parts=(),
    unread=(),
    reason="because",
    fallback=(),
):
    """Check whether the objective is met."""
    claim = await store.claim_duty(objective_id, "w", Duty.CHECK)
    checked = Checked(parts=parts, missing=() if is_met else missing, unread=unread)
    return await store.finish_check(
        claim, is_met=is_met, reason=reason, checked=checked, proposals=proposals, fallback=fallback
    )


async def names_of(store, objective_id, *statuses):
    return [task.name for task in await store.tasks(objective_id, statuses=statuses or None)]


async def open_ids(store):
    """The objectives that have work for workers."""
    return [objective.id for objective in await store.objectives(are_open=True)]


async def kinds_of(store, objective_id):
    return [event.kind for event in await store.events(objective_id)]


async def dropped_from(store, objective_id):
    """The names of the proposals that were dropped because they repeat a task."""
    dropped = await events_of(store, objective_id, events.TASK_DUPLICATE_DROPPED)
    return [data["name"] for _, data in dropped]


async def events_of(store, objective_id, kind):
    """The tasks and the data of the events of a kind, oldest first."""
    return [
        (event.task_id, dict(event.data))
        for event in await store.events(objective_id)
        if event.kind == kind
    ]


class TaskStoreContract(KeyContract, ScheduleContract):
    @pytest.fixture
    def clock(self):
        return Clock()

    @pytest.fixture
    async def store(self, clock, tmp_path):
        store, close = await self.open_store(clock, tmp_path)
        yield store
        await store.close()
        close()

    async def open_store(self, clock, tmp_path):
        """Return the store, and what to call after it was closed."""
        raise NotImplementedError

    # -- objectives
    # ----------------------------------------------------------------------------------------------

    async def test_an_objective_starts_active_with_its_first_task_queued(self, store):
        objective, is_new = await store.create_objective(make_spec(), uid="u1")
        assert is_new
        assert objective.status is ObjectiveStatus.ACTIVE
        assert objective.spec == make_spec()
        assert await names_of(store, objective.id, TaskStatus.QUEUED) == ["Make a list"]

    async def test_whose_results_an_objective_may_see_is_frozen_with_it(self, store):
        shared, _ = await store.create_objective(make_spec(memory=Memory.SHARED), uid="u1")
        again, _ = await store.create_objective(make_spec(), uid="u2")
        other, _ = await store.create_objective(make_spec(), uid="u3", always_new=True)
        assert (again.id, again.spec.memory, other.spec.memory) == (
            shared.id,
            Memory.SHARED,
            Memory.OBJECTIVE,
        )

    async def test_starting_the_same_objective_again_returns_it_whatever_its_status(self, store):
        first, _ = await store.create_objective(make_spec(), uid="u1")
        await store.end_objective(first.id, reason=StopReason.FAILED)
        again, is_new = await store.create_objective(
            make_spec(limits=Limits(max_tasks=3)), uid="u2"
        )
        assert (again.id, is_new) == (first.id, False)

    async def test_always_new_starts_afresh_and_the_newest_is_found_later(self, store):
        await store.create_objective(make_spec(), uid="u1")
        second, is_new = await store.create_objective(make_spec(), uid="u2", always_new=True)
        found, _ = await store.create_objective(make_spec(), uid="u3")
        assert is_new
        assert found.id == second.id
        assert [objective.uid for objective in await store.objectives()] == ["u1", "u2"]
        assert [objective.uid for objective in await store.objectives(limit=1)] == ["u2"]
        assert await store.objectives(limit=0) == []

    async def test_what_does_not_exist_is_not_found(self, store):
        with pytest.raises(NotFoundError):
            await store.objective(7)
        objective_id = await begin(store)
        with pytest.raises(NotFoundError):
            await store.task(objective_id, 99)
        with pytest.raises(NotFoundError):
            await store.events(objective_id + 1)

    async def test_a_paused_objective_gives_out_no_task_and_a_resumed_one_does(self, store):
        objective_id = await begin(store)
        await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
        assert await store.claim_task(objective_id, "w") is None
        assert (
            await store.switch_objective(objective_id, to=ObjectiveStatus.ACTIVE)
        ).status is ObjectiveStatus.ACTIVE
        assert await store.claim_task(objective_id, "w") is not None

    async def test_the_first_reason_for_the_end_stands(self, store):
        objective_id = await begin(store)
        await store.end_objective(objective_id, reason=StopReason.FAILED, detail="one")
        ended = await store.end_objective(objective_id, reason=StopReason.CANCELLED, detail="two")
        assert (ended.stop_reason, ended.stop_detail) == (StopReason.FAILED, "one")
        assert await names_of(store, objective_id, TaskStatus.QUEUED) == ["Make a list"]
        assert (await kinds_of(store, objective_id)).count(events.OBJECTIVE_ENDED) == 1

    async def test_cancelling_cancels_what_is_queued_and_what_comes_back_later(self, store):
        objective_id = await begin(store, "B")
        claim = await store.claim_task(objective_id, "w")
        await store.end_objective(objective_id, reason=StopReason.CANCELLED)
        await store.release(claim)
        counts = (await store.standing(objective_id)).counts
        assert counts[TaskStatus.CANCELLED] == 2
        assert set(counts) == set(TaskStatus)

    async def test_after_the_end_results_and_plans_are_recorded_but_no_task_is_added_and_no_planning_is_owed(
        self, store
    ):
        objective_id = await begin(store, "B", "C")
        first, second, third = [await store.claim_task(objective_id, "w") for _ in range(3)]
        await store.record_result(first, text="r", origins=[])
        planner = await store.claim_duty(objective_id, "w", Duty.PLAN)
        await store.end_objective(objective_id, reason=StopReason.LIMIT_COST)
        plan = Planned(proposals=(Proposal(name="more"),), is_met=True)
        await store.record_result(second, text="r", origins=[], plan=plan)
        assert await store.record_plan(planner, task_ids=[1], plan=plan) == ()
        assert await names_of(store, objective_id, TaskStatus.DONE) == ["Make a list", "B"]
        await store.record_result(third, text="r", origins=[])
        assert await store.claim_duty(objective_id, "w", Duty.PLAN) is None
        assert len(await store.tasks(objective_id)) == 3
        await store.extend_objective(objective_id, limits=NO_LIMITS)
        assert await store.claim_duty(objective_id, "w", Duty.CHECK) is None, (
            "nobody claimed that it is met while it was active"
        )
        assert await store.claim_duty(objective_id, "w", Duty.PLAN) is not None

    async def test_an_objective_with_nothing_left_is_finished_when_a_check_says_so(self, store):
        objective_id = await begin(store)
        assert (await store.end_objective(objective_id)).status is ObjectiveStatus.ACTIVE
        await finish_one(store, objective_id)
        assert (await store.end_objective(objective_id)).status is ObjectiveStatus.ACTIVE
        ended = await check(store, objective_id, is_met=True, reason="all there")
        assert (ended.stop_reason, ended.stop_detail) == (StopReason.FINISHED, "all there")

    async def test_an_objective_without_an_answer_and_with_nothing_left_has_failed(self, store):
        objective_id = await begin(store)
        await store.fail_task(await store.claim_task(objective_id, "w"), error="no", max_failures=1)
        assert await store.claim_duty(objective_id, "w", Duty.CHECK) is None
        ended = await store.end_objective(objective_id)
        assert (ended.stop_reason, ended.stop_detail) == (
            StopReason.FAILED,
            "no task was answered, 1 was given up: no",
        )

    async def test_extending_reopens_a_limit_and_owes_the_report_anew_under_a_new_owner(
        self, store
    ):
        objective_id = await begin(store, limits=replace(NO_LIMITS, max_tasks=1))
        await finish_one(store, objective_id, proposals=[Proposal(name="B")])
        assert (await store.end_objective(objective_id)).stop_reason is StopReason.LIMIT_TASKS
        claim = await store.claim_duty(objective_id, "w", Duty.REPORT)
        await store.record_report(claim, markdown="# all")
        assert (await store.objective(objective_id)).has_report
        extended = await store.extend_objective(objective_id, limits=NO_LIMITS)
        assert extended.status is ObjectiveStatus.ACTIVE
        assert await store.report(objective_id) is None
        await finish_one(store, objective_id)
        await check(store, objective_id, is_met=True)
        again = await store.claim_duty(objective_id, "w", Duty.REPORT)
        assert (claim.fence.owner, again.fence.owner, again.fence.claim_no) == (
            "report",
            "report:2",
            1,
        )

    async def test_a_further_question_is_part_of_what_is_asked_and_reopens_the_objective(
        self, store
    ):
        objective_id = await begin(store, "B")
        first, _ = await finish_one(store, objective_id)
        await store.end_objective(objective_id, reason=StopReason.FINISHED)
        claim = await store.claim_duty(objective_id, "w", Duty.REPORT)
        await store.record_report(claim, markdown="# all")

        limits = replace(NO_LIMITS, max_tasks=9)
        asked = await store.extend_objective(
            objective_id, question=" And\n coffee? ", after=[first], limits=limits
        )

        assert (asked.status, asked.has_report) == (ObjectiveStatus.ACTIVE, False)
        assert asked.spec.further == ("And coffee?",)
        assert asked.spec.asked == "Know all about tea\nAsked further: And coffee?"
        assert asked.spec.limits == limits
        task = (await store.claim_task(objective_id, "w")).task
        assert (task.name, task.after, task.origins) == ("And coffee?", (first,), ("person",))
        assert (await store.objective(objective_id)).spec.further == ("And coffee?",)
        again, is_new = await store.create_objective(asked.spec, uid="other")
        assert (again.id, is_new) == (objective_id, False)
        assert not (await store.verify(objective_id)).damages

    async def test_a_further_question_is_not_ended_by_a_check_that_did_not_know_it(self, store):
        objective_id = await begin(store, "B", "C")
        await finish_one(store, objective_id, is_met=True)
        blind = await store.claim_duty(objective_id, "w", Duty.CHECK)
        call = replace(NEXT_CALL, key="check")
        await store.intend_step(blind.fence, intention=call)
        await store.record_step(blind.fence, Outcome(key="check", output="yes", usage=SPENT))

        await store.extend_objective(objective_id, question="And coffee?")

        with pytest.raises(LeaseLostError):
            await store.finish_check(blind, is_met=True, reason="all there")
        assert (await store.objective(objective_id)).status is ObjectiveStatus.ACTIVE
        # the claim was of what was asked then, so the list goes on
        task, _ = await finish_one(store, objective_id, is_met=True)
        assert (await store.task(objective_id, task)).name == "And coffee?"
        knowing = await store.claim_duty(objective_id, "w", Duty.CHECK)
        assert not await store.steps(objective_id, owner=knowing.fence.owner)
        ended = await store.finish_check(knowing, is_met=True, reason="all there")
        assert ended.stop_reason is StopReason.OBJECTIVE_MET

    async def test_a_cancelled_objective_or_an_empty_question_is_refused(self, store):
        objective_id = await begin(store)
        with pytest.raises(SettingsError, match="empty"):
            await store.extend_objective(objective_id, question=" \n")
        await store.end_objective(objective_id, reason=StopReason.CANCELLED)
        with pytest.raises(ObjectiveStoppedError):
            await store.extend_objective(objective_id, question="And coffee?")
        assert (await store.objective(objective_id)).spec.further == ()

    async def test_an_objective_that_is_set_aside_says_why_until_it_goes_on(self, store):
        objective_id = await begin(store)

        aside = await store.switch_objective(
            objective_id, detail="the key is refused", to=ObjectiveStatus.PAUSED
        )
        assert aside.is_set_aside and aside.stop_detail == "the key is refused"
        assert objective_id not in await open_ids(store)

        active = await store.switch_objective(objective_id, to=ObjectiveStatus.ACTIVE)
        assert not active.is_set_aside and active.stop_detail == ""
        assert not (
            await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
        ).is_set_aside

    @pytest.mark.parametrize("reason", StopReason)
    async def test_what_a_person_does_reopens_every_end_but_a_cancelled_one_and_extending_those_that_are_no_success(
        self, store, reason
    ):
        extended, added_to, retried = [await begin(store) for _ in range(3)]
        for objective_id in (extended, added_to, retried):
            await store.join_objective("w", objective_id)
            await store.fail_task(
                await store.claim_task(objective_id, "w"), error="no", max_failures=1
            )
            await store.end_objective(objective_id, reason=reason)
            await store.record_report(
                await store.claim_duty(objective_id, "w", Duty.REPORT), markdown="# all"
            )

        await store.extend_objective(extended, limits=Limits())
        for verb in (
            lambda: store.add_tasks(added_to, [Proposal(name="B")]),
            lambda: store.retry_task(retried, 1),
        ):
            if reason is StopReason.CANCELLED:
                with pytest.raises(ObjectiveStoppedError):
                    await verb()
            else:
                await verb()

        is_open = [
            (await store.objective(objective_id)).status is ObjectiveStatus.ACTIVE
            for objective_id in (extended, added_to, retried)
        ]
        is_success = reason in (StopReason.FINISHED, StopReason.OBJECTIVE_MET)
        is_for_good = reason is StopReason.CANCELLED
        assert is_open == [not is_success and not is_for_good, not is_for_good, not is_for_good]
        has_report = [
            (await store.objective(objective_id)).has_report
            for objective_id in (extended, added_to, retried)
        ]
        assert has_report == [not opened for opened in is_open]
        assert len(await store.tasks(added_to)) == (1 if is_for_good else 2)

    async def test_a_change_that_adds_no_task_reopens_nothing(self, store):
        objective_id = await begin(store)
        await finish_one(store, objective_id)
        await check(store, objective_id, is_met=True)
        assert (await store.add_tasks(objective_id, [Proposal(name=" ")])) == ()
        assert (await store.objective(objective_id)).stop_reason is StopReason.FINISHED

    async def test_deleting_is_refused_while_a_living_worker_holds_a_task(self, store, clock):
        objective_id = await begin(store)
        await store.claim_task(objective_id, "w")
        with pytest.raises(SettingsError):
            await store.delete_objective(objective_id)
        clock.tick(31)
        await store.delete_objective(objective_id)
        assert await store.objectives() == []
        assert await store.reap_workers() == 0

    # -- the list
    # ----------------------------------------------------------------------------------------------

    async def test_tasks_are_claimed_in_the_lists_order_and_numbered_by_their_claims(self, store):
        objective_id = await begin(store, "B", "C")
        claims = [await store.claim_task(objective_id, "w") for _ in range(4)]
        assert [claim and claim.task.name for claim in claims] == ["Make a list", "B", "C", None]
        assert claims[0].fence.owner == "task:1"
        assert claims[0].task.claim_no == claims[0].fence.claim_no == 1

    async def test_a_task_is_not_claimable_before_the_tasks_it_comes_after_are_done(self, store):
        objective_id = await begin(store)
        await store.add_tasks(objective_id, [Proposal(name="B", after=(1, 1, 77))])
        claim = await store.claim_task(objective_id, "w")
        assert (await store.task(objective_id, 2)).after == (1,)
        assert await store.claim_task(objective_id, "w") is None
        await store.record_result(claim, text="r", origins=[])
        assert await store.claim_task(objective_id, "w") is None
        await plan_from(store, objective_id)
        assert (await store.claim_task(objective_id, "w")).task.name == "B"

    async def test_no_task_waits_for_one_that_was_given_up_until_it_is_retried(self, store):
        objective_id = await begin(store)
        await store.add_tasks(
            objective_id, [Proposal(name="B", after=(1,)), Proposal(name="C", after=(1,))]
        )
        await store.fail_task(await store.claim_task(objective_id, "w"), error="no", max_failures=1)
        begun = await store.claim_task(objective_id, "w")
        await store.retry_task(objective_id, 1)
        assert begun.task.name == "B"
        assert (await store.claim_task(objective_id, "w")).task.id == 1
        assert await store.claim_task(objective_id, "w") is None, "C waits again"
        await store.record_result(begun, text="r", origins=[])
        await plan_from(store, objective_id)
        assert (await store.task(objective_id, 2)).status is TaskStatus.DONE

    async def test_proposals_enter_at_the_end_in_their_order_without_the_duplicates(self, store):
        objective_id = await begin(store, "B")
        proposals = [
            Proposal(name=name, after=(1, 2))
            for name in ("D", "make  a LIST", " C\n\x00now ", "make a list!", "D.", " ")
        ]
        _, plan = await finish_one(store, objective_id, proposals=proposals)
        assert [task.name for task in plan] == ["D", "C now"]
        assert await dropped_from(store, objective_id) == ["make a LIST", "D."]
        assert plan[0].parent_id == 1
        assert plan[0].after == (1, 2)
        assert await names_of(store, objective_id) == ["Make a list", "B", "D", "C now"]

    async def test_a_person_may_repeat_a_task(self, store):
        objective_id = await begin(store)
        again = await store.add_tasks(objective_id, [Proposal(name="Make a list")])
        assert [task.id for task in again] == [2]

    async def test_a_name_is_kept_byte_for_byte(self, store):
        name = "Read https://x.com/v2.1?id=3 & “Ünïcödé” 日本"
        objective_id = await begin(store, name)
        assert (await store.task(objective_id, 2)).name == name

    async def test_text_that_utf8_cannot_hold_is_stored_without_it(self, store):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        result = await store.record_result(claim, text="a\ud800b\x00c", origins=["tool:\udfff"])
        assert await store.results(objective_id) == [result]
        assert not {"\ud800", "\x00"} & set(result.text)

    async def test_the_limit_of_tasks_counts_a_task_when_it_is_first_begun_and_gives_begun_ones_out_again(
        self, store, clock
    ):
        objective_id = await begin(store, "B", "C", limits=replace(NO_LIMITS, max_tasks=2))
        await finish_one(store, objective_id)
        claim = await store.claim_task(objective_id, "w")
        assert await store.claim_task(objective_id, "w") is None
        await store.release(claim, delay_s=5)
        assert await store.claim_task(objective_id, "w") is None
        assert (await store.end_objective(objective_id)).status is ObjectiveStatus.ACTIVE, (
            "B was begun, and can go on later"
        )
        clock.tick(5)
        await lack_in(store, objective_id)
        await plan_from(store, objective_id)
        again = await store.claim_task(objective_id, "w")
        assert (again.task.name, again.task.try_no) == ("B", 2)
        await store.record_result(again, text="r", origins=[])
        assert (await store.end_objective(objective_id)).status is ObjectiveStatus.ACTIVE
        await plan_from(store, objective_id)
        assert (await store.end_objective(objective_id)).stop_reason is StopReason.LIMIT_TASKS

    async def test_at_the_limit_of_tasks_a_begun_one_that_waits_for_one_that_is_not_ends_the_objective(
        self, store
    ):
        objective_id = await begin(store, limits=replace(NO_LIMITS, max_tasks=1))
        await lack_in(store, objective_id)
        await plan_from(store, objective_id, proposals=(Proposal(name="B", parent_id=1),))
        assert await store.claim_task(objective_id, "w") is None
        assert (await store.end_objective(objective_id)).stop_reason is StopReason.LIMIT_TASKS

    # -- steering
    # ----------------------------------------------------------------------------------------------

    async def test_a_person_adds_a_task_at_either_end_of_the_list(self, store):
        objective_id = await begin(store, "B")
        await store.add_tasks(objective_id, [Proposal(name="C")])
        plan = await store.add_tasks(
            objective_id, [Proposal(name="D"), Proposal(name="E")], to=Place.FIRST
        )
        assert [(task.name, task.rank) for task in plan] == [("D", 1), ("E", 2)]
        assert await names_of(store, objective_id) == ["D", "E", "Make a list", "B", "C"]

    async def test_a_task_is_moved_to_an_end_or_before_another(self, store):
        objective_id = await begin(store, "B", "C", "D")
        await store.move_task(objective_id, 4, to=Place.FIRST)
        assert await names_of(store, objective_id) == ["D", "Make a list", "B", "C"]
        await store.move_task(objective_id, 1, to=Place.LAST)
        assert await names_of(store, objective_id) == ["D", "B", "C", "Make a list"]
        assert (await store.move_task(objective_id, 3, to=2)).rank == 2
        assert await names_of(store, objective_id) == ["D", "C", "B", "Make a list"]
        await store.move_task(objective_id, 3, to=3)
        assert [(await store.claim_task(objective_id, "w")).task.name for _ in range(4)] == [
            "D",
            "C",
            "B",
            "Make a list",
        ]

    async def test_an_order_that_was_asked_for_before_a_move_is_stale(self, store):
        objective_id = await begin(store, "B", "C")
        claim = await store.claim_duty(objective_id, "w", Duty.ORDER)
        window = await store.window(objective_id, n_head=9, n_new=9)
        await store.move_task(objective_id, 3, to=Place.FIRST)
        assert not await store.reorder(claim, revision=window.revision, task_ids=[2, 1, 3])
        assert await names_of(store, objective_id) == ["C", "Make a list", "B"]

    async def test_only_a_task_that_nobody_has_begun_is_changed(self, store):
        objective_id = await begin(store, "B")
        await store.claim_task(objective_id, "w")
        before = await store.last_event_id(objective_id)
        for refused in (
            store.move_task(objective_id, 1, to=Place.LAST),
            store.move_task(objective_id, 2, to=1),
            store.cancel_task(objective_id, 1, replacement="B2"),
            store.cancel_task(objective_id, 2, replacement=" \n"),
            store.cancel_task(objective_id, 1),
            store.retry_task(objective_id, 2),
        ):
            with pytest.raises(SettingsError) as caught:
                await refused
            assert caught.value.fix
        for unknown in (
            store.move_task(objective_id, 2, to=9),
            store.cancel_task(objective_id, 9),
            store.retry_task(objective_id, 9),
        ):
            with pytest.raises(NotFoundError):
                await unknown
        assert await store.last_event_id(objective_id) == before

    async def test_a_replaced_task_is_cancelled_and_the_new_one_takes_its_place_also_for_those_after_it(
        self, store
    ):
        objective_id = await begin(store, "B", "C")
        await store.add_tasks(objective_id, [Proposal(name="D", after=(1, 2))])
        new = await store.cancel_task(objective_id, 2, replacement="B,\nbut better")
        assert (new.name, new.rank, new.origins) == ("B, but better", 2, ("person",))
        old = await store.task(objective_id, 2)
        assert (old.name, old.status) == ("B", TaskStatus.CANCELLED)
        assert await names_of(store, objective_id, TaskStatus.QUEUED) == [
            "Make a list",
            "B, but better",
            "C",
            "D",
        ]
        assert (await store.task(objective_id, 4)).after == (1, 5)
        await finish_one(store, objective_id)
        claim = await store.claim_task(objective_id, "w")
        assert claim.task.id == 5
        assert (await store.claim_task(objective_id, "w")).task.name == "C"
        assert await store.claim_task(objective_id, "w") is None
        await store.record_result(claim, text="r", origins=[])
        await plan_from(store, objective_id)
        assert (await store.claim_task(objective_id, "w")).task.name == "D"

    async def test_a_skipped_task_is_never_started_and_nobody_waits_for_it(self, store):
        objective_id = await begin(store)
        await store.add_tasks(objective_id, [Proposal(name="B", after=(1,))])
        assert (await store.cancel_task(objective_id, 1)).status is TaskStatus.CANCELLED
        await store.add_tasks(objective_id, [Proposal(name="C", after=(1,))])
        assert [(await store.claim_task(objective_id, "w")).task.name for _ in range(2)] == [
            "B",
            "C",
        ]
        assert await store.claim_task(objective_id, "w") is None

    async def test_a_dead_task_is_tried_anew_at_its_rank_and_its_objective_goes_on(self, store):
        objective_id = await begin(store, "B")
        await store.fail_task(await store.claim_task(objective_id, "w"), error="no", max_failures=1)
        await finish_one(store, objective_id)
        assert (await check(store, objective_id, is_met=True)).stop_reason is StopReason.FINISHED
        report = await store.claim_duty(objective_id, "w", Duty.REPORT)
        await store.record_report(report, markdown="# all")
        task = await store.retry_task(objective_id, 1)
        assert (task.status, task.rank, task.failures, task.try_no, task.error) == (
            TaskStatus.QUEUED,
            1,
            0,
            3,
            "",
        )
        objective = await store.objective(objective_id)
        assert (objective.status, objective.has_report) == (ObjectiveStatus.ACTIVE, False)
        assert [
            task.id for task in await store.tasks(objective_id, limit=5, last_finished=True)
        ] == [2]
        await finish_one(store, objective_id)
        assert (await check(store, objective_id, is_met=True)).stop_reason is StopReason.FINISHED
        assert (await store.claim_duty(objective_id, "w", Duty.REPORT)).fence.owner == "report:2"

    async def test_no_dead_task_brings_an_objective_back_that_ended_for_good(self, store):
        objective_id = await begin(store)
        await store.fail_task(await store.claim_task(objective_id, "w"), error="no", max_failures=1)
        await store.end_objective(objective_id, reason=StopReason.CANCELLED)
        with pytest.raises(ObjectiveStoppedError):
            await store.retry_task(objective_id, 1)
        assert (await store.task(objective_id, 1)).status is TaskStatus.DEAD

    # -- turns
    # ----------------------------------------------------------------------------------------------

    async def test_a_result_is_visible_before_the_planning_and_stands_for_ever_after_it(
        self, store
    ):
        objective_id = await begin(store)
        first = await store.record_result(
            await store.claim_task(objective_id, "w"), text="r1", origins=["model:m"]
        )
        assert await store.results(objective_id) == [first]
        assert (first.is_planned, (await store.task(objective_id, 1)).status) == (
            False,
            TaskStatus.RECORDED,
        )
        await plan_from(store, objective_id)
        assert await store.results(objective_id) == [replace(first, is_planned=True)]

    async def test_a_recorded_task_is_held_by_nobody(self, store):
        objective_id = await begin(store, "B")
        answered, lacking = [await store.claim_task(objective_id, "w") for _ in range(2)]
        await store.record_result(answered, text="r", origins=[])
        await store.record_lack(lacking, lack=Lack(what="prices"))
        assert [
            joined.task_ids for worker in await store.workers() for joined in worker.joined
        ] == [()]
        for claim in (answered, lacking):
            for late in (
                store.fail_task(claim, error="late", max_failures=1),
                store.release(claim),
                store.record_lack(claim, lack=Lack(what="more")),
                store.intend_step(
                    claim.fence,
                    intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL),
                ),
            ):
                with pytest.raises(LeaseLostError):
                    await late
        with pytest.raises(LeaseLostError):
            await store.record_result(lacking, text="late", origins=[])
        await store.remove_worker("w")
        assert ((await store.standing(objective_id)).counts)[TaskStatus.RECORDED] == 2

    @pytest.mark.parametrize(
        "plan", [None, Planned(proposals=(Proposal(name="more"),))], ids=["alone", "with its plan"]
    )
    async def test_a_commit_of_a_result_that_comes_again_under_its_claim_returns_the_first_and_changes_nothing(
        self, store, plan
    ):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        first = await store.record_result(claim, text="r1", origins=["model:m"], plan=plan)
        events = await store.events(objective_id)
        again = await store.record_result(claim, text="r2", origins=[], lack="all", plan=plan)
        assert (again.text, again.origins, again.lack) == (first.text, first.origins, "")
        assert await store.events(objective_id) == events
        if plan is None:
            await plan_from(store, objective_id)
            assert (await store.record_result(claim, text="r3", origins=[])).text == "r1"

    async def test_a_result_of_a_claim_that_another_took_over_is_not_the_first(self, store):
        objective_id = await begin(store)
        zombie = await store.claim_task(objective_id, "w")
        await store.release(zombie)
        await store.record_result(await store.claim_task(objective_id, "w"), text="r", origins=[])
        with pytest.raises(LeaseLostError):
            await store.record_result(zombie, text="late", origins=[])

    async def test_a_result_that_answers_in_part_keeps_what_it_lacks_and_its_task_is_done(
        self, store
    ):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        result = await store.record_result(
            claim, text="teas", origins=[], lack="their\x00 prices\ud800"
        )
        assert result.lack == "their\ufffd prices?"
        assert await store.results(objective_id) == [result]
        await plan_from(store, objective_id)
        task = await store.task(objective_id, 1)
        assert (task.status, task.lack, task.n_lacks, task.try_no) == (TaskStatus.DONE, None, 0, 1)
        assert [result.lack for result in await store.results(objective_id)] == [
            "their\ufffd prices?"
        ]
        assert (await store.verify(objective_id)).damages == ()
        assert (await events_of(store, objective_id, events.TASK_RECORDED))[0][1][
            "lack"
        ] == "their\ufffd prices?"

    async def test_what_the_execution_agent_planned_itself_is_recorded_with_its_result_or_nothing_is(
        self, store
    ):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        broken = Planned(proposals=(Proposal(name="B"), Proposal(name=None)))  # type: ignore[arg-type]  # breaks in mid-transaction
        with pytest.raises(AttributeError):
            await store.record_result(claim, text="r", origins=[], plan=broken)
        assert (await store.results(objective_id), len(await store.tasks(objective_id))) == ([], 1)
        plan = Planned(proposals=(Proposal(name="B", parent_id=1),), is_met=True)
        await store.record_result(claim, text="r", origins=[], plan=plan)
        assert await names_of(store, objective_id, TaskStatus.DONE) == ["Make a list"]
        assert [
            (task.name, task.parent_id)
            for task in await store.tasks(objective_id, statuses=[TaskStatus.QUEUED])
        ] == [("B", 1)]
        assert await store.claim_duty(objective_id, "w", Duty.PLAN) is None
        assert await store.claim_duty(objective_id, "w", Duty.CHECK) is not None

    async def test_a_failed_try_waits_and_is_tried_anew_until_it_is_dead(self, store, clock):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        failed = await store.fail_task(claim, error="no", max_failures=2, delay_s=5)
        assert (failed.status, failed.failures, failed.try_no) == (TaskStatus.QUEUED, 1, 2)
        assert await store.claim_task(objective_id, "w") is None
        assert (await store.end_objective(objective_id)).status is ObjectiveStatus.ACTIVE
        clock.tick(5)
        dead = await store.fail_task(
            await store.claim_task(objective_id, "w"), error="never", max_failures=2
        )
        assert (dead.status, dead.error) == (TaskStatus.DEAD, "never")
        assert [
            task.id for task in await store.tasks(objective_id, limit=5, last_finished=True)
        ] == [1]

    async def test_a_released_task_comes_back_at_its_place_without_a_failure(self, store, clock):
        objective_id = await begin(store, "B")
        claim = await store.claim_task(objective_id, "w")
        await store.release(claim, delay_s=3, reason="outage")
        assert (await store.claim_task(objective_id, "w")).task.name == "B"
        clock.tick(3)
        again = await store.claim_task(objective_id, "w")
        assert (again.task.id, again.task.failures, again.task.try_no, again.task.claim_no) == (
            1,
            0,
            1,
            2,
        )

    async def test_a_lost_lease_records_nothing(self, store, clock):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        clock.tick(31)
        assert await store.reap_workers() == 1
        before = await store.events(objective_id)
        for late in (
            store.record_result(claim, text="late", origins=[]),
            store.record_lack(claim, lack=Lack(what="late")),
            store.fail_task(claim, error="late", max_failures=1),
            store.release(claim),
            store.record_step(
                claim.fence, Kept(key="k", kind="inputs", request_hash="h", output="{}")
            ),
            store.intend_step(
                claim.fence,
                intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL),
            ),
        ):
            with pytest.raises(LeaseLostError):
                await late
        assert await store.results(objective_id) == []
        assert await store.events(objective_id) == before

    # -- tasks that lack something
    # -----------------------------------------------------------------------------------------

    async def test_the_lack_of_a_try_is_stored_without_a_result_and_planning_from_it_is_due(
        self, store
    ):
        objective_id = await begin(store)
        task = await lack_in(store, objective_id, "their\x00 prices\ud800", shown=(7, 9))
        assert (task.status, task.lack, task.n_lacks, task.try_no) == (
            TaskStatus.RECORDED,
            Lack(what="their\ufffd prices?", shown=(7, 9)),
            1,
            1,
        )
        assert task == await store.task(objective_id, 1)
        assert (
            await store.results(objective_id),
            [
                task.id
                for task in await store.tasks(objective_id, statuses=[TaskStatus.RECORDED], limit=5)
            ],
        ) == ([], [1])
        assert await events_of(store, objective_id, events.TASK_LACKED) == [
            (1, {"lack": "their\ufffd prices?", "n_lacks": 1})
        ]
        assert (await store.task_names(objective_id, limit=5)).names == (
            TaskName(id=1, name="Make a list", status=TaskStatus.RECORDED, is_lacking=True),
        )

    async def test_a_task_that_lacks_something_is_tried_anew_when_what_was_proposed_for_it_is_done(
        self, store
    ):
        objective_id = await begin(store)
        await lack_in(store, objective_id)
        made = await plan_from(
            store,
            objective_id,
            proposals=(Proposal(name="Find prices", parent_id=1), Proposal(name="Rest")),
        )
        assert [task.name for task in made] == ["Find prices", "Rest"]
        task = await store.task(objective_id, 1)
        assert (task.status, task.try_no, task.after, task.rank, task.failures) == (
            TaskStatus.QUEUED,
            2,
            (2,),
            1,
            0,
        )
        assert await events_of(store, objective_id, events.TASK_REQUEUED) == [
            (1, {"try_no": 2, "waits_for": [2]})
        ]
        assert (await finish_one(store, objective_id))[0] == 2
        again = await store.claim_task(objective_id, "w")
        assert (again.task.id, again.task.lack, again.task.n_lacks) == (1, Lack(what="prices"), 1)
        await store.record_result(again, text="r", origins=[])
        await plan_from(store, objective_id)
        done = await store.task(objective_id, 1)
        assert (done.status, done.lack, done.after) == (TaskStatus.DONE, None, (2,))

    async def test_a_task_that_lacks_something_waits_also_for_what_a_proposal_repeats_and_for_what_is_named(
        self, store
    ):
        objective_id = await begin(store, "B", "C")
        await lack_in(store, objective_id)
        proposals = (
            Proposal(name="b!", parent_id=1),
            Proposal(name="D", label="x"),
            Proposal(name="E"),
            Proposal(name=" ", label="y"),
        )
        named = Unanswered(
            task_id=1, lack="unused", after=(3, 1, 99, 2, "X", " e. ", "y", "unknown")
        )
        made = await plan_from(store, objective_id, proposals=proposals, unanswered=(named,))
        assert [task.id for task in made] == [4, 5]
        assert await dropped_from(store, objective_id) == ["b!"]
        task = await store.task(objective_id, 1)
        assert (task.after, task.lack) == ((2, 3, 4, 5), Lack(what="prices"))

    async def test_what_a_task_came_after_and_what_it_waits_for_add_up(self, store):
        objective_id = await begin(store)
        await store.add_tasks(objective_id, [Proposal(name="B", after=(1,))])
        await finish_one(store, objective_id)
        await lack_in(store, objective_id)
        await plan_from(store, objective_id, proposals=(Proposal(name="C", parent_id=2),))
        assert (await store.task(objective_id, 2)).after == (1, 3)

    async def test_what_the_execution_agent_proposed_itself_for_a_lack_is_recorded_with_it_or_nothing_is(
        self, store
    ):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        broken = Planned(proposals=(Proposal(name="B"), Proposal(name=None)))  # type: ignore[arg-type]  # breaks in mid-transaction
        with pytest.raises(AttributeError):
            await store.record_lack(claim, lack=Lack(what="prices"), plan=broken)
        assert (await store.task(objective_id, 1), len(await store.tasks(objective_id))) == (
            claim.task,
            1,
        )
        plan = Planned(proposals=(Proposal(name="Find prices", parent_id=1),))
        task = await store.record_lack(claim, lack=Lack(what="prices"), plan=plan)
        assert (task.status, task.try_no, task.after, task.n_lacks) == (
            TaskStatus.QUEUED,
            2,
            (2,),
            1,
        )
        assert task == await store.task(objective_id, 1)
        assert await store.claim_duty(objective_id, "w", Duty.PLAN) is None

    async def test_nothing_is_proposed_for_a_task_that_is_given_up(self, store):
        objective_id = await begin(store)
        for n in (1, 2, 3):
            plan = Planned(proposals=(Proposal(name=f"Find {n}", parent_id=1),))
            await store.move_task(objective_id, 1, to=Place.FIRST)
            for task in (await store.tasks(objective_id))[1:]:
                if task.status is TaskStatus.QUEUED:
                    await store.cancel_task(objective_id, task.id)
            task = await store.record_lack(
                await store.claim_task(objective_id, "w"), lack=Lack(what="prices"), plan=plan
            )
        assert (task.status, await names_of(store, objective_id)) == (
            TaskStatus.DEAD,
            ["Make a list", "Find 1", "Find 2"],
        )

    async def test_a_task_after_one_that_lacks_something_waits_for_its_next_try(self, store):
        objective_id = await begin(store)
        await store.add_tasks(objective_id, [Proposal(name="B", after=(1,))])
        await lack_in(store, objective_id)
        assert await store.claim_task(objective_id, "w") is None
        await plan_from(store, objective_id)
        assert (await finish_one(store, objective_id))[0] == 1
        assert (await store.claim_task(objective_id, "w")).task.id == 2

    async def test_a_result_that_is_no_answer_is_withdrawn_with_everything_of_it(self, store):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        await store.record_result(claim, text="The lake froze", origins=[])
        await store.store_vectors(objective_id, space="s", vectors={1: b"\x01"})
        await store.store_vectors(objective_id, space="t", vectors={1: b"\x01", 9: b"\x02"})
        await store.mark_indexed(objective_id, task_ids=[1])
        await plan_from(
            store, objective_id, unanswered=(Unanswered(task_id=1, lack="prices", shown=(4,)),)
        )
        assert (await store.results(objective_id), len(await store.result_ids(objective_id))) == (
            [],
            0,
        )
        assert (
            await store.result_ids(objective_id),
            (await store.verify(objective_id)).n_results,
        ) == ([], 0)
        assert await find_words(store, objective_id, words=["lake"], limit=5) == []
        assert [
            await store.vectors(objective_id, space=space, task_ids=[9]) for space in ("s", "t")
        ] == [
            {},
            {9: b"\x02"},
        ]
        task = await store.task(objective_id, 1)
        assert (task.status, task.try_no, task.lack, task.n_lacks) == (
            TaskStatus.QUEUED,
            2,
            Lack(what="prices", shown=(4,)),
            1,
        )
        assert await events_of(store, objective_id, events.TASK_LACKED) == [
            (1, {"lack": "prices", "n_lacks": 1})
        ]
        with pytest.raises(LeaseLostError):
            await store.record_result(claim, text="The lake froze", origins=[])
        await finish_one(store, objective_id, text="The sea did not")
        assert await find_words(store, objective_id, words=["sea", "lake"], limit=5) == [1]
        assert await store.result_ids(objective_id, is_indexed=False) == [1]

    async def test_a_task_whose_lack_is_never_filled_is_given_up_after_three_tries(self, store):
        objective_id = await begin(store)
        await store.add_tasks(objective_id, [Proposal(name="B", after=(1,))])
        for n in (1, 2, 3):
            assert (await store.task(objective_id, 1)).status is TaskStatus.QUEUED
            await lack_in(store, objective_id, f"prices {n}")
            if n < 3:
                await plan_from(
                    store, objective_id, unanswered=(Unanswered(task_id=1, lack=f"prices {n}"),)
                )
        task = await store.task(objective_id, 1)
        assert (task.status, task.n_lacks, task.failures) == (TaskStatus.DEAD, 3, 0)
        assert task.error == "after 3 tries it still lacked: prices 3"
        assert await events_of(store, objective_id, events.TASK_DEAD) == [
            (1, {"error": task.error})
        ]
        assert await store.results(objective_id) == []
        assert await store.claim_duty(objective_id, "w", Duty.PLAN) is None
        assert (await store.claim_task(objective_id, "w")).task.id == 2, "nobody waits for it"
        retried = await store.retry_task(objective_id, 1)
        assert (retried.status, retried.n_lacks, retried.error) == (TaskStatus.QUEUED, 0, "")

    LACKING = "the yield of Darjeeling in 2019"

    @pytest.mark.parametrize(
        ("blocked_reason", "text", "is_woken"),
        [
            ("Ask a farmer", "In 2019 Darjeeling brought 9 t", True),
            ("Ask a farmer", "In 2018 Darjeeling brought 9 t", False),
            ("Ask a farmer", "In 2019 Assam brought 9 t", False),
            ("Find the yield of Darjeeling in 2019", "In 2019 Darjeeling brought 9 t", False),
            ("Ask about Darjeeling", "In 2019 Darjeeling brought 9 t", False),
            ("Ask about Assam", "In 2019 Darjeeling brought 9 t", True),
        ],
    )
    async def test_a_task_that_waits_is_woken_by_a_result_that_holds_what_it_lacks_and_no_open_task_is_to_bring(
        self, store, blocked_reason, text, is_woken
    ):
        objective_id = await begin(store, "Look around")
        await lack_in(store, objective_id, self.LACKING)
        await plan_from(
            store, objective_id, proposals=(Proposal(name=blocked_reason, parent_id=1),)
        )
        assert (await store.task(objective_id, 1)).after == (3,)

        other = await store.claim_task(objective_id, "w")
        await store.record_result(other, text=text, origins=[])

        assert (await store.claim_task(objective_id, "w")).task.id == (1 if is_woken else 3)
        assert await events_of(store, objective_id, events.TASK_AFTER_DROPPED) == (
            [(1, {"by": 2})] if is_woken else []
        )
        assert (await store.task(objective_id, 1)).after == (() if is_woken else (3,))

    async def test_a_name_of_the_task_itself_wakes_it_for_no_result(self, store):
        objective_id = await begin(store, "Sum up Darjeeling", "Look around")
        await store.cancel_task(objective_id, 1)
        await lack_in(store, objective_id, "the yield of Darjeeling")
        await plan_from(
            store, objective_id, proposals=(Proposal(name="Ask a farmer", parent_id=2),)
        )
        await finish_one(store, objective_id, text="Darjeeling is a place")
        assert (await store.task(objective_id, 2)).after == (4,)

    async def test_only_a_task_that_lacked_something_is_woken(self, store):
        objective_id = await begin(store, "Look around")
        await store.add_tasks(objective_id, [Proposal(name=self.LACKING, after=(1,))])
        await store.claim_task(objective_id, "w")
        await finish_one(store, objective_id, text="In 2019 Darjeeling brought 9 t")
        assert await store.claim_task(objective_id, "w") is None

    # -- planning
    # ----------------------------------------------------------------------------------------------

    async def test_planning_is_owed_while_something_is_recorded_and_by_one_worker_at_a_time(
        self, store
    ):
        objective_id = await begin(store, "B")
        await join(store, make_worker("v"), objective_id)
        assert await store.claim_duty(objective_id, "w", Duty.PLAN) is None
        await store.record_result(await store.claim_task(objective_id, "w"), text="r", origins=[])
        await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
        assert await store.claim_duty(objective_id, "w", Duty.PLAN) is None
        await store.switch_objective(objective_id, to=ObjectiveStatus.ACTIVE)
        first = await store.claim_duty(objective_id, "w", Duty.PLAN)
        assert first.fence.owner == "plan:1"
        assert await store.claim_duty(objective_id, "v", Duty.PLAN) is None
        await lack_in(store, objective_id, worker_id="v")
        assert [
            task.id
            for task in await store.tasks(objective_id, statuses=[TaskStatus.RECORDED], limit=9)
        ] == [1, 2]
        assert [
            task.id
            for task in await store.tasks(objective_id, statuses=[TaskStatus.RECORDED], limit=1)
        ] == [1]
        await store.record_plan(first, task_ids=[1], plan=Planned())
        with pytest.raises(LeaseLostError):
            await store.record_plan(first, task_ids=[2], plan=Planned())
        second = await store.claim_duty(objective_id, "v", Duty.PLAN)
        assert (
            second.fence.owner,
            [
                task.id
                for task in await store.tasks(objective_id, statuses=[TaskStatus.RECORDED], limit=9)
            ],
        ) == (
            "plan:2",
            [2],
        )
        await store.record_plan(second, task_ids=[2], plan=Planned())
        assert await store.claim_duty(objective_id, "w", Duty.PLAN) is None

    async def test_a_planning_of_a_dead_worker_is_taken_over_with_its_steps_and_its_late_plan_changes_nothing(
        self, store, clock
    ):
        objective_id = await begin(store)
        await store.record_result(await store.claim_task(objective_id, "w"), text="r", origins=[])
        zombie = await store.claim_duty(objective_id, "w", Duty.PLAN)
        paid = await store.intend_step(
            zombie.fence,
            intention=Intention(key="1/plan", kind="model", request_hash="h", reservation=CALL),
        )
        await store.record_step(zombie.fence, Outcome(key=paid.key, output='"{}"', usage=SPENT))
        clock.tick(31)
        await store.reap_workers()
        await join(store, make_worker("v"), objective_id)
        claim = await store.claim_duty(objective_id, "v", Duty.PLAN)
        assert (claim.fence.owner, claim.fence.claim_no) == ("plan:1", 2)
        step = await store.intend_step(
            claim.fence,
            intention=Intention(key="1/plan", kind="model", request_hash="h", reservation=CALL),
        )
        assert (step.output, (await store.objective(objective_id)).usage) == ('"{}"', SPENT)
        before = await store.events(objective_id)
        with pytest.raises(LeaseLostError):
            await store.record_plan(
                zombie, task_ids=[1], plan=Planned(proposals=(Proposal(name="late"),), is_met=True)
            )
        assert (await store.events(objective_id), len(await store.tasks(objective_id))) == (
            before,
            1,
        )

    async def test_a_released_planning_waits(self, store, clock):
        objective_id = await begin(store)
        await store.record_result(await store.claim_task(objective_id, "w"), text="r", origins=[])
        await store.release(await store.claim_duty(objective_id, "w", Duty.PLAN), delay_s=5)
        assert await store.claim_duty(objective_id, "w", Duty.PLAN) is None
        clock.tick(5)
        assert (await store.claim_duty(objective_id, "w", Duty.PLAN)).fence.owner == "plan:1"

    async def test_a_plan_leaves_alone_what_is_not_recorded_and_what_it_does_not_name(self, store):
        objective_id = await begin(store, "B", "C")
        for _ in range(2):
            await store.record_result(
                await store.claim_task(objective_id, "w"), text="r", origins=[]
            )
        running = await store.claim_task(objective_id, "w")
        unanswered = tuple(Unanswered(task_id=task_id, lack="all") for task_id in (2, 3))
        await plan_from(store, objective_id, 1, 3, unanswered=unanswered)
        assert [task.status for task in await store.tasks(objective_id)] == [
            TaskStatus.DONE,
            TaskStatus.RECORDED,
            TaskStatus.RUNNING,
        ]
        await store.record_result(running, text="r", origins=[])
        assert [result.is_planned for result in await store.results(objective_id)] == [
            True,
            False,
            False,
        ]

    async def test_a_plan_that_failed_or_left_something_out_says_so_and_its_tasks_are_done(
        self, store
    ):
        objective_id = await begin(store)
        await store.record_result(await store.claim_task(objective_id, "w"), text="r", origins=[])
        await plan_from(store, objective_id, dropped=("Too much\ud800",), failure="no JSON\x00")
        assert (await store.task(objective_id, 1)).status is TaskStatus.DONE
        assert await events_of(store, objective_id, events.TASK_PROPOSAL_DROPPED) == [
            (None, {"name": "Too much?"})
        ]
        assert await events_of(store, objective_id, events.PLAN_FAILED) == [
            (None, {"task_ids": [1], "reason": "no JSON\ufffd"})
        ]

    async def test_a_task_that_lacks_something_when_its_objective_was_cancelled_is_cancelled(
        self, store
    ):
        objective_id = await begin(store)
        await lack_in(store, objective_id)
        planner = await store.claim_duty(objective_id, "w", Duty.PLAN)
        await store.end_objective(objective_id, reason=StopReason.CANCELLED)
        await store.record_plan(planner, task_ids=[1], plan=Planned())
        assert (await store.task(objective_id, 1)).status is TaskStatus.CANCELLED
        kinds = await kinds_of(store, objective_id)
        assert (kinds[-1], events.TASK_REQUEUED in kinds) == (events.TASK_CANCELLED, False)

    async def test_a_task_that_is_given_up_while_a_call_of_it_may_have_been_made_waits_and_is_not_called_dead(
        self, store
    ):
        objective_id = await begin(store)
        for _ in range(2):
            await lack_in(store, objective_id)
            await plan_from(store, objective_id)
        claim = await store.claim_task(objective_id, "w")
        await store.intend_step(
            claim.fence, intention=Intention(key="1/t", kind="once", request="{}")
        )
        task = await store.record_lack(claim, lack=Lack(what="prices"))
        assert task.status is TaskStatus.WAITING
        kinds = await kinds_of(store, objective_id)
        assert (events.TASK_PARKED in kinds, events.TASK_DEAD in kinds) == (True, False)

    # -- which proposals are there already
    # -----------------------------------------------------------------------------------

    async def bring_into(self, store, objective_id, state):
        """Bring the next task into this state."""
        if state == "queued":
            return
        if state == "cancelled":
            head = await store.tasks(objective_id, statuses=[TaskStatus.QUEUED], limit=1)
            await store.cancel_task(objective_id, head[0].id)
            return
        claim = await store.claim_task(objective_id, "w")
        match state:
            case "recorded" | "answered":
                await store.record_result(claim, text="r", origins=[])
            case "lacking":
                await store.record_lack(claim, lack=Lack(what="prices"))
            case "asking":
                await store.park_task(claim.fence, key="1/q", kind="question", request="{}")
            case "given up":
                await store.fail_task(claim, error="no", max_failures=1)
        if state in ("answered", "lacking"):
            await plan_from(
                store,
                objective_id,
                claim.task.id,
                proposals=(Proposal(name="Bring it", parent_id=claim.task.id),),
            )

    STATES = (
        "queued",
        "running",
        "recorded",
        "lacking",
        "asking",
        "answered",
        "given up",
        "cancelled",
    )

    @pytest.mark.parametrize(
        ("name", "repeats"),
        [("what is the POPULATION of Peru", None), ("How many people live in Peru?", 2)],
    )
    @pytest.mark.parametrize("state", STATES)
    async def test_what_is_spelled_as_a_task_or_said_to_repeat_it_is_not_added_again_whatever_became_of_it(
        self, store, state, name, repeats
    ):
        objective_id = await begin(store, "What is the population of Peru?")
        planned = await store.claim_task(objective_id, "w")
        await self.bring_into(store, objective_id, state)
        await store.record_result(planned, text="nothing", origins=[])
        n_tasks = len(await store.tasks(objective_id))

        proposal = Proposal(name=name, parent_id=1, repeats=repeats)
        made = await plan_from(store, objective_id, 1, proposals=(proposal,))

        assert made == ()
        assert len(await store.tasks(objective_id)) == n_tasks
        assert await events_of(store, objective_id, events.TASK_DUPLICATE_DROPPED) == [
            (1, {"name": proposal.name, "repeats": 2})
        ]

    async def test_a_name_that_one_plan_repeats_is_one_event(self, store):
        objective_id = await begin(store)
        task = (await store.tasks(objective_id))[0]
        names = (task.name, task.name.lower(), task.name, "Find another", "Find another")
        proposals = [Proposal(name=name, parent_id=task.id) for name in names]

        _, made = await finish_one(store, objective_id, proposals=proposals)

        assert [one.name for one in made] == ["Find another"]
        assert await events_of(store, objective_id, events.TASK_DUPLICATE_DROPPED) == [
            (task.id, {"name": task.name, "repeats": task.id}),
            (task.id, {"name": "Find another", "repeats": task.id + 1}),
        ]

    async def test_two_proposals_of_the_same_spelling_are_one(self, store):
        objective_id = await begin(store)
        names = (
            "Find the population of Peru",
            "find the population of “Peru”.",
            "Find the population of Chile",
        )
        _, made = await finish_one(
            store, objective_id, proposals=[Proposal(name=name) for name in names]
        )
        assert [task.name for task in made] == [names[0], names[2]]
        assert await dropped_from(store, objective_id) == [names[1]]
        assert (await events_of(store, objective_id, events.TASK_DUPLICATE_DROPPED))[0][1][
            "repeats"
        ] == 2

    @pytest.mark.parametrize("is_said_by", ["its agent", "the creation agent"])
    @pytest.mark.parametrize("shown", [(2,), (3,), ()])
    async def test_an_answered_task_comes_again_only_for_one_that_lacks_something_although_it_was_shown_the_answer(
        self, store, shown, is_said_by
    ):
        objective_id = await begin(store, "B")
        await store.move_task(objective_id, 2, to=Place.FIRST)
        await finish_one(store, objective_id)
        if is_said_by == "its agent":
            await lack_in(store, objective_id, shown=shown)
            planned = {}
        else:
            await store.record_result(
                await store.claim_task(objective_id, "w"), text="r", origins=[]
            )
            planned = {"unanswered": (Unanswered(task_id=1, lack="prices", shown=shown),)}
        made = await plan_from(
            store, objective_id, proposals=(Proposal(name="B", parent_id=1),), **planned
        )
        assert [task.id for task in made] == ([3] if shown == (2,) else [])
        assert (await store.task(objective_id, 1)).after == ((3,) if shown == (2,) else (2,))

    async def test_what_one_task_was_shown_in_vain_is_not_repeated_for_another(self, store):
        objective_id = await begin(store, "B", "C")
        await store.move_task(objective_id, 3, to=Place.FIRST)
        await finish_one(store, objective_id)
        await lack_in(store, objective_id, shown=(3,))
        await store.record_result(await store.claim_task(objective_id, "w"), text="r", origins=[])
        made = await plan_from(store, objective_id, proposals=(Proposal(name="C", parent_id=2),))
        assert (made, await dropped_from(store, objective_id)) == ((), ["C"])

    @pytest.mark.parametrize("state", STATES)
    async def test_a_missing_part_is_asked_for_again_unless_its_task_is_open_or_was_cancelled_by_a_person(
        self, store, state
    ):
        objective_id = await begin(store, "B")
        claim = await store.claim_task(objective_id, "w")
        await self.bring_into(store, objective_id, state)
        await store.record_result(claim, text="r", origins=[])
        await plan_from(store, objective_id, 1, is_met=True)
        await check(store, objective_id, Proposal(name="b."))
        assert (await names_of(store, objective_id)).count("b.") == (
            state in ("answered", "given up")
        )

    async def test_a_task_is_not_a_repeat_of_one_that_does_not_exist(self, store):
        objective_id = await begin(store)
        _, made = await finish_one(store, objective_id, proposals=[Proposal(name="B", repeats=77)])
        assert [task.name for task in made] == ["B"]

    @pytest.mark.parametrize("is_newer", [True, False])
    async def test_a_task_that_was_given_up_comes_again_only_when_there_is_a_newer_result(
        self, store, clock, is_newer
    ):
        objective_id = await begin(store, "Read K-17")
        news, dead = [await store.claim_task(objective_id, "w") for _ in range(2)]
        if is_newer:
            await store.fail_task(dead, error="no", max_failures=1)
            clock.tick(1)
            await store.record_result(news, text="K-17 is in the cellar", origins=[])
        else:
            await store.record_result(news, text="K-17 is in the cellar", origins=[])
            clock.tick(1)
            await store.fail_task(dead, error="no", max_failures=1)
        again = Proposal(name="Read K-17", parent_id=1)
        made = await plan_from(store, objective_id, proposals=(again,))
        assert len(made) == is_newer

    @pytest.mark.parametrize("is_checked", [True, False])
    async def test_what_a_task_for_a_missing_part_lacks_comes_again_after_it_was_given_up(
        self, store, clock, is_checked
    ):
        objective_id = await begin(store, "Read K-17")
        await finish_one(store, objective_id)
        await store.fail_task(await store.claim_task(objective_id, "w"), error="no", max_failures=1)
        clock.tick(1)
        if is_checked:
            await check(store, objective_id, Proposal(name="Sum up"))
        else:
            await store.add_tasks(objective_id, [Proposal(name="Sum up")])
        await lack_in(store, objective_id)
        parent_id = (await store.tasks(objective_id))[-1].id
        again = Proposal(name="Read K-17", parent_id=parent_id)
        made = await plan_from(store, objective_id, proposals=(again,))
        assert len(made) == is_checked

    async def test_without_news_a_task_comes_again_at_most_four_times(self, store):
        objective_id = await begin(store, "Read K-17")
        await finish_one(store, objective_id, text="nothing of it")
        await store.fail_task(await store.claim_task(objective_id, "w"), error="no", max_failures=1)
        n_tasks = []
        for n in range(6):
            await check(
                store, objective_id, Proposal(name="Read K-17"), Proposal(name=f"Fill in {n}")
            )
            n_tasks.append(await names_of(store, objective_id))
            for task in await store.tasks(objective_id, statuses=[TaskStatus.QUEUED]):
                if task.name == "Read K-17":
                    await store.fail_task(
                        await store.claim_task(objective_id, "w"), error="no", max_failures=1
                    )
                else:
                    await finish_one(store, objective_id, text="nothing of it")
        assert [names.count("Read K-17") for names in n_tasks] == [2, 3, 4, 5, 5, 5]

    async def test_even_with_news_a_task_comes_again_at_most_twelve_times(self, store, clock):
        objective_id = await begin(store, "Read K-17")
        await store.cancel_task(objective_id, 1)
        await store.fail_task(await store.claim_task(objective_id, "w"), error="no", max_failures=1)
        n_added = []
        for n in range(14):
            clock.tick(1)
            await store.renew_lease("w", lease_s=30)
            await store.add_tasks(objective_id, [Proposal(name=f"Look {n}")])
            _, made = await finish_one(
                store,
                objective_id,
                text="K-17 is in the cellar",
                proposals=[Proposal(name="Read K-17")],
            )
            n_added.append(len(made))
            if made:
                await store.fail_task(
                    await store.claim_task(objective_id, "w"), error="no", max_failures=1
                )
        assert n_added == [1] * 12 + [0, 0]

    # -- what proposals come after
    # -------------------------------------------------------------------------------------------

    async def after_of(self, store, objective_id, *proposals):
        """What each new task comes after, by names, and what was dropped of it."""
        _, made = await finish_one(store, objective_id, proposals=proposals)
        names = {task.id: task.name for task in await store.tasks(objective_id)}
        after = {
            task.name: [
                names[task_id] for task_id in (await store.task(objective_id, task.id)).after
            ]
            for task in made
        }
        dropped = [
            (names[task_id], data["named"])
            for task_id, data in await events_of(store, objective_id, events.TASK_AFTER_DROPPED)
        ]
        return after, dropped

    async def test_proposals_name_each_other_by_letter_and_by_name_also_before_they_are_proposed(
        self, store
    ):
        objective_id = await begin(store)
        proposals = (
            Proposal(name="Compare them", label="c", after=("A", " b ", "the price of Assam?")),
            Proposal(name="Read about Assam", label="a"),
            Proposal(name="Read about Ceylon", label="B", after=("read about ASSAM.",)),
            Proposal(name="Find the price of Assam"),
        )
        after, dropped = await self.after_of(store, objective_id, *proposals)
        assert after == {
            "Compare them": ["Read about Assam", "Read about Ceylon"],
            "Read about Assam": [],
            "Read about Ceylon": ["Read about Assam"],
            "Find the price of Assam": [],
        }
        assert dropped == [("Compare them", "the price of Assam?")]

    async def test_proposals_name_known_tasks_by_number_and_by_name_and_what_they_repeat_by_its_letter(
        self, store
    ):
        objective_id = await begin(store, "B", "C")
        proposals = (
            Proposal(name="D", label="2", after=(2, "make a LIST", "x")),
            Proposal(name="c!", label="x"),
            Proposal(name="B in other words", label="y", repeats=2),
            Proposal(name="E", after=("2", 3, 3, "y")),
        )
        after, dropped = await self.after_of(store, objective_id, *proposals)
        assert (after, dropped) == ({"D": ["B", "Make a list", "C"], "E": ["D", "C", "B"]}, [])

    async def test_a_dependency_that_cannot_be_kept_falls_away_and_an_event_says_so(self, store):
        objective_id = await begin(store)
        proposals = (
            Proposal(name="A", label="a", after=("a", 77, 0, -1, "nobody", " ")),
            Proposal(name=" ", label="blank"),
            Proposal(name="B", label="b", after=("c", "blank")),
            Proposal(name="C", label="c", after=("d",)),
            Proposal(name="D", label="d", after=("b", "a")),
        )
        after, dropped = await self.after_of(store, objective_id, *proposals)
        assert after == {"A": [], "B": ["C"], "C": ["D"], "D": ["A"]}
        assert dropped == [
            *[("A", named) for named in ("a", "77", "0", "-1", "nobody", " ")],
            ("B", "blank"),
            ("D", "b"),
        ]

    async def test_a_dependency_on_a_name_that_cannot_be_stored_is_looked_up_without_what_cannot(
        self, store
    ):
        objective_id = await begin(store, "B\x00 C")
        proposals = (
            Proposal(name="D", after=("b\x00 c", "\ud800", "\x00", "e\x00")),
            Proposal(name="E"),
        )
        after, dropped = await self.after_of(store, objective_id, *proposals)
        assert after == {"D": ["B C", "E"], "E": []}
        assert [name for name, _ in dropped] == ["D", "D"]

    async def test_a_persons_words_are_not_cut_and_an_agents_are(self, store):
        objective_id = await begin(store)
        names = [Proposal(name="x" * 3000), Proposal(name="y" * 3000, origins=("model:m",))]
        plan = await store.add_tasks(objective_id, names)
        assert [len(task.name) for task in plan] == [3000, 2000]

    async def test_a_number_names_no_task_that_is_proposed_with_it(self, store):
        objective_id = await begin(store)
        after, dropped = await self.after_of(
            store, objective_id, Proposal(name="A"), Proposal(name="B", after=(2,))
        )
        assert (after, dropped) == ({"A": [], "B": []}, [("B", "2")])

    async def test_a_task_that_brings_what_another_lacks_never_waits_for_that_other(self, store):
        objective_id = await begin(store)
        await store.add_tasks(objective_id, [Proposal(name="B", after=(1,))])
        await lack_in(store, objective_id)
        proposals = (
            Proposal(name="Find prices", parent_id=1, after=(1,)),
            Proposal(name="Ask", parent_id=1, after=(2,)),
        )
        await plan_from(
            store,
            objective_id,
            proposals=proposals,
            unanswered=(Unanswered(task_id=1, lack="", after=(2,)),),
        )
        assert [(task.id, task.after) for task in await store.tasks(objective_id)] == [
            (1, (3,)),
            (2, (1,)),
            (3, ()),
            (4, (2,)),
        ]
        dropped = await events_of(store, objective_id, events.TASK_AFTER_DROPPED)
        assert dropped == [(3, {"named": "1"}), (1, {"named": "4"}), (1, {"named": "2"})]
        assert [(await finish_one(store, objective_id))[0] for _ in range(4)] == [3, 1, 2, 4]

    async def test_what_is_proposed_for_another_task_may_wait_for_one_that_lacks_something(
        self, store
    ):
        objective_id = await begin(store, "B")
        await lack_in(store, objective_id)
        await store.record_result(await store.claim_task(objective_id, "w"), text="r", origins=[])
        proposals = (
            Proposal(name="Find prices", parent_id=1),
            Proposal(name="Sum up", parent_id=2, after=(1,)),
        )
        await plan_from(store, objective_id, proposals=proposals)
        assert [task.after for task in await store.tasks(objective_id)] == [(3,), (), (), (1,)]

    async def test_two_tasks_that_lack_something_never_wait_for_each_other(self, store):
        objective_id = await begin(store, "B")
        for _ in range(2):
            await lack_in(store, objective_id)
        unanswered = (
            Unanswered(task_id=1, lack="", after=(2,)),
            Unanswered(task_id=2, lack="", after=(1,)),
        )
        await plan_from(store, objective_id, unanswered=unanswered)
        assert [task.after for task in await store.tasks(objective_id)] == [(2,), ()]
        assert (await store.claim_task(objective_id, "w")).task.id == 2

    # -- workers
    # ----------------------------------------------------------------------------------------------

    async def lose_worker(self, store, clock, objective_id, worker_id, *, steps=()):
        """Let a worker claim a task, record these steps of it, and be silent for longer than its
        lease; returns the task then."""
        await join(store, make_worker(worker_id), objective_id)
        claim = await store.claim_task(objective_id, worker_id)
        for kind in steps:
            key = f"{claim.fence.claim_no}/{kind}"
            await store.record_step(
                claim.fence, Kept(key=key, kind=kind, request_hash="h", output="{}")
            )
        clock.tick(31)
        assert await store.reap_workers() == 1
        return await store.task(objective_id, claim.task.id)

    async def test_lost_workers_are_no_failures_and_ten_in_a_row_without_progress_end_a_task(
        self, store, clock
    ):
        objective_id = await begin(store)
        for n in range(1, lifecycle.MAX_LOST):
            task = await self.lose_worker(store, clock, objective_id, f"w{n}", steps=["inputs"])
            assert (task.status, task.n_lost, task.failures, task.try_no) == (
                TaskStatus.QUEUED,
                n,
                0,
                1,
            )
            clock.tick(lifecycle.MAX_LOST_PAUSE_S)
        task = await self.lose_worker(store, clock, objective_id, "last")
        assert (task.status, task.n_lost, task.failures) == (TaskStatus.DEAD, 10, 0)
        assert task.error == "10 workers in a row were lost while they worked on this task"
        assert (await kinds_of(store, objective_id))[-2:] == [events.TASK_DEAD, events.WORKER_LOST]
        assert await store.workers() == []
        task = await store.retry_task(objective_id, 1)
        assert (task.status, task.n_lost) == (TaskStatus.QUEUED, 0)

    async def test_a_task_that_gets_further_with_each_lost_worker_is_never_given_up(
        self, store, clock
    ):
        objective_id = await begin(store)
        for n in range(2 * lifecycle.MAX_LOST):
            task = await self.lose_worker(
                store, clock, objective_id, f"w{n}", steps=["inputs", "tool"]
            )
            assert (task.status, task.n_lost) == (TaskStatus.QUEUED, 1)

    @pytest.mark.parametrize("progress", ["a late answer", "a failed try", "an answer of a person"])
    async def test_any_recorded_step_resets_the_count_of_lost_workers(self, store, clock, progress):
        objective_id = await begin(store)
        fence = (await store.claim_task(objective_id, "w")).fence
        await store.intend_step(
            fence, intention=Intention(key="1/x", kind="model", request_hash="h", reservation=CALL)
        )
        clock.tick(31)
        await store.reap_workers()
        assert (await self.lose_worker(store, clock, objective_id, "v")).n_lost == 2
        clock.tick(1)
        if progress == "a late answer":
            await store.record_step(fence, Outcome(key="1/x", output='"late"', usage=SPENT))
        else:
            await join(store, make_worker("u"), objective_id)
            claim = await store.claim_task(objective_id, "u")
        if progress == "a failed try":
            await store.fail_task(claim, error="no", max_failures=3)
        if progress == "an answer of a person":
            step = await store.park_task(claim.fence, key="1/q", kind="question", request="{}")
            await store.answer_step(step.id, output="{}")
        assert (await store.task(objective_id, 1)).n_lost == 0

    async def test_a_worker_that_leaves_or_gives_back_in_between_does_not_let_the_count_begin_anew(
        self, store, clock
    ):
        objective_id = await begin(store)
        await store.release(await store.claim_task(objective_id, "w"))
        assert (await self.lose_worker(store, clock, objective_id, "v")).n_lost == 1
        await join(store, make_worker("w"), objective_id)
        await store.claim_task(objective_id, "w")
        await store.remove_worker("w")
        assert (await store.task(objective_id, 1)).n_lost == 1

    async def test_the_waits_between_lost_workers_grow_and_the_first_costs_none(self, store, clock):
        objective_id = await begin(store)
        waits_s = []
        for n in range(1, lifecycle.MAX_LOST):
            task = await self.lose_worker(store, clock, objective_id, f"w{n}")
            waits_s.append((task.not_before - clock.now).total_seconds() if task.not_before else 0)
            clock.tick(waits_s[-1])
        assert waits_s == [0, 1, 2, 4, 8, 16, 32, 60, 60]

    async def test_no_worker_holds_two_tasks_that_may_be_what_kills_workers(self, store, clock):
        objective_id = await begin(store, "B", "C")
        for _ in range(lifecycle.SUSPECT_FROM):
            await join(store, make_worker("w"), objective_id)
            assert [(await store.claim_task(objective_id, "w")).task.id for _ in range(2)] == [1, 2]
            clock.tick(31)
            await store.reap_workers()
            clock.tick(lifecycle.MAX_LOST_PAUSE_S)
        await join(store, make_worker("v"), objective_id)
        await join(store, make_worker("u"), objective_id)
        claims = [
            await store.claim_task(objective_id, worker_id) for worker_id in ("v", "v", "v", "u")
        ]
        assert [claim and claim.task.id for claim in claims] == [1, 3, None, 2]
        await store.record_step(
            claims[0].fence, Kept(key="1/x", kind="tool", request_hash="h", output="{}")
        )
        await store.release(claims[3])
        assert (await store.claim_task(objective_id, "v")).task.id == 2, (
            "the first has got further, and is not suspected any more"
        )

    @pytest.mark.parametrize("jump_s", [-3600, 3600])
    async def test_a_clock_that_jumps_makes_no_task_and_no_duty_wait_longer(
        self, store, clock, jump_s
    ):
        objective_id = await begin(store)
        await store.release(await store.claim_task(objective_id, "w"), delay_s=100)
        clock.tick(jump_s)
        await join(store, make_worker("v"), objective_id)
        claim = await store.claim_task(objective_id, "v")
        await store.record_result(claim, text="r", origins=[])
        await store.release(await store.claim_duty(objective_id, "v", Duty.PLAN), delay_s=100)
        clock.tick(jump_s)
        await join(store, make_worker("u"), objective_id)
        assert await store.claim_duty(objective_id, "u", Duty.PLAN) is not None

    async def test_the_next_worker_plans_from_the_results_of_a_dead_one(self, store, clock):
        objective_id = await begin(store)
        await store.record_result(await store.claim_task(objective_id, "w"), text="r", origins=[])
        clock.tick(31)
        assert await store.reap_workers() == 0
        assert (await store.task(objective_id, 1)).failures == 0
        await join(store, make_worker("v"), objective_id)
        await plan_from(store, objective_id, worker_id="v")
        assert (await store.task(objective_id, 1)).status is TaskStatus.DONE

    async def test_a_worker_whose_lease_lives_is_not_reaped_unless_its_process_is_known_to_be_gone(
        self, store
    ):
        objective_id = await begin(store, worker_id="w")
        await store.claim_task(objective_id, "w")
        assert await store.reap_workers() == 0
        assert await store.reap_workers(silent={}, gone=["unknown"]) == 0
        assert await store.reap_workers(silent={}, gone=["w"]) == 1
        assert (await store.task(objective_id, 1)).n_lost == 1

    async def test_of_those_whose_lease_ran_out_only_who_has_not_renewed_it_since_is_reaped(
        self, store, clock
    ):
        objective_id = await begin(store, "B")
        await join(store, make_worker("v"), objective_id)
        for worker_id in ("v", "w"):
            await store.claim_task(objective_id, worker_id)
        clock.tick(31)
        silent = {one.id: one.lease_until for one in await store.workers() if one.has_run_out}
        await store.renew_lease("v", lease_s=30)
        clock.tick(31)
        assert await store.reap_workers(silent={}) == 0
        assert await store.reap_workers(silent=silent) == 1
        assert [worker.id for worker in await store.workers()] == ["v"]

    async def test_the_leases_say_whose_they_are_how_long_they_are_and_whether_they_ran_out_by_the_clock(
        self, store, clock
    ):
        await store.register_worker(make_worker("v", name="me", home="here"), lease_s=30)
        (worker,) = await store.workers()
        assert (worker.id, worker.name, worker.home) == ("v", "me", "here")
        assert (worker.lease_s, worker.lease_until) == (30, clock.now + timedelta(seconds=30))
        assert not worker.has_run_out
        clock.tick(31)
        assert (await store.workers())[0].has_run_out
        clock.tick(-3600)
        assert (await store.workers())[0].has_run_out, "further away than a lease may be"

    async def test_one_lease_holds_what_a_worker_has_of_all_its_objectives(self, store, clock):
        first, second = await begin(store), await begin(store)
        await store.join_objective("w", first)
        assert None not in [await store.claim_task(first, "w"), await store.claim_task(second, "w")]
        clock.tick(20)
        await store.renew_lease("w", lease_s=30)
        clock.tick(20)
        assert [
            (await store.objective(objective_id)).active_s for objective_id in (first, second)
        ] == [40, 40]
        assert await store.reap_workers() == 0
        clock.tick(11)
        assert await store.reap_workers() == 2
        assert [(await kinds_of(store, objective_id))[-1] for objective_id in (first, second)] == [
            events.WORKER_LOST
        ] * 2

    async def test_who_has_not_joined_is_given_nothing(self, store):
        objective_id = await begin(store, "B", "C")
        await store.register_worker(make_worker("v"), lease_s=30)
        assert await store.claim_task(objective_id, "v") is None
        assert await store.claim_duty(objective_id, "v", Duty.ORDER) is None
        with pytest.raises(LeaseLostError):
            await store.join_objective("unknown", objective_id)
        with pytest.raises(NotFoundError):
            await store.join_objective("v", 99)
        await store.join_objective("v", objective_id)
        assert await store.claim_task(objective_id, "v") is not None

    async def test_a_hindered_worker_is_given_nothing_and_lets_no_time_pass(self, store, clock):
        objective_id = await begin(store, "B", "C")
        clock.tick(5)
        await store.join_objective("w", objective_id, blocked_reason="no folder\nhere")
        await store.join_objective("w", objective_id, blocked_reason="no folder\nhere")
        assert await store.claim_task(objective_id, "w") is None
        assert await store.claim_duty(objective_id, "w", Duty.ORDER) is None
        clock.tick(20)
        await store.join_objective("w", objective_id)
        clock.tick(2)
        assert (await store.objective(objective_id)).active_s == 7
        assert await store.claim_task(objective_id, "w") is not None
        joined = [
            event.data.get("hindrance")
            for event in await store.events(objective_id)
            if event.kind.startswith("worker.")
        ]
        assert joined == [None, "no folder here", None]

    async def test_leaving_one_objective_gives_back_what_is_held_of_it_and_nothing_else(
        self, store
    ):
        first, second = await begin(store), await begin(store)
        await store.join_objective("w", first)
        claims = [await store.claim_task(objective_id, "w") for objective_id in (first, second)]
        await store.remove_worker("w", objective_id=first)
        await store.remove_worker("w", objective_id=first)
        with pytest.raises(LeaseLostError):
            await store.record_result(claims[0], text="late", origins=[])
        assert (await store.task(first, 1)).status is TaskStatus.QUEUED
        assert await store.claim_task(first, "w") is None
        await store.record_result(claims[1], text="in time", origins=[])
        assert (await kinds_of(store, first))[-1] == events.WORKER_LEFT

    async def test_the_workers_are_seen_with_what_they_hold_and_what_keeps_them(self, store, clock):
        objective_id = await begin(store, "B", "C")
        await join(store, make_worker("v", home="there"), objective_id)
        await store.join_objective("v", objective_id, blocked_reason="no key")
        await store.claim_task(objective_id, "w")
        await store.claim_duty(objective_id, "w", Duty.ORDER)
        clock.tick(10)
        v, w = await store.workers()
        (of_v,), (of_w,) = v.joined, w.joined
        assert (v.home, v.lease_left_s, of_v.blocked_reason, of_v.task_ids, of_v.duties) == (
            "there",
            20,
            "no key",
            (),
            (),
        )
        assert (of_w.objective_id, of_w.blocked_reason, of_w.task_ids, of_w.duties) == (
            objective_id,
            "",
            (1,),
            (Duty.ORDER,),
        )
        assert w.since == of_w.since == clock.now - timedelta(seconds=10)

    async def test_standing_says_what_a_claim_would_find(self, store):
        objective_id = await begin(store, "B", "C")
        assert await open_ids(store) == [objective_id]

        async def look():
            claimable = await store.claimable(objective_id)
            return (
                claimable.has_task,
                claimable.n_startable,
                claimable.duties,
                claimable.conclusion,
            )

        assert await look() == (True, 3, (Duty.ORDER,), None)
        await finish_one(store, objective_id)
        await store.record_result(await store.claim_task(objective_id, "w"), text="r", origins=[])
        assert await look() == (True, 1, (Duty.PLAN,), None)
        await plan_from(store, objective_id, is_met=True)
        assert await look() == (False, 0, (Duty.CHECK,), None)
        await check(store, objective_id)
        await finish_one(store, objective_id)
        assert await look() == (False, 0, (Duty.CHECK,), None)
        await check(store, objective_id, is_met=True)
        assert (await look(), await open_ids(store)) == (
            (False, 0, (Duty.REPORT,), None),
            [objective_id],
        )
        await store.record_report(
            await store.claim_duty(objective_id, "w", Duty.REPORT), markdown="# Report"
        )
        assert (await look(), await open_ids(store)) == ((False, 0, (), None), [])
        with pytest.raises(NotFoundError):
            await store.claimable(99)

    async def test_all_that_a_planning_is_made_from_is_read_at_once(self, store):
        objective_id = await begin(store, "B", "C")
        await finish_one(store, objective_id)
        for text in ("of B", "of C"):
            claim = await store.claim_task(objective_id, "w")
            await store.record_result(claim, text=text, origins=["model:m"])
        seen = await store.plannable(objective_id, n_results=1, n_finished=9, limit=2)
        assert [task.name for task in seen.recorded] == ["B", "C"]
        assert [result.text for result in seen.results] == ["of B"]
        assert seen.finished_ids == (1,)
        assert [name.name for name in seen.listed.names] == ["B", "C"]
        assert seen.listed == await store.task_names(objective_id, limit=2)
        with pytest.raises(NotFoundError):
            await store.plannable(99, n_results=1, n_finished=1, limit=1)

    async def test_names_after_an_event_are_those_that_are_new_or_have_changed(self, store):
        objective_id = await begin(store, "B", "C")
        read = await store.task_names(objective_id, limit=9)
        known = {name.id: name for name in read.names}

        async def names_after(change):
            nonlocal read
            done = await change
            read = await store.task_names(objective_id, limit=9, after_id=read.event_id)
            known.update({name.id: name for name in read.names})
            whole = await store.task_names(objective_id, limit=9)
            assert (tuple(known.values()), read.event_id) == (whole.names, whole.event_id)
            return done, [name.name for name in read.names]

        assert (await names_after(finish_one(store, objective_id)))[1] == ["Make a list"]
        assert (await names_after(store.cancel_task(objective_id, 2)))[1] == ["B"]
        assert (await names_after(store.cancel_task(objective_id, 3, replacement="D")))[1] == [
            "C",
            "D",
        ]
        claim, names = await names_after(store.claim_task(objective_id, "w"))
        assert names == ["D"]
        await names_after(store.fail_task(claim, error="e", max_failures=1))
        await names_after(store.retry_task(objective_id, claim.task.id))
        await names_after(lack_in(store, objective_id))
        await names_after(plan_from(store, objective_id))
        claim, _ = await names_after(store.claim_task(objective_id, "w"))
        await names_after(store.release(claim))
        claim, _ = await names_after(store.claim_task(objective_id, "w"))
        await names_after(store.park_task(claim.fence, key="1/q", kind="question", request="{}"))
        await names_after(store.end_objective(objective_id, reason=StopReason.CANCELLED))
        assert (await names_after(store.objective(objective_id)))[1] == []
        newest = await store.task_names(objective_id, limit=1, after_id=1)
        assert [name.name for name in newest.names] == ["D"]
        with pytest.raises(NotFoundError):
            await store.task_names(99, limit=1, after_id=1)

    async def test_a_duty_is_new_until_somebody_has_held_it(self, store):
        objective_id = await begin(store)
        await store.record_result(await store.claim_task(objective_id, "w"), text="r", origins=[])
        planning = await store.claim_duty(objective_id, "w", Duty.PLAN)
        await store.release(planning)
        again = await store.claim_duty(objective_id, "w", Duty.PLAN)
        await store.record_plan(
            again, task_ids=[1], plan=Planned(proposals=(Proposal(name="B", parent_id=1),))
        )
        await store.record_result(await store.claim_task(objective_id, "w"), text="s", origins=[])
        following = await store.claim_duty(objective_id, "w", Duty.PLAN)
        assert (planning.is_new, again.is_new, following.is_new) == (True, False, True)

    async def test_the_steps_of_several_owners_are_read_together(self, store):
        objective_id = await begin(store, "B")
        for key in ("a", "b"):
            claim = await store.claim_task(objective_id, "w")
            await store.record_step(claim.fence, replace(KEPT, key=key))
            await store.record_step(claim.fence, replace(KEPT, key=f"{key} too"))
        one, two = [await store.steps(objective_id, owner=f"task:{id_}") for id_ in (1, 2)]
        assert [step.key for step in two] == ["b", "b too"]
        owners = ["task:2", "task:1", "task:9"]
        found = await store.steps(objective_id, owner=owners)
        assert found == sorted([*one, *two], key=lambda step: step.id)

    async def test_results_that_are_owed_to_the_index_are_read_with_their_vectors(self, store):
        objective_id = await begin(store, "B", "C")
        assert (await store.pending_results(objective_id, space="s", limit=9)).n_results == 0
        await finish_with(store, objective_id, "one", "two", "three")
        await store.store_vectors(objective_id, space="s", vectors={1: b"1", 2: b"2"})
        await store.store_vectors(objective_id, space="other", vectors={3: b"3"})
        await store.mark_indexed(objective_id, task_ids=[1])
        pending = await store.pending_results(objective_id, space="s", limit=9)
        assert (pending.n_results, pending.vectors) == (3, {2: b"2"})
        assert list(pending.results) == await store.results(
            objective_id, only_unindexed=True, limit=9
        )
        found = await store.pending_results(
            objective_id, space="s", limit=1, words=["three", "one"], n_found=1
        )
        assert (len(found.results), pending.with_words) == (1, ())
        assert len(found.with_words) == 1
        with pytest.raises(NotFoundError):
            await store.pending_results(99, space="s", limit=9)

    async def test_words_and_marks_are_searched_apart_and_common_words_are_named(self, store):
        n_results = COMMON_WORD + 1
        objective_id = await begin(store, *[f"T{n}" for n in range(n_results - 1)])
        await finish_with(store, objective_id, *[f"lake {n}" for n in range(n_results)])

        found = await store.pending_results(
            objective_id, space="s", limit=1, words=["lake", "7"], marks=["9"], n_found=5
        )

        assert (found.with_words, found.with_marks) == ((8,), (10,))
        assert found.common_words == {"lake"}

    async def test_the_events_of_one_change_keep_their_order_and_every_character(self, store):
        objective_id = await begin(store)
        names = [f'{number} \\u0000 "\\" \'%s :now_us é 🙂 \u2028' for number in range(30)]
        plan = await store.add_tasks(objective_id, [Proposal(name=name) for name in names])
        await store.append_event(
            objective_id, kind="odd", task_id=None, data={"said": "\x00\ud800", "n": 2**60}
        )
        *added, odd = (await store.events(objective_id))[-31:]
        assert [event.data["name"] for event in added] == [task.name for task in plan]
        assert [event.task_id for event in added] == [task.id for task in plan]
        assert (odd.data, odd.task_id) == ({"said": "\x00\ud800", "n": 2**60}, None)
        assert (await store.verify()).damages == ()

    async def test_looking_and_claiming_are_one_transaction(self, store):
        objective_id = await begin(store, "B", "C")
        seen, claim = await store.claim_next(objective_id, "w", deferral=NOTHING_WAITS)
        assert seen == replace(await store.claimable(objective_id), duties=(Duty.ORDER,))
        assert (claim.duty, claim.fence.claim_no) == (Duty.ORDER, 1)
        first = (await store.claim_next(objective_id, "w", deferral=NOTHING_WAITS))[1]
        assert (first.task.name, first.fence.owner) == ("Make a list", "task:1")
        await store.record_result(first, text="r", origins=[])
        planning = (await store.claim_next(objective_id, "w", deferral=NOTHING_WAITS))[1]
        assert planning.duty is Duty.PLAN
        await store.record_plan(planning, task_ids=[1], plan=Planned())
        assert (await store.task(objective_id, 1)).status is TaskStatus.DONE

    async def test_a_duty_that_is_better_done_later_is_passed_over(self, store):
        objective_id = await begin(store, "B", "C")
        later = Deferral(min_startable=4, min_unordered=0, min_recorded=2)
        claim = (await store.claim_next(objective_id, "w", deferral=later))[1]
        assert claim.task.id == 1
        await store.record_result(claim, text="r", origins=[])
        seen, claim = await store.claim_next(objective_id, "w", deferral=later)
        assert (seen.duties, claim.task.id) == ((Duty.PLAN, Duty.ORDER), 2)
        await store.record_result(claim, text="r", origins=[])
        seen, claim = await store.claim_next(objective_id, "w", deferral=later)
        assert (seen.n_recorded, claim.duty) == (2, Duty.PLAN)

    async def test_a_planning_waits_for_no_result_that_nobody_is_to_bring(self, store):
        objective_id = await begin(store)
        await store.record_result(await store.claim_task(objective_id, "w"), text="r", origins=[])
        later = Deferral(min_startable=4, min_unordered=0, min_recorded=2)
        assert (await store.claim_next(objective_id, "w", deferral=later))[1].duty is Duty.PLAN

    async def test_who_may_not_claim_sees_what_there_is_and_is_given_nothing(self, store, clock):
        objective_id = await begin(store)
        seen, claim = await store.claim_next(objective_id, "nobody", deferral=NOTHING_WAITS)
        assert (seen.has_task, claim) == (True, None)
        clock.tick(31)
        assert (await store.claim_next(objective_id, "w", deferral=NOTHING_WAITS))[1] is None
        assert (await store.task(objective_id, 1)).status is TaskStatus.QUEUED
        with pytest.raises(NotFoundError):
            await store.claim_next(99, "w", deferral=NOTHING_WAITS)

    async def test_an_order_that_is_owed_keeps_no_end_off(self, store):
        objective_id = await begin(store, limits=replace(NO_LIMITS, max_tasks=1))
        await finish_one(store, objective_id, proposals=[Proposal(name="B"), Proposal(name="C")])
        claimable = await store.claimable(objective_id)
        assert (claimable.has_task, claimable.duties) == (False, ()) and claimable.conclusion

    async def test_standing_says_when_concluding_would_end_the_objective(self, store):
        objective_id = await begin(store)
        await store.fail_task(await store.claim_task(objective_id, "w"), error="no", max_failures=1)
        claimable = await store.claimable(objective_id)
        assert (claimable.has_task, claimable.duties) == (False, ()) and claimable.conclusion

    async def test_a_lease_too_far_in_the_future_is_dead(self, store, clock):
        objective_id = await begin(store)
        await store.claim_task(objective_id, "w")
        clock.tick(-3600)
        assert await store.reap_workers() == 1

    async def test_a_renewed_lease_lives_on_and_a_reaped_one_is_lost(self, store, clock):
        objective_id = await begin(store)
        clock.tick(20)
        await store.renew_lease("w", lease_s=30)
        clock.tick(20)
        assert await store.reap_workers() == 0
        assert [worker.lease_until for worker in await store.workers()] == [
            clock.now + timedelta(seconds=10)
        ]
        clock.tick(11)
        await store.reap_workers()
        with pytest.raises(LeaseLostError):
            await store.renew_lease("w", lease_s=30)
        assert await store.claim_task(objective_id, "w") is None

    async def test_a_worker_that_leaves_gives_everything_back_without_a_failure(self, store):
        objective_id = await begin(store, "B")
        await store.claim_task(objective_id, "w")
        assert await store.claim_duty(objective_id, "w", Duty.INDEX) is None
        await store.remove_worker("w")
        await store.remove_worker("unknown")
        task = await store.task(objective_id, 1)
        assert (task.status, task.failures) == (TaskStatus.QUEUED, 0)
        assert (await kinds_of(store, objective_id))[-1] == events.WORKER_LEFT

    # -- time
    # ----------------------------------------------------------------------------------------------

    async def test_time_counts_while_a_worker_lives_and_the_objective_is_active(self, store, clock):
        objective_id = await begin(store)
        clock.tick(10)
        await store.renew_lease("w", lease_s=30)
        clock.tick(5)
        assert (await store.objective(objective_id)).active_s == 15
        await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
        clock.tick(20)
        await store.renew_lease("w", lease_s=30)
        await store.switch_objective(objective_id, to=ObjectiveStatus.ACTIVE)
        clock.tick(1)
        await store.remove_worker("w")
        clock.tick(500)
        await join(store, make_worker("v"), objective_id)
        clock.tick(2)
        assert (await store.objective(objective_id)).active_s == 18

    async def test_at_the_limit_of_time_nothing_is_given_out_and_the_objective_ends(
        self, store, clock
    ):
        objective_id = await begin(store, limits=replace(NO_LIMITS, max_time_s=10))
        claim = await store.claim_task(objective_id, "w")
        clock.tick(10)
        with pytest.raises(LimitReachedError) as caught:
            await store.intend_step(
                claim.fence,
                intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL),
            )
        assert (caught.value.limit, caught.value.is_final) == ("time", True)
        await store.release(claim)
        assert await store.claim_task(objective_id, "w") is None
        assert (await store.end_objective(objective_id)).stop_reason is StopReason.LIMIT_TIME

    # -- duties
    # ----------------------------------------------------------------------------------------------

    async def test_an_order_is_owed_when_two_are_queued_and_one_is_new(self, store):
        objective_id = await begin(store)
        assert await store.claim_duty(objective_id, "w", Duty.ORDER) is None
        await store.add_tasks(objective_id, [Proposal(name="B"), Proposal(name="C")])
        claim = await store.claim_duty(objective_id, "w", Duty.ORDER)
        assert claim.fence.owner == "order:0"
        assert await store.claim_duty(objective_id, "w", Duty.ORDER) is None
        await store.reorder(claim, revision=0, task_ids=[3, 99, 1, 3])
        assert await names_of(store, objective_id) == ["C", "B", "Make a list"]
        assert await store.claim_duty(objective_id, "w", Duty.ORDER) is None
        assert [(await store.claim_task(objective_id, "w")).task.id for _ in range(3)] == [3, 2, 1]

    async def test_no_order_is_owed_while_fewer_than_two_tasks_can_be_started(self, store):
        objective_id = await begin(store)
        await store.add_tasks(
            objective_id, [Proposal(name="B", after=(1,)), Proposal(name="C", after=(1,))]
        )
        assert await store.claim_duty(objective_id, "w", Duty.ORDER) is None
        await finish_one(store, objective_id)
        assert await store.claim_duty(objective_id, "w", Duty.ORDER) is not None

    async def test_tasks_added_while_the_prioritizer_thinks_stay_behind_and_are_still_new(
        self, store
    ):
        objective_id = await begin(store, "B")
        claim = await store.claim_duty(objective_id, "w", Duty.ORDER)
        taken = await store.claim_task(objective_id, "w")
        await store.add_tasks(objective_id, [Proposal(name="C")])
        await store.reorder(claim, revision=0, task_ids=[2, 1])
        assert await names_of(store, objective_id) == ["Make a list", "B", "C"]
        assert (await store.task(objective_id, taken.task.id)).rank == 1
        assert (await store.claim_duty(objective_id, "w", Duty.ORDER)).fence.owner == "order:1"

    async def test_a_stale_order_changes_nothing_and_the_duty_is_still_owed(self, store):
        objective_id = await begin(store, "B")
        claim = await store.claim_duty(objective_id, "w", Duty.ORDER)
        assert not await store.reorder(claim, revision=7, task_ids=[2, 1])
        assert await names_of(store, objective_id) == ["Make a list", "B"]
        assert (await store.claim_duty(objective_id, "w", Duty.ORDER)).fence.claim_no == 2

    async def test_the_window_shows_the_head_and_the_newest_each_once(self, store):
        objective_id = await begin(store, "B", "C", "D", "E")
        window = await store.window(objective_id, n_head=2, n_new=2)
        assert [task.name for task in window.tasks] == ["Make a list", "B", "D", "E"]
        assert window.revision == 0
        assert len((await store.window(objective_id, n_head=9, n_new=9)).tasks) == 5

    async def test_the_window_shows_what_is_at_work(self, store):
        objective_id = await begin(store, "B", "C", "D", "E")
        for _ in range(2):
            await finish_one(store, objective_id)
        recorded = await store.claim_task(objective_id, "w")
        await store.record_result(recorded, text="r", origins=[])
        await store.claim_task(objective_id, "w")
        window = await store.window(objective_id, n_head=9, n_new=9)
        assert [[task.id for task in tasks] for tasks in (window.tasks, window.at_work)] == [
            [5],
            [3, 4],
        ]

    async def test_a_claim_that_the_objective_is_met_stops_new_tasks_until_it_is_checked_beside_running_ones(
        self, store
    ):
        objective_id = await begin(store, "B", "C")
        running = await store.claim_task(objective_id, "w")
        await finish_one(store, objective_id, is_met=True)
        assert (await events_of(store, objective_id, events.OBJECTIVE_CLAIMED_MET)) == [
            (2, {"task_id": 2})
        ]
        assert await store.claim_task(objective_id, "w") is None
        assert await store.claim_duty(objective_id, "w", Duty.ORDER) is None
        assert (await store.end_objective(objective_id)).status is ObjectiveStatus.ACTIVE
        claim = await store.claim_duty(objective_id, "w", Duty.CHECK)
        assert claim.fence.owner == "check:1"
        assert (
            await store.finish_check(claim, is_met=False, reason="not yet")
        ).status is ObjectiveStatus.ACTIVE
        await finish_one(store, objective_id, proposals=[Proposal(name="last")], is_met=True)
        claim = await store.claim_duty(objective_id, "w", Duty.CHECK)
        assert claim.fence.owner == "check:2"
        ended = await store.finish_check(claim, is_met=True, reason="all there")
        assert (ended.stop_reason, ended.stop_detail) == (StopReason.OBJECTIVE_MET, "all there")
        assert await names_of(store, objective_id, TaskStatus.CANCELLED) == ["last"]
        await store.record_result(running, text="r", origins=[])
        assert len(await store.results(objective_id)) == 3

    async def test_recorded_tasks_are_planned_from_even_while_a_check_is_owed(self, store):
        objective_id = await begin(store, "B")
        await store.record_result(await store.claim_task(objective_id, "w"), text="r", origins=[])
        await finish_one(store, objective_id, is_met=True)
        assert (await store.claimable(objective_id)).duties == (Duty.CHECK, Duty.PLAN)
        await plan_from(store, objective_id)
        assert ((await store.standing(objective_id)).counts)[TaskStatus.DONE] == 2

    @pytest.mark.parametrize(
        "left", ["running", "recorded", "delayed", "asked a person", "blocked by a delayed one"]
    )
    async def test_no_check_is_owed_while_something_is_left_that_can_go_on(self, store, left):
        objective_id = await begin(store, "B")
        await finish_one(store, objective_id)
        claim = await store.claim_task(objective_id, "w")
        match left:
            case "recorded":
                await store.record_result(claim, text="r", origins=[])
            case "delayed":
                await store.release(claim, delay_s=5)
            case "asked a person":
                await store.park_task(claim.fence, key="1/q", kind="question", request="{}")
            case "blocked by a delayed one":
                await store.add_tasks(objective_id, [Proposal(name="C", after=(2,))])
                await store.release(claim, delay_s=5)
        assert await store.claim_duty(objective_id, "w", Duty.CHECK) is None

    async def test_the_report_is_owed_once_the_end_has_come_and_nobody_holds_a_task(self, store):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        await store.end_objective(objective_id, reason=StopReason.FAILED)
        assert await store.claim_duty(objective_id, "w", Duty.REPORT) is None
        await store.release(claim)
        report = await store.claim_duty(objective_id, "w", Duty.REPORT)
        await store.record_report(report, markdown="# Tea")
        assert await store.report(objective_id) == "# Tea"
        assert await store.claim_duty(objective_id, "w", Duty.REPORT) is None
        with pytest.raises(LeaseLostError):
            await store.record_report(report, markdown="# again")

    async def test_a_released_duty_waits_and_a_dead_workers_duty_is_free(self, store, clock):
        objective_id = await begin(store, "B")
        claim = await store.claim_duty(objective_id, "w", Duty.ORDER)
        await store.release(claim, delay_s=5)
        assert await store.claim_duty(objective_id, "w", Duty.ORDER) is None
        clock.tick(5)
        held = await store.claim_duty(objective_id, "w", Duty.ORDER)
        clock.tick(31)
        assert await store.reap_workers() == 0
        await join(store, make_worker("v"), objective_id)
        assert await store.claim_duty(objective_id, "v", Duty.ORDER) is not None
        with pytest.raises(LeaseLostError):
            await store.reorder(held, revision=0, task_ids=[])

    # -- checks
    # ----------------------------------------------------------------------------------------------

    async def test_a_check_stores_the_answered_parts_and_adds_tasks_for_the_missing_ones(
        self, store
    ):
        objective_id = await begin(store)
        await finish_one(store, objective_id)
        part = CheckedPart(part="a list", task_id=1, quote="found by")
        proposals = (Proposal(name="Find prices", label="p"), Proposal(name="Sum up", after=("p",)))
        objective = await check(
            store,
            objective_id,
            *proposals,
            parts=(part,),
            missing=("prices\ud800", "more"),
            reason="not all",
        )
        assert objective == await store.objective(objective_id)
        assert (objective.status, objective.checks.parts) == (ObjectiveStatus.ACTIVE, (part,))
        assert await names_of(store, objective_id, TaskStatus.QUEUED) == ["Find prices", "Sum up"]
        assert (await store.task(objective_id, 3)).after == (2,)
        assert await events_of(store, objective_id, events.OBJECTIVE_CHECKED) == [
            (
                None,
                {
                    "is_met": False,
                    "reason": "not all",
                    "n_parts": 1,
                    "missing": ["prices?", "more"],
                },
            )
        ]

    @pytest.mark.parametrize(
        ("names", "added"),
        [(["B"], ["Instead"]), ([], ["Instead"]), (["B", "C"], ["C"])],
        ids=["all there", "none", "one new"],
    )
    async def test_the_fallback_of_a_check_enters_the_list_where_nothing_else_does(
        self, store, names, added
    ):
        objective_id = await begin(store, "B")
        await store.cancel_task(objective_id, 2)
        await finish_one(store, objective_id)
        await check(
            store,
            objective_id,
            *[Proposal(name=name) for name in names],
            fallback=[Proposal(name="Instead")],
        )
        assert await names_of(store, objective_id, TaskStatus.QUEUED) == added
        assert [
            data["is_met"]
            for _, data in await events_of(store, objective_id, events.OBJECTIVE_CHECKED)
        ] == [False]

    async def test_unread_results_are_planned_from_before_a_check_adds_tasks(self, store):
        objective_id = await begin(store, "B")
        for text in ("found", "Done."):
            claim = await store.claim_task(objective_id, "w")
            await store.record_result(claim, text=text, origins=[], plan=Planned())

        await check(store, objective_id, Proposal(name="Instead"), unread=(1, 2))
        await store.add_tasks(objective_id, [Proposal(name="C", after=(2,))])

        assert await names_of(store, objective_id, TaskStatus.QUEUED) == ["C"]
        assert [
            task.id
            for task in await store.tasks(objective_id, statuses=[TaskStatus.RECORDED], limit=9)
        ] == [1, 2]
        await plan_from(store, objective_id, unanswered=(Unanswered(task_id=2, lack="a value"),))
        assert [one.text for one in await store.results(objective_id)] == ["found"]
        again = await store.claim_task(objective_id, "w")
        assert (again.task.id, again.task.n_lacks) == (2, 1)
        assert await store.claim_task(objective_id, "w") is None
        await store.record_result(again, text="7 kg", origins=[], plan=Planned())
        assert (await store.claim_task(objective_id, "w")).task.name == "C"

    async def test_a_result_that_is_planned_from_once_more_counts_once(self, store):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        await store.record_result(claim, text="found", origins=[], plan=Planned())
        n_answers = (await check(store, objective_id, unread=(1,))).checks.n_answers

        await plan_from(store, objective_id)

        assert (await check(store, objective_id)).checks.n_answers == n_answers == 1

    async def test_a_lost_check_changes_nothing(self, store, clock):
        objective_id = await begin(store)
        await finish_one(store, objective_id)
        zombie = await store.claim_duty(objective_id, "w", Duty.CHECK)
        clock.tick(31)
        await store.reap_workers()
        await join(store, make_worker("v"), objective_id)
        with pytest.raises(LeaseLostError):
            await store.finish_check(zombie, is_met=True, reason="late")
        assert (await store.objective(objective_id)).status is ObjectiveStatus.ACTIVE
        claim = await store.claim_duty(objective_id, "v", Duty.CHECK)
        assert (claim.fence.owner, claim.fence.claim_no) == ("check:1", 2)

    async def rounds_until_unmet(self, store, objective_id, *, missing, answered=(), adds=True):
        """How many checks of an empty list it takes until the objective ends as unmet, at most one
        for each number of missing parts.

        Args:
            answered: after which of them what is asked for is answered; after the others it is
                given up.
        """
        for n, n_missing in enumerate(missing, start=1):
            proposals = [Proposal(name=f"Fill in {n}")] if adds else []
            objective = await check(store, objective_id, *proposals, missing=("part",) * n_missing)
            if objective.status is ObjectiveStatus.ENDED:
                assert (objective.stop_reason, objective.stop_detail) == (
                    StopReason.UNMET,
                    "because",
                )
                return n
            if adds and n in answered:
                await finish_one(store, objective_id)
            elif adds:
                await store.fail_task(
                    await store.claim_task(objective_id, "w"), error="no", max_failures=1
                )
        return None

    @pytest.mark.parametrize(
        ("answered", "missing", "adds", "n_rounds"),
        [
            ((), [1] * 20, True, 4),  # the first one compares with none before it
            ((), [1] * 20, False, 3),
            ((), [9, 8, 7, 6, 5], True, 4),
            ([3], [1] * 20, True, 7),
            (range(99), [2] * 20, True, 11),
            (range(99), [2] * 10 + [1] * 20, True, 21),
            (range(99), [2] * 10 + [3, 1], True, 11),
            (range(99), range(30, 15, -1), True, None),
        ],
        ids=[
            "no answer",
            "nothing to ask for",
            "no answer, fewer parts",
            "an answer",
            "no fewer",
            "fewer",
            "more",
            "always fewer",
        ],
    )
    async def test_asking_for_what_is_missing_ends_as_unmet_when_it_has_brought_nothing_often_enough(
        self, store, answered, missing, adds, n_rounds
    ):
        objective_id = await begin(store)
        await finish_one(store, objective_id)
        assert (
            await self.rounds_until_unmet(
                store, objective_id, answered=answered, missing=missing, adds=adds
            )
            == n_rounds
        )

    async def test_a_refuted_claim_is_not_taken_up_again_before_there_is_a_new_answer(self, store):
        objective_id = await begin(store, "B", "C", "D", "E")
        await finish_one(store, objective_id, is_met=True)
        await check(store, objective_id)
        await self.repeat(store, objective_id, 1)
        await finish_one(store, objective_id, is_met=True, repeats=(3,))
        assert len(await events_of(store, objective_id, events.OBJECTIVE_CLAIMED_MET)) == 1
        assert await store.claim_duty(objective_id, "w", Duty.CHECK) is None
        await finish_one(store, objective_id, is_met=True)
        assert (await store.claim_duty(objective_id, "w", Duty.CHECK)).fence.owner == "check:2"

    async def test_a_check_beside_open_tasks_counts_as_none_in_vain(self, store):
        objective_id = await begin(store, *(f"T{n}" for n in range(15)))
        for _ in range(14):
            await finish_one(store, objective_id, is_met=True)
            objective = await check(store, objective_id)
        assert (objective.status, objective.checks.n_idle, objective.checks.n_stuck) == (
            ObjectiveStatus.ACTIVE,
            0,
            0,
        )

    async def test_a_claim_on_an_empty_list_that_is_refuted_counts(self, store):
        objective_id = await begin(store)
        await finish_one(store, objective_id, is_met=True)
        assert (await check(store, objective_id)).checks.n_answers == 1
        assert (await check(store, objective_id)).checks.n_idle == 1

    async def test_a_change_by_a_person_resets_the_count_of_checks(self, store):
        objective_id = await begin(store)
        await finish_one(store, objective_id)
        assert await self.rounds_until_unmet(store, objective_id, missing=[1] * 3) is None
        await store.retry_task(objective_id, 2)
        assert (await store.objective(objective_id)).checks == Checks()
        await store.fail_task(await store.claim_task(objective_id, "w"), error="no", max_failures=1)
        assert await self.rounds_until_unmet(store, objective_id, missing=[1] * 20) == 4
        await store.extend_objective(objective_id, limits=NO_LIMITS)
        assert await self.rounds_until_unmet(store, objective_id, missing=[1] * 20, adds=False) == 3

    async def test_a_check_of_an_empty_list_does_not_finish_an_objective_that_was_given_a_task_meanwhile(
        self, store
    ):
        objective_id = await begin(store)
        await finish_one(store, objective_id)
        claim = await store.claim_duty(objective_id, "w", Duty.CHECK)
        await store.add_tasks(objective_id, [Proposal(name="And this")])
        objective = await store.finish_check(claim, is_met=True, reason="all there")
        assert objective.status is ObjectiveStatus.ACTIVE
        assert (await store.claim_task(objective_id, "w")).task.name == "And this"

    async def test_a_check_of_an_objective_that_ended_meanwhile_changes_its_end_no_more(
        self, store
    ):
        objective_id = await begin(store)
        await finish_one(store, objective_id)
        claim = await store.claim_duty(objective_id, "w", Duty.CHECK)
        await store.end_objective(objective_id, reason=StopReason.LIMIT_TIME)
        objective = await store.finish_check(claim, is_met=True, reason="all there")
        assert (objective.stop_reason, objective.stop_detail) == (StopReason.LIMIT_TIME, "")

    async def test_at_the_limit_of_time_no_check_is_owed(self, store, clock):
        objective_id = await begin(store, limits=replace(NO_LIMITS, max_time_s=10))
        await finish_one(store, objective_id, is_met=True)
        clock.tick(10)
        assert await store.claim_duty(objective_id, "w", Duty.CHECK) is None
        assert (await store.end_objective(objective_id)).stop_reason is StopReason.LIMIT_TIME

    # -- steps
    # ----------------------------------------------------------------------------------------------

    async def test_a_step_is_held_while_intended_and_counted_once_recorded(self, store):
        objective_id = await begin(store)
        fence = (await store.claim_task(objective_id, "w")).fence
        step = await store.intend_step(
            fence,
            intention=Intention(
                key="1/x", kind="model", request_hash="h", reservation=CALL, model="m"
            ),
        )
        assert step == await store.intend_step(
            fence,
            intention=Intention(key="1/x", kind="model", request_hash="other", reservation=CALL),
        )
        assert (await store.objective(objective_id)).held == CALL
        done = await store.record_step(
            fence, Outcome(key="1/x", output='{"a": 1}', usage=SPENT, origins=["person"])
        )
        objective = await store.objective(objective_id)
        assert (objective.held, objective.usage) == (Reservation(), SPENT)
        assert (await store.task(objective_id, 1)).usage == SPENT
        assert (done.state, done.output, done.model) == (StepState.DONE, '{"a": 1}', "m")
        assert await store.steps(objective_id, owner=fence.owner) == [done]
        assert (
            await store.intend_step(
                fence,
                intention=Intention(key="1/x", kind="model", request_hash="h2", reservation=CALL),
            )
            == done
        )

    async def test_an_outcome_that_is_recorded_again_under_its_claim_is_counted_once(self, store):
        objective_id = await begin(store)
        fence = (await store.claim_task(objective_id, "w")).fence
        await store.intend_step(
            fence, intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL)
        )
        first = await store.record_step(fence, Outcome(key="k", output="1", usage=SPENT))
        kinds = await kinds_of(store, objective_id)
        assert await store.record_step(fence, Outcome(key="k", output="1", usage=SPENT)) == first
        assert (
            (await store.objective(objective_id)).usage,
            await kinds_of(store, objective_id),
        ) == (SPENT, kinds)

    async def test_an_outcome_and_the_next_call_are_one_transaction(self, store):
        objective_id = await begin(store)
        fence = (await store.claim_task(objective_id, "w")).fence
        await store.intend_step(fence, intention=NEXT_CALL, first=KEPT)
        first, intention = Outcome(key="k", output="1", usage=SPENT), replace(NEXT_CALL, key="l")
        step = await store.intend_step(fence, intention=intention, first=first)
        # as a caller does to whom the commit seemed to fail
        assert step == await store.intend_step(fence, intention=intention, first=first)
        kept, done, intended = await store.steps(objective_id, owner=fence.owner)
        assert (kept.output, done.output, done.usage) == ('"kept"', "1", SPENT)
        assert (intended.key, intended.state) == ("l", StepState.INTENDED)
        objective = await store.objective(objective_id)
        assert (objective.usage, objective.held) == (SPENT, CALL)
        assert (await kinds_of(store, objective_id))[-4:] == [
            events.STEP_RECORDED,
            events.STEP_INTENDED,
            events.STEP_RECORDED,
            events.STEP_INTENDED,
        ]

    async def test_what_waits_as_the_outcome_of_a_call_answers_the_same_call(self, store):
        objective_id = await begin(store)
        fence = (await store.claim_task(objective_id, "w")).fence
        await store.intend_step(fence, intention=NEXT_CALL)
        first = Outcome(key=NEXT_CALL.key, output="1", usage=SPENT)

        step = await store.intend_step(fence, intention=NEXT_CALL, first=first)

        assert (step.state, step.output) == (StepState.DONE, "1")

    async def test_an_outcome_is_counted_before_the_next_call_is_held_against_the_limits(
        self, store
    ):
        objective_id = await begin(store, limits=replace(NO_LIMITS, max_tokens=2000))
        fence = (await store.claim_task(objective_id, "w")).fence
        await store.intend_step(fence, intention=NEXT_CALL, first=KEPT)
        first = Outcome(key="k", output="1", usage=SPENT)
        await store.intend_step(fence, intention=replace(NEXT_CALL, key="l"), first=first)
        with pytest.raises(LimitReachedError):
            await store.intend_step(
                fence, intention=replace(NEXT_CALL, key="m"), first=replace(first, key="l")
            )
        # where the next call must not be made, its companion is not recorded either
        (_, _, step) = await store.steps(objective_id, owner=fence.owner)
        assert step.state is StepState.INTENDED

    async def test_an_outcome_and_the_result_are_one_transaction(self, store, clock):
        objective_id = await begin(store)
        await store.claim_task(objective_id, "w")
        clock.tick(31)
        await store.reap_workers()
        clock.tick(60)
        await join(store, make_worker("v"), objective_id)
        claim = await store.claim_task(objective_id, "v")
        assert claim.task.n_lost == 1
        await store.intend_step(claim.fence, intention=NEXT_CALL, first=KEPT)
        first = Outcome(key="k", output="1", usage=SPENT, origins=("person",))
        for _ in range(2):  # the second as by a caller to whom the commit seemed to fail
            result = await store.record_result(claim, text="found", origins=[], first=first)
        assert result.text == "found"
        _, step = await store.steps(objective_id, owner="task:1")
        assert (step.state, step.output, step.n_unconfirmed) == (StepState.DONE, "1", 0)
        assert (await store.objective(objective_id)).usage == SPENT
        task = await store.task(objective_id, 1)
        assert (task.usage, task.n_lost) == (SPENT, 0)

    async def test_a_result_that_is_not_accepted_leaves_its_outcome_to_be_recorded_by_itself(
        self, store, clock
    ):
        objective_id = await begin(store)
        zombie = await store.claim_task(objective_id, "w")
        await store.intend_step(zombie.fence, intention=NEXT_CALL, first=KEPT)
        clock.tick(31)
        await store.reap_workers()
        first = Outcome(key="k", output="1", usage=SPENT)
        with pytest.raises(LeaseLostError):
            await store.record_result(zombie, text="late", origins=[], first=first)
        _, step = await store.steps(objective_id, owner="task:1")
        assert step.output is None
        done = await store.record_step(zombie.fence, Outcome(key="k", output="1", usage=SPENT))
        assert (done.output, done.n_unconfirmed) == ("1", 0)

    async def test_an_outcome_and_what_a_task_lacked_are_one_transaction(self, store):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        await store.intend_step(claim.fence, intention=NEXT_CALL, first=KEPT)
        first, lack = Outcome(key="k", output="1", usage=SPENT), Lack(what="prices", shown=())
        stranger = replace(claim, fence=replace(claim.fence, worker_id="v"))
        with pytest.raises(LeaseLostError):
            await store.record_lack(stranger, lack=lack, first=first)
        assert (await store.steps(objective_id, owner="task:1"))[1].output is None
        task = await store.record_lack(claim, lack=lack, first=first)
        assert (task.lack, task.usage) == (lack, SPENT)
        assert (await store.steps(objective_id, owner="task:1"))[1].output == "1"

    async def test_an_outcome_and_what_a_duty_makes_of_it_are_one_transaction(self, store):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        await store.record_result(claim, text="found", origins=[])
        planner = await store.claim_duty(objective_id, "w", Duty.PLAN)
        await store.intend_step(
            planner.fence,
            intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL),
        )
        first = Outcome(key="k", output="1", usage=SPENT)
        plan = Planned(proposals=tuple(Proposal(name=f"Task {n}") for n in range(3)))
        await store.record_plan(planner, task_ids=[1], plan=plan, first=first)
        (step,) = await store.steps(objective_id, owner=planner.fence.owner)
        assert (step.output, (await store.objective(objective_id)).usage) == ("1", SPENT)

        order = await store.claim_duty(objective_id, "w", Duty.ORDER)
        assert not await store.reorder(order, revision=7, task_ids=[4, 3, 2])
        order = await store.claim_duty(objective_id, "w", Duty.ORDER)
        assert await store.steps(objective_id, owner=order.fence.owner) == []
        await store.reorder(order, revision=0, task_ids=[4, 3, 2], first=KEPT)
        (step,) = await store.steps(objective_id, owner=order.fence.owner)
        assert step.output == '"kept"'

    async def test_a_step_left_open_may_have_been_paid_and_is_intended_anew(self, store, clock):
        objective_id = await begin(store)
        zombie = (await store.claim_task(objective_id, "w")).fence
        await store.intend_step(
            zombie, intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL)
        )
        clock.tick(31)
        await store.reap_workers()
        assert (await store.objective(objective_id)).held == Reservation()
        assert (await store.objective(objective_id)).usage == UNCONFIRMED
        (cut_off,) = await events_of(store, objective_id, events.STEP_ABANDONED)
        assert cut_off[1]["is_unconfirmed"]
        await join(store, make_worker("v"), objective_id)
        fence = (await store.claim_task(objective_id, "v")).fence
        await store.intend_step(
            fence, intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL)
        )
        first = await store.record_step(zombie, Outcome(key="k", output='"zombie"', usage=SPENT))
        assert (await store.objective(objective_id)).held == CALL
        second = await store.record_step(fence, Outcome(key="k", output='"later"', usage=SPENT))
        assert first.output == second.output == '"zombie"'
        objective = await store.objective(objective_id)
        assert objective.held == Reservation()
        # what was charged for the zombie's call is settled by its answer
        assert objective.usage == SPENT + SPENT

    async def test_under_an_earlier_claim_of_the_same_worker_no_call_begins_and_no_step_is_kept(
        self, store
    ):
        objective_id = await begin(store)
        old = await store.claim_task(objective_id, "w")
        await store.release(old)
        new = await store.claim_task(objective_id, "w")
        intention = Intention(key="1/x", kind="model", request_hash="h", reservation=CALL)

        with pytest.raises(LeaseLostError):
            await store.intend_step(old.fence, intention=intention)
        with pytest.raises(LeaseLostError):
            await store.record_step(old.fence, KEPT)
        assert await store.steps(objective_id, owner="task:1") == []
        await store.intend_step(new.fence, intention=intention)

    async def test_an_answer_after_its_claim_was_lost_settles_what_was_charged_for_it(
        self, store, clock
    ):
        objective_id = await begin(store, limits=replace(NO_LIMITS, max_cost_usd=0.012))
        zombie = (await store.claim_task(objective_id, "w")).fence
        await store.intend_step(
            zombie, intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL)
        )
        clock.tick(31)
        await store.reap_workers()
        (left_open,) = await store.steps(objective_id, owner="task:1")
        assert left_open.n_unconfirmed == 1
        answered = await store.record_step(zombie, Outcome(key="k", output="1", usage=SPENT))
        assert (answered.usage, answered.n_unconfirmed) == (SPENT, 0)
        assert (
            (await store.objective(objective_id)).usage
            == (await store.task(objective_id, 1)).usage
            == SPENT
        )

    async def test_a_call_that_failed_after_its_claim_was_lost_gives_back_what_was_charged_for_it(
        self, store, clock
    ):
        objective_id = await begin(store)
        zombie = (await store.claim_task(objective_id, "w")).fence
        await store.intend_step(
            zombie, intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL)
        )
        clock.tick(31)
        await store.reap_workers()
        await store.record_step(zombie, Outcome(key="k", output=None, usage=Usage()))
        assert (await store.objective(objective_id)).usage == Usage()
        assert await store.steps(objective_id, owner="task:1") == []

    async def test_a_late_failure_leaves_the_call_of_the_next_claim_as_it_is(self, store, clock):
        objective_id = await begin(store)
        zombie = (await store.claim_task(objective_id, "w")).fence
        await store.intend_step(
            zombie, intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL)
        )
        clock.tick(31)
        await store.reap_workers()
        await join(store, make_worker("v"), objective_id)
        fence = (await store.claim_task(objective_id, "v")).fence
        await store.intend_step(
            fence, intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL)
        )
        await store.record_step(zombie, Outcome(key="k", output=None, usage=SPENT))
        objective = await store.objective(objective_id)
        assert (objective.usage, objective.held) == (SPENT, CALL)

    async def test_an_abandoned_step_gives_its_reservation_back_and_counts_what_may_be_billed(
        self, store
    ):
        objective_id = await begin(store)
        fence = (await store.claim_task(objective_id, "w")).fence
        await store.intend_step(
            fence, intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL)
        )
        await store.record_step(fence, Outcome(key="k", output=None, usage=SPENT))
        objective = await store.objective(objective_id)
        assert (objective.held, objective.usage) == (Reservation(), SPENT)
        assert await store.steps(objective_id, owner=fence.owner) == []
        late = await store.record_step(fence, Outcome(key="k", output="1", usage=SPENT))
        assert (late.state, (await store.objective(objective_id)).usage) == (
            StepState.DONE,
            SPENT + SPENT,
        )

    async def test_the_limit_that_ends_a_run_is_named_also_while_calls_in_flight_hold_another(
        self, store
    ):
        objective_id = await begin(store, limits=replace(NO_LIMITS, max_calls=2, max_tokens=1000))
        fence = (await store.claim_task(objective_id, "w")).fence
        await store.intend_step(
            fence,
            intention=Intention(
                key="1", kind="model", request_hash="h", reservation=Reservation(calls=1, tokens=1)
            ),
        )
        with pytest.raises(LimitReachedError) as caught:
            await store.intend_step(
                fence,
                intention=Intention(
                    key="2",
                    kind="model",
                    request_hash="h",
                    reservation=Reservation(calls=1, tokens=5000),
                ),
            )
        assert (caught.value.limit, caught.value.is_final) == ("tokens", True)

    async def test_spent_and_held_never_exceed_a_limit_and_the_reports_slice_is_kept(self, store):
        objective_id = await begin(store, limits=replace(NO_LIMITS, max_calls=3))
        fence = (await store.claim_task(objective_id, "w")).fence
        one = Reservation(calls=1)
        await store.intend_step(
            fence, intention=Intention(key="1", kind="model", request_hash="h", reservation=one)
        )
        await store.intend_step(
            fence, intention=Intention(key="2", kind="model", request_hash="h", reservation=one)
        )
        with pytest.raises(LimitReachedError) as caught:
            await store.intend_step(
                fence, intention=Intention(key="3", kind="model", request_hash="h", reservation=one)
            )
        assert (caught.value.limit, caught.value.is_final) == ("calls", False)
        for key in ("1", "2"):
            await store.record_step(fence, Outcome(key=key, output="1", usage=Usage(calls=1)))
        with pytest.raises(LimitReachedError) as caught:
            await store.intend_step(
                fence, intention=Intention(key="3", kind="model", request_hash="h", reservation=one)
            )
        assert caught.value.is_final
        await store.release(await self._again(store, objective_id, fence))
        await store.end_objective(objective_id, reason=StopReason.LIMIT_CALLS)
        report = await store.claim_duty(objective_id, "w", Duty.REPORT)
        await store.intend_step(
            report.fence,
            intention=Intention(key="r", kind="model", request_hash="h", reservation=one),
        )
        with pytest.raises(LimitReachedError):
            await store.intend_step(
                report.fence,
                intention=Intention(key="s", kind="model", request_hash="h", reservation=one),
            )

    async def _again(self, store, objective_id, fence):
        return Claim(task=await store.task(objective_id, int(fence.owner[5:])), fence=fence)

    async def test_absurd_usage_never_lowers_what_was_spent(self, store):
        objective_id = await begin(store)
        fence = (await store.claim_task(objective_id, "w")).fence
        await store.record_step(fence, Outcome(key="1", output="1", usage=SPENT))
        bad = Usage(
            calls=-5, prompt_tokens=-(10**20), completion_tokens=10**20, cost_usd=float("nan")
        )
        await store.record_step(fence, Outcome(key="2", output="1", usage=bad))
        usage = (await store.objective(objective_id)).usage
        assert usage == SPENT + Usage(completion_tokens=10**12)

    @pytest.mark.parametrize(
        ("limits", "usage", "limit"),
        [
            ({"max_cost_usd": 1.0}, replace(SPENT, cost_usd=0.011), "cost"),
            (
                {"max_cost_usd": 1.0, "max_tokens": 10**6},
                replace(SPENT, prompt_tokens=10**9, cost_usd=10.0),
                "cost",
            ),
            ({"max_tokens": 10**6}, replace(SPENT, prompt_tokens=1001), "tokens"),
            ({"max_cost_usd": 1.0}, UNCONFIRMED, "cost"),
        ],
    )
    async def test_no_call_begins_after_an_answer_that_went_over_its_reservation_or_does_not_say_what_it_cost(
        self, store, limits, usage, limit
    ):
        objective_id = await begin(store, limits=replace(NO_LIMITS, **limits))
        fence = (await store.claim_task(objective_id, "w")).fence
        await store.intend_step(
            fence, intention=Intention(key="1", kind="model", request_hash="h", reservation=CALL)
        )
        await store.intend_step(
            fence, intention=Intention(key="2", kind="model", request_hash="h", reservation=CALL)
        )
        await store.record_step(fence, Outcome(key="1", output="1", usage=usage))
        with pytest.raises(LimitReachedError) as caught:
            await store.intend_step(
                fence,
                intention=Intention(key="3", kind="model", request_hash="h", reservation=CALL),
            )
        assert (caught.value.limit, caught.value.is_final) == (limit, True)
        assert (await kinds_of(store, objective_id)).count(events.STEP_OVERSPENT) == 1
        # what was in flight is counted
        await store.record_step(fence, Outcome(key="2", output="2", usage=SPENT))
        await store.release(await self._again(store, objective_id, fence))
        await store.end_objective(objective_id, reason=StopReason.LIMIT_COST)
        report = await store.claim_duty(objective_id, "w", Duty.REPORT)
        with pytest.raises(LimitReachedError):
            await store.intend_step(
                report.fence,
                intention=Intention(key="r", kind="model", request_hash="h", reservation=CALL),
            )
        await store.extend_objective(objective_id, limits=replace(NO_LIMITS, max_cost_usd=100.0))
        again = await store.claim_task(objective_id, "w")
        await store.intend_step(
            again.fence,
            intention=Intention(key="3", kind="model", request_hash="h", reservation=CALL),
        )

    async def test_an_answer_that_goes_over_its_reservation_stops_nothing_where_nothing_limits_it(
        self, store
    ):
        objective_id = await begin(store)
        fence = (await store.claim_task(objective_id, "w")).fence
        for key, usage in (("1", replace(SPENT, prompt_tokens=10**9)), ("2", UNCONFIRMED)):
            await store.intend_step(
                fence,
                intention=Intention(key=key, kind="model", request_hash="h", reservation=CALL),
            )
            await store.record_step(fence, Outcome(key=key, output="1", usage=usage))
        await store.intend_step(
            fence, intention=Intention(key="3", kind="model", request_hash="h", reservation=CALL)
        )
        objective = await store.objective(objective_id)
        assert objective.usage.unconfirmed_cost_usd == pytest.approx(0.01)
        assert (await store.task(objective_id, 1)).usage == objective.usage

    async def test_no_call_is_intended_while_paused_or_after_the_end(self, store):
        objective_id = await begin(store)
        fence = (await store.claim_task(objective_id, "w")).fence
        await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
        with pytest.raises(ObjectiveStoppedError):
            await store.intend_step(
                fence,
                intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL),
            )
        await store.switch_objective(objective_id, to=ObjectiveStatus.ACTIVE)
        await store.end_objective(objective_id, reason=StopReason.FAILED)
        with pytest.raises(ObjectiveStoppedError):
            await store.intend_step(
                fence,
                intention=Intention(key="k", kind="model", request_hash="h", reservation=CALL),
            )

    async def test_a_put_step_is_written_once_and_steps_keep_their_order(self, store):
        objective_id = await begin(store)
        fence = (await store.claim_task(objective_id, "w")).fence
        first = await store.record_step(
            fence, Kept(key="b", kind="inputs", request_hash="h", output="1", origins=["person"])
        )
        assert (
            await store.record_step(
                fence, Kept(key="b", kind="inputs", request_hash="h", output="2")
            )
            == first
        )
        await store.record_step(fence, Kept(key="a", kind="inputs", request_hash="h", output="3"))
        assert [step.key for step in await store.steps(objective_id, owner="task:1")] == ["b", "a"]

    # -- looking
    # ----------------------------------------------------------------------------------------------

    async def test_what_was_asked_is_kept_with_a_step(self, store):
        objective_id = await begin(store)
        fence = (await store.claim_task(objective_id, "w")).fence
        kept = Kept(key="b", kind="tool", request_hash="h", output="1", request='{"tool": "x"}')
        await store.record_step(fence, kept)
        intention = Intention(
            key="a", kind="model", request_hash="h", reservation=CALL, request="\ud800{}"
        )
        await store.intend_step(fence, intention=intention)
        await store.record_step(fence, Outcome(key="a", output="2", usage=Usage(calls=1)))
        found = await store.steps(
            objective_id, named=[("task:1", "a"), ("task:1", "none"), ("task:1", "b")]
        )
        assert [step.request for step in found] == ["?{}", '{"tool": "x"}']

    async def test_pages_of_tasks_of_one_status_hold_each_of_them_once_in_the_lists_order(
        self, store
    ):
        objective_id = await begin(store, *"BCDE")
        await store.move_task(objective_id, 5, to=Place.FIRST)
        await finish_one(store, objective_id)
        pages, last = [], None
        while page := await store.tasks(
            objective_id, statuses=[TaskStatus.QUEUED], after=last, limit=2
        ):
            pages.append([task.id for task in page])
            last = page[-1]
        assert pages == [[1, 2], [3, 4]]
        (done,) = await store.tasks(objective_id, statuses=[TaskStatus.DONE], limit=9)
        assert done.id == 5
        named = await store.tasks(objective_id, task_ids=[5, 1, 77])
        assert {task.id: task.status for task in named} == {
            5: TaskStatus.DONE,
            1: TaskStatus.QUEUED,
        }

    async def test_history_is_read_from_both_ends_and_of_one_task(self, store, clock):
        objective_id = await begin(store, "B")
        clock.tick(20)
        await finish_one(store, objective_id)
        every = await store.events(objective_id)
        middle = every[3]
        later = await store.events(objective_id, after_id=middle.id, limit=2)
        assert later == every[4:6]
        assert (
            await store.events(objective_id, after_id=middle.id, limit=2, from_end=True)
            == every[-2:]
        )
        of_two = [event for event in every if event.task_id == 2]
        assert await store.events(objective_id, task_id=2, limit=99) == of_two
        assert await store.events(objective_id, task_id=2, limit=1, from_end=True) == of_two[-1:]
        old = next(event.id for event in every if event.kind == events.TASK_CLAIMED) - 1
        assert await store.last_event_id(objective_id, older_than_s=10) == old
        assert await store.last_event_id(objective_id, older_than_s=500) == 0

    async def test_a_duty_has_an_owner_for_each_time_that_it_was_done(self, store):
        objective_id = await begin(store, "B")
        for _ in range(2):
            claim = await store.claim_task(objective_id, "w")
            await store.record_result(claim, text="r", origins=[])
            duty = await store.claim_duty(objective_id, "w", Duty.PLAN)
            await store.record_step(
                duty.fence, Kept(key="inputs", kind="x", request_hash="h", output="1")
            )
            await store.record_plan(duty, task_ids=[claim.task.id], plan=Planned())
        planned = await store.steps(objective_id, duty=Duty.PLAN)
        assert [(step.owner, step.key) for step in planned] == [
            ("plan:1", "inputs"),
            ("plan:2", "inputs"),
        ]
        assert await store.steps(objective_id, duty=Duty.ORDER) == []

    async def test_how_an_objective_stands_is_read_at_one_instant(self, store, clock):
        objective_id = await begin(store, "B")
        await finish_one(store, objective_id)
        down = {"reason": "no answer", "retry_in_s": 5.0}
        await store.append_event(objective_id, kind=events.MODEL_UNAVAILABLE, data=down)
        standing = await store.standing(objective_id)
        assert (standing.objective.n_begun, standing.at, standing.outage.data["retry_in_s"]) == (
            1,
            clock.now,
            5.0,
        )
        assert standing.counts[TaskStatus.QUEUED] == 1
        await store.append_event(objective_id, kind=events.MODEL_AVAILABLE, data={})
        assert (await store.standing(objective_id)).outage is None
        with pytest.raises(NotFoundError):
            await store.standing(objective_id + 1)

    async def test_verifying_reads_every_step_and_result_and_finds_nothing_wrong(self, store):
        objective_id = await begin(store, "B")
        other, _ = await store.create_objective(make_spec(), uid="u2", always_new=True)
        await store.join_objective("w", other.id)
        for at_work in (objective_id, objective_id, other.id):
            claim = await store.claim_task(at_work, "w")
            await store.intend_step(
                claim.fence,
                intention=Intention(key="1/x", kind="model", request_hash="h", reservation=CALL),
            )
            await store.record_result(claim, text="Ünïcödé 日本", origins=["model:m"])
        every, one = await store.verify(), await store.verify(objective_id)
        assert (every.n_steps, every.n_results, every.damages) == (3, 3, ())
        assert (one.n_steps, one.n_results, one.damages) == (2, 2, ())
        with pytest.raises(NotFoundError):
            await store.verify(99)

    # -- parking
    # ----------------------------------------------------------------------------------------------

    async def ask(self, store, objective_id, *, key="1/q", worker_id="w"):
        claim = await store.claim_task(objective_id, worker_id)
        step = await store.park_task(
            claim.fence, key=key, kind="question", request='{"question": "which?"}'
        )
        return claim, step

    async def test_at_most_five_questions_are_open_and_an_answer_lets_the_next_one_be_asked(
        self, store
    ):
        objective_id = await begin(store, *"BCDEFG")
        for _ in range(5):
            await self.ask(store, objective_id)
        sixth, not_kept = await self.ask(store, objective_id)
        await self.ask(store, objective_id)
        assert not_kept.id == 0 and len(await store.inbox(objective_id)) == 5
        assert [task.status for task in await store.tasks(objective_id)] == [
            TaskStatus.WAITING
        ] * 5 + [TaskStatus.QUEUED] * 2
        assert await store.claim_task(objective_id, "w") is None
        assert (await store.end_objective(objective_id)).stop_reason is StopReason.WAITING
        await store.answer_step((await store.inbox(objective_id))[0].id, output='"this one"')
        assert (await store.objective(objective_id)).status is ObjectiveStatus.ACTIVE
        first = await store.claim_task(objective_id, "w")
        again, asked = await self.ask(store, objective_id)
        assert (first.task.id, again.task.id, again.task.failures) == (1, sixth.task.id, 0)
        assert (
            asked in await store.inbox(objective_id)
            and await store.claim_task(objective_id, "w") is None
        )
        await store.cancel_task(objective_id, 2)
        assert (await store.claim_task(objective_id, "w")).task.id == 7

    async def test_a_parked_task_waits_without_a_lease_and_an_answer_queues_it_at_its_rank(
        self, store
    ):
        objective_id = await begin(store, "B")
        claim, step = await self.ask(store, objective_id)
        assert (step.state, step.kind, step.request) == (
            StepState.ASKED,
            "question",
            '{"question": "which?"}',
        )
        task = await store.task(objective_id, 1)
        assert (task.status, task.failures, task.try_no) == (TaskStatus.WAITING, 0, 1)
        with pytest.raises(LeaseLostError):
            await store.record_result(claim, text="r", origins=[])
        assert (await store.claim_task(objective_id, "w")).task.name == "B"
        assert [found.id for found in await store.inbox()] == [step.id]
        assert await store.inbox(objective_id) == [*await store.inbox(step_id=step.id)]
        done = await store.answer_step(step.id, output='"this one"')
        assert (done.state, done.output, done.origins) == (
            StepState.DONE,
            '"this one"',
            ("person",),
        )
        assert await store.inbox() == []
        with pytest.raises(NotFoundError):
            await store.answer_step(step.id, output='"another"')
        again = await store.claim_task(objective_id, "w")
        assert (again.task.id, again.task.try_no, again.fence.claim_no) == (1, 1, 2)
        assert [step.output for step in await store.steps(objective_id, owner="task:1")] == [
            '"this one"'
        ]
        assert (
            await store.park_task(again.fence, key="1/q", kind="question", request="{}")
        ).output == '"this one"'
        assert (await store.task(objective_id, 1)).status is TaskStatus.RUNNING

    async def test_when_only_people_can_go_on_it_ends_as_waiting_and_an_answer_opens_it_again(
        self, store
    ):
        objective_id = await begin(store)
        _, step = await self.ask(store, objective_id)
        assert (await store.end_objective(objective_id)).stop_reason is StopReason.WAITING
        report = await store.claim_duty(objective_id, "w", Duty.REPORT)
        await store.record_report(report, markdown="# asked")
        await store.answer_step(step.id, output='"yes"')
        objective = await store.objective(objective_id)
        assert (objective.status, objective.has_report) == (ObjectiveStatus.ACTIVE, False)
        assert (await store.claim_task(objective_id, "w")).task.id == 1

    @pytest.mark.parametrize("is_allowed", [True, False])
    async def test_what_a_person_says_of_a_changed_tool_is_in_the_grants_from_then_on(
        self, store, is_allowed
    ):
        schema = {"type": "object", "properties": {}}
        grant = ToolGrant(name="t", effect=Effect.READ, description="old", parameters=schema)
        other = replace(grant, name="other")
        objective_id = await begin(store, tools=(grant, other))
        claim = await store.claim_task(objective_id, "w")
        now = write_form("new", schema)
        asked = {"tool": "t", "arguments": {"before": write_form("old", schema), "now": now}}
        step = await store.park_task(
            claim.fence, key="1/changed", kind=lifecycle.CHANGED, request=json.dumps(asked)
        )

        await store.answer_step(step.id, output=json.dumps({"is_error": not is_allowed}))

        found = (await store.objective(objective_id)).spec.tools
        changed = (
            replace(grant, description="new") if is_allowed else replace(grant, refused=digest(now))
        )
        assert found == (changed, other)
        assert (await store.verify()).damages == ()

    async def test_a_skipped_or_cancelled_task_asks_nothing_any_more(self, store):
        objective_id = await begin(store, "B")
        for number, end in (
            (1, store.cancel_task(objective_id, 1)),
            (2, store.end_objective(objective_id, reason=StopReason.CANCELLED)),
        ):
            _, step = await self.ask(store, objective_id)
            await end
            assert (await store.task(objective_id, number)).status is TaskStatus.CANCELLED
            assert await store.inbox() == []
            with pytest.raises(NotFoundError):
                await store.answer_step(step.id, output="1")
        with pytest.raises(NotFoundError):
            await store.inbox(99)

    async def test_a_task_that_is_parked_after_its_objective_was_cancelled_is_cancelled(
        self, store
    ):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        await store.end_objective(objective_id, reason=StopReason.CANCELLED)
        await store.park_task(claim.fence, key="1/q", kind="question", request="{}")
        assert (await store.task(objective_id, 1)).status is TaskStatus.CANCELLED

    async def test_a_call_that_must_not_be_repeated_is_unknown_when_its_claim_ends_without_an_outcome(
        self, store, clock
    ):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        step = await store.intend_step(
            claim.fence, intention=Intention(key="1/t", kind="once", request='{"tool": "pay"}')
        )
        assert (step.state, step.kind) == (StepState.INTENDED, "once")
        clock.tick(31)
        await store.reap_workers()
        task = await store.task(objective_id, 1)
        assert (task.status, task.n_lost, task.failures) == (TaskStatus.WAITING, 1, 0)
        (unknown,) = await store.inbox(objective_id)
        assert (unknown.state, unknown.key, unknown.request) == (
            StepState.UNKNOWN,
            "1/t",
            '{"tool": "pay"}',
        )
        (cut_off,) = await events_of(store, objective_id, events.STEP_ABANDONED)
        assert cut_off[1]["is_unknown"]
        await store.answer_step(unknown.id, output='"it was paid"')
        await join(store, make_worker("v"), objective_id)
        again = await store.claim_task(objective_id, "v")
        assert (
            await store.intend_step(
                again.fence, intention=Intention(key="1/t", kind="once", request='{"tool": "pay"}')
            )
        ).output == '"it was paid"'

    async def test_a_call_that_must_not_be_repeated_keeps_a_task_from_dying_and_from_a_new_try(
        self, store
    ):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        await store.intend_step(
            claim.fence, intention=Intention(key="1/t", kind="once", request="{}")
        )
        task = await store.fail_task(claim, error="no", max_failures=1)
        assert (task.status, task.try_no, task.error) == (TaskStatus.WAITING, 1, "no")

    async def test_a_call_that_was_intended_already_is_unknown_and_not_intended_again(self, store):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        await store.intend_step(
            claim.fence, intention=Intention(key="1/t", kind="once", request="{}")
        )
        assert (
            await store.intend_step(
                claim.fence, intention=Intention(key="1/t", kind="once", request="{}")
            )
        ).state is StepState.UNKNOWN
        step = await store.park_task(claim.fence, key="1/t", kind="once", request="{}")
        assert (step.state, (await store.task(objective_id, 1)).status) == (
            StepState.UNKNOWN,
            TaskStatus.WAITING,
        )

    async def test_an_outcome_that_comes_late_is_the_answer(self, store):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        await store.intend_step(
            claim.fence, intention=Intention(key="1/t", kind="once", request="{}")
        )
        await store.remove_worker("w")
        assert len(await store.inbox()) == 1
        await store.record_step(
            claim.fence, Outcome(key="1/t", output='"done after all"', usage=Usage())
        )
        assert await store.inbox() == []
        assert (await store.task(objective_id, 1)).status is TaskStatus.QUEUED

    async def test_no_call_that_must_not_be_repeated_is_intended_while_paused(self, store):
        objective_id = await begin(store)
        claim = await store.claim_task(objective_id, "w")
        await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
        with pytest.raises(ObjectiveStoppedError):
            await store.intend_step(
                claim.fence, intention=Intention(key="1/t", kind="once", request="{}")
            )
        assert await store.steps(objective_id, owner="task:1") == []

    # -- events and the index
    # ----------------------------------------------------------------------------------------------

    async def test_events_tell_a_turn_in_its_order_with_rising_ids(self, store):
        objective_id = await begin(store)
        await finish_one(store, objective_id, proposals=[Proposal(name="B")])
        rows = await store.events(objective_id)
        assert [event.kind for event in rows] == [
            events.OBJECTIVE_CREATED,
            events.TASK_ADDED,
            events.WORKER_JOINED,
            events.TASK_CLAIMED,
            events.TASK_RECORDED,
            events.TASK_ADDED,
            events.TASK_DONE,
        ]
        ids = [event.id for event in rows]
        assert ids == sorted(set(ids))
        assert await store.last_event_id(objective_id) == ids[-1]
        assert [
            event.id for event in await store.events(objective_id, after_id=ids[2], limit=2)
        ] == ids[3:5]
        assert rows[5].data == {"name": "B", "parent_id": 1, "after": []}

    async def test_events_of_all_objectives_come_by_id_and_it_is_known_up_to_where_none_is_missing(
        self, store
    ):
        first, second = await begin(store), await begin(store, "B")
        before = await store.last_event_id(None)
        for objective_id in (second, first, second):
            await store.append_event(objective_id, kind="x.happened", data={})

        read = await store.events(None, after_id=0, limit=1000)
        ids = [event.id for event in read]
        assert ids == sorted(set(ids))
        assert [event.objective_id for event in read][-3:] == [second, first, second]
        assert await store.events(None, after_id=ids[1], limit=2) == read[2:4]
        assert before == ids[-4]
        assert await store.last_event_id(None) == ids[-1]

    async def test_an_appended_event_is_kept_as_it_is(self, store):
        objective_id = await begin(store)
        await store.append_event(
            objective_id, kind="x.happened", task_id=1, data={"kind": "k", "n": [1, None]}
        )
        event = (await store.events(objective_id))[-1]
        assert (event.kind, event.task_id, event.data) == (
            "x.happened",
            1,
            {"kind": "k", "n": [1, None]},
        )

    async def test_waiting_for_events_returns_at_once_when_there_are_some_and_after_the_time_when_not(
        self, store
    ):
        objective_id = await begin(store)
        await store.wait_for_events(objective_id, after_id=0, timeout_s=3600)
        await store.wait_for_events(
            objective_id, after_id=await store.last_event_id(objective_id), timeout_s=0.01
        )

    async def test_results_are_unindexed_until_they_are_marked_and_again_when_the_index_is_lost(
        self, store
    ):
        objective_id = await begin(store, "B")
        await finish_one(store, objective_id)
        claim = await store.claim_duty(objective_id, "w", Duty.INDEX)
        assert [
            result.task_id
            for result in await store.results(objective_id, only_unindexed=True, limit=5)
        ] == [1]
        assert (
            await store.result_ids(objective_id),
            await store.result_ids(objective_id, is_indexed=True),
        ) == ([1], [])
        await store.mark_indexed(objective_id, task_ids=[1, 9])
        assert (await store.events(objective_id))[-1].data == {"n": 1, "n_owed": 0}
        assert (
            await store.result_ids(objective_id, is_indexed=True),
            await store.result_ids(objective_id, is_indexed=False),
        ) == ([1], [])
        await store.release(claim)
        assert await store.claim_duty(objective_id, "w", Duty.INDEX) is None
        await store.owe_index(objective_id)
        assert len(await store.results(objective_id, only_unindexed=True, limit=5)) == 1
        await finish_one(store, objective_id)
        await store.mark_indexed(objective_id, task_ids=[1])
        assert (await store.events(objective_id))[-1].data == {"n": 1, "n_owed": 1}

    async def test_another_embedding_space_marks_every_result_to_be_indexed_again_and_keeps_the_old_vectors(
        self, store
    ):
        objective_id = await begin(store)
        await finish_one(store, objective_id)
        await store.store_vectors(objective_id, space="hashing", vectors={1: b"old"})
        await store.mark_indexed(objective_id, task_ids=[1])

        changed = await store.owe_index(objective_id, model="other", space="other:1")

        assert (changed.spec.embedding_space, changed.spec.model_by_role[Role.EMBEDDING]) == (
            "other:1",
            "other",
        )
        assert changed == await store.objective(objective_id)
        assert await store.result_ids(objective_id, is_indexed=False) == [1]
        assert await store.vectors(objective_id, space="hashing", task_ids=[1]) == {1: b"old"}
        (told,) = await events_of(store, objective_id, events.OBJECTIVE_EXTENDED)
        assert told == (None, {"space": "other:1"})
        assert await store.claim_duty(objective_id, "w", Duty.INDEX) is not None
        with pytest.raises(SettingsError, match="at work"):
            await store.owe_index(objective_id, model="third", space="third:1")

    async def test_results_are_found_by_their_words_the_best_match_first_and_only_the_objectives_own(
        self, store
    ):
        objective_id = await begin(store, "second", "third")
        texts = ("An oven for bread", "Bread, and a lake", "The lake froze")
        await finish_with(store, objective_id, *texts)
        other_id = await begin(store, worker_id="v")
        await finish_with(store, other_id, "Bread in an oven", worker_id="v")

        found = await find_words(store, objective_id, words=["oven", "bread", "nowhere"], limit=5)

        assert [
            result.text
            for task_id in found
            for result in await store.results(objective_id, task_ids=[task_id])
        ] == list(texts[:2])
        assert len(await find_words(store, objective_id, words=["lake"], limit=1)) == 1
        assert await find_words(store, objective_id, words=["nowhere"], limit=5) == []
        assert await find_words(store, objective_id, words=[], limit=5) == []
        await store.remove_worker("v")
        await store.delete_objective(other_id)
        assert len(await find_words(store, objective_id, words=["oven"], limit=5)) == 1

    async def test_words_are_found_as_they_are_written_and_within_names_of_files_addresses_and_numbers(
        self, store
    ):
        objective_id = await begin(store, "second")
        await finish_with(
            store,
            objective_id,
            "Set in config.yaml, see https://example.org/setup-guide: 3.5 <b>kg</b>",
            "Die Straße ist zu.",
        )

        for text in ("config", "yaml", "example", "setup", "guide", "5", "kg"):
            assert await find_words(
                store, objective_id, words=searchable(text, limit=5), limit=5
            ) == [1], text
        for text in ("Straße", "STRASSE straße"):
            assert await find_words(
                store, objective_id, words=searchable(text, limit=5), limit=5
            ) == [2], text

    async def test_vectors_are_kept_by_space(self, store):
        objective_id = await begin(store)
        await store.store_vectors(objective_id, space="s", vectors={1: b"\x00\x01", 2: b"\x02"})
        await store.store_vectors(objective_id, space="s", vectors={2: b"\x03"})
        assert await store.vectors(objective_id, space="s", task_ids=[1, 2, 3]) == {
            1: b"\x00\x01",
            2: b"\x03",
        }
        assert await store.vectors(objective_id, space="s", task_ids=[2]) == {2: b"\x03"}
        assert await store.vectors(objective_id, space="t", task_ids=[1, 2]) == {}

    async def test_waiting_for_a_change_ends_at_its_timeout(self, store):
        await begin(store)
        await store.wait_for_change(timeout_s=0.001)

    # -- barren tasks
    # ----------------------------------------------------------------------------------------------

    async def repeat(self, store, objective_id, n, *, proposals=()):
        """Finish `n` tasks whose results only repeat earlier ones."""
        for _ in range(n):
            claim = await store.claim_task(objective_id, "w")
            await store.record_result(claim, text="the same again", origins=[])
            named = tuple(replace(proposal, parent_id=claim.task.id) for proposal in proposals)
            await plan_from(
                store, objective_id, claim.task.id, proposals=named, repeats=(claim.task.id,)
            )

    async def is_stalled_after(self, store, objective_id, n):
        await self.repeat(store, objective_id, n)
        return (await store.end_objective(objective_id)).stop_reason is StopReason.STALLED

    async def test_five_barren_tasks_in_a_row_start_no_other_and_end_as_stalled(self, store):
        objective_id = await begin(store, *(f"T{n}" for n in range(9)))
        assert not await self.is_stalled_after(store, objective_id, 4)
        await self.repeat(store, objective_id, 1)
        assert await store.claim_task(objective_id, "w") is None
        ended = await store.end_objective(objective_id)
        assert (ended.stop_reason, ended.status) == (StopReason.STALLED, ObjectiveStatus.ENDED)
        assert (
            ended.stop_detail
            == "the last 5 tasks brought no new task, and their results nearly equal earlier ones"
        )
        assert ((await store.standing(objective_id)).counts)[TaskStatus.QUEUED] == 5
        assert await store.claim_duty(objective_id, "w", Duty.REPORT) is not None

    async def test_a_proposal_that_is_there_already_is_no_new_task(self, store):
        objective_id = await begin(store, *(f"T{n}" for n in range(9)))
        await self.repeat(store, objective_id, 5, proposals=[Proposal(name="t8")])
        assert (await store.end_objective(objective_id)).stop_reason is StopReason.STALLED

    @pytest.mark.parametrize("is_task", [True, False], ids=["task", "result"])
    async def test_a_new_task_or_a_new_result_begins_the_count_anew(self, store, is_task):
        objective_id = await begin(store, *(f"T{n}" for n in range(12)))
        await self.repeat(store, objective_id, 4)
        if is_task:
            await self.repeat(store, objective_id, 1, proposals=[Proposal(name="new")])
        else:
            await finish_one(store, objective_id)
        assert not await self.is_stalled_after(store, objective_id, 4)
        await self.repeat(store, objective_id, 1)
        assert await store.claim_task(objective_id, "w") is None

    @pytest.mark.parametrize("is_met", [True, False])
    async def test_five_barren_tasks_after_a_new_answer_are_a_question_first(self, store, is_met):
        objective_id = await begin(store, *(f"T{n}" for n in range(12)))
        await finish_one(store, objective_id)
        await self.repeat(store, objective_id, 5)
        assert await store.claim_task(objective_id, "w") is None
        assert (await store.end_objective(objective_id)).stop_reason is None

        checked = await check(store, objective_id, Proposal(name="missing"), is_met=is_met)

        assert checked.stop_reason is (StopReason.OBJECTIVE_MET if is_met else None)
        if not is_met:
            claim = await store.claim_task(objective_id, "w")
            assert claim.task.name == "missing"
            await store.record_result(claim, text="the same again", origins=[])
            await plan_from(store, objective_id, repeats=(claim.task.id,))
            assert await self.is_stalled_after(store, objective_id, 4)

    async def test_the_last_answer_in_part_stays(self, store):
        objective_id = await begin(store, "T")
        for try_no in (1, 2, 3):
            claim = await store.claim_task(objective_id, "w")
            assert (claim.task.lack.found if claim.task.lack else "") == (
                f"half {try_no - 1}" if try_no > 1 else ""
            )
            await store.record_result(
                claim, text=f"half {try_no}", origins=[], lack="the other half"
            )
            unanswered = (Unanswered(task_id=claim.task.id, lack="the other half"),)
            await plan_from(store, objective_id, unanswered=unanswered)

        assert (await store.task(objective_id, claim.task.id)).status is TaskStatus.DONE
        assert [result.text for result in await store.results(objective_id)] == ["half 3"]

    async def test_a_result_that_is_called_unanswered_at_its_last_try_stays_with_what_it_lacks(
        self, store
    ):
        objective_id = await begin(store)
        unanswered = (Unanswered(task_id=1, lack="the key"),)
        for try_no in (1, 2, 3):
            claim = await store.claim_task(objective_id, "w")
            await store.record_result(claim, text=f"try {try_no}", origins=[])
            await plan_from(store, objective_id, unanswered=unanswered)

        assert (await store.task(objective_id, 1)).status is TaskStatus.DONE
        (kept,) = await store.results(objective_id)
        assert (kept.text, kept.lack) == ("try 3", "the key")

    async def test_a_repeated_result_that_another_task_waits_for_is_not_barren(self, store):
        objective_id = await begin(store, *(f"T{n}" for n in range(12)))
        await store.add_tasks(objective_id, [Proposal(name="Sum up", after=(5,))])
        await self.repeat(store, objective_id, 5)
        assert [
            data["n_barren"] for _, data in await events_of(store, objective_id, events.TASK_DONE)
        ] == [1, 2, 3, 4, 0]

    async def test_a_new_task_counts_for_the_task_that_it_comes_from_and_not_for_those_it_was_planned_with(
        self, store
    ):
        objective_id = await begin(store, *(f"T{n}" for n in range(12)))
        await self.repeat(store, objective_id, 3)
        claims = [await store.claim_task(objective_id, "w") for _ in range(2)]
        for claim in claims:
            await store.record_result(claim, text="the same again", origins=[])
        await plan_from(
            store, objective_id, proposals=(Proposal(name="new", parent_id=4),), repeats=(4, 5)
        )
        assert [
            data["n_barren"] for _, data in await events_of(store, objective_id, events.TASK_DONE)
        ] == [1, 2, 3, 0, 1]

    async def test_a_task_that_runs_when_the_fifth_is_counted_may_still_bring_something_new(
        self, store
    ):
        objective_id = await begin(store, *(f"T{n}" for n in range(9)))
        running = await store.claim_task(objective_id, "w")
        await self.repeat(store, objective_id, 5)
        assert await store.claim_task(objective_id, "w") is None
        assert (await store.end_objective(objective_id)).status is ObjectiveStatus.ACTIVE
        await store.record_result(running, text="news", origins=[])
        await plan_from(store, objective_id)
        assert await store.claim_task(objective_id, "w") is not None

    async def test_a_list_that_is_done_is_finished_however_barren_its_end_was(self, store):
        objective_id = await begin(store, *(f"T{n}" for n in range(4)))
        await self.repeat(store, objective_id, 5)
        assert (await check(store, objective_id, is_met=True)).stop_reason is StopReason.FINISHED

    async def test_while_a_person_is_asked_a_barren_objective_waits(self, store):
        objective_id = await begin(store, *(f"T{n}" for n in range(9)))
        _, step = await self.ask(store, objective_id)
        await self.repeat(store, objective_id, 5)
        assert (await store.end_objective(objective_id)).stop_reason is StopReason.WAITING
        await store.answer_step(step.id, output='"yes"')
        assert not await self.is_stalled_after(store, objective_id, 4)

    async def test_extending_a_stalled_objective_goes_on_and_counts_anew(self, store):
        objective_id = await begin(store, *(f"T{n}" for n in range(12)))
        assert await self.is_stalled_after(store, objective_id, 5)
        assert (
            await store.extend_objective(objective_id, limits=NO_LIMITS)
        ).status is ObjectiveStatus.ACTIVE
        assert not await self.is_stalled_after(store, objective_id, 4)
        assert await self.is_stalled_after(store, objective_id, 1)

    async def test_what_a_person_does_to_feed_the_list_begins_the_count_anew(self, store):
        objective_id = await begin(store, *(f"T{n}" for n in range(40)))
        dead = await store.claim_task(objective_id, "w")
        await store.fail_task(dead, error="no", max_failures=1)
        feeds = (
            lambda: store.add_tasks(objective_id, [Proposal(name="try this")]),
            lambda: store.cancel_task(objective_id, 40, replacement="rather that"),
            lambda: store.retry_task(objective_id, dead.task.id),
            lambda: store.extend_objective(objective_id, limits=NO_LIMITS),
        )
        for feed in feeds:
            await self.repeat(store, objective_id, 5)
            assert await store.claim_task(objective_id, "w") is None
            await feed()
        for idle in (
            lambda: store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED),
            lambda: store.cancel_task(objective_id, 39),
        ):
            await self.repeat(store, objective_id, 2)
            await idle()
            await store.switch_objective(objective_id, to=ObjectiveStatus.ACTIVE)
        assert await self.is_stalled_after(store, objective_id, 1)

    # -- fruitless tries
    # ----------------------------------------------------------------------------------------------

    async def try_in_vain(self, store, objective_id, how):
        """A try of the next task that gives no answer."""
        claim = await store.claim_task(objective_id, "w")
        match how:
            case "failed":
                await store.fail_task(claim, error="no", max_failures=99)
            case "lacking":
                if (
                    await store.record_lack(claim, lack=Lack(what="prices"))
                ).status is TaskStatus.RECORDED:
                    await plan_from(store, objective_id)
            case "unanswered":
                await store.record_result(claim, text="r", origins=[])
                await plan_from(
                    store,
                    objective_id,
                    unanswered=(Unanswered(task_id=claim.task.id, lack="prices"),),
                )

    @pytest.mark.parametrize("how", ["failed", "lacking", "unanswered"])
    async def test_twenty_tries_in_a_row_without_an_answer_start_no_other_and_end_as_stalled(
        self, store, how
    ):
        objective_id = await begin(store, *(f"T{n}" for n in range(30)))
        for _ in range(19):
            await self.try_in_vain(store, objective_id, how)
        await finish_one(store, objective_id)
        for n in range(20):
            assert (await store.end_objective(objective_id)).status is ObjectiveStatus.ACTIVE, n
            await self.try_in_vain(store, objective_id, how)
        assert await store.claim_task(objective_id, "w") is None
        ended = await store.end_objective(objective_id)
        assert (ended.stop_reason, ended.stop_detail) == (
            StopReason.STALLED,
            "the last 20 tries in a row gave no answer and no new task",
        )
        await store.extend_objective(objective_id, limits=NO_LIMITS)
        assert await store.claim_task(objective_id, "w") is not None

    @pytest.mark.parametrize(("name", "is_stalled"), [("Something new", False), ("t29", True)])
    async def test_a_lack_that_brings_a_new_task_is_no_fruitless_try(self, store, name, is_stalled):
        objective_id = await begin(store, *(f"T{n}" for n in range(30)))
        for _ in range(19):
            await self.try_in_vain(store, objective_id, "failed")
        task = await lack_in(store, objective_id)
        await plan_from(store, objective_id, proposals=(Proposal(name=name, parent_id=task.id),))
        assert (await store.claim_task(objective_id, "w") is None) == is_stalled
