"""The kinds of event in the task store.

A name is a noun and a past participle. A kind never changes its meaning; a new meaning gets a new
kind. Every event that leaves the program (`run --json`) contains `EVENT_VERSION`, which rises when
a field changes its meaning.
"""

EVENT_VERSION = 1

OBJECTIVE_CREATED = "objective.created"
OBJECTIVE_SCHEDULED = "objective.scheduled"  # started by a tick of a schedule
OBJECTIVE_PAUSED = "objective.paused"
OBJECTIVE_RESUMED = "objective.resumed"
OBJECTIVE_EXTENDED = "objective.extended"
OBJECTIVE_ASKED_FURTHER = "objective.asked_further"  # a person added a further question
OBJECTIVE_SPACE_CHANGED = "objective.space_changed"
OBJECTIVE_CLAIMED_MET = "objective.claimed_met"
OBJECTIVE_CHECKED = "objective.checked"
OBJECTIVE_ENDED = "objective.ended"
OBJECTIVE_REOPENED = "objective.reopened"

TASK_ADDED = "task.added"
TASK_DUPLICATE_DROPPED = "task.duplicate_dropped"
TASK_TOO_DEEP_DROPPED = "task.too_deep_dropped"  # earlier versions; now task.proposal_dropped
TASK_CLAIMED = "task.claimed"
TASK_RECORDED = "task.recorded"
TASK_LACKED = "task.lacked"  # a try ended without a result, and said what information it lacked
TASK_REQUEUED = "task.requeued"  # queued again after a lack; says which tasks it waits for
TASK_WOKEN = "task.woken"  # may be tried again: a result holds what the task lacked
TASK_AFTER_DROPPED = "task.after_dropped"  # a dependency of the task could not be kept
TASK_PROPOSAL_DROPPED = "task.proposal_dropped"  # a proposed task was left out by a bound
TASK_DONE = "task.done"
TASK_FAILED = "task.failed"
TASK_DEAD = "task.dead"
TASK_RELEASED = "task.released"
TASK_CANCELLED = "task.cancelled"
TASK_MOVED = "task.moved"
TASK_RETRIED = "task.retried"
TASK_PARKED = "task.parked"
TASK_ANSWERED = "task.answered"

ORDER_APPLIED = "order.applied"
PLAN_FAILED = "plan.failed"  # nothing could be planned from these results
CONTEXT_CUT = "context.cut"  # a prompt holds results only in part, or not at all
PERSON_TOLD = "person.told"  # notifications were sent of all events up to `up_to`
HOOK_TOLD = "hook.told"  # the same for the address that was named with the objective
REPORT_WRITTEN = "report.written"
RESULTS_INDEXED = "results.indexed"
# results cannot be written to the index for now; a worker tries again by itself
INDEX_UNAVAILABLE = "index.unavailable"
INDEX_AVAILABLE = "index.available"

STEP_INTENDED = "step.intended"
STEP_RECORDED = "step.recorded"
STEP_ABANDONED = "step.abandoned"
STEP_UNCONFIRMED = "step.unconfirmed"
# an answer cost more than was reserved for it, or does not say what it cost
STEP_OVERSPENT = "step.overspent"
STEP_LEFT_UNKNOWN = "step.left_unknown"
STEP_REQUEST_CHANGED = "step.request_changed"

MODEL_UNAVAILABLE = "model.unavailable"  # this worker waits, and tries again by itself
MODEL_AVAILABLE = "model.available"

WORKER_JOINED = "worker.joined"
WORKER_BLOCKED = "worker.hindered"
WORKER_LEFT = "worker.left"
WORKER_LOST = "worker.lost"
