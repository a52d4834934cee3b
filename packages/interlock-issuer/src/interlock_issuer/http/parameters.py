"""Parameters of an OAuth request, from the query or from a form: bounded, and each name once (RFC
6749, 3.1).
"""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request

MAX_QUERY = 16 * 1024
"""Characters of a query."""
MAX_FIELDS = 64
REPEATABLE = frozenset({"resource", "audience"})
"""Parameters that may come more than once (RFC 8707, 2; RFC 8693, 2.1)."""
FORM = "application/x-www-form-urlencoded"


class BadParameters(ValueError):
    """The parameters of a request cannot be read; the message says why."""


def query_parameters(request: Request) -> dict[str, str]:
    """Read the parameters of the query.

    A parameter without a value counts as absent (RFC 6749, 3.1). Several values of a name in
    `REPEATABLE` are joined by blanks.

    Raises:
        BadParameters: Another name comes twice, or the query cannot be decoded.
    """
    query = request.url.query
    if len(query) > MAX_QUERY:
        raise BadParameters(f"the query is longer than {MAX_QUERY} characters")
    return parse(query)


async def form_parameters(request: Request) -> dict[str, str]:
    """Read the parameters of an urlencoded body, by the rules of `query_parameters`.

    Raises:
        BadParameters: The body is not a form, or cannot be decoded.
    """
    if media_type(request) != FORM:
        raise BadParameters(f"the body must be {FORM}")
    body = await request.body()
    try:
        return parse(body.decode("ascii"))
    except UnicodeDecodeError:
        raise BadParameters("the body is not percent-encoded") from None


def parse(text: str) -> dict[str, str]:
    """Parse urlencoded parameters. Raises BadParameters."""
    if not text:
        return {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError:
        raise BadParameters("the value of a parameter is not UTF-8") from None
    except ValueError:
        raise BadParameters(f"there are more than {MAX_FIELDS} parameters") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if any(c < " " and c not in "\t\r\n" for c in value):
            raise BadParameters(f"{name[:40]} holds a control character")
        if name not in found:
            found[name] = value
        elif name in REPEATABLE:
            found[name] = f"{found[name]} {value}"
        else:
            raise BadParameters(f"{name[:40]} comes more than once")
    return {name: value for name, value in found.items() if value}


def media_type(request: Request) -> str:
    """Return the media type of the body, without its parameters, in lower case."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def header(request: Request, name: str) -> str | None:
    """Return a header of the request.

    Repeated headers are joined by commas, so that a doubled Authorization or DPoP header is one
    that nothing can parse, and never the first or the last of two.
    """
    values = request.headers.getlist(name)
    return ", ".join(values) if values else None


def address_of(request: Request) -> str:
    """Return the network address of the client."""
    return "" if request.client is None else request.client.host
