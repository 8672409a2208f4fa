"""Classifies an agent's reply: first by its form (empty, a tool call written as text, JSON that is
cut off, a loop, an echo of the prompt), then by its words.

Each test takes time linear in the length of the reply and the prompt.
"""

from __future__ import annotations

import json
import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from babyagi.agents import phrases
from babyagi.agents.replies.creation import CreationReply
from babyagi.marks import find_marks
from babyagi.text import clean, late_pattern, rearm, shorten

N_SHINGLE = 5
MAX_LOOPED_WORDS = 120  # a longer repeated phrase is not detected
MIN_ECHOED_WORDS = 12
ECHOED_SHARE = 0.9
N_TOLD = 64  # texts of prompts whose runs of words are cached: each task has the same instructions

EMPTY = "The reply is empty: it holds no words that answer the task."
REFUSED = "The reply refuses the task and names nothing that is missing."
ECHO = "The reply only repeats the task or its instructions."
NO_RESULT = "The reply says what will be done, and gives no result."
CALL = "The reply is a tool call written as text, and gives no result."
CUT = "The reply is JSON that was cut off."
LOOP = "The reply is broken: it repeats the same words over and over."

_SYMBOL = re.compile(
    r"[^\x00-\x7f\W]|[a-zA-Z0-9]|[^\x00-\xff\s\u2000-\u206f\u2500-\u257f\u3000-\u303f\uff00-\uff20\ufe0f\ufffd]"
    r"|[¬°±²³¹µ¼½¾×÷§©®£¥€]"
)

# `++` may be an answer; `--` and `...` are not
_SIGN = re.compile(r"\A[^\s\w]?[-+*/=<>&|!%^~@#$:;]{1,3}\Z(?<![-.])")


def find_fault(text: str, *, task_name: str, prompt_texts: Sequence[str]) -> str:
    """Return a sentence for the model that says why the text cannot be an answer; "" if it may be
    one."""
    task = task_name.casefold()
    if not _SYMBOL.search(text):
        is_asked = text.strip("`\n ") and phrases.ASKS_SIGN.search(task)
        return "" if _SIGN.search(text) or is_asked else EMPTY
    may_be_product = phrases.ASKS_PRODUCT.search(task)
    if not may_be_product and _is_tool_call(text):
        return CALL
    if _is_cut_json(text):
        return CUT
    if not may_be_product and not phrases.asks_words(task) and _is_loop(text):
        return LOOP
    if not phrases.ASKS_QUOTE.search(task) and _is_echo(text, task_name, prompt_texts):
        return ECHO
    return ""


# -- JSON and tool calls
# --------------------------------------------------------------------------------------------------

_CALL = re.compile(
    r"\A(?:<(?:tool_call|function_call|invoke|function|tool)\b|\[TOOL_CALLS?\]|<\|python_tag\|>|```tool_"
    r"|(?:thought:.{0,2000}?\n)?action:\s*\S[^\n]*\n\s*action[ _]input:"
    r"|(?:search|recall|lookup|look_up|browse|fetch|read_file|python|calculator|query|web_search|get_\w+|call)\((?:[^()]"
    r"|\([^()]*\)){0,400}\)\Z|(?:to|calling|call|using)[ =]functions?\.\w+)",
    re.IGNORECASE | re.DOTALL,
)
_CALL_LIKE = re.compile(
    r"\A\{\s*\"(?:name|tool|action|function)\"\s*:\s*\"[^\"]*\"\s*,\s*\"(?:arguments|parameters|tool_input|action_input|args)\"\s*:"
)
_JSON_START = re.compile(r"[{\[]\s*[\"{\[\d\]}-]")
ENDING_TOOLS = frozenset({"final_answer", "finish", "answer", "submit"})
_CALLED_KEYS = ("tool", "action", "name", "function", "tool_name", "tool_calls")
_GIVEN_KEYS = frozenset(
    "tool_input action_input arguments parameters args input tool_args tool_calls".split()
)


def _is_tool_call(text: str) -> bool:
    if _CALL.match(text):
        return True
    value = read_json(text)
    if value is None and (called := _CALL_LIKE.match(text)):
        return not any(f'"{name}"' in called[0] for name in ENDING_TOOLS)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Mapping) or len(value) > 4 or not _GIVEN_KEYS & value.keys():
        return False
    name = next((value[key] for key in _CALLED_KEYS if key in value), None)
    return bool(name) and not (isinstance(name, str) and name in ENDING_TOOLS)


def read_json(text: str) -> Any:
    """Return the text parsed as JSON; None if it is not JSON."""
    if not _JSON_START.match(text):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_cut_json(text: str) -> bool:
    """Return whether the text is JSON that was cut off: a bracket or the last string is never
    closed."""
    if not re.match(r"\{\s*\"|\[\s*[{\[\"]", text):
        return False
    depth, is_string, is_escaped = 0, False, False
    for char in text:
        if is_escaped:
            is_escaped = False
        elif is_string:
            is_escaped, is_string = char == "\\", char != '"'
        elif char == '"':
            is_string = True
        else:
            depth += (char in "{[") - (char in "}]")
    return depth > 0


_ANSWER_KEYS = frozenset("answer result value output final_answer response data".split())
_LACK_KEYS = frozenset(
    "lacking lacks lack missing missing_inputs missing_information needs needed required "
    "missing_data".split()
)
_TOLD_KEYS = ("error", "message", "reason", "note", "explanation", "detail")
_SAYING_KEYS = frozenset(
    "status error message reason note notes explanation detail success code type thought".split()
)


def said_in_json(value: Mapping[Any, Any]) -> str:
    """Return the sentences of a JSON object that only says what is missing or why there is no
    answer, such as `{"status": …, "missing": …}`; "" for any other object."""
    if str(value.get("tool", value.get("action"))) in ENDING_TOOLS:
        return str(value.get("tool_input", value.get("action_input", "")))
    held = {str(key).casefold(): one for key, one in value.items() if one not in (None, "", [], {})}
    lacks = [f"Missing: {_flat(one)}." for key, one in held.items() if key in _LACK_KEYS]
    if lacks and len(held) < len(value) and set(held) <= _LACK_KEYS | _SAYING_KEYS:
        return " ".join(lacks)
    if not held or not set(held) <= _ANSWER_KEYS | _LACK_KEYS | _SAYING_KEYS:
        return ""
    answers = [one for key, one in held.items() if key in _ANSWER_KEYS]
    if any(not isinstance(answer, str) for answer in answers):
        return ""
    said = [one for one in answers if one.casefold() not in ("null", "none", "n/a", "unknown")]
    if lacks and not said:
        return " ".join(lacks)
    said += [one for key, one in held.items() if key in _TOLD_KEYS and isinstance(one, str)]
    return "\n".join([*lacks, *said])


def _flat(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


# -- loops and echoes
# --------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+")
_FENCE_OPENS = re.compile(r"<<(?P<label>[\w ]{1,60}) (?P<mark>[0-9a-f]{8,64}) from (?P<origin>.*)")
_FENCE_LINE = re.compile(
    r"^(?:<<[\w ]+ [0-9a-f]{8,64} from [^\n]*|[0-9a-f]{8,64}>>)[ \t]*$", re.MULTILINE
)
# only the program writes these lines, so a reply that contains one repeats its prompt
_OWN_FENCE = re.compile(
    r"<<(?:objective|task|last try|not there|listed tasks|queued tasks|missing parts)"
    r" [0-9a-f]{8,64} from [\w:]"
)
# names of the JSON protocol; a reply that is only such a name is an echo
_TOOL_NAMES = ("final_answer", "fail_task")
_QUOTABLE = ("result", "tool", "file", "web", "document")
_AROUND_TASK = frozenset(
    "task the is to my your number current i was asked will now name a an of ok okay sure carry "
    "out please".split()
)


def _is_loop(text: str) -> bool:
    """Return whether nearly all of the text repeats the same few words."""
    words = _WORD.findall(text.casefold())
    n_numbers = sum(word.isdigit() for word in words)
    if len(text) < 60 or 2 * n_numbers > len(words):
        return False
    if len(words) >= 12 and len(set(words)) <= max(3, len(words) // 20):
        return True
    packed = len(zlib.compress(text.encode("utf-8", "replace"), 6))
    if len(text) >= 400 and packed < 0.05 * len(text.encode("utf-8", "replace")):
        return True
    if _repeats_its_end(words):
        return True
    tail = words[len(words) // 4 :]
    shingles = {tuple(tail[at : at + N_SHINGLE]) for at in range(len(tail) - N_SHINGLE + 1)}
    return len(tail) >= 60 and len(shingles) <= len(tail) // 8


def _repeats_its_end(words: Sequence[str]) -> bool:
    """Return whether most of the text is one phrase, repeated three times or more up to the end."""
    for n in range(MIN_ECHOED_WORDS, min(len(words) // 3, MAX_LOOPED_WORDS) + 1):
        last, n_times = words[-n:], 1
        while words[-n * (n_times + 1) : -n * n_times] == last:
            n_times += 1
        if n_times >= 3 and 2 * n * n_times > len(words):
            return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """A fenced block of a prompt. `is_quotable`: a reply may consist only of text from this
    block."""

    text: str
    is_quotable: bool


def _split_fences(text: str) -> tuple[list[_Block], str]:
    """Return the closed fenced blocks of the text, and the text outside of them."""
    if "<<" not in text:
        return [], text
    lines = text.split("\n")
    # by mark, the lines that close a fence with it, last first
    closed_at: dict[str, list[int]] = {}
    for at in reversed(range(len(lines))):
        if lines[at].strip().endswith(">>") and len(lines[at]) < 80:
            closed_at.setdefault(lines[at].strip()[:-2], []).append(at)
    blocks: list[_Block] = []
    outside: list[str] = []
    at = 0
    while at < len(lines):
        opened = _FENCE_OPENS.match(lines[at][:300])
        ends = closed_at.get(opened["mark"], []) if opened else []
        while ends and ends[-1] <= at:
            ends.pop()
        if opened is None or not ends:
            outside.append(lines[at])
            at += 1
            continue
        end = ends.pop()
        is_quotable = any(opened[part].startswith(_QUOTABLE) for part in ("label", "origin"))
        blocks.append(_Block(text="\n".join(lines[at + 1 : end]), is_quotable=is_quotable))
        at = end + 1
    return blocks, "\n".join(outside)


def _is_echo(text: str, task_name: str, prompt_texts: Sequence[str]) -> bool:
    """Return whether the text only repeats what the model was told: its task, the objective, or its
    instructions."""
    is_own = "<" in text and _OWN_FENCE.search(rearm(text)) is not None
    if is_own or text.strip("`\"' .\n") in _TOOL_NAMES:
        return True
    own_blocks, own_words = _split_fences(text)
    if own_blocks and not _SYMBOL.search(own_words):
        return not any(block.is_quotable for block in own_blocks)
    words = _words(_FENCE_LINE.sub("", text))
    if not words:
        return bool(_FENCE_LINE.search(text))
    if _core(words) == _core(_words(task_name)):
        return True
    parts = [_split_fences(prompt) for prompt in prompt_texts]
    told = [block.text for blocks, _ in parts for block in blocks if not block.is_quotable]
    if len(words) < MIN_ECHOED_WORDS:
        return any(_core(words) == _core(_words(part)) for part in told)
    return _is_covered(words, [task_name, *told, *(outside for _, outside in parts)])


def _is_covered(words: Sequence[str], told: Sequence[str]) -> bool:
    """Return whether nearly all of the words occur, several in a row, in the texts that the model
    was told."""
    known = frozenset[tuple[str, ...]]().union(*map(_runs, told))
    sizes = sorted({len(run) for run in known}, reverse=True)
    covered_to, n_left = 0, int((1 - ECHOED_SHARE) * len(words) + 1e-9)
    for at in range(len(words)):
        n = next((n for n in sizes if tuple(words[at : at + n]) in known), 0)
        covered_to = max(covered_to, at + n)
        n_left -= covered_to <= at
        if n_left < 0:
            return False
    return True


@lru_cache(maxsize=N_TOLD)
def _runs(text: str) -> frozenset[tuple[str, ...]]:
    """Return the n-grams of a text: every `N_SHINGLE + 1` words in a row, or all words of a shorter
    text. Return none if the text has fewer than three words."""
    words = _words(text)
    n = min(N_SHINGLE + 1, len(words))
    return frozenset(tuple(words[at : at + n]) for at in range(len(words) - n + 1) if n >= 3)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _core(words: Sequence[str]) -> list[str]:
    """Return the words without an opening such as "The current task is to" or "12:", and without
    articles."""
    start = 0
    while start < len(words) and (words[start] in _AROUND_TASK or words[start].isdigit()):
        start += 1
    kept = [word for word in words[start:] if word not in ("the", "a", "an")]
    return kept or list(words)


# --------------------------------------------------------------------------------------------------
# Judges the final reply of an execution agent by its words: an answer, part of one, a named lack,
# or nothing of use.
#
# A `LACKING:` line decides. Without one, words decide only for a short reply: if all of it says
# that something is missing and speaks of the agent's own inputs, or if all of it refuses or talks.
# With weaker signs the reply is DOUBTFUL, and a model must judge it. A reply that something was not
# found is doubtful as well.
#
# Not covered: whether an answer is true, or fits its task. Replies in languages other than the
# dozen in `phrases` are taken for answers.
# --------------------------------------------------------------------------------------------------

MAX_LACK_CHARS = 500
MAX_JUDGED_CHARS = 2500  # a longer text also says other things than what is missing
MAX_JUDGED_SENTENCES = 24
# Texts that only look like answers are seldom longer.
MAX_DOUBTED_CHARS = 700
MIN_LOOP_WORDS = 6
MIN_TALK_WORDS = 3  # fewer words may be the whole answer
MAX_SENTENCE_CHARS = 400  # bounds the time that a pattern takes


class OutcomeKind(StrEnum):
    """The class of a reply. `doubtful`: no rule is certain, so a model must judge."""

    ANSWERED = "answered"
    PARTIAL = "partial"
    LACKING = "lacking"
    NOT_DONE = "not_done"
    DOUBTFUL = "doubtful"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A classified reply.

    Attributes:
        text: the reply without the model's thinking, chat markers and its `LACKING:` line.
        lack: what is lacking, in one line.
        why: the reason as a sentence, if the kind is NOT_DONE.
        origins: every source in any of the task's prompts; empty until the task's run has ended.
        plan: what the agent planned in the same reply; None if it was not asked to plan, or its
            plan could not be read.
        has_fallen_back: whether the model was asked for tool calls as labelled text, because the
            endpoint refused tools.
    """

    kind: OutcomeKind
    text: str
    lack: str = ""
    why: str = ""
    origins: tuple[str, ...] = ()
    plan: CreationReply | None = None
    has_fallen_back: bool = False


# -- noise
# --------------------------------------------------------------------------------------------------

_THINKING = re.compile(r"\A\s*<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_THOUGHT_END = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_TOKEN = r"<\|[\w /-]{1,40}\|>|</?s>|\[/?INST\]|<(?:end|start)_of_turn>|<eos>|<｜[\w▁ -]{1,40}｜>"
_ROLE = r"(?:(?:assistant|model|final|analysis)\b(?=\s|<|\Z))?"
_FIRST_TOKENS = re.compile(rf"\A(?:\s*(?:{_TOKEN}){_ROLE})+\s*", re.IGNORECASE)
_LAST_TOKEN = re.compile(rf"(?:{_TOKEN})\s*\Z", re.IGNORECASE)
_UNSEEN = dict.fromkeys(
    map(ord, "\N{ZERO WIDTH SPACE}\N{ZERO WIDTH NO-BREAK SPACE}\N{WORD JOINER}")
)
MAX_LAST_TOKENS = 20


def strip_noise(text: str) -> str:
    """Return the text without the model's thinking, chat markers such as `<|im_end|>`, and
    invisible characters."""
    text = _without_tokens(clean(text).translate(_UNSEEN).strip())
    opened = _THINKING.match(text)
    ends = list(_THOUGHT_END.finditer(text)) if opened or not text.startswith("```") else []
    if opened:
        end = next((end for end in ends if end.start() >= opened.end()), None)
        text = text[end.end() :] if end else ""
    elif ends and "<think" not in text[: ends[0].start()].casefold():
        text = text[ends[-1].end() :] if text[ends[-1].end() :].strip() else text
    return _without_tokens(text.strip())


def _without_tokens(text: str) -> str:
    text = _FIRST_TOKENS.sub("", text, count=1)
    for _ in range(MAX_LAST_TOKENS):
        found = _LAST_TOKEN.search(text, max(0, len(text) - 60))
        if found is None:
            break
        text = text[: found.start()].rstrip()
    return text.strip()


# -- judging
# --------------------------------------------------------------------------------------------------


def judge_reply(reply: str, *, task_name: str, prompt_texts: Sequence[str] = ()) -> Outcome:
    """Classify the reply, in time linear in its length.

    Args:
        prompt_texts: the texts of the prompt. A reply that only repeats them is no answer, unless
            it repeats their fenced results, files or observations.
    """
    body, lack = _split_marker(strip_noise(reply), task_name)
    found = _judge_body(body, task_name, prompt_texts, has_lack=bool(lack))
    if not lack:
        return found
    is_answered = found.kind in (OutcomeKind.ANSWERED, OutcomeKind.PARTIAL)
    kind = OutcomeKind.PARTIAL if is_answered else OutcomeKind.LACKING
    return Outcome(kind=kind, text=body, lack=lack)


# -- the `LACKING:` line
# --------------------------------------------------------------------------------------------------

_EDGE = r"[ \t>*_~`\"'“”„«»‘’#•·–—-]{0,12}(?:\[[ x]?\])?[ \t]{0,4}"
_MARKER = re.compile(
    rf"^{_EDGE}lacking{_EDGE}[:：]{_EDGE}(?P<rest>[^\n]*)", re.IGNORECASE | re.MULTILINE
)
_LIKE_MARKER = re.compile(
    rf"\A{_EDGE}(?:lacks?|missing(?: inputs?| information| data)?|still "
    r"missing|fehlt|fehlend|es fehlt|manque|il manque|manquant"
    rf"|falta|faltan|faltante"
    r"|manca|mancano|ontbreekt|ontbrekend|saknas|mangler|brakuje|brak|chybí|eksik|не "
    r"хватает|отсутствует|недостаёт|不足|欠落|缺少|缺失"
    rf"|부족){_EDGE}"
    rf"[:：]{_EDGE}(?P<rest>.*)\Z",
    re.IGNORECASE,
)
_NO_LACK = re.compile(
    r"\W*(?:nothing|none|n/?a|no|nil|null|-|nichts|keine?|rien|aucune?|nada|ninguno"
    r"|niente|nulla|niets|inget|ingenting|нет|ничего|なし|无|無"
    r"|what is missing|not applicable|(?:there is )?nothing (?:is "
    r")?(?:missing|lacking|else|more|further)|no (?:information|data"
    r"|inputs?) (?:is |are )?(?:missing|lacking))?\W*",
    re.IGNORECASE,
)
_NOTHING_LACKS = late_pattern(
    r"(?<=[.!?\n])\s{0,4}(?:nothing (?:else |more |further )?(?:is |was )?"
    r"(?:missing|lacking|needed|required)|es fehlt nichts|rien ne manque|no falta nada"
    r"|non manca nulla|nada falta)[.!]?\s{0,4}\Z",
    re.IGNORECASE,
)
_CODE_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)


def _split_marker(text: str, task_name: str) -> tuple[str, str]:
    """Return (the text without its `LACKING:` line, what that line says is lacking). The second is
    "" if nothing is lacking."""
    is_in_code = _code_test(text)
    asks_gaps = phrases.ASKS_GAPS.search(task_name.casefold()) is not None
    found = None
    for match in _MARKER.finditer(text):
        is_word = "LACKING" not in match[0] and asks_gaps
        found = found if is_word or is_in_code(match.start()) else match
    if found is None:
        before, _, last = text.rpartition("\n")
        is_asked = asks_gaps or phrases.asks_words(task_name.casefold())
        like = None if is_asked else _LIKE_MARKER.match(last[:MAX_JUDGED_CHARS])
        if like is None or (not before.strip() and not like["rest"].strip()):
            return text, ""
        lack = _one_line(like["rest"])
        return (text, "") if _NO_LACK.fullmatch(lack) else (before.strip(), lack)
    before, after = text[: found.start()].strip(), text[found.end() :].strip()
    lack = found["rest"].strip()
    if not lack.strip("*_ ") and after:
        lack, _, after = after.partition("\n\n")
    body = f"{before}\n\n{after}".strip()
    lack = _one_line(lack)
    return body, "" if _NO_LACK.fullmatch(lack) else lack


def _code_test(text: str) -> Callable[[int], bool]:
    """Return a predicate for positions in the text: is this one inside a code block? A code block
    around the whole text does not count."""
    starts = [fence.start() for fence in _CODE_FENCE.finditer(text)]
    is_whole = starts[:1] == [0] and len(starts) <= 2
    return lambda at: not is_whole and bisect_left(starts, at) % 2 == 1


def _one_line(text: str) -> str:
    line = " ".join(text[: 4 * MAX_LACK_CHARS].split()).strip(" *_`\"“”'«»|")
    return shorten(line, MAX_LACK_CHARS)


# -- the rest of the reply
# --------------------------------------------------------------------------------------------------

_LABEL = re.compile(
    r"\A[\s*#_>]*(?:final answer|answer|result|output|response|antwort|réponse|respuesta"
    r"|ergebnis)[\s*_]*[:：][\s*_]*",
    re.IGNORECASE,
)
_WRAPPED = re.compile(
    r"\A```\w*\n(?P<inner>.*?)\n?```\Z|\A<(?P<tag>answer|result|output"
    r"|response)>(?P<body>.*)</(?P=tag)>\Z",
    re.DOTALL | re.IGNORECASE,
)


def _judge_body(
    body: str, task_name: str, prompt_texts: Sequence[str], *, has_lack: bool
) -> Outcome:
    """Classify a reply whose `LACKING:` line was removed.

    Args:
        has_lack: whether it had such a line; then its answer is not doubtful.
    """
    task = task_name.casefold()
    bare = _without_nothing_lacks(_unwrap(body))
    why = find_fault(bare, task_name=task_name, prompt_texts=prompt_texts)
    if why:
        return Outcome(kind=OutcomeKind.NOT_DONE, text=body, why=why)
    value = read_json(bare)
    said = said_in_json(value) if isinstance(value, Mapping) else ""
    text = said or bare
    # what the reply only quotes is not its own statement
    sentences = _sentences(_without_quotes(text)) if len(text) <= MAX_JUDGED_CHARS else []
    kind, lack = OutcomeKind.ANSWERED, ""
    if said or value is None:
        kind, lack, why = _judge_words(text, sentences, task)
    if kind is OutcomeKind.ANSWERED and not has_lack and _looks_bad(text, sentences, task):
        kind = OutcomeKind.DOUBTFUL
    return Outcome(kind=kind, text=body, lack=lack, why=why)


def _without_nothing_lacks(text: str) -> str:
    """Return the text without an end that says that nothing is missing: a last line ("Missing:
    nothing") or a last sentence ("Nothing is missing."). A text with nothing else is returned
    unchanged."""
    end = _NOTHING_LACKS.search(text)
    text = text[: end.start()] if end and text[: end.start()].strip() else text
    before, _, last = text.rstrip().rpartition("\n")
    like = _LIKE_MARKER.match(last[:MAX_JUDGED_CHARS])
    rest = like["rest"].strip() if like else ""
    return before.rstrip() if rest and before.strip() and _NO_LACK.fullmatch(rest) else text


def _unwrap(text: str) -> str:
    """Return the text without a code fence, a tag or a label such as "Answer:" around the whole of
    it."""
    wrapped = _WRAPPED.match(text)
    if wrapped and "```" not in (wrapped["inner"] or ""):
        text = (wrapped["inner"] or wrapped["body"] or "").strip()
    elif text.startswith("```json\n"):
        # the end of the code block may be cut off
        text = text.removeprefix("```json\n")
    return _LABEL.sub("", text, count=1).strip()


# -- sentences
# --------------------------------------------------------------------------------------------------

_SENTENCE_END = re.compile(
    r"(?<=[;.!?…。！？；])(?:(?<=;)\s+|(?<=[.!?…])[\"'”»)*]*\s+(?=[^\sa-z])|(?<=[。！？；]))|\n+"
)
_ABBREVIATION = re.compile(
    r"(?:\A\s*\d{1,3}|\b(?:dr|mr|mrs|ms|prof|st|no|nr|approx|e\.g|i\.e|etc|vs|cf|ca|z\.b"
    r"|bzw|inc|ltd|fig|vol"
    r"|p|pp|sec|art)|(?<![°\w] )\b(?<![°\d])[a-z])\.$",
    re.IGNORECASE,
)
_ITEM = re.compile(r"^\s*(?:[-*+•–]|\(?\d{1,3}[.)]|[a-z]\))\s+", re.IGNORECASE)
_MARKDOWN = str.maketrans({"’": "'", "‘": "'", "*": "", "`": "", "“": '"', "”": '"', "#": ""})
_QUOTATION = re.compile(r"[\"“„«](?=\w)[^\"“”„«»]{12,}[\"”“»]")
_QUOTE_PLACE = '"x\ue000"'
_CITATION = re.compile(r"\b\w+\.[a-z]{1,5}:\d+")
_QUOTED = re.compile(r"\A[\"“«„'‘「].{3,}[\"”»“'’」]\.?\Z", re.DOTALL)


_POLAR = re.compile(
    r"(?:yes|no|not "
    r"without|true|false|ja|nein|oui|non|sí|sì|não|sim|nej|da|да|нет|はい|いいえ|是|否)\b[.,;:!。，]",
    re.IGNORECASE,
)
_PLAIN_WORDS = frozenset(
    "the and was were has had for not but are its any all his her who how yet der die das ist les "
    "des est los las una het een can no that this there here with from have been still remains "
    "remain exact date name true today known very also because".split()
)


_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_TABLE_HEAD = re.compile(r"\s*\|[^\n]*\|\s*\n\s*\|[\s|:-]*\s*")


class _Says(StrEnum):
    """What one sentence of a reply is: part of an answer (`CONTENT`), or a statement about the
    reply itself, such as that something is lacking, a refusal or a plan."""

    STRONG = "the reply lacks something"
    ABSENT = "something is absent"
    REFUSAL = "refusal"
    TALK = "talk"
    PLAN = "plan"
    ASIDE = "what a lack or a refusal is given with"
    CONTENT = "content"


def _judge_words(text: str, sentences: Sequence[str], task: str) -> tuple[OutcomeKind, str, str]:
    """Classify a text by its sentences. Return (its kind, what it says is lacking, why it is no
    answer)."""
    if not 0 < len(sentences) <= MAX_JUDGED_SENTENCES:
        return OutcomeKind.ANSWERED, "", ""
    answered, doubtful = (OutcomeKind.ANSWERED, "", ""), (OutcomeKind.DOUBTFUL, "", "")
    if _POLAR.match(text) and phrases.ASKS_STATE.search(task):
        return answered
    said = _classify_until_content(sentences)
    if said is None:
        return answered
    pairs = zip(_with_quotes(sentences, text), said, strict=True)
    lacks = [one for one, says in pairs if says in (_Says.STRONG, _Says.ABSENT)]
    lack = _one_line(" ".join(lacks))
    if lack:
        return _judge_lack(text, lack, set(said), task)
    if set(said) == {_Says.ASIDE}:
        return answered
    if _Says.REFUSAL in said:
        is_sure = any(phrases.REFUSAL_SURE.search(_fold(sentence)) for sentence in sentences)
        refused = (OutcomeKind.NOT_DONE, "", REFUSED) if is_sure else doubtful
        return answered if _asks_refusal(text, task) else refused
    if phrases.asks_words(task):
        return answered
    is_short = len(text.split()) < MIN_TALK_WORDS
    has_news = any(mark not in task for mark in find_marks(text))
    return doubtful if is_short or has_news else (OutcomeKind.NOT_DONE, "", NO_RESULT)


def _looks_bad(text: str, sentences: Sequence[str], task: str) -> bool:
    """Return whether a short text looks as if it were not an answer, or has no words beyond those
    of its task."""
    if len(text) > MAX_DOUBTED_CHARS:
        return False
    folded = [_fold(sentence)[:MAX_SENTENCE_CHARS] for sentence in sentences or [text]]
    signs = [sentence for sentence in folded if phrases.DOUBT.search(sentence)]
    if 2 * len(signs) >= len(folded) or any(map(phrases.OF_THE_SPEAKER.search, signs)):
        return True
    words = _LONG_WORD.findall(text.casefold())
    is_unfinished = text.rstrip().endswith(":") or _TABLE_HEAD.fullmatch(text) is not None
    is_loop = len(words) >= MIN_LOOP_WORDS and 3 * len(set(words)) <= len(words)
    is_new = any(word[:4] not in task and word not in _PLAIN_WORDS for word in words)
    has_news = is_new or any(map(str.isdigit, text))
    is_sign = not any(map(str.isalnum, text))
    return is_unfinished or is_loop or is_sign or (len(words) > 1 and not has_news)


def _classify_until_content(sentences: Sequence[str]) -> list[_Says] | None:
    """Return the class of each sentence; None as soon as a sentence has content, which means that
    the text may be an answer.

    Sentences after a plain refusal only give its reasons, so their content does not count.
    """
    said: list[_Says] = []
    is_refusal = False
    for says in _classify(sentences):
        said.append(says)
        if len(said) == 1:
            is_refusal = _is_plain_refusal(says, sentences)
        if says is _Says.CONTENT and not is_refusal:
            return None
    return said


def _is_plain_refusal(first: _Says, sentences: Sequence[str]) -> bool:
    return (
        first is _Says.REFUSAL
        and len(sentences) <= 3
        and phrases.REFUSAL_SURE.search(_fold(sentences[0])) is not None
        and not re.search(r"\d", " ".join(sentences))
    )


def _judge_lack(text: str, lack: str, kinds: set[_Says], task: str) -> tuple[OutcomeKind, str, str]:
    """Classify a text that says only that something is missing. Return (its kind, what it says is
    lacking, why it is no answer)."""
    folded = _fold(text)
    answered, doubtful = (OutcomeKind.ANSWERED, "", ""), (OutcomeKind.DOUBTFUL, "", "")
    if phrases.ASKS_GAPS.search(task) or phrases.ASKS_FICTION.search(task):
        return answered
    is_text = phrases.ASKS_NO.search(task) or _QUOTED.match(text) or phrases.holds_quote(task)
    if phrases.asks_words(task) and (is_text or not phrases.OF_THE_AGENT.search(folded)):
        return answered
    is_retold = phrases.ASKS_STATE.search(task) or phrases.ASKS_DIGEST.search(task)
    if is_retold and not phrases.OF_THIS_REPLY.search(folded):
        return doubtful if phrases.SURELY_HERE.search(folded) else answered
    is_sure = phrases.OF_THE_SPEAKER.search(_fold(_without_quotes(text))) is not None
    return (OutcomeKind.LACKING, lack, "") if is_sure else doubtful


def _asks_refusal(text: str, task: str) -> bool:
    """Return whether the task itself asks for such a text, so that what looks like a refusal is the
    answer. Examples are a task to write a refusal, to list gaps, or to quote."""
    is_quote = phrases.asks_words(task) and _QUOTED.match(text)
    return bool(phrases.ASKS_REFUSAL.search(task) or phrases.ASKS_GAPS.search(task) or is_quote)


def _classify(sentences: Sequence[str]) -> Iterator[_Says]:
    """Yield for each sentence what it is (`_Says`): content, a lack, a refusal and so on. Items of
    a list are what the line above the list is, such as "I need:"."""
    heading = None
    for sentence in sentences:
        if heading is not None and _ITEM.match(sentence):
            yield heading
            continue
        says = _classify_one(_fold(sentence)[:MAX_SENTENCE_CHARS])
        yield says
        is_absent = says is _Says.ABSENT and not _ITEM.match(sentence)
        is_open = says is _Says.STRONG or is_absent or sentence.rstrip(" *_").endswith((":", "："))
        heading = says if is_open and says not in (_Says.CONTENT, _Says.TALK) else None


def _classify_one(sentence: str) -> _Says:
    reserved = phrases.RESERVATION.search(sentence)
    sentence = sentence[: reserved.start()] if reserved and reserved.start() else sentence
    if _CITATION.search(sentence):
        return _Says.CONTENT
    says = _classify_want(sentence)
    if says is not None:
        return says
    for says, words in (
        (_Says.REFUSAL, phrases.REFUSAL_SURE),
        (_Says.TALK, phrases.OFFER),
        (_Says.PLAN, phrases.PLAN),
        (_Says.TALK, phrases.TALK),
    ):
        if words.search(sentence):
            return says
    if phrases.ABSENT.search(sentence) and not _is_finding(sentence):
        return _Says.STRONG if phrases.LACK_ABROAD.search(sentence) else _Says.ABSENT
    if phrases.ASIDE.search(sentence):
        return _Says.ASIDE
    return _Says.REFUSAL if phrases.REFUSAL.search(sentence) else _classify_abroad(sentence)


def _classify_want(sentence: str) -> _Says | None:
    """Return the class of a sentence that asks for something; None for any other sentence."""
    is_offer = phrases.OFFER.search(sentence)
    asks = not is_offer or sentence.startswith("if you")
    if asks and phrases.STRONG.search(sentence) and not _is_finding(sentence):
        is_sure = phrases.REFUSAL_SURE.search(sentence)
        is_refusal = is_sure and not phrases.NAMES_INPUT.search(sentence)
        return _Says.REFUSAL if is_refusal else _Says.STRONG
    is_proposal = sentence.startswith(("how about", "what about"))
    is_question = sentence.endswith(("?", "？")) and not (is_proposal or is_offer)
    return _Says.STRONG if is_question and not phrases.REFUSAL_SURE.search(sentence) else None


def _is_finding(sentence: str) -> bool:
    return bool(phrases.FINDING.search(sentence)) and not phrases.SURELY_HERE.search(sentence)


def _without_quotes(text: str) -> str:
    """Return the text with a placeholder in place of each quotation; unchanged if the whole text is
    one quotation."""
    return text if _QUOTED.match(text) else _QUOTATION.sub(_QUOTE_PLACE, text)


def _with_quotes(sentences: Sequence[str], text: str) -> list[str]:
    """Return the sentences of `_without_quotes(text)` with the quotations of the text put back."""
    quotes = iter([] if _QUOTED.match(text) else _QUOTATION.findall(text))
    return [
        re.sub(_QUOTE_PLACE, lambda place: next(quotes, place[0]), sentence)
        for sentence in sentences
    ]


def _fold(text: str) -> str:
    bare = _ITEM.sub("", text[: 2 * MAX_JUDGED_CHARS]).translate(_MARKDOWN)
    folded = " ".join(bare.casefold().split())
    for short, long in (("won't", "will not"), ("can't", "cannot"), ("n't", " not")):
        folded = folded.replace(short, long)
    return folded.strip(" \"'_.!…。")


def _sentences(text: str) -> list[str]:
    """Return the sentences and lines of the text; an abbreviation does not end a sentence."""
    found: list[str] = []
    start = 0
    for end in [*_SENTENCE_END.finditer(text), None]:
        part = text[start : end.start() if end else len(text)]
        if end is not None and "\n" not in end[0] and _ABBREVIATION.search(part[-12:]):
            continue
        start = end.end() if end else len(text)
        if any(map(str.isalnum, part)):
            found.append(part.strip())
    return found


def _classify_abroad(sentence: str) -> _Says:
    for says, words in (
        (_Says.STRONG, phrases.LACK_ABROAD),
        (_Says.ABSENT, phrases.ABSENT_ABROAD),
        (_Says.REFUSAL, phrases.REFUSAL_ABROAD),
        (_Says.TALK, phrases.TALK_ABROAD),
    ):
        if words.search(sentence):
            return says
    return _Says.CONTENT
