"""Turns an endpoint's refusal, or a failed connection, into an error of this program, and learns
from refusals which optional parts of a request the endpoint accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from babyagi.errors import (
    BabyagiError,
    ContextTooLongError,
    CredentialsError,
    ModelRejectedError,
    ModelUnavailableError,
    RequestRefusedError,
    ToolsUnsupportedError,
)
from babyagi.llm.retry import parse_retry_after
from babyagi.redaction import redact
from babyagi.text import clean, one_line, shorten

MAX_WHY_CHARS = 300
SUCCESSOR = "gpt-6-luna"
AFRESH = "; an objective keeps the model that it was started with, so start a new one with --new"
# The models that OpenAI had shut down by November 2026, from its list of deprecations.
SHUT_DOWN_MODELS = frozenset(
    "gpt-3.5-turbo gpt-3.5-turbo-0125 gpt-3.5-turbo-0301 gpt-3.5-turbo-0613 gpt-3.5-turbo-1106 "
    "gpt-3.5-turbo-16k gpt-3.5-turbo-16k-0613 gpt-3.5-turbo-instruct gpt-4 gpt-4-0314 gpt-4-0613 "
    "gpt-4-32k gpt-4-32k-0314 gpt-4-32k-0613 gpt-4-0125-preview gpt-4-1106-preview gpt-4-turbo "
    "gpt-4-turbo-2024-04-09 gpt-4-turbo-preview gpt-4-vision-preview gpt-4o-2024-05-13 "
    "gpt-4.1-nano gpt-4.1-nano-2025-04-14 o1 o1-2024-12-17 o1-mini o1-preview o1-pro "
    "o1-pro-2025-03-19 o3-mini o3-mini-2025-01-31 o4-mini o4-mini-2025-04-16 text-davinci-001 "
    "text-davinci-002 text-davinci-003 code-davinci-002 davinci curie babbage ada".split()
)

_CONTEXT = re.compile(
    r"(?i)context (length|size|window)|prompt is too long|request too large|reduce the length of"
)
_FILTER = re.compile(r"content[_ ](filter|policy|management)|responsible ai", re.IGNORECASE)
_QUOTA = re.compile(
    r"(?i)insufficient_quota|credit_balance|billing_hard_limit|exceeded your current quota|"
    r"billing_not_active"
)
_TOOLS = re.compile(
    r"(?i)does not support (tools|function)|tool[_ ]choice.*requires|enable-auto-tool-choice|"
    r"tools.*not supported|support tool use"
)
# how a llama.cpp that was started without --jinja refuses tools
_TOOLS_BY_500 = re.compile(r"unsupported param: tools|tools param requires", re.IGNORECASE)
# A gateway timed out: the model behind it may have worked, and may be billed.
_MAYBE_BILLED = frozenset({408, 504, 524})
_TRANSIENT = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAddress:
    """The called model and its address, for the texts of errors. `secret` is the key, which these
    texts must not contain."""

    model: str
    url: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error that an endpoint reported: with an error status, or as an error object in place of
    an answer."""

    status: int
    code: str = ""
    kind: str = ""
    param: str = ""
    message: str = ""
    retry_after_s: float | None = None
    location: str = ""

    @property
    def words(self) -> str:
        return f"{self.code} {self.kind} {self.message}"


def is_about_form(refusal: Refusal) -> bool:
    """Return whether the request may work without one of its parts: the status is 400 or 422, or it
    is 500 and the message says that the model's chat template does not accept the roles."""
    is_about_roles = refusal.status == 500 and bool(_SYSTEM.search(refusal.message))
    return refusal.status in (400, 422) or is_about_roles


def check_model_name(name: str) -> None:
    """Refuse the name of a model that OpenAI has shut down, before any call of OpenAI's own
    endpoint.

    Raises:
        ModelRejectedError: the model was shut down; the error names its successor.
    """
    if name in SHUT_DOWN_MODELS:
        what = f"OpenAI has shut down the model {name}"
        raise ModelRejectedError(what, fix=f"set LLM_MODEL={SUCCESSOR}{AFRESH}", guide="models")


# -- reading
# --------------------------------------------------------------------------------------------------


def read_refusal(status: int, headers: Mapping[str, str], body: bytes) -> Refusal:
    """Return the error in a response's body, in any format that servers use. If the body is not
    JSON, its whole text is the message."""
    text = body[:100_000].decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = re.sub(r"<[^>]{0,500}>", " ", text)
    return build_refusal(status, found, headers=headers)


def build_refusal(status: int, found: Any, *, headers: Mapping[str, str] | None = None) -> Refusal:
    headers = headers or {}
    fields = found.get("error", found) if isinstance(found, dict) else found
    if not isinstance(fields, dict):
        fields = {"message": fields}
    message = fields.get("message") or fields.get("detail") or fields.get("msg") or ""
    return Refusal(
        status=status,
        code=str(fields.get("code") or ""),
        kind=str(fields.get("type") or ""),
        param=str(fields.get("param") or ""),
        message=message if isinstance(message, str) else json.dumps(message)[:MAX_WHY_CHARS],
        retry_after_s=parse_retry_after(headers, now=datetime.now(UTC)),
        location=headers.get("location", ""),
    )


def say_why(text: str, address: ModelAddress) -> str:
    """Return the endpoint's message for a person: one line, at most `MAX_WHY_CHARS`, without the
    key."""
    return shorten(one_line(clean(redact(text, secrets=[address.secret]))), MAX_WHY_CHARS)


# -- translating refusals
# --------------------------------------------------------------------------------------------------


def judge(refusal: Refusal, address: ModelAddress) -> BabyagiError:
    """Return the error of this program for an error that the endpoint at this address reported."""
    why = say_why(refusal.message, address)
    return _judge_prompt(refusal, address, why) or _judge_status(refusal, address, why)


def judge_error_body(body: Mapping[str, Any], address: ModelAddress) -> BabyagiError:
    """Return the error of this program for a JSON object with an `error`, which came with status
    200 in place of an answer."""
    code = body["error"].get("code") if isinstance(body["error"], dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return judge(build_refusal(status, body), address)


def _judge_prompt(refusal: Refusal, address: ModelAddress, why: str) -> BabyagiError | None:
    """Return the error for a refusal that is recognised by its text; None if its status decides."""
    if _QUOTA.search(refusal.words) or refusal.status == 402:
        what = f"the account at {address.url} has no quota left"
        fix = "add credit to that account, then start again"
        return ModelRejectedError(what, why=why, fix=fix, guide="models")
    if refusal.status == 413 or (400 <= refusal.status < 500 and _CONTEXT.search(refusal.words)):
        what = f"the prompt does not fit the context of {address.model}"
        fix = "lower BABYAGI_CONTEXT_TOKENS, so that prompts are shorter"
        return ContextTooLongError(what, why=why, fix=fix, guide="models")
    if _FILTER.search(refusal.words):
        what = "the endpoint's content filter refused the prompt"
        return RequestRefusedError(what, why=why, guide="models")
    is_by_client = refusal.status < 500 and _TOOLS.search(refusal.message)
    if is_by_client or _TOOLS_BY_500.search(refusal.message):
        what = f"{address.model} at {address.url} does not support tools"
        choices = "choose a model that supports tools, start the server with tool calling on"
        fix = f"{choices}, or run without --files"
        return ToolsUnsupportedError(what, why=why, fix=fix, guide="models")
    return None


def _judge_status(refusal: Refusal, address: ModelAddress, why: str) -> BabyagiError:
    status, url = refusal.status, address.url
    match status:
        case _ if (status >= 500 or status in _TRANSIENT) and not is_about_form(refusal):
            what, wait_s = f"{url} answered {status}", refusal.retry_after_s
            if status == 429:
                what = f"{address.model} at {url} limits the rate of requests"
                return ModelUnavailableError(what, why=why, retry_after_s=wait_s, is_limit=True)
            billed = status in _MAYBE_BILLED
            return ModelUnavailableError(what, why=why, retry_after_s=wait_s, may_be_billed=billed)
        case 401:
            what, fix = f"{url} rejects the key", "set OPENAI_API_KEY to a key that works there"
            return CredentialsError(what, why=why, fix=fix, guide="models")
        case 403:
            what = f"{url} forbids calls of {address.model}"
            fix = "check which models and regions the key may use"
        case 404:
            what, fix = _judge_not_found(refusal, address)
        case 405 | 407 | 410:
            what, fix = f"{url} answered {status}", "check OPENAI_BASE_URL"
        case _ if 300 <= status < 400:
            place = refusal.location or "another address"
            said = f"it redirects to {place}, and a prompt is never sent to another address"
            what, why = f"{url} is not the final address of the endpoint", say_why(said, address)
            fix = "set OPENAI_BASE_URL to the final address"
        case _:
            what = f"{address.model} at {url} refused the request ({status})"
            return RequestRefusedError(what, why=why, guide="models")
    return ModelRejectedError(what, why=why, fix=fix, guide="models")


def _judge_not_found(refusal: Refusal, address: ModelAddress) -> tuple[str, str]:
    """Return what is wrong, and the remedy."""
    if "model" not in refusal.words.lower():
        fix = "check OPENAI_BASE_URL (it usually ends in /v1)"
        return f"the server at {address.url} does not have the requested path", fix
    wanted = f"={SUCCESSOR}" if address.model in SHUT_DOWN_MODELS else " to a model that it serves"
    return f"{address.url} has no model {address.model}", f"set LLM_MODEL{wanted}{AFRESH}"


# -- errors of the HTTP client
# --------------------------------------------------------------------------------------------------


_CANNOT_BE_ASKED = frozenset({"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"})
_NOT_REACHED = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"})
# how versions of OpenSSL report an answer that is not encrypted
_NOT_ENCRYPTED = re.compile("WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|HTTP_REQUEST")


def translate(error: Exception, address: ModelAddress) -> BabyagiError:
    """Return the error of this program for an error of the HTTP client: httpx2, or httpx if the
    calling program passed its own client in. Its `may_be_billed` is False if no byte of the request
    was sent."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    why = say_why(f"{type(error).__name__}: {error}", address)
    if isinstance(error, UnicodeError):
        what = "the key contains characters that are not allowed in a key"
        fix = "set OPENAI_API_KEY again, with the key alone"
        return CredentialsError(what, fix=fix, guide="models")
    if "CERTIFICATE" in why:
        what = f"the certificate of {address.url} is not trusted"
        fix = "set SSL_CERT_FILE to a file with the certificate of the authority that signed it"
    elif _NOT_ENCRYPTED.search(why):
        what = f"the server at {address.url} is not encrypted"
        fix = "set OPENAI_BASE_URL to the same address with http:// in place of https://"
    elif kinds & _CANNOT_BE_ASKED:
        what, fix = f"{address.url} cannot be called", "check OPENAI_BASE_URL"
    elif kinds & _NOT_REACHED:
        what = f"{address.url} cannot be reached"
        fix = "check that the server is running and that the address is right"
        unreached = ModelUnavailableError(what, why=why, fix=fix)
        unreached.is_unreached = True
        return unreached
    else:
        what = f"the connection to {address.url} broke"
        return ModelUnavailableError(what, why=why, may_be_billed=True)
    return ModelRejectedError(what, why=why, fix=fix, guide="models")


# -- which optional parts of a request an endpoint accepts, learned from its refusals
# --------------------------------------------------------------------------------------------------

_UNSUPPORTED = re.compile(
    r"(?i)unsupported|not support|unknown|unrecognized|unexpected|not permitted|extra inputs|"
    r"invalid parameter"
)
_SCHEMA = re.compile(
    r"(?i)response_format|json_schema|json_object|text\.format|structured output|grammar"
)
_SYSTEM = re.compile(
    r"(?i)system (role|message|prompt)s?\W+(is |are )?(not|un)|roles? must alternate|"
    r"only user(,| and) assistant|must (start|begin) with (a )?user"
)
_OUTPUT_LIMIT = re.compile(r"max_(completion_)?tokens")
# parameters that may be left out, and how a refusal names them
_OPTIONAL = (
    ("stop", r"\bstop\b"),
    ("stream_options", r"stream_options|include_usage"),
    ("stream", r"\bstream(ing)?\b"),
    ("store", r"\bstore\b"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form in which an endpoint accepts requests: which parameters are left out, and how the
    others are named. `schema_kind` is `json_schema`, `json_object`, or empty if neither is
    accepted.

    A request always has an output limit, whose parameter has two names. `output_limit` is the one
    in use; `has_swapped` is set once it is the second one.
    """

    temperature: float | None = None
    schema_kind: str = "json_schema"
    output_limit: str = "max_tokens"
    has_swapped: bool = False
    left_out: frozenset[str] = frozenset()
    takes_system: bool = True  # False if only user and assistant messages, in turn, are accepted

    def without(self, refusal: Refusal, sent: Mapping[str, Any]) -> Form | None:
        """Return the form of the next request, without the part that the refusal names, or with
        another name for it. None if the refusal names no part, or one that was not sent or is
        required.

        Args:
            sent: the request that was refused.
        """
        words = f"{refusal.param} {refusal.message}"
        if _SYSTEM.search(words) and self.takes_system:
            return replace(self, takes_system=False)
        if "temperature" in sent and "temperature" in words:
            return replace(self, temperature=None)
        if ("response_format" in sent or "text" in sent) and _SCHEMA.search(words):
            weaker = "json_object" if self.schema_kind == "json_schema" else ""
            return replace(self, schema_kind=weaker)
        if not _UNSUPPORTED.search(refusal.words):
            return None
        if self.output_limit in sent and _OUTPUT_LIMIT.search(words) and not self.has_swapped:
            other = "max_completion_tokens" if self.output_limit == "max_tokens" else "max_tokens"
            return replace(self, output_limit=other, has_swapped=True)
        for name, pattern in _OPTIONAL:
            if name in sent and re.search(pattern, words):
                return replace(self, left_out=self.left_out | {name})
        return None
