"""The command ask: one question to an agent that a file describes, each step as it happens, the
answer last."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from babyagi.cli.options import given_flags, json_option, require_words, setting_options
from babyagi.cli.text import PassingLine, Style, echo, fit, print_json, terminal_width, warn

if TYPE_CHECKING:
    from babyagi.cli.json_shapes import Json
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
@setting_options(SETTINGS)
@json_option
def ask(
    file: Path, question_words: tuple[str, ...], agent_name: str, as_json: bool, **flags: Any
) -> int:
    """Ask an agent that a YAML FILE describes.

    Each of its steps is printed, and its answer. Nothing is kept.
    """
    import asyncio

    from babyagi.agent import Agent
    from babyagi.cli.exits import code_of_run
    from babyagi.cli.run import tell_notices
    from babyagi.cli.session import load

    question, given = require_words(" ".join(question_words)), given_flags(flags)
    tell_notices(load(given).notices)
    agent = Agent.from_yaml(file, agent_name, **given)
    passing = PassingLine()

    def show(signal: Signal) -> None:
        passing.clear()
        _show(signal)

    run = asyncio.run(
        agent.run_async(question)
        if as_json
        else agent.run_async(question, on_signal=show, on_text=passing.add)
    )
    passing.clear()
    if as_json:
        print_json(_shape(question, run))
    else:
        _conclude(run)
    return int(code_of_run(run.stopped))


def _show(signal: Signal) -> None:
    """One line for each call, and for what came of it."""
    from babyagi.react.steps import ToolEnded, ToolStarted

    margin, width = "   ", terminal_width()
    match signal:
        case ToolStarted(n=n, call=call):
            echo(fit(f"{n}. {call.name}: {call.arguments}", width), Style.BOLD)
        case ToolEnded(call=call, observation=observation):
            style = Style.RED if observation.is_error else Style.DIM
            echo(
                margin + fit(f"{call.name} gave: {observation.passage.text}", width - len(margin)),
                style,
            )


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
    from babyagi.cli.json_shapes import usage_shape

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
