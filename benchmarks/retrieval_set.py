"""The set of results and queries that retrieval is measured on: made here, from sentences of our own, the same on every run.

Each result has one fact with a figure of its own among sentences that many results share. The queries of each fact: in its words, in
other words, in its words misspelt, and as a task would be named. `python -m benchmarks.retrieval_set FILE` writes it.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

SEED = 20_300_101
# What is spoken of, and the same thing in other words.
SUBJECTS = (
    ("the bakery in Lindholm", "the shop that sells bread up north"),
    ("the customer database", "the place where buyers are recorded"),
    ("the lake trail", "the footpath around the water"),
    ("the vaccine trial", "the study of the new jab"),
    ("the school roof panels", "the sun-powered plant above the classrooms"),
    ("the thumbnail service", "the program that shrinks pictures"),
    ("the museum of manuscripts", "the house of old handwritten books"),
    ("the tomato nursery", "the greenhouse for young plants"),
    ("the night train to Vienna", "the sleeper that leaves for Austria"),
    ("the login cookies", "the tokens that keep people signed in"),
    ("the wind farm at Skagen", "the turbines on the coast"),
    ("the payment gateway", "the component that takes money by card"),
    ("the river ferry", "the boat between both banks"),
    ("the archive of letters", "the collection of old correspondence"),
    ("the orchard cooperative", "the growers of apples who sell together"),
    ("the invoice parser", "the reader of bills"),
    ("the city library", "the public building for lending volumes"),
    ("the beehives on the terrace", "the insects that make honey upstairs"),
    ("the translation agency", "the firm that turns texts into other languages"),
    ("the crash reporter", "the thing that collects failures from phones"),
    ("the water treatment plant", "the works where sewage is cleaned"),
    ("the chess club", "the players who meet over a board"),
    ("the recommendation engine", "the software that suggests articles"),
    ("the mountain hut", "the shelter for climbers"),
    ("the clinical laboratory", "the room where blood is examined"),
    ("the delivery drones", "the flying carriers of parcels"),
    ("the theatre festival", "the summer week of plays"),
    ("the fishing quota", "what trawlers are allowed to catch"),
    ("the search index", "the structure that finds pages"),
    ("the weather station", "the instruments that record rain"),
    ("the bicycle workshop", "the garage that mends two-wheelers"),
    ("the tax calculator", "the form that works out what is owed to the state"),
    ("the reading group", "the circle that talks about novels"),
    ("the backup server", "the machine that holds spare copies"),
    ("the coffee roastery", "the company that prepares beans"),
    ("the glacier survey", "the yearly look at the ice"),
    ("the video player", "the widget that shows films"),
    ("the emergency ward", "the department for accidents"),
    ("the brick kiln", "the oven where clay is fired"),
    ("the password policy", "the rules about secret words"),
)
# (the task's name, the fact, the fact asked for in its words, the same in others); {s} is the subject, {o} its other name.
ASPECTS = (
    (
        "Find out what {s} costs in a year",
        "The yearly budget of {s} amounts to {n} crowns, most of which is spent on wages.",
        "yearly budget of {s} in crowns spent on wages",
        "how expensive is {o} per annum",
    ),
    (
        "Measure how slow {s} has become",
        "A delay of {n} minutes was measured at {s} whenever the load doubled.",
        "delay in minutes measured at {s} when the load doubled",
        "how long must one wait for {o} under pressure",
    ),
    (
        "Count who uses {s}",
        "According to the register, {n} visitors used {s} between March and May.",
        "visitors who used {s} between March and May in the register",
        "number of people coming to {o} in spring",
    ),
    (
        "Look for complaints about {s}",
        "The ombudsman received {n} complaints about {s}, chiefly because of noise.",
        "complaints about {s} that the ombudsman received because of noise",
        "grievances raised against {o} over being loud",
    ),
    (
        "Learn when {s} was founded",
        "The first document that mentions {s} carries the signature {n} and was sealed by a notary.",
        "first document that mentions {s} sealed by a notary",
        "oldest written evidence of {o}",
    ),
    (
        "Check whether {s} is safe",
        "During the inspection {n} defects were found at {s}, none of them serious.",
        "defects found at {s} during the inspection",
        "what was wrong with {o} when experts examined it",
    ),
    (
        "Describe who runs {s}",
        "Responsibility for {s} lies with a board of {n} members elected by the employees.",
        "board members elected by the employees responsible for {s}",
        "who is in charge of {o} and how many are they",
    ),
    (
        "Estimate what could be saved at {s}",
        "Replacing the lamps of {s} would lower the consumption of electricity by {n} kilowatt hours.",
        "electricity consumption of {s} lowered by replacing the lamps",
        "power that {o} would no longer need with better lights",
    ),
)
# Sentences that say nothing of the fact and stand in many results, so that words alone mislead.
FILLERS = (
    "The budget for the coming year has not been decided, and the board wants to hear the employees first.",
    "Visitors praised the friendly service, although some found the register hard to read.",
    "An inspection is planned for May, when the load is highest.",
    "Several complaints turned out to be about a neighbour and were passed on.",
    "The document is kept by a notary, who allowed two pages to be copied.",
    "Electricity has become expensive, so every consumption is measured twice.",
    "Nobody could say why the delay grew between March and May.",
    "Wages rose everywhere in the region and make comparisons difficult.",
    "The members met in public, and the minutes were published a week later.",
    "Defects of this kind are common and can be mended without closing anything.",
    "Two newspapers wrote about it, both with figures that could not be confirmed.",
    "The source is a report of forty pages, of which the annex is the most useful part.",
    "What was measured in winter may not hold for the summer.",
    "A signature on the last page could not be deciphered.",
    "The ombudsman answers letters within three weeks.",
    "Lamps of the older kind are no longer sold.",
)
KINDS = ("same words", "paraphrase", "misspelt", "as a task")


MENTIONS = ("Compared with {}, little is known.", "The figures of {} are older.", "Much of this also holds for {}.")


def make_set() -> dict[str, Any]:
    """`results`: name, text. `queries`: kind, text, the number of the result that answers, and the answer that must be seen."""
    draw = random.Random(SEED)
    results: list[dict[str, Any]] = []
    queries: list[dict[str, Any]] = []
    figures = iter(draw.sample(range(1_000, 100_000), len(SUBJECTS) * len(ASPECTS)))
    for subject, other in SUBJECTS:
        for name, fact, asked, asked_otherwise in ASPECTS:
            figure, task = str(next(figures)), name.format(s=subject)
            results.append({"name": task, "text": _write(draw, subject, fact.format(s=subject, n=figure))})
            if draw.random() < 0.2:
                same, paraphrase = asked.format(s=subject), asked_otherwise.format(o=other)
                texts = (same, paraphrase, _misspell(draw, same), f"Verify and compare: {task[0].lower()}{task[1:]}")
                number = len(results) - 1
                queries += [
                    {"kind": kind, "text": text, "result": number, "answer": figure} for kind, text in zip(KINDS, texts, strict=True)
                ]
    return {"results": results, "queries": queries}


def _write(draw: random.Random, subject: str, fact: str) -> str:
    """The fact somewhere among other sentences; one text in four is long."""
    n = draw.randint(30, 60) if draw.random() < 0.25 else draw.randint(3, 7)
    others = draw.sample([other for other, _ in SUBJECTS if other != subject], draw.randint(1, 3))
    sentences = [*draw.choices(FILLERS, k=n), *(draw.choice(MENTIONS).format(other) for other in others)]
    sentences.insert(draw.randint(0, len(sentences)), fact)
    return " ".join(sentences)


def _misspell(draw: random.Random, text: str) -> str:
    """One slip of the fingers in every word of five letters or more: two letters swapped, one left out, doubled or replaced."""
    return " ".join(_slip(draw, word) if len(word) >= 5 else word for word in text.split())


def _slip(draw: random.Random, word: str) -> str:
    at = draw.randint(1, len(word) - 2)
    letter = draw.choice("etaoinsrh")
    return draw.choice(
        (
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
            word[:at] + letter + word[at + 1 :],
        )
    )


def main() -> None:
    Path(sys.argv[1]).write_text(json.dumps(make_set(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
