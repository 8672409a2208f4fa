"""What an endpoint says that a call cost, and what is charged where that cannot be true."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from babyagi.llm.prices import Price
from babyagi.tasks import Usage

MAX_COUNT = 10**12  # a larger number is a fault of the endpoint, and must not overflow a sum
# Every tokenizer that was measured makes at least one token of a word, some newer ones one of two.
MAX_WORDS_PER_TOKEN = 4

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\s*\+?\d{1,30}(\.\d{1,30})?\s*")
_PROMPT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is known of a call without its endpoint: how many tokens it has at least, and what was
    reserved for it."""

    least_prompt: int
    least_output: int
    reserved_prompt: int
    reserved_output: int


def least_tokens(text: str) -> int:
    """Return a number of tokens below which no tokenizer counts this text."""
    return -(-len(_WORD.findall(text)) // MAX_WORDS_PER_TOKEN)


def read_usage(said: Any, call: Call, price: Price | None) -> Usage:
    """Return what the call is charged with: what the endpoint says, or where that is unreadable or
    too little, no less than was reserved.

    Args:
        said: the `usage` of the reply, of either dialect. Reasoning tokens count once where they
            lie within the output, and once more where they lie beside it; where nothing tells,
            beside.

    Returns:
        The usage, as large as the endpoint says it is. What the endpoint did not say is
        `unconfirmed`.
    """
    fields = said if isinstance(said, dict) else {}
    prompt, output = _count_prompt(fields), _count_output(fields, call)
    total = _read(fields.get("total_tokens"))
    if total is not None:
        if prompt is None:
            prompt = min(total, call.least_prompt) if output is None else total - output
        output = max(output or 0, total - prompt)
    is_said = (
        prompt is not None
        and output is not None
        and prompt >= call.least_prompt
        and output >= call.least_output
    )
    prompt, output = prompt or 0, output or 0
    if not is_said:
        prompt, output = max(prompt, call.reserved_prompt), max(output, call.reserved_output)
    cost_usd = price.cost_usd(prompt, output) if price else 0.0
    return Usage(
        calls=1,
        prompt_tokens=prompt,
        completion_tokens=output,
        cost_usd=cost_usd,
        unconfirmed_tokens=0 if is_said else prompt + output,
        unconfirmed_cost_usd=0.0 if is_said else cost_usd,
    )


def _count_prompt(fields: Mapping[str, Any]) -> int | None:
    """The tokens of the prompt; those from the endpoint's cache, which some count beside them, are
    tokens too."""
    prompt, cached = _largest(fields, _PROMPT), _detail(fields, _PROMPT, "cached_tokens")
    return prompt + cached if prompt is not None and cached > prompt else prompt


def _count_output(fields: Mapping[str, Any], call: Call) -> int | None:
    if not call.reserved_output:
        return _largest(fields, _OUTPUT) or 0
    output, reasoning = _largest(fields, _OUTPUT), _detail(fields, _OUTPUT, "reasoning_tokens")
    if output is None or not reasoning:
        return output
    is_beside = _read(fields.get("total_tokens")) is None or output - reasoning < call.least_output
    return output + reasoning if is_beside else output


def _largest(fields: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return max(
        (count for name in names if (count := _read(fields.get(name))) is not None), default=None
    )


def _detail(fields: Mapping[str, Any], names: tuple[str, ...], detail: str) -> int:
    """A number that may stand in the details of a count, or beside it."""
    places = [fields, *(fields.get(f"{name}_details") for name in names)]
    return max(_read(place.get(detail)) or 0 for place in places if isinstance(place, dict))


def _read(value: Any) -> int | None:
    """The number of tokens that the value says, None where it says none."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        return None
    return min(math.ceil(value), MAX_COUNT)
