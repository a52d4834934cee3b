"""The policy for the page: its rules as sentences, and changes of its file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ...fleet.policy import Rule
from ...fleet.policy_file import (
    PolicyChanged,
    Setting,
    difference,
    with_moved_rule,
    with_rule,
    with_setting,
    without_rule,
)
from ...fleet.rule_text import in_words, rule_toml
from ...fleet.rulebook import BadPolicy
from .acts import ChangePolicyAct
from .state import plain, rule_id

if TYPE_CHECKING:
    from ..app import Host

_SETTINGS: dict[str, Setting] = {"default": "default", "trustedReadOnly": "trusted_read_only"}


def policy_view(host: Host) -> dict[str, Any]:
    """Return the policy, after reading its file again.

    `problem` says why the file cannot be used; the rules are then those that hold.
    """
    problem = ""
    text = ""
    if host.rules.file is not None:
        try:
            text = host.rules.reload()
        except BadPolicy as bad:
            problem = str(bad)
    policy = host.policy
    return {
        "path": str(host.rules.file.path) if host.rules.file is not None else "",
        "digest": digest_of_text(text),
        "problem": problem,
        "default": policy.default,
        "trustedReadOnly": policy.trusted_read_only,
        "rules": _listed(policy.rules),
        "review": _listed(policy.review),
        "learned": [{**each, "id": rule_id(rule)} for rule, each in _pairs(policy.learned)],
    }


def changed_policy(host: Host, act: ChangePolicyAct) -> dict[str, Any]:
    """Prepare a change of the policy file, and write it if the act says so.

    Raises:
        BadPolicy: The file cannot be edited, or is not as the page has seen it.
    """
    if host.rules.file is None:
        raise BadPolicy("This host has no policy file: start it with --policy FILE")
    before = host.rules.file.read()
    if digest_of_text(before) != act.digest:
        raise PolicyChanged("The policy file has changed meanwhile: look at it again.")
    after = _after(before, act)
    if act.save:
        host.rules.edit(before, after)
    return {
        "lines": difference(before, after),
        "words": "" if act.rule is None else in_words(act.rule),
        "toml": "" if act.rule is None else rule_toml(act.rule, act.table),
    }


def digest_of_text(text: str) -> str:
    """The digest by which a page says which text it has seen."""
    return hashlib.sha256(text.encode()).hexdigest()


def _after(before: str, act: ChangePolicyAct) -> str:
    if act.what in _SETTINGS:
        if act.value is None:
            raise BadPolicy("A setting needs a value: allow, ask or deny.")
        return with_setting(before, _SETTINGS[act.what], act.value)
    if act.what in ("add", "replace"):
        if act.rule is None:
            raise BadPolicy("A rule is missing: say what it decides.")
        return with_rule(
            before, act.rule, table=act.table, at=act.at if act.what == "replace" else None
        )
    if act.at is None:
        raise BadPolicy("The number of a rule is missing: look at the policy again.")
    if act.what == "move":
        return with_moved_rule(before, act.at, act.to or 0, table=act.table)
    return without_rule(before, act.at, table=act.table)


def _pairs(rules: Sequence[Rule]) -> list[tuple[Rule, dict[str, Any]]]:
    return [
        (rule, {"rule": plain(msgspec.to_builtins(rule)), "words": in_words(rule)})
        for rule in rules
    ]


def _listed(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    return [each for _, each in _pairs(rules)]
