"""The task store on SQL: reading every row of every table, to find what is not what was written.

Does not cover: a number that was changed to another one and contradicts nothing (a rank, a count of
failures, a lease).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from babyagi.errors import StoreUnusableError
from babyagi.tasks import Duty, Reservation
from babyagi.taskstore import lifecycle
from babyagi.taskstore.port import Verification
from babyagi.taskstore.sql import rows, transitions
from babyagi.taskstore.sql.access import SqlAccess
from babyagi.taskstore.sql.database import Row, Transaction


class Verifying(SqlAccess):
    """Verify."""

    async def verify(self, objective_id: int | None = None) -> Verification:
        def work(tx: Transaction) -> Verification:
            if objective_id is not None:
                transitions.objective_row(tx, objective_id)
            return _Reading(tx=tx, objective_id=objective_id).read()

        found = await self._offload(lambda: self._database.read_as_it_lies(work))
        in_file = await self._offload(self._database.find_damage)
        return replace(
            found, damages=(*found.damages, *(f"the file: {fault}" for fault in in_file))
        )


@dataclass(slots=True, kw_only=True)
class _Reading:
    """One reading of the tables; what a row says of others is compared when all of them are
    read."""

    tx: Transaction
    objective_id: int | None
    damages: list[str] = field(default_factory=list)
    n_by_piece: Counter[str] = field(default_factory=Counter)
    task_by_id: dict[tuple[int, int], _Links] = field(default_factory=dict)
    damaged_tasks: set[tuple[int, int]] = field(default_factory=set)

    def read(self) -> Verification:
        worker_ids = {row["id"] for row in self._sound("workers", "worker {id}", _check_worker)}
        last_by_objective = {
            row["id"]: row["last_task_id"]
            for row in self._sound("every_objective", "objective {id}", _check_objective)
        }
        for row in self._sound("every_task", "task {id} of objective {objective_id}", _check_task):
            self._note_task(row, worker_ids, last_by_objective)
        self._compare_after()
        self._compare_counts()
        self._require_task(
            "every_step",
            "step {key} of {owner} of objective {objective_id} (row {id})",
            _check_step,
        )
        self._require_task(
            "every_result",
            "the result of task {task_id} of objective {objective_id} (row {id})",
            rows.result_from_row,
        )
        self._require_task(
            "every_vector",
            "the vector of task {task_id} of objective {objective_id} in {space}",
            _check_vector,
        )
        self._require_task("every_event", "event {id} of objective {objective_id}", _check_event)
        for row in self._sound(
            "every_duty", "the duty to {duty} of objective {objective_id}", _check_duty
        ):
            if row["worker_id"] is not None and row["worker_id"] not in worker_ids:
                self._note("the duty to {duty} of objective {objective_id}", row)
        for row in self._sound(
            "every_joined", "what worker {worker_id} serves", rows.joined_from_row
        ):
            if row["worker_id"] not in worker_ids:
                self._note("what worker {worker_id} serves", row)
        n = self.n_by_piece
        return Verification(
            n_rows=n.total(),
            n_steps=n["every_step"],
            n_results=n["every_result"],
            damages=tuple(dict.fromkeys(self.damages)),
        )

    def _sound(self, query: str, name: str, check: Callable[[Row], object]) -> Iterator[Row]:
        """The rows of a query that can be read, and are what was written; the others are noted."""
        for row in self.tx.each(query, objective_id=self.objective_id):
            self.n_by_piece[query] += 1
            try:
                _require_text(row)
                check(row)
            except (StoreUnusableError, *rows.FAULTS):
                self._note(name, row)
                if query == "every_task":
                    self.damaged_tasks.add((row["objective_id"], row["id"]))
            else:
                yield row

    def _note(self, name: str, row: Row) -> None:
        self.damages.append(rows.name_row(name, row).encode("utf-8", "replace").decode())

    # -- what rows say of each other
    # -------------------------------------------------------------------------------------------

    def _note_task(self, row: Row, worker_ids: set[str], last_by_objective: dict[int, int]) -> None:
        task = rows.task_from_row(row)
        key = (task.objective_id, task.id)
        self.task_by_id[key] = _Links(
            status=task.status, blockers=row["blockers"], after=frozenset(task.after)
        )
        is_held_by_nobody = row["worker_id"] is not None and row["worker_id"] not in worker_ids
        if is_held_by_nobody or not 0 < task.id <= last_by_objective.get(
            task.objective_id, task.id
        ):
            self._note("task {id} of objective {objective_id}", row)
            self.damaged_tasks.add(key)

    def _compare_after(self) -> None:
        after_by_id: dict[tuple[int, int], set[int]] = {}
        for row in self.tx.each("every_after", objective_id=self.objective_id):
            self.n_by_piece["every_after"] += 1
            after_by_id.setdefault((row["objective_id"], row["task_id"]), set()).add(
                row["after_id"]
            )
        for key in sorted(self.task_by_id.keys() | after_by_id.keys(), key=str):
            task, after = self.task_by_id.get(key), after_by_id.get(key, set())
            if (
                task is not None
                and task.after == after
                and task.blockers == self._count_blockers(key[0], after)
            ):
                continue
            if key not in self.damaged_tasks and not self._leads_to_damage(key[0], after):
                self.damages.append(f"what task {key[1]} of objective {key[0]} comes after")

    def _count_blockers(self, objective_id: int, after: set[int]) -> int:
        """How many of the tasks are still to be done; -1 when one of them is not there."""
        named = [self.task_by_id.get((objective_id, task_id)) for task_id in after]
        return (
            -1
            if None in named
            else sum(task is not None and task.status not in lifecycle.SETTLED for task in named)
        )

    def _leads_to_damage(self, objective_id: int, after: set[int]) -> bool:
        return any((objective_id, task_id) in self.damaged_tasks for task_id in after)

    def _compare_counts(self) -> None:
        n_by_status = Counter(
            (objective_id, str(task.status)) for (objective_id, _), task in self.task_by_id.items()
        )
        of_damaged = {objective_id for objective_id, _ in self.damaged_tasks}
        for row in self.tx.each("every_count", objective_id=self.objective_id):
            self.n_by_piece["every_count"] += 1
            n = n_by_status.pop((row["objective_id"], row["status"]), 0)
            if n != row["n"] and row["objective_id"] not in of_damaged:
                self._note("the count of {status} tasks of objective {objective_id}", row)
        self.damages += [
            f"the count of {status} tasks of objective {of}"
            for of, status in n_by_status
            if of not in of_damaged
        ]

    def _require_task(self, query: str, name: str, check: Callable[[Row], object]) -> None:
        """The rows are sound, and the tasks that they are about are there."""
        for row in self._sound(query, name, check):
            task_id = lifecycle.task_of(row["owner"]) if query == "every_step" else row["task_id"]
            key = (row["objective_id"], task_id)
            if task_id is not None and key not in self.task_by_id and key not in self.damaged_tasks:
                self._note(name, row)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Links:
    """What others say of a task, too."""

    status: str
    blockers: int
    after: frozenset[int]


# -- one row
# --------------------------------------------------------------------------------------------------


def _require_text(row: Row) -> None:
    """Raises `ValueError` where a text is no UTF-8 any more, which is handed out all the same when
    it is read as it lies."""
    for column in row.keys():  # noqa: SIM118  # iterating over one of SQLite's rows gives values
        if isinstance(row[column], str):
            row[column].encode()


def _require(is_sound: bool) -> None:
    if not is_sound:
        raise ValueError("its checksum does not fit its content")


def _check_worker(row: Row) -> None:
    rows.worker_from_row(row, now_us=0)


def _check_objective(row: Row) -> None:
    rows.objective_from_row(row, held=Reservation(), active_us=row["active_us"])
    _require(
        rows.is_sealed_right("objective", row)
        and (row["report"] is None or rows.is_sealed_right("report", row))
    )


def _check_task(row: Row) -> None:
    rows.task_from_row(row)
    _require(rows.is_sealed_right("task", row))


def _check_step(row: Row) -> None:
    lifecycle.task_of(rows.step_from_row(row).owner)


def _check_vector(row: Row) -> None:
    _require(row["seal"] is None or row["seal"] == rows.seal_vector(row["vector"]))


def _check_event(row: Row) -> None:
    rows.event_from_row(row)
    _require(rows.is_sealed_right("event", row))


def _check_duty(row: Row) -> None:
    Duty(row["duty"])
    rows.require_types(row, texts=("owner",), numbers=("claim_no", "upto", "delay_us"))
