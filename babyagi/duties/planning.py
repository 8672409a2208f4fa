"""The duty of planning: which new tasks the outcomes of the last tasks make necessary."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from babyagi.agents.creation import CreationReply, Finished, create_tasks
from babyagi.duties.inputs import find_read, find_shown
from babyagi.duties.resources import N_NAMES, Resources, context_tokens, embedder
from babyagi.errors import FAULTS_OF_THE_TASK
from babyagi.index.context import BYTES_PER_TOKEN
from babyagi.index.excerpts import cut_result
from babyagi.journal import Journal
from babyagi.llm.prompt import estimate_tokens
from babyagi.tasks import (
    DutyClaim,
    Objective,
    Passage,
    Proposal,
    Result,
    Role,
    Task,
    TaskStatus,
    Unanswered,
)
from babyagi.taskstore.names import name_key
from babyagi.taskstore.nouns import Plannable, Planned

logger = logging.getLogger(__name__)

N_COMPARED = 20  # finished tasks whose results a new one is compared with
MAX_PLANNED = 32  # recorded tasks that are planned from at once, if their results are short enough
PLAN_TOKENS = 6000  # of results in one planning; the first is whole whatever its size
N_NEAREST = 4  # results that the creation agent is shown with missing parts


async def plan(resources: Resources, claim: DutyClaim, objective: Objective) -> None:
    """Ask the creation agent once which new tasks the outcomes of the last tasks make necessary,
    and commit the plan."""
    async with resources.journal(claim) as journal:
        seen, task_ids = await _choose_tasks(resources, objective, journal)
        recorded = {task.id: task for task in seen.recorded}
        results = {result.task_id: result for result in seen.results}
        tasks = [recorded[task_id] for task_id in task_ids if task_id in recorded]
        # an earlier claim has chosen these, and they may stand further back in the list by now
        others = set(task_ids) - set(list(recorded)[:MAX_PLANNED])
        if others:
            read = await resources.store.results(objective.id, task_ids=sorted(others))
            results |= {result.task_id: result for result in read}
        finished = await _show(resources, tasks, results, max_tokens=PLAN_TOKENS)
        made = await _make_plan(resources, finished, objective, journal, seen)
        await journal.commit(
            lambda first: resources.store.record_plan(
                claim, task_ids=task_ids, plan=made, first=first
            )
        )
    withdrawn = {one.task_id for one in made.unanswered}
    resources.search.keep(
        replace(results[task.id], is_planned=True)
        for task in tasks
        if task.id in results and task.id not in withdrawn
    )


async def give_up(
    resources: Resources, claim: DutyClaim, objective: Objective, *, why: str
) -> None:
    """Commit, without a model, that no tasks come from the tasks that would be planned from."""
    async with resources.journal(claim) as journal:
        _, task_ids = await _choose_tasks(resources, objective, journal)
        await journal.commit(
            lambda first: resources.store.record_plan(
                claim, task_ids=task_ids, plan=Planned(failure=why), first=first
            )
        )


async def _choose_tasks(
    resources: Resources, objective: Objective, journal: Journal
) -> tuple[Plannable, Sequence[int]]:
    """Return what a plan is made from, and the ids of the tasks to plan from: those that an earlier
    claim chose, else the first recorded ones."""
    seen = await resources.store.plannable(
        objective.id,
        n_results=MAX_PLANNED,
        n_finished=N_COMPARED,
        limit=N_NAMES,
        after_id=resources.names.event_id,
    )
    resources.take_names(seen.listed)

    async def choose() -> Mapping[str, Sequence[int]]:
        return {"task_ids": _choose_recorded(seen)}

    return seen, (await journal.inputs(choose))["task_ids"]


def _choose_recorded(seen: Plannable) -> list[int]:
    """Return the ids of the first recorded tasks, as many as have results that fit into one prompt
    together, and at least one."""
    size = {result.task_id: estimate_tokens(result.text) for result in seen.results}
    chosen: list[int] = []
    for task in seen.recorded[:MAX_PLANNED]:
        if chosen and sum(size.get(id_, 0) for id_ in (*chosen, task.id)) > PLAN_TOKENS:
            break
        chosen.append(task.id)
    return chosen


async def _show(
    resources: Resources, tasks: Sequence[Task], results: Mapping[int, Result], *, max_tokens: int
) -> list[Finished]:
    """Return the tasks with their results as the creation agent is shown them; a result longer than
    `max_tokens` is cut."""
    cut: dict[int, Result] = {}
    for result in [results[task.id] for task in tasks if task.id in results]:
        text = cut_result(result, max_tokens * BYTES_PER_TOKEN)
        if text != result.text:
            await resources.note_cut(result.objective_id, result.task_id, [result.task_id])
        cut[result.task_id] = replace(result, text=text)
    return [
        Finished(
            task=task,
            result=cut.get(task.id),
            read=() if task.id in cut else await find_read(resources.store, task),
        )
        for task in tasks
    ]


async def _ask(
    resources: Resources,
    finished: Sequence[Finished],
    objective: Objective,
    journal: Journal,
    missing: Passage | None = None,
) -> tuple[CreationReply, tuple[str, ...]]:
    """Ask the creation agent, which is also shown the names of other tasks: of those nearest to the
    missing parts if there are any, else to the objective. Return what `create_tasks` returns."""
    about = [objective.spec.asked] if missing is None else missing.text.split("\n")
    # with missing parts, the list has the same length for every model
    n_tokens = context_tokens(journal, Role.CREATION) if missing is None else 0
    return await create_tasks(
        finished,
        objective=objective.spec.passage,
        known=resources.names.choose(
            [*about, *(one.text for one in finished)],
            context_tokens=n_tokens,
            without={one.task.id for one in finished},
        ),
        journal=journal,
        max_new_tasks=resources.bounds.max_new_tasks,
        missing=missing,
    )


async def _make_plan(
    resources: Resources,
    finished: Sequence[Finished],
    objective: Objective,
    journal: Journal,
    seen: Plannable,
) -> Planned:
    """Return the creation agent's reply as a plan, with the answered tasks that must be done again
    because they did not help."""
    try:
        reply, origins = await _ask(resources, finished, objective, journal)
    except FAULTS_OF_THE_TASK as error:
        # the results hold; only the tasks that could have come of them are given up
        return Planned(failure=error.what)
    texts = {one.task.id: one.result.text for one in finished if one.result is not None}
    # a proposal that names no source is taken to come from the last task that was answered
    last_id = (list(texts) or [one.task.id for one in finished])[-1]
    proposals = [
        replace(one, parent_id=one.parent_id or last_id, origins=origins) for one in reply.tasks
    ]
    tasks = {one.task.id: one.task for one in finished}
    unanswered = [
        replace(
            one,
            lack=one.lack or "an answer to what it asks",
            shown=await find_shown(resources.store, tasks[one.task_id]),
        )
        for one in reply.unanswered
    ]
    again = _find_unhelpful(resources, unanswered, tasks)
    proposals += [
        Proposal(name=name, parent_id=id_, origins=origins) for id_, name in sorted(again)
    ]
    made = Planned(
        proposals=tuple(proposals),
        unanswered=tuple(unanswered),
        is_met=reply.is_met,
        dropped=reply.dropped,
    )
    return await mark_repeats(resources, made, texts, seen)


def _find_unhelpful(
    resources: Resources, unanswered: Sequence[Unanswered], tasks: Mapping[int, Task]
) -> set[tuple[int, str]]:
    """Return the done tasks to do again, as (id of the unanswered task, name of the done one).

    A task that lacked something has now been tried again with the result that was to bring it, and
    lacks something again, for which the reply names the same done task. That task's result was in
    the prompt and did not help.
    """
    return {
        (one.task_id, name.name)
        for one in unanswered
        if tasks[one.task_id].n_lacks + (tasks[one.task_id].lack is None) > 1
        for name in resources.names.named([id_ for id_ in one.after if id_ in one.shown])
        if name.status is TaskStatus.DONE
    }


async def mark_repeats(
    resources: Resources, plan: Planned, texts: Mapping[int, str], seen: Plannable
) -> Planned:
    """Return the plan, with the tasks among `texts` (results, by task id) noted as repeating whose
    result is spelled like that of an earlier task. `seen`: the results to compare with."""
    known = [
        *seen.results,
        *(await resources.search.results(seen.finished_ids) if texts else ()),
    ]
    first_id: dict[str, int] = {}
    for result in sorted(known, key=lambda result: result.task_id):
        first_id.setdefault(name_key(result.text), result.task_id)
    repeats = [id_ for id_, text in texts.items() if first_id.get(name_key(text), id_) != id_]
    return replace(plan, repeats=tuple(repeats))


async def propose_missing(
    resources: Resources,
    objective: Objective,
    journal: Journal,
    *,
    missing: Sequence[str],
    sources: tuple[str, ...],
) -> list[Proposal]:
    """Return the tasks that the creation agent proposes for the parts that a check found missing;
    it is shown the results nearest to them. `sources`: where all results come from."""
    await resources.read_names(objective.id)
    passage = Passage(text="\n".join(missing), origin="model", sources=sources)
    found = await resources.search.relevant(
        passage.text, k=N_NEAREST, embed=embedder(journal, "missing")
    )
    ids = [one.result.task_id for one in found if one.result.objective_id == objective.id]
    done = [await resources.store.task(objective.id, task_id) for task_id in ids]
    read = await resources.store.results(objective.id, task_ids=ids)
    results = {result.task_id: result for result in read}
    finished = await _show(
        resources,
        [task for task in done if task.id in results],
        results,
        max_tokens=PLAN_TOKENS // N_NEAREST,
    )
    try:
        reply, origins = await _ask(resources, finished, objective, journal, passage)
    except FAULTS_OF_THE_TASK as error:
        logger.warning(
            "objective %d: no tasks were proposed for the parts that no result answers: %s",
            objective.id,
            error.what,
        )
        return []
    # what the agent calls unanswered is done again, after what brings it
    name_by_id = {one.task.id: one.task.name for one in finished}
    again = [Proposal(name=name_by_id[one.task_id], after=one.after) for one in reply.unanswered]
    return [replace(one, parent_id=None, origins=origins) for one in (*reply.tasks, *again)]
