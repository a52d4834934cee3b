"""What a configuration that came with somebody's project may get past the person who is asked to
start its servers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.configs import DOTS, Entry, command_warnings, read_config
from interlock_apps.fleet.pins import BadPins, Pins, ServerFeatures
from tests.host.scene import YES, Sitting, scene


def read(one: dict[str, Any], env: dict[str, str] | None = None) -> Entry:
    """The entry of a configuration that has only this."""
    return read_config(json.dumps({"mcpServers": {"x": one}}), env=env or {}).entries[0]


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD", "PATH", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "GIT_SSH_COMMAND",
        "GIT_ASKPASS", "SSH_ASKPASS", "UV_INDEX_URL",
        "npm_config_registry", "PIP_INDEX_URL", "BASH_ENV", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
        "CLASSPATH", "RUBYLIB", "PERL5DB",
        "DOTNET_STARTUP_HOOKS", "HOME", "XDG_CONFIG_HOME", "SHELL", "HTTPS_PROXY",
        "NODE_EXTRA_CA_CERTS", "DYLD_INSERT_LIBRARIES",
    ],
)  # fmt: skip
def test_what_decides_which_code_runs_is_shown_and_approved(name: str) -> None:
    """A value that was approved stays: another one of the same name is another approval
    (`SEC-17`).
    """
    was, now = (
        read({"command": "node", "args": ["server.js"], "env": {name: value}})
        for value in ("./good", "./evil")
    )
    assert now.shown_env == (f"{name}=./evil",)
    assert was.digest != now.digest


def test_what_steers_shows_no_secret() -> None:
    """A token stays hidden, and a new one needs no new approval, also where its name is one of
    those.
    """
    one = {
        "command": "npx",
        "env": {
            "NPM_TOKEN": "hunter22",
            "PIP_INDEX_URL": "https://me:hunter23@pypi.example/",
            "GIT_X": "${T}",
        },
    }
    entry = read(one, {"T": "hunter24"})
    assert entry.shown_env == (
        f"GIT_X={DOTS}",
        f"NPM_TOKEN={DOTS}",
        f"PIP_INDEX_URL=https://{DOTS}@pypi.example/",
    )
    assert entry.digest == read(one, {"T": "hunter25"}).digest


async def test_the_folder_in_which_it_runs_is_shown(tmp_path: Path) -> None:
    """`python server.py` is another program in another folder (`SEC-17`)."""
    person = Sitting(start=YES)
    entry = Entry(id="x", command=("interlock-that-is-not-there", "server.py"), cwd=str(tmp_path))
    async with scene({"x": entry}, person=person, ask_to_start=True, opened=False) as s:
        await s.host.open(wait=None)
    (asked,) = person.of("start")
    assert any(
        str(tmp_path) in warned.words or str(tmp_path) in warned.where for warned in asked.warnings
    )


def test_a_command_of_any_length_is_looked_through_so_far() -> None:
    """It says so, and what cannot be seen is found wherever it stands (`SEC-18`)."""
    found = {
        warned.kind for warned in command_warnings(("bash", "-c", "curl x |" * 30_000 + "\u202e"))
    }
    assert {"long", "hidden", "shell"} <= found
    assert "long" not in {warned.kind for warned in command_warnings(("bash", "-c", "x" * 3_000))}
    # Many downloads and many pipes: the search must not try each with each.
    assert command_warnings(("curl|" * 800,)) == ()
    programs = "| doas.exe /usr/bin/SUDO sudoku xsudo |" * 30_000
    assert {warned.kind for warned in command_warnings(("sh", "-c", programs))} >= {"root"}
    programs = "sudoku xsudo sudo-x su /sudo/x " * 30_000
    assert "root" not in {warned.kind for warned in command_warnings(("sh", "-c", programs))}


@pytest.mark.parametrize(
    "more",
    [{"trusted": True}, {"roots": ("/",)}, {"command": ("interlock-that-is-not-there", "-x")}],
)
async def test_who_wants_more_than_was_approved_is_asked_about_again(more: dict[str, Any]) -> None:
    """What was approved is approved for the next run, too; a folder more, or to be believed, is
    another question (`SEC-17`, `ROO-07`).
    """
    entry = Entry(id="x", command=("interlock-that-is-not-there",))
    pins = Pins()
    for given, asked in ((entry, 1), (entry, 0), (msgspec.structs.replace(entry, **more), 1)):
        person = Sitting(start=YES)
        async with scene(
            {"x": given}, person=person, ask_to_start=True, opened=False, pins=pins
        ) as s:
            await s.host.open(wait=None)
        assert len(person.of("start")) == asked


def test_a_lock_that_is_a_link_to_nothing_makes_no_file(tmp_path: Path) -> None:
    """A project that came with such a link would have us write a file of its choice wherever it
    likes.
    """
    elsewhere = tmp_path / "elsewhere.json"
    (tmp_path / "interlock.lock").symlink_to(elsewhere)
    pins = Pins(tmp_path / "interlock.lock")
    with pytest.raises(BadPins, match="link to a missing file"):
        pins.first("x", ServerFeatures(tools=(), prompts=(), instructions="me"))
    assert not elsewhere.exists()
