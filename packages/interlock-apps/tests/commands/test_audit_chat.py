"""What the terminal's face says by itself, and what it does not take from a server."""

from __future__ import annotations

import base64

import pytest

from interlock import Server
from interlock_apps.commands.chat import results
from interlock_apps.fleet.events import Trimmed
from tests.commands.seated import seated


async def test_what_is_left_out_is_told() -> None:
    """Trimming goes by rules that can be seen, at the terminal, too."""
    async with seated({"s": Server("s")}) as seat:
        await seat.see("❯")
        (session,) = seat.host.sessions
        seat.host.publish(
            Trimmed(
                session=session, rule="old-turns", words="Left out: the oldest turns.", tokens=1234
            )
        )
        shown = await seat.see(r"1,234 tokens")
        assert "Left out of what the model sees (old-turns)" in shown
        seat.type("\x04")
        await seat.end()


def test_a_medium_that_is_too_large_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server does not fill the disk of whoever looks at its results."""
    data = base64.b64encode(b"x" * 30).decode()
    monkeypatch.setattr(results, "MOST_FILE", len(data))
    media = results.MediaFiles()
    try:
        assert media.keep(data, "image/png").startswith("file://")
        assert media.keep(f"{data}AAAA", "image/png") == ""
    finally:
        media.forget()
