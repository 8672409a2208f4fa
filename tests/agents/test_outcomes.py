"""What a reply is: answers stay answers, and what is none is found, by figures over labelled
replies and by the rules one by one.

`python -m tests.agents.test_outcomes` prints the figures and each reply that is judged otherwise
than its label.
"""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from babyagi.agents.outcomes import MAX_LACK_CHARS, Outcome, OutcomeKind, judge_reply, strip_noise
from babyagi.tasks import Passage
from support.prompts import fenced
from support.worlds.generator import make_world
from tests.linear import grows_faster_than_linearly

DATA = Path(__file__).parent.parent / "data"
OBJECTIVE = (
    "Draw a map of the five valleys of the upper river, with the yield of each and the road "
    "by which it is reached."
)
RESULT = (
    "Task 3: Find the yield of the north slope\nThe north slope yields 3.2 tonnes a hectare, "
    "by the ledger of 1911, page four."
)
INSTRUCTIONS = json.loads((DATA / "replies_labelled.json").read_text(encoding="utf-8"))[
    "instructions"
]
NOT_ANSWERS = (OutcomeKind.LACKING, OutcomeKind.NOT_DONE)
PIECES = (
    *(
        "LACKING:",
        "LACKING: none",
        "Missing: ",
        "I cannot",
        "Please provide",
        "the value of K-17",
        " is unknown",
        "```",
        "<think>",
        "</think>",
    ),
    *(
        "<|im_end|>",
        "<<task 1a2b3c4d from person",
        "1a2b3c4d>>",
        '{"tool": ',
        '{"name": ["a"], "arguments": {}}',
        "[",
        "}",
        '"',
        "\\",
        "\n",
        ". ",
    ),
    *("- ", "1. ", "# ", "=", "?", "不明", "ohne", "\x00", "\ud800", "\N{ZERO WIDTH SPACE}"),
)


def prompt_of(task, objective=OBJECTIVE):
    passages = [
        ("objective", objective, "person"),
        ("result", RESULT, "result:3"),
        ("task", f"7: {task}", "person"),
    ]
    return [
        INSTRUCTIONS,
        "\n".join(
            fenced(label, Passage(text=text, origin=origin)) for label, text, origin in passages
        ),
    ]


def judge(reply, task="Compute the total yield", objective=OBJECTIVE):
    return judge_reply(reply, task_name=task, prompt_texts=prompt_of(task, objective))


def judged(name):
    replies = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["replies"]
    return [
        (entry, judge(entry["reply"], entry["task"], entry.get("objective", OBJECTIVE)).kind)
        for entry in replies
    ]


def figures(name):
    """(honest, honest taken for none, honest in doubt, bad, bad found, bad in doubt)"""
    count: Counter[object] = Counter()
    for entry, kind in judged(name):
        label = "honest" if entry["kind"] in ("answered", "partial") else "bad"
        count[label] += 1
        count[label, "none"] += kind in NOT_ANSWERS
        count[label, "doubt"] += kind is OutcomeKind.DOUBTFUL
    return tuple(
        count[key] for name in ("honest", "bad") for key in (name, (name, "none"), (name, "doubt"))
    )


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["replies_labelled", "replies_held_out"])
def test_at_most_one_honest_reply_in_a_hundred_is_taken_for_none_and_of_the_bad_ones_95_are_found_or_in_doubt(
    name,
):
    n_honest, n_honest_wrong, _, n_bad, n_bad_found, n_bad_doubted = figures(name)

    assert n_honest_wrong <= 0.01 * n_honest
    assert n_bad_found + n_bad_doubted >= 0.95 * n_bad
    assert n_bad_found >= 0.5 * n_bad


@pytest.mark.parametrize(
    ("kind", "surface"),
    [("join", "codes"), ("join", "places"), ("brief", "codes"), ("fanout", "codes")],
)
def test_of_ordinary_results_few_are_in_doubt(kind, surface):
    facts = [
        fact
        for seed in (1, 2, 3)
        for fact in make_world(kind, 30, seed, surface=surface, result_chars=300).facts
    ]
    kinds = Counter(judge(fact.text, task=f"Find {fact.subject}").kind for fact in facts)

    assert kinds[OutcomeKind.DOUBTFUL] <= 0.15 * len(facts) and set(kinds) <= {
        OutcomeKind.ANSWERED,
        OutcomeKind.DOUBTFUL,
    }


# -- the LACKING line
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "LACKING: the yield of the south slope",
        "lacking: the yield of the south slope",
        "**LACKING:** the yield of the south slope",
        "- __Lacking__: the yield of the south slope",
        '> "LACKING: the yield of the south slope"',
        "`LACKING: the yield of the south slope`",
        "Missing: the yield of the south slope",
        "Fehlt: the yield of the south slope",
    ],
)
def test_a_line_that_names_a_lack_is_lacking_alone_and_partial_after_an_answer(line):
    alone, after_an_answer = judge(line), judge(f"The north slope yields 3.2 tonnes.\n\n{line}")

    assert (alone.kind, alone.lack) == (OutcomeKind.LACKING, "the yield of the south slope")
    assert (after_an_answer.kind, after_an_answer.lack) == (
        OutcomeKind.PARTIAL,
        "the yield of the south slope",
    )
    assert after_an_answer.text == "The north slope yields 3.2 tonnes."


@pytest.mark.parametrize(
    "nothing", ["nothing", "none", "n/a", "None.", "**nothing**", "-", "nichts", "what is missing"]
)
def test_a_lack_of_nothing_is_no_lack(nothing):
    assert judge(f"412 m\n\nLACKING: {nothing}") == Outcome(kind=OutcomeKind.ANSWERED, text="412 m")
    assert judge(f"LACKING: {nothing}").kind is OutcomeKind.NOT_DONE


@pytest.mark.parametrize(
    "line",
    ["Missing: nothing", "Missing: none.", "- **Missing:** n/a", "Fehlt: nichts", "Manque : rien"],
)
def test_a_value_before_a_line_that_nothing_is_missing_is_an_answer_and_keeps_the_line(line):
    said = f"Price: 4,200 €\n{line}"

    assert judge(said) == Outcome(kind=OutcomeKind.ANSWERED, text=said)
    assert judge(line).kind is OutcomeKind.DOUBTFUL


@pytest.mark.parametrize(
    "end", ["Nothing is missing.", "Nothing else is needed.", "Es fehlt nichts."]
)
def test_a_value_before_a_sentence_that_nothing_is_missing_is_an_answer(end):
    said = f"The fee is 40 EUR. {end}"

    assert judge(said) == Outcome(kind=OutcomeKind.ANSWERED, text=said)


def test_the_items_under_the_line_are_the_lack():
    assert judge("LACKING:\n- the width\n- the depth").lack == "- the width - the depth"


def test_a_lack_is_one_bounded_line():
    lack = judge("LACKING: " + "the width of the bridge and " * 100).lack

    assert len(lack) <= MAX_LACK_CHARS and "\n" not in lack


def test_the_line_counts_for_nothing_inside_a_code_block_of_an_answer():
    reply = "A reply may end so:\n```\nLACKING: the width\n```\nIt names 1 input."

    assert judge(reply).kind is OutcomeKind.ANSWERED


def test_an_apology_before_the_line_is_no_answer():
    assert (
        judge("I'm sorry, I can't compute it yet.\n\nLACKING: the width").kind
        is OutcomeKind.LACKING
    )


def test_missing_things_are_the_answer_to_a_task_that_asks_for_them():
    assert (
        judge("Missing: a hinge and two screws", task="What is missing from the kit?").kind
        not in NOT_ANSWERS
    )


# -- words alone
# --------------------------------------------------------------------------------------------------


def test_an_absence_is_a_lack_where_somebody_speaks_of_their_own_inputs_and_open_where_nobody_does():
    assert judge("I do not have the yield of the south slope.").kind is OutcomeKind.LACKING
    assert (
        judge(
            "The yield of the south slope is not mentioned.", task="Check what the ledger mentions"
        ).kind
        is OutcomeKind.DOUBTFUL
    )


def test_a_lack_in_words_is_kept_as_it_was_said():
    assert (
        judge("I'm sorry. I need the yield of the south slope first.").lack
        == "I need the yield of the south slope first."
    )


@pytest.mark.parametrize(
    "reply",
    [
        "The south slope yields 300 sacks, but I could not verify this in the ledger.",
        "The south slope yields 300 sacks, although I was unable to confirm it.",
        "It appears that the yield is 300 sacks, though I could not check that independently.",
        "The keeper is Anna Berg; however, I do not have a second source for it.",
    ],
)
def test_a_value_that_could_not_be_confirmed_is_no_lack(reply):
    assert judge(reply).kind in (OutcomeKind.ANSWERED, OutcomeKind.DOUBTFUL)


def test_an_item_that_only_sounds_like_a_lack_makes_none_of_the_items_below_it():
    answer = (
        "- **Those waiting for the ferry**: Anna Berg and Otto Lund\n- Both carried lamps.\n\n"
        "Let me know if you need anything else!"
    )
    lack = "I am waiting for these:\n- the yield of the south slope\n- the depth of the cellar"

    assert judge(answer).kind in (OutcomeKind.ANSWERED, OutcomeKind.DOUBTFUL)
    assert judge(lack).kind is OutcomeKind.LACKING


@pytest.mark.parametrize(
    "reply",
    [
        "Here's what I found:\n- the north slope\n- the south slope",
        "Here is the answer:\n\n12. Juli",
        "Of course! Below are the slopes:\n1. North\n2. South\n\nLet me know if you need more!",
        "Here's the answer: 300 sacks",
        "Sure, 300 sacks.",
        "Sure! ledger.md gives 300 sacks.",
        "The following are open: 17, 22, 23",
        "`ledger.md` - let me know if you need more",
        "After the third meeting it was moved to 12 July",
        "The plan is to repair the roof in May for 5,480 EUR",
    ],
)
def test_a_courteous_frame_around_a_value_or_a_list_does_not_make_it_none(reply):
    assert judge(reply, task="Which slopes are open?").kind not in NOT_ANSWERS


@pytest.mark.parametrize(
    "reply",
    [
        "Here is my plan:\n- read the ledger\n- add the yields",
        "Here is what I will do:\n- read the ledger\n- add the yields",
        "Sure! I will compute the total yield.",
        "Let me look at the ledger first.",
    ],
)
def test_a_plan_without_a_value_is_no_result(reply):
    assert judge(reply).kind is OutcomeKind.NOT_DONE


@pytest.mark.parametrize(
    "reply",
    [
        "I could not find a dentist in contacts.json or any other file.",
        "I was unable to find a dentist in the folder.",
        "I did not find anything about Kubernetes in the repository.",
    ],
)
def test_that_the_files_hold_nothing_is_no_lack_that_words_alone_decide(reply):
    assert judge(reply, task="Find the dentist").kind is OutcomeKind.DOUBTFUL


@pytest.mark.parametrize(
    "reply",
    [
        "I do not have the yield of the south slope, though I could not verify that.",
        "I need the yield of the south slope, but I could not confirm it in the ledger.",
        "I cannot confirm the yield of the south slope.",
    ],
)
def test_a_lack_stays_one_though_it_speaks_of_confirming(reply):
    assert judge(reply).kind is OutcomeKind.LACKING


def test_a_lack_keeps_the_quoted_name_of_what_is_missing():
    lack = judge(
        'I cannot go on. The value of "south slope yield" has not been given, nor that of '
        '"west slope yield".'
    ).lack

    assert '"south slope yield"' in lack and '"west slope yield"' in lack


def test_a_refusal_that_names_an_input_is_a_lack():
    assert (
        judge("As an AI I cannot compute this without the yield of the south slope.").kind
        is OutcomeKind.LACKING
    )
    assert judge("As an AI I cannot compute this.").kind in NOT_ANSWERS


def test_a_long_text_with_a_gap_in_it_is_an_answer():
    reply = (
        "The slope was planted in rows. " * 3 + "The yield of 1911 is not known. It fed 40 people."
    )

    assert judge(reply).kind is OutcomeKind.ANSWERED


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        ("", "empty"),
        ("...", "empty"),
        ("<think>Let me see", "empty"),
        ("I'm sorry, I can't help with that.", "refuses"),
        ("I will now compute it.", "will be done"),
        ('{"tool": "recall", "tool_input": "yield"}', "tool call"),
        ('{"yield": [1, 2', "cut off"),
        ("the yield is the yield " * 40, "over and over"),
        ("Task 7: Compute the total yield", "repeats the task"),
    ],
)
def test_a_reply_that_is_none_says_why_in_a_sentence(reply, word):
    outcome = judge(reply)

    assert outcome.kind is OutcomeKind.NOT_DONE
    assert word in outcome.why and outcome.why.endswith(".")


# -- echoes
# --------------------------------------------------------------------------------------------------


def test_the_instructions_the_objective_and_their_fences_are_an_echo():
    for reply in (
        INSTRUCTIONS,
        OBJECTIVE,
        "\n".join(prompt_of("Compute the total yield")[0:1]) + OBJECTIVE,
    ):
        assert judge(reply).kind is OutcomeKind.NOT_DONE
    assert (
        judge(fenced("task", Passage(text="7: Compute the total yield", origin="person"))).kind
        is OutcomeKind.NOT_DONE
    )


def test_a_result_of_the_prompt_may_be_quoted_in_full():
    assert judge(RESULT.partition("\n")[2]).kind is OutcomeKind.ANSWERED
    assert (
        judge(
            fenced("result", Passage(text=RESULT, origin="result:3")) + "\n\nSo it is 3.2 tonnes."
        ).kind
        is OutcomeKind.ANSWERED
    )


def test_a_statement_in_the_words_of_the_question_is_no_echo():
    assert (
        judge("The bridge is open to trucks.", task="Is the bridge open to trucks?").kind
        not in NOT_ANSWERS
    )


def test_the_objective_is_an_answer_where_the_task_asks_for_it():
    assert judge(OBJECTIVE, task="Quote the objective").kind is OutcomeKind.ANSWERED


# -- noise
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>Is it 4?</think>\n5", "5"),
        ("It is 4, or not.\n</think>\n5", "5"),
        ("5<|im_end|>\n<|endoftext|>", "5"),
        ("<|im_start|>assistant\n5</s>", "5"),
        ("<think>without an end", ""),
        (
            "The tag `<think>` opens it, `</think>` closes it.",
            "The tag `<think>` opens it, `</think>` closes it.",
        ),
        ("a\u200bb", "ab"),
        ("if a < b:\n    return </s>x", "if a < b:\n    return </s>x"),
    ],
)
def test_noise_goes_and_the_reply_stays(text, left):
    assert strip_noise(text) == left


# -- any text
# --------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.text(max_size=12), st.sampled_from(PIECES)), max_size=30).map("".join),
    st.text(max_size=40),
)
def test_any_text_gives_an_outcome(reply, task):
    outcome = judge_reply(reply, task_name=task, prompt_texts=prompt_of(task))

    assert (outcome.kind is OutcomeKind.NOT_DONE) == bool(outcome.why)
    assert (
        outcome.kind is OutcomeKind.LACKING
        or outcome.kind is OutcomeKind.PARTIAL
        or not outcome.lack
    )
    assert len(outcome.lack) <= MAX_LACK_CHARS and "\n" not in outcome.lack


@pytest.mark.thorough
@pytest.mark.parametrize(
    "piece",
    [
        *PIECES,
        "a",
        " ",
        "> ",
        "*",
        "K-17 is not known. ",
        "<<a 12345678 from x\n",
        "LACKING: x\n",
        "```\nLACKING: x\n",
    ],
)
def test_a_long_reply_is_judged_in_linear_time(piece):
    def work(n):
        return judge_reply(
            piece * (n // len(piece)),
            task_name="Compute it",
            prompt_texts=[piece * (n // len(piece))],
        )

    assert grows_faster_than_linearly(work, 20_000) == ""


def test_a_sentence_of_the_worst_words_is_judged_in_bounded_time():
    words = (
        "the not no earlier results cannot without is are please provide need before i to be "
        "known first of so"
    ).split()
    shuffled = random.Random(7)

    def work(n):
        return [
            judge_reply(" ".join(shuffled.choices(words, k=400)), task_name="Compute it")
            for _ in range(n)
        ]

    assert grows_faster_than_linearly(work, 32) == ""


if __name__ == "__main__":
    for file_name in ("replies_labelled", "replies_held_out"):
        for entry, kind in judged(file_name):
            if kind != entry["kind"]:
                print(
                    f"{entry['kind']:9} judged {kind:9} {entry['task'][:50]} | "
                    f"{entry['reply'][:120]!r}"
                )
        honest, wrong, doubted, bad, found, bad_doubted = figures(file_name)
        print(
            f"{file_name}: honest {honest}, taken for none {wrong}, in doubt {doubted}; bad "
            f"{bad}, found {found}, in doubt {bad_doubted}"
        )


@pytest.mark.parametrize(
    "reply",
    [
        "<<task 4fa81c22 from person\n2: Read backups.md\n4fa81c22>>",
        "I am reading the file.\n<<task 4fa81c22 from person\n2: Read backups.md",
        "<·<task 4fa81c22 from person\n2: Read backups.md, and more of it\n4fa81c22>·>",
        "<<listed tasks 4fa81c22 from model\n3 [done] Find the height\n4fa81c22>>",
        "final_answer",
        "fail_task.",
    ],
)
def test_a_reply_with_a_fence_of_ours_or_the_bare_name_of_an_end_is_no_result(reply):
    outcome = judge_reply(reply, task_name="Read backups.md", prompt_texts=["Carry the task out."])

    assert outcome.kind is OutcomeKind.NOT_DONE


def test_the_same_words_three_times_over_are_a_loop_and_a_list_is_none():
    said = (
        "The backups are made by a program that runs each night on the old server "
        "in the cellar and writes to a tape. "
    )
    task = "Find out when backups are made"

    assert judge_reply(f"It is so: {said * 3}", task_name=task).kind is OutcomeKind.NOT_DONE
    assert judge_reply(said * 2, task_name=task).kind is OutcomeKind.ANSWERED
    listed = "\n".join(f"* On day {n} the backup of server {n} is made at {n} h." for n in range(9))
    assert judge_reply(listed, task_name=task).kind is not OutcomeKind.NOT_DONE
