"""Reads a streamed answer: splits the stream into events, builds the reply from them, and detects
early that an answer is invalid."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from babyagi.errors import EndlessAnswerError
from babyagi.llm.port import OnText
from babyagi.llm.prices import Price
from babyagi.llm.prompt import Prompt, Speaker
from babyagi.llm.reading import (
    MAX_WORDS_PER_TOKEN,
    as_mapping,
    as_text,
    count_stopped,
    find_choice,
    larger_usage,
)
from babyagi.shapes import is_deep
from babyagi.text import clean

AFTER_END_S = 5.0  # the longest wait for the usage, which follows the answer
MAX_CALLS = 64  # tool calls in one answer; any further ones are left out


class StreamError(Exception):
    """A stream that ended without a complete reply.

    Args:
        what: the fault.
        said: the server's JSON object with its `error`; None if the server reported no error.
        is_cut: whether the stream ended before the answer was complete.
        has_begun: whether part of the answer had arrived.
        usage: the usage that the stream reported.
    """

    def __init__(
        self,
        what: str,
        *,
        said: Mapping[str, Any] | None = None,
        is_cut: bool = False,
        has_begun: bool = False,
        usage: Any = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.said = said
        self.is_cut = is_cut
        self.has_begun = has_begun
        self.usage = usage


# -- events
# --------------------------------------------------------------------------------------------------

_LINE_END = re.compile(r"\r\n|\n|\r(?=[^\n])")
_END = re.compile(r"[\r\n]")
# found now, because finding it opens a file, and an answer that was paid for needs it
_Decoder = codecs.getincrementaldecoder("utf-8-sig")


async def read_events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[tuple[str, str], None]:
    """Yield (name, data) of each server-sent event; the name is mostly empty.

    An event that the end of the stream cuts off is yielded as well; an event without data is not.
    """
    name, data = "", list[str]()
    async with aclosing(_read_lines(chunks)) as lines:
        async for line in lines:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value
            elif not line:
                if any(data):
                    yield name, "\n".join(data)
                name, data = "", []
    if any(data):
        yield name, "\n".join(data)


async def _read_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    decode = _Decoder("replace").decode
    pieces: list[str] = []  # the received part of a line
    async for chunk in chunks:
        pieces.append(decode(chunk))
        if not _END.search(pieces[-1]) and not (len(pieces) > 1 and pieces[-2].endswith("\r")):
            continue
        *lines, rest = _LINE_END.split("".join(pieces))
        pieces = [rest]
        for line in lines:
            yield line
    last = "".join([*pieces, decode(b"", final=True)]).rstrip("\r\n")
    if last:
        yield last


# -- events to a reply
# --------------------------------------------------------------------------------------------------


class ReplyBuilder(Protocol):
    """Builds a reply event by event.

    Attributes:
        has_ended: the answer is complete; only its usage may follow.
        is_over: no event follows.
    """

    has_ended: bool
    is_over: bool

    def take(self, name: str, event: Mapping[str, Any]) -> None:
        """Add one event of the stream to the reply.

        Raises:
            StreamError: the event is an error of the server.
        """
        ...

    def take_end(self) -> None:
        """Take note of the server's mark `[DONE]`, which ends a stream."""
        ...

    def reply(self) -> Mapping[str, Any]:
        """Return the complete reply object.

        Raises:
            StreamError: the reply is incomplete.
        """
        ...


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
                    builder.take(name, _parse(name, data))
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


_KINDS = ("function", "custom")  # of calls
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking")


class _Pieces(list[str]):
    """The pieces of a call's arguments, which are joined once the reply is complete."""


class ChatReplyBuilder:
    """Builds a reply from the chunks of Chat Completions."""

    def __init__(self, listener: AnswerListener) -> None:
        self.has_ended = self.is_over = False
        self._listener = listener
        self._n_events = 0
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._legacy: dict[str, Any] = {}
        self._finish_reason: Any = None
        self._model: Any = None
        self._usage: Any = None

    def take(self, name: str, event: Mapping[str, Any]) -> None:
        self._n_events += 1
        if event.get("error"):
            raise StreamError("an error", said=event, has_begun=self.has_begun, usage=self._usage)
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

    @property
    def has_begun(self) -> bool:
        """Return whether any part of the answer has arrived."""
        return bool(self._texts or self._calls or self._refusals or self._legacy)

    def _take_delta(self, delta: Mapping[str, Any]) -> None:
        if text := as_text(delta.get("content")):
            self._texts.append(text)
            self._listener.hear(text)
        if refusal := as_text(delta.get("refusal")):
            self._refusals.append(refusal)
            self._listener.hear_apart(refusal)
        for thought in filter(None, (as_text(delta.get(name)) for name in _THOUGHT_FIELDS)):
            self._listener.hear_apart(thought)
        calls = delta.get("tool_calls")
        for call in map(as_mapping, calls[:MAX_CALLS] if isinstance(calls, list) else []):
            self._take_call(call)
        if legacy := as_mapping(delta.get("function_call")):
            self._add_said(self._legacy, legacy)

    def _take_call(self, given: Mapping[str, Any]) -> None:
        """Add a piece of a tool call to the call with the same index. Some servers send no index,
        or the same one for every call; with them, a new id begins a new call."""
        index, id_ = given.get("index"), given.get("id")
        mine = [call for call in self._calls if call["index"] == index or index is None]
        call = mine[-1] if mine else None
        if call is None or (id_ and call["id"] and id_ != call["id"]):
            call = {"index": index, "id": id_, "function": {}}
            if len(self._calls) < MAX_CALLS:
                self._calls.append(call)
        call["id"] = call["id"] or id_
        for kind in _KINDS:
            if said := as_mapping(given.get(kind)):
                self._add_said(call.setdefault(kind, {}), said)

    def _add_said(self, call: dict[str, Any], said: Mapping[str, Any]) -> None:
        """Add a piece to a call. The name always comes whole; the arguments come as pieces of text,
        or as a whole object."""
        call["name"] = call.get("name") or said.get("name")
        for key in ("arguments", "input"):
            piece = said.get(key)
            if isinstance(piece, str):
                pieces = call.setdefault(key, _Pieces())
                if isinstance(pieces, _Pieces):
                    pieces.append(piece)
                    self._listener.hear_apart(piece)
            elif piece is not None:
                call[key] = piece

    def reply(self) -> Mapping[str, Any]:
        if not self.has_ended:
            what = "the stream ended before the answer did" if self._n_events else "no event"
            is_cut = bool(self._n_events)
            raise StreamError(what, is_cut=is_cut, has_begun=self.has_begun, usage=self._usage)
        message: dict[str, Any] = {
            "content": _join(self._texts),
            "refusal": _join(self._refusals),
            "tool_calls": [
                {kind: _whole(said) if kind in _KINDS else said for kind, said in call.items()}
                for call in self._calls
            ],
        }
        if self._legacy:
            message["function_call"] = _whole(self._legacy)
        choice = {"message": message, "finish_reason": self._finish_reason}
        return {"choices": [choice], "model": self._model, "usage": self._usage}


def _whole(call: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _join(said) if isinstance(said, _Pieces) else said for key, said in call.items()}


_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def _join(pieces: Sequence[str]) -> str:
    """Return the pieces as one text. If the two surrogates of a character came in separate pieces,
    they become that character again."""
    text = "".join(pieces)
    return _HALVES.sub(lambda two: two[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


class ResponsesReplyBuilder:
    """Builds a reply from the events of the Responses API, of which the last one contains the whole
    reply."""

    def __init__(self, listener: AnswerListener) -> None:
        self.has_ended = self.is_over = False
        self._listener = listener
        self._n_events = 0
        self._texts: list[str] = []
        self._items: list[Any] = []
        self._reply: Mapping[str, Any] = {}

    def take(self, name: str, event: Mapping[str, Any]) -> None:
        self._n_events += 1
        kind = event.get("type")
        if event.get("error") or kind == "error":
            said = event if event.get("error") else {"error": event}
            raise StreamError("an error", said=said, has_begun=bool(self._texts))
        if kind == "response.output_text.delta":
            text = as_text(event.get("delta"))
            self._texts.append(text)
            self._listener.hear(text)
        elif isinstance(kind, str) and kind.endswith(".delta"):
            self._listener.hear_apart(as_text(event.get("delta")))
        elif kind == "response.output_item.done":
            self._items.append(event.get("item"))
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self._end(as_mapping(event.get("response")))

    def take_end(self) -> None:
        """Do nothing: the Responses API sends no such mark."""

    def _end(self, reply: Mapping[str, Any]) -> None:
        if reply.get("error"):
            raise StreamError(
                "an error", said=reply, has_begun=bool(self._texts), usage=reply.get("usage")
            )
        said = [{"type": "message", "content": [{"text": _join(self._texts)}]}]
        output = reply.get("output") or self._items or (said if self._texts else [])
        self._reply = {**reply, "output": output}
        self.has_ended = self.is_over = True

    def reply(self) -> Mapping[str, Any]:
        if not self.has_ended:
            what = "the stream ended before the answer did" if self._n_events else "no event"
            raise StreamError(what, is_cut=bool(self._n_events), has_begun=bool(self._texts))
        return self._reply


# -- who listens to a stream
# --------------------------------------------------------------------------------------------------

_THOUGHT = ("<think>", "<thinking>")
_THOUGHT_END = re.compile(r"</think(?:ing)?>\s*")
_LONGEST_END = len("</thinking>")


class TextRelay:
    """Passes the pieces of an answer's text to `on_text`, but not the reasoning between `<think>`
    tags with which some models begin.

    Attributes:
        has_relayed: whether any text was passed on.
    """

    def __init__(self, on_text: OnText) -> None:
        self.has_relayed = False
        self._on_text = on_text
        self._held = ""
        self._thinks = self._speaks = False

    def take(self, piece: str) -> None:
        self._held += piece
        if not self._thinks and not self._speaks:
            head = self._held.lstrip()
            self._thinks = head.startswith(_THOUGHT)
            self._speaks = not any(tag.startswith(head[: len(tag)]) for tag in _THOUGHT)
        if self._thinks and not self._speaks:
            found = _THOUGHT_END.search(self._held)
            self._speaks = found is not None
            self._held = self._held[found.end() if found else -_LONGEST_END :]
        if self._thinks and not self.has_relayed:
            self._held = self._held.lstrip() if self._speaks else self._held
        if self._speaks and self._held:
            # the first surrogate of a character waits for the second one
            n_held = 1 if "\ud800" <= self._held[-1] <= "\udbff" else 0
            end = len(self._held) - n_held
            ready, self._held = self._held[:end], self._held[end:]
            if ready:
                self.has_relayed = True
                self._on_text(clean(_join([ready])))


class AnswerListener:
    """Receives the pieces of one streamed answer. It passes the text on to `on_text`, and raises an
    error, which ends the stream, once the answer is clearly invalid.

    Args:
        name: the name of the model.
        on_text: None if the caller does not read the pieces.
        price: the price of the model's tokens.
    """

    def __init__(
        self, prompt: Prompt, *, name: str, on_text: OnText | None, price: Price | None = None
    ) -> None:
        self._prompt = prompt
        self._name = name
        self._price = price
        self._relay = None if on_text is None else TextRelay(on_text)
        self._answer = StreamWatch(prompt)
        self._apart = StreamWatch(prompt, is_apart=True)

    @property
    def has_relayed(self) -> bool:
        """Return whether any text was passed on to `on_text`."""
        return self._relay is not None and self._relay.has_relayed

    def count_heard(self) -> int:
        """Return how many characters have come."""
        return self._answer.n_chars + self._apart.n_chars

    def hear(self, piece: str) -> None:
        """Receive a piece of the answer's text.

        Raises:
            EndlessAnswerError: the answer is invalid. Its `billed` usage is the whole reservation:
                the tokens of the prompt and of the received text are spent, the rest is
                unconfirmed.
        """
        self._look(self._answer, piece)
        if self._relay is not None:
            self._relay.take(piece)

    def hear_apart(self, piece: str) -> None:
        """Receive a piece of something else: of the reasoning, a refusal, or a call's arguments. It
        is checked, but not passed on.

        Raises:
            EndlessAnswerError: as in `hear`.
        """
        self._look(self._apart, piece)

    def _look(self, watch: StreamWatch, piece: str) -> None:
        watch.take(piece)
        if watch.fault:
            error = EndlessAnswerError(
                f"{self._name} was stopped: {watch.fault}", guide="models", may_be_billed=True
            )
            came = self._answer.text + self._apart.text
            error.billed = count_stopped(self._prompt, came, price=self._price)
            raise error


# -- what makes an answer invalid
# --------------------------------------------------------------------------------------------------

N_REPEATS = 3
N_LOOP_WORDS = 120  # a phrase of 40 words or more is a loop once its repeats have so many words
N_SHORT_LOOP_WORDS = 600  # the same for a shorter phrase, such as a refrain or a table row
MAX_WORD_CHARS = 100  # of a word that is not complete, only so many characters are kept
N_SIGN_LOOP_CHARS = 4000  # so many characters of at most two different signs are a loop
MAX_PERIOD_WORDS = 400
N_ECHO_WORDS = 30
N_FIRST_WORDS = 40  # an echo begins within these words of the answer
CHECK_EVERY_WORDS = 40
MAX_CHARS_PER_TOKEN = 200
N_CANDIDATES = 8

_WORD = re.compile(r"\w+")
_FENCED = re.compile(
    r"^<<(?P<head>[\w ]+ (?P<mark>[0-9a-f]{8,64}) from )[^\n]*\n.*?\n(?P=mark)>>",
    re.DOTALL | re.MULTILINE,
)


class StreamWatch:
    """Watches an answer while it arrives, and detects that it is invalid: too long, a loop, or an
    echo of the prompt.

    An echo begins with thirty words of the program's own instructions, or with a line that begins a
    block of data in the prompt. A loop repeats the same forty words three times in a row; shorter
    phrases must repeat more often, because refrains and tables do so too. Numbers alone may be
    repeated.

    Args:
        is_apart: whether the text is not the answer but reasoning, or the arguments of calls. Such
            a text may quote the instructions, and some servers do not count it as output.

    Attributes:
        fault: what is wrong with the answer, in words for a person; empty if nothing is.
        n_chars: the length of the received text.
    """

    def __init__(self, prompt: Prompt, *, is_apart: bool = False) -> None:
        self.fault = ""
        self._is_apart = is_apart
        self._max_tokens = prompt.max_output_tokens
        self._told = _instructions(prompt)
        self._fences = {
            f"<<{found['head']}"
            for message in prompt.messages
            for found in _FENCED.finditer(message.text)
        }
        self._pieces: list[str] = []
        self.n_chars = 0
        self._words: list[str] = []
        self._rest = ""  # the last word, which may be incomplete
        self._n_checked = self._n_signs_checked = 0
        self._may_be_echo = not is_apart

    @property
    def text(self) -> str:
        """Return the received text."""
        return "".join(self._pieces)

    def take(self, piece: str) -> None:
        """Add a piece, and set `fault` if the answer is now invalid."""
        self._pieces.append(piece)
        self.n_chars += len(piece)
        text = self._rest + piece
        found = [match[0].lower() for match in _WORD.finditer(text)]
        self._rest = found.pop()[-MAX_WORD_CHARS:] if found and _WORD.match(text[-1]) else ""
        self._words += found
        if self.n_chars > MAX_CHARS_PER_TOKEN * self._max_tokens:
            self.fault = "the answer is longer than allowed"
        elif len(self._words) >= self._n_checked + CHECK_EVERY_WORDS:
            self._n_checked = len(self._words)
            self._check_words()
        elif self.n_chars >= self._n_signs_checked + N_SIGN_LOOP_CHARS // 4:
            self._n_signs_checked = self.n_chars
            if self._repeats_signs():
                self.fault = "the answer repeats the same sign endlessly"

    def _check_words(self) -> None:
        is_echo = self._may_be_echo and self._is_echo()
        self._may_be_echo = self._may_be_echo and len(self._words) < N_FIRST_WORDS + N_ECHO_WORDS
        if is_echo:
            self.fault = "the answer repeats the prompt"
        elif _is_loop(self._words):
            self.fault = "the answer repeats the same words endlessly"
        elif not self._is_apart and len(self._words) > MAX_WORDS_PER_TOKEN * self._max_tokens:
            self.fault = "the answer is longer than allowed"

    def _is_echo(self) -> bool:
        head = self.text.lstrip()[: N_FIRST_WORDS * 8]
        if any(fence in head for fence in self._fences):
            return True
        last = max(0, min(N_FIRST_WORDS, len(self._words) - N_ECHO_WORDS + 1))
        return any(
            f" {' '.join(self._words[at : at + N_ECHO_WORDS])} " in self._told for at in range(last)
        )

    def _repeats_signs(self) -> bool:
        if self.n_chars < N_SIGN_LOOP_CHARS:
            return False
        tail = ""
        for piece in reversed(self._pieces):
            tail = piece + tail
            if len(tail) >= N_SIGN_LOOP_CHARS:
                break
        tail = tail[-N_SIGN_LOOP_CHARS:]
        return not _WORD.search(tail) and len(set(tail)) <= 2


def _instructions(prompt: Prompt) -> str:
    """Return the words of the system messages, which are the program's own."""
    texts = [message.text for message in prompt.messages if message.speaker is Speaker.SYSTEM]
    return f" {' '.join(_WORD.findall(' '.join(texts).lower()))} "


def _is_loop(words: Sequence[str]) -> bool:
    """Return whether the answer ends with a phrase that repeats too often."""
    tail = words[-max(N_SHORT_LOOP_WORDS, N_REPEATS * MAX_PERIOD_WORDS) :]
    if len(tail) < N_LOOP_WORDS:
        return False
    for period in _periods(tail):
        n_same = _count_same(tail, period)
        if n_same >= 2 * period:  # only the shortest period that repeats is judged
            is_long = period >= N_LOOP_WORDS // N_REPEATS
            n_wanted = max(N_LOOP_WORDS if is_long else N_SHORT_LOOP_WORDS, N_REPEATS * period)
            return n_same >= n_wanted and not all(word.isdecimal() for word in tail[-period:])
    return False


def _periods(tail: Sequence[str]) -> list[int]:
    """Return the periods with which the end of the text may repeat, the shortest first. A period is
    the distance, in words, from the last four words to an earlier occurrence of them."""
    last, end = list(tail[-4:]), len(tail)
    found: list[int] = []
    for period in range(1, min(MAX_PERIOD_WORDS, end - 4) + 1):
        if (
            tail[end - 1 - period] == last[-1]
            and list(tail[end - 4 - period : end - period]) == last
        ):
            found.append(period)
            if len(found) == N_CANDIDATES:
                break
    return found


def _count_same(tail: Sequence[str], period: int) -> int:
    """Return the number of words in the longest ending of which each word equals the word `period`
    places before it, the first period included."""
    n_same = period
    for at in range(len(tail) - 1 - period, -1, -1):
        if tail[at] != tail[at + period]:
            break
        n_same += 1
    return n_same
