"""The page for those who do not see it, or do not use a mouse: roles and names, live regions,
contrast, keys, and little motion.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock.models.scripted import call
from tests.web.stage import DESKTOP, TELEPHONE, say, shot, staged
from tests.web.test_page_questions import SEARCH, armed

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

WELCOME = """
- link "Skip to the message box"
- banner:
  - text: Interlock
  - heading "New conversation" [level=1]
  - button "Search everything"
  - button /Appearance/
- navigation "Conversations and servers":
  - heading "Conversations" [level=2]
  - button "New conversation"
  - list "Conversations"
  - heading "Servers" [level=2]
  - list "Servers":
    - listitem:
      - button "ready travel 6 tools":
        - img "ready"
    - listitem:
      - button "ready weather 1 tool":
        - img "ready"
  - button "Folders"
  - button "Rules"
  - button "Log"
- main:
  - note: /no language model/
  - heading "How can I help?" [level=2]
  - list "Prompts to begin with":
    - listitem:
      - button /Plan a vacation/
  - form "Composer":
    - textbox "Your message"
    - button "Prompts"
    - button "Resources"
    - combobox "Model"
    - button "Send"
- status "Notices"
"""

QUESTION = """
- log "Conversation":
  - list:
    - listitem:
      - article "You"
    - listitem:
      - article "Search flights":
        - button "Search flights NYC, Barcelona, 2024-06-15 travel Waiting for you" [expanded]
        - region "Call Search flights on travel?":
          - heading "Call Search flights on travel?" [level=3]
          - paragraph: /The model wants to call/
          - group
          - group "How the arguments are shown":
            - button "Table" [pressed]
            - button "JSON"
          - term: origin
          - definition: NYC
          - button "Allow once"
          - button "Allow for this session"
          - button "Always allow"
          - button "Edit arguments"
          - button "Deny"
"""

# The contrast of every text that is seen with what is behind it, as WCAG 2 reckons it; those that
# fall short, with their texts.
CONTRAST = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const fill = (colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
  };
  const rgb = (colour, under) => {
    canvas.clearRect(0, 0, 1, 1);
    if (under) fill(under);
    fill(colour);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [r, g, b] = colour.map(v => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const all = [];
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      all.push(colour);
      if (rgb(colour)[3] === 255) break;
    }
    let under = "rgb(255,255,255)";
    for (const colour of all.reverse()) {
      const [r, g, b] = rgb(colour, under);
      under = `rgb(${r},${g},${b})`;
    }
    return under;
  };
  const bad = [];
  const walker = document.createTreeWalker(document.querySelector("dialog[open]") ?? document.body,
      NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim()) continue;
    if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    if (element.closest(".hidden-text, .hidden, :disabled, option, .skip, kbd")) continue;
    const under = behind(element), style = getComputedStyle(element);
    const [one, other] = [light(rgb(style.color, under)), light(rgb(under))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    const words = node.data.trim().slice(0, 40);
    if (ratio < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) {
      bad.push(`${words}: ${ratio.toFixed(2)} ${style.color} on ${under}`);
    }
  }
  return bad;
}"""

# Controls without a name, and ids that are there twice.
NAMELESS = """() => {
  const controls = [
    "button", "a[href]", "input", "select", "textarea", "dialog",
    "[role=treeitem]", "[role=option]", "[role=listbox]", "[role=tree]",
  ];
  const references = [
    "aria-controls", "aria-labelledby", "aria-describedby", "aria-activedescendant",
  ];
  const ids = (e, attribute) => (e.getAttribute(attribute) ?? "").split(" ").filter(Boolean);
  const text = id => document.getElementById(id)?.textContent ?? "";
  const name = e => (
    e.getAttribute("aria-label")
    || ids(e, "aria-labelledby").map(text).join("")
    || [...(e.labels ?? [])].map(l => l.textContent).join("")
    || e.textContent || e.title || ""
  ).trim();
  const is_nameless = e => (
    e.checkVisibility() && !e.closest("[aria-hidden=true]") && !name(e)
  );
  const all = [...document.querySelectorAll("[id]")].map(e => e.id);
  const nameless = [...document.querySelectorAll(controls.join())]
    .filter(is_nameless)
    .map(e => e.outerHTML.slice(0, 120));
  const lost = [...document.querySelectorAll(references.map(a => `[${a}]`).join())]
    .flatMap(e => references
      .flatMap(a => ids(e, a))
      .filter(id => !document.getElementById(id))
      .map(id => `${id} of ${e.outerHTML.slice(0, 80)}`));
  return [...nameless, ...all.filter((id, at) => all.indexOf(id) !== at), ...lost];
}"""


async def sound(page: Any) -> None:
    """Every text can be read, every control has a name, every reference leads somewhere."""
    await page.evaluate(
        "() => Promise.all(document.getAnimations().map(one => one.effect.getTiming().iterations "
        "=== Infinity ? null : one.finished))"
    )
    assert await page.evaluate(CONTRAST) == []
    assert await page.evaluate(NAMELESS) == []


async def test_the_page_has_roles_and_names(chromium: Any) -> None:
    """Landmarks, headings, lists, and every control by its name."""
    from playwright.async_api import expect  # late: only these tests need it

    async with staged(chromium, SEARCH) as stage:
        page = await stage.page()
        await page.get_by_role("button", name="Plan a vacation").wait_for()
        await expect(page.locator(".app")).to_match_aria_snapshot(WELCOME)
        await say(page, "Find flights")
        await armed(page)
        await expect(page.get_by_role("log")).to_match_aria_snapshot(QUESTION)


@pytest.mark.matrix(pairs=False, seconds=5)
@pytest.mark.parametrize("size", [DESKTOP, TELEPHONE], ids=["desk", "telephone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_all_that_is_shown_can_be_read(
    chromium: Any, size: dict[str, int], dark: bool
) -> None:
    """Contrast of texts, names of controls, on every part of the page, light and dark."""
    async with staged(
        chromium,
        ["Let me see: [a link](https://example.com) and `code`", SEARCH],
        call("travel__book_hotel", city="Bari"),
        "Well.",
    ) as stage:
        page = await stage.page(size=size, dark=dark)
        where = f"{size['width']}-{'dark' if dark else 'light'}"
        await sound(page)
        await shot(page, f"all-welcome-{where}")
        await page.keyboard.press("/")
        await page.get_by_role("option", name="Plan a vacation").wait_for()
        await sound(page)
        await page.get_by_role("option", name="Plan a vacation").click()
        await page.get_by_role("dialog").wait_for()
        await sound(page)
        # Escape would only close the suggestions if they have come meanwhile.
        await page.get_by_role("dialog").get_by_role("button", name="Close").click()
        await page.get_by_role("dialog").wait_for(state="detached")
        await page.get_by_role("button", name="Resources", exact=True).click()
        await page.get_by_role("treeitem", name="Preferences").click()
        await page.get_by_text("Window seat").wait_for()
        await sound(page)
        await shot(page, f"all-resources-{where}")
        await page.keyboard.press("Escape")
        await say(page, "Find flights")
        await armed(page)
        await sound(page)
        await shot(page, f"all-call-{where}")
        await page.keyboard.press("e")
        await sound(page)
        await page.get_by_role("button", name="Allow once").click()
        await page.get_by_role("heading", name="Call Book a hotel on travel?").wait_for()
        await armed(page)
        await page.keyboard.press("a")
        await page.get_by_role("heading", name="travel asks you").wait_for()
        box = await armed(page)
        await box.get_by_role("button", name="Review").click()
        await sound(page)
        await shot(page, f"all-form-{where}")
        await box.get_by_role("button", name="Decline").click()
        await page.get_by_text("Well.").wait_for()
        await sound(page)
        await page.keyboard.press("Control+k")
        await page.get_by_role("dialog").get_by_role("option").first.wait_for()
        await sound(page)
        await page.keyboard.press("Escape")
        for name in ("Folders", "Rules", "Log"):
            await page.keyboard.press("Control+k")
            await page.keyboard.type(f"show {name}")
            await page.keyboard.press("Enter")
            await page.get_by_role("complementary", name=name).wait_for()
            await sound(page)
            await page.keyboard.press("Escape")
        await shot(page, f"all-done-{where}")


async def test_a_question_is_announced(chromium: Any) -> None:
    """In a live region, whoever asks it; and the title of the page counts those that are open."""
    async with staged(chromium, SEARCH, "Two.") as stage:
        page = await stage.page()
        await say(page, "Find flights")
        await armed(page)
        assert await page.locator("[data-spoken]").inner_text() == "Call Search flights on travel?"
        assert await page.locator("[data-spoken]").get_attribute("aria-live") == "polite"
        assert await page.title() == "(1) Interlock"
        await page.keyboard.press("a")
        await page.get_by_text("The answer is complete.").wait_for(state="attached")
        assert await page.title() == "Interlock"


async def test_the_focus_is_always_seen(chromium: Any) -> None:
    """Tab goes through everything in order, and where it is has an outline."""
    async with staged(chromium) as stage:
        page = await stage.page()
        await page.reload()  # a page that was just opened begins at its top
        await page.locator(".side .dot").first.wait_for()
        await page.evaluate(
            "() => { const top = document.body; top.tabIndex = -1; top.focus(); "
            "top.removeAttribute('tabindex'); }"
        )
        seen = []
        for _ in range(12):
            await page.keyboard.press("Tab")
            name, width = await page.evaluate(
                """() => { const e = document.activeElement; const box =
                e.closest(".composer-box") ?? e; return [e.getAttribute("aria-label") ||
                e.textContent, parseFloat(getComputedStyle(box).outlineWidth)]; }
                """
            )
            assert width >= 1, name
            seen.append(name)
        assert seen[0] == "Skip to the message box"
        assert seen[1].startswith("Search everything")
        assert len(set(seen)) == len(seen)
        await page.keyboard.press("Shift+Tab")


async def test_who_wants_little_motion_gets_little(chromium: Any) -> None:
    """No animation runs on for those who asked for none."""
    async with staged(chromium, SEARCH) as stage:
        page = await stage.page(reduced_motion="reduce")
        await say(page, "Find flights")
        await armed(page)
        assert (
            await page.evaluate(
                "document.getAnimations().filter(one => one.playState === 'running' && "
                "one.effect.getTiming().iterations === Infinity).length"
            )
            == 0
        )
