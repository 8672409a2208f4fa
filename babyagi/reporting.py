"""A report from what the task store holds, with the model's text in it where there is one; it can
be put together at any moment."""

from __future__ import annotations

from babyagi import events
from babyagi.agents.report import Aside, Written, render_report
from babyagi.inbox import describe
from babyagi.index.indexer import find_trouble
from babyagi.tasks import Event, Objective, ObjectiveStatus
from babyagi.taskstore.port import TaskStore

BOUNDS_THAT_BIT = (events.TASK_PROPOSAL_DROPPED, events.CONTEXT_CUT, events.PLAN_FAILED)
MAX_BOUNDS_SAID = 20


async def compose_report(store: TaskStore, objective: Objective, written: Written) -> str:
    """Return the whole report as Markdown."""
    tasks = await store.tasks(objective.id)
    results = await store.results(objective.id)
    asked = [(step.id, describe(step)) for step in await store.inbox(objective.id)]
    bounds = [
        _say_bound(event)
        for event in await store.events_of(
            objective.id, kinds=BOUNDS_THAT_BIT, limit=MAX_BOUNDS_SAID
        )
    ]
    aside = Aside(asked=asked, bounds=bounds, index_trouble=await find_trouble(store, objective.id))
    return render_report(objective, written=written, tasks=tasks, results=results, aside=aside)


async def load_report(store: TaskStore, objective: Objective) -> str:
    """Return the report as it was written, else one from the results alone, as Markdown."""
    markdown = await store.report(objective.id)
    if markdown is not None:
        return markdown
    has_ended = objective.status is ObjectiveStatus.ENDED
    why = (
        "the model is asked for it now, or at the next `babyagi resume`"
        if has_ended
        else "the objective has not ended"
    )
    return await compose_report(store, objective, Written(why_not=why))


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
