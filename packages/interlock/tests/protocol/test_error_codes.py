"""Error codes on their way out: an error never has a code that its receiver's revision reserves or
gives another meaning."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Client, McpError, Server
from interlock import types as t
from interlock.protocol.error_codes import sendable
from interlock.wire.revisions import R3, R4, R5, REVISIONS

VISIT = {"mode": "url", "message": "Sign in.", "url": "https://example.com/", "elicitationId": "1"}
ASKED = {"elicitations": [VISIT]}
CODES: dict[str, tuple[int, Any, str, tuple[int, Any]]] = {
    # name: code, data, revision, what is sent
    "an application's own": (7, "d", R5, (7, "d")),
    "one of JSON-RPC": (-32602, "d", R5, (-32602, "d")),
    "one of the revision": (-32021, "d", R5, (-32021, "d")),
    "no resource, before 2026-07-28": (-32002, "d", R4, (-32002, "d")),
    "no resource, in 2026-07-28": (-32002, "d", R5, (-32602, "d")),
    "reserved and not defined": (-32050, "d", R5, (-32603, None)),
    "the last reserved": (-32099, "d", R5, (-32603, None)),
    "before the reserved": (-32100, "d", R5, (-32100, "d")),
    "a visit in 2025-11-25": (-32042, ASKED, R4, (-32042, ASKED)),
    "a visit in 2026-07-28": (-32042, ASKED, R5, (-32603, None)),
    "a visit in 2025-06-18": (-32042, ASKED, R3, (-32603, None)),
    "visits without data": (-32042, None, R4, (-32603, None)),
    "no visits": (-32042, {"elicitations": []}, R4, (-32603, None)),
    "a visit without an id": (
        -32042,
        {"elicitations": [VISIT, {**VISIT, "elicitationId": None}]},
        R4,
        (-32603, None),
    ),
    "a form": (-32042, {"elicitations": [{**VISIT, "mode": "form"}]}, R4, (-32603, None)),
    "visits that are no JSON": (-32042, {"elicitations": object()}, R4, (-32603, None)),
}


@pytest.mark.parametrize("code, data, revision, sent", CODES.values(), ids=CODES)
def test_the_code_of_a_revision(code: int, data: Any, revision: str, sent: tuple[int, Any]) -> None:
    """Reserved codes only with their meaning, and none that the revision has given up (`ERR-02`,
    `ERR-12`, `ERR-15`)."""
    assert sendable(code, data, revision) == sent


@pytest.mark.parametrize("revision", REVISIONS)
async def test_errors_of_authors_have_codes_of_the_revision(revision: str) -> None:
    """Whatever a tool raises: the peer gets a code that its revision has (`ERR-02`, `ERR-12`,
    `ERR-14`, `ERR-15`)."""
    server = Server("s")

    @server.tool
    def fail(code: int) -> None:
        raise McpError(code, "no", ASKED)

    seen = {}
    async with Client(server, revision=revision) as client:
        for code in (-32002, -32042, -32050, 7):
            with pytest.raises(McpError) as caught:
                await client.call_tool("fail", {"code": code})
            seen[code] = caught.value.code
    assert seen == {
        -32002: t.INVALID_PARAMS if revision == R5 else -32002,
        -32042: -32042 if revision == R4 else t.INTERNAL_ERROR,
        -32050: t.INTERNAL_ERROR,
        7: 7,
    }
