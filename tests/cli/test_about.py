import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from babyagi.cli import about
from babyagi.cli.root import run_guarded
from babyagi.cli.session import close_log
from babyagi.files.home import remember_abilities
from babyagi.llm.learning import write_abilities
from babyagi.llm.port import Abilities
from babyagi.sandbox import confined
from support.local_server import Answer, LocalServer
from support.processes import babyagi, environ
from tests.cli.homes import fill_home
from tests.llm.encrypted import CERTIFICATE, serving

KEY = "sk-never-to-be-seen"


@pytest.fixture(autouse=True)
def empty_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    yield
    close_log()


def test_config_shows_every_value_with_its_source_and_hides_secrets(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("LLM_MODEL", "some-model")

    assert run_guarded(["config"]) == 0

    out = capsys.readouterr().out
    assert KEY not in out
    assert "***" in out
    (model,) = [line for line in out.splitlines() if line.startswith("LLM_MODEL ")]
    assert "some-model" in model
    assert "environment LLM_MODEL" in model


def test_config_shows_no_value_where_the_default_depends_on_something_else(capsys):
    assert run_guarded(["config"]) == 0

    (place,) = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("PINECONE_ENVIRONMENT ")
    ]
    assert place.endswith("(us-east-1-aws)")


ORIGINAL_ENV = """# cp .env.example .env
LLM_MODEL=gpt-3.5-turbo # alternatively, gpt-4, text-davinci-003, etc
LLAMA_MODEL_PATH= # ex. models/llama-13B/ggml-model.bin
LLAMA_THREADS_NUM=8 # Set the number of threads for llama (optional)
OPENAI_API_KEY=sk-1
OPENAI_TEMPERATURE=0.0
RESULTS_STORE_NAME=baby-agi-test-table
WEAVIATE_USE_EMBEDDED=true
WEAVIATE_URL=http://127.0.0.1:8080
WEAVIATE_API_KEY=w
PINECONE_API_KEY=p
PINECONE_ENVIRONMENT=us-west1-gcp
INSTANCE_NAME=BabyAGI
COOPERATIVE_MODE=none # local
OBJECTIVE=Solve world hunger
INITIAL_TASK=Develop a task list
DOTENV_EXTENSIONS=
ENABLE_COMMAND_LINE_ARGS=false
"""
OLDER_ENV = "OPENAI_API_MODEL=gpt-4\nTABLE_NAME=t\nBABY_NAME=b\nFIRST_TASK=Begin\n"


@pytest.mark.parametrize(("text", "n_set"), [(ORIGINAL_ENV, 15), (OLDER_ENV, 4)])
def test_config_lists_every_variable_of_the_originals_env_file(tmp_path, capsys, text, n_set):
    (tmp_path / ".env").write_text(text)
    assert run_guarded(["config", "trust", "--yes"]) == 0
    capsys.readouterr()

    assert run_guarded(["config", "--json"]) == 0

    settings = json.loads(capsys.readouterr().out)["settings"]
    assert sum(entry["source"] == ".env" for entry in settings) == n_set


def test_config_as_json_is_json_and_hides_secrets(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    assert run_guarded(["config", "--json"]) == 0

    out = capsys.readouterr().out
    values = {entry["name"]: entry for entry in json.loads(out)["settings"]}
    assert KEY not in out
    assert values["openai_api_key"]["value"] == "***"
    assert values["max_tasks"] == {
        "name": "max_tasks",
        "variable": "BABYAGI_MAX_TASKS",
        "value": "50",
        "source": "default",
    }


def test_all_faults_of_the_settings_are_told_together(monkeypatch, capsys):
    monkeypatch.setenv("BABYAGI_MAX_TASKS", "sixty")
    monkeypatch.setenv("BABYAGI_CONCURRENCY", "0")

    assert run_guarded(["config"]) == 2

    err = capsys.readouterr().err
    assert "BABYAGI_MAX_TASKS" in err
    assert "BABYAGI_CONCURRENCY" in err


def test_the_doctor_finds_a_sound_home_sound_and_never_shows_the_key(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    assert run_guarded(["doctor"]) == 0

    out = capsys.readouterr().out
    assert KEY not in out
    assert "OPENAI_API_KEY is set" in out
    assert "fail" not in out


def test_the_doctor_says_what_to_type_about_a_missing_key(capsys):
    assert run_guarded(["doctor", "--json"]) == 0

    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["key"]["state"] == "warn"
    assert "OPENAI_API_KEY" in checks["key"]["fix"]


def test_the_doctor_finds_a_port_that_nobody_listens_on(monkeypatch, capsys):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")

    assert run_guarded(["doctor"]) == 6

    (said,) = [
        line for line in capsys.readouterr().out.splitlines() if line.startswith("fail  address")
    ]
    assert f"127.0.0.1:{port}" in said


def test_the_doctor_warns_when_there_is_no_chroma_server_and_says_what_happens_meanwhile(
    monkeypatch, capsys
):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    monkeypatch.setenv("CHROMA_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "chroma")

    assert run_guarded(["doctor"]) == 0

    said = capsys.readouterr().out
    assert (
        f"the Chroma server http://127.0.0.1:{port} cannot answer now" in said
        and "set CHROMA_URL if its address has changed" in said
    )


def address_check(capsys):
    code = run_guarded(["doctor", "--json"])
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    return code, checks["address"]


@contextmanager
def answering(head, body=b""):
    """The address of a server that answers each request with this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.wfile.write(b"HTTP/1.0 " + head + b"\r\n\r\n" + body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "head",
    [
        b"404 Not Found\r\nContent-Type: application/json",
        b"401 Unauthorized\r\nContent-Type: application/json",
    ],
)
def test_the_doctor_says_that_an_address_can_be_reached_whatever_it_answers(
    head, monkeypatch, capsys
):
    with answering(head) as address:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")

        code, found = address_check(capsys)

    assert (code, found["state"]) == (0, "ok") and "can be reached" in found["found"]


def test_the_doctor_names_the_proxy_of_the_address_without_its_password(monkeypatch, capsys):
    with answering(b"401 Unauthorized\r\nContent-Type: application/json") as proxy:
        place = proxy.removeprefix("http://")
        monkeypatch.setenv("http_proxy", f"http://me:word@{place}")
        monkeypatch.setenv("OPENAI_BASE_URL", "http://model.invalid/v1")

        code, found = address_check(capsys)

    assert (code, found["state"]) == (0, "ok")
    assert found["found"] == f"http://model.invalid/v1 can be reached through the proxy {place}"


def test_the_doctor_says_that_a_certificate_is_not_trusted_and_what_to_set(monkeypatch, capsys):
    with serving() as address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)

        code, found = address_check(capsys)
        assert (code, found["state"]) == (6, "fail")
        assert found["found"].startswith(f"the certificate of {address} is not trusted")
        assert "SSL_CERT_FILE" in found["fix"]

        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        assert address_check(capsys)[1]["state"] == "ok"


def test_the_doctor_says_that_a_server_is_not_encrypted(monkeypatch, capsys):
    with serving(is_encrypted=False) as address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)

        code, found = address_check(capsys)

    assert (code, found["state"]) == (6, "fail")
    assert "is not encrypted" in found["found"] and "http://" in found["fix"]


def test_the_doctor_says_when_the_file_of_certificates_cannot_be_read(monkeypatch, capsys):
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/authority.pem")
    with serving() as address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)

        code, found = address_check(capsys)

    assert (code, found["state"]) == (6, "fail")
    assert "SSL_CERT_FILE" in found["found"] and "No such file" in found["found"]


def test_the_doctor_finds_a_home_that_cannot_be_written(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "file"))

    assert run_guarded(["doctor"]) == 6

    assert "BABYAGI_HOME" in capsys.readouterr().out


def test_the_doctor_warns_of_a_notification_whose_command_is_not_there(monkeypatch, capsys):
    monkeypatch.setenv("LLM_MODEL", "rehearsal")
    for given, is_told in (("no-such-command x", True), ("true x", False), ("http://h/x", False)):
        monkeypatch.setenv("BABYAGI_NOTIFY", given)
        assert run_guarded(["doctor"]) == 0
        assert ("there is no command no-such-command" in capsys.readouterr().out) is is_told


def test_the_doctor_tells_of_settings_that_cannot_be_read(monkeypatch, capsys):
    monkeypatch.setenv("BABYAGI_MAX_TASKS", "sixty")

    assert run_guarded(["doctor"]) == 6

    assert "BABYAGI_MAX_TASKS" in capsys.readouterr().out


def test_the_doctor_finds_a_store_that_does_not_open(tmp_path, capsys):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "tasks.db").write_bytes(b"no database at all" * 100)

    assert run_guarded(["doctor", "--quick"]) == 6

    assert "fail  store: " in capsys.readouterr().out


def test_the_quick_doctor_opens_the_store_and_asks_nobody(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    fill_home()

    assert run_guarded(["doctor", "--quick"]) == 0

    out = capsys.readouterr().out
    assert "ok    store: can be opened, and has 1 objective\n" in out
    assert "127.0.0.1" not in out


def test_the_doctor_makes_no_task_store_and_updates_none(tmp_path, capsys):
    assert run_guarded(["doctor", "--quick"]) == 0
    assert "ok    store: can be opened" in capsys.readouterr().out
    assert not (tmp_path / "home" / "tasks.db").exists()


@pytest.mark.system
def test_the_quick_doctor_loads_no_heavy_client(tmp_path):
    code = (
        "import sys; from babyagi.cli.root import run_guarded; run_guarded(['doctor', "
        "'--quick']); print(*sys.modules)"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )

    assert "ok    store: " in ran.stdout
    assert {"openai", "chromadb", "httpx2", "genai_prices"} & set(ran.stdout.split()) == set()


def test_the_doctor_says_where_documents_are_parsed_outside_the_sandbox(monkeypatch):
    assert about._check_sandbox().state == "ok"

    monkeypatch.setattr(confined, "ARCHITECTURES", {"riscv64": 0})
    check = about._check_sandbox()

    assert check.state == "warn" and "run babyagi on Linux" in check.fix
    assert "on riscv64: pages and documents are parsed with bounds of time" in check.found


def test_a_full_disk_is_a_warning(monkeypatch, capsys):
    monkeypatch.setattr(about, "MIN_FREE_BYTES", 10**18)

    assert checks_of(capsys, "--quick")["space"]["state"] == "warn"


def test_every_page_that_the_guide_lists_can_be_read(capsys):
    assert run_guarded(["guide"]) == 0
    names = [
        line.split()[2]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("babyagi guide ")
    ]

    assert names
    for name in names:
        assert run_guarded(["guide", name]) == 0
        assert capsys.readouterr().out.startswith("# ")


def test_an_unknown_page_is_not_found_and_the_nearest_is_named(capsys):
    assert run_guarded(["guide", "limit"]) == 8

    assert "babyagi guide limits" in capsys.readouterr().err


@pytest.mark.parametrize("topic", ["../errors", "/etc/passwd", "start.md"])
def test_a_page_is_a_name_and_no_path(topic):
    assert run_guarded(["guide", topic]) == 8


def checks_of(capsys, *line):
    assert run_guarded(["doctor", "--json", *line]) == 0
    return {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}


@pytest.mark.system
def test_the_doctor_says_when_others_have_rights_on_the_home_and_what_to_type(tmp_path, capsys):
    fill_home()
    home = tmp_path / "home"
    assert checks_of(capsys, "--quick")["home"]["state"] == "ok"
    home.chmod(0o755)
    (home / "tasks.db").chmod(0o644)

    found = checks_of(capsys, "--quick")["home"]

    assert found["state"] == "warn"
    assert "mode 0755), and 1 more below it" in found["found"]
    subprocess.run(["sh", "-c", found["fix"]], check=True)
    assert checks_of(capsys, "--quick")["home"]["state"] == "ok"


def test_the_doctor_makes_no_home_and_no_log_that_others_can_read(tmp_path, monkeypatch):
    before = os.umask(0)
    try:
        assert run_guarded(["doctor"]) == 0
    finally:
        os.umask(before)

    assert [
        path.name
        for path in (tmp_path / "home", *(tmp_path / "home").rglob("*"))
        if path.stat().st_mode & 0o077
    ] == []


@pytest.mark.parametrize(
    "address",
    [
        "http://me:hunter2@h/v1",
        "http://me:8/hunter2@h/v1",
        "http://h/v1?key=hunter2",
        "http://h/v1#hunter2",
        "http://me:hunt er2/@h",
        "hunter2@h",
    ],
)
def test_an_address_with_a_password_or_parameters_is_refused_and_not_shown(
    address, monkeypatch, capsys
):
    monkeypatch.setenv("OPENAI_BASE_URL", address)

    assert run_guarded(["config"]) == 2

    said = capsys.readouterr()
    assert "without user, password or parameters" in said.err
    assert "hunt" not in said.out + said.err


def test_a_key_within_the_path_of_an_address_is_shown_by_no_command(monkeypatch, capsys):
    monkeypatch.setattr("babyagi.cli.about.CONNECT_TIMEOUT_S", 0.5)  # the server says nothing
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv(
            "OPENAI_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}/sk-abcDEF123456789/v1"
        )
        run_guarded(["config"])
        run_guarded(["config", "--json"])
        run_guarded(["doctor"])

    said = capsys.readouterr()
    assert "/***/v1" in said.out
    assert "abcDEF" not in said.out + said.err


@pytest.mark.parametrize(
    "address", ["postgresql://u:pa/ss@h/db", "postgresql://u:p?x@h/db", "postgresql://u:1/x#y@h/db"]
)
def test_a_task_store_whose_password_would_be_taken_for_its_host_is_refused(
    address, monkeypatch, capsys
):
    monkeypatch.setenv("BABYAGI_TASK_STORE", address)

    assert run_guarded(["config"]) == 2
    assert "as %2F %3F %23 %40" in capsys.readouterr().err


def test_the_doctor_says_what_a_model_in_this_process_lacks_and_a_run_is_not_begun(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("LLM_MODEL", "llama")
    monkeypatch.setenv("LLAMA_MODEL_PATH", str(tmp_path / "none.gguf"))

    assert run_guarded(["doctor"]) == 6
    said = capsys.readouterr().out
    assert "is not a model that can be loaded (No such file" in said
    assert "LLAMA_MODEL_PATH=FILE.gguf" in said

    assert run_guarded(["run", "Find it out", "-l"]) == 2
    assert "LLAMA_MODEL_PATH=" in capsys.readouterr().err
    assert run_guarded(["status"]) == 8


@pytest.mark.system
async def test_the_doctor_asks_the_model_itself_what_it_can_do_if_told_to(tmp_path):
    def answer(request):
        text = '{"colours": ["blue"], "is_sure": true}' if request.schema else "blue"
        return Answer(text=text)

    async with LocalServer(answer) as server:
        env = environ(tmp_path / "home", server.base_url, BABYAGI_PROTOCOL="auto")
        first, again = [await babyagi("doctor", *more, env=env) for more in (["--probe"], [])]

    assert first.code == again.code == 0 and len(server.requests) == 2
    for said in (first.out, again.out):
        assert "it brought no native call, held a JSON schema" in said
        assert "so tools are called as JSON that must fit a schema" in said


def test_the_doctor_says_what_was_found_out_about_a_server_and_how_it_is_spoken_to(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("babyagi.cli.about.CONNECT_TIMEOUT_S", 0.5)  # it says nothing
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("LLM_MODEL", "small")
        assert run_guarded(["doctor"]) == 0
        assert "its abilities have not been probed yet" in capsys.readouterr().out

        found = Abilities(takes_tools=False, holds_schema=True, context_tokens=2048)
        remember_abilities(tmp_path / "home", f"small at {url}", write_abilities(found))
        assert run_guarded(["doctor"]) == 0

    said = capsys.readouterr().out
    assert (
        "it brought no native call, held a JSON schema, reads 2,048 tokens of a prompt; "
        "so tools are called as JSON that must fit a schema" in said
    )
