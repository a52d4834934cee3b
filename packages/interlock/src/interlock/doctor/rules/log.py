"""Rules about the log that a product keeps of a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..diagnostics import RuleFinding, rule
from ..facts import LogFacts


@rule(
    "log-errors",
    "warning",
    "The log of the product has errors about the server",
    advice="Read the lines around them in the file.",
)
def log_errors(facts: LogFacts) -> Iterator[RuleFinding]:
    """The last errors since the server was started last."""
    if facts.errors:
        yield RuleFinding("\n".join(facts.errors), facts.file)


RULES: Final = (log_errors,)
