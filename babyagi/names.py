"""The key by which two names of tasks are the same, and the forms in which words, signs and numbers
are compared."""

from __future__ import annotations

import re
import unicodedata

from babyagi.text import OPENING

# -- normalizing text
# --------------------------------------------------------------------------------------------------

_KEY_OPENING = "\"'`([{«“”‘’„‹"
_KEY_CLOSING = "\"'`)]}»“”‘’›"
_POWERS = {ord(sign): f"^{power}" for power, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}  # 10² is not 102
_BULLETS = "–—•…"


def name_key(name: str) -> str:
    """Return a key that two names share if they differ only in case, white space, and the
    punctuation around words.

    Words with a slash (paths, URLs) keep their case. Words with a digit keep every sign that could
    belong to the number. The key is empty only if the name is blank.
    """
    kept = filter(None, map(_fold_word, name.split()))
    return " ".join(kept) or " ".join(_normal(name).split()) or name.strip()


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _fold_word(word: str) -> str:
    if "/" in word or "\\" in word:
        bare = word.lstrip(_KEY_OPENING).rstrip("\"'`»”’›") or word
        return re.sub(r"(?<=[\w/])[.,;]+$", "", bare)
    if any(map(str.isdigit, word)):
        is_wrapped = len(word) > 2 and word[0] in _KEY_OPENING and word[-1] in _KEY_CLOSING
        bare = word[1:-1] if is_wrapped else word
        return _normal((bare.rstrip(".,;:?") or bare).translate(_POWERS))
    bare = word.lstrip(_KEY_OPENING + _BULLETS).rstrip(_KEY_CLOSING + _BULLETS + ".,;:!?")
    return _normal(bare or (word if word in (".", "..") else ""))


_CLOSING = "\"'`)]}»›.,;:!?」』】。、।؟،"
_INVISIBLE = dict.fromkeys(
    [0xAD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
_SIGNS = str.maketrans(
    {
        **_INVISIBLE,
        **dict.fromkeys("‘’ʼ", "'"),
        **dict.fromkeys("“”„", '"'),
        **dict.fromkeys("‐‑–−", "-"),
        "—": " - ",
        "…": " ",
    }
)
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_DIGIT_ABROAD = re.compile(r"[^\D0-9]")
_NARROW_GROUPING = re.compile("(?<=[0-9])[\u00a0\u2009\u202f](?=[0-9]{3}(?![0-9]))")
QUOTES = frozenset("\"'`«「『")
QUOTED = re.compile(
    r"(?<!\w)(?:\"([^\"]+)\"|`([^`]+)`)(?!\w)"
    r"|(?<![^\s(\[{])'([^']+)'(?=[.,;:!?)\]]*+(?:\s|$))|«([^«»]+)»|「([^「」]+)」|『([^『』]+)』"
)
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[,'][0-9]{3})+(?:\.[0-9]+)?")
NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?|[+-]?\.[0-9]+")
_UNITS = (
    "%|km|cm|mm|mi|kg|mg|lb|tb|gb|mb|kb|kwh|mwh|kw|ghz|mhz|hz|ms|min|hr|mph|kph|ml|usd|eur"
    "|gbp|am|pm|°c|°f"
)
_MEASURED = re.compile(rf"([$€£¥]?)([+-]?[0-9.,']*[0-9])({_UNITS})?")


def to_plain(text: str) -> str:
    """Return the text with one form for each sign: NFKC, straight quotes, one kind of hyphen, ASCII
    digits, and `^2` for a superscript 2."""
    if text.isascii():
        return text
    raised = _RAISED.sub(lambda match: "^" + match.group(), text.translate(_SIGNS))
    plain = unicodedata.normalize("NFKC", _NARROW_GROUPING.sub(",", raised))
    return _DIGIT_ABROAD.sub(lambda match: str(unicodedata.decimal(match.group())), plain)


def fold(word: str) -> str:
    """Return the word case-folded, but with `ß` unchanged, because `Maße` is not `Masse`."""
    return "ß".join(map(str.casefold, word.split("ß")))


def strip_signs(chunk: str) -> str:
    """Return the chunk (a text without blanks) without the punctuation around it. Closing brackets
    stay if an opening bracket is inside the chunk."""
    bare = chunk.lstrip(OPENING)
    closing = "\"'`.,;:!?»" if "(" in bare or "[" in bare or "{" in bare else _CLOSING
    stripped = bare.rstrip(closing)
    is_factorial = stripped[-1:].isdigit() and bare[len(stripped) :].startswith("!")
    return stripped + "!" * is_factorial


def _number(word: str) -> str:
    """Return the number without thousands separators; '' if the word is not a number."""
    if _GROUPED.fullmatch(word):
        return word.replace(",", "").replace("'", "")
    return word if NUMBER.fullmatch(word) else ""


def split_measure(word: str) -> list[str]:
    """Split a number from its currency sign or unit, such as `12km` into `['12', 'km']`. Return []
    if the word is not a number."""
    match = _MEASURED.fullmatch(word)
    number = match and _number(match[2])
    return [part for part in (match[1], number, match[3]) if part] if match and number else []


LISTED = re.compile("[,;]+")
