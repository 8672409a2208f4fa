"""Which passages of a document bear on a question, by words alone.

A document becomes passages: a paragraph, an item of a list, a row of a table. Each knows what it
stands under: headings, the item or line above it, the head of its table. A word of the question
weighs as much as it is rare among the passages and long (short words are common in every language),
and it is found in other forms of the word as well: by what both begin with, or one within the
other. There is no list of words of any language.

Does not cover: meaning, synonyms, irregular forms.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby

from babyagi.text import sentences_of, shorten

MAX_QUOTE_CHARS = 300
MAX_CONTEXT_CHARS = 120
MAX_WORDS = 24  # of a question; the rest of a longer one says nothing new

_TOKEN = re.compile(r"[^\W_]+")
_IDEOGRAPHS = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.+?)\s*#*$")
_UNDERLINE = re.compile(r"([=\-~^\"'*+#.:_`])\1{2,}\s*$")
_BOLD_LINE = re.compile(r"(\*\*|__)(.+?)\1:?$")
_ITEM = re.compile(r"(\s*)(?:[-*+•–·▪◦‣]|\(?\d{1,3}[.)]|\(?[A-Za-z][.)])\s+(?=\S)")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_RULE = re.compile(r"[\s|:+=-]+$")
_FIELD = re.compile(r"[^\W\d_][\w -]{0,24}:(?:\s|$)")
_FENCE = re.compile(r"\s*(```|~~~)")
_QUOTED = re.compile(r"^(?:\s*>)+ ?")
_TABLES = {"csv": ",", "tsv": "\t"}
_PROSE = frozenset({"md", "markdown", "mdx", "txt", "text", "rst", "adoc", "org", "log", "eml", ""})

# how much a word counts that stands not in the sentence itself but beside or above it
PARAGRAPH, CONTEXT, PATH = 0.6, 0.8, 0.35
RARITY = 1.5  # the power of a word's rarity
SAID_AGAIN = 0.2  # a word that stands there as well
LENGTH_SHARE, USUAL_WORDS = 0.25, 22
HEADING, CODE_AMONG_PROSE = 0.5, 0.7  # what can be quoted and seldom answers
MAX_CODE_CHARS = 160
N_TITLE_WORDS = 5  # a heading of so many only says what it is about
N_INSTRUCTION_WORDS = 4  # before a colon; fewer belong to the question
N_LOG_LINES = 4  # that do not run on into one another are no paragraph
N_NEW_WORDS = 3  # an answer says so many words that the question did not


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A sentence, or a line that is not part of one, and the number of the line it begins on."""

    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A paragraph, item or row, and what it stands under, outermost first."""

    units: tuple[Unit, ...]
    above: tuple[str, ...] = ()
    is_heading: bool = False
    is_code: bool = False

    @property
    def text(self) -> str:
        return " ".join(unit.text for unit in self.units)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Whole sentences of a document, where they begin, and what they stand under."""

    text: str
    path: str
    line: int
    above: str = ""

    def render(self) -> str:
        under = f" under {self.above}" if self.above else ""
        return f'- "{self.text}" ({self.path}:{self.line}){under}'


# -- words
# --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[str, ...]:
    """The words, folded: no case, no accents; scripts without blanks in pairs of characters."""
    return tuple(_split(text))


def _split(text: str) -> Iterable[str]:
    for token in _TOKEN.findall(text):
        plain = _fold(token)
        if _IDEOGRAPHS.fullmatch(plain):
            yield from (plain[at : at + 2] for at in range(max(1, len(plain) - 1)))
        else:
            yield plain


def _fold(word: str) -> str:
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return unicodedata.normalize(
        "NFC", "".join(char for char in decomposed if not unicodedata.combining(char))
    )


@lru_cache(maxsize=65_536)
def likeness(asked: str, found: str) -> float:
    """How surely two words are forms of one, from 0 to 1."""
    if asked == found:
        return 1.0
    if not (asked.isalpha() and found.isalpha()):
        return 0.0
    short, long = sorted((asked, found), key=len)
    n_same = next((n for n, (a, b) in enumerate(zip(short, long)) if a != b), len(short))  # noqa: B905
    n_more = len(long) - len(short)
    if n_same == len(short) and n_same >= 3:
        return 0.9 if n_more <= 2 else 0.75 if n_same >= 4 and n_more <= 4 else 0.5 * (n_same >= 4)
    if n_same >= 4 and len(short) - n_same <= 3 and 2 * n_same >= len(long):
        return 0.75 if n_same >= len(short) - 1 and n_more <= 3 else 0.7
    return 0.5 if len(short) >= 5 and short in long else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The words that are asked for, each with what its looks alone say of its weight."""

    weight_by_word: Mapping[str, float]

    def counts(self, sections: Iterable[Section]) -> dict[str, int]:
        """In how many passages each word stands."""
        counted: Counter[str] = Counter()
        for section in sections:
            counted.update(list(self.match(section.text, least=0.5)))
        return {word: counted[word] for word in self.weight_by_word if counted[word]}

    def match(self, text: str, *, least: float = 0.0) -> dict[str, float]:
        """The words that the text holds in some form, each with its likeness."""
        found = set(words_of(text))
        best = {
            word: max((likeness(word, other) for other in found), default=0.0)
            for word in self.weight_by_word
        }
        return {word: like for word, like in best.items() if like > 0 and like >= least}


def read_question(text: str) -> Question:
    """What is asked: what stands behind the colon where an instruction stands before it."""
    head, _, rest = text.strip().partition(": ")
    is_told = len(head.split()) >= N_INSTRUCTION_WORDS and "?" not in head
    asked = rest if rest.strip() and is_told else text
    weights: dict[str, float] = {}
    tokens = _TOKEN.findall(asked)
    for at, token in enumerate(tokens):
        is_name = any(map(str.isdigit, token)) or (len(token) > 1 and token.isupper())
        by_length = 1.0 if is_name else min(1.0, max(0.05, (len(token) - 2) / 5))
        if at and token[0].isupper():
            by_length = max(by_length, 0.9)
        opens = at == 0 and "?" in asked and not is_name
        for word in words_of(token):
            weight = by_length * (0.3 if opens else 1.0) * (0.7 + 0.3 * (at + 1) / len(tokens))
            if _IDEOGRAPHS.fullmatch(word):
                weight = 0.6
            weights[word] = max(weight, weights.get(word, 0.0))
    return Question(weight_by_word=dict(list(weights.items())[:MAX_WORDS]))


# -- a document in passages
# --------------------------------------------------------------------------------------------------


def split_document(path: str, lines: Sequence[tuple[int, str]]) -> list[Section]:
    """The passages of a document, in order.

    Args:
        path: its suffix says what the lines are. lines: each with its number.
    """
    suffix = path.rpartition("/")[2].rpartition(".")[2].lower() if "." in path else ""
    if suffix in _TABLES:
        return _rows([(n, line) for n, line in lines if line.strip()])
    if suffix in _PROSE:
        return _Prose().read(lines)
    return _blocks(lines)


def _rows(lines: Sequence[tuple[int, str]], above: tuple[str, ...] = ()) -> list[Section]:
    """The rows of a table, each under its head."""
    head, body = (lines[0][1].strip().strip("|").strip(), lines[1:]) if lines else ("", ())
    context = (*above, re.sub(r"\s*\|\s*", " | ", head))
    return [
        Section(units=(Unit(text=line.strip(), line=n),), above=context)
        for n, line in body
        if not _RULE.fullmatch(line)
    ]


def _blocks(lines: Sequence[tuple[int, str]], above: tuple[str, ...] = ()) -> list[Section]:
    """Lines of a program or of data: a block up to a blank line, under the less indented lines
    before it."""
    found: list[Section] = []
    opened: list[tuple[int, str]] = []
    for is_blank, group in groupby(lines, key=lambda pair: not pair[1].strip()):
        block = list(group)
        if is_blank:
            continue
        indent = len(block[0][1]) - len(block[0][1].lstrip())
        opened = [pair for pair in opened if pair[0] < indent]
        context = (*above, *(text for _, text in opened[-2:]))
        units = tuple(Unit(text=line.strip(), line=n) for n, line in block)
        found.append(Section(units=units, above=context, is_code=True))
        for _, line in block:
            depth = len(line) - len(line.lstrip())
            opened = [pair for pair in opened if pair[0] < depth]
            opened.append((depth, line.strip().rstrip(":{(")))
    return found


class _Prose:
    """Reads text for people: headings of several kinds, paragraphs, lists, tables."""

    def __init__(self) -> None:
        self.found: list[Section] = []
        self.headings: list[tuple[int, str]] = []
        self.items: list[tuple[int, str]] = []
        self.lead = ""
        self.levels: list[str] = []
        self.lines: list[tuple[int, str]] = []

    def read(self, lines: Sequence[tuple[int, str]]) -> list[Section]:
        self.lines = [(n, _QUOTED.sub("", line).rstrip()) for n, line in lines]
        at = 0
        while at < len(self.lines):
            at = self._step(at)
        return self.found

    def _text(self, at: int) -> str:
        return self.lines[at][1] if 0 <= at < len(self.lines) else ""

    def _step(self, at: int) -> int:
        """Take what begins at this line, and return where it ends."""
        line = self._text(at)
        if not line.strip() or (_UNDERLINE.fullmatch(line.strip()) and not _ITEM.match(line)):
            return at + 1
        if _FENCE.match(line):
            return self._take_code(at)
        if heading := self._find_heading(at):
            level, text, end = heading
            self._open(level, text, self.lines[at][0])
            return end
        if _ROW.match(line) and _ROW.match(self._text(at + 1)):
            return self._take_table(at)
        if _ITEM.match(line):
            return self._take_item(at)
        return self._take_paragraph(at)

    def _find_heading(self, at: int) -> tuple[int, str, int] | None:
        """(level, text, where it ends); levels of marked headings go before those of lines that
        only look like one."""
        line, after = self._text(at), self._text(at + 1)
        if found := _HEADING.match(line):
            return len(found.group(1)), found.group(2), at + 1
        is_short = len(line.strip()) <= 100 and not _ITEM.match(line)
        underline = _UNDERLINE.fullmatch(after.strip())
        if is_short and underline and 2 * len(after.strip()) >= len(line.strip()):
            mark = underline.group(1)
            if mark not in self.levels:
                self.levels.append(mark)
            return 1 + self.levels.index(mark), line.strip(), at + 2
        stands_alone = not self._text(at - 1).strip() and not after.strip()
        if (found := _BOLD_LINE.match(line.strip())) and (stands_alone or len(line) < 80):
            return 7, found.group(2), at + 1
        return self._find_plain_heading(at)

    def _find_plain_heading(self, at: int) -> tuple[int, str, int] | None:
        """A short line without an end, that stands for itself or is in capitals."""
        text, after = self._text(at).strip(), self._text(at + 1).strip()
        begins = not self._text(at - 1).strip() or _UNDERLINE.fullmatch(self._text(at - 1).strip())
        is_title = len(text) <= 70 and len(text.split()) <= 9 and not _FIELD.match(text + " ")
        if not (begins and is_title and any(map(str.isalpha, text))):
            return None
        if text.isupper() and len(text) > 3:
            return 8, text, at + 1
        goes_on = any(line.strip() for _, line in self.lines[at + 1 : at + 4])
        if text.endswith(":") and len(text.split()) > N_TITLE_WORDS - 1:
            return None  # it leads to what follows, and names nothing
        if not after and goes_on and text[-1] not in ".!?,;…\"'" and not text.startswith("|"):
            return 9, text.rstrip(":"), at + 1
        return None

    def _open(self, level: int, text: str, number: int) -> None:
        self.headings = [pair for pair in self.headings if pair[0] < level]
        above = tuple(title for _, title in self.headings)
        self.headings.append((level, text))
        self.items, self.lead = [], ""
        self.found.append(
            Section(units=(Unit(text=text, line=number),), above=above, is_heading=True)
        )

    def _above(self) -> tuple[str, ...]:
        return tuple(title for _, title in self.headings)

    def _take_code(self, at: int) -> int:
        end = at + 1
        while end < len(self.lines) and not _FENCE.match(self._text(end)):
            end += 1
        lead = (self.lead,) if self.lead else ()
        self.found += _blocks(self.lines[at + 1 : end], (*self._above(), *lead))
        return end + 1

    def _take_table(self, at: int) -> int:
        end = at
        while _ROW.match(self._text(end)):
            end += 1
        self.found += _rows(self.lines[at:end], self._above())
        return end

    def _take_item(self, at: int) -> int:
        found = _ITEM.match(self._text(at))
        indent = len(found.group(1).expandtabs(4)) if found else 0
        end = at + 1
        while self._goes_on(end, indent):
            end += 1
        units = _units(self.lines[at:end])
        self.items = [pair for pair in self.items if pair[0] < indent]
        above = [*self._above(), self.lead, *(text for _, text in self.items)]
        self.found.append(Section(units=units, above=tuple(filter(None, above))))
        self.items.append((indent, units[0].text if units else ""))
        return end

    def _goes_on(self, at: int, indent: int) -> bool:
        """Whether the line still belongs to the item that stands so far in."""
        line = self._text(at)
        if not line.strip() or _ITEM.match(line) or _HEADING.match(line) or _FENCE.match(line):
            return False
        return len(line) - len(line.lstrip()) > indent or bool(self._text(at - 1).strip())

    def _take_paragraph(self, at: int) -> int:
        end = at + 1
        while end < len(self.lines) and self._is_plain(end):
            end += 1
        block = self.lines[at:end]
        units = _units(block)
        fields = [_FIELD.match(line) is not None for _, line in block]
        is_head = len(block) > 1 and all(fields) and not self._text(end).strip()
        if is_head and max(len(line) for _, line in block) < 120:
            self._open_head(block)
            return end
        is_indented = block[0][1][:1].isspace() and self.items
        if not is_indented:
            self.items = []
        above = [*self._above(), *([self.items[-1][1]] if is_indented else [])]
        is_log = N_LOG_LINES <= len(block) <= len(units)
        runs = [(unit,) for unit in units] if is_log else [units]
        self.found += [Section(units=run, above=tuple(filter(None, above))) for run in runs]
        last = block[-1][1].strip()
        self.lead = last if last.endswith(":") else ""
        return end

    def _open_head(self, block: Sequence[tuple[int, str]]) -> None:
        """Lines `Subject: …`, `Date: …` over a letter: each can be quoted, and all stand over what
        follows."""
        self._open(6, "; ".join(line.strip() for _, line in block), block[0][0])
        self.found[-1] = replace(
            self.found[-1], units=tuple(Unit(text=line.strip(), line=n) for n, line in block)
        )
        self.found[-1] = replace(self.found[-1], is_heading=False)

    def _is_plain(self, at: int) -> bool:
        line = self._text(at)
        if not line.strip() or _ITEM.match(line) or _HEADING.match(line) or _FENCE.match(line):
            return False
        after = self._text(at + 1).strip()
        is_title = _UNDERLINE.fullmatch(after) and len(after) >= len(line.strip())
        return not (_ROW.match(line) or is_title)


def _units(block: Sequence[tuple[int, str]]) -> tuple[Unit, ...]:
    """The sentences of a block; a line that ends well before the widest is an end as well."""
    mark = _ITEM.match(block[0][1])
    bare = [(n, line.strip()) for n, line in block]
    if mark:
        bare[0] = (block[0][0], block[0][1][mark.end() :].strip())
    widest = max(len(line) for _, line in block)
    found: list[Unit] = []
    run: list[tuple[int, str]] = []
    for at, (n, text) in enumerate(bare):
        run.append((n, text))
        following = bare[at + 1][1].split(" ", 1)[0] if at + 1 < len(bare) else ""
        could_hold = len(block[at][1]) + 1 + len(following) <= widest
        if not following or widest < 50 or (could_hold and not following[:1].islower()):
            found += _sentences(run)
            run = []
    return tuple(found)


def _sentences(run: Sequence[tuple[int, str]]) -> list[Unit]:
    joined = " ".join(text for _, text in run)
    starts, at = [], 0
    for n, text in run:
        starts.append((at, n))
        at += len(text) + 1
    found, place = [], 0
    for sentence in sentences_of(joined):
        place = joined.find(sentence, place)
        line = next(n for start, n in reversed(starts) if start <= place)
        found.append(Unit(text=sentence, line=line))
        place += len(sentence)
    return found


# -- which passages come closest
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """How many passages there are, and in how many of them each word of the question stands."""

    n_sections: int
    counts: Mapping[str, int]

    def weigh(self, question: Question) -> dict[str, float]:
        """The weight of each word that stands anywhere."""
        n = max(self.n_sections, 1)
        return {
            word: question.weight_by_word[word]
            * math.log(1 + (max(n - count, 0) + 0.5) / (count + 0.5)) ** RARITY
            for word, count in self.counts.items()
            if word in question.weight_by_word
        }


def count_sections(question: Question, sections: Sequence[Section]) -> Statistics:
    return Statistics(n_sections=len(sections), counts=question.counts(sections))


def score(
    question: Question, weights: Mapping[str, float], texts: Sequence[tuple[str, float]]
) -> float:
    """How much of the question's weight the texts bear; the first is the sentence itself, each of
    the others counts by its share."""
    matches = [(question.match(text), share) for text, share in texts]
    total = held = 0.0
    for word, weight in weights.items():
        found = sorted((match.get(word, 0.0) * share for match, share in matches), reverse=True)
        total += weight * (found[0] + SAID_AGAIN * sum(found[1:]))
        held += weight * min(1.0, 2 * found[0])
    share = min(1.0, held / max(sum(weights.values()), 1e-9))
    total *= 0.1 + 0.9 * share * math.sqrt(share)
    own = words_of(texts[0][0])
    n_new = len({word for word in own if len(word) > 1 and word not in matches[0][0]})
    length = 1 - LENGTH_SHARE + LENGTH_SHARE * max(len(own), 8) / USUAL_WORDS
    is_asking = texts[0][0].rstrip("\"'*_) ").endswith("?")
    return total / length * min(1.0, n_new / N_NEW_WORDS) * (0.5 if is_asking else 1.0)


def find_quotes(
    question: Question, statistics: Statistics, path: str, sections: Sequence[Section], *, n: int
) -> list[Quote]:
    """The best passages of a document, best first, one of each section."""
    weights = statistics.weigh(question)
    scored: list[tuple[float, int, Quote]] = []
    is_prose = not all(section.is_code for section in sections)
    for at, section in enumerate(sections):
        if section.is_heading and len(section.text.split()) <= N_TITLE_WORDS:
            continue
        above = " > ".join(section.above)
        rest = section.text
        best, place = max(
            (
                (
                    score(
                        question,
                        weights,
                        [(unit.text, 1.0), (rest, PARAGRAPH), (above, CONTEXT), (path, PATH)],
                    ),
                    -i,
                )
                for i, unit in enumerate(section.units)
            ),
            default=(0.0, 0),
        )
        if best > 0:
            share = HEADING if section.is_heading else 1.0
            share *= CODE_AMONG_PROSE if section.is_code and is_prose else 1.0
            scored.append((best * share, at, _quote(path, section, -place)))
    scored.sort(key=lambda one: (-one[0], one[1]))
    return [quote for _, _, quote in scored[:n]]


def _quote(path: str, section: Section, place: int) -> Quote:
    """The sentence and as many of those around it as fit: all of them, or those that follow."""
    units, most = section.units, MAX_CODE_CHARS if section.is_code else MAX_QUOTE_CHARS
    first, last = place, place
    if len(section.text) <= most:
        first, last = 0, len(units) - 1
    while last + 1 < len(units) and _n_chars(units[first : last + 2]) <= most:
        last += 1
    text = shorten(" ".join(unit.text for unit in units[first : last + 1]), 2 * MAX_QUOTE_CHARS)
    above = shorten(" > ".join(section.above[-3:]), MAX_CONTEXT_CHARS)
    return Quote(text=text, path=path, line=units[first].line, above=above)


def _n_chars(units: Sequence[Unit]) -> int:
    return sum(len(unit.text) + 1 for unit in units)


def rank_quotes(
    question: Question,
    statistics: Statistics,
    quotes: Sequence[Quote],
    *,
    counts_by_path: Mapping[str, Mapping[str, int]],
) -> list[tuple[float, Quote]]:
    """Quotes of several documents with their scores, best first; a document that holds more of the
    question's words counts a little more."""
    weights = statistics.weigh(question)
    ranked = []
    for at, quote in enumerate(quotes):
        value = score(
            question, weights, [(quote.text, 1.0), (quote.above, CONTEXT), (quote.path, PATH)]
        )
        held = sum(weights.get(word, 0.0) for word in counts_by_path.get(quote.path, {}))
        ranked.append((value * (1 + 0.2 * held / max(sum(weights.values()), 1e-9)), at, quote))
    ranked.sort(key=lambda one: (-one[0], one[1]))
    return [(value, quote) for value, _, quote in ranked if value > 0]
