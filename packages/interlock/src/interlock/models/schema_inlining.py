"""Inlines the references of a schema, and drops keywords that a provider rejects."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.types import JSONObject

from ..untrusted.invisible import plain_line as plain
from .json_pointers import resolve
from .lenient_json import list_of, object_of
from .schema_merging import both

# The keywords that Gemini documents for `parametersJsonSchema`; others become words in the
# description.
_TAKEN = frozenset(
    {
        "type",
        "format",
        "title",
        "description",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "anyOf",
        "oneOf",
        "properties",
        "additionalProperties",
        "required",
        "propertyOrdering",
    }
)
_SILENT = frozenset(
    {
        "$schema",
        "$id",
        "$defs",
        "definitions",
        "$anchor",
        "$dynamicAnchor",
        "$comment",
        "$vocabulary",
        "deprecated",
    }
)
_SILENTLY = _SILENT | {"readOnly", "writeOnly", "contentEncoding", "contentMediaType"}
_MOST_PARTS = 4_000  # sub-schemas written out
_TURNS = 2  # how often a reference is followed inside itself
_DEEPEST = 40
_MOST_WORDS = 400


class SchemaInliner:
    """Inlines the references of one schema.

    Args:
        whole: The document that references point into.
        lost: Collects the keywords that were dropped.
        every_keyword: Keeps keywords that Gemini does not support.
    """

    def __init__(self, whole: JSONObject, lost: list[str], *, every_keyword: bool) -> None:
        self._whole = whole
        self._lost = lost
        self._every = every_keyword
        self._parts = 0
        self._inside: list[str] = []

    def root(self, schema: JSONObject) -> JSONObject:
        """The schema with its references inlined."""
        return object_of(self._part(schema, "", 0))

    def _part(self, schema: Any, where: str, depth: int) -> Any:
        """One subschema; {} if it cannot be expressed."""
        self._parts += 1
        if self._parts > _MOST_PARTS or depth > _DEEPEST:
            self._lost.append(f"{where}: too much")
            return {}
        if schema is False and not self._every:
            self._lost.append(f"{where}: false")
            return {"description": "(Must not be given.)"}
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref", schema.get("$dynamicRef"))
        if isinstance(reference, str):
            return self._referred(schema, reference, where, depth)
        composed = (
            [part for part in list_of(schema, "allOf") if isinstance(part, dict)]
            if not self._every
            else []
        )
        for part in composed:
            schema = self._merged(schema, part)
        return self._written(schema, where, depth)

    def _referred(self, schema: JSONObject, reference: str, where: str, depth: int) -> Any:
        beside = {
            name: value for name, value in schema.items() if name not in ("$ref", "$dynamicRef")
        }
        target = resolve(self._whole, reference)
        if not isinstance(target, dict) or self._inside.count(reference) >= _TURNS:
            self._lost.append(f"{where}: $ref {plain(reference, 80)}")
            kind = target.get("type") if isinstance(target, dict) else None
            return self._part(
                {"type": kind, **beside} if isinstance(kind, str | list) else beside,
                where,
                depth + 1,
            )
        self._inside.append(reference)
        try:
            return self._part(self._merged(beside, target), where, depth + 1)
        finally:
            self._inside.pop()

    def _merged(self, one: JSONObject, other: JSONObject) -> JSONObject:
        """A schema that both accept. References in the second one are resolved when they are
        reached.
        """
        other = dict(other)
        for _ in range(_TURNS * 4):
            reference = other.get("$ref")
            target = resolve(self._whole, reference) if isinstance(reference, str) else None
            if not isinstance(target, dict):
                break
            del other["$ref"]
            other = {**target, **other}
        other.pop("$ref", None)
        return both(one, other)

    def _written(self, schema: JSONObject, where: str, depth: int) -> JSONObject:
        written: JSONObject = {}
        remarks: list[str] = []
        for keyword, value in schema.items():
            if keyword in _SILENTLY or (keyword == "allOf" and not self._every):
                continue
            if self._every:
                written[keyword] = self._kept(keyword, value, where, depth)
            elif keyword in _TAKEN:
                self._write_keyword(written, keyword, value, where, depth, remarks)
            else:
                self._replace_unsupported(written, schema, keyword, value, where, remarks)
        if not self._every:
            self._loosen(written, schema)
        if remarks:
            written["description"] = (
                f"{written.get('description', '')} ({'; '.join(remarks)})".strip()
            )
        return written

    def _kept(self, keyword: str, value: Any, where: str, depth: int) -> Any:
        """The same keyword, with its subschemas inlined."""
        if keyword in ("properties", "patternProperties", "dependentSchemas") and isinstance(
            value, dict
        ):
            return {
                name: self._or_bool(part, f"{where}{name}", depth) for name, part in value.items()
            }
        if keyword in ("allOf", "anyOf", "oneOf", "prefixItems") and isinstance(value, list):
            return [self._or_bool(part, f"{where}{keyword}", depth) for part in value]
        if keyword in (
            "items",
            "additionalProperties",
            "contains",
            "propertyNames",
            "not",
            "if",
            "then",
            "else",
            "unevaluatedItems",
        ):
            return self._or_bool(value, f"{where}{keyword}", depth)
        return value

    def _or_bool(self, part: Any, where: str, depth: int) -> Any:
        return part if isinstance(part, bool) else self._part(part, f"{where}.", depth + 1)

    def _write_keyword(
        self,
        written: JSONObject,
        keyword: str,
        value: Any,
        where: str,
        depth: int,
        remarks: list[str],
    ) -> None:
        """Write a keyword that Gemini supports, in a supported form."""
        if keyword == "properties" and isinstance(value, dict):
            written[keyword] = {
                name: self._part(part, f"{where}{name}.", depth + 1) for name, part in value.items()
            }
        elif keyword in ("anyOf", "oneOf"):
            parts = [part for part in list_of(value) if part is not False]
            if parts and "anyOf" not in written:  # Gemini treats both alike
                written["anyOf"] = [
                    self._part(part, f"{where}{keyword}.", depth + 1) for part in parts
                ]
        elif keyword == "prefixItems":
            if isinstance(value, list):
                written[keyword] = [
                    self._part(part, f"{where}{keyword}.", depth + 1) for part in value
                ]
        elif keyword == "items":
            if isinstance(value, dict | bool):
                written[keyword] = self._part(
                    {} if value is True else value, f"{where}items.", depth + 1
                )
        elif keyword == "additionalProperties":
            if isinstance(value, dict | bool):
                written[keyword] = self._or_bool(value, f"{where}{keyword}", depth)
        elif keyword == "enum":
            if isinstance(value, list) and all(
                isinstance(one, str | int | float) and not isinstance(one, bool) for one in value
            ):
                written[keyword] = value
            else:
                self._drop_keyword(keyword, value, where, remarks)
        else:
            written[keyword] = value

    def _replace_unsupported(
        self,
        written: JSONObject,
        schema: JSONObject,
        keyword: str,
        value: Any,
        where: str,
        remarks: list[str],
    ) -> None:
        """Replace an unsupported keyword by one that allows slightly more, or by words."""
        if (
            keyword == "const"
            and isinstance(value, str | int | float)
            and not isinstance(value, bool)
            and "enum" not in schema
        ):
            written["enum"] = [value]
            return
        if (
            keyword in ("exclusiveMinimum", "exclusiveMaximum")
            and isinstance(value, int | float)
            and not isinstance(value, bool)
        ):
            plainly = keyword.removeprefix("exclusive").lower()
            if plainly not in schema:
                written[plainly] = value
        self._drop_keyword(keyword, value, where, remarks)

    def _drop_keyword(self, keyword: str, value: Any, where: str, remarks: list[str]) -> None:
        self._lost.append(f"{where}{keyword}")
        text = msgspec.json.encode(value).decode()
        remarks.append(
            f"{keyword}: {text if len(text) <= _MOST_WORDS else text[: _MOST_WORDS - 1] + '…'}"
        )

    def _loosen(self, written: JSONObject, schema: JSONObject) -> None:
        """Remove keywords that would forbid more than the original without the dropped ones."""
        if "patternProperties" in schema and written.get("additionalProperties") not in (
            None,
            True,
        ):
            del written["additionalProperties"]
        if isinstance(schema.get("items"), list):  # the form of tuples before 2020-12
            written.pop("items", None)
