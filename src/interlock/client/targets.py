"""What a client can be pointed at, and the transport that leads there."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..transport.conversation import ClientTransport
from ..transport.duplex import Duplex
from ..transport.sockets import Socket
from ..transport.stdio import Stdio


def transport_to(target: Any, *, on_stderr: Callable[[str], None] | None = None) -> ClientTransport:
    """The transport to a target; see Client for what that may be. Raises TypeError or ValueError for what leads nowhere."""
    if hasattr(target, "transport") and callable(target.transport):
        made: ClientTransport = target.transport()  # a Server in this process
        return made
    if callable(target) and hasattr(target, "open") and hasattr(target, "aclose"):
        ready: ClientTransport = target  # a transport already
        return ready
    if hasattr(target, "receive") and hasattr(target, "send"):
        return Duplex(target)
    if isinstance(target, Mapping):
        return _from_config(target, on_stderr)
    if isinstance(target, str | Path):
        return _from_text(os.fspath(target), on_stderr)
    if isinstance(target, Sequence):
        return Stdio([os.fspath(part) for part in target], on_stderr=on_stderr)
    raise TypeError(
        f"a client cannot be pointed at {target!r}: it takes a Server, a script, a command, a URL, a config entry or a transport"
    )


def _from_text(text: str, on_stderr: Callable[[str], None] | None) -> ClientTransport:
    if text.endswith(".py"):
        if not Path(text).is_file():
            raise ValueError(f"there is no script {text}")
        return Stdio([sys.executable, text], on_stderr=on_stderr)
    if text.endswith((".js", ".mjs", ".cjs")):
        return Stdio(["node", text], on_stderr=on_stderr)
    parts = urlsplit(text)
    if parts.scheme == "unix":
        return Socket(parts.path)
    if parts.scheme == "tcp" and parts.hostname and parts.port:
        return Socket((parts.hostname, parts.port))
    if parts.scheme in ("http", "https"):
        raise ValueError(f"there is no HTTP transport in this version, so {text} cannot be reached")
    command = shlex.split(text)
    if not command:
        raise ValueError("an empty string leads nowhere")
    return Stdio(command, on_stderr=on_stderr)


def _from_config(entry: Mapping[str, Any], on_stderr: Callable[[str], None] | None) -> ClientTransport:
    """An entry of an `mcpServers` configuration, or a configuration that has just one."""
    for whole in ("mcpServers", "servers"):
        if isinstance(entry.get(whole), Mapping):
            entries = entry[whole]
            if len(entries) != 1:
                raise ValueError(f"the configuration has {len(entries)} servers ({', '.join(entries)}); give one entry of it")
            return _from_config(next(iter(entries.values())), on_stderr)
    if "command" in entry:
        command = [str(entry["command"]), *(str(argument) for argument in entry.get("args") or ())]
        return Stdio(command, env=entry.get("env"), cwd=entry.get("cwd"), on_stderr=on_stderr)
    if "url" in entry:
        return _from_text(str(entry["url"]), on_stderr)
    raise ValueError("a configuration entry needs a command or a url")
