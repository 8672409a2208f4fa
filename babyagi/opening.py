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
    if settings.chroma_url:
        from babyagi.resultstore.chroma_server import ChromaServerIndex

        server = ChromaServerIndex(settings.chroma_url)
        stack.push_async_callback(server.close)
        return server
    from babyagi.resultstore.chroma import ChromaIndex

    offload = ThreadOffload(name="chroma")
    stack.callback(offload.close)
    index = ChromaIndex(settings.home / "chroma", offload=offload)
    stack.push_async_callback(index.close)
    return index


def describe_index(settings: Settings) -> str:
    """What a person calls the index."""
    if settings.result_store == "builtin":
        return "built-in"
    return f"Chroma at {settings.chroma_url}" if settings.chroma_url else "Chroma, embedded"
