"""What a person reads about objectives, tasks and results: nouns in, lines out. Nothing here reads
a store or writes a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from babyagi.cli.json_shapes import given_results, is_rehearsal, model_of
from babyagi.cli.text import Line, Style, fit, pad, safe, safe_line
from babyagi.next_command import Need, NextCommand, next_command
from babyagi.tasks import Limits, Objective, ObjectiveStatus, Result, Step, Task, TaskStatus

REHEARSAL_LINE = "REHEARSAL: no language model was asked"

FINISHED = (TaskStatus.DONE, TaskStatus.DEAD, TaskStatus.CANCELLED)

_HOW_IT_STANDS = {
    ObjectiveStatus.ACTIVE: "was stopped before its end; nothing is lost",
    ObjectiveStatus.PAUSED: "is paused",
}

_STYLE_BY_STATUS = {
    TaskStatus.DONE: Style.GREEN,
    TaskStatus.DEAD: Style.RED,
    TaskStatus.WAITING: Style.YELLOW,
    TaskStatus.CANCELLED: Style.DIM,
    TaskStatus.RUNNING: Style.BOLD,
}


Row = tuple[Objective, Mapping[TaskStatus, int]]  # an objective and how many tasks have each status


def render_duration(seconds: float) -> str:
    """45 s, 12 min 5 s, 2 h 3 min: the two largest units."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    minutes = whole % 3600 // 60
    return f"{whole // 3600} h {minutes} min" if minutes else f"{whole // 3600} h"


def render_status_words(objective: Objective) -> str:
    """`active`, `paused`, or why it ended, in words."""
    if objective.stop_reason is None:
        return objective.status.value
    detail = f" ({safe_line(objective.stop_detail)})" if objective.stop_detail else ""
    return f"ended, {objective.stop_reason.value}: {objective.stop_reason.words}{detail}"


def render_counts(counts: Mapping[TaskStatus, int]) -> str:
    """`3 done, 2 running, 5 queued`, without the empty ones."""
    order = (
        TaskStatus.DONE,
        TaskStatus.RECORDED,
        TaskStatus.RUNNING,
        TaskStatus.QUEUED,
        TaskStatus.WAITING,
        TaskStatus.DEAD,
        TaskStatus.CANCELLED,
    )
    parts = [f"{counts[status]} {status.value}" for status in order if counts.get(status)]
    return ", ".join(parts) or "none"


def render_usage(objective: Objective) -> str:
    usage = objective.usage
    perhaps = f" ({usage.unconfirmed_tokens:,} of them perhaps)" if usage.unconfirmed_tokens else ""
    return (
        f"{usage.calls} {'call' if usage.calls == 1 else 'calls'}, "
        f"{usage.prompt_tokens:,} tokens in and "
        f"{usage.completion_tokens:,} out{perhaps}, cost {objective.spent}"
    )


def render_limits(objective: Objective, counts: Mapping[TaskStatus, int]) -> list[str]:
    """One text per limit that is set: how far it is used up."""
    limits, usage = objective.spec.limits, objective.usage
    n_tasks = (
        counts.get(TaskStatus.DONE, 0)
        + counts.get(TaskStatus.RECORDED, 0)
        + counts.get(TaskStatus.DEAD, 0)
    )
    entries = [
        (limits.max_tasks, f"tasks {n_tasks}/{limits.max_tasks}"),
        (limits.max_calls, f"calls {usage.calls}/{limits.max_calls}"),
        (limits.max_tokens, f"tokens {usage.tokens:,}/{limits.max_tokens:,}"),
        (limits.max_cost_usd, f"cost {objective.spent} of ${limits.max_cost_usd:g}"),
        (
            limits.max_time_s,
            f"time {render_duration(objective.active_s)}/{render_duration(limits.max_time_s)}",
        ),
    ]
    return [text for limit, text in entries if limit]


def render_limit_values(limits: Limits) -> str:
    """The limits alone, for people."""
    parts = [
        _amount(limits.max_tasks, "task"),
        _amount(limits.max_calls, "call"),
        _amount(limits.max_tokens, "token"),
        f"${limits.max_cost_usd:g}" if limits.max_cost_usd else "no limit of money",
        render_duration(limits.max_time_s) if limits.max_time_s else "no limit of time",
    ]
    return ", ".join(parts)


def _amount(limit: int, what: str) -> str:
    if not limit:
        return f"no limit of {what}s"
    return f"{limit:,} {what if limit == 1 else what + 's'}"


def render_objectives(rows: Sequence[Row], width: int) -> list[Line]:
    lines = [
        Line(
            (
                f"{'ID':>4}  {'STATUS':<16} {'DONE':>5} {'ALL':>5}  {'SPENT':>9} {'PERHAPS':>9}  "
                "OBJECTIVE"
            ),
            Style.DIM,
        )
    ]
    for objective, counts in rows:
        status = (
            objective.stop_reason.value
            if objective.stop_reason is not None
            else objective.status.value
        )
        head = (
            f"{objective.id:>4}  {status:<16} {counts.get(TaskStatus.DONE, 0):>5} "
            f"{sum(counts.values()):>5}  "
            f"{_spent(objective):>9} {_perhaps(objective):>9}  "
        )
        style = Style.BOLD if objective.status is ObjectiveStatus.ACTIVE else Style.PLAIN
        lines.append(Line(head + fit(objective.spec.text, max(20, width - len(head))), style))
    return lines


def _spent(objective: Objective) -> str:
    usage = objective.usage
    return (
        f"${usage.cost_usd - usage.unconfirmed_cost_usd:.4f}"
        if objective.spec.has_price
        else "unknown"
    )


def _perhaps(objective: Objective) -> str:
    return (
        f"${objective.usage.unconfirmed_cost_usd:.4f}"
        if objective.usage.unconfirmed_cost_usd > 0
        else ""
    )


def render_status(
    objective: Objective, counts: Mapping[TaskStatus, int], width: int, *, index_trouble: str = ""
) -> list[Line]:
    lines = [Line(REHEARSAL_LINE, Style.YELLOW)] if is_rehearsal(objective) else []
    lines.append(
        Line(
            f"Objective {objective.id}: {fit(objective.spec.text, max(40, 4 * width))}", Style.BOLD
        )
    )
    lines.append(Line(f"Status:   {render_status_words(objective)}"))
    lines.append(Line(f"Tasks:    {render_counts(counts)}"))
    lines.append(Line(f"Usage:    {render_usage(objective)}"))
    lines.append(Line(f"Limits:   {' · '.join(render_limits(objective, counts)) or 'none'}"))
    lines.append(Line(f"Model:    {safe_line(model_of(objective))}"))
    lines += _render_index_trouble(objective, "Results:  ", index_trouble)
    lines.append(Line(f"Next:     {render_next(objective, counts)}"))
    return lines


def _render_index_trouble(objective: Objective, head: str, trouble: str) -> list[Line]:
    if not trouble:
        return []
    how = (
        "`babyagi doctor` says more; when it can be used: babyagi index rebuild --objective "
        f"{objective.id}"
    )
    return [
        Line(
            (
                f"{head}they do not get into the result store: {fit(trouble, 400)}; none is lost. "
                f"{how}"
            ),
            Style.YELLOW,
        )
    ]


def render_next(objective: Objective, counts: Mapping[TaskStatus, int]) -> str:
    """What to type now."""
    found = _find_next(objective, counts)
    if found.need is Need.RESUME:
        return f"{found.resume}  (or `babyagi watch`, if it is running somewhere)"
    if found.need is Need.ANSWERS:
        return f"{found.command}  (then answer, and {found.resume})"
    if objective.has_report:
        return f"babyagi report --objective {objective.id}"
    return f"{found.resume}  (its report is still to be written)"


def render_tasks(tasks: Sequence[Task], width: int) -> list[Line]:
    lines = [Line(f"{'ID':>4}  {'STATUS':<9}  TASK", Style.DIM)]
    for task in tasks:
        head = f"{task.id:>4}  {task.status.value:<9}  "
        after = (
            f"  (after {', '.join(str(task_id) for task_id in task.after)})" if task.after else ""
        )
        failures = f"  [{task.failures} failed]" if task.failures else ""
        lacks = f"  [lacked something {task.n_lacks}×]" if task.n_lacks else ""
        name = fit(task.name, max(20, width - len(head) - len(after) - len(failures) - len(lacks)))
        lines.append(
            Line(
                head + name + after + failures + lacks,
                _STYLE_BY_STATUS.get(task.status, Style.PLAIN),
            )
        )
    return lines


def render_results(results: Sequence[Result]) -> list[Line]:
    lines: list[Line] = []
    for result in results:
        lines.append(Line(f"Task {result.task_id}: {safe_line(result.task_name)}", Style.BOLD))
        lines.append(Line(safe(result.text, keep_newlines=True)))
        lines.append(Line(""))
    return lines[:-1]


def render_show(
    task: Task, *, result: Result | None, steps: Sequence[Step], width: int, has_price: bool = True
) -> list[Line]:
    lines = [
        Line(f"Task {task.id}: {safe_line(task.name)}", Style.BOLD),
        Line(f"Status:   {_render_task_status(task)}"),
    ]
    if task.after:
        lines.append(Line(f"After:    {', '.join(str(task_id) for task_id in task.after)}"))
    if task.parent_id is not None:
        lines.append(Line(f"From:     task {task.parent_id}"))
    lines.append(Line(f"Origins:  {safe_line(', '.join(task.origins))}"))
    if task.error:
        lines += [Line("Error:", Style.RED), Line(safe(task.error, keep_newlines=True))]
    if task.lack is not None and task.lack.what != task.error:
        lines += [Line("Lacked:", Style.BOLD), Line(safe(task.lack.what, keep_newlines=True))]
    if result is not None:
        lines += [
            Line(""),
            Line("Result:", Style.BOLD),
            Line(safe(result.text, keep_newlines=True)),
        ]
    if result is not None and result.lack:
        lines += [
            Line("It does not answer:", Style.BOLD),
            Line(safe(result.lack, keep_newlines=True)),
        ]
    lines += _render_given(steps)
    if steps:
        lines += [Line(""), Line("Steps:", Style.BOLD), *_render_steps(steps, width, has_price)]
    return lines


_REASONS = {
    "after": "it comes after that task",
    "parent": "it came of that task",
    "near": "it bears on this task",
    "shared": "it bears on this task",
}


def _render_given(steps: Sequence[Step]) -> list[Line]:
    """Which earlier results each try was given, and why."""
    lines = []
    for given in given_results(steps):
        score = f"score {given.score:.2f}, " if given.score is not None else ""
        reason = _REASONS.get(given.reason, safe_line(given.reason))
        whose = f"objective {given.objective_id}, " if given.objective_id is not None else ""
        lines.append(
            Line(f"  try {safe_line(given.try_no)}: {whose}task {given.task_id}, {score}{reason}")
        )
    return [Line(""), Line("Given earlier results:", Style.BOLD), *lines] if lines else []


def _render_task_status(task: Task) -> str:
    failures = (
        f", {task.failures} failed {'try' if task.failures == 1 else 'tries'}"
        if task.failures
        else ""
    )
    lost = (
        f", {task.n_lost} lost {'worker' if task.n_lost == 1 else 'workers'} in a row"
        if task.n_lost
        else ""
    )
    return f"{task.status.value}, rank {task.rank}, try {task.try_no}{failures}{lost}"


def _render_steps(steps: Sequence[Step], width: int, has_price: bool) -> list[Line]:
    key_width = min(max(len(step.key) for step in steps), max(16, width - 64))
    head = f"{pad('KEY', key_width)}  {'KIND':<9} {'STATE':<8} {'TOKENS':>15} {'COST':>9}  MODEL"
    lines = [Line(head, Style.DIM)]
    for step in steps:
        tokens = f"{step.usage.prompt_tokens:,}+{step.usage.completion_tokens:,}"
        cost = f"${step.usage.cost_usd:.4f}" if has_price else "unknown"
        row = (
            f"{pad(step.key, key_width)}  {step.kind:<9} {step.state.value:<8} {tokens:>15} "
            f"{cost:>9}  {safe_line(step.model)}"
        )
        lines.append(Line(row.rstrip() + _render_unconfirmed(step)))
    return lines


def _render_unconfirmed(step: Step) -> str:
    n = step.n_unconfirmed
    return f"  ({n} {'call' if n == 1 else 'calls'} cut off, counted as paid)" if n else ""


def render_closing(
    objective: Objective, counts: Mapping[TaskStatus, int], *, index_trouble: str = ""
) -> list[Line]:
    """The last lines of a run: how it came out, what it cost, and what to type next."""
    lines = [
        Line(f"Objective {objective.id} {_how_it_came_out(objective)}", Style.BOLD),
        Line(
            f"Tasks: {render_counts(counts)}. {render_usage(objective)}. "
            f"{render_duration(objective.active_s)}."
        ),
    ]
    lines += _render_index_trouble(objective, "Results: ", index_trouble)
    if objective.has_report:
        lines.append(Line(f"Read again: babyagi report --objective {objective.id}"))
    going_on = _going_on(objective, counts)
    if going_on:
        lines.append(Line(f"To go on:   {going_on}"))
    return [*lines, Line(REHEARSAL_LINE, Style.YELLOW)] if is_rehearsal(objective) else lines


def _how_it_came_out(objective: Objective) -> str:
    if objective.stop_reason is None:
        return _HOW_IT_STANDS.get(objective.status, objective.status.value)
    detail = f" ({fit(objective.stop_detail, 300)})" if objective.stop_detail else ""
    return f"({objective.stop_reason.value}): {objective.stop_reason.words}{detail}"


def _going_on(objective: Objective, counts: Mapping[TaskStatus, int]) -> str:
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
        case Need.RETRY:
            return f"{found.command} with a dead one of babyagi tasks, then {found.resume}"
    return f"{f'{found.command} {found.value}'.rstrip()}, then {found.resume}"


def _find_next(objective: Objective, counts: Mapping[TaskStatus, int]) -> NextCommand:
    has_dead = bool(counts.get(TaskStatus.DEAD))
    return next_command(objective, has_dead=has_dead, has_report=objective.has_report)
