"""Artifacts: tables, plots and texts that were written by Python code which a task ran, shown with
its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from babyagi.reporting.sources import SHOWN_DIGEST_CHARS, code, render_list
from babyagi.tasks import Artifact, Result
from babyagi.taskstore.sql.store import TaskStore
from babyagi.tools.base import read_observations

MAX_TASKS_READ = 200  # whose steps are looked through for files
# the only tool that makes artifacts, without and with a folder
MAKERS = frozenset(("tool:run_python", "private:run_python"))


class Made(NamedTuple):
    """An artifact, and the id of the task that made it."""

    task_id: int
    artifact: Artifact


async def find_artifacts(store: TaskStore, results: Sequence[Result]) -> list[Made]:
    """Return the artifacts of these results' tasks, in the order of the results. If a task made
    several files with the same name, only the last one is returned."""
    made: list[Made] = []
    asked = [result for result in results if not MAKERS.isdisjoint(result.origins)]
    for result in asked[:MAX_TASKS_READ]:
        steps = await store.steps(result.objective_id, owner=f"task:{result.task_id}")
        by_name = {
            artifact.name: artifact
            for observation in read_observations(steps)
            for artifact in observation.passage.artifacts
        }
        made += [Made(task_id=result.task_id, artifact=one) for one in by_name.values()]
    return made


def say_artifact(made: Made) -> str:
    """Return type, size and the beginning of the digest of an artifact as a phrase."""
    digest = made.artifact.digest[:SHOWN_DIGEST_CHARS]
    return f"{made.artifact.media_type}, {len(made.artifact.data):,} bytes, sha256 {digest}"


def render_artifacts(made: Sequence[Made], *, objective_id: int, most: int) -> str:
    """Return the report's section that lists the first `most` artifacts; '' if there are none."""
    lines = [f"{code(one.artifact.name)} (task {one.task_id}; {say_artifact(one)})" for one in made]
    listed = render_list("## Files", lines, most)
    how = f"`babyagi show TASK --artifact NAME --objective {objective_id}` prints one."
    return f"{listed}\n\n{how}" if listed else ""


def artifacts_shape(made: Sequence[Made]) -> list[dict[str, object]]:
    """Return one JSON object for each artifact, without its content."""
    return [
        {
            "task_id": one.task_id,
            "name": one.artifact.name,
            "media_type": one.artifact.media_type,
            "n_bytes": len(one.artifact.data),
            "sha256": one.artifact.digest,
        }
        for one in made
    ]
