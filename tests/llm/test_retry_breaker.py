import pytest

from babyagi.errors import ModelUnavailableError
from babyagi.llm.retry import N_FAILURES, PROBE_EVERY_S, WINDOW_S, Breaker

OUTAGE = ModelUnavailableError("down")


def fail(breaker, *times_s):
    for at in times_s:
        breaker.note_failure(OUTAGE, sent_s=at, now_s=at)


def is_let_through(breaker, now_s, model="m"):
    try:
        breaker.check(model, now_s=now_s)
    except ModelUnavailableError as error:
        assert error.retry_after_s is not None and error.retry_after_s > 0
        return False
    return True


def test_five_failures_within_a_minute_open_it_and_fewer_or_slower_ones_do_not():
    few, slow, quick = Breaker(), Breaker(), Breaker()
    fail(few, *range(N_FAILURES - 1))
    fail(slow, *(n * WINDOW_S / 3 for n in range(N_FAILURES)))
    fail(quick, *range(N_FAILURES))

    assert is_let_through(few, 5.0) and is_let_through(slow, 100.0)
    assert not is_let_through(quick, 5.0)


def test_while_it_is_open_one_probe_goes_through_at_a_time():
    breaker = Breaker()
    fail(breaker, *[0.0] * N_FAILURES)

    assert [second for second in range(60) if is_let_through(breaker, float(second))] == [
        19,
        38,
        57,
    ]
    assert PROBE_EVERY_S == 19


@pytest.mark.parametrize("is_unreached", [False, True])
def test_while_it_is_open_it_says_whether_the_endpoint_was_reached(is_unreached):
    breaker, error = Breaker(), ModelUnavailableError("down")
    error.is_unreached = is_unreached
    for at in range(N_FAILURES):
        breaker.note_failure(error, sent_s=at, now_s=at)

    with pytest.raises(ModelUnavailableError) as refused:
        breaker.check("m", now_s=N_FAILURES)
    assert refused.value.is_unreached is is_unreached


def test_an_answer_closes_it_and_what_failed_before_counts_no_more():
    breaker = Breaker()
    fail(breaker, *[0.0] * N_FAILURES)
    breaker.note_answer(sent_s=1.0)
    fail(breaker, 2.0)

    assert is_let_through(breaker, 2.0)


def test_an_answer_to_what_was_sent_before_the_failures_does_not_make_up_for_them():
    breaker = Breaker()
    fail(breaker, *range(1, N_FAILURES))
    breaker.note_answer(sent_s=0.0)
    fail(breaker, N_FAILURES)

    breaker.note_answer(sent_s=2.0)
    assert not is_let_through(breaker, N_FAILURES + 1.0)
    breaker.note_answer(sent_s=N_FAILURES + 1.0)
    assert is_let_through(breaker, N_FAILURES + 1.0)


def test_a_failure_says_when_the_next_probe_is_counted_from_when_the_last_was_sent():
    breaker = Breaker()
    fail(breaker, *[0.0] * (N_FAILURES - 1))

    assert breaker.note_failure(OUTAGE, sent_s=0.0, now_s=4.0) == PROBE_EVERY_S - 4.0
    assert is_let_through(breaker, PROBE_EVERY_S)
    assert (
        breaker.note_failure(OUTAGE, sent_s=PROBE_EVERY_S, now_s=PROBE_EVERY_S + 6.0)
        == PROBE_EVERY_S - 6.0
    )


def test_a_limit_is_no_outage_and_holds_only_the_model_that_it_is_about():
    breaker = Breaker()
    for _ in range(9):
        breaker.note_failure(ModelUnavailableError("slow", is_limit=True), sent_s=0.0, now_s=0.0)
    breaker.hold("m", until_s=300.0)

    assert is_let_through(breaker, 0.0, "other")
    assert not is_let_through(breaker, 299.0) and is_let_through(breaker, 300.0)


def test_after_an_outage_one_call_at_a_time_asks_again():
    breaker, first, second = Breaker(), object(), object()

    assert breaker.may_retry(OUTAGE, caller=first) and not breaker.may_retry(OUTAGE, caller=second)
    breaker.stop_retrying(first)
    assert breaker.may_retry(OUTAGE, caller=second)


@pytest.mark.parametrize("n_callers", [1, 8])
def test_who_is_only_limited_may_always_ask_again(n_callers):
    breaker = Breaker()
    assert all(
        breaker.may_retry(ModelUnavailableError("slow", is_limit=True), caller=object())
        for _ in range(n_callers)
    )
