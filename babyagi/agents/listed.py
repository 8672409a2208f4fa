"""The list of tasks as an agent is shown it: which names a prompt contains, and in which form."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from babyagi.agents.prompting import Field, to_field
from babyagi.index.hashing import words_of
from babyagi.llm.prompt import estimate_tokens
from babyagi.tasks import TaskName, TaskStatus, find_sources
from babyagi.text import shorten

MAX_NAME_CHARS = 200
MAX_LISTED_TOKENS = 6000
WINDOW_SHARE = 4  # of the model's context, the list takes at most a fourth
COMMON_SHARE = 0.1  # a word in a larger share of the names is not rare

_OPEN = (TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.RECORDED, TaskStatus.WAITING)


def list_known(known: Sequence[TaskName]) -> Field:
    """Return a field of a prompt that lists the tasks, one per line: id, status, name."""
    sources = find_sources(origin for name in known for origin in name.origins)
    return to_field("listed tasks", [_line(name) for name in known], sources=sources)


def _line(name: TaskName) -> str:
    state = "lacking" if name.is_lacking and name.status is TaskStatus.QUEUED else name.status.value
    return f"{name.id} [{state}] {shorten(name.name, MAX_NAME_CHARS)}"


class ListedNames:
    """The names of an objective's newest tasks, kept from one planning to the next: only those that
    are new or have changed are read again.

    `event_id`: the names hold all changes of the task list up to this event.
    """

    def __init__(self, *, max_names: int) -> None:
        self.event_id = 0
        self._max_names = max_names
        self._name_by_id: dict[int, TaskName] = {}  # oldest first
        self._newest_id = 0

    def update(self, names: Sequence[TaskName], *, event_id: int) -> None:
        """Add the names of tasks that are new or have changed since `self.event_id`. A call with an
        earlier `event_id` than that changes nothing.

        Args:
            names: oldest first.
            event_id: the names are right as of this event.
        """
        if event_id < self.event_id:
            return
        self.event_id = event_id
        # one that is neither known nor newer was dropped before, because it is too old
        self._name_by_id |= {
            name.id: name
            for name in names
            if name.id in self._name_by_id or name.id > self._newest_id
        }
        self._newest_id = max([self._newest_id, *(name.id for name in names)])
        for id_ in list(self._name_by_id)[: -self._max_names]:
            del self._name_by_id[id_]

    def names(self, *, without: Collection[int] = ()) -> list[TaskName]:
        """Return all names, oldest first, except those of the tasks `without`."""
        return [name for id_, name in self._name_by_id.items() if id_ not in without]

    def named(self, ids: Iterable[int | str]) -> list[TaskName]:
        """Return the names of these tasks; ids that are not among them are left out."""
        return [self._name_by_id[id_] for id_ in ids if id_ in self._name_by_id]

    def choose(
        self, texts: Sequence[str], *, context_tokens: int = 0, without: Collection[int] = ()
    ) -> list[TaskName]:
        """Return the tasks that an agent is shown when it plans, in order of their ids: all of
        them, if their lines have at most `MAX_LISTED_TOKENS` and a fourth of the model's context.
        If not, those that share rare words with the texts come first, then open tasks, then the
        newest of the others.

        Args:
            texts: the objective, results, what tasks lack, and unanswered parts of the objective.
            context_tokens: the context of the model; 0 if it is not known.
            without: ids of tasks to leave out.
        """
        bounds = (MAX_LISTED_TOKENS, context_tokens // WINDOW_SHARE or MAX_LISTED_TOKENS)
        names, left = self.names(without=without), min(bounds)
        size_by_id = {name.id: estimate_tokens(_line(name)) + 1 for name in names}
        if sum(size_by_id.values()) <= left:
            return names
        weight_by_id = self._weigh(texts, without)
        names.sort(key=lambda name: (-weight_by_id[name.id], name.status not in _OPEN, -name.id))
        chosen = []
        for name in names:
            left -= size_by_id[name.id]
            if left < 0:
                break
            chosen.append(name)
        return sorted(chosen, key=lambda name: name.id)

    def _weigh(self, texts: Sequence[str], without: Collection[int]) -> dict[int, float]:
        """Return, by id, a weight for each task: the more, the rarer the words are that its name
        shares with the texts."""
        wanted = {word for text in texts for word in words_of(text)}
        words_by_id = {
            name.id: wanted & {*words_of(name.name)} for name in self.names(without=without)
        }
        n_by_word = Counter(word for words in words_by_id.values() for word in words)
        n_most = max(3, COMMON_SHARE * len(words_by_id))
        return {
            id_: math.fsum(1 / n_by_word[word] for word in words if n_by_word[word] <= n_most)
            for id_, words in words_by_id.items()
        }
