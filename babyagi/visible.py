"""Characters that a person cannot see, and how a text is shown so that they are seen: harmless on
any line, or exactly where it counts.

`harmless` replaces what could steer a terminal or hide in a line, and leaves ordinary text of any
script as it is. `exact` loses nothing: what cannot be seen becomes `<U+200B>`, the same many times
over `<U+0020 x4000>`, and the text can be read back from that.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import groupby

MAX_MARKS = 4  # combining marks on one character; no script that people write needs more
MAX_BLANKS = 40  # in a row, as code is indented; more push what follows off the screen
MAX_NEWLINES = 5  # in a row

JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
_SPACE_LIKE = "\t\n\v\f\r\u0085\u2028\u2029"
# Controls, format characters (but the number signs among them, which show), fillers, selectors,
# private use, surrogates, tags.
_UNSEEN = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff\U00013430-\U00013440\U00016fe4"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff"
)
UNSEEN = re.compile(f"[{_UNSEEN}]")
_BLANKS = "\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"  # look like U+0020 and are not
_NOT_EXACT = re.compile(
    rf"(?P<literal><(?=U\+))|(?P<newlines>\n{{{MAX_NEWLINES + 1},}})|(?P<blanks> "
    rf"{{{MAX_BLANKS + 1},}}| +(?=\n|\Z))"
    rf"|(?P<unseen>(?P<one>(?!\n)[{_UNSEEN}{_BLANKS}])(?P=one)*)"
)
_WORD = re.compile(r"[^\W_]+")
# Letters that look like Latin ones: phonetic, of other scripts, letterlike symbols, mathematical
# and full-width letters.
_LOOKALIKE = re.compile(
    "[\u017f\u0250-\u02af\u1d00-\u1dbf\u0370-\u052f\u0530-\u058f\u13a0-\u13ff\u1c80-\u1c8f\u1f00-\u1fff\u2100-\u214f\u2160-\u217f\u2c80-\u2cff\u2de0-\u2dff\ua4d0-\ua4ff"
    "\ua640-\ua69f\uab70-\uabbf\uff01-\uff5e\U0001d400-\U0001d7ff]"
)
_USES_JOINERS = re.compile("[\u0600-\u08ff\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u18af]")


def harmless(text: str) -> str:
    """Return the text as one line in which nothing steers a terminal and nothing hides; of a flood
    of marks the count is left."""
    shown = UNSEEN.sub(_replace, text)
    return shown if shown.isascii() else _count_marks(shown)


def _replace(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if character in _SPACE_LIKE:
        return " "
    if code < 0x20:
        return chr(0x2400 + code)  # the picture of the control character, one cell wide
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    return character if _does_its_work(match.string, match.start()) else "\N{REPLACEMENT CHARACTER}"


def _does_its_work(text: str, at: int) -> bool:
    """Whether a joiner or a selector is where writing needs it: in an emoji, or between letters of
    a script that is joined."""
    before, after = text[at - 1 : at] or " ", text[at + 1 : at + 2] or " "
    match text[at]:
        case "\ufe0e" | "\ufe0f":
            return (
                unicodedata.category(before) in ("So", "Sm", "Po", "Pd")
                or after == "\N{COMBINING ENCLOSING KEYCAP}"
            )
        case "\N{ZERO WIDTH JOINER}" if unicodedata.category(after) == "So":
            return before == "\ufe0f" or unicodedata.category(before) in ("So", "Sk")
        case "\N{ZERO WIDTH JOINER}" | "\N{ZERO WIDTH NON-JOINER}":
            return bool(_USES_JOINERS.match(before) and _USES_JOINERS.match(after))
    return False


def is_mark(character: str) -> bool:
    """Whether it is drawn on the character before it and takes no room of its own."""
    return unicodedata.category(character) in ("Mn", "Me")


def _count_marks(text: str) -> str:
    kept, n = [], 0
    for character in text:
        if is_mark(character) or character in JOINERS:
            n += 1
            if n > MAX_MARKS:
                continue
        else:
            if n > MAX_MARKS:
                kept.append(f"[{n - MAX_MARKS:,} more marks]")
            n = 0
        kept.append(character)
    return "".join(kept) + (f"[{n - MAX_MARKS:,} more marks]" if n > MAX_MARKS else "")


def exact(text: str, *, encoding: str = "utf-8") -> str:
    """Return the text with everything that cannot be seen spelled out, and nothing lost; a newline
    stays a newline.

    Spelled out are also blanks at the end of a line, long runs of blanks and newlines, marks beyond
    `MAX_MARKS`, letters of another script within a Latin word, and what `encoding` cannot write.
    """
    spelled = _NOT_EXACT.sub(_spell_match, text)
    if not spelled.isascii():
        spelled = _spell_marks(_WORD.sub(_spell_mixed, spelled))
        spelled = re.sub(
            r"[^\x00-\x7f]",
            lambda match: match[0] if _can_write(match[0], encoding) else _spell(match[0]),
            spelled,
        )
    return spelled


def _spell(character: str, n: int = 1) -> str:
    return f"<U+{ord(character):04X}>" if n == 1 else f"<U+{ord(character):04X} x{n}>"


def _spell_match(match: re.Match[str]) -> str:
    found = match[0]
    if match["newlines"]:
        return f"\n{_spell(found[0], len(found) - 2)}\n"
    return _spell(found[0], len(found))


def _spell_mixed(match: re.Match[str]) -> str:
    word = match[0]
    is_mixed = re.search("[A-Za-z]", word) is not None
    return _LOOKALIKE.sub(lambda letter: _spell(letter[0]), word) if is_mixed else word


def _spell_marks(text: str) -> str:
    runs = [
        (character, is_loose, sum(1 for _ in run))
        for (character, is_loose), run in groupby(_find_loose_marks(text))
    ]
    return "".join(
        _spell(character, n) if is_loose else character * n for character, is_loose, n in runs
    )


def _find_loose_marks(text: str) -> Iterator[tuple[str, bool]]:
    """Each character, and whether it is a mark too many, or one that would be drawn on the margin
    or on a bracket."""
    before, n = "\n", 0
    for character in text:
        n = (n + 1 if n or before not in "\n<>" else MAX_MARKS + 1) if is_mark(character) else 0
        yield character, n > MAX_MARKS
        before = character


def _can_write(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeError:
        return False
    return True
