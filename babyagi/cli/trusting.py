"""The command `trust`, and the question whether to trust a file, which other commands ask on a
terminal if settings that they need are in an untrusted file."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Sequence
from pathlib import Path

import click

from babyagi.cli.text import Line, Style, confirm, echo, echo_lines, is_person_there, safe, warn
from babyagi.settings.load import (
    Loaded,
    Untrusted,
    describe_waiting,
    distrust_file,
    load_settings,
    trust_file,
    trusted_paths,
)

MAX_ROUNDS = 3  # a file that is now trusted may name more files, about which the person is asked


@click.command()
@click.option("--revoke", is_flag=True, help="Stop trusting the files of this folder.")
@click.option("--list", "lists", is_flag=True, help="List the trusted files.")
def trust(revoke: bool, lists: bool) -> None:
    """Trust the .env of this folder as it is now.

    The settings in it that can run programs, read or send data, or spend money are shown. When the
    file changes, it is no longer trusted. A file named with -e needs no trust.
    """
    loaded = _read()
    if lists:
        paths = trusted_paths(loaded.trust_home)
        for path in paths:
            echo(str(path))
        if not paths:
            warn("No file is trusted.")
        return
    if revoke:
        _revoke(loaded.trust_home)
        return
    if not loaded.untrusted:
        echo(
            "Nothing to trust: no file of this folder has settings that can run programs, read or "
            "send data, or spend money."
        )
    for _ in range(MAX_ROUNDS):
        if loaded.untrusted:
            echo_lines(render_untrusted(loaded.untrusted))
            _trust(loaded)
            echo(
                "The file is trusted as it is now. After a change of it, or after babyagi trust "
                "--revoke, it is no longer trusted."
            )
            loaded = _read()


def settle(load: Callable[[], Loaded], needs: Container[str] | None) -> Loaded:
    """Return the settings that `load` reads. If one that the command needs is in an untrusted file,
    ask the person at the terminal whether to trust the file.

    Settings in untrusted files that the command does not need are named in a note and have no
    effect.

    Args:
        needs: the names of the settings that the command needs; None means all of them.

    Raises:
        SettingsError: a needed setting is in an untrusted file, and there is no terminal or the
            person refused.
    """
    loaded = load()
    for _ in range(MAX_ROUNDS):
        waiting = [found for found in loaded.waiting if needs is None or found.name in needs]
        if not waiting or not is_person_there() or not _is_trusted_now(loaded.untrusted):
            break
        _trust(loaded)
        loaded = load()
    loaded.require_trust(needs)
    if loaded.waiting:
        warn(f"note: {describe_waiting(loaded.waiting)} (babyagi trust)", Style.YELLOW)
    return loaded


def _read() -> Loaded:
    return load_settings(flags={}, environ=os.environ, cwd=Path.cwd())


def render_untrusted(untrusted: Sequence[Untrusted]) -> list[Line]:
    """Return the lines that a person must read before trusting: the path of each file, and under it
    each of its settings that needs trust, with its whole value."""
    lines = []
    for file in dict.fromkeys(found.file.path for found in untrusted):
        what = "settings that can run programs, read or send data, or spend money"
        lines.append(Line(f"{safe(str(file))} has {what}:", Style.BOLD))
        its_own = [found for found in untrusted if found.file.path == file]
        lines += [Line(f"  {found.variable}={safe(found.shown)}") for found in its_own]
    return lines


def _is_trusted_now(untrusted: Sequence[Untrusted]) -> bool:
    for line in render_untrusted(untrusted):
        warn(line.text, line.style)
    return confirm("Do you trust this file as it is now?")


def _trust(loaded: Loaded) -> None:
    for file in {found.file.path: found.file for found in loaded.untrusted}.values():
        trust_file(loaded.trust_home, file)


def _revoke(home: Path) -> None:
    here = [path for path in trusted_paths(home) if path.parent == Path.cwd()]
    n_contents = sum(distrust_file(home, path) for path in here)
    now = "is trusted any more" if n_contents else "was trusted"
    echo(f"No file of this folder {now}.")
