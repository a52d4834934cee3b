"""Python types as JSON Schema 2020-12, without redundant titles and definitions."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_origin

import msgspec
import msgspec.inspect as mi
from msgspec import NODEFAULT

from ..types import JSONObject
from .adapters import Choice, Exact, Foreign, enc_hook, foreign_of, is_model, scalar_of
from .annotations import TypeAdapter, field_hints, words_of
from .docstrings import parse

_SIMPLE: dict[Any, JSONObject] = {
    mi.AnyType: {},
    mi.RawType: {},
    mi.NoneType: {"type": "null"},
    mi.BoolType: {"type": "boolean"},
    mi.IntType: {"type": "integer"},
    mi.FloatType: {"type": "number"},
    mi.StrType: {"type": "string"},
    mi.BytesType: {"type": "string", "contentEncoding": "base64"},
    mi.ByteArrayType: {"type": "string", "contentEncoding": "base64"},
    mi.MemoryViewType: {"type": "string", "contentEncoding": "base64"},
    mi.DateType: {"type": "string", "format": "date"},
    mi.UUIDType: {"type": "string", "format": "uuid"},
    mi.DateTimeType: {"type": "string"},
    mi.TimeType: {"type": "string"},
    mi.TimeDeltaType: {"type": "string"},
}
_OWN = (
    mi.AnyType,
    mi.NoneType,
    mi.BoolType,
    mi.IntType,
    mi.FloatType,
    mi.StrType,
    mi.ListType,
    mi.DictType,
    mi.UnionType,
    mi.LiteralType,
)
_NEVER_NULL = (mi.BoolType, mi.IntType, mi.FloatType, mi.StrType)
_ASKED_FOR = {mi.DateTimeType: "date-time", mi.TimeType: "time", mi.TimeDeltaType: "duration"}
_LEAVES: dict[Any, JSONObject] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
}

_NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_STRINGS = {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"}
_ARRAYS = {"min_length": "minItems", "max_length": "maxItems"}
_OBJECTS = {"min_length": "minProperties", "max_length": "maxProperties"}
_SCALAR_NAMES = {str: "string", int: "integer", float: "number"}

# The keywords that contain subschemas. A walk through other keywords would mistake the author's
# data for schemas.
_NAMED = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})
_LISTED = frozenset({"anyOf", "allOf", "oneOf", "prefixItems"})
_SINGLE = frozenset(
    {
        "items",
        "additionalProperties",
        "propertyNames",
        "contains",
        "not",
        "if",
        "then",
        "else",
    }
)

# Annotations, which are allowed next to a reference.
_ABOUT = frozenset({"title", "description", "default", "examples"})

_REF = "#/$defs/"


class SchemaBuilder:
    """Builds one schema: `draw` makes the parts, and `finish` puts them together.

    `out` makes a schema of output. It names a format only if every value has it, because a client
    may check it (a datetime without a zone is not a "date-time").
    """

    def __init__(self, *, out: bool = False) -> None:
        self._out = out
        self._defs: dict[str, JSONObject] = {}
        self._names: dict[Any, str] = {}
        self._written = False
        self._drawn: dict[str, JSONObject] = {}  # pydantic's definitions, unchanged

    @property
    def is_bare(self) -> bool:
        """Whether all values have native JSON types: no classes, and no types that are
        converted.
        """
        return not self._defs and not self._written

    def draw(self, adapter: TypeAdapter | Foreign) -> JSONObject:
        """The schema of a type. Raises TypeError if the type has no JSON form."""
        if isinstance(adapter, Foreign):
            return self._foreign(adapter)
        if isinstance(adapter.type, type) and adapter.type in _LEAVES:
            return dict(_LEAVES[adapter.type])
        return self._draw(mi.type_info(adapter.type))

    def is_object(self, drawn: JSONObject) -> bool:
        """Whether all values of a schema are objects."""
        if "$ref" in drawn:
            drawn = self._defs[drawn["$ref"].removeprefix(_REF)]
        return drawn.get("type") == "object"

    def finish(self, root: JSONObject) -> JSONObject:
        """The root schema, which is never a reference, with the definitions of types that are used
        twice or contain themselves.
        """
        if not self._defs:
            return root
        if "$ref" in root:
            name = root.pop("$ref").removeprefix(_REF)
            root = {**self._defs[name], **root}
        uses = Counter(_references(root))
        reached: set[str] = set()
        while new := uses.keys() - reached:
            reached |= new
            for name in new:
                uses.update(_references(self._defs[name]))
        once = {
            name for name, times in uses.items() if times == 1 and not self._contains_itself(name)
        }

        def inline(schema: JSONObject) -> JSONObject:
            name = str(schema.get("$ref", "")).removeprefix(_REF)
            if name in once and not (self._defs[name].keys() & schema.keys() - _ABOUT):
                schema = {
                    **self._defs[name],
                    **{key: value for key, value in schema.items() if key != "$ref"},
                }
            return _rebuilt(schema, inline)

        root = inline(root)
        needed: dict[str, JSONObject] = {}
        waiting = _references(root)
        while waiting:
            name = waiting.pop(0)
            if name not in needed:
                needed[name] = inline(self._defs[name])
                waiting += _references(needed[name])
        return {**root, "$defs": dict(sorted(needed.items()))} if needed else root

    def _contains_itself(self, name: str) -> bool:
        seen: set[str] = set()
        waiting = _references(self._defs[name])
        while waiting:
            inner = waiting.pop()
            if inner not in seen:
                seen.add(inner)
                waiting += _references(self._defs[inner])
        return name in seen

    def _draw(self, info: mi.Type) -> JSONObject:
        words: JSONObject = {}
        while isinstance(info, mi.Metadata):
            words = {**words, **(info.extra_json_schema or {})}
            info = info.type
        return {**self._bare(info), **words}

    def _bare(self, info: mi.Type) -> JSONObject:
        self._written |= not isinstance(info, _OWN)
        match info:
            case mi.UnionType():
                return self._any_of(info.types)
            case mi.LiteralType():
                return _enum(info.values)
            case mi.CollectionType():
                return self._array(info)
            case mi.TupleType():
                size = len(info.item_types)
                parts = (
                    {"prefixItems": [self._draw(part) for part in info.item_types], "items": False}
                    if size
                    else {}
                )
                return {"type": "array", **parts, "minItems": size, "maxItems": size}
            case mi.DictType():
                return self._object(info)
            case (
                mi.EnumType()
                | mi.StructType()
                | mi.TypedDictType()
                | mi.DataclassType()
                | mi.NamedTupleType()
            ):
                return self._named(info)
            case mi.DecimalType():
                return (
                    {"type": "string"}
                    if self._out
                    else {"anyOf": [{"type": "number"}, {"type": "string"}]}
                )
            case mi.CustomType():
                return self._custom(info.cls)
        drawn = dict(_SIMPLE[type(info)])
        if isinstance(info, mi.IntType | mi.FloatType):
            _limit(drawn, info, _NUMBERS)
        else:
            _limit(drawn, info, {} if "contentEncoding" in drawn else _STRINGS)
        if type(info) in _ASKED_FOR and (
            getattr(info, "tz", None) if self._out else getattr(info, "tz", True) is not False
        ):
            drawn["format"] = _ASKED_FOR[type(info)]
        return drawn

    def _any_of(self, members: tuple[mi.Type, ...]) -> JSONObject:
        drawn = [self._draw(member) for member in members]
        different = [part for n, part in enumerate(drawn) if part not in drawn[:n]]
        return {"anyOf": different} if len(different) > 1 else different[0]

    def _array(self, info: Any) -> JSONObject:
        # OpenAI and Gemini reject an array without `items`, so anything at all is written as {}.
        drawn: JSONObject = {"type": "array", "items": self._draw(info.item_type)}
        _limit(drawn, info, _ARRAYS)
        if isinstance(info, mi.SetType | mi.FrozenSetType):
            drawn["uniqueItems"] = True
        return drawn

    def _object(self, info: mi.DictType) -> JSONObject:
        drawn: JSONObject = {"type": "object"}
        keys = self._draw(info.key_type)
        if keys.get("type") == "integer":
            keys = {"pattern": "^-?[0-9]+$"}
        elif keys.pop("type", None) not in ("string", None):
            keys = {}
        if keys:
            drawn["propertyNames"] = keys
        if not isinstance(info.value_type, mi.AnyType):
            drawn["additionalProperties"] = self._draw(info.value_type)
        _limit(drawn, info, _OBJECTS)
        return drawn

    def _named(self, info: Any) -> JSONObject:
        name = self._names.get(info.cls)
        if name is None:
            kind = get_origin(info.cls) or info.cls
            name = self._names[info.cls] = self._free(
                kind.__name__ if kind is info.cls else str(info.cls).rpartition(".")[2]
            )
            # the name is reserved while the schema is made, because the type may contain itself
            self._defs[name] = {}
            self._defs[name] = (
                self._enumerated(info.cls)
                if isinstance(info, mi.EnumType)
                else self._fields(info, kind)
            )
        return {"$ref": _REF + name}

    def _free(self, name: str) -> str:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_") or "Type"
        number = 1
        while (free := name if number == 1 else f"{name}_{number}") in self._defs:
            number += 1
        return free

    def _enumerated(self, kind: Any) -> JSONObject:
        return {**_described(_doc(kind)), **_enum([member.value for member in kind])}

    def _fields(self, info: Any, kind: Any) -> JSONObject:
        """The schema of a class with fields: an object, or an array if the class is encoded as
        one.
        """
        hints = field_hints(kind)
        order = {name: place for place, name in enumerate(hints)}
        doc = parse(_doc(kind))
        properties: dict[str, JSONObject] = {}
        required: list[str] = []
        if (tag := getattr(info, "tag_field", None)) is not None:
            properties[tag] = {"const": info.tag}
            required.append(tag)
        fields = (
            info.fields
            if not isinstance(info, mi.TypedDictType)
            else sorted(info.fields, key=lambda field: order.get(field.name, 0))
        )
        for field in fields:
            drawn = self._draw(field.type)
            words = {**_described(doc.params.get(field.name)), **words_of(hints.get(field.name))}
            properties[field.encode_name] = {**words, **drawn, **_default(field)}
            if field.required:
                required.append(field.encode_name)
        about = _described(doc.summary_and_text)
        if isinstance(info, mi.NamedTupleType) or getattr(info, "array_like", False):
            bounded = (
                {"maxItems": len(properties)}
                if isinstance(info, mi.NamedTupleType) or info.forbid_unknown_fields
                else {}
            )
            # The titles are the names, because an array has no other place for them.
            items = [{"title": name, **drawn} for name, drawn in properties.items()]
            return {
                **about,
                "type": "array",
                "prefixItems": items,
                "minItems": len(required),
                **bounded,
            }
        closed = (
            {"additionalProperties": False} if getattr(info, "forbid_unknown_fields", False) else {}
        )
        return {
            **about,
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
            **closed,
        }

    def _custom(self, kind: Any) -> JSONObject:
        if isinstance(kind, type):
            if issubclass(kind, Choice):
                return self._any_of(mi.multi_type_info(kind.members))
            if issubclass(kind, Exact):
                return _enum([plain for plain, _ in kind.values])
            if is_model(kind):
                return self._foreign(foreign_of(kind))
            if (scalar := scalar_of(kind)) is not None:
                return {"type": _SCALAR_NAMES[scalar]}
        name = getattr(kind, "__qualname__", None) or str(kind)
        raise TypeError(f"{name} is not a type that JSON can be read as or written from")

    def _foreign(self, adapter: Foreign) -> JSONObject:
        """The schema that pydantic makes, with its definitions added to ours and without its
        titles.
        """
        drawn = adapter.schema(out=self._out)
        new: dict[str, JSONObject] = {
            name: _untitled(body, name) for name, body in drawn.pop("$defs", {}).items()
        }
        drawn = _untitled(drawn, adapter.name)
        if adapter.name is not None and drawn.get("type") == "object":
            # So that a class that is used again has only one definition.
            new[adapter.name] = drawn
            drawn = {"$ref": _REF + adapter.name}
        names = {name: self._named_alike(name, body) for name, body in new.items()}

        def renamed(schema: JSONObject) -> JSONObject:
            if (reference := schema.get("$ref")) is not None:
                schema = {**schema, "$ref": _REF + names[reference.removeprefix(_REF)]}
            return _rebuilt(schema, renamed)

        for name, body in new.items():
            self._defs[names[name]] = renamed(body)
        return {**renamed(drawn), **adapter.words}

    def _named_alike(self, name: str, body: JSONObject) -> str:
        """The name of an identical existing definition, or a free name."""
        number = 1
        while (taken := name if number == 1 else f"{name}_{number}") in self._defs:
            if self._drawn.get(taken) == body:
                return taken
            number += 1
        self._drawn[taken] = body
        self._defs[taken] = {}  # the name is reserved until the references are renamed
        return taken


def has_bare_fields(kind: type[Any]) -> bool:
    """Whether a dataclass or Struct is an object whose fields all have native JSON types."""
    info = mi.type_info(kind)
    if not isinstance(info, mi.DataclassType | mi.StructType) or getattr(info, "array_like", False):
        return False
    if not {field.name for field in info.fields} <= field_hints(kind).keys():
        return False
    builder = SchemaBuilder(out=True)
    for field in info.fields:
        builder._draw(field.type)
    return builder.is_bare


def has_no_nulls(kind: type[Any]) -> bool:
    """Whether no field of a class that has bare fields, nor a part of one, can be null."""
    info: Any = mi.type_info(kind)
    return all(isinstance(field.type, _NEVER_NULL) for field in info.fields)


def light_class(kind: type[Any]) -> type[msgspec.Struct]:
    """A Struct with the JSON of a class that has bare fields, to check JSON at the least cost:
    without the code of the class, and not visited by garbage collection.
    """
    info: Any = mi.type_info(kind)
    hints = field_hints(kind)
    fields: list[Any] = []
    for field in info.fields:
        hint = hints[field.name]
        fields.append((field.name, hint) if field.required else (field.name, hint, None))
    layout: dict[str, Any] = {}
    if isinstance(info, mi.StructType):
        layout = {
            "tag_field": info.tag_field,
            "tag": info.tag,
            "forbid_unknown_fields": info.forbid_unknown_fields,
        }
    rename = {field.name: field.encode_name for field in info.fields}
    return msgspec.defstruct(kind.__name__, fields, kw_only=True, rename=rename, gc=False, **layout)


def jsonable(value: Any) -> tuple[bool, Any]:
    """Whether a value can be part of a schema, and its JSON form."""
    try:
        data = msgspec.json.encode(value, enc_hook=enc_hook)
    except (TypeError, ValueError, NotImplementedError, RecursionError):
        return False, None
    # msgspec encodes NaN and infinity as null.
    plain = msgspec.json.decode(data)
    return (plain is not None or value is None), plain


def _default(field: Any) -> JSONObject:
    if field.default is not NODEFAULT:
        fits, plain = jsonable(field.default)
        return {"default": plain} if fits else {}
    if getattr(field, "default_factory", None) in (list, dict, set, frozenset):
        return {"default": {} if field.default_factory is dict else []}
    return {}


def _limit(drawn: JSONObject, info: Any, names: Mapping[str, str]) -> None:
    for name, keyword in names.items():
        if (value := getattr(info, name, None)) is not None:
            drawn[keyword] = value


def _enum(values: Any) -> JSONObject:
    kinds = {type(value) for value in values}
    if kinds == {str}:
        kind = {"type": "string"}
    elif kinds == {int}:
        kind = {"type": "integer"}
    else:
        kind = {}
    return {**kind, "enum": list(values)}


def _described(words: str | None) -> JSONObject:
    return {"description": words} if words else {}


def _doc(kind: Any) -> str | None:
    """The docstring that the author wrote for a class, not an inherited or generated one."""
    doc = kind.__dict__.get("__doc__")
    if not isinstance(doc, str) or doc.startswith(f"{kind.__name__}("):
        return None
    return inspect.cleandoc(doc)


def _rebuilt(schema: JSONObject, change: Callable[[JSONObject], JSONObject]) -> JSONObject:
    """The schema with `change` applied to each direct subschema."""
    after = dict(schema)
    for key, inner in schema.items():
        if key in _NAMED and isinstance(inner, dict):
            after[key] = {
                name: change(part) if isinstance(part, dict) else part
                for name, part in inner.items()
            }
        elif key in _LISTED and isinstance(inner, list):
            after[key] = [change(part) if isinstance(part, dict) else part for part in inner]
        elif key in _SINGLE and isinstance(inner, dict):
            after[key] = change(inner)
    return after


def _subschemas(schema: JSONObject) -> Iterator[Any]:
    """The direct subschemas, which may be true and false."""
    for key, inner in schema.items():
        if key in _SINGLE:
            yield inner
        elif key in _NAMED and isinstance(inner, dict):
            yield from inner.values()
        elif key in _LISTED and isinstance(inner, list):
            yield from inner


def _references(schema: JSONObject) -> list[str]:
    """The names of the definitions that a schema refers to, one for each reference."""
    found: list[str] = []
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict):
            continue
        if str(part.get("$ref", "")).startswith(_REF):
            found.append(part["$ref"].removeprefix(_REF))
        waiting += _subschemas(part)
    return found


def _untitled(schema: JSONObject, name: str | None) -> JSONObject:
    """Pydantic's schema without generated titles, and without OpenAPI's discriminator, which is not
    a keyword of JSON Schema.
    """

    def strip(part: JSONObject) -> JSONObject:
        part = {key: value for key, value in part.items() if key != "discriminator"}
        for field, inner in part.get("properties", {}).items():
            if (
                isinstance(inner, dict)
                and inner.get("title") == field.title().replace("_", " ").strip()
            ):
                part["properties"] = {
                    **part["properties"],
                    field: {key: value for key, value in inner.items() if key != "title"},
                }
        return _rebuilt(part, strip)

    schema = strip(schema)
    return {key: value for key, value in schema.items() if key != "title" or value != name}
