"""The protocol for models without tool calling: thought, action, input and answer are labelled
lines of text (ReAct).

A label counts only at the start of a line, and not in code, after `>`, or between the fences around
data. So a call that a reply quotes is never executed, even if a stop word cuts off the end of the
quotation. If the model invents an observation, nothing from there on is read. The time is linear in
the length of the reply.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any

from babyagi.errors import MalformedReplyError
from babyagi.llm.port import Completion
from babyagi.llm.prompt import N_SHOWN, Message, Prompt, Speaker, ToolCall, fence
from babyagi.react.protocols.base import (
    WRITTEN_CALL,
    AgentProtocol,
    Conversation,
    describe_tools,
    fill,
    instruct,
    label_of,
    model_origins,
    origins_of,
    repeat,
    say,
    tell,
)
from babyagi.react.protocols.written import end, read_called, read_written, unwrap
from babyagi.react.steps import ENDS, FINAL_ANSWER, Act, AgentDecision, AgentStep, Finish
from babyagi.tasks import Effect
from babyagi.text import MARK
from babyagi.tools.base import Tool

MAX_LABEL_CHARS = 200  # a label must be within so many characters of its line
MAX_INLINE_CHARS = 2000  # the same for a call that begins inside a line
DECIDING = ("action", "answer")
NO_CALL = frozenset({"", "none", "n/a", "-", "no action", "なし"})

# Invisible characters, which are ignored: soft hyphen, zero-width characters, marks of direction,
# byte order mark.
_INVISIBLE = "".join(
    map(
        chr,
        (
            0xAD,
            *range(0x200B, 0x2010),
            *range(0x202A, 0x202F),
            *range(0x2060, 0x2065),
            *range(0x2066, 0x206A),
            0xFEFF,
        ),
    )
)
_NUMBER = re.compile(r"\s?#?\d{1,3}\s|\s")
_CODE_FENCE = re.compile(rf"[\s{_INVISIBLE}]{{0,3}}(`{{3}}|~{{3}})[`~]*\s*(.{{0,1}})")
_CODE_BLOCK = re.compile(r" {4}| {0,3}\t")  # indented code
_DATA_FENCE = re.compile(rf"<<[\w ]{{1,40}} ({MARK}) from ")
_END_OF_DATA = re.compile(rf"({MARK})>>\s*")
_BRACKETED = re.compile(r"([\w-]{1,64})\s*[\[(](.*)[\])]", re.DOTALL)
_ENDS = frozenset(("finish", "final answer", "final_answer", "finalanswer"))
_ONE_LINE = re.compile(
    r"(?P<name>[\w-]{1,64})\s{0,3}(?P<sign>[:：(\"'“「])\s{0,3}(?P<given>.+)", re.DOTALL
)
_NAMED = re.compile(r"\s{0,3}\w{1,64}\s{0,3}=[^=]")
_QUOTES = " \"'”」"
_DECORATION = "*_`[]\"' \t\r" + _INVISIBLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The labels in one language. Prompts use the first label of each kind; in replies, all are
    recognized."""

    question: str
    thought: tuple[str, ...]
    action: tuple[str, ...]
    action_input: tuple[str, ...]
    observation: tuple[str, ...]
    answer: tuple[str, ...]


ENGLISH = Labels(
    question="Question",
    thought=("Thought",),
    action=("Action", "Tool"),
    action_input=("Action Input", "Tool Input"),
    observation=("Observation",),
    answer=("Final Answer",),
)


Write = Callable[[str, Sequence[Tool]], str]
"""Takes a question and the tools, and returns the text of the first request; later steps are
appended to it."""


def text_protocol(labels: Labels = ENGLISH, *, write: Write | None = None) -> AgentProtocol:
    """Return the text protocol with these labels.

    Args:
        write: builds the prompt of the first request; None for the built-in prompt.
    """
    return AgentProtocol(
        name="text",
        render=lambda conversation: render(conversation, labels, write),
        parse=lambda completion, conversation: parse(completion, conversation, labels),
    )


# -- asking
# --------------------------------------------------------------------------------------------------


def render(conversation: Conversation, labels: Labels, write: Write | None = None) -> Prompt:
    """Return the request: the question, then each earlier step as the model's reply and the
    outcomes of its calls. The request ends where the model has to continue."""
    messages = list(conversation.messages)
    if write is not None:
        said = write(messages[-1].text, conversation.tools)
        origins = tuple(dict.fromkeys(("person", *messages[-1].origins)))
        messages[-1] = Message(speaker=Speaker.USER, text=said, origins=origins)
    else:
        if conversation.described_tools:
            messages = instruct(messages, _instruction(conversation, labels))
        messages[-1] = _ask(messages[-1], labels)
    messages += repeat(conversation.steps, partial(_write_step, labels))
    if conversation.is_last:
        messages.append(tell(f"{say('answer_now')}\n{labels.answer[0]}:"))
    stop = (f"\n{labels.observation[0]}:", f"\n\t{labels.observation[0]}:")
    return Prompt(
        messages=tuple(messages), max_output_tokens=conversation.max_output_tokens, stop=stop
    )


def _instruction(conversation: Conversation, labels: Labels) -> str:
    return fill(
        "text",
        tools=describe_tools(conversation.described_tools),
        tool_names=", ".join(tool.name for tool in conversation.described_tools),
        thought=labels.thought[0],
        action=labels.action[0],
        action_input=labels.action_input[0],
        observation=labels.observation[0],
        answer=labels.answer[0],
    )


def _ask(question: Message, labels: Labels) -> Message:
    gap = "\n" if question.text.startswith("<<") else " "  # a fence begins at the start of a line
    text = f"{labels.question}:{gap}{question.text}\n{labels.thought[0]}:"
    return Message(speaker=Speaker.USER, text=text, origins=question.origins)


def _log(act: Act, labels: Labels) -> str:
    """Return the reply as the model wrote it; if it made native tool calls, these as labelled
    lines."""
    if act.calls[0].id == WRITTEN_CALL:
        return act.log
    calls = [
        f"{labels.action[0]}: {call.name}\n{labels.action_input[0]}: {call.arguments}"
        for call in act.calls
    ]
    return "\n".join([act.log, *calls] if act.log else calls)


@lru_cache(maxsize=N_SHOWN)
def _write_step(labels: Labels, step: AgentStep, act: Act) -> tuple[Message, Message]:
    """Return the messages of a step: the model's reply as labelled lines, then the fenced outcomes
    of its calls. They are the same in every later request."""
    shown = [
        f"{labels.observation[0]}:\n{fence(label_of(observation), observation.passage)}"
        for observation in step.observations
    ]
    told = "\n".join([*shown, f"{labels.thought[0]}:"])
    return (
        Message(speaker=Speaker.ASSISTANT, text=_log(act, labels), origins=model_origins(step)),
        Message(speaker=Speaker.USER, text=told, origins=origins_of(step)),
    )


# -- reading
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Label:
    kind: str
    line: int
    rest: str  # the text after it on its line


def parse(completion: Completion, conversation: Conversation, labels: Labels) -> AgentDecision:
    """Return the decision in a reply: its first call, or its answer if that comes before any call.

    Raises:
        MalformedReplyError: there is neither.
    """
    if completion.tool_calls and conversation.tools:
        return read_called(completion)
    text = _unwrap(_dedent(completion.text.replace("\r\n", "\n").strip("\n").rstrip()).strip())
    tools = {tool.name: tool for tool in conversation.tools}
    decision, found = _read_lines(text, labels, tools)
    decision = decision or read_written(text, conversation.tools, is_alone=True)
    decision = decision or _read_beneath(text, labels, tools)
    if decision is not None:
        return decision
    if conversation.is_last and text and not found:
        return Finish(output=text, log=text)
    kinds = ("action", "action_input", "answer")
    raise MalformedReplyError(
        say("expect_lines", **{one: getattr(labels, one)[0] for one in kinds})
    )


def _read_lines(
    text: str, labels: Labels, tools: Mapping[str, Tool]
) -> tuple[AgentDecision | None, list[_Label]]:
    """Return the decision in labelled lines, or None, and the labels."""
    lines = _without_cut_label(text.split("\n"), labels)
    found = _scan(lines, labels)
    end = next((label.line for label in found if label.kind == "observation"), len(lines))
    before = [label for label in found if label.line < end]
    return _decide(lines[:end], before, labels, tools), found


def _read_beneath(text: str, labels: Labels, tools: Mapping[str, Tool]) -> AgentDecision | None:
    """Return the decision in lines that are all indented beneath a first one, which is then a
    thought; it may also introduce a quotation, so a call is only made if its tool reads."""
    first, _, rest = text.partition("\n")
    beneath = _dedent(rest)
    if not rest[:1].isspace() or beneath == rest or beneath.startswith("\n"):
        return None
    decision, found = _read_lines(f"{first}\n{beneath}", labels, tools)
    is_meant = any(label.kind in ("input", "answer") for label in found)
    called = [tools.get(one.name) for one in getattr(decision, "calls", ())]
    is_meant &= all(tool is None or tool.effect is Effect.READ for tool in called)
    return decision if is_meant else None


def _dedent(text: str) -> str:
    """Remove the indentation that all lines share, because in a reply that is indented as a whole
    it is not a sign of code. Blank lines stay unchanged."""
    lines = text.split("\n")
    n_blanks = min(
        (len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()), default=0
    )
    return "\n".join(line[n_blanks:] if line.strip() else line for line in lines)


def _without_cut_label(lines: Sequence[str], labels: Labels) -> list[str]:
    """Remove the last line if it is only the beginning of the label "Observation:", where a stop
    sequence ended the reply."""
    last = lines[-1].strip()
    is_cut = any(
        len(last) >= min(3, len(name)) and name.startswith(last.rstrip(":："))
        for name in labels.observation
    )
    return list(lines[:-1] if is_cut and last and len(lines) > 1 else lines)


def _decide(
    lines: Sequence[str], found: Sequence[_Label], labels: Labels, tools: Mapping[str, Tool]
) -> AgentDecision | None:
    for at, label in enumerate(found):
        if label.kind == "answer":
            end = _end_of_answer(found[at + 1 :], len(lines), tools)
            answer = "\n".join([label.rest, *lines[label.line + 1 : end]]).strip()
            return Finish(output=answer, log="\n".join(lines[:end])) if answer else None
        if label.kind == "action":
            if (written := _read_json(lines, found, at, tools)) is not None:
                return written
            act = _read_call(lines, found, at, labels)
            if act is not None:
                return _read_end(_read_one_line(act, labels, tools), labels, tools)
    return _find_inline(lines, found, labels, tools)


def _read_json(
    lines: Sequence[str], found: Sequence[_Label], at: int, tools: Mapping[str, Tool]
) -> AgentDecision | None:
    """Return the call, answer or failure that is written as JSON after the label `found[at]`; None
    if there is none."""
    until = found[at + 1].line if at + 1 < len(found) else len(lines)
    written = "\n".join([found[at].rest, *lines[found[at].line + 1 : until]]).strip()
    is_json = written[:1] in ("{", "`")
    return read_written(written, tools.values(), is_alone=True) if is_json else None


def _read_one_line(act: Act, labels: Labels, tools: Mapping[str, Tool]) -> Act:
    """Return the call with the tool's name and the input separated, if both stand on the line of
    the action: `search: tea` or `search "tea"`. Of `search (for tea)` the bracket is left out if a
    line with the input follows. Arguments by name (`search(query="tea")`) become JSON."""
    call = act.calls[0]
    if call.name not in tools and (one := _ONE_LINE.fullmatch(call.name)):
        name, given = one["name"], one["given"].strip(_QUOTES)
        is_known = name in tools or name.casefold() in _ENDS or name in labels.answer
        is_input = not call.arguments and one["sign"] != "("
        if is_known and (is_input or (call.arguments and one["sign"] == "(")):
            call = replace(call, name=name, arguments=given if is_input else call.arguments)
    if call.name in tools and (named := _read_named(call.arguments, tools[call.name])):
        call = replace(call, arguments=json.dumps(named, ensure_ascii=False))
    return replace(act, calls=(call,))


def _read_named(text: str, tool: Tool) -> dict[str, Any]:
    """Return arguments that are written as in a Python call, `query="tea", n=3`. Return an empty
    dict if the text has another form, or names parameters that the tool does not have."""
    if len(text) > MAX_INLINE_CHARS or not _NAMED.match(text):
        return {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as warnings about odd escapes
            call = ast.parse(f"f({text})", mode="eval").body
        values = {one.arg: ast.literal_eval(one.value) for one in getattr(call, "keywords", ())}
        json.dumps(values, allow_nan=False)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return {}
    is_call = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args
    return values if is_call and set(values) <= set(tool.parameters.get("properties", {})) else {}


def _end_of_answer(later: Sequence[_Label], n_lines: int, tool_names: Collection[str]) -> int:
    """Return the number of the line after an answer: where a tool call begins that the model
    invented after it, or else the end of the reply."""
    for at, label in enumerate(later):
        name = re.split(r"[\[(]", label.rest)[0].strip(_DECORATION)
        if label.kind == "action" and name in tool_names:
            return later[at - 1].line if at and later[at - 1].kind == "thought" else label.line
    return n_lines


def _read_end(act: Act, labels: Labels, tool_names: Collection[str]) -> AgentDecision:
    """Return the decision that a labelled action stands for: a tool call or, if its name is one
    such as `final_answer` or `fail_task`, an answer or a failure. Raises `MalformedReplyError` if
    the answer is empty."""
    call = act.calls[0]
    name = call.name.strip().casefold()
    name = FINAL_ANSWER if name in _ENDS or call.name in labels.answer else name
    if call.name in tool_names or name not in ENDS:
        return act
    return end(name, unwrap(call.arguments.strip()), log=act.log)


def _read_call(
    lines: Sequence[str], found: Sequence[_Label], at: int, labels: Labels
) -> Act | None:
    """Return the call whose label is `found[at]`, with everything up to the next label as its
    input. None if the action is "none" or the like."""
    action, rest = found[at], found[at + 1 : at + 3]
    following, end = rest[0] if rest else None, rest[1].line if len(rest) > 1 else len(lines)
    name, inline = _split_inline(action.rest, labels)
    given, last = inline, action.line
    if inline is None and following is not None and following.kind == "input":
        last = end - 1
        given = "\n".join([following.rest, *lines[following.line + 1 : last + 1]])
    elif inline is not None:
        last = following.line - 1 if following is not None else len(lines) - 1
        given = "\n".join([inline, *lines[action.line + 1 : last + 1]])
    until = following.line if following is not None else len(lines)
    written = "\n".join([name, *lines[action.line + 1 : until]]).strip()
    if given is None and (bracketed := _BRACKETED.fullmatch(name.strip())):
        name, given = bracketed.groups()
    elif given is None and (bracketed := _BRACKETED.fullmatch(written)):
        (name, given), last = bracketed.groups(), until - 1
    name = name.strip(_DECORATION).rstrip(".:,")
    if name.casefold() in NO_CALL:
        return None
    call = ToolCall(id=WRITTEN_CALL, name=name, arguments=_unwrap((given or "").strip()).strip())
    return Act(
        calls=(call,),
        thought=_thought(lines[: action.line], labels),
        log="\n".join(lines[: last + 1]).rstrip(),
    )


def _split_inline(rest: str, labels: Labels) -> tuple[str, str | None]:
    """Return (name, input) of a call that is written on one line; the input is None if it is not on
    this line."""
    found = _patterns(labels).inline_input.search(rest, 0, MAX_LABEL_CHARS)
    return (rest[: found.start()], rest[found.end() :]) if found else (rest, None)


def _thought(lines: Sequence[str], labels: Labels) -> str:
    text = "\n".join(lines).strip()
    for name in labels.thought:
        text = text.removeprefix(f"{name}:").removeprefix(f"{name}：")
    return text.strip()


def _find_inline(
    lines: Sequence[str], found: Sequence[_Label], labels: Labels, tool_names: Collection[str]
) -> AgentDecision | None:
    """Return the decision that begins inside a line, if the reply has no other one: a tool call, or
    else an answer, whose label follows the end of a sentence or has the form `Finish[42]`."""
    if any(map(_decides, found)):
        return None
    patterns, log = _patterns(labels), "\n".join(lines)
    matches = [patterns.label.match(line[:MAX_LABEL_CHARS]) for line in lines]
    is_quoted, end = _quoted(lines, matches)
    answer = None
    for at, line in enumerate(lines[:end]):
        if is_quoted[at]:
            continue
        match = patterns.inline_call.search(line[:MAX_INLINE_CHARS])
        if match and match["tool"] in tool_names and not _CODE_BLOCK.match(line):
            given = "\n".join([line[match.end() :], *lines[at + 1 : end]]).strip()
            call = ToolCall(id=WRITTEN_CALL, name=match["tool"], arguments=_unwrap(given))
            thought = _thought([*lines[:at], line[: match.start()]], labels)
            return Act(calls=(call,), thought=thought, log=log)
        if answer is None and (match := patterns.inline_answer.search(line)):
            answer = "\n".join([line[match.end() :], *lines[at + 1 :]]).strip()
        if (
            answer is None
            and (ended := patterns.bare_end.search(line[:MAX_INLINE_CHARS]))
            and not any(map(str.strip, lines[at + 1 :]))
        ):
            answer = ended["given"].strip()
    return Finish(output=answer, log=log) if answer else None


def _decides(label: _Label) -> bool:
    return label.kind in DECIDING and label.rest.strip(_DECORATION).casefold() not in NO_CALL


def _scan(lines: Sequence[str], labels: Labels) -> list[_Label]:
    """Return the labels of the reply (`Action:`, `Observation:`), in order.

    Labels in a quotation are left out: in a code block, in a passage of the prompt that the reply
    repeats, or after `>`. A quotation that is opened before the first call or answer and never
    closed goes on to the end of the reply. Of the labels in it, only `Observation:` counts, because
    it shows that the model invented an observation."""
    patterns = _patterns(labels)
    matches = [patterns.label.match(line[:MAX_LABEL_CHARS]) for line in lines]
    is_quoted, end = _quoted(lines, matches)
    found: list[_Label] = []
    for at, match in enumerate(matches):
        if match is None or is_quoted[at]:
            continue
        label = _Label(
            kind=patterns.kind_by_name[
                _NUMBER.sub(" ", match["name"].replace("_", " ")).casefold()
            ],
            line=at,
            rest=lines[at][match.end() :],
        )
        is_code = label.kind in DECIDING and _CODE_BLOCK.match(lines[at])
        if label.kind == "observation" or (at < end and not is_code):
            found.append(label)
            end = len(lines) if _decides(label) else end
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Patterns:
    label: re.Pattern[str]
    inline_input: re.Pattern[str]
    inline_answer: re.Pattern[str]
    inline_call: re.Pattern[str]
    bare_end: re.Pattern[str]
    kind_by_name: dict[str, str]


@cache
def _patterns(labels: Labels) -> _Patterns:
    kinds = {
        "thought": labels.thought,
        "action": labels.action,
        "input": labels.action_input,
        "observation": labels.observation,
        "answer": labels.answer,
    }
    kind_by_name = {name.casefold(): kind for kind, names in kinds.items() for name in names}
    any_name = "|".join(
        re.escape(name).replace(r"\ ", r"(?:\s?#?\d{1,3})?[\s_]")
        for name in sorted(
            (name for names in kinds.values() for name in names), key=len, reverse=True
        )
    )
    blank = rf"[\s{_INVISIBLE}]*"
    inputs, answers, actions = (
        "|".join(map(re.escape, names))
        for names in (labels.action_input, labels.answer, labels.action)
    )
    return _Patterns(
        label=re.compile(
            rf"{blank}(?:[*_#]{{1,6}}{blank})?(?P<name>{any_name})(?:\s?#?\d{{1,3}})?{blank}[*_]{{0,3}}\s*[:：][*_]{{0,3}}",
            re.IGNORECASE,
        ),
        inline_input=re.compile(rf"[,;\s]\s*(?:{inputs})\s*[:：]", re.IGNORECASE),
        inline_answer=re.compile(rf"(?<=[.!?。])\s{{1,3}}(?:{answers})\s?[:：]", re.IGNORECASE),
        inline_call=re.compile(
            rf"(?:^|[\s.!?。,;])(?:{actions})\s?[:：]\s*(?P<tool>[\w-]{{1,64}})[\s,;.]{{1,3}}(?:{inputs})\s?[:：]",
            re.IGNORECASE,
        ),
        bare_end=re.compile(
            rf"(?:^|[.!?。]\s{{0,3}})\s{{0,3}}(?:finish|{answers})\[(?P<given>[^\n]*\S[^\n]*)\]\s*$",
            re.IGNORECASE,
        ),
        kind_by_name=kind_by_name,
    )


def _quoted(
    lines: Sequence[str], matches: Sequence[re.Match[str] | None]
) -> tuple[list[bool], int]:
    """Return for each line whether it is quoted, and the number of the first line inside a fence
    that is never closed (the number of lines if there is none). A line is quoted in a code fence
    (three backticks), in a data fence (`<<result MARK from …` to `MARK>>`), or after `>`.

    Args:
        matches: for each line, the match of its label (such as `Action:`), or None. If a fence
            opens after the label, the label itself is not quoted.
    """
    bodies = [
        line[match.end() :] if match else line for line, match in zip(lines, matches, strict=True)
    ]
    quoted = [line.lstrip().startswith(">") for line in lines]
    code, data = _code_blocks(bodies), _data_blocks(bodies)
    for first, last in (*code, *data):
        begin = first + 1 if matches[first] else first
        quoted[begin : last + 1] = [True] * (last + 1 - begin)
    # whether a code fence surrounds the whole reply
    is_around = matches[:1] == [None] and _CODE_FENCE.match(lines[0])
    opens = (
        _first_open(_CODE_FENCE, bodies, code, start=1 if is_around else 0),
        _first_open(_DATA_FENCE, bodies, data),
    )
    return quoted, min((at + 1 for at in opens if at is not None), default=len(lines))


def _first_open(
    fence_: re.Pattern[str],
    bodies: Sequence[str],
    blocks: Sequence[tuple[int, int]],
    start: int = 0,
) -> int | None:
    """Return the number of the first line, from `start` on, with a fence that is never closed; None
    if there is none. `bodies` are the lines without their labels, and `blocks` the first and the
    last line of each closed fence."""
    inside = {at for first, last in blocks for at in range(first, last + 1)}
    return next(
        (
            at
            for at in range(start, len(bodies))
            if at not in inside and fence_.match(bodies[at].lstrip())
        ),
        None,
    )


def _code_blocks(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return (first line, last line) of every closed code fence."""
    marks = [(at, match) for at, line in enumerate(lines) if (match := _CODE_FENCE.match(line))]
    return _pair(
        [(at, match[1]) for at, match in marks],
        [(at, match[1]) for at, match in marks if not match[2]],
    )


def _data_blocks(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return (first line, last line) of every closed data fence (from `<<result MARK from …` to
    `MARK>>`)."""
    opened = [(at, _DATA_FENCE.search(line, 0, MAX_LABEL_CHARS)) for at, line in enumerate(lines)]
    closed = [(at, _END_OF_DATA.fullmatch(line)) for at, line in enumerate(lines)]
    return _pair(*([(at, match[1]) for at, match in each if match] for each in (opened, closed)))


def _pair(
    opened: Sequence[tuple[int, str]], closed: Sequence[tuple[int, str]]
) -> list[tuple[int, int]]:
    """Return (first line, last line) of the blocks that lines with a mark open, and later lines
    with the same mark close. A block within another one is left out."""
    closing: dict[str, list[int]] = {}
    for at, mark in reversed(closed):
        closing.setdefault(mark, []).append(at)
    blocks: list[tuple[int, int]] = []
    for at, mark in opened:
        if blocks and at <= blocks[-1][1]:
            continue
        ends = closing.get(mark, [])
        while ends and ends[-1] <= at:
            ends.pop()
        if ends:
            blocks.append((at, ends[-1]))
    return blocks


def _unwrap(text: str) -> str:
    """Return the text without a code fence, if one surrounds the whole text."""
    lines = text.split("\n")
    if len(lines) > 1 and _code_blocks(lines) == [(0, len(lines) - 1)]:
        return "\n".join(lines[1:-1])
    return text
