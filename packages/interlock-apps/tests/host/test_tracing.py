"""Traces of conversations: a turn, its requests to models and its calls, down to the server."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from interlock import Context, Observe, Server
from interlock.models.interface import ModelFailure
from interlock.models.scripted import call
from interlock.observe.opentelemetry import OpenTelemetry
from tests.host.scene import ALLOW, YES, Sitting, scene


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    """Keeps the spans of this test."""
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: InMemorySpanExporter) -> OpenTelemetry:
    """Exports to it."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return OpenTelemetry(provider)


def shop(tracing: OpenTelemetry) -> Server:
    """A server that asks the model of the host."""
    server = Server("shop", observe=Observe(metrics=None, tracing=tracing))

    @server.tool
    async def describe(what: str, ctx: Context) -> str:
        answer = await ctx.sample(f"Describe {what}", max_tokens=50)
        return answer.text

    return server


def spans_of(exporter: InMemorySpanExporter) -> dict[str, list[ReadableSpan]]:
    found: dict[str, list[ReadableSpan]] = {}
    for span in exporter.get_finished_spans():
        found.setdefault(span.name, []).append(span)
    return found


def check_child(child: ReadableSpan, parent: ReadableSpan) -> None:
    assert child.parent is not None
    assert child.parent.span_id == parent.context.span_id
    assert child.context.trace_id == parent.context.trace_id


async def test_one_trace_from_the_turn_to_the_server_and_back(
    exporter: InMemorySpanExporter, tracing: OpenTelemetry
) -> None:
    """Turn, model, call, its question at the client, and the model that answers it."""
    answers = (["I ask.", call("shop__describe", what="secret tea")], "Green.", "It is green.")
    person = Sitting(sample=YES, sampled=YES)
    async with scene(
        {"shop": shop(tracing)}, *answers, person=person, policy=ALLOW, tracing=tracing
    ) as one:
        session = one.host.session()
        await session.say("What is secret tea?")
    spans = spans_of(exporter)
    (turn,) = spans["invoke_agent interlock-host"]
    calls = spans["tools/call describe"]
    (client,) = [span for span in calls if span.kind is SpanKind.CLIENT]
    # The question is an `input_required` result, so the server gets the call and its retry.
    server, again = [span for span in calls if span.kind is SpanKind.SERVER]
    (question,) = spans["sampling/createMessage"]
    first, sampled, last = sorted(
        (span for name, each in spans.items() if name.startswith("chat ") for span in each),
        key=lambda span: span.start_time or 0,
    )
    assert turn.parent is None
    for child, parent in [
        (first, turn),
        (client, turn),
        (last, turn),
        (server, client),
        (again, client),
        (question, client),
        (sampled, question),
    ]:
        check_child(child, parent)
    assert turn.attributes is not None
    assert turn.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert turn.attributes["gen_ai.conversation.id"] == session.id
    assert turn.attributes["interlock.turn.ended"] == "done"
    for chat in (first, sampled, last):
        assert chat.kind is SpanKind.CLIENT
        assert chat.attributes is not None
        assert chat.attributes["gen_ai.operation.name"] == "chat"
        assert chat.attributes["gen_ai.conversation.id"] == session.id
        assert {
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.response.model",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
        } <= set(chat.attributes)
    assert "secret" not in "".join(span.to_json() for each in spans.values() for span in each)


async def test_a_model_that_fails_is_a_failed_span(
    exporter: InMemorySpanExporter, tracing: OpenTelemetry
) -> None:
    failure: Any = ModelFailure("The key sk-123 is wrong.", "unauthorized")
    async with scene({"shop": shop(tracing)}, failure, tracing=tracing) as one:
        await one.host.session().say("Hello")
    spans = spans_of(exporter)
    (chat,) = [
        each for name, all_of in spans.items() if name.startswith("chat ") for each in all_of
    ]
    assert chat.attributes is not None
    assert chat.attributes["interlock.model.failure"] == "unauthorized"
    assert chat.status.status_code is StatusCode.ERROR
    assert "sk-123" not in chat.to_json()
