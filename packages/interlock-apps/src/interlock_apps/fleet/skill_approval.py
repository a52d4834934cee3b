"""The question whether a skill may be loaded: its files, its permissions and its warnings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from interlock.skills import SkillEntry
from interlock.untrusted.invisible import visible

from . import threat_scan
from .questions import FeatureChange, PinQuestion, Warned

_ACTS = ("hooks", "scripts", "commands")
"""Fields by which some products run code. They have no effect here."""


def form_of(entry: SkillEntry) -> dict[str, Any]:
    """The form of a skill that is approved: its frontmatter, and every file with its digest."""
    if entry.is_dynamic:
        return {"frontmatter": entry.frontmatter, "files": "dynamic"}
    return {
        "frontmatter": entry.frontmatter,
        "files": {file.uri: file.digest for file in entry.listed},
    }


def skill_question(
    id: str,
    server: str,
    session: str,
    call: str,
    entry: SkillEntry,
    approved: Any,
    others: Iterable[tuple[str, SkillEntry]],
) -> PinQuestion:
    """The question whether a skill may be loaded.

    Args:
        id: The id of the question.
        server: The host's label of the skill's server.
        session: The conversation that loads the skill.
        call: The call that loads the skill.
        entry: The skill as its server describes it now.
        approved: Its approved form, or None.
        others: All known skills, each with its server.
    """
    warnings = _warnings(server, entry, approved, others)
    change = FeatureChange(
        kind="skill",
        name=visible(entry.uri),
        was="" if approved is None else _shown(approved),
        now=_shown(form_of(entry)),
        warnings=warnings,
    )
    return PinQuestion(
        id=id, server=server, session=session, call=call, changes=(change,), warnings=warnings
    )


def _warnings(
    server: str, entry: SkillEntry, approved: Any, others: Iterable[tuple[str, SkillEntry]]
) -> tuple[Warned, ...]:
    words = (
        f"The model gets instructions of the server {server}. Nobody else verifies them: "
        "the digests only show that the server sends what it announced."
    )
    found = [Warned(kind="skill", words=words)]
    if approved is not None:
        found.append(Warned(kind="changed", words="The skill has changed since you approved it."))
    if entry.is_dynamic:
        found.append(
            Warned(
                kind="dynamic",
                words=(
                    "Its content is generated on each read, so your answer is valid only this time."
                ),
            )
        )
    found += _asks_for(entry)
    found += _collisions(server, entry, others)
    found += threat_scan.of_text(_texts(entry), where="frontmatter")
    return tuple({each.words: each for each in found}.values())


def _asks_for(entry: SkillEntry) -> Sequence[Warned]:
    """What the frontmatter asks for beyond being read; none of it is granted."""
    found = []
    tools = entry.frontmatter.get("allowed-tools")
    if tools:
        listed = tools if isinstance(tools, str) else json.dumps(tools, ensure_ascii=False)
        found.append(
            Warned(
                kind="permissions",
                words=f"It asks to allow these tools: {visible(listed[:300])}. That is not "
                "granted: you are asked about each call.",
            )
        )
    acts = [field for field in _ACTS if field in entry.frontmatter]
    if acts:
        found.append(
            Warned(
                kind="permissions",
                words=f"It asks to run code ({', '.join(acts)}). That is ignored.",
            )
        )
    return found


def _collisions(
    server: str, entry: SkillEntry, others: Iterable[tuple[str, SkillEntry]]
) -> Sequence[Warned]:
    found = []
    for where, other in others:
        if (where, other.uri) == (server, entry.uri):
            continue
        if other.name == entry.name:
            found.append(
                Warned(
                    kind="collision",
                    words=f"Another skill has the same name: {visible(other.uri)} of {where}.",
                )
            )
        if where == server and entry.root.startswith(f"{other.root}/"):
            found.append(
                Warned(
                    kind="nested",
                    words=f"It is inside the skill {visible(other.uri)}. Your approval of that "
                    "skill does not cover this one.",
                )
            )
    return found


def _texts(entry: SkillEntry) -> str:
    return "\n".join(str(value) for value in entry.frontmatter.values())


def _shown(form: Any) -> str:
    return visible(json.dumps(form, indent=2, ensure_ascii=False, sort_keys=True))
