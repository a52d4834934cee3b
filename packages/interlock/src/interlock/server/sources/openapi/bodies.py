"""Request bodies: JSON, URL-encoded forms, multipart forms, text and bytes."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from ....types import ToolError
from .document import ApiDocument, OpenApiError, member
from .inputs import is_binary
from .operations import ApiBody
from .styles import escaped, form_pairs, plain

_encode = msgspec.json.Encoder().encode
_BYTES = "application/octet-stream"
_IN_A_NAME = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})  # as browsers write names


def encoded_body(document: ApiDocument, body: ApiBody, value: Any) -> tuple[str, bytes]:
    """Return the Content-Type and the bytes of a body.

    Args:
        document: The document, for the schemas of the fields of a form.
        body: The body.
        value: JSON data. A form is an object; bytes are a string in Base64.

    Raises:
        ToolError: The value cannot be written in this type.
    """
    if body.is_json:
        return body.media_type, _encode(value)
    if body.kind == "application/x-www-form-urlencoded":
        return body.media_type, "&".join(_pairs(body, _fields(value))).encode()
    if body.kind == "multipart/form-data":
        return _multipart(_parts(document, body, _fields(value)))
    if body.kind.startswith("text/") or body.kind.endswith(("/xml", "+xml")):
        return _in_utf8(body.media_type), plain(value).encode()
    kind = _BYTES if "*" in body.kind else body.media_type
    return kind, bytes_of(value, "the body")


def bytes_of(value: Any, name: str) -> bytes:
    """Return the bytes of a value in Base64.

    Raises:
        ToolError: It is not Base64.
    """
    try:
        return b64decode(plain(value), validate=True)
    except (binascii.Error, ValueError):
        raise ToolError(f"{name} must be Base64.") from None


def _fields(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ToolError("The body must be an object with the fields of a form.")
    return value


def _in_utf8(media_type: str) -> str:
    return media_type if "charset" in media_type.lower() else f"{media_type}; charset=utf-8"


def _pairs(body: ApiBody, fields: Mapping[str, Any]) -> list[str]:
    """Write the fields of a URL-encoded form. An object without a style of its own is JSON."""
    pairs: list[str] = []
    for name, value in fields.items():
        if value is None:
            continue
        written = member(body.encoding, name)
        style = written.get("style", "form")
        has_style = "style" in written or "explode" in written
        explode = written.get("explode", style in ("form", "deepObject")) is True
        if isinstance(value, Mapping) and not has_style:
            pairs.append(f"{escaped(name)}={escaped(plain(value))}")
        else:
            pairs += form_pairs(escaped(name), value, style, explode=explode)
    return pairs


class _Part:
    """One part of a multipart form."""

    def __init__(self, name: str, kind: str, data: bytes, *, is_file: bool) -> None:
        filename = f'; filename="{_quoted(name)}"' if is_file else ""
        head = f'Content-Disposition: form-data; name="{_quoted(name)}"{filename}\r\n'
        if kind:
            head += f"Content-Type: {kind}\r\n"
        self.data = head.encode() + b"\r\n" + data


def _quoted(name: str) -> str:
    return name.translate(_IN_A_NAME)


def _parts(document: ApiDocument, body: ApiBody, fields: Mapping[str, Any]) -> list[_Part]:
    """Make the parts of a form; an array has one part for each item."""
    schemas = _field_schemas(document, body)
    parts = []
    for name, value in fields.items():
        if value is None:
            continue
        schema = schemas.get(name)
        items = [value]
        if isinstance(value, list):
            items = value
            schema = _resolved(document, schema).get("items")
        kind = str(member(body.encoding, name).get("contentType", "")).partition(",")[0].strip()
        if "*" in kind or not kind.isprintable():
            kind = ""
        for item in items:
            parts.append(_part(name, item, kind, is_file=is_binary(_resolved(document, schema))))
    return parts


def _part(name: str, value: Any, kind: str, *, is_file: bool) -> _Part:
    if is_file:
        return _Part(name, kind or _BYTES, bytes_of(value, name), is_file=True)
    if not kind and isinstance(value, dict | list):
        kind = "application/json"
    return _Part(name, kind, plain(value).encode(), is_file=False)


def _field_schemas(document: ApiDocument, body: ApiBody) -> Mapping[str, Any]:
    return member(_resolved(document, body.schema), "properties")


def _resolved(document: ApiDocument, schema: Any) -> Mapping[str, Any]:
    try:
        return document.resolve(schema)
    except OpenApiError:
        return {}


def _multipart(parts: list[_Part]) -> tuple[str, bytes]:
    """Join the parts. The boundary is a hash of them, so that none of them contains it."""
    digest = sha256()
    for part in parts:
        digest.update(len(part.data).to_bytes(8))
        digest.update(part.data)
    boundary = digest.hexdigest()[:40]
    line = f"--{boundary}\r\n".encode()
    body = b"".join(line + part.data + b"\r\n" for part in parts)
    return f"multipart/form-data; boundary={boundary}", body + f"--{boundary}--\r\n".encode()
