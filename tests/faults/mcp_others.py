"""Servers that others made: of the 1.x line of the official library over both transports, and two
from npm. Each lists its tools, and some are called.

`python -m tests.faults.mcp_others` installs them into a folder under /tmp, so it needs the network,
Python's pip and npm; `--folder` keeps and uses that folder again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from babyagi.errors import ToolError
from babyagi.tools.mcp import Connection, McpServer, open_servers
from support.table import print_table, verdict

NPM = ("@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem")
OF_1 = """
import sys
from mcp.server.fastmcp import FastMCP
app = FastMCP("t", host="127.0.0.1", port=int(sys.argv[1]) if len(sys.argv) > 1 else 1)
@app.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
app.run("streamable-http" if len(sys.argv) > 1 else "stdio")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A server, and a call of it with what must stand in the answer."""

    server: McpServer
    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    answer: str


def install(folder: Path) -> None:
    """Raises CalledProcessError where something cannot be brought."""
    if not (folder / "old").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "old")], check=True)
        pip = [str(folder / "old/bin/python"), "-m", "pip", "install", "--quiet", "mcp<2"]
        subprocess.run(pip, check=True)
    if not (folder / "npm").exists():
        (folder / "npm").mkdir()
        line = ["npm", "install", "--silent", "--no-fund", "--no-audit", *NPM]
        subprocess.run(line, check=True, cwd=folder / "npm")
    (folder / "of_1.py").write_text(OF_1)
    (folder / "shown").mkdir(exist_ok=True)
    (folder / "shown/tea.txt").write_text("Tea is 80 degrees.")


def find_others(folder: Path, port: int) -> list[Other]:
    python, program = str(folder / "old/bin/python"), str(folder / "of_1.py")
    node, modules = shutil.which("node") or "node", folder / "npm/node_modules"
    everything, files = (str(modules / name / "dist/index.js") for name in NPM)
    shown = str(folder / "shown")
    sides = {"a": 2, "b": 3}
    local = McpServer(name="old", command=python, args=(program,))
    far = McpServer(name="old-http", url=f"http://127.0.0.1:{port}/mcp")
    return [
        Other(server=local, tool="add", arguments=sides, answer="5"),
        Other(server=far, tool="add", arguments=sides, answer="5"),
        Other(
            server=McpServer(name="everything", command=node, args=(everything, "stdio")),
            tool="echo",
            arguments={"message": "hello"},
            answer="hello",
        ),
        Other(
            server=McpServer(name="files", command=node, args=(files, shown)),
            tool="read_text_file",
            arguments={"path": f"{shown}/tea.txt"},
            answer="80 degrees",
        ),
        Other(
            server=McpServer(name="outside", command=node, args=(files, shown)),
            tool="read_text_file",
            arguments={"path": "/etc/passwd"},
            answer="Access denied",
        ),
    ]


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[int]:
    """The 1.x server over HTTP, and its port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    line = [str(folder / "old/bin/python"), str(folder / "of_1.py"), str(port)]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(500):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            await asyncio.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


async def try_one(other: Other, connection: Connection) -> tuple[str, int, str]:
    """Its name, how many tools it has, and what is wrong, if anything is."""
    n_tools = 0
    try:
        n_tools = len(await connection.list_tools())
        said = (await connection.call(other.tool, other.arguments)).text
    except ToolError as error:
        said = error.what
    return other.server.name, n_tools, "" if other.answer in said else said[:300]


async def try_all(folder: Path) -> list[tuple[str, int, str]]:
    async with serving(folder) as port:
        others = find_others(folder, port)
        async with open_servers([one.server for one in others]) as connections:
            return [await try_one(*pair) for pair in zip(others, connections, strict=True)]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mcp_others", description=__doc__)
    parser.add_argument("--folder", type=Path)
    folder = parser.parse_args(argv).folder
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="babyagi-mcp-")))
        try:
            install(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"skipped: the servers cannot be brought here ({error})", file=sys.stderr)
            return 0
        found = asyncio.run(try_all(folder))
    rows = [(name, n_tools, fault or "as it should") for name, n_tools, fault in found]
    print_table("servers that others made", ("server", "tools", "a call"), rows)
    is_good = all(n_tools and not fault for _, n_tools, fault in found)
    print(f"each is understood: {verdict(is_good)}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
