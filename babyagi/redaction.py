"""Removes keys and passwords from what is shown or logged."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from urllib.parse import unquote, urlsplit

from babyagi.text import UNSEEN

HIDDEN = "***"
MIN_PIECE_CHARS = 8  # of a known key; shorter pieces occur in ordinary words
MIN_SECRET_CHARS = 3
N_CACHED_SECRETS = 64  # each line of a log is searched for the same few secrets
MAX_LAYERS = 4

_HARMLESS = frozenset(  # parameters whose values are not secret
    "api-version version v model deployment region timeout host hostaddr port dbname user sslmode "
    "sslnegotiation sslrootcert sslcert requiressl connect_timeout application_name "
    "client_encoding target_session_attrs load_balance_hosts channel_binding gssencmode "
    "require_auth keepalives keepalives_idle keepalives_interval keepalives_count "
    "tcp_user_timeout".split()
)
_SCHEME = re.compile(r"[A-Za-z0-9+.-]+", re.ASCII)
_URL_IN_TEXT = re.compile(r"""[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s"'<>`]*[^\s"'<>`.,;:!?)\]}]""")
_PLAIN_NAME = re.compile(r"[\w.-]{1,63}", re.ASCII)
_AUTHORITY = re.compile(r"[\w.:,\[\]%-]*", re.ASCII)
# characters that are read as nothing, or as others: wide and mathematical letters
_ODD_CHARACTERS = UNSEEN.pattern[1:-1] + r"\u0130\uff01-\uff5e\U0001d400-\U0001d7ff"
_ODD = re.compile(f"[{_ODD_CHARACTERS}]")
_NOT_PLAIN = re.compile(rf"[%&\\{_ODD_CHARACTERS}]")
_PERCENT = re.compile(r"%(?:25)*(?=[0-9a-f]{2})")
_ESCAPE = re.compile(
    r"(?P<bytes>%(?:25)*(?:[0-7][0-9a-f]|c[2-9a-f]~|d[0-9a-f]~|e[0-9a-f]~~|f[0-4]~~~))"
    r"|&(?:amp;)*(?P<entity>#\d{1,9}|#x[0-9a-f]{1,8}|[a-z][a-z0-9]{1,31}(?=;));?"
    r"|(?<!\\)\\+(?:u(?P<code>[0-9a-f]{4})|(?P<plain>[\\\"'/]))".replace(
        "~", "%(?:25)*[89ab][0-9a-f]"
    )
)
_WORD = re.compile(r"[A-Za-z0-9_%*~+=.-]{8,}")
_PIECES = tuple(
    re.compile(f"{kind}{{{MIN_PIECE_CHARS},}}")
    for kind in (r"""[^\s"'<>]""", r"""[^\s"'<>&?,;=]""", r"[\w.~+=%-]")
)
_PREFIX = re.compile(
    r"(?:sk|pk|rk)[-_]|gh[opsur]_|github_pat_|glpat-|xox[a-z]-|xapp-|hf_|gsk_|pcsk_|pplx-|npm_|pypi-"
    r"|dckr_|SG\.|dop_v1_|key-|r8_|tvly-|nvapi-|xai-|AIza|ya29\.|A[KS]IA"
)
_HUMP = re.compile("[a-z][A-Z]")  # as in `aB`
_LONG_HUMP = re.compile("[A-Z]{2}[a-z]")  # as in `ABc`
_SCHEME_AND_KEY = re.compile(r"\b(bearer|basic)(\s+)([^\s\"',;]{8,})", re.IGNORECASE)
_NAMED = re.compile(
    r"""(?P<name>(?:api[_-]?key|access[_-]?key|private[_-]?key|secret|token|password|passwd|pwd|passphrase|authorization))"""
    r"""(?P<sign>["']?\s*(?P<equals>[=:])\s*["']?)(?P<value>[^\s"'&,;}\]]+)""",
    re.IGNORECASE,
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z)", re.DOTALL
)


def redact_url(url: str) -> str:
    """Return the URL with its password, unknown parameters and everything that looks like a key
    hidden, and without its fragment."""
    scheme, sign, rest = url.partition("://")
    if not sign or not scheme[:1].isalpha() or not _SCHEME.fullmatch(scheme):
        return HIDDEN
    # a password may contain any character, so the last @ separates it
    before, at, rest = rest.rpartition("@")
    rest, _, query = rest.partition("#")[0].partition("?")
    authority, slash, path = rest.partition("/")
    try:
        urlsplit(f"{scheme}://{authority}")
    except ValueError:
        return f"{scheme}://{HIDDEN}"
    user = _redact_user(before, is_database=scheme.startswith("postgres")) + at
    host = _hide_key(authority) if _AUTHORITY.fullmatch(authority) else HIDDEN
    segments = "/".join(map(_redact_segment, path.split("/")))
    shown = "&".join(map(_redact_parameter, re.split("[&;]", query))) if query else ""
    return f"{scheme}://{user}{host}{slash}{segments}{'?' if query else ''}{shown}"


def redact(text: str, *, secrets: Iterable[str] = ()) -> str:
    """Return the text without these secrets, without strings that look like keys, and with redacted
    URLs.

    A secret is hidden in capital or small letters, with invisible characters between or in wide
    letters, and escaped as in an address, in JSON or in HTML, up to `MAX_LAYERS` kinds of escapes
    in one another, each any number of times. A piece of it of `MIN_PIECE_CHARS` or more is hidden
    where it stands alone. In a code such as base64, or with visible characters between, it is not
    known.
    """
    text = _hide_secrets(text, [one for one in secrets if len(one) >= MIN_SECRET_CHARS])
    text = _URL_IN_TEXT.sub(lambda match: redact_url(match[0]), _PRIVATE_KEY.sub(HIDDEN, text))
    text = _NAMED.sub(_hide_named, _SCHEME_AND_KEY.sub(_hide_after_scheme, text))
    return _WORD.sub(lambda match: _hide_key(match[0]), text)


def looks_like_key(word: str) -> bool:
    """Return whether the word looks like a key: it is a JWT, it is long and random, or it begins
    with a known prefix and goes on at random."""
    word = unquote(word)
    prefix = _PREFIX.match(word)
    if prefix is not None:
        return any(map(_is_random, re.split(r"[-_.]", word[prefix.end() :])))
    if word.startswith("eyJ") and word.count(".") >= 1 and len(word) >= 30:
        return True
    plain = word.rstrip("=")
    if re.fullmatch(r"[0-9a-fA-F]{32,}", plain):
        return not plain.isalpha()
    kinds = (ascii_uppercase, ascii_lowercase, digits)
    n_of_kind = [sum(char in kind for char in plain) for kind in kinds]
    is_mixed = min(n_of_kind) >= 3 or 5 * len(_HUMP.findall(plain)) >= len(plain)
    return len(plain) >= 24 and is_mixed and re.fullmatch(r"[\w+~-]+", plain) is not None


def _is_random(piece: str) -> bool:
    if "*" in piece or "%" in piece or len(piece) >= 16 or (len(piece) >= 10 and piece.isdecimal()):
        return True
    has_letter = not set(piece).isdisjoint(ascii_letters)
    has_digit = not set(piece).isdisjoint(digits)
    is_mixed = has_letter if has_digit else _HUMP.search(piece) or _LONG_HUMP.search(piece)
    return len(piece) >= 8 and bool(is_mixed)


def _hide_key(word: str) -> str:
    return HIDDEN if looks_like_key(word) else word


# -- a known secret, in whatever spelling: it is looked for in readings of the text, each of which
# -- has one more layer of escapes undone, and keeps for every character its place in the text
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reading:
    """A text as somebody reads it: in small letters, without invisible characters and without
    escapes. `places` has for each character, and for the end, its place in the original."""

    text: str
    places: Sequence[int]

    def undo(self) -> _Reading:
        """Return the reading with one more layer of escapes undone."""
        return self.replace(_ESCAPE, _unescape).replace(_ODD, _plain)

    def replace(self, what: re.Pattern[str], make: Callable[[re.Match[str]], str]) -> _Reading:
        parts: list[str] = []
        places: list[int] = []
        at = 0
        for match in what.finditer(self.text):
            made = make(match)
            parts += self.text[at : match.start()], made
            places += self.places[at : match.start()]
            places += [self.places[match.start()]] * len(made)
            at = match.end()
        parts.append(self.text[at:])
        places += self.places[at:]
        return _Reading("".join(parts).lower(), places)

    def find(self, secret: str) -> set[tuple[int, int]]:
        """Return where the secret begins and ends in the original, for each place where it is."""
        found = re.finditer(re.escape(secret), self.text)
        return {(self.places[one.start()], self.places[one.end()]) for one in found}


def _read(text: str) -> list[_Reading]:
    """Return the readings of the text, from the one with all its escapes on."""
    if not _NOT_PLAIN.search(text):
        return [_Reading(text.lower(), range(len(text) + 1))]
    readings = [_Reading(text, range(len(text) + 1)).replace(_ODD, _plain)]
    while len(readings) <= MAX_LAYERS:
        further = readings[-1].undo()
        if further.text == readings[-1].text:
            break
        readings.append(further)
    return readings


def _plain(match: re.Match[str]) -> str:
    """Return what the character is read as."""
    return unicodedata.normalize("NFKC", UNSEEN.sub("", match[0])).casefold()


def _unescape(match: re.Match[str]) -> str:
    if match["bytes"]:
        return bytes.fromhex(_PERCENT.sub("", match["bytes"])).decode("utf-8", "replace")
    if match["entity"]:
        entity = f"&{match['entity']};"
        read = html.unescape(entity)
        return match[0] if read == entity else read
    return chr(int(match["code"], 16)) if match["code"] else match["plain"]


@lru_cache(maxsize=N_CACHED_SECRETS)
def _spellings(secret: str) -> frozenset[str]:
    """Return the readings of a secret: with its escapes, if any, and without them."""
    return frozenset(
        reading.text for reading in _read(secret) if len(reading.text) >= MIN_SECRET_CHARS
    )


def _hide_secrets(text: str, secrets: Sequence[str]) -> str:
    spellings = {spelling for secret in secrets for spelling in _spellings(secret)}
    if not spellings:
        return text
    readings = _read(text)
    found = {
        span for spelling in spellings for reading in readings for span in reading.find(spelling)
    }
    return _hide_pieces(_hide_spans(text, sorted(found)), "\n".join(spellings))


def _hide_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end in spans:
        if start >= at:
            parts += text[at:start], HIDDEN
        at = max(at, end)
    return "".join([*parts, text[at:]])


def _hide_pieces(text: str, spellings: str) -> str:
    def hide(match: re.Match[str]) -> str:
        pieces = (reading.text for reading in _read(match[0]))
        is_known = any(len(piece) >= MIN_PIECE_CHARS and piece in spellings for piece in pieces)
        return HIDDEN if is_known else match[0]

    for pattern in _PIECES:
        text = pattern.sub(hide, text)
    return text


def _redact_user(text: str, *, is_database: bool) -> str:
    if not text:
        return ""
    user, colon, _ = text.partition(":")
    is_shown = _PLAIN_NAME.fullmatch(user) and not looks_like_key(user) and (colon or is_database)
    return (user if is_shown else HIDDEN) + (f":{HIDDEN}" if colon else "")


def _redact_segment(text: str) -> str:
    name, sign, _ = text.partition(";")  # parameters follow it
    return _hide_key(name) + (f";{HIDDEN}" if sign else "")


def _redact_parameter(pair: str) -> str:
    name, equals, value = pair.partition("=")
    if not equals or not _PLAIN_NAME.fullmatch(name) or looks_like_key(name):
        return HIDDEN
    return f"{name}={_hide_key(value) if name.casefold() in _HARMLESS else HIDDEN}"


def _hide_after_scheme(match: re.Match[str]) -> str:
    is_key = _is_random(match[3]) or any(map(_is_random, re.split(r"[-_.]", match[3])))
    return f"{match[1]}{match[2]}{HIDDEN}" if is_key else match[0]


def _hide_named(match: re.Match[str]) -> str:
    """Hide the value in `password=anything`; after a colon only if it is not a plain word, so
    `password: required` stays."""
    value, is_quoted = match["value"], bool(match["sign"].strip("=: "))
    is_word = match["equals"] == ":" and value.isalpha()
    is_plain = is_word or value.casefold() in ("none", "null", "true", "false", HIDDEN)
    is_said = is_plain and not is_quoted
    return match[0] if is_said else f"{match['name']}{match['sign']}{HIDDEN}"
