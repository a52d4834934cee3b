"""OAuth in the inspector: the steps of a login at a real authorization server, the login with a
browser, and the logout. No secret reaches the page.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import ClientTransport, Http
from interlock.cli.auth.saved_logins import KeptTokens, kept_server, vault_at
from interlock.client.targets import add_tap
from interlock.tape import RecordedConnection
from interlock_apps.inspector.targets import InspectorTarget
from tests.auth.test_login_in_a_browser import PASSWORD, shop
from tests.inspector.stage import inspected
from tests.web.stage import shot

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


def guarded_target(url: str) -> InspectorTarget:
    """A server at a URL, reached with the stored login."""

    def transport(tap: RecordedConnection) -> ClientTransport:
        made = Http(url, auth=KeptTokens())
        add_tap(made, tap)
        return made

    return InspectorTarget("shop", url, words=(url,), transport=transport, url=url)


async def test_the_steps_a_login_and_a_logout(
    chromium: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault_path = tmp_path / "vault"
    monkeypatch.setenv("INTERLOCK_VAULT", vault_path.as_uri())
    folder = tmp_path / "shop"
    folder.mkdir()
    async with (
        shop(folder) as url,
        inspected(chromium, tmp_path, guarded_target(url), servers={}) as stage,
    ):
        connection = stage.inspector.connections["shop"]
        assert connection.status == "failed"
        page = await stage.page("connection=shop&tab=authorization")
        await page.get_by_role("button", name="Check the steps").click()
        await page.get_by_text("Nothing prevents a login.").wait_for()
        await page.get_by_text("Requests and responses").click()
        asked = page.get_by_role("listitem").filter(has_text="oauth-protected-resource")
        assert await asked.count() > 0
        await shot(page, "inspector-authorization")

        await page.get_by_text("No login is stored.").wait_for()
        await page.get_by_role("button", name="Log in", exact=True).click()
        link = page.get_by_role("link", name="Open the page")
        await link.wait_for()
        async with page.context.expect_page() as opening:
            await link.click()
        issuer = await opening.value
        await issuer.get_by_label("Name").fill("ada")
        await issuer.get_by_label("Password").fill(PASSWORD)
        await issuer.get_by_role("button", name="Log in").click()
        await issuer.get_by_role("button", name="Allow").click()
        await page.get_by_text("You are logged in.").wait_for()
        await page.get_by_role("button", name="Log out").wait_for()
        await page.get_by_role("tab", name="Tools").click()
        await page.get_by_role("button", name="who").click()
        await page.get_by_role("button", name="Call", exact=True).click()
        await page.get_by_role("region", name="Call c1").get_by_text("ada").wait_for()

        vault = vault_at(None)
        _, grant = await kept_server(vault, url, "")
        await vault.aclose()
        assert grant is not None
        shown = await page.content() + json.dumps(
            msgspec.to_builtins(connection.state(), enc_hook=repr)
        )
        stored = await connection.features.authorization.stored()
        for secret in (grant.access_token, grant.refresh_token):
            assert secret is not None
            assert secret not in shown
            assert secret not in json.dumps(stored)

        await page.get_by_role("tab", name="Authorization").click()
        await page.get_by_role("button", name="Log out").click()
        await page.get_by_text("The tokens were revoked and deleted.").wait_for()
        await page.get_by_text("No login is stored.").wait_for()


async def test_a_login_is_cancelled(
    chromium: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_VAULT", (tmp_path / "vault").as_uri())
    folder = tmp_path / "shop"
    folder.mkdir()
    async with (
        shop(folder) as url,
        inspected(chromium, tmp_path, guarded_target(url), servers={}) as stage,
    ):
        page = await stage.page("connection=shop&tab=authorization")
        await page.get_by_role("button", name="Log in", exact=True).click()
        await page.get_by_role("link", name="Open the page").wait_for()
        await page.get_by_role("button", name="Cancel the login").click()
        await page.get_by_text("The login was cancelled.").wait_for()
        assert await page.get_by_role("link", name="Open the page").count() == 0


async def test_only_servers_at_a_url_have_the_panel(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page("connection=travel&tab=tools")
        await page.get_by_role("button", name="Search flights").wait_for()
        assert await page.get_by_role("tab", name="Authorization").count() == 0
