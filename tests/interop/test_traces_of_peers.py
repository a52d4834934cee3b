"""Traces that go on between our side and the official Python SDK 2.x, both ways."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from interlock import Client
from interlock.observe.opentelemetry import OpenTelemetry
from interlock.wire.revisions import R4, R5
from tests.interop.driver import PEERS

pytestmark = pytest.mark.interop

SERVER = """
from interlock import Context, Observe, Server
from interlock.observe.opentelemetry import OpenTelemetry
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

tracing = OpenTelemetry(TracerProvider())
server = Server("traced", observe=Observe(metrics=None, tracing=tracing))

@server.tool
async def current(ctx: Context) -> str:
    with ctx.span("inside"):
        return format(trace.get_current_span().get_span_context().trace_id, "032x")

server.run()
"""


@pytest.mark.parametrize("revision", [R4, R5])
async def test_a_python_server_goes_on_with_our_trace(
    revision: str, installed: Callable[[str], Path]
) -> None:
    """`OTL-01`: our client's context is the parent of that server's span."""
    provider = TracerProvider()
    command = [str(installed("python-2")), str(PEERS / "trace_server_python_2.py")]
    tracing = OpenTelemetry(provider)
    async with Client(command, revision=revision, middleware=[tracing.client]) as client:
        with provider.get_tracer("test").start_as_current_span("turn") as span:
            result = await client.call_tool("current")
    assert result.text == format(span.get_span_context().trace_id, "032x")


def test_our_server_goes_on_with_the_trace_of_a_python_client(
    installed: Callable[[str], Path], tmp_path: Path
) -> None:
    """`OTL-01`: that client's context is the parent of our spans."""
    file = tmp_path / "traced.py"
    file.write_text(SERVER)
    client = [str(installed("python-2")), str(PEERS / "trace_client_python_2.py")]
    done = subprocess.run(
        [*client, sys.executable, str(file)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    wanted, found = done.stdout.split()
    assert found == wanted
