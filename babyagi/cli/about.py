"""The commands about the program itself: config, doctor and guide."""

from __future__ import annotations

import asyncio
import fcntl
import importlib.util
import platform
import shlex
import shutil
import socket
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import click

from babyagi.app.backends import ask_result_store, describe_index
from babyagi.app.model_clients import address_of, probe_abilities, say_how
from babyagi.cli.exits import ExitCode
from babyagi.cli.options import Family, json_option
from babyagi.cli.preflight import CONNECT_TIMEOUT_S, host_and_port, missing_credentials
from babyagi.cli.session import NOTHING, load, with_store
from babyagi.cli.text import (
    Line,
    Style,
    echo,
    fit,
    give,
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
from babyagi.text import nearest, say_count
from babyagi.worker.notify import is_address


def guide_folder() -> Path:
    """Return the folder with the pages of the guide."""
    return Path(str(resources.files("babyagi") / "guide"))


FIRST_PAGE = "start"


def read_pages() -> dict[str, str]:
    """Return the pages of the guide as Markdown by name: the first steps first, then by name."""
    paths = sorted(guide_folder().glob("*.md"), key=lambda path: (path.stem != FIRST_PAGE, path))
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


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
        return {**shown, "source": self.source, **({"waits": self.waits} if self.waits else {})}


def list_values(loaded: Loaded) -> list[ShownValue]:
    """Return every setting that a person can set, in the order of `.env.example`."""
    waits = {
        found.name: f"{found.variable}={found.shown} in {found.file.name}"
        for found in reversed(loaded.waiting)
    }
    return [
        ShownValue(
            name=name,
            label=declared.label,
            value=_show(declared, getattr(loaded.settings, name)),
            source=loaded.sources[name],
            help=declared.default_text,
            waits=waits.get(name, ""),
        )
        for name, declared in declared_fields().items()
        if declared.label
    ]


def _show(declared: Declared, value: Any) -> str | None:
    shown = render_value(value)
    return (redact_url(shown) if declared.parse is parse_url and shown else shown) or None


def render_values(values: Sequence[ShownValue], width: int) -> list[Line]:
    widths = [max(len(one.label) for one in values), max(len(one.source) for one in values)]
    lines = []
    for value in values:
        text = value.value if value.value is not None else f"({value.help or 'not set'})"
        head = f"{pad(value.label, widths[0])}  {pad(value.source, widths[1])}  "
        # a path or an address is useless when its end is cut off
        room = max(20, width - len(head))
        shown = fit(text, room) if " " in text else safe_line(text)
        style = Style.DIM if value.source == "default" else Style.PLAIN
        lines.append(Line(head + shown, style))
        if value.waits:
            waits = f"no effect until trusted: {safe_line(value.waits)}"
            lines.append(Line(f"{'':<{widths[0]}}  {waits}", Style.YELLOW))
    return lines


# --------------------------------------------------------------------------------------------------
# The checks of `babyagi doctor`: they find what would hinder a run, without a model call. Whether a
# key is accepted and whether a model exists is not checked; only a paid call shows that, which
# `--probe` makes.
# --------------------------------------------------------------------------------------------------

OK, WARN, FAIL = "ok", "warn", "fail"
MIN_FREE_BYTES = 200_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check: its verdict (`state`: `ok`, `warn` or `fail`), its subject, what it
    found, and what to do about it (`fix`)."""

    state: str
    name: str
    found: str
    fix: str = ""

    @property
    def lines(self) -> list[Line]:
        style = {OK: Style.GREEN, WARN: Style.YELLOW, FAIL: Style.RED}[self.state]
        said = Line(f"{self.state:<5} {self.name}: {self.found}", style)
        return [said, *([Line(f"      try: {self.fix}")] if self.fix else [])]


def _of_error(name: str, error: BabyagiError) -> Check:
    why = f" ({error.why})" if error.why else ""
    return Check(FAIL, name, f"{error.what}{why}", error.fix)


def run_checks(*, is_quick: bool = False, is_probing: bool = False) -> list[Check]:
    """Make all checks and return them, in the order in which a run depends on them. With
    `is_quick`, check only the settings, the home folder and its task store. With `is_probing`, ask
    the model what it can do."""
    versions = f"{platform.python_version()}, {sys.executable}; SQLite {sqlite3.sqlite_version}"
    program = [] if is_quick else [Check(OK, "python", versions)]
    try:
        loaded = load(needs=NOTHING)
    except BabyagiError as error:
        return [*program, _of_error("settings", error)]
    settings = loaded.settings
    read = Check(OK, "settings", "every value can be read")
    checks = [*program, read, *_check_trust(loaded), *_check_home(settings)]
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
    ]


def _check_trust(loaded: Loaded) -> list[Check]:
    if not loaded.waiting:
        return []
    fix = (
        "read these settings with `babyagi config`, then type `babyagi config trust`, or take them "
        "out of the file; until then no run starts"
    )
    return [Check(WARN, "trust", describe_waiting(loaded.waiting), fix)]


def _check_home(settings: Settings) -> list[Check]:
    """Check that the home folder can be written and locked, that no other user can read it or a
    file in it, that it has room, and that its task store opens."""
    home = settings.home
    try:
        private.make_folder(home)
        with tempfile.NamedTemporaryFile(dir=home, prefix=".doctor-") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        free, wide = shutil.disk_usage(home).free, [*private.find_wide(home.resolve())]
    except OSError as error:
        fix = "set BABYAGI_HOME to a folder on a local disk that this user may write"
        what = f"{home} cannot be written or locked: {error.strerror or error}"
        return [Check(FAIL, "home", what, fix)]
    found = Check(OK, "home", str(home))
    if wide:
        mode = stat.S_IMODE(wide[0].lstat().st_mode)
        more = f", and {len(wide) - 1} more below it" if len(wide) > 1 else ""
        what = f"{home}: other users can read {wide[0]} (mode {mode:04o}){more}"
        found = Check(WARN, "home", what, f"chmod -R go= {shlex.quote(str(home))}")
    fix = "" if free >= MIN_FREE_BYTES else "free some space, or set BABYAGI_HOME to another disk"
    space = Check(WARN if fix else OK, "space", f"{free / 1e9:.1f} GB free", fix)
    return [found, space, _check_store(settings)]


def _check_store(settings: Settings) -> Check:
    """Check that the task store can be read: the one that BABYAGI_TASK_STORE names, else the one in
    the home folder. It is opened read-only."""

    try:
        n_objectives = len(with_store(lambda store: store.objectives(), settings=settings))
    except NotFoundError:
        return Check(OK, "store", "can be opened; the first run fills it")
    except BabyagiError as error:
        return _of_error("store", error)
    return Check(OK, "store", f"can be opened, and has {say_count(n_objectives, 'objective')}")


def _check_model(settings: Settings) -> Check:
    name = settings.llm_model
    if name == "rehearsal":
        return Check(OK, "model", "rehearsal: no language model will be asked")
    if name == LLAMA_MODEL:
        return _check_llama(settings)
    is_elsewhere = settings.openai_base_url or name == "human"
    return Check(OK, "model", name if is_elsewhere else f"{name} at OpenAI")


def _check_llama(settings: Settings) -> Check:
    """Check that this process can load the file that LLAMA_MODEL_PATH names, and has enough memory
    for it."""
    from babyagi.llm.llama import Engine, free_memory_bytes

    try:
        engine = Engine(settings.llama_model_path, context_tokens=settings.llama_ctx_max)
    except SettingsError as error:
        return _of_error("model", error)
    needed = engine.file.memory_bytes(engine.context_tokens)
    free = free_memory_bytes()
    found = (
        f"{engine.file.name} in this process; it takes about {needed / 1e9:.1f} GB of memory with "
        f"a context of {engine.context_tokens:,} tokens"
    )
    if free is not None and needed > free:
        fix = "set LLAMA_CTX_MAX to fewer tokens, or choose a smaller model"
        return Check(FAIL, "model", f"{found}, and {free / 1e9:.1f} GB are free", fix)
    return Check(OK, "model", found)


def _check_key(settings: Settings) -> Check:
    missing = missing_credentials(settings)
    if missing is not None:
        return Check(WARN, "key", missing.what, missing.fix)
    has_key = bool(settings.openai_api_key)
    return Check(
        OK, "key", "OPENAI_API_KEY is set" if has_key else "no key is set, and none is needed"
    )


def _check_address(settings: Settings) -> Check:
    """Check that a server listens at OPENAI_BASE_URL, or at the proxy that is used for it, and that
    the certificate of an https server is trusted."""
    base_url = settings.openai_base_url
    proxy = settings.proxies.find(base_url)
    host, port = host_and_port(proxy or base_url)
    try:
        socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S).close()
        asyncio.run(_greet(settings))
    except BabyagiError as error:
        return _of_error("address", error)
    except OSError as error:
        fix = "start the server, or correct OPENAI_BASE_URL (or the proxy, or NO_PROXY)"
        found = f"no server listens at {host}:{port} ({error.strerror or error})"
        return Check(FAIL, "address", found, fix)
    shown = redact_url(base_url)
    if proxy:
        return Check(
            OK, "address", f"the proxy {host}:{port} listens; {shown} is reached through it"
        )
    return Check(OK, "address", f"{shown} can be reached")


async def _greet(settings: Settings) -> None:
    """Connect to the model's endpoint without sending a call. Raises the error that a call would
    raise while it connects."""
    from babyagi.llm.client import Endpoint

    endpoint = Endpoint(
        base_url=settings.openai_base_url,
        proxies=settings.proxies,
        sleep=asyncio.sleep,
        random=lambda: 0.5,
    )
    await endpoint.greet(timeout_s=CONNECT_TIMEOUT_S)


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
            return [_of_error("abilities", error)]
    address = address_of(settings.llm_model, settings)
    found = read_abilities(remembered_abilities(settings.home, address))
    known = describe(found)
    if not known:
        fix = "babyagi doctor --probe asks the model two small questions"
        return [Check(OK, "abilities", f"its abilities have not been probed yet; {fix}")]
    return [Check(OK, "abilities", f"{known}; {say_how(found, settings)}")]


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
    proxies = Check(OK, "proxy", ", ".join(used) + without if used else "no proxy is set")
    return [proxies, *(Check(WARN, "keys", line) for line in find_keys_in_clear(settings))]


def _check_result_store(settings: Settings) -> Check:
    """Check the index of results: `fail` if a run would refuse to start, `warn` if it would start
    without the index."""
    try:
        asyncio.run(ask_result_store(settings))
    except SettingsError as error:
        return _of_error("result store", error)
    except BabyagiError as error:
        fix = "; ".join(filter(None, (error.fix, "meanwhile results are found in the task store")))
        return replace(_of_error("result store", error), state=WARN, fix=fix)
    if settings.effective_result_store == "weaviate" and not settings.weaviate_url:
        fix = "babyagi run: it starts the store, and says whether results can be written to it"
        return Check(WARN, "result store", f"{describe_index(settings)}, is not started yet", fix)
    return Check(OK, "result store", describe_index(settings))


def _check_embedder(settings: Settings) -> Check:
    name = settings.effective_embedding_model
    if name != ONNX_EMBEDDING_MODEL or importlib.util.find_spec("chromadb") is None:
        return Check(OK, "embedding", name)
    from babyagi.llm.embeddings import missing_files

    if missing := missing_files():
        otherwise = "set BABYAGI_EMBEDDING_MODEL=hash, which needs no files"
        return Check(
            WARN, "embedding", missing, f"babyagi run fetches them (80 MB); or {otherwise}"
        )
    return Check(OK, "embedding", f"{name}, its files are on this machine")


def _check_sandbox() -> Check:
    if why := find_obstacle():
        found = "pages and documents are parsed with bounds of time and memory only"
        fix = "run babyagi on Linux with seccomp, as in Docker, for the sandbox and for run_python"
        return Check(WARN, "sandbox", f"{why}: {found}", fix)
    return Check(OK, "sandbox", "pages and documents are parsed by a process that can only compute")


def _check_notify(target: str) -> list[Check]:
    """Warn if BABYAGI_NOTIFY (`target`) names a command that is not there; an address is not
    called."""
    if not target or is_address(target) or shutil.which(shlex.split(target)[0]):
        return []
    found = f"there is no command {shlex.split(target)[0]}, so nothing will be notified"
    fix = "set BABYAGI_NOTIFY to a command of this machine, or to an address"
    return [Check(WARN, "notify", found, fix)]


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
    for name, page in read_pages().items():
        echo(f"babyagi guide {name:<14} {page.partition(chr(10))[0].lstrip('# ')}")


def show_topic(topic: str) -> None:
    """Show a page of the guide. Raises `NotFoundError` if there is no page of this name."""
    from babyagi.cli.markdown import show_page

    pages = read_pages()
    if topic not in pages:
        near = nearest(topic, pages)
        fix = f"babyagi guide {near}" if near else "babyagi guide lists the pages"
        raise NotFoundError(f"the guide has no page {topic!r}", fix=fix)
    show_page(pages[topic])
