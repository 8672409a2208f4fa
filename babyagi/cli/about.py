"""The commands about the program itself: config, doctor and guide."""

from __future__ import annotations

import asyncio
import fcntl
import shlex
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
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
    safe_line,
    terminal_width,
)
from babyagi.cli.trusting import trust
from babyagi.errors import BabyagiError, NotFoundError, SettingsError
from babyagi.files import private
from babyagi.files.home import remembered_abilities
from babyagi.redaction import redact_url
from babyagi.sandbox.confined import find_obstacle
from babyagi.settings.fields import LLAMA_MODEL, Settings, declared_fields
from babyagi.settings.load import Loaded, find_keys_in_clear, render_value
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


def list_values(loaded: Loaded) -> list[dict[str, Any]]:
    """Return the name, variable, value (None if it is not set) and source of every setting that a
    person can set, without secrets, in the order of `.env.example`. `waits` is another value in an
    untrusted file, which has no effect: `VARIABLE=value in FILE`."""
    waits = {
        found.name: {"waits": f"{found.variable}={found.shown} in {found.file.name}"}
        for found in reversed(loaded.waiting)
    }
    return [
        {
            "name": name,
            "variable": declared.label,
            "value": _show(declared, getattr(loaded.settings, name)),
            "source": loaded.sources[name],
            **waits.get(name, {}),
        }
        for name, declared in declared_fields().items()
        if declared.label
    ]


def _show(declared: Declared, value: Any) -> str | None:
    shown = render_value(value)
    return (redact_url(shown) if declared.parse is parse_url and shown else shown) or None


def render_values(values: Sequence[Mapping[str, Any]], width: int) -> Iterator[Line]:
    """Yield a line for each value of `list_values`; one without a value says its default."""
    columns = ("variable", "source")
    widths = [max(len(value[column]) for value in values) for column in columns]
    for value in values:
        text = value["value"] or f"({declared_fields()[value['name']].default_text or 'not set'})"
        head = f"{value['variable']:<{widths[0]}}  {value['source']:<{widths[1]}}  "
        # a path or an address is useless when its end is cut off
        shown = fit(text, max(20, width - len(head))) if " " in text else safe_line(text)
        yield Line(head + shown, Style.DIM if value["source"] == "default" else Style.PLAIN)
        if "waits" in value:
            waits = f"no effect until trusted: {safe_line(value['waits'])}"
            yield Line(f"{'':<{widths[0]}}  {waits}", Style.YELLOW)


# --------------------------------------------------------------------------------------------------
# The checks of `babyagi doctor`: they find what would hinder a run, without a model call. Whether a
# key is accepted and whether a model exists is not checked; only a paid call shows that, which
# `--probe` makes.
# --------------------------------------------------------------------------------------------------

OK, WARN, FAIL = "ok", "warn", "fail"
_STYLES = {OK: Style.GREEN, WARN: Style.YELLOW, FAIL: Style.RED}
MIN_FREE_BYTES = 200_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check: its verdict (`state`: `ok`, `warn` or `fail`), its subject, what it
    found, and what to do about it (`fix`)."""

    state: str
    name: str
    found: str
    fix: str = ""


def _render_checks(checks: Iterable[Check]) -> Iterator[Line]:
    for check in checks:
        yield Line(f"{check.state:<5} {check.name}: {check.found}", _STYLES[check.state])
        if check.fix:
            yield Line(f"      try: {check.fix}")


def _of_error(name: str, error: BabyagiError) -> Check:
    why = f" ({error.why})" if error.why else ""
    return Check(FAIL, name, f"{error.what}{why}", error.fix)


def _look(name: str, find: Callable[[], str]) -> Check:
    """Return the check with what `find` found, or with the error that it raised."""
    try:
        return Check(OK, name, find())
    except BabyagiError as error:
        return _of_error(name, error)


def run_checks(*, is_quick: bool = False, is_probing: bool = False) -> list[Check]:
    """Make all checks and return them, in the order in which a run depends on them. With
    `is_quick`, check only the settings, the home folder and its task store. With `is_probing`, ask
    the model what it can do."""
    try:
        settings = load(needs=NOTHING).settings
    except BabyagiError as error:
        return [_of_error("settings", error)]
    checks = [Check(OK, "settings", "every value can be read"), *_check_home(settings)]
    if is_quick:
        return checks
    checks += [_look("model", partial(_find_model, settings)), _check_key(settings)]
    if settings.openai_base_url:
        checks += [_look("address", partial(_reach_address, settings))]
        checks += _check_abilities(settings, is_probing=is_probing)
    return [
        *checks,
        *(Check(WARN, "keys", line) for line in find_keys_in_clear(settings)),
        _check_result_store(settings),
        _check_sandbox(),
        *_check_notify(settings.notify.reveal()),
    ]


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
    return [found, space, _look("store", partial(_open_store, settings))]


def _open_store(settings: Settings) -> str:
    """Open the task store read-only: the one that BABYAGI_TASK_STORE names, else the one in the
    home folder."""
    try:
        n_objectives = len(with_store(lambda store: store.objectives(), settings=settings))
    except NotFoundError:
        return "can be opened; the first run fills it"
    return f"can be opened, and has {say_count(n_objectives, 'objective')}"


def _find_model(settings: Settings) -> str:
    """Return the model in words. Of LLAMA_MODEL_PATH it is checked that it names a model; whether
    there is memory for it, a run says."""
    name = settings.llm_model
    if name == LLAMA_MODEL:
        from babyagi.llm.llama import require_model_file

        return f"{require_model_file(settings.llama_model_path).name} in this process"
    if name == "rehearsal":
        return "rehearsal: no language model will be asked"
    return name if settings.openai_base_url or name == "human" else f"{name} at OpenAI"


def _check_key(settings: Settings) -> Check:
    missing = missing_credentials(settings)
    if missing is not None:
        return Check(WARN, "key", missing.what, missing.fix)
    is_set = bool(settings.openai_api_key)
    return Check(OK, "key", f"{'OPENAI_API_KEY' if is_set else 'no key'} is set")


def _reach_address(settings: Settings) -> str:
    """Reach OPENAI_BASE_URL, through a proxy where one is set, and check that the certificate of an
    https server is trusted."""
    from babyagi.llm.client import Endpoint

    url, proxies = settings.openai_base_url, settings.proxies
    endpoint = Endpoint(base_url=url, proxies=proxies, sleep=asyncio.sleep, random=lambda: 0.5)
    asyncio.run(endpoint.greet(timeout_s=CONNECT_TIMEOUT_S))
    proxy = proxies.find(url)
    through = f" through the proxy {':'.join(map(str, host_and_port(proxy)))}" if proxy else ""
    return f"{redact_url(url)} can be reached{through}"


def _check_abilities(settings: Settings, *, is_probing: bool) -> list[Check]:
    """Show which abilities of the model at OPENAI_BASE_URL are known, and which protocol `auto`
    therefore chooses. Return nothing for the address of a known provider."""
    from babyagi.llm.learning import describe, is_known_provider, read_abilities

    def find() -> str:
        if is_probing:
            asyncio.run(probe_abilities(settings))
        address = address_of(settings.llm_model, settings)
        found = read_abilities(remembered_abilities(settings.home, address))
        if known := describe(found):
            return f"{known}; {say_how(found, settings)}"
        fix = "babyagi doctor --probe asks the model two small questions"
        return f"its abilities have not been probed yet; {fix}"

    return [] if is_known_provider(settings.openai_base_url) else [_look("abilities", find)]


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
    shape = {"v": 1, "settings": values}
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
    give(as_json, shape, _render_checks(checks))
    return int(ExitCode.OK if is_sound else ExitCode.FAILED)


@click.command()
@click.argument("topic", required=False)
def guide(topic: str | None) -> None:
    """Print a page of the guide, or list its pages."""
    from babyagi.cli.markdown import echo_markdown

    pages = read_pages()
    if topic is None:
        for name, page in pages.items():
            echo(f"babyagi guide {name:<14} {page.partition(chr(10))[0].lstrip('# ')}")
    elif topic in pages:
        echo_markdown(pages[topic])
    else:
        near = nearest(topic, pages)
        fix = f"babyagi guide {near}" if near else "babyagi guide lists the pages"
        raise NotFoundError(f"the guide has no page {topic!r}", fix=fix)
