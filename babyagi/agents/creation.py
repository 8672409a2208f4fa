"""Two agents. The creation agent is shown finished tasks with their results; it proposes new tasks,
and says which of the finished tasks are not answered. The prioritization agent is shown a part of
the queue, and proposes an order for it, which is only a hint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from babyagi.agents.listed import MAX_NAME_CHARS, list_known
from babyagi.agents.prompting import build_messages
from babyagi.agents.replies.creation import CreationReply, parse_creation
from babyagi.agents.replies.reading import (
    JsonValue,
    find_json,
    first_of,
    fold,
    fold_keys,
    to_id,
    visible,
    walk,
)
from babyagi.index.subjects import Subjects, content, head
from babyagi.journal import Journal
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Prompt
from babyagi.marks import find_marks
from babyagi.names import name_sense
from babyagi.react.asking import ask
from babyagi.tasks import (
    Lack,
    Passage,
    Result,
    Role,
    Task,
    TaskName,
    TaskStatus,
    find_sources,
    make_passage,
)
from babyagi.text import disarm, rearm, shorten

MAX_ID_CHARS = 8  # an id is a number or a letter
MAX_OUTPUT_TOKENS = 2000  # reasoning models spend most of them before the reply begins
MAX_REPLY_TASKS = 30  # the most that a schema allows: a small model uses every place

LACK_WORDS = frozenset(  # words of a lack that do not name what is lacking
    "missing known unknown provided available needed required result answer information "
    "data figure input established"
    " determined see previous earlier yet still exact number".split()
)

N_NEAR = 200  # tasks that share words with a lack and are examined one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A finished task with its result, from which new tasks are planned; or a task that could not
    be finished because information is missing. For the latter, `read` are the origins (files, pages
    …) of what it read."""

    task: Task
    result: Result | None
    read: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text that the model is shown about the task: what the task found, and which
        information it lacks."""
        if self.result is not None:
            return self.result.text + (f"\nLACKING: {self.result.lack}" if self.result.lack else "")
        return f"LACKING: {self.task.lack.what if self.task.lack else ''}"

    @property
    def sources(self) -> tuple[str, ...]:
        """The origins from outside (files, pages, tools) that contributed to the task or its
        result."""
        read = self.result.origins if self.result else self.read
        return find_sources((*self.task.origins, *read))

    def to_labelled(self) -> tuple[str, Passage]:
        """Return the finished task as (label, passage) for a prompt."""
        text, origin = (
            f"Task {self.task.id}: {self.task.name}\n{self.text}",
            f"result:{self.task.id}",
        )
        return "result", Passage(text=text, origin=origin, sources=self.sources)


def creation_schema(max_tasks: int) -> Mapping[str, Any]:
    """Return the JSON Schema of a reply, with bounds on lengths and counts. Ids are strings,
    because a reply may refer to a task by number or by letter."""
    id_ = {"type": "string", "maxLength": MAX_ID_CHARS}
    text = {"type": "string", "maxLength": MAX_NAME_CHARS}
    after = {"type": "array", "items": id_, "maxItems": 20}
    task = object_schema(id=id_, name=text, after=after, **{"from": {"type": "integer"}})
    unanswered = object_schema(task={"type": "integer"}, lacks=text, after=after)
    return object_schema(
        tasks={"type": "array", "items": task, "maxItems": max_tasks},
        unanswered={"type": "array", "items": unanswered, "maxItems": max_tasks},
        objective_met={"type": "boolean"},
    )


def object_schema(**properties: Any) -> dict[str, Any]:
    """Return the JSON Schema of an object that has exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


async def create_tasks(
    finished: Sequence[Finished],
    *,
    objective_text: str,
    known: Sequence[TaskName],
    journal: Journal,
    max_new_tasks: int,
    missing: Passage | None = None,
) -> tuple[CreationReply, tuple[str, ...]]:
    """Ask the model which tasks to add. Return its parsed reply, and the origins (models, files,
    pages …) of the texts that it was shown. Raises what `react.asking.ask` raises.

    Args:
        finished: the tasks to plan from, with their whole results.
        known: other tasks that the agent is shown. References to tasks that it was not shown are
            dropped.
        missing: the parts of the objective that a check found unanswered, one per line.
    """
    n_allowed = max_new_tasks * max(1, len(finished))
    messages = build_messages(
        "creation",
        {
            "objective": [("objective", Passage(text=objective_text, origin="person"))],
            "finished": [one.to_labelled() for one in finished],
            "missing": [("missing parts", missing)] if missing is not None else [],
            "known": list_known(known),
            "max_new_tasks": str(n_allowed),
        },
    )
    schema = creation_schema(min(n_allowed, MAX_REPLY_TASKS))
    prompt = Prompt(
        messages=messages,
        schema_name="tasks",
        schema=schema,
        is_schema_late=True,
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )
    finished_ids = [one.task.id for one in finished]
    known_ids = {*(name.id for name in known), *finished_ids}

    def read(completion: Completion) -> CreationReply:
        return parse_creation(
            completion.text, known_ids=known_ids, finished_ids=finished_ids, max_tasks=n_allowed
        )

    asked = await ask(journal, "create", prompt, role=Role.CREATION, read=read)
    origins = (f"model:{asked.completion.model}", *asked.prompt.origins)
    return asked.value, tuple(dict.fromkeys(origins))


# -- which task a proposal comes from, and which tasks provide what another task lacks
# ------------------------------------------------------


def find_source(name: str, finished: Sequence[Finished]) -> int | None:
    """Return the id of the finished task from which a proposal most likely comes: the task of which
    the result, or the note of what it lacked, shares most words with the proposal's name. None if
    there are no finished tasks."""
    words = set(name.casefold().split())
    if not finished:
        return None
    return max(finished, key=lambda one: len(words & set(one.text.casefold().split()))).task.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Bringers:
    """The tasks of the list that provide what a given task lacks, judged by their names.

    Attributes:
        ids: the tasks to wait for.
        again: the names of the tasks that should be done again.
        asked: the names of the tasks in `ids`.
        is_all: whether the tasks in `ids` and `again` provide everything that is lacking.
    """

    ids: tuple[int, ...] = ()
    again: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    is_all: bool = False

    def cover(self, name: str) -> bool:
        """Return whether a proposed task with this name is about the same thing as one of the tasks
        to wait for."""
        return any(is_about_the_same(name, asked) for asked in self.asked)


def find_bringers(task: Task, lack: Lack, names: Sequence[TaskName]) -> Bringers:
    """Return the tasks of the list that provide the information that the task lacks: those whose
    subjects occur in `lack`, the model's text about that information.

    A listed task that was given up should be done again. So should an answered one whose result
    was already in the prompt of the lacking task, but only if that task lacks something for the
    second time: the first time, the model may have overlooked the result.
    """
    listed = [name for name in names if name.status is not TaskStatus.CANCELLED]
    find = _find_by_code if find_codes(lack.what) else _find_by_subject
    about, n_missed = find(task, lack.what, listed)
    unhelpful = [name for name in about if name.id in lack.shown and name.status is TaskStatus.DONE]
    again = [
        name
        for name in about
        if name.status is TaskStatus.DEAD or (name in unhelpful and task.n_lacks)
    ]
    waited = [name for name in about if name not in again and name not in unhelpful]
    return Bringers(
        ids=tuple(name.id for name in waited),
        again=tuple(dict.fromkeys(name.name for name in again)),
        asked=tuple(name.name for name in waited),
        is_all=bool(about) and n_missed == 0 and len(waited) + len(again) == len(about),
    )


def _find_by_code(task: Task, lack: str, listed: Sequence[TaskName]) -> tuple[list[TaskName], int]:
    """Return (tasks, number of codes without a task): the newest task for each code (such as `A17`)
    in `lack`, the text about the missing information, except the code of `task` itself.

    The first code in a task's name says what that task is about. If its name and `lack` both have
    further words, they must share one: a task about the price of X does not provide the weight of
    X.
    """
    wanted = find_codes(lack) - {first_code(task.name)}
    properties = set(content(lack)) - LACK_WORDS - find_codes(lack) - find_codes(task.name)
    about = {}
    for name in listed:
        code, own = first_code(name.name), _properties(name.name)
        if code in wanted and (not own or not properties or own & properties):
            about[code] = name
    found = [about[code] for code in sorted(about)]
    return list(dict.fromkeys(found)), len(wanted - set(about))


def _find_by_subject(
    task: Task, lack: str, listed: Sequence[TaskName]
) -> tuple[list[TaskName], int]:
    """Return (tasks, number of words of `lack` that no subject covers): the newest task for each
    subject that occurs in `lack`, the text about the missing information, except the task's own
    subject."""
    words = set(content(lack))
    near = [name for name in listed if len(words.intersection(content(name.name))) > 1][-N_NEAR:]
    subjects = Subjects([*(name.name for name in near), task.name])
    found: list[TaskName] = []
    taken: set[int] = set()
    said = subjects.find(lack)
    for one in sorted(said, key=lambda one: (-one.share, -len(one.span), -one.place)):
        if not taken.issuperset(one.span):
            taken.update(one.span)
            words.difference_update(subjects.subjects[one.place])
            found += [near[one.place]] if one.place < len(near) else []
    return found, len(words - LACK_WORDS)


def renames(name: str, task: Task) -> bool:
    """Return whether a proposed task with this name only says in other words what the given task
    says, which lacks information."""
    is_same = name_sense(rearm(name)) == name_sense(rearm(task.name))
    return is_same or is_about_the_same(name, task.name)


def is_about_the_same(name: str, other: str) -> bool:
    """Return whether two tasks with these names are about the same thing: their subjects have the
    same words, or the same first code if one of the names has no other words."""
    one, two = _properties(name), _properties(other)
    code = first_code(name)
    if code or first_code(other):
        return code == first_code(other) and (not one or not two or one == two)
    return one == two


def _properties(name: str) -> set[str]:
    """Return the words of the subject (what the task with this name is about) that are not
    codes."""
    return set(content(head(name))) - find_codes(name)


def first_code(text: str) -> str:
    """Return the code that comes first in the text; "" if there is none. Codes are used because
    each identifies a single thing, whereas many tasks may be about one place or year."""
    plain = text.casefold()
    places = ((plain.find(one) % (len(plain) + 1), -len(one), one) for one in find_codes(text))
    return min(places, default=(0, 0, ""))[2]


def find_codes(text: str) -> set[str]:
    """Return the codes in the text: those of its marks (names, numbers, quoted terms …) that
    contain both a digit and a letter."""
    return {
        mark
        for mark in find_marks(text)
        if any(map(str.isdigit, mark)) and any(map(str.isalpha, mark))
    }


# -- the prioritization agent
# --------------------------------------------------------------------------------------------------


ORDER_SCHEMA: Mapping[str, Any] = object_schema(
    order={"type": "array", "items": {"type": "integer"}, "maxItems": 50}
)


async def order_tasks(
    tasks: Sequence[Task], *, objective_text: str, journal: Journal
) -> tuple[int, ...]:
    """Ask the model for an order of the tasks, and return their ids in that order. Some or all of
    the tasks may be missing. Raises what `react.asking.ask` raises."""
    origins = [origin for task in tasks for origin in task.origins]
    queue = make_passage("\n".join(map(_queue_line, tasks)), origins)
    messages = build_messages(
        "prioritization",
        {
            "objective": [("objective", Passage(text=objective_text, origin="person"))],
            "queue": [("queued tasks", queue)],
        },
    )
    prompt = Prompt(
        messages=messages,
        schema_name="order",
        schema=ORDER_SCHEMA,
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )
    window = [(task.id, disarm(task.name)) for task in tasks]

    def read(completion: Completion) -> tuple[int, ...]:
        return parse_order(completion.text, window=window)

    return (await ask(journal, "order", prompt, role=Role.PRIORITIZATION, read=read)).value


def _queue_line(task: Task) -> str:
    after = f" (after {', '.join(map(str, task.after))})" if task.after else ""
    return f"{task.id}: {shorten(task.name, MAX_NAME_CHARS)}{after}"


# -- reading the order that the prioritization agent replies
# --------------------------------------------------------------------------------------------------


SHOWN_NAME_CHARS = 200  # prompts cut longer names here, so replies may, too

_CODE_FENCE = re.compile(r"\A\s*`{3}\w*\s*")
_BLOCK_TAG = re.compile(r"</?(?:li|ol|ul|br|p|div|tr|table)\b[^<>]{0,100}>", re.IGNORECASE)
_CELL_TAG = re.compile(r"</?(?:td|th)\b[^<>]{0,100}>", re.IGNORECASE)
_LIST_MARK = re.compile(r"(?:[-+–—‣◦]\s+|[>|•·]\s*)*(?:\[x?\s?\]\s*)?")
_LEADING_ID = re.compile(
    r"[(\[#]*(?:(?:task|id|no\.?)\s*)*[:#]?\s*(\d{1,18})(?:\s*[.:;)\]|–—-]+(?!\d)|\s*$)"
)
_SEPARATOR = re.compile(r"(?:[\s,;→⇒>=]|-{1,3}>)+")
_LONE_ID = re.compile(r"[(\[#]*(\d{1,18})[)\].]*")
_CONNECTIVES = frozenset({"", "then", "and", "task", "tasks"})
_ORDER_KEYS = tuple("order neworder ordering sequence priorities priority queue tasks".split())
_ID_KEYS = ("id", "taskid", "task", "number")
_NAME_KEYS = ("name", "taskname", "task", "title", "description")
_RANK_KEYS = ("rank", "position", "place", "order")


def parse_order(text: str, *, window: Sequence[tuple[int, str]]) -> tuple[int, ...]:
    """Return the ids in the order that a reply proposes, each at most once. Ids that the agent was
    not shown are left out.

    A line or JSON item with the name of a task means that task, whatever number precedes it,
    because replies often number their lists anew. Once any name is recognized, numbers are ignored;
    only in a reply without names are they ids. Ids and names in running prose are not an order.

    Args:
        window: (id, name) of each task that the agent was shown.
    """
    text = visible(text)
    names = _Names(window)
    found = find_json(text)
    for items in _order_lists(found, names.ids):
        if ids := names.resolve([line for item in items if (line := _to_line(item))]):
            return ids
    body = _CODE_FENCE.sub("", text).lstrip()
    if body.startswith("{") or (body.startswith("[") and "]" not in body):
        return ()
    return names.resolve(_CELL_TAG.sub("|", _BLOCK_TAG.sub("\n", text)).split("\n"))


def _order_lists(found: Sequence[JsonValue], ids: frozenset[int]) -> Iterator[list[Any]]:
    """Yield the lists in the JSON of a reply that may be the order, likeliest first. A later JSON
    value comes before an earlier one. The separate objects of the reply, taken together as one
    list, come last."""
    for json_ in reversed(found):
        if not json_.is_whole or (isinstance(json_.value, list) and not json_.is_labelled):
            continue
        objects = [fold_keys(node) for node in walk(json_.value) if isinstance(node, dict)]
        named = [node[key] for node in objects for key in _ORDER_KEYS if key in node]
        yield from (_ranked(value) for value in named if isinstance(value, list))
        yield from (_by_rank(value, ids) for value in named if isinstance(value, dict))
        yield from (_ranked(value) for value in walk(json_.value) if isinstance(value, list))
    whole = [json_.value for json_ in found if json_.is_alone and json_.is_whole]
    alone = [value for value in whole if isinstance(value, dict)]
    if len(alone) > 1:
        yield _ranked(alone)
    yield from (_by_rank(value, ids) for value in reversed(alone))


def _ranked(items: list[Any]) -> list[Any]:
    """Return the items of a reply's list sorted by the ranks that they state; unchanged unless
    every item states a different rank."""
    ranks = [
        to_id(first_of(fold_keys(item), _RANK_KEYS)) if isinstance(item, dict) else None
        for item in items
    ]
    if len(set(ranks)) < len(items) or None in ranks:
        return items
    return [items[at] for at in sorted(range(len(items)), key=lambda at: ranks[at] or 0)]


def _by_rank(by_key: Mapping[str, Any], ids: frozenset[int]) -> list[Any]:
    """Return the tasks (ids, names or items) that a JSON object in a reply puts in order.

    The object may map ranks (`"1"`, `"first"`) to tasks, or ids to ranks. In any other object, such
    as one that maps ids to names, the order of the keys counts."""
    keys = [to_id(key) for key in by_key]
    ranks = [to_id(value) for value in by_key.values()]
    if None in ranks:
        return [
            value
            if isinstance(value, dict) and _id_of(value) is not None
            else f"{key}: {_name_of(value) if isinstance(value, dict) else _text_of(value)}"
            for key, value in by_key.items()
        ]
    counts = list(range(1, len(ranks) + 1))
    if keys != counts and sorted(rank or 0 for rank in ranks) == counts and ids.issuperset(keys):
        return [keys[ranks.index(rank)] for rank in counts]
    pairs = list(zip(keys, ranks, strict=True))
    if None not in keys:
        pairs.sort(key=lambda pair: pair[0] or 0)
    return [id_ for _, id_ in pairs]


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _name_of(item: Mapping[str, Any]) -> str:
    folded = fold_keys(item)
    return next((folded[key] for key in _NAME_KEYS if isinstance(folded.get(key), str)), "")


def _id_of(item: Mapping[str, Any]) -> int | None:
    folded = fold_keys(item)
    return next((id_ for key in _ID_KEYS if (id_ := to_id(folded.get(key))) is not None), None)


def _to_line(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        number = _id_of(item)
        return _name_of(item) if number is None else f"{number}: {_name_of(item)}"
    number = to_id(item)
    return "" if number is None else str(number)


class _Names:
    """Recognizes, in the lines of a reply, the tasks that the agent was shown."""

    def __init__(self, window: Sequence[tuple[int, str]]) -> None:
        self.ids = frozenset(id_ for id_, _ in window)
        self._ids_by_name: dict[str, list[int]] = {}
        patterns: dict[str, str] = {}
        for id_, name in window:
            key = fold(name[:SHOWN_NAME_CHARS]).strip(" .,;:…")
            self._ids_by_name.setdefault(key, []).append(id_)
            patterns[key] = re.escape(key) + ("" if len(name) > SHOWN_NAME_CHARS else r"(?!\w)")
        self._longest_first = [
            (key, patterns[key]) for key in sorted(patterns, key=len, reverse=True) if key
        ]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """A pattern that finds any of the names. It is compiled only when a reply contains a name,
        because compiling takes a millisecond."""
        return re.compile(rf"(?<!\w)(?:{'|'.join(pattern for _, pattern in self._longest_first)})")

    def resolve(self, lines: Iterable[str]) -> tuple[int, ...]:
        folded = [fold(line) for line in lines]
        by_name: dict[int, None] = {}
        for line in folded:
            leading = _leading_ids(line)[:1]
            for key in self._named(line):
                same = [id_ for id_ in self._ids_by_name[key] if id_ not in by_name]
                is_said = leading and leading[0] in same
                by_name.update(dict.fromkeys(leading if is_said else same[:1]))
        ids = (id_ for line in folded for id_ in _leading_ids(line) if id_ in self.ids)
        return tuple(by_name or dict.fromkeys(ids))

    def _named(self, line: str) -> list[str]:
        """Return the names that the line lists: all of them if it consists of names only, else the
        one that a list item begins with or contains."""
        has_names = any(key in line for key, _ in self._longest_first)
        found = list(self._pattern.finditer(line)) if has_names else []
        if not found:
            return []
        head, colon, tail = line[: found[0].start()].rpartition(":")
        before = tail if colon and len(head) < 60 else head + tail
        rest = f"{before} {self._pattern.sub(' ', line[found[0].end() :])}"
        if set(re.split(r"[\W\d]+", rest)) <= _CONNECTIVES:
            return list(dict.fromkeys(match.group() for match in found))
        mark = _LIST_MARK.match(line)
        body = line[mark.end() :] if mark else line
        is_item = (
            len(body) < len(line) or _LEADING_ID.match(body) or body.startswith(found[0].group())
        )
        return [found[0].group()] if is_item else []


def _leading_ids(line: str) -> list[int]:
    """Return all numbers of a line that consists of numbers only; of another line, the number that
    it begins with."""
    head, colon, tail = line.rpartition(":")
    said = tail if colon and not any(map(str.isdigit, head)) else line
    tokens = [token for token in _SEPARATOR.split(said) if token not in _CONNECTIVES]
    numbers = [_LONE_ID.fullmatch(token) for token in tokens]
    if len(numbers) > 1 and all(numbers):
        return [int(number.group(1)) for number in numbers if number]
    mark = _LIST_MARK.match(line)
    leading = _LEADING_ID.match(line, mark.end() if mark else 0)
    return [int(leading.group(1))] if leading else []
