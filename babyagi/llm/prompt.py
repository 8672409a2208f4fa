"""Prompts: messages made of passages, and the fence that keeps data from being read as
instructions.

A fence is a pair of lines around a text. The first line says what the text is and where it came
from; both lines contain a mark. An objective has one mark, so that a server can keep what it has
read of a prompt. No text can hold it: `seal` breaks the mark where a text has it, and then inserts
it into the fences. Before that, `UNMARKED` stands in its place, a character that no passage can
contain. A mark never goes into the arguments of a tool (`unmark`).
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from babyagi.llm.shapes import is_deep
from babyagi.tasks import Passage
from babyagi.text import GAP, MARK_LETTERS, clean, disarm

UNMARKED = "\x02"
MARK_CHARS = 4  # few tokens; a text that guesses the mark gains nothing
MAX_SOURCES_SAID = 3
# How many fenced passages and disarmed replies are cached for all running tasks together. Each
# request of an agent contains those of the request before it; beyond a few requests of each they
# would only take memory, 3 to 10 kB each.
N_SHOWN = 256
_FENCED = re.compile(
    rf"(?s)<<(?P<label>[\w ]+) {UNMARKED} from (?P<origin>[^\n]*)\n(?P<text>.*?)\n{UNMARKED}>>"
)
_CUTTABLE = ("result:", "tool:", "private:", "file:")
MIN_CUTTABLE_CHARS = 200

TEMPLATE_TOKENS = 48  # what a server's chat template may add, such as the date
TOOLS_TEMPLATE_TOKENS = 200  # what it may add to explain how tools are called

_LETTERS_AND_BLANKS = bytes(n for n in range(128) if chr(n).isalpha() or chr(n).isspace())


class Speaker(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's request to run a tool. `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a prompt. `origins` names every source of text in it."""

    speaker: Speaker
    text: str
    origins: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""

    # The same text as the generated method returns, in a fifth of the time: the digest of a request
    # is computed from the `repr` of all its messages.
    def __repr__(self) -> str:
        speaker = self.speaker
        return (
            f"Message(speaker=<Speaker.{speaker.upper()}: '{speaker}'>, text={self.text!r}, "
            f"origins={self.origins!r}, tool_calls={self.tool_calls!r}, "
            f"tool_call_id={self.tool_call_id!r})"
        )

    # Each request looks all its messages up in a cache; these fields are enough to tell them apart.
    def __hash__(self) -> int:
        return hash((self.text, self.tool_calls))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model sees it. `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request to a chat model.

    `schema_name` and `schema` request a JSON reply that follows that JSON Schema, if the endpoint
    supports it. With `is_schema_late` the text describes the schema in words, and the schema
    itself, which costs tokens, is sent only if the words were not enough. `max_output_tokens`
    limits the reply, and with it the cost that is reserved for the call. The reply should end
    before the first of the words in `stop` (at most 4); an endpoint may ignore them.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    schema_name: str = ""
    schema: Mapping[str, Any] | None = None
    is_schema_late: bool = False
    max_output_tokens: int = 2000
    stop: tuple[str, ...] = ()

    @property
    def origins(self) -> tuple[str, ...]:
        """Return the origins (sources) of all texts in the prompt, each once, in order of
        appearance."""
        origins = (origin for message in self.messages for origin in message.origins)
        return tuple(dict.fromkeys(origins))


@lru_cache(maxsize=N_SHOWN)
def fence(label: str, passage: Passage) -> str:
    """Return the passage between the lines `<<label MARK from ORIGIN` and `MARK>>`, which no text
    can forge. Anything in the passage that looks like such a line is made harmless."""
    return _fence(label, _say_origin(passage), disarm(clean(passage.text)))


def _fence(label: str, origin: str, text: str) -> str:
    return f"<<{label} {UNMARKED} from {origin}\n{text}\n{UNMARKED}>>"


def _say_origin(passage: Passage) -> str:
    """Return where a text came from, such as `model, after file:a.md and 2 more`. Blanks and signs
    in a file name become `_`, so that the name cannot add words to the line."""
    names = (disarm(name) for name in (passage.origin, *passage.sources))
    origin, *sources = [re.sub(r"[^\w./:@+~=-]+", "_", name) for name in names]
    if not sources:
        return origin
    by = " by model" if origin.startswith("result:") else ""
    unsaid = sources[MAX_SOURCES_SAID:]
    n_more = sum(int(one[5:]) if one.startswith("more:") else 1 for one in unsaid)
    more = f" and {n_more} more" if n_more else ""
    return f"{origin}{by}, after {', '.join(sources[:MAX_SOURCES_SAID])}{more}"


def mark_of(secret: str, objective: str) -> str:
    """Return the mark of the objective's fences.

    Args:
        secret: a text that no author of a passage can know; the mark is made from it.
        objective: what names the objective, wherever it is worked on.
    """
    drawn = hmac.digest(secret.encode(), objective.encode(), "sha256")[:MARK_CHARS]
    return "".join(MARK_LETTERS[byte % len(MARK_LETTERS)] for byte in drawn)


def seal(prompt: Prompt, mark: str) -> Prompt:
    """Return the prompt as it is sent: its fences (the lines around texts) have the mark, and no
    text in them does. What looks like a fence in earlier replies of the model is made harmless."""
    return replace(prompt, messages=tuple([_seal(message, mark) for message in prompt.messages]))


def unmark(arguments: Mapping[str, Any], mark: str) -> dict[str, Any]:
    """Return the arguments of a tool call without the mark, which nobody outside may learn."""
    found: dict[str, Any] = _in_texts(dict(arguments), lambda text: text.replace(mark, ""))
    return found


def _seal(message: Message, mark: str) -> Message:
    if message.speaker is Speaker.SYSTEM:
        return message
    if message.speaker is Speaker.ASSISTANT:
        message = _disarm_reply(message)
    text = message.text
    calls = message.tool_calls
    if mark in text or any(mark in call.arguments for call in calls):
        broken = f"{mark[:2]}{GAP}{mark[2:]}"
        text = text.replace(mark, broken)
        calls = tuple(
            replace(call, arguments=call.arguments.replace(mark, broken)) for call in calls
        )
    elif UNMARKED not in text:
        return message
    return Message(
        speaker=message.speaker,
        text=text.replace(UNMARKED, mark),
        origins=message.origins,
        tool_calls=calls,
        tool_call_id=message.tool_call_id,
    )


@lru_cache(maxsize=N_SHOWN)
def _disarm_reply(message: Message) -> Message:
    calls = [replace(one, arguments=_disarm_json(one.arguments)) for one in message.tool_calls]
    return replace(message, text=_disarm(message.text), tool_calls=tuple(calls))


def _disarm_json(written: str) -> str:
    """Return the JSON with every string in it made harmless; unchanged if that changes nothing."""
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):
        return _disarm(written)
    if is_deep(value):
        return _disarm(written)
    disarmed = _in_texts(value, _disarm)
    return disarm(written) if disarmed == value else json.dumps(disarmed, ensure_ascii=False)


def _disarm(text: str) -> str:
    return disarm(clean(text))


def _in_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return the JSON value with each text in it changed, keys as well."""
    match value:
        case str():
            return change(value)
        case list():
            return [_in_texts(one, change) for one in value]
        case dict():
            return {change(key): _in_texts(one, change) for key, one in value.items()}
        case _:
            return value


def shrink(prompt: Prompt) -> Prompt | None:
    """Return the prompt with half of its data removed: of results, tool outputs and files, never of
    instructions. Tool outputs are cut first, the oldest before the others; then results and files,
    the last ones first. None if there is too little to cut."""
    found = [
        (place, match)
        for place, message in enumerate(prompt.messages)
        for match in _FENCED.finditer(message.text)
        if match["origin"].startswith(_CUTTABLE)
    ]
    n_chars = sum(len(match["text"]) for _, match in found)
    if n_chars < MIN_CUTTABLE_CHARS:
        return None
    observations = {at for at, one in enumerate(prompt.messages) if one.speaker is Speaker.TOOL}
    kept_last = [one for one in reversed(found) if one[0] in observations]
    left, kept_chars = n_chars // 2, {}
    for place, match in [*(one for one in found if one[0] not in observations), *kept_last]:
        kept_chars[place, match.start()] = min(left, len(match["text"]))
        left -= kept_chars[place, match.start()]
    cut = [_recut_message(one, at, kept_chars) for at, one in enumerate(prompt.messages)]
    smaller = replace(prompt, messages=tuple(cut))
    return smaller if prompt_text_bytes(smaller) < prompt_text_bytes(prompt) else None


def _recut_message(
    message: Message, place: int, kept_chars: Mapping[tuple[int, int], int]
) -> Message:
    def recut(match: re.Match[str]) -> str:
        text = match["text"]
        n_more = len(text) - kept_chars.get((place, match.start()), len(text))
        if n_more <= 0:
            return match[0]
        said = f"{n_more} characters were cut: the prompt did not fit the model's context"
        kept = text[: len(text) - n_more]
        return _fence(match["label"], match["origin"], f"{kept}\n… {said}".lstrip())

    return replace(message, text=_FENCED.sub(recut, message.text))


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of the text: its UTF-8 bytes / 4, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


def estimate_prompt_tokens(prompt: Prompt) -> int:
    """Estimate the tokens of all texts in the prompt that the model reads, as `estimate_tokens`
    does."""
    return -(-prompt_text_bytes(prompt) // 4)


def prompt_text_bytes(prompt: Prompt) -> int:
    """Return the size, in UTF-8 bytes, of all texts in the prompt that the model reads."""
    return sum(len(part.encode("utf-8", "replace")) for part in _read_parts(prompt))


def _read_parts(prompt: Prompt) -> list[str]:
    """Return the texts in the prompt that the model reads."""
    tools = [one.name + one.description + json.dumps(dict(one.parameters)) for one in prompt.tools]
    return [
        *(message.text for message in prompt.messages),
        *(call.name + call.arguments for message in prompt.messages for call in message.tool_calls),
        *tools,
        json.dumps(dict(prompt.schema)) if prompt.schema is not None else "",
    ]


def bound_text_tokens(text: str) -> int:
    """Return an upper bound of the text's tokens that holds in practice: a third of its letters and
    blanks, plus each other byte.

    Measured tokenizers use 3.5–4.5 bytes a token on English. Several use one token for each digit
    and sign; none uses more than one for a byte.
    """
    data = text.encode("utf-8", "replace")
    n_dense = len(data.translate(None, _LETTERS_AND_BLANKS))
    return -(-(len(data) - n_dense) // 3) + n_dense


def bound_tokens(prompt: Prompt) -> int:
    """Return an upper bound of the prompt's tokens that holds in practice. If an endpoint counts
    more tokens, the recorded usage shows it."""
    n_parts = len(prompt.messages) + len(prompt.tools)
    template = TEMPLATE_TOKENS + (TOOLS_TEMPLATE_TOKENS if prompt.tools else 0)
    return sum(map(bound_text_tokens, _read_parts(prompt))) + 8 * n_parts + template
