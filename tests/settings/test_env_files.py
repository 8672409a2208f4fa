"""Files of variables that nobody has trusted: what is taken from them, what waits, and what trusts
them."""

from __future__ import annotations

import os

import pytest

from babyagi.errors import SettingsError
from babyagi.settings.fields import declared_fields
from babyagi.settings.load import Loaded, distrust_file, load_settings, trust_file, trusted_paths
from babyagi.settings.values import (
    lower_limit,
    parse_hosts,
    parse_notify,
    parse_task_store,
)

ANY_VALUE = set(
    """objective initial_task instance_name planning llm_model role_models
    openai_temperature protocol concurrency cadence results_store_name no_color
    enable_command_line_args llama_ctx_max llama_threads_num""".split()
)
LOWER_LIMITS = set(
    """max_tasks max_calls max_tokens max_cost_usd max_time_s context_tokens max_output_tokens
    model_timeout_s""".split()
)
ONE_VALUE = {"embedding_model"}
KEYS = {
    "openai_api_key": ("openai_base_url", "embedding_base_url"),
    "weaviate_api_key": ("weaviate_url",),
    "serper_api_key": ("search_url",),
    "brave_api_key": ("search_url",),
    "tavily_api_key": ("search_url",),
    "serpapi_api_key": ("search_url",),
    "searchapi_api_key": ("search_url",),
    "deepset_cloud_api_key": ("deepset_cloud_url",),
    "github_token": ("github_url",),
}
WAITS = set(
    """http_proxy https_proxy no_proxy
    files tools ask approve memory openai_base_url openai_organization azure_api_version price lease_s notify cooperative_mode join_existing_objective
    use_my_model home task_store result_store chroma_url weaviate_url weaviate_grpc_port weaviate_use_embedded pinecone_api_key
    pinecone_environment embedding_base_url agent_hosts log_level otel_endpoint extra_env_files
    llama llama_model_path gpt_4 search_engine search_url log_format dialect max_failures max_new_tasks drain_s worker_name web_allow web_only mcp tools_from agent
    pipeline deepset_cloud_url github_repository github_url
    serve_host serve_port serve_names serve_token""".split()
)


@pytest.fixture
def load(tmp_path):
    def _load(
        text: str | None = None, /, flags: dict[str, object] | None = None, **environ: str
    ) -> Loaded:
        if text is not None:
            (tmp_path / ".env").write_text(text, encoding="utf-8")
        return load_settings(
            flags=flags or {},
            environ={"BABYAGI_HOME": str(tmp_path / "home"), **environ},
            cwd=tmp_path,
        )

    return _load


def waiting(loaded: Loaded) -> list[str]:
    return [found.variable for found in loaded.waiting]


# What may come from such a file


def test_every_setting_has_its_place_among_what_may_come_from_a_file_that_nobody_trusts():
    declared = declared_fields()

    assert {name for name, entry in declared.items() if entry.untrusted is True} == ANY_VALUE
    assert {
        name for name, entry in declared.items() if entry.untrusted is lower_limit
    } == LOWER_LIMITS
    assert {
        name: entry.key_for for name, entry in declared.items() if entry.key_for is not None
    } == KEYS
    assert {
        name
        for name, entry in declared.items()
        if entry.untrusted is False and entry.key_for is None
    } == WAITS
    assert set(declared) == ANY_VALUE | LOWER_LIMITS | ONE_VALUE | set(KEYS) | WAITS


HARMFUL = {
    "files": "/etc",
    "tools": "write_file",
    "ask": "true",
    "approve": "none",
    "openai_base_url": "http://127.0.0.1:9/v1",
    "price": "0/0",
    "lease_s": "1",
    "notify": "touch here",
    "cooperative_mode": "local",
    "join_existing_objective": "1",
    "home": "elsewhere",
    "task_store": "sqlite:////tmp/x.db",
    "result_store": "builtin",
    "chroma_url": "http://127.0.0.1:9",
    "weaviate_url": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
    "no_proxy": "*",
    "weaviate_use_embedded": "on",
    "pinecone_api_key": "k",
    "pinecone_environment": "us-east-1-aws",
    "embedding_base_url": "http://127.0.0.1:9",
    "search_engine": "http://127.0.0.1:9",
    "llama_model_path": "m.gguf",
    "web_allow": "10.0.0.0/8",
    "web_only": "evil.example",
    "serve_host": "0.0.0.0",
    "serve_names": "evil.example",
    "serve_token": "known-to-others-12345",
    "pipeline": "https://evil.example",
    "log_level": "debug",
    "memory": "shared",
    "use_my_model": "yes",
    "agent_hosts": "evil.example",
    "otel_endpoint": "http://127.0.0.1:9",
    "extra_env_files": "more.env",
}


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        (name, variable)
        for name, entry in declared_fields().items()
        for variable in entry.variables
        if name in WAITS
    ],
)
def test_what_can_run_send_read_or_spend_waits_under_each_of_its_names_and_changes_nothing(
    load, name, variable
):
    home = {"BABYAGI_HOME": ""} if name == "home" else {}
    loaded = load(f"{variable}={HARMFUL[name]}\n", **home)

    assert waiting(loaded) == [variable]
    assert loaded.settings == load("", **home).settings and loaded.sources[name] == "default"


LIMITS = {
    "max_tasks": (["1", "49"], ["0", "51"]),
    "max_calls": (["1", "1000000"], []),
    "max_tokens": (["1", "1999999"], ["0", "2000001"]),
    "max_cost_usd": (["0.001", "0.99"], ["0", "0.0", "-0", "1e-400", "1e-9", "1.01"]),
    "max_time_s": (["0.001", "90s", "1h59m"], ["0", "0s", "0d0h", "0.0000001", "2.1h", "1d"]),
    "context_tokens": (["1", "3999"], ["0", "4001"]),
    "max_output_tokens": (["16", "1999"], ["2001"]),
    "model_timeout_s": (["1", "119"], ["121"]),
}


@pytest.mark.parametrize("name", sorted(LOWER_LIMITS))
def test_a_limit_is_taken_when_it_is_lower_than_the_default_and_0_is_not_lower(load, name):
    variable, (taken, waits) = declared_fields()[name].variables[0], LIMITS[name]
    default = load("").settings

    for text in taken:
        loaded = load(f"{variable}={text}\n")
        assert loaded.waiting == () and getattr(loaded.settings, name) == declared_fields()[
            name
        ].parse(text)
    for text in waits:
        loaded = load(f"{variable}={text}\n")
        assert waiting(loaded) == [variable] and loaded.settings == default


def test_what_equals_the_default_changes_nothing_and_does_not_wait(load):
    loaded = load(
        "BABYAGI_APPROVE=once\nBABYAGI_ASK=false\nBABYAGI_LEASE_S=30.0\nCOOPERATIVE_MODE=none\nBABYAGI_MAX_CALLS=0\n"
    )

    assert loaded.waiting == ()


def test_the_env_file_of_the_original_does_not_wait(load):
    loaded = load(
        "LLM_MODEL=gpt-6-luna\nOPENAI_API_KEY=sk-mine\nOPENAI_TEMPERATURE=0.0\nTABLE_NAME=baby-agi-test-table\nBABY_NAME=BabyAGI\n"
        "COOPERATIVE_MODE=none\nOBJECTIVE=Solve world hunger\nFIRST_TASK=Develop a task "
        "list\nDOTENV_EXTENSIONS=\nWEAVIATE_URL=\n"
        "ENABLE_COMMAND_LINE_ARGS=false\nLLAMA_CTX_MAX=2048\n"
    )

    assert loaded.waiting == ()
    assert (loaded.settings.objective, loaded.settings.openai_api_key.reveal()) == (
        "Solve world hunger",
        "sk-mine",
    )


@pytest.mark.parametrize(
    ("text", "environ", "is_taken"),
    [
        ("OPENAI_API_KEY=of-the-file", {}, True),
        ("OPENAI_API_KEY=of-the-file", {"OPENAI_BASE_URL": "https://api.openai.com/v1"}, True),
        ("OPENAI_API_KEY=of-the-file", {"OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}, True),
        ("OPENAI_API_KEY=of-the-file", {"OPENAI_BASE_URL": "https://models.example/v1"}, False),
        (
            "OPENAI_API_KEY=of-the-file",
            {"OPENAI_BASE_URL": "https://api.openai.com.models.example"},
            False,
        ),
        (
            "OPENAI_API_KEY=of-the-file\nOPENAI_BASE_URL=https://b.example",
            {"OPENAI_BASE_URL": "https://a.example"},
            False,
        ),
        (
            "OPENAI_API_KEY=of-the-file",
            {"BABYAGI_EMBEDDING_BASE_URL": "https://e.example", "EMBEDDING_MODEL": "e"},
            False,
        ),
        ("OPENAI_API_KEY=of-the-file\nOPENAI_BASE_URL=https://b.example", {}, True),
        ("WEAVIATE_API_KEY=of-the-file", {"WEAVIATE_URL": "https://w.example"}, False),
        ("WEAVIATE_API_KEY=of-the-file", {"WEAVIATE_URL": "http://localhost:8080"}, True),
        ("SERPAPI_API_KEY=of-the-file", {}, True),
        ("PINECONE_API_KEY=of-the-file", {}, False),
    ],
)
def test_a_key_is_taken_for_its_providers_address_for_this_machine_or_for_the_address_beside_it(
    load, text, environ, is_taken
):
    loaded = load(text, **environ)
    key = text.partition("=")[0]

    assert (key in waiting(loaded)) is not is_taken
    assert ("of-the-file" in getattr(loaded.settings, key.lower()).reveal()) is is_taken
    assert "of-the-file" not in repr(loaded)


def test_an_address_of_a_file_never_meets_a_key_of_the_environment(load):
    loaded = load(
        "OPENAI_BASE_URL=http://127.0.0.1:9/v1\nBABYAGI_EMBEDDING_BASE_URL=http://127.0.0.1:9\n",
        OPENAI_API_KEY="real",
    )

    assert (loaded.settings.openai_base_url, loaded.settings.embedding_base_url) == ("", "")


def test_a_model_of_a_file_does_not_take_the_limit_of_money_away_when_it_has_no_price(load):
    assert load("LLM_MODEL=nobody-knows").settings.cost_limit_is_explicit
    assert not load(
        "LLM_MODEL=nobody-knows", OPENAI_BASE_URL="http://127.0.0.1:11434/v1"
    ).settings.cost_limit_is_explicit
    assert not load("", LLM_MODEL="nobody-knows").settings.cost_limit_is_explicit


def test_what_only_the_environment_can_say_is_named_and_reaches_nobody(load):
    before = dict(os.environ)

    loaded = load(
        "ALL_PROXY=http://127.0.0.1:9\nSSL_CERT_FILE=x\nPYTHONPATH=.\nSERP_PARAMS_BASE_URL=http://127.0.0.1:9\nMINE=1\n"
    )

    assert dict(os.environ) == before and loaded.waiting == ()
    assert loaded.notices == (
        "ALL_PROXY, SSL_CERT_FILE, PYTHONPATH, SERP_PARAMS_BASE_URL in .env: no effect, "
        "because only babyagi's own settings are read from files; set them in the environment",
    )


# Where values are found


def test_a_flag_or_the_environment_goes_before_the_file_and_then_nothing_waits(load):
    assert load("BABYAGI_NOTIFY=touch x\n", BABYAGI_NOTIFY="true").waiting == ()
    assert load("BABYAGI_FILES=/etc\n", {"files": "docs"}).waiting == ()


def test_hidden_settings_are_shown_before_a_file_is_trusted(load):
    (found,) = load("BABYAGI_NOTIFY=touch x\n", BABYAGI_NOTIFY="true").untrusted

    assert (found.variable, found.shown, found.is_waiting) == ("BABYAGI_NOTIFY", "touch x", False)


def test_trusted_files_go_before_those_that_nobody_trusts(load, tmp_path):
    (tmp_path / "named.env").write_text("BABYAGI_MAX_TASKS=5\nINSTANCE_NAME=named\n")
    (tmp_path / "found.env").write_text("BABYAGI_MAX_TASKS=40\nINSTANCE_NAME=found\n")

    settings = load(
        "BABYAGI_MAX_TASKS=30\n", DOTENV_EXTENSIONS=f"{tmp_path / 'named.env'} found.env"
    ).settings

    assert (settings.max_tasks, settings.instance_name) == (5, "named")


@pytest.mark.parametrize(
    ("how", "is_trusted"),
    [
        ("flag", True),
        ("the environment, whole", True),
        ("the environment, relative", False),
        ("the file", False),
    ],
)
def test_a_further_file_is_trusted_when_a_person_named_it(load, tmp_path, how, is_trusted):
    (tmp_path / "more.env").write_text("BABYAGI_NOTIFY=touch x\n")
    more = {
        "the environment, whole": str(tmp_path / "more.env"),
        "the environment, relative": "more.env",
    }.get(how)
    text = "DOTENV_EXTENSIONS=more.env\n" if how == "the file" else ""
    environ = {"DOTENV_EXTENSIONS": more} if more else {}

    loaded = load(text, {"extra_env_files": ("more.env",)} if how == "flag" else {}, **environ)
    if how == "the file":
        assert waiting(loaded) == ["DOTENV_EXTENSIONS"]
        trust_file(loaded.trust_home, loaded.waiting[0].file)
        loaded = load()

    assert loaded.settings.notify.reveal() == ("touch x" if is_trusted else "")
    assert waiting(loaded) == ([] if is_trusted else ["BABYAGI_NOTIFY"])


def test_a_file_of_a_folder_above_is_not_read_and_a_link_is_as_little_trusted_as_a_file(tmp_path):
    (tmp_path / ".env").write_text("BABYAGI_NOTIFY=touch x\n")
    below = tmp_path / "below"
    below.mkdir()
    environ = {"BABYAGI_HOME": str(tmp_path / "home")}

    assert load_settings(flags={}, environ=environ, cwd=below).untrusted == ()
    (below / ".env").symlink_to(tmp_path / ".env")
    assert waiting(load_settings(flags={}, environ=environ, cwd=below)) == ["BABYAGI_NOTIFY"]


# Trust


def test_a_trusted_file_holds_until_it_changes_and_only_where_it_lies(load, tmp_path):
    text = "BABYAGI_NOTIFY=touch x\n"
    loaded = load(text)
    trust_file(loaded.trust_home, loaded.waiting[0].file)
    other = tmp_path / "other"
    other.mkdir()
    (other / ".env").write_text(text)

    assert load(text).settings.notify.reveal() == "touch x"
    assert waiting(load(text + " ")) == ["BABYAGI_NOTIFY"]
    assert waiting(
        load_settings(flags={}, environ={"BABYAGI_HOME": str(tmp_path / "home")}, cwd=other)
    ) == ["BABYAGI_NOTIFY"]
    assert load(text).waiting == ()


def test_trust_can_be_taken_back_and_is_kept_where_only_its_person_reads(load, tmp_path):
    loaded = load("BABYAGI_NOTIFY=touch x\n")
    trust_file(loaded.trust_home, loaded.waiting[0].file)
    (mark,) = (tmp_path / "home" / "trusted").iterdir()

    assert trusted_paths(loaded.trust_home) == [tmp_path / ".env"]
    assert mark.parent.stat().st_mode & 0o077 == 0
    assert (
        distrust_file(loaded.trust_home, tmp_path / ".env"),
        distrust_file(loaded.trust_home, tmp_path / ".env"),
    ) == (1, 0)
    assert waiting(load()) == ["BABYAGI_NOTIFY"]


def test_a_home_that_a_file_names_says_nothing_about_what_is_trusted(load, tmp_path):
    text = f"BABYAGI_HOME={tmp_path / 'planted'}\n"
    (tmp_path / ".env").write_text(text)
    planted = load_settings(
        flags={"home": str(tmp_path / "planted")}, environ={"BABYAGI_NOTIFY": "x"}, cwd=tmp_path
    ).untrusted
    trust_file(tmp_path / "planted", planted[0].file)

    loaded = load(text, BABYAGI_HOME="")

    assert waiting(loaded) == ["BABYAGI_HOME"]
    assert loaded.trust_home != tmp_path / "planted"


def test_a_folder_cannot_bring_the_home_that_trusts_it(load, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "mine"))
    loaded = load("BABYAGI_NOTIFY=touch x\n", BABYAGI_HOME="brought")
    trust_file(tmp_path / "brought", loaded.waiting[0].file)

    assert waiting(load(BABYAGI_HOME="brought")) == ["BABYAGI_NOTIFY"]
    trust_file(loaded.trust_home, loaded.waiting[0].file)
    assert load(BABYAGI_HOME="brought").waiting == ()
    assert loaded.trust_home == tmp_path / "mine" / "babyagi"


def test_a_run_for_which_something_waits_is_told_what_to_type(load, tmp_path):
    loaded = load("BABYAGI_NOTIFY=touch x\nBABYAGI_LOG_LEVEL=debug\n")

    with pytest.raises(SettingsError) as caught:
        loaded.require_trust()

    assert (
        caught.value.what
        == ".env is not trusted, so these settings in it have no effect: BABYAGI_NOTIFY, BABYAGI_LOG_LEVEL"
    )
    assert (
        "babyagi config trust" in caught.value.fix
        and f"DOTENV_EXTENSIONS={tmp_path / '.env'}" in caught.value.fix
    )
    loaded.require_trust({"task_store"})
    with pytest.raises(SettingsError):
        loaded.require_trust({"log_level"})


def test_what_is_missed_because_it_waits_is_no_fault(load):
    assert waiting(load("LLM_MODEL=llama3.2\nOPENAI_BASE_URL=http://127.0.0.1:11434/v1\n")) == [
        "OPENAI_BASE_URL"
    ]


# What is shown to whoever trusts


@pytest.mark.parametrize(
    ("parse", "text", "shown"),
    [
        (parse_notify, "sh -c 'touch x'", "sh -c 'touch x'"),
        (parse_notify, "https://hooks.example/T000/HOOK", "https://hooks.example/***"),
        (parse_task_store, "sqlite:////srv/tasks.db", "sqlite:////srv/tasks.db"),
        (
            parse_task_store,
            "postgresql://me:top5ecret@db:5432/agi?host=evil",
            "postgresql://me:***@db:5432/agi?host=evil",
        ),
        (
            parse_task_store,
            "postgresql://db:5432/agi?user=%40x&password=top5ecret",
            "postgresql://db:5432/agi?user=%40x&password=***",
        ),
        (parse_task_store, "postgresql://me@db/agi", "postgresql://me@db/agi"),
    ],
)
def test_a_command_is_shown_whole_and_an_address_without_what_is_secret(parse, text, shown):
    assert parse(text).hint == shown
    assert parse(text).reveal() == text and shown not in repr(parse(text))


def test_hosts_are_names_with_or_without_a_port():
    assert parse_hosts("A.example, b.example:8443 [::1]:80") == (
        "a.example",
        "b.example:8443",
        "[::1]:80",
    )
    for bad in ("https://a.example", "a.example/x", "me@a.example", "a.example:port", ":80"):
        with pytest.raises(ValueError, match="HOST"):
            parse_hosts(bad)
