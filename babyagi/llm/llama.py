"""A model in this process: one llama.cpp engine on a GGUF file, shared by all callers. It is called
as every other server is, through a port of this machine.

The first call loads the file; after an idle time it is unloaded. A prompt that does not fit is
refused before it is processed. A cancelled call closes its connection, which stops the engine.
"""

from __future__ import annotations

import asyncio
import io
import os
import struct
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from babyagi.errors import (
    ContextTooLongError,
    ModelUnavailableError,
    SettingsError,
    ToolsUnsupportedError,
)
from babyagi.llm.client import CHAT, Endpoint, OpenAIModel
from babyagi.llm.errors import Form
from babyagi.llm.port import Abilities, Completion, OnText
from babyagi.llm.prompt import Prompt, bound_tokens
from babyagi.llm.retry import Deadline
from babyagi.tasks import Reservation, Role

NAME = "llama"
MAX_CONTEXT_TOKENS = 8192  # unless one is set; a longer context takes memory from the start
BATCH_TOKENS = 256  # of a prompt, processed at once
MIN_ROOM_TOKENS = 64  # a prompt that leaves less room for the answer is too long
MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def require_model_file(path: Path | None) -> ModelFile:
    """Return the metadata of the model's file.

    Raises:
        SettingsError: the engine is not installed, the file does not exist, or it is not a model.
    """
    if find_spec("xllamacpp") is None:
        what = "LLM_MODEL=llama needs llama.cpp's engine, and xllamacpp is missing"
        raise SettingsError(what, fix="pip install 'babyagi-daemon[llama]'", guide="models")
    if path is None:
        what = "LLM_MODEL=llama needs a model file"
        fix = "LLAMA_MODEL_PATH=FILE.gguf, the path of the model file"
        raise SettingsError(what, why="LLAMA_MODEL_PATH is not set", fix=fix, guide="models")
    try:
        return read_model_file(path)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        what = f"LLAMA_MODEL_PATH={path} is not a model that can be loaded"
        fix = "LLAMA_MODEL_PATH=FILE.gguf, with the path of a model file that is not damaged"
        raise SettingsError(what, why=why, fix=fix, guide="models") from error


def free_memory_bytes() -> int | None:
    """Return how much memory this process can still use; None if the system does not report it."""
    free = []
    with suppress(OSError, ValueError, IndexError):
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
        said = next(line for line in [*lines, ""] if line.startswith("MemAvailable:") or not line)
        free.append(int(said.split()[1]) * 1024)
    with suppress(OSError, ValueError):  # "max" is not a number: no limit
        most = int((CGROUP / "memory.max").read_text(encoding="ascii"))
        free.append(most - int((CGROUP / "memory.current").read_text(encoding="ascii")))
    return min(free, default=None)


# -- the engine
# --------------------------------------------------------------------------------------------------


class Engine:
    """llama.cpp with one model file. One caller at a time uses it; the others wait.

    Args:
        context_tokens: the longest context; 0 for the one that the model was trained for, but at
            most `MAX_CONTEXT_TOKENS`.
        n_threads: 0 for all processors but one.
        idle_s: after this many seconds without a call the model is unloaded.
        timeout_s: seconds without a piece of an answer, counted from when the call gets the engine.
        say: receives a line about the needed and the free memory before the model is loaded.

    Raises:
        SettingsError: as in `require_model_file`.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        context_tokens: int = 0,
        n_threads: int = 0,
        idle_s: float = 600.0,
        timeout_s: float = 120.0,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.file = require_model_file(path)
        trained = self.file.context_tokens or MAX_CONTEXT_TOKENS
        self.context_tokens = min(trained, context_tokens or MAX_CONTEXT_TOKENS)
        self.deadline = Deadline(timeout_s)
        self._path, self._idle_s, self._say = path or Path(), idle_s, say
        self._n_threads = n_threads or max(1, (os.cpu_count() or 2) - 1)
        self._turn = asyncio.Lock()
        self._server: _Server | None = None
        self._unloading: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Endpoint]:
        """Wait until no other caller uses the engine, load the model if needed, and yield the
        engine's endpoint. If no other caller comes within `idle_s`, the model is unloaded.

        Raises:
            ModelUnavailableError: there is too little memory, or the model cannot be loaded.
        """
        async with self._turn:
            if self._unloading is not None:
                self._unloading.cancel()
            try:
                if self._server is None:
                    self._check_memory()
                    self._server = await _finish(asyncio.to_thread(self._load))
                url, key = self._server.url, self._server.key
                endpoint = Endpoint(
                    base_url=url, api_key=key, sleep=asyncio.sleep, random=lambda: 0.5
                )
                endpoint.deadline = self.deadline
                try:
                    yield endpoint
                finally:
                    await endpoint.close()
            finally:
                loop = asyncio.get_running_loop()
                self._unloading = loop.call_later(self._idle_s, self._unload)

    async def close(self) -> None:
        """Unload the model; the next call would load it again."""
        async with self._turn:
            if self._unloading is not None:
                self._unloading.cancel()
            self._unload()

    def _unload(self) -> None:
        self._server = None

    def _check_memory(self) -> None:
        needed, free = self.file.memory_bytes(self.context_tokens), free_memory_bytes()
        said = f"{self.file.name} takes about {_say_bytes(needed)} of memory"
        if free is not None and needed > free:
            why = f"the memory for a context of {self.context_tokens:,} tokens is included"
            fix = "shorten the context: LLAMA_CTX_MAX=N; or use a smaller model or more memory"
            what = f"{said}, but only {_say_bytes(free)} are free"
            raise ModelUnavailableError(what, why=why, fix=fix)
        left = f", {_say_bytes(free)} are free" if free is not None else ""
        context = f"a context of {self.context_tokens:,} tokens"
        self._say(f"{said}, with {context}; it is loaded now{left}")

    def _load(self) -> _Server:
        return _Server(self._path, context_tokens=self.context_tokens, n_threads=self._n_threads)


def _say_bytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"


async def _finish(loading: Coroutine[Any, Any, _Server]) -> _Server:
    """Return what is loaded. If cancelled, wait until it is loaded, because nothing stops its
    thread, and two would take twice the memory."""
    running = asyncio.create_task(loading)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


class _Server:
    """The loaded engine. It listens on a port of this machine, which requires a key that only this
    process knows.

    Attributes:
        url: the address of its API, which is OpenAI's.
    """

    def __init__(self, path: Path, *, context_tokens: int, n_threads: int) -> None:
        import xllamacpp

        self.key = os.urandom(16).hex()
        given = xllamacpp.CommonParams()
        given.model.path = str(path)
        given.cpuparams.n_threads = given.cpuparams_batch.n_threads = n_threads
        for name, value in {
            "api_keys": [self.key],
            "ui": False,
            "endpoint_slots": False,
            "endpoint_metrics": True,  # asked for below
            "fit_params": False,  # else the engine chooses another length for the context
            "verbosity": -1,
            "n_ctx": context_tokens,
            "n_parallel": 1,
            "n_batch": BATCH_TOKENS,
            "n_ubatch": BATCH_TOKENS,
            "cache_ram_mib": 0,  # else it keeps gigabytes of earlier prompts
        }.items():
            setattr(given, name, value)
        try:
            self._engine = xllamacpp.Server(given)
        except RuntimeError as error:
            what = f"{path} could not be loaded"
            fix = "LLAMA_MODEL_PATH=FILE.gguf, with a complete model that llama.cpp supports"
            raise ModelUnavailableError(what, why=str(error), fix=fix) from error
        # deleting the engine before its thread answers would hang
        self._engine.handle_metrics()
        self.url = f"{self._engine.listening_address}/v1"


def _render(prompt: Prompt, name: str, form: Form) -> dict[str, Any]:
    """Return the request of Chat Completions with a grammar in place of its JSON Schema. The
    grammar also forbids blanks between the parts of a value, because a small model may write blanks
    endlessly."""
    import xllamacpp

    request = CHAT.render(prompt, name, form)
    if "response_format" in request:
        schema = request.pop("response_format")["json_schema"]["schema"]
        schema = {**schema, "x-guidance": {"whitespace_flexible": False}}
        request["grammar"] = xllamacpp.json_schema_to_grammar(schema)
    return request


# -- the model
# --------------------------------------------------------------------------------------------------


class LlamaModel:
    """A `ChatModel` that runs on an engine, free of cost. It answers one call at a time; the others
    wait.

    Args:
        engine: may be shared; the code that opened it must close it.
        temperature: None for the model's default.
    """

    def __init__(self, engine: Engine, *, temperature: float | None = None) -> None:
        self.name = NAME
        self.deadline = engine.deadline
        self.abilities = Abilities(
            takes_tools=engine.file.takes_tools,
            holds_schema=True,
            context_tokens=engine.context_tokens,
        )
        self._engine = engine
        self._temperature = temperature

    def reserve(self, prompt: Prompt) -> Reservation:
        bound = bound_tokens(prompt) + prompt.max_output_tokens
        return Reservation(calls=1, tokens=min(bound, self._engine.context_tokens))

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        file, most = self._engine.file, self._engine.context_tokens
        if prompt.tools and not file.takes_tools:
            what = f"{file.name} does not support tools"
            why = "the chat template of the model leaves the tools out"
            fix = "set BABYAGI_PROTOCOL to auto, json or text, or choose another model"
            raise ToolsUnsupportedError(what, why=why, fix=fix, guide="models")
        async with self._engine.turn() as endpoint:
            model = OpenAIModel(
                NAME,
                endpoint,
                temperature=self._temperature,
                dialect=replace(CHAT, render=_render),
            )
            # always as a stream, so that a call goes on while pieces of its answer come
            heard = on_text or (lambda text: None)
            completion = await model.complete(prompt, role=role, on_text=heard)
        room = most - completion.usage.prompt_tokens
        is_cut = completion.finish_reason == "length"
        if is_cut and room < min(MIN_ROOM_TOKENS, prompt.max_output_tokens):
            raise ContextTooLongError(
                f"the prompt leaves room for {room} of {most} tokens",
                fix="raise LLAMA_CTX_MAX for a longer context, or lower BABYAGI_CONTEXT_TOKENS for "
                "shorter prompts",
                guide="models",
                may_be_billed=True,
            )
        return replace(completion, model=NAME)


# -- the metadata of a model, read from the header of its GGUF file, without loading the model. The
# sizes in the file are not trusted: nothing is read beyond the header's first `MAX_HEAD_BYTES`.
# --------------------------------------------------------------------------------------------------


MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_HEAD_BYTES = 64 * 2**20  # the longest vocabulary takes some 20 MB
BYTES_PER_CELL = 2  # keys and values are kept as half floats
OVERHEAD_BYTES = 96 * 2**20  # what the engine takes beside the weights and the context

_TEXT, _LIST = 8, 9
_FORMAT_BY_TYPE = dict(enumerate("<B <b <H <h <I <i <f <?".split()))
_FORMAT_BY_TYPE |= {10: "<Q", 11: "<q", 12: "<d"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model file.

    Attributes:
        name: the name that the model's author gave it, or the file name if there is none.
        n_bytes: the size of the file.
        context_tokens: the longest context that the model was trained for; 0 when unknown.
        takes_tools: whether its chat template shows tools to the model.
        bytes_per_token: memory for one token of context; 0 when unknown.
    """

    name: str
    n_bytes: int
    context_tokens: int = 0
    takes_tools: bool = False
    bytes_per_token: int = 0

    def memory_bytes(self, context_tokens: int) -> int:
        """Return about how much memory the model uses with a context of this length."""
        return self.n_bytes + context_tokens * self.bytes_per_token + OVERHEAD_BYTES


def read_model_file(path: Path) -> ModelFile:
    """Return the metadata in the header of the file.

    Raises:
        ValueError: the file is not a GGUF file, or is damaged.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        head = io.BytesIO(file.read(MAX_HEAD_BYTES))
    if head.read(4) != MAGIC:
        raise ValueError("the file does not begin like a GGUF file")
    try:
        found = _read_head(head)
    except (struct.error, OverflowError, KeyError) as error:
        raise ValueError(f"the file's header is damaged ({type(error).__name__})") from error
    return _describe(found, path)


def _describe(found: Mapping[str, Any], path: Path) -> ModelFile:
    kind = found.get("general.architecture", "")

    def number(name: str) -> int:
        value = found.get(f"{kind}.{name}")
        return value if isinstance(value, int) and value > 0 else 0

    n_heads, width = number("attention.head_count"), number("embedding_length")
    head = number("attention.key_length") or (width // n_heads if n_heads else 0)
    n_kept_heads = number("attention.head_count_kv") or n_heads
    name = found.get("general.name")
    return ModelFile(
        name=name if isinstance(name, str) and name else path.stem,
        n_bytes=path.stat().st_size,
        context_tokens=number("context_length"),
        takes_tools="tools" in str(found.get("tokenizer.chat_template", "")),
        bytes_per_token=2 * number("block_count") * n_kept_heads * head * BYTES_PER_CELL,
    )


def _read_head(file: BinaryIO) -> dict[str, Any]:
    (version,) = _read(file, "<I")
    if version not in VERSIONS:
        raise ValueError(f"the file has GGUF version {version}; supported: {VERSIONS}")
    _, n_keys = _read(file, "<QQ")
    found: dict[str, Any] = {}
    for _ in range(n_keys):
        key = _read_text(file)
        (kind,) = _read(file, "<I")
        found[key] = _read_value(file, kind)
    return found


def _read_value(file: BinaryIO, kind: int) -> Any:
    """Read a value of this GGUF type, and return it. The items of a list are skipped; None is
    returned for it."""
    if kind == _TEXT:
        return _read_text(file)
    if kind != _LIST:
        return _read(file, _FORMAT_BY_TYPE[kind])[0]
    item, n_items = _read(file, "<IQ")
    if item == _TEXT:
        for _ in range(n_items):
            _read_text(file)
    else:
        file.seek(n_items * struct.calcsize(_FORMAT_BY_TYPE[item]), 1)
    return None


def _read_text(file: BinaryIO) -> str:
    (n_bytes,) = _read(file, "<Q")
    (text,) = _read(file, f"<{n_bytes}s")
    return str(text, "utf-8", "replace")


def _read(file: BinaryIO, form: str) -> tuple[Any, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))
