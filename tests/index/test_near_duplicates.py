import pytest

from babyagi.index.search import MAX_COMPARED_CHARS, NearDuplicates, marks
from tests.linear import grows_faster_than_linearly

SAME = [
    ("Check the results for errors", "Check results for any errors"),
    ("Define the success criteria", "Define success criteria for this"),
    ("Draft an outline for the report", "Draft the report outline"),
    ("Find out which limits exist", "Find out what limits exist"),
    ("List the files in the folder", "List all files in the folder"),
    ("Research the history of the topic", "Research the topic's history"),
    ("Review the literature on memory", "Review literature about memory"),
    ("Write a summary of all results", "Write a summary of the results"),
    ("Write the final report", "Write the final report now"),
]
# Said in other words: kept as two, because dropping work is worse than doing it twice.
MISSED = [
    ("Analyse the survey data", "Analyze the survey data"),
    ("Summarise the findings on limits", "Summarize the findings about limits"),
    ("Identify key stakeholders", "Identify the key stakeholders involved"),
    ("Compare the two documents", "Compare both documents"),
]
OTHER = [
    ("Read chapter 1", "Read chapter 2"),
    ("Read a.md", "Read b.md"),
    ("Check the 2023 figures", "Check the 2024 figures"),
    ("Read docs/limits.md", "Read docs/Limits.md"),
    ('Explain the word "claim"', 'Explain the word "lease"'),
    ("Do part A", "Do part B"),
    ("Verify the claim is true", "Verify the claim is not true"),
    ("Find sources for the claim", "Find sources against the claim"),
    ("Compare prices in Germany", "Compare prices in France"),
    ("Describe the advantages", "Describe the disadvantages"),
    ("Describe what came before the release", "Describe what came after the release"),
    ("Write unit tests for the parser", "Write unit tests for the lexer"),
    ("Interview the sales team", "Interview the support team"),
    ("Explain how retries work", "Explain how retries fail"),
    ("Add logging to the worker", "Remove logging from the worker"),
    ("Increase the timeout", "Decrease the timeout"),
    ("Plan the launch in spring", "Plan the launch in autumn"),
    ("Email the first customer", "Email the second customer"),
    ("Translate the text to French", "Translate the text to Spanish"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_in_nearly_the_same_words_is_near_equal(one, other):
    assert NearDuplicates().are_near_equal(one, other)


@pytest.mark.parametrize(("one", "other"), OTHER + MISSED)
def test_another_task_is_never_taken_for_the_same(one, other):
    nearness = NearDuplicates()
    assert not nearness.are_near_equal(one, other) and not nearness.are_near_equal(other, one)


def test_what_distinguishes_is_found_in_a_name():
    assert marks("Read docs/a.md, line 3, not 4") == {"docs/a.md", "3", "4", "not"}


def test_only_the_latest_vectors_are_kept():
    nearness = NearDuplicates(max_kept=3)
    for number in range(10):
        nearness.are_near_equal(f"text {number}", f"text {number}")
    assert len(nearness._vector_by_text) == 3


# -- results, the later one first
# ----------------------------------------------------------------------------------------------

REPEATS = [
    (
        "Nothing about prices was found in the folder.",
        "Nothing was found in the folder about prices.",
    ),
    (
        "Not done yet!",
        "Not done yet.",
    ),
    (
        "There is no further information available.",
        "No further information is available.",
    ),
    (
        (
            "I could not find documents that mention the deadline. The folder holds only the "
            "two files that were already read before."
        ),
        (
            "I could not find any documents that mention the deadline. The folder holds only "
            "the two files that were read before."
        ),
    ),
    (
        "The limits in the list are: tasks, calls, tokens, money, time.",
        "The list of limits is: tasks, calls, tokens, money and time.",
    ),
    (
        (
            "## Summary\n\nThe report covers these three topics: leases, fences, and limits. "
            "Nothing new has been found."
        ),
        (
            "## Summary\n\nThe report covers three topics: leases, fences and limits. "
            "Nothing new was found."
        ),
    ),
    (
        (
            "The analysis is complete. All findings are in line with earlier results, and no "
            "action is needed."
        ),
        (
            "The analysis was completed. All findings are in line with the earlier results; "
            "no action is needed."
        ),
    ),
    (
        "Without access to the database the task cannot be carried out.",
        "The task cannot be carried out without access to the database.",
    ),
    (
        "Tea is grown in China, India, and Kenya. Black tea is fully oxidised; green tea is not.",
        "Tea is grown in China, India and Kenya. Black tea is fully oxidised, green tea is not.",
    ),
    (
        (
            "The file was read once again, and it says what it said before: a lease lives "
            "for 30 seconds and is renewed every 10."
        ),
        (
            "The file was read again; it says what it said before: a lease lives for 30 "
            "seconds and is renewed every 10."
        ),
    ),
    (
        "No questions are open. The results so far have covered the objective.",
        "There are no open questions. The objective has been covered by the results so far.",
    ),
    (
        "I reviewed the draft. It is clear and complete, no changes are suggested.",
        "Reviewed the draft. It is clear and complete. No changes are suggested.",
    ),
    (
        "The three suppliers all offer the same terms: payment within 30 days, delivery included.",
        "All three suppliers offer the same terms: payment in 30 days, delivery included.",
    ),
    (
        "done",
        "Done.",
    ),
]
# Said otherwise, and taken for news: a run goes on where it could have stopped.
MISSED_REPEATS = [
    (
        (
            "I do not have access to the internet, so the current price of copper cannot be "
            "looked up. Please provide the data."
        ),
        (
            "I have no access to the internet, so the current price of copper cannot be "
            "looked up. Please provide the data."
        ),
    ),
    (
        "Work is continuing. Next step: gather more data about the customers.",
        "Work continues. The next step is to gather more data about customers.",
    ),
]
NEWS = [
    (
        "Found it in chapter 6.",
        "Found it in chapter 5.",
    ),
    (
        "The revenue of the bakery fell by twelve percent after the new oven was installed.",
        "The revenue of the bakery rose by twelve percent after the new oven was installed.",
    ),
    (
        (
            "server beta was checked: the disk is half full, the backup ran last night, and "
            "there are no errors in the log."
        ),
        (
            "server alpha was checked: the disk is half full, the backup ran last night, and "
            "there are no errors in the log."
        ),
    ),
    (
        "The claim is not supported by the sources.",
        "The claim is supported by the sources.",
    ),
    (
        "Madrid: the museum opens at nine and closes at six. Tickets are sold at the door.",
        "Berlin: the museum opens at nine and closes at six. Tickets are sold at the door.",
    ),
    (
        "docs/loop.md: a turn is executed, then planned; each commit is one transaction.",
        "docs/store.md: the store is one file, and each method is one transaction.",
    ),
    (
        "Heartbeats come every 10 seconds.",
        "Leases live for 30 seconds.",
    ),
    (
        (
            "The customer asked for a refund because the parcel arrived damaged. The agent "
            "agreed and the refund was paid."
        ),
        (
            "The customer asked for a refund because the parcel arrived late. The agent "
            "agreed and the refund was paid."
        ),
    ),
    (
        (
            "The contract with the plumber runs until spring and can be ended with a month's "
            "notice. The price is fixed."
        ),
        (
            "The contract with the carpenter runs until spring and can be ended with a "
            "month's notice. The price is fixed."
        ),
    ),
    (
        "The second draft was rejected by the editor.",
        "The first draft was rejected by the editor.",
    ),
    (
        "Function parse_time raises on an empty string; a test was added.",
        "Function parse_date raises on an empty string; a test was added.",
    ),
    (
        (
            "The patient improved after the treatment with the lower dose, and no side "
            "effects were seen in the four weeks that followed."
        ),
        (
            "The patient improved after the treatment with the higher dose, and no side "
            "effects were seen in the four weeks that followed."
        ),
    ),
    (
        "Water boils at 93 degrees at 2000 metres.",
        "Water boils at 100 degrees at sea level.",
    ),
    (
        (
            "The interview with the doctor showed that nights are understaffed. Most shifts "
            "end late, and breaks are often skipped."
        ),
        (
            "The interview with the nurse showed that nights are understaffed. Most shifts "
            "end late, and breaks are often skipped."
        ),
    ),
    (
        "The tests pass on Linux and on Windows now that the path separator is handled.",
        "The tests pass on Linux and fail on Windows because of the path separator.",
    ),
]
# The same words in another place: taken for a repetition, which ends nothing before it happens five
# times in a row.
MISTAKEN = [
    (
        "Option B is cheaper but slower. Option A costs more and is faster.",
        "Option A is cheaper but slower. Option B costs more and is faster.",
    ),
]


@pytest.mark.parametrize(("text", "earlier"), REPEATS + MISTAKEN)
def test_a_result_in_nearly_the_same_words_is_a_repeat(text, earlier):
    assert NearDuplicates().is_repeat(text, earlier)


@pytest.mark.parametrize(("text", "earlier"), NEWS + MISSED_REPEATS)
def test_a_result_with_news_is_no_repeat(text, earlier):
    nearness = NearDuplicates()
    assert not nearness.is_repeat(text, earlier) and not nearness.is_repeat(earlier, text)


LONG = (
    "Each of the suppliers was asked for terms, delivery and guarantee, and each answered in "
    "writing within the week. "
) * 3


@pytest.mark.parametrize(
    ("text", "is_repeat"),
    [
        (LONG, True),
        (LONG + "This was read again.", True),
        (LONG.replace("suppliers", "customers"), False),
        (LONG + "The cheapest goes bankrupt soon.", False),
    ],
)
def test_in_a_long_result_one_word_in_the_place_of_another_is_news(text, is_repeat):
    assert NearDuplicates().is_repeat(text, LONG) is is_repeat


def test_a_result_too_long_to_compare_repeats_only_what_it_equals():
    long = "word and word " * MAX_COMPARED_CHARS
    assert NearDuplicates().is_repeat(long, long)
    assert not NearDuplicates().is_repeat(long + "again", long)


@pytest.mark.parametrize("sign", "“'\"`A.1")
def test_a_result_is_compared_in_linear_time_whatever_it_holds(sign):
    def compare(n):
        NearDuplicates().is_repeat(sign * (n - 1), sign + " " + sign * (n - 9))

    assert grows_faster_than_linearly(compare, MAX_COMPARED_CHARS) == ""
