"""Responses of an HTTP API as results of tools: content, structured content, and errors with the
words of the body. Pure functions.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct

from .... import types as t
from ....logs import limited
from ....schema import SchemaError, Validator, compile
from ....typed.media import is_text
from ....wire.jsonrpc import READ_ERRORS
from .document import ApiDocument, member
from .operations import ApiOperation, is_json
from .schemas import SchemaConverter

log = limited("interlock.server")

_encode = msgspec.json.Encoder().encode
_LONGEST_ERROR = 2000  # characters of the body of an error
_MOST_ERRORS = 5  # of one body
_REASONS = {status.value: status.phrase for status in HTTPStatus}
_ERROR_TEXTS = ("title", "message", "error_description", "detail", "description", "reason", "msg")
_ERROR_PARTS = ("error", "errors", "fault")
_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})</title>", re.IGNORECASE)
_DEEPEST_ERROR = 4  # nested objects of an error


class ApiResponse(Struct, frozen=True):
    """A response with its body.

    Attributes:
        status: The HTTP status.
        headers: The headers, by name in lower case.
        body: The body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        """The media type without its parameters, in lower case; empty if there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class OperationOutput:
    """The output schema of a tool.

    Args:
        schema: The output schema, whose root is an object.
        wrapped: Whether structured content is under the key `result`, since it is no object.
    """

    def __init__(self, schema: t.JSONObject, *, wrapped: bool) -> None:
        self.schema = schema
        self._wrapped = wrapped
        self._validator: Validator | None = None
        self._is_checked = True

    def structured(self, value: Any) -> tuple[Any, str]:
        """Return the structured content for JSON data, and why it does not fit, if it does not.

        Members that are null, although the API does not say that they may be, are left out.
        """
        found = {"result": value} if self._wrapped else value
        validator = self._compiled()
        if validator is None or validator.is_valid(found):
            return found, ""
        without = _without_nulls(found)
        if validator.is_valid(without):
            return without, ""
        problems = validator.check(without)
        return found, "; ".join(f"${v.path.replace('/', '.')}: {v.message}" for v in problems)

    def _compiled(self) -> Validator | None:
        if self._validator is None and self._is_checked:
            try:
                self._validator = compile(self.schema)
            except SchemaError as bad:
                self._is_checked = False
                log.warning("answers are not checked against their output schema: %s", bad)
        return self._validator


def output_of(
    document: ApiDocument, operation: ApiOperation, converter: SchemaConverter, most_bytes: int
) -> OperationOutput | None:
    """Return the output schema of an operation.

    None if its answers are text: if they are not JSON of one description, or if the schema is
    larger than it pays. It is sent with every list, and most answers are small.

    Args:
        document: The document.
        operation: The operation.
        converter: Converts the schemas of responses.
        most_bytes: The size of the largest schema that is sent.

    Raises:
        OpenApiError: A schema cannot be converted.
    """
    described = list(_success_schemas(document, operation))
    if not described or any(schema != described[0] for schema in described):
        return None
    reached: set[str] = set()
    schema = converter.inlined(described[0], reached)
    if not isinstance(schema, dict) or not schema:
        return None
    definitions = converter.definitions(reached)
    is_object = schema.get("type") == "object" or ("type" not in schema and "properties" in schema)
    if is_object:
        whole = {**schema, "type": "object"}
    else:
        whole = {"type": "object", "properties": {"result": schema}}
    if definitions:
        whole["$defs"] = definitions
    if len(_encode(whole)) > most_bytes:
        return None
    return OperationOutput(whole, wrapped=not is_object)


def _success_schemas(document: ApiDocument, operation: ApiOperation) -> Iterator[Any]:
    """The schemas of the successful responses; {} for one that is not JSON."""
    for status, given in operation.responses.items():
        if not str(status).startswith("2"):
            continue
        content = member(document.resolve(given), "content")
        kinds = [kind for kind in content if is_json(kind)]
        yield member(content, kinds[0]).get("schema", {}) if kinds else {}


def json_of(response: ApiResponse) -> Any:
    """Return the JSON data of a response; UNSET if it has none."""
    if not response.body or not (is_json(response.media_type) or not response.media_type):
        return msgspec.UNSET
    try:
        return msgspec.json.decode(response.body)
    except READ_ERRORS:
        return msgspec.UNSET  # it says that it is JSON and is not, as some APIs do with plain text


def result_of(
    response: ApiResponse, value: Any, output: OperationOutput | None
) -> t.CallToolResult:
    """Return the result of a response.

    Args:
        response: The response.
        value: Its JSON data, as `json_of` returns it, or that of several pages.
        output: The output schema of the tool.

    Raises:
        ToolError: The response has an error status.
    """
    if not 200 <= response.status < 300:
        raise error_of(response)
    if value is not msgspec.UNSET:
        return _json_result(value, output)
    kind = response.media_type
    if not response.body:
        words = f"Done: {_status(response.status)}."
        return _result([t.TextContent(words)], {} if output is not None else msgspec.UNSET)
    content: t.ContentBlock
    if kind.startswith("image/") and kind != "image/svg+xml":
        content = t.ImageContent(data=b64encode(response.body).decode(), mime_type=kind)
    elif kind.startswith("audio/"):
        content = t.AudioContent(data=b64encode(response.body).decode(), mime_type=kind)
    elif not kind or is_json(kind) or is_text(kind):
        content = t.TextContent(_text(response))
    else:
        blob = b64encode(response.body).decode()
        resource = t.ResourceContents(uri="openapi://answer", mime_type=kind, blob=blob)
        content = t.EmbeddedResource(resource=resource)
    if output is None:
        return t.CallToolResult(content=[content])
    words = f"The operation succeeded ({_status(response.status)}), but did not answer with JSON."
    return t.CallToolResult(content=[t.TextContent(words), content], is_error=True)


def _json_result(value: Any, output: OperationOutput | None) -> t.CallToolResult:
    """Return the result for JSON data. Data that does not fit the output schema is an error that
    still contains the data.
    """
    text = _encode(value).decode()
    if output is None:
        return t.CallToolResult(content=[t.TextContent(text)])
    structured, problem = output.structured(value)
    if not problem:
        return _result([t.TextContent(text)], structured)
    words = (
        "The operation succeeded, but its answer does not fit the description of the API"
        f" ({problem[:_LONGEST_ERROR]}). The answer follows."
    )
    return t.CallToolResult(content=[t.TextContent(words), t.TextContent(text)], is_error=True)


def _result(content: list[t.ContentBlock], structured: Any) -> t.CallToolResult:
    return t.CallToolResult(content=content, structured_content=structured)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value


# -- errors ----------------------------------------------------------------------------------------


def error_of(response: ApiResponse) -> t.ToolError:
    """Return the error for a status of 3xx, 4xx or 5xx: the status, the words of the body, and how
    long to wait.
    """
    words = f"The API answered {_status(response.status)}"
    if body := _words_of_body(response):
        words += f": {body}"
    words = words if words.endswith((".", "!", "?")) else f"{words}."
    if response.status in (429, 503) and (wait := _wait(response.headers)):
        words += f" {wait}"
    return t.ToolError(words)


def _status(status: int) -> str:
    reason = _REASONS.get(status)
    return f"{status} {reason}" if reason else str(status)


def _words_of_body(response: ApiResponse) -> str:
    if not response.body:
        return ""
    if is_json(response.media_type) or response.body.lstrip()[:1] in (b"{", b"["):
        try:
            value = msgspec.json.decode(response.body)
        except READ_ERRORS:
            pass
        else:
            return _cut(_words(value, 0) or _encode(value).decode())
    if response.media_type in ("text/html", "application/xhtml+xml"):
        title = _TITLE.search(_text(response))
        return _cut(title[1]) if title else ""
    # the page of a crash is for people: it can have a traceback with whatever was in it
    return _cut(_text(response)) if is_text(response.media_type) and response.status < 500 else ""


def _words(value: Any, depth: int) -> str:
    """Return the sentences in the body of an error, in the forms that APIs commonly use: problem
    details (RFC 9457), `message`, `error`, `errors`, and the `detail` of FastAPI.
    """
    if depth > _DEEPEST_ERROR:
        return ""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list):
        found = [words for item in value[:_MOST_ERRORS] if (words := _words(item, depth + 1))]
        more = len(value) - _MOST_ERRORS
        return "; ".join(found) + (f"; and {more} more" if found and more > 0 else "")
    if not isinstance(value, dict):
        return ""
    found = [
        words
        for name in (*_ERROR_TEXTS, *_ERROR_PARTS)
        if name in value and (words := _words(value[name], depth + 1))
    ]
    words = ": ".join(dict.fromkeys(found))
    place = value.get("loc", value.get("field", value.get("pointer")))
    if isinstance(place, list):
        place = ".".join(map(str, place))
    return f"{place}: {words}" if words and isinstance(place, str) and place else words


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}..."


def _text(response: ApiResponse) -> str:
    found = re.search(r"charset=\"?([\w.-]+)", response.headers.get("content-type", ""))
    try:
        return response.body.decode(found[1] if found else "utf-8", "replace")
    except LookupError:
        return response.body.decode("utf-8", "replace")


def _wait(headers: Mapping[str, str]) -> str:
    """Return how long to wait, by `Retry-After` or the field of the rate limit draft."""
    given = headers.get("retry-after", headers.get("ratelimit-reset", "")).strip()
    if not given:
        return ""
    if given.isdecimal():
        return f"Try again in {int(given)} seconds."
    try:
        until = parsedate_to_datetime(given)
        seconds = (until - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
        return f"Try again in {max(0, round(seconds))} seconds."
    except (ValueError, TypeError):
        return ""
