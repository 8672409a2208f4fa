"""Which optional parts of a request an endpoint takes, as learnt from its refusals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from babyagi.llm.faults import Refusal

_UNSUPPORTED = re.compile(
    (
        r"unsupported|not support|unknown|unrecognized|unexpected|not permitted|extra "
        r"inputs|invalid parameter"
    ),
    re.IGNORECASE,
)
_SCHEMA = re.compile(
    r"response_format|json_schema|json_object|text\.format|structured output|grammar", re.IGNORECASE
)
_OUTPUT_LIMIT = re.compile(r"max_(completion_)?tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What to leave out or to name otherwise. `schema_kind` is `json_schema`, `json_object` or
    empty.

    `has_swapped` says that the other name of the output's limit was tried already; a reply without
    a limit is never asked for.
    """

    temperature: float | None = None
    schema_kind: str = "json_schema"
    output_limit: str = "max_tokens"
    has_swapped: bool = False
    stores: bool = True  # whether `store: false` may be said
    stops: bool = True  # whether words that end the reply may be named

    def without(self, refusal: Refusal, sent: Mapping[str, Any]) -> Form | None:
        """Return the form without what the refusal names, None when it names nothing that was sent
        and can be left out."""
        words = f"{refusal.param} {refusal.message}"
        if "temperature" in sent and "temperature" in words:
            return replace(self, temperature=None)
        if ("response_format" in sent or "text" in sent) and _SCHEMA.search(words):
            return replace(
                self, schema_kind="json_object" if self.schema_kind == "json_schema" else ""
            )
        if not _UNSUPPORTED.search(refusal.words):
            return None
        if self.output_limit in sent and _OUTPUT_LIMIT.search(words) and not self.has_swapped:
            other = "max_completion_tokens" if self.output_limit == "max_tokens" else "max_tokens"
            return replace(self, output_limit=other, has_swapped=True)
        if "stop" in sent and re.search(r"\bstop\b", words):
            return replace(self, stops=False)
        if "store" in sent and re.search(r"\bstore\b", words):
            return replace(self, stores=False)
        return None
