import pytest

from babyagi.cli.live import LiveState, build_lines
from babyagi.cli.text import cell_width
from babyagi.tasks import TaskStatus
from tests.cli import samples


def snapshot(**changes):
    values = {
        "objective": samples.running_objective(spec=samples.spec(model="rehearsal")),
        "counts": samples.COUNTS,
        "running": [
            samples.task(id=7, name="Read 日本語.md", status=TaskStatus.RUNNING, finished_at=None)
        ],
        "queued": [
            samples.task(id=8, name="Read b.md", status=TaskStatus.QUEUED, after=()),
            samples.task(id=9, name="Compare", status=TaskStatus.QUEUED, after=(7, 8)),
        ],
        "workers": [
            samples.worker("one"),
            samples.worker("two"),
            samples.worker("three", blocked_reason="no key"),
        ],
        "troubled": [
            samples.task(id=5, name="Broken", status=TaskStatus.DEAD, error="no such file")
        ],
    }
    return LiveState(**{**values, **changes})


def texts(lines):
    return [line.text for line in lines]


def test_the_picture_says_all_that_a_person_watches_for():
    lines = texts(
        build_lines(snapshot(), ["12:00:01 task 1 done"], now=samples.at(70), width=100, height=30)
    )

    assert lines == [
        "REHEARSAL: no language model was asked",
        "Objective 3: Find what the documents promise",
        "[###############.........] 5/8 tasks · 4 done, 1 running, 2 queued, 1 dead",
        "  >    7  1 min 5 s  Read 日本語.md",
        "  !    5       dead  Broken: no such file",
        "       8     queued  Read b.md",
        "       9     queued  Compare (after 7, 8)",
        "2 workers · rehearsal · 7 calls, 1,200 tokens in and 345 out, cost $0.0123",
        "limits: tasks 5/50 · tokens 1,545/2,000,000 · cost $0.0123 of $1 · time 1 min 15 s/2 h",
        "12:00:01 task 1 done",
    ]


@pytest.mark.parametrize("height", [8, 10, 12, 24])
@pytest.mark.parametrize("width", [20, 40, 80])
def test_the_picture_never_outgrows_the_terminal(width, height):
    many = [samples.task(id=100 + n, name=samples.HOSTILE * 20) for n in range(40)]
    full = snapshot(
        running=many, queued=many, troubled=many, counts={**samples.COUNTS, TaskStatus.QUEUED: 400}
    )

    lines = build_lines(
        full, [samples.HOSTILE] * 50, now=samples.at(70), width=width, height=height
    )

    assert len(lines) <= height
    assert all(cell_width(line.text) <= width for line in lines)
    assert all(line.text.isprintable() for line in lines)


def test_what_runs_is_kept_longest_when_room_is_short():
    lines = texts(
        build_lines(snapshot(), ["12:00:01 task 1 done"], now=samples.at(70), width=100, height=6)
    )

    assert "  >    7  1 min 5 s  Read 日本語.md" in lines
    assert not any("Read b.md" in line or "12:00:01" in line for line in lines)


def test_what_is_not_shown_is_counted():
    counts = {**samples.COUNTS, TaskStatus.QUEUED: 12}

    lines = texts(
        build_lines(snapshot(counts=counts), [], now=samples.at(70), width=100, height=30)
    )

    assert "          and 10 more queued" in lines
