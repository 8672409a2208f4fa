"""The execution agent: carries one task out with a model and tools, and returns a result or what is
lacking for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from babyagi.agents.creation import split_combined
from babyagi.agents.listed import list_known
from babyagi.agents.outcomes import Outcome, find_fault
from babyagi.agents.prompting import Field, build_messages, load_prompt, say
from babyagi.agents.replies import to_line, visible
from babyagi.errors import MalformedReplyError
from babyagi.journal import Journal
from babyagi.llm.prompt import Message
from babyagi.react.executor import NO_ANSWER, Executor
from babyagi.react.protocols.base import fill
from babyagi.react.steps import AgentBounds, Run, Stopped
from babyagi.tasks import Passage, Planning, Task, TaskName, make_passage
from babyagi.text import disarm
from babyagi.tools.base import Tool
from babyagi.tools.recall import RECALL

NO_REASON = "it did not say what"


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
        gone: the tasks that this one depends on and that found nothing, one line each;
            `gone_sources` is what these lines were made from.
        last_try: what the last try found, and what it lacked or what to do otherwise.
        is_last_try: whether a reply of unusual form is kept, because no further try may follow.
        last_sources: what earlier tries read from outside.
        known: the other tasks, shown if the agent also plans.
        max_new_tasks: how many tasks it may propose if it also plans.
        texts: texts of the folder, for the task that answers the objective itself.
        memory: what the agent remembers, as (label, passage).
    """

    objective: Passage
    excerpts: tuple[Excerpt, ...]
    today: date
    gone: tuple[str, ...] = ()
    gone_sources: tuple[str, ...] = ()
    last_try: str = ""
    is_last_try: bool = False
    last_sources: tuple[str, ...] = ()
    planning: Planning = Planning.SEPARATE
    known: tuple[TaskName, ...] = ()
    max_new_tasks: int = 10
    texts: tuple[Passage, ...] = ()
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
    """Carry out the task and return its outcome.

    Raises:
        MalformedReplyError: the task was not carried out: by their form, the model's replies or
            calls were unusable.
        Whatever else `Executor.run` raises.
    """
    messages = _build_messages(task, context, has_tools=any(tool.name != RECALL for tool in tools))
    executor = Executor(
        tools=tools, calls=journal, protocol=protocol, bounds=bounds, says_lacking=True
    )
    run = await executor.run(messages)
    outcome = _read(run, task, context, messages)
    return replace(outcome, has_fallen_back=executor.has_fallen_back)


def _show_name(task: Task) -> Passage:
    text, (origin, *others) = f"{task.id}: {task.name}", task.origins
    is_of_file = origin.startswith("file:") and not others  # no model changed the words
    return Passage(text=text, origin=origin) if is_of_file else make_passage(text, task.origins)


def _build_messages(task: Task, context: Context, *, has_tools: bool) -> tuple[Message, ...]:
    is_combined = context.planning is Planning.COMBINED
    at_most = say("at_most", n=str(context.max_new_tasks))
    hints = [say("tools_hint")] * has_tools + [fill("memory")] * bool(context.memory)
    last_try = [context.last_try] if context.last_try else []
    objective = [("objective", context.objective)]
    named = [("task", _show_name(task))]
    return build_messages(
        "execution",
        {
            "duty": say("duty_answer" if task.is_answer else "duty_task"),
            "hints": "\n".join(hints),
            "planning": f"{load_prompt('combined')} {at_most}" if is_combined else "",
            "objective": [] if task.is_answer else objective,
            "texts": [("file", text) for text in context.texts],
            "results": [*(excerpt.to_labelled() for excerpt in context.excerpts), *context.memory],
            "gone": _lines("not there", context.gone, context.gone_sources),
            "last_try": _lines("last try", last_try, context.last_sources),
            "known": list_known(context.known) if is_combined else [],
            "task": objective if task.is_answer else named,
            "ask": _ask(task, context),
            "date": context.today.isoformat(),
        },
    )


def _ask(task: Task, context: Context) -> str:
    if not task.is_answer:
        return say("ask_task")
    return say("ask_from_texts" if context.texts else "ask_answer")


def _lines(label: str, lines: Sequence[str], sources: tuple[str, ...] = ()) -> Field:
    return (
        [(label, Passage(text="\n".join(lines), origin="model", sources=sources))] if lines else []
    )


def _read(run: Run[str], task: Task, context: Context, messages: Sequence[Message]) -> Outcome:
    """Return the outcome of the agent's run.

    Raises:
        MalformedReplyError: the task was not carried out.
    """
    if run.stopped is Stopped.MAX_ERRORS:
        unread = visible(run.unread)
        if not (context.is_last_try and unread):
            raise MalformedReplyError(run.detail)
        return Outcome(text=f"{unread}\n\n{say('unusual')}", origins=run.origins)
    if run.text == NO_ANSWER:
        raise MalformedReplyError(say("no_answer", why=run.detail))
    outcome = _split(run, task, context)
    fault = find_fault(
        outcome.text, task_name=disarm(task.name), messages=messages, asked=_ask(task, context)
    )
    is_lack = bool(outcome.lack)
    if fault and not is_lack and not (context.is_last_try and outcome.text.strip()):
        raise MalformedReplyError(say("no_form", fault=fault))
    note = say("unusual") if fault and not is_lack else ""
    is_cut = bool(run.steps) and run.steps[-1].is_cut and bool(outcome.text)
    notes = [outcome.text, note, say("cut_off") if is_cut else ""]
    return replace(
        outcome,
        text="" if fault and is_lack else "\n\n".join(filter(None, notes)),
        origins=run.origins,
    )


def _split(run: Run[str], task: Task, context: Context) -> Outcome:
    """Return the parts of the last reply: the answer, what it lacks, and what it planned."""
    lack = to_line(run.detail) or NO_REASON if run.stopped is Stopped.FAIL else ""
    if context.planning is not Planning.COMBINED:
        return Outcome(text=visible(run.text), lack=lack)
    text, plan, lacks, after = split_combined(
        run.text,
        known_ids={task.id, *(name.id for name in context.known)},
        max_tasks=context.max_new_tasks,
    )
    return Outcome(text=text, lack=lack or lacks, plan=plan, after=after)
