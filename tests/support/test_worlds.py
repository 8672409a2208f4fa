"""The planted worlds are what they say, the simulated model uses only what it is shown, and the
loops can be run on them."""

import json
import pickle
import re
from dataclasses import replace
from itertools import combinations

import pytest

from babyagi.llm.prompt import Message, Prompt, Speaker, ToolCall, ToolSpec
from babyagi.tasks import Passage
from support.prompts import fenced
from support.worlds.atlas import Atlas
from support.worlds.generator import BRIEFS, KINDS, World, make_world
from support.worlds.house import Way, run_world
from support.worlds.model import SimulatedModel
from support.worlds.noise import HONESTY, NO_NOISE, TEMPERS, Noise
from support.worlds.plain import run_plain
from support.worlds.surfaces import SURFACES
from support.worlds.vocabularies import VOCABULARIES

EXECUTION = "Role: execution agent\n\nCarry out the task."
COMBINED = (
    ' As the last line: {"lacks": "", "after": [], "tasks": [{"id": "a", "name": "…", "after": [], '
    '"repeats": 0}], "objective_met": false}'
)
CREATION = (
    "Role: creation agent\n\nReply with JSON only: "
    '{"tasks": [{"id": "a", "name": "…", "after": [], "from": 1, "repeats": 0}], "unanswered": '
    '[{"task": 1, "lacks": "…", "after": []}], '
    '"objective_met": false}'
)
CHECK = (
    'Role: check agent\n\nReply: {"parts": [{"part": "…", "task": 1, "quote": "…", "deed": false}], '
    '"missing": [], "contradictions": [{"tasks": [1, 2], "about": "…"}], "met": true}'
)
REPORT = "Role: report agent\n\nWrite the answer."
TEXT_FORM = """You have tools:
recall: Search earlier results. Input: query (string, optional)

Thought: what you know
Action: one of [recall]
Action Input: what the tool is given
As soon as you know enough, write instead:
Final Answer: the whole answer"""
FAIL_FORM = "\n\nIf it cannot be done at all, write:\nAction: fail_task\nAction Input: the reason"
JSON_FORM = '"tool" is one of { recall, final_answer, fail_task }.'
RECALL = ToolSpec(
    name="recall",
    description="Search earlier results.",
    parameters={"type": "object", "properties": {}},
)


LACKING = ToolSpec(
    name="lacking",
    description="Ends the work without an answer.",
    parameters={"type": "object", "properties": {"what": {"type": "string"}}},
)


@pytest.fixture
def join():
    return make_world("join", 12, 3)


def prompt(system, *passages, tools=(), more=(), schema=None):
    """A prompt whose user message holds the passages: label, text and origin of each."""
    user = "\n".join(
        fenced(label, Passage(text=text, origin=origin)) for label, text, origin in passages
    )
    first = (Message(speaker=Speaker.SYSTEM, text=system), Message(speaker=Speaker.USER, text=user))
    return Prompt(messages=(*first, *more), tools=tools, schema=schema)


def execution(world: World, fact, shown, *, system=EXECUTION, objective="", **asked):
    results = [
        (
            "result",
            f"Task {number}: Find {world.facts[number].subject}\n{world.facts[number].text}",
            f"result:{number}",
        )
        for number in shown
    ]
    task = ("task", f"99: Find {fact.subject}", "model:m")
    return prompt(
        system,
        ("objective", objective or world.objective, "person"),
        *results,
        task,
        **asked,
    )


def creation(world: World, fact, text, *, listed=()):
    result = ("result", f"Task {fact.number}: Find {fact.subject}\n{text}", f"result:{fact.number}")
    names = [("listed tasks", "\n".join(listed), "model")] if listed else []
    return prompt(CREATION, ("objective", world.objective, "person"), result, *names)


def with_inputs(world, n):
    return next(fact for fact in world.facts if len(fact.inputs) == n and not fact.is_distractor)


# -- worlds
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_arguments_make_the_same_world(kind):
    assert make_world(kind, 20, 5).facts == make_world(kind, 20, 5).facts
    assert make_world(kind, 20, 5).facts != make_world(kind, 20, 6).facts


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_result_holds_its_own_value_and_no_other_one(kind, surface):
    world = make_world(kind, 25, 2, surface=surface, result_chars=0)
    atlas = Atlas(world.facts)

    for fact in world.facts:
        held = {number for number in range(len(world.facts)) if atlas.stands([fact.text], number)}
        says_its_subject = fact.text != fact.value  # a dead end of a hunt does not
        assert held == ({fact.number} if says_its_subject else set())


@pytest.mark.parametrize("kind", KINDS)
def test_every_fact_but_the_first_is_named_as_next_by_a_result(kind):
    world = make_world(kind, 25, 4)

    named = {
        number
        for fact in world.facts
        for number, sentence in fact.hints.items()
        if sentence in " ".join(fact.text.split())
    }

    assert named == set(range(1, len(world.facts)))


@pytest.mark.parametrize("n_facts", (10, 30, 100, 300))
def test_the_goal_of_a_join_needs_every_fact_that_is_no_distractor(n_facts):
    world = make_world("join", n_facts, 1)

    needed, new = set(), set(world.goals)
    while new:
        needed |= new
        new = {given for number in new for given in world.facts[number].inputs} - needed

    assert len(needed) == n_facts == world.n_needed
    assert all(1 <= len(fact.inputs) <= 3 for fact in world.facts[1:])


def test_a_chain_is_as_deep_as_it_is_long_and_a_join_is_not():
    assert make_world("chain", 30, 1).depth == 30
    assert make_world("join", 30, 1).depth < 30


@pytest.mark.parametrize("surface", SURFACES)
def test_some_names_are_nearly_equal(surface):
    names = [fact.subject for fact in make_world("chain", 40, 1, surface=surface).facts]

    def differ_little(one, other):
        return (
            sorted(one) == sorted(other)
            or sum(a != b for a, b in zip(one.split(), other.split(), strict=False)) == 1
        )

    assert any(
        differ_little(one, other)
        for one in names
        for other in names
        if one != other and len(one.split()) == len(other.split())
    )


def test_surfaces_share_no_words_of_weight():
    def words(surface):
        filler = "".join(
            fact.text
            for fact in make_world("chain", 30, 1, surface=surface, result_chars=2000).facts
        )
        return {word for word in re.findall(r"[a-zäöüß]{5,}", filler.casefold())}

    common = {word for one, other in combinations(map(words, SURFACES), 2) for word in one & other}

    assert common <= set(
        "their after under which since there could before first added needs".split()
    )


@pytest.mark.parametrize("place", ("early", "middle", "last"))
def test_a_value_stands_where_it_was_asked_to(place):
    world = make_world("chain", 12, 1, result_chars=3000, fact_place=place)

    for fact in world.facts:
        at = fact.text.index(fact.value) / len(fact.text)
        assert {"early": at < 0.4, "middle": 0.25 < at < 0.75, "last": at > 0.9}[place]


def test_results_are_as_long_as_asked_or_of_every_length():
    assert all(350 < len(fact.text) < 800 for fact in make_world("chain", 30, 1).facts)
    lengths = sorted(len(fact.text) for fact in make_world("chain", 60, 1, result_chars=0).facts)
    assert lengths[0] < 600 and lengths[-1] > 5000 and lengths[-1] < 8200


@pytest.mark.parametrize("kind", BRIEFS)
@pytest.mark.parametrize("surface", VOCABULARIES)
def test_a_brief_can_be_told_in_any_vocabulary_and_its_things_are_known_by_all_their_names(
    kind, surface
):
    world = make_world(kind, 15, 3, surface=surface)
    atlas = Atlas(world.facts)

    assert all(atlas.asked(name) == fact.number for fact in world.facts for name in fact.names)
    assert [number for number in atlas.named(world.objective) if number] == list(world.goals)
    told = " ".join(fact.subject for fact in world.facts[1:])
    assert bool(re.search(r"[KRTHM]-\d{3}", told)) == (kind == "brief+codes")


@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_vocabulary_names_enough_things_for_the_largest_worlds(name):
    vocabulary = VOCABULARIES[name]

    assert len(vocabulary.places) * len(vocabulary.unit_by_matter) >= 330
    for form in (*vocabulary.needing_forms, *vocabulary.lack_forms):
        assert "{s}" in form and ("{i}" in form or "{m}" in form)
    assert all(form.index("{s}") < form.index("{i}") for form in vocabulary.needing_forms)


@pytest.mark.parametrize("name", [name for name in VOCABULARIES if name.endswith("-2")])
def test_a_held_out_vocabulary_shares_nothing_with_its_twin(name):
    held_out = VOCABULARIES[name]
    twin = VOCABULARIES.get(name.removesuffix("-2"))
    if twin is None:
        return
    told = ("places", "names", "filler", "value_forms", "hint_forms", "task_forms", "needing_forms")
    for what in (*told, "unit_by_matter", "lack_forms"):
        assert not set(getattr(held_out, what)) & set(getattr(twin, what)), what


@pytest.mark.parametrize("surface", ("german", "korean", "chinese", "japanese", "spanish"))
def test_the_reader_understands_a_lack_in_its_own_language(surface):
    world = make_world("join", 15, 1, surface=surface)
    fact = with_inputs(world, 1)
    missing = world.facts[fact.inputs[0]]

    for form in world.surface.lack_forms:
        lack = form.format(s=fact.subject, m=missing.subject)
        said = json.loads(SimulatedModel(world).answer(creation(world, fact, lack)).text)
        assert said["unanswered"] and [
            Atlas(world.facts).asked(task["name"]) for task in said["tasks"]
        ] == [missing.number]


# -- executing
# --------------------------------------------------------------------------------------------------


def test_the_model_finds_a_fact_when_the_values_of_all_its_inputs_are_shown(join):
    fact = with_inputs(join, 2)

    reply = SimulatedModel(join).answer(execution(join, fact, fact.inputs))

    assert reply.text == fact.text and reply.is_found


def test_the_model_names_what_it_lacks_and_never_the_value(join):
    fact = with_inputs(join, 2)
    shown, missing = fact.inputs

    for seed in range(20):
        reply = SimulatedModel(join, seed=seed).answer(execution(join, fact, [shown]))
        assert join.facts[missing].subject in reply.text
        assert fact.value not in reply.text and not reply.is_found


def test_without_a_field_for_it_a_lack_is_said_in_prose(join):
    fact = with_inputs(join, 2)

    for tools in ((), (RECALL,)):
        reply = SimulatedModel(join).answer(execution(join, fact, [], tools=tools))
        assert reply.is_look or (reply.text and not reply.tool_calls)


def test_a_lack_is_a_call_where_the_tool_is_offered(join):
    fact = with_inputs(join, 2)
    shown, missing = fact.inputs
    asked = execution(join, fact, [shown], tools=(LACKING,))

    reply = SimulatedModel(join).answer(asked)
    partly = SimulatedModel(join, noise=replace(NO_NOISE, is_partial=1.0)).answer(asked)
    in_prose = SimulatedModel(join, noise=TEMPERS["unanswered_only"]).answer(asked)

    (call,) = reply.tool_calls
    assert (call.name, reply.text, reply.is_found) == ("lacking", "", False)
    assert json.loads(call.arguments) == {"what": join.facts[missing].subject}
    assert partly.tool_calls == reply.tool_calls and join.facts[shown].subject in partly.text
    assert not in_prose.tool_calls and join.facts[missing].subject in in_prose.text


def test_a_lack_is_a_choice_where_a_schema_holds_the_reply(join):
    fact = with_inputs(join, 1)
    subject = join.facts[fact.inputs[0]].subject
    text = {"type": "string"}
    by_branch = {
        "anyOf": [
            {"properties": {"thought": text, "tool": {"const": name}, **given}}
            for name, given in {"answer": {}, "lacking": {"what": text}}.items()
        ]
    }
    by_enum = {
        "properties": {"tool": {"enum": ["answer", "lacking"]}, "tool_input": {"type": "string"}}
    }
    model = SimulatedModel(join)

    def say(shown, schema, **more):
        return model.answer(execution(join, fact, shown, schema=schema, **more))

    lacks = json.loads(say([], by_branch).text)
    chosen = say(fact.inputs, by_branch)
    more = (Message(speaker=Speaker.ASSISTANT, text=chosen.text),)
    written = say(fact.inputs, None, more=more, system=f"{EXECUTION}\n\n{JSON_FORM}")

    assert lacks == {"thought": "", "tool": "lacking", "what": subject}
    assert json.loads(say([], by_enum).text) == {"tool": "lacking", "tool_input": subject}
    assert json.loads(chosen.text)["tool"] == "answer" and chosen.is_look
    assert written.text == fact.text and written.is_found


def test_a_lack_in_labelled_text_fails_the_task_with_the_reason(join):
    fact = with_inputs(join, 1)
    subject = join.facts[fact.inputs[0]].subject
    system = f"{EXECUTION}\n\n{TEXT_FORM.replace('[recall]', '[calculator]')}"

    fails = SimulatedModel(join).answer(execution(join, fact, [], system=system + FAIL_FORM)).text
    answers = SimulatedModel(join).answer(execution(join, fact, [], system=system)).text

    assert fails.startswith("Action: fail_task\nAction Input: ") and subject in fails
    assert answers.startswith("Final Answer: ") and subject in answers


def test_a_lack_of_a_combined_reply_is_in_its_block_with_the_tasks_that_bring_it(join):
    fact = with_inputs(join, 2)
    known, unknown = fact.inputs
    listed = ("listed tasks", f"70 [running] Find {join.facts[known].subject}", "model")
    task = ("task", f"99: Find {fact.subject}", "model:m")
    asked = prompt(EXECUTION + COMBINED, listed, task)

    def say(noise):
        text, _, block = SimulatedModel(join, noise=noise).answer(asked).text.rpartition("\n\n")
        return text, json.loads(block)

    text, block = say(NO_NOISE)
    prose, unfilled = say(TEMPERS["unanswered_only"])

    assert text == "" and join.facts[unknown].subject in block["lacks"]
    (bringer,) = block["tasks"]
    assert set(block["after"]) == {70, bringer["id"]} and bringer["repeats"] == 0
    assert join.facts[unknown].subject in prose
    assert unfilled["lacks"] == "" and unfilled["after"] == []


@pytest.mark.parametrize("temper", ("refuser", "claimer", "echo"))
def test_a_reply_without_content_is_not_taken_for_an_answer_by_who_reads_it(join, temper):
    fact = with_inputs(join, 1)
    share = {name: 1.0 for name in ("refuses", "claims_done", "echoes_task")
             if getattr(TEMPERS[temper], name)}  # fmt: skip
    model = SimulatedModel(join, noise=replace(NO_NOISE, **share))

    said = model.answer(execution(join, fact, fact.inputs))
    planned = json.loads(SimulatedModel(join).answer(creation(join, fact, said.text)).text)

    assert fact.value not in said.text and not said.is_found
    assert [one["task"] for one in planned["unanswered"]] == [fact.number]


def test_a_broken_form_is_another_one_each_time_and_holds_the_same_content(join):
    fact = next(fact for fact in join.facts if fact.hints)
    asked = creation(join, fact, fact.text)
    model = SimulatedModel(join, noise=replace(NO_NOISE, breaks_form=1.0))
    whole = SimulatedModel(join).answer(asked).text

    said = [model.answer(asked, n_before=n).text for n in range(40)]

    assert whole not in said and len(set(said)) > 5
    assert sum(whole in text for text in said) > 5
    assert any(text == whole[: len(text)] for text in said)


def test_a_value_in_the_objective_or_apart_from_its_name_is_not_known(join):
    fact = with_inputs(join, 1)
    given = join.facts[fact.inputs[0]]
    said = f"{given.subject} = {given.value}."
    apart = (
        "result",
        f"Task 1: x\n{given.subject} is described below. The value is {given.value}.",
        "result:1",
    )
    longer = ("result", f"Task 1: x\n{given.subject} = 9{given.value}.", "result:1")
    task = ("task", f"9: Find {fact.subject}", "model:m")
    model = SimulatedModel(join)

    assert not model.answer(execution(join, fact, [], objective=said)).is_found
    assert not model.answer(prompt(EXECUTION, apart, task)).is_found
    assert not model.answer(prompt(EXECUTION, longer, task)).is_found
    assert model.answer(
        prompt(EXECUTION, ("result", f"Task 1: x\n{said}", "result:1"), task)
    ).is_found


def test_a_thing_is_recognised_by_any_of_its_names():
    world = make_world("chain", 10, 1, surface="places")
    fact = world.facts[0]

    for name in fact.names:
        task = ("task", f"9: What is the {name}?", "model:m")
        assert SimulatedModel(world).answer(prompt(EXECUTION, task)).fact == 0


def test_the_model_looks_for_what_it_lacks_before_it_gives_up(join):
    fact = with_inputs(join, 1)
    missing = join.facts[fact.inputs[0]]
    model = SimulatedModel(join)

    first = model.answer(execution(join, fact, [], tools=(RECALL,)))
    asked = Message(speaker=Speaker.ASSISTANT, text="", tool_calls=first.tool_calls)
    found = fenced(
        "observation",
        Passage(text=f"4. Find {missing.subject}: {missing.text[:20]}…", origin="tool:recall"),
    )
    second = model.answer(
        execution(
            join, fact, [], tools=(RECALL,), more=(asked, Message(speaker=Speaker.TOOL, text=found))
        )
    )
    opened = Message(speaker=Speaker.ASSISTANT, text="", tool_calls=second.tool_calls)
    whole = fenced("observation", Passage(text=missing.text, origin="result:4"))
    more = (
        asked,
        Message(speaker=Speaker.TOOL, text=found),
        opened,
        Message(speaker=Speaker.TOOL, text=whole),
    )
    last = model.answer(execution(join, fact, [], tools=(RECALL,), more=more))

    assert json.loads(first.tool_calls[0].arguments) == {"query": missing.subject}
    assert json.loads(second.tool_calls[0].arguments) == {"task": 4}
    assert last.is_found


def test_the_model_gives_up_when_looking_brings_nothing(join):
    fact = with_inputs(join, 1)
    more: list[Message] = []
    for _ in range(6):
        reply = SimulatedModel(join).answer(
            execution(join, fact, [], tools=(RECALL,), more=tuple(more))
        )
        if not reply.tool_calls:
            break
        nothing = fenced(
            "observation", Passage(text="There are no earlier results.", origin="tool:recall")
        )
        more += [
            Message(speaker=Speaker.ASSISTANT, text="", tool_calls=reply.tool_calls),
            Message(speaker=Speaker.TOOL, text=nothing),
        ]

    assert reply.text and not reply.tool_calls and not reply.is_found


def test_calls_and_answers_are_written_as_the_prompt_asks(join):
    fact = with_inputs(join, 1)
    subject = join.facts[fact.inputs[0]].subject
    model = SimulatedModel(join)

    in_text = model.answer(execution(join, fact, [], system=f"{EXECUTION}\n\n{TEXT_FORM}"))
    in_json = model.answer(execution(join, fact, [], system=f"{EXECUTION}\n\n{JSON_FORM}"))

    assert in_text.text == f'Action: recall\nAction Input: {{"query": "{subject}"}}'
    assert json.loads(in_json.text)["tool_input"] == {"query": subject}
    assert model.answer(
        execution(join, fact, fact.inputs, system=f"{EXECUTION}\n\n{TEXT_FORM}")
    ).text.startswith("Final Answer: ")
    assert (
        json.loads(
            model.answer(
                execution(join, fact, fact.inputs, system=f"{EXECUTION}\n\n{JSON_FORM}")
            ).text
        )["tool"]
        == "final_answer"
    )


def test_with_combined_planning_the_reply_ends_with_a_plan(join):
    fact = next(fact for fact in join.facts if fact.hints)

    reply = SimulatedModel(join).answer(
        execution(join, fact, fact.inputs, system=EXECUTION + COMBINED)
    )

    text, _, planned = reply.text.rpartition("\n\n")
    assert text == fact.text
    assert {Atlas(join.facts).asked(task["name"]) for task in json.loads(planned)["tasks"]} == set(
        fact.hints
    )


# -- planning
# --------------------------------------------------------------------------------------------------


def test_the_model_proposes_what_a_result_names_unless_it_is_listed(join):
    fact = next(fact for fact in join.facts if len(fact.hints) > 1)
    listed, *others = fact.hints
    model = SimulatedModel(join)

    reply = model.answer(
        creation(
            join,
            fact,
            fact.text,
            listed=[f"7 [queued] Open entry {join.facts[listed].subject}, soon"],
        )
    )

    assert set(reply.proposed) == set(others)
    assert all(task["from"] == fact.number for task in json.loads(reply.text)["tasks"])


def test_a_hint_that_was_cut_off_is_not_read(join):
    fact = next(fact for fact in join.facts if fact.hints)
    text = fact.text
    for sentence in fact.hints.values():
        text = " ".join(text.split()).replace(sentence, sentence[:-6] + "…")

    assert SimulatedModel(join).answer(creation(join, fact, text)).proposed == ()


def test_a_proposal_comes_after_the_listed_tasks_that_bring_its_inputs(join):
    fact = next(
        fact for fact in join.facts for hinted in fact.hints if len(join.facts[hinted].inputs) > 1
    )
    hinted = next(hinted for hinted in fact.hints if len(join.facts[hinted].inputs) > 1)
    other = next(given for given in join.facts[hinted].inputs if given != fact.number)

    reply = SimulatedModel(join).answer(
        creation(join, fact, fact.text, listed=[f"70 [running] Find {join.facts[other].subject}"])
    )

    task = next(
        task
        for task in json.loads(reply.text)["tasks"]
        if Atlas(join.facts).asked(task["name"]) == hinted
    )
    assert 70 in task["after"] and fact.number in task["after"]


def test_a_lack_brings_its_task_a_verdict_and_what_is_missing_a_proposal(join):
    fact = with_inputs(join, 2)
    missing = fact.inputs[1]
    subject = join.facts[missing].subject

    for lack in (f"I do not have {subject}.", f"Half of it.\nNot answered; it lacks: {subject}"):
        said = json.loads(SimulatedModel(join).answer(creation(join, fact, lack)).text)

        assert [Atlas(join.facts).asked(task["name"]) for task in said["tasks"]] == [missing]
        assert said["unanswered"] == [
            {"task": fact.number, "lacks": subject, "after": [said["tasks"][0]["id"]]}
        ]


def test_who_fills_no_verdicts_asks_again_for_what_only_it_knows_to_be_unanswered(join):
    fact = with_inputs(join, 2)
    subject = join.facts[fact.inputs[1]].subject
    model = SimulatedModel(join, noise=TEMPERS["neither"])

    def plan(lack):
        said = json.loads(model.answer(creation(join, fact, lack)).text)
        assert said["unanswered"] == []
        return {Atlas(join.facts).asked(task["name"]) for task in said["tasks"]}

    assert plan(f"I do not have {subject}.") == {fact.inputs[1], fact.number}
    assert plan(f"Not answered; it lacks: {subject}") == {fact.inputs[1]}


@pytest.mark.parametrize("owns", (0.0, 1.0))
def test_what_is_asked_again_in_other_words_names_what_it_repeats_if_the_model_owns_it(join, owns):
    fact = next(fact for fact in join.facts if not fact.hints)
    model = SimulatedModel(join, noise=replace(NO_NOISE, rewords=1.0, owns_repeats=owns))
    listed = [f"70 [queued] Find {join.facts[fact.number - 1].subject}"]

    tasks = json.loads(model.answer(creation(join, fact, fact.text, listed=listed)).text)["tasks"]

    assert tasks
    numbers = {fact.number, 70} if owns else {0}
    assert {task["repeats"] for task in tasks} <= numbers


def test_the_objective_is_met_once_its_last_value_is_shown(join):
    last, first = join.facts[join.goals[0]], join.facts[0]
    model = SimulatedModel(join)

    assert json.loads(model.answer(creation(join, last, last.text)).text)["objective_met"]
    assert not json.loads(model.answer(creation(join, first, first.text)).text)["objective_met"]


def test_a_check_quotes_the_result_letter_by_letter(join):
    last = join.facts[join.goals[0]]
    shown = ("result", f"Task 31: Find it\n{last.text}", "result:31")
    model = SimulatedModel(join)

    found = json.loads(
        model.answer(prompt(CHECK, ("objective", join.objective, "person"), shown)).text
    )
    nothing = json.loads(model.answer(prompt(CHECK, ("objective", join.objective, "person"))).text)

    assert (
        found["met"] and found["parts"][0]["task"] == 31 and found["parts"][0]["quote"] in last.text
    )
    assert not nothing["met"] and last.subject in nothing["missing"][0]
    assert found["parts"][0]["deed"] is False and found["contradictions"] == []


def test_two_results_that_give_different_values_are_called_a_contradiction_and_both_are_told(join):
    last = join.facts[join.goals[0]]
    true = ("result", f"Task 31: Find it\n{last.text}", "result:31")
    invented = last.text.replace(last.value, last.wrong_value)
    false = ("result", f"Task 32: Find it\n{invented}", "result:32")
    model = SimulatedModel(join)

    said = json.loads(model.answer(prompt(CHECK, true, false)).text)
    told = model.answer(prompt(REPORT, true, false)).text
    alone = json.loads(model.answer(prompt(CHECK, false)).text)

    assert said["contradictions"] == [{"tasks": [31, 32], "about": last.subject}]
    assert last.value in told and last.wrong_value in told
    assert alone["met"] and last.wrong_value in alone["parts"][0]["quote"]


# -- prompts of others, noise
# -------------------------------------------------------------------------------------------------


def test_prompts_of_the_original_are_understood(join):
    first = join.facts[0]
    listed = join.facts[next(iter(first.hints))]
    model = SimulatedModel(join)

    def ask(text):
        return model.answer(Prompt(messages=(Message(speaker=Speaker.USER, text=text),)))

    done = ask(
        "You are an AI who performs one task based on the following objective: x\n. Your "
        f"task: Find {first.subject}\nResponse:"
    )
    planned = ask(
        "You are a task creation AI that uses the result of an execution agent to "
        "create new tasks with the following objective: x, "
        f"The last completed task has the result: {first.text}. This result was based on "
        f"this task description: Find {first.subject}. "
        f"These are incomplete tasks: Open entry {listed.subject}. Based on the result, "
        "create new tasks. Return the tasks as an array."
    )
    ordered = ask(
        "You are a task prioritization AI. Reprioritize the following tasks: ['Find a', "
        "'Find b']. Consider the ultimate objective"
    )

    assert done.text == first.text
    assert set(planned.proposed) == set(first.hints) - {listed.number}
    assert ordered.text == "1. Find a\n2. Find b"


def test_a_code_is_recognised_without_the_marks_that_the_original_takes_out_of_names(join):
    assert (
        Atlas(join.facts).asked(f"Find {join.facts[4].subject.replace('-', '')} needs nothing") == 4
    )


def test_the_same_prompt_gets_the_same_reply_and_another_draw_when_it_is_asked_again(join):
    fact = with_inputs(join, 2)
    asked = execution(join, fact, fact.inputs)
    model = SimulatedModel(join, noise=Noise(refuses=0.5))

    draws = [model.answer(asked, n_before=n).text for n in range(12)]

    assert draws == [model.answer(asked, n_before=n).text for n in range(12)]
    assert fact.text in draws and len(set(draws)) > 1


def test_an_invented_value_makes_what_is_built_on_it_false(join):
    fact = with_inputs(join, 1)
    given = join.facts[fact.inputs[0]]
    invented = (
        "result",
        f"Task 1: x\n{given.text.replace(given.value, given.wrong_value)}",
        "result:1",
    )

    reply = SimulatedModel(join).answer(
        prompt(EXECUTION, invented, ("task", f"9: Find {fact.subject}", "model:m"))
    )

    assert not reply.is_found and fact.value not in reply.text and fact.wrong_value in reply.text


def test_without_noise_nothing_is_drawn_against_the_model():
    shares = {name: getattr(NO_NOISE, name) for name in NO_NOISE.__dataclass_fields__}

    assert shares == {name: float(name in HONESTY) for name in shares}


# -- loops
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "surface", ("english-2", *(name for name in VOCABULARIES if name[-2] != "-"))
)
def test_the_plain_loop_solves_a_small_brief_in_every_language(surface):
    outcome = run_world(make_world("brief", 8, 1, surface=surface), Way(loop="plain"))

    assert outcome.is_solved and outcome.is_reported and not outcome.is_false_end


def test_an_outcome_goes_to_another_process_and_back():
    outcome = run_world(make_world("brief", 8, 1, surface="korean"), Way(loop="plain"))

    back = pickle.loads(pickle.dumps(outcome))

    assert back.is_solved and back.is_reported
    assert back.tally.calls_by_role == outcome.tally.calls_by_role


@pytest.mark.parametrize("temper", ("unanswered_only", "own_lack_only", "neither", "broken"))
@pytest.mark.parametrize("planning", ("separate", "combined"))
def test_no_temper_that_leaves_fields_empty_or_breaks_them_ends_a_run_falsely(temper, planning):
    way = Way(loop="ours", planning=planning)
    outcome = run_world(make_world("join", 10, 2), way, noise=TEMPERS[temper])

    assert not outcome.is_false_end and not outcome.is_false


@pytest.mark.parametrize("kind", ("chain", "join"))
def test_the_plain_loop_solves_a_world_of_thirty_facts(kind):
    outcome = run_world(make_world(kind, 30, 1), Way(loop="plain"))

    assert outcome.is_solved and outcome.is_reported and outcome.stop_reason == "finished"
    assert outcome.tally.n_calls_to_goal <= outcome.tally.n_calls < 120


async def test_the_plain_loop_ends_at_its_cap():
    async def say(messages):
        return '["again"]' if "Queued tasks" in messages[-1].text else "nothing"

    _, why = await run_plain(say, objective="o", first_task="again", max_executions=5)

    assert why == "cap"


@pytest.mark.parametrize("n_workers", (1, 3))
def test_our_loop_is_run_to_its_end_and_every_call_is_counted(n_workers):
    outcome = run_world(make_world("chain", 5, 1), Way(loop="ours", n_workers=n_workers))

    assert outcome.is_solved and outcome.is_reported
    assert outcome.tally.n_executions >= 5 and outcome.tally.n_useless == 0
    assert outcome.wall_s >= 5 * outcome.latency_s


@pytest.mark.parametrize("planning", ("separate", "combined"))
def test_dead_ends_told_in_the_same_words_do_not_stall_a_hunt(planning):
    outcome = run_world(make_world("hunt", 6, 1), Way(loop="ours", planning=planning))

    assert outcome.is_solved and outcome.is_reported


@pytest.mark.parametrize("kind", ("siblings", "contradiction"))
def test_a_model_that_asks_for_the_same_in_other_words_does_not_run_to_a_limit(kind):
    world = make_world(kind, 14, 1)
    outcome = run_world(world, Way(loop="ours"), seed=1, noise=TEMPERS["reworder"])

    assert outcome.is_solved and outcome.stop_reason in ("finished", "objective_met")


@pytest.mark.parametrize("planning", ("separate", "combined"))
def test_a_thing_with_five_names_is_found_by_a_model_that_answers_half(planning):
    world = make_world("siblings", 14, 2)
    way = Way(loop="ours", planning=planning)
    outcome = run_world(world, way, seed=2, noise=TEMPERS["half"])

    assert outcome.is_solved and outcome.is_reported


def test_a_tool_call_of_the_model_is_one_that_an_executor_can_read(join):
    fact = (
        with_inputs(join, 3)
        if any(len(fact.inputs) == 3 for fact in join.facts)
        else with_inputs(join, 2)
    )

    calls = SimulatedModel(join).answer(execution(join, fact, [], tools=(RECALL,))).tool_calls

    assert all(isinstance(call, ToolCall) for call in calls) and len(
        {call.id for call in calls}
    ) == len(fact.inputs)
