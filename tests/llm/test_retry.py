from datetime import UTC, datetime

import pytest

from babyagi.errors import ModelUnavailableError
from babyagi.llm.retry import parse_retry_after, retrying

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Outage:
    """Fails so many times, then answers."""

    def __init__(self, n_failures, **error):
        self.n_failures, self.error, self.n_sent = n_failures, error, 0

    async def __call__(self):
        self.n_sent += 1
        if self.n_sent <= self.n_failures:
            raise ModelUnavailableError("out", **self.error)
        return "answer"


async def run(send, *, draw=1.0):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    try:
        return await retrying(send, sleep=sleep, random=lambda: draw), waits
    except ModelUnavailableError:
        return None, waits


async def test_waits_double_and_are_drawn_from_the_whole_range():
    assert await run(Outage(3)) == ("answer", [0.5, 1.0, 2.0])
    assert await run(Outage(3), draw=0.0) == ("answer", [0.0, 0.0, 0.0])


async def test_four_requests_are_the_most():
    send = Outage(9)
    assert (await run(send))[0] is None
    assert send.n_sent == 4


async def test_a_request_that_may_be_billed_is_never_sent_again():
    send = Outage(1, may_be_billed=True)
    assert await run(send) == (None, [])


async def test_what_the_endpoint_asks_for_is_a_floor_until_five_seconds_are_used():
    assert await run(Outage(3, retry_after_s=1.5)) == ("answer", [1.5, 1.5, 2.0])
    assert await run(Outage(3, retry_after_s=2.0)) == (None, [2.0, 2.0])
    assert await run(Outage(1, retry_after_s=5.1)) == (None, [])


@pytest.mark.parametrize(
    ("headers", "asked_s"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "in a while"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "999999999"}, 86_400.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 86_400.0),
        ({"retry-after-ms": "200", "retry-after": "7"}, 0.2),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:30"}, None),
        ({"retry-after": "Wed, 31 Dec 2025 00:00:00 GMT"}, 0.0),
    ],
)
def test_every_form_of_retry_after_is_read(headers, asked_s):
    assert parse_retry_after(headers, now=NOW) == asked_s
