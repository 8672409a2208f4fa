"""SQLite and PostgreSQL are driven with the same random verbs, and every view of them must stay
equal after each one."""

import os
import random

import pytest

from babyagi.errors import BabyagiError
from babyagi.runtime.offload import run_inline
from babyagi.tasks import (
    CheckedPart,
    Duty,
    Lack,
    Limits,
    ObjectiveStatus,
    Place,
    Proposal,
    Reservation,
    StopReason,
    TaskStatus,
    Unanswered,
    Usage,
)
from babyagi.taskstore.nouns import Checked, Intention, Kept, Outcome, Planned
from babyagi.taskstore.sql.store import open_postgres
from babyagi.taskstore.sqlite import MemoryTaskStore
from tests.taskstore.contract import Clock, make_spec, make_worker

WORKERS = ("w1", "w2", "w3")
NAMES = (
    "Read the list",
    "read a list!",
    "Write it down",
    "Ask 3 people",
    "Ask 4 people",
    "",
    "Sum\x00 up",
    "\ud800 odd",
    "Read K-17",
)
LACKS = ("prices", "what K-17 says", "what Anna said in 2019", "\ud804 odd")
TEXTS = ("K-17 says no", "Anna said it in 2019", "nothing")
TIGHT = Limits(max_tasks=6, max_calls=12, max_tokens=9000, max_cost_usd=0.05, max_time_s=90)
LOOSE = Limits(max_tasks=0, max_calls=0, max_tokens=0, max_cost_usd=0, max_time_s=0)


class Pair:
    """Two stores under one clock, and the claims that were given out, lost ones too."""

    def __init__(self, seed, sqlite, postgres, clock):
        self.random, self.stores, self.clock = random.Random(seed), (sqlite, postgres), clock
        self.claims, self.duty_claims, self.objective_ids, self.trail = [], [], [], []
        self.listed = {}  # by objective: the names as the changes so far tell them, and an event

    async def do(self, verb, *args, **kwargs):
        """Call the verb on both; they must return, or raise, the same."""
        self.trail.append((verb, args, kwargs))
        outcomes = []
        for store in self.stores:
            try:
                outcomes.append(await getattr(store, verb)(*args, **kwargs))
            except BabyagiError as error:
                outcomes.append((type(error), str(error), getattr(error, "is_final", None)))
        assert outcomes[0] == outcomes[1], self.trail[-12:]
        return outcomes[0]

    async def compare(self):
        await self.do("objectives")
        await self.do("workers")
        await self.do("objectives", are_open=True)
        for objective_id in self.objective_ids:
            for view in (
                "claimable",
                "tasks",
                "standing",
                "results",
                "result_ids",
                "report",
                "last_event_id",
                "events",
            ):
                await self.do(view, objective_id)
            await self.do("tasks", objective_id, last_finished=True, limit=5)
            await self.do("task_names", objective_id, limit=5)
            await self.compare_names(objective_id)
            await self.do(
                "pending_results",
                objective_id,
                space="s",
                limit=3,
                words=["anna", "k", "nothing"],
                marks=["a", "nothing"],
                n_found=5,
            )
            await self.do("vectors", objective_id, space="s", task_ids=range(1, 200))
            await self.do("window", objective_id, n_head=2, n_new=2)
            await self.do("results", objective_id, only_unindexed=True, limit=3)
            for owner in (
                "task:1",
                "task:2",
                "task:3",
                "order:0",
                "plan:1",
                "plan:2",
                "report",
                "report:2",
                "check:1",
                "index",
            ):
                await self.do("steps", objective_id, owner=owner)
        self.trail = [
            entry
            for entry in self.trail
            if entry[0] not in ("steps", "tasks", "standing", "results", "events")
        ]

    async def compare_names(self, objective_id):
        """The names that changed since the last look, put over the names of then, are the names of
        now."""
        known, event_id = self.listed.get(objective_id, ({}, 0))
        changed = await self.do("task_names", objective_id, limit=99, after_id=event_id)
        known |= {name.id: name for name in changed.names}
        whole = await self.do("task_names", objective_id, limit=99)
        assert (tuple(known.values()), changed.event_id) == (whole.names, whole.event_id)
        self.listed[objective_id] = known, changed.event_id

    def some(self, values):
        return self.random.choice(values)

    def some_after(self):
        return tuple(
            self.some((*range(-1, 9), "a", "B", *NAMES)) for _ in range(self.random.randint(0, 3))
        )

    def proposals(self):
        return [
            Proposal(
                name=self.some(NAMES),
                after=self.some_after(),
                label=self.some(("", "a", "b")),
                parent_id=self.some((None, 1, 2, 3, 4)),
                origins=self.some((("person",), ("model:m",))),
            )
            for _ in range(self.random.randint(0, 3))
        ]

    def shown(self):
        return tuple(self.random.sample(range(1, 9), 3))

    def plan(self):
        some = tuple(self.random.sample(range(1, 9), 3))
        return Planned(
            proposals=tuple(self.proposals()),
            unanswered=tuple(
                Unanswered(
                    task_id=task_id,
                    lack=self.some(LACKS),
                    after=self.some_after(),
                    shown=self.shown(),
                )
                for task_id in some[: self.random.randint(0, 2)]
            ),
            repeats=some if self.random.random() < 0.8 else (),
            is_met=self.random.random() < 0.2,
            dropped=self.some(((), (), ("too \ud805much",))),
            failure=self.some(("", "", "no JSON")),
        )

    async def step(self):
        objective_id = self.some(self.objective_ids)
        await self.some(
            (
                self.worker,
                self.claim,
                self.turn,
                self.turn,
                self.duty,
                self.journal,
                self.journal,
                self.steer,
            )
        )(objective_id)

    async def worker(self, objective_id):
        worker_id = self.some(WORKERS)
        match self.random.randint(0, 8):
            case 0 | 1:
                await self.do(
                    "register_worker", make_worker(worker_id, home=self.some(("", "h"))), lease_s=30
                )
                await self.do("join_objective", worker_id, objective_id)
            case 2:
                await self.do("renew_lease", worker_id, lease_s=30)
            case 6 | 7:
                await self.do(
                    "join_objective",
                    worker_id,
                    objective_id,
                    blocked_reason=self.some(("", "", "no key", "no\nfolder\ud800")),
                )
            case 8:
                await self.do("remove_worker", worker_id, objective_id=objective_id)
            case 3:
                await self.do("remove_worker", worker_id)
            case 4:
                await self.do(
                    "reap_workers", **self.some(({}, {"silent": {}, "gone": [worker_id]}))
                )
            case 5:
                self.clock.tick(self.some((1, 7, 7, 31, 200, -60)))

    async def claim(self, objective_id):
        claim = await self.do("claim_task", objective_id, self.some(WORKERS))
        if claim is not None and not isinstance(claim, tuple):
            self.claims.append(claim)

    async def turn(self, objective_id):
        if not self.claims:
            await self.claim(objective_id)
            return
        claim = self.some(self.claims[-4:])
        match self.random.randint(0, 5):
            case 0 | 1:
                text = f"{self.some(TEXTS)} {self.random.random()}\ud801"
                plan = self.some((None, None, self.plan()))
                await self.do(
                    "record_result",
                    claim,
                    text=text,
                    origins=["model:m"],
                    lack=self.some(("", *LACKS)),
                    plan=plan,
                )
                await self.do(
                    "store_vectors", objective_id, space="s", vectors={claim.task.id: b"v"}
                )
            case 2 | 3:
                await self.do(
                    "record_lack", claim, lack=Lack(what=self.some(LACKS), shown=self.shown())
                )
            case 4:
                await self.do(
                    "fail_task", claim, error="no", max_failures=2, delay_s=self.some((0, 3))
                )
            case 5:
                await self.do("release", claim, delay_s=self.some((0, 2.5)), reason="outage")

    async def duty(self, objective_id):
        claim = await self.do(
            "claim_duty", objective_id, self.some(WORKERS), self.some((*Duty, Duty.PLAN, Duty.PLAN))
        )
        if claim is not None and not isinstance(claim, tuple):
            self.duty_claims.append(claim)
        if not self.duty_claims:
            return
        claim = self.some(self.duty_claims[-3:])
        task_ids = [self.random.randint(1, 9) for _ in range(5)]
        match self.some((claim.duty, claim.duty, None)):
            case Duty.ORDER:
                await self.do("reorder", claim, revision=self.some((0, 1, 2)), task_ids=task_ids)
            case Duty.CHECK:
                missing = tuple(self.some(NAMES) for _ in range(self.random.randint(0, 3)))
                checked = Checked(
                    parts=(CheckedPart(part="p\ud806", task_id=1, quote="q"),), missing=missing
                )
                met = {"is_met": self.random.random() < 0.3, "reason": "because"}
                await self.do(
                    "finish_check", claim, **met, checked=checked, proposals=self.proposals()
                )
            case Duty.PLAN:
                await self.do(
                    "record_plan",
                    claim,
                    task_ids=self.some(((1,), (2, 3), (1, 2, 3, 4))),
                    plan=self.plan(),
                )
            case Duty.REPORT:
                await self.do("record_report", claim, markdown="# Report")
            case Duty.INDEX:
                await self.do("mark_indexed", claim.fence.objective_id, task_ids=task_ids)
            case None:
                await self.do("release", claim, delay_s=self.some((0, 4)))

    async def journal(self, objective_id):
        if not self.claims:
            return
        fence = self.some([*self.claims[-3:], *self.duty_claims[-2:]]).fence
        key = self.some(("1/a", "1/b", "2/a"))
        usage = Usage(
            calls=1,
            prompt_tokens=self.random.randint(-5, 900),
            cost_usd=self.random.uniform(-0.001, 0.01),
        )
        match self.random.randint(0, 9):
            case 6:
                once = Intention(key="1/once", kind="once", request='{"tool": "x\ud803"}')
                await self.do("intend_step", fence, intention=once)
            case 7:
                await self.do(
                    "park_task",
                    fence,
                    key=self.some(("1/once", "1/q", "2/q")),
                    kind="question",
                    request="{}",
                )
            case 8:
                done = Outcome(key="1/once", output="2\x00", usage=Usage())
                await self.do("record_step", fence, done)
            case 9:
                await self.answer()
            case 0 | 1 | 2:
                reservation = Reservation(
                    calls=1,
                    tokens=self.random.randint(0, 1000),
                    cost_usd=self.random.uniform(0, 0.01),
                )
                await self.do(
                    "intend_step",
                    fence,
                    intention=Intention(
                        key=key,
                        kind="model",
                        request_hash="h",
                        reservation=reservation,
                        model="m",
                    ),
                )
            case 3:
                await self.do(
                    "record_step",
                    fence,
                    Outcome(key=key, output='"\ud802"', usage=usage, origins=["model:m"]),
                )
            case 4:
                await self.do("record_step", fence, Outcome(key=key, output=None, usage=usage))
            case 5:
                await self.do(
                    "record_step",
                    fence,
                    Kept(key=key, kind="inputs", request_hash="h", output="{}"),
                )
                await self.do("steps", fence.objective_id, owner=fence.owner)

    async def answer(self):
        opened = [await store.inbox() for store in self.stores]
        assert opened[0] == opened[1]
        if opened[0]:
            at = self.random.randrange(len(opened[0]))
            outcomes = [
                await store.answer_step(found[at].id, output="3")
                for store, found in zip(self.stores, opened, strict=True)
            ]
            assert outcomes[0] == outcomes[1]

    async def change_list(self, objective_id, task_id):
        match self.random.randint(0, 4):
            case 0:
                await self.do("move_task", objective_id, task_id, to=self.some((*Place, 1, 2, 5)))
            case 1:
                await self.do("cancel_task", objective_id, task_id, replacement=self.some(NAMES))
            case 2:
                await self.do("cancel_task", objective_id, task_id)
            case 3:
                await self.do("retry_task", objective_id, task_id)
            case 4:
                await self.do("add_tasks", objective_id, self.proposals(), to=Place.FIRST)

    async def steer(self, objective_id):
        if self.random.random() < 0.4:
            await self.change_list(objective_id, self.random.randint(1, 8))
            return
        match self.random.randint(0, 8):
            case 0:
                await self.do("switch_objective", objective_id, to=ObjectiveStatus.PAUSED)
            case 1 | 2:
                await self.do("switch_objective", objective_id, to=ObjectiveStatus.ACTIVE)
            case 3 | 4:
                await self.do("end_objective", objective_id)
            case 5:
                await self.do("extend_objective", objective_id, limits=self.some((TIGHT, LOOSE)))
            case 6 | 7:
                await self.do("add_tasks", objective_id, self.proposals())
            case 8 if self.random.random() < 0.3:
                reason = self.some((StopReason.CANCELLED, StopReason.LIMIT_COST, StopReason.FAILED))
                await self.do("end_objective", objective_id, reason=reason, detail="x")
            case 8:
                await self.do(
                    "delete_objective", objective_id if self.random.random() < 0.1 else 99
                )


@pytest.fixture
async def open_pair(postgres_url):
    """Opens a pair of empty stores; both are closed after the test."""
    clock, opened = Clock(), []

    async def open_both(seed):
        sqlite, postgres = (
            MemoryTaskStore(clock),
            await open_postgres(postgres_url, clock=clock, offload=run_inline),
        )
        opened.extend([sqlite, postgres])
        return Pair(seed, sqlite, postgres, clock)

    yield open_both
    for store in opened:
        await store.close()


@pytest.mark.parametrize("seed", range(8 if "LONG_TESTS" in os.environ else 3))
async def test_sqlite_and_postgres_stay_alike_under_random_verbs(seed, open_pair):
    pair = await open_pair(seed)
    for text, limits in (("one", LOOSE), ("two", TIGHT)):
        objective, _ = await pair.do(
            "create_objective", make_spec(text=text, limits=limits), uid=text
        )
        pair.objective_ids.append(objective.id)
        await pair.do("add_tasks", objective.id, [Proposal(name=name) for name in ("B", "C", "D")])
        await pair.do("register_worker", make_worker("w1"), lease_s=30)
        await pair.do("join_objective", "w1", objective.id)
    for _ in range(60):
        await pair.step()
        await pair.compare()
    store = pair.stores[0]
    for objective in await store.objectives():
        ranks = sorted(task.rank for task in await store.tasks(objective.id))
        assert ranks == list(range(1, len(ranks) + 1))
        counts = (await store.standing(objective.id)).counts
        assert counts[TaskStatus.RECORDED] + counts[TaskStatus.DONE] >= len(
            await store.results(objective.id)
        )


@pytest.mark.parametrize("seed", range(3 if "LONG_TESTS" in os.environ else 1))
async def test_sqlite_and_postgres_stall_at_the_same_task(seed, open_pair):
    pair = await open_pair(seed)
    objective, _ = await pair.do("create_objective", make_spec(limits=LOOSE), uid="one")
    pair.objective_ids.append(objective.id)
    await pair.do("register_worker", make_worker("w1"), lease_s=30)
    await pair.do("join_objective", "w1", objective.id)
    await pair.do("add_tasks", objective.id, [Proposal(name=f"T{n}") for n in range(60)])
    n_stalled = 0
    for _ in range(60):
        claim = await pair.do("claim_task", objective.id, "w1")
        if claim is None:
            ended = await pair.do("end_objective", objective.id)
            if ended.stop_reason is StopReason.STALLED:
                n_stalled += 1
                await pair.do("extend_objective", objective.id, limits=LOOSE)
            else:  # something was answered since the last check, so a check comes first
                check = await pair.do("claim_duty", objective.id, "w1", Duty.CHECK)
                await pair.do("finish_check", check, is_met=False, reason="unclear")
            continue
        await pair.do("record_result", claim, text="r", origins=[])
        planner = await pair.do("claim_duty", objective.id, "w1", Duty.PLAN)
        proposals = (Proposal(name=pair.some(("T1", "T2", "a new one")), parent_id=claim.task.id),)
        repeats = (claim.task.id,) if pair.random.random() < 0.85 else ()
        await pair.do(
            "record_plan",
            planner,
            task_ids=(claim.task.id,),
            plan=Planned(proposals=proposals, repeats=repeats),
        )
        if pair.random.random() < 0.03:
            await pair.do("cancel_task", objective.id, 60, replacement="instead")
        await pair.compare()
    assert n_stalled
