"""Runs the public conformance suite on Interlock, and counts what passed, what failed and what is
not built.

    python -m scripts.conformance                        # everything, as `make conformance` does
    python -m scripts.conformance --leg server --revision 2026-07-28 --results DIR

The suite is an npm package, pinned in `tests/interop/conformance`. Under test are ordinary programs
of `tests/interop`:
`everything.py --port N`, `conformance_client.py URL` and `issuer.py --port N`. Scenarios that are
expected to fail are listed
in `tests/interop/conformance/expected_failures.yaml`, and nothing else may fail.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from scripts import peers
from tests.interop.person import NAME, PASSWORD, walk
from tests.ports import free_port

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""All revisions that the suite knows; it does not know 2024-11-05."""
LEGS = ("server", "client", "strict", "authorization")
SIDES = {"server": "server", "client": "client", "strict": "client"}
"""The side under test of each leg that requirement sets name scenarios for."""
GROUPS = ("scored", "unscored", "extension")
"""The groups of scenarios in a requirement set; a scenario that no set names is unscored, or
belongs to an extension."""
SERVER = peers.INTEROP / "everything.py"
CLIENT = peers.INTEROP / "conformance_client.py"
ISSUER = peers.INTEROP / "issuer.py"
LOOPBACK = peers.INTEROP / "conformance" / "loopback.cjs"
EXPECTED_FAILURES = peers.INTEROP / "conformance" / "expected_failures.yaml"

AT_ONCE = 2
"""The number of concurrent scenarios of the strict count."""
SCENARIO_SECONDS = 60
SUITE_SECONDS = 110
EXITED = "Client exited with code"
SCHEMA = "wire-schema-valid"  # a check that every scenario has: it passes even without any message


@dataclass(frozen=True)
class Check:
    """One check of a scenario."""

    id: str
    status: str
    words: str

    @property
    def bad(self) -> bool:
        """Whether it counts as a failure: warnings do here, although not for the suite."""
        return self.status in ("FAILURE", "WARNING")


@dataclass(frozen=True)
class Verdict:
    """The result of one scenario."""

    scenario: str
    group: str  # one of GROUPS
    checks: tuple[Check, ...] = ()
    complaint: str = ""  # errors outside the checks
    output: str = ""  # what the client under test printed to stderr
    again: bool = False  # whether it passed on a second run, alone

    @property
    def passed(self) -> bool:
        """Whether no check failed, one of the scenario's own checks succeeded, and there were no
        other errors."""
        good = any(check.status == "SUCCESS" and check.id != SCHEMA for check in self.checks)
        return good and not self.complaint and not any(check.bad for check in self.checks)

    def why(self) -> str:
        """The reasons of the failure, in a few lines."""
        lines = [f"{self.scenario} ({self.group}): {self.complaint or 'failed'}"]
        lines += [
            f"    {check.status} {check.id}: {check.words}" for check in self.checks if check.bad
        ]
        if len(lines) == 1 and not self.complaint:
            lines.append("    none of its own checks passed")
        return "\n".join([*lines, *(f"    | {line}" for line in self.output.splitlines()[-15:])])


@dataclass
class Leg:
    """The outcome of one leg under one revision.

    Attributes:
        expected: The scenarios that are expected to fail, each with the reason.
    """

    name: str
    revision: str
    verdicts: list[Verdict] = field(default_factory=list)
    expected: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def failures(self) -> list[Verdict]:
        """The scenarios that failed unexpectedly."""
        return [
            verdict
            for verdict in self.verdicts
            if not verdict.passed and verdict.scenario not in self.expected
        ]

    @property
    def surprises(self) -> list[Verdict]:
        """The scenarios that passed although they were expected to fail: the list is wrong."""
        return [
            verdict
            for verdict in self.verdicts
            if verdict.passed and verdict.scenario in self.expected
        ]

    def problems(self) -> list[str]:
        """Descriptions of all unexpected results; empty if there are none."""
        return [verdict.why() for verdict in self.failures] + [
            f"{verdict.scenario} passes: take it out of {EXPECTED_FAILURES.name}"
            for verdict in self.surprises
        ]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Its rows of the table, one for each group of scenarios that it has."""
        for group in GROUPS:
            verdicts = [verdict for verdict in self.verdicts if verdict.group == group]
            if not verdicts:
                continue
            checks = Counter(check.status for verdict in verdicts for check in verdict.checks)
            failed = [verdict for verdict in self.failures if verdict.group == group]
            passed = sum(verdict.passed for verdict in verdicts)
            numbers = (
                passed,
                len(failed),
                len(verdicts) - passed - len(failed),
                checks["SUCCESS"],
                checks["SKIPPED"],
                sum(verdict.again for verdict in verdicts),
            )
            yield (self.name, self.revision, group, *map(str, numbers))


HEAD = (
    "leg",
    "revision",
    "group",
    "passed",
    "failed",
    "not built",
    "checks",
    "skipped",
    "run again",
)


# -- what the suite asks for -----------------------------------------------------------------------


class BadServer(Exception):
    """The server under test did not start, or did not stop on request; the text has its log."""


class Suite:
    """The installed suite. The constructor installs it. Raises `peers.NotInstalled`."""

    def __init__(self) -> None:
        self.package = (
            peers.INSTALLERS["conformance"]()
            / "node_modules"
            / "@modelcontextprotocol"
            / "conformance"
        )
        node = str(peers.node(peers.OLDEST_NODE_OF_THE_SUITE))
        self.command = [node, "--require", str(LOOPBACK), str(self.package / "dist" / "index.js")]
        self._listed: dict[str, dict[str, list[str]]] = {}

    @property
    def version(self) -> str:
        """The version of the package."""
        version: str = json.loads((self.package / "package.json").read_text(encoding="utf-8"))[
            "version"
        ]
        return version

    def scenarios(self, leg: str, revision: str) -> dict[str, str]:
        """The scenarios of a leg under a revision, each with its group.

        The leg "client" has only the scenarios of the revision's requirement set, because the suite
        cannot start others together. The other legs also have the scenarios that the suite lists
        for the revision and no set names. Scenarios of an extension that no set names count under
        the newest revision.
        """
        if leg == "authorization":
            listed = self.listed(leg)
            return {name: "unscored" for name, where in listed.items() if revision in where}
        required = self.required(SIDES[leg], revision)
        if leg == "client":
            return required
        found = dict(required)
        named = {name for known in REVISIONS for name in self.required(SIDES[leg], known)}
        for name, where in self.listed(SIDES[leg]).items():
            if revision in where:
                found.setdefault(name, "unscored")
            elif where == ["extension"] and revision == REVISIONS[-1] and name not in named:
                found[name] = "extension"
        return found

    def required(self, side: str, revision: str) -> dict[str, str]:
        """The scenarios that the requirement set of a revision names for a side, each with its
        group."""
        file = self.package / "requirements" / f"{revision}.yaml"
        if not file.exists():
            return {}
        wanted = yaml.safe_load(file.read_text(encoding="utf-8"))
        found = dict.fromkeys(wanted[side], "scored")
        for entry in wanted["not_scored"]:
            if entry["leg"] == side:
                extension = entry["reason"] == "extension"
                found[entry["scenario"]] = "extension" if extension else "unscored"
        return found

    def listed(self, side: str) -> dict[str, list[str]]:
        """All scenarios of a side, each with the revisions that it is for, or with "extension"."""
        if side not in self._listed:
            self._listed[side] = self._list(side)
        return self._listed[side]

    def _list(self, side: str) -> dict[str, list[str]]:
        printed = subprocess.run(
            [*self.command, "list", f"--{side}"],
            capture_output=True,
            text=True,
            timeout=SCENARIO_SECONDS,
            check=True,
        ).stdout
        found = re.findall(r"^  - (\S+) \[(\S+)\]$", printed, re.MULTILINE)
        return {name: where.split(",") for name, where in found}

    def run(
        self, results: Path, *arguments: str, follow: Callable[[str], object] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the suite, and kill all its processes at the end. `follow` receives each line that it
        prints, as it prints it."""
        environment = {
            name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")
        }
        environment["NODE_COMPILE_CACHE"] = str(
            peers.PEERS / "compiled"
        )  # the suite restarts for each scenario
        limit = (
            [] if arguments[0] == "authorization" else ["--timeout", str(SCENARIO_SECONDS * 1000)]
        )  # that leg has no such option
        command = [*self.command, *arguments, *limit, "--output-dir", str(results)]
        with subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            lines = []
            ended = []

            def give_up() -> None:
                ended.append(f"the suite did not end within {SUITE_SECONDS:g} seconds")
                _end(process)

            late = threading.Timer(SUITE_SECONDS, give_up)
            late.start()
            try:
                for line in process.stdout:
                    lines.append(line)
                    if follow is not None:
                        follow(line.rstrip())
                process.wait()
            finally:
                late.cancel()
                _end(process)
        return subprocess.CompletedProcess(command, process.returncode, "".join([*lines, *ended]))


def _end(process: subprocess.Popen[str]) -> None:
    """Kill a process and all its descendants."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def expected_failures() -> dict[str, str]:
    """The scenarios that are expected to fail, each with the reason."""
    listed: dict[str, str] = yaml.safe_load(EXPECTED_FAILURES.read_text(encoding="utf-8"))
    return listed


def unknown(suite: Suite, names: Iterable[str]) -> list[str]:
    """The names that are not scenarios of the suite."""
    known = {name for side in ("server", "client", "authorization") for name in suite.listed(side)}
    return sorted(set(names) - known)


def read(results: Path, leg: str, wanted: Mapping[str, str]) -> list[Verdict]:
    """The verdicts on the requested scenarios: the suite writes a folder of results for each
    finished scenario."""
    found: dict[str, Path] = {}
    prefix = {"server": "server-", "authorization": "authorization-server-"}.get(leg, "")
    for file in results.rglob("checks.json"):
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", file.parent.relative_to(results).as_posix())
        found[name.removeprefix(prefix)] = file.parent
    return [_verdict(name, group, found.get(name)) for name, group in wanted.items()]


def _verdict(scenario: str, group: str, place: Path | None) -> Verdict:
    if place is None:
        return Verdict(scenario, group, complaint="the suite has no result of it")
    checks = json.loads((place / "checks.json").read_text(encoding="utf-8"))
    printed = place / "stderr.txt"
    return Verdict(
        scenario,
        group,
        tuple(
            Check(
                check["id"],
                check["status"],
                check.get("errorMessage") or check.get("description") or "",
            )
            for check in checks
        ),
        output=printed.read_text(encoding="utf-8", errors="replace") if printed.exists() else "",
    )


# -- the legs --------------------------------------------------------------------------------------


ServeProgram = Callable[[Path], AbstractContextManager[str]]
"""Serves a program until the block ends, with its log in a file; the block gets its URL."""


def run_leg(
    suite: Suite, name: str, revision: str, results: Path, serve: ServeProgram | None = None
) -> Leg:
    """Run one leg under one revision.

    Args:
        suite: The suite.
        name: The leg.
        revision: The revision.
        results: An empty folder for the output of the suite.
        serve: Serves the server under test of the leg "server"; ours by default.
    """
    began = time.monotonic()
    wanted = suite.scenarios(name, revision)
    leg = Leg(name, revision, expected=expected_failures())
    if name == "server":
        leg.verdicts = server_leg(suite, revision, wanted, results, serve or served)
    elif name == "authorization":
        leg.verdicts = authorization_leg(suite, revision, wanted, results)
    elif name == "client":
        leg.verdicts = client_leg(suite, revision, wanted, results)
    else:
        leg.verdicts = strict_count(suite, revision, wanted, results)
    leg.seconds = time.monotonic() - began
    return leg


def server_leg(
    suite: Suite,
    revision: str,
    wanted: Mapping[str, str],
    results: Path,
    serve: ServeProgram,
) -> list[Verdict]:
    """Run the suite as the client of a server; errors in the server's log count too.

    The suite runs a requirement set as a whole, and scenarios outside the sets one by one.
    """
    required = suite.required("server", revision)
    together = {name: group for name, group in wanted.items() if name in required}
    verdicts: list[Verdict] = []
    with serve(results / "server.log") as url:
        if together:
            done = suite.run(results, "server", "--url", url, "--requirements", revision)
            verdicts += _noted(read(results, "server", together), done)

        def run_one(scenario: str) -> Verdict:
            options = ("--scenario", scenario, "--spec-version", revision, "--force")
            place = results / "alone" / scenario
            done = suite.run(place, "server", "--url", url, *options)
            (found,) = _noted(read(place, "server", {scenario: wanted[scenario]}), done)
            return found

        with ThreadPoolExecutor(AT_ONCE) as pool:
            verdicts += pool.map(run_one, [name for name in wanted if name not in together])
    return [*verdicts, *_logged(results / "server.log")]


def authorization_leg(
    suite: Suite, revision: str, wanted: Mapping[str, str], results: Path
) -> list[Verdict]:
    """Run the suite as the client of our authorization server; `tests/interop/person.py` plays the
    user who logs in."""
    with served(
        results / "issuer.log", ISSUER, "", ["--name", NAME, "--password", PASSWORD]
    ) as url:

        def follow(line: str) -> None:
            """Visit an address that the suite prints: log in, consent, and follow the redirect
            back."""
            if line.startswith(f"{url}/"):
                urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                    walk(line), timeout=SCENARIO_SECONDS
                ).close()

        back = free_port()
        options = (
            "--client-id",
            "suite",
            "--resource",
            "https://mcp.example/mcp",
            "--port",
            str(back),
            "--spec-version",
            revision,
        )
        done = suite.run(results, "authorization", "--url", url, *options, follow=follow)
    return [*_noted(read(results, "authorization", wanted), done), *_logged(results / "issuer.log")]


def _logged(log: Path) -> list[Verdict]:
    """Return a failed verdict if the log of the server under test contains a failure."""
    text = log.read_text(encoding="utf-8", errors="replace")
    return (
        [
            Verdict(
                "(the server's log)",
                "unscored",
                complaint="the server has failed inside",
                output=text,
            )
        ]
        if "Traceback" in text
        else []
    )


def client_leg(
    suite: Suite, revision: str, wanted: Mapping[str, str], results: Path
) -> list[Verdict]:
    """Run the suite as the server of our client. It starts all scenarios at the same time."""
    done = suite.run(
        results / "all", "client", "--command", client_command(), "--requirements", revision
    )
    verdicts = _noted(read(results / "all", "client", wanted), done)
    return [_tried_again(suite, revision, verdict, results / "again") for verdict in verdicts]


def strict_count(
    suite: Suite, revision: str, wanted: Mapping[str, str], results: Path
) -> list[Verdict]:
    """Run each scenario of the client alone: then the suite also checks the client's exit status
    and warnings."""
    to_do = [Verdict(scenario, group) for scenario, group in wanted.items()]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        verdicts = list(
            pool.map(lambda verdict: alone(suite, revision, verdict, results / "first"), to_do)
        )
    return [_tried_again(suite, revision, verdict, results / "again") for verdict in verdicts]


def _tried_again(suite: Suite, revision: str, verdict: Verdict, results: Path) -> Verdict:
    """Run failed scenarios again, alone: the suite's own time limits are short when other scenarios
    run."""
    if verdict.passed or verdict.scenario in expected_failures():
        return verdict
    return replace(alone(suite, revision, verdict, results), again=True)


def alone(suite: Suite, revision: str, verdict: Verdict, results: Path) -> Verdict:
    """Run one scenario of the client alone."""
    name = verdict.scenario
    place = results / verdict.scenario
    options = ("--scenario", name, "--spec-version", revision, "--force")
    done = suite.run(place, "client", "--command", client_command(), *options)
    (found,) = read(place, "client", {name: verdict.group})
    if EXITED in done.stdout:  # some scenarios tolerate it; we do not
        return replace(
            found, complaint=f"the client failed, and the suite ended with status {done.returncode}"
        )
    return (
        replace(found, complaint=f"the suite ended with status {done.returncode}")
        if done.returncode
        else found
    )


def client_command() -> str:
    """The command of the client under test, for the suite: it appends the URL, and passes the whole
    to a shell."""
    return shlex.join([sys.executable, str(CLIENT)])


def _noted(verdicts: list[Verdict], done: subprocess.CompletedProcess[str]) -> list[Verdict]:
    """Add the last output of the suite to verdicts without a result."""
    return [
        replace(verdict, output=verdict.output or done.stdout) if verdict.complaint else verdict
        for verdict in verdicts
    ]


@contextlib.contextmanager
def served(
    log: Path, program: Path = SERVER, path: str = "/mcp", options: Sequence[str] = ()
) -> Iterator[str]:
    """Serve a program on a free port until the block ends; yield its URL. Raises BadServer."""
    port = free_port()
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [sys.executable, str(program), "--port", str(port), *options],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        ) as process,
    ):
        try:
            await_port(port, process, log)
            yield f"http://127.0.0.1:{port}{path}"
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                raise BadServer(
                    "the server under test does not end\n"
                    f"{log.read_text(encoding='utf-8', errors='replace')}"
                ) from None


def await_port(
    port: int, process: subprocess.Popen[bytes], log: Path, seconds: float = 20.0
) -> None:
    """Return once a server answers at a port. Raises BadServer after a timeout."""
    until = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise BadServer(
        f"the server under test does not answer at port {port}\n"
        f"{log.read_text(encoding='utf-8', errors='replace')}"
    )


# -- the command -----------------------------------------------------------------------------------


def table(legs: Iterable[Leg]) -> str:
    """The numbers of passed, failed and unimplemented scenarios: a row for each leg, revision and
    group."""
    rows = [HEAD, *(row for leg in legs for row in leg.rows())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def totals(suite: Suite, legs: Sequence[Leg]) -> list[str]:
    """The number of the suite's scenarios that pass in every run, a line for each side."""
    lines = []
    for side in ("server", "client", "authorization"):
        known = suite.listed(side)
        outcomes: dict[str, set[bool]] = defaultdict(set)
        for leg in legs:
            for verdict in leg.verdicts:
                if SIDES.get(leg.name, leg.name) == side and verdict.scenario in known:
                    outcomes[verdict.scenario].add(verdict.passed)
        passed = sum(all(seen) for seen in outcomes.values())
        lines.append(
            f"{side}: {passed} of {len(known)} scenarios pass, {len(outcomes) - passed} do not,"
            f" {len(known) - len(outcomes)} were not run"
        )
    return lines


def main(arguments: Sequence[str]) -> int:
    """Run the requested legs.

    Returns:
        The exit status: 0 if exactly the expected scenarios failed.
    """
    parser = argparse.ArgumentParser(description="Runs the public conformance suite on Interlock.")
    parser.add_argument(
        "--leg",
        action="append",
        choices=LEGS,
        help="which leg to run; all of them where none is named",
    )
    parser.add_argument(
        "--revision",
        action="append",
        choices=REVISIONS,
        help="under which revision; under all that the suite knows where none is named",
    )
    parser.add_argument("--results", type=Path, help="a new folder for all that the suite writes")
    given = parser.parse_args(arguments)
    legs: list[Leg] = []
    try:
        suite = Suite()
        with tempfile.TemporaryDirectory() as scratch:
            for leg in run_legs(
                suite,
                given.leg or LEGS,
                given.revision or REVISIONS,
                given.results or Path(scratch),
            ):
                words = [f"{leg.name} {leg.revision}: {leg.seconds:.0f} s", *leg.problems()]
                print("\n  ".join(words), flush=True)
                legs.append(leg)
        wrong = [
            f"{name}, in {EXPECTED_FAILURES.name}, is no scenario of the suite"
            for name in unknown(suite, expected_failures())
        ]
        print("\n".join(["", table(legs), "", *totals(suite, legs)]))
    except (peers.NotInstalled, BadServer) as bad:
        print(bad, file=sys.stderr)
        return 1
    failing = {verdict.scenario for leg in legs for verdict in leg.verdicts if not verdict.passed}
    reasons = Counter(reason for name, reason in expected_failures().items() if name in failing)
    print("\n".join([f"{count} not built: {why}" for why, count in reasons.items()] + wrong))
    return int(bool(wrong) or any(leg.problems() for leg in legs))


def run_legs(
    suite: Suite, names: Sequence[str], revisions: Sequence[str], results: Path
) -> Iterator[Leg]:
    """Run legs under revisions, one after another, and skip those without scenarios. Raises
    BadServer."""
    print(f"conformance suite {suite.version}", flush=True)
    for name in names:
        for revision in revisions:
            if suite.scenarios(name, revision):
                place = results / f"{name}-{revision}"
                place.mkdir(parents=True)
                yield run_leg(suite, name, revision, place)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
