"""The folders and the worlds of persons are what they say, the judge looks values up and nothing
else, and the reader uses only what its prompt holds."""

import json
import random
from itertools import combinations

import pytest

from babyagi.llm.prompt import Message, Speaker, ToolSpec
from support.local_server import ChatRequest
from support.uplift.baselines import BASELINES, DIRECT, PromptTooLongError
from support.uplift.cases import Case, Key, judge
from support.uplift.folders import ABSENT, KINDS, N_CASES, make_folders
from support.uplift.languages import LANGUAGES, NONE
from support.uplift.persons import (
    ATTRIBUTES,
    DEPTHS,
    draw_walk,
    make_persons,
    make_world,
    path_of,
)
from support.uplift.reader import Reader

SEEDS = (1, 2027, 0x35507D87)


@pytest.fixture(scope="module", params=SEEDS)
def folders(request):
    return list(make_folders("set", request.param))


@pytest.fixture(scope="module", params=SEEDS)
def persons(request):
    return list(make_persons("set", request.param))


def case_with(*marks, forbidden=()):
    return Case(
        name="one",
        kind="one",
        language="en",
        question="What is the berth of Mirela? If nothing says it, write NONE instead.",
        text_by_path={"mirela.md": "…", "log.md": "…"},
        facts=(),
        key=Key(marks=marks, forbidden=forbidden),
        answer="",
        is_small=True,
        depth=1,
    )


def is_right(answer, *marks, forbidden=()):
    return judge(case_with(*marks, forbidden=forbidden), answer).is_right


class TestFolders:
    def test_the_same_seed_makes_the_same_cases_and_another_one_others(self):
        assert list(make_folders("a", 5)) == list(make_folders("a", 5))
        assert {c.question for c in make_folders("a", 5)} != {
            c.question for c in make_folders("a", 6)
        }

    def test_a_set_has_all_kinds_and_languages_half_do_not_fit_and_ten_need_three_files(
        self, folders
    ):
        assert len(folders) == N_CASES == 20
        assert {case.kind for case in folders} == set(KINDS)
        assert {case.language for case in folders} == {one.name for one in LANGUAGES}
        assert sum(case.is_small for case in folders) == 10
        assert sum(case.n_files >= 3 for case in folders) == 10

    def test_what_fits_is_short_and_what_does_not_is_beyond_the_context(self, folders):
        for case in folders:
            n_bytes = sum(len(text.encode()) for text in case.text_by_path.values())
            assert n_bytes < 8_000 if case.is_small else n_bytes >= 50_000

    def test_every_fact_is_a_line_of_its_file_and_of_no_other(self, folders):
        for case in folders:
            for fact in case.facts:
                holding = [
                    path
                    for path, text in case.text_by_path.items()
                    if fact.sentence in text.splitlines()
                ]
                assert holding == [fact.path]

    def test_the_right_answer_is_judged_right_and_the_question_and_the_folder_are_not(
        self, folders
    ):
        for case in folders:
            assert judge(case, case.answer).is_right
            assert not judge(case, case.question).n_held
            assert not judge(case, "").is_right

    def test_a_value_that_is_not_there_stands_nowhere_in_the_folder(self, folders):
        for case in folders:
            if case.kind == ABSENT:
                whole = "\n".join(case.text_by_path.values())
                assert case.key.marks == (NONE,)
                assert all(decoy in whole for decoy in case.key.forbidden)
                assert NONE not in whole

    def test_no_value_of_a_key_holds_another_one(self, folders):
        for case in folders:
            values = [v for v in (*case.key.marks, *case.key.forbidden) if len(v) > 1]
            for one, other in combinations(values, 2):
                assert one not in other
                assert other not in one


class TestPersons:
    def test_the_same_seed_makes_the_same_world(self):
        assert make_world(30, 3) == make_world(30, 3) != make_world(30, 4)

    def test_relations_hold_both_ways(self):
        world = make_world(40, 1)
        for (person, relation), found in world.related.items():
            for other in found:
                match relation:
                    case "wife":
                        assert world.related[other, "husband"] == [person]
                    case "mother" | "father":
                        held = world.related.get((other, "son"), []) + world.related.get(
                            (other, "daughter"), []
                        )
                        assert person in held
                    case "friend" | "brother" | "sister":
                        assert person != other
                if relation == "friend":
                    assert person in world.related[other, "friend"]

    def test_there_is_a_question_of_every_depth_in_a_small_and_in_a_large_world(self, persons):
        for is_small in (True, False):
            assert [c.depth for c in persons if c.is_small == is_small] == list(DEPTHS)

    def test_the_answers_are_what_the_articles_alone_lead_to(self, persons):
        for case in persons:
            _, _, chain = case.question.partition(" is ")
            steps = chain.partition("?")[0].removeprefix("the ").split(" of the ")
            last, _, start = steps[-1].partition(" of ")
            if " of birth" in last or last == "date":  # "the date of birth of …"
                last, _, start = steps[-1].rpartition(" of ")
            found = [start]
            for what in (last, *reversed(steps[:-1])):
                found = [value for person in found for value in _read_article(case, person, what)]
            assert set(found) == set(case.key.marks)

    def test_a_name_that_is_no_answer_makes_it_wrong(self, persons):
        for case in persons:
            other = case.key.forbidden[0]
            judged = judge(case, f"{', '.join(case.key.marks)}, {other}")
            assert not judged.is_right
            assert 0 < judged.f1 < 1

    def test_a_walk_is_drawn_alike_from_the_same_seed(self):
        world = make_world(30, 3)
        assert draw_walk(world, 6, random.Random(1)) == draw_walk(world, 6, random.Random(1))


def _read_article(case, person, what):
    """What an article says, read from its text alone."""
    for line in case.text_by_path[path_of(person)].splitlines():
        for head in (f"The {what} of {person} is ", f"The {what}s of {person} are "):
            if line.startswith(head):
                return line.removeprefix(head).removesuffix(".").split(", ")
    assert what not in ATTRIBUTES
    return []


class TestJudge:
    def test_a_value_in_a_sentence_is_found_whatever_stands_around_it(self):
        assert is_right("It lies at **BL-417** (see the log).", "BL-417")
        assert is_right("泊位是BL-417。", "BL-417")
        assert is_right("It lies at bl\u2011417", "BL-417")

    def test_numbers_are_found_with_and_without_separators(self):
        for said in ("1,240 cm", "1.240 cm", "1 240 cm", "1240cm", "１２４０"):
            assert is_right(f"It is {said}.", "1240")

    def test_a_number_is_no_part_of_another_number(self):
        for said in ("12401", "51240", "1240.5", "3,1240"):
            assert not is_right(f"It is {said}.", "1240")

    def test_one_mark_that_is_missing_makes_it_wrong_and_the_others_count(self):
        judged = judge(case_with("Mirela", "Solvik", "2"), "Mirela, 2")
        assert (judged.n_held, judged.n_marks, judged.is_right) == (2, 3, False)

    def test_a_forbidden_value_makes_it_wrong(self):
        assert not is_right("BL-417 or GT-622", "BL-417", forbidden=("GT-622",))

    def test_none_is_looked_up_as_it_is_written(self):
        assert is_right("NONE", NONE)
        assert not is_right("None of the files says it.", NONE)
        assert not is_right("NONEXISTENT", NONE)

    def test_an_echo_of_the_question_holds_nothing(self):
        case = case_with(NONE)
        assert not judge(case, f"Task: {case.question}\nIt is unclear.").n_held

    def test_the_name_of_a_file_and_its_lines_hold_nothing(self):
        assert not is_right("see mirela.md:417", "417")
        assert not is_right("see mirela.md", "Mirela")
        assert is_right("Mirela (mirela.md:3)", "Mirela")


class TestReader:
    async def test_every_baseline_answers_a_folder_that_fits(self, folders):
        case = next(case for case in folders if case.is_small and case.n_files > 1)
        for run in BASELINES.values():
            assert judge(case, await run(asking(case), case)).is_right

    async def test_one_call_fails_where_a_fact_is_beyond_the_cut_and_the_loops_do_not(
        self, folders
    ):
        answers = {
            case.name: await BASELINES["direct"](asking(case), case)
            for case in folders
            if not case.is_small
        }
        case = next(
            case
            for case in folders
            if case.name in answers and not judge(case, answers[case.name]).is_right
        )
        for name in ("react", "plain"):
            assert judge(case, await BASELINES[name](asking(case), case)).is_right

    async def test_the_loops_follow_twelve_look_ups(self, persons):
        case = persons[-1]
        for name in ("react", "plain"):
            assert judge(case, await BASELINES[name](asking(case), case)).is_right

    def test_a_fact_that_does_not_stand_in_the_prompt_is_not_known(self, folders):
        case = next(case for case in folders if case.is_small and case.n_files == 3)
        for left_out in case.facts:
            texts = [f.sentence for f in case.facts if f.sentence != left_out.sentence]
            said = reply(case, DIRECT, "\n".join(texts))
            assert case.answer not in said
            assert left_out.sentence not in said
        assert judge(case, reply(case, DIRECT, "\n".join(f.sentence for f in case.facts))).is_right

    def test_a_task_that_names_a_fact_is_looked_into_by_itself(self, persons):
        case = persons[-1]
        fact = case.facts[-1]
        assert fact.after
        task = f"<<task vjjv from model:m\n7: Find {fact.subject}\nvjjv>>"
        search = ToolSpec(name="search_files", description="", parameters={})
        (call,) = answer(case, "Role: execution agent", task, tools=(search,)).tool_calls
        assert json.loads(call.arguments) == {"words": fact.subject}

    def test_it_names_what_the_answer_lacks_and_proposes_a_task_that_brings_it(self, folders):
        case = next(case for case in folders if case.n_files > 1)
        prompt = (
            "Role: creation agent\nReply: "
            '{"tasks": [{"id": "a", "name": "…"}], "unanswered": [], "objective_met": false}'
        )
        shown = f"<<result vjjv from result:1\nTask 1: {case.question}\nnothing\nvjjv>>"
        said = json.loads(reply(case, prompt, shown))
        first = [f.subject for f in case.facts if not f.after]
        assert [task["name"] for task in said["tasks"]] == [f"Find {one}" for one in first[:10]]
        assert said["unanswered"][0]["task"] == 1
        assert said["unanswered"][0]["after"] == [task["id"] for task in said["tasks"]]


def reply(case, system, user):
    return answer(case, system, user).text


def answer(case, system, user, *, tools=()):
    messages = (
        Message(speaker=Speaker.SYSTEM, text=system),
        Message(speaker=Speaker.USER, text=user),
    )
    return Reader(case).answer(ChatRequest(model="m", messages=messages, tools=tools))


def asking(case, *, context_bytes=32_768):
    """A model behind a context of this length."""
    speakers = {"system": Speaker.SYSTEM, "user": Speaker.USER, "assistant": Speaker.ASSISTANT}

    async def ask(messages):
        if sum(len(message["content"].encode()) for message in messages) > context_bytes:
            raise PromptTooLongError
        said = tuple(
            Message(speaker=speakers[one["role"]], text=one["content"]) for one in messages
        )
        return Reader(case).answer(ChatRequest(model="m", messages=said)).text

    return ask
