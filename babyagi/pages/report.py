"""Makes the page of an objective, with its report, files, timeline and tree of tasks.

The timeline is an SVG picture with a row for each task, below the task from which it was planned,
and a bar for each try of the task.
"""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from babyagi import events
from babyagi.pages.html import Html, escape, fill, join, load
from babyagi.pages.markdown import render_html
from babyagi.tasks import Artifact, Event, Objective, Result, Task, TaskStatus
from babyagi.text import one_line, say_count, say_duration, shorten

MAX_TASKS = 3000
MAX_RESULT_CHARS = 20_000
MAX_RESULTS_CHARS = 3_000_000  # of all results together
MAX_DRAWN_CHARS = 600_000  # of results rendered as Markdown; the others are shown as plain text
MAX_INDENT = 6
MAX_NAME_CHARS = 400
MAX_FILES = 60
MAX_FILES_CHARS = 3_000_000

_NAME_BY_STATUS = {TaskStatus.DEAD: "given up", TaskStatus.RECORDED: "done"}


def render_report_page(
    objective: Objective,
    *,
    markdown: str,
    tasks: Sequence[Task],
    results: Sequence[Result],
    bars: Sequence[Bar],
    made: Sequence[tuple[int, Artifact]] = (),
) -> str:
    """Return the page as one HTML file, which runs no scripts and loads nothing.

    Args:
        markdown: the report.
        tasks, results: all of the objective.
        bars: the bars of the timeline.
        made: the files of the results, each with the id of its task.
    """
    style = Html(load("page.css"))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    title = shorten(" ".join(objective.spec.text.split()), 120)
    shown = sorted(tasks, key=lambda task: task.id)[:MAX_TASKS]
    n_left = len(tasks) - len(shown)
    more = _say_more(f"{n_left:,} more tasks are not on this page", "tasks", objective)
    return fill(
        load("report.html"),
        style=style,
        style_hash=Html(f"sha256-{digest}"),
        title=f"Report: {title}",
        report=render_html(markdown),
        files=render_files(made),
        timeline=_render_timeline_section(bars, shown),
        tree=join(list(_render_tree(objective, shown, results)), "\n"),
        tree_note=more if n_left else "",
        footer=_say_when(objective),
    )


def _say_when(objective: Objective) -> str:
    ended = f", ended {objective.ended_at:%Y-%m-%d %H:%M} UTC" if objective.ended_at else ""
    begun = f"{objective.created_at:%Y-%m-%d %H:%M} UTC"
    return f"Objective {objective.id}, begun {begun}{ended}. Made by babyagi."


# -- files of the results
# --------------------------------------------------------------------------------------------------


def render_files(made: Sequence[tuple[int, Artifact]]) -> Html:
    """Return the section of the page with the files: pictures are shown, and texts, such as tables,
    are collapsed. '' if there are no files."""
    figure = "<figure>$shown<figcaption>$name (task $task; sha256 $digest)</figcaption></figure>"
    figures, room = [], MAX_FILES_CHARS
    for task_id, artifact in made[:MAX_FILES]:
        if len(artifact.text) > room:
            continue
        room -= len(artifact.text)
        shown, digest = _render_file(artifact), artifact.digest[:16]
        said = {"shown": shown, "name": artifact.name, "task": task_id, "digest": digest}
        figures.append(fill(figure, **said))
    if not made:
        return Html("")
    n_left = len(made) - len(figures)
    left = fill('<p class="quiet">$n more are not on this page.</p>', n=n_left) if n_left else ""
    section = "<section><h2>Files</h2>$figures$left</section>"
    return fill(section, figures=join(figures, "\n"), left=Html(left))


def _render_file(artifact: Artifact) -> Html:
    if artifact.media_type == "image/svg+xml":
        image = '<img src="data:$type;base64,$data" alt="$name">'
        data = base64.b64encode(artifact.data).decode()
        return fill(image, type=artifact.media_type, data=data, name=artifact.name)
    folded = "<details><summary>$name</summary><pre>$text</pre></details>"
    return fill(folded, name=artifact.name, text=artifact.text[:MAX_RESULT_CHARS])


# -- the tree of tasks
# --------------------------------------------------------------------------------------------------


def walk_tree(tasks: Sequence[Task]) -> Iterator[tuple[Task, int]]:
    """Yield each task with its depth in the tree: after its parent, and after the subtrees of its
    earlier siblings. Siblings keep the order that they have in `tasks`."""
    known = {task.id for task in tasks}
    children: dict[int, list[Task]] = {}
    for task in tasks:
        parent = task.parent_id if task.parent_id in known and task.parent_id < task.id else None
        children.setdefault(parent or 0, []).append(task)
    waiting = [(task, 0) for task in reversed(children.get(0, []))]
    while waiting:
        task, depth = waiting.pop()
        yield task, depth
        waiting += [(child, depth + 1) for child in reversed(children.get(task.id, []))]


def _render_tree(
    objective: Objective, tasks: Sequence[Task], results: Sequence[Result]
) -> Iterator[Html]:
    found = {result.task_id: result for result in results}
    room = MAX_RESULTS_CHARS
    for task, depth in walk_tree(tasks):
        result = found.get(task.id)
        text = result.text[: min(MAX_RESULT_CHARS, room)] if result is not None else ""
        is_drawn = room > MAX_RESULTS_CHARS - MAX_DRAWN_CHARS
        drawn = render_html(text) if is_drawn else fill("<pre>$text</pre>", text=text)
        room -= len(text)
        is_cut = result is not None and len(text) < len(result.text)
        yield fill(
            '<li id="task-$id" class="$status d$depth"><details><summary>'
            '<span class="no">$id</span>$name <span class="state">$state</span>'
            '<span class="cost">$cost</span></summary>'
            '<div class="inside">$inside$cut</div></details></li>',
            id=task.id,
            status=task.status.value,
            depth=min(depth, MAX_INDENT),
            name=shorten(task.name, MAX_NAME_CHARS),
            state=_NAME_BY_STATUS.get(task.status, task.status.value),
            cost=_say_cost(task, objective),
            inside=_render_inside(task, result, drawn),
            cut=_say_more("The result is longer", f"show {task.id}", objective) if is_cut else "",
        )


def _say_cost(task: Task, objective: Objective) -> str:
    usage = task.usage
    known = f"${usage.cost_usd:.4f}" if objective.spec.has_price else "cost unknown"
    price = "" if objective.spec.is_free else known
    parts = [say_count(usage.calls, "model call"), f"{usage.tokens:,} tokens", price]
    return " · ".join(filter(None, parts)) if usage.calls else "not begun"


def _render_inside(task: Task, result: Result | None, drawn: Html) -> Html:
    lack = task.lack.what if task.lack is not None else ""
    said = {"Error": task.error, "Lacking": lack}
    if result is not None:
        said = {"Error": task.error, "Not answered": result.lack}
    notes = [
        fill("<p><b>$head:</b> $text</p>", head=head, text=text)
        for head, text in said.items()
        if text
    ]
    return join([drawn, *notes])


def _say_more(what: str, command: str, objective: Objective) -> Html:
    says = f"babyagi {command} --objective {objective.id}"
    return fill('<p class="quiet">$what: <code>$says</code></p>', what=what, says=says)


# -- the timeline
# --------------------------------------------------------------------------------------------------


MAX_TASKS_DRAWN = 240
MAX_BARS = 1500
MAX_DEPTH = 8  # deeper tasks are not indented further
MAX_LABEL_CHARS = 44
WIDTH, LEFT, ROW_HEIGHT, BAR_HEIGHT, INDENT = 1000, 330, 24, 16, 10
N_TICKS = 5

SIGNS: Mapping[TaskStatus, str] = {
    TaskStatus.QUEUED: "○",
    TaskStatus.RUNNING: "●",
    TaskStatus.RECORDED: "◐",
    TaskStatus.DONE: "✓",
    TaskStatus.WAITING: "?",
    TaskStatus.DEAD: "✕",
    TaskStatus.CANCELLED: "–",
}
_OUTCOMES = {
    events.TASK_RECORDED: "answered",
    events.TASK_LACKED: "lacked something",
    events.TASK_FAILED: "failed",
    events.TASK_DEAD: "given up",
    events.TASK_PARKED: "asked a person",
    events.TASK_RELEASED: "released",
    events.TASK_CANCELLED: "cancelled",
}
_CLASS_BY_OUTCOME = {"answered": "good", "": "good", "given up": "bad", "failed": "bad"}
# the kinds of events that `find_bars` needs
TIMELINE_KINDS = (events.TASK_CLAIMED, *_OUTCOMES)


def _render_timeline_section(bars: Sequence[Bar], shown: Sequence[Task]) -> Html:
    if not bars:
        return Html("")
    return fill(
        '<section><h2>Timeline</h2><p class="quiet">A task stands below the one from which it was '
        "planned; of a large list the first $most are drawn. Pauses take no room. Point at a bar "
        'to read what it is.</p><div class="scroll">$drawn</div></section>',
        most=MAX_TASKS_DRAWN,
        drawn=render_timeline(shown, bars),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar of the timeline: a try of a task. `outcome` is how it ended, in words; '' while it is
    running."""

    task_id: int
    started_at: datetime
    ended_at: datetime
    outcome: str = ""

    @property
    def length_s(self) -> float:
        return max(0.0, (self.ended_at - self.started_at).total_seconds())


def find_bars(found: Iterable[Event], *, now: datetime) -> list[Bar]:
    """Return the bars of the timeline: first the tries that have ended, in the order of their ends,
    then those that are running, with `now` as their end."""
    running: dict[int, Bar] = {}
    ended: list[Bar] = []
    for event in found:
        task_id = event.task_id or 0
        if bar := running.pop(task_id, None):
            outcome = _OUTCOMES.get(event.kind, "cut off")
            ended.append(replace(bar, ended_at=event.at, outcome=outcome))
        if event.kind == events.TASK_CLAIMED:
            running[task_id] = Bar(task_id=task_id, started_at=event.at, ended_at=now)
    return [*ended, *running.values()]


def render_timeline(
    tasks: Sequence[Task],
    bars: Iterable[Bar],
    *,
    link: Callable[[int], str] = "#task-{}".format,
) -> Html:
    """Return the timeline of the tasks with the smallest numbers, at most `MAX_TASKS_DRAWN`, and of
    their longest bars; '' if there are no tasks.

    Args:
        link: returns the URL to which the row of a task links, from its id.
    """
    if not tasks:
        return Html("")
    rows = list(walk_tree(sorted(tasks, key=lambda task: task.id)[:MAX_TASKS_DRAWN]))
    shown = {task.id for task, _ in rows}
    chosen = sorted((bar for bar in bars if bar.task_id in shown), key=lambda bar: -bar.length_s)
    begins, whole_s = _place_bars(chosen[:MAX_BARS])
    height = ROW_HEIGHT * (len(rows) + 1)
    parts = [
        Html(
            f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="group" '
            'aria-label="Timeline">'
        ),
        *_draw_axis(whole_s, height - ROW_HEIGHT),
    ]
    for number, (task, depth) in enumerate(rows):
        top = ROW_HEIGHT * number
        drawn = [_draw_bar(bar, at_s, top, whole_s) for bar, at_s in begins[task.id]]
        label = _draw_label(task, INDENT * min(depth, MAX_DEPTH), top)
        href = escape(link(task.id))
        parts.append(Html(f'<a data-drawer href="{href}">{label}{join(drawn)}</a>'))
    return join([*parts, Html("</svg>")], "\n")


def _place_bars(bars: Sequence[Bar]) -> tuple[Mapping[int, list[tuple[Bar, float]]], float]:
    """Return the bars by task, each with the seconds of work before it, and the seconds of work
    until the last end. Pauses in which no task was worked on do not count."""
    placed = defaultdict[int, list[tuple[Bar, float]]](list)
    work_s, end = 0.0, None
    for bar in sorted(bars, key=lambda bar: bar.started_at):
        ahead_s = min(work_s, (end - bar.started_at).total_seconds()) if end else 0.0
        begins_s = work_s - max(0.0, ahead_s)
        placed[bar.task_id].append((bar, begins_s))
        work_s = max(work_s, begins_s + bar.length_s)
        end = max(end or bar.ended_at, bar.ended_at)
    return placed, max(work_s, 0.001)


def _draw_label(task: Task, left: int, top: int) -> Html:
    """Return the task's sign, number and name, of which a long one is cut at its end: its last word
    often tells one task from another."""
    name = one_line(task.name)
    after = f", after {', '.join(map(str, task.after))}" if task.after else ""
    title = f"Task {task.id}, {task.status.value}{after}: {shorten(name, 300)}"
    label = f"{SIGNS[task.status]} {task.id} {name}"
    if len(label) > (most := MAX_LABEL_CHARS - left // 6):
        label = f"{label[: most - 1]}…"
    return Html(
        f'<text x="{left}" y="{top + 12}"><title>{escape(title)}</title>{escape(label)}</text>'
    )


def _draw_bar(bar: Bar, begins_s: float, top: int, whole_s: float) -> Html:
    scale = (WIDTH - LEFT) / whole_s
    kind = _CLASS_BY_OUTCOME.get(bar.outcome, "part")
    return Html(
        f'<rect class="{kind}" x="{LEFT + begins_s * scale:.1f}" y="{top}" '
        f'width="{max(1.0, bar.length_s * scale):.1f}" height="{BAR_HEIGHT}" rx="2">'
        f"<title>task {bar.task_id} ({say_duration(bar.length_s)}, "
        f"{bar.outcome or 'still at work'})</title></rect>"
    )


def _draw_axis(whole_s: float, bottom: int) -> Iterator[Html]:
    for number in range(N_TICKS + 1):
        x = LEFT + (WIDTH - LEFT) * number / N_TICKS
        anchor = "end" if number == N_TICKS else "middle" if number else "start"
        yield Html(
            f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{bottom}"/>'
            f'<text class="tick" x="{x:.1f}" y="{bottom + 15}" text-anchor="{anchor}">'
            f"{say_duration(whole_s * number / N_TICKS)}</text>"
        )
