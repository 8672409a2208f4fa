"""Answers of a type, from replies that are made to break the reading."""

from contextlib import suppress
from typing import Any

import pytest
from pydantic import BaseModel

from babyagi.errors import MalformedReplyError
from babyagi.llm.shapes import is_deep
from babyagi.react.values import output_type_of


class Note(BaseModel):
    a: Any


@pytest.mark.thorough
@pytest.mark.parametrize("hint", [dict, list, Note, int, str | list, dict[str, Any]], ids=str)
@pytest.mark.parametrize("depth", [101, 980])
def test_of_a_reply_that_is_nested_without_end_nothing_deep_is_taken(hint, depth):
    output = output_type_of(hint)
    for opening, closing in (("[", "]"), ('{"a":', "}"), ('{"answer":', "}")):
        with suppress(MalformedReplyError):
            assert not is_deep(output.read(f"{opening * depth}1{closing * depth}"))
