"""The page of an MCP App, the Content-Security-Policy for it, and what the host refuses (pure).

MCP Apps, 2026-01-26 (`io.modelcontextprotocol/ui`).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from interlock import ResourceContents
from interlock.types import APP_MIME_TYPE, UI_EXTENSION, JSONObject, Tool

DECLARED: Mapping[str, JSONObject] = {UI_EXTENSION: {"mimeTypes": [APP_MIME_TYPE]}}
"""The extension that a host with a page declares to every server (`APP-01`, `EXT-08`)."""

MOST_PAGE = 4 * 1024 * 1024  # characters of an app's page
MOST_DOMAINS = 20  # of one kind
PERMISSIONS = {
    "camera": "camera",
    "microphone": "microphone",
    "geolocation": "geolocation",
    "clipboardWrite": "clipboard-write",
}

# Exactly one public https or wss origin: without path, user or policy keyword, and without an
# address of this machine or the local network. An app has no business there; its server can offer a
# tool for it.
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_ORIGIN = re.compile(
    r"(?P<scheme>https|wss)://(?P<any>\*\.)?"
    rf"(?P<host>(?:{_LABEL}\.)+(?P<top>[a-z][a-z0-9-]*[a-z0-9]))"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?"
)
_HERE = frozenset(
    {
        "local",
        "localhost",
        "internal",
        "home",
        "lan",
        "intranet",
        "private",
        "corp",
        "localdomain",
        "arpa",
    }
)
_KINDS = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")


class BadApp(ValueError):
    """This cannot be shown as an app; the message says why."""


class DeclaredOrigins(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The origins that an app may use: declared by its server, accepted by the host (`APP-15`)."""

    connect_domains: tuple[str, ...] = ()
    resource_domains: tuple[str, ...] = ()
    frame_domains: tuple[str, ...] = ()
    base_uri_domains: tuple[str, ...] = ()

    @property
    def domains(self) -> tuple[str, ...]:
        """All origins, each once."""
        return tuple(
            dict.fromkeys(
                (
                    *self.connect_domains,
                    *self.resource_domains,
                    *self.frame_domains,
                    *self.base_uri_domains,
                )
            )
        )


class AppPage(Struct, frozen=True, kw_only=True):
    """An app as its server sent it: the document, its origins, the refused ones, and the
    permissions it asks for.
    """

    html: str
    csp: DeclaredOrigins = DeclaredOrigins()
    refused: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    border: bool | None = None


def ui_of(tool: Tool) -> str:
    """The URI of the app that shows a tool's results; "" if there is none (`APP-04`; also the older
    flat key).
    """
    meta = tool.meta or {}
    ui = meta.get("ui")
    uri = ui.get("resourceUri") if isinstance(ui, dict) else None
    uri = meta.get("ui/resourceUri") if uri is None else uri
    return uri if isinstance(uri, str) and uri.startswith("ui://") else ""


def read_page(uri: str, contents: Sequence[ResourceContents]) -> AppPage:
    """Read an app from a server's answer to `resources/read`.

    Raises BadApp if it is not an app (`APP-03`).
    """
    found = next(
        (part for part in contents if part.uri == uri), contents[0] if len(contents) == 1 else None
    )
    if found is None:
        raise BadApp(f"The server returned {len(contents)} contents for {uri}, none with that URI.")
    if _plain_type(found.mime_type) != APP_MIME_TYPE:
        raise BadApp(
            f"{uri} is of type {found.mime_type or '(none)'}; an app is of type {APP_MIME_TYPE}."
        )
    html = _text(found)
    if len(html) > MOST_PAGE:
        raise BadApp(f"The page of {uri} is larger than {MOST_PAGE // 1024 // 1024} MB.")
    ui = (found.meta or {}).get("ui")
    ui = ui if isinstance(ui, dict) else {}
    csp, refused = accepted(ui.get("csp"))
    wishes = ui.get("permissions")
    permissions = tuple(
        name
        for name in PERMISSIONS
        if isinstance(wishes, dict) and wishes.get(name) not in (None, False)
    )
    border = ui.get("prefersBorder")
    return AppPage(
        html=html,
        csp=csp,
        refused=refused,
        permissions=permissions,
        border=border if isinstance(border, bool) else None,
    )


def accepted(declared: Any) -> tuple[DeclaredOrigins, tuple[str, ...]]:
    """The accepted and the refused declared domains: only plain public origins are accepted
    (`APP-15`).
    """
    if not isinstance(declared, dict):
        return DeclaredOrigins(), () if declared is None else (f"csp: {declared!r}"[:200],)
    taken: dict[str, tuple[str, ...]] = {}
    refused: list[str] = []
    for kind in _KINDS:
        listed = declared.get(kind)
        if isinstance(listed, list):
            given = listed
        elif listed is None:
            given = []
        else:
            given = [listed]
        good = [
            each
            for each in given
            if isinstance(each, str) and is_origin(each, sockets=kind == "connectDomains")
        ]
        taken[kind] = tuple(dict.fromkeys(good))[:MOST_DOMAINS]
        refused += [f"{kind}: {each!r}"[:200] for each in given if each not in taken[kind]]
    connect, resource, frame, base = (taken[kind] for kind in _KINDS)
    return DeclaredOrigins(
        connect_domains=connect,
        resource_domains=resource,
        frame_domains=frame,
        base_uri_domains=base,
    ), tuple(refused)


def is_origin(text: str, *, sockets: bool = False) -> bool:
    """Whether a text is one public origin (`https://host`, `https://*.host`, with a port), and
    nothing that a policy would read as more.
    """
    found = _ORIGIN.fullmatch(text)
    if (
        found is None
        or (found["scheme"] == "wss" and not sockets)
        or int(found["port"] or 443) > 65535
        or len(text) > 260
    ):
        return False
    return found["top"] not in _HERE and not (found["any"] and found["host"].count(".") < 1)


def policy(csp: DeclaredOrigins, ancestor: str) -> str:
    """The Content-Security-Policy for an app in a page of the origin `ancestor` (`APP-15` to
    `APP-17`).
    """
    resources = " ".join(("", *csp.resource_domains))
    parts = {
        "default-src": "'none'",
        "script-src": f"'self' 'unsafe-inline'{resources}",
        "style-src": f"'self' 'unsafe-inline'{resources}",
        "img-src": f"'self' data:{resources}",
        "media-src": f"'self' data:{resources}",
        "font-src": f"'self'{resources}",
        "connect-src": " ".join(csp.connect_domains) or "'none'",
        "frame-src": " ".join(csp.frame_domains) or "'none'",
        "base-uri": " ".join(csp.base_uri_domains) or "'self'",
        "worker-src": "'none'",
        "manifest-src": "'none'",
        "object-src": "'none'",
        "form-action": "'none'",
        "frame-ancestors": ancestor,
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def _plain_type(mime_type: str | None) -> str:
    return re.sub(r"\s*;\s*", ";", (mime_type or "").strip().lower())


def _text(contents: ResourceContents) -> str:
    if contents.text is not None:
        return contents.text
    if len(contents.blob or "") > MOST_PAGE * 4:
        raise BadApp(f"The page of {contents.uri} is too large.")
    try:
        return base64.b64decode(contents.blob or "", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise BadApp(f"The page of {contents.uri} is not UTF-8 text.") from None
