"""OpenApi: the operations of an HTTP API as a source of tools."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self

import msgspec
from msgspec import Raw

from .... import types as t
from ....exchange import AnyResult, Exchange
from ....http11.client import HttpFetch
from ....http11.fetch import Authorizer, Fetch
from ....logs import limited
from ....source import Offered
from ....transport.http.authorization import ASGIApp
from ....typed.raw_schema import ArgumentsSchema
from ....typed.signature import ArgumentsError
from ....types.errors import InterlockError
from .asgi import AsgiFetch
from .credentials import ApiCredentials
from .document import ApiDocument, DocumentSource, OpenApiError, read_document
from .names import named
from .operations import ApiOperation, UnusableOperation, operations_of
from .pages import joined, next_arguments
from .requests import checked_base, request_of
from .responses import ApiResponse, json_of, result_of
from .schemas import SchemaConverter
from .search import OperationIndex
from .sending import ApiSender
from .tools import CALL, SEARCH, OperationTool, search_tools

log = limited("interlock.server")

MOST_TOOLS = 40
"""A document with more operations is offered as two tools: one to search, one to call."""
_IN_PROCESS = "http://localhost"
_encode = msgspec.json.Encoder().encode
_SHOWN_PROBLEMS = 3


class OpenApi:
    """The operations of an HTTP API as tools: a source for `Server.mount`.

    The address of the API comes from `base` only, never from the document. No reference is fetched,
    redirects to another host are not followed, and the token of a caller is never passed on.

    A document of more than 40 operations is offered as two tools, `search_operations` and
    `call_operation`, unless `search` is false.

    Args:
        document: The OpenAPI document, of version 3.0 or 3.1: a path, bytes, or its content. An app
            with a method `openapi`, such as a FastAPI app, is its own document and its own `app`.
        base: The base address of the API, such as "https://api.example/v1".
        auth: A bearer token; secrets by the name of a security scheme of the document; or an
            Authorizer, such as `ClientCredentials(...)`. The secret of HTTP basic authentication is
            "user:password".
        headers: Further headers of each request. Callers cannot set these.
        app: An ASGI app in this process that is the API, in place of a server at `base`.
        fetch: The HTTP client; it is not closed with the source. A new `HttpFetch` by default.
        search: Whether the operations are offered as two tools; None for large documents only.
        pages: How many pages of a list one call follows and joins, by links and cursors. What is
            left is named in the result in any case.
        timeout: The maximum duration of a request, in seconds; None for no limit.
        limit: The largest answer, in bytes.
        output_schema_bytes: The largest output schema that is sent. An operation with a larger one
            answers with text.

    Attributes:
        unusable: The operations that cannot be tools, with the reasons.

    Raises:
        OpenApiError: The document or an option cannot be used.
    """

    def __init__(
        self,
        document: DocumentSource | ASGIApp,
        *,
        base: str | None = None,
        auth: str | Mapping[str, str] | Authorizer | None = None,
        headers: Mapping[str, str] | None = None,
        app: ASGIApp | None = None,
        fetch: Fetch | None = None,
        search: bool | None = None,
        pages: int = 1,
        timeout: float | None = 60.0,
        limit: int = 4 * 1024 * 1024,
        output_schema_bytes: int = 2000,
    ) -> None:
        described = getattr(document, "openapi", None)
        if callable(document) and callable(described):
            app = document
            document = described()
        if callable(document):
            raise OpenApiError("the app has no method openapi(): give the document, and app=")
        if app is not None and fetch is not None:
            raise TypeError("give either app or fetch")
        if base is None and app is None:
            raise OpenApiError(
                "base is missing: the address of the API never comes from the document"
            )
        if pages < 1:
            raise OpenApiError("pages must be at least 1")
        self._document: ApiDocument = read_document(document)
        self._base = checked_base(base or _IN_PROCESS)
        self._headers = dict(headers or {})
        self._authorizer: Authorizer | None = None
        if auth is None or isinstance(auth, str | Mapping):
            self._credentials = ApiCredentials(self._document, auth)
        else:
            self._credentials = ApiCredentials(self._document, None)
            self._authorizer = auth
        self._hidden = self._credentials.names() | {
            ("header", name.lower()) for name in self._headers
        }
        self._app = app
        self._given = fetch
        self._fetch: Fetch | None = None
        self._sender: ApiSender | None = None
        self._pages = pages
        self._timeout = timeout
        self._limit = limit
        self._output_schema_bytes = output_schema_bytes
        self._requests = SchemaConverter(self._document, "request")
        self._responses = SchemaConverter(self._document, "response")
        found = list(operations_of(self._document))
        self.unusable = [one for one in found if isinstance(one, UnusableOperation)]
        operations = named([one for one in found if isinstance(one, ApiOperation)])
        self._operations = {operation.name: operation for operation in operations}
        self._tools: dict[str, OperationTool | None] = {}
        self._searches = len(operations) > MOST_TOOLS if search is None else search
        self._index: OperationIndex | None = None
        self._offered = Offered(tools=self._listings())
        if self.unusable:
            shown = "; ".join(
                f"{one.place}: {one.reason}" for one in self.unusable[:_SHOWN_PROBLEMS]
            )
            log.warning("%d operations of %s cannot be used: %s", len(self.unusable), self, shown)

    def __repr__(self) -> str:
        return f"OpenApi({self._document.title!r}, {len(self._operations)} operations)"

    # -- the source --------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The title of the API."""
        return self._document.title or "OpenAPI"

    @property
    def offered(self) -> Offered:
        """The tools."""
        return self._offered

    async def open(self) -> None:
        """Start the app, if there is one. You can call it twice."""
        self._opened()
        if isinstance(self._fetch, AsgiFetch):
            await self._fetch.open()

    async def aclose(self) -> None:
        """Close the connections. The source can be opened again."""
        fetch = self._fetch
        self._fetch = None
        self._sender = None
        if fetch is not None and fetch is not self._given:
            await fetch.aclose()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        """Do nothing: the document does not change."""
        return lambda: None

    def handle(self, x: Exchange, /) -> Awaitable[AnyResult]:
        """Handle `tools/call`. Raises McpError for any other method."""
        if x.method != "tools/call":
            raise t.McpError(t.METHOD_NOT_FOUND, f"Method not found: {x.method}")
        return self._handle_call(x)

    async def _handle_call(self, x: Exchange) -> t.CallToolResult:
        params: t.CallToolRequestParams = x.params
        raw = b"{}" if params.arguments is t.NOTHING else params.arguments
        try:
            return await self.call(params.name, raw)
        except ArgumentsError as bad:
            words = f"Invalid arguments for tool {params.name}: {bad}"
            if not x.caller.supports("argument_errors_as_results"):  # `TOL-16`
                raise t.McpError(t.INVALID_PARAMS, words) from None
        except t.McpError:
            raise
        except InterlockError as bad:
            words = str(bad)
        return t.CallToolResult(content=[t.TextContent(words)], is_error=True)

    # -- tools -------------------------------------------------------------------------------------

    @property
    def operations(self) -> list[str]:
        """The names of all operations, also of a document that is offered as two tools."""
        return list(self._operations)

    def _listings(self) -> list[t.Tool]:
        if self._searches:
            return list(search_tools(self._document.title, len(self._operations)))
        tools = [self._tool(name) for name in self._operations]
        return [tool.listing for tool in tools if tool is not None]

    def _tool(self, name: str) -> OperationTool | None:
        """Return the tool of an operation, which is made once; None if it cannot be made."""
        if name not in self._tools:
            operation = self._operations[name]
            try:
                self._tools[name] = OperationTool(
                    self._document,
                    operation,
                    self._requests,
                    self._responses,
                    self._hidden,
                    self._output_schema_bytes,
                )
            except OpenApiError as bad:
                self._tools[name] = None
                self.unusable.append(UnusableOperation(operation.place, str(bad)))
        return self._tools[name]

    async def call(
        self, name: str, arguments: Mapping[str, Any] | bytes | Raw = b"{}"
    ) -> t.CallToolResult:
        """Call a tool.

        Args:
            name: The name of the tool.
            arguments: The arguments, or their JSON.

        Raises:
            McpError: There is no such tool.
            ArgumentsError: The arguments do not fit the input schema.
            ToolError: The API answered with an error.
            Unreachable: The API did not answer.
        """
        raw = arguments if isinstance(arguments, bytes | Raw) else _encode(arguments)
        if self._searches and name == SEARCH:
            return self._search(raw)
        if self._searches and name == CALL:
            return await self._call_operation(raw)
        tool = None
        if name in self._operations and not self._searches:
            tool = self._tool(name)
        if tool is None:
            raise t.McpError(t.INVALID_PARAMS, f"Unknown tool: {name}")
        return await self._run(tool, tool.decode(raw), is_listed=True)

    def _search(self, raw: bytes | Raw) -> t.CallToolResult:
        """Return the operations that fit a query, as text."""
        given = ArgumentsSchema(self._offered.tools[0].input_schema).decode(raw)
        if self._index is None:
            self._index = OperationIndex(list(self._operations.values()))
        found = [
            {
                "operation": tool.listing.name,
                "request": tool.operation.place,
                "description": tool.listing.description,
                "inputSchema": tool.input.schema,
            }
            for operation in self._index.find(given["query"], given.get("limit", 5))
            if (tool := self._tool(operation.name)) is not None
        ]
        if not found:
            raise t.ToolError("No operation fits these words. Try other ones, such as its nouns.")
        return t.CallToolResult(content=[t.TextContent(_encode(found).decode())])

    async def _call_operation(self, raw: bytes | Raw) -> t.CallToolResult:
        given = ArgumentsSchema(self._offered.tools[1].input_schema).decode(raw)
        name = given["operation"]
        tool = self._tool(name) if name in self._operations else None
        if tool is None:
            near = difflib.get_close_matches(name, self._operations, n=1)
            hint = f" Did you mean {near[0]}?" if near else f" Find operations with {SEARCH}."
            raise t.ToolError(f"There is no operation {name!r:.80}.{hint}")
        arguments = _encode(given.get("arguments", {}))
        return await self._run(tool, tool.decode(arguments), is_listed=False)

    # -- calls -------------------------------------------------------------------------------------

    def _opened(self) -> ApiSender:
        if self._sender is None:
            if self._app is not None:
                self._fetch = AsgiFetch(self._app, limit=self._limit)
            else:
                self._fetch = self._given or HttpFetch()
            authorized = self._authorizer.to(self._base) if self._authorizer is not None else None
            self._sender = ApiSender(
                self._fetch, authorized, limit=self._limit, timeout=self._timeout
            )
        return self._sender

    async def _run(
        self, tool: OperationTool, values: dict[str, Any], *, is_listed: bool
    ) -> t.CallToolResult:
        """Send the request of a call, and return its result, with the arguments of the next page if
        there is one.
        """
        output = tool.output if is_listed else None
        response, url = await self._send(tool, values)
        content = json_of(response)
        onward: dict[str, Any] = {}
        if tool.operation.method == "GET" and 200 <= response.status < 300:
            onward = next_arguments(tool.input, values, url, response.headers, content)
        for _ in range(self._pages - 1):
            if not onward:
                break
            following, url = await self._send(tool, {**values, **onward})
            page = json_of(following)
            both = joined(content, page) if 200 <= following.status < 300 else None
            if both is None:
                break
            content = both
            values = {**values, **onward}
            onward = next_arguments(tool.input, values, url, following.headers, page)
        result = result_of(response, content, output)
        if not onward:
            return result
        more = t.TextContent(f"There is more: call again with {_encode(onward).decode()} added.")
        return msgspec.structs.replace(result, content=[*result.content, more])

    async def _send(self, tool: OperationTool, values: dict[str, Any]) -> tuple[ApiResponse, str]:
        """Send one request. Return its response and its URL, which may contain a secret."""
        sender = self._opened()
        request = request_of(
            self._document,
            tool.operation,
            tool.input,
            values,
            base=self._base,
            headers=self._headers,
            credentials=self._credentials.of(tool.operation),
        )
        return await sender.send(request), request.url
