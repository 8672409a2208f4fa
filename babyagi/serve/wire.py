"""Parses requests, with limits of size and time, and writes answers and errors as HTTP responses.

Errors have the texts that the command line shows, in the form of problem details (RFC 9457).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from babyagi.errors import (
    BabyagiError,
    ContextTooLongError,
    IndexUnavailableError,
    LimitReachedError,
    ModelUnavailableError,
    NotFoundError,
    RequestError,
    SettingsError,
    StoreUnavailableError,
    StoreUnusableError,
    find_fix,
    kind_of,
)
from babyagi.redaction import redact
from babyagi.serve.door import WRONG_S
from babyagi.text import clean
from babyagi.verbs.verb_table import (
    Answer,
    clean_json,
    read_given,
    shape,
    vars_of,
)

MAX_BODY_BYTES = 1_000_000
BODY_TIMEOUT_S = 15.0
MAX_PARAMETERS = 50
PROBLEM = "application/problem+json"
_NO_MARKUP = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
RETRY_AFTER_S = {503: "2", 429: str(WRONG_S)}  # by status

_ERRORS_BY_STATUS: Mapping[int, tuple[type[BabyagiError], ...]] = {
    404: (NotFoundError,),
    422: (SettingsError, ContextTooLongError),
    503: (
        StoreUnavailableError,
        StoreUnusableError,
        IndexUnavailableError,
        ModelUnavailableError,
    ),
}
_OTHER_STATUS = 409

# -- requests
# --------------------------------------------------------------------------------------------------


async def read_body(request: Request) -> bytes:
    """Return the request's body. Raises `RequestError` if it has more than `MAX_BODY_BYTES`, is
    incomplete, or takes longer than `BODY_TIMEOUT_S`."""
    most = f"a body may have at most {MAX_BODY_BYTES:,} bytes"
    too_long = RequestError("the body is too long", most, status=413)
    said = request.headers.get("content-length", "0")
    if not (said.isascii() and said.isdecimal() and len(said) < 18) or int(said) > MAX_BODY_BYTES:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise too_long
    except ClientDisconnect:
        raise RequestError("the body is incomplete", status=400) from None
    except TimeoutError:
        raise RequestError("the body did not arrive in time", status=408) from None
    return bytes(body)


def parse_body(data: bytes, content_type: str, hint: type) -> Any:
    """Convert a JSON body to a value of the type `hint`. An empty body is read as an empty object.
    Raises `RequestError` if the body is not JSON or does not fit the type."""
    if data and content_type.partition(";")[0].strip().casefold() != "application/json":
        fix = "send JSON with Content-Type: application/json"
        raise RequestError("the body is not sent as JSON", fix, status=415)
    try:
        text = (data or b"{}").decode("utf-8")
        value = clean_json(json.loads(text, object_pairs_hook=_require_once))
    except (ValueError, RecursionError):
        why = "it is not valid JSON, or has a field twice"
        raise RequestError("the body is not acceptable JSON", why, status=400) from None
    return read_given(value, "the body", hint, is_strict=True)


def parse_parameters(pairs: Sequence[tuple[str, str]], hint: type) -> Any:
    """Convert query parameters, or the fields of a form, to a value of the type `hint`. A parameter
    may be repeated if its type is a list.

    Raises:
        RequestError: a parameter is unknown, has an invalid value, or may not be repeated.
    """
    if len(pairs) > MAX_PARAMETERS:
        raise RequestError(f"there are more than {MAX_PARAMETERS} parameters", status=400)
    fields = shape(hint).schema["properties"]
    value: dict[str, Any] = {}
    for name, text in pairs:
        if fields.get(name, {}).get("type") == "array":
            value.setdefault(name, []).append(clean(text))
        elif name in value:
            raise RequestError(f"the parameter {name[:100]!r} is given twice", status=400)
        else:
            value[name] = clean(text)
    found = read_given(value, "the query", hint, is_strict=False)
    clean_json(vars_of(found))  # refuses a number that is too large
    return found


def _require_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as an object. Raises `ValueError` if a field occurs twice, because programs
    differ in which of the two they use."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field occurs twice")
    return found


# -- answers
# --------------------------------------------------------------------------------------------------


def write_answer(answer: Answer, request: Request) -> Response:
    """Return the HTTP response for an answer."""
    data = answer.text if answer.text is not None else to_bytes(answer.value)
    headers = {"cache-control": "no-cache, private"}
    if answer.next is not None:
        url = request.url.include_query_params(**answer.next)
        headers["link"] = f'<{url.path}?{url.query}>; rel="next"'
    if answer.file_name:
        headers["content-disposition"] = f'attachment; filename="{answer.file_name}"'
    return Response(data, status_code=answer.status, headers=headers, media_type=answer.media_type)


def to_bytes(value: Any) -> bytes:
    """Return the value as JSON in ASCII, with `<`, `>` and `&` escaped, so that it is safe in
    HTML."""
    return json.dumps(value).translate(_NO_MARKUP).encode()


def write_problem(
    status: int, title: str, detail: str = "", *, kind: str = "request", **more: str
) -> Response:
    """Return a response with problem details (RFC 9457).

    Args:
        kind: the last part of the field `type`, which is `urn:babyagi:KIND`.
        more: additional fields; empty ones are left out.
    """
    said = {key: text for key, text in more.items() if text}
    body = {"type": f"urn:babyagi:{kind}", "title": title, "status": status, **said}
    if detail:
        body["detail"] = detail
    headers = {"cache-control": "no-store"}
    if status == 401:
        headers["www-authenticate"] = 'Bearer realm="babyagi"'
    if status in RETRY_AFTER_S:
        headers["retry-after"] = RETRY_AFTER_S[status]
    return Response(to_bytes(body), status_code=status, headers=headers, media_type=PROBLEM)


def write_error(error: BabyagiError, secrets: Sequence[str]) -> Response:
    """Return a response that says what the command line says about the error: what happened, why,
    what to do, and which page of the guide to read. The `secrets` are removed from these texts."""
    what, why, fix = texts_of(error, secrets)
    limit = error.limit if isinstance(error, LimitReachedError) else ""
    more = {"try": fix, "guide": error.guide, "limit": limit}
    return write_problem(status_of(error), what, why, kind=kind_of(type(error)), **more)


def texts_of(error: BabyagiError, secrets: Sequence[str]) -> list[str]:
    """Return what happened, why, and what to do, without the `secrets`."""
    texts = (error.what, error.why, find_fix(error))
    return [redact(text, secrets=secrets) for text in texts]


def status_of(error: BabyagiError) -> int:
    if isinstance(error, RequestError):
        return error.status
    by_status = _ERRORS_BY_STATUS.items()
    return next((status for status, kinds in by_status if isinstance(error, kinds)), _OTHER_STATUS)
