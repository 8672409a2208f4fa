"""How a try of a task ends: answered, or lacking something, with what was found. The program judges
only the form of a reply; what it says is the model's word, in a typed field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from babyagi.agents.creation import CreationReply
from babyagi.agents.prompting import say
from babyagi.index.hashing import words_of
from babyagi.llm.prompt import Message
from babyagi.react.values import find_values
from babyagi.text import repeated_end

MIN_COPIED_WORDS = 12  # fewer words may agree with the instructions by chance
OPENS_FENCE = "<<"
_BLANK = " \t\n\"'*_.…-—"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a try of a task brought.

    Attributes:
        text: the answer; beside a lack, the answer in part, '' if there is none.
        lack: what is lacking, in one line; '' if the task is answered.
        origins: every source in any of the task's prompts.
        plan: what the agent planned in the same reply; None if the creation agent must be asked.
        after: the tasks that bring what is lacking, as the agent named them (`Proposal.after`).
        has_fallen_back: whether the model was asked for tool calls as labelled text, because the
            endpoint refused tools.
    """

    text: str
    lack: str = ""
    origins: tuple[str, ...] = ()
    plan: CreationReply | None = None
    after: tuple[int | str, ...] = ()
    has_fallen_back: bool = False


def find_fault(text: str, *, task_name: str, messages: Sequence[Message], asked: str = "") -> str:
    """Return what to tell the model if the form of its reply shows that it is no answer: it is
    empty, JSON that is cut off, a loop, or a copy of the instructions or of a fence; "" for any
    other reply.

    Args:
        messages: the prompt: the instructions, then data.
        asked: the part of the instructions that stands among the data.
    """
    if not text.strip(_BLANK):
        return say("empty")
    if _is_cut_json(text):
        return say("begun_json")
    if _is_copied(text, f"{messages[0].text}\n{asked}") or _has_own_fence(text, messages):
        return say("echo")
    return say("loop") if _is_loop(text, task_name) else ""


def _is_cut_json(text: str) -> bool:
    """Return whether the text begins as JSON that is never closed."""
    is_json = text.startswith(('{"', '[{"', '["'))
    return is_json and all(start > 0 for _, start, _ in find_values(text))


def _is_copied(text: str, instructions: str) -> bool:
    words = words_of(text)
    return len(words) >= MIN_COPIED_WORDS and f" {' '.join(words)} " in (
        f" {' '.join(words_of(instructions))} "
    )


def _has_own_fence(text: str, messages: Sequence[Message]) -> bool:
    """Return whether the text has a line that opens a fence of the prompt, with any mark."""
    opened = {_without_mark(line) for message in messages for line in message.text.splitlines()}
    return any(
        _without_mark(line) in opened for line in text.splitlines() if line.startswith(OPENS_FENCE)
    )


def _without_mark(line: str) -> str:
    """Return the line that opens a fence (`<<label MARK from origin`) without its mark."""
    head, from_, origin = line.partition(" from ")
    return head.rpartition(" ")[0] + from_ + origin if line.startswith(OPENS_FENCE) else ""


def _is_loop(text: str, task_name: str) -> bool:
    """Return whether the text repeats itself up to its end. A phrase of the task may be repeated:
    the task may ask for that."""
    end = repeated_end(text)
    asked, phrase = " ".join(words_of(task_name)), " ".join(words_of(end))
    return bool(end) and (not phrase or f" {phrase} " not in f" {asked} ")
