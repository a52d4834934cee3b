"""Documents, operations, names, arguments and requests."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from interlock import OpenApi, OpenApiError, Request, ToolError
from interlock.server.sources.openapi.credentials import ApiCredentials
from interlock.server.sources.openapi.requests import request_of


def document(paths: dict[str, Any], version: str = "3.1.0", **more: Any) -> dict[str, Any]:
    return {"openapi": version, "info": {"title": "T", "version": "1"}, "paths": paths, **more}


def api_of(paths: dict[str, Any], **options: Any) -> OpenApi:
    more = {key: options.pop(key) for key in ("components", "security") if key in options}
    return OpenApi(document(paths, **more), base="https://api.example/v1/", **options)


def request(api: OpenApi, name: str, arguments: dict[str, Any]) -> Request:
    """The request of a call."""
    tool = api._tool(name)
    assert tool is not None
    return request_of(
        api._document,
        tool.operation,
        tool.input,
        tool.decode(json.dumps(arguments).encode()),
        base=api._base,
        headers=api._headers,
        credentials=api._credentials.of(tool.operation),
    )


def operation(**members: Any) -> dict[str, Any]:
    return {"responses": {"200": {"description": ""}}, **members}


def parameter(place: str, name: str, **members: Any) -> dict[str, Any]:
    required = {"required": True} if place == "path" else {}
    return {"in": place, "name": name, "schema": {"type": "string"}, **required, **members}


# -- documents -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, words",
    [
        ({"swagger": "2.0"}, "convert it to OpenAPI 3"),
        ({"openapi": "4.0.0"}, "3.0 or 3.1"),
        (b"{", "not valid JSON"),
        (b"[1]", "no object at its root"),
        ("there-is-none.json", "cannot be read"),
        (b"openapi: [", "not valid YAML"),
    ],
)
def test_documents_that_cannot_be_used(given: Any, words: str) -> None:
    with pytest.raises(OpenApiError, match=words):
        OpenApi(given, base="https://api.example")


def test_any_mapping() -> None:
    """Such as one that nobody can change."""
    shared = MappingProxyType({"get": MappingProxyType(operation(operationId="look"))})
    given = document({"/x": shared})
    api = OpenApi(MappingProxyType(given), base="https://api.example")
    assert api._tool("look") is not None


def test_yaml(tmp_path: Path) -> None:
    """Statuses are numbers in YAML, and versions may look like dates."""
    path = tmp_path / "api.yaml"
    path.write_text(
        "openapi: 3.0.3\n"
        "info: {title: T, version: 2026-07-28}\n"
        "paths:\n"
        "  /a:\n"
        "    get:\n"
        "      operationId: a\n"
        "      responses:\n"
        "        200:\n"
        "          description: ok\n"
        "          content: {application/json: {schema: {type: object, properties: {x: {type:"
        " integer}}}}}\n",
        encoding="utf-8",
    )
    api = OpenApi(path, base="https://api.example")
    (tool,) = api.offered.tools
    assert tool.output_schema == {"type": "object", "properties": {"x": {"type": "integer"}}}
    assert api._document.version == "2026-07-28"


def test_aliases_of_yaml_that_explode() -> None:
    lines = ["openapi: 3.0.0", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for n in range(1, 30):
        lines.append(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]")
    with pytest.raises(OpenApiError, match="too large"):
        OpenApi("\n".join(lines).encode(), base="https://api.example")


def test_aliases_of_yaml_that_lead_back() -> None:
    with pytest.raises(OpenApiError, match="an alias that leads back to itself"):
        OpenApi(b"openapi: 3.0.0\nx: &x [1, {y: *x}]\n", base="https://api.example")


@pytest.mark.parametrize(
    "base",
    [
        "api.example",
        "ftp://api.example",
        "https://user@api.example",
        "https://a/?x=1",
        "https://a#b",
    ],
)
def test_bases_that_are_none(base: str) -> None:
    with pytest.raises(OpenApiError, match="base is an address"):
        OpenApi(document({}), base=base)


def test_the_address_never_comes_from_the_document() -> None:
    servers = {"servers": [{"url": "https://evil.example"}]}
    with pytest.raises(OpenApiError, match="base is missing"):
        OpenApi(document({}, **servers))
    paths = {"/a": {"servers": servers["servers"], "get": operation(operationId="a", **servers)}}
    assert request(api_of(paths), "a", {}).url == "https://api.example/v1/a"
    odd = {"//evil.example/a": {"get": operation(operationId="a")}}
    assert request(api_of(odd), "a", {}).url == "https://api.example/v1//evil.example/a"


def test_an_operation_that_cannot_be_used_leaves_the_others() -> None:
    """A reference over the network is never followed."""
    paths = {
        "/a": {"get": operation(operationId="a")},
        "/b": {"get": operation(operationId="b", parameters=[{"$ref": "https://x.example/p"}])},
        "/c": {"$ref": "./c.json"},
        "/d": {
            "get": operation(
                operationId="d", parameters=[parameter("query", "q", schema={"$ref": "x.json"})]
            )
        },
    }
    api = api_of(paths)
    assert [tool.name for tool in api.offered.tools] == ["a"]
    assert {one.place for one in api.unusable} == {"GET /b", "/c", "GET /d"}


# -- names and arguments ---------------------------------------------------------------------------


def test_names() -> None:
    """From the operationId, or from method and path; short, legal and unique."""
    long = "a" * 80
    paths = {
        "/a": {"get": operation(operationId="repos/list things")},
        "/b/{id}": {"get": operation()},
        "/c": {"get": operation(operationId=long)},
        "/d": {"get": operation(operationId="same"), "put": operation(operationId="same")},
        "/e": {"get": operation(operationId="x y"), "put": operation(operationId="x_y")},
    }
    names = api_of(paths).operations
    assert names[:2] == ["repos_list_things", "get_b_id"]
    assert names[2].startswith("a" * 55 + "_")
    assert len(names[2]) == 64
    assert names[3] != names[4]
    assert all(name.startswith("same_") for name in names[3:5])
    assert names[6] == "x_y"
    assert names[5].startswith("x_y_")


def test_arguments_that_collide_are_kept_apart() -> None:
    body = {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object", "properties": {"id": {"type": "integer"}, "x": {}}}
            }
        },
    }
    paths = {
        "/a/{id}": {
            "put": operation(
                operationId="a",
                parameters=[
                    parameter("path", "id"),
                    parameter("query", "id"),
                    parameter("header", "X-Id"),
                    parameter("query", "filter[x]"),
                ],
                requestBody=body,
            )
        }
    }
    api = api_of(paths)
    (tool,) = api.offered.tools
    assert list(tool.input_schema["properties"]) == [
        "path_id", "query_id", "filter_x", "X-Id", "body_id", "x",
    ]  # fmt: skip
    made = request(
        api,
        "a",
        {"path_id": "p", "query_id": "q", "X-Id": "h", "filter_x": "f", "body_id": 1, "x": None},
    )
    assert made.method == "PUT"
    assert made.url == "https://api.example/v1/a/p?id=q&filter%5Bx%5D=f"
    assert dict(made.headers)["X-Id"] == "h"
    assert json.loads(made.body) == {"id": 1, "x": None}


def test_a_path_item_shares_parameters_and_an_operation_replaces_them() -> None:
    paths = {
        "/a/{id}": {
            "parameters": [parameter("path", "id"), parameter("query", "q", required=True)],
            "get": operation(operationId="a", parameters=[parameter("query", "q")]),
        },
        "/b/{undeclared}": {"get": operation(operationId="b")},
    }
    api = api_of(paths)
    assert [tool.input_schema["required"] for tool in api.offered.tools] == [["id"], ["undeclared"]]


def test_a_body_that_is_no_plain_object_is_one_argument() -> None:
    def body(schema: dict[str, Any], *, required: bool = True) -> dict[str, Any]:
        return {"required": required, "content": {"application/json": {"schema": schema}}}

    closed = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    schemas = {
        "array": (body({"type": "array", "items": {}}), ["body"]),
        "open": (body({**closed, "additionalProperties": {"type": "string"}}), ["body"]),
        "choice": (body({"oneOf": [closed, {"type": "string"}]}), ["body"]),
        "optional": (body(closed, required=False), ["body"]),
        "plain": (body(closed), ["a"]),
        "combined": (body({**closed, "allOf": [{}]}), ["body"]),
    }
    paths = {
        f"/{name}": {"post": operation(operationId=name, requestBody=given)}
        for name, (given, _) in schemas.items()
    }
    for tool in api_of(paths).offered.tools:
        assert list(tool.input_schema["properties"]) == schemas[tool.name][1], tool.name


def test_annotations_and_texts() -> None:
    paths = {
        "/a": {
            "get": operation(operationId="g", summary="S.", description="S. And more.", tags=["t"]),
            "put": operation(operationId="p", deprecated=True, summary="P"),
            "post": operation(operationId="c", description="x" * 3000),
            "delete": operation(operationId="d"),
            "head": operation(operationId="h"),
        }
    }
    tools = {tool.name: tool for tool in api_of(paths).offered.tools}
    assert set(tools) == {"g", "p", "c", "d"}
    assert tools["g"].annotations.read_only_hint is True
    assert tools["p"].annotations.idempotent_hint is True
    assert tools["d"].annotations.destructive_hint is True
    assert tools["c"].annotations is None
    assert tools["g"].description == "S. And more."
    assert tools["p"].description == "Deprecated. P"
    assert len(tools["c"].description) == 1024
    assert tools["d"].description == "DELETE /a"
    assert tools["g"].meta == {"interlock/tags": ["t"]}


# -- requests --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["..", ".", "%2e%2e", "%2E.", "", "a/../.."])
def test_a_path_value_never_leaves_the_path(value: str) -> None:
    """A segment of dots would be another path with the same credentials; a slash is escaped."""
    paths = {"/users/{id}": {"delete": operation(operationId="d")}}
    with pytest.raises(ToolError, match="path"):
        request(api_of(paths), "d", {"id": value})


@pytest.mark.parametrize("value", ["a\r\nHost: evil", "a\x00", "ü"])
def test_a_header_value_never_ends_the_header(value: str) -> None:
    paths = {"/a": {"get": operation(operationId="a", parameters=[parameter("header", "X-A")])}}
    with pytest.raises(ToolError, match="printable ASCII"):
        request(api_of(paths), "a", {"X-A": value})


@pytest.mark.parametrize(
    "name", ["Authorization", "Host", "cookie", "Content-Length", "X-Forwarded-For", "Proxy-X"]
)
def test_callers_never_set_these_headers(name: str) -> None:
    paths = {"/a": {"get": operation(operationId="a", parameters=[parameter("header", name)])}}
    (tool,) = api_of(paths).offered.tools
    assert "properties" not in tool.input_schema


def test_the_configuration_hides_its_headers_from_callers() -> None:
    paths = {"/a": {"get": operation(operationId="a", parameters=[parameter("header", "X-Key")])}}
    api = api_of(paths, headers={"x-key": "ours"})
    (tool,) = api.offered.tools
    assert "properties" not in tool.input_schema
    assert ("x-key", "ours") in request(api, "a", {}).headers


SCHEMES = {
    "securitySchemes": {
        "key": {"type": "apiKey", "in": "query", "name": "api_key"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
        "basic": {"type": "http", "scheme": "basic"},
        "oauth": {"type": "oauth2", "flows": {}},
    }
}


def test_secrets_go_where_the_document_wants_them() -> None:
    paths = {
        "/a": {"get": operation(operationId="a", parameters=[parameter("query", "api_key")])},
        "/b": {"get": operation(operationId="b", security=[{"cookie": [], "basic": []}])},
        "/c": {"get": operation(operationId="c", security=[])},
        "/d": {"get": operation(operationId="d", security=[{"other": []}, {"oauth": ["x"]}])},
    }
    api = api_of(
        paths,
        components=SCHEMES,
        security=[{"key": []}],
        auth={"key": "k&y", "cookie": "c", "basic": "ada:pw", "oauth": "t"},
    )
    assert "properties" not in api.offered.tools[0].input_schema
    assert request(api, "a", {}).url.endswith("/a?api_key=k%26y")
    headers = dict(request(api, "b", {}).headers)
    assert (headers["Cookie"], headers["Authorization"]) == ("sid=c", "Basic YWRhOnB3")
    assert set(dict(request(api, "c", {}).headers)) == {"Accept"}
    assert dict(request(api, "d", {}).headers)["Authorization"] == "Bearer t"
    assert "k&y" not in repr(api._credentials.of(api._operations["a"]))


def test_a_bearer_token_is_for_all_but_open_operations() -> None:
    paths = {
        "/a": {"get": operation(operationId="a")},
        "/b": {"get": operation(operationId="b", security=[])},
    }
    api = api_of(paths, auth="tok")
    assert dict(request(api, "a", {}).headers)["Authorization"] == "Bearer tok"
    assert "Authorization" not in dict(request(api, "b", {}).headers)


def test_an_unknown_scheme_is_an_error() -> None:
    with pytest.raises(OpenApiError, match=r"no security scheme 'kye'; it has: key, cookie"):
        api_of({}, components=SCHEMES, auth={"kye": "x"})
    assert ApiCredentials(api_of({})._document, None).names() == frozenset()


def test_repeating_is_safe_only_where_the_method_says_so() -> None:
    paths = {
        "/a": {"put": operation(operationId="put"), "post": operation(operationId="post")},
    }
    assert request(api_of(paths), "put", {}).again
    assert not request(api_of(paths), "post", {}).again
