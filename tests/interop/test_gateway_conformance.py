"""The public conformance suite through the gateway: the same score as without it, before servers of
several makers."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from scripts import conformance
from scripts.conformance import Leg, Suite
from tests.gateway.running import running
from tests.interop.driver import command_of
from tests.ports import free_port

pytestmark = pytest.mark.interop

REVISIONS = ("2025-11-25", "2026-07-28")
OTHERWISE = {
    "server-sse-polling": "the tool closes the stream of its own connection; the stream between the"
    " client and the gateway is the gateway's, and stays open",
    "tasks-required-task-error": "the gateway waits for the task in place of a client that has no"
    " tasks, so that there is a result and no error",
}
"""The unscored scenarios whose outcome the gateway changes on purpose, each with the reason."""
SECONDS = 60.0  # for a server of another maker to start
MAKERS = ("python-2", "typescript-2", "fastmcp")


@pytest.fixture
def suite(installed: Callable[[str], Path]) -> Suite:
    """The installed suite."""
    installed("conformance")
    return Suite()


def settings(url: str) -> str:
    """The settings of a gateway before one server, whose names stay as they are."""
    return f'[servers.behind]\nurl = "{url}"\nprefix = ""\n[audit]\nfile = "off"\n'


@contextmanager
def through(
    log: Path, serve: Callable[[Path], contextlib.AbstractContextManager[str]]
) -> Iterator[str]:
    """Serve a server behind a gateway; `log` gets the log of the gateway."""
    folder = log.parent / "gateway"
    folder.mkdir(parents=True)
    with serve(log.with_name("behind.log")) as url, running(folder, settings(url)) as gateway:
        yield gateway.url()
        errors = gateway.errors
    log.write_text(errors, encoding="utf-8")


@contextmanager
def peer(command: Sequence[str], log: Path) -> Iterator[str]:
    """Serve the program of another maker. Its log is not looked at: its errors are its own."""
    port = free_port()
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [*command, "streamable-http", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        ) as process,
    ):
        try:
            conformance.await_port(port, process, log, SECONDS)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


@pytest.mark.parametrize("revision", REVISIONS)
def test_our_server_through_the_gateway(suite: Suite, revision: str, tmp_path: Path) -> None:
    """Every scenario that passes without the gateway passes through it: the same score."""
    serve = partial(through, serve=conformance.served)
    done = conformance.run_leg(suite, "server", revision, tmp_path, serve)
    assert len(done.verdicts) > 20
    failed = [verdict for verdict in done.failures if verdict.scenario not in OTHERWISE]
    assert not failed, "\n".join(verdict.why() for verdict in failed)
    assert not [v for v in done.failures if v.group == "scored"]
    assert not done.surprises


@pytest.mark.endurance(seconds=60)
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("maker", MAKERS)
def test_servers_of_other_makers_through_the_gateway(
    suite: Suite, installed: Callable[[str], Path], maker: str, revision: str, tmp_path: Path
) -> None:
    """The gateway loses no scenario that the server passes by itself. The servers have all features
    that the suite looks at, as far as the SDK has them."""
    command = command_of("conformance", maker, installed)

    def serve(log: Path) -> contextlib.AbstractContextManager[str]:
        return peer(command, log)

    (tmp_path / "direct").mkdir()
    (tmp_path / "through").mkdir()
    direct = conformance.run_leg(suite, "server", revision, tmp_path / "direct", serve)
    behind = partial(through, serve=serve)
    after = conformance.run_leg(suite, "server", revision, tmp_path / "through", behind)
    passed = passing(direct)
    print(f"{maker} {revision}: {len(passed)} direct, {len(passing(after))} through the gateway")
    assert len(passed) >= 20, "\n".join(direct.problems())
    lost = passed - passing(after) - OTHERWISE.keys()
    assert not lost, "\n".join(v.why() for v in after.verdicts if v.scenario in lost)


def passing(leg: Leg) -> set[str]:
    """The scenarios that pass."""
    return {verdict.scenario for verdict in leg.verdicts if verdict.passed}
