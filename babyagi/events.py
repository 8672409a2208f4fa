"""The kinds of events in the task store.

A kind is named by a noun and a past participle, and never changes its meaning. Every event that
leaves the program (`run --json`) contains `EVENT_VERSION`, which rises when a field changes its
meaning.

The transaction that changes the state of a task also appends an event of that task: the list that
agents are shown is kept up to date by these events alone (`agents/listed.py`).
"""

EVENT_VERSION = 1

OBJECTIVE_CREATED = "objective.created"  # with `schedule_id`: by a tick of a schedule
OBJECTIVE_PAUSED = "objective.paused"
OBJECTIVE_RESUMED = "objective.resumed"  # active again, after a pause or after it had ended
# a person gave new limits, a further `question`, or another `space` to embed its results in
OBJECTIVE_EXTENDED = "objective.extended"
OBJECTIVE_CLAIMED_MET = "objective.claimed_met"  # an agent says that it is met; a check follows
OBJECTIVE_CHECKED = "objective.checked"
OBJECTIVE_ENDED = "objective.ended"

TASK_ADDED = "task.added"
TASK_DUPLICATE_DROPPED = "task.duplicate_dropped"
TASK_CLAIMED = "task.claimed"
TASK_RECORDED = "task.recorded"  # its result is stored; planning follows
TASK_LACKED = "task.lacked"  # a try ended because it lacked information
# queued again after it lacked information, or by a person's retry (`is_retry`) or answer
# (`is_answered`)
TASK_REQUEUED = "task.requeued"
# it does not wait for a task that it was to come after (`named`), or waits no longer, because the
# result of the task `by` contains what it lacked
TASK_AFTER_DROPPED = "task.after_dropped"
TASK_PROPOSAL_DROPPED = "task.proposal_dropped"  # too many, or the same was found before
TASK_DONE = "task.done"
TASK_FAILED = "task.failed"
TASK_DEAD = "task.dead"
TASK_RELEASED = "task.released"
TASK_CANCELLED = "task.cancelled"
TASK_PARKED = "task.parked"  # it waits for a person

ORDER_APPLIED = "order.applied"  # with `to`: tasks were moved there, by a person or by a check
PLAN_FAILED = "plan.failed"  # nothing could be planned from these tasks
CONTEXT_CUT = "context.cut"  # results were shortened or left out to fit into a prompt
PERSON_TOLD = "person.told"  # notifications were sent about all events up to the id `up_to`
REPORT_WRITTEN = "report.written"
RESULTS_INDEXED = "results.indexed"  # with `is_back`: the index is available again
# results cannot be written to the index for now; a worker tries again by itself
INDEX_UNAVAILABLE = "index.unavailable"

STEP_INTENDED = "step.intended"  # a call is about to be made
STEP_RECORDED = "step.recorded"  # the outcome of a call is stored
# a call gave no outcome. `is_unconfirmed`: its claim ended meanwhile, so what was reserved for it
# is counted as usage. `is_unknown`: it must not be repeated, so a person says whether it was made
STEP_ABANDONED = "step.abandoned"
# an answer cost more than was reserved for it, or does not state its cost
STEP_OVERSPENT = "step.overspent"
# a recorded answer was reused although the request would be another one now
STEP_REQUEST_CHANGED = "step.request_changed"

MODEL_UNAVAILABLE = "model.unavailable"  # the worker waits, and tries again by itself
MODEL_AVAILABLE = "model.available"

WORKER_JOINED = "worker.joined"
WORKER_BLOCKED = "worker.hindered"
WORKER_LEFT = "worker.left"
WORKER_LOST = "worker.lost"
