"""The tasks and their tries, drawn from events."""

import re
from datetime import timedelta

from babyagi import events
from babyagi.pages import report
from babyagi.pages.report import Bar, find_bars, render_timeline
from babyagi.tasks import TaskStatus
from tests.cli import samples


def event(happened, second, task_id=4):
    return samples.event(kind=happened, at=samples.at(second), task_id=task_id, data={})


def bar(begins, ends, *, task_id=1):
    return Bar(started_at=samples.at(begins), ended_at=samples.at(ends), task_id=task_id)


def make(id_, parent_id=None, **more):
    return samples.task(**{"id": id_, "parent_id": parent_id, "after": (), **more})


def bars_of(drawing):
    found = re.findall(r'<rect class="\w+" x="([\d.]+)" y="(\d+)" width="([\d.]+)"', drawing)
    return [(float(x), int(y), float(width)) for x, y, width in found]


def test_a_try_lasts_from_its_claim_to_what_came_of_it():
    found = find_bars(
        [event(events.TASK_CLAIMED, 1), event(events.TASK_RECORDED, 6)], now=samples.at(9)
    )

    assert [(one.task_id, one.length_s, one.outcome) for one in found] == [(4, 5.0, "answered")]


def test_a_try_that_still_goes_on_ends_now_and_one_claimed_again_was_cut_off():
    found = find_bars(
        [event(events.TASK_CLAIMED, 1), event(events.TASK_CLAIMED, 4)], now=samples.at(9)
    )

    assert [(one.length_s, one.outcome) for one in found] == [(3.0, "cut off"), (5.0, "")]


def test_a_task_stands_below_the_one_that_it_was_planned_from_and_its_tries_beside_it():
    tasks = [make(1), make(2, 1), make(3, 1), make(4, 2)]

    drawing = render_timeline(tasks, [bar(0, 5, task_id=4), bar(6, 7, task_id=4)])

    places = re.findall(r'href="#task-(\d)"><text x="(\d+)" y="(\d+)"', drawing)
    assert [(int(id_), int(x) // report.INDENT) for id_, x, _ in places] == [
        (1, 0), (2, 1), (4, 2), (3, 1),
    ]  # fmt: skip
    assert [y for _, y, _ in bars_of(drawing)] == [2 * report.ROW_HEIGHT] * 2


def test_what_was_done_at_once_stands_at_the_same_time_and_a_night_without_work_takes_no_room():
    tasks = [make(n) for n in (1, 2, 3)]
    tries = [bar(0, 100), bar(50, 100, task_id=2), bar(40_000, 40_100, task_id=3)]

    first, second, third = bars_of(render_timeline(tasks, tries))

    half = (report.WIDTH - report.LEFT) / 2
    assert (first[0], second[0], third[0]) == (
        report.LEFT,
        report.LEFT + half / 2,
        report.LEFT + half,
    )
    assert (first[2], second[2], third[2]) == (half, half / 2, half)


def test_of_a_large_list_the_first_tasks_and_the_longest_bars_are_drawn():
    tasks = [make(1), *(make(n, n - 1) for n in range(2, 300))]

    drawn = render_timeline(tasks, [bar(n, n + 0.5) for n in range(2000)])

    assert drawn.count("<a data-drawer") == report.MAX_TASKS_DRAWN
    assert drawn.count("<rect") == report.MAX_BARS


def test_no_tasks_no_tries_and_parents_that_make_no_sense_are_drawn():
    odd = [make(1, 2), make(2, 1), make(3, 3), make(4, 999)]

    assert render_timeline([], []) == ""
    assert render_timeline(odd, []).count("<a data-drawer") == 4


def test_long_names_that_differ_in_their_last_word_are_told_apart():
    names = [
        f"Read the report of the week {week}.md and more" for week in ("2026-01-12", "2026-02-09")
    ]
    drawing = render_timeline([make(1, name=names[0]), make(2, name=names[1])], [])

    labels = re.findall(r"</title>([^<>]*Read the[^<>]*)</text>", drawing)
    assert len(labels) == len(set(labels)) == 2
    assert labels[0].endswith("2026-01-12.…")


def test_a_name_is_text_and_a_status_is_said_by_a_sign_and_a_word():
    task = make(1, name="</svg><script>&\u202e" + "long " * 50, status=TaskStatus.DEAD)

    drawing = render_timeline([task], [bar(0, 1)])

    assert "<script>" not in drawing and "\u202e" not in drawing
    assert "✕ 1 " in drawing
    assert "Task 1, dead" in drawing


def test_a_clock_that_jumped_back_draws_no_bar_of_less_than_nothing():
    at = samples.START
    back = Bar(task_id=1, started_at=at, ended_at=at - timedelta(seconds=5))

    assert not re.search(r'width="-', render_timeline([make(1)], [back]))
