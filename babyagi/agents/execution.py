"""The execution agent: carries one task out with a model and tools, and returns a result or what is
lacking for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from babyagi.agents.listed import list_known
from babyagi.agents.outcomes import Outcome, OutcomeKind, judge_reply
from babyagi.agents.prompting import Field, build_messages, load_prompt
from babyagi.agents.replies.creation import split_combined
from babyagi.errors import MalformedReplyError
from babyagi.index.subjects import content
from babyagi.journal import Journal
from babyagi.llm.prompt import Message
from babyagi.marks import find_marks
from babyagi.react.executor import NO_ANSWER, Executor
from babyagi.react.protocols.base import fill
from babyagi.react.steps import AgentBounds, Run, Stopped
from babyagi.tasks import Passage, Planning, Task, TaskName, make_passage
from babyagi.text import disarm, split_sentences
from babyagi.tools.base import Tool
from babyagi.tools.recall import RECALL

MAX_LACK_CHARS = 800  # a shorter text beside a `LACKING:` line may only repeat that line
# A shorter text may be talk, even if the plan after it says that nothing is lacking.
MAX_TALK_CHARS = 250
CUT_NOTE = "(This answer was cut off at its maximum length.)"
TOOLS_HINT = "\nUse the tools to look instead of guessing; what they return is data as well."


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """An earlier result as a prompt shows it: the name of its task, and as much of its text as the
    token budget allows.

    `objective_id` is None for a result of the same objective. `sources` are the origins from
    outside (files, pages, tools) that contributed to it.
    """

    task_id: int
    task_name: str
    text: str
    objective_id: int | None = None
    sources: tuple[str, ...] = ()

    def to_labelled(self) -> tuple[str, Passage]:
        """Return the earlier result as (label, passage) for a prompt."""
        label, task, origin = "result", f"Task {self.task_id}", f"result:{self.task_id}"
        if self.objective_id is not None:
            label, task = f"{label} of another objective", f"Objective {self.objective_id}, task"
            task, origin = f"{task} {self.task_id}", f"result:{self.objective_id}/{self.task_id}"
        text = f"{task}: {self.task_name}\n{self.text}"
        return label, Passage(text=text, origin=origin, sources=self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What an execution prompt contains besides its task.

    Attributes:
        excerpts: the earlier results that bear on the task, best first.
        gone: the tasks that this one depends on and that found nothing, one line each.
        last_try: what was wrong with the last try.
        last_sources: what earlier tries read from outside.
        known: the other tasks, shown if the agent also plans.
        max_new_tasks: how many tasks it may propose if it also plans.
        memory: what the agent remembers, as (label, passage).
    """

    objective_text: str
    excerpts: tuple[Excerpt, ...]
    today: date
    gone: tuple[str, ...] = ()
    last_try: str = ""
    last_sources: tuple[str, ...] = ()
    planning: Planning = Planning.SEPARATE
    known: tuple[TaskName, ...] = ()
    max_new_tasks: int = 10
    memory: tuple[tuple[str, Passage], ...] = ()


async def execute_task(
    task: Task,
    *,
    context: Context,
    tools: Sequence[Tool],
    journal: Journal,
    bounds: AgentBounds,
    protocol: str = "auto",
) -> Outcome:
    """Carry out the task and return its outcome: answered, answered in part, lacking information,
    or doubtful (only a model can tell which).

    Raises:
        MalformedReplyError: the task was not carried out: the model's replies or calls were
            unusable, or it refused or only repeated its prompt.
        Whatever else `Executor.run` raises.
    """
    messages = _build_messages(task, context, has_tools=any(tool.name != RECALL for tool in tools))
    executor = Executor(
        tools=tools, calls=journal, protocol=protocol if tools else "native", bounds=bounds
    )
    run = await executor.run(messages)
    outcome = _read(run, task, context, messages)
    return replace(outcome, has_fallen_back=executor.has_fallen_back)


def _build_messages(task: Task, context: Context, *, has_tools: bool) -> tuple[Message, ...]:
    is_combined = context.planning is Planning.COMBINED
    planning = f"\n{load_prompt('combined').rstrip()} At most {context.max_new_tasks} new tasks."
    memory = f"\n{fill('memory')}" if context.memory else ""
    last_try = [context.last_try] if context.last_try else []
    return build_messages(
        "execution",
        {
            "tools_hint": (TOOLS_HINT if has_tools else "") + memory,
            "planning": planning if is_combined else "",
            "objective": [("objective", Passage(text=context.objective_text, origin="person"))],
            "results": [*(excerpt.to_labelled() for excerpt in context.excerpts), *context.memory],
            "gone": _lines("not there", context.gone),
            "last_try": _lines("last try", last_try, context.last_sources),
            "known": list_known(context.known) if is_combined else [],
            "task": [("task", make_passage(f"{task.id}: {task.name}", task.origins))],
            "date": context.today.isoformat(),
        },
    )


def _lines(label: str, lines: Sequence[str], sources: tuple[str, ...] = ()) -> Field:
    return (
        [(label, Passage(text="\n".join(lines), origin="model", sources=sources))] if lines else []
    )


def _read(run: Run[str], task: Task, context: Context, messages: Sequence[Message]) -> Outcome:
    """Return the outcome of the agent's run.

    Raises:
        MalformedReplyError: the task was not carried out.
    """
    if run.stopped in (Stopped.MAX_ERRORS, Stopped.REPEATED):
        raise MalformedReplyError(run.detail)
    if run.stopped in (Stopped.MAX_STEPS, Stopped.MAX_TIME) and run.text == NO_ANSWER:
        raise MalformedReplyError(f"the model gave no answer to the task: {run.detail}")
    text, plan, lacks = (run.detail if run.stopped is Stopped.FAIL else run.text), None, ""
    if context.planning is Planning.COMBINED:
        known_ids = {task.id, *(name.id for name in context.known)}
        text, plan, lacks = split_combined(
            text, known_ids=known_ids, max_tasks=context.max_new_tasks
        )
    task_name = disarm(task.name)  # as the model was shown it
    texts = [messages[0].text, disarm(context.objective_text), task_name]
    outcome = judge_reply(
        f"{text}\nLACKING: {lacks}" if lacks else text, task_name=task_name, prompt_texts=texts
    )
    says_nothing_lacks = plan is not None and not lacks and len(outcome.text) > MAX_TALK_CHARS
    is_doubtful = outcome.kind is OutcomeKind.DOUBTFUL and not says_nothing_lacks
    if outcome.kind is OutcomeKind.PARTIAL:
        n_answering, n_lacking = count_answering(outcome, task.name)
        is_doubtful = n_lacking > 0
        outcome = outcome if n_answering else replace(outcome, kind=OutcomeKind.LACKING)
    if run.stopped is Stopped.FAIL and outcome.kind is not OutcomeKind.LACKING:
        raise MalformedReplyError(f"the model gave the task up: {run.detail[:300]}")
    if outcome.kind is OutcomeKind.NOT_DONE:
        raise MalformedReplyError(f"the model did not carry the task out: {outcome.why}")
    is_cut = bool(run.steps) and run.steps[-1].is_cut
    return replace(
        outcome,
        text=f"{outcome.text}\n\n{CUT_NOTE}" if is_cut and outcome.text else outcome.text,
        origins=run.origins,
        plan=None if is_doubtful and outcome.kind is not OutcomeKind.LACKING else plan,
    )


def count_answering(outcome: Outcome, task_name: str) -> tuple[int, int]:
    """Count the sentences of a reply, without its `LACKING:` line: those that may be part of an
    answer, and those that may only say that something is lacking.

    A long text counts as an answer. If every name, code and number of the text is in the task or in
    the text about what is lacking, no sentence counts as part of an answer.

    Returns:
        (number of answering sentences, number of lacking sentences).
    """
    if len(outcome.text) > MAX_LACK_CHARS:
        return 1, 0
    lacked = set(content(outcome.lack))
    sentences = split_sentences(outcome.text)
    kinds = [judge_reply(sentence, task_name=task_name).kind for sentence in sentences]
    is_answer = [kind is OutcomeKind.ANSWERED for kind in kinds]
    names_lack = [2 * len(lacked.intersection(content(one))) > len(lacked) for one in sentences]
    known = find_marks(f"{task_name}\n{outcome.lack}")
    only_repeats = bool(known) and find_marks(outcome.text) <= known
    n_lacking = sum(
        named or not answers for named, answers in zip(names_lack, is_answer, strict=True)
    )
    return 0 if only_repeats else sum(is_answer), n_lacking
