"""Settings: the only code that reads the environment and configuration files. Each setting is
declared in `fields.py`."""

from babyagi.settings.fields import MODELS_WITHOUT_ENDPOINT, Settings, declared_fields
from babyagi.settings.load import (
    EnvFile,
    Loaded,
    Untrusted,
    bare_environment,
    describe_waiting,
    distrust_file,
    find_keys_in_clear,
    load_for_program,
    load_here,
    load_settings,
    render_env_example,
    render_value,
    trust_file,
    trusted_paths,
    variables_here,
)
from babyagi.settings.values import Declared, Secret

__all__ = [
    "MODELS_WITHOUT_ENDPOINT",
    "Declared",
    "EnvFile",
    "Loaded",
    "Secret",
    "Settings",
    "Untrusted",
    "bare_environment",
    "declared_fields",
    "describe_waiting",
    "distrust_file",
    "find_keys_in_clear",
    "load_for_program",
    "load_here",
    "load_settings",
    "render_env_example",
    "render_value",
    "trust_file",
    "trusted_paths",
    "variables_here",
]
