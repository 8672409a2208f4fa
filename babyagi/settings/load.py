"""Reads flags, environment and files of variables (`.env`) into `Settings`, and decides which files
are trusted."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import stat
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from babyagi.errors import SettingsError
from babyagi.net.addresses import host_of, is_here, is_in_clear
from babyagi.redaction import redact, redact_url
from babyagi.settings.fields import (
    DEFAULT_MODEL,
    LLAMA_MODEL,
    LOCAL_EMBEDDING_MODEL,
    MODELS_WITHOUT_ENDPOINT,
    ONNX_EMBEDDING_MODEL,
    USE_LLAMA,
    WITHOUT_EFFECT,
    Settings,
    declared_fields,
)
from babyagi.settings.values import (
    Declared,
    Secret,
    default_home,
    parse_path,
    parse_paths,
)
from babyagi.text import nearest, shorten

MAX_ENV_FILE_BYTES = 1_000_000
_FOLDER = "trusted"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvFile:
    """A file of variables, such as `.env`, with its content at the moment it was read.

    Attributes:
        name: the path as messages show it, relative if the file is below the working folder.
        digest: SHA-256 of the file's bytes, in hexadecimal.
        values: the variables by name.
    """

    path: Path
    name: str
    digest: str
    values: Mapping[str, str] = field(repr=False)


def read_env_file(path: Path, *, name: str, may_be_pipe: bool = False) -> EnvFile:
    """Read a file of variables as python-dotenv does, except that `$` is not expanded.

    Args:
        may_be_pipe: whether the path may be something else than a file, such as a pipe, which this
            function then waits for.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is too long or not UTF-8, or a line is invalid. The message does not
            show the line, because it may contain a key.
    """
    from dotenv.parser import parse_stream

    more = 0 if may_be_pipe else os.O_NONBLOCK
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | more)) as file:
        if not may_be_pipe and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a file")
        body = file.read(MAX_ENV_FILE_BYTES + 1)
    if len(body) > MAX_ENV_FILE_BYTES:
        raise ValueError(f"the file is longer than {MAX_ENV_FILE_BYTES:,} bytes")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    values = {}
    for binding in parse_stream(io.StringIO(text)):
        if binding.error:
            line = binding.original.line
            raise ValueError(f"line {line} is not NAME=value, or it has an unclosed quote")
        if binding.key is not None and binding.value is not None:
            values[binding.key] = binding.value
    return EnvFile(path=path, name=name, digest=hashlib.sha256(body).hexdigest(), values=values)


def is_trusted(home: Path, file: EnvFile) -> bool:
    """Return whether a person has trusted this file with this content."""
    return _mark(home, file).is_file()


def trust_file(home: Path, file: EnvFile) -> None:
    """Record that the file is trusted as long as its content does not change.

    Raises:
        StoreUnusableError: the home folder cannot be written.
    """
    from babyagi.files import private
    from babyagi.files.home import make_home

    make_home(home)
    mark = _mark(home, file)
    private.make_folder(mark.parent)
    mark.parent.chmod(private.FOLDER_MODE)
    private.write_bytes(mark, os.fsencode(file.path))


def distrust_file(home: Path, path: Path) -> int:
    """Make the file untrusted, whatever its content. Return how many of its contents were trusted
    before."""
    marks = [mark for mark, trusted in _marks(home) if trusted == path]
    for mark in marks:
        mark.unlink(missing_ok=True)
    return len(marks)


def trusted_paths(home: Path) -> list[Path]:
    """Return the paths of the files of which some content is trusted, sorted."""
    return sorted({path for _, path in _marks(home)})


def _marks(home: Path) -> list[tuple[Path, Path]]:
    folder = home / _FOLDER
    marks = sorted(folder.iterdir()) if folder.is_dir() else []
    return [(mark, Path(mark.read_text("utf-8", "surrogateescape"))) for mark in marks]


def _mark(home: Path, file: EnvFile) -> Path:
    digest = hashlib.sha256(os.fsencode(file.path) + b"\n" + file.digest.encode()).hexdigest()
    return home / _FOLDER / digest


# -- reads flags, environment and .env files into `Settings`
# --------------------------------------------------------------------------------------------------

logger = logging.getLogger(__name__)

DEFAULT_SOURCE = "default"
_MODEL_FIELDS = ("llm_model", "role_models")
# how an address of the model ends that is written whole, as many servers print it
_DIALECT_BY_ENDING = {"/chat/completions": "chat", "/responses": "responses"}
# a person who gives one of the two does not want the other from a stranger
_ORDERED_WITH = {"objective": "initial_task", "initial_task": "objective"}
_OWN_HOSTS = ("api.openai.com",)  # hosts of the providers whose address a setting can change
_PREFIX = "BABYAGI_"
# Variables that libraries, Python and agent files read from the environment. In a file they have no
# effect, which its author may not expect.
_OF_THE_ENVIRONMENT = re.compile(
    r"(?i)\w+_PROXY|SSL\w+|\w+_CA_BUNDLE|(?:LD|DYLD|XDG|OTEL|CHROMA|OPENAI|WEAVIATE|PINECONE"
    r"|SERPAPI|SERPER|DEEPSET|BRAVE|TAVILY|SEARCHAPI|SEARXNG)_\w+|(?:PG|PYTHON)\w+|HOME|PATH|TMPDIR|"
    r"[A-Z0-9_]+_PARAMS_\w+"
)
_FIX = "correct the value where it is set, or remove it there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Untrusted:
    """A setting that is ignored because the file that sets it is not trusted.

    Attributes:
        name: the name of its field in `Settings`.
        variable: its name in the file.
        shown: its value for the person who may trust the file, with stars in the place of keys and
            passwords.
        is_waiting: whether the setting takes effect once the file is trusted. If False, a flag, the
            environment or a trusted file sets it already.
    """

    name: str
    variable: str
    shown: str
    file: EnvFile
    is_waiting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The settings, the source of each, and messages for a person about them.

    Attributes:
        sources: by field name: `flag --model`, `argument objective`, `environment LLM_MODEL`,
            `extra env file X`, `.env`, `default`.
        notices: one line for each key that is sent unencrypted, and for each file with variables
            that have no effect there.
        untrusted: the settings that are ignored because their files are not trusted.
        trust_home: the home folder that records which files are trusted: the one that the
            environment names by an absolute path, or the default one.
    """

    settings: Settings
    sources: Mapping[str, str]
    notices: tuple[str, ...] = ()
    untrusted: tuple[Untrusted, ...] = ()
    trust_home: Path

    @property
    def waiting(self) -> tuple[Untrusted, ...]:
        return tuple(found for found in self.untrusted if found.is_waiting)

    def require_trust(self, names: Container[str] | None = None) -> None:
        """Raise an error if a setting that must not be ignored has no effect until its file is
        trusted.

        Args:
            names: the fields that must not be ignored; None for all.

        Raises:
            SettingsError: there is such a setting. The error says what to type.
        """
        waiting = [found for found in self.waiting if names is None or found.name in names]
        if waiting:
            paths = " ".join(dict.fromkeys(str(found.file.path) for found in waiting))
            raise SettingsError(
                describe_waiting(waiting),
                why="a file in a folder may come from anyone, and these settings can run "
                "programs, send data, read files or spend money",
                fix="babyagi config trust shows these settings and asks whether to trust the file; "
                "without a terminal, name the file by its absolute path: "
                f"DOTENV_EXTENSIONS={paths} in the environment",
                guide="settings",
            )


def describe_waiting(waiting: Sequence[Untrusted]) -> str:
    """Return one line that names the settings that are ignored until their files are trusted, by
    file."""
    names_by_file: dict[str, list[str]] = {}
    for found in waiting:
        names_by_file.setdefault(found.file.name, []).append(found.variable)
    return "; ".join(
        f"{file} is not trusted, so these settings in it have no effect: {', '.join(names)}"
        for file, names in names_by_file.items()
    )


def load_here(flags: Mapping[str, object]) -> Settings:
    """Return the settings for a Python program that uses this package: `flags` by field name, then
    the environment and the working folder of this process. Notices for a person are logged.

    Raises:
        SettingsError: a value is invalid, or its file is not trusted.
    """
    loaded = load_settings(flags=flags, environ=os.environ, cwd=Path.cwd(), is_program=True)
    loaded.require_trust()
    for notice in loaded.notices:
        logger.warning("%s", notice)
    return loaded.settings


def variables_here() -> Mapping[str, str]:
    """Return the environment variables of this process. Variables that only a file sets are not
    among them."""
    return MappingProxyType(dict(os.environ))


def bare_environment() -> dict[str, str]:
    """Return those environment variables that are passed on to other programs of the user: PATH,
    HOME and the language. No keys are among them."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "HOME", "LANG") or name.startswith("LC_")
    }


def load_settings(
    *,
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: Path,
    reads_files: bool = True,
    is_program: bool = False,
) -> Loaded:
    """Read every setting. Each is taken from the first source that sets it: flags, environment,
    extra env files (the last file first), `.env` in `cwd`, default.

    From a file that is not trusted, only harmless values are taken (`Declared.untrusted`), and
    values of trusted files take precedence over them. A file is trusted when a flag names it, when
    the environment names it by its absolute path, or when a person trusted its digest.

    Args:
        flags: values by field name. Text is parsed like a variable's. None and () mean that the
            flag was not used.
        is_program: whether `flags` are arguments of a Python program. Messages then call them by
            their field names.

    Raises:
        SettingsError: it lists everything that is wrong.
    """
    reading = _Reading(flags, environ, cwd, is_program=is_program)
    values = _split_address(reading.read(reads_files=reads_files))
    if values.get("llama"):  # like -l of the original BabyAGI, it overrides LLM_MODEL
        values = {**values, "llm_model": LLAMA_MODEL}
    given = reading.given
    sources = dict.fromkeys(declared_fields(), DEFAULT_SOURCE)
    sources |= {name: found.source for name, found in given.items()}
    settings = Settings(
        **values,
        cost_limit_is_explicit="max_cost_usd" in given or reading.must_hold_money(),
        model_is_explicit=any(name in given for name in (*_MODEL_FIELDS, "llama")),
        objective_file=reading.file_of("objective"),
        task_file=reading.file_of("initial_task"),
    )
    faults = [*reading.faults, *reading.unknown_variables()]
    # an ignored setting of an untrusted file may be the one that would resolve the conflict
    if not any(found.is_waiting for found in reading.untrusted):
        faults += _find_conflicts(settings, given)
    if faults:
        listed = "\n  ".join([f"{len(faults)} settings cannot be used:", *faults])
        raise SettingsError(faults[0] if len(faults) == 1 else listed, fix=_FIX, guide="settings")
    return Loaded(
        settings=settings,
        sources=MappingProxyType(sources),
        notices=(
            *find_keys_in_clear(settings),
            *reading.ineffective_variables(),
            *reading.unused_variables(),
        ),
        untrusted=tuple(reading.untrusted),
        trust_home=reading.trust_home,
    )


def _split_address(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the address of the model cut before the name of an API, which is then
    the dialect unless another one is given."""
    address = values.get("openai_base_url", "")
    for ending, dialect in _DIALECT_BY_ENDING.items():
        if address.endswith(ending):
            cut = address.removesuffix(ending)
            return {"dialect": dialect, **values, "openai_base_url": cut}
    return values


class _Layer(NamedTuple):
    """One source of variables: the environment or a file.

    Attributes:
        said_as: what messages add to a variable's name, such as ` in .env`.
        untrusted: the file, if it is not trusted.
    """

    source: str
    said_as: str
    values: Mapping[str, str]
    untrusted: EnvFile | None = None


class _Given(NamedTuple):
    """The unparsed value that one source has for a setting."""

    raw: object
    source: str
    label: str
    variable: str = ""
    untrusted: EnvFile | None = None


class _Reading:
    """Reads all settings once. It collects errors as `faults` instead of stopping at the first
    one."""

    def __init__(
        self,
        flags: Mapping[str, object],
        environ: Mapping[str, str],
        cwd: Path,
        *,
        is_program: bool,
    ) -> None:
        self._declared = declared_fields()
        self._is_program = is_program
        unknown = set(flags) - set(self._declared)
        if unknown:
            raise TypeError(f"no such setting: {', '.join(sorted(unknown))}")
        self._variables = [name for one in self._declared.values() for name in one.variables]
        self._flags, self._cwd = flags, cwd
        self._layers = [_Layer("environment", "", environ)]
        # not from files, because a file must not decide which files are trusted; nor a relative
        # path, because the folder behind it may come from the same stranger as .env
        home: Path | None = None
        with suppress(ValueError):  # a fault that `read` reports
            named = self._find("home", self._declared["home"])
            home = next((parse_path(str(given.raw)) for given in named), None)
        self.trust_home: Path = home if home and home.is_absolute() else default_home()
        self._values: dict[str, Any] = {}
        self.given: dict[str, _Given] = {}
        self.untrusted: list[Untrusted] = []
        self.faults: list[str] = []

    def read(self, *, reads_files: bool) -> dict[str, Any]:
        """Return the valid values by field name. Settings that no source sets are left out."""
        if reads_files:
            self._open_env_files()
        names = [name for name in self._declared if name != "extra_env_files" or not reads_files]
        # addresses before the keys that are sent to them
        for name in sorted(names, key=lambda one: self._declared[one].key_for is not None):
            self._read_one(name)
        return self._values

    def _open_env_files(self) -> None:
        if self._is_there(self._cwd / ".env"):
            self._open_env_file(self._cwd / ".env")
        self._read_one("extra_env_files")
        for path in self._values.get("extra_env_files", ()):
            self._open_env_file(path, "extra env file ", is_named=self._is_named(path))

    def _is_named(self, path: Path) -> bool:
        """Return whether a person named exactly this file, by a flag or by its absolute path in the
        environment."""
        given = self.given["extra_env_files"]
        if given.source.startswith("environment"):
            return path in parse_paths(str(given.raw))
        return not given.variable

    def _is_there(self, path: Path) -> bool:
        """Return whether the path is a file. A folder does not count, because virtual environments
        are often called `.env`."""
        try:
            return path.is_file()
        except OSError as error:
            self.faults.append(f"{path} cannot be read: {error.strerror}")
            return False

    def _open_env_file(self, path: Path, kind: str = "", *, is_named: bool = False) -> None:
        name = str(path.relative_to(self._cwd) if path.is_relative_to(self._cwd) else path)
        try:
            file = read_env_file(path, name=name, may_be_pipe=is_named)
        except OSError as error:
            self.faults.append(f"{kind}{name} cannot be read: {error.strerror}")
        except ValueError as error:
            self.faults.append(f"{kind}{name} cannot be read: {error}")
        else:
            is_good = is_named or is_trusted(self.trust_home, file)
            layer = _Layer(kind + name, f" in {name}", file.values, None if is_good else file)
            n_trusted = sum(layer.untrusted is None for layer in self._layers)
            self._layers.insert(1 if is_good else n_trusted, layer)

    def _read_one(self, name: str) -> None:
        """Parse and keep the value of this setting from the source with the highest precedence. An
        invalid value is recorded as a fault, and not used."""
        declared = self._declared[name]
        for given in self._find(name, declared):
            is_settled, file = name in self.given, given.untrusted
            if is_settled and file is None:
                continue
            try:
                value = _parse(declared, given.raw)
            except ValueError as error:
                if not is_settled:
                    shown = "" if declared.is_secret else f", got {_show(given.raw)}"
                    self.faults.append(f"{given.label} must be {error}{shown}")
                    self.given[name] = given
                continue
            if file is not None and not self._is_harmless(name, declared, value, file):
                shown = value.hint if isinstance(value, Secret) else str(given.raw)
                found = Untrusted(
                    name=name, variable=given.variable, shown=shown, file=file,
                    is_waiting=not is_settled,
                )  # fmt: skip
                self.untrusted.append(found)
            elif not is_settled:
                self.given[name], self._values[name] = given, _anchor(value, self._cwd)

    def _is_harmless(self, name: str, declared: Declared, value: Any, file: EnvFile) -> bool:
        """Return whether this value may be used although it comes from an untrusted file."""
        if declared.key_for is not None:
            return all(self._may_get_key(address, file) for address in declared.key_for)
        default = declared.default
        ordered_with = self._flags.get(_ORDERED_WITH.get(name, ""))
        if value != default and str(ordered_with or "").strip():
            return False
        judge = declared.untrusted
        return value == default or (judge(value, default) if callable(judge) else judge)

    def file_of(self, name: str) -> str:
        """Return the name of the untrusted file from which this setting's value was taken, if it is
        not the default; else ''."""
        given = self.given.get(name)
        is_set = given is not None and self._values.get(name) != self._declared[name].default
        return given.untrusted.name if given and given.untrusted and is_set else ""

    def _may_get_key(self, address: str, file: EnvFile) -> bool:
        """Return whether a key in this untrusted file may be sent to the address that the setting
        `address` holds: the provider's own, one on this machine, or one in the same file."""
        waiting = [one.name for one in self.untrusted if one.file is file and one.is_waiting]
        if address in waiting:
            return True
        url = self._values.get(address, "")
        return not url or is_here(url) or host_of(url) in _OWN_HOSTS

    def must_hold_money(self) -> bool:
        """Return whether an untrusted file names a model that may cost money. A model without a
        known price is then an error, as if a person had set the cost limit."""
        is_chosen = any(name in self.given and self.given[name].untrusted for name in _MODEL_FIELDS)
        return is_chosen and not is_here(self._values.get("openai_base_url", ""))

    def _find(self, name: str, declared: Declared) -> Iterator[_Given]:
        """Yield the values that the sources have for a setting, highest precedence first."""
        flag = self._flags.get(name)
        if flag is not None and flag != () and (declared.takes_empty or str(flag).strip()):
            words = () if self._is_program else declared.flags
            word = max(words, key=len, default=name)
            yield _Given(flag, f"flag {word}" if words else f"argument {word}", word)
        for layer in self._layers:
            for variable in declared.variables:
                text = layer.values.get(variable)
                if text is not None and (declared.takes_empty or text.strip()):
                    # the environment has no name in messages, so its variable is named
                    source = layer.source if layer.said_as else f"{layer.source} {variable}"
                    label = variable + layer.said_as
                    yield _Given(text, source, label, variable, layer.untrusted)

    def ineffective_variables(self) -> Iterator[str]:
        """Yield one line for each file that sets variables of other programs, which would have an
        effect only in the environment."""
        for layer in self._layers[1:]:
            foreign = filter(_OF_THE_ENVIRONMENT.fullmatch, layer.values)
            if names := [name for name in foreign if name not in self._variables]:
                why = "only babyagi's own settings are read from files; set them in the environment"
                yield f"{', '.join(names)}{layer.said_as}: no effect, because {why}"

    def unused_variables(self) -> Iterator[str]:
        """Yield one line for all variables of the original that are set and do nothing here."""
        names = {name for layer in self._layers for name, text in layer.values.items() if text}
        if unused := [f"{name} ({to})" for name, to in WITHOUT_EFFECT.items() if name in names]:
            yield f"no effect here, and what to set instead: {', '.join(unused)}"

    def unknown_variables(self) -> Iterator[str]:
        """Yield a fault for each variable that begins with BABYAGI_ but is not a setting."""
        by_ending = {name.removeprefix(_PREFIX): name for name in reversed(self._variables)}
        for layer in self._layers:
            for variable in sorted(layer.values):
                if variable.startswith(_PREFIX) and variable not in self._variables:
                    near = nearest(variable.removeprefix(_PREFIX), by_ending)
                    guess = f"; did you mean {by_ending[near]}?" if near else ""
                    yield f"{variable}{layer.said_as} is not a setting{guess}"


def _parse(declared: Declared, raw: object) -> object:
    if isinstance(raw, bool) and declared.is_switch:
        return raw
    if isinstance(raw, Secret):
        raw = raw.reveal()
    words = [str(word) for word in raw] if isinstance(raw, (tuple, list)) else [str(raw)]
    if not isinstance(raw, str) and declared.parse is parse_paths:  # a path may contain blanks
        return tuple(parse_path(word) for word in words)
    text = " ".join(words)
    if declared.takes_empty and not text.strip():
        return None
    value = declared.parse(text)
    if len(words) > 1 and not isinstance(value, tuple):
        raise ValueError(f"one {declared.metavar}, not {len(words)}")
    return value


def _anchor(value: object, cwd: Path) -> object:
    """Return the value with its relative paths resolved against the working folder."""
    if isinstance(value, Path):
        return cwd / value
    if isinstance(value, tuple):
        return tuple(cwd / part if isinstance(part, Path) else part for part in value)
    return value


def _show(raw: object) -> str:
    text = ", ".join(map(str, raw)) if isinstance(raw, (tuple, list)) else str(raw)
    if "@" in text:  # the text before it may be a password
        text = redact_url(text) if "://" in text else f"***{text[text.rindex('@') :]}"
    return repr(shorten(redact(text), 60))


def _find_conflicts(settings: Settings, given: Mapping[str, _Given]) -> Iterator[str]:
    """Yield a fault for each pair of settings that are valid alone, but not together."""
    yield from _find_bygone_models(settings, given)
    if settings.embedding_base_url and not settings.embedding_model:
        yield "BABYAGI_EMBEDDING_BASE_URL needs BABYAGI_EMBEDDING_MODEL: the model to request there"
    if settings.embedding_model == LLAMA_MODEL:
        yield f"{given['embedding_model'].label}={LLAMA_MODEL}: it makes no vectors; set it to hash"
    yield from _find_missing_pipeline(settings, given)
    yield from _find_wrong_mode(settings, given)
    flags = [found.label for found in given.values() if found.source.startswith("flag ")]
    if flags and not settings.enable_command_line_args:
        label, refused = given["enable_command_line_args"].label, ", ".join(flags)
        yield f"{label} is false, which refuses {refused}; set it to true to use flags"


def _find_missing_pipeline(settings: Settings, given: Mapping[str, _Given]) -> Iterator[str]:
    """Yield a fault if tasks may use the tool ask_pipeline but its pipeline or key is missing."""
    if "ask_pipeline" not in settings.tools:
        return
    if not settings.pipeline:
        label = given["tools"].label
        yield f"{label} names ask_pipeline, which needs BABYAGI_PIPELINE, the pipeline to ask"
    elif "://" not in settings.pipeline and not settings.deepset_cloud_api_key:
        label = given["pipeline"].label
        yield f"{label} is on deepset Cloud, which needs DEEPSET_CLOUD_API_KEY"


def _find_wrong_mode(settings: Settings, given: Mapping[str, _Given]) -> Iterator[str]:
    """Yield a fault if COOPERATIVE_MODE does not fit the task store."""
    is_server = settings.task_store.reveal().startswith("postgres")
    if settings.cooperative_mode == "distributed" and not is_server:
        label, example = given["cooperative_mode"].label, "postgresql://USER:PASSWORD@HOST/DATABASE"
        yield f"{label}=distributed needs a server: BABYAGI_TASK_STORE={example}"
    if settings.cooperative_mode == "local" and is_server:
        problem = "shares a file on this machine, but BABYAGI_TASK_STORE is a server"
        yield f"{given['cooperative_mode'].label}=local {problem}: set the mode to distributed"


def _find_bygone_models(settings: Settings, given: Mapping[str, _Given]) -> Iterator[str]:
    """Yield a fault for each model that the original BabyAGI used and this program does not
    support."""
    if settings.gpt_4:
        fix = f"its successor is {DEFAULT_MODEL}: --model {DEFAULT_MODEL}"
        yield f"-4 asks for gpt-4, which is shut down; {fix}"
    chosen = [("llm_model", settings.llm_model)]
    chosen += [("role_models", entry.partition("=")[2]) for entry in settings.role_models]
    for name, model in chosen if not settings.openai_base_url else ():
        is_file = model.casefold().endswith(".gguf")
        if is_file or (model.startswith("llama") and model != LLAMA_MODEL):
            how = USE_LLAMA.replace("FILE.gguf", model) if is_file else USE_LLAMA
            yield f"{given[name].label}={model}: {how}"


def find_keys_in_clear(settings: Settings) -> Iterator[str]:
    """Yield one line for each key that would be sent unencrypted, over http to another machine."""
    asks_a_model = not set(settings.model_by_role.values()) <= set(MODELS_WITHOUT_ENDPOINT)
    embedders_here = (LOCAL_EMBEDDING_MODEL, ONNX_EMBEDDING_MODEL)
    asks_for_vectors = settings.effective_embedding_model not in embedders_here
    vectors_url = settings.embedding_base_url
    asks_the_endpoint = asks_a_model or (asks_for_vectors and not vectors_url)
    uses_weaviate = settings.effective_result_store == "weaviate"
    key, weaviate_key = settings.openai_api_key, settings.weaviate_api_key
    sent = [
        ("OPENAI_API_KEY", key, "OPENAI_BASE_URL", settings.openai_base_url, asks_the_endpoint),
        ("OPENAI_API_KEY", key, "BABYAGI_EMBEDDING_BASE_URL", vectors_url, asks_for_vectors),
        ("WEAVIATE_API_KEY", weaviate_key, "WEAVIATE_URL", settings.weaviate_url, uses_weaviate),
    ]
    for name, given_key, variable, url, is_asked in sent:
        if given_key and is_asked and is_in_clear(url):
            yield f"{name} is sent to {url} unencrypted; set {variable} to an https address"
    if is_in_clear(settings.notify.reveal()):  # the address is as secret as a key
        host = urlsplit(settings.notify.reveal()).netloc
        yield f"BABYAGI_NOTIFY sends to {host} unencrypted; set it to an https address"


def render_value(value: object) -> str:
    """Return a value as a person would type it in a file: a secret as stars, nothing for an empty
    value."""
    if value is None or (isinstance(value, Secret) and not value):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, tuple):
        return " ".join(str(part) for part in value)
    return str(value)
