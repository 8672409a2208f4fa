"""The duty of checking: whether the objective is met, and what is added for the parts that are not
answered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from babyagi import events
from babyagi.agents.check import check_objective, look_up, say_why_not, settle
from babyagi.agents.execution import Excerpt
from babyagi.agents.prompting import say
from babyagi.duties.planning import propose_missing
from babyagi.duties.resources import Resources
from babyagi.errors import FAULTS_OF_THE_TASK
from babyagi.index.context import choose_for_objective
from babyagi.journal import Journal
from babyagi.llm.human import NAME as HUMAN
from babyagi.tasks import (
    CheckedPart,
    DutyClaim,
    Effect,
    Objective,
    Planning,
    Proposal,
    Result,
    Role,
    TaskStatus,
    find_sources,
)
from babyagi.taskstore.lifecycle import SETTLED, may_start
from babyagi.taskstore.nouns import NOTHING_CHECKED, Checked
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import one_line

CHECK_TOKENS = 6000  # of results in the prompt of a check


async def check(resources: Resources, claim: DutyClaim, objective: Objective) -> None:
    """Check whether the objective is met. If not, and no task is left to do, also ask for tasks for
    the missing parts. Commit the judgement and the tasks at once."""
    store = resources.store
    async with resources.journal(claim) as journal:
        checked, reason = await _judge(resources, objective, journal)
    open_parts = (*checked.missing, *checked.unproven)
    proposals, fallback = list[Proposal](), list[Proposal]()
    if open_parts and await _has_no_work_left(resources, objective.id):
        results = await store.results(objective.id)
        sources = find_sources(origin for result in results for origin in result.origins)
        origins = ("model", *sources)
        fallback = [
            Proposal(name=say("answer_part", part=one_line(part)), origins=origins)
            for part in open_parts
        ]
        checked = replace(checked, unread=await _find_unread(store, objective, checked))
        if checked.missing and not checked.unread:
            proposals = await propose_missing(
                resources, objective, journal, missing=checked.missing, sources=sources
            )
    await store.finish_check(
        claim,
        is_met=checked.is_met,
        reason=reason,
        checked=checked,
        proposals=proposals,
        fallback=fallback,
    )


async def _judge(
    resources: Resources, objective: Objective, journal: Journal
) -> tuple[Checked, str]:
    """Return what was found part by part, and why the objective is not met.

    The model is asked twice, the second time to doubt that the objective is met, with what the
    first reply quoted and results that were not in the first prompt whole. Where the two disagree,
    a third call decides.
    """
    asked, granted = objective.spec.asked, objective.spec.tools
    acting = [tool.name for tool in granted if tool.effect is not Effect.READ]
    doers = {f"{kind}:{name}" for name in acting for kind in ("tool", "private")}
    results = await resources.store.results(objective.id)
    # a person's claim needs no proof, and is not verified
    is_person = objective.spec.model_by_role[Role.CREATION] == HUMAN
    look = partial(
        check_objective,
        objective=objective.spec.passage,
        results=() if is_person else results,
        journal=journal,
    )
    verify = partial(look_up, results=results, objective_text=asked, doers=doers)
    show = partial(choose_excerpts, resources.store, objective, results, CHECK_TOKENS)
    new_ids = await _find_unchecked(resources.store, objective.id, results)
    excerpts, left_out = await show(parts=objective.checks.parts, unread=new_ids)
    views: list[Checked] = []
    try:
        reply = await look(excerpts=excerpts)
        if is_person:
            return replace(reply, parts=()), "; ".join(reply.missing)
        views.append(verify(reply))
        unread = _find_cut(excerpts, left_out, results, first=new_ids)
        for path in ("check/doubt", "check/third"):
            seen = [part for found in views for part in found.parts]
            parts = [*objective.checks.parts, *seen]
            excerpts, _ = await show(parts=parts, unread=unread)
            lines = [one for found in views for one in (*found.missing, *found.unproven)]
            contested = [*lines, *reply.contradictions]
            reply = await look(path=path, excerpts=excerpts, contested=contested)
            views.append(verify(reply))
            if found := settle(views):
                break
    except FAULTS_OF_THE_TASK as error:
        found = views[-1] if views else NOTHING_CHECKED
        return replace(found, is_met=False), f"the check could not be made: {error.what}"
    found = found or views[-1]
    return found, "" if found.is_met else say_why_not(found)


async def _find_unchecked(
    store: TaskStore, objective_id: int, results: Sequence[Result]
) -> frozenset[int]:
    """Return the tasks whose results were recorded after the last check; none if there was no
    check."""
    checked = await store.events(
        objective_id, kinds=(events.OBJECTIVE_CHECKED,), from_end=True, limit=1
    )
    return frozenset(
        result.task_id for result in results if checked and result.created_at >= checked[0].at
    )


def _find_cut(
    excerpts: Sequence[Excerpt],
    left_out: Sequence[Result],
    results: Sequence[Result],
    *,
    first: frozenset[int],
) -> frozenset[int]:
    """Return the tasks whose results were shortened or left out: only those of `first` if there are
    any, else all."""
    text_by_id = {result.task_id: result.text for result in results}
    cut = {one.task_id for one in excerpts if one.text != text_by_id[one.task_id]}
    cut |= {result.task_id for result in left_out}
    return frozenset(cut & first or cut)


async def _has_no_work_left(resources: Resources, objective_id: int) -> bool:
    """Return whether no task is left to do, or the last ones brought nothing new."""
    names = await resources.read_names(objective_id)
    if all(name.status in SETTLED for name in names.names()):
        return True
    standing = await resources.store.standing(objective_id)
    return not may_start(
        n_tasks_without_progress=standing.n_tasks_without_progress,
        n_tries_without_answer=standing.n_tries_without_answer,
    )


async def _find_unread(store: TaskStore, objective: Objective, checked: Checked) -> tuple[int, ...]:
    """Return the done tasks whose results the creation agent has not read and the check quoted
    nothing from. With combined planning these are the tasks that brought their plan along; with
    separate planning the creation agent has read every result."""
    if objective.spec.planning is not Planning.COMBINED:
        return ()
    quoted = {part.task_id for part in checked.parts}
    tasks = await store.tasks(objective.id, statuses=(TaskStatus.DONE,))
    finished_at = {task.id: task.finished_at for task in tasks if task.id not in quoted}
    return tuple(
        result.task_id
        for result in await store.results(objective.id)
        # a task is finished when it has been planned from: here, in the transaction of its result
        if finished_at.get(result.task_id) == result.created_at
    )


# -- the results in the prompt of a check or a report
# --------------------------------------------------------------------------------------------------


async def choose_excerpts(
    store: TaskStore,
    objective: Objective,
    results: Sequence[Result],
    budget_tokens: int,
    *,
    parts: Sequence[CheckedPart],
    unread: Collection[int] = (),
) -> tuple[list[Excerpt], Sequence[Result]]:
    """Return the excerpts of results for the prompt of a check or a report, and the results of
    which nothing fitted into it.

    Args:
        parts: the parts of the objective that were found answered; what was quoted for them is
            shown.
        unread: the tasks of results that no check was shown whole.
    """
    built_on = {
        task_id
        for task in await store.tasks(objective.id)
        for task_id in (task.parent_id, *task.after)
    }
    leaves = [result.task_id for result in results if result.task_id not in built_on]
    chosen, left_out = choose_for_objective(
        results,
        objective.spec.asked,
        budget_tokens=budget_tokens,
        leaf_ids=leaves,
        proven=_quotes_by_task(parts),
        unread=unread,
    )
    excerpts = [
        Excerpt(
            task_id=one.result.task_id,
            task_name=one.result.task_name,
            text=one.text,
            sources=find_sources(one.result.origins),
        )
        for one in chosen
    ]
    return excerpts, left_out


def _quotes_by_task(parts: Sequence[CheckedPart]) -> Mapping[int, str]:
    """Return what was quoted for these parts of the objective, by the tasks from whose results it
    was quoted."""
    quotes: dict[int, str] = {}
    for part in parts:
        quotes[part.task_id] = f"{quotes.get(part.task_id, '')}\n{part.quote}".strip()
    return quotes
