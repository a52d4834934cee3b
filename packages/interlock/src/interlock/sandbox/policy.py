"""The policy of a sandbox, and its form in an entry of a configuration."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,15})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_HOST = re.compile(r"(\*\.)?[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LEAST_MEMORY: Final = 16 << 20
_PATTERN = re.compile(r"[*?\[]")


class Sandbox(Struct, frozen=True, kw_only=True):
    """What a confined program may use. The default is the profile for servers of other authors.

    Whatever the policy, the program can read the system's programs and libraries and the folders of
    its own program, and it can write to its working folder, to a home folder of its own, and to a
    temporary folder. It cannot reach the rest of your home folder, other processes, or Unix
    sockets. Its environment has the variables that every child gets (HOME, PATH and the like),
    those that its starter names, and those of `env`.

    Attributes:
        read: Further folders and files that it may read.
        write: Further folders and files that it may read and write.
        deny_read: Folders and files that it may not read, even within a folder that it may.
        deny_write: Folders and files that it may not write, even within a folder that it may.
        hosts: The hosts that it may contact by HTTP and HTTPS, through a proxy: "public" for every
            host with a public address; or names, "*.example.com" for all names below one, and
            addresses; or () for none. "all": the network of the machine is open to it.
        deny_hosts: Hosts that it may not contact although `hosts` includes them.
        env: Names of variables of this process that it gets as well.
        memory: The private memory of each of its processes in bytes, or a text such as "1G"; None
            for no limit.
        seconds_cpu: The processor time of each of its processes, in seconds; None for no limit.
        processes: The number of its processes, threads included; None for no limit. Under Landlock
            all processes of the user count. The processes of root cannot be limited.
        home: The folder that it gets as its home, where its caches are; None for a temporary one.
        mechanism: The only mechanism to use; None for the first that works.

    Raises:
        ValueError: A value is invalid.
    """

    read: Sequence[str] = ()
    write: Sequence[str] = ()
    deny_read: Sequence[str] = ()
    deny_write: Sequence[str] = ()
    hosts: Sequence[str] | Literal["public", "all"] = "public"
    deny_hosts: Sequence[str] = ()
    env: Sequence[str] = ()
    memory: int | str | None = None
    seconds_cpu: int | None = None
    processes: int | None = None
    home: str | None = None
    mechanism: Literal["bubblewrap", "landlock"] | None = None

    def __post_init__(self) -> None:
        """Convert lists to tuples and sizes to bytes, and check every value."""
        for name in ("read", "write", "deny_read", "deny_write"):
            paths = _texts(name, getattr(self, name))
            for path in paths:
                if not path or "\0" in path:
                    raise ValueError(f"{name} has an invalid path")
                if _PATTERN.search(path) and not os.path.lexists(path):
                    raise ValueError(f"{name}: {path} is a pattern; name folders and files")
            force_setattr(self, name, paths)
        for name in ("hosts", "deny_hosts"):
            hosts = getattr(self, name)
            if name == "deny_hosts" or hosts not in ("public", "all"):
                force_setattr(self, name, tuple(map(_host, _texts(name, hosts))))
        force_setattr(self, "env", _texts("env", self.env))
        for variable in self.env:
            if not _VARIABLE.fullmatch(variable):
                raise ValueError(f"env: {variable!r} is not the name of a variable")
        force_setattr(self, "memory", _size(self.memory))
        for name in ("seconds_cpu", "processes"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(f"{name} must be a whole number of at least 1")
        if self.mechanism not in (None, "bubblewrap", "landlock"):
            raise ValueError("mechanism must be bubblewrap or landlock")
        if self.home is not None:
            force_setattr(self, "home", os.fspath(self.home))

    @property
    def memory_bytes(self) -> int | None:
        """The limit of `memory` in bytes."""
        return self.memory if isinstance(self.memory, int) else None

    @property
    def uses_proxy(self) -> bool:
        """Whether the program reaches hosts through a proxy of this process."""
        return self.hosts == "public" or (self.hosts != "all" and bool(self.hosts))

    def confine(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        report: Callable[[str], None],
    ) -> Any:
        """Return the confined start of a command, for a transport (see `Confinement`).

        Args:
            command: The program and its arguments.
            env: Its environment, without the variables of `Sandbox.env`.
            cwd: Its working folder; None for that of this process.
            report: Called with a sentence about each thing that was refused.
        """
        from .confined import Confined  # late: policies are read where nothing is started

        return Confined(self, command, env=env, cwd=cwd, report=report)


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
        texts = _texts(f"sandbox.filesystem.{key}", files.pop(key, ()))
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
        hosts = _texts("sandbox.network.allowedDomains", allowed)
        hosts = "public" if "*" in hosts else hosts
    return {"hosts": hosts, "deny_hosts": _texts("sandbox.network.deniedDomains", denied)}


def _object(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"its {name} must be an object")
    return value


def _nothing_left(name: str, left: Mapping[str, Any]) -> None:
    if left:
        keys = ", ".join(str(key)[:80] for key in left)
        raise ValueError(f"its {name} has an unknown key, which may be a restriction: {keys}")


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"{name} must be a list of texts")
    texts = tuple(os.fspath(each) if isinstance(each, os.PathLike) else each for each in value)
    if not all(isinstance(each, str) for each in texts):
        raise ValueError(f"{name} must be a list of texts")
    return texts


def _host(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        pass
    if not _HOST.fullmatch(text):
        raise ValueError(
            f"{text!r} is not a host: give a name, *.name for all names below it, or an address, "
            "without a port"
        )
    return text.lower()


def _size(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, str) and (found := _SIZE.fullmatch(value.strip())):
        value = int(found[1]) * _UNITS[found[2].upper()]
    if not isinstance(value, int) or isinstance(value, bool) or value < _LEAST_MEMORY:
        raise ValueError('memory must be a size such as "512M" or "1G", and at least 16M')
    return value
