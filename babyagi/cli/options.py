"""Options that several commands share. Options for settings are made from the declarations of the
settings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from babyagi.errors import SettingsError
from babyagi.settings.fields import declared_fields

if TYPE_CHECKING:
    from babyagi.taskstore.sql.store import TaskStore

F = TypeVar("F", bound=Callable[..., Any])

LIMITS = ("max_tasks", "max_calls", "max_tokens", "max_cost_usd", "max_time_s")
ALL = "all"


def _objective_option(metavar: str, default: str) -> Callable[[F], F]:
    return click.option(
        "--objective",
        metavar=metavar,
        default=default,
        show_default=True,
        help="The number of the objective; latest is the one that you used last.",
    )


objective_option = _objective_option("ID|latest", "latest")
objectives_option = _objective_option(f"ID|latest|{ALL}", ALL)


async def pick_or_all(store: TaskStore, selector: str) -> int | None:
    """Return the number of the objective that `selector`, the value of the option --objective,
    means; None for `all`."""
    from babyagi.cli.session import pick_objective

    return None if selector == ALL else (await pick_objective(store, selector)).id


new_option = click.option(
    "--new",
    "always_new",
    is_flag=True,
    help="Start a new objective, even if the same one was started before.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON and nothing else on standard output."
)


class Listing(click.Group):
    """A command group that runs its command `list` when no command follows it, and accepts the
    options of `list`. An option before a command's name is passed to that command: `tasks --json
    list` means `tasks list --json`."""

    def __init__(self, name: str, help: str) -> None:
        super().__init__(name, help=help, invoke_without_command=True, callback=self._list)

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        super().add_command(cmd, name)
        if cmd.name == "list":
            self.params += [option for option in cmd.params if isinstance(option, click.Option)]

    def invoke(self, ctx: click.Context) -> Any:
        typed = {
            name: value
            for name, value in ctx.params.items()
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        }
        ctx.default_map = dict.fromkeys(self.commands, typed)
        return super().invoke(ctx)

    def _list(self, **_typed: Any) -> Any:
        context = click.get_current_context()
        if context.invoked_subcommand is not None:
            return None
        with self.commands["list"].make_context("list", [], parent=context) as inner:
            return inner.command.invoke(inner)


def setting_options(
    names: Iterable[str] | None = None, *, but: Iterable[str] = ()
) -> Callable[[F], F]:
    """Return a decorator that adds options for settings to a command, in the order of the settings'
    declarations. Settings without a command-line flag are left out.

    An option's value is the text that was typed; `load_settings` parses it, as it parses
    environment variables.

    Args:
        names: the settings; None means all of them.
        but: settings to leave out.
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
                # only for the shell's completion: any text is taken
                "type": click.Path() if entry.metavar in ("FOLDER", "FILE") else None,
            }
            kind = switch if entry.is_switch else texts
            command = click.option(*entry.flags, name, help=entry.help, **kind)(command)
        return command

    return decorate


def require_words(words: Sequence[str], what: str = "an objective", *, before: str = "") -> str:
    """Return the words as one text; `-` alone stands for the text on standard input. If the text
    is blank, raise `click.UsageError`, so that a script whose variable is empty does not run the
    objective that the settings name.

    Args:
        what: what the words are, for the message.
        before: what is typed between the command and the words.
    """
    text = sys.stdin.read().strip() if tuple(words) == ("-",) else " ".join(words)
    if not text.strip():
        command = click.get_current_context().command_path
        noun = what.partition(" ")[2]
        wrong = f"the {noun} is {'empty' if words else 'missing'}"
        raise wrong_usage(wrong, f'{command} {before}"{what}"')
    return text


class WrongUsage(click.UsageError):
    """A usage error that says what to type instead; '' means that the command's help says it."""

    def __init__(self, message: str, context: click.Context, *, fix: str) -> None:
        super().__init__(message, context)
        self.fix = fix


def wrong_usage(what: str, fix: str = "", context: click.Context | None = None) -> WrongUsage:
    """Return a usage error of the command of `context`, by default the current one.

    Args:
        what: the message.
        fix: what to type instead; '' means that the command's help says it.
    """
    return WrongUsage(what, context or click.get_current_context(), fix=fix)


def given_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that were typed in this command, without those that have no value."""
    return {name: value for name, value in flags.items() if value not in (None, (), False)}


def parse_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the flags that were typed, each parsed as the setting of the same name.

    Raises:
        SettingsError: a value is invalid.
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
                fix=f"{entry.flags[-1]} N, where 0 means no limit",
                guide="limits",
            ) from error
    return values
