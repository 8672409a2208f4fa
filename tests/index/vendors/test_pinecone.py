"""Pinecone: the contract with the real client, on a server of ours that speaks its protocol, or on
the project of PINECONE_TEST_KEY."""

import asyncio
import os
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("pinecone")

import pinecone.errors.exceptions

from babyagi.errors import IndexUnavailableError, StoreUnusableError
from babyagi.index.indexer import Indexer
from babyagi.index.port import IndexItem
from babyagi.index.search import ResultSearch
from babyagi.index.vendors.pinecone import PineconeIndex
from support.pinecone_server import serving
from tests.index.contract import ITEMS, OurServerContract, make_every_error, make_id
from tests.index.library import Embedding, open_library

KEY = os.environ.get("PINECONE_TEST_KEY", "")


@pytest.fixture
def server():
    with serving() as found:
        yield found


def open_other(server, *, key="sk-test", **options):
    return PineconeIndex(key, cloud="aws", region="us-east-1", host=server[1], **options)


@pytest.fixture
async def index(server):
    index = PineconeIndex(KEY, cloud="aws", region="us-east-1") if KEY else open_other(server)
    for name in ("one", "two", "flat"):
        await index.drop(name)
    yield index
    await index.close()


class TestPineconeIndex(OurServerContract):
    """As the contract has it."""

    @pytest.fixture
    def open_another(self, server):
        return partial(open_other, server)


async def test_an_index_is_made_where_the_settings_say_and_is_shared_by_all_collections_of_its_dimension(
    server,
):
    state, _ = server
    index = open_other(server)
    await index.upsert("one", ITEMS)
    await index.upsert("two", ITEMS)

    assert state.dimensions == {"babyagi-64": 64}
    assert (
        state.deployments["babyagi-64"]["cloud"],
        state.deployments["babyagi-64"]["region"],
    ) == ("aws", "us-east-1")
    await index.close()


async def test_a_region_that_there_is_not_says_which_variables_to_set(server):
    index = PineconeIndex("sk-test", cloud="gcp", region="us-east-1", host=server[1])

    with pytest.raises(IndexUnavailableError) as raised:
        await index.upsert("one", ITEMS)
    await index.close()

    assert "gcp, us-east-1" in raised.value.what and "not found" in raised.value.why
    assert "PINECONE_ENVIRONMENT" in raised.value.fix


async def test_many_long_vectors_fit_the_requests_that_the_service_takes(server):
    vector = struct.pack("<3072f", *([-0.01804220] * 3072))
    items = [
        IndexItem(id=make_id(n), vector=vector, text="\x00" * 2_000, task_id=n) for n in range(100)
    ]
    index = open_other(server)

    await index.upsert("one", items)

    assert len(await index.ids("one")) == 100
    await index.close()


async def test_an_index_that_is_not_ready_in_time_is_called_that(server, monkeypatch):
    monkeypatch.setattr("babyagi.index.vendors.pinecone.CREATE_TIMEOUT_S", 1)
    server[0].is_ready = False
    index = open_other(server)

    with pytest.raises(IndexUnavailableError) as raised:
        await index.upsert("one", ITEMS)
    await index.close()

    assert "babyagi-64" in raised.value.why and "not ready" in raised.value.why


async def test_a_service_that_asks_to_wait_longer_than_we_do_may_have_reached_a_limit_of_the_plan(
    server,
):
    index = open_other(server, timeout_s=1)
    await index.upsert("one", ITEMS)
    server[0].statuses += [429] * 20

    with pytest.raises(IndexUnavailableError) as raised:
        await index.query("one", ITEMS[0].vector, k=1)
    await index.close()

    assert "the plan's limits" in raised.value.fix


async def test_a_service_that_has_forgotten_its_indexes_is_unavailable_once_and_then_given_them_again(
    server,
):
    state, _ = server
    index = open_other(server)
    await index.upsert("one", ITEMS)
    state.forget()

    with pytest.raises(IndexUnavailableError):
        await index.upsert("one", ITEMS)
    await index.upsert("one", ITEMS)
    state.forget()
    with pytest.raises(IndexUnavailableError):
        await index.query("one", ITEMS[0].vector, k=3)

    assert await index.query("one", ITEMS[0].vector, k=3) == []
    assert await index.ids("one") == []
    await index.close()


async def test_a_projector_outlives_a_service_that_has_forgotten_everything():
    store, objective = await open_library()
    with serving() as server:
        index, embed = open_other(server), Embedding()
        indexer = Indexer(store, index, objective=objective)
        await indexer.run_once(embed=embed, limit=6)
        server[0].forget()
        with pytest.raises(IndexUnavailableError):
            await indexer.run_once(embed=embed)
        await indexer.run_once(embed=embed)

        report = await indexer.check()
        await index.close()

    assert report.is_whole and (report.n_held, report.n_owed, len(embed.asked)) == (10, 0, 10)


async def test_a_check_reports_nothing_missing_that_lagging_reads_hide():
    store, objective = await open_library()
    with serving(lag_s=0.5) as server:
        index = open_other(server)
        indexer = Indexer(store, index, objective=objective, sleep=lambda _: asyncio.sleep(0.7))
        await indexer.run_once(embed=Embedding())

        report = await indexer.check()
        await index.close()

    assert report.is_whole and report.n_held == 10


@pytest.mark.usefixtures("many_results")
async def test_while_reads_lag_behind_writes_a_search_still_finds_everything():
    store, objective = await open_library()
    with serving(lag_s=1.0) as server:
        index, embed = open_other(server), Embedding()
        await Indexer(store, index, objective=objective).run_once(embed=embed)
        search = ResultSearch(store, index, objective=objective)

        lagging = await search.relevant("exhibition of manuscripts", k=3, embed=embed)
        await asyncio.sleep(1.2)
        caught_up = await search.relevant("exhibition of manuscripts", k=3, embed=embed)
        await index.close()

    assert (
        lagging.degraded.startswith("the index was not used: the index has only 0 of 10")
        and caught_up.degraded == ""
    )
    assert lagging.ranked == caught_up.ranked
    assert lagging.ranked[0].result.task_name == "Museum"


@pytest.mark.thorough
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_service_that_fails_is_unavailable_and_is_used_again_when_it_is_well(
    server, status
):
    state, _ = server
    index = open_other(server, timeout_s=2)
    await index.upsert("one", ITEMS)
    state.statuses += [status] * 20
    with pytest.raises(IndexUnavailableError, match="cannot answer now"):
        await index.query("one", ITEMS[0].vector, k=1)
    state.statuses.clear()

    assert (await index.query("one", ITEMS[0].vector, k=1))[0].id == ITEMS[0].id
    await index.close()


async def test_a_wrong_key_says_which_variable_to_set_and_is_not_shown(server):
    index = open_other(server, key="sk-wrong")

    with pytest.raises(IndexUnavailableError) as raised:
        await index.ids("one")
    await index.close()

    assert "PINECONE_API_KEY" in raised.value.fix
    assert "sk-wrong" not in f"{raised.value.what} {raised.value.why} {raised.value.fix}"


PINECONE_ERRORS = make_every_error(pinecone.errors.exceptions, {"status_code": 418})


@pytest.mark.parametrize("error", [*PINECONE_ERRORS, ValueError("odd"), OSError("no route")])
def test_every_error_of_pinecone_is_one_of_ours(error):
    index = PineconeIndex("sk-test", cloud="aws", region="us-east-1")

    with pytest.raises((IndexUnavailableError, StoreUnusableError)), index._translating(1.0):
        raise error


@pytest.mark.system
def test_the_renamed_package_says_what_to_type(tmp_path):
    (tmp_path / "pinecone").mkdir()
    (tmp_path / "pinecone" / "__init__.py").write_text(
        'raise Exception("pinecone-client has been renamed")\n'
    )
    program = """
import asyncio
from babyagi.index.vendors.pinecone import PineconeIndex
try:
    asyncio.run(PineconeIndex("k", cloud="aws", region="us-east-1").ids("one"))
except Exception as error:
    print(type(error).__name__, error.why, error.fix, sep="|")
"""
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [str(tmp_path), os.environ.get("PYTHONPATH", ""), str(Path.cwd())]
        ),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.stdout.startswith("IndexUnavailableError|pinecone-client has been renamed")
    assert "pip uninstall -y pinecone-client" in done.stdout, done.stderr
