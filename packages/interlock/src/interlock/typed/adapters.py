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

    `problems` are pairs of a path and a message. A path is a tuple of keys.
    """

    def __init__(self, problems: Sequence[tuple[tuple[str | int, ...], str]]) -> None:
        super().__init__("; ".join(message for _, message in problems))
        self.problems = problems


class Foreign:
    """A type that pydantic validates, from the bytes of one argument.

    Validation follows the model, including its lax mode. Raises TypeError if pydantic does not
    support the type.

    Attributes:
        words: Schema keywords that pydantic does not know.
        name: The name of the class, if it is one.
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
        """A value as JSON data. A value of another type, such as a dict for a model, is validated
        first. Raises Misfit.
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
        """The JSON Schema of the input or, with `out`, of the output.

        Raises TypeError if there is none.
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
    """The adapter of a class, which is made once."""
    if (known := _foreign.get(kind)) is None:
        known = _foreign[kind] = Foreign(kind)
    return known


def is_model(kind: Any) -> bool:
    """Whether pydantic made this class: a model, a dataclass of pydantic, or one of its types."""
    own = ("__pydantic_fields__", "__pydantic_validator__", "__pydantic_serializer__")
    return (
        any(hasattr(kind, mark) for mark in own)
        or str(getattr(kind, "__module__", "")).partition(".")[0] == "pydantic"
    )


class _Anything(type):
    """The metaclass of custom types that stand for many types: `isinstance` accepts every result of
    their hook.
    """

    def __instancecheck__(cls, value: object) -> bool:
        return True


class Choice(metaclass=_Anything):
    """A union that msgspec does not support, such as of two dataclasses or of a date and a string.
    The members are tried in order.

    For an object, the first member that has all of its keys is used, else the one that has the
    most.
    """

    members: tuple[Any, ...] = ()
    keys: tuple[frozenset[str] | None, ...] = ()

    @classmethod
    def read(cls, data: Any) -> Any:
        """The value of JSON data. Raises ValueError if no member accepts it."""
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
    """A fixed set of values, as of a Literal of enum members or of an enum with mixed types. Each
    value has a JSON form.
    """

    values: tuple[tuple[Any, Any], ...] = ()

    @classmethod
    def read(cls, data: Any) -> Any:
        """The value with this JSON form. Raises ValueError if there is none."""
        for plain, value in cls.values:
            if plain == data and isinstance(plain, bool) is isinstance(data, bool):
                return value
        raise ValueError("Expected one of: " + ", ".join(repr(plain) for plain, _ in cls.values))


def choice_of(members: Sequence[Any]) -> type[Choice]:
    """A choice among types that msgspec supports."""
    keys = tuple(_keys(member) for member in members)
    return cast(
        type[Choice], _Anything("Choice", (Choice,), {"members": tuple(members), "keys": keys})
    )


def exact_of(kind: Any) -> type[Exact]:
    """The values of a Literal or an Enum."""
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
    """The JSON scalar for a custom class: str for paths and addresses, the base class for a
    subclass of str, int or float.
    """
    if not isinstance(kind, type) or issubclass(kind, Enum):
        return None
    if _is_path(kind) or kind.__module__ == "ipaddress":
        return str
    return next(
        (base for base in (str, int, float) if issubclass(kind, base) and kind is not base), None
    )


def dec_hook(kind: Any, data: Any) -> Any:
    """For msgspec: convert JSON data to a type that msgspec does not support. Raises ValueError if
    it does not fit.
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
    """For msgspec: convert a value of a type that msgspec does not support to JSON data. Raises
    TypeError if that is impossible.
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
    """Whether a type is a path of pathlib. If no other code has imported pathlib, no annotation can
    name it, so it is not imported here.
    """
    paths = sys.modules.get("pathlib")
    return paths is not None and issubclass(kind, paths.PurePath)
