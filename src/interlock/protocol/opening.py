"""How a client finds out which revision to speak: a procedure without I/O, so that every turn of it can be a row of a table.

It yields what it wants done and receives what came of it (2026-07-28, "stdio", "Backward Compatibility"; "Versioning").
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from .. import types as t
from ..wire.revisions import HANDSHAKE_REVISIONS, REVISIONS, STATELESS_REVISIONS

DEFAULT_PROBE_SECONDS = 5.0


class Discover(Struct, frozen=True):
    """Please send `server/discover` under this revision, and wait for `seconds` at the most (None: no bound of ours)."""

    revision: str
    seconds: float | None


class Initialize(Struct, frozen=True):
    """Please send `initialize` offering this revision."""

    revision: str


class Silence(Struct, frozen=True):
    """Nothing came in time."""


class Opened(Struct, frozen=True):
    """Agreed: the revision to speak, and what the server says of itself."""

    revision: str
    info: t.Implementation | None
    capabilities: t.ServerCapabilities
    instructions: str | None = None
    supported: tuple[str, ...] = ()


class Refused(t.ProtocolError):
    """There is no revision that both sides speak."""


Step = Discover | Initialize
Outcome = t.DiscoverResult | t.InitializeResult | t.McpError | Silence


def opening(
    revisions: Sequence[str] = REVISIONS,
    *,
    known: str | None = None,
    seconds: float = DEFAULT_PROBE_SECONDS,
) -> Generator[Step, Outcome, Opened]:
    """Agree on a revision among `revisions`; `known` is one that this server was found to speak before.

    Returns Opened; raises Refused where nothing fits, McpError where the server refuses `initialize`.
    """
    stateless = [r for r in STATELESS_REVISIONS if r in revisions]
    handshake = [r for r in HANDSHAKE_REVISIONS if r in revisions]
    if not stateless or known in handshake:
        return (yield from _greet(handshake, stateless, probed=not stateless))
    opened, silent = yield from _probe(stateless, handshake, seconds)
    if opened is not None:
        return opened
    if not handshake:
        if silent:
            raise t.TimedOut("The server did not answer `server/discover`.")
        raise Refused(
            f"The server does not speak {', '.join(stateless)}, and an older revision was not allowed."
        )
    return (yield from _greet(handshake, stateless, probed=not silent))


def _probe(
    stateless: Sequence[str], handshake: Sequence[str], seconds: float | None
) -> Generator[Step, Outcome, tuple[Opened | None, bool]]:
    """Ask with `server/discover`. Returns what was agreed, if anything, and whether the server kept silent."""
    tried: list[str] = []
    revision = stateless[-1]
    while True:
        tried.append(revision)
        outcome = yield Discover(revision, seconds if handshake else None)
        if isinstance(outcome, t.DiscoverResult):
            mutual = [r for r in outcome.supported_versions if r in stateless]
            if not mutual:
                _refuse_strangers(outcome.supported_versions, handshake)
                return None, False
            return _discovered(max(mutual), outcome), False
        if isinstance(outcome, Silence):
            return None, True
        supported = _supported(outcome)
        if supported is None:
            return None, False
        mutual = [r for r in supported if r in stateless]
        if mutual and len(tried) <= len(stateless):
            revision = max(
                mutual
            )  # also where it is the one just sent: the server may have changed its mind (`CFQ-05`)
            continue
        _refuse_strangers(supported, handshake)
        return None, False


def _refuse_strangers(supported: Sequence[str], handshake: Sequence[str]) -> None:
    """The server is of the stateless era but shares no such revision; an older one it names is greeted, else it is the end."""
    if not any(r in handshake for r in supported):
        raise Refused(
            f"The server speaks {', '.join(supported) or 'nothing it would name'}; none of these is allowed here."
        )


def _supported(outcome: Outcome) -> list[str] | None:
    """The revisions that an UnsupportedProtocolVersion error names; None for any other error."""
    if not isinstance(outcome, t.McpError) or outcome.code != t.UNSUPPORTED_PROTOCOL_VERSION:
        return None
    supported = outcome.data.get("supported") if isinstance(outcome.data, dict) else None
    return [r for r in supported if isinstance(r, str)] if isinstance(supported, list) else None


def _discovered(revision: str, result: t.DiscoverResult) -> Opened:
    info = (result.meta or {}).get("io.modelcontextprotocol/serverInfo")
    return Opened(
        revision,
        _implementation(info),
        result.capabilities,
        result.instructions,
        tuple(result.supported_versions),
    )


def _implementation(info: Any) -> t.Implementation | None:
    with contextlib.suppress(msgspec.ValidationError):  # then what can be read of it
        return msgspec.convert(info, t.Implementation)
    if not isinstance(info, dict) or not isinstance(info.get("name"), str):
        return None
    title = info.get("title")
    return t.Implementation(
        name=info["name"],
        version=str(info.get("version", "")),
        title=title if isinstance(title, str) else None,
    )


def _greet(
    handshake: Sequence[str], stateless: Sequence[str], *, probed: bool
) -> Generator[Step, Outcome, Opened]:
    """Open with `initialize`, offering the newest that is allowed (`LIF-02`)."""
    if not handshake:
        raise Refused("No revision is allowed that this server could speak.")
    outcome = yield Initialize(handshake[-1])
    if isinstance(outcome, t.InitializeResult):
        if outcome.protocol_version not in handshake:
            raise Refused(
                f"The server wants to speak {outcome.protocol_version}; allowed here are {', '.join(handshake)}."
            )
        return Opened(
            outcome.protocol_version,
            outcome.server_info,
            outcome.capabilities,
            outcome.instructions,
        )
    if not probed and _supported(outcome) is not None:
        opened, _ = yield from _probe(
            stateless, handshake=(), seconds=None
        )  # the probe was merely slow to be answered
        if opened is not None:
            return opened
    if isinstance(outcome, t.McpError):
        raise outcome
    raise t.TimedOut("The server did not answer `initialize`.")
