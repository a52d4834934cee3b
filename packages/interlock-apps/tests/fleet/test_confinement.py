"""Which configured servers are confined, what the person is asked, and what has nobody to ask."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Stdio
from interlock.configs import Entry, StartRequest, confinement_of, start_facts
from interlock.sandbox import Sandbox, SandboxUnavailable, unavailable_reason
from interlock_apps.fleet.confinement import unattended_sandbox
from interlock_apps.fleet.start_questions import start_question
from tests.fleet.hub.keeping import kept

COMMAND = (sys.executable, "-m", "interlock", "serve", "filesystem", ".")
NOWHERE = "bubblewrap: not here; landlock: not here"


def entry(source: str = "servers.json", **more: Any) -> Entry:
    return Entry(id="files", command=COMMAND, source=source, **more)


@pytest.fixture
def no_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which no sandbox works."""
    monkeypatch.setattr("interlock.configs.confinement.unavailable_reason", lambda: NOWHERE)


@pytest.fixture
def mechanism() -> None:
    """A machine on which one does."""
    if reason := unavailable_reason():
        # The kernel of this machine decides; nothing that could be installed helps.
        pytest.skip(f"NOT SHOWN HERE: {reason}")


@pytest.mark.parametrize(
    "asked, is_confined",
    [
        (entry(), False),
        (entry(".mcp.json"), True),
        (entry(".mcp.json", sandbox=False), False),
        (entry(sandbox=True), True),
        (entry(sandbox=Sandbox(hosts=())), True),
        (Entry(id="web", url="https://a.example/", source=".mcp.json"), False),
    ],
)
def test_who_is_confined(asked: Entry, is_confined: bool, mechanism: None) -> None:
    """Servers of a project's file, and those whose entry says so."""
    confinement = confinement_of(asked)
    assert (confinement.sandbox is not None) is is_confined
    assert (start_question("1", asked).confinement != "") is is_confined
    assert (unattended_sandbox(asked) is not None) is is_confined


def test_roots_and_a_home_of_its_own(mechanism: None) -> None:
    """Roots are writable; each server keeps the packages that were downloaded for it."""
    one = confinement_of(entry(".mcp.json", roots=("/srv/notes",))).sandbox
    other = confinement_of(entry("x/.mcp.json")).sandbox
    assert one is not None
    assert other is not None
    assert one.write == ("/srv/notes",)
    assert one.home is not None
    assert one.home != other.home
    assert one.home == (confinement_of(entry(".mcp.json")).sandbox or other).home
    both = confinement_of(entry(".mcp.json", roots=("/srv/notes",)), ["/srv/notes", "/srv/more"])
    assert both.sandbox is not None
    assert both.sandbox.write == ("/srv/notes", "/srv/more")
    assert "/srv/more" in start_question("1", entry(".mcp.json"), ["/srv/more"]).confinement
    personal = unattended_sandbox(entry(".mcp.json"), is_personal=True)
    assert personal is not None
    assert personal.home is None  # principals share nothing


async def test_where_no_sandbox_works(
    no_mechanism: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The question warns, and who has nobody to ask does not start it, unless its entry says so."""
    asked = entry(".mcp.json")
    question = start_question("1", asked)
    assert question.confinement == ""
    assert [warned.kind for warned in question.warnings][:1] == ["unconfined"]
    assert NOWHERE in question.warnings[0].where
    monkeypatch.setattr("interlock.sandbox.mechanisms._problem", lambda name: "not here")
    refused = Stdio(asked.command, sandbox=unattended_sandbox(asked), cwd=tmp_path)
    with pytest.raises(SandboxUnavailable, match='set "sandbox": false in its entry'):
        async with Client(refused):
            pass
    assert unattended_sandbox(entry(".mcp.json", sandbox=False)) is None
    assert unattended_sandbox(entry()) is None


def test_the_facts_of_a_confined_server() -> None:
    """They do not say that it runs with the rights of the user."""
    request = StartRequest(server="s", command="c", confinement="network: none")
    assert start_facts(request) == ["it runs in a sandbox (network: none)"]


async def test_the_hub_confines(
    mechanism: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of a project's file, in a hub: it does not see what is beside its folder, and may
    write into the folders that the person gives it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    work = tmp_path / "work"
    work.mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("secret")
    command = (sys.executable, "-m", "interlock", "serve", "filesystem", str(tmp_path))
    one = Entry(
        id="files",
        command=command,
        cwd=str(work),
        source=str(work / ".mcp.json"),
        env={"INTERLOCK_FILESYSTEM_MOUNTS": "1"},  # each open folder is a mount of its own
    )
    async with kept(one, roots=lambda id: [str(root)] if id == "files" else []) as links:
        link = links["files"]
        assert link.state == "up"
        result = await link.call("read_file", {"path": str(tmp_path / "secret")})
        assert result.is_error
        assert "secret" not in result.text.replace("/secret", "")
        arguments = {"path": str(root / "note"), "text": "written"}
        result = await link.call("write_file", arguments)
        assert not result.is_error, result.text
    assert (root / "note").read_text() == "written"
