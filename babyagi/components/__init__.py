"""Agents, pipelines and tools that a file of YAML describes."""

from babyagi.runtime.heavy_imports import import_whole

# in its turn, because other threads may be importing parts of it
import_whole("pydantic.main", "pydantic.types", "pydantic.functional_validators")
