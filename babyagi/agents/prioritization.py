"""The prioritization agent is shown a part of the queue, and proposes an order for it, which is
only a hint."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from babyagi.agents.creation import MAX_OUTPUT_TOKENS, object_schema
from babyagi.agents.listed import MAX_NAME_CHARS
from babyagi.agents.prompting import build_messages, say
from babyagi.agents.replies import find_list, find_object, to_id, to_list, visible
from babyagi.errors import MalformedReplyError
from babyagi.journal import Journal
from babyagi.llm.prompt import Prompt
from babyagi.react.asking import ask
from babyagi.tasks import Passage, Role, Task, make_passage
from babyagi.text import shorten

ORDER_SCHEMA: Mapping[str, Any] = object_schema(
    order={"type": "array", "items": {"type": "integer"}, "maxItems": 50}
)


async def order_tasks(
    tasks: Sequence[Task], *, objective: Passage, journal: Journal
) -> tuple[int, ...]:
    """Ask the model for an order of the tasks, and return their ids in that order. Some or all of
    the tasks may be missing. Raises what `react.asking.ask` raises."""
    origins = [origin for task in tasks for origin in task.origins]
    queue = make_passage("\n".join(map(_queue_line, tasks)), origins)
    messages = build_messages(
        "prioritization",
        {
            "objective": [("objective", objective)],
            "queue": [("queued tasks", queue)],
        },
    )
    prompt = Prompt(
        messages=messages,
        schema_name="order",
        schema=ORDER_SCHEMA,
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )
    ids = {task.id for task in tasks}
    asked = await ask(
        journal,
        "order",
        prompt,
        role=Role.PRIORITIZATION,
        read=lambda reply: parse_order(reply.text, ids=ids),
    )
    return asked.value


def _queue_line(task: Task) -> str:
    after = f" (after {', '.join(map(str, task.after))})" if task.after else ""
    return f"{task.id}: {shorten(task.name, MAX_NAME_CHARS)}{after}"


def parse_order(text: str, *, ids: Collection[int]) -> tuple[int, ...]:
    """Return the ids in the order of the reply: a JSON object with `order`, or a bare list.
    Unknown ids are left out, and each id counts once.

    Raises:
        MalformedReplyError: the reply has neither.
    """
    text = visible(text)
    found, _, _ = find_object(text, "order")
    order = to_list(found["order"]) if found else find_list(text)
    if order is None:
        raise MalformedReplyError(say("expect_order"))
    said = map(to_id, order)
    return tuple(dict.fromkeys(id_ for id_ in said if id_ in ids and id_ is not None))
