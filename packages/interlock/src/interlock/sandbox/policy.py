"""The values of a policy, checked: files, hosts, variables and resources."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,15})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_HOST = re.compile(r"(\*\.)?[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LEAST_MEMORY: Final = 16 << 20
_PATTERN = re.compile(r"[*?\[]")


class SandboxPolicy(Struct, frozen=True, kw_only=True):
    """The values of a policy; see `Sandbox`.

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
            paths = list_of_texts(name, getattr(self, name))
            for path in paths:
                if not path or "\0" in path:
                    raise ValueError(f"{name} has an invalid path")
                if _PATTERN.search(path) and not os.path.lexists(path):
                    raise ValueError(f"{name}: {path} is a pattern; name folders and files")
            force_setattr(self, name, paths)
        for name in ("hosts", "deny_hosts"):
            hosts = getattr(self, name)
            if name == "deny_hosts" or hosts not in ("public", "all"):
                force_setattr(self, name, tuple(map(_host, list_of_texts(name, hosts))))
        force_setattr(self, "env", list_of_texts("env", self.env))
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


def list_of_texts(name: str, value: Any) -> tuple[str, ...]:
    """Return a list of texts or paths as a tuple. Raises ValueError for anything else."""
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
