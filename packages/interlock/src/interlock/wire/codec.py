"""The codec between protocol types and bytes. Decoding is one pass and independent of the revision.
Encoding is one pass too; for an older revision each type has a cut, compiled once from the history
table.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from .. import types as t
from .jsonrpc import READ_ERRORS, Malformed
from .revisions import FIELDS, NEWEST, REVISIONS, TYPES, has
from .salvage import without_surrogates
from .shapes import RESHAPES, stand_in

Cut = Callable[[Any], Any]

_encode = msgspec.json.Encoder().encode
_decoders: dict[Any, Callable[[Any], Any]] = {}
_decode_json = msgspec.json.Decoder().decode
_KNOWN_BLOCKS = frozenset(get_args(t.ContentType))


# values; building more of them for inspection would take seconds, and a GB for each 16 MB
_MOST_SHELTERED = 100_000


def decode(raw: Raw | bytes, kind: Any) -> Any:
    """Read JSON as a protocol type. Raises Malformed (-32602) with the path of the invalid
    value.
    """
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind).decode
    try:
        return decoder(raw)
    except msgspec.ValidationError as bad:
        return _decode_sheltered(raw, kind, decoder, bad)
    except READ_ERRORS:
        raise Malformed(t.INVALID_PARAMS, "not valid JSON") from None


def _decode_sheltered(
    raw: Raw | bytes, kind: Any, decoder: Callable[[Any], Any], bad: msgspec.ValidationError
) -> Any:
    """Decode a second time, after repairing known deviations of peers.

    Content blocks of unknown kinds are wrapped, so that a newer peer does not make a whole message
    unreadable. Capabilities that are true or false become objects or disappear. A null in place of
    `isError` is ignored.
    """
    if bytes(raw).count(b",") > _MOST_SHELTERED:
        raise Malformed(t.INVALID_PARAMS, str(bad)) from None
    try:
        data = _decode_json(raw)
        repaired = _repair_capabilities(data, kind)
        if not _wrap_unknown_blocks(data, 0) and not repaired:
            raise Malformed(t.INVALID_PARAMS, str(bad)) from None
        return decoder(_encode(data))
    except READ_ERRORS as still:
        raise Malformed(t.INVALID_PARAMS, str(still)) from None


_HOLD_CAPABILITIES = (
    t.InitializeRequestParams,
    t.InitializeResult,
    t.DiscoverResult,
    t.RequestMeta,
)


def _repair_capabilities(data: Any, kind: Any) -> bool:
    """Replace capabilities that are `true` by `{}`, and remove those that are `false`.

    Returns:
        Whether there was one.
    """
    holds = isinstance(kind, type) and issubclass(kind, _HOLD_CAPABILITIES)
    if not holds or not isinstance(data, dict):
        return False
    found = False
    for f in msgspec.structs.fields(kind):
        for declared in get_args(f.type) or (f.type,):
            if _is_struct(declared) and issubclass(
                declared, t.ClientCapabilities | t.ServerCapabilities
            ):
                found |= _objects_for_truth(data.get(f.encode_name), declared)
    return found


def _objects_for_truth(data: Any, kind: type[Struct]) -> bool:
    """Repair the capabilities of one side, including nested ones."""
    if not isinstance(data, dict):
        return False
    found = False
    for f in msgspec.structs.fields(kind):
        value = data.get(f.encode_name)
        parts = next((k for k in get_args(f.type) if _is_struct(k)), None)
        if isinstance(value, bool) and bool not in get_args(f.type):
            found = True
            if value:
                data[f.encode_name] = {}
            else:
                del data[f.encode_name]
        elif parts is not None:
            found |= _objects_for_truth(value, parts)
    return found


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _wrap_unknown_blocks(data: Any, depth: int) -> bool:
    """Wrap unknown content blocks, and remove a null `isError`. Returns whether there was one."""
    if not isinstance(data, dict) or depth > 8:
        return False
    found = False
    if data.get("isError", False) is None:  # some peers write absent members as null
        del data["isError"]
        found = True
    content = data.get("content")
    blocks = content if isinstance(content, list) else [content]
    for n, block in enumerate(blocks):
        if (
            isinstance(block, dict)
            and isinstance(block.get("type"), str)
            and block["type"] not in _KNOWN_BLOCKS
        ):
            blocks[n] = {"type": "interlock/unknown", "block": block}
            found = True
        else:
            found |= _wrap_unknown_blocks(block, depth + 1)
    if found and not isinstance(content, list):
        data["content"] = blocks[0]
    messages = data.get("messages")
    for message in messages if isinstance(messages, list) else ():
        found |= _wrap_unknown_blocks(message, depth + 1)
    return found


def encode(value: Any, revision: str = NEWEST) -> bytes:
    """Encode a protocol type as JSON, without fields that the revision does not have."""
    cut: Any = _CUTS[revision].get(type(value), _UNKNOWN)
    if cut is _UNKNOWN:
        cut = _CUTS[revision][type(value)] = compile_cut(type(value), revision)
    shown = value if cut is None else cut(value)
    try:
        return _encode(shown)
    except UnicodeEncodeError as bad:  # half a surrogate pair, for example in an unusual file name
        try:
            plain = without_surrogates(shown, _plain)
        except TypeError:
            raise bad from None
        return _encode(plain)


def _plain(value: Any) -> Any:
    """Decode JSON that is kept as bytes, for msgspec's conversion to plain data."""
    if type(value) is Raw:
        return _decode_json(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


_UNKNOWN: Any = object()
_CUTS: dict[str, dict[type, Cut | None]] = {revision: {} for revision in REVISIONS}


def compile_cut(kind: Any, revision: str) -> Cut | None:
    """Return the changes that a value of a type needs before it is encoded for a revision; None if
    it needs none.
    """
    if not (isinstance(kind, type) and issubclass(kind, Struct)):
        return None
    fields = msgspec.structs.fields(kind)
    dead = {f.name: f.default for f in fields if not has(revision, field_span(kind, f.encode_name))}
    deep = {
        f.name: cut
        for f in fields
        if f.name not in dead and (cut := _field_cut(f.type, revision)) is not None
    }
    reshape = RESHAPES.get(kind) if revision != NEWEST else None
    if not dead and not deep and reshape is None:
        return None

    if (
        not dead and reshape is None and len(deep) == 1
    ):  # a result of the newest revision: nothing to drop, one list to search
        ((only, look),) = deep.items()
        return _one_field(attrgetter(only), only, look)

    def trim(value: Any) -> Any:
        if reshape is not None:
            value = reshape(value, revision)
        changes = (
            {name: default for name, default in dead.items() if getattr(value, name) is not default}
            if dead
            else {}
        )
        for name, deeper in deep.items():
            before = getattr(value, name)
            if before is not None and (after := deeper(before)) is not before:
                changes[name] = after
        return replace(value, **changes) if changes else value

    return trim


def _one_field(read: Callable[[Any], Any], name: str, look: Cut) -> Cut:
    def trim(value: Any) -> Any:
        before = read(value)
        if before is None or (after := look(before)) is before:
            return value
        return replace(value, **{name: after})

    return trim


def field_span(kind: type[Any], wire_name: str) -> tuple[str, str] | None:
    """Return the revisions that have a field, also if the type inherits it; None for all."""
    return next(
        (FIELDS[base, wire_name] for base in kind.__mro__ if (base, wire_name) in FIELDS), None
    )


def _field_cut(annotation: Any, revision: str) -> Cut | None:
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin is list:
        choices = _choices(arguments[0], revision)
        return _each(choices) if choices else None
    if origin is dict:
        inner = _field_cut(arguments[1], revision)
        return None if inner is None else _each_value(inner)
    choices = _choices(annotation, revision)
    return (
        (lambda value: cut(value) if (cut := choices.get(type(value))) is not None else value)
        if choices
        else None
    )


def _choices(annotation: Any, revision: str) -> dict[type, Cut]:
    """Return the cuts for the values that an annotation allows, by type. Types without a cut are
    omitted.
    """
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    members = arguments if origin in (Union, UnionType) else (annotation,)
    cuts: dict[type, Cut] = {}
    for member in members:
        kind = get_origin(member)
        if kind is list or kind is dict:
            if (inner := _field_cut(member, revision)) is not None:
                cuts[kind] = inner
        elif isinstance(member, type) and issubclass(member, Struct):
            if member is t.UnknownContent:
                cuts[member] = _unwrap
            elif not has(revision, TYPES.get(member)):
                cuts[member] = stand_in
            elif (inner := compile_cut(member, revision)) is not None:
                cuts[member] = inner
    return cuts


def _unwrap(block: t.UnknownContent) -> Any:
    return block.block


def _each(cuts: dict[type, Cut]) -> Cut:
    def cut(items: list[Any]) -> list[Any]:
        for item in items:
            if type(item) in cuts:
                break
        else:
            return items
        after = [one(item) if (one := cuts.get(type(item))) is not None else item for item in items]
        return after if any(a is not b for a, b in zip(after, items, strict=True)) else items

    return cut


def _each_value(inner: Cut) -> Cut:
    def cut(items: dict[str, Any]) -> dict[str, Any]:
        after = {key: inner(item) for key, item in items.items()}
        return after if any(after[key] is not items[key] for key in items) else items

    return cut
