"""The page about deploying the gateway: its settings, its command and its health check work, as far
as one machine can show."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from interlock import Client
from interlock.auth import ClientCredentials
from interlock.store import MemoryVault
from interlock_apps.gateway.settings import check_exposure, parse_settings
from interlock_issuer import Client as Known
from interlock_issuer import Issuer
from tests.auth.served import served
from tests.cli.conftest import home
from tests.gateway.behind import names_of
from tests.ports import free_port

__all__ = ["home"]

PAGE = (Path(__file__).parents[4] / "docs/guide/gateway-deployment.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """Return the first code block of a language."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


COMPOSE = YAML(typ="safe").load(block("yaml"))["services"]


def test_the_settings_may_be_used_on_a_network() -> None:
    settings = parse_settings(block("toml"), Path("gateway.toml"))
    check_exposure(settings)
    assert settings.listen.workers == 2
    assert settings.listen.store == "redis://valkey:6379"
    host = COMPOSE["gateway"]["ports"][0].rpartition(":")[2]
    assert settings.address[1] == int(host)


async def test_the_gateway_of_the_page(
    home: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in COMPOSE["gateway"]["environment"]:
        monkeypatch.setenv(name, "17" * 32)
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", programs)  # of the image: `interlock` is there
    ports = (free_port(), free_port())
    at, front = (f"http://127.0.0.1:{port}" for port in ports)
    text = block("toml")
    for shown, here in (
        ("0.0.0.0:8080", f"127.0.0.1:{ports[1]}"),
        ("https://mcp.example.com", front),
        ("https://login.example.com", at),
        ("redis://valkey:6379", redis_url),
    ):
        assert shown in text
        text = text.replace(shown, here)
    assert tomllib.loads(text)["listen"]["workers"] == 2
    (home / "gateway.toml").write_text(text)
    entry = re.search(r'ENTRYPOINT \["interlock", (.*)\]', block("dockerfile"))
    assert entry is not None
    words = [word.strip('" ') for word in entry[1].split(",")]
    assert words == ["gateway", "/etc/interlock/gateway.toml"]
    till = Known(id="till", secret="of the till", grants=("client_credentials",))
    issuer = Issuer(at, resources=[f"{front}/mcp"], clients=[till], vault=MemoryVault())
    async with served(issuer, ports[0]):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "interlock", "gateway", "gateway.toml"),
            cwd=home,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        try:
            async with asyncio.timeout(60):
                line = await process.stderr.readline()
            assert line.startswith(b"Serving at"), line
            async with Client(
                f"{front}/mcp", auth=ClientCredentials("till", "of the till")
            ) as client:
                names = await names_of(client)
            assert names
            assert all(name.startswith("time__") for name in names)
            check = COMPOSE["gateway"]["healthcheck"]["test"]
            assert check[:3] == ["CMD", "python", "-c"]
            healthy = await asyncio.create_subprocess_exec(
                sys.executable, "-c", check[3].replace("8080", str(ports[1]))
            )
            assert await healthy.wait() == 0
            for command in ("status", "reload"):
                assert f"interlock gateway {command} /etc/interlock/gateway.toml" in PAGE
                done = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "interlock", "gateway", command, "gateway.toml"),
                    cwd=home,
                    stdout=asyncio.subprocess.PIPE,
                )
                output, _ = await done.communicate()
                assert done.returncode == 0
                assert output.count(b"process ") == 2
        finally:
            process.send_signal(signal.SIGTERM)
            await process.communicate()
        assert process.returncode == 0
