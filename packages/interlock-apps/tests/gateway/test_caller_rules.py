"""Rules with conditions about the caller: who they fit, what they hide, and how files have them."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.types import Tool, ToolAnnotations
from interlock_apps.fleet.policy import Policy, Requester, Rule
from interlock_apps.fleet.rulebook import BadPolicy, read_policy

ADA = Requester(
    principal="ada",
    issuer="https://login.example",
    scopes=frozenset({"crm.read", "files"}),
    view="support",
    client="agent-7",
)
READ = Tool(name="read", input_schema={"type": "object"})
SAFE = Tool(
    name="read",
    input_schema={"type": "object"},
    annotations=ToolAnnotations(read_only_hint=True),
)


@pytest.mark.parametrize(
    "conditions, fits",
    [
        ({}, True),
        ({"principal": "ada"}, True),
        ({"principal": "Ada"}, False),
        ({"principal": "a*"}, True),
        ({"principal": "?*"}, True),
        ({"principal": "https://login.example ada"}, True),
        ({"principal": "https://evil.example ada"}, False),
        ({"principal": "* ada"}, True),
        ({"scope": "crm.read"}, True),
        ({"scope": "crm.*"}, True),
        ({"scope": "crm.write"}, False),
        ({"view": "support"}, True),
        ({"view": "sales"}, False),
        ({"client": "agent-*"}, True),
        ({"client": "browser"}, False),
        ({"principal": "ada", "scope": "crm.read", "view": "support", "client": "agent-7"}, True),
        ({"principal": "ada", "view": "sales"}, False),
    ],
)
def test_whom_a_rule_fits(conditions: dict[str, Any], fits: bool) -> None:
    """All conditions must hold; a rule that does not fit leaves the call to the default."""
    policy = Policy([Rule(decision="deny", **conditions)], default="allow")
    assert policy.judge("crm", READ, {}, False, requester=ADA).decision == (
        "deny" if fits else "allow"
    )
    assert policy.hides("crm", READ, False, ADA) is fits
    assert (policy.judge_reading("crm", ADA).decision == "deny") is fits


@pytest.mark.parametrize("name", ["principal", "scope", "view", "client"])
def test_a_caller_without_a_principal_has_nothing_that_a_rule_could_name(name: str) -> None:
    condition: dict[str, Any] = {name: "?*"}
    policy = Policy([Rule(decision="allow", **condition)], default="deny")
    assert policy.judge("crm", READ, {}, False).decision == "deny"
    assert policy.hides("crm", READ, False)


@pytest.mark.parametrize(
    "rules, default, hidden",
    [
        ([], "deny", True),
        ([], "ask", False),
        ([], "allow", False),
        ([Rule(decision="deny", tool="read")], "allow", True),
        ([Rule(decision="deny", tool="write")], "allow", False),
        ([Rule(decision="deny", arguments={"path": "/etc/*"})], "allow", False),
        ([Rule(decision="allow", arguments={"path": "/srv/*"})], "deny", False),
        ([Rule(decision="ask", arguments={"path": "/srv/*"})], "deny", False),
        ([Rule(decision="deny", arguments={"path": "/etc/*"})], "deny", True),
        ([Rule(decision="allow", tool="write")], "deny", True),
        ([Rule(decision="deny"), Rule(decision="allow")], "allow", True),
    ],
)
def test_what_is_hidden_is_what_no_arguments_could_allow(
    rules: list[Rule], default: str, hidden: bool
) -> None:
    policy = Policy(rules, default=default)  # type: ignore[arg-type]  # a row of the table
    assert policy.hides("crm", READ, False) is hidden


def test_a_trusted_read_only_tool_is_not_hidden() -> None:
    policy = Policy(default="deny")
    assert policy.hides("crm", SAFE, False)
    assert not policy.hides("crm", SAFE, True)


@pytest.mark.parametrize(
    "rules, default, decision",
    [
        ([], "ask", "allow"),
        ([], "deny", "deny"),
        ([Rule(decision="allow", server="crm")], "deny", "allow"),
        ([Rule(decision="ask", server="crm")], "allow", "ask"),
        ([Rule(decision="deny", server="crm"), Rule(decision="allow")], "allow", "deny"),
        ([Rule(decision="deny", server="files")], "allow", "allow"),
        # These are about tools, and say nothing about a resource.
        ([Rule(decision="deny", tool="read")], "allow", "allow"),
        ([Rule(decision="deny", read_only=False)], "allow", "allow"),
        ([Rule(decision="deny", arguments={"path": "*"})], "allow", "allow"),
    ],
)
def test_prompts_and_resources_follow_rules_that_name_no_tool(
    rules: list[Rule], default: str, decision: str
) -> None:
    policy = Policy(rules, default=default)  # type: ignore[arg-type]  # a row of the table
    assert policy.judge_reading("crm").decision == decision


TOML = """
default = "deny"
[[rules]]
decision = "allow"
server = "crm"
scope = "crm.read"
principal = "ada"
view = "support"
client = "agent-*"
"""


def test_a_policy_of_a_gateway_names_callers() -> None:
    (rule,) = read_policy(TOML, gateway=True).rules
    assert (rule.principal, rule.scope, rule.view, rule.client) == (
        "ada",
        "crm.read",
        "support",
        "agent-*",
    )
    assert read_policy(TOML, gateway=True).caller_rules() == (rule,)


@pytest.mark.parametrize(
    "text, gateway, words",
    [
        (TOML, False, "'scope' is unknown"),  # a host would silently never apply it
        ('[[review]]\nserver = "mail"', True, "'review' is unknown"),
        ('[[rules]]\ndecision = "deny"\nprincipal = 5', True, "principal is 5: write a text"),
        ('[[rules]]\ndecision = "deny"\nscope = ""', True, "scope is empty"),
        ('[[rules]]\ndecision = "deny"\nprincipl = "ada"', True, "did you mean principal"),
    ],
)
def test_what_a_file_must_not_have(text: str, gateway: bool, words: str) -> None:
    with pytest.raises(BadPolicy, match=words):
        read_policy(text, gateway=gateway)
