"""Five large documents: every tool is sound, and calls reach a service that is made from the
document and reads each request by itself.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from random import Random
from typing import Any

import msgspec
import pytest

from interlock import OpenApi
from interlock.schema import compile
from tests.server.openapi.documents import DOCUMENTS, sample
from tests.server.openapi.service import Service

_REFERENCE = re.compile(r'"\$ref":"#/\$defs/([^"]+)"')
_MOST_CALLS = 120


def references(schema: Any) -> set[str]:
    """The definitions that a schema refers to, itself and by its definitions."""
    return set(_REFERENCE.findall(msgspec.json.encode(schema).decode()))


@pytest.fixture(params=DOCUMENTS, scope="module")
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    return DOCUMENTS[request.param]()


def count(document: dict[str, Any]) -> int:
    return sum(len(item.keys() - {"parameters"}) for item in document["paths"].values())


def test_every_operation_is_a_tool(document: dict[str, Any]) -> None:
    """With a legal and unique name, and schemas that have all that they refer to and no more."""
    api = OpenApi(document, base="https://api.example", search=False)
    tools = api.offered.tools
    assert api.unusable == []
    assert len(tools) == count(document)
    assert len({tool.name for tool in tools}) == len(tools)
    for tool in tools:
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", tool.name)
        for schema in filter(None, (tool.input_schema, tool.output_schema)):
            assert references(schema) == set(schema.get("$defs", ()))
    for tool in Random(1).sample(list(tools), min(100, len(tools))):
        compile(tool.input_schema)
        if tool.output_schema is not None:
            assert tool.output_schema["type"] == "object"
            compile(tool.output_schema)


def test_the_order_of_the_document_changes_no_name(document: dict[str, Any]) -> None:
    """A client saves names, and a document may be sorted anew."""
    turned = {**document, "paths": dict(reversed(document["paths"].items()))}
    api = OpenApi(document, base="https://api.example", search=False)
    other = OpenApi(turned, base="https://api.example", search=False)
    assert sorted(api.operations) == sorted(other.operations)


async def test_calls_reach_the_service(document: dict[str, Any]) -> None:
    """It reads each parameter and body as the call gave it; its answer is the result."""
    service = Service(document)
    random = Random(5)
    async with OpenApi(document, app=service, search=False) as api:
        names = api.operations
        if len(names) > _MOST_CALLS:
            names = random.sample(names, _MOST_CALLS)
        for name in names:
            operation = api._operations[name]
            arguments, expected = call_of(api, name, document, random)
            result = await api.call(name, arguments)
            assert not result.is_error, (name, result.text)
            assert service.seen["operation"] == operation.place
            assert service.seen["parameters"] == expected["parameters"], name
            assert service.seen["body"] == expected["body"], name
            if service.answered is not None:
                assert json.loads(result.content[0].text) == service.answered
            tool = api._tool(name)
            assert tool is not None
            if tool.output is not None:
                assert compile(tool.output.schema).is_valid(result.structured_content)


def call_of(
    api: OpenApi, name: str, document: dict[str, Any], random: Random
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of a call, and what the service should read."""
    operation = api._operations[name]
    tool = api._tool(name)
    assert tool is not None
    arguments: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    body: Any = None
    fields: dict[str, Any] = {}
    whole = {}
    if operation.body is not None:
        whole = resolved(document, operation.body.schema)
    for argument in tool.input.arguments:
        parameter = argument.parameter
        if parameter is not None:
            value = sample(document, parameter.schema, random)
            if parameter.place == "header" or parameter.style == "spaceDelimited":
                value = calm(value)
            arguments[argument.name] = value
            parameters[f"{parameter.place} {parameter.name}"] = value
        elif argument.target == "field":
            schema = whole["properties"][argument.field]
            if schema.get("format") == "binary":
                fields[argument.field] = bytes(range(256))
                arguments[argument.name] = b64encode(fields[argument.field]).decode()
            else:
                arguments[argument.name] = sample(document, schema, random)
                fields[argument.field] = arguments[argument.name]
        elif whole.get("format") == "binary":
            body = b"\x00--\r\n\xff"
            arguments[argument.name] = b64encode(body).decode()
        else:
            body = arguments[argument.name] = sample(document, operation.body.schema, random)
    return arguments, {"parameters": parameters, "body": fields or body}


def calm(value: Any) -> Any:
    """A value of letters and digits: a header is not escaped, and a space is a separator."""
    if isinstance(value, str):
        return re.sub(r"[^A-Za-z0-9]", "", value) or "x"
    if isinstance(value, list):
        return [calm(part) for part in value]
    return value


def resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A schema, or the component that it refers to."""
    if "$ref" not in schema:
        return schema
    node: Any = document
    for piece in schema["$ref"].removeprefix("#/").split("/"):
        node = node[piece]
    return resolved(document, node)


def test_recursion_is_sent_once() -> None:
    """A component that refers to itself is one definition, however deep."""
    api = OpenApi(DOCUMENTS["orchestra"](), base="https://api.example", search=False)
    (tool,) = [tool for tool in api.offered.tools if tool.name == "createPod"]
    definitions = tool.input_schema["$defs"]
    assert definitions["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert "Alias" not in definitions
    assert definitions["Even"]["properties"]["odd"] == {"$ref": "#/$defs/Odd"}
    assert tool.input_schema["properties"]["tree"] == {"$ref": "#/$defs/Tree"}
    assert "status" not in tool.input_schema["properties"]  # it is read only


def test_the_list_is_small() -> None:
    """Titles, extensions and examples of objects are not sent; descriptions are."""
    document = DOCUMENTS["forge"]()
    api = OpenApi(document, base="https://api.example", search=False)
    listed = msgspec.json.encode([tool.input_schema for tool in api.offered.tools])
    assert b'"title"' not in listed
    assert b'"The owner."' in listed
