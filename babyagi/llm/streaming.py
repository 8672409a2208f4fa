"""Reads a streamed answer: splits the stream into events, and builds the reply from them."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from babyagi.llm.port import OnText
from babyagi.llm.reading import (
    THOUGHT_TAGS,
    as_mapping,
    as_text,
    find_choice,
    larger_usage,
)
from babyagi.llm.shapes import is_deep
from babyagi.text import clean

AFTER_END_S = 5.0  # the longest wait for the usage, which follows the answer
MAX_CALLS = 64  # tool calls in one answer; any further ones are left out


@dataclass
class StreamError(Exception):
    """A stream that ended without a complete reply.

    Attributes:
        what: the fault.
        said: the server's JSON object with its `error`; None if the server reported no error.
        is_cut: whether the stream ended before the answer was complete.
        has_begun: whether part of the answer had arrived.
        usage: the usage that the stream reported.
    """

    what: str
    said: Mapping[str, Any] | None = None
    is_cut: bool = False
    has_begun: bool = False
    usage: Any = None


# -- events
# --------------------------------------------------------------------------------------------------

# found now, because finding it opens a file, and an answer that was paid for needs it
codecs.lookup("utf-8-sig")


async def read_events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[tuple[str, str], None]:
    """Yield (name, data) of each server-sent event that has data; the name is mostly `message`. An
    event that the end of the stream cuts off is yielded as well."""
    import httpx2

    async def ended() -> AsyncIterator[bytes]:
        async for chunk in chunks:
            yield chunk
        yield b"\n\n"

    response = httpx2.Response(
        200,
        headers={"content-type": "text/event-stream; charset=utf-8-sig"},
        content=ended(),
        request=httpx2.Request("POST", "http://model"),  # told with an error of the transport
    )
    # the chunks are bounded already
    async for event in httpx2.EventSource(response, max_event_size=None):
        if event.data.strip():
            yield event.event, event.data


# -- events to a reply
# --------------------------------------------------------------------------------------------------


class ReplyBuilder(ABC):
    """Builds a reply event by event.

    Attributes:
        listener: receives the pieces of the answer.
        has_ended: the answer is complete; only its usage may follow.
        is_over: no event follows.
    """

    def __init__(self, listener: AnswerListener) -> None:
        self.listener = listener
        self.has_ended = self.is_over = False
        self._n_events = 0
        self._texts: list[str] = []
        self._usage: Any = None

    @property
    def has_begun(self) -> bool:
        """Return whether any part of the answer has arrived."""
        return self.listener.n_chars > 0

    def take(self, event: Mapping[str, Any]) -> None:
        """Add one event of the stream to the reply.

        Raises:
            StreamError: the event is an error of the server.
        """
        self._n_events += 1
        if event.get("error"):
            raise StreamError("an error", event, has_begun=self.has_begun, usage=self._usage)
        self._take(event)

    def take_end(self) -> None:  # noqa: B027  the Responses API sends no such mark
        """Take note of the server's mark `[DONE]`, which ends a stream."""

    def reply(self) -> Mapping[str, Any]:
        """Return the complete reply object.

        Raises:
            StreamError: the reply is incomplete.
        """
        if not self.has_ended:
            what = "the stream ended before the answer did" if self._n_events else "no event"
            is_cut = bool(self._n_events)
            raise StreamError(what, is_cut=is_cut, has_begun=self.has_begun, usage=self._usage)
        return self._reply()

    def _hear(self, text: str) -> None:
        self._texts.append(text)
        self.listener.hear(text)

    @abstractmethod
    def _take(self, event: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def _reply(self) -> Mapping[str, Any]: ...


async def build_reply(chunks: AsyncIterator[bytes], builder: ReplyBuilder) -> Mapping[str, Any]:
    """Return the reply that the builder makes from the events of a stream.

    Raises:
        StreamError: the events do not form a complete reply.
        Exception: any error of reading the stream before the answer was complete.
    """
    async with aclosing(read_events(chunks)) as events:
        try:
            async with asyncio.timeout(None) as deadline:
                async for name, data in events:
                    if data.strip() == "[DONE]":
                        builder.take_end()
                        break
                    builder.take(_parse(name, data))
                    if builder.is_over:
                        break
                    if builder.has_ended and deadline.when() is None:
                        deadline.reschedule(asyncio.get_running_loop().time() + AFTER_END_S)
        except Exception:
            if not builder.has_ended:
                raise
    return builder.reply()


def _parse(name: str, data: str) -> Mapping[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = data if name == "error" else None
    if name == "error":
        return {"error": as_mapping(found).get("error") or found or "an error"}
    if not isinstance(found, dict) or is_deep(found):
        raise StreamError("an event of the stream is not a JSON object", has_begun=True)
    return found


_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking")


class ChatReplyBuilder(ReplyBuilder):
    """Builds a reply from the chunks of Chat Completions."""

    def __init__(self, listener: AnswerListener) -> None:
        super().__init__(listener)
        self._refusals: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._finish_reason: Any = None
        self._model: Any = None

    def _take(self, event: Mapping[str, Any]) -> None:
        self._model = event.get("model") or self._model
        self._usage = larger_usage(self._usage, event.get("usage"))
        choice = find_choice(event.get("choices"))
        self._take_delta(as_mapping(choice.get("delta")) or as_mapping(choice.get("message")))
        # some servers send an empty usage in every chunk
        if choice.get("finish_reason") is not None:
            self._finish_reason = choice["finish_reason"]
            self.has_ended = self.has_ended or bool(self._finish_reason)

    def take_end(self) -> None:
        self.has_ended = self.has_ended or self._finish_reason is not None

    def _take_delta(self, delta: Mapping[str, Any]) -> None:
        if text := as_text(delta.get("content")):
            self._hear(text)
        if refusal := as_text(delta.get("refusal")):
            self._refusals.append(refusal)
            self.listener.hear_apart(refusal)
        for thought in filter(None, (as_text(delta.get(name)) for name in _THOUGHT_FIELDS)):
            self.listener.hear_apart(thought)
        calls = delta.get("tool_calls")
        for call in map(as_mapping, calls[:MAX_CALLS] if isinstance(calls, list) else []):
            self._take_call(call)

    def _take_call(self, given: Mapping[str, Any]) -> None:
        """Add a piece of a tool call to the call with the same index. Some servers send no index,
        or the same one for every call; with them, a new id begins a new call."""
        index, id_ = given.get("index"), given.get("id")
        mine = [call for call in self._calls if call["index"] == index or index is None]
        call = mine[-1] if mine else None
        if call is None or (id_ and call["id"] and id_ != call["id"]):
            call = {"index": index, "id": id_, "name": None, "whole": None, "pieces": []}
            if len(self._calls) < MAX_CALLS:
                self._calls.append(call)
        said = as_mapping(given.get("function"))
        call["id"], call["name"] = call["id"] or id_, call["name"] or said.get("name")
        self.listener.hear_apart(as_text(said.get("name")))
        arguments = said.get("arguments")  # pieces of text, or a whole object
        if isinstance(arguments, str):
            call["pieces"].append(arguments)
            self.listener.hear_apart(arguments)
        elif arguments is not None:
            call["whole"] = arguments

    def _reply(self) -> Mapping[str, Any]:
        message = {
            "content": "".join(self._texts),
            "refusal": "".join(self._refusals),
            "tool_calls": [
                {
                    "id": call["id"],
                    "function": {
                        "name": call["name"],
                        "arguments": call["whole"] or "".join(call["pieces"]),
                    },
                }
                for call in self._calls
            ],
        }
        choice = {"message": message, "finish_reason": self._finish_reason}
        return {"choices": [choice], "model": self._model, "usage": self._usage}


class ResponsesReplyBuilder(ReplyBuilder):
    """Builds a reply from the events of the Responses API, of which the last one contains the whole
    reply."""

    def __init__(self, listener: AnswerListener) -> None:
        super().__init__(listener)
        self._last: Mapping[str, Any] = {}

    def _take(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind == "error":
            raise StreamError("an error", {"error": event}, has_begun=self.has_begun)
        if kind == "response.output_text.delta":
            self._hear(as_text(event.get("delta")))
        elif isinstance(kind, str) and kind.endswith(".delta"):
            self.listener.hear_apart(as_text(event.get("delta")))
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self._end(as_mapping(event.get("response")))

    def _end(self, last: Mapping[str, Any]) -> None:
        if last.get("error"):
            usage = last.get("usage")
            raise StreamError("an error", last, has_begun=self.has_begun, usage=usage)
        self._last = last
        self.has_ended = self.is_over = True

    def _reply(self) -> Mapping[str, Any]:
        said = {"type": "message", "content": [{"text": "".join(self._texts)}]}
        return {**self._last, "output": self._last.get("output") or [said]}


# -- who listens to a stream
# --------------------------------------------------------------------------------------------------

_OPENING = tuple(f"<{tag}>" for tag in THOUGHT_TAGS)
_CLOSING = re.compile(rf"</(?:{'|'.join(THOUGHT_TAGS)})>\s*", re.IGNORECASE)
_LONGEST_CLOSING = len("</reasoning>")


class AnswerListener:
    """Receives the pieces of one streamed answer, counts them, and passes the pieces of its text to
    `on_text`, but not the thinking in tags with which some models begin (`visible_text` removes it
    from the whole answer).

    Args:
        on_text: receives each piece of the text.

    Attributes:
        n_chars: how many characters have come.
        has_relayed: whether any text was passed on.
    """

    def __init__(self, on_text: OnText) -> None:
        self.n_chars = 0
        self.has_relayed = False
        self._on_text = on_text
        self._held = ""
        self._thinks = self._speaks = False

    def hear_apart(self, piece: str) -> None:
        """Receive a piece of something else than the text: of the reasoning, a refusal, or a call's
        arguments. It is counted, but not passed on."""
        self.n_chars += len(piece)

    def hear(self, piece: str) -> None:
        """Receive a piece of the answer's text."""
        self.n_chars += len(piece)
        self._held += piece
        if not self._thinks and not self._speaks:
            head = self._held.lstrip().lower()
            self._thinks = head.startswith(_OPENING)
            self._speaks = not any(tag.startswith(head[: len(tag)]) for tag in _OPENING)
        if self._thinks and not self._speaks:
            found = _CLOSING.search(self._held)
            self._speaks = found is not None
            self._held = self._held[found.end() if found else -_LONGEST_CLOSING :]
        if self._thinks and not self.has_relayed:
            self._held = self._held.lstrip() if self._speaks else self._held
        if self._speaks and self._held:
            ready, self._held = clean(self._held), ""
            self.has_relayed = True
            self._on_text(ready)
