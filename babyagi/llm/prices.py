"""The prices of tokens, by model and endpoint, from the table in the package `genai-prices`.
Nothing is downloaded.

Not covered: discounts for cached prompts or batches (they are counted at full price), and other
prices for very long prompts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from babyagi.errors import SettingsError
from babyagi.net.addresses import hostname_of
from babyagi.runtime.heavy_imports import import_whole
from babyagi.tasks import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Prices in US dollars for a million tokens."""

    prompt_usd_per_mtok: float
    completion_usd_per_mtok: float

    def __post_init__(self) -> None:
        for name in ("prompt_usd_per_mtok", "completion_usd_per_mtok"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)!r}")

    def cost_usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost of a call, rounded up to whole micro-dollars."""
        # Dollars for a million tokens are micro-dollars for one. Rounding first keeps
        # floating-point noise from costing a micro-dollar.
        micro_dollars = prompt_tokens * self.prompt_usd_per_mtok
        micro_dollars += completion_tokens * self.completion_usd_per_mtok
        return math.ceil(round(micro_dollars, 6)) / 1_000_000


def find_price(
    name: str, *, base_url: str = "", chosen: tuple[float, float] | None = None
) -> Price | None:
    """Return the price of a model at an endpoint; None if it is unknown.

    Args:
        base_url: empty for OpenAI's own endpoint. At an endpoint that the table does not have, no
            model has a price.
        chosen: the price that the person set, in US dollars for a million tokens of prompts and
            of answers.
    """
    if chosen is not None:
        return Price(prompt_usd_per_mtok=chosen[0], completion_usd_per_mtok=chosen[1])
    if base_url and not _has_domain(base_url):
        return None
    import_whole("genai_prices")  # while no other thread imports a large package
    import genai_prices

    one_token = genai_prices.Usage(input_tokens=1, output_tokens=1)
    try:
        if base_url:
            found = genai_prices.calc_price(one_token, name, provider_api_url=base_url)
        else:
            found = genai_prices.calc_price(one_token, name, provider_id="openai")
    except (LookupError, ValueError):
        return None
    read, written = found.input_price * 1_000_000, found.output_price * 1_000_000
    return Price(prompt_usd_per_mtok=float(read), completion_usd_per_mtok=float(written))


def hold_money_limit(
    limits: Limits, *, unpriced: Sequence[str], is_explicit: bool
) -> tuple[Limits, str]:
    """Return the limits, and a notice for the person, which may be empty. If a model has no price,
    the default cost limit cannot be guaranteed: it is switched off, and the notice says so.

    Args:
        unpriced: the models without a price.
        is_explicit: whether a person set the cost limit.

    Raises:
        SettingsError: a person set the cost limit, and a model has no price.
    """
    if not limits.max_cost_usd or not unpriced:
        return limits, ""
    names = ", ".join(unpriced)
    if is_explicit:
        raise SettingsError(
            f"the money limit of ${limits.max_cost_usd:g} cannot be guaranteed",
            why=f"no price is known for {names}",
            fix="set BABYAGI_PRICE=IN/OUT (price; US dollars per million tokens), or switch "
            "the money limit off: --max-cost 0 (max_cost_usd)",
            guide="limits",
        )
    notice = f"no price is known for {names}: the default money limit is off, the limit of "
    notice += f"{limits.max_tokens:,} tokens still applies"
    return replace(limits, max_cost_usd=0.0), notice


def _has_domain(base_url: str) -> bool:
    """Return whether the address has a host name with a domain. Other addresses are not in the
    price table, which takes 0.2 s to load."""
    host = hostname_of(base_url)
    last = host.rpartition(".")[2]
    return last != host and not last.isdigit()
