"""How easily this program is entered: its files and imports, and what lies between `main`, a task
and the database.

Files and imports are read from the source. Frames, statements, transactions and the files of a verb
are counted while the program runs: on SQLite in a file, with models that answer at once.

* A file has a single importer when one other file of the program imports it.
* A circle is a group of files that import each other, be it within a function.
* Frames are those of this program's own functions, from `main` through every asyncio task on the
  way to the model.
* Statements are what this program has SQLite execute, without PRAGMA, BEGIN and COMMIT; a script is
  one, `executemany` one for each row. What triggers add to them is counted apart. A transaction is
  a BEGIN. The first call is that of `babyagi run` in a home that is there already; of three runs
  the one with the fewest statements, because what looks at intervals is not on the way.

And what texts are compared with: words and patterns, each with its line and its reason, as
`support.compared` finds them; and the statements of Python that judge a model's replies, as shares
of those of a commit that decided by lists of words.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import contextlib
import io
import os
import random
import sqlite3
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest import mock

from babyagi import errors, events
from babyagi.cli import main as babyagi_main
from babyagi.index.builtin import BuiltinIndex
from babyagi.index.hashing import HashEmbedder
from babyagi.index.indexer import Indexer
from babyagi.index.search import ResultSearch
from babyagi.journal import Backends, Gate
from babyagi.llm.port import ChatModel, Completion
from babyagi.llm.prompt import Prompt, Speaker, ToolCall
from babyagi.llm.rehearsal import RehearsalModel
from babyagi.loop import Bounds, Loop
from babyagi.runtime.offload import ThreadOffload, run_inline
from babyagi.tasks import Limits, Objective, Proposal, Role, Worker
from babyagi.taskstore.nouns import Deferral
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import open_sqlite
from babyagi.tools.base import Tool
from babyagi.tools.calculator import build_calculator
from babyagi.worker.process import Runtime, WorkerLoop
from babyagi.worker.serving import Pace
from benchmarks.script import OBJECTIVE, Script
from support.compared import (
    FORM,
    GRAMMAR,
    MAX_PATTERNS,
    MAX_WORDS,
    OTHER,
    Judged,
    Verdict,
    find_sites,
    judge,
    read_register,
    totals,
)
from support.scripted import ScriptedModel
from support.table import print_table, verdict
from support.workers import join
from support.world import make_spec

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "babyagi"
N_LONGEST = 5
N_RUNS = 3
MAX_SINGLE_IMPORTERS = 20
MAX_CIRCLES = 0
MAX_CLAIM_FILES = 5
MAX_FRAMES = 20
MAX_FIRST_STATEMENTS = 25
MAX_TASK_STATEMENTS = 70
MAX_TASK_TRANSACTIONS = 12
MAX_TASK_FUNCTIONS = 6500  # calls of functions of the package
MAX_VERBS = 65  # public methods of the store
MAX_KINDS = 40  # of events
MAX_ERRORS = 22  # beside their base class
N_QUEUED = 20
RESULT_BYTES = 500
# statements of Python at commit 35507d87, whose package was unpacked with
# `git archive 35507d87 babyagi | tar -x -C FOLDER` and counted with `count_statements(FOLDER, …)`
HEAD = ("agents", "taskstore/names.py", "react", "loop.py", "duties")
N_HEAD_STATEMENTS = 5263
MAX_HEAD_SHARE = 0.55
JUDGING = (
    *("taskstore/names.py", "agents/phrases.py", "agents/outcomes.py", "agents/evidence.py"),
    *("agents/replies/creation.py", "agents/replies/reading.py"),
    *("llm/rehearsal.py", "index/subjects.py"),
)
N_JUDGING_STATEMENTS = 3422
MAX_JUDGING_SHARE = 0.25
CONTROL = ("PRAGMA", "BEGIN", "COMMIT", "ROLLBACK")
# so that what comes first is a task
EVERYTHING_LATER = Deferral(min_startable=100, min_unordered=100, min_recorded=100)


# -- files and imports
# --------------------------------------------------------------------------------------------------


def read_imports(package: Path) -> dict[str, set[str]]:
    """Return, by module of the package, the modules of it that the module imports when it runs."""
    path_by_module = {_module_name(path, package): path for path in sorted(package.rglob("*.py"))}
    return {
        module: _imported_by(path, path_by_module) - {module}
        for module, path in path_by_module.items()
    }


def _module_name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported_by(path: Path, known: Mapping[str, Path]) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    for_types_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in for_types_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & known.keys()
            if not inner <= known.keys():
                found.add(node.module)
    return found & known.keys()


def find_single_importers(imports: Mapping[str, set[str]]) -> list[str]:
    """Return the modules that exactly one other module imports."""
    counted = Counter(module for imported in imports.values() for module in imported)
    return sorted(module for module, n in counted.items() if n == 1)


def find_circles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that reach each other, each group in the order of names."""
    reached = {module: _reach(module, imports) for module in imports}
    groups = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in imports
        if module in reached[module]
    }
    return sorted(sorted(group) for group in groups)


def _reach(module: str, imports: Mapping[str, set[str]]) -> set[str]:
    """What is imported from the module over any number of imports, at least one."""
    seen: set[str] = set()
    waiting = [*imports[module]]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting += imports[current]
    return seen


# -- statements of SQLite
# --------------------------------------------------------------------------------------------------


class SqlCount:
    """How many statements and transactions every connection of SQLite was given, and how many
    statements it has executed with what triggers made of them."""

    def __init__(self) -> None:
        self.n_statements = 0
        self.n_transactions = 0
        self.n_with_triggers = 0

    def note_given(self, statement: str, *, n: int = 1) -> None:
        self.n_transactions += statement.startswith("BEGIN")
        self.n_statements += 0 if statement.lstrip().startswith(CONTROL) else n

    def note_executed(self, statement: str) -> None:
        """Triggers are shown under the text of the statement that they belong to, and what full
        text does for itself behind `--`."""
        self.n_with_triggers += not statement.lstrip().startswith((*CONTROL, "--"))


class CountedConnection(sqlite3.Connection):
    count: SqlCount

    def cursor(self, factory: Any = None) -> Any:
        cursor = super().cursor(factory or CountedCursor)
        cursor.count = self.count
        return cursor

    def execute(self, sql: str, *values: Any) -> Any:
        return self.cursor().execute(sql, *values)

    def executescript(self, script: str) -> Any:
        return self.cursor().executescript(script)


class CountedCursor(sqlite3.Cursor):
    count: SqlCount

    def execute(self, sql: str, *values: Any) -> Any:
        self.count.note_given(sql)
        return super().execute(sql, *values)

    def executemany(self, sql: str, rows: Any) -> Any:
        rows = list(rows)
        self.count.note_given(sql, n=len(rows))
        return super().executemany(sql, rows)

    def executescript(self, script: str) -> Any:
        self.count.note_given(script)
        return super().executescript(script)


@contextmanager
def counted_sql() -> Iterator[SqlCount]:
    """Count what is executed on the connections that are opened meanwhile."""
    count, connect = SqlCount(), sqlite3.connect

    def connect_counted(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options, factory=CountedConnection)
        connection.count = count
        connection.set_trace_callback(count.note_executed)
        return connection

    with mock.patch("sqlite3.connect", connect_counted):
        yield count


# -- the first call of a run
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstCall:
    """What lies between `main` and the model that is called first. `frames` are the functions of
    this program on the way, `n_all_frames` counts those of libraries as well."""

    frames: tuple[str, ...]
    n_all_frames: int
    n_statements: int
    n_with_triggers: int


class Stacks:
    """The functions on the way to a frame: those of its own stack, after those on the way to where
    its asyncio task was made."""

    def __init__(self) -> None:
        self._way_by_task: dict[asyncio.Task[Any], list[CodeType]] = {}

    def way_to(self, frame: FrameType | None) -> list[CodeType]:
        task, own = _current_task(), []
        while frame is not None and not (task and frame.f_code is asyncio.Handle._run.__code__):
            own.append(frame.f_code)
            frame = frame.f_back
        return [*(self._way_by_task.get(task, ()) if task else ()), *reversed(own)]

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note the way to every asyncio task that is made meanwhile."""
        make = asyncio.BaseEventLoop.create_task

        def make_noted(loop: asyncio.BaseEventLoop, *args: Any, **options: Any) -> Any:
            way = self.way_to(sys._getframe(1))
            task = make(loop, *args, **options)
            self._way_by_task[task] = way
            return task

        with mock.patch.object(asyncio.BaseEventLoop, "create_task", make_noted):
            yield


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs yet
        return None


def measure_first_call() -> FirstCall:
    """Run `babyagi run` with the rehearsal model in this process; the shortest way of a few."""
    return min((_go_to_first_call() for _ in range(N_RUNS)), key=lambda one: one.n_statements)


def _go_to_first_call() -> FirstCall:
    stacks = Stacks()
    seen: list[tuple[list[CodeType], int, int]] = []
    complete = RehearsalModel.complete

    async def complete_seen(model: RehearsalModel, prompt: Prompt, *, role: Role) -> Completion:
        if not seen:
            way = stacks.way_to(sys._getframe(1))
            seen.append((way, count.n_statements, count.n_with_triggers))
        return await complete(model, prompt, role=role)

    with tempfile.TemporaryDirectory() as folder:
        variables = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": folder,
            "BABYAGI_HOME": str(Path(folder) / "home"),
            "BABYAGI_RESULT_STORE": "builtin",
            "LLM_MODEL": "rehearsal",
        }
        with contextlib.chdir(folder), mock.patch.dict(os.environ, variables, clear=True):
            _run_command_line("show", "objectives")
            with (
                stacks.noted(),
                counted_sql() as count,
                mock.patch.object(RehearsalModel, "complete", complete_seen),
            ):
                _run_command_line("run", OBJECTIVE, "-t", "Begin", "--max-tasks", "1")
    way, n_statements, n_with_triggers = seen[0]
    way = way[way.index(babyagi_main.__code__) :]
    return FirstCall(
        frames=tuple(_describe(code) for code in way if code.co_filename.startswith(str(PACKAGE))),
        n_all_frames=len(way),
        n_statements=n_statements,
        n_with_triggers=n_with_triggers,
    )


def _run_command_line(*arguments: str) -> None:
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.suppress(SystemExit),
    ):
        babyagi_main(arguments)


def _describe(code: CodeType) -> str:
    return f"{Path(code.co_filename).relative_to(PACKAGE)} {code.co_qualname}"


# -- a task
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCost:
    """What a task takes once a run is under way."""

    n_calls: float
    n_statements: float
    n_with_triggers: float
    n_transactions: float


async def measure_task(n_tasks: int, *, has_steps: bool) -> TaskCost:
    """The difference between a run of twice as many tasks and a run of this many, by task: neither
    the start nor the end of a run is in it.

    Args:
        has_steps: each task computes something before it answers, and is planned from alone: three
            calls. Else it answers at once, and a list of 20 tasks lets three be planned from
            together, as in `benchmarks.overhead`.
    """
    small, large = [await _count_run(n, has_steps=has_steps) for n in (n_tasks, 2 * n_tasks)]
    return TaskCost(
        n_calls=(large.n_calls - small.n_calls) / n_tasks,
        n_statements=(large.n_statements - small.n_statements) / n_tasks,
        n_with_triggers=(large.n_with_triggers - small.n_with_triggers) / n_tasks,
        n_transactions=(large.n_transactions - small.n_transactions) / n_tasks,
    )


async def _count_run(n_tasks: int, *, has_steps: bool) -> TaskCost:
    script = Script(result_bytes=RESULT_BYTES)

    def answer(prompt: Prompt, role: Role) -> object:
        if has_steps and role is Role.EXECUTION and prompt.messages[-1].speaker is Speaker.USER:
            return (ToolCall(id="c1", name="calculator", arguments='{"expression": "2 + 2"}'),)
        return script.reply(role, prompt.messages[-1].text)

    model = ScriptedModel(answer)
    limits = Limits(max_tasks=n_tasks, max_tokens=0, max_cost_usd=0, max_time_s=0)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        count = stack.enter_context(counted_sql())
        offload = ThreadOffload()
        stack.callback(offload.close)
        store = await open_sqlite(folder / "tasks.db", clock=_utc_now, offload=offload)
        stack.push_async_callback(store.close)
        spec = make_spec(text=OBJECTIVE, initial_task=script.next_name(), limits=limits)
        objective, _ = await store.create_objective(spec, uid=f"house-{n_tasks}", always_new=True)
        queued = [] if has_steps else [script.next_name() for _ in range(N_QUEUED)]
        await store.add_tasks(objective.id, [Proposal(name=name) for name in queued])
        await _open_worker(store, model, [build_calculator()] if has_steps else []).run(
            objective.id
        )
        return TaskCost(
            n_calls=len(model.calls),
            n_statements=count.n_statements,
            n_with_triggers=count.n_with_triggers,
            n_transactions=count.n_transactions,
        )


def _open_worker(store: TaskStore, model: ChatModel, tools: Sequence[Tool]) -> WorkerLoop:
    roles = (Role.EXECUTION, Role.CREATION, Role.PRIORITIZATION, Role.REPORT)

    def open_loop(objective: Objective, gate: Gate) -> Loop:
        index = BuiltinIndex()
        return Loop(
            Backends(
                store=store,
                models=dict.fromkeys(roles, model),
                embedder=HashEmbedder(),
                gate=gate,
                sleep=asyncio.sleep,
            ),
            search=ResultSearch(store, index, objective=objective),
            indexer=Indexer(store, index, objective=objective),
            tools=tools,
            bounds=Bounds(context_tokens=4000, max_output_tokens=2000, max_new_tasks=10),
            clock=_utc_now,
        )

    identity = Worker(id="worker", name="house", host="here", pid=0, lease_until=_utc_now())
    runtime = Runtime(
        identity=identity, sleep=asyncio.sleep, random=random.random, new_id=lambda: "another"
    )
    # the goals are those of tasks whose planning is shared
    pace = Pace(concurrency=1, is_batched=True)
    return WorkerLoop(store, open_loop, pace=pace, runtime=runtime)


def _utc_now() -> datetime:
    return datetime.now(UTC)


async def find_claim_files() -> list[str]:
    """The files with code that runs while a task is claimed."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            found.add(str(Path(frame.f_code.co_filename).relative_to(PACKAGE)))

    with tempfile.TemporaryDirectory() as folder:
        store = await open_sqlite(Path(folder) / "tasks.db", clock=_utc_now, offload=run_inline)
        objective, _ = await store.create_objective(make_spec(), uid="house")
        worker = Worker(id="worker", name="house", host="here", pid=0, lease_until=_utc_now())
        await join(store, worker, objective.id)
        sys.setprofile(note)
        try:
            _, claim = await store.claim_next(objective.id, worker.id, deferral=EVERYTHING_LATER)
        finally:
            sys.setprofile(None)
        await store.close()
    if claim is None:
        raise RuntimeError("no task could be claimed")
    return sorted(found)


async def count_functions(n_tasks: int) -> float:
    """Return how many functions of the package a task of three calls calls, without the start and
    the end of the run."""
    n_calls = 0

    def note(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal n_calls
        n_calls += event == "call" and frame.f_code.co_filename.startswith(f"{PACKAGE}{os.sep}")

    measured = []
    for n in (n_tasks, 2 * n_tasks):
        n_calls = 0
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            await _count_run(n, has_steps=True)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        measured.append(n_calls)
    return (measured[1] - measured[0]) / n_tasks


def _rows_of_concepts() -> list[tuple[str, ...]]:
    verbs = [name for name in dir(TaskStore) if not name.startswith("_")]
    kinds = [value for name, value in vars(events).items() if name.isupper() and value != 1]
    named = [one for one in vars(errors).values() if isinstance(one, type)]
    mended = [one for one in named if issubclass(one, errors.BabyagiError)]
    return [
        _row("verbs of the store", len(verbs), MAX_VERBS),
        _row("kinds of event", len(kinds), MAX_KINDS),
        _row("errors", len(mended) - 1, MAX_ERRORS),
    ]


# -- what texts are compared with, and the statements that judge replies
# --------------------------------------------------------------------------------------------------


def count_statements(package: Path, places: Iterable[str]) -> int:
    """Return how many statements the files and folders have; one that is not there has none."""
    paths = [
        path
        for place in places
        for path in ((package / place).rglob("*.py") if "." not in place else [package / place])
        if path.exists()
    ]
    trees = [ast.parse(path.read_text("utf-8")) for path in paths]
    return sum(isinstance(node, ast.stmt) for tree in trees for node in ast.walk(tree))


def show_compared(*, with_others: bool) -> None:
    found = judge(find_sites(PACKAGE), read_register())
    _show_sites("Compared with the text of a model, a page, a file or a result", found.of(FORM))
    _show_sites("Names of a format that others have written down", found.of(GRAMMAR))
    if with_others:
        _show_sites("Said, or compared with something else", found.of(OTHER))
    show_names("faults of support/compared.toml", found.faults)
    _show_counts(found)


def _show_sites(title: str, sites: Sequence[Judged]) -> None:
    rows = [
        (
            f"{one.site.path}:{one.site.line}",
            one.site.scope,
            len(one.site.words),
            len(one.site.patterns),
            one.why,
        )
        for one in sites
    ]
    print_table(title, ("line", "where", "words", "patterns", "why"), rows)


def _show_counts(found: Verdict) -> None:
    sites_by_path: dict[str, list[Judged]] = {}
    for one in found.of(FORM):
        sites_by_path.setdefault(one.site.path, []).append(one)
    print_table(
        "Words and patterns by file",
        ("file", "words", "patterns"),
        [(path, *totals(sites)) for path, sites in sites_by_path.items()],
    )
    n_words, n_patterns = totals(found.of(FORM))
    more = [
        "{} with names of formats, {} said or compared with something else".format(*n)
        for n in zip(
            totals([*found.of(FORM), *found.of(GRAMMAR)]), totals(found.of(OTHER)), strict=True
        )
    ]
    head = count_statements(PACKAGE, HEAD) / N_HEAD_STATEMENTS
    judging = count_statements(PACKAGE, JUDGING) / N_JUDGING_STATEMENTS
    print_table(
        "How little is decided by words",
        ("what", "measured", "goal", "", ""),
        [
            _row("words compared with texts", n_words, MAX_WORDS, more[0]),
            _row("patterns compared with texts", n_patterns, MAX_PATTERNS, more[1]),
            _row("faults of the register", len(found.faults), 0),
            _row(f"statements of {', '.join(HEAD)}, of {N_HEAD_STATEMENTS}", head, MAX_HEAD_SHARE),
            _row(
                f"statements that judged by words, of {N_JUDGING_STATEMENTS}",
                judging,
                MAX_JUDGING_SHARE,
            ),
        ],
    )


# -- the report
# --------------------------------------------------------------------------------------------------


def show_files() -> None:
    lines_by_path = {
        path: len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py")
    }
    longest = sorted(lines_by_path, key=lambda path: lines_by_path[path], reverse=True)
    print_table(
        f"{len(lines_by_path)} Python files of {sum(lines_by_path.values())} lines; the longest",
        ("file", "lines"),
        [(path.relative_to(PACKAGE), lines_by_path[path]) for path in longest[:N_LONGEST]],
    )


def _row(what: str, measured: float, goal: float, more: str = "") -> tuple[str, ...]:
    return what, f"{measured:.4g}", str(goal), verdict(measured <= goal), more


def _with_triggers(n: float) -> str:
    return f"{n:.4g} with those of triggers"


def _rows_of_task(cost: TaskCost) -> list[tuple[str, ...]]:
    of = f"a task of {cost.n_calls:.1f} calls"
    return [
        _row(
            f"statements, {of}",
            cost.n_statements,
            MAX_TASK_STATEMENTS,
            _with_triggers(cost.n_with_triggers),
        ),
        _row(f"transactions, {of}", cost.n_transactions, MAX_TASK_TRANSACTIONS),
    ]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.house",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--tasks", type=int, default=20, help="tasks that a task's cost is taken from"
    )
    parser.add_argument("--names", action="store_true", help="name what is counted")
    parser.add_argument(
        "--compared", action="store_true", help="only what texts are compared with, in full"
    )
    options = parser.parse_args(argv)
    if options.compared:
        show_compared(with_others=True)
        return
    show_files()
    imports = read_imports(PACKAGE)
    single, circles = find_single_importers(imports), find_circles(imports)
    claim_files = asyncio.run(find_claim_files())
    first_call = measure_first_call()
    listed, stepping = [
        asyncio.run(measure_task(options.tasks, has_steps=has_steps)) for has_steps in (False, True)
    ]
    n_functions = asyncio.run(count_functions(options.tasks))
    all_frames = f"{first_call.n_all_frames} with those of libraries"
    print_table(
        "How easily it is entered",
        ("what", "measured", "goal", "", ""),
        [
            _row("files with a single importer", len(single), MAX_SINGLE_IMPORTERS),
            _row("circles of imports", len(circles), MAX_CIRCLES),
            _row("Python files of claim_next", len(claim_files), MAX_CLAIM_FILES),
            _row("frames to the first call", len(first_call.frames), MAX_FRAMES, all_frames),
            _row(
                "statements to the first call",
                first_call.n_statements,
                MAX_FIRST_STATEMENTS,
                _with_triggers(first_call.n_with_triggers),
            ),
            *_rows_of_task(stepping),
            *_rows_of_task(listed),
            _row("functions called, a task of 3.0 calls", n_functions, MAX_TASK_FUNCTIONS),
            *_rows_of_concepts(),
        ],
    )
    if options.names:
        show_names("files with a single importer", single)
        show_names("circles of imports", [" ".join(circle) for circle in circles])
        show_names("Python files of claim_next", claim_files)
        show_names("frames to the first call", first_call.frames)
    show_compared(with_others=options.names)


def show_names(title: str, names: Iterable[str]) -> None:
    print(f"{title}:", *(f"  {name}" for name in names), "", sep="\n")


if __name__ == "__main__":
    main()
