"""How a setting is declared, and the parsers that turn its text into a value.

A parser raises ValueError with the expected form, worded to follow "NAME must be ".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from babyagi.net.addresses import host_of, is_web_address
from babyagi.redaction import redact_url
from babyagi.text import C1_CONTROLS, CONTROLS, clean

T = TypeVar("T")
N = TypeVar("N", int, float)

MAX_TEXT_BYTES = 1_000_000
MIN_TOKEN_CHARS = 20
LEAST_LIMIT = 0.001  # a lower limit may be rounded to 0, which would mean no limit
_ESCAPE_SEQUENCES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])"
_DURATION = r"(?:([0-9.]+)d)?(?:([0-9.]+)h)?(?:([0-9.]+)m)?(?:([0-9.]+)s?)?"
_SECONDS_PER_PART = (86_400.0, 3_600.0, 60.0, 1.0)


class Secret:
    """A text that no repr, format or traceback shows. Only `reveal` returns it. An empty secret is
    falsy.

    `hint` is what may be shown to a person who decides whether to trust the file that sets the
    secret: a whole command, or an address without its secrets.
    """

    __slots__ = ("_value", "hint")

    def __init__(self, value: str = "", *, hint: str = "***") -> None:
        self._value, self.hint = value, hint

    def reveal(self) -> str:
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "***" if self._value else "''"


def default_home() -> Path:
    from platformdirs import user_data_path

    return user_data_path("babyagi", appauthor=False)


def parse_text(text: str) -> str:
    """Parse a text of several lines, up to MAX_TEXT_BYTES long. Terminal escapes and control
    characters are removed. Line ends become newlines; tabs stay."""
    plain = re.sub(_ESCAPE_SEQUENCES, "", text.replace("\r\n", "\n").replace("\r", "\n"))
    cleaned = clean(re.sub(f"[{CONTROLS}{C1_CONTROLS}]", "", plain)).strip()
    if len(cleaned.encode()) > MAX_TEXT_BYTES:
        raise ValueError(f"a text of at most {MAX_TEXT_BYTES:,} bytes")
    return cleaned


def parse_name(text: str) -> str:
    """Parse one printable line, for values that go into file names, HTTP headers and table rows."""
    name = text.strip()
    if len(name) > 4096 or not name.isprintable():
        raise ValueError("one line of at most 4096 printable characters")
    return name


def parse_secret(text: str) -> Secret:
    """Parse a key that can be sent in an HTTP header."""
    key = text.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ValueError("one word of printable ASCII characters")
    return Secret(key)


def parse_token(text: str) -> Secret:
    """Parse a token that is long enough not to be guessed."""
    token = parse_secret(text)
    if token and len(token.reveal()) < MIN_TOKEN_CHARS:
        raise ValueError(
            f"at least {MIN_TOKEN_CHARS} characters, such as the output of `openssl rand -hex 32`"
        )
    return token


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def parse_notify(text: str) -> Secret:
    """Parse the address or the command line of BABYAGI_NOTIFY. It is a secret, because anyone who
    knows the address of a webhook can use it."""
    import shlex

    target = parse_name(text)
    is_address = target.startswith(("http://", "https://"))
    try:
        # ftp://…, and http:// in capitals, are no command either
        is_usable = not _SCHEME.match(target) and bool(shlex.split(target))
    except ValueError:
        is_usable = False
    if is_address:
        is_usable = is_web_address(target) and "@" not in urlsplit(target).netloc
    if not is_usable:
        raise ValueError(
            "a command, or an address such as http://127.0.0.1:8080/hook, without user or password"
        )
    return Secret(target, hint="/".join([*target.split("/")[:3], "***"]) if is_address else target)


def parse_task_store(text: str) -> Secret:
    """Parse the address of a task store. It is a secret, because it may contain a password."""
    address = parse_name(text)
    try:
        parts = urlsplit(address)
        is_file = parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1
        is_server = parts.scheme in ("postgresql", "postgres") and len(parts.path) > 1
        # with an @ behind the host, a part of the password would be read as the host
        has_late_at = "@" in parts.path + parts.query + parts.fragment
        is_server = is_server and parts.port != 0 and not has_late_at
    except ValueError:
        is_file = is_server = False
    if not (is_file or is_server):
        raise ValueError(
            "sqlite:///PATH or postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with / ? # @ "
            "in the password as %2F %3F %23 %40"
        )
    return Secret(address, hint=redact_url(address))


def parse_url(text: str) -> str:
    """Parse an http or https address, and remove its trailing slash. An address with a password or
    a key is refused, because addresses are shown."""
    address = parse_name(text)
    if not is_web_address(address) or set("@?#") & set(address):
        raise ValueError(
            "an address such as http://127.0.0.1:8080/v1, without user, password or parameters"
        )
    return address.rstrip("/")


def parse_proxy(text: str) -> Secret:
    """Parse the address of a proxy. Unlike other addresses it may contain a password, and may lack
    its `http://`."""
    name = parse_name(text)
    address = name if "://" in name else f"http://{name}"
    if not is_web_address(address):
        raise ValueError("http://HOST:PORT or http://USER:PASSWORD@HOST:PORT (not a SOCKS proxy)")
    return Secret(address)


def parse_path(text: str) -> Path:
    """Parse a path and expand its `~`. A relative path stays relative; the loader resolves it
    later, against the working folder."""
    try:
        return Path(parse_name(text)).expanduser()
    except RuntimeError:
        raise ValueError("a path (no user of this machine has the name after its ~)") from None


def parse_paths(text: str) -> tuple[Path, ...]:
    return tuple(parse_path(word) for word in text.split())


def names_of(*names: str) -> Callable[[str], tuple[str, ...]]:
    """Return a parser for a list of some of these names, separated by commas or blanks."""

    def parse(text: str) -> tuple[str, ...]:
        given = tuple(dict.fromkeys(text.replace(",", " ").split()))
        if unknown := [name for name in given if name not in names]:
            raise ValueError(
                f"a list, separated by commas, of these names: {', '.join(names)}; "
                f"{unknown[0][:80]} is none of them"
            )
        return given

    return parse


def parse_pipeline(text: str) -> str:
    """Parse the address of a Haystack server, or WORKSPACE/NAME of a pipeline on deepset Cloud."""
    if "://" in text:
        return parse_url(text)
    name = parse_name(text)
    if not re.fullmatch(r"[^/?#]{1,200}/[^/?#]{1,200}", name):
        raise ValueError("WORKSPACE/NAME on deepset Cloud, or https://HOST of a Haystack server")
    return name


def parse_role_models(*roles: str) -> Callable[[str], tuple[str, ...]]:
    """Return a parser for a list of ROLE=MODEL, separated by commas or blanks."""

    def parse(text: str) -> tuple[str, ...]:
        given = tuple(re.split(r"[\s,]+(?=\w+=)", parse_name(text)))
        pairs = [one.partition("=") for one in given]
        if not all(role in roles and model for role, _, model in pairs):
            raise ValueError(f"a list of ROLE=MODEL, where ROLE is one of {', '.join(roles)}")
        return given

    return parse


def parse_price(text: str) -> tuple[float, float]:
    """Parse IN/OUT, two numbers of US dollars, which may also be separated by a blank."""
    what = "two numbers of US dollars from 0 to 1e+06, as 0.25/2"
    try:
        read, written = map(number(0, 1e6), text.replace("/", " ").split())
    except ValueError:
        raise ValueError(what) from None
    return read, written


def parse_search(*engines: str) -> Callable[[str], str]:
    """Return a parser for one of these engines, or for the address of a server."""

    def parse(text: str) -> str:
        return parse_url(text) if "://" in text else choice(*engines)(text)

    return parse


def parse_hosts(text: str) -> tuple[str, ...]:
    """Parse host names, each with an optional port, separated by commas or blanks, and normalise
    them with `host_of`."""
    given = text.casefold().replace(",", " ").split()
    plain = (host for host in given if not set(host) & set("/@?#\\"))
    hosts = tuple(dict.fromkeys(host_of(f"https://{host}") for host in plain))
    if "" in hosts or (given and not hosts):
        raise ValueError("a list of HOST or HOST:PORT, separated by commas")
    return hosts


def parse_switch(text: str) -> bool:
    word = text.strip().casefold()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError("true or false")


def parse_presence(text: str) -> bool:
    """Return True for any value that is not empty, even `false`, because https://no-color.org
    defines that only the presence of the variable counts."""
    return bool(text)


def parse_duration_s(text: str) -> float:
    """Parse a duration such as `90`, `90s`, `30m`, `2h`, `1h30m` or `1d`, and return its
    seconds."""
    match = re.fullmatch(_DURATION, text.replace(" ", "").casefold())
    try:
        if not match or not any(match.groups()):
            raise ValueError
        parts = zip(match.groups("0"), _SECONDS_PER_PART, strict=True)
        seconds = sum(float(part) * unit_s for part, unit_s in parts)
    except ValueError:
        raise ValueError("a time such as 90s, 30m or 1h30m") from None
    if seconds > 3_155_760_000:
        raise ValueError("a time of at most 100 years")
    return seconds


def whole(low: int, high: int = 1_000_000_000_000) -> Callable[[str], int]:
    return _within(int, "a whole number", low, high)


def number(low: float, high: float, unit: str = "a number") -> Callable[[str], float]:
    return _within(float, unit, low, high, form="g")


def _within(
    read: Callable[[str], N], what: str, low: N, high: N, form: str = ""
) -> Callable[[str], N]:
    def parse(text: str) -> N:
        try:
            value = read(text)
        except ValueError:
            raise ValueError(what) from None
        if not low <= value <= high:
            raise ValueError(f"{what} from {low:{form}} to {high:{form}}")
        return value

    return parse


def seconds(low: float, high: float) -> Callable[[str], float]:
    return number(low, high, "a number of seconds")


def choice(*names: str) -> Callable[[str], str]:
    """Return a parser for one of these names. A name may be shortened while it is unambiguous, as
    in the original BabyAGI, where `-m l` means local."""

    def parse(text: str) -> str:
        found = [name for name in names if name.startswith(text.strip().casefold())]
        if len(found) != 1:
            raise ValueError(f"one of {', '.join(names)}")
        return found[0]

    return parse


def lower_limit(value: Any, default: Any) -> bool:
    """Return whether the value is a limit that does not exceed the default. For both, 0 means no
    limit."""
    return bool(LEAST_LIMIT <= value <= (default or value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The declaration of a setting: its names, the parser of its text, and its help.

    Attributes:
        default: the value of a setting that nobody sets; None also for a default that is computed.
        variables: names of environment variables. The first is the current name, the others are
            older ones. A setting without variables and flags is set from Python alone.
        flags: the flags on the command line, such as `-m` and `--model`; empty if the setting has
            none.
        choices: the possible values, for help and completion; empty for free text.
        default_text: what help says instead of the default, for a default that is computed or not
            clear in its plain form.
        takes_empty: an empty value means "none" and overrides sources of lower precedence. If
            False, an empty value counts as not set.
        takes_many: the flag may be repeated, and the loader is given a tuple. Without it, the last
            of several flags holds, which is right for a number and wrong for a folder or a list.
        untrusted: whether a value other than the default may be taken from an untrusted file, or a
            function of the value and the default that returns it. Such a value must not be able to
            run programs, send data, read files or spend more money.
        key_for: for a key: the settings with the addresses to which it is sent; empty if it is only
            sent to its provider. An untrusted file may set the key if these addresses are the
            provider's own, on this machine, or in the same file. None for a setting that is not a
            key.
        is_listed: False for what is rarely set, or a name of the original BabyAGI, of the shell
            or of a service, which the example file only mentions.
        section: the title of a new section of the example file that begins with this setting; empty
            within a section.
    """

    help: str
    default: Any = None
    variables: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    parse: Callable[[str], object] = parse_name
    metavar: str = "TEXT"
    choices: tuple[str, ...] = ()
    default_text: str = ""
    section: str = ""
    is_listed: bool = True
    takes_empty: bool = False
    takes_many: bool = False
    untrusted: bool | Callable[[Any, Any], bool] = False
    key_for: tuple[str, ...] | None = None

    @property
    def is_switch(self) -> bool:
        """Whether the flag is given without a value."""
        return isinstance(self.default, bool)

    @property
    def is_secret(self) -> bool:
        return isinstance(self.default, Secret)

    @property
    def label(self) -> str:
        """The setting's name in messages: its current variable, or the longest flag if there is no
        variable; empty if a person cannot set it."""
        return self.variables[0] if self.variables else max(self.flags, key=len, default="")


def declare(default: T, names: str, help: str, **more: Any) -> T:
    """Return a dataclass field for a setting with this default. The other arguments are as in
    `describe`. For a bool the parser is chosen here."""
    if isinstance(default, bool):
        more.setdefault("parse", parse_switch)
    return field(default=default, metadata=describe(names, help, default=default, **more))


def describe(names: str, help: str, **more: Any) -> dict[str, Declared]:
    """Return the metadata of a dataclass field for a setting.

    Args:
        names: variables and flags, separated by blanks.
        more: further attributes of `Declared`. With `choices`, the parser is chosen here.
    """
    if "choices" in more:
        more["parse"] = choice(*more["choices"])
    words = names.split()
    variables = tuple(word for word in words if not word.startswith("-"))
    flags = tuple(word for word in words if word.startswith("-"))
    return {"declared": Declared(help=help, variables=variables, flags=flags, **more)}
