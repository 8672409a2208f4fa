"""Runs each system on each case, one at a time, and appends what came of it to a file of rows."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.uplift.endpoints import (
    ROOT,
    Call,
    Counter,
    Endpoint,
    counting,
    open_engine,
    open_scripted,
)
from benchmarks.uplift.table import print_tables
from support.processes import COMMAND
from support.uplift.baselines import BASELINES, MAX_CALLS, Ask, Messages, PromptTooLongError
from support.uplift.cases import Case, judge
from support.uplift.folders import KINDS, make_folders
from support.uplift.persons import PERSONS, make_persons
from support.uplift.reader import NATIVE, SPEAKS

OURS = "ours"
SYSTEMS = (*BASELINES, OURS)
SCRIPTED = "scripted"
BUILD_SEED = 2027
MAX_OUTPUT_TOKENS = 1000  # of a reply to the systems that we compare with
TOO_LONG = "exceed_context_size_error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came of one system on one case. `seconds` are of wall time, `stop` is the stop reason
    of ours, or what kept the system from answering."""

    model: str
    commit: str
    system: str
    case: str
    kind: str
    language: str
    is_small: bool
    depth: int
    is_right: bool
    n_held: int
    n_marks: int
    n_forbidden: int
    f1: float
    calls: int
    tokens_in: int
    tokens_out: int
    tokens_anew: int
    n_cut: int
    seconds: float
    stop: str
    answer: str


def main(argv: Sequence[str] | None = None) -> None:
    options = parse(argv)
    asyncio.run(run(options))
    print_tables(read_rows(options.rows))


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.uplift",
        description="The same model as one call, as a ReAct loop, as a plain loop and as ours, on "
        "folders and worlds of persons with exact keys. Goes on where it stopped.",
    )
    parser.add_argument(
        "--model",
        default=SCRIPTED,
        help=f"a GGUF file (`python -m benchmarks.uplift.model_file FILE` brings one), or "
        f"{SCRIPTED}: a reader that takes exactly what its prompt holds",
    )
    parser.add_argument("--rows", type=Path, required=True, help="the file of rows, JSON lines")
    parser.add_argument("--systems", type=_names, default=list(SYSTEMS), help=", ".join(SYSTEMS))
    parser.add_argument(
        "--kinds", type=_names, default=[*KINDS, PERSONS], help=", ".join((*KINDS, PERSONS))
    )
    parser.add_argument(
        "--seed",
        default="build,commit",
        type=_names,
        help=f"of build ({BUILD_SEED}, to build on), commit (taken of --commit), or numbers",
    )
    parser.add_argument("--commit", default="HEAD", help="whose name the fresh seed is taken of")
    parser.add_argument("--limit", type=int, help="cases of each set at most")
    parser.add_argument("--cases", type=_names, help="only those whose names hold one of these")
    parser.add_argument(
        "--protocol", default="", help="of ours: native, json, text; default: as it finds out"
    )
    parser.add_argument("--speaks", choices=SPEAKS, default=NATIVE, help=f"of {SCRIPTED}")
    parser.add_argument("--timeout-s", type=float, default=5400.0, help="of one run")
    parser.add_argument(
        "--package",
        type=Path,
        default=ROOT,
        help="the folder with the package of ours, such as that of another commit",
    )
    parser.add_argument("--table", action="store_true", help="run nothing, print the rows' tables")
    return parser.parse_args(argv)


def _names(text: str) -> list[str]:
    return text.split(",")


# -- cases
# --------------------------------------------------------------------------------------------------


def find_commit(name: str) -> str:
    line = ("git", "rev-parse", name)
    return subprocess.run(line, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def make_cases(options: argparse.Namespace, commit: str) -> Iterator[Case]:
    for given in options.seed:
        name, seed = {
            "build": ("build", BUILD_SEED),
            "commit": (f"commit-{commit[:8]}", int(commit[:8], 16)),
        }.get(given) or (f"seed-{given}", int(given))
        found = (
            case
            for make in (make_folders, make_persons)
            for case in make(name, seed)
            if case.kind in options.kinds
            and (not options.cases or any(part in case.name for part in options.cases))
        )
        yield from islice(found, options.limit)


# -- running
# --------------------------------------------------------------------------------------------------


async def run(options: argparse.Namespace) -> None:
    """Run what the file of rows lacks."""
    commit, model = find_commit("HEAD"), name_model(options)
    done = {(row["model"], row["system"], row["case"]) for row in read_rows(options.rows)}
    todo = [
        (case, system)
        for case in make_cases(options, find_commit(options.commit))
        for system in options.systems
        if (model, system, case.name) not in done
    ]
    if options.table or not todo:
        return
    async with _open(options) as endpoint, counting(endpoint) as counter:
        for n, (case, system) in enumerate(todo, start=1):
            row = await run_one(case, system, (endpoint, counter), options)
            append(options.rows, {**asdict(row), "model": model, "commit": commit})
            append(calls_file(options.rows), *log_calls(row, counter.calls, model))
            said = "right" if row.is_right else f"{row.n_held} of {row.n_marks} marks"
            print(
                f"{n}/{len(todo)} {case.name} {system}: {said}, {row.calls} calls, "
                f"{row.n_cut} of them given up, {row.seconds:.0f} s",
                flush=True,
            )


def name_model(options: argparse.Namespace) -> str:
    """What rows of the same kind of run have in common."""
    is_scripted = options.model == SCRIPTED
    name = f"{SCRIPTED}:{options.speaks}" if is_scripted else Path(options.model).stem
    return f"{name}:{options.protocol}" if options.protocol else name


def _open(options: argparse.Namespace) -> AbstractAsyncContextManager[Endpoint]:
    if options.model == SCRIPTED:
        return open_scripted(options.speaks)
    return open_engine(Path(options.model).resolve())


async def run_one(
    case: Case, system: str, through: tuple[Endpoint, Counter], options: argparse.Namespace
) -> Row:
    endpoint, counter = through
    await endpoint.prepare(case)
    counter.calls.clear()
    begun_s = time.monotonic()
    if system == OURS:
        answer, stop = await run_ours(case, counter.base_url, options)
    else:
        answer, stop = await run_baseline(case, system, counter)
    seconds = time.monotonic() - begun_s
    judged, calls = judge(case, answer), counter.calls
    return Row(
        model="",
        commit="",
        system=system,
        case=case.name,
        kind=case.kind,
        language=case.language,
        is_small=case.is_small,
        depth=case.depth,
        is_right=judged.is_right,
        n_held=judged.n_held,
        n_marks=judged.n_marks,
        n_forbidden=judged.n_forbidden,
        f1=round(judged.f1, 4),
        calls=len(calls),
        tokens_in=sum(call.tokens_in for call in calls),
        tokens_out=sum(call.tokens_out for call in calls),
        tokens_anew=sum(call.tokens_anew for call in calls),
        n_cut=sum(call.is_cut for call in calls),
        seconds=round(seconds, 1),
        stop=stop,
        answer=answer,
    )


async def run_baseline(case: Case, system: str, counter: Counter) -> tuple[str, str]:
    try:
        return await BASELINES[system](_asker(counter), case), "answered"
    except PromptTooLongError:
        return "", "prompt too long"


def _asker(counter: Counter) -> Ask:
    async def ask(messages: Messages) -> str:
        if len(counter.calls) >= MAX_CALLS:
            return ""
        body = {"model": "local", "messages": messages, "max_tokens": MAX_OUTPUT_TOKENS}
        reply = await counter.client.post(f"{counter.base_url}/chat/completions", json=body)
        if reply.status_code == 400 and TOO_LONG in reply.text:
            raise PromptTooLongError
        reply.raise_for_status()
        return reply.json()["choices"][0]["message"]["content"] or ""

    return ask


# -- ours
# --------------------------------------------------------------------------------------------------


async def run_ours(case: Case, base_url: str, options: argparse.Namespace) -> tuple[str, str]:
    """Return the report of a real process, without what the program itself says of the run, and
    the stop reason."""
    with TemporaryDirectory() as folder:
        files = Path(folder) / "files"
        files.mkdir()
        case.write(files)
        variables = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(options.package.resolve()),
            "HOME": folder,
            "BABYAGI_HOME": str(Path(folder) / "home"),
            "OPENAI_BASE_URL": base_url,
            "LLM_MODEL": "local",
            **({"BABYAGI_PROTOCOL": options.protocol} if options.protocol else {}),
        }
        line = ("run", case.question, "--files", str(files), "--max-calls", str(MAX_CALLS))
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *line,
            env=variables,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(options.timeout_s):
                out, err = await process.communicate()
        except TimeoutError:
            return "", "timeout"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    answer, stop = read_report(out.decode())
    return answer, stop or f"exit {process.returncode}: {err.decode()[-500:]}"


def read_report(report: str) -> tuple[str, str]:
    """The answer in a report, and the stop reason: what stands between the title and the list of
    sources, or else the facts of the run."""
    _, _, body = report.partition("\n")
    answer, _, rest = body.rpartition("\n---\n\n## How it ended")
    stop = next((line for line in rest.splitlines() if line.startswith("* Stopped: ")), "")
    answer = answer.partition("\n## Sources\n")[0]
    return answer.strip(), stop.removeprefix("* Stopped: ").partition(": ")[0]


# -- rows
# --------------------------------------------------------------------------------------------------


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of the file; a last one that was cut is left out."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def append(path: Path, *rows: dict[str, Any]) -> None:
    is_cut = path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" if is_cut else "")
        for row in rows:
            file.write(f"{json.dumps(row, ensure_ascii=False)}\n")


def calls_file(rows: Path) -> Path:
    """The file beside the rows with every prompt and reply, to look at what went wrong."""
    return rows.with_suffix(".calls.jsonl")


def log_calls(row: Row, calls: Sequence[Call], model: str) -> Iterator[dict[str, Any]]:
    for n, call in enumerate(calls, start=1):
        yield {"model": model, "system": row.system, "case": row.case, "n": n, **asdict(call)}
