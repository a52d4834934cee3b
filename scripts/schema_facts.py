"""Reads the official JSON schemas of the protocol and writes the facts they state: methods, types,
fields, values, errors.

    python scripts/schema_facts.py SCHEMA_FOLDER -o packages/interlock/tests/history/facts.json

The folder holds one schema per revision, named by its date. None of their text is kept. Only types
that are sent count: the walk starts at the messages that a client or server may send, and omits
definitions that exist only for the schema itself. The omitted definitions are listed under
"unreached", so that none is lost silently. See `docs/ARCHITECTURE.md`, "Five revisions".

Notation of the facts: an optional field has a `?` after its name; `[T]` is a list of T, `{T}` an
object whose values are all T, `A|B` either, `'x'` exactly this value, `object` and `any` any object
and any value. An object without a name is named by its path, like `CompleteResult.completion`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
Facts = dict[str, Any]

SCHEMA_NAME = re.compile(r"\d{4}-\d{2}-\d{2}")

RENAMED = {
    # 2025-06-18 renamed it, because it refers to a template.
    "ResourceReference": "ResourceTemplateReference",
    # 2025-11-25 made EnumSchema a union, and gave the old object this name.
    "EnumSchema": "LegacyTitledEnumSchema",
    # A bare Result is sent under this name only.
    "Result": "EmptyResult",
}
"""Old name: the newest revision's name for the same object.

Unions are never renamed: they are written out where they stand.
"""

RENAMED_INLINE = {
    # 2025-06-18 had only forms; since 2025-11-25 they are one of two kinds.
    "ElicitRequestParams": "ElicitRequestFormParams",
    # 2024-11-05 wrote the annotations out wherever they appear; since 2025-03-26 they have a name.
    "EmbeddedResource.annotations": "Annotations",
    "ImageContent.annotations": "Annotations",
    "Resource.annotations": "Annotations",
    "ResourceTemplate.annotations": "Annotations",
    "TextContent.annotations": "Annotations",
}
"""Path of an object without a name: the name that a later revision gave it."""

SHARED_PARAMS = {"RequestParams", "PaginatedRequestParams", "NotificationParams"}
"""Params types that several methods share since 2025-11-25.

Before, each method wrote its own; here each method has its own name.
"""

META_OF_PARAMS = ("RequestMetaObject", "NotificationMetaObject")
"""Before 2026-07-28 the `_meta` of params has no name; these are its names from then on."""

FREE_JSON = {"JSONValue": "any", "JSONObject": "object", "JSONArray": "[any]"}
"""Self-referential definitions that mean any JSON value."""

SIDES = {
    "client requests": "ClientRequest",
    "client notifications": "ClientNotification",
    "server requests": "ServerRequest",
    "server notifications": "ServerNotification",
    "input requests": "InputRequest",
}
"""The sender of each kind of message, and the union that defines it.

Input requests are the server's too, but they are sent inside results.
"""

RESULT_UNIONS = ("ClientResult", "ServerResult", "InputResponse")


class Reader:
    """Reads one schema; `facts()` walks it once."""

    def __init__(self, schema: Schema) -> None:
        self.definitions: dict[str, Schema] = schema.get("$defs") or schema["definitions"]
        self.types: dict[str, dict[str, str]] = {}
        self.seen: set[str] = set()

    def facts(self) -> Facts:
        """The facts of this revision."""
        sides = {
            side: self.methods(union) for side, union in SIDES.items() if union in self.definitions
        }
        errors = dict(filter(None, map(self.error, sorted(self.definitions))))
        self.check_results()
        return {
            **sides,
            "errors": errors,
            "types": self.types,
            "unreached": sorted(set(self.definitions) - self.seen),
        }

    # -- messages

    def methods(self, union: str) -> Facts:
        """The methods of one side: for each the types of its params and results."""
        self.seen.add(union)
        found = {}
        for member in members(self.definitions[union]):
            # A union of one type is written as that type, without its name; its method identifies
            # it.
            name = reference(member) or self.envelope_of(member)
            self.seen.add(name)
            properties = self.definitions[name]["properties"]
            optional = "" if "params" in self.definitions[name]["required"] else "?"
            row = {"params" + optional: joined(self.params(name))}
            if name.endswith("Request"):
                row["result"] = joined(self.results(name))
            found[properties["method"]["const"]] = row
        return found

    def envelope_of(self, message: Schema) -> str:
        method = message["properties"]["method"]
        return next(
            name
            for name, known in self.definitions.items()
            if known.get("properties", {}).get("method") == method
        )

    def params(self, envelope: str) -> set[str]:
        """The types that the params of a request or notification may have."""
        schema = self.definitions[envelope]["properties"]["params"]
        name = f"{envelope}Params"
        shared = reference(schema)
        if shared in SHARED_PARAMS:
            self.seen.add(shared)
            return {self.register(name, self.definitions[shared])}
        if shared:
            return self.shape(schema, name)
        return {self.register(RENAMED_INLINE.get(name, name), self.with_meta(envelope, schema))}

    def with_meta(self, envelope: str, params: Schema) -> Schema:
        """Add the `_meta` of the general params to params that a schema defines inline: they refine
        the general ones and omit it."""
        general = "Request" if envelope.endswith("Request") else "Notification"
        named = self.definitions.get(f"{general}Params")
        parent = named or self.definitions[general]["properties"].get("params", {})
        return {
            **params,
            "properties": {**parent.get("properties", {}), **params.get("properties", {})},
        }

    def results(self, envelope: str) -> set[str]:
        """The types that may answer a request; schemas before 2026-07-28 state them only by their
        names."""
        stem = envelope.removesuffix("Request")
        response = f"{stem}ResultResponse"
        if response in self.definitions:
            self.seen.add(response)
            return self.shape(self.definitions[response]["properties"]["result"], response)
        result = f"{stem}Result" if f"{stem}Result" in self.definitions else "EmptyResult"
        found = self.shape({"$ref": result}, envelope)
        # In 2025-11-25 a request that asks for a task is answered with the task.
        if any("task?" in self.types[name] for name in self.params(envelope)):
            found |= self.shape({"$ref": "CreateTaskResult"}, envelope)
        return found

    def check_results(self) -> None:
        """Check that every result of the schema answers some request: otherwise the walk is
        incomplete."""
        for union in filter(self.definitions.__contains__, RESULT_UNIONS):
            self.seen.add(union)
            missed = (
                {reference(member) for member in members(self.definitions[union])}
                - self.seen
                - {"Result"}
            )
            if missed:
                raise SystemExit(
                    f"no request is answered by {', '.join(map(str, sorted(missed, key=str)))}"
                )

    def error(self, name: str) -> tuple[str, Facts] | None:
        """An error with its own code: the code, and the type of its data if the schema states
        it."""
        properties = self.definitions[name].get("properties", {})
        if "error" in properties:
            properties = self.flat(properties["error"])["properties"]
        code = properties.get("code", {}).get("const")
        if code is None:
            return None
        self.seen.add(name)
        row = {"code": code}
        if properties.get("data"):
            row["data"] = joined(self.shape(properties["data"], f"{name}.data"))
        return name, row

    # -- types

    def register(self, name: str, schema: Schema) -> str:
        """Record an object and, through its fields, all objects that it refers to."""
        if name in self.types:
            return name
        fields = self.types[name] = {}  # before its fields, because an object may refer to itself
        flat = self.flat(schema)
        required = set(flat.get("required", ()))
        for field, inner in sorted(flat.get("properties", {}).items()):
            if field == "params" and "method" in flat["properties"]:
                shape = self.params(name)
            elif field == "_meta" and name.endswith("Params") and not reference(inner):
                shape = {self.register(META_OF_PARAMS[name.endswith("NotificationParams")], inner)}
            else:
                shape = self.shape(inner, f"{name}.{field}")
            fields[field + ("" if field in required else "?")] = joined(shape)
        return name

    def flat(self, schema: Schema) -> Schema:
        """The object with all inherited parts (`allOf`, `$ref`) written out."""
        properties: Schema = {}
        required: list[str] = []
        for part in schema.get("allOf", ()):
            name = reference(part)
            if name:
                self.seen.add(name)
            inner = self.flat(self.definitions[name] if name else part)
            properties |= inner["properties"]
            required += inner["required"]
        return {
            "properties": properties | schema.get("properties", {}),
            "required": [*required, *schema.get("required", ())],
        }

    def shape(self, schema: Schema, path: str) -> set[str]:
        """The type of a value, in the notation at the top of this file."""
        name = reference(schema)
        if name:
            return self.named(name)
        if "anyOf" in schema:
            return set().union(*(self.shape(member, path) for member in schema["anyOf"]))
        if "const" in schema:
            return {literal(schema["const"])}
        if "enum" in schema:
            return {literal(value) for value in schema["enum"]}
        kind = schema.get("type", "any")
        if kind == "array":
            return {f"[{joined(self.shape(schema['items'], path + '[]'))}]"}
        if kind == "object":
            return {self.object(schema, path)}
        return set(kind) if isinstance(kind, list) else {kind}

    def object(self, schema: Schema, path: str) -> str:
        if schema.get("properties"):
            return self.register(RENAMED_INLINE.get(path, path), schema)
        values = schema.get("additionalProperties")
        if isinstance(values, dict) and values:
            return "{" + joined(self.shape(values, path + "{}")) + "}"
        return "object"

    def named(self, name: str) -> set[str]:
        """The shape of a definition: an object keeps its name, anything else is written out."""
        self.seen.add(name)
        if name in FREE_JSON:
            return {FREE_JSON[name]}
        schema = self.definitions[name]
        if name == "Result" or "allOf" in schema or schema.get("properties"):
            return {self.register(RENAMED.get(name, name), schema)}
        return self.shape(schema, name)


def members(union: Schema) -> list[Schema]:
    union_of: list[Schema] = union.get("anyOf", [union])
    return union_of


def reference(schema: Schema) -> str:
    """The name of the referenced definition, or None."""
    name: str = schema.get("$ref", "")
    return name.rpartition("/")[2]


def literal(value: object) -> str:
    return f"'{value}'"


def joined(alternatives: Iterable[str]) -> str:
    return "|".join(sorted(alternatives))


def read(folder: Path) -> dict[str, Facts]:
    """The facts of every schema in a folder, by revision, oldest first.

    Files whose name is not a date are ignored.
    """
    schemas = sorted(path for path in folder.glob("*.json") if SCHEMA_NAME.fullmatch(path.stem))
    return {
        path.stem: Reader(json.loads(path.read_text(encoding="utf-8"))).facts() for path in schemas
    }


def written(facts: dict[str, Facts]) -> str:
    """The facts as sorted JSON, one method, error or type per line, so that a change is a short
    diff."""

    def block(value: Facts, depth: int, indent: str = "") -> str:
        inner = indent + " "
        lines = []
        for key, one in sorted(value.items()):
            if depth and isinstance(one, dict) and one:
                text = block(one, depth - 1, inner)
            else:
                text = json.dumps(one)
            lines.append(f"{inner}{json.dumps(key)}: {text}")
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"

    return block(facts, 2) + "\n"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Write the facts of the official schemas.")
    parser.add_argument("folder", type=Path, help="holds the schemas, named like 2026-07-28.json")
    parser.add_argument(
        "-o", "--output", type=Path, help="where to write; standard output if not given"
    )
    options = parser.parse_args(arguments)
    facts = read(options.folder)
    if not facts:
        raise SystemExit(f"no schema named by a date in {options.folder}")
    if options.output:
        options.output.write_text(written(facts), encoding="utf-8")
    else:
        sys.stdout.write(written(facts))


if __name__ == "__main__":
    main(sys.argv[1:])
