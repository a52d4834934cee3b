"""Explanations of one message: what is wrong with it under its revision, and what it would be under
each other revision.

The types of the protocol are those of the newest revision; the history table says which revisions
have a method and a field. Nothing in a message is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct

from .. import types as t
from ..protocol.metadata import PROTOCOL_KEYS
from ..wire.codec import decode, encode, field_span
from ..wire.jsonrpc import READ_ERRORS, Envelope, Frame, Malformed, open_envelope
from ..wire.revisions import METHODS, NEWEST, REVISIONS, Era, era, has, speaks
from .format import Sender

_MOST_DEPTH = 32
_OPEN = (t.ClientCapabilities, t.ServerCapabilities)  # a peer may declare more
_json = msgspec.json.Decoder().decode
_members = msgspec.json.Decoder(dict[str, Raw]).decode

Part = Literal["params", "result"]


class MessageDetails(Struct, frozen=True):
    """What can be said about a message.

    Attributes:
        problems: What is wrong with it under its revision, one sentence each.
        under: The message as each revision would have it: JSON text by revision. "" for a revision
            that has no such message, and for a message of an extension.
    """

    problems: list[str]
    under: dict[str, str]


def explain_message(
    frame: Frame, *, sender: Sender, revision: str = NEWEST, method: str = ""
) -> MessageDetails:
    """Explain a message.

    Args:
        frame: Its bytes.
        sender: Who sent it.
        revision: The revision of its connection. An unknown one counts as the newest.
        method: For a response, the method of its request.
    """
    revision = revision if revision in REVISIONS else NEWEST
    problems: list[str] = []
    under = dict.fromkeys(REVISIONS, "")
    try:
        envelope = open_envelope(frame)
    except Malformed as bad:
        return MessageDetails([f"{bad}."], under)
    named = envelope.method if envelope.method is not UNSET else method
    found = _typed(envelope, named)
    if found is None:
        return MessageDetails(problems, under)
    part, kind, raw = found
    if not speaks(revision, named):
        problems.append(f"{revision} has no method {named}.")
    row = METHODS[named]
    other = "server" if sender == "client" else "client"
    if part == "params" and row.sender.value not in (sender, "both"):
        problems.append(f"{named} is a message of the {other}, not of the {sender}.")
    try:
        value = decode(raw, kind)
    except Malformed as bad:
        return MessageDetails([*problems, f"{part}: {bad}."], under)
    problems += _unknown_members(_json(raw), kind, revision, part, 0)
    for each in REVISIONS:
        if speaks(each, named):
            under[each] = _under(envelope, part, value, each)
    return MessageDetails(problems, under)


def revision_of(frame: Frame) -> str:
    """Return the revision that a message names: in the `_meta` of a stateless request, or in the
    result of a handshake. "" if it names none.
    """
    try:
        message = _json(frame)
    except READ_ERRORS:
        return ""
    for path in (
        ("params", "_meta", "io.modelcontextprotocol/protocolVersion"),
        ("result", "protocolVersion"),
    ):
        value: Any = message
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str):
            return value
    return ""


def _typed(envelope: Envelope, method: str) -> tuple[Part, type[Any], Raw] | None:
    """The part of a message that has a type, with its type; None for an error, and for a message
    of an extension.
    """
    row = METHODS.get(method)
    if row is None:
        return None
    if envelope.method is not UNSET:
        return "params", row.params, envelope.params or Raw(b"{}")
    if envelope.result is UNSET or row.result is None:
        return None
    value = _json(envelope.result)
    members = value if isinstance(value, dict) else {}
    kind = members.get("resultType", "complete")
    if kind == "input_required":
        return "result", t.InputRequiredResult, envelope.result
    if kind != "complete" or "task" in members:
        return None  # a result of an extension
    return "result", row.result, envelope.result


def _under(envelope: Envelope, part: Part, value: Any, revision: str) -> str:
    """The message as a revision would have it, as JSON text; "" if it has no such message."""
    if isinstance(value, t.InputRequiredResult) and era(revision) is Era.HANDSHAKE:
        return ""  # the server sends requests instead
    if isinstance(value, t.Result) and not isinstance(value, t.InputRequiredResult):
        stateless = era(revision) is Era.STATELESS and has(
            revision, field_span(type(value), "resultType")
        )
        value = msgspec.structs.replace(value, result_type="complete" if stateless else None)
    body = _members(encode(value, revision))
    if part == "params" and "_meta" in body and era(revision) is Era.HANDSHAKE:
        kept = {
            name: member
            for name, member in _members(body["_meta"]).items()
            if name not in PROTOCOL_KEYS
        }
        del body["_meta"]
        if kept:
            body["_meta"] = Raw(msgspec.json.encode(kept))
    shown: dict[str, Any] = {"jsonrpc": "2.0"}
    if envelope.id is not UNSET:
        shown["id"] = envelope.id
    if envelope.method is not UNSET:
        shown["method"] = envelope.method
    shown[part] = body
    return msgspec.json.encode(shown).decode()


# -- members that a revision does not have ---------------------------------------------------------


def _unknown_members(data: Any, kind: Any, revision: str, path: str, depth: int) -> Iterator[str]:
    """The members of a value that the protocol, or the revision, does not have."""
    struct = _struct_of(kind)
    if depth > _MOST_DEPTH or struct in _OPEN:
        return
    if struct is None:
        inner = _item_of(kind)
        if inner is not None and isinstance(data, list):
            for number, item in enumerate(data):
                yield from _unknown_members(item, inner, revision, f"{path}[{number}]", depth + 1)
        return
    if not isinstance(data, dict):
        return
    fields = {f.encode_name: f for f in msgspec.structs.fields(struct)}
    for name, value in data.items():
        field = fields.get(name)
        if field is None:
            if name != "_meta":
                yield f"{path}.{name}: the protocol has no such member."
        elif not has(revision, field_span(struct, name)):
            yield f"{path}.{name}: {revision} has no such member."
        elif name != "_meta":
            yield from _unknown_members(value, field.type, revision, f"{path}.{name}", depth + 1)


def _struct_of(kind: Any) -> type[Struct] | None:
    """The only type of objects that an annotation allows; None for none, or several."""
    choices = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    found = [one for one in choices if isinstance(one, type) and issubclass(one, Struct)]
    return found[0] if len(found) == 1 and found[0].__struct_config__.tag is None else None


def _item_of(kind: Any) -> Any:
    """The type of the items of a list; None if an annotation is not one of a list."""
    choices = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    lists = [one for one in choices if get_origin(one) is list]
    return get_args(lists[0])[0] if len(lists) == 1 else None
