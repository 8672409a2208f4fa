"""Makes the page of an objective, with its report, files, costs, timeline and tree of tasks."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from babyagi.pages.html import Html, escape, fill, join, load
from babyagi.pages.markdown import make_renderer, render_html
from babyagi.pages.pictures import Bar, render_timeline, walk_tree
from babyagi.tasks import Artifact, Objective, Result, Task, TaskStatus, Usage
from babyagi.text import say_duration, shorten

MAX_TASKS = 3000
MAX_RESULT_CHARS = 20_000
MAX_RESULTS_CHARS = 3_000_000  # of all results together
MAX_DRAWN_CHARS = 600_000  # of results rendered as Markdown; the others are shown as plain text
MAX_INDENT = 6
MAX_NAME_CHARS = 400
MAX_FILES = 60
MAX_FILES_CHARS = 3_000_000
MAX_ROWS = 200  # of a table, including its head
MAX_COLUMNS = 30
MAX_CELL_CHARS = 300

_NAME_BY_STATUS = {TaskStatus.DEAD: "given up", TaskStatus.RECORDED: "done"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictured:
    """A file of a task's result that is shown on the page."""

    task_id: int
    artifact: Artifact


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """The content of the page of an objective.

    Attributes:
        markdown: the report.
        tasks, results: all of the objective.
        bars: the bars of the timeline.
        now: when the page is made.
        pictured: the files of the results.
    """

    objective: Objective
    markdown: str
    tasks: Sequence[Task]
    results: Sequence[Result]
    bars: Sequence[Bar]
    now: datetime
    pictured: Sequence[Pictured] = ()


def render_report_page(page: ReportPage) -> str:
    """Return the page as one HTML file, which runs no scripts and loads nothing."""
    style = Html(load("page.css"))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    title = shorten(" ".join(page.objective.spec.text.split()), 120)
    shown = sorted(page.tasks, key=lambda task: task.id)[:MAX_TASKS]
    return fill(
        load("report.html"),
        style=style,
        style_hash=Html(f"sha256-{digest}"),
        title=f"Report: {title}",
        report=render_html(page.markdown),
        files=render_files(page.pictured),
        totals=join(list(_render_totals(page.objective, page.tasks))),
        timeline=_render_timeline(page, shown),
        tree=join(list(_render_tree(page.objective, shown, page.results)), "\n"),
        tree_note=_render_left_out(len(page.tasks) - len(shown), page.objective),
        footer=_render_footer(page),
    )


# -- totals
# --------------------------------------------------------------------------------------------------


def _render_totals(objective: Objective, tasks: Sequence[Task]) -> Iterator[Html]:
    usage, limits = objective.usage, objective.spec.limits
    of_tasks = sum((task.usage for task in tasks), Usage())
    rest = usage - of_tasks
    n_done = sum(task.status in (TaskStatus.DONE, TaskStatus.RECORDED) for task in tasks)
    cost_limit = f" of ${limits.max_cost_usd:g}" if limits.max_cost_usd else ""
    ended = objective.stop_reason or objective.status
    for name, value in (
        ("How it ended", ended.value),
        ("Tasks done", f"{n_done} of {len(tasks)}"),
        ("Cost", f"{objective.spent}{cost_limit}"),
        ("Time", say_duration(objective.active_s)),
        ("Model calls", f"{usage.calls:,}"),
        ("Tokens", f"{usage.prompt_tokens:,} in, {usage.completion_tokens:,} out"),
        ("Tokens for tasks", f"{of_tasks.tokens:,}"),
        ("Tokens for planning, checks, report", f"{max(0, rest.tokens):,}"),
        ("Models", objective.spec.models),
    ):
        yield fill("<div><dt>$name</dt><dd>$value</dd></div>", name=name, value=value)


# -- files of the results
# --------------------------------------------------------------------------------------------------


def render_files(pictured: Sequence[Pictured]) -> Html:
    """Return the section of the page with the files: pictures and tables are shown, other texts are
    collapsed. '' if there are no files."""
    figure = "<figure>$shown<figcaption>$name (task $task; sha256 $digest)</figcaption></figure>"
    figures, room = [], MAX_FILES_CHARS
    for one in pictured[:MAX_FILES]:
        if len(one.artifact.text) > room:
            continue
        room -= len(one.artifact.text)
        name, digest = one.artifact.name, one.artifact.digest[:16]
        shown = _render_file(one.artifact)
        figures.append(fill(figure, shown=shown, name=name, task=one.task_id, digest=digest))
    if not pictured:
        return Html("")
    n_left = len(pictured) - len(figures)
    left = fill('<p class="quiet">$n more are not on this page.</p>', n=n_left) if n_left else ""
    section = "<section><h2>Files</h2>$figures$left</section>"
    return fill(section, figures=join(figures, "\n"), left=Html(left))


def _render_file(artifact: Artifact) -> Html:
    match artifact.media_type:
        case "image/svg+xml" | "image/png":
            image = '<img src="data:$type;base64,$data" alt="$name">'
            data = base64.b64encode(artifact.data).decode()
            return fill(image, type=artifact.media_type, data=data, name=artifact.name)
        case "text/csv":
            return _render_table(artifact.text, ",")
        case "text/tab-separated-values":
            return _render_table(artifact.text, "\t")
    folded = "<details><summary>$name</summary><pre>$text</pre></details>"
    return fill(folded, name=artifact.name, text=artifact.text[:MAX_RESULT_CHARS])


def _render_table(text: str, delimiter: str) -> Html:
    """Return the first rows and columns of a CSV text as an HTML table; if it cannot be parsed, the
    text in `<pre>`."""
    try:
        rows = list(islice(csv.reader(io.StringIO(text), delimiter=delimiter), MAX_ROWS + 1))
    except csv.Error:
        return fill("<pre>$text</pre>", text=text[:MAX_RESULT_CHARS])
    drawn = [_render_row(row, "td" if n else "th") for n, row in enumerate(rows[:MAX_ROWS])]
    is_cut = len(rows) > MAX_ROWS or any(len(row) > MAX_COLUMNS for row in rows)
    left = '<p class="quiet">The table has more rows or columns.</p>' if is_cut else ""
    return fill("<table>$rows</table>$left", rows=join(drawn, "\n"), left=Html(left))


def _render_row(row: Sequence[str], tag: str) -> Html:
    cells = (shorten(cell, MAX_CELL_CHARS) for cell in row[:MAX_COLUMNS])
    return Html(f"<tr>{join([Html(f'<{tag}>{escape(cell)}</{tag}>') for cell in cells])}</tr>")


# -- the tree of tasks
# --------------------------------------------------------------------------------------------------


def _render_tree(
    objective: Objective, tasks: Sequence[Task], results: Sequence[Result]
) -> Iterator[Html]:
    found = {result.task_id: result for result in results}
    known = {task.id for task in tasks}
    room, render = MAX_RESULTS_CHARS, make_renderer()
    for task, depth in walk_tree(tasks):
        result = found.get(task.id)
        text = result.text[: min(MAX_RESULT_CHARS, room)] if result is not None else ""
        is_drawn = room > MAX_RESULTS_CHARS - MAX_DRAWN_CHARS
        drawn = render(text) if is_drawn else fill("<pre>$text</pre>", text=text)
        room -= len(text)
        inside = [_render_inside(task, result, drawn, known)]
        inside.append(_say_cut(task, result, text, objective))
        yield fill(
            '<li id="task-$id" class="$status d$depth"><details><summary>'
            '<span class="no">$id</span>$name <span class="state">$state</span>'
            '<span class="cost">$cost</span></summary>'
            '<div class="inside">$inside</div></details></li>',
            id=task.id,
            status=task.status.value,
            depth=min(depth, MAX_INDENT),
            name=shorten(task.name, MAX_NAME_CHARS),
            state=_NAME_BY_STATUS.get(task.status, task.status.value),
            cost=_say_cost(task, objective),
            inside=join(inside),
        )


def _say_cost(task: Task, objective: Objective) -> str:
    usage = task.usage
    took = ""
    if task.started_at is not None and task.finished_at is not None:
        took = say_duration((task.finished_at - task.started_at).total_seconds())
    calls = f"{usage.calls} model {'call' if usage.calls == 1 else 'calls'}"
    parts = [calls, f"{usage.tokens:,} tokens", _say_price(usage, objective), took]
    return " · ".join(filter(None, parts)) if usage.calls else "not begun"


def _say_price(usage: Usage, objective: Objective) -> str:
    if objective.is_free:
        return ""
    return f"${usage.cost_usd:.4f}" if objective.spec.has_price else "cost unknown"


def _render_inside(task: Task, result: Result | None, drawn: Html, known: set[int]) -> Html:
    parts = [_render_origin(task, known)]
    if task.error:
        parts.append(fill("<p><b>Error:</b> $error</p>", error=task.error))
    if result is not None:
        parts.append(drawn)
    lack = result.lack if result is not None else task.lack.what if task.lack is not None else ""
    if lack:
        head = "Not answered:" if result is not None else "Lacking:"
        parts.append(fill("<p><b>$head</b> $lack</p>", head=head, lack=lack))
    return join(parts)


def _say_cut(task: Task, result: Result | None, text: str, objective: Objective) -> Html:
    if result is None or len(text) == len(result.text):
        return Html("")
    command = f"babyagi show {task.id} --objective {objective.id}"
    return fill('<p class="quiet">The result is longer: <code>$it</code></p>', it=command)


def _render_origin(task: Task, known: set[int]) -> Html:
    others = (number for number in dict.fromkeys(task.after) if number != task.parent_id)
    links = [_link(number, known) for number in others]
    parts = []
    if task.parent_id is not None:
        parts.append(fill("planned from $task", task=_link(task.parent_id, known)))
    if links:
        parts.append(fill("after $tasks", tasks=join(links, ", ")))
    if not parts:
        return Html("")
    return fill('<p class="quiet">$words</p>', words=join(parts, "; "))


def _link(number: int, known: set[int]) -> Html:
    if number not in known:
        return escape(f"task {number}")
    return fill('<a href="#task-$number">task $number</a>', number=number)


def _render_left_out(n: int, objective: Objective) -> Html:
    if n <= 0:
        return Html("")
    more = f"{n:,} more tasks are not on this page"
    command = f"babyagi tasks --objective {objective.id}"
    return fill('<p class="quiet">$more: <code>$command</code></p>', more=more, command=command)


# -- the timeline
# --------------------------------------------------------------------------------------------------


def _render_timeline(page: ReportPage, shown: Sequence[Task]) -> Html:
    drawn = render_timeline(page.bars, known_tasks={task.id: task.name for task in shown})
    if not drawn:
        return Html("")
    return fill(
        '<section><h2>Timeline</h2><p class="quiet">A worker has a row for each of the tasks on '
        "which it worked at the same time. Point at a bar to read what it is.</p>"
        '<div class="scroll">$drawn</div></section>',
        drawn=drawn,
    )


def _render_footer(page: ReportPage) -> Html:
    objective = page.objective
    ended = f", ended {objective.ended_at:%Y-%m-%d %H:%M} UTC" if objective.ended_at else ""
    begun = f"Objective {objective.id}, begun {objective.created_at:%Y-%m-%d %H:%M} UTC{ended}"
    return escape(f"{begun}. Made by babyagi at {page.now:%Y-%m-%d %H:%M} UTC.")
