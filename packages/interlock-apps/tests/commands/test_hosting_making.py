"""What the host's commands make of what was typed: questions of a configuration, approvals, and
what two hosts keep in one place.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import click
import pytest

from interlock.cli.models import models_of
from interlock.configs import Input
from interlock.tape import TapeFile
from interlock_apps.commands.approvals import Approvals
from interlock_apps.commands.host_factory import config_of, host_of, save_rules, saved_rules
from interlock_apps.commands.options import HostCommandOptions
from interlock_apps.demo.planner import Planner
from interlock_apps.fleet.policy import Rule
from interlock_apps.host.loop.budget import Budget
from interlock_apps.host.options import DISCOVERY
from tests.cli.terminal import at_terminal


def given(
    *configs: Path, trust: tuple[str, ...] = (), models: tuple[str, ...] = ()
) -> HostCommandOptions:
    """As if it had been typed."""
    return HostCommandOptions(
        configs=configs,
        models_file=None,
        models=models,
        policy_file=None,
        trust=trust,
        roots=(),
        lock=None,
        log_file=None,
    )


async def test_all_messages_of_the_servers_are_recorded(home: Path) -> None:
    """`--record FILE`; the secrets of the configuration are redacted."""
    (home / "greeter.py").write_text(
        "import os\nfrom interlock import Server\nserver = Server('greeter')\n"
        "@server.tool\ndef greet() -> str:\n    return os.environ['KEY']\n"
        "if __name__ == '__main__':\n    server.run()\n",
        encoding="utf-8",
    )
    server = {
        "command": sys.executable,
        "args": [str(home / "greeter.py")],
        "env": {"KEY": "a-secret-of-the-configuration"},
    }
    config = home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"greeter": server}}), encoding="utf-8")
    options = given(config, models=("planner",))
    options.record = home / "host.tape"
    made = host_of(options, ask_to_start=False)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(made.aclose)
        await made.log.open()
        await made.open()
        await made.hub.servers["greeter"].call("greet")
    with TapeFile(home / "host.tape") as tape:
        assert "tools/call" in {row.method for row in tape.rows}
    assert "a-secret-of-the-configuration" not in (home / "host.tape").read_text(encoding="utf-8")


def test_a_recording_that_cannot_be_written_is_an_error(asking: Path) -> None:
    options = given(asking, models=("planner",))
    options.answers["key"] = "a key"
    options.record = asking.parent
    with pytest.raises(click.ClickException, match="cannot be written"):
        host_of(options, ask=False)


@pytest.fixture
def asking(home: Path) -> Path:
    """A configuration that wants to know something."""
    server = {
        "type": "stdio",
        "command": sys.executable,
        "args": ["-c", "pass"],
        "env": {"KEY": "${input:key}"},
    }
    described = {"id": "key", "type": "promptString", "description": "The key", "password": True}
    (home / "mcp.json").write_text(
        json.dumps({"servers": {"keyed": server}, "inputs": [described]}), encoding="utf-8"
    )
    return home / "mcp.json"


def test_what_a_configuration_asks_is_asked_once(asking: Path) -> None:
    """The answer holds when the file is read again; without one the server is left out, and words
    say why.
    """
    asked: list[str] = []

    def answer(input: Input) -> str:
        asked.append(input.id)
        return "k-123456"

    typed = given(asking)
    (problem,) = config_of(typed).problems
    assert "key" in problem.words
    for ask in (answer, answer, None):
        (entry,) = config_of(typed, ask).entries
        assert (entry.env["KEY"], "k-123456" in entry.secrets, "k-123456" in repr(entry)) == (
            "k-123456",
            True,
            False,
        )
    assert asked == ["key"]


def test_it_is_asked_at_the_terminal(asking: Path) -> None:
    """What is a password is not seen; Ctrl-C while the page is served ends with 0."""
    shown, code = at_terminal(
        ["host", "-m", "planner"], [("The key", "k-123456\n"), ("Ctrl-C ends everything.", "\x03")]
    )
    assert (code, "k-123456" in shown, "Ended." in shown) == (0, False, True), shown


def test_trust_is_for_those_that_are_there(asking: Path) -> None:
    """A name that is none is a mistake."""
    typed = given(asking, trust=("keyed",))
    typed.answers["key"] = "k"
    assert config_of(typed).entries[0].trusted
    typed.trust = ("nobody",)
    with pytest.raises(
        click.UsageError, match="--trust nobody: there is no such server; there are keyed."
    ):
        config_of(typed)


def test_approved_commands_are_the_persons_own(tmp_path: Path) -> None:
    """Those of one place do not count in another, and none that a lock beside the configuration
    claims (`SEC-17`).
    """
    one = tmp_path / "one"
    two = tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    here = Approvals(one / "interlock.lock", own=tmp_path / "own.json", here=one / "mcp.json")
    here.approve_command("server", "digest")
    assert here.approved_command("server", "digest")
    assert not here.approved_command("server", "another")
    assert not here.approved_command("other", "digest")
    there = Approvals(two / "interlock.lock", own=tmp_path / "own.json", here=two / "mcp.json")
    assert not there.approved_command("server", "digest")
    super(Approvals, there).approve_command(
        "server", "digest"
    )  # as a lock would have it that came with a project
    assert not there.approved_command("server", "digest")
    assert Approvals(
        one / "interlock.lock", own=tmp_path / "own.json", here=one / "mcp.json"
    ).approved_command("server", "digest")


def test_rules_are_saved_and_read(tmp_path: Path) -> None:
    """As they were; where there is no file there is none."""
    path = tmp_path / "host" / "rules.json"
    assert saved_rules(path) == ()
    rules = [
        Rule(decision="allow", server="travel", tool="search_*"),
        Rule(decision="deny", tool="send_mail"),
    ]
    save_rules(path, rules)
    assert saved_rules(path) == rules
    assert {each.name for each in path.parent.iterdir()} == {"rules.json", ".rules.json.turn"}


def test_models_in_the_order_in_which_they_were_named(home: Path) -> None:
    """The first that is named is the first; the same one twice is one."""
    names = ("ollama:b", "planner", "vllm:a")
    local = {"planner": Planner}
    assert [model.name for model in models_of(None, names, local=local)] == ["b", "planner", "a"]
    with pytest.raises(click.UsageError, match="two have the name planner"):
        models_of(None, ("planner", "ollama:planner"), local=local)
    with pytest.raises(click.UsageError, match="There is no model planner"):
        models_of(None, ("planner",))


def test_bounds_are_given_on(home: Path, asking: Path) -> None:
    """Steps of a turn, and the share of a model's context above which tools are searched for;
    without them, as a host has it.
    """
    typed = given(asking, models=("planner",))
    typed.answers["key"] = "x"
    plain = host_of(typed, ask=False)
    assert (plain.options.budget, plain.options.discovery) == (Budget(), DISCOVERY)
    typed.steps = 3
    typed.discovery = 0.0
    bound = host_of(typed, ask=False)
    assert (bound.options.budget.steps, bound.options.discovery) == (3, 0.0)
