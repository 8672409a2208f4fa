"""Parses requests, with limits of size and time, and writes answers and errors as HTTP responses.

Errors have the texts that the command line shows, in the form of problem details (RFC 9457).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from babyagi import errors
from babyagi.errors import BabyagiError, find_fix
from babyagi.redaction import redact
from babyagi.shapes import ShapeError, shape_of
from babyagi.text import clean

if TYPE_CHECKING:
    from starlette.requests import Request

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 1_000_000
BODY_TIMEOUT_S = 15.0
MAX_NUMBER = 2**53 - 1
MAX_PARAMETERS = 50
PROBLEM = "application/problem+json"
_NO_MARKUP = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
RETRY_AFTER_S = 2

_ERRORS_BY_STATUS: Mapping[int, tuple[type[BabyagiError], ...]] = {
    404: (errors.NotFoundError,),
    422: (errors.SettingsError, errors.ContextTooLongError),
    503: (
        errors.StoreUnavailableError,
        errors.StoreUnusableError,
        errors.IndexUnavailableError,
        errors.ModelUnavailableError,
    ),
}
_OTHER_STATUS = 409

_shape = cache(shape_of)


class BadRequestError(Exception):
    """A request cannot be read or is not allowed.

    Args:
        status: the HTTP status of the answer.
        title: what is wrong.
        detail: more about it, or what to do; may be empty.
    """

    def __init__(self, status: int, title: str, detail: str = "") -> None:
        super().__init__(title)
        self.status = status
        self.title = title
        self.detail = detail


# -- requests
# --------------------------------------------------------------------------------------------------


async def read_body(request: Request) -> bytes:
    """Return the request's body. Raises `BadRequestError` if it has more than `MAX_BODY_BYTES`, is
    incomplete, or takes longer than `BODY_TIMEOUT_S`."""
    most = f"a body may have at most {MAX_BODY_BYTES:,} bytes"
    too_long = BadRequestError(413, "the body is too long", most)
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
        raise BadRequestError(400, "the body is incomplete") from None
    except TimeoutError:
        raise BadRequestError(408, "the body did not arrive in time") from None
    return bytes(body)


def parse_body(data: bytes, content_type: str, hint: type) -> Any:
    """Convert a JSON body to a value of the type `hint`. An empty body is read as an empty object.
    Raises `BadRequestError` if the body is not JSON or does not fit the type."""
    if data and content_type.partition(";")[0].strip().casefold() != "application/json":
        fix = "send JSON with Content-Type: application/json"
        raise BadRequestError(415, "the body is not sent as JSON", fix)
    try:
        text = (data or b"{}").decode("utf-8")
        value = _checked(json.loads(text, object_pairs_hook=_require_once))
    except (ValueError, RecursionError):
        why = "it is not valid JSON, or has a field twice, or a number that is too large"
        raise BadRequestError(400, "the body is not acceptable JSON", why) from None
    return _read(value, "the body", hint, is_strict=True)


def parse_parameters(pairs: Sequence[tuple[str, str]], hint: type) -> Any:
    """Convert query parameters, or the fields of a form, to a value of the type `hint`. A parameter
    may be repeated if its type is a list.

    Raises:
        BadRequestError: a parameter is unknown, has an invalid value, or may not be repeated.
    """
    if len(pairs) > MAX_PARAMETERS:
        raise BadRequestError(400, f"there are more than {MAX_PARAMETERS} parameters")
    fields = _shape(hint).schema["properties"]
    value: dict[str, Any] = {}
    for name, text in pairs:
        if fields.get(name, {}).get("type") == "array":
            value.setdefault(name, []).append(clean(text))
        elif name in value:
            raise BadRequestError(400, f"the parameter {name[:100]!r} is given twice")
        else:
            value[name] = clean(text)
    found = _read(value, "the query", hint, is_strict=False)
    for name in fields:
        _require_small(getattr(found, name))
    return found


def _read(value: Any, where: str, hint: type, *, is_strict: bool) -> Any:
    try:
        return _shape(hint).read(value, where, is_strict)
    except ShapeError as error:
        raise BadRequestError(422, f"{where} is invalid", str(error)) from None


def _require_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as an object. Raises `ValueError` if a field occurs twice, because programs
    differ in which of the two they use."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field occurs twice")
    return found


def _checked(value: Any) -> Any:
    """Return a JSON value with `clean` applied to all its texts. Raises `ValueError` for a number
    over `MAX_NUMBER`, which the store could not keep."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_checked(one) for one in value]
    if isinstance(value, dict):
        return {clean(key): _checked(one) for key, one in value.items()}
    if isinstance(value, int | float) and not abs(value) <= MAX_NUMBER:
        raise ValueError("a number that is too large")
    return value


def _require_small(value: Any) -> None:
    if isinstance(value, int | float) and abs(value) > MAX_NUMBER:
        raise BadRequestError(400, f"a parameter is a number over {MAX_NUMBER:,}")
    if isinstance(value, list | tuple):
        for one in value:
            _require_small(one)


# -- answers
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of an operation.

    Attributes:
        value: the answer as a JSON value, if `text` is None.
        text: the answer if it is not JSON.
        media_type: the media type of the answer.
        file_name: the name under which a browser saves the answer; '' for none.
        status: the HTTP status.
        next: the query parameters for the next page of a list; None if this is the last page.
    """

    value: Any = None
    text: bytes | None = None
    media_type: str = "application/json"
    file_name: str = ""
    status: int = 200
    next: Mapping[str, str | int] | None = None


def write_answer(answer: Answer, request: Request) -> Response:
    """Return the HTTP response for an answer. The response to a GET has an ETag, and is an empty
    304 if the client already has the same answer."""
    data = answer.text if answer.text is not None else to_bytes(answer.value)
    headers = {"cache-control": "no-cache, private"}
    if answer.next is not None:
        url = request.url.include_query_params(**answer.next)
        headers["link"] = f'<{url.path}?{url.query}>; rel="next"'
    if answer.file_name:
        headers["content-disposition"] = f'attachment; filename="{answer.file_name}"'
    if request.method in ("GET", "HEAD"):
        tag = headers["etag"] = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        known = request.headers.get("if-none-match", "").split(",")
        if tag in map(str.strip, known):
            return Response(status_code=304, headers=headers)
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
    if status == 503:
        headers["retry-after"] = str(RETRY_AFTER_S)
    return Response(to_bytes(body), status_code=status, headers=headers, media_type=PROBLEM)


def write_error(error: BabyagiError, secrets: Sequence[str]) -> Response:
    """Return a response that says what the command line says about the error: what happened, why,
    what to do, and which page of the guide to read. The `secrets` are removed from these texts."""
    name = type(error).__name__.removesuffix("Error")
    kind = re.sub("(?<!^)([A-Z])", r"-\1", name).lower()
    texts = (error.what, error.why, find_fix(error))
    what, why, fix = (redact(text, secrets=secrets) for text in texts)
    more = {"try": fix, "guide": error.guide}
    return write_problem(status_of(error), what, why, kind=kind, **more)


def status_of(error: BabyagiError) -> int:
    by_status = _ERRORS_BY_STATUS.items()
    return next((status for status, kinds in by_status if isinstance(error, kinds)), _OTHER_STATUS)


def write_crash(error: Exception) -> Response:
    logger.error("a request raised an unexpected error", exc_info=error)
    detail = "this is a bug; no stored data is lost, and the server's log has the traceback"
    return write_problem(500, "an unexpected error", detail, kind="unexpected")
