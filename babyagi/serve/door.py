"""Who may access the server: tokens, one-time codes, sessions, host names, and the security headers
of every answer.

It is the outermost layer: no refused request reaches a route. Refusals are fixed texts that contain
nothing of the request. Body sizes are bounded in `wire.py`, slow clients in `server.py`.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from babyagi.errors import SettingsError
from babyagi.files import private
from babyagi.net.addresses import is_loopback

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_FILE = "serve_token"
CODE_S = 120.0
SESSION_S = 7 * 86_400.0
MAX_CODES = 100
MAX_HEADER_VALUE_CHARS = 8_000
SAFE_METHODS = ("GET", "HEAD")
OPEN_PATHS = ("/healthz", "/readyz")  # they reveal nothing, and monitors use any host name
PUBLIC_PREFIXES = ("/static/", "/open")
ACCESS = "babyagi.access"  # keys in the scope of a request

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # with `no-referrer` a browser sends `Origin: null` with a form
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)


class Level(IntEnum):
    """What a visitor may do; each level includes those before it."""

    READ = 1
    STEER = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A visitor: their level, and the session of a browser; '' for a program with a token."""

    level: Level
    session: str = ""


# -- keys
# --------------------------------------------------------------------------------------------------


def load_token(home: Path, *, new_token: Callable[[], str]) -> str:
    """Return the token of this home. The first use creates it, readable only by its owner."""
    path = home / TOKEN_FILE
    token = private.keep_word(path, new_word=new_token)
    if not token:
        raise SettingsError(
            f"the token in {path} is empty",
            fix=f"rm {path}; the next start creates a new one",
            guide="serve",
        )
    return token


def renew_token(home: Path, *, new_token: Callable[[], str]) -> None:
    """Replace the token of this home by a new one."""
    made = home / f"{TOKEN_FILE}.{os.getpid()}"
    private.write_file(made, new_token())
    made.replace(home / TOKEN_FILE)


def read_token(home: Path) -> str:
    """Return the token of this home; '' when there is none."""
    with suppress(OSError, UnicodeDecodeError):
        return (home / TOKEN_FILE).read_text(encoding="utf-8").strip()
    return ""


class Keys:
    """All credentials, derived from one token.

    The token itself is that of an admin. Tokens of the other levels, sessions and form tokens are
    derived from it, so they survive a restart and end when the token changes. One-time codes are
    kept in memory: a restart ends them.

    Args:
        now_s: seconds of a clock.
        new_word: returns a text that cannot be guessed.
    """

    def __init__(
        self, token: str, *, now_s: Callable[[], float], new_word: Callable[[], str]
    ) -> None:
        self._token = token
        self._now_s = now_s
        self._new_word = new_word
        self._code_by_digest: dict[str, tuple[Level, float]] = {}

    def renew(self, token: str) -> bool:
        """Replace the token, which ends all tokens, sessions and codes. Return False if it is the
        same token."""
        if token == self._token:
            return False
        self._token = token
        self._code_by_digest = {}
        return True

    def token(self, level: Level) -> str:
        if level is Level.ADMIN:
            return self._token
        return f"{level.word}-{self._mark(f'token:{level.word}')}"

    def level_of_token(self, text: str) -> Level | None:
        """Return the level of the token, or None; compares in constant time."""
        found = None
        for level in Level:
            if hmac.compare_digest(text.encode(), self.token(level).encode()):
                found = level
        return found

    def new_code(self, level: Level) -> str:
        """Return a code that opens one session, once, within a short time."""
        self._forget_old()
        while len(self._code_by_digest) >= MAX_CODES:
            self._code_by_digest.pop(next(iter(self._code_by_digest)))
        code = self._new_word()
        self._code_by_digest[_digest(code)] = (level, self._now_s() + CODE_S)
        return code

    def take_code(self, code: str) -> Level | None:
        self._forget_old()
        level, _ = self._code_by_digest.pop(_digest(code), (None, 0.0))
        return level

    def _forget_old(self) -> None:
        now_s = self._now_s()
        kept = {key: one for key, one in self._code_by_digest.items() if one[1] > now_s}
        self._code_by_digest = kept

    def new_session(self, level: Level) -> str:
        said = f"{level.word}.{int(self._now_s() + SESSION_S)}.{self._new_word()}"
        return f"{said}.{self._mark(f'session:{said}')}"

    def level_of_session(self, session: str) -> Level | None:
        said, _, mark = session.rpartition(".")
        is_ours = hmac.compare_digest(mark.encode(), self._mark(f"session:{said}").encode())
        word, _, rest = said.partition(".")
        until = rest.partition(".")[0]
        if not is_ours or not until.isdecimal() or int(until) <= self._now_s():
            return None
        return next((level for level in Level if level.word == word), None)

    def form_word(self, session: str) -> str:
        """Return the token that a change in a browser's session must send beside the cookie."""
        return self._mark(f"form:{session}")

    def is_form_word(self, word: str, session: str) -> bool:
        return hmac.compare_digest(word.encode(), self.form_word(session).encode())

    def _mark(self, text: str) -> str:
        return hmac.new(self._token.encode(), text.encode(), hashlib.sha256).hexdigest()


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


# -- names
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The host names under which the server answers. A page of another name that resolves to this
    address (DNS rebinding) is refused.

    If the server listens beyond this machine, any IP address is accepted as well: no page of
    another name can have it.
    """

    port: int
    host: str
    more: tuple[str, ...] = ()

    def has(self, asked: str) -> bool:
        """Return whether a `Host` header is one of the names."""
        host, port = _split_host(asked)
        if not host:
            return False
        if asked.casefold() in self.more or (host in self.more and port in (80, 443)):
            return True
        if port != self.port:
            return False
        if host in ("127.0.0.1", "localhost", "[::1]", _bracketed(self.host)):
            return True
        return not is_local(self.host) and _is_address(host)

    def has_origin(self, origin: str, asked: str) -> bool:
        """Return whether an `Origin` header names this server under the requested host."""
        with suppress(ValueError):
            parts = urlsplit(origin)
            is_bare = origin == f"{parts.scheme}://{parts.netloc}"
            return parts.scheme in ("http", "https") and is_bare and parts.netloc == asked
        return False


def is_local(host: str) -> bool:
    """Return whether only this machine can reach a server at the address."""
    with suppress(ValueError):
        if ipaddress.ip_address(host.strip("[]")).is_unspecified:
            return False
    return is_loopback(host)


def _split_host(asked: str) -> tuple[str, int]:
    """Return the host in lower case and the port; '' if it is not `HOST` or `HOST:PORT`."""
    match = re.fullmatch(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?", asked)
    if match is None:
        return "", 0
    return match[1].casefold(), int(match[2] or 80)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.casefold()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


# -- the middleware
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request is refused: an HTTP status and fixed texts."""

    status: int
    title: str
    detail: str


class RefusedError(Exception):
    """The request is refused."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.title)
        self.refusal = refusal


NOT_ASKED_SO = Refusal(
    status=421,
    title="the server does not answer to this host name",
    detail="only known names are answered: BABYAGI_SERVE_NAMES adds others",
)
FOREIGN = Refusal(
    status=403,
    title="a page of another site may not send requests here",
    detail="the header Origin names another page than this server's",
)
MALFORMED = Refusal(
    status=400,
    title="the request cannot be read",
    detail="its headers are invalid or contradict each other",
)
LOCKED = Refusal(
    status=401,
    title="a key is required",
    detail="a browser: type `babyagi open`; a program: send `Authorization: Bearer TOKEN`, with "
    "what `babyagi open --token read` prints",
)
UNSIGNED = Refusal(
    status=403,
    title="the change does not come from this server's page",
    detail="a browser's change needs the header Origin, and X-Babyagi-Form with its page's token",
)


class Door:
    """Middleware that passes on only requests with a valid key.

    Args:
        refuse: answers a refused request; it is told whether the request was for a page in a
            browser.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: Keys,
        names: Names,
        refuse: Callable[[Refusal, bool], ASGIApp],
    ) -> None:
        self._app = app
        self._keys = keys
        self._names = names
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*_without_ours(message["headers"]), *HEADERS]}
            await send(message)

        try:
            head = _read_head(scope)
            scope[ACCESS] = self._let_in(scope, head)
        except RefusedError as refused:
            is_page = not str(scope["path"]).startswith("/api/") and scope["method"] == "GET"
            await self._refuse(refused.refusal, is_page)(scope, receive, send_safely)
            return
        await self._app(scope, receive, send_safely)

    def _let_in(self, scope: Scope, head: Mapping[str, str]) -> Access | None:
        path = str(scope["path"])
        if path in OPEN_PATHS and scope["method"] in SAFE_METHODS:
            return None
        if not path.startswith("/"):
            raise RefusedError(MALFORMED)
        asked = head.get("host", "")
        if not self._names.has(asked):
            raise RefusedError(NOT_ASKED_SO)
        origin = head.get("origin")
        if origin is not None and not self._names.has_origin(origin, asked):
            raise RefusedError(FOREIGN)
        access = self._find_access(head, port=self._names.port)
        if access is None:
            if path.startswith(PUBLIC_PREFIXES):
                return None
            raise RefusedError(LOCKED)
        if access.session:
            self._require_own_page(scope, head, access)
        return access

    def _find_access(self, head: Mapping[str, str], *, port: int) -> Access | None:
        said = head.get("authorization")
        if said is not None:
            scheme, _, token = said.partition(" ")
            level = self._keys.level_of_token(token) if scheme.casefold() == "bearer" else None
            return None if level is None else Access(level=level)
        session = _find_cookie(head.get("cookie", ""), cookie_name(port))
        level = self._keys.level_of_session(session) if session else None
        return None if level is None else Access(level=level, session=session)

    def _require_own_page(self, scope: Scope, head: Mapping[str, str], access: Access) -> None:
        """Require more than the cookie for a change, because a browser sends cookies with requests
        from any page. For a form, its route checks the form token in the body."""
        if head.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise RefusedError(FOREIGN)
        if scope["method"] in SAFE_METHODS:
            return
        is_form = head.get("content-type", "").startswith("application/x-www-form-urlencoded")
        word = head.get("x-babyagi-form", "")
        is_said = is_form or self._keys.is_form_word(word, access.session)
        if "origin" not in head or not is_said:
            raise RefusedError(UNSIGNED)


def cookie_name(port: int) -> str:
    """Return a cookie name that contains the port: a browser sends the cookies of a host to all its
    ports."""
    return f"babyagi_{port}"


def _read_head(scope: Scope) -> dict[str, str]:
    """Return the headers that are checked. Raises `RefusedError` when one occurs twice."""
    looked_at = (
        "host origin authorization cookie content-type sec-fetch-site x-babyagi-form "
        "transfer-encoding content-length"
    ).split()
    head: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1")
        if key not in looked_at:
            continue
        if key in head or len(value) > MAX_HEADER_VALUE_CHARS:
            raise RefusedError(MALFORMED)
        head[key] = value.decode("latin-1")
    if "transfer-encoding" in head and "content-length" in head:
        raise RefusedError(MALFORMED)
    return head


def _find_cookie(text: str, name: str) -> str:
    found = [
        value
        for key, _, value in (pair.strip().partition("=") for pair in text.split(";"))
        if key == name
    ]
    return found[0] if len(found) == 1 else ""


def _without_ours(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    ours = {name for name, _ in HEADERS}
    return [(name, value) for name, value in headers if name not in ours]
