"""The JSON Schema of server.json: what `interlock publish` checks before it sends one.

It states the rules of the registry's schema of 2025-12-11: types, required members, lengths,
patterns. It is written from the text of that schema, and has none of its descriptions. What
Interlock reads of other people's server.json is checked by `parse`, which ignores members that it
does not use.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import jsonschema_rs

_TEXT: Final = {"type": "string"}
_URI: Final = {"type": "string", "format": "uri"}
_URL: Final = {"type": "string", "pattern": r"^https?://[^\s]+$"}


def _objects(members: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(required)}


def _list(name: str) -> dict[str, Any]:
    return {"type": "array", "items": _of(name)}


def _of(name: str) -> dict[str, Any]:
    return {"$ref": f"#/definitions/{name}"}


_INPUT: Final = {
    "description": _TEXT,
    "isRequired": {"type": "boolean"},
    "isSecret": {"type": "boolean"},
    "format": {"enum": ["string", "number", "boolean", "filepath"]},
    "value": _TEXT,
    "default": _TEXT,
    "placeholder": _TEXT,
    "choices": {"type": "array", "items": _TEXT},
}
_FILLED: Final = {
    **_INPUT,
    "variables": {"type": "object", "additionalProperties": _of("Input")},
}
_SCHEMA: Final = {
    **_objects(
        {
            "$schema": _URI,
            "name": {
                "type": "string",
                "minLength": 3,
                "maxLength": 200,
                "pattern": r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$",
            },
            "title": {"type": "string", "minLength": 1, "maxLength": 100},
            "description": {"type": "string", "minLength": 1, "maxLength": 100},
            "version": {"type": "string", "maxLength": 255},
            "websiteUrl": _URI,
            "repository": _of("Repository"),
            "icons": _list("Icon"),
            "packages": _list("Package"),
            "remotes": _list("Remote"),
            "_meta": _objects(
                {"io.modelcontextprotocol.registry/publisher-provided": {"type": "object"}}
            ),
        },
        ("name", "description", "version"),
    ),
    "definitions": {
        "Input": _objects(_INPUT),
        "KeyValue": _objects({**_FILLED, "name": _TEXT}, ("name",)),
        "Argument": {
            "anyOf": [
                {
                    **_objects(
                        {
                            **_FILLED,
                            "type": {"const": "positional"},
                            "valueHint": _TEXT,
                            "isRepeated": {"type": "boolean"},
                        },
                        ("type",),
                    ),
                    "anyOf": [{"required": ["valueHint"]}, {"required": ["value"]}],
                },
                _objects(
                    {
                        **_FILLED,
                        "type": {"const": "named"},
                        "name": _TEXT,
                        "isRepeated": {"type": "boolean"},
                    },
                    ("type", "name"),
                ),
            ]
        },
        "Http": _objects(
            {
                "type": {"enum": ["streamable-http", "sse"]},
                "url": _URL,
                "headers": _list("KeyValue"),
            },
            ("type", "url"),
        ),
        "Remote": {
            "allOf": [
                _of("Http"),
                _objects({"variables": _FILLED["variables"]}),
            ]
        },
        "Repository": _objects(
            {"url": _URI, "source": _TEXT, "id": _TEXT, "subfolder": _TEXT},
            ("url", "source"),
        ),
        "Icon": _objects(
            {
                "src": {**_URI, "maxLength": 255},
                "mimeType": {
                    "enum": [f"image/{kind}" for kind in ("png", "jpeg", "jpg", "svg+xml", "webp")]
                },
                "sizes": {
                    "type": "array",
                    "items": {"type": "string", "pattern": r"^(\d+x\d+|any)$"},
                },
                "theme": {"enum": ["light", "dark"]},
            },
            ("src",),
        ),
        "Package": _objects(
            {
                "registryType": _TEXT,
                "registryBaseUrl": _URI,
                "identifier": _TEXT,
                "version": {"type": "string", "minLength": 1, "not": {"const": "latest"}},
                "fileSha256": {"type": "string", "pattern": "^[a-f0-9]{64}$"},
                "runtimeHint": _TEXT,
                "transport": {
                    "anyOf": [_objects({"type": {"const": "stdio"}}, ("type",)), _of("Http")]
                },
                "runtimeArguments": _list("Argument"),
                "packageArguments": _list("Argument"),
                "environmentVariables": _list("KeyValue"),
            },
            ("registryType", "identifier", "transport"),
        ),
    },
}


def schema_problems(document: Any) -> list[str]:
    """Return what the schema refuses in a server.json, one sentence each.

    Args:
        document: The decoded file.
    """
    return [
        f"{'/'.join(map(str, each.instance_path)) or 'server.json'}: {each.message}."
        for each in _validator().iter_errors(document)
    ]


@cache
def _validator() -> jsonschema_rs.Draft7Validator:
    return jsonschema_rs.Draft7Validator(_SCHEMA, validate_formats=True)
