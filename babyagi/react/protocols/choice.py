"""Finds protocols by their names, and chooses one for a model."""

from __future__ import annotations

from babyagi.llm.port import Abilities
from babyagi.react.protocols.base import AgentProtocol
from babyagi.react.protocols.json import HELD_JSON, JSON
from babyagi.react.protocols.native import NATIVE
from babyagi.react.protocols.text import text_protocol

AUTO = "auto"
PROTOCOL_NAMES = (AUTO, "native", "json", "text")
HELD = HELD_JSON.name  # a further protocol, which only `auto` chooses


def choose_protocol(known: Abilities) -> str:
    """Return the name of the protocol for a model with these abilities: native tool calls if it has
    made one, else JSON with a guaranteed schema if it follows schemas, else labelled text."""
    if known.takes_tools:
        return NATIVE.name
    return HELD if known.holds_schema else "text"


def step_down(name: str) -> str:
    """Return the name of the protocol to use if the model makes no calls in the protocol `name`."""
    return HELD if name == NATIVE.name else "text"


def find_protocol(name: str) -> AgentProtocol:
    """Return the protocol with this name; for `auto` the native one, with which `auto` begins.

    Raises:
        ValueError: there is no such protocol.
    """
    match name:
        case "auto" | "native":
            return NATIVE
        case "json":
            return JSON
        case "json with a schema":  # HELD
            return HELD_JSON
        case "text":
            return text_protocol()
    raise ValueError(f"there is no protocol {name!r}; there are: {', '.join(PROTOCOL_NAMES)}")
