"""The servers of a host, as its caller can give them: a configuration, a file, or an object."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.configs import Config, Entry, load_config, read_config

AnyServers = Config | Iterable[Entry] | Mapping[str, Any] | str | Path


def config_of(servers: AnyServers) -> tuple[Config, dict[str, Any]]:
    """Return the configuration, and the targets that are not in a configuration, by id.

    A target is anything that a Client connects to, such as a Server of this process.
    """
    if isinstance(servers, Config):
        return servers, {}
    if isinstance(servers, str | Path):
        return load_config(Path(servers)), {}
    if not isinstance(servers, Mapping):
        return Config(entries=tuple(servers)), {}
    written = servers.get("mcpServers", servers)
    targets = {id: given for id, given in written.items() if not isinstance(given, Mapping)}
    config = Config(entries=())
    if len(targets) < len(written):
        configured = {id: given for id, given in written.items() if id not in targets}
        text = msgspec.json.encode({"mcpServers": configured}).decode()
        config = read_config(text, env=os.environ, format="mcpServers")
    entries = {entry.id: entry for entry in config.entries}
    for id, target in targets.items():
        entries[id] = Entry(id=id, command=(f"{type(target).__name__} in this process",))
    in_order = tuple(entries[id] for id in written if id in entries)
    return Config(entries=in_order, problems=config.problems), targets
