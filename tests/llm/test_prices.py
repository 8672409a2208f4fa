import subprocess
import sys

import pytest

from babyagi.llm.prices import Price, find_price


def test_a_known_model_has_a_price_without_a_network():
    price = find_price("gpt-6-luna")

    assert price is not None and 0 < price.prompt_usd_per_mtok < price.completion_usd_per_mtok


def test_a_known_name_at_an_unknown_or_local_endpoint_has_no_price():
    assert find_price("gpt-6-luna", base_url="http://127.0.0.1:11434/v1") is None
    assert find_price("no-such-model-at-all") is None


def test_a_choice_of_the_person_takes_precedence():
    price = find_price("no-such-model-at-all", base_url="http://127.0.0.1:1/v1", chosen=(1.5, 0.0))

    assert price == Price(prompt_usd_per_mtok=1.5, completion_usd_per_mtok=0.0)


def test_cost_is_rounded_up_to_whole_micro_dollars():
    price = Price(prompt_usd_per_mtok=0.1, completion_usd_per_mtok=0.5)

    assert price.cost_usd(1, 0) == 0.000001
    assert price.cost_usd(30, 0) == 0.000003  # 30 · 0.1 is a little more than 3 in binary
    assert price.cost_usd(0, 0) == 0.0
    assert price.cost_usd(10_000_000, 1) == 1.000001


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_a_wrong_price_cannot_be_built(wrong):
    with pytest.raises(ValueError):
        Price(prompt_usd_per_mtok=wrong, completion_usd_per_mtok=1.0)


@pytest.mark.system
def test_importing_the_backends_loads_no_client():
    program = (
        "import sys, babyagi.llm.client, babyagi.llm.embeddings, babyagi.llm.prices, "
        "babyagi.llm.human;"
        "print(sorted({'openai', 'httpx2', 'genai_prices', 'numpy', 'pydantic'} & "
        "set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True
    )

    assert found.stdout.strip() == "[]"
