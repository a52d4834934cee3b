"""The public conformance suite passes, each leg under each of its revisions, and the script detects
failures."""

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
    """The installed suite."""
    installed("conformance")
    return Suite()


LEGS = [
    (leg, revision)
    for leg in conformance.LEGS
    for revision in conformance.REVISIONS
    # The suite runs the leg "client" by requirement sets, and has none for the older revisions.
    if leg != "client" or revision in ("2025-11-25", "2026-07-28")
]


@pytest.mark.interop
@pytest.mark.parametrize("leg, revision", LEGS)
def test_the_suite_passes(suite: Suite, leg: str, revision: str, tmp_path: Path) -> None:
    """Scored, unscored and extension scenarios pass, except exactly those that are expected to
    fail."""
    done = conformance.run_leg(suite, leg, revision, tmp_path)
    assert done.verdicts
    assert not done.problems(), "\n".join(done.problems())


@pytest.mark.interop
def test_every_scenario_of_the_suite_is_run(suite: Suite) -> None:
    """Each scenario that the suite lists belongs to some leg under some revision."""
    listed = {name for side in ("server", "client", "authorization") for name in suite.listed(side)}
    assert len(listed) > 100
    assert listed == {name for leg in LEGS for name in suite.scenarios(*leg)}


@pytest.mark.interop
def test_expected_failures_are_scenarios_of_the_suite(suite: Suite) -> None:
    """A name that the suite does not have is found."""
    assert conformance.unknown(suite, conformance.expected_failures()) == []
    assert conformance.unknown(suite, ["tools-list", "tools-lost"]) == ["tools-lost"]


@pytest.mark.interop
def test_the_client_has_a_part_in_every_scenario(suite: Suite) -> None:
    """The program under test plays each scenario that is not expected to fail."""
    assert all(
        conformance_client.part_in(name)
        for name in suite.listed("client")
        if name not in conformance.expected_failures()
    )


def test_a_part_that_the_client_does_not_have(tmp_path: Path) -> None:
    """The program reports it, and fails."""
    environment = {
        **os.environ,
        "MCP_CONFORMANCE_SCENARIO": "no-such-scenario",
        "MCP_CONFORMANCE_PROTOCOL_VERSION": "2026-07-28",
    }
    program = [sys.executable, conformance_client.__file__, "http://127.0.0.1:9/mcp"]
    ended = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stderr) == (
        1,
        "this client does not play no-such-scenario\n",
    )


# -- the counting ----------------------------------------------------------------------------------

GOOD = Check("one", "SUCCESS", "")
SCHEMA = Check(conformance.SCHEMA, "SUCCESS", "")
VERDICTS = {
    "one that passed": (Verdict("a", "scored", (GOOD, SCHEMA)), True),
    "one with a part that was skipped": (
        Verdict("a", "scored", (GOOD, Check("two", "SKIPPED", "why"))),
        True,
    ),
    "one that failed": (Verdict("a", "scored", (GOOD, Check("two", "FAILURE", "why"))), False),
    "one with a warning": (Verdict("a", "scored", (GOOD, Check("two", "WARNING", "why"))), False),
    "one that looked at nothing": (
        Verdict("a", "scored", (SCHEMA, Check("two", "SKIPPED", "why"))),
        False,
    ),
    "one without a result": (Verdict("a", "scored"), False),
    "one with a complaint": (Verdict("a", "scored", (GOOD,), "why"), False),
}


@pytest.mark.parametrize("verdict, passed", VERDICTS.values(), ids=VERDICTS)
def test_what_counts_as_passed(verdict: Verdict, passed: bool) -> None:
    """A scenario passes without failures and warnings, and with at least one successful check of
    its own."""
    assert verdict.passed is passed
    assert verdict.why().startswith("a (scored): ")


def test_results_are_read_as_the_suite_writes_them(tmp_path: Path) -> None:
    """Each scenario has a folder, with the time and perhaps a slash in its name; a missing folder
    is a failure."""
    for folder, status in (
        ("server-server-x-2026-11-21T10-00-00-123Z", "SUCCESS"),
        ("server-deep/y-2026-11-21T10-00-00-123Z", "FAILURE"),
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "stderr.txt").write_text("printed")
        checks = [{"id": "one", "status": status, "description": "what", "errorMessage": "why"}]
        (tmp_path / folder / "checks.json").write_text(json.dumps(checks))
    found = conformance.read(
        tmp_path, "server", {"server-x": "scored", "deep/y": "extension", "z": "scored"}
    )
    assert [(verdict.scenario, verdict.group, verdict.passed) for verdict in found] == [
        ("server-x", "scored", True),
        ("deep/y", "extension", False),
        ("z", "scored", False),
    ]
    assert found[1].why() == "deep/y (extension): failed\n    FAILURE one: why\n    | printed"
    assert found[2].why() == "z (scored): the suite has no result of it"


def outcome(scenario: str, group: str, passed: bool) -> Verdict:
    """A verdict on a scenario that passed or failed."""
    return Verdict(scenario, group, (GOOD if passed else Check("two", "FAILURE", "why"),))


def test_the_table() -> None:
    """A row for each leg, revision and group: what passed, what failed, and what is not built."""
    leg = Leg(
        "client",
        "2026-07-28",
        [
            outcome("a", "scored", True),
            outcome("b", "scored", False),
            outcome("c", "extension", False),
            outcome("d", "extension", True),
        ],
        expected={"c": "not built yet"},
    )
    head, *rows = conformance.table([leg]).splitlines()
    assert head.split() == (
        [
            "leg",
            "revision",
            "group",
            "passed",
            "failed",
            "not",
            "built",
            "checks",
            "skipped",
            "run",
            "again",
        ]
    )
    assert [row.split() for row in rows] == [
        ["client", "2026-07-28", "scored", "1", "1", "0", "1", "0", "0"],
        ["client", "2026-07-28", "extension", "1", "0", "1", "1", "0", "0"],
    ]


EXPECTATIONS = {
    "a failure that is expected": ("c", False, []),
    "a success": ("a", True, []),
    "a failure that is not expected": ("a", False, ["a (scored): failed"]),
    "a success that is not expected": (
        "c",
        True,
        ["c passes: take it out of expected_failures.yaml"],
    ),
}


@pytest.mark.parametrize("scenario, passed, problems", EXPECTATIONS.values(), ids=EXPECTATIONS)
def test_expected_failures_are_checked_both_ways(
    scenario: str, passed: bool, problems: list[str]
) -> None:
    """An unexpected failure is a problem of a leg, and so is an unexpected success."""
    leg = Leg("server", "2026-07-28", [outcome(scenario, "scored", passed)], expected={"c": "why"})
    assert [problem.splitlines()[0] for problem in leg.problems()] == problems


def test_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is 1 after an unexpected result, and 0 if exactly the expected scenarios failed."""
    suite = object.__new__(Suite)
    verdicts = [outcome("a", "scored", True), outcome("c", "extension", False)]
    monkeypatch.setattr(conformance, "Suite", lambda: suite)
    monkeypatch.setattr(Suite, "listed", lambda self, side: {"a": ["x"], "c": ["extension"]})
    monkeypatch.setattr(conformance, "expected_failures", lambda: {"c": "not built yet"})
    monkeypatch.setattr(
        conformance,
        "run_legs",
        lambda *args: [Leg("server", "2026-07-28", verdicts, conformance.expected_failures())],
    )
    assert conformance.main([]) == 0
    printed = capsys.readouterr().out
    assert "server: 1 of 2 scenarios pass, 1 do not, 0 were not run" in printed
    assert "1 not built: not built yet" in printed
    verdicts[0] = outcome("a", "scored", False)
    assert conformance.main([]) == 1
    verdicts[:] = [outcome("a", "scored", True), outcome("c", "extension", True)]
    assert conformance.main([]) == 1
    verdicts.pop()
    monkeypatch.setattr(conformance, "expected_failures", lambda: {"z": "no scenario"})
    assert conformance.main([]) == 1
    assert "z, in expected_failures.yaml, is no scenario of the suite" in capsys.readouterr().out


def test_a_suite_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed after a timeout, and its output until then is kept, line by line."""
    monkeypatch.setattr(conformance, "SUITE_SECONDS", 1.0)
    suite = object.__new__(Suite)
    heard = list[str]()
    suite.command = [
        sys.executable,
        "-c",
        "import time; print('so far', flush=True); time.sleep(60)",
    ]
    done = suite.run(tmp_path, "client", follow=heard.append)
    assert (heard, done.returncode) == (["so far"], -9)
    assert done.stdout == "so far\nthe suite did not end within 1 seconds"


def test_nobody_at_the_port(tmp_path: Path) -> None:
    """A server that exits at once is reported at once, with its output."""
    log = tmp_path / "log"
    log.write_text("no such luck")
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        with pytest.raises(conformance.BadServer, match="no such luck"):
            conformance.await_port(9, process, log)
