"""Chroma's embedding model, all-MiniLM-L6-v2, run on this machine by ONNX Runtime: it knows meaning
and needs no key.

Its files are Chroma's: fetched by its code (an archive of 80 MB), checked against their SHA-256,
and kept in its folder, so that whoever has used them with Chroma has them already. `fetch_files`
alone fetches them, when a person has chosen this model and before a run begins; importing, opening
and embedding never do.
"""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from babyagi.chroma_import import import_chroma
from babyagi.errors import IndexUnavailableError, SettingsError
from babyagi.llm.prompt import clean
from babyagi.tasks import Reservation, Usage

T = TypeVar("T")

NAME = "chroma-onnx"
FILES = (
    "config.json",
    "model.onnx",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "vocab.txt",
)  # as Chroma looks for
MAX_CHARS = 16_000  # of a text that are looked at; the model takes its first 256 tokens
# texts between two chances to be cancelled; each may take 0.2 s of processor time, because Chroma
# fills it up to 256 tokens
BATCH = 4


class Offload(Protocol):
    """Runs blocking work in a thread."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class OnnxEmbedder:
    """An `Embedder` from files on this machine. Of a text the first 256 tokens count, of
    `MAX_CHARS` characters.

    Whatever keeps it from working is an `IndexUnavailableError`: a run goes on without vectors, and
    has them once that is mended.
    """

    is_local = True
    dimension = 384
    space = "onnx:all-MiniLM-L6-v2:384:v1"

    def __init__(self, *, offload: Offload) -> None:
        self._offload = offload
        self._model: Any = None
        self._turn = asyncio.Lock()  # one batch at a time: each uses every processor

    def reserve(self, texts: Sequence[str]) -> Reservation:
        return Reservation()

    async def embed(self, texts: Sequence[str]) -> tuple[list[bytes], Usage]:
        vectors: list[bytes] = []
        for start in range(0, len(texts), BATCH):
            batch = [clean(text[:MAX_CHARS]) for text in texts[start : start + BATCH]]
            async with self._turn:
                vectors += await self._offload(partial(self._embed, batch))
        return vectors, Usage()

    async def close(self) -> None:
        self._model = None

    def _embed(self, texts: Sequence[str]) -> list[bytes]:
        if missing := missing_files():
            raise _trouble(
                missing,
                fix=f"start again with BABYAGI_EMBEDDING_MODEL={NAME}, and they are fetched",
            )
        try:
            self._model = model = self._model or open_model()
            return [self._check(vector) for vector in model(list(texts))]
        except IndexUnavailableError:
            raise
        except Exception as error:  # of two libraries that name no errors of their own
            fix = (
                f"remove {files_folder()} if its files are damaged, and start again with "
                f"BABYAGI_EMBEDDING_MODEL={NAME}"
            )
            raise _trouble(f"{type(error).__name__}: {error}", fix=fix) from error

    def _check(self, vector: Any) -> bytes:
        import numpy as np

        if vector.shape != (self.dimension,) or not abs(float(np.linalg.norm(vector)) - 1.0) < 1e-3:
            raise _trouble("it gave a vector that is no direction", fix="")
        return bytes(vector.astype("<f4").tobytes())


def fetch_files(tell: Callable[[str], None] = lambda _: None) -> None:
    """Fetch the model's files unless they are here. It blocks, for as long as the network takes.

    Args:
        tell: takes a line before anything is fetched.

    Raises:
        SettingsError: they are not here and cannot be fetched, or what was fetched cannot be used.
    """
    if not missing_files():
        return
    folder = files_folder()
    try:
        tell(f"the embedding model {NAME} is fetched once, 80 MB, into {folder}")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (folder.parent / "babyagi.lock").open("a") as lock:
            # another process that fetches them would write into the same archive
            fcntl.flock(lock, fcntl.LOCK_EX)
            open_model()(["is it whole?"])
    except Exception as error:
        # the network, the disk, an archive that is another: each library has errors of its own
        raise SettingsError(
            f"the embedding model {NAME} is not on this machine and could not be fetched",
            why=f"{type(error).__name__}: {error}",
            fix=(
                "start again where the network can be reached, or copy its files into "
                f"{folder}, or set BABYAGI_EMBEDDING_MODEL=hash"
            ),
            guide="models",
        ) from error


def missing_files() -> str:
    """Which of the model's files are not on this machine, in words; empty when all are."""
    missing = [name for name in FILES if not (files_folder() / name).is_file()]
    return (
        f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not in {files_folder()}"
        if missing
        else ""
    )


def files_folder() -> Path:
    kind = _import_kind()
    return Path(kind.DOWNLOAD_PATH, kind.EXTRACTED_FOLDER_NAME)


def open_model() -> Any:
    """Chroma's embedding function; calling it fetches the files that are not there."""
    model = _import_kind()(preferred_providers=["CPUExecutionProvider"])
    model.tqdm = partial(model.tqdm, disable=True)  # a bar of its own would stand in ours
    return model


def _import_kind() -> Any:
    try:
        import_chroma()
        from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2
    except ImportError as error:
        raise _trouble(
            f"Chroma cannot be imported: {error}", fix="pip install 'chromadb>=1.5.9'"
        ) from error
    return ONNXMiniLM_L6_V2


def _trouble(why: str, *, fix: str) -> IndexUnavailableError:
    return IndexUnavailableError(
        f"the embedding model {NAME} cannot be used", why=why, fix=fix, guide="models"
    )
