"""What becomes of recorded tasks: done with new tasks, or back to the list because they are not
answered; and of the list's checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from babyagi import log
from babyagi.tasks import (
    Lack,
    Objective,
    ObjectiveStatus,
    Proposal,
    Result,
    StopReason,
    Task,
    TaskStatus,
    Unanswered,
)
from babyagi.taskstore import changes, moves, proposals, rules
from babyagi.taskstore.base import Checked, Plan, Planned
from babyagi.taskstore.database import Transaction
from babyagi.taskstore.rows import checks_to_json, task_from_row
from babyagi.text import find_marks, held_marks

MAX_WOKEN = 200  # tasks that wait for what they lacked, and are looked at for each result


# -- recorded tasks
# --------------------------------------------------------------------------------------------------


def apply(tx: Transaction, objective_id: int, tasks: Sequence[Task], plan: Planned) -> Plan:
    """Let the recorded tasks go on: the answered ones are done, the others wait for what they lack;
    the proposals enter the list."""
    row = moves.objective_row(tx, objective_id)
    is_open = row["status"] != ObjectiveStatus.ENDED
    unanswered = {one.task_id: one for one in plan.unanswered}
    lacking = [task for task in tasks if task.lack is not None or task.id in unanswered]
    wanted = plan.proposals if is_open else ()
    unhelpful = {task.id: _shown(task, unanswered) for task in lacking}
    entered = proposals.enter(tx, objective_id, wanted, unhelpful=unhelpful)
    for name in plan.dropped:
        moves.append_event(
            tx, objective_id, log.TASK_PROPOSAL_DROPPED, name=rules.storable(name, max_chars=500)
        )
    if plan.failure:
        task_ids = [task.id for task in tasks]
        moves.append_event(
            tx,
            objective_id,
            log.PLAN_FAILED,
            task_ids=task_ids,
            reason=rules.storable(plan.failure, max_chars=500),
        )
    for task in tasks:
        own = [
            task_id
            for proposal, task_id in zip(wanted, entered.id_by_place, strict=True)
            if proposal.parent_id == task.id and task_id is not None
        ]
        n_added = sum(added.parent_id == task.id for added in entered.plan.added)
        if task in lacking:
            if not n_added:
                moves.count_progress(tx, objective_id, is_answer=False)
            named = unanswered.get(task.id)
            after = (
                []
                if named is None
                else proposals.resolve(tx, objective_id, named.after, entered, wanted)
            )
            _requeue(tx, task, named, after=[*own, *after])
        else:
            _finish(
                tx,
                task,
                n_added=n_added,
                n_duplicates=len(own) - n_added,
                is_repeat=task.id in plan.repeats,
            )
    if plan.is_met and is_open:
        claim_met(tx, objective_id, task_id=tasks[-1].id if tasks else None)
    return entered.plan


def claim_met(tx: Transaction, objective_id: int, *, task_id: int | None) -> None:
    """Note that somebody says the objective is met, unless a check has refuted that and nothing was
    answered since."""
    row = moves.objective_row(tx, objective_id)
    checks = moves.read_objective(tx, objective_id).checks
    if row["n_answers"] > checks.n_answers:
        tx.run("set_claimed_met", objective_id=objective_id)
        moves.append_event(tx, objective_id, log.OBJECTIVE_CLAIMED_MET, task_id, task_id=task_id)


def record_lack(tx: Transaction, task: Task) -> Task:
    """Write a held task whose try lacked something: its planning is owed, or it is given up."""
    moves.append_event(
        tx, task.objective_id, log.TASK_LACKED, task.id, lack=_what(task), n_lacks=task.n_lacks
    )
    if task.n_lacks >= rules.MAX_LACKS:
        moves.count_progress(tx, task.objective_id, is_answer=False)
        return _give_up(tx, task)
    return moves.put_down(tx, replace(task, status=TaskStatus.RECORDED))


def wake_lacking(tx: Transaction, result: Result) -> None:
    """Let tasks try again that lack what this result holds, unless a task that they wait for is
    named after some of it."""
    text = f"{result.task_name}\n{result.text}"
    for row in tx.all("blocked_lacking", objective_id=result.objective_id, limit=MAX_WOKEN):
        task = task_from_row(row)
        wanted = find_marks(_what(task)) - find_marks(task.name)
        if not wanted or held_marks(text, wanted) != wanted:
            continue
        blockers = [
            task_from_row(found)
            for found in tx.all("blockers", objective_id=task.objective_id, task_id=task.id)
        ]
        if held_marks("\n".join(blocker.name for blocker in blockers), wanted):
            continue
        kept = [
            task_id for task_id in task.after if task_id not in {blocker.id for blocker in blockers}
        ]
        proposals.set_after(tx, task.objective_id, task.id, kept)
        moves.append_event(tx, task.objective_id, log.TASK_WOKEN, task.id, by=result.task_id)


def _finish(
    tx: Transaction, task: Task, *, n_added: int, n_duplicates: int, is_repeat: bool
) -> None:
    moves.put_down(tx, replace(task, status=TaskStatus.DONE))
    is_awaited = bool(tx.all("dependents", objective_id=task.objective_id, task_id=task.id))
    n_barren = moves.count_progress(
        tx,
        task.objective_id,
        is_answer=True,
        n_added=n_added,
        is_repeat=is_repeat and not is_awaited,
    )
    data = {"n_added": n_added, "n_duplicates": n_duplicates, "n_barren": n_barren}
    moves.append_event(tx, task.objective_id, log.TASK_DONE, task.id, **data)


def _requeue(
    tx: Transaction, task: Task, named: Unanswered | None, *, after: Sequence[int]
) -> None:
    """Queue a task again, as a new try, after what brings what it lacks."""
    objective_id = task.objective_id
    if task.lack is None and named is not None:  # it has a result, which is no answer
        tx.run("delete_result", objective_id=objective_id, task_id=task.id)
        tx.run("delete_vectors", objective_id=objective_id, task_id=task.id)
        task = changes.lacked(task, lack=Lack(what=named.lack, shown=named.shown))
        moves.append_event(
            tx, objective_id, log.TASK_LACKED, task.id, lack=_what(task), n_lacks=task.n_lacks
        )
    if task.n_lacks >= rules.MAX_LACKS:
        _give_up(tx, task)
        return
    kept = [task_id for task_id in dict.fromkeys((*task.after, *after)) if task_id != task.id]
    closing = [
        task_id
        for task_id in kept
        if proposals.would_close_cycle(tx, objective_id, task_id=task.id, after_id=task_id)
    ]
    for task_id in closing:
        moves.append_event(tx, objective_id, log.TASK_AFTER_DROPPED, task.id, named=str(task_id))
    proposals.set_after(
        tx, objective_id, task.id, [task_id for task_id in kept if task_id not in closing]
    )
    written = moves.put_down(tx, replace(task, status=TaskStatus.QUEUED, try_no=task.try_no + 1))
    if written.status is not TaskStatus.QUEUED:
        moves.note_freed(tx, written)
        return
    blockers = [row["id"] for row in tx.all("blockers", objective_id=objective_id, task_id=task.id)]
    moves.append_event(
        tx, objective_id, log.TASK_REQUEUED, task.id, try_no=written.try_no, waits_for=blockers
    )


def _give_up(tx: Transaction, task: Task) -> Task:
    error = rules.storable(
        f"after {task.n_lacks} tries it still lacked: {_what(task)}",
        max_chars=rules.MAX_DETAIL_CHARS,
    )
    written = moves.put_down(tx, replace(task, status=TaskStatus.DEAD, error=error))
    if written.status is TaskStatus.DEAD:
        moves.append_event(tx, task.objective_id, log.TASK_DEAD, task.id, error=error)
    moves.note_freed(tx, written)
    return written


def _what(task: Task) -> str:
    return "" if task.lack is None else task.lack.what


def _shown(task: Task, unanswered: dict[int, Unanswered]) -> tuple[int, ...]:
    return task.lack.shown if task.lack is not None else unanswered[task.id].shown


# -- checks
# --------------------------------------------------------------------------------------------------


def finish_check(
    tx: Transaction,
    objective_id: int,
    *,
    is_met: bool,
    reason: str,
    checked: Checked,
    wanted: Sequence[Sequence[Proposal]],
) -> None:
    """End the objective where the check says so, else ask for what is missing; and end it where
    that has been in vain too often."""
    row, objective = moves.objective_row(tx, objective_id), moves.read_objective(tx, objective_id)
    detail = rules.storable(reason, max_chars=rules.MAX_DETAIL_CHARS)
    is_empty = rules.needs_check(replace(moves.snapshot(tx, objective), is_claimed_met=False))
    is_round = is_empty or not row["is_claimed_met"]
    checks = replace(objective.checks, parts=checked.parts, missing=())
    if not is_met:
        n_answers = row["n_answers"]
        checks = rules.after_check(
            objective.checks,
            parts=checked.parts,
            missing=checked.missing,
            n_answers=n_answers,
            is_round=is_round,
        )
    tx.run("finish_check", objective_id=objective_id, checks=checks_to_json(checks))
    missing = [rules.storable(part, max_chars=500) for part in checked.missing]
    moves.append_event(
        tx,
        objective_id,
        log.OBJECTIVE_CHECKED,
        is_met=is_met,
        reason=detail,
        n_parts=len(checked.parts),
        missing=missing,
    )
    if objective.status is ObjectiveStatus.ENDED:
        return
    if is_met and row["is_claimed_met"]:
        moves.end(tx, objective_id, reason=StopReason.OBJECTIVE_MET, detail=detail)
    elif is_met and is_empty:
        # else somebody has added a task meanwhile: when it is done, the list is checked again
        moves.end(tx, objective_id, reason=StopReason.FINISHED, detail=detail)
    if is_met:
        return
    is_in_vain = is_round and rules.is_in_vain(checks)
    added = () if is_in_vain else _add_for_missing(tx, objective, wanted)
    if is_in_vain or (
        is_round and not added and rules.is_in_vain(replace(checks, n_idle=checks.n_idle + 1))
    ):
        moves.end(tx, objective_id, reason=StopReason.UNMET, detail=detail)


def _add_for_missing(
    tx: Transaction, objective: Objective, wanted: Sequence[Sequence[Proposal]]
) -> tuple[Task, ...]:
    """What is proposed for the missing parts, which may repeat what was answered; else what of the
    fallback was not done yet."""
    proposed, fallback = wanted
    added = proposals.enter(
        tx, objective.id, [replace(one, is_missing=True) for one in proposed]
    ).plan.added
    return added or proposals.enter(tx, objective.id, fallback).plan.added
