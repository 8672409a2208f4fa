"""Whether models can be asked with the key and the address that there are."""

from __future__ import annotations

from collections.abc import Iterable

from babyagi.errors import CredentialsError

WITHOUT_ENDPOINT = ("human", "rehearsal")


def missing_key(models: Iterable[str], *, has_key: bool, base_url: str) -> CredentialsError | None:
    """The error of whoever would ask these models without a key, None where none is needed or there
    is one."""
    asked = set(models) - set(WITHOUT_ENDPOINT)
    if not asked or has_key or base_url:
        return None
    return CredentialsError(
        f"no key for the model {', '.join(sorted(asked))}",
        why="OPENAI_API_KEY is not set in the environment or in a .env file",
        fix="OPENAI_API_KEY=… babyagi run …, or OPENAI_BASE_URL=http://127.0.0.1:11434/v1 "
        "for a local server, "
        "or babyagi demo, or LLM_MODEL=human",
        guide="models",
    )
