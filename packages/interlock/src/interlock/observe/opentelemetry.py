"""OpenTelemetry: traces and metrics of servers and clients, by the semantic conventions for MCP.

It needs the extra `otel`, and nothing of it is imported without this module. The conventions are
those of the repository semantic-conventions-genai, in its state of development of 2026-07.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Final, Literal

from msgspec.structs import replace

from .. import types as t
from ..exchange import AnyResult, Asker, Caller, Exchange, Handler, TraceContext
from ..logs import limited
from .meters import CANCELLED, OTHER, TOOL_ERROR, error_type
from .spans import Attribute, SpanRole, current_tracing

try:
    from opentelemetry import baggage, context, metrics, trace
    from opentelemetry.baggage.propagation import W3CBaggagePropagator
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as missing:
    raise ImportError("OpenTelemetry is missing: pip install 'interlock[otel]'") from missing

log = limited("interlock.observe")

BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""The buckets that the conventions give for durations, in seconds."""

# `_meta` has the forms of W3C, whatever propagators the process uses elsewhere (SEP-414).
_TRACES: Final = TraceContextTextMapPropagator()
_BAGGAGE: Final = W3CBaggagePropagator()
_LISTENING = "subscriptions/listen"
_LIBRARY = "interlock"
_MOST_NAMES = 2000  # of tools and prompts, in metrics
_TARGETS = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}
_VARIABLES = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)


class OpenTelemetry:
    """Traces and metrics of servers and clients.

    `Server("shop", observe=Observe(tracing=OpenTelemetry()))`,
    `Client(url, tracing=OpenTelemetry())`. The context of a trace travels in `_meta`,
    both ways. Arguments, results and tokens are never part of a span.

    Args:
        tracer_provider: Makes the spans; by default that of the process.
        meter_provider: Keeps the metrics; by default that of the process.
        resource_uris: Whether spans have the URIs of resources, which may contain secrets.

    Raises:
        ImportError: The extra `otel` is not installed (raised by the import of this module).
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        resource_uris: bool = False,
    ) -> None:
        self._providers = (tracer_provider, meter_provider)
        self._tracer = trace.get_tracer(_LIBRARY, tracer_provider=tracer_provider)
        self._meter = metrics.get_meter(_LIBRARY, meter_provider=meter_provider)
        self._resource_uris = resource_uris
        self._durations = {
            kind: self._meter.create_histogram(
                f"mcp.{side}.operation.duration",
                unit="s",
                description=f"How long requests took, as the {side} saw it.",
                explicit_bucket_boundaries_advisory=BUCKETS,
            )
            for kind, side in ((SpanKind.SERVER, "server"), (SpanKind.CLIENT, "client"))
        }
        self._sessions = {
            side: self._meter.create_histogram(
                f"mcp.{side}.session.duration",
                unit="s",
                description=f"How long sessions and connections of the {side} lasted.",
                explicit_bucket_boundaries_advisory=BUCKETS,
            )
            for side in ("server", "client")
        }
        self._counters: dict[str, metrics.Counter] = {}
        self._known: set[tuple[str, Attribute]] = set()  # names of tools and prompts

    def server(self, handler: Handler) -> Handler:
        """Return the handler of a server with a span around each request."""

        def handle(x: Exchange) -> Awaitable[AnyResult]:
            if x.method == _LISTENING:
                return handler(x)
            current_tracing.set(self)
            return self._measured(handler, x, SpanKind.SERVER, _parent(x.caller))

        return handle

    def client(self, handler: Handler, attributes: Mapping[str, Attribute] = {}) -> Handler:
        """Middleware of a client: a span around each request, whose context the server gets, and
        one around each answer to a question of the server.

        Args:
            handler: Sends the requests.
            attributes: Attributes of all spans and metrics, such as `server.address`.
        """

        async def send(x: Exchange) -> AnyResult:
            here = context.get_current()
            caller = replace(x.caller, trace=_injected(here))
            asker = _TracedAsker(x.asker, self._tracer, here)
            return await handler(replace(x, caller=caller, asker=asker))

        def handle(x: Exchange) -> Awaitable[AnyResult]:
            if x.method == _LISTENING or x.method.startswith("notifications/"):
                return handler(x)
            return self._measured(send, x, SpanKind.CLIENT, None, attributes)

        return handle

    def task(self, handler: Handler, started_by: str = "") -> Handler:
        """Return the handler of a task. Its span is linked with the one of the request that started
        it, and is not its child: a task lasts longer, and may run in another process.

        Args:
            handler: Runs the task.
            started_by: The span of the request, as a W3C `traceparent`.
        """
        links = [trace.Link(_remote(started_by))] if started_by else []

        async def run(x: Exchange) -> AnyResult:
            current_tracing.set(self)
            attributes, _ = self._attributes(x)
            with self._tracer.start_as_current_span(
                _name(x),
                context=Context(),
                kind=SpanKind.INTERNAL,
                attributes=attributes,
                links=links,
                record_exception=False,
                set_status_on_exception=False,
            ) as span:
                return await _finished(span, handler, x)

        return run

    async def _measured(
        self,
        handler: Handler,
        x: Exchange,
        kind: SpanKind,
        parent: Context | None,
        of_connection: Mapping[str, Attribute] = {},
    ) -> AnyResult:
        """Handle one exchange within a span, and record its duration."""
        attributes, measured = self._attributes(x)
        if of_connection:
            measured.update(of_connection)
            attributes.update(of_connection)
        began = perf_counter()
        # By hand: the context managers of the API cost more than a span that is not sampled.
        span = self._tracer.start_span(
            _name(x),
            context=parent,
            kind=kind,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        )
        token = context.attach(trace.set_span_in_context(span, parent))
        error = ""
        try:
            result = await handler(x)
            if isinstance(result, t.CallToolResult) and result.is_error:
                error = TOOL_ERROR
            return result
        except BaseException as bad:
            error = error_type(bad)
            if isinstance(bad, t.McpError):
                span.set_attribute("rpc.response.status_code", str(bad.code))
            raise
        finally:
            if error:
                _fail(span, error)
                measured["error.type"] = error
            if kind is SpanKind.SERVER and x.method in _TARGETS:
                self._bound_name(x.method, measured, error)
            context.detach(token)
            span.end()
            self._durations[kind].record(perf_counter() - began, measured)

    def _bound_name(self, method: str, measured: dict[str, Attribute], error: str) -> None:
        """Replace a name that nobody has answered to in a metric: a caller may send any."""
        target = _TARGETS[method]
        key = (method, measured[target])
        if key in self._known:
            return
        if error not in ("", TOOL_ERROR) or len(self._known) >= _MOST_NAMES:
            measured[target] = OTHER
        else:
            self._known.add(key)

    def _attributes(self, x: Exchange) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
        """Return the attributes of a span, and those of them that are attributes of metrics."""
        caller = x.caller
        method = x.method
        measured: dict[str, Attribute] = {
            "mcp.method.name": method,
            "mcp.protocol.version": caller.revision,
            "network.transport": "tcp" if x.transport.is_http else "pipe",
        }
        if method in _TARGETS:
            measured[_TARGETS[method]] = x.params.name
            if method == "tools/call":
                measured["gen_ai.operation.name"] = "execute_tool"
        uri = getattr(x.params, "uri", None) if self._resource_uris else None
        if uri is None and caller.session is None:
            return measured, measured
        attributes = measured.copy()
        if uri is not None:
            attributes["mcp.resource.uri"] = uri
        if caller.session is not None:
            attributes["mcp.session.id"] = caller.session
        return attributes, measured

    @contextmanager
    def span(
        self, name: str, attributes: Mapping[str, Attribute], role: SpanRole = "internal"
    ) -> Iterator[Span]:
        """Return a block that is a span within the current one. The message of an exception is no
        part of it.
        """
        with self._tracer.start_as_current_span(
            name,
            kind=SpanKind.CLIENT if role == "client" else SpanKind.INTERNAL,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as bad:
                _fail(span, error_type(bad))
                raise

    def traceparent(self) -> str:
        """Return the current span in the form of W3C; "" if there is none."""
        current = trace.get_current_span().get_span_context()
        return _traceparent(current) if current.is_valid else ""

    def session_ended(
        self,
        seconds: float,
        attributes: Mapping[str, Attribute],
        side: Literal["server", "client"] = "server",
    ) -> None:
        """Record the duration of a session, as one side saw it."""
        self._sessions[side].record(seconds, attributes)

    def count(self, name: str, amount: float, labels: Mapping[str, str]) -> None:
        """Add to a counter."""
        counter = self._counters.get(name)
        if counter is None:
            counter = self._counters[name] = self._meter.create_counter(name)
        counter.add(amount, labels)

    def shutdown(self) -> None:
        """Send what has not been sent, and stop. For providers that were given only."""
        for provider in self._providers:
            stop = getattr(provider, "shutdown", None)
            if stop is not None:
                stop()


class _TracedAsker:
    """The asker of a client's request: the answer to each question is a span within the request.

    Args:
        asker: Answers the questions.
        tracer: Makes the spans.
        parent: The context of the request's span: the question may arrive in another task.
    """

    def __init__(self, asker: Asker, tracer: Tracer, parent: Context) -> None:
        self._asker = asker
        self._tracer = tracer
        self._parent = parent
        self.once = asker.once

    async def ask(self, request: t.InputRequest, key: str | None = None) -> t.InputResponse:
        """Answer a question."""
        method = str(type(request).__struct_config__.tag)
        with self._tracer.start_as_current_span(
            method,
            context=self._parent,
            kind=SpanKind.SERVER,
            attributes={"mcp.method.name": method},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                return await self._asker.ask(request, key)
            except BaseException as bad:
                _fail(span, error_type(bad))
                raise


def _name(x: Exchange) -> str:
    """The name of a span: the method, with the tool or the prompt."""
    return f"{x.method} {x.params.name}" if x.method in _TARGETS else x.method


def _parent(caller: Caller) -> Context | None:
    """Return the context of the sender's span. Its form has been checked (W3C Trace Context)."""
    sent = caller.trace
    if sent is None or sent.traceparent is None:
        return None if sent is None or sent.baggage is None else _extracted(sent)
    if sent.tracestate is not None or sent.baggage is not None:
        return _extracted(sent)
    # The usual case, ten times as fast as the propagator.
    return trace.set_span_in_context(trace.NonRecordingSpan(_remote(sent.traceparent)))


def _remote(traceparent: str) -> trace.SpanContext:
    """Return the span that a `traceparent` names. Its form has been checked."""
    words = traceparent.split("-")
    return trace.SpanContext(
        int(words[1], 16), int(words[2], 16), True, trace.TraceFlags(int(words[3], 16))
    )


def _traceparent(span: trace.SpanContext) -> str:
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"


def _extracted(sent: TraceContext) -> Context:
    carrier = {
        "traceparent": sent.traceparent,
        "tracestate": sent.tracestate,
        "baggage": sent.baggage,
    }
    given = {key: value for key, value in carrier.items() if value is not None}
    return _BAGGAGE.extract(given, _TRACES.extract(given))


def _injected(here: Context) -> TraceContext:
    """Return what a request carries of a context."""
    current = trace.get_current_span(here).get_span_context()
    if not current.is_valid and not baggage.get_all(here):
        return TraceContext(None, None, None)
    if current.is_valid and not current.trace_state and not baggage.get_all(here):
        return TraceContext(_traceparent(current), None, None)
    carrier: dict[str, str] = {}
    _TRACES.inject(carrier, here)
    _BAGGAGE.inject(carrier, here)
    return TraceContext(
        carrier.get("traceparent"), carrier.get("tracestate"), carrier.get("baggage")
    )


async def _finished(span: Span, handler: Handler, x: Exchange) -> AnyResult:
    """Run a handler within its span, and note in the span how it failed."""
    try:
        result = await handler(x)
    except BaseException as bad:
        _fail(span, error_type(bad))
        raise
    if isinstance(result, t.CallToolResult) and result.is_error:
        _fail(span, TOOL_ERROR)
    return result


def _fail(span: Span, error: str) -> None:
    span.set_attribute("error.type", error)
    if error != CANCELLED:
        span.set_status(Status(StatusCode.ERROR))


def from_environment(name: str, version: str) -> OpenTelemetry | None:
    """Return OpenTelemetry that exports over OTLP (HTTP), as the variables of the environment say;
    None if no endpoint is set, or if it is disabled.

    Call it after a fork, because it starts threads.

    Args:
        name: The name of the service, unless OTEL_SERVICE_NAME is set.
        version: Its version.
    """
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if not any(os.environ.get(variable) for variable in _VARIABLES):
        return None
    # late: only for programs that export over OTLP
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk import metrics as sdk_metrics
    from opentelemetry.sdk import trace as sdk_trace
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    given: dict[str, Any] = {"service.version": version}
    if not os.environ.get("OTEL_SERVICE_NAME"):
        given["service.name"] = name
    resource = Resource.create(given)
    traces = sdk_trace.TracerProvider(resource=resource)
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    return OpenTelemetry(traces, sdk_metrics.MeterProvider([reader], resource=resource))
