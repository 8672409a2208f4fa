"""One turn of a task, and the duties: the work for the whole objective.

The worker calls `run_turn` for a claimed task, `run_duty` for a claimed duty, and `give_up_duty`
for one that failed too often. One `Loop` serves one objective:

    execute → record_result or record_lack → (plan) record_plan → (order) reorder → …
    → (check) finish_check → (report) record_report

Each of these six is one transaction of the task store; between them there are only steps in the
journal. Duties run beside the tasks. With combined planning the plan is committed with the result.

After a kill the next claim reads the inputs and the finished calls of the same try from the
journal. Where a reply cannot be read, a try fails, a plan brings no tasks, an order changes
nothing, a check says "not met", and a report says why it has no text. All other errors go to the
worker.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any

from babyagi import events
from babyagi.agents.check import (
    check_objective,
    look_up,
    say_why_not,
    settle,
)
from babyagi.agents.creation import CreationReply, Finished, create_tasks
from babyagi.agents.execution import Context, Excerpt, execute_task
from babyagi.agents.listed import ListedNames
from babyagi.agents.outcomes import Outcome
from babyagi.agents.prioritization import order_tasks
from babyagi.agents.prompting import say
from babyagi.agents.report import (
    NO_OUTPUT,
    WHOLE_ANSWER,
    Written,
    find_whole_answer,
    read_answer,
    write_answer,
    write_output,
)
from babyagi.errors import (
    BabyagiError,
    ContextTooLongError,
    CredentialsError,
    EndlessAnswerError,
    LimitReachedError,
    MalformedReplyError,
    ModelRejectedError,
    ParkedError,
    RequestRefusedError,
)
from babyagi.index.context import BYTES_PER_TOKEN, Chosen, choose_context, choose_for_objective
from babyagi.index.excerpts import cut_result
from babyagi.index.indexer import Embed, Indexer, embed_path
from babyagi.index.search import ResultSearch
from babyagi.journal import Backends, Journal
from babyagi.llm.human import NAME as HUMAN
from babyagi.llm.prompt import Message, Prompt, Speaker, estimate_tokens
from babyagi.memory.log import join_origins
from babyagi.memory.remembering import TaskMemory
from babyagi.react.outputs import require_json
from babyagi.react.protocols.choice import AUTO, choose_protocol, step_down
from babyagi.react.steps import AgentBounds
from babyagi.reporting.report import compose_report
from babyagi.runtime.offload import call_either
from babyagi.tasks import (
    READING_TOOLS,
    CheckedPart,
    Claim,
    Duty,
    DutyClaim,
    Effect,
    Fence,
    FolderTexts,
    Lack,
    Objective,
    Passage,
    Planning,
    Proposal,
    Result,
    Role,
    Task,
    TaskName,
    TaskStatus,
    Unanswered,
    find_sources,
)
from babyagi.taskstore.lifecycle import MAX_LACKS, SETTLED, may_start
from babyagi.taskstore.names import name_key
from babyagi.taskstore.nouns import (
    NOTHING_CHECKED,
    Checked,
    Plannable,
    Planned,
    TaskNames,
    Window,
)
from babyagi.text import clean, one_line
from babyagi.tools.base import Tool
from babyagi.tools.recall import RECALL, build_recall

logger = logging.getLogger(__name__)

MAX_SILENT_TRIES = 2  # tries without a call, after which a model is asked for calls another way
N_COMPARED = 20  # finished tasks whose results a new one is compared with
N_NAMES = 2000  # how many of the newest task names planning compares with
N_WINDOW_HEAD = 6
N_WINDOW_NEW = 8
MAX_PLANNED = 32  # recorded tasks that are planned from at once, if their results are short enough
PLAN_TOKENS = 6000  # of results in one planning; the first is whole whatever its size
CHECK_TOKENS = 6000
REPORT_TOKENS = 12_000
MAX_ENRICHED_CHARS = 200_000
N_NEAREST = 4  # results that the creation agent is shown with missing parts
# if an endpoint hangs, about sixteen probes, one after the other, take five minutes
PROBE_TIMEOUT_S = 18.0
PROBE = Prompt(
    messages=(Message(speaker=Speaker.USER, text="Reply with the word ok.", origins=("program",)),),
    max_output_tokens=16,
)
FAULTS_OF_THE_TASK = (
    ContextTooLongError,
    RequestRefusedError,
    EndlessAnswerError,
    MalformedReplyError,
)

FindTexts = Callable[[str, int], Awaitable[FolderTexts]]
"""Takes a question and a number of bytes; returns texts of the folder within these bytes."""

Enrich = Callable[[str, str], str | Awaitable[str]]
"""Takes the name of a task and its result, and returns the result to keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAgent:
    """The agent from a person's YAML file that carries the tasks out: the bounds of its runs, and
    its memory."""

    bounds: AgentBounds
    memory: TaskMemory | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The sizes of prompts and answers, and the settings of the execution agent's conversation with
    its model.

    Attributes:
        max_failures: failed tries after which a task is given up.
        read_output: parses the report into the type that a program requested; raises
            `MalformedReplyError`.
        enrich: takes a task's name and its result, and returns the result to record.
        find_texts: reads the objective's folder; None if it has none.
    """

    context_tokens: int
    max_output_tokens: int
    max_new_tasks: int
    max_failures: int = 3
    protocol: str = "auto"
    agent: OwnAgent | None = None
    read_output: Callable[[str], object] = require_json
    enrich: Enrich | None = None
    find_texts: FindTexts | None = None


class Loop:
    """Carries out the tasks that a worker has claimed, and the duties (work for the whole
    objective, such as planning).

    Args:
        backends: what the journals call.
        search: finds earlier results by nearness.
        indexer: writes results to the index.
        tools: what the execution agent may use.
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
        self._backends = backends
        self._store = backends.store
        self._search = search
        self._indexer = indexer
        self._tools = tools
        self._bounds = bounds
        self._clock = clock
        self._protocol = bounds.protocol
        self._memory = bounds.agent.memory if bounds.agent is not None else None
        self._names = ListedNames(max_names=N_NAMES)

    async def run_turn(self, claim: Claim, objective: Objective) -> None:
        """Carry out the claimed task, and commit its result; or commit which information was
        missing. If a person must be asked, the task is left waiting for the answer."""
        journal = Journal(
            self._backends,
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

    async def _commit(
        self,
        claim: Claim,
        objective: Objective,
        outcome: Outcome,
        *,
        shown: tuple[int, ...],
        journal: Journal,
    ) -> None:
        is_last = claim.task.n_lacks + 1 >= MAX_LACKS
        # at the last allowed lack, the text that there is stays as the result, in part
        if outcome.lack and not (is_last and outcome.text):
            lack = Lack(what=outcome.lack, shown=shown, found=outcome.text)
            plan = await self._plan_of(claim.task, outcome)
            await journal.commit(
                lambda first: self._store.record_lack(claim, lack=lack, plan=plan, first=first)
            )
            return
        text = await self._enrich(claim.task, outcome.text, journal)
        changed = ("tool:enrich",) if text != outcome.text else ()
        plan = await self._plan_of(claim.task, replace(outcome, text=text))
        await self._remember(claim, outcome, journal)
        await journal.commit(
            lambda first: self._store.record_result(
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
        returned is journaled, so a try that continues after a kill does not call it again."""
        if self._bounds.enrich is None:
            return text
        kept = await journal.recall("enriched")
        if kept is None:
            said = await call_either(self._bounds.enrich, task.name, text)
            if not isinstance(said, str):
                raise TypeError(f"enrich must return text, and returned {type(said).__name__}")
            kept = await journal.keep("enriched", clean(said)[:MAX_ENRICHED_CHARS])
        return kept if kept.strip() else text

    def _traced(self, fence: Fence, objective: Objective) -> AbstractContextManager[object]:
        return self._backends.tracer.work(
            objective.uid, objective_id=objective.id, owner=fence.owner
        )

    async def run_duty(
        self, claim: DutyClaim, objective: Objective, *, window: Window | None = None
    ) -> None:
        """Carry out a duty (work for the whole objective, such as planning). `window`: the tasks to
        be ordered, for an order."""
        with self._traced(claim.fence, objective):
            await self._run_duty(claim, objective, window)
        if claim.duty is Duty.REPORT and objective.ended_at is not None:
            self._backends.tracer.objective(
                objective.uid,
                objective_id=objective.id,
                began_at=objective.created_at,
                ended_at=objective.ended_at,
                reason=objective.stop_reason or "",
            )

    async def _run_duty(
        self, claim: DutyClaim, objective: Objective, window: Window | None
    ) -> None:
        journal = Journal(self._backends, fence=claim.fence, is_new=claim.is_new)
        match claim.duty:
            case Duty.ORDER:
                async with journal:
                    window = window or await self.see_list(objective)
                    await self._order(claim, objective, journal, window)
            case Duty.PLAN:
                async with journal:
                    await self._plan(claim, objective, journal)
            case Duty.CHECK:
                await self._check(claim, objective, journal)
            case Duty.REPORT:
                await self._report(claim, objective, journal)
            case Duty.INDEX:
                await self.feed_index(claim)

    async def give_up_duty(self, claim: DutyClaim, objective: Objective, *, why: str) -> None:
        """Finish a duty (work for the whole objective, such as a check) without a model after it
        failed too often, so that the objective does not wait for it endlessly."""
        logger.error("objective %d: the %s is given up: %s", objective.id, claim.duty, why)
        match claim.duty:
            case Duty.ORDER:
                journal = Journal(self._backends, fence=claim.fence)
                revision = objective.order_revision
                await self._finish_order(claim, journal, revision=revision, task_ids=())
            case Duty.PLAN:
                recorded = await self._store.tasks(
                    objective.id, statuses=[TaskStatus.RECORDED], limit=MAX_PLANNED
                )
                task_ids = [task.id for task in recorded]
                await self._store.record_plan(claim, task_ids=task_ids, plan=Planned(failure=why))
            case Duty.CHECK:
                await self._store.finish_check(
                    claim, is_met=False, reason=f"the check could not be made: {why}"
                )
            case Duty.REPORT:
                await self._give_up_report(claim, objective, why=why)
            case Duty.INDEX:
                await self._store.release(claim)

    async def probe(self, fence: Fence, *, number: int, role: Role) -> None:
        """Ask the role's model for one word, to find out whether it answers. This costs at most 48
        tokens.

        Args:
            fence: a claim that this worker holds for other work.
            number: unique among the probes under the claim.

        Raises:
            Whatever `Journal.complete` raises; `OverdueError` after `PROBE_TIMEOUT_S`.
        """
        journal = Journal(self._backends, fence=fence)
        await journal.complete(
            f"probe/{fence.claim_no}/{number}", PROBE, role=role, timeout_s=PROBE_TIMEOUT_S
        )

    async def feed_index(self, claim: DutyClaim) -> int:
        """Index one batch of results, and return how many they were."""
        journal = Journal(self._backends, fence=claim.fence)
        return await self._indexer.run_once(embed=self._embedder(journal, "index"))

    async def has_unread_memory(self) -> bool:
        """Return whether the agent's memory contains tasks and answers that were not yet summarized
        or searched for facts."""
        return self._memory is not None and await self._memory.has_pending()

    async def flush_memory(
        self, claim: DutyClaim, objective: Objective, *, within_s: float
    ) -> None:
        """Let the model summarize the last tasks in the agent's memory, or search them for facts,
        in at most `within_s` seconds and within the objective's remaining limits."""
        if self._memory is not None:
            calls = Journal(self._backends, fence=claim.fence).below(
                f"memory/{objective.report_no}"
            )
            await self._memory.flush(calls, within_s=within_s)

    async def ping_index(self) -> None:
        """Check that the index can be used, and raise if not; see `VectorIndex.ping`."""
        await self._indexer.ping()

    # -- a task
    # ----------------------------------------------------------------------------------------------

    async def _execute(
        self, task: Task, objective: Objective, journal: Journal
    ) -> tuple[Outcome, tuple[int, ...]]:
        """Carry the task out. Return its outcome, and the ids of the tasks whose results were in
        its prompt."""
        inputs = await journal.inputs(partial(self._build_inputs, task, objective, journal))
        context = await self._read_context(inputs, objective)
        own = self._bounds.agent
        recall = (
            [build_recall(self._search, embed=self._embedder(journal, "recall"))]
            if inputs.get("may_recall")
            else []
        )
        # where the prompt holds the whole folder, there is nothing to look up in it
        tools = [
            tool
            for tool in self._tools
            if not (inputs.get("holds_folder") and tool.name in READING_TOOLS)
        ]
        outcome = await execute_task(
            task,
            context=context,
            tools=[*tools, *recall],
            journal=journal,
            bounds=own.bounds
            if own
            else AgentBounds(max_output_tokens=self._bounds.max_output_tokens),
            protocol=inputs["protocol"],
        )
        if outcome.has_fallen_back:
            # known to this worker from the next try on, so that no further try begins with a
            # refusal
            self._protocol = "text"
        return outcome, tuple(
            entry["task_id"] for entry in inputs["excerpts"] if "objective_id" not in entry
        )

    async def _build_inputs(
        self, task: Task, objective: Objective, journal: Journal
    ) -> dict[str, Any]:
        """Return what a try begins with, as JSON for the journal: a replay reads it, and never
        chooses again."""
        is_combined = objective.spec.planning is Planning.COMBINED
        listed = await self._listed(objective.id) if is_combined else None
        chosen = await self._choose_excerpts(task, objective, journal)
        texts = [objective.spec.asked, task.name, *(entry.text for entry in chosen)]
        known = (
            listed.choose(
                texts,
                context_tokens=_context_tokens(journal, Role.EXECUTION),
                without={task.id},
            )
            if listed is not None
            else []
        )
        folder = await self._find_texts_for(task, objective)
        return {
            "today": self._clock().date().isoformat(),
            "excerpts": [_write_chosen(entry) for entry in chosen],
            "gone": await self._find_gone(task),
            "last_try": _say_last_try(task),
            "is_last_try": task.failures + 1 >= self._bounds.max_failures,
            "last_sources": await journal.earlier_sources() if task.try_no > 1 else [],
            "known": [
                [name.id, name.name, name.status, name.is_lacking, name.origins] for name in known
            ],
            "prompt_version": objective.spec.prompt_version,
            "tools": [tool.name for tool in self._tools],
            "may_recall": await self._may_recall(task, objective, chosen),
            "protocol": await self._choose_protocol(task, journal),
            "memory": await self._recollect(task),
            "texts": [[one.text, one.origin] for one in folder.passages],
            "holds_folder": folder.is_whole,
        }

    async def _read_context(self, inputs: Mapping[str, Any], objective: Objective) -> Context:
        """Return the context of a try from its recorded inputs, with the texts they refer to."""
        return Context(
            objective=objective.spec.passage,
            excerpts=await self._load_excerpts(inputs["excerpts"]),
            today=date.fromisoformat(inputs["today"]),
            gone=tuple(inputs.get("gone", ())),
            last_try=inputs.get("last_try", ""),
            is_last_try=inputs.get("is_last_try", False),
            last_sources=tuple(inputs.get("last_sources", ())),
            planning=objective.spec.planning,
            known=tuple(_read_name(entry) for entry in inputs.get("known", ())),
            max_new_tasks=self._bounds.max_new_tasks,
            texts=tuple(
                Passage(text=text, origin=origin) for text, origin in inputs.get("texts", ())
            ),
            memory=tuple(
                (label, Passage(text=text, origin=origin, sources=tuple(sources)))
                for label, text, origin, sources in inputs.get("memory", ())
            ),
        )

    async def _choose_protocol(self, task: Task, journal: Journal) -> str:
        """Return the protocol for the next try: one step down if the model has tools and has ended
        the task twice without calling any of them."""
        known = journal.abilities(Role.EXECUTION)
        if self._protocol != AUTO or known is None or not self._tools:
            return self._protocol
        steps = await self._store.steps(task.objective_id, owner=f"task:{task.id}")
        has_called = any("/tool/" in step.key for step in steps)
        is_silent = task.try_no > MAX_SILENT_TRIES and not has_called
        return step_down(choose_protocol(known)) if is_silent else AUTO

    async def _find_texts_for(self, task: Task, objective: Objective) -> FolderTexts:
        """Return the folder's texts for the task that answers the objective itself; none for any
        other task."""
        if self._bounds.find_texts is None or not task.is_answer:
            return FolderTexts()
        n_bytes = self._bounds.context_tokens * BYTES_PER_TOKEN
        return await self._bounds.find_texts(objective.spec.asked, n_bytes)

    async def _recollect(self, task: Task) -> list[list[Any]]:
        """Return the passages that the agent's memory shows with the task, each as label, text,
        origin and sources; none if the agent has no memory."""
        found = await self._memory.recollect(task.name) if self._memory is not None else ()
        return [[label, passage.text, passage.origin, passage.sources] for label, passage in found]

    async def _remember(self, claim: Claim, outcome: Outcome, journal: Journal) -> None:
        """If the agent has a memory, record the last call's outcome, if it still waits to be
        recorded, and then add the task and its answer to the memory."""
        task = claim.task
        if self._memory is None:
            return
        await journal.flush()
        await self._memory.keep(
            task.name,
            outcome.text,
            key=f"task:{task.id}/{task.try_no}",
            asked_from=task.origins or ("person",),
            made_from=join_origins(outcome.origins),
            calls=journal.below("memory"),
        )

    async def _choose_excerpts(
        self, task: Task, objective: Objective, journal: Journal
    ) -> list[Chosen]:
        chosen, degraded = await choose_context(
            task,
            search=self._search,
            embed=self._embedder(journal, "context"),
            budget_tokens=self._bounds.context_tokens,
            lacks=(*task.lack.before, task.lack.what) if task.lack is not None else (),
            shown_before=task.lack.shown if task.lack is not None else (),
        )
        if degraded:
            logger.info("task %d: earlier results were %s", task.id, degraded)
        cut = [
            entry.result.task_id
            for entry in chosen
            if not entry.is_whole and entry.reason in ("after", "parent", "marks")
        ]
        if cut:
            await self._note_cut(objective.id, task.id, cut)
        return chosen

    def _embedder(self, journal: Journal, what: str) -> Embed:
        async def embed(texts: Sequence[str]) -> list[bytes]:
            return await journal.embed(embed_path(what, texts), texts)

        return embed

    async def _find_gone(self, task: Task) -> list[str]:
        """Return a line for each task that this one comes after and that was given up or
        cancelled."""
        before = [await self._store.task(task.objective_id, task_id) for task_id in task.after]
        return [
            f"Task {other.id}: {other.name}: {other.error or other.status.value}"
            for other in before
            if other.status in (TaskStatus.DEAD, TaskStatus.CANCELLED)
        ]

    async def _may_recall(self, task: Task, objective: Objective, chosen: Sequence[Chosen]) -> bool:
        """Return whether to offer the tool that searches earlier results: if there are any results,
        and either a person granted the tool, or a try lacked information, or a result in the prompt
        is cut."""
        is_granted = any(grant.name == RECALL for grant in objective.spec.tools)
        if is_granted or task.lack is not None or any(not entry.is_whole for entry in chosen):
            return await self._store.count_results(objective.id) > 0
        return False

    async def _load_excerpts(self, chosen: Sequence[Mapping[str, Any]]) -> tuple[Excerpt, ...]:
        own = await self._search.results(
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

    async def _plan_of(self, task: Task, outcome: Outcome) -> Planned | None:
        """Return the plan (new tasks) that the execution agent wrote with its answer; None if it
        wrote none, or a lack without anything that brings it: then the creation agent is asked."""
        if outcome.plan is None:
            return None
        proposals = [
            replace(one, parent_id=task.id, origins=outcome.origins) for one in outcome.plan.tasks
        ]
        plan = Planned(
            proposals=tuple(proposals),
            is_met=outcome.plan.is_met and not outcome.lack,
            dropped=outcome.plan.dropped,
        )
        if not outcome.lack:
            seen = await self._store.plannable(
                task.objective_id, n_results=N_COMPARED, n_finished=N_COMPARED, limit=0
            )
            return await self._mark_repeats(plan, {task.id: outcome.text}, seen)
        if not (proposals or outcome.after):
            return None
        unanswered = Unanswered(task_id=task.id, lack=outcome.lack, after=outcome.after)
        return replace(plan, unanswered=(unanswered,))

    # -- planning
    # ----------------------------------------------------------------------------------------------

    async def _plan(self, claim: DutyClaim, objective: Objective, journal: Journal) -> None:
        """Ask the creation agent once which new tasks the outcomes of the last tasks make
        necessary, and commit the plan."""

        seen = await self._store.plannable(
            objective.id,
            n_results=MAX_PLANNED,
            n_finished=N_COMPARED,
            limit=N_NAMES,
            after_id=self._names.event_id,
        )
        self._take_names(seen.listed)
        recorded = {task.id: task for task in seen.recorded}
        results = {result.task_id: result for result in seen.results}

        async def build_inputs() -> Mapping[str, Any]:
            return {"task_ids": _choose_recorded(list(recorded), results)}

        task_ids = (await journal.inputs(build_inputs))["task_ids"]
        tasks = [recorded[task_id] for task_id in task_ids if task_id in recorded]
        # an earlier claim has chosen these, and they may stand further back in the list by now
        others = set(task_ids) - set(list(recorded)[:MAX_PLANNED])
        if others:
            read = await self._store.results(objective.id, task_ids=sorted(others))
            results |= {result.task_id: result for result in read}
        finished = await self._cut_finished(objective.id, tasks, results, max_tokens=PLAN_TOKENS)
        plan = await self._create(finished, objective, journal, seen)
        await journal.commit(
            lambda first: self._store.record_plan(claim, task_ids=task_ids, plan=plan, first=first)
        )
        withdrawn = {one.task_id for one in plan.unanswered}
        self._search.keep(
            replace(results[task.id], is_planned=True)
            for task in tasks
            if task.id in results and task.id not in withdrawn
        )

    async def _load_finished(
        self, objective_id: int, tasks: Sequence[Task], *, max_tokens: int
    ) -> list[Finished]:
        """Return the tasks with their results; a result longer than `max_tokens` is cut."""
        read = await self._store.results(objective_id, task_ids=[task.id for task in tasks])
        results = {result.task_id: result for result in read}
        return await self._cut_finished(objective_id, tasks, results, max_tokens=max_tokens)

    async def _cut_finished(
        self,
        objective_id: int,
        tasks: Sequence[Task],
        results: Mapping[int, Result],
        *,
        max_tokens: int,
    ) -> list[Finished]:
        cut: dict[int, Result] = {}
        for result in [results[task.id] for task in tasks if task.id in results]:
            text = cut_result(result, max_tokens * BYTES_PER_TOKEN)
            if text != result.text:
                await self._note_cut(objective_id, result.task_id, [result.task_id])
            cut[result.task_id] = replace(result, text=text)
        return [
            Finished(
                task=task,
                result=cut.get(task.id),
                read=() if task.id in cut else await self._read_of(task),
            )
            for task in tasks
        ]

    async def _read_of(self, task: Task) -> tuple[str, ...]:
        """Return the origins of everything that the tries of a task read."""
        steps = await self._store.steps(task.objective_id, owner=f"task:{task.id}")
        return tuple(origin for step in steps for origin in step.origins)

    async def _create(
        self,
        finished: Sequence[Finished],
        objective: Objective,
        journal: Journal,
        seen: Plannable,
    ) -> Planned:
        known = self._names.choose(
            [objective.spec.asked, *(one.text for one in finished)],
            context_tokens=_context_tokens(journal, Role.CREATION),
            without={one.task.id for one in finished},
        )
        try:
            reply, origins = await create_tasks(
                finished,
                objective=objective.spec.passage,
                known=known,
                journal=journal,
                max_new_tasks=self._bounds.max_new_tasks,
            )
        except FAULTS_OF_THE_TASK as error:
            # the results hold; only the tasks that could have come of them are given up
            return Planned(failure=error.what)
        plan = await self._to_planned(reply, origins, finished)
        texts = {one.task.id: one.result.text for one in finished if one.result is not None}
        return await self._mark_repeats(plan, texts, seen)

    async def _to_planned(
        self, reply: CreationReply, origins: tuple[str, ...], finished: Sequence[Finished]
    ) -> Planned:
        """Return the creation agent's reply as a plan, with the answered tasks that must be done
        again because they did not help."""
        # a proposal that names no source is taken to come from the last task that was answered
        answered = [one.task.id for one in finished if one.result is not None]
        last_id = (answered or [one.task.id for one in finished])[-1]
        proposals = [
            replace(one, parent_id=one.parent_id or last_id, origins=origins) for one in reply.tasks
        ]
        unanswered = [await self._complete(one, finished) for one in reply.unanswered]
        again = self._find_unhelpful(unanswered, {one.task.id: one.task for one in finished})
        proposals += [
            Proposal(name=name, parent_id=id_, origins=origins) for id_, name in sorted(again)
        ]
        return Planned(
            proposals=tuple(proposals),
            unanswered=tuple(unanswered),
            is_met=reply.is_met,
            dropped=reply.dropped,
        )

    def _find_unhelpful(
        self, unanswered: Sequence[Unanswered], tasks: Mapping[int, Task]
    ) -> set[tuple[int, str]]:
        """Return (id of an unanswered task, name) for each answered task that is to bring what the
        unanswered one lacks for the second time, although its result was in the prompt: that result
        does not hold what it should, so the answered task must be done again."""
        return {
            (one.task_id, name.name)
            for one in unanswered
            if tasks[one.task_id].n_lacks + (tasks[one.task_id].lack is None) > 1
            for name in self._names.named([id_ for id_ in one.after if id_ in one.shown])
            if name.status is TaskStatus.DONE
        }

    async def _complete(self, said: Unanswered, finished: Sequence[Finished]) -> Unanswered:
        """Return `said`, the creation agent's word on an unanswered task, with the ids of the
        results that were in the task's prompt added."""
        task = next(one.task for one in finished if one.task.id == said.task_id)
        steps = await self._store.steps(task.objective_id, owner=f"task:{task.id}")
        inputs = next((step.output for step in steps if step.key == f"{task.try_no}/inputs"), None)
        shown = [
            entry["task_id"]
            for entry in json.loads(inputs or "{}").get("excerpts", ())
            if "objective_id" not in entry
        ]
        return replace(said, lack=said.lack or "an answer to what it asks", shown=tuple(shown))

    async def _mark_repeats(
        self, plan: Planned, results: Mapping[int, str], seen: Plannable
    ) -> Planned:
        """Return the plan with the tasks as repeating ones whose results (texts, by task id) have
        the spelling of one of the newest earlier results."""
        known = [
            *seen.results,
            *(await self._search.results(seen.finished_ids) if results else ()),
        ]
        earliest: dict[str, int] = {}
        for one in sorted(known, key=lambda one: one.task_id):
            earliest.setdefault(name_key(one.text), one.task_id)
        return replace(
            plan,
            repeats=tuple(
                task_id
                for task_id, text in results.items()
                if earliest.get(name_key(text), task_id) != task_id
            ),
        )

    async def _listed(self, objective_id: int) -> ListedNames:
        """Return the names of the objective's tasks, after reading the new ones from the
        store."""
        read = await self._store.task_names(
            objective_id, limit=N_NAMES, after_id=self._names.event_id
        )
        self._take_names(read)
        return self._names

    def _take_names(self, read: TaskNames) -> None:
        self._names.update(read.names, event_id=read.event_id)
        for name in read.names:  # its result may have been withdrawn
            self._search.forget(name.id)

    async def _note_cut(self, objective_id: int, task_id: int, cut: list[int]) -> None:
        """Record, as an event, that the results of the tasks `cut` were shortened in the prompt for
        the task `task_id`."""
        await self._store.append_event(
            objective_id, kind=events.CONTEXT_CUT, task_id=task_id, data={"cut": cut}
        )

    # -- order
    # ----------------------------------------------------------------------------------------------

    async def see_list(self, objective: Objective) -> Window:
        """Return the part of the task list that an order is asked for."""
        return await self._store.window(objective.id, n_head=N_WINDOW_HEAD, n_new=N_WINDOW_NEW)

    async def _order(
        self, claim: DutyClaim, objective: Objective, journal: Journal, window: Window
    ) -> None:
        task_ids: tuple[int, ...] = ()
        if len(window.tasks) > 1:
            try:
                task_ids = await order_tasks(
                    window.tasks, objective=objective.spec.passage, journal=journal
                )
            except FAULTS_OF_THE_TASK as error:
                logger.warning("the task list keeps its order: %s", error.what)
        await self._finish_order(claim, journal, revision=window.revision, task_ids=task_ids)

    async def _finish_order(
        self, claim: DutyClaim, journal: Journal, *, revision: int, task_ids: Sequence[int]
    ) -> None:
        is_applied = await journal.commit(
            lambda first: self._store.reorder(
                claim, revision=revision, task_ids=task_ids, first=first
            )
        )
        if not is_applied:
            logger.info(
                "the task list changed while the model was asked for a new order; that order is "
                "not applied"
            )

    # -- check and report
    # ----------------------------------------------------------------------------------------------

    async def _check(self, claim: DutyClaim, objective: Objective, journal: Journal) -> None:
        """Check whether the objective is met. If not, and no task is left to do, also ask for tasks
        for the missing parts. Commit the judgement and the tasks at once."""
        async with journal:
            is_met, reason, checked = await self._judge(objective, journal)
        open_parts = (*checked.missing, *checked.unproven)
        proposals, fallback = list[Proposal](), list[Proposal]()
        if open_parts and await self._has_no_work_left(objective.id):
            results = await self._store.results(objective.id)
            sources = find_sources(origin for result in results for origin in result.origins)
            origins = ("model", *sources)
            fallback = [
                Proposal(name=say("answer_part", part=one_line(part)), origins=origins)
                for part in open_parts
            ]
            checked = replace(checked, unread=await self._find_unread(objective, checked))
            if checked.missing and not checked.unread:
                proposals = await self._propose_missing(objective, journal, checked, sources)
        await self._store.finish_check(
            claim,
            is_met=is_met,
            reason=reason,
            checked=checked,
            proposals=proposals,
            fallback=fallback,
        )

    async def _find_unread(self, objective: Objective, checked: Checked) -> tuple[int, ...]:
        """Return the tasks whose results nobody has read but the agent that wrote them, which
        planned from them itself, and a check that quoted nothing from them."""
        if objective.spec.planning is not Planning.COMBINED:
            return ()
        quoted = {part.task_id for part in checked.parts}
        tasks = await self._store.tasks(objective.id, statuses=(TaskStatus.DONE,))
        finished_at = {task.id: task.finished_at for task in tasks if task.id not in quoted}
        return tuple(
            result.task_id
            for result in await self._store.results(objective.id)
            # recorded and planned from in one transaction
            if finished_at.get(result.task_id) == result.created_at
        )

    async def _has_no_work_left(self, objective_id: int) -> bool:
        """Return whether no task is left to do, or the last ones brought nothing new."""
        if all(name.status in SETTLED for name in (await self._listed(objective_id)).names()):
            return True
        standing = await self._store.standing(objective_id)
        return not may_start(
            n_tasks_without_progress=standing.n_tasks_without_progress,
            n_tries_without_answer=standing.n_tries_without_answer,
        )

    async def _judge(self, objective: Objective, journal: Journal) -> tuple[bool, str, Checked]:
        """Return whether the objective is met, why not, and what was found part by part.

        The model is asked twice, the second time to doubt that the objective is met, with what the
        first reply quoted and results that were not in the first prompt whole. Where the two
        disagree, a third call decides.
        """
        asked, granted = objective.spec.asked, objective.spec.tools
        doers = {f"tool:{tool.name}" for tool in granted if tool.effect is not Effect.READ}
        results = await self._store.results(objective.id)
        # a person's claim needs no proof, and is not verified
        is_person = objective.spec.model_by_role[Role.CREATION] == HUMAN
        look = partial(
            check_objective,
            objective=objective.spec.passage,
            results=() if is_person else results,
            journal=journal,
        )
        verify = partial(look_up, results=results, objective_text=asked, doers=doers)
        show = partial(self._excerpts_for, objective, results, CHECK_TOKENS)
        new_ids = await self._find_unchecked(objective.id, results)
        excerpts, left_out = await show(parts=objective.checks.parts, unread=new_ids)
        views: list[tuple[bool, Checked]] = []
        try:
            reply = await look(excerpts=excerpts)
            if is_person:
                missing = () if reply.is_met else reply.missing
                why = "; ".join(missing)
                return reply.is_met, why, replace(NOTHING_CHECKED, missing=missing)
            views.append(verify(reply))
            unread = _find_cut(excerpts, left_out, results, first=new_ids)
            for path in ("check/doubt", "check/third"):
                seen = [part for _, found in views for part in found.parts]
                parts = [*objective.checks.parts, *seen]
                excerpts, _ = await show(parts=parts, unread=unread)
                lines = [one for _, found in views for one in (*found.missing, *found.unproven)]
                contested = [*lines, *reply.contradictions]
                reply = await look(path=path, excerpts=excerpts, contested=contested)
                views.append(verify(reply))
                settled = settle(views)
                if settled is not None:
                    break
        except FAULTS_OF_THE_TASK as error:
            found = views[-1][1] if views else NOTHING_CHECKED
            return False, f"the check could not be made: {error.what}", found
        is_met, found = settled or views[-1]
        return is_met, "" if is_met else say_why_not(found), found

    async def _find_unchecked(self, objective_id: int, results: Sequence[Result]) -> frozenset[int]:
        """Return the tasks whose results were recorded after the last check; none if there was no
        check."""
        checked = await self._store.newest_events(
            objective_id, kinds=(events.OBJECTIVE_CHECKED,), limit=1
        )
        return frozenset(
            result.task_id for result in results if checked and result.created_at >= checked[0].at
        )

    async def _propose_missing(
        self, objective: Objective, journal: Journal, checked: Checked, sources: tuple[str, ...]
    ) -> list[Proposal]:
        """Return the tasks that the creation agent proposes for the parts that a check found
        missing; it is shown the results nearest to them. `sources`: where all results come from."""
        listed, missing = await self._listed(objective.id), checked.missing
        found = await self._search.relevant(
            "\n".join(missing), k=N_NEAREST, embed=self._embedder(journal, "missing")
        )
        done = [
            await self._store.task(objective.id, one.result.task_id)
            for one in found
            if one.result.objective_id == objective.id
        ]
        loaded = await self._load_finished(objective.id, done, max_tokens=PLAN_TOKENS // N_NEAREST)
        finished = [one for one in loaded if one.result is not None]
        try:
            reply, origins = await create_tasks(
                finished,
                objective=objective.spec.passage,
                known=listed.choose(
                    [*missing, *(one.text for one in finished)],
                    without={one.task.id for one in finished},
                ),
                journal=journal,
                max_new_tasks=self._bounds.max_new_tasks,
                missing=Passage(text="\n".join(missing), origin="model", sources=sources),
            )
        except FAULTS_OF_THE_TASK as error:
            logger.warning(
                "objective %d: no tasks were proposed for the parts that no result answers: %s",
                objective.id,
                error.what,
            )
            return []
        # what the agent calls unanswered is done again, after what brings it
        name_by_id = {one.task.id: one.task.name for one in finished}
        again = [
            Proposal(name=name_by_id[one.task_id], after=one.after) for one in reply.unanswered
        ]
        return [replace(one, parent_id=None, origins=origins) for one in (*reply.tasks, *again)]

    async def _report(self, claim: DutyClaim, objective: Objective, journal: Journal) -> None:
        """Write the report: one result word for word if it answers every part, else a text that the
        model writes from the results."""
        answer, why = "", "the model wrote nothing"
        results = await self._store.results(objective.id)
        excerpts, left_out = await self._excerpts_for(
            objective, results, REPORT_TOKENS, parts=objective.checks.parts
        )
        try:
            if whole := find_whole_answer(objective, results):
                answer, left_out = await journal.keep(WHOLE_ANSWER, whole), []
            elif excerpts:
                answer = await write_answer(
                    objective,
                    excerpts=excerpts,
                    journal=journal,
                    max_output_tokens=2 * self._bounds.max_output_tokens,
                )
            else:
                why = "no task was finished"
        except (
            LimitReachedError,
            CredentialsError,
            ModelRejectedError,
            *FAULTS_OF_THE_TASK,
        ) as error:
            why = error.what
        if answer and objective.spec.output_schema is not None:
            await write_output(objective, answer, journal=journal, read=self._bounds.read_output)
        await self._finish_report(
            claim, objective, Written(text=answer, why_not=why, left_out=tuple(left_out))
        )

    async def has_answer(self, claim: DutyClaim, objective: Objective) -> bool:
        """Return whether the model has written the report's text, so that only reading it into the
        required type is left to do."""
        return bool(await self._find_answer(claim.fence, objective))

    async def _find_answer(self, fence: Fence, objective: Objective) -> str:
        return read_answer(await self._store.steps(objective.id, owner=fence.owner))

    async def _give_up_report(self, claim: DutyClaim, objective: Objective, *, why: str) -> None:
        """Write the report without a further call: with the model's text if there is one. `why` is
        the reason that the report gives for a missing text, or for a missing typed output."""
        answer, left_out = await self._find_answer(claim.fence, objective), list[Result]()
        if answer:
            results = await self._store.results(objective.id)
            show = partial(self._excerpts_for, objective, results, REPORT_TOKENS)
            left_out += (await show(parts=objective.checks.parts))[1]
            if objective.spec.output_schema is not None:
                await Journal(self._backends, fence=claim.fence).keep(NO_OUTPUT, why)
        written = Written(text=answer, why_not=why, left_out=tuple(left_out))
        await self._finish_report(claim, objective, written)

    async def _finish_report(
        self, claim: DutyClaim, objective: Objective, written: Written
    ) -> None:
        await self._store.record_report(
            claim, markdown=await compose_report(self._store, objective, written)
        )

    async def _excerpts_for(
        self,
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
            for task in await self._store.tasks(objective.id)
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


def _quotes_by_task(parts: Sequence[CheckedPart]) -> Mapping[int, str]:
    """Return what was quoted for these parts of the objective, by the tasks from whose results it
    was quoted."""
    quotes: dict[int, list[str]] = {}
    for part in parts:
        quotes.setdefault(part.task_id, []).append(part.quote)
    return {task_id: "\n".join(quoted) for task_id, quoted in quotes.items()}


def _choose_recorded(recorded: Sequence[int], results: Mapping[int, Result]) -> list[int]:
    """Return the ids of the tasks to plan from next: the first of `recorded`, as many as have
    results that fit into one prompt together, and at least one."""
    task_ids = recorded[:MAX_PLANNED]
    size = {task_id: estimate_tokens(result.text) for task_id, result in results.items()}
    chosen: list[int] = []
    for task_id in task_ids:
        if chosen and sum(size.get(id_, 0) for id_ in (*chosen, task_id)) > PLAN_TOKENS:
            break
        chosen.append(task_id)
    return chosen


def _say_last_try(task: Task) -> str:
    """Return what the task's last try found and which information it lacked, or its error, as a
    text for the model; '' if there was no earlier try."""
    if task.lack is None:
        return task.error if task.try_no > 1 else ""
    lacked = "; ".join(dict.fromkeys((*task.lack.before, task.lack.what)))
    return "\n".join(filter(None, [task.lack.found, say("still_needed", what=lacked)]))


def _context_tokens(journal: Journal, role: Role) -> int:
    """Return the context of the role's model in tokens; 0 if it is not known."""
    known = journal.abilities(role)
    return known.context_tokens if known is not None else 0


def _read_name(entry: Sequence[Any]) -> TaskName:
    origins = tuple(entry[4]) if len(entry) > 4 else ("model",)
    return TaskName(
        id=entry[0],
        name=entry[1],
        status=TaskStatus(entry[2]),
        is_lacking=entry[3],
        origins=origins,
    )


def _write_chosen(entry: Chosen) -> dict[str, Any]:
    """Return a chosen result as JSON for the journal. For a result of another objective it holds
    the task's name and the sources too, because that objective may be deleted."""
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


def is_fault_of_the_task(error: BabyagiError) -> bool:
    """Return whether the error concerns only this try of this task, and not the model or other
    tasks."""
    return isinstance(error, FAULTS_OF_THE_TASK)


def tries_for(error: BabyagiError, max_failures: int) -> int:
    """Return how many tries may fail with this error before the task is given up: 1 if another try
    would fail the same way, at most 2 if the model did not end its answer, else `max_failures`."""
    if isinstance(error, ContextTooLongError | RequestRefusedError):
        return 1
    return min(2, max_failures) if isinstance(error, EndlessAnswerError) else max_failures
