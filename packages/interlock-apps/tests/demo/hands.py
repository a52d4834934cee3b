"""The hands of a person at a page: a mouse, fingers, or the keyboard and nothing else."""

from __future__ import annotations

from typing import Any

MOST_STEPS = 120  # of the Tab key until something must have been reached


class Mouse:
    """Clicks what it wants, and types."""

    def __init__(self, page: Any) -> None:
        self.page = page

    async def press(self, target: Any) -> None:
        """Press a button, or whatever else is pressed."""
        await target.click()

    async def tick(self, target: Any) -> None:
        """Choose one of several, or tick a box."""
        await self.press(target)

    async def into(self, target: Any) -> None:
        """Go into a field."""
        await self.press(target)

    async def take(self, row: Any) -> None:
        """Take something of a list, without a look at it."""
        await self.press(row.locator("xpath=..").locator("input[type=checkbox]"))

    async def answer(self, box: Any, label: str) -> None:
        """Answer a question, once it takes answers."""
        await self.press(box.locator(".answers button:not([disabled])", has_text=label))

    async def write(self, target: Any, text: str) -> None:
        """Write a text into a field, in the place of what was there."""
        await self.into(target)
        await self.page.keyboard.press("Control+A")
        await self.page.keyboard.insert_text(text)


class Fingers(Mouse):
    """Taps."""

    async def press(self, target: Any) -> None:
        """Tap it."""
        await target.tap()


class Keys(Mouse):
    """Tab, arrows, Enter, Space, and the keys that the page names; the pointer is never touched."""

    async def press(self, target: Any) -> None:
        """Go there, then Enter."""
        await self.into(target)
        await self.page.keyboard.press("Enter")

    async def into(self, target: Any) -> None:
        """Go to something with Tab, in a tree with the arrows."""
        await target.wait_for()
        tree = await target.get_attribute("role") == "treeitem"
        for _ in range(MOST_STEPS):
            if await target.evaluate("element => element === document.activeElement"):
                return
            within = tree and await self.page.evaluate(
                "document.activeElement.getAttribute('role') === 'treeitem'"
            )
            await self.page.keyboard.press("ArrowDown" if within else "Tab")
        raise AssertionError(f"not to be reached with the keys: {target}")

    async def take(self, row: Any) -> None:
        """Go to its row, then Space."""
        await self.into(row)
        await self.page.keyboard.press("Space")

    async def tick(self, target: Any) -> None:
        """Go to the group, then with the arrows to the choice."""
        name = await target.get_attribute("name")
        for _ in range(MOST_STEPS):
            if await self.page.evaluate("name => document.activeElement.name === name", name):
                break
            await self.page.keyboard.press("Tab")
        await self.page.keyboard.press("Space")
        for _ in range(MOST_STEPS):
            if await target.is_checked():
                return
            await self.page.keyboard.press("ArrowRight")
        raise AssertionError(f"not to be chosen with the keys: {target}")

    async def answer(self, box: Any, label: str) -> None:
        """By the key that stands on the button, where one does and nobody is in a field."""
        button = box.locator(".answers button:not([disabled])", has_text=label)
        await button.wait_for()
        key = await button.get_attribute("aria-keyshortcuts")
        free = await box.evaluate(
            "box => box.contains(document.activeElement) && "
            "!document.activeElement.matches('input, textarea, select')"
        )
        if key and free:
            await self.page.keyboard.press(key)
        else:
            await self.press(button)
