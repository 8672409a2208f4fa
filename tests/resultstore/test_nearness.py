import pytest

from babyagi.resultstore.nearness import Nearness, marks

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
    assert Nearness().are_near_equal(one, other)


@pytest.mark.parametrize(("one", "other"), OTHER + MISSED)
def test_another_task_is_never_taken_for_the_same(one, other):
    nearness = Nearness()
    assert not nearness.are_near_equal(one, other) and not nearness.are_near_equal(other, one)


def test_what_distinguishes_is_found_in_a_name():
    assert marks("Read docs/a.md, line 3, not 4") == {"docs/a.md", "3", "4", "not"}


def test_only_the_latest_vectors_are_kept():
    nearness = Nearness(max_kept=3)
    for number in range(10):
        nearness.are_near_equal(f"text {number}", f"text {number}")
    assert len(nearness._vector_by_text) == 3
