"""Random histories of what is reserved and settled under limits, on any task store: several claims
at once, calls that answer, fail or are never heard of again, workers that die, late answers of dead
workers, and endpoints whose usage is missing, negative or huge.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from babyagi.errors import LeaseLostError, LimitReachedError, ObjectiveStoppedError
from babyagi.tasks import (
    Claim,
    Fence,
    Limits,
    ObjectiveSpec,
    Proposal,
    Reservation,
    Role,
    Usage,
    Worker,
)
from babyagi.taskstore.limits import countable_usage, kept_back, to_microusd
from babyagi.taskstore.nouns import Intention, Outcome
from babyagi.taskstore.sql.store import TaskStore
from support.workers import join

START = datetime(2030, 1, 1, tzinfo=UTC)
LEASE_S = 30.0
N_MOVES = 60
LIMIT_NAMES = ("calls", "tokens", "cost")


@dataclass
class Time:
    now: datetime = START

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was intended and has not come back yet, for the history; its claim may be gone by
    then."""

    fence: Fence
    key: str
    reservation: Reservation


@dataclass
class Ended:
    """How a history ended: the name of the limit that stopped it, if one did, and what was
    spent."""

    limit: str = ""
    n_calls: int = 0
    largest: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LIMIT_NAMES, 0))


class History:
    """One random history; `is_honest` keeps every usage within its reservation. Raises
    `AssertionError` at once when a promise breaks."""

    def __init__(self, store: TaskStore, time: Time, *, seed: int, is_honest: bool) -> None:
        self._store = store
        self._time = time
        self._chance = random.Random(seed)
        self._is_honest = is_honest
        self._flying: list[Call] = []
        self._claims: list[Claim] = []
        self._n_workers = self._n_keys = 0
        self._confirmed = Usage()
        self._spent_at_limit = Usage()
        self._overspent = ""
        self.ended = Ended()

    async def run(self) -> Ended:
        chance = self._chance
        limits = Limits(
            max_tasks=0,
            max_calls=chance.choice((0, chance.randint(1, 30))),
            max_tokens=chance.choice((0, chance.randint(1, 30_000))),
            max_cost_usd=chance.choice((0.0, chance.uniform(0.000_001, 0.2))),
            max_time_s=0,
        )
        spec = ObjectiveSpec(
            text="o",
            initial_task="t",
            limits=limits,
            model_by_role={Role.EXECUTION: "m"},
            embedding_space="s",
            prompt_version="1",
        )
        objective, _ = await self._store.create_objective(
            spec, uid=f"uid{chance.random()}", always_new=True
        )
        self._objective_id = objective.id
        await self._store.add_tasks(objective.id, [Proposal(name=f"task {n}") for n in range(3)])
        moves = (
            self._claim,
            self._intend,
            self._intend,
            self._intend,
            self._come_back,
            self._come_back,
            self._die,
        )
        for _ in range(N_MOVES):
            if await chance.choice(moves)():
                await self._check(limits)
            if self.ended.limit:
                break
        await self._finish(limits)
        return self.ended

    # -- moves: each says whether it may have changed what is spent or held
    # ----------------------------------------------------------------------------------------------

    async def _claim(self) -> bool:
        self._n_workers += 1
        worker_id = f"w{self._n_workers}"
        worker = Worker(id=worker_id, name=worker_id, host="h", pid=1, lease_until=self._time())
        await join(self._store, worker, self._objective_id, lease_s=LEASE_S)
        claim = await self._store.claim_task(self._objective_id, worker_id)
        if claim is not None:
            self._claims.append(claim)
        return False

    async def _intend(self) -> bool:
        if not self._claims:
            return False
        fence, reservation = self._chance.choice(self._claims[-4:]).fence, self._reservation()
        self._n_keys += self._chance.random() < 0.9  # now and then the same key again
        key = f"1/{self._n_keys}"
        overspent = (await self._store.objective(self._objective_id)).overspent
        try:
            step = await self._store.intend_step(
                fence,
                intention=Intention(
                    key=key, kind="model", request_hash="h", reservation=reservation
                ),
            )
        except LimitReachedError as error:
            if error.is_final:
                self.ended.limit, self._overspent = error.limit, overspent
                self._spent_at_limit = (await self._store.objective(self._objective_id)).usage
                self._note(reservation)
            return True
        except (LeaseLostError, ObjectiveStoppedError):
            return True
        call = Call(fence, key, step.reservation)
        assert not overspent or step.output is not None or call in self._flying, (
            "a call began after one that went over its reservation"
        )
        # intending what is intended already is no second call
        if step.output is None and call not in self._flying:
            self._note(step.reservation)
            self._flying.append(call)
            self.ended.n_calls += 1
        return True

    async def _come_back(self) -> bool:
        if not self._flying:
            return False
        call = self._flying.pop(self._chance.randrange(len(self._flying)))
        if self._chance.random() < 0.7:
            usage = self._usage(call.reservation)
            await self._store.record_step(
                call.fence, Outcome(key=call.key, output="{}", usage=usage)
            )
        else:
            usage = self._chance.choice((Usage(), self._usage(call.reservation)))
            await self._store.record_step(
                call.fence, Outcome(key=call.key, output=None, usage=usage)
            )
        self._confirmed += countable_usage(usage)
        return True

    async def _die(self) -> bool:
        """All workers are silent for longer than their lease; calls in flight may still come back
        later, unless nobody hears them."""
        if self._chance.random() < 0.5:
            return False
        self._time.now += timedelta(seconds=LEASE_S + 1)
        await self._store.reap_workers()
        self._flying = [call for call in self._flying if self._chance.random() < 0.5]
        return True

    # -- random values
    # ----------------------------------------------------------------------------------------------

    def _reservation(self) -> Reservation:
        chance = self._chance
        tokens = chance.choice((0, 1, chance.randint(1, 3000), chance.randint(1, 3000)))
        return Reservation(
            calls=1, tokens=tokens, cost_usd=chance.choice((0.0, chance.uniform(0, 0.02)))
        )

    def _usage(self, reservation: Reservation) -> Usage:
        chance = self._chance
        if self._is_honest:
            prompt = chance.randint(0, reservation.tokens)
            cost_usd = chance.choice(
                (reservation.cost_usd, chance.uniform(0, reservation.cost_usd))
            )
            return Usage(
                calls=1,
                prompt_tokens=prompt,
                completion_tokens=chance.randint(0, reservation.tokens - prompt),
                cost_usd=cost_usd,
            )
        odd: tuple[Any, ...] = (0, -1, -(10**18), 10**18, 5, 700)
        cost_usd = chance.choice((0.0, -1.0, float("nan"), float("inf"), 1e300, 0.003))
        return Usage(
            calls=1,
            prompt_tokens=chance.choice(odd),
            completion_tokens=chance.choice(odd),
            cost_usd=cost_usd,
        )

    # -- what must hold
    # ----------------------------------------------------------------------------------------------

    def _note(self, reservation: Reservation) -> None:
        sizes = {
            "calls": reservation.calls,
            "tokens": reservation.tokens,
            "cost": to_microusd(reservation.cost_usd),
        }
        self.ended.largest = {
            name: max(size, sizes[name]) for name, size in self.ended.largest.items()
        }

    async def _check(self, limits: Limits) -> None:
        objective = await self._store.objective(self._objective_id)
        spent, held = objective.usage, objective.held
        unheard = spent - self._confirmed
        assert min(unheard.calls, unheard.tokens, unheard.cost_usd) >= 0, (
            "less was counted than what came back"
        )
        if not self._is_honest:
            return
        assert not limits.max_calls or spent.calls + held.calls <= limits.max_calls
        assert not limits.max_tokens or spent.tokens + held.tokens <= limits.max_tokens
        total_microusd = to_microusd(spent.cost_usd) + to_microusd(held.cost_usd)
        assert not limits.max_cost_usd or total_microusd <= to_microusd(limits.max_cost_usd)

    async def _finish(self, limits: Limits) -> None:
        """When nothing is in flight any more nothing is held, and a limit that ended it was nearly
        reached."""
        while self._flying:
            await self._come_back()
            await self._check(limits)
        self._time.now += timedelta(seconds=LEASE_S + 1)
        await self._store.reap_workers()
        await self._check(limits)
        objective = await self._store.objective(self._objective_id)
        assert objective.held == Reservation()
        if self._overspent:
            assert not self._is_honest and self.ended.limit == self._overspent
        elif self.ended.limit:
            self._check_end(limits, self._spent_at_limit)

    def _check_end(self, limits: Limits, spent: Usage) -> None:
        kept = kept_back(limits, "task:1")
        left_by_name = {
            "calls": limits.max_calls - kept.calls - spent.calls,
            "tokens": limits.max_tokens - kept.tokens - spent.tokens,
            "cost": to_microusd(limits.max_cost_usd)
            - to_microusd(kept.cost_usd)
            - to_microusd(spent.cost_usd),
        }
        left, largest = left_by_name[self.ended.limit], self.ended.largest[self.ended.limit]
        assert left < largest, (
            f"it ended by {self.ended.limit} with {left} left; no reservation was larger "
            f"than {largest}"
        )
