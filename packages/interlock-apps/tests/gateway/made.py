"""A gateway in this process, with servers in memory, and clients of its views."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from interlock import Client, Principal
from interlock.store import MemoryVault
from interlock_apps.gateway.program import Gateway
from interlock_apps.gateway.protections import protections_of
from interlock_apps.gateway.settings import parse_settings

Targets = Mapping[str, Callable[[], Any]]
"""For each server, a function that returns the target of one connection to it."""


def entries(names: Mapping[str, str]) -> str:
    """The settings of servers, each with its own lines. The URLs are never used."""
    return "".join(
        f'[servers.{name}]\nurl = "http://127.0.0.1:1/{name}"\n{lines}\n'
        for name, lines in names.items()
    )


@asynccontextmanager
async def made(
    folder: Path, settings: str, targets: Targets, **options: Any
) -> AsyncIterator[Gateway]:
    """A gateway that runs until the block ends.

    Args:
        folder: The folder of its files.
        settings: The text of its settings.
        targets: Its servers.
        options: Further options of Gateway.
    """
    path = folder / "gateway.toml"
    path.write_text(f'{settings}\n[audit]\nfile = "audit.jsonl"\n', encoding="utf-8")

    def read() -> Any:
        return parse_settings(path.read_text(encoding="utf-8"), path)

    gateway = Gateway(
        read(),
        read=read,
        protections=protections_of,
        vault=MemoryVault(),
        transports=lambda entry: targets[entry.id](),
        **options,
    )
    async with gateway.lifespan(gateway.server):
        yield gateway


def client(
    gateway: Gateway, principal: Principal | None = None, view: str = "", **options: Any
) -> Client:
    """A client of a view."""
    transport = gateway.view(view).server.transport(principal=principal)
    options.setdefault("timeout", 30)
    return Client(transport, **options)
