"""A reader in the place of a model: it takes exactly what its prompt holds.

It knows the sentences of a case's facts. It answers where all that the answer needs stands in its
prompt, looks for the rest with the tools that it is offered, and says in the typed way of the
protocol what is lacking. It remembers nothing from one call to the next. Where a loop fails with
it, the loop is at fault and not the model.

Does not cover: understanding. Tasks are recognised by what their facts are about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from babyagi.llm.prompt import Speaker, ToolCall
from support.local_server import Answer, ChatRequest
from support.uplift import baselines
from support.uplift.cases import Case, Fact
from support.worlds import reading as reads
from support.worlds.reading import Reading, Shown

NATIVE, JSON, TEXT = SPEAKS = ("native", "json", "text")
LACKING, FAIL_TASK, ANSWER = "lacking", "fail_task", "answer"
LIST_FILES, READ_FILE, SEARCH_FILES = "list_files", "read_file", "search_files"
FIND = "Find {}"
MAX_SEEN_BYTES = 20_000  # of a task's prompt; a reader who holds so much looks no further
_READ_LINE = re.compile(rf"^Action: {READ_FILE} (\S+) (\d+)$", re.MULTILINE)


class Reader:
    """Answers requests about one case. `speaks` is the form of a tool call that it is able to."""

    def __init__(self, case: Case, *, speaks: str = NATIVE) -> None:
        self._case = case
        self._speaks = speaks

    def answer(self, request: ChatRequest) -> Answer:
        page = _Page(case=self._case, request=request)
        system = request.messages[0].text if request.messages else ""
        match system:
            case baselines.DIRECT | baselines.REPORT:
                return Answer(text=page.tell())
            case baselines.REACT:
                return Answer(text=_react(page))
            case baselines.DO:
                return Answer(text=page.tell())
            case baselines.PLAN:
                return Answer(text=_plan_reading(page))
        reading = reads.read(request)
        match reading.role:
            case reads.EXECUTION:
                return _execute(page, reading)
            case reads.CREATION:
                return Answer(text=_create(page, reading))
            case reads.CHECK:
                return Answer(text=_check(page, reading))
            case reads.REPORT:
                return Answer(text=page.tell())
            case reads.PRIORITIZATION:
                return Answer(text=_dump({"order": [one.task_id for one in reading.listed]}))
        return self._answer_probe(request)

    def _answer_probe(self, request: ChatRequest) -> Answer:
        if request.tools and self._speaks == NATIVE:
            tool = request.tools[0]
            given = dict.fromkeys(tool.parameters.get("required", ()), "blue")
            return Answer(tool_calls=(_call(tool.name, given),))
        if request.schema is not None and self._speaks in (NATIVE, JSON):
            return Answer(text=_dump(_fill(request.schema)))
        return Answer(text="ok")


def _call(name: str, given: Mapping[str, Any]) -> ToolCall:
    return ToolCall(id="call_1", name=name, arguments=_dump(given))


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _fill(schema: Mapping[str, Any]) -> Any:
    """The least value that fits a plain schema."""
    match schema.get("type"):
        case "object":
            return {name: _fill(schema["properties"][name]) for name in schema.get("required", ())}
        case "array":
            return []
        case "boolean":
            return False
        case "integer" | "number":
            return 0
    return schema["enum"][0] if "enum" in schema else ""


# -- what stands in a prompt
# --------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Page:
    """A prompt, as one who knows the case's sentences reads it. `own` is what the model itself said
    and called before."""

    case: Case
    request: ChatRequest
    text: str = field(init=False)
    own: list[str] = field(init=False)

    def __post_init__(self) -> None:
        said = [message.text for message in self.request.messages]
        self.text = _even("\n".join(said))
        self.own = [
            "\n".join([message.text, *(f"{c.name} {c.arguments}" for c in message.tool_calls)])
            for message in self.request.messages
            if message.speaker is Speaker.ASSISTANT
        ]

    @property
    def everything(self) -> range:
        return range(len(self.case.facts))

    @property
    def known(self) -> list[int]:
        return self.find_in(self.text)

    def find_in(self, text: str) -> list[int]:
        """The places of the facts whose sentences stand in the text."""
        text = _even(text)
        return [at for at, fact in enumerate(self.case.facts) if _even(fact.sentence) in text]

    def missing(self, targets: Sequence[int]) -> list[int]:
        """What is not known of the targets, and can be asked for: it is named in the prompt, or all
        before it is known."""
        known = set(self.known)
        return [
            at
            for at in targets
            if at not in known
            and (
                known.issuperset(self.case.facts[at].after)
                or _even(self.case.facts[at].subject) in self.text
            )
        ]

    def holds_answer(self, text: str) -> bool:
        return _even(self.case.answer) in _even(text)  # long enough not to stand there by chance

    def is_enough(self) -> bool:
        return len(self.known) == len(self.case.facts) or self.holds_answer(self.text)

    def tell(self) -> str:
        """The answer, or else what is known of it and what is not."""
        if self.is_enough():
            return self.case.answer
        return "\n".join(filter(None, (self.recount(self.everything), self.lack(self.everything))))

    def recount(self, targets: Sequence[int]) -> str:
        """The sentences that are known of the targets, each with its source."""
        facts = [self.case.facts[at] for at in self.known if at in targets]
        return "\n".join(f"{fact.sentence} ({self._source(fact)})" for fact in facts)

    def lack(self, targets: Sequence[int]) -> str:
        return "; ".join(self.case.facts[at].subject for at in self.missing(targets))

    def _source(self, fact: Fact) -> str:
        lines = self.case.text_by_path[fact.path].splitlines()
        return f"{fact.path}:{lines.index(fact.sentence) + 1}"

    # -- looking further
    # ----------------------------------------------------------------------------------------------

    def look(self, tools: Sequence[str], targets: Sequence[int]) -> ToolCall | None:
        """The next call that looks for what is missing; None where nothing is left to look at."""
        if SEARCH_FILES in tools:
            for at in self.missing(targets):
                subject = self.case.facts[at].subject
                if not any(subject in said for said in self.own):
                    return _call(SEARCH_FILES, {"words": subject})
        paths = [path for path in self.case.text_by_path if path in self.text]
        if LIST_FILES in tools and not any(LIST_FILES in said for said in self.own):
            return _call(LIST_FILES, {})
        for path in sorted(paths, key=lambda path: not self.is_named(path, targets)):
            first_line = self._next_line(path)
            if READ_FILE in tools and first_line:
                return _call(READ_FILE, {"path": path, "first_line": first_line})
        return None

    def is_named(self, path: str, targets: Sequence[int]) -> bool:
        """Whether the file is called like something that is missing."""
        called = path.removesuffix(".md").replace("_", " ").casefold()
        return called in self.lack(targets).casefold()

    def _next_line(self, path: str) -> int:
        """The line from which the file is to be read on; 0 where its end was reached."""
        asked = [line for said in self.own for asked, line in _find_reads(said) if asked == path]
        if not asked:
            return 1
        lines = self.case.text_by_path[path].splitlines()
        shown = [at for at, line in enumerate(lines, start=1) if line and line in self.text]
        following = max(shown, default=len(lines)) + 1
        return following if following <= len(lines) and following not in asked else 0


def _even(text: str) -> str:
    return " ".join(text.split())


def _find_reads(said: str) -> Iterator[tuple[str, int]]:
    """Yield the file and the first line of each reading in what the model said: in the API's
    fields, as a step in JSON, under labels, or in a line."""
    for step in re.findall(r"\{.*\}", said):
        try:
            given = json.loads(step)
        except ValueError:
            continue
        given = given.get("tool_input", given)
        if isinstance(given, dict) and "first_line" in given:
            yield str(given.get("path")), int(given["first_line"])
    for path, line in _READ_LINE.findall(said):
        yield path, int(line)


# -- in the loops to compare with
# --------------------------------------------------------------------------------------------------


def _react(page: _Page) -> str:
    """Take notes of what is known, so that it outlasts the observations; then look or answer."""
    notes = f"Thought: {_even(page.recount(page.everything)) or 'nothing yet'}"
    call = None if page.is_enough() else page.look((LIST_FILES, READ_FILE), page.everything)
    if call is None:
        return f"{notes}\n{baselines.FINAL} {page.tell()}"
    given = json.loads(call.arguments)
    words = " ".join(str(value) for value in given.values())
    return f"{notes}\nAction: {call.name} {words}".rstrip()


def _plan_reading(page: _Page) -> str:
    """A task for each file that a missing fact may stand in: those called like it, or all."""
    if page.is_enough():
        return "[]"
    paths = [path for path in page.case.text_by_path if path in page.text]
    named = [path for path in paths if page.is_named(path, page.everything)]
    return _dump([f"Read {path}" for path in named or paths])


# -- in ours
# --------------------------------------------------------------------------------------------------


def _find_targets(case: Case, task: str) -> list[int]:
    """The facts that a task asks for: the one that it is about, or all that the question needs."""
    about = [at for at, fact in enumerate(case.facts) if task.strip() == FIND.format(fact.subject)]
    return about or list(range(len(case.facts)))


def _execute(page: _Page, reading: Reading) -> Answer:
    targets = _find_targets(page.case, reading.task)
    form = _Form.read(page.request, reading)
    is_whole = len(targets) == len(page.case.facts)
    if is_whole and page.is_enough():
        return form.say(page.case.answer + _plan_at_end(page, reading, lacks=""))
    if not page.lack(targets):
        return form.say(page.recount(targets) + _plan_at_end(page, reading, lacks=""))
    is_full = len(page.text.encode()) > MAX_SEEN_BYTES
    call = None if is_full else page.look(form.tools, targets)
    if call is not None:
        return form.act(call)
    lacks, said = page.lack(targets), page.recount(targets)
    if reading.plans_as_well:
        return form.say(said + _plan_at_end(page, reading, lacks=lacks))
    return form.lack(lacks, said)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How a call, a lack or an answer is written: in the API's fields, as a step that a schema
    holds, as JSON, or under labels."""

    name: str
    tools: tuple[str, ...] = ()
    labels: tuple[str, str, str] = ("", "", "")

    @classmethod
    def read(cls, request: ChatRequest, reading: Reading) -> _Form:
        if request.tools:
            return cls(name=NATIVE, tools=tuple(tool.name for tool in request.tools))
        steps = tuple(_find_steps(request.schema))
        if steps:
            return cls(name="held", tools=steps)
        speech = reading.speech
        if speech.protocol == TEXT:
            return cls(name=TEXT, tools=(*speech.tool_names, FAIL_TASK), labels=speech.labels)
        said = [m.text for m in request.messages if m.speaker is Speaker.ASSISTANT]
        is_due = bool(said) and f'"tool": "{ANSWER}"' in said[-1]  # now it is written as plain text
        if speech.protocol == JSON and not is_due:
            return cls(name=JSON, tools=tuple(speech.tool_names))
        return cls(name="plain")

    def say(self, text: str) -> Answer:
        match self.name:
            case "held" if ANSWER in self.tools:  # the text is asked for next
                return Answer(text=_dump({"thought": "", "tool": ANSWER}))
            case "held" | "json":
                return Answer(text=_step("final_answer", text))
            case "text":
                return Answer(text=f"{self.labels[2]}: {text}")
        return Answer(text=text)

    def act(self, call: ToolCall) -> Answer:
        match self.name:
            case "native":
                return Answer(tool_calls=(call,))
            case "text":
                action, given, _ = self.labels
                return Answer(text=f"{action}: {call.name}\n{given}: {call.arguments}")
        return Answer(text=_step(call.name, json.loads(call.arguments)))

    def lack(self, what: str, said: str) -> Answer:
        """Say what is lacking through the tool for that, with what is known beside it. Where there
        is no such tool it is said in words."""
        tool = next((name for name in (LACKING, FAIL_TASK) if name in self.tools), "")
        match self.name:
            case "native" if tool:
                key = "what" if tool == LACKING else "reason"
                return Answer(text=said, tool_calls=(_call(tool, {key: what}),))
            case "text":
                action, given, _ = self.labels
                return Answer(text=f"{action}: {tool}\n{given}: {what}")
            case "held" | "json" if tool:
                return Answer(text=_step(tool, what))
        return replace(self, name="plain").say(f"{said}\n{what}".strip())


def _step(tool: str, given: Any) -> str:
    return _dump({"thought": "", "tool": tool, "tool_input": given})


def _find_steps(schema: Any) -> Iterator[str]:
    """Yield the tools that a reply held by this schema may choose."""
    if isinstance(schema, list | tuple):
        for part in schema:
            yield from _find_steps(part)
    elif isinstance(schema, Mapping):
        tool = (schema.get("properties") or {}).get("tool")
        if isinstance(tool, Mapping):
            yield from tool.get("enum") or [tool.get("const", "")]
        for name in ("anyOf", "oneOf"):
            yield from _find_steps(schema.get(name))


def _plan_at_end(page: _Page, reading: Reading, *, lacks: str) -> str:
    """The object that an execution ends with where it plans as well."""
    if not reading.plans_as_well:
        return ""
    tasks = _propose(page) if lacks else []
    labels = [task["id"] for task in tasks]
    said = {"lacks": lacks, "after": labels, "tasks": tasks, "objective_met": not lacks}
    return f"\n\n{_dump(said)}"


def _propose(page: _Page) -> list[dict[str, Any]]:
    """A task for each fact that can be asked for and that no task in the prompt asks for."""
    names = [FIND.format(page.case.facts[at].subject) for at in page.missing(page.everything)]
    new = [name for name in dict.fromkeys(names) if _even(name) not in page.text]
    return [
        {"id": chr(ord("a") + at), "name": name, "after": [], "repeats": 0}
        for at, name in enumerate(new[:10])
    ]


def _create(page: _Page, reading: Reading) -> str:
    tasks = _propose(page)
    results = reading.results
    source = next((shown.task_id for shown in results if shown.task_id is not None), None)
    is_met = any(page.holds_answer(shown.text) for shown in results)
    bringers = [task["id"] for task in tasks] + [
        one.task_id
        for one in reading.listed
        if any(
            one.name == FIND.format(page.case.facts[at].subject)
            for at in page.missing(page.everything)
        )
    ]
    unanswered = [
        {"task": shown.task_id, "lacks": lacks, "after": bringers}
        for shown in results
        if (lacks := _judge_result(page, shown))
    ]
    tasks = [] if is_met else [{**task, "from": source} for task in tasks]
    return _dump({"tasks": tasks, "unanswered": unanswered, "objective_met": is_met})


def _judge_result(page: _Page, shown: Shown) -> str:
    """What a result does not say of what its task asks for."""
    targets = _find_targets(page.case, shown.name)
    is_whole = len(targets) == len(page.case.facts)
    if is_whole and page.holds_answer(shown.text):
        return ""
    said = page.find_in(shown.text)
    return "; ".join(page.case.facts[at].subject for at in targets if at not in said)


def _check(page: _Page, reading: Reading) -> str:
    """One part where a result is the answer; else a part for each fact."""
    for shown in reading.results:
        if page.holds_answer(shown.text):
            quote = page.case.answer.splitlines()[0]
            part = {
                "part": page.case.question,
                "task": shown.task_id,
                "quote": quote,
                "deed": False,
            }
            return _dump({"parts": [part], "missing": [], "contradictions": [], "met": True})
    parts, missing = list[dict[str, Any]](), list[str]()
    for at, fact in enumerate(page.case.facts):
        held = next((one for one in reading.results if at in page.find_in(one.text)), None)
        if held is None:
            missing.append(fact.subject)
        else:
            part = {"part": fact.subject, "task": held.task_id, "quote": fact.sentence}
            parts.append({**part, "deed": False})
    return _dump({"parts": parts, "missing": missing, "contradictions": [], "met": not missing})
