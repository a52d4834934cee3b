"""Which store a URL names, and what is said where it names none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import interlock.store
from interlock.store import MemoryStore, RedisStore, SqliteStore, StoreError, open_store

PLACES = {
    "memory:": MemoryStore,
    "MEMORY:": MemoryStore,
    "sqlite:///{}/store.db": SqliteStore,
    "sqlite:store.db": SqliteStore,
    "redis://127.0.0.1:1/0": RedisStore,
    "rediss://user:password@127.0.0.1:1": RedisStore,
    "unix:///{}/socket": RedisStore,
}
NOWHERE = [
    "",
    "memory",
    "memory:x",
    "memory://",
    "sqlite:",
    "sqlite://",
    "sqlite:///",
    "sqlite://host/x",
    "redis:",
    "redis:host",
    "postgres://u:secret@h/d",
    "file.db",
    "secret",
]


@pytest.mark.parametrize("url", PLACES)
def test_urls_name_stores(url: str, tmp_path):
    """Each scheme has its store, and none is opened, or made, before it is opened."""
    store = open_store(url.format(str(tmp_path).lstrip("/")))
    assert type(store) is PLACES[url]
    assert store.shared == (type(store) is not MemoryStore)
    assert not list(tmp_path.iterdir())


async def test_sqlite_paths_are_absolute_or_relative(tmp_path, monkeypatch):
    """Three slashes begin an absolute path.

    Without slashes it is that of a file here, wherever one goes later.
    """
    monkeypatch.chdir(tmp_path)
    stores = [
        open_store(f"sqlite://{tmp_path}/absolute.db"),
        open_store("sqlite:relative.db"),
        SqliteStore(Path("given.db")),
    ]
    monkeypatch.chdir("/")
    for store in stores:
        await store.open()
        await store.aclose()
    names = {"absolute.db", "relative.db", "given.db"}
    found = {path.name.removesuffix("-sessions") for path in tmp_path.iterdir()}
    assert found == names


@pytest.mark.parametrize("url", NOWHERE)
def test_other_urls_are_refused_with_what_there_is(url: str):
    """The words name every scheme, and nothing of a URL that might be a secret."""
    with pytest.raises(
        ValueError, match=r"memory:.*sqlite:///.*redis://.*rediss://.*unix://"
    ) as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_a_missing_package_is_named_in_one_line():
    """Without redis-py there is one line that says what to install."""
    program = (
        "import sys; sys.modules['redis'] = None\n"
        "from interlock.store import RedisStore, StoreError, open_store\n"
        "for make in (RedisStore, open_store):\n"
        "    try: make('redis://127.0.0.1')\n"
        "    except StoreError as bad: print(bad)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert said == "the Redis store needs the package redis: pip install 'interlock[redis]'\n" * 2


def test_a_store_loads_no_more_than_it_needs():
    """`import interlock` loads no store.

    The one in memory loads no database, and the others load redis-py when they are opened.
    """
    program = (
        "import sys, interlock; print('interlock.store' in sys.modules)\n"
        "import interlock.store; interlock.store.open_store('memory:'); print('sqlite3' in "
        "sys.modules, 'redis' in sys.modules)\n"
        "interlock.store.open_store('redis://127.0.0.1'); print('redis' in sys.modules)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert said.split() == ["False", "False", "False", "False"]


def test_the_room_lists_what_it_offers():
    """Each public name can be had, and no other."""
    for name in interlock.store.__all__:
        assert getattr(interlock.store, name).__name__ == name
    assert dir(interlock.store) == sorted(interlock.store.__all__)
    with pytest.raises(AttributeError, match="CloudStore"):
        _ = interlock.store.CloudStore


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:secret@127.0.0.1:1",
        "redis://user:secret@host:port",
        "unix:///nowhere/secret.sock?password=secret",
    ],
)
async def test_a_server_that_is_not_there_is_named_without_its_password(url: str):
    """The words say where it was looked for."""
    with pytest.raises(StoreError, match="the Redis server at .* cannot be used") as caught:
        await open_store(url).open()
    assert "secret@" not in str(caught.value)
    assert "password" not in str(caught.value)
