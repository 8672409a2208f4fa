"""Finds protocols by their names, and chooses one for a model."""

from __future__ import annotations

from dataclasses import replace

from babyagi.llm.port import Abilities
from babyagi.react.protocols.base import AgentProtocol, Conversation
from babyagi.react.protocols.json import HELD_JSON, JSON
from babyagi.react.protocols.native import NATIVE
from babyagi.react.protocols.text import text_protocol

AUTO = "auto"
PROTOCOL_NAMES = (AUTO, "native", "json", "text")
HELD = HELD_JSON.name  # a further protocol, which only `auto` chooses
_BY_NAME = {one.name: one for one in (NATIVE, JSON, HELD_JSON, text_protocol())} | {AUTO: NATIVE}


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
    if name not in _BY_NAME:
        raise ValueError(f"there is no protocol {name!r}; there are: {', '.join(PROTOCOL_NAMES)}")
    return _BY_NAME[name]


def speak(
    protocol: AgentProtocol, conversation: Conversation
) -> tuple[AgentProtocol, Conversation]:
    """Return the protocol, and the conversation, with which a model is asked. A model without tools
    is asked for plain text; only in a native call can it also say what is lacking."""
    if protocol is NATIVE or not conversation.is_plain:
        return protocol, conversation
    return NATIVE, replace(conversation, says_lacking=False)
