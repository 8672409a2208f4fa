"""Opens the index that the settings name. The one place that knows which there are."""

from __future__ import annotations

from contextlib import AsyncExitStack

from babyagi.resultstore.base import VectorIndex
from babyagi.resultstore.builtin import BuiltinIndex
from babyagi.settings import Settings
from babyagi.taskstore.offload import ThreadOffload


def open_index(settings: Settings, stack: AsyncExitStack) -> VectorIndex:
    """The index, closed with the stack. Nothing is connected to or read before its first call."""
    if settings.result_store == "builtin":
        return BuiltinIndex()
    from babyagi.resultstore.chroma import ChromaIndex

    offload = ThreadOffload(name="chroma")
    stack.callback(offload.close)
    index = ChromaIndex(settings.home / "chroma", offload=offload)
    stack.push_async_callback(index.close)
    return index


def describe_index(settings: Settings) -> str:
    """What a person calls the index."""
    return "built-in" if settings.result_store == "builtin" else "Chroma, embedded"
