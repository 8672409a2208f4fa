"""The command ask: one question to an agent that a file describes. It prints each step as it
happens, and the answer last."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from babyagi.cli.memory import complete_memories, describe
from babyagi.cli.options import given_flags, json_option, require_words, setting_options
from babyagi.cli.text import PassingLine, Style, echo, fit, print_json, terminal_width, warn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from babyagi.agent import Agent
    from babyagi.json_shapes import Json
    from babyagi.react.steps import AgentStep, Run, Signal

SETTINGS = ("llm_model", "agent_hosts", "max_calls", "max_tokens", "max_cost_usd")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("question_words", metavar="QUESTION...", nargs=-1, required=True)
@click.option(
    "--agent",
    "agent_name",
    metavar="NAME",
    default="",
    help="Which agent of the file; needed when there are several.",
)
@click.option(
    "--memory",
    metavar="NAME",
    default="",
    help="Go on with the conversation of this name, which is kept; babyagi memory shows them.",
    shell_complete=complete_memories,
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

    Each of its steps is printed, and its answer. Nothing is kept, unless --memory names the
    conversation that it belongs to.
    """
    import asyncio

    from babyagi.agent import Agent
    from babyagi.cli.exits import code_of_run
    from babyagi.cli.run import tell_notices
    from babyagi.cli.session import load

    question, given = require_words(" ".join(question_words)), given_flags(flags)
    loaded = load(given)
    tell_notices(loaded.notices)
    named = {"memory": memory} if memory else {}
    agent = Agent.from_yaml(file, agent_name, **given, **named)
    if agent.protocol == "auto":  # the file names none
        agent.protocol = loaded.settings.protocol
    passing = PassingLine()

    def show(signal: Signal) -> None:
        passing.clear()
        _show(signal)

    heard: dict[str, Any] = {} if as_json else {"on_signal": show, "on_text": passing.add}

    async def put() -> Run[str]:
        run = await agent.run_async(question, **heard)
        passing.clear()
        if as_json:
            print_json(_shape(question, run))
        return run

    return int(code_of_run(asyncio.run(_ask(agent, put)).stopped))


async def _ask(agent: Agent[str], put: Callable[[], Awaitable[Run[str]]]) -> Run[str]:
    """Put the question, and print which conversation is continued and how its memory was updated,
    which begins when the answer is there."""
    if agent.memory is None or not agent.memory.name:
        if agent.memory is not None:
            warn("nothing is kept of this conversation; --memory NAME keeps it", Style.DIM)
        return await put()
    name = agent.memory.name
    before = await agent.recall()
    warn(f"conversation {name}: {describe(before) if before.turns else 'it begins'}", Style.DIM)
    async with agent:
        run = await put()
    if fault := (await agent.recall()).fault:
        warn(f"babyagi: the memory {name} was not brought up to date: {fault}", Style.YELLOW)
    return run


def _show(signal: Signal) -> None:
    """Print the model's text beside its calls, a line for each call and one for its outcome, and
    the answer at the end."""
    from babyagi.react.steps import Act, ModelDecided, RunEnded, ToolEnded, ToolStarted

    margin, width = "   ", terminal_width()
    match signal:
        case ModelDecided(decision=Act(thought=thought)) if thought:
            echo(fit(thought, width), Style.DIM)
        case ToolStarted(n=n, call=call):
            echo(fit(f"{n}. {call.name}: {call.arguments}", width), Style.BOLD)
        case ToolEnded(call=call, observation=observation):
            style = Style.RED if observation.is_error else Style.DIM
            echo(
                margin + fit(f"{call.name} gave: {observation.passage.text}", width - len(margin)),
                style,
            )
        case RunEnded(run=run):
            _conclude(run)


def _conclude(run: Run[str]) -> None:
    from babyagi.cli.render import REHEARSAL_LINE
    from babyagi.react.steps import Stopped

    if any(step.model == "rehearsal" for step in run.steps):
        echo(REHEARSAL_LINE, Style.YELLOW)
    if run.output:
        echo(run.output)
    if run.stopped is not Stopped.FINISH:
        warn(
            (
                f"babyagi: the agent stopped without having finished ({run.stopped}): "
                f"{fit(run.detail, 300)}"
            ),
            Style.RED,
        )


def _shape(question: str, run: Run[str]) -> Json:
    from babyagi.json_shapes import usage_shape

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
    from babyagi.react.steps import Act

    calls = step.decision.calls if isinstance(step.decision, Act) else ()
    return {
        "n": step.n,
        "model": step.model,
        "thought": step.decision.thought if isinstance(step.decision, Act) else "",
        "tools": [
            {
                "name": call.name,
                "arguments": call.arguments,
                "is_error": observation.is_error,
                "text": observation.passage.text,
            }
            for call, observation in zip(calls, step.observations, strict=True)
        ],
    }
