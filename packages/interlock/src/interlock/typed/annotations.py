"""Type annotations translated for msgspec: constraints of other libraries, and unions."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta, Raw

from .adapters import Foreign, choice_of, dec_hook, exact_of, is_model

LIMITS = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length", "tz")
"""The constraints that msgspec supports, by the names that msgspec, pydantic and annotated_types
share.
"""

_WORDS = ("title", "description", "examples")
_PLAIN = frozenset({str, int, float, bool, NoneType, bytes, Any})


class OnlyPydantic(TypeError):
    """The annotation has metadata that only pydantic supports."""


class TypeAdapter:
    """A type that msgspec decodes.

    Attributes:
        type: The type for msgspec.
        decode: Decodes JSON, and raises msgspec's errors.
    """

    def __init__(self, kind: Any) -> None:
        self.type = kind
        self.decode: Callable[[bytes | Raw], Any] = msgspec.json.Decoder(
            kind, dec_hook=dec_hook
        ).decode


def adapter_of(annotation: Any) -> TypeAdapter | Foreign:
    """The adapter of an annotation.

    Raises TypeError with the reason if neither msgspec nor pydantic supports it.
    """
    if annotation in _PLAIN if isinstance(annotation, type) else annotation is Any:
        return TypeAdapter(annotation)
    try:
        found = _survey(annotation, inside=False, seen=set())
    except RecursionError:
        raise TypeError(
            "the type is made of itself by a `type` statement; write a class for it"
        ) from None
    if "metadata" in found or ("model" in found and "msgspec" not in found):
        try:
            return _foreign(annotation)
        except TypeError:
            if "metadata" in found:
                raise
    if "limits" in found:
        raise TypeError(
            "inside a class limits are written as msgspec.Meta(...); those of annotated_types"
            " would not be looked at there"
        )
    try:
        return TypeAdapter(adapt(annotation))
    except OnlyPydantic:
        return _foreign(annotation)
    except NameError as bad:
        raise TypeError(
            f"{bad} (classes that name each other must stand at the top of a module)"
        ) from None
    except TypeError:
        # pydantic supports constraints that msgspec does not: Field(ge=0) on a Decimal
        if "pydantic" in found:
            return _foreign(annotation)
        raise


def _foreign(annotation: Any) -> Foreign:
    return Foreign(annotation, words_of(annotation))


def adapt(annotation: Any) -> Any:
    """The annotation in a form that msgspec supports.

    Raises OnlyPydantic, or TypeError with the reason.
    """
    if get_origin(annotation) is Annotated:
        limits, words = _metadata(annotation.__metadata__)
        inner = _limited(adapt(annotation.__origin__), limits)
        return marked(inner, _meta({}, words)) if words else inner
    if (inner := _named_type(annotation)) is not annotation:
        return adapt(inner)
    origin = get_origin(annotation)
    parts = get_args(annotation)
    if annotation is object:
        return Any
    if isinstance(annotation, TypeVar):
        return adapt(
            annotation.__bound__
            or (one_of(annotation.__constraints__) if annotation.__constraints__ else Any)
        )
    if origin is Literal:
        if any(type(value) not in _PLAIN for value in parts):
            return exact_of(annotation)
        return marked(
            annotation, Meta(extra_json_schema={"enum": list(parts)})
        )  # because msgspec does not keep the order of the values
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        kinds = {type(member.value) for member in annotation}
        return annotation if kinds in ({str}, {int}) else exact_of(annotation)
    if is_union(annotation):
        return _union([adapt(part) for part in parts])
    if Iterable in (annotation, origin):
        annotation = list
        origin = list
    if origin is None or not parts:
        return annotation
    return operator.getitem(origin, tuple(part if part is ... else adapt(part) for part in parts))


def _union(members: list[Any]) -> Any:
    """A union of adapted members, or a Choice if msgspec does not support the union."""
    union = one_of(members)
    try:
        msgspec.json.Decoder(union, dec_hook=dec_hook)
    except TypeError:
        for member in members:
            msgspec.json.Decoder(
                member, dec_hook=dec_hook
            )  # a member that is invalid by itself raises its own error here
        return choice_of(members)
    return union


def _limited(annotation: Any, limits: dict[str, Any]) -> Any:
    """An annotation with constraints. In a union they are set on each member that supports them."""
    if not limits:
        return annotation
    if not is_union(annotation):
        return marked(annotation, _meta(limits, {}))
    members = []
    for member in get_args(annotation):
        limited = marked(member, _meta(limits, {}))
        try:
            msgspec.json.Decoder(limited, dec_hook=dec_hook)
        except TypeError:
            members.append(member)
        else:
            members.append(limited)
    if all(
        limited is member for limited, member in zip(members, get_args(annotation), strict=True)
    ):
        raise TypeError(f"{', '.join(limits)} cannot be set on any member of {annotation}")
    return one_of(members)


def _meta(limits: dict[str, Any], words: dict[str, Any]) -> Meta:
    own = {name: words[name] for name in _WORDS if name in words}
    rest = {name: value for name, value in words.items() if name not in _WORDS}
    return Meta(**limits, **own, extra_json_schema=rest or None)


# The parts of an annotation.


def one_of(members: Sequence[Any]) -> Any:
    """The union of types that are only known at run time."""
    return operator.getitem(cast(Any, Union), tuple(members))


def marked(annotation: Any, *metadata: Any) -> Any:
    """The Annotated of a type that is only known at run time."""
    return operator.getitem(cast(Any, Annotated), (annotation, *metadata))


def is_union(annotation: Any) -> bool:
    """Whether an annotation is a union, written either way."""
    return get_origin(annotation) in (Union, UnionType)


def unwrapped(annotation: Any) -> Any:
    """An annotation without Annotated, NewType and `type X = ...` around it."""
    while get_origin(annotation) is Annotated or _named_type(annotation) is not annotation:
        annotation = (
            annotation.__origin__
            if get_origin(annotation) is Annotated
            else _named_type(annotation)
        )
    return annotation


def _named_type(annotation: Any) -> Any:
    """The type behind a NewType or a `type` statement; any other annotation unchanged."""
    if type(annotation).__name__ == "TypeAliasType":
        return annotation.__value__
    return getattr(annotation, "__supertype__", annotation)


def field_hints(kind: Any) -> Mapping[str, Any]:
    """The annotations of a class's fields, in order; empty if they cannot be resolved."""
    try:
        return _class_hints(get_origin(kind) or kind)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return {}


@lru_cache(maxsize=256)  # tools share classes, and each annotation in quotes is compiled anew
def _class_hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: _unqualified(hint) for name, hint in hints.items()}


def _unqualified(hint: Any) -> Any:
    """The annotation of a TypedDict field without Required, NotRequired and ReadOnly."""
    while getattr(get_origin(hint), "_name", None) in ("Required", "NotRequired", "ReadOnly"):
        hint = get_args(hint)[0]
    return hint


def is_field_info(value: Any) -> bool:
    """Whether this is the result of pydantic's `Field(...)`."""
    return type(value).__name__ == "FieldInfo" and _home(type(value)) == "pydantic"


def words_of(annotation: Any) -> dict[str, Any]:
    """The documentation in the metadata of an annotation: title, description, examples and other
    keywords of a schema.
    """
    words: dict[str, Any] = {}
    for item in getattr(annotation, "__metadata__", ()):
        try:
            words.update(_metadata([item])[1])
        except TypeError:  # a constraint that is not supported
            continue
    return words


def _home(kind: type[Any]) -> str:
    """The top-level module of a class."""
    return kind.__module__.partition(".")[0]


def _metadata(metadata: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The constraints and documentation in an annotation's metadata.

    Raises OnlyPydantic or TypeError for metadata that msgspec does not support.
    """
    limits: dict[str, Any] = {}
    words: dict[str, Any] = {}
    for item in metadata:
        if isinstance(item, str):
            words["description"] = item
        elif isinstance(item, Meta):
            _gather(item, limits, words)
            words.update(item.extra_json_schema or {})
        elif is_field_info(item):
            _gather_field(item, limits, words)
        elif _home(type(item)) == "pydantic":
            raise OnlyPydantic(f"{type(item).__name__} needs pydantic")
        elif type(item).__module__ == "annotated_types":
            _gather_limit(item, limits)
        if isinstance(text := getattr(item, "documentation", None), str):
            words["description"] = text
    return limits, words


def _gather(item: Any, limits: dict[str, Any], words: dict[str, Any]) -> None:
    for into, names in ((limits, LIMITS), (words, _WORDS)):
        into.update(
            {name: value for name in names if (value := getattr(item, name, None)) is not None}
        )


def _gather_limit(item: Any, limits: dict[str, Any]) -> None:
    if hasattr(item, "func"):
        raise TypeError(f"{item!r} cannot be said in a schema; check it in the function")
    if hasattr(item, "tz"):
        if item.tz not in (None, ...):
            raise TypeError(f"{item!r}: only any time zone (...) or none can be asked for")
        limits["tz"] = item.tz is ...
        return
    _gather(item, limits, {})
    if limits.get("min_length") == 0:  # the zero of Len(0, n) has no meaning
        del limits["min_length"]


def _gather_field(item: Any, limits: dict[str, Any], words: dict[str, Any]) -> None:
    for limit in item.metadata:
        if type(limit).__module__ == "annotated_types":
            _gather_limit(limit, limits)
        elif isinstance(pattern := getattr(limit, "pattern", None), str) and vars(limit).keys() == {
            "pattern"
        }:
            limits["pattern"] = pattern
        else:
            raise OnlyPydantic(f"{limit!r} needs pydantic")
    if getattr(item, "discriminator", None) is not None or callable(item.json_schema_extra):
        raise OnlyPydantic("a discriminator or a function that changes the schema needs pydantic")
    _gather(item, {}, words)
    words.update(item.json_schema_extra or {})


def _survey(annotation: Any, *, inside: bool, seen: set[Any]) -> set[str]:
    """The parts of an annotation that msgspec does not handle itself.

    Returns:
        Some of these. `model`: a class that pydantic validates. `metadata`: metadata that only
            pydantic supports. `pydantic`: pydantic metadata that can be translated. `msgspec`:
            constraints that pydantic would ignore. `limits`: constraints of annotated_types within
            a class, which msgspec would ignore.
    """
    found: set[str] = set()
    if get_origin(annotation) is Annotated:
        found.update(_survey_metadata(annotation.__metadata__, inside=inside))
        return found | _survey(annotation.__origin__, inside=inside, seen=seen)
    if (inner := _named_type(annotation)) is not annotation:
        return _survey(inner, inside=inside, seen=seen)
    if get_origin(annotation) is Literal:
        return found
    kind = get_origin(annotation) or annotation
    if isinstance(kind, type) and kind not in _PLAIN:
        if _is_foreign(kind):
            return {"model"}
        if is_class_with_fields(kind) and kind not in seen:
            seen.add(kind)
            for hint in field_hints(kind).values():
                found |= _survey(hint, inside=True, seen=seen)
    for part in get_args(annotation):
        found |= _survey(part, inside=inside, seen=seen)
    return found


def _survey_metadata(metadata: Sequence[Any], *, inside: bool) -> Iterator[str]:
    for item in metadata:
        if _home(type(item)) == "pydantic":
            try:
                limits, _ = _metadata([item])
            except TypeError:
                yield "metadata"
            else:
                yield "metadata" if inside and limits else "pydantic"
        elif isinstance(item, Meta) and any(getattr(item, name) is not None for name in LIMITS):
            yield "msgspec"
        elif inside and type(item).__module__ == "annotated_types":
            yield "limits"


def _is_foreign(kind: type[Any]) -> bool:
    """Whether pydantic validates a class: a class of pydantic, or one that defines its pydantic
    schema while pydantic is imported.
    """
    if is_model(kind):
        return True
    return (
        hasattr(kind, "__get_pydantic_core_schema__")
        and not issubclass(kind, msgspec.Struct)
        and "pydantic" in sys.modules
    )


def is_class_with_fields(kind: type[Any]) -> bool:
    """Whether this is a dataclass, an attrs class, a Struct, a TypedDict or a NamedTuple."""
    marks = ("__dataclass_fields__", "__attrs_attrs__", "__struct_fields__", "__total__", "_fields")
    return any(hasattr(kind, mark) for mark in marks)
