"""The prioritization agent: a window of the queue in, a hint about its order out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from babyagi.agents.creation import MAX_NAME_CHARS, MAX_OUTPUT_TOKENS
from babyagi.agents.prompting import build_messages
from babyagi.agents.replies.order import parse_order
from babyagi.journal import Journal
from babyagi.llm.prompt import Prompt
from babyagi.react.asking import ask
from babyagi.tasks import Passage, Role, Task, make_passage
from babyagi.text import disarm, shorten

ORDER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"order": {"type": "array", "items": {"type": "integer"}, "maxItems": 50}},
    "required": ["order"],
    "additionalProperties": False,
}


async def order_tasks(
    tasks: Sequence[Task], *, objective_text: str, journal: Journal
) -> tuple[int, ...]:
    """Return ids of the given tasks in the order that the agent wishes; it may be partial or empty.
    Raises as `ask`."""
    lines = [_line(task) for task in tasks]
    messages = build_messages(
        "prioritization",
        {
            "objective": [("objective", Passage(text=objective_text, origin="person"))],
            "queue": [
                (
                    "queued tasks",
                    make_passage(
                        "\n".join(lines), [origin for task in tasks for origin in task.origins]
                    ),
                )
            ],
        },
    )
    prompt = Prompt(
        messages=messages,
        schema_name="order",
        schema=ORDER_SCHEMA,
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )
    window = [(task.id, disarm(task.name)) for task in tasks]
    asked = await ask(
        journal,
        "order",
        prompt,
        role=Role.PRIORITIZATION,
        read=lambda completion: parse_order(completion.text, window=window),
    )
    return asked.value


def _line(task: Task) -> str:
    after = f" (after {', '.join(map(str, task.after))})" if task.after else ""
    return f"{task.id}: {shorten(task.name, MAX_NAME_CHARS)}{after}"
