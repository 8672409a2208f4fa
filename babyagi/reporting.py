"""The report of an objective and its page, made from the task store at any moment. The report
contains the model's text when there is one."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from babyagi import events
from babyagi.agents.report import ReportNotes, Written, read_answer, render_report
from babyagi.artifacts import Made, find_artifacts
from babyagi.inbox import describe
from babyagi.index.indexer import find_trouble
from babyagi.offload import Offload, run_inline
from babyagi.sources import Sources, trace_sources
from babyagi.tasks import Duty, Event, Objective, ObjectiveStatus, StopReason, Worker
from babyagi.taskstore.lifecycle import duty_owner
from babyagi.taskstore.port import TaskStore

if TYPE_CHECKING:
    from babyagi.pages.report import Pictured

BOUNDS_THAT_BIT = (events.TASK_PROPOSAL_DROPPED, events.CONTEXT_CUT, events.PLAN_FAILED)
MAX_BOUNDS_SAID = 20
MAX_EVENTS_DRAWN = 30_000  # the newest


async def compose_report(
    store: TaskStore, objective: Objective, written: Written, *, offload: Offload = run_inline
) -> str:
    """Return the whole report as Markdown, with the costs up to now."""
    objective = await store.objective(objective.id)
    tasks = await store.tasks(objective.id)
    results = await store.results(objective.id)
    asked = [(step.id, describe(step)) for step in await store.inbox(objective.id)]
    bounds = [
        _say_bound(event)
        for event in await store.events_of(
            objective.id, kinds=BOUNDS_THAT_BIT, limit=MAX_BOUNDS_SAID
        )
    ]
    left_out = {result.task_id for result in written.left_out}
    aside = ReportNotes(
        asked=asked,
        bounds=bounds,
        index_trouble=await find_trouble(store, objective.id),
        sources=await trace_sources(
            store, [result for result in results if result.task_id not in left_out]
        ),
        artifacts=await find_artifacts(store, results),
    )
    return await offload(
        lambda: render_report(objective, written=written, tasks=tasks, results=results, aside=aside)
    )


async def load_report(
    store: TaskStore, objective: Objective, *, offload: Offload = run_inline
) -> str:
    """Return the report as it was written, or else one from what the model has written of it, or
    from the results alone, as Markdown."""
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
    text = read_answer(await store.steps(objective.id, owner=owner)) if has_ended else ""
    return await compose_report(store, objective, Written(text=text, why_not=why), offload=offload)


async def load_sources(store: TaskStore, objective: Objective) -> Sources:
    """Return what the results of the objective were made from."""
    return await trace_sources(store, await store.results(objective.id))


async def load_artifacts(store: TaskStore, objective: Objective) -> list[Made]:
    """Return the files that came with the results of the objective."""
    return await find_artifacts(store, await store.results(objective.id))


async def write_without_model(
    store: TaskStore, objective_id: int, *, writer: Worker, lease_s: float
) -> None:
    """Write the owed report of an ended objective from its results alone, unless a worker still
    works on the objective and will write one."""
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
    from babyagi.pages.pictures import KINDS, find_bars
    from babyagi.pages.report import ReportPage, render_report_page

    found = await store.events_of(objective.id, kinds=KINDS, limit=MAX_EVENTS_DRAWN)
    tasks, results = await store.tasks(objective.id), await store.results(objective.id)
    pictured = await load_pictures(store, objective)

    def render() -> str:
        return render_report_page(
            ReportPage(
                objective=objective,
                markdown=markdown,
                tasks=tasks,
                results=results,
                bars=find_bars(found, now=now),
                now=now,
                pictured=pictured,
            )
        )

    return await offload(render)


async def load_pictures(store: TaskStore, objective: Objective) -> list[Pictured]:
    """Return the files that came with the results of the objective, for a page."""
    from babyagi.pages.report import Pictured

    return [
        Pictured(task_id=one.task_id, artifact=one.artifact)
        for one in await load_artifacts(store, objective)
    ]


def _say_bound(event: Event) -> str:
    match event.kind:
        case events.CONTEXT_CUT:
            return (
                f"task {event.task_id} was shown only parts of results "
                f"{', '.join(map(str, event.data.get('cut', ())))}"
            )
        case events.PLAN_FAILED:
            return (
                "nothing could be planned from tasks "
                f"{', '.join(map(str, event.data['task_ids']))}: {event.data['reason']}"
            )
        case _:
            return f"this proposed task was left out: {event.data.get('name', '')}"
