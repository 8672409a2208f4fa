"""What a person may change in a list that others work on, as pure functions that all
implementations use (see `rules`)."""

from __future__ import annotations

from collections.abc import Sequence

from babyagi.errors import ObjectiveStoppedError, SettingsError
from babyagi.tasks import Place, Proposal, StopReason, Task, TaskStatus
from babyagi.taskstore import rules


def require_changeable(task: Task) -> None:
    """Raises `SettingsError` unless the task is still to be done and nobody works on it."""
    if task.status in rules.CANCELLABLE:
        return
    is_dead = task.status is TaskStatus.DEAD
    raise SettingsError(
        f"task {task.id} is {task.status.value} and stays as it is",
        why="only a task that is queued or waiting can be changed",
        fix=f"babyagi retry {task.id}" if is_dead else "babyagi tasks shows which tasks are queued",
        guide="tasks",
    )


def require_dead(task: Task) -> None:
    if task.status is not TaskStatus.DEAD:
        raise SettingsError(
            (
                f"task {task.id} is {task.status.value}; only a task that was given up can "
                "be tried again"
            ),
            fix="babyagi tasks shows which tasks are dead",
            guide="tasks",
        )


def require_reopenable(objective_id: int, reason: StopReason | None) -> None:
    """Raises `ObjectiveStoppedError` when the objective ended for good; one that has not ended is
    fine."""
    if reason is rules.FOR_GOOD:
        raise ObjectiveStoppedError(
            f"objective {objective_id} has ended for good: {reason.value}",
            why=reason.words,
            fix="babyagi run with --new starts it afresh",
            guide="objectives",
        )


def replacement(task: Task, name: str) -> Proposal:
    """The person's words in the place of a task; they are not cut."""
    line = rules.one_line(name)
    if not line:
        raise SettingsError(
            f"the new name of task {task.id} is empty",
            fix=f'babyagi tasks edit {task.id} "what to do instead"',
            guide="tasks",
        )
    return Proposal(name=line, after=task.after)


def put_at(listed: Sequence[int], moved: Sequence[int], to: Place | int) -> list[int]:
    """The ids in their new order: the moved ones, in their order, at an end or before the id `to`.

    Raises:
        SettingsError: `to` is not in the list.
    """
    if to in moved:
        return list(listed)
    rest = [task_id for task_id in listed if task_id not in moved]
    match to:
        case Place.FIRST:
            at = 0
        case Place.LAST:
            at = len(rest)
        case _ if to in rest:
            at = rest.index(to)
        case _:
            raise SettingsError(
                f"task {to} is neither queued nor waiting, so nothing can come before it",
                fix="babyagi tasks shows which tasks are queued",
                guide="tasks",
            )
    return [*rest[:at], *moved, *rest[at:]]
