"""Operations of an OpenAPI document: methods, paths, parameters and bodies, each resolved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from .document import ApiDocument, OpenApiError, member

Place = Literal["path", "query", "header", "cookie"]

_METHODS = ("get", "put", "post", "delete", "patch")
_PLACES: tuple[Place, ...] = ("path", "query", "header", "cookie")
_DEFAULT_STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_STYLES = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
VARIABLE = re.compile(r"\{([^{}]+)\}")
"""A variable in the template of a path."""

# Headers that a caller never sets: OpenAPI ignores the first three as parameters, and the others
# belong to the connection, or would impersonate somebody.
_NO_PARAMETERS = frozenset(
    {
        "accept",
        "authorization",
        "content-type",
        "connection",
        "content-length",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NO_PREFIXES = ("proxy-", "x-forwarded-", "sec-")


class ApiParameter(Struct, frozen=True, kw_only=True):
    """A parameter of an operation.

    Attributes:
        name: Its name in the document.
        place: Where the request has it.
        required: Whether the API needs it.
        schema: Its schema, as the document has it.
        description: What it is for.
        style: How arrays and objects are written.
        explode: Whether each item or member is written by itself.
        reserved: Whether reserved characters of a query stay as they are.
        is_json: Whether the value is written as JSON.
    """

    name: str
    place: Place
    required: bool
    schema: Any
    description: str = ""
    style: str
    explode: bool
    reserved: bool = False
    is_json: bool = False


class ApiBody(Struct, frozen=True, kw_only=True):
    """The body of an operation's request.

    Attributes:
        media_type: The type in which the body is sent.
        schema: Its schema, as the document has it.
        required: Whether the API needs it.
        description: What it is for.
        encoding: How the document wants the fields of a form to be written.
    """

    media_type: str
    schema: Any
    required: bool
    description: str = ""
    encoding: Mapping[str, Any] = {}

    @property
    def kind(self) -> str:
        """The media type without its parameters, in lower case."""
        return self.media_type.partition(";")[0].strip().lower()

    @property
    def is_json(self) -> bool:
        """Whether the body is JSON."""
        return is_json(self.media_type)

    @property
    def is_form(self) -> bool:
        """Whether the body has named fields."""
        return self.kind in ("application/x-www-form-urlencoded", "multipart/form-data")


class ApiOperation(Struct, frozen=True, kw_only=True):
    """One operation: a method on a path.

    Attributes:
        name: The name of its tool.
        operation_id: Its `operationId`; empty if it has none.
        method: The HTTP method, in capitals.
        path: The template of the path.
        summary: What it does, on one line.
        description: What it does, at length.
        tags: Its tags.
        parameters: Its parameters: those in the path, then query, headers and cookies.
        body: The body of the request.
        responses: The descriptions of responses by status.
        security: The alternatives of security schemes; None for those of the document.
        deprecated: Whether the API advises against it.
    """

    name: str = ""
    operation_id: str = ""
    method: str
    path: str
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    parameters: tuple[ApiParameter, ...] = ()
    body: ApiBody | None = None
    responses: Mapping[str, Any] = {}
    security: list[Any] | None = None
    deprecated: bool = False

    @property
    def place(self) -> str:
        """The method and the path, which identify the operation in its document."""
        return f"{self.method} {self.path}"


class UnusableOperation(Struct, frozen=True):
    """An operation that cannot be a tool, and why."""

    place: str
    reason: str


def operations_of(document: ApiDocument) -> Iterator[ApiOperation | UnusableOperation]:
    """Iterate over the operations of a document in its order, without names.

    HEAD, OPTIONS and TRACE are left out: a model has no use for them.
    """
    for path, given in member(document.content, "paths").items():
        if not path.startswith("/"):
            continue  # an extension of the document
        try:
            item = document.resolve(given)
        except OpenApiError as bad:
            yield UnusableOperation(path, str(bad))
            continue
        for method in _METHODS:
            if method not in item:
                continue
            try:
                yield _operation(document, path, method, item)
            except OpenApiError as bad:
                yield UnusableOperation(f"{method.upper()} {path}", str(bad))


def _operation(
    document: ApiDocument, path: str, method: str, item: Mapping[str, Any]
) -> ApiOperation:
    node = document.resolve(item[method])
    security = node.get("security")
    tags = node.get("tags")
    return ApiOperation(
        operation_id=str(node.get("operationId") or ""),
        method=method.upper(),
        path=path,
        summary=" ".join(str(node.get("summary") or item.get("summary") or "").split()),
        description=str(node.get("description") or item.get("description") or "").strip(),
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        parameters=tuple(_parameters(document, path, item, node)),
        body=_body(document, node),
        responses=member(node, "responses"),
        security=security if isinstance(security, list) else None,
        deprecated=node.get("deprecated") is True,
    )


def _parameters(
    document: ApiDocument, path: str, item: Mapping[str, Any], node: Mapping[str, Any]
) -> list[ApiParameter]:
    """The parameters of an operation: its own, and those of its path that it does not replace.

    A variable of the path without a parameter is a string.
    """
    found: dict[tuple[str, str], ApiParameter] = {}
    variables = VARIABLE.findall(path)
    for given in (*_list(item, "parameters"), *_list(node, "parameters")):
        made = _parameter(document, document.resolve(given))
        if made is None or (made.place == "path" and made.name not in variables):
            continue
        name = made.name.lower() if made.place == "header" else made.name
        found[made.place, name] = made
    for name in variables:
        if ("path", name) not in found:
            found["path", name] = ApiParameter(
                name=name,
                place="path",
                required=True,
                schema={"type": "string"},
                style="simple",
                explode=False,
            )
    return sorted(found.values(), key=lambda parameter: _PLACES.index(parameter.place))


def _parameter(document: ApiDocument, node: Mapping[str, Any]) -> ApiParameter | None:
    place = node.get("in")
    name = node.get("name")
    if place not in _PLACES or not isinstance(name, str) or not name:
        raise OpenApiError(f"a parameter needs a name and a place, not {name!r:.40} in {place!r}")
    if place == "header" and is_reserved_header(name):
        return None
    style = node.get("style", _DEFAULT_STYLES[place])
    if style not in _STYLES[place]:
        raise OpenApiError(f"the parameter {name} has the style {style!r:.40}, unknown in {place}")
    schema = node.get("schema")
    media = member(node, "content")
    if media:
        schema = member(media, next(iter(media))).get("schema")
    return ApiParameter(
        name=name,
        place=place,
        required=node.get("required") is True or place == "path",
        schema={"type": "string"} if schema is None else schema,
        description=str(node.get("description") or "").strip(),
        style=style,
        explode=_flag(node, "explode", otherwise=style in ("form", "deepObject")),
        reserved=node.get("allowReserved") is True,
        is_json=any(map(is_json, media)),
    )


def _body(document: ApiDocument, node: Mapping[str, Any]) -> ApiBody | None:
    if "requestBody" not in node:
        return None
    body = document.resolve(node["requestBody"])
    media = member(body, "content")
    if not media:
        return None
    media_type = min(media, key=_preference)
    details = member(media, media_type)
    return ApiBody(
        media_type=media_type.strip(),
        schema=details.get("schema", {}),
        required=body.get("required") is True,
        description=str(body.get("description") or "").strip(),
        encoding=member(details, "encoding"),
    )


def _preference(media_type: str) -> int:
    """The order of media types of a request: the one that a model writes best is the first."""
    kind = media_type.partition(";")[0].strip().lower()
    if kind == "application/json":
        return 0
    if is_json(kind):
        return 1
    if kind == "multipart/form-data":
        return 2
    if kind == "application/x-www-form-urlencoded":
        return 3
    return 4 if kind.startswith("text/") else 5


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON."""
    kind = media_type.partition(";")[0].strip().lower()
    return kind in ("application/json", "text/json") or kind.endswith("+json")


def is_reserved_header(name: str) -> bool:
    """Whether callers must not set a header."""
    low = name.lower()
    return low in _NO_PARAMETERS or low.startswith(_NO_PREFIXES)


def _flag(node: Mapping[str, Any], name: str, *, otherwise: bool) -> bool:
    value = node.get(name)
    return value if isinstance(value, bool) else otherwise


def _list(node: Mapping[str, Any], name: str) -> list[Any]:
    value = node.get(name)
    return value if isinstance(value, list) else []
