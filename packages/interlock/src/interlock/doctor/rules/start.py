"""Rules about a started server: whether it runs, and what it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ..diagnostics import RuleFinding, rule
from ..facts import StartFacts

_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_IS_MISSING = re.compile(
    r"KeyError|not set|not defined|undefined|missing|required|must (?:be )?(?:set|provide)"
    r"|environment variable|provide",
    re.IGNORECASE,
)
_MODULE = re.compile(
    r"No module named '?(?P<python>[\w.]+)|Cannot find (?:module|package) '(?P<node>[^']+)'"
)
_LAST = 5  # lines of stderr that are quoted
_QUOTED = 3  # lines of stdout that are quoted


@rule(
    "variable-missing",
    "error",
    "The server ends because a variable is not set",
    advice="Set it: with --env NAME, or under `env` in the configuration.",
    stops=True,
)
def variable_missing(facts: StartFacts) -> Iterator[RuleFinding]:
    """The last lines of the server name a variable that it did not get."""
    for name in _missing_variables(facts):
        withheld = " It is set here, but servers do not get your variables."
        yield RuleFinding(
            f"the server needs {name}.{withheld if name in facts.withheld else ''}", name
        )


@rule(
    "module-missing",
    "error",
    "The server ends because a module is not installed",
    advice="Install it for the interpreter that the command starts, or name that of the project.",
    stops=True,
)
def module_missing(facts: StartFacts) -> Iterator[RuleFinding]:
    """Python or Node cannot import a module."""
    name = _missing_module(facts)
    if name:
        yield RuleFinding(f"the module {name} is not installed", name)


@rule(
    "server-ends",
    "error",
    "The server ends before it answers",
    advice="Run the command in a terminal. A server waits for messages until its stdin is closed.",
    stops=True,
)
def server_ends(facts: StartFacts) -> Iterator[RuleFinding]:
    """The process ended, for any other reason."""
    ended = facts.exit_code is not None and not facts.opened
    if not ended or _missing_module(facts) or _missing_variables(facts):
        return
    last = "\n".join(line for line in facts.stderr.splitlines() if line.strip())
    lines = last.splitlines()[-_LAST:]
    words = f"it ended with exit code {facts.exit_code}"
    yield RuleFinding(
        "\n".join([f"{words}, and printed:", *lines]) if lines else f"{words}, in silence"
    )


@rule(
    "stdout-noise",
    "error",
    "The server prints something other than messages to stdout",
    advice="Print to stderr: stdout belongs to the protocol, and many clients end at such a line.",
)
def stdout_noise(facts: StartFacts) -> Iterator[RuleFinding]:
    """Lines that are not JSON-RPC (`STD-02`)."""
    if facts.noise:
        quoted = [repr(line[:120]) for line in facts.noise[:_QUOTED]]
        more = len(facts.noise) - len(quoted)
        yield RuleFinding(", ".join(quoted) + (f" and {more} more" if more else ""), "stdout")


@rule(
    "probe-ends-server",
    "warning",
    "The server breaks when it gets server/discover",
    advice="Update its SDK, or set its revision in the configuration of the client.",
)
def probe_ends_server(facts: StartFacts) -> Iterator[RuleFinding]:
    """It had to be started a second time, with the handshake first."""
    if facts.probe_failed:
        yield RuleFinding(
            "a request before the handshake ends the server, so a client that asks for the newest "
            "revision has to start it twice"
        )


@rule(
    "stays-running",
    "warning",
    "The server does not end when its stdin is closed",
    advice="End at the end of stdin. Hosts that are killed leave such servers running for ever.",
)
def stays_running(facts: StartFacts) -> Iterator[RuleFinding]:
    """It had to be terminated (`STD-09`)."""
    if facts.ended_after is not None and facts.ended_after >= facts.exit_seconds:
        yield RuleFinding(f"it was still running {facts.exit_seconds:g} s later", "stdin")


def _missing_variables(facts: StartFacts) -> list[str]:
    if facts.exit_code is None or facts.opened:
        return []
    found: dict[str, None] = {}
    for line in facts.stderr.splitlines():
        for name in _VARIABLE.findall(line):
            if name not in facts.given and (name in facts.withheld or _IS_MISSING.search(line)):
                found[name] = None
    return list(found)


def _missing_module(facts: StartFacts) -> str:
    if facts.exit_code is None or facts.opened:
        return ""
    found = _MODULE.search(facts.stderr)
    return "" if found is None else found["python"] or found["node"]


RULES: Final = (
    variable_missing,
    module_missing,
    server_ends,
    stdout_noise,
    probe_ends_server,
    stays_running,
)
