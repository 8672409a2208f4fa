"""Every setting, declared once: its names, type, default and help.

`load.py` reads the values of the settings and checks that they fit together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from babyagi.errors import SettingsError
from babyagi.net.addresses import Proxies, split_exceptions
from babyagi.settings.values import (
    Declared,
    Secret,
    declare,
    default_home,
    describe,
    lower_limit,
    names_of,
    number,
    parse_duration_s,
    parse_hosts,
    parse_notify,
    parse_path,
    parse_paths,
    parse_pipeline,
    parse_presence,
    parse_price,
    parse_proxy,
    parse_role_models,
    parse_search,
    parse_secret,
    parse_task_store,
    parse_text,
    parse_token,
    parse_url,
    seconds,
    whole,
)

if TYPE_CHECKING:
    from babyagi.tasks import Limits, Role


DEFAULT_MODEL = "gpt-6-luna"
LLAMA_MODEL = "llama"  # names the model that runs in this process
DEFAULT_OUTPUT_TOKENS = 2000
NO_SECRET = Secret()
SEARCH_ENGINES = tuple("auto serper brave tavily serpapi searchapi keyless".split())
ROLES = ("execution", "creation", "prioritization", "report")
_USD = "a number of US dollars"
_TOOLS = (
    "web web_search open_page python run_python github search_issues issue_link ask_pipeline "
    "calculator write_file files recall list_files read_file search_files"
)


def _declare_search_key(name: str, help: str) -> Secret:
    return declare(
        NO_SECRET, name, help, parse=parse_secret, key_for=("search_url",), is_listed=False
    )


# Variables of the original that do nothing here: what to do instead.
WITHOUT_EFFECT: Mapping[str, str] = {
    "USE_GPT4": "LLM_MODEL=MODEL",
    "PINECONE_TABLE": "RESULTS_STORE_NAME=NAME",
    "WEAVIATE_VECTORIZER": "BABYAGI_EMBEDDING_MODEL=MODEL",
    **dict.fromkeys(("ACTIVELOOP_TOKEN", "ACTIVELOOP_DATASET"), "BABYAGI_RESULT_STORE=chroma"),
}


def find_longest_output(max_output_tokens: int) -> int:
    """Return the highest token limit that any request may set on its answer: four times
    `max_output_tokens`, because a report may be twice as long as other answers, and an answer that
    was cut off is requested again with twice its limit. If `max_output_tokens` is below the
    default, it is itself the limit of every answer."""
    is_short = max_output_tokens < DEFAULT_OUTPUT_TOKENS
    return max_output_tokens * (1 if is_short else 4)


OPENAI_EMBEDDING_MODEL = "text-embedding-3-small"
LOCAL_EMBEDDING_MODEL = "hash"
ONNX_EMBEDDING_MODEL = "chroma-onnx"  # downloaded, but only if a person chooses it
MODELS_WITHOUT_ENDPOINT = ("human", "rehearsal", LLAMA_MODEL)
USE_LLAMA = (
    "a model of this name needs a server, such as OPENAI_BASE_URL=http://127.0.0.1:8080/v1; for "
    f"a model in this process set LLM_MODEL={LLAMA_MODEL} LLAMA_MODEL_PATH=FILE.gguf"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, in the order of the example file `.env.example`: first those of one objective,
    then those of the process."""

    # One declaration per setting: default, names, help, then further arguments of `Declared`.
    # fmt: off
    objective: str = declare("", "OBJECTIVE", "The objective to reach.", parse=parse_text,
        section="The objective", untrusted=True, default_text="none")
    initial_task: str = declare("Answer the objective",  # `tasks.ANSWER_TASK`
        "INITIAL_TASK FIRST_TASK -t --task",
        "The first task of the list. Left out, it is the objective itself.", parse=parse_text,
        untrusted=True)
    instance_name: str = declare("babyagi", "INSTANCE_NAME BABY_NAME -n --name",
        "A name that distinguishes objectives with the same text and first task.",
        untrusted=True)
    files: Path | None = declare(None, "BABYAGI_FILES --files",
        "The folder that tasks may read, with the folders in it.",
        parse=parse_path, takes_many=True, metavar="FOLDER",
        default_text="none; then no file tool is offered")
    tools: tuple[str, ...] = declare((), "BABYAGI_TOOLS --tools",
        "More tools that tasks may use, by name or by set: web (web_search, open_page; extra "
        "`web`), python (run_python), github (search_issues, issue_link), ask_pipeline, "
        "calculator, write_file, files, recall (always, not only when it seems to be needed); "
        "`babyagi tools` lists them.", parse=names_of(*_TOOLS.split()), takes_many=True,
        metavar="NAMES",
        default_text="those that read the folder, if there is one")
    mcp: Path | None = declare(None, "--mcp",
        "A file of MCP servers whose tools tasks may use (extra `mcp`).", parse=parse_path,
        takes_many=True, metavar="FILE", default_text="none")
    tools_from: str = declare("", "--tools-from",
        "Your own code that tasks may call: Python functions (module, module:object, file.py, or a "
        "folder), or an agent of a YAML file (FILE.yaml#NAME).", takes_many=True, metavar="WHERE",
        default_text="none")
    agent: str = declare("", "--agent",
        "An agent of a YAML file that carries the tasks out, with its tools, bounds, protocol and "
        "memory: FILE, or FILE#NAME if the file has several agents.", takes_many=True,
        metavar="FILE[#NAME]", default_text="none")
    ask: bool = declare(False, "BABYAGI_ASK",
        "Whether the model may ask you questions; a task waits for the answer.")
    approve: str = declare("once", "BABYAGI_APPROVE",
        "Which tool calls wait for your approval: those that must not be repeated (once), or "
        "none.", choices=("once", "none"))
    memory: str = declare("objective", "BABYAGI_MEMORY --memory",
        "Which earlier results a task may be shown: only those of its own objective (objective), "
        "or also those of the other objectives in the task store (shared).",
        choices=("objective", "shared"), is_listed=False)

    planning: str = declare("separate", "BABYAGI_PLANNING --planning",
        "Who proposes new tasks: a separate agent (separate), or the execution agent at the end "
        "of its result (combined).", choices=("separate", "combined"), untrusted=True,
        is_listed=False)

    llm_model: str = declare(DEFAULT_MODEL, "LLM_MODEL OPENAI_API_MODEL --model",
        "The language model; `human` asks you, `rehearsal` needs no key and no network, "
        "`llama` runs in this process.", metavar="MODEL", section="The model", untrusted=True)
    role_models: tuple[str, ...] = declare((), "BABYAGI_ROLE_MODELS",
        "Another model for some agents: ROLE=MODEL, separated by commas. The roles: "
        f"{', '.join(ROLES)}.", parse=parse_role_models(*ROLES), default_text="LLM_MODEL for each",
        untrusted=True)
    openai_api_key: Secret = declare(NO_SECRET, "OPENAI_API_KEY",
        "The key of the endpoint. Local servers mostly need none.", parse=parse_secret,
        key_for=("openai_base_url", "embedding_base_url"), default_text="none")
    openai_base_url: str = declare("", "OPENAI_BASE_URL OPENAI_API_BASE",
        "Any OpenAI-compatible server: Ollama, vLLM, llama.cpp, LM Studio.", parse=parse_url,
        default_text="OpenAI")
    openai_organization: str = declare("", "",
        "The organisation to bill at OpenAI, for keys that belong to several.",
        default_text="none is named")
    azure_api_version: str = declare("", "",
        "Treats `openai_base_url` as an Azure resource with this API version; models are then "
        "deployment names.", default_text="none: the address is not an Azure resource")
    openai_temperature: float | None = declare(None, "OPENAI_TEMPERATURE",
        "The model's temperature, 0 to 2. An empty value sends none.", parse=number(0, 2),
        takes_empty=True,
        default_text="none is sent; newer models accept only their own", untrusted=True)
    dialect: str = declare("auto", "",
        "The API of the endpoint: Chat Completions or Responses.",
        choices=("auto", "chat", "responses"))
    protocol: str = declare("auto", "BABYAGI_PROTOCOL",
        "How the model calls tools: in the API's own fields (native), as JSON, or in labelled "
        "text; auto finds out, and asks a model at a custom address two small questions first; "
        "untested is auto without these questions.",
        choices=("auto", "untested", "native", "json", "text"), untrusted=True)
    model_timeout_s: float = declare(120.0, "BABYAGI_MODEL_TIMEOUT_S",
        "The seconds that a server may be silent about a model call; more for a server that lives "
        "and is known to need more.",
        parse=seconds(1, 86_400), untrusted=lower_limit)
    max_output_tokens: int = declare(DEFAULT_OUTPUT_TOKENS, "BABYAGI_MAX_OUTPUT_TOKENS",
        "The longest answer to request, in tokens.", parse=whole(16), untrusted=lower_limit)
    price: tuple[float, float] | None = declare(None, "BABYAGI_PRICE",
        "US dollars for a million tokens of prompts and of answers, as 0.25/2.", parse=parse_price,
        metavar="IN/OUT", default_text="looked up by model name")
    llama_model_path: Path | None = declare(None, "LLAMA_MODEL_PATH",
        f"The GGUF file of the model that `LLM_MODEL={LLAMA_MODEL}` loads into this process, with "
        "the extra `llama`.", parse=parse_path, section="A model in this process")
    llama_ctx_max: int = declare(0, "LLAMA_CTX_MAX",
        "The longest context of the GGUF model, in tokens; memory is reserved for all of it.",
        parse=whole(0, 10_000_000), is_listed=False,
        default_text="the length that it was trained with, at most 8192", untrusted=True)
    llama_threads_num: int = declare(0, "LLAMA_THREADS_NUM",
        "The threads that compute the GGUF model.", parse=whole(0, 1024), is_listed=False,
        default_text="one fewer than there are processors", untrusted=True)
    llama: bool = declare(False, "-l --llama",
        f"Use a model in this process, as LLM_MODEL={LLAMA_MODEL} does.")

    max_tasks: int = declare(50, "BABYAGI_MAX_TASKS --max-tasks", "Tasks that may be carried out.",
        parse=whole(0), metavar="N", section="Limits (0 = none)", untrusted=lower_limit)
    max_calls: int = declare(0, "BABYAGI_MAX_CALLS --max-calls", "Model calls that may be made.",
        parse=whole(0), metavar="N", untrusted=lower_limit)
    max_tokens: int = declare(2_000_000, "BABYAGI_MAX_TOKENS --max-tokens",
        "Tokens that may be used, prompts and answers together.", parse=whole(0), metavar="N",
        untrusted=lower_limit)
    max_cost_usd: float = declare(1.0, "BABYAGI_MAX_COST_USD --max-cost",
        "US dollars that may be spent.", parse=number(0, 1e9, _USD), metavar="USD",
        untrusted=lower_limit)
    max_time_s: float = declare(7200.0, "BABYAGI_MAX_TIME_S --max-time",
        "Time that a run may take, as 90s, 30m or 1h30m; pauses do not count.",
        parse=parse_duration_s, metavar="TIME", untrusted=lower_limit)
    max_failures: int = declare(3, "",
        "Failed tries after which a task is dead.", parse=whole(1, 100))
    max_new_tasks: int = declare(10, "",
        "New tasks that may be proposed from one result.", parse=whole(1, 100))
    context_tokens: int = declare(4000, "BABYAGI_CONTEXT_TOKENS",
        "The most tokens of earlier results in a task's prompt.", parse=whole(0),
        untrusted=lower_limit)

    concurrency: int = declare(4, "BABYAGI_CONCURRENCY --concurrency", "Tasks that run at once.",
        parse=whole(1, 64), metavar="N", section="Working", untrusted=True)
    cadence: str = declare("each", "BABYAGI_CADENCE",
        "When new tasks are planned and the list is ordered: after each result (each), or several "
        "results in one call, which costs fewer tokens (batched).", choices=("each", "batched"),
        untrusted=True)
    lease_s: float = declare(30.0, "BABYAGI_LEASE_S",
        "Seconds after which other workers take over the tasks of a worker that is silent.",
        parse=seconds(1, 86_400))
    drain_s: float = declare(10.0, "",
        "Seconds that running tasks have to finish when the program is stopped.",
        parse=seconds(0, 86_400))
    notify: Secret = declare(NO_SECRET, "BABYAGI_NOTIFY",
        "A command or address that is notified when a run waits or ends.", parse=parse_notify,
        default_text="none")
    worker_name: str = declare("", "", "The name of this worker in lists.",
        default_text="the name of this machine")

    cooperative_mode: str = declare("none", "COOPERATIVE_MODE -m --mode",
        "Who shares the task store: one process (none), processes of this machine (local), or "
        "several machines (distributed; needs PostgreSQL in BABYAGI_TASK_STORE).",
        choices=("none", "local", "distributed"), section="Working together")
    join_existing_objective: bool = declare(False, "JOIN_EXISTING_OBJECTIVE -j --join",
        "Work on an objective that another process started, and wait until there is one; start "
        "no objective.", is_listed=False)
    use_my_model: bool = declare(False, "BABYAGI_USE_MY_MODEL --use-my-model",
        "Use this worker's models, not those with which the objective was started.",
        is_listed=False)

    serve_host: str = declare("127.0.0.1", "BABYAGI_SERVE_HOST --host",
        "The address that `serve` (extra `serve`) listens at. An address that other machines "
        "reach needs BABYAGI_SERVE_TOKEN.", metavar="ADDRESS", section="Serving")
    serve_port: int = declare(8642, "--port",
        "The port that `serve` listens at; 0 for any free one.", parse=whole(0, 65_535),
        metavar="PORT")
    serve_names: tuple[str, ...] = declare((), "BABYAGI_SERVE_NAMES",
        "Host names under which `serve` answers besides its address, as HOST or, unless the port "
        "is the default of http or https, HOST:PORT.", parse=parse_hosts, default_text="none")
    serve_token: Secret = declare(NO_SECRET, "BABYAGI_SERVE_TOKEN",
        "The token that programs send to `serve`, at least 20 characters.", parse=parse_token,
        default_text="one is created at the first start")
    https_proxy: Secret = declare(NO_SECRET, "HTTPS_PROXY https_proxy",
        "The proxy through which https addresses are reached; this machine is always reached "
        "directly.", parse=parse_proxy, is_listed=False, default_text="none")
    http_proxy: Secret = declare(NO_SECRET, "HTTP_PROXY http_proxy",
        "The proxy through which http addresses are reached.",
        parse=parse_proxy, is_listed=False, default_text="none")
    no_proxy: str = declare("", "NO_PROXY no_proxy",
        "Hosts, addresses and networks that are reached directly, separated by commas.",
        is_listed=False)

    home: Path = field(default_factory=default_home, metadata=describe("BABYAGI_HOME",
        "The folder of the task store, the result store and the log.", parse=parse_path,
        default_text="the user's data folder", section="Storage"))
    task_store: Secret = declare(NO_SECRET, "BABYAGI_TASK_STORE",
        "Where objectives and tasks are kept: sqlite:///ABSOLUTE/PATH, or "
        "postgresql://USER:PASSWORD@HOST/DATABASE to share them between machines.",
        parse=parse_task_store, default_text="tasks.db in BABYAGI_HOME")
    results_store_name: str = declare("babyagi", "RESULTS_STORE_NAME TABLE_NAME",
        "The name of the collection that holds the results.", untrusted=True)
    result_store: str = declare("auto", "BABYAGI_RESULT_STORE",
        "The index that finds earlier results; auto: Weaviate or Pinecone if their variables "
        "are set, else Chroma.", choices=("auto", "chroma", "builtin", "weaviate", "pinecone"))
    chroma_url: str = declare("", "CHROMA_URL",
        "A Chroma server instead of the embedded database, for workers that share an objective.",
        parse=parse_url, default_text="none, Chroma is embedded")
    weaviate_url: str = declare("", "WEAVIATE_URL", "A Weaviate server (extra `weaviate`).",
        parse=parse_url)
    weaviate_api_key: Secret = declare(NO_SECRET, "WEAVIATE_API_KEY",
        "The key of the Weaviate server.", parse=parse_secret, key_for=("weaviate_url",))
    weaviate_grpc_port: int | None = declare(None, "",
        "The gRPC port of the Weaviate server.", parse=whole(1, 65_535),
        default_text="50051; 443 in Weaviate's cloud")
    weaviate_use_embedded: bool = declare(False, "WEAVIATE_USE_EMBEDDED",
        "Whether Weaviate's library downloads and starts a server on this machine.",
        is_listed=False)
    pinecone_api_key: Secret = declare(NO_SECRET, "PINECONE_API_KEY",
        "The key of a Pinecone project (extra `pinecone`).", parse=parse_secret)
    pinecone_environment: str = declare("", "PINECONE_ENVIRONMENT",
        "Region and cloud (aws, gcp, azure) of the Pinecone index, as us-east-1-aws.",
        default_text="us-east-1-aws")
    embedding_model: str = declare("", "BABYAGI_EMBEDDING_MODEL EMBEDDING_MODEL",
        f"The model that makes vectors; `{LOCAL_EMBEDDING_MODEL}` is built in and needs no key and "
        f"no download, `{ONNX_EMBEDDING_MODEL}` is Chroma's own, which is fetched once (80 MB). "
        f"With a key for OpenAI and no other address {OPENAI_EMBEDDING_MODEL}, else "
        f"{LOCAL_EMBEDDING_MODEL}.",
        default_text=f"OpenAI's, else {LOCAL_EMBEDDING_MODEL}",
        untrusted=lambda model, _: model == LOCAL_EMBEDDING_MODEL)
    embedding_base_url: str = declare("", "BABYAGI_EMBEDDING_BASE_URL",
        "The server that makes vectors, if it is not OPENAI_BASE_URL.", parse=parse_url,
        default_text="OPENAI_BASE_URL")
    search_engine: str = declare("auto", "BABYAGI_SEARCH",
        f"The web search: one of {', '.join(SEARCH_ENGINES)}, or the address of a SearXNG server "
        "whose JSON format is switched on. auto takes the first engine of the list whose key is "
        "set, else free services that need no key, one after the other.",
        parse=parse_search(*SEARCH_ENGINES))
    search_url: str = declare("", "", "Another address for the search engine.", parse=parse_url,
        default_text="the engine's own")
    serper_api_key: Secret = _declare_search_key("SERPER_API_KEY", "The key for Serper.")
    brave_api_key: Secret = _declare_search_key("BRAVE_API_KEY", "The key for Brave's search.")
    tavily_api_key: Secret = _declare_search_key("TAVILY_API_KEY", "The key for Tavily.")
    serpapi_api_key: Secret = _declare_search_key("SERPAPI_API_KEY",
        "The key for SerpAPI, which an agent from a file may use as well.")
    searchapi_api_key: Secret = _declare_search_key("SEARCHAPI_API_KEY", "The key for SearchApi.")
    pipeline: str = declare("", "BABYAGI_PIPELINE",
        "The pipeline of the tool ask_pipeline: WORKSPACE/NAME on deepset Cloud, or the "
        "address of a Haystack server.", parse=parse_pipeline, default_text="none")
    deepset_cloud_api_key: Secret = declare(NO_SECRET, "DEEPSET_CLOUD_API_KEY",
        "The key for deepset Cloud, which an agent from a file may use as well.",
        parse=parse_secret, key_for=("deepset_cloud_url",), is_listed=False)
    deepset_cloud_url: str = declare("", "",
        "Another address for deepset Cloud.", parse=parse_url, default_text="deepset's own")
    github_repository: str = declare("", "",
        "The repository of the tools search_issues and issue_link.",
        default_text="the model chooses one")
    github_token: Secret = declare(NO_SECRET, "GITHUB_TOKEN",
        "A token for searching issues. It allows more searches a minute, and searches in your "
        "private repositories. An agent from a file may use it as well.", parse=parse_secret,
        key_for=("github_url",), is_listed=False)
    github_url: str = declare("", "", "Another address for the API of GitHub.",
        parse=parse_url, default_text="GitHub's own")
    web_allow: tuple[str, ...] = declare((), "BABYAGI_WEB_ALLOW",
        "Hosts, addresses and networks outside the public internet from which pages may be "
        "opened; :PORT is optional.", parse=split_exceptions, default_text="none")
    web_only: tuple[str, ...] = declare((), "BABYAGI_WEB_ONLY",
        "The only domains, with their subdomains, whose pages may be opened; :PORT is optional.",
        parse=split_exceptions, default_text="all", is_listed=False)
    agent_hosts: tuple[str, ...] = declare((), "BABYAGI_AGENT_HOSTS --agent-hosts",
        "Hosts, besides the providers' own, to which an agent from a file may send questions "
        "and keys.", parse=parse_hosts, takes_many=True, metavar="HOSTS", default_text="none",
        is_listed=False)
    log_level: str = declare("info", "BABYAGI_LOG_LEVEL",
        "The lowest level of messages that are logged.",
        choices=("debug", "info", "warning", "error"))
    otel_endpoint: str = declare("", "BABYAGI_OTEL_ENDPOINT",
        "Where OpenTelemetry spans are sent, such as http://127.0.0.1:4318 (extra `otel`); "
        "they hold no prompt and no answer.", parse=parse_url)
    log_format: str = declare("text", "--log-format",
        "The format of a worker's log on standard error when that is not a terminal.",
        choices=("text", "json"))
    no_color: bool = declare(False, "NO_COLOR --no-color",
        "Print no colours; the variable has this effect with any value (https://no-color.org).",
        parse=parse_presence, untrusted=True, is_listed=False)

    extra_env_files: tuple[Path, ...] = declare((), "DOTENV_EXTENSIONS -e --env",
        "More files like .env, separated by blanks; a later file overrides an earlier one. Files "
        "named by a flag, or by their absolute path in the environment, are trusted.",
        parse=parse_paths, takes_many=True,
        metavar="FILE", section="Reading settings", default_text="none")
    enable_command_line_args: bool = declare(True, "ENABLE_COMMAND_LINE_ARGS",
        "Whether settings may be given as flags; false makes every such flag an error.",
        untrusted=True, is_listed=False)
    gpt_4: bool = declare(False, "-4 --gpt-4",
        "Not accepted, because gpt-4 is shut down; the error names its successor.")
    # fmt: on

    # set by the loader when a person set max_cost_usd: then a model without a known price is an
    # error
    cost_limit_is_explicit: bool = False
    # set by the loader when a person set a model: then a worker reports objectives that use another
    # model
    model_is_explicit: bool = False
    # set by the loader when the objective or the first task came from a file that nobody trusts:
    # the name of the file
    objective_file: str = ""
    task_file: str = ""

    def require_objective(self) -> str:
        """Return the objective's text. Called only for a run, because other commands need no
        objective.

        Raises:
            SettingsError: no objective is set.
        """
        if not self.objective:
            fix = 'babyagi run "the objective", or OBJECTIVE=… in the environment or .env'
            raise SettingsError("no objective was given", fix=fix, guide="settings")
        return self.objective

    @property
    def limits(self) -> Limits:
        from babyagi.tasks import Limits

        return Limits(**{limit.name: getattr(self, limit.name) for limit in fields(Limits)})

    @property
    def effective_protocol(self) -> str:
        return "auto" if self.protocol == "untested" else self.protocol

    @property
    def longest_output_tokens(self) -> int:
        return find_longest_output(self.max_output_tokens)

    @property
    def model_by_role(self) -> dict[Role, str]:
        """The model of each role that calls a language model. The embedding model is in
        `effective_embedding_model`."""
        from babyagi.tasks import Role

        own = dict(entry.split("=", 1) for entry in self.role_models)
        return {Role(role): own.get(role, self.llm_model) for role in ROLES}

    @property
    def effective_result_store(self) -> str:
        """The name of the result store. `auto` becomes the store whose variables are set (Weaviate,
        then Pinecone), else Chroma."""
        if self.result_store != "auto":
            return self.result_store
        if self.weaviate_url or self.weaviate_use_embedded:
            return "weaviate"
        return "pinecone" if self.pinecone_api_key else "chroma"

    @property
    def pinecone_place(self) -> tuple[str, str]:
        """The cloud and the region in which a new Pinecone index is created."""
        region, _, cloud = self.pinecone_environment.rpartition("-")
        if cloud not in ("aws", "gcp", "azure"):
            region, cloud = self.pinecone_environment, "aws"
        return cloud, region or "us-east-1"

    @property
    def proxies(self) -> Proxies:
        return Proxies(
            http=self.http_proxy.reveal(),
            https=self.https_proxy.reveal(),
            exceptions=split_exceptions(self.no_proxy),
        )

    @property
    def effective_embedding_model(self) -> str:
        """The embedding model that a person chose; otherwise OpenAI's if the key can only be for
        OpenAI, else the built-in one. So no text is sent to an endpoint that no person chose."""
        if self.embedding_model:
            return self.embedding_model
        has_endpoint = self.llm_model not in MODELS_WITHOUT_ENDPOINT
        asks_openai = self.openai_api_key and not self.openai_base_url and has_endpoint
        return OPENAI_EMBEDDING_MODEL if asks_openai else LOCAL_EMBEDDING_MODEL

    @property
    def known_secrets(self) -> list[str]:
        """The keys and tokens in these settings, to be removed from every log and screen."""
        names = (one.name for one in fields(self) if one.name.endswith(("_key", "_token")))
        return [value.reveal() for value in (getattr(self, name) for name in names) if value]


def declared_fields() -> Mapping[str, Declared]:
    """Return the declaration of each setting by its field name in `Settings`, in their order."""
    return {
        found.name: found.metadata["declared"]
        for found in fields(Settings)
        if "declared" in found.metadata
    }
