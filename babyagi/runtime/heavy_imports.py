"""Imports large packages one at a time, and hides environment variables of other programs from
those that would read them as their own settings.

Two threads that import parts of the same package may each hold a lock that the other needs. Python
then fails one of the imports, and that package stays half imported as long as the process lives. So
every package that is imported in a thread is imported here, and so is every package that imports
some of the same packages.
"""

from __future__ import annotations

import functools
import importlib
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openai import AsyncAzureOpenAI, AsyncOpenAI

NO_PREFIX = "BABYAGI_CHROMA_READS_NO_VARIABLE_"
# reentrant, because one import may include another in the same thread
_TURN = threading.RLock()


def import_whole(*names: str) -> None:
    """Import these packages while no other thread of this process imports through this module.

    Raises:
        ImportError: one of them is not installed.
    """
    with _TURN:
        for name in names:
            importlib.import_module(name)


def import_chroma() -> None:
    """Import chromadb. The first import takes half a second and reads settings; every later one is
    free.

    chromadb first imports a part of numpy, which other threads may be importing: so numpy is
    imported whole before.
    """
    with showing_no_environment():
        import_whole("numpy", "chromadb")


@contextmanager
def showing_no_environment() -> Iterator[None]:
    """Hide the `.env` file and the environment variables from chromadb's settings, which are read
    repeatedly during its import.

    A variable of another program (`MIGRATIONS`, `ENVIRONMENT`) with a value that chromadb cannot
    use would fail the import. For the half second of the first import this affects every class of
    pydantic-settings in this process.
    """
    with _TURN:
        from pydantic_settings import BaseSettings

        original = BaseSettings.__init__

        @functools.wraps(original)
        def blind(self: BaseSettings, /, **values: Any) -> None:
            original(self, **{"_env_file": None, "_env_prefix": NO_PREFIX, **values})

        # Set by name, because mypy rejects assigning to a method; there is no other hook before the
        # import reads the file.
        setattr(BaseSettings, "__init__", blind)  # noqa: B010
        try:
            yield
        finally:
            setattr(BaseSettings, "__init__", original)  # noqa: B010


def import_openai() -> tuple[type[AsyncOpenAI], type[AsyncAzureOpenAI]]:
    """Import the `openai` package, and return its client classes. The first import takes 0.3 s;
    every later one is free.

    With each request openai checks whether `httpx` is imported, and reads names from it. So `httpx`
    is imported whole first: chromadb's import in another thread could leave it half imported.
    """
    taken, own = logging.NullHandler(), logging.getLogger("openai")
    level = own.level
    with _TURN:
        # if OPENAI_LOG is set, openai adds a handler to the root, unless it has one, and a level
        logging.root.addHandler(taken)
        try:
            with suppress(ImportError):
                import httpx  # noqa: F401
            from openai import AsyncAzureOpenAI, AsyncOpenAI
        finally:
            logging.root.removeHandler(taken)
            own.setLevel(level)
    return AsyncOpenAI, AsyncAzureOpenAI
