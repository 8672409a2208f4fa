"""The home that the program of commit 35507d87 left, on either store, and what must be true of it
after an upgrade. How it was made, and in which states: `tests/data/old_homes/README.md`."""

import gzip
import hashlib
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

HOME = Path(__file__).parents[1] / "data" / "old_homes"
VERSION = 5  # of its schema


def unpack(name):
    return gzip.decompress((HOME / f"{name}.gz").read_bytes())


def unpack_file(path):
    """Put the SQLite store there, with nothing left in its log."""
    path.write_bytes(unpack("tasks.db"))
    path.with_name(f"{path.name}-wal").write_bytes(unpack("tasks.db-wal"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def load_described(kind):
    """Everything of each objective, as the old code read it.

    Args:
        kind: `sqlite` or `postgres`.
    """
    return json.loads(unpack(f"{kind}.json"))


def statements_of(script, *, is_whole):
    """The statements of a script.

    Args:
        is_whole: whether a text that ends with `;` is a whole statement.
    """
    statements, current = [], ""
    for query in re.split(r"(?<=;\n)", f"{script}\n"):
        current += query
        if current.strip() and is_whole(current):
            statements.append(current)
            current = ""
    assert not current.strip()
    return statements


async def steps_of(store, old):
    """Of the owners that had steps in the old home, in its form."""
    owners = list(dict.fromkeys(owner for owner, *_ in old["steps"]))
    return [
        [
            owner,
            step.key,
            step.kind,
            step.state,
            step.usage.calls,
            hashlib.sha256((step.output or "").encode()).hexdigest()[:16],
        ]
        for owner in owners
        for step in await store.steps(old["id"], owner=owner)
    ]


async def check_nothing_lost(store, described):
    """Every objective, task, result, event, report and step is as the old code read it."""
    objectives = await store.objectives()
    assert [objective.uid for objective in objectives] == [old["uid"] for old in described]
    for objective, old in zip(objectives, described, strict=True):
        used = objective.usage
        assert [objective.status, objective.stop_reason] == [old["status"], old["stop_reason"]]
        assert [used.calls, used.prompt_tokens, used.completion_tokens] == old["usage"]
        assert await store.report(old["id"]) == old["report"]
        assert [
            [task.id, task.name, task.status, list(task.after), task.try_no, task.error]
            for task in await store.tasks(old["id"])
        ] == old["tasks"]
        assert [
            [result.task_id, result.text, list(result.origins)]
            for result in await store.results(old["id"])
        ] == old["results"]
        assert [
            [event.id, event.kind, event.task_id, event.at.isoformat()]
            for event in await store.events(old["id"])
        ] == old["events"]
        assert await steps_of(store, old) == old["steps"]
    assert (await store.verify()).damages == ()
