"""The index that is used where nobody names one."""

import sys

import pytest

from babyagi.errors import IndexUnavailableError
from babyagi.index.builtin import BuiltinIndex, UsualIndex
from babyagi.index.vendors.chroma import ChromaIndex
from babyagi.runtime.offload import run_inline
from tests.index.contract import ITEMS, VectorIndexContract


@pytest.fixture
def said():
    return []


@pytest.fixture
async def index(tmp_path, said, monkeypatch):
    monkeypatch.setitem(sys.modules, "chromadb", None)
    index = UsualIndex(ChromaIndex(tmp_path / "chroma", offload=run_inline), tell=said.append)
    yield index
    await index.close()


class TestUsualIndexWithoutChroma(VectorIndexContract):
    pass


async def test_without_chroma_it_is_the_built_in_one_and_says_so_in_one_line(index, said):
    assert not index.is_memory
    await index.ping()
    await index.upsert("one", ITEMS)

    assert index.is_memory
    (line,) = said
    assert "the built-in one: Chroma cannot be imported: " in line and "\n" not in line


async def test_a_part_that_is_missing_is_noticed_when_chroma_imports_it(index, said, monkeypatch):
    monkeypatch.delitem(sys.modules, "chromadb")
    await index.ping()
    assert said == []
    monkeypatch.setitem(sys.modules, "chromadb", None)

    await index.upsert("one", ITEMS)

    assert len(await index.ids("one")) == len(ITEMS) and len(said) == 1


async def test_any_other_trouble_stays_with_chroma(said):
    class Down(BuiltinIndex):
        is_memory = False

        async def ids(self, collection):
            raise IndexUnavailableError("the disk is full", guide="results")

    index = UsualIndex(Down(), tell=said.append)

    with pytest.raises(IndexUnavailableError, match="the disk is full"):
        await index.ids("one")
    assert said == [] and not index.is_memory
