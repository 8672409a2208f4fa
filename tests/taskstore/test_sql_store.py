import sqlite3

from babyagi.taskstore.sql.database import Transaction
from babyagi.taskstore.sql.store import COMMON_WORD, choose_words, order_by_words


def test_the_rarest_words_are_looked_for_as_long_as_their_results_together_are_few():
    assert choose_words(
        {"the": 1_000, "lake": 7, "oven": COMMON_WORD - 7, "trail": COMMON_WORD}
    ) == ["lake", "oven"]


def test_a_word_that_no_result_has_and_one_that_too_many_have_are_not_looked_for():
    assert choose_words({"nowhere": 0, "everywhere": COMMON_WORD + 1}) == []


def test_a_task_with_more_of_the_words_comes_before_one_with_fewer_and_a_rare_word_counts_more_than_a_common_one():
    found = [("bread", 1, 9), ("bread", 2, 9), ("bread", 3, 9), ("oven", 2, 9), ("lake", 4, 9)]

    assert order_by_words(found) == [2, 4, 3, 1]


def test_of_two_results_with_the_same_word_the_shorter_one_comes_first():
    assert order_by_words([("oven", 1, 100), ("oven", 2, 4_000), ("oven", 3, 500)]) == [1, 3, 2]


def test_the_order_is_the_same_however_the_words_are_found():
    found = [("bread", 1, 5), ("oven", 1, 5), ("lake", 2, 5), ("bread", 2, 5), ("lake", 3, 5)]

    assert order_by_words(found) == order_by_words(reversed(found))


def test_nothing_found_is_nothing_ordered():
    assert order_by_words([]) == []
    assert order_by_words([("oven", 1, 0)]) == [1]


def test_what_is_written_is_in_what_is_read_next_also_where_it_was_read_before():
    queries = {
        "add": "INSERT INTO event (kind) VALUES (:kind)",
        "kinds": "SELECT kind FROM event ORDER BY rowid",
    }
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE event (kind TEXT)")
    tx = Transaction(connection, queries=queries, now_us=0)
    assert list(tx.all("kinds")) == []

    tx.run("add", kind="a")
    tx.run("add", kind="b")

    assert [row["kind"] for row in tx.all("kinds")] == ["a", "b"]
