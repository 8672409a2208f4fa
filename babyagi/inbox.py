"""What a person is asked, and what their answer means to the task that asked.

Three kinds of step wait for a person: a question of the model, a tool call that is made only when somebody approves, and a tool call
that may have been made and must not be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from babyagi.errors import SettingsError
from babyagi.llm.prompt import clean
from babyagi.tasks import Passage, Step
from babyagi.tools.base import Observation

QUESTION = "question"
APPROVAL = "approval"
ONCE = "once"


class Decision(StrEnum):
    """What a person can say about an open step."""

    ANSWER = "answer"
    APPROVE = "approve"
    REJECT = "reject"


_DECISIONS_BY_KIND = {
    QUESTION: (Decision.ANSWER, Decision.REJECT),
    APPROVAL: (Decision.APPROVE, Decision.REJECT),
    ONCE: (Decision.ANSWER, Decision.REJECT),
}
_REJECTIONS = {
    QUESTION: "The person does not answer this.",
    APPROVAL: "Not done: a person did not allow this call.",
    ONCE: "Not done: a person says that this call was not carried out.",
}


def write_request(tool: str, arguments: Mapping[str, Any]) -> str:
    """A tool call as one text; the same call is the same text."""
    return json.dumps({"tool": tool, "arguments": dict(arguments)}, sort_keys=True, ensure_ascii=False)


def read_request(step: Step) -> tuple[str, Mapping[str, Any]]:
    """The tool and the arguments that an open step is about."""
    fields = json.loads(step.request)
    return fields["tool"], fields["arguments"]


def describe(step: Step) -> str:
    """What the person is asked, in words; what a model wrote in it is shown as it wrote it."""
    tool, arguments = read_request(step)
    call = f"{tool}({', '.join(f'{name}={json.dumps(value, ensure_ascii=False)}' for name, value in arguments.items())})"
    match step.kind:
        case "question":
            return clean(str(arguments.get("question", call)))
        case "approval":
            return f"may this call be made? {clean(call)}"
        case _:
            return f"this call may have been made; what came of it? {clean(call)}"


def decisions(step: Step) -> tuple[Decision, ...]:
    return _DECISIONS_BY_KIND[step.kind]


def decide(step: Step, decision: Decision, text: str) -> Observation:
    """What the task that asked will read.

    Raises:
        SettingsError: this cannot be said about such a step.
    """
    if decision not in decisions(step):
        ways = ", or ".join(f"babyagi {way.value} {step.id}" + (' "…"' if way is Decision.ANSWER else "") for way in decisions(step))
        raise SettingsError(f"number {step.id} cannot be met with `{decision.value}`", why=describe(step)[:300], fix=ways, guide="inbox")
    said = clean(text).strip()
    if decision is Decision.ANSWER and not said:
        raise SettingsError("the answer is empty", fix=f'babyagi answer {step.id} "…"', guide="inbox")
    if decision is Decision.REJECT:
        said = f"{_REJECTIONS[step.kind]} {said}".strip()
    return Observation(passage=Passage(text=said or "approved", origin="person"), is_error=decision is Decision.REJECT)
