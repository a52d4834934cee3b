"""Vaults that are sealed: nothing can be read without the key, and whoever has the wrong one is
told so and harms nothing.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from redis.asyncio import Redis

from interlock.store import FileVault, RedisVault, SqliteVault, StoreError, Vault
from tests.store.rings import FolderRing, ForgetfulRing, LockedRing
from tests.store.vault_makers import KEY
from tests.store.vault_scripts import environment

SECRET = b"a refresh token that nobody may read"
KINDS = ("file", "sqlite", "redis")
FILES = ("file", "sqlite")


@pytest.fixture(autouse=True)
def no_key_of_the_users_own(monkeypatch):
    """Whoever runs the tests may have one."""
    monkeypatch.delenv("INTERLOCK_VAULT_KEY", raising=False)


@pytest.fixture
def place(tmp_path, redis_url) -> Place:
    return Place(tmp_path, redis_url)


class Place:
    """Where vaults lie, and what lies there."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.folder = folder / "vault"
        self.redis_url = redis_url
        self.folder.mkdir(mode=0o700)
        self.prefix = f"interlock-test:{secrets.token_hex(8)}:"

    def vault(self, kind: str, key: str | None = None, keyring=False, **more) -> Vault:
        """A vault that has this key, or asks this keyring."""
        if kind == "redis":
            return RedisVault(self.redis_url, prefix=self.prefix, key=key, **more)
        return {"file": FileVault, "sqlite": SqliteVault}[kind](
            self.folder / kind, key=key, keyring=keyring, **more
        )

    async def lies(self, kind: str) -> bytes:
        """All bytes that lie there."""
        if kind != "redis":
            return b"".join(
                each.read_bytes()
                for each in sorted(self.folder.iterdir())
                if each.name.startswith(kind)
            )
        async with Redis.from_url(self.redis_url) as client:
            found = [
                await client.get(name)
                async for name in client.scan_iter(match=f"{self.prefix}record*")
            ]
        return b"".join(sorted(found))


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_can_be_read_without_the_key(kind: str, place: Place, monkeypatch):
    """With a key that is given, or that stands in the environment, the value is not found in what
    lies there; without one it is (`AUT-10`).
    """
    plain = place.vault(kind)
    await plain.put("k", "a", SECRET)
    assert (plain.sealed, SECRET in await place.lies(kind)) == (False, True)
    await plain.remove("k", "a")
    await plain.aclose()
    monkeypatch.setenv("INTERLOCK_VAULT_KEY", KEY)
    for sealed in (place.vault(kind), place.vault(kind, KEY)):
        await sealed.put("k", "a", SECRET)
        found = await place.lies(kind)
        assert (sealed.sealed, SECRET in found, KEY.encode() in found) == (True, False, False)
        assert await place.vault(kind, KEY).get("k", "a") == SECRET
        await sealed.put("k", "a", SECRET)
        assert await place.lies(kind) != found  # never sealed twice in the same way
        await sealed.aclose()


async def test_a_sealed_file_tells_no_names(place: Place):
    """Which servers somebody uses is nobody's business either."""
    for key, told in ((KEY, False), (None, True)):
        vault = FileVault(place.folder / f"file{key}", key=key, keyring=False)
        await vault.put("token", "https://server.example/mcp", SECRET)
        assert (b"server.example" in vault.path.read_bytes()) == told


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "key, words",
    [("another key that is long enough too", "another key"), (None, "INTERLOCK_VAULT_KEY")],
)
async def test_a_wrong_key_is_an_error_and_harms_nothing(
    kind: str, key: str | None, words: str, place: Place
):
    """No value is given, none is lost or written over, and the right key still opens everything."""
    right = place.vault(kind, KEY)
    wrong = place.vault(kind, key)
    await right.put("k", "a", SECRET)
    before = await place.lies(kind)
    asks = [wrong.get("k", "a"), wrong.pop("k", "a"), wrong.swap("k", "a", SECRET, b"w")]
    if (
        kind != "redis"
    ):  # where a record is on its own, to put another in its place asks nothing about it
        asks += [
            wrong.put("k", "a", b"w"),
            wrong.add("k", "b", b"w"),
            wrong.remove("k", "a"),
            wrong.keys("k"),
        ]
    for ask in asks:
        with pytest.raises(StoreError, match=words):
            await ask
    assert await place.lies(kind) == before
    assert await right.pop("k", "a") == SECRET
    await right.aclose()
    await wrong.aclose()


async def test_what_was_not_sealed_is_refused_from_a_server(place: Place):
    """Who can write to the Redis server cannot slip in a record of theirs, nor put one in another's
    place.
    """
    plain = place.vault("redis")
    sealed = place.vault("redis", KEY)
    await plain.put("k", "a", b"forged")
    with pytest.raises(StoreError, match="'k' that is not sealed, though there is a key"):
        await sealed.get("k", "a")
    await sealed.put("k", "a", SECRET)
    await sealed.put("k", "b", b"other")
    async with Redis.from_url(place.redis_url) as client:
        names = {name[-1:]: name async for name in client.scan_iter(match=f"{place.prefix}record*")}
        await client.copy(names[b"b"], names[b"a"], replace=True)
    with pytest.raises(StoreError, match="'k' that cannot be opened"):
        await sealed.get("k", "a")
    assert await sealed.get("k", "b") == b"other"


async def test_records_cannot_change_places_in_a_database(place: Place):
    """A sealed value belongs to its name."""
    vault = place.vault("sqlite", KEY)
    await vault.put("k", "a", b"one")
    await vault.put("k", "b", b"other")
    with contextlib.closing(sqlite3.connect(vault.path)) as db:
        db.execute(
            "UPDATE records SET value = (SELECT value FROM records WHERE key = CAST('b' AS BLOB)) "
            "WHERE key = CAST('a' AS BLOB)"
        )
        db.commit()
    with pytest.raises(StoreError, match="kind 'k' in the vault cannot be opened"):
        await vault.pop("k", "a")
    assert await vault.keys("k") == ["a", "b"]
    assert await vault.get("k", "b") == b"other"
    await vault.aclose()


@pytest.mark.parametrize("kind", FILES)
async def test_the_keyring_keeps_the_key(kind: str, place: Place, tmp_path):
    """Each vault has a key of its own there.

    Without the keyring, or its entry, the words say what to do, and all is there afterwards
    (`AUT-10`).
    """
    ring = FolderRing(tmp_path / "ring")
    vault = place.vault(kind, keyring=ring)
    assert vault.sealed
    await vault.put("k", "a", SECRET)
    assert SECRET not in await place.lies(kind)
    (entry,) = ring.folder.iterdir()
    assert entry.read_text().encode() not in await place.lies(kind)
    assert await place.vault(kind, keyring=ring).get("k", "a") == SECRET
    before = await place.lies(kind)

    async def refused(words: str, keyring, key: str | None = None) -> None:
        other = place.vault(kind, key, keyring)
        for ask in (other.get("k", "a"), other.put("k", "a", b"w"), other.pop("k", "a")):
            with pytest.raises(StoreError, match=words):
                await ask

    await refused(
        "the keyring is not to be used: unlock the keyring, or use a vault in a file instead", False
    )
    ring.locked = True
    await refused("KeyringLocked: it is locked.*unlock the keyring", ring)
    await refused("KeyringLocked", ring, KEY)
    ring.locked = False
    saved = entry.read_text()
    entry.unlink()
    await refused("no longer there: move the vault away, and log in again", ring)
    entry.write_text("another key, one that somebody wrote by hand")
    await refused("no longer there", ring)
    entry.write_text(saved)
    assert await place.lies(kind) == before
    assert await place.vault(kind, KEY, ring).pop("k", "a") == SECRET
    await vault.aclose()


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("ring", [LockedRing, ForgetfulRing])
async def test_a_keyring_that_keeps_nothing_seals_nothing(
    kind: str, ring: type, place: Place, tmp_path
):
    """The vault works without it, says that it is not sealed, and is no less its owner's alone."""
    vault = place.vault(kind, keyring=ring(tmp_path / "ring"))
    await vault.put("k", "a", SECRET)
    assert not vault.sealed
    assert await place.vault(kind).get("k", "a") == SECRET
    assert (place.folder / kind).stat().st_mode & 0o777 == 0o600
    await vault.aclose()


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("by", ["key", "keyring"])
async def test_a_vault_is_sealed_as_soon_as_there_is_a_key(
    kind: str, by: str, place: Place, tmp_path
):
    """With the next write nothing plain is left on the disk, and who has the file open already
    needs the key from then on.
    """
    plain = place.vault(kind)
    await plain.put("k", "a", SECRET)
    await plain.put("k", "b", b"other", until=4_000_000_000.0)
    has = {"key": KEY} if by == "key" else {"keyring": FolderRing(tmp_path / "ring")}
    sealed = place.vault(kind, **has)
    assert await sealed.get("k", "a") == SECRET
    await sealed.put("k", "c", b"third")
    assert sealed.sealed
    assert SECRET not in await place.lies(kind)
    assert [await sealed.get("k", key) for key in "abc"] == [SECRET, b"other", b"third"]
    with pytest.raises(StoreError, match="is sealed"):
        await plain.get("k", "a")
    with pytest.raises(StoreError, match="is sealed"):
        await plain.put("k", "a", b"w")
    await sealed.aclose()
    await plain.aclose()


NEW_KEY = "a new key of the tests with more than enough characters"


@pytest.mark.parametrize("kind", KINDS)
async def test_of_several_keys_the_first_one_seals_and_all_of_them_open(kind: str, place: Place):
    """Three restarts rotate a key while other processes still run with the keys of the restart
    before: "old,new", then "new,old", then "new".
    """
    old = place.vault(kind, KEY)
    await old.put("k", "a", SECRET)
    both = place.vault(kind, f"{KEY},{NEW_KEY}")
    assert await both.get("k", "a") == SECRET
    await both.put("k", "b", SECRET)
    assert await old.get("k", "b") == SECRET  # still sealed with the old key
    swapped = place.vault(kind, f"{NEW_KEY}, {KEY}")
    for name in ("a", "b"):
        assert await swapped.swap("k", name, SECRET, SECRET)
    assert await both.get("k", "a") == SECRET
    new = place.vault(kind, NEW_KEY)
    assert [await new.get("k", name) for name in ("a", "b")] == [SECRET, SECRET]
    with pytest.raises(StoreError, match="another key"):
        await old.get("k", "a")
    for vault in (old, both, swapped, new):
        await vault.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_key_can_be_rotated_at_once(kind: str, place: Place):
    """Every record, with its expiry, without a write of its own."""
    old = place.vault(kind, KEY)
    names = [("k", "a"), ("k", "b:c"), ("a kind: with [signs]*", "ключ"), ("", "")]
    for of in names:
        await old.put(*of, SECRET)
    await old.put("k", "short", SECRET, until=time.time() + 3600.0)
    both = place.vault(kind, f"{NEW_KEY},{KEY}")
    await both.rotate_key()
    await both.rotate_key()  # nothing is left to do
    new = place.vault(kind, NEW_KEY)
    for of in (*names, ("k", "short")):
        assert await new.get(*of) == SECRET
    assert sorted(await new.keys("k")) == ["a", "b:c", "short"]
    later = {"clock": lambda: time.time() + 7200.0}
    assert await place.vault(kind, NEW_KEY, **later).keys("k") == ["a", "b:c"]
    for vault in (old, both, new):
        await vault.aclose()


@pytest.mark.parametrize("kind", FILES)
async def test_a_key_in_the_keyring_can_be_rotated(kind: str, place: Place, tmp_path):
    """The keyring then has the new key only; a vault that was open goes on."""
    ring = FolderRing(tmp_path / "ring")
    vault = place.vault(kind, keyring=ring)
    other = place.vault(kind, keyring=ring)
    await vault.put("k", "a", SECRET)
    assert await other.get("k", "a") == SECRET
    (before,) = ring.folder.iterdir()
    secret = before.read_text()
    await vault.rotate_key()
    (after,) = ring.folder.iterdir()
    assert after.name != before.name
    assert after.read_text() != secret
    for each in (vault, other, place.vault(kind, keyring=ring)):
        assert await each.get("k", "a") == SECRET
        assert each.sealed
        await each.aclose()


@pytest.mark.parametrize("kind", FILES)
async def test_a_given_key_takes_the_place_of_the_one_in_the_keyring(
    kind: str, place: Place, tmp_path
):
    ring = FolderRing(tmp_path / "ring")
    vault = place.vault(kind, keyring=ring)
    await vault.put("k", "a", SECRET)
    await vault.aclose()
    given = place.vault(kind, KEY, keyring=ring)
    await given.rotate_key()
    assert list(ring.folder.iterdir()) == []
    await given.aclose()
    again = place.vault(kind, KEY)
    assert await again.get("k", "a") == SECRET
    await again.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_without_a_key_there_is_nothing_to_rotate(kind: str, place: Place):
    vault = place.vault(kind)
    await vault.put("k", "a", SECRET)
    with pytest.raises(StoreError, match="INTERLOCK_VAULT_KEY"):
        await vault.rotate_key()
    assert await vault.get("k", "a") == SECRET
    await vault.aclose()


@pytest.mark.parametrize("kind", FILES)
async def test_what_is_gone_is_gone_from_the_file(kind: str, place: Place):
    """Not only no longer found, where nothing was sealed: taken, removed, written over, or at its
    end.
    """
    vault = place.vault(kind)
    for key in "abcd":
        await vault.put("k", key, SECRET * 1000)
    assert SECRET in await place.lies(kind)
    await vault.pop("k", "a")
    await vault.remove("k", "b")
    await vault.put("k", "c", b"short")
    await vault.put("k", "d", b"short", until=0.0)
    assert SECRET not in await place.lies(kind)
    await vault.aclose()


@pytest.mark.parametrize(
    "make",
    [FileVault, SqliteVault, lambda path, key=None: RedisVault("redis://127.0.0.1", key=key)],
)
def test_a_short_key_is_refused(make, tmp_path, monkeypatch):
    """With words that say how to make one, and never with the key."""
    with pytest.raises(
        ValueError,
        match=r"key that was given is shorter than 32 characters: make one with .*token_urlsafe",
    ) as caught:
        make(tmp_path / "vault", key="password")
    assert "password" not in str(caught.value)
    monkeypatch.setenv("INTERLOCK_VAULT_KEY", "password")
    with pytest.raises(ValueError, match="INTERLOCK_VAULT_KEY is shorter"):
        make(tmp_path / "vault")


def test_without_cryptography_a_key_is_an_error_and_none_is_not(tmp_path):
    """Nothing is ever kept plain where a key was given.

    Where none is, the vault works and says that it is not sealed.
    """
    program = (
        "import asyncio, sys; sys.modules['cryptography'] = None\n"
        "from interlock.store import FileVault, SqliteVault, StoreError\n"
        "for kind in (FileVault, SqliteVault):\n"
        "    try: asyncio.run(kind(sys.argv[1] + '/sealed', key='k' * 40).put('k', 'a', b'v'))\n"
        "    except StoreError as bad: print(bad)\n"
        "    vault = kind(sys.argv[1] + '/' + kind.__name__)\n"
        "    asyncio.run(vault.put('k', 'a', b'v'))\n"
        "    print(vault.sealed)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    words = (
        "a vault can only be sealed where the package cryptography is installed: pip install "
        "'interlock[seal]'"
    )
    assert ran.stdout.splitlines() == [words, "False"] * 2
