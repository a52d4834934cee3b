"""How a client answers questions: what the author's functions may return, what is refused, and what
is declared.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock import Answers, Client, McpError
from interlock import types as t
from interlock.client.answers import check_tool_turns
from interlock.wire.revisions import HANDSHAKE_REVISIONS, R3, R4
from tests.client.peers import KEY, SECONDS, SILENCE, Peer, asks, form, text

SEAT = {
    "type": "object",
    "properties": {
        "row": {"type": "integer", "default": 7},
        "window": {"type": "boolean", "default": False},
        "meals": {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a"]},
        "name": {"type": "string"},
        "odd": True,
    },
}
DEFAULTS = {"row": 7, "window": False, "meals": ["a"]}
FORM = t.ElicitRequest(t.ElicitRequestParams(message="Which seat?", requested_schema=SEAT))
PAGE = t.ElicitRequest(
    t.ElicitRequestParams(message="Sign in.", mode="url", url="https://example.com")
)


def sampling(*messages: t.SamplingMessage, **more: Any) -> t.CreateMessageRequest:
    said = list(messages) or [t.SamplingMessage(role="user", content=t.TextContent("Why?"))]
    return t.CreateMessageRequest(
        t.CreateMessageRequestParams(messages=said, max_tokens=10, **more)
    )


def in_both_manners(answer: Any) -> dict[str, Any]:
    """A plain function and an async one that return the same."""

    async def later(*args: Any) -> Any:
        await asyncio.sleep(0)
        return answer

    return {"plain": lambda *args: answer, "async": later}


# -- elicitation -----------------------------------------------------------------------------------

GIVEN: dict[str, tuple[Any, Any, Any]] = {
    # what the function returns, then action and content
    "all of it": (
        {"row": 1, "window": True, "meals": [], "name": "Ada"},
        "accept",
        {"row": 1, "window": True, "meals": [], "name": "Ada"},
    ),
    "a part of it": ({"name": "Ada"}, "accept", {**DEFAULTS, "name": "Ada"}),
    "nothing in particular": ({}, "accept", DEFAULTS),
    "yes": (True, "accept", DEFAULTS),
    "no": (False, "decline", None),
    "never mind": (None, "cancel", None),
    "a result": (t.ElicitResult(action="accept", content={"row": 2}), "accept", {"row": 2}),
    "a refusal": (t.ElicitResult(action="decline"), "decline", None),
}


@pytest.mark.parametrize("manner", ["plain", "async"])
@pytest.mark.parametrize("answer, action, content", GIVEN.values(), ids=GIVEN)
async def test_what_an_elicit_function_may_return(
    answer: Any, action: str, content: Any, manner: str
):
    """Accepted content holds the form's defaults where it says nothing else (`ELI-12`,
    `ELI-13`).
    """
    result = await Answers(elicit=in_both_manners(answer)[manner]).ask(FORM)
    assert isinstance(result, t.ElicitResult)
    assert (result.action, result.content) == (action, content)


@pytest.mark.parametrize(
    "answer, action", [(True, "accept"), ({"a": 1}, "accept"), (False, "decline"), (None, "cancel")]
)
async def test_a_page_to_visit(answer: Any, action: str):
    """Consent has no content (`ELI-13`, `ELI-23`)."""
    result = await Answers(elicit=lambda params: answer).ask(PAGE)
    assert isinstance(result, t.ElicitResult)
    assert (result.action, result.content) == (action, None)


@pytest.mark.parametrize(
    "answer", ["yes", 1, 0, ["a"], object()], ids=["text", "1", "0", "list", "object"]
)
async def test_an_elicit_function_that_returns_something_else(answer: Any):
    """It is a fault of the author, said in words; never a yes."""
    with pytest.raises(TypeError, match="an elicit function returns"):
        await Answers(elicit=lambda params: answer).ask(FORM)


async def test_the_function_sees_the_question():
    seen: list[Any] = []
    await Answers(elicit=seen.append).ask(FORM)
    assert seen == [FORM.params]


async def test_a_form_without_properties():
    """A schema that says nothing has no defaults."""
    for schema in (None, {}, {"type": "object"}):
        request = t.ElicitRequest(t.ElicitRequestParams(message="Sure?", requested_schema=schema))
        assert await Answers(elicit=lambda params: True).ask(request) == t.ElicitResult(
            action="accept", content={}
        )


# -- sampling -------------------------------------------------------------------------------------

SAID = t.CreateMessageResult(
    role="assistant", content=t.TextContent("42"), model="deep", stop_reason="maxTokens"
)


@pytest.mark.parametrize("manner", ["plain", "async"])
async def test_what_a_sample_function_may_return(manner: str):
    """A result as it is, or the text of one (`SAM-05`)."""
    assert await Answers(sample=in_both_manners(SAID)[manner]).ask(sampling()) == SAID
    words = await Answers(sample=in_both_manners("42")[manner]).ask(sampling())
    assert words == t.CreateMessageResult(
        role="assistant", content=t.TextContent("42"), model="unknown", stop_reason="endTurn"
    )


async def test_a_refusal_to_sample():
    """Nothing in place of an answer is a no (`ERR-17`, `SAM-07`)."""
    with pytest.raises(McpError) as caught:
        await Answers(sample=lambda params: None).ask(sampling())
    assert caught.value.code == t.USER_REJECTED == -1


async def test_a_sample_function_that_returns_something_else():
    with pytest.raises(TypeError, match="a sample function returns"):
        await Answers(sample=lambda params: 42).ask(sampling())


TOOL = t.Tool(name="look", input_schema={"type": "object"})


@pytest.mark.parametrize(
    "more",
    [{"tools": [TOOL]}, {"tools": []}, {"tool_choice": t.ToolChoice(mode="auto")}],
    ids=["tools", "none", "choice"],
)
async def test_sampling_with_tools_that_was_not_declared(more: dict[str, Any]):
    """The request fails, and the model is not asked (`SAM-13`)."""
    asked: list[Any] = []
    with pytest.raises(McpError, match="tools not supported") as caught:
        await Answers(sample=asked.append, tools=False).ask(sampling(**more))
    assert (caught.value.code, asked) == (t.INVALID_PARAMS, [])
    assert isinstance(
        await Answers(sample=lambda params: "ok").ask(sampling(**more)), t.CreateMessageResult
    )


def use(*ids: str) -> t.SamplingMessage:
    return t.SamplingMessage(
        role="assistant", content=[t.ToolUseContent(id=id, name="look", input={}) for id in ids]
    )


def gave(*ids: str, role: Any = "user", more: tuple[Any, ...] = ()) -> t.SamplingMessage:
    return t.SamplingMessage(
        role=role, content=[*(t.ToolResultContent(tool_use_id=id, content=[]) for id in ids), *more]
    )


ASKED, ANSWERED = (
    t.SamplingMessage(role=role, content=t.TextContent("...")) for role in ("user", "assistant")
)
WORDS = t.TextContent("by the way")
TURNS: dict[str, tuple[list[t.SamplingMessage], str]] = {
    # the messages, and what is wrong with them
    "none": ([], ""),
    "a talk without tools": ([ASKED, ANSWERED, ASKED], ""),
    "one use": ([ASKED, use("1"), gave("1")], ""),
    "two uses at once, in any order": ([ASKED, use("1", "2"), gave("2", "1"), ANSWERED], ""),
    "two uses, one after the other": ([ASKED, use("1"), gave("1"), use("2"), gave("2")], ""),
    "a single block": (
        [
            t.SamplingMessage(
                role="assistant", content=t.ToolUseContent(id="1", name="look", input={})
            ),
            gave("1"),
        ],
        "",
    ),
    "no result": ([ASKED, use("1")], "missing"),
    "no result, but words": ([ASKED, use("1"), ASKED], "do not match"),
    "the result too late": ([ASKED, use("1"), ASKED, gave("1")], "do not match"),
    "one result too few": ([ASKED, use("1", "2"), gave("1")], "do not match"),
    "one result too many": ([ASKED, use("1"), gave("1", "2")], "do not match"),
    "one result twice": ([ASKED, use("1"), gave("1", "1")], "do not match"),
    "another result": ([ASKED, use("1"), gave("2")], "do not match"),
    "a result of nothing": ([ASKED, gave("1")], "do not match"),
    "a result among words": ([ASKED, use("1"), gave("1", more=(WORDS,))], "no other content"),
    "a result of the assistant": ([ASKED, use("1"), gave("1", role="assistant")], "the role user"),
}


@pytest.mark.parametrize("messages, trouble", TURNS.values(), ids=TURNS)
async def test_tool_uses_and_results_match(messages: list[t.SamplingMessage], trouble: str):
    """Each use is followed at once by its results, which stand alone (`SAM-14`, `SAM-15`,
    `SAM-24`).
    """
    if not trouble:
        check_tool_turns(messages)
        return
    asked: list[Any] = []
    with pytest.raises(McpError, match=trouble) as caught:
        await Answers(sample=asked.append).ask(sampling(*messages))
    assert (caught.value.code, asked) == (t.INVALID_PARAMS, [])


# -- roots ----------------------------------------------------------------------------------------


async def roots_of(given: Any) -> list[t.Root]:
    result = await Answers(roots=given).ask(t.ListRootsRequest())
    assert isinstance(result, t.ListRootsResult)
    return result.roots


@pytest.mark.parametrize("manner", ["as they are", "plain", "async"])
async def test_what_roots_may_be(manner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Folders, URIs, Root objects, and functions that give them (`ROO-01`, `ROO-05`)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ada")
    spaced = tmp_path / "two words"
    ready = t.Root(uri="file:///srv", name="Service")
    given = [spaced, str(spaced), "here", "~/notes", "file:///elsewhere", ready]
    assert await roots_of(given if manner == "as they are" else in_both_manners(given)[manner]) == [
        t.Root(uri=spaced.as_uri(), name="two words"),
        t.Root(uri=spaced.as_uri(), name="two words"),
        t.Root(uri=(tmp_path / "here").as_uri(), name="here"),
        t.Root(uri="file:///home/ada/notes", name="notes"),
        t.Root(uri="file:///elsewhere"),
        ready,
    ]
    assert "%20" in spaced.as_uri()


@pytest.mark.parametrize(
    "given", ["/srv", Path("/srv"), t.Root(uri="file:///srv", name="srv"), lambda: "/srv"]
)
async def test_one_root_alone(given: Any):
    """Text is one folder, not a list of letters."""
    assert await roots_of(given) == [t.Root(uri="file:///srv", name="srv")]


async def test_no_roots_at_all():
    """They are declared, and there are none."""
    assert await roots_of([]) == []
    assert await roots_of(()) == []


async def test_roots_that_change():
    """The sequence is looked at when the server asks."""
    roots = ["/a"]
    answers = Answers(roots=roots)
    for _ in range(2):
        result = await answers.ask(t.ListRootsRequest())
        assert isinstance(result, t.ListRootsResult)
        assert [root.uri for root in result.roots] == [f"file://{path}" for path in roots]
        roots.append("/b")


@pytest.mark.parametrize(
    "given", ["https://example.com", t.Root(uri="s3://bucket"), t.Root(uri="/srv")], ids=str
)
async def test_roots_that_are_no_files(given: Any):
    """(`ROO-05`, `ROO-06`)"""
    with pytest.raises(ValueError, match="a root is a folder or a file:// URI"):
        await roots_of([given])


# -- what is declared, and what is refused --------------------------------------------------------

DECLARED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # what is given, and the capabilities in the newest revision
    "nothing": ({}, {}),
    "a person": ({"elicit": lambda p: None}, {"elicitation": {"form": {}, "url": {}}}),
    "a model": ({"answers": Answers(sample=lambda p: "")}, {"sampling": {"tools": {}}}),
    "roots": ({"answers": Answers(roots=["/srv"])}, {"roots": {}}),
    "roots, but none": ({"answers": Answers(roots=[])}, {"roots": {}}),
    "a person for forms only": (
        {"answers": Answers(elicit=lambda p: None, url=False)},
        {"elicitation": {"form": {}}},
    ),
    "a model without tools": (
        {"answers": Answers(sample=lambda p: "", tools=False)},
        {"sampling": {}},
    ),
    "a model with context": (
        {"answers": Answers(sample=lambda p: "", tools=False, context=True)},
        {"sampling": {"context": {}}},
    ),
    "extensions": (
        {"answers": Answers(extensions={"example.com/x": {"a": [1]}, "example.com/y": {}})},
        {"extensions": {"example.com/x": {"a": [1]}, "example.com/y": {}}},
    ),
    "no extensions": ({"answers": Answers(extensions={})}, {}),
}


@pytest.mark.parametrize("given, capabilities", DECLARED.values(), ids=DECLARED)
async def test_what_is_declared_with_each_request(
    given: dict[str, Any], capabilities: dict[str, Any]
):
    """(`STA-01`, `SAM-02`, `ELI-02`, `LIF-16`, `EXT-01`)"""
    async with Peer({"tools/list": {"tools": []}}) as peer, Client(peer.channel, **given) as client:
        await client.list_tools()
        for message in peer.received:
            assert message["params"]["_meta"][f"{KEY}clientCapabilities"] == capabilities


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
async def test_what_is_declared_once(revision: str):
    """As the revision has it: no elicitation before 2025-06-18, no modes and no tasks before
    2025-11-25 (`LIF-01`, `LIF-16`, `ELI-01`, `SAM-01`, `TK4-01`).
    """
    async with (
        Peer(revision=revision) as peer,
        Client(
            peer.channel,
            revision=revision,
            answers=Answers(elicit=print, sample=print, roots=["/srv"]),
        ),
    ):
        said = (await peer.until("initialize"))["params"]["capabilities"]
    modes: dict[str, Any] = {"form": {}, "url": {}} if revision == R4 else {}
    expected = {"roots": {"listChanged": True}, "sampling": {"tools": {}} if revision == R4 else {}}
    if revision == R4:
        expected["tasks"] = {
            "list": {},
            "cancel": {},
            "requests": {"elicitation": {"create": {}}, "sampling": {"createMessage": {}}},
        }
    assert said == (expected | {"elicitation": modes} if revision >= R3 else expected)


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
async def test_extensions_are_declared_once(revision: str):
    """The same map goes with `initialize`, whatever the revision (`EXT-01`, `EXT-08`, `APP-01`)."""
    settings = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
    async with (
        Peer(revision=revision) as peer,
        Client(peer.channel, revision=revision, answers=Answers(extensions=settings)),
    ):
        assert (await peer.until("initialize"))["params"]["capabilities"] == {
            "extensions": settings
        }


REFUSED: dict[str, tuple[Answers, dict[str, Any], int]] = {
    # who answers, the question, and the code of the refusal
    "elicitation": (Answers(), form(), t.METHOD_NOT_FOUND),
    "sampling": (
        Answers(),
        {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
        t.METHOD_NOT_FOUND,
    ),
    "roots": (Answers(), {"method": "roots/list"}, t.METHOD_NOT_FOUND),
    "a page": (
        Answers(elicit=lambda p: True, url=False),
        {
            "method": "elicitation/create",
            "params": {
                "message": "Go.",
                "mode": "url",
                "url": "https://x.org",
                "elicitationId": "1",
            },
        },
        t.INVALID_PARAMS,
    ),
    "tools": (
        Answers(sample=lambda p: "", tools=False),
        {
            "method": "sampling/createMessage",
            "params": {"messages": [], "maxTokens": 1, "tools": []},
        },
        t.INVALID_PARAMS,
    ),
    "a result without a use": (
        Answers(sample=lambda p: ""),
        {
            "method": "sampling/createMessage",
            "params": {
                "maxTokens": 1,
                "messages": [
                    {
                        "role": "user",
                        "content": {"type": "tool_result", "toolUseId": "1", "content": []},
                    }
                ],
            },
        },
        t.INVALID_PARAMS,
    ),
    "a function that fails": (Answers(elicit=lambda p: 1 / 0), form(), t.INTERNAL_ERROR),
    "roots that fail": (Answers(roots=lambda: 1 / 0), {"method": "roots/list"}, t.INTERNAL_ERROR),
    "roots that are none": (
        Answers(roots=["https://x.org"]),
        {"method": "roots/list"},
        t.INTERNAL_ERROR,
    ),
    "a person who says why": (
        Answers(sample=lambda p: None),
        {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
        -1,
    ),
}


@pytest.mark.parametrize("answers, question, code", REFUSED.values(), ids=REFUSED)
async def test_questions_that_are_refused_on_the_wire(
    answers: Answers, question: dict[str, Any], code: int
):
    """With the code that belongs to it (`ERR-17`, `ERR-18`, `ROO-03`, `SAM-13`, `SAM-24`)."""
    async with Peer(revision=R4) as peer, Client(peer.channel, revision=R4, answers=answers):
        peer.say(id="q", **question)
        refusal = await peer.until_received(lambda message: message.get("id") == "q")
        assert refusal["error"]["code"] == code


@pytest.mark.parametrize("answers, question, code", REFUSED.values(), ids=REFUSED)
async def test_questions_that_are_refused_to_the_caller(
    answers: Answers, question: dict[str, Any], code: int
):
    """In the stateless era the one who called is told; nothing is sent in place of an answer
    (`RPC-18`).
    """
    async with (
        Peer({"tools/call": asks(q=question)}) as peer,
        Client(peer.channel, answers=answers) as client,
    ):
        with pytest.raises((McpError, ZeroDivisionError, ValueError)) as caught:
            await client.call_tool("ask")
        if isinstance(caught.value, McpError):
            assert caught.value.code == code
        else:
            assert code == t.INTERNAL_ERROR
        assert [m["method"] for m in peer.received] == ["server/discover", "tools/call"]


async def test_answers_on_the_wire():
    """A question of the handshake era gets the answer of the function as its result (`ELI-13`,
    `ROO-01`).
    """
    async with (
        Peer(revision=R4) as peer,
        Client(
            peer.channel,
            revision=R4,
            answers=Answers(elicit=lambda p: {"value": "7"}, sample=lambda p: "42", roots=["/srv"]),
        ),
    ):
        peer.say(id=1, **form())
        peer.say(id="two", method="roots/list")
        peer.say(id=3, method="sampling/createMessage", params={"messages": [], "maxTokens": 1})
        await peer.until_received(lambda message: "result" in message, 3)
    assert {m["id"]: m["result"] for m in peer.received if "result" in m} == {
        1: {"action": "accept", "content": {"value": "7"}},
        "two": {"roots": [{"uri": "file:///srv", "name": "srv"}]},
        3: {
            "role": "assistant",
            "content": {"type": "text", "text": "42"},
            "model": "unknown",
            "stopReason": "endTurn",
        },
    }


async def test_a_question_that_the_server_takes_back():
    """The function is cancelled, and no answer is sent (`CAN-05`)."""
    begun = asyncio.Event()
    over = asyncio.Event()

    async def think(params: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()

    async with Peer(revision=R4) as peer, Client(peer.channel, revision=R4, elicit=think) as client:
        peer.say(id="q", **form())
        async with asyncio.timeout(SECONDS):
            await begun.wait()
            peer.tell("notifications/cancelled", {"requestId": "q"})
            await over.wait()
        await client.ping()
        assert not [message for message in peer.received if message.get("id") == "q"]


@pytest.mark.parametrize("calls", [1, 2])
async def test_who_is_asked_in_the_handshake_era(calls: int):
    """A question does not say what it belongs to: it goes to the asker of the only call that runs,
    else to the client's own.
    """
    own = Answers(elicit=lambda p: {"value": "own"})
    other = Answers(elicit=lambda p: {"value": "other"})
    async with (
        Peer({"tools/call": SILENCE}, R4) as peer,
        Client(peer.channel, revision=R4, answers=own) as client,
    ):
        running = [asyncio.create_task(client.call_tool("wait", asker=other)) for _ in range(calls)]
        await peer.until("tools/call", calls)
        peer.say(id="q", **form())
        answer = await peer.until_received(lambda message: message.get("id") == "q")
        assert answer["result"]["content"] == {"value": "other" if calls == 1 else "own"}
        for message in peer.all("tools/call"):
            peer.say(id=message["id"], result=text())
        await asyncio.gather(*running)
        peer.say(id="r", **form())
        answer = await peer.until_received(lambda message: message.get("id") == "r")
        assert answer["result"]["content"] == {"value": "own"}


async def test_once_on_this_side():
    """Nothing runs again here."""

    async def seven() -> int:
        return 7

    assert await Answers().once("x", seven) == 7
