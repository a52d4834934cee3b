"""The official SDKs' clients use the everything server as `interlock serve everything` runs it, in
both eras."""

from __future__ import annotations

import base64
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from interlock.schema import compile as compile_schema
from interlock_servers.everything.form_fields import PARTS
from tests.interop.driver import MAN, Driver, command_of, led, on_the_web
from tests.ports import free_port
from tests.servers.everything.scripted_client import CALLS

pytestmark = [pytest.mark.interop, pytest.mark.asyncio(loop_scope="module")]

WAYS = [
    (maker, mode, "stdio") for maker in ("python-2", "typescript-2") for mode in ("auto", "legacy")
]
WAYS += [
    ("python-1", "legacy", "stdio"),
    ("typescript-1", "legacy", "stdio"),
    ("python-2", "legacy", "http"),
    ("typescript-2", "auto", "http"),
]
SERVE = [sys.executable, "-m", "interlock", "serve", "everything"]
TOOL_USES = {
    "role": "assistant",
    "content": [
        {"type": "tool_use", "id": "1", "name": "capital", "input": {"country": "Peru"}},
        {"type": "tool_use", "id": "2", "name": "total", "input": {"numbers": [1, 2]}},
    ],
    "model": "m",
    "stopReason": "toolUse",
}
SAID = {
    "role": "assistant",
    "content": {"type": "text", "text": "Lima, and 3."},
    "model": "m",
    "stopReason": "endTurn",
}
BY_THEMSELVES = {
    name: given
    for name, given in CALLS.items()
    if given[1] is not None and not name.startswith("ask_")
}
NOT_BY_THEMSELVES = {
    "book_table",
    "order_pizza",
    "sign_in",
    "visit_page",
    "show_model",
    "talk_to_model",
    "list_roots",
    "read_counter",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=WAYS, ids=" ".join)
async def peer(
    request: pytest.FixtureRequest, installed: Callable[[str], Path]
) -> AsyncIterator[tuple[Driver, bool]]:
    """A connected client, and whether it speaks 2026-07-28."""
    maker, mode, road = request.param
    target: dict[str, Any] = {"command": SERVE}
    async with contextlib.AsyncExitStack() as stack:
        if road == "http":
            port = free_port()
            await stack.enter_async_context(on_the_web([*SERVE, "--http", f":{port}"], port))
            target = {"url": f"http://127.0.0.1:{port}/mcp", "road": road}
        client = await stack.enter_async_context(
            led(command_of("client", maker, installed), mode=mode, log_level="debug", **target)
        )
        yield client, mode == "auto"


async def test_all_is_listed(peer: tuple[Driver, bool]) -> None:
    """Each list is complete on one page, and the SDK's types accept every entry (`TOL-02`).

    A tool that is only for an app is not listed for clients without support for apps.
    """
    client, newest = peer
    (tools, resources) = [
        (await client.do(f"list_{what}")).result[what] for what in ("tools", "resources")
    ]
    templates = (await client.do("list_resource_templates")).result["resourceTemplates"]
    prompts = (await client.do("list_prompts")).result["prompts"]
    assert [*map(len, (tools, resources, templates, prompts))] == [90, 11, 10, 9]
    (echo,) = [tool for tool in tools if tool["name"] == "echo"]
    assert [icon.get("theme") for icon in echo["icons"]] == ["light", "dark", None]
    who = (await client.do("who")).result
    assert (who["server"]["name"], len(who["server"]["icons"])) == ("everything", 3)
    assert (who["revision"] == "2026-07-28") is newest


async def test_results(peer: tuple[Driver, bool]) -> None:
    """Each tool without questions returns the text of the table (`TOL-09`, `TOL-12`)."""
    client, newest = peer
    for name, (arguments, text) in BY_THEMSELVES.items():
        if name not in NOT_BY_THEMSELVES:
            step = await client.call(name, arguments)
            assert step.text == text, name
    primes = (await client.call("list_primes", {"most": 5})).result
    assert primes.get("structuredContent") == ([2, 3, 5] if newest else None)
    blocks = (await client.call("annotated")).result["content"]
    assert [block["type"] for block in blocks] == [
        "text",
        "text",
        "image",
        "audio",
        "resource_link",
        "resource",
        "resource",
    ]
    assert all(block["annotations"]["lastModified"] and block["_meta"] for block in blocks)
    assert (await client.call("fail")).result["isError"]
    refused = await client.call("refuse", {"kind": "of its own"})
    assert refused.error is not None
    assert refused.error["code"] == -31999


async def test_a_form_with_each_kind_of_field(peer: tuple[Driver, bool]) -> None:
    """It reaches the user unchanged, and the answer returns to the tool (`ELI-10`, `ELI-11`)."""
    client, _ = peer
    content: dict[str, Any] = {
        name: field["default"] for fields in PARTS.values() for name, field in fields.items()
    }
    step = await client.call(
        "ask_form", answers={"elicitation/create": {"action": "accept", "content": content}}
    )
    ((_, asked),) = step.asked
    schema = asked["requestedSchema"]
    assert schema["properties"] == {
        name: field for fields in PARTS.values() for name, field in fields.items()
    }
    assert compile_schema(schema).check(content) == []
    assert step.result["structuredContent"] == {"action": "accept", "content": content}
    declined = await client.call("ask_form", answers={"elicitation/create": {"action": "decline"}})
    assert declined.result["structuredContent"]["action"] == "decline"


async def test_a_model_with_tools(peer: tuple[Driver, bool]) -> None:
    """The client's model calls two tools at once, and answers once it has their results (`SAM-12`
    to `SAM-16`)."""
    client, _ = peer
    step = await client.call(
        "ask_model_with_tools",
        {"question": "Well?"},
        answers={"sampling/createMessage": [TOOL_USES, SAID]},
    )
    assert step.text == "Lima, and 3."
    first, second = (params for _, params in step.asked)
    assert [tool["name"] for tool in first["tools"]] == ["capital", "total"]
    assert first["toolChoice"] == {"mode": "auto"}
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    results = second["messages"][2]["content"]
    assert [
        (block["type"], block["toolUseId"], block["structuredContent"]) for block in results
    ] == [
        ("tool_result", "1", {"capital": "Lima"}),
        ("tool_result", "2", {"sum": 3}),
    ]
    assert step.result["structuredContent"]["rounds"] == 2


async def test_the_rest(peer: tuple[Driver, bool]) -> None:
    """Pages to visit, folders, resources, prompts, completions (`ELI-17`, `ROO-04`, `RES-06`,
    `PRM-04`, `CMP-02`)."""
    client, newest = peer
    accepted: dict[str, Any] = {**MAN, "elicitation/create": {"action": "accept"}}
    step = await client.call("visit_page", answers=accepted, until=0 if newest else 1)
    assert step.text == "The user has visited the page."
    assert step.asked[0][1]["mode"] == "url"
    assert (
        "notifications/elicitation/complete" in [method for method, _ in step.heard]
    ) is not newest
    assert (await client.call("list_roots")).text == "file:///srv/data"
    (picture,) = (await client.do("read", uri="everything://picture.png")).result["contents"]
    assert base64.b64decode(picture["blob"]).startswith(b"\x89PNG")
    messages = (
        await client.do("prompt", name="trip", arguments={"country": "spain", "city": "Bilbao"})
    ).result["messages"]
    assert [message["content"]["type"] for message in messages] == [
        "text",
        "image",
        "text",
        "resource",
    ]
    found = (
        await client.do(
            "complete", template="everything://numbers/{number}", argument="number", value=""
        )
    ).result["completion"]
    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 250, True)
