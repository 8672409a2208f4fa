import pytest

from babyagi.llm.prices import Price
from babyagi.llm.reading import least_tokens, read_usage, visible_text
from tests.linear import grows_faster_than_linearly

PRICE = Price(prompt_usd_per_mtok=1.0, completion_usd_per_mtok=4.0)
CALL = {"least": (100, 10), "reserved": (900, 500)}
EMBEDDING = {"least": (100, 0), "reserved": (900, 0)}


def charged(said, call=CALL):
    usage = read_usage(said, PRICE, **call)
    return usage.prompt_tokens, usage.completion_tokens


@pytest.mark.parametrize(
    "said",
    [
        {"prompt_tokens": 600, "completion_tokens": 40, "total_tokens": 640},
        {"input_tokens": 600, "output_tokens": 40},
        {"prompt_tokens": "600", "completion_tokens": " 40.0 "},
        {"prompt_tokens": 600.0, "completion_tokens": 39.2},
        {"prompt_tokens": 600, "total_tokens": 640},
        {"completion_tokens": 40, "total_tokens": 640},
        {"prompt_tokens": 600, "completion_tokens": 40, "total_tokens": "many"},
        {"prompt_tokens": 600, "completion_tokens": 40, "total_tokens": 3},
        {
            "prompt_tokens": 100,
            "completion_tokens": 40,
            "prompt_tokens_details": {"cached_tokens": 500},
        },
        {
            "prompt_tokens": 600,
            "completion_tokens": 40,
            "prompt_tokens_details": {"cached_tokens": 500},
        },
        {
            "prompt_tokens": 600,
            "completion_tokens": 40,
            "total_tokens": 640,
            "completion_tokens_details": {"reasoning_tokens": 30},
        },
        {
            "prompt_tokens": 600,
            "completion_tokens": 20,
            "total_tokens": 640,
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        {
            "prompt_tokens": 600,
            "completion_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 30},
        },
    ],
)
def test_the_usage_that_an_endpoint_reports_is_charged(said):
    usage = read_usage(said, PRICE, **CALL)

    assert (
        usage.calls,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.unconfirmed_tokens,
    ) == (1, 600, 40, 0)
    assert usage.cost_usd == pytest.approx((600 + 4 * 40) / 1e6) and usage.unconfirmed_cost_usd == 0


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "many",
        "2,000",
        "-3",
        -3,
        -0.5,
        float("nan"),
        float("inf"),
        True,
        [600],
        {"n": 600},
        "0x10",
    ],
)
def test_a_count_that_cannot_be_read_is_charged_with_no_less_than_was_reserved(value):
    for said in (
        {"prompt_tokens": value, "completion_tokens": 40},
        {"prompt_tokens": 600, "completion_tokens": value},
        value,
    ):
        usage = read_usage(said, PRICE, **CALL)

        assert (usage.prompt_tokens, usage.completion_tokens) == (900, 500)
        assert (usage.unconfirmed_tokens, usage.unconfirmed_cost_usd) == (
            1400,
            usage.cost_usd,
        ) and usage.cost_usd == pytest.approx(0.0029)


@pytest.mark.parametrize(
    "said",
    [
        {"prompt_tokens": 99, "completion_tokens": 40},
        {"prompt_tokens": 600, "completion_tokens": 9},
    ],
)
def test_fewer_tokens_than_the_text_has_words_are_not_believed(said):
    assert charged(said) == (900, 500)


@pytest.mark.parametrize("factor", [1.01, 9, 11, 1000, 10**9])
def test_a_count_above_the_reservation_is_charged_as_it_is(factor):
    assert charged({"prompt_tokens": 600, "completion_tokens": int(500 * factor)}) == (
        600,
        int(500 * factor),
    )
    assert charged({"prompt_tokens": int(900 * factor), "completion_tokens": 40}) == (
        int(900 * factor),
        40,
    )
    assert charged(
        {"prompt_tokens": 600, "completion_tokens": None, "total_tokens": 600 + int(500 * factor)}
    ) == (600, int(500 * factor))


def test_a_number_without_end_is_counted_as_far_as_a_sum_can_hold():
    assert charged({"prompt_tokens": 10**300, "completion_tokens": 1e300}) == (10**12, 10**12)


def test_a_total_alone_is_charged_whole_at_the_higher_price():
    assert charged({"total_tokens": 700}) == (100, 600)


def test_what_is_unreadable_beside_a_huge_count_does_not_lower_it():
    assert charged({"prompt_tokens": 10**7, "completion_tokens": -1}) == (10**7, 500)


@pytest.mark.parametrize(
    ("said", "tokens"),
    [
        ({"prompt_tokens": 600}, 600),
        ({"total_tokens": "600"}, 600),
        ({"prompt_tokens": 600, "total_tokens": 700}, 700),
        ({}, 900),
        (None, 900),
    ],
)
def test_an_embedding_has_no_output_and_is_charged_alike(said, tokens):
    usage = read_usage(
        said, Price(prompt_usd_per_mtok=1.0, completion_usd_per_mtok=1.0), **EMBEDDING
    )

    assert usage.tokens == tokens and bool(usage.unconfirmed_tokens) == (not said)


def test_an_unknown_price_costs_nothing():
    assert (
        read_usage({}, None, **CALL).cost_usd == 0.0
        and read_usage({}, None, **CALL).unconfirmed_tokens == 1400
    )


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("", 0),
        ("one", 1),
        ("one two three four five", 2),
        ("地球到月球的距离是多少", 1),
        ("   \n\n ----- ", 0),
    ],
)
def test_a_text_has_at_least_a_token_for_every_four_words(text, n):
    assert least_tokens(text) == n


@pytest.mark.parametrize("detail", ["audio_tokens", "rejected_prediction_tokens", "new_tokens"])
def test_a_detail_that_is_larger_than_its_count_is_charged_beside_it(detail):
    said = {
        "prompt_tokens": 600,
        "completion_tokens": 40,
        "completion_tokens_details": {detail: 5000, "reasoning_tokens": 7},
    }

    assert charged(said) == (600, 5040)
    assert charged(
        {"input_tokens": 600, "input_tokens_details": {detail: 700}, "output_tokens": 40}
    ) == (1300, 40)


# -- thoughts
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        "The answer.",
        "<think>Perhaps this.</think>\nThe answer.",
        "\n<Reasoning>Not </think> yet.</Reasoning>The answer.",
        "Perhaps this.</think>The answer.",
        "<|im_start|>assistant\nThe answer.<|im_end|>",
        "<|im_start|>assistant\n<think>Perhaps.</think>\n\nThe answer.<eos></s>\n",
    ],
)
def test_thinking_in_tags_and_chat_markers_are_no_part_of_a_reply(reply):
    assert visible_text(reply) == "The answer."


def test_thinking_that_never_ends_leaves_nothing():
    assert visible_text("<think>Perhaps this. Or that.") == ""


@pytest.mark.parametrize(
    "reply",
    [" Two\n blanks ", "The tag `</think>` ends it.", "It ends with </think>", "a <s>b</s> c"],
)
def test_a_reply_that_only_names_such_tags_is_whole(reply):
    assert visible_text(reply) == reply


@pytest.mark.parametrize("part", ["<think>", "</think> ", "<|a|>", "[INST] ", "</s>\n", " ", "`"])
def test_a_reply_is_read_in_a_time_that_grows_with_it(part):
    work = lambda n: visible_text(part * (n // len(part)) + "x")  # noqa: E731

    assert grows_faster_than_linearly(work, 100_000) == ""
