"""Small folders in five languages, each with a question and its exact key.

A set has `N_CASES` of them: half do not fit one prompt, in ten the facts stand in three files or
more. The values are drawn, so a folder of a new seed holds values that nobody has seen.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from support.uplift.cases import Case, Fact, Key
from support.uplift.languages import (
    EXTENSION,
    KEEPER,
    KEY,
    LANGUAGES,
    NONE,
    PLACE,
    POLICY,
    ROOM,
    SIZE,
    STATE,
    Domain,
    Language,
)

ONE, JOIN, COUNT, COMPARE, ABSENT, LETTER = KINDS = (
    "one", "join", "count", "compare", "absent", "letter",
)  # fmt: skip
# each kind, and whether its facts stand in three files or more
PLANS = (
    (ONE, False), (JOIN, True), (COUNT, True), (COMPARE, True), (ABSENT, False), (LETTER, True),
    (JOIN, True), (ONE, False), (COUNT, True), (COMPARE, True), (LETTER, True), (ABSENT, False),
    (JOIN, True), (LETTER, True), (ONE, False), (COUNT, False), (COMPARE, False), (JOIN, False),
    (LETTER, False), (ABSENT, False),
)  # fmt: skip
N_CASES = len(PLANS)
N_THINGS = 6
N_JOURNALS = 5
LARGE_BYTES = 60_000  # of a folder that does not fit: 15,000 tokens at 4 bytes each
N_SMALL_FILLER = 2  # sentences a file


def make_folders(name: str, seed: int) -> Iterator[Case]:
    """Yield the cases of a set. Which languages and sizes meet which kinds is drawn as well."""
    first_language, first_size = seed % len(LANGUAGES), seed // len(LANGUAGES) % 2
    for number, (kind, is_deep) in enumerate(PLANS):
        language = LANGUAGES[(first_language + number) % len(LANGUAGES)]
        yield _Maker(
            language=language,
            rng=random.Random(f"{seed} {number}"),
            is_deep=is_deep,
            is_small=number % 2 == first_size,
        ).make(f"{name}-{number:02d}-{kind}-{language.name}", kind)


def _draw_codes(rng: random.Random, n: int) -> list[str]:
    letters = [first + second for first in "BDFGHK" for second in "LMNRT"]
    return [f"{rng.choice(letters)}-{number}" for number in rng.sample(range(120, 990), n)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What a kind asks for: the facts by their keys (subject and attribute) with the places of
    those that come before, the question, the key and a right answer."""

    facts: Sequence[tuple[tuple[str, str], tuple[int, ...]]]
    question: str
    key: Key
    answer: str


@dataclass(slots=True, kw_only=True)
class _Maker:
    """Makes one case. `value_by_key` holds the value of each attribute of each subject."""

    language: Language
    rng: random.Random
    is_deep: bool
    is_small: bool
    domain: Domain = field(init=False)
    things: list[str] = field(init=False)
    value_by_key: dict[tuple[str, str], str] = field(init=False, default_factory=dict)

    def make(self, name: str, kind: str) -> Case:
        self.domain = self.rng.choice(self.language.domains)
        self.things = self.rng.sample(list(self.language.things), N_THINGS)
        self._draw_values()
        ask = {
            ONE: self._ask_one,
            JOIN: self._ask_join,
            COUNT: self._ask_count,
            COMPARE: self._ask_compare,
            ABSENT: self._ask_absent,
            LETTER: self._ask_letter,
        }
        wanted = ask[kind]()
        path_by_key = self._place([key for key, _ in wanted.facts], kind)
        sentence_by_key = {key: self._sentence(key) for key in self.value_by_key}
        text_by_path = self._write(path_by_key, sentence_by_key)
        facts = tuple(
            Fact(
                sentence=sentence_by_key[key],
                path=path_by_key[key],
                subject=self._phrase(*key),
                after=after,
            )
            for key, after in wanted.facts
        )
        return Case(
            name=name,
            kind=kind,
            language=self.language.name,
            question=wanted.question,
            text_by_path=text_by_path,
            facts=facts,
            key=wanted.key,
            answer=wanted.answer,
            is_small=self.is_small,
            depth=len({fact.path for fact in facts}),
        )

    # -- values
    # ----------------------------------------------------------------------------------------------

    def _draw_values(self) -> None:
        """Draw the value of every attribute. No number stands twice, and none is a filler's."""
        rng, n = self.rng, len(self.things)
        persons = rng.sample(list(self.language.persons), len(self.language.persons))
        numbers = iter(map(str, rng.sample(range(1100, 9900), 2 * n + len(persons))))
        codes = iter(_draw_codes(rng, n + len(self.language.rooms)))
        for at, thing in enumerate(self.things):
            self.value_by_key |= {
                (thing, PLACE): next(codes),
                (thing, SIZE): f"{next(numbers)} cm",
                (thing, POLICY): str(rng.randrange(210_000, 980_000)),
                (thing, KEEPER): persons[at % len(persons)],
                (thing, STATE): self.domain.states[at % 2 if at < 4 else rng.randrange(3)],
            }
        rooms = list(self.language.rooms)
        for at, person in enumerate(persons):
            self.value_by_key[person, EXTENSION] = next(numbers)
            self.value_by_key[person, ROOM] = rooms[at % len(rooms)]
        self.value_by_key |= {(room, KEY): next(codes) for room in rooms}

    def _phrase(self, subject: str, *attributes: str) -> str:
        return self.language.phrase(self.domain, subject, *attributes)

    def _sentence(self, key: tuple[str, str]) -> str:
        form = 0 if self.rng.random() < 0.7 else 1
        return self.language.say(form, self._phrase(*key), self.value_by_key[key])

    # -- questions
    # ----------------------------------------------------------------------------------------------

    def _ask_value(self, facts: Sequence[tuple[str, str]], *attributes: str) -> _Wanted:
        """Ask for what stands at the end of a chain of facts."""
        phrase, value = self._phrase(facts[0][0], *attributes), self.value_by_key[facts[-1]]
        return _Wanted(
            facts=[(key, (at - 1,) if at else ()) for at, key in enumerate(facts)],
            question=self.language.value_question.format(p=phrase),
            key=Key(marks=(value,), forbidden=(NONE,)),
            answer=self.language.say(0, phrase, value),
        )

    def _ask_one(self) -> _Wanted:
        attribute = self.rng.choice((PLACE, POLICY))
        return self._ask_value([(self.things[0], attribute)], attribute)

    def _ask_join(self) -> _Wanted:
        thing = self.things[0]
        keeper = self.value_by_key[thing, KEEPER]
        facts = [(thing, KEEPER), (keeper, EXTENSION)]
        if not self.is_deep:
            return self._ask_value(facts, EXTENSION, KEEPER)
        room = self.value_by_key[keeper, ROOM]
        return self._ask_value([facts[0], (keeper, ROOM), (room, KEY)], KEY, ROOM, KEEPER)

    def _ask_count(self) -> _Wanted:
        state = self.domain.states[0]
        held = [thing for thing in self.things if self.value_by_key[thing, STATE] == state]
        others = tuple(thing for thing in self.things if thing not in held)
        return _Wanted(
            facts=[((thing, STATE), ()) for thing in self.things],
            question=self.language.count_question.format(things=self.domain.things, v=state),
            key=Key(marks=(*held, str(len(held))), forbidden=others),
            answer=f"{self.language.joint.join(held)}: {len(held)}",
        )

    def _ask_compare(self) -> _Wanted:
        compared = self.things[: 4 if self.is_deep else 2]
        first = max(compared, key=lambda thing: int(self.value_by_key[thing, SIZE].split()[0]))
        place = self.value_by_key[first, PLACE]
        sizes = [((thing, SIZE), ()) for thing in compared]
        nouns = self.domain.nouns
        return _Wanted(
            facts=[*sizes, ((first, PLACE), tuple(range(len(sizes))))],
            question=self.language.compare_question.format(
                things=self.domain.things,
                names=self.language.joint.join(compared),
                size=nouns[SIZE],
                place=nouns[PLACE],
            ),
            key=Key(
                marks=(place,),
                forbidden=(
                    NONE,
                    *(self.value_by_key[thing, PLACE] for thing in compared if thing != first),
                ),
            ),
            answer=self.language.say(0, self._phrase(first, PLACE), place),
        )

    def _ask_absent(self) -> _Wanted:
        """Ask for what the folder says of other things only. The facts are what it says of the
        thing at all."""
        thing, attribute = self.things[0], self.rng.choice((PLACE, POLICY))
        del self.value_by_key[thing, attribute]
        decoys = tuple(value for (_, what), value in self.value_by_key.items() if what == attribute)
        phrase = self._phrase(thing, attribute)
        return _Wanted(
            facts=[(key, ()) for key in self.value_by_key if key[0] == thing],
            question=self.language.value_question.format(p=phrase),
            key=Key(marks=(NONE,), forbidden=decoys),
            answer=f"{phrase}: {NONE}",
        )

    def _ask_letter(self) -> _Wanted:
        thing = self.things[0]
        told = [(thing, attribute) for attribute in (PLACE, SIZE, POLICY)]
        values = [self.value_by_key[key] for key in told]
        keeper = self.value_by_key[thing, KEEPER]
        nouns = self.domain.nouns
        closing = self.domain.closing
        said = [self.language.say(0, self._phrase(*key), self.value_by_key[key]) for key in told]
        return _Wanted(
            facts=[(key, ()) for key in ((thing, KEEPER), *told)],
            question=self.language.letter_question.format(
                keeper=self._phrase(thing, KEEPER),
                place=nouns[PLACE],
                size=nouns[SIZE],
                policy=nouns[POLICY],
                x=thing,
                closing=closing,
            ),
            key=Key(marks=(keeper, values[0], values[1].split()[0], values[2], closing)),
            answer=self.language.letter.format(
                keeper=keeper, facts="\n".join(said), closing=closing
            ),
        )

    # -- files
    # ----------------------------------------------------------------------------------------------

    def _place(self, wanted: Sequence[tuple[str, str]], kind: str) -> dict[tuple[str, str], str]:
        """Choose the file of every fact: one file for each subject, or journals. Facts that are
        wanted from three files or more stand apart, others in two files at most."""
        is_apart = self.is_deep and kind != LETTER
        by_subject = is_apart or kind in (ONE, ABSENT) or (kind == JOIN and not self.is_deep)
        if by_subject and self.rng.random() < 0.5:
            return {key: f"{key[0].replace(' ', '_')}.md" for key in self.value_by_key}
        paths = [f"journal-{number:02d}.md" for number in range(1, N_JOURNALS + 1)]
        path_by_key = {key: self.rng.choice(paths) for key in self.value_by_key}
        most = len(paths) if self.is_deep else 2
        chosen = self.rng.sample(paths, most)
        return path_by_key | {key: chosen[at % most] for at, key in enumerate(wanted)}

    def _write(
        self,
        path_by_key: dict[tuple[str, str], str],
        sentence_by_key: dict[tuple[str, str], str],
    ) -> dict[str, str]:
        paths = sorted(set(path_by_key.values()))
        lines_by_path = {
            path: [sentence_by_key[key] for key in path_by_key if path_by_key[key] == path]
            for path in paths
        }
        filler = self._filler()
        for lines in lines_by_path.values():
            lines += [next(filler) for _ in range(N_SMALL_FILLER)]
        room = 0 if self.is_small else LARGE_BYTES
        room -= sum(len(line.encode()) for lines in lines_by_path.values() for line in lines)
        while room > 0:
            for lines in lines_by_path.values():
                lines.append(next(filler))
                room -= len(lines[-1].encode()) + 1
        for lines in lines_by_path.values():
            self.rng.shuffle(lines)
        return {
            path: f"# {self.language.title} {number}\n\n" + "\n".join(lines_by_path[path]) + "\n"
            for number, path in enumerate(paths, start=1)
        }

    def _filler(self) -> Iterator[str]:
        """Yield sentences that say nothing about things, none of them twice."""
        said = set[str]()
        while True:
            n, m = self.rng.randrange(12, 100), self.rng.randrange(12, 100)
            form = self.rng.choice(self.language.filler)
            line = form.format(n=n, m=m, d=self.rng.randrange(1, 29))
            if line not in said:
                said.add(line)
                yield line
