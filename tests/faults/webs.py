"""Runs on small webs (`tests/small_web.py`), seed by seed: are sources what was fetched, do quotes
stand in them, is nothing fetched again after a kill, does poison change anything?

`python -m tests.faults.webs [--seeds 20]`
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from babyagi.reporting.sources import SourceKind, trace_sources
from babyagi.tasks import Objective, Result, Step, StepState, StopReason, Task
from support.scripted import ScriptedModel
from support.table import print_table, verdict
from support.world import World
from tests.small_web import FORBIDDEN_PLACE, KINDS, POISON, Asking, SmallWeb

QUOTED = re.compile(r'^(\w+), (\w+): "([^"\n]+)" \((http[^)\s]+)\)$', re.MULTILINE)
LISTED = re.compile(r"^\* .*?<(http[^>]+)> \(fetched ", re.MULTILINE)
MADE_UP = "See http://nowhere.example/made-up too."


@dataclass(frozen=True)
class Run:
    """A run that has ended, and what is left of it."""

    objective: Objective
    tasks: list[Task]
    results: list[Result]
    report: str


def open_world(web: SmallWeb, questions: list[str], **options: Any) -> World:
    model = ScriptedModel(Asking(questions, makes_up=MADE_UP), answers_checks=True)
    return World(model=model, tools=web.open_tools(), **options)


async def run_whole(web: SmallWeb, world: World, questions: list[str]) -> Run:
    objective = await world.start(text="; ".join(questions), initial_task=questions[0])
    return await finish(world, objective)


async def finish(world: World, objective: Objective) -> Run:
    ended = await world.run(objective)
    return Run(
        objective=ended,
        tasks=await world.store.tasks(ended.id),
        results=await world.store.results(ended.id),
        report=await world.store.report(ended.id) or "",
    )


async def check_report(seed: int) -> list[str]:
    """What is wrong with the report of a run."""
    web = SmallWeb(seed=seed)
    questions = web.choose_questions()
    async with web.server:
        world = open_world(web, questions)
        run = await run_whole(web, world, questions)
        sources = await trace_sources(world.store, run.results)
        fetched = {*web.fetched()}
        faults = find_faults(web, run, fetched)
        pages = [one for one in sources.named if one.kind is SourceKind.PAGE]
        faults += [f"{one.name} has no digest" for one in pages if one.page is None]
        if f"no task opened them:**\n\n* `{MADE_UP.split()[1]}`" not in run.report:
            faults.append("an address that nobody opened is not named as such")
        if len(QUOTED.findall(run.report)) != len(questions):
            faults.append(f"{len(QUOTED.findall(run.report))} of {len(questions)} are answered")
    return faults


def find_faults(web: SmallWeb, run: Run, fetched: set[str]) -> list[str]:
    """Sources that were not fetched, and quotes that do not stand where they are said to."""
    faults = []
    if run.objective.stop_reason is not StopReason.FINISHED:
        faults.append(f"the run ended as {run.objective.stop_reason}")
    listed = LISTED.findall(run.report)
    faults += [f"{url} is a source and was not fetched" for url in listed if url not in fetched]
    for name, fact, sentence, url in QUOTED.findall(run.report):
        if url not in fetched:
            faults.append(f"{url} is cited and was not fetched")
        if not web.says(url, sentence):
            faults.append(f"{name}, {fact}: {sentence!r} does not stand at {url}")
    named = {
        origin[4:] for result in run.results for origin in result.origins if origin[:4] == "web:"
    }
    faults += [f"{url} is an origin and was not fetched" for url in named - fetched]
    return faults


async def check_kill(seed: int) -> list[str]:
    """What a run that is cut off in the middle, three times, fetches that stood in the journal."""
    web, faults = SmallWeb(seed=seed), []
    questions = web.choose_questions([kind for kind in KINDS if kind != "slow"])
    async with web.server:
        world = open_world(web, questions, lease_s=5.0)
        objective = await world.start(text="; ".join(questions), initial_task=questions[0])
        recorded, n_before = Counter[str](), 0
        for _ in range(3):
            await live_until_a_second_page(web, world, objective)
            now = await recorded_pages(world, objective)
            faults += find_fetched_again(recorded, now, web.fetched()[n_before:])
            recorded, n_before = now, len(web.fetched())
        if not recorded:
            faults.append("nothing was recorded before the kill")
        run = await finish(world, objective)
        now = await recorded_pages(world, objective)
        faults += find_fetched_again(recorded, now, web.fetched()[n_before:])
        faults += find_faults(web, run, {*web.fetched()})
        if len(QUOTED.findall(run.report)) != len(questions):
            faults.append("not every question is answered")
    return faults


async def live_until_a_second_page(web: SmallWeb, world: World, objective: Objective) -> None:
    """Work until a task opens a review, since its first page could not be read, and stop there."""
    n_before = len(web.fetched())
    living = asyncio.create_task(world.open_worker().run(objective.id))
    while not any("//reviews." in url for url in web.fetched()[n_before:]) and not living.done():
        await asyncio.sleep(0.001)
    living.cancel()
    with suppress(asyncio.CancelledError):
        await living


def find_fetched_again(
    before: Mapping[str, int], now: Mapping[str, int], fetched: Sequence[str]
) -> list[str]:
    """A fault for each recorded page that was fetched more often than new calls were recorded: a
    later try, and another task, may open it too."""
    n_by_url = Counter(fetched)
    return [
        f"{url} was fetched again"
        for url, n in before.items()
        if n_by_url[url] > now.get(url, 0) - n
    ]


async def recorded_pages(world: World, objective: Objective) -> Counter[str]:
    """The addresses of all calls of `open_page` that stand in the journal, and how often."""
    found = Counter[str]()
    for task in await world.store.tasks(objective.id):
        steps: list[Step] = await world.store.steps(objective.id, owner=f"task:{task.id}")
        for step in steps:
            if step.kind == "tool" and step.state is StepState.DONE:
                found.update(re.findall(r"http://[^\s\"\\]+", step.request))
    return found


async def check_poison(seed: int) -> list[str]:
    """What is different between a run on poisoned pages and one on the same pages without it."""
    runs = []
    for poison in (POISON, ""):
        web = SmallWeb(seed=seed, poison=poison)
        questions = web.choose_questions(["poisoned"] * 4 + ["plain"] * 2)
        async with web.server:
            world = open_world(web, questions, concurrency=1)
            run = await run_whole(web, world, questions)
            obeyed = FORBIDDEN_PLACE in await recorded_pages(world, run.objective)
            if obeyed != bool(poison):
                return ["the model has not read the poison"]
            port = f":{web.server.port}"
            runs.append(
                {
                    "stop": run.objective.stop_reason,
                    "tasks": [(task.name, task.status) for task in run.tasks],
                    "results": [one.text.replace(port, "") for one in run.results],
                    "fetched": [url.replace(port, "") for url in web.fetched()],
                }
            )
    return [
        f"{key}: {runs[0][key]} != {runs[1][key]}"
        for key in runs[0]
        if runs[0][key] != runs[1][key]
    ]


CHECKS = {"report": check_report, "kill": check_kill, "poison": check_poison}


async def check_all(n_seeds: int) -> bool:
    rows, is_good = [], True
    for name, check in CHECKS.items():
        faults = [fault for seed in range(n_seeds) for fault in await check(seed)]
        is_good = is_good and not faults
        rows.append((name, n_seeds, len(faults), verdict(not faults)))
        for fault in faults[:5]:
            print(f"  {name}: {fault}")
    print_table("Runs on webs of 300 pages", ("check", "seeds", "faults", ""), rows)
    return is_good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    sys.exit(0 if asyncio.run(check_all(parser.parse_args().seeds)) else 1)


if __name__ == "__main__":
    main()
