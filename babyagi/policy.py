"""Decides about each call of a tool: yes, no, or a question to a person. Pure: what the decision
needs is handed in, and nothing is read or sent here.

1. A page at none of the domains in BABYAGI_WEB_ONLY is not opened, and nobody is asked about it.
2. A tool that must not be repeated asks first where the objective or this machine wants that.
3. Words leave this machine through tools with a `Sink`: pages, searches, servers elsewhere. Where a
   prompt held private texts (`is_private`), what the model writes may hold them, in any wording and
   any encoding. So such a call is made unasked only if it says nothing that the person did not say:
   each word, number and sign of what leaves stands in the person's own words, at most as often as
   there, or if it goes only to addresses that the person gave. Else the person is asked.
4. The answer holds for this call (once), or for everything that goes to this host in this run
   (always, never; without a host *always* holds for the tool). Where nobody can be asked, the call
   is refused, and the work goes on.

What still leaves unasked is which of the person's own words are sent, in which order and how often,
and how many of the pages that a search finds are opened.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from babyagi.net.addresses import AddressError, covers, host_of, read_target
from babyagi.tasks import Approval, Effect, is_private
from babyagi.tools.base import Sink, Tool

# scripts that write no blanks between words: Thai, Lao, Myanmar, Khmer, kana, CJK
_PIECE = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
_TOKEN = re.compile(rf"{_PIECE}+|(?:(?!{_PIECE})\w)+|[^\w ]")
_NO_BLANKS = re.compile(_PIECE)
_AROUND = "<>()[]{}\"'`*_.,;:!?“”‘’«»"  # what may surround an address in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Yes:
    """The call may be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class No:
    """The call is not made; `reason` is for the model."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A person must allow the call. `to`: where its words would go that the person did not say; ''
    if it asks only because it must not be repeated."""

    to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a decision depends on besides the call.

    Attributes:
        origins: the origins of everything in the prompts that led to the call.
        said: the person's own words: the objective, the first task, answers.
        may_send: by host or tool, what the person answered for this run.
        approval: the stricter of the objective's and this machine's.
        is_heeded: a tool that wants approval gets it whatever `approval` says.
        has_person: whether somebody can be asked what may leave.
    """

    origins: Collection[str] = ()
    said: Collection[str] = ()
    may_send: Mapping[str, bool] = field(default_factory=dict)
    approval: Approval = Approval.ONCE
    is_heeded: bool = False
    has_person: bool = True


def decide(tool: Tool, arguments: Mapping[str, Any], now: Situation) -> Yes | No | Ask:
    """Return whether the call is made, refused, or waits for a person."""
    if tool.sink is not None and _leads_out(tool.sink, arguments):
        domains = ", ".join(tool.sink.only)
        return No(reason=f"Not opened: pages are opened only at {domains} (BABYAGI_WEB_ONLY).")
    to = ""
    if may_leak(tool, now.origins) and not _is_said(tool, arguments, now.said):
        to = find_place(tool, arguments)
        allowed = now.may_send.get(to)
        if allowed is False or not (allowed or now.has_person):
            return No(reason=_refuse(to, is_forbidden=allowed is False))
        to = "" if allowed else to
    is_wanted = now.is_heeded or now.approval is Approval.ONCE
    asks_first = tool.effect is Effect.ONCE and tool.asks_approval and is_wanted
    return Ask(to=to) if to or asks_first else Yes()


def restrict(mine: Approval, given: Approval) -> Approval:
    """Return the stricter of this machine's approval and an objective's."""
    return mine if given is Approval.NONE else given


def may_leak(tool: Tool, origins: Iterable[str]) -> bool:
    """Return whether a call of the tool could carry private texts away. What a server said may go
    back to the same server."""
    own = f"private:{tool.name.partition('__')[0]}__"
    return tool.sink is not None and any(
        is_private(origin) and not origin.startswith(own) for origin in origins
    )


def find_place(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return where the words of a call go: a host or, where the call names none, the tool."""
    sink = tool.sink
    if sink is None:
        return ""
    hosts = map(host_of, find_addresses(sink, arguments))
    return sink.host or next(filter(None, hosts), tool.name)


def find_addresses(sink: Sink, arguments: Mapping[str, Any]) -> list[str]:
    """Return where the call says that it goes: pages, or who gets a message."""
    given = [arguments.get(name) or [] for name in sink.addresses]
    return [str(one) for value in given for one in (value if isinstance(value, list) else [value])]


def _leads_out(sink: Sink, arguments: Mapping[str, Any]) -> bool:
    """Return whether an address of the call is at none of the sink's domains."""
    with suppress(AddressError):  # the tool itself says what is wrong with it
        targets = [read_target(one) for one in find_addresses(sink, arguments) if sink.only]
        return any(
            not any(covers(domain, one.host, one.port) for domain in sink.only) for one in targets
        )
    return False


def _refuse(to: str, *, is_forbidden: bool) -> str:
    why = (
        "the person forbade it"
        if is_forbidden
        else "it has words that the person did not say, and nobody can be asked"
    )
    return (
        f"Not sent to {to}: private texts were read before, and {why}. Go on without it, or with "
        "nothing but the person's own words."
    )


# -- what leaves, and whether the person said it
# --------------------------------------------------------------------------------------------------


def _is_said(tool: Tool, arguments: Mapping[str, Any], said: Collection[str]) -> bool:
    """Return whether what leaves with the call stands in what the person said."""
    if tool.sink is not None and tool.sink.addresses:
        named = find_addresses(tool.sink, arguments)
        return bool(named) and all(_is_given(one, said) for one in named)
    words, text = Counter[str](), "\n".join(said)
    exact = Counter(_TOKEN.findall(text))
    folded = Counter(map(str.casefold, exact.elements()))
    for one in _leaving(tool, arguments):
        if one != " ".join(one.split()):
            return False
        found = _TOKEN.findall(one)
        if not all(word in exact or _is_usual(word) for word in found):
            return False
        words.update(map(str.casefold, found))
    text = text.casefold()
    return all(
        n <= (text.count(word) if _NO_BLANKS.match(word) else folded[word])
        for word, n in words.items()
    )


def _leaving(tool: Tool, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts that leave with a call. A list, an object or the name of a field that may be
    left out says something too, and is yielded as JSON with its signs."""
    sends = tool.sink.sends if tool.sink is not None else ()
    needed = tool.parameters.get("required", ())
    for name, value in arguments.items():
        if sends:
            values = value if isinstance(value, list) else [value]
            yield from (str(one) for one in values if name in sends)
        elif isinstance(value, str) and value and name in needed:
            yield value
        else:
            yield json.dumps(value if name in needed else {name: value}, ensure_ascii=False)


def _is_usual(word: str) -> bool:
    """Return whether the case of a word's letters is one of the three that say nothing."""
    return word in (word.lower(), word.upper(), word.capitalize())


def _is_given(address: str, said: Iterable[str]) -> bool:
    """Return whether the person gave exactly this address, with or without `https://`."""
    given = (word.strip(_AROUND) for text in said for word in text.split())
    return bool(address) and _bare(address) in map(_bare, given)


def _bare(address: str) -> str:
    return re.sub(r"^https?://", "", address.strip()).removesuffix("/")
