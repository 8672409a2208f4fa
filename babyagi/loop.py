"""One turn of a task, and the duties: the work for the whole objective.

The worker claims, and calls `run_turn` for a task, `run_duty` for a duty, and `give_up_duty` for
one that failed too often, or for a report whose model cannot be asked. One `Loop` serves one
objective:

    turn:   execute → record_result or record_lack
    plan:   create → record_plan        order:   prioritize → reorder
    check:  check → finish_check        report:  write → record_report

Each of these six methods of the task store is one transaction, and ends the claim; between them
there are only steps in the journal. A turn leaves its task `recorded`. `record_plan` makes it
`done`, or queues it behind the tasks that bring what it lacks. With combined planning the execution
agent plans in its reply, which is committed with the result or the lack; the duty plans only what
came without a plan. `finish_check` may end the objective. The worker commits the other ends, each
claim, a failed try and a release; a person may cancel. The report is written after the end. The
files of `duties/` have one subject each: the inputs of a try, planning, checking, the report.
docs/architecture.md has the path of a task.

The outcome of a call of the model waits in memory for the next transaction, which is given it as
`first`; it is recorded before a tool is called. After a kill the next claim reads the inputs and
the recorded calls of the same try from the journal. A call whose outcome was only in memory is made
again, but about a tool with the effect `once` a person is asked. Where a reply cannot be read it is
asked for again; after that a try fails, a plan brings no tasks, an order changes nothing, a check
says "not met", and a report says why it has no text. All other errors go to the worker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime

from babyagi.agents.execution import execute_task
from babyagi.agents.outcomes import Outcome
from babyagi.agents.prioritization import order_tasks
from babyagi.duties import checking, inputs, planning, report
from babyagi.duties.resources import Bounds, Enrich, Resources, embedder
from babyagi.errors import FAULTS_OF_THE_TASK, ParkedError
from babyagi.index.indexer import Indexer
from babyagi.index.search import ResultSearch
from babyagi.journal import Backends, Journal
from babyagi.llm.prompt import Message, Prompt, Speaker
from babyagi.memory.log import join_origins
from babyagi.react.steps import AgentBounds
from babyagi.runtime.offload import call_either
from babyagi.tasks import (
    READING_TOOLS,
    Claim,
    Duty,
    DutyClaim,
    Fence,
    Lack,
    Objective,
    Role,
    Task,
    Unanswered,
)
from babyagi.taskstore.lifecycle import MAX_LACKS
from babyagi.taskstore.nouns import Planned, Window
from babyagi.text import clean
from babyagi.tools.base import Tool
from babyagi.tools.recall import build_recall

__all__ = ["Bounds", "Enrich", "Loop"]  # what building a loop takes

logger = logging.getLogger(__name__)

N_WINDOW_HEAD = 6
N_WINDOW_NEW = 8
MAX_ENRICHED_CHARS = 200_000
# if an endpoint hangs, about sixteen probes, one after the other, take five minutes
PROBE_TIMEOUT_S = 18.0
PROBE = Prompt(
    messages=(Message(speaker=Speaker.USER, text="Reply with the word ok.", origins=("program",)),),
    max_output_tokens=16,
)


class Loop:
    """Carries out the tasks that a worker has claimed, and the duties.

    Args:
        backends: what the journals call.
        search: finds earlier results by nearness.
        indexer: writes results to the index.
        tools: what the execution agent may use.
        bounds: the sizes of prompts and answers, and what else the settings say about the work.
        clock: returns now, for the date in prompts.
    """

    def __init__(
        self,
        backends: Backends,
        *,
        search: ResultSearch,
        indexer: Indexer,
        tools: Sequence[Tool],
        bounds: Bounds,
        clock: Callable[[], datetime],
    ) -> None:
        self._resources = Resources(
            backends=backends, search=search, tools=tools, bounds=bounds, clock=clock
        )
        self.indexer = indexer
        self._protocol = bounds.protocol

    # -- a turn
    # ----------------------------------------------------------------------------------------------

    async def run_turn(self, claim: Claim, objective: Objective) -> None:
        """Carry out the claimed task, and commit its result; or commit which information was
        missing. If a person must be asked, the task is left waiting for the answer."""
        journal = Journal(
            self._resources.backends,
            fence=claim.fence,
            prefix=f"{claim.task.try_no}/",
            approval=objective.spec.approval,
            is_new=claim.fence.claim_no == 1,
        )
        try:
            with self._traced(claim.fence, objective):
                async with journal:
                    outcome, shown = await self._execute(claim.task, objective, journal)
                    await self._commit(claim, objective, outcome, shown=shown, journal=journal)
        except ParkedError as error:
            logger.info("objective %d: %s; %s", objective.id, error.what, error.fix)

    async def _execute(
        self, task: Task, objective: Objective, journal: Journal
    ) -> tuple[Outcome, tuple[int, ...]]:
        """Carry the task out. Return its outcome, and the ids of the tasks whose results were in
        its prompt."""
        resources, bounds = self._resources, self._resources.bounds
        begun = await inputs.choose(resources, task, objective, journal, protocol=self._protocol)
        # where the prompt holds the whole folder, there is nothing to look up in it
        tools = [
            tool
            for tool in resources.tools
            if not (begun.holds_folder and tool.name in READING_TOOLS)
        ]
        if begun.may_recall:
            tools.append(build_recall(resources.search, embed=embedder(journal, "recall")))
        outcome = await execute_task(
            task,
            context=begun.context,
            tools=tools,
            journal=journal,
            bounds=bounds.run or AgentBounds(max_output_tokens=bounds.max_output_tokens),
            protocol=begun.protocol,
        )
        if outcome.has_fallen_back:
            # known to this worker from the next try on, so that no further try begins with a
            # refusal
            self._protocol = "text"
        return outcome, begun.shown

    async def _commit(
        self,
        claim: Claim,
        objective: Objective,
        outcome: Outcome,
        *,
        shown: tuple[int, ...],
        journal: Journal,
    ) -> None:
        """Commit the outcome of a try: its result, or which information was missing."""
        is_last = claim.task.n_lacks + 1 >= MAX_LACKS
        # at the last allowed lack, the text that there is stays as the result, in part
        if outcome.lack and not (is_last and outcome.text):
            lack = Lack(what=outcome.lack, shown=shown, found=outcome.text)
            plan = await self._plan_of(claim.task, outcome)
            await journal.commit(
                lambda first: self._resources.store.record_lack(
                    claim, lack=lack, plan=plan, first=first
                )
            )
            return
        text = await self._enrich(claim.task, outcome.text, journal)
        changed = ("tool:enrich",) if text != outcome.text else ()
        plan = await self._plan_of(claim.task, replace(outcome, text=text))
        await self._remember(claim, outcome, journal)
        await journal.commit(
            lambda first: self._resources.store.record_result(
                claim,
                text=text,
                origins=(*outcome.origins, *changed),
                lack=outcome.lack,
                plan=plan,
                first=first,
            )
        )

    async def _enrich(self, task: Task, text: str, journal: Journal) -> str:
        """Return the result as the program's function `Bounds.enrich` changed it. What the function
        returned is journaled; from then on a try that continues after a kill does not call it."""
        enrich = self._resources.bounds.enrich
        if enrich is None:
            return text
        kept = await journal.kept("enriched")
        if kept is None:
            said = await call_either(enrich, task.name, text)
            if not isinstance(said, str):
                raise TypeError(f"enrich must return text, and returned {type(said).__name__}")
            kept = await journal.keep("enriched", clean(said)[:MAX_ENRICHED_CHARS])
        return kept if kept.strip() else text

    async def _plan_of(self, task: Task, outcome: Outcome) -> Planned | None:
        """Return the plan that the execution agent wrote with its answer.

        Return None if the creation agent must be asked: no plan was written, or information was
        missing and the plan names no task, new or listed, that brings it.
        """
        if outcome.plan is None:
            return None
        proposals = [
            replace(one, parent_id=task.id, origins=outcome.origins) for one in outcome.plan.tasks
        ]
        made = Planned(
            proposals=tuple(proposals),
            is_met=outcome.plan.is_met and not outcome.lack,
            dropped=outcome.plan.dropped,
        )
        if not outcome.lack:
            seen = await self._resources.store.plannable(
                task.objective_id,
                n_results=planning.N_COMPARED,
                n_finished=planning.N_COMPARED,
                limit=0,
            )
            return await planning.mark_repeats(self._resources, made, {task.id: outcome.text}, seen)
        if not (proposals or outcome.after):
            return None
        unanswered = Unanswered(task_id=task.id, lack=outcome.lack, after=outcome.after)
        return replace(made, unanswered=(unanswered,))

    async def _remember(self, claim: Claim, outcome: Outcome, journal: Journal) -> None:
        """If the agent has a memory, record the last call's outcome, if it still waits to be
        recorded, and then add the task and its answer to the memory."""
        task, memory = claim.task, self._resources.bounds.memory
        if memory is None:
            return
        await journal.flush()
        await memory.log.add_turn(
            task.name,
            outcome.text,
            key=f"task:{task.id}/{task.try_no}",
            asked_from=task.origins or ("person",),
            made_from=join_origins(outcome.origins),
        )

    def _traced(self, fence: Fence, objective: Objective) -> AbstractContextManager[object]:
        return self._resources.backends.tracer.work(
            objective.uid, objective_id=objective.id, owner=fence.owner
        )

    # -- a duty
    # ----------------------------------------------------------------------------------------------

    async def run_duty(
        self, claim: DutyClaim, objective: Objective, *, window: Window | None = None
    ) -> None:
        """Carry out a duty: work for the whole objective, claimed like a task. The duty to index is
        claimed by the worker's `IndexFeed`, which calls `feed_index`. `window`: the tasks to be
        ordered, for an order."""
        with self._traced(claim.fence, objective):
            match claim.duty:
                case Duty.PLAN:
                    await planning.plan(self._resources, claim, objective)
                case Duty.ORDER:
                    await self._order(claim, objective, window)
                case Duty.CHECK:
                    await checking.check(self._resources, claim, objective)
                case Duty.REPORT:
                    await report.write(self._resources, claim, objective)
        if claim.duty is Duty.REPORT and objective.ended_at is not None:
            self._resources.backends.tracer.objective(
                objective.uid,
                objective_id=objective.id,
                began_at=objective.created_at,
                ended_at=objective.ended_at,
                reason=objective.stop_reason or "",
            )

    async def give_up_duty(self, claim: DutyClaim, objective: Objective, *, why: str) -> None:
        """Finish a duty without a model, after it failed too often or where the model of a report
        cannot be asked, so that the objective does not wait for it endlessly."""
        logger.error("objective %d: the %s is given up: %s", objective.id, claim.duty, why)
        match claim.duty:
            case Duty.PLAN:
                await planning.give_up(self._resources, claim, objective, why=why)
            case Duty.ORDER:
                await self._resources.store.reorder(
                    claim, revision=objective.order_revision, task_ids=()
                )
            case Duty.CHECK:
                await self._resources.store.finish_check(
                    claim, is_met=False, reason=f"the check could not be made: {why}"
                )
            case Duty.REPORT:
                await report.give_up(self._resources, claim, objective, why=why)

    async def _order(self, claim: DutyClaim, objective: Objective, window: Window | None) -> None:
        """Ask for a new order of the queued tasks, and commit it."""
        task_ids: tuple[int, ...] = ()
        async with self._resources.journal(claim) as journal:
            seen = window or await self.see_list(objective)
            if len(seen.tasks) > 1:
                try:
                    task_ids = await order_tasks(
                        seen.tasks, objective=objective.spec.passage, journal=journal
                    )
                except FAULTS_OF_THE_TASK as error:
                    logger.warning("the task list keeps its order: %s", error.what)
            is_applied = await journal.commit(
                lambda first: self._resources.store.reorder(
                    claim, revision=seen.revision, task_ids=task_ids, first=first
                )
            )
        if not is_applied:
            logger.info(
                "the queue was given another order while the model was asked for one; that order "
                "is not applied"
            )

    async def feed_index(self, claim: DutyClaim) -> int:
        """Index one batch of results, and return how many they were."""
        journal = Journal(self._resources.backends, fence=claim.fence)
        return await self.indexer.run_once(embed=embedder(journal, "index"))

    # -- what the worker asks besides
    # ----------------------------------------------------------------------------------------------

    async def see_list(self, objective: Objective) -> Window:
        """Return the part of the task list that an order is asked for."""
        return await self._resources.store.window(
            objective.id, n_head=N_WINDOW_HEAD, n_new=N_WINDOW_NEW
        )

    async def has_answer(self, claim: DutyClaim) -> bool:
        """Return whether the model has written the report's text, so that only reading it into the
        required type is left to do."""
        return bool(await report.find_answer(self._resources.store, claim))

    async def probe(self, fence: Fence, *, number: int, role: Role) -> None:
        """Ask the role's model for one word, to find out whether it answers. This costs at most 48
        tokens.

        Args:
            fence: a claim that this worker holds for other work.
            number: unique among the probes under the claim.

        Raises:
            Whatever `Journal.complete` raises; `OverdueError` after `PROBE_TIMEOUT_S`.
        """
        journal = Journal(self._resources.backends, fence=fence)
        await journal.complete(
            f"probe/{fence.claim_no}/{number}", PROBE, role=role, timeout_s=PROBE_TIMEOUT_S
        )

    async def is_memory_due(self, *, is_flush: bool = False) -> bool:
        """Return whether the agent's memory is to be updated: enough tasks were done since the last
        update; with `is_flush`, any were."""
        memory = self._resources.bounds.memory
        return memory is not None and await memory.is_due(is_flush=is_flush)

    async def update_memory(
        self, claim: DutyClaim, *, is_flush: bool = False, within_s: float | None = None
    ) -> None:
        """Let the model summarize the last tasks in the agent's memory, or search them for facts,
        in at most `within_s` seconds and within the objective's remaining limits."""
        if (memory := self._resources.bounds.memory) is not None:
            calls = Journal(self._resources.backends, fence=claim.fence).below("memory")
            await memory.update(calls, is_flush=is_flush, within_s=within_s)
