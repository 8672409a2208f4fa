"""The settings that describe an objective and the model that is asked; most are frozen with the
objective when it begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from babyagi.errors import SettingsError
from babyagi.settings.values import (
    Secret,
    anything,
    declare,
    lower_limit,
    names_of,
    number,
    parse_duration_s,
    parse_path,
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
NO_SECRET = Secret()
_DIALECTS = ("auto", "chat", "responses")
_PROTOCOLS = ("auto", "native", "json", "text")
_APPROVALS = ("once", "none")
_MEMORIES = ("objective", "shared")
_PLANNINGS = ("separate", "combined")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveFields:
    """What is to be done, by which model, and how much of it."""

    objective: str = field(
        default="",
        metadata=declare(
            "OBJECTIVE",
            "What is to be reached.",
            parse=parse_text,
            default_text="none",
            section="The objective",
            untrusted=anything,
        ),
    )
    initial_task: str = field(
        default="Develop a task list",
        metadata=declare(
            "INITIAL_TASK FIRST_TASK -t --task",
            "The first task of the list.",
            parse=parse_text,
            untrusted=anything,
        ),
    )
    instance_name: str = field(
        default="babyagi",
        metadata=declare(
            "INSTANCE_NAME BABY_NAME -n --name",
            "Tells objectives of the same text and first task apart.",
            untrusted=anything,
        ),
    )
    files: Path | None = field(
        default=None,
        metadata=declare(
            "BABYAGI_FILES --files",
            "The folder that tasks may read.",
            parse=parse_path,
            metavar="FOLDER",
            default_text="none, and no tool on files is offered",
        ),
    )
    tools: tuple[str, ...] = field(
        default=(),
        metadata=declare(
            "BABYAGI_TOOLS --tools",
            "More tools that tasks may use: calculator, write_file.",
            parse=names_of("calculator", "write_file"),
            metavar="NAMES",
            default_text="those that read the folder, if there is one",
        ),
    )
    ask: bool = field(
        default=False,
        metadata=declare(
            "BABYAGI_ASK",
            "Whether the model may ask you questions; a task waits for the answer.",
            parse=parse_switch,
        ),
    )
    approve: str = field(
        default="once",
        metadata=declare(
            "BABYAGI_APPROVE",
            (
                "Which tool calls wait for your approval: those that must not be repeated "
                "(once), or none."
            ),
            choices=_APPROVALS,
        ),
    )
    memory: str = field(
        default="objective",
        metadata=declare(
            "BABYAGI_MEMORY --memory",
            (
                "Whose results a task may be given: those of its objective, or those of the "
                "task store's other objectives as well."
            ),
            choices=_MEMORIES,
        ),
    )

    planning: str = field(
        default="separate",
        metadata=declare(
            "BABYAGI_PLANNING --planning",
            (
                "Who proposes new tasks: an agent of its own (separate), or the execution "
                "agent at the end of its result (combined)."
            ),
            choices=_PLANNINGS,
            untrusted=anything,
        ),
    )

    llm_model: str = field(
        default=DEFAULT_MODEL,
        metadata=declare(
            "LLM_MODEL OPENAI_API_MODEL --model",
            "The model that is asked; `human` asks you, `rehearsal` needs no key and no network.",
            metavar="MODEL",
            section="The model",
            untrusted=anything,
        ),
    )
    model_execution: str = field(
        default="",
        metadata=declare(
            "BABYAGI_MODEL_EXECUTION",
            "The model that carries tasks out.",
            default_text="LLM_MODEL",
            untrusted=anything,
        ),
    )
    model_creation: str = field(
        default="",
        metadata=declare(
            "BABYAGI_MODEL_CREATION",
            "The model that proposes new tasks.",
            default_text="LLM_MODEL",
            untrusted=anything,
        ),
    )
    model_prioritization: str = field(
        default="",
        metadata=declare(
            "BABYAGI_MODEL_PRIORITIZATION",
            "The model that orders the list.",
            default_text="LLM_MODEL",
            untrusted=anything,
        ),
    )
    model_report: str = field(
        default="",
        metadata=declare(
            "BABYAGI_MODEL_REPORT",
            "The model that writes the report.",
            default_text="LLM_MODEL",
            untrusted=anything,
        ),
    )
    openai_api_key: Secret = field(
        default=NO_SECRET,
        metadata=declare(
            "OPENAI_API_KEY",
            "The key of the endpoint. Local servers mostly need none.",
            parse=parse_secret,
            default_text="none",
            key_for=("openai_base_url", "embedding_base_url"),
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
            untrusted=anything,
        ),
    )
    dialect: str = field(
        default="auto",
        metadata=declare(
            "BABYAGI_DIALECT",
            "How the endpoint is spoken to: Chat Completions or Responses.",
            choices=_DIALECTS,
            untrusted=anything,
        ),
    )
    protocol: str = field(
        default="auto",
        metadata=declare(
            "BABYAGI_PROTOCOL",
            "How tools are called: in fields of their own, as JSON, or in labelled text.",
            choices=_PROTOCOLS,
            untrusted=anything,
        ),
    )
    model_timeout_s: float = field(
        default=120.0,
        metadata=declare(
            "BABYAGI_MODEL_TIMEOUT_S",
            "Seconds that one model call may take.",
            parse=seconds(1, 86_400),
            untrusted=lower_limit,
        ),
    )
    max_output_tokens: int = field(
        default=2000,
        metadata=declare(
            "BABYAGI_MAX_OUTPUT_TOKENS",
            "The longest answer that is asked for, in tokens.",
            parse=whole(16),
            untrusted=lower_limit,
        ),
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
            "BABYAGI_MAX_TASKS --max-tasks",
            "Tasks that may be carried out.",
            parse=whole(0),
            metavar="N",
            section="Limits (0 = none)",
            untrusted=lower_limit,
        ),
    )
    max_calls: int = field(
        default=0,
        metadata=declare(
            "BABYAGI_MAX_CALLS --max-calls",
            "Model calls that may be made.",
            parse=whole(0),
            metavar="N",
            untrusted=lower_limit,
        ),
    )
    max_tokens: int = field(
        default=2_000_000,
        metadata=declare(
            "BABYAGI_MAX_TOKENS --max-tokens",
            "Tokens that may be used, prompts and answers together.",
            parse=whole(0),
            metavar="N",
            untrusted=lower_limit,
        ),
    )
    max_cost_usd: float = field(
        default=1.0,
        metadata=declare(
            "BABYAGI_MAX_COST_USD --max-cost",
            "US dollars that may be spent.",
            parse=number(0, 1e9, "a number of US dollars"),
            metavar="USD",
            untrusted=lower_limit,
        ),
    )
    max_time_s: float = field(
        default=7200.0,
        metadata=declare(
            "BABYAGI_MAX_TIME_S --max-time",
            "Time that a run may take, as 90s, 30m or 1h30m; pauses do not count.",
            parse=parse_duration_s,
            metavar="TIME",
            untrusted=lower_limit,
        ),
    )
    max_failures: int = field(
        default=3,
        metadata=declare(
            "BABYAGI_MAX_FAILURES",
            "Failed tries after which a task is given up.",
            parse=whole(1, 100),
            untrusted=lower_limit,
        ),
    )
    max_new_tasks: int = field(
        default=10,
        metadata=declare(
            "BABYAGI_MAX_NEW_TASKS",
            "New tasks that one result may bring.",
            parse=whole(1, 100),
            untrusted=lower_limit,
        ),
    )
    max_depth: int = field(
        default=0,
        metadata=declare(
            "BABYAGI_MAX_DEPTH",
            "How far from the first task a task may lie, counted in proposals; 0 for no bound.",
            parse=whole(0, 100_000),
            untrusted=lower_limit,
        ),
    )
    context_tokens: int = field(
        default=4000,
        metadata=declare(
            "BABYAGI_CONTEXT_TOKENS",
            "The most tokens of earlier results that a task is given.",
            parse=whole(0),
            untrusted=lower_limit,
        ),
    )
    # a person set max_cost_usd, so an unknown price is a fault; said by the loader
    cost_limit_is_explicit: bool = False
    # a person named a model, so a worker whose objective has another one says so; as above
    model_is_explicit: bool = False

    def require_objective(self) -> str:
        """The objective's text.

        Raises:
            SettingsError: there is none; only a run needs one.
        """
        if not self.objective:
            raise SettingsError(
                "there is no objective",
                fix=(
                    'babyagi run "what is to be reached", or OBJECTIVE=… in the environment or .env'
                ),
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
