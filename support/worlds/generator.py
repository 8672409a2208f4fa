"""Makes a world: facts that need each other, the result that finding each of them gives, and an
objective that only the last meets.

The same arguments make the same world. Fact 0 needs nothing; every other fact needs one to three
earlier ones, and is named by the result of the deepest of these, now and then by that of another
one too. A result never holds the value of another fact.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log

from support.worlds.surfaces import SURFACES, Names, Surface

FURTHER_KINDS = ("siblings", "contradiction", "hunt", "trip", "pieces")
BRIEFS = ("brief", "brief+codes")
KINDS = ("chain", "join", *BRIEFS, "fanout", *FURTHER_KINDS)
PLACES_OF_FACT = ("early", "middle", "last", "any")
MIN_CHARS, MAX_CHARS = 300, 8000
HINT_SHARE = 0.1  # of a fact's earlier inputs whose results name it too
MAX_INPUTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that can be found out. `hints` are sentences of its result, by the number of the
    fact that each names as next; `wrong_value` is what an invention says."""

    number: int
    names: Names
    value: str
    wrong_value: str = ""
    inputs: tuple[int, ...] = ()
    hints: dict[int, str] = field(default_factory=dict)
    text: str = ""
    is_distractor: bool = False

    @property
    def subject(self) -> str:
        return self.names[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Facts by their numbers, what is asked (`goals`), and the words of it."""

    kind: str
    seed: int
    surface: Surface
    facts: tuple[Fact, ...]
    goals: tuple[int, ...]
    objective: str
    initial_task: str

    @property
    def n_needed(self) -> int:
        return sum(not fact.is_distractor for fact in self.facts)

    @property
    def depth(self) -> int:
        """The number of facts on the longest way to a goal: no loop needs fewer executions one
        after the other."""
        depths = depths_of(self.facts)
        return max(depths[number] for number in self.goals)


def depths_of(facts: Sequence[Fact]) -> list[int]:
    """The number of facts on the longest way to each fact, itself included."""
    depths: list[int] = []
    for fact in facts:
        depths.append(1 + max((depths[number] for number in fact.inputs), default=0))
    return depths


def make_world(
    kind: str,
    n_facts: int,
    seed: int,
    *,
    surface: str = "codes",
    result_chars: int = 600,
    fact_place: str = "any",
    n_distractors: int | None = None,
) -> World:
    """Return the world of these arguments.

    Args:
        kind: one of `KINDS`.
        result_chars: about how long each result is; 0 draws from 300 to 8,000, each order of
            magnitude alike.
        fact_place: where in a result its value stands; one of `PLACES_OF_FACT`.
        n_distractors: things that can be asked and lead nowhere; None is one for each ten facts.
    """
    if kind in BRIEFS:
        from support.worlds.briefs import make_brief

        return make_brief(
            n_facts,
            seed,
            surface=surface,
            has_codes=kind == BRIEFS[1],
            result_chars=result_chars,
            fact_place=fact_place,
        )
    if kind == "fanout":
        from support.worlds.fanouts import make_fanout

        return make_fanout(n_facts, seed, result_chars=result_chars, fact_place=fact_place)
    if kind in FURTHER_KINDS:
        from support.worlds.kinds import make_further

        return make_further(kind, n_facts, seed, result_chars=result_chars, fact_place=fact_place)
    rng = random.Random(f"{kind} {n_facts} {seed} {surface}")
    speech = SURFACES[surface]
    n_distractors = n_facts // 10 if n_distractors is None else n_distractors
    inputs = (
        [((number - 1,) if number else ()) for number in range(n_facts)]
        if kind == "chain"
        else _join_inputs(n_facts, rng)
    )
    inputs += [(rng.randrange(n_facts - 1),) for _ in range(n_distractors)]
    facts = [
        Fact(
            number=number,
            names=names,
            value=speech.make_value(names, rng),
            wrong_value=speech.make_value(names, rng),
            inputs=given,
        )
        for number, (names, given) in enumerate(
            zip(speech.make_names(len(inputs), rng), inputs, strict=True)
        )
    ]
    facts = [replace(fact, is_distractor=fact.number >= n_facts) for fact in facts]
    return World(
        kind=kind,
        seed=seed,
        surface=speech,
        facts=write_results(
            facts,
            _choose_hints(facts, rng),
            speech,
            rng,
            result_chars=result_chars,
            fact_place=fact_place,
        ),
        goals=(n_facts - 1,),
        objective=rng.choice(speech.objective_forms).format(s=facts[n_facts - 1].subject),
        initial_task=rng.choice(speech.task_forms).format(s=facts[0].subject),
    )


def _join_inputs(n: int, rng: random.Random) -> list[tuple[int, ...]]:
    """Inputs of each fact, so that the last needs all the others, directly or not."""
    width = rng.randint(3, 8)
    unused, inputs = [0], list[tuple[int, ...]]([()])
    for number in range(1, n):
        n_left = n - number - 1
        n_inputs = min(number, rng.randint(1, MAX_INPUTS))
        must_close = len(unused) > width or len(unused) - 1 >= (MAX_INPUTS - 1) * n_left
        chosen = set(
            rng.sample(
                unused, min(len(unused), MAX_INPUTS) if must_close else int(rng.random() < 0.7)
            )
        )
        earlier = range(max(0, number - 4 * width), number)
        while len(chosen) < min(n_inputs, len(earlier)):
            chosen.add(rng.choice(earlier))
        inputs.append(tuple(sorted(chosen)))
        unused = [one for one in unused if one not in chosen] + [number]
    return inputs


# -- results
# --------------------------------------------------------------------------------------------------


def write_results(
    facts: Sequence[Fact],
    hinted: Mapping[int, Sequence[int]],
    speech: Surface,
    rng: random.Random,
    *,
    result_chars: int,
    fact_place: str,
) -> tuple[Fact, ...]:
    """Return the facts with the texts of their results. `hinted` says which facts the result of
    each names as next."""
    writer = _Writer(facts, speech, rng, fact_place=fact_place)
    return tuple(
        writer.write(fact, hinted[fact.number], n_chars=_draw_chars(result_chars, rng))
        for fact in facts
    )


def _choose_hints(facts: Sequence[Fact], rng: random.Random) -> dict[int, list[int]]:
    hinted: dict[int, list[int]] = {fact.number: [] for fact in facts}
    depths = depths_of(facts)
    for fact in facts:
        deepest = max(fact.inputs, key=depths.__getitem__, default=None)
        for number in (
            number for number in fact.inputs if number == deepest or rng.random() < HINT_SHARE
        ):
            hinted[number].append(fact.number)
    return hinted


def _draw_chars(result_chars: int, rng: random.Random) -> int:
    return result_chars or int(
        MIN_CHARS * 2.718281828 ** (rng.random() * log(MAX_CHARS / MIN_CHARS))
    )


class _Writer:
    """Writes the results of one world."""

    def __init__(
        self, facts: Sequence[Fact], speech: Surface, rng: random.Random, *, fact_place: str
    ) -> None:
        self._facts = facts
        self._speech = speech
        self._rng = rng
        self._fact_place = fact_place

    def write(self, fact: Fact, hinted: Sequence[int], *, n_chars: int) -> Fact:
        """Return the fact with its result: its value and what comes next, among filler up to the
        length."""
        rng, speech = self._rng, self._speech
        value = _sentence(rng.choice(speech.value_forms).format(s=self._call(fact), v=fact.value))
        hints = {number: self._hint(self._facts[number]) for number in hinted}
        told = [*hints.values()]
        if fact.inputs and rng.random() < 0.5:
            told.append(
                _sentence(rng.choice(speech.origin_forms).format(i=self._subjects(fact.inputs)))
            )
        filler: list[str] = []
        while sum(map(len, (*filler, *told, value))) + len(filler) < n_chars - 60:
            filler.append(speech.make_filler(rng))
        n = len(filler)
        place = {"early": rng.randint(0, n // 8), "middle": n // 2, "last": n}.get(
            self._fact_place, rng.randint(0, n)
        )
        sentences = [*filler[:place], value, *filler[place:]]
        for sentence in told:
            sentences.insert(rng.randint(0, len(sentences)), sentence)
        if self._fact_place == "last":
            sentences.append(sentences.pop(sentences.index(value)))
        return replace(fact, hints=hints, text=_paragraphs(sentences, rng))

    def _hint(self, hinted: Fact) -> str:
        forms = self._speech.hint_forms if hinted.inputs else self._speech.bare_hint_forms
        return _sentence(
            self._rng.choice(forms).format(s=self._call(hinted), i=self._subjects(hinted.inputs))
        )

    def _subjects(self, numbers: Sequence[int]) -> str:
        called = [self._call(self._facts[number]) for number in numbers]
        return self._speech.join(called) if numbers else ""

    def _call(self, fact: Fact) -> str:
        """One of the fact's names: the first, or any where the surface uses all."""
        return self._rng.choice(fact.names) if self._speech.uses_all_names else fact.subject


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _paragraphs(sentences: Sequence[str], rng: random.Random) -> str:
    parts: list[str] = []
    for place, sentence in enumerate(sentences):
        parts.append(("\n\n" if rng.random() < 0.15 else " ") if place else "")
        parts.append(sentence)
    return "".join(parts)
