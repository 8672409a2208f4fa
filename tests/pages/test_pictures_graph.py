"""What came of what, drawn."""

import re

from babyagi.pages.pictures import render_graph
from babyagi.tasks import TaskStatus
from tests.cli import samples


def link(task_id):
    return f"/tasks/{task_id}"


def make(id_, parent_id=None, **more):
    return samples.task(**{"id": id_, "parent_id": parent_id, "after": (), **more})


def place(drawing, task_id):
    found = re.search(rf'href="/tasks/{task_id}">.*?<rect x="(\d+)" y="(\d+)"', drawing)
    assert found is not None
    return int(found[1]), int(found[2])


def test_a_task_stands_right_of_and_below_the_one_that_it_was_planned_from():
    drawing = render_graph([make(1), make(2, 1), make(3, 1), make(4, 2)], link=link)

    xs = [place(drawing, one)[0] for one in (1, 2, 3, 4)]
    assert xs[0] < xs[1] == xs[2] < xs[3]
    assert [place(drawing, one)[1] for one in (1, 2, 4, 3)] == [8, 48, 88, 128]
    assert drawing.count('class="came"') == 3


def test_a_dashed_line_leads_from_what_a_task_waits_for():
    drawing = render_graph([make(1), make(2, 1, after=(1, 3)), make(3, 1)], link=link)

    assert drawing.count('class="waits"') == 1


def test_long_names_that_differ_in_their_last_word_are_told_apart():
    names = ("Read the file 2026-01-12-weekly.md", "Read the file 2026-02-09-weekly.md")
    drawing = render_graph([make(1, name=names[0]), make(2, name=names[1])], link=link)

    labels = re.findall(r">([^<>]*Read the file[^<>]*…)<", drawing)
    assert [label[-14:] for label in labels] == ["2026-01-12-we…", "2026-02-09-we…"]


def test_a_long_line_and_parents_that_make_no_sense_are_drawn():
    line = [make(1), *(make(n, n - 1) for n in range(2, 300))]
    odd = [make(1, 2), make(2, 1), make(3, 3), make(4, 999)]

    assert render_graph(line, link=link).count("<a data-drawer") == 299
    assert render_graph(odd, link=link).count("<a data-drawer") == 4
    assert render_graph([], link=link) == ""


def test_a_name_is_text_and_a_status_is_said_by_a_sign_and_a_word():
    task = make(1, name="<script>&\u202e" + "long " * 50, status=TaskStatus.DEAD)

    drawing = render_graph([task], link=link)

    assert "<script>" not in drawing
    assert "\u202e" not in drawing
    assert "✕ 1 " in drawing
    assert "Task 1, dead" in drawing
