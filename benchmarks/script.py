"""What the model says in benchmarks: results of a wanted length, one new task for each finished
one, the queue's order reversed.

Every check agrees. Where a check missed something all the same, nothing is proposed for it.
"""

from __future__ import annotations

import json
import re
from itertools import count

from babyagi.tasks import Role
from support.local_server import Answer, ChatRequest
from support.local_server.answers import agree_answer
from support.prompts import asks_for_missing, results_in

OBJECTIVE = "Find out which payment provider's client libraries keep to the limits they document."
WORDS = (
    "retry limits of connections pools timeouts headers tokens quotas bursts queues "
    "webhooks refunds disputes payouts currencies "
    "documented observed default maximum hourly account region version client server "
    "library provider sandbox production change"
).split()


class Script:
    """Answers as the agents would, so that a queue keeps its length for ever: a limit has to end
    the run."""

    def __init__(self, *, result_bytes: int) -> None:
        self._result_bytes = result_bytes
        self._numbers = count(1)
        self._seeds = count(1)

    def next_name(self) -> str:
        """A task of about 80 bytes, which is what the original's 62 tokens per queued task suggest,
        and like no other."""
        n = next(self._numbers)
        return f"Compare the {_words(n, 3)} of client library {100 + n} with what it documents"

    def reply(self, agent: str, said: str) -> str:
        """Return the agent's reply to what it was told."""
        match agent:
            case Role.EXECUTION:
                return _sentences(next(self._seeds), self._result_bytes)
            case Role.CREATION:
                return json.dumps({"tasks": self._tasks_from(said), "objective_met": False})
            case Role.PRIORITIZATION:
                queued = re.findall(r"^(\d+): ", said, re.MULTILINE)
                return json.dumps({"order": [int(number) for number in reversed(queued)]})
        return "The report."

    def answer(self, request: ChatRequest) -> Answer:
        """The same, for the local server."""
        return (
            agree_answer(request)
            if request.agent == "check"
            else Answer(text=self.reply(request.agent, request.messages[-1].text))
        )

    def _tasks_from(self, said: str) -> list[dict[str, object]]:
        """One new task from each finished one that the prompt shows."""
        finished = [] if asks_for_missing(said) else [number for number, _, _ in results_in(said)]
        return [{"name": self.next_name(), "after": [], "from": number} for number in finished]


def _words(seed: int, n: int) -> str:
    return " ".join(WORDS[(seed * 7 + i * i * 3 + i * seed) % len(WORDS)] for i in range(n))


def _sentences(seed: int, n_bytes: int) -> str:
    text = ""
    while len(text) < n_bytes:
        text += f"The {_words(seed + len(text), 9)} is {seed % 90 + 10}. "
    return text[:n_bytes].strip()
