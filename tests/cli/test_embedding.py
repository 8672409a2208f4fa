"""Chroma's own embedding model through the command line: fetched when it is chosen, and no run
depends on it."""

import json
import shutil

import pytest
from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

from babyagi.cli.root import run_guarded
from babyagi.cli.session import close_log
from tests.cli import homes
from tests.llm.onnx_files import make_files

RUN = [
    "run",
    "Say what the limits are",
    "-t",
    "Read the documents",
    "--model",
    "rehearsal",
    "--max-tasks",
    "3",
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where Chroma looks for the model's files; there are none, and nobody serves them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "builtin")
    monkeypatch.setenv("BABYAGI_EMBEDDING_MODEL", "chroma-onnx")
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "DOWNLOAD_PATH", tmp_path / "model")
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "MODEL_DOWNLOAD_URL", "http://127.0.0.1:1/onnx.tar.gz")
    documents = tmp_path / "docs"
    documents.mkdir()
    for name in ("limits", "recovery", "models"):
        (documents / f"{name}.md").write_text(
            f"# {name}\n\nThe {name} are said here, and each of the {name} has a number.\n"
        )
    monkeypatch.setenv("BABYAGI_FILES", str(documents))
    yield tmp_path / "model"
    close_log()


def run_json(capsys, *line):
    capsys.readouterr()
    assert run_guarded([*line, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "line", [RUN, ["resume"], ["worker"], ["store", "rebuild"]], ids=lambda line: " ".join(line[:2])
)
def test_a_model_that_cannot_be_fetched_is_said_before_anything_begins(line, capsys):
    assert run_guarded(line) == 2

    said = capsys.readouterr().err
    assert "is downloaded once" in said
    assert (
        "chroma-onnx is not on this machine and could not be fetched" in said
        and "BABYAGI_EMBEDDING_MODEL=hash" in said
    )
    assert run_json(capsys, "show", "objectives") == []


def test_a_run_on_it_has_its_space_and_its_results_are_found_by_it(folder, capsys):
    make_files(folder)

    assert run_guarded(RUN) == 3
    n_owed, _, space = homes.read_index_state()
    found = run_json(capsys, "show", "results", "limits")

    assert (space, n_owed) == ("onnx:all-MiniLM-L6-v2:384:v1", 0)
    assert found["degraded"] == "" and found["hits"]


def test_files_that_are_gone_in_the_middle_stop_no_run_and_lose_no_result(
    folder, capsys, monkeypatch
):
    make_files(folder)
    assert run_guarded([*RUN, "--max-tasks", "1"]) == 3
    shutil.move(folder, folder.with_name("away"))
    # of this worker, which has not chosen the model
    monkeypatch.setenv("BABYAGI_EMBEDDING_MODEL", "hash")
    assert run_guarded(["extend", "--max-tasks", "3"]) == 0
    capsys.readouterr()

    assert run_guarded(["resume"]) == 3
    said = capsys.readouterr().err
    owed = homes.read_index_state()
    shutil.move(folder.with_name("away"), folder)
    assert run_guarded(["store", "rebuild"]) == 0

    assert (
        "objective 1: its results are searched by words alone, because the embedding model is "
        "incomplete: config.json, "
    ) in said
    space = "onnx:all-MiniLM-L6-v2:384:v1"
    assert owed == (2, 3, space) and homes.read_index_state() == (0, 3, space)


# -- changing something between two runs
# -----------------------------------------------------------------------------------------


def run_twice(capsys, between):
    """Run one task of an objective, change something, run two more; return what `results`, `index
    check` and a search say at the end."""
    assert run_guarded([*RUN, "--max-tasks", "1"]) == 3
    (first,) = run_json(capsys, "show", "results")
    between()
    assert run_guarded(["extend", "--max-tasks", "3"]) == 0
    assert run_guarded(["resume"]) == 3
    results = run_json(capsys, "show", "results")
    assert results[0] == first and len(results) == 3
    return run_json(capsys, "store", "verify", "--index"), run_json(
        capsys, "show", "results", first["task"], "-k", "3"
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"BABYAGI_RESULT_STORE": "builtin"}, {"RESULTS_STORE_NAME": "another"}),
        ({"BABYAGI_RESULT_STORE": "chroma"}, {"RESULTS_STORE_NAME": "another"}),
        ({"BABYAGI_RESULT_STORE": "builtin"}, {"BABYAGI_RESULT_STORE": "chroma"}),
        ({"BABYAGI_RESULT_STORE": "chroma"}, {"BABYAGI_RESULT_STORE": "builtin"}),
        # the objective keeps the one it has
        ({"BABYAGI_RESULT_STORE": "chroma"}, {"BABYAGI_EMBEDDING_MODEL": "chroma-onnx"}),
    ],
    ids=lambda changed: ",".join(f"{name}={value}" for name, value in changed.items()),
)
def test_another_store_or_name_of_it_between_two_runs_loses_nothing(
    before, after, folder, capsys, monkeypatch
):
    make_files(folder)
    for name, value in ({"BABYAGI_EMBEDDING_MODEL": "hash"} | before).items():
        monkeypatch.setenv(name, value)

    def change():
        for name, value in after.items():
            monkeypatch.setenv(name, value)

    check, found = run_twice(capsys, change)

    assert check["is_whole"] and (check["n_held"], check["n_owed"]) == (3, 0)
    assert found["degraded"] == "" and len(found["hits"]) == 3
    assert homes.read_index_state()[-1] == "hash:v1:768"


@pytest.mark.thorough
@pytest.mark.parametrize("store", ["builtin", "chroma"])
def test_another_embedder_between_two_runs_loses_nothing(store, folder, capsys, monkeypatch):
    make_files(folder)
    monkeypatch.setenv("BABYAGI_EMBEDDING_MODEL", "hash")
    monkeypatch.setenv("BABYAGI_RESULT_STORE", store)

    def change():
        assert run_guarded(["store", "rebuild", "--embedding-model", "chroma-onnx"]) == 0
        assert "1 of 1 results indexed" in capsys.readouterr().err

    check, found = run_twice(capsys, change)

    assert check["is_whole"] and (check["n_held"], check["n_owed"]) == (3, 0)
    assert found["degraded"] == "" and len(found["hits"]) == 3
    assert homes.read_index_state()[-1] == "onnx:all-MiniLM-L6-v2:384:v1"
