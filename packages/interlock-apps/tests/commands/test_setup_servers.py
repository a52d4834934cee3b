"""Setting up the servers of a host while it runs: forms, imports, tests, switches, examinations."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.configs import DOTS, PRODUCTS, Uneditable, this_machine
from interlock_apps.fleet.events import SettingsChanged
from interlock_apps.fleet.questions import StartQuestion
from interlock_apps.host.setup.server_files import ServerFiles
from interlock_apps.host.setup.server_form import ServerForm, entry_of, form_of
from interlock_apps.host.setup.tool_switches import is_offered, switched
from tests.commands.setting_up import entry, garden, outcome, set_up, until, up, write_servers

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]))
names = st.text("abcXYZ_", min_size=1, max_size=12)
entries = st.one_of(
    st.fixed_dictionaries(
        {"command": names, "args": st.lists(texts, max_size=4)},
        optional={
            "env": st.dictionaries(names | st.just("API_KEY"), texts, max_size=3),
            "cwd": names,
            "trusted": st.just(True),
            "timeout": st.integers(1000, 9000),
            "tools": st.lists(names, max_size=2),
            "sandbox": st.booleans(),
        },
    ),
    st.fixed_dictionaries(
        {"url": names.map(lambda name: f"https://{name}.example/mcp")},
        optional={"headers": st.dictionaries(names | st.just("Authorization"), texts, max_size=2)},
    ),
)


@given(entries)
def test_a_form_that_is_not_changed_changes_nothing(raw: dict[str, Any]) -> None:
    """Secrets reach the form as dots, and stay in the file; keys without a field stay."""
    form = form_of("x", raw)
    for name, value in raw.get("env", {}).items():
        if name == "API_KEY" and len(value) > 3 and DOTS not in value:
            assert form.env[name] == DOTS
    if not raw.get("command", "x").strip():
        return
    written = entry_of(form, raw)
    assert {key: value for key, value in written.items() if value or key in raw} == {
        key: value
        for key, value in {"type": written["type"], **raw}.items()
        if value or key in written
    }


@given(
    st.lists(names | st.sampled_from(["a*", "[b]", "what?"]), unique=True, max_size=8),
    st.data(),
    st.booleans(),
)
def test_switches_mean_what_they_say(listed: list[str], data: Any, later: bool) -> None:
    """Exactly the chosen tools pass the patterns, whatever their names; another tool passes if
    later tools are offered.
    """
    on = data.draw(st.sets(st.sampled_from(listed))) if listed else set()
    made = switched({"without": ["old_*"]}, listed, on, offers_later=later)
    tools = made.get("tools")
    without = made.get("without", [])
    assert {name for name in listed if is_offered(name, tools, without)} == on
    assert is_offered("another one", tools, without) is later


COMMENTED = """{
  // of the team
  "mcpServers": {
    "kept": {"command": "true"}, // do not touch
  },
  "other": 1
}
"""


def test_comments_stay_and_secrets_are_not_shown(home: Path) -> None:
    """The difference is that of the file, with dots for secrets; nothing is written before."""
    path = home / "mcp.json"
    path.write_text(COMMENTED, encoding="utf-8")
    files = ServerFiles([path])
    form = ServerForm(id="new", command="python3 -m thing", env={"API_KEY": "sk-secret-123456"})
    plan = files.plan("new", lambda raw: entry_of(form, raw), new=True)
    assert path.read_text(encoding="utf-8") == COMMENTED
    assert "sk-secret-123456" not in plan.difference
    assert '+      "command": "python3"' in plan.difference
    assert plan.entry is not None
    assert plan.entry.command == ("python3", "-m", "thing")
    files.write(plan)
    now = path.read_text(encoding="utf-8")
    assert "// of the team" in now
    assert "// do not touch" in now
    assert "sk-secret-123456" in now
    removal = files.plan("new", lambda raw: None)
    files.write(removal)
    assert "python3" not in path.read_text(encoding="utf-8")


def test_what_was_seen_is_what_is_written(home: Path) -> None:
    """A file that changed since is left alone, and a plan is used once."""
    path = write_servers(home / "mcp.json", one={"command": "true"})
    files = ServerFiles([path])
    plan = files.plan("one", lambda raw: {**(raw or {}), "disabled": True})
    write_servers(path, one={"command": "false"})
    with pytest.raises(Uneditable, match="has changed in the meantime"):
        files.write(plan)
    assert json.loads(path.read_text(encoding="utf-8"))["mcpServers"]["one"] == {"command": "false"}
    again = files.plan("one", lambda raw: {**(raw or {}), "disabled": True})
    files.write(again)
    with pytest.raises(ValueError, match="too old"):
        files.plan_of(again.id)


WRONG = {
    "nothing": (ServerForm(id="x"), "Give a command, or an address"),
    "both": (ServerForm(id="x", command="a", url="https://b.example"), "not both"),
    "no url": (ServerForm(id="x", url="example.com"), "its url must be http"),
    "our name": (ServerForm(id="interlock", command="a"), "name of the host itself"),
    "no variable": (
        ServerForm(id="x", command="a", env={"K": "${NO_SUCH}"}),
        "NO_SUCH",
    ),
    "dots": (ServerForm(id="x", command="a", env={"API_KEY": DOTS}), "Type the secret again"),
    "taken": (ServerForm(id="one", command="a"), "There is a server one already"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_form_is_refused_in_words(home: Path, name: str) -> None:
    form, words = WRONG[name]
    files = ServerFiles([write_servers(home / "mcp.json", one={"command": "true"})])
    with pytest.raises(ValueError, match=words):
        files.plan(form.id, lambda raw: entry_of(form, raw), new=True)


def test_other_formats(home: Path) -> None:
    """VS Code's file is edited in its own section; other formats are left to their products."""
    vscode = home / ".vscode" / "mcp.json"
    vscode.parent.mkdir()
    vscode.write_text('{"servers": {"a": {"type": "stdio", "command": "true"}}}', encoding="utf-8")
    files = ServerFiles([vscode])
    form = ServerForm(id="b", url="https://b.example/mcp")
    files.write(files.plan("b", lambda raw: entry_of(form, raw), new=True))
    assert json.loads(vscode.read_text(encoding="utf-8"))["servers"]["b"] == {
        "type": "http",
        "url": "https://b.example/mcp",
    }
    zed = home / "settings.json"
    zed.write_text('{"context_servers": {"a": {"command": "true"}}}', encoding="utf-8")
    with pytest.raises(Uneditable, match="format of zed"):
        ServerFiles([zed]).plan("b", lambda raw: entry_of(form, raw), new=True)


def started(file: Path) -> ServerForm:
    """The form of a server in a file of Python."""
    return ServerForm(id="garden", command=sys.executable, arguments=(str(file),), sandbox=False)


async def test_from_nothing_to_a_server(home: Path) -> None:
    """Without a file: the form, the test with its stderr, the file in the settings folder. The
    start was shown whole, so it is not asked about again (`SEC-17`).
    """
    file = garden(home)
    async with set_up() as (host, setup, user):
        path = this_machine().settings / "interlock" / "servers.json"
        assert setup.state()["file"] == str(path)
        form = started(file)
        plan = setup.plan_server(form)
        assert plan["isNew"]
        assert plan["start"]["command"] == f"{sys.executable} {file}"
        assert not path.exists()
        job = setup.try_out(plan["plan"])
        found = await outcome(job)
        assert (found["kind"], found["name"]) == ("offers", "garden 2.1.0")
        assert [(tool["name"], tool["readOnly"]) for tool in found["tools"]] == [
            ("look", True),
            ("water", False),
        ]
        assert {"kind": "stderr", "text": "watering the plants"} in job.events
        assert host.hub.servers == {}
        assert await setup.apply(plan["plan"]) == "garden"
        await up(host, "garden")
        assert user.asked == []
        assert json.loads(path.read_text(encoding="utf-8"))["mcpServers"]["garden"]["args"] == [
            str(file)
        ]
        assert {item.tool.name for item in host.toolbox.items} == {"look", "water"}

        removal = setup.plan_removal("garden")
        await setup.apply(removal["plan"])
        assert host.hub.servers == {}
        await host.log.flush()
        changed = [
            (entry.event.how, entry.event.name)
            for entry in await host.log.search("", kinds=("settingsChanged",))
            if isinstance(entry.event, SettingsChanged)
        ]
        assert sorted(changed) == [("added", "garden"), ("removed", "garden")]


async def test_another_command_is_asked_about(home: Path) -> None:
    """A plan allows what it showed, and nothing else: a file that says something else later is
    asked about as always (`SEC-17`).
    """
    file = garden(home)
    path = write_servers(home / "servers.json")
    async with set_up(path) as (host, setup, user):
        form = started(file)
        await setup.apply(setup.plan_server(form)["plan"])
        await up(host, "garden")
        write_servers(path, garden=entry(file, args=["-P", str(file)]))
        plan = setup.plan_change("garden", "revision", "2025-11-25")
        write_servers(path, garden=entry(file, args=["-X", "dev", str(file)]))
        with pytest.raises(Uneditable):
            await setup.apply(plan["plan"])
        assert user.asked == []
        await setup.reload()  # as what follows the file does
        await up(host, "garden")
        (question,) = user.asked
        assert isinstance(question, StartQuestion)
        assert "-X dev" in question.command


async def test_a_test_that_fails_says_why(home: Path) -> None:
    """What the program printed before it ended, and its exit code; without secrets."""
    async with set_up() as (_, setup, _):
        code = "import os, sys; sys.exit('no key ' + os.environ['API_KEY'])"
        form = ServerForm(
            id="broken",
            command=sys.executable,
            arguments=("-c", code),
            env={"API_KEY": "secret-123456"},
            sandbox=False,
        )
        job = setup.try_out(setup.plan_server(form)["plan"])
        last = await outcome(job)
        assert last["kind"] == "failed"
        assert "exit code 1" in last["words"]
        assert any("no key" in event.get("text", "") for event in job.events)
        assert "secret-123456" not in json.dumps(job.events)


async def test_tools_trust_and_the_read_only_preset(home: Path) -> None:
    """Switches are written as patterns, and hold at once without a restart."""
    file = garden(home)
    path = write_servers(home / "servers.json", garden=entry(file))
    async with set_up(path) as (host, setup, _):
        await up(host, "garden")
        client = host.hub.servers["garden"]
        found = setup.server("garden")
        assert [(tool["name"], tool["on"]) for tool in found["tools"]] == [
            ("look", True),
            ("water", True),
        ]
        await setup.apply(setup.plan_tools("garden", {"look"}, offers_later=False)["plan"])
        raw = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]["garden"]
        assert raw["tools"] == ["look"]
        assert [item.tool.name for item in host.toolbox.items] == ["look"]
        assert host.hub.servers["garden"] is client
        assert setup.server("garden")["offersLater"] is False
        plan = setup.plan_tools("garden", {"look", "water"}, offers_later=True)
        await setup.apply(plan["plan"])
        raw = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]["garden"]
        assert not {"tools", "without"} & raw.keys()
        trust = setup.plan_change("garden", "trusted", True)
        assert trust["start"]["trusted"]
        await setup.apply(trust["plan"])
        assert host.hub.servers["garden"].entry.trusted


async def test_servers_of_other_clients(home: Path) -> None:
    """Each client with its servers; an import shows the whole command, keeps variables as
    variables, and offers the sandbox.
    """
    file = garden(home)
    cursor = PRODUCTS["cursor"].path(this_machine())
    write_servers(
        cursor,
        garden={"command": sys.executable, "args": [str(file)], "env": {"HOME_OF": "${HOME}"}},
        hidden={"command": "npx", "args": ["-y", "thing", "--token", "secret-123456"]},
    )
    async with set_up() as (host, setup, user):
        assert setup.files.path.name == "servers.json"  # although Cursor's file lies in this folder
        (client,) = await setup.other_clients()
        assert (client["client"], client["title"]) == ("cursor", "Cursor")
        assert [one["id"] for one in client["servers"]] == ["garden", "hidden"]
        assert "secret-123456" not in json.dumps(client)
        plan = setup.plan_import("cursor", "garden", sandbox=False)
        assert plan["start"]["command"] == f"{sys.executable} {file}"
        await setup.apply(plan["plan"])
        await up(host, "garden")
        assert user.asked == []
        raw = json.loads(setup.files.path.read_text(encoding="utf-8"))["mcpServers"]["garden"]
        assert raw["env"] == {"HOME_OF": "${HOME}"}
        assert raw["sandbox"] is False
        (client,) = await setup.other_clients()
        assert [one["known"] for one in client["servers"]] == [True, False]
        assert setup.plan_import("cursor", "garden")["server"] == "garden-cursor"


async def test_the_doctor_has_a_cure(home: Path) -> None:
    """A server that is not there, and one that cannot be asked which revision it speaks."""
    path = write_servers(
        home / "servers.json",
        gone={"command": "no-such-program-here", "sandbox": False},
        older={"command": sys.executable, "args": ["-c", SILENT], "sandbox": False},
    )
    async with set_up(path) as (host, setup, _):
        await until(host, "gone", "down")
        job = setup.examine("gone")
        await outcome(job)
        assert ("command-not-found", "edit") in [
            (found["rule"], found["cure"]) for found in _findings(job)
        ]
        assert all(found["advice"] for found in _findings(job))
        await until(host, "older", "down")
        ended = setup.examine("older")
        assert (await outcome(ended))["kind"] == "report"
        assert ("server-ends", "") in [(found["rule"], found["cure"]) for found in _findings(ended)]
        plan = setup.plan_change("older", "revision", "2025-11-25")
        assert '+      "revision": "2025-11-25"' in plan["difference"]


SILENT = "import sys; sys.stdin.readline(); sys.exit(3)"


async def test_nothing_is_examined_that_was_not_allowed(home: Path) -> None:
    """A command that waits for its approval is not started by the doctor (`SEC-17`)."""
    path = write_servers(home / "servers.json", garden=entry(garden(home)))
    async with set_up(path, opened=False) as (host, setup, _):
        assert host.hub.servers["garden"].state == "off"
        with pytest.raises(ValueError, match="Allow its start first"):
            setup.examine("garden")


def _findings(job: Any) -> list[dict[str, Any]]:
    return [
        finding for event in job.events if event["kind"] == "part" for finding in event["findings"]
    ]
