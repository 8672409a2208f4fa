"""Every fault that does not stream meets the same end whether the answer was asked for as a stream
or whole: the same outcome, bill and number of requests."""

import re
from dataclasses import asdict, replace

import pytest

from babyagi.errors import BabyagiError
from babyagi.llm.client import Endpoint, OpenAIModel
from babyagi.llm.prices import Price
from babyagi.tasks import Role, Usage
from support.local_server import applies_to, fault_named
from tests.llm.conftest import no_sleep
from tests.llm.test_client import DIALECTS, EVERYTHING, PATHS, ROWS

PRICE = Price(prompt_usd_per_mtok=1.0, completion_usd_per_mtok=2.0)
CUT_OFF = {"c-hang": 0.5, "c-slow-body": 0.5}


async def end_of(server, fault, dialect, *, streams):
    """What came of a call that meets the fault as often as it asks."""
    server.reset()
    server.fail_next(fault, n=None)
    endpoint = Endpoint(
        base_url=server.base_url,
        timeout_s=CUT_OFF.get(fault, 20.0),
        sleep=no_sleep,
        random=lambda: 0.5,
    )
    model = OpenAIModel("some-model", endpoint, dialect=dialect, price=PRICE, temperature=0.2)
    heard: list[str] = []
    said: dict[str, object]
    try:
        completion = await model.complete(
            EVERYTHING, role=Role.EXECUTION, on_text=heard.append if streams else None
        )
        # what no character stands for comes as one escape or, in a stream, as three bytes
        said = asdict(completion) | {"text": re.sub("\ufffd+", "\ufffd", completion.text)}
        told = "".join(heard)
        assert not streams or told.strip() == completion.text.strip()
    except BabyagiError as error:
        said = {"type": type(error), "what": error.what, "may_be_billed": error.may_be_billed}
        said["billed"] = error.billed
    finally:
        await endpoint.close()
    return said | {"n_requests": len(server.requests)}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("dialect", "fault"),
    [
        (dialect, row["fault"])
        for row in ROWS
        for dialect in DIALECTS
        if (fault := fault_named(row["fault"])) and applies_to(fault, PATHS[dialect])
    ],
)
async def test_a_fault_has_the_same_end_streamed_and_whole(server, dialect, fault):
    whole = await end_of(server, fault, dialect, streams=False)
    streamed = await end_of(server, fault, dialect, streams=True)

    if fault == "429-retry-date":  # how long is waited depends on the second that it is
        assert {whole.pop("n_requests"), streamed.pop("n_requests")} <= {2, 3, 4}
    usage = whole.get("usage")
    if usage and usage["unconfirmed_tokens"] and streamed != whole:
        usage["unconfirmed_cost_usd"] = (
            0.0  # a stream whose count is useless costs what is reserved
        )
    assert streamed == whole


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "say",
    [
        lambda usage: (None, usage),
        lambda usage: ({}, usage),
        lambda usage: ({"total_tokens": 40}, usage),
        lambda usage: ({"prompt_tokens": 30, "completion_tokens": 4}, usage),
        lambda usage: ({"input_tokens": "30", "output_tokens": 4.5}, usage),
        lambda usage: ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, usage),
        lambda usage: (
            {
                "prompt_tokens": 30,
                "completion_tokens": 4,
                "total_tokens": 134,
                "completion_tokens_details": {"reasoning_tokens": 100},
            },
            usage,
        ),
    ],
    ids=["none", "empty", "total", "plain", "texts", "zero", "reasoning"],
)
async def test_what_an_answer_says_of_its_cost_is_read_alike_streamed_and_whole(
    server, dialect, say
):
    server.say_usage = say
    usages: list[Usage] = []
    for streams in (False, True):
        said = await end_of(server, "ok", dialect, streams=streams)
        usages.append(Usage(**said["usage"]))

    whole, streamed = usages
    assert whole.tokens > 0
    if streamed != whole:  # a stream whose count is useless costs what was reserved, for certain
        assert whole.unconfirmed_tokens == whole.tokens
        assert streamed == replace(whole, unconfirmed_cost_usd=0.0)
