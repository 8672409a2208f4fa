"""Shell completion: offers objectives, tasks, tools and guide pages for the word being typed, and
prints the script that connects a shell.

After the Tab key the shell gets suggestions or none: completing changes nothing, takes at most
`MAX_WAIT_S` seconds and raises no error.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem, get_completion_class

from babyagi.cli.text import echo, fit

if TYPE_CHECKING:
    from babyagi.taskstore.port import TaskStore

T = TypeVar("T")
Items = list[CompletionItem]

SHELLS = ("bash", "zsh", "fish")
INSTALL_BY_SHELL = {
    "bash": """add this line to ~/.bashrc:  eval "$(babyagi completion bash)\"""",
    "zsh": """add this line to ~/.zshrc, after compinit:  eval "$(babyagi completion zsh)\"""",
    "fish": "babyagi completion fish > ~/.config/fish/completions/babyagi.fish",
}
MAX_OFFERED = 50
MAX_WAIT_S = 2.0
HELP_WIDTH = 60


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script that makes the Tab key complete.

    It completes commands, options, and existing names and numbers. The first line of the script
    says how to install it.
    """
    kind = get_completion_class(shell)
    if kind is None:  # click supports all three
        why = f"there is no completion for the shell {shell}"
        raise click.UsageError(why, click.get_current_context())
    root = click.get_current_context().find_root().command
    script = kind(root, {}, "babyagi", "_BABYAGI_COMPLETE")
    echo(f"# To install: {INSTALL_BY_SHELL[shell]}")
    echo((script.source_template % script.source_vars()).strip())


def complete_objectives(_context: click.Context, _param: click.Parameter, typed: str) -> Items:
    """Suggest `latest`, and the numbers of the newest objectives with their texts."""

    async def read(store: TaskStore) -> Items:
        newest = await store.objectives(limit=MAX_OFFERED)
        return [_item(one.id, one.spec.text) for one in reversed(newest)]

    items = [CompletionItem("latest", help="the objective that you used last"), *_look(read)]
    return _beginning_with(typed, items)


def complete_tasks(context: click.Context, _param: click.Parameter, typed: str) -> Items:
    """Suggest the tasks, as numbers with names, of the objective that the typed `--objective`
    names, else of the latest one."""
    selector = _find_selector(context)

    async def read(store: TaskStore) -> Items:
        from babyagi.cli.session import pick_objective

        tasks = await store.tasks((await pick_objective(store, selector)).id)
        return [
            CompletionItem(str(task.id), help=f"{task.status.value}: {fit(task.name, HELP_WIDTH)}")
            for task in tasks
            if str(task.id).startswith(typed)
        ]

    return _look(read)[:MAX_OFFERED]


def complete_inbox(_context: click.Context, _param: click.Parameter, typed: str) -> Items:
    """Suggest the numbers of the tasks that wait for a person, with their questions."""

    async def read(store: TaskStore) -> Items:
        from babyagi.inbox import asking_task

        asked = {asking_task(step): step.request for step in await store.inbox()}
        return [_item(task_id, text) for task_id, text in asked.items()]

    return _beginning_with(typed, _look(read))


def complete_schedules(_context: click.Context, _param: click.Parameter, typed: str) -> Items:
    """Suggest the numbers of the schedules, with the texts of their objectives."""

    async def read(store: TaskStore) -> Items:
        return [_item(one.id, one.spec.objective.text) for one in await store.schedules()]

    return _beginning_with(typed, _look(read))


def complete_tools(_context: click.Context, _param: click.Parameter, typed: str) -> Items:
    from babyagi.tools.catalog import TOOL_NAMES

    return _beginning_with(typed, [CompletionItem(name) for name in TOOL_NAMES])


def complete_pages(_context: click.Context, _param: click.Parameter, typed: str) -> Items:
    from babyagi.cli.about import list_topics

    pages = [CompletionItem(name, help=title) for name, title in list_topics()]
    return _beginning_with(typed, pages)


def complete_choices(
    choices: Sequence[str], metavar: str
) -> Callable[[click.Context, click.Parameter, str], Items]:
    """Return a completer for an option. It suggests the `choices`; for an option whose `metavar` is
    FILE or FOLDER, the shell completes paths."""

    def complete(_context: click.Context, _param: click.Parameter, typed: str) -> Items:
        if metavar in ("FOLDER", "FILE"):
            return [CompletionItem(typed, type="dir" if metavar == "FOLDER" else "file")]
        return _beginning_with(typed, [CompletionItem(choice) for choice in choices])

    return complete


def _item(number: int, text: str) -> CompletionItem:
    return CompletionItem(str(number), help=fit(text, HELP_WIDTH))


def _beginning_with(typed: str, items: Items) -> Items:
    return [item for item in items if str(item.value).startswith(typed)]


def _find_selector(context: click.Context) -> str:
    """Return the value of `--objective` as typed for this command or for its group; `latest` if it
    was not typed."""
    at: click.Context | None = context
    while at is not None:
        selector = at.params.get("objective")
        if selector not in (None, "latest"):
            return str(selector)
        at = at.parent
    return "latest"


def _look(read: Callable[[TaskStore], Awaitable[Items]]) -> Items:
    """Return the suggestions that `read` makes from the task store; none if the store cannot be
    read within `MAX_WAIT_S`."""
    import asyncio

    try:
        return asyncio.run(_read_store(read))
    except Exception:  # no error may reach a person who is typing
        return []


async def _read_store(read: Callable[[TaskStore], Awaitable[Items]]) -> Items:
    import asyncio

    from babyagi.backends import open_store
    from babyagi.cli.session import HOME
    from babyagi.settings.load import load_settings

    settings = load_settings(flags={}, environ=os.environ, cwd=Path.cwd()).settings
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[HOME] = settings.home
    async with asyncio.timeout(MAX_WAIT_S), open_store(settings, only_looks=True) as store:
        return await read(store)
