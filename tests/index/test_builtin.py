import subprocess
import sys

import pytest

from babyagi.index import builtin
from babyagi.index.builtin import BuiltinIndex
from tests.index.contract import VectorIndexContract

# prints the processor seconds of the other threads, those of BLAS, during searches in 2,000 results
SEARCHES = """
import asyncio, math, struct, time
from babyagi.index.builtin import BuiltinIndex, score_all
from babyagi.index.port import IndexItem
from babyagi.index.trigrams import Words

def others_s():
    time.sleep(0.1)
    return time.process_time() - time.thread_time()

async def main():
    values = [[math.sin(n * d) for d in range(768)] for n in range(2_000)]
    vectors = [struct.pack("<768f", *value) for value in values]
    index = BuiltinIndex()
    items = [IndexItem(id=str(n), vector=v, text="", task_id=n) for n, v in enumerate(vectors)]
    await index.upsert("c", items)
    before_s = others_s()
    for vector in vectors[:5]:
        await index.query("c", vector, k=5)
        score_all(dict(enumerate(vectors)), vector)
        Words("what did the bakery earn in spring, and why").score(["The bakery earned. " * 400] * 200)
    print(others_s() - before_s)

asyncio.run(main())
"""


@pytest.fixture(params=[builtin.BLOCK_ROWS, 2], ids=["one-block", "several-blocks"])
def block_rows(request, monkeypatch):
    monkeypatch.setattr(builtin, "BLOCK_ROWS", request.param)


@pytest.mark.usefixtures("block_rows")
class TestBuiltinIndex(VectorIndexContract):
    @pytest.fixture
    def index(self):
        return BuiltinIndex()


@pytest.mark.system
def test_a_search_keeps_to_its_thread():
    found = subprocess.run(
        [sys.executable, "-c", SEARCHES], capture_output=True, text=True, check=True
    )

    assert float(found.stdout) < 0.01
