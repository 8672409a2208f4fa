"""Every block of the page on Python does what it says, with a server in the model's place."""

import asyncio
import re
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from babyagi.llm.prompt import ToolCall
from support.local_server import Answer, LocalServer, agreeing

PAGE = (Path(__file__).parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SAID = (  # by block: what a person must see
    ["# Report: What do these documents say about limits?", "REHEARSAL", "limits.md:1"],
    ["Tea costs 5.0."],
    ["tea 5.0"],
    ["began", "unmet"],
    ["5.0 5.0 1"],
    ["Act(", "5.0", "Tea costs 5.0."],
    ["Tea costs 5.0.", "2 turns: Tea costs 5.0."],
    ["queued Read limits.md", "queued Answer the objective", "paused"],
)


@agreeing
def shopkeeper(request):
    """Looks the price of tea up, then says it in the form that was asked for."""
    is_seen = any(one.speaker.value == "tool" for one in request.messages)
    if request.schema_name == "output":
        return Answer(text='{"answer": [{"item": "tea", "cost": 5}]}')
    if request.agent == "creation":
        return Answer(text='{"tasks": []}')
    if request.tools and not is_seen:
        day = ', "day": "2026-11-22"' if "date" in str(request.tools[0].parameters) else ""
        call = ToolCall(id="c", name="price", arguments=f'{{"item": "tea"{day}}}')
        return Answer(tool_calls=(call,))
    is_typed = "JSON Schema" in request.messages[0].text
    return Answer(text='{"answer": 5.0}' if is_typed else "Tea costs 5.0.")


@contextmanager
def serving(answer):
    """A server with an event loop in a thread of its own, because the blocks have theirs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def wait(work):
        return asyncio.run_coroutine_threadsafe(work, loop).result(timeout=300)

    server = LocalServer(answer)
    wait(server.__aenter__())
    try:
        yield server.base_url
    finally:
        wait(server.__aexit__(None, None, None))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def model(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "limits.md").write_text(
        "The limits of these documents are held before each call.\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "builtin")
    monkeypatch.setenv("BABYAGI_EMBEDDING_MODEL", "hash")
    with serving(shopkeeper) as base_url:
        monkeypatch.setenv("OPENAI_BASE_URL", base_url)
        monkeypatch.setenv("BABYAGI_PROTOCOL", "untested")
        monkeypatch.setenv("BABYAGI_PRICE", "1/1")
        yield


@pytest.mark.parametrize(
    ("block", "said"), list(zip(BLOCKS, SAID, strict=True)), ids=list(range(1, len(BLOCKS) + 1))
)
def test_a_block_of_the_page_runs_and_shows_what_it_should(block, said, model, capsys):
    exec(compile(block, "docs/python.md", "exec"), {"__name__": "__main__"})

    printed = capsys.readouterr().out
    assert [text for text in said if text not in printed] == [], printed
