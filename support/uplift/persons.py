"""Worlds of persons with relations and attributes, an article each, in the manner of PhantomWiki:
questions that follow 1 to 12 look-ups, with exact sets of answers.

Does not cover PhantomWiki's questions that count: a small number stands in any text by chance.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from support.uplift.cases import Case, Fact, Key

PERSONS = "persons"
DEPTHS = range(1, 13)
N_SMALL, N_LARGE = 12, 100  # persons of a world that fits one prompt, and of one that does not
MAX_SET = 4  # persons that a look-up may lead to
MAX_TRIES = 20_000
N_FRIENDS = 2  # that each person looks for; who is found has one more
N_CHILDREN = (1, 3)

NAMES_BY_SEX = {
    "f": "Ada Bea Cora Dina Edda Fay Gwen Hilda Ines Jola Kira Lea Mona Nell Opal Pia".split(),
    "m": "Alf Ben Cato Dirk Egon Fritz Gus Hugo Ivo Jens Karl Levi Milo Nils Otto Paul".split(),
}
FAMILIES = (
    "Abbot Brandt Calder Dorsey Ekberg Farrow Galvin Harlow Irvine Jessup Kessel Lorimer Marsh "
    "Nansen Oakley Perrin"
).split()
JOBS = (
    "baker", "surveyor", "locksmith", "botanist", "translator", "beekeeper", "engraver", "pilot",
    "glazier", "actuary", "cartographer", "midwife", "tanner", "archivist", "dentist", "saddler",
)  # fmt: skip
HOBBIES = (
    "chess", "rowing", "birdwatching", "pottery", "fencing", "origami", "juggling", "astronomy",
    "knitting", "climbing", "calligraphy", "geocaching", "sailing", "topiary", "archery", "yoga",
)  # fmt: skip
JOB, HOBBY, BORN = ATTRIBUTES = ("job", "hobby", "date of birth")
FRIEND = "friend"
FAMILY_RELATIONS = ("mother", "father", "son", "daughter", "brother", "sister", "wife", "husband")
RELATIONS = (*FAMILY_RELATIONS, FRIEND)
SECTIONS = (("Family", FAMILY_RELATIONS), ("Friends", (FRIEND,)), ("About", ATTRIBUTES))


@dataclass(slots=True, kw_only=True)
class World:
    """Persons in the order of their birth: who stands in a relation to whom, and the values of
    their attributes."""

    sex_by_name: dict[str, str] = field(default_factory=dict)
    related: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    value_by_key: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return list(self.sex_by_name)

    def find(self, person: str, what: str) -> list[str]:
        """The persons in this relation to the person, or the value of the attribute."""
        value = self.value_by_key.get((person, what))
        return [value] if value else self.related.get((person, what), [])

    def sentence(self, person: str, what: str) -> str:
        """What the person's article says of this; empty where it says nothing."""
        found = self.find(person, what)
        if len(found) > 1:
            return f"The {what}s of {person} are {', '.join(found)}."
        return f"The {what} of {person} is {found[0]}." if found else ""

    def article(self, person: str) -> str:
        parts = [f"# {person}"]
        for title, what in SECTIONS:
            said = [self.sentence(person, one) for one in what]
            parts.append("\n".join([f"## {title}", *filter(None, said)]))
        return "\n\n".join(parts) + "\n"


def path_of(person: str) -> str:
    return f"{person.replace(' ', '_').lower()}.md"


# -- the persons
# --------------------------------------------------------------------------------------------------


def make_world(n_persons: int, seed: int) -> World:
    """Return families of three generations whose members have friends: as many families as it takes
    for so many persons."""
    rng, world = random.Random(f"{seed} {n_persons}"), World()
    for family in rng.sample(FAMILIES, len(FAMILIES)):
        if len(world.sex_by_name) < n_persons:
            _found_family(world, rng, family)
    _befriend(world, rng)
    for person in world.names:
        born = f"{rng.randrange(1400, 1700)}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"
        world.value_by_key |= {
            (person, JOB): rng.choice(JOBS),
            (person, HOBBY): rng.choice(HOBBIES),
            (person, BORN): born,
        }
    return world


def _found_family(world: World, rng: random.Random, family: str) -> None:
    unused = {sex: rng.sample(names, len(names)) for sex, names in NAMES_BY_SEX.items()}

    def bear(sex: str) -> str:
        name = f"{unused[sex].pop()} {family}"
        world.sex_by_name[name] = sex
        return name

    def marry_and_bear(wife: str, husband: str) -> list[str]:
        world.related[wife, "husband"], world.related[husband, "wife"] = [husband], [wife]
        children = [bear(rng.choice("fm")) for _ in range(rng.randint(*N_CHILDREN))]
        for child in children:
            world.related[child, "mother"], world.related[child, "father"] = [wife], [husband]
            relation = "daughter" if world.sex_by_name[child] == "f" else "son"
            for parent in (wife, husband):
                world.related.setdefault((parent, relation), []).append(child)
            for other in children:
                if other != child:
                    kin = "sister" if world.sex_by_name[other] == "f" else "brother"
                    world.related.setdefault((child, kin), []).append(other)
        return children

    for child in marry_and_bear(bear("f"), bear("m"))[:2]:
        is_wife = world.sex_by_name[child] == "f"
        spouse = bear("m" if is_wife else "f")
        marry_and_bear(*((child, spouse) if is_wife else (spouse, child)))


def _befriend(world: World, rng: random.Random) -> None:
    for person in world.names:
        for other in rng.sample(world.names, N_FRIENDS):
            known = world.related.setdefault((person, FRIEND), [])
            if other != person and other not in known:
                known.append(other)
                world.related.setdefault((other, FRIEND), []).append(person)
    for key in [key for key, found in world.related.items() if not found]:
        del world.related[key]


# -- the questions
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """Look-ups that follow one another: `what` is looked up for each person of a set, and brings
    the next set. `sets` holds the start and what each look-up brings."""

    what: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]


def make_persons(name: str, seed: int) -> Iterator[Case]:
    """Yield a case for each depth, in a world that fits one prompt and in one that does not."""
    for n_persons in (N_SMALL, N_LARGE):
        world = make_world(n_persons, seed)
        texts = {path_of(person): world.article(person) for person in world.names}
        for depth in DEPTHS:
            walk = draw_walk(world, depth, random.Random(f"{seed} {n_persons} {depth}"))
            is_small = n_persons == N_SMALL
            yield _make_case(
                f"{name}-persons-{'small' if is_small else 'large'}-{depth:02d}",
                (world, texts),
                walk,
                is_small=is_small,
            )


def draw_walk(world: World, depth: int, rng: random.Random) -> Walk:
    """Draw look-ups from one person on until each of them brings somebody and the last brings none
    of whom the question names.

    Raises:
        ValueError: none was found.
    """
    for _ in range(MAX_TRIES):
        what = [rng.choice(RELATIONS) for _ in range(depth - 1)]
        what.append(rng.choice((*RELATIONS, *ATTRIBUTES)))
        sets: list[tuple[str, ...]] = [(rng.choice(world.names),)]
        for one in what:
            sets.append(_look_up(world, sets[-1], one))
            if not 1 <= len(sets[-1]) <= MAX_SET:
                break
        else:
            if sets[0][0] not in sets[-1]:
                return Walk(what=tuple(what), sets=tuple(sets))
    raise ValueError(f"no walk of {depth} look-ups in {MAX_TRIES} tries")


def _look_up(world: World, persons: Sequence[str], what: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found for person in persons for found in world.find(person, what)))


def _make_case(
    name: str, said: tuple[World, dict[str, str]], walk: Walk, *, is_small: bool
) -> Case:
    world, texts = said
    start, answers, last = walk.sets[0][0], walk.sets[-1], walk.what[-1]
    is_value = last in ATTRIBUTES
    phrase = start
    for what in walk.what:
        phrase = f"the {what} of {phrase}"
    asked = f"What is {phrase}?" if is_value else f"Who is {phrase}?"
    kind = "values" if is_value else "full names"
    universe = (
        {value for (_, what), value in world.value_by_key.items() if what == last}
        if is_value
        else set(world.names)
    )
    return Case(
        name=name,
        kind=PERSONS,
        language="en",
        question=(
            f"{asked} There may be several; answer with all {kind} that fit and with no others, "
            "separated by commas."
        ),
        text_by_path=texts,
        facts=_find_facts(world, walk),
        key=Key(marks=answers, forbidden=tuple(sorted(universe - {*answers, start}))),
        answer=f"{phrase}: {', '.join(answers)}",
        is_small=is_small,
        depth=len(walk.what),
    )


def _find_facts(world: World, walk: Walk) -> tuple[Fact, ...]:
    """Every sentence that the look-ups need, each after one that names its person."""
    facts: list[Fact] = []
    place_by_sentence: dict[str, int] = {}
    named_by: dict[str, int] = {}  # the first fact that names a person
    for what, persons in zip(walk.what, walk.sets, strict=False):
        for person in persons:
            sentence = world.sentence(person, what)
            if not sentence:
                continue
            if sentence not in place_by_sentence:
                place_by_sentence[sentence] = len(facts)
                after = (named_by[person],) if person in named_by else ()
                subject = f"the {what} of {person}"
                facts.append(
                    Fact(sentence=sentence, path=path_of(person), subject=subject, after=after)
                )
            for found in world.find(person, what):
                if found != walk.sets[0][0]:
                    named_by.setdefault(found, place_by_sentence[sentence])
    return tuple(facts)
