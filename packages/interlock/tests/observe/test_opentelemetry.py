"""OpenTelemetry: one trace through client, server and the author's own spans, on every revision;
and what a collector receives from a program."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased
from opentelemetry.trace import SpanKind, StatusCode

from interlock import (
    REVISIONS,
    Client,
    Context,
    McpError,
    Observe,
    Server,
    Stdio,
    Tasks,
    ToolError,
    listening_socket,
    serve_http,
)
from interlock.observe.opentelemetry import OpenTelemetry
from tests.workers.clusters import PATIENCE


class Collected:
    """Spans and metrics in memory."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.traces = TracerProvider()
        self.traces.add_span_processor(SimpleSpanProcessor(self._spans))
        self.telemetry = OpenTelemetry(
            self.traces, MeterProvider([self._reader]), resource_uris=True
        )

    def spans(self, method: str) -> dict[SpanKind, ReadableSpan]:
        """The spans of a method, by kind."""
        return {
            span.kind: span
            for span in self._spans.get_finished_spans()
            if span.attributes and span.attributes.get("mcp.method.name") == method
        }

    def named(self, name: str) -> ReadableSpan:
        """The only span of a name."""
        (found,) = [span for span in self._spans.get_finished_spans() if span.name == name]
        return found

    def points(self, name: str) -> list[Any]:
        """The data points of a metric."""
        data = self._reader.get_metrics_data()
        assert data is not None
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def collected() -> Collected:
    """A collector of this test."""
    return Collected()


def shop(collected: Collected) -> Server:
    """A server whose tools end in every way."""
    server = Server("shop", observe=Observe(metrics=None, tracing=collected.telemetry))

    @server.tool
    async def buy(what: str, ctx: Context) -> str:
        with ctx.span("pack", what=what) as span:
            ctx.count("orders", kind="map")
            return type(span).__name__

    @server.tool
    def weigh(ctx: Context) -> str:
        with ctx.span("scales"):
            return "1 kg"

    @server.tool
    async def fail() -> str:
        raise ToolError("sold out")

    @server.tool
    async def refuse() -> str:
        raise McpError(-32050, "closed")

    @server.tool
    async def sure(ctx: Context) -> str:
        return "yes" if await ctx.confirm("Sure?") else "no"

    @server.resource("shop://list")
    async def stock() -> str:
        return "maps"

    return server


def parent_id(span: ReadableSpan) -> int | None:
    """The id of a span's parent."""
    return None if span.parent is None else span.parent.span_id


def check_child(child: ReadableSpan, parent: ReadableSpan) -> None:
    """A span belongs to the trace of its parent."""
    assert child.context.trace_id == parent.context.trace_id
    assert parent_id(child) == parent.context.span_id


@contextlib.asynccontextmanager
async def connected(server: Server, kind: str, **options: Any) -> AsyncIterator[Client]:
    """A client of the server in memory or over HTTP."""
    async with contextlib.AsyncExitStack() as stack:
        target: Any = server
        if kind == "http":
            target = (await stack.enter_async_context(server.serve_http(port=0))).url
        yield await stack.enter_async_context(Client(target, **options))


@pytest.mark.parametrize(
    "revision, kind",
    [*((each, "memory") for each in REVISIONS), *((each, "http") for each in REVISIONS[1:])],
)
async def test_one_trace_through_client_server_and_author(
    collected: Collected, revision: str, kind: str
) -> None:
    """`OTL-01`, `OTL-02`: the server goes on with the trace that the client began."""
    options: dict[str, Any] = {"revision": revision, "middleware": [collected.telemetry.client]}
    async with connected(shop(collected), kind, **options) as client:
        with collected.traces.get_tracer("test").start_as_current_span("turn"):
            result = await client.call_tool("buy", {"what": "a map"})
        assert result.text == "_Span"
        await client.call_tool("weigh")
    spans = collected.spans("tools/call")
    both = [span for span in collected._spans.get_finished_spans() if span.name == "tools/call buy"]
    assert {span.kind for span in both} == {SpanKind.CLIENT, SpanKind.SERVER}
    server = next(span for span in both if span.kind is SpanKind.SERVER)
    client_span = next(span for span in both if span.kind is SpanKind.CLIENT)
    check_child(client_span, collected.named("turn"))
    check_child(server, client_span)
    check_child(collected.named("pack"), server)
    check_child(collected.named("scales"), spans[SpanKind.SERVER])
    assert server.attributes is not None
    assert dict(server.attributes) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": revision,
        "gen_ai.tool.name": "buy",
        "gen_ai.operation.name": "execute_tool",
        "network.transport": "tcp" if kind == "http" else "pipe",
        **({"mcp.session.id": s} if (s := server.attributes.get("mcp.session.id")) else {}),
    }
    assert server.status.status_code is StatusCode.UNSET


async def test_errors_are_named(collected: Collected) -> None:
    async with connected(shop(collected), "memory") as client:
        assert (await client.call_tool("fail")).is_error
        with pytest.raises(McpError):
            await client.call_tool("refuse")
    failed = collected.named("tools/call fail")
    assert failed.attributes is not None
    assert failed.attributes["error.type"] == "tool_error"
    assert failed.status.status_code is StatusCode.ERROR
    refused = collected.named("tools/call refuse")
    assert refused.attributes is not None
    assert refused.attributes["error.type"] == refused.attributes["rpc.response.status_code"]
    assert refused.attributes["error.type"] == "-32050"
    assert not refused.events, "messages of exceptions may contain secrets"


async def test_metrics_by_the_conventions(collected: Collected) -> None:
    options = {"middleware": [collected.telemetry.client]}
    async with connected(shop(collected), "memory", **options) as client:
        for _ in range(3):
            await client.call_tool("buy", {"what": "a map"})
        await client.read_resource("shop://list")
    for side in ("server", "client"):
        points = collected.points(f"mcp.{side}.operation.duration")
        counts = {
            (point.attributes["mcp.method.name"], point.attributes.get("gen_ai.tool.name")): (
                point.count
            )
            for point in points
        }
        assert counts["tools/call", "buy"] == 3
        assert counts["resources/read", None] == 1
        assert points[0].explicit_bounds[:3] == (0.01, 0.02, 0.05)
        assert not any("mcp.resource.uri" in point.attributes for point in points)
    (orders,) = collected.points("orders")
    assert (orders.value, dict(orders.attributes)) == (3, {"kind": "map"})
    read = collected.spans("resources/read")[SpanKind.SERVER]
    assert read.attributes is not None
    assert read.attributes["mcp.resource.uri"] == "shop://list"


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_answer_to_a_question_is_in_the_trace(
    collected: Collected, revision: str
) -> None:
    """A question is asked and answered within the span of the client's call."""
    inside: list[int] = []

    async def elicit(request: Any) -> dict[str, Any]:
        inside.append(trace.get_current_span().get_span_context().trace_id)
        return {"confirmed": True}

    options: dict[str, Any] = {
        "revision": revision,
        "middleware": [collected.telemetry.client],
        "elicit": elicit,
    }
    async with connected(shop(collected), "memory", **options) as client:
        await client.call_tool("sure")
    call = collected.spans("tools/call")[SpanKind.CLIENT]
    answer = collected.named("elicitation/create")
    check_child(answer, call)
    assert answer.kind is SpanKind.SERVER
    servers = [
        span for span in collected._spans.get_finished_spans() if span.kind is SpanKind.SERVER
    ]
    assert {span.context.trace_id for span in servers if span.name == "tools/call sure"} == {
        call.context.trace_id
    }
    assert inside == [call.context.trace_id]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_task_is_linked_with_the_call_that_started_it(
    collected: Collected, revision: str
) -> None:
    """It is not its child: it lasts longer. Spans of the author within the task belong to it."""
    server = Server(
        "shop",
        observe=Observe(metrics=None, tracing=collected.telemetry),
        extensions=[Tasks()],
    )

    @server.tool(task="required")
    async def knit(well: bool, ctx: Context) -> str:
        with ctx.span("cast on"):
            if not well:
                raise ToolError("a dropped stitch")
            return "a scarf"

    options: dict[str, Any] = {"revision": revision, "middleware": [collected.telemetry.client]}
    async with connected(server, "memory", **options) as client:
        assert (await client.call_tool("knit", {"well": True})).text == "a scarf"
        assert (await client.call_tool("knit", {"well": False})).is_error
    spans = collected._spans.get_finished_spans()
    calls = [
        span for span in spans if span.name == "tools/call knit" and span.kind is SpanKind.SERVER
    ]
    good, bad = [span for span in spans if span.kind is SpanKind.INTERNAL and span.links]
    assert [good.parent, bad.parent] == [None, None]
    assert [span.links[0].context.span_id for span in (good, bad)] == [
        span.context.span_id for span in calls
    ]
    assert good.context.trace_id != calls[0].context.trace_id
    first, second = [span for span in spans if span.name == "cast on"]
    check_child(first, good)
    check_child(second, bad)
    assert good.attributes is not None
    assert good.attributes["gen_ai.tool.name"] == "knit"
    assert good.status.status_code is StatusCode.UNSET
    assert bad.attributes is not None
    assert bad.attributes["error.type"] == "tool_error"


async def test_state_and_baggage_of_a_trace_travel(collected: Collected) -> None:
    """`OTL-01`, `OTL-02`: `tracestate` and `baggage` too."""
    seen: list[tuple[str, object]] = []
    server = Server("shop", observe=Observe(metrics=None, tracing=collected.telemetry))

    @server.tool
    async def look() -> str:
        state = trace.get_current_span().get_span_context().trace_state
        seen.append((state.to_header(), baggage.get_baggage("user")))
        return "seen"

    remote = trace.SpanContext(
        0x0AF7651916CD43DD8448EB211C80319C,
        0xB7AD6B7169203331,
        is_remote=True,
        trace_flags=trace.TraceFlags(1),
        trace_state=trace.TraceState([("vendor", "x")]),
    )
    here = trace.set_span_in_context(trace.NonRecordingSpan(remote))
    token = context.attach(baggage.set_baggage("user", "ada", here))
    try:
        options: dict[str, Any] = {"middleware": [collected.telemetry.client]}
        async with connected(server, "memory", **options) as client:
            await client.call_tool("look")
    finally:
        context.detach(token)
    assert seen == [("vendor=x", "ada")]
    call = collected.spans("tools/call")[SpanKind.CLIENT]
    assert (call.context.trace_id, parent_id(call)) == (remote.trace_id, remote.span_id)


async def test_a_trace_that_is_not_sampled_is_not_sampled_at_the_server() -> None:
    """The sender's decision travels in the flags."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ParentBased(ALWAYS_ON))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    server = Server("shop", observe=Observe(metrics=None, tracing=OpenTelemetry(provider)))
    server.tool(lambda: "done", name="do")
    silent = OpenTelemetry(TracerProvider(sampler=ALWAYS_OFF))
    async with Client(server, middleware=[silent.client]) as client:
        await client.call_tool("do")
    assert not [span for span in exporter.get_finished_spans() if span.name == "tools/call do"]


async def test_without_tracing_a_span_is_nothing() -> None:
    server = Server("shop")

    @server.tool
    async def buy(ctx: Context) -> str:
        with ctx.span("pack", what="x") as span:
            return repr(span)

    async with Client(server) as client:
        assert (await client.call_tool("buy")).text == "None"


SERVER = """
from interlock import Context, Server

server = Server("shop", "3.1")

@server.tool
async def buy(what: str, ctx: Context) -> str:
    ctx.count("orders")
    with ctx.span("pack"):
        return "bought"
"""


class Collector:
    """A receiver of OTLP over HTTP."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: set[str] = set()
        self.services: set[str] = set()
        self.complete = asyncio.Event()  # spans and metrics have arrived

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Take one export."""
        if scope["type"] != "http":
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if scope["path"] == "/v1/traces":
            traces = ExportTraceServiceRequest.FromString(body)
            for resource in traces.resource_spans:
                self._note(resource.resource)
                for scoped in resource.scope_spans:
                    self.spans += scoped.spans
        elif scope["path"] == "/v1/metrics":
            metrics = ExportMetricsServiceRequest.FromString(body)
            for measured in metrics.resource_metrics:
                self._note(measured.resource)
                for part in measured.scope_metrics:
                    self.metrics |= {metric.name for metric in part.metrics}
        if self.spans and self.metrics:
            self.complete.set()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def _note(self, resource: Any) -> None:
        for attribute in resource.attributes:
            if attribute.key in ("service.name", "service.version"):
                self.services.add(attribute.value.string_value)


@contextlib.asynccontextmanager
async def collector() -> AsyncIterator[tuple[Collector, str]]:
    """A receiver of OTLP and its URL."""
    made = Collector()
    sock = listening_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    ready = asyncio.Event()
    serving = asyncio.ensure_future(
        serve_http(made, sock, grace=0.0, on_ready=lambda address: ready.set())
    )
    await ready.wait()
    try:
        yield made, url
    finally:
        serving.cancel()
        await asyncio.wait({serving})


async def test_a_program_exports_where_the_environment_says(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(SERVER)
    async with collector() as (made, url):
        command = [sys.executable, "-m", "interlock", "run", str(file)]
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_METRIC_EXPORT_INTERVAL": "600000"}
        async with Client(Stdio(command, env=env)) as client:
            await client.call_tool("buy", {"what": "a map"})
        async with asyncio.timeout(PATIENCE):
            await made.complete.wait()
    names = {span.name: span for span in made.spans}
    assert {"tools/call buy", "pack"} <= set(names)
    assert names["pack"].parent_span_id == names["tools/call buy"].span_id
    assert {"mcp.server.operation.duration", "orders"} <= made.metrics
    assert made.services == {"shop", "3.1"}


@pytest.mark.parametrize("kind", ["memory", "http"])
async def test_the_session_of_a_client(collected: Collected, kind: str) -> None:
    """`tracing=` gives one span for each request, with the address, and the session's duration."""
    async with connected(shop(collected), kind, tracing=collected.telemetry) as client:
        assert (await client.call_tool("weigh")).text == "1 kg"
        assert not collected.points("mcp.client.session.duration")
        revision = client.revision
    (session,) = collected.points("mcp.client.session.duration")
    spans = [
        span
        for span in collected._spans.get_finished_spans()
        if span.name == "tools/call weigh" and span.kind is SpanKind.CLIENT
    ]
    (call,) = spans
    assert call.attributes is not None
    expected = {"mcp.protocol.version": revision, "network.transport": "pipe"}
    if kind == "http":
        port = session.attributes["server.port"]
        expected |= {
            "network.transport": "tcp",
            "server.address": "127.0.0.1",
            "server.port": port,
        }
    assert dict(session.attributes) == expected
    assert session.count == 1
    assert expected.items() <= dict(call.attributes).items()
    (measured,) = [
        point
        for point in collected.points("mcp.client.operation.duration")
        if point.attributes["mcp.method.name"] == "tools/call"
    ]
    assert expected.items() <= dict(measured.attributes).items()


async def test_the_names_of_strangers_are_no_attributes_of_metrics(collected: Collected) -> None:
    """A caller may send any name; a metric has those that were answered."""
    async with connected(shop(collected), "memory") as client:
        await client.call_tool("weigh")
        assert (await client.call_tool("fail")).is_error
        for name in ("x1", "x2"):
            with pytest.raises(McpError):
                await client.call_tool(name)
    names = {
        point.attributes.get("gen_ai.tool.name")
        for point in collected.points("mcp.server.operation.duration")
        if point.attributes["mcp.method.name"] == "tools/call"
    }
    assert names == {"weigh", "fail", "_other"}


async def test_the_message_of_an_exception_is_not_exported(collected: Collected) -> None:
    """It may contain secrets. The class says what happened."""
    server = Server("shop", observe=Observe(metrics=None, tracing=collected.telemetry))

    @server.tool
    async def open_safe(ctx: Context) -> str:
        with ctx.span("turn the wheel"):
            raise ValueError("the code is 4711")

    async with connected(server, "memory") as client:
        assert (await client.call_tool("open_safe")).is_error
    span = collected.named("turn the wheel")
    assert span.attributes == {"error.type": "ValueError"}
    assert span.status.status_code is StatusCode.ERROR
    assert "4711" not in span.to_json()


async def test_a_task_that_another_worker_runs_is_linked_with_its_call(
    collected: Collected, tmp_path: Path
) -> None:
    """The link lies in the store with the task."""
    running: list[str] = []
    started = asyncio.Event()
    workers: dict[str, Collected] = {"first": collected, "second": Collected()}

    def worker(name: str) -> Server:
        tracing = workers[name].telemetry
        server = Server(
            "shop",
            observe=Observe(metrics=None, tracing=tracing),
            extensions=[Tasks(f"sqlite:///{tmp_path}/tasks.db")],
        )

        @server.tool(task="required")
        async def knit() -> str:
            running.append(name)
            started.set()
            if name == "first":
                await asyncio.Event().wait()
            return "a scarf"

        return server

    first = worker("first")
    options: dict[str, Any] = {"tracing": collected.telemetry}
    async with (
        asyncio.timeout(60),
        connected(worker("second"), "memory") as other,
        connected(first, "memory", **options) as client,
    ):
        task = await client.start_tool("knit")
        await started.wait()
        await first.drain()
        assert (await other.task(task.id).result()).text == "a scarf"
    assert running == ["first", "second"]
    (call,) = [
        span
        for span in collected._spans.get_finished_spans()
        if span.name == "tools/call knit" and span.kind is SpanKind.SERVER
    ]
    (again,) = [
        span for span in workers["second"]._spans.get_finished_spans() if span.name == call.name
    ]
    assert again.kind is SpanKind.INTERNAL
    assert [link.context.span_id for link in again.links] == [call.context.span_id]
    assert again.context.trace_id != call.context.trace_id
