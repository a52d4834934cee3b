"""Keys of `_meta`: their grammar, the prefixes that are reserved, and what an author is told of a
key that cannot be used."""

from __future__ import annotations

import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, Server
from interlock import types as t
from interlock.meta_keys import is_key, is_reserved
from interlock.wire.revisions import REVISIONS

VALID = [
    "a",
    "progressToken",
    "a-b_c.9",
    "com.example/",
    "com.example/x",
    "x/y",
    "c-1.e2/A.b",
    "0",
    "",
]
INVALID = [
    "-a",
    "a-",
    ".a",
    "a.",
    "_",
    "a b",
    "größe",
    "a\n",
    "/a",
    "1a.b/c",
    "a-.b/c",
    "a..b/c",
    ".a/c",
    "a./c",
    "a/b/c",
    "a_b/c",
    "a/-",
]
RESERVED = {
    # key: whether it is reserved
    "io.modelcontextprotocol/x": True,
    "dev.mcp/x": True,
    "org.modelcontextprotocol.api/x": True,
    "com.mcp.tools/x": True,
    "IO.MCP/x": True,
    "com.example/x": False,
    "mcp/x": False,
    "x": False,
    "io.modelcontextprotocol.x": False,
    "com.example.mcp/x": False,
    # only 2025-06-18 reserves these
    "mcp.dev/x": True,
    "modelcontextprotocol.io/x": True,
    "api.modelcontextprotocol.org/x": True,
    "a.b.mcp.dev/x": True,
}


@pytest.mark.parametrize("key", VALID)
def test_keys(key: str) -> None:
    """An optional prefix of dotted labels, and a name (`MET-02`)."""
    assert is_key(key)


@pytest.mark.parametrize("key", INVALID)
def test_what_is_no_key(key: str) -> None:
    """Labels that begin with a digit, names that end with a sign, two slashes, other letters
    (`MET-02`)."""
    assert not is_key(key)


LABELS = st.from_regex(r"[A-Za-z]([A-Za-z0-9-]{0,5}[A-Za-z0-9])?", fullmatch=True)


@given(st.lists(LABELS, min_size=1, max_size=5), st.text(max_size=8))
def test_reserved_is_decided_by_the_prefix_alone(labels: list[str], name: str) -> None:
    """By its second label, and in 2025-06-18 by its last but one; the name has no say (`MET-03`,
    `MET-04`)."""
    owned = [label.lower() in ("mcp", "modelcontextprotocol") for label in labels]
    expected = len(labels) > 1 and (owned[1] or owned[-2])
    assert is_reserved(f"{'.'.join(labels)}/{name}") is expected


@pytest.mark.parametrize("key, reserved", RESERVED.items())
def test_reserved_keys(key: str, reserved: bool) -> None:
    """The examples of the specification, and their neighbours (`MET-03`, `MET-04`)."""
    assert is_reserved(key) is reserved


def features(server: Server, meta: dict[str, object]) -> None:
    """A tool, a prompt, a resource and a template with this `_meta`."""
    server.tool("a", meta=meta)(lambda: None)
    server.prompt("b", meta=meta)(lambda: "b")
    server.resource("c:d", meta=meta)(lambda: "c")
    server.resource("e:{x}", meta=meta)(lambda x: x)


def test_a_feature_with_a_key_that_cannot_be() -> None:
    """Each kind of feature is refused, in words that say what a key looks like (`MET-02`,
    `MET-05`)."""
    words = re.escape("'a b' is not a valid key for _meta") + ".*'com.example/'"
    server = Server("s")
    with pytest.raises(ValueError, match=words):
        server.tool("a", meta={"a b": 1})(lambda: None)
    with pytest.raises(ValueError, match=words):
        server.prompt("b", meta={"a b": 1})(lambda: "b")
    with pytest.raises(ValueError, match=words):
        server.resource("c:d", meta={"a b": 1})(lambda: "c")
    with pytest.raises(ValueError, match=words):
        server.resource("e:{x}", meta={"a b": 1})(lambda x: x)


@pytest.mark.parametrize(
    "key, told", [("io.modelcontextprotocol/x", True), ("com.example/x", False)]
)
def test_an_author_is_told_of_a_reserved_prefix(
    key: str, told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Official extensions have such keys, so that it is no error; the words name a prefix of one's
    own (`MET-04`, `MET-05`)."""
    with caplog.at_level(logging.WARNING, "interlock.server"):
        features(Server("s"), {key: 1})
    told_of = [record for record in caplog.records if "is reserved for MCP" in record.getMessage()]
    assert len(told_of) == (4 if told else 0)
    assert ("com.example/" in caplog.text) is told


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_does_not_send_a_key_of_the_protocol_for_its_author(revision: str) -> None:
    """Neither a malformed one: nothing is sent, so that no message holds one key twice (`MET-02`,
    `MET-04`)."""
    server = Server("s")
    called: list[int] = []
    server.tool("a")(lambda: called.append(1))
    async with Client(server, revision=revision) as client:
        for key in ("progressToken", "io.modelcontextprotocol/protocolVersion"):
            with pytest.raises(ValueError, match=f"{key} in meta: the client writes"):
                await client.call_tool("a", meta={key: "x"})
        with pytest.raises(ValueError, match="is not a valid key for _meta"):
            await client.call_tool("a", meta={"a/b/c": "x"})
        assert called == []
        assert isinstance(await client.call_tool("a", meta={"com.example/": 1}), t.CallToolResult)
        assert called == [1]
