"""MCP Apps: HTML pages that show the results of tools (SEP-1865, `io.modelcontextprotocol/ui`)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

from msgspec import Struct
from msgspec.structs import replace

from ... import types as t
from ...exchange import AnyResult
from ...typed.output import Output, OutputError, can_be_text
from ...typed.type_hints import bare, named, read_hints
from ...types.apps import APP_MIME_TYPE, AppAudience, AppPermission
from ..catalogue.features import FeatureList, ToolFeature

EVERYBODY: Final[tuple[AppAudience, ...]] = ("model", "app")
"""The default of `visibility` in the specification."""

_HOST = r"(?:(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
_ORIGIN = re.compile(rf"https?://{_HOST}(?::\d{{1,5}})?")
_SOCKET = re.compile(rf"wss?://{_HOST}(?::\d{{1,5}})?")
# The first thing in an HTML5 document after white space and comments.
_DOCTYPE = re.compile(r"\ufeff?(?:\s|<!--.*?-->)*<!doctype\s+html\s*>", re.IGNORECASE | re.DOTALL)


class Csp(Struct, frozen=True, kw_only=True):
    """The origins that an app's page uses, for the Content-Security-Policy that the host builds.

    Each is an origin without a path, such as `https://api.example.com` or `https://*.example.com`.
    The host blocks every origin that is not declared.

    Args:
        connect: Origins of fetch, XMLHttpRequest and WebSocket; `wss://` too.
        resource: Origins of scripts, styles, images, fonts and media files.
        frame: Origins of frames within the page.
        base_uri: Origins that may be the base of the page's relative URLs.

    Raises:
        ValueError: A string is not an origin.
        TypeError: A string was given in place of a list of strings.
    """

    connect: Sequence[str] = ()
    resource: Sequence[str] = ()
    frame: Sequence[str] = ()
    base_uri: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("connect", "resource", "frame", "base_uri"):
            origins = getattr(self, name)
            if isinstance(origins, str):
                raise TypeError(f"Csp({name}=...) takes a list of origins: {name}=[{origins!r}]")
            for origin in origins:
                _check_origin(name, origin)

    def declared(self) -> t.JSONObject:
        """Return the object `_meta.ui.csp` of the specification, without empty members."""
        named_origins = {
            "connectDomains": list(self.connect),
            "resourceDomains": list(self.resource),
            "frameDomains": list(self.frame),
            "baseUriDomains": list(self.base_uri),
        }
        return {name: origins for name, origins in named_origins.items() if origins}


class App:
    """The app of a server: the resource with its page, and the tools that show their results in it.

    `Server.app` returns one.
    """

    def __init__(self, uri: str, tools: FeatureList[ToolFeature]) -> None:
        self.uri = uri
        self._tools = tools

    def link(
        self,
        tool: Callable[..., Any] | str,
        *,
        visibility: Sequence[AppAudience] = EVERYBODY,
    ) -> None:
        """Show the results of another tool in this app.

        Args:
            tool: The function of a tool of this server, or the tool's name.
            visibility: Who may call the tool. `("app",)` hides it from models, for tools behind the
                buttons of the page.

        Raises:
            ValueError: The tool is not one of this server, or is in another app.
            TypeError: The tool cannot answer in text, which hosts without apps need.
        """
        self._tools.add(linked(find_tool(self._tools, tool), self.uri, visibility), replace=True)


class TextRequired(Output):
    """The output of a tool with an app. A result without text is an error, because hosts without
    apps and models read the text (`APP-05`).
    """

    def __init__(self, inner: Output) -> None:
        super().__init__(inner.schema)
        self._inner = inner

    async def prepare(self, value: Any) -> Any:
        """Encode and check a long list in pieces."""
        return await self._inner.prepare(value)

    def result(self, value: Any, *, structured: bool = True, encoded: bool = False) -> AnyResult:
        """Return the result to send. Raises OutputError."""
        result = self._inner.result(value, structured=structured, encoded=encoded)
        if isinstance(result, t.CallToolResult) and not result.is_error and not _has_text(result):
            raise OutputError(
                "it has no text, and hosts without apps and models read nothing else: "
                "return text or data, or a ToolResult with both"
            )
        return result


def find_tool(tools: FeatureList[ToolFeature], tool: Callable[..., Any] | str) -> ToolFeature:
    """Return the tool with this name or function. Raises ValueError if there is none or more than
    one.
    """
    if isinstance(tool, str):
        found = [feature for feature in tools.all() if feature.key == tool]
    else:
        found = [feature for feature in tools.all() if feature.call.function == tool]
    what = repr(tool) if isinstance(tool, str) else named(tool)
    if not found:
        raise ValueError(
            f"{what} is not a tool of this server: add it with @server.tool before server.app"
        )
    if len(found) > 1:
        names = ", ".join(feature.key for feature in found)
        raise ValueError(f"{what} is the function of several tools: name one of {names}")
    return found[0]


def linked(tool: ToolFeature, uri: str, visibility: Sequence[AppAudience]) -> ToolFeature:
    """Return the tool with `_meta.ui`. If a model may call it, its results are checked to have
    text.

    Raises ValueError and TypeError, as `App.link` does.
    """
    audience = _checked("visibility", visibility, get_args(AppAudience))
    if not audience:
        raise ValueError("visibility is empty: nobody could call the tool")
    meta = dict(tool.listing.meta or {})
    ui = meta.get("ui")
    ui = dict(ui) if isinstance(ui, dict) else {}
    if ui.get("resourceUri", uri) != uri:
        raise ValueError(f"the tool {tool.key} shows its results in {ui['resourceUri']} already")
    ui["resourceUri"] = uri
    if set(audience) != set(EVERYBODY):
        ui["visibility"] = audience
    meta["ui"] = ui
    output = tool.output
    if "model" in audience and not isinstance(output, TextRequired):
        _check_text(tool)
        output = TextRequired(output)
    return replace(tool, listing=replace(tool.listing, meta=meta), output=output)


def page_meta(
    csp: Csp | None,
    permissions: Iterable[AppPermission],
    domain: str | None,
    prefers_border: bool | None,
) -> t.JSONObject | None:
    """Return the `_meta` of a page, which is the same in `resources/list` and in `resources/read`
    (`APP-35`).
    """
    ui: t.JSONObject = {}
    if csp is not None:
        ui["csp"] = csp.declared()
    if wanted := _checked("permissions", permissions, get_args(AppPermission)):
        ui["permissions"] = {name: {} for name in wanted}
    if domain is not None:
        ui["domain"] = domain
    if prefers_border is not None:
        ui["prefersBorder"] = prefers_border
    return {"ui": ui} if ui else None


def page_uri(server_name: str, uri: str | None, path: Path) -> str:
    """Return the URI of a page: the given one, or else `ui://SERVER/FILE` without the suffix
    (`APP-03`).
    """
    if uri is None:
        return f"ui://{_slug(server_name)}/{_slug(path.stem)}"
    if not uri.startswith("ui://"):
        raise ValueError(f"{uri!r} cannot be the URI of an app: it must begin with ui://")
    return uri


def page_path(file: str | os.PathLike[str], tool: ToolFeature) -> Path:
    """Return the path of a page. A relative path begins in the folder of the file that defines the
    tool.

    It does not begin in the working folder, because a host may start the server in any folder.
    """
    path = _folder_of(tool.call.function) / Path(file)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path} for the app of the tool {tool.key}")
    _check_page(path)
    return path


def page_reader(
    path: Path, uri: str, meta: t.JSONObject | None
) -> Callable[[], t.ResourceContents | None]:
    """Return a function that reads the page each time, so that hosts get the latest version."""
    return partial(_read_page, path, uri, meta)


def _read_page(path: Path, uri: str, meta: t.JSONObject | None) -> t.ResourceContents | None:
    try:
        html = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None  # the file was deleted after the start
    return t.ResourceContents(uri=uri, mime_type=APP_MIME_TYPE, text=html, meta=meta)


def _check_page(path: Path) -> None:
    try:
        html = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as bad:
        raise ValueError(f"{path} is not in UTF-8: {bad}") from None
    if not _DOCTYPE.match(html):
        raise ValueError(f"{path} is not an HTML5 document: it must begin with <!doctype html>")


def _check_text(tool: ToolFeature) -> None:
    """Reject a tool whose annotation shows that its results have no text (`APP-05`)."""
    function = tool.call.function
    if tool.output.schema is not None:
        return  # structured data is sent as text too
    if "return" not in read_hints(function).types:
        raise TypeError(
            f"{named(function)} does not say what it returns: annotate it, for instance with ->"
            " str. "
            "A tool with an app must answer in text too, for hosts without apps and for models"
        )
    if not can_be_text(function):
        raise TypeError(
            f"{named(function)} returns no text, and a tool with an app must: hosts without apps "
            "show it, and models read it. Return text or data, or a ToolResult with both"
        )


def _has_text(result: t.CallToolResult) -> bool:
    return any(isinstance(block, t.TextContent) and block.text.strip() for block in result.content)


def _check_origin(name: str, origin: object) -> None:
    sockets = name == "connect"
    if isinstance(origin, str) and (
        _ORIGIN.fullmatch(origin) or (sockets and _SOCKET.fullmatch(origin))
    ):
        return
    example = (
        "https://api.example.com or wss://api.example.com" if sockets else "https://example.com"
    )
    raise ValueError(
        f"Csp({name}=...): {origin!r} is not an origin such as {example}, without a path"
    )


def _checked(what: str, given: Iterable[str], known: Sequence[str]) -> list[str]:
    if isinstance(given, str):
        raise TypeError(f"{what} is a list of names: [{given!r}]")
    names = list(dict.fromkeys(given))
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"{what} cannot be {unknown[0]!r}; there are {', '.join(known)}")
    return names


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-") or "app"


def _folder_of(function: Callable[..., Any]) -> Path:
    """Return the folder of the file that defines a function; the working folder if there is no such
    file.
    """
    module = sys.modules.get(getattr(bare(function), "__module__", None) or "")
    file = getattr(module, "__file__", None)
    return Path(file).resolve().parent if file else Path.cwd()
