"""Everything that an endpoint may do wrong, by name, in tables.

A fault changes one thing: what the model says, the reply's JSON, its bytes, its status, or the way
it travels. So a fault that a
client should survive carries the true answer. Faults of a parameter strike only while the request
sends that parameter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from babyagi.llm.prompt import ToolCall
from support.local_server.dialects import CHAT, EMBEDDINGS, RESPONSES, Answer, ChatRequest, event
from support.local_server.wire import Wire

Json = dict[str, Any]
Keys = tuple[str | int, ...]

ALL = frozenset({CHAT, RESPONSES, EMBEDDINGS})
BOTH = frozenset({CHAT, RESPONSES})
MISSING = object()
LOGIN_PAGE = b"<html>login</html>"
HUGE_TEXT_BYTES = 50 * 2**20
JSON_TYPE = {"content-type": "application/json"}
_HTML_TYPE = {"content-type": "text/html; charset=utf-8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One misbehaviour. Header values may hold `{elsewhere}` (the other host's URL) and `{soon}` (a
    date two seconds ahead)."""

    name: str
    paths: frozenset[str] = ALL
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None  # in place of the reply
    says: Callable[[ChatRequest, Answer], Answer] | None = None
    # by path; MISSING deletes, a callable maps
    edits: Mapping[str, Sequence[tuple[Keys, Any]]] = field(default_factory=dict)
    encode: Callable[[bytes], bytes] | None = None
    script: Callable[[list[bytes]], list[bytes]] | None = None  # the events of a stream
    wire: Wire = Wire.WHOLE
    needs_stream: bool = False
    strikes: Callable[[Mapping[str, Any]], bool] = lambda body: True

    @property
    def is_billed(self) -> bool:
        """Whether the model behind the endpoint did its work: its answer was made, whatever became
        of it."""
        return (
            self.body is None and self.status == 200 and self.wire not in (Wire.RESET, Wire.CLOSE)
        )

    @property
    def is_good_reply(self) -> bool:
        """Whether only the model misbehaves, if anything: the reply itself is well made and travels
        well."""
        return not (
            self.edits
            or self.encode
            or self.needs_stream
            or self.body is not None
            or self.wire is not Wire.WHOLE
        )


# -- errors with a status
# --------------------------------------------------------------------------------------------------


def error_body(
    message: str, kind: str = "invalid_request_error", code: object = None, param: str | None = None
) -> bytes:
    return json.dumps(
        {"error": {"message": message, "type": kind, "param": param, "code": code}}
    ).encode()


_NO_CONTEXT = (
    "This model's maximum context length is {} tokens. However, your messages resulted in {} "
    "tokens. Please shorten them."
)
_RATE = {"kind": "rate_limit_error", "code": "rate_limit_exceeded"}
_ERRORS: tuple[tuple[str, int, bytes, Mapping[str, str]], ...] = (
    ("400-invalid", 400, error_body("bad thing"), {}),
    (
        "400-context-length",
        400,
        error_body(
            _NO_CONTEXT.format(8192, 9001), code="context_length_exceeded", param="messages"
        ),
        {},
    ),
    (
        "400-context-vllm",
        400,
        json.dumps(
            {
                "object": "error",
                "message": _NO_CONTEXT.format(4096, 5000),
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        ).encode(),
        {},
    ),
    (
        "400-context-llamacpp",
        400,
        error_body(
            "the request exceeds the available context size. try increasing the context size",
            "exceed_context_size_error",
            400,
        ),
        {},
    ),
    ("413-html", 413, b"<html><h1>413 Request Entity Too Large</h1></html>", _HTML_TYPE),
    (
        "400-content-filter-azure",
        400,
        error_body(
            (
                "The response was filtered due to the prompt triggering Azure OpenAI's content "
                "policy."
            ),
            "",
            "content_filter",
            "prompt",
        ),
        {},
    ),
    (
        "422-fastapi",
        422,
        (
            b'{"detail": [{"loc": ["body", "messages"], "msg": "field required", "type": '
            b'"missing"}]}'
        ),
        {},
    ),
    ("400-should-retry", 400, error_body("flaky"), {"x-should-retry": "true"}),
    ("401", 401, error_body("Incorrect API key provided: sk-abc***", code="invalid_api_key"), {}),
    (
        "403-region",
        403,
        error_body(
            "Country, region, or territory not supported",
            "request_forbidden",
            "unsupported_country_region_territory",
        ),
        {},
    ),
    (
        "404-model",
        404,
        error_body(
            "The model `gpt-x` does not exist or you do not have access to it.",
            code="model_not_found",
        ),
        {},
    ),
    (
        "404-ollama",
        404,
        error_body('model "llama9" not found, try pulling it first', "api_error"),
        {},
    ),
    ("404-html", 404, b"<html><h1>404 Not Found</h1></html>", _HTML_TYPE),
    ("408", 408, error_body("timeout", "timeout"), {}),
    ("409", 409, error_body("conflict", "conflict"), {}),
    ("500", 500, error_body("The server had an error", "server_error"), {}),
    ("502-html", 502, b"<html><h1>502 Bad Gateway</h1></html>", _HTML_TYPE),
    ("503-retry", 503, error_body("overloaded", "server_error"), {"retry-after": "1"}),
    ("504", 504, b"", {}),
    ("529", 529, error_body("overloaded", "overloaded_error"), {}),
    ("429-plain", 429, error_body("Rate limit reached for requests", **_RATE), {}),
    ("429-retry-ms", 429, error_body("slow", **_RATE), {"retry-after-ms": "200"}),
    ("429-retry-date", 429, error_body("slow", **_RATE), {"retry-after": "{soon}"}),
    ("429-retry-garbage", 429, error_body("slow", **_RATE), {"retry-after": "in a while"}),
    ("429-retry-negative", 429, error_body("slow", **_RATE), {"retry-after": "-5"}),
    ("429-no-retry-header", 429, error_body("no", **_RATE), {"x-should-retry": "false"}),
    (
        "429-quota",
        429,
        error_body(
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        ),
        {},
    ),
    ("307-other-host", 307, b"", {"location": "{elsewhere}"}),
    ("302-login", 302, b"", {"location": "/login"}),
    ("200-error-body", 200, error_body("The server had an error", "server_error"), {}),
    ("200-html", 200, LOGIN_PAGE, _HTML_TYPE),
    ("200-empty", 200, b"", {}),
    ("200-null", 200, b"null", {}),
    ("200-array", 200, b"[]", {}),
    ("200-object", 200, b"{}", {}),
    ("200-string", 200, b'"hi"', {}),
    ("200-deep-json", 200, b"[" * 100_000, {}),
)


def _retry_after(seconds: str) -> Fault:
    body = error_body("slow", **_RATE)
    return Fault(
        name=f"429-retry-{seconds}",
        status=429,
        headers={**JSON_TYPE, "retry-after": seconds},
        body=body,
    )


def _unsupported_param(name: str) -> Fault:
    body = error_body(
        f"Unsupported parameter: '{name}' is not supported with this model.",
        code="unsupported_parameter",
        param=name,
    )
    return Fault(
        name=f"400-param:{name}",
        status=400,
        headers=JSON_TYPE,
        body=body,
        strikes=lambda sent: name in sent,
    )


_PARAM_FAULTS = (
    replace(
        _unsupported_param("max_tokens"), name="400-max-tokens-unsupported", paths=frozenset({CHAT})
    ),
    Fault(
        name="400-temperature-unsupported",
        paths=BOTH,
        status=400,
        headers=JSON_TYPE,
        body=error_body(
            (
                "Unsupported value: 'temperature' does not support 0.2 with this model. Only "
                "the default (1) value is supported."
            ),
            code="unsupported_value",
            param="temperature",
        ),
        strikes=lambda sent: sent.get("temperature", 1) != 1,
    ),
    Fault(
        name="400-response-format",
        paths=frozenset({CHAT}),
        status=400,
        headers=JSON_TYPE,
        body=error_body(
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported "
            "with this model."
        ),
        strikes=lambda sent: (sent.get("response_format") or {}).get("type") == "json_schema",
    ),
    Fault(
        name="400-tools-ollama",
        paths=BOTH,
        status=400,
        headers=JSON_TYPE,
        body=error_body(
            "registry.ollama.ai/library/gemma:latest does not support tools", "api_error"
        ),
        strikes=lambda sent: bool(sent.get("tools")),
    ),
)

# -- what travels wrongly
# --------------------------------------------------------------------------------------------------

_WIRES = {
    "c-reset": Wire.RESET,
    "c-close": Wire.CLOSE,
    "c-truncated": Wire.TRUNCATED,
    "c-hang": Wire.HANG,
    "c-slow-body": Wire.SLOW,
}


def _with_bad_utf8(body: bytes) -> bytes:
    return body[: len(body) // 2] + b"\xff" + body[len(body) // 2 :]


def _with_first_keys_empty(body: bytes) -> bytes:
    return b'{"choices": [], "output": [], "data": [], ' + body[1:]


_ENCODINGS: Mapping[str, tuple[Callable[[bytes], bytes], Mapping[str, str]]] = {
    "200-bom": (lambda body: b"\xef\xbb\xbf" + body, JSON_TYPE),
    "200-wrong-ct": (lambda body: body, {"content-type": "text/plain"}),
    "200-dup-keys": (_with_first_keys_empty, JSON_TYPE),
    "200-gzip-garbage": (
        lambda body: b"\x00 this is not gzip",
        {**JSON_TYPE, "content-encoding": "gzip"},
    ),
    "200-truncated-json": (lambda body: body[:60], JSON_TYPE),
    "200-bad-utf8": (_with_bad_utf8, JSON_TYPE),
}

# -- what the reply's JSON has wrongly
# ----------------------------------------------------------------------------------------

_CHOICE: Keys = ("choices", 0)
_MESSAGE: Keys = (*_CHOICE, "message")
_CALL: Keys = (*_MESSAGE, "tool_calls", 0)
_PART: Keys = ("output", 0, "content", 0)


def _every_number(value: object) -> Callable[[Any], Any]:
    def change(given: Any) -> Any:
        if isinstance(given, dict):
            return {key: change(inner) for key, inner in given.items()}
        return value(given) if callable(value) else value

    return change


def _as_parts(text: str | None) -> list[Json]:
    text = text or ""
    return [
        {"type": "text", "text": text[: len(text) // 2]},
        {"type": "text", "text": text[len(text) // 2 :]},
    ]


def _custom_call(calls: list[Json]) -> list[Json]:
    return [
        {
            "id": "c",
            "type": "custom",
            "custom": {"name": calls[0]["function"]["name"], "input": "x"},
        }
    ]


def _custom_item(items: list[Json]) -> list[Json]:
    return [
        {
            "type": "custom_tool_call",
            "id": "ctc_1",
            "call_id": "c",
            "name": items[-1]["name"],
            "input": "x",
        }
    ]


def _legacy_message(message: Json) -> Json:
    return {
        "role": "assistant",
        "content": None,
        "function_call": message["tool_calls"][0]["function"],
    }


def _usage(value: object) -> dict[str, list[tuple[Keys, Any]]]:
    return {path: [(("usage",), value)] for path in ALL}


_EDITS: Mapping[str, Mapping[str, Sequence[tuple[Keys, Any]]]] = {
    "finish-null": {CHAT: [((*_CHOICE, "finish_reason"), None)], RESPONSES: [(("status",), None)]},
    "finish-unknown": {
        CHAT: [((*_CHOICE, "finish_reason"), "eos")],
        RESPONSES: [(("status",), "eos")],
    },
    "choices-empty": {CHAT: [(("choices",), [])], RESPONSES: [(("output",), [])]},
    "choices-null": {CHAT: [(("choices",), None)], RESPONSES: [(("output",), None)]},
    "choices-missing": {CHAT: [(("choices",), MISSING)], RESPONSES: [(("output",), MISSING)]},
    "message-null": {CHAT: [(_MESSAGE, None)], RESPONSES: [(("output", 0), None)]},
    "content-null": {CHAT: [((*_MESSAGE, "content"), None)], RESPONSES: [((*_PART, "text"), None)]},
    "content-parts": {CHAT: [((*_MESSAGE, "content"), _as_parts)]},
    "200-nan": _usage(_every_number(float("nan"))),
    "200-dup-keys": _usage(MISSING),
    "usage-strings": _usage(_every_number(str)),
    "usage-missing": _usage(MISSING),
    "usage-null": _usage(None),
    "usage-negative": _usage(_every_number(-10)),
    "usage-huge": _usage(_every_number(10**18)),
    "tool-args-object": {
        CHAT: [((*_CALL, "function", "arguments"), json.loads)],
        RESPONSES: [(("output", -1, "arguments"), json.loads)],
    },
    "tool-no-id": {
        CHAT: [((*_CALL, "id"), MISSING)],
        RESPONSES: [(("output", -1, "call_id"), MISSING)],
    },
    "tool-custom-type": {
        CHAT: [((*_MESSAGE, "tool_calls"), _custom_call)],
        RESPONSES: [(("output",), _custom_item)],
    },
    "legacy-function-call": {
        CHAT: [(_MESSAGE, _legacy_message), ((*_CHOICE, "finish_reason"), "function_call")]
    },
}

# -- what the model says
# --------------------------------------------------------------------------------------------------


def _text(**changes: Any) -> Callable[[ChatRequest, Answer], Answer]:
    return lambda request, answer: Answer(usage=answer.usage, **changes)


def _prefix(text: str) -> Callable[[ChatRequest, Answer], Answer]:
    return lambda request, answer: replace(answer, text=text + answer.text)


def _calls(
    *arguments: str,
    ids: Sequence[str] = ("call_1",),
    tool: str = "",
    keeps: bool = False,
    reason: str = "",
) -> Callable[[ChatRequest, Answer], Answer]:
    """Return a model that calls a tool with each of the arguments; `keeps`: with those that it
    meant, if it meant a call."""

    def say(request: ChatRequest, answer: Answer) -> Answer:
        name = tool or (request.tools[0].name if request.tools else "search")
        wanted = [(name, text) for text in arguments]
        if keeps and answer.tool_calls:
            wanted = [(answer.tool_calls[0].name, answer.tool_calls[0].arguments)] * len(arguments)
        calls = tuple(
            ToolCall(id=ids[place % len(ids)], name=name, arguments=text)
            for place, (name, text) in enumerate(wanted)
        )
        return Answer(tool_calls=calls, finish_reason=reason, usage=answer.usage)

    return say


_SAYINGS: Mapping[str, Callable[[ChatRequest, Answer], Answer]] = {
    "200-lone-surrogate": _prefix("\ud800 "),
    "ansi": _prefix("\x1b[2J\x1b]0;pwn\x07"),
    "think-block": _prefix("<think>secret chain</think>"),
    "200-50mb": lambda request, answer: replace(answer, text="A" * HUGE_TEXT_BYTES, tool_calls=()),
    "content-null": _text(text=""),
    "content-empty": _text(text=""),
    "finish-filter": _text(text="", finish_reason="content_filter"),
    "finish-length": _text(text='{"tasks": ["a", "b', finish_reason="length"),
    "refusal": _text(refusal="I cannot help with that."),
    "tool-finish-stop": _calls('{"q":"a"}', keeps=True, reason="stop"),
    "tool-bad-json": _calls('{"q": "x'),
    "tool-null-args": _calls("null"),
    "tool-unknown": _calls("{}", tool="no_such_tool"),
    "tool-custom-type": _calls("{}"),
    "tool-empty-args": _calls(""),
    "tool-args-object": _calls('{"q":"x"}', keeps=True),
    "tool-no-id": _calls("{}", keeps=True),
    "tool-dup-id": _calls('{"q":"a"}', '{"q":"b"}', keeps=True),
    "tool-200": _calls(
        *(f'{{"q":"{n}"}}' for n in range(200)), ids=[f"c{n}" for n in range(200)], keeps=True
    ),
    "legacy-function-call": _calls("{}", keeps=True),
    "s-tool-split": _calls('{"q":"x"}', keeps=True),
    "s-tool-cut": _calls('{"path": "a.markdown"}'),
}

# -- streams
# --------------------------------------------------------------------------------------------------

_NO_CHOICES = event(
    {
        "id": "chatcmpl-s",
        "object": "chat.completion.chunk",
        "choices": [],
        "prompt_filter_results": [],
    }
)
_ERROR_DATA = event(
    {"error": {"message": "boom", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}
)
_ERROR_EVENT = event({"type": "server_error", "code": "server_error", "message": "boom"}, "error")


def _split_characters(events: list[bytes]) -> list[bytes]:
    """Return the stream with a cut after every byte of every character that has more than one."""
    return re.findall(rb"[\x80-\xff]|[\x00-\x7f]+", b"".join(events))


def _first_two(*more: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda events: [*events[:2], *more]


_STREAMS: Mapping[str, tuple[Callable[[list[bytes]], list[bytes]] | None, Wire, frozenset[str]]] = {
    "s-ok": (None, Wire.STREAM, BOTH),
    "s-no-done": (lambda events: events[:-1], Wire.STREAM, frozenset({CHAT})),
    "s-empty-choices": (lambda events: [_NO_CHOICES, *events], Wire.STREAM, frozenset({CHAT})),
    "s-utf8-split": (_split_characters, Wire.STREAM, BOTH),
    "s-crlf": (
        lambda events: [piece.replace(b"\n", b"\r\n") for piece in events],
        Wire.STREAM,
        BOTH,
    ),
    "s-json-not-sse": (None, Wire.WHOLE, BOTH),
    "s-tool-split": (None, Wire.STREAM, frozenset({CHAT})),
    "s-tool-cut": (lambda events: events[:3], Wire.STREAM, frozenset({CHAT})),
    "s-cut-clean": (_first_two(), Wire.STREAM, BOTH),
    "s-cut-nochunkend": (_first_two(), Wire.STREAM_NO_END, BOTH),
    "s-cut-reset": (_first_two(), Wire.STREAM_RESET, BOTH),
    "s-http10-cut": (_first_two(), Wire.STREAM_HTTP10, BOTH),
    "s-error-mid": (_first_two(_ERROR_DATA), Wire.STREAM, BOTH),
    "s-event-error": (_first_two(_ERROR_EVENT), Wire.STREAM, BOTH),
    "s-bad-json": (_first_two(b"data: {bad json}\n\n"), Wire.STREAM, BOTH),
    "s-hang-after-first": (_first_two(), Wire.STREAM_HANG, BOTH),
    "s-keepalive-forever": (_first_two(), Wire.STREAM_COMMENTS, BOTH),
    "s-endless": (_first_two(), Wire.STREAM_ENDLESS, BOTH),
}

# -- all of them
# --------------------------------------------------------------------------------------------------


def _build() -> dict[str, Fault]:
    faults = [
        Fault(name="ok"),
        *_PARAM_FAULTS,
        *(_retry_after(seconds) for seconds in ("1", "100", "300")),
    ]
    for name, status, body, headers in _ERRORS:
        faults.append(Fault(name=name, status=status, body=body, headers={**JSON_TYPE, **headers}))
    faults += [Fault(name=name, wire=wire) for name, wire in _WIRES.items()]
    for name, (script, wire, paths) in _STREAMS.items():
        faults.append(
            Fault(
                name=name,
                script=script,
                wire=wire,
                paths=paths,
                needs_stream=True,
                says=_SAYINGS.get(name),
            )
        )
    for name, (encode, headers) in _ENCODINGS.items():
        faults.append(Fault(name=name, encode=encode, headers=headers, edits=_EDITS.get(name, {})))
    built = {fault.name: fault for fault in faults}
    for name in {*_EDITS, *_SAYINGS} - set(built):
        edits = _EDITS.get(name, {})
        built[name] = Fault(
            name=name, edits=edits, says=_SAYINGS.get(name), paths=frozenset(edits) or BOTH
        )
    return built


FAULTS: Mapping[str, Fault] = _build()

_SLOW_DOWN = error_body("slow", **_RATE)
_MORE = {
    fault.name: fault
    for fault in (
        Fault(
            name="429-year-9999",
            status=429,
            headers={"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"},
            body=_SLOW_DOWN,
        ),
        Fault(name="429-ms-huge", status=429, headers={"retry-after-ms": "1e14"}, body=_SLOW_DOWN),
        Fault(
            name="503-huge",
            status=503,
            headers={"retry-after": "100000000"},
            body=error_body("overloaded"),
        ),
        *(
            Fault(name=f"{status}-loop", status=status, headers={"location": CHAT}, body=b"")
            for status in (301, 302, 303, 307, 308)
        ),
        Fault(name="308-other-host", status=308, headers={"location": "{elsewhere}"}, body=b""),
        Fault(
            name="hang-after-header", paths=BOTH, script=lambda events: [], wire=Wire.STREAM_HANG
        ),
        Fault(
            name="hang-mid-body",
            paths=BOTH,
            script=lambda events: [b'{"choices": [{"mess'],
            wire=Wire.STREAM_HANG,
        ),
        Fault(
            name="drip",
            paths=BOTH,
            script=lambda events: [b'{"choices": ['],
            wire=Wire.STREAM_COMMENTS,
        ),
        Fault(
            name="reset-mid-body",
            paths=BOTH,
            script=lambda events: [b'{"choices": ['],
            wire=Wire.STREAM_RESET,
        ),
        Fault(
            name="endless-body",
            paths=BOTH,
            script=lambda events: [b" " * 2**18],
            wire=Wire.STREAM_ENDLESS,
        ),
    )
}


def fault_named(name: str) -> Fault | None:
    """Return the fault of that name; beside those in `FAULTS` and `_MORE`, `429-retry-SECONDS` and
    `400-param:NAME` are faults."""
    if found := re.fullmatch(r"429-retry-(\d+(?:\.\d+)?)", name):
        return _retry_after(found.group(1))
    if found := re.fullmatch(r"400-param:(\w+)", name):
        return _unsupported_param(found.group(1))
    return FAULTS.get(name) or _MORE.get(name)


def applies_to(fault: Fault, path: str) -> bool:
    return path in fault.paths
