"""What the turns and the duties of one objective work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from babyagi import events
from babyagi.agents.listed import ListedNames
from babyagi.index.indexer import Embed, embed_path
from babyagi.index.search import ResultSearch
from babyagi.journal import Backends, Journal
from babyagi.memory.remembering import TaskMemory
from babyagi.react.steps import AgentBounds
from babyagi.react.values import require_json
from babyagi.tasks import DutyClaim, FolderTexts, Role
from babyagi.taskstore.nouns import TaskNames
from babyagi.taskstore.sql.store import TaskStore
from babyagi.tools.base import Tool

N_NAMES = 2000  # how many of the newest task names planning compares with

Enrich = Callable[[str, str], str | Awaitable[str]]
"""Takes the name of a task and its result, and returns the result to keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The sizes of prompts and answers, and the settings of the execution agent's conversation with
    its model.

    Attributes:
        max_failures: failed tries after which a task is given up.
        run: the bounds of the agent from a person's YAML file that carries the tasks out; None
            without one.
        memory: what that agent remembers; None without a memory.
        read_output: parses the report into the type that a program requested; raises
            `MalformedReplyError`.
        enrich: takes a task's name and its result, and returns the result to record.
        find_texts: takes a question and a number of bytes, and returns texts of the objective's
            folder within these bytes; None if it has none.
    """

    context_tokens: int
    max_output_tokens: int
    max_new_tasks: int
    max_failures: int = 3
    protocol: str = "auto"
    run: AgentBounds | None = None
    memory: TaskMemory | None = None
    read_output: Callable[[str], object] = require_json
    enrich: Enrich | None = None
    find_texts: Callable[[str, int], Awaitable[FolderTexts]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What `Loop` hands to every turn and duty of its objective.

    Attributes:
        backends: what the journals call.
        search: finds earlier results by nearness.
        tools: what the execution agent may use.
        clock: returns now, for the date in prompts.
        names: the names of the objective's tasks, as far as they have been read.
    """

    backends: Backends
    search: ResultSearch
    tools: Sequence[Tool]
    bounds: Bounds
    clock: Callable[[], datetime]
    names: ListedNames = field(default_factory=partial(ListedNames, max_names=N_NAMES))

    @property
    def store(self) -> TaskStore:
        return self.backends.store

    def journal(self, claim: DutyClaim) -> Journal:
        """Return the journal of a duty."""
        return Journal(self.backends, fence=claim.fence, is_new=claim.is_new)

    async def read_names(self, objective_id: int) -> ListedNames:
        """Return the names of the objective's tasks, after reading the new ones from the store."""
        self.take_names(
            await self.store.task_names(objective_id, limit=N_NAMES, after_id=self.names.event_id)
        )
        return self.names

    def take_names(self, read: TaskNames) -> None:
        """Add names that were read from the store."""
        self.names.update(read.names, event_id=read.event_id)
        for name in read.names:  # its result may have been withdrawn
            self.search.forget(name.id)

    async def note_cut(self, objective_id: int, task_id: int, cut: Sequence[int]) -> None:
        """Record, as an event, that the results of the tasks `cut` were shortened in the prompt for
        the task `task_id`."""
        await self.store.append_event(
            objective_id, kind=events.CONTEXT_CUT, task_id=task_id, data={"cut": list(cut)}
        )


def embedder(journal: Journal, what: str) -> Embed:
    """Return what embeds texts through the journal; `what` begins the keys of its steps."""

    async def embed(texts: Sequence[str]) -> list[bytes]:
        return await journal.embed(embed_path(what, texts), texts)

    return embed


def context_tokens(journal: Journal, role: Role) -> int:
    """Return the context of the role's model in tokens; 0 if it is not known."""
    known = journal.abilities(role)
    return known.context_tokens if known is not None else 0
