"""Nouns of the task store for tests that need no store."""

from datetime import UTC, datetime

from babyagi.tasks import Task, TaskStatus


def make_task(name, *, id_=99, n_lacks=0, status=TaskStatus.RUNNING):
    return Task(
        id=id_,
        objective_id=1,
        name=name,
        status=status,
        rank=0,
        n_lacks=n_lacks,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
