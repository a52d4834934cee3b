"""OpenAPI documents beside FastMCP: the same operations, in a smaller list."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from interlock import OpenApi
from interlock.wire.codec import encode
from tests.interop.driver import PEERS
from tests.server.openapi.documents import DOCUMENTS

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("name, most", [("orchestra", 0.5), ("post_office", 1.0)])
def test_the_list_beside_that_of_fastmcp(
    installed: Callable[[str], Path], tmp_path: Path, name: str, most: float
) -> None:
    """A document whose components are recursive has half its bytes, and no tool less."""
    document = DOCUMENTS[name]()
    path = tmp_path / "document.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    program = [str(installed("fastmcp")), str(PEERS / "openapi_fastmcp.py")]
    run = subprocess.run(
        [*program, str(path), "http://127.0.0.1:9"],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    theirs = json.loads(run.stdout.splitlines()[-1])
    tools = OpenApi(document, base="http://127.0.0.1:9", search=False).offered.tools
    assert len(tools) == theirs["tools"]
    ours = sum(len(encode(tool)) + 1 for tool in tools)
    assert ours <= most * theirs["bytes"], (ours, theirs["bytes"])
    assert msgspec.json.decode(encode(tools[0]))["name"] == tools[0].name
