import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from babyagi.tasks import (
    CheckedPart,
    Checks,
    Duty,
    Effect,
    Limits,
    ObjectiveStatus,
    Reservation,
    StopReason,
    TaskStatus,
    ToolGrant,
    Usage,
)
from babyagi.taskstore import lifecycle, limits, names
from babyagi.taskstore.sql.database import parse_queries
from babyagi.taskstore.sql.transitions import Progress
from tests.cli import samples
from tests.cli.samples import objective


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Read the report", "read  the report."),
        ("“Sum up” results", "sum up results!"),
        ("The list of (new) teas", "the list of new teas"),
        ("Summarise https://x.com/a.", "summarise https://x.com/a"),
        ("Caf\u00e9 prices", "Cafe\u0301 prices"),
        ("Ask 3 people:", "ask 3 people"),
    ],
)
def test_names_that_read_the_same_share_a_key(one, other):
    assert names.name_key(one) == names.name_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Read page 1", "Read page 2"),
        ("Scale by -5", "Scale by 5"),
        ("Version 1.5", "Version 15"),
        ("Open /tmp/a", "Open /tmp/A"),
        ("Open /tmp/a", "Open tmp/a"),
        ("Read https://x.com/v2.1?id=3", "Read https://x.com/v21id3"),
        ("Read https://x.com/wiki/A_(b)", "Read https://x.com/wiki/A_(b"),
        ("Edit .env", "Edit env"),
        ("Learn C++", "Learn C"),
        ("Learn C#", "Learn C"),
        ("Follow plan A", "Follow plan"),
        ("Vitamin A sources", "Vitamin sources"),
        ("List ..", "List ."),
        ("Write a poem", "Write two poems"),
        ("Compute 10² + 1", "Compute 102 + 1"),
    ],
)
def test_names_that_differ_in_a_number_path_address_or_word_keep_apart(one, other):
    assert names.name_key(one) != names.name_key(other)


@given(st.text())
def test_a_name_that_is_not_blank_has_a_key(name):
    assert bool(names.name_key(name)) == bool(name.strip())


@given(st.lists(st.integers(0, 30), unique=True), st.lists(st.integers(-3, 40)))
def test_dealing_ranks_only_permutes_the_ranks_of_the_named_tasks(ids, wanted):
    current = [(task_id, 100 - task_id) for task_id in ids]
    dealt = lifecycle.deal_ranks(current, wanted)
    named = [task_id for task_id in dict.fromkeys(wanted) if task_id in ids]
    assert sorted(dealt, key=dealt.__getitem__) == named
    assert sorted(dealt.values()) == sorted(100 - task_id for task_id in named)


@given(st.integers(0, 1000), st.integers(0, 10**7), st.integers(0, 10**9))
def test_without_a_report_exactly_the_limits_that_were_set_can_be_used(calls, tokens, microusd):
    set_ = Limits(max_calls=calls, max_tokens=tokens, max_cost_usd=microusd / 1e6)

    raised = limits.raise_by_kept_back(set_)
    kept = limits.kept_back(raised, "task:1")

    assert (raised.max_calls - kept.calls, raised.max_tokens - kept.tokens) == (calls, tokens)
    assert limits.to_microusd(raised.max_cost_usd) - limits.to_microusd(kept.cost_usd) == microusd


def test_only_the_check_and_the_report_can_use_what_is_kept_back_for_them():
    set_ = Limits(max_calls=20, max_tokens=100_000, max_cost_usd=1.0)
    work, check, report = (
        limits.kept_back(set_, owner) for owner in ("task:1", "check:1", "report")
    )
    assert work == Reservation(calls=3, tokens=20_000, cost_usd=0.1)
    assert check == Reservation(calls=1, tokens=10_000, cost_usd=0.05)
    assert report == Reservation()

    def refused(usage, wanted, *, owner="plan:1"):
        return limits.refuse_reservation(set_, usage, Reservation(), wanted, owner=owner)

    assert refused(Usage(calls=17), Reservation(calls=1)) == "calls"
    assert refused(Usage(calls=17), Reservation(calls=2), owner="check:1") is None
    assert refused(Usage(calls=19), Reservation(calls=1), owner="check:1") == "calls"
    assert refused(Usage(calls=19), Reservation(calls=1), owner="report:2") is None
    assert refused(Usage(prompt_tokens=60_000), Reservation(tokens=20_001)) == "tokens"
    assert refused(Usage(prompt_tokens=60_000), Reservation(tokens=20_000)) is None
    assert refused(Usage(cost_usd=0.85), Reservation(cost_usd=0.050001)) == "cost"
    assert refused(Usage(cost_usd=0.85), Reservation(cost_usd=0.05)) is None
    assert refused(Usage(cost_usd=99), Reservation(calls=1)) is None


def test_of_few_calls_none_is_kept_back_for_a_check():
    assert limits.kept_back(Limits(max_calls=19), "task:1").calls == 1


@pytest.mark.parametrize(
    ("usd", "microusd"),
    [(0.0, 0), (0.0000001, 1), (0.000002, 2), (0.1 + 0.2, 300_000), (-1.0, 0), (float("nan"), 0)],
)
def test_money_is_rounded_up_to_whole_micro_dollars(usd, microusd):
    assert limits.to_microusd(usd) == microusd


def test_endless_usage_is_bounded():
    usage = limits.countable_usage(Usage(calls=1, prompt_tokens=10**30, cost_usd=float("inf")))
    assert (usage.prompt_tokens, usage.cost_usd) == (10**12, 10**6)


NOTHING = lifecycle.Snapshot(
    limits=Limits(max_tasks=3, max_time_s=60),
    active_s=0,
    is_claimed_met=False,
    n_held=0,
    n_recorded=0,
    n_unblocked=0,
    n_resumable=0,
    n_waiting=0,
    n_done=0,
    n_dead=0,
    n_begun=0,
    n_tasks_without_progress=0,
    n_tries_without_answer=0,
)
READY = {"n_unblocked": 1}


@pytest.mark.parametrize(
    ("changes", "needs_check", "reason"),
    [
        ({}, False, StopReason.FAILED),
        ({"n_dead": 2}, False, StopReason.FAILED),
        ({"n_done": 1}, True, None),
        (
            {"n_done": 1, "n_dead": 2, "n_tasks_without_progress": 5, "n_tries_without_answer": 20},
            True,
            None,
        ),
        ({"n_done": 1, "active_s": 60}, False, StopReason.LIMIT_TIME),
        ({"n_done": 1, "n_held": 1}, False, None),
        ({"n_done": 1, "n_recorded": 1}, False, None),
        ({"n_done": 1, "n_waiting": 1}, False, StopReason.WAITING),
        ({"n_done": 1}, True, None),
        ({"n_done": 1, **READY}, False, None),
        ({}, False, StopReason.FAILED),
        ({"is_claimed_met": True}, True, None),
        ({"is_claimed_met": True, "n_held": 1}, True, None),
        ({"is_claimed_met": True, "n_recorded": 1, "n_waiting": 1, **READY}, True, None),
        ({"is_claimed_met": True, "active_s": 60}, False, StopReason.LIMIT_TIME),
        ({"n_held": 1}, False, None),
        ({"n_held": 1, "active_s": 60}, False, None),
        ({"n_recorded": 1, "n_begun": 3}, False, None),
        ({"n_recorded": 1, "active_s": 60}, False, StopReason.LIMIT_TIME),
        (READY, False, None),
        ({**READY, "active_s": 60}, False, StopReason.LIMIT_TIME),
        ({**READY, "n_begun": 2}, False, None),
        ({**READY, "n_begun": 3}, False, StopReason.LIMIT_TASKS),
        ({**READY, "n_begun": 3, "n_done": 3}, False, StopReason.LIMIT_TASKS),
        ({**READY, "n_begun": 3, "n_resumable": 1}, False, None),
        ({"n_waiting": 1}, False, StopReason.WAITING),
        ({**READY, "n_tasks_without_progress": 4, "n_tries_without_answer": 19}, False, None),
        ({**READY, "n_tasks_without_progress": 5}, False, StopReason.STALLED),
        ({**READY, "n_tries_without_answer": 20}, False, StopReason.STALLED),
        ({**READY, "n_tries_without_answer": 20, "n_done": 1}, False, StopReason.STALLED),
        ({**READY, "n_tasks_without_progress": 5, "n_begun": 3}, False, StopReason.STALLED),
        ({**READY, "n_tasks_without_progress": 5, "n_held": 1}, False, None),
        ({**READY, "n_tasks_without_progress": 5, "n_recorded": 1}, False, None),
        ({**READY, "n_tasks_without_progress": 5, "is_claimed_met": True}, True, None),
        ({**READY, "n_tasks_without_progress": 5, "n_waiting": 1}, False, StopReason.WAITING),
    ],
)
def test_an_objective_is_concluded_only_when_nothing_more_can_happen(changes, needs_check, reason):
    snapshot = replace(NOTHING, **changes)
    assert (lifecycle.needs_check(snapshot), lifecycle.conclude(snapshot)) == (needs_check, reason)


def test_without_limits_no_number_and_no_time_ends_an_objective():
    snapshot = replace(
        NOTHING,
        limits=Limits(max_tasks=0, max_time_s=0),
        active_s=1e9,
        n_begun=10**9,
        n_unblocked=1,
    )
    assert lifecycle.conclude(snapshot) is None


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"n_dead": 2}, "no task was answered, 2 were given up"),
        (
            {**READY, "n_tasks_without_progress": 5},
            "the last 5 tasks brought no new task, and their results nearly equal earlier ones",
        ),
        (
            {**READY, "n_tasks_without_progress": 5, "n_tries_without_answer": 21},
            "the last 21 tries in a row gave no answer and no new task",
        ),
        (
            {**READY, "n_tries_without_answer": 20, "n_waiting": 1},
            "the last 20 tries in a row gave no answer and no new task",
        ),
        ({"n_waiting": 1, "n_tries_without_answer": 20}, ""),
        ({**READY, "n_begun": 3}, ""),
    ],
)
def test_an_end_is_explained_where_its_reason_says_too_little(changes, detail):
    snapshot = replace(NOTHING, **changes)
    reason = lifecycle.conclude(snapshot)
    assert reason is not None
    assert lifecycle.explain(reason, snapshot) == detail


@pytest.mark.parametrize(
    ("before", "missing", "n_answers", "is_round", "n_idle", "n_stuck", "least"),
    [
        (Checks(), 3, 5, True, 0, 0, 3),
        # not met, but nothing is named: as if one part were missing
        (Checks(), 0, 5, True, 0, 0, 1),
        (Checks(n_answers=5, least_missing=3), 3, 5, True, 1, 1, 3),
        (Checks(n_answers=5, least_missing=3), 2, 5, True, 1, 0, 2),
        (Checks(n_answers=5, least_missing=3, n_idle=2, n_stuck=7), 4, 6, True, 0, 8, 3),
        (Checks(n_answers=5, least_missing=3, n_idle=2, n_stuck=7), 3, 5, False, 2, 7, 3),
        (Checks(n_answers=5, least_missing=3, n_idle=2, n_stuck=7), 1, 6, False, 2, 0, 1),
    ],
)
def test_a_check_of_an_empty_list_is_in_vain_without_a_new_answer_or_without_fewer_parts_missing(
    before, missing, n_answers, is_round, n_idle, n_stuck, least
):
    parts, names = (CheckedPart(part="a", task_id=1, quote="q"),), ("part",) * missing
    checks = lifecycle.after_check(
        before, parts=parts, missing=names, n_answers=n_answers, is_round=is_round
    )
    assert checks == Checks(
        parts=parts,
        missing=names,
        n_idle=n_idle,
        n_stuck=n_stuck,
        least_missing=least,
        n_answers=n_answers,
    )


@pytest.mark.parametrize(
    ("n_idle", "n_stuck", "is_in_vain"), [(0, 0, False), (2, 9, False), (3, 0, True), (0, 10, True)]
)
def test_asking_is_in_vain_after_three_idle_checks_or_ten_that_found_no_fewer_parts_missing(
    n_idle, n_stuck, is_in_vain
):
    assert lifecycle.is_in_vain(Checks(n_idle=n_idle, n_stuck=n_stuck)) == is_in_vain


@pytest.mark.parametrize(
    ("n_before", "n_added", "is_repeat", "n_after"),
    [(0, 0, True, 1), (4, 0, True, 5), (4, 1, True, 0), (4, 0, False, 0), (4, 2, False, 0)],
)
def test_only_a_repeated_result_without_a_new_task_is_barren(n_before, n_added, is_repeat, n_after):
    progress = Progress(n_tasks_without_progress=n_before, n_tries_without_answer=0, n_answers=0)
    after = progress.after_try(is_answered=True, n_added=n_added, is_repeat=is_repeat)
    assert after.n_tasks_without_progress == n_after


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a\r\n b\x1b[31m\x00", "a b[31m"),
        ("\n\x00 ", ""),
        ("x" * 9000, "x" * 2000),
        ("\u200bodd \ud800", "\u200bodd ?"),
    ],
)
def test_a_proposed_name_becomes_one_bounded_line(name, line):
    assert lifecycle.storable_line(name, max_chars=lifecycle.MAX_NAME_CHARS) == line


def test_a_task_that_comes_back_after_a_cancel_is_cancelled():
    freed = lifecycle.status_when_freed
    assert freed(StopReason.CANCELLED, is_asking=False) is TaskStatus.CANCELLED
    assert freed(StopReason.LIMIT_COST, is_asking=False) is TaskStatus.QUEUED
    assert freed(StopReason.CANCELLED, is_asking=True) is TaskStatus.CANCELLED
    assert freed(None, is_asking=True) is TaskStatus.WAITING


def test_a_task_that_its_worker_gives_up_comes_back_unless_it_is_done_or_dead():
    assert lifecycle.goes_back(TaskStatus.RUNNING, is_asking=False)
    assert lifecycle.goes_back(TaskStatus.DEAD, is_asking=True)
    assert not lifecycle.goes_back(TaskStatus.DEAD, is_asking=False)
    assert not lifecycle.goes_back(TaskStatus.RECORDED, is_asking=False)


def test_every_planning_order_and_check_and_each_later_report_has_steps_of_its_own():
    row = {"order_revision": 3, "plan_no": 4, "check_no": 5, "report_no": 1}
    assert [lifecycle.duty_owner(duty, row) for duty in Duty] == [
        "order:3",
        "plan:4",
        "check:5",
        "report",
        "index",
    ]
    assert lifecycle.duty_owner(Duty.REPORT, {**row, "report_no": 2}) == "report:2"


def test_two_pieces_of_sql_with_one_name_are_refused():
    assert parse_queries("-- a --\n-- What it does.\nSELECT 1;\n\n-- b --\nSELECT 2;\n") == {
        "a": "SELECT 1;",
        "b": "SELECT 2;",
    }
    with pytest.raises(ValueError, match="same name"):
        parse_queries("-- a --\nSELECT 1;\n-- a --\nSELECT 2;")


@pytest.mark.parametrize(
    ("changes", "more", "used_up"),
    [
        ({}, {}, ""),
        ({"max_tasks": 3}, {"n_begun": 3}, "tasks"),
        ({"max_time_s": 60}, {"active_s": 60.0}, "time"),
        ({"max_calls": 8}, {"usage": Usage(calls=7)}, "calls"),
        ({"max_cost_usd": 1.0}, {"usage": Usage(cost_usd=0.95)}, "cost"),
        ({"max_tokens": 1000}, {"overspent": "tokens"}, "tokens"),
    ],
)
def test_a_limit_that_lets_no_task_begin_is_named_until_it_is_raised(changes, more, used_up):
    none = Limits(max_tasks=0, max_calls=0, max_tokens=0, max_cost_usd=0, max_time_s=0)
    spec = replace(objective().spec, limits=replace(none, **changes))
    found = replace(
        objective(), **{"status": ObjectiveStatus.ACTIVE, "stop_reason": None, "ended_at": None},
        spec=spec, usage=Usage(), active_s=0.0,
    )  # fmt: skip
    found = replace(found, **more)

    assert limits.find_used_up(found) == used_up
    assert limits.find_used_up(found, none) == ""
    assert limits.find_used_up(found, replace(none, **changes)) == used_up


def test_what_ended_at_a_limit_has_used_it_up_though_a_small_call_would_fit():
    ended = replace(objective(), stop_reason=StopReason.LIMIT_TOKENS, usage=Usage())

    assert limits.find_used_up(ended) == "tokens"
    raised = replace(ended.spec.limits, max_tokens=2 * ended.spec.limits.max_tokens)
    assert limits.find_used_up(ended, raised) == ""


@pytest.mark.parametrize(
    ("now", "description", "effect"),
    [
        ('{"description": "New.", "parameters": {}}', "New.", Effect.ONCE),
        ('{"description": "New.", "parameters": {}, "effect": "read"}', "New.", Effect.ONCE),
        ('{"description": "New."}', "Old.", Effect.ONCE),
        ("[]", "Old.", Effect.ONCE),
        ("no JSON", "Old.", Effect.ONCE),
    ],
)
def test_of_a_changed_tool_only_description_and_parameters_are_granted(now, description, effect):
    granted = replace(
        samples.spec("Sing"), tools=(ToolGrant(name="t", effect=Effect.ONCE, description="Old."),)
    )
    request = json.dumps({"tool": "t", "arguments": {"now": now}})
    step = samples.step(kind=lifecycle.CHANGED, request=request, output='{"is_error": false}')

    (tool,) = lifecycle.decide_change(granted, step).tools

    assert (tool.name, tool.description, tool.effect) == ("t", description, effect)
