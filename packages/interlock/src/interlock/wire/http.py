"""Values of HTTP headers: plain text, or base64 if the text is not allowed in a header (2026-07-28,
"Value Encoding").
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

_HEAD = "=?base64?"
_TAIL = "?="
_PLAIN = re.compile(r"[!-~](?:[ -~]*[!-~])?|")
_POSSIBLE = re.compile(r"[ -~\t]*")


class BadHeaderValue(ValueError):
    """A header value that cannot be decoded. The message completes "the header ...", as in "is not
    valid base64 of UTF-8".
    """


def encode_value(text: str) -> str:
    """Encode text as the value of `Mcp-Name` or `Mcp-Param-*`: plain if possible, otherwise in
    base64.

    Base64 is necessary for characters beyond ASCII, control characters (including tabs), space at
    either end (`HDR-09`, `XMH-15`), and text that looks like the base64 form itself (`XMH-16`).
    Raises BadHeaderValue for half a surrogate pair, which UTF-8 cannot encode.
    """
    if _PLAIN.fullmatch(text) and not (text.startswith(_HEAD) and text.endswith(_TAIL)):
        return text
    try:
        return f"{_HEAD}{base64.b64encode(text.encode()).decode()}{_TAIL}"
    except UnicodeEncodeError:
        raise BadHeaderValue("cannot hold half a surrogate pair") from None


def decode_value(value: str) -> str:
    """Decode the value of a header.

    Surrounding space is ignored (`HDR-08`). A value is base64 only if it has both marks exactly, in
    lower case (`HDR-10`, `XMH-17`). Raises BadHeaderValue for characters that are not allowed in a
    header, and for invalid base64 or UTF-8 (`XMH-19`, `CFQ-07`).
    """
    value = value.strip(" \t")
    if not (
        value.startswith(_HEAD) and value.endswith(_TAIL) and len(value) >= len(_HEAD) + len(_TAIL)
    ):
        if not _POSSIBLE.fullmatch(value):
            raise BadHeaderValue("has characters that a header cannot have")
        return value
    try:
        return base64.b64decode(value[len(_HEAD) : -len(_TAIL)], validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        raise BadHeaderValue("is not valid base64 of UTF-8") from None


def argument_value(value: Any) -> str | None:
    """Return the text of an argument for the header that mirrors it: a string, a decimal integer,
    `true` or `false` (`XMH-14`).

    None means that there is no header: the argument is null (`XMH-12`) or of a type that headers
    cannot mirror. An empty string is an empty header (`XMH-13`).
    """
    if isinstance(value, str):
        return encode_value(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return None


def is_numeric(host: str) -> bool:
    """Whether a host is an IPv4 or IPv6 address without brackets."""
    import ipaddress  # late: a server over stdio loads this file too, but has no hosts

    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
