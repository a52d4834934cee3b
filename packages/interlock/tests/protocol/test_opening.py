"""How a client finds out which revision to speak:

every turn of the procedure is a row of a table.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import types as t
from interlock.protocol.opening import (
    AnsweredBoth,
    CannotRestart,
    Discover,
    Ended,
    Handshake,
    Opened,
    Restart,
    Silence,
    UnsupportedRevision,
    opening,
)
from interlock.wire.revisions import HANDSHAKE_REVISIONS, NEWEST, R1, R2, R3, R4, REVISIONS

WORDS = t.ServerCapabilities(tools=t.ListChangedCapability())
INFO = t.Implementation(name="house", version="1")


def discovered(*supported: str, meta: Any = None) -> t.DiscoverResult:
    return t.DiscoverResult(
        supported_versions=list(supported), capabilities=WORDS, instructions="Be kind.", meta=meta
    )


def greeting(revision: str) -> t.InitializeResult:
    return t.InitializeResult(
        protocol_version=revision, capabilities=WORDS, server_info=INFO, instructions="Be kind."
    )


def unsupported(*supported: str, data: Any = ...) -> t.McpError:
    return t.McpError(
        -32022,
        "Unsupported protocol version",
        {"supported": list(supported)} if data is ... else data,
    )


def no_such_method(code: int = -32601) -> t.McpError:
    return t.McpError(code, "Method not found: server/discover")


PROBE = Discover(NEWEST, 5.0, 0.5)
ASK_NEWEST = Handshake(R4)
SILENCE = Silence()
ASK_SOON = Handshake(R4, 1.25)  # after silence
AFRESH = Restart(ASK_NEWEST)
PROBE_AFRESH = Restart(Discover(NEWEST, None))
GONE = t.Unreachable("The server has ended.", exit_code=1)
DIED = Ended(GONE)  # of what it was sent, for all that is known
FUTURE = "2027-01-01"
FURTHER = "2028-01-01"

# revisions allowed, then pairs of what is wanted and what comes of it, then how it ends
TURNS: dict[str, tuple[tuple[str, ...], list[tuple[Any, Any]], Any]] = {
    "a modern server (ERA-04, ERA-05)": (REVISIONS, [(PROBE, discovered(NEWEST))], NEWEST),
    "a server of both eras, which is spoken to in the newer": (
        REVISIONS,
        [(PROBE, discovered(*reversed(REVISIONS)))],
        NEWEST,
    ),
    "a server that lists what nobody knows besides": (
        REVISIONS,
        [(PROBE, discovered(FURTHER, NEWEST, "draft", R1))],
        NEWEST,
    ),
    "a server that lists only older revisions": (
        REVISIONS,
        [(PROBE, discovered(R4, R3)), (ASK_NEWEST, greeting(R4))],
        R4,
    ),
    "a server that lists only revisions to come": (
        REVISIONS,
        [(PROBE, discovered(FUTURE))],
        UnsupportedRevision,
    ),
    "a server that lists nothing": (REVISIONS, [(PROBE, discovered())], UnsupportedRevision),
    "a server that is unsure and changes its mind (ERA-06, CFQ-05)": (
        REVISIONS,
        [(PROBE, unsupported(NEWEST)), (PROBE, discovered(NEWEST))],
        NEWEST,
    ),
    "a server that refuses again and again what it names": (
        REVISIONS,
        [(PROBE, unsupported(NEWEST)), (PROBE, unsupported(NEWEST))],
        UnsupportedRevision,
    ),
    "a modern server of other revisions": (
        REVISIONS,
        [(PROBE, unsupported(FUTURE, FURTHER))],
        UnsupportedRevision,
    ),
    "a modern error that names older revisions": (
        REVISIONS,
        [(PROBE, unsupported(R2)), (ASK_NEWEST, greeting(R2))],
        R2,
    ),
    "a modern error that names nothing": (REVISIONS, [(PROBE, unsupported())], UnsupportedRevision),
    "the modern code with garbage in it": (
        REVISIONS,
        [(PROBE, unsupported(data="?")), (ASK_NEWEST, greeting(R4))],
        R4,
    ),
    "the modern code with a garbage list in it": (
        REVISIONS,
        [(PROBE, unsupported(data={"supported": [1, None]}))],
        UnsupportedRevision,
    ),
    "the modern code without data": (
        REVISIONS,
        [(PROBE, unsupported(data=None)), (ASK_NEWEST, greeting(R4))],
        R4,
    ),
    "an older server that agrees (ERA-07)": (
        REVISIONS,
        [(PROBE, no_such_method()), (ASK_NEWEST, greeting(R4))],
        R4,
    ),
    "an older server that counters": (
        REVISIONS,
        [(PROBE, no_such_method()), (ASK_NEWEST, greeting(R1))],
        R1,
    ),
    "an older server that wants an introduction first": (
        REVISIONS,
        [(PROBE, no_such_method(-32602)), (ASK_NEWEST, greeting(R3))],
        R3,
    ),
    "an older server with a code of its own (ERR-22)": (
        REVISIONS,
        [(PROBE, no_such_method(-32001)), (ASK_NEWEST, greeting(R3))],
        R3,
    ),
    "an older server with a result of another kind": (
        REVISIONS,
        [(PROBE, greeting(R4)), (ASK_NEWEST, greeting(R3))],
        R3,
    ),
    "a silent server": (REVISIONS, [(PROBE, SILENCE), (ASK_SOON, greeting(R4))], R4),
    "a server silent to the end": (
        REVISIONS,
        [(PROBE, SILENCE), (ASK_SOON, SILENCE), (AFRESH, CannotRestart())],
        t.TimedOut,
    ),
    "a modern server that was merely slow": (
        REVISIONS,
        [
            (PROBE, SILENCE),
            (ASK_SOON, unsupported(NEWEST)),
            (Discover(NEWEST, None), discovered(NEWEST)),
        ],
        NEWEST,
    ),
    "a slow server that falls silent again": (
        REVISIONS,
        [(PROBE, SILENCE), (ASK_SOON, unsupported(NEWEST)), (Discover(NEWEST, None), SILENCE)],
        t.McpError,
    ),
    "a slow server of other revisions": (
        REVISIONS,
        [
            (PROBE, SILENCE),
            (ASK_SOON, unsupported(FUTURE)),
            (Discover(NEWEST, None), unsupported(FUTURE)),
        ],
        UnsupportedRevision,
    ),
    "a server that refuses both": (
        REVISIONS,
        [
            (PROBE, no_such_method()),
            (ASK_NEWEST, no_such_method(-32602)),
            (AFRESH, CannotRestart()),
        ],
        t.McpError,
    ),
    "a server that answers the probe with nonsense and refuses with the modern code": (
        REVISIONS,
        [(PROBE, no_such_method()), (ASK_NEWEST, unsupported(NEWEST))],
        t.McpError,
    ),
    "a counter-offer that was not allowed (LIF-05, X-04)": (
        (R3, R4, NEWEST),
        [(PROBE, no_such_method()), (ASK_NEWEST, greeting(R1))],
        UnsupportedRevision,
    ),
    "a counter-offer that nobody knows": (
        REVISIONS,
        [(PROBE, no_such_method()), (ASK_NEWEST, greeting("2023-01-01"))],
        UnsupportedRevision,
    ),
    "a counter-offer of the other era": (
        REVISIONS,
        [(PROBE, no_such_method()), (ASK_NEWEST, greeting(NEWEST))],
        UnsupportedRevision,
    ),
    "only older revisions allowed (LIF-02)": ((R1, R3), [(Handshake(R3), greeting(R3))], R3),
    "one older revision allowed": ((R2,), [(Handshake(R2), greeting(R2))], R2),
    "one older revision allowed, another wanted": (
        (R2,),
        [(Handshake(R2), greeting(R4))],
        UnsupportedRevision,
    ),
    "only older allowed, a modern server": (
        (R4,),
        [(Handshake(R4), unsupported(NEWEST))],
        t.McpError,
    ),
    "only older allowed, a silent server": ((R4,), [(Handshake(R4), SILENCE)], t.TimedOut),
    "only the newest allowed, a modern server (ERA-08)": (
        (NEWEST,),
        [(Discover(NEWEST, None), discovered(NEWEST, R4))],
        NEWEST,
    ),
    "only the newest allowed, an older server (ERA-19)": (
        (NEWEST,),
        [(Discover(NEWEST, None), no_such_method())],
        UnsupportedRevision,
    ),
    "only the newest allowed, an older list": (
        (NEWEST,),
        [(Discover(NEWEST, None), discovered(R4))],
        UnsupportedRevision,
    ),
    "only the newest allowed, a silent server": (
        (NEWEST,),
        [(Discover(NEWEST, None), SILENCE)],
        t.TimedOut,
    ),
    "no revision allowed": ((), [], UnsupportedRevision),
    "no revision allowed that exists": (("2023-01-01",), [], UnsupportedRevision),
}


def play(steps: Any, turns: list[tuple[Any, Any]]) -> Opened:
    """Hold the procedure to its row:

    it wants just what the row says, in that order, and then it ends.
    """
    outcome = None
    for wanted, comes in turns:
        assert steps.send(outcome) == wanted
        outcome = comes
    with pytest.raises(StopIteration) as over:
        steps.send(outcome)
    opened: Opened = over.value.value
    return opened


@pytest.mark.parametrize("revisions, turns, ending", TURNS.values(), ids=TURNS)
def test_each_turn_of_the_way_to_a_revision(
    revisions: tuple[str, ...], turns: list[tuple[Any, Any]], ending: Any
) -> None:
    """(`ERA-04`, `ERA-05`, `ERA-06`, `ERA-07`, `ERA-08`, `ERA-19`, `CFQ-05`, `STA-13`, `LIF-02`,
    `LIF-05`, `LIF-22`, `STA-09`)
    """
    if isinstance(ending, str):
        opened = play(opening(revisions), turns)
        assert opened.revision == ending
        assert (opened.capabilities, opened.instructions) == (WORDS, "Be kind.")
    else:
        with pytest.raises(ending) as caught:
            play(opening(revisions), turns)
        assert type(caught.value) is ending
        assert str(caught.value)


# Servers for which the probe is no question but an accident: turns, and how it ends; a revision is
# one that a new process spoke.
AFRESH_TURNS: dict[str, tuple[list[tuple[Any, Any]], Any]] = {
    "it dies of the probe": ([(PROBE, DIED), (AFRESH, greeting(R1))], R1),
    "it stops reading, and dies of the next message": (
        [(PROBE, SILENCE), (ASK_SOON, DIED), (AFRESH, greeting(R1))],
        R1,
    ),
    "it stops reading, and stays": (
        [(PROBE, SILENCE), (ASK_SOON, SILENCE), (AFRESH, greeting(R2))],
        R2,
    ),
    "it refuses initialize after the probe, as bridges do": (
        [(PROBE, no_such_method()), (ASK_NEWEST, no_such_method(-32600)), (AFRESH, greeting(R4))],
        R4,
    ),
    "it answers the probe with an error and dies": (
        [(PROBE, no_such_method()), (ASK_NEWEST, DIED), (AFRESH, greeting(R3))],
        R3,
    ),
    "it is silent, and refuses initialize": (
        [(PROBE, SILENCE), (ASK_SOON, no_such_method()), (AFRESH, greeting(R4))],
        R4,
    ),
    "the new process counters with what was not allowed": (
        [(PROBE, DIED), (AFRESH, greeting("2023-01-01"))],
        UnsupportedRevision,
    ),
    "the new process ends too": ([(PROBE, DIED), (AFRESH, DIED)], t.Unreachable),
    "the new process is silent too": ([(PROBE, DIED), (AFRESH, SILENCE)], t.TimedOut),
    "the new process refuses": ([(PROBE, DIED), (AFRESH, no_such_method())], t.McpError),
    "it cannot be started afresh": ([(PROBE, DIED), (AFRESH, CannotRestart())], t.Unreachable),
}


@pytest.mark.parametrize("turns, ending", AFRESH_TURNS.values(), ids=AFRESH_TURNS)
def test_a_server_that_the_probe_breaks_is_greeted_afresh(
    turns: list[tuple[Any, Any]], ending: Any
) -> None:
    """Once, with a process that has seen no probe; the result says so, for the next time (`ERA-07`,
    `ERA-14`).
    """
    if isinstance(ending, str):
        opened = play(opening(), turns)
        assert (opened.revision, opened.probe_failed) == (ending, True)
    else:
        with pytest.raises(ending) as caught:
            play(opening(), turns)
        assert type(caught.value) is ending


def test_a_server_that_is_opened_without_a_new_process_says_so() -> None:
    """There is nothing to remember that would spare anything."""
    for turns in (
        [(PROBE, discovered(NEWEST))],
        [(PROBE, no_such_method()), (ASK_NEWEST, greeting(R4))],
        [(PROBE, SILENCE), (ASK_SOON, greeting(R4))],
    ):
        assert play(opening(), turns).probe_failed is False


def test_a_server_that_ends_before_it_reads_the_probe_is_not_started_again() -> None:
    """It ended for a reason of its own."""
    why = t.Unreachable("no config file", exit_code=1)
    with pytest.raises(t.Unreachable, match="no config file"):
        play(opening(), [(PROBE, Ended(why, unread=True))])
    with pytest.raises(t.Unreachable, match="no config file"):
        play(opening(known=R4), [(ASK_NEWEST, Ended(why, unread=True))])


def test_where_no_older_revision_is_allowed_nothing_is_started_afresh() -> None:
    """There is nothing else to try."""
    with pytest.raises(t.Unreachable, match="has ended"):
        play(opening((NEWEST,)), [(Discover(NEWEST, None), DIED)])
    with pytest.raises(t.Unreachable, match="has ended"):
        play(opening((R4,)), [(ASK_NEWEST, DIED)])


LATE: dict[str, list[tuple[Any, Any]]] = {
    "after initialize was sent": [(PROBE, SILENCE), (ASK_SOON, discovered(NEWEST))],
    "after a new process was started": [
        (PROBE, SILENCE),
        (ASK_SOON, SILENCE),
        (AFRESH, discovered(NEWEST)),
    ],
    "once it is asked for in a new process": [
        (PROBE, SILENCE),
        (ASK_SOON, SILENCE),
        (AFRESH, no_such_method()),
        (Discover(NEWEST, None), discovered(NEWEST)),
    ],
}


@pytest.mark.parametrize("turns", LATE.values(), ids=LATE)
def test_the_answer_to_a_probe_counts_however_late_it_comes(turns: list[tuple[Any, Any]]) -> None:
    """Whoever answers it is of the stateless era (`ERA-05`)."""
    opened = play(opening(), turns)
    assert (opened.revision, opened.probe_failed) == (NEWEST, False)


BOTH = AnsweredBoth(discovered(NEWEST), greeting(R4))


@pytest.mark.parametrize(
    "turns",
    [
        [(PROBE, SILENCE), (ASK_SOON, BOTH)],
        [(PROBE, SILENCE), (ASK_SOON, SILENCE), (AFRESH, BOTH)],
    ],
    ids=["the first process", "beside a new process"],
)
def test_a_server_that_has_answered_initialize_too_is_used_as_it_agreed(
    turns: list[tuple[Any, Any]],
) -> None:
    """A server of both eras decides by `initialize`; it is probed again the next time."""
    opened = play(opening(), turns)
    assert (opened.revision, opened.probe_failed) == (R4, False)


REMEMBERED: dict[str, tuple[list[tuple[Any, Any]], Any]] = {
    "it still is": ([(ASK_NEWEST, greeting(R2))], R2),
    "it names what it speaks now": (
        [(ASK_NEWEST, unsupported(NEWEST)), (Discover(NEWEST, None), discovered(NEWEST))],
        NEWEST,
    ),
    "it knows no initialize any more": (
        [(ASK_NEWEST, no_such_method()), (Discover(NEWEST, None), discovered(NEWEST))],
        NEWEST,
    ),
    "it dies of initialize": (
        [(ASK_NEWEST, DIED), (PROBE_AFRESH, discovered(NEWEST))],
        NEWEST,
    ),
    "it dies of either": ([(ASK_NEWEST, DIED), (PROBE_AFRESH, DIED)], t.Unreachable),
    "it refuses either": (
        [(ASK_NEWEST, no_such_method()), (Discover(NEWEST, None), no_such_method())],
        t.McpError,
    ),
    "it is silent": ([(ASK_NEWEST, SILENCE)], t.TimedOut),
}


@pytest.mark.parametrize("turns, ending", REMEMBERED.values(), ids=REMEMBERED)
def test_a_server_remembered_as_an_older_one_is_opened_whatever_it_has_become(
    turns: list[tuple[Any, Any]], ending: Any
) -> None:
    """The memory spares the probe; it does not decide (`ERA-13`, `ERA-14`)."""
    if isinstance(ending, str):
        assert play(opening(known=R4), turns).revision == ending
    else:
        with pytest.raises(ending) as caught:
            play(opening(known=R4), turns)
        assert type(caught.value) is ending


@pytest.mark.parametrize(
    "code",
    [
        -32601,
        -32600,
        -32602,
        -32603,
        -32700,
        -32000,
        -32001,
        -32003,
        -32004,
        -32002,
        -32020,
        -32021,
        0,
        404,
    ],
)
def test_the_fall_back_hangs_on_no_one_code(code: int) -> None:
    """Whatever an older server says to what it does not know (`ERA-07`, `ERR-22`)."""
    assert (
        play(opening(), [(PROBE, no_such_method(code)), (ASK_NEWEST, greeting(R4))]).revision == R4
    )


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_server_known_to_be_of_the_older_era_is_not_probed(revision: str) -> None:
    """The verdict of the last time is believed (`ERA-13`, `ERA-14`)."""
    opened = play(opening(known=revision), [(ASK_NEWEST, greeting(revision))])
    assert (opened.revision, opened.info, opened.supported) == (revision, INFO, ())


def test_a_server_known_to_be_modern_is_probed_all_the_same() -> None:
    """The probe is what brings its capabilities, and tells where it has changed (`ERA-14`)."""
    assert play(opening(known=NEWEST), [(PROBE, discovered(NEWEST))]).revision == NEWEST
    assert (
        play(
            opening(known=NEWEST), [(PROBE, no_such_method()), (ASK_NEWEST, greeting(R2))]
        ).revision
        == R2
    )
    assert play(opening(known="1999-01-01"), [(PROBE, discovered(NEWEST))]).revision == NEWEST


def test_a_verdict_that_no_longer_holds_is_corrected() -> None:
    """What was an older server has become a modern one (`ERA-14`)."""
    turns = [(ASK_NEWEST, unsupported(NEWEST)), (Discover(NEWEST, None), discovered(NEWEST))]
    assert play(opening(known=R4), turns).revision == NEWEST


def test_the_wait_for_the_probe_is_the_callers_to_choose() -> None:
    """Slow starters exist; where nothing could be tried after it there is no bound of this kind."""
    assert next(opening(seconds=0.25)) == Discover(NEWEST, 0.25, 0.25)
    assert next(opening((NEWEST,), seconds=0.25)) == Discover(NEWEST, None)


NAMES: list[tuple[Any, Any]] = [
    ({"name": "house", "version": "1"}, INFO),
    (
        {"name": "house", "version": 1, "title": "T"},
        t.Implementation(name="house", version="1", title="T"),
    ),
    ({"name": "house"}, t.Implementation(name="house", version="")),
    ({"name": "house", "version": "1", "title": 5}, INFO),
    ({"name": 5}, None),
    ({}, None),
    ("house", None),
    (None, None),
]


@pytest.mark.parametrize("said, info", NAMES, ids=range(len(NAMES)))
def test_a_servers_name_is_read_as_far_as_it_can_be(said: Any, info: Any) -> None:
    """It is for people; a server is not refused because of it (`STA-05`, `STA-06`, `X-03`)."""
    meta = {"io.modelcontextprotocol/serverInfo": said}
    assert play(opening(), [(PROBE, discovered(NEWEST, meta=meta))]).info == info


def test_what_a_server_supports_is_told() -> None:
    """All of it, also what this client does not speak."""
    assert play(opening(), [(PROBE, discovered(NEWEST, FUTURE, R1))]).supported == (
        NEWEST,
        FUTURE,
        R1,
    )


def test_a_fault_of_the_way_is_no_verdict() -> None:
    """What the shell throws in - the network, a dead child - comes out as it is (`ERA-15`)."""
    steps = opening()
    next(steps)
    with pytest.raises(t.Unreachable, match="it has gone"):
        steps.throw(t.Unreachable("it has gone"))


def test_the_refusal_says_what_either_side_speaks() -> None:
    """Whoever reads it knows what to change (`ERA-19`, `STA-13`)."""
    with pytest.raises(UnsupportedRevision, match=r"2027-01-01, 2028-01-01"):
        play(opening(), [(PROBE, unsupported(FUTURE, FURTHER))])
    with pytest.raises(
        UnsupportedRevision, match=r"2026-07-28, and an older revision was not allowed"
    ):
        play(opening((NEWEST,)), [(Discover(NEWEST, None), no_such_method())])
    with pytest.raises(UnsupportedRevision, match=r"2024-11-05; allowed here are 2025-11-25"):
        play(opening((R4,)), [(Handshake(R4), greeting(R1))])
