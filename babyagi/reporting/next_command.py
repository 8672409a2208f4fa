"""What a person is told when an objective has ended: why, and the command to type next."""

from __future__ import annotations

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


def say_going_on(objective: Objective, *, has_dead: bool, has_report: bool, mark: str = "") -> str:
    """Return the commands that a person types to continue the objective; '' if nothing is left to
    continue.

    Args:
        has_dead: one of its tasks was given up.
        has_report: its report is written, or is being written.
        mark: stands before and after each command, such as a backtick in Markdown.
    """
    here, reason = f"--objective {objective.id}", objective.stop_reason
    resume = f"{mark}babyagi resume {here}{mark}"
    if objective.status is not ObjectiveStatus.ENDED:
        return resume
    if reason and reason.startswith("limit:"):
        raised = " ".join(raise_limit(objective.spec.limits, reason.removeprefix("limit:")))
        return f"{mark}babyagi extend {here} {raised}{mark}, then {resume}"
    if reason is StopReason.WAITING:
        return f"{mark}babyagi inbox{mark}, answer what it shows, then {resume}"
    if not has_report:
        return f"{resume}  (its report is still to be written)"
    if reason is StopReason.UNMET:
        return _say_after_unmet(objective, mark)
    if reason not in (StopReason.STALLED, StopReason.FAILED):
        return ""
    if has_dead:
        retry = f"{mark}babyagi tasks retry TASK {here}{mark}"
        return f"{retry} with the number of a dead task (babyagi tasks), then {resume}"
    return f"{mark}{_extend(objective)}{mark}, then {resume}"


def _say_after_unmet(objective: Objective, mark: str) -> str:
    """Return what helps where the objective is not met, or no check could say that it is."""
    resume = f"babyagi resume --objective {objective.id}"
    if _is_rehearsal(objective):
        asked = quoted([objective.spec.text, *objective.spec.further][-1])
        command = f"{mark}LLM_MODEL=MODEL babyagi run {asked}{mark}"
        return f"{command}, with a MODEL of yours, and {mark}--files{mark} as before"
    if objective.checks.missing:
        add = f"babyagi tasks add --objective {objective.id}"
        return f'{mark}{add} "what would answer what is missing"{mark}, then {mark}{resume}{mark}'
    checked = f"{mark}{USE_OTHER_CHECKER} {resume} --use-my-model{mark}"
    how = "with a MODEL that replies in JSON when it is asked to"
    return f"{mark}{_extend(objective)}{mark}, then {checked}, {how}"


def _extend(objective: Objective) -> str:
    """Return the command that lets the objective go on, with its limit of tasks raised to what is
    accepted if it is used up."""
    most = objective.spec.limits.max_tasks
    usable = max(most, objective.n_begun + 1) if most else 0
    return f"babyagi extend --objective {objective.id} --max-tasks {usable}"


def quoted(text: str) -> str:
    """Return the text quoted as one word for a shell."""
    escaped = "".join(f"\\{one}" if one in '"\\$`' else one for one in text)
    return f'"{escaped}"'


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
