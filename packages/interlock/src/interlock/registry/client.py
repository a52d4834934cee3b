"""A client of the MCP registry's interface (v0.1)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from ..addresses import is_here
from ..http11.client import HttpFetch
from ..http11.fetch import Request
from ..redaction import url_without_secrets
from ..types import InterlockError

ADDRESS: Final = "https://registry.modelcontextprotocol.io"
"""The official registry."""

VARIABLE: Final = "INTERLOCK_REGISTRY"
"""The environment variable with the address of another registry."""

_LARGEST = 8 * 1024 * 1024
_SECONDS = 30.0


class RegistryError(InterlockError):
    """The registry refused, or could not be reached.

    Attributes:
        status: The HTTP status of the refusal; 0 if the registry could not be reached.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def registry_address(given: str | None = None) -> str:
    """Return the address of the registry: the given one, that of the environment, or the official
    one.

    Raises:
        ValueError: It is not an https address, nor one of this machine.
    """
    address = (given or os.environ.get(VARIABLE) or ADDRESS).rstrip("/")
    parts = urlsplit(address)
    if parts.scheme == "https" or (
        parts.scheme == "http" and parts.hostname is not None and is_here(parts.hostname)
    ):
        return address
    raise ValueError(
        f"{url_without_secrets(address)} is not the address of a registry: it begins with https://"
    )


class Registry:
    """One registry.

    Args:
        address: Its address, without a path.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    async def search(self, words: str, limit: int) -> list[dict[str, Any]]:
        """Return the latest version of the servers whose names contain a text.

        Args:
            words: The text.
            limit: The maximum number of servers.

        Raises:
            RegistryError: The registry refused, or could not be reached.
        """
        found: list[dict[str, Any]] = []
        cursor = ""
        while len(found) < limit:
            query = {"search": words, "version": "latest", "limit": str(min(limit, 100))}
            if cursor:
                query["cursor"] = cursor
            page = await self._call("GET", f"/v0.1/servers?{urlencode(query)}")
            listed = page.get("servers")
            servers = listed if isinstance(listed, list) else []
            servers = [one for one in servers if isinstance(one, dict)]
            found += servers
            metadata = page.get("metadata")
            cursor = str(metadata.get("nextCursor") or "") if isinstance(metadata, dict) else ""
            if not cursor or not servers:
                break
        return found[:limit]

    async def server(self, name: str, version: str = "latest") -> dict[str, Any]:
        """Return one version of a server, with what the registry says about it.

        Raises:
            RegistryError: There is no such server.
        """
        place = f"/v0.1/servers/{quote(name, safe='')}/versions/{quote(version, safe='')}"
        return await self._call("GET", place)

    async def token(self, method: str, proof: Mapping[str, str]) -> str:
        """Exchange a proof of identity for a token of the registry.

        Args:
            method: "github-at", "github-oidc", "dns" or "http".
            proof: The members of the request.
        """
        answer = await self._call("POST", f"/v0.1/auth/{method}", body=dict(proof))
        token = answer.get("registry_token")
        if not isinstance(token, str) or not token:
            raise RegistryError("The registry answered the login without a token.", 200)
        return token

    async def publish(self, document: dict[str, Any], token: str) -> dict[str, Any]:
        """Publish a server.json.

        Raises:
            RegistryError: The registry refused.
        """
        return await self._call("POST", "/v0.1/publish", body=document, token=token)

    async def _call(
        self, method: str, path: str, *, body: dict[str, Any] | None = None, token: str = ""
    ) -> dict[str, Any]:
        try:
            status, text = await fetched(method, self.address + path, body, token)
        except (InterlockError, TimeoutError) as bad:
            raise RegistryError(f"{self.address} cannot be reached: {bad}") from None
        try:
            answer = msgspec.json.decode(text) if text else {}
        except msgspec.DecodeError:
            answer = {}
        if status >= 300 or not isinstance(answer, dict):
            why = _reason(answer)
            raise RegistryError(
                f"The registry refused with {status}" + (f": {why}" if why else "."), status
            )
        return answer


async def fetched(
    method: str, url: str, body: dict[str, Any] | None = None, token: str = ""
) -> tuple[int, bytes]:
    """Make one request. Returns the status and the body.

    Raises:
        InterlockError: The server cannot be reached, or answers with too much.
        TimeoutError: It takes too long.
    """
    headers = [("Accept", "application/json")]
    content = b""
    if body is not None:
        headers.append(("Content-Type", "application/json"))
        content = msgspec.json.encode(body)
    if token:
        headers.append(("Authorization", f"Bearer {token}"))
    fetch = HttpFetch()
    try:
        async with asyncio.timeout(_SECONDS):
            response = await fetch(Request(method, url, tuple(headers), content))
            return response.status, await response.read(_LARGEST)
    finally:
        await fetch.aclose()


def _reason(answer: Any) -> str:
    """The words of an error: a problem document, or an object with `error`."""
    if not isinstance(answer, dict):
        return ""
    words = [str(answer.get(key)) for key in ("detail", "error", "title") if answer.get(key)][:1]
    words += [
        str(one.get("message"))
        for one in answer.get("errors") or ()
        if isinstance(one, dict) and one.get("message")
    ]
    return "; ".join(words)[:1000]
