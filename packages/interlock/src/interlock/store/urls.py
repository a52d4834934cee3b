"""URLs of stores and vaults: the path in one, and the server in one without its password."""

from __future__ import annotations

from urllib.parse import urlsplit


def path_in(rest: str) -> str:
    """Return the path in what follows a scheme and its colon; empty if there is none."""
    if not rest.startswith("//"):
        return rest
    return rest[2:] if rest.startswith("///") and len(rest) > 3 else ""


def server_address(url: str) -> str:
    """Return where the Redis or Valkey server of a URL is, without its password."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "unix":
            return parts.path
        return f"{parts.hostname or 'localhost'}:{parts.port or 6379}"
    except ValueError:
        return "?"
