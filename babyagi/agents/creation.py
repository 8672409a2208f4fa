"""The creation agent is shown finished tasks with their results. It proposes new tasks, and says
which of the finished tasks are not answered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from babyagi.agents.listed import MAX_NAME_CHARS, list_known
from babyagi.agents.prompting import build_messages, say
from babyagi.agents.replies import (
    find_list,
    find_object,
    is_true,
    to_id,
    to_line,
    to_list,
    visible,
    with_keys,
)
from babyagi.errors import MalformedReplyError
from babyagi.journal import Journal
from babyagi.llm.prompt import Prompt
from babyagi.react.asking import ask
from babyagi.tasks import (
    Passage,
    Proposal,
    Result,
    Role,
    Task,
    TaskName,
    Unanswered,
    find_sources,
)

MAX_ID_CHARS = 8  # an id is a number or a letter
MAX_OUTPUT_TOKENS = 2000  # reasoning models spend most of them before the reply begins
MAX_REPLY_TASKS = 30  # the most that a schema allows: a small model uses every place
MAX_PROPOSED_CHARS = 500  # a longer name is no task that can be understood by itself
BLOCK_BEGINS = '{"lacks"'  # of a plan that is cut off
COMBINED_KEYS = ("lacks", "after", "tasks", "objective_met")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A finished task with its result, from which new tasks are planned; or a task that lacks
    information. For the latter, `read` are the origins (files, pages …) of what it read."""

    task: Task
    result: Result | None
    read: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text that the model is shown about the task: what the task found, and which
        information it lacks."""
        found, lack = "", ""
        if self.result is not None:
            found, lack = self.result.text, self.result.lack
        elif self.task.lack is not None:
            found, lack = self.task.lack.found, self.task.lack.what
        return "\n".join(filter(None, [found, lack and say("lacks", what=lack)]))

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationReply:
    """What an agent planned.

    Attributes:
        tasks: the tasks that it proposes. An integer in `after` is the id of an existing task; a
            text is the label of another task of the reply. `parent_id` is the finished task that
            the reply names as the origin of the task.
        is_met: whether the reply says that the objective is met.
        unanswered: the finished tasks whose results do not answer them, each with what is lacking,
            which may be empty.
        dropped: the names of proposed tasks that were left out because of a limit.
    """

    tasks: tuple[Proposal, ...] = ()
    is_met: bool = False
    unanswered: tuple[Unanswered, ...] = ()
    dropped: tuple[str, ...] = ()


def creation_schema(max_tasks: int) -> Mapping[str, Any]:
    """Return the JSON Schema of a reply, with bounds on lengths and counts. Ids are strings,
    because a reply may refer to a task by number or by letter."""
    id_ = {"type": "string", "maxLength": MAX_ID_CHARS}
    text = {"type": "string", "maxLength": MAX_NAME_CHARS}
    after = {"type": "array", "items": id_, "maxItems": 20}
    number = {"type": "integer"}
    task = object_schema(id=id_, name=text, after=after, repeats=number, **{"from": number})
    unanswered = object_schema(task=number, lacks=text, after=after)
    return object_schema(  # judged in this order: what is done comes before what is to do
        objective_met={"type": "boolean"},
        unanswered={"type": "array", "items": unanswered, "maxItems": max_tasks},
        tasks={"type": "array", "items": task, "maxItems": max_tasks},
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
    objective: Passage,
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
            "objective": [("objective", objective)],
            "known": list_known(known),
            "finished": [one.to_labelled() for one in finished],
            "missing": [("missing parts", missing)] if missing is not None else [],
            "max_new_tasks": str(n_allowed),
        },
    )
    prompt = Prompt(
        messages=messages,
        schema_name="tasks",
        schema=creation_schema(min(n_allowed, MAX_REPLY_TASKS)),
        is_schema_late=True,
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )
    asked = await ask(
        journal,
        "create",
        prompt,
        role=Role.CREATION,
        read=lambda reply: parse_creation(
            reply.text,
            known_ids=[name.id for name in known],
            finished_ids=[one.task.id for one in finished],
            max_tasks=n_allowed,
        ),
    )
    origins = (f"model:{asked.completion.model}", *asked.prompt.origins)
    return asked.value, tuple(dict.fromkeys(origins))


# -- reading a plan
# --------------------------------------------------------------------------------------------------


def parse_creation(
    text: str, *, known_ids: Collection[int], finished_ids: Collection[int] = (), max_tasks: int
) -> CreationReply:
    """Parse a reply of the creation agent. A bare list counts as its tasks.

    Args:
        known_ids, finished_ids: the ids of existing tasks. A reference in `after` that is neither
            one of them nor another task of the reply is dropped. The reply may say that
            a task's result does not answer it only of the tasks in `finished_ids`.
        max_tasks: how many tasks are kept; `dropped` has the names of the others.

    Raises:
        MalformedReplyError: the reply has no plan in JSON.
    """
    text = visible(text)
    found, _, _ = find_object(text, "tasks", "unanswered", "objective_met")
    plan = found or {"tasks": find_list(text)}
    if not found and plan["tasks"] is None:
        raise MalformedReplyError(say("expect_tasks"))
    known = frozenset(known_ids) | frozenset(finished_ids)
    reply = _to_reply(plan, known=known, finished=frozenset(finished_ids), max_tasks=max_tasks)
    # an item of the example's form, filled in with nothing, proposes nothing
    names = [_to_node(item).get("name") for item in to_list(plan.get("tasks"))]
    is_form = all(isinstance(name, str) for name in names)
    if not is_form and not (reply.tasks or reply.dropped or reply.unanswered):
        raise MalformedReplyError(say("expect_tasks"))
    return reply


def split_combined(
    text: str, *, known_ids: Collection[int], max_tasks: int
) -> tuple[str, CreationReply | None, str, tuple[int | str, ...]]:
    """Split a reply that has a task's result and, at its end, a plan: a JSON object with the keys
    `lacks`, `after`, `tasks` and `objective_met`. All other JSON belongs to the result.

    Returns:
        (result, plan, lacks, after): the plan is None if the reply ends without one; `lacks` is
        what the task still needs, '' for nothing, and `after` are the tasks that bring it.
    """
    text = visible(text)
    block, start, end = find_object(text, *COMBINED_KEYS)
    begun_at = text.rfind(BLOCK_BEGINS)
    if len(block) < 2 or text[end:].strip("`}\n ."):
        is_cut = begun_at >= 0 and end <= begun_at
        return (_before(text, begun_at) if is_cut else text), None, "", ()
    known = frozenset(known_ids)
    reply = _to_reply(block, known=known, finished=frozenset(), max_tasks=max_tasks)
    labels = {task.label for task in reply.tasks if task.label}
    after = _to_references(block.get("after"), known, labels)
    return _before(text, start), reply, to_line(block.get("lacks")), after


def _before(text: str, end: int) -> str:
    """Return the text up to a block of JSON, without the opening of a code fence around it."""
    before = text[:end].rstrip().removesuffix("```json").removesuffix("```")
    return before.rstrip("{\n ")


def _to_reply(
    plan: Mapping[str, Any], *, known: frozenset[int], finished: frozenset[int], max_tasks: int
) -> CreationReply:
    """Return a plan as it was given in JSON. Proposed tasks without a name are left out."""
    nodes = map(_to_node, to_list(plan.get("tasks")))
    named = [(node, to_line(node.get("name"), max_chars=10_000)) for node in nodes]
    fitting = [one for one in named if 0 < len(one[1]) <= MAX_PROPOSED_CHARS]
    over = [one for one in named if len(one[1]) > MAX_PROPOSED_CHARS]
    kept = fitting[:max_tasks]
    labels = {_to_label(node.get("id"), known) for node, _ in kept} - {""}
    return CreationReply(
        tasks=tuple(_to_proposal(node, name, known, finished, labels) for node, name in kept),
        is_met=is_true(plan.get("objective_met")),
        unanswered=_to_unanswered(plan.get("unanswered"), known, labels, finished),
        dropped=tuple(name[:MAX_PROPOSED_CHARS] for _, name in (*over, *fitting[max_tasks:])),
    )


def _to_node(item: Any) -> dict[str, Any]:
    return (
        {"name": item}
        if isinstance(item, str)
        else with_keys(item, "id", "name", "after", "from", "repeats")
    )


def _to_label(value: Any, known: frozenset[int]) -> str:
    """Return the label of a proposed task; "" for the number of an existing task."""
    label = value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
    label = label.strip()[:60]
    return "" if to_id(label) in known else label


def _to_proposal(
    node: Mapping[str, Any],
    name: str,
    known: frozenset[int],
    finished: frozenset[int],
    labels: Collection[str],
) -> Proposal:
    label = _to_label(node.get("id"), known)
    source, repeats = to_id(node.get("from")), to_id(node.get("repeats"))
    after = _to_references(node.get("after"), known, labels)
    return Proposal(
        name=name,
        after=tuple(one for one in after if one != label),
        label=label,
        parent_id=source if source in finished else None,
        repeats=repeats if repeats in known else None,
        origins=("model",),
    )


def _to_references(
    value: Any, known: Collection[int], labels: Collection[str]
) -> tuple[int | str, ...]:
    """Return the tasks that the value of an `after` names: labels of the reply as texts, existing
    tasks by their ids. What names neither is dropped."""
    found: dict[int | str, None] = {}
    for one in to_list(value):
        id_ = to_id(one)
        if isinstance(one, str | int) and str(one).strip() in labels:
            found[str(one).strip()] = None
        elif id_ in known and id_ is not None:
            found[id_] = None
    return tuple(found)


def _to_unanswered(
    value: Any, known: frozenset[int], labels: Collection[str], finished: frozenset[int]
) -> tuple[Unanswered, ...]:
    found: dict[int, Unanswered] = {}
    for node in (with_keys(item, "task", "lacks", "after") for item in to_list(value)):
        task_id = to_id(node.get("task"))
        if task_id is not None and task_id in finished and task_id not in found:
            found[task_id] = Unanswered(
                task_id=task_id,
                lack=to_line(node.get("lacks")),
                after=_to_references(node.get("after"), known, labels),
            )
    return tuple(found.values())
