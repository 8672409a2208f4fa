"""The command `babyagi`: its commands, and what its bare form means.

`babyagi` alone runs what `OBJECTIVE` says. `babyagi -t "first task" some objective words` runs as
the original did. A bare unknown word is a typo, never a paid run.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import click

from babyagi import __version__
from babyagi.cli import (
    asking,
    cooperating,
    inbox,
    index,
    journal,
    list_steering,
    looking,
    running,
    steering,
    surroundings,
    toolbox,
    trusting,
)
from babyagi.cli.text import echo

HELP_FLAGS = ("-h", "--help")
ORIGINAL_FLAGS = {
    "instance_name",
    "cooperative_mode",
    "initial_task",
    "join_existing_objective",
    "gpt_4",
    "llama",
    "extra_env_files",
}


class Commands(click.Group):
    """A group that lists its commands in the order of their definition and knows what a mistyped
    one meant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            raise click.UsageError(what_was_meant([args[0]]), ctx)
        return super().resolve_command(ctx, args)


COMMANDS = (
    running.demo,
    running.run,
    running.watch,
    asking.ask,
    cooperating.submit,
    cooperating.worker,
    cooperating.workers,
    looking.objectives,
    looking.status,
    looking.tasks,
    looking.results,
    looking.show,
    looking.report,
    inbox.inbox,
    inbox.answer,
    inbox.approve,
    inbox.reject,
    running.resume,
    steering.pause,
    steering.cancel,
    steering.extend,
    list_steering.retry,
    steering.delete,
    index.index,
    journal.journal,
    cooperating.migrate,
    toolbox.tools,
    surroundings.config,
    trusting.trust,
    surroundings.doctor,
    surroundings.guide,
)


@click.group(
    cls=Commands,
    commands=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": list(HELP_FLAGS)},
)
@click.option("--version", is_flag=True, help="Print the version and end.")
@click.pass_context
def babyagi(context: click.Context, version: bool) -> int | None:
    """An autonomous task-loop daemon: an objective goes in, a report comes out.

    \b
    babyagi demo                  the real job on real files, without a key and without a network
    babyagi run "an objective"    with a model (OPENAI_API_KEY, or OPENAI_BASE_URL for a local one)
    babyagi resume                go on where it was
    babyagi guide                 read more

    Bare `babyagi` runs the OBJECTIVE of the environment or of .env; the original's flags (-n -m -t
    -j -4 -l -e) work as in `babyagi run`.
    """
    if version:
        echo(f"babyagi {__version__}")
        return None
    if context.invoked_subcommand is None:
        return running.run_from_settings()
    return None


def run_command_line(args: Sequence[str]) -> int:
    """Run one command line and return its exit code. Errors are raised, not told."""
    try:
        code = babyagi.main(args=route(args), prog_name="babyagi", standalone_mode=False)
    except SystemExit as error:
        # click's way of saying that a completion was printed, or that the reader is gone
        if not error.code:
            return 0
        raise BrokenPipeError from error
    return code if isinstance(code, int) else 0


def route(args: Sequence[str]) -> list[str]:
    """Return the arguments with `run` put before those that mean it.

    Raises:
        click.UsageError: bare words that are no command and no run.
    """
    first = args[0] if args else ""
    if not args or first in babyagi.commands or first in (*HELP_FLAGS, "--version"):
        return list(args)
    context = click.Context(running.run, info_name="babyagi", help_option_names=list(HELP_FLAGS))
    given, _, _ = running.run.make_parser(context).parse_args(list(args))
    found = given.get("objective_words")
    words = found if isinstance(found, tuple) else ()
    if words and not _is_run(words, set(given)):
        raise click.UsageError(what_was_meant(words), click.Context(babyagi, info_name="babyagi"))
    return ["run", *args]


def _is_run(words: Sequence[str], flags: set[str]) -> bool:
    """Whether words beside flags are an objective: with a first task always, with another of the
    original's flags when they are no single word."""
    if words[0] in babyagi.commands:
        return False
    return "initial_task" in flags or (bool(flags & ORIGINAL_FLAGS) and " " in " ".join(words))


def what_was_meant(words: Sequence[str]) -> str:
    """Say why bare words are not run, and what may have been meant."""
    text = " ".join(words)
    if words[0] in babyagi.commands:
        return (
            f"flags go after the command: babyagi {words[0]} … (or babyagi run … for an "
            f"objective that begins with {words[0]!r})"
        )
    if " " in text:
        return f"to run an objective type: babyagi run {quoted(text)}"
    near = difflib.get_close_matches(text, babyagi.commands, n=1)
    meant = (
        f"did you mean `babyagi {near[0]}`?"
        if near
        else f"to run an objective type: babyagi run {quoted(text)}"
    )
    return f"there is no command {text!r}; {meant}"


def quoted(text: str) -> str:
    """The text as a shell takes it for one word."""
    return (
        '"'
        + "".join(f"\\{character}" if character in '"\\$`' else character for character in text)
        + '"'
    )
