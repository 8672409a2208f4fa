"""Makes the page of an objective, with its report, files, timeline and tree of tasks."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence

from babyagi.pages.html import Html, fill, join, load
from babyagi.pages.markdown import render_html
from babyagi.pages.pictures import MAX_ROWS as MAX_TASKS_DRAWN
from babyagi.pages.pictures import Bar, render_timeline, walk_tree
from babyagi.tasks import Artifact, Objective, Result, Task, TaskStatus
from babyagi.text import say_count, shorten

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
        timeline=_render_timeline(bars, shown),
        tree=join(list(_render_tree(objective, shown, results)), "\n"),
        tree_note=more if n_left else "",
        footer=_say_when(objective),
    )


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


def _render_timeline(bars: Sequence[Bar], shown: Sequence[Task]) -> Html:
    if not bars:
        return Html("")
    return fill(
        '<section><h2>Timeline</h2><p class="quiet">A task stands below the one from which it was '
        "planned; of a large list the first $most are drawn. Pauses take no room. Point at a bar "
        'to read what it is.</p><div class="scroll">$drawn</div></section>',
        most=MAX_TASKS_DRAWN,
        drawn=render_timeline(shown, bars),
    )


def _say_when(objective: Objective) -> str:
    ended = f", ended {objective.ended_at:%Y-%m-%d %H:%M} UTC" if objective.ended_at else ""
    begun = f"{objective.created_at:%Y-%m-%d %H:%M} UTC"
    return f"Objective {objective.id}, begun {begun}{ended}. Made by babyagi."
