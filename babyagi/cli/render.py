"""Puts objectives, tasks and results into words: takes data types, returns texts and lines. Nothing
here reads a store or writes to a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from babyagi.cli.text import Line, Style, cell_width, fit, pad, safe, safe_line
from babyagi.reporting.artifacts import Made, say_artifact
from babyagi.reporting.next_command import Need, NextCommand, next_command, say_stop
from babyagi.tasks import (
    Limits,
    Objective,
    ObjectiveStatus,
    Result,
    StopReason,
    Task,
    TaskStatus,
    Usage,
)
from babyagi.text import say_count, say_duration
from babyagi.verbs.json_shapes import is_rehearsal, model_of

REHEARSAL_LINE = "REHEARSAL: no language model was asked"

FINISHED = (TaskStatus.DONE, TaskStatus.DEAD)

_HOW_IT_STANDS = {
    ObjectiveStatus.ACTIVE: "was stopped before it ended; nothing is lost",
    ObjectiveStatus.PAUSED: "is paused",
}

_STYLE_BY_STATUS = {
    TaskStatus.DONE: Style.GREEN,
    TaskStatus.DEAD: Style.RED,
    TaskStatus.WAITING: Style.YELLOW,
    TaskStatus.CANCELLED: Style.DIM,
    TaskStatus.RUNNING: Style.BOLD,
}


# an objective, how many of its tasks have each status, and the time of its last event
Row = tuple[Objective, Mapping[TaskStatus, int], datetime]


def render_duration(seconds: float) -> str:
    """Return a duration that is still passing in its two largest units, such as 45 s, 12 min 5 s or
    2 h 3 min. It has no fraction of a second, which would change at each look."""
    return say_duration(max(0, int(seconds)))


def render_worked(objective: Objective) -> str:
    """Return how long workers worked on the objective; once it has ended, as its report says it."""
    has_ended = objective.status is ObjectiveStatus.ENDED
    return (say_duration if has_ended else render_duration)(objective.active_s)


def render_age(seconds: float) -> str:
    """Return a duration in its largest unit only, such as 45 s, 12 min, 2 h or 30 days."""
    for unit_s, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= (2 if unit_s == 86_400 else 1) * unit_s:
            return f"{int(seconds // unit_s)} {name}"
    return f"{max(0, int(seconds))} s"


def render_status_words(objective: Objective) -> str:
    """Return `active` or `paused`, or for an objective that has ended, `ended` and why."""
    if objective.stop_reason is None:
        why = f": {safe_line(objective.stop_detail)}" if objective.stop_detail else ""
        return f"{objective.status.value}{why}"
    detail = f" ({safe_line(objective.stop_detail)})" if objective.stop_detail else ""
    return f"ended, {objective.stop_reason.value}: {say_stop(objective)}{detail}"


def render_counts(counts: Mapping[TaskStatus, int]) -> str:
    """Return the numbers of tasks as words, such as `3 done, 2 running, 5 queued`. Statuses without
    a task are left out."""
    order = map(TaskStatus, "done recorded running queued waiting dead cancelled".split())
    parts = [f"{counts[status]} {status.value}" for status in order if counts.get(status)]
    return ", ".join(parts) or "none"


def render_calls(usage: Usage) -> str:
    """Return the numbers of calls and tokens in words, such as `2 calls, 812 tokens in and 120
    out`."""
    tokens = f"{usage.prompt_tokens:,} tokens in and {usage.completion_tokens:,} out"
    return f"{say_count(usage.calls, 'call')}, {tokens}"


def render_usage(objective: Objective) -> str:
    n = objective.usage.unconfirmed_tokens
    perhaps = f" ({n:,} of them unconfirmed)" if n else ""
    return f"{render_calls(objective.usage)}{perhaps}, cost {objective.spent}"


def render_cost(usage: Usage, objective: Objective) -> str:
    """Return the cost of `usage`, which is a part of the objective's usage: `$0.0040`, `cost
    unknown` if the model has no known price, or `no cost` if it is free."""
    if objective.is_free and not usage.cost_usd:
        return "no cost (rehearsal)" if is_rehearsal(objective) else "no cost"
    if not objective.spec.has_price:
        return "cost unknown"
    confirmed, perhaps = usage.cost_usd - usage.unconfirmed_cost_usd, usage.unconfirmed_cost_usd
    if perhaps <= 0:
        return f"${confirmed:.4f}"
    more = f"perhaps ${perhaps:.4f}"
    return f"${confirmed:.4f} ({more} more)" if confirmed else more


def render_tokens(usage: Usage) -> str:
    """Return the tokens as prompt tokens, `+`, completion tokens: `812+120`."""
    return f"{usage.prompt_tokens:,}+{usage.completion_tokens:,}"


def render_moment(moment: datetime | None) -> str:
    """Return a moment in the local time zone, to the second; '' for None."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}" if moment is not None else ""


def render_limits(objective: Objective, counts: Mapping[TaskStatus, int]) -> list[str]:
    """Return a text for each limit that is set, such as `tasks 3/50`: how much of it is used."""
    limits, usage = objective.spec.limits, objective.usage
    over = (TaskStatus.DONE, TaskStatus.RECORDED, TaskStatus.DEAD)
    n_tasks = sum(counts.get(status, 0) for status in over)
    times = f"{render_worked(objective)}/{render_duration(limits.max_time_s)}"
    entries = [
        (limits.max_tasks, f"tasks {n_tasks}/{limits.max_tasks}"),
        (limits.max_calls, f"calls {usage.calls}/{limits.max_calls}"),
        (limits.max_tokens, f"tokens {usage.tokens:,}/{limits.max_tokens:,}"),
        (limits.max_cost_usd, f"cost {objective.spent} of ${limits.max_cost_usd:g}"),
        (limits.max_time_s, f"time {times}"),
    ]
    return [text for limit, text in entries if limit]


def render_limit_values(limits: Limits) -> str:
    """Return the limits in words, without how much of them is used. The limit of calls is named
    only if it is set."""
    parts = [
        _amount(limits.max_tasks, "task"),
        *([_amount(limits.max_calls, "call")] if limits.max_calls else []),
        _amount(limits.max_tokens, "token"),
        f"${limits.max_cost_usd:g}" if limits.max_cost_usd else "no cost limit",
        render_duration(limits.max_time_s) if limits.max_time_s else "no time limit",
    ]
    return ", ".join(parts)


def _amount(limit: int, what: str) -> str:
    return say_count(limit, what) if limit else f"no limit of {what}s"


def render_objectives(rows: Sequence[Row], width: int, *, now: datetime) -> list[Line]:
    """Return a table of objectives with a head: the start, the time since the last event, the
    working time, the status, done tasks out of all, the cost and the text of each.

    If any objective has unconfirmed cost (of calls to which no answer came), there is a column for
    it. On a narrow screen the times are left out.
    """
    has_unconfirmed = any(_unconfirmed_cost(objective) for objective, _, _ in rows)
    titles = {name: name.upper() for name in _OBJECTIVE_COLUMNS}
    lines = [Line(_objective_columns(titles, width, has_unconfirmed) + "OBJECTIVE", Style.DIM)]
    for objective, counts, last_at in rows:
        columns = {
            "id": f"{objective.id}",
            "begun": f"{objective.created_at.astimezone():%Y-%m-%d %H:%M}",
            "last": render_age((now - last_at).total_seconds()),
            "worked": render_worked(objective),
            "status": _short_status(objective, counts),
            "done": f"{counts.get(TaskStatus.DONE, 0)}/{sum(counts.values())}",
            "cost": _spent(objective),
            "perhaps": _unconfirmed_cost(objective),
        }
        head = _objective_columns(columns, width, has_unconfirmed)
        style = Style.BOLD if objective.status is ObjectiveStatus.ACTIVE else Style.PLAIN
        text = "; ".join((objective.spec.text, *objective.spec.further))
        lines.append(Line(head + fit(text, max(8, width - len(head))), style))
    return lines


_OBJECTIVE_COLUMNS = ("id", "begun", "last", "worked", "status", "done", "cost", "perhaps")
# widths from which the LAST and WORKED columns are shown, and from which BEGUN is shown as well
WITH_THE_AGE, WITH_THE_HOUR = 72, 100


def _objective_columns(columns: Mapping[str, str], width: int, has_unconfirmed: bool) -> str:
    """Return the columns before an objective's text. Columns of times for which `width` has no room
    are left out."""
    times = f"{columns['begun'][:16]:<16}  " if width >= WITH_THE_HOUR else ""
    times += f"{columns['last']:>8}  "
    if width >= WITH_THE_HOUR or not has_unconfirmed:
        times += f"{columns['worked']:>9}  "
    perhaps = f" {columns['perhaps']:>9}" if has_unconfirmed else ""
    return (
        f"{columns['id']:>4}  {times if width >= WITH_THE_AGE else ''}"
        f"{columns['status']:<13} {columns['done']:>7} {columns['cost']:>9}{perhaps}  "
    )


def _short_status(objective: Objective, counts: Mapping[TaskStatus, int]) -> str:
    """Return the stop reason or the status; `not begun` for an objective that was paused, because
    no model answered, before any task was done."""
    if objective.is_set_aside and not counts.get(TaskStatus.DONE, 0):
        return "not begun"
    return (objective.stop_reason or objective.status).value


def _spent(objective: Objective) -> str:
    usage = objective.usage
    if objective.is_free and not usage.cost_usd:
        return "nothing"
    cost_usd = usage.cost_usd - usage.unconfirmed_cost_usd
    return f"${cost_usd:.4f}" if objective.spec.has_price else "unknown"


def _unconfirmed_cost(objective: Objective) -> str:
    cost_usd = objective.usage.unconfirmed_cost_usd
    return f"${cost_usd:.4f}" if cost_usd > 0 else ""


def render_status(
    objective: Objective,
    counts: Mapping[TaskStatus, int],
    width: int,
    *,
    is_served: bool | None = None,
    index_trouble: str = "",
) -> list[Line]:
    lines = [Line(REHEARSAL_LINE, Style.YELLOW)] if is_rehearsal(objective) else []
    asked, further = objective.spec.text, objective.spec.further
    return [
        *lines,
        Line(f"Objective {objective.id}: {fit(asked, max(40, 4 * width))}", Style.BOLD),
        *(Line(f"Further question: {fit(one, max(40, 2 * width))}") for one in further),
        Line(f"Status:   {render_status_words(objective)}"),
        Line(f"Tasks:    {render_counts(counts)}"),
        Line(f"Usage:    {render_usage(objective)}"),
        Line(f"Limits:   {' · '.join(render_limits(objective, counts)) or 'none'}"),
        Line(f"Model:    {safe_line(model_of(objective))}"),
        *_render_index_trouble(objective, "Results:  ", index_trouble),
        Line(f"Next:     {render_next(objective, counts, is_served=is_served)}"),
    ]


def _render_index_trouble(objective: Objective, head: str, trouble: str) -> list[Line]:
    if not trouble:
        return []
    fix = f"babyagi store rebuild --objective {objective.id}"
    says = (
        f"{head}cannot be written to the result store: {fit(trouble, 400)}; no result is lost. "
        f"`babyagi doctor` says more; once it works again: {fix}"
    )
    return [Line(says, Style.YELLOW)]


def render_next(
    objective: Objective, counts: Mapping[TaskStatus, int], *, is_served: bool | None = None
) -> str:
    """Return the command that the person should type next: one that continues the objective, or
    `babyagi report` if nothing is left to continue.

    Args:
        is_served: whether a worker works on the objective; None if that is not known.
    """
    found = _find_next(objective, counts)
    if found.need is Need.RESUME:
        if is_served and objective.status is ObjectiveStatus.ACTIVE:
            return f"babyagi watch --objective {objective.id}"
        or_watch = "  (or `babyagi watch`, if a worker is running)" if is_served is None else ""
        return f"{found.resume}{or_watch}"
    if found.need is Need.ANSWERS:
        return f"{found.command}  (then answer, and {found.resume})"
    if not objective.has_report:
        return f"{found.resume}  (its report is still to be written)"
    goes_on, read = render_going_on(objective, counts), f"babyagi report --objective {objective.id}"
    return f"{goes_on}  (what there is: {read})" if goes_on else read


WORD_WIDTH = 21  # cells for the status of a task, or the reason why it does not run


def render_tasks_head() -> Line:
    return Line(f"{'ID':>4}  {'STATUS':<{WORD_WIDTH}}  TASK", Style.DIM)


def render_task(task: Task, width: int, *, word: str = "") -> Line:
    """Return one row of the list of tasks.

    Args:
        word: why the task does not run; it replaces the status. '' shows the status.
    """
    head = f"{task.id:>4}  {pad(word or task.status.value, WORD_WIDTH)}  "
    after = f"  (after {', '.join(map(str, task.after))})" if task.after else ""
    failures = f"  [{say_tries(task)}]" if task.failures else ""
    lacks = f"  [lacked something {task.n_lacks}×]" if task.n_lacks else ""
    tail = after + failures + lacks
    name = fit(task.name, max(20, width - len(head) - len(tail)))
    room = max(0, width - len(head) - cell_width(name))
    return Line(head + name + fit_tail(tail, room), _STYLE_BY_STATUS.get(task.status, Style.PLAIN))


def fit_tail(text: str, width: int) -> str:
    """Return the text, cut at its end to `width` cells. Unlike `fit`, it keeps the two blanks with
    which the text begins."""
    return text if len(text) <= width else f"  {fit(text, width - 2)}" if width > 4 else ""


def render_results(results: Sequence[Result], made: Sequence[Made] = ()) -> list[Line]:
    """Return the lines of the results, each with the files (`made`) that belong to it."""
    lines: list[Line] = []
    for result in results:
        lines.append(Line(f"Task {result.task_id}: {safe_line(result.task_name)}", Style.BOLD))
        lines.append(Line(safe(result.text, keep_newlines=True)))
        lines += render_artifacts([one for one in made if one.task_id == result.task_id])
        lines.append(Line(""))
    return lines[:-1]


def render_artifacts(made: Sequence[Made]) -> list[Line]:
    """Return one row for each file of a result."""
    return [
        Line(f"  {'file':<8} {safe_line(f'{one.artifact.name} ({say_artifact(one)})')}")
        for one in made
    ]


def render_task_words(task: Task) -> str:
    """Return the status, rank, try, failures and lost workers of a task in words."""
    lost = f", {say_count(task.n_lost, 'lost worker')} in a row" if task.n_lost else ""
    return f"{task.status.value}, rank {task.rank}, {say_tries(task)}{lost}"


def say_tries(task: Task) -> str:
    """Return how often a task was tried, such as `try 4, 3 failed`."""
    return f"try {task.try_no}" + (f", {task.failures} failed" if task.failures else "")


def render_closing(
    objective: Objective,
    counts: Mapping[TaskStatus, int],
    *,
    index_trouble: str = "",
    is_told: bool = False,
) -> list[Line]:
    """Return the last lines of a run: how it ended, what it cost, and what to type next. With
    `is_told` the first two are left out, because the report on the screen states them."""
    lines: list[Line] = []
    if not is_told:
        used = f"{render_usage(objective)}. {render_worked(objective)}."
        lines = [
            Line(f"Objective {objective.id} {_how_it_came_out(objective)}", Style.BOLD),
            Line(f"Tasks: {render_counts(counts)}. {used}"),
        ]
    lines += _render_index_trouble(objective, "Results: ", index_trouble)
    if objective.has_report or counts.get(TaskStatus.DONE):
        head = "Read again:" if objective.has_report else "So far:    "
        lines.append(Line(f"{head} babyagi report --objective {objective.id}"))
    if going_on := render_going_on(objective, counts):
        lines.append(Line(f"To go on:   {going_on}"))
    if objective.has_report and objective.stop_reason is not StopReason.CANCELLED:
        more = f'babyagi run --continue {objective.id} "a further question"'
        lines.append(Line(f"Ask more:   {more}"))
    return [*lines, Line(REHEARSAL_LINE, Style.YELLOW)] if is_rehearsal(objective) else lines


def _how_it_came_out(objective: Objective) -> str:
    if objective.is_set_aside:
        return f"is set aside until you go on with it ({fit(objective.stop_detail, 300)})"
    if objective.stop_reason is None:
        return _HOW_IT_STANDS.get(objective.status, objective.status.value)
    detail = f" ({fit(objective.stop_detail, 300)})" if objective.stop_detail else ""
    return f"({objective.stop_reason.value}): {say_stop(objective)}{detail}"


def render_going_on(objective: Objective, counts: Mapping[TaskStatus, int]) -> str:
    """Return the command that continues the objective; '' if there is nothing left to continue.
    Unlike `render_next`, it never names the report."""
    found = _find_next(objective, counts)
    match found.need:
        case Need.NOTHING:
            return ""
        case Need.RESUME:
            return found.resume
        case Need.REPORT:
            return f"{found.resume}  (its report is still to be written)"
        case Need.ANSWERS:
            return f"{found.command}, answer what it shows, then {found.resume}"
        case Need.MODEL:
            return f"{found.command}  (with a MODEL of yours, and --files as before)"
        case Need.RETRY:
            number = "with the number of a dead task (babyagi tasks)"
            return f"{found.command} {number}, then {found.resume}"
    return f"{f'{found.command} {found.value}'.rstrip()}, then {found.resume}"


def _find_next(objective: Objective, counts: Mapping[TaskStatus, int]) -> NextCommand:
    has_dead = bool(counts.get(TaskStatus.DEAD))
    return next_command(objective, has_dead=has_dead, has_report=objective.has_report)
