"""The protocols by their names."""

from __future__ import annotations

from babyagi.react.protocols.base import AgentProtocol
from babyagi.react.protocols.json import JSON
from babyagi.react.protocols.native import NATIVE
from babyagi.react.protocols.text import text_protocol

AUTO = "auto"
PROTOCOL_NAMES = (AUTO, "native", "json", "text")


def find_protocol(name: str) -> AgentProtocol:
    """Return the protocol of this name; `auto` begins with the native one.

    Raises:
        ValueError: there is no such protocol.
    """
    match name:
        case "auto" | "native":
            return NATIVE
        case "json":
            return JSON
        case "text":
            return text_protocol()
    raise ValueError(f"there is no protocol {name!r}; there are: {', '.join(PROTOCOL_NAMES)}")
