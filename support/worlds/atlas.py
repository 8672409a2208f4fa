"""Finds the things of a world in texts: which are named, and which stand there with their
values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from support.worlds.generator import Fact

# signs of which each is a word; in Korean because particles are written onto the nouns
_EAST = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_TOKEN = re.compile(rf"[{_EAST}]|(?![{_EAST}])[^\W_](?:[^\W{_EAST}]*(?![{_EAST}])[^\W_])?")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")
RIGHT, WRONG = "right", "wrong"


class Atlas:
    """The names of a world's facts, ready to be found. Texts that were looked at are remembered."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._facts = facts
        self._names_by_first: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for fact in facts:
            for name in fact.names:
                tokens = tuple(_tokens(name))
                self._names_by_first.setdefault(tokens[0], []).append((tokens, fact.number))
        for names in self._names_by_first.values():
            names.sort(key=lambda entry: -len(entry[0]))
        self.named = lru_cache(maxsize=20_000)(self._find_named)
        self._sentences = lru_cache(maxsize=5_000)(self._find_sentences)

    def asked(self, name: str) -> int | None:
        """The fact that a task of this name asks for: the first that it names."""
        return next(iter(self.named(name)), None)

    def stands(self, texts: Iterable[str], number: int) -> str:
        """`right` where a sentence holds the fact's name and its value, `wrong` where it holds only
        an invented one; empty else."""
        found = ""
        fact = self._facts[number]
        for text in texts:
            for sentence in self._sentences(text).get(number, ()):
                if _holds(sentence, fact.value):
                    return RIGHT
                if _holds(sentence, fact.wrong_value):
                    found = WRONG
        return found

    def quote(self, text: str, number: int) -> str:
        """The sentence that gives the fact's value, or an invented one; empty without any."""
        fact = self._facts[number]
        return next(
            (
                sentence
                for sentence in self._sentences(text).get(number, ())
                if _holds(sentence, fact.value) or _holds(sentence, fact.wrong_value)
            ),
            "",
        )

    def gives(self, text: str, number: int) -> bool:
        """Whether the text answers the question for this fact, rightly or not. A text whose whole
        is the value need not hold the name."""
        return bool(self.stands([text], number)) or _holds(text, self._facts[number].value)

    def _find_named(self, text: str) -> tuple[int, ...]:
        """The facts that the text names, in its order, each as often as it is named."""
        tokens = _tokens(text)
        found, at = list[int](), 0
        while at < len(tokens):
            for name, number in self._names_by_first.get(tokens[at], ()):
                if tuple(tokens[at : at + len(name)]) == name:
                    found.append(number)
                    at += len(name) - 1
                    break
            at += 1
        return tuple(found)

    def _find_sentences(self, text: str) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for sentence in split_sentences(text):
            for number in dict.fromkeys(self.named(sentence)):
                found.setdefault(number, []).append(sentence)
        return found


def _tokens(text: str) -> list[str]:
    """The words of a text; a code is one word, however its parts are put together."""
    return _TOKEN.findall(text.casefold().replace("-", ""))


def split_sentences(text: str) -> list[str]:
    return _SENTENCE_END.split(text)


def _holds(sentence: str, value: str) -> bool:
    """Whether the value stands in the sentence, and is no part of a longer one."""
    at = sentence.find(value) if value else -1
    while at >= 0:
        before, after = sentence[at - 1 : at], sentence[at + len(value) : at + len(value) + 1]
        if not (_continues(before) or (before and before in "-,.")) and not _continues(after):
            return True
        at = sentence.find(value, at + 1)
    return False


def _continues(char: str) -> bool:
    """Whether a value beside this character is only a part of a longer one."""
    return char.isalnum() and not re.match(f"[{_EAST}]", char)
