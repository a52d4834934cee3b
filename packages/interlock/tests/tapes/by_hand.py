"""The tapes whose client's part was written by hand: one for several revisions,
whose date stands in them as REVISION."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from interlock import Server
from interlock.tape import Tape
from interlock.testing import channel_pair
from tests.tapes import features, talk
from tests.tapes.scenarios import fresh

FOLDER = Path(__file__).with_name("by-hand")
TAPES = sorted(FOLDER.glob("*.jsonl"))
PLACE = "REVISION"
SERVERS = {
    "bare": lambda revision: fresh(),
    "tools": features.tool_server,
    "resources": features.resource_server,
    "telling": talk.telling_server,
}


def revisions_of(path: Path) -> list[str]:
    """The revisions that a tape is for."""
    return list(Tape.load(path).about["revisions"])


def load(path: Path, revision: str) -> Tape:
    """A tape as one revision has it."""
    return Tape.from_bytes(path.read_bytes().replace(PLACE.encode(), revision.encode()), path.name)


def server_of(path: Path) -> Server:
    """The server that a tape is for."""
    return SERVERS[Tape.load(path).about["server"]]("")


async def answered(written: list[str], server: Server, revision: str) -> list[str]:
    """The lines of a tape with what a server answers now after each message of the client."""
    ours, theirs = channel_pair()
    serving = asyncio.create_task(server.serve(theirs))
    lines: list[str] = []
    for line in written:
        kind = next(iter(json.loads(line)))
        if kind.startswith("server"):
            continue
        lines.append(line)
        if not kind.startswith("client"):
            continue
        (said,) = Tape.from_bytes(line.replace(PLACE, revision).encode())
        ours.send([said.frame])
        for _ in range(50):  # nothing here waits for the outside world: by then all is said
            await asyncio.sleep(0)
        received = Tape()
        for frame in ours._arrived:
            received.record("server", frame)
        ours._arrived.clear()
        agreed = f'"protocolVersion":"{revision}"', f'"protocolVersion":"{PLACE}"'
        lines += received.blanked().to_bytes().decode().replace(*agreed).splitlines()
    await ours.aclose()
    await serving
    return lines


def answer_anew(path: Path) -> None:
    """Write a tape with the server's part of today.
    Raises ValueError where the revisions that it is for do not agree on it."""
    written = path.read_text(encoding="utf-8").splitlines()
    versions = {
        revision: asyncio.run(answered(written, server_of(path), revision))
        for revision in revisions_of(path)
    }
    first, *others = versions.values()
    if any(other != first for other in others):
        raise ValueError(
            f"{path.name}: the revisions {', '.join(versions)} do not answer "
            "alike; make it two tapes"
        )
    path.write_text("".join(f"{line}\n" for line in first), encoding="utf-8")
