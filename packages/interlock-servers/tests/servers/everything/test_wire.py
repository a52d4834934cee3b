"""Nothing of the protocol is left out: in each revision the everything server says all that a
server of it can say, and says it rightly.
"""

from __future__ import annotations

import pytest

from interlock import REVISIONS, Caller, Client, Exchange, McpError
from interlock.client.answers import Answers
from interlock.tape import Tape
from interlock_servers.everything import ECHO, EverythingLimits, everything_server
from interlock_servers.everything.extension import EchoParams, EchoResult
from tests.servers.everything.scripted_client import model, person
from tests.servers.everything.walking import expected, told, walk
from tests.wired.official import AT_HAND, Judge

LISTS = (
    "ListToolsResult",
    "ListResourcesResult",
    "ListResourceTemplatesResult",
    "ListPromptsResult",
)
NOTICES = (
    "Cancelled",
    "ElicitationComplete",
    "ListChanged",
    "LoggingMessage",
    "Progress",
    "ResourceUpdated",
)
NOT_SHOWN = {
    # what the library writes, where an author has nothing to say; 2026-07-28 has serverInfo there
    **{(f"{name}NotificationParams", "_meta"): "no author's" for name in NOTICES},
    **{
        (name, "_meta"): "no author's"
        for name in (*LISTS, "CompleteResult", "EmptyResult", "InitializeResult")
    },
    **{
        (f"{name}Params", "_meta"): "no author's"
        for name in ("CreateMessageRequest", "ElicitRequest", "ListRootsRequest", "PingRequest")
    },
    # what the server has to say is the same for all
    **{(name, "cacheScope=private"): "the same for all" for name in (*LISTS[1:], "DiscoverResult")},
    (LISTS[0], "cacheScope=public"): "only clients that have apps see the tools that are for apps",
    (
        "PingRequestParams",
        "",
    ): "a server that wants to know whether its peer lives asks so by itself",
    ("ServerCapabilities", "experimental"): "extensions took its place",
    ("ToolExecution", "taskSupport=forbidden"): "the default, which is left out",
}
"""What no feature of a server shows, and why."""


async def walked(revision: str) -> tuple[set[tuple[str, str]], list[str]]:
    """What was not said on a walk past everything, and what the official schema has against what
    was.
    """
    tape = Tape()
    server = everything_server(EverythingLimits(page_size=8))
    answers = Answers(elicit=person, sample=model, roots=["/srv"], context=True)
    async with Client(
        server.transport(tap=tape.record), revision=revision, answers=answers, log_level="debug"
    ) as client:
        await walk(client)
        if revision < "2026":
            await client.ping()
        async with client.watch(resources=["everything://counter"]):
            await server.aclose()  # a subscription ends in good order
    judge = Judge(revision) if AT_HAND else None
    return expected(revision) - told(tape), [
        problem for line in tape.lines for problem in (judge.problems(line) if judge else ())
    ]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_nothing_is_left_out(revision: str) -> None:
    """By the table of history, which the official schemas have proved: each method, each type, each
    field and each choice among words stands in a message of the server; and the official schema of
    the revision has nothing against any message.
    """
    missing, problems = await walked(revision)
    assert missing - NOT_SHOWN.keys() == set()
    assert problems == []


async def test_no_exception_is_too_many() -> None:
    """What is listed as not shown is really not shown, by the newest revision of one era or the
    other.
    """
    handshake, _ = await walked("2025-11-25")
    stateless, _ = await walked("2026-07-28")
    assert NOT_SHOWN.keys() <= handshake | stateless


@pytest.mark.parametrize("revision", REVISIONS)
async def test_an_extension(revision: str) -> None:
    """The server names its extension with its settings, and has its method; who asks for too much
    is told so (`EXT-05`).
    """
    server = everything_server()
    async with Client(server, revision=revision) as client:
        assert (client.server_capabilities.extensions or {}).get(ECHO) == {"most": 1000}
        said = await server.handle(
            Exchange("example/echo", EchoParams(text="hm"), Caller(revision))
        )
        assert said == EchoResult(text="hm")
        with pytest.raises(McpError, match="At most 1000"):
            await server.handle(
                Exchange("example/echo", EchoParams(text="x" * 1001), Caller(revision))
            )
