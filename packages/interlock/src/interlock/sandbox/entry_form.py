"""The policy of a sandbox in an entry of a configuration, and in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from .policy import list_of_texts
from .sandbox import Sandbox


def parse_sandbox(value: Any, resolve: Callable[[str, str], str] | None = None) -> Sandbox | bool:
    """Return the sandbox that an entry of a configuration asks for.

    Args:
        value: The value under `sandbox`: true for the default profile, false for none, or an object
            with the keys of VS Code (`filesystem` with `allowWrite`, `denyRead`, `denyWrite`;
            `network` with `allowedDomains`, `deniedDomains`) and `filesystem.allowRead`, `env`,
            `memory`, `cpuSeconds`, `processes`. `network` may also be "none", "public" or "all".
        resolve: Fills in one path. It receives the path and its place, such as
            `sandbox.filesystem.allowWrite.0`.

    Raises:
        ValueError: The value is not such a policy. A key that is not known is an error, because it
            may be a restriction.
    """
    if isinstance(value, bool):
        return value
    found = dict(_object("sandbox", value))
    files = dict(_object("sandbox.filesystem", found.pop("filesystem", {})))
    given: dict[str, Any] = {}
    for key, name in _PATHS.items():
        texts = list_of_texts(f"sandbox.filesystem.{key}", files.pop(key, ()))
        given[name] = [
            text if resolve is None else resolve(text, f"sandbox.filesystem.{key}.{number}")
            for number, text in enumerate(texts)
        ]
    given |= _network(found.pop("network", {}))
    for key, name in _PLAIN.items():
        if (plain := found.pop(key, None)) is not None:
            given[name] = plain
    _nothing_left("sandbox", found)
    _nothing_left("sandbox.filesystem", files)
    try:
        return Sandbox(**given)
    except (TypeError, ValueError) as bad:
        raise ValueError(f"its sandbox cannot be used: {bad}") from None


def sandbox_entry(sandbox: Sandbox | bool) -> dict[str, Any] | bool:
    """Return the form of a policy in an entry, which `parse_sandbox` reads."""
    if isinstance(sandbox, bool):
        return sandbox
    files = {key: list(getattr(sandbox, name)) for key, name in _PATHS.items()}
    network: Any = {}
    if not isinstance(sandbox.hosts, str):
        network["allowedDomains"] = list(sandbox.hosts)
    elif sandbox.hosts == "all":
        network = "all"
    if sandbox.deny_hosts and isinstance(network, dict):
        network["deniedDomains"] = list(sandbox.deny_hosts)
    plain = {
        key: list(value) if isinstance(value, tuple) else value
        for key, name in _PLAIN.items()
        if (value := getattr(sandbox, name)) not in (None, ())
    }
    files = {key: paths for key, paths in files.items() if paths}
    entry = {
        **({"filesystem": files} if files else {}),
        **({"network": network} if network else {}),
        **plain,
    }
    return entry or True


def sandbox_words(sandbox: Sandbox) -> str:
    """Return what a policy allows, as one phrase for the person who approves a start."""
    network = {"public": "public addresses", "all": "everything, this machine included"}
    hosts = (
        network[sandbox.hosts]
        if isinstance(sandbox.hosts, str)
        else ", ".join(sandbox.hosts) or "none"
    )
    parts = [f"network: {hosts}"]
    if sandbox.write:
        parts.append(f"writes to {', '.join(sandbox.write)}")
    if sandbox.read:
        parts.append(f"reads {', '.join(sandbox.read)}")
    if sandbox.env:
        parts.append(f"gets your {', '.join(sandbox.env)}")
    return "; ".join(parts)


_PATHS: Final = {
    "allowRead": "read",
    "allowWrite": "write",
    "denyRead": "deny_read",
    "denyWrite": "deny_write",
}
_PLAIN: Final = {
    "env": "env",
    "memory": "memory",
    "cpuSeconds": "seconds_cpu",
    "processes": "processes",
}


def _network(value: Any) -> dict[str, Any]:
    """Return the hosts of the key `network`."""
    if isinstance(value, str):
        kinds = {"none": (), "public": "public", "all": "all"}
        if value not in kinds:
            raise ValueError('sandbox.network must be "none", "public", "all" or an object')
        return {"hosts": kinds[value]}
    network = dict(_object("sandbox.network", value))
    allowed = network.pop("allowedDomains", None)
    denied = network.pop("deniedDomains", ())
    _nothing_left("sandbox.network", network)
    hosts: Any = "public"
    if allowed is not None:
        hosts = list_of_texts("sandbox.network.allowedDomains", allowed)
        hosts = "public" if "*" in hosts else hosts
    return {"hosts": hosts, "deny_hosts": list_of_texts("sandbox.network.deniedDomains", denied)}


def _object(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"its {name} must be an object")
    return value


def _nothing_left(name: str, left: Mapping[str, Any]) -> None:
    if left:
        keys = ", ".join(str(key)[:80] for key in left)
        raise ValueError(f"its {name} has an unknown key, which may be a restriction: {keys}")
