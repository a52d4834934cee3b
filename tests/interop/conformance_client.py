"""An ordinary client that plays the scenarios of the public conformance suite:
`conformance_client.py URL`.

The suite passes the scenario, the revision and the data in environment variables.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from interlock import REVISIONS, Answers, Client, Request, SkillError, types
from interlock.auth import (
    Authorization,
    ClientCredentials,
    EnterpriseManaged,
    OAuth,
    Unauthorized,
    WorkloadIdentity,
)
from interlock.auth.keys import SigningKey
from interlock.auth.oauth.steps import ShowCode
from interlock.http11.client import HttpFetch

FILLED_IN = {
    "string": "text",
    "integer": 1,
    "number": 0.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
"""A value of each type, for required arguments."""


async def greet(client: Client) -> None:
    """Connect, and list the features."""
    if client.server_capabilities.tools is not None:
        await client.list_tools()


async def add(client: Client) -> None:
    """Look for a tool and call it."""
    assert [tool.name for tool in await client.list_tools()] == ["add_numbers"]
    result = await client.call_tool("add_numbers", {"a": 5, "b": 3})
    assert result.text == "The sum of 5 and 3 is 8"


async def ask_away(client: Client) -> None:
    """Send requests of several kinds, independent of the server's features."""
    await client.request("tools/list", types.ListToolsRequestParams())
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def fill_in(client: Client) -> None:
    """Call a tool that shows a form with defaults."""
    result = await client.call_tool("test_client_elicitation_defaults")
    assert result.text.startswith("Elicitation completed")


async def come_back(client: Client) -> None:
    """Call a tool whose stream is closed before it answers."""
    result = await client.call_tool("test_reconnection")
    assert result.text == "Reconnection test completed successfully"


async def use_everything(client: Client) -> None:
    """Call every tool, read every resource and get every prompt that is listed."""
    for tool in await client.list_tools():
        await client.call_tool(tool.name, arguments_for(tool))
    if client.server_capabilities.resources is not None:
        for resource in await client.list_resources():
            await client.read_resource(resource.uri)
    if client.server_capabilities.prompts is not None:
        for prompt in await client.list_prompts():
            await client.get_prompt(prompt.name)


async def call_as_told(client: Client) -> None:
    """List the tools, then make the calls that the suite requests."""
    listed = {tool.name for tool in await client.list_tools()}
    for call in context()["toolCalls"]:
        assert call["name"] in listed
        await client.call_tool(call["name"], call["arguments"])


async def answer_in_rounds(client: Client) -> None:
    """Call tools that ask questions and one that does not, concurrently."""
    await client.list_tools()
    asking = [client.call_tool("test_mrtr_echo_state"), client.call_tool("test_mrtr_no_state")]
    plain = [client.call_tool("test_mrtr_unrelated"), client.call_tool("test_mrtr_no_result_type")]
    results = await asyncio.gather(*asking, *plain)
    assert [result.text for result in results] == [
        "echo-state-ok",
        "no-state-ok",
        "unrelated-ok",
        "no-result-type-test-ok",
    ]


async def look_only(client: Client) -> None:
    """List tools, one of which has a schema with a remote reference."""
    assert [tool.name for tool in await client.list_tools()] == ["lookup_user"]


async def hand_back(client: Client) -> None:
    """Send a schema back unchanged."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    await client.call_tool(
        "json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema}
    )


async def list_skills_only(client: Client) -> None:
    """List the skills, without reading their files in advance."""
    assert [skill.name for skill in await client.list_skills()] == ["pdf-processing"]


async def load_a_skill(client: Client) -> None:
    """Load a skill and read one of its files: the SKILL.md does not match its digest, so loading
    fails."""
    [skill] = await client.list_skills()
    try:
        await skill.read()
    except SkillError:
        return
    await skill.read("references/FORMS.md")


async def look_and_call(client: Client) -> None:
    """List the tools, and call the first one."""
    tools = await client.list_tools()
    if tools:
        await client.call_tool(tools[0].name, arguments_for(tools[0]))


SCENARIOS: dict[str, Callable[[Client], Awaitable[None]]] = {
    "initialize": greet,
    "tools_call": add,
    "request-metadata": ask_away,
    "elicitation-sep1034-client-defaults": fill_in,
    "sse-retry": come_back,
    "http-standard-headers": use_everything,
    "http-custom-headers": call_as_told,
    "http-invalid-tool-headers": use_everything,
    "sep-2322-client-request-state": answer_in_rounds,
    "json-schema-ref-no-deref": look_only,
    "json-schema-2020-12-preservation": hand_back,
    "sep-2640-client-no-prefetch": list_skills_only,
    "sep-2640-client-verify-digest": load_a_skill,
    "sep-2640-client-verify-size": load_a_skill,
    "sep-2640-client-verify-frontmatter": load_a_skill,
}

# -- authorization ---------------------------------------------------------------------------------

DOCUMENT = "https://conformance-test.local/client-metadata.json"
MUST_FAIL = {
    "auth/resource-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
    "auth/scope-retry-limit",
}
"""Scenarios with a malicious or endless peer, in which a correct client does not log in."""


class Walker:
    """Plays a user with a browser: requests the page, and records the redirect."""

    async def listen(self, preferred: Sequence[str]) -> str:
        """Do nothing: no listener is needed."""
        return "http://localhost:3000/callback"

    async def visit(self, url: str, redirect_uri: str) -> str:
        """Visit, and do not follow."""
        fetch = HttpFetch()
        try:
            response = await fetch(Request("GET", url))
            await response.aclose()
            return urlsplit(response.headers["location"]).query
        finally:
            await fetch.aclose()

    async def show_code(self, step: ShowCode) -> None:
        """Do nothing: no user can see the code."""
        raise AssertionError(step)

    async def aclose(self) -> None:
        """Nothing is open."""


def person(**options: Any) -> OAuth:
    """The authorization of a client that a person uses."""
    return OAuth(agent=Walker, document=DOCUMENT, **options)


def authorization(scenario: str) -> Authorization:
    """The client's authorization, if the scenario needs one."""
    given = context()
    match scenario:
        case "auth/pre-registration":
            return OAuth(
                agent=Walker, client_id=given["client_id"], client_secret=given["client_secret"]
            )
        case "auth/client-credentials-basic":
            return ClientCredentials(given["client_id"], given["client_secret"])
        case "auth/client-credentials-jwt":
            key = SigningKey.from_pem(given["private_key_pem"], given.get("signing_algorithm"))
            return ClientCredentials(given["client_id"], key=key)
        case "auth/enterprise-managed-authorization":
            return EnterpriseManaged(
                lambda: given["idp_id_token"],
                idp_endpoint=given["idp_token_endpoint"],
                idp_client_id=given["idp_client_id"],
                client_id=given["client_id"],
                client_secret=given["client_secret"],
            )
        case "auth/wif-jwt-bearer":
            return WorkloadIdentity(lambda: given["valid_jwt"], client_id=given["client_id"])
        case "auth/dpop" | "auth/dpop-nonce":
            return person(dpop=True)
        case _:
            return person()


def part_in(scenario: str) -> Callable[[Client], Awaitable[None]] | None:
    """The client's part in a scenario; None if it has no part."""
    return SCENARIOS.get(scenario) or (look_and_call if scenario.startswith("auth/") else None)


def arguments_for(tool: types.Tool) -> dict[str, Any]:
    """The required arguments of a tool, with values of the right type."""
    schema = tool.input_schema
    return {
        name: FILLED_IN[schema["properties"][name]["type"]] for name in schema.get("required", ())
    }


def agree(asked: types.ElicitRequestParams) -> dict[str, Any]:
    """Accept every question, and keep the defaults of its fields."""
    fields: dict[str, Any] = (asked.requested_schema or {}).get("properties", {})
    return {
        name: True
        for name, field in fields.items()
        if field.get("type") == "boolean" and "default" not in field
    }


def context() -> dict[str, Any]:
    """The data that the suite gives to a scenario."""
    given: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    return given


async def main(url: str, scenario: str, play: Callable[[Client], Awaitable[None]]) -> None:
    """Play a scenario, under the newest revision or any handshake revision."""
    wanted = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    revision = (
        wanted if wanted == REVISIONS[-1] else [known for known in REVISIONS if known <= wanted]
    )
    auth = authorization(scenario) if scenario.startswith("auth/") else None
    try:
        async with Client(
            url,
            revision=revision,
            auth=auth,
            answers=Answers(elicit=agree, sample=lambda asked: "Paris", roots=["file:///srv/data"]),
        ) as client:
            await play(client)
    except Unauthorized as bad:
        if scenario not in MUST_FAIL:
            raise
        print(bad)


if __name__ == "__main__":
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    part = part_in(scenario)
    if part is None:
        sys.exit(f"this client does not play {scenario}")
    asyncio.run(main(sys.argv[1], scenario, part))
