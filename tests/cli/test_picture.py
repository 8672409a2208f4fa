import string

import pytest
from rich.cells import cell_len

from babyagi.cli.picture import Board, LiveState, Told, Writing, draw, wrap_words
from babyagi.cli.text import Style, cell_width
from babyagi.inbox import write_request
from babyagi.tasks import ObjectiveStatus, Step, StepState, TaskStatus
from tests.cli import samples


def asked(question="Which day?", *, task=6):
    return Step(
        objective_id=3,
        owner=f"task:{task}",
        key="1/q",
        kind="question",
        request_hash="",
        state=StepState.ASKED,
        created_at=samples.START,
        request=write_request("ask_user", {"question": question}),
        id=17,
    )


def state(**changes):
    values = {
        "objective": samples.running_objective(spec=samples.spec(model="rehearsal")),
        "counts": {**samples.COUNTS, TaskStatus.CANCELLED: 3},
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
        "finished": [samples.task(id=4, name="Begin")],
        "asked": [asked()],
        "doing": {7: 'read_file(path="a.md")'},
    }
    return LiveState(**{**values, **changes})


def board(*states, told=()):
    made = Board()
    for number, one in enumerate(states or [state()]):
        made.states[one.objective.id + number] = one
    made.told.extend(told)
    return made


def told(text, style=Style.PLAIN):
    return Told(at=samples.START, key=(3, 4), text=text, style=style)


def texts(made, *, width=100, height=30):
    rows = draw(made, now=samples.at(70), width=width, height=height)
    return [row.line.text for row in rows if row.line.text]


def test_the_picture_says_all_that_a_person_watches_for():
    assert texts(board(told=[told("found: fifty tasks are the limit")]))[:-1] == [
        "REHEARSAL: no language model was asked",
        "Objective 3: Find what the documents promise",
        "[###############.........] 5/8 tasks · 4 done, 1 running, 2 queued, 1 dead, 3 cancelled",
        "?    6  asks you (a answers): Which day?",
        '>    7   1 min 5 s  Read 日本語.md · read_file(path="a.md")',
        "!    5  given up: Broken: no such file",
        "     8  Read b.md",
        "     9  Compare (after 7, 8)",
        "+    4  Begin",
        f"{samples.START.astimezone():%H:%M:%S}    4 found: fifty tasks are the limit",
        "cost $0.0123 · 7 calls · 1,545 tokens · 2 workers · rehearsal",
        "limits: tasks 5/50 · tokens 1,545/2,000,000 · cost $0.0123 of $1 · time 1 min 15 s/2 h",
    ]


# each is one character to a person; some are several code points, some take two cells
CHARACTERS = ["日", "한", "é", "कि", "क्षि", "กำ", "👍🏽", "👨‍👩‍👧", "❤️", "1️⃣", "🇩🇪", "🇯🇵", "ｶﾞ", "ü"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_wide_and_joined_characters_neither_overflow_nor_are_cut(width):
    words = ["".join(CHARACTERS[at:] * 3) for at in range(len(CHARACTERS))]
    long = " ".join(words) + "日" * 200 + "👨‍👩‍👧" * 50
    tasks = [samples.task(id=100 + n, name=f"{word} {long}") for n, word in enumerate(words)]
    full = state(
        objective=samples.running_objective(spec=samples.spec(long)),
        running=tasks[:2],
        queued=tasks,
        troubled=[samples.task(id=5, name=long, status=TaskStatus.DEAD, error=long)],
        finished=tasks,
        asked=[asked(long)],
        doing={100: long},
    )
    made = board(full, told=[told("日 " * n + long) for n in range(9)])
    made.writing = {3: Writing(owner="task:7", key="k", text=long)}

    for row in draw(made, now=samples.at(70), width=width, height=60):
        assert cell_len(row.line.text) <= width
        rest = row.line.text
        for character in sorted(CHARACTERS, key=len, reverse=True):
            rest = rest.replace(character, "")
        assert set(rest) <= set(string.printable + "·…"), row.line.text


@pytest.mark.thorough
@pytest.mark.parametrize("height", [8, 10, 12, 24])
@pytest.mark.parametrize("width", [20, 40, 80])
def test_the_picture_never_outgrows_the_terminal(width, height):
    many = [samples.task(id=100 + n, name=samples.HOSTILE * 20) for n in range(40)]
    full = state(
        running=many,
        queued=many,
        troubled=many,
        finished=many,
        asked=[asked(samples.HOSTILE * 50)],
        counts={**samples.COUNTS, TaskStatus.QUEUED: 4000},
    )
    made = board(full, told=[told(samples.HOSTILE * 50)] * 50)
    made.notice = samples.HOSTILE

    rows = draw(made, now=samples.at(70), width=width, height=height)

    assert len(rows) == height
    assert all(cell_width(row.line.text) <= width for row in rows)
    assert all(row.line.text.isprintable() for row in rows)


def test_what_asks_and_what_runs_is_kept_longest_when_room_is_short():
    lines = texts(board(told=[told("found: it")] * 9), width=100, height=8)

    assert any("asks you" in line for line in lines) and any(
        "Read 日本語" in line for line in lines
    )
    assert not any("Read b.md" in line for line in lines)


@pytest.mark.parametrize("height", range(10, 20))
def test_no_message_is_shown_without_its_beginning(height):
    told_all = [told("a word of a finding " * 12)] * 9  # three rows each

    rows = [row for row in texts(board(told=told_all), height=height) if "finding" in row]

    assert rows and not rows[0].startswith(" ")


def test_what_is_not_shown_is_counted():
    counts = {**samples.COUNTS, TaskStatus.QUEUED: 12_000}

    assert "        and 11,998 more to do" in texts(board(state(counts=counts)))


def test_the_selected_task_is_shown_however_far_down_it_is():
    queued = [
        samples.task(id=100 + n, name=f"N{n}", status=TaskStatus.QUEUED, after=())
        for n in range(90)
    ]
    made = board(state(queued=queued))
    made.move(80)

    rows = draw(made, now=samples.at(70), width=80, height=12)

    assert made.selected in [row.key for row in rows]


def test_the_selection_stays_on_its_task_and_stops_at_both_ends():
    made = board()
    made.move(1)
    assert made.selected == (3, 6)
    made.move(100_000)
    assert made.selected == (3, 4)
    made.states[3] = state(finished=[samples.task(id=n) for n in (10, 4, 11)])
    made.move(-1)
    assert made.selected == (3, 10)
    made.move(-100_000)
    assert made.selected == (3, 6)
    made.states.clear()
    made.move(1)
    assert made.selected is None


def test_of_several_objectives_each_task_names_its_own():
    two = (
        state(),
        state(objective=samples.running_objective(id=4, spec=samples.spec("Another")), asked=()),
    )
    lines = texts(board(*two))

    assert lines[0].startswith("   3  5/8 tasks, cost $0.0123  Find what")
    assert lines[1].startswith("   4  5/8 tasks, cost $0.0123  Another")
    assert any(line.startswith("?  3/6  asks you") for line in lines)


def test_a_pause_and_an_empty_board_are_said():
    paused = state(
        objective=samples.objective(
            status=ObjectiveStatus.PAUSED, stop_reason=None, stop_detail="", ended_at=None
        )
    )
    assert "It is paused: p resumes it." in texts(board(paused))
    assert any("waiting for an objective" in line for line in texts(Board(title="Worker one")))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", []),
        ("one two three", ["one two", "three"]),
        ("one two three four five six", ["one two", "three…"]),
        ("abcdefghijklmnopqrstuvwxyz", ["abcdefghij", "klmnopqrs…"]),
        ("日本語日本語", ["日本語日本", "語"]),
        ("abcdefghijk", ["abcdefghij", "k"]),
        ("🇩🇪" * 6, ["🇩🇪" * 5, "🇩🇪"]),
    ],
)
def test_words_are_wrapped_by_cells_and_the_rest_is_cut(text, rows):
    wrapped = wrap_words(text, 10, max_rows=2)
    assert all(cell_width(row) <= 10 for row in wrapped)
    assert wrapped == rows
