"""A server that would answer as a text prints it: its tools,
resources and prompts are those of the printed answers."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from interlock import (
    AnyResult,
    CallToolResult,
    Exchange,
    Handler,
    Server,
    ServerInfo,
    ServerLimits,
    TextContent,
    types,
)

ASK = "ask"  # the tool that asks what a text prints as a request of the server
PAGE = 10


class Mirror:
    """Builds the server piece by piece; answers that are printed for a call,
    a read or a get are given for it."""

    def __init__(self, hello: Mapping[str, Any] | None = None) -> None:
        hello = hello or {"serverInfo": {"name": "mirror", "version": "1"}}
        named = hello["serverInfo"]
        self.server = Server(
            named["name"],
            named["version"],
            info=ServerInfo(title=named.get("title"), description=named.get("description")),
            instructions=hello.get("instructions"),
            limits=ServerLimits(page_size=PAGE),
            middleware=[_asking],
        )
        self._calls: dict[str, dict[str, Any]] = {}
        self._reads: dict[str, dict[str, Any]] = {}
        self._gets: dict[str, dict[str, Any]] = {}

    def know(self, request: dict[str, Any], result: dict[str, Any]) -> None:
        """Take in a request and the answer that is printed for it."""
        params = request.get("params", {})
        match request["method"]:
            case "tools/list":
                self.tools(result["tools"])
            case "resources/list":
                self.resources(result["resources"])
            case "resources/templates/list":
                self.templates(result["resourceTemplates"])
            case "prompts/list":
                self.prompts(result["prompts"])
            case "tools/call":
                self._calls[_key(params)] = result
            case "resources/read":
                self._reads[params["uri"]] = result
            case "prompts/get":
                self._gets[_key(params)] = result

    def offer(self, capabilities: Iterable[str]) -> None:
        """Have something of each kind that the printed capabilities name,
        for a server offers only what it has."""
        have = self.server.capabilities()
        if "resources" in capabilities and have.resources is None:
            self.resources([{"uri": "mirror://placeholder", "name": "placeholder"}])
        if "prompts" in capabilities and have.prompts is None:
            self.prompts([{"name": "placeholder"}])
        if "tools" in capabilities and have.tools is None:
            self.fill(1)

    def fill(self, count: int = PAGE) -> None:
        """Put so many tools before the others, so that these stand on the second page."""
        self.tools(
            [{"name": f"filler_{n}", "inputSchema": {"type": "object"}} for n in range(count)]
        )

    def tools(self, listed: Iterable[dict[str, Any]]) -> None:
        """Have these tools, each with its own schema."""
        for tool in listed:
            words = {key: tool[key] for key in ("name", "title", "description") if key in tool}
            self.server.add_tool(
                self._tool(tool["name"]), input_schema=tool["inputSchema"], **words
            )

    def resources(self, listed: Iterable[dict[str, Any]]) -> None:
        """Have these resources."""
        for resource in listed:
            words = {
                key: resource[key]
                for key in ("name", "title", "description", "size")
                if key in resource
            }
            self.server.add_resource(
                resource["uri"],
                self._resource(resource["uri"]),
                mime_type=resource.get("mimeType"),
                **words,
            )

    def templates(self, listed: Iterable[dict[str, Any]]) -> None:
        """Have these families of resources; what is read is the variables as JSON."""
        for template in listed:
            words = {
                key: template[key] for key in ("name", "title", "description") if key in template
            }
            names = [part.partition("}")[0] for part in template["uriTemplate"].split("{")[1:]]
            self.server.add_resource(
                template["uriTemplate"],
                _with_parameters(dict, names),
                mime_type=template.get("mimeType"),
                **words,
            )

    def prompts(self, listed: Iterable[dict[str, Any]]) -> None:
        """Have these prompts."""
        for prompt in listed:
            words = {key: prompt[key] for key in ("name", "title", "description") if key in prompt}
            arguments = prompt.get("arguments", ())
            function = _with_parameters(
                self._prompt(prompt["name"]), [a["name"] for a in arguments]
            )
            optional = {a["name"] for a in arguments if not a.get("required")}
            signature = inspect.signature(function)
            function.__signature__ = signature.replace(  # type: ignore[attr-defined] # that is where inspect looks for it
                parameters=[
                    p.replace(default=None) if p.name in optional else p
                    for p in signature.parameters.values()
                ]
            )
            described = [
                f"    {a['name']}: {a['description']}" for a in arguments if "description" in a
            ]
            function.__doc__ = (
                "\n".join(["A prompt.", "", "Args:", *described]) if described else None
            )
            self.server.add_prompt(function, **words)

    def _tool(self, name: str) -> Callable[[dict[str, Any]], CallToolResult]:
        def answer(arguments: dict[str, Any]) -> CallToolResult:
            result = self._calls.get(_key({"name": name, "arguments": arguments}))
            return (
                msgspec.convert(result, CallToolResult)
                if result is not None
                else CallToolResult(content=[TextContent(name)])
            )

        return answer

    def _resource(self, uri: str) -> Callable[[], Any]:
        def read() -> Any:
            result = self._reads.get(uri)
            return msgspec.convert(result, types.ReadResourceResult) if result is not None else ""

        return read

    def _prompt(self, name: str) -> Callable[..., Any]:
        def write(**arguments: Any) -> Any:
            given = {key: value for key, value in arguments.items() if value is not None}
            result = self._gets.get(_key({"name": name, "arguments": given}))
            return (
                msgspec.convert(result, types.GetPromptResult)
                if result is not None
                else json.dumps(given)
            )

        return write


def _with_parameters(function: Callable[..., Any], names: Iterable[str]) -> Callable[..., Any]:
    """A function whose parameters have these names."""

    def call(**values: Any) -> Any:
        return function(**values)

    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # that is where inspect looks for it
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    )
    return call


def _key(params: Mapping[str, Any]) -> str:
    return json.dumps([params["name"], params.get("arguments") or {}], sort_keys=True)


def _asking(handler: Handler) -> Handler:
    """A call of ASK puts the request in its arguments to the client,
    and gives the answer as text."""

    async def handle(x: Exchange) -> AnyResult:
        if x.method != "tools/call" or x.params.name != ASK:
            return await handler(x)
        request = msgspec.json.decode(x.params.arguments, type=types.InputRequest)
        answer = await x.asker.ask(request)
        return CallToolResult(content=[TextContent(msgspec.json.encode(answer).decode())])

    return handle
