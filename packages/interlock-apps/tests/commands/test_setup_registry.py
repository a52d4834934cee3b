"""Servers of the MCP registry, added while the host runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.registry import CannotRun, ChangedOffer, RegistryError
from tests.cli.registry_server import LocalRegistry, serving
from tests.commands.setting_up import set_up

NAME = "io.github.ada/weather"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalRegistry]:
    """A registry on this machine with one server, which needs a key."""
    with serving() as found:
        found.servers.append(document())
        monkeypatch.setenv("INTERLOCK_REGISTRY", found.address)
        yield found


def document(**changed: Any) -> dict[str, Any]:
    """A server of the registry with one package."""
    package = {
        "registryType": "pypi",
        "identifier": "weather",
        "version": "1.2.0",
        "transport": {"type": "stdio"},
        "environmentVariables": [
            {"name": "WEATHER_KEY", "description": "Your key", "isRequired": True, "isSecret": True}
        ],
    }
    return {
        "name": NAME,
        "description": "The weather.",
        "version": "1.2.0",
        "packages": [package],
        **changed,
    }


async def test_found_shown_whole_and_pinned(home: Path, registry: LocalRegistry) -> None:
    """The exact version, in a sandbox; the secret is not shown. If the registry later says
    something else about the version, it is refused.
    """
    async with set_up() as (_, setup, _):
        found = await setup.registry.search("weather")
        assert [one["name"] for one in found["servers"]] == [NAME]
        offer = await setup.registry.offer(NAME, "1.2.0")
        assert [(one["label"], one["required"], one["secret"]) for one in offer["inputs"]] == [
            ("WEATHER_KEY", True, True)
        ]
        with pytest.raises(ValueError, match="WEATHER_KEY is needed"):
            await setup.plan_registry(NAME, "1.2.0", {}, sandbox=True)
        values = {"WEATHER_KEY": "w-secret-123"}
        plan = await setup.plan_registry(NAME, "1.2.0", values, sandbox=True)
        assert plan["start"]["command"] == "uvx weather@1.2.0"
        assert "w-secret-123" not in json.dumps(plan)
        setup.files.write(setup.files.plan_of(plan["plan"]))
        setup.registry.keep((await setup.registry.entry(NAME, "", values, sandbox=True)).offer)
        entry = json.loads(setup.files.path.read_text(encoding="utf-8"))["mcpServers"]["weather"]
        assert entry == {
            "type": "stdio",
            "command": "uvx",
            "args": ["weather@1.2.0"],
            "env": values,
            "sandbox": True,
        }
        registry.servers[0] = document(description="Something else.")
        with pytest.raises(ChangedOffer, match="is not what it was"):
            await setup.registry.offer(NAME, "1.2.0")


async def test_refusals_are_in_words(home: Path, registry: LocalRegistry) -> None:
    """A server that is not there, one that was removed, and one that cannot be run here."""
    registry.servers.append(document(name="io.github.ada/gone"))
    registry.status["io.github.ada/gone"] = "deleted"
    registry.servers.append(document(name="io.github.ada/none", packages=[]))
    async with set_up() as (_, setup, _):
        with pytest.raises(RegistryError, match="Server not found"):
            await setup.registry.offer("io.github.ada/nothing", "")
        with pytest.raises(RegistryError, match="was removed"):
            await setup.registry.offer("io.github.ada/gone", "")
        with pytest.raises(CannotRun, match="neither a package nor a remote"):
            await setup.registry.offer("io.github.ada/none", "")
