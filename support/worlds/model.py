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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from babyagi.llm.prompt import ToolCall
from support.worlds import reading as reads
from support.worlds.atlas import RIGHT, WRONG, Atlas, split_sentences
from support.worlds.generator import World
from support.worlds.noise import NO_NOISE, Noise
from support.worlds.planning import Planner, render_plan
from support.worlds.reading import LACKING, Asked, Reading
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
REFUSALS = (
    "I'm sorry, but I can't help with that.",
    "As an AI language model, I am unable to look this up.",
    "I cannot assist with this request.",
)
CLAIMS = (
    "This has been completed.",
    "Done.",
    "The task was carried out successfully, and all requirements are met.",
    "I have looked into it and everything is in order.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model says. For those who count: which agent it was, the fact that was asked for,
    whether its true result was given, whether it only looks and goes on, and the facts that it
    proposed."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    role: str = "unknown"
    fact: int | None = None
    is_found: bool = False
    is_look: bool = False
    proposed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What an execution comes to. What is lacking is there twice: in a few words, for a field, and
    as a `sentence`."""

    text: str = ""
    lacks: str = ""
    sentence: str = ""
    is_found: bool = False

    @property
    def prose(self) -> str:
        return _join(self.text, self.sentence)


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
                return Reply(text=self._write(_order(reading), rng), role=reading.role)
            case reads.CHECK:
                return Reply(text=self._write(self._check(reading, rng), rng), role=reading.role)
            case reads.REPORT:
                return Reply(text=self._report(reading), role=reading.role)
        return Reply(text="It is not clear what is asked.", role=reading.role)

    # -- execution
    # ----------------------------------------------------------------------------------------------

    def _execute(self, reading: Reading, rng: random.Random) -> Reply:
        number = self._atlas.asked(reading.task)
        if number is None:
            unknown = f"Nothing is known about this: {reading.task[:200]}"
            return self._speak(reading, Reply(text=unknown), rng)
        missing, is_true = self._find_missing(reading, number, rng)
        if calls := self._recall(reading, missing) if missing else ():
            return self._speak(reading, Reply(tool_calls=calls, fact=number, is_look=True), rng)
        if rng.random() < self._noise.refuses:
            return self._speak(reading, Reply(text=rng.choice(REFUSALS), fact=number), rng)
        if rng.random() < self._noise.claims_done:
            said = _Said(text=rng.choice(CLAIMS))
        elif rng.random() < self._noise.echoes_task:
            said = _Said(text=reading.task)
        elif missing and rng.random() >= self._noise.invents:
            said = self._lack(number, missing, rng)
        else:
            said = self._tell(reading, number, rng, is_true=is_true)
        return self._end(reading, said, number, rng)

    def _find_missing(
        self, reading: Reading, number: int, rng: random.Random
    ) -> tuple[list[int], bool]:
        """What a fact needs and the prompt does not hold, and whether all that it needs stands
        there as it is."""
        state_by_input = {
            given: self._atlas.stands(reading.data, given)
            for given in self.world.facts[number].inputs
        }
        missing = [given for given, state in state_by_input.items() if not state]
        is_true = not missing and WRONG not in state_by_input.values()
        if not missing and state_by_input and rng.random() < self._noise.forgets_input:
            missing = [rng.choice(list(state_by_input))]
        return missing, is_true

    def _end(self, reading: Reading, said: _Said, number: int, rng: random.Random) -> Reply:
        """End the work: what is lacking is said in the field that the prompt offers for it, if the
        model fills it, and in prose else."""
        reply = Reply(text=said.prose, fact=number, is_found=said.is_found)
        if reading.plans_as_well:
            return self._speak(reading, self._plan_own(reading, said, reply, rng), rng)
        fills = said.lacks and reading.takes_lack and rng.random() < self._noise.fills_lack
        if fills:
            tool = reading.speech.lack_tool
            given = said.lacks if tool == LACKING else said.sentence
            call = ToolCall(id="call_end", name=tool, arguments=_dump({"what": given}))
            reply = replace(reply, text=self._beside(said, rng), tool_calls=(call,))
        return self._speak(reading, reply, rng)

    def _beside(self, said: _Said, rng: random.Random) -> str:
        """The text beside a field that says what is lacking."""
        return said.prose if rng.random() < self._noise.says_lack_twice else said.text

    def _plan_own(self, reading: Reading, said: _Said, reply: Reply, rng: random.Random) -> Reply:
        """The reply with the JSON object that an execution ends with where it plans as well."""
        if rng.random() < self._noise.plans_nothing:
            return reply
        plan = self._planner.plan_own(reading, said.prose, rng, lacks=said.sentence)
        verdict = next(iter(plan.unanswered), None)
        written: dict[str, Any] = {"lacks": (said.lacks or verdict.lacks) if verdict else ""}
        if reading.takes_bringers:
            written["after"] = list(verdict.after) if verdict else []
        written["tasks"] = [task.to_json(reading.wanted - {"from"}) for task in plan.tasks]
        written["objective_met"] = plan.is_met
        text = self._beside(said, rng) if verdict else said.prose
        return replace(
            reply,
            text=_join(text, self._write(_dump(written), rng), by="\n\n"),
            proposed=tuple(task.fact for task in plan.tasks),
        )

    def _speak(self, reading: Reading, reply: Reply, rng: random.Random) -> Reply:
        """Put a call or an answer in the form that the prompt asks for."""
        speech = reading.speech
        text, calls = reply.text, reply.tool_calls
        match speech.protocol:
            case "text" if calls:
                action, given, _ = speech.labels
                called = _input(calls[0]) if calls[0].name == speech.lack_tool else ""
                text = f"{action}: {calls[0].name}\n{given}: {called or calls[0].arguments}"
            case "text":
                text = f"{speech.labels[2]}: {text}"
            case "json":
                text = self._write(_step(reading, reply), rng)
                reply = replace(reply, is_look=reply.is_look or speech.writes_answer_apart)
            case "native" if calls and rng.random() < self._noise.breaks_form:
                one = {"name": calls[0].name, "arguments": json.loads(calls[0].arguments)}
                text = f"```json\n{_dump(one)}\n```"
            case "native":
                return replace(reply, role=reading.role)
        return replace(reply, role=reading.role, text=text, tool_calls=())

    def _write(self, written: str, rng: random.Random) -> str:
        """JSON as the model writes it."""
        is_broken = self._noise.breaks_form and rng.random() < self._noise.breaks_form
        return _break(written, rng) if is_broken else written

    def _tell(self, reading: Reading, number: int, rng: random.Random, *, is_true: bool) -> _Said:
        fact = self.world.facts[number]
        text = fact.text if is_true else fact.text.replace(fact.value, fact.wrong_value)
        more = ""
        if rng.random() < self._noise.adds_lack:
            more = "a second source"
        if self._noise.answers_half and rng.random() < self._noise.answers_half:
            text = _halve(text, reading, rng)
            is_true = is_true and self._atlas.stands([text], number) == RIGHT
            more = f"the rest of {fact.subject}" if rng.random() < 0.5 else more
        return _Said(
            text=text,
            lacks=more,
            sentence=f"For this {more} is missing." if more else "",
            is_found=is_true,
        )

    def _lack(self, number: int, missing: Sequence[int], rng: random.Random) -> _Said:
        fact, facts = self.world.facts[number], self.world.facts
        speech = self.world.surface
        lacks = speech.join([facts[given].subject for given in missing])
        if speech.lack_forms:
            sentence = rng.choice(speech.lack_forms).format(s=fact.subject, m=lacks)
            return _Said(lacks=lacks, sentence=sentence)
        sentence = rng.choice(LACK_SENTENCES).format(s=fact.subject, m=lacks)
        if len(fact.inputs) > 1:
            needs = join_words([facts[given].subject for given in fact.inputs])
            sentence = f"{fact.subject} takes {needs}. {sentence}"
        there = [facts[given].subject for given in fact.inputs if given not in missing]
        account = ""
        if there and rng.random() < self._noise.is_partial:
            known = join_words(there)
            account = f"Of what it takes, {known} could be confirmed and was checked twice."
        return _Said(text=account, lacks=lacks, sentence=sentence)

    def _recall(self, reading: Reading, missing: Sequence[int]) -> tuple[ToolCall, ...]:
        """Look for what is missing, where a tool is offered for that: first by the name of each
        thing, then in what was found."""
        if "recall" not in reading.speech.tool_names:
            return ()
        n = len(reading.observations)
        subjects = [self.world.facts[number].subject for number in missing]
        unsought = [subject for subject in subjects if _dump(subject) not in reading.called]
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
            text=self._write(render_plan(plan, reading), rng),
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
                quote = self._atlas.quote(shown.text, number)
                is_false = rng.random() < self._noise.cites_what_is_not_there
                part = {
                    "part": subject,
                    "task": shown.task_id,
                    "quote": "as the tables show beyond doubt" if is_false else quote,
                }
                parts.append(part | ({"deed": False} if "deed" in reading.wanted else {}))
        if missing and rng.random() < self._noise.errs_in_check:
            missing = []
        if "parts" not in reading.wanted:
            return _dump({"met": not missing, "missing": "; ".join(missing)})
        written: dict[str, Any] = {"parts": parts, "missing": missing}
        if "contradictions" in reading.wanted:
            written["contradictions"] = self._find_contradictions(reading)
        return _dump(written | {"met": not missing})

    def _find_contradictions(self, reading: Reading) -> list[dict[str, Any]]:
        """The facts for which two results give different values."""
        found = []
        for fact in self.world.facts:
            task_by_state = {
                self._atlas.stands([shown.text], fact.number): shown.task_id
                for shown in reversed(reading.results)
            }
            if {RIGHT, WRONG} <= task_by_state.keys():
                tasks = [task_by_state[RIGHT], task_by_state[WRONG]]
                found.append({"tasks": tasks, "about": fact.subject})
        return found

    def _report(self, reading: Reading) -> str:
        lines = []
        for number in self.world.goals:
            fact = self.world.facts[number]
            states = {self._atlas.stands([shown.text], number) for shown in reading.results}
            told = [
                value
                for state, value in ((RIGHT, fact.value), (WRONG, fact.wrong_value))
                if state in states
            ]
            both = f"both {' and '.join(told)}, which contradict each other"
            value = both if len(told) > 1 else told[0] if told else "not found"
            lines.append(f"* {fact.subject}: {value}.")
        return "\n".join(lines)


def _call(n: int, arguments: dict[str, object]) -> ToolCall:
    return ToolCall(id=f"call_{n + 1}", name="recall", arguments=_dump(arguments))


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _join(*texts: str, by: str = "\n") -> str:
    return by.join(filter(None, texts))


def _input(call: ToolCall) -> str:
    """What an ending call says."""
    return str(json.loads(call.arguments)["what"])


def _step(reading: Reading, reply: Reply) -> str:
    """A step in JSON, with the keys that the schema names, or else the instructions."""
    speech = reading.speech
    call = next(iter(reply.tool_calls), None)
    tool = call.name if call else speech.answer_tool
    given: Any = reply.text
    if call is not None:
        given = _input(call) if tool == speech.lack_tool else json.loads(call.arguments)
    beside = speech.keys.get(tool, {"thought": {}, "tool_input": {}})
    step = {"thought": reply.text if call else ""} if "thought" in beside else {}
    told = {key: _fit(given, wanted) for key, wanted in beside.items() if key != "thought"}
    return _dump(step | {"tool": tool} | told)


def _fit(given: Any, schema: Mapping[str, Any]) -> Any:
    """A text as what the schema wants: itself, or the first property of an object."""
    names = list(schema.get("properties", {}))
    return {names[0]: given} if names and isinstance(given, str) else given


def _break(written: str, rng: random.Random) -> str:
    """JSON in a form that a reader must forgive, or ask for again."""
    match rng.randrange(6):
        case 0:
            return written[: rng.randint(len(written) // 2, len(written) - 1)]
        case 1:
            return written.replace("{", "{{").replace("}", "}}")
        case 2:
            return f"```json\n{written}\n```"
        case 3:
            return f"Here is what you asked for:\n\n{written}"
        case 4:
            return f"<think>The tasks {{a, b}} come first.</think>{written}"
    return f"{written[:-1]},{written[-1]}"


def _halve(text: str, reading: Reading, rng: random.Random) -> str:
    """Half of the sentences of an answer, and those that the last try gave."""
    sentences = split_sentences(text)
    kept = sorted(rng.sample(range(len(sentences)), -(-len(sentences) // 2)))
    return " ".join(
        sentence
        for place, sentence in enumerate(sentences)
        if place in kept or sentence in reading.last_try
    )


def _order(reading: Reading) -> str:
    if "order" in reading.wanted:
        return _dump({"order": [listed.task_id for listed in reading.listed]})
    return "\n".join(
        f"{place}. {listed.name}" for place, listed in enumerate(reading.listed, start=1)
    )
