"""The report: the agent's answer from the results, between facts that the store knows.

What the person must be able to trust (why it stopped, what is dead, what is left, what it cost) is
written by the program; the model writes only the answer. Without a model (no money left, an outage)
the results themselves take its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from babyagi.agents.execution import Excerpt
from babyagi.agents.prompting import build_messages
from babyagi.errors import (
    BabyagiError,
    LeaseLostError,
    ObjectiveStoppedError,
    StoreUnavailableError,
    StoreUnusableError,
)
from babyagi.journal import Journal
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Prompt
from babyagi.next_command import Need, next_command
from babyagi.react.asking import ask, read_text
from babyagi.shapes import to_strict
from babyagi.tasks import (
    Objective,
    Passage,
    Result,
    Role,
    StopReason,
    Task,
    TaskStatus,
    find_sources,
)
from babyagi.text import clean, one_line, shorten

REHEARSAL_NOTICE = (
    "REHEARSAL: no language model was asked. The text below was put together from lines of "
    "the documents."
)

MAX_QUOTED_CHARS = 4000
MAX_LINE_CHARS = 300


async def write_answer(
    objective: Objective, *, excerpts: Sequence[Excerpt], journal: Journal, max_output_tokens: int
) -> str:
    """Return the model's answer to the objective, as Markdown. Raises as `ask`."""
    sources = find_sources(source for excerpt in excerpts for source in excerpt.sources)
    messages = build_messages(
        "report",
        {
            "objective": [("objective", Passage(text=objective.spec.text, origin="person"))],
            "stop": (objective.stop_reason or StopReason.FAILED).words,
            "missing": [
                (
                    "not answered",
                    Passage(
                        text="\n".join(objective.checks.missing), origin="model", sources=sources
                    ),
                )
            ]
            if objective.stop_reason is StopReason.UNMET and objective.checks.missing
            else [],
            "results": [excerpt.to_labelled() for excerpt in excerpts],
        },
    )
    prompt = Prompt(messages=messages, max_output_tokens=max_output_tokens)
    return clean(
        (
            await ask(journal, "report", prompt, role=Role.REPORT, read=read_text, takes_cut=True)
        ).value
    ).strip()


OUTPUT = "output/text"  # where the journal of the report keeps the answer as JSON
NO_OUTPUT = "output/none"  # and why there is none


async def write_output(
    objective: Objective, report: str, *, journal: Journal, read: Callable[[str], object]
) -> None:
    """Ask for what the report says as the JSON that a program wants, and keep it in the journal; or
    why there is none, which is no fault of the report.

    Args:
        read: raises `MalformedReplyError` for a text that is not what is wanted.
    """
    schema = objective.spec.output_schema or {}
    messages = build_messages(
        "output",
        {
            "objective": [("objective", Passage(text=objective.spec.text, origin="person"))],
            "report": [("report", Passage(text=report, origin="model"))],
            "schema": json.dumps(schema, ensure_ascii=False),
        },
    )

    def read_reply(completion: Completion) -> str:
        read(completion.text)
        return completion.text

    prompt = Prompt(messages=messages, schema_name="output", schema=to_strict(schema))
    try:
        asked = await ask(journal, "output", prompt, role=Role.REPORT, read=read_reply)
    except (LeaseLostError, ObjectiveStoppedError, StoreUnavailableError, StoreUnusableError):
        raise
    except BabyagiError as error:
        await journal.keep(NO_OUTPUT, error.what)
    else:
        await journal.keep(OUTPUT, asked.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What the model wrote of the report.

    `text` is empty when it wrote nothing, and `why_not` says why. `left_out` are results that it
    was not shown, because they did not fit.
    """

    text: str = ""
    why_not: str = ""
    left_out: tuple[Result, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """What a person should know beside the answer.

    `asked`: number and words of what they are asked. `bounds`: what a bound kept out, in words.
    `index_trouble`: why results do not get into the result store, empty when they do.
    """

    asked: Sequence[tuple[int, str]] = ()
    bounds: Sequence[str] = ()
    index_trouble: str = ""


def render_report(
    objective: Objective,
    *,
    written: Written,
    tasks: Sequence[Task],
    results: Sequence[Result],
    aside: Aside | None = None,
) -> str:
    """Return the whole report as Markdown.

    Args:
        written: the model's part; without a text the results are given in full.
        tasks: all of the objective's, in the list's order. results: in the order in which they were
            recorded.
    """
    aside = aside or Aside()
    is_rehearsal = objective.spec.model_by_role[Role.REPORT] == "rehearsal"
    parts = [
        f"# Report: {_one_line(objective.spec.text)}",
        f"> {REHEARSAL_NOTICE}" if is_rehearsal else "",
        ""
        if objective.stop_reason
        else f"> This objective has not ended: it is {objective.status}. This is what there "
        "is so far; "
        f"`babyagi resume --objective {objective.id}` goes on.",
        _render_missing(objective),
        _render_dead(tasks),
        _render_asked(objective, aside.asked),
        written.text or _render_results(results, written.why_not),
        _render_left_out(written.left_out) if written.text else "",
        "---",
        _render_facts(objective, tasks, index_trouble=aside.index_trouble),
        _render_bounds(aside.bounds),
        _render_list(
            "Not done",
            [
                task
                for task in tasks
                if task.status in (TaskStatus.QUEUED, TaskStatus.WAITING, TaskStatus.RUNNING)
            ],
        ),
        _render_list("Cancelled", [task for task in tasks if task.status is TaskStatus.CANCELLED]),
        _render_list(
            "Done",
            [task for task in tasks if task.status in (TaskStatus.DONE, TaskStatus.RECORDED)],
        ),
        f"Each task's result: `babyagi results --objective {objective.id}`. One task "
        "with its steps: "
        f"`babyagi show TASK --objective {objective.id}`.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _render_missing(objective: Objective) -> str:
    if objective.stop_reason is not StopReason.UNMET:
        return ""
    missing = objective.checks.missing or (objective.stop_detail,)
    return "\n".join(
        [
            "**These parts of the objective are not answered:**",
            "",
            *(f"* {_one_line(part)}" for part in missing if part),
        ]
    )


def _render_left_out(left_out: Sequence[Result]) -> str:
    if not left_out:
        return ""
    lines = [f"* task {result.task_id}: {_one_line(result.task_name)}" for result in left_out]
    return "\n".join(
        [
            (
                "**These results did not fit into the question for this report; it was written "
                "without them:**"
            ),
            "",
            *lines,
        ]
    )


def _render_dead(tasks: Sequence[Task]) -> str:
    dead = [task for task in tasks if task.status is TaskStatus.DEAD]
    if not dead:
        return ""
    lines = [f"* task {task.id}: {_one_line(task.name)}: {_one_line(task.error)}" for task in dead]
    return "\n".join(["**These tasks failed and were given up:**", "", *lines])


def _render_asked(objective: Objective, asked: Sequence[tuple[int, str]]) -> str:
    if not asked:
        return ""
    lines = [f"* number {number}: {_one_line(text)}" for number, text in asked]
    how = (
        "`babyagi inbox` shows how to answer; after that `babyagi resume --objective "
        f"{objective.id}` goes on."
    )
    return "\n".join(["**These questions wait for a person:**", "", *lines, "", how])


def _render_results(results: Sequence[Result], why: str) -> str:
    said = (
        f"No summary was written ({why}); these are the results as they stand."
        if results
        else f"There are no results ({why})."
    )
    blocks = [
        f"### Task {result.task_id}: {_one_line(result.task_name)}\n\n{_quote(result.text)}"
        for result in results
    ]
    return "\n\n".join([said, *blocks])


def _render_bounds(bounds: Sequence[str]) -> str:
    if not bounds:
        return ""
    return "\n".join(["## What a bound kept out", "", *(f"* {_one_line(line)}" for line in bounds)])


def _render_facts(objective: Objective, tasks: Sequence[Task], *, index_trouble: str) -> str:
    usage, limits = objective.usage, objective.spec.limits
    n_done = sum(task.status in (TaskStatus.DONE, TaskStatus.RECORDED) for task in tasks)
    detail = f" ({_one_line(objective.stop_detail)})" if objective.stop_detail else ""
    cost_limit = f" of ${limits.max_cost_usd:g}" if limits.max_cost_usd else ""
    stopped = (
        [f"* Stopped: {objective.stop_reason}: {objective.stop_reason.words}{detail}"]
        if objective.stop_reason
        else []
    )
    lines = [
        *stopped,
        f"* Tasks: {n_done} done of {len(tasks)}",
        f"* Model calls before this report: {usage.calls}, tokens {usage.prompt_tokens} "
        f"in and {usage.completion_tokens} out, "
        f"cost {objective.spent}{cost_limit}",
        (
            f"* Time: {objective.active_s:.0f} s. Models: "
            f"{', '.join(sorted(set(objective.spec.model_by_role.values())))}"
        ),
    ]
    if index_trouble:
        lines.append(
            f"* Result store: results did not get into it: {_one_line(index_trouble)}. "
            "No result is lost; "
            f"`babyagi index rebuild --objective {objective.id}` fills it when it can be used"
        )
    how = _how_to_go_on(objective, has_dead=any(task.status is TaskStatus.DEAD for task in tasks))
    if how:
        lines.append(f"* To go on: {how}, then `babyagi resume --objective {objective.id}`")
    return "\n".join(["## What was done", "", *lines])


def _how_to_go_on(objective: Objective, *, has_dead: bool) -> str:
    found = next_command(objective, has_dead=has_dead, has_report=True)
    match found.need:
        case Need.LIMIT:
            return f"`{found.command} N` with a higher N"
        case Need.RETRY:
            return f"`{found.command}` with one of the tasks that were given up"
        case Need.TASK | Need.LEAVE:
            return f"`{found.command}`"
    return ""


def _render_list(title: str, tasks: Sequence[Task]) -> str:
    if not tasks:
        return ""
    lines = [f"* task {task.id}: {_one_line(task.name)}" for task in tasks]
    return "\n".join([f"## {title} ({len(tasks)})", "", *lines])


def _quote(text: str) -> str:
    cut = text if len(text) <= MAX_QUOTED_CHARS else text[:MAX_QUOTED_CHARS] + " …"
    return "\n".join(f"> {line}" for line in clean(cut).splitlines())


def _one_line(text: str) -> str:
    return shorten(one_line(clean(text)), MAX_LINE_CHARS)
