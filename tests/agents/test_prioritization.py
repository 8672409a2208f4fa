"""An order is a list of ids; whatever else a reply says changes nothing."""

import pytest

from babyagi.agents.prioritization import parse_order
from babyagi.errors import MalformedReplyError


@pytest.mark.parametrize(
    "reply",
    [
        '{"order": [3, 1, 2]}',
        '```json\n{"order": ["3", 1, 2.0, 3, 99]}\n```',
        "Like this: [3, 1, 2]",
    ],
)
def test_the_known_ids_are_read_in_their_order_each_once(reply):
    assert parse_order(reply, ids={1, 2, 3}) == (3, 1, 2)


@pytest.mark.parametrize("reply", ["", "First task 3, then the others.", '{"tasks": 3}'])
def test_a_reply_without_a_list_is_asked_for_again(reply):
    with pytest.raises(MalformedReplyError):
        parse_order(reply, ids={1, 2, 3})
