"""The content of a step in the journal as texts, without keys and passwords: the prompt and the
reply, the call and its output, the question and the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from babyagi import inbox
from babyagi.llm.kept import read_prompt
from babyagi.llm.prompt import Message, ToolCall
from babyagi.redaction import redact
from babyagi.tasks import Step, StepState
from babyagi.text import one_line, say_count, shorten

MODEL, EMBEDDING, INPUTS = "model", "embedding", "inputs"
MAX_ARGUMENT_CHARS = 60  # characters of each argument, when a call is one line
MAX_CALL_CHARS = 160
_MARKS = re.compile(r"^([-*+]|[#>]+) +|\*\*|^[*]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One text of a step (a recorded call). `label` is its kind: `system`, `user`, `assistant`,
    `tool`, `reply`, `calls`, `gave`, `failed`, `question`, `answer` and so on. `is_said_before`: an
    earlier prompt contained the same text."""

    label: str
    text: str
    is_said_before: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A step (one recorded call of a model or a tool, or a question to a person) as texts in order,
    such as the prompt and the reply. `n` counts from 1 within the list from which it was
    read."""

    n: int
    step: Step
    title: str
    parts: tuple[Part, ...] = ()
    missing: str = ""  # what is unknown about it, and why

    @property
    def took_s(self) -> float | None:
        """Return how many seconds the recorded call took; None if its beginning or its end is not
        known."""
        if self.step.done_at is None or self.step.done_at == self.step.created_at:
            return None
        return (self.step.done_at - self.step.created_at).total_seconds()


def read_exchanges(steps: Sequence[Step], *, secrets: Iterable[str] = ()) -> list[Exchange]:
    """Return the content of the steps of one task, or of one run of a duty such as planning, in
    order.

    Args:
        secrets: texts to hide, in addition to strings that look like keys.
    """
    hidden = tuple(secrets)
    request_by_key = {step.key: step.request for step in steps}
    return [
        _read_exchange(n, step, request_by_key, hidden) for n, step in enumerate(steps, start=1)
    ]


def _read_exchange(
    n: int, step: Step, request_by_key: Mapping[str, str], secrets: Sequence[str]
) -> Exchange:
    missing, parts = "", list[Part]()
    if step.kind == MODEL:
        missing, parts = _read_asked(step, request_by_key)
        parts += _reply_parts(step)
    elif step.kind == INPUTS:
        kept = json.dumps(_load(step.output), indent=1, ensure_ascii=False)
        parts = [Part(label="kept", text=kept)]
    elif step.kind != EMBEDDING:
        parts = [*_call_parts(step), *_gave_parts(step)]
    clean = tuple(
        replace(part, text=redact(part.text, secrets=secrets)) for part in parts if part.text
    )
    title = redact(describe_step(step), secrets=secrets)
    return Exchange(n=n, step=step, title=title, parts=clean, missing=missing)


# -- a call of a model
# --------------------------------------------------------------------------------------------------


def _read_asked(step: Step, request_by_key: Mapping[str, str]) -> tuple[str, list[Part]]:
    """Return what is unknown of the prompt, and why; and its texts."""
    asked = read_prompt(step.request, request_by_key.get)
    if asked is None:
        return "its prompt cannot be read", []
    parts = [
        Part(label=one.speaker.value, text=_message_text(one), is_said_before=n < asked.n_same)
        for n, one in enumerate(asked.messages)
    ]
    tools = ", ".join(asked.tools)
    parts.append(Part(label="tools", text=tools, is_said_before=asked.n_same > 0))
    return "", parts


def _message_text(message: Message) -> str:
    calls = [write_call(call.name, call.arguments) for call in message.tool_calls]
    return "\n".join(filter(None, [message.text, *calls]))


def _reply_parts(step: Step) -> list[Part]:
    reply = _load(step.output)
    if not isinstance(reply, dict):
        return []
    calls = [ToolCall(**call) for call in reply.get("tool_calls", ())]
    called = "\n".join(write_call(call.name, call.arguments) for call in calls)
    said = [
        Part(label="reply", text=str(reply.get("text", ""))),
        Part(label="refusal", text=str(reply.get("refusal", ""))),
        Part(label="calls", text=called),
    ]
    if reply.get("finish_reason") == "length":
        said.append(Part(label="cut", text="the reply was cut off at its maximum length"))
    return said


# -- a call of a tool, a question, an approval
# --------------------------------------------------------------------------------------------------


def _call_parts(step: Step) -> list[Part]:
    request = _load(step.request)
    if not isinstance(request, dict) or "tool" not in request:
        return []
    if step.kind == inbox.QUESTION:
        return [Part(label="question", text=inbox.describe(step))]
    arguments = json.dumps(request.get("arguments", {}), indent=1, ensure_ascii=False)
    return [Part(label="arguments", text=arguments)]


_SAID_BY = {
    inbox.QUESTION: ("answer", "not answered"),
    inbox.APPROVAL: ("approved", "rejected"),
    inbox.CHANGED: ("approved", "rejected"),
}


def _gave_parts(step: Step) -> list[Part]:
    given = _load(step.output)
    if not isinstance(given, dict) or "passage" not in given:
        return []
    good, bad = _SAID_BY.get(step.kind, ("gave", "failed"))
    label = bad if given.get("is_error") else good
    return [Part(label=label, text=str(given["passage"].get("text", "")))]


# -- one line
# --------------------------------------------------------------------------------------------------


def describe_step(step: Step) -> str:
    """Return the step (a recorded call) in a few words: `model gpt-x`, `tool read_file(path="a.md")
    → 3.1 kB`."""
    match step.kind:
        case "model" | "embedding":
            return f"{step.kind} {one_line(step.model)}".rstrip()
        case "inputs":
            return "its inputs" if step.key.endswith("inputs") else "a note"
        case "question":
            return f"question: {_answered(step)}"
        case "approval":
            return f"approval of {describe_call(step.request)}: {_answered(step)}"
        case "changed":
            return f"{one_line(inbox.describe(step))}: {_answered(step)}"
    return f"tool {describe_call(step.request)}{_gave(step)}"


def describe_call(request: str) -> str:
    """Return the tool call in a step's stored request as one line of bounded length; `?` if the
    request holds none."""
    fields = _load(request)
    if not isinstance(fields, dict) or "tool" not in fields:
        return "?"
    return write_call(str(fields["tool"]), fields.get("arguments", {}), is_short=True)


def write_call(name: str, arguments: Mapping[str, Any] | str, *, is_short: bool = False) -> str:
    """Return `name(path="a.md", n=3)`; arguments that are not a JSON object are shown unchanged."""
    given = _load(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(given, Mapping):
        return f"{one_line(name)}({one_line(str(arguments))})"
    values = [json.dumps(value, ensure_ascii=False) for value in given.values()]
    if is_short:
        values = [shorten(value, MAX_ARGUMENT_CHARS) for value in values]
    said = ", ".join(f"{key}={value}" for key, value in zip(given, values, strict=True))
    call = f"{one_line(name)}({said})"
    return shorten(one_line(call), MAX_CALL_CHARS) if is_short else call


def first_line(text: str, *, max_chars: int = 200) -> str:
    """Return the first line that is not empty, without Markdown marks; and the next line if the
    first one ends with a colon."""
    lines = (_MARKS.sub("", one_line(line)).strip() for line in text.splitlines())
    first, following = (*islice((line for line in lines if line.strip("-_")), 2), "", "")[:2]
    return shorten(f"{first} {following}" if first.endswith(":") else first, max_chars).strip()


def said_in(step: Step) -> str:
    """Return the outcome that is recorded in a step: the tool's output, or the person's answer; ""
    if there is no outcome yet."""
    return "".join(part.text for part in _gave_parts(step))


def _answered(step: Step) -> str:
    if step.state is not StepState.DONE:
        return "not answered yet"
    return "".join(part.label for part in _gave_parts(step)) or "done"


def _gave(step: Step) -> str:
    for part in _gave_parts(step):
        failed = f" failed: {first_line(part.text, max_chars=100)}"
        return failed if part.label == "failed" else f" → {_size(part.text)}"
    return "" if step.state is StepState.DONE else f" ({step.state.value})"


def _size(text: str) -> str:
    n_bytes = len(text.encode("utf-8", "replace"))
    return say_count(n_bytes, "byte") if n_bytes < 1000 else f"{n_bytes / 1000:.1f} kB"


def _load(text: str | None) -> Any:
    """Return the value of JSON text; None if the text is not valid JSON."""
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
