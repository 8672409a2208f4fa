"""Reads tool calls that a model wrote as text, whatever it put around them: code fences, tags,
doubled braces, words.

A reply that consists of calls is these calls. With words around it, a single call of a tool that
only reads is still made if it is the longer part of the reply; else the words may quote it. Another
call with words around it may be a quotation however few they are, and is never made: the model is
asked for the call alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any

from babyagi.errors import MalformedReplyError
from babyagi.llm.port import Completion
from babyagi.llm.prompt import ToolCall
from babyagi.react.protocols.base import say
from babyagi.react.steps import ENDS, FINAL_ANSWER, Act, AgentDecision, Fail, Finish
from babyagi.react.values import find_values, read_json
from babyagi.tasks import Effect
from babyagi.tools.base import Tool

NO_REASON = "no reason was given"
MAX_LOOKED_AT = 20  # places in a text that are tried as the beginning of a value

_NAMES = ("name", "tool", "function", "action")
_ARGUMENTS = ("arguments", "parameters", "tool_input", "action_input", "input", "args")
_BESIDE = frozenset(("thought", "id", "type"))
_AROUND = re.compile(r"`{3}\w{0,10}|</?(?:tool|function)_calls?>")
_OPENING = re.compile(r"[{\[]")
_SEPARATING = " \t\r\n,;"

Named = tuple[str, Any]
"""The name and the arguments of a call."""


def read_written(
    text: str, tools: Iterable[Tool], *, is_alone: bool = False
) -> AgentDecision | None:
    """Return the decision that is written in the text as JSON: calls of these tools, or an end;
    None if there is none.

    Args:
        is_alone: whether a decision counts only if the text has nothing else in it.

    Raises:
        MalformedReplyError: it calls a tool that is not offered, or may only quote a call.
    """
    tool_by_name = {tool.name: tool for tool in tools}
    calls, words = _find_calls(text, tool_by_name)
    if not calls or (is_alone and words):
        return None
    (name, given), *others = calls
    if not others and name in ENDS:
        return end(name, given, text=words, log=words)
    is_talk = 2 * len(words) > len(text)
    if unknown := [one for one, _ in calls if one not in tool_by_name and one not in ENDS]:
        if is_talk or not tool_by_name:
            return None  # a text with some object in it
        known = ", ".join(tool_by_name)
        raise MalformedReplyError(say("unknown_tool", name=unknown[0][:100], known=known))
    if words and (is_talk or others or tool_by_name[name].effect is not Effect.READ):
        raise MalformedReplyError(say("call_alone"))
    made = [
        ToolCall(id=f"written_{at}", name=name, arguments=_write(given))
        for at, (name, given) in enumerate(calls, start=1)
    ]
    return _act(made, text=words)


def read_called(completion: Completion) -> AgentDecision:
    """Return the decision in a reply with native tool calls. An end counts only if nothing else is
    called; else the other calls are made, and the model decides anew."""
    calls, text = completion.tool_calls, completion.text
    if all(call.name in ENDS for call in calls):
        given = read_json(calls[0].arguments, calls[0].arguments)
        return end(calls[0].name, given, text=text.strip(), log=text)
    return _act(calls, text=text)


def _act(calls: Iterable[ToolCall], *, text: str) -> Act:
    """Return the decision to make the calls, without ends among them."""
    kept = tuple(call for call in calls if call.name not in ENDS)
    return Act(calls=kept, thought=text.strip(), log=text)


def end(name: str, given: Any, *, log: str, text: str = "") -> Finish | Fail:
    """Return the answer, or the failure with its reason.

    Args:
        text: what the model said beside the end; of an end without an answer, it is the answer.

    Raises:
        MalformedReplyError: the answer is empty.
    """
    if name != FINAL_ANSWER:
        parts = given.values() if isinstance(given, dict) else [given]
        reason = "; ".join(filter(None, map(as_text, parts))).strip()
        return Fail(reason=reason or NO_REASON, log=log, text=text)
    said = as_text(given).strip()
    if not (said or text):
        raise MalformedReplyError(say("no_answer"))
    return Finish(output=said or text, log=log)


def as_text(given: Any) -> str:
    """Return the text of an answer or a reason. It may be given as a string, as an object whose
    only value is one, or as other JSON, which is returned as text; nothing, and an object without
    anything in it, is an empty text."""
    if isinstance(given, dict) and len(given) < 2:
        inner = next(iter(given.values()), None)
        given = inner if inner is None or isinstance(inner, str) else given
    return "" if given is None else _write(given)


def unwrap(text: str) -> str:
    """If the text is a JSON object with a single text, return that; else the text."""
    inner = as_text(read_json(text, text)) if text.startswith("{") else text
    return text if inner.startswith("{") else inner


def _write(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


# -- finding calls
# --------------------------------------------------------------------------------------------------


def _find_calls(text: str, tool_names: Collection[str]) -> tuple[list[Named], str]:
    """Return the calls in the text, and the words around them."""
    for one in (text, text.replace("{{", "{").replace("}}", "}")):
        calls, words, at = list[Named](), "", 0
        for value, start, end in find_values(one):
            if found := _read_calls(value, tool_names):
                calls += found
                words, at = f"{words}\n{one[at:start]}", end
        if calls:
            return calls, _AROUND.sub("", f"{words}\n{one[at:]}").strip(_SEPARATING)
    return [], text


def _read_calls(value: Any, tool_names: Collection[str]) -> list[Named]:
    """Return the calls that the value is: an object, a list of them, or an object around such a
    list; an empty list if it, or a part of it, is no call."""
    if isinstance(value, dict) and len(value) == 1:
        (inner,) = value.values()
        value = inner if isinstance(inner, list) else value
    found = [_read_call(one, tool_names) for one in (value if isinstance(value, list) else [value])]
    calls = [call for call in found if call is not None]
    return calls if len(calls) == len(found) else []


def _read_call(value: Any, tool_names: Collection[str]) -> Named | None:
    """Return the call if the value looks like one: an object with a name and arguments, or within
    such an object. An object with the name of an offered tool alone is a call as well."""
    if not isinstance(value, dict):
        return None
    name = next((key for key in _NAMES if isinstance(value.get(key), str)), "")
    given = next((key for key in _ARGUMENTS if key in value), "")
    around = set(value) - {name, given} - _BESIDE
    if not name and len(around) == 1:
        return _read_call(value[around.pop()], tool_names)
    if around or not name or not (given or value[name] in tool_names):
        return None
    end = value[name].strip().casefold().replace(" ", "_")
    return end if end in ENDS else value[name], value.get(given, "")
