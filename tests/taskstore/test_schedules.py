from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from babyagi.tasks import Limits
from babyagi.taskstore.schedules import (
    CatchUp,
    Overlap,
    Rule,
    ScheduleSpec,
    ScheduleStatus,
    TickOutcome,
    TickReason,
    day_of,
    decide,
    decide_by_limit,
    find_zone,
    next_due,
    objective_uid,
    parse_local,
    require_cron,
    schedule_uid,
)
from support.world import make_spec

BERLIN = "Europe/Berlin"
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
# in Berlin 02:00 is followed by 03:00 on 29 March 2026, and 03:00 by 02:00 again on 25 October
SPRING = datetime(2026, 3, 28, 12, tzinfo=UTC)
AUTUMN = datetime(2026, 10, 24, 12, tzinfo=UTC)


def cron(expression, tz=BERLIN):
    return Rule(cron=expression, tz=tz, begins_at=NEW_YEAR)


def due_after(rule, after, n):
    def walk():
        at = after
        while (at := next_due(rule, after=at)) is not None:
            yield at

    return [f"{at:%d %H:%M}" for at in islice(walk(), n)]


def make_schedule(**fields):
    return ScheduleSpec(objective=make_spec(), rule=cron("0 3 * * *"), **fields)


# -- when
# --------------------------------------------------------------------------------------------------


def test_a_fixed_time_is_that_of_the_wall_in_winter_and_in_summer():
    assert due_after(cron("0 9 * * *"), SPRING, 2) == ["29 07:00", "30 07:00"]
    assert due_after(cron("0 9 * * *"), AUTUMN - timedelta(days=1), 3) == [
        "24 07:00",
        "25 08:00",
        "26 08:00",
    ]


def test_a_fixed_time_that_does_not_exist_is_due_once_at_the_end_of_the_gap():
    assert due_after(cron("30 2 * * *"), SPRING, 3) == ["29 01:00", "30 00:30", "31 00:30"]


def test_a_fixed_time_that_comes_twice_is_due_the_first_time_only():
    assert due_after(cron("30 2 * * *"), AUTUMN, 2) == ["25 00:30", "26 01:30"]


@pytest.mark.parametrize("minutes", range(0, 180, 10))
def test_within_a_doubled_hour_the_next_instant_is_later(minutes):
    asked = datetime(2026, 10, 25, 0, 0, tzinfo=UTC) + timedelta(minutes=minutes)
    for expression in ("30 2 * * *", "*/20 2 * * *", "15,45 1-3 * * *"):
        due = next_due(cron(expression), after=asked)
        assert due is not None and due > asked


def test_a_time_that_goes_on_all_day_follows_the_time_that_really_passes():
    in_autumn = datetime(2026, 10, 24, 23, 45, tzinfo=UTC)
    assert due_after(cron("*/30 * * * *"), in_autumn, 6) == [
        "25 00:00",
        "25 00:30",
        "25 01:00",
        "25 01:30",
        "25 02:00",
        "25 02:30",
    ]
    in_spring = datetime(2026, 3, 29, 0, 15, tzinfo=UTC)
    assert due_after(cron("0 * * * *"), in_spring, 3) == ["29 01:00", "29 02:00", "29 03:00"]


def test_an_interval_is_counted_from_where_it_began_whatever_the_clock_on_the_wall_does():
    rule = Rule(every_s=7200, begins_at=SPRING + timedelta(minutes=5))
    assert due_after(rule, SPRING + timedelta(hours=12), 3) == ["29 00:05", "29 02:05", "29 04:05"]
    assert due_after(rule, SPRING, 1) == ["28 14:05"]


def test_a_single_instant_is_due_once():
    rule = Rule(at=SPRING, begins_at=NEW_YEAR)
    assert next_due(rule, after=NEW_YEAR) == SPRING
    assert next_due(rule, after=SPRING) is None


@pytest.mark.parametrize(
    "expression", ["0 3 * *", "0 0 3 * * *", "61 * * * *", "0 0 30 2 *", "x", "", "* " * 200]
)
def test_an_expression_that_cannot_be_read_or_never_comes_is_refused(expression):
    with pytest.raises(ValueError, match=r"five fields|cannot be read|characters"):
        require_cron(expression)


def test_a_time_without_an_offset_is_local_and_one_that_does_not_exist_is_refused():
    berlin = find_zone(BERLIN)
    assert f"{parse_local('2026-12-01T09:00', berlin):%d %H:%M}" == "01 08:00"
    assert f"{parse_local('2026-10-25T02:30', berlin):%d %H:%M}" == "25 00:30"
    assert f"{parse_local('2026-12-01T09:00+05:00', berlin):%d %H:%M}" == "01 04:00"
    for text in ("2026-03-29T02:30", "tomorrow", "2026-13-01T09:00"):
        with pytest.raises(ValueError, match=r"does not exist|is not a time"):
            parse_local(text, berlin)


def test_a_zone_that_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="not a time zone"):
        find_zone("Europe/Atlantis")
    with pytest.raises(ValueError, match="not a time zone"):
        find_zone("../../etc/passwd")


def test_a_day_of_money_is_a_day_of_the_wall():
    begins, ends = day_of(cron("0 3 * * *"), SPRING + timedelta(hours=18))
    assert (ends - begins, begins.hour) == (timedelta(hours=23), 23)
    begins, ends = day_of(cron("0 3 * * *"), AUTUMN + timedelta(hours=18))
    assert ends - begins == timedelta(hours=25)


def test_an_objectives_uid_names_its_schedule_and_its_tick():
    uid = objective_uid("abc", SPRING)
    assert uid != objective_uid("abc", SPRING + timedelta(minutes=1))
    assert (schedule_uid(uid), schedule_uid("0123")) == ("abc", "")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"every_s": 59},
        {"every_s": 60, "cron": "* * * * *"},
        {"at": datetime(2026, 1, 1)},  # noqa: DTZ001  # naive
    ],
)
def test_a_rule_that_makes_no_sense_cannot_be_built(fields):
    with pytest.raises(ValueError, match=r"one of|an interval must be at least 60 s|at must"):
        Rule(begins_at=NEW_YEAR, **fields)


@pytest.mark.parametrize("fields", [{"grace_s": -1}, {"daily_limit_usd": 0.5}])
def test_policies_that_contradict_each_other_cannot_be_built(fields):
    with pytest.raises(ValueError, match=r"must be|daily limit"):
        make_schedule(**fields)


def test_under_a_limit_a_day_no_tick_is_without_a_limit():
    objective = make_spec(limits=Limits(max_cost_usd=0))
    with pytest.raises(ValueError, match="which must not exceed the daily limit"):
        ScheduleSpec(objective=objective, rule=cron("0 3 * * *"))


# -- what becomes of a tick
# --------------------------------------------------------------------------------------------------

LATE = timedelta(hours=2)


@pytest.mark.parametrize(
    ("fields", "at", "outcome", "reason"),
    [
        ({}, {}, TickOutcome.FIRED, TickReason.NONE),
        ({}, {"status": ScheduleStatus.PAUSED}, TickOutcome.SKIPPED, TickReason.PAUSED),
        ({}, {"status": ScheduleStatus.REMOVED}, TickOutcome.SKIPPED, TickReason.REMOVED),
        ({}, {"late": LATE}, TickOutcome.FIRED, TickReason.NONE),
        (
            {},
            {"late": LATE, "is_next_due": True},
            TickOutcome.COALESCED,
            TickReason.CATCH_UP,
        ),
        ({}, {"is_next_due": True}, TickOutcome.FIRED, TickReason.NONE),
        ({"catch_up": CatchUp.NONE}, {"late": LATE}, TickOutcome.MISSED, TickReason.GRACE),
        ({"catch_up": CatchUp.NONE, "grace_s": 7200}, {"late": LATE}, TickOutcome.FIRED, ""),
        ({"catch_up": CatchUp.ALL}, {"late": LATE, "is_next_due": True}, TickOutcome.FIRED, ""),
        ({}, {"is_busy": True}, TickOutcome.SKIPPED, TickReason.OVERLAP),
        ({"overlap": Overlap.ALLOW}, {"is_busy": True}, TickOutcome.FIRED, TickReason.NONE),
        ({}, {"left_usd": 0.99}, TickOutcome.SKIPPED, TickReason.LIMIT),
        ({}, {"left_usd": 1.0}, TickOutcome.FIRED, TickReason.NONE),
    ],
)
def test_the_outcome_of_a_tick_is_decided_by_state_grace_overlap_and_limit(
    fields, at, outcome, reason
):
    spec, left_usd = make_schedule(**fields), at.get("left_usd")
    verdict = decide(
        spec,
        at.get("status", ScheduleStatus.ACTIVE),
        late_s=at.get("late", timedelta(minutes=1)).total_seconds(),
        **{name: at.get(name, False) for name in ("is_next_due", "is_busy")},
    )
    if verdict == (TickOutcome.FIRED, TickReason.NONE):
        verdict = decide_by_limit(spec, left_usd=left_usd)
    assert verdict == (outcome, reason)
