"""The check agent asks a model whether the objective is met. For each part of the objective that it
calls answered, the reply names a task and quotes words of its result; the program looks them up."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from babyagi.agents.creation import MAX_OUTPUT_TOKENS, object_schema
from babyagi.agents.execution import Excerpt
from babyagi.agents.prompting import build_messages, say, to_field
from babyagi.agents.replies import (
    find_object,
    is_true,
    to_id,
    to_line,
    to_list,
    visible,
    with_keys,
)
from babyagi.errors import MalformedReplyError
from babyagi.journal import Journal
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Prompt
from babyagi.marks import find_marks, held_marks
from babyagi.react.asking import ask
from babyagi.tasks import CheckedPart, Passage, Result, Role, find_sources
from babyagi.taskstore.nouns import Checked
from babyagi.text import rearm

FIRST = "check"  # path of the first check of a round
MAX_TEXT_CHARS = 200  # of a part, and of a quote; a longer one is cut off, perhaps within a word
MAX_PARTS = 12  # places of a schema: a small model fills all of them
MAX_PIECES = 3  # of a quote with gaps, so many pieces are looked up
NO_PART_NAMED = "the check did not say which part of the objective is answered"
NOT_FOUND = "the check quoted words that stand in no result, for: {}"
_SIGNS = re.compile(r"[\"'`*_“”‘’«»]")
_PARTS = re.compile(r"[^\sa-z0-9]")  # every character that may be no part of a longer word

_TEXT = {"type": "string", "maxLength": MAX_TEXT_CHARS}
_NUMBER = {"type": "integer"}
CHECK_SCHEMA: Mapping[str, Any] = object_schema(
    parts={
        "type": "array",
        "items": object_schema(part=_TEXT, task=_NUMBER, quote=_TEXT, deed={"type": "boolean"}),
        "maxItems": MAX_PARTS,
    },
    missing={"type": "array", "items": _TEXT, "maxItems": MAX_PARTS},
    contradictions={
        "type": "array",
        "items": object_schema(
            tasks={"type": "array", "items": _NUMBER, "maxItems": 4}, about=_TEXT
        ),
        "maxItems": 4,
    },
    met={"type": "boolean"},
)


async def check_objective(
    *,
    objective: Passage,
    excerpts: Sequence[Excerpt],
    results: Sequence[Result],
    journal: Journal,
    path: str = FIRST,
    contested: Sequence[str] = (),
) -> Checked:
    """Ask the model whether the results meet the objective, and return its verdict. A verdict that
    is "met" and names no part is asked for once more, and then counts as it is. Raises what
    `react.asking.ask` raises.

    Args:
        excerpts: the results that the model is shown.
        results: all results; none where a person is asked, who need not name parts.
        path: the path of the step in the journal. A check that is not the `FIRST` one is asked to
            doubt what others found.
        contested: what earlier checks call missing or contradictory, or did not prove; the model
            is asked to decide that.
    """
    stance = say("settling") if contested else "" if path == FIRST else say("doubting")
    sources = find_sources(source for excerpt in excerpts for source in excerpt.sources)
    messages = build_messages(
        "check",
        {
            "objective": [("objective", objective)],
            "results": [excerpt.to_labelled() for excerpt in excerpts],
            "absent": to_field("in no result", _find_absent(objective.text, results), "person"),
            "contested": to_field("contested parts", contested, sources=sources),
            "stance": stance,
        },
    )
    prompt = Prompt(
        messages=messages,
        schema_name="check",
        schema=CHECK_SCHEMA,
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )

    has_asked_again = False

    def read(completion: Completion) -> Checked:
        nonlocal has_asked_again
        reply = parse_check(completion.text)
        if results and reply.is_met and not reply.parts and not has_asked_again:
            has_asked_again = True
            raise MalformedReplyError(say("name_parts"))
        return reply

    asked = await ask(journal, path, prompt, role=Role.CREATION, read=read)
    return asked.value


def _find_absent(objective_text: str, results: Sequence[Result]) -> list[str]:
    """Return the numbers, codes, names and quoted terms of the objective that no result holds, on
    one line; nothing if there are none, or no results."""
    marks = find_marks(objective_text) if results else frozenset()
    absent = marks - held_marks("\n".join(f"{one.task_name}\n{one.text}" for one in results), marks)
    return [", ".join(sorted(absent))] if absent else []


def parse_check(text: str) -> Checked:
    """Parse the reply of a check: what it says, and nothing looked up. The objective counts as met
    only if the reply says so, and names nothing missing. A part whose task the reply does not name
    has the task 0.

    Raises:
        MalformedReplyError: the reply does not say whether the objective is met.
    """
    found, _, _ = find_object(visible(text), "parts", "missing", "contradictions", "met")
    missing = _to_lines(found.get("missing"))
    if not ("met" in found or missing):
        raise MalformedReplyError(say("expect_check"))
    nodes = (
        with_keys(item, "part", "task", "quote", "deed") for item in to_list(found.get("parts"))
    )
    parts = tuple(
        CheckedPart(
            part=to_line(node.get("part"), max_chars=MAX_TEXT_CHARS),
            task_id=to_id(node.get("task")) or 0,
            quote=" ".join(quote.split()) if isinstance(quote := node.get("quote"), str) else "",
            is_deed=is_true(node.get("deed")),
        )
        for node in nodes
        if to_line(node.get("part"))
    )
    return Checked(
        is_met=is_true(found.get("met")) and not missing,
        parts=parts,
        missing=missing,
        contradictions=_to_contradictions(found.get("contradictions")),
    )


def _to_lines(value: Any) -> tuple[str, ...]:
    lines = (to_line(one, max_chars=MAX_TEXT_CHARS) for one in to_list(value))
    return tuple(dict.fromkeys(filter(None, lines)))


def _to_contradictions(value: Any) -> tuple[str, ...]:
    lines = []
    for node in (with_keys(item, "tasks", "about") for item in to_list(value)):
        ids = [id_ for id_ in map(to_id, to_list(node.get("tasks"))) if id_ is not None]
        if len(ids) > 1:
            about = to_line(node.get("about"), max_chars=MAX_TEXT_CHARS)
            lines.append(f"tasks {', '.join(map(str, ids))}: {about}")
    return tuple(dict.fromkeys(lines))


# -- looking up what a reply says
# --------------------------------------------------------------------------------------------------


def look_up(
    reply: Checked,
    results: Sequence[Result],
    *,
    objective_text: str,
    doers: Collection[str] = (),
) -> Checked:
    """Return what stays of a reply after its quotes were looked up in the results: whether the
    objective is met, the parts found answered and those found missing.

    A part is proven only if its quote stands in a result; it is looked for in the result that the
    reply names, then in the others. A quote that comes from a file, a page or a tool must hold
    something that the objective does not, or be the whole result. A part that is not proven keeps
    its task, with no quote. It is missing if the reply names no result, or if it asks for an action
    and no task that called a tool with an effect is named.

    Args:
        doers: the tools that act on the world, as origins (`tool:NAME`).
    """
    asked, missing, parts = (
        frozenset(_words(objective_text)),
        list(reply.missing),
        list[CheckedPart](),
    )
    text_by_id = {result.task_id: _fold(result.text) for result in results}
    for part in reply.parts:
        result = _find(part, results, text_by_id)
        says_more = result is not None and (
            not find_sources(result.origins)
            or not asked.issuperset(_words(part.quote))
            or _fold(part.quote) == text_by_id[result.task_id]
        )
        has_acted = result is not None and not set(doers).isdisjoint(result.origins)
        if result is not None and says_more and (has_acted or not part.is_deed):
            parts.append(replace(part, task_id=result.task_id))
        elif part.task_id in text_by_id and not part.is_deed:
            parts.append(replace(part, quote=""))
        else:
            missing.append(part.part)
    proven = {part.part for part in parts if part.quote}
    found = replace(
        reply,
        # one proof is enough, whatever else the reply quotes for the same part
        parts=tuple(part for part in parts if part.quote or part.part not in proven),
        missing=tuple(dict.fromkeys(missing)),
    )
    is_met = reply.is_met and bool(parts) and not (missing or found.unproven)
    return replace(found, is_met=is_met)


def say_why_not(found: Checked) -> str:
    """Return why an objective is not met, after a check that found this."""
    if found.missing:
        return "; ".join(found.missing)
    return NOT_FOUND.format("; ".join(found.unproven)) if found.unproven else NO_PART_NAMED


def _find(
    part: CheckedPart, results: Sequence[Result], text_by_id: Mapping[int, str]
) -> Result | None:
    """Return the result that holds the quote of the part; None if none does."""
    pieces = _pieces(part.quote)
    own_first = sorted(results, key=lambda result: result.task_id != part.task_id)
    return next(
        (one for one in own_first if pieces and _holds(text_by_id[one.task_id], pieces)), None
    )


def _pieces(quote: str) -> list[str]:
    """Return the pieces of a quote between its gaps (`…`), folded. The end of a quote as long as
    the bound may be cut off within a word."""
    if len(quote) >= MAX_TEXT_CHARS:
        quote = quote[:MAX_TEXT_CHARS].rpartition(" ")[0] or quote
    parts = quote.replace("...", "…").replace("[…]", "…").split("…")
    return list(filter(None, map(_fold, parts)))[:MAX_PIECES]


def _holds(folded: str, pieces: Sequence[str]) -> bool:
    """Return whether the text holds the pieces, in their order, each as whole words."""
    at = 0
    for piece in pieces:
        start = f" {folded} ".find(f" {piece} ", at)
        if start < 0:
            return False
        at = start + len(piece) + 1
    return True


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", _fold(text))


def _fold(text: str) -> str:
    """Return the text in the form in which quotes are compared: its words and signs, each between
    blanks, without case, quotation marks, dots at the ends, and the signs that `disarm` (text.py)
    adds. In a script without spaces each character is a word."""
    plain = _SIGNS.sub("", unicodedata.normalize("NFKC", rearm(text)).casefold())
    return " ".join(_PARTS.sub(_apart, plain).split()).strip(" .…,;:。、")


def _apart(sign: re.Match[str]) -> str:
    is_in_word = sign[0].isalnum() and unicodedata.category(sign[0]) != "Lo"
    return sign[0] if is_in_word else f" {sign[0]} "


# -- several checks of the same results
# --------------------------------------------------------------------------------------------------


def settle(views: Sequence[Checked]) -> Checked | None:
    """Combine checks of the same results, each as `look_up` returns it: the majority's verdict,
    with what these checks found. None where it needs one more check to decide."""
    agreeing, others = ([one for one in views if one.is_met is met] for met in (True, False))
    if len(agreeing) == len(others):
        return None
    agreeing = max(agreeing, others, key=len)
    named = [part for found in agreeing for part in found.parts]
    parts = {part.part: part for part in sorted(named, key=lambda part: bool(part.quote))}
    return replace(
        agreeing[-1], parts=tuple(parts.values()), contradictions=views[-1].contradictions
    )
