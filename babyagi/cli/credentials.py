"""Whether a model can be asked at all, found out before anything is opened or paid for."""

from __future__ import annotations

from collections.abc import Iterable

from babyagi.cli.text import is_person_there
from babyagi.errors import CredentialsError
from babyagi.settings import Settings
from babyagi.settings.fields import MODELS_WITHOUT_ENDPOINT


def require_credentials(settings: Settings, models: Iterable[str] | None = None) -> None:
    """Raise `CredentialsError` when a model needs a key and there is none, or needs a person and nobody is there.

    Args:
        models: the models that will be asked; those of the settings when not given.
    """
    missing = missing_credentials(settings, models)
    if missing is not None:
        raise missing


def missing_credentials(settings: Settings, models: Iterable[str] | None = None) -> CredentialsError | None:
    """Return what `require_credentials` would raise."""
    asked = set(settings.model_by_role.values() if models is None else models)
    if "human" in asked and not is_person_there():
        return CredentialsError(
            "LLM_MODEL=human needs somebody at a terminal",
            why="standard input or standard error is no terminal",
            fix="start it on a terminal, or choose another model with LLM_MODEL",
            guide="models",
        )
    asked -= set(MODELS_WITHOUT_ENDPOINT)
    if not asked or settings.openai_api_key or settings.openai_base_url:
        return None
    return CredentialsError(
        f"no key for the model {', '.join(sorted(asked))}",
        why="OPENAI_API_KEY is not set in the environment or in a .env file",
        fix="OPENAI_API_KEY=… babyagi run …, or OPENAI_BASE_URL=http://127.0.0.1:11434/v1 for a local server, "
        "or babyagi demo, or LLM_MODEL=human",
        guide="models",
    )
