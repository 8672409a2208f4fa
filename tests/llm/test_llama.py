"""A model in this process: what is said before it is loaded, and what a real small one does."""

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from babyagi.errors import (
    ContextTooLongError,
    ModelUnavailableError,
    OverdueError,
    SettingsError,
    ToolsUnsupportedError,
)
from babyagi.llm import llama
from babyagi.llm.llama import (
    Engine,
    LlamaModel,
    free_memory_bytes,
    require_model_file,
)
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolSpec
from babyagi.tasks import Role
from tests.llm.conftest import handled_by
from tests.llm.smollm import MODEL, needs_model

BOUNDS: dict[str, Any] = {"context_tokens": 1024, "n_threads": 1, "idle_s": 600, "timeout_s": 60}


def ask_for(text, **fields):
    message = Message(speaker=Speaker.USER, text=text, origins=("person",))
    return Prompt(messages=(message,), **{"max_output_tokens": 24, **fields})


# What needs no model


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        (None, None, "LLAMA_MODEL_PATH is not set"),
        ("none.gguf", None, "No such file"),
        ("passwd", b"root:x:0:0", "does not begin like a GGUF file"),
        ("folder", "folder", "directory"),
    ],
)
def test_a_file_that_is_no_model_is_refused_with_what_to_type(tmp_path, name, content, word):
    if content == "folder":
        (tmp_path / name).mkdir()
    elif content:
        (tmp_path / name).write_bytes(content)

    with pytest.raises(SettingsError) as caught:
        require_model_file(tmp_path / name if name else None)

    assert word in f"{caught.value.what} {caught.value.why}"
    assert caught.value.fix.startswith("LLAMA_MODEL_PATH=FILE.gguf")


def test_without_the_extra_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(llama, "find_spec", lambda name: None)

    with pytest.raises(SettingsError) as caught:
        require_model_file(tmp_path / "m.gguf")

    assert "pip install 'babyagi-daemon[llama]'" in caught.value.fix


def test_free_memory_is_the_smaller_of_the_machines_and_the_containers(monkeypatch, tmp_path):
    meminfo, cgroup = tmp_path / "meminfo", tmp_path / "cgroup"
    monkeypatch.setattr(llama, "MEMINFO", meminfo)
    monkeypatch.setattr(llama, "CGROUP", cgroup)
    assert free_memory_bytes() is None

    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:    4000 kB\n")
    assert free_memory_bytes() == 4000 * 1024

    cgroup.mkdir()
    (cgroup / "memory.current").write_text("100\n")
    (cgroup / "memory.max").write_text("max\n")
    assert free_memory_bytes() == 4000 * 1024
    (cgroup / "memory.max").write_text("1100\n")
    assert free_memory_bytes() == 1000


# With the real one

LOADED_AND_DELETED = """
import os, pathlib, sys
from babyagi.llm.llama import _Server

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # so its thread comes late
for _ in range(10):
    _Server(pathlib.Path(sys.argv[1]), context_tokens=64, n_threads=1)
print("deleted", file=sys.stderr)
"""


@needs_model
@pytest.mark.system
def test_an_engine_that_is_deleted_as_soon_as_it_is_loaded_ends():
    done = subprocess.run(
        [sys.executable, "-c", LOADED_AND_DELETED, str(MODEL)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0 and done.stderr.endswith("deleted\n"), done.stderr[-2000:]


@pytest.fixture
async def engine():
    made = Engine(MODEL, **BOUNDS)
    yield made
    await made.close()


@pytest.mark.thorough
@needs_model
async def test_nothing_is_loaded_before_the_first_call_and_its_memory_is_said_then():
    said = list[str]()
    engine = Engine(MODEL, **BOUNDS, say=said.append)
    model = LlamaModel(engine, temperature=0)
    assert engine._server is None and said == []

    completion = await model.complete(ask_for("Say hello."), role=Role.EXECUTION)

    assert completion.text and completion.model == "llama"
    assert completion.usage.calls == 1 and completion.usage.cost_usd == 0
    assert completion.usage.unconfirmed_tokens == 0
    assert len(said) == 1 and "MB of memory, with a context of 1,024 tokens" in said[0]


@pytest.mark.thorough
@needs_model
async def test_the_text_comes_in_pieces_that_make_the_answer(engine):
    pieces = list[str]()

    completion = await LlamaModel(engine, temperature=0).complete(
        ask_for("Count from one to ten."), role=Role.EXECUTION, on_text=pieces.append
    )

    assert len(pieces) > 3
    assert "".join(pieces) == completion.text
    assert completion.usage.completion_tokens <= 24


@pytest.mark.thorough
@needs_model
async def test_a_cancelled_call_stops_and_the_next_one_is_answered(engine):
    model, pieces, begun = LlamaModel(engine), list[str](), asyncio.Event()

    def hear(text):
        pieces.append(text)
        begun.set()

    asked = asyncio.create_task(
        model.complete(
            ask_for("Tell a long story.", max_output_tokens=800), role=Role.EXECUTION, on_text=hear
        )
    )
    await begun.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    n_heard = len(pieces)

    assert (await model.complete(ask_for("Say hello."), role=Role.EXECUTION)).text
    assert len(pieces) == n_heard < 800


@needs_model
@pytest.mark.parametrize("is_silent", [True, False])
async def test_a_call_is_overdue_and_stops_only_if_no_piece_of_the_answer_comes(
    monkeypatch, is_silent
):
    has_stopped, n_pieces = asyncio.Event(), 100

    async def handle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        for n in count(1):
            ends = n == n_pieces and not is_silent
            delta = {} if is_silent else {"content": f"piece {n}, "}
            choice = {"delta": delta, "finish_reason": "stop" if ends else None}
            with suppress(OSError):
                writer.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
                await writer.drain()
            if ends or writer.is_closing():
                has_stopped.set()
                break
            await asyncio.sleep(0.005)
        writer.close()

    slow = Engine(MODEL, **BOUNDS | {"timeout_s": 0.2})
    async with handled_by(handle) as served:
        loaded = SimpleNamespace(url=served.base_url, key="k")
        monkeypatch.setattr(slow, "_load", lambda: loaded)
        asked = LlamaModel(slow).complete(
            ask_for("Tell a long story.", max_output_tokens=900), role=Role.EXECUTION
        )
        if is_silent:
            with pytest.raises(OverdueError) as caught:
                await asked
            assert caught.value.may_be_billed
        else:
            assert (await asked).text.strip().endswith(f"piece {n_pieces},")
        await has_stopped.wait()
        await slow.close()


@pytest.mark.thorough
@needs_model
async def test_a_prompt_that_does_not_fit_is_refused_before_any_work(engine):
    model, pieces = LlamaModel(engine), list[str]()

    with pytest.raises(ContextTooLongError) as caught:
        await model.complete(ask_for("word " * 1500), role=Role.EXECUTION, on_text=pieces.append)

    assert caught.value.what == "the prompt does not fit the context of llama"
    assert not caught.value.may_be_billed and pieces == []


@needs_model
async def test_a_prompt_that_leaves_no_room_for_its_answer_is_too_long(monkeypatch):
    usage = {"prompt_tokens": 1000, "completion_tokens": 24}
    cut = {"choices": [{"delta": {"content": "It"}, "finish_reason": "length"}], "usage": usage}

    async def handle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
        writer.write(head + f"data: {json.dumps(cut)}\n\n".encode())
        writer.close()

    engine = Engine(MODEL, **BOUNDS)
    async with handled_by(handle) as served:
        monkeypatch.setattr(engine, "_load", lambda: SimpleNamespace(url=served.base_url, key="k"))
        with pytest.raises(ContextTooLongError, match="room for 24 of 1024 tokens"):
            await LlamaModel(engine).complete(
                ask_for("word", max_output_tokens=200), role=Role.EXECUTION
            )
        await engine.close()


@pytest.mark.thorough
@needs_model
async def test_a_reservation_never_exceeds_the_context_and_always_covers_the_call(engine):
    model, prompt = LlamaModel(engine), ask_for("Say hello. " * 20)

    usage = (await model.complete(prompt, role=Role.EXECUTION)).usage

    assert usage.tokens <= model.reserve(prompt).tokens
    assert model.reserve(ask_for("word " * 9000)).tokens == 1024


@pytest.mark.thorough
@needs_model
async def test_tools_that_the_template_leaves_out_are_refused_without_an_answer(engine):
    tool = ToolSpec(name="look", description="Looks.", parameters={"type": "object"})

    with pytest.raises(ToolsUnsupportedError):
        await LlamaModel(engine).complete(ask_for("Look.", tools=(tool,)), role=Role.EXECUTION)


@pytest.mark.thorough
@needs_model
async def test_a_reply_holds_to_its_schema_and_its_bounds(engine):
    schema = {
        "type": "object",
        "properties": {
            "names": {
                "type": "array",
                "items": {"type": "string", "maxLength": 12},
                "maxItems": 3,
            }
        },
        "required": ["names"],
        "additionalProperties": False,
    }

    completion = await LlamaModel(engine, temperature=0).complete(
        ask_for("List fruits.", schema=schema, schema_name="fruits", max_output_tokens=200),
        role=Role.EXECUTION,
    )

    names = json.loads(completion.text)["names"]
    assert len(names) <= 3 and all(len(name) <= 12 for name in names)


@pytest.mark.thorough
@needs_model
async def test_an_idle_engine_is_unloaded_and_loaded_again_when_it_is_asked():
    engine = Engine(MODEL, **BOUNDS | {"idle_s": 0})
    model = LlamaModel(engine)
    try:
        await model.complete(ask_for("Say hello.", max_output_tokens=2), role=Role.EXECUTION)
        await asyncio.sleep(0)  # the timer's turn
        await asyncio.sleep(0)
        assert engine._server is None

        assert (await model.complete(ask_for("Say hello."), role=Role.EXECUTION)).text
    finally:
        await engine.close()


@needs_model
async def test_a_model_that_does_not_fit_the_free_memory_is_not_loaded(monkeypatch):
    monkeypatch.setattr(llama, "free_memory_bytes", lambda: 10_000_000)
    engine = Engine(MODEL, **BOUNDS)

    with pytest.raises(ModelUnavailableError) as caught:
        await LlamaModel(engine).complete(ask_for("Say hello."), role=Role.EXECUTION)

    assert "but only 10 MB are free" in caught.value.what and "LLAMA_CTX_MAX" in caught.value.fix
    assert engine._server is None
    await engine.close()
