import pytest

from babyagi.errors import ModelUnavailableError
from babyagi.runtime.tracing import NO_TRACER, Tracer, open_tracer
from support.scripted import ScriptedModel
from support.virtual import VirtualWorld, virtually
from tests.test_loop import Script

pytest.importorskip("opentelemetry.sdk")

SECRET = "the-words-of-a-prompt"


@pytest.fixture
def exported():
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    yield Tracer(SimpleSpanProcessor(exporter)), exporter.get_finished_spans


class TracedWorld(VirtualWorld):
    tracer = NO_TRACER

    def open_loop(self, objective, gate):
        from dataclasses import replace

        loop = super().open_loop(objective, gate)
        backends = replace(loop._resources.backends, tracer=self.tracer)
        loop._resources = replace(loop._resources, backends=backends)
        return loop


def test_the_spans_of_an_objective_are_one_trace_with_tasks_and_calls_beneath_it(exported):
    tracer, spans = exported

    @virtually
    async def work():
        world = TracedWorld(model=ScriptedModel(Script()))
        world.tracer = tracer
        await world.run(text=f"Find {SECRET}", initial_task=f"Begin with {SECRET}")

    work()
    by_id = {span.context.span_id: span for span in spans()}
    assert len({span.context.trace_id for span in spans()}) == 1
    (root,) = [span for span in spans() if span.parent is None]
    assert root.name == "invoke_workflow babyagi"
    assert root.attributes["babyagi.stop_reason"] == "finished"
    works = [span for span in spans() if span.attributes["gen_ai.operation.name"] == "invoke_agent"]
    assert {span.attributes["gen_ai.agent.name"] for span in works} >= {"execution", "report"}
    assert {span.parent.span_id for span in works} == {root.context.span_id}
    calls = [span for span in spans() if span.name.startswith("chat ")]
    assert calls and all(by_id[span.parent.span_id] in works for span in calls)
    for span in calls:
        assert span.attributes["gen_ai.usage.input_tokens"] > 0
        assert span.attributes["gen_ai.request.model"] == "scripted"
    assert SECRET not in "".join(span.to_json() for span in spans())


def test_of_an_error_only_its_kind_is_in_a_span(exported):
    tracer, spans = exported
    with pytest.raises(ModelUnavailableError), tracer.model_call("m", max_tokens=5):
        raise ModelUnavailableError(SECRET)
    (span,) = spans()
    assert span.attributes["error.type"] == "ModelUnavailableError"
    assert not span.status.is_ok and SECRET not in span.to_json()


def test_a_call_of_a_tool_is_a_span_with_its_name_alone(exported):
    tracer, spans = exported
    with tracer.work("uid", objective_id=1, owner="task:3"), tracer.tool_call("read_file"):
        pass
    tool, work = spans()
    assert (tool.name, work.name) == ("execute_tool read_file", "invoke_agent execution")
    assert tool.parent.span_id == work.context.span_id
    assert work.attributes["babyagi.owner"] == "task:3"


def test_two_workers_put_their_spans_into_one_trace(exported):
    tracer, spans = exported
    for owner in ("task:1", "plan:1"):
        with tracer.work("uid", objective_id=1, owner=owner):
            pass
    with tracer.work("other", objective_id=2, owner="task:1"):
        pass
    first, second, other = spans()
    assert first.context.trace_id == second.context.trace_id != other.context.trace_id


def test_spans_are_sent_by_http_to_the_address_that_is_named():
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    received = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Nothing is printed."""

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        tracer = open_tracer(f"http://127.0.0.1:{server.server_port}/")
        with tracer.model_call("gpt", max_tokens=5):
            pass
        tracer.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    ((path, body),) = received
    assert path == "/v1/traces"
    assert b"chat gpt" in body
