"""Ten thousand ticks on a virtual clock, decided by three daemons that are killed at any statement
while the clock jumps and passes both changes of the year: each tick has one row, nothing is fired
twice, and each row has an explanation that holds.

A kill is the end of a transaction before a statement of it, or right after its commit, before the
daemon hears of it; then another daemon takes its place.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from babyagi.runtime.offload import run_inline
from babyagi.tasks import Duty, Limits, StopReason, Worker
from babyagi.taskstore.schedules import (
    CatchUp,
    Overlap,
    Rule,
    Schedule,
    ScheduleSpec,
    ScheduleStatus,
    Tick,
    TickOutcome,
    TickReason,
    next_due,
)
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import open_sqlite
from support.table import print_table
from support.world import make_spec

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
ERAS = {
    "spring": datetime(2026, 3, 28, 18, tzinfo=UTC),
    "autumn": datetime(2026, 10, 24, 18, tzinfo=UTC),
}
N_DAEMONS = 3
LEASE_S = 400 * 86_400.0
DAILY_USD = 3.0


class Killed(BaseException):
    """The daemon is no more."""


class _Dying:
    """A connection that ends with its process before the n-th statement."""

    def __init__(self, connection: Any, *, n_left: int) -> None:
        self._connection = connection
        self._n_left = n_left

    def execute(self, sql: Any, values: Any) -> Any:
        self._n_left -= 1
        if self._n_left < 0:
            raise Killed
        return self._connection.execute(sql, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@dataclass
class _Daemon:
    """One worker with its own opening of the store."""

    store: TaskStore
    worker_id: str

    async def fire(self, *, dies_at: int | None) -> list[Tick]:
        """Decide what is due; die before the n-th statement of the transaction, or after its commit
        where there are fewer."""
        if dies_at is None:
            return list((await self.store.fire_schedules(self.worker_id)).ticks)
        database: Any = self.store._database
        write = database.write

        def write_and_die(work: Callable[[Any], Any], **more: Any) -> Any:
            def dying(tx: Any) -> Any:
                tx._connection = _Dying(tx._connection, n_left=dies_at)
                return work(tx)

            write(dying, **more)
            raise Killed

        database.write = write_and_die
        try:
            return list((await self.store.fire_schedules(self.worker_id)).ticks)
        finally:
            database.write = write


@dataclass
class Campaign:
    """One era: schedules, daemons, and what was seen from outside."""

    folder: Path
    begins: datetime
    seed: int
    n_kills: int = 0
    n_jumps: int = 0
    now: datetime = field(init=False)
    steps: list[datetime] = field(default_factory=list)  # what the clock said at each
    ends: dict[int, int] = field(default_factory=dict)  # in which step each objective ended

    def __post_init__(self) -> None:
        self.now = self.begins
        self._chance = random.Random(self.seed)
        self._daemons: list[_Daemon] = []
        self._schedules: list[Schedule] = []

    async def run(self, n_ticks: int) -> list[str]:
        """Let ticks pass until so many are decided; returns what was wrong."""
        for spec in make_schedules(self.begins):
            if not self._daemons:
                self._daemons = [await self._open() for _ in range(N_DAEMONS)]
            added = await self._daemons[0].store.add_schedule(spec, uid=secrets.token_hex(4))
            self._schedules.append(added)
        while await self._count() < n_ticks:
            self._pass_time()
            self.steps.append(self.now)
            await self._look_after()
            for number in self._chance.sample(range(N_DAEMONS), self._chance.randint(0, 3)):
                await self._let_fire(number)
        await self._settle()
        return await Audit(self, self._daemons[0].store, self._schedules).find_faults()

    async def close(self) -> None:
        for daemon in self._daemons:
            await daemon.store.close()

    async def _open(self) -> _Daemon:
        store = await open_sqlite(
            self.folder / "tasks.db", clock=lambda: self.now, offload=run_inline
        )
        worker_id = secrets.token_hex(4)
        worker = Worker(id=worker_id, name=worker_id, host="here", pid=1, lease_until=self.now)
        await store.register_worker(worker, lease_s=LEASE_S)
        return _Daemon(store=store, worker_id=worker_id)

    def _pass_time(self) -> None:
        self.now += timedelta(minutes=self._chance.choice((1, 2, 5, 5, 10)))
        match self._chance.randint(1, 150):
            case 1:  # nobody is at work
                self.now += timedelta(minutes=self._chance.randint(30, 300))
            case 2:
                self.now += timedelta(hours=self._chance.randint(1, 8))
                self.n_jumps += 1
            case 3:
                self.now -= timedelta(hours=self._chance.randint(1, 8))
                self.n_jumps += 1

    async def _look_after(self) -> None:
        """End some objectives, and pause or resume a schedule now and then."""
        store, worker_id = self._daemons[0].store, self._daemons[0].worker_id
        await store.renew_lease(worker_id, lease_s=LEASE_S)
        for objective_id in [one.id for one in await store.objectives(are_open=True)]:
            text = (await store.objective(objective_id)).spec.text
            if self._chance.random() < (0.02 if "0 * * * *" in text else 0.5):
                await store.end_objective(objective_id, reason=StopReason.FINISHED)
                await store.join_objective(worker_id, objective_id)
                claim = await store.claim_duty(objective_id, worker_id, Duty.REPORT)
                assert claim is not None
                await store.record_report(claim, markdown="over")
                self.ends[objective_id] = len(self.steps)
        one = self._schedules[self._chance.randrange(len(self._schedules))]
        if self._chance.random() < 0.03:
            await store.switch_schedule(one.id, to=ScheduleStatus.PAUSED)
        elif self._chance.random() < 0.3:
            await store.switch_schedule(one.id, to=ScheduleStatus.ACTIVE)

    async def _let_fire(self, number: int) -> None:
        dies_at = self._chance.randint(0, 40) if self._chance.random() < 0.1 else None
        daemon = self._daemons[number]
        try:
            await daemon.fire(dies_at=dies_at)
        except Killed:
            self.n_kills += 1
            await daemon.store.close()
            self._daemons[number] = await self._open()

    async def _settle(self) -> None:
        """Whatever is due is decided, also what waits for an earlier one."""
        for one in self._schedules:
            await self._daemons[0].store.switch_schedule(one.id, to=ScheduleStatus.ACTIVE)
        while (await self._daemons[0].fire(dies_at=None)) != []:
            pass

    async def _count(self) -> int:
        store = self._daemons[0].store
        counts = [len((await store.schedule(one.id, limit=100_000))[1]) for one in self._schedules]
        return sum(counts)


@dataclass
class Audit:
    """Looks at all rows, and at all objectives, from outside."""

    campaign: Campaign
    store: TaskStore
    schedules: list[Schedule]
    outcomes: Counter[str] = field(default_factory=Counter)

    async def find_faults(self) -> list[str]:
        faults = []
        begun: Counter[int] = Counter()
        for one in self.schedules:
            ticks = ((await self.store.schedule(one.id, limit=100_000))[1])[::-1]
            now = (await self.store.schedule(one.id))[0]
            faults += self._find_gaps(one, now, ticks)
            faults += self._find_unexplained(one, ticks)
            begun.update(tick.objective_id for tick in ticks if tick.objective_id is not None)
            self.campaign_outcomes(ticks)
        objectives = await self.store.objectives()
        faults += [f"objective {id_} is of {n} ticks" for id_, n in begun.items() if n > 1]
        faults += [f"objective {one.id} is of no tick" for one in objectives if one.id not in begun]
        by_text = Counter(one.uid for one in objectives)
        faults += [f"tick {uid} was fired {n} times" for uid, n in by_text.items() if n > 1]
        damages = (await self.store.verify()).damages
        return [*faults, *damages]

    def campaign_outcomes(self, ticks: list[Tick]) -> None:
        self.outcomes.update(f"{tick.outcome} {tick.reason}".strip() for tick in ticks)

    def _find_gaps(self, one: Schedule, now: Schedule, ticks: list[Tick]) -> list[str]:
        """Every instant that the rule names, up to the next one, has one row."""
        due: list[datetime] = []
        at: datetime | None = self.campaign.begins
        while (
            at is not None
            and (at := next_due(one.spec.rule, after=at)) is not None
            and (now.due_at is None or at < now.due_at)
        ):
            due.append(at)
        rows = Counter(tick.due_at for tick in ticks)
        return [
            f"schedule {one.id}: {rows.get(at, 0)} rows for {at}"
            for at in sorted({*due, *rows})
            if rows.get(at, 0) != 1 or at not in due
        ]

    def _find_unexplained(self, one: Schedule, ticks: list[Tick]) -> list[str]:
        """Rows whose reason is not so by what was seen from outside."""
        return [
            f"schedule {one.id}: {tick.words} at {tick.decided_at}: not so"
            for place, tick in enumerate(ticks)
            if not self._is_explained(one, tick, ticks[:place], ticks[place + 1 :])
        ]

    def _is_explained(
        self, one: Schedule, tick: Tick, before: list[Tick], later: list[Tick]
    ) -> bool:
        spec = one.spec
        is_late = tick.decided_at - tick.due_at > timedelta(seconds=spec.grace_s)
        match (tick.outcome, tick.reason):
            case (TickOutcome.FIRED, TickReason.NONE):
                is_due = tick.due_at <= tick.decided_at
                return is_due and not (is_late and spec.catch_up is CatchUp.NONE)
            case (TickOutcome.MISSED, TickReason.GRACE):
                return is_late and spec.catch_up is CatchUp.NONE
            case (TickOutcome.COALESCED, TickReason.CATCH_UP):
                return is_late and spec.catch_up is CatchUp.ONE and bool(later)
            case (TickOutcome.SKIPPED, TickReason.OVERLAP):
                return spec.overlap is Overlap.SKIP and self._was_busy(tick, before)
            case (TickOutcome.SKIPPED, TickReason.LIMIT):
                return bool(spec.daily_limit_usd)
            case (TickOutcome.SKIPPED, TickReason.PAUSED):
                return True
        return False

    def _was_busy(self, tick: Tick, before: list[Tick]) -> bool:
        """An objective of an earlier tick had not ended when this one was decided."""
        ends = self.campaign.ends
        begun = [one.objective_id for one in before if one.objective_id is not None]
        steps = [n for n, at in enumerate(self.campaign.steps, 1) if at == tick.decided_at]
        return any(ends.get(id_, sys.maxsize) > step for id_ in begun for step in steps)


def make_schedules(begins: datetime) -> list[ScheduleSpec]:
    """Every policy, intervals and expressions, in two zones."""

    def build(
        *, cron: str = "", every_s: float = 0.0, tz: str = "UTC", **more: Any
    ) -> ScheduleSpec:
        rule = Rule(cron=cron, every_s=every_s, tz=tz, begins_at=begins)
        objective = make_spec(text=rule.words, limits=Limits(max_cost_usd=1.0))
        fields: dict[str, Any] = {"daily_limit_usd": 0.0, **more}
        return ScheduleSpec(objective=objective, rule=rule, **fields)

    return [
        build(every_s=300, grace_s=600),
        build(cron="*/15 * * * *", tz=BERLIN, overlap=Overlap.SKIP, catch_up=CatchUp.ALL),
        build(cron="30 2 * * *", tz=BERLIN, overlap=Overlap.ALLOW, catch_up=CatchUp.NONE),
        build(cron="0 * * * *", tz=NEW_YORK, overlap=Overlap.ALLOW, daily_limit_usd=DAILY_USD),
        build(every_s=420, grace_s=900, catch_up=CatchUp.NONE),
        build(cron="30 1 * * *", tz=NEW_YORK, overlap=Overlap.ALLOW, grace_s=60),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one era came to."""

    n_ticks: int
    n_kills: int
    n_jumps: int
    outcomes: Counter[str]
    faults: list[str]


async def run_era(era: str, *, n_ticks: int, seed: int) -> Found:
    with tempfile.TemporaryDirectory(prefix="babyagi-schedules-") as folder:
        campaign = Campaign(folder=Path(folder), begins=ERAS[era], seed=seed)
        try:
            faults = await campaign.run(n_ticks)
            audit = Audit(campaign, campaign._daemons[0].store, campaign._schedules)
            for one in campaign._schedules:
                audit.campaign_outcomes((await audit.store.schedule(one.id, limit=100_000))[1])
        finally:
            await campaign.close()
    return Found(
        n_ticks=audit.outcomes.total(),
        n_kills=campaign.n_kills,
        n_jumps=campaign.n_jumps,
        outcomes=audit.outcomes,
        faults=faults,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    faults: list[str] = []
    rows = []
    for number, era in enumerate(ERAS):
        seed = given.seed + number
        found = asyncio.run(run_era(era, n_ticks=given.ticks // len(ERAS), seed=seed))
        faults += found.faults
        rows.append([era, found.n_ticks, found.n_kills, found.n_jumps, len(found.faults)])
        for outcome, n in sorted(found.outcomes.items()):
            print(f"{era}: {n:6,} {outcome}")
    print_table("Schedules", ["era", "ticks", "kills", "jumps", "faults (goal: 0)"], rows)
    for fault in faults[:20]:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
