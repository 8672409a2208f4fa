"""The report agent: has a model answer the objective from its results, as Markdown and as JSON.

`reporting/report.py` surrounds this answer with the parts of the report that a person must be able
to trust and that no model may write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from babyagi.agents.execution import Excerpt
from babyagi.agents.outcomes import OutcomeKind, judge_reply
from babyagi.agents.prompting import build_messages
from babyagi.errors import (
    BabyagiError,
    LeaseLostError,
    MalformedReplyError,
    ModelUnavailableError,
    ObjectiveStoppedError,
    StoreUnavailableError,
    StoreUnusableError,
)
from babyagi.journal import Journal
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Prompt
from babyagi.react.asking import ask
from babyagi.shapes import to_strict
from babyagi.tasks import (
    Objective,
    Passage,
    Result,
    Role,
    Step,
    StopReason,
    find_sources,
)
from babyagi.text import clean

REPORT = "report"  # path of the report's calls in its journal
OUTPUT = "output/text"  # key under which the report's journal keeps the answer as JSON
NO_OUTPUT = "output/none"  # key under which it keeps the reason why there is no JSON

ASKS_BACK = "The reply asks for something in the place of an answer."
FROM_RESULTS = "Nobody can reply to you: write the answer from the results that you were given."


async def write_answer(
    objective: Objective, *, excerpts: Sequence[Excerpt], journal: Journal, max_output_tokens: int
) -> str:
    """Ask the model to answer the objective from the excerpts, and return the answer as Markdown.
    A reply that only refuses, asks back or announces an answer is asked for again. Raises what
    `react.asking.ask` raises."""

    def read(completion: Completion) -> str:
        if fault := _find_fault(completion.text, objective):
            raise MalformedReplyError(f"{fault} {FROM_RESULTS}")
        return clean(completion.text).strip()

    sources = find_sources(source for excerpt in excerpts for source in excerpt.sources)
    messages = build_messages(
        "report",
        {
            "objective": [("objective", Passage(text=objective.spec.asked, origin="person"))],
            "stop": (objective.stop_reason or StopReason.FAILED).words,
            "missing": [
                (
                    "not answered",
                    Passage(
                        text="\n".join(objective.checks.missing), origin="model", sources=sources
                    ),
                )
            ]
            if objective.stop_reason is StopReason.UNMET and objective.checks.missing
            else [],
            "results": [excerpt.to_labelled() for excerpt in excerpts],
        },
    )
    prompt = Prompt(messages=messages, max_output_tokens=max_output_tokens)
    asked = await ask(journal, REPORT, prompt, role=Role.REPORT, read=read, read_last=read)
    return asked.value


def _find_fault(text: str, objective: Objective) -> str:
    """Return a sentence that says why the text answers nothing; "" if it may be an answer. That
    something is not known is an answer too."""
    outcome = judge_reply(text, task_name=objective.spec.asked)
    asks_back = outcome.kind is OutcomeKind.LACKING and outcome.lack.endswith("?")
    return outcome.why or (ASKS_BACK if asks_back else "")


def read_answer(steps: Sequence[Step], objective: Objective) -> str:
    """Return the answer that the model has written for the report, from the steps of its journal;
    "" if no answer is complete."""
    said = [
        Completion.from_json(step.output)
        for step in steps
        if step.output is not None and (step.key == REPORT or step.key.startswith(f"{REPORT}/"))
    ]
    whole = [
        one.text
        for one in said
        if one.finish_reason == "stop" and not one.refusal and not _find_fault(one.text, objective)
    ]
    return clean(whole[-1]).strip() if whole else ""


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
            "objective": [("objective", Passage(text=objective.spec.asked, origin="person"))],
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
    except (
        *(LeaseLostError, ObjectiveStoppedError, ModelUnavailableError),
        *(StoreUnavailableError, StoreUnusableError),
    ):
        raise
    except BabyagiError as error:
        await journal.keep(NO_OUTPUT, error.what)
    else:
        await journal.keep(OUTPUT, asked.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What the model wrote for the report.

    If it wrote nothing, `text` is empty and `why_not` gives the reason. `left_out` are the results
    that did not fit into its prompt.
    """

    text: str = ""
    why_not: str = ""
    left_out: tuple[Result, ...] = ()
