"""Finds out what a model and its server can do, with two small questions: whether tools reach the
model, and whether a reply is guaranteed to fit a schema."""

from __future__ import annotations

import json
from dataclasses import replace

from babyagi.errors import (
    ContextTooLongError,
    EndlessAnswerError,
    MalformedReplyError,
    RequestRefusedError,
    ToolsUnsupportedError,
)
from babyagi.llm.port import Abilities, Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolSpec
from babyagi.tasks import Role
from babyagi.tools.base import Calls

MAX_OUTPUT_TOKENS = 64
MIN_TOOL_TOKENS = 40  # the least size of the tool below in any tokenizer, without its schema
ASK = "Note the colour blue. If you can call a tool, call note_colour; else reply with a list."

NOTE_COLOUR = ToolSpec(
    name="note_colour",
    description=(
        "Notes one colour by its name. Give the usual English name of the colour in small letters, "
        "for instance red, green, yellow, orange, purple, brown, black or white. Call it once for "
        "each colour that you were asked to note, and wait for what it returns before you go on. "
        "It returns the number of colours that were noted so far. It never forgets a colour, and "
        "it takes no others than those that have a name."
    ),
    parameters={
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}},
        "required": ["name"],
    },
)
COLOURS = {
    "type": "object",
    "properties": {
        "colours": {"type": "array", "items": {"enum": ["blue", "red"]}, "maxItems": 2},
        "is_sure": {"type": "boolean"},
    },
    "required": ["colours", "is_sure"],
    "additionalProperties": False,
}
_FAULTS = (ContextTooLongError, RequestRefusedError, EndlessAnswerError, MalformedReplyError)


async def find_abilities(calls: Calls, path: str, known: Abilities) -> Abilities:
    """Return what the execution agent's model can do, and store it. One question is enough if the
    model calls the tool at once; else two are asked.

    Raises:
        Whatever `Calls.complete` raises that says nothing about the question.
    """
    with_tool = await _ask(calls, f"{path}/tools", replace(_PROBE, tools=(NOTE_COLOUR,)))
    if with_tool is not None and with_tool.tool_calls:
        found = replace(known, takes_tools=True)
    else:
        held = replace(_PROBE, schema_name="colours", schema=COLOURS)
        without = await _ask(calls, f"{path}/schema", held)
        found = replace(
            known,
            takes_tools=_reach(with_tool, without),
            holds_schema=without is not None and _is_held(without.text),
        )
    # keep what was learnt meanwhile from other replies
    learnt = calls.abilities(Role.EXECUTION) or known
    found = replace(learnt, takes_tools=found.takes_tools, holds_schema=found.holds_schema)
    calls.learn(Role.EXECUTION, found)
    return found


_PROBE = Prompt(
    messages=(Message(speaker=Speaker.USER, text=ASK, origins=("program",)),),
    max_output_tokens=MAX_OUTPUT_TOKENS,
)


async def _ask(calls: Calls, path: str, prompt: Prompt) -> Completion | None:
    """Return the completion, or None if the endpoint refuses such a question."""
    try:
        return await calls.complete(path, prompt, role=Role.EXECUTION)
    except (ToolsUnsupportedError, *_FAULTS):
        return None


def _reach(with_tool: Completion | None, without: Completion | None) -> bool:
    """Return whether the tool was counted in the tokens of the prompt. An endpoint that counts
    nothing, and whose model calls nothing, is assumed to drop tools."""
    if with_tool is None or without is None:
        return False
    if with_tool.usage.unconfirmed_tokens or without.usage.unconfirmed_tokens:
        return False
    return with_tool.usage.prompt_tokens - without.usage.prompt_tokens >= MIN_TOOL_TOKENS


def _is_held(text: str) -> bool:
    """Return whether the reply fits the schema, which the question does not describe."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and set(value) == {"colours", "is_sure"}
