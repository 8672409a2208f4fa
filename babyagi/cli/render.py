"""Puts objectives, tasks and results into words: takes data types, returns texts and lines. Nothing
here reads a store or writes to a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from babyagi.cli.text import Line, Style, cut_words, fit, safe_line, table
from babyagi.reporting.sources import Made, say_artifact
from babyagi.reporting.why import say_going_on, say_stop
from babyagi.tasks import (
    Joined,
    Objective,
    ObjectiveStatus,
    Result,
    StopReason,
    Task,
    TaskStatus,
    Usage,
    Worker,
)
from babyagi.text import say_count, say_duration
from babyagi.verbs.actions import Stand, serving
from babyagi.verbs.json_shapes import is_rehearsal, model_of

REHEARSAL_LINE = "REHEARSAL: no language model was asked"

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
    if objective.spec.is_free and not usage.cost_usd:
        return "no cost (rehearsal)" if is_rehearsal(objective) else "no cost"
    if not objective.spec.has_price:
        return "cost unknown"
    confirmed, perhaps = usage.cost_usd - usage.unconfirmed_cost_usd, usage.unconfirmed_cost_usd
    if perhaps <= 0:
        return f"${confirmed:.4f}"
    more = f"perhaps ${perhaps:.4f}"
    return f"${confirmed:.4f} ({more} more)" if confirmed else more


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


# widths from which the LAST and WORKED columns are shown, and from which BEGUN is shown as well
WITH_THE_AGE, WITH_THE_HOUR = 76, 100


def render_objectives(rows: Sequence[Row], width: int, *, now: datetime) -> list[Line]:
    """Return a table of objectives: the start, the time since the last event, the working time, the
    status, done tasks out of all, the cost and the text of each. On a narrow screen the times are
    left out."""
    columns = {
        "ID": ">4",
        **({"BEGUN": "<16"} if width >= WITH_THE_HOUR else {}),
        **({"LAST": ">8", "WORKED": ">9"} if width >= WITH_THE_AGE else {}),
        **{"STATUS": "<13", "DONE": ">7", "COST": ">9", "OBJECTIVE": ""},
    }
    shown = []
    for objective, counts, last_at in rows:
        cells = {
            "ID": objective.id,
            "BEGUN": f"{objective.created_at.astimezone():%Y-%m-%d %H:%M}",
            "LAST": render_age((now - last_at).total_seconds()),
            "WORKED": render_worked(objective),
            "STATUS": _short_status(objective, counts),
            "DONE": f"{counts.get(TaskStatus.DONE, 0)}/{sum(counts.values())}",
            "COST": objective.spent.removesuffix(" more)").replace(" (perhaps ", " +"),
            "OBJECTIVE": "; ".join((objective.spec.text, *objective.spec.further)),
        }
        is_active = objective.status is ObjectiveStatus.ACTIVE
        style = Style.BOLD if is_active else Style.PLAIN
        shown.append(([cells[title] for title in columns], style))
    return table(columns, shown, width)


def _short_status(objective: Objective, counts: Mapping[TaskStatus, int]) -> str:
    """Return the stop reason or the status; `not begun` for an objective that was paused, because
    no model answered, before any task was done."""
    if objective.is_set_aside and not counts.get(TaskStatus.DONE, 0):
        return "not begun"
    return (objective.stop_reason or objective.status).value


def render_status(stand: Stand, width: int) -> list[Line]:
    """Return the lines about the state of one objective."""
    objective, counts = stand.objective, stand.counts
    spec = objective.spec
    is_served = bool(serving(stand.workers, objective.id))
    is_active = objective.status is ObjectiveStatus.ACTIVE
    fields = {
        "Status:": render_status_words(objective),
        "Tasks:": render_counts(counts),
        "Usage:": render_usage(objective),
        "Limits:": " · ".join(render_limits(objective, counts)) or "none",
        "Model:": safe_line(model_of(objective)),
        "Now:": stand.reason.says if is_active else "",
        "Try:": stand.reason.change if is_active else "",
        "At work:": render_serving(stand.workers, objective.id),
    }
    return [
        *([Line(REHEARSAL_LINE, Style.YELLOW)] if is_rehearsal(objective) else []),
        Line(f"Objective {objective.id}: {fit(spec.text, max(40, 4 * width))}", Style.BOLD),
        *(Line(f"Further question: {fit(one, max(40, 2 * width))}") for one in spec.further),
        *(Line(f"{head:<10}{text}") for head, text in fields.items() if text),
        *_render_index_trouble(objective, "Results:  ", stand.index_trouble),
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
    if is_served and objective.status is ObjectiveStatus.ACTIVE:
        return f"babyagi watch --objective {objective.id}"
    read = f"babyagi report --objective {objective.id}"
    goes_on = render_going_on(objective, counts)
    is_read = goes_on and objective.has_report and objective.status is ObjectiveStatus.ENDED
    return f"{goes_on}  (what there is: {read})" if is_read else goes_on or read


WORD_WIDTH = 21  # cells for the status of a task, or the reason why it does not run


def render_tasks_head() -> Line:
    return Line(f"{'ID':>4}  {'STATUS':<{WORD_WIDTH}}  TASK", Style.DIM)


def render_task(task: Task, width: int, *, word: str = "") -> Line:
    """Return one row of the list of tasks.

    Args:
        word: why the task does not run; it replaces the status. '' shows the status.
    """
    head = f"{task.id:>4}  {fit(word or task.status.value, WORD_WIDTH):<{WORD_WIDTH}}  "
    after = f"  (after {', '.join(map(str, task.after))})" if task.after else ""
    failures = f"  [{say_tries(task)}]" if task.failures else ""
    lacks = f"  [lacked something {task.n_lacks}×]" if task.n_lacks else ""
    tail, room = after + failures + lacks, width - len(head)
    text = fit(task.name, max(20, room - len(tail))) + tail
    return Line(head + cut_words(text, room), _STYLE_BY_STATUS.get(task.status, Style.PLAIN))


def render_results(results: Sequence[Result], made: Sequence[Made] = ()) -> list[Line]:
    """Return the lines of the results, each with the files (`made`) that belong to it."""
    lines: list[Line] = []
    for result in results:
        lines.append(Line(f"Task {result.task_id}: {safe_line(result.task_name)}", Style.BOLD))
        lines.append(Line(result.text))
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
            Line(f"Objective {objective.id}: {render_status_words(objective)}", Style.BOLD),
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
    is_to_say = is_rehearsal(objective) and not is_told
    return [*lines, Line(REHEARSAL_LINE, Style.YELLOW)] if is_to_say else lines


def render_going_on(objective: Objective, counts: Mapping[TaskStatus, int]) -> str:
    """Return the command that continues the objective; '' if there is nothing left to continue.
    Unlike `render_next`, it never names the report."""
    has_dead = bool(counts.get(TaskStatus.DEAD))
    return say_going_on(objective, has_dead=has_dead, has_report=objective.has_report)


# -- workers as lines
# --------------------------------------------------------------------------------------------------


def render_serving(workers: Sequence[Worker], objective_id: int) -> str:
    """Return how many workers serve the objective, and their names."""
    names = [worker.name for worker in serving(workers, objective_id)]
    if names:
        return f"{say_count(len(names), 'worker')}: {fit(', '.join(names), 200)}"
    return "no worker on this objective; babyagi show workers says why" if workers else ""


def render_workers(workers: Sequence[Worker], width: int) -> list[Line]:
    """Return a table of workers: a head, and for each worker one line for each objective that it
    serves."""
    columns = {"NAME": "<20", "PID": ">8", "LEASE": ">7", "AT WORK": ""}
    rows: list[tuple[Sequence[object], Style]] = []
    for worker in workers:
        lease = f"{worker.lease_left_s:.0f} s" if worker.lease_left_s >= 0 else "over"
        head: tuple[object, ...] = (fit(worker.name, 20), worker.pid, lease)
        idle = [("waits for an objective", Style.PLAIN)]
        for text, style in [_say_joined(one, worker) for one in worker.joined] or idle:
            rows.append(((*head, text), style))
            head = ("", "", "")
    return table(columns, rows, width)


def _say_joined(joined: Joined, worker: Worker) -> tuple[str, Style]:
    place = f"objective {joined.objective_id}"
    if joined.is_blocked:
        return f"{place}: blocked: {joined.blocked_reason}", Style.YELLOW
    tasks = [f"task {task_id}" for task_id in joined.task_ids]
    held = ", ".join([*tasks, *(f"the {duty}" for duty in joined.duties)]) or (
        joined.blocked_reason or "nothing to do now"
    )
    # both times are by the store's clock
    since_s = (worker.lease_until - joined.since).total_seconds() - worker.lease_left_s
    return f"{place} for {render_duration(since_s)}: {held}", Style.PLAIN
