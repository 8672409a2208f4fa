"""What `babyagi show` shows: a task, or the planning, ordering, checking or reporting of an
objective, with its prompts, replies and tool calls; the results that are
nearest to a text; and the events of an objective."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from babyagi import events
from babyagi.cli import ask, objectives, render
from babyagi.cli.options import Duration, Family, WrongUsage, json_option, objective_option
from babyagi.cli.session import NOTHING, load, with_objective, with_store
from babyagi.cli.text import (
    Line,
    Style,
    echo,
    fit,
    give,
    print_json,
    row_width,
    safe_line,
    terminal_width,
    warn,
)
from babyagi.cli.views import (
    View,
    describe_event,
    name_task,
    watch,
)
from babyagi.errors import NotFoundError
from babyagi.inbox import QUESTION, describe
from babyagi.redaction import redact
from babyagi.reporting.sources import Made, find_artifacts, say_fetched
from babyagi.reporting.transcript import INPUTS, Exchange, describe_step, first_line, said_in
from babyagi.settings.values import parse_duration_s
from babyagi.tasks import Duty, Event, Objective, Result, Step, StepState, Task, Usage
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import harmless_lines, say_count, say_duration, shorten
from babyagi.verbs import actions, json_shapes
from babyagi.worker.notify import event_fields

FOLDED_ROWS = 4  # of a text that is not shown whole
MAX_FULL_CHARS = 1_000_000
MAX_SOURCES_SHOWN = 10
N_TIMES = 5  # how often a repeated duty (such as planning) is shown without --full
_LABEL_WIDTH = 9
_MARGIN = " " * 6

_REASONS = {
    "after": "the task depends on it",
    "parent": "that task proposed this one",
    "before": "an earlier try of this task was shown it",
    "near": "it is similar",
    "shared": "it is similar",
}


def show_artifact(task_id: int, name: str, *, selector: str) -> None:
    """Print the content of the file `name` of a task's result, and nothing else."""

    async def fetch(store: TaskStore, objective: Objective) -> list[Made]:
        return await find_artifacts(store, await store.results(objective.id, task_ids=[task_id]))

    made = with_objective(selector, fetch)
    found = next((one.artifact for one in made if one.artifact.name == name), None)
    if found is None:
        there = ", ".join(one.artifact.name for one in made) or "none"
        what = f"the result of task {task_id} has no file {name!r}; its files: {there}"
        raise NotFoundError(what, fix=f"babyagi show {task_id}", guide="looking")
    echo(found.text.removesuffix("\n"))


# -- lines
# --------------------------------------------------------------------------------------------------


def render_shown(
    shown: actions.Shown, width: int, *, only: int | None = None, secrets: Sequence[str] = ()
) -> Iterator[Line]:
    """Yield the lines about a task, or about work for the whole objective such as planning: a head
    and all steps, or only one.

    Args:
        width: of a terminal on which the beginnings of texts are shown; 0 means whole texts.
        only: the number of the only step to show.
        secrets: texts that must not be shown.
    """
    exchanges = list(actions.number_exchanges(shown, secrets, only))
    if only is None:
        yield from _render_head(shown, width)
    for exchange in exchanges:
        yield Line("")
        yield from render_exchange(exchange, shown.objective, width)
    if only is None:
        yield from _render_abandoned(shown)
        yield from _render_more(shown, exchanges, width)


def _render_head(shown: actions.Shown, width: int) -> Iterator[Line]:
    if shown.task is not None:
        yield from _render_task(shown, shown.task, width)
        yield from _render_given(shown.steps)
        return
    duty = shown.duty.value if shown.duty is not None else ""
    n = shown.n_times
    times = "made once" if n == 1 else f"made {n} times" if n else "not made yet"
    yield Line(f"Objective {shown.objective.id}, {duty}: {times}", Style.BOLD)
    if n:
        usage = sum((step.usage for step in shown.steps), Usage())
        what = "Cost:     " if len(shown.times) == n else "Cost of these: "
        yield Line(f"{what}{_cost(usage, shown.objective)}")
    if len(shown.times) < n:
        note = f"the last {len(shown.times)} times are shown; --full shows all"
        yield Line(f"{'':<10}{note}", Style.DIM)


def _render_task(shown: actions.Shown, task: Task, width: int) -> Iterator[Line]:
    yield Line(f"Task {task.id}: {safe_line(task.name)}", Style.BOLD)
    reason = shown.reason
    if reason is not None and reason.word == task.status.value and not reason.change:
        reason = None  # the status says it
    parent = f"proposed from the result of task {task.parent_id}"
    fields = {
        "Status:": render.render_task_words(task),
        "Why:": reason.says if reason else "",
        "Try:": reason.change if reason else "",
        "Started:": _render_times(task),
        "Cost:": _cost(task.usage, shown.objective),
        "After:": ", ".join(f"task {task_id}" for task_id in task.after),
        "From:": parent if task.parent_id is not None else "",
        "Origins:": ", ".join(task.origins),
    }
    yield from (Line(f"{head:<10}{safe_line(text)}") for head, text in fields.items() if text)
    yield from _text("Error:", task.error, Style.RED)
    if task.lack is not None and task.lack.what != task.error:
        yield from _text("Lacked:", task.lack.what)
    if shown.result is not None:
        yield from _render_result(shown, shown.result, width)


def _render_result(shown: actions.Shown, result: Result, width: int) -> Iterator[Line]:
    yield Line("")
    yield from _text("Result:", result.text)
    yield from _text("It does not answer:", result.lack)
    yield from _render_sources(shown, width)
    if shown.made:
        yield Line("Files:", Style.BOLD)
        yield from render.render_artifacts(shown.made)


def _render_sources(shown: actions.Shown, width: int) -> Iterator[Line]:
    """Yield the rows that name the sources of the result, such as files and pages, but not earlier
    results."""
    named = shown.sources.named
    listed = named[:MAX_SOURCES_SHOWN] if width else named
    if listed:
        yield Line("Sources:", Style.BOLD)
    for source in listed:
        said = f": {source.page.title} ({say_fetched(source.page)})" if source.page else ""
        yield Line(f"  {source.kind.value:<8} {safe_line(f'{source.name}{said}')}")
    if len(named) > len(listed):
        yield Line(f"  and {len(named) - len(listed)} more: --full shows all", Style.DIM)


def _text(head: str, text: str, style: Style = Style.BOLD) -> Iterator[Line]:
    if text:
        yield Line(head, style)
        yield Line(text)


def _render_times(task: Task) -> str:
    started = render.render_moment(task.started_at)
    if task.finished_at is None or task.started_at is None:
        return started
    took_s = (task.finished_at - task.started_at).total_seconds()
    return f"{started}, done at {render.render_moment(task.finished_at)} ({say_duration(took_s)})"


def _render_given(steps: Sequence[Step]) -> Iterator[Line]:
    """Yield a line for each earlier result that a try of the task was given, with the reason."""
    for n, given in enumerate(json_shapes.given_results(steps)):
        if n == 0:
            yield Line("")
            yield Line("Earlier results that the task was given:", Style.BOLD)
        score = f"score {given.score:.2f}, " if given.score is not None else ""
        reason = _REASONS.get(given.reason, safe_line(given.reason))
        whose = f"objective {given.objective_id}, " if given.objective_id is not None else ""
        yield Line(f"  try {safe_line(given.try_no)}: {whose}task {given.task_id}, {score}{reason}")


def render_exchange(exchange: Exchange, objective: Objective, width: int) -> Iterator[Line]:
    """Yield the lines of one step (a recorded call): a head, then its texts, each labelled with its
    kind, such as `reply`."""
    step = exchange.step
    at = f"{step.created_at.astimezone():%H:%M:%S}"
    words = [f"{exchange.n:>4}  {at}  {safe_line(exchange.title)}"]
    if step.usage.calls:
        tokens = f"{step.usage.prompt_tokens:,}+{step.usage.completion_tokens:,} tokens"
        words += [tokens, render.render_cost(step.usage, objective)]
    if exchange.took_s is not None:
        words.append(f"{exchange.took_s:.1f} s")
    words.append(safe_line(step.key))
    if step.state.value != "done":
        words.append(step.state.value)
    if step.n_unconfirmed:
        words.append(f"{say_count(step.n_unconfirmed, 'call')} cut off and counted as paid")
    yield Line(" · ".join(words), Style.BOLD)
    if exchange.missing:
        yield Line(f"{_MARGIN}({exchange.missing})", Style.DIM)
    yield from _render_parts(exchange, width)


def _render_parts(exchange: Exchange, width: int) -> Iterator[Line]:
    n_same = sum(part.is_said_before for part in exchange.parts)
    if n_same and width:
        same = say_count(n_same, "message")
        yield Line(f"{_MARGIN}… {same} as in the step before", Style.DIM)
    for part in exchange.parts:
        if width and (part.is_said_before or part.label == "kept"):
            continue  # shown in the step before, or in the head
        yield from _render_part(part.label, part.text, exchange.n, width)


def _render_part(label: str, text: str, n: int, width: int) -> Iterator[Line]:
    room = max(30, width - len(_MARGIN) - _LABEL_WIDTH - 3)
    bound = FOLDED_ROWS * room if width else MAX_FULL_CHARS
    rows = harmless_lines(shorten(text, bound)).strip("\n").split("\n")
    if width:
        rows = [row for row in rows if row.strip()][:FOLDED_ROWS]
    for row in rows:
        yield Line(f"{_MARGIN}{label:<{_LABEL_WIDTH}} | {row}".rstrip())
        label = ""
    n_left = len(text) - sum(len(row) + 1 for row in rows)
    if n_left > 0:
        note = f"… about {n_left:,} of {len(text):,} characters more: --step {n} shows all"
        yield Line(f"{_MARGIN}{'':<{_LABEL_WIDTH}} | {note}", Style.DIM)


def _render_abandoned(shown: actions.Shown) -> Iterator[Line]:
    for n, event in enumerate(shown.abandoned):
        if n == 0:
            yield Line("")
            yield Line("Calls without an outcome:", Style.BOLD)
        usage = _usage_of(event.data)
        paid = f"counted: {_cost(usage, shown.objective)}" if usage.calls else "nothing was counted"
        what = f"{event.data.get('kind', '')} {safe_line(str(event.data.get('model', '')))}"
        key = safe_line(str(event.data.get("key", "")))
        yield Line(f"      {event.at.astimezone():%H:%M:%S}  {what} · {key} · {paid}")


def _usage_of(data: Mapping[str, Any]) -> Usage:
    names = ("calls", "prompt_tokens", "completion_tokens", "cost_usd")
    return Usage(**{name: data.get(name, 0) for name in names})


def _render_more(shown: actions.Shown, exchanges: Sequence[Exchange], width: int) -> Iterator[Line]:
    if exchanges and width:
        name = shown.task.id if shown.task is not None else shown.duty
        command = f"babyagi show {name} --objective {shown.objective.id}"
        yield Line("")
        yield Line(f"To read on: {command} --step N, or --full", Style.DIM)


def _cost(usage: Usage, objective: Objective) -> str:
    if not usage.calls:
        return "no call of a model"
    return f"{render.render_calls(usage)}, {render.render_cost(usage, objective)}"


# -- the log: a line for each event and each step
# --------------------------------------------------------------------------------------------------


PAGE = 500
_LINE_CHARS = 300
_SHOWN_WITH_STEP = (events.STEP_RECORDED, events.TASK_PARKED)
_WORKER_WORDS = {events.WORKER_JOINED: "joined", events.WORKER_LEFT: "left"}
_STYLES = {
    events.TASK_DONE: Style.GREEN,
    events.TASK_DEAD: Style.RED,
    events.TASK_FAILED: Style.RED,
    events.TASK_PARKED: Style.YELLOW,
    events.MODEL_UNAVAILABLE: Style.YELLOW,
    events.WORKER_BLOCKED: Style.YELLOW,
    events.OBJECTIVE_ENDED: Style.BOLD,
}


@dataclass(eq=False, kw_only=True)
class LogView(View):
    """A view that prints each event with its time on standard output, with the requests and
    outcomes of the recorded calls (steps) that events are about; as JSON, or as plain lines that
    are cut to the width of a terminal.

    Attributes:
        task_id: the only task whose events are shown; None means all.
        secrets: texts that must not be shown.
        entries: events with their texts that are still to be printed. Some kinds have no text.
    """

    task_id: int | None
    secrets: Sequence[str]
    as_json: bool
    entries: list[tuple[Event, str]] = field(default_factory=list, init=False)

    def draw(self) -> None:
        width = row_width(sys.stdout)
        for event, said in self.entries:
            if self.as_json:
                print_json({**event_fields(event), "text": said}, indent=None)
                continue
            text = f"{render.render_moment(event.at)}  {said}"
            echo(fit(text, width) if width else text, _STYLES.get(event.kind, Style.PLAIN))
        self.entries.clear()

    async def fetch(self, batch: Sequence[Event]) -> None:
        page = [event for event in batch if self.task_id in (None, event.task_id)]
        named = [_address(event) for event in page if event.kind in _SHOWN_WITH_STEP]
        read = await self.store.steps(self.objective_id, named=named)
        steps = {(step.owner, step.key): step for step in read}
        for event in page:
            step = steps.get(_address(event)) if event.kind in _SHOWN_WITH_STEP else None
            if text := _say(event, step, await name_task(self.store, event)):
                clean = redact(text, secrets=self.secrets)
                self.entries.append((event, fit(clean, _LINE_CHARS)))


def _say(event: Event, step: Step | None, task_name: str) -> str | None:
    if event.kind in _WORKER_WORDS:
        return f"worker {event.data.get('name', '')} {_WORKER_WORDS[event.kind]}"
    if step is None:
        return describe_event(event, task_name)
    said = describe_step(step)
    if event.kind == events.TASK_PARKED:
        is_open = step.state in (StepState.ASKED, StepState.UNKNOWN)
        said = f"asks: {describe(step)}{f' (babyagi inbox {step.id})' if is_open else ''}"
    elif step.kind == QUESTION:
        said = f"answer: {first_line(said_in(step))}"
    return None if step.kind == INPUTS else f"{step.owner.replace(':', ' ')}: {said}"


def _address(event: Event) -> tuple[str, str]:
    return str(event.data.get("owner", f"task:{event.task_id}")), str(event.data.get("key", ""))


# -- the commands that look
# --------------------------------------------------------------------------------------------------


def _take_target(value: str) -> Duty | int:
    """Return the number of a task, or one of the duties that can be shown."""
    return Duty(value) if value in ("plan", "order", "check", "report") else int(value[:18])


@click.command("show")
@click.argument("what", metavar="TASK|plan|order|check|report", type=_take_target, required=False)
@objective_option
@click.option(
    "--step", type=click.IntRange(min=1), metavar="N", help="Show only this step, with whole texts."
)
@click.option(
    "--full", "is_full", is_flag=True, help="Show every text whole, not only its beginning."
)
@click.option("--artifact", metavar="NAME", help="Show only this file of the result.")
@json_option
def show_one(
    what: Duty | int | None,
    objective: str,
    step: int | None,
    is_full: bool,
    artifact: str | None,
    as_json: bool,
) -> None:
    """Show a task, or a list: tasks, results, log and more.

    A TASK is shown with the reason why it does not run, its result, prompts, replies and tool
    calls; `plan`, `order`, `check` and `report` show the calls made for the objective itself.
    """
    if artifact is not None and isinstance(what, int):
        show_artifact(what, artifact, selector=objective)
        return
    if what is None or artifact is not None:
        raise WrongUsage("say what to show: a task's number, or a list", "babyagi show tasks")
    settings = load(needs=NOTHING).settings
    secrets = settings.known_secrets

    async def fetch(store: TaskStore, picked: Objective) -> actions.Shown:
        if isinstance(what, int):
            return await actions.fetch_task(store, picked, what)
        n_times = 0 if is_full or as_json else N_TIMES
        return await actions.fetch_duty(store, picked, what, n_times=n_times, only=step)

    shown = with_objective(objective, fetch, settings=settings)
    shape = json_shapes.shown_shape(shown, secrets, only=step)
    width = 0 if is_full or step is not None else terminal_width()
    give(as_json, shape, render_shown(shown, width, only=step, secrets=secrets))


MAX_LINES = 1_000  # of the log, unless -n says otherwise


@click.command()
@click.argument("task", metavar="[TASK]", required=False, type=int)
@objective_option
@click.option(
    "-f",
    "--follow",
    "is_followed",
    is_flag=True,
    help="Keep printing until the objective has ended.",
)
@click.option(
    "--since",
    type=Duration(),
    metavar="DURATION",
    help="Show only events of this last period, such as 90s, 10m or 2h.",
)
@click.option(
    "-n",
    "n_last",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show only this many of the last lines; 0 means all. Default: {MAX_LINES:,}.",
)
@json_option
def log(
    *,
    task: int | None,
    objective: str,
    since: str | None,
    n_last: int | None,
    is_followed: bool,
    as_json: bool,
) -> None:
    """Show what happened, one line for each change and call.

    With a TASK, show only the events of that task.
    """
    settings = load(needs=NOTHING).settings
    bound = MAX_LINES if n_last is None else n_last

    async def tell(store: TaskStore, found: Objective) -> None:
        if task is not None:
            await store.task(found.id, task)
        if json_shapes.is_rehearsal(found) and not as_json:
            echo(render.REHEARSAL_LINE, Style.YELLOW)
        view = LogView(
            store=store,
            objective_id=found.id,
            task_id=task,
            secrets=settings.known_secrets,
            as_json=as_json,
        )
        if since:
            since_s = parse_duration_s(since)
            view.after_id = await store.last_event_id(found.id, older_than_s=since_s)
        while page := await store.events(
            found.id, after_id=view.after_id, task_id=task, limit=PAGE
        ):
            await view.fetch(page)
            view.after_id = page[-1].id
        if bound and n_last is None and len(view.entries) > bound:
            warn(f"Only the last lines are shown ({bound:,}); -n 0 shows all.", Style.DIM)
        view.entries = view.entries[-bound:]  # of 0 all
        view.draw()
        if is_followed:
            await watch(view)

    with_objective(objective, tell, settings=settings)


@click.command()
@json_option
def workers(as_json: bool) -> None:
    """List the workers, and what each works on.

    Each objective is shown with the time since the worker joined it, or with the reason why the
    worker cannot work on it.
    """
    found = with_store(lambda store: store.workers())
    shapes = [json_shapes.worker_shape(one) for one in found]
    none = "No worker is running. Type: babyagi worker, or babyagi resume"
    give(
        as_json, shapes, render.render_workers(found, terminal_width()) if found else (), empty=none
    )


show = Family(show_one)
for command in (
    *(objectives.tasks_list, objectives.results, log),
    *(objectives.objectives, workers, ask.memory),
):
    show.add_command(command)
