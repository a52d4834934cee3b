"""Requests to an HTTP API: the arguments of a tool as an HTTP request. A pure function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from ....http11.fetch import Request
from ....types import ToolError
from .bodies import encoded_body
from .credentials import ApiCredential
from .document import ApiDocument, OpenApiError, member
from .inputs import OperationInput
from .operations import VARIABLE, ApiOperation, ApiParameter, is_json
from .styles import cookie_pairs, escaped, header_text, path_text, query_pairs

_IN_A_PATH = "/:@!$&'()*+,;=%"  # characters of a path template that stay as they are
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_SLASH = re.compile(r"[/\\]")
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def checked_base(base: str) -> str:
    """Return the base address of an API without a slash at its end.

    Raises:
        OpenApiError: It is not an address of the form https://host/path.
    """
    try:
        parts = urlsplit(base)
        fits = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        fits = False
    if not fits or "?" in base or "#" in base:
        raise OpenApiError(
            "base is an address such as https://api.example/v1, without user, query and fragment"
        )
    return base.rstrip("/")


def request_of(
    document: ApiDocument,
    operation: ApiOperation,
    tool: OperationInput,
    values: Mapping[str, Any],
    *,
    base: str,
    headers: Mapping[str, str],
    credentials: Iterable[ApiCredential] = (),
) -> Request:
    """Return the request of a call.

    Args:
        document: The document.
        operation: The operation.
        tool: The arguments of its tool.
        values: The values of the arguments, which fit the input schema.
        base: The base address, as `checked_base` returns it.
        headers: The headers of the configuration, which replace those of the document.
        credentials: The secrets.

    Raises:
        ToolError: A value cannot be sent.
    """
    path: dict[str, str] = {}
    query: list[str] = []
    cookies: list[str] = []
    lines: dict[str, tuple[str, str]] = {}
    fields: dict[str, Any] = {}
    whole: Any = None
    has_body = False
    for argument in tool.arguments:
        value = values.get(argument.name)
        parameter = argument.parameter
        if parameter is not None:
            if value is None:
                if parameter.required:
                    raise ToolError(f"{argument.name} is required, and cannot be null.")
            elif parameter.place == "path":
                path[parameter.name] = _path_value(argument.name, parameter, value)
            elif parameter.place == "query":
                query += query_pairs(parameter, value)
            elif parameter.place == "cookie":
                cookies += cookie_pairs(parameter, value)
            else:
                lines[parameter.name.lower()] = _header(parameter, value)
        elif argument.name in values:
            has_body = True
            if argument.target == "body":
                whole = value
            else:
                fields[argument.field] = value
    content = b""
    body = operation.body
    if body is not None and (has_body or body.required):
        is_whole = any(argument.target == "body" for argument in tool.arguments)
        kind, content = encoded_body(document, body, whole if is_whole else fields)
        lines["content-type"] = ("Content-Type", kind)
    lines.setdefault("accept", ("Accept", _accepted(document, operation)))
    lines |= {name.lower(): (name, value) for name, value in headers.items()}
    for secret in credentials:
        if secret.place == "query":
            query.append(f"{escaped(secret.name)}={escaped(secret.value)}")
        elif secret.place == "cookie":
            cookies.append(f"{secret.name}={secret.value}")
        else:
            lines[secret.name.lower()] = (secret.name, secret.value)
    if cookies:
        lines["cookie"] = ("Cookie", "; ".join(cookies))
    url = base + _expanded(operation.path, path)
    return Request(
        operation.method,
        f"{url}?{'&'.join(query)}" if query else url,
        tuple(lines.values()),
        content,
        again=operation.method == "PUT",
    )


def _path_value(name: str, parameter: ApiParameter, value: Any) -> str:
    text = path_text(parameter, value)
    if not text:
        raise ToolError(f"{name} must not be empty: it is a part of the path.")
    return text


def _expanded(template: str, values: Mapping[str, str]) -> str:
    """Return the path of a request.

    A segment `..` would leave the path of the operation, and with it the rights that the operation
    has: the value is rejected, because a dot cannot be escaped.
    """
    pieces = VARIABLE.split(template)
    written = [
        values.get(piece, "") if place % 2 else quote(piece, safe=_IN_A_PATH)
        for place, piece in enumerate(pieces)
    ]
    path = "".join(written)
    # servers decode once or twice, and some before they look for slashes
    if any(part in (".", "..") for part in _SLASH.split(unquote(unquote(path)))):
        raise ToolError("A part of the path must not be '.' or '..'.")
    return path


def _header(parameter: ApiParameter, value: Any) -> tuple[str, str]:
    text = header_text(parameter, value)
    if not _HEADER_VALUE.fullmatch(text) or not _HEADER_NAME.fullmatch(parameter.name):
        raise ToolError(f"{parameter.name} is a header: it takes printable ASCII characters only.")
    return parameter.name, text


def _accepted(document: ApiDocument, operation: ApiOperation) -> str:
    """Return the Accept header: JSON, if the operation answers with it, or all that it names."""
    kinds: dict[str, None] = {}
    for status, given in operation.responses.items():
        if str(status).startswith("2"):
            try:
                kinds |= dict.fromkeys(member(document.resolve(given), "content"))
            except OpenApiError:
                continue
    found = [kind for kind in kinds if is_json(kind)] or list(kinds) or ["application/json"]
    clean = [kind for kind in found if _HEADER_VALUE.fullmatch(kind)]
    return ", ".join([*clean, "*/*;q=0.1"])
