"""Decides which requests are let in, by tokens, one-time codes, sessions and host names. Also adds
security headers to all answers.

It is the outermost layer: a refused request reaches no route. Refusals are fixed texts that contain
nothing of the request. Body sizes are limited in `wire.py`, slow clients in `server.py`.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from babyagi.errors import RequestError, SettingsError
from babyagi.files import private
from babyagi.net.addresses import is_loopback
from babyagi.tasks import Level

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_FILE = "serve_token"
CODE_S = 120.0
SESSION_S = 7 * 86_400.0
MAX_CODES = 100
MAX_WRONG_TOKENS = 20  # of one address in `WRONG_S` seconds
WRONG_S = 60
MAX_WRONG_ADDRESSES = 1_000
MAX_HEADER_VALUE_CHARS = 8_000
SAFE_METHODS = ("GET", "HEAD")
# paths without a check of key and host name: they reveal nothing, and monitors use any host name
OPEN_PATHS = ("/healthz", "/readyz")
PUBLIC_PREFIXES = ("/static/", "/open")  # paths that need no key
ACCESS = "babyagi.access"  # the key of the client's `Access` in the scope of a request

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The level of a client that was let in, and its session; '' for a program, which has a token
    instead."""

    level: Level
    session: str = ""


# -- keys
# --------------------------------------------------------------------------------------------------


def load_token(home: Path, *, new_token: Callable[[], str]) -> str:
    """Return the server's token from its file in the home folder. If there is no file, create it,
    readable only by its owner. Raises `SettingsError` if the file is empty."""
    path = home / TOKEN_FILE
    token = private.keep_word(path, new_word=new_token)
    if not token:
        raise SettingsError(
            f"the token in {path} is empty",
            fix=f"delete it with: rm {path}; the next start of the server creates a new token",
            guide="serve",
        )
    return token


def renew_token(home: Path, *, new_token: Callable[[], str]) -> None:
    """Replace the server's token in the home folder by a new one."""
    private.write_file(home / TOKEN_FILE, new_token())


def read_word(path: Path) -> str:
    """Return what stands in a small file; '' if there is none."""
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8").strip()
    return ""


class Keys:
    """Makes and checks all credentials of the server.

    The token gives the level admin. Tokens of other levels, sessions and form tokens are derived
    from it: they stay valid after a restart, and end if the token changes. One-time codes, and the
    numbers of wrong tokens, are kept in memory and end with the process.

    Args:
        now_s: returns the current time in seconds since the epoch.
        new_word: returns a random text that cannot be guessed.
    """

    def __init__(
        self, token: str, *, now_s: Callable[[], float], new_word: Callable[[], str]
    ) -> None:
        self._token = token
        self._now_s = now_s
        self._new_word = new_word
        self._code_by_digest: dict[str, tuple[Level, float]] = {}
        self._wrong_by_address: dict[str, tuple[int, float]] = {}  # how many, and until when

    def renew(self, token: str) -> bool:
        """Replace the token, which ends all derived tokens, sessions and codes. Return whether the
        token has changed."""
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
        """Return the level of a token; None if the token is invalid. The comparison takes constant
        time."""
        tokens = [(level, self.token(level)) for level in Level]
        found = [one for one, token in tokens if hmac.compare_digest(text.encode(), token.encode())]
        return found[-1] if found else None

    def are_too_many_wrong(self, address: str) -> bool:
        """Count a wrong token, session or code that came from the address. Return whether there
        were so many that it should wait `WRONG_S` before it sends another one. A valid one is never
        refused for wrong ones."""
        now_s, counts = self._now_s(), self._wrong_by_address
        n, until_s = counts.pop(address, (0, 0.0))
        if not now_s < until_s <= now_s + WRONG_S:  # it is over, or the clock was set back
            n, until_s = 0, now_s + WRONG_S
        while len(counts) >= MAX_WRONG_ADDRESSES:
            counts.pop(next(iter(counts)))
        counts[address] = (n + 1, until_s)
        return n >= MAX_WRONG_TOKENS

    def new_code(self, level: Level) -> str:
        """Return a one-time code, which a browser can exchange for a session within `CODE_S`."""
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
        now_s, known = self._now_s(), self._code_by_digest.items()
        self._code_by_digest = {key: one for key, one in known if one[1] > now_s}

    def new_session(self, level: Level) -> str:
        said = f"{level.word}.{int(self._now_s() + SESSION_S)}.{self._new_word()}"
        return f"{said}.{self._mark(f'session:{said}')}"

    def has_made(self, session: str) -> bool:
        """Return whether the session is one of this server's, which may be over."""
        said, _, mark = session.rpartition(".")
        return hmac.compare_digest(mark.encode(), self._mark(f"session:{said}").encode())

    def level_of_session(self, session: str) -> Level | None:
        word, _, rest = session.partition(".")
        until = rest.partition(".")[0]
        if not self.has_made(session) or not until.isdecimal() or int(until) <= self._now_s():
            return None
        return next((level for level in Level if level.word == word), None)

    def form_word(self, session: str) -> str:
        """Return the form token of a session. A browser must send it, in addition to the cookie,
        with each request that changes something."""
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
    """The host names under which the server answers. Requests with any other name are refused:
    otherwise a page of another site could reach the server by letting its own name resolve to the
    server's address (DNS rebinding).

    If the server can be reached from other machines, all IP addresses are accepted as well, because
    DNS rebinding needs a name.

    Args:
        port: the port on which the server listens.
        host: the address on which the server listens.
        more: additional names, from BABYAGI_SERVE_NAMES.
    """

    port: int
    host: str
    more: tuple[str, ...] = ()

    def has(self, asked: str) -> bool:
        """Return whether the server answers requests with this `Host` header."""
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


def is_local(host: str) -> bool:
    """Return whether a server that listens on `host` can only be reached from this machine."""
    with suppress(ValueError):
        if ipaddress.ip_address(host.strip("[]")).is_unspecified:
            return False
    return is_loopback(host)


def _split_host(asked: str) -> tuple[str, int]:
    """Return (host in lower case, port) from a `Host` header. The port is 80 if there is none; the
    host is '' if the header is invalid."""
    match = re.fullmatch(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?", asked)
    if match is None:
        return "", 0
    return match[1].casefold(), int(match[2] or 80)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.casefold()


def _is_address(host: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(host.strip("[]")))
    return False


# -- the middleware
# --------------------------------------------------------------------------------------------------


Refusal = Callable[[], RequestError]

NOT_ASKED_SO: Refusal = partial(
    RequestError,
    "the server does not answer to this host name",
    "add the name to BABYAGI_SERVE_NAMES, or use one that the server knows",
    status=421,
)
FOREIGN: Refusal = partial(
    RequestError,
    "pages of other sites may not send requests to this server",
    "by its header Origin or Sec-Fetch-Site, the request comes from such a page",
    status=403,
)
MALFORMED: Refusal = partial(
    RequestError,
    "the request cannot be read",
    "its headers are invalid, or contradict each other",
    status=400,
)
LOCKED: Refusal = partial(
    RequestError,
    "a key is required",
    "`babyagi serve open` opens the board in a browser; a program must send "
    "`Authorization: Bearer TOKEN` with a token that `babyagi serve open --token read` prints",
    status=401,
)
WRONG_KEY: Refusal = partial(
    RequestError,
    "the key is not valid",
    "it may be misspelled, belong to another home, or have been ended by "
    "`babyagi serve open --renew`; send `Authorization: Bearer TOKEN` with a token that "
    "`babyagi serve open --token read` prints",
    status=401,
)
TOO_MANY_WRONG: Refusal = partial(
    RequestError,
    "too many keys from this address were not valid",
    "wait, then send `Authorization: Bearer TOKEN` with a token that "
    "`babyagi serve open --token read` prints; a valid one is let in at any time",
    status=429,
)
UNSIGNED: Refusal = partial(
    RequestError,
    "the request does not come from a page of this server",
    "to change something, a browser must send the header Origin, and in X-Babyagi-Form the form "
    "token of the page",
    status=403,
)


def wants_page(scope: Scope) -> bool:
    """Return whether a person is to read the answer, and not a program."""
    return not str(scope["path"]).startswith("/api/")


class Door:
    """ASGI middleware that passes on requests that have a valid key or go to a public path, and
    refuses all others.

    Args:
        refuse: returns the answer to a refused request.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: Keys,
        names: Names,
        refuse: Callable[[RequestError, Scope], ASGIApp],
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
                message = {**message, "headers": [*message["headers"], *HEADERS]}
            await send(message)

        try:
            scope[ACCESS] = self._let_in(scope, _read_head(scope))
        except RequestError as refusal:
            await self._refuse(refusal, scope)(scope, receive, send_safely)
            return
        await self._app(scope, receive, send_safely)

    def _let_in(self, scope: Scope, head: Mapping[str, str]) -> Access | None:
        path = str(scope["path"])
        if path in OPEN_PATHS and scope["method"] in SAFE_METHODS:
            return None
        if not path.startswith("/"):
            raise MALFORMED()
        asked = head.get("host", "")
        if not self._names.has(asked):
            raise NOT_ASKED_SO()
        if head.get("origin", f"http://{asked}") not in (f"http://{asked}", f"https://{asked}"):
            raise FOREIGN()
        access = self._find_access(scope, head)
        if access is not None and access.session:
            self._require_own_page(scope, head, access)
        return access

    def _find_access(self, scope: Scope, head: Mapping[str, str]) -> Access | None:
        """Return the client's access; None for a public path without a valid key.

        Raises:
            RequestError: there is no valid key. A session of this server that is over is no wrong
                one.
        """
        scheme, _, token = head.get("authorization", "").partition(" ")
        if has_token := "authorization" in head:
            session, is_wrong = "", True
            level = self._keys.level_of_token(token) if scheme.casefold() == "bearer" else None
        else:
            session = _find_cookie(head.get("cookie", ""), cookie_name(self._names.port))
            level = self._keys.level_of_session(session)
            is_wrong = bool(session) and not self._keys.has_made(session)
        if level is not None:
            return Access(level=level, session=session)
        if str(scope["path"]).startswith(PUBLIC_PREFIXES):
            return None
        address = scope["client"][0] if scope.get("client") else ""
        if is_wrong and self._keys.are_too_many_wrong(address):
            raise TOO_MANY_WRONG()
        raise WRONG_KEY() if has_token else LOCKED()

    def _require_own_page(self, scope: Scope, head: Mapping[str, str], access: Access) -> None:
        """Check that a request with a browser's session comes from a page of this server. The
        session does not prove it, because a browser sends its cookies with requests from any page.

        A request that changes something also needs the form token: in a header, or if a form was
        sent, in the body, where the route checks it.

        Raises:
            RequestError: the request comes from another page, or has no valid form token.
        """
        if head.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise FOREIGN()
        if scope["method"] in SAFE_METHODS:
            return
        is_form = head.get("content-type", "").startswith("application/x-www-form-urlencoded")
        word = head.get("x-babyagi-form", "")
        is_said = is_form or self._keys.is_form_word(word, access.session)
        if "origin" not in head or not is_said:
            raise UNSIGNED()


def cookie_name(port: int) -> str:
    """Return the name of the session's cookie. It contains the port, because a browser sends a
    host's cookies to all ports of the host."""
    return f"babyagi_{port}"


def _read_head(scope: Scope) -> dict[str, str]:
    """Return those headers of the request that are checked. Raises `RequestError` if one of them
    occurs twice or is too long."""
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
            raise MALFORMED()
        head[key] = value.decode("latin-1")
    if "transfer-encoding" in head and "content-length" in head:
        raise MALFORMED()
    return head


def _find_cookie(text: str, name: str) -> str:
    pairs = (pair.strip().partition("=") for pair in text.split(";"))
    found = [value for key, _, value in pairs if key == name]
    return found[0] if len(found) == 1 else ""
