"""The simulated model as a planner: from the results and lacks in a prompt to the tasks that they
name as next."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from support.worlds.atlas import Atlas, split_sentences
from support.worlds.generator import World
from support.worlds.noise import Noise
from support.worlds.reading import CREATION, Listed, Reading, Shown

_LACK_SIGNS = (
    "i would need",
    "cannot be determined without",
    "is missing",
    "i do not have",
    "unable to complete",
    "there is no value for",
    "does not include",
    "must be known.",
    "missing:",
)
_REFUSAL_SIGNS = ("i'm sorry", "as an ai language model", "i cannot assist")

AGAIN_FORMS = (
    "Double-check {s}",
    "Confirm {s} with a second look",
    "Verify that {s} is correct",
    "Summarize what was found on {s}",
    "Re-examine {s} in more depth",
    "Cross-check {s} against the other results",
    "Document {s} in a table",
    "Validate {s} once more",
    "Prepare a short note on {s}",
    "Review {s} for completeness",
)
GIVEN_UP = ("dead", "cancelled")  # what a list says of tasks that bring nothing any more
MAX_NAME_CHARS = 300  # a task that needs more than fits does not name it


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    """A proposal. `after` holds numbers of known tasks and labels of its siblings, `repeats` the
    number of the task that it only says in other words."""

    fact: int
    label: str
    name: str
    after: tuple[int | str, ...] = ()
    source: int | None = None
    repeats: int = 0

    def to_json(self, wanted: Collection[str]) -> dict[str, Any]:
        """The proposal with those of the keys that the prompt names."""
        written = {
            "id": self.label,
            "name": self.name,
            "after": list(self.after),
            "from": self.source,
            "repeats": self.repeats,
        }
        return {key: said for key, said in written.items() if key in wanted or key == "name"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A finished task whose result does not answer it, what it lacks, and what brings that."""

    task_id: int | None
    lacks: str
    after: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a creation call says."""

    tasks: tuple[PlannedTask, ...]
    unanswered: tuple[Verdict, ...] = ()
    is_met: bool = False


@dataclass(slots=True, kw_only=True)
class _Wish:
    fact: int
    inputs: Sequence[int]
    source: int | None
    name: str = ""  # as it was before, of a task that is to be tried again
    is_repeat: bool = False  # of what is listed or done already


class Planner:
    """Plans within one world."""

    def __init__(self, world: World, atlas: Atlas, noise: Noise) -> None:
        self._world = world
        self._atlas = atlas
        self._noise = noise

    def plan(self, reading: Reading, rng: random.Random) -> Plan:
        return _Planning(self._world, self._atlas, self._noise, reading, rng).plan(reading.results)

    def plan_own(self, reading: Reading, text: str, rng: random.Random, *, lacks: str) -> Plan:
        """The plan that comes of a reply which the model is about to give, and of what it lacks for
        it."""
        return _Planning(self._world, self._atlas, self._noise, reading, rng).plan(
            [Shown(text=text, name=reading.task, lacks=lacks)], is_own=True
        )


class _Planning:
    """One call of the planner."""

    def __init__(
        self, world: World, atlas: Atlas, noise: Noise, reading: Reading, rng: random.Random
    ) -> None:
        self._world = world
        self._atlas = atlas
        self._noise = noise
        self._reading = reading
        self._rng = rng
        self._lack_signs = (*_LACK_SIGNS, *world.surface.lack_signs)
        fills = noise.fills_lack if reading.plans_as_well else noise.fills_unanswered
        self._judges = bool({"unanswered", "lacks"} & reading.wanted) and rng.random() < fills
        self._data = reading.data
        self._id_by_fact: dict[int, int | None] = {}  # of listed and of finished tasks
        known: list[Listed | Shown] = [
            *(listed for listed in reading.listed if listed.status not in GIVEN_UP),
            *reading.results,
        ]
        for entry in known:
            asked = atlas.asked(entry.name)
            if asked is not None and self._id_by_fact.get(asked) is None:
                self._id_by_fact[asked] = entry.task_id
        self._open_facts = {
            atlas.asked(listed.name)
            for listed in reading.listed
            if listed.status not in ("done", *GIVEN_UP)
        }
        # asked for, and seen to be without an answer, where no verdict will say so
        self._unheard = {
            atlas.asked(shown.name)
            for shown in reading.results
            if not (shown.lacks or self._answers(shown.text, atlas.asked(shown.name)))
            and not (self._judges and reading.role == CREATION)
        } - self._open_facts
        self._wishes: dict[int, _Wish] = {}

    def plan(self, finished: Sequence[Shown], *, is_own: bool = False) -> Plan:
        if is_own:
            self._data = [*self._data, *(shown.text for shown in finished)]
        lacks: list[tuple[Shown, list[int]]] = []
        for shown in finished:
            missing = self._missing(shown, is_own=is_own)
            self._wish_for_hinted(shown)
            if missing is not None:
                lacks.append((shown, missing))
                self._wish_for_missing(missing, source=shown.task_id)
                if not self._judges and (is_own or not shown.lacks):
                    self._wish_to_try_again(shown, missing)
        self._wish_for_parts()
        if self._noise.rewords and self._rng.random() < self._noise.rewords:
            self._wish_again()
        tasks = self._name(list(self._wishes.values())[: self._reading.max_tasks])
        label_by_fact = {task.fact: task.label for task in tasks}
        unanswered = [
            Verdict(
                task_id=shown.task_id,
                lacks=self._words(missing),
                after=self._after(missing, label_by_fact),
            )
            for shown, missing in lacks
            if self._judges
        ]
        return Plan(tasks=tuple(tasks), unanswered=tuple(unanswered), is_met=self._is_met())

    # -- judging
    # ----------------------------------------------------------------------------------------------

    def _missing(self, shown: Shown, *, is_own: bool) -> list[int] | None:
        """What a result says that it lacks, or the prompt says of it; empty where nothing of use is
        said, None where it answers its task, or where its author, whose own it is, thinks so."""
        own = self._atlas.asked(shown.name)
        is_useless = bool(shown.lacks) or not (is_own or self._answers(shown.text, own))
        if self._rng.random() < (
            self._noise.misjudges_lack if is_useless else self._noise.misjudges_answer
        ):
            is_useless = not is_useless
        if not is_useless:
            return None
        said = shown.lacks or shown.text
        part = _lacking_part(said, self._lack_signs) or shown.lacks
        return [number for number in dict.fromkeys(self._atlas.named(part)) if number != own]

    def _answers(self, text: str, own: int | None) -> bool:
        if own is not None:
            return self._atlas.gives(text, own)
        folded = text.casefold()
        return not any(sign in folded for sign in (*self._lack_signs, *_REFUSAL_SIGNS))

    def _is_met(self) -> bool:
        if self._noise.claims_met and self._rng.random() < self._noise.claims_met:
            return True
        if self._noise.denies_met and self._rng.random() < self._noise.denies_met:
            return False
        done = {
            self._atlas.asked(listed.name)
            for listed in self._reading.listed
            if listed.status in ("done", "recorded")
        }
        return all(
            number in done or self._atlas.stands(self._data, number) for number in self._world.goals
        )

    # -- proposing
    # ----------------------------------------------------------------------------------------------

    def _wish_for_missing(self, missing: Sequence[int], *, source: int | None) -> None:
        for number in missing:
            is_asked = number in self._id_by_fact and number not in self._unheard
            if not (is_asked or self._atlas.stands(self._data, number)):
                self._wishes.setdefault(number, _Wish(fact=number, inputs=(), source=source))

    def _wish_to_try_again(self, shown: Shown, missing: Sequence[int]) -> None:
        """Wish for a finished task anew, where nobody else will know that it was not answered."""
        own = self._atlas.asked(shown.name)
        if own is None or own in self._open_facts:
            return
        named = self._atlas.named(shown.name)
        known = [number for number in (*named, *self._atlas.named(shown.text)) if number != own]
        inputs = tuple(dict.fromkeys([*known, *missing]))
        name = shown.name if set(inputs) <= set(named) else ""
        self._wishes[own] = _Wish(fact=own, inputs=inputs, source=shown.task_id, name=name)

    def _wish_for_hinted(self, shown: Shown) -> None:
        text = " ".join(shown.text.split())
        for number in dict.fromkeys(self._atlas.named(text)):
            for hinted, sentence in self._world.facts[number].hints.items():
                if sentence not in text:
                    continue
                is_known = hinted in self._id_by_fact or bool(
                    self._atlas.stands(self._data, hinted)
                )
                if not is_known or self._rng.random() < self._noise.repeats:
                    wish = _Wish(
                        fact=hinted,
                        inputs=self._world.facts[hinted].inputs,
                        source=shown.task_id,
                        is_repeat=is_known,
                    )
                    self._wishes.setdefault(hinted, wish)

    def _wish_for_parts(self) -> None:
        """Ask for the parts of the objective that a check found unanswered, unless somebody is at
        work on them."""
        for number in dict.fromkeys(
            number for part in self._reading.missing_parts for number in self._atlas.named(part)
        ):
            if number not in self._open_facts:
                self._wishes.setdefault(number, _Wish(fact=number, inputs=(), source=None))

    def _wish_again(self) -> None:
        """Wish for one or two things that are listed or done already, in other words."""
        known = sorted(number for number in self._id_by_fact if number not in self._wishes)
        for number in self._rng.sample(known, min(len(known), self._rng.randint(1, 2))):
            wish = _Wish(fact=number, inputs=(), source=None, is_repeat=True)
            form = self._rng.choice(AGAIN_FORMS)
            subject = self._rng.choice(self._world.facts[number].names)
            wish.name = form.format(s=subject)
            self._wishes[number] = wish

    def _name(self, wishes: Sequence[_Wish]) -> list[PlannedTask]:
        label_by_fact = {wish.fact: _label(place) for place, wish in enumerate(wishes)}
        return [
            PlannedTask(
                fact=wish.fact,
                label=label_by_fact[wish.fact],
                name=wish.name or self._task_name(wish),
                after=self._after(wish.inputs, label_by_fact),
                source=wish.source,
                repeats=self._repeated(wish),
            )
            for wish in wishes
        ]

    def _repeated(self, wish: _Wish) -> int:
        owns = wish.is_repeat and self._rng.random() < self._noise.owns_repeats
        return (self._id_by_fact.get(wish.fact) or 0) if owns else 0

    def _after(
        self, numbers: Sequence[int], label_by_fact: dict[int, str]
    ) -> tuple[int | str, ...]:
        """The tasks that bring these facts: siblings by their labels where the prompt lets them
        have some, known ones by their ids."""
        found: list[int | str] = []
        for number in numbers:
            if number in label_by_fact and "id" in self._reading.wanted:
                found.append(label_by_fact[number])
            elif (task_id := self._id_by_fact.get(number)) is not None:
                found.append(task_id)
        return tuple(found)

    def _task_name(self, wish: _Wish) -> str:
        """The name that a task for this fact usually gets, so that the same task is mostly proposed
        in the same words."""
        speech, usual = self._world.surface, random.Random(f"{self._world.seed} {wish.fact}")
        rng = self._rng if self._rng.random() < self._noise.renames else usual
        subject = rng.choice(self._world.facts[wish.fact].names)
        is_bare = not wish.inputs or self._rng.random() < self._noise.drops_inputs
        name = rng.choice(speech.task_forms if is_bare else speech.needing_forms).format(
            s=subject, i=self._words(wish.inputs)
        )
        name = (
            name if len(name) <= MAX_NAME_CHARS else rng.choice(speech.task_forms).format(s=subject)
        )
        return name.replace(f"the {subject}", subject) if "'s " in subject else name

    def _words(self, numbers: Sequence[int]) -> str:
        facts = [self._world.facts[number] for number in numbers]
        calls_many_names = self._world.surface.uses_all_names and self._noise.renames
        called = [
            self._rng.choice(fact.names) if calls_many_names else fact.subject for fact in facts
        ]
        return self._world.surface.join(called) if called else "an answer"


def _lacking_part(text: str, signs: Sequence[str]) -> str:
    """The sentences that say what is missing."""
    return "\n".join(
        sentence
        for sentence in split_sentences(text)
        if any(sign in sentence.casefold() for sign in signs)
    )


def _label(place: int) -> str:
    letters = string.ascii_lowercase
    return letters[place] if place < 26 else letters[place // 26 - 1] + letters[place % 26]


def render_plan(plan: Plan, reading: Reading) -> str:
    """The plan in the form that the prompt asks for: our JSON, a JSON list of strings, or a
    numbered list."""
    names = [task.name for task in plan.tasks]
    if "tasks" in reading.wanted:
        written: dict[str, Any] = {"tasks": [task.to_json(reading.wanted) for task in plan.tasks]}
        if "unanswered" in reading.wanted:
            written["unanswered"] = [
                {"task": verdict.task_id, "lacks": verdict.lacks, "after": list(verdict.after)}
                for verdict in plan.unanswered
            ]
        return json.dumps(written | {"objective_met": plan.is_met}, ensure_ascii=False)
    if "JSON list" in reading.instructions:
        return json.dumps(names, ensure_ascii=False)
    return "\n".join(f"{place}. {name}" for place, name in enumerate(names, start=1))
