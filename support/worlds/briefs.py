"""Worlds that are briefs: an objective in plain words with three to six parts, each answered by a
calculation over things to be found.

Everything has several wordings, and the objective, the results and the tasks use different ones.
Some of the things are named by the first result, the others by those of things; a part is named,
with what it takes, by the first result.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from support.worlds.generator import Fact, World, write_results
from support.worlds.surfaces import SURFACES, Names, Surface, make_codes
from support.worlds.vocabularies import VOCABULARIES, Vocabulary

MIN_PARTS, MAX_PARTS = 3, 6
MAX_PLACES = 6  # that one part takes
MIN_THINGS, MAX_THINGS = 8, 30
SHARE_WITH_INPUT = 0.25  # of things that cannot be found without another one
SHARE_IN_OUTLINE = 0.5  # of things that the first result names


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What can be found out of each place: its wordings, with `{e}` for the place, and those of the
    sum and of the first of all."""

    unit: str
    names: Names
    total: Names
    greatest: Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """What a brief is about. The objective holds `{parts}`, the value of the outline a number `{n}`
    and a folder `{f}`, that of the first of all the place `{e}` and its value `{v}`."""

    title: str
    objective: str
    outline: Names
    places: tuple[str, ...]
    measures: tuple[Measure, ...]
    filler: tuple[str, ...]
    coded_place: str
    outline_value: str = "{n} entries in folder {f}"
    outline_task: str = "Draw up {s}"
    greatest_value: str = "{e} with {v}"
    narrow_value: str = "{e} with a narrow lead"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thing:
    names: Names
    place: str
    amount: int
    unit: str


def make_brief(
    n_facts: int,
    seed: int,
    *,
    surface: str = "",
    has_codes: bool = False,
    result_chars: int = 600,
    fact_place: str = "any",
) -> World:
    """Return a brief of about so many facts: its parts, the things to find out, and the outline
    that names them.

    Args:
        surface: the name of a vocabulary; any other is told in English.
        has_codes: its places are called by codes.
    """
    told = surface if surface in VOCABULARIES else ""
    rng = random.Random(f"brief {n_facts} {seed} {told} {'codes' if has_codes else ''}".strip())
    theme = _theme_of(VOCABULARIES[told]) if told else THEMES[seed % len(THEMES)]
    if has_codes:
        codes = make_codes(len(theme.places), rng)
        places = tuple(theme.coded_place.format(c=code) for code in codes)
        theme = replace(theme, places=places)
    n_parts = max(MIN_PARTS, min(MAX_PARTS, n_facts // 5))
    n_things = max(MIN_THINGS, min(MAX_THINGS, n_facts - n_parts - 1))
    measures = rng.sample(theme.measures, min(len(theme.measures), -(-n_things // 5)))
    by_measure = [_things_of(measure, theme, rng) for measure in measures]
    while sum(map(len, by_measure)) > n_things:
        max(by_measure, key=len).pop()
    folder = f"{rng.choice('ABCDEFGH')}{rng.randint(100, 999)}"
    facts = [
        Fact(
            number=0,
            names=theme.outline,
            value=theme.outline_value.format(n=n_things, f=folder),
        )
    ]
    hinted: dict[int, list[int]] = {0: []}
    numbers_by_measure = [
        [_add_thing(thing, facts, hinted, rng) for thing in things] for things in by_measure
    ]
    goals = _add_parts(theme, measures, by_measure, numbers_by_measure, n_parts, facts, rng)
    for number in goals:
        hinted[0].append(number)
        hinted[number] = []
    asked = "; ".join(
        f"({'abcdef'[place]}) {facts[number].names[1]}" for place, number in enumerate(goals)
    )
    speech = replace(
        SURFACES[told] if told else BRIEF,
        uses_all_names=False,
        make_filler=lambda chance: chance.choice(theme.filler).format(n=chance.randint(2, 90)),
    )
    return World(
        kind="brief",
        seed=seed,
        surface=speech,
        facts=write_results(
            facts, hinted, speech, rng, result_chars=result_chars, fact_place=fact_place
        ),
        goals=tuple(goals),
        objective=theme.objective.format(parts=asked),
        initial_task=theme.outline_task.format(s=theme.outline[0]),
    )


def _theme_of(vocabulary: Vocabulary) -> Theme:
    same = (
        *("objective", "outline", "places", "filler", "coded_place", "outline_value"),
        *("outline_task", "greatest_value", "narrow_value"),
    )
    measures = tuple(
        Measure(
            unit=unit,
            names=tuple(name.format(m=matter, e="{e}") for name in vocabulary.names),
            total=tuple(name.format(m=matter) for name in vocabulary.total),
            greatest=tuple(name.format(m=matter) for name in vocabulary.greatest),
        )
        for matter, unit in vocabulary.unit_by_matter.items()
    )
    given = {name: getattr(vocabulary, name) for name in same}
    return Theme(title=vocabulary.name, measures=measures, **given)


def _things_of(measure: Measure, theme: Theme, rng: random.Random) -> list[_Thing]:
    places = rng.sample(theme.places, rng.randint(4, min(MAX_PLACES, len(theme.places))))
    return [
        _Thing(
            names=tuple(name.format(e=place) for name in measure.names),
            place=place,
            amount=rng.randint(1_000, 48_999),
            unit=measure.unit,
        )
        for place in places
    ]


def _add_thing(
    thing: _Thing, facts: list[Fact], hinted: dict[int, list[int]], rng: random.Random
) -> int:
    number = len(facts)
    earlier = list(range(1, number))
    inputs = (rng.choice(earlier),) if earlier and rng.random() < SHARE_WITH_INPUT else ()
    namer = (
        inputs[0]
        if inputs
        else 0
        if not earlier or rng.random() < SHARE_IN_OUTLINE
        else rng.choice(earlier)
    )
    facts.append(
        Fact(
            number=number,
            names=thing.names,
            value=f"{thing.amount:,} {thing.unit}",
            wrong_value=f"{thing.amount + rng.randint(11, 900):,} {thing.unit}",
            inputs=inputs,
        )
    )
    hinted[number] = []
    hinted[namer].append(number)
    return number


def _add_parts(
    theme: Theme, measures: Sequence[Measure], by_measure: Sequence[list[_Thing]],
    numbers: Sequence[list[int]], n_parts: int, facts: list[Fact], rng: random.Random,
) -> list[int]:  # fmt: skip
    wanted = [
        (at, is_total)
        for is_total in (True, False)
        for at in range(len(measures))
        if by_measure[at]
    ][:n_parts]
    goals = []
    for at, is_total in wanted:
        things = by_measure[at]
        total, first = (
            sum(thing.amount for thing in things),
            max(things, key=lambda thing: thing.amount),
        )
        value = (
            f"{total:,} {measures[at].unit}"
            if is_total
            else theme.greatest_value.format(e=first.place, v=f"{first.amount:,} {first.unit}")
        )
        wrong = (
            f"{total + rng.randint(101, 999):,} {measures[at].unit}"
            if is_total
            else theme.narrow_value.format(e=rng.choice(things).place)
        )
        names = measures[at].total if is_total else measures[at].greatest
        goals.append(len(facts))
        facts.append(
            Fact(
                number=len(facts),
                names=names,
                value=value,
                wrong_value=wrong,
                inputs=tuple(numbers[at]),
            )
        )
    return goals


BRIEF = Surface(
    name="brief",
    make_names=lambda n, rng: [],
    make_value=lambda names, rng: "",
    make_filler=lambda rng: "",
    value_forms=(
        "We found that {s} is {v}.",
        "As for {s}: {v}.",
        "{s}: {v}, by all that was found.",
        "The figure for {s} is {v}.",
    ),
    hint_forms=(
        "One can say {s} as soon as {i} are known.",
        "For {s} one needs {i}.",
        "With {i} in hand, {s} can be answered.",
    ),
    bare_hint_forms=(
        "It would help to know {s}.",
        "Somebody should ask for {s}.",
        "Not looked at yet: {s}.",
    ),
    origin_forms=("Used for this: {i}.", "This builds on {i}."),
    task_forms=("Find out {s}", "Ask for {s}", "Establish {s}"),
    needing_forms=(
        "Work out {s} (from {i})",
        "Establish {s}, using {i}",
        "Find out {s}; it takes {i}",
    ),
    objective_forms=(),
)

_FERRY = Theme(
    title="ferry",
    objective=(
        "The town council considers taking over the ferry line across the sound. "
        "Please find out {parts}. The answer goes to people who have never seen the line, so say "
        "where each figure comes from."
    ),
    coded_place="pier {c}",
    outline=("the list of what must be asked about the ferry line",
    "the ferry line's open questions", "the inventory of questions on it"),
    places=("Harrow Pier", "Selby Steps", "Marram Quay", "Tolle Landing", "Brine Wharf",
    "Customs Stairs"),
    measures=(
        Measure(
            unit="crowns",
            names=("the fuel bill of {e}", "what {e} spends on fuel", "{e}'s yearly cost of fuel"),
            total=("the fuel cost of the whole line",
            "what all piers together spend on fuel in a year", "the sum of the fuel bills"),
            greatest=("the pier with the highest fuel bill",
            "which pier burns the most money on fuel", "the costliest pier for fuel"),
        ),
        Measure(
            unit="crowns",
            names=("the crew wages at {e}", "what the crew at {e} is paid", "{e}'s wage bill"),
            total=("the wages of the whole line", "what all crews together are paid",
            "the sum of the crew wages"),
            greatest=("the pier with the dearest crew", "which pier pays its crew the most",
            "the highest wage bill of any pier"),
        ),
        Measure(
            unit="tickets",
            names=("the tickets sold at {e}", "how many tickets {e} sells", "{e}'s ticket sales"),
            total=("the ticket sales of the whole line", "how many tickets are sold in all",
            "the sum of the tickets sold"),
            greatest=("the busiest pier by tickets", "which pier sells the most tickets",
            "the best seller of tickets"),
        ),
        Measure(
            unit="people",
            names=("the passengers left behind at {e}", "how many people miss the boat at {e}",
            "{e}'s count of stranded passengers"),
            total=("the passengers left behind on the whole line",
            "how many people miss a boat in all", "the sum of stranded passengers"),
            greatest=("the pier that strands most people", "where most people are left behind",
            "the worst pier for being left behind"),
        ),
        Measure(
            unit="hours",
            names=("the hours of repair at {e}", "how long the boats of {e} lie in repair",
            "{e}'s time in the yard"),
            total=("the repair time of the whole line",
            "how long all boats together lie in repair", "the sum of the hours of repair"),
            greatest=("the pier with the longest repairs",
            "which pier's boats are longest in repair", "the record for time in the yard"),
        ),
        Measure(
            unit="parcels",
            names=("the freight landed at {e}", "how much freight comes ashore at {e}",
            "{e}'s parcels"),
            total=("the freight of the whole line", "how much freight comes ashore in all",
            "the sum of the parcels"),
            greatest=("the chief pier for freight", "where most freight comes ashore",
            "the leading pier in parcels"),
        ),
    ),
    filler=(
        "The boats were built in the same yard and have been repainted {n} times.",
        "A retired captain showed us his logbooks, of which {n} pages are legible.",
        "In fog the line stops; this happened on {n} days, more often than in the years before.",
        "The timetable hangs behind glass and nobody could say who wrote it.",
        "Gulls nest under the planks, and the harbour office has received {n} letters about them.",
        "Some of the ropes are older than the men who handle them.",
        "The tide tables for the sound are printed by a firm in the next county.",
    ),
)  # fmt: skip

_ORCHARD = Theme(
    title="orchards",
    objective=(
        "Our cooperative wants to know whether the six orchards should press their own cider. "
        "Please find out {parts}. Members will vote on it, so keep to what was really found out."
    ),
    coded_place="orchard {c}",
    outline=("the list of questions on the orchards", "the cooperative's catalogue of questions",
    "the questions that the orchards raise"),
    places=("Amberley", "Pippin Hill", "Costard Lane", "Rennet Farm", "Codlin Field",
    "Quince Hollow"),
    measures=(
        Measure(
            unit="baskets",
            names=("the apple harvest of {e}", "how many apples {e} brings in", "{e}'s crop"),
            total=("the apple harvest of all orchards",
            "how many apples there are to press in all", "the sum of the crops"),
            greatest=("the orchard with the largest harvest",
            "which orchard brings in the most apples", "the heaviest crop"),
        ),
        Measure(
            unit="shillings",
            names=("the pickers' pay at {e}", "what {e} pays its pickers",
            "{e}'s outlay for picking"),
            total=("the pickers' pay of all orchards", "what picking costs all of them together",
            "the sum of the outlays for picking"),
            greatest=("the orchard with the dearest pickers",
            "which orchard pays most for picking", "the greatest outlay for picking"),
        ),
        Measure(
            unit="trees",
            names=("the old trees of {e}", "how many trees at {e} are past bearing",
            "{e}'s spent trees"),
            total=("the old trees of all orchards", "how many trees are past bearing in all",
            "the sum of the spent trees"),
            greatest=("the orchard with most old trees", "where most trees are past bearing",
            "the most aged orchard"),
        ),
        Measure(
            unit="gallons",
            names=("the juice from a test pressing at {e}",
            "how much juice {e} pressed in the trial", "{e}'s trial juice"),
            total=("the juice of all test pressings", "how much juice was pressed in all trials",
            "the sum of the trial juice"),
            greatest=("the best test pressing",
            "which orchard pressed the most juice in its trial", "the juiciest trial"),
        ),
        Measure(
            unit="barrels",
            names=("the cellar room at {e}", "how many barrels the cellar of {e} takes",
            "{e}'s storage"),
            total=("the cellar room of all orchards", "how many barrels could be stored in all",
            "the sum of the storage"),
            greatest=("the roomiest cellar", "whose cellar takes the most barrels",
            "the largest storage of all"),
        ),
        Measure(
            unit="buyers",
            names=("the standing orders of {e}", "how many buyers {e} can count on",
            "{e}'s faithful customers"),
            total=("the standing orders of all orchards",
            "how many buyers can be counted on in all", "the sum of faithful customers"),
            greatest=("the orchard with most standing orders",
            "which orchard can count on most buyers", "the longest list of customers"),
        ),
    ),
    filler=(
        "Wasps were a nuisance in {n} of the rows, less so near the beehives.",
        "The ladders are kept in a shed whose door sticks in wet weather.",
        "Blossom came late, and {n} nights of frost were written down.",
        "One member still grafts by hand and keeps his knives in oiled cloth.",
        "The soil was dug over to a depth of {n} inches before the last planting.",
        "Geese graze under the trees and keep the grass short.",
        "Nobody agrees on how the names of the older sorts are spelt.",
    ),
)  # fmt: skip

_ARCHIVE = Theme(
    title="archive",
    objective=(
        "The archive moves into one building, and the movers must be told what awaits them. "
        "Please find out {parts}. A page is enough, but each number in it must be right."
    ),
    coded_place="room {c}",
    outline=("the movers' questionnaire", "the questionnaire for the move",
    "the sheet of questions that the movers left"),
    places=("the Map Room", "the East Annex", "the Deed Vault", "the Reading Hall",
    "the Attic Store", "the Print Cellar"),
    measures=(
        Measure(
            unit="crates",
            names=("the crates needed for {e}", "how many crates {e} fills", "the boxing of {e}"),
            total=("the crates needed in all", "how many crates the whole move fills",
            "the boxing of every room together"),
            greatest=("the room with most crates", "which room fills the most crates",
            "the hungriest room for crates"),
        ),
        Measure(
            unit="kilograms",
            names=("the weight of {e}", "how heavy the holdings of {e} are",
            "the load that {e} makes"),
            total=("the weight of the whole archive", "how heavy all holdings are together",
            "the load that the lorries carry in all"),
            greatest=("the heaviest room", "which room's holdings weigh most",
            "the greatest load of any room"),
        ),
        Measure(
            unit="volumes",
            names=("the damaged volumes in {e}", "how many bindings in {e} are torn",
            "the casualties of {e}"),
            total=("the damaged volumes of the archive", "how many bindings are torn in all",
            "the casualties of every room together"),
            greatest=("the room in the worst state", "where most bindings are torn",
            "the longest list of casualties"),
        ),
        Measure(
            unit="metres",
            names=("the shelving in {e}", "how long the shelves of {e} are",
            "the run of shelf in {e}"),
            total=("the shelving of the archive", "how long all shelves are end to end",
            "the run of shelf of every room together"),
            greatest=("the room with the longest shelves", "which room has most shelving",
            "the longest run of shelf"),
        ),
        Measure(
            unit="hours",
            names=("the packing time of {e}", "how long it takes to pack {e}",
            "the hours that {e} keeps the packers"),
            total=("the packing time of the archive", "how long packing takes in all",
            "the hours of every room together"),
            greatest=("the slowest room to pack", "which room keeps the packers longest",
            "the record in packing hours"),
        ),
        Measure(
            unit="items",
            names=("the uncatalogued items in {e}", "how much in {e} is in no catalogue",
            "the strays of {e}"),
            total=("the uncatalogued items of the archive", "how much is in no catalogue in all",
            "the strays of every room together"),
            greatest=("the room with most uncatalogued items", "where most is in no catalogue",
            "the champion of strays"),
        ),
    ),
    filler=(
        "Dust sheets were hung in {n} bays while the ceiling was painted.",
        "The lift is out of order on most afternoons.",
        "A note from a former keeper asks that no window be opened before noon.",
        "Humidity was read {n} times and stayed where it should be.",
        "The keys hang on {n} hooks, two of which carry no label.",
        "Readers are asked to use pencils, and mostly they do.",
        "The cat belongs to the porter and knows every corridor.",
    ),
)  # fmt: skip

THEMES = (_FERRY, _ORCHARD, _ARCHIVE)
