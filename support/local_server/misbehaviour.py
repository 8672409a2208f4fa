"""A good answer in, the faulty one out."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from support.local_server.dialects import ChatRequest, render_stream
from support.local_server.faults import JSON_TYPE, MISSING, Fault, Json, Keys
from support.local_server.wire import HttpResponse


def misbehave(
    fault: Fault, *, path: str, request: ChatRequest | None, reply: Json, elsewhere: str
) -> HttpResponse:
    """Return the answer as the fault makes it. `reply` is the good answer, and is changed;
    `request` is None for embeddings."""
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    headers = {
        key: value.format(elsewhere=elsewhere + path, soon=soon)
        for key, value in fault.headers.items()
    }
    if fault.body is not None:
        return HttpResponse(status=fault.status, headers=headers, body=fault.body, wire=fault.wire)
    if fault.wire.name.startswith("STREAM") and request is not None:
        events = render_stream(path, request, reply)
        pieces = fault.script(events) if fault.script else events
        return HttpResponse(
            headers={"content-type": "text/event-stream"}, pieces=pieces, wire=fault.wire
        )
    for keys, value in fault.edits.get(path, ()):
        _edit(reply, keys, value)
    body = json.dumps(reply).encode()
    return HttpResponse(
        headers=JSON_TYPE | headers,
        body=fault.encode(body) if fault.encode else body,
        wire=fault.wire,
    )


def _edit(reply: Any, keys: Keys, value: object) -> None:
    *way, last = keys
    for key in way:
        reply = reply[key]
    if value is MISSING:
        del reply[last]
    else:
        reply[last] = value(reply[last]) if callable(value) else value
