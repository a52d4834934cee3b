"""Servers of the MCP registry for a host: search, the values that they need, their entries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from interlock.configs import RawEntry
from interlock.registry import (
    Launch,
    Registry,
    RegistryInput,
    RegistryOffer,
    RegistryPins,
    launch_of,
    offer_inputs,
    offer_of,
    registry_address,
    status_of,
)

from ...fleet import threat_scan

MOST_FOUND = 50


class RegistryEntry(Struct, frozen=True, kw_only=True):
    """A server of the registry as an entry of a configuration.

    Attributes:
        id: Its name in the configuration.
        entry: The entry.
        offer: The version that it comes from.
        warning: What the user must know of its version; empty if it is exact.
        secrets: The values that must not be shown.
    """

    id: str
    entry: RawEntry
    offer: RegistryOffer
    warning: str = ""
    secrets: frozenset[str] = frozenset()


class RegistryInstall:
    """Searches the registry, and makes entries for a configuration.

    Args:
        pins: The file with the digests of what was installed.
        address: The address of the registry; None for that of the environment, or the official one.
    """

    def __init__(self, pins: Path, address: str | None = None) -> None:
        self._pins = RegistryPins(pins)
        self._address = address

    async def search(self, words: str) -> dict[str, Any]:
        """Return the servers whose names contain a text, as JSON values.

        Raises:
            RegistryError: The registry refused, or could not be reached.
            ValueError: The address of the registry is not valid.
        """
        address = registry_address(self._address)
        found = await Registry(address).search(words, MOST_FOUND)
        return {"registry": address, "servers": [_row(one) for one in found]}

    async def offer(self, name: str, version: str) -> dict[str, Any]:
        """Return a version of a server, and the values that it needs, as JSON values.

        Raises:
            CannotRun: Nothing of it can be used here.
            RegistryError: There is no such server.
        """
        found = await self._checked(name, version)
        server = found.server
        inputs = offer_inputs(server)
        example = launch_of(server, _example)
        return {
            "name": server.name,
            "version": server.version,
            "title": threat_scan.visible(server.title or ""),
            "description": threat_scan.visible(server.description),
            "repository": threat_scan.visible(server.repository.url) if server.repository else "",
            "digest": found.digest,
            "status": threat_scan.visible(f"{found.status} {found.status_words}".strip()),
            "runsCode": bool(example.command),
            "isContainer": example.is_container,
            "inputs": [
                {
                    "label": label,
                    "description": threat_scan.visible(one.description),
                    "placeholder": threat_scan.visible(one.placeholder),
                    "required": one.is_required and one.default is None,
                    "secret": one.is_secret,
                    "default": one.default,
                    "choices": one.choices,
                }
                for label, one in inputs.items()
            ],
        }

    async def entry(
        self, name: str, version: str, values: Mapping[str, str], *, sandbox: bool | None
    ) -> RegistryEntry:
        """Return the entry of a server.

        Args:
            name: The server.
            version: Its version.
            values: The values for its inputs, by label.
            sandbox: Whether its program runs in a sandbox; None where nothing is started.

        Raises:
            CannotRun: Nothing of it can be used here.
            ChangedOffer: The version is not what it was when it was installed.
            RegistryError: There is no such server.
            ValueError: A required value is missing, or is not one of the choices.
        """
        found = await self._checked(name, version)

        def ask(label: str, one: RegistryInput) -> str | None:
            value = values.get(label) or one.default
            if value is None and one.is_required:
                raise ValueError(f"{label} is needed.")
            if value is not None and one.choices and value not in one.choices:
                raise ValueError(f"{label} is one of: {', '.join(one.choices)}.")
            return value

        launch = launch_of(found.server, ask)
        return RegistryEntry(
            id=found.server.name.rpartition("/")[2],
            entry=_entry(launch, sandbox),
            offer=found,
            warning=launch.warning,
            secrets=launch.secrets,
        )

    def keep(self, offer: RegistryOffer) -> None:
        """Remember what was installed. Raises BadRecord or OSError if that fails."""
        self._pins.keep(offer, registry_address(self._address))

    async def _checked(self, name: str, version: str) -> RegistryOffer:
        address = registry_address(self._address)
        found = await offer_of(Registry(address), name, version or "latest")
        self._pins.check_offer(found, address)
        return found


def _entry(launch: Launch, sandbox: bool | None) -> RawEntry:
    if launch.url:
        entry: RawEntry = {"type": "http", "url": launch.url}
        return {**entry, **({"headers": launch.headers} if launch.headers else {})}
    entry = {"type": "stdio", "command": launch.command[0], "args": launch.command[1:]}
    if launch.env:
        entry["env"] = launch.env
    if launch.is_container:  # Docker needs its socket, which a sandbox withholds
        return {**entry, "sandbox": False}
    return entry if sandbox is None else {**entry, "sandbox": sandbox}


def _row(one: dict[str, Any]) -> dict[str, Any]:
    server = one.get("server")
    named = server if isinstance(server, dict) else {}
    status, _ = status_of(one)
    return {
        "name": threat_scan.visible(str(named.get("name") or "")),
        "version": threat_scan.visible(str(named.get("version") or "")),
        "title": threat_scan.visible(str(named.get("title") or "")),
        "description": threat_scan.visible(str(named.get("description") or "")),
        "status": threat_scan.visible(status),
    }


def _example(label: str, one: RegistryInput) -> str | None:
    return one.default or (one.choices[0] if one.choices else "value")
