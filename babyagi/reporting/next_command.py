"""What a person is told when an objective has ended: why, and the command to type next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from babyagi.tasks import Limits, Objective, ObjectiveStatus, Role, StopReason

REHEARSED = (
    "nothing is left to do; the check was rehearsed as well and only compared words, so read "
    "whether this answers the question"
)
NOT_REHEARSED = (
    "the rehearsal cannot answer this: it understands nothing, and only quotes lines that share "
    "words with a question"
)
UNCHECKED = (
    "nothing is left to do, and no check could say which parts of the objective are answered"
)


# sets another model for planning and checks, in the environment of the command that follows
USE_OTHER_CHECKER = "BABYAGI_ROLE_MODELS=creation=MODEL"


class Need(StrEnum):
    """What an objective needs from a person before it can continue."""

    NOTHING = "nothing"  # it is over
    RESUME = "resume"  # it has not ended
    REPORT = "report"  # it ended without a report
    ANSWERS = "answers"
    LIMIT = "limit"  # a higher limit
    TASK = "task"  # a new task for what is not answered
    MODEL = "model"  # a language model: this was a rehearsal
    CHECKER = "checker"  # a model that can check: no reply of this one says what is answered
    RETRY = "retry"  # another try of a task that was given up
    LEAVE = "leave"  # permission to go on: no task was given up, and no limit need be raised


@dataclass(frozen=True, slots=True, kw_only=True)
class NextCommand:
    """The command that a person types next, and its reason (`need`). If `command` ends with an
    option that lacks its value, `value` is that value. `resume` is the command that continues the
    objective afterwards."""

    need: Need
    command: str
    value: str = ""
    resume: str


def say_stop(objective: Objective) -> str:
    """Return why the objective ended, after "it stopped:", and no more than was checked."""
    reason = objective.stop_reason or StopReason.FAILED
    is_rehearsal = _is_rehearsal(objective)
    if is_rehearsal and reason in (StopReason.FINISHED, StopReason.OBJECTIVE_MET):
        return REHEARSED
    if is_rehearsal and reason is StopReason.UNMET:
        return NOT_REHEARSED
    is_unchecked = reason is StopReason.UNMET and not objective.checks.missing
    return UNCHECKED if is_unchecked else reason.words


def next_command(objective: Objective, *, has_dead: bool, has_report: bool) -> NextCommand:
    """Return the command that continues the objective.

    Args:
        has_dead: one of its tasks was given up.
        has_report: its report is written, or is being written.
    """
    here = f"--objective {objective.id}"
    need = _find_need(objective, has_dead=has_dead, has_report=has_report)
    command, value = f"babyagi resume {here}", ""
    resume = command
    match need:
        case Need.ANSWERS:
            command = "babyagi inbox"
        case Need.LIMIT:
            name = (objective.stop_reason or "").removeprefix("limit:")
            option, value = raise_limit(objective.spec.limits, name)
            command = f"babyagi extend {here} {option}"
        case Need.MODEL:
            asked = quoted([objective.spec.text, *objective.spec.further][-1])
            command = resume = f"LLM_MODEL=MODEL babyagi run {asked}"
        case Need.CHECKER:
            command = f"babyagi extend {here} --max-tasks {_usable_max_tasks(objective)}"
            resume = f"{USE_OTHER_CHECKER} {resume} --use-my-model"
        case Need.TASK:
            command = f'babyagi tasks add {here} "what would answer what is missing"'
        case Need.RETRY:
            command = f"babyagi tasks retry TASK {here}"
        case Need.LEAVE:
            command = f"babyagi extend {here} --max-tasks {_usable_max_tasks(objective)}"
    return NextCommand(need=need, command=command, value=value, resume=resume)


def _usable_max_tasks(objective: Objective) -> int:
    """Return the objective's limit of tasks, raised to what `extend` accepts if it is used up."""
    most = objective.spec.limits.max_tasks
    return max(most, objective.n_begun + 1) if most else 0


def quoted(text: str) -> str:
    """Return the text quoted as one word for a shell."""
    escaped = "".join(f"\\{one}" if one in '"\\$`' else one for one in text)
    return f'"{escaped}"'


def _find_need(objective: Objective, *, has_dead: bool, has_report: bool) -> Need:
    if objective.status is not ObjectiveStatus.ENDED:
        return Need.RESUME
    if (objective.stop_reason or "").startswith("limit:"):
        return Need.LIMIT
    if objective.stop_reason is StopReason.WAITING:
        return Need.ANSWERS
    if not has_report:
        return Need.REPORT
    if objective.stop_reason is StopReason.UNMET and _is_rehearsal(objective):
        return Need.MODEL
    if objective.stop_reason is StopReason.UNMET:
        return Need.TASK if objective.checks.missing else Need.CHECKER
    if objective.stop_reason in (StopReason.STALLED, StopReason.FAILED):
        return Need.RETRY if has_dead else Need.LEAVE
    return Need.NOTHING


def _is_rehearsal(objective: Objective) -> bool:
    return objective.spec.model_by_role[Role.CREATION] == "rehearsal"


def raise_limit(limits: Limits, name: str) -> tuple[str, str]:
    """Return the option that sets the limit of this name (`tasks`, `cost`, …), and as its value
    twice the present limit."""
    value = {
        "tasks": f"{2 * limits.max_tasks}",
        "calls": f"{2 * limits.max_calls}",
        "tokens": f"{2 * limits.max_tokens}",
        "cost": f"{2 * limits.max_cost_usd:g}",
        "time": f"{int(2 * limits.max_time_s)}s",
    }[name]
    return f"--max-{name}", value
