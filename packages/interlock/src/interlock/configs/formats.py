"""The formats of the products: where the servers are in a document, and what each key means."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from .documents import Syntax
from .drafts import Draft, Fields, SkippedEntry, UnusableEntry
from .variables import VariableSyntax, written_plainly

_HTTP = {"http", "streamable-http", "streamablehttp", "streamable_http"}
_MILLISECONDS = 0.001
_LOGS_IN_BY_ITSELF = "the host discovers how to log in"


class Format(Struct, frozen=True, kw_only=True):
    """The format of one product or several.

    Attributes:
        name: Its name.
        syntax: The syntax of its documents.
        sections: The paths to the servers in a document; all that exist are read.
        draft: Reads one entry. Raises UnusableEntry or SkippedEntry.
        asks: Whether it supports `${input:id}`.
    """

    name: str
    syntax: Syntax
    sections: tuple[tuple[str, ...], ...]
    draft: Callable[[Fields], Draft]
    asks: bool = False


def sections_of(document: Mapping[str, Any], format: Format) -> Iterable[tuple[str, Any]]:
    """Yield the sections of a format that a document has, each with its name."""
    for path in format.sections:
        found: Any = document
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        if found is not None:
            yield ".".join(path), found


# -- mcpServers: Claude Desktop, Claude Code, Cursor, Windsurf, Gemini CLI -------------------------


def _mcp_servers(fields: Fields) -> Draft:
    """Read the union of the keys of all products with this section. Where the products differ,
    their keys have different names.
    """
    draft = _of_json(fields, VariableSyntax.SHELL | VariableSyntax.EDITOR)
    draft.tools = fields.texts("tools")
    draft.trusted = fields.flag("trusted")
    draft.roots = fields.texts("roots") or ()
    draft.without = (*(fields.texts("without") or ()), *(fields.texts("disabledTools") or ()))
    draft.start_seconds = fields.seconds("startTimeout", _MILLISECONDS)
    fields.refuse(
        "headersHelper",
        "the host does not run a program for headers; use `headers` with a variable, or log in",
    )
    for key in ("alwaysAllow", "autoApprove"):
        fields.note(key, "the policy of the host decides what needs approval")
    fields.note("alwaysLoad", "the host decides how tools are shown to the model")
    include = fields.texts("includeTools")
    draft.without = (*draft.without, *(fields.texts("excludeTools") or ()))
    if include is not None and draft.tools is not None:
        raise UnusableEntry("it has both tools and includeTools; keep one")
    draft.tools = include if draft.tools is None else draft.tools
    return draft


def _gemini(fields: Fields) -> Draft:
    """Read an entry of Gemini CLI: `url` is HTTP+SSE, `httpUrl` is Streamable HTTP, and `$NAME`
    is a variable too.
    """
    older = "httpUrl" not in fields and "type" not in fields
    draft = _mcp_servers(fields)
    draft.syntax |= VariableSyntax.BARE
    draft.legacy_sse = draft.legacy_sse or (bool(draft.url) and older)
    draft.trusted = draft.trusted or fields.flag("trust")
    fields.refuse("tcp", "WebSockets are not supported")
    for key in ("authProviderType", "targetAudience", "targetServiceAccount"):
        fields.refuse(key, "login by a Google account is not supported; use `headers`")
    return draft


def _of_json(fields: Fields, syntax: VariableSyntax) -> Draft:
    """Read the keys that all JSON formats have in common."""
    kind = fields.text("type").lower()
    draft = Draft(
        command=fields.text("command"),
        args=fields.texts("args") or (),
        env=fields.pairs("env"),
        env_file=fields.text("envFile"),
        cwd=fields.text("cwd"),
        url=fields.text("httpUrl", "serverUrl", "url"),
        headers=fields.pairs("headers"),
        legacy_sse=kind == "sse",
        disabled=fields.flag("disabled") or not fields.flag("enabled", True),
        timeout=fields.seconds("timeout", _MILLISECONDS),
        revision=fields.text("revision"),
        syntax=syntax,
    )
    fields.ignore(
        "httpUrl",
        "serverUrl",
        "url",
        "name",
        "description",
        "displayName",
        "icon",
        "version",
        "gallery",
        "$schema",
    )
    if kind and kind not in _HTTP | {"sse", "stdio", "local"}:
        raise UnusableEntry("its type is unknown; known are stdio, http and sse")
    if (kind in _HTTP or kind == "sse") and not draft.url:
        raise UnusableEntry(f"its type is {kind}, and it has no url")
    if kind in ("stdio", "local") and not draft.command:
        raise UnusableEntry("its type is stdio, and it has no command")
    for key in ("oauth", "auth"):
        fields.note(key, _LOGS_IN_BY_ITSELF)
    return draft


# -- VS Code and Zed -------------------------------------------------------------------------------


def _vscode(fields: Fields) -> Draft:
    draft = _of_json(fields, VariableSyntax.EDITOR)
    draft.trusted = fields.flag("trusted")
    draft.roots = fields.texts("roots") or ()
    if draft.url.startswith(("unix:", "pipe:")):
        raise UnusableEntry(
            "HTTP over a Unix socket or a named pipe is not supported; serve it at an http:// "
            "address"
        )
    fields.ignore("dev", "gallery")
    return draft


def _zed(fields: Fields) -> Draft:
    command = fields.value("command")
    inner = Fields(command) if isinstance(command, dict) else None  # the older syntax
    source = fields.text("source")
    if source == "extension" or not (command or "url" in fields):
        raise SkippedEntry("it is an extension of Zed, which only Zed can start")
    draft = Draft(
        command=inner.text("path") if inner is not None else fields.text("command"),
        args=((inner or fields).texts("args")) or (),
        env=(inner or fields).pairs("env"),
        url=fields.text("url"),
        headers=fields.pairs("headers"),
        disabled=not fields.flag("enabled", True),
    )
    fields.note("settings", "they are for extensions of Zed")
    for which in filter(None, (inner, fields)):
        which.note("timeout", "versions of Zed disagree on its unit")
    if inner is not None:
        fields.notes += [
            *inner.notes,
            *(f"its command.{key} is unknown and not used" for key in inner.leftover()),
        ]
    fields.note("oauth", _LOGS_IN_BY_ITSELF)
    return draft


# -- Codex -----------------------------------------------------------------------------------------


def _codex(fields: Fields) -> Draft:
    draft = Draft(
        command=fields.text("command"),
        args=fields.texts("args") or (),
        env=fields.pairs("env"),
        forwarded=tuple(_forwarded(fields.value("env_vars"))),
        cwd=fields.text("cwd"),
        url=fields.text("url"),
        headers=fields.pairs("http_headers"),
        headers_from={
            name: f"${{{_variable_name('env_http_headers', it)}}}"
            for name, it in fields.pairs("env_http_headers").items()
        },
        disabled=not fields.flag("enabled", True),
        tools=fields.texts("enabled_tools"),
        without=fields.texts("disabled_tools") or (),
        timeout=fields.seconds("tool_timeout_sec"),
    )
    in_seconds = fields.seconds("startup_timeout_sec")
    in_milliseconds = fields.seconds("startup_timeout_ms", _MILLISECONDS)
    draft.start_seconds = in_seconds if in_seconds is not None else in_milliseconds
    if bearer := fields.text("bearer_token_env_var"):
        draft.headers_from["Authorization"] = (
            f"Bearer ${{{_variable_name('bearer_token_env_var', bearer)}}}"
        )
    fields.refuse("bearer_token", "Codex refuses a token in its file too; use bearer_token_env_var")
    if fields.text("experimental_environment") not in ("", "local"):
        raise UnusableEntry(
            "it is meant to run elsewhere (experimental_environment), which this host does not "
            "support"
        )
    for key in ("default_tools_approval_mode", "tools"):
        fields.note(key, "the policy of the host decides what needs approval")
    for key in ("scopes", "oauth", "oauth_resource"):
        fields.note(key, _LOGS_IN_BY_ITSELF)
    fields.note("required", "a server that cannot be reached does not stop the host")
    fields.ignore("name", "supports_parallel_tool_calls")
    return draft


def _forwarded(names: Any) -> Iterable[str]:
    """Yield the names in `env_vars`: strings, or tables with a name."""
    if names is None:
        return
    for item in names if isinstance(names, list) else [names]:
        name = item.get("name") if isinstance(item, dict) else item
        if isinstance(item, dict) and item.get("source") not in (None, "local"):
            raise UnusableEntry(
                "one of its env_vars has another source, which this host does not support"
            )
        yield _variable_name("env_vars", name)


def _variable_name(key: str, name: Any) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UnusableEntry(f"its {key} must be names of variables")
    return name


# -- Goose -----------------------------------------------------------------------------------------


def _goose(fields: Fields) -> Draft:
    kind = fields.text("type")
    if kind in ("builtin", "platform", "frontend", "inline_python"):
        raise SkippedEntry(f"it is part of Goose ({kind}), which only Goose can start")
    if kind not in ("stdio", "sse", "streamable_http"):
        raise UnusableEntry("its type is unknown; known are stdio, streamable_http and sse")
    keys = fields.texts("env_keys") or ()
    envs = fields.pairs("envs")
    draft = Draft(
        command=fields.text("cmd") if kind == "stdio" else "",
        args=fields.texts("args") or (),
        env=envs,
        forwarded=tuple(_variable_name("env_keys", key) for key in keys if key not in envs),
        cwd=fields.text("cwd"),
        url=fields.text("uri") if kind != "stdio" else "",
        headers=fields.pairs("headers"),
        header_syntax=VariableSyntax.SHELL | VariableSyntax.BARE,
        legacy_sse=kind == "sse",
        disabled=not fields.flag("enabled", True),
        tools=fields.texts("available_tools") or None,  # an empty list means all of them
        timeout=fields.seconds("timeout"),
    )
    fields.refuse(
        "socket", "HTTP over a Unix socket is not supported; serve it at an http:// address"
    )
    fields.ignore("name", "description", "display_name", "bundled", "cmd", "uri")
    return draft


# -- opencode --------------------------------------------------------------------------------------

_OPENCODE_VARIABLE = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def _opencode(fields: Fields) -> Draft:
    """Read an entry of opencode: `command` is a list, and `{env:NAME}` is a variable, which is
    empty where it is not set.
    """
    kind = fields.text("type")
    if kind not in ("local", "remote"):
        raise UnusableEntry("its type is unknown; known are local and remote")
    command = tuple(map(_opencode_text, fields.texts("command") or ()))
    url = _opencode_text(fields.text("url"))
    if kind == "local" and not command:
        raise UnusableEntry("its type is local, and it has no command")
    if kind == "remote" and not url:
        raise UnusableEntry("its type is remote, and it has no url")
    is_local = kind == "local"
    draft = Draft(
        command=command[0] if is_local else "",
        args=command[1:] if is_local else (),
        env=_opencode_pairs(fields, "environment"),
        cwd=_opencode_text(fields.text("cwd")),
        url="" if is_local else url,
        headers=_opencode_pairs(fields, "headers"),
        disabled=not fields.flag("enabled", True),
        start_seconds=fields.seconds("timeout", _MILLISECONDS),
        syntax=VariableSyntax.SHELL,
    )
    fields.note("oauth", _LOGS_IN_BY_ITSELF)
    return draft


def _opencode_pairs(fields: Fields, key: str) -> dict[str, str]:
    return {name: _opencode_text(text) for name, text in fields.pairs(key).items()}


def _opencode_text(text: str) -> str:
    """Return a text with the variables of opencode in the syntax `${NAME:-}`."""
    if "{file:" in text:
        raise UnusableEntry("it takes a value from a file ({file:...}); use {env:NAME}")
    return _OPENCODE_VARIABLE.sub(r"${\1:-}", written_plainly(text))


_SERVERS = (("mcpServers",),)
VSCODE = Format(
    name="vscode",
    syntax="json",
    sections=(("servers",), ("mcp", "servers"), ("mcp.servers",)),
    draft=_vscode,
    asks=True,
)
ZED = Format(name="zed", syntax="json", sections=(("context_servers",),), draft=_zed)
MCP_SERVERS = Format(
    name="mcpServers", syntax="json", sections=_SERVERS, draft=_mcp_servers, asks=True
)
GEMINI = Format(name="gemini", syntax="json", sections=_SERVERS, draft=_gemini, asks=True)
CODEX = Format(name="codex", syntax="toml", sections=(("mcp_servers",),), draft=_codex)
GOOSE = Format(name="goose", syntax="yaml", sections=(("extensions",),), draft=_goose)
OPENCODE = Format(name="opencode", syntax="json", sections=(("mcp",),), draft=_opencode)

_ONLY_GEMINI = {"httpUrl", "trust", "includeTools", "excludeTools"}


def formats_of(document: Mapping[str, Any], syntax: Syntax) -> list[Format]:
    """Return the formats of a document, judged by its sections."""
    if syntax == "toml":
        return [CODEX]
    if syntax == "yaml":
        return [GOOSE]
    if _is_of_opencode(document):
        return [OPENCODE]
    return [
        GEMINI if format is MCP_SERVERS and _is_of_gemini(document) else format
        for format in (MCP_SERVERS, VSCODE, ZED)
        if any(True for _ in sections_of(document, format))
    ]


def _is_of_opencode(document: Mapping[str, Any]) -> bool:
    """Return whether an entry below `mcp` has a type of opencode; VS Code has a level between."""
    servers = document.get("mcp")
    entries = servers.values() if isinstance(servers, Mapping) else ()
    return any(
        isinstance(entry, Mapping) and entry.get("type") in ("local", "remote") for entry in entries
    )


def _is_of_gemini(document: Mapping[str, Any]) -> bool:
    servers = document.get("mcpServers")
    entries = servers.values() if isinstance(servers, Mapping) else ()
    return any(
        isinstance(entry, Mapping) and not _ONLY_GEMINI.isdisjoint(entry) for entry in entries
    )
