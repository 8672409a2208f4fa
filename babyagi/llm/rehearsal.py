"""A stand-in for a language model: deterministic, offline, and open about being one.

It reads its prompt, as any model does: the role, the fenced blocks, the offered tools. Asked to
execute, it quotes the passages that share most words with the question, each with `file:line`: from
files in its prompt, else from what the tools give it. Asked to create, it proposes one task for
each file that was listed and not read, and a comparison. Asked to prioritise, it puts reading
before comparing. Asked to check, it finds a question answered if a result quotes a passage that
shares a word with it.

Not covered: understanding, synonyms, other forms of a word. It quotes; it never rephrases. It calls
tools natively, in no other protocol.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from babyagi.index.hashing import split_words
from babyagi.llm.port import Completion, OnText
from babyagi.llm.prompt import (
    Prompt,
    Speaker,
    ToolCall,
    bound_tokens,
    estimate_prompt_tokens,
    estimate_tokens,
)
from babyagi.retrieval.rank import count_words, cut_pieces, score_words
from babyagi.tasks import ASKED_FURTHER, Reservation, Role, Usage
from babyagi.text import MARK, shorten

READ, COMPARE = "Read the file ", "Compare what the files say"  # names of its own tasks
NOT_FOUND, NO_WORD = "Not found", "no passage shares a word with the question."
OUTPUTS = ("observation", "error")  # the labels of what a tool gave
MAX_FILES = 8  # that it reads one by one; with a comparison as many tasks as one result may add
MAX_READS = 5  # calls to read one file
MAX_QUOTES = 5
MAX_QUOTE_CHARS = 300  # as many as a reply of a check may hold
MAX_NAMED_CHARS = 100  # of the names of files in which it found nothing

_ROLE = re.compile(r"^Role: (\w+) agent", re.MULTILINE)
_BLOCK = re.compile(
    rf"^<<([a-z0-9 ]+) ({MARK}) from ([^\n]*)\n(.*?)\n\2>>$", re.MULTILINE | re.DOTALL
)
_TASK = re.compile(r"Task (\d+): .*")  # the first line of a result
_QUOTE = re.compile(r'^- "(.+)" \((.+?):(\d+)\)(?: under (.+))?$', re.MULTILINE)
_UNREAD = re.compile(r"^- (?!\")(.+) \([\d.]+ (?:B|kB|MB)\)$", re.MULTILINE)
_LISTED = re.compile(r"^(\S.*?)  (\([\d.]+ (?:B|kB|MB)\))$", re.MULTILINE)  # by `list_files`
_SHOWN = re.compile(r"(\S.*), lines \d+-\d+(?: of \d+|, under .*)?")  # the line above lines
_NUMBERED = re.compile(r"(\d+): (.*)")
_CUT = re.compile(r" … \(\d+ more characters in this line\)$", re.MULTILINE)
_MORE = re.compile(r"\[more: read_file with first_line=(\d+)\]$")
_HEADING = re.compile(r"(#{1,6}|={1,6})\s+(.+)")
_ITEM = re.compile(r"\s*(?:[-*+•]|#\.|\(?(?:\d{1,3}|[A-Za-z])[.)])\s+(?=\S)")
_TABLES, _ENDS = (".csv", ".tsv"), (".", "!", "?", "。", "！", "？")
_TABLE_LEVEL = 7

Block = tuple[str, str, str]  # the label, the origin and the text of a fenced block
Line = tuple[int, str]  # its number and its text


class RehearsalModel:
    """A `ChatModel` that costs nothing and calls no other model."""

    name = "rehearsal"

    def reserve(self, prompt: Prompt) -> Reservation:
        return Reservation(calls=1, tokens=bound_tokens(prompt) + prompt.max_output_tokens)

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        text, calls = _respond(prompt)
        usage = Usage(
            calls=1,
            prompt_tokens=estimate_prompt_tokens(prompt),
            completion_tokens=estimate_tokens(text + "".join(call.arguments for call in calls)),
        )
        reason = "tool_calls" if calls else "stop"
        return Completion(
            text=text, tool_calls=calls, finish_reason=reason, model=self.name, usage=usage
        )


def _respond(prompt: Prompt) -> tuple[str, tuple[ToolCall, ...]]:
    told = "\n".join(one.text for one in prompt.messages if one.speaker is Speaker.SYSTEM)
    role = _ROLE.search(told)
    blocks: list[Block] = [
        (label, origin, text)
        for message in prompt.messages
        for label, _, origin, text in _BLOCK.findall(_CUT.sub("", message.text))
    ]
    match role.group(1) if role else "":
        case "execution":
            call = _next_call(prompt, blocks)
            return ("", (call,)) if call else (_execute(prompt, blocks, told), ())
        case "creation":
            tasks = _plan(_results(blocks), blocks)
            return _dump(tasks=tasks, unanswered=[], objective_met=False), ()
        case "prioritization":
            return _order(blocks), ()
        case "check":
            return _check(blocks), ()
        case "report":
            return _report(blocks), ()
        case "memory":
            return _note(blocks, wants_facts='{"facts"' in told), ()
        case _:
            return "This prompt names no agent, so there is nothing to rehearse.", ()


def _dump(**fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False)


def _texts(blocks: Sequence[Block], *labels: str) -> list[str]:
    return [text for label, _, text in blocks if label in labels]


def _questions(blocks: Sequence[Block]) -> list[str]:
    """Return the objective, then each further question of the person."""
    return "\n".join(_texts(blocks, "objective")).split(f"\n{ASKED_FURTHER}")


# -- execution
# --------------------------------------------------------------------------------------------------


def _next_call(prompt: Prompt, blocks: Sequence[Block]) -> ToolCall | None:
    """Return the tool call that must be made before the task can be answered; None if the files
    stand in the prompt, enough was looked at, or the tool is not offered."""
    seen = [(origin, text) for label, origin, text in blocks if label in OUTPUTS]
    origin, text = seen[-1] if seen else ("", "")
    task, more = _task(prompt, blocks), _MORE.search(text)
    name, arguments = "", dict[str, object]()
    if task.startswith(READ) and (more or not seen) and len(seen) < MAX_READS:
        first_line = int(more.group(1)) if more else 1
        name, arguments = "read_file", {"path": task.removeprefix(READ), "first_line": first_line}
    elif not task.startswith((READ, COMPARE)) and not _texts(blocks, "file"):
        name = {"": "list_files", "tool:list_files": "search_files"}.get(origin, "")
        arguments = {"words": " ".join(_questions(blocks)) or task} if seen else {}
    if name not in {tool.name for tool in prompt.tools}:
        return None
    return ToolCall(id=f"call_{len(seen) + 1}", name=name, arguments=json.dumps(arguments))


def _task(prompt: Prompt, blocks: Sequence[Block]) -> str:
    """Return the task without its number; outside of the task loop, what the user said last."""
    task = "".join(_texts(blocks, "task")).partition(": ")[2]
    said = (one.text for one in reversed(prompt.messages) if one.speaker is Speaker.USER)
    return task or next(said, "")


def _execute(prompt: Prompt, blocks: Sequence[Block], told: str) -> str:
    """Return the answer to the task: the best quotes, or that nothing was found, then the files
    that were listed and not read. If the prompt asks for a plan too, its JSON ends the answer."""
    seen, task = _texts(blocks, *OUTPUTS), _task(prompt, blocks)
    read, is_reading = _read_files(blocks), task.startswith(READ)
    quotes = [one for path, lines in read.items() for one in split_quotes(path, lines)]
    if not read and not is_reading:
        quotes = _quoted(blocks)
    best = rank_quotes(" ".join(_questions(blocks)) or task, quotes)[:MAX_QUOTES]
    said = [quote.render() for quote in best]
    if not said:
        why = "nothing was read."
        if read or (_results(blocks) and not seen):
            why = NO_WORD
        elif len(seen) > (0 if is_reading else 1):  # a list of names says nothing yet
            why = seen[-1].partition("\n")[0]
        paths = [task.removeprefix(READ)] if is_reading else [*read]
        where = f" in {shorten(', '.join(paths), MAX_NAMED_CHARS)}" if paths else ""
        said = [f"{NOT_FOUND}{where}: {why}"]
    answer = "\n".join(said)
    unread = "\n".join([] if is_reading else _list_unread(seen[:1], found=read))
    if '"objective_met"' not in told:  # another call plans, and is shown this answer alone
        return f"{answer}\n{unread}" if unread else answer
    plan = _plan([(0, unread)], blocks)
    return f"{answer}\n{_dump(lacks='', after=[], tasks=plan, objective_met=False)}"


def _list_unread(listings: Sequence[str], *, found: Collection[str]) -> list[str]:
    """Return lines that name the files of the folder; those that a search found come first."""
    sizes = dict(pair for text in listings for pair in _LISTED.findall(text))
    order = [path for path in dict.fromkeys((*found, *sizes)) if path in sizes]
    lines = [f"- {path} {sizes[path]}" for path in order[:MAX_FILES]]
    n_more = len(order) - len(lines)
    head = f"{len(order)} files are not read as a whole yet:"
    return ["", head, *lines, *([f"and {n_more} more"] if n_more else [])] if order else []


def _read_files(blocks: Sequence[Block]) -> dict[str, dict[int, str]]:
    """Return the lines of each file in the prompt, by path and number: of whole files, and of
    passages as `read_file` and `search_files` give them."""
    found: dict[str, dict[int, str]] = {}
    for label, origin, text in blocks:
        is_whole = label == "file" and not _SHOWN.fullmatch(text.partition("\n")[0])
        if is_whole:
            path = origin.partition(", after ")[0].removeprefix("file:")
            found[path] = dict(enumerate(text.split("\n"), start=1))
        lines: dict[int, str] = {}
        for line in text.split("\n") if label in ("file", "observation") and not is_whole else ():
            if shown := _SHOWN.fullmatch(line):
                lines = found.setdefault(shown.group(1), {})
            elif numbered := _NUMBERED.fullmatch(line):
                lines[int(numbered.group(1))] = numbered.group(2)
            elif lines:
                lines.setdefault(max(lines) + 1, "")  # the end of what was shown ends a passage
    return found


# -- planning, check, report and memory
# --------------------------------------------------------------------------------------------------


def _plan(results: Sequence[tuple[int, str]], blocks: Sequence[Block]) -> list[dict[str, object]]:
    """Return the tasks that the results lead to: a comparison, and one for each file that a result
    lists as unread. What the prompt lists as a task already is left out."""
    known = "\n".join(_texts(blocks, "listed tasks")).split("\n")
    listed = {line.partition("] ")[2] for line in known}
    from_by_name = {
        f"{READ}{path}": number for number, text in results for path in _UNREAD.findall(text)
    }
    named = [(f"r{at}", name) for at, name in enumerate(from_by_name) if name not in listed]
    tasks = [_propose(id_, name, from_by_name[name]) for id_, name in named]
    if len(tasks) > 1 and COMPARE not in listed:
        after = [id_ for id_, _ in named]
        tasks.insert(0, _propose("c", COMPARE, from_by_name[named[0][1]], after=after))
    return tasks


def _propose(id_: str, name: str, from_: int, *, after: Sequence[str] = ()) -> dict[str, object]:
    return {"id": id_, "name": name, "after": list(after), "from": from_, "repeats": 0}


def _order(blocks: Sequence[Block]) -> str:
    queued = "\n".join(_texts(blocks, "queued tasks")).split("\n")
    numbered = [one for one in map(_NUMBERED.fullmatch, queued) if one]
    numbered.sort(key=lambda one: one.group(2).startswith(COMPARE))
    return _dump(order=[int(one.group(1)) for one in numbered])


def _check(blocks: Sequence[Block]) -> str:
    """Return the reply of a check: for each question the best quote that says more than was asked,
    and the task that found it. A question without a quote is missing."""
    questions = [question[:MAX_QUOTE_CHARS] for question in _questions(blocks)]
    asked = _words("\n".join(questions))
    results = sorted(_results(blocks), key=lambda result: not _UNREAD.search(result[1]))
    task_by_quote = {
        quote: number
        for number, text in results  # of two tasks with the same quote the one that read the file
        for quote in _find_quotes(text)
        if not asked.issuperset(_words(quote.text))
    }
    parts: list[dict[str, object]] = [
        {"part": question, "task": task_by_quote[quote], "quote": quote.text, "deed": False}
        for question in questions
        for quote in rank_quotes(question, [*task_by_quote])[:1]
    ]
    missing = [one for one in questions if one not in [part["part"] for part in parts]]
    return _dump(parts=parts, missing=missing, contradictions=[], met=not missing)


def _report(blocks: Sequence[Block]) -> str:
    """Return the best quotes for each question, and the files of which nothing could be read."""
    results, lines = _results(blocks), list[str]()
    for at, question in enumerate(_questions(blocks)):
        best = rank_quotes(question, _quoted(blocks))[:MAX_QUOTES]
        lines += ["", question, ""] if at else []
        lines += [quote.render() for quote in best] or [f"{NOT_FOUND} in what was read."]
    said = dict.fromkeys(line for _, text in results for line in text.split("\n"))
    unread = [one for one in said if one.startswith(NOT_FOUND) and not one.endswith(NO_WORD)]
    return "\n\n".join(["\n".join(lines), *unread])


def _note(blocks: Sequence[Block], *, wants_facts: bool) -> str:
    """Return the first line of each block, as a summary; or no facts, which need a model."""
    first = [text.partition("\n")[0] for _, _, text in blocks if text]
    return _dump(facts=[]) if wants_facts else "\n".join(first)[:1000]


def _results(blocks: Sequence[Block]) -> list[tuple[int, str]]:
    """Return the number of the task and the text of each result."""
    heads = [(_TASK.match(text), text) for text in _texts(blocks, "result")]
    return [(int(head.group(1)), text[head.end() :]) for head, text in heads if head]


# -- quotes
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A passage of a file, with the number of its first line, and the headings `above` it."""

    text: str
    path: str
    line: int
    above: str = ""

    def render(self) -> str:
        under = f" under {self.above}" if self.above else ""
        return f'- "{self.text}" ({self.path}:{self.line}){under}'


def _quoted(blocks: Sequence[Block]) -> list[Quote]:
    """Return the quotes in all results of the prompt: for each place the one with most headings."""
    found = [one for _, text in _results(blocks) for one in _find_quotes(text)]
    found.sort(key=lambda one: len(one.above))
    return list({(one.path, one.line): one for one in found}.values())


def _find_quotes(text: str) -> list[Quote]:
    return [
        Quote(text=said, path=path, line=int(line), above=above)
        for said, path, line, above in _QUOTE.findall(text)
    ]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def rank_quotes(question: str, quotes: Sequence[Quote]) -> list[Quote]:
    """Return the quotes that share words with the question, best first. A word counts more if few
    quotes have it. Stop words of the search do not count."""
    words = " ".join(split_words(question))
    scores = score_words(words, [count_words(f"{one.above} {one.text}") for one in quotes])
    ranked = sorted(range(len(quotes)), key=lambda at: -scores[at])
    return [quotes[at] for at in ranked if scores[at] > 0]


def split_quotes(path: str, lines: Mapping[int, str]) -> list[Quote]:
    """Return what can be quoted of the numbered lines of a file: passages, rows, items; not the
    headings. The first row of a table is a heading of the lowest level."""
    found: list[Quote] = []
    headings: dict[int, str] = {}  # by level
    run: list[Line] = []  # the lines of a passage
    was_row = False
    for number, line in [*sorted(lines.items()), (0, "")]:
        text, heading = line.strip(), _HEADING.match(line)
        is_row = bool(text) and (path.endswith(_TABLES) or text.startswith("|"))
        if run and (is_row or was_row or heading or _ends(run[-1][1], line)):
            above = " > ".join(headings.values())
            found += [
                Quote(text=passage, path=path, line=at, above=above)
                for passage, at in _cut(run)
                if _words(passage)  # the rule of a table says nothing
            ]
            run = []
        if was_row and not is_row:
            headings.pop(_TABLE_LEVEL, None)
        if heading or (is_row and not was_row):
            level, name = _TABLE_LEVEL, text
            if heading:
                level, name = len(heading.group(1)), heading.group(2).strip("#= ")
            headings = {one: above for one, above in headings.items() if one < level}
            headings[level] = name
        elif text:
            run.append((number, text))
        was_row = is_row
    return found


def _ends(last: str, line: str) -> bool:
    """Return whether the line after the `last` one begins another passage."""
    return not line.strip() or last.endswith(_ENDS) or bool(_ITEM.match(line))


def _cut(run: Sequence[Line]) -> Iterator[tuple[str, int]]:
    """Yield the text of a run of lines in passages, each with the number of its first line."""
    joined = " ".join(text for _, text in run)
    line_by_place = [number for number, text in run for _ in f"{text} "]
    mark = _ITEM.match(joined)
    place = mark.end() if mark else 0
    for passage in cut_pieces(joined[place:], MAX_QUOTE_CHARS):
        place = joined.index(passage, place)
        yield passage, line_by_place[place]
        place += len(passage)
