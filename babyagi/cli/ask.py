"""The commands `ask`, which puts a question to an agent described in a file, and `memory`, which
shows and deletes the stored conversations of such agents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import click

from babyagi.app.backends import require_descriptors, utc_now
from babyagi.cli import session
from babyagi.cli.exits import ExitCode
from babyagi.cli.options import given_flags, json_option, require_words, setting_options
from babyagi.cli.render import REHEARSAL_LINE, render_calls
from babyagi.cli.run import tell_notices
from babyagi.cli.text import (
    Line,
    Style,
    echo,
    fit,
    give,
    print_json,
    terminal_width,
    warn,
)
from babyagi.errors import NotFoundError
from babyagi.files.home import is_memory_of_objective
from babyagi.memory.log import Known, MemoryLog, names_in, path_of
from babyagi.react.steps import (
    Act,
    AgentStep,
    ModelDecided,
    Run,
    RunEnded,
    Signal,
    Stopped,
    ToolEnded,
    ToolStarted,
)
from babyagi.text import say_count
from babyagi.verbs.json_shapes import Json, pick, usage_shape

if TYPE_CHECKING:
    from babyagi.agent import Agent

SETTINGS = ("llm_model", "agent_hosts", "max_calls", "max_tokens", "max_cost_usd")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("question_words", metavar="QUESTION...", nargs=-1, required=True)
@click.option(
    "--agent",
    "agent_name",
    metavar="NAME",
    default="",
    help="Which agent of the file to ask; needed if the file describes several.",
)
@click.option(
    "--memory",
    metavar="NAME",
    default="",
    help="Continue the stored conversation of this name, or begin one; babyagi show memory lists "
    "them.",
)
@setting_options(SETTINGS)
@json_option
def ask(
    file: Path,
    question_words: tuple[str, ...],
    agent_name: str,
    memory: str,
    as_json: bool,
    **flags: Any,
) -> int:
    """Ask an agent that a YAML FILE describes.

    Its steps and its answer are printed. The conversation is stored only with --memory.
    """

    from babyagi.agent import Agent

    require_descriptors(1)
    question = require_words(question_words, "a question", before="FILE ")
    given = given_flags(flags)
    loaded = session.load(given)
    tell_notices(loaded.notices)
    named = {"memory": memory} if memory else {}
    agent = Agent.from_yaml(file, agent_name, **given, **named)
    if agent.protocol == "auto":  # the file names none
        agent.protocol = loaded.settings.effective_protocol
    heard: dict[str, Any] = {} if as_json else {"on_signal": _show}
    run = asyncio.run(_ask(agent, question, heard))
    if as_json:
        print_json(_shape(question, run))
    return int(code_of_run(run.stopped))


async def _ask(agent: Agent[str], question: str, heard: Mapping[str, Any]) -> Run[str]:
    """Ask the agent, and return the run. First print which conversation the question continues;
    afterwards print a warning if the memory of the conversation could not be updated."""
    if agent.memory is None or not agent.memory.name:
        if agent.memory is not None:
            warn("this conversation is not stored; --memory NAME stores it", Style.DIM)
        return await agent.run_async(question, **heard)
    name = agent.memory.name
    before = await agent.recall()
    warn(f"conversation {name}: {describe(before) if before.turns else 'new'}", Style.DIM)
    async with agent:
        run = await agent.run_async(question, **heard)
    if fault := (await agent.recall()).fault:
        warn(f"babyagi: the memory {name} was not updated: {fault}", Style.YELLOW)
    return run


def _show(signal: Signal) -> None:
    """Print one step of the agent: the text that the model wrote beside its tool calls, a tool
    call, the outcome of a tool call, or the answer at the end."""

    margin, width = "   ", terminal_width()
    match signal:
        case ModelDecided(decision=Act(thought=thought)) if thought:
            echo(fit(thought, width), Style.DIM)
        case ToolStarted(n=n, call=call):
            echo(fit(f"{n}. {call.name}: {call.arguments}", width), Style.BOLD)
        case ToolEnded(call=call, observation=observation):
            style = Style.RED if observation.is_error else Style.DIM
            gave = f"{call.name} gave: {observation.passage.text}"
            echo(margin + fit(gave, width - len(margin)), style)
        case RunEnded(run=run):
            _conclude(run)


def _conclude(run: Run[str]) -> None:

    if any(step.model == "rehearsal" for step in run.steps):
        echo(REHEARSAL_LINE, Style.YELLOW)
    if run.output:
        echo(run.output)
    if run.stopped is not Stopped.FINISH:
        what = f"the agent stopped before it finished ({run.stopped})"
        warn(f"babyagi: {what}: {fit(run.detail, 300)}", Style.RED)


def code_of_run(stopped: Stopped) -> ExitCode:
    """Return the exit code of `babyagi ask`, from the reason why the agent stopped."""
    if stopped is Stopped.FINISH:
        return ExitCode.OK
    return ExitCode.LIMIT if stopped in (Stopped.MAX_STEPS, Stopped.MAX_TIME) else ExitCode.FAILED


def _shape(question: str, run: Run[str]) -> Json:

    return {
        "v": 1,
        "question": question,
        "answer": run.output,
        "stopped": run.stopped.value,
        "detail": run.detail,
        "steps": [_step_shape(step) for step in run.steps],
        "usage": usage_shape(run.usage),
    }


def _step_shape(step: AgentStep) -> Json:

    act = step.decision if isinstance(step.decision, Act) else None
    pairs = zip(act.calls if act else (), step.observations, strict=True)
    return {
        "n": step.n,
        "model": step.model,
        "thought": act.thought if act else "",
        "tools": [
            {**pick(call, "name arguments"), "is_error": gave.is_error, "text": gave.passage.text}
            for call, gave in pairs
        ],
    }


# -- the conversations that `babyagi ask --memory NAME` keeps
# --------------------------------------------------------------------------------------------------


@click.command()
@click.argument("name", required=False)
@json_option
def memory(name: str | None, as_json: bool) -> None:
    """List the conversations with agents, or show one.

    They are those of `babyagi ask --memory NAME`.
    """
    home = session.load(needs=session.NOTHING).settings.home
    if name is not None:
        known = _require(home, name)
        shape = {
            "v": 1,
            "name": name,
            **_counts(known),
            "summary": pick(known.summary, "text upto origins"),
            "facts": [pick(fact, "entity text turn origins") for fact in known.facts],
            "said": [pick(one, "n at question asked_from answer made_from") for one in known.turns],
            "used": usage_shape(known.used),
            "fault": known.fault,
        }
        give(as_json, shape, _render_known(name, known))
        return
    # the names of the memories of agents that work on objectives can be given, but are not listed
    names = [one for one in names_in(home) if not is_memory_of_objective(one)]
    found = [(one, asyncio.run(_open(home, one).read())) for one in names]
    shapes = [{"name": one, **_counts(known)} for one, known in found]
    lines = [Line(f"{one:<28} {describe(known)}") for one, known in found]
    none = "No conversation is stored. `babyagi ask FILE QUESTION --memory NAME` stores one."
    give(as_json, shapes, lines, empty=none)


def _render_known(name: str, known: Known) -> Iterator[Line]:
    yield Line(f"{name}: {describe(known)}", Style.BOLD)
    summary, said = known.summary, []
    if summary.text:
        said.append((f"summary of turns 1 to {summary.upto}", summary.text, summary.origins))
    said += [(f"{one.entity} (turn {one.turn})", one.text, one.origins) for one in known.facts]
    for turn in known.turns:
        at = f"{turn.n}. {turn.at.astimezone():%Y-%m-%d %H:%M}"
        said += [(at, turn.question, turn.asked_from), ("   answer", turn.answer, turn.made_from)]
    for what, text, origins in said:
        yield Line(f"{what}: {text}")
        yield Line(f"      from {', '.join(origins)}", Style.DIM)
    if known.used.calls:
        cost = f", ${known.used.cost_usd:.4f}" if known.used.cost_usd else ""
        yield Line(f"The notes took {render_calls(known.used)}{cost}.", Style.DIM)
    if known.fault:
        yield Line(f"The last update of this memory failed: {known.fault}", Style.YELLOW)


def forget(name: str) -> None:
    """Delete a conversation and all its notes."""

    home = session.load(needs=session.NOTHING).settings.home
    n_turns = len(_require(home, name).turns)
    asyncio.run(_open(home, name).forget())
    echo(f"The conversation {name} is deleted, with {say_count(n_turns, 'turn')}.")


def describe(known: Known) -> str:
    """Return one line about a conversation: its number of turns, and its last question."""
    said = say_count(known.last, "turn")
    if known.turns:
        last = known.turns[-1]
        said += f", the last on {last.at.astimezone():%Y-%m-%d %H:%M}: {last.question}"
    return fit(said, max(40, terminal_width() - 30))


def _open(home: Path, name: str) -> MemoryLog:
    return MemoryLog(path_of(home, name), clock=utc_now, new_id=partial(token_hex, 8))


def _require(home: Path, name: str) -> Known:
    known = asyncio.run(_open(home, name).read())
    if not known.id:
        raise NotFoundError(
            f"there is no conversation {name}",
            fix="babyagi show memory lists the stored conversations",
            guide="tools",
        )
    return known


def _counts(known: Known) -> Json:
    last = known.turns[-1].at.isoformat() if known.turns else None
    return {"turns": known.last, "last_at": last}
