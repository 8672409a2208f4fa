"""The command `config trust`, and the question whether to trust a file, which other commands ask on
a terminal if settings that they need are in an untrusted file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Container, Sequence
from pathlib import Path

import click

from babyagi.cli.text import Line, Style, confirm, echo, echo_lines, is_person_there, warn
from babyagi.errors import SettingsError
from babyagi.settings.load import (
    Loaded,
    Untrusted,
    describe_waiting,
    distrust_file,
    load_settings,
    trust_file,
    trusted_paths,
)
from babyagi.text import harmless

KIND = "settings that can run programs, read or send data, or spend money"


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--yes", "is_sure", is_flag=True, help="Ask nothing; trust .env, or each FILE.")
@click.option("--revoke", is_flag=True, help="Stop trusting the files of this folder.")
def trust(files: Sequence[str], is_sure: bool, revoke: bool) -> None:
    """Ask whether to trust the .env of this folder as it is now.

    Its settings that can run programs, read or send data, or spend money are shown first. Files
    that a trusted file names are shown and asked about as well. With --yes, only .env or each FILE
    is trusted. When a file changes, it is no longer trusted. A file named with -e needs no trust.
    """
    loaded = _read()
    if revoke:
        _revoke(loaded.trust_home)
    elif not loaded.untrusted:
        echo(f"Nothing to trust: no file of this folder has {KIND}.")
    elif is_sure:
        _trust_named(loaded, [_whole(Path(file)) for file in files or (".env",)])
    elif is_person_there():
        trust_each(loaded, _read, _is_wanted, lambda _: True)
    else:
        echo_lines(render_untrusted(loaded.untrusted), warn)
        raise SettingsError(
            "babyagi config trust asks a person, and there is no terminal here",
            fix="babyagi config trust --yes trusts the .env of this folder as it is now, and asks "
            "nothing",
            guide="settings",
        )


def _trust_named(loaded: Loaded, paths: Sequence[Path]) -> None:
    """Trust the files at these paths, and say which others are not trusted. Raises `SettingsError`
    if such a file is not trusted afterwards, although settings wait."""

    def is_named(found: Sequence[Untrusted]) -> bool:
        if is_at := _whole(found[0].file.path) in paths:
            echo_lines(render_untrusted(found))
        return is_at

    loaded = trust_each(loaded, _read, is_named, lambda _: True)
    waiting = {_whole(found.file.path): found.file.name for found in loaded.untrusted}
    trusted = set(map(_whole, trusted_paths(loaded.trust_home))) - waiting.keys()
    for path in waiting.keys() - set(paths):
        name = shlex.quote(waiting[path])
        warn(f"{waiting[path]} is not trusted yet: babyagi config trust --yes {name}")
    for path in paths if waiting else ():
        if path not in trusted:
            raise SettingsError(
                f"{path} is not trusted",
                why="it has just changed" if path in waiting else "no trusted file names it",
                fix="babyagi config shows which settings wait, and in which file",
                guide="settings",
            )


def _whole(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100  a link is another file than its target


def trust_each(
    loaded: Loaded,
    load: Callable[[], Loaded],
    is_wanted: Callable[[Sequence[Untrusted]], bool],
    matters: Callable[[Untrusted], bool],
) -> Loaded:
    """Trust each file with a setting that `matters` if `is_wanted` returns True for its settings,
    and the files that such a file names in the same way. The bytes that were read before
    `is_wanted` are trusted, so that a file that changes meanwhile is not.

    Returns:
        The settings afterwards.
    """
    asked: set[Path] = set()
    while file := next(
        (one.file for one in loaded.untrusted if matters(one) and one.file.path not in asked), None
    ):
        asked.add(file.path)
        if not is_wanted([found for found in loaded.untrusted if found.file.path == file.path]):
            continue
        trust_file(loaded.trust_home, file)
        loaded = load()
        if any(found.file.path == file.path for found in loaded.untrusted):
            warn(f"{file.name} has changed since it was shown, and is not trusted.", Style.YELLOW)
        else:
            warn(
                f"{file.name} is trusted as it is now. After a change of it, or after "
                "babyagi config trust --revoke, it is no longer trusted."
            )
    return loaded


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

    def matters(found: Untrusted) -> bool:
        return found.is_waiting and (needs is None or found.name in needs)

    loaded = load()
    if any(map(matters, loaded.untrusted)) and is_person_there():
        loaded = trust_each(loaded, load, _is_wanted, matters)
    loaded.require_trust(needs)
    if loaded.waiting:
        warn(f"note: {describe_waiting(loaded.waiting)} (babyagi config trust)", Style.YELLOW)
    return loaded


def _read() -> Loaded:
    return load_settings(flags={}, environ=os.environ, cwd=Path.cwd())


def render_untrusted(untrusted: Sequence[Untrusted]) -> list[Line]:
    """Return the lines that a person must read before trusting: the path of each file, and where it
    leads if it is a link, and under it each of its settings that needs trust, with its whole
    value."""
    lines = []
    for path in dict.fromkeys(found.file.path for found in untrusted):
        real = path.resolve()
        link = "" if real == _whole(path) else f" (a link to {harmless(str(real))})"
        lines.append(Line(f"{harmless(str(path))}{link} has {KIND}:", Style.BOLD))
        its_own = [found for found in untrusted if found.file.path == path]
        lines += [Line(f"  {found.variable}={harmless(found.shown)}") for found in its_own]
    return lines


def _is_wanted(found: Sequence[Untrusted]) -> bool:
    """Show the settings of a file, and ask the person whether to trust it."""
    echo_lines(render_untrusted(found), warn)
    return confirm(f"Do you trust {found[0].file.name} as it is now?")


def _revoke(home: Path) -> None:
    here = [path for path in trusted_paths(home) if path.parent == Path.cwd()]
    n_contents = sum(distrust_file(home, path) for path in here)
    now = "is trusted any more" if n_contents else "was trusted"
    echo(f"No file of this folder {now}.")
