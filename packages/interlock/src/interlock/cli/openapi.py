"""`interlock openapi`: serve the operations of an OpenAPI document as tools."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import click

from .. import OpenApi, OpenApiError, Server
from ..redaction import url_without_secrets
from ..types import InterlockError
from .run.running import chosen_transport, run_server, with_transport_options
from .screen import WARNING
from .targets.reach import expanded
from .targets.target_syntax import header_lines

_LARGEST_DOCUMENT = 64 * 1024 * 1024
_SECONDS = 60.0  # to fetch the document
_SHOWN_PROBLEMS = 5


@click.command("openapi")
@click.argument("spec")
@click.option(
    "--base",
    required=True,
    metavar="URL",
    help="The base address of the API. It is never taken from the document.",
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME: VALUE",
    help="A header of each request to the API; $VARIABLES are replaced.",
)
@click.option(
    "--token", metavar="TOKEN", help="A bearer token for the API; $VARIABLES are replaced."
)
@click.option(
    "--auth",
    "secrets",
    multiple=True,
    metavar="SCHEME=SECRET",
    help="A secret for a security scheme of the document; $VARIABLES are replaced.",
)
@click.option("--only", multiple=True, metavar="PATTERN", help="Offer only tools of these names.")
@click.option("--without", multiple=True, metavar="PATTERN", help="Leave out tools of these names.")
@click.option(
    "--search/--no-search",
    default=None,
    help="Offer two tools, to search operations and to call one.  [default: above 40 operations]",
)
@click.option(
    "--pages", type=click.IntRange(1), default=1, help="The most pages of a list that are joined."
)
@with_transport_options
def openapi(
    spec: str,
    base: str,
    headers: Sequence[str],
    token: str | None,
    secrets: Sequence[str],
    only: Sequence[str],
    without: Sequence[str],
    search: bool | None,
    pages: int,
    **given: Any,
) -> None:
    """Serve the operations of the OpenAPI document SPEC as tools.

    SPEC is a file, or the URL of one: JSON or YAML, of version 3.0 or 3.1. Over stdio by default.

    \b
    interlock openapi petstore.json --base https://petstore.example/v1
    interlock openapi api.yaml --base https://api.example --token '$API_TOKEN' --http :8000
    interlock openapi api.json --base https://api.example --only 'get_*' --without '*_all'
    """
    transport, options = chosen_transport(given)
    if token is not None and secrets:
        raise click.UsageError("Give either --token or --auth.")
    try:
        api = OpenApi(
            _fetched(spec) if urlsplit(spec).scheme in ("http", "https") else spec,
            base=base,
            auth=expanded(token, "--token") if token is not None else _named(secrets) or None,
            headers={
                name: expanded(value, f"The header {name}")
                for name, value in header_lines(headers).items()
            },
            search=False if search is None and (only or without) else search,
            pages=pages,
        )
    except OpenApiError as bad:
        raise click.UsageError(f"{bad}.") from None
    for unusable in api.unusable[:_SHOWN_PROBLEMS]:
        click.echo(f"{WARNING}{unusable.place} is left out: {unusable.reason}", err=True)
    if (more := len(api.unusable) - _SHOWN_PROBLEMS) > 0:
        click.echo(f"{WARNING}{more} more operations are left out.", err=True)
    server = Server(api.name)
    server.mount(api, tools=list(only) or None, without=list(without))
    run_server(server, transport, options)


def _named(secrets: Sequence[str]) -> dict[str, str]:
    """The secrets by the name of their scheme. Raises click.UsageError."""
    found = {}
    for words in secrets:
        name, equals, secret = words.partition("=")
        if not name or not equals:
            raise click.UsageError("--auth takes SCHEME=SECRET.")
        found[name] = expanded(secret, f"--auth {name}")
    return found


def _fetched(url: str) -> bytes:
    """The document at a URL that the user has given. Raises click.UsageError."""
    try:
        return asyncio.run(_fetch(url))
    except (InterlockError, ValueError) as bad:
        raise click.UsageError(f"{url_without_secrets(url)} cannot be read: {bad}") from None


async def _fetch(url: str) -> bytes:
    # imported late: only needed for documents on the web
    from ..http11.client import HttpFetch
    from ..http11.fetch import Request
    from ..server.sources.openapi.sending import ApiSender

    fetch = HttpFetch()
    try:
        sender = ApiSender(fetch, None, limit=_LARGEST_DOCUMENT, timeout=_SECONDS)
        response = await sender.send(Request("GET", url, (("Accept", "application/json, */*"),)))
    finally:
        await fetch.aclose()
    if response.status != 200:
        raise click.UsageError(f"{url_without_secrets(url)} answered with {response.status}.")
    return response.body
