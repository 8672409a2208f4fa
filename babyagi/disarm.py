"""Text from outside as a model may be shown it: what would steer a model or hide from a person is
broken, and stays legible.

Broken are the marks of our own fences and what looks like them, the tokens with which chat
templates part turns, and characters that nobody sees. Does not cover: control characters of ASCII
(`llm.prompt.clean`), and what the words of a text say.
"""

from __future__ import annotations

import re
import unicodedata

GAP = "·"  # it stands within what is broken: `<·|im_start|>`

# What has no shape of its own: C1 controls, fillers, joiners, marks of direction, separators of
# lines, variation selectors, tags, noncharacters (Default_Ignorable_Code_Point of Unicode 16, and
# what no text should hold).
_UNSEEN = (
    "\x80-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufdd0-\ufdef"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(1, 17))
)
# Scripts whose letters joiners and separators of words of no width stand between, Arabic to
# Javanese.
_JOINED = (
    "\u0600-\u109f\u1780-\u18af\u1900-\u1cff\ua800-\uabff"
    "\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00011000-\U00011fff\U0001e900-\U0001e95f"
)
_PICTURE = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_IDEOGRAPH = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_FLAGS = "|".join(
    "".join(chr(0xE0000 + ord(letter)) for letter in region)
    for region in ("gbeng", "gbsct", "gbwls")
)

_INVISIBLE = re.compile(
    rf"(?P<ordinary>\U0001f3f4(?:{_FLAGS})\U000e007f"
    rf"|(?<=[0-9#*])\ufe0f(?=\u20e3)|(?<=[{_PICTURE}])[\ufe0e\ufe0f]"
    rf"|(?<=[{_PICTURE}\ufe0f])\u200d(?=[{_PICTURE}])"
    rf"|(?<=[{_JOINED}])[\u200b-\u200d](?![{_UNSEEN}])"
    rf"|(?<=[\u1820-\u18aa])[\u180b-\u180f](?![{_UNSEEN}]))"
    r"|(?P<layout>\A\ufeff|(?<=[^\W\d_])\xad(?=[^\W\d_])"
    rf"|(?<=[{_IDEOGRAPH}])[\ufe00-\ufe0f\U000e0100-\U000e01ef](?![{_UNSEEN}]))"
    rf"|[{_UNSEEN}]+"
)
_SHOWN = re.compile(
    rf"(?<=[^\w\s]){GAP}|{GAP}(?=[»》≫⟫⋙])|\[U\+[0-9A-F]{{4,6}}(?: and \d+ more)?\]"
)

# Letters and brackets that look like those of ASCII, beside what NFKC folds.
_LIKE_ASCII = {
    "<": "‹〈⟨❬❮❰⧼˂ᐸ᚜",
    ">": "›〉⟩❭❯❱⧽˃ᐳ᚛",
    "[": "【〔⟦❲⦋",
    "]": "】〕⟧❳⦌",
    "|": "∣ǀ│┃❘❙❚⏐︱¦║‖",
    "_": "▁＿‗",
    **dict(
        zip(
            "aceopsxyijdhABCEHIJKMNOPSTXY",
            (
                "аα",
                "сϲ",
                "еε",
                "оο",
                "рρ",
                "ѕ",
                "хχ",
                "уγ",
                "іι",
                "ј",
                "ԁ",
                "һ",
                "АΑ",
                "ВΒ",
                "СϹ",
                "ЕΕ",
                "НΗ",
                "ІΙ",
                "Ј",
                "КΚ",
                "МΜ",
                "Ν",
                "ОΟ",
                "РΡ",
                "Ѕ",
                "ТΤ",
                "ХΧ",
                "УΥ",
            ),
            strict=True,
        )
    ),
}


class _Plain(dict[int, int]):
    """For each character the one that it is read as, as `str.translate` wants it; the length of a
    text stays what it is."""

    def __missing__(self, code: int) -> int:
        folded = unicodedata.normalize("NFKC", chr(code))
        self[code] = _CODE_BY_LOOK.get(folded, ord(folded) if len(folded) == 1 else code)
        return self[code]


_CODE_BY_LOOK = {look: ord(plain) for plain, looks in _LIKE_ASCII.items() for look in looks}
_PLAIN = _Plain()

_TURNS = "user|assistant|system|tool|start|end|message|channel"
_NAME = r"[\w/.:+-]{1,40}"
_WORDS = (
    r"s|bos|eos|[sem]op|eo[adhtm]|thinking|think|tool_calls?|tool_responses?"
    r"|function_(?:calls?|results?)"
)
_TOKENS = (  # each matches up to where the gap is put
    # <|im_start|>, <|turn>, <turn|>
    rf"<(?=\s?/?\|(?:{_NAME}|\s?(?:\w{{0,20}}_\w{{1,20}}|{_TURNS})\s?)\|?\s?>|{_NAME}\|>)",
    (rf"<(?=/?(?:{_WORDS}|\w{{2,12}}_of_\w{{2,20}}|(?:unused|reserved|extra_id|special"
rf"|tokens_unused)_?\d+|\w{{2,30}}_token|seed:\w+)\s?/?>)"),
    r"<(?=/?(?:antml:\w+|function_calls|invoke|function=)\b)",
    (r"\[(?=\s?/?(?:[be]_)?(?:inst|system_prompt|available_tools|tool_(?:calls?|results?"
r"|content)|call_id|think|[gs]mask)\s?\])"),
    r"\](?=~!?b[\[\]])|\[(?=e~\[)",
)  # fmt: skip
_OPENS = (  # a fence: doubled brackets before a name, a mark and an origin
    r"<(?=(?:\s?<){1,9}\s?/?\s?sys\b)|<(?=(?:\s?<){1,9}\w[\w -]{0,60} [0-9a-f]{6,64}\b)"
    r"|(?:<(?=\s?<)|[«《≪⟪⋘])(?=[\s<]{0,18}/?[\w "
    r"-]{1,100}?\bfrom\b[\s:=]+(?:the\s)?(?:person|program|model|tool|file|result|user)\b)"
)
_CLOSES = r"^[^\w\n]{0,8}[0-9a-f]{6,64}(?:\s?>(?=\s?>[\s>]{0,9}$)|(?=\s?[»》≫⟫⋙]\s{0,9}$))"
_LOOKING = (
    re.compile("|".join(_TOKENS), re.IGNORECASE),
    re.compile(_OPENS, re.IGNORECASE),
    re.compile(_CLOSES, re.MULTILINE | re.IGNORECASE),
)


def disarm(text: str) -> str:
    """Return the text with what a model must not be steered by broken, each by a `·` or a
    `[U+200B]` that shows where it stood.

    Ordinary text comes back as it is, also code, markup, emoji of several characters, and joined
    scripts. What only says how a line may break or which form of an ideograph to draw is left out.
    A text that was disarmed is not changed again.
    """
    text = text if text.isascii() else _INVISIBLE.sub(_show, text)
    plain = text if text.isascii() else text.translate(_PLAIN)
    places = sorted({match.end() for pattern in _LOOKING for match in pattern.finditer(plain)})
    return GAP.join(
        text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)
    )


def is_armed(text: str) -> bool:
    """Whether a fence, what looks like one, or a token of a chat template stands in the text."""
    plain = text.translate(_PLAIN)
    return any(pattern.search(plain) for pattern in _LOOKING)


def rearm(text: str) -> str:
    """Return the text without the signs that `disarm` leaves, so that a copy of what was shown can
    be compared with what stands there."""
    return _SHOWN.sub("", disarm(text))


def _show(match: re.Match[str]) -> str:
    if match["ordinary"] or match["layout"]:
        return match["ordinary"] or ""
    more = f" and {len(match[0]) - 1} more" if len(match[0]) > 1 else ""
    return f"[U+{ord(match[0][0]):04X}{more}]"
