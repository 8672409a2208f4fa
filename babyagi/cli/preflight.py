"""Whether the models can be asked at all, found out before anything is paid for."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from babyagi.cli.text import Style, is_person_there, warn
from babyagi.errors import CredentialsError, ModelUnavailableError, SettingsError
from babyagi.net.addresses import is_loopback
from babyagi.redaction import redact_url
from babyagi.settings.fields import (
    LLAMA_MODEL,
    MODELS_WITHOUT_ENDPOINT,
    ONNX_EMBEDDING_MODEL,
    Settings,
)

OPENAI_HOSTS = ("", "api.openai.com")
CONNECT_TIMEOUT_S = 2.0


def require_credentials(settings: Settings, models: Iterable[str] | None = None) -> None:
    """Raise `CredentialsError` when a model needs a key and there is none, or needs a person and
    nobody is there; `SettingsError` when one shall run in this process and cannot.

    Args:
        models: the models that will be asked; those of the settings when not given.
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
    """Return what `require_credentials` would raise."""
    asked = set(settings.model_by_role.values() if models is None else models)
    if "human" in asked and not is_person_there():
        return CredentialsError(
            "LLM_MODEL=human needs somebody at a terminal",
            why="standard input or standard error is no terminal",
            fix="start it on a terminal, or choose another model with LLM_MODEL",
            guide="models",
        )
    from babyagi.llm.client import missing_key

    return missing_key(
        asked, has_key=bool(settings.openai_api_key), base_url=settings.openai_base_url
    )


def require_folder(settings: Settings) -> None:
    """Raise `SettingsError` when the folder that tasks shall read is none, before an objective is
    made for it."""
    folder = settings.files
    if folder is None or folder.is_dir():
        return
    is_there = folder.exists()
    raise SettingsError(
        f"{folder} is a file, and no folder" if is_there else f"there is no folder {folder}",
        why="--files, or BABYAGI_FILES, names the folder that tasks may read",
        fix=f"--files {folder.parent}, or another folder" if is_there else "correct the name",
        guide="tools",
    )


def require_embedder(settings: Settings, model: str = "") -> None:
    """Fetch the files of an embedding model that runs here, if a person has chosen it and they are
    not here yet.

    Args:
        model: that of the settings when not given.

    Raises:
        SettingsError: they cannot be fetched.
    """
    if (model or settings.effective_embedding_model) == ONNX_EMBEDDING_MODEL:
        from babyagi.llm.embeddings import fetch_files

        fetch_files(lambda notice: warn(f"note: {notice}", Style.YELLOW))


def require_living_models(settings: Settings) -> None:
    """Raise `ModelRejectedError` when OpenAI is to be asked for a model that it has shut down."""
    from babyagi.llm.errors import check_model_name

    if host_and_port(settings.openai_base_url)[0] in OPENAI_HOSTS:
        for name in settings.model_by_role.values():
            check_model_name(name)


def require_listener(settings: Settings, models: Iterable[str]) -> None:
    """Raise `ModelUnavailableError` when the models are behind a port of this machine that nobody
    listens on.

    Elsewhere a refusal may be a proxy's or an outage's, and the run waits for its end.
    """
    host, port = host_and_port(settings.openai_base_url)
    if not is_loopback(host) or set(models) <= set(MODELS_WITHOUT_ENDPOINT):
        return
    try:
        socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S).close()
    except ConnectionRefusedError as error:
        raise ModelUnavailableError(
            f"nobody listens at {host}:{port}",
            why=(
                f"OPENAI_BASE_URL is {redact_url(settings.openai_base_url)}, and the "
                "connection was refused"
            ),
            fix="start the server or correct OPENAI_BASE_URL, then type the same again",
        ) from error
    except OSError:
        return  # the run sees what it is, and waits where waiting helps


def host_and_port(base_url: str) -> tuple[str, int]:
    """The host (empty when there is no address) and the port that the address means."""
    parts = urlsplit(base_url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
