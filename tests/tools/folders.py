"""The tools that read and search a folder, and what they answer."""

import asyncio

from babyagi.files.folder import Folder
from babyagi.tools.files import build_file_tools


def tools_in(folder):
    """The tools by name."""
    return {tool.name: tool for tool in build_file_tools(Folder(folder), offload=asyncio.to_thread)}


async def read(tools, path, **more):
    return (await tools["read_file"].run({"path": path, **more})).text


async def search(tools, words, *, pattern=""):
    return (await tools["search_files"].run({"words": words, "pattern": pattern})).text
