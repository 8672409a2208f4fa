"""The command `report`, and the option --output, which chooses where and in which format a report
is written."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import click

from babyagi.app.backends import utc_now
from babyagi.cli.options import WrongUsage, json_option, objective_option
from babyagi.cli.session import pick_objective, with_store
from babyagi.cli.text import echo, warn
from babyagi.errors import SettingsError
from babyagi.reporting.report import load_page, load_report
from babyagi.reporting.sources import find_artifacts, trace_sources
from babyagi.tasks import Objective
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import quoted

MARKDOWN, HTML, JSON = FORMATS = ("md", "html", "json")
_FORMAT_BY_SUFFIX = {
    **dict.fromkeys((".md", ".markdown", ".txt"), MARKDOWN),
    **dict.fromkeys((".html", ".htm"), HTML),
    ".json": JSON,
}

# of documents that a person may expect here; other suffixes, such as that of a temporary file, do
# not name a format
_OTHER_SUFFIXES = (
    ".pdf .doc .docx .odt .rtf .epub .tex .xls .xlsx .ods .csv .ppt .pptx .xml .yaml".split()
)

output_option = click.option(
    "--output",
    metavar="FILE",
    help="Write the report to this file, in the format of its suffix: .md, .html or .json.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where and in which format a report is written.

    Attributes:
        path: the file; None means standard output.
        format: one of `FORMATS`.
        as_json: whether standard output must contain nothing but JSON.
    """

    path: Path | None = None
    format: str = MARKDOWN
    as_json: bool = False


def choose_output(output: str | None, report_format: str = "", *, as_json: bool) -> Output:
    """Return where and in which format the report is to be written. Called before a run, to check
    that the report can be written there, so that no money is wasted.

    Args:
        output: the value of --output; - is standard output.
        report_format: one of `FORMATS`; '' means that of the file's suffix.

    Raises:
        SettingsError: the file cannot be written.
        click.UsageError: the options contradict each other, or the file's suffix names a format
            that no report has.
    """
    if output == "":
        raise WrongUsage("--output names no file")
    path = Path(output) if output not in (None, "-") else None
    if path is None:
        if as_json and report_format not in ("", JSON):
            raise WrongUsage(
                f"--json and --format {report_format} both need standard output; add --output FILE"
            )
        return Output(format=report_format or (JSON if as_json else MARKDOWN), as_json=as_json)
    suffix = path.suffix.lower()
    if not report_format and suffix in _OTHER_SUFFIXES:
        what = f"a report cannot be written as {suffix}; the file's suffix can be .md, .html, .json"
        raise WrongUsage(what, f"--output {quoted(str(path.with_suffix('.html')))}")
    require_writable(path)
    chosen = report_format or _FORMAT_BY_SUFFIX.get(suffix, MARKDOWN)
    return Output(path=path, format=chosen, as_json=as_json)


# -- files
# --------------------------------------------------------------------------------------------------


def require_writable(path: Path) -> None:
    """Check that the file can be written, without changing it. Raises `SettingsError` if it
    cannot."""
    with _refused(path, fix="name another file with --output"):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a directory")
        if not _is_special(path):
            with _unfinished(path):
                pass


def write_whole(path: Path, data: bytes) -> None:
    """Write the file whole or not at all: even after a kill or on a full disk, it is either the old
    file or the new one. Raises `SettingsError` if it cannot be written."""
    with _refused(path, fix="babyagi report --output ANOTHER_FILE; the report itself is kept"):
        if _is_special(path):
            # a pipe that nobody reads is an error: no signal ends the wait for a reader
            fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            os.set_blocking(fd, True)
            with os.fdopen(fd, "wb") as file:
                file.write(data)
            return
        target = path.resolve()
        with _unfinished(path) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            os.replace(file.name, target)  # noqa: PTH105  (the name of an open file is a text)


def _is_special(path: Path) -> bool:
    """Return whether the path is a pipe or a device, such as /dev/null."""
    return path.exists() and not path.is_file()


@contextmanager
def _refused(path: Path, *, fix: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be written", why=error.strerror or str(error), fix=fix, guide="report"
        ) from error


@contextmanager
def _unfinished(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file in the same folder, which no other process uses. It is removed afterwards,
    unless it was moved."""
    beside = path.resolve().with_name(f".babyagi-{os.getpid()}.part")
    beside.unlink(missing_ok=True)
    try:
        with beside.open("xb") as file:
            yield file
    finally:
        beside.unlink(missing_ok=True)


# -- the report
# --------------------------------------------------------------------------------------------------


async def give_report(
    store: TaskStore, objective: Objective, output: Output, *, now: datetime
) -> None:
    """Write the objective's report as `output` says, to its file or to standard output.

    Raises:
        SettingsError: the file cannot be written.
    """

    markdown = await load_report(store, objective)
    if output.path is None and output.format == MARKDOWN:
        from babyagi.cli.markdown import echo_markdown

        echo_markdown(markdown)
        return
    text = markdown
    if output.format == HTML:
        text = await load_page(store, objective, markdown, now=now)
    elif output.format == JSON:
        from babyagi.verbs.json_shapes import report_shape

        results = await store.results(objective.id)
        sources, made = await trace_sources(store, results), await find_artifacts(store, results)
        text = json.dumps(report_shape(objective, markdown, sources, made), indent=2) + "\n"
    if output.path is not None:
        write_whole(output.path, text.encode("utf-8", "replace"))
    else:
        echo(text.rstrip("\n"))


@click.command()
@objective_option
@output_option
@click.option(
    "--format",
    "report_format",
    type=click.Choice(FORMATS),
    help="The report's format, where no suffix names it. Default: Markdown.",
)
@json_option
def report(objective: str, output: str | None, report_format: str | None, as_json: bool) -> None:
    """Print the report of an objective, or write it to a file.

    If the objective has no report yet, the results of its tasks so far are printed.
    """

    wanted = report_format or (JSON if as_json else "")
    chosen = choose_output(output, wanted, as_json=as_json)

    async def give(store: TaskStore) -> None:
        await give_report(store, await pick_objective(store, objective), chosen, now=utc_now())

    with_store(give)
    if chosen.path is not None:
        warn(f"The report is in {chosen.path}")
