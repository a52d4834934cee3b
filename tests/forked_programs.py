"""Forked programs: with `--fork`, Python programs that tests start are forked from an interpreter
that has imported Interlock, instead of starting one anew.

Half of the processor time of `make test` was the start of interpreters: some 200 ms for each of
thousands of programs. A test goes on to call `subprocess` or asyncio, or lets a client start a
server: this plugin takes the place of the one function below them that starts a process, and of the
same one in the programs that are forked. Interpreters are started as ever

- where the test or its file has the marker `cold`: it is about the start, or measures memory. With
  `cold(inner=True)` those of the programs that programs start;
- where a forked process would not do the same, see `tests/fork_client.py`;
- in all other suites: `make check`, `make endurance`, `make test-peers` and the runs under other
  versions of Python do not have the option.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fork_client import ForkClient, Start, forking
from tests.fork_messages import receive

SERVER = Path(__file__).with_name("fork_server.py")

ROOM = "." * 8192
"""Makes room for the command lines of forked processes."""

CLIENT: pytest.StashKey[ForkClient] = pytest.StashKey()
"""The connection to the fork server of this process."""

RUNNING: pytest.StashKey[pytest.Item] = pytest.StashKey()
"""The running test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--fork`."""
    parser.getgroup("terminal reporting").addoption(
        "--fork",
        action="store_true",
        help="fork the programs that tests start from one interpreter that has imported Interlock",
    )


@contextmanager
def fork_server() -> Iterator[ForkClient]:
    """A running fork server."""
    ours, theirs = socket.socketpair()
    environment = dict(os.environb)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, str(SERVER), str(theirs.fileno()), ROOM],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
    with server, ours:
        started = receive(ours)
        assert started is not None, "the fork server did not start"
        yield ForkClient(ours, Start(environment, started[0]))


@pytest.fixture(scope="session", autouse=True)
def programs_are_forked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Start the fork server of this worker, if there is one: it needs Linux."""
    config = request.config
    if not config.option.fork or not sys.platform.startswith("linux"):
        yield
        return
    with fork_server() as client, forking(client):
        config.stash[CLIENT] = client
        obey(config)
        yield
    del config.stash[CLIENT]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note which test runs: its marker decides."""
    item.config.stash[RUNNING] = item
    obey(item.config)


def obey(config: pytest.Config) -> None:
    """Do what the marker `cold` of the running test says."""
    client = config.stash.get(CLIENT, None)
    if client is not None:
        mark = config.stash[RUNNING].get_closest_marker("cold")
        inner = mark is not None and mark.kwargs.get("inner", False)
        client.cold = mark is not None and not inner
        client.nests = not inner
