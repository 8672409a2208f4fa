"""Workers as tests need them."""

from __future__ import annotations

from typing import Any

from babyagi.tasks import Worker


async def join(store: Any, worker: Worker, objective_id: int, *, lease_s: float = 30) -> None:
    """Register the worker; it serves the objective."""
    await store.register_worker(worker, lease_s=lease_s)
    await store.join_objective(worker.id, objective_id)
