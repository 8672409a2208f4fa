"""The key by which two names of tasks are the same."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_KEY_OPENING = "\"'`([{«“”‘’„‹"
_KEY_CLOSING = "\"'`)]}»“”‘’›"
_POWERS = {ord(sign): f"^{power}" for power, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}  # 10² is not 102
_BULLETS = "–—•…"


@lru_cache(maxsize=64)  # each planning compares the newest results once more
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
        return bare.rstrip(".,;") or bare
    if any(map(str.isdigit, word)):
        is_wrapped = len(word) > 2 and word[0] in _KEY_OPENING and word[-1] in _KEY_CLOSING
        bare = word[1:-1] if is_wrapped else word
        return _normal((bare.rstrip(".,;:?") or bare).translate(_POWERS))
    bare = word.lstrip(_KEY_OPENING + _BULLETS).rstrip(_KEY_CLOSING + _BULLETS + ".,;:!?")
    return _normal(bare or (word if word in (".", "..") else ""))
