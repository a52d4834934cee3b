"""Which vault a URL names, where that of a user lies who names none, and what is said where it
names none.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from interlock.store import (
    FileVault,
    KeyringVault,
    MemoryVault,
    RedisVault,
    SqliteVault,
    Vault,
    open_vault,
)
from tests.store.vault_scripts import environment

PLACES = {
    "memory:": MemoryVault,
    "MEMORY:": MemoryVault,
    "file:///{}/vault": FileVault,
    "file:vault": FileVault,
    "sqlite:///{}/vault.db": SqliteVault,
    "sqlite:vault.db": SqliteVault,
    "keyring:": KeyringVault,
    "redis://127.0.0.1:1/0": RedisVault,
    "rediss://user:password@127.0.0.1:1": RedisVault,
    "unix:///{}/socket": RedisVault,
}
NOWHERE = ["", "memory", "memory:x", "file:", "file://", "file:///", "file://host/x", "sqlite:",
    "sqlite://host/x", "keyring:x", "redis:host", "postgres://u:secret@h/d", "/vault",
    "secret"]  # fmt: skip


@pytest.mark.parametrize("url", PLACES)
def test_urls_name_vaults(url: str, tmp_path):
    """Each scheme has its vault, and nothing is made before it is used."""
    vault = open_vault(url.format(str(tmp_path).lstrip("/")))
    assert type(vault) is PLACES[url]
    assert isinstance(vault, Vault)
    assert vault.shared == (type(vault) is not MemoryVault)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", NOWHERE)
def test_other_urls_are_refused_with_what_there_is(url: str, monkeypatch):
    """The words name every scheme, and nothing of a URL that might be a secret.

    Likewise where the environment names it.
    """
    words = r"names no vault: .*memory:.*file:///.*sqlite:///.*keyring:.*redis://"
    with pytest.raises(ValueError, match=words) as caught:
        open_vault(url)
    assert "secret" not in str(caught.value)
    if url:
        monkeypatch.setenv("INTERLOCK_VAULT", url)
        with pytest.raises(ValueError, match=rf"\(in INTERLOCK_VAULT\) {words}"):
            open_vault(None)


def test_paths_name_files(tmp_path, monkeypatch):
    """A path, its URL, signs and all, and one that begins here, wherever one goes later."""
    monkeypatch.chdir(tmp_path)
    odd = tmp_path / "a folder, 100%" / "Ürümqi"
    relative = open_vault("file:here")
    here = open_vault(Path("here"))
    monkeypatch.chdir("/")
    assert open_vault(odd).path == open_vault(odd.as_uri()).path == odd
    assert relative.path == here.path == tmp_path / "here"


def test_who_names_none_has_a_file_of_their_own(tmp_path, monkeypatch):
    """In $XDG_DATA_HOME if that is absolute, else in the home.

    On a Mac in the Library, on Windows in the local data; INTERLOCK_VAULT names another.
    """
    for name in ("INTERLOCK_VAULT", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    end = Path("interlock") / "vault" / "secrets"
    for platform, variables, folder in (
        ("linux", {}, tmp_path / ".local" / "share"),
        ("linux", {"XDG_DATA_HOME": "relative"}, tmp_path / ".local" / "share"),
        ("linux", {"XDG_DATA_HOME": "/data"}, Path("/data")),
        ("darwin", {"XDG_DATA_HOME": "/data"}, tmp_path / "Library" / "Application Support"),
        ("win32", {"LOCALAPPDATA": "/local"}, Path("/local")),
        ("win32", {}, tmp_path / "AppData" / "Local"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(sys, "platform", platform)
            for name, value in variables.items():
                patched.setenv(name, value)
            vault = open_vault(None)
        assert type(vault) is FileVault
        assert vault.path == folder / end
    monkeypatch.setenv("INTERLOCK_VAULT", f"sqlite://{tmp_path}/mine.db")
    assert type(open_vault()) is SqliteVault
    monkeypatch.setenv("INTERLOCK_VAULT", "")
    assert type(open_vault()) is FileVault


def test_a_vault_loads_no_more_than_it_needs():
    """The one in memory loads no database.

    Those in files and keyrings load the keyring, and cryptography, when they are used.
    """
    program = (
        "import sys, interlock; from interlock.store import open_vault\n"
        "open_vault('memory:'); print('sqlite3' in sys.modules)\n"
        "for url in ('file:x', 'sqlite:x', 'keyring:', 'redis://127.0.0.1'): open_vault(url)\n"
        "print(*(name in sys.modules for name in ('keyring', 'cryptography', 'redis')))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.split() == ["False"] * 4
