"""Worlds out of questions that people took apart: real names, answers that a step leaves to the
next, and many questions at once.

A question's answer takes all of its steps. The first result names the first steps; the others are
named by those that they come after.
"""

from __future__ import annotations

import json
import random
import re
from functools import cache
from importlib.resources import files
from typing import Any

from support.worlds.generator import Fact, World, write_results
from support.worlds.surfaces import Names, Surface

_ASKING = re.compile(r"(?:what|who|where|which) (?:is|are|was|were) (?=(?:\S+ ){2})", re.IGNORECASE)
_OUTLINE = ("the reading list for these questions", "what to read for these questions")


@cache
def _load_plans() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(
        files("support.worlds").joinpath("data", "fanout_plans.json").read_text(encoding="utf-8")
    )
    return loaded


def make_fanout(
    n_facts: int, seed: int, *, result_chars: int = 600, fact_place: str = "any"
) -> World:
    """Return a world of at least so many facts, if the plans have as many: whole questions, each
    with its steps."""
    rng = random.Random(f"fanout {n_facts} {seed}")
    facts = [
        Fact(number=0, names=_OUTLINE, value=f"list {rng.randint(1000, 9999)} of the reading room")
    ]
    hinted: dict[int, list[int]] = {0: []}
    goals: list[int] = []
    for plan in rng.sample(_load_plans(), len(_load_plans())):
        if len(facts) >= n_facts:
            break
        goals.append(_add_plan(plan, facts, hinted))
    asked = "? ".join(facts[number].subject for number in goals)
    return World(
        kind="fanout",
        seed=seed,
        surface=FANOUT,
        facts=write_results(
            facts, hinted, FANOUT, rng, result_chars=result_chars, fact_place=fact_place
        ),
        goals=tuple(goals),
        objective=f"Answer with sources: {asked}?",
        initial_task=f"Put together {_OUTLINE[0]}",
    )


def _add_plan(plan: dict[str, Any], facts: list[Fact], hinted: dict[int, list[int]]) -> int:
    """Add the steps of a question and the question itself; return its number."""
    first = len(facts)
    for step in plan["steps"]:
        inputs = tuple(first + place for place in step["after"])
        hinted[inputs[0] if inputs else 0].append(len(facts))
        _add(step["question"], step["answer"], inputs, facts, hinted)
    answers = "; ".join(dict.fromkeys(step["answer"] for step in plan["steps"] if step["after"]))
    hinted[first].append(len(facts))
    return _add(plan["question"], answers, tuple(range(first, len(facts))), facts, hinted)


def _add(
    question: str,
    answer: str,
    inputs: tuple[int, ...],
    facts: list[Fact],
    hinted: dict[int, list[int]],
) -> int:
    number = len(facts)
    hinted[number] = []
    facts.append(
        Fact(
            number=number,
            names=_names(question),
            value=answer,
            wrong_value="no answer that all agree on",
            inputs=inputs,
        )
    )
    return number


def _names(question: str) -> Names:
    asking = _ASKING.match(question)
    return (question, question[asking.end() :]) if asking else (question,)


def _filler(rng: random.Random) -> str:
    return rng.choice(
        (
            "The article has been revised {n} times and carries no warning.",
            "Older encyclopedias give the matter {n} lines.",
            "A footnote refers to an interview that is no longer online.",
            "Several portals repeat this wording without naming where it is from.",
            "The table was last brought up to date {n} months ago.",
            "A talk page discusses the spelling at length.",
            "Two press archives were read as well and say nothing else.",
        )
    ).format(n=rng.randint(2, 60))


FANOUT = Surface(
    name="fanout",
    make_names=lambda n, rng: [],
    make_value=lambda names, rng: "",
    make_filler=_filler,
    value_forms=(
        "{s}: {v}.",
        "On “{s}” the sources say {v}.",
        "Asked “{s}”, the reference work answers {v}.",
    ),
    hint_forms=(
        "This leads on to “{s}”, for which one needs “{i}”.",
        "“{s}” can be asked once “{i}” is answered.",
    ),
    bare_hint_forms=("One has to begin with “{s}”.", "“{s}” comes first."),
    origin_forms=("Read together with “{i}”.",),
    task_forms=("{s}?", "Answer: {s}", "Look up {s}"),
    needing_forms=("{s}? (after {i})", "Answer: {s} (with {i})"),
    objective_forms=(),
)
