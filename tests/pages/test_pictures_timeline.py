"""Bars in time, from events."""

import re
from datetime import timedelta

from babyagi import events
from babyagi.pages import pictures
from babyagi.pages.pictures import Bar, assign_lanes, find_bars, make_scale, render_timeline
from tests.cli import samples


def event(happened, second, task_id=4, /, **data):
    return samples.event(kind=happened, at=samples.at(second), task_id=task_id, data=data)


def bar(begins, ends, *, lane="w", task_id=1):
    return Bar(lane=lane, started_at=samples.at(begins), ended_at=samples.at(ends), task_id=task_id)


def test_a_try_lasts_from_its_claim_to_what_came_of_it():
    found = find_bars(
        [
            event(events.WORKER_JOINED, 0, None, worker_id="w1", name="anna"),
            event(events.TASK_CLAIMED, 1, worker_id="w1"),
            event(events.TASK_RECORDED, 6),
        ],
        now=samples.at(9),
    )

    assert [(one.lane, one.length_s, one.outcome) for one in found] == [("anna", 5.0, "answered")]


def test_a_try_that_still_goes_on_ends_now_and_one_claimed_again_was_cut_off():
    found = find_bars(
        [
            event(events.TASK_CLAIMED, 1, worker_id="a"),
            event(events.TASK_CLAIMED, 4, worker_id="b"),
        ],
        now=samples.at(9),
    )

    assert [(one.lane, one.length_s, one.outcome) for one in found] == [
        ("a", 3.0, "cut off"),
        ("b", 5.0, ""),
    ]


def test_what_was_done_at_once_stands_in_rows_below_each_other():
    lanes = assign_lanes([bar(0, 5, task_id=1), bar(1, 2, task_id=2), bar(3, 4, task_id=3)])

    assert [(name, len(bars)) for name, bars in lanes] == [("w", 1), ("", 2)]


def test_a_night_in_which_nobody_worked_takes_little_room():
    scale = make_scale([bar(0, 100), bar(40_000, 40_100)])

    middle = scale.place(samples.at(100))
    assert scale.place(samples.at(40_000)) - middle < 0.1 * (pictures.WIDTH - pictures.LEFT)
    assert scale.place(samples.at(40_100)) == pictures.WIDTH


def test_of_thousands_of_bars_the_longest_are_drawn_and_the_others_are_counted():
    drawn = render_timeline([bar(n, n + 0.5) for n in range(4000)], known_tasks={})

    assert drawn.count("<rect") == pictures.MAX_BARS
    assert "2,500 shorter bars are not drawn" in drawn


def test_a_hostile_name_is_text_in_the_drawing():
    drawn = render_timeline([bar(0, 1)], known_tasks={1: "</svg><script>\u202e"})

    assert "<script>" not in drawn and "\u202e" not in drawn
    assert re.search(r"&lt;/svg&gt;&lt;script&gt;", drawn)


def test_a_clock_that_jumped_back_draws_no_bar_of_less_than_nothing():
    at = samples.START
    back = Bar(lane="w", task_id=1, started_at=at, ended_at=at - timedelta(seconds=5))

    assert not re.search(r'width="-', render_timeline([back], known_tasks={}))
