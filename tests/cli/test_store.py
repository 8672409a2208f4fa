"""The commands `index status|check|rebuild` and `results search`, on a home with a real task store
and a real index."""

import asyncio
import fcntl
import json
from contextlib import AsyncExitStack

import pytest

from babyagi.app.application import open_app
from babyagi.app.backends import open_index, open_store
from babyagi.cli.root import run_guarded
from babyagi.index.indexer import collection_of
from babyagi.index.vendors.chroma import OWNER_FILE
from babyagi.tasks import Duty, Proposal
from babyagi.taskstore.nouns import Planned
from support.workers import join
from tests.cli import homes, samples
from tests.index.library import TEXTS

STORES = ["builtin", "chroma"]


@pytest.fixture(autouse=True, params=STORES)
def chosen(request, home, monkeypatch):
    monkeypatch.setenv("BABYAGI_RESULT_STORE", request.param)


def fill_home(space="hash:v1:768", *, texts=TEXTS, uid="0a1b2c3d"):
    """An objective with ten results, none of them indexed."""

    async def fill():
        async with open_store(homes.settings()) as store:
            names = list(texts)
            spec = samples.spec(initial_task=names[0], embedding_space=space)
            objective, _ = await store.create_objective(spec, uid=uid, always_new=True)
            await join(store, homes.WORKER, objective.id)
            await store.add_tasks(objective.id, [Proposal(name=name) for name in names[1:]])
            for _ in names:
                claim = await store.claim_task(objective.id, homes.WORKER.id)
                assert claim is not None
                await store.record_result(
                    claim, text=texts[claim.task.name], origins=("model:rehearsal",), plan=Planned()
                )
            await store.remove_worker(homes.WORKER.id)

    asyncio.run(fill())


def run_json(capsys, *line, code=0):
    assert run_guarded([*line, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_rebuild_indexes_the_results_that_are_owed(home, capsys):
    fill_home()

    owed = homes.read_index_state()
    assert run_guarded(["store", "rebuild"]) == 0
    said = capsys.readouterr()

    assert owed == (10, 10, "hash:v1:768")
    assert homes.read_index_state() == (0, 10, "hash:v1:768")
    assert "10 of 10 results indexed" in said.err and "10 results" in said.out


def test_a_whole_index_passes_the_check_and_one_that_lacks_results_does_not(home, capsys):
    fill_home()
    assert run_json(capsys, "store", "verify", "--index")["n_owed"] == 10  # owed is not missing
    assert run_guarded(["store", "rebuild"]) == 0
    capsys.readouterr()

    whole = run_json(capsys, "store", "verify", "--index")
    asyncio.run(lose_everything())
    lost = run_json(capsys, "store", "verify", "--index", code=7)
    assert run_guarded(["store", "verify", "--index"]) == 7
    said = capsys.readouterr().out
    assert run_guarded(["store", "rebuild"]) == 0

    assert (whole["is_whole"], whole["n_expected"], whole["n_held"], whole["n_probes"]) == (
        True,
        10,
        10,
        10,
    )
    assert (lost["is_whole"], lost["missing"]) == (False, list(range(1, 11)))
    assert "missing from the index: task 1" in said and "babyagi store rebuild" in said
    capsys.readouterr()
    assert run_json(capsys, "store", "verify", "--index")["is_whole"]


async def lose_everything():
    """Drop the collection, or for the index that lives on the stored vectors those."""
    async with open_app(homes.settings()) as app:
        (objective,) = await app.store.objectives()
        async with app.open_results(objective) as opened:
            await opened.index.drop(collection_of(objective))
    import sqlite3

    if homes.settings().result_store == "builtin":
        database = sqlite3.connect(homes.settings().home / "tasks.db")
        with database:
            database.execute("DELETE FROM vector")
        database.close()


def test_a_rebuild_beside_a_worker_that_feeds_the_index_leaves_it_to_that_worker(home, capsys):
    fill_home()

    async def feed_meanwhile():
        async with open_store(homes.settings()) as store:
            await join(store, homes.WORKER, 1, lease_s=60)
            assert await store.claim_duty(1, homes.WORKER.id, Duty.INDEX) is not None

    asyncio.run(feed_meanwhile())

    assert run_guarded(["store", "rebuild"]) == 7
    assert "another worker is indexing objective" in capsys.readouterr().err


def test_a_search_finds_the_results_that_bear_on_a_text(home, capsys):
    fill_home()

    found = run_json(
        capsys, "show", "results", "opening hours of the exhibition of", "manuscripts", "-k", "3"
    )
    again = run_json(capsys, "show", "results", "--objective", "1", "manuscripts")

    assert found["hits"][0]["task"] == "Museum"
    assert (
        len(found["hits"]) == 3
        and found["text"] == "opening hours of the exhibition of manuscripts"
    )
    assert again["hits"][0]["task"] == "Museum"
    assert run_guarded(["show", "results", "medieval manuscripts"]) == 0
    assert "Museum" in capsys.readouterr().out.splitlines()[0]


def test_a_search_that_finds_nothing_near_says_so(home, capsys):
    fill_home()
    assert run_guarded(["show", "results", "qqq"]) == 0
    out, err = capsys.readouterr()
    assert "no result is near to this text" in err and out == ""
    assert run_guarded(["show", "results", "manuscripts"]) == 0
    assert "no result is near" not in capsys.readouterr().err


def test_a_search_without_the_vectors_that_the_results_have_says_that_it_compares_words_only(
    home, capsys
):
    fill_home(space="openai:text-embedding-3-small:1536:")

    found = run_json(capsys, "show", "results", "manuscripts")
    assert run_guarded(["show", "results", "manuscripts"]) == 0

    assert found["hits"][0]["task"] == "Museum"
    assert found["degraded"].startswith("compared by words only")
    assert "compared by words only" in capsys.readouterr().err


def test_results_can_be_embedded_anew_by_another_model_and_nothing_is_lost(home, capsys):
    fill_home(space="other:v1:12")

    assert run_guarded(["store", "rebuild", "--embedding-model", "hash"]) == 0
    capsys.readouterr()
    found = run_json(capsys, "show", "results", "medieval manuscripts")

    assert homes.read_index_state() == (0, 10, "hash:v1:768")
    assert run_json(capsys, "store", "verify", "--index")["is_whole"]
    assert found["degraded"] == "" and found["hits"][0]["task"] == "Museum"


def test_results_are_not_embedded_anew_while_a_worker_would_go_on_with_the_old_vectors(
    home, capsys
):
    fill_home(space="other:v1:12")

    async def serve():
        async with open_store(homes.settings()) as store:
            await join(store, homes.WORKER, 1, lease_s=60)

    asyncio.run(serve())

    assert run_guarded(["store", "rebuild", "--embedding-model", "hash"]) == 2
    assert "stop its workers first" in capsys.readouterr().err
    assert homes.read_index_state()[-1] == "other:v1:12"


def test_an_objective_can_go_on_with_another_index_between_two_runs(home, capsys, monkeypatch):
    fill_home()
    assert run_guarded(["store", "rebuild"]) == 0
    other = next(store for store in STORES if store != homes.settings().result_store)
    monkeypatch.setenv("BABYAGI_RESULT_STORE", other)
    monkeypatch.setenv("RESULTS_STORE_NAME", "another")
    capsys.readouterr()

    found = run_json(capsys, "show", "results", "medieval manuscripts")
    assert run_guarded(["store", "rebuild"]) == 0
    capsys.readouterr()

    assert found["hits"][0]["task"] == "Museum"  # found in the stored vectors meanwhile
    assert run_json(capsys, "store", "verify", "--index")["is_whole"]


def test_a_search_looks_into_other_objectives_when_it_is_told_to(home, capsys):
    fill_home()
    fill_home(texts={"Bread": "Rye bread needs a hot oven."}, uid="4e5f6071")

    alone = run_json(capsys, "show", "results", "medieval manuscripts")
    everywhere = run_json(capsys, "show", "results", "medieval manuscripts", "--all-objectives")
    assert (
        run_guarded(
            ["show", "results", "medieval manuscripts", "--all-objectives", "--objective", "2"]
        )
        == 0
    )

    assert {hit["objective_id"] for hit in alone["hits"]} == {2}
    assert (everywhere["hits"][0]["objective_id"], everywhere["hits"][0]["task"]) == (1, "Museum")
    assert {hit["objective_id"] for hit in everywhere["hits"]} == {1, 2}
    assert "objective 1, task" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    "line",
    [["store", "verify", "--index"], ["show", "results", "x"]],
    ids=" ".join,
)
def test_without_an_objective_there_is_nothing_to_look_at(line, home, capsys):
    assert run_guarded(line) == 8
    assert "there is no objective yet" in capsys.readouterr().err


def test_an_empty_search_is_a_usage_error(home):
    assert run_guarded(["show", "results", " "]) == 2


def test_a_deleted_objective_leaves_nothing_in_the_index(home, capsys):
    async def pick():
        async with open_store(homes.settings()) as store:
            return (await store.objectives())[0]

    async def held_ids():
        async with AsyncExitStack() as stack:
            return await open_index(homes.settings(), stack).ids(collection_of(objective))

    fill_home()
    objective = asyncio.run(pick())
    assert run_guarded(["store", "rebuild"]) == 0
    capsys.readouterr()

    assert run_guarded(["store", "delete", "--yes"]) == 0

    assert capsys.readouterr().err == ""
    assert asyncio.run(held_ids()) == []


def test_an_objective_is_deleted_although_another_process_has_its_index_and_a_note_says_so(
    home, capsys
):
    fill_home()
    (home / "chroma").mkdir()
    with (home / "chroma" / OWNER_FILE).open("w") as owned:
        fcntl.flock(owned, fcntl.LOCK_EX)
        assert run_guarded(["store", "delete", "--yes"]) == 0

    said = capsys.readouterr()
    assert "is deleted" in said.out
    assert ("may still hold" in said.err) is (homes.settings().result_store == "chroma")
