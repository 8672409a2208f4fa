"""Every setting, declared once: name, type, default, variables, flags and help of each.

What must hold between two settings is checked where they are read, in `load.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from babyagi.errors import SettingsError
from babyagi.settings.values import (
    Declared,
    Secret,
    declare,
    default_home,
    number,
    parse_duration_s,
    parse_notify,
    parse_path,
    parse_paths,
    parse_presence,
    parse_secret,
    parse_switch,
    parse_text,
    parse_url,
    seconds,
    whole,
)

if TYPE_CHECKING:
    from babyagi.tasks import Limits, Role

DEFAULT_MODEL = "gpt-6-luna"
OPENAI_EMBEDDING_MODEL = "text-embedding-3-small"
LOCAL_EMBEDDING_MODEL = "hash"
MODELS_WITHOUT_ENDPOINT = ("human", "rehearsal")
NO_SECRET = Secret()
USE_LLAMA_SERVER = "models are not loaded into this program; start a llama.cpp server and set OPENAI_BASE_URL=http://127.0.0.1:8080/v1"
_TOGETHER = "joining workers arrive in a later version; this run works alone"
_WEAVIATE = "results go to Chroma; Weaviate arrives in a later version"
_PINECONE = "results go to Chroma; Pinecone arrives in a later version"
_DIALECTS = ("auto", "chat", "responses")
_APPROVALS = ("once", "none")
_LOG_LEVELS = ("debug", "info", "warning", "error")
_MODES = ("none", "local", "distributed")
_RESULT_STORES = ("chroma", "builtin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a person can set. Each field stands in the order and with the words of the reference page."""

    objective: str = field(
        default="", metadata=declare("OBJECTIVE", "What is to be reached.", parse=parse_text, default_text="none", section="The objective")
    )
    initial_task: str = field(
        default="Develop a task list",
        metadata=declare("INITIAL_TASK FIRST_TASK -t --task", "The first task of the list.", parse=parse_text),
    )
    instance_name: str = field(
        default="babyagi", metadata=declare("INSTANCE_NAME BABY_NAME -n --name", "Tells objectives of the same text and first task apart.")
    )
    files: Path | None = field(
        default=None,
        metadata=declare(
            "BABYAGI_FILES --files",
            "The folder that tasks may read.",
            parse=parse_path,
            metavar="FOLDER",
            default_text="none, and no tool is offered",
        ),
    )

    ask: bool = field(
        default=False,
        metadata=declare("BABYAGI_ASK", "Whether the model may ask you questions; a task waits for the answer.", parse=parse_switch),
    )
    approve: str = field(
        default="once",
        metadata=declare("BABYAGI_APPROVE", "Which tool calls wait for your approval.", choices=_APPROVALS),
    )

    llm_model: str = field(
        default=DEFAULT_MODEL,
        metadata=declare(
            "LLM_MODEL OPENAI_API_MODEL --model",
            "The model that is asked; `human` asks you, `rehearsal` needs no key and no network.",
            metavar="MODEL",
            section="The model",
        ),
    )
    model_execution: str = field(
        default="", metadata=declare("BABYAGI_MODEL_EXECUTION", "The model that carries tasks out.", default_text="LLM_MODEL")
    )
    model_creation: str = field(
        default="", metadata=declare("BABYAGI_MODEL_CREATION", "The model that proposes new tasks.", default_text="LLM_MODEL")
    )
    model_prioritization: str = field(
        default="", metadata=declare("BABYAGI_MODEL_PRIORITIZATION", "The model that orders the list.", default_text="LLM_MODEL")
    )
    model_report: str = field(
        default="", metadata=declare("BABYAGI_MODEL_REPORT", "The model that writes the report.", default_text="LLM_MODEL")
    )
    openai_api_key: Secret = field(
        default=NO_SECRET,
        metadata=declare(
            "OPENAI_API_KEY", "The key of the endpoint. Local servers mostly need none.", parse=parse_secret, default_text="none"
        ),
    )
    openai_base_url: str = field(
        default="",
        metadata=declare(
            "OPENAI_BASE_URL OPENAI_API_BASE",
            "Any OpenAI-compatible server: Ollama, vLLM, llama.cpp, LM Studio.",
            parse=parse_url,
            metavar="URL",
            default_text="OpenAI",
        ),
    )
    openai_temperature: float | None = field(
        default=None,
        metadata=declare(
            "OPENAI_TEMPERATURE",
            "0 to 2. An empty value sends none.",
            parse=number(0, 2),
            takes_empty=True,
            default_text="none is sent; newer models refuse any but their own",
        ),
    )
    dialect: str = field(
        default="auto",
        metadata=declare("BABYAGI_DIALECT", "How the endpoint is spoken to: Chat Completions or Responses.", choices=_DIALECTS),
    )
    model_timeout_s: float = field(
        default=120.0, metadata=declare("BABYAGI_MODEL_TIMEOUT_S", "Seconds that one model call may take.", parse=seconds(1, 86_400))
    )
    max_output_tokens: int = field(
        default=2000, metadata=declare("BABYAGI_MAX_OUTPUT_TOKENS", "The longest answer that is asked for, in tokens.", parse=whole(16))
    )
    price_in: float | None = field(
        default=None,
        metadata=declare(
            "BABYAGI_PRICE_IN",
            "US dollars for a million prompt tokens.",
            parse=number(0, 1e6, "a number of US dollars"),
            default_text="looked up by model name",
        ),
    )
    price_out: float | None = field(
        default=None,
        metadata=declare(
            "BABYAGI_PRICE_OUT",
            "US dollars for a million completion tokens.",
            parse=number(0, 1e6, "a number of US dollars"),
            default_text="looked up by model name",
        ),
    )

    max_tasks: int = field(
        default=50,
        metadata=declare(
            "BABYAGI_MAX_TASKS --max-tasks", "Tasks that may be carried out.", parse=whole(0), metavar="N", section="Limits (0 = none)"
        ),
    )
    max_calls: int = field(
        default=0, metadata=declare("BABYAGI_MAX_CALLS --max-calls", "Model calls that may be made.", parse=whole(0), metavar="N")
    )
    max_tokens: int = field(
        default=2_000_000,
        metadata=declare(
            "BABYAGI_MAX_TOKENS --max-tokens", "Tokens that may be used, prompts and answers together.", parse=whole(0), metavar="N"
        ),
    )
    max_cost_usd: float = field(
        default=1.0,
        metadata=declare(
            "BABYAGI_MAX_COST_USD --max-cost",
            "US dollars that may be spent.",
            parse=number(0, 1e9, "a number of US dollars"),
            metavar="USD",
        ),
    )
    max_time_s: float = field(
        default=7200.0,
        metadata=declare(
            "BABYAGI_MAX_TIME_S --max-time",
            "Time that a run may take, as 90s, 30m or 1h30m; pauses do not count.",
            parse=parse_duration_s,
            metavar="TIME",
        ),
    )
    max_failures: int = field(
        default=3, metadata=declare("BABYAGI_MAX_FAILURES", "Failed tries after which a task is given up.", parse=whole(1, 100))
    )
    max_new_tasks: int = field(
        default=10, metadata=declare("BABYAGI_MAX_NEW_TASKS", "New tasks that one result may bring.", parse=whole(1, 100))
    )
    max_depth: int = field(
        default=20,
        metadata=declare("BABYAGI_MAX_DEPTH", "How far from the first task a task may lie, counted in proposals.", parse=whole(1, 1000)),
    )
    context_tokens: int = field(
        default=1200, metadata=declare("BABYAGI_CONTEXT_TOKENS", "Tokens of earlier results that a task is given.", parse=whole(0))
    )
    cost_limit_is_explicit: bool = False  # a person set max_cost_usd, so an unknown price is a fault; said by the loader

    concurrency: int = field(
        default=4,
        metadata=declare(
            "BABYAGI_CONCURRENCY --concurrency", "Tasks that run at once.", parse=whole(1, 64), metavar="N", section="Working"
        ),
    )
    lease_s: float = field(
        default=30.0,
        metadata=declare("BABYAGI_LEASE_S", "Seconds after which the tasks of a silent worker go to others.", parse=seconds(1, 86_400)),
    )
    drain_s: float = field(
        default=10.0,
        metadata=declare(
            "BABYAGI_DRAIN_S", "Seconds that running tasks have to finish when the program is told to stop.", parse=seconds(0, 86_400)
        ),
    )
    notify: Secret = field(
        default=NO_SECRET,
        metadata=declare(
            "BABYAGI_NOTIFY", "A command or address that is told when a run waits or ends.", parse=parse_notify, default_text="none"
        ),
    )
    worker_name: str = field(
        default="", metadata=declare("BABYAGI_WORKER_NAME", "The name of this worker in lists.", default_text="host and process")
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
    results_store_name: str = field(
        default="babyagi", metadata=declare("RESULTS_STORE_NAME TABLE_NAME", "The name of the collection that holds the results.")
    )
    result_store: str = field(
        default="chroma",
        metadata=declare(
            "BABYAGI_RESULT_STORE",
            "What finds earlier results: embedded Chroma, or the built-in index.",
            choices=_RESULT_STORES,
        ),
    )
    embedding_model: str = field(
        default="",
        metadata=declare(
            "BABYAGI_EMBEDDING_MODEL EMBEDDING_MODEL",
            f"The model that makes vectors; `{LOCAL_EMBEDDING_MODEL}` is built in and needs no key and no download.",
            metavar="MODEL",
            default_text=f"{OPENAI_EMBEDDING_MODEL} with a key for OpenAI, else {LOCAL_EMBEDDING_MODEL}",
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
    log_file: Path | None = field(
        default=None,
        metadata=declare("BABYAGI_LOG_FILE", "The log file.", parse=parse_path, metavar="FILE", default_text="babyagi.log in BABYAGI_HOME"),
    )
    log_level: str = field(default="info", metadata=declare("BABYAGI_LOG_LEVEL", "The least that is logged.", choices=_LOG_LEVELS))
    no_color: bool = field(
        default=False,
        metadata=declare("NO_COLOR --no-color", "Any value: no colour on a terminal (https://no-color.org).", parse=parse_presence),
    )

    extra_env_files: tuple[Path, ...] = field(
        default=(),
        metadata=declare(
            "DOTENV_EXTENSIONS -e --env",
            "More files like .env, separated by blanks; a later one wins.",
            parse=parse_paths,
            takes_many=True,
            metavar="FILE",
            default_text="none",
            section="Reading settings",
        ),
    )
    enable_command_line_args: bool = field(
        default=True, metadata=declare("ENABLE_COMMAND_LINE_ARGS", "false refuses every flag that is a setting.", parse=parse_switch)
    )

    cooperative_mode: str = field(
        default="none",
        metadata=declare(
            "COOPERATIVE_MODE -m --mode",
            "Whether several workers share an objective.",
            choices=_MODES,
            arrives_later=_TOGETHER,
            section="From the original, not all built yet",
        ),
    )
    join_existing_objective: bool = field(
        default=False,
        metadata=declare(
            "JOIN_EXISTING_OBJECTIVE -j --join",
            "Work on an objective that another worker started.",
            parse=parse_switch,
            arrives_later=_TOGETHER,
        ),
    )
    weaviate_url: str = field(default="", metadata=declare("WEAVIATE_URL", "A Weaviate server.", arrives_later=_WEAVIATE))
    weaviate_api_key: Secret = field(
        default=NO_SECRET, metadata=declare("WEAVIATE_API_KEY", "Its key.", parse=parse_secret, arrives_later=_WEAVIATE)
    )
    weaviate_use_embedded: bool = field(
        default=False, metadata=declare("WEAVIATE_USE_EMBEDDED", "Weaviate in this process.", parse=parse_switch, arrives_later=_WEAVIATE)
    )
    pinecone_api_key: Secret = field(
        default=NO_SECRET, metadata=declare("PINECONE_API_KEY", "The key of Pinecone.", parse=parse_secret, arrives_later=_PINECONE)
    )
    pinecone_environment: str = field(
        default="", metadata=declare("PINECONE_ENVIRONMENT", "The region of Pinecone.", arrives_later=_PINECONE)
    )
    llama_model_path: str = field(default="", metadata=declare("LLAMA_MODEL_PATH", "A Llama model file.", arrives_later=USE_LLAMA_SERVER))
    llama_ctx_max: str = field(default="", metadata=declare("LLAMA_CTX_MAX", "Its context length.", arrives_later=USE_LLAMA_SERVER))
    llama_threads_num: str = field(default="", metadata=declare("LLAMA_THREADS_NUM", "Its threads.", arrives_later=USE_LLAMA_SERVER))
    llama: bool = field(default=False, metadata=declare("-l --llama", "Refused: says how to use a llama.cpp server.", parse=parse_switch))
    gpt_4: bool = field(default=False, metadata=declare("-4 --gpt-4", "Refused: says what took the place of gpt-4.", parse=parse_switch))

    def require_objective(self) -> str:
        """The objective's text.

        Raises:
            SettingsError: there is none; only a run needs one.
        """
        if not self.objective:
            raise SettingsError(
                "there is no objective",
                fix='babyagi run "what is to be reached", or OBJECTIVE=… in the environment or .env',
                guide="settings",
            )
        return self.objective

    @property
    def limits(self) -> Limits:
        from babyagi.tasks import Limits

        return Limits(
            max_tasks=self.max_tasks,
            max_calls=self.max_calls,
            max_tokens=self.max_tokens,
            max_cost_usd=self.max_cost_usd,
            max_time_s=self.max_time_s,
        )

    @property
    def model_by_role(self) -> dict[Role, str]:
        """The model of every role that asks one; vectors have `effective_embedding_model`."""
        from babyagi.tasks import Role

        return {
            Role.EXECUTION: self.model_execution or self.llm_model,
            Role.CREATION: self.model_creation or self.llm_model,
            Role.PRIORITIZATION: self.model_prioritization or self.llm_model,
            Role.REPORT: self.model_report or self.llm_model,
        }

    @property
    def effective_embedding_model(self) -> str:
        """The named one; else OpenAI's where its key surely fits; else the built-in one. Nothing is sent to an endpoint nobody named."""
        if self.embedding_model:
            return self.embedding_model
        asks_openai = self.openai_api_key and not self.openai_base_url and self.llm_model not in MODELS_WITHOUT_ENDPOINT
        return OPENAI_EMBEDDING_MODEL if asks_openai else LOCAL_EMBEDDING_MODEL

    @property
    def effective_log_file(self) -> Path:
        return self.log_file or self.home / "babyagi.log"


def declared_fields() -> Mapping[str, Declared]:
    """What each field of `Settings` declares, by field name, in order."""
    return {found.name: found.metadata["declared"] for found in fields(Settings) if "declared" in found.metadata}
