"""The duty of the report: the text that answers the objective, and what is written without one."""

from __future__ import annotations

from collections.abc import Sequence

from babyagi.agents.report import (
    NO_OUTPUT,
    WHOLE_ANSWER,
    WITHOUT_A_MODEL,
    Written,
    find_whole_answer,
    read_answer,
    write_answer,
    write_output,
)
from babyagi.duties.checking import choose_excerpts
from babyagi.duties.resources import Resources
from babyagi.reporting.report import compose_report
from babyagi.tasks import DutyClaim, Objective, Result
from babyagi.taskstore.sql.store import TaskStore

RESULT_TOKENS = 12_000  # of results in the report's prompt


async def write(resources: Resources, claim: DutyClaim, objective: Objective) -> None:
    """Write the report: one result word for word if it answers every part, else a text that the
    model writes from the results."""
    journal, bounds = resources.journal(claim), resources.bounds
    answer, why = "", "the model wrote nothing"
    left_out: Sequence[Result] = ()
    results = await resources.store.results(objective.id)
    try:
        if whole := find_whole_answer(objective, results):
            answer = await journal.keep(WHOLE_ANSWER, whole)
        else:
            excerpts, left_out = await choose_excerpts(
                resources.store, objective, results, RESULT_TOKENS, parts=objective.checks.parts
            )
            if excerpts:
                answer = await write_answer(
                    objective,
                    excerpts=excerpts,
                    journal=journal,
                    max_output_tokens=2 * bounds.max_output_tokens,
                )
            else:
                why = "no task was finished"
    except WITHOUT_A_MODEL as error:
        why = error.what
    if answer and objective.spec.output_schema is not None:
        await write_output(objective, answer, journal=journal, read=bounds.read_output)
    await _record(resources, claim, objective, Written(answer, why, tuple(left_out)))


async def give_up(
    resources: Resources, claim: DutyClaim, objective: Objective, *, why: str
) -> None:
    """Write the report without a further call: with the model's text if there is one. `why` is the
    reason that the report gives for a missing text, or for a missing typed output."""
    store = resources.store
    answer = await find_answer(store, claim)
    left_out: Sequence[Result] = ()
    if answer:
        results = await store.results(objective.id)
        _, left_out = await choose_excerpts(
            store, objective, results, RESULT_TOKENS, parts=objective.checks.parts
        )
        if objective.spec.output_schema is not None:
            await resources.journal(claim).keep(NO_OUTPUT, why)
    await _record(resources, claim, objective, Written(answer, why, tuple(left_out)))


async def _record(
    resources: Resources, claim: DutyClaim, objective: Objective, written: Written
) -> None:
    markdown = await compose_report(resources.store, objective, written)
    await resources.store.record_report(claim, markdown=markdown)


async def find_answer(store: TaskStore, claim: DutyClaim) -> str:
    """Return the text that the model has written for the report; "" if there is none."""
    return read_answer(await store.steps(claim.fence.objective_id, owner=claim.fence.owner))
