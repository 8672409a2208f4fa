"""Checks before a run, so that no money is spent in vain: whether the models can be called, and
whether the index can be used."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from babyagi.app.backends import require_result_store
from babyagi.cli.text import Style, is_person_there, warn
from babyagi.errors import CredentialsError
from babyagi.settings.fields import (
    LLAMA_MODEL,
    ONNX_EMBEDDING_MODEL,
    Settings,
)

OPENAI_HOSTS = ("", "api.openai.com")
CONNECT_TIMEOUT_S = 2.0


def require_credentials(settings: Settings, models: Iterable[str] | None = None) -> None:
    """Check that everything that is needed to call the models is there.

    Args:
        models: the models that will be called; None means those of the settings.

    Raises:
        CredentialsError: the key of a model is missing, or the model is a person (`human`) and
            there is no terminal.
        SettingsError: a model is to run in this process, and its file cannot be used.
    """
    missing = missing_credentials(settings, models)
    if missing is not None:
        raise missing
    if LLAMA_MODEL in (settings.model_by_role.values() if models is None else models):
        from babyagi.llm.llama import require_model_file

        require_model_file(settings.llama_model_path)


def missing_credentials(
    settings: Settings, models: Iterable[str] | None = None
) -> CredentialsError | None:
    """Return an error if the key of a model is missing, or if a model is a person (`human`) and
    there is no terminal; else None. `models` as in `require_credentials`."""
    asked = set(settings.model_by_role.values() if models is None else models)
    if "human" in asked and not is_person_there():
        return CredentialsError(
            "LLM_MODEL=human needs a person at a terminal",
            why="standard input or standard error is not a terminal",
            fix="type the command on a terminal, or choose another model with LLM_MODEL",
            guide="models",
        )
    from babyagi.app.model_clients import missing_key

    return missing_key(settings, asked)


def require_embedder(settings: Settings, model: str = "") -> None:
    """Download missing files of the embedding model, if it is the model that runs in this process.

    Args:
        model: the embedding model; '' means that of the settings.

    Raises:
        SettingsError: the download failed.
    """
    if (model or settings.effective_embedding_model) == ONNX_EMBEDDING_MODEL:
        from babyagi.llm.embeddings import fetch_files

        fetch_files(lambda notice: warn(f"note: {notice}", Style.YELLOW))


def require_index(settings: Settings) -> None:
    """Check that the chosen index of results can be used, and download missing files of the
    embedding model. Raises `SettingsError` if results could not be embedded or indexed."""
    require_result_store(settings)
    require_embedder(settings)


def require_living_models(settings: Settings) -> None:
    """Raises `ModelRejectedError` if the settings name a model of OpenAI that OpenAI has shut
    down."""
    from babyagi.llm.errors import check_model_name

    if host_and_port(settings.openai_base_url)[0] in OPENAI_HOSTS:
        for name in settings.model_by_role.values():
            check_model_name(name)


def host_and_port(base_url: str) -> tuple[str, int]:
    """Return the host and the port of an address; the host of '' is ''."""
    parts = urlsplit(base_url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
