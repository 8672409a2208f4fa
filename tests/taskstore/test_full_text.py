from babyagi.taskstore.full_text import COMMON_WORD, choose_words, order_by_words


def test_the_rarest_words_are_looked_for_as_long_as_their_results_together_are_few():
    assert choose_words({"the": 1_000, "lake": 7, "oven": COMMON_WORD - 7, "trail": COMMON_WORD}) == ["lake", "oven"]


def test_a_word_that_no_result_has_and_one_that_too_many_have_are_not_looked_for():
    assert choose_words({"nowhere": 0, "everywhere": COMMON_WORD + 1}) == []


def test_a_task_with_more_of_the_words_comes_before_one_with_fewer_and_a_rare_word_counts_more_than_a_common_one():
    pairs = [("bread", 1), ("bread", 2), ("bread", 3), ("oven", 2), ("lake", 4)]

    assert order_by_words(pairs) == [2, 4, 3, 1]


def test_the_order_is_the_same_however_the_pairs_come():
    pairs = [("bread", 1), ("oven", 1), ("lake", 2), ("bread", 2), ("lake", 3)]

    assert order_by_words(pairs) == order_by_words(reversed(pairs))
