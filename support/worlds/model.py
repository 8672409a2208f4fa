"""The simulated model: a pure function of what it is shown.

Asked to find a thing, it gives the thing's result if the values of all that it needs stand in the
prompt, each in a sentence with its name, and says what it lacks else. Asked to plan, it proposes
what the results in the prompt name as next, unless a task that the prompt lists asks for it. It
remembers nothing from one call to the next.

Does not cover: understanding. It recognises the things of its world by their names, and prompts by
the words in which agents ask.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

from babyagi.llm.prompt import ToolCall
from support.worlds import reading as reads
from support.worlds.atlas import RIGHT, WRONG, Atlas, split_sentences
from support.worlds.generator import World
from support.worlds.noise import NO_NOISE, Noise
from support.worlds.planning import Planner, render_plan
from support.worlds.reading import Asked, Reading
from support.worlds.surfaces import join_words

MAX_RECALLS = 3  # searches for what is missing, before one result at most is opened


LACK_SENTENCES = (
    "To get {s} I would need {m}, and that is not given here.",
    "{s} cannot be determined without {m}.",
    "The value of {m} is missing, so {s} stays open.",
    "I do not have {m}. Please provide it, then {s} can be worked out.",
    "Unable to complete this: {m} has not been established yet, and {s} depends on it.",
    "There is no value for {m} among the earlier results; {s} requires it.",
    "What is known so far does not include {m}, which {s} builds on.",
    "Before {s} can be found, {m} must be known. It is not.",
    "{s}: not possible yet. Missing: {m}.",
)
LACK_MARKED = (
    "LACKING: {m}",
    "LACKING: the value of {m}",
    "LACKING: {m} (needed for {s})",
    "LACKING: no value is known for {m}",
)
REFUSALS = (
    "I'm sorry, but I can't help with that.",
    "As an AI language model, I am unable to look this up.",
    "I cannot assist with this request.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model says. For those who count: which agent it was, the fact that was asked for,
    whether its true result was given, and the facts that it proposed."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    role: str = "unknown"
    fact: int | None = None
    is_found: bool = False
    proposed: tuple[int, ...] = ()


class SimulatedModel:
    """Answers requests about one world. `seed` draws its wordings and its errors."""

    def __init__(self, world: World, *, seed: int = 0, noise: Noise = NO_NOISE) -> None:
        self.world = world
        self._seed = seed
        self._noise = noise
        self._atlas = Atlas(world.facts)
        self._planner = Planner(world, self._atlas, noise)

    def answer(self, asked: Asked, *, n_before: int = 0) -> Reply:
        """Return the reply. `n_before` is how often this very prompt was answered before; another
        one draws anew."""
        prompt = "\0".join(message.text for message in asked.messages)
        rng = random.Random(
            f"{self._seed} {n_before} "
            f"{hashlib.sha256(prompt.encode('utf-8', 'replace')).hexdigest()}"
        )
        reading = reads.read(asked)
        match reading.role:
            case reads.EXECUTION:
                return self._execute(reading, rng)
            case reads.CREATION:
                return self._create(reading, rng)
            case reads.PRIORITIZATION:
                return Reply(text=_order(reading), role=reading.role)
            case reads.CHECK:
                return Reply(text=self._check(reading, rng), role=reading.role)
            case reads.REPORT:
                return Reply(text=self._report(reading), role=reading.role)
        return Reply(text="It is not clear what is asked.", role=reading.role)

    # -- execution
    # ----------------------------------------------------------------------------------------------

    def _execute(self, reading: Reading, rng: random.Random) -> Reply:
        number = self._atlas.asked(reading.task)
        if number is None:
            return self._speak(
                reading, f"Nothing is known about this: {reading.task[:200]}", fact=None
            )
        state_by_input = {
            given: self._atlas.stands(reading.data, given)
            for given in self.world.facts[number].inputs
        }
        missing = [given for given, state in state_by_input.items() if not state]
        if not missing and state_by_input and rng.random() < self._noise.forgets_input:
            missing = [rng.choice(list(state_by_input))]
        calls = self._recall(reading, missing) if missing else ()
        if calls:
            return self._speak(reading, "", fact=number, calls=calls)
        if rng.random() < self._noise.refuses:
            return self._speak(reading, rng.choice(REFUSALS), fact=number)
        if missing and rng.random() >= self._noise.invents:
            text = self._lack(reading, number, missing, rng)
            plan, proposed = self._plan_own(reading, text, rng)
            return self._speak(reading, text + plan, fact=number, proposed=proposed)
        is_true = not missing and WRONG not in state_by_input.values()
        text = self._tell(reading, number, rng, is_true=is_true)
        if self._noise.answers_half and rng.random() < self._noise.answers_half:
            text = self._tell_half(reading, text, number, rng)
            is_true = is_true and self._atlas.stands([text], number) == RIGHT
        plan, proposed = self._plan_own(reading, text, rng)
        return self._speak(reading, text + plan, fact=number, is_found=is_true, proposed=proposed)

    def _plan_own(
        self, reading: Reading, text: str, rng: random.Random
    ) -> tuple[str, tuple[int, ...]]:
        """The JSON object that an execution ends with where it plans as well, and the facts that it
        proposes."""
        if not reading.plans_as_well or rng.random() < self._noise.plans_nothing:
            return "", ()
        plan = self._planner.plan_own(reading, text, rng)
        lacks = next((verdict.lacks for verdict in plan.unanswered), "")
        tasks = [task.to_json(with_source=False) for task in plan.tasks]
        said = json.dumps(
            {"lacks": lacks, "tasks": tasks, "objective_met": plan.is_met}, ensure_ascii=False
        )
        return f"\n\n{said}", tuple(task.fact for task in plan.tasks)

    def _speak(
        self,
        reading: Reading,
        text: str,
        *,
        fact: int | None,
        calls: tuple[ToolCall, ...] = (),
        is_found: bool = False,
        proposed: tuple[int, ...] = (),
    ) -> Reply:
        """Put a call or an answer in the form that the prompt asks for."""
        match reading.speech.protocol:
            case "text":
                action, given, answer = reading.speech.labels
                text = (
                    f"{action}: {calls[0].name}\n{given}: {calls[0].arguments}"
                    if calls
                    else f"{answer}: {text}"
                )
                calls = ()
            case "json":
                tool, tool_input = (
                    (calls[0].name, json.loads(calls[0].arguments))
                    if calls
                    else ("final_answer", text)
                )
                text = json.dumps(
                    {"thought": "", "tool": tool, "tool_input": tool_input}, ensure_ascii=False
                )
                calls = ()
        return Reply(
            text=text,
            tool_calls=calls,
            role=reading.role,
            fact=fact,
            is_found=is_found,
            proposed=proposed,
        )

    def _tell(self, reading: Reading, number: int, rng: random.Random, *, is_true: bool) -> str:
        fact = self.world.facts[number]
        text = fact.text if is_true else fact.text.replace(fact.value, fact.wrong_value)
        if rng.random() < self._noise.adds_lack:
            more = (
                "a second source"
                if not reading.is_told_of_marker
                else "LACKING: a second source for this"
            )
            text += f"\n{more}"
        return text

    def _tell_half(self, reading: Reading, text: str, number: int, rng: random.Random) -> str:
        """Half of the sentences of an answer, and those that the last try gave, every other time
        with a word on what is left out."""
        sentences = split_sentences(text)
        kept = sorted(rng.sample(range(len(sentences)), -(-len(sentences) // 2)))
        half = " ".join(
            sentence
            for place, sentence in enumerate(sentences)
            if place in kept or sentence in reading.last_try
        )
        if rng.random() < 0.5:
            return half
        return f"{half}\nLACKING: the rest of {self.world.facts[number].subject}"

    def _lack(
        self, reading: Reading, number: int, missing: Sequence[int], rng: random.Random
    ) -> str:
        facts = self.world.facts
        speech = self.world.surface
        said = {
            "s": facts[number].subject,
            "m": speech.join([facts[given].subject for given in missing]),
        }
        if speech.lack_forms:
            return rng.choice(speech.lack_forms).format(**said)
        is_marked = reading.is_told_of_marker and rng.random() < 0.75
        lack = rng.choice(LACK_MARKED if is_marked else LACK_SENTENCES).format(**said)
        if not is_marked and len(facts[number].inputs) > 1:
            lack = (
                f"{facts[number].subject} takes "
                f"{join_words([facts[given].subject for given in facts[number].inputs])}. "
                f"{lack}"
            )
        there = [given for given in facts[number].inputs if given not in missing]
        if there and rng.random() < self._noise.is_partial:
            account = (
                f"Of what it takes, {join_words([facts[given].subject for given in there])} "
                "could be confirmed and was checked twice."
            )
            return f"{account}\n{lack}"
        return lack

    def _recall(self, reading: Reading, missing: Sequence[int]) -> tuple[ToolCall, ...]:
        """Look for what is missing, where a tool is offered for that: first by the name of each
        thing, then in what was found."""
        if "recall" not in reading.speech.tool_names:
            return ()
        n = len(reading.observations)
        subjects = [self.world.facts[number].subject for number in missing]
        unsought = [
            subject
            for subject in subjects
            if json.dumps(subject, ensure_ascii=False) not in reading.called
        ]
        if unsought and n < MAX_RECALLS:
            wanted = unsought if reading.speech.protocol == "native" else unsought[:1]
            return tuple(_call(n + at, {"query": subject}) for at, subject in enumerate(wanted))
        found = self._find_unopened(reading, missing) if n < MAX_RECALLS + 1 else None
        return () if found is None else (_call(n, {"task": found}),)

    def _find_unopened(self, reading: Reading, missing: Sequence[int]) -> int | None:
        """A task that a search found by its name, and whose passage did not show the value."""
        for line in "\n".join(reading.observations).splitlines():
            number, dot, rest = line.partition(".")
            if (
                dot
                and number.isdigit()
                and self._atlas.asked(rest) in missing
                and f'"task": {number}' not in reading.called
            ):
                return int(number)
        return None

    # -- the other agents
    # ----------------------------------------------------------------------------------------------

    def _create(self, reading: Reading, rng: random.Random) -> Reply:
        if rng.random() < self._noise.plans_nothing:
            return Reply(text="", role=reading.role)
        plan = self._planner.plan(reading, rng)
        if rng.random() < self._noise.answers_in_prose:
            said = "; ".join(task.name for task in plan.tasks) or "nothing"
            return Reply(
                text=f"Looking at the result, I think that one should do this next: {said}.",
                role=reading.role,
            )
        return Reply(
            text=render_plan(plan, reading),
            role=reading.role,
            proposed=tuple(task.fact for task in plan.tasks),
        )

    def _check(self, reading: Reading, rng: random.Random) -> str:
        parts, missing = [], []
        for number in self.world.goals:
            subject = self.world.facts[number].subject
            shown = next(
                (shown for shown in reading.results if self._atlas.stands([shown.text], number)),
                None,
            )
            errs = rng.random() < self._noise.errs_in_check
            if shown is None or errs:
                missing.append(f"no result answers this: {subject}")
            else:
                quote = self._atlas.quote(shown.text, number) or subject
                is_false = rng.random() < self._noise.cites_what_is_not_there
                parts.append(
                    {
                        "part": subject,
                        "task": shown.task_id,
                        "quote": "as the tables show beyond doubt" if is_false else quote,
                    }
                )
        if missing and rng.random() < self._noise.errs_in_check:
            missing = []
        if "parts" in reading.wanted:
            return json.dumps(
                {"parts": parts, "missing": missing, "met": not missing}, ensure_ascii=False
            )
        return json.dumps({"met": not missing, "missing": "; ".join(missing)}, ensure_ascii=False)

    def _report(self, reading: Reading) -> str:
        lines = []
        for number in self.world.goals:
            fact = self.world.facts[number]
            state = self._atlas.stands([shown.text for shown in reading.results], number)
            value = {RIGHT: fact.value, WRONG: fact.wrong_value}.get(state, "not found")
            lines.append(f"* {fact.subject}: {value}.")
        return "\n".join(lines)


def _call(n: int, arguments: dict[str, object]) -> ToolCall:
    return ToolCall(
        id=f"call_{n + 1}", name="recall", arguments=json.dumps(arguments, ensure_ascii=False)
    )


def _order(reading: Reading) -> str:
    if "order" in reading.wanted:
        return json.dumps({"order": [listed.task_id for listed in reading.listed]})
    return "\n".join(
        f"{place}. {listed.name}" for place, listed in enumerate(reading.listed, start=1)
    )
