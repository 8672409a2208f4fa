"""Options that several commands share. Options for settings are made from the declarations of the
settings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from babyagi.errors import SettingsError
from babyagi.settings.fields import Settings, declared_fields
from babyagi.settings.values import parse_duration_s
from babyagi.text import say_duration

F = TypeVar("F", bound=Callable[..., Any])

LIMITS = ("max_tasks", "max_calls", "max_tokens", "max_cost_usd", "max_time_s")
NUMBERS = (*LIMITS, "concurrency")
ALL = "all"
# settings that are set once and hold for all objectives; their options are not in the help
SET_ONCE = "memory planning use_my_model agent_hosts no_color".split()


def _objective_option(metavar: str, default: str) -> Callable[[F], F]:
    return click.option(
        "--objective",
        metavar=metavar,
        default=default,
        show_default=True,
        help="The number of the objective; latest is the one that was used or created last.",
    )


objective_option = _objective_option("ID|latest", "latest")
objectives_option = _objective_option(f"ID|latest|{ALL}", ALL)


new_option = click.option(
    "--new",
    "always_new",
    is_flag=True,
    help="Start a new objective, even if the same one was started before.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON and nothing else on standard output."
)


class Duration(click.ParamType[str]):
    """A time with its unit, such as 90s, 30m or 2h. A bare 5 is refused: it would be five seconds,
    which few mean."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text, name = str(value).strip(), param.opts[-1] if param is not None else ""
        try:
            seconds = parse_duration_s(text)
        except ValueError as error:
            raise WrongUsage(f"{name} must be {error}, got {text!r}", context=ctx) from error
        if seconds and text[-1].isdecimal():
            what = f"{name} needs a unit: {text} seconds, minutes or hours?"
            raise WrongUsage(what, f"{name} {text}m", ctx)
        return text


class Family(click.Group):
    """A command group that is a command itself: without the name of one of its commands it does
    what its own command does, with the own command's arguments and options. An option before a
    command's name is passed to that command: `tasks --json add x` means `tasks add x --json`."""

    def __init__(self, own: click.Command, help: str = "") -> None:
        options = [one for one in own.params if isinstance(one, click.Option)]
        self._words = [one for one in own.params if isinstance(one, click.Argument)]
        super().__init__(own.name, help=help or own.help, params=[*options])
        self.own = own
        context = click.Context(own)
        own_words = [piece for one in self._words for piece in one.get_usage_pieces(context)]
        self.subcommand_metavar = f"{' '.join(own_words)} | COMMAND [ARGS]...".lstrip(" |")

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        context = click.Context(self, info_name=info_name, parent=parent)
        context.resilient_parsing = bool(extra.get("resilient_parsing"))
        typed, rest, _ = self.make_parser(context).parse_args([*args])
        help_option = self.get_help_option(context)
        asks_help = help_option is not None and help_option.name in typed
        is_named = rest[:1] and (rest[0] in self.commands or not self._takes(rest[0]))
        if is_named or asks_help or context.resilient_parsing:
            return super().make_context(info_name, args, parent, **extra)
        return self.own.make_context(info_name, args, parent, **extra)

    def _takes(self, word: str) -> bool:
        """Return whether the word can be the first argument of the own command."""
        try:
            return bool(self._words) and self._words[0].type(word) is not None
        except click.BadParameter:
            return False

    def invoke(self, ctx: click.Context) -> Any:
        typed = {
            name: value
            for name, value in ctx.params.items()
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        }
        ctx.default_map = dict.fromkeys(self.commands, typed)
        return super().invoke(ctx)


_TYPES = {"FOLDER": click.Path(), "FILE": click.Path(), "TIME": Duration()}


def setting_options(
    names: Iterable[str] | None = None,
    *,
    but: Iterable[str] = (),
    hidden: Iterable[str] = (),
    says_default: bool = True,
) -> Callable[[F], F]:
    """Return a decorator that adds options for settings to a command, in the order of the settings'
    declarations. Settings without a command-line flag are left out.

    An option's value is the text that was typed; `load_settings` parses it, as it parses
    environment variables.

    Args:
        names: the settings; None means all of them.
        but: settings to leave out.
        hidden: settings whose options act, but are not in the help.
        says_default: whether the help of a number names what holds without it.
    """
    known = declared_fields()
    wanted = set(known if names is None else names) - set(but)
    declared = [(name, entry) for name, entry in known.items() if entry.flags and name in wanted]

    def decorate(command: F) -> F:
        for name, entry in reversed(declared):
            switch: dict[str, Any] = {"is_flag": True, "default": None}
            texts: dict[str, Any] = {
                "metavar": "|".join(entry.choices) or entry.metavar,
                "multiple": entry.takes_many,
                "default": None,
                # a path only for the shell's completion: any text is taken
                "type": _TYPES.get(entry.metavar),
            }
            kind = switch if entry.is_switch else texts
            said = f"{entry.help}{_say_default(name) if says_default else ''}"
            option = click.option(*entry.flags, name, help=said, hidden=name in hidden, **kind)
            command = option(command)
        return command

    return decorate


def _say_default(name: str) -> str:
    """Return what an option's help says of its default; only that of a number is said."""
    if name not in NUMBERS:
        return ""
    default: Any = next(one.default for one in fields(Settings) if one.name == name)
    said = say_duration(default) if name == "max_time_s" else f"{default:,.12g}"
    return f"  [default: {said if default else 'none'}]"


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
        raise WrongUsage(wrong, f'{command} {before}"{what}"')
    return text


class WrongUsage(click.UsageError):
    """A usage error of the command of `context`, by default the current one. `fix`: what to type
    instead; '' means that the command's help says it."""

    def __init__(self, message: str, fix: str = "", context: click.Context | None = None) -> None:
        super().__init__(message, context or click.get_current_context())
        self.fix = fix


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
                fix=f"{entry.flags[-1]} {entry.metavar}, where 0 means no limit",
                guide="limits",
            ) from error
    return values
