"""The plain loop, to compare with: a queue, the results that share a code or rare words with the
task, one plan for each result."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from itertools import pairwise

from babyagi.llm.prompt import Message, Speaker

DO = (
    "You do one task of a larger objective. Give the result itself; if something is missing, "
    "say what."
)
PLAN = (
    "You plan what an objective still needs. Propose what the result makes possible and "
    "the queue lacks. Reply with a JSON list of strings."
)
REPORT = "You answer an objective from results."
N_WITHOUT_CODES = 10  # results that a task is shown whose name holds no code
REPORT_CHARS = 48_000  # 12,000 tokens
_EAST = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")

Ask = Callable[[tuple[Message, ...]], Awaitable[str]]


async def run_plain(
    ask: Ask, *, objective: str, first_task: str, max_executions: int
) -> tuple[str, str]:
    """Return the report and why the loop stopped."""
    queue, results, words, n_done = deque([first_task]), dict[str, str](), dict[str, set[str]](), 0

    async def say(system: str, user: str) -> str:
        user = f"Objective: {objective}\n{user}"
        return await ask(
            (Message(speaker=Speaker.SYSTEM, text=system), Message(speaker=Speaker.USER, text=user))
        )

    while queue and n_done < max_executions:
        task, n_done = queue.popleft(), n_done + 1
        codes = {word for word in _words(task) if re.search(r"\d", word)}
        heads = {name: _words(re.split(r"[(,（，、。]", name)[0]) for name in results}
        n_names = Counter(word for head in heads.values() for word in head)
        held = {
            name: sum(1 / n_names[word] for word in head & _words(task)) / max(1, len(head))
            for name, head in heads.items()
        }
        shown = [name for name in results if codes & words[name]] or sorted(
            results, key=held.__getitem__
        )[-N_WITHOUT_CODES:]
        context = "\n###".join(f"{name}\n{results[name]}" for name in shown)
        results[task] = text = await say(DO, f"Earlier results:\n{context}\nTask: {task}")
        words[task] = _words(f"{task} {text}")
        listed = "\n".join(f"- {name}" for name in queue)
        planned = await say(
            PLAN, f"Finished task: {task}\nResult:\n{text}\nQueued tasks:\n{listed}"
        )
        queue += [
            name
            for name in _names(planned)
            if name not in queue and (name == task or name not in results)
        ]
    told = "\n###".join(f"{name}\n{text}" for name, text in results.items())
    report = await say(REPORT, f"Results:\n{told[-REPORT_CHARS:]}")
    return report, "finished" if not queue else "cap"


def _words(text: str) -> set[str]:
    """Long words and pairs of them; of scripts that do not set words apart, pairs of signs."""
    words = [
        word for word in re.findall(r"[\w-]+", _EAST.sub(" ", text.casefold())) if len(word) > 3
    ]
    signs = [one + other for run in _EAST.findall(text) for one, other in pairwise(run)]
    return {*words, *map(" ".join, pairwise(words)), *signs}


def _names(reply: str) -> list[str]:
    try:
        return [name for name in json.loads(reply) if isinstance(name, str)]
    except ValueError:
        return []
