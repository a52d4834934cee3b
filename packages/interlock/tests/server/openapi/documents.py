"""Large OpenAPI documents with the traits of those of well-known APIs, made by a script.

    python -m tests.server.openapi.documents forge > forge.json

Each is the same on every run. `sample` makes a value for a schema of one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from random import Random
from typing import Any

WORDS = (
    "account", "branch", "bucket", "card", "channel", "cluster", "comment", "commit", "contact",
    "device", "disk", "event", "export", "folder", "gist", "group", "hook", "image", "invoice",
    "issue", "job", "key", "label", "lease", "member", "message", "mirror", "network", "node",
    "order", "package", "payout", "plan", "pod", "policy", "project", "quota", "refund", "region",
    "release", "report", "role", "route", "secret", "service", "session", "snapshot", "tag",
    "team", "ticket", "token", "user", "volume", "webhook", "zone",
)  # fmt: skip
LONG = " It is described at length, as such documents do, with a sentence that says nothing new."

Schema = dict[str, Any]


def forge() -> dict[str, Any]:
    """1,000 operations on repositories, 3.0: shared parameters, pages, long names and texts."""
    random = Random(1)
    schemas: dict[str, Schema] = {}
    paths: dict[str, Any] = {}
    kinds = [f"{a}_{b}" for a in WORDS for b in WORDS if a != b]
    for name in random.sample(kinds, 200):
        schemas[name] = _object(random, list(schemas))
        reference = {"$ref": f"#/components/schemas/{name}"}
        many = f"/repos/{{owner}}/{{repo}}/{name}s"
        paths[many] = {
            "parameters": [_shared("owner"), _shared("repo")],
            "get": {
                **_about(f"{name}/list-for-repo", f"List {name}s", name),
                "parameters": [_shared("per_page"), _shared("page"), _query("sort", random)],
                "responses": _answers({"type": "array", "items": reference}),
            },
            "post": {
                **_about(f"{name}/create", f"Create a {name}", name),
                "requestBody": _json_body(reference),
                "responses": _answers(reference, "201"),
            },
        }
        paths[f"{many}/{{{name}_id}}"] = {
            "parameters": [_shared("owner"), _shared("repo"), _path(f"{name}_id", "integer")],
            "get": {
                **_about(f"{name}/get", f"Get a {name}", name),
                "responses": _answers(reference),
            },
            "patch": {
                **_about(
                    f"{name}/update-the-whole-of-{'a-very-' * 8}{name}", f"Update {name}", name
                ),
                "requestBody": _json_body(reference),
                "responses": _answers(reference),
            },
            "delete": {
                **_about(f"{name}/delete", f"Delete a {name}", name),
                "responses": {"204": {"description": "Deleted."}},
            },
        }
    parameters = {
        "owner": _path("owner", "string"),
        "repo": _path("repo", "string"),
        "per_page": {"name": "per_page", "in": "query", "schema": {"type": "integer"}},
        "page": {"name": "page", "in": "query", "schema": {"type": "integer", "minimum": 1}},
    }
    return _document("3.0.3", "Forge", paths, schemas, parameters)


def orchestra() -> dict[str, Any]:
    """Clusters, 3.0: deep and recursive components that most operations reach."""
    random = Random(2)
    schemas: dict[str, Schema] = {
        "Tree": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}},
            },
        },
        "Even": {
            "type": "object",
            "properties": {"odd": {"$ref": "#/components/schemas/Odd"}, "n": {"type": "integer"}},
        },
        "Odd": {
            "type": "object",
            "properties": {"even": {"$ref": "#/components/schemas/Even"}, "n": {"type": "integer"}},
        },
        "Props": {
            "type": "object",
            "properties": {
                "type": {"type": "string"},
                "properties": {
                    "type": "object",
                    "additionalProperties": {"$ref": "#/components/schemas/Props"},
                },
                "items": {"$ref": "#/components/schemas/Props"},
            },
        },
        "Alias": {"$ref": "#/components/schemas/Tree"},
    }
    paths = {}
    for name in WORDS:
        kind = name.title()
        schemas[f"{kind}Spec"] = _object(random, list(schemas))
        schemas[kind] = {
            "type": "object",
            "required": ["spec"],
            "properties": {
                "spec": {"$ref": f"#/components/schemas/{kind}Spec"},
                "tree": {"$ref": "#/components/schemas/Alias"},
                "parity": {"allOf": [{"$ref": "#/components/schemas/Even"}]},
                "status": {"type": "string", "readOnly": True},
            },
        }
        reference = {"$ref": f"#/components/schemas/{kind}"}
        paths[f"/apis/{name}s"] = {
            "get": {
                "operationId": f"list{kind}",
                "parameters": [
                    {"name": "limit", "in": "query", "schema": {"type": "integer"}},
                    {"name": "continue", "in": "query", "schema": {"type": "string"}},
                ],
                "responses": _answers(
                    {
                        "type": "object",
                        "properties": {
                            "items": {"type": "array", "items": reference},
                            "metadata": {
                                "type": "object",
                                "properties": {"continue": {"type": "string"}},
                            },
                        },
                    }
                ),
            },
            "post": {
                "operationId": f"create{kind}",
                "requestBody": _json_body(reference),
                "responses": _answers(reference, "201"),
            },
        }
        paths[f"/apis/{name}s/{{name}}"] = {
            "parameters": [_path("name", "string")],
            "put": {  # `name` is a parameter, and a member of the body of some
                "operationId": f"replace{kind}",
                "requestBody": _json_body({"$ref": "#/components/schemas/Tree"}),
                "responses": _answers(reference),
            },
            "delete": {
                "operationId": f"delete{kind}",
                "responses": _answers({"$ref": "#/components/schemas/Props"}),
            },
        }
    return _document("3.0.0", "Orchestra", paths, schemas)


def ledger() -> dict[str, Any]:
    """Payments, 3.0: nullable members of every form, URL-encoded bodies, `deepObject`."""
    random = Random(3)
    schemas: dict[str, Schema] = {
        "money": {"type": "object", "properties": {"amount": {"type": "integer"}}},
    }
    paths = {}
    for name in WORDS:
        schemas[name] = {
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": {"type": "string"},
                "note": {"type": "string", "nullable": True},
                "state": {"type": "string", "enum": ["open", "paid"], "nullable": True},
                "total": {"allOf": [{"$ref": "#/components/schemas/money"}], "nullable": True},
                "parent": {
                    "anyOf": [{"type": "string"}, {"$ref": f"#/components/schemas/{name}"}],
                    "nullable": True,
                },
                "rate": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            },
        }
        reference = {"$ref": f"#/components/schemas/{name}"}
        form = {
            "type": "object",
            "properties": {
                "amount": {"type": "integer"},
                "currency": {"type": "string", "enum": ["chf", "eur"]},
                "expand": {"type": "array", "items": {"type": "string"}},
                "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
                "email": {"type": "string"},
            },
            "required": ["amount", "currency"],
        }
        encoding = {
            "expand": {"style": "deepObject", "explode": True},
            "metadata": {"style": "deepObject", "explode": True},
        }
        media = {"schema": form, "encoding": encoding}
        paths[f"/v1/{name}s"] = {
            "get": {
                "operationId": f"Get{name.title()}s",
                "parameters": [
                    {
                        "name": "created",
                        "in": "query",
                        "style": "deepObject",
                        "explode": True,
                        "schema": {
                            "type": "object",
                            "properties": {
                                "gte": {"type": "integer"},
                                "lt": {"type": "integer"},
                            },
                        },
                    },
                    _query("starting_after", random),
                ],
                "responses": _answers({"type": "array", "items": reference}),
            },
            "post": {
                "operationId": f"Post{name.title()}s",
                "requestBody": {
                    "required": True,
                    "content": {"application/x-www-form-urlencoded": media},
                },
                "responses": _answers(reference),
            },
        }
    return _document("3.0.1", "Ledger", paths, schemas)


def zoo() -> dict[str, Any]:
    """Events, 3.1: discriminators with and without a mapping, inheritance, null as a type."""
    schemas: dict[str, Schema] = {
        "Cat": _kind("cat", {"lives": {"type": "integer"}}),
        "Dog": _kind("dog", {"tricks": {"type": "array", "items": {"type": "string"}}}),
        "Animal": {
            "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
            "discriminator": {
                "propertyName": "kind",
                "mapping": {"cat": "#/components/schemas/Cat", "dog": "Dog"},
            },
        },
        "Event": {
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"type": "string"}, "at": {"type": ["string", "null"]}},
            "discriminator": {"propertyName": "type"},
        },
        "Opened": {
            "allOf": [
                {"$ref": "#/components/schemas/Event"},
                {"type": "object", "properties": {"by": {"type": "string"}}},
            ]
        },
        "Closed": {
            "allOf": [
                {"$ref": "#/components/schemas/Event"},
                {"type": "object", "properties": {"reason": {"type": ["string", "null"]}}},
            ]
        },
    }
    paths = {}
    for name in WORDS:
        body = {
            "type": "object",
            "required": ["animal"],
            "properties": {
                "animal": {"$ref": "#/components/schemas/Animal", "description": f"Of a {name}."},
                "event": {"$ref": "#/components/schemas/Event"},
                "note": {"type": ["string", "null"]},
            },
        }
        animal = {"$ref": "#/components/schemas/Animal"}
        paths[f"/{name}/animals"] = {
            "post": {"requestBody": _json_body(body), "responses": _answers(animal)},
            "get": {"responses": _answers({"type": "array", "items": animal})},
        }
    return _document("3.1.0", "Zoo", paths, schemas)


def post_office() -> dict[str, Any]:
    """Every parameter style, and bodies that are not JSON, 3.1."""
    values = {
        "number": {"type": "integer"},
        "words": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "point": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
            "required": ["x", "y"],
        },
    }
    rows = [
        ("path", style, explode, kind)
        for style in ("simple", "label", "matrix")
        for explode in (False, True)
        for kind in values
    ]
    rows += [("query", "form", explode, kind) for explode in (False, True) for kind in values]
    rows += [("query", style, False, "words") for style in ("spaceDelimited", "pipeDelimited")]
    rows += [("query", "deepObject", True, "point")]
    rows += [("header", "simple", explode, kind) for explode in (False, True) for kind in values]
    rows += [("cookie", "form", False, kind) for kind in values]
    paths: dict[str, Any] = {}
    for place, style, explode, kind in rows:
        variable = "/{v}" if place == "path" else ""
        parameter = {
            "name": "v",
            "in": place,
            "required": True,
            "style": style,
            "explode": explode,
            "schema": values[kind],
        }
        paths[f"/{place}/{style}/{explode}/{kind}{variable}".lower()] = {
            "get": {"parameters": [parameter], "responses": _answers({"type": "object"})}
        }
    file = {
        "type": "object",
        "required": ["file", "title"],
        "properties": {
            "file": {"type": "string", "format": "binary"},
            "title": {"type": "string"},
            "point": values["point"],
            "words": values["words"],
        },
    }
    bodies: dict[str, Any] = {
        "multipart/form-data": {"schema": file},
        "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        "text/plain": {"schema": {"type": "string"}},
        "application/json": {"schema": {"type": "array", "items": values["point"]}},
    }
    for place, (kind, media) in enumerate(bodies.items()):
        paths[f"/bodies/{place}"] = {
            "post": {
                "requestBody": {"required": True, "content": {kind: media}},
                "responses": _answers({"type": "object"}),
            }
        }
    return _document("3.1.1", "Post office", paths, {})


DOCUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "forge": forge,
    "orchestra": orchestra,
    "ledger": ledger,
    "zoo": zoo,
    "post_office": post_office,
}


# -- parts of documents ----------------------------------------------------------------------------


def _document(
    version: str,
    title: str,
    paths: dict[str, Any],
    schemas: dict[str, Schema],
    parameters: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "openapi": version,
        "info": {"title": title, "version": "2026-07-01"},
        "servers": [{"url": "https://not-here.invalid"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            **({"parameters": parameters} if parameters else {}),
        },
    }


def _object(random: Random, others: list[str]) -> Schema:
    """An object of a dozen members, some of which are other components."""
    plain: list[Schema] = [
        {"type": "string", "example": "hello"},
        {"type": "integer", "format": "int64"},
        {"type": "boolean", "default": False},
        {"type": "string", "format": "date-time"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "string", "enum": ["on", "off"]},
    ]
    properties: dict[str, Schema] = {}
    for word in random.sample(WORDS, 12):
        part = dict(random.choice(plain))
        if others and random.random() < 0.15:
            part = {"$ref": f"#/components/schemas/{random.choice(others)}"}
        elif random.random() < 0.5:
            part["description"] = f"The {word} of it."
        properties[word] = part
    return {"type": "object", "title": "Thing", "properties": properties, "required": ["id"]} | {
        "properties": {"id": {"type": "integer"}, **properties}
    }


def _kind(name: str, properties: dict[str, Schema]) -> Schema:
    return {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"type": "string"}, **properties},
    }


def _about(identifier: str, summary: str, tag: str) -> dict[str, Any]:
    return {
        "operationId": identifier,
        "summary": summary,
        "description": f"{summary}.{LONG}",
        "tags": [tag],
    }


def _shared(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/parameters/{name}"}


def _path(name: str, kind: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": f"The {name}.",
        "schema": {"type": kind},
    }


def _query(name: str, random: Random) -> dict[str, Any]:
    choices = sorted(random.sample(WORDS, 3))
    return {"name": name, "in": "query", "schema": {"type": "string", "enum": choices}}


def _json_body(schema: Schema) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _answers(schema: Schema, status: str = "200") -> dict[str, Any]:
    return {
        status: {
            "description": "It went well.",
            "content": {"application/json": {"schema": schema}},
        },
        "404": {"description": "Not found."},
    }


# -- values ----------------------------------------------------------------------------------------


def sample(document: dict[str, Any], schema: Any, random: Random, depth: int = 0) -> Any:
    """A value that fits a schema of one of these documents, with characters that need escaping."""
    if "$ref" in schema:
        node: Any = document
        for piece in schema["$ref"].removeprefix("#/").split("/"):
            node = node[piece]
        return sample(document, node, random, depth)
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            part = random.choice(schema[choice])
            value = sample(document, part, random, depth)
            if "discriminator" in schema:
                value[schema["discriminator"]["propertyName"]] = _selected(schema, part)
            return value
    if "allOf" in schema:
        merged: dict[str, Any] = {}
        for part in schema["allOf"]:
            merged |= sample(document, part, random, depth)
        return merged
    if "enum" in schema:
        return random.choice(schema["enum"])
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return _sample_object(document, schema, random, depth)
    if kind == "array":
        if depth > 3 and "minItems" not in schema:
            return []
        return [sample(document, schema["items"], random, depth + 1) for _ in range(2)]
    if kind == "string":
        if schema.get("format") == "date-time":
            return "2026-07-28T12:00:00Z"
        return random.choice(["a b", "ünï/?&=#", "1,2;3", "plain", "50%", "x+y"])
    return {"integer": random.randint(1, 99), "number": 1.5, "boolean": True}[kind]


def _sample_object(
    document: dict[str, Any], schema: Schema, random: Random, depth: int
) -> dict[str, Any]:
    required = schema.get("required", ())
    found = {
        name: sample(document, part, random, depth + 1)
        for name, part in schema.get("properties", {}).items()
        if name in required or (depth < 3 and not part.get("readOnly"))
    }
    others = schema.get("additionalProperties")
    if isinstance(others, dict) and depth < 2:
        found["a[b]"] = sample(document, others, random, depth + 1)
    discriminator = schema.get("discriminator")
    if discriminator is not None:
        own = [name for name, part in document["components"]["schemas"].items() if part is schema]
        found[discriminator["propertyName"]] = own[0]
    return found


def _selected(schema: Schema, part: Schema) -> str:
    mapping: dict[str, str] = schema["discriminator"].get("mapping", {})
    name = part["$ref"].rpartition("/")[2]
    values = [value for value, target in mapping.items() if target.rpartition("/")[2] == name]
    return values[0] if values else name


if __name__ == "__main__":
    json.dump(DOCUMENTS[sys.argv[1]](), sys.stdout, indent=1)
