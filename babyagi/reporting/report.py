"""The report of an objective and its page, composed from the task store at any moment. The report
contains the model's text if there is one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from babyagi import events
from babyagi.agents.report import Written, read_answer
from babyagi.inbox import asking_task, describe
from babyagi.index.indexer import find_trouble
from babyagi.reporting.sources import (
    NO_SOURCES,
    Made,
    Sources,
    find_artifacts,
    render_artifacts,
    render_list,
    render_sources,
    trace_sources,
)
from babyagi.reporting.why import describe_outage, name_tasks, say_going_on, say_stop
from babyagi.runtime.offload import Offload, run_inline
from babyagi.tasks import (
    Duty,
    Event,
    Objective,
    ObjectiveStatus,
    Result,
    Role,
    StopReason,
    Task,
    TaskStatus,
    Worker,
)
from babyagi.taskstore.lifecycle import duty_owner
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import clean, one_line, say_count, say_duration, shorten

REHEARSAL_NOTICE = (
    "REHEARSAL: no language model was asked. The text below was put together from lines of "
    "the documents."
)

MAX_QUOTED_CHARS = 4000
MAX_EARLIER_CHARS = 800  # for a result that others were built on
MAX_RESULTS_CHARS = 120_000  # for all results, where no model wrote the answer
MAX_LINE_CHARS = 300
MAX_DEAD = 20
MAX_NAMED = 10
MAX_LISTED = 5
MAX_SOURCES_LISTED = 10

COMPLETE = (StopReason.FINISHED, StopReason.OBJECTIVE_MET)
OPEN = (TaskStatus.QUEUED, TaskStatus.WAITING, TaskStatus.RUNNING)
FENCE = re.compile(r" {0,3}(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")
BOUNDS_THAT_BIT = (events.TASK_PROPOSAL_DROPPED, events.CONTEXT_CUT, events.PLAN_FAILED)
MAX_BOUNDS_SAID = 20
MAX_EVENTS_DRAWN = 30_000  # the newest


async def compose_report(
    store: TaskStore, objective: Objective, written: Written, *, offload: Offload = run_inline
) -> str:
    """Return the whole report as Markdown, with the costs so far."""
    objective = await store.objective(objective.id)
    tasks = await store.tasks(objective.id)
    results = await store.results(objective.id)
    asked = [(asking_task(step), describe(step)) for step in await store.inbox(objective.id)]
    bit = await store.events(
        objective.id, kinds=BOUNDS_THAT_BIT, from_end=True, limit=MAX_BOUNDS_SAID
    )
    left_out = {result.task_id for result in written.left_out}
    read = [result for result in results if result.task_id not in left_out]
    outage = (await store.standing(objective.id)).outage
    aside = ReportNotes(
        asked=asked,
        outage=describe_outage(outage.data) if outage is not None else "",
        bounds=list(map(_say_bound, bit)),
        index_trouble=await find_trouble(store, objective.id),
        sources=await trace_sources(store, read),
        artifacts=await find_artifacts(store, results),
    )
    return await offload(
        lambda: render_report(objective, written=written, tasks=tasks, results=results, aside=aside)
    )


async def load_report(
    store: TaskStore, objective: Objective, *, offload: Offload = run_inline
) -> str:
    """Return the stored report as Markdown. If none is stored, compose one from the text that the
    model has written so far, or from the results alone."""
    markdown = await store.report(objective.id)
    if markdown is not None:
        return markdown
    has_ended = objective.status is ObjectiveStatus.ENDED
    why = "the objective has not ended"
    if objective.stop_reason is StopReason.CANCELLED:
        why = "the objective was cancelled"
    elif has_ended:
        why = "the model is asked for it now, or at the next `babyagi resume`"
    owner = duty_owner(Duty.REPORT, {"report_no": objective.report_no})
    steps = await store.steps(objective.id, owner=owner) if has_ended else []
    text = read_answer(steps)
    return await compose_report(store, objective, Written(text=text, why_not=why), offload=offload)


async def write_without_model(
    store: TaskStore, objective_id: int, *, writer: Worker, lease_s: float
) -> None:
    """Write the missing report of a cancelled objective from its results alone, unless a worker is
    still serving the objective and will write it. `writer` is registered as a worker, with a lease
    of `lease_s` seconds, until the report is written."""
    await store.register_worker(writer, lease_s=lease_s)
    try:
        await store.join_objective(writer.id, objective_id)
        claim = await store.claim_duty(objective_id, writer.id, Duty.REPORT)
        if claim is not None:
            objective = await store.objective(objective_id)
            written = Written(why_not="the objective was cancelled")
            await store.record_report(
                claim, markdown=await compose_report(store, objective, written)
            )
    finally:
        await store.remove_worker(writer.id)


async def load_page(
    store: TaskStore,
    objective: Objective,
    markdown: str,
    *,
    now: datetime,
    offload: Offload = run_inline,
) -> str:
    """Return the page of the objective: the report, the tree of tasks, and the timeline."""
    from babyagi.pages.report import TIMELINE_KINDS, find_bars, render_report_page

    found = await store.events(
        objective.id, kinds=TIMELINE_KINDS, from_end=True, limit=MAX_EVENTS_DRAWN
    )
    tasks, results = await store.tasks(objective.id), await store.results(objective.id)
    made = await find_artifacts(store, results)
    return await offload(
        lambda: render_report_page(
            objective,
            markdown=markdown,
            tasks=tasks,
            results=results,
            bars=find_bars(found, now=now),
            made=made,
        )
    )


def _say_bound(event: Event) -> str:
    match event.kind:
        case events.CONTEXT_CUT:
            cut = ", ".join(map(str, event.data.get("cut", ())))
            return f"task {event.task_id} was shown only parts of results {cut}"
        case events.PLAN_FAILED:
            tasks = name_tasks(event.data["task_ids"])
            return f"nothing could be planned from {tasks}: {event.data['reason']}"
        case _:
            return f"this proposed task was left out: {event.data.get('name', '')}"


# -- the Markdown of a report
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNotes:
    """What a person should know besides the answer.

    Attributes:
        asked: for each question to the person, the id of the task that asks, and the question.
        outage: why the model did not answer when it was last asked; "" if it did.
        bounds: a phrase for each thing that was left out of a prompt or a plan because of a maximum
            size or number.
        index_trouble: why results do not reach the index; "" if they do.
        sources: the sources of the results that the report was written from.
        artifacts: the files that came with all results.
    """

    asked: Sequence[tuple[int, str]] = ()
    outage: str = ""
    bounds: Sequence[str] = ()
    index_trouble: str = ""
    sources: Sources = NO_SOURCES
    artifacts: Sequence[Made] = ()


def render_report(
    objective: Objective,
    *,
    written: Written,
    tasks: Sequence[Task],
    results: Sequence[Result],
    aside: ReportNotes | None = None,
) -> str:
    """Return the whole report as Markdown: the answer, what is missing from it, how the objective
    ended.

    Args:
        written: the model's part; if it has no text, the results are shown.
        tasks: all tasks of the objective, in list order.
        results: all results, in the order in which they were recorded.
    """
    aside = aside or ReportNotes()
    is_rehearsal = objective.spec.model_by_role[Role.REPORT] == "rehearsal"
    parts = [
        f"# Report: {_one_line(objective.spec.text)}",
        "\n".join(f"* Asked further: {_one_line(one)}" for one in objective.spec.further),
        f"> {REHEARSAL_NOTICE}" if is_rehearsal else "",
        _render_standing(objective, tasks, asked=aside.asked),
        _close_fence(written.text)
        or _render_results(results, tasks, written.why_not, objective_id=objective.id),
        _render_missing(objective),
        _render_dead(tasks),
        _render_asked(objective, aside.asked),
        _render_left_out(written.left_out) if written.text else "",
        render_sources(
            aside.sources,
            written.text,
            most=MAX_SOURCES_LISTED,
            more=f"`babyagi report --json --objective {objective.id}` lists them",
        ),
        render_artifacts(aside.artifacts, objective_id=objective.id, most=MAX_SOURCES_LISTED),
        "---",
        _render_facts(objective, tasks, aside=aside),
        render_list(
            "## Left out of prompts and plans", list(map(_one_line, aside.bounds)), MAX_NAMED
        ),
        _render_tasks("Not done", tasks, OPEN, objective),
        _render_tasks("Cancelled", tasks, (TaskStatus.CANCELLED,), objective),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


# -- before the answer: whether it is complete
# --------------------------------------------------------------------------------------------------


def _render_standing(
    objective: Objective, tasks: Sequence[Task], *, asked: Sequence[tuple[int, str]]
) -> str:
    """Return a line that says why the answer is not complete, or what else is left undone; "" if
    nothing is."""
    reason = objective.stop_reason
    if reason is None:
        return (
            f"> This objective has not ended: it is {objective.status}. This is what there is so "
            f"far; `babyagi resume --objective {objective.id}` continues it."
        )
    n_dead = sum(task.status is TaskStatus.DEAD for task in tasks)
    n_open = sum(task.status in OPEN for task in tasks)
    counted = [
        f"{say_count(n_open, 'task')} not done" if n_open else "",
        f"{say_count(n_dead, 'task')} given up" if n_dead else "",
        f"{say_count(len(asked), 'question')} waiting for a person" if asked else "",
    ]
    left = ", ".join(part for part in counted if part)
    if reason in COMPLETE:
        return f"> {left}; see below the answer." if left else ""
    is_unchecked = reason is StopReason.UNMET and not objective.checks.missing
    head = "Not confirmed" if is_unchecked else "Not complete"
    return f"> **{head}:** {say_stop(objective)}{f' ({left})' if left else ''}."


# -- the answer: from the model, or the results themselves
# --------------------------------------------------------------------------------------------------


def _close_fence(text: str) -> str:
    """Return the text with an unclosed code block closed, so that what follows is not code."""
    fence = ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if mark is None:
            continue
        if not fence:
            fence = mark["mark"]
        elif mark["mark"].startswith(fence) and not mark["info"].strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _render_results(
    results: Sequence[Result], tasks: Sequence[Task], why: str, *, objective_id: int
) -> str:
    """Return the results as Markdown, up to about `MAX_RESULTS_CHARS`: first those that no other
    task was built on, then, cut shorter, those that led to them."""
    if not results:
        return f"There are no results ({why})."
    built_on = {task_id for task in tasks for task_id in (task.parent_id, *task.after)}
    final = [result for result in results if result.task_id not in built_on]
    earlier = [result for result in results if result.task_id in built_on]
    blocks, room = list[str](), MAX_RESULTS_CHARS
    for n, result in enumerate([*final, *earlier]):
        if final and n == len(final):
            blocks.append("**What led to this:**")
        is_last = n < len(final) or not final
        blocks.append(_render_result(result, MAX_QUOTED_CHARS if is_last else MAX_EARLIER_CHARS))
        room -= len(blocks[-1])
        if room < 0 and n + 1 < len(results):
            left = say_count(len(results) - n - 1, "more result")
            blocks.append(
                f"**{left}: `babyagi show results --objective {objective_id}` lists all.**"
            )
            break
    said = f"No summary was written ({why}); these are the results as they stand."
    return "\n\n".join([said, *blocks])


def _render_result(result: Result, max_chars: int) -> str:
    cut = result.text if len(result.text) <= max_chars else result.text[:max_chars] + " …"
    quoted = "\n".join(f"> {line}" for line in _close_fence(clean(cut)).splitlines())
    return f"### Task {result.task_id}: {_one_line(result.task_name)}\n\n{quoted}"


# -- after the answer: what is missing
# --------------------------------------------------------------------------------------------------


def _render_missing(objective: Objective) -> str:
    if objective.stop_reason is not StopReason.UNMET:
        return ""
    missing = objective.checks.missing
    head = "These parts of the objective are not answered" if missing else "Why it is not confirmed"
    parts = [_one_line(part) for part in missing or (objective.stop_detail,) if part]
    return render_list(f"**{head}:**", parts, len(parts))


def _render_dead(tasks: Sequence[Task]) -> str:
    dead = [
        f"task {task.id}: {_one_line(task.name)}: {_one_line(task.error)}"
        for task in tasks
        if task.status is TaskStatus.DEAD
    ]
    return render_list("**These tasks failed and were given up:**", dead, MAX_DEAD)


def _render_asked(objective: Objective, asked: Sequence[tuple[int, str]]) -> str:
    lines = [f"task {task_id}: {_one_line(text)}" for task_id, text in asked]
    resume = f"`babyagi resume --objective {objective.id}`"
    how = f"\n\n`babyagi inbox` shows how to answer; after that {resume} continues it."
    listed = render_list("**These questions wait for a person:**", lines, len(lines))
    return listed + how if listed else ""


def _render_left_out(left_out: Sequence[Result]) -> str:
    lines = [f"task {result.task_id}: {_one_line(result.task_name)}" for result in left_out]
    head = (
        "**These results did not fit into the prompt of this report, which was written without "
        "them:**"
    )
    return render_list(head, lines, MAX_NAMED)


# -- how it ended
# --------------------------------------------------------------------------------------------------


def _render_facts(objective: Objective, tasks: Sequence[Task], *, aside: ReportNotes) -> str:
    usage, limits = objective.usage, objective.spec.limits
    is_said = objective.stop_reason is StopReason.UNMET  # the list of missing parts says it
    detail = (
        f" ({_one_line(objective.stop_detail)})" if objective.stop_detail and not is_said else ""
    )
    cost_limit = f" of ${limits.max_cost_usd:g}" if limits.max_cost_usd else ""
    here = f"--objective {objective.id}"
    lines = [
        f"* Stopped: {objective.stop_reason}: {say_stop(objective)}{detail}"
        if objective.stop_reason
        else "",
        f"* Tasks: {_render_counts(tasks)}",
        f"* Cost: {objective.spent}{cost_limit}; {say_count(usage.calls, 'model call')}, "
        f"{usage.prompt_tokens:,} tokens in and {usage.completion_tokens:,} out",
        f"* Time: {say_duration(objective.active_s)}. Models: {objective.spec.models}",
        f"* Model: it did not answer when it was last asked: {_one_line(aside.outage)}; "
        "`babyagi doctor` checks it"
        if aside.outage
        else "",
        f"* Result store: results did not get into it: {_one_line(aside.index_trouble)}. No result "
        f"is lost; `babyagi store rebuild {here}` fills it once it works again"
        if aside.index_trouble
        else "",
    ]
    has_dead = any(task.status is TaskStatus.DEAD for task in tasks)
    how = say_going_on(objective, has_dead=has_dead, has_report=True, mark="`")
    lines += [f"* To go on: {how}"] if how else []
    lines.append(
        "* To look: `babyagi tasks`, `babyagi show TASK`, `babyagi show results`, each with "
        f"`{here}`"
    )
    return "\n".join(["## How it ended", "", *(line for line in lines if line)])


def _render_counts(tasks: Sequence[Task]) -> str:
    counted = [
        (len([task for task in tasks if task.status in statuses]), words)
        for statuses, words in (
            ((TaskStatus.DONE, TaskStatus.RECORDED), "done"),
            ((TaskStatus.DEAD,), "given up"),
            (OPEN, "not done"),
            ((TaskStatus.CANCELLED,), "cancelled"),
        )
    ]
    return ", ".join(f"{n} {words}" for n, words in counted if n) or "none"


def _render_tasks(
    title: str, tasks: Sequence[Task], statuses: Sequence[TaskStatus], objective: Objective
) -> str:
    """Return a section with this title that lists the first few tasks with these statuses by name;
    "" if there are none."""
    lines = [f"task {one.id}: {_one_line(one.name)}" for one in tasks if one.status in statuses]
    hint = f"; `babyagi tasks --objective {objective.id}` lists them"
    return render_list(f"## {title} ({len(lines)})", lines, MAX_LISTED, hint)


def _one_line(text: str) -> str:
    return shorten(one_line(clean(text)), MAX_LINE_CHARS)
