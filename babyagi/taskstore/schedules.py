"""Schedules: objectives that are started again and again, when each tick is due, and the outcome of
a tick.

Only pure functions and data types; the store keeps the schedules and provides the time. A tick is
identified by the instant at which it is due. Local times follow Debian's cron: a
fixed time that does not exist on a day is due at the end of the gap, and one that occurs twice is
due the first time only; an expression whose minutes or hours begin with `*` follows elapsed time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from babyagi.tasks import ObjectiveSpec, require_utc
from babyagi.text import say_duration

MIN_EVERY_S = 60.0
MAX_CRON_CHARS = 200
N_CRON_FIELDS = 5
DAILY_LIMIT_USD = 5.0
TICK_DECIDED = "tick.decided"  # the name of its record in a log; the row is the truth
_MAX_STALE = 200  # instants of an expression that may be skipped because they are past
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Overlap(StrEnum):
    """What to do with a tick (a time at which a schedule is due) while the objective of an earlier
    tick is running."""

    SKIP = "skip"
    ALLOW = "allow"


class CatchUp(StrEnum):
    """What to do with ticks that could not fire within the grace period, because no worker was
    running."""

    ONE = "one"  # only the last of them fires
    ALL = "all"
    NONE = "none"


class TickOutcome(StrEnum):
    """What became of a tick, a time at which a schedule was due."""

    FIRED = "fired"
    COALESCED = "coalesced"  # a later tick replaces it
    SKIPPED = "skipped"
    MISSED = "missed"


class TickReason(StrEnum):
    """Why a tick (a time at which a schedule was due) did not start an objective at that time."""

    NONE = ""
    CATCH_UP = "catch-up"  # no worker was running, and a later tick replaces it
    GRACE = "grace"  # no worker was running until the grace period was over
    OVERLAP = "overlap"  # an earlier objective is running
    LIMIT = "limit"  # the daily cost limit
    PAUSED = "paused"
    REMOVED = "removed"


class ScheduleStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"  # no tick is left
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When ticks are due. Exactly one of three is set: `cron`, an expression of five fields in the
    time zone `tz`; `every_s`, a number of seconds, counted from `begins_at`; or `at`, one
    instant."""

    cron: str = ""
    every_s: float = 0.0
    at: datetime | None = None
    tz: str = "UTC"
    begins_at: datetime

    def __post_init__(self) -> None:
        require_utc("at", self.at)
        require_utc("begins_at", self.begins_at)
        if bool(self.cron) + bool(self.every_s) + (self.at is not None) != 1:
            raise ValueError("it starts by exactly one of cron, every and at")
        if self.every_s and not self.every_s >= MIN_EVERY_S:
            least, got = f"{MIN_EVERY_S:g} s", f"{self.every_s:g} s"
            raise ValueError(f"an interval must be at least {least}, got {got}")

    @property
    def words(self) -> str:
        """The rule as text: `cron 0 3 * * * Europe/Berlin`, `every 2 h`,
        `at 2026-12-01T08:00+00:00`."""
        if self.cron:
            return f"cron {self.cron} {self.tz}"
        if self.at is not None:
            return f"at {self.at.isoformat(timespec='minutes')}"
        return f"every {say_duration(self.every_s)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """The part of a schedule that never changes: the objective that each tick starts, the rule for
    its ticks, and the policies. A `daily_limit_usd` of 0 means no limit."""

    objective: ObjectiveSpec
    rule: Rule
    grace_s: float = 3600.0
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.ONE
    daily_limit_usd: float = DAILY_LIMIT_USD

    def __post_init__(self) -> None:
        for name in ("grace_s", "daily_limit_usd"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)!r}")
        most = self.objective.limits.max_cost_usd
        if self.daily_limit_usd and not 0 < most <= self.daily_limit_usd:
            raise ValueError(
                "with a daily limit, each tick needs a cost limit, which must not exceed the "
                "daily limit"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A stored schedule. `due_at` is when its next tick is due; None when there are no more."""

    id: int
    uid: str
    spec: ScheduleSpec
    status: ScheduleStatus
    due_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """What became of one tick (a time at which a schedule was due); this was determined at
    `decided_at`. `objective_id` is None if the tick started no objective, or the objective was
    deleted."""

    schedule_id: int
    due_at: datetime
    outcome: TickOutcome
    reason: TickReason = TickReason.NONE
    objective_id: int | None = None
    decided_at: datetime

    @property
    def words(self) -> str:
        """The outcome as a line of text, such as `schedule 3: the tick of 2026-12-01 03:00 UTC
        fired as objective 12`."""
        due = f"schedule {self.schedule_id}: the tick of {self.due_at:%Y-%m-%d %H:%M} UTC"
        if self.objective_id is not None:
            return f"{due} fired as objective {self.objective_id}"
        was = "" if self.outcome is TickOutcome.FIRED else "was "
        return f"{due} {was}{self.outcome}{f': {self.reason}' if self.reason else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """The ticks whose outcome `TaskStore.fire_schedules` determined, and the seconds until the next
    tick (None if no schedule has one)."""

    ticks: tuple[Tick, ...] = ()
    wait_s: float | None = None


# -- when
# --------------------------------------------------------------------------------------------------


def next_due(rule: Rule, *, after: datetime) -> datetime | None:
    """Return the first instant later than `after` at which a tick is due, in UTC; None if there is
    none within fifty years."""
    if rule.at is not None:
        return rule.at if rule.at > after else None
    if rule.every_s:
        step = timedelta(seconds=rule.every_s)
        n_passed = max(0, (after - rule.begins_at) // step)
        return rule.begins_at + (n_passed + 1) * step
    return _next_of_cron(rule.cron, ZoneInfo(rule.tz), after)


def require_cron(expression: str) -> str:
    """Return the cron expression with single blanks between its fields. Raises `ValueError` with
    the reason if it is invalid."""
    from cronsim import CronSim, CronSimError

    if len(expression) > MAX_CRON_CHARS:
        raise ValueError(f"a cron expression has at most {MAX_CRON_CHARS} characters")
    fields = expression.split()
    if len(fields) != N_CRON_FIELDS:
        raise ValueError(
            f"a cron expression has five fields (minute hour day month weekday), got {expression!r}"
        )
    try:
        CronSim(expression, _EPOCH)
    except CronSimError as error:
        raise ValueError(f"{expression!r} cannot be read: {error}") from error
    return " ".join(fields)


def find_zone(name: str) -> ZoneInfo:
    """Return the time zone of this name. Raises `ValueError` if this machine does not know it."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is not a time zone that this machine knows") from error


def parse_local(text: str, zone: ZoneInfo) -> datetime:
    """Return the UTC instant of a local time such as `2026-12-01T09:00`; the first one if it occurs
    twice. Raises `ValueError` when it is invalid, or does not exist in the zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time such as 2026-12-01T09:00") from error
    if found.tzinfo is not None:
        return found.astimezone(UTC)
    local = found.replace(tzinfo=zone, fold=0)
    if local.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != found:
        raise ValueError(f"{text} does not exist in {zone.key}: the clocks go forward there")
    return local.astimezone(UTC)


def _next_of_cron(expression: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    from cronsim import CronSim

    found = CronSim(expression, after.astimezone(zone))
    # within an hour that occurs twice it first gives local times that are past
    for _ in range(_MAX_STALE):
        try:
            due = next(found).astimezone(UTC)
        except (StopIteration, OverflowError, ValueError):  # beyond the last year of `datetime`
            return None
        if due > after:
            return due
    return None


def day_of(rule: Rule, at: datetime) -> tuple[datetime, datetime]:
    """Return the beginning and the end of the local day of an instant, in UTC."""
    zone = ZoneInfo(rule.tz)
    begins = at.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    ends = begins + timedelta(days=1)  # one day on the clock, even if it has only 23 hours
    return begins.astimezone(UTC), ends.astimezone(UTC)


def objective_uid(schedule_uid: str, due_at: datetime) -> str:
    """Return the uid of the objective that a tick starts. It is derived from the tick, so one tick
    cannot start two objectives."""
    return f"{schedule_uid}-{(due_at - _EPOCH) // _MICROSECOND:x}"


def schedule_uid(uid: str) -> str:
    """Return the uid of the schedule whose tick started the objective with this uid; '' if none
    did."""
    before, dash, _ = uid.partition("-")
    return before if dash else ""


# -- what becomes of a tick
# --------------------------------------------------------------------------------------------------

Verdict = tuple[TickOutcome, TickReason]
"""What becomes of a tick, and the reason if it does not fire."""


def decide(
    spec: ScheduleSpec,
    status: ScheduleStatus,
    *,
    late_s: float,
    is_next_due: bool,
    is_busy: bool,
) -> Verdict:
    """Return the outcome of a tick that is due, decided by the state of its schedule, then by grace
    period, catch-up and overlap. The daily limit can still forbid a tick that fires
    (`decide_by_limit`).

    Args:
        late_s: how long ago the tick was due.
        is_next_due: whether the next tick is due by now as well.
        is_busy: whether the objective of an earlier tick is running.
    """
    is_late = late_s > spec.grace_s
    if status in (ScheduleStatus.PAUSED, ScheduleStatus.REMOVED):
        return TickOutcome.SKIPPED, TickReason(status.value)
    if is_late and spec.catch_up is CatchUp.NONE:
        return TickOutcome.MISSED, TickReason.GRACE
    if is_late and spec.catch_up is CatchUp.ONE and is_next_due:
        return TickOutcome.COALESCED, TickReason.CATCH_UP
    if is_busy and spec.overlap is Overlap.SKIP:
        return TickOutcome.SKIPPED, TickReason.OVERLAP
    return TickOutcome.FIRED, TickReason.NONE


def decide_by_limit(spec: ScheduleSpec, *, left_usd: float | None) -> Verdict:
    """Return whether the daily limit lets a tick fire: the rest of the day's limit must cover all
    that its objective may spend, so that no day costs more than its limit."""
    if left_usd is not None and round(left_usd, 6) < spec.objective.limits.max_cost_usd:
        return TickOutcome.SKIPPED, TickReason.LIMIT
    return TickOutcome.FIRED, TickReason.NONE
