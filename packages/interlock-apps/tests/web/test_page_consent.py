"""Consent that scales on the page: a step of calls on one card, scopes, a plan, modes, taint, and
the policy as sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.models.scripted import call
from interlock_apps.fleet.policy import Policy, Rule
from interlock_apps.fleet.policy_file import PolicyFile
from tests.host.consent_stage import ORDER, Recorded
from tests.web.stage import DESKTOP, TELEPHONE, say, shot, staged
from tests.web.test_page_axe import Axe
from tests.web.test_page_questions import armed

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


def served(recorded: Recorded) -> dict[str, Any]:
    return {name: (lambda server=server: server) for name, server in recorded.servers.items()}


def write(text: str, path: str = "/srv/b") -> Any:
    return call("files__write", path=path, text=text)


async def labels(box: Any) -> list[str]:
    found: list[str] = await box.locator(".answers button > span").all_inner_texts()
    return found


@pytest.fixture
def axe(installed: Callable[[str], Path]) -> str:
    """The source of axe-core."""
    return (installed("axe") / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


async def clean(page: Any, axe: str) -> None:
    """axe-core finds nothing on the page as it is."""
    looked = Axe(page, axe)
    await looked.look("now")
    assert not looked.found, looked.found


@pytest.mark.parametrize("size", [DESKTOP, TELEPHONE], ids=["desk", "telephone"])
async def test_the_calls_of_a_step_are_one_card(chromium: Any, size: dict[str, int]) -> None:
    """Grouped by tool, equal calls once; those that are chosen are answered, the others stay."""
    recorded = Recorded()
    step = [write("one"), write("two"), write("one"), call("net__send", to="a@b.org", body="hi")]
    servers = served(recorded)
    async with staged(chromium, step, "All done.", servers=servers) as stage:
        page = await stage.page(size=size, dark=size is TELEPHONE)
        await say(page, "Go")
        box = await armed(page)
        await page.get_by_role("heading", name="Make 4 calls?").wait_for()
        assert await page.locator("[data-question]").count() == 1
        assert await box.locator(".call-group").count() == 2
        assert await box.get_by_role("checkbox").count() == 3
        assert "2 equal calls" in await box.inner_text()
        await page.wait_for_function(
            "() => document.querySelector('.answers')?.innerText.includes('Allow all 4') ||"
            " document.querySelector('.answers')?.innerText.includes('Show all')"
        )
        if "Allow all 4" not in await labels(box):
            await page.keyboard.press("v")
            await box.get_by_role("button", name="Allow all 4").wait_for()
        await shot(page, f"consent-group-{size['width']}")
        await box.get_by_role("checkbox").nth(1).uncheck()
        await box.locator("button:not([disabled])", has_text="Allow 3 of 4").click()
        # One call is left, so its own card asks.
        await page.get_by_role("heading", name="Call write on files?").wait_for()
        await armed(page)
        await page.keyboard.press("d")
        await page.keyboard.press("Enter")
        await page.get_by_text("All done.").wait_for()
        texts = [arguments.get("text") for _, _, arguments in recorded.calls]
        assert sorted(texts, key=str) == sorted(["one", "one", None], key=str)


async def test_the_calls_of_a_step_are_answered_one_by_one(chromium: Any) -> None:
    """Each has its own card, where its arguments can be edited."""
    recorded = Recorded()
    script = [[write("one"), write("two")], "Done."]
    async with staged(chromium, *script, servers=served(recorded)) as stage:
        page = await stage.page()
        await say(page, "Go")
        await armed(page)
        await page.keyboard.press("o")
        boxes = page.locator("[data-question]")
        await page.wait_for_function(
            "() => document.querySelectorAll('[data-question]').length === 2"
        )
        for _ in range(2):
            await boxes.first.locator("button:not([disabled])", has_text="Allow once").click()
        await page.get_by_text("Done.", exact=True).wait_for()
        assert recorded.tools == ["write", "write"]


async def test_a_value_out_of_view_counts_in_a_group(chromium: Any) -> None:
    """TOL-24: as on the card of one call, and only for the calls that are chosen."""
    long = {"path": "/w", "text": "line\n" * 400 + "THE END"}
    step = [write("short"), call("files__write", **long)]
    recorded = Recorded()
    async with staged(chromium, step, "Done.", servers=served(recorded)) as stage:
        page = await stage.page()
        await say(page, "Go")
        box = await armed(page)
        assert "Allow without having seen 1 of 4 values" in await labels(box)
        assert not any(label.startswith("Allow all") for label in await labels(box))
        await box.get_by_role("checkbox").nth(1).uncheck()
        await box.get_by_role("button", name="Allow 1 of 2").wait_for()
        await box.get_by_role("checkbox").nth(1).check()
        await box.get_by_role("button", name="Show all 4 values").click()
        await box.locator("button:not([disabled])", has_text="Allow all 2").click()
        await page.get_by_text("Done.", exact=True).wait_for()
        assert [arguments["text"][-7:] for _, _, arguments in recorded.calls] == [
            "short",
            "THE END",
        ]


async def test_an_answer_by_scope_is_written_to_the_policy(chromium: Any, tmp_path: Path) -> None:
    """The rule is shown before it holds, and stands in the file as it was shown."""
    path = tmp_path / "policy.toml"
    path.write_text("# ours\n")
    recorded = Recorded()
    script = [write("one"), write("two", "/srv/c"), "Done."]
    options = {"servers": served(recorded), "host_options": {"policy_file": PolicyFile(path)}}
    async with staged(chromium, *script, **options) as stage:
        page = await stage.page()
        await say(page, "Go")
        box = await armed(page)
        await page.keyboard.press("m")
        await box.get_by_label("write with path under /srv").check()
        shown = await box.locator(".scope-rule pre").inner_text()
        await box.get_by_role("button", name="Always").click()
        await shot(page, "consent-scopes")
        await box.get_by_role("button", name="Allow these calls").click()
        await page.get_by_text("Done.", exact=True).wait_for()
        assert recorded.tools == ["write", "write"]
        assert path.read_text() == f"# ours\n\n{shown.strip()}\n"
        await page.locator(".card-head").first.click()
        assert "write with path under /srv" in await page.locator(".settled").first.inner_text()


async def test_risk_decides_the_main_button(chromium: Any) -> None:
    """A destructive tool: Deny comes first, and the card says why."""
    recorded = Recorded()
    script = [call("files__delete", path="/srv/b"), "Done."]
    async with staged(chromium, *script, servers=served(recorded)) as stage:
        page = await stage.page()
        await say(page, "Go")
        box = await armed(page)
        assert (await labels(box))[0] == "Deny"
        assert await box.locator(".answers button.main > span").all_inner_texts() == ["Deny"]
        assert "it may delete or overwrite" in await box.locator(".risk").inner_text()
        await shot(page, "consent-risk")
        await page.keyboard.press("a")
        await page.get_by_text("Done.", exact=True).wait_for()
        assert recorded.tools == ["delete"]


async def test_plan_first_then_within_bounds(chromium: Any, axe: str) -> None:
    """A journey through the modes: a plan of which a part is approved, bounds that are reached,
    and the list of what was done.
    """
    recorded = Recorded()
    steps = [
        {
            "tool": "files__write",
            "arguments": {"path": "/srv/b", "text": "x"},
            "why": "to keep it",
        },
        {"tool": "net__send", "arguments": {"to": "ada@example.com"}, "open": ["body"]},
    ]
    script = [
        call("interlock__plan", steps=steps),
        write("x"),
        "Planned.",
        [write("1"), write("2")],
        "Bounded.",
    ]
    async with staged(chromium, *script, servers=served(recorded)) as stage:
        page = await stage.page()
        mode = page.get_by_label("Mode", exact=True)
        await mode.select_option("plan")
        await say(page, "Go")
        box = await armed(page)
        await page.get_by_role("heading", name="The model plans 2 steps").wait_for()
        assert "body" in await box.locator(".note", has_text="Any value fits").inner_text()
        await shot(page, "consent-plan")
        await clean(page, axe)
        await box.get_by_role("checkbox").nth(1).uncheck()
        await box.locator("button:not([disabled])", has_text="Approve 1 of 2").click()
        await page.get_by_text("Planned.", exact=True).wait_for()
        assert recorded.tools == ["write"]
        await mode.select_option("bounds")
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Calls").fill("1")
        await shot(page, "consent-bounds")
        await clean(page, axe)
        await dialog.get_by_role("button", name="Run within these bounds").click()
        await page.get_by_text("Within bounds: 0 of 1 call").wait_for()
        await say(page, "Go on")
        box = await armed(page)
        assert "The bound of 1 calls is reached." in await box.inner_text()
        await shot(page, "consent-bound-reached")
        await page.keyboard.press("r")
        await page.get_by_text("Bounded.", exact=True).wait_for()
        assert recorded.tools == ["write"] * 3
        await page.get_by_role("button", name="What was done").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_text("write on files, 3 times").wait_for()
        await shot(page, "consent-done")
        await page.keyboard.press("Escape")
        await page.reload()
        await page.get_by_text("Within bounds: 0 of 1 call").wait_for()


async def test_taint_is_shown_and_cleared(chromium: Any, axe: str) -> None:
    """The line above the message box says why writes ask, on a telephone and after a reload."""
    recorded = Recorded()
    recorded.pages["https://example.com/a"] = ORDER
    script = [
        call("net__fetch", url="https://example.com/a"),
        write("x"),
        "Done.",
        write("y"),
        "End.",
    ]
    options = {"servers": served(recorded), "policy": Policy([Rule(decision="allow")])}
    async with staged(chromium, *script, **options) as stage:
        page = await stage.page(size=TELEPHONE)
        await say(page, "Go")
        box = await armed(page)
        assert (await labels(box))[0] == "Deny"
        await shot(page, "consent-taint")
        await page.keyboard.press("d")
        await page.keyboard.press("Enter")
        await page.get_by_text("Done.", exact=True).wait_for()
        await page.reload()
        line = page.locator(".consent-line.is-tainted")
        assert "A result of fetch on net" in await line.inner_text()
        await clean(page, axe)
        await line.get_by_role("button", name="Clear").click()
        await line.wait_for(state="detached")
        await say(page, "Again")
        await page.get_by_text("End.", exact=True).wait_for()
        assert recorded.tools == ["fetch", "write"]


async def test_the_policy_is_edited_as_sentences(chromium: Any, tmp_path: Path, axe: str) -> None:
    """Add, change, move and remove a rule, each after a look at the difference; explain a call."""
    path = tmp_path / "policy.toml"
    path.write_text('# ours\n\n# no system files\n[[rules]]\ndecision = "deny"\ntool = "delete"\n')
    options = {
        "servers": served(Recorded()),
        "host_options": {"policy_file": PolicyFile(path)},
        "policy": PolicyFile(path).policy(),
    }
    async with staged(chromium, **options) as stage:
        page = await stage.page()
        await page.get_by_role("button", name="Settings").click()
        await page.get_by_role("button", name="Policy", exact=True).click()
        await page.get_by_text("Deny delete of every server.").wait_for()
        await page.get_by_role("button", name="Add a rule").click()
        form = page.get_by_role("form", name="Rule")
        await form.get_by_label("Decision").select_option("allow")
        await form.get_by_label("Server (* for all)").fill("files")
        await form.get_by_label("Tool (* for all)").fill("write")
        await form.get_by_role("button", name="Condition about an argument").click()
        await form.get_by_label("Argument", exact=True).fill("path")
        await form.get_by_label("Condition", exact=True).select_option("under")
        await form.get_by_label("Value").fill("/srv")
        await form.get_by_role("button", name="Show the change").click()
        change = page.get_by_role("region", name="The change of the policy file")
        assert '+tool = "write"' in await change.inner_text()
        await shot(page, "consent-policy")
        await clean(page, axe)
        await change.get_by_role("button", name="Save to the file").click()
        sentence = "Allow write of files if path is under /srv."
        await page.get_by_text(sentence).first.wait_for()
        assert "# no system files" in path.read_text()
        assert [rule.tool for rule in stage.host.policy.rules] == ["delete", "write"]
        await page.get_by_role("button", name=f"Move up: {sentence}").click()
        await change.get_by_role("button", name="Save to the file").click()
        await page.get_by_role("button", name="Move up: Deny delete of every server.").wait_for()
        assert [rule.tool for rule in stage.host.policy.rules] == ["write", "delete"]
        await page.get_by_role("button", name="Remove: Deny delete").click()
        await change.get_by_role("button", name="Save to the file").click()
        await page.get_by_text("Deny delete of every server.").wait_for(state="detached")
        assert "no system files" not in path.read_text()
        explain = page.get_by_role("form", name="A call to explain")
        await explain.get_by_label("Tool", exact=True).select_option(label="write on files")
        await explain.get_by_label("path").fill("/srv/x")
        await explain.get_by_label("text").fill("x")
        await explain.get_by_role("button", name="Explain").click()
        await page.get_by_text("It runs without a question.").wait_for()
        await shot(page, "consent-explained")


async def test_sampling_is_allowed_for_a_session_with_bounds(chromium: Any) -> None:
    """The bounds are chosen on the question, counted above the message box, and revoked there."""
    script = [call("travel__find_best_flight", destination="Rome"), "VY", "VY", "Two.", "Three."]
    async with staged(chromium, *script, policy=Policy(default="allow")) as stage:
        page = await stage.page()
        await say(page, "Best flight")
        box = await armed(page)
        await box.get_by_label("Allow further requests in this session").check()
        await box.get_by_label("Requests", exact=True).fill("3")
        await shot(page, "consent-sampling")
        await box.locator("button:not([disabled])", has_text="Ask planner").click()
        await page.locator("button:not([disabled])", has_text="Give it").click()
        line = page.locator(".consent-line", has_text="may ask models: 3 requests")
        await line.get_by_role("button").click()
        await line.wait_for(state="detached")
        (session,) = stage.host.sessions
        assert stage.host.sampling(session) == {}
