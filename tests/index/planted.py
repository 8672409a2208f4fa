"""Results with planted values, each made from earlier ones, and the tasks that need them: the same
for the same seed."""

import random

FILLERS = (
    "The committee met twice during the quarter and agreed to keep the minutes short.",
    "Weather on the day was mild, with a light wind from the west.",
    "Several methods were tried before the team settled on the present one.",
    "The instruments were calibrated the week before and checked again afterwards.",
    "A full list of the sources is kept with the archive of the department.",
    "It took longer than planned because the road was closed for repairs.",
    "The figures were rounded only at the very end.",
    "There is nothing unusual about the procedure that was followed.",
)
SIDES = "north south east west upper lower inner outer old new red grey".split()
THINGS = (
    "slope orchard mill cellar quarry meadow harbour chapel bridge tower spring garden barn "
    "weir ridge kiln"
).split()
MEASURES = (
    "yield depth height weight capacity output length width temperature pressure harvest "
    "rent age load"
).split()
FIRST = ("Find {s}", "Determine the value of {s}", "Look up {s}")
LATER = (
    "Find {s}, using {i}",
    "Find out the value of {s} from {i}",
    "Determine {s}; it needs {i}",
    "Use {i} to work out {s}",
)
FACTS = (
    "The value of {s} is {v}.",
    "It was established that {s} amounts to {v}.",
    "{s} = {v}.",
    "After some work {s} came out as {v}.",
)


def make_facts(surface, *, n, n_chars, seed, is_join):
    """`n` facts: the name of the task that finds it, its result, its value and the numbers of those
    that it needs.

    Args:
        surface: "codes" (K-117) or "words" (the north slope yield).
    """
    draw = random.Random(f"{surface} {n} {n_chars} {seed} {is_join}")
    codes = [f"{draw.choice('KLMP')}-{number}" for number in draw.sample(range(100, 999), n)]
    words = draw.sample(
        [
            f"the {side} {thing} {measure}"
            for side in SIDES
            for thing in THINGS
            for measure in MEASURES
        ],
        n,
    )
    subjects = codes if surface == "codes" else words
    inputs = [_draw_inputs(draw, number, is_join) for number in range(n)]
    facts = []
    for number, subject in enumerate(subjects):
        needed = " and ".join(subjects[one] for one in inputs[number])
        value = f"{draw.randint(1000, 9999)}-{''.join(draw.choices('QXZVW', k=2))}"
        later = [other for other in range(number + 1, n) if number in inputs[other]][:2]
        follow_ups = [
            (
                f"Next, {subjects[one]} can be worked out from "
                f"{' and '.join(subjects[at] for at in inputs[one])}."
            )
            for one in later
        ]
        fact = draw.choice(FACTS).format(s=subject, v=value)
        facts.append(
            {
                "name": draw.choice(LATER if needed else FIRST).format(s=subject, i=needed),
                "text": _write(draw, fact, " ".join(follow_ups), n_chars),
                "value": value,
                "needs": inputs[number],
            }
        )
    return facts


def _draw_inputs(draw, number, is_join):
    if number == 0:
        return []
    return (
        sorted(draw.sample(range(max(0, number - 20), number), min(number, draw.randint(2, 3))))
        if is_join
        else [number - 1]
    )


def _write(draw, fact, follow_ups, n_chars):
    """The fact early, in the middle or last among other sentences."""
    sentences: list[str] = []
    while sum(len(sentence) + 1 for sentence in sentences) < n_chars - len(fact) - len(follow_ups):
        sentences.append(draw.choice(FILLERS))
    sentences.insert(draw.choice((0, len(sentences) // 2, len(sentences))), fact)
    sentences.insert(draw.randint(0, len(sentences)), follow_ups)
    return " ".join(sentences)
