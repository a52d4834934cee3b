"""Rules about prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ...untrusted.invisible import visible_line
from ..diagnostics import RuleFinding, rule
from ..facts import CatalogueFacts


@rule(
    "prompt-argument-duplicate",
    "error",
    "Two arguments of a prompt have the same name",
    advice="Give each argument a name of its own.",
)
def prompt_argument_duplicate(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """Only one of them can be filled in."""
    for prompt in facts.prompts:
        for name, count in Counter(one.name for one in prompt.arguments or ()).items():
            if count > 1:
                yield RuleFinding(
                    f"it has {count} arguments {visible_line(name)}", visible_line(prompt.name)
                )


@rule(
    "prompt-undescribed",
    "note",
    "A prompt has no description",
    advice="Say in a sentence what it is for: people choose prompts from a menu.",
)
def prompt_undescribed(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """The user sees the name only."""
    for prompt in facts.prompts:
        if not (prompt.description or prompt.title or "").strip():
            yield RuleFinding("it has no description", visible_line(prompt.name))


RULES: Final = (prompt_argument_duplicate, prompt_undescribed)
