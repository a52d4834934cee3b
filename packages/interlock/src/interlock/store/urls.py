"""URLs of stores and vaults: extracts the path, and the server without its password."""

from __future__ import annotations

from urllib.parse import urlsplit


def path_in(rest: str) -> str:
    """Return the path after the scheme and the colon of a URL; empty if there is none."""
    if not rest.startswith("//"):
        return rest
    return rest[2:] if rest.startswith("///") and len(rest) > 3 else ""


def server_address(url: str) -> str:
    """Return the address of the Redis or Valkey server in a URL, without its password."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "unix":
            return parts.path
        return f"{parts.hostname or 'localhost'}:{parts.port or 6379}"
    except ValueError:
        return "?"
