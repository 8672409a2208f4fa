"""The inputs of a try: what the prompt of a task is made from.

They are chosen once and recorded in the journal, as one JSON object that only this file writes and
reads. A try that goes on after a kill reads them, and chooses nothing again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from babyagi.agents.execution import Context, Excerpt
from babyagi.agents.prompting import say
from babyagi.duties.resources import Resources, context_tokens, embedder
from babyagi.index.context import BYTES_PER_TOKEN, Chosen, choose_context
from babyagi.journal import Journal
from babyagi.memory.kinds import recollect
from babyagi.react.protocols.choice import AUTO, choose_protocol, step_down
from babyagi.tasks import (
    FolderTexts,
    Objective,
    Passage,
    Planning,
    Role,
    Task,
    TaskName,
    TaskStatus,
    find_sources,
    is_private,
)
from babyagi.taskstore.sql.store import TaskStore
from babyagi.tools.recall import RECALL

logger = logging.getLogger(__name__)

MAX_SILENT_TRIES = 2  # tries without a call, after which a model is asked for calls another way


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What a try begins with.

    Attributes:
        shown: the ids of the objective's tasks whose results are in the prompt.
        may_recall: whether to offer the tool that searches earlier results.
        holds_folder: whether the prompt holds the whole folder of the objective.
    """

    context: Context
    shown: tuple[int, ...]
    protocol: str
    may_recall: bool
    holds_folder: bool


async def choose(
    resources: Resources, task: Task, objective: Objective, journal: Journal, *, protocol: str
) -> Inputs:
    """Return the inputs of a try: those that an earlier claim of it recorded, else choose them.
    `protocol`: how the model is asked, `AUTO` for a choice."""
    kept = await journal.inputs(partial(_choose, resources, task, objective, journal, protocol))
    return Inputs(
        context=await _read_context(resources, objective, kept),
        shown=_read_shown(kept),
        protocol=kept["protocol"],
        may_recall=bool(kept.get("may_recall")),
        holds_folder=bool(kept.get("holds_folder")),
    )


async def find_shown(store: TaskStore, task: Task) -> tuple[int, ...]:
    """Return the ids of the tasks whose results were in the prompt of the task's last try."""
    steps = await store.steps(task.objective_id, owner=f"task:{task.id}")
    kept = next((step.output for step in steps if step.key == f"{task.try_no}/inputs"), None)
    return _read_shown(json.loads(kept or "{}"))


async def find_read(store: TaskStore, task: Task) -> tuple[str, ...]:
    """Return the origins of everything that the tries of a task read."""
    steps = await store.steps(task.objective_id, owner=f"task:{task.id}")
    return tuple(origin for step in steps for origin in step.origins)


# -- choosing
# --------------------------------------------------------------------------------------------------


async def _choose(
    resources: Resources, task: Task, objective: Objective, journal: Journal, protocol: str
) -> dict[str, Any]:
    """Return what the try begins with, as JSON for the journal."""
    is_combined = objective.spec.planning is Planning.COMBINED
    names = await resources.read_names(objective.id) if is_combined else None
    chosen, has_withheld = await _choose_excerpts(resources, task, objective, journal)
    known = (
        names.choose(
            [objective.spec.asked, task.name, *(entry.text for entry in chosen)],
            context_tokens=context_tokens(journal, Role.EXECUTION),
            without={task.id},
        )
        if names is not None
        else []
    )
    folder = await _find_texts_for(resources, task, objective)
    gone = await _find_gone(resources.store, task)
    may_recall = has_withheld or await _may_recall(resources.store, task, objective, chosen)
    return {
        "today": resources.clock().date().isoformat(),
        "excerpts": [_write_chosen(entry) for entry in chosen],
        "gone": [line for line, _ in gone],
        "gone_sources": find_sources(origin for _, origins in gone for origin in origins),
        "last_try": _say_last_try(task),
        "is_last_try": task.failures + 1 >= resources.bounds.max_failures,
        "last_sources": await journal.earlier_sources() if task.try_no > 1 else [],
        "known": [
            [name.id, name.name, name.status, name.is_lacking, name.origins] for name in known
        ],
        "prompt_version": objective.spec.prompt_version,
        "tools": [tool.name for tool in resources.tools],
        "may_recall": may_recall,
        "protocol": await _choose_protocol(resources, task, journal, protocol),
        "memory": await _recollect(resources, task),
        "texts": [[one.text, one.origin] for one in folder.passages],
        "holds_folder": folder.is_whole,
    }


async def _choose_excerpts(
    resources: Resources, task: Task, objective: Objective, journal: Journal
) -> tuple[list[Chosen], bool]:
    """Return the results for the prompt, and whether private ones were withheld: a task whose calls
    can leave this machine is shown those alone that it follows, and may recall the others."""
    chosen, degraded = await choose_context(
        task,
        search=resources.search,
        embed=embedder(journal, "context"),
        budget_tokens=resources.bounds.context_tokens,
        lacks=(*task.lack.before, task.lack.what) if task.lack is not None else (),
        shown_before=task.lack.shown if task.lack is not None else (),
    )
    n_found = len(chosen)
    if _has_sink(resources):
        chosen = [
            one
            for one in chosen
            if one.reason in ("after", "parent", "before")
            or not any(map(is_private, one.result.origins))
        ]
    if degraded:
        logger.info("task %d: earlier results were %s", task.id, degraded)
    cut = [
        entry.result.task_id
        for entry in chosen
        if not entry.is_whole and entry.reason in ("after", "parent", "marks")
    ]
    if cut:
        await resources.note_cut(objective.id, task.id, cut)
    return chosen, len(chosen) < n_found


def _has_sink(resources: Resources) -> bool:
    return any(tool.sink is not None for tool in resources.tools)


async def _find_texts_for(resources: Resources, task: Task, objective: Objective) -> FolderTexts:
    """Return the folder's texts for the task that answers the objective itself; none for any other
    task, and none if its calls can leave this machine: it reads what it needs then."""
    bounds = resources.bounds
    if bounds.find_texts is None or not task.is_answer or _has_sink(resources):
        return FolderTexts()
    return await bounds.find_texts(objective.spec.asked, bounds.context_tokens * BYTES_PER_TOKEN)


async def _find_gone(store: TaskStore, task: Task) -> list[tuple[str, Sequence[str]]]:
    """Return a line for each task that this one comes after and that was given up or cancelled, and
    the origins of the line: those of the task's name and of all that its tries read."""
    before = [await store.task(task.objective_id, task_id) for task_id in task.after]
    gone = [one for one in before if one.status in (TaskStatus.DEAD, TaskStatus.CANCELLED)]
    return [
        (
            f"Task {one.id}: {one.name}: {one.error or one.status.value}",
            (*one.origins, *await find_read(store, one)),
        )
        for one in gone
    ]


def _say_last_try(task: Task) -> str:
    """Return what the task's last try found and which information it lacked, or its error, as a
    text for the model; '' if there was no earlier try."""
    if task.lack is None:
        return task.error if task.try_no > 1 else ""
    lacked = "; ".join(dict.fromkeys((*task.lack.before, task.lack.what)))
    return "\n".join(filter(None, [task.lack.found, say("still_needed", what=lacked)]))


async def _may_recall(
    store: TaskStore, task: Task, objective: Objective, chosen: Sequence[Chosen]
) -> bool:
    """Return whether to offer the tool that searches earlier results: if there are any results, and
    either a person granted the tool, or a try lacked information, or a result in the prompt is
    cut."""
    is_granted = any(grant.name == RECALL for grant in objective.spec.tools)
    if is_granted or task.lack is not None or any(not entry.is_whole for entry in chosen):
        return bool(await store.result_ids(objective.id))
    return False


async def _choose_protocol(
    resources: Resources, task: Task, journal: Journal, protocol: str
) -> str:
    """Return the protocol for the next try: one step down if the model has tools and has ended the
    task twice without calling any of them."""
    known = journal.abilities(Role.EXECUTION)
    if protocol != AUTO or known is None or not resources.tools:
        return protocol
    steps = await resources.store.steps(task.objective_id, owner=f"task:{task.id}")
    has_called = any("/tool/" in step.key for step in steps)
    is_silent = task.try_no > MAX_SILENT_TRIES and not has_called
    return step_down(choose_protocol(known)) if is_silent else AUTO


async def _recollect(resources: Resources, task: Task) -> list[list[Any]]:
    """Return the passages that the agent's memory shows with the task, each as label, text, origin
    and sources; none if the agent has no memory."""
    if (memory := resources.bounds.memory) is None:
        return []
    found = recollect(memory.kind, await memory.log.read(), task.name)
    return [[label, passage.text, passage.origin, passage.sources] for label, passage in found]


def _write_chosen(entry: Chosen) -> dict[str, Any]:
    """Return a chosen result as JSON. For a result of another objective it holds the task's name
    and the sources too, because that objective may be deleted."""
    written = {
        "task_id": entry.result.task_id,
        "text": entry.text,
        "score": entry.score,
        "reason": entry.reason,
    }
    if entry.reason == "shared":
        written |= {"objective_id": entry.result.objective_id, "task_name": entry.result.task_name}
        written["sources"] = find_sources(entry.result.origins)
    return written


# -- reading
# --------------------------------------------------------------------------------------------------


async def _read_context(
    resources: Resources, objective: Objective, kept: Mapping[str, Any]
) -> Context:
    """Return the context of a try from its recorded inputs, with the names that they refer to."""
    return Context(
        objective=objective.spec.passage,
        excerpts=await _load_excerpts(resources, kept["excerpts"]),
        today=date.fromisoformat(kept["today"]),
        gone=tuple(kept.get("gone", ())),
        gone_sources=tuple(kept.get("gone_sources", ())),
        last_try=kept.get("last_try", ""),
        is_last_try=kept.get("is_last_try", False),
        last_sources=tuple(kept.get("last_sources", ())),
        planning=objective.spec.planning,
        known=tuple(_read_name(entry) for entry in kept.get("known", ())),
        max_new_tasks=resources.bounds.max_new_tasks,
        texts=tuple(Passage(text=text, origin=origin) for text, origin in kept.get("texts", ())),
        memory=tuple(
            (label, Passage(text=text, origin=origin, sources=tuple(sources)))
            for label, text, origin, sources in kept.get("memory", ())
        ),
    )


async def _load_excerpts(
    resources: Resources, chosen: Sequence[Mapping[str, Any]]
) -> tuple[Excerpt, ...]:
    own = await resources.search.results(
        [entry["task_id"] for entry in chosen if "task_name" not in entry]
    )
    names = {result.task_id: result.task_name for result in own}
    sources = {result.task_id: find_sources(result.origins) for result in own}
    return tuple(
        Excerpt(
            task_id=entry["task_id"],
            task_name=entry.get("task_name") or names.get(entry["task_id"], ""),
            text=entry["text"],
            objective_id=entry.get("objective_id"),
            sources=tuple(entry["sources"])
            if "sources" in entry
            else sources.get(entry["task_id"], ()),
        )
        for entry in chosen
    )


def _read_name(entry: Sequence[Any]) -> TaskName:
    origins = tuple(entry[4]) if len(entry) > 4 else ("model",)
    return TaskName(
        id=entry[0],
        name=entry[1],
        status=TaskStatus(entry[2]),
        is_lacking=entry[3],
        origins=origins,
    )


def _read_shown(kept: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the ids of the objective's own tasks whose results are in the prompt."""
    return tuple(
        entry["task_id"] for entry in kept.get("excerpts", ()) if "objective_id" not in entry
    )
