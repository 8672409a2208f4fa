"""What a person reads about the index of results: nouns in, lines out."""

from __future__ import annotations

from collections.abc import Sequence

from babyagi.cli.text import Line, Style, fit, one_line
from babyagi.results import IndexStatus
from babyagi.resultstore.projector import CheckReport
from babyagi.resultstore.search import Ranking
from babyagi.tasks import Objective

N_NAMED = 10


def render_index_status(rows: Sequence[IndexStatus], *, index: str, width: int) -> list[Line]:
    if not rows:
        return [Line('No objective yet. Type: babyagi demo, or babyagi run "an objective"')]
    lines = [
        Line(f"Index: {index}"),
        Line(
            f"{'ID':>4}  {'RESULTS':>8} {'INDEXED':>8} {'OWED':>6}  {'SPACE':<24}  OBJECTIVE",
            Style.DIM,
        ),
    ]
    for row in rows:
        n_indexed = row.n_results - row.n_owed
        space = fit(row.objective.spec.embedding_space, 40)
        head = (
            f"{row.objective.id:>4}  {row.n_results:>8,} {n_indexed:>8,} {row.n_owed:>6,}  "
            f"{space:<24}  "
        )
        lines.append(
            Line(
                head + fit(row.objective.spec.text, max(20, width - len(head))),
                Style.YELLOW if row.n_owed else Style.PLAIN,
            )
        )
    return lines


def render_index_check(objective: Objective, report: CheckReport) -> list[Line]:
    lines = [
        *_render_ids("missing from the index", [f"task {task_id}" for task_id in report.missing]),
        *_render_ids("in the index and nowhere else", report.extra),
        *_render_ids(
            "not found by their own vectors", [f"task {task_id}" for task_id in report.probe_misses]
        ),
    ]
    n_found = report.n_probes - len(report.probe_misses)
    owed = f", {report.n_owed:,} are still to be fed" if report.n_owed else ""
    counted = (
        f"{report.n_held:,} of {report.n_expected:,} results are indexed, {n_found} of "
        f"{report.n_probes} probed were found{owed}."
    )
    lines.append(Line(f"Objective {objective.id}: {counted}"))
    if not report.is_whole:
        lines.append(
            Line(
                "No result is lost. A run mends this by itself; so does: babyagi index rebuild "
                f"--objective {objective.id}"
            )
        )
    return lines


def _render_ids(what: str, ids: Sequence[str]) -> list[Line]:
    if not ids:
        return []
    more = f" and {len(ids) - N_NAMED:,} more" if len(ids) > N_NAMED else ""
    return [Line(f"{what}: {', '.join(one_line(id_) for id_ in ids[:N_NAMED])}{more}", Style.RED)]


def render_ranking(ranking: Ranking, *, objective_id: int, width: int) -> list[Line]:
    """What was found in the objective and, where others were searched, in which of them."""
    lines: list[Line] = []
    for entry in ranking:
        whose = (
            ""
            if entry.result.objective_id == objective_id
            else f"objective {entry.result.objective_id}, "
        )
        head = f"{entry.score:5.2f}  {whose}task {entry.result.task_id}: "
        lines.append(
            Line(head + fit(entry.result.task_name, max(20, width - len(head))), Style.BOLD)
        )
        lines.append(Line("       " + fit(entry.result.text, max(20, 3 * width))))
    return lines
