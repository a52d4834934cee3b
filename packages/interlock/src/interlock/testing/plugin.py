"""The pytest plugin: every run of pytest loads it if Interlock is installed, so it must load fast.

Fixtures:
    interlock_client: `async with interlock_client(server) as client`, a client of a Server in this
        process; options are those of `interlock.testing.connect`. With `interlock_way`, a test
        runs once for each way to connect to a server. With `interlock_tape`, its messages are
        recorded.
    interlock_way: both eras, and in the newer one suspended and replayed questions.
        `@pytest.mark.parametrize("interlock_way", ["2025-06-18", "2026-07-28-replayed"],
        indirect=True)` chooses others.
    interlock_tape: an empty Tape, which is shown if the test fails.
    interlock_catalogue: `await interlock_catalogue(server)` compares the server's features with a
        snapshot next to the test (`catalogue.json`, or the given name), and fails if a change
        breaks callers.
    interlock_update: whether `--interlock-update` was given, for `Tape.check`.

The fixtures themselves need no plugin for async tests, but clients are async. With pytest-asyncio
or anyio, write `async def` tests. In plain tests use `asyncio.run`, or
`interlock.sync.Client(server)`, which needs no fixture.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..client.app import Client
    from ..server.app import Server
    from ..tape.conversation import Tape
    from .drift import Drift
    from .ways import Way

    Connect = Callable[..., AbstractAsyncContextManager[Client]]
    CheckCatalogue = Callable[..., Awaitable[Drift]]

_WAY_NAMES = (
    "2025-11-25",
    "2026-07-28-suspended",
    "2026-07-28-replayed",
)  # the names of WAYS, repeated here to avoid the import
_REPORTED = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that saves snapshots."""
    group = parser.getgroup("interlock")
    group.addoption(
        "--interlock-update",
        action="store_true",
        help="save catalogues and tapes anew instead of comparing with them",
    )


@pytest.fixture
def interlock_update(request: pytest.FixtureRequest) -> bool:
    """Whether snapshots are to be saved anew."""
    return bool(request.config.getoption("--interlock-update"))


@pytest.fixture(params=_WAY_NAMES)
def interlock_way(request: pytest.FixtureRequest) -> Way:
    """One way of talking to a server after the other: a revision, and how questions are asked."""
    from .ways import (
        way,  # imported late: the plugin is also loaded without Interlock
    )

    return way(str(request.param))


@pytest.fixture
def interlock_tape() -> Tape:
    """An empty tape."""
    from ..tape.conversation import (
        Tape,  # imported late: the plugin is also loaded without Interlock
    )

    return Tape()


@pytest.fixture
def interlock_client(request: pytest.FixtureRequest) -> Connect:
    """Opens clients of servers in this process."""
    from .ways import (
        connect,  # imported late: the plugin is also loaded without Interlock
    )

    given: dict[str, Any] = {}
    if "interlock_way" in request.fixturenames:
        chosen: Way = request.getfixturevalue("interlock_way")
        given = {"revision": chosen.revision, "suspend": chosen.suspend}
    if "interlock_tape" in request.fixturenames:
        given["tape"] = request.getfixturevalue("interlock_tape")

    def open_client(server: Server, **options: Any) -> AbstractAsyncContextManager[Client]:
        return connect(server, **{**given, **options})

    return open_client


@pytest.fixture
def interlock_catalogue(request: pytest.FixtureRequest, interlock_update: bool) -> CheckCatalogue:
    """Compares what a server offers with a snapshot."""
    from .catalogue import (
        # imported late: the plugin is also loaded without Interlock
        check_catalogue,
    )

    async def check(target: Server | Client, name: str | Path = "catalogue.json") -> Drift:
        path = request.path.parent / name
        found = await check_catalogue(target, path, update=interlock_update)
        changes = [*found.breaking, *found.compatible]
        if changes:
            verb = (
                "saved"
                if interlock_update
                else "not in the snapshot yet (--interlock-update saves them)"
            )
            reported = request.config.stash.setdefault(_REPORTED, [])
            reported.append(f"{path.name}: {len(changes)} changes {verb}")
            reported += [f"  {change}" for change in changes]
        return found

    return check


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the tape of a failed test."""
    report = yield
    tape = getattr(item, "funcargs", {}).get("interlock_tape")
    if report.when == "call" and report.failed and tape is not None and len(tape):
        report.sections.append(("interlock tape", str(tape)))
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Report the compatible changes."""
    if lines := config.stash.get(_REPORTED, []):
        terminalreporter.section("interlock catalogues")
        for line in lines:
            terminalreporter.write_line(line)
