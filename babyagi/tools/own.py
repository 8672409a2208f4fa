"""Functions of the person's own as tools: from a module, a file, or a folder of files.

They are the person's own code and run as such, in this process; only who names them may do that.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from babyagi.errors import SettingsError
from babyagi.tools.base import Tool
from babyagi.tools.declare import collect_tools


def load_tools(reference: str, *, cwd: Path) -> list[Tool]:
    """Return the tools of `module`, `module:object`, `file.py`, `file.py:object` or a folder.

    Of a module all public functions that it defines itself, and all tools; an object is a function,
    a tool, or a list of them.

    Raises:
        SettingsError: it is not there, cannot be imported, or something in it cannot be a tool.
    """
    try:
        tools = collect_tools(list(_find(reference, cwd)))
    except SettingsError:
        raise
    except Exception as error:  # the person's own code may raise anything
        raise SettingsError(
            f"the tools in {reference} cannot be loaded",
            why=f"{type(error).__name__}: {error}",
            fix="correct it there, or name another module:object, file.py or folder",
            guide="tools",
        ) from error
    if not tools:
        raise SettingsError(
            f"there is no tool in {reference}",
            why="it defines no public function with a docstring",
            fix='write one: def price(item: str) -> float: """Look up what an item costs."""',
            guide="tools",
        )
    return tools


def _find(reference: str, cwd: Path) -> Iterable[Any]:
    path = (cwd / reference).resolve()
    if path.is_dir():
        return [one for file in sorted(path.glob("*.py")) for one in _public(_load_file(file))]
    where, _, name = reference.partition(":")
    is_file = where.endswith(".py")
    module = _load_file((cwd / where).resolve()) if is_file else _import(where, cwd)
    if not name:
        return _public(module)
    found = getattr(module, name)
    return found if isinstance(found, list | tuple) else [found]


def _import(name: str, cwd: Path) -> ModuleType:
    """Import a module as `python -m` would: also from the working folder."""
    sys.path.insert(0, str(cwd))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(cwd))


def _load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_babyagi_tools_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _public(module: ModuleType) -> list[Tool | Callable[..., Any]]:
    """Return the tools of a module, and the functions with a docstring that it defines itself."""
    return [
        found
        for name, found in vars(module).items()
        if not name.startswith("_")
        and (
            isinstance(found, Tool)
            or (
                inspect.isfunction(found)
                and found.__module__ == module.__name__
                and bool(found.__doc__)
            )
        )
    ]
