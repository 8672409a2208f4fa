"""`python -m benchmarks.worlds`: which loops find what planted worlds hide, and what that costs
them."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean

from benchmarks.worlds.sockets import (
    SOCKET_LATENCY_S,
    langchain_command,
    original_command,
    run_over_sockets,
    run_program,
)
from support.table import print_table
from support.worlds.generator import KINDS, PLACES_OF_FACT, World, make_world
from support.worlds.house import Outcome, Way, run_world
from support.worlds.noise import NO_NOISE, TEMPERS, Noise
from support.worlds.reading import CHECK, CREATION, EXECUTION, PRIORITIZATION, REPORT
from support.worlds.surfaces import SURFACES

TUNED_SEED, HELD_OUT_SEED = 1, 1001
MAX_TUNED_SEEDS = 9
HEAD = (
    "world", "loop", "solved", "value in the report", "false ends", "tokens a fact", "calls a fact",
    "useless executions", "proposals of what is known",
    "stopped, solved", "stopped, unsolved", "wall / (depth × latency)",
)  # fmt: skip
AGENTS = (EXECUTION, CREATION, PRIORITIZATION, CHECK, REPORT)


def main(argv: Sequence[str] | None = None) -> None:
    options = parse(argv)
    by_agent: list[tuple[str, ...]] = []
    print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}", flush=True)
    for kind, n_facts in product(options.worlds, options.facts):
        worlds = list(make_worlds(kind, n_facts, options))
        plain: list[Outcome] = []
        for way in ways(options):
            seeds = range(options.seeds)
            outcomes = [
                run_one(world, way, seed, options)
                for seed, world in zip(seeds, worlds, strict=True)
            ]
            plain = outcomes if way.loop == "plain" else plain
            print(render_row(kind, n_facts, way, outcomes, plain), flush=True)
            by_agent.append((f"{kind} of {n_facts}", way.label, *tokens_by_agent(outcomes)))
    if options.by_agent:
        print_table("Tokens", ("world", "loop", *AGENTS, "all", "all calls"), by_agent)


def tokens_by_agent(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return the tokens of whole runs, together: for each agent with its calls, and for all."""
    tokens = sum((outcome.tally.tokens_by_role for outcome in outcomes), Counter[str]())
    calls = sum((outcome.tally.calls_by_role for outcome in outcomes), Counter[str]())
    each = (f"{tokens[agent]:,} ({calls[agent]})" for agent in AGENTS)
    return (*each, f"{tokens.total():,}", f"{calls.total()}")


def run_one(world: World, way: Way, seed: int, options: argparse.Namespace) -> Outcome:
    if way.loop == "original":
        return asyncio.run(
            run_program(
                world,
                original_command(options.original),
                name=f"w{seed}",
                seed=seed,
                noise=options.noise,
            )
        )
    if way.loop == "langchain":
        return asyncio.run(
            run_program(
                world,
                langchain_command(options.langchain),
                name=f"w{seed}",
                seed=seed,
                noise=options.noise,
            )
        )
    if way.loop == "ours" and options.sockets:
        given = {"noise": options.noise, "dialect": options.dialect, "latency_s": options.latency}
        return asyncio.run(run_over_sockets(world, way, seed=seed, **given))
    return run_world(world, way, seed=seed, noise=options.noise)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worlds", description=__doc__)
    parser.add_argument(
        "--worlds", type=_names, default=["chain", "join"], help=f"of {', '.join(KINDS)}"
    )
    parser.add_argument(
        "--facts", type=_numbers, default=[10, 30], help="how many facts a world has"
    )
    parser.add_argument("--seeds", type=int, default=3, help="worlds of each kind and size")
    parser.add_argument(
        "--held-out",
        action="store_true",
        help=f"seeds from {HELD_OUT_SEED} on: for a last look, never for tuning",
    )
    parser.add_argument("--surface", choices=sorted(SURFACES), default="codes")
    parser.add_argument(
        "--result-chars",
        type=int,
        default=600,
        help="about how long a result is; 0: from 300 to 8,000",
    )
    parser.add_argument(
        "--fact-place",
        choices=PLACES_OF_FACT,
        default="any",
        help="where in a result its value stands",
    )
    parser.add_argument(
        "--noise",
        action="store_const",
        const=Noise(),
        default=NO_NOISE,
        help="let the model err now and then",
    )
    parser.add_argument("--temper", choices=sorted(TEMPERS), help="a kind of model that errs")
    parser.add_argument(
        "--invents",
        type=float,
        help="with --noise: the share of lacks in whose place it makes a value up",
    )
    parser.add_argument(
        "--misjudges",
        type=float,
        help="with --noise: the share of lacks that it calls answers when it plans",
    )
    parser.add_argument("--loops", type=_names, default=["plain", "ours"], help="of plain, ours")
    parser.add_argument("--concurrency", type=_numbers, default=[4], help="of ours")
    parser.add_argument("--workers", type=_numbers, default=[1], help="of ours")
    parser.add_argument(
        "--planning", type=_names, default=["separate"], help="of ours: separate, combined"
    )
    parser.add_argument("--cadence", type=_names, default=["each"], help="of ours: each, batched")
    parser.add_argument(
        "--by-agent", action="store_true", help="also print the tokens (and calls) of each agent"
    )
    parser.add_argument(
        "--protocol", type=_names, default=["auto"], help="of ours: auto, native, json, text"
    )
    parser.add_argument(
        "--sockets", action="store_true", help="ours as real processes against a local server"
    )
    parser.add_argument(
        "--latency",
        type=float,
        default=SOCKET_LATENCY_S,
        help="with --sockets: how long a call takes, in seconds",
    )
    parser.add_argument(
        "--dialect", choices=("chat", "responses"), default="", help="what they speak there"
    )
    parser.add_argument(
        "--original",
        type=Path,
        help="a checkout of the original babyagi, which is run as well; needs its packages here",
    )
    parser.add_argument(
        "--langchain", help="a Python that has langchain-experimental, whose BabyAGI is run as well"
    )
    options = parser.parse_args(argv)
    if SURFACES[options.surface].is_held_out and not options.held_out:
        parser.error(f"the surface {options.surface} is held out: name it together with --held-out")
    if not options.held_out and options.seeds > MAX_TUNED_SEEDS:
        parser.error(f"there are {MAX_TUNED_SEEDS} seeds to tune on")
    options.noise = TEMPERS[options.temper] if options.temper else options.noise
    given = {"invents": options.invents, "misjudges_lack": options.misjudges}
    options.noise = replace(
        options.noise, **{name: share for name, share in given.items() if share is not None}
    )
    return options


def _names(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def make_worlds(kind: str, n_facts: int, options: argparse.Namespace) -> Iterator[World]:
    first = HELD_OUT_SEED if options.held_out else TUNED_SEED
    for seed in range(first, first + options.seeds):
        yield make_world(
            kind,
            n_facts,
            seed,
            surface=options.surface,
            result_chars=options.result_chars,
            fact_place=options.fact_place,
        )


def ways(options: argparse.Namespace) -> Iterator[Way]:
    if "plain" in options.loops:
        yield Way(loop="plain")
    if "ours" in options.loops:
        settings = product(
            options.concurrency,
            options.workers,
            options.planning,
            options.protocol,
            options.cadence,
        )
        for concurrency, n_workers, planning, protocol, cadence in settings:
            yield Way(
                loop="ours",
                concurrency=concurrency,
                n_workers=n_workers,
                planning=planning,
                protocol=protocol,
                cadence=cadence,
            )
    yield from (Way(loop=name) for name in ("original", "langchain") if getattr(options, name))


def render_row(
    kind: str, n_facts: int, way: Way, outcomes: Sequence[Outcome], plain: Sequence[Outcome]
) -> str:
    """One line of the table. Tokens and calls are counted up to the execution that finds the goal,
    without checks and reports, in the runs that solved; useless executions and proposals in all.

    Args:
        plain: the plain loop's runs on the same worlds, to compare with; empty where it does not
            run.
    """
    solved = [outcome for outcome in outcomes if outcome.is_solved]
    n_false = sum(outcome.is_false for outcome in outcomes)
    n_both = sum(outcome.is_contradiction_told for outcome in outcomes)
    tokens, plain_tokens = _tokens_a_fact(outcomes), _tokens_a_fact(plain)
    false = f", {n_false} false" if n_false else ""
    false += f", {n_both} with both" if n_both else ""
    is_compared = tokens and plain_tokens and way.loop != "plain"
    ratio = f" (× {tokens / plain_tokens:.2f})" if is_compared else ""
    n_proposed = sum(outcome.tally.n_proposed for outcome in outcomes)
    n_repeated = sum(outcome.tally.n_repeated_proposals for outcome in outcomes)
    cells = (
        f"{kind} of {n_facts}",
        way.label,
        f"{len(solved)}/{len(outcomes)}",
        f"{sum(outcome.is_reported for outcome in outcomes)}/{len(outcomes)}{false}",
        f"{sum(outcome.is_false_end for outcome in outcomes)}" if way.loop == "ours" else "",
        f"{tokens:,.0f}{ratio}" if tokens else "",
        f"{_mean(outcome.tally.n_calls_to_goal / outcome.world.n_needed for outcome in solved):.2f}"
        if solved
        else "",
        (
            f"{sum(outcome.tally.n_useless for outcome in outcomes)} of "
            f"{sum(outcome.tally.n_executions for outcome in outcomes)}"
        ),
        f"{n_repeated} of {n_proposed}",
        _reasons(solved),
        _reasons([outcome for outcome in outcomes if not outcome.is_solved]),
        f"{_mean(o.wall_s / (o.world.depth * o.latency_s) for o in solved):.2f}" if solved else "",
    )
    return f"| {' | '.join(cells)} |"


def _tokens_a_fact(outcomes: Sequence[Outcome]) -> float:
    return _mean(
        outcome.tally.n_tokens_to_goal / outcome.world.n_needed
        for outcome in outcomes
        if outcome.is_solved
    )


def _reasons(outcomes: Sequence[Outcome]) -> str:
    return ", ".join(
        f"{reason} {count}"
        for reason, count in Counter(outcome.stop_reason for outcome in outcomes).items()
    )


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return mean(found) if found else 0.0
