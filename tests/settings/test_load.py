"""Settings: where they come from, what is refused, what is shown."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from dotenv import dotenv_values

from babyagi.errors import SettingsError
from babyagi.settings.fields import Settings, declared_fields
from babyagi.settings.load import (
    Loaded,
    load_settings,
    render_value,
    trust_file,
)
from babyagi.settings.values import Secret, parse_duration_s
from babyagi.tasks import Limits, ObjectiveSpec, Role
from support.env_example import render_env_example

EXAMPLE = Path(__file__).parents[2] / ".env.example"


@pytest.fixture
def load(tmp_path: Path):
    def _load(flags: dict[str, object] | None = None, /, **environ: str) -> Loaded:
        return load_settings(
            flags=flags or {},
            environ={"BABYAGI_HOME": str(tmp_path / "home"), **environ},
            cwd=tmp_path,
        )

    return _load


def trust_folder(load) -> None:
    """Trust every file of the folder as it is now."""
    loaded = load()
    for found in loaded.untrusted:
        trust_file(loaded.trust_home, found.file)


def fault_of(load, flags: dict[str, object] | None = None, /, **environ: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(flags, **environ)
    assert caught.value.guide == "settings"
    assert caught.value.fix
    return caught.value.what


# Precedence


@pytest.mark.parametrize(
    ("places", "value", "source"),
    [
        ("flag environment later earlier file", "from-flag", "flag --model"),
        ("environment later earlier file", "from-environment", "environment LLM_MODEL"),
        ("later earlier file", "from-later", "extra env file later.env"),
        ("earlier file", "from-earlier", "extra env file earlier.env"),
        ("file", "from-file", ".env"),
        ("", "gpt-6-luna", "default"),
    ],
)
def test_a_flag_goes_before_the_environment_before_extra_files_before_the_file_before_the_default(
    load, tmp_path, places, value, source
):
    for name in ("earlier", "later"):
        (tmp_path / f"{name}.env").write_text(
            f"LLM_MODEL=from-{name}\n" if name in places.split() else "# nothing\n"
        )
    if "file" in places.split():
        (tmp_path / ".env").write_text("LLM_MODEL=from-file\n")
    environ = {"LLM_MODEL": "from-environment"} if "environment" in places.split() else {}

    loaded = load(
        {"llm_model": "from-flag" if "flag" in places.split() else None},
        **environ,
        DOTENV_EXTENSIONS="earlier.env later.env",
    )

    assert (loaded.settings.llm_model, loaded.sources["llm_model"]) == (value, source)


def test_extra_files_can_be_named_by_a_flag_and_by_the_env_file(load, tmp_path):
    (tmp_path / ".env").write_text("DOTENV_EXTENSIONS=a.env\n")
    trust_folder(load)
    (tmp_path / "a.env").write_text("INSTANCE_NAME=a\nDOTENV_EXTENSIONS=nobody-follows-this.env\n")
    (tmp_path / "b b.env").write_text("INSTANCE_NAME=b\n")

    assert load().settings.instance_name == "a"
    by_flag = load({"extra_env_files": ("b b.env",)})

    assert by_flag.settings.instance_name == "b"
    assert by_flag.settings.extra_env_files == (tmp_path / "b b.env",)
    assert by_flag.sources["extra_env_files"] == "flag --env"


@pytest.mark.parametrize(
    ("old", "field"),
    [
        ("FIRST_TASK", "initial_task"),
        ("OPENAI_API_MODEL", "llm_model"),
        ("TABLE_NAME", "results_store_name"),
        ("BABY_NAME", "instance_name"),
        ("EMBEDDING_MODEL", "embedding_model"),
    ],
)
def test_older_names_work_and_the_name_of_today_goes_before_them_in_one_place(
    load, tmp_path, old, field
):
    today = declared_fields()[field].variables[0]
    (tmp_path / ".env").write_text(f"{today}=file\n")

    assert getattr(load(**{old: "older"}).settings, field) == "older"
    assert load(**{old: "older"}).sources[field] == f"environment {old}"
    assert getattr(load(**{old: "older", today: "today"}).settings, field) == "today"


def test_every_variable_and_flag_of_the_original_is_declared_and_none_is_declared_twice():
    variables = [
        variable for declared in declared_fields().values() for variable in declared.variables
    ]
    flags = [flag for declared in declared_fields().values() for flag in declared.flags]

    assert len(set(variables)) == len(variables)
    assert len(set(flags)) == len(flags)
    assert {"-n", "-m", "-t", "-j", "-4", "-l", "-e"} <= set(flags)
    assert "-h" not in flags  # help's
    original = """OBJECTIVE INITIAL_TASK FIRST_TASK LLM_MODEL OPENAI_API_MODEL OPENAI_API_KEY OPENAI_TEMPERATURE RESULTS_STORE_NAME
        TABLE_NAME INSTANCE_NAME BABY_NAME COOPERATIVE_MODE JOIN_EXISTING_OBJECTIVE DOTENV_EXTENSIONS ENABLE_COMMAND_LINE_ARGS
        WEAVIATE_URL WEAVIATE_API_KEY WEAVIATE_USE_EMBEDDED PINECONE_API_KEY PINECONE_ENVIRONMENT
        LLAMA_MODEL_PATH LLAMA_CTX_MAX LLAMA_THREADS_NUM"""
    assert set(original.split()) <= set(variables)
    assert set(declared_fields()) == {field.name for field in fields(Settings)} - {
        "cost_limit_is_explicit",
        "model_is_explicit",
        "objective_file",
        "task_file",
    }


def test_an_empty_value_counts_as_not_set(load, tmp_path):
    (tmp_path / ".env").write_text("LLM_MODEL=from-file\nBABYAGI_LEASE_S=\nBARE_NAME\n")

    loaded = load({"instance_name": " "}, LLM_MODEL="  ", BABYAGI_CONCURRENCY="")

    assert loaded.settings.llm_model == "from-file"
    assert [loaded.sources[name] for name in ("lease_s", "instance_name", "concurrency")] == [
        "default"
    ] * 3


def test_an_empty_temperature_sends_none_and_hides_the_one_of_the_file(load, tmp_path):
    (tmp_path / ".env").write_text("OPENAI_TEMPERATURE=0.7\n")

    assert load().settings.openai_temperature == 0.7
    emptied = load(OPENAI_TEMPERATURE="")

    assert emptied.settings.openai_temperature is None
    assert emptied.sources["openai_temperature"] == "environment OPENAI_TEMPERATURE"


def test_relative_paths_are_those_of_the_working_folder(load, tmp_path):
    settings = load({"files": "documents"}, BABYAGI_HOME="data").settings

    assert settings.files == tmp_path / "documents"
    assert settings.home == tmp_path / "data"


def test_values_that_are_not_text_are_taken_as_they_are(load):
    settings = load(
        {
            "concurrency": 8,
            "max_cost_usd": 2.5,
            "no_color": False,
            "openai_api_key": Secret("k"),
            "files": Path("d"),
        }
    ).settings

    assert (settings.concurrency, settings.max_cost_usd, settings.no_color) == (8, 2.5, False)
    assert settings.openai_api_key.reveal() == "k"


def test_a_flag_that_is_no_setting_is_a_programmers_error(load):
    with pytest.raises(TypeError, match="modle"):
        load({"modle": "x"})


# What is refused


def test_all_faults_are_reported_together(load, tmp_path):
    (tmp_path / ".env").write_text("BABYAGI_CADENCE=klingon\n")

    what = fault_of(
        load,
        {"max_time_s": "soon"},
        BABYAGI_LEASE_S="sixty",
        BABYAGI_CONCURRENCY="65",
        BABYAGI_TYPO="1",
    )

    assert "BABYAGI_LEASE_S must be a number of seconds, got 'sixty'" in what
    assert "--max-time must be a time such as 90s, 30m or 1h30m, got 'soon'" in what
    assert "BABYAGI_CONCURRENCY must be a whole number from 1 to 64, got '65'" in what
    assert "BABYAGI_CADENCE in .env must be one of each, batched, got 'klingon'" in what
    assert "BABYAGI_TYPO is not a setting" in what
    assert what.startswith("5 settings cannot be used:\n")


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        ({"files": ["notes", "more"]}, "--files must be one FOLDER, not 2, got 'notes, more'"),
        ({"mcp": ("a.json", "b.json")}, "--mcp must be one FILE, not 2, got 'a.json, b.json'"),
        ({"llm_model": ["a", "b"]}, "--model must be one MODEL, not 2, got 'a, b'"),
    ],
)
def test_several_values_for_one_are_refused_and_not_joined(load, flags, what):
    assert fault_of(load, flags) == what


def test_lists_of_names_are_joined_and_one_value_may_stand_in_a_list(load):
    settings = load({"tools": ("web_search", "calculator,open_page"), "files": ["d"]}).settings

    assert settings.tools == ("web_search", "calculator", "open_page")
    assert settings.files.name == "d"


def test_one_fault_stands_alone_on_its_line(load):
    assert (
        fault_of(load, BABYAGI_LEASE_S="sixty")
        == "BABYAGI_LEASE_S must be a number of seconds, got 'sixty'"
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BABYAGI_MAX_COST_USD", "nan"),
        ("BABYAGI_MAX_COST_USD", "-1"),
        ("BABYAGI_MAX_COST_USD", "inf"),
        ("BABYAGI_MAX_TASKS", "1.5"),
        ("BABYAGI_MAX_TOKENS", "9" * 5000),
        ("BABYAGI_LEASE_S", "0"),
        ("OPENAI_TEMPERATURE", "2.1"),
        ("OPENAI_BASE_URL", "127.0.0.1:8080"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:99999/v1"),
        ("OPENAI_BASE_URL", "ftp://example.org"),
        ("LLM_MODEL", "a\nb"),
        ("BABYAGI_HOME", "a\x00b"),
        ("JOIN_EXISTING_OBJECTIVE", "perhaps"),
        ("COOPERATIVE_MODE", "remote"),
        ("OBJECTIVE", "x" * 1_000_001),
    ],
)
def test_a_value_that_cannot_be_is_refused_in_one_short_line(load, variable, value):
    what = fault_of(load, **{variable: value})

    assert what.startswith(f"{variable} must be ")
    assert "\n" not in what
    assert len(what) < 250


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("BABYAGI_MAX_TASK", "BABYAGI_MAX_TASKS"),
        ("BABYAGI_CONCURENCY", "BABYAGI_CONCURRENCY"),
        ("BABYAGI_HOMES", "BABYAGI_HOME"),
    ],
)
def test_an_unknown_variable_is_a_fault_that_names_the_nearest_one(load, tmp_path, typed, meant):
    (tmp_path / ".env").write_text(f"{typed}=1\n")

    assert fault_of(load) == f"{typed} in .env is not a setting; did you mean {meant}?"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"OBJECTIVE=caf\xe9\n", "byte 13 is not UTF-8"),
        (b'A=1\nOPENAI_API_KEY="sk-hidden\n', "line 2"),
        (b"#" * 1_000_001, "longer than"),
    ],
)
def test_an_env_file_that_cannot_be_read_is_one_clear_fault(load, tmp_path, content, reason):
    (tmp_path / ".env").write_bytes(content)

    what = fault_of(load)

    assert what.startswith(".env cannot be read: ")
    assert reason in what
    assert "sk-hidden" not in what
    assert "\n" not in what


def test_an_extra_file_that_is_missing_is_a_fault_and_a_folder_called_env_is_none(load, tmp_path):
    (tmp_path / ".env").mkdir()

    assert load().sources["objective"] == "default"
    assert (
        fault_of(load, {"extra_env_files": ("gone.env",)})
        == "extra env file gone.env cannot be read: No such file or directory"
    )


def test_dollars_and_byte_order_marks_in_an_env_file_change_nothing(load, tmp_path):
    (tmp_path / ".env").write_text("\ufeffOBJECTIVE=what costs ${HOME} $5?\n", encoding="utf-8")

    assert load().settings.objective == "what costs ${HOME} $5?"


def test_gpt_4_is_refused_with_its_successor(load):
    assert "gpt-6-luna" in fault_of(load, {"gpt_4": True})


def test_llama_is_a_model_in_this_process_and_others_of_that_name_need_a_server(load, tmp_path):
    server = "http://127.0.0.1:8080/v1"
    file = tmp_path / "m.gguf"

    settings = load({"llama": True}, LLM_MODEL="human", LLAMA_MODEL_PATH=str(file)).settings
    assert settings.llm_model == "llama" and settings.llama_model_path == file
    assert settings.model_is_explicit
    assert load(LLM_MODEL="llama").settings.llm_model == "llama"
    assert f"OPENAI_BASE_URL={server}" in fault_of(load, LLM_MODEL="llama3.2")
    what = fault_of(load, BABYAGI_ROLE_MODELS="report=llama3.2")
    assert "BABYAGI_ROLE_MODELS=llama3.2" in what
    assert (
        load(LLM_MODEL="llama3.2", OPENAI_BASE_URL=server + "/").settings.openai_base_url == server
    )


def test_the_bounds_of_a_model_in_this_process_are_numbers(load):
    settings = load(LLAMA_CTX_MAX="4096", LLAMA_THREADS_NUM="8").settings

    assert (settings.llama_ctx_max, settings.llama_threads_num) == (4096, 8)
    assert "LLAMA_CTX_MAX" in fault_of(load, LLAMA_CTX_MAX="long")


def test_flags_are_refused_where_the_file_forbids_them_and_the_objective_is_not_a_flag(
    load, tmp_path
):
    (tmp_path / ".env").write_text("ENABLE_COMMAND_LINE_ARGS=false\n")

    assert load({"objective": "find out"}).settings.objective == "find out"
    what = fault_of(load, {"llm_model": "human", "initial_task": "begin"})
    assert "ENABLE_COMMAND_LINE_ARGS in .env is false, which refuses --task, --model" in what


def test_settings_that_need_each_other_are_asked_for_together(load):
    assert "BABYAGI_EMBEDDING_MODEL" in fault_of(
        load, BABYAGI_EMBEDDING_BASE_URL="http://127.0.0.1:1/v1"
    )


@pytest.mark.parametrize(
    ("variables", "store"),
    [
        ({}, "chroma"),
        ({"CHROMA_URL": "http://c:8000"}, "chroma"),
        ({"WEAVIATE_URL": "http://w:8080", "PINECONE_API_KEY": "sk-p"}, "weaviate"),
        ({"WEAVIATE_USE_EMBEDDED": "true"}, "weaviate"),
        ({"WEAVIATE_USE_EMBEDDED": "false"}, "chroma"),
        ({"PINECONE_API_KEY": "sk-p"}, "pinecone"),
        ({"PINECONE_API_KEY": "sk-p", "BABYAGI_RESULT_STORE": "builtin"}, "builtin"),
    ],
)
def test_a_result_store_whose_variables_are_set_is_the_one_that_is_meant(load, variables, store):
    loaded = load(**variables)

    assert loaded.settings.effective_result_store == store
    assert "sk-p" not in repr(loaded) and loaded.notices == ()


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, ("aws", "us-east-1")),
        ({"PINECONE_ENVIRONMENT": "us-west1-gcp"}, ("gcp", "us-west1")),
        ({"PINECONE_ENVIRONMENT": "eu-west-1"}, ("aws", "eu-west-1")),
        ({"PINECONE_ENVIRONMENT": "eastus2-azure"}, ("azure", "eastus2")),
    ],
)
def test_the_place_of_a_pinecone_index_can_be_said_as_in_the_original(load, variables, place):
    assert load(**variables).settings.pinecone_place == place


def test_a_cooperative_mode_fits_the_task_store_or_says_what_to_type(load):
    server = "postgresql://me:top5ecret@db:5432/agi"

    assert load(COOPERATIVE_MODE="l").settings.cooperative_mode == "local"
    assert (
        load(COOPERATIVE_MODE="d", BABYAGI_TASK_STORE=server).settings.task_store.reveal() == server
    )
    assert "BABYAGI_TASK_STORE=postgresql://" in fault_of(load, COOPERATIVE_MODE="distributed")
    assert "BABYAGI_TASK_STORE=postgresql://" in fault_of(
        load, COOPERATIVE_MODE="d", BABYAGI_TASK_STORE="sqlite:///here.db"
    )
    what = fault_of(load, COOPERATIVE_MODE="local", BABYAGI_TASK_STORE=server)
    assert "set the mode to distributed" in what and "top5ecret" not in what


@pytest.mark.parametrize(
    "address",
    (
        "mysql://h/d postgresql:// postgresql://h sqlite://tasks.db tasks.db "
        "postgresql://u:top5ecret@h:port/d"
    ).split(),
)
def test_an_address_of_a_task_store_that_makes_no_sense_is_refused_and_not_shown(load, address):
    what = fault_of(load, BABYAGI_TASK_STORE=address)

    assert (
        "BABYAGI_TASK_STORE must be sqlite:///PATH or postgresql://" in what
        and "top5ecret" not in what
    )


@pytest.mark.parametrize(
    "address",
    ["postgresql:///agi", "postgresql://me@/agi?host=/run/postgresql", "postgres://h/agi"],
)
def test_a_server_on_this_machine_needs_no_host(load, address):
    assert load(BABYAGI_TASK_STORE=address).settings.task_store.reveal() == address


def test_the_task_stores_address_is_a_secret_in_every_print(load):
    loaded = load(BABYAGI_TASK_STORE="postgresql://me:top5ecret@db/agi")

    assert "top5ecret" not in repr(loaded) + str(loaded.settings) + render_value(
        loaded.settings.task_store
    )


# Secrets


def test_a_secret_is_never_shown(load, tmp_path):
    (tmp_path / ".env").write_text("PINECONE_API_KEY=sk-file\n")
    loaded = load({"openai_api_key": "sk-flag"})

    for shown in (
        repr(loaded),
        str(loaded.settings),
        f"{loaded.settings.openai_api_key}",
        render_value(loaded.settings.openai_api_key),
    ):
        assert "sk-" not in shown
        assert "***" in shown
    assert loaded.settings.openai_api_key.reveal() == "sk-flag"
    assert not Secret("")
    assert Secret("a") == Secret("a") != Secret("b")


def test_a_fault_shows_neither_a_key_nor_the_password_in_an_address(load):
    what = fault_of(
        load, OPENAI_API_KEY="sk-one sk-two", OPENAI_BASE_URL="https://me:hidden@example.org/v1"
    )

    assert "OPENAI_API_KEY must be one word" in what
    assert "sk-" not in what
    assert "hidden" not in what


# Values


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("30m", 1800),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1H 30M", 5400),
        ("1.5h", 5400),
        ("1d", 86400),
        ("0", 0),
        ("0.5", 0.5),
    ],
)
def test_times_are_read_as_people_write_them(text, seconds):
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "h", "soon", "-5", "30m1h", "1.2.3s", "nan", "9" * 400, "1e3"]
)
def test_a_value_that_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match="a time"):
        parse_duration_s(text)


def test_an_objective_of_100_kb_keeps_every_byte_that_is_text(load):
    long = "A line with ünïcödé, «quotes» and\ta tab\n" * 2500

    assert load(OBJECTIVE=long).settings.objective == long.strip()


def test_an_objective_loses_nul_and_terminal_escapes_and_keeps_its_lines(load):
    raw = "one\r\n\x1b[31mtwo\x1b[0m\x00\x07 \x1b]0;title\x07three\x9b\udcff\n"

    assert load({"objective": raw}).settings.objective == "one\ntwo three\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("text", ["", "  \n", "\x00\x1b[0m"])
def test_an_objective_is_required_only_where_one_is_needed(load, text):
    settings = load(OBJECTIVE=text).settings

    with pytest.raises(SettingsError, match="no objective") as caught:
        settings.require_objective()
    assert "babyagi run" in caught.value.fix
    assert load(OBJECTIVE="find out").settings.require_objective() == "find out"


def test_the_defaults_are_those_of_the_nouns(tmp_path):
    settings = Settings(home=tmp_path)
    spec = ObjectiveSpec(
        text="x", initial_task="y", model_by_role={}, embedding_space="z", prompt_version="1"
    )

    assert settings.limits == Limits() == spec.limits
    assert (settings.instance_name, settings.results_store_name, settings.openai_temperature) == (
        spec.instance_name,
        spec.results_store_name,
        spec.temperature,
    )


def test_a_cost_limit_is_explicit_when_a_person_set_it_even_to_the_default(load):
    assert not load().settings.cost_limit_is_explicit
    assert load(BABYAGI_MAX_COST_USD="1").settings.cost_limit_is_explicit
    assert load({"max_cost_usd": "1"}).settings.cost_limit_is_explicit


def test_each_role_has_its_own_model_or_the_common_one(load):
    models = "prioritization=small, report=other=a b"

    assert load(LLM_MODEL="big", BABYAGI_ROLE_MODELS=models).settings.model_by_role == {
        Role.EXECUTION: "big",
        Role.CREATION: "big",
        Role.PRIORITIZATION: "small",
        Role.REPORT: "other=a b",
    }
    for wrong in ("small", "planner=small", "report="):
        assert "must be a list of ROLE=MODEL" in fault_of(load, BABYAGI_ROLE_MODELS=wrong)


def test_a_price_is_two_numbers(load):
    assert load(BABYAGI_PRICE="0.25/2").settings.price == (0.25, 2.0)
    assert load({"price": (0, 2.5)}).settings.price == (0.0, 2.5)
    for wrong in ("0.25", "1/2/3", "-1/2", "nan/1", "a/b"):
        assert "BABYAGI_PRICE must be two numbers" in fault_of(load, BABYAGI_PRICE=wrong)


@pytest.mark.parametrize(
    ("ending", "dialect"),
    [("", "auto"), ("/chat/completions", "chat"), ("/responses/", "responses")],
)
def test_a_models_address_that_is_written_whole_says_the_dialect(load, ending, dialect):
    address = "http://127.0.0.1:8080/v1"
    settings = load(OPENAI_BASE_URL=address + ending).settings

    assert (settings.openai_base_url, settings.dialect) == (address, dialect)


def test_the_search_is_an_engine_or_an_address(load):
    address = "http://127.0.0.1:8080"

    assert load(BABYAGI_SEARCH="brave").settings.search_engine == "brave"
    assert load(BABYAGI_SEARCH=address + "/").settings.search_engine == address
    assert "BABYAGI_SEARCH must be one of" in fault_of(load, BABYAGI_SEARCH="searxng")


@pytest.mark.parametrize(
    ("environ", "model"),
    [
        ({}, "hash"),
        ({"OPENAI_API_KEY": "k"}, "text-embedding-3-small"),
        ({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "hash"),
        ({"OPENAI_API_KEY": "k", "LLM_MODEL": "rehearsal"}, "hash"),
        ({"OPENAI_API_KEY": "k", "LLM_MODEL": "human"}, "hash"),
        ({"EMBEDDING_MODEL": "own", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "own"),
        ({"OPENAI_API_KEY": "k", "BABYAGI_EMBEDDING_MODEL": "hash"}, "hash"),
    ],
)
def test_vectors_come_from_openai_only_where_its_key_surely_fits(load, environ, model):
    assert load(**environ).settings.effective_embedding_model == model


def test_no_color_asks_only_whether_it_is_there(load):
    assert load(NO_COLOR="0").settings.no_color
    assert not load(NO_COLOR="").settings.no_color


# The example file


def read_as_docker_does(text: str) -> dict[str, str]:
    """`docker run --env-file`: a line that begins with # is a comment, the rest is NAME=value,
    verbatim."""
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("BABYAGI_FOO", "BABYAGI_FOO is not a setting"),
        ("BABYAGI_OBJECTIVE", "BABYAGI_OBJECTIVE is not a setting; did you mean OBJECTIVE?"),
        ("BABYAGI_MAX_TASK", "BABYAGI_MAX_TASK is not a setting; did you mean BABYAGI_MAX_TASKS?"),
    ],
)
def test_what_may_have_been_meant_is_told_by_what_stands_behind_the_prefix(load, variable, said):
    with pytest.raises(SettingsError) as caught:
        load(**{variable: "1"})

    assert caught.value.what == said


def test_the_address_of_a_hook_is_shown_by_no_error(load):
    with pytest.raises(SettingsError) as caught:
        load(BABYAGI_NOTIFY="https://me:word@hooks.example/T000/HOOK")

    assert "BABYAGI_NOTIFY must be" in caught.value.what and "HOOK" not in caught.value.what


def test_a_token_that_is_too_short_is_shown_by_no_error(load):
    with pytest.raises(SettingsError) as caught:
        load(BABYAGI_SERVE_TOKEN="hunter2")

    assert "BABYAGI_SERVE_TOKEN must be" in caught.value.what and "hunter" not in caught.value.what


def test_whatever_is_kept_as_a_secret_is_one_in_messages():
    of_type = {one.name for one in fields(Settings) if one.type == "Secret"}

    assert of_type - {name for name, one in declared_fields().items() if one.is_secret} == set()
    assert "serve_token" in of_type


def test_the_example_file_is_in_step_with_the_declarations():
    assert EXAMPLE.read_text(encoding="utf-8") == render_env_example()


def test_the_example_file_has_every_variable_and_both_readers_agree_on_it():
    text = render_env_example()
    by_docker = read_as_docker_does(text)

    assert by_docker == dotenv_values(stream=io.StringIO(text), interpolate=False)
    assert list(by_docker) == [
        declared.variables[0]
        for declared in declared_fields().values()
        if declared.variables and declared.is_listed
    ]
    assert len(by_docker) <= 48
    assert all(
        variable in text
        for declared in declared_fields().values()
        for variable in declared.variables[: None if declared.is_listed else 1]
    )


def test_both_readers_agree_on_the_example_file_filled_in():
    values = {
        "OBJECTIVE": "Who said it's 5 o'clock?",
        "OPENAI_BASE_URL": "http://127.0.0.1:8080/v1",
        "INITIAL_TASK": "Read a=b, then $c",
    }
    text = render_env_example()
    for name, value in values.items():
        text = text.replace(f"\n{name}=\n", f"\n{name}={value}\n")

    assert values.items() <= read_as_docker_does(text).items()
    assert read_as_docker_does(text) == dotenv_values(stream=io.StringIO(text), interpolate=False)


def test_the_example_file_as_it_is_changes_nothing(load, tmp_path):
    before = load()
    (tmp_path / ".env").write_text(render_env_example(), encoding="utf-8")

    assert load().settings == before.settings
    assert (
        load(
            **read_as_docker_does(render_env_example()) | {"BABYAGI_HOME": str(tmp_path / "home")}
        ).settings
        == before.settings
    )


@pytest.mark.system
def test_importing_the_settings_loads_no_third_party_module():
    code = (
        "import sys; before = set(sys.modules); import babyagi.settings; "
        "print({name.partition('.')[0] for name in set(sys.modules) - before} - "
        "sys.stdlib_module_names)"
    )

    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )

    assert out.stdout.strip() == "{'babyagi'}"


@pytest.mark.system
def test_the_users_data_folder_is_looked_up_only_when_no_home_is_set(tmp_path):
    code = (
        "import sys; from pathlib import Path; from babyagi.settings.load import load_settings; "
        f"load_settings(flags={{}}, environ={{'BABYAGI_HOME': '/h'}}, "
        f"cwd=Path({str(tmp_path)!r})); "
        "print([name for name in ('platformdirs', 'dotenv') if name in sys.modules])"
    )

    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )

    assert out.stdout.strip() == "[]"
    assert load_settings(flags={}, environ={}, cwd=tmp_path).settings.home.name == "babyagi"


def test_variables_of_the_original_that_do_nothing_are_named_once_with_what_to_set(load):
    loaded = load(USE_GPT4="true", PINECONE_TABLE="tasks", ACTIVELOOP_TOKEN="")

    assert loaded.notices == (
        "no effect here, and what to set instead: USE_GPT4 (LLM_MODEL=MODEL), "
        "PINECONE_TABLE (RESULTS_STORE_NAME=NAME)",
    )
