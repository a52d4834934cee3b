"""Every vault of the house passes the contract check, and the check catches vaults that break a
promise.
"""

from __future__ import annotations

import asyncio

import pytest

from interlock.store import MemoryVault
from interlock.testing import check_vault
from tests.store.vault_makers import KINDS, maker


@pytest.mark.parametrize("kind", KINDS)
async def test_vaults_keep_their_promises(kind: str, tmp_path, redis_url: str):
    """In memory, in a file, in SQLite and in a real Redis server, plain and sealed, and in keyrings
    with large and with small entries.
    """
    await check_vault(maker(kind, tmp_path, redis_url))


# -- a check that cannot fail shows nothing -------------------------------------------------------


def breaking(name: str, broken):
    """A maker of vaults whose method `name` is `broken(the sound one, the vault)`."""

    async def make(clock):
        vault = MemoryVault(clock=clock)
        setattr(vault, name, broken(getattr(vault, name), vault))
        return [vault]

    return make


def folding(get, vault):
    """Takes large letters for small ones."""
    return lambda kind, key: get(kind, key.lower())


def all_kinds(keys, vault):
    """Lists the keys of other kinds, too."""

    async def broken(kind):
        return sorted({*await keys(kind), *await keys("")})

    return broken


def overwriting(add, vault):
    """Adds over what is there."""

    async def broken(kind, key, value, *, until=None):
        await vault.put(kind, key, value, until=until)
        return True

    return broken


def blind(swap, vault):
    """Swaps whatever is there."""

    async def broken(kind, key, was, value, *, until=None):
        return await swap(kind, key, await vault.get(kind, key) or b"", value, until=until)

    return broken


def copying(pop, vault):
    """Gives without removing."""
    return lambda kind, key: vault.get(kind, key)


def pleased(remove, vault):
    """Says that it removed something whatever there was."""

    async def broken(kind, key):
        await remove(kind, key)
        return True

    return broken


def endless(put, vault):
    """Forgets the end."""
    return lambda kind, key, value, *, until=None: put(kind, key, value)


def cutting(put, vault):
    """Keeps what fits of what does not."""
    return lambda kind, key, value, *, until=None: put(kind, key, value[:1_048_576], until=until)


def final(aclose, vault):
    """Forgets everything when it is closed."""

    async def broken():
        for key in await vault.keys("k"):
            await vault.remove("k", key)

    return broken


def homely(put, vault):
    """Works in the first event loop that it sees only."""

    seen = []

    async def broken(kind, key, value, *, until=None):
        seen.append(asyncio.get_running_loop())
        if seen[0] is seen[-1]:
            await put(kind, key, value, until=until)

    return broken


BROKEN = {
    "letters folded": (breaking("get", folding), "every program finds a value unchanged"),
    "keys of other kinds": (breaking("keys", all_kinds), "lists all keys of a kind"),
    "added over": (breaking("add", overwriting), "of many calls of `add` at once, one succeeds"),
    "blind swaps": (breaking("swap", blind), "still the given one"),
    "taken twice": (breaking("pop", copying), "of many calls of `pop` at once, one gets the value"),
    "removed twice": (
        breaking("remove", pleased),
        "of many calls of `remove` at once, one returns True",
    ),
    "no ends": (breaking("put", endless), "no expired ones"),
    "cut short": (breaking("put", cutting), "and too long names are refused"),
    "closed for ever": (breaking("aclose", final), "closed twice and used again"),
    "one loop": (breaking("put", homely), "several event loops"),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_broken_vaults_are_caught(case: str):
    """Each promise that is broken is the one that the error names."""
    make, words = BROKEN[case]
    with pytest.raises(AssertionError, match=words):
        await check_vault(make, patience=5.0)


async def test_vaults_that_are_shared_come_in_pairs():
    """Who hands in one vault that says it is shared has not shown that it is."""

    class Lonely(MemoryVault):
        shared = True

    async def make(clock):
        return [Lonely(clock=clock)]

    with pytest.raises(AssertionError, match="`shared` is True"):
        await check_vault(make)
