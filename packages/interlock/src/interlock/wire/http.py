"""Values of HTTP headers: plain text, or base64 where a header cannot hold it (2026-07-28,
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
    """A header's value that says nothing; its words complete "the header ...", like "is not valid
    base64 of UTF-8".
    """


def encode_value(text: str) -> str:
    """Text as the value of `Mcp-Name` or `Mcp-Param-*`: as it is, or in base64 where a header
    cannot hold it as it is.

    That is so for what is not ASCII, for control characters (tabs too), for space at either end
    (`HDR-09`, `XMH-15`), and for text that looks like the base64 form itself (`XMH-16`). Raises
    BadHeaderValue for half a surrogate pair, which UTF-8 cannot say.
    """
    if _PLAIN.fullmatch(text) and not (text.startswith(_HEAD) and text.endswith(_TAIL)):
        return text
    try:
        return f"{_HEAD}{base64.b64encode(text.encode()).decode()}{_TAIL}"
    except UnicodeEncodeError:
        raise BadHeaderValue("cannot hold half a surrogate pair") from None


def decode_value(value: str) -> str:
    """The text that a header's value stands for.

    Space around it is left out (`HDR-08`); only a value with both marks, exact and in lower case,
    is in base64 (`HDR-10`, `XMH-17`). Raises BadHeaderValue for characters that a header cannot
    have, and for base64 or UTF-8 that is none (`XMH-19`, `CFQ-07`).
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
    """What the header that mirrors an argument says: a string, a whole number in decimal, `true` or
    `false` (`XMH-14`).

    None, for no header at all, where the argument is null (`XMH-12`) or is nothing that a header
    can mirror; an empty string is an empty header (`XMH-13`).
    Raises BadHeaderValue as `encode_value` does.
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
    """Whether a host is a plain IPv4 or IPv6 address, without brackets."""
    import ipaddress  # late: a server over stdio, which loads this file too, has no hosts

    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
