"""Responses as results: content, structured content, the words of errors, and pages."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from interlock import ToolError
from interlock.server.sources.openapi.inputs import ApiArgument, OperationInput
from interlock.server.sources.openapi.operations import ApiParameter
from interlock.server.sources.openapi.pages import joined, next_arguments
from interlock.server.sources.openapi.responses import (
    ApiResponse,
    OperationOutput,
    json_of,
    result_of,
)
from interlock.types import CallToolResult, EmbeddedResource, ImageContent


def response(
    body: Any = b"", status: int = 200, kind: str = "application/json", **headers: str
) -> ApiResponse:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"content-type": kind, **{name.replace("_", "-"): h for name, h in headers.items()}}
    return ApiResponse(status, lines, data)


def result(given: ApiResponse, output: OperationOutput | None = None) -> CallToolResult:
    return result_of(given, json_of(given), output)


def error(given: ApiResponse) -> str:
    with pytest.raises(ToolError) as found:
        result(given)
    return str(found.value)


@pytest.mark.parametrize(
    "body, words",
    [
        ({"title": "No credit", "detail": "Your balance is 30."}, "No credit: Your balance is 30."),
        ({"message": "Bad name"}, "Bad name."),
        ({"error": "invalid_grant", "error_description": "Expired"}, "Expired: invalid_grant."),
        ({"error": {"code": 4, "message": "Quota"}}, "Quota."),
        ({"errors": [{"field": "age", "message": "too low"}, "other"]}, "age: too low; other."),
        (
            {"detail": [{"loc": ["body", "age"], "msg": "not a number", "type": "int"}]},
            "body.age: not a number.",
        ),
        ({"errors": [{"message": str(n)} for n in range(8)]}, "0; 1; 2; 3; 4; and 3 more."),
        ({"code": 7}, '{"code":7}.'),
        (["a", "b"], "a; b."),
        (b"", ""),
    ],
)
def test_the_words_of_an_error(body: Any, words: str) -> None:
    assert error(response(body, 400)) == f"The API answered 400 Bad Request{_after(words)}"


def _after(words: str) -> str:
    return f": {words}" if words else "."


def test_the_page_of_an_error_is_not_sent() -> None:
    """HTML gives its title, and the text of a crash nothing: it may have a traceback."""
    html = b"<html><head><title>Sorry</title></head><body>secret</body></html>"
    assert error(response(html, 502, "text/html")) == "The API answered 502 Bad Gateway: Sorry."
    crash = b"Traceback: password=1"
    assert (
        error(response(crash, 500, "text/plain")) == "The API answered 500 Internal Server Error."
    )
    assert error(response(b"No such pet", 404, "text/plain")).endswith("Not Found: No such pet.")
    assert len(error(response({"message": "x" * 9000}, 400))) < 2100


@pytest.mark.parametrize(
    "headers, words",
    [
        ({"retry_after": "30"}, "Try again in 30 seconds."),
        ({"ratelimit_reset": "7"}, "Try again in 7 seconds."),
        (
            {
                "retry_after": "Wed, 21 Oct 2026 07:28:00 GMT",
                "date": "Wed, 21 Oct 2026 07:27:00 GMT",
            },
            "Try again in 60 seconds.",
        ),
        ({"retry_after": "soon"}, ""),
        ({}, ""),
    ],
)
def test_the_wait_of_too_many_requests(headers: dict[str, str], words: str) -> None:
    said = error(response({"message": "Slow down."}, 429, **headers))
    assert said == f"The API answered 429 Too Many Requests: Slow down. {words}".rstrip()


def test_kinds_of_content() -> None:
    assert result(response({"a": [1, 2]})).content[0].text == '{"a":[1,2]}'
    assert result(response(b"", 204)).text == "Done: 204 No Content."
    assert result(response(b"hello", kind="text/plain; charset=utf-8")).text == "hello"
    assert result(response("ü".encode("latin-1"), kind="text/plain; charset=latin-1")).text == "ü"
    assert result(response(b"not json")).text == "not json"
    image = result(response(b"\x89PNG", kind="image/png")).content[0]
    assert isinstance(image, ImageContent)
    assert image.mime_type == "image/png"
    binary = result(response(b"\x00\x01", kind="application/zip")).content[0]
    assert isinstance(binary, EmbeddedResource)
    assert binary.resource.blob == "AAE="


OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
LIST = {"type": "object", "properties": {"result": {"type": "array", "items": OBJECT}}}


def test_structured_content() -> None:
    """Null members that nobody announced are left out, and what does not fit is still said."""
    output = OperationOutput(OBJECT, wrapped=False)
    assert result(response({"a": 1}), output).structured_content == {"a": 1}
    found = result(response({"a": 1, "b": None}), output)
    assert found.structured_content == {"a": 1}
    assert found.content[0].text == '{"a":1,"b":null}'
    assert result(response(b"", 204), output).structured_content == {}
    wrong = result(response({"a": "one"}), output)
    assert wrong.is_error
    assert wrong.structured_content is msgspec.UNSET
    assert "The operation succeeded" in wrong.text
    assert '{"a":"one"}' in wrong.text
    assert "$.a" in wrong.text
    listed = OperationOutput(LIST, wrapped=True)
    assert result(response([{"a": 1}]), listed).structured_content == {"result": [{"a": 1}]}
    text = result(response(b"fine", kind="text/plain"), output)
    assert text.is_error
    assert "fine" in text.text


# -- pages -----------------------------------------------------------------------------------------

URL = "https://api.example/v1/pets?page=1"


def tool(*names: str) -> OperationInput:
    """A tool with query parameters."""
    arguments = tuple(
        ApiArgument(
            name,
            "parameter",
            ApiParameter(
                name=name, place="query", required=False, schema={}, style="form", explode=True
            ),
        )
        for name in names
    )
    kinds = {"page": "integer", "offset": "integer"}
    properties = {name: {"type": kinds.get(name, "string")} for name in names}
    return OperationInput(arguments, {"type": "object", "properties": properties})


@pytest.mark.parametrize(
    "link, found",
    [
        ('</v1/pets?page=2>; rel="next"', {"page": 2}),
        ('<https://api.example/v1/pets?page=2&sort=up>; rel=next; title="x"', {"page": 2}),
        ('<?page=9>; rel="last", <?page=2>; rel="prev next"', {"page": 2}),
        ('<https://evil.example/v1/pets?page=2>; rel="next"', {}),
        ('<?page=1>; rel="next"', {}),
        ('<?page=2>; rel="nextish"', {}),
        ("<?unknown=2>; rel=next", {}),
        ("nonsense", {}),
    ],
)
def test_links(link: str, found: dict[str, Any]) -> None:
    """A link becomes arguments; its address is never used."""
    assert next_arguments(tool("page"), {"page": 1}, URL, {"link": link}, None) == found


@pytest.mark.parametrize(
    "body, found",
    [
        ({"next_cursor": "c"}, {"cursor": "c"}),
        ({"response_metadata": {"next_cursor": "c"}}, {"cursor": "c"}),
        ({"nextPageToken": "t"}, {"page_token": "t"}),
        ({"metadata": {"continue": "k"}}, {"continue": "k"}),
        ({"paging": {"cursors": {"after": "x"}}}, {"cursor": "x"}),
        ({"pageInfo": {"endCursor": "e", "hasNextPage": True}}, {"cursor": "e"}),
        ({"pageInfo": {"endCursor": "e", "hasNextPage": False}}, {}),
        ({"next": "https://api.example/v1/pets?offset=20"}, {"offset": 20}),
        ({"_links": {"next": {"href": "/v1/pets?offset=20"}}}, {"offset": 20}),
        ({"links": {"next": None}, "next_cursor": ""}, {}),
        ([1], {}),
        ("text", {}),
    ],
)
def test_cursors(body: Any, found: dict[str, Any]) -> None:
    given = tool("cursor", "page_token", "continue", "offset")
    assert next_arguments(given, {}, URL, {}, body) == found


def test_pages_are_joined() -> None:
    assert joined([1], [2]) == [1, 2]
    assert joined({"items": [1], "next": "a"}, {"items": [2], "next": "b"}) == {
        "items": [1, 2],
        "next": "b",
    }
    assert joined({"a": [1], "b": [1]}, {"a": [2], "b": [2]}) is None
    assert joined({"a": 1}, {"a": 2}) is None
    assert joined([1], {"a": [2]}) is None
