"""One turn of a task, and the duties for the whole objective.

A turn: execute → commit the result → create → commit the new tasks. Each commit is one transaction of the task store, so a turn that
is cut anywhere goes on at the next claim, with every finished call read from the journal.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from babyagi import log
from babyagi.agents.creation import check_objective, create_tasks
from babyagi.agents.execution import Context, Excerpt, execute_task
from babyagi.agents.prioritization import order_tasks
from babyagi.agents.report import render_report, write_answer
from babyagi.errors import (
    BabyagiError,
    ContextTooLongError,
    CredentialsError,
    EndlessAnswerError,
    LimitReachedError,
    MalformedReplyError,
    ModelRejectedError,
    ModelUnavailableError,
    ParkedError,
    RequestRefusedError,
    StaleOrderError,
)
from babyagi.inbox import describe
from babyagi.journal import Backends, Journal
from babyagi.react.steps import Bounds as RunBounds
from babyagi.resultstore.context import Chosen, choose_context, choose_within
from babyagi.resultstore.nearness import Nearness
from babyagi.resultstore.projector import Projector, embed_path
from babyagi.resultstore.search import ResultSearch
from babyagi.tasks import Claim, Duty, DutyClaim, Objective, Proposal, Result, Task, TaskStatus
from babyagi.taskstore.rules import name_key
from babyagi.tools.base import Tool

logger = logging.getLogger(__name__)

N_KNOWN_FINISHED = 8
N_COMPARED = 20  # tasks of each kind that a proposal, and a result, is compared with
N_KEPT_RESULTS = 100  # results whose words are remembered for the next comparison
N_WINDOW_HEAD = 6
N_WINDOW_NEW = 8
CHECK_TOKENS = 6000
REPORT_TOKENS = 12_000
MAX_REPORT_TRIES = 4  # claims of the report during an outage, before the results stand in for the model's text
FAULTS_OF_THE_TASK = (ContextTooLongError, RequestRefusedError, EndlessAnswerError, MalformedReplyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much goes into and out of one call, and how the execution agent talks with its model."""

    context_tokens: int
    max_output_tokens: int
    max_new_tasks: int
    max_depth: int = 20
    protocol: str = "auto"


class Loop:
    """What a worker does with what it claimed.

    Args:
        backends: what the journals call.
        search: earlier results by nearness. projector: what feeds them to the result store.
        tools: what the execution agent may use.
        clock: now, for the date that a prompt names.
    """

    def __init__(
        self,
        backends: Backends,
        *,
        search: ResultSearch,
        projector: Projector,
        tools: Sequence[Tool],
        bounds: Bounds,
        clock: Callable[[], datetime],
    ) -> None:
        self._backends = backends
        self._store = backends.store
        self._search = search
        self._projector = projector
        self._tools = tools
        self._bounds = bounds
        self._clock = clock
        self._protocol = bounds.protocol
        self._nearness = Nearness()
        self._nearness_of_results = Nearness(max_kept=N_KEPT_RESULTS)
        self._parent_by_id: dict[int, int | None] = {}  # of the tasks that had children

    async def run_turn(self, claim: Claim, objective: Objective) -> None:
        """Carry the claimed task to done: its result first, then the tasks that come of it. Or to waiting, if a person must be asked."""
        journal = Journal(self._backends, fence=claim.fence, prefix=f"{claim.task.try_no}/", approval=objective.spec.approval)
        if claim.task.status is TaskStatus.RUNNING:
            try:
                result = await self._execute(claim, objective, journal)
            except ParkedError as error:
                logger.info("objective %d: %s; %s", objective.id, error.what, error.fix)
                return
        else:
            result = (await self._store.results(objective.id, task_ids=[claim.task.id]))[0]
        await self._create(claim, result, objective, journal)

    async def run_duty(self, claim: DutyClaim, objective: Objective) -> None:
        journal = Journal(self._backends, fence=claim.fence)
        match claim.duty:
            case Duty.ORDER:
                await self._order(claim, objective, journal)
            case Duty.CHECK:
                await self._check(claim, objective, journal)
            case Duty.REPORT:
                await self._report(claim, objective, journal)
            case Duty.INDEX:
                await self.feed_index(claim)

    async def give_up_duty(self, claim: DutyClaim, objective: Objective, *, why: str) -> None:
        """Finish, without a model, a duty that fails however often it is tried: nothing may wait for it for ever."""
        logger.error("objective %d: the %s is given up: %s", objective.id, claim.duty, why)
        match claim.duty:
            case Duty.ORDER:
                await self._finish_order(claim, revision=objective.order_revision, task_ids=())
            case Duty.CHECK:
                await self._store.finish_check(claim, is_met=False, reason=f"the check could not be made: {why}")
            case Duty.REPORT:
                await self._finish_report(claim, objective, answer="", why=why)
            case Duty.INDEX:
                await self._store.release_duty(claim)

    async def feed_index(self, claim: DutyClaim) -> int:
        """Feed one batch of results to the result store, and return how many it was."""
        journal = Journal(self._backends, fence=claim.fence)

        async def embed(texts: Sequence[str]) -> list[bytes]:
            return await journal.embed(embed_path("index", texts), texts)

        return await self._projector.run_once(embed=embed)

    async def _execute(self, claim: Claim, objective: Objective, journal: Journal) -> Result:
        async def build_inputs() -> Mapping[str, Any]:
            chosen = await self._choose_excerpts(claim.task, objective, journal)
            return {
                "today": self._clock().date().isoformat(),
                "excerpts": [_write_chosen(entry) for entry in chosen],
                "prompt_version": objective.spec.prompt_version,
                "tools": [tool.name for tool in self._tools],
                "protocol": self._protocol,
            }

        inputs = await journal.inputs(build_inputs)
        context = Context(
            objective_text=objective.spec.text,
            excerpts=await self._load_excerpts(inputs["excerpts"]),
            today=date.fromisoformat(inputs["today"]),
        )
        answer = await execute_task(
            claim.task,
            context=context,
            tools=self._tools,
            journal=journal,
            bounds=RunBounds(max_output_tokens=self._bounds.max_output_tokens),
            protocol=inputs["protocol"],
        )
        if answer.has_fallen_back:
            self._protocol = "text"  # of this worker, from the next try on: no further try begins with a refusal
        return await self._store.record_result(claim, text=answer.text, origins=answer.origins)

    async def _choose_excerpts(self, task: Task, objective: Objective, journal: Journal) -> list[Chosen]:
        async def embed(texts: Sequence[str]) -> list[bytes]:
            return await journal.embed(embed_path("context", texts), texts)

        chosen, degraded = await choose_context(
            task, objective=objective, search=self._search, embed=embed, budget_tokens=self._bounds.context_tokens
        )
        if degraded:
            logger.info("task %d: earlier results were %s", task.id, degraded)
        return chosen

    async def _load_excerpts(self, chosen: Sequence[Mapping[str, Any]]) -> tuple[Excerpt, ...]:
        own = await self._search.results([entry["task_id"] for entry in chosen if "task_name" not in entry])
        names = {result.task_id: result.task_name for result in own}
        return tuple(
            Excerpt(
                task_id=entry["task_id"],
                task_name=entry.get("task_name") or names[entry["task_id"]],
                text=entry["text"],
                objective_id=entry.get("objective_id"),
            )
            for entry in chosen
        )

    async def _create(self, claim: Claim, result: Result, objective: Objective, journal: Journal) -> None:
        try:
            reply, origins = await create_tasks(
                claim.task,
                result.text,
                objective_text=objective.spec.text,
                known=await self._known_tasks(claim.task),
                journal=journal,
                max_new_tasks=self._bounds.max_new_tasks,
            )
        except FAULTS_OF_THE_TASK as error:  # the result stands; only what could have come of it is given up
            await self._store.fail_task(claim, error=f"nothing was planned from its result: {error.what}", max_failures=1)
            return
        if reply.note:
            logger.warning("task %d: of the creation agent's reply: %s", claim.task.id, reply.note)
        proposals = [Proposal(name=task.name, after=task.after, origins=origins) for task in reply.tasks]
        known = await self._tasks_to_compare_with(claim.task)
        if proposals:
            proposals = await self._drop_what_leads_nowhere(claim.task, proposals, known)
        is_repeat = await self._is_repeat(result, known)
        await self._store.record_plan(claim, proposals=proposals, is_met=reply.is_met, is_repeat=is_repeat)

    async def _is_repeat(self, result: Result, known: Sequence[Task]) -> bool:
        """Whether the result only repeats one that was there before it."""
        known_ids = [task.id for task in known if task.status in (TaskStatus.RECORDED, TaskStatus.DONE)]
        own = (result.created_at, result.task_id)
        earlier = [other for other in await self._search.results(known_ids) if (other.created_at, other.task_id) < own]
        return any(self._nearness_of_results.is_repeat(result.text, other.text) for other in earlier)

    async def _drop_what_leads_nowhere(self, task: Task, proposals: Sequence[Proposal], known: Sequence[Task]) -> list[Proposal]:
        """Drop, with an event, what would lie too deep, and what nearly is a task that there is. The store drops exact duplicates."""
        if await self._depth_of(task) >= self._bounds.max_depth:
            for proposal in proposals:
                await self._note_dropped(task, log.TASK_TOO_DEEP_DROPPED, name=proposal.name, max_depth=self._bounds.max_depth)
            return []
        kept: list[Proposal] = []
        for proposal in proposals:
            same = next((other for other in known if self._nearness.are_near_equal(proposal.name, other.name)), None)
            near_kept = same or next((other for other in kept if self._nearness.are_near_equal(proposal.name, other.name)), None)
            if near_kept is None or name_key(proposal.name) == name_key(near_kept.name):
                kept.append(proposal)
            else:
                await self._note_dropped(task, log.TASK_DUPLICATE_DROPPED, name=proposal.name, near=near_kept.name)
        return kept

    async def _tasks_to_compare_with(self, task: Task) -> list[Task]:
        window = await self._store.window(task.objective_id, n_head=N_COMPARED, n_new=N_COMPARED, n_finished=N_COMPARED)
        return [*window.tasks, *window.at_work, *window.finished]

    async def _depth_of(self, task: Task) -> int:
        """How many tasks it descends from, counted up to the bound."""
        depth, parent_id = 0, task.parent_id
        while parent_id is not None and depth < self._bounds.max_depth:
            depth += 1
            if parent_id not in self._parent_by_id:
                self._parent_by_id[parent_id] = (await self._store.task(task.objective_id, parent_id)).parent_id
            parent_id = self._parent_by_id[parent_id]
        return depth

    async def _note_dropped(self, task: Task, kind: str, **data: Any) -> None:
        await self._store.append_event(task.objective_id, kind=kind, task_id=task.id, data=data)

    async def _known_tasks(self, task: Task) -> list[Task]:
        """What the creation agent is shown: a bounded window of the queue, what runs, and what was finished last."""
        window = await self._store.window(task.objective_id, n_head=N_WINDOW_HEAD, n_new=N_WINDOW_NEW, n_finished=N_KNOWN_FINISHED)
        known = {other.id: other for other in [*window.finished, *window.at_work, *window.tasks] if other.id != task.id}
        return [known[task_id] for task_id in sorted(known)]

    async def _order(self, claim: DutyClaim, objective: Objective, journal: Journal) -> None:
        window = await self._store.window(objective.id, n_head=N_WINDOW_HEAD, n_new=N_WINDOW_NEW)
        task_ids: tuple[int, ...] = ()
        if len(window.tasks) > 1:
            try:
                task_ids = await order_tasks(window.tasks, objective_text=objective.spec.text, journal=journal)
            except FAULTS_OF_THE_TASK as error:
                logger.warning("the list keeps its order: %s", error.what)
        await self._finish_order(claim, revision=window.revision, task_ids=task_ids)

    async def _finish_order(self, claim: DutyClaim, *, revision: int, task_ids: Sequence[int]) -> None:
        try:
            await self._store.reorder(claim, revision=revision, task_ids=task_ids)
        except StaleOrderError:
            logger.info("the list changed while the prioritizer was thinking; its order is dropped")
            await self._store.release_duty(claim)

    async def _check(self, claim: DutyClaim, objective: Objective, journal: Journal) -> None:
        excerpts = await self._all_excerpts(objective.id, CHECK_TOKENS)
        try:
            reply = await check_objective(objective_text=objective.spec.text, excerpts=excerpts, journal=journal)
            is_met, reason = reply.is_met, reply.reason
        except FAULTS_OF_THE_TASK as error:
            is_met, reason = False, f"the check could not be made: {error.what}"
        await self._store.finish_check(claim, is_met=is_met, reason=reason)

    async def _report(self, claim: DutyClaim, objective: Objective, journal: Journal) -> None:
        answer, why = "", "the model wrote nothing"
        try:
            excerpts = await self._all_excerpts(objective.id, REPORT_TOKENS)
            if excerpts:
                max_output_tokens = 2 * self._bounds.max_output_tokens
                answer = await write_answer(objective, excerpts=excerpts, journal=journal, max_output_tokens=max_output_tokens)
            else:
                why = "no task was finished"
        except ModelUnavailableError as error:
            if claim.fence.claim_no < MAX_REPORT_TRIES:
                raise
            why = f"the model could not be reached: {error.what}"
        except (LimitReachedError, CredentialsError, ModelRejectedError, *FAULTS_OF_THE_TASK) as error:
            why = error.what
        await self._finish_report(claim, objective, answer=answer, why=why)

    async def _finish_report(self, claim: DutyClaim, objective: Objective, *, answer: str, why: str) -> None:
        tasks = await self._store.tasks(objective.id)
        results = await self._store.results(objective.id)
        asked = [(step.id, describe(step)) for step in await self._store.inbox(objective.id)]
        markdown = render_report(objective, answer=answer, why_no_answer=why, tasks=tasks, results=results, asked=asked)
        await self._store.record_report(claim, markdown=markdown)

    async def _all_excerpts(self, objective_id: int, budget_tokens: int) -> list[Excerpt]:
        """Every result, each cut to an equal share of the budget where they do not fit."""
        results = await self._store.results(objective_id)
        return [
            Excerpt(task_id=result.task_id, task_name=result.task_name, text=text) for result, text in choose_within(results, budget_tokens)
        ]


def _write_chosen(entry: Chosen) -> dict[str, Any]:
    """What the journal keeps of it. Of another objective, which may be deleted, all that a repetition needs."""
    written = {"task_id": entry.result.task_id, "text": entry.text, "score": entry.score, "reason": entry.reason}
    if entry.reason == "shared":
        written |= {"objective_id": entry.result.objective_id, "task_name": entry.result.task_name}
    return written


def is_fault_of_the_task(error: BabyagiError) -> bool:
    """Whether the error ends a try of the task, and no other task has anything to do with it."""
    return isinstance(error, FAULTS_OF_THE_TASK)


def tries_for(error: BabyagiError, max_failures: int) -> int:
    """How many failed tries an error is worth: one where the same would come again, two where an answer had no end."""
    if isinstance(error, ContextTooLongError | RequestRefusedError):
        return 1
    return min(2, max_failures) if isinstance(error, EndlessAnswerError) else max_failures
