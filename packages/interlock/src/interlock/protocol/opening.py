"""How a client finds out which revision to speak: a procedure without I/O, so that every turn of it
can be a row of a table.

It yields what it wants done and receives what came of it (2026-07-28, "stdio", "Backward
Compatibility"; "Versioning").

Deployed servers of the handshake era are not all able to refuse `server/discover`. Some end when
they get it, some stop reading and stay, and bridges open their session for it and then refuse
`initialize`. The specification's order (the probe, then `initialize`) cannot open them. So where a
transport can start the server afresh, the procedure asks for a new process that gets `initialize`
first (`Restart`), and the result says so (`Opened.probe_failed`), for whoever remembers it for the
next time.

Silence proves little: a server that takes 20 seconds to start is as silent as one that has stopped.
What tells them apart is whether the server has read the request. Until then it is starting, and is
waited for; once it has read the request it answers within moments, or not at all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Any, TypeGuard

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import types as t
from ..wire.revisions import HANDSHAKE_REVISIONS, REVISIONS, STATELESS_REVISIONS

DEFAULT_PROBE_SECONDS = 5.0
PROBE_READ_SECONDS = 0.5
"""Seconds after which `initialize` is sent to a server that has read the probe and has not
answered. That it is merely slow does no harm: its answer counts when it comes (see AnsweredBoth),
and the Python SDK up to 1.8 ends with this message, which tells that it had stopped."""
READ_SECONDS = 1.25
"""Seconds after which a server that has read `initialize` too, and has answered neither, is taken
to have stopped. The two together leave a second of the three that a server which starts quickly may
be opened later than with `initialize` first."""


class Discover(Struct, frozen=True):
    """Please send `server/discover` under this revision, and wait for the answer.

    Attributes:
        revision: The revision to ask under.
        seconds: The longest wait; None: no bound of ours. It does not count where `read_seconds`
            does.
        read_seconds: The longest wait from when the server has read the request, where the
            transport can tell when that is. Until then the server is starting, and is waited for as
            long as for anything.
    """

    revision: str
    seconds: float | None
    read_seconds: float | None = None


class Handshake(Struct, frozen=True):
    """Please send `initialize` offering this revision, and wait for the answer.

    The probe that came before it on the same connection may be answered late. Where that is a
    DiscoverResult, return it instead, or AnsweredBoth if `initialize` is then answered too.

    Attributes:
        revision: The revision to offer.
        read_seconds: As that of Discover; None: no bound of ours.
    """

    revision: str
    read_seconds: float | None = None


class Restart(Struct, frozen=True):
    """Please start the server afresh, and take the step `first` there.

    Where the server that is there has not answered `initialize` yet and has not ended, it goes on
    beside the new one: the first result wins, and the other server is ended. Else it is ended
    before the new one is started.
    """

    first: Discover | Handshake


class Silence(Struct, frozen=True):
    """Nothing came in time."""


class AnsweredBoth(Struct, frozen=True):
    """The server has answered the probe late, and then `initialize` too.

    A server of both eras decides by the requests that it gets: after `initialize` it speaks the
    revision of its answer, and its results lack what newer revisions require.

    Attributes:
        discovered: Its answer to the probe.
        greeted: Its answer to `initialize`.
    """

    discovered: t.DiscoverResult
    greeted: t.InitializeResult


class Ended(Struct, frozen=True):
    """The server has ended, or has closed the connection; only of transports that can start it
    afresh.

    Attributes:
        why: What to raise if it is the end.
        unread: Whether it surely has not read what it was sent, so that this cannot be why.
    """

    why: t.InterlockError
    unread: bool = False


class CannotRestart(Struct, frozen=True):
    """The transport does not start the server, so it cannot start it afresh."""


class Opened(Struct, frozen=True):
    """Agreed: the revision to speak, and what the server says of itself.

    `probe_failed` says that the server could only be opened by a new process that got `initialize`
    first.
    """

    revision: str
    info: t.Implementation | None
    capabilities: t.ServerCapabilities
    instructions: str | None = None
    supported: tuple[str, ...] = ()
    probe_failed: bool = False


class UnsupportedRevision(t.ProtocolError):
    """There is no revision that both sides speak."""


Step = Discover | Handshake | Restart
OpeningResult = t.DiscoverResult | t.InitializeResult | AnsweredBoth
Outcome = OpeningResult | t.McpError | Silence | Ended | CannotRestart
Turns = Generator[Step, Outcome, Opened]


def is_opening_result(outcome: object) -> TypeGuard[OpeningResult]:
    """Whether a server has answered one of the two requests that open a conversation, or both."""
    return isinstance(outcome, OpeningResult)


def answered_late(
    discovered: t.DiscoverResult, then: Outcome | None
) -> t.DiscoverResult | AnsweredBoth:
    """Return the outcome of a handshake whose probe was answered after all.

    Args:
        discovered: The late answer to the probe.
        then: The outcome of `initialize` on the same connection; None if it has none soon.
    """
    if isinstance(then, t.InitializeResult):
        return AnsweredBoth(discovered, then)
    return discovered


def opening(
    revisions: Sequence[str] = REVISIONS,
    *,
    known: str | None = None,
    seconds: float | None = None,
) -> Turns:
    """Agree on a revision among `revisions`.

    Args:
        revisions: Those that are allowed.
        known: The one that this server was found to speak before. One of the handshake era spares
            the probe.
        seconds: The longest wait for the answer to `server/discover` where `initialize` can be
            tried after it; None: `DEFAULT_PROBE_SECONDS`, or `PROBE_READ_SECONDS` from when the
            server has read it where that is known.

    Returns:
        Opened, as the value of the generator.

    Raises:
        UnsupportedRevision: No revision fits.
        McpError: The server refuses `initialize`.
        TimedOut: The server does not answer.
        Unreachable: The server has ended.
    """
    stateless = [r for r in STATELESS_REVISIONS if r in revisions]
    handshake = [r for r in HANDSHAKE_REVISIONS if r in revisions]
    if not stateless:
        if not handshake:
            raise UnsupportedRevision("None of the allowed revisions is supported by this server.")
        return _greeted(handshake, (yield Handshake(handshake[-1])))
    if known in handshake:
        return (yield from _open_remembered(handshake, stateless))
    return (yield from _find_out(handshake, stateless, seconds))


def _find_out(handshake: Sequence[str], stateless: Sequence[str], seconds: float | None) -> Turns:
    """Probe, then `initialize` on the same connection, then `initialize` with a new process."""
    probe = Discover(stateless[-1], None)
    if handshake:
        probe = Discover(
            stateless[-1],
            DEFAULT_PROBE_SECONDS if seconds is None else seconds,
            PROBE_READ_SECONDS if seconds is None else seconds,
        )
    probed = yield from _probe(probe, stateless, handshake)
    if isinstance(probed, Opened):
        return probed
    if not handshake:
        raise _without_handshake(probed, stateless)
    if isinstance(probed, Ended):
        if probed.unread:
            raise probed.why  # it ended for a reason of its own, and would again
        return (yield from _start_afresh(handshake, stateless, probed, was_silent=False))
    was_silent = isinstance(probed, Silence)
    patience = READ_SECONDS if seconds is None else seconds
    outcome = yield Handshake(handshake[-1], patience if was_silent else None)
    if isinstance(outcome, AnsweredBoth):
        return _greeted(handshake, outcome.greeted)
    if isinstance(outcome, t.InitializeResult):
        return _greeted(handshake, outcome)
    if isinstance(outcome, t.DiscoverResult):  # the probe was merely slow to be answered
        late = _judged(outcome, stateless, handshake)
        if isinstance(late, Opened):
            return late
    if _supported(outcome) is not None:
        if was_silent:
            again = yield from _probe(Discover(stateless[-1], None), stateless, ())
            if isinstance(again, Opened):
                return again
        raise _failure(outcome)
    return (yield from _start_afresh(handshake, stateless, outcome, was_silent=was_silent))


def _start_afresh(
    handshake: Sequence[str], stateless: Sequence[str], failed: Outcome, *, was_silent: bool
) -> Turns:
    """Greet a new process that has seen no probe; `failed` is how it went with the one before."""
    outcome = yield Restart(Handshake(handshake[-1]))
    if isinstance(outcome, CannotRestart):
        raise _failure(failed)
    if isinstance(outcome, AnsweredBoth):  # the process before
        return _greeted(handshake, outcome.greeted)
    if isinstance(outcome, t.InitializeResult):
        return replace(_greeted(handshake, outcome), probe_failed=True)
    if isinstance(outcome, t.DiscoverResult):  # of the process before
        late = _judged(outcome, stateless, handshake)
        if isinstance(late, Opened):
            return late
    if (
        isinstance(outcome, t.McpError) and was_silent
    ):  # so it may be of the stateless era after all
        again = yield from _probe(Discover(stateless[-1], None), stateless, ())
        if isinstance(again, Opened):
            return again
    raise _failure(outcome)


def _open_remembered(handshake: Sequence[str], stateless: Sequence[str]) -> Turns:
    """Greet a server that was found to be of the handshake era; one that no longer is (`ERA-14`) is
    probed.

    A server that stays silent raises TimedOut: whoever remembers the revision has to forget it
    then.
    """
    outcome = yield Handshake(handshake[-1])
    has_ended = isinstance(outcome, Ended) and not outcome.unread
    if not has_ended and not isinstance(outcome, t.McpError):
        return _greeted(handshake, outcome)
    probed = yield from _probe(Discover(stateless[-1], None), stateless, (), afresh=has_ended)
    if isinstance(probed, Opened):
        return probed
    raise _failure(outcome)


def _probe(
    step: Discover, stateless: Sequence[str], handshake: Sequence[str], *, afresh: bool = False
) -> Generator[Step, Outcome, Opened | Outcome]:
    """Ask with `server/discover`. Returns what was agreed, else how the last question went.

    Raises UnsupportedRevision for a server of the stateless era that shares no revision.
    """
    first: Step = Restart(step) if afresh else step
    outcome = yield first
    for _ in stateless:
        judged = _judged(outcome, stateless, handshake)
        if not isinstance(judged, str):
            return judged
        # Also where it is the revision just sent: the server may have changed its mind (`CFQ-05`).
        step = replace(step, revision=judged)
        outcome = yield step
    judged = _judged(outcome, stateless, handshake)
    if not isinstance(judged, str):
        return judged
    _refuse_strangers(_supported(outcome) or (), handshake)
    return outcome


def _judged(
    outcome: Outcome, stateless: Sequence[str], handshake: Sequence[str]
) -> Opened | Outcome | str:
    """What the answer to a probe comes to: agreed, a revision to ask again under, or the outcome as
    it is.

    Raises UnsupportedRevision for a server of the stateless era that shares no revision.
    """
    if isinstance(outcome, t.DiscoverResult):
        mutual = [r for r in outcome.supported_versions if r in stateless]
        if mutual:
            return _discovered(max(mutual), outcome)
        _refuse_strangers(outcome.supported_versions, handshake)
        return outcome
    supported = _supported(outcome)
    if supported is None:
        return outcome
    mutual = [r for r in supported if r in stateless]
    if mutual:
        return max(mutual)
    _refuse_strangers(supported, handshake)
    return outcome


def _refuse_strangers(supported: Sequence[str], handshake: Sequence[str]) -> None:
    """The server is of the stateless era but shares no such revision; an older one it names is
    greeted, else it is the end.
    """
    if not any(r in handshake for r in supported):
        raise UnsupportedRevision(
            f"The server speaks {', '.join(supported) or 'no revision that it names'}; "
            "none of these is allowed here."
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


def _greeted(handshake: Sequence[str], outcome: Outcome) -> Opened:
    """What the answer to `initialize`, which offered the newest that is allowed (`LIF-02`), comes
    to.
    """
    if not isinstance(outcome, t.InitializeResult):
        raise _failure(outcome)
    if outcome.protocol_version not in handshake:
        raise UnsupportedRevision(
            f"The server wants to speak {outcome.protocol_version}; "
            f"allowed here are {', '.join(handshake)}."
        )
    return Opened(
        outcome.protocol_version,
        outcome.server_info,
        outcome.capabilities,
        outcome.instructions,
    )


def _without_handshake(probed: Outcome, stateless: Sequence[str]) -> t.InterlockError:
    """Why it is the end after a probe, where no older revision is allowed."""
    if isinstance(probed, Silence):
        return t.TimedOut("The server did not answer `server/discover`.")
    if isinstance(probed, Ended):
        return probed.why
    return UnsupportedRevision(
        f"The server does not speak {', '.join(stateless)}, and an older revision was not allowed."
    )


def _failure(outcome: Outcome) -> t.InterlockError:
    """The exception for an `initialize` that brought no result."""
    if isinstance(outcome, t.McpError):
        return outcome
    if isinstance(outcome, Ended):
        return outcome.why
    return t.TimedOut("The server did not answer `initialize`.")
