"""The words that a world is told in: what its things are called, and how results speak of them.

No two surfaces share their vocabulary, so that a search that is tuned on one is seen to work, or not, on another. `lab` is held out: no
setting, threshold or prompt may be chosen by what happens on it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Names = tuple[str, ...]
"""What one thing is called; the first is what results call it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """A way of speaking.

    `make_names` gives so many things their names, near-equal ones among them; `make_value` an unguessable value for the thing with these
    names. In the forms `{s}` is a subject, `{v}` its value, `{i}` a list of subjects that it needs. A task's name asks for the first
    subject that it holds.
    """

    name: str
    make_names: Callable[[int, random.Random], list[Names]]
    make_value: Callable[[Names, random.Random], str]
    make_filler: Callable[[random.Random], str]
    value_forms: tuple[str, ...]
    hint_forms: tuple[str, ...]
    origin_forms: tuple[str, ...]
    task_forms: tuple[str, ...]
    needing_forms: tuple[str, ...]
    objective_forms: tuple[str, ...]
    bare_hint_forms: tuple[str, ...] = ()  # of what needs nothing
    is_held_out: bool = False


def join_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _fill(forms: Sequence[str], word_lists: dict[str, Sequence[str]], rng: random.Random) -> str:
    words = {key: rng.choice(words) for key, words in word_lists.items()}
    text = rng.choice(forms).format(**words, n=rng.randint(2, 60))
    return text[0].upper() + text[1:]


# -- codes --------------------------------------------------------------------------------------------------------------------


def _code_names(n: int, rng: random.Random) -> list[Names]:
    """Codes such as K-117; many have a twin with two digits in another order, or with another letter."""
    found: dict[str, None] = {}
    while len(found) < n:
        letter, digits = rng.choice("KRTHM"), str(rng.randint(100, 999))
        twin = digits[0] + digits[2] + digits[1]
        for code in (f"{letter}-{digits}", f"{letter}-{twin}", f"{rng.choice('KRTHM')}-{digits}")[: rng.choice((1, 2, 2, 3))]:
            found.setdefault(code)
    codes = list(found)[:n]
    rng.shuffle(codes)
    return [(code,) for code in codes]


def _code_value(names: Names, rng: random.Random) -> str:
    return f"{rng.randint(1000, 9999)}-{''.join(rng.choice('ABCDEFGHJLNPQSUVWXYZ') for _ in range(2))}"


def _code_filler(rng: random.Random) -> str:
    return _fill(
        (
            "the {adjective} register lists {n} {noun}s under the {adjective} heading",
            "an auditor {verb} the {noun} and left the {adjective} column as it was",
            "no {noun} was {verb} after the {adjective} revision",
            "page {n} holds the {adjective} {noun} and a {adjective} stamp",
            "the clerk {verb} {n} {noun}s before the {adjective} ledger was closed",
            "each {noun} carries the {adjective} mark of the office that {verb} it",
        ),
        {
            "adjective": "binding quarterly archived provisional sealed countersigned printed indexed annual internal blank".split(),
            "noun": "docket folio voucher index ledger stamp file binder receipt annex schedule form".split(),
            "verb": "checked filed renumbered copied initialled returned sorted microfilmed bound released".split(),
        },
        rng,
    ) + "."  # fmt: skip


CODES = Surface(
    name="codes",
    make_names=_code_names,
    make_value=_code_value,
    make_filler=_code_filler,
    value_forms=("{s} = {v}.", "{s} is {v}.", "The register gives {v} for {s}.", "Entry {s} reads {v}."),
    hint_forms=(
        "Next in reach is {s}, which needs {i}.",
        "Entry {s} can be read with {i}.",
        "Whoever has {i} can open {s}.",
        "{s} depends on {i}.",
    ),
    origin_forms=("This was opened with {i}.", "It follows from {i}."),
    task_forms=("Find {s}", "Look up {s}", "Establish the value of {s}", "Open entry {s}"),
    needing_forms=(
        "Find {s} (needs {i})",
        "Look up {s} with {i}",
        "Establish the value of {s} from {i}",
        "Open entry {s}, which depends on {i}",
    ),
    objective_forms=("Find out the value of {s} in the register.", "We need the register's entry {s}: establish its value."),
)


# -- places -------------------------------------------------------------------------------------------------------------------

_PLACE_HEADS = (
    "Carr Hedd Marn Orl Tams Will Brack Fenn Lorr Ost Pell Quarr Rud Sell Thorn Ull Varr Wend Yarr Astl Dunn Ebb Garr Holl".split()
)
_PLACE_TAILS = "ow el by en ick ham ster mere combe wick field gate moor stead ley holt".split()
_PLACE_KINDS = ("Vale", "Bridge", "Well", "Cross", "Green", "Point", "Hollow", "Heath", "", "", "", "")
_PROPERTIES = {
    "slope yield": "bushels", "well depth": "feet", "mill rent": "crowns", "orchard area": "acres", "quarry output": "cartloads",
    "meadow hay": "bales", "tower height": "feet", "granary stock": "sacks", "ferry takings": "crowns", "sheep count": "head",
}  # fmt: skip
_SIDES = ("north", "south", "upper", "lower", "old", "new", "eastern", "western")


def _place_names(n: int, rng: random.Random) -> list[Names]:
    found: dict[Names, None] = {}
    while len(found) < n:
        place = f"{rng.choice(_PLACE_HEADS)}{rng.choice(_PLACE_TAILS)} {rng.choice(_PLACE_KINDS)}".strip()
        thing, at = rng.choice(list(_PROPERTIES)), rng.randrange(0, len(_SIDES), 2)
        for side in _SIDES[at : at + rng.choice((1, 2, 2))]:
            found.setdefault((f"{side} {thing} of {place}", f"{place}'s {side} {thing}", f"{side} {thing} at {place}"))
    names = list(found)[:n]
    rng.shuffle(names)
    return names


def _place_value(names: Names, rng: random.Random) -> str:
    unit = next(unit for thing, unit in _PROPERTIES.items() if thing in names[0])
    return f"{rng.randint(1_000, 98_999):,} {unit}"


def _place_filler(rng: random.Random) -> str:
    return _fill(
        (
            "{season} rain {verb} the lanes, and the {people} spoke of little else",
            "the {people} keep their {thing} beside the church, as they did in {season}",
            "old maps show a {thing} there which nobody has {verb} since",
            "travellers praise the {thing} and complain about the {people}",
            "in {season} the {people} {verb} the hedges and mended the {thing}",
            "a traveller {verb} the {thing} one evening and slept at the inn",
        ),
        {
            "season": ("spring", "autumn", "winter", "early summer", "harvest time", "lent"),
            "people": "shepherds millers villagers farmers tenants parsons innkeepers drovers bargemen weavers".split(),
            "thing": "cart barn footpath stile chapel market fence weir lantern dovecote smithy pond".split(),
            "verb": "flooded cleared painted visited repaired trampled sketched crossed admired".split(),
        },
        rng,
    ) + "."  # fmt: skip


PLACES = Surface(
    name="places",
    make_names=_place_names,
    make_value=_place_value,
    make_filler=_place_filler,
    value_forms=(
        "The {s} comes to {v}.",
        "For the {s} the surveyors wrote down {v}.",
        "At the last count the {s} was {v}.",
        "They reckon {v} as the {s}.",
    ),
    hint_forms=(
        "Given {i}, one can work out the {s}.",
        "To go on to the {s} one must know {i}.",
        "The {s} may be reckoned as soon as {i} are in hand.",
        "Another thing to ask about is the {s}, for which {i} must be known.",
    ),
    origin_forms=("This was reckoned with {i}.", "It rests on {i}."),
    task_forms=("Find out the {s}", "Ask how large the {s} is", "What is the {s}?", "Work out the {s}"),
    needing_forms=(
        "Find out the {s} (it takes {i})",
        "Work out the {s}, given {i}",
        "Ask how large the {s} is, knowing {i}",
        "What is the {s}, if one knows {i}?",
    ),
    objective_forms=("Tell us the {s}, as exactly as it is known.", "We would like to buy land there and must know the {s}."),
)


# -- lab, held out ------------------------------------------------------------------------------------------------------------

_GENERA = "Aconitum Salvia Verbena Artemisia Digitalis Papaver Arnica Lactuca Thymus Viola Rumex Gentiana Cicuta Nepeta".split()
_EPITHETS = "alba alta ferrox minor maior nigra rubra montana lutea palustris tenebrosa hirsuta glauca arvensis".split()
_BUFFERS = "Weißbach Grünwald Hölder Lindqvist Özgür Kästner Nußbaum Jäger Möller Brückner".split()
_ASSAYS = {"titer": "mg/l", "absorbance": "AU", "Restfeuchte": "%", "eluate mass": "µg", "Schmelzpunkt": "°C", "conductivity": "µS/cm"}


def _lab_names(n: int, rng: random.Random) -> list[Names]:
    found: dict[Names, None] = {}
    while len(found) < n:
        plant, assay, buffer = f"{rng.choice(_GENERA)} {rng.choice(_EPITHETS)}", rng.choice(list(_ASSAYS)), rng.choice(_BUFFERS)
        for fraction in ("alpha", "beta", "gamma")[: rng.choice((1, 2, 2, 3))]:
            sample = f"{plant} fraction {fraction} in Puffer {buffer}"
            found.setdefault((f"{assay} of {sample}", f"{sample}: {assay}", f"{assay} for {sample}"))
    names = list(found)[:n]
    rng.shuffle(names)
    return names


def _lab_value(names: Names, rng: random.Random) -> str:
    unit = next(unit for assay, unit in _ASSAYS.items() if names[0].startswith(assay))
    return f"{rng.randint(1, 9_999) / 10:.1f}{rng.randint(11, 99)} {unit}"


def _lab_filler(rng: random.Random) -> str:
    return _fill(
        (
            "the {glass} was rinsed {n} times with {liquid} and dried under argon",
            "centrifugation for {n} min gave a {look} pellet in the {glass}",
            "a {look} precipitate formed when {liquid} was added dropwise",
            "run {n} was discarded because the {glass} had cracked",
            "the supernatant stayed {look}; {liquid} did not change that",
            "aliquots were kept in a {glass} at {n} K until the assay",
        ),
        {
            "glass": "Erlenmeyer crucible pipette cuvette beaker desiccator ampoule retort burette vial".split(),
            "liquid": "ethanol acetone hexane toluene water methanol ether saline".split(),
            "look": "turbid colourless violet greenish gelatinous amber opaque clear".split(),
        },
        rng,
    ) + "."  # fmt: skip


LAB = Surface(
    name="lab",
    make_names=_lab_names,
    make_value=_lab_value,
    make_filler=_lab_filler,
    value_forms=("{s}: {v}.", "We obtained {v} for the {s}.", "The {s} settled at {v} after washing.", "Measured {s}: {v} (n = 3)."),
    hint_forms=(
        "The {s} should be run next, calibrated against {i}.",
        "Protocol for {s}: requires {i}.",
        "Once {i} have been measured, proceed with {s}.",
    ),
    origin_forms=("Calibrated against {i}.", "Normalised to {i}."),
    task_forms=("Measure the {s}", "Run the assay: {s}", "Quantify {s}"),
    needing_forms=("Measure the {s}, calibrated against {i}", "Run the assay: {s} (requires {i})", "Quantify {s} normalised to {i}"),
    objective_forms=("Report the {s} for the dossier.", "The reviewer demands the {s}. Obtain it."),
    is_held_out=True,
)

SURFACES = {surface.name: surface for surface in (CODES, PLACES, LAB)}
