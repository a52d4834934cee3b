"""A function's parameters as a tool's input: JSON Schema, and decoding in one pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import FunctionType
from typing import Any, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Raw, Struct, field
from msgspec.structs import asdict

from ..schema import SchemaError, Validator, compile
from ..types import JSONObject
from ..wire.jsonrpc import READ_ERRORS
from . import lenient
from .adapters import Foreign, Misfit, dec_hook
from .annotations import TypeAdapter, adapter_of, is_field_info, is_union, marked, one_of, unwrapped
from .depends import dependency_of
from .json_schema import SchemaBuilder, jsonable
from .type_hints import FunctionHints, Unresolved, named, read_hints

_decode_json = msgspec.json.Decoder().decode
_decode_slices = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode
_ERRORS = (*READ_ERRORS, Misfit)
_IMMUTABLE = (type(None), bool, int, float, str, bytes)
# in one error: a model needs no more, and a caller could send arguments with thousands
_MOST_PROBLEMS = 20
_LONGEST_PROBLEM = 1000  # characters
# bytes of arguments; repeated passes over larger ones would block other requests for seconds
MOST_COERCED = 256 * 1024


class ArgumentsError(Exception):
    """The arguments do not fit. The message is for the model: each problem names its place
    (`$.city`) and what is expected there.

    `problems` lists all problems that can be found at once (2026-07-28, "Tools", error handling).
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Parameter(Struct, frozen=True):
    """One parameter that a caller may set: `name` in Python, and `wire_name` in the arguments."""

    name: str
    wire_name: str
    adapter: TypeAdapter | Foreign
    default: Any = NODEFAULT
    make_default: Callable[[], Any] | None = None

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is NODEFAULT and self.make_default is None


class Signature:
    """The parameters of a function.

    Attributes:
        schema: The `inputSchema` (2020-12; its root is an object and never a reference; `TOL-02`,
            `TOL-03`).
        names: The arguments, in order.
        context: The parameter for the Context, which callers cannot set.
        lenient: Whether values sent as strings are converted.
        injected: What provides the parameters that are dependencies, which callers cannot set.
    """

    def __init__(
        self,
        parameters: list[Parameter],
        schema: JSONObject,
        context: str | None,
        rest: KeywordArguments | None,
        *,
        lenient: bool = True,
        injected: Mapping[str, Any] | None = None,
    ) -> None:
        self.schema = schema
        self.injected: Mapping[str, Any] = injected or {}
        self.lenient = lenient
        self.context = context
        self.names = tuple(parameter.wire_name for parameter in parameters)
        self._parameters = {parameter.wire_name: parameter for parameter in parameters}
        self._late = [
            (parameter.name, parameter)
            for parameter in parameters
            if isinstance(parameter.adapter, Foreign)
        ]
        self._rest = rest
        self._plain = not self._late and rest is None
        self._read = _reader(parameters, strict=rest is None)
        self._validator: Validator | None = None

    def decode(self, raw: bytes | Raw) -> dict[str, Any]:
        """Decode the JSON object of arguments to keyword arguments. An absent argument gets the
        default itself. Raises ArgumentsError.

        Types are those of JSON: 5 is also a float. If strict decoding fails, a few unambiguous
        mistakes of models are accepted: an integer written as 5.0 (which JSON Schema allows), null
        in place of no arguments and, if the signature is `lenient`, values sent as strings that
        contain their JSON.
        """
        try:
            values = asdict(self._read(raw))
            if self._plain:
                return values
            return self._finished(values, raw)
        except _ERRORS as bad:
            if len(bytes(raw)) > MOST_COERCED:
                raise ArgumentsError(
                    f"$: the arguments do not fit: {str(bad)[:_LONGEST_PROBLEM]}"
                ) from None
            return self._second_look(raw)

    def _finished(self, values: dict[str, Any], raw: bytes | Raw) -> dict[str, Any]:
        """Add the values that msgspec left undecoded: arguments of pydantic types, and those for
        `**kwargs`.
        """
        for name, parameter in self._late:
            if type(value := values[name]) is Raw:
                values[name] = parameter.adapter.decode(value)
        if self._rest is not None:
            for name, piece in _decode_slices(raw).items():
                if name not in self._parameters:
                    if name in self._rest.reserved:
                        raise Misfit([((name,), "is not an argument")])
                    values[name] = self._rest.adapter.decode(piece)
        return values

    def _second_look(self, raw: bytes | Raw) -> dict[str, Any]:
        """Handle arguments that strict decoding rejected: convert unambiguous mistakes, or raise
        all errors.
        """
        try:
            pieces = _decode_slices(raw)
        except READ_ERRORS as bad:
            if isinstance(bad, msgspec.ValidationError) and bytes(raw).strip() == b"null":
                pieces = {}
            else:
                raise ArgumentsError(_not_an_object(bad)) from None
        coerced = {name: self._coerced(name, piece) for name, piece in pieces.items()}
        if not pieces or any(coerced[name] is not pieces[name] for name in pieces):
            try:
                data = _encode(coerced)
                return self._finished(asdict(self._read(data)), data)
            except _ERRORS:
                pass
        raise ArgumentsError(*self._problems(coerced)) from None

    def _coerced(self, name: str, piece: Raw) -> Raw:
        """The argument that the model surely meant, if the given one does not fit."""
        adapter = self._adapter(name)
        if adapter is None or _complaint(adapter, piece) is None:
            return piece
        schema = self.schema.get("properties", {}).get(name, self.schema["additionalProperties"])
        try:
            value = _decode_json(piece)
            meant = lenient.coerced(value, schema, self.schema, strings=self.lenient)
            coerced = Raw(_encode(meant))
        except READ_ERRORS:
            return piece
        complaint = _complaint(adapter, coerced)
        # The error is about the decoded value, not about the string around it.
        if complaint and meant is value and not any(path for path, _ in complaint):
            return piece
        return coerced

    def _adapter(self, name: str) -> TypeAdapter | Foreign | None:
        parameter = self._parameters.get(name)
        if parameter is not None:
            return parameter.adapter
        return (
            self._rest.adapter
            if self._rest is not None and name not in self._rest.reserved
            else None
        )

    def _problems(self, pieces: Mapping[str, Raw]) -> list[str]:
        """All errors: unknown and missing arguments, and the errors of the schema and the types for
        each of the others.
        """
        problems = []
        unknown = [name for name in pieces if self._adapter(name) is None]
        if unknown:
            known = (
                f"the arguments are: {', '.join(self.names)}" if self.names else "there are none"
            )
            places = [_place((name,))[:-1] for name in unknown[:_MOST_PROBLEMS]]
            problems.append(f"{', '.join(places)}: unknown; {known}")
        problems += [
            f"{_place((p.wire_name,))} required, but missing"
            for p in self._parameters.values()
            if p.required and p.wire_name not in pieces
        ]
        wrong: dict[str, list[str]] = {}
        for name, piece in pieces.items():
            adapter = self._adapter(name)
            if adapter is not None and (complaint := _complaint(adapter, piece)) is not None:
                wrong[name] = [f"{_place((name, *path))} {message}" for path, message in complaint]
        for name, by_schema in self._violations({name: pieces[name] for name in wrong}).items():
            if not isinstance(self._adapter(name), Foreign):  # pydantic already reports all errors
                wrong[name] = by_schema
        problems += [problem for found in wrong.values() for problem in found]
        problems = [
            problem if len(problem) <= _LONGEST_PROBLEM else problem[:_LONGEST_PROBLEM] + "..."
            for problem in problems
        ]
        more = len(problems) - _MOST_PROBLEMS
        return problems if more <= 0 else [*problems[:_MOST_PROBLEMS], f"and {more} more"]

    def _violations(self, pieces: Mapping[str, Raw]) -> dict[str, list[str]]:
        """The errors of the schema, because msgspec reports only the first error.

        Empty if the schema's errors say less.
        """
        try:
            if self._validator is None:
                self._validator = compile(self.schema)
            violations = self._validator.check(_decode_json(_encode(pieces)))
        except (SchemaError, *READ_ERRORS):
            return {}
        found: dict[str, list[str]] = {}
        vague = set()
        for violation in violations:
            path = tuple(
                step.replace("~1", "/").replace("~0", "~") for step in violation.path.split("/")[1:]
            )
            if path and path[0] in pieces:
                found.setdefault(path[0], []).append(f"{_place(path)} {violation.message}")
                if "anyOf" in violation.message:
                    vague.add(path[0])
        return {name: problems for name, problems in found.items() if name not in vague}


class KeywordArguments(Struct, frozen=True):
    """The `**kwargs` of a function: the type of each, and the names that are not accepted."""

    adapter: TypeAdapter | Foreign
    reserved: frozenset[str]


def signature_of(
    function: Callable[..., Any],
    *,
    context_type: type[Any],
    description_of: Mapping[str, str] | None = None,
    lenient: bool = True,
    hints: FunctionHints | None = None,
) -> Signature:
    """The signature of a function, method, partial or callable object.

    A parameter annotated with `context_type` (also generic, or in a union with None) gets the
    Context. Arguments that a partial has bound are not shown.

    Args:
        function: The function.
        context_type: The class of the Context.
        description_of: The docstring's description of parameters; that of an annotation takes
            precedence.
        lenient: Whether values sent as strings are converted to the expected type.
        hints: What `read_hints` has read already, with the Context among the extra names.

    Raises:
        TypeError: A parameter cannot be offered; the message says which one and why.
    """
    words = description_of or {}
    sheet = SchemaBuilder()
    parameters: list[Parameter] = []
    properties: dict[str, JSONObject] = {}
    context: str | None = None
    injected: dict[str, Any] = {}
    rest: TypeAdapter | Foreign | None = None
    closing: JSONObject | bool = False
    if hints is None:
        hints = read_hints(function, {context_type.__name__: context_type})
    for where, parameter, annotation in _annotated(function, hints):
        try:
            _check_kind(parameter)
            if (provider := dependency_of(parameter, annotation)) is not None:
                injected[parameter.name] = provider
                continue
            if is_context(annotation, context_type):
                if context is not None:
                    raise TypeError(f"it is a second {context_type.__name__}, and one is enough")
                context = parameter.name
                continue
            if parameter.kind is parameter.VAR_KEYWORD:
                rest = adapter_of(annotation)
                closing = sheet.draw(rest) or True
                continue
            made = _parameter(parameter, annotation)
            if made.wire_name in properties:
                raise TypeError(f"another one is called {made.wire_name!r} too")
            drawn = sheet.draw(made.adapter)
        except TypeError as bad:
            raise TypeError(f"{where} cannot be used: {bad}") from None
        parameters.append(made)
        properties[made.wire_name] = _completed(drawn, made, words.get(parameter.name))
    required = [parameter.wire_name for parameter in parameters if parameter.required]
    root: JSONObject = {
        "type": "object",
        **({"properties": properties} if properties else {}),
        **({"required": required} if required else {}),
        "additionalProperties": closing,
    }
    reserved = (
        _bound(function)
        | {parameter.name for parameter in parameters}
        | ({context} if context else set())
        | injected.keys()
    )
    return Signature(
        parameters,
        sheet.finish(root),
        context,
        KeywordArguments(rest, frozenset(reserved)) if rest is not None else None,
        lenient=lenient,
        injected=injected,
    )


def _annotated(
    function: Callable[..., Any], hints: FunctionHints
) -> Iterator[tuple[str, inspect.Parameter, Any]]:
    """The parameters that are not bound, each with the beginning of an error message and its
    annotation.
    """
    bound = _bound(function)
    for name, parameter in hints.parameters.items():
        where = f"{named(function)}: the parameter {name!r}"
        annotation = hints.types.get(name, Any)
        if isinstance(annotation, Unresolved):
            raise TypeError(
                f"{where} is annotated {annotation.text!r}, which cannot be read here:"
                f" {annotation.reason}"
            )
        if name in ("self", "cls") and name not in hints.types and _in_class(function):
            raise TypeError(
                f"{where} is that of a method which is not bound; register the method of an object"
            )
        if name not in bound:
            yield where, parameter, annotation


def _in_class(function: Any) -> bool:
    """Whether this is a plain function defined in a class."""
    return (
        isinstance(function, FunctionType)
        and "." in function.__qualname__.rpartition("<locals>.")[2]
    )


def _check_kind(parameter: inspect.Parameter) -> None:
    if parameter.kind is parameter.VAR_POSITIONAL:
        raise TypeError(
            "it collects positional arguments, and callers give arguments by name; take a list"
        )
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise TypeError("it is positional only, and callers give arguments by name")


def _bound(function: Any) -> set[str]:
    """The keywords that a partial has set, which callers cannot set."""
    names: set[str] = set()
    while hasattr(function, "func") and hasattr(function, "keywords"):
        names |= function.keywords.keys()
        function = function.func
    return names


def is_context(annotation: Any, context_type: type[Any]) -> bool:
    """Whether an annotation is the Context: plain, with the type of its state, or in a union."""
    annotation = unwrapped(annotation)
    if is_union(annotation):
        return any(is_context(member, context_type) for member in get_args(annotation))
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and issubclass(kind, context_type)


def _parameter(parameter: inspect.Parameter, annotation: Any) -> Parameter:
    default: Any = NODEFAULT if parameter.default is parameter.empty else parameter.default
    make_default: Callable[[], Any] | None = None
    if is_field_info(default):
        annotation = marked(annotation, default)
        default = NODEFAULT
    wire_name = parameter.name
    for info in filter(is_field_info, getattr(annotation, "__metadata__", ())):
        alias = info.validation_alias if isinstance(info.validation_alias, str) else info.alias
        wire_name = alias or wire_name
        if default is NODEFAULT and not info.is_required():
            default, make_default = (
                (info.default, None)
                if info.default_factory is None
                else (NODEFAULT, info.default_factory)
            )
    if default is None and not _takes_none(annotation):
        annotation = one_of((annotation, None))  # `x: int = None` accepts None
    return Parameter(parameter.name, wire_name, adapter_of(annotation), default, make_default)


def _takes_none(annotation: Any) -> bool:
    annotation = unwrapped(annotation)
    if is_union(annotation):
        return any(_takes_none(member) for member in get_args(annotation))
    return annotation in (None, type(None), Any, object) or None in get_args(annotation)


def _completed(drawn: JSONObject, parameter: Parameter, words: str | None) -> JSONObject:
    """A property with the docstring's description if it has none of its own, and with its
    default.
    """
    drawn.pop("default", None)
    about = {"description": words} if words and "description" not in drawn else {}
    fits, default = (
        jsonable(parameter.default) if parameter.default is not NODEFAULT else (False, None)
    )
    return {**about, **drawn, **({"default": default} if fits else {})}


def _reader(parameters: list[Parameter], *, strict: bool) -> Callable[[bytes | Raw], Struct]:
    """The decoder of the arguments: a Struct made for them, which msgspec decodes fastest."""
    fields: list[Any] = []
    for parameter in parameters:
        if parameter.make_default is not None:
            fields.append(
                (
                    parameter.name,
                    parameter.adapter.type,
                    field(default_factory=parameter.make_default),
                )
            )
        elif parameter.default is NODEFAULT:
            fields.append((parameter.name, parameter.adapter.type))
        elif isinstance(parameter.default, _IMMUTABLE):
            fields.append((parameter.name, parameter.adapter.type, parameter.default))
        else:  # msgspec would copy or reject it, but the function must get the default itself
            fields.append(
                (
                    parameter.name,
                    parameter.adapter.type,
                    field(default_factory=partial(_itself, parameter.default)),
                )
            )
    rename = {parameter.name: parameter.wire_name for parameter in parameters}
    kind = msgspec.defstruct(
        "Arguments", fields, kw_only=True, rename=rename, forbid_unknown_fields=strict, gc=False
    )
    return msgspec.json.Decoder(kind, dec_hook=dec_hook).decode


def _itself(value: Any) -> Any:
    return value


def _complaint(
    adapter: TypeAdapter | Foreign, piece: Raw
) -> list[tuple[tuple[str | int, ...], str]] | None:
    """The errors of a type for a piece of JSON: paths below it, and messages.

    None if it fits.
    """
    try:
        adapter.decode(piece)
    except Misfit as bad:
        return list(bad.problems)
    except READ_ERRORS as bad:
        message, _, path = str(bad).partition(" - at `$")
        return [((path.rstrip("`"),) if path else (), f"{message[:1].lower()}{message[1:]}")]
    return None


def _place(path: tuple[str | int, ...]) -> str:
    """`$.orders[2].city:` for a path."""
    text = "$"
    for step in path:
        whole = str(step)
        if whole.startswith((".", "[")):
            text += whole  # a path from msgspec, which already has this form
        else:
            text += f"[{whole}]" if whole.isdigit() else f".{whole}"
    return text + ":"


def _not_an_object(bad: Exception) -> str:
    if isinstance(bad, msgspec.ValidationError):
        return f"$: the arguments must be a JSON object ({str(bad)[:1].lower()}{str(bad)[1:]})"
    return (
        "$: the arguments are nested too deeply"
        if isinstance(bad, RecursionError)
        else f"$: the arguments are not valid JSON ({bad})"
    )
