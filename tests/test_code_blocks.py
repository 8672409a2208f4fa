"""Every code block of the README, the cookbook and the guide is run as it is typed, page by page,
in a home of its own; and what a page shows as output really came out.

The rehearsal model answers, or a local server in its place where a page names a server or a model.
`NOT_RUN` lists what is not run, each with its reason.
"""

import asyncio
import contextlib
import io
import os
import re
import shlex
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from babyagi.cli.root import run_guarded
from babyagi.llm.prompt import ToolCall
from support.local_server import LocalServer
from support.local_server.answers import rehearsal_answer
from support.local_server.dialects import Answer

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "cookbook.md",
    ROOT / "docs" / "coming-from.md",
    *sorted((ROOT / "babyagi" / "guide").glob("*.md")),
]
NOT_RUN = {
    "python3 -m venv": "an installation",
    ". .venv/bin/activate": "an installation",
    "pip install": "an installation",
    "docker": "needs Docker",
    "OPENAI_API_KEY=… OBJECTIVE=": "needs Docker",
    "export OPENAI_API_KEY=": "a key of yours",
    "export BABYAGI_TASK_STORE=postgresql": "a database of yours",
    "babyagi worker": "works until it is stopped",
    "babyagi serve": "works until it is stopped",
    "babyagi serve open": "a server of yours",
    "export BABYAGI_SERVE_TOKEN=": "a token of yours",
    "curl": "a server of yours",
    "babyagi tools": "a server of yours",
    'babyagi run "What did we pay in March?" --mcp': "a server of yours",
    "babyagi inbox answer 12": "the number of a question of yours",
}
RUNS_ALL_THE_SAME = re.compile(r"babyagi worker --objective")
A_SERVER = re.compile(r"http://(?:127\.0\.0\.1|localhost):(?:11434|8000|8080|1234)/v1")
ENDINGS = (0, 3)  # a run that reached a limit says so with 3
# behind a server the rehearsal has the name of a model, whose quotes are judged as from outside
ENDINGS_SERVED = (*ENDINGS, 6)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    language: str
    text: str
    line: int


def blocks_of(path):
    text = path.read_text(encoding="utf-8")
    return [
        Block(
            language=found.group(1) or "sh",
            text=found.group(2),
            line=text.count("\n", 0, found.start()) + 1,
        )
        for found in BLOCK.finditer(text)
    ]


async def answer(request):
    """A model that calls the tool `price` where it is offered, and is the rehearsal otherwise."""
    if "price" not in {tool.name for tool in request.tools}:
        return await rehearsal_answer(request)
    said = "\n".join(message.text for message in request.messages)
    if "2.5" in said:
        return Answer(text="Two teas cost 5 euros.")
    call = ToolCall(id="call_1", name="price", arguments='{"item": "tea"}')
    return Answer(tool_calls=(call,), finish_reason="tool_calls")


@pytest.fixture
def server_url():
    """A local server in a thread of its own, since the program runs its own event loop."""
    ready, ended = threading.Event(), asyncio.Event()
    found: dict[str, Any] = {}

    async def serve():
        async with LocalServer(answer) as server:
            found.update(url=server.base_url, loop=asyncio.get_running_loop())
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(120)
    yield found["url"]
    found["loop"].call_soon_threadsafe(ended.set)
    thread.join(300)


@dataclass
class Shell:
    """As much of a shell as the pages use, with the program in this process."""

    monkeypatch: pytest.MonkeyPatch
    server_url: str
    said: str = ""
    faults: list[str] = field(default_factory=list)

    def run(self, text):
        lines = iter(re.sub(r"\\\n\s*", " ", text).splitlines())
        for line in lines:
            command = A_SERVER.sub(self.server_url, line.split("  #")[0].strip())
            if not command or command.startswith("#"):
                continue
            if heredoc := re.fullmatch(r"cat > (\S+) <<'EOF'", command):
                body = iter(lambda: next(lines), "EOF")
                Path(heredoc.group(1)).write_text("\n".join(body) + "\n", encoding="utf-8")
                continue
            for part in re.split(r"\s+&&\s+", command):
                self._run_one(part)

    def _run_one(self, command):
        if not is_run(command):
            return
        command = command.partition(" | ")[0]  # what a pager or a filter makes of it is not ours
        command, _, target = command.partition(" > ")
        words = shlex.split(command)
        assignments = {}
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            name, _, value = words.pop(0).partition("=")
            assignments[name] = value
        match words:
            case ["export", *settings]:
                for setting in settings:
                    self.monkeypatch.setenv(*setting.split("=", 1))
            case ["mkdir", "-p", folder]:
                Path(folder).mkdir(parents=True, exist_ok=True)
            case ["babyagi", *arguments]:
                self._call(arguments, assignments, command, target.strip())
            case _:
                self.faults.append(f"{command}: cannot be run here, and NOT_RUN does not name it")

    def _call(self, arguments, assignments, command, target):
        out, err = io.StringIO(), io.StringIO()
        with self.monkeypatch.context() as patch:
            for name, value in assignments.items():
                patch.setenv(name, value)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run_guarded(arguments)
        if target:
            Path(target).write_text(out.getvalue(), encoding="utf-8")
        self.said += out.getvalue() + err.getvalue()
        if code not in (ENDINGS_SERVED if self.server_url in command else ENDINGS):
            self.faults.append(f"{command}: ended with {code}\n{err.getvalue()[-600:]}")

    def execute(self, text):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(text, "block", "exec"), {"__name__": "__main__"})
        self.said += out.getvalue()


def is_run(command):
    skipped = any(command.startswith(prefix) for prefix in NOT_RUN)
    return not skipped or bool(RUNS_ALL_THE_SAME.match(command))


def missing_lines(shown, said):
    """The lines of a shown output that did not come out; `…` stands for what is left out."""
    flat = " ".join(said.split())
    parts = [
        " ".join(part.split()) for line in shown.splitlines() for part in line.split("…") if part
    ]
    return [part for part in parts if part and part not in flat]


@pytest.fixture
def shell(tmp_path, monkeypatch, server_url):
    """A working folder that looks like a clone with some documents, in which something was done."""
    monkeypatch.chdir(tmp_path)
    folders = ROOT / "tests" / "data" / "demo_folders"
    shutil.copytree(folders, tmp_path / "tests" / "data" / "demo_folders")
    shutil.copytree(folders / "team", tmp_path / "notes")
    for name, value in {
        "HOME": str(tmp_path),
        "BABYAGI_HOME": str(tmp_path / "home"),
        "BABYAGI_RESULT_STORE": "builtin",
        "LLM_MODEL": "rehearsal",
    }.items():
        monkeypatch.setenv(name, value)
    return Shell(monkeypatch, server_url)


@pytest.mark.thorough
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_code_block_of_a_page_runs_as_it_is_typed(path, shell):
    blocks = blocks_of(path)
    if "guide" in path.parts and blocks:
        shell.run('babyagi run "What do the notes say about parking?" --files notes --max-tasks 2')
    for block in blocks:
        if block.language == "text":
            missing = missing_lines(block.text, shell.said)
            shell.faults += [f"line {block.line}: did not come out: {line}" for line in missing]
            continue
        shell.said = ""
        if block.language == "sh":
            shell.run(block.text)
        elif block.language == "python":
            shell.monkeypatch.setenv("OPENAI_BASE_URL", shell.server_url)
            shell.monkeypatch.setenv(
                "BABYAGI_PROTOCOL", "untested"
            )  # its answers are written before
            shell.execute(block.text)
            shell.monkeypatch.delenv("OPENAI_BASE_URL")

    assert shell.faults == []


def test_every_exception_stands_on_a_page():
    texts = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)

    assert [prefix for prefix in NOT_RUN if prefix not in texts] == []


def test_a_block_that_does_not_work_is_noticed(shell):
    shell.run("babyagi show 99\nmake tea\n")

    assert [fault.split(":")[0] for fault in shell.faults] == ["babyagi show 99", "make tea"]
    assert missing_lines("one … three\nfour", "one two three") == ["four"]
    assert os.environ["LLM_MODEL"] == "rehearsal"
