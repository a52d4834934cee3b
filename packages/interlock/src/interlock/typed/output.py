"""Tool results: content for the model, and structured content that fits the output schema."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
    Sequence,
)
from functools import cached_property
from time import monotonic
from typing import Any, Generic, Literal, Never, NoReturn, TypeVar, get_args, get_origin

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from .. import types as t
from ..exchange import AnyResult, RawResult
from ..schema import SchemaError, Validator, compile
from ..wire.jsonrpc import READ_ERRORS
from ..wire.salvage import without_surrogates
from .adapters import Foreign, Misfit, enc_hook
from .annotations import TypeAdapter, adapter_of, is_class_with_fields, is_union, one_of, unwrapped
from .docstrings import Docstring, parse
from .json_schema import SchemaBuilder, has_bare_fields, has_no_nulls, light_class
from .media import Audio, File, Image, sniff
from .progress import Progress
from .type_hints import FunctionHints, Unresolved, doc_of, named, read_hints

_BLOCKS = (
    t.TextContent,
    t.ImageContent,
    t.AudioContent,
    t.ResourceLink,
    t.EmbeddedResource,
    t.UnknownContent,
)
_MEDIA = (Image, Audio, File)
_BYTES = (bytes, bytearray, memoryview)
_RICH = (*_BLOCKS, *_MEDIA, *_BYTES, t.ResourceContents)
_RESULTS = (t.Result, RawResult)
_LATER = (AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable)

LONG_LIST = 500
"""The number of items above which a list is encoded and checked in pieces of this many items."""

_TURN = 0.005  # seconds of work after which other tasks run

_encode = msgspec.json.Encoder(enc_hook=enc_hook).encode
_decode = msgspec.json.Decoder().decode
_pack = msgspec.msgpack.Encoder(enc_hook=enc_hook).encode
# In MessagePack a float is 0xcb and its 8 bytes; the exponent of NaN and infinity is all ones.
_not_finite = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]").search


class OutputError(Exception):
    """The tool's result does not fit its declared type or schema, or cannot be encoded as JSON."""


Data = TypeVar("Data", covariant=True)


class ToolResult(Generic[Data]):
    """Structured data for programs with different content for the model.

    A tool that returns `ToolResult[Weather]` has the output schema of `Weather`. Nothing is sent
    twice. Peers of revisions without structured content get the data as one more text.

    Args:
        data: The structured content.
        content: All of the content: texts, images, links.
        meta: The `_meta` of the result.
    """

    __slots__ = ("content", "data", "meta")

    def __init__(self, data: Data, *content: Any, meta: dict[str, Any] | None = None) -> None:
        """`content` are strings, content blocks, `Image`, `Audio` and `File`. Without any, the data
        becomes the text too. `meta` is `_meta`.
        """
        self.data = data
        self.content = content
        self.meta = meta


_FINISHED = (*_RESULTS, Progress, ToolResult)


class Output:
    """Converts a tool's return value without a declared type: to content, and for objects also to
    structured content.

    Results conform to `schema`, the `outputSchema`, if there is one (2026-07-28, "Tools", output
    schema; `TOL-09`).
    """

    def __init__(self, schema: t.JSONObject | None = None) -> None:
        self.schema = schema
        self._validator: Validator | None = None

    async def prepare(self, value: Any) -> Any:
        """Encode and check a long list in pieces, so that other calls run in between.

        Returns:
            What `result` then takes in place of the value; the value itself if it is short or
            cannot be split. A list that does not fit is returned too: `result` says why.
        """
        if type(value) is ToolResult:
            data = await self.prepare(value.data)
            return (
                value if data is value.data else ToolResult(data, *value.content, meta=value.meta)
            )
        if type(value) is not list or len(value) <= LONG_LIST or not self._can_be_split(value):
            return value
        try:
            return await self._in_pieces(value)
        except OutputError:
            return value

    def _can_be_split(self, value: list[Any]) -> bool:
        """Whether a list fits exactly if all of its pieces do."""
        return False

    async def _in_pieces(self, value: list[Any]) -> _Encoded:
        """Encode a list, piece by piece. OutputError: it does not fit."""
        raise NotImplementedError  # only where `_can_be_split`, which overrides both, says yes

    def result(self, value: Any, *, structured: bool = True, encoded: bool = False) -> AnyResult:
        """The result to send.

        A result that the author made is passed on after a check of its structured content. Raises
        OutputError.

        Args:
            value: What the tool returned.
            structured: Whether the peer's revision supports structured content.
            encoded: Whether the structured content may be a Raw with its JSON, because the result
                is only encoded, and no code reads it.
        """
        made = self._result(value, structured)
        return made if encoded else with_plain_data(made)

    def _result(self, value: Any, structured: bool) -> AnyResult:
        if isinstance(value, ToolResult):
            return self._both(value, structured)
        if not isinstance(value, _RESULTS):
            return self._made(value)
        given: AnyResult = value
        return (
            self._checked(given)
            if isinstance(given, t.CallToolResult) and not given.is_error
            else given
        )

    def _both(self, value: ToolResult[Any], structured: bool) -> t.CallToolResult:
        made = self._made(value.data)
        if made.structured_content is msgspec.UNSET:
            raise OutputError(
                "its data are no object, and it declares no other type: annotate it with the"
                " ToolResult[...] that it returns"
            )
        content = [_block(each) for each in value.content]
        if not content or not structured:
            content += made.content  # the data, as text
        return replace(made, content=content, meta=value.meta)

    def _checked(self, given: t.CallToolResult) -> t.CallToolResult:
        """The author's own result. Structured content that is a model or similar becomes plain
        data.
        """
        if not isinstance(given.content, list):
            raise OutputError(f"its content is no list, but {type(given.content).__name__}")
        if given.structured_content is msgspec.UNSET:
            if self.schema is not None:
                raise OutputError(
                    "the result has no structured content, and the tool declares an output schema"
                )
            return given
        plain = _decode(_encoded(given.structured_content))
        if self.schema is not None:
            self._conforming(plain)
        return (
            given if plain == given.structured_content else replace(given, structured_content=plain)
        )

    def _made(self, value: Any) -> t.CallToolResult:
        if (content := _content(value)) is not None:
            return t.CallToolResult(content=content)
        data = _encoded(value)
        if data.startswith(b"{"):
            return _structured(data)
        return t.CallToolResult(content=[_text(data)])

    def _conforming(self, structured: Any) -> None:
        """Check plain data against the schema. Raises OutputError."""
        if self._validator is None:
            self._validator = compile(self.schema or {})
        if not self._validator.is_valid(structured):
            problems = (
                f"${v.path.replace('/', '.')}: {v.message}"
                for v in self._validator.check(structured)
            )
            raise OutputError(
                "the result does not conform to the output schema: " + "; ".join(problems)
            )


class Prose(Output):
    """Content only: text, images, audio, files, links."""

    def result(self, value: Any, *, structured: bool = True, encoded: bool = False) -> AnyResult:
        """The result to send."""
        if type(value) is str:
            return t.CallToolResult(content=[t.TextContent(value)])
        return super().result(value, structured=structured, encoded=encoded)

    def _made(self, value: Any) -> t.CallToolResult:
        if isinstance(value, list | tuple):
            items = value
        elif value is None:
            items = ()
        else:
            items = (value,)
        return t.CallToolResult(content=[_block(item) for item in items if item is not None])


class Typed(Output):
    """Structured content of a declared type, without anything that the type does not declare.

    A value that is not an object is `wrapped` under the key `result`, because older revisions
    require an object. A `bare` value needs no conversion to JSON. `items` are the items of a type
    that is a list without constraints.
    """

    def __init__(
        self,
        adapter: TypeAdapter,
        schema: t.JSONObject,
        *,
        wrapped: bool,
        bare: bool,
        kind: Any = None,
        items: Any = None,
    ) -> None:
        super().__init__(schema)
        self._adapter = adapter
        self._wrapped = wrapped
        self._bare = bare
        self._is_list = items is not None
        self._class = items if self._is_list else kind
        self._holds_any_objects = self._is_list and _is_any_object(items)

    def _made(self, value: Any) -> t.CallToolResult:
        if type(value) is _Encoded:
            data = value.data
        else:
            encodes_itself = self._encodes_itself(value)
            data = self._fitting(self._json(value, encodes_itself), value, encodes_itself)
        return _structured(data, wrapped=self._wrapped)

    def _json(self, value: Any, encodes_itself: bool) -> bytes:
        """The JSON of a value. Raises OutputError if there is none."""
        # The check finds NaN and infinity where null fits no field.
        return _json(value) if encodes_itself and self._has_no_nulls else _encoded(value)

    def _fitting(self, data: bytes, value: Any, encodes_itself: bool) -> bytes:
        """The JSON of a value as the declared type encodes it. Raises OutputError if it does not
        fit.
        """
        if self._holds_any_objects and type(value) is list and {*map(type, value)} <= {dict}:
            return data  # the type says no more than that
        if encodes_itself:
            try:
                self._check(data)
                return data
            except READ_ERRORS:
                _must_be_finite(value, data)
                # said in the words of the declared type below
        try:
            # Python permits a float in an int field, and a string in place of a date. The schema
            # does not.
            read = self._adapter.decode(data)
        except (*READ_ERRORS, Misfit) as bad:
            raise OutputError(
                f"a result of type {type(value).__name__} does not fit the type that the tool"
                f" declares: {bad}"
            ) from None
        return data if self._bare or encodes_itself else _encode(read)

    def _encodes_itself(self, value: Any) -> bool:
        """Whether the JSON of a value that fits is that of the declared type: it has the declared
        fields, in JSON's own types, and no others.
        """
        if self._is_list:
            if type(value) is not list or not {*map(type, value)} <= {self._class}:
                return False
        elif type(value) is not self._class:
            return False
        return self._has_bare_fields

    @cached_property
    def _has_bare_fields(self) -> bool:
        kind = self._class
        return (
            isinstance(kind, type)
            and (issubclass(kind, msgspec.Struct) or "__dataclass_fields__" in vars(kind))
            and has_bare_fields(kind)
        )

    @cached_property
    def _has_no_nulls(self) -> bool:
        return has_no_nulls(self._class)

    @cached_property
    def _check(self) -> Callable[[bytes], Any]:
        """Decodes the JSON of values that encode themselves, to objects that cost less than those
        of the author's class: nobody reads them.
        """
        light = light_class(self._class)
        return msgspec.json.Decoder(list[light] if self._is_list else light).decode  # type: ignore[valid-type] # made at run time

    def _can_be_split(self, value: list[Any]) -> bool:
        return self._is_list

    async def _in_pieces(self, value: list[Any]) -> _Encoded:
        pieces = [value[start : start + LONG_LIST] for start in range(0, len(value), LONG_LIST)]
        encodes_itself = self._encodes_itself(value)
        # All are encoded before other calls run, which may change them.
        encoded = [self._json(piece, encodes_itself) for piece in pieces]
        turn = _Turn()
        for n, piece in enumerate(pieces):
            encoded[n] = self._fitting(encoded[n], piece, encodes_itself)
            await turn.share()
        return await turn.joined(encoded)


class Number(Typed):
    """An int, a float or a bool, which has a fast path."""

    def __init__(self, kind: type[Any], adapter: TypeAdapter, schema: t.JSONObject) -> None:
        super().__init__(adapter, schema, wrapped=True, bare=True)
        self._number = kind
        self._write: Callable[[Any], str] = {int: int.__repr__, float: _written, bool: _yes_or_no}[
            kind
        ]

    def result(self, value: Any, *, structured: bool = True, encoded: bool = False) -> AnyResult:
        """The result to send."""
        if type(value) is self._number:
            return t.CallToolResult(
                content=[t.TextContent(self._write(value))], structured_content={"result": value}
            )
        return super().result(value, structured=structured, encoded=encoded)


class Modelled(Output):
    """Structured content of a type that pydantic encodes, checked against the schema of
    pydantic.
    """

    def __init__(
        self, adapter: Foreign, schema: t.JSONObject, *, wrapped: bool, is_list: bool = False
    ) -> None:
        super().__init__(schema)
        self._adapter = adapter
        self._wrapped = wrapped
        self._is_list = is_list

    def _made(self, value: Any) -> t.CallToolResult:
        data = value.data if type(value) is _Encoded else self._fitting(value)
        return _structured(data, wrapped=self._wrapped)

    def _fitting(self, value: Any) -> bytes:
        """The JSON of a value. Raises OutputError if it does not conform to the schema."""
        try:
            plain = self._adapter.dump(value)
        except ValueError as bad:
            raise OutputError(
                f"a result of type {type(value).__name__} does not fit the model that the tool"
                f" declares: {bad}"
            ) from None
        data = _encoded(plain)
        self._conforming({"result": plain} if self._wrapped else plain)
        return data

    def _can_be_split(self, value: list[Any]) -> bool:
        return self._is_list

    async def _in_pieces(self, value: list[Any]) -> _Encoded:
        pieces = [value[start : start + LONG_LIST] for start in range(0, len(value), LONG_LIST)]
        encoded = []
        turn = _Turn()
        for piece in pieces:
            encoded.append(self._fitting(piece))
            await turn.share()
        return await turn.joined(encoded)


class Declared(Output):
    """Structured content with a schema that the author wrote. The value is the structured content,
    unchanged.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        super().__init__(dict(schema))
        try:
            self._validator = compile(schema)
        except SchemaError as bad:
            raise ValueError(f"the output schema cannot be used: {bad}") from None

    def _made(self, value: Any) -> t.CallToolResult:
        data = _encoded(value)
        self._conforming(_decode(data))
        return _structured(data)


def with_plain_data(result: AnyResult) -> AnyResult:
    """A result whose structured content is Python data, for code that reads it."""
    if isinstance(result, t.CallToolResult) and type(result.structured_content) is Raw:
        return replace(result, structured_content=_decode(result.structured_content))
    return result


class _Encoded:
    """The JSON of a value that has been checked."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class _Turn:
    """Shares the event loop during long work: other tasks run after each few milliseconds of it."""

    __slots__ = ("_began", "_shared")

    def __init__(self) -> None:
        self._began = monotonic()
        self._shared = False

    async def share(self) -> None:
        """Let other tasks run, if this one has worked long enough."""
        if monotonic() - self._began > _TURN:
            self._shared = True
            await asyncio.sleep(0)
            self._began = monotonic()

    async def joined(self, pieces: Sequence[bytes]) -> _Encoded:
        """Join two or more encoded lists to one. What follows long work has a turn of its own."""
        first, *others, last = [memoryview(piece) for piece in pieces]
        data = b",".join([first[:-1], *(piece[1:-1] for piece in others), last[1:]])
        if self._shared:
            await asyncio.sleep(0)
        return _Encoded(data)


def output_of(
    function: Callable[..., Any],
    *,
    output_schema: Mapping[str, Any] | None = None,
    hints: FunctionHints | None = None,
    doc: Docstring | None = None,
) -> Output:
    """The conversion of a function's return values, by its annotation or the given schema.

    Args:
        function: The function.
        output_schema: The schema that its author wrote.
        hints: What `read_hints` has read already.
        doc: Its docstring, if it has been parsed already.

    Raises:
        TypeError: The annotation has no schema.
        ValueError: The schema is invalid.
    """
    if output_schema is not None:
        return Declared(output_schema)
    if hints is None:
        hints = read_hints(function)
    annotation = hints.types.get("return", Any)
    if isinstance(annotation, Unresolved):
        raise TypeError(
            f"{named(function)} returns {annotation.text!r}, which cannot be read here:"
            f" {annotation.reason}"
        )
    whole = annotation
    annotation = _of_values(annotation)
    manner = _manner(annotation)
    if manner == "content" and get_origin(whole) is ToolResult:
        raise TypeError(
            f"{named(function)} returns {whole}, where no data stand beside the content: return"
            " the content itself"
        )
    if manner != "data":
        return Prose() if manner == "content" else Output()
    sheet = SchemaBuilder(out=True)
    try:
        adapter = adapter_of(annotation)
        drawn = sheet.draw(adapter)
    except TypeError as bad:
        raise TypeError(
            f"{named(function)}: what it returns cannot be described: {bad}; where that is meant,"
            " annotate Any"
        ) from None
    words = (doc or parse(doc_of(function))).returns
    drawn = {**({"description": words} if words else {}), **drawn}
    wrapped = not sheet.is_object(drawn)
    schema = sheet.finish(
        {"type": "object", "properties": {"result": drawn}, "required": ["result"]}
        if wrapped
        else drawn
    )
    items = get_args(annotation)[0] if get_origin(annotation) is list else None
    if isinstance(adapter, Foreign):
        return Modelled(adapter, schema, wrapped=wrapped, is_list=items is not None)
    if annotation in (int, float, bool):
        return Number(annotation, adapter, schema)
    return Typed(adapter, schema, wrapped=wrapped, bare=sheet.is_bare, kind=annotation, items=items)


def can_be_text(function: Callable[..., Any]) -> bool:
    """Whether the function's results may contain text, according to its annotation.

    False only if no value of the type has text: None, images, audio, files and links.
    """
    return _can_be_text(_of_values(read_hints(function).types.get("return", Any)))


# What an annotation says about the values.


def _can_be_text(annotation: Any) -> bool:
    for kind in _members(annotation):
        plain = unwrapped(kind)
        if plain in (None, type(None), Never, NoReturn):
            continue
        if _is_a(plain, (*_BYTES, t.TextContent, t.UnknownContent)):
            return True  # bytes may be text
        if _is_a(plain, _RICH):
            continue
        if get_args(plain) and _manner_of_one(plain) == "content":
            if any(part is not ... and _can_be_text(part) for part in get_args(plain)):
                return True
            continue
        return True
    return False


def _of_values(annotation: Any) -> Any:
    """The type of the values themselves, without generators, awaitables, complete results and
    progress.
    """
    origin = get_origin(annotation)
    parts = get_args(annotation)
    if origin is Coroutine and parts:
        return _of_values(parts[2])
    if (origin in _LATER or origin is ToolResult) and parts:
        return _of_values(parts[0])
    members = parts if is_union(annotation) else (annotation,)
    data = [
        _of_values(member) if get_origin(member) is ToolResult else member
        for member in members
        if not _is_a(member, _FINISHED)
    ]
    if data == list(members):
        return annotation
    return one_of(data) if data else Any


def _manner(annotation: Any) -> Literal["content", "data", "either"]:
    """Whether values of a type are content for the model, data with a schema, or have to be
    examined one by one.
    """
    kind = unwrapped(annotation)
    if kind in (Never, NoReturn):
        return "content"
    if _is_vague(kind):
        return "either"
    kinds = {_manner_of_one(unwrapped(member)) for member in _members(kind)}
    if kinds <= {"content", "text"}:
        return "content"
    return "either" if kinds & {"content", "either"} else "data"


def _manner_of_one(kind: Any) -> Literal["content", "text", "data", "either"]:
    """The same for one member of a union; `text` is content on its own, and data among data."""
    origin = get_origin(kind)
    parts = get_args(kind)
    if kind in (str, None, type(None)):
        return "text"
    if _is_a(kind, _RICH):
        return "content"
    if kind in (Any, object, list, tuple) or isinstance(kind, TypeVar):
        return "either"
    if (
        isinstance(origin, type)
        and issubclass(origin, Collection)
        and not issubclass(origin, Mapping)
        and not is_class_with_fields(origin)
    ):
        inner = {
            _manner_of_one(unwrapped(part))
            for whole in parts
            if whole is not ...
            for part in _members(whole)
        }
        if "content" in inner and inner <= {"content", "text"}:
            return "content"
        return "either" if inner & {"content", "either"} else "data"
    return "data"


def _is_vague(kind: Any) -> bool:
    """Whether this is an object of unknown structure, such as a dict of anything, for which a
    schema would be meaningless.
    """
    origin = get_origin(kind) or kind
    parts = get_args(kind)
    return (
        _is_a(origin, (dict, Mapping))
        and not is_class_with_fields(origin)
        and (not parts or unwrapped(parts[-1]) in (Any, object))
    )


def _is_any_object(kind: Any) -> bool:
    """Whether every JSON object is a value of this type: a dict of strings to anything."""
    parts = get_args(kind)
    return kind is dict or (get_origin(kind) is dict and parts[0] is str and parts[1] is Any)


def _members(annotation: Any) -> tuple[Any, ...]:
    kind = unwrapped(annotation)
    return get_args(kind) if is_union(kind) else (kind,)


def _is_a(kind: Any, classes: tuple[type[Any], ...]) -> bool:
    return isinstance(kind, type) and issubclass(kind, classes)


# Conversion of a value.


def _content(value: Any) -> list[t.ContentBlock] | None:
    """The blocks of a value that is content; None for data."""
    if value is None:
        return []
    if isinstance(value, (str, *_RICH)):
        return [_block(value)]
    if isinstance(value, list | tuple) and any(isinstance(item, _RICH) for item in value):
        return [_block(item) for item in value if item is not None]
    return None


def _block(value: Any) -> t.ContentBlock:
    if isinstance(value, str):
        # also converts a subclass of str, which msgspec would not encode
        return t.TextContent(str.__str__(value))
    if isinstance(value, _BLOCKS):
        return value
    if isinstance(value, _MEDIA):
        return value.content()
    if isinstance(value, t.ResourceContents):
        return t.EmbeddedResource(resource=value)
    if isinstance(value, _BYTES):
        return _of_bytes(bytes(value))
    return _text(_encoded(value))


def _of_bytes(data: bytes) -> t.ContentBlock:
    """An image or audio block if the bytes are one, text if they are text, else an embedded
    file.
    """
    family = (sniff(data) or "").partition("/")[0]
    if family == "image":
        return Image(data=data).content()
    if family == "audio":
        return Audio(data=data).content()
    file = File(data=data).content()
    return file if file.resource.text is None else t.TextContent(file.resource.text)


def _structured(data: bytes, *, wrapped: bool = False) -> t.CallToolResult:
    """A result of encoded data. Its structured content is a slice of JSON, which is copied when the
    result is encoded.
    """
    structured = Raw(b'{"result":%b}' % data if wrapped else data)
    return t.CallToolResult(content=[_text(data)], structured_content=structured)


def _text(data: bytes) -> t.TextContent:
    """The JSON of data as text (`TOL-11`); a string as it is."""
    return t.TextContent(_decode(data) if data.startswith(b'"') else data.decode())


def _encoded(value: Any) -> bytes:
    """The JSON of a value. Raises OutputError if there is none."""
    data = _json(value)
    _must_be_finite(value, data)
    return data


def _json(value: Any) -> bytes:
    """The JSON of a value, with null in place of NaN and infinity. Raises OutputError if there is
    none.
    """
    try:
        try:
            return _encode(value)
        except UnicodeEncodeError:
            return _encode(without_surrogates(value, enc_hook))
    except (TypeError, ValueError, RecursionError) as bad:
        raise _not_json(value, bad) from None


def _must_be_finite(value: Any, data: bytes) -> None:
    """Raise OutputError if `data`, the JSON of a value, has null in place of NaN or infinity."""
    if b"null" not in data or not _may_be_infinite(value):
        return
    import json  # imported late: for this rare look only

    try:
        json.dumps(
            msgspec.to_builtins(value, enc_hook=enc_hook, str_keys=True),
            allow_nan=False,
            check_circular=False,
        )
    except (TypeError, ValueError, RecursionError) as bad:
        raise _not_json(value, bad) from None


def _not_json(value: Any, bad: Exception) -> OutputError:
    finite = "Out of range float values" not in str(bad)
    reason = bad if finite else "it holds NaN or infinity, which JSON does not have"
    return OutputError(
        f"a result of type {type(value).__name__} cannot be written as JSON: {reason}"
    )


def _may_be_infinite(value: Any) -> bool:
    """Whether a value may hold NaN or infinity. Rarely true for one that holds neither."""
    try:
        return _not_finite(_pack(value)) is not None
    except (TypeError, ValueError, OverflowError, RecursionError):
        return True  # MessagePack has fewer values: an integer of 100 bits, half a surrogate pair


def _written(value: float) -> str:
    if not math.isfinite(value):
        raise OutputError(f"the result is {value}, which JSON does not have")
    return repr(value)


def _yes_or_no(value: bool) -> str:
    return "true" if value else "false"
