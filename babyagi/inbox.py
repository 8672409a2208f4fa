"""What a person is asked, and what their answer means to the task that asked.

Three kinds of step wait for a person: a question of the model, a tool call that is made only when
somebody approves, and a tool call
that may have been made and must not be repeated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import Any

from babyagi.errors import SettingsError
from babyagi.redaction import sounds_secret
from babyagi.tasks import Passage, Step, Task
from babyagi.text import SURROGATES, clean
from babyagi.tools.base import Observation

QUESTION = "question"
APPROVAL = "approval"
ONCE = "once"
_SURROGATE = re.compile(f"[{SURROGATES}]")


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
    """A tool call as one text that every store keeps letter by letter; the same call is the same
    text."""
    text = json.dumps(
        {"tool": tool, "arguments": dict(arguments)}, sort_keys=True, ensure_ascii=False
    )
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def read_request(step: Step) -> tuple[str, Mapping[str, Any]]:
    """The tool and the arguments that an open step is about."""
    fields = json.loads(step.request)
    return fields["tool"], fields["arguments"]


def describe(step: Step) -> str:
    """What the person is asked, in words; what a model wrote in it is shown as it wrote it."""
    tool, arguments = read_request(step)
    given = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()]
    call = f"{tool}({', '.join(given)})"
    match step.kind:
        case "question":
            return clean(str(arguments.get("question", call)))
        case "approval":
            return f"may this call be made? {clean(call)}"
        case _:
            return f"this call may have been made; what came of it? {clean(call)}"


def find_origins(step: Step, *, task: Task, steps: Sequence[Step]) -> tuple[str, ...]:
    """Return every origin of what had been read when this was asked, each once, in order; `steps`
    are those of the task."""
    try_prefix = step.key.partition("/")[0] + "/"
    before = [
        other.origins for other in steps if other.key.startswith(try_prefix) and other.id < step.id
    ]
    return tuple(dict.fromkeys(chain(task.origins, *before)))


def asks_for_secret(step: Step) -> bool:
    """Whether a model asks for what sounds like a key, a password or a number of a card. A hint for
    the person, it stops nothing."""
    return step.kind == QUESTION and sounds_secret(describe(step))


def decisions(step: Step) -> tuple[Decision, ...]:
    return _DECISIONS_BY_KIND[step.kind]


def decide(step: Step, decision: Decision, text: str) -> Observation:
    """What the task that asked will read.

    Raises:
        SettingsError: this cannot be said about such a step.
    """
    if decision not in decisions(step):
        ways = ", or ".join(
            f"babyagi {way.value} {step.id}" + (' "…"' if way is Decision.ANSWER else "")
            for way in decisions(step)
        )
        raise SettingsError(
            f"number {step.id} cannot be met with `{decision.value}`",
            why=describe(step)[:300],
            fix=ways,
            guide="inbox",
        )
    said = clean(text).strip()
    if decision is Decision.ANSWER and not said:
        raise SettingsError(
            "the answer is empty", fix=f'babyagi answer {step.id} "…"', guide="inbox"
        )
    if decision is Decision.REJECT:
        said = f"{_REJECTIONS[step.kind]} {said}".strip()
    return Observation(
        passage=Passage(text=said or "approved", origin="person"),
        is_error=decision is Decision.REJECT,
    )


def write_decision(observation: Observation, *, seen: str = "") -> str:
    """The output of the step that a person decided; `seen` is the `state` of the preview that they
    were shown."""
    return (
        json.dumps({**json.loads(observation.to_json()), "seen": seen}, ensure_ascii=False)
        if seen
        else observation.to_json()
    )


def read_seen(step: Step) -> str:
    """The state of what the call would change, as the person saw it; empty when nothing was to be
    seen."""
    return str(json.loads(step.output or "{}").get("seen", ""))
