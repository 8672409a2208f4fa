"""Bugs planted one at a time, to see that the tests and nets which are to catch such bugs do.

Each bug is planted into a process of its own by replacing a method, a piece of SQL or a statement
there; the program has no hooks for it. Each promise of the program has one bug or more that break
it, and each such bug one named test that must fail under it, and that passes without it.
The nets are the crash points (only those points at which a kill leaves something new behind, until
the first fault), the contract of the task store on SQLite, and random histories of reservations.
The first row of each table plants nothing, and nothing may be caught there.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import importlib
import inspect
import io
import itertools
import logging
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from babyagi.journal import Journal
from babyagi.runtime.offload import run_inline
from babyagi.tasks import Claim, Duty, Fence, ObjectiveStatus, Step, StepState
from babyagi.taskstore import lifecycle
from babyagi.taskstore.nouns import Intention
from babyagi.taskstore.sql import database as sql
from babyagi.taskstore.sql import tasks, transitions
from babyagi.taskstore.sql.database import Transaction, step_from_row, to_time
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import open_sqlite
from support.table import print_table, verdict
from tests.faults.crash_lives import SCENARIOS
from tests.faults.crash_points import make_cases, prepare, run_case, survey
from tests.taskstore.contract import Clock, TaskStoreContract
from tests.taskstore.histories import History, Time

MAX_CATCH_S = 300.0  # for one bug: with some the program never ends
MAX_TEST_S = 20.0  # a named test that takes longer has failed
MAX_NAMED_S = 90.0  # for all that is tried at once in one process
N_HISTORIES = 20


# -- the bugs
# --------------------------------------------------------------------------------------------------


def _commit_around(piece: str, *, is_after: bool = False) -> None:
    """One transaction becomes two: the second begins with this piece of SQL, or behind it."""
    run = Transaction.run

    def run_apart(self: Transaction, named: str, **values: Any) -> None:
        if is_after or named != piece:
            run(self, named, **values)
        if named == piece:
            self._connection.execute("COMMIT", ())
            self._connection.execute("BEGIN IMMEDIATE", ())
            if not is_after:
                run(self, named, **values)

    Transaction.run = run_apart  # type: ignore[assignment,method-assign]


def _run_nothing(piece: str) -> None:
    run = Transaction.run

    def run_others(self: Transaction, named: str, **values: Any) -> None:
        if named != piece:
            run(self, named, **values)

    Transaction.run = run_others  # type: ignore[assignment,method-assign]


def _drop_event(kind: str) -> None:
    run = Transaction.run

    def run_some(self: Transaction, named: str, **values: Any) -> None:
        if named != "insert_event" or values["kind"] != kind:
            run(self, named, **values)

    Transaction.run = run_some  # type: ignore[assignment,method-assign]


def _look_up_nothing() -> None:
    intend = Journal._intend

    async def forget(self: Journal, intention: Intention) -> Step:
        return replace(await intend(self, intention), output=None, state=StepState.INTENDED)

    Journal._intend = forget  # type: ignore[method-assign]


def _ignore_the_fence() -> None:
    record = TaskStore.record_result

    async def record_for_anybody(self: TaskStore, claim: Claim, **result: Any) -> Any:
        rows = await self._read(
            lambda tx: tx.all("task", objective_id=claim.task.objective_id, task_id=claim.task.id)
        )
        fence = replace(claim.fence, worker_id=rows[0]["worker_id"], claim_no=rows[0]["claim_no"])
        return await record(self, replace(claim, fence=fence), **result)

    TaskStore.record_result = record_for_anybody  # type: ignore[assignment,method-assign]


def _ignore_the_order() -> None:
    load = sql.load_queries

    def load_without_rank(*rooms: str) -> dict[str, str]:
        pieces = dict(load(*rooms))
        return pieces | {
            "best_queued": pieces["best_queued"].replace("ORDER BY rank, id", "ORDER BY id")
        }

    sql.load_queries = load_without_rank  # type: ignore[assignment]


def _release_nothing() -> None:
    find = Transaction.all

    def find_some(self: Transaction, named: str, **values: Any) -> Any:
        return [] if named in ("tasks_held_by", "duties_held_by") else find(self, named, **values)

    Transaction.all = find_some  # type: ignore[assignment,method-assign]


def _find_no_duplicate() -> None:
    tasks._Batch._find_repeated = lambda self, one: None  # type: ignore[method-assign]


def _know_no_objective() -> None:
    numbers = itertools.count()
    lifecycle.identity_keys = lambda spec: [str(next(numbers))]


def _settle_nothing() -> None:
    def only_ask(tx: Transaction, objective_id: int, owner: str) -> bool:
        rows = tx.all("unsettled_steps", objective_id=objective_id)
        return any(lifecycle.is_open(step_from_row(row)) for row in rows if row["owner"] == owner)

    transitions.settle = only_ask


def _replace(where: str, make: Callable[[Any], Any]) -> None:
    """Put what `make` makes of the present value in its place.

    Args:
        where: `module:name`, or `module:Class.name`, below `babyagi`.

    Raises:
        AttributeError: there is no such name.
    """
    module, _, path = where.partition(":")
    *owners, name = path.split(".")
    holder = functools.reduce(getattr, owners, importlib.import_module(f"babyagi.{module}"))
    setattr(holder, name, make(getattr(holder, name)))


def _give(where: str, value: Any) -> Callable[[], None]:
    """Return how a bug is planted by which a function, whatever it is asked, returns `value`."""
    return lambda: _replace(where, lambda _: lambda *args, **kwargs: value)


def _return_first(where: str) -> Callable[[], None]:
    """Return how a bug is planted by which a function returns its first argument as it is."""
    return lambda: _replace(where, lambda _: lambda first, *args, **kwargs: first)


def _call_with(where: str, **changed: Any) -> Callable[[], None]:
    """Return how a bug is planted by which a method is always called with these arguments."""

    def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: call(*args, **{**kwargs, **changed})

    return lambda: _replace(where, wrap)


def _intend_nothing_once() -> None:
    def wrap(intend: Callable[..., Any]) -> Callable[..., Any]:
        async def but_once(self: TaskStore, fence: Fence, **asked: Any) -> Step:
            intention: Intention = asked["intention"]
            if intention.kind != lifecycle.ONCE:
                step: Step = await intend(self, fence, **asked)
                return step
            call = {"key": intention.key, "kind": lifecycle.ONCE, "request": intention.request}
            return lifecycle.open_step(fence, at=to_time(0), **call)

        return but_once

    _replace("taskstore.sql.store:TaskStore.intend_step", wrap)


def _forget_signs() -> None:
    def wrap(line: Callable[..., str]) -> Callable[..., str]:
        return lambda text, **bound: "".join(
            one for one in line(text, **bound) if one.isalnum() or one.isspace()
        )

    _replace("taskstore.lifecycle:storable_line", wrap)


def _let_all_serve() -> None:
    _replace(
        "taskstore.sql.transitions:_standing",
        lambda read: lambda *asked: {**dict(read(*asked)), "can_serve": True},
    )


def _number_the_ranks_anew() -> None:
    _replace(
        "taskstore.lifecycle:deal_ranks",
        lambda _: lambda current, wanted: {id_: rank for rank, id_ in enumerate(wanted, start=1)},
    )


def _apply_late_orders() -> None:
    def wrap(reorder: Callable[..., Any]) -> Callable[..., Any]:
        async def reorder_now(self: TaskStore, claim: Any, *, revision: int, **order: Any) -> Any:
            objective = await self.objective(claim.fence.objective_id)
            return await reorder(self, claim, revision=objective.order_revision, **order)

        return reorder_now

    _replace("taskstore.sql.store:TaskStore.reorder", wrap)


def _owe_always(owed: Duty) -> None:
    def wrap(is_owed: Callable[..., bool]) -> Callable[..., bool]:
        return lambda tx, objective, duty, found: (
            duty is owed or is_owed(tx, objective, duty, found)
        )

    _replace("taskstore.sql.transitions:_is_owed", wrap)


def _put_off_nothing() -> None:
    _replace(
        "taskstore.lifecycle:first_duty",
        lambda _: lambda claimable, deferral: next(iter(claimable.duties), None),
    )


def _fence_nothing() -> None:
    _replace(
        "taskstore.sql.transitions:fenced_task",
        lambda _: (
            lambda tx, fence, *statuses: transitions.read_task(
                tx, fence.objective_id, lifecycle.task_of(fence.owner) or 0
            )
        ),
    )


def _show_planned_results_only() -> None:
    def wrap(results: Callable[..., Any]) -> Callable[..., Any]:
        async def planned(self: TaskStore, *args: Any, **wanted: Any) -> list[Any]:
            return [one for one in await results(self, *args, **wanted) if one.is_planned]

        return planned

    _replace("taskstore.sql.store:TaskStore.results", wrap)


def _name_each_duty_anew() -> None:
    numbers = itertools.count()
    _replace(
        "taskstore.lifecycle:duty_owner",
        lambda _: lambda duty, row: f"{duty}:{next(numbers)}",
    )


def _record_after_the_tool() -> None:
    async def later(self: Journal) -> None:
        pass

    _replace("journal:Journal.flush", lambda _: later)


def _tick_off_before_indexing() -> None:
    def wrap(run: Callable[..., Any]) -> Callable[..., Any]:
        async def run_once(self: Any, *, limit: int = 100, **how: Any) -> Any:
            source, objective_id = self._source, self._objective.id
            owed = await source.results(objective_id, only_unindexed=True, limit=limit)
            ids = [result.task_id for result in owed]
            await source.mark_indexed(objective_id, task_ids=ids)
            return await run(self, limit=limit, **how)

        return run_once

    _replace("index.indexer:Indexer.run_once", wrap)


def _bury_the_living() -> None:
    def wrap(reap: Callable[..., Any]) -> Callable[..., Any]:
        async def reap_all(self: TaskStore, **_: Any) -> Any:
            return await reap(self, gone=[worker.id for worker in await self.workers()])

        return reap_all

    _replace("taskstore.sql.store:TaskStore.reap_workers", wrap)


def _call_while_paused() -> None:
    def wrap(require: Callable[..., None]) -> Callable[..., None]:
        return lambda objective, **call: require(
            replace(objective, status=ObjectiveStatus.ACTIVE, stop_reason=None), **call
        )

    _replace("taskstore.limits:require_call_allowed", wrap)


def _tell_events_the_request() -> None:
    def wrap(append: Callable[..., None]) -> Callable[..., None]:
        return lambda tx, step, kind, /, **data: append(
            tx, step, kind, **{**data, "request": step.request, "output": step.output}
        )

    _replace("taskstore.sql.transitions:append_step_event", wrap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A bug: its name, how it is planted into this process, and the test that must fail under it;
    without a test it is for the nets alone."""

    name: str
    plant: Callable[[], None]
    test: str = ""


CLEAN = Mutant(name="nothing", plant=lambda: None)
MUTANTS = (
    Mutant(
        name="a result is committed before its task's status",
        plant=lambda: _commit_around("insert_result", is_after=True),
    ),
    Mutant(
        name="a result is committed without its event", plant=lambda: _drop_event("task.recorded")
    ),
    Mutant(
        name="a call's usage is committed after its answer",
        plant=lambda: _commit_around("charge_objective"),
    ),
    Mutant(name="the journal looks up no answer", plant=_look_up_nothing),
    Mutant(name="what a dead worker's calls hold is not settled", plant=_settle_nothing),
    Mutant(name="a payment is made without being intended", plant=_intend_nothing_once),
    Mutant(name="a result is taken from any worker", plant=_ignore_the_fence),
    Mutant(name="tasks are claimed without regard to the order", plant=_ignore_the_order),
    Mutant(name="dead workers keep what they held", plant=_release_nothing),
    Mutant(name="no limit is checked", plant=_give("taskstore.limits:require_call_allowed", None)),
    Mutant(name="a result that is no answer is kept", plant=lambda: _run_nothing("delete_result")),
    Mutant(name="what is in the list is added again", plant=_find_no_duplicate),
    Mutant(name="an objective that is started again begins anew", plant=_know_no_objective),
    Mutant(
        name="a planning is over before its tasks are in the list",
        plant=lambda: _commit_around("insert_task"),
    ),
)

CONTRACT = "tests/taskstore/test_sqlite.py::TestSqliteTaskStore"
# each promise with the bugs that break it
PROMISES: tuple[tuple[str, tuple[Mutant, ...]], ...] = (
    (
        "1 ids and names stay, byte for byte",
        (
            Mutant(
                name="signs fall out of names",
                plant=_forget_signs,
                test=f"{CONTRACT}::test_a_name_is_kept_byte_for_byte",
            ),
            Mutant(
                name="ids in an index are those of every objective",
                plant=_give("index.indexer:id_head", "00000000-0000-5000-8000-"),
                test="tests/index/test_indexer.py"
                "::test_an_id_says_which_task_it_is_of_and_belongs_to_one_objective_only",
            ),
        ),
    ),
    (
        "2 an order is a hint",
        (
            Mutant(
                name="ranks are numbered anew, as the reply has it",
                plant=_number_the_ranks_anew,
                test="tests/taskstore/test_lifecycle.py"
                "::test_dealing_ranks_only_permutes_the_ranks_of_the_named_tasks",
            ),
            Mutant(
                name="an order for an earlier list is applied",
                plant=_apply_late_orders,
                test=f"{CONTRACT}::test_a_stale_order_changes_nothing_and_the_duty_is_still_owed",
            ),
        ),
    ),
    (
        "3 ordering is asked for where it can change something, of a bounded part",
        (
            Mutant(
                name="an order is always owed",
                plant=lambda: _owe_always(Duty.ORDER),
                test=f"{CONTRACT}::test_no_order_is_owed_while_fewer_than_two_tasks_can_be_started",
            ),
            Mutant(
                name="batches wait for nothing",
                plant=_put_off_nothing,
                test="tests/test_loop.py::test_the_prioritizer_is_asked_only_when_order_can_change",
            ),
            Mutant(
                name="the whole list is shown",
                plant=_call_with("taskstore.sql.store:TaskStore.window", n_head=10**6),
                test=f"{CONTRACT}::test_the_window_shows_the_head_and_the_newest_each_once",
            ),
        ),
    ),
    (
        "4 no duplicates; what is needed first comes first",
        (
            Mutant(
                name="what is in the list is added again",
                plant=_find_no_duplicate,
                test=f"{CONTRACT}::test_two_proposals_of_the_same_spelling_are_one",
            ),
            Mutant(
                name="what a task comes after is forgotten",
                plant=_give("taskstore.sql.tasks:_Batch._after", []),
                test=f"{CONTRACT}"
                "::test_a_task_is_not_claimable_before_the_tasks_it_comes_after_are_done",
            ),
        ),
    ),
    (
        "5 met is a claim to be checked",
        (
            Mutant(
                name="a check that does not agree ends the run as well",
                plant=_call_with("taskstore.sql.store:TaskStore.finish_check", is_met=True),
                test="tests/test_loop.py::test_work_goes_on_when_the_check_does_not_agree",
            ),
            Mutant(
                name="the claim stops no new task",
                plant=_give("taskstore.sql.tasks:_ask_for_check", None),
                test=f"{CONTRACT}"
                "::test_a_claim_that_the_objective_is_met_stops_new_tasks_until_it_is_checked"
                "_beside_running_ones",
            ),
        ),
    ),
    (
        "6 a commit is whole, and fenced by its claim",
        (
            Mutant(
                name="a worker without its lease records",
                plant=_fence_nothing,
                test=f"{CONTRACT}::test_a_lost_lease_records_nothing",
            ),
            Mutant(
                name="a result is committed without the outcome that it is made from",
                plant=_give("taskstore.sql.tasks:record_first", None),
                test=f"{CONTRACT}::test_an_outcome_and_the_result_are_one_transaction",
            ),
        ),
    ),
    (
        "7 a result is seen before it is planned from, and the planning outlives its worker",
        (
            Mutant(
                name="results are hidden until they are planned from",
                plant=_show_planned_results_only,
                test=f"{CONTRACT}"
                "::test_a_result_is_visible_before_the_planning_and_stands_for_ever_after_it",
            ),
            Mutant(
                name="a planning that is taken over finds no step of it",
                plant=_name_each_duty_anew,
                test=f"{CONTRACT}"
                "::test_a_planning_of_a_dead_worker_is_taken_over_with_its_steps_and_its_late_plan"
                "_changes_nothing",
            ),
        ),
    ),
    (
        "8 a call is journaled before anything comes of it, and never paid for twice",
        (
            Mutant(
                name="the journal looks up no answer",
                plant=_look_up_nothing,
                test="tests/test_journal.py::test_a_finished_call_is_never_made_again",
            ),
            Mutant(
                name="a tool is called before the answer that names it is recorded",
                plant=_record_after_the_tool,
                test="tests/test_journal.py"
                "::test_nothing_made_from_an_outcome_leaves_before_the_outcome_is_recorded",
            ),
        ),
    ),
    (
        "9 what must be done once and may have been done waits for a person",
        (
            Mutant(
                name="a payment is made without being intended",
                plant=_intend_nothing_once,
                test=f"{CONTRACT}"
                "::test_a_call_that_must_not_be_repeated_is_unknown_when_its_claim_ends_without_an"
                "_outcome",
            ),
        ),
    ),
    (
        "10 the index follows the store",
        (
            Mutant(
                name="results are ticked off before the index has them",
                plant=_tick_off_before_indexing,
                test="tests/index/test_indexer.py"
                "::test_an_index_that_is_down_is_raised_and_nothing_is_ticked_off",
            ),
        ),
    ),
    (
        "11 workers come, die and leave by their leases",
        (
            Mutant(
                name="who leaves keeps what it held",
                plant=_release_nothing,
                test=f"{CONTRACT}"
                "::test_a_worker_that_leaves_gives_everything_back_without_a_failure",
            ),
            Mutant(
                name="the living are taken for dead",
                plant=_bury_the_living,
                test=f"{CONTRACT}"
                "::test_a_worker_whose_lease_lives_is_not_reaped_unless_its_process_is_known_to_be"
                "_gone",
            ),
        ),
    ),
    (
        "12 an objective keeps what it began with, and who lacks some of it gets nothing",
        (
            Mutant(
                name="a worker that lacks something is given work",
                plant=_let_all_serve,
                test=f"{CONTRACT}::test_a_hindered_worker_is_given_nothing_and_lets_no_time_pass",
            ),
        ),
    ),
    (
        "13 a poison task ends as dead",
        (
            Mutant(
                name="a task is tried for ever",
                plant=_call_with("taskstore.sql.store:TaskStore.fail_task", max_failures=10**9),
                test=f"{CONTRACT}::test_a_failed_try_waits_and_is_tried_anew_until_it_is_dead",
            ),
        ),
    ),
    (
        "14 the same objective again is the same objective",
        (
            Mutant(
                name="an objective that is started again begins anew",
                plant=_know_no_objective,
                test="tests/app/test_application.py"
                "::test_starting_the_same_objective_again_finds_it_and_makes_no_call",
            ),
        ),
    ),
    (
        "15 spent and held stay within the limits",
        (
            Mutant(
                name="no limit is checked",
                plant=_give("taskstore.limits:require_call_allowed", None),
                test=f"{CONTRACT}"
                "::test_spent_and_held_never_exceed_a_limit_and_the_reports_slice_is_kept",
            ),
            Mutant(
                name="an answer that goes over its reservation stops nothing",
                plant=_give("taskstore.sql.transitions:note_overspending", None),
                test=f"{CONTRACT}"
                "::test_no_call_begins_after_an_answer_that_went_over_its_reservation_or_does_not"
                "_say_what_it_cost",
            ),
        ),
    ),
    (
        "16 whatever ends a run leaves a report; a pause is one",
        (
            Mutant(
                name="the report is not stored",
                plant=_call_with("taskstore.sql.store:TaskStore.record_report", markdown=""),
                test=f"{CONTRACT}"
                "::test_the_report_is_owed_once_the_end_has_come_and_nobody_holds_a_task",
            ),
            Mutant(
                name="calls are made while paused",
                plant=_call_while_paused,
                test=f"{CONTRACT}::test_no_call_is_intended_while_paused_or_after_the_end",
            ),
        ),
    ),
    (
        "17 what others wrote is data; authority is this machine's",
        (
            Mutant(
                name="a text may close its own fence",
                plant=_return_first("llm.prompt:disarm"),
                test="tests/agents/test_prompting.py::test_a_text_cannot_close_its_own_fence",
            ),
            Mutant(
                name="texts steer the terminal",
                plant=_return_first("text:harmless"),
                test="tests/cli/test_text.py::test_no_character_that_steers_a_terminal_is_left",
            ),
            Mutant(
                name="every address is public",
                plant=_give("net.door:is_public", True),
                test="tests/net/test_door.py"
                "::test_no_spelling_of_an_address_of_this_machine_reaches_it",
            ),
            Mutant(
                name="hidden files are shown",
                plant=_give("files.folder:_is_shown", True),
                test="tests/files/test_folder.py::test_nothing_but_a_shown_file_can_be_read",
            ),
            Mutant(
                name="private words may go anywhere",
                plant=_give("policy:may_leak", False),
                test="tests/test_policy.py::test_anything_else_waits_for_the_person",
            ),
            Mutant(
                name="the objective's approval holds, not this machine's",
                plant=lambda: _replace("policy:restrict", lambda _: lambda mine, given: given),
                test="tests/test_lending.py"
                "::test_of_the_approvals_of_objective_and_worker_the_stricter_holds",
            ),
        ),
    ),
    (
        "18 events tell everything but prompts, answers and secrets",
        (
            Mutant(
                name="a result is committed without its event",
                plant=lambda: _drop_event("task.recorded"),
                test=f"{CONTRACT}::test_events_tell_a_turn_in_its_order_with_rising_ids",
            ),
            Mutant(
                name="events hold requests and answers",
                plant=_tell_events_the_request,
                test="tests/test_loop.py::test_no_event_holds_a_prompt_or_an_answer",
            ),
        ),
    ),
)


# -- the nets
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """What each net caught of one mutant: the fault at a crash point, the tests that failed, the
    histories that broke."""

    crash: str
    n_cases: int
    tests: tuple[str, ...]
    histories: str

    @property
    def is_caught(self) -> bool:
        return bool(self.crash or self.tests or self.histories)


def _kill(root: Path, seed: int) -> tuple[str, int]:
    """The first fault at a crash point, and how many cases it took."""
    try:
        prepare(root)
        courses = [survey(root, scenario) for scenario in SCENARIOS]
    except Exception as error:
        return f"unkilled: {type(error).__name__}: {error}", 0
    cases = [case for case in make_cases(root, courses, is_all=False) if case.goes_on]
    random.Random(seed).shuffle(cases)
    for n, case in enumerate(cases, start=1):
        faults = run_case(case)
        if faults:
            return faults[0], n
    return "", len(cases)


async def _check_contract(root: Path) -> tuple[str, ...]:
    """The contract's tests that fail."""
    contract = TaskStoreContract()
    tests = [(name, getattr(contract, name)) for name in dir(contract) if name.startswith("test_")]
    return tuple(
        [
            name
            for name, test in tests
            for given in _parameters(test)
            if not await _holds(test, root, given)
        ]
    )


def _parameters(test: Callable[..., Any]) -> list[dict[str, Any]]:
    """What a test is called with beside its fixtures, once for each combination of its
    `parametrize` values."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    given = [[_named(mark.args[0], values) for values in mark.args[1]] for mark in marks]
    return [
        {name: value for one in combined for name, value in one.items()}
        for combined in itertools.product(*given)
    ]


def _named(names: str | Sequence[str], values: Any) -> dict[str, Any]:
    listed = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    return dict(zip(listed, values if len(listed) > 1 else (values,), strict=True))


async def _holds(test: Callable[..., Any], root: Path, given: dict[str, Any]) -> bool:
    clock = Clock()
    store = await open_sqlite(
        Path(tempfile.mkdtemp(dir=root)) / "tasks.db", clock=clock, offload=run_inline
    )
    at_hand = {"store": store, "clock": clock, **given}
    try:
        async with asyncio.timeout(10):
            await test(**{name: at_hand[name] for name in inspect.signature(test).parameters})
    except BaseException as error:  # a test that fails by `pytest.raises` raises no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return False
    finally:
        await store.close()
    return True


async def _make_histories(root: Path) -> str:
    clock = Time()
    store = await open_sqlite(
        Path(tempfile.mkdtemp(dir=root)) / "tasks.db", clock=clock, offload=run_inline
    )
    try:
        for seed in range(N_HISTORIES):
            await History(store, clock, seed=seed, is_honest=seed % 2 == 0).run()
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}"
    finally:
        await store.close()
    return ""


def _catch(mutant: Mutant, seed: int, *, by_kills_alone: bool) -> Catch:
    """Plant the bug into this process and cast the nets."""
    mutant.plant()
    with tempfile.TemporaryDirectory(
        prefix="mutants-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as name:
        root = Path(name)
        tests, histories = (
            ((), "")
            if by_kills_alone
            else (asyncio.run(_check_contract(root)), asyncio.run(_make_histories(root)))
        )
        crash, n_cases = _kill(root, seed)
    return Catch(crash=crash, n_cases=n_cases, tests=tests, histories=histories)


def _catch_quietly(mutant: Mutant, seed: int, by_kills_alone: bool, answer: Connection) -> None:
    """As `_catch`, in a process of its own: whatever a planted bug makes the program say is of no
    interest."""
    logging.disable(logging.CRITICAL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    with contextlib.redirect_stderr(io.StringIO()):
        answer.send(_catch(mutant, seed, by_kills_alone=by_kills_alone))


def catch(mutant: Mutant, *, seed: int = 1, by_kills_alone: bool = False) -> Catch:
    """What the nets catch of the mutant; this process stays as it is.

    Args:
        by_kills_alone: neither the contract nor histories are tried.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_catch_quietly, args=(mutant, seed, by_kills_alone, sender))
    process.start()
    sender.close()
    try:
        if not receiver.poll(MAX_CATCH_S):
            process.kill()
            return Catch(crash="it never ends", n_cases=0, tests=(), histories="")
        found: Catch = receiver.recv()
    finally:
        process.join()
        receiver.close()
    return found


# -- the named tests
# --------------------------------------------------------------------------------------------------

# what a test says of a broken promise; under any other error it has met a program that does not fit
# together
BREACHES = (AssertionError, pytest.fail.Exception, BaseExceptionGroup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """How tests failed, or why they could not be run; empty where all passed."""

    fault: str = ""
    is_breach: bool = False


class _Watch:
    """Notes which tests failed in a run of pytest, and how."""

    def __init__(self) -> None:
        self.n_run = 0
        self.is_breach = False
        self.faults: list[str] = []

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        self.n_run += call.when == "call"
        if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            said = call.excinfo.exconly().partition("\n")[0][:200]
            self.faults.append(f"{item.name}: {said}")
            self.is_breach = self.is_breach or call.excinfo.errisinstance(BREACHES)


def _run_tests(mutant: Mutant, tests: Sequence[str], answer: Connection) -> None:
    """Plant the bug into this process, run the tests, and answer how they fail."""
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    watch = _Watch()
    try:
        mutant.plant()
        with tempfile.TemporaryDirectory(prefix="mutants-") as name:
            options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", f"--basetemp={name}/tests"]
            bound = ["--timeout", str(MAX_TEST_S)]
            code = pytest.main([*options, *bound, *tests], plugins=[watch])
    except Exception as error:
        answer.send(Failing(fault=f"cannot be planted: {type(error).__name__}: {error}"))
        return
    is_tried = code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and watch.n_run
    if not is_tried:
        answer.send(Failing(fault=f"no such test: pytest ended with {code!r}"))
        return
    answer.send(Failing(fault="; ".join(watch.faults), is_breach=watch.is_breach))


def run_named(mutant: Mutant, tests: Sequence[str]) -> Failing:
    """How the tests fail under the mutant; this process stays as it is."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_tests, args=(mutant, tests, sender))
    process.start()
    sender.close()
    try:
        if not receiver.poll(MAX_NAMED_S):
            process.kill()
            return Failing(fault=f"no end within {MAX_NAMED_S:.0f} s")
        found: Failing = receiver.recv()
    except EOFError:
        return Failing(fault="the process died")
    finally:
        process.join()
        receiver.close()
    return found


def _hold_promises() -> bool:
    """Print which test caught which bug; return whether each was caught, and nothing else."""
    began_s = time.monotonic()
    planted = [(promise, mutant) for promise, mutants in PROMISES for mutant in mutants]
    clean = run_named(CLEAN, list(dict.fromkeys(mutant.test for _, mutant in planted)))
    found = [(promise, mutant, run_named(mutant, [mutant.test])) for promise, mutant in planted]
    print_table(
        "Promises",
        ("promise", "planted", "", "test"),
        [
            ("all", CLEAN.name, *(("FAILS", clean.fault) if clean.fault else ("passes", "all"))),
            *[(promise, mutant.name, *_caught_by(mutant, one)) for promise, mutant, one in found],
        ],
    )
    n_caught = sum(one.is_breach for *_, one in found)
    is_met = n_caught == len(found) and not clean.fault
    print(
        f"{len(PROMISES)} promises, {n_caught} of {len(found)} planted bugs caught by their tests: "
        f"{verdict(is_met)} ({time.monotonic() - began_s:.0f} s)\n"
    )
    return is_met


def _caught_by(mutant: Mutant, found: Failing) -> tuple[str, str]:
    if found.is_breach:
        return "caught", mutant.test.rpartition("::")[2]
    return "MISSED", f"{mutant.test}: {found.fault or 'it passes'}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--promises", action="store_true", help="only the named tests, no nets")
    options = parser.parse_args(argv)
    are_held = _hold_promises()
    if options.promises:
        return 0 if are_held else 1
    began_s = time.monotonic()
    found = [(mutant, catch(mutant, seed=options.seed)) for mutant in (CLEAN, *MUTANTS)]
    print_table(
        "Planted bugs",
        ("bug", "", "crash points", "contract", "histories"),
        [_row(mutant, one) for mutant, one in found],
    )
    n_caught, n_false = sum(one.is_caught for _, one in found[1:]), int(found[0][1].is_caught)
    is_met = n_caught == len(MUTANTS) and not n_false
    print(
        f"{n_caught} of {len(MUTANTS)} caught, {n_false} false alarms: {verdict(is_met)} "
        f"({time.monotonic() - began_s:.0f} s)"
    )
    return 0 if is_met and are_held else 1


def _row(mutant: Mutant, found: Catch) -> tuple[str, ...]:
    crash = (
        f"kill {found.n_cases}: {found.crash.rpartition(': ')[2][:60]}"
        if found.crash
        else f"- ({found.n_cases} kills)"
    )
    tests = f"{len(found.tests)} fail" if found.tests else "-"
    return (
        mutant.name,
        "caught" if found.is_caught else "-",
        crash,
        tests,
        found.histories[:40] or "-",
    )


if __name__ == "__main__":
    sys.exit(main())
