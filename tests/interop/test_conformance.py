"""The public conformance suite passes, each leg under each of its revisions; and the script that counts can tell when it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import conformance
from scripts.conformance import Check, Leg, Suite, Verdict
from tests.interop import conformance_client


@pytest.fixture
def suite(installed: Callable[[str], Path]) -> Suite:
    """The suite, installed."""
    installed("conformance")
    return Suite()


@pytest.mark.interop
@pytest.mark.parametrize("revision", conformance.REVISIONS)
@pytest.mark.parametrize("leg", conformance.LEGS)
def test_the_suite_passes(suite: Suite, leg: str, revision: str, tmp_path: Path) -> None:
    """All that is scored, and what is not scored too, but for what is built later."""
    done = conformance.run_leg(suite, leg, revision, tmp_path)
    assert done.verdicts
    assert not done.failures, "\n".join(verdict.why() for verdict in done.failures)


@pytest.mark.interop
@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_the_client_plays_what_there_is(suite: Suite, revision: str) -> None:
    """Our client has a part in every scenario that is not left out."""
    assert all(
        conformance_client.part_in(name)
        for name in suite.scenarios("client", revision)
        if not conformance.left_out(name)
    )


def test_a_part_that_the_client_does_not_have(tmp_path: Path) -> None:
    """The program says so, and fails."""
    environment = {
        **os.environ,
        "MCP_CONFORMANCE_SCENARIO": "sep-2640-client-skills",
        "MCP_CONFORMANCE_PROTOCOL_VERSION": "2026-07-28",
    }
    program = [sys.executable, conformance_client.__file__, "http://127.0.0.1:9/mcp"]
    ended = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stderr) == (
        1,
        "this client does not play sep-2640-client-skills\n",
    )


# -- the counting ----------------------------------------------------------------------------------------------------

GOOD, SCHEMA = Check("one", "SUCCESS", ""), Check(conformance.SCHEMA, "SUCCESS", "")
VERDICTS = {
    "one that passed": (Verdict("a", True, (GOOD, SCHEMA)), True),
    "one with a part that was skipped": (
        Verdict("a", True, (GOOD, Check("two", "SKIPPED", "why"))),
        True,
    ),
    "one that failed": (Verdict("a", True, (GOOD, Check("two", "FAILURE", "why"))), False),
    "one with a warning": (Verdict("a", True, (GOOD, Check("two", "WARNING", "why"))), False),
    "one that looked at nothing": (
        Verdict("a", True, (SCHEMA, Check("two", "SKIPPED", "why"))),
        False,
    ),
    "one without a result": (Verdict("a", True), False),
    "one with a complaint": (Verdict("a", True, (GOOD,), "why"), False),
}


@pytest.mark.parametrize("verdict, passed", VERDICTS.values(), ids=VERDICTS)
def test_what_counts_as_passed(verdict: Verdict, passed: bool) -> None:
    """No failure, no warning, and at least one check of its own that was good."""
    assert verdict.passed is passed
    assert verdict.why().startswith("a: ")


def test_results_are_read_as_the_suite_writes_them(tmp_path: Path) -> None:
    """A folder for each scenario, with the time in its name and perhaps a slash; one that is missing is no success."""
    for folder, status in (
        ("server-server-x-2026-11-21T10-00-00-123Z", "SUCCESS"),
        ("server-deep/y-2026-11-21T10-00-00-123Z", "FAILURE"),
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "stderr.txt").write_text("printed")
        checks = [{"id": "one", "status": status, "description": "what", "errorMessage": "why"}]
        (tmp_path / folder / "checks.json").write_text(json.dumps(checks))
    found = conformance.read(tmp_path, "server", {"server-x": True, "deep/y": False, "z": True})
    assert [(verdict.scenario, verdict.scored, verdict.passed) for verdict in found] == [
        ("server-x", True, True),
        ("deep/y", False, False),
        ("z", True, False),
    ]
    assert found[1].why() == "deep/y (not scored): failed\n    FAILURE one: why\n    | printed"
    assert found[2].why() == "z: the suite has no result of it"


def test_the_table() -> None:
    """A row for each leg, with what was scored and what was not in columns of their own."""
    leg = Leg(
        "client",
        "2026-07-28",
        [VERDICTS["one that passed"][0], VERDICTS["one that failed"][0]],
        ["auth/x"],
        1.2,
    )
    assert [line.split() for line in conformance.table([leg]).splitlines()] == [
        [
            "leg",
            "revision",
            "scored",
            "unscored",
            "checks",
            "skipped",
            "run",
            "again",
            "left",
            "out",
            "time",
        ],
        ["client", "2026-07-28", "1/2", "-", "3", "0", "0", "1", "1", "s"],
    ]


@pytest.mark.parametrize(
    "name, out",
    [
        ("tasks-lifecycle", True),
        ("auth/dpop", False),
        ("tools-list", False),
        ("server-stateless", False),
    ],
)
def test_what_is_left_out(name: str, out: bool) -> None:
    """Tasks, which are built later, and nothing else."""
    assert conformance.left_out(name) is out


def test_a_suite_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended after a while, with all that it said until then, each line as it came."""
    monkeypatch.setattr(conformance, "SUITE_SECONDS", 1.0)
    suite, heard = object.__new__(Suite), list[str]()
    suite.command = [
        sys.executable,
        "-c",
        "import time; print('so far', flush=True); time.sleep(60)",
    ]
    done = suite.run(tmp_path, "client", follow=heard.append)
    assert (heard, done.returncode) == (["so far"], -9)
    assert done.stdout == "so far\nthe suite did not end within 1 seconds"


def test_nobody_at_the_port(tmp_path: Path) -> None:
    """A server that ends at once is noticed at once, with what it said."""
    log = tmp_path / "log"
    log.write_text("no such luck")
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        with pytest.raises(conformance.BadServer, match="no such luck"):
            conformance.await_port(9, process, log)
