"""The options of the commands. Options that are settings are made from the settings'
declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from babyagi.cli.completion import complete_choices, complete_objectives, complete_tools
from babyagi.errors import SettingsError
from babyagi.settings.fields import declared_fields

F = TypeVar("F", bound=Callable[..., Any])

LIMITS = ("max_tasks", "max_calls", "max_tokens", "max_cost_usd", "max_time_s")

objective_option = click.option(
    "--objective",
    metavar="ID|latest",
    default="latest",
    show_default=True,
    help="Which objective is meant.",
    shell_complete=complete_objectives,
)
ALL = "all"
objectives_option = click.option(
    "--objective",
    metavar=f"ID|latest|{ALL}",
    default=ALL,
    show_default=True,
    shell_complete=complete_objectives,
    help="Which objective is meant.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON and nothing else on standard output."
)


def setting_options(
    names: Iterable[str] | None = None, *, but: Iterable[str] = ()
) -> Callable[[F], F]:
    """Return a decorator that gives a command one option for each setting with flags (of `names`,
    or all, except `but`), in their order.

    Values arrive as the text that was typed; `load_settings` reads them in the same way as
    variables.
    """
    fields = declared_fields()
    wanted = set(fields if names is None else names) - set(but)
    declared = [(name, entry) for name, entry in fields.items() if entry.flags and name in wanted]

    def decorate(command: F) -> F:
        for name, entry in reversed(declared):
            switch: dict[str, Any] = {"is_flag": True, "default": None}
            texts: dict[str, Any] = {
                "metavar": "|".join(entry.choices) or entry.metavar,
                "multiple": entry.takes_many,
                "default": None,
                "shell_complete": complete_tools
                if name == "tools"
                else complete_choices(entry.choices, entry.metavar),
            }
            command = click.option(
                *entry.flags, name, help=entry.help, **(switch if entry.is_switch else texts)
            )(command)
        return command

    return decorate


def require_words(text: str, otherwise: str = "the objective is empty") -> str:
    """Return the words. Raises when there are none: an empty variable in a script must not run
    another objective."""
    if not text.strip():
        raise click.UsageError(otherwise, click.get_current_context())
    return text


def given_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that were given."""
    return {name: value for name, value in flags.items() if value not in (None, (), False)}


def parse_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the given flags, read in the same way as the settings.

    Raises:
        SettingsError: a value cannot be read.
    """

    declared = declared_fields()
    values = {}
    for name, text in given_flags(flags).items():
        entry = declared[name]
        try:
            values[name] = entry.parse(text)
        except ValueError as error:
            raise SettingsError(
                f"{entry.flags[-1]} must be {error}, got {text!r}",
                fix=f"{entry.flags[-1]} N, or 0 for no such limit",
                guide="limits",
            ) from error
    return values
