"""Embedders: an endpoint with OpenAI's protocol, and Chroma's ONNX model on this machine."""

from __future__ import annotations

import asyncio
import fcntl
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from babyagi.errors import (
    BabyagiError,
    ContextTooLongError,
    CredentialsError,
    EndlessAnswerError,
    IndexUnavailableError,
    MalformedReplyError,
    ModelRejectedError,
    ModelUnavailableError,
    RequestRefusedError,
    SettingsError,
)
from babyagi.llm.client import Endpoint
from babyagi.llm.prices import Price
from babyagi.llm.prompt import bound_text_tokens
from babyagi.llm.reading import least_tokens, read_usage
from babyagi.llm.retry import Deadline
from babyagi.runtime.heavy_imports import import_chroma
from babyagi.runtime.offload import Offload
from babyagi.tasks import Reservation, Usage
from babyagi.text import clean

PATH = "/embeddings"
DIMENSION_BY_MODEL = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
# 8,192 numbers of 23 characters are 188 kB of JSON, and an answer may have 8 MiB; the API itself
# allows 2,048 texts, 300,000 tokens.
MAX_TEXTS_PER_REQUEST = 40
MAX_BYTES_PER_REQUEST = 300_000
# The models take 8,191 tokens, and a token is rarely shorter than 3 bytes.
MAX_BYTES_PER_TEXT = 24_000
TROUBLE = (ModelUnavailableError, ContextTooLongError, RequestRefusedError, EndlessAnswerError)


class OpenAIEmbedder:
    """An `Embedder` behind an endpoint. Only the beginning of a text longer than
    `MAX_BYTES_PER_TEXT` is embedded.

    Args:
        endpoint: a model may share it; the code that opened it must close it.

    The `dimension` of an unknown model is 0 until its first answer.
    """

    is_local = False

    def __init__(self, name: str, endpoint: Endpoint, *, price: Price | None = None) -> None:
        self.name = name
        self.dimension = DIMENSION_BY_MODEL.get(name, 0)
        host = "openai" if endpoint.is_openai else f"openai:{endpoint.host}"
        self.space = f"{host}:{name}:{self.dimension or 'native'}:v1"
        self._endpoint, self._price = endpoint, price
        # the error that a wrong setting caused; every further request would get the same one
        self._refused: BabyagiError | None = None

    def reserve(self, texts: Sequence[str]) -> Reservation:
        bounds, price = [_bound_tokens(batch) for batch in _batch(_prepare(texts))], self._price
        cost_usd = sum(price.cost_usd(tokens, 0) for tokens in bounds) if price else 0.0
        return Reservation(calls=len(bounds), tokens=sum(bounds), cost_usd=round(cost_usd, 6))

    async def embed(self, texts: Sequence[str]) -> tuple[list[bytes], Usage]:
        if self._refused is not None:
            raise self._refused
        vectors: list[bytes] = []
        usage = Usage()
        for batch in _batch(_prepare(texts)):
            try:
                found, used = await self._ask(batch)
            except (CredentialsError, ModelRejectedError) as error:
                self._refused = error
                error.may_be_billed = bool(vectors)
                raise
            except TROUBLE as error:
                billed = error.may_be_billed or bool(vectors)  # earlier batches were answered
                raise IndexUnavailableError(
                    error.what,
                    why=error.why,
                    fix=error.fix,
                    guide=error.guide,
                    may_be_billed=billed,
                ) from error
            vectors += found
            usage += used
        return vectors, usage

    async def _ask(self, batch: Sequence[str]) -> tuple[list[bytes], Usage]:
        def parse(reply: Mapping[str, Any]) -> tuple[list[bytes], Usage]:
            return self._read_vectors(reply, len(batch)), self._count(reply, batch)

        request = {"model": self.name, "input": list(batch)}
        # work goes on without an answer: a vain wait for one must not lengthen the next
        deadline = Deadline(self._endpoint.deadline.now_s)
        return await self._endpoint.post(
            PATH, request, model=self.name, parse=parse, deadline=deadline
        )

    def _read_vectors(self, reply: Mapping[str, Any], n_texts: int) -> list[bytes]:
        """Return one unit vector per text.

        Raises:
            MalformedReplyError: the rows are not exactly those requested, or a row is all zeros or
                not finite.
        """
        rows = reply.get("data")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise MalformedReplyError("there are no rows")
        by_index = {str(row.get("index", at)): row.get("embedding") for at, row in enumerate(rows)}
        wanted = [str(at) for at in range(n_texts)]
        if len(rows) != n_texts or set(by_index) != set(wanted):
            said = f"{n_texts} texts were sent, {len(rows)} rows were received"
            raise MalformedReplyError(
                f"{said}; the indexes of the embeddings must be 0 to {n_texts - 1}"
            )
        vectors = [normalize(by_index[at]) for at in wanted]
        self.dimension = self.dimension or len(vectors[0]) // 4
        if wrong := {len(vector) // 4 for vector in vectors} - {self.dimension}:
            what = f"vectors of {self.dimension} dimensions were expected"
            raise MalformedReplyError(f"{what}, {min(wrong)} were received")
        return vectors

    def _count(self, reply: Mapping[str, Any], batch: Sequence[str]) -> Usage:
        least, reserved = (max(1, least_tokens(" ".join(batch))), 0), (_bound_tokens(batch), 0)
        return read_usage(reply.get("usage"), self._price, least=least, reserved=reserved)


def _prepare(texts: Sequence[str]) -> list[str]:
    """Return the texts as they are sent: cleaned, cut, and `(empty)` in place of an empty text,
    which the API would refuse."""
    cut = (clean(text).encode()[:MAX_BYTES_PER_TEXT].decode("utf-8", "ignore") for text in texts)
    return [text if text.strip() else "(empty)" for text in cut]


def _batch(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    n_bytes = 0
    for text in texts:
        size = len(text.encode())
        is_full = len(batch) == MAX_TEXTS_PER_REQUEST or n_bytes + size > MAX_BYTES_PER_REQUEST
        if batch and is_full:
            yield batch
            batch, n_bytes = [], 0
        batch.append(text)
        n_bytes += size
    if batch:
        yield batch


def _bound_tokens(batch: Sequence[str]) -> int:
    return sum(bound_text_tokens(text) + 8 for text in batch)


def normalize(vector: Any) -> bytes:
    """Return the vector, scaled to length 1, as little-endian float32."""
    values = vector if isinstance(vector, list) else []
    if not values or not all(isinstance(value, (int, float)) for value in values):
        raise MalformedReplyError("a vector in the reply is not a list of numbers")
    try:
        length = math.hypot(*vector)
    except OverflowError:
        length = math.inf
    if not 0 < length < math.inf:
        what = "a vector in the reply has no direction: all zeros, or numbers that are not finite"
        raise MalformedReplyError(what)
    return struct.pack(f"<{len(vector)}f", *(value / length for value in vector))


# --------------------------------------------------------------------------------------------------
# Chroma's embedding model, all-MiniLM-L6-v2, run on this machine by ONNX Runtime. It needs no key.
#
# Chroma's code downloads its files (an archive of 80 MB), checks their SHA-256, and keeps them in
# Chroma's folder, so a person who has used the model with Chroma has them already. Only
# `fetch_files` starts the download: before a run, if a person has chosen this model.
# --------------------------------------------------------------------------------------------------

T = TypeVar("T")

NAME = "chroma-onnx"
# the files that Chroma looks for
FILES = tuple(
    "config.json model.onnx special_tokens_map.json tokenizer_config.json tokenizer.json "
    "vocab.txt".split()
)
MAX_CHARS = 16_000  # of a text; the model reads its first 256 tokens
# Texts that are embedded without a chance to cancel. Each may take 0.2 s of processor time, because
# Chroma pads it to 256 tokens.
BATCH = 4


class OnnxEmbedder:
    """An `Embedder` from local files. It embeds the first 256 tokens of the first `MAX_CHARS`
    characters of a text.

    Every failure is an `IndexUnavailableError`: the run goes on without vectors, and results are
    embedded once the failure is repaired.
    """

    is_local = True
    dimension = 384
    space = "onnx:all-MiniLM-L6-v2:384:v1"

    def __init__(self, *, offload: Offload) -> None:
        self._offload = offload
        self._model: Any = None
        self._turn = asyncio.Lock()  # one batch at a time: each uses all processors

    def reserve(self, texts: Sequence[str]) -> Reservation:
        return Reservation()

    async def embed(self, texts: Sequence[str]) -> tuple[list[bytes], Usage]:
        vectors: list[bytes] = []
        for start in range(0, len(texts), BATCH):
            batch = [clean(text[:MAX_CHARS]) for text in texts[start : start + BATCH]]
            async with self._turn:
                vectors += await self._offload(partial(self._embed, batch))
        return vectors, Usage()

    def _embed(self, texts: Sequence[str]) -> list[bytes]:
        if missing := missing_files():
            fix = f"start again with BABYAGI_EMBEDDING_MODEL={NAME}, which downloads the files"
            raise _trouble(missing, fix=fix)
        try:
            self._model = model = self._model or open_model()
            return [normalize(vector.tolist()) for vector in model(list(texts))]
        except IndexUnavailableError:
            raise
        except Exception as error:  # the two libraries document no error types
            again = f"start again with BABYAGI_EMBEDDING_MODEL={NAME}"
            fix = f"remove {files_folder()} if its files are damaged, and {again}"
            raise _trouble(f"{type(error).__name__}: {error}", fix=fix) from error


def fetch_files(tell: Callable[[str], None] = lambda _: None) -> None:
    """Download the model's files unless they exist. This blocks until the download has ended.

    Args:
        tell: receives one line of text before the download begins.

    Raises:
        SettingsError: the files do not exist and cannot be downloaded, or the downloaded ones are
            invalid.
    """
    if not missing_files():
        return
    folder = files_folder()
    try:
        tell(f"the embedding model {NAME} is downloaded once (80 MB) into {folder}")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (folder.parent / "babyagi.lock").open("a") as lock:
            # another process that downloads would write into the same archive
            fcntl.flock(lock, fcntl.LOCK_EX)
            open_model()(["is it whole?"])
    except Exception as error:
        # network, disk and archive errors have different types in each library
        raise SettingsError(
            f"the embedding model {NAME} is not on this machine and could not be fetched",
            why=f"{type(error).__name__}: {error}",
            fix="start again with a network connection, or copy the model's files into "
            f"{folder}, or set BABYAGI_EMBEDDING_MODEL=hash, which needs no files",
            guide="models",
        ) from error


def missing_files() -> str:
    """Return which files of the model are missing, such as `model.onnx is not in FOLDER`; "" if
    none is."""
    missing = [name for name in FILES if not (files_folder() / name).is_file()]
    verb = "is" if len(missing) == 1 else "are"
    return f"{', '.join(missing)} {verb} not in {files_folder()}" if missing else ""


def files_folder() -> Path:
    kind = _import_kind()
    return Path(kind.DOWNLOAD_PATH, kind.EXTRACTED_FOLDER_NAME)


def open_model() -> Any:
    """Return Chroma's embedding function; calling it downloads missing files."""
    model = _import_kind()(preferred_providers=["CPUExecutionProvider"])
    model.tqdm = partial(model.tqdm, disable=True)  # its progress bar would break into ours
    return model


def _import_kind() -> Any:
    try:
        import_chroma()
        from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2
    except ImportError as error:
        why = f"Chroma cannot be imported: {error}"
        raise _trouble(why, fix="pip install 'chromadb>=1.5.9'") from error
    return ONNXMiniLM_L6_V2


def _trouble(why: str, *, fix: str) -> IndexUnavailableError:
    what = f"the embedding model {NAME} cannot be used"
    return IndexUnavailableError(what, why=why, fix=fix, guide="models")
