"""A stand-in for a language model: deterministic, offline, and open about being one.

It reads the fenced blocks of its prompt, as any model does. Asked to execute, it calls the offered
tools, chooses the passages that share most words with the objective, and quotes them with
`file:line`. Asked to create tasks, it proposes one task per document, and tasks that compare
documents. Asked to prioritise, it puts listing before reading and reading before comparing;
documents that the objective names, and short ones, come first.

Words alone decide which passages bear on a question. A document is split into passages: paragraphs,
items of lists, rows of tables. Each passage keeps the texts above it: its headings, the item or
line that introduces it, the head of its table. A word of the question weighs more if it is rare
among the passages, and if it is long (short words are common in every language). Other forms of a
word match as well: words with the same beginning, and words that contain it. There is no list of
words of any language.

Not covered: understanding, synonyms, irregular forms. It quotes; it never rephrases.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby

from babyagi.llm.port import Completion, OnText
from babyagi.llm.prompt import (
    Prompt,
    Speaker,
    ToolCall,
    bound_tokens,
    estimate_prompt_tokens,
    estimate_tokens,
)
from babyagi.tasks import ASKED_FURTHER, Reservation, Role, Usage
from babyagi.text import sentences_of, shorten

# With a comparison and the next list, these are as many tasks as one result may add.
DOCUMENTS_PER_LIST = 8
MAX_DOCUMENTS = 32  # a folder with at most so many is read whole, within a run's limit of tasks
MAX_CHOSEN = 16  # documents that are read of a larger folder: those that a search finds first
QUOTES_PER_DOCUMENT = 4
QUOTES_IN_COMPARISON = 5
QUOTES_IN_REPORT = 10
SURE_IN_REPORT = 5  # a report shows so many quotes whatever their scores
LEAST_SHARE = 0.4  # further quotes need at least this share of the best score
LEAST_WEIGHT = 0.5  # a report names the words above this weight that no document contains
MAX_READS = 5  # calls to read one document
LARGE_BYTES = 60_000  # a larger document is searched first, and read only near the places found
WINDOW_LINES = 60  # of a large document, for each place
MAX_RESULT_CHARS = 300
MAX_CHECKED_CHARS = 300  # of a quote in the reply of a check
MAX_NOTED_CHARS = 1000

_BLOCK = re.compile(
    r"^<<([a-z0-9 ]+) ([0-9a-f]{8,64}) from ([^\n]*)\n(.*?)\n\2>>$", re.MULTILINE | re.DOTALL
)
_ROLE = re.compile(r"^Role: (\w+) agent", re.MULTILINE)
_TEXT_FORM = re.compile(
    r"^(?P<action>.+): one of \[(?P<tools>.*)\]\n(?P<input>.+?): "
    r".*$(?:.*\n)+?(?P<answer>.+): the whole answer",
    re.MULTILINE,
)
_JSON_FORM = re.compile(r'"tool" is one of \{ (?P<tools>.*) \}')
_READ_TASK = re.compile(r"Read (.+) \(document (\d+) of (\d+)(?:, ([\d.]+) (B|kB|MB))?\)")
_LIST_TASK = re.compile(r"^\d+: List the documents from number (\d+) on")
_COMPARE_TASK = re.compile(r"^\d+: Compare what documents [\d, to]+ say")
_LISTED = re.compile(
    r"^- (.+) \((?:document )?(\d+) of (\d+)((?:, [\d.]+ (?:B|kB|MB))?)\)$", re.MULTILINE
)
_QUOTE = re.compile(r'^- "(.+)" \((.+?):(\d+)\)(?: under (.+))?$', re.MULTILINE)
_COUNTED = re.compile(
    r"^(.+): \d+ lines read, (\d+) passages; "
    r"(?:words of the question: (.+)\. Best first:|no word of the question)",
    re.MULTILINE,
)
_LISTED_FILE = re.compile(r"^(\S.*?) +\(([\d.]+ (?:B|kB|MB))\)$", re.MULTILINE)  # by `list_files`
_FOUND = re.compile(r"(?:\A|\n\n)(\S.*?), lines (\d+)-\d+")  # the head of a passage
# a line of `read_file`, without the note at the end of a line that was cut
_NUMBERED_LINE = re.compile(r"^ *(\d+): (.*?)(?: … \(\d+ more characters in this line\))?$")


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

    async def close(self) -> None:
        return None


def _note(blocks: Sequence[tuple[str, str]], *, wants_json: bool) -> str:
    """Return the update of an agent's memory: as a summary, the first line of each block; as JSON,
    an empty list of facts, because finding facts needs a model."""
    first = [text.partition("\n")[0] for _, text in blocks if text]
    return '{"facts": []}' if wants_json else "\n".join(first)[:MAX_NOTED_CHARS]


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
        case "memory":
            return _note(blocks, wants_json='{"facts"' in _instructions(prompt)), ()
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
    """Return the names of the offered tools: from the text of the prompt if it lists them, else
    from the prompt's field `tools`."""
    named = _TEXT_FORM.search(_system(prompt)) or _JSON_FORM.search(_system(prompt))
    return set(named["tools"].split(", ")) if named else {tool.name for tool in prompt.tools}


def _speak(
    prompt: Prompt, text: str, calls: tuple[ToolCall, ...]
) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the tool call, or the text as the answer if there is no call, in the form that the
    prompt asks for."""
    system = _system(prompt)
    if form := _TEXT_FORM.search(system):
        if not calls:
            return f"{form['answer']}: {text}", ()
        return f"{form['action']}: {calls[0].name}\n{form['input']}: {calls[0].arguments}", ()
    if _JSON_FORM.search(system):
        call = calls[0] if calls else None
        tool, given = (call.name, json.loads(call.arguments)) if call else ("final_answer", text)
        return _dump({"thought": "", "tool": tool, "tool_input": given}), ()
    return text, calls


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _system(prompt: Prompt) -> str:
    return "\n".join(
        message.text for message in prompt.messages if message.speaker is Speaker.SYSTEM
    )


def _call(n_before: int, name: str, arguments: dict[str, object]) -> ToolCall:
    return ToolCall(id=f"call_{n_before + 1}", name=name, arguments=json.dumps(arguments))


def _next_read(
    read: re.Match[str], observations: Sequence[str], question: Question, *, can_search: bool
) -> dict[str, object]:
    """Return the arguments of the next tool call that reads this document; empty once enough of it
    has been read. A large document is searched first; then its beginning and the places that were
    found are read."""
    path, n_calls = read.group(1), len(observations)
    size = _n_bytes(read, LARGE_BYTES + 1)
    if size > LARGE_BYTES and can_search:
        if not observations:
            return {"words": question.text, "pattern": path}
        starts = [1, *_places(path, observations[0], n=MAX_READS - 2)]
        if n_calls > len(starts):
            return {}
        return {"path": path, "first_line": starts[n_calls - 1], "n_lines": WINDOW_LINES}
    following = _next_line(observations, n_calls)
    return {"path": path, "first_line": following} if following else {}


def _places(path: str, found: str, *, n: int) -> list[int]:
    """Return the lines at which to begin reading a large document: for each of the first `n` places
    in `found`, the output of the search, the number of a line a little before it."""
    half = WINDOW_LINES // 2
    windows = [int(line) // half for name, line in _FOUND.findall(found) if name == path]
    return [max(1, one * half + 1 - half // 2) for one in [*dict.fromkeys(windows)][:n]]


def _next_line(observations: Sequence[str], n_calls: int) -> int:
    """Return the number of the line at which to read on; 0 once the document, or enough of it, has
    been read."""
    if n_calls >= MAX_READS:
        return 0
    if not observations:
        return 1
    lines = re.search(r"lines \d+-(\d+) of (\d+)", observations[-1].split("\n", 1)[0])
    return int(lines.group(1)) + 1 if lines and int(lines.group(1)) < int(lines.group(2)) else 0


def _quote_document(path: str, observations: Sequence[str], question: Question) -> str:
    """Return the best passages of the document as quotes, after a line that counts in how many of
    its passages each word of the question occurs. A comparison computes from these counts which
    words are rare in the whole folder."""
    line_by_number = {
        int(found.group(1)): found.group(2)
        for text in observations
        if re.search(r", lines \d+-\d+ of \d+", text.split("\n", 1)[0])
        for line in text.splitlines()
        if (found := _NUMBERED_LINE.match(line))
    }
    sections = split_document(path, sorted(line_by_number.items()))
    if not sections:
        return f"{path}: {UNREAD} " + " ".join(observations)[:200]
    counts = question.counts(sections)
    weights = question.weigh(counts, len(sections))
    quotes = find_quotes(question, weights, path, sections, n=QUOTES_PER_DOCUMENT)
    head = f"{path}: {len(line_by_number)} lines read, {len(sections)} passages; "
    if not quotes:
        first = next((one for one in sections if not one.is_heading), sections[0]).units[0]
        begins = Quote(text=first.text, path=path, line=first.line)
        return f"{head}no word of the question. It begins:\n{begins.render()}"
    counted = ", ".join(f"{word} {n}" for word, n in counts.items())
    said = f"words of the question: {counted}. Best first" if counted else "no word of the question"
    return "\n".join([f"{head}{said}:", *(quote.render() for quote in quotes)])


def _compare(blocks: Sequence[tuple[str, str]], question: Question) -> str:
    best = _ranked(blocks, question)[:QUOTES_IN_COMPARISON]
    n_documents = len({quote.path for quote in _quotes(blocks)})
    if not best:
        return f"None of the {n_documents} documents contains words of the question."
    said = f"Of the quotes from {n_documents} documents these share most with the question:"
    return "\n".join([said, *(quote.render() for _, quote in best)])


def _list(
    task: str, observations: Sequence[str], question: Question, *, can_search: bool
) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the part of the list of documents that the task asks for, or the tool call that must
    be made first. If there are many documents, a search decides which of them come first."""
    size_by_path: dict[str, str] = dict(_LISTED_FILE.findall(observations[0]))
    n_files = len(size_by_path)
    is_large = can_search and n_files > DOCUMENTS_PER_LIST
    if is_large and len(observations) == 1:
        return "", (_call(1, "search_files", {"words": question.text}),)
    found = [path for path, _ in _FOUND.findall(observations[1])] if is_large else []
    order = [*found, *sorted(size_by_path, key=lambda path: -len(question.match(path)))]
    ordered = [(path, size_by_path.get(path, "")) for path in dict.fromkeys(order)]
    n_read = MAX_DOCUMENTS if len(ordered) <= MAX_DOCUMENTS else MAX_CHOSEN
    return _list_documents(task, ordered[:n_read], n_files=n_files), ()


def _list_documents(task: str, files: Sequence[tuple[str, str]], *, n_files: int) -> str:
    found = _LIST_TASK.search(task)
    first = int(found.group(1)) if found else 1
    shown = files[first - 1 : first - 1 + DOCUMENTS_PER_LIST]
    lines = [
        f"- {path} (document {n} of {len(files)}{size and ', '}{size})"
        for n, (path, size) in enumerate(shown, start=first)
    ]
    if not lines:
        return "The folder holds no documents."
    read = f", of which {len(files)} are read" if n_files != len(files) else ""
    head = f"The folder holds {n_files} documents{read}; from number {first}:"
    return "\n".join([head, *lines])


# -- creation and prioritization
# ------------------------------------------------------------------------------------------------


def _create(blocks: Sequence[tuple[str, str]]) -> str:
    """Return a reply with the tasks that follow from each result. For parts of the objective that a
    check found missing, no task is proposed."""
    tasks: list[dict[str, object]] = []
    for label, text in blocks:
        head, _, result = text.partition("\n")
        if label == "result" and (number := re.match(r"Task (\d+): ", head)):
            tasks += [{**task, "from": int(number.group(1))} for task in _follow(result)]
    return _dump({"tasks": tasks, "unanswered": [], "objective_met": False})


def _follow(result: str) -> list[dict[str, object]]:
    """Return the tasks that follow from a result, if it is a list of documents: read each one,
    compare them, and list the next ones if there are more."""
    listed = _LISTED.findall(result) if "The folder holds" in result else []
    if not listed:
        return []
    first, last, total = listed[0][1], listed[-1][1], listed[0][2]
    what = "and quote what bears on the objective"
    tasks = [
        _task(f"d{number}", f"Read {path} (document {number} of {total}{size}) {what}")
        for path, number, total, size in listed
    ]
    ids = [task["id"] for task in tasks]
    if int(last) < int(total):
        tasks.append(_task("l", f"List the documents from number {int(last) + 1} on"))
    if len(ids) > 1:
        name = f"Compare what documents {first} to {last} say"
        tasks.append(_task("c", name) | {"after": ids})
    return tasks


def _task(id_: str, name: str) -> dict[str, object]:
    return {"id": id_, "name": name, "after": []}


def _prioritize(blocks: Sequence[tuple[str, str]]) -> str:
    question = _asked(blocks)

    def weigh(line: str) -> tuple[int, int, float, int]:
        read = _READ_TASK.search(line)
        kind = 2 if _COMPARE_TASK.search(line) else 0 if _LIST_TASK.search(line) else 1
        named = len(question.match(read.group(1))) if read else 0
        size = _n_bytes(read, 0.0) if read else 0.0
        return kind, -named, size, int(line.split(":", 1)[0])

    queued = _block(blocks, "queued tasks").splitlines()
    lines = sorted((line for line in queued if re.match(r"\d+:", line)), key=weigh)
    return json.dumps({"order": [int(line.split(":", 1)[0]) for line in lines]})


# -- check and report
# --------------------------------------------------------------------------------------------------


def _check(blocks: Sequence[tuple[str, str]], *, instructions: str) -> str:
    """Return the reply of a check. The objective and each further question are the parts; each part
    is answered by the passage that fits it best, or reported as missing."""
    asked = _questions(blocks)
    found = [_find_part(question, blocks, instructions) for question in asked]
    parts = [part for part in found if part is not None]
    missing = [one[:300] for one, part in zip(asked, found, strict=True) if part is None]
    return _dump({"parts": parts, "missing": missing, "met": not missing})


def _find_part(
    question: str, blocks: Sequence[tuple[str, str]], instructions: str
) -> dict[str, str | int] | None:
    """Return a part of the check's reply: the question, a quote that answers it, and the number of
    the task whose result contains the quote. None if all results are empty."""
    asked = read_question(question)
    results = [text.partition("\n")[::2] for label, text in blocks if label == "result"]
    if best := _plainest(_ranked(blocks, asked), instructions) or _quotes(blocks):
        said = _best_part(best[0].text, asked)
    else:
        lines = (line for _, text in results for line in text.splitlines())
        said = next(filter(str.strip, lines), "")
    if not said:
        return None
    number = re.search(r"\d+", next((head for head, text in results if said in text), "0"))
    task = int(number[0]) if number else 0
    return {"part": question[:300], "task": task, "quote": said[:MAX_CHECKED_CHARS]}


def _best_part(text: str, question: Question) -> str:
    """Return the text if a check may quote all of it, else its best sentence with what follows, cut
    to that length."""
    if len(text) <= MAX_CHECKED_CHARS:
        return text
    sentences = list(sentences_of(text))
    _, best = _find_best(question, question.weight_by_word, sentences, around=())
    return text[text.find(sentences[best]) :][:MAX_CHECKED_CHARS]


def _questions(blocks: Sequence[tuple[str, str]]) -> list[str]:
    """Return the objective's text and each further question of the person."""
    return _block(blocks, "objective").split(f"\n{ASKED_FURTHER}")


def _asked(blocks: Sequence[tuple[str, str]]) -> Question:
    """Return the objective and the further questions, joined into one question."""
    return read_question(" ".join(_questions(blocks)))


def _plainest(ranked: Sequence[tuple[float, Quote]], instructions: str) -> list[Quote]:
    """Return the best passages, except those that share more words with the prompt's instructions
    than others do: a text about objectives and how they are met is no evidence. A second check of
    the same part leaves out the first passage, and a third check the first two."""
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
    return "\n".join([_answer(blocks), *_say_unread(blocks)])


def _say_unread(blocks: Sequence[tuple[str, str]]) -> list[str]:
    """Return lines that name each document of which nothing could be quoted, with the reason."""
    texts = [text for label, text in blocks if label == "result"]
    found = sorted({one for text in texts for one in _UNREAD.findall(text)})
    if not found:
        return []
    return ["", f"{NOTHING_READ}:", "", *(f"- {why.strip() or path}" for path, why in found)]


def _answer(blocks: Sequence[tuple[str, str]]) -> str:
    quotes = _quotes(blocks)
    if not quotes:
        texts = [text.split("\n", 1)[-1].strip() for label, text in blocks if label == "result"]
        shown = (text[:MAX_RESULT_CHARS] for text in texts[:QUOTES_IN_REPORT])
        return "\n\n".join(["No document was quoted. The results:", *shown])
    first, *further = _questions(blocks)
    n_documents = len(set(_counts_by_path(blocks)) | {quote.path for quote in quotes})
    said = "These passages share most with the question, best first:"
    best = _best(blocks, first)
    if not best:
        said = "None contains words of the question. They begin:"
        best = [quote.render() for quote in quotes[:QUOTES_IN_REPORT]]
    compared = f"Quotes from {n_documents} document{'s' * (n_documents != 1)} were compared."
    lines = [" ".join(filter(None, (compared, _say_unfound(blocks, first), said))), "", *best]
    for question in further:
        unfound = _say_unfound(blocks, question)
        lines += ["", " ".join(filter(None, (question, unfound))), ""]
        lines += _best(blocks, question)[:SURE_IN_REPORT]
    return "\n".join(lines)


def _say_unfound(blocks: Sequence[tuple[str, str]], question: str) -> str:
    """Return a sentence that names the long words of the question that no document contains in any
    form; "" if there are none, or if the words of some quoted document were not counted."""
    counts, asked = _counts_by_path(blocks), read_question(question)
    if any(quote.path not in counts for quote in _quotes(blocks)):
        return ""
    weights = asked.weight_by_word
    found = {word for _, words in counts.values() for word in words}
    around = " ".join((*counts, *(quote.above for quote in _quotes(blocks))))
    found.update(asked.match(around, least=0.5))
    unfound = [
        f"“{token}”"
        for token in dict.fromkeys(_TOKEN.findall(asked.text))
        if all(weights.get(word, 0.0) > LEAST_WEIGHT for word in words_of(token))
        and found.isdisjoint(words_of(token))
    ]
    return f"What was read of them does not contain {', '.join(unfound)}." if unfound else ""


def _best(blocks: Sequence[tuple[str, str]], question: str) -> list[str]:
    """Return the quotes that a report shows for a question: the best `SURE_IN_REPORT`, and further
    ones whose scores are near the best score."""
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
    """Return the quotes in all results of the prompt, each once."""
    found = [quote for label, text in blocks if label == "result" for quote in _QUOTE.findall(text)]
    return [
        Quote(text=text, path=path, line=int(line), above=above)
        for text, path, line, above in dict.fromkeys(found)
    ]


def _ranked(blocks: Sequence[tuple[str, str]], question: Question) -> list[tuple[float, Quote]]:
    """Return the quotes in the results with their scores, best first, each text once. A word counts
    more if it is rare in the documents that were read."""
    counts = _counts_by_path(blocks)
    words_by_path = {path: words for path, (_, words) in counts.items()}
    total: Counter[str] = Counter()
    for words in words_by_path.values():
        total.update(words)
    weights = question.weigh(total, sum(n for n, _ in counts.values()))
    ranked = rank_quotes(question, weights, _quotes(blocks), counts_by_path=words_by_path)
    first_by_text = {quote.text: (value, quote) for value, quote in reversed(ranked)}
    return [pair for pair in ranked if first_by_text[pair[1].text] == pair]


def _counts_by_path(
    blocks: Sequence[tuple[str, str]],
) -> Mapping[str, tuple[int, Mapping[str, int]]]:
    """Return, by path, the number of passages of each document that was read, and in how many of
    them each word occurs."""
    counts = {}
    for label, text in blocks:
        for path, n, said in _COUNTED.findall(text) if label == "result" else ():
            words = {word: int(k) for word, k in re.findall(r"([^\s,]+) (\d+)", said)}
            counts[path] = (int(n), words)
    return counts


def _n_bytes(read: re.Match[str], otherwise: float) -> float:
    """Return the size of the document, in bytes, from the name of the task that reads it;
    `otherwise` if the name has no size."""
    _, _, _, number, unit = read.groups()
    return float(number) * {"B": 1, "kB": 1e3, "MB": 1e6}[unit] if number else otherwise


# -- which passages it quotes
# --------------------------------------------------------------------------------------------------


MAX_QUOTE_CHARS = 480
MAX_CONTEXT_CHARS = 120
MAX_WORDS = 24  # of a question that are used

_TOKEN = re.compile(r"[^\W_]+")
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # the words in a name such as ReadTimeout
_IDEOGRAPHS = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.+?)\s*#*$|(={1,6})\s*([^=\s].*?)\s*=*$")
_UNDERLINE = re.compile(r"([=\-~^\"'*+#.:_`])\1{2,}\s*$")
_BOLD_LINE = re.compile(r"(\*\*|__)(.+?)\1:?$")
_ITEM = re.compile(r"(\s*)(?:[-*+•–·▪◦‣]|\(?\d{1,3}[.)]|\(?[A-Za-z][.)])\s+(?=\S)")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_RULE = re.compile(r"[\s|:+=-]+$")
UNREAD = "nothing that could be quoted was read."  # after a document's path, before the reason
NOTHING_READ = "Nothing could be quoted of these documents"
_UNREAD = re.compile(rf"^(.+): {re.escape(UNREAD)}(.*)$", re.MULTILINE)
_FIELD = re.compile(r"[^\W\d_][\w -]{0,24}:(?:\s|$)")
_FENCE = re.compile(r"\s*(```|~~~)")
_QUOTED = re.compile(r"^(?:\s*>)+ ?")
_TABLES = {"csv": ",", "tsv": "\t"}
_ASCIIDOC = frozenset({"adoc", "asc", "asciidoc"})
_WIKI = frozenset({"mediawiki", "wiki", "textile"})
_WIKI_ITEM = re.compile(r"^[#*:]+ *(?=\S)")
_FRONT_LINE = re.compile(r"[\w-]+:(?:\s|$)|[\s#-]|$")  # a line of YAML at the beginning
_PROSE = frozenset("md markdown mdx txt text rst org log eml mbox docx xlsx xls ods".split()) | {""}
_DELIMITER = re.compile(r"(-{4,}|\.{4,})$")  # around code in AsciiDoc
_MARKUP_LINE = re.compile(r"\[.*\]$|\(\(\(.*\)\)\)$|={4,}$|\*{4,}$|_{4,}$")  # markup without text

# how much a word counts if the sentence lacks it, but its paragraph, its context or the path has it
PARAGRAPH, CONTEXT, PATH = 0.6, 0.8, 0.35
SHORT_STEM = 0.4  # the likeness of a word of four letters and a longer word that begins with it
RARITY = 1.5  # the exponent of a word's rarity
SAID_AGAIN = 0.2  # how much a further occurrence of a word counts
LENGTH_SHARE, USUAL_WORDS = 0.25, 22
HEADING, CODE_AMONG_PROSE = 0.5, 0.7  # factors for passages that seldom answer a question
MAX_CODE_CHARS = 160
N_TITLE_WORDS = 5  # a heading of at most so many words is never quoted
N_INSTRUCTION_WORDS = 4  # so many words before a colon, or more, are an instruction
N_LOG_LINES = 4  # a block of so many lines, or more, is a log if each line is a sentence
EARLY = 0.5  # by this share a passage at the very beginning of a document scores more
MAX_SYMBOLS = 12  # a text with more than one symbol in so many characters is taken for code
N_BEST, N_RELATED = 5, 12  # how many of the best quotes give related words, and how many words
RELATED = 0.3  # the share of the best score that is added for the most related words
N_NEW_WORDS = 3  # a sentence that adds fewer words to those of the question scores less


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A sentence, or a line that is not part of a sentence, with the number of its first line."""

    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A passage: a paragraph, item or row. `above` holds the headings or lines over it, outermost
    first. A record (a row of a table, or a line of a log) is always quoted alone."""

    units: tuple[Unit, ...]
    above: tuple[str, ...] = ()
    is_heading: bool = False
    is_code: bool = False
    is_record: bool = False

    @property
    def text(self) -> str:
        return " ".join(unit.text for unit in self.units)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Whole sentences of a document, with the number of the first line, and the headings or lines
    `above` them."""

    text: str
    path: str
    line: int
    above: str = ""

    def render(self) -> str:
        under = f" under {self.above}" if self.above else ""
        return f'- "{self.text}" ({self.path}:{self.line}){under}'


# -- words
# --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[str, ...]:
    """Return the words of the text, in lower case and without accents. Text in a script without
    blanks is split into pairs of characters."""
    return tuple(_split(text))


def _split(text: str) -> Iterable[str]:
    for token in _TOKEN.findall(text):
        plain = _fold(token)
        if _IDEOGRAPHS.fullmatch(plain):
            yield from (plain[at : at + 2] for at in range(max(1, len(plain) - 1)))
        else:
            yield plain
            parts = _HUMPS.findall(token) if token.isascii() and token != plain else ()
            yield from (_fold(part) for part in parts if len(parts) > 1 and len(part) > 2)


def _fold(word: str) -> str:
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    bare = "".join(char for char in decomposed if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", bare)


@lru_cache(maxsize=65_536)
def likeness(asked: str, found: str) -> float:
    """Return how likely two words are forms of the same word, from 0 to 1."""
    if asked == found:
        return 1.0
    if not (asked.isalpha() and found.isalpha()):
        return 0.0
    short, long = sorted((asked, found), key=len)
    n_same = next((n for n, (a, b) in enumerate(zip(short, long)) if a != b), len(short))  # noqa: B905
    n_more = len(long) - len(short)
    if n_same == len(short) and n_same >= 3:
        if n_same <= 4 and n_more > 1:  # such as `back` and `backups`, or `test` and `testing`
            return 0.6 if n_more == 2 else SHORT_STEM * (n_same == 4)
        return 0.9 if n_more <= 2 else 0.75 if n_same >= 4 and n_more <= 4 else 0.5 * (n_same >= 4)
    if n_same >= 4 and len(short) - n_same <= 3 and 2 * n_same >= len(long):
        return 0.75 if n_same >= len(short) - 1 and n_more <= 3 else 0.7
    return 0.5 if len(short) >= 5 and short in long else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, and the weight of each of its words, which does not depend on the documents."""

    text: str
    weight_by_word: Mapping[str, float]

    def counts(self, sections: Iterable[Section]) -> dict[str, int]:
        """Return the number of passages in which each word of the question occurs. Words that occur
        in none are left out."""
        counted: Counter[str] = Counter()
        for section in sections:
            counted.update(list(self.match(section.text, least=0.5)))
        return {word: counted[word] for word in self.weight_by_word if counted[word]}

    def weigh(self, counts: Mapping[str, int], n_sections: int) -> dict[str, float]:
        """Return the weights of the question's words among `n_sections` passages. A rare word
        weighs more than a frequent one.

        Args:
            counts: in how many passages each word occurs; other words have no weight.
        """
        n = max(n_sections, 1)
        return {
            word: self.weight_by_word[word]
            * math.log(1 + (max(n - count, 0) + 0.5) / (count + 0.5)) ** RARITY
            for word, count in counts.items()
            if word in self.weight_by_word
        }

    def match(self, text: str, *, least: float = 0.0) -> dict[str, float]:
        """Return the words of the question that the text contains in some form, each with its
        likeness.

        Args:
            least: the lowest likeness that counts.
        """
        found = set(words_of(text))
        best = {
            word: max((likeness(word, other) for other in found), default=0.0)
            for word in self.weight_by_word
        }
        return {word: like for word, like in best.items() if like > 0 and like >= least}


def read_question(text: str) -> Question:
    """Return the question in the text. In a text such as `Answer from the folder: Who pays?`, only
    the part after the colon is the question."""
    head, _, rest = text.strip().partition(": ")
    is_told = len(head.split()) >= N_INSTRUCTION_WORDS and "?" not in head
    asked = rest if rest.strip() and is_told else text
    weights: dict[str, float] = {}
    tokens = _TOKEN.findall(asked)
    for at, token in enumerate(tokens):
        is_name = any(map(str.isdigit, token)) or (len(token) > 1 and token.isupper())
        by_length = 1.0 if is_name else min(1.0, max(0.05, (len(token) - 2) / 5))
        if at and token[0].isupper():
            by_length = max(by_length, 0.9)
        opens = at == 0 and "?" in asked and not is_name
        for word in words_of(token):
            weight = by_length * (0.3 if opens else 1.0) * (0.7 + 0.3 * (at + 1) / len(tokens))
            if _IDEOGRAPHS.fullmatch(word):
                weight = 0.6
            weights[word] = max(weight, weights.get(word, 0.0))
    return Question(text=asked, weight_by_word=dict(list(weights.items())[:MAX_WORDS]))


# -- a document in passages
# --------------------------------------------------------------------------------------------------


def split_document(path: str, lines: Sequence[tuple[int, str]]) -> list[Section]:
    """Return the passages of a document, in order.

    Args:
        path: its suffix tells the format of the document.
        lines: (number, text) of each line.
    """
    suffix = path.rpartition("/")[2].rpartition(".")[2].lower() if "." in path else ""
    if suffix in _TABLES:
        return _rows([(n, line) for n, line in lines if line.strip()])
    if suffix in _ASCIIDOC:
        read = [(n, "" if _MARKUP_LINE.match(line.rstrip()) else line) for n, line in lines]
        return _Prose(fence=_DELIMITER).read(read)
    if suffix in _WIKI:
        return _Prose().read([(n, _WIKI_ITEM.sub("- ", line)) for n, line in lines])
    if suffix == "pdf":  # its pages have no blank lines between paragraphs
        return _Prose(has_logs=False).read(lines)
    return _Prose().read(_read_front(lines)) if suffix in _PROSE else _blocks(lines)


def _read_front(lines: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the lines without the YAML front matter at the beginning. A title in it becomes a
    heading."""
    is_front = bool(lines) and lines[0][0] == 1 and lines[0][1].rstrip() == "---"
    rules = (at for at, (_, line) in enumerate(lines) if at and line.rstrip() == "---")
    end = next(rules, 0) if is_front else 0
    front = lines[1:end]
    if not front or not all(_FRONT_LINE.match(line) for _, line in front):
        return list(lines)
    titles = [(n, line[6:].strip(" \"'")) for n, line in front if line.startswith("title:")]
    head = [(n, f"# {title}") for n, title in titles if title[:1].isalnum()]
    return [*head, *lines[end + 1 :]]


def _rows(lines: Sequence[tuple[int, str]], above: tuple[str, ...] = ()) -> list[Section]:
    """Return the rows of a table, each with the table's head above it."""
    head, body = (lines[0][1].strip().strip("|").strip(), lines[1:]) if lines else ("", ())
    context = (*above, re.sub(r"\s*\|\s*", " | ", head))
    return [
        Section(units=(Unit(text=line.strip(), line=n),), above=context, is_record=True)
        for n, line in body
        if not _RULE.fullmatch(line)
    ]


def _blocks(lines: Sequence[tuple[int, str]], above: tuple[str, ...] = ()) -> list[Section]:
    """Split a program or data at its blank lines into blocks. The less indented lines before a
    block become its headings."""
    found: list[Section] = []
    opened: list[tuple[int, str]] = []
    for is_blank, group in groupby(lines, key=lambda pair: not pair[1].strip()):
        block = list(group)
        if is_blank:
            continue
        indent = len(block[0][1]) - len(block[0][1].lstrip())
        opened = [pair for pair in opened if pair[0] < indent]
        context = (*above, *(text for _, text in opened[-2:]))
        units = tuple(Unit(text=line.strip(), line=n) for n, line in block)
        found.append(Section(units=units, above=context, is_code=True))
        for _, line in block:
            depth = len(line) - len(line.lstrip())
            opened = [pair for pair in opened if pair[0] < depth]
            opened.append((depth, line.strip().rstrip(":{(")))
    return found


class _Prose:
    """Splits a document in prose into passages: headings, paragraphs, items of lists, rows of
    tables, blocks of code.

    Args:
        fence: matches a line before and after code.
        has_logs: whether lines that are each a sentence may be a log.
    """

    def __init__(self, *, fence: re.Pattern[str] = _FENCE, has_logs: bool = True) -> None:
        self.fence = fence
        self.has_logs = has_logs
        self.found: list[Section] = []
        self.headings: list[tuple[int, str]] = []
        self.items: list[tuple[int, str]] = []
        self.lead = ""
        self.levels: list[str] = []
        self.lines: list[tuple[int, str]] = []

    def read(self, lines: Sequence[tuple[int, str]]) -> list[Section]:
        self.lines = [(n, _QUOTED.sub("", line).rstrip()) for n, line in lines]
        at = 0
        while at < len(self.lines):
            at = self._step(at)
        return self.found

    def _text(self, at: int) -> str:
        return self.lines[at][1] if 0 <= at < len(self.lines) else ""

    def _step(self, at: int) -> int:
        """Read the passage or heading that begins at index `at` of `lines`; return the index after
        it."""
        line = self._text(at)
        if self.fence.match(line):
            return self._take_code(at)
        if not line.strip() or (_UNDERLINE.fullmatch(line.strip()) and not _ITEM.match(line)):
            return at + 1
        if heading := self._find_heading(at):
            level, text, end = heading
            self._open(level, text, self.lines[at][0])
            return end
        if _ROW.match(line) and _ROW.match(self._text(at + 1)):
            return self._take_table(at)
        if _ITEM.match(line):
            return self._take_item(at)
        return self._take_paragraph(at)

    def _find_heading(self, at: int) -> tuple[int, str, int] | None:
        """Return (level, text, index after it) if a heading begins at index `at`, else None.
        Level 1 is the outermost. Headings with marks such as `#` are further out than lines that
        only look like a heading."""
        line, after = self._text(at), self._text(at + 1)
        if found := _HEADING.match(line):
            marks, title = (group for group in found.groups() if group)
            return len(marks), title, at + 1
        is_short = len(line.strip()) <= 100 and not _ITEM.match(line)
        underline = _UNDERLINE.fullmatch(after.strip())
        if is_short and underline and 2 * len(after.strip()) >= len(line.strip()):
            mark = underline.group(1)
            if mark not in self.levels:
                self.levels.append(mark)
            return 1 + self.levels.index(mark), line.strip(), at + 2
        stands_alone = not self._text(at - 1).strip() and not after.strip()
        if (found := _BOLD_LINE.match(line.strip())) and (stands_alone or len(line) < 80):
            return 7, found.group(2), at + 1
        return self._find_plain_heading(at)

    def _find_plain_heading(self, at: int) -> tuple[int, str, int] | None:
        """Return (level, text, index after it) if the line has no mark such as `#` but looks like a
        heading: short, without a full stop, and alone or in capitals. Else None."""
        text, after = self._text(at).strip(), self._text(at + 1).strip()
        begins = not self._text(at - 1).strip() or _UNDERLINE.fullmatch(self._text(at - 1).strip())
        is_title = len(text) <= 70 and len(text.split()) <= 9 and not _FIELD.match(text + " ")
        if not (begins and is_title and any(map(str.isalpha, text))):
            return None
        if text.isupper() and len(text) > 3:
            return 8, text, at + 1
        goes_on = any(line.strip() for _, line in self.lines[at + 1 : at + 4])
        if text.endswith(":") and len(text.split()) > N_TITLE_WORDS - 1:
            return None  # an introduction of what follows, not a heading
        if not after and goes_on and text[-1] not in ".!?,;…\"'" and not text.startswith("|"):
            return 9, text.rstrip(":"), at + 1
        return None

    def _open(self, level: int, text: str, number: int) -> None:
        self.headings = [pair for pair in self.headings if pair[0] < level]
        above = tuple(title for _, title in self.headings)
        self.headings.append((level, text))
        self.items, self.lead = [], ""
        units = (Unit(text=text, line=number),)
        self.found.append(Section(units=units, above=above, is_heading=True))

    def _above(self) -> tuple[str, ...]:
        return tuple(title for _, title in self.headings)

    def _take_code(self, at: int) -> int:
        end = at + 1
        while end < len(self.lines) and not self.fence.match(self._text(end)):
            end += 1
        lead = (self.lead,) if self.lead else ()
        self.found += _blocks(self.lines[at + 1 : end], (*self._above(), *lead))
        return end + 1

    def _take_table(self, at: int) -> int:
        end = at
        while _ROW.match(self._text(end)):
            end += 1
        self.found += _rows(self.lines[at:end], self._above())
        return end

    def _take_item(self, at: int) -> int:
        found = _ITEM.match(self._text(at))
        indent = len(found.group(1).expandtabs(4)) if found else 0
        end = at + 1
        while self._goes_on(end, indent):
            end += 1
        units = _units(self.lines[at:end])
        self.items = [pair for pair in self.items if pair[0] < indent]
        above = [*self._above(), self.lead, *(text for _, text in self.items)]
        self.found.append(Section(units=units, above=tuple(filter(None, above))))
        self.items.append((indent, units[0].text if units else ""))
        return end

    def _goes_on(self, at: int, indent: int) -> bool:
        """Return whether the line at index `at` continues a list item with this indentation."""
        line = self._text(at)
        is_deeper = len(line) - len(line.lstrip()) > indent
        return not self._begins(line) and (is_deeper or bool(self._text(at - 1).strip()))

    def _begins(self, line: str) -> bool:
        """Return whether the line is blank, or begins something other than a paragraph."""
        marks = (_ITEM, _HEADING, self.fence)
        return not line.strip() or any(mark.match(line) for mark in marks)

    def _take_paragraph(self, at: int) -> int:
        end = at + 1
        while end < len(self.lines) and self._is_plain(end):
            end += 1
        block = self.lines[at:end]
        units = _units(block)
        fields = [_FIELD.match(line) is not None for _, line in block]
        is_head = len(block) > 1 and all(fields) and not self._text(end).strip()
        if is_head and max(len(line) for _, line in block) < 120:
            self._open_head(block)
            return end
        is_indented = block[0][1][:1].isspace() and self.items
        if not is_indented:
            self.items = []
        above = [*self._above(), *([self.items[-1][1]] if is_indented else [])]
        is_log = self.has_logs and N_LOG_LINES <= len(block) <= len(units)
        runs = [(unit,) for unit in units] if is_log else [units]
        self.found += [
            Section(units=run, above=tuple(filter(None, above)), is_record=is_log) for run in runs
        ]
        leads = block[-1][1].rstrip().endswith(":")
        self.lead = " ".join(unit.text for unit in units) if leads else ""
        return end

    def _open_head(self, block: Sequence[tuple[int, str]]) -> None:
        """Read the fields at the top of a letter, such as `Subject: …` and `Date: …`. They can be
        quoted, and are `above` everything that follows."""
        self._open(6, "; ".join(line.strip() for _, line in block), block[0][0])
        units = tuple(Unit(text=line.strip(), line=n) for n, line in block)
        self.found[-1] = replace(self.found[-1], units=units, is_heading=False)

    def _is_plain(self, at: int) -> bool:
        line, after = self._text(at), self._text(at + 1).strip()
        is_title = _UNDERLINE.fullmatch(after) and len(after) >= len(line.strip())
        return not (self._begins(line) or _ROW.match(line) or is_title)


def _units(block: Sequence[tuple[int, str]]) -> tuple[Unit, ...]:
    """Return the sentences of a block. A line much shorter than the longest one also ends a
    sentence."""
    mark = _ITEM.match(block[0][1])
    bare = [(n, line.strip()) for n, line in block]
    if mark:
        bare[0] = (block[0][0], block[0][1][mark.end() :].strip())
    widest = max(len(line) for _, line in block)
    found: list[Unit] = []
    run: list[tuple[int, str]] = []
    for at, (n, text) in enumerate(bare):
        run.append((n, text))
        following = bare[at + 1][1].split(" ", 1)[0] if at + 1 < len(bare) else ""
        could_hold = len(block[at][1]) + 1 + len(following) <= widest
        if not following or widest < 50 or (could_hold and not following[:1].islower()):
            found += _sentences(run)
            run = []
    return tuple(found)


def _sentences(run: Sequence[tuple[int, str]]) -> list[Unit]:
    joined = " ".join(text for _, text in run)
    starts, at = [], 0
    for n, text in run:
        starts.append((at, n))
        at += len(text) + 1
    found, place = [], 0
    for sentence in sentences_of(joined):
        place = joined.find(sentence, place)
        line = next(n for start, n in reversed(starts) if start <= place)
        found.append(Unit(text=sentence, line=line))
        place += len(sentence)
    return found


# -- which passages come closest
# --------------------------------------------------------------------------------------------------


def score(
    question: Question, weights: Mapping[str, float], texts: Sequence[tuple[str, float]]
) -> float:
    """Return how well a sentence fits the question, together with the texts around it: 0 if they
    contain no word of the question, else more for each word that they contain.

    Args:
        weights: how much each word of the question counts.
        texts: the sentence, then the texts around it, each with the factor by which its words
            count.
    """
    matches = [(question.match(text), share) for text, share in texts]
    total = held = 0.0
    for word, weight in weights.items():
        found = sorted((match.get(word, 0.0) * share for match, share in matches), reverse=True)
        total += weight * (found[0] + SAID_AGAIN * sum(found[1:]))
        held += weight * min(1.0, 2 * found[0])
    share = min(1.0, held / max(sum(weights.values()), 1e-9))
    total *= 0.1 + 0.9 * share * math.sqrt(share)
    own = words_of(texts[0][0])
    n_new = len({word for word in own if len(word) > 1 and word not in matches[0][0]})
    length = 1 - LENGTH_SHARE + LENGTH_SHARE * max(len(own), 8) / USUAL_WORDS
    is_asking = texts[0][0].rstrip("\"'*_) ").endswith("?")
    return total / length * min(1.0, n_new / N_NEW_WORDS) * (0.5 if is_asking else 1.0)


def find_quotes(
    question: Question,
    weights: Mapping[str, float],
    path: str,
    sections: Sequence[Section],
    *,
    n: int,
) -> list[Quote]:
    """Return the `n` best quotes of a document, best first. A quote may go on into the next
    sections; none begins inside another one."""
    scored: list[tuple[float, int, int]] = []
    is_prose = not all(section.is_code for section in sections)
    for at, section in enumerate(sections):
        if section.is_heading and len(section.text.split()) <= N_TITLE_WORDS:
            continue
        around = [(section.text, PARAGRAPH), (" > ".join(section.above), CONTEXT), (path, PATH)]
        texts = [unit.text for unit in section.units]
        best, place = _find_best(question, weights, texts, around=around)
        if best > 0:
            share = HEADING if section.is_heading else 1.0
            share *= CODE_AMONG_PROSE if section.is_code and is_prose else 1.0
            scored.append((best * share, at, place))
    scored.sort(key=lambda one: (-one[0], one[1]))
    quotes: list[Quote] = []
    quoted: set[int] = set()
    for _, at, place in scored:
        if at not in quoted and len(quotes) < n:
            units, last = _run_on(sections, at, place, quoted)
            quoted.update(range(at, last + 1))
            quotes.append(_quote(path, sections[at], units))
    return quotes


def _find_best(
    question: Question,
    weights: Mapping[str, float],
    sentences: Sequence[str],
    *,
    around: Sequence[tuple[str, float]],
) -> tuple[float, int]:
    """Return the score of the best sentence, and its index.

    Args:
        around: the texts around the sentences, each with the factor by which its words count.
    """
    scores = [score(question, weights, [(text, 1.0), *around]) for text in sentences]
    best = max(scores, default=0.0)
    return best, scores.index(best) if scores else 0


def _run_on(
    sections: Sequence[Section], at: int, place: int, quoted: Collection[int]
) -> tuple[list[Unit], int]:
    """Return the sentences of a quote, and the index of the last section in it. The quote begins at
    sentence `place` of section `at`, or with the first sentence if all of the section fits into a
    quote. It goes on until it is full, or until a heading, a record, or a section that is quoted
    already."""
    section, last = sections[at], at
    most = MAX_CODE_CHARS if section.is_code else MAX_QUOTE_CHARS
    own = section.units if len(section.text) <= most else section.units[place:]
    units = [own[0], *(own[n] for n in range(1, len(own)) if _n_chars(own[: n + 1]) <= most)]
    if section.is_heading or section.is_record or len(units) < len(own):
        return units, last
    for following in sections[at + 1 :]:
        is_full = _n_chars([*units, *following.units]) > most
        ends = following.is_heading or following.is_record
        if ends or is_full or last + 1 in quoted:
            break
        if units[-1].text[-1:] not in ".:!?;,…":
            units[-1] = replace(units[-1], text=f"{units[-1].text} ·")
        units += following.units
        last += 1
    return units, last


def _quote(path: str, section: Section, units: Sequence[Unit]) -> Quote:
    text = shorten(" ".join(unit.text for unit in units), 2 * MAX_QUOTE_CHARS)
    above = shorten(" > ".join(section.above[-3:]), MAX_CONTEXT_CHARS)
    return Quote(text=text, path=path, line=units[0].line, above=above)


def _n_chars(units: Sequence[Unit]) -> int:
    return sum(len(unit.text) + 1 for unit in units)


def rank_quotes(
    question: Question,
    weights: Mapping[str, float],
    quotes: Sequence[Quote],
    *,
    counts_by_path: Mapping[str, Mapping[str, int]],
) -> list[tuple[float, Quote]]:
    """Return the quotes of several documents with their scores, best first. A quote scores more if
    its document has more of the question's words, and if it is near the document's beginning."""
    ranked = []
    for at, quote in enumerate(quotes):
        around = [(quote.text, PARAGRAPH), (quote.above, CONTEXT), (quote.path, PATH)]
        value, _ = _find_best(question, weights, list(sentences_of(quote.text)), around=around)
        held = sum(weights.get(word, 0.0) for word in counts_by_path.get(quote.path, {}))
        value *= 1 + 0.2 * held / max(sum(weights.values()), 1e-9)
        value *= 1 + EARLY / (1 + quote.line / 10)
        value *= CODE_AMONG_PROSE if _looks_like_code(quote.text) else 1.0
        ranked.append((value, at, quote))
    ranked.sort(key=lambda one: (-one[0], one[1]))
    found = [(value, quote) for value, _, quote in ranked if value > 0]
    return _lift_related(question, found)


def _looks_like_code(text: str) -> bool:
    return sum(char in "{}[]()<>=;$|\\" for char in text) > len(text) / MAX_SYMBOLS


def _lift_related(
    question: Question, ranked: Sequence[tuple[float, Quote]]
) -> list[tuple[float, Quote]]:
    """Raise the scores of quotes that share words with the best quotes, and return them again best
    first. So a question about `certificates` also finds a passage that only speaks of `SSL`."""
    if not ranked:
        return []
    texts = (words_of(f"{quote.text} {quote.above}") for _, quote in ranked)
    words = [{word for word in text if _is_new(question, word)} for text in texts]
    n_holding = Counter(word for one in words for word in one)
    weights: dict[str, float] = {}
    for (value, _), held in zip(ranked[:N_BEST], words, strict=False):
        for word in held:
            if n_holding[word] > 1:
                rarity = math.log(1 + len(ranked) / n_holding[word])
                weights[word] = weights.get(word, 0.0) + value * rarity
    heaviest = sorted(weights, key=lambda word: (-weights[word], word))[:N_RELATED]
    shares = [math.fsum(weights[word] for word in heaviest if word in held) for held in words]
    unit = RELATED * ranked[0][0] / max(*shares, 1e-9)
    pairs = zip(ranked, shares, strict=True)
    lifted = [(value + unit * share, quote) for (value, quote), share in pairs]
    return sorted(lifted, key=lambda pair: -pair[0])


def _is_new(question: Question, word: str) -> bool:
    return len(word) > 3 and all(likeness(asked, word) < 0.5 for asked in question.weight_by_word)
