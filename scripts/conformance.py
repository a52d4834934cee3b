"""Runs the public conformance suite on Interlock, and says what passed.

    python -m scripts.conformance                        # everything, as `make conformance` does
    python -m scripts.conformance --leg server --revision 2026-07-28 --results DIR

The suite is an npm package, pinned in `tests/interop/conformance`. Under test are ordinary programs of `tests/interop`:
`everything.py --port N`, `conformance_client.py URL` and `issuer.py --port N`. There is no list of failures that are expected.
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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from scripts import peers
from tests.interop.person import NAME, PASSWORD, walk
from tests.ports import free_port

REVISIONS = ("2025-11-25", "2026-07-28")
LEGS = ("server", "client", "strict", "authorization")
SERVER = peers.INTEROP / "everything.py"
CLIENT = peers.INTEROP / "conformance_client.py"
ISSUER = peers.INTEROP / "issuer.py"
LOOPBACK = peers.INTEROP / "conformance" / "loopback.cjs"

AT_ONCE = 2
"""How many scenarios of the strict count run at the same time."""
SCENARIO_SECONDS = 60
SUITE_SECONDS = 110
BUILT_LATER = {"tasks-": "the tasks extension is not built yet"}
"""What is left out, by how the names of scenarios begin; they run all the same, since the suite has no way to leave them out."""
OLDER = {
    "auth/2025-03-26-oauth-metadata-backcompat": "2025-03-26",
    "auth/2025-03-26-oauth-endpoint-fallback": "2025-03-26",
}
"""Scenarios of a revision that has no set of its own; the strict count of the older one of the two revisions takes them along."""
EXITED = "Client exited with code"
SCHEMA = (
    "wire-schema-valid"  # a check that every scenario has: it passes where nothing was said at all
)


@dataclass(frozen=True)
class Check:
    """One thing that a scenario looked at."""

    id: str
    status: str
    words: str

    @property
    def bad(self) -> bool:
        """Whether it counts against us: warnings do here, though not for the suite."""
        return self.status in ("FAILURE", "WARNING")


@dataclass(frozen=True)
class Verdict:
    """What came of one scenario."""

    scenario: str
    scored: bool
    checks: tuple[Check, ...] = ()
    complaint: str = ""  # what is wrong besides the checks
    output: str = ""  # what the client under test printed to stderr
    again: bool = False  # whether it passed, or failed, at a second try, alone

    @property
    def passed(self) -> bool:
        """No check was bad, one of the scenario's own was good, and there was nothing to complain about."""
        good = any(check.status == "SUCCESS" and check.id != SCHEMA for check in self.checks)
        return good and not self.complaint and not any(check.bad for check in self.checks)

    def why(self) -> str:
        """In which way it failed, in a few lines."""
        lines = [
            f"{self.scenario}{'' if self.scored else ' (not scored)'}: {self.complaint or 'failed'}"
        ]
        lines += [
            f"    {check.status} {check.id}: {check.words}" for check in self.checks if check.bad
        ]
        if len(lines) == 1 and not self.complaint:
            lines.append("    none of its own checks passed")
        return "\n".join([*lines, *(f"    | {line}" for line in self.output.splitlines()[-15:])])


@dataclass
class Leg:
    """The outcome of one leg under one revision."""

    name: str
    revision: str
    verdicts: list[Verdict] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failures(self) -> list[Verdict]:
        """What should have passed and did not."""
        return [verdict for verdict in self.verdicts if not verdict.passed]

    def row(self) -> tuple[str, ...]:
        """Its row of the table."""
        cells = []
        for scored in (True, False):
            of = [verdict for verdict in self.verdicts if verdict.scored is scored]
            cells.append(f"{sum(verdict.passed for verdict in of)}/{len(of)}" if of else "-")
        checks = Counter(check.status for verdict in self.verdicts for check in verdict.checks)
        again = sum(verdict.again for verdict in self.verdicts)
        done = (
            f"{checks['SUCCESS']}",
            f"{checks['SKIPPED']}",
            f"{again}",
            f"{len(self.left_out)}",
            f"{self.seconds:.0f} s",
        )
        return (self.name, self.revision, *cells, *done)


HEAD = (
    "leg",
    "revision",
    "scored",
    "unscored",
    "checks",
    "skipped",
    "run again",
    "left out",
    "time",
)


# -- what the suite asks for -----------------------------------------------------------------------------------------


class BadServer(Exception):
    """The server under test did not come up, or did not end when it was told to; with the words of its log."""


class Suite:
    """The installed suite. Making one installs it. Raises `peers.NotInstalled`."""

    def __init__(self) -> None:
        self.package = (
            peers.INSTALLERS["conformance"]()
            / "node_modules"
            / "@modelcontextprotocol"
            / "conformance"
        )
        node = str(peers.node(peers.OLDEST_NODE_OF_THE_SUITE))
        self.command = [node, "--require", str(LOOPBACK), str(self.package / "dist" / "index.js")]

    @property
    def version(self) -> str:
        """The version of the package."""
        version: str = json.loads((self.package / "package.json").read_text(encoding="utf-8"))[
            "version"
        ]
        return version

    def scenarios(self, leg: str, revision: str) -> dict[str, bool]:
        """The scenarios that a revision asks of a leg, each with whether it is scored."""
        wanted = yaml.safe_load(
            (self.package / "requirements" / f"{revision}.yaml").read_text(encoding="utf-8")
        )
        extra = [entry["scenario"] for entry in wanted["not_scored"] if entry["leg"] == leg]
        return {name: True for name in wanted[leg]} | {name: False for name in extra}

    def listed(self, revision: str) -> dict[str, bool]:
        """The scenarios for an authorization server, none of which is scored: no revision asks for one (`requirements/*.yaml`)."""
        command = [*self.command, "list", "--authorization", "--spec-version", revision]
        printed = subprocess.run(
            command, capture_output=True, text=True, timeout=SCENARIO_SECONDS, check=True
        ).stdout
        return dict.fromkeys(re.findall(r"^  - (\S+)", printed, re.MULTILINE), False)

    def run(
        self, results: Path, *arguments: str, follow: Callable[[str], object] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the suite; whatever it has started ends with it. `follow` is given each line that it prints, as it prints it."""
        environment = {
            name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")
        }
        environment["NODE_COMPILE_CACHE"] = str(
            peers.PEERS / "compiled"
        )  # the suite starts anew for each scenario
        limit = (
            [] if arguments[0] == "authorization" else ["--timeout", str(SCENARIO_SECONDS * 1000)]
        )  # that leg has no such option
        command = [*self.command, *arguments, *limit, "--output-dir", str(results)]
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            lines, ended = [], []

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
    """End a process and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def left_out(scenario: str) -> bool:
    """Whether a scenario is about what is built later."""
    return scenario.startswith(tuple(BUILT_LATER))


def read(results: Path, leg: str, wanted: dict[str, bool]) -> list[Verdict]:
    """The verdicts on the scenarios that were to run: the suite leaves a folder of results for each that came to its end."""
    found: dict[str, Path] = {}
    prefix = {"server": "server-", "authorization": "authorization-server-"}.get(leg, "")
    for file in results.rglob("checks.json"):
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", file.parent.relative_to(results).as_posix())
        found[name.removeprefix(prefix)] = file.parent
    return [_verdict(name, scored, found.get(name)) for name, scored in wanted.items()]


def _verdict(scenario: str, scored: bool, place: Path | None) -> Verdict:
    if place is None:
        return Verdict(scenario, scored, complaint="the suite has no result of it")
    checks = json.loads((place / "checks.json").read_text(encoding="utf-8"))
    printed = place / "stderr.txt"
    return Verdict(
        scenario,
        scored,
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


# -- the legs --------------------------------------------------------------------------------------------------------


def run_leg(suite: Suite, name: str, revision: str, results: Path) -> Leg:
    """Run one leg under one revision; `results` is an empty folder that takes what the suite writes."""
    began = time.monotonic()
    scenarios = (
        suite.listed(revision)
        if name == "authorization"
        else suite.scenarios("server" if name == "server" else "client", revision)
    )
    leg = Leg(name, revision, left_out=[scenario for scenario in scenarios if left_out(scenario)])
    wanted = {scenario: scored for scenario, scored in scenarios.items() if not left_out(scenario)}
    if name == "server":
        leg.verdicts = server_leg(suite, revision, wanted, results)
    elif name == "authorization":
        leg.verdicts = authorization_leg(suite, revision, wanted, results)
    elif name == "client":
        leg.verdicts = client_leg(suite, revision, wanted, results)
    else:
        older = dict.fromkeys(OLDER, False) if revision == REVISIONS[0] else {}
        leg.verdicts = strict_count(suite, revision, wanted | older, results)
    leg.seconds = time.monotonic() - began
    return leg


def server_leg(
    suite: Suite, revision: str, wanted: dict[str, bool], results: Path
) -> list[Verdict]:
    """Let the suite be the client of our server; what the server's log complains about counts too."""
    with served(results / "server.log") as url:
        done = suite.run(results, "server", "--url", url, "--requirements", revision)
    return [*_noted(read(results, "server", wanted), done), *_logged(results / "server.log")]


def authorization_leg(
    suite: Suite, revision: str, wanted: dict[str, bool], results: Path
) -> list[Verdict]:
    """Let the suite be the client of our authorization server; the person whom it sends there is `tests/interop/person.py`."""
    with served(
        results / "issuer.log", ISSUER, "", ["--name", NAME, "--password", PASSWORD]
    ) as url:

        def follow(line: str) -> None:
            """Where the suite prints an address to visit: visit it, log in, agree, and go back to where one is sent."""
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
    """A bad verdict where the log of the server under test has a failure in it."""
    text = log.read_text(encoding="utf-8", errors="replace")
    return (
        [
            Verdict(
                "(the server's log)", False, complaint="the server has failed inside", output=text
            )
        ]
        if "Traceback" in text
        else []
    )


def client_leg(
    suite: Suite, revision: str, wanted: dict[str, bool], results: Path
) -> list[Verdict]:
    """Let the suite be the server of our client. It starts all scenarios at the same time, so what fails is run again, alone."""
    done = suite.run(
        results / "all", "client", "--command", client_command(), "--requirements", revision
    )
    verdicts = _noted(read(results / "all", "client", wanted), done)
    return [
        verdict
        if verdict.passed
        else replace(alone(suite, revision, verdict, results / "again"), again=True)
        for verdict in verdicts
    ]


def strict_count(
    suite: Suite, revision: str, wanted: dict[str, bool], results: Path
) -> list[Verdict]:
    """Run each scenario of the client by itself, where the suite judges the client's exit status and warnings too."""
    to_do = [Verdict(scenario, scored) for scenario, scored in wanted.items()]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        verdicts = list(
            pool.map(lambda verdict: alone(suite, revision, verdict, results / "first"), to_do)
        )
    return [
        verdict
        if verdict.passed
        else replace(alone(suite, revision, verdict, results / "again"), again=True)
        for verdict in verdicts
    ]


def alone(suite: Suite, revision: str, verdict: Verdict, results: Path) -> Verdict:
    """Run one scenario of the client by itself."""
    name, place = verdict.scenario, results / verdict.scenario
    options = ("--scenario", name, "--spec-version", OLDER.get(name, revision), "--force")
    done = suite.run(place, "client", "--command", client_command(), *options)
    (found,) = read(place, "client", {name: verdict.scored})
    if EXITED in done.stdout:  # some scenarios forgive it; we do not
        return replace(
            found, complaint=f"the client failed, and the suite ended with status {done.returncode}"
        )
    return (
        replace(found, complaint=f"the suite ended with status {done.returncode}")
        if done.returncode
        else found
    )


def client_command() -> str:
    """The client under test, as the suite takes it: it puts the URL behind, and gives the whole to a shell."""
    return shlex.join([sys.executable, str(CLIENT)])


def _noted(verdicts: list[Verdict], done: subprocess.CompletedProcess[str]) -> list[Verdict]:
    """With the last words of the suite for those that it has no result of."""
    return [
        replace(verdict, output=verdict.output or done.stdout) if verdict.complaint else verdict
        for verdict in verdicts
    ]


@contextlib.contextmanager
def served(
    log: Path, program: Path = SERVER, path: str = "/mcp", options: Sequence[str] = ()
) -> Iterator[str]:
    """Serve a program on a free port for as long as the block lasts; give its URL. Raises BadServer."""
    port = free_port()
    with log.open("wb") as out, subprocess.Popen(
        [sys.executable, str(program), "--port", str(port), *options], stdin=subprocess.DEVNULL, stdout=out, stderr=out
    ) as process:  # fmt: skip
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
                    f"the server under test does not end\n{log.read_text(encoding='utf-8', errors='replace')}"
                ) from None


def await_port(
    port: int, process: subprocess.Popen[bytes], log: Path, seconds: float = 20.0
) -> None:
    """Return once somebody answers at a port. Raises BadServer where nobody does in time."""
    until = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise BadServer(
        f"the server under test does not answer at port {port}\n{log.read_text(encoding='utf-8', errors='replace')}"
    )


# -- the command -----------------------------------------------------------------------------------------------------


def table(legs: Iterable[Leg]) -> str:
    """What passed, a row for each leg and revision."""
    rows = [HEAD, *(leg.row() for leg in legs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; return 0 where all of it passed."""
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
        help="under which revision; under both where none is named",
    )
    parser.add_argument("--results", type=Path, help="a new folder for all that the suite writes")
    told = parser.parse_args(arguments)
    legs: list[Leg] = []
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for leg in run_legs(
                told.leg or LEGS, told.revision or REVISIONS, told.results or Path(scratch)
            ):
                print(
                    "\n".join(
                        [
                            f"{leg.name} {leg.revision}",
                            *(f"  {verdict.why()}" for verdict in leg.failures),
                        ]
                    ),
                    flush=True,
                )
                legs.append(leg)
    except (peers.NotInstalled, BadServer) as bad:
        print(bad, file=sys.stderr)
        return 1
    print(f"\n{table(legs)}")
    for beginning, reason in BUILT_LATER.items():
        if count := len(
            {name for leg in legs for name in leg.left_out if name.startswith(beginning)}
        ):
            print(f"left out: {count} scenarios {beginning}...: {reason}")
    return int(any(leg.failures for leg in legs))


def run_legs(names: Sequence[str], revisions: Sequence[str], results: Path) -> Iterator[Leg]:
    """Run legs under revisions, one after another. Raises `peers.NotInstalled` and BadServer."""
    suite = Suite()
    print(f"conformance suite {suite.version}", flush=True)
    for name in names:
        for revision in revisions:
            place = results / f"{name}-{revision}"
            place.mkdir(parents=True)
            yield run_leg(suite, name, revision, place)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
