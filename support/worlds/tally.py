"""Counts what a loop asks of the simulated model, and what of it led anywhere."""

from __future__ import annotations

import hashlib
from collections import Counter

from babyagi.llm.prompt import Prompt, estimate_tokens, prompt_text_bytes
from babyagi.tasks import Usage
from support.worlds import reading as reads
from support.worlds.model import Reply, SimulatedModel
from support.worlds.reading import Asked


class Tally:
    """A simulated model whose calls are counted. A token is 4 bytes of what is asked and said.

    It goes to another process without the model.
    """

    def __init__(self, model: SimulatedModel) -> None:
        self.model = model
        self._goals = model.world.goals
        self.calls_by_role: Counter[str] = Counter()
        self.tokens_by_role: Counter[str] = Counter()
        self.n_executions = 0
        self.n_useless = 0  # executions that lacked something, or gave what was known already
        self.n_proposed = 0
        self.n_repeated_proposals = 0  # of what is established, or is asked already
        # until the execution that established the last of the goals, without checks and reports; 0:
        # none did
        self.n_calls_to_goal = self.n_tokens_to_goal = 0
        self.established: set[int] = set()
        self._proposed: set[int] = set()
        self.n_by_prompt: Counter[str] = Counter()

    @property
    def n_calls(self) -> int:
        return self.calls_by_role.total()

    @property
    def n_tokens(self) -> int:
        return self.tokens_by_role.total()

    @property
    def is_solved(self) -> bool:
        return self.established.issuperset(self._goals)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "model"}

    def answer(self, asked: Asked) -> tuple[Reply, Usage]:
        """Return the model's reply, and what it cost."""
        digest = hashlib.sha256(
            "\0".join(message.text for message in asked.messages).encode("utf-8", "replace")
        ).hexdigest()
        reply = self.model.answer(asked, n_before=self.n_by_prompt[digest])
        self.n_by_prompt[digest] += 1
        prompt = Prompt(messages=asked.messages, tools=asked.tools, schema=asked.schema)
        said = reply.text + "".join(call.name + call.arguments for call in reply.tool_calls)
        usage = Usage(
            calls=1,
            prompt_tokens=-(-prompt_text_bytes(prompt) // 4),
            completion_tokens=estimate_tokens(said),
        )
        self.calls_by_role[reply.role] += 1
        self.tokens_by_role[reply.role] += usage.tokens
        self._note(reply)
        return reply, usage

    def _note(self, reply: Reply) -> None:
        self.n_proposed += len(reply.proposed)
        self.n_repeated_proposals += sum(
            number in self._proposed or number in self.established for number in reply.proposed
        )
        self._proposed.update(reply.proposed)
        if reply.role != reads.EXECUTION or reply.is_look:
            return
        self.n_executions += 1
        self.n_useless += not reply.is_found or reply.fact in self.established
        if reply.is_found and reply.fact is not None:
            self.established.add(reply.fact)
        if self.is_solved and not self.n_calls_to_goal:
            apart = (reads.CHECK, reads.REPORT)
            self.n_calls_to_goal = self.n_calls - sum(self.calls_by_role[role] for role in apart)
            self.n_tokens_to_goal = self.n_tokens - sum(self.tokens_by_role[role] for role in apart)
