"""The terminal prints every argument of a call that it asks about, and says so where the screen
does not hold them.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from interlock import Server
from interlock.models.scripted import call
from interlock_apps.commands.chat.output import rendered
from interlock_apps.commands.chat.question_views import question_view
from interlock_apps.commands.chat.results import MediaFiles
from interlock_apps.fleet.questions import CallQuestion
from tests.commands.seated import seated

TEXTS = st.text(st.sampled_from("abcxyz019 _:#-'\"{["), max_size=12) | st.just("long " * 300)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=80) | st.dictionaries(TEXTS, inner, max_size=20),
    max_leaves=30,
)


def parts(value: Any) -> list[str]:
    """The keys and the texts and numbers of a value."""
    if isinstance(value, dict):
        inner = [found for each in value.values() for found in parts(each)]
        return [*value, *inner]
    if isinstance(value, list):
        return [found for each in value for found in parts(each)]
    return [str(value)] if isinstance(value, str | int) and not isinstance(value, bool) else []


def squeezed(text: str) -> str:
    """A text without blanks and line ends, which a terminal puts where it breaks lines."""
    return "".join(text.split())


@given(st.dictionaries(TEXTS, VALUES, max_size=20), st.sampled_from([40, 80, 120]))
def test_every_argument_is_printed_whole(arguments: dict[str, Any], width: int) -> None:
    """`TOL-24`: no column, row, key or end of a text is left out, however long it is and wherever
    it stands.
    """
    question = CallQuestion(id="q", server="s", tool="t", title="t", arguments=arguments)
    printed = squeezed(
        "".join(
            rendered(each, width, False) for each in question_view(question, MediaFiles(), width)
        )
    )
    for part in parts(arguments):
        assert squeezed(part) in printed


async def test_arguments_that_scroll_away_are_said_to() -> None:
    """A question that is longer than the screen says so under it, where the keys are."""
    server = Server("shop")

    @server.tool
    def buy(things: list[str]) -> str:
        """Buy things."""
        return f"bought {len(things)}"

    things = [f"thing {n}" for n in range(300)]
    steps = ([call("shop__buy", things=things)], "Done.")
    async with seated({"shop": server}, *steps) as seat:
        await seat.answer("❯", "buy\r")
        shown = await seat.answer(r"lines\. Scroll up to see those above", "")
        assert "- thing 0\n" in shown
        assert "- thing 299\n" in shown
        await seat.answer("d details", "y")
        await seat.see("bought 300")
        await seat.see(r"Done\.")
        await seat.leave()
