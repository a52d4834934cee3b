"""The policy of a sandbox: its values, and its form in an entry of a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.configs import approval_of, comes_from_project, read_config, write_config
from interlock.sandbox import Sandbox, parse_sandbox, sandbox_entry, sandbox_words

PATHS = st.lists(st.sampled_from(["/srv/a", "/srv/b", "data"]), max_size=2).map(tuple)
HOSTS = st.lists(st.sampled_from(["a.example", "*.b.example", "10.0.0.1"]), max_size=2).map(tuple)
POLICIES = st.builds(
    Sandbox,
    read=PATHS,
    write=PATHS,
    deny_read=PATHS,
    deny_write=PATHS,
    hosts=st.one_of(st.sampled_from(["public"]), HOSTS),
    deny_hosts=HOSTS,
    env=st.sampled_from([(), ("TOKEN",)]),
    memory=st.sampled_from([None, "512M", 1 << 30]),
    seconds_cpu=st.sampled_from([None, 5]),
    processes=st.sampled_from([None, 64]),
)


@given(POLICIES)
def test_a_policy_survives_its_written_form(policy: Sandbox) -> None:
    """What is written is read as the same policy; the plain profile is `true`."""
    written = sandbox_entry(policy)
    read = parse_sandbox(written)
    assert (Sandbox() if read is True else read) == policy


def test_the_network_of_the_machine_survives_its_written_form() -> None:
    """A policy without a limit on hosts is written as such."""
    assert parse_sandbox(sandbox_entry(Sandbox(hosts="all"))) == Sandbox(hosts="all")


@pytest.mark.parametrize(
    "value, policy",
    [
        (True, True),
        (False, False),
        ({}, Sandbox()),
        ({"network": "none"}, Sandbox(hosts=())),
        ({"network": "all"}, Sandbox(hosts="all")),
        ({"network": {"allowedDomains": []}}, Sandbox(hosts=())),
        ({"network": {"allowedDomains": ["*"]}}, Sandbox()),
        (
            {"network": {"allowedDomains": ["A.example"], "deniedDomains": ["b.a.example"]}},
            Sandbox(hosts=["a.example"], deny_hosts=["b.a.example"]),
        ),
        (
            {"filesystem": {"allowWrite": ["/a"], "denyRead": ["/b"], "denyWrite": ["/c"]}},
            Sandbox(write=["/a"], deny_read=["/b"], deny_write=["/c"]),
        ),
        ({"memory": "1G", "cpuSeconds": 9}, Sandbox(memory=1 << 30, seconds_cpu=9)),
    ],
)
def test_the_value_of_an_entry(value: Any, policy: Sandbox | bool) -> None:
    """The keys of VS Code, and those that are ours."""
    assert parse_sandbox(value) == policy


@pytest.mark.parametrize(
    "value, words",
    [
        (None, "must be an object"),
        ("yes", "must be an object"),
        ({"filesytem": {}}, "unknown key, which may be a restriction: filesytem"),
        ({"network": {"allowUnixSockets": []}}, "unknown key"),
        ({"network": "some"}, 'must be "none", "public", "all" or an object'),
        ({"network": {"allowedDomains": "a.example"}}, "must be a list"),
        ({"network": {"allowedDomains": ["https://a.example"]}}, "is not a host"),
        ({"network": {"allowedDomains": ["a.example:443"]}}, "without a port"),
        ({"filesystem": {"denyRead": ["**/.env"]}}, "is a pattern"),
        ({"filesystem": {"allowWrite": [7]}}, "must be a list of texts"),
        ({"memory": "lots"}, "memory must be a size"),
        ({"memory": 12}, "at least 16M"),
        ({"processes": 0}, "at least 1"),
        ({"env": ["A=B"]}, "not the name of a variable"),
    ],
)
def test_values_that_cannot_be_used(value: Any, words: str) -> None:
    """A value that is not understood is refused: it may have been a restriction."""
    with pytest.raises(ValueError, match="sandbox") as bad:
        parse_sandbox(value)
    assert words in str(bad.value)


def test_a_policy_in_words() -> None:
    """What the person reads who approves a start."""
    assert sandbox_words(Sandbox()) == "network: public addresses"
    policy = Sandbox(write=["/srv/a"], hosts=["a.example"], env=["TOKEN"])
    assert sandbox_words(policy) == "network: a.example; writes to /srv/a; gets your TOKEN"


def entry_of(text: str, folder: Path) -> Any:
    config = read_config(text, env={}, folder=folder, source="x")
    assert not config.problems, config.problems
    return config.entries[0]


def test_an_entry_keeps_its_sandbox(tmp_path: Path) -> None:
    """Paths are those of the project, variables survive, and `false` is written too."""
    text = (
        '{"mcpServers": {"s": {"command": "a", "sandbox": {"filesystem": {"allowWrite": '
        '["data", "~/notes", "${X:-/srv}/x"]}}}}}'
    )
    entry = entry_of(text, tmp_path)
    assert entry.sandbox == Sandbox(write=[f"{tmp_path}/data", "~/notes", "/srv/x"])
    assert '"${X:-/srv}/x"' in write_config([entry])
    off = entry_of('{"mcpServers": {"s": {"command": "a", "sandbox": false}}}', tmp_path)
    assert '"sandbox": false' in write_config([off])


def test_the_sandbox_of_vs_code(tmp_path: Path) -> None:
    """Its policy is beside the servers, and without domains nothing is reached."""
    text = (
        '{"servers": {"s": {"command": "a", "sandboxEnabled": true}},'
        ' "sandbox": {"filesystem": {"allowWrite": ["/srv"]}}}'
    )
    assert entry_of(text, tmp_path).sandbox == Sandbox(write=["/srv"], hosts=())


def test_another_sandbox_needs_another_approval(tmp_path: Path) -> None:
    """A project cannot widen or switch off a sandbox that was approved."""
    texts = ['{"network": "none"}', "true", "false", '{"network": "all"}']
    entries = [
        entry_of(f'{{"mcpServers": {{"s": {{"command": "a", "sandbox": {value}}}}}}}', tmp_path)
        for value in texts
    ]
    approvals = {approval_of(entry) for entry in entries}
    approvals.add(approval_of(entries[1], unconfined=True))
    assert len(approvals) == 5


@pytest.mark.parametrize(
    "source, is_shared",
    [
        (".mcp.json", True),
        ("x/.vscode/mcp.json", True),
        ("x/.gemini/settings.json", True),
        ("servers.json", False),
        ("", False),
        (str(Path.home() / ".cursor" / "mcp.json"), False),
    ],
)
def test_files_of_projects(source: str, is_shared: bool) -> None:
    """The usual files of a project may come from anyone; those of the user's own clients do not."""
    assert comes_from_project(source) is is_shared
