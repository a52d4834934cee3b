"""Rules about the configuration file of a product."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ...configs import Entry
from ..diagnostics import RuleFinding, rule
from ..facts import HostFacts

_UNANSWERED = re.compile(r"the input .* has no answer")


@rule(
    "config-missing",
    "error",
    "The product has no configuration file",
    advice="Add a server with `interlock install`.",
    stops=True,
)
def config_missing(facts: HostFacts) -> Iterator[RuleFinding]:
    """The file does not exist."""
    if not facts.exists:
        yield RuleFinding(f"{facts.title} has no file {facts.file}", facts.file)


@rule(
    "config-unreadable",
    "error",
    "The configuration file cannot be read",
    advice="Repair the file at this place. The product ignores all of its servers meanwhile.",
)
def config_unreadable(facts: HostFacts) -> Iterator[RuleFinding]:
    """The file is malformed, or has no servers where they belong."""
    for problem in facts.problems if facts.exists else ():
        if not problem.id and problem.level == "error":
            yield RuleFinding(problem.words, facts.file)


@rule(
    "config-entry",
    "error",
    "A server of the configuration cannot be used",
    advice="Repair this entry.",
)
def config_entry(facts: HostFacts) -> Iterator[RuleFinding]:
    """An entry was left out."""
    for problem in facts.problems:
        if problem.id and problem.level == "error" and not _UNANSWERED.search(problem.words):
            yield RuleFinding(problem.words.removeprefix("left out: "), problem.id)


@rule(
    "config-input",
    "note",
    "A server needs a value that only the product knows",
    advice="Run `interlock doctor --config FILE --server NAME` in a terminal, and give the value.",
)
def config_input(facts: HostFacts) -> Iterator[RuleFinding]:
    """The entry has `${input:...}`, for which the product asks its user."""
    for problem in facts.problems:
        if problem.id and _UNANSWERED.search(problem.words):
            yield RuleFinding(problem.words.removeprefix("left out: "), problem.id)


@rule(
    "config-detail",
    "note",
    "A detail of the configuration has no effect",
    advice="Remove it, or correct its name.",
)
def config_detail(facts: HostFacts) -> Iterator[RuleFinding]:
    """An entry is used without one of its keys."""
    for problem in facts.problems:
        if problem.level == "note":
            yield RuleFinding(problem.words, problem.id)


@rule(
    "config-duplicate",
    "warning",
    "A server is configured twice",
    advice="Remove one of the entries: the model is offered each tool twice.",
)
def config_duplicate(facts: HostFacts) -> Iterator[RuleFinding]:
    """Two enabled entries start the same command, or lead to the same URL."""
    seen: dict[object, str] = {}
    for entry in facts.entries:
        if entry.disabled:
            continue
        first = seen.setdefault(_identity(entry), entry.id)
        if first != entry.id:
            yield RuleFinding(f"it is the same server as {first}", entry.id)


def _identity(entry: Entry) -> object:
    env = tuple(sorted(entry.env.items()))
    return entry.command, entry.url, env, tuple(sorted(entry.headers.items()))


RULES: Final = (
    config_missing,
    config_unreadable,
    config_entry,
    config_input,
    config_detail,
    config_duplicate,
)
