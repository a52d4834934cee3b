"""A repository, a server over it and a client with a person who says yes, for the tests of the git
server.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Server
from interlock_servers.git import git_server
from tests.servers.git.repos import AUTHOR, repository


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever runs the tests has configured nothing for git."""
    for name in (
        "XDG_CONFIG_HOME",
        "GIT_CONFIG_GLOBAL",
        "INTERLOCK_GIT_REPOSITORIES",
        "INTERLOCK_GIT_WORKTREES",
        "INTERLOCK_GIT_AUTHOR",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit."""
    return repository(tmp_path / "repo")


@pytest.fixture
def server(repo: Path) -> Server:
    """A server over that repository."""
    return git_server(repo, author=AUTHOR)
