"""Every rule of the task store as a pure function, used by all implementations, so that they cannot
drift apart.

Nothing here reads a clock or keeps state. Money is in whole micro-dollars and time in whole
microseconds wherever a name says so.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from babyagi.errors import LimitReachedError, ObjectiveStoppedError, SettingsError
from babyagi.tasks import (
    CheckedPart,
    Checks,
    Duty,
    Limits,
    Objective,
    ObjectiveSpec,
    ObjectiveStatus,
    Proposal,
    Reservation,
    Role,
    StopReason,
    TaskStatus,
    Usage,
)
from babyagi.taskstore.database import Row

MAX_NAME_CHARS = 2000
MAX_DETAIL_CHARS = 2000
# calls or tokens of one step; a larger number is a fault of the endpoint and must not overflow a
# sum
MAX_COUNT = 10**12
MAX_COST_MICROUSD = 10**12
MAX_BARREN = 5  # tasks in a row that bring nothing new, before no other is started
# tries in a row that brought neither an answer nor, by what they lacked, a new task, before no
# other is started
MAX_FRUITLESS = 20
MAX_LACKS = 3  # tries of a task that lack something, before it is given up
# of an objective: a person cannot see more at a glance, and each of them is paid for
MAX_OPEN_QUESTIONS = 5
MAX_REPEATS = 4  # of a name, without a newer answer that bears on it
MAX_REPEATS_IN_ALL = 12
MAX_IDLE_CHECKS = 3  # in a row, without a new answer since the one before
MAX_SLICE_TOKENS = 16_000  # kept back for a check, and for the report
MIN_CALLS_FOR_CHECK = 20  # from which limit of calls on some are kept back for a check
# workers in a row that are lost with a task, and none of them recorded a step of it, before it is
# given up
MAX_LOST = 10
SUSPECT_FROM = 4  # such workers in a row, from which on a task may be what kills them
MAX_LOST_PAUSE_S = 60.0
MAX_STUCK_CHECKS = 10  # in a row, without fewer parts missing

OPEN = (TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.RECORDED, TaskStatus.WAITING)
AT_WORK = (TaskStatus.RUNNING, TaskStatus.RECORDED)
CANCELLABLE = (TaskStatus.QUEUED, TaskStatus.WAITING)
# a task that comes `after` these need not wait for them
SETTLED = (TaskStatus.DONE, TaskStatus.DEAD, TaskStatus.CANCELLED)
CANCELLING = (StopReason.OBJECTIVE_MET, StopReason.CANCELLED)
REOPENED_BY_EXTENDING = (
    StopReason.LIMIT_TASKS,
    StopReason.LIMIT_CALLS,
    StopReason.LIMIT_TOKENS,
    StopReason.LIMIT_COST,
    StopReason.LIMIT_TIME,
    StopReason.WAITING,
    StopReason.STALLED,
    StopReason.UNMET,
    StopReason.FAILED,
)
FOR_GOOD = StopReason.CANCELLED  # the end that nothing re-opens

# -- text
# --------------------------------------------------------------------------------------------------

_ARTICLES = frozenset({"a", "an", "the"})
_OPENING = "\"'`([{«“”‘’„‹"
_CLOSING = "\"'`)]}»“”‘’›"
_RAISED = {ord(sign): f"^{power}" for power, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}  # 10² is not 102
_BULLETS = "–—•…"


def storable(text: str, *, max_chars: int | None = None) -> str:
    """The text without what UTF-8 cannot hold (lone surrogates) and PostgreSQL does not take (NUL),
    cut to `max_chars`."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")[:max_chars]


def one_line(text: str, *, max_chars: int | None = None) -> str:
    """The text as one line: white space collapsed, control characters removed."""
    visible = "".join(char for char in " ".join(text.split()) if unicodedata.category(char) != "Cc")
    return storable(visible, max_chars=max_chars).strip()


def name_key(name: str) -> str:
    """What two names share when they are the same to a reader; never empty for a name that is not
    blank.

    Case, articles, white space and the punctuation round a word do not count. Words with a slash
    (paths, addresses) keep their case, words with a digit keep every sign that could belong to the
    number.
    """
    words = name.split()
    kept = [_fold(word) for at, word in enumerate(words) if not _is_article(word, at, len(words))]
    return (
        " ".join(word for word in kept if word)
        or " ".join(unicodedata.normalize("NFKC", name).casefold().split())
        or name.strip()
    )


def _is_article(word: str, at: int, n_words: int) -> bool:
    """A capital one counts only where a sentence begins, and none at the end: `Plan A` is not
    `Plan`."""
    return at < n_words - 1 and (word in _ARTICLES or (at == 0 and word.lower() in _ARTICLES))


def _fold(word: str) -> str:
    if "/" in word or "\\" in word:
        return re.sub(r"(?<=[\w/])[.,;]+$", "", word.lstrip(_OPENING).rstrip("\"'`»”’›") or word)
    if any(char.isdigit() for char in word):
        bare = (
            word[1:-1] if len(word) > 2 and word[0] in _OPENING and word[-1] in _CLOSING else word
        )
        return unicodedata.normalize(
            "NFKC", (bare.rstrip(".,;:?") or bare).translate(_RAISED)
        ).casefold()
    bare = word.lstrip(_OPENING + _BULLETS).rstrip(_CLOSING + _BULLETS + ".,;:!?")
    return unicodedata.normalize(
        "NFKC", word if not bare and word in (".", "..") else bare
    ).casefold()


def identity_key(spec: ObjectiveSpec) -> str:
    """What starting the same objective again has in common with the first start."""
    identity = json.dumps([spec.text, spec.initial_task, spec.instance_name])
    return hashlib.sha256(identity.encode()).hexdigest()


def first_task(spec: ObjectiveSpec) -> Proposal:
    """An objective's first task; a person's words are not cut."""
    return Proposal(name=one_line(spec.initial_task))


# -- order
# --------------------------------------------------------------------------------------------------


def deal_ranks(current: Iterable[tuple[int, int]], wanted: Sequence[int]) -> dict[int, int]:
    """Deal the ranks that the wanted queued tasks hold out to them anew, in the wanted order.

    Args:
        current: `(id, rank)` of queued tasks.

    Returns:
        The new rank by id. Unknown and repeated ids are ignored; a task that is not wanted keeps
        its rank.
    """
    rank_by_id = dict(current)
    named = [task_id for task_id in dict.fromkeys(wanted) if task_id in rank_by_id]
    return dict(zip(named, sorted(rank_by_id[task_id] for task_id in named), strict=True))


# -- usage and limits
# --------------------------------------------------------------------------------------------------


def to_us(seconds: float) -> int:
    return round(seconds * 1_000_000)


def to_microusd(usd: float) -> int:
    """Whole micro-dollars, rounded up; what is not a price (negative, not a number) is 0."""
    if not usd > 0:
        return 0
    return MAX_COST_MICROUSD if usd * 1e6 >= MAX_COST_MICROUSD else math.ceil(round(usd * 1e6, 3))


def _count(number: int) -> int:
    return int(min(number, MAX_COUNT)) if number > 0 else 0


def countable_usage(usage: Usage) -> Usage:
    """The usage as it can be added up: nothing lowers what was spent, and nothing overflows."""
    return Usage(
        calls=_count(usage.calls),
        prompt_tokens=_count(usage.prompt_tokens),
        completion_tokens=_count(usage.completion_tokens),
        cost_usd=to_microusd(usage.cost_usd) / 1e6,
        unconfirmed_tokens=_count(usage.unconfirmed_tokens),
        unconfirmed_cost_usd=to_microusd(usage.unconfirmed_cost_usd) / 1e6,
    )


def countable_reservation(reservation: Reservation) -> Reservation:
    return Reservation(
        calls=_count(reservation.calls),
        tokens=_count(reservation.tokens),
        cost_usd=to_microusd(reservation.cost_usd) / 1e6,
    )


def charge_of(reservation: Reservation) -> Usage:
    """The usage that stands for a call nobody heard of again: all that it had reserved."""
    return unconfirmed(
        Usage(
            calls=reservation.calls, prompt_tokens=reservation.tokens, cost_usd=reservation.cost_usd
        )
    )


def unconfirmed(usage: Usage) -> Usage:
    """The usage, as one that no answer has confirmed."""
    return replace(usage, unconfirmed_tokens=usage.tokens, unconfirmed_cost_usd=usage.cost_usd)


def find_overspent(limits: Limits, usage: Usage, reserved: Reservation) -> str:
    """The limit (`cost`, `tokens`) that an answer shows cannot be held: it cost more than was
    reserved for it, or does not say what it cost; '' where there is none."""
    if limits.max_cost_usd and (
        to_microusd(usage.cost_usd) > to_microusd(reserved.cost_usd) or usage.unconfirmed_cost_usd
    ):
        return "cost"
    return "tokens" if limits.max_tokens and usage.tokens > reserved.tokens else ""


def kept_back(limits: Limits, owner: str) -> Reservation:
    """What the owner's calls must leave of each limit: everything a slice for the report, all but
    checks another for a check.

    The slice for the report is one call, a tenth of the tokens but at most 16,000, a twentieth of
    the money; that for a check the same, but two calls of twenty or more.
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
    """Limits of which `kept_back` leaves these, for an objective that ends without a check and a
    report."""
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
    """The name of the first limit that the owner's reservation does not fit under (`calls`,
    `tokens`, `cost`), None when it fits."""
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


def is_reached(limit: float, reached: float) -> bool:
    """0 means: no limit."""
    return 0 < limit <= reached


def require_call_allowed(objective: Objective, *, owner: str, reservation: Reservation) -> None:
    """Whether the owner may make a call that costs this much, now.

    Raises:
        ObjectiveStoppedError, LimitReachedError.
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
                "an answer cost more than was reserved for it, or did not say what it cost: "
                f"the limit of {objective.overspent} cannot be held"
            ),
            limit=objective.overspent,
            is_final=True,
        )
    if not is_report and is_reached(limits.max_time_s, objective.active_s):
        raise LimitReachedError(
            f"the time of {limits.max_time_s:g} s is used up", limit="time", is_final=True
        )
    final = refuse_reservation(limits, objective.usage, Reservation(), reservation, owner=owner)
    name = final or refuse_reservation(
        limits, objective.usage, objective.held, reservation, owner=owner
    )
    if name is not None:
        raise LimitReachedError(
            f"the next call does not fit under the limit of {name}",
            limit=name,
            is_final=final is not None,
        )


def is_report_owner(owner: str) -> bool:
    return owner == "report" or owner.startswith("report:")


def duty_owner(duty: Duty, row: Row) -> str:
    """The owner of a duty's steps: a new one for each order, planning, check and report, so that no
    old step is replayed in it."""
    match duty:
        case Duty.ORDER:
            return f"order:{row['order_revision']}"
        case Duty.PLAN:
            return f"plan:{row['plan_no']}"
        case Duty.CHECK:
            return f"check:{row['check_no']}"
        case Duty.REPORT:
            return "report" if row["report_no"] == 1 else f"report:{row['report_no']}"
        case Duty.INDEX:
            return "index"


DUTIES = (Duty.CHECK, Duty.PLAN, Duty.ORDER, Duty.REPORT)
"""What the dispatcher of a worker looks for, in this order; the duty to index has its own."""


# -- leases and time
# --------------------------------------------------------------------------------------------------


def elapsed_us(active_us: int, *, since_seen_us: int, lease_us: int) -> int:
    """The counted time so far. What passed since a worker was last seen counts up to one lease,
    whatever the clock did."""
    return active_us + min(max(since_seen_us, 0), lease_us)


def storable_hindrance(text: str) -> str:
    return one_line(text, max_chars=MAX_DETAIL_CHARS)


# -- states
# --------------------------------------------------------------------------------------------------


def count_barren(n_barren: int, *, n_added: int, is_repeat: bool) -> int:
    """How many tasks in a row were barren, after one more was planned from."""
    return n_barren + 1 if is_repeat and not n_added else 0


def status_after_failure(*, failures: int, max_failures: int) -> TaskStatus:
    """Where a running task goes after its `failures`th failure: tried again, or given up."""
    return TaskStatus.DEAD if failures >= max_failures else TaskStatus.QUEUED


def pause_after_loss(n_lost: int) -> float:
    """Seconds before a task is claimed again that so many workers in a row were lost with: none
    after the first."""
    return min(2.0 ** (n_lost - 2), MAX_LOST_PAUSE_S) if n_lost > 1 else 0.0


def is_delayed(now_us: int, *, not_before_us: int | None, delay_us: int) -> bool:
    """Whether a delay still lasts. One that would have begun in the future is that of a clock which
    has jumped back since."""
    return not_before_us is not None and not_before_us - delay_us <= now_us < not_before_us


def status_when_freed(
    status: TaskStatus, stop_reason: StopReason | None, *, is_asking: bool
) -> TaskStatus:
    """What a task that nobody holds any more becomes: queued, or waiting while a person must say
    something about one of its steps, unless the objective's end cancelled all that was queued. A
    task that is asking is never dead: its call may have been made."""
    if status in (TaskStatus.RUNNING, TaskStatus.QUEUED) or (
        status is TaskStatus.DEAD and is_asking
    ):
        if stop_reason in CANCELLING:
            return TaskStatus.CANCELLED
        return TaskStatus.WAITING if is_asking else TaskStatus.QUEUED
    return status


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What `conclude` looks at. `n_unblocked` are the queued tasks that wait for no other, delayed
    or not, `n_resumable` those of them that were begun before; `n_begun` counts every task that was
    ever begun. `n_barren` is how many tasks in a row brought nothing new, `n_fruitless` how many
    tries in a row gave no answer."""

    limits: Limits
    active_s: float
    is_claimed_met: bool
    n_held: int
    n_recorded: int
    n_unblocked: int
    n_resumable: int
    n_waiting: int
    n_done: int
    n_dead: int
    n_begun: int
    n_barren: int
    n_fruitless: int

    @property
    def is_stalled(self) -> bool:
        return self.n_unblocked > 0 and not may_start(
            n_barren=self.n_barren, n_fruitless=self.n_fruitless
        )

    @property
    def is_out_of_tasks(self) -> bool:
        """Whether the limit of tasks keeps every task that could be started from being begun."""
        return is_reached(self.limits.max_tasks, self.n_begun) and self.n_resumable == 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is under way, nothing is owed, and no task can be started however long
        one waits."""
        return not (self.n_held or self.n_recorded or self.n_unblocked or self.n_waiting)


def may_start(*, n_barren: int, n_fruitless: int) -> bool:
    """Whether another task is worth its while."""
    return n_barren < MAX_BARREN and n_fruitless < MAX_FRUITLESS


def needs_check(snapshot: Snapshot) -> bool:
    """Whether a model must say if the objective is met: somebody claims it, or nothing is left to
    do and something was answered."""
    if is_reached(snapshot.limits.max_time_s, snapshot.active_s):
        return False
    return snapshot.is_claimed_met or (snapshot.is_empty and snapshot.n_done > 0)


def conclude(snapshot: Snapshot) -> StopReason | None:
    """Why nothing more can happen in an active objective, None while something can: an empty list
    is a question for the check."""
    if snapshot.n_held:
        return None
    if is_reached(snapshot.limits.max_time_s, snapshot.active_s):
        return StopReason.LIMIT_TIME
    if snapshot.n_recorded or needs_check(snapshot):
        return None
    if snapshot.n_unblocked and not snapshot.is_stalled:
        return StopReason.LIMIT_TASKS if snapshot.is_out_of_tasks else None
    if snapshot.n_waiting:
        return StopReason.WAITING
    return StopReason.STALLED if snapshot.is_stalled else StopReason.FAILED


def explain(reason: StopReason, snapshot: Snapshot, *, errors: Sequence[str] = ()) -> str:
    """What a person must know beyond the reason that `conclude` gave.

    Args:
        errors: of the tasks that were given up; the most frequent one is named.
    """
    if reason is StopReason.FAILED:
        why = f": {Counter(errors).most_common(1)[0][0]}" if errors else ""
        return (
            f"no task was answered, {snapshot.n_dead} "
            f"{'was' if snapshot.n_dead == 1 else 'were'} given up{why}"
        )
    if reason not in (StopReason.STALLED, StopReason.WAITING) or not snapshot.is_stalled:
        return ""
    if snapshot.n_fruitless >= MAX_FRUITLESS:
        return f"the last {snapshot.n_fruitless} tries in a row gave no answer and no new task"
    return (
        f"the last {snapshot.n_barren} tasks brought no new task, and results that nearly "
        "equal earlier ones"
    )


def after_check(
    checks: Checks,
    *,
    parts: Sequence[CheckedPart],
    missing: Sequence[str],
    n_answers: int,
    is_round: bool,
) -> Checks:
    """What is known after one more check that found something missing.

    Args:
        n_answers: how many answers there are now. is_round: the list was empty, so the check counts
            as one in vain.
    """
    n_missing = max(1, len(missing))
    is_better = not checks.least_missing or n_missing < checks.least_missing
    is_idle = is_round and n_answers == checks.n_answers
    return Checks(
        parts=tuple(parts),
        missing=tuple(missing),
        n_idle=checks.n_idle + 1 if is_idle else 0 if is_round else checks.n_idle,
        n_stuck=0 if is_better else checks.n_stuck + int(is_round),
        least_missing=n_missing if is_better else checks.least_missing,
        n_answers=n_answers,
    )


def is_in_vain(checks: Checks) -> bool:
    """Whether asking for what is missing has brought nothing often enough."""
    return checks.n_idle >= MAX_IDLE_CHECKS or checks.n_stuck >= MAX_STUCK_CHECKS


def require_nobody_at_work(objective_id: int, *, is_held: bool) -> None:
    """Raises `SettingsError` when a living worker holds something of the objective."""
    if is_held:
        raise SettingsError(
            f"a worker is at work on objective {objective_id}",
            fix=f"babyagi pause --objective {objective_id}",
        )


def in_other_space(spec: ObjectiveSpec, *, model: str, space: str) -> ObjectiveSpec:
    return replace(
        spec, model_by_role={**spec.model_by_role, Role.EMBEDDING: model}, embedding_space=space
    )
