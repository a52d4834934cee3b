"""Adapters for types that msgspec does not know: choices, paths, pydantic models."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence, Set
from enum import Enum
from typing import Any, Literal, cast, get_args, get_origin

import msgspec
import msgspec.inspect
from msgspec import Raw

from ..types import JSONObject

_SCALARS = str | int | float | bool | None


class Misfit(ValueError):
    """A value does not fit its type.

    `problems` are (path, message) pairs, where a path is a tuple of keys.
    """

    def __init__(self, problems: Sequence[tuple[tuple[str | int, ...], str]]) -> None:
        super().__init__("; ".join(message for _, message in problems))
        self.problems = problems


class Foreign:
    """A type that pydantic reads, from the bytes of one argument.

    Validation is as the model says, lax where it is lax.

    `words` are keywords for its schema that pydantic does not know of; `name` is that of a class.
    Raises TypeError where pydantic cannot.
    """

    type: Any = Raw

    def __init__(self, annotation: Any, words: JSONObject | None = None) -> None:
        import pydantic

        self.words = words or {}
        self.name: str | None = annotation.__name__ if isinstance(annotation, type) else None

        try:
            self._adapter: Any = pydantic.TypeAdapter(annotation)
        except (pydantic.PydanticUserError, NameError) as bad:
            raise TypeError(str(bad).partition("\n")[0]) from None
        self._invalid: type[Exception] = pydantic.ValidationError
        self._unwritable: type[Exception] = pydantic.PydanticUserError
        self._read: Callable[[Any], Any] = self._adapter.validator.validate_json
        self._write: Callable[..., Any] = self._adapter.serializer.to_python

    def decode(self, raw: bytes | Raw) -> Any:
        """The value of a piece of JSON. Raises Misfit."""
        return self._checked(self._read, bytes(raw))

    def dump(self, value: Any) -> Any:
        """A value as JSON data; what is not of the type is read as the type first, a dict as a
        model for instance. Raises Misfit.
        """
        try:
            return self._write(value, mode="json", by_alias=True, warnings="error")
        except ValueError:
            return self._write(
                self._checked(self._adapter.validate_python, value),
                mode="json",
                by_alias=True,
                warnings=False,
            )

    def schema(self, *, out: bool) -> JSONObject:
        """The JSON Schema of what is read or, with `out`, of what is written.

        Raises TypeError where there is none.
        """
        try:
            drawn: JSONObject = self._adapter.json_schema(
                mode="serialization" if out else "validation"
            )
        except self._unwritable as bad:
            raise TypeError(str(bad).partition("\n")[0]) from None
        return drawn

    def _checked(self, read: Callable[[Any], Any], value: Any) -> Any:
        try:
            return read(value)
        except self._invalid as bad:
            found: Any = bad
            raise Misfit(
                [
                    (error["loc"], error["msg"])
                    for error in found.errors(include_url=False, include_context=False)
                ]
            ) from None


_foreign: dict[Any, Foreign] = {}


def foreign_of(kind: Any) -> Foreign:
    """Pydantic's reading of a class; the adapter is made once."""
    if (known := _foreign.get(kind)) is None:
        known = _foreign[kind] = Foreign(kind)
    return known


def is_model(kind: Any) -> bool:
    """Whether this is a class that pydantic made: a model, a dataclass of its own, one of its
    types.
    """
    own = ("__pydantic_fields__", "__pydantic_validator__", "__pydantic_serializer__")
    return (
        any(hasattr(kind, mark) for mark in own)
        or str(getattr(kind, "__module__", "")).partition(".")[0] == "pydantic"
    )


class _Anything(type):
    """Custom types made here stand for many types; whatever their hook gives is one of theirs."""

    def __instancecheck__(cls, value: object) -> bool:
        return True


class Choice(metaclass=_Anything):
    """A union that msgspec does not take, such as of two dataclasses or of a date and a string: the
    members are tried in turn.

    Of objects the first member is taken that knows all their keys, or else the most of them.
    """

    members: tuple[Any, ...] = ()
    keys: tuple[frozenset[str] | None, ...] = ()

    @classmethod
    def read(cls, data: Any) -> Any:
        """The value of JSON data. Raises ValueError where it is none of the members."""
        best: tuple[int, Any] | None = None
        for member, keys in zip(cls.members, cls.keys, strict=True):
            try:
                value = msgspec.convert(data, member, dec_hook=dec_hook, str_keys=True)
            except msgspec.ValidationError:
                continue
            strange = len(data.keys() - keys) if keys is not None and isinstance(data, dict) else 0
            if not strange:
                return value
            if best is None or strange < best[0]:
                best = strange, value
        if best is None:
            raise ValueError(
                "Expected one of: " + ", ".join(_name(member) for member in cls.members)
            )
        return best[1]


class Exact(metaclass=_Anything):
    """Values that are written out, as of a Literal of enum members or of an enum that mixes kinds:
    each has its JSON.
    """

    values: tuple[tuple[Any, Any], ...] = ()

    @classmethod
    def read(cls, data: Any) -> Any:
        """The value whose JSON this is. Raises ValueError where it is that of none."""
        for plain, value in cls.values:
            if plain == data and isinstance(plain, bool) is isinstance(data, bool):
                return value
        raise ValueError("Expected one of: " + ", ".join(repr(plain) for plain, _ in cls.values))


def choice_of(members: Sequence[Any]) -> type[Choice]:
    """A choice among types, each of which msgspec takes."""
    keys = tuple(_keys(member) for member in members)
    return cast(
        type[Choice], _Anything("Choice", (Choice,), {"members": tuple(members), "keys": keys})
    )


def exact_of(kind: Any) -> type[Exact]:
    """The values of a Literal or of an Enum."""
    values = get_args(kind) if get_origin(kind) is Literal else tuple(kind)
    if odd := [
        value
        for value in values
        if not isinstance(value.value if isinstance(value, Enum) else value, _SCALARS)
    ]:
        raise TypeError(f"{odd[0]!r} has no value that JSON can write")
    pairs = tuple((value.value if isinstance(value, Enum) else value, value) for value in values)
    return cast(type[Exact], _Anything("Exact", (Exact,), {"values": pairs}))


def _keys(member: Any) -> frozenset[str] | None:
    info = msgspec.inspect.type_info(member)
    while isinstance(info, msgspec.inspect.Metadata):
        info = info.type
    if isinstance(
        info,
        msgspec.inspect.StructType | msgspec.inspect.DataclassType | msgspec.inspect.TypedDictType,
    ):
        return frozenset(field.encode_name for field in info.fields)
    return None


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


def scalar_of(kind: Any) -> type[Any] | None:
    """The JSON scalar that a custom class is written as: str for paths and addresses, its base for
    a subclass of str, int or float.
    """
    if not isinstance(kind, type) or issubclass(kind, Enum):
        return None
    if _is_path(kind) or kind.__module__ == "ipaddress":
        return str
    return next(
        (base for base in (str, int, float) if issubclass(kind, base) and kind is not base), None
    )


def dec_hook(kind: Any, data: Any) -> Any:
    """For msgspec:

    JSON data as a value of a type that it does not know. Raises ValueError where it does not fit.
    """
    if isinstance(kind, type):
        if issubclass(kind, Choice | Exact):
            return kind.read(data)
        if is_model(kind):
            return foreign_of(kind).decode(msgspec.json.encode(data))
        make: Any = kind
        if (scalar := scalar_of(kind)) is not None:
            return make(msgspec.convert(data, scalar))
    raise NotImplementedError(f"{_name(kind)} is not a type that JSON can be read as")


def enc_hook(value: Any) -> Any:
    """For msgspec: a value of a type that it does not know as JSON data.

    Raises TypeError where that cannot be.
    """
    kind: Any = type(value)
    if is_model(kind):
        return foreign_of(kind).dump(value)
    scalar: Any = scalar_of(kind)
    if scalar is not None:
        return str.__str__(value) if isinstance(value, str) else scalar(value)
    if kind.__module__.partition(".")[0] == "numpy":
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | Set):
        return list(value)
    raise TypeError(f"{_name(kind)} cannot be written as JSON")


def _is_path(kind: type[Any]) -> bool:
    """Whether a type is one of pathlib's, which no author can have named without importing it: we
    need not.
    """
    paths = sys.modules.get("pathlib")
    return paths is not None and issubclass(kind, paths.PurePath)
