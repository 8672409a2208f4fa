"""The commands about the program itself: config, doctor and guide."""

from __future__ import annotations

import asyncio
import fcntl
import importlib.util
import os
import platform
import shlex
import shutil
import socket
import sqlite3
import stat
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import click

from babyagi.app.backends import ask_result_store, describe_index
from babyagi.app.model_clients import address_of, probe_abilities, say_how
from babyagi.cli.exits import ExitCode
from babyagi.cli.options import Family, json_option
from babyagi.cli.preflight import CONNECT_TIMEOUT_S, host_and_port, missing_credentials
from babyagi.cli.session import NOTHING, load, open_log_file, with_store
from babyagi.cli.text import (
    Line,
    Style,
    echo,
    fit,
    give,
    has_colour,
    is_live_terminal,
    pad,
    safe_line,
    terminal_width,
)
from babyagi.cli.trusting import trust
from babyagi.errors import BabyagiError, NotFoundError, SettingsError
from babyagi.files import private
from babyagi.files.home import remembered_abilities
from babyagi.redaction import redact_url
from babyagi.sandbox.confined import find_obstacle
from babyagi.settings.fields import LLAMA_MODEL, ONNX_EMBEDDING_MODEL, Settings, declared_fields
from babyagi.settings.load import Loaded, describe_waiting, find_keys_in_clear, render_value
from babyagi.settings.values import Declared, parse_url
from babyagi.text import nearest
from babyagi.worker.notify import is_address


def guide_folder() -> Path:
    """Return the folder with the pages of the guide."""
    return Path(str(resources.files("babyagi") / "guide"))


FIRST_PAGE = "start"


def list_topics() -> list[tuple[str, str]]:
    """Return the name and the title of each page of the guide: the first steps first, then by
    name."""
    pages = sorted(_pages().items(), key=lambda item: (item[0] != FIRST_PAGE, item[0]))
    return [(name, _title(page)) for name, page in pages]


def read_page(topic: str) -> str:
    """Return a page of the guide as Markdown. Raises `NotFoundError` if there is no page of this
    name."""
    pages = _pages()
    if topic not in pages:
        near = nearest(topic, pages)
        fix = f"babyagi guide {near}" if near else "babyagi guide lists the pages"
        raise NotFoundError(f"the guide has no page {topic!r}", fix=fix)
    return pages[topic].read_text(encoding="utf-8")


def _pages() -> dict[str, Traversable]:
    folder = resources.files("babyagi") / "guide"
    if not folder.is_dir():
        return {}
    pages = [page for page in folder.iterdir() if page.name.endswith(".md")]
    return {page.name.removesuffix(".md"): page for page in pages}


def _title(page: Traversable) -> str:
    lines = page.read_text(encoding="utf-8").splitlines()
    return next((line.lstrip("# ").strip() for line in lines if line.startswith("#")), "")


# -- what `babyagi config` shows: every setting, its value, and its source
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownValue:
    """One setting, as `babyagi config` shows it.

    Attributes:
        label: its environment variable.
        value: without secrets; None if the setting is not set.
        source: where the value comes from.
        help: the default in words, for a default that is computed or not clear in its plain form;
            else empty.
        waits: `VARIABLE=value in FILE`, if an untrusted file contains another value, which has no
            effect.
    """

    name: str
    label: str
    value: str | None
    source: str
    help: str
    waits: str = ""

    def to_json(self) -> dict[str, Any]:
        shown = {"name": self.name, "variable": self.label, "value": self.value}
        waits = {"waits": self.waits} if self.waits else {}
        return {**shown, "source": self.source, **waits}


def list_values(loaded: Loaded) -> list[ShownValue]:
    """Return every setting that a person can set, in the order of `.env.example`, and then the
    variables that were settings once."""
    waits = {
        found.name: f"{found.variable}={found.shown} in {found.file.name}"
        for found in reversed(loaded.waiting)
    }
    shown = [
        ShownValue(
            name=name,
            label=declared.label,
            value=_show(declared, render_value(getattr(loaded.settings, name))) or None,
            source=loaded.sources[name],
            help=declared.default_text,
            waits=waits.get(name, ""),
        )
        for name, declared in declared_fields().items()
        if declared.label
    ]
    gone = [
        ShownValue(name=name, label=name, value=instead, source="no setting any more", help="")
        for name, instead in loaded.gone.items()
    ]
    return shown + gone


def _show(declared: Declared, value: str) -> str:
    return redact_url(value) if declared.parse is parse_url and value else value


def render_values(values: Sequence[ShownValue], width: int) -> list[Line]:
    label_width = max(len(value.label) for value in values)
    source_width = max(len(value.source) for value in values)
    lines = []
    for value in values:
        text = value.value if value.value is not None else f"({value.help or 'not set'})"
        # a path or an address is useless when its end is cut off
        room = max(20, width - label_width - source_width - 4)
        style = Style.DIM if value.source == "default" else Style.PLAIN
        shown = fit(text, room) if " " in text else safe_line(text)
        label, source = pad(value.label, label_width), pad(value.source, source_width)
        lines.append(Line(f"{label}  {source}  {shown}", style))
        if value.waits:
            waits = f"no effect until trusted: {safe_line(value.waits)}"
            lines.append(Line(f"{pad('', label_width)}  {waits}", Style.YELLOW))
    return lines


# --------------------------------------------------------------------------------------------------
# The checks of `babyagi doctor`: they find what would hinder a run, without a model call. Whether a
# key is accepted and whether a model exists is not checked; only a paid call shows that, which
# `--probe` makes.
# --------------------------------------------------------------------------------------------------

OK, WARN, FAIL = "ok", "warn", "fail"
MIN_FREE_BYTES = 200_000_000
SLOW_FSYNC_S = 0.1
# a bug in the reset of the write-ahead log could corrupt files in 3.7 to 3.51.2,
# https://sqlite.org/wal.html
FIXED_SQLITE = (3, 51, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The outcome of one check: its subject (`name`), its verdict (`state`: `ok`, `warn` or
    `fail`), what it found, and what to do about it (`fix`)."""

    name: str
    state: str
    found: str
    fix: str = ""

    @property
    def lines(self) -> list[Line]:
        style = {OK: Style.GREEN, WARN: Style.YELLOW, FAIL: Style.RED}[self.state]
        said = Line(f"{self.state:<5} {self.name}: {self.found}", style)
        return [said, *([Line(f"      try: {self.fix}")] if self.fix else [])]


def _ok(name: str, found: str) -> Check:
    return Check(name=name, state=OK, found=found)


def _warn(name: str, found: str, fix: str = "") -> Check:
    return Check(name=name, state=WARN, found=found, fix=fix)


def _fail(name: str, found: str, fix: str) -> Check:
    return Check(name=name, state=FAIL, found=found, fix=fix)


def run_checks(*, is_quick: bool = False, is_probing: bool = False) -> list[Check]:
    """Make all checks and return them, in the order in which a run depends on them. With
    `is_quick`, check only the settings, the home folder and its task store. With `is_probing`, ask
    the model what it can do."""

    python = _ok("python", f"{platform.python_version()}, {sys.executable}")
    program = [] if is_quick else [python, _check_sqlite()]
    try:
        loaded = load(needs=NOTHING)
    except BabyagiError as error:
        return [*program, _fail("settings", error.what, error.fix)]
    settings = loaded.settings
    checks = [
        *program,
        _ok("settings", "every value can be read"),
        *_check_trust(loaded),
        *_check_home(settings),
    ]
    if is_quick:
        return checks
    checks += [_check_model(settings), _check_key(settings)]
    if settings.openai_base_url:
        checks += [_check_address(settings), *_check_abilities(settings, is_probing=is_probing)]
    return [
        *checks,
        *_check_network(settings),
        _check_result_store(settings),
        _check_embedder(settings),
        _check_sandbox(),
        *_check_notify(settings.notify.reveal()),
        _check_terminal(),
        _check_log(settings.effective_log_file, home=settings.home),
    ]


def _check_sqlite() -> Check:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < (3, 35):
        return _fail("sqlite", version, "install a Python that is built with SQLite 3.35 or newer")
    if sqlite3.sqlite_version_info < FIXED_SQLITE:
        version += (
            " (this version has a bug in resetting its write-ahead log; babyagi's own lock for "
            "writing avoids it)"
        )
    return _ok("sqlite", version)


def _check_trust(loaded: Loaded) -> list[Check]:
    if not loaded.waiting:
        return []
    fix = (
        "read these settings with `babyagi config`, then type `babyagi config trust`, or take them "
        "out of the file; until then no run starts"
    )
    return [_warn("trust", describe_waiting(loaded.waiting), fix)]


def _check_home(settings: Settings) -> list[Check]:
    home = settings.home
    try:
        private.make_folder(home)
        with tempfile.NamedTemporaryFile(dir=home, prefix=".doctor-") as file:
            started_s = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            fsync_s = time.perf_counter() - started_s
            lock = _check_lock(file.fileno())
        free, private_check = shutil.disk_usage(home).free, _check_private(home)
    except OSError as error:
        fix = "set BABYAGI_HOME to a folder that this user may write"
        return [_fail("home", f"{home} cannot be written: {error.strerror or error}", fix)]
    return [
        private_check,
        _check_free_space(free),
        lock,
        _check_fsync(fsync_s),
        _check_store(settings),
    ]


def _check_private(home: Path) -> Check:
    """Check that no other user can read the home directory or a file in it."""
    wide = list(private.find_wide(home.resolve()))
    if not wide:
        return _ok("home", str(home))
    mode = stat.S_IMODE(wide[0].lstat().st_mode)
    more = f", and {len(wide) - 1} more below it" if len(wide) > 1 else ""
    found = f"{home}: other users can read {wide[0]} (mode {mode:04o}){more}"
    return _warn("home", found, f"chmod -R go= {shlex.quote(str(home))}")


def _check_free_space(free: int) -> Check:
    found = f"{free / 1e9:.1f} GB free"
    if free < MIN_FREE_BYTES:
        return _warn("space", found, "free some space, or set BABYAGI_HOME to another disk")
    return _ok("space", found)


def _check_lock(descriptor: int) -> Check:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        fix = "set BABYAGI_HOME to a local disk; network file systems often cannot lock"
        return _fail("locks", f"the home folder's file system cannot lock: {error.strerror}", fix)
    return _ok("locks", "the home folder's file system locks files")


def _check_fsync(fsync_s: float) -> Check:
    found = f"{fsync_s * 1000:.1f} ms to make a write durable"
    if fsync_s > SLOW_FSYNC_S:
        return _warn("disk", found, "set BABYAGI_HOME to a faster disk; every commit waits for it")
    return _ok("disk", found)


def _check_store(settings: Settings) -> Check:
    """Check that the task store can be read: the one that BABYAGI_TASK_STORE names, else the one in
    the home folder. It is opened read-only."""

    try:
        n_objectives = len(with_store(lambda store: store.objectives(), settings=settings))
    except NotFoundError:
        return _ok("store", "can be opened; the first run fills it")
    except BabyagiError as error:
        return _fail("store", error.what, error.fix)
    what = "objective" if n_objectives == 1 else "objectives"
    return _ok("store", f"can be opened, and has {n_objectives} {what}")


def _check_model(settings: Settings) -> Check:
    name = settings.llm_model
    if name == "rehearsal":
        return _ok("model", "rehearsal: no language model will be asked")
    if name == LLAMA_MODEL:
        return _check_llama(settings)
    if settings.openai_base_url or name == "human":
        return _ok("model", name)
    try:
        import httpx2  # noqa: F401  # only the import itself is checked
    except Exception as error:  # a broken installation may raise anything
        found = f"the HTTP client cannot be imported: {error}"
        return _fail("model", found, "pip install 'httpx2>=2.12'")
    return _ok("model", f"{name} at OpenAI")


def _check_llama(settings: Settings) -> Check:
    """Check that this process can load the file that LLAMA_MODEL_PATH names, and has enough memory
    for it."""
    from babyagi.llm.llama import Engine, free_memory_bytes

    try:
        engine = Engine(settings.llama_model_path, context_tokens=settings.llama_ctx_max)
    except SettingsError as error:
        why = f" ({error.why})" if error.why else ""
        return _fail("model", f"{error.what}{why}", error.fix)
    needed = engine.file.memory_bytes(engine.context_tokens)
    free = free_memory_bytes()
    found = (
        f"{engine.file.name} in this process; it takes about {needed / 1e9:.1f} GB of memory with "
        f"a context of {engine.context_tokens:,} tokens"
    )
    if free is not None and needed > free:
        fix = "set LLAMA_CTX_MAX to fewer tokens, or choose a smaller model"
        return _fail("model", f"{found}, and {free / 1e9:.1f} GB are free", fix)
    return _ok("model", found)


def _check_key(settings: Settings) -> Check:
    missing = missing_credentials(settings)
    if missing is not None:
        return _warn("key", missing.what, missing.fix)
    has_key = bool(settings.openai_api_key)
    return _ok("key", "OPENAI_API_KEY is set" if has_key else "no key is set, and none is needed")


def _check_address(settings: Settings) -> Check:
    """Check that a server listens at OPENAI_BASE_URL, or at the proxy that is used for it, that the
    certificate of an https server is trusted, and that the server is not a web site."""
    base_url = settings.openai_base_url
    proxy = settings.proxies.find(base_url)
    host, port = host_and_port(proxy or base_url)
    try:
        socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S).close()
        stranger = asyncio.run(_greet(settings))
    except BabyagiError as error:
        why = f" ({error.why})" if error.why else ""
        return _fail("address", f"{error.what}{why}", error.fix)
    except OSError as error:
        fix = "start the server, or correct OPENAI_BASE_URL"
        if proxy:
            fix = "correct the proxy, or name the host in NO_PROXY"
        found = f"no server listens at {host}:{port} ({error.strerror or error})"
        return _fail("address", found, fix)
    shown = redact_url(base_url)
    if stranger:
        found = f"{shown} answers a request for its models with {stranger}"
        return _warn("address", found, "check OPENAI_BASE_URL (it mostly ends in /v1)")
    if proxy:
        return _ok("address", f"the proxy {host}:{port} listens; {shown} is reached through it")
    return _ok("address", f"{shown} can be reached")


async def _greet(settings: Settings) -> str:
    """Connect to the model's endpoint without sending a call. Return the evidence that it is no API
    for models, such as a web page; "" if there is none. Raises the error that a call would raise
    while it connects."""
    from babyagi.llm.client import Endpoint

    endpoint = Endpoint(
        base_url=settings.openai_base_url,
        proxies=settings.proxies,
        sleep=asyncio.sleep,
        random=lambda: 0.5,
    )
    return await endpoint.greet(timeout_s=CONNECT_TIMEOUT_S)


def _check_abilities(settings: Settings, *, is_probing: bool) -> list[Check]:
    """Show which abilities of the model at OPENAI_BASE_URL are known, and which protocol `auto`
    therefore chooses. Return nothing for the address of a known provider."""
    from babyagi.llm.learning import describe, is_known_provider, read_abilities

    if is_known_provider(settings.openai_base_url):
        return []
    if is_probing:
        try:
            asyncio.run(probe_abilities(settings))
        except BabyagiError as error:
            why = f" ({error.why})" if error.why else ""
            return [_fail("abilities", f"{error.what}{why}", error.fix)]
    address = address_of(settings.llm_model, settings)
    found = read_abilities(remembered_abilities(settings.home, address))
    known = describe(found)
    if not known:
        fix = "babyagi doctor --probe asks the model two small questions"
        return [_ok("abilities", f"its abilities have not been probed yet; {fix}")]
    return [_ok("abilities", f"{known}; {say_how(found, settings)}")]


def _check_network(settings: Settings) -> list[Check]:
    """Show the proxies in use, without their passwords, and warn about keys that would be sent
    unencrypted."""
    shown = {"https": settings.https_proxy.reveal(), "http": settings.http_proxy.reveal()}
    used = [
        f"{scheme} addresses through {':'.join(map(str, host_and_port(proxy)))}"
        for scheme, proxy in shown.items()
        if proxy
    ]
    without = ", except for this machine"
    without += f" and {settings.no_proxy}" if settings.no_proxy else ""
    proxies = _ok("proxy", ", ".join(used) + without if used else "no proxy is set")
    return [proxies, *(_warn("keys", line) for line in find_keys_in_clear(settings))]


def _check_result_store(settings: Settings) -> Check:
    """Check the index of results: `fail` if a run would refuse to start, `warn` if it would start
    without the index."""
    try:
        asyncio.run(ask_result_store(settings))
    except SettingsError as error:
        return _fail("result store", f"{error.what}: {error.why}", error.fix)
    except BabyagiError as error:
        fix = "; ".join(filter(None, (error.fix, "meanwhile results are found in the task store")))
        return _warn("result store", f"{error.what}: {error.why}", fix)
    if settings.effective_result_store == "weaviate" and not settings.weaviate_url:
        fix = "babyagi run: it starts the store, and says whether results can be written to it"
        return _warn("result store", f"{describe_index(settings)}, is not started yet", fix)
    return _ok("result store", describe_index(settings))


def _check_embedder(settings: Settings) -> Check:
    name = settings.effective_embedding_model
    if name != ONNX_EMBEDDING_MODEL or importlib.util.find_spec("chromadb") is None:
        return _ok("embedding", name)
    from babyagi.llm.embeddings import missing_files

    if missing := missing_files():
        otherwise = "set BABYAGI_EMBEDDING_MODEL=hash, which needs no files"
        return _warn("embedding", missing, f"babyagi run fetches them (80 MB); or {otherwise}")
    return _ok("embedding", f"{name}, its files are on this machine")


def _check_sandbox() -> Check:
    if why := find_obstacle():
        found = "pages and documents are parsed with bounds of time and memory only"
        fix = "run babyagi on Linux with seccomp, as in Docker, for the sandbox and for run_python"
        return _warn("sandbox", f"{why}: {found}", fix)
    return _ok("sandbox", "pages and documents are parsed by a process that can only compute")


def _check_notify(target: str) -> list[Check]:
    """Warn if BABYAGI_NOTIFY (`target`) names a command that is not there; an address is not
    called."""
    if not target or is_address(target) or shutil.which(shlex.split(target)[0]):
        return []
    found = f"there is no command {shlex.split(target)[0]}, so nothing will be notified"
    fix = "set BABYAGI_NOTIFY to a command of this machine, or to an address"
    return [_warn("notify", found, fix)]


def _check_terminal() -> Check:
    if not is_live_terminal():
        return _ok("terminal", "standard output is not a terminal: plain lines are printed")
    with_ = "with" if has_colour(sys.stdout) else "without"
    return _ok("terminal", f"live view, {with_} colour")


def _check_log(path: Path, *, home: Path) -> Check:
    try:
        with open_log_file(path, home=home):
            return _ok("log", str(path))
    except OSError as error:
        fix = "set BABYAGI_HOME to a folder that this user may write"
        return _warn("log", f"{path}: {error.strerror or error}", fix)


# -- the commands: config, doctor, guide
# --------------------------------------------------------------------------------------------------


@click.command("config")
@json_option
def show_settings(as_json: bool) -> None:
    """Show every setting, its value, and where the value comes from.

    Secrets stay hidden.
    """
    values = list_values(load(needs=NOTHING))
    shape = {"v": 1, "settings": [value.to_json() for value in values]}
    give(as_json, shape, render_values(values, terminal_width()))


config = Family(show_settings)
config.add_command(trust)


@click.command()
@click.option(
    "--quick",
    "is_quick",
    is_flag=True,
    help="Check only the settings, the home folder and the task store.",
)
@click.option(
    "--probe",
    "is_probing",
    is_flag=True,
    help="Ask the model at a custom address two small questions: what can it do?",
)
@json_option
def doctor(is_quick: bool, is_probing: bool, as_json: bool) -> int:
    """Check settings, task store, model, network and index."""
    checks = run_checks(is_quick=is_quick, is_probing=is_probing)
    is_sound = all(check.state != FAIL for check in checks)
    shape = {"v": 1, "is_sound": is_sound, "checks": [asdict(check) for check in checks]}
    give(as_json, shape, (line for check in checks for line in check.lines))
    return int(ExitCode.OK if is_sound else ExitCode.FAILED)


@click.command()
@click.argument("topic", required=False)
def guide(topic: str | None) -> None:
    """Print a page of the guide, or list its pages."""
    if topic is not None:
        show_topic(topic)
        return
    topics = list_topics()
    for name, title in topics:
        echo(f"babyagi guide {name:<14} {title}")
    if not topics:
        echo("This installation has no guide pages; babyagi help lists the commands.")


def show_topic(topic: str) -> None:
    from babyagi.cli.markdown import show_page

    show_page(read_page(topic))
