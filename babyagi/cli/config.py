"""What `babyagi config` shows: every setting, its value, and where it was set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from babyagi.cli.text import Line, Style, fit, one_line, pad
from babyagi.redaction import redact_url
from babyagi.settings import Loaded, declared_fields, render_value
from babyagi.settings.values import Declared, parse_url


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownValue:
    """One setting; `value` is text that may be shown, None where nothing is set. `waits` says what
    a file that nobody trusts has for it."""

    name: str
    label: str
    value: str | None
    source: str
    help: str
    waits: str = ""

    def to_json(self) -> dict[str, Any]:
        waits = {"waits": self.waits} if self.waits else {}
        return {
            "name": self.name,
            "variable": self.label,
            "value": self.value,
            "source": self.source,
            **waits,
        }


def list_values(loaded: Loaded) -> list[ShownValue]:
    """Every declared setting, in the order of the example file."""
    waits = {
        found.name: f"{found.variable}={found.shown} in {found.file.name}"
        for found in reversed(loaded.waiting)
    }
    return [
        ShownValue(
            name=name,
            label=declared.label,
            value=_show(declared, render_value(getattr(loaded.settings, name))) or None,
            source=loaded.sources[name],
            help=declared.default_text,
            waits=waits.get(name, ""),
        )
        for name, declared in declared_fields().items()
    ]


def _show(declared: Declared, value: str) -> str:
    return redact_url(value) if declared.parse is parse_url and value else value


def render_values(values: Sequence[ShownValue], width: int) -> list[Line]:
    label_width = max(len(value.label) for value in values)
    source_width = max(len(value.source) for value in values)
    lines = []
    for value in values:
        text = value.value if value.value is not None else f"({value.help or 'not set'})"
        room = max(20, width - label_width - source_width - 4)
        style = Style.DIM if value.source == "default" else Style.PLAIN
        lines.append(
            Line(
                (
                    f"{pad(value.label, label_width)}  {pad(value.source, source_width)}  "
                    f"{fit(text, room)}"
                ),
                style,
            )
        )
        if value.waits:
            lines.append(
                Line(
                    f"{pad('', label_width)}  waits for trust: {one_line(value.waits)}",
                    Style.YELLOW,
                )
            )
    return lines
