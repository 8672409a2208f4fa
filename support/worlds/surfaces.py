"""The words that a world is told in: what its things are called, and how results speak of them.

No two surfaces share their vocabulary, so that a search that is tuned on one is seen to work, or
not, on another. `post` is held out, and so are those whose names end in `-2`: no setting, threshold
or prompt may be chosen by what happens on them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from support.worlds.vocabularies import VOCABULARIES, Vocabulary

Names = tuple[str, ...]
"""What one thing is called; the first is what results call it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """A way of speaking.

    `make_names` gives so many things their names, near-equal ones among them; `make_value` an
    unguessable value for the thing with these names. In the forms `{s}` is a subject, `{v}` its
    value, `{i}` a list of subjects that it needs. A task's name asks for the first subject that it
    holds.
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
    uses_all_names: bool = False  # results call a thing by any of its names
    # how a lack is said, with `{m}` for what is missing, and the words that give it away; English
    # where there are none
    lack_forms: tuple[str, ...] = ()
    lack_signs: tuple[str, ...] = ()
    joint: str = ", "
    last_joint: str = " and "

    def join(self, words: Sequence[str]) -> str:
        return join_words(words, joint=self.joint, last_joint=self.last_joint)

    def __reduce__(self) -> tuple[Callable[[str], Surface], tuple[str]]:
        """A surface goes to another process as its name, and is silent there."""
        return _silent, (self.name,)


def join_words(words: Sequence[str], *, joint: str = ", ", last_joint: str = " and ") -> str:
    return words[0] if len(words) == 1 else f"{joint.join(words[:-1])}{last_joint}{words[-1]}"


def _silent(name: str) -> Surface:
    forms: dict[str, Any] = dict.fromkeys(_FORMS, ())
    return Surface(
        name=name,
        make_names=lambda n, rng: [],
        make_value=lambda names, rng: "",
        make_filler=lambda rng: "",
        **forms,
    )


_FORMS = (
    "value_forms", "hint_forms", "origin_forms", "task_forms", "needing_forms", "objective_forms",
)  # fmt: skip


def _fill(
    forms: Sequence[str], word_lists: Mapping[str, Sequence[object]], rng: random.Random
) -> str:
    text = _compose(forms, word_lists, rng)
    return text[0].upper() + text[1:]


def _compose(
    forms: Sequence[str], word_lists: Mapping[str, Sequence[object]], rng: random.Random
) -> str:
    words = {key: rng.choice(words) for key, words in word_lists.items()}
    return rng.choice(forms).format(**words, n=rng.randint(2, 60))


# -- codes
# --------------------------------------------------------------------------------------------------


def make_codes(n: int, rng: random.Random) -> list[str]:
    """Codes such as K-117; many have a twin with two digits in another order, or with another
    letter."""
    found: dict[str, None] = {}
    while len(found) < n:
        letter, digits = rng.choice("KRTHM"), str(rng.randint(100, 999))
        twin = digits[0] + digits[2] + digits[1]
        for code in (f"{letter}-{digits}", f"{letter}-{twin}", f"{rng.choice('KRTHM')}-{digits}")[
            : rng.choice((1, 2, 2, 3))
        ]:
            found.setdefault(code)
    codes = list(found)[:n]
    rng.shuffle(codes)
    return codes


def _code_value(names: Names, rng: random.Random) -> str:
    return (
        f"{rng.randint(1000, 9999)}-{''.join(rng.choice('ABCDEFGHJLNPQSUVWXYZ') for _ in range(2))}"
    )


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
            "adjective": ("binding quarterly archived provisional sealed countersigned printed indexed "
"annual internal blank").split(),
            "noun": ("docket folio voucher index ledger stamp file binder receipt annex schedule "
"form").split(),
            "verb": ("checked filed renumbered copied initialled returned sorted microfilmed "
"bound released").split(),
        },
        rng,
    ) + "."  # fmt: skip


CODES = Surface(
    name="codes",
    make_names=lambda n, rng: [(code,) for code in make_codes(n, rng)],
    make_value=_code_value,
    make_filler=_code_filler,
    value_forms=(
        "{s} = {v}.",
        "{s} is {v}.",
        "The register gives {v} for {s}.",
        "Entry {s} reads {v}.",
    ),
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
    objective_forms=(
        "Find out the value of {s} in the register.",
        "We need the register's entry {s}: establish its value.",
    ),
)


# -- places
# --------------------------------------------------------------------------------------------------

_PLACE_HEADS = (
    "Carr Hedd Marn Orl Tams Will Brack Fenn Lorr Ost Pell Quarr Rud Sell Thorn Ull Varr "
    "Wend Yarr Astl Dunn Ebb Garr Holl"
).split()
_PLACE_TAILS = "ow el by en ick ham ster mere combe wick field gate moor stead ley holt".split()
_PLACE_KINDS = (
    "Vale",
    "Bridge",
    "Well",
    "Cross",
    "Green",
    "Point",
    "Hollow",
    "Heath",
    "",
    "",
    "",
    "",
)
_PROPERTIES = {
    "slope yield": "bushels", "well depth": "feet", "mill rent": "crowns",
    "orchard area": "acres", "quarry output": "cartloads",
    "meadow hay": "bales", "tower height": "feet", "granary stock": "sacks",
    "ferry takings": "crowns", "sheep count": "head",
}  # fmt: skip
_SIDES = ("north", "south", "upper", "lower", "old", "new", "eastern", "western")


def _place_names(n: int, rng: random.Random) -> list[Names]:
    found: dict[Names, None] = {}
    while len(found) < n:
        place = f"{rng.choice(_PLACE_HEADS)}{rng.choice(_PLACE_TAILS)} {rng.choice(_PLACE_KINDS)}".strip()
        thing, at = rng.choice(list(_PROPERTIES)), rng.randrange(0, len(_SIDES), 2)
        for side in _SIDES[at : at + rng.choice((1, 2, 2))]:
            found.setdefault(
                (
                    f"{side} {thing} of {place}",
                    f"{place}'s {side} {thing}",
                    f"{side} {thing} at {place}",
                )
            )
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
            "people": ("shepherds millers villagers farmers tenants parsons innkeepers drovers "
"bargemen weavers").split(),
            "thing": ("cart barn footpath stile chapel market fence weir lantern dovecote smithy "
"pond").split(),
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
    task_forms=(
        "Find out the {s}",
        "Ask how large the {s} is",
        "What is the {s}?",
        "Work out the {s}",
    ),
    needing_forms=(
        "Find out the {s} (it takes {i})",
        "Work out the {s}, given {i}",
        "Ask how large the {s} is, knowing {i}",
        "What is the {s}, if one knows {i}?",
    ),
    objective_forms=(
        "Tell us the {s}, as exactly as it is known.",
        "We would like to buy land there and must know the {s}.",
    ),
)


# -- lab
# --------------------------------------------------------------------------------------------------

_GENERA = (
    "Aconitum Salvia Verbena Artemisia Digitalis Papaver Arnica Lactuca Thymus Viola Rumex "
    "Gentiana Cicuta Nepeta"
).split()
_EPITHETS = (
    "alba alta ferrox minor maior nigra rubra montana lutea palustris tenebrosa hirsuta "
    "glauca arvensis"
).split()
_BUFFERS = "Weißbach Grünwald Hölder Lindqvist Özgür Kästner Nußbaum Jäger Möller Brückner".split()
_ASSAYS = {
    "titer": "mg/l",
    "absorbance": "AU",
    "Restfeuchte": "%",
    "eluate mass": "µg",
    "Schmelzpunkt": "°C",
    "conductivity": "µS/cm",
}


def _lab_names(n: int, rng: random.Random) -> list[Names]:
    found: dict[Names, None] = {}
    while len(found) < n:
        plant, assay, buffer = (
            f"{rng.choice(_GENERA)} {rng.choice(_EPITHETS)}",
            rng.choice(list(_ASSAYS)),
            rng.choice(_BUFFERS),
        )
        for fraction in ("alpha", "beta", "gamma")[: rng.choice((1, 2, 2, 3))]:
            sample = f"{plant} fraction {fraction} in Puffer {buffer}"
            found.setdefault(
                (f"{assay} of {sample}", f"{sample}: {assay}", f"{assay} for {sample}")
            )
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
            "glass": ("Erlenmeyer crucible pipette cuvette beaker desiccator ampoule retort "
"burette vial").split(),
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
    value_forms=(
        "{s}: {v}.",
        "We obtained {v} for the {s}.",
        "The {s} settled at {v} after washing.",
        "Measured {s}: {v} (n = 3).",
    ),
    hint_forms=(
        "The {s} should be run next, calibrated against {i}.",
        "Protocol for {s}: requires {i}.",
        "Once {i} have been measured, proceed with {s}.",
    ),
    origin_forms=("Calibrated against {i}.", "Normalised to {i}."),
    task_forms=("Measure the {s}", "Run the assay: {s}", "Quantify {s}"),
    needing_forms=(
        "Measure the {s}, calibrated against {i}",
        "Run the assay: {s} (requires {i})",
        "Quantify {s} normalised to {i}",
    ),
    objective_forms=("Report the {s} for the dossier.", "The reviewer demands the {s}. Obtain it."),
)


# -- post, held out
# --------------------------------------------------------------------------------------------------

_MEN = "Emmo Konrad Wolfram Baldric Tancred Gerlach Ruprecht Odilo Liutger Anselm Hartwin Poppo".split()
_MEN_TITLES = (
    "Provost Margrave Canon Marshal Legate Prior Bailiff Chamberlain Brother Deacon".split()
)
_WOMEN = (
    "Ingrith Adelheid Ysolde Oda Ermengard Sibylla Hadewich Kunigund Mechthild Bertrada "
    "Gisela Richenza"
).split()
_WOMEN_TITLES = "Abbess Countess Dame Sister Prioress Baroness Widow Princess".split()
_SURNAMES = "Falkner Haberland Rotstein Zwingli Imhof Pfeffer Trauttmann Vogelsang Silberrad Krumbach".split()
_TOWNS = (
    "Haldenau Brennach Zwiesel Rotheim Tuchau Ansbrück Limmern Gutenzell Oberwessel "
    "Sankt-Veit Kaltern Pfronten"
).split()
_POSTS = (
    "almoner castellan treasurer cupbearer falconer cantor cellarer warden sacristan steward "
    "equerry burgrave"
).split()
_YEARS = (
    "comet deluge famine plague jubilee locust eclipse earthquake truce coronation interdict "
    "hailstorm"
).split()

# by a word of the first wording: what sort of answer it has, and its wordings of three to nine
# words
_MATTERS: dict[str, tuple[str, Names]] = {
    "audience": (
        "day",
        ("the audience of {p} with {q}", "{p}'s audience with {q}", "when {q} admitted {p}"),
    ),
    "fealty": (
        "day",
        ("when {p} swore fealty to {q}", "the oath of {p} to {q}", "{p}'s homage to {q}"),
    ),
    "became": (
        "day",
        ("when {p} became {o} of {t}", "when {t} got {p} as {o}", "{p}'s elevation to {o} of {t}"),
    ),
    "penned": (
        "day",
        (
            "when {p} penned the letter from {t}",
            "the dating of {p}'s letter from {t}",
            "the day {p} sent word from {t}",
        ),
    ),
    "owes": (
        "sum",
        (
            "what {p} owes the {o} of {t}",
            "{p}'s debt to the {o} of {t}",
            "the {o} of {t}'s claim on {p}",
        ),
    ),
    "pension": (
        "sum",
        (
            "the {y} year pension of {p}",
            "{p}'s pension in the {y} year",
            "what {p} drew in the {y} year",
        ),
    ),
    "ransom": (
        "sum",
        (
            "the ransom of {p}",
            "{p}'s ransom",
            "what bought {p} free",
            "the price of freedom for {p}",
        ),
    ),
    "forfeited": (
        "sum",
        (
            "what {p} forfeited in the {y} year",
            "{p}'s fine for the {y} year",
            "the {y} year fine upon {p}",
        ),
    ),
    "buried": (
        "spot",
        ("where {p} lies buried", "the tomb of {p}", "{p}'s grave", "the spot where {p} was laid"),
    ),
    "lodged": (
        "spot",
        (
            "where {p} lodged in the {y} year",
            "{p}'s lodging in the {y} year",
            "the {y} year refuge of {p}",
        ),
    ),
    "testament": (
        "spot",
        (
            "the whereabouts of the testament of {p}",
            "where {p}'s testament is hidden",
            "the hiding place of {p}'s will",
        ),
    ),
    "tryst": (
        "spot",
        ("the tryst of {p} with {q}", "where {p} met {q} unseen", "{p}'s secret talk with {q}"),
    ),
    "motto": ("motto", ("the motto of {p}", "{p}'s motto", "the words on {p}'s banner")),
    "gift": (
        "gift",
        ("the gift of {p} to {q}", "what {p} bestowed upon {q}", "{p}'s present for {q}"),
    ),
    "watchword": (
        "watchword",
        (
            "the watchword of the {o} of {t}",
            "the {o} of {t}'s watchword",
            "what sentries of the {o} of {t} whisper",
        ),
    ),
    "grievance": (
        "grievance",
        ("the grievance of {p} with {q}", "{p}'s feud with {q}", "what {p} resents in {q}"),
    ),
    "heir": ("person", ("the heir of {p}", "{p}'s heir", "who inherits from {p}")),
    "messenger": (
        "person",
        (
            "the messenger between {p} and {q}",
            "who brought {p}'s letters to {q}",
            "{p}'s trusted courier to {q}",
        ),
    ),
    "who": (
        "person",
        (
            "who was {o} of {t} in the {y} year",
            "the {o} of {t} in the {y} year",
            "the {y} year's {o} of {t}",
        ),
    ),
}

_PEOPLE = [
    f"{title} {name}"
    for titles, names in ((_MEN_TITLES, _MEN), (_WOMEN_TITLES, _WOMEN))
    for title in titles
    for name in names
]
_POST_WORDS: dict[str, Sequence[object]] = {
    "who": _PEOPLE,
    "other": _PEOPLE,
    "surname": _SURNAMES,
    "town": _TOWNS,
    "day": range(4, 21),
    "year": range(1287, 1689),
    "month": ("Hartung Hornung Lenzing Ostermond Wonnemond Brachet Heuert Ernting Scheiding "
"Gilbhart Nebelung Julmond").split(),
    "weekday": "Monday Tuesday Wednesday Thursday Friday Saturday".split(),
    "feast": ("Candlemas Lammas Michaelmas Martinmas Epiphany Whitsun Ascension Assumption "
"Pentecost Hallowmas").split(),
    "sum": range(101, 9_999),
    "coins": ("ducats", "florins", "thalers", "guilders", "gold marks", "bezants"),
    "change": "groats stivers hellers farthings kreuzers".split(),
    "near": "beneath behind above opposite beyond".split(),
    "look": "gilded tarnished carved crooked whitewashed charred vaulted lopsided".split(),
    "part": "altar staircase gable hearth portal cellar cistern turret gallery".split(),
    "house": "convent hospice mint tannery guildhall abbey arsenal bakehouse cloister almshouse".split(),
    "virtue": ("patient humble watchful steadfast merciful silent weary proud thrifty fearless "
"tender solemn").split(),
    "beasts": "herons wolves lions hounds otters eagles boars salmon swans hedgehogs ravens stags".split(),
    "do": "outlive devour forgive welcome outrun despise befriend remember scorn tame".split(),
    "trials": ("storms traitors princes flatterers dragons thieves rumours sorrows feuds crusaders "
"sieges bishops").split(),
    "stuff": "silver ivory velvet amethyst pewter walnut ebony brocade coral damask".split(),
    "wares": "goblets saddles psalters mantles girdles chessmen candlesticks gloves mirrors lutes".split(),
    "spoilt": "drowned stolen pawned impounded counterfeited gambled-away mislaid".split(),
    "mood": "cheerful anxious gouty offended homesick feverish penitent impatient".split(),
}  # fmt: skip
_POST_VALUES = {
    "day": ("the {day}th of {month} {year}", "{weekday} after {feast} {year}"),
    "sum": ("{sum:,} {coins} and {n} {change}",),
    "spot": (
        "{near} the {look} {part} of the {house} in {town}",
        "the {house} of {who} {near} the {look} {part}",
    ),
    "motto": ("{virtue} {beasts} {do} {trials}", "{trials} never {do} {virtue} {beasts}"),
    "gift": (
        "{n} {stuff} {wares} and a pair of {virtue} {beasts}",
        "a {look} {stuff} casket of {n} {wares}",
    ),
    "watchword": ("{n} {beasts} over {town}", "no {stuff} {wares} for {virtue} {trials}"),
    "grievance": (
        "{n} {stuff} {wares} {spoilt} on the road to {town}",
        "an insult to {who} at {feast} {year}",
    ),
    "person": ("{who} {surname} of {town}",),
}


def _post_names(n: int, rng: random.Random) -> list[Names]:
    """Many have a twin in which one word is another: a title, a given name or a surname, an office,
    a town or a year."""
    found: dict[Names, None] = {}
    matters = list(_MATTERS.values())
    while len(found) < n:
        wordings = rng.choice(matters)[1]
        one, other = rng.sample(_MEN + _WOMEN, 2)
        called = {"p": [_draw_title(one, rng), one], "q": [_draw_title(other, rng), other]}
        called["p"] += [rng.choice(_SURNAMES)] if rng.random() < 0.4 else []
        called |= {"o": [rng.choice(_POSTS)], "t": [rng.choice(_TOWNS)], "y": [rng.choice(_YEARS)]}
        for _ in range(rng.choice((1, 2, 2, 3))):
            found.setdefault(
                tuple(
                    wording.format(**{key: " ".join(words) for key, words in called.items()})
                    for wording in wordings
                )
            )
            key = rng.choice([key for key in called if f"{{{key}}}" in wordings[0]])
            called[key] = _swap_one_word(called[key], rng)
    names = list(found)[:n]
    rng.shuffle(names)
    return names


def _draw_title(name: str, rng: random.Random) -> str:
    return rng.choice(_MEN_TITLES if name in _MEN else _WOMEN_TITLES)


def _swap_one_word(words: Sequence[str], rng: random.Random) -> list[str]:
    """The words with another of its kind in the place of one."""
    at = rng.randrange(len(words))
    kind = next(
        kind
        for kind in (_MEN, _MEN_TITLES, _WOMEN, _WOMEN_TITLES, _SURNAMES, _TOWNS, _POSTS, _YEARS)
        if words[at] in kind
    )
    return [*words[:at], rng.choice([word for word in kind if word not in words]), *words[at + 1 :]]


def _post_value(names: Names, rng: random.Random) -> str:
    sort = next(sort for word, (sort, _) in _MATTERS.items() if word in names[0].split())
    return _compose(_POST_VALUES[sort], _POST_WORDS, rng)


def _post_filler(rng: random.Random) -> str:
    return _fill(
        (
            "{who} greets the household in {town} and begs for {n} quills",
            "the courier lost a horse near {town}, so forgive this {mood} scrawl",
            "{who} grows more {mood} daily and blames it on {other}",
            "kiss the children, and do not let {who} near the {wares}",
            "my {mood} secretary spilled wine over the {stuff} {wares} you sent on {feast}",
            ("all {town} gossips that {who} dined with {other} and paid for neither "
"{wares} nor wine"),
            "God shield you from {trials}, as He did {who} at {town}",
            "{n} {beasts} came {near} the {house}, an omen if {who} is right",
            "the {virtue} nuns sing for {other} every {weekday}, {mood} as they are",
            "on {weekday} the ambassador rode through {town} with {n} {beasts} upon his banners",
            "I am still {mood}, the ink is frozen, and {who} has my best {stuff} {wares}",
            "excuse my silence: {n} {trials} detained me {near} the {part} all month",
        ),
        _POST_WORDS,
        rng,
    ) + "."  # fmt: skip


POST = Surface(
    name="post",
    make_names=_post_names,
    make_value=_post_value,
    make_filler=_post_filler,
    value_forms=(
        "Concerning {s}, the letter says “{v}”.",
        "On {s} my witness swears to this: {v}.",
        "You wonder over {s}, and I reply: {v}.",
        "I had “{v}” whispered to me when I mentioned {s}.",
        "As for {s}, both scribes set down {v} without a pause.",
    ),
    hint_forms=(
        "Your coming errand might be {s}; take {i} along.",
        "Courtiers will not speak of {s} till someone shows them {i}.",
        "With {i} in our hands we may press the envoys on {s}.",
        "I beg you to pursue {s} too, though it stays dark to all who have not learnt {i}.",
        "Did you ever think of {s}, seeing that {i} would betray it?",
    ),
    origin_forms=(
        "I pieced it together out of {i}.",
        "Without {i} I might never have guessed.",
        "My thanks for {i}, whence it came.",
    ),
    task_forms=(
        "Inquire into {s}",
        "Who can attest {s}?",
        "Trace {s} among the letters",
        "Do the envoys mention {s}?",
        "Learn {s}",
        "Write to court concerning {s}",
        "Is there any word on {s}?",
    ),
    needing_forms=(
        "Inquire into {s}, bringing {i}",
        "Who can attest {s} (someone who has learnt {i})?",
        "Trace {s} among the letters by means of {i}",
        "Do the envoys mention {s}, if one shows them {i}?",
        "Learn {s} out of {i}",
        "Write to court concerning {s} and enclose {i}",
        "Is there any word on {s}, seeing that we possess {i}?",
    ),
    objective_forms=(
        "His Grace wishes to learn {s} while the council sits.",
        "Can the chancery say {s}? The ambassador awaits our reply.",
        "Write me {s}, my dear cousin, and spare no courier.",
    ),
    is_held_out=True,
)

# -- other languages
# --------------------------------------------------------------------------------------------------

_TOWNS_IN_POLISH = dict(
    pair.split("/")
    for pair in (
        "Kraków/Krakowie Gdańsk/Gdańsku Łódź/Łodzi Toruń/Toruniu Przemyśl/Przemyślu "
        "Sandomierz/Sandomierzu Zamość/Zamościu Białystok/Białymstoku Chełm/Chełmie Nysa/Nysie "
        "Żory/Żorach Piła/Pile Słupsk/Słupsku Ełk/Ełku Płock/Płocku Łomża/Łomży"
    ).split()
)
_MATTERS_IN_POLISH = {
    "wysokość wieży": "wysokości wieży",
    "głębokość studni": "głębokości studni",
    "długość mostu": "długości mostu",
    "waga dzwonu": "wagi dzwonu",
    "wiek ratusza": "wieku ratusza",
    "szerokość bramy": "szerokości bramy",
    "cena biletu na zamek": "ceny biletu na zamek",
}


def _polish_names(n: int, rng: random.Random) -> list[Names]:
    found: list[Names] = [
        (f"{matter} w {place}", f"{of_matter} w {place}", f"{town}: {matter}")
        for town, place in _TOWNS_IN_POLISH.items()
        for matter, of_matter in _MATTERS_IN_POLISH.items()
    ]
    return rng.sample(found, n)


POLISH = Surface(
    name="polish",
    make_names=_polish_names,
    make_value=lambda names, rng: (
        f"{rng.randint(100, 9999)} {rng.choice(('łokci', 'stóp', 'miar'))}"
    ),
    make_filler=lambda rng: rng.choice(
        (
            "Kronika milczy o tym przez {n} stron.",
            "Pisarz poprawił {n} wierszy innym atramentem.",
            "Księga leżała w skrzyni przez {n} lat.",
            "Na marginesie ktoś narysował konia.",
        )
    ).format(n=rng.randint(2, 60)),
    value_forms=("{s} to {v}.", "{s}: {v}.", "Według księgi {s} wynosi {v}."),
    hint_forms=(
        "Potem trzeba ustalić, ile to jest: {s}; potrzebne są {i}.",
        "Mając {i}, można podać {s}.",
        "Kolejne pytanie: {s}, wynika z {i}.",
    ),
    bare_hint_forms=("Trzeba sprawdzić: {s}.",),
    origin_forms=("Wzięto pod uwagę: {i}.",),
    task_forms=("Ustal: {s}", "Znajdź: {s}", "Sprawdź w kronice: {s}"),
    needing_forms=(
        "Ustal: {s} (potrzebne: {i})",
        "Znajdź: {s}, mając {i}",
        "Oblicz: {s} na podstawie {i}",
    ),
    objective_forms=("Proszę ustalić, ile to jest: {s}.",),
    uses_all_names=True,
    lack_forms=(
        "Brakuje danych: {m}.",
        "Nie znam jeszcze: {m}. Bez tego nie mogę podać: {s}.",
        "Wśród wcześniejszych wyników nie ma: {m}.",
    ),
    lack_signs=("brakuje danych", "nie znam jeszcze", "wśród wcześniejszych wyników nie ma"),
    last_joint=" i ",
)


def _speak(vocabulary: Vocabulary) -> Surface:
    told = ("bare_hint_forms", "lack_forms", "lack_signs", "is_held_out", "joint", "last_joint")
    return Surface(
        name=vocabulary.name,
        make_names=partial(_name_matters, vocabulary),
        make_value=partial(_value_matter, vocabulary),
        make_filler=partial(_tell_aside, vocabulary),
        uses_all_names=True,
        **{name: getattr(vocabulary, name) for name in (*_FORMS, *told)},
    )


def _name_matters(vocabulary: Vocabulary, n: int, rng: random.Random) -> list[Names]:
    found = [
        tuple(name.format(e=place, m=matter) for name in vocabulary.names)
        for place in vocabulary.places
        for matter in vocabulary.unit_by_matter
    ]
    return rng.sample(found, n)


def _value_matter(vocabulary: Vocabulary, names: Names, rng: random.Random) -> str:
    units = vocabulary.unit_by_matter
    unit = next(unit for matter, unit in units.items() if matter in names[0])
    return f"{rng.randint(1_000, 98_999):,} {unit}"


def _tell_aside(vocabulary: Vocabulary, rng: random.Random) -> str:
    return rng.choice(vocabulary.filler).format(n=rng.randint(2, 60))


SURFACES = {
    surface.name: surface
    for surface in (CODES, PLACES, LAB, POST, POLISH, *map(_speak, VOCABULARIES.values()))
}
