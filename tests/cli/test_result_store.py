"""A chosen result store that is absent, or whose library is: what `run`, `status`, `report` and
`doctor` say of it."""

import json
import socket
import sys
from contextlib import AsyncExitStack, contextmanager

import pytest

from babyagi.app.backends import open_index
from babyagi.cli.root import run_guarded
from babyagi.index.builtin import BuiltinIndex
from babyagi.settings.fields import Settings
from support import pinecone_server, weaviate_server

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")
STORES = ["weaviate", "pinecone", "chroma"]
KEY = "sk-of-a-store"


@pytest.fixture(autouse=True)
def home(home, tmp_path, monkeypatch):
    monkeypatch.setenv("LLM_MODEL", "rehearsal")
    monkeypatch.delenv("BABYAGI_RESULT_STORE")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "limits.md").write_text("# Limits\n\nA run stops at fifty tasks.\n")
    monkeypatch.setenv("BABYAGI_FILES", str(tmp_path / "docs"))
    return home


@pytest.fixture
def closed_port():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@pytest.fixture
def silent_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def choose(monkeypatch, store, port, *, grpc_port=9):
    """Settings that choose the store at this port of this machine; return how its address is
    shown."""
    monkeypatch.setenv("BABYAGI_RESULT_STORE", store)
    monkeypatch.setitem(Settings.__init__.__kwdefaults__, "weaviate_grpc_port", grpc_port)
    address = f"http://127.0.0.1:{port}"
    for name, value in {
        "weaviate": {
            "WEAVIATE_URL": address,
            "WEAVIATE_API_KEY": KEY,
        },
        # the second is read by its library alone
        "pinecone": {"PINECONE_API_KEY": KEY, "PINECONE_CONTROLLER_HOST": address},
        "chroma": {"CHROMA_URL": address},
    }[store].items():
        monkeypatch.setenv(name, value)
    return "Pinecone" if store == "pinecone" else address


def doctor_of_store(capsys):
    code = run_guarded(["doctor", "--json"])
    checks = json.loads(capsys.readouterr().out)["checks"]
    (found,) = [check for check in checks if check["name"] == "result store"]
    assert KEY not in json.dumps(checks)
    return found, code


@contextmanager
def answering(store):
    """A server of the kind that asks for `KEY`; its state and its ports."""
    if store == "weaviate":
        with weaviate_server.serving() as (state, port, grpc_port):
            state.key = KEY
            yield state, port, grpc_port
    else:
        with pinecone_server.serving() as (state, url):
            state.key = KEY
            yield state, int(url.rpartition(":")[2]), 9


@pytest.mark.parametrize("store", STORES)
def test_an_absent_store_is_said_on_the_screen_in_the_report_and_in_the_status_and_the_run_ends_well(
    store, closed_port, monkeypatch, capsys
):
    shown = choose(monkeypatch, store, closed_port)

    assert run_guarded(["run", "Find the limits"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert run_guarded(["report"]) == 0
    report = capsys.readouterr().out
    assert run_guarded(["status"]) == 0
    status = capsys.readouterr().out
    assert run_guarded(["watch"]) == 0
    assert shown in capsys.readouterr().err
    assert run_guarded(["status", "--json"]) == 0

    said = [
        place
        for place, line in enumerate(lines)
        if "results cannot be written to the result store" in line
    ]
    assert len(said) == 1 and shown in lines[said[0]]
    assert said[0] < next(place for place, line in enumerate(lines) if " task 1 done" in line)
    assert any(line.startswith("Results:") and shown in line for line in lines[-8:])
    for text in (report, status):
        assert shown in text and "babyagi store rebuild --objective 1" in text
    assert shown in json.loads(capsys.readouterr().out)["index_trouble"]


@pytest.mark.parametrize("store", STORES)
def test_the_events_of_a_run_as_json_say_it_once(store, closed_port, monkeypatch, capsys):
    shown = choose(monkeypatch, store, closed_port)

    assert run_guarded(["run", "Find the limits", "--json"]) == 0

    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (event,) = [event for event in events[:-1] if event["kind"].startswith("index.")]
    assert event["kind"] == "index.unavailable" and shown in event["data"]["reason"]
    assert KEY not in json.dumps(events)


def test_a_run_after_a_rebuild_into_another_store_says_it_no_more(closed_port, monkeypatch, capsys):
    choose(monkeypatch, "weaviate", closed_port)
    assert run_guarded(["run", "Find the limits"]) == 0
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "builtin")
    assert run_guarded(["store", "rebuild"]) == 0
    capsys.readouterr()

    assert run_guarded(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["index_trouble"] == ""


@pytest.mark.parametrize(
    "command",
    [["run", "Find"], ["demo"], ["resume"], ["worker"], ["run", "Find", "--join"]],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("store", "module"),
    [("weaviate", "weaviate"), ("pinecone", "pinecone"), ("chroma", "chromadb")],
)
def test_a_library_that_is_not_installed_is_said_before_anything_begins_with_what_to_type(
    command, store, module, closed_port, home, monkeypatch, capsys
):
    choose(monkeypatch, store, closed_port)
    monkeypatch.setitem(sys.modules, module, None)

    assert run_guarded(command) == 2

    err = capsys.readouterr().err
    assert (
        "its library is not installed" in err
        and "pip install '" in err
        and f"the Python module {module} is missing" in err
    )
    assert run_guarded(["show", "objectives", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    found, code = doctor_of_store(capsys)
    assert (found["state"], code) == ("fail", 6) and "pip install '" in found["fix"]


@pytest.mark.parametrize("module", ["chromadb", "grpc"])
async def test_where_chroma_lacks_a_package_and_nobody_named_it_the_built_in_index_stands_in(
    module, home, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)
    said: list[str] = []

    async with AsyncExitStack() as stack:
        index = open_index(Settings(home=home), stack, tell=said.append)

    assert isinstance(index, BuiltinIndex)
    (line,) = said
    assert f"built-in, because Chroma cannot be imported: {module} is missing" in line


@pytest.mark.parametrize("store", ["weaviate", "pinecone"])
def test_a_choice_without_address_or_key_is_refused_by_run_and_doctor_alike(
    store, monkeypatch, capsys
):
    monkeypatch.setenv("BABYAGI_RESULT_STORE", store)

    assert run_guarded(["run", "Find"]) == 2
    err = capsys.readouterr().err
    found, code = doctor_of_store(capsys)

    assert (found["state"], code) == ("fail", 6)
    assert found["fix"] in err


@pytest.mark.parametrize("store", STORES)
def test_the_doctor_calls_no_store_ok_that_does_not_answer(store, closed_port, monkeypatch, capsys):
    shown = choose(monkeypatch, store, closed_port)

    found, code = doctor_of_store(capsys)

    assert (found["state"], code) == ("warn", 0)
    assert (
        shown in found["found"] and "meanwhile results are found in the task store" in found["fix"]
    )


@pytest.mark.parametrize("store", STORES)
def test_the_doctor_waits_a_bounded_time_for_a_store_that_says_nothing(
    store, silent_port, monkeypatch, capsys
):
    monkeypatch.setattr(f"babyagi.index.vendors.{store}.PING_TIMEOUT_S", 0.5)
    choose(monkeypatch, store, silent_port)

    found, _ = doctor_of_store(capsys)

    assert found["state"] == "warn" and "no answer within 0.5 s" in found["found"]


@pytest.mark.parametrize("store", ["weaviate", "pinecone"])
def test_the_doctor_calls_a_store_ok_that_took_the_key_and_none_that_refused_it(
    store, monkeypatch, capsys
):
    with answering(store) as (state, port, grpc_port):
        choose(monkeypatch, store, port, grpc_port=grpc_port)
        taken, _ = doctor_of_store(capsys)
        state.key = "sk-another"
        refused, _ = doctor_of_store(capsys)

    assert taken["state"] == "ok"
    assert refused["state"] == "warn" and f"{store.upper()}_API_KEY" in refused["fix"]


def test_the_doctor_looks_at_the_second_port_of_weaviate_too(closed_port, monkeypatch, capsys):
    monkeypatch.setattr("babyagi.index.vendors.weaviate.PING_TIMEOUT_S", 0.5)
    with answering("weaviate") as (_, port, _):
        choose(monkeypatch, "weaviate", port, grpc_port=closed_port)
        found, _ = doctor_of_store(capsys)

    assert found["state"] == "warn" and f"127.0.0.1:{closed_port} (gRPC)" in found["fix"]


def test_the_doctor_says_what_to_do_about_a_directory_that_cannot_be_used(
    home, monkeypatch, capsys
):
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "chroma")
    home.mkdir(parents=True, exist_ok=True)
    (home / "chroma").write_text("no directory")

    found, _ = doctor_of_store(capsys)

    assert found["state"] == "warn" and found["fix"].startswith("make it a directory")


def test_the_doctor_does_not_call_a_weaviate_ok_that_a_run_would_start(monkeypatch, capsys):
    monkeypatch.setenv("WEAVIATE_USE_EMBEDDED", "true")

    found, _ = doctor_of_store(capsys)

    assert found["state"] == "warn" and "is not started yet" in found["found"]


def test_a_server_that_answers_is_used_and_nothing_is_said(monkeypatch, capsys):
    with answering("weaviate") as (state, port, grpc_port):
        choose(monkeypatch, "weaviate", port, grpc_port=grpc_port)
        assert run_guarded(["run", "Find the limits"]) == 0

        assert "result store" not in capsys.readouterr().out
        assert state.vectors
