"""The report: the agent's answer from the results, then the facts that the store knows.

The program writes what a person must be able to trust: why it stopped, what was given up, what is
left, what it cost. The model writes only the answer. Without a model (no money left, an outage) the
results themselves take its place. If the answer is incomplete, a line before it says so, and what
is missing is listed below it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from babyagi.agents.execution import Excerpt
from babyagi.agents.prompting import build_messages
from babyagi.artifacts import Made, render_artifacts
from babyagi.errors import (
    BabyagiError,
    LeaseLostError,
    ModelUnavailableError,
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
from babyagi.sources import NO_SOURCES, Sources, render_sources
from babyagi.tasks import (
    Objective,
    Passage,
    Result,
    Role,
    Step,
    StopReason,
    Task,
    TaskStatus,
    find_sources,
)
from babyagi.text import clean, one_line, say_duration, shorten

REHEARSAL_NOTICE = (
    "REHEARSAL: no language model was asked. The text below was put together from lines of "
    "the documents."
)

MAX_QUOTED_CHARS = 4000
MAX_EARLIER_CHARS = 800  # for a result that others were built on
MAX_RESULTS_CHARS = 120_000  # for all results, where no model wrote the answer
MAX_LINE_CHARS = 300
MAX_DEAD = 20
MAX_NAMED = 10
MAX_LISTED = 5
MAX_SOURCES_LISTED = 10

COMPLETE = (StopReason.FINISHED, StopReason.OBJECTIVE_MET)
OPEN = (TaskStatus.QUEUED, TaskStatus.WAITING, TaskStatus.RUNNING)
FENCE = re.compile(r" {0,3}(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")


async def write_answer(
    objective: Objective, *, excerpts: Sequence[Excerpt], journal: Journal, max_output_tokens: int
) -> str:
    """Return the model's answer to the objective as Markdown. Raises as `ask`."""
    sources = find_sources(source for excerpt in excerpts for source in excerpt.sources)
    messages = build_messages(
        "report",
        {
            "objective": [("objective", Passage(text=objective.spec.asked, origin="person"))],
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
        (await ask(journal, REPORT, prompt, role=Role.REPORT, read=read_text, takes_cut=True)).value
    ).strip()


def read_answer(steps: Sequence[Step]) -> str:
    """Return what the model has written of a report, from the steps of its journal; "" where it has
    written nothing whole."""
    said = [
        Completion.from_json(step.output)
        for step in steps
        if step.output is not None and (step.key == REPORT or step.key.startswith(f"{REPORT}/"))
    ]
    whole = [one.text for one in said if one.finish_reason == "stop" and not one.refusal]
    return clean(whole[-1]).strip() if whole else ""


REPORT = "report"  # path of the report's own calls in its journal
OUTPUT = "output/text"  # key under which the report's journal keeps the answer as JSON
NO_OUTPUT = "output/none"  # key for the reason why there is none


async def write_output(
    objective: Objective, report: str, *, journal: Journal, read: Callable[[str], object]
) -> None:
    """Ask for the report's content as the JSON that a program wants, and keep it in the journal. If
    that fails, keep the reason; the report is still valid.

    Args:
        read: raises `MalformedReplyError` for a text that is not what is wanted.

    Raises:
        ModelUnavailableError: an outage, which is over some day; nothing is kept.
    """
    schema = objective.spec.output_schema or {}
    messages = build_messages(
        "output",
        {
            "objective": [("objective", Passage(text=objective.spec.asked, origin="person"))],
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
    except (
        *(LeaseLostError, ObjectiveStoppedError, ModelUnavailableError),
        *(StoreUnavailableError, StoreUnusableError),
    ):
        raise
    except BabyagiError as error:
        await journal.keep(NO_OUTPUT, error.what)
    else:
        await journal.keep(OUTPUT, asked.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What the model wrote of the report.

    `text` is empty if it wrote nothing, and `why_not` says why. `left_out` are the results that it
    was not shown, because they did not fit.
    """

    text: str = ""
    why_not: str = ""
    left_out: tuple[Result, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNotes:
    """What a person should know besides the answer.

    Attributes:
        asked: number and text of each question to the person.
        bounds: what bounds kept out, in words.
        index_trouble: why results do not reach the index; "" if they do.
        sources: the sources of the results that the report was written from.
        artifacts: the files that came with all results.
    """

    asked: Sequence[tuple[int, str]] = ()
    bounds: Sequence[str] = ()
    index_trouble: str = ""
    sources: Sources = NO_SOURCES
    artifacts: Sequence[Made] = ()


def render_report(
    objective: Objective,
    *,
    written: Written,
    tasks: Sequence[Task],
    results: Sequence[Result],
    aside: ReportNotes | None = None,
) -> str:
    """Return the whole report as Markdown: the answer, what is missing from it, how the objective
    ended.

    Args:
        written: the model's part; if it has no text, the results are shown.
        tasks: all tasks of the objective, in list order.
        results: in the order in which they were recorded.
    """
    aside = aside or ReportNotes()
    is_rehearsal = objective.spec.model_by_role[Role.REPORT] == "rehearsal"
    parts = [
        f"# Report: {_one_line(objective.spec.text)}",
        "\n".join(f"* Asked further: {_one_line(one)}" for one in objective.spec.further),
        f"> {REHEARSAL_NOTICE}" if is_rehearsal else "",
        _render_standing(objective, tasks, asked=aside.asked),
        _close_fence(written.text)
        or _render_results(results, tasks, written.why_not, objective_id=objective.id),
        _render_missing(objective),
        _render_dead(tasks),
        _render_asked(objective, aside.asked),
        _render_left_out(written.left_out) if written.text else "",
        render_sources(
            aside.sources,
            written.text,
            most=MAX_SOURCES_LISTED,
            more=f"`babyagi report --json --objective {objective.id}` lists them",
        ),
        render_artifacts(aside.artifacts, objective_id=objective.id, most=MAX_SOURCES_LISTED),
        "---",
        _render_facts(objective, tasks, index_trouble=aside.index_trouble),
        _render_named("What a bound kept out", aside.bounds),
        _render_tasks("Not done", [task for task in tasks if task.status in OPEN], objective),
        _render_tasks(
            "Cancelled", [task for task in tasks if task.status is TaskStatus.CANCELLED], objective
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


# -- before the answer: whether it is complete
# --------------------------------------------------------------------------------------------------


def _render_standing(
    objective: Objective, tasks: Sequence[Task], *, asked: Sequence[tuple[int, str]]
) -> str:
    """Return a line that says why the answer is not complete; "" if it is."""
    reason = objective.stop_reason
    if reason is None:
        return (
            f"> This objective has not ended: it is {objective.status}. This is what there is so "
            f"far; `babyagi resume --objective {objective.id}` goes on."
        )
    n_dead = sum(task.status is TaskStatus.DEAD for task in tasks)
    n_open = sum(task.status in OPEN for task in tasks)
    counted = [
        f"{_count(n_open, 'task')} not done" if n_open else "",
        f"{_count(n_dead, 'task')} given up" if n_dead else "",
        f"{_count(len(asked), 'question')} waiting for a person" if asked else "",
    ]
    left = ", ".join(part for part in counted if part)
    if reason in COMPLETE:
        return f"> {left}; see below the answer." if left else ""
    return f"> **Not complete:** {reason.words}{f' ({left})' if left else ''}."


def _count(n: int, what: str) -> str:
    return f"{n} {what if n == 1 else what + 's'}"


# -- the answer: from the model, or the results themselves
# --------------------------------------------------------------------------------------------------


def _close_fence(text: str) -> str:
    """Return the text with an unclosed code block closed, so that what follows is not code."""
    fence = ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if mark is None:
            continue
        if not fence:
            fence = mark["mark"]
        elif mark["mark"].startswith(fence) and not mark["info"].strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _render_results(
    results: Sequence[Result], tasks: Sequence[Task], why: str, *, objective_id: int
) -> str:
    """Return the results: first those that no other task was built on, then, shorter, those that
    led to them; as many as a person would read."""
    if not results:
        return f"There are no results ({why})."
    built_on = {task_id for task in tasks for task_id in (task.parent_id, *task.after)}
    final = [result for result in results if result.task_id not in built_on]
    earlier = [result for result in results if result.task_id in built_on]
    blocks, room = list[str](), MAX_RESULTS_CHARS
    for n, result in enumerate([*final, *earlier]):
        if final and n == len(final):
            blocks.append("**What led to this:**")
        is_last = n < len(final) or not final
        blocks.append(_render_result(result, MAX_QUOTED_CHARS if is_last else MAX_EARLIER_CHARS))
        room -= len(blocks[-1])
        if room < 0 and n + 1 < len(results):
            left = _count(len(results) - n - 1, "more result")
            blocks.append(f"**{left}: `babyagi results --objective {objective_id}` lists all.**")
            break
    said = f"No summary was written ({why}); these are the results as they stand."
    return "\n\n".join([said, *blocks])


def _render_result(result: Result, max_chars: int) -> str:
    cut = result.text if len(result.text) <= max_chars else result.text[:max_chars] + " …"
    quoted = "\n".join(f"> {line}" for line in _close_fence(clean(cut)).splitlines())
    return f"### Task {result.task_id}: {_one_line(result.task_name)}\n\n{quoted}"


# -- after the answer: what is missing
# --------------------------------------------------------------------------------------------------


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


def _render_dead(tasks: Sequence[Task]) -> str:
    dead = [
        f"task {task.id}: {_one_line(task.name)}: {_one_line(task.error)}"
        for task in tasks
        if task.status is TaskStatus.DEAD
    ]
    return _render_lines("**These tasks failed and were given up:**", dead, MAX_DEAD)


def _render_asked(objective: Objective, asked: Sequence[tuple[int, str]]) -> str:
    if not asked:
        return ""
    lines = [f"* number {number}: {_one_line(text)}" for number, text in asked]
    how = (
        "`babyagi inbox` shows how to answer; after that `babyagi resume --objective "
        f"{objective.id}` goes on."
    )
    return "\n".join(["**These questions wait for a person:**", "", *lines, "", how])


def _render_left_out(left_out: Sequence[Result]) -> str:
    lines = [f"task {result.task_id}: {_one_line(result.task_name)}" for result in left_out]
    head = (
        "**These results did not fit into the question for this report; it was written without "
        "them:**"
    )
    return _render_lines(head, lines, MAX_NAMED)


# -- how it ended
# --------------------------------------------------------------------------------------------------


def _render_facts(objective: Objective, tasks: Sequence[Task], *, index_trouble: str) -> str:
    usage, limits = objective.usage, objective.spec.limits
    is_said = objective.stop_reason is StopReason.UNMET  # the list of missing parts says it
    detail = (
        f" ({_one_line(objective.stop_detail)})" if objective.stop_detail and not is_said else ""
    )
    cost_limit = f" of ${limits.max_cost_usd:g}" if limits.max_cost_usd else ""
    here = f"--objective {objective.id}"
    lines = [
        f"* Stopped: {objective.stop_reason}: {objective.stop_reason.words}{detail}"
        if objective.stop_reason
        else "",
        f"* Tasks: {_render_counts(tasks)}",
        f"* Cost: {objective.spent}{cost_limit}; {_count(usage.calls, 'model call')}, "
        f"{usage.prompt_tokens:,} tokens in and {usage.completion_tokens:,} out",
        f"* Time: {say_duration(objective.active_s)}. Models: {objective.spec.models}",
        f"* Result store: results did not get into it: {_one_line(index_trouble)}. No result is "
        f"lost; `babyagi index rebuild {here}` fills it when it can be used"
        if index_trouble
        else "",
    ]
    how = _how_to_go_on(objective, has_dead=any(task.status is TaskStatus.DEAD for task in tasks))
    lines += [f"* To go on: {how}, then `babyagi resume {here}`"] if how else []
    lines.append(
        f"* To look: `babyagi tasks`, `babyagi show TASK`, `babyagi results`, each with `{here}`"
    )
    return "\n".join(["## How it ended", "", *(line for line in lines if line)])


def _render_counts(tasks: Sequence[Task]) -> str:
    counted = [
        (len([task for task in tasks if task.status in statuses]), words)
        for statuses, words in (
            ((TaskStatus.DONE, TaskStatus.RECORDED), "done"),
            ((TaskStatus.DEAD,), "given up"),
            (OPEN, "not done"),
            ((TaskStatus.CANCELLED,), "cancelled"),
        )
    ]
    return ", ".join(f"{n} {words}" for n, words in counted if n) or "none"


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


def _render_tasks(title: str, tasks: Sequence[Task], objective: Objective) -> str:
    """Return a list of the first few tasks by name."""
    if not tasks:
        return ""
    lines = [f"* task {task.id}: {_one_line(task.name)}" for task in tasks[:MAX_LISTED]]
    if len(tasks) > len(lines):
        more = f"{len(tasks) - len(lines)} more"
        lines.append(f"* and {more}; `babyagi tasks --objective {objective.id}` lists them")
    return "\n".join([f"## {title} ({len(tasks)})", "", *lines])


def _render_named(title: str, lines: Sequence[str]) -> str:
    return _render_lines(f"## {title}", [_one_line(line) for line in lines], MAX_NAMED)


def _render_lines(head: str, lines: Sequence[str], most: int) -> str:
    """Return a heading and at most `most` lines; a last line gives the number of the others."""
    if not lines:
        return ""
    listed = [f"* {line}" for line in lines[:most]]
    if len(lines) > most:
        listed.append(f"* and {len(lines) - most} more")
    return "\n".join([head, "", *listed])


def _one_line(text: str) -> str:
    return shorten(one_line(clean(text)), MAX_LINE_CHARS)
