"""A model without a language model: deterministic, offline, and honest about it.

It reads its prompt as any model must, out of the same fenced blocks. Asked to execute, it calls the
offered tools, chooses the passages of what it read that share most with the objective, and quotes
them with `file:line`. Asked to create, it proposes one task per document and comparisons of them;
asked to prioritise, it puts listing before reading before comparing, and what the objective names
and what is short first.

Does not cover: understanding. It quotes; it never rephrases.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from babyagi.llm.port import Completion
from babyagi.llm.prompt import (
    Prompt,
    Speaker,
    ToolCall,
    bound_tokens,
    estimate_tokens,
    prompt_text_bytes,
)
from babyagi.llm.quoting import (
    Question,
    Quote,
    Statistics,
    count_sections,
    find_quotes,
    rank_quotes,
    read_question,
    split_document,
    words_of,
)
from babyagi.tasks import ASKED_FURTHER, Reservation, Role, Usage

DOCUMENTS_PER_LIST = 8  # with their comparison and the next list as many as one result may bring
MAX_DOCUMENTS = 32  # that are read; with their lists and comparisons fewer tasks than a run may do
QUOTES_PER_DOCUMENT = 4
QUOTES_IN_COMPARISON = 5
QUOTES_IN_REPORT = 10
SURE_IN_REPORT = 5  # are shown whatever their score; of the others
LEAST_SHARE = 0.4  # those that have so much of the best one's
MAX_READS = 5
MAX_SEARCHES = 3
LARGE_BYTES = 60_000  # what is larger is searched first and read where something was found
WINDOW_LINES = 60
MAX_RESULT_CHARS = 300

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
_QUOTE = re.compile(r'^- "(.+)" \((.+?):(\d+)\)(?: under (.+))?$', re.MULTILINE)
_COUNTED = re.compile(
    (
        r"^(.+): \d+ lines read, (\d+) passages; "
        r"(?:of the words asked: (.+)\. Best first:|none of the words asked)"
    ),
    re.MULTILINE,
)
_FOUND_LINE = re.compile(r"^(\S.*?):(\d+): ", re.MULTILINE)
_NUMBERED_LINE = re.compile(r"^ *(\d+): (.*)$")


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
            return _check(blocks, instructions=_instructions(prompt)), ()
        case "report":
            return _report(blocks), ()
        case _:
            return "This prompt names no agent, so there is nothing to rehearse.", ()


# -- execution
# --------------------------------------------------------------------------------------------------


def _execute(
    tool_names: Collection[str], blocks: Sequence[tuple[str, str]]
) -> tuple[str, tuple[ToolCall, ...]]:
    task, question = _block(blocks, "task"), _asked(blocks)
    observations = [text for label, text in blocks if label in ("observation", "error")]
    read = _READ_TASK.search(task)
    if read is not None:
        arguments = _next_read(
            read, observations, question, can_search="search_files" in tool_names
        )
        if "read_file" in tool_names and arguments:
            name = "search_files" if "words" in arguments else "read_file"
            return "", (_call(len(observations), name, arguments),)
        return _quote_document(read.group(1), observations, question), ()
    if _COMPARE_TASK.search(task):
        return _compare(blocks, question), ()
    if "list_files" in tool_names and not observations:
        return "", (_call(0, "list_files", {}),)
    if observations:
        return _list(task, observations, question, can_search="search_files" in tool_names)
    said = "\n".join(quote.render() for _, quote in _ranked(blocks, question)[:QUOTES_PER_DOCUMENT])
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


def _next_read(
    read: re.Match[str], observations: Sequence[str], question: Question, *, can_search: bool
) -> dict[str, object]:
    """The arguments of the next call for this document; empty when enough of it is read. A large
    one is searched, and read from its beginning and around what was found."""
    path, size = read.group(1), _n_bytes(read.group(4), read.group(5))
    n_calls, wanted = len(observations), _rare_looking(question)
    if size > LARGE_BYTES and can_search and wanted:
        if n_calls < len(wanted):
            return {"words": wanted[n_calls], "pattern": path}
        starts = [1, *_places(path, observations[: len(wanted)], n=MAX_READS - 2)]
        at = n_calls - len(wanted)
        return (
            {"path": path, "first_line": starts[at], "n_lines": WINDOW_LINES}
            if at < len(starts)
            else {}
        )
    following = _next_line(observations, n_calls)
    return {"path": path, "first_line": following} if following else {}


def _rare_looking(question: Question) -> list[str]:
    """What to search for: the beginnings of the words that weigh most by themselves."""
    ordered = sorted(question.weight_by_word, key=lambda word: -_by_itself(question, word))
    return [
        word if len(word) < 6 else word[: max(5, len(word) - 3)] for word in ordered[:MAX_SEARCHES]
    ]


def _by_itself(question: Question, word: str) -> float:
    return question.weight_by_word[word] * (1 + len(word) / 20)


def _places(path: str, found: Sequence[str], *, n: int) -> list[int]:
    """The first lines of the windows in which most of what was searched for stands, a rare word
    before a common one."""
    weights: dict[int, float] = {}
    for text in found:
        lines = [int(line) for name, line in _FOUND_LINE.findall(text) if name == path]
        for line in lines:
            window = (line - 1) // (WINDOW_LINES // 2)
            weights[window] = weights.get(window, 0.0) + 1 / len(lines)
    best = sorted(weights, key=lambda window: (-weights[window], window))[:n]
    return [max(1, window * (WINDOW_LINES // 2) + 1 - WINDOW_LINES // 4) for window in best]


def _next_line(observations: Sequence[str], n_calls: int) -> int:
    """The line to read from next; 0 when the document is read, or enough of it."""
    if n_calls >= MAX_READS:
        return 0
    if not observations:
        return 1
    lines = re.search(r"lines \d+-(\d+) of (\d+)", observations[-1].split("\n", 1)[0])
    return int(lines.group(1)) + 1 if lines and int(lines.group(1)) < int(lines.group(2)) else 0


def _quote_document(path: str, observations: Sequence[str], question: Question) -> str:
    """What of the document bears on the question, and how often it has the words: so a comparison
    knows which of them are rare in the folder."""
    line_by_number = {
        int(found.group(1)): found.group(2)
        for text in observations
        if re.search(r", lines \d+-\d+ of \d+", text.split("\n", 1)[0])
        for line in text.splitlines()
        if (found := _NUMBERED_LINE.match(line))
    }
    sections = split_document(path, sorted(line_by_number.items()))
    if not sections:
        return f"{path}: nothing that could be quoted was read. " + " ".join(observations)[:200]
    statistics = count_sections(question, sections)
    quotes = find_quotes(question, statistics, path, sections, n=QUOTES_PER_DOCUMENT)
    head = f"{path}: {len(line_by_number)} lines read, {len(sections)} passages; "
    if not quotes:
        first = next((one for one in sections if not one.is_heading), sections[0]).units[0]
        begins = Quote(text=first.text, path=path, line=first.line)
        return f"{head}none of the words asked. It begins:\n{begins.render()}"
    counted = ", ".join(f"{word} {n}" for word, n in statistics.counts.items())
    said = f"of the words asked: {counted}. Best first:" if counted else "none of the words asked:"
    return "\n".join([head + said, *(quote.render() for quote in quotes)])


def _compare(blocks: Sequence[tuple[str, str]], question: Question) -> str:
    best = _ranked(blocks, question)[:QUOTES_IN_COMPARISON]
    n_documents = len({quote.path for quote in _quotes(blocks)})
    if not best:
        return f"None of the {n_documents} documents holds words of the question."
    return "\n".join(
        [
            f"Of the quotes from {n_documents} documents these share most with the question:",
            *(quote.render() for _, quote in best),
        ]
    )


def _list(
    task: str, observations: Sequence[str], question: Question, *, can_search: bool
) -> tuple[str, tuple[ToolCall, ...]]:
    """The next documents of the list. Where there are many, those come first in which the words
    that weigh most are found."""
    files, n_searched = _parse_listing(observations[0]), len(observations) - 1
    wanted = _rare_looking(question) if can_search and len(files) > DOCUMENTS_PER_LIST else []
    if n_searched < len(wanted):
        return "", (_call(n_searched + 1, "search_files", {"words": wanted[n_searched]}),)
    promise: Counter[str] = Counter()
    for text in observations[1:]:
        paths = {path for path, _ in _FOUND_LINE.findall(text)}
        promise.update(dict.fromkeys(paths, 1 + 10 // len(paths)) if paths else {})
    named = {path: len(question.match(path)) for path, _ in files}
    ordered = sorted(files, key=lambda file: -promise[file[0]] - named[file[0]])
    return _list_documents(task, ordered[:MAX_DOCUMENTS], n_files=len(files)), ()


def _list_documents(task: str, files: Sequence[tuple[str, str]], *, n_files: int) -> str:
    found = _LIST_TASK.search(task)
    first = int(found.group(1)) if found else 1
    shown = files[first - 1 : first - 1 + DOCUMENTS_PER_LIST]
    lines = [
        f"- {path} (document {n} of {len(files)}, {size})"
        for n, (path, size) in enumerate(shown, start=first)
    ]
    if not lines:
        return "The folder holds no documents."
    what = (
        f"The folder holds {n_files} documents"
        if n_files == len(files)
        else f"The folder holds {n_files} documents, of which {len(files)} are read"
    )
    return "\n".join([f"{what}; from number {first}:", *lines])


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
    question = _asked(blocks)

    def weigh(line: str) -> tuple[int, int, float, int]:
        read = _READ_TASK.search(line)
        kind = 2 if _COMPARE_TASK.search(line) else 0 if _LIST_TASK.search(line) else 1
        named = len(question.match(read.group(1))) if read else 0
        size = _n_bytes(read.group(4), read.group(5)) if read else 0.0
        return kind, -named, size, int(line.split(":", 1)[0])

    lines = [
        line for line in _block(blocks, "queued tasks").splitlines() if re.match(r"\d+:", line)
    ]
    return json.dumps({"order": [int(line.split(":", 1)[0]) for line in sorted(lines, key=weigh)]})


# -- check and report
# --------------------------------------------------------------------------------------------------


def _check(blocks: Sequence[tuple[str, str]], *, instructions: str) -> str:
    """The objective and each further question as its parts, with a passage that comes close: what
    a rehearsal takes for an answer."""
    asked = _questions(blocks)
    found = [_find_part(question, blocks, instructions) for question in asked]
    parts = [part for part in found if part is not None]
    missing = [one[:300] for one, part in zip(asked, found, strict=True) if part is None]
    return json.dumps({"parts": parts, "missing": missing, "met": not missing}, ensure_ascii=False)


def _find_part(
    question: str, blocks: Sequence[tuple[str, str]], instructions: str
) -> dict[str, str | int] | None:
    results = [text.split("\n", 1) for label, text in blocks if label == "result"]
    best = _plainest(_ranked(blocks, read_question(question)), instructions) or _quotes(blocks)
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
    return {"part": question[:300], "task": int(number), "quote": said[:300]} if said else None


def _questions(blocks: Sequence[tuple[str, str]]) -> list[str]:
    """The objective's text, and what was asked further."""
    return _block(blocks, "objective").split(f"\n{ASKED_FURTHER}")


def _asked(blocks: Sequence[tuple[str, str]]) -> Question:
    """All that is asked, as one question."""
    return read_question(" ".join(_questions(blocks)))


def _plainest(ranked: Sequence[tuple[float, Quote]], instructions: str) -> list[Quote]:
    """Of the best passages those that share fewest words with the instructions: what speaks of
    objectives and of what is reached is no evidence. A doubting look begins with the next one, and
    a third look with the one after it."""
    told = {word for word in words_of(instructions) if len(word) > 3}
    n_shared = {
        quote: len(told & set(words_of(quote.text))) for _, quote in ranked[:QUOTES_IN_REPORT]
    }
    plain = [quote for quote, n in n_shared.items() if n == min(n_shared.values())]
    near = [quote for value, quote in ranked if quote in plain and value >= ranked[0][0] / 4]
    n_looks = 2 if "contested parts" in instructions else int("overlooked" in instructions)
    chosen = near or plain
    return chosen[max(0, min(n_looks, len(chosen) - 1)) :]


def _instructions(prompt: Prompt) -> str:
    return _BLOCK.sub(" ", _system(prompt))


def _report(blocks: Sequence[tuple[str, str]]) -> str:
    quotes = _quotes(blocks)
    if not quotes:
        texts = [text.split("\n", 1)[-1].strip() for label, text in blocks if label == "result"]
        return "\n\n".join(
            [
                "No document was quoted. The results:",
                *(text[:MAX_RESULT_CHARS] for text in texts[:QUOTES_IN_REPORT]),
            ]
        )
    first, *further = _questions(blocks)
    n_read = len(set(_counts_by_path(blocks)) | {quote.path for quote in quotes})
    read = f"{n_read} document was read." if n_read == 1 else f"{n_read} documents were read."
    best = _best(blocks, first)
    lines = (
        [f"{read} These passages share most with the question, best first:", "", *best]
        if best
        else [
            f"{read} None holds words of the question. They begin:",
            "",
            *(quote.render() for quote in quotes[:QUOTES_IN_REPORT]),
        ]
    )
    for question in further:
        lines += ["", question, "", *_best(blocks, question)[:SURE_IN_REPORT]]
    return "\n".join(lines)


def _best(blocks: Sequence[tuple[str, str]], question: str) -> list[str]:
    """What a report quotes on a question: a few passages, and more where they come as close."""
    ranked = _ranked(blocks, read_question(question))
    return [
        quote.render()
        for place, (value, quote) in enumerate(ranked[:QUOTES_IN_REPORT])
        if place < SURE_IN_REPORT or value >= LEAST_SHARE * ranked[0][0]
    ]


# -- words and blocks
# --------------------------------------------------------------------------------------------------


def _block(blocks: Sequence[tuple[str, str]], label: str) -> str:
    return next((text for name, text in blocks if name == label), "")


def _quotes(blocks: Sequence[tuple[str, str]]) -> list[Quote]:
    """Every quote of the result blocks, each once."""
    found = [quote for label, text in blocks if label == "result" for quote in _QUOTE.findall(text)]
    return [
        Quote(text=text, path=path, line=int(line), above=above)
        for text, path, line, above in dict.fromkeys(found)
    ]


def _ranked(blocks: Sequence[tuple[str, str]], question: Question) -> list[tuple[float, Quote]]:
    """The quotes of the results with their scores, best first, a text once; a word counts as it is
    rare in all documents that were read."""
    counts, n_sections = _counts_by_path(blocks), 0
    total: Counter[str] = Counter()
    for n, words in counts.values():
        n_sections += n
        total.update(words)
    statistics = Statistics(n_sections=n_sections, counts=total)
    ranked = rank_quotes(
        question,
        statistics,
        _quotes(blocks),
        counts_by_path={path: words for path, (_, words) in counts.items()},
    )
    first_by_text = {quote.text: (value, quote) for value, quote in reversed(ranked)}
    return [pair for pair in ranked if first_by_text[pair[1].text] == pair]


def _counts_by_path(
    blocks: Sequence[tuple[str, str]],
) -> Mapping[str, tuple[int, Mapping[str, int]]]:
    """Of each document that was read: its passages, and in how many of them each word stands."""
    counts = {}
    for label, text in blocks:
        for path, n, said in _COUNTED.findall(text) if label == "result" else ():
            words = {word: int(k) for word, k in re.findall(r"(\S+) (\d+)", said)}
            counts[path] = (int(n), words)
    return counts


def _n_bytes(number: str, unit: str) -> float:
    return float(number) * {"B": 1, "kB": 1e3, "MB": 1e6}[unit]


def _parse_listing(listing: str) -> list[tuple[str, str]]:
    """(path, size) for each line `path  (size)` of what `list_files` gave."""
    found = re.findall(r"^(\S.*?) +\(([\d.]+ (?:B|kB|MB))\)$", listing, re.MULTILINE)
    return [(path, size) for path, size in found]
