"""Files of variables, and which of them are trusted: by their whole path and the digest of what
stands in them.

A file is read once; what is parsed is what was digested. Does not cover: a home that somebody else
can write to.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MAX_ENV_FILE_BYTES = 1_000_000
_FOLDER = "trusted"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvFile:
    """A file of variables as it was at one moment.

    Attributes:
        name: as messages call it: below the working folder where it lies there.
        digest: SHA-256 of its bytes, in hexadecimal.
    """

    path: Path
    name: str
    digest: str
    values: Mapping[str, str] = field(repr=False)


def read_env_file(path: Path, *, name: str) -> EnvFile:
    """Read the variables of a file as python-dotenv reads them, `$` left alone.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too long, not UTF-8, or a line makes no sense. The line itself is not
        shown: it may hold a key.
    """
    from dotenv.parser import parse_stream

    with path.open("rb") as file:
        body = file.read(MAX_ENV_FILE_BYTES + 1)
    if len(body) > MAX_ENV_FILE_BYTES:
        raise ValueError(f"it is longer than {MAX_ENV_FILE_BYTES:,} bytes")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    values = {}
    for binding in parse_stream(io.StringIO(text)):
        if binding.error:
            raise ValueError(
                f"line {binding.original.line} is not NAME=value, or a quote in it has no end"
            )
        if binding.key is not None and binding.value is not None:
            values[binding.key] = binding.value
    return EnvFile(path=path, name=name, digest=hashlib.sha256(body).hexdigest(), values=values)


def is_trusted(home: Path, file: EnvFile) -> bool:
    """Whether a person has trusted this file with this content."""
    return _mark(home, file).is_file()


def trust_file(home: Path, file: EnvFile) -> None:
    """Remember that the file is trusted as long as it stays as it is.

    Raises:
        StoreUnusableError: the home cannot be written.
    """
    from babyagi.home import make_home

    make_home(home)
    mark = _mark(home, file)
    mark.parent.mkdir(mode=0o700, exist_ok=True)
    mark.write_text(str(file.path), encoding="utf-8", errors="surrogateescape")


def distrust_file(home: Path, path: Path) -> int:
    """Forget every content of the file that was trusted; returns how many there were."""
    marks = [mark for mark, trusted in _marks(home) if trusted == path]
    for mark in marks:
        mark.unlink(missing_ok=True)
    return len(marks)


def trusted_paths(home: Path) -> list[Path]:
    """The files of which some content is trusted, in order."""
    return sorted({path for _, path in _marks(home)})


def _marks(home: Path) -> list[tuple[Path, Path]]:
    folder = home / _FOLDER
    marks = sorted(folder.iterdir()) if folder.is_dir() else []
    return [
        (mark, Path(mark.read_text(encoding="utf-8", errors="surrogateescape"))) for mark in marks
    ]


def _mark(home: Path, file: EnvFile) -> Path:
    return (
        home
        / _FOLDER
        / hashlib.sha256(os.fsencode(file.path) + b"\n" + file.digest.encode()).hexdigest()
    )
