"""Every setting, declared once: name, type, default, variables, flags and help of each.

What must hold between two settings is checked where they are read, in `load.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from babyagi.addresses import Proxies, split_exceptions
from babyagi.settings.objective_fields import DEFAULT_MODEL, NO_SECRET, ObjectiveFields
from babyagi.settings.values import (
    Declared,
    Secret,
    anything,
    declare,
    default_home,
    lower_limit,
    only,
    parse_digests,
    parse_hosts,
    parse_notify,
    parse_path,
    parse_paths,
    parse_presence,
    parse_proxy,
    parse_secret,
    parse_switch,
    parse_task_store,
    parse_url,
    seconds,
    whole,
)

__all__ = [
    "DEFAULT_MODEL",
    "MODELS_WITHOUT_ENDPOINT",
    "USE_LLAMA_SERVER",
    "Settings",
    "declared_fields",
]

OPENAI_EMBEDDING_MODEL = "text-embedding-3-small"
LOCAL_EMBEDDING_MODEL = "hash"
ONNX_EMBEDDING_MODEL = "chroma-onnx"  # fetched, when a person names it
MODELS_WITHOUT_ENDPOINT = ("human", "rehearsal")
USE_LLAMA_SERVER = (
    "models are not loaded into this program; start a llama.cpp server and set "
    "OPENAI_BASE_URL=http://127.0.0.1:8080/v1"
)
_NOT_BUILT = "From the original, not built"
_LOG_LEVELS = ("debug", "info", "warning", "error")
_MODES = ("none", "local", "distributed")
_RESULT_STORES = ("auto", "chroma", "builtin", "weaviate", "pinecone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ObjectiveFields):
    """What a person can set. Each field stands in the order and with the words of the example file;
    those of the objective come first."""

    concurrency: int = field(
        default=4,
        metadata=declare(
            "BABYAGI_CONCURRENCY --concurrency",
            "Tasks that run at once.",
            parse=whole(1, 64),
            metavar="N",
            section="Working",
            untrusted=anything,
        ),
    )
    lease_s: float = field(
        default=30.0,
        metadata=declare(
            "BABYAGI_LEASE_S",
            "Seconds after which the tasks of a silent worker go to others.",
            parse=seconds(1, 86_400),
        ),
    )
    drain_s: float = field(
        default=10.0,
        metadata=declare(
            "BABYAGI_DRAIN_S",
            "Seconds that running tasks have to finish when the program is told to stop.",
            parse=seconds(0, 86_400),
            untrusted=lower_limit,
        ),
    )
    notify: Secret = field(
        default=NO_SECRET,
        metadata=declare(
            "BABYAGI_NOTIFY",
            "A command or address that is told when a run waits or ends.",
            parse=parse_notify,
            default_text="none",
        ),
    )
    worker_name: str = field(
        default="",
        metadata=declare(
            "BABYAGI_WORKER_NAME",
            "The name of this worker in lists.",
            default_text="the name of this machine",
            untrusted=anything,
        ),
    )

    cooperative_mode: str = field(
        default="none",
        metadata=declare(
            "COOPERATIVE_MODE -m --mode",
            "Who shares the task store: nobody in particular, processes of this machine, "
            "or those of many machines (needs PostgreSQL in "
            "BABYAGI_TASK_STORE).",
            choices=_MODES,
            section="Working together",
        ),
    )
    join_existing_objective: bool = field(
        default=False,
        metadata=declare(
            "JOIN_EXISTING_OBJECTIVE -j --join",
            "Work on an objective that somebody else started, or wait for it; start none.",
            parse=parse_switch,
        ),
    )
    use_my_model: bool = field(
        default=False,
        metadata=declare(
            "BABYAGI_USE_MY_MODEL --use-my-model",
            "Ask this worker's models, not those that the objective was started with.",
            parse=parse_switch,
        ),
    )

    https_proxy: Secret = field(
        default=NO_SECRET,
        metadata=declare(
            "HTTPS_PROXY https_proxy",
            (
                "The proxy through which https addresses are reached; this machine is always "
                "reached directly."
            ),
            parse=parse_proxy,
            metavar="URL",
            default_text="none",
            section="The network",
        ),
    )
    http_proxy: Secret = field(
        default=NO_SECRET,
        metadata=declare(
            "HTTP_PROXY http_proxy",
            "The same for http addresses.",
            parse=parse_proxy,
            metavar="URL",
            default_text="none",
        ),
    )
    no_proxy: str = field(
        default="",
        metadata=declare(
            "NO_PROXY no_proxy",
            "Hosts, addresses and networks that are reached directly, separated by commas.",
        ),
    )

    home: Path = field(
        default_factory=default_home,
        metadata=declare(
            "BABYAGI_HOME",
            "The folder of the task store, the result store and the log.",
            parse=parse_path,
            metavar="FOLDER",
            default_text="the user's data folder",
            section="Where things are kept",
        ),
    )
    task_store: Secret = field(
        default=NO_SECRET,
        metadata=declare(
            "BABYAGI_TASK_STORE",
            "Where objectives and tasks are kept: sqlite:///ABSOLUTE/PATH, or "
            "postgresql://USER:PASSWORD@HOST/DATABASE to share them "
            "between machines.",
            parse=parse_task_store,
            metavar="URL",
            default_text="tasks.db in BABYAGI_HOME",
        ),
    )
    results_store_name: str = field(
        default="babyagi",
        metadata=declare(
            "RESULTS_STORE_NAME TABLE_NAME",
            "The name of the collection that holds the results.",
            untrusted=anything,
        ),
    )
    result_store: str = field(
        default="auto",
        metadata=declare(
            "BABYAGI_RESULT_STORE",
            (
                "What finds earlier results; auto: Weaviate or Pinecone where their "
                "variables are set, else Chroma."
            ),
            choices=_RESULT_STORES,
        ),
    )
    chroma_url: str = field(
        default="",
        metadata=declare(
            "CHROMA_URL",
            "A Chroma server in place of the embedded one, for workers that share an objective.",
            parse=parse_url,
            metavar="URL",
            default_text="none, Chroma is embedded",
        ),
    )
    weaviate_url: str = field(
        default="",
        metadata=declare(
            "WEAVIATE_URL", "A Weaviate server (extra `weaviate`).", parse=parse_url, metavar="URL"
        ),
    )
    weaviate_api_key: Secret = field(
        default=NO_SECRET,
        metadata=declare(
            "WEAVIATE_API_KEY", "Its key.", parse=parse_secret, key_for=("weaviate_url",)
        ),
    )
    weaviate_grpc_port: int | None = field(
        default=None,
        metadata=declare(
            "BABYAGI_WEAVIATE_GRPC_PORT",
            "Its port for gRPC.",
            parse=whole(1, 65_535),
            metavar="N",
            default_text="50051, in the cloud 443",
        ),
    )
    weaviate_use_embedded: bool = field(
        default=False,
        metadata=declare(
            "WEAVIATE_USE_EMBEDDED",
            "Weaviate downloaded and started on this machine, by its library.",
            parse=parse_switch,
        ),
    )
    pinecone_api_key: Secret = field(
        default=NO_SECRET,
        metadata=declare(
            "PINECONE_API_KEY",
            "The key of a Pinecone project (extra `pinecone`).",
            parse=parse_secret,
        ),
    )
    pinecone_cloud: str = field(
        default="",
        metadata=declare(
            "PINECONE_CLOUD", "Where its index is made: aws, gcp, azure.", default_text="aws"
        ),
    )
    pinecone_region: str = field(
        default="",
        metadata=declare("PINECONE_REGION", "In which region.", default_text="us-east-1"),
    )
    pinecone_environment: str = field(
        default="",
        metadata=declare(
            "PINECONE_ENVIRONMENT",
            "The original's word for both, as us-east-1-aws; the two above win.",
            default_text="none",
        ),
    )
    embedding_model: str = field(
        default="",
        metadata=declare(
            "BABYAGI_EMBEDDING_MODEL EMBEDDING_MODEL",
            f"The model that makes vectors; `{LOCAL_EMBEDDING_MODEL}` is built in and "
            "needs no key and no download, "
            f"`{ONNX_EMBEDDING_MODEL}` is Chroma's own, which is fetched once (80 MB).",
            metavar="MODEL",
            default_text=(
                f"{OPENAI_EMBEDDING_MODEL} with a key for OpenAI, else {LOCAL_EMBEDDING_MODEL}"
            ),
            untrusted=only(LOCAL_EMBEDDING_MODEL),
        ),
    )
    embedding_base_url: str = field(
        default="",
        metadata=declare(
            "BABYAGI_EMBEDDING_BASE_URL",
            "The server that makes vectors, when it is another one.",
            parse=parse_url,
            metavar="URL",
            default_text="OPENAI_BASE_URL",
        ),
    )
    serpapi_api_key: Secret = field(
        default=NO_SECRET,
        metadata=declare(
            "SERPAPI_API_KEY",
            "The key of the search that an agent from a file may have.",
            parse=parse_secret,
            key_for=(),
        ),
    )
    agent_hosts: tuple[str, ...] = field(
        default=(),
        metadata=declare(
            "BABYAGI_AGENT_HOSTS --agent-hosts",
            (
                "Hosts, beside the providers' own, that an agent from a file may send "
                "questions and keys to."
            ),
            parse=parse_hosts,
            metavar="HOSTS",
            default_text="none",
        ),
    )
    log_file: Path | None = field(
        default=None,
        metadata=declare(
            "BABYAGI_LOG_FILE",
            "The log file.",
            parse=parse_path,
            metavar="FILE",
            default_text="babyagi.log in BABYAGI_HOME",
        ),
    )
    log_level: str = field(
        default="info",
        metadata=declare("BABYAGI_LOG_LEVEL", "The least that is logged.", choices=_LOG_LEVELS),
    )
    no_color: bool = field(
        default=False,
        metadata=declare(
            "NO_COLOR --no-color",
            "Any value: no colour on a terminal (https://no-color.org).",
            parse=parse_presence,
            untrusted=anything,
        ),
    )

    extra_env_files: tuple[Path, ...] = field(
        default=(),
        metadata=declare(
            "DOTENV_EXTENSIONS -e --env",
            "More files like .env, separated by blanks; a later one wins. Those that a "
            "flag names, or the environment by their whole path, "
            "are trusted.",
            parse=parse_paths,
            takes_many=True,
            metavar="FILE",
            default_text="none",
            section="Reading settings",
        ),
    )
    enable_command_line_args: bool = field(
        default=True,
        metadata=declare(
            "ENABLE_COMMAND_LINE_ARGS",
            "false refuses every flag that is a setting.",
            parse=parse_switch,
            untrusted=anything,
        ),
    )

    trust_env_file: tuple[str, ...] = field(
        default=(),
        metadata=declare(
            "BABYAGI_TRUST_ENV_FILE",
            (
                "The SHA-256 digest of a .env that is trusted, where nobody can type "
                "`babyagi trust`. It counts in the environment only."
            ),
            parse=parse_digests,
            metavar="DIGEST",
            default_text="none",
        ),
    )

    llama_model_path: str = field(
        default="",
        metadata=declare(
            "LLAMA_MODEL_PATH",
            "A Llama model file.",
            arrives_later=USE_LLAMA_SERVER,
            section=_NOT_BUILT,
            untrusted=anything,
        ),
    )
    llama_ctx_max: str = field(
        default="",
        metadata=declare(
            "LLAMA_CTX_MAX",
            "Its context length.",
            arrives_later=USE_LLAMA_SERVER,
            untrusted=anything,
        ),
    )
    llama_threads_num: str = field(
        default="",
        metadata=declare(
            "LLAMA_THREADS_NUM", "Its threads.", arrives_later=USE_LLAMA_SERVER, untrusted=anything
        ),
    )
    llama: bool = field(
        default=False,
        metadata=declare(
            "-l --llama", "Refused: says how to use a llama.cpp server.", parse=parse_switch
        ),
    )
    gpt_4: bool = field(
        default=False,
        metadata=declare(
            "-4 --gpt-4", "Refused: says what took the place of gpt-4.", parse=parse_switch
        ),
    )

    @property
    def effective_result_store(self) -> str:
        """What `auto` means here: as in the original, a store whose variables are set is the one
        that is meant."""
        if self.result_store != "auto":
            return self.result_store
        if self.weaviate_url or self.weaviate_use_embedded:
            return "weaviate"
        return "pinecone" if self.pinecone_api_key else "chroma"

    @property
    def pinecone_place(self) -> tuple[str, str]:
        """Cloud and region of an index that is made."""
        region, _, cloud = self.pinecone_environment.rpartition("-")
        if cloud not in ("aws", "gcp", "azure"):
            region, cloud = self.pinecone_environment, ""
        return self.pinecone_cloud or cloud or "aws", self.pinecone_region or region or "us-east-1"

    @property
    def proxies(self) -> Proxies:
        return Proxies(
            http=self.http_proxy.reveal(),
            https=self.https_proxy.reveal(),
            exceptions=split_exceptions(self.no_proxy),
        )

    @property
    def effective_embedding_model(self) -> str:
        """The named one; else OpenAI's where its key surely fits; else the built-in one. Nothing is
        sent to an endpoint nobody named."""
        if self.embedding_model:
            return self.embedding_model
        asks_openai = (
            self.openai_api_key
            and not self.openai_base_url
            and self.llm_model not in MODELS_WITHOUT_ENDPOINT
        )
        return OPENAI_EMBEDDING_MODEL if asks_openai else LOCAL_EMBEDDING_MODEL

    @property
    def effective_log_file(self) -> Path:
        return self.log_file or self.home / "babyagi.log"


def declared_fields() -> Mapping[str, Declared]:
    """What each field of `Settings` declares, by field name, in order."""
    return {
        found.name: found.metadata["declared"]
        for found in fields(Settings)
        if "declared" in found.metadata
    }
