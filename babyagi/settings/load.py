"""Reads flags, environment and .env files into `Settings`; renders the example file."""

from __future__ import annotations

import io
import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from babyagi.addresses import is_in_clear
from babyagi.errors import SettingsError
from babyagi.settings.fields import (
    DEFAULT_MODEL,
    LOCAL_EMBEDDING_MODEL,
    MODELS_WITHOUT_ENDPOINT,
    ONNX_EMBEDDING_MODEL,
    USE_LLAMA_SERVER,
    Settings,
    declared_fields,
)
from babyagi.settings.values import Declared, Secret, parse_path

logger = logging.getLogger(__name__)

DEFAULT_SOURCE = "default"
_MODEL_FIELDS = ("llm_model", "model_execution", "model_creation", "model_prioritization", "model_report")
MAX_ENV_FILE_BYTES = 1_000_000
_PREFIX = "BABYAGI_"
_NOT_GIVEN = object()  # None is a value: "send no temperature"
_PASSWORD_IN_URL = "//[^/]*@"
_FIX = "correct it where it is set, or take it away there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Settings, where each came from, and what a person should know about them.

    Attributes:
        sources: by field name: `flag --model`, `argument objective`, `environment LLM_MODEL`, `extra env file X`, `.env`, `default`.
        notices: one line each on what is set and has no effect yet.
    """

    settings: Settings
    sources: Mapping[str, str]
    notices: tuple[str, ...] = ()


def load_here(flags: Mapping[str, object]) -> Settings:
    """The settings of a program that has no command line: `flags` by name, then the environment and folder of this process. What a person
    should know about them is logged."""
    return load_for_program(flags, environ=os.environ, cwd=Path.cwd())


def load_for_program(flags: Mapping[str, object], *, environ: Mapping[str, str], cwd: Path) -> Settings:
    """As `load_here`, with another environment and folder."""
    loaded = load_settings(flags=flags, environ={**environ, "ENABLE_COMMAND_LINE_ARGS": "true"}, cwd=cwd)
    for notice in loaded.notices:
        logger.warning("%s", notice)
    return loaded.settings


def variables_here() -> Mapping[str, str]:
    """The variables of this process, and those of .env in its folder that it has not.

    Raises:
        SettingsError: .env cannot be read.
    """
    path = Path(".env")
    try:
        return {**(_read_env_file(path) if path.is_file() else {}), **os.environ}
    except (OSError, ValueError) as error:
        raise _build_error([f".env cannot be read: {getattr(error, 'strerror', None) or error}"]) from None


def load_settings(*, flags: Mapping[str, object], environ: Mapping[str, str], cwd: Path) -> Loaded:
    """Read every setting: flag > environment > extra env files (a later one wins) > .env in `cwd` > default.

    Args:
        flags: by field name; text is parsed like a variable's. None and () mean: not given. A switch that was not given is None.

    Raises:
        SettingsError: with every fault that was found.
    """
    reading = _Reading(flags, environ, cwd)
    values = reading.read()
    sources = {name: reading.given[name].source if name in reading.given else DEFAULT_SOURCE for name in declared_fields()}
    settings = Settings(
        **values,
        cost_limit_is_explicit=sources["max_cost_usd"] != DEFAULT_SOURCE,
        model_is_explicit=any(sources[name] != DEFAULT_SOURCE for name in _MODEL_FIELDS),
    )
    faults = [*reading.faults, *reading.unknown_variables(), *_find_conflicts(settings, reading.given)]
    if faults:
        raise _build_error(faults)
    return Loaded(settings=settings, sources=MappingProxyType(sources), notices=tuple(_find_notices(settings, reading.given)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """One place where variables are set; `said_as` follows a variable's name in messages."""

    source: str
    said_as: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What was found for one setting, before it is parsed."""

    raw: object
    source: str
    label: str


class _Reading:
    """One reading of all settings. It gathers faults instead of stopping at the first."""

    def __init__(self, flags: Mapping[str, object], environ: Mapping[str, str], cwd: Path) -> None:
        self._declared = declared_fields()
        unknown = set(flags) - set(self._declared)
        if unknown:
            raise TypeError(f"no such setting: {', '.join(sorted(unknown))}")
        self._flags = flags
        self._cwd = cwd
        self._layers = [_Layer(source="environment", said_as="", values=environ)]
        self.given: dict[str, _Given] = {}
        self.faults: list[str] = []

    def read(self) -> dict[str, Any]:
        """The values of all settings that are set and make sense, by field name."""
        if self._is_there(self._cwd / ".env"):
            self._open_env_file(self._cwd / ".env")
        values = {"extra_env_files": self._read_one("extra_env_files")}
        for path in () if values["extra_env_files"] is _NOT_GIVEN else values["extra_env_files"]:
            self._open_env_file(path, "extra env file ")
        values |= {name: self._read_one(name) for name in self._declared if name not in values}
        return {name: value for name, value in values.items() if value is not _NOT_GIVEN}

    def _is_there(self, path: Path) -> bool:
        """False for a folder, too: virtual environments are often called .env."""
        try:
            return path.is_file()
        except OSError as error:
            self.faults.append(f"{path} cannot be read: {error.strerror}")
            return False

    def _open_env_file(self, path: Path, kind: str = "") -> None:
        name = str(path.relative_to(self._cwd) if path.is_relative_to(self._cwd) else path)
        try:
            values = _read_env_file(path)
        except OSError as error:
            self.faults.append(f"{kind}{name} cannot be read: {error.strerror}")
        except ValueError as error:
            self.faults.append(f"{kind}{name} cannot be read: {error}")
        else:
            self._layers.insert(1, _Layer(source=kind + name, said_as=f" in {name}", values=values))

    def _read_one(self, name: str) -> Any:
        """The parsed value, or _NOT_GIVEN; a fault is noted and counts as not given."""
        declared = self._declared[name]
        given = self._find(name, declared)
        if given is None:
            return _NOT_GIVEN
        self.given[name] = given
        try:
            value = _parse(declared, given.raw)
        except ValueError as error:
            shown = "" if declared.is_secret else f", got {_shorten(given.raw)}"
            self.faults.append(f"{given.label} must be {error}{shown}")
            return _NOT_GIVEN
        return _anchor(value, self._cwd)

    def _find(self, name: str, declared: Declared) -> _Given | None:
        flag = self._flags.get(name)
        if flag is not None and flag != () and (declared.takes_empty or str(flag).strip()):
            word = max(declared.flags, key=len, default=name)
            return _Given(raw=flag, source=f"flag {word}" if declared.flags else f"argument {word}", label=word)
        for layer in self._layers:
            for variable in declared.variables:
                text = layer.values.get(variable)
                if text is not None and (declared.takes_empty or text.strip()):
                    source = f"environment {variable}" if layer.source == "environment" else layer.source
                    return _Given(raw=text, source=source, label=variable + layer.said_as)
        return None

    def unknown_variables(self) -> Iterator[str]:
        """Faults for variables that begin like ours and are not."""
        known = [variable for declared in self._declared.values() for variable in declared.variables]
        by_ending = {variable.removeprefix(_PREFIX): variable for variable in reversed(known)}
        for layer in self._layers:
            for variable in sorted(layer.values):
                if variable.startswith(_PREFIX) and variable not in known:
                    from difflib import get_close_matches

                    near = get_close_matches(variable.removeprefix(_PREFIX), by_ending, n=1)
                    yield f"{variable}{layer.said_as} is no setting" + (f"; did you mean {by_ending[near[0]]}?" if near else "")


def _read_env_file(path: Path) -> dict[str, str]:
    """The variables of a file, as python-dotenv reads them, `$` left alone.

    Raises:
        ValueError: it is too long, not UTF-8, or a line makes no sense. The line itself is not shown: it may hold a key.
    """
    from dotenv.parser import parse_stream

    if path.stat().st_size > MAX_ENV_FILE_BYTES:
        raise ValueError(f"it is longer than {MAX_ENV_FILE_BYTES:,} bytes")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    values = {}
    for binding in parse_stream(io.StringIO(text)):
        if binding.error:
            raise ValueError(f"line {binding.original.line} is not NAME=value, or a quote in it has no end")
        if binding.key is not None and binding.value is not None:
            values[binding.key] = binding.value
    return values


def _parse(declared: Declared, raw: object) -> object:
    if isinstance(raw, (tuple, list)) and declared.takes_many:
        return tuple(parse_path(str(word)) for word in raw)
    if isinstance(raw, bool) and declared.is_switch:
        return raw
    text = raw.reveal() if isinstance(raw, Secret) else " ".join(raw) if isinstance(raw, (tuple, list)) else str(raw)
    if declared.takes_empty and not text.strip():
        return None
    return declared.parse(text)


def _anchor(value: object, cwd: Path) -> object:
    """Relative paths are the working folder's."""
    if isinstance(value, Path):
        return cwd / value
    if isinstance(value, tuple):
        return tuple(cwd / part if isinstance(part, Path) else part for part in value)
    return value


def _shorten(raw: object) -> str:
    text = re.sub(_PASSWORD_IN_URL, "//***@", str(raw))
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _find_conflicts(settings: Settings, given: Mapping[str, _Given]) -> Iterator[str]:
    """Faults between settings that are each right alone."""
    yield from _find_bygone_models(settings, given)
    if settings.embedding_base_url and not settings.embedding_model:
        yield "BABYAGI_EMBEDDING_BASE_URL needs BABYAGI_EMBEDDING_MODEL: the model to ask for there"
    if ("price_in" in given) != ("price_out" in given):
        yield "BABYAGI_PRICE_IN and BABYAGI_PRICE_OUT go together; one of them is missing"
    yield from _find_wrong_mode(settings, given)
    flags = [found.label for found in given.values() if found.source.startswith("flag ")]
    if flags and not settings.enable_command_line_args:
        yield f"{given['enable_command_line_args'].label} is false, which refuses {', '.join(flags)}; set it to true to use flags"


def _find_wrong_mode(settings: Settings, given: Mapping[str, _Given]) -> Iterator[str]:
    """Faults of a mode that the task store cannot serve."""
    is_server = settings.task_store.reveal().startswith("postgres")
    if settings.cooperative_mode == "distributed" and not is_server:
        label = given["cooperative_mode"].label
        yield f"{label}=distributed needs a server: BABYAGI_TASK_STORE=postgresql://USER:PASSWORD@HOST/DATABASE"
    if settings.cooperative_mode == "local" and is_server:
        yield f"{given['cooperative_mode'].label}=local shares a file of this machine, and BABYAGI_TASK_STORE is a server: say distributed"


def _find_bygone_models(settings: Settings, given: Mapping[str, _Given]) -> Iterator[str]:
    """Faults for what the original ran and this program does not."""
    if settings.gpt_4:
        yield f"-4 asks for gpt-4, which is shut down; its successor is {DEFAULT_MODEL}: --model {DEFAULT_MODEL}"
    if settings.llama:
        yield f"-l: {USE_LLAMA_SERVER}"
    for name in _MODEL_FIELDS:
        if getattr(settings, name).startswith("llama") and not settings.openai_base_url:
            yield f"{given[name].label}={getattr(settings, name)}: {USE_LLAMA_SERVER}"


def _find_notices(settings: Settings, given: Mapping[str, _Given]) -> Iterator[str]:
    """One line for each thing that is not there yet, with all the settings that ask for it."""
    names_by_notice: dict[str, list[str]] = {}
    for name, declared in declared_fields().items():
        value = getattr(settings, name)
        if declared.arrives_later and name in given and value != _default_of(name):
            shown = f"{declared.label} is set" if declared.is_secret else f"{declared.label}={render_value(value)}"
            names_by_notice.setdefault(declared.arrives_later, []).append(shown)
    for notice, names in names_by_notice.items():
        yield f"{', '.join(names)}: {notice}"
    yield from find_keys_in_clear(settings)


def find_keys_in_clear(settings: Settings) -> Iterator[str]:
    """One line for each key that everybody on the way can read: over http to another machine."""
    asks_a_model = not set(settings.model_by_role.values()) <= set(MODELS_WITHOUT_ENDPOINT)
    asks_for_vectors = settings.effective_embedding_model not in (LOCAL_EMBEDDING_MODEL, ONNX_EMBEDDING_MODEL)
    asks_the_endpoint = asks_a_model or (asks_for_vectors and not settings.embedding_base_url)
    key, weaviate_key = settings.openai_api_key, settings.weaviate_api_key
    sent = [
        ("OPENAI_API_KEY", key, "OPENAI_BASE_URL", settings.openai_base_url, asks_the_endpoint),
        ("OPENAI_API_KEY", key, "BABYAGI_EMBEDDING_BASE_URL", settings.embedding_base_url, asks_for_vectors),
        ("WEAVIATE_API_KEY", weaviate_key, "WEAVIATE_URL", settings.weaviate_url, settings.effective_result_store == "weaviate"),
    ]
    for name, given_key, variable, url, is_asked in sent:
        if given_key and is_asked and is_in_clear(url):
            yield f"{name} goes to {url} in clear: everybody on the way can read it; set {variable} to an https address"
    if is_in_clear(settings.notify.reveal()):  # the address is as good as a key
        host = urlsplit(settings.notify.reveal()).netloc
        yield f"BABYAGI_NOTIFY sends to {host} in clear: everybody on the way can read it; set it to an https address"


def _build_error(faults: list[str]) -> SettingsError:
    what = faults[0] if len(faults) == 1 else f"{len(faults)} settings cannot be used:\n" + "\n".join(f"  {fault}" for fault in faults)
    return SettingsError(what, fix=_FIX, guide="settings")


def _default_of(name: str) -> object:
    """The plain default; None for one that is computed."""
    default = next(found.default for found in fields(Settings) if found.name == name)
    return None if default is MISSING else default


def render_value(value: object) -> str:
    """A value as a person would set it; secrets as stars, nothing as nothing."""
    if value is None or (isinstance(value, Secret) and not value):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, tuple):
        return " ".join(str(part) for part in value)
    return str(value)


def _explain(name: str, declared: Declared) -> str:
    """Help, choices, default and what is not there yet, as one paragraph."""
    default = declared.default_text or render_value(_default_of(name)) or "none"
    choices = f" One of {', '.join(declared.choices)}." if declared.choices else ""
    later = f" Not yet: {declared.arrives_later}." if declared.arrives_later else ""
    return f"{declared.help}{choices} Default: {default}.{later}"


def render_env_example() -> str:
    """The text of `.env.example`: every variable, none of them set, in the form that python-dotenv and `docker run --env-file` share."""
    lines = [
        "# Copy this file to .env and fill in what you need. An empty value means the default.",
        "# Write values bare, to the end of the line: no quotes, and no comment behind a value.",
    ]
    for name, declared in declared_fields().items():
        if declared.section:
            lines += ["", f"# == {declared.section} =="]
        if declared.variables:
            older = f" Other name: {', '.join(declared.variables[1:])}." if declared.variables[1:] else ""
            lines += ["", f"# {_explain(name, declared)}{older}", f"{declared.variables[0]}="]
    return "\n".join(lines) + "\n"
