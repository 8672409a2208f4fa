"""Five further kinds of world, each hard in a way of its own: a thing has five names, sources
contradict each other, most leads are dead ends, dates and prices build on one another, and many
small pieces must all be done.

`trip` is held out: no setting, threshold or prompt may be chosen by what happens in it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import pairwise

from support.worlds.generator import Fact, World, write_results
from support.worlds.surfaces import Names, Surface

GROUP = 3  # siblings, or sources, that one figure takes
N_LEADS = 6  # that each step of a hunt opens, one of which leads on


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A world that is being made: its facts, which of them the result of each names, and what is
    asked."""

    kind: str
    seed: int
    rng: random.Random
    facts: list[Fact] = field(default_factory=list)
    hinted: dict[int, list[int]] = field(default_factory=dict)

    def add(
        self,
        names: Names,
        value: str,
        *,
        wrong: str = "",
        inputs: Sequence[int] = (),
        named_by: int | None = None,
        is_distractor: bool = False,
    ) -> int:
        """Add a fact, which the result of the fact `named_by` names as next; return its number."""
        number = len(self.facts)
        self.facts.append(
            Fact(
                number=number,
                names=names,
                value=value,
                wrong_value=wrong,
                inputs=tuple(inputs),
                is_distractor=is_distractor,
            )
        )
        self.hinted[number] = []
        if named_by is not None:
            self.hinted[named_by].append(number)
        return number

    def finish(
        self,
        speech: Surface,
        *,
        goals: Sequence[int],
        objective: str,
        initial_task: str,
        result_chars: int,
        fact_place: str,
    ) -> World:
        facts = write_results(
            self.facts,
            self.hinted,
            speech,
            self.rng,
            result_chars=result_chars,
            fact_place=fact_place,
        )
        return World(
            kind=self.kind,
            seed=self.seed,
            surface=speech,
            facts=facts,
            goals=tuple(goals),
            objective=objective,
            initial_task=initial_task,
        )


def make_further(
    kind: str, n_facts: int, seed: int, *, result_chars: int, fact_place: str
) -> World:
    """Return the world of this kind, with about so many facts that are needed."""
    draft = _Draft(kind=kind, seed=seed, rng=random.Random(f"{kind} {n_facts} {seed}"))
    makers: dict[str, Callable[..., World]] = {
        "siblings": _make_siblings,
        "contradiction": _make_contradiction,
        "hunt": _make_hunt,
        "trip": _make_trip,
        "pieces": _make_pieces,
    }
    return makers[kind](draft, n_facts, result_chars=result_chars, fact_place=fact_place)


def _filler(*sentences: str) -> Callable[[random.Random], str]:
    return lambda rng: rng.choice(sentences).format(n=rng.randint(2, 90))


_PLAIN = Surface(
    name="further",
    make_names=lambda n, rng: [],
    make_value=lambda names, rng: "",
    make_filler=lambda rng: "",
    value_forms=("{s}: {v}.", "What was found for {s} is {v}.", "{s} comes to {v}."),
    hint_forms=(
        "{s} can be worked out from {i}.",
        "For {s} one takes {i}.",
        "Once {i} are known, {s} follows.",
    ),
    bare_hint_forms=("Still to do: {s}.", "To be looked at: {s}.", "On the list: {s}."),
    origin_forms=("Used here: {i}.",),
    task_forms=("Find out {s}", "Look into {s}", "Establish {s}"),
    needing_forms=("Work out {s} from {i}", "Establish {s}, using {i}", "Find out {s}; takes {i}"),
    objective_forms=(),
)


# -- one thing, five names
# --------------------------------------------------------------------------------------------------

_HEADS = (
    "tally count figure ledger quota score reading index total gauge sum mark rate level grade "
    "column line entry measure docket"
).split()
_OF = (
    "harbour quay orchard winter north amber copper Reed Falk Osei Brandt Lund Marsh Tove kappa "
    "omega sigma blue crimson granite cedar walnut lantern anchor bramble falcon heron otter "
    "thistle juniper saffron cobalt ivory slate maple willow raven badger"
).split()


def _make_siblings(draft: _Draft, n_facts: int, *, result_chars: int, fact_place: str) -> World:
    rng = draft.rng
    pairs = [f"the {of} {head}" for of in _OF for head in _HEADS]
    rng.shuffle(pairs)

    def names() -> Names:
        return tuple(pairs.pop() for _ in range(5))

    root = draft.add(
        ("a to-do list for the dossier", "the dossier's to-do list"), f"list {rng.randint(10, 99)}"
    )
    figures = []
    for _ in range(max(2, (n_facts - 2) // (GROUP + 1))):
        given = [
            draft.add(names(), f"{rng.randint(1000, 9999)} points", named_by=root)
            for _ in range(GROUP)
        ]
        figures.append(
            draft.add(
                names(), f"{rng.randint(10_000, 99_999)} points", inputs=given, named_by=given[0]
            )
        )
    goal = draft.add(
        ("the dossier's final verdict", "how the dossier ends"),
        f"{rng.choice(('buy', 'sell', 'wait'))} at {rng.randint(100_000, 999_999)} points",
        inputs=figures,
        named_by=figures[0],
    )
    draft.hinted[root].append(goal)
    speech = replace(
        _PLAIN,
        uses_all_names=True,
        make_filler=_filler(
            "The binder was moved to shelf {n} in spring.",
            "Page {n} is blank on purpose.",
            "Two people initialled the cover sheet.",
            "The archive closes early on Fridays.",
        ),
    )
    return draft.finish(
        speech,
        goals=[goal],
        objective="Work through the dossier and give me the dossier's final verdict.",
        initial_task="Make a to-do list for the dossier",
        result_chars=result_chars,
        fact_place=fact_place,
    )


# -- sources that contradict each other
# --------------------------------------------------------------------------------------------------

_SOURCES = (
    "parish register", "mason's daybook", "tax roll", "surveyor's sketch", "abbey chronicle",
    "bishop's letter",
)  # fmt: skip
_QUANTITIES = (
    ("height", "ells"), ("width", "ells"), ("cost", "florins"), ("weight", "stones"),
    ("age", "years"), ("length", "rods"),
)  # fmt: skip
_BUILDINGS = (
    "Orrin Bridge", "Saint Bride's tower", "the Weir Gate", "the old granary", "Holm Chapel",
    "the lower mill", "Tarn House", "the salt store", "Ferry Cross", "the corn hall",
)  # fmt: skip


def _make_contradiction(
    draft: _Draft, n_facts: int, *, result_chars: int, fact_place: str
) -> World:
    rng = draft.rng
    wanted = [(what, of) for what in _QUANTITIES for of in _BUILDINGS]
    rng.shuffle(wanted)
    root = draft.add(
        ("the plan for the inventory", "how to draw up the inventory"),
        f"plan {rng.randint(10, 99)}",
    )
    goals = []
    for (quantity, unit), building in wanted[: max(2, (n_facts - 1) // (GROUP + 1))]:
        true = rng.randint(20, 900)
        told = [true, true, true + rng.randint(1, 90)]
        rng.shuffle(told)
        readings = [
            draft.add(
                (
                    f"the {quantity} of {building} in the {source}",
                    f"what the {source} says on the {quantity} of {building}",
                ),
                f"{amount} {unit}",
                named_by=root,
            )
            for source, amount in zip(rng.sample(_SOURCES, GROUP), told, strict=True)
        ]
        goals.append(
            draft.add(
                (
                    f"the settled {quantity} of {building}",
                    f"which {quantity} of {building} is right",
                ),
                f"{true} {unit}, on two voices against one",
                wrong=f"{true + 1} {unit}, by mere guess",
                inputs=readings,
                named_by=root,
            )
        )
    asked = "; ".join(draft.facts[number].names[1] for number in goals)
    speech = replace(
        _PLAIN,
        make_filler=_filler(
            "The ink has faded on leaf {n}.",
            "A later hand struck {n} lines out.",
            "The binding is calf, with {n} worm holes.",
        ),
    )
    return draft.finish(
        speech,
        goals=goals,
        objective=f"Old sources contradict each other. Settle for me {asked}.",
        initial_task="Write the plan for the inventory",
        result_chars=result_chars,
        fact_place=fact_place,
    )


# -- a hunt in which most leads are dead ends
# --------------------------------------------------------------------------------------------------

_PARTS = (
    "cache queue router parser scheduler session upload billing mail search gateway worker "
    "replica proxy token export import metrics sandbox audit"
).split()
_TROUBLES = (
    "clock drift", "stale locks", "open sockets", "retry storms", "heap growth", "slow queries",
    "torn writes", "lost wakeups", "bad headers", "expired keys",
)  # fmt: skip


_DEAD_END = "I went through all of it and found nothing unusual, so it can be ruled out."


def _make_hunt(draft: _Draft, n_facts: int, *, result_chars: int, fact_place: str) -> World:
    rng = draft.rng
    suspects = [(part, trouble) for part in _PARTS for trouble in _TROUBLES]
    rng.shuffle(suspects)

    def lead(named_by: int, given: Sequence[int], *, is_dead: bool) -> int:
        part, trouble = suspects.pop()
        names = (f"{trouble} in the {part}", f"whether the {part} suffers from {trouble}")
        value = "nothing unusual" if is_dead else f"confirmed, trace {rng.randint(1000, 9999)}"
        return draft.add(names, value, inputs=given, named_by=named_by, is_distractor=is_dead)

    here = draft.add(
        ("where the nightly crash could come from", "the leads on the nightly crash"),
        f"build {rng.randint(100, 999)} crashes",
    )
    for _ in range(max(2, n_facts - 2)):
        right, opened = rng.randrange(N_LEADS), here
        leads = [lead(opened, (opened,), is_dead=place != right) for place in range(N_LEADS)]
        here = leads[right]
    goal = draft.add(
        ("the root cause of the nightly crash", "what makes it crash every night"),
        f"commit {rng.randint(10**6, 10**7)} dropped a lock",
        inputs=(here,),
        named_by=here,
    )
    speech = replace(
        _PLAIN,
        make_filler=_filler("Read {n} log files.", "The dashboard was green.", "Ran it {n} times."),
        value_forms=("Checked {s}: {v}.", "{s}: {v}.", "Looked at {s}, result: {v}."),
        hint_forms=("Next suspect: {s}, seen from {i}.", "{i} may point at {s}."),
        task_forms=("Check {s}", "Investigate {s}", "Rule out {s}"),
        needing_forms=("Check {s} (after {i})", "Investigate {s}, given {i}"),
    )
    world = draft.finish(
        speech,
        goals=[goal],
        objective="Our service crashes every night. Find the root cause of the nightly crash.",
        initial_task="List where the nightly crash could come from",
        result_chars=min(result_chars or 200, 200),
        fact_place=fact_place,
    )
    # all dead ends are told in the same words, which do not say what was looked at
    facts = [
        replace(one, text=_DEAD_END, value=_DEAD_END) if one.is_distractor else one
        for one in world.facts
    ]
    return replace(world, facts=tuple(facts))


# -- dates, prices and sums
# --------------------------------------------------------------------------------------------------

_CITIES = (
    "Lyon", "Turin", "Genoa", "Pisa", "Siena", "Bologna", "Verona", "Trento", "Innsbruck", "Linz",
    "Brno", "Dresden", "Leipzig", "Kassel",
)  # fmt: skip


def _make_trip(draft: _Draft, n_facts: int, *, result_chars: int, fact_place: str) -> World:
    rng = draft.rng
    n_legs = max(2, min(len(_CITIES) - 1, (n_facts - 3) // 3))
    stops = rng.sample(_CITIES, n_legs + 1)
    day = date(2027, rng.randint(1, 12), rng.randint(1, 28))
    here = root = draft.add(
        ("the outline of the journey", "how the journey runs"), f"leaving {day:%A %d %B %Y}"
    )
    prices, cents = [], 0
    for start, end in pairwise(stops):
        day += timedelta(days=rng.randint(1, 4))
        arrival = draft.add(
            (f"the day of arrival in {end}", f"when we reach {end}"),
            f"{day:%A %d %B %Y}",
            inputs=(here,),
            named_by=here,
        )
        for names in (
            (f"the fare from {start} to {end}", f"what the train {start} to {end} costs"),
            (f"the price of the hotel in {end}", f"what a night in {end} costs"),
        ):
            price = rng.choice((4900, 6900, 8900, rng.randint(3000, 19_999)))
            cents += price
            value = f"€{price // 100}.{price % 100:02}"
            prices.append(draft.add(names, value, inputs=(arrival,), named_by=arrival))
        here = arrival
    total = draft.add(
        ("the total price of the journey", "what it all costs together"),
        f"€{cents // 100:,}.{cents % 100:02} in all",
        inputs=prices,
        named_by=root,
    )
    speech = replace(
        _PLAIN,
        make_filler=_filler(
            "Seats are free in car {n}.", "Dogs travel at half price.", "Platform {n}, as a rule."
        ),
    )
    return draft.finish(
        speech,
        goals=[here, total],
        objective=(
            f"Plan a journey by train from {stops[0]} to {stops[-1]}: tell me when we reach "
            f"{stops[-1]} and the total price of the journey."
        ),
        initial_task="Draw up the outline of the journey",
        result_chars=result_chars,
        fact_place=fact_place,
    )


# -- many small pieces
# --------------------------------------------------------------------------------------------------

_SYLLABLES = "ka lo mi ren tas vu shel dor pim qua zet bri nol fay gur hes".split()


def _make_pieces(draft: _Draft, n_facts: int, *, result_chars: int, fact_place: str) -> World:
    rng = draft.rng
    root = draft.add(("a to-do list", "the list of lines"), f"{n_facts - 2} lines in all")

    def words(n: int) -> str:
        return " ".join("".join(rng.choices(_SYLLABLES, k=rng.randint(1, 3))) for _ in range(n))

    lines = [
        draft.add(
            (f"line {number} of the ballad", f"the ballad's line {number}"),
            f"“{words(5)}”",
            named_by=root,
        )
        for number in range(1, max(3, n_facts - 1))
    ]
    count = draft.add(
        ("the number of syllables of the whole ballad", "how many syllables the ballad has"),
        f"{rng.randint(200, 999)} syllables",
        inputs=lines,
        named_by=root,
    )
    speech = replace(
        _PLAIN,
        make_filler=_filler("The dialect is northern.", "Two copies agree."),
        value_forms=("{s} reads {v}.", "{s}: {v}.", "In translation {s} is {v}."),
        task_forms=("Translate {s}", "Give {s} in translation"),
        needing_forms=("Count {s} from {i}", "Work out {s}, given {i}"),
    )
    return draft.finish(
        speech,
        goals=[*lines, count],
        objective=(
            f"Translate the ballad, each of its {len(lines)} lines, and say how many syllables "
            "the ballad has."
        ),
        initial_task="Make a to-do list",
        result_chars=min(result_chars or 120, 120),
        fact_place=fact_place,
    )
