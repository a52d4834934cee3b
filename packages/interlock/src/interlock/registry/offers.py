"""Servers of the registry as they can be installed: the command or address, and the pins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from ..configs import RecordFile
from ..types import InterlockError
from .client import Registry, RegistryError
from .command_line import CannotRun, Launch, launch_of_package, launch_of_remote
from .server_json import BadServerJson, RegistryInput, ServerJson, digest, parse

_OFFICIAL: Final = "io.modelcontextprotocol.registry/official"


class ChangedOffer(InterlockError):
    """A published version is not what it was when it was installed."""


class RegistryOffer(Struct, frozen=True, kw_only=True):
    """One version of a server in a registry.

    Attributes:
        server: Its description.
        digest: The SHA-256 of the description, in hexadecimal.
        status: "active", or another status that the registry gives it, such as "deprecated".
        status_words: Why it has this status.
    """

    server: ServerJson
    digest: str
    status: str = "active"
    status_words: str = ""


async def offer_of(registry: Registry, name: str, version: str = "latest") -> RegistryOffer:
    """Return a version of a server.

    Args:
        registry: The registry.
        name: The name of the server.
        version: The version.

    Raises:
        RegistryError: There is no such server, it was removed, or the answer cannot be used.
    """
    answer = await registry.server(name, version)
    document = answer.get("server")
    if not isinstance(document, dict):
        raise RegistryError(f"{registry.address} says nothing that can be used about {name}.", 200)
    try:
        server = parse(document)
    except BadServerJson as bad:
        raise RegistryError(f"{name} breaks the rules: {bad}.", 200) from None
    if server.name != name:
        raise RegistryError(f"{registry.address} answered with {server.name}.", 200)
    status, words = status_of(answer)
    if status == "deleted":
        raise RegistryError(f"{server.name} {server.version} was removed from the registry.", 200)
    return RegistryOffer(server=server, digest=digest(document), status=status, status_words=words)


def status_of(answer: Mapping[str, Any]) -> tuple[str, str]:
    """Return the status of a server in an answer of the registry, and why it has it."""
    meta = answer.get("_meta")
    about = (meta if isinstance(meta, dict) else {}).get(_OFFICIAL)
    official = about if isinstance(about, dict) else {}
    return str(official.get("status") or "active"), str(official.get("statusMessage") or "")


def launch_of(
    server: ServerJson,
    ask: Callable[[str, RegistryInput], str | None],
    *,
    remote: bool = False,
) -> Launch:
    """Return how a server is reached: its first usable package, or else its URL.

    Args:
        server: The server.
        ask: Returns the value for an input, by its label; None leaves an optional one out.
        remote: Whether its URL is used even if it has a package.

    Raises:
        CannotRun: Nothing of it can be used here. The message says why.
    """
    reasons = []
    for package in () if remote else server.packages:
        try:
            return launch_of_package(package, ask)
        except CannotRun as bad:
            reasons.append(f"{package.identifier}: {bad}")
    for place in server.remotes:
        if place.type != "streamable-http":
            reasons.append(f"{place.url}: it uses the HTTP transport of 2024-11-05")
            continue
        try:
            return launch_of_remote(place, ask)
        except CannotRun as bad:
            reasons.append(f"{place.url}: {bad}")
    why = "; ".join(reasons) or "it names neither a package nor a remote"
    raise CannotRun(f"{server.name} cannot be added: {why}")


def offer_inputs(server: ServerJson, *, remote: bool = False) -> dict[str, RegistryInput]:
    """Return the values that a server asks for, by label.

    Args:
        server: The server.
        remote: Whether its URL is used even if it has a package.

    Raises:
        CannotRun: Nothing of it can be used here.
    """
    asked: dict[str, RegistryInput] = {}

    def note(label: str, one: RegistryInput) -> str | None:
        asked[label] = one
        return one.default or (one.choices[0] if one.choices else one.placeholder or "value")

    launch_of(server, note, remote=remote)
    return asked


class RegistryPins(RecordFile):
    """The digests of the descriptions that were installed, by registry, name and version.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, {})
        self._file = path

    def check(self, data: Any) -> str:
        """Return the error in the data of a file. A guess could accept a changed version."""
        if isinstance(data, dict) and all(isinstance(digest, str) for digest in data.values()):
            return ""
        return (
            "is not a record of what was added from the registry. Restore it, or move it away: then"
            " every version counts as new."
        )

    def check_offer(self, offer: RegistryOffer, address: str) -> None:
        """Check that a version has the description that it had when it was installed, if it was.

        Args:
            offer: The version of a server.
            address: The address of the registry.

        Raises:
            ChangedOffer: It has another one.
            BadRecord: The file cannot be read, or is not such a record.
        """
        before = self.read().get(_key(offer, address))
        if before is not None and before != offer.digest:
            raise ChangedOffer(
                f"{offer.server.name} {offer.server.version} is not what it was when you added it: "
                f"its digest was sha256:{before}, and is sha256:{offer.digest}. A published "
                "version never changes. If you trust the change, remove its line from "
                f"{self._file}."
            )

    def keep(self, offer: RegistryOffer, address: str) -> None:
        """Remember what was installed.

        Args:
            offer: The version of a server.
            address: The address of the registry.

        Raises:
            BadRecord: The file cannot be read or written.
            OSError: Its folder cannot be created.
        """
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.edit(lambda known: known.update({_key(offer, address): offer.digest}))


def _key(offer: RegistryOffer, address: str) -> str:
    return f"{address} {offer.server.name} {offer.server.version}"
