"""`python -m benchmarks.worlds.outcome`: the tables of `docs/outcome.md`, on seeds, languages and
surfaces that nothing was tuned on.

Each table takes a few minutes on two cores, of which it uses both; `--only N` prints one, `--list`
says which there are.
"""

from __future__ import annotations

import argparse
import logging
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice, product

from benchmarks.worlds.run import HEAD, make_worlds, parse, render_row, run_one, ways
from support.worlds import reading as reads
from support.worlds.house import Outcome, Way

N_PROCESSES = 2
AGENTS = (reads.EXECUTION, reads.CREATION, reads.PRIORITIZATION, reads.CHECK, reads.REPORT)
HEAD_OF_TOKENS = ("world", "loop", "solved", "tokens", "tokens a needed fact", *AGENTS)
BOTH = "--planning separate,combined"
HELD_OUT = ("english-2", "german-2", "korean-2", "chinese-2", "japanese-2", "spanish-2")
FIELDS = ("own_lack_only", "unanswered_only", "neither")
MESSES = ("refuser", "claimer", "echo", "false_met", "broken", "all_at_once")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table: the commands whose rows it holds, and whether it counts tokens by agent."""

    title: str
    commands: tuple[str, ...]
    is_of_tokens: bool = False


def _each(option: str, values: Sequence[str], rest: str) -> tuple[str, ...]:
    return tuple(f"--{option} {value} {rest}" for value in values)


TABLES = (
    Table(
        title="Clean worlds, codes",
        commands=(f"--facts 10,30 --seeds 3 --concurrency 1,4,8 {BOTH}",),
    ),
    Table(
        title="Clean worlds, 100 facts",
        commands=(f"--facts 100 --seeds 2 --concurrency 1,8 {BOTH}",),
    ),
    Table(title="Clean worlds, 300 facts", commands=(f"--facts 300 --seeds 1 {BOTH}",)),
    Table(
        title="Clean worlds, three workers",
        commands=(f"--facts 10,30,100 --seeds 2 --workers 3 {BOTH}",),
    ),
    Table(
        title="Clean worlds, names in plain words",
        commands=_each("surface", ("places", "lab", "post"), f"--facts 10,30,100 --seeds 2 {BOTH}"),
    ),
    Table(
        title="Clean worlds, languages",
        commands=_each("surface", HELD_OUT, f"--facts 10,30 --seeds 3 {BOTH}"),
    ),
    Table(
        title="Clean briefs, languages",
        commands=_each(
            "surface", HELD_OUT, f"--worlds brief,brief+codes --facts 8,15,30 --seeds 3 {BOTH}"
        ),
    ),
    Table(
        title="Clean briefs, one and eight at once, three workers",
        commands=(
            f"--worlds brief --facts 8,30 --seeds 3 --concurrency 1,8 {BOTH}",
            f"--worlds brief --facts 8,30 --seeds 3 --loops ours --workers 3 {BOTH}",
        ),
    ),
    Table(
        title="Clean worlds of further kinds",
        commands=(
            f"--worlds siblings,contradiction,hunt,trip,pieces --facts 14,30 --seeds 3 {BOTH}",
            f"--worlds fanout --facts 10,30 --seeds 3 {BOTH}",
        ),
    ),
    Table(
        title="Results of 8 kB, the fact last",
        commands=(f"--facts 30 --seeds 3 --result-chars 8000 --fact-place last {BOTH}",),
    ),
    Table(
        title="A model that fills only one of the two fields, or none",
        commands=(
            *_each("temper", FIELDS, f"--facts 10,30 --seeds 3 {BOTH}"),
            *_each("temper", FIELDS, f"--worlds brief --facts 8,30 --seeds 3 {BOTH}"),
        ),
    ),
    Table(
        title="The same in other languages",
        commands=tuple(
            f"--surface {surface} --temper {temper} --worlds join,brief --facts 15 --seeds 3 {BOTH}"
            for surface, temper in product(HELD_OUT[1:], FIELDS)
        ),
    ),
    Table(
        title="Refusals, empty claims, echoes, a false met, broken form",
        commands=_each("temper", MESSES, f"--worlds chain,join,brief --facts 15 --seeds 10 {BOTH}"),
    ),
    Table(
        title="The same in other languages",
        commands=_each(
            "surface",
            HELD_OUT[1:],
            f"--temper all_at_once --worlds join,brief --facts 15 --seeds 6 {BOTH}",
        ),
    ),
    Table(title="Noise", commands=(f"--facts 10,30 --seeds 20 --noise {BOTH}",)),
    Table(
        title="Every fault at once",
        commands=(
            f"--temper worst --worlds chain,join,brief --facts 15 --seeds 4 {BOTH}",
            f"--temper worst --worlds siblings,hunt,trip --facts 15 --seeds 4 {BOTH}",
        ),
    ),
    Table(
        title="Repeats that are owned, and repeats that are not",
        commands=_each(
            "temper",
            ("reworder", "secret_reworder"),
            f"--worlds join,brief,siblings --facts 15 --seeds 5 {BOTH}",
        ),
    ),
    Table(
        title="Invented values: 3 % of lacks answered with something made up",
        commands=(
            f"--worlds join,brief --facts 10,30 --seeds 10 --temper inventor {BOTH}",
            f"--worlds join,brief --facts 30 --seeds 10 --noise --invents 0.03 {BOTH}",
        ),
    ),
    Table(
        title="Tokens: briefs against the plain loop",
        commands=_each(
            "surface",
            HELD_OUT,
            "--worlds brief,brief+codes --facts 8,30 --seeds 5 --cadence batched,each",
        ),
        is_of_tokens=True,
    ),
    Table(
        title="Tokens: combined planning",
        commands=(
            "--worlds chain,join,trip,brief --facts 15,30 --seeds 5 --planning combined",
            f"--worlds join --facts 30 --seeds 5 --protocol text,json {BOTH}",
        ),
        is_of_tokens=True,
    ),
    Table(
        title="Tokens: the beat against batched planning",
        commands=("--worlds chain,join,trip,brief --facts 30 --seeds 5 --cadence batched,each",),
        is_of_tokens=True,
    ),
)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.worlds.outcome", description=__doc__
    )
    parser.add_argument("--only", type=int, help="the number of one table")
    parser.add_argument("--list", action="store_true", help="say which tables there are")
    options = parser.parse_args(argv)
    for number, table in enumerate(TABLES, start=1):
        if options.only not in (None, number):
            continue
        print(f"\n## {number}. {table.title}\n", flush=True)
        for command in table.commands:
            print(f"* `python -m benchmarks.worlds --held-out {command}`")
        if not options.list:
            print_table(table)


def print_table(table: Table) -> None:
    head = HEAD_OF_TOKENS if table.is_of_tokens else HEAD
    print(f"\n| {' | '.join(head)} |\n|{' --- |' * len(head)}", flush=True)
    with ProcessPoolExecutor(N_PROCESSES) as pool:
        for group in [group for command in table.commands for group in _start(command, pool)]:
            plain: list[Outcome] = []
            for way, runs in group.runs_by_way.items():
                outcomes = [run.result() for run in runs]
                plain = outcomes if way.loop == "plain" else plain
                render = render_tokens if table.is_of_tokens else render_row
                print(render(group.kind, group.n_facts, way, outcomes, plain), flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The runs of all loops on the same worlds; `kind` is what they are called in a table."""

    kind: str
    n_facts: int
    runs_by_way: dict[Way, list[Future[Outcome]]]


def _start(command: str, pool: ProcessPoolExecutor) -> list[_Group]:
    options = parse(["--held-out", *command.split()])
    apart = [options.surface] if "--surface" in command else []
    apart += [options.temper] if options.temper else []
    return [
        _Group(
            kind=", ".join((*apart, kind)),
            n_facts=n_facts,
            runs_by_way={
                way: [
                    pool.submit(_run, command, kind, n_facts, way, n) for n in range(options.seeds)
                ]
                for way in ways(options)
            },
        )
        for kind, n_facts in product(options.worlds, options.facts)
    ]


def _run(command: str, kind: str, n_facts: int, way: Way, n: int) -> Outcome:
    """Run one loop on the world of the command's seed `n`, in a process of the pool."""
    logging.disable(logging.CRITICAL)
    options = parse(["--held-out", *command.split()])
    world = next(islice(make_worlds(kind, n_facts, options), n, None))
    return run_one(world, way, n, options)


def render_tokens(
    kind: str, n_facts: int, way: Way, outcomes: Sequence[Outcome], plain: Sequence[Outcome]
) -> str:
    """One line of a table of tokens: sums over all runs from their start to their report, solved or
    not, and the share of each agent. `plain` are the plain loop's runs on the same worlds; the two
    are compared on those that both solved."""
    tokens = _sum_tokens(outcomes)
    both = [pair for pair in zip(outcomes, plain, strict=False) if all(o.is_solved for o in pair)]
    ratio = ""
    if both and way.loop != "plain":
        compared = [_sum_tokens(runs) for runs in zip(*both, strict=True)]
        ratio = f" (× {compared[0] / compared[1]:.2f} on {len(both)})"
    by_role = sum((outcome.tally.tokens_by_role for outcome in outcomes), Counter[str]())
    cells = (
        f"{kind} of {n_facts}",
        way.label,
        f"{sum(outcome.is_solved for outcome in outcomes)}/{len(outcomes)}",
        f"{tokens:,}{ratio}",
        f"{tokens / sum(outcome.world.n_needed for outcome in outcomes):,.0f}",
        *(f"{by_role[role] / tokens:.0%}" for role in AGENTS),
    )
    return f"| {' | '.join(cells)} |"


def _sum_tokens(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.tally.n_tokens for outcome in outcomes)


if __name__ == "__main__":
    main()
