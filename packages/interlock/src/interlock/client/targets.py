"""Targets of a client, and the transports to them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from ..lazy_names import public_name
from ..transport.channel import Channel, Tap, Tapped
from ..transport.child_process import Confinement
from ..transport.conversation import ClientTransport
from ..transport.duplex import Duplex
from ..transport.stdio import Stdio
from ..version import VERSION
from ..wire.jsonrpc import Frame


class InProcess(Protocol):
    """A target in the same process, such as a `Server`."""

    def transport(self) -> ClientTransport:
        """Return a new transport to the target."""
        ...


Target = (
    InProcess
    | ClientTransport
    | Channel
    | str
    | Path
    | Sequence[str | os.PathLike[str]]
    | Mapping[str, Any]
)
"""The target of a client; see Client."""


def transport_to(
    target: Target,
    *,
    on_stderr: Callable[[str], None] | None = None,
    web: Mapping[str, Any] | None = None,
) -> ClientTransport:
    """Return the transport to a target; see Client for the targets.

    `web` are options of `Http`, which only a URL accepts.

    Raises TypeError or ValueError for an unknown target.
    """
    made = _transport_to(target, on_stderr, web or {})
    if web and not _is_http(made):
        raise TypeError(f"{', '.join(web)} can only be given for http:// and https:// addresses")
    return made


def add_tap(transport: ClientTransport, tap: Tap) -> None:
    """Record the messages of a transport, besides a tap that it may have.

    Raises TypeError for a transport that cannot be recorded.
    """
    if not isinstance(transport, Tapped):
        raise TypeError(f"{type(transport).__name__} cannot be recorded: it has no attribute tap")
    before = transport.tap

    def both(sender: str, frame: Frame) -> None:
        if before is not None:
            before(sender, frame)
        tap(sender, frame)

    transport.tap = tap if before is None else both


def revision_in(target: Any) -> str | None:
    """Return the revision in a configuration entry; None if there is none, or the target is not an
    entry.

    Raises TypeError unless the revision is a string.
    """
    if not isinstance(target, Mapping):
        return None
    revision = _only_entry(target).get("revision")
    if revision is not None and not isinstance(revision, str):
        raise TypeError(f"the revision of a configuration entry is a text, not {revision!r}")
    return revision


def _is_http(transport: ClientTransport) -> bool:
    return type(transport).__name__ == "Http"


def _http(url: str, web: Mapping[str, Any]) -> ClientTransport:
    from ..transport.http.client.transport import (
        Http,  # late: only for clients of servers over HTTP
    )

    return Http(url, **web)


def _transport_to(
    target: Any, on_stderr: Callable[[str], None] | None, web: Mapping[str, Any]
) -> ClientTransport:
    """Return the transport. The type of `target` is checked at run time, because not every caller
    uses a type checker.
    """
    if hasattr(target, "transport") and callable(target.transport):
        made: ClientTransport = target.transport()  # a Server in this process
        return made
    if callable(target) and hasattr(target, "open") and hasattr(target, "aclose"):
        ready: ClientTransport = target  # a transport
        return ready
    if hasattr(target, "receive") and hasattr(target, "send"):
        return Duplex(target)
    if isinstance(target, Mapping):
        return _from_config(target, on_stderr, web)
    if isinstance(target, Path):
        return _from_script(str(target), on_stderr) or Stdio([str(target)], on_stderr=on_stderr)
    if isinstance(target, str):
        return _from_text(target, on_stderr, web)
    if isinstance(target, Sequence):
        return Stdio([os.fspath(part) for part in target], on_stderr=on_stderr)
    raise TypeError(
        f"a client cannot connect to {target!r}: it takes a Server, a script, a command, "
        "a URL, a config entry or a transport"
    )


def _from_script(path: str, on_stderr: Callable[[str], None] | None) -> ClientTransport | None:
    """Return the transport to a script, by its suffix; None if the path is not a script."""
    if path.endswith((".js", ".mjs", ".cjs")):
        return Stdio(["node", path], on_stderr=on_stderr)
    if not path.endswith(".py"):
        return None
    if not Path(path).is_file():
        raise ValueError(f"there is no script {path}")
    return Stdio([sys.executable, path], on_stderr=on_stderr)


def _from_text(
    text: str, on_stderr: Callable[[str], None] | None, web: Mapping[str, Any]
) -> ClientTransport:
    command = shlex.split(text)
    if not command:
        raise ValueError("the target is an empty string; give a script, a command or a URL")
    if (
        len(command) > 1 and not Path(text).is_file()
    ):  # a command, even if it ends with the name of a script
        return Stdio(command, on_stderr=on_stderr)
    if "://" in text:
        return _from_url(text, web)
    return _from_script(text, on_stderr) or Stdio(command, on_stderr=on_stderr)


def _from_url(url: str, web: Mapping[str, Any]) -> ClientTransport:
    from ..transport.sockets import Socket  # late: only for these URLs

    parts = urlsplit(url)
    if parts.scheme == "unix":
        if parts.netloc or not parts.path:
            raise ValueError(f"{url} has no path; a Unix socket is unix:///path")
        return Socket(parts.path)
    if parts.scheme == "tcp":
        if not parts.hostname or not parts.port:
            raise ValueError(f"{url} lacks a host and a port, as in tcp://127.0.0.1:8765")
        return Socket((parts.hostname, parts.port))
    if parts.scheme in ("http", "https"):
        return _http(url, web)
    raise ValueError(
        f"there is no transport for {url}; use https://host/path, unix:///path and tcp://host:port"
    )


def _only_entry(entry: Any) -> Mapping[str, Any]:
    """Return the entry of a configuration that has exactly one."""
    if not isinstance(entry, Mapping):
        raise TypeError(f"an entry of a configuration is an object, not {entry!r}")
    for whole in ("mcpServers", "servers"):
        if isinstance(entry.get(whole), Mapping):
            entries = entry[whole]
            if len(entries) != 1:
                raise ValueError(
                    f"the configuration has {len(entries)} servers ({', '.join(entries)}); "
                    "give one entry of it"
                )
            return _only_entry(next(iter(entries.values())))
    return entry


def _from_config(
    entry: Any, on_stderr: Callable[[str], None] | None, web: Mapping[str, Any]
) -> ClientTransport:
    """Return the transport for an entry of an `mcpServers` configuration, or for a configuration
    with exactly one entry.
    """
    entry = _only_entry(entry)
    if "command" in entry:
        arguments = entry.get("args") or ()
        if isinstance(arguments, str):
            raise TypeError(f"the args of a configuration entry are a list, not {arguments!r}")
        env = {str(name): str(value) for name, value in (entry.get("env") or {}).items()}
        return Stdio(
            [str(entry["command"]), *map(str, arguments)],
            env=env,
            cwd=entry.get("cwd"),
            on_stderr=on_stderr,
            sandbox=_sandbox(entry.get("sandbox")),
        )
    if "url" in entry:
        given = {str(name): str(value) for name, value in (entry.get("headers") or {}).items()}
        if given:
            web = {**web, "headers": {**given, **web.get("headers", {})}}
        if entry.get("type") == "sse":
            web = {"legacy_sse": True, **web}
        return _from_url(str(entry["url"]), web)
    raise ValueError("a configuration entry needs a command or a url")


def _sandbox(value: Any) -> Confinement | None:
    """Return the sandbox that an entry asks for. Raises ValueError for an invalid one."""
    if value is None or value is False:
        return None
    from ..sandbox import Sandbox, parse_sandbox  # late: few entries have one

    if isinstance(value, Sandbox):
        return value
    parsed = parse_sandbox(value)
    return parsed if isinstance(parsed, Sandbox) else Sandbox()


def server_of_many(target: Any) -> Any:
    """Return a server in this process that has mounted several targets; None for a single target.

    Several targets are a configuration with more than one server, or a mapping from names to
    targets. Raises TypeError or ValueError for an unknown target.
    """
    entries = _entries_in(target)
    if entries is None:
        return None
    client = public_name("Client")
    server = public_name("Server")("interlock", VERSION)
    for name, entry in entries.items():
        made = entry if hasattr(entry, "as_source") else client(entry)
        server.mount(made, prefix=str(name))
    return server


def _entries_in(target: Any) -> Mapping[str, Any] | None:
    """Return the targets of a mapping with several ones; None if it is a single target."""
    if not isinstance(target, Mapping):
        return None
    for whole in ("mcpServers", "servers"):
        entries = target.get(whole)
        if isinstance(entries, Mapping):
            return entries if len(entries) > 1 else None
    if "command" in target or "url" in target or not target:
        return None
    return target


def label_of(target: Any) -> str:
    """Return a name for a target, for error messages and logs. It contains no arguments of
    commands, and no password or query of a URL.
    """
    if isinstance(target, Mapping):
        target = _only_entry(target)
        return label_of(target.get("url") or [target.get("command", "a server")])
    if isinstance(target, str):
        if "://" in target:
            parts = urlsplit(target)
            host = parts.netloc.rpartition("@")[2]
            return f"{parts.scheme}://{host}{parts.path}"
        target = shlex.split(target)[:1]
    if isinstance(target, Path):
        return target.name
    if isinstance(target, Sequence) and target:
        return Path(os.fspath(target[0])).name
    name = getattr(target, "name", None)
    return name if isinstance(name, str) and name else type(target).__name__
