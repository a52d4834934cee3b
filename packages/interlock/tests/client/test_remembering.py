"""What a client found out about its server once it need not find out again."""

from __future__ import annotations

import msgspec
import pytest

from interlock import REVISIONS, Client, Server


@pytest.mark.parametrize(
    "revisions, first, second",
    [
        (REVISIONS[:4], ["server/discover", "initialize"], ["initialize"]),
        (REVISIONS[4:], ["server/discover"], ["server/discover"]),
    ],
    ids=["handshake", "stateless"],
)
async def test_the_era_is_remembered(revisions, first, second):
    """A client that is opened again does not probe a server that it greeted before (`ERA-13`)."""
    said: list[str] = []

    def tap(sender: str, frame: bytes) -> None:
        message = msgspec.json.decode(frame)
        if sender == "client" and "id" in message:
            said.append(message["method"])

    client = Client(Server("remembered", revisions=revisions).transport(tap=tap))
    await client.open()
    assert said == first
    await client.aclose()
    said.clear()
    await client.open()
    assert said == second
    assert client.revision == revisions[-1]
    await client.aclose()
