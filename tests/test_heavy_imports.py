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


def test_once_imported_there_is_nothing_left_to_do():
    import_openai()

    assert is_openai_imported()
