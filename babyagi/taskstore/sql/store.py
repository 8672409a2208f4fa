"""The task store in SQL: objectives, tasks, results, events and vectors. It runs on SQLite, in a
file or in memory, and on PostgreSQL."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from types import ModuleType
from typing import Any

from babyagi import events
from babyagi.errors import NotFoundError, SettingsError
from babyagi.offload import Offload
from babyagi.redaction import redact_url
from babyagi.tasks import (
    Duty,
    Event,
    Limits,
    Objective,
    ObjectiveSpec,
    ObjectiveStatus,
    Pending,
    Place,
    Proposal,
    Result,
    StopReason,
    Task,
    TaskName,
    TaskStatus,
)
from babyagi.taskstore import lifecycle
from babyagi.taskstore.port import Plannable, Window
from babyagi.taskstore.sql import planning, transitions
from babyagi.taskstore.sql.access import Waiting
from babyagi.taskstore.sql.database import Row, Transaction
from babyagi.taskstore.sql.looking import Looking
from babyagi.taskstore.sql.rows import (
    event_from_row,
    result_from_row,
    seal_vector,
    sealed,
    spec_from_row,
    spec_to_json,
    task_from_row,
    task_name_from_row,
    to_json,
)
from babyagi.taskstore.sql.steps import Parking, Steps
from babyagi.taskstore.sql.tasks import Claims, Steering, put_in_place
from babyagi.taskstore.sql.transitions import ALL_ROWS
from babyagi.taskstore.sql.verify import Verifying
from babyagi.taskstore.sql.workers import Workers
from babyagi.text import BM25_LENGTH_SHARE, BM25_SATURATION

COMMON_WORD = 100  # results that have a word, from which on it says little; `docs/retrieval.md`


def choose_words(n_by_word: Mapping[str, int]) -> list[str]:
    """The words to look for, the rarest first: as many as together stand in at most `COMMON_WORD`
    results."""
    chosen: list[str] = []
    n_results = 0
    for word in sorted(
        (word for word, n in n_by_word.items() if n), key=lambda word: (n_by_word[word], word)
    ):
        n_results += n_by_word[word]
        if n_results > COMMON_WORD:
            break
        chosen.append(word)
    return chosen


def order_by_words(found: Iterable[tuple[str, int, int]]) -> list[int]:
    """Task ids, from triples of a word, the task in whose result it stands and that result's length
    in characters; the best first.

    As BM25 would have them if no word stood in a result twice: a word counts the more the fewer
    have it, and the less the longer the
    result is. Of equals the latest task comes first.
    """
    known = sorted(found)
    n_by_word = Counter(word for word, _, _ in known)
    mean = sum(n_chars for _, _, n_chars in known) / max(1, len(known)) or 1.0
    scores: defaultdict[int, float] = defaultdict(float)
    for word, task_id, n_chars in known:
        length = 1 - BM25_LENGTH_SHARE + BM25_LENGTH_SHARE * n_chars / mean
        scores[task_id] += 1 / n_by_word[word] / (1 + BM25_SATURATION * length)
    return sorted(scores, key=lambda task_id: (-scores[task_id], -task_id))


async def open_postgres(
    url: str,
    *,
    offload: Offload,
    tell: Callable[[str], None] = lambda _: None,
    clock: Callable[[], datetime] | None = None,
) -> SqlTaskStore:
    """Open the task store in this database, making its schema when the database is empty.

    Args:
        url: `postgresql://user:password@host:port/database`; a secret, never shown whole.
        offload: runs blocking work in a few threads, each with a connection of its own; the caller
            closes it, after the store.
        tell: see `open_sqlite` (`sqlite.py`).
        clock: for tests; the server's when None.

    Raises:
        SettingsError: the driver is not installed, or the URL cannot be read.
        StoreUnusableError: refused (password, rights), no such database, or of another version.
        StoreUnavailableError: not reachable.
    """
    driver = _load_postgres(url)
    database = await offload(lambda: driver.PostgresDatabase(url, clock=clock))
    return SqlTaskStore(database, offload=offload, tell=tell)


async def migrate_postgres(url: str, *, offload: Offload) -> tuple[int, int]:
    """Bring the schema of this database to this program's version, while no worker lives; returns
    the version before and after.

    Raises:
        As `open_postgres`; StoreUnusableError when a worker has a living lease.
    """
    driver = _load_postgres(url)
    return await offload(lambda: driver.migrate(url))


def _load_postgres(url: str) -> ModuleType:
    try:
        from babyagi.taskstore import postgres
    except ImportError as error:
        raise SettingsError(
            f"the task store {redact_url(url)} needs a driver that is not installed",
            why=str(error),
            fix="pip install 'psycopg[binary]>=3.3.9'",
            guide="store",
        ) from error
    return postgres


class SqlTaskStore(Workers, Claims, Steps, Steering, Parking, Waiting, Looking, Verifying):
    """All the state there is, in one file or database; several processes may have it open."""

    # -- objectives
    # ----------------------------------------------------------------------------------------------

    async def create_objective(
        self, spec: ObjectiveSpec, *, uid: str, always_new: bool = False
    ) -> tuple[Objective, bool]:
        def work(tx: Transaction) -> tuple[Objective, bool]:
            identity = lifecycle.identity_key(spec)
            known = None if always_new else tx.one("newest_objective", identity=identity)
            if known is not None:
                return transitions.read_objective(tx, known["id"]), False
            values = {
                "uid": uid,
                "identity": identity,
                "spec": spec_to_json(spec),
                "created_at_us": tx.now_us,
            }
            objective_id = tx.all("insert_objective", **sealed("objective", values))[0]["id"]
            transitions.append_event(tx, objective_id, events.OBJECTIVE_CREATED, uid=uid)
            first = [lifecycle.first_task(spec)]
            planning.enter(tx, objective_id, first, allow_duplicates=True)
            return transitions.read_objective(tx, objective_id), True

        return await self._write_all(work)

    async def objective(self, objective_id: int) -> Objective:
        return await self._read(lambda tx: transitions.read_objective(tx, objective_id))

    async def objectives(self, *, limit: int | None = None) -> list[Objective]:
        rows = ALL_ROWS if limit is None else limit
        return await self._read(
            lambda tx: [
                transitions.read_objective(tx, row["id"])
                for row in tx.all("objective_ids", limit=rows)
            ][::-1],
            n_rows=rows,
        )

    async def pause_objective(self, objective_id: int, *, detail: str = "") -> Objective:
        return await self._switch(
            objective_id,
            ObjectiveStatus.ACTIVE,
            ObjectiveStatus.PAUSED,
            events.OBJECTIVE_PAUSED,
            detail=lifecycle.storable(detail, max_chars=lifecycle.MAX_DETAIL_CHARS),
        )

    async def resume_objective(self, objective_id: int) -> Objective:
        return await self._switch(
            objective_id, ObjectiveStatus.PAUSED, ObjectiveStatus.ACTIVE, events.OBJECTIVE_RESUMED
        )

    async def _switch(
        self,
        objective_id: int,
        old: ObjectiveStatus,
        new: ObjectiveStatus,
        kind: str,
        *,
        detail: str = "",
    ) -> Objective:
        def work(tx: Transaction) -> Objective:
            row = transitions.objective_row(tx, objective_id)
            if row["status"] == old:
                transitions.carry_time(tx, row)
                tx.run("set_status", objective_id=objective_id, status=new, detail=detail)
                data = {"detail": detail} if detail else {}
                transitions.append_event(tx, objective_id, kind, **data)
            return transitions.read_objective(tx, objective_id)

        return await self._write(work, objective_id)

    async def end_objective(
        self, objective_id: int, *, reason: StopReason, detail: str = ""
    ) -> Objective:
        def work(tx: Transaction) -> Objective:
            transitions.end(tx, objective_id, reason=reason, detail=detail)
            return transitions.read_objective(tx, objective_id)

        return await self._write(work, objective_id)

    async def conclude_objective(self, objective_id: int) -> Objective:
        def work(tx: Transaction) -> Objective:
            objective = transitions.read_objective(tx, objective_id)
            if objective.status is not ObjectiveStatus.ACTIVE:
                return objective
            snapshot = transitions.snapshot(tx, objective)
            reason = lifecycle.conclude(snapshot)
            if reason is None:
                return objective
            dead = tx.all(
                "tasks_with_status",
                objective_id=objective_id,
                statuses=to_json([TaskStatus.DEAD]),
                limit=transitions.ALL_ROWS,
            )
            errors = [task["error"] for task in dead]
            transitions.end(
                tx,
                objective_id,
                reason=reason,
                detail=lifecycle.explain(reason, snapshot, errors=errors),
            )
            return transitions.read_objective(tx, objective_id)

        return await self._write(work, objective_id)

    async def extend_objective(self, objective_id: int, *, limits: Limits) -> Objective:
        def work(tx: Transaction) -> Objective:
            row = transitions.objective_row(tx, objective_id)
            transitions.set_spec(tx, row, replace(spec_from_row(row), limits=limits))
            tx.run("count_afresh", objective_id=objective_id)
            tx.run("set_overspent", objective_id=objective_id, limit="")
            transitions.append_event(tx, objective_id, events.OBJECTIVE_EXTENDED, **asdict(limits))
            if row["stop_reason"] in lifecycle.REOPENED_BY_EXTENDING:
                transitions.reopen(tx, objective_id)
            return transitions.read_objective(tx, objective_id)

        return await self._write(work, objective_id)

    async def ask_further(
        self,
        objective_id: int,
        *,
        question: str,
        after: Sequence[int] = (),
        limits: Limits | None = None,
    ) -> Objective:
        asked = lifecycle.further_question(question)

        def work(tx: Transaction) -> Objective:
            row = transitions.objective_row(tx, objective_id)
            reason = StopReason(row["stop_reason"]) if row["stop_reason"] else None
            lifecycle.require_reopenable(objective_id, reason)
            spec = spec_from_row(row)
            further = tuple(dict.fromkeys((*spec.further, asked)))
            limits_then = limits or spec.limits
            transitions.set_spec(tx, row, replace(spec, further=further, limits=limits_then))
            if limits is not None:
                tx.run("set_overspent", objective_id=objective_id, limit="")
                transitions.append_event(
                    tx, objective_id, events.OBJECTIVE_EXTENDED, **asdict(limits)
                )
            transitions.append_event(
                tx, objective_id, events.OBJECTIVE_ASKED_FURTHER, question=asked
            )
            proposal = Proposal(name=asked, after=tuple(after))
            (task,) = planning.enter(tx, objective_id, [proposal], allow_duplicates=True).plan.added
            put_in_place(tx, objective_id, [task.id], Place.FIRST)
            tx.run("count_afresh", objective_id=objective_id)
            transitions.forget_duty(tx, objective_id, Duty.CHECK)
            tx.run("forget_check", objective_id=objective_id)
            if reason is not None:
                transitions.reopen(tx, objective_id)
            return transitions.read_objective(tx, objective_id)

        return await self._write(work, objective_id)

    async def delete_objective(self, objective_id: int) -> None:
        def work(tx: Transaction) -> None:
            transitions.objective_row(tx, objective_id)
            lifecycle.require_nobody_at_work(
                objective_id, is_held=tx.has("is_held_by_the_living", objective_id=objective_id)
            )
            tx.run("delete_objective", objective_id=objective_id)

        await self._write(work, objective_id)

    async def counts(self, objective_id: int) -> Mapping[TaskStatus, int]:
        def work(tx: Transaction) -> Mapping[TaskStatus, int]:
            transitions.objective_row(tx, objective_id)
            return transitions.counts(tx, objective_id)

        return await self._read(work)

    # -- looking
    # ----------------------------------------------------------------------------------------------

    async def report(self, objective_id: int) -> str | None:
        def work(tx: Transaction) -> str | None:
            transitions.objective_row(tx, objective_id)
            markdown: str | None = tx.all("report", objective_id=objective_id)[0]["report"]
            return markdown

        return await self._read(work)

    async def window(
        self, objective_id: int, *, n_head: int, n_new: int, n_finished: int = 0
    ) -> Window:
        def work(tx: Transaction) -> Window:
            row = transitions.objective_row(tx, objective_id)
            queued: list[Row] = []
            if n_head:
                queued += tx.all("queue_head", objective_id=objective_id, limit=n_head)
            if n_new:
                upto = row["ordered_upto"]
                queued += tx.all(
                    "queue_news", objective_id=objective_id, after_id=upto, limit=n_new
                )
            at_work = tx.all(
                "tasks_with_status",
                objective_id=objective_id,
                statuses=to_json(lifecycle.AT_WORK),
                limit=ALL_ROWS,
            )
            finished = tx.all("last_finished", objective_id=objective_id, limit=n_finished)
            tasks = {found["id"]: task_from_row(found) for found in queued}
            return Window(
                revision=row["order_revision"],
                tasks=tuple(sorted(tasks.values(), key=lambda task: (task.rank, task.id))),
                at_work=tuple(map(task_from_row, at_work)),
                finished=tuple(map(task_from_row, finished)),
            )

        return await self._read(work, n_rows=n_head + n_new + n_finished)

    async def plannable(
        self, objective_id: int, *, n_results: int, n_finished: int, n_names: int
    ) -> Plannable:
        def work(tx: Transaction) -> Plannable:
            at = {"objective_id": objective_id}
            statuses = to_json([TaskStatus.RECORDED])
            tx.ask("task_names", **at, limit=n_names)
            tx.ask("last_finished", **at, limit=n_finished)
            tx.ask("tasks_with_status", **at, statuses=statuses, limit=ALL_ROWS)
            names = tx.all("task_names", **at, limit=n_names)
            if not names:
                transitions.objective_row(tx, objective_id)
            recorded = tx.all("tasks_with_status", **at, statuses=statuses, limit=ALL_ROWS)
            task_ids = to_json([row["id"] for row in recorded[:n_results]])
            results = tx.all("results_of", **at, task_ids=task_ids)
            finished = tx.all("last_finished", **at, limit=n_finished)
            return Plannable(
                recorded=tuple(map(task_from_row, recorded)),
                results=tuple(map(result_from_row, results)),
                finished=tuple(map(task_from_row, finished)),
                names=tuple(map(task_name_from_row, reversed(names))),
            )

        return await self._read(work, n_rows=n_names)

    async def task(self, objective_id: int, task_id: int) -> Task:
        def work(tx: Transaction) -> Task:
            try:
                return transitions.read_task(tx, objective_id, task_id)
            except NotFoundError:
                transitions.objective_row(tx, objective_id)  # which may be what is not there
                raise

        return await self._read(work)

    async def tasks(
        self,
        objective_id: int,
        *,
        statuses: Sequence[TaskStatus] | None = None,
        limit: int | None = None,
    ) -> list[Task]:
        rows = ALL_ROWS if limit is None else limit
        if statuses is None:
            return await self._list(objective_id, "tasks", task_from_row, n_rows=rows, limit=rows)
        return await self._list(
            objective_id,
            "tasks_with_status",
            task_from_row,
            n_rows=rows,
            statuses=to_json(list(statuses)),
            limit=rows,
        )

    async def task_names(self, objective_id: int, *, limit: int) -> list[TaskName]:
        newest = await self._list(
            objective_id, "task_names", task_name_from_row, n_rows=limit, limit=limit
        )
        return newest[::-1]

    async def recorded_ids(self, objective_id: int, *, limit: int) -> list[int]:
        return await self._list(
            objective_id, "recorded_ids", lambda row: int(row["id"]), n_rows=limit, limit=limit
        )

    async def last_finished(self, objective_id: int, *, limit: int) -> list[Task]:
        return await self._list(
            objective_id, "last_finished", task_from_row, n_rows=limit, limit=limit
        )

    async def results(
        self, objective_id: int, *, task_ids: Sequence[int] | None = None
    ) -> list[Result]:
        if task_ids is None:
            return await self._list(objective_id, "results", result_from_row, n_rows=ALL_ROWS)
        return await self._list(
            objective_id,
            "results_of",
            result_from_row,
            n_rows=len(task_ids),
            task_ids=to_json(list(task_ids)),
        )

    async def count_results(self, objective_id: int) -> int:
        return await self._look(
            objective_id, lambda tx: int(tx.all("n_results", objective_id=objective_id)[0]["n"])
        )

    async def result_ids(self, objective_id: int, *, is_indexed: bool | None = None) -> list[int]:
        return await self._list(
            objective_id,
            "result_ids",
            lambda row: int(row["task_id"]),
            n_rows=ALL_ROWS,
            is_indexed=None if is_indexed is None else int(is_indexed),
        )

    # -- events
    # ----------------------------------------------------------------------------------------------

    async def events(
        self, objective_id: int, *, after_id: int = 0, limit: int = 1000
    ) -> list[Event]:
        return await self._list(
            objective_id, "events", event_from_row, n_rows=limit, after_id=after_id, limit=limit
        )

    async def events_of(
        self, objective_id: int, *, kinds: Sequence[str], limit: int
    ) -> list[Event]:
        return await self._list(
            objective_id,
            "events_of",
            event_from_row,
            n_rows=limit,
            kinds=to_json(list(kinds)),
            limit=limit,
        )

    async def append_event(
        self, objective_id: int, *, kind: str, task_id: int | None = None, data: Mapping[str, Any]
    ) -> None:
        def work(tx: Transaction) -> None:
            transitions.objective_row(tx, objective_id)
            transitions.append_event(tx, objective_id, kind, task_id, **data)

        await self._write(work, objective_id)

    # -- the duty to index
    # ----------------------------------------------------------------------------------------------

    async def unindexed_results(self, objective_id: int, *, limit: int) -> list[Result]:
        return await self._list(
            objective_id, "unindexed_results", result_from_row, n_rows=limit, limit=limit
        )

    async def pending_results(
        self,
        objective_id: int,
        *,
        space: str,
        limit: int,
        words: Sequence[str] = (),
        n_found: int = 0,
    ) -> Pending:
        def work(tx: Transaction) -> Pending:
            tx.ask("n_results", objective_id=objective_id)
            tx.ask("pending_results", objective_id=objective_id, space=space, limit=limit)
            if words:
                tx.ask("word_counts", **_counting(objective_id, words))
            n_results = int(tx.all("n_results", objective_id=objective_id)[0]["n"])
            if not n_results:
                transitions.objective_row(tx, objective_id)
                return Pending(n_results=0, results=(), vectors={})
            rows = tx.all("pending_results", objective_id=objective_id, space=space, limit=limit)
            return Pending(
                n_results=n_results,
                results=tuple(map(result_from_row, rows)),
                vectors={
                    row["task_id"]: row["vector"] for row in rows if row["vector"] is not None
                },
                with_words=tuple(_find_words(tx, objective_id, words, limit=n_found)),
            )

        return await self._read(work, n_rows=limit)

    async def mark_indexed(self, objective_id: int, *, task_ids: Sequence[int]) -> None:
        def work(tx: Transaction) -> None:
            transitions.objective_row(tx, objective_id)
            n_marked = tx.count_changed(
                "mark_indexed", objective_id=objective_id, task_ids=to_json(list(task_ids))
            )
            if n_marked:
                (left,) = tx.all("n_unindexed", objective_id=objective_id)
                transitions.append_event(
                    tx, objective_id, events.RESULTS_INDEXED, n=n_marked, n_owed=left["n"]
                )

        await self._write(work, objective_id, is_lasting=False)

    async def owe_index(self, objective_id: int) -> None:
        def work(tx: Transaction) -> None:
            transitions.objective_row(tx, objective_id)
            tx.run("owe_index", objective_id=objective_id)

        await self._write(work, objective_id)

    async def change_space(self, objective_id: int, *, model: str, space: str) -> Objective:
        def work(tx: Transaction) -> Objective:
            row = transitions.objective_row(tx, objective_id)
            lifecycle.require_nobody_at_work(
                objective_id, is_held=tx.has("is_held_by_the_living", objective_id=objective_id)
            )
            transitions.set_spec(
                tx, row, lifecycle.in_other_space(spec_from_row(row), model=model, space=space)
            )
            tx.run("owe_index", objective_id=objective_id)
            transitions.append_event(tx, objective_id, events.OBJECTIVE_SPACE_CHANGED, space=space)
            return transitions.read_objective(tx, objective_id)

        return await self._write(work, objective_id)

    async def find_words(self, objective_id: int, *, words: Sequence[str], limit: int) -> list[int]:
        return await self._look(
            objective_id, lambda tx: _find_words(tx, objective_id, words, limit=limit)
        )

    async def store_vectors(
        self, objective_id: int, *, space: str, vectors: Mapping[int, bytes]
    ) -> None:
        rows = [
            {
                "objective_id": objective_id,
                "space": space,
                "task_id": task_id,
                "vector": vector,
                "seal": seal_vector(vector),
            }
            for task_id, vector in vectors.items()
        ]

        def work(tx: Transaction) -> None:
            transitions.objective_row(tx, objective_id)
            tx.run_many("put_vector", rows)

        await self._write(work, objective_id, is_lasting=False)

    async def vectors(
        self, objective_id: int, *, space: str, task_ids: Sequence[int] | None = None
    ) -> Mapping[int, bytes]:
        def work(tx: Transaction) -> dict[int, bytes]:
            if task_ids is None:
                rows = tx.all("vectors", objective_id=objective_id, space=space)
            else:
                rows = tx.all(
                    "vectors_of",
                    objective_id=objective_id,
                    space=space,
                    task_ids=to_json(list(task_ids)),
                )
            return {row["task_id"]: row["vector"] for row in rows}

        n_rows = ALL_ROWS if task_ids is None else len(task_ids)
        return await self._look(objective_id, work, n_rows=n_rows)


def _counting(objective_id: int, words: Sequence[str]) -> dict[str, Any]:
    return {
        "objective_id": objective_id,
        "words": to_json(list(words)),
        "limit": COMMON_WORD + 1,
    }


def _find_words(
    tx: Transaction, objective_id: int, words: Sequence[str], *, limit: int
) -> list[int]:
    if not words:
        return []
    counted = tx.all("word_counts", **_counting(objective_id, words))
    rare = choose_words({row["word"]: row["n"] for row in counted})
    if not rare:
        return []
    rows = tx.all("results_with_words", objective_id=objective_id, words=to_json(rare))
    return order_by_words((row["word"], row["task_id"], row["n_chars"]) for row in rows)[:limit]
