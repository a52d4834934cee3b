"""Accounts: what may be one, who is let in, that nobody learns which names exist, and how often
strangers may try.
"""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import argon2
import pytest

from interlock.store import StoreError
from interlock.store.vaults.memory import MemoryVault
from interlock_issuer.http.rate_limit import (
    ADDRESS,
    CODES,
    NAME,
    NAME_HERE,
    AttemptLimiter,
    Limit,
    RateLimited,
    code_limits,
    password_limits,
)
from interlock_issuer.login.accounts import Accounts, BadAccount, Cost
from tests.auth.network import Clock

CHEAP = Cost(passes=1, memory=64, lanes=1)
PASSWORD = "correct horse"


@pytest.fixture
def accounts(tmp_path: Path) -> Accounts:
    """Accounts whose hashes cost little."""
    return Accounts(tmp_path / "people.db", cost=CHEAP)


async def test_who_has_an_account_is_let_in(accounts: Accounts) -> None:
    """The right name and password, in any spelling of the name, and nothing else (AUT-10)."""
    made = await accounts.add("Alice", PASSWORD, display="Alice Liddell")
    assert (
        await accounts.check("Alice", PASSWORD)
        == made
        == await accounts.check(" ＡＬＩＣＥ ", PASSWORD)
    )
    for name, password in [
        ("alice", "Correct horse"),
        ("alice", ""),
        ("bob", PASSWORD),
        ("", PASSWORD),
        ("a\0b", PASSWORD),
        ("alice", PASSWORD * 200),
    ]:
        assert await accounts.check(name, password) is None
    assert [each.name for each in await accounts.list()] == ["alice"]
    assert (await accounts.find(made.subject)) == made
    assert await accounts.find("alice") is None


@pytest.mark.parametrize(
    "name, password",
    [
        ("", PASSWORD),
        (" ", PASSWORD),
        ("a\nb", PASSWORD),
        ("x" * 201, PASSWORD),
        ("bob", "short"),
        ("bob", "x" * 1025),
        ("ALICE", PASSWORD),
    ],
)
async def test_what_is_no_account(accounts: Accounts, name: str, password: str) -> None:
    """Names that cannot be seen, poor passwords, and a second account of a name are refused with
    words.
    """
    await accounts.add("alice", PASSWORD)
    with pytest.raises(BadAccount, match=r"\w+ \w+"):
        await accounts.add(name, password)
    assert len(await accounts.list()) == 1


async def test_another_password_and_the_end(accounts: Accounts) -> None:
    """A changed password lets the old one in no more, and shows.

    A removed account is gone, and the next of its name is somebody else.
    """
    made = await accounts.add("alice", PASSWORD)
    await accounts.passwd("alice", "battery staple")
    assert await accounts.check("alice", PASSWORD) is None
    changed = await accounts.check("alice", "battery staple")
    assert changed is not None
    assert changed.subject == made.subject
    assert changed.changed > made.changed
    assert await accounts.remove("Alice") is True
    assert await accounts.remove("alice") is False
    assert await accounts.check("alice", "battery staple") is None
    assert (await accounts.add("alice", PASSWORD)).subject != made.subject
    with pytest.raises(BadAccount):
        await accounts.passwd("bob", PASSWORD)


async def test_passwords_are_kept_as_argon2_has_them(accounts: Accounts) -> None:
    """The file holds no password, only argon2id hashes with salts of their own, and nobody else may
    read it (AUT-10).
    """
    await accounts.add("alice", PASSWORD)
    await accounts.add("bob", PASSWORD)
    kept = accounts.path.read_bytes()
    assert PASSWORD.encode() not in kept
    hashes = [part for part in kept.split(b"$argon2id$")[1:]]
    assert len(hashes) == 2
    assert hashes[0][:80] != hashes[1][:80]
    assert stat.S_IMODE(accounts.path.stat().st_mode) == 0o600


async def test_a_hash_of_another_cost_is_made_anew(accounts: Accounts) -> None:
    """Who logs in after the cost was raised gets a hash of the new cost, once."""
    await accounts.add("alice", PASSWORD)
    dearer = Accounts(accounts.path, cost=Cost(passes=2, memory=64, lanes=1))
    assert await dearer.check("alice", PASSWORD) is not None
    assert b"t=2" in accounts.path.read_bytes()
    assert await dearer.check("alice", PASSWORD) is not None


async def test_a_name_that_nobody_has_costs_as_much(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the name, one password is verified by argon2, at the same cost, so that the time
    tells nothing.
    """
    await accounts.add("alice", PASSWORD)
    costs: list[argon2.Parameters] = []
    verify = argon2.PasswordHasher.verify

    def seen(self: argon2.PasswordHasher, hash: str, password: str) -> bool:
        costs.append(argon2.extract_parameters(hash))
        return verify(self, hash, password)

    monkeypatch.setattr(argon2.PasswordHasher, "verify", seen)
    for name in ("alice", "nobody", "", "x" * 300, "a\0"):
        before = len(costs)
        assert await accounts.check(name, "something else") is None
        assert len(costs) == before + 1
    assert len({repr(cost) for cost in costs}) == 1


async def test_two_make_the_same_account_at_once(tmp_path: Path) -> None:
    """Of two who make an account of one name at once, one does, though each has connections of its
    own.
    """
    both = [Accounts(tmp_path / "people.db", cost=CHEAP) for _ in range(2)]
    made = await asyncio.gather(
        *(each.add("alice", PASSWORD) for each in both), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in made) == ["Account", "BadAccount"]


async def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    """What is no file of accounts is said so, with its name."""
    (tmp_path / "text").write_text("no database, and long enough to be seen as such" * 10)
    for path in (tmp_path, tmp_path / "text", tmp_path / "nowhere" / "people.db"):
        with pytest.raises(StoreError, match=f"account file {path} cannot be opened"):
            await Accounts(path, cost=CHEAP).list()


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture
def attempts(clock: Clock) -> AttemptLimiter:
    """A limiter by that clock."""
    return AttemptLimiter(MemoryVault(clock=clock), clock)


async def tries(attempts: AttemptLimiter, limits: dict[str, Limit], count: int) -> int:
    """How many of so many attempts were let through."""
    let = 0
    for _ in range(count):
        try:
            await attempts.claim(limits)
            let += 1
        except RateLimited:
            pass
    return let


async def test_guesses_are_slowed_down(attempts: AttemptLimiter, clock: Clock) -> None:
    """A name from one address has a few attempts, then one for each wait."""
    limits = password_limits("alice", "192.0.2.1")
    assert await tries(attempts, limits, 20) == NAME_HERE.burst
    for _ in range(12):
        with pytest.raises(RateLimited) as caught:
            await attempts.claim(limits)
        assert caught.value.seconds == pytest.approx(NAME_HERE.seconds)
        clock.now += caught.value.seconds
        await attempts.claim(limits)


async def test_a_day_of_guesses(attempts: AttemptLimiter, clock: Clock) -> None:
    """From wherever they come: no account's password is guessed more than 150 times a day."""
    guessed = 0
    for n in range(24 * 60):
        guessed += await tries(attempts, password_limits("alice", f"192.0.{n % 200}.{n % 7}"), 1)
        clock.now += 60
    assert guessed <= 150


async def test_many_at_once_are_many(attempts: AttemptLimiter) -> None:
    """Guesses that are made at the same time are counted before any of them is answered."""
    limits = password_limits("alice", "192.0.2.1")
    done = await asyncio.gather(
        *(attempts.claim(limits) for _ in range(40)), return_exceptions=True
    )
    assert sum(each is None for each in done) == NAME_HERE.burst


async def test_one_is_not_locked_out_by_another(attempts: AttemptLimiter) -> None:
    """Guesses from one address leave the same name free elsewhere, and other names from there."""
    await tries(attempts, password_limits("alice", "192.0.2.1"), 20)
    assert await tries(attempts, password_limits("alice", "192.0.2.2"), 1) == 1
    assert await tries(attempts, password_limits("bob", "192.0.2.1"), 1) == 1


async def test_bounds_of_an_address_and_of_a_name(attempts: AttemptLimiter) -> None:
    """One address may not try many names, nor many addresses one name; an IPv6 /64 is one."""
    here = [password_limits(f"name {n}", f"2001:db8::{n:x}") for n in range(60)]
    assert sum([await tries(attempts, limits, 1) for limits in here]) == ADDRESS.burst
    everywhere = [password_limits("carol", f"192.0.2.{n}") for n in range(90)]
    assert sum([await tries(attempts, limits, 1) for limits in everywhere]) == NAME.burst


async def test_a_success_resets_the_limit(attempts: AttemptLimiter, clock: Clock) -> None:
    """A success forgets the attempts of its name from there; so does time."""
    limits = password_limits("alice", "192.0.2.1")
    for _ in range(4):
        assert await tries(attempts, limits, NAME_HERE.burst - 1) == NAME_HERE.burst - 1
        await attempts.reset(next(iter(limits)))
    assert await tries(attempts, limits, 20) == NAME_HERE.burst
    clock.now += 4600
    assert await tries(attempts, limits, 20) == NAME_HERE.burst


async def test_a_success_does_not_count(attempts: AttemptLimiter) -> None:
    """Many who log in from one address are not taken for an attacker, nor do they excuse one."""
    _, address, _ = password_limits("anna", "192.0.2.1")
    for n in range(200):
        limits = password_limits(f"name {n}", "192.0.2.1")
        await attempts.claim(limits)
        await attempts.give_back(limits)
    guesses = 0
    own = 1
    while own:
        guesses += await tries(attempts, {address: ADDRESS}, 1)
        if own := await tries(attempts, {address: ADDRESS}, 1):
            await attempts.give_back({address: ADDRESS})
    assert guesses == ADDRESS.burst


async def test_codes_of_devices_are_not_to_be_guessed(attempts: AttemptLimiter) -> None:
    """Codes of devices are counted by address, apart from passwords (RFC 8628, 5.1)."""
    assert await tries(attempts, code_limits("192.0.2.1"), 50) == CODES.burst
    assert await tries(attempts, password_limits("alice", "192.0.2.1"), 1) == 1
