"""Who may use the inspector, and what a page of it can start: nothing but what the command line
named.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import ClientTransport, Stdio
from interlock.tape import RecordedConnection
from interlock_apps.inspector.acts import ACTS
from interlock_apps.inspector.site import InspectorSite
from interlock_apps.inspector.targets import InspectorTarget
from tests.inspector.stage import inspecting, server_target
from tests.web.asking import ORIGIN, Browser
from tests.web.offers import weather


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[InspectorSite]:
    async with inspecting(tmp_path, server_target("weather", weather())) as inspector:
        made = InspectorSite(inspector, origin=ORIGIN, apps_origin="http://127.0.0.1:4712")
        yield made
        made.close()


@pytest.mark.parametrize("target", ["/", "/api/events", "/static/main.js", "/?token=guess"])
async def test_nothing_without_the_cookie(site: InspectorSite, target: str) -> None:
    assert (await Browser(site).ask("GET", target)).status == 401


async def test_the_address_lets_in_once(site: InspectorSite) -> None:
    browser = Browser(site)
    first = site.entry.removeprefix(ORIGIN)
    assert (await browser.ask("GET", first)).status == 303
    page = await browser.ask("GET", "/")
    assert page.status == 200
    assert "unsafe" not in page.headers["content-security-policy"]
    again = await Browser(site).ask("GET", first)
    assert again.status == 401
    assert b"belong to this inspector" in again.body


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:4712"},
        {"sec_fetch_site": "cross-site"},
        {"host": "evil.example:4711"},
        {"x_interlock": "guess"},
    ],
)
async def test_other_sites_and_names_are_refused(
    site: InspectorSite, headers: dict[str, str]
) -> None:
    browser = Browser(site)
    await browser.enter()
    sent = {"origin": ORIGIN, "x_interlock": browser.csrf, **headers}
    body = b'{"act":"connect","connection":"weather"}'
    assert (await browser.ask("POST", "/api/act", body, **sent)).status in (403, 421)


async def test_cve_2025_49596_no_request_starts_another_command(tmp_path: Path) -> None:
    """A page of another site made the MCP Inspector's proxy start a command of its choice. Here no
    request does, without the cookie or with it: a command comes from the command line only.
    """
    witness = tmp_path / "started"
    code = f"open({str(witness)!r}, 'w').close()"
    command = [sys.executable, "-c", code]
    async with inspecting(tmp_path, server_target("weather", weather())) as inspector:
        site = InspectorSite(inspector, origin=ORIGIN)
        stranger = Browser(site)
        inside = Browser(site)
        await inside.enter()
        words = f"transportType=stdio&command={sys.executable}&args=-c+{code}"
        for browser in (stranger, inside):
            for method, target in [
                ("GET", f"/sse?{words}"),
                ("GET", f"/stdio?{words}"),
                ("GET", f"/?{words}"),
                ("POST", f"/mcp?{words}"),
                ("POST", f"/api/act?{words}"),
            ]:
                answer = await browser.ask(
                    method, target, b"{}", origin=ORIGIN, x_interlock=browser.csrf
                )
                refused = answer.status >= 400 or answer.body.startswith(b'{"ok":false')
                assert refused or target.startswith("/?")
        for name, act in ACTS.items():
            for value in (command, " ".join(command), {"command": command[0], "args": command[1:]}):
                fields = dict.fromkeys(
                    (
                        *act.params.__struct_fields__,
                        "target",
                        "command",
                        "server",
                        "url",
                        "transport",
                    ),
                    value,
                )
                body = msgspec.json.encode({"act": name, **fields})
                answer = await inside.ask(
                    "POST", "/api/act", body, origin=ORIGIN, x_interlock=inside.csrf
                )
                assert not answer.json["ok"], name
        for text in (" ".join(command), "other.py", str(witness)):
            for name in ("connect", "duplicate"):
                body = msgspec.json.encode({"act": name, "connection": text})
                answer = await inside.ask(
                    "POST", "/api/act", body, origin=ORIGIN, x_interlock=inside.csrf
                )
                assert "not a server that the command line named" in answer.json["words"]
        assert list(inspector.connections) == ["weather"]
        site.close()
    assert not witness.exists()


async def test_a_tape_that_names_a_command_starts_nothing(tmp_path: Path) -> None:
    """A tape is data: what its header says about a command is shown, and never run."""
    witness = tmp_path / "started"
    about = {"command": [sys.executable, "-c", f"open({str(witness)!r}, 'w')"]}
    tape = tmp_path / "foreign.tape"
    line: dict[str, Any] = {"tape": 1, "about": about, "began": 0.0}
    message = {"at": 0, "connection": "1", "client": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}
    tape.write_bytes(b"\n".join(msgspec.json.encode(one) for one in (line, message)) + b"\n")
    async with inspecting(tmp_path, InspectorTarget("foreign", str(tape), tape=tape)) as inspector:
        site = InspectorSite(inspector, origin=ORIGIN)
        browser = Browser(site)
        await browser.enter()
        for name in inspector.connections:
            answer = await browser.tried("connect", connection=name)
            assert not answer["ok"]
        shown = await browser.act("rows", recording="foreign")
        assert [row["method"] for row in shown["rows"]] == ["ping"]
        site.close()
    assert not witness.exists()


async def test_secrets_are_not_on_the_page(tmp_path: Path) -> None:
    """What is redacted on the tape cannot be on the page, which shows nothing but the tape."""

    def transport(tap: RecordedConnection) -> ClientTransport:
        return Stdio([sys.executable, "-c", "raise SystemExit"], tap=tap)

    target = InspectorTarget("x", "x", transport=transport)
    async with inspecting(tmp_path, target, server_target("weather", weather())) as inspector:
        site = InspectorSite(inspector, origin=ORIGIN)
        browser = Browser(site)
        await browser.enter()
        params = (
            '{"name":"alerts","arguments":{"state":"CA","api_key":"sk-ant-abc123def456ghi789"}}'
        )
        sent = await browser.act("send", connection="weather", method="tools/call", params=params)
        message = await browser.ask(
            "POST",
            "/api/act",
            msgspec.json.encode({"act": "message", **sent}),
            origin=ORIGIN,
            x_interlock=browser.csrf,
        )
        assert b"sk-ant-abc123def456ghi789" not in message.body
        site.close()
