"""The Chroma index: the contract on the real thing, and what happens when it is damaged, shared or
badly surrounded."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from babyagi.errors import IndexUnavailableError, StoreUnusableError
from babyagi.index.hashing import HashEmbedder
from babyagi.index.indexer import BATCH, MAX_MISS_SHARE, Indexer, collection_of
from babyagi.index.port import IndexItem
from babyagi.index.vendors.chroma import CRASH_FILE, ChromaIndex
from babyagi.runtime.offload import ThreadOffload, run_inline
from babyagi.taskstore.sqlite import open_sqlite
from tests.index.contract import ITEMS, VectorIndexContract, make_id, make_item
from tests.index.library import START, TEXTS, Embedding, fill_library

MANY = [make_item(n, f"result number {n} is about {n * 7919 % 1000}") for n in range(1, 161)]
CHILD = """
import asyncio, sys
from tests.index.vendors import test_chroma
asyncio.run(getattr(test_chroma, sys.argv[2])(test_chroma.Path(sys.argv[1])))
"""


async def hold(directory):
    """Own the directory until stdin ends."""
    index = ChromaIndex(directory, offload=run_inline)
    await index.upsert("one", MANY[:3])
    print("open", flush=True)
    sys.stdin.read()


async def look(directory):
    """Ask for many, put something in, and say how many were found."""
    index = ChromaIndex(directory, offload=run_inline)
    found = [await index.query("one", item.vector, k=5) for item in MANY[::3]]
    await index.upsert("two", MANY)
    print(sum(map(len, found)))
    await index.close()


async def mend(home):
    """What a worker does for an index that owes nothing: it compares, and mends what it finds."""
    store = await open_sqlite(home / "tasks.db", clock=lambda: START, offload=run_inline)
    (objective,) = await store.objectives()
    index, embed = ChromaIndex(home / "chroma", offload=run_inline), Embedding()
    indexer = Indexer(store, index, objective=objective)
    await indexer.run_once(embed=embed)
    while await store.results(objective.id, only_unindexed=True, limit=1):
        await indexer.run_once(embed=embed)
    report = await indexer.check(n_probes=200)
    n_held = len(await index.ids(collection_of(objective)))
    not_found = f"{len(report.probe_misses)} of {report.n_probes} not found"
    print(f"{n_held} held, {len(report.missing)} missing, {not_found}, {len(embed.asked)} embedded")
    await index.close()
    await store.close()


@pytest.fixture(scope="module")
def offload():
    offload = ThreadOffload(name="chroma")
    yield offload
    offload.close()


@pytest.fixture
async def index(tmp_path, offload):
    index = ChromaIndex(tmp_path / "chroma", offload=offload, sync_threshold=50)
    yield index
    await index.close()


class TestChromaIndex(VectorIndexContract):
    """As the contract has it."""


def run_child(directory, what, **options):
    command = [sys.executable, "-c", CHILD, str(directory), what]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, **options
    )


async def fill(directory, offload, items=MANY):
    """A directory with a collection "one" whose graph is on disk, closed."""
    index = ChromaIndex(directory, offload=offload, sync_threshold=50)
    for start in range(0, len(items), 40):
        await index.upsert("one", items[start : start + 40])
    await index.close()


def cut_to_half(directory, name):
    (path,) = directory.glob(f"*/{name}")
    os.truncate(path, path.stat().st_size // 2)


def scribble_over(directory):
    """Damage the graph in a way that crashes the process that walks over it."""
    (path,) = directory.glob("*/data_level0.bin")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 4] + b"\xff" * (len(data) - len(data) // 4))


async def test_stored_vectors_are_there_after_a_restart(tmp_path, offload):
    await fill(tmp_path, offload)
    index = ChromaIndex(tmp_path, offload=offload)

    assert len(await index.ids("one")) == len(MANY)
    assert (await index.query("one", MANY[7].vector, k=1))[0].id == MANY[7].id
    await index.close()


async def test_nothing_is_opened_before_the_first_call(tmp_path, offload):
    index = ChromaIndex(tmp_path / "chroma", offload=offload)
    await index.close()

    assert not (tmp_path / "chroma").exists()


@pytest.mark.thorough
async def test_results_that_differ_in_two_numbers_alone_are_found_and_taken_for_no_damage(
    tmp_path, index
):
    embedder = HashEmbedder()
    texts = {n: f"Result number {n} about {n * 7}" for n in range(352)}
    items = [
        IndexItem(id=make_id(n), vector=embedder.embed_text(text), text=text, task_id=n)
        for n, text in texts.items()
    ]
    for start in range(0, len(items), BATCH):
        await index.upsert("one", items[start : start + BATCH])

    missed = [
        item.id
        for item in items
        if item.id not in [hit.id for hit in await index.query("one", item.vector, k=5)]
    ]

    assert len(missed) <= MAX_MISS_SHARE * len(items)


async def test_a_second_owner_is_refused_and_told_the_two_ways_out(tmp_path, offload, index):
    await index.upsert("one", ITEMS)
    second = ChromaIndex(tmp_path / "chroma", offload=offload)

    with pytest.raises(IndexUnavailableError) as caught:
        await second.query("one", ITEMS[0].vector, k=1)

    assert "another process" in caught.value.what
    assert "wait" in caught.value.fix and "BABYAGI_RESULT_STORE=builtin" in caught.value.fix
    await index.close()
    assert len(await second.ids("one")) == 3
    await second.close()


@pytest.mark.system
async def test_the_directory_of_a_killed_owner_can_be_taken_over(tmp_path, index):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path / "chroma"), "hold"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout and child.stdout.readline() == "open\n"
        with pytest.raises(IndexUnavailableError, match="another process"):
            await index.ids("one")
        child.send_signal(signal.SIGKILL)

    assert len(await index.ids("one")) == 3


async def test_a_file_that_chroma_finds_damaged_is_a_damaged_index_and_a_drop_mends_it(
    tmp_path, offload, index
):
    await fill(tmp_path / "chroma", offload)
    cut_to_half(tmp_path / "chroma", "index_metadata.pickle")

    with pytest.raises(StoreUnusableError):
        await index.query("one", MANY[0].vector, k=1)
    await index.drop("one")
    await index.upsert("one", MANY)

    assert len(await index.query("one", MANY[0].vector, k=5)) == 5


async def test_a_database_that_cannot_be_opened_is_removed_by_a_drop(tmp_path, offload, index):
    await fill(tmp_path / "chroma", offload)
    (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"no database" * 1000)

    with pytest.raises(StoreUnusableError):
        await index.ids("one")
    await index.drop("one")

    assert await index.ids("one") == []
    await index.upsert("one", ITEMS)
    assert len(await index.ids("one")) == 3


@pytest.mark.system
async def test_a_start_after_a_crash_empties_the_directory(tmp_path, offload):
    many = [make_item(n, f"result number {n} is about {n * 7919 % 1000}") for n in range(1, 601)]
    await fill(tmp_path, offload, many)
    scribble_over(tmp_path)

    first = run_child(tmp_path, "look")
    found = (tmp_path / CRASH_FILE).exists()
    second = run_child(tmp_path, "look")

    assert first.returncode == -signal.SIGSEGV and found
    assert (second.returncode, second.stdout) == (0, "0\n"), second.stderr
    assert not (tmp_path / CRASH_FILE).exists()


async def test_no_marker_of_a_crash_stays_after_a_call_that_failed(tmp_path, offload):
    await fill(tmp_path, offload)
    index = ChromaIndex(tmp_path, offload=offload)

    with pytest.raises(StoreUnusableError):
        await index.upsert("one", [IndexItem(id=make_id(9), vector=b"\0" * 8, text="", task_id=9)])

    assert not (tmp_path / CRASH_FILE).exists()
    assert len(await index.ids("one")) == len(MANY)
    await index.close()


@pytest.mark.system
def test_neither_an_env_file_nor_other_programs_variables_keep_chroma_from_starting(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / ".env").write_bytes(b"NAME=\xff\xfe\nMIGRATIONS=none\n")
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path.cwd()),
        "MIGRATIONS": "1",
        "ALLOW_RESET": "maybe",
    }

    done = run_child(tmp_path / "chroma", "look", cwd=folder, env=environ)

    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


async def test_a_collection_that_measures_otherwise_is_not_trusted(tmp_path, index):
    import chromadb
    from chromadb.config import Settings

    client: Any = chromadb.PersistentClient(
        tmp_path / "chroma", settings=Settings(anonymized_telemetry=False)
    )
    client.create_collection("one", embedding_function=None)
    client.close()

    with pytest.raises(StoreUnusableError, match="but babyagi needs cosine"):
        await index.upsert("one", ITEMS)
    await index.drop("one")
    await index.upsert("one", ITEMS)

    assert len(await index.ids("one")) == 3


async def test_a_directory_that_cannot_be_made_is_trouble_that_time_mends(tmp_path, offload):
    (tmp_path / "file").write_text("")
    index = ChromaIndex(tmp_path / "file" / "chroma", offload=offload)

    with pytest.raises(IndexUnavailableError, match="directory"):
        await index.ids("one")
    await index.close()


@pytest.fixture(scope="module")
def indexed_home(tmp_path_factory):
    """A home whose results are all in Chroma, its graph on disk."""
    home = tmp_path_factory.mktemp("home")
    asyncio.run(fill_home(home))
    return home


async def fill_home(home):
    store = await open_sqlite(home / "tasks.db", clock=lambda: START, offload=run_inline)
    objective = await fill_library(
        store, {f"Task {n}": text for n, text in enumerate(list(TEXTS.values()) * 12)}
    )
    index = ChromaIndex(home / "chroma", offload=run_inline, sync_threshold=50)
    indexer = Indexer(store, index, objective=objective)
    while await indexer.run_once(embed=Embedding(), limit=40):
        pass
    await index.close()
    await store.close()


def fill_with_zeros(directory, name):
    (path,) = directory.glob(f"*/{name}")
    path.write_bytes(bytes(path.stat().st_size))


GRAPH_FILES = [
    "link_lists.bin",
    "header.bin",
    "length.bin",
    "data_level0.bin",
    "index_metadata.pickle",
]


def damages():
    """Each file damaged in one of two ways, in turn; with `LONG_TESTS` each in both."""
    ways = (cut_to_half, fill_with_zeros)
    if "LONG_TESTS" in os.environ:
        return list(product(GRAPH_FILES, ways))
    return list(zip(GRAPH_FILES, cycle(ways), strict=False))


@pytest.mark.system
@pytest.mark.parametrize(("name", "damage"), damages())
def test_whatever_file_is_damaged_every_result_is_found_again_within_three_starts(
    name, damage, indexed_home, tmp_path
):
    home = shutil.copytree(indexed_home, tmp_path / "home")
    damage(home / "chroma", name)

    assert mended_within(3, home) == "120 held, 0 missing, 0 of 120 not found, 0 embedded\n"


@pytest.mark.system
def test_a_graph_that_crashes_whoever_walks_over_it_is_found_again_within_three_starts(
    indexed_home, tmp_path
):
    home = shutil.copytree(indexed_home, tmp_path / "home")
    scribble_over(home / "chroma")

    assert mended_within(3, home) == "120 held, 0 missing, 0 of 120 not found, 0 embedded\n"


def mended_within(n_starts, home):
    """What the first start that does not crash says."""
    for _ in range(n_starts):
        done = run_child(home, "mend")
        if done.returncode == 0:
            return done.stdout
    return done.stderr


async def test_a_call_that_is_cancelled_leaves_the_index_usable(index):
    task = asyncio.create_task(index.upsert("one", MANY))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    await index.upsert("one", MANY)

    assert len(await index.ids("one")) == len(MANY)
