"""Settings: the only code that reads the environment and configuration files. One setting is declared in `fields.py`."""

from babyagi.settings.fields import MODELS_WITHOUT_ENDPOINT, Settings, declared_fields
from babyagi.settings.load import (
    Loaded,
    find_keys_in_clear,
    load_for_program,
    load_here,
    load_settings,
    render_env_example,
    render_value,
    variables_here,
)
from babyagi.settings.values import Declared, Secret

__all__ = [
    "MODELS_WITHOUT_ENDPOINT",
    "Declared",
    "Loaded",
    "Secret",
    "Settings",
    "declared_fields",
    "find_keys_in_clear",
    "load_for_program",
    "load_here",
    "load_settings",
    "render_env_example",
    "render_value",
    "variables_here",
]
