"""A client says what it can before the revision is agreed; afterwards only that counts of it which
the revision knows.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import types as t
from interlock.wire.codec import encode
from tests.protocol.frames import asked, greeted, request

EVERYTHING = {
    "roots": {"listChanged": True},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
}

KNOWN: dict[str, dict[str, Any]] = {
    "2024-11-05": {"roots": {"listChanged": True}, "sampling": {}},
    "2025-03-26": {"roots": {"listChanged": True}, "sampling": {}},
    "2025-06-18": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
    "2025-11-25": EVERYTHING,
}


@pytest.mark.parametrize("revision", KNOWN)
def test_only_what_the_revision_knows_counts(revision: str) -> None:
    """Without this a page to visit would be sent to a 2025-06-18 client as a form without fields
    (`LIF-11`, `LIF-12`, `LIF-16`).
    """
    connection = greeted(revision, capabilities=EVERYTHING)
    caller = asked(connection, request(1, "tools/list")).caller
    assert caller.capabilities == t.ClientCapabilities(
        roots=t.RootsCapability(list_changed=True),
        sampling=t.SamplingCapability(**KNOWN[revision]["sampling"]),
        elicitation=t.ElicitationCapability(**KNOWN[revision]["elicitation"])
        if "elicitation" in KNOWN[revision]
        else None,
    )
    assert encode(caller.capabilities, revision) == encode(caller.capabilities, "2025-11-25")
