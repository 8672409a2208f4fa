import pytest

from babyagi.app.model_clients import missing_key
from babyagi.settings.fields import Settings
from babyagi.settings.values import Secret


@pytest.mark.parametrize(
    ("models", "has_key", "base_url", "is_missing"),
    [
        (["gpt-6-luna"], False, "", True),
        (["gpt-6-luna"], True, "", False),
        (["gpt-6-luna"], False, "http://127.0.0.1:1/v1", False),
        (["human", "rehearsal"], False, "", False),
        (["rehearsal", "gpt-6-luna"], False, "", True),
    ],
)
def test_a_key_is_missing_where_a_model_of_an_endpoint_is_asked_without_one(
    models, has_key, base_url, is_missing
):
    settings = Settings(openai_api_key=Secret("k" * has_key), openai_base_url=base_url)

    error = missing_key(settings, models)

    assert (error is not None) is is_missing
    assert error is None or "gpt-6-luna" in error.what
