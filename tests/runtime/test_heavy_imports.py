"""Packages that look at the environment while they are imported, and at each other."""

import subprocess
import sys

import pytest

BOTH_AT_ONCE = """
import asyncio, threading
from babyagi.runtime.heavy_imports import import_chroma, import_openai
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


def run_program(program, *, arguments=(), **options):
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **options,
    )


@pytest.mark.system
def test_a_model_is_asked_while_chroma_is_imported():
    done = run_program(BOTH_AT_ONCE)

    assert (done.returncode, done.stdout.strip()) == (0, "answered"), done.stderr


BEFORE_A_CLAIM = """
import asyncio, sys
from pathlib import Path
from babyagi.app.application import open_app
from babyagi.settings.load import load_settings

async def main():
    flags = {"home": sys.argv[1], "llm_model": sys.argv[2], "objective": "What?"}
    settings = load_settings(flags=flags, environ={}, cwd=Path(sys.argv[1])).settings
    async with open_app(settings) as app:
        await app.start_objective()

        async def see(objective_id, work):
            print("openai" in sys.modules)
            app.stop()
            return await work

        await app.serve_all(see)

asyncio.run(main())
"""


@pytest.mark.system
@pytest.mark.parametrize(("model", "is_imported"), [("local", "True"), ("rehearsal", "False")])
def test_the_client_of_models_is_imported_before_a_task_is_claimed_that_would_wait_for_it(
    tmp_path, model, is_imported
):
    done = run_program(BEFORE_A_CLAIM, arguments=(str(tmp_path), model))

    assert done.stdout.strip() == is_imported, done.stderr


# The finder stops the two threads where each is to hold a part of numpy that the other waits for.
PARTS_AT_ONCE = """
import sys, threading
from babyagi.runtime.heavy_imports import import_chroma

numpy_begun, chroma_at_its_part = threading.Event(), threading.Event()

class Stops:
    def find_spec(self, name, path=None, target=None):
        if name == "chromadb.api.types":
            chroma_at_its_part.set()
            numpy_begun.wait(5)
        elif name == "numpy.version":
            numpy_begun.set()
        elif name == "numpy._core" and threading.current_thread() is threading.main_thread():
            threading.Event().wait(2)

sys.meta_path.insert(0, Stops())
chroma = threading.Thread(target=import_chroma)
chroma.start()
chroma_at_its_part.wait(300)
try:
    import numpy
except RuntimeError as error:
    print(type(error).__name__)
chroma.join()
import numpy
print(*numpy.flatnonzero(numpy.frombuffer(b"abcd", dtype="<f4")))
"""


@pytest.mark.system
def test_numpy_is_whole_when_it_is_imported_beside_chroma():
    done = run_program(PARTS_AT_ONCE)

    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr


FIRST_CALL = """
import os, sys
from babyagi.cli import main
from babyagi.llm.rehearsal import RehearsalModel

async def end_here(self, prompt, **_):
    print(*({"chromadb", "mcp", "numpy", "openai", "pydantic", "yaml"} & sys.modules.keys()))
    sys.stdout.flush()
    os._exit(0)

RehearsalModel.complete = end_here
main(["run", "Say what tea costs", "-t", "Begin"])
"""


@pytest.mark.system
def test_no_package_that_a_rehearsal_does_not_need_is_imported_before_its_first_call(tmp_path):
    done = run_program(
        FIRST_CALL, cwd=tmp_path, env={"HOME": str(tmp_path), "LLM_MODEL": "rehearsal"}
    )

    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
