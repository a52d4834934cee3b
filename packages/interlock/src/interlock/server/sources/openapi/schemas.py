"""Schemas of OpenAPI 3.0 and 3.1 as JSON Schema 2020-12.

A component that a schema refers to becomes a member of `$defs`. It is converted once, and a tool is
sent with the components that it reaches, so recursion is no special case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from ....types import JSONObject
from .document import ApiDocument, OpenApiError, member

Direction = Literal["request", "response"]

_DEEPEST = 100  # nested schemas
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_COMPONENT = "#/components/schemas/"
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]+")

# What is copied as it is. Titles are not: most repeat the name of the property.
_COPIED = ("description", "contentEncoding", "contentMediaType")
_COPIED_IN_REQUESTS = frozenset(
    {
        "default",
        "enum",
        "const",
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "minContains",
        "maxContains",
        "dependentRequired",
    }
)
_ONE = ("items", "additionalProperties", "propertyNames")
_ONE_IN_REQUESTS = (
    "not",
    "if",
    "then",
    "else",
    "contains",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_BY_NAME = ("properties", "patternProperties", "dependentSchemas")
_NESTED = frozenset({*_ONE, *_ONE_IN_REQUESTS, *_MANY, *_BY_NAME})
_LONGEST_EXAMPLE = 60  # characters
_CHOICES = frozenset({"oneOf", "anyOf"})
_SIZES = frozenset({"int32", "int64", "float", "double"})  # formats that say nothing to a model
_WRITTEN_LIMITS = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))


class Definition(Struct):
    """A component as a member of `$defs`.

    Attributes:
        schema: The converted schema.
        reached: The names of the definitions that it refers to.
    """

    schema: Any
    reached: frozenset[str]


class SchemaConverter:
    """Converts the schemas of a document for one direction.

    A schema for a request is as strict as the document, without members that are read only. A
    schema for a response is lenient: APIs send more, and less, than they describe. It has types and
    descriptions, and no limits.

    Args:
        document: The document.
        direction: Whether the schemas are of requests or responses.
    """

    def __init__(self, document: ApiDocument, direction: Direction) -> None:
        self._document = document
        self._is_request = direction == "request"
        self._hidden = "readOnly" if self._is_request else "writeOnly"
        self._names: dict[tuple[str, bool], str] = {}
        self._pending: dict[str, tuple[str, bool]] = {}
        self._definitions: dict[str, Definition] = {}
        self._members_of: dict[frozenset[str], JSONObject] = {}
        self._subtypes = _subtypes(document)

    def convert(self, schema: Any, reached: set[str]) -> Any:
        """Return a schema in 2020-12, whose references lead to `#/$defs/`.

        Args:
            schema: A schema of the document.
            reached: Gets the names of the definitions that the schema refers to.

        Raises:
            OpenApiError: A reference cannot be followed, or the schema is nested too deeply.
        """
        return self._convert(schema, reached, 0)

    def definitions(self, reached: Iterable[str]) -> JSONObject:
        """Return the definitions of these names and all that they reach, for `$defs`.

        Raises:
            OpenApiError: As for `convert`.
        """
        asked = frozenset(reached)
        known = self._members_of.get(asked)  # many operations refer to the same components
        if known is not None:
            return known
        found: JSONObject = {}
        names = sorted(asked)
        while names:
            name = names.pop()
            if name in found:
                continue
            definition = self._definition(name)
            found[name] = definition.schema
            names.extend(definition.reached - found.keys())
        known = self._members_of[asked] = dict(sorted(found.items()))
        return known

    def inlined(self, schema: Any, reached: set[str]) -> Any:
        """Return a schema as `convert` does, with the definition itself in place of a reference at
        its root.
        """
        converted = self.convert(schema, reached)
        if isinstance(converted, dict) and set(converted) == {"$ref"}:
            definition = self._definition(converted["$ref"].removeprefix("#/$defs/"))
            reached.clear()
            reached.update(definition.reached)
            return definition.schema
        return converted

    def _definition(self, name: str) -> Definition:
        """Return a definition, which is converted when it is first needed."""
        found = self._definitions.get(name)
        if found is None:
            reference, is_plain = self._pending[name]
            reached: set[str] = set()
            node = self._document.at(reference)
            subtypes = self._subtypes.get(reference, ())
            has_choice = isinstance(node, dict) and not _CHOICES.isdisjoint(node)
            if is_plain:  # a subtype extends it: the choice among subtypes would never end
                shared = {key: part for key, part in node.items() if key not in _CHOICES}
                schema = self._convert(shared, reached, 0)
            elif subtypes and not has_choice:
                schema = self._choice_of_subtypes(reference, node, subtypes, reached)
            else:
                schema = self._convert(node, reached, 0)
            found = self._definitions[name] = Definition(schema, frozenset(reached))
            del self._pending[name]
        return found

    def _name(self, reference: str, *, is_plain: bool = False) -> str:
        """Return the name in `$defs` for a reference of the document.

        A component with a discriminator and subtypes has two definitions: the choice among its
        subtypes and, `is_plain`, the members that these share.
        """
        reference = self._document.target(reference)
        is_plain = is_plain and reference in self._subtypes
        known = self._names.get((reference, is_plain))
        if known is not None:
            return known
        piece = reference.rpartition("/")[2]
        plain = _ILLEGAL.sub("_", piece) + ("_base" if is_plain else "")
        name = plain
        number = 2
        while name in self._pending or name in self._definitions:
            name = f"{plain}_{number}"
            number += 1
        self._names[reference, is_plain] = name
        self._pending[name] = reference, is_plain
        return name

    def _refer(self, reference: str, reached: set[str], *, is_plain: bool = False) -> JSONObject:
        name = self._name(reference, is_plain=is_plain)
        reached.add(name)
        return {"$ref": f"#/$defs/{name}"}

    # -- one schema --------------------------------------------------------------------------------

    def _convert(self, node: Any, reached: set[str], depth: int) -> Any:
        if not isinstance(node, dict):
            return node if isinstance(node, bool) else {}
        if depth > _DEEPEST:
            raise OpenApiError(f"a schema is nested more than {_DEEPEST} levels deep")
        if isinstance(node.get("$ref"), str):
            return self._reference(node, reached, depth)
        made: JSONObject = {}
        self._copy_type(node, made)
        self._copy_texts(node, made)
        if self._is_request:
            self._copy_limits(node, made)
        if not _NESTED.isdisjoint(node):
            self._convert_nested(node, made, reached, depth)
        if self._is_request:
            self._copy_required(node, made)
        else:
            _loosen(made)
        if self._document.is_30 and node.get("nullable") is True:
            return _with_null(made)
        return made

    def _convert_nested(
        self, node: Mapping[str, Any], made: JSONObject, reached: set[str], depth: int
    ) -> None:
        for keyword in (*_ONE, *(_ONE_IN_REQUESTS if self._is_request else ())):
            if keyword in node:
                made[keyword] = self._convert(node[keyword], reached, depth + 1)
        for keyword in _BY_NAME:
            if isinstance(node.get(keyword), dict):
                made[keyword] = self._members(keyword, node[keyword], reached, depth)
        if not made.get("properties", True):
            del made["properties"]
        for keyword in _MANY:
            if isinstance(node.get(keyword), list) and node[keyword]:
                made[keyword] = self._branches(keyword, node, reached, depth)

    def _reference(self, node: Mapping[str, Any], reached: set[str], depth: int) -> Any:
        """Convert a reference. Its siblings count in 3.1, and in 3.0 those that authors commonly
        write.
        """
        made = self._refer(node["$ref"], reached)
        siblings = {name: value for name, value in node.items() if name != "$ref"}
        if not siblings:
            return made
        if not self._document.is_30:
            return {**self._convert(siblings, reached, depth + 1), **made}
        if isinstance(node.get("description"), str):
            made = {"description": node["description"], **made}
        return _with_null(made) if node.get("nullable") is True else made

    def _copy_type(self, node: Mapping[str, Any], made: JSONObject) -> None:
        kind = node.get("type")
        if isinstance(kind, str) and kind in _TYPES:
            made["type"] = kind
        elif isinstance(kind, list) and kind and _TYPES.issuperset(map(str, kind)):
            made["type"] = kind if len(kind) > 1 else kind[0]
        elif kind == "file":
            made["type"] = "string"
        written = node.get("format")
        if written in ("binary", "byte") or kind == "file":
            made["contentEncoding"] = "base64"
        elif isinstance(written, str) and self._is_request and written not in _SIZES:
            made["format"] = written

    def _copy_texts(self, node: Mapping[str, Any], made: JSONObject) -> None:
        for keyword in _COPIED:
            if keyword in node and isinstance(node[keyword], str):
                made[keyword] = node[keyword].strip()
        if not made.get("description", True):
            del made["description"]

    def _copy_limits(self, node: Mapping[str, Any], made: JSONObject) -> None:
        for keyword, value in node.items():
            if keyword in _COPIED_IN_REQUESTS:
                made[keyword] = value
        if node.get("deprecated") is True:
            made["deprecated"] = True
        if "example" in node and _is_short(node["example"]):
            made["examples"] = [node["example"]]
        for limit, exclusive in _WRITTEN_LIMITS:
            is_flag = isinstance(made.get(exclusive), bool)  # as in draft 5, which 3.0 follows
            if is_flag and made.pop(exclusive) and limit in made:
                made[exclusive] = made.pop(limit)

    def _copy_required(self, node: Mapping[str, Any], made: JSONObject) -> None:
        required = node.get("required")
        if not isinstance(required, list):
            return
        hidden = {
            name
            for name, part in member(node, "properties").items()
            if isinstance(part, dict) and part.get(self._hidden) is True
        }
        if names := [name for name in required if isinstance(name, str) and name not in hidden]:
            made["required"] = names

    def _members(
        self, keyword: str, nodes: Mapping[str, Any], reached: set[str], depth: int
    ) -> JSONObject:
        return {
            name: self._convert(part, reached, depth + 1)
            for name, part in nodes.items()
            if not (
                keyword == "properties"
                and isinstance(part, dict)
                and part.get(self._hidden) is True
            )
        }

    # -- discriminators ----------------------------------------------------------------------------

    def _branches(
        self, keyword: str, node: Mapping[str, Any], reached: set[str], depth: int
    ) -> list[Any]:
        """Convert the schemas of `allOf`, `anyOf` or `oneOf`.

        With a discriminator, each branch that is a reference requires the value that selects it.
        """
        found = member(node, "discriminator")
        made = []
        for part in node[keyword]:
            reference = part.get("$ref") if isinstance(part, dict) else None
            if isinstance(reference, str) and keyword == "allOf":
                made.append(self._refer(reference, reached, is_plain=True))
            elif isinstance(reference, str) and found and self._is_request:
                made.append(self._selected(reference, found, reached))
            else:
                made.append(self._convert(part, reached, depth + 1))
        return made

    def _selected(
        self,
        reference: str,
        discriminator: Mapping[str, Any],
        reached: set[str],
        *,
        is_plain: bool = False,
    ) -> JSONObject:
        """Return the reference to a branch that the discriminator selects."""
        made = self._refer(reference, reached, is_plain=is_plain)
        name = discriminator.get("propertyName")
        if not isinstance(name, str):
            return made
        values = _selecting(reference, discriminator)
        value = {"const": values[0]} if len(values) == 1 else {"enum": values}
        return {**made, "properties": {name: value}, "required": [name]}

    def _choice_of_subtypes(
        self,
        reference: str,
        node: Mapping[str, Any],
        subtypes: tuple[str, ...],
        reached: set[str],
    ) -> JSONObject:
        """Return the choice among the subtypes of a component, which extend it by `allOf`."""
        discriminator = member(node, "discriminator")
        mapping = member(discriminator, "mapping")
        own = reference in {_whole(target) for target in mapping.values()} or not mapping
        if not self._is_request:
            choices = [self._refer(subtype, reached) for subtype in subtypes]
            return {"anyOf": [*choices, self._refer(reference, reached, is_plain=True)]}
        choices = [self._selected(subtype, discriminator, reached) for subtype in subtypes]
        if own:
            choices.append(self._selected(reference, discriminator, reached, is_plain=True))
        return {"oneOf": choices}


def _subtypes(document: ApiDocument) -> dict[str, tuple[str, ...]]:
    """Return the components with a discriminator that other components extend by `allOf`, each
    with these.
    """
    components = member(member(document.content, "components"), "schemas")
    found: dict[str, list[str]] = {}
    for name, node in components.items():
        if not isinstance(node, dict) or not isinstance(node.get("allOf"), list):
            continue
        for part in node["allOf"]:
            reference = part.get("$ref") if isinstance(part, dict) else None
            if not isinstance(reference, str) or not reference.startswith(_COMPONENT):
                continue
            parent = components.get(reference.removeprefix(_COMPONENT))
            if isinstance(parent, dict) and member(parent, "discriminator"):
                found.setdefault(reference, []).append(_COMPONENT + _escaped(name))
    return {reference: tuple(names) for reference, names in found.items()}


def _selecting(reference: str, discriminator: Mapping[str, Any]) -> list[str]:
    """Return the values of a discriminator that select a schema: those of its mapping, or else the
    name of the schema.
    """
    mapping = member(discriminator, "mapping")
    values = [value for value, target in mapping.items() if _whole(target) == reference]
    return values or [reference.rpartition("/")[2]]


def _whole(target: Any) -> str:
    """Return the reference that a mapping means, which may be the name of a component."""
    text = str(target)
    return text if "#" in text or "/" in text else _COMPONENT + text


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


# -- forms of a converted schema -------------------------------------------------------------------


def _is_short(example: Any) -> bool:
    """Whether an example is worth its bytes in a list of tools."""
    if isinstance(example, str):
        return 0 < len(example) <= _LONGEST_EXAMPLE
    return isinstance(example, int | float) and not isinstance(example, bool)


def _loosen(made: JSONObject) -> None:
    """Remove what a response often breaks: exclusive choices and closed objects."""
    if "oneOf" in made:
        made["anyOf"] = [*made.get("anyOf", ()), *made.pop("oneOf")]
    if made.get("additionalProperties") in (False, True):
        del made["additionalProperties"]


def _with_null(made: JSONObject) -> JSONObject:
    """Return a schema that also accepts null, as `nullable` of 3.0 means it."""
    combined = any(keyword in made for keyword in ("$ref", "allOf", "anyOf", "oneOf", "const"))
    if not combined:
        made = dict(made)
        if "enum" in made and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
        if isinstance(made.get("type"), str):
            made["type"] = [made["type"], "null"]
        return made
    about: JSONObject = {key: made[key] for key in ("description", "default") if key in made}
    rest = {key: value for key, value in made.items() if key not in about}
    return {**about, "anyOf": [rest, {"type": "null"}]}
