"""Imports large packages one at a time, without letting the environment of other programs act
through them.

Two threads that import parts of the same package may each hold what the other waits for. Python
then ends one of the two imports, and that package stays half imported for as long as the process
lives. So what is imported in a thread is imported here, and so is what shares packages with it.
"""

from __future__ import annotations

import functools
import importlib
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openai import AsyncAzureOpenAI, AsyncOpenAI

NO_PREFIX = "BABYAGI_CHROMA_READS_NO_VARIABLE_"
# taken twice by the same thread where one import is part of another
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
    """The first import, which takes half a second and reads settings; every later one is free.

    Chroma begins with a part of numpy, which others import meanwhile: so numpy comes whole before.
    """
    with showing_no_environment():
        import_whole("numpy", "chromadb")


@contextmanager
def showing_no_environment() -> Iterator[None]:
    """Keep chromadb's settings, which are read again and again while it is imported, from `.env`
    and from variables.

    They belong to other programs (`MIGRATIONS`, `ENVIRONMENT`), and a value that Chroma cannot use
    would fail the import. For the half second of the first import this holds for every class of
    pydantic-settings in this process.
    """
    with _TURN:
        from pydantic_settings import BaseSettings

        original = BaseSettings.__init__

        @functools.wraps(original)
        def blind(self: BaseSettings, /, **values: Any) -> None:
            original(self, **{"_env_file": None, "_env_prefix": NO_PREFIX, **values})

        # By name, because to mypy a method is no variable; there is no other way in before the
        # import itself has read the file.
        setattr(BaseSettings, "__init__", blind)  # noqa: B010
        try:
            yield
        finally:
            setattr(BaseSettings, "__init__", original)  # noqa: B010


def is_openai_imported() -> bool:
    """Whether `import_openai` has nothing left to do."""
    names = (("openai", "AsyncAzureOpenAI"), ("httpx", "AsyncClient"))
    return all(hasattr(sys.modules.get(module), last) for module, last in names)


def import_openai() -> tuple[type[AsyncOpenAI], type[AsyncAzureOpenAI]]:
    """Return its clients. The first import takes 0.3 s; every later one is free.

    With each request openai looks whether `httpx` is among the modules of this process, and takes
    names from it; so that it never meets one that Chroma is just importing in a thread, it is
    imported whole before.
    """
    with _TURN, _unlogged():
        with suppress(ImportError):
            import httpx  # noqa: F401
        from openai import AsyncAzureOpenAI, AsyncOpenAI
    return AsyncOpenAI, AsyncAzureOpenAI


@contextmanager
def _unlogged() -> Iterator[None]:
    """Take back what openai does to the log of this process where OPENAI_LOG says so."""
    root, own = logging.getLogger(), logging.getLogger("openai")
    handlers, level = list(root.handlers), own.level
    try:
        yield
    finally:
        for handler in [one for one in root.handlers if one not in handlers]:
            root.removeHandler(handler)
        own.setLevel(level)
