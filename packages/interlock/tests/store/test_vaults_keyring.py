"""The vault in the keyring: small entries, writers that die, keyrings that fail,
and none at all."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.store import KeyringVault, StoreError, hold_lease
from tests.store.rings import FolderRing, LockedRing
from tests.store.vault_scripts import environment

WINDOWS = 1280  # letters: 2,560 bytes


def vault(ring: FolderRing, piece: int = 1000) -> KeyringVault:
    """A vault in this keyring."""
    return KeyringVault(keyring=ring, piece=piece, lock=ring.folder.with_name("locks"))


async def test_large_values_lie_in_many_small_entries(tmp_path):
    """2,560 bytes are what Windows takes.

    What is no longer needed is removed, and with the last record nothing but one entry is left.
    """
    ring = FolderRing(tmp_path / "ring", WINDOWS)
    one = vault(ring)
    await one.put("token", "https://server.example", b"x" * 20_000)
    assert len(list(ring.folder.iterdir())) > 20
    assert await vault(ring).get("token", "https://server.example") == b"x" * 20_000
    await one.put("token", "https://server.example", b"y" * 3000)
    assert len(list(ring.folder.iterdir())) < 8
    await one.remove("token", "https://server.example")
    assert len(list(ring.folder.iterdir())) == 2
    assert all(len(each.read_text()) <= WINDOWS for each in ring.folder.iterdir())


class Mortal(FolderRing):
    """Dies after so many changes."""

    def __init__(self, folder: Path, left: int) -> None:
        super().__init__(folder, WINDOWS)
        self.left = left

    def set_password(self, service: str, username: str, password: str) -> None:
        self._live()
        super().set_password(service, username, password)

    def delete_password(self, service: str, username: str) -> None:
        self._live()
        super().delete_password(service, username)

    def _live(self) -> None:
        if not self.left:
            raise ConnectionError("the service has gone away")
        self.left -= 1


async def test_a_writer_that_dies_leaves_the_old_or_the_new(tmp_path):
    """Wherever it stops among the entries; and the next writer goes on, and cleans up."""
    seen = set()
    for left in range(30):
        folder = tmp_path / f"ring {left}"
        healthy = vault(FolderRing(folder, WINDOWS))
        await healthy.put("k", "a", b"old" * 1500)
        await healthy.put("k", "a", b"old" * 2000)
        try:
            await vault(Mortal(folder, left)).put("k", "a", b"new" * 2500)
        except StoreError as bad:
            assert (
                "the keyring cannot be written to (ConnectionError: the service has gone away)"
                in str(bad)
            )
            seen.add("died")
        else:
            seen.add("lived")
        found = await healthy.get("k", "a")
        assert found in (b"old" * 2000, b"new" * 2500)
        seen.add(found[:3])
        await healthy.put("k", "a", b"next")
        await healthy.put("k", "a", b"next")
        assert await healthy.get("k", "a") == b"next"
        assert len(list(folder.iterdir())) == 2
    assert seen == {"died", "lived", b"old", b"new"}


@pytest.mark.parametrize(
    "harm", ["a piece is gone", "a piece is changed", "the first entry is changed"]
)
async def test_damage_is_said_and_left_as_it_is(harm: str, tmp_path):
    """Never taken for an empty vault, never written over."""
    ring = FolderRing(tmp_path / "ring", WINDOWS)
    one = vault(ring)
    await one.put("k", "a", b"x" * 3000)
    root = min(ring.folder.iterdir(), key=lambda each: len(each.name))
    piece = next(each for each in sorted(ring.folder.iterdir()) if each != root)
    match harm:
        case "a piece is gone":
            piece.unlink()
        case "a piece is changed":
            piece.write_text(piece.read_text()[:-1])
        case _:
            root.write_text("password")
    before = {each.name: each.read_text() for each in ring.folder.iterdir()}
    for ask in (one.get("k", "a"), one.put("k", "a", b"w"), one.keys("k")):
        with pytest.raises(
            StoreError,
            match=(
                "damaged and is left as it is: remove the entries of interlock that begin with "
                "'vault'"
            ),
        ):
            await ask
    assert {each.name: each.read_text() for each in ring.folder.iterdir()} == before


async def test_a_keyring_is_for_small_things(tmp_path):
    """Beyond 256 KiB the words say so, and what was there stays."""
    one = vault(FolderRing(tmp_path / "ring"), 32_768)
    await one.put("k", "a", b"x" * 200_000)
    with pytest.raises(StoreError, match="the vault is full"):
        await one.put("k", "b", b"x" * 100_000)
    assert await one.keys("k") == ["a"]


async def test_entries_that_are_too_long_for_the_keyring_are_said(tmp_path):
    """Where a platform takes less than we thought."""
    with pytest.raises(
        StoreError, match=r"cannot be written to \(PasswordSetError: it is too long\)"
    ):
        await vault(FolderRing(tmp_path / "ring", 100)).put("k", "a", b"x" * 1000)


async def test_a_locked_keyring_is_said(tmp_path):
    """In its own words."""
    with pytest.raises(
        StoreError, match=r"the keyring cannot be read \(KeyringLocked: it is locked\)"
    ):
        await vault(LockedRing(tmp_path / "ring")).get("k", "a")


async def test_two_vaults_in_one_keyring_take_turns(tmp_path):
    """Twelve changes at once, half of them by each: none is lost; and one is inside at a time."""
    ring = FolderRing(tmp_path / "ring", WINDOWS)
    both = (vault(ring), vault(ring))
    await asyncio.gather(*(both[n % 2].add("k", str(n), b"x" * 500) for n in range(12)))
    assert len(await both[0].keys("k")) == 12
    async with hold_lease(both[0], "https://server.example"):
        assert not await both[1].add("lease", "https://server.example", b"")


PROGRAM = """
import asyncio, sys
from interlock.store import StoreError, open_vault
try:
    vault = open_vault(*sys.argv[1:] or [None])
    asyncio.run(vault.put("k", "a", b"v"))
    print("kept", vault.sealed)
except StoreError as bad:
    print(bad)
"""


@pytest.mark.parametrize(
    "backend", ["keyring.backends.fail.Keyring", "keyring.backends.null.Keyring"]
)
def test_without_a_desktop_the_words_say_what_to_use(backend: str, tmp_path):
    """`keyring:` says which vaults there are instead.

    The vault of somebody who names none works all the same, plain with mode 0600.
    """
    variables = environment(
        PYTHON_KEYRING_BACKEND=backend, XDG_DATA_HOME=str(tmp_path), HOME=str(tmp_path)
    )

    def said(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            env=variables,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert (
        "there is no keyring here, as is usual without a desktop: use a vault in a file instead: "
        "INTERLOCK_VAULT=file:///" in said("keyring:")
    )
    assert said() == "kept False\n"
    assert (next(tmp_path.rglob("secrets")).stat().st_mode & 0o777) == 0o600


def test_a_keyring_that_is_configured_wrongly_is_said(tmp_path):
    """A name that is no module's harms neither."""
    variables = environment(
        PYTHON_KEYRING_BACKEND="nowhere.Keyring", XDG_DATA_HOME=str(tmp_path), HOME=str(tmp_path)
    )
    for arguments, words in (
        (["keyring:"], "configured cannot be loaded (ModuleNotFoundError"),
        ([], "kept False"),
    ):
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            env=variables,
            capture_output=True,
            text=True,
            check=True,
        )
        assert words in ran.stdout


def test_a_missing_package_is_named_in_one_line(tmp_path):
    """Without keyring there is one line that says what to install, and the vault of somebody who
    names none works all the same.
    """
    variables = environment(XDG_DATA_HOME=str(tmp_path), HOME=str(tmp_path))
    for arguments, words in (
        (
            ["keyring:"],
            "the vault in the keyring needs the package keyring: pip install "
            "'interlock[keyring]'\n",
        ),
        ([], "kept False\n"),
    ):
        program = "import sys; sys.modules['keyring'] = None\n" + PROGRAM
        ran = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env=variables,
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout == words
