"""Limits as pure functions: what is reserved and charged for a call, how much of each limit is kept
back for the check and the report, and when a call is refused.

A name that contains `microusd` is an amount of money in whole micro-dollars.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from babyagi.errors import LimitReachedError, ObjectiveStoppedError, SettingsError
from babyagi.tasks import Limits, Objective, ObjectiveStatus, Reservation, Step, Usage
from babyagi.taskstore.lifecycle import is_reached
from babyagi.text import say_count, say_duration

# The most calls, tokens and micro-dollars that are counted for one step. A larger number is a
# mistake of the endpoint, and might overflow a sum.
MAX_COUNT = 10**12
MAX_COST_MICROUSD = 10**12
MAX_SLICE_TOKENS = 16_000  # maximum kept back for a check, and again for the report
MIN_CALLS_FOR_CHECK = 20  # with a smaller limit of calls, none are kept back for a check


# -- usage and limits
# --------------------------------------------------------------------------------------------------


def to_us(seconds: float) -> int:
    return round(seconds * 1_000_000)


def to_microusd(usd: float) -> int:
    """Return the amount in whole micro-dollars, rounded up; 0 for a negative amount or NaN."""
    if not usd > 0:
        return 0
    return MAX_COST_MICROUSD if usd * 1e6 >= MAX_COST_MICROUSD else math.ceil(round(usd * 1e6, 3))


def _count(number: int) -> int:
    return int(min(number, MAX_COUNT)) if number > 0 else 0


def countable_usage(usage: Usage) -> Usage:
    """Return the usage with negative numbers set to 0 and huge ones cut, so that sums of usages
    cannot overflow."""
    return Usage(
        calls=_count(usage.calls),
        prompt_tokens=_count(usage.prompt_tokens),
        completion_tokens=_count(usage.completion_tokens),
        cost_usd=to_microusd(usage.cost_usd) / 1e6,
        unconfirmed_tokens=_count(usage.unconfirmed_tokens),
        unconfirmed_cost_usd=to_microusd(usage.unconfirmed_cost_usd) / 1e6,
    )


def countable_reservation(reservation: Reservation) -> Reservation:
    """Return the reservation, changed in the same way as by `countable_usage`."""
    return Reservation(
        calls=_count(reservation.calls),
        tokens=_count(reservation.tokens),
        cost_usd=to_microusd(reservation.cost_usd) / 1e6,
    )


def charge_of(reservation: Reservation) -> Usage:
    """Return the usage to charge for a call whose outcome is unknown: everything that was reserved
    for it, marked as unconfirmed."""
    return unconfirmed(
        Usage(
            calls=reservation.calls, prompt_tokens=reservation.tokens, cost_usd=reservation.cost_usd
        )
    )


def unconfirmed(usage: Usage) -> Usage:
    """Return the usage with all its tokens and costs marked as unconfirmed, which means that no
    answer of a model has stated them."""
    return replace(usage, unconfirmed_tokens=usage.tokens, unconfirmed_cost_usd=usage.cost_usd)


def charge_unconfirmed(step: Step) -> tuple[Step, Usage]:
    """Charge a step's reservation, because its claim ended while its call was in flight.

    Returns:
        The changed step, and the usage to charge: everything that was reserved for the call. If the
        answer arrives later, `end_call` corrects the charge.
    """
    charge = charge_of(step.reservation)
    return replace(
        step,
        reservation=Reservation(),
        usage=step.usage + charge,
        unconfirmed=(*step.unconfirmed, (step.claim_no, charge)),
    ), charge


def reserved_for(step: Step, *, claim_no: int) -> Reservation:
    """Return what was reserved for the call that claim `claim_no` made of this step, even if it has
    been charged meanwhile."""
    charged = sum((charge for no, charge in step.unconfirmed if no == claim_no), Usage())
    if charged.calls or step.claim_no != claim_no:
        return Reservation(calls=charged.calls, tokens=charged.tokens, cost_usd=charged.cost_usd)
    return step.reservation


def end_call(step: Step, usage: Usage, *, claim_no: int, is_held: bool) -> tuple[Step, bool, Usage]:
    """End the call that claim `claim_no` made of this step: replace its reservation, or what was
    charged for it, by its usage.

    Args:
        usage: the call's usage, as `countable_usage` returns it.
        is_held: whether the step holds a reservation, of whichever claim.

    Returns:
        The changed step; whether the call of another claim still holds a reservation; and the usage
        to add to the totals, which is negative if more was charged already.
    """
    charged = sum((charge for no, charge in step.unconfirmed if no == claim_no), Usage())
    counted = usage - charged
    holds = is_held and step.claim_no == claim_no
    ended = replace(
        step,
        usage=step.usage + counted,
        unconfirmed=tuple((no, charge) for no, charge in step.unconfirmed if no != claim_no),
        reservation=Reservation() if holds else step.reservation,
    )
    return ended, is_held and not holds, counted


def find_overspent(limits: Limits, usage: Usage, reserved: Reservation) -> str:
    """Return the limit (`cost` or `tokens`) that can no longer be guaranteed, because an answer
    used more than was reserved for its call or does not state its cost. Return '' when no limit is
    affected."""
    if limits.max_cost_usd and costs_more(usage, reserved):
        return "cost"
    return "tokens" if limits.max_tokens and usage.tokens > reserved.tokens else ""


def costs_more(usage: Usage, reserved: Reservation) -> bool:
    """Return whether an answer cost more money than was reserved for its call, or does not state
    what it cost."""
    is_more = to_microusd(usage.cost_usd) > to_microusd(reserved.cost_usd)
    return is_more or usage.unconfirmed_cost_usd > 0


def kept_back(limits: Limits, owner: str) -> Reservation:
    """Return how much of each limit the calls of `owner` (`task:7`, `plan:2`, `report` …) must
    leave unused: a slice for the report, unless they are the report's own calls, and a slice for a
    check, unless they are calls of the report or of a check.

    The report's slice is one call, a tenth of the tokens but at most 16,000, and a twentieth of the
    money. The check's slice is as many tokens and as much money, and two calls if the limit is at
    least 20 calls, else none.
    """
    if is_report_owner(owner):
        return Reservation()
    tokens, cost_usd = (
        min(limits.max_tokens // 10, MAX_SLICE_TOKENS),
        to_microusd(limits.max_cost_usd / 20) / 1e6,
    )
    if owner.startswith("check:"):
        return Reservation(calls=min(limits.max_calls, 1), tokens=tokens, cost_usd=cost_usd)
    n_calls = 3 if limits.max_calls >= MIN_CALLS_FOR_CHECK else min(limits.max_calls, 1)
    return Reservation(calls=n_calls, tokens=2 * tokens, cost_usd=2 * cost_usd)


def raise_by_kept_back(limits: Limits) -> Limits:
    """Return higher limits, of which `limits` remain after `kept_back` is subtracted. For an
    objective that makes no check and no report, and so may use what would be kept back for them."""
    n_calls, microusd = (
        limits.max_calls + min(limits.max_calls, 1),
        to_microusd(limits.max_cost_usd),
    )
    n_tokens = limits.max_tokens + min(2 * (limits.max_tokens // 8), 2 * MAX_SLICE_TOKENS)
    return replace(
        limits,
        max_calls=n_calls if n_calls < MIN_CALLS_FOR_CHECK else limits.max_calls + 3,
        max_tokens=n_tokens,
        max_cost_usd=(20 * (microusd // 18) + (microusd % 18 + 2 if microusd % 18 else 0)) / 1e6,
    )


def refuse_reservation(
    limits: Limits, usage: Usage, held: Reservation, reservation: Reservation, *, owner: str
) -> str | None:
    """Return the first limit (`calls`, `tokens` or `cost`) that a call with this reservation would
    exceed; None if the call fits.

    Args:
        held: what calls in flight have reserved already.
        owner: who makes the call (`task:7`, `report` …). What it must leave unused (`kept_back`)
            counts as used.
    """
    kept = kept_back(limits, owner)
    sums = (
        ("calls", limits.max_calls, kept.calls, usage.calls + held.calls, reservation.calls),
        ("tokens", limits.max_tokens, kept.tokens, usage.tokens + held.tokens, reservation.tokens),
        (
            "cost",
            to_microusd(limits.max_cost_usd),
            to_microusd(kept.cost_usd),
            to_microusd(usage.cost_usd) + to_microusd(held.cost_usd),
            to_microusd(reservation.cost_usd),
        ),
    )
    for name, limit, n_kept, taken, wanted in sums:
        if limit and wanted and taken + wanted > limit - n_kept:
            return name
    return None


FIELD_BY_NAME = {
    "tasks": "max_tasks",
    "calls": "max_calls",
    "tokens": "max_tokens",
    "cost": "max_cost_usd",
    "time": "max_time_s",
}


def find_used_up(objective: Objective, limits: Limits | None = None) -> str:
    """Return the limit (`tasks`, `calls`, `tokens`, `cost` or `time`) that prevents any further
    task of the objective from starting; '' when no limit does.

    Args:
        limits: the limits to test; None stands for the objective's own.
    """
    limits = limits or objective.spec.limits
    held = (objective.stop_reason or "").partition("limit:")[2] or objective.overspent
    if held:
        limit, before = (
            getattr(one, FIELD_BY_NAME[held]) for one in (limits, objective.spec.limits)
        )
        if 0 < limit <= before:
            return held
    if is_reached(limits.max_time_s, objective.active_s):
        return "time"
    least = Reservation(calls=1, tokens=1, cost_usd=1e-6)
    used = refuse_reservation(limits, objective.usage, Reservation(), least, owner="task")
    return used or ("tasks" if is_reached(limits.max_tasks, objective.n_begun) else "")


def require_unused(objective: Objective, limits: Mapping[str, float]) -> None:
    """Check that each of the new limits, named as the fields of `Limits`, is above what the
    objective has used already. 0, which means no limit, is. Raises `SettingsError`."""
    usage = objective.usage
    cents, seconds = math.floor(usage.cost_usd * 100) + 1, math.floor(objective.active_s) + 1
    used = {  # with the words for it, and the option with its least value
        "max_tasks": (
            objective.n_begun,
            say_count(objective.n_begun, "task"),
            f"--max-tasks {objective.n_begun + 1}",
        ),
        "max_calls": (
            usage.calls,
            say_count(usage.calls, "call"),
            f"--max-calls {usage.calls + 1}",
        ),
        "max_tokens": (
            usage.tokens,
            say_count(usage.tokens, "token"),
            f"--max-tokens {usage.tokens + 1}",
        ),
        "max_cost_usd": (
            usage.cost_usd,
            f"${usage.cost_usd:.4f} of cost",
            f"--max-cost {cents / 100:.2f}",
        ),
        "max_time_s": (
            objective.active_s,
            f"{say_duration(objective.active_s)} of time",
            f"--max-time {seconds}s",
        ),
    }
    for name, limit in limits.items():
        n_used, words, least = used[name]
        if is_reached(limit, n_used):
            are = (
                "are" if n_used != 1 and name in ("max_tasks", "max_calls", "max_tokens") else "is"
            )
            raise SettingsError(
                f"{words} {are} used already; give {least} or more",
                fix=f"babyagi extend --objective {objective.id} {least}",
                guide="limits",
            )


def require_call_allowed(objective: Objective, *, owner: str, reservation: Reservation) -> None:
    """Check that a call for `owner` (`task:7`, `report` …) that costs at most `reservation` may be
    made now.

    Raises:
        ObjectiveStoppedError: the objective is paused or has ended.
        LimitReachedError: the call would exceed a limit. `is_final` is set if it would do so even
            if no other call were in flight.
    """
    is_report = is_report_owner(owner)
    if objective.status is ObjectiveStatus.PAUSED:
        raise ObjectiveStoppedError(
            f"objective {objective.id} is paused", fix=f"babyagi resume --objective {objective.id}"
        )
    if objective.status is ObjectiveStatus.ENDED and not is_report and owner != "index":
        raise ObjectiveStoppedError(f"objective {objective.id} has ended: {objective.stop_reason}")
    limits = objective.spec.limits
    if objective.overspent:
        raise LimitReachedError(
            (
                "a model's answer cost more than was reserved for it, or did not state its cost, "
                f"so the limit of {objective.overspent} can no longer be guaranteed"
            ),
            limit=objective.overspent,
            is_final=True,
        )
    if not is_report and is_reached(limits.max_time_s, objective.active_s):
        raise LimitReachedError(
            f"the time limit of {limits.max_time_s:g} s is reached", limit="time", is_final=True
        )
    final = refuse_reservation(limits, objective.usage, Reservation(), reservation, owner=owner)
    name = final or refuse_reservation(
        limits, objective.usage, objective.held, reservation, owner=owner
    )
    if name is not None:
        raise LimitReachedError(
            f"the next call would exceed the limit of {name}",
            limit=name,
            is_final=final is not None,
        )


def is_report_owner(owner: str) -> bool:
    return owner == "report" or owner.startswith("report:")
