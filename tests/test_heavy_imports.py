"""Packages that look at the environment while they are imported, and at each other."""

import subprocess
import sys

import pytest

from babyagi.heavy_imports import import_openai, is_openai_imported

BOTH_AT_ONCE = """
import asyncio, threading
from babyagi.heavy_imports import import_chroma, import_openai
from babyagi.llm.client import Endpoint, OpenAIModel
from babyagi.llm.prompt import Message, Prompt, Speaker
from babyagi.tasks import Role
from support.local_server import LocalServer, echo_answer

async def main():
    endpoint_of = lambda url: Endpoint(base_url=url, sleep=asyncio.sleep, random=lambda: 0.5)
    prompt = Prompt(messages=(Message(speaker=Speaker.USER, text="hello"),), max_output_tokens=9)
    async with LocalServer(echo_answer) as server:
        endpoint = endpoint_of(server.base_url)
        model = OpenAIModel("m", endpoint)
        chroma = threading.Thread(target=import_chroma)
        chroma.start()
        n = 0
        while chroma.is_alive() or n == 0:
            n += (await model.complete(prompt, role=Role.EXECUTION)).text == "hello"
        chroma.join()
        await endpoint.close()
    print("answered" if n else "silent")

asyncio.run(main())
"""


@pytest.mark.system
def test_a_model_is_asked_while_chroma_is_imported():
    done = subprocess.run(
        [sys.executable, "-c", BOTH_AT_ONCE],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert (done.returncode, done.stdout.strip()) == (0, "answered"), done.stderr


FIRST_CALL = """
import os, sys
from babyagi.cli import main
from babyagi.llm.rehearsal import RehearsalModel

async def end_here(self, prompt, **_):
    print(*({"chromadb", "mcp", "numpy", "openai", "opentelemetry", "yaml"} & sys.modules.keys()))
    sys.stdout.flush()
    os._exit(0)

RehearsalModel.complete = end_here
main(["run", "Say what tea costs", "-t", "Begin"])
"""


@pytest.mark.system
def test_no_package_that_a_rehearsal_does_not_need_is_imported_before_its_first_call(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "LLM_MODEL": "rehearsal"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_once_imported_there_is_nothing_left_to_do():
    import_openai()

    assert is_openai_imported()
