"""The holiday in Barcelona as a person plans it at the page, step by step."""

from __future__ import annotations

from typing import Any

from tests.demo.hands import Keys, Mouse
from tests.demo.running import shot

PLAN = {
    "departure_date": "2024-06-15",
    "return_date": "2024-06-22",
    "budget": "3000",
    "travelers": "2",
}
JUNE = "calendar://my-calendar/June-2024"
EUROPE = "travel://preferences/europe"
SPAIN = "travel://past-trips/Spain-2023"
SUBJECT = "We are going to Barcelona"
WHO = {
    "Traveller's name": "Ada Lovelace",
    "E-mail": "ada@example.com",
    "Special requests": "A quiet room",
}


class Traveller:
    """Somebody at the page. `name` is the beginning of the names of the pictures."""

    def __init__(self, page: Any, hand: Mouse, name: str = "") -> None:
        self.page = page
        self.hand = hand
        self.name = name
        self.dialog = page.get_by_role("dialog")
        self._pictures = 0

    async def shot(self, what: str) -> None:
        """A picture, where this journey is one that is kept; and the page as a whole can be
        scrolled nowhere.
        """
        beyond = (
            "() => [document.scrollingElement.scrollHeight - innerHeight, "
            "document.scrollingElement.scrollWidth - innerWidth, scrollY]"
        )
        assert max(await self.page.evaluate(beyond)) <= 0, what
        if self.name:
            self._pictures += 1
            await shot(self.page, f"{self.name}-{self._pictures:02}-{what}")

    async def question(self, title: str) -> Any:
        """The question that is open now, once it takes answers; its beginning is in view."""
        from playwright.async_api import expect  # late: only these tests need it

        box = self.page.locator("[data-question]", has=self.page.get_by_role("heading", name=title))
        await box.locator(".answers button:not([disabled])").first.wait_for()
        await expect(box.get_by_role("heading", name=title)).to_be_in_viewport()
        if isinstance(self.hand, Keys):
            await self.page.wait_for_function(
                "() => !!document.activeElement.closest('[data-question]')"
            )
        return box

    async def attach(self) -> None:
        """Choose what the model may read: a month of the calendar by its template, the preferences,
        an earlier journey.
        """
        say = self.page.get_by_label("Your message")
        await self.hand.into(say)
        await self.page.keyboard.press("@")
        await self.page.get_by_role("listbox", name="Resources").wait_for()
        await self.shot("mentioned")
        await self.page.keyboard.press("ArrowUp")  # to the last one: all resources
        await self.page.keyboard.press("Enter")
        await self.dialog.wait_for()
        await self.shot("resources")
        await self.hand.press(self._branch("A month of one calendar"))
        await self.complete("calendar", "my", "my-calendar")
        await self.complete("month", "June-2", "June-2024")
        await self.shot("template")
        await self.hand.press(self.dialog.get_by_role("button", name="View"))
        await self.dialog.locator(".look code", has_text=JUNE).wait_for()
        await self.hand.press(self.dialog.get_by_role("button", name="Attach", exact=True))
        await self._back()
        await self.hand.press(self._branch("Travel preferences: Europe"))
        await self.dialog.get_by_text("Home airport").wait_for()
        await self.shot("look")
        await self.hand.press(self.dialog.get_by_role("button", name="Attach", exact=True))
        await self._back()
        await self.hand.take(self._branch("Past trip: Spain 2023"))
        await self.shot("chosen")
        await self.hand.press(self.dialog.get_by_role("button", name="Attach 3"))
        await self.dialog.wait_for(state="detached")
        await self.shot("attached")

    def _branch(self, text: str) -> Any:
        return self.dialog.get_by_role("treeitem").filter(has_text=text)

    async def _back(self) -> None:
        """On a telephone the list and what is looked at take turns."""
        back = self.dialog.get_by_role("button", name="Back")
        if await back.is_visible():
            await self.hand.press(back)

    async def complete(self, field: str, text: str, option: str) -> None:
        """Type the beginning of a value, and take the one that the server suggests."""
        box = self.dialog.locator(f"[data-field={field}]")
        await self.hand.into(box)
        await self.page.keyboard.type(text)
        suggested = self.dialog.get_by_role("option", name=option, exact=True)
        await suggested.wait_for()
        if isinstance(self.hand, Keys):
            while await suggested.get_attribute("aria-selected") != "true":
                await self.page.keyboard.press("ArrowDown")
            await self.page.keyboard.press("Enter")
        else:
            await self.hand.press(suggested)
        assert await box.input_value() == option

    async def plan(self) -> None:
        """Choose the prompt and fill it in."""
        await self.hand.into(self.page.get_by_label("Your message"))
        await self.page.keyboard.press("/")
        await self.page.get_by_role("listbox", name="Prompts").wait_for()
        await self.page.keyboard.type("plan a vac")
        await self.shot("prompts")
        await self.page.keyboard.press("Enter")
        await self.complete("destination", "Bar", "Barcelona")
        for name, value in PLAN.items():
            await self.hand.write(self.dialog.locator(f"[data-field={name}]"), value)
        await self.shot("prompt")
        await self.hand.press(self.dialog.get_by_role("button", name="Use prompt"))
        await self.dialog.wait_for(state="detached")

    async def fly(self, *, word: str = "", second: bool = False) -> None:
        """Review what a model is asked for one way, and what it answers; change the first word, or
        let the second flight be first.
        """
        box = await self.question("travel wants to ask a model")
        await self.shot("sampling")
        if word:
            await self.hand.answer(box, "Edit")
            await self.hand.into(box.get_by_label("Text of message 1"))
            for key in ("Control+Home", "Control+Shift+ArrowRight"):
                await self.page.keyboard.press(key)
            await self.page.keyboard.type(word)
            await box.get_by_text("The request is as you edited it.").wait_for()
            await self.shot("sampling-edited")
        await self.hand.answer(box, "Ask planner")
        box = await self.question("Give the model's answer to travel?")
        await self.shot("sampled")
        if second:
            await self.hand.answer(box, "Edit")
            field = box.get_by_label("Text of message 1")
            first, other, *rest = (await field.input_value()).splitlines()
            await self.hand.write(field, "\n".join([f"1.{other[2:]}", f"2.{first[2:]}", *rest]))
            await self.shot("sampled-edited")
        await self.hand.answer(box, "Give it")

    async def allow(self, title: str, picture: str) -> None:
        """Allow a call, once."""
        box = await self.question(f"Call {title}?")
        await self.shot(picture)
        await self.allow_once(box)

    async def allow_once(self, box: Any) -> None:
        """Allow a call, having seen all that it is called with."""
        await box.locator(".answers button:not([disabled])").first.wait_for()
        if await box.locator(".answers button", has_text="Show all").count():
            await self.hand.answer(box, "Show all")
        await self.hand.answer(box, "Allow once")

    async def fill_in(self) -> None:
        """Confirm the booking, with a seat, a room and an insurance."""
        box = await self.question("travel asks you")
        await box.get_by_text("Please confirm the booking details").wait_for()
        await self.shot("booking")
        for legend, choice in (
            ("Confirm", "Yes"),
            ("Seat", "Window"),
            ("Room", "Sea view"),
            ("Insurance", "Yes"),
        ):
            await self.hand.tick(
                box.get_by_role("group", name=legend).get_by_role("radio", name=choice)
            )
        await self.shot("booking-filled")
        await self.send(box, "booking-review")

    async def introduce(self) -> None:
        """Say who travels: first with an address of mail that is none."""
        box = self.page.locator("[data-question]", has_text="Who travels")
        await box.wait_for()
        await self.question("travel asks you")
        for label, text in {**WHO, "E-mail": "ada at example"}.items():
            await self.hand.write(box.get_by_label(label), text)
        await self.hand.answer(box, "Review")
        await box.get_by_text("This must be an e-mail address").wait_for()
        await self.shot("contact-wrong")
        await self.hand.write(box.get_by_label("E-mail"), WHO["E-mail"])
        await self.send(box, "contact-review")

    async def send(self, box: Any, picture: str) -> None:
        """Look a form over, and send it."""
        await self.hand.answer(box, "Review")
        await box.get_by_label("What will be sent").wait_for()
        await self.shot(picture)
        await self.hand.answer(box, "Send to travel")

    async def write_mail(self) -> None:
        """Allow the mail, with another subject."""
        box = await self.question("Call Send a mail on mail?")
        await self.shot("mail")
        await self.hand.answer(box, "Edit arguments")
        await self.hand.write(box.get_by_label("subject"), SUBJECT)
        await self.shot("mail-edited")
        await self.allow_once(box)

    async def whole(self, *, second: bool = False) -> None:
        """From the first key to the last word."""
        await self.shot("welcome")
        await self.attach()
        await self.plan()
        await self.fly(word="Weigh", second=second)
        await self.fly()
        await self.allow("Book a trip on travel", "book")
        await self.fill_in()
        await self.introduce()
        await self.hand.answer(await self.question("Make 2 calls?"), "One by one")
        await self.allow("Create an event on calendar", "event")
        await self.write_mail()
        await self.page.get_by_text("Your trip to Barcelona is booked").wait_for()
        await self.page.locator(".answer[aria-busy=true]").wait_for(state="detached")
        await self.page.locator(".composer .stop").wait_for(state="detached")
        await self.shot("summary")
