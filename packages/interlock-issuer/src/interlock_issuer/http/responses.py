"""Responses of the issuer, as Starlette sends them: JSON, pages and redirects that nobody caches or
frames.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.responses import HTMLResponse, PlainTextResponse, Response

NO_STORE = ("cache-control", "no-store")
QUIET_PAGE = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The Content-Security-Policy of a page without forms and styles."""
Headers = Iterable[tuple[str, str]]


def with_headers(response: Response, *headers: tuple[str, str]) -> Response:
    """Add headers to a response, and return it."""
    for name, value in headers:
        response.headers.append(name, value)
    return response


def json_response(value: Any, status: int = 200, headers: Headers = (NO_STORE,)) -> Response:
    """Return a JSON document that nobody caches, unless `headers` say otherwise."""
    body = msgspec.json.encode(value)
    return with_headers(Response(body, status, media_type="application/json"), *headers)


def html_response(
    html: str, status: int = 200, *, policy: str = QUIET_PAGE, headers: Headers = ()
) -> Response:
    """Return a page for a person, which nobody frames or caches.

    Args:
        html: The whole page. Untrusted text in it is escaped already.
        status: The HTTP status.
        policy: Its Content-Security-Policy.
        headers: More headers.
    """
    return with_headers(
        HTMLResponse(html, status),
        ("content-security-policy", policy),
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        # With "no-referrer" a browser would hide the Origin of our own forms too.
        ("referrer-policy", "same-origin"),
        NO_STORE,
        *headers,
    )


def redirect_response(url: str, status: int = 303, headers: Headers = ()) -> Response:
    """Send the browser to an address, with 303, so that it does not send a form along.

    Raises:
        ValueError: The address holds characters that no header may have.
    """
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"a browser cannot be redirected to {url!r}")
    return with_headers(
        Response(status_code=status),
        ("location", url),
        ("referrer-policy", "no-referrer"),
        NO_STORE,
        *headers,
    )


def text_response(status: int, words: str, headers: Headers = ()) -> Response:
    """Return a line of text."""
    return with_headers(PlainTextResponse(words, status), NO_STORE, *headers)
