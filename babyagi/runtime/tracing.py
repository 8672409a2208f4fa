"""OpenTelemetry spans: one for an objective, one for each claim of a task or of work for the whole
objective (such as planning), one for each call of a model or tool. Without an endpoint nothing is
imported or done.

The names are those of the semantic conventions for generative AI, version 1.42, which may still
change; only this module uses them. Spans contain no prompt, answer, argument or result, and of an
error only its class.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any

from babyagi.errors import ParkedError, SettingsError
from babyagi.runtime.heavy_imports import import_whole

# -- the conventions
# --------------------------------------------------------------------------------------------------

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
CONVERSATION_ID = "gen_ai.conversation.id"
OBJECTIVE_ID = "babyagi.objective.id"

SERVICE = "babyagi"
EXPORT_TIMEOUT_S = 5.0
_OWN_MODELS = ("rehearsal", "human")

Attributes = Mapping[str, str | int | float]


class Span:
    """A running span, in the form of OpenTelemetry's; this one is recorded nowhere."""

    def set_attributes(self, attributes: Attributes) -> None:
        """Add attributes to the span while it runs."""


class Tracer:
    """Creates spans with OpenTelemetry's SDK. A span that ends with an exception records the
    exception's class. The spans of one objective are one trace, across workers: the trace id, and
    the id of the objective's span, are derived from the objective's uid.

    Args:
        processor: a span processor of the SDK; None to create no spans.
    """

    def __init__(self, processor: Any = None) -> None:
        self._processor = processor
        if processor is None:
            return
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider

        self._resource = Resource({"service.name": SERVICE})
        provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
        provider.add_span_processor(processor)
        self._tracer: Any = provider.get_tracer(SERVICE)

    def work(self, uid: str, *, objective_id: int, owner: str) -> AbstractContextManager[Span]:
        """Return a span for the work under one claim.

        Args:
            uid, objective_id: of the objective; the uid is unique across task stores.
            owner: what is worked on, such as `task:7` or, for the second planning, `plan:2`.
        """
        kind = owner.partition(":")[0]
        agent = "execution" if kind == "task" else kind
        attributes: Attributes = {
            OPERATION: "invoke_agent",
            PROVIDER: SERVICE,
            "gen_ai.agent.name": agent,
            CONVERSATION_ID: uid,
            OBJECTIVE_ID: objective_id,
            "babyagi.owner": owner,
        }
        return self._span(f"invoke_agent {agent}", attributes, uid=uid)

    def model_call(self, model: str, *, max_tokens: int) -> AbstractContextManager[Span]:
        attributes: Attributes = {
            OPERATION: "chat",
            PROVIDER: SERVICE if model in _OWN_MODELS else "openai",
            "gen_ai.request.model": model,
            "gen_ai.request.max_tokens": max_tokens,
        }
        return self._span(f"chat {model}", attributes, is_client=model not in _OWN_MODELS)

    def tool_call(self, name: str) -> AbstractContextManager[Span]:
        attributes: Attributes = {
            OPERATION: "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
        }
        return self._span(f"execute_tool {name}", attributes)

    def objective(
        self, uid: str, *, objective_id: int, began_at: datetime, ended_at: datetime, reason: str
    ) -> None:
        """Record the span of an objective that has ended. The spans of all work on it, by any
        worker, are its children."""
        if self._processor is None:
            return
        from opentelemetry.sdk.trace import ReadableSpan

        attributes: Attributes = {
            OPERATION: "invoke_workflow",
            "gen_ai.workflow.name": SERVICE,
            CONVERSATION_ID: uid,
            OBJECTIVE_ID: objective_id,
            "babyagi.stop_reason": reason,
        }
        span = ReadableSpan(
            f"invoke_workflow {SERVICE}",
            context=_root_of(uid),
            resource=self._resource,
            attributes=attributes,
            start_time=round(began_at.timestamp() * 1e9),
            end_time=round(ended_at.timestamp() * 1e9),
        )
        self._processor.on_end(span)

    def close(self) -> None:
        """Send the spans that were not sent yet. This blocks for some seconds at most."""
        if self._processor is not None:
            self._processor.shutdown()

    @contextmanager
    def _span(
        self, name: str, attributes: Attributes, *, uid: str = "", is_client: bool = False
    ) -> Iterator[Span]:
        """Run a span.

        Args:
            uid: that of the objective whose span is the parent; empty for the running span.
        """
        if self._processor is None:
            yield Span()
            return
        from opentelemetry import trace

        root = trace.set_span_in_context(trace.NonRecordingSpan(_root_of(uid))) if uid else None
        with self._tracer.start_as_current_span(
            name,
            context=root,
            kind=trace.SpanKind.CLIENT if is_client else trace.SpanKind.INTERNAL,
            attributes=attributes,
            record_exception=False,  # the text of an exception may come from a model or a file
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except ParkedError:  # a person was asked: nothing failed
                raise
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(trace.StatusCode.ERROR)
                raise


NO_TRACER = Tracer()


def _root_of(uid: str) -> Any:
    """Return the ids of the span of the objective with this uid, and of its trace."""
    from opentelemetry import trace

    digest = hashlib.sha256(f"{SERVICE} {uid}".encode()).digest()
    return trace.SpanContext(
        int.from_bytes(digest[:16], "big") or 1,
        int.from_bytes(digest[16:24], "big") or 1,
        is_remote=True,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
    )


def answered(
    model: str, *, prompt_tokens: int, completion_tokens: int, cost_usd: float
) -> Attributes:
    """Return the attributes that a span gets from a model's answer."""
    return {
        "gen_ai.response.model": model,
        "gen_ai.usage.input_tokens": prompt_tokens,
        "gen_ai.usage.output_tokens": completion_tokens,
        "babyagi.cost_usd": cost_usd,
    }


def open_tracer(endpoint: str) -> Tracer:
    """Return a tracer that sends spans to this address by OTLP over HTTP (`…/v1/traces`); without
    an address, return one that does nothing.

    Raises:
        SettingsError: its packages are not installed.
    """
    if not endpoint:
        return NO_TRACER
    try:
        import_whole("opentelemetry.sdk.trace.export")
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise SettingsError(
            "the packages for sending spans are not installed",
            why=str(error),
            fix="pip install 'babyagi-daemon[otel]', or leave BABYAGI_OTEL_ENDPOINT empty",
            guide="looking",
        ) from error
    address = f"{endpoint.rstrip('/')}/v1/traces"
    exporter = OTLPSpanExporter(endpoint=address, timeout=EXPORT_TIMEOUT_S)
    return Tracer(BatchSpanProcessor(exporter))
