"""What a prompt says, read out of its text alone, whoever wrote it: our agents, the plain loop, the
original babyagi, LangChain's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from babyagi.llm.prompt import Message, Speaker, ToolSpec
from babyagi.text import MARK

_FENCE = re.compile(rf"<<([\w ]+) ({MARK}) from ([^\n]*)\n(.*?)\n\2>>", re.DOTALL)
_ROLE = re.compile(
    r"role:\s*(execution|creation|planning|prioritization|check|report)\b", re.IGNORECASE
)
_TASK_LINE = re.compile(r"(?:Task )?(\d+)\s*(?:\[([^\]]*)\])?\s*(?:\(([^)]*)\))?\s*:?\s+(.*)")
_RESULT_ORIGIN = re.compile(r"result:(\d+)$")
_TEXT_FORM = re.compile(
    r"^(.+): one of \[(.*)\]\n(.+?): .*$(?:.*\n)+?(.+): the whole answer", re.MULTILINE
)
_JSON_FORM = re.compile(r'"tool" is one of \{ (.*) \}')
_MAX_TASKS = re.compile(r"at most (\d+) new tasks", re.IGNORECASE)
_NOT_ANSWERED = re.compile(r"^Not answered; it lacks: (.*)\Z", re.MULTILINE | re.DOTALL)
_LACK_BEFORE_AFTER = re.compile(r'"lacks": *"[^"]*", *"after"')

LACKING, FAIL_TASK, ANSWERS = "lacking", "fail_task", ("final_answer", "answer")

EXECUTION, CREATION, PRIORITIZATION, CHECK, REPORT = (
    "execution",
    "creation",
    "prioritization",
    "check",
    "report",
)


class Asked(Protocol):
    """A request to a model; a `Prompt` and a `ChatRequest` are ones."""

    @property
    def messages(self) -> tuple[Message, ...]: ...
    @property
    def tools(self) -> tuple[ToolSpec, ...]: ...
    @property
    def schema(self) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A result, or what stands in the place of one. `task_id` is None where the prompt numbers
    nothing; `lacks` is what the prompt itself says that the task lacks."""

    text: str
    name: str = ""
    task_id: int | None = None
    lacks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A task of a list. `status` is what the list says of it, if it does."""

    name: str
    task_id: int | None = None
    status: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """How a reply with a tool call, or an answer, is written: `native`, `json`, or `text` with
    these labels (action, input, answer).

    `keys` are the names that a schema gives the parts of a reply in JSON, by the tool. `lack_tool`
    ends the work without an answer; empty where no tool does.
    """

    protocol: str = "native"
    tool_names: frozenset[str] = frozenset()
    labels: tuple[str, str, str] = ("", "", "")
    keys: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    lack_tool: str = ""

    @property
    def answer_tool(self) -> str:
        return next((name for name in ANSWERS if name in self.tool_names), ANSWERS[0])

    @property
    def writes_answer_apart(self) -> bool:
        """Whether a step only says that the answer comes next."""
        return self.answer_tool in self.keys and not self.keys[self.answer_tool].keys() - {
            "thought"
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a model was asked. `wanted` are the keys of JSON that the instructions name,
    `missing_parts` what a check found unanswered, `called` the tool calls that were made, as they
    were written."""

    role: str
    instructions: str
    objective: str = ""
    task: str = ""
    results: tuple[Shown, ...] = ()
    listed: tuple[Listed, ...] = ()
    observations: tuple[str, ...] = ()
    called: str = ""
    missing_parts: tuple[str, ...] = ()
    last_try: str = ""
    speech: Speech = field(default_factory=Speech)
    wanted: frozenset[str] = frozenset()
    max_tasks: int = 1000

    @property
    def data(self) -> list[str]:
        """Every text in which a value may stand."""
        return [*(shown.text for shown in self.results), *self.observations, self.task]

    @property
    def takes_lack(self) -> bool:
        """Whether there is a way to say what is lacking that no reader has to understand."""
        return self.plans_as_well or bool(self.speech.lack_tool)

    @property
    def takes_bringers(self) -> bool:
        """Whether a lack may name the tasks that bring what is lacking."""
        return _LACK_BEFORE_AFTER.search(self.instructions) is not None

    @property
    def plans_as_well(self) -> bool:
        """Whether an execution is to propose tasks at the end of its reply."""
        return self.role == EXECUTION and {"lacks", "tasks"} <= self.wanted


def read(asked: Asked) -> Reading:
    system = "\n".join(
        message.text for message in asked.messages if message.speaker is Speaker.SYSTEM
    )
    said = "\n".join(
        message.text for message in asked.messages if message.speaker is not Speaker.SYSTEM
    )
    role = _ROLE.search(system)
    if role is not None:
        return _read_ours(
            asked, "creation" if role[1].lower() == "planning" else role[1].lower(), system
        )
    whole = f"{system}\n{said}"
    for words, form in _FORMS:
        if words in whole:
            return form(whole)
    return Reading(role="unknown", instructions=whole, task=said)


# -- our agents
# --------------------------------------------------------------------------------------------------


def _read_ours(asked: Asked, role: str, system: str) -> Reading:
    objective, task, last_try, results, listed, observations = (
        "",
        "",
        "",
        list[Shown](),
        list[Listed](),
        list[str](),
    )
    missing: list[str] = []
    pending: tuple[int | None, str] = (None, "")
    outside: list[str] = [system]
    for message in asked.messages:
        if message.speaker is Speaker.SYSTEM:
            continue
        outside.append(
            _FENCE.sub("", message.text) if message.speaker is not Speaker.ASSISTANT else ""
        )
        for label, _, origin, text in _FENCE.findall(message.text):
            from_result = _RESULT_ORIGIN.search(origin)
            if label == "objective":
                objective = text
            elif label == "task":
                task = _without_number(text)
            elif label in ("observation", "error"):
                observations.append(text)
            elif label in ("finished task", "finished"):
                line = _TASK_LINE.match(text)
                pending = (int(line[1]), line[4]) if line else (None, text)
            elif from_result or "result" in label or "lack" in label:
                results.append(
                    _read_result(text, int(from_result[1]) if from_result else pending[0], pending)
                )
            elif label == "last try":
                last_try = text
            elif label == "missing parts":
                missing += text.splitlines()
            elif "tasks" in label:
                listed += _read_list(text)
    instructions = "\n".join(outside)
    most = _MAX_TASKS.search(instructions)
    return Reading(
        role=role,
        instructions=instructions,
        objective=objective,
        task=task,
        results=tuple(results),
        listed=tuple(listed),
        observations=tuple(observations),
        called="\n".join(_calls_of(asked)),
        missing_parts=tuple(missing),
        last_try=last_try,
        speech=_read_speech(asked, system),
        wanted=frozenset(re.findall(r'"(\w+)":', instructions)) | _keys(asked.schema),
        max_tasks=int(most[1]) if most else 1000,
    )


def _calls_of(asked: Asked) -> Iterator[str]:
    for message in asked.messages:
        if message.speaker is Speaker.ASSISTANT:
            yield from (message.text, *(call.arguments for call in message.tool_calls))


def _read_result(text: str, task_id: int | None, pending: tuple[int | None, str]) -> Shown:
    """A result that begins with a line `Task N: name`, or whose task was named before it."""
    head, _, rest = text.partition("\n")
    line = re.match(r"(?:Objective \d+, )?[Tt]ask (\d+)\b[^:\n]{0,80}: (.*)", head)
    name = line[2] if line else pending[1] if pending[0] == task_id else ""
    said = rest if line else text
    lack = _NOT_ANSWERED.search(said)
    return Shown(
        text=said[: lack.start()].strip() if lack else said,
        name=name,
        task_id=int(line[1]) if line else task_id,
        lacks=lack[1] if lack else "",
    )


def _read_list(text: str) -> list[Listed]:
    found = []
    for line in text.splitlines():
        match = _TASK_LINE.match(line.strip().removeprefix("- "))
        if match:
            found.append(
                Listed(task_id=int(match[1]), status=match[2] or match[3] or "", name=match[4])
            )
    return found


def _without_number(text: str) -> str:
    match = re.match(r"\d+: (.*)", text, re.DOTALL)
    return match[1] if match else text


def _keys(schema: Any) -> frozenset[str]:
    """The names of all properties of a JSON Schema."""
    if isinstance(schema, Mapping):
        own = (
            frozenset(schema["properties"])
            if isinstance(schema.get("properties"), Mapping)
            else frozenset()
        )
        return own.union(*map(_keys, schema.values()))
    return (
        frozenset().union(*map(_keys, schema)) if isinstance(schema, list | tuple) else frozenset()
    )


def _read_speech(asked: Asked, system: str) -> Speech:
    if form := _TEXT_FORM.search(system):
        return Speech(
            protocol="text",
            tool_names=frozenset(form[2].split(", ")),
            labels=(form[1], form[3], form[4]),
            lack_tool=FAIL_TASK if FAIL_TASK in system else "",
        )
    keys = _read_steps(asked.schema)
    form = _JSON_FORM.search(system)
    if (form and not _has_chosen_to_answer(asked)) or keys:
        names = frozenset(keys or (form[1].split(", ") if form else ()))
        return Speech(
            protocol="json",
            tool_names=names,
            keys=keys,
            lack_tool=LACKING if LACKING in names else "",
        )
    names = frozenset(tool.name for tool in asked.tools)
    return Speech(tool_names=names, lack_tool=LACKING if LACKING in names else "")


def _read_steps(schema: Any) -> dict[str, Mapping[str, Any]]:
    """The tools that a reply held by this schema may choose, each with the properties beside its
    name."""
    if isinstance(schema, list | tuple):
        schema = {str(place): part for place, part in enumerate(schema)}
    if not isinstance(schema, Mapping):
        return {}
    found: dict[str, Mapping[str, Any]] = {}
    beside = schema.get("properties")
    if isinstance(beside, Mapping) and isinstance(tool := beside.get("tool"), Mapping):
        names = tool.get("enum") or [tool["const"]] if {"enum", "const"} & tool.keys() else []
        return {name: {key: beside[key] for key in beside if key != "tool"} for name in names}
    for part in schema.values():
        found |= _read_steps(part)
    return found


def _has_chosen_to_answer(asked: Asked) -> bool:
    """Whether the last step was the choice to answer, so that the answer itself is due as text."""
    last = next((m for m in reversed(asked.messages) if m.speaker is Speaker.ASSISTANT), None)
    return last is not None and '"tool": "answer"' in last.text


# -- prompts of others
# --------------------------------------------------------------------------------------------------


def _between(text: str, start: str, *ends: str) -> str:
    """What stands behind the first `start`, up to the first of `ends` behind it; empty without the
    start."""
    at = text.find(start)
    if at < 0:
        return ""
    text = text[at + len(start) :]
    found = [place for end in ends if (place := text.find(end)) >= 0]
    return text[: min(found)].strip() if found else text.strip()


def _split_names(text: str) -> tuple[Listed, ...]:
    """The tasks of a list in whatever form: lines, or names between commas and quotes."""
    lines = (
        text.splitlines()
        if "\n" in text
        else re.findall(r"'([^']+)'", text) or re.split(r", (?=[A-Z][a-z])", text)
    )
    return tuple(
        Listed(name=re.sub(r"^[\s\d.\-•*)#]+", "", line).strip())
        for line in lines
        if line.strip(" -[]")
    )


def _read_plain_execution(text: str) -> Reading:
    return Reading(
        role=EXECUTION,
        instructions=text.partition("Objective:")[0],
        objective=_between(text, "Objective: ", "\n"),
        task=text.rpartition("\nTask: ")[2],
        results=tuple(
            Shown(text=part)
            for part in _between(text, "Earlier results:\n", "\nTask: ").split("\n###")
        ),
    )


def _read_plain_creation(text: str) -> Reading:
    return Reading(
        role=CREATION,
        instructions=text.partition("Objective:")[0],
        objective=_between(text, "Objective: ", "\n"),
        results=(
            Shown(
                name=_between(text, "Finished task: ", "\n"),
                text=_between(text, "\nResult:\n", "\nQueued tasks:\n"),
            ),
        ),
        listed=_split_names(text.rpartition("\nQueued tasks:\n")[2] + "\n"),
    )


def _read_plain_report(text: str) -> Reading:
    results = tuple(Shown(text=part) for part in text.partition("Results:\n")[2].split("\n###"))
    return Reading(
        role=REPORT, instructions="", objective=_between(text, "Objective: ", "\n"), results=results
    )


def _read_original_execution(text: str) -> Reading:
    objective = _between(text, "following objective:", "\nTake into account", "\nYour task", "\n")
    context = _between(text, "previously completed tasks:", "\nYour task:", "Your task:")
    task = _between(text, "Your task:", "\nResponse:", "Response:")
    return Reading(
        role=EXECUTION,
        instructions="",
        objective=objective,
        task=task,
        results=(Shown(text=context),) if context else (),
    )


def _read_original_creation(text: str) -> Reading:
    result = _between(text, "has the result:", "This result was based on")
    name = _between(text, "based on this task description:", "These are incomplete tasks", "\n")
    listed = _between(text, "incomplete tasks:", "Based on the result", "\nBased")
    objective = _between(text, "following objective:", "The last completed task", ", The last")
    form = text.rpartition("Based on the result")[2]
    return Reading(
        role=CREATION,
        instructions=form,
        objective=objective,
        results=(Shown(name=name, text=result),),
        listed=_split_names(listed),
    )


def _read_original_prioritization(text: str) -> Reading:
    listed = _between(text, "following tasks:", "Consider the ultimate")
    return Reading(role=PRIORITIZATION, instructions=text, listed=_split_names(listed))


_FORMS: Sequence[tuple[str, Callable[[str], Reading]]] = (
    ("You do one task of a larger objective.", _read_plain_execution),
    ("You plan what an objective still needs.", _read_plain_creation),
    ("You answer an objective from results.", _read_plain_report),
    ("task prioritization AI", _read_original_prioritization),
    ("prioritizing the following tasks", _read_original_prioritization),
    ("task creation AI", _read_original_creation),
    ("use the result from an execution agent to create new tasks", _read_original_creation),
    ("You are an AI who performs one task", _read_original_execution),
    ("Perform one task based on the following objective", _read_original_execution),
)
