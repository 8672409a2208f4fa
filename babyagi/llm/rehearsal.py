"""A model without a language model: deterministic, offline, and honest about it.

It reads its prompt as any model must, out of the same fenced blocks. Asked to execute, it calls the
offered tools, scores the lines of what it read by the words they share with the objective, and
quotes the best ones with `file:line`. Asked to create, it proposes one task per document and
comparisons of them; asked to prioritise, it puts listing before reading before comparing, and what
the objective names and what is short first.

Does not cover: understanding. It quotes; it never rephrases.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from babyagi.llm.port import Completion
from babyagi.llm.prompt import (
    Prompt,
    Speaker,
    ToolCall,
    bound_tokens,
    estimate_tokens,
    prompt_text_bytes,
)
from babyagi.tasks import Reservation, Role, Usage

DOCUMENTS_PER_LIST = 8  # with their comparison and the next list as many as one result may bring
QUOTES_PER_DOCUMENT = 3
QUOTES_IN_REPORT = 10
QUOTES_FIRST = 3  # of these
MAX_READS = 5
MIN_QUOTE_CHARS = 30
MIN_QUOTE_WORDS = 5  # with fewer it is a heading, a link or a piece of a table
MAX_QUOTE_CHARS = 300

_BLOCK = re.compile(
    r"^<<([a-z ]+) ([0-9a-f]{8,64}) from ([^\n]*)\n(.*?)\n\2>>$", re.MULTILINE | re.DOTALL
)
_ROLE = re.compile(r"^Role: (\w+) agent", re.MULTILINE)
_TEXT_FORM = re.compile(
    (
        r"^(?P<action>.+): one of \[(?P<tools>.*)\]\n(?P<input>.+?): "
        r".*$(?:.*\n)+?(?P<answer>.+): the whole answer"
    ),
    re.MULTILINE,
)
_JSON_FORM = re.compile(r'"tool" is one of \{ (?P<tools>.*) \}')
_READ_TASK = re.compile(r"Read (.+) \(document (\d+) of (\d+), ([\d.]+) (B|kB|MB)\)")
_LIST_TASK = re.compile(r"^\d+: List the documents from number (\d+) on")
_COMPARE_TASK = re.compile(r"^\d+: Compare what documents [\d, to]+ say")
_LISTED = re.compile(
    r"^- (.+) \((?:document )?(\d+) of (\d+), ([\d.]+ (?:B|kB|MB))\)$", re.MULTILINE
)
_QUOTE = re.compile(r'^- "(.+)" \(([^()\n]+):(\d+)\)$', re.MULTILINE)
_NUMBERED_LINE = re.compile(r"^ *(\d+): (.*)$")
_WORD = re.compile(r"[^\W\d_]{3,}")
_PROSE_WORD = re.compile(r"(?<!\S)[^\W\d_]+[,.;:]?(?!\S)")
_STOP_WORDS = frozenset(
    "the and for are was were with that this from what which when how who why does did "
    "not but you your its our their they them then than "
    "has have had can could should would will may must all any each about into over "
    "under only also more most such these those there here "
    "answer document documents folder file files task tasks read list quote bears "
    "objective compare say says".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quote:
    text: str
    path: str
    line: int

    def render(self) -> str:
        return f'- "{self.text}" ({self.path}:{self.line})'


class RehearsalModel:
    """A `ChatModel` that costs nothing and asks nobody."""

    def __init__(self, name: str = "rehearsal") -> None:
        self.name = name

    def reserve(self, prompt: Prompt) -> Reservation:
        return Reservation(calls=1, tokens=bound_tokens(prompt) + prompt.max_output_tokens)

    async def complete(self, prompt: Prompt, *, role: Role) -> Completion:
        text, calls = _respond(prompt)
        usage = Usage(
            calls=1,
            prompt_tokens=-(-prompt_text_bytes(prompt) // 4),
            completion_tokens=estimate_tokens(text + "".join(call.arguments for call in calls)),
        )
        reason = "tool_calls" if calls else "stop"
        return Completion(
            text=text, tool_calls=calls, finish_reason=reason, model=self.name, usage=usage
        )

    async def close(self) -> None:
        return None


def _respond(prompt: Prompt) -> tuple[str, tuple[ToolCall, ...]]:
    found = _ROLE.search(_system(prompt))
    blocks = [
        (label, text)
        for message in prompt.messages
        for label, _, _, text in _BLOCK.findall(message.text)
    ]
    match found.group(1) if found else "":
        case "execution":
            return _speak(prompt, *_execute(_tool_names(prompt), blocks))
        case "creation":
            return _create(blocks), ()
        case "prioritization":
            return _prioritize(blocks), ()
        case "check":
            return _check(blocks), ()
        case "report":
            return _report(blocks), ()
        case _:
            return "This prompt names no agent, so there is nothing to rehearse.", ()


# -- execution
# --------------------------------------------------------------------------------------------------


def _execute(
    tool_names: Collection[str], blocks: Sequence[tuple[str, str]]
) -> tuple[str, tuple[ToolCall, ...]]:
    task, objective = _block(blocks, "task"), _block(blocks, "objective")
    observations = [text for label, text in blocks if label in ("observation", "error")]
    n_calls = len(observations)
    read = _READ_TASK.search(task)
    if read is not None:
        following = _next_line(observations, n_calls)
        if "read_file" in tool_names and following:
            return "", (
                _call(n_calls, "read_file", {"path": read.group(1), "first_line": following}),
            )
        return _quote_document(read.group(1), observations, objective), ()
    if _COMPARE_TASK.search(task):
        return _compare(blocks, objective), ()
    if "list_files" in tool_names and not observations:
        return "", (_call(n_calls, "list_files", {}),)
    if observations:
        return _list_documents(task, observations[-1]), ()
    quotes = _best(_quotes(blocks), objective, QUOTES_PER_DOCUMENT)
    said = "\n".join(quote.render() for quote in quotes)
    return said or f"Looked for documents: no document was found that bears on task {task}.", ()


def _tool_names(prompt: Prompt) -> set[str]:
    """The tools that are offered, in fields of their own or in words."""
    named = _TEXT_FORM.search(_system(prompt)) or _JSON_FORM.search(_system(prompt))
    return set(named["tools"].split(", ")) if named else {tool.name for tool in prompt.tools}


def _speak(
    prompt: Prompt, text: str, calls: tuple[ToolCall, ...]
) -> tuple[str, tuple[ToolCall, ...]]:
    """Put a call or an answer in the form that the prompt asks for."""
    system = _system(prompt)
    if form := _TEXT_FORM.search(system):
        said = (
            f"{form['action']}: {calls[0].name}\n{form['input']}: {calls[0].arguments}"
            if calls
            else f"{form['answer']}: {text}"
        )
        return said, ()
    if _JSON_FORM.search(system):
        tool, given = (
            (calls[0].name, json.loads(calls[0].arguments)) if calls else ("final_answer", text)
        )
        return json.dumps(
            {"thought": "", "tool": tool, "tool_input": given}, ensure_ascii=False
        ), ()
    return text, calls


def _system(prompt: Prompt) -> str:
    return "\n".join(
        message.text for message in prompt.messages if message.speaker is Speaker.SYSTEM
    )


def _call(n_before: int, name: str, arguments: dict[str, object]) -> ToolCall:
    return ToolCall(id=f"call_{n_before + 1}", name=name, arguments=json.dumps(arguments))


def _next_line(observations: Sequence[str], n_calls: int) -> int:
    """The line to read from next; 0 when the document is read, or enough of it."""
    if n_calls >= MAX_READS:
        return 0
    if not observations:
        return 1
    lines = re.search(r"lines \d+-(\d+) of (\d+)", observations[-1].split("\n", 1)[0])
    return int(lines.group(1)) + 1 if lines and int(lines.group(1)) < int(lines.group(2)) else 0


def _quote_document(path: str, observations: Sequence[str], objective: str) -> str:
    lines = [
        found.groups()
        for text in observations
        for line in text.splitlines()
        if (found := _NUMBERED_LINE.match(line))
    ]
    candidates = [
        _Quote(text=text.strip(), path=path, line=int(number))
        for number, text in lines
        if MIN_QUOTE_CHARS <= len(text.strip()) <= MAX_QUOTE_CHARS
        and not text.lstrip().startswith("#")
        and len(_PROSE_WORD.findall(text)) >= MIN_QUOTE_WORDS
    ]
    if not candidates:
        return f"{path}: nothing that could be quoted was read. " + " ".join(observations)[:200]
    best = _best(candidates, objective, QUOTES_PER_DOCUMENT)
    if not best:
        return "\n".join(
            [
                f"{path} ({len(lines)} lines read) shares no word with the objective. It begins:",
                candidates[0].render(),
            ]
        )
    return "\n".join(
        [f"{path} ({len(lines)} lines read) says on this:", *(quote.render() for quote in best)]
    )


def _compare(blocks: Sequence[tuple[str, str]], objective: str) -> str:
    quotes = _quotes(blocks)
    paths_by_word: dict[str, set[str]] = {}
    for quote in quotes:
        for word in _words(quote.text):
            paths_by_word.setdefault(word, set()).add(quote.path)
    shared = sorted(
        (word for word, paths in paths_by_word.items() if len(paths) > 1),
        key=lambda word: (-len(paths_by_word[word]), word),
    )
    said = "; ".join(f"{word} ({', '.join(sorted(paths_by_word[word]))})" for word in shared[:5])
    head = (
        f"Words that more than one document uses on this: {said}."
        if shared
        else "No word of weight stands in more than one document."
    )
    return "\n".join(
        [
            head,
            "Closest to the objective:",
            *(quote.render() for quote in _best(quotes, objective, 5) or quotes[:1]),
        ]
    )


def _list_documents(task: str, listing: str) -> str:
    found = _LIST_TASK.search(task)
    first = int(found.group(1)) if found else 1
    files = _parse_listing(listing)
    shown = files[first - 1 : first - 1 + DOCUMENTS_PER_LIST]
    lines = [
        f"- {path} (document {n} of {len(files)}, {size})"
        for n, (path, size) in enumerate(shown, start=first)
    ]
    return (
        "\n".join([f"The folder holds {len(files)} documents; from number {first}:", *lines])
        if lines
        else "The folder holds no documents."
    )


# -- creation and prioritization
# ------------------------------------------------------------------------------------------------


def _create(blocks: Sequence[tuple[str, str]]) -> str:
    """What each of the finished tasks brings; nothing is proposed for parts of the objective that a
    check misses."""
    tasks: list[dict[str, object]] = []
    for text in (text for label, text in blocks if label == "result"):
        head, _, result = text.partition("\n")
        number = re.match(r"Task (\d+): ", head)
        tasks += (
            [{**task, "from": int(number.group(1))} for task in _follow(result)] if number else []
        )
    return json.dumps(
        {"tasks": tasks, "unanswered": [], "objective_met": False}, ensure_ascii=False
    )


def _follow(result: str) -> list[dict[str, object]]:
    """Of a list of documents: read each of them, compare what they say, and go on with the list
    where it is longer."""
    listed = _LISTED.findall(result) if "The folder holds" in result else []
    reads: list[dict[str, object]] = [
        {
            "id": f"d{number}",
            "name": (
                f"Read {path} (document {number} of {total}, {size}) and quote what bears on "
                "the objective"
            ),
            "after": [],
        }
        for path, number, total, size in listed
    ]
    if not listed:
        return []
    first, last, total = listed[0][1], listed[-1][1], listed[0][2]
    name = f"Compare what documents {first} to {last} say"
    comparison: dict[str, object] = {
        "id": "c",
        "name": name,
        "after": [read["id"] for read in reads],
    }
    more: dict[str, object] = {
        "id": "l",
        "name": f"List the documents from number {int(last) + 1} on",
        "after": [],
    }
    return [
        *reads,
        *([more] if int(last) < int(total) else []),
        *([comparison] if len(reads) > 1 else []),
    ]


def _prioritize(blocks: Sequence[tuple[str, str]]) -> str:
    wanted = set(_words(_block(blocks, "objective")))

    def weigh(line: str) -> tuple[int, int, float, int]:
        read = _READ_TASK.search(line)
        kind = 2 if _COMPARE_TASK.search(line) else 0 if _LIST_TASK.search(line) else 1
        named = (
            len(wanted & set(_words(read.group(1).replace("_", " ").replace("-", " "))))
            if read
            else 0
        )
        size = float(read.group(4)) * {"B": 1, "kB": 1e3, "MB": 1e6}[read.group(5)] if read else 0.0
        return kind, -named, size, int(line.split(":", 1)[0])

    lines = [
        line for line in _block(blocks, "queued tasks").splitlines() if re.match(r"\d+:", line)
    ]
    return json.dumps({"order": [int(line.split(":", 1)[0]) for line in sorted(lines, key=weigh)]})


# -- check and report
# --------------------------------------------------------------------------------------------------


def _check(blocks: Sequence[tuple[str, str]]) -> str:
    """The objective as its only part, with the line that comes closest: what a rehearsal takes for
    an answer."""
    objective = _block(blocks, "objective")
    results = [text.split("\n", 1) for label, text in blocks if label == "result"]
    best = _best(_quotes(blocks), objective, 1) or _quotes(blocks)[:1]
    said = (
        best[0].text
        if best
        else next(
            (line for _, *rest in results for line in "".join(rest).splitlines() if line.strip()),
            "",
        )
    )
    number = next(
        (re.findall(r"\d+", head)[0] for head, *rest in results if said in "".join(rest)), "0"
    )
    parts = [{"part": objective[:300], "task": int(number), "quote": said[:300]}] if said else []
    return json.dumps(
        {"parts": parts, "missing": [] if parts else [objective[:300]], "met": bool(parts)},
        ensure_ascii=False,
    )


def _report(blocks: Sequence[tuple[str, str]]) -> str:
    objective, quotes = _block(blocks, "objective"), _quotes(blocks)
    if not quotes:
        texts = [text.split("\n", 1)[-1].strip() for label, text in blocks if label == "result"]
        return "\n\n".join(
            [
                "No document was quoted. The results:",
                *(text[:MAX_QUOTE_CHARS] for text in texts[:QUOTES_IN_REPORT]),
            ]
        )
    best = _best(quotes, objective, QUOTES_IN_REPORT) or quotes[:QUOTES_IN_REPORT]
    closest = _best(best, objective, QUOTES_FIRST) or best[:QUOTES_FIRST]
    others = [quote for quote in best if quote not in closest]
    n_documents = len({quote.path for quote in quotes})
    lines = ["The documents say:", "", *(quote.render() for quote in closest), ""]
    if others:
        lines += ["Also near to the objective:", "", *(quote.render() for quote in others), ""]
    documents = "1 document was" if n_documents == 1 else f"{n_documents} documents were"
    return "\n".join([*lines, f"{documents} read and quoted."])


# -- words and blocks
# --------------------------------------------------------------------------------------------------


def _block(blocks: Sequence[tuple[str, str]], label: str) -> str:
    return next((text for name, text in blocks if name == label), "")


def _quotes(blocks: Sequence[tuple[str, str]]) -> list[_Quote]:
    """Every quote of the result blocks, each once."""
    found = [quote for label, text in blocks if label == "result" for quote in _QUOTE.findall(text)]
    return [
        _Quote(text=text, path=path, line=int(line)) for text, path, line in dict.fromkeys(found)
    ]


def _words(text: str) -> list[str]:
    """The words of weight, folded, a plural like its singular."""
    return [
        word.removesuffix("s")
        for word in (found.casefold() for found in _WORD.findall(text))
        if word not in _STOP_WORDS
    ]


def _best(quotes: Sequence[_Quote], objective: str, n: int) -> list[_Quote]:
    """The quotes that share words with the objective, those that share most and rarest first
    chosen, in their own order; a text once."""
    wanted = set(_words(objective))
    shared = {
        quote: set(_words(quote.text)) & wanted
        for quote in {quote.text: quote for quote in reversed(quotes)}.values()
    }
    frequency = Counter(word for words in shared.values() for word in words)
    weight = {
        quote: sum(1 + 1 / frequency[word] for word in words)
        for quote, words in shared.items()
        if words
    }
    chosen = sorted(weight, key=lambda quote: (-weight[quote], quotes.index(quote)))[:n]
    return sorted(chosen, key=quotes.index)


def _parse_listing(listing: str) -> list[tuple[str, str]]:
    """(path, size) for each line `path  (size)` of what `list_files` gave."""
    found = re.findall(r"^(\S.*?) +\(([\d.]+ (?:B|kB|MB))\)$", listing, re.MULTILINE)
    return [(path, size) for path, size in found]
