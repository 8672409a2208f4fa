"""The report agent: has a model answer the objective from its results, as Markdown and as JSON.

`reporting/report.py` surrounds this answer with the parts of the report that a person must be able
to trust and that no model may write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from babyagi.agents.execution import Excerpt
from babyagi.agents.outcomes import find_fault
from babyagi.agents.prompting import build_messages, to_field
from babyagi.agents.replies import visible
from babyagi.errors import (
    FAULTS_OF_THE_TASK,
    CredentialsError,
    LimitReachedError,
    MalformedReplyError,
    ModelRejectedError,
)
from babyagi.journal import Journal
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Prompt
from babyagi.llm.shapes import to_strict
from babyagi.react.asking import ask
from babyagi.tasks import (
    ANSWER_TASK,
    Objective,
    Passage,
    Result,
    Role,
    Step,
    StopReason,
    find_sources,
)

REPORT = "report"  # path of the report's calls in its journal
WHOLE_ANSWER = "answer/whole"  # key under which it keeps a result that is the whole answer
OUTPUT = "output/text"  # key under which the report's journal keeps the answer as JSON
NO_OUTPUT = "output/none"  # key under which it keeps the reason why there is no JSON

# after these the report is written without a model
WITHOUT_A_MODEL = (LimitReachedError, CredentialsError, ModelRejectedError, *FAULTS_OF_THE_TASK)


def find_whole_answer(objective: Objective, results: Sequence[Result]) -> str:
    """Return the text of the result that is the whole answer; "" if there is none. It is the only
    result, if its task was the objective itself, whatever the check says; or the one result that
    the last check named for every part of the objective, proven or not."""
    if len(results) == 1 and results[0].task_name == ANSWER_TASK:
        return results[0].text
    reasons = (StopReason.FINISHED, StopReason.OBJECTIVE_MET, StopReason.UNMET)
    is_answered = objective.stop_reason in reasons and not objective.checks.missing
    named = {part.task_id for part in objective.checks.parts}
    if not is_answered or len(named) != 1 or objective.checks.contradictions:
        return ""
    return next((one.text for one in results if one.task_id in named and not one.lack), "")


async def write_answer(
    objective: Objective, *, excerpts: Sequence[Excerpt], journal: Journal, max_output_tokens: int
) -> str:
    """Ask the model to answer the objective from the excerpts, and return the answer as Markdown.
    A reply is never refused for its wording; one that by its form is no answer is asked for again.
    Raises what `react.asking.ask` raises."""

    sources = find_sources(source for excerpt in excerpts for source in excerpt.sources)
    is_unmet = objective.stop_reason is StopReason.UNMET
    missing = objective.checks.missing if is_unmet else ()
    messages = build_messages(
        "report",
        {
            "objective": [("objective", objective.spec.passage)],
            "stop": (objective.stop_reason or StopReason.FAILED).words,
            "missing": to_field("not answered", missing, sources=sources),
            "contradictions": to_field(
                "contradictory results", objective.checks.contradictions, sources=sources
            ),
            "results": [excerpt.to_labelled() for excerpt in excerpts],
        },
    )

    def read(completion: Completion) -> str:
        text = visible(completion.text)
        if fault := find_fault(text, task_name=objective.spec.asked, messages=messages):
            raise MalformedReplyError(fault)
        return text

    prompt = Prompt(messages=messages, max_output_tokens=max_output_tokens)
    asked = await ask(journal, REPORT, prompt, role=Role.REPORT, read=read, may_be_cut=True)
    return asked.value


def read_answer(steps: Sequence[Step]) -> str:
    """Return the answer that the model has written for the report, from the steps of its journal;
    "" if no answer is complete."""
    said = [
        Completion.from_json(step.output)
        for step in steps
        if step.output is not None and (step.key == REPORT or step.key.startswith(f"{REPORT}/"))
    ]
    kept = [step.output for step in steps if step.key == WHOLE_ANSWER and step.output]
    if kept:
        return str(json.loads(kept[-1]))
    whole = [one.text for one in said if one.finish_reason == "stop" and not one.refusal]
    return visible(whole[-1]) if whole else ""


async def write_output(
    objective: Objective, report: str, *, journal: Journal, read: Callable[[str], object]
) -> None:
    """Ask the model for the report's content as JSON of the type that the caller's program wants,
    and store it in the journal. If the model fails to provide it, store the reason; the report
    remains valid.

    Args:
        read: raises `MalformedReplyError` for a text that is not of that type.

    Raises:
        ModelUnavailableError: an outage, so a later try may work; nothing is stored.
    """
    schema = objective.spec.output_schema or {}
    messages = build_messages(
        "output",
        {
            "objective": [("objective", objective.spec.passage)],
            "report": [("report", Passage(text=report, origin="model"))],
            "schema": json.dumps(schema, ensure_ascii=False),
        },
    )

    def read_reply(completion: Completion) -> str:
        read(completion.text)
        return completion.text

    prompt = Prompt(messages=messages, schema_name="output", schema=to_strict(schema))
    try:
        asked = await ask(journal, "output", prompt, role=Role.REPORT, read=read_reply)
    except WITHOUT_A_MODEL as error:
        await journal.keep(NO_OUTPUT, error.what)
    else:
        await journal.keep(OUTPUT, asked.value)


@dataclass(frozen=True, slots=True)
class Written:
    """What the model wrote for the report.

    If it wrote nothing, `text` is empty and `why_not` gives the reason. `left_out` are the results
    that did not fit into its prompt.
    """

    text: str = ""
    why_not: str = ""
    left_out: tuple[Result, ...] = ()
