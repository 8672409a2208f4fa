"""Run an objective from Python: `python examples/run.py FOLDER`.

With the rehearsal model it needs no key and no network. Name another model, and it is asked
instead.
"""

import sys

import babyagi

folder = sys.argv[1] if len(sys.argv) > 1 else "docs"
outcome = babyagi.run(
    "What do these documents say about limits?",
    first_task="List the documents of the folder",
    files=folder,
    model="rehearsal",
    max_tasks=30,
)
print(outcome.report)
print(f"stopped: {outcome.objective.stop_reason}, results: {len(outcome.results)}", file=sys.stderr)
