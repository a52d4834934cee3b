"""The fixtures of `everything.py`, one by one, in both eras: the public suite is only useful with a
server that has all of them."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import (
    REVISIONS,
    Answers,
    Caller,
    Client,
    Exchange,
    InputRequiredResult,
    McpError,
    types,
)
from scripts import conformance
from tests.interop import everything
from tests.interop.answers import ANSWERS, FORM

PROGRAM = Path(everything.__file__)
ERAS = ("2026-07-28", "2025-11-25")
OTHER_TOOLS = {
    *(
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_error_handling",
    ),
    *("test_tool_with_logging", "test_trigger_tool_change", "test_trigger_prompt_change"),
    *("test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"),
    *("greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete"),
    *("multi_input", "test_tool_with_task"),
}


class Seen:
    """The questions and notifications that a client received."""

    def __init__(self) -> None:
        self.forms: list[types.ElicitRequestParams] = []
        self.samplings: list[types.CreateMessageRequestParams] = []
        self.logged: list[tuple[str, Any]] = []
        self.reply: Any = FORM

    def elicit(self, params: types.ElicitRequestParams) -> Any:
        self.forms.append(params)
        return self.reply

    def sample(self, params: types.CreateMessageRequestParams) -> str:
        self.samplings.append(params)
        return "Paris"


@pytest.fixture
def seen() -> Seen:
    """A recorder for the client."""
    return Seen()


@pytest.fixture(params=ERAS)
async def client(request: pytest.FixtureRequest, seen: Seen) -> AsyncIterator[Client]:
    """A client that accepts every kind of question."""
    async with Client(
        everything.server,
        revision=request.param,
        answers=Answers(elicit=seen.elicit, sample=seen.sample, roots=["file:///srv/data"]),
        on_log=lambda message: seen.logged.append((message.level, message.data)),
        log_level="debug",
    ) as client:
        yield client


async def test_the_tools_are_those_of_the_suite_and_described(client: Client) -> None:
    """Every fixture is there, with a description and in the same order each time (`TOL-01`,
    `TOL-20`, `CFQ-13`)."""
    tools = await client.list_tools()
    assert {tool.name for tool in tools} == ANSWERS.keys() | OTHER_TOOLS
    assert all(tool.description for tool in tools)
    assert {
        "test_missing_capability",
        "test_streaming_elicitation",
        "test_logging_tool",
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
    } <= {tool.name for tool in tools}
    assert [tool.name for tool in await client.list_tools()] == [tool.name for tool in tools]


async def test_names_and_descriptions_are_as_the_suite_wants_them(client: Client) -> None:
    """1 to 64 characters of A-Z a-z 0-9 _ . / -, and a description for each (`CFQ-09`)."""
    tools = await client.list_tools()
    assert all(re.fullmatch(r"[A-Za-z0-9_./-]{1,64}", tool.name) for tool in tools)
    assert all(tool.description for tool in tools)


@pytest.mark.parametrize("tool", ANSWERS)
async def test_answers(client: Client, tool: str) -> None:
    """Each tool with one text as its result, with answers to its questions."""
    arguments, expected = ANSWERS[tool]
    result = await client.call_tool(tool, arguments)
    assert (result.is_error, result.text) == (False, expected)


async def test_content_of_each_kind(client: Client) -> None:
    """Images, audio and resources arrive with their type (`TOL-12`)."""
    (picture,) = (await client.call_tool("test_image_content")).content
    assert isinstance(picture, types.ImageContent)
    assert picture.mime_type == "image/png"
    assert base64.b64decode(picture.data).startswith(b"\x89PNG")
    (sound,) = (await client.call_tool("test_audio_content")).content
    assert isinstance(sound, types.AudioContent)
    assert sound.mime_type == "audio/wav"
    assert base64.b64decode(sound.data).startswith(b"RIFF")
    (resource,) = (await client.call_tool("test_embedded_resource")).content
    assert isinstance(resource, types.EmbeddedResource)
    assert resource.resource == types.ResourceContents(
        uri="test://embedded-resource",
        mime_type="text/plain",
        text="This is an embedded resource content.",
    )
    text, picture, resource = (await client.call_tool("test_multiple_content_types")).content
    assert isinstance(text, types.TextContent)
    assert isinstance(picture, types.ImageContent)
    assert isinstance(resource, types.EmbeddedResource)
    assert resource.resource.text == '{"test":"data","value":123}'


async def test_a_failure_is_a_result(client: Client) -> None:
    """A tool that raises returns a result with isError and its message (`TOL-15`)."""
    result = await client.call_tool("test_error_handling")
    assert (result.is_error, result.text) == (
        True,
        "This tool intentionally returns an error for testing",
    )


async def test_logging(client: Client, seen: Seen) -> None:
    """Three messages, in order."""
    await client.call_tool("test_tool_with_logging")
    assert seen.logged == [
        ("info", f"Tool {what}")
        for what in ("execution started", "processing data", "execution completed")
    ]


async def test_no_log_for_those_who_want_none() -> None:
    """In the stateless era a request without a log level gets no messages (`LOG-05`)."""
    heard: list[Any] = []
    async with Client(everything.server, revision=ERAS[0], on_log=heard.append) as client:
        await client.call_tool("test_logging_tool")
    assert heard == []


async def test_progress(client: Client) -> None:
    """Three reports, growing, with their total (`PRG-02`)."""
    heard: list[tuple[float, float | None]] = []
    await client.call_tool(
        "test_tool_with_progress",
        on_progress=lambda report: heard.append((report.progress, report.total)),
    )
    assert heard == [(0, 100), (50, 100), (100, 100)]


async def test_sampling_asks_for_little(client: Client, seen: Seen) -> None:
    """The prompt goes to the model unchanged, with at most 100 tokens."""
    await client.call_tool("test_sampling", {"prompt": "Where?"})
    (asked,) = seen.samplings
    assert asked.max_tokens == 100
    assert asked.messages == [
        types.SamplingMessage(role="user", content=types.TextContent("Where?"))
    ]


@pytest.mark.parametrize("reply, action", [(False, "decline"), (None, "cancel")])
async def test_elicitation_refused(
    client: Client, seen: Seen, reply: bool | None, action: str
) -> None:
    """Declining and dismissing are distinguished."""
    seen.reply = reply
    result = await client.call_tool("test_elicitation", {"message": "Who?"})
    assert result.text == f"User response: action={action}, content={{}}"
    assert seen.forms[0].message == "Who?"
    assert seen.forms[0].requested_schema == {
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    }


async def test_defaults_in_forms(client: Client, seen: Seen) -> None:
    """Each kind of field has its default, and an empty answer uses the defaults
    (`ELI-12`)."""
    seen.reply = True
    result = await client.call_tool("test_elicitation_sep1034_defaults")
    filled = {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True}
    assert (
        result.text
        == f"Elicitation completed: action=accept, content={json.dumps(filled, sort_keys=True)}"
    )
    fields = (seen.forms[0].requested_schema or {})["properties"]
    assert {name: field["default"] for name, field in fields.items()} == filled
    assert [fields[name]["type"] for name in filled] == [
        "string",
        "integer",
        "number",
        "string",
        "boolean",
    ]
    assert sorted(fields["status"]["enum"]) == ["active", "inactive", "pending"]


async def test_choices_in_forms(client: Client, seen: Seen) -> None:
    """Five forms of a choice, each sent unchanged."""
    seen.reply = {
        "untitledSingle": "option1",
        "titledSingle": "value2",
        "legacyEnum": "opt3",
        "untitledMulti": ["option1"],
    }
    result = await client.call_tool("test_elicitation_sep1330_enums")
    assert json.loads(result.text.partition("content=")[2]) == seen.reply
    assert seen.forms[0].requested_schema == everything.CHOICES


async def test_a_capability_that_is_missing() -> None:
    """Without a model, the call is rejected with the missing capability (`ERR-08`), or fails with a
    message in the handshake era."""
    async with Client(everything.server, revision=ERAS[0]) as client:
        with pytest.raises(McpError) as refused:
            await client.call_tool("test_missing_capability")
    assert (refused.value.code, refused.value.data) == (
        -32021,
        {"requiredCapabilities": {"sampling": {}}},
    )
    async with Client(everything.server, revision=ERAS[1]) as client:
        assert (await client.call_tool("test_missing_capability")).is_error


async def test_lists_that_change(client: Client) -> None:
    """A client that watches is notified of each change of a list, and finds it in the list
    (`TOL-18`, `PRM-08`, `LSN-13`)."""
    async with client.watch(tools=True, prompts=True) as changes:
        for tool, kind, listing in (
            ("test_trigger_tool_change", "tools", client.list_tools),
            ("test_trigger_prompt_change", "prompts", client.list_prompts),
        ):
            before = len(await listing())
            for more in (1, 0):
                await client.call_tool(tool)
                assert (await anext(changes)).kind == kind
                assert len(await listing()) == before + more


async def test_a_schema_with_many_keywords(client: Client) -> None:
    """The schema is listed unchanged, and arguments that violate it are rejected (`TOL-08`,
    `TOL-16`)."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert tools["json_schema_2020_12_tool"].input_schema == everything.CONTACT
    assert (
        tools["test_x_mcp_header"].input_schema["properties"]["region"]["x-mcp-header"] == "Region"
    )
    for wrong in (
        {"email": "a", "more": 1},
        {"name": "Ann"},
        {"contactMethod": "phone", "email": "a"},
    ):
        assert (await client.call_tool("json_schema_2020_12_tool", wrong)).is_error


async def test_resources(client: Client) -> None:
    """Text, binary and a family of resources, each with its type (`RES-02`, `RES-07`, `RES-13`)."""
    assert {
        r.uri: r.mime_type
        for r in await client.list_resources()
        if not r.uri.startswith("skill://")
    } == {
        "test://static-text": "text/plain",
        "test://static-binary": "image/png",
        "test://watched-resource": "text/plain",
    }
    (text,) = (await client.read_resource("test://static-text")).contents
    assert text.text == "This is the content of the static text resource."
    (binary,) = (await client.read_resource("test://static-binary")).contents
    assert base64.b64decode(binary.blob or "") == everything.DOT
    (template,) = await client.list_resource_templates()
    assert template.uri_template == "test://template/{id}/data"
    (data,) = (await client.read_resource("test://template/123/data")).contents
    assert (data.uri, data.mime_type) == ("test://template/123/data", "application/json")
    assert json.loads(data.text or "") == {
        "id": "123",
        "templateTest": True,
        "data": "Data for ID: 123",
    }


async def test_a_resource_to_watch(client: Client) -> None:
    """Only a watched resource sends a notification of its update (`SUB-02`, `LSN-02`)."""
    async with client.watch(resources=["test://watched-resource"]) as changes:
        everything.server.updated("test://static-text")
        everything.server.updated("test://watched-resource")
        assert (await anext(changes)).uri == "test://watched-resource"


async def test_a_resource_that_is_not_there(client: Client) -> None:
    """The error names the resource, with the code of the revision (`RES-04`, `RES-05`)."""
    with pytest.raises(McpError) as refused:
        await client.read_resource("test://nowhere")
    assert refused.value.code == (-32602 if client.revision == ERAS[0] else -32002)
    assert refused.value.data == {"uri": "test://nowhere"}


async def test_prompts(client: Client) -> None:
    """Each prompt has a description and the required content (`PRM-03`, `PRM-09`)."""
    prompts = await client.list_prompts()
    assert all(prompt.description for prompt in prompts)
    given = {"arg1": "a", "arg2": "b", "resourceUri": "test://x"}
    found: dict[str, list[Any]] = {}
    for prompt in prompts:
        got = await client.get_prompt(
            prompt.name,
            {argument.name: given[argument.name] for argument in prompt.arguments or ()},
        )
        found[prompt.name] = [message.content for message in got.messages]
    assert found.pop("test_prompt_with_image")[0] == types.ImageContent(
        data=base64.b64encode(everything.DOT).decode(), mime_type="image/png"
    )
    text = types.ResourceContents(
        uri="test://x", mime_type="text/plain", text="Embedded resource content for testing."
    )
    assert found == {
        "test_simple_prompt": [types.TextContent("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [
            types.TextContent("Prompt with arguments: arg1='a', arg2='b'")
        ],
        "test_prompt_with_embedded_resource": [
            types.EmbeddedResource(resource=text),
            types.TextContent("Please process the embedded resource above."),
        ],
        "test_input_required_result_prompt": [types.TextContent("Use this context: a rainy day")],
    }


async def test_completion(client: Client) -> None:
    """Completion returns values with the typed prefix (`CMP-02`)."""
    assert (await client.complete("test_prompt_with_arguments", "arg1", "part")).values == ["party"]
    assert (await client.complete("test://template/{id}/data", "id")).values == [
        "paris",
        "park",
        "party",
    ]


# -- rounds, seen from the wire --------------------------------------------------------------------

FULL = types.ClientCapabilities(
    elicitation=types.ElicitationCapability(),
    sampling=types.SamplingCapability(),
    roots=types.RootsCapability(),
)
REPLIES: dict[str, Any] = {
    **{
        key: {"action": "accept", "content": FORM}
        for key in ("user_name", "confirm", "step1", "step2")
    },
    **{
        key: {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
        for key in ("greeting", "capital_question")
    },
    "client_roots": {"roots": [{"uri": "file:///srv/data"}]},
}


async def call(
    tool: str,
    replies: Any = None,
    state: str | None = None,
    *,
    revision: str = ERAS[0],
    capabilities: types.ClientCapabilities = FULL,
) -> Any:
    """Send one `tools/call` to the server by hand, with the fields of a retry."""
    responses = (
        {key: msgspec.Raw(msgspec.json.encode(reply)) for key, reply in replies.items()}
        if replies
        else None
    )
    params = types.CallToolRequestParams(name=tool, input_responses=responses, request_state=state)
    return await everything.server.handler(
        Exchange("tools/call", params, Caller(revision, capabilities))
    )


ROUNDS: dict[str, tuple[list[set[str]], str]] = {
    "elicitation": ([{"user_name"}], "Hello, Ann!"),
    "sampling": ([{"capital_question"}], "Paris"),
    "list_roots": ([{"client_roots"}], "Roots: file:///srv/data"),
    "request_state": ([{"confirm"}], "state-ok"),
    "multiple_inputs": ([{"user_name", "greeting", "client_roots"}], "Paris Ann has 1 roots."),
    "multi_round": ([{"step1"}, {"step2"}], "Ann likes red."),
    "tampered_state": ([{"confirm"}], "Nobody has touched the state."),
}


@pytest.mark.parametrize("tool", ROUNDS)
async def test_rounds(tool: str) -> None:
    """Each round asks with the keys that the suite expects, and has its own state (`MRT-02`,
    `MRT-03`, `MRT-11`)."""
    rounds, text = ROUNDS[tool]
    result = await call(f"test_input_required_result_{tool}")
    states = []
    for keys in rounds:
        assert isinstance(result, InputRequiredResult)
        assert set(result.input_requests or {}) == keys
        states.append(result.request_state)
        result = await call(
            f"test_input_required_result_{tool}",
            {key: REPLIES[key] for key in keys},
            result.request_state,
        )
    assert result.text == text
    assert len(set(states)) == len(rounds)


async def test_answers_that_nobody_asked_for() -> None:
    """Missing, wrong or malformed answers are requested again; extra answers are ignored
    (`MRT-20` to `MRT-22`)."""
    tool = "test_input_required_result_elicitation"
    for replies in (
        {"wrong_key": REPLIES["confirm"]},
        {"user_name": 12345},
        {"user_name": {"action": "accept"}},
    ):
        assert isinstance(await call(tool, replies), InputRequiredResult)
    assert (
        await call(tool, {**REPLIES, "unknown_extra_key": {"action": "accept", "content": {}}})
    ).text == "Hello, Ann!"


async def test_a_state_that_was_tampered_with() -> None:
    """It is rejected with an error, without another question (`MRT-07`)."""
    asked = await call("test_input_required_result_tampered_state")
    for state in (asked.request_state + "-TAMPERED", asked.request_state[:-4], "asked"):
        with pytest.raises(McpError) as refused:
            await call(
                "test_input_required_result_tampered_state", {"confirm": REPLIES["confirm"]}, state
            )
        assert refused.value.code == -32602


async def test_a_state_that_a_handshake_client_makes_up() -> None:
    """In the handshake era there is no state on the wire, so a state in a request never reaches the
    tool (`MRT-06`)."""
    result = await call(
        "test_input_required_result_request_state",
        {"confirm": REPLIES["confirm"]},
        "asked",
        revision=ERAS[1],
    )
    assert result.is_error  # the tool then asks, and this client has no answer


async def test_only_what_the_client_declared_is_asked() -> None:
    """With sampling but without elicitation, only the model is asked (`MRT-05`)."""
    only_sampling = types.ClientCapabilities(sampling=types.SamplingCapability())
    asked = await call("test_input_required_result_capabilities", capabilities=only_sampling)
    assert [type(request) for request in asked.input_requests.values()] == [
        types.CreateMessageRequest
    ]


# -- as a program ----------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_over_stdio(revision: str) -> None:
    """The same server as a child process, under each revision."""
    async with Client([sys.executable, str(PROGRAM), "--stdio"], revision=revision) as client:
        assert client.revision == revision
        assert (await client.call_tool("test_simple_text")).text == ANSWERS["test_simple_text"][1]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the program over HTTP."""
    with conformance.served(tmp_path_factory.mktemp("served") / "log") as url:
        yield url


@pytest.mark.parametrize("revision", REVISIONS)
async def test_over_http(url: str, revision: str) -> None:
    """The same server at one address, under each revision; in revisions that support it, one call
    disconnects the client (`HTL-15`)."""
    async with Client(url, revision=revision) as client:
        assert client.revision == revision
        for tool in ("test_simple_text", "test_reconnection"):
            assert (await client.call_tool(tool)).text == ANSWERS[tool][1]


@pytest.mark.parametrize("arguments", [["--pigeon"], ["--stdio", "--port", "4000"], []])
def test_a_transport_that_there_is_not(arguments: list[str]) -> None:
    """The program reports an error and exits, and also with two transports or none."""
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, timeout=30
    )
    assert ended.returncode == 2
    assert "--stdio" in ended.stderr
    assert "--port" in ended.stderr
