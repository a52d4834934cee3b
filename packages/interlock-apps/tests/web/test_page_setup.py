"""The host sets itself up in the browser: from nothing to a first tool call, imports, logins, what
is wrong with a server.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.configs import PRODUCTS, this_machine
from interlock.models.local import LocalServer
from tests.auth.test_login_in_a_browser import PASSWORD, shop
from tests.cli.conftest import home
from tests.commands.setting_up import garden, set_up_page, until, up, write_servers
from tests.models.providers import Act, Answer, Site
from tests.web.stage import DESKTOP, TELEPHONE, say, shot
from tests.web.test_page_axe import Axe
from tests.web.test_page_questions import armed

__all__ = ["home"]
pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

LISTED = Act(body={"data": [{"id": "llama3.2"}]})
CALL = Answer((("garden__look", {"plant": "fern"}),))


@pytest.mark.parametrize("size", [DESKTOP, TELEPHONE], ids=["desk", "telephone"])
async def test_from_nothing_to_a_first_call(
    chromium: Any, home: Path, installed: Callable[[str], Path], size: dict[str, int]
) -> None:
    """Without a file and without a model: a local model, a server by its command, tested with its
    stderr, then a question to the model and a call. By mouse on a desk, by keyboard and touch on a
    telephone; axe finds nothing.
    """
    source = (installed("axe") / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
    file = garden(home)
    narrow = size == TELEPHONE
    kind = "telephone" if narrow else "desk"
    async with Site(LISTED) as site:
        local = [LocalServer(title="Ollama", provider="ollama", url=site.openai)]
        async with set_up_page(chromium, local=local) as (stage, host, setup):
            page = await stage.page(size=size, dark=narrow, has_touch=narrow)
            axe = Axe(page, source)
            await page.get_by_role("heading", name="Welcome").wait_for()
            await page.get_by_text("There is no model to answer you.").wait_for()
            await axe.look("welcome")
            await shot(page, f"setup-{kind}-welcome")

            await use(page, page.get_by_role("button", name="Choose a model").first, narrow)
            await page.get_by_role("button", name="Add llama3.2").wait_for()
            await axe.look("models")
            await shot(page, f"setup-{kind}-models")
            await use(page, page.get_by_role("button", name="Add llama3.2"), narrow)
            await page.get_by_role("form", name="Add a model").wait_for()
            await axe.look("model form")
            await shot(page, f"setup-{kind}-model")
            await use(page, page.get_by_role("button", name="Continue"), narrow)
            site.acts = [Act(Answer(("Ready",)))]
            await page.get_by_role("button", name="Test it").click()
            await page.get_by_text("It answered after").wait_for()
            site.acts = [LISTED]
            await axe.look("model plan")
            await shot(page, f"setup-{kind}-model-plan")
            await use(page, page.get_by_role("button", name="Save"), narrow)
            await page.get_by_role("button", name="Edit llama3.2").wait_for()
            assert list(host.models) == ["llama3.2"]

            tabs = page.get_by_role("navigation", name="Settings")
            await use(page, tabs.get_by_role("button", name="Servers"), narrow)
            await axe.look("servers")
            await shot(page, f"setup-{kind}-servers")
            await use(page, page.get_by_role("button", name="Add by command or address"), narrow)
            form = page.get_by_role("form", name="Add a server")
            await form.get_by_label("Name").fill("garden")
            await form.get_by_label("Command", exact=True).fill(sys.executable)
            await form.get_by_label("Arguments").fill(str(file))
            await form.get_by_label("Run it in a sandbox").uncheck()
            await axe.look("server form")
            await shot(page, f"setup-{kind}-form")
            await use(page, form.get_by_role("button", name="Continue"), narrow)
            plan = page.get_by_role("group", name="Review the change")
            command = await plan.get_by_label("The whole command").inner_text()
            assert command.strip() == f"{sys.executable} {file}"
            assert "with your rights" in await plan.inner_text()
            assert host.hub.servers == {}
            await use(page, plan.get_by_role("button", name="Test it once"), narrow)
            await plan.get_by_text("garden 2.1.0 works").wait_for()
            await plan.get_by_text("Its messages on stderr").click()
            await plan.get_by_text("watering the plants").wait_for()
            await axe.look("server plan")
            await shot(page, f"setup-{kind}-plan")
            assert not setup.files.path.exists()
            await use(page, plan.get_by_role("button", name="Add and start"), narrow)
            await page.get_by_role("switch", name="Look at a plant").wait_for()
            await up(host, "garden")
            await axe.look("server")
            await shot(page, f"setup-{kind}-server")
            assert host.questions == {}

            await use(page, page.get_by_role("button", name="Close the settings"), narrow)
            site.acts = [Act(CALL), Act(Answer(("Water it today.",)))]
            await say(page, "How is the fern?")
            await page.get_by_role("heading", name="Call Look at a plant on garden?").wait_for()
            await armed(page)
            await page.keyboard.press("a")
            await page.get_by_text("Water it today.").wait_for()
            await shot(page, f"setup-{kind}-call")
            assert "The fern is thirsty." in json.dumps(site.asked[-1].body)
            assert axe.found == {}


async def use(page: Any, button: Any, by_key: bool) -> None:
    """Press a button: by keyboard, or with the mouse."""
    if by_key:
        await button.focus()
        await page.keyboard.press("Enter")
    else:
        await button.click()


async def test_an_import_with_its_sandbox(chromium: Any, home: Path) -> None:
    """The servers of another client, the whole command, the choice of a sandbox, and the
    difference; the read-only preset; what is wrong with a server that does not start; removal.
    """
    file = garden(home)
    write_servers(
        PRODUCTS["cursor"].path(this_machine()),
        garden={"command": sys.executable, "args": [str(file)]},
        broken={"command": "no-such-program-here"},
    )
    async with set_up_page(chromium) as (stage, host, setup):
        page = await stage.page()
        await page.get_by_role("button", name="Import from other clients").click()
        found = page.get_by_role("region", name="Cursor")
        await found.get_by_role("button", name="Import garden").wait_for()
        await shot(page, "setup-clients")
        await found.get_by_role("button", name="Import garden").click()
        plan = page.get_by_role("group", name="Review the change")
        box = plan.get_by_label("Run it in a sandbox")
        if await box.is_checked():
            await plan.get_by_text("in a sandbox:").wait_for()
            await box.uncheck()
        await plan.get_by_text("with your rights:").wait_for()
        await plan.get_by_text('"sandbox": false').wait_for()
        await shot(page, "setup-import")
        await page.get_by_role("button", name="Import and start").click()
        await page.get_by_role("switch", name="Water a plant").wait_for()
        await page.get_by_role("button", name="Read-only tools").click()
        assert not await page.get_by_role("switch", name="Water a plant").is_checked()
        await page.get_by_role("button", name="Save the tools").click()
        await plan.get_by_text('"look"').wait_for()
        await page.get_by_role("button", name="Save", exact=True).click()
        await page.get_by_text("Tools: 1 of 2 on").wait_for()
        assert [item.tool.name for item in host.toolbox.items] == ["look"]

        raw = json.loads(setup.files.path.read_text(encoding="utf-8"))
        raw["mcpServers"]["broken"] = {"command": "no-such-program-here", "sandbox": False}
        setup.files.path.write_text(json.dumps(raw), encoding="utf-8")
        task = asyncio.ensure_future(setup.reload())
        await page.get_by_role("heading", name="Start broken?").wait_for()
        await armed(page)
        await page.get_by_role("button", name="Start it", exact=True).click()
        await task
        await until(host, "broken", "down")
        side = page.locator(".side")
        await side.get_by_role("button", name="broken").click()
        panel = page.get_by_role("complementary", name="Server")
        await panel.get_by_role("button", name="Find out what is wrong").click()
        await (
            page.get_by_role("list", name="Findings").get_by_text("no-such-program-here").wait_for()
        )
        await shot(page, "setup-doctor")
        await page.get_by_role("button", name="Edit the server").click()
        form = page.get_by_role("form", name="Edit the server")
        await form.get_by_label("Command", exact=True).fill(f"{sys.executable} {file}")
        await form.get_by_label("Arguments").fill("")
        await form.get_by_role("button", name="Continue").click()
        await page.get_by_role("button", name="Save", exact=True).click()
        await up(host, "broken")
        await page.get_by_role("button", name="Remove", exact=True).click()
        await page.get_by_role("heading", name="Remove broken?").wait_for()
        await page.get_by_role("button", name="Remove", exact=True).click()
        await page.get_by_role("button", name="Settings of garden").wait_for()
        assert list(host.hub.servers) == ["garden"]


async def test_a_login(chromium: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers 401 has a button; the page of its authorization server opens; then its
    tools are there.
    """
    monkeypatch.setenv("INTERLOCK_VAULT", (home / "own" / "vault").as_uri())
    folder = home / "shop"
    folder.mkdir()
    async with shop(folder) as url:
        path = write_servers(home / "servers.json", shop={"type": "http", "url": url})
        async with set_up_page(chromium, path) as (stage, host, _):
            page = await stage.page()
            await page.get_by_role("heading", name="Start shop?").wait_for()
            await armed(page)
            await page.get_by_role("button", name="Connect").click()
            await until(host, "shop", "login")
            await page.locator(".side").get_by_role("button", name="shop").click()
            panel = page.get_by_role("complementary", name="Server")
            await panel.get_by_role("button", name="Log in").click()
            box = page.get_by_role("region", name="Log in")
            await box.get_by_role("button", name="Log in").click()
            link = box.get_by_role("link", name="Open the login page")
            await link.wait_for()
            await shot(page, "setup-login")
            async with page.context.expect_page() as opening:
                await link.click()
            issuer = await opening.value
            await issuer.get_by_label("Name").fill("ada")
            await issuer.get_by_label("Password").fill(PASSWORD)
            await issuer.get_by_role("button", name="Log in").click()
            await issuer.get_by_role("button", name="Allow").click()
            await box.get_by_text("You are logged in.").wait_for()
            await up(host, "shop")
            await page.get_by_role("switch", name="who").wait_for()
