"""The command memory: the conversations that `babyagi ask --memory NAME` keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from babyagi.cli.options import json_option
from babyagi.cli.text import Style, echo, fit, print_json, terminal_width

if TYPE_CHECKING:
    from pathlib import Path

    from babyagi.json_shapes import Json
    from babyagi.memory.log import Known, MemoryLog, Turn
    from babyagi.tasks import Usage


def complete_memories(
    _context: click.Context, _param: click.Parameter, typed: str
) -> list[CompletionItem]:
    import os
    from pathlib import Path

    from babyagi.settings.load import load_settings

    try:
        home = load_settings(flags={}, environ=os.environ, cwd=Path.cwd()).settings.home
        return [CompletionItem(name) for name in _names_in(home) if name.startswith(typed)]
    except Exception:  # whatever it is, a person who is typing cannot be told
        return []


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def memory(context: click.Context, /, as_json: bool) -> None:
    """The conversations that `babyagi ask --memory NAME` keeps."""
    if context.invoked_subcommand is None:
        _list(as_json)


@memory.command("list")
@json_option
def memory_list(as_json: bool) -> None:
    """Name the conversations that are kept."""
    _list(as_json)


def _list(as_json: bool) -> None:
    found = [(name, _read(name)) for name in _names_in(_home())]
    if as_json:
        print_json([{"name": name, **_counts(known)} for name, known in found])
        return
    for name, known in found:
        echo(f"{name:<28} {describe(known)}")
    if not found:
        echo("No conversation is kept. `babyagi ask FILE QUESTION --memory NAME` keeps one.")


@memory.command("show")
@click.argument("name", shell_complete=complete_memories)
@json_option
def memory_show(name: str, as_json: bool) -> None:
    """Show what a conversation holds, and where each line came from."""
    known = _require(name)
    if as_json:
        print_json({"v": 1, "name": name, **_counts(known), **_shape(known)})
        return
    echo(f"{name}: {describe(known)}", Style.BOLD)
    if known.summary.text:
        _tell(
            f"summary of turns 1 to {known.summary.upto}", known.summary.text, known.summary.origins
        )
    for fact in known.facts:
        _tell(f"{fact.entity} (turn {fact.turn})", fact.text, fact.origins)
    for turn in known.turns:
        _tell(f"{turn.n}. {turn.at.astimezone():%Y-%m-%d %H:%M}", turn.question, turn.asked_from)
        _tell("   answer", turn.answer, turn.made_from)
    if known.used.calls:
        echo(_say_used(known.used), Style.DIM)
    if known.fault:
        echo(f"The last update did not come to its end: {known.fault}", Style.YELLOW)
    if known.n_damaged:
        echo(f"{known.n_damaged} damaged lines of its file are passed over.", Style.YELLOW)


@memory.command("forget")
@click.argument("name", shell_complete=complete_memories)
def memory_forget(name: str) -> None:
    """Delete a conversation with all that was noted from it."""
    import asyncio

    n_turns = len(_require(name).turns)
    asyncio.run(_open(name).forget())
    echo(f"{name} is forgotten: {n_turns} {'turn' if n_turns == 1 else 'turns'}.")


def describe(known: Known) -> str:
    """Return a conversation as one line."""
    n = known.last
    said = f"{n} {'turn' if n == 1 else 'turns'}"
    if known.turns:
        last = known.turns[-1]
        said += f", the last on {last.at.astimezone():%Y-%m-%d %H:%M}: {last.question}"
    return fit(said, max(40, terminal_width() - 30))


def _say_used(used: Usage) -> str:
    """Return what the notes cost; nothing about money when the cost is unknown."""
    cost = f", ${used.cost_usd:.4f}" if used.cost_usd else ""
    calls = f"{used.calls} {'call' if used.calls == 1 else 'calls'}"
    return (
        f"The notes took {calls}, {used.prompt_tokens:,} tokens in and "
        f"{used.completion_tokens:,} out{cost}."
    )


def _tell(what: str, text: str, origins: tuple[str, ...]) -> None:
    echo(f"{what}: {text}")
    echo(f"      from {', '.join(origins)}", Style.DIM)


def _names_in(home: Path) -> list[str]:
    """The conversations of a home. What the agent of an objective remembers is none; it is shown
    by its name all the same."""
    from babyagi.home import is_memory_of_objective
    from babyagi.memory.log import names_in

    return [name for name in names_in(home) if not is_memory_of_objective(name)]


def _home() -> Path:
    from babyagi.cli.session import NOTHING, load

    return load(needs=NOTHING).settings.home


def _open(name: str) -> MemoryLog:
    from functools import partial
    from secrets import token_hex

    from babyagi.backends import utc_now
    from babyagi.memory.log import MemoryLog, path_of

    return MemoryLog(path_of(_home(), name), clock=utc_now, new_id=partial(token_hex, 8))


def _read(name: str) -> Known:
    import asyncio

    return asyncio.run(_open(name).read())


def _require(name: str) -> Known:
    from babyagi.errors import NotFoundError

    known = _read(name)
    if not known.id and not known.n_damaged:
        raise NotFoundError(
            f"there is no conversation {name}",
            fix="babyagi memory names those that are kept",
            guide="tools",
        )
    return known


def _counts(known: Known) -> Json:
    last = known.turns[-1].at.isoformat() if known.turns else None
    return {"turns": known.last, "last_at": last}


def _shape(known: Known) -> Json:
    from babyagi.json_shapes import usage_shape
    from babyagi.memory.log import write_fact

    return {
        "summary": {
            "text": known.summary.text,
            "upto": known.summary.upto,
            "origins": [*known.summary.origins],
        },
        "facts": [write_fact(fact) for fact in known.facts],
        "said": [_turn_shape(turn) for turn in known.turns],
        "used": usage_shape(known.used),
        "fault": known.fault,
        "damaged_lines": known.n_damaged,
    }


def _turn_shape(turn: Turn) -> Json:
    return {
        "n": turn.n,
        "at": turn.at.isoformat(),
        "question": turn.question,
        "asked_from": [*turn.asked_from],
        "answer": turn.answer,
        "made_from": [*turn.made_from],
    }
