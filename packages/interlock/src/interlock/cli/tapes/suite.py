"""Test suites in TOML: steps that call a server, with expectations, for `interlock test`.

    target = "server.py"                        # or -- COMMAND on the command line
    revisions = ["2025-11-25", "2026-07-28"]    # each test runs under each; default: the newest

    [[test]]
    name = "order"

    [[test.step]]
    call = "order"                              # or read = URI, prompt = NAME, list = "tools"
    arguments = { item = "tea" }                # or a text of JSON, which can contain null
    answers = { "How many" = { count = 2 } }    # to questions whose text contains the key
    save = { ticket = "/structuredContent/ticket" }
    [test.step.expect]
    equal = { "/content/0/text" = "Ordered ${_}" }       # `${_}` accepts any text
    matches = { "/structuredContent/ticket" = "[a-f0-9]+" }
    schema = { "/structuredContent" = { required = ["ticket"] } }
    under = 200                                 # milliseconds

    [[test.step]]
    call = "cancel"
    arguments = { ticket = "${ticket}" }
    expect.snapshot = "cancel.json"             # beside the suite; saved with --update

    [[test.step]]
    call = "cancel"
    expect.error = -32602                       # a JSON-RPC error, or "tool" for `isError`

Paths are JSON Pointers into the result in the form of the newest revision. A result with `isError`
fails a step that does not expect it.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ... import Client, InterlockError, schema
from ... import types as t
from ...tape import Blanks
from ...testing import ScriptedAnswers
from ...wire.revisions import NEWEST
from ..screen import plain


class SuiteError(ValueError):
    """A suite cannot be read."""


class Expectations(Struct, frozen=True, forbid_unknown_fields=True):
    """What the result of a step must be like; see the module."""

    equal: dict[str, Any] = {}
    matches: dict[str, str] = {}
    schema: dict[str, Any] = {}
    under: float | None = None
    error: int | Literal["tool"] | None = None
    snapshot: str = ""


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """One request. Exactly one of `call`, `read`, `prompt` and `list` is set."""

    call: str | UnsetType = UNSET
    read: str | UnsetType = UNSET
    prompt: str | UnsetType = UNSET
    list: Literal["tools", "prompts", "resources", "resource_templates"] | UnsetType = UNSET
    arguments: dict[str, Any] | str = {}
    answers: dict[str, Any] = {}
    save: dict[str, str] = {}
    expect: Expectations = Expectations()

    def __post_init__(self) -> None:
        given = [
            each for each in (self.call, self.read, self.prompt, self.list) if each is not UNSET
        ]
        if len(given) != 1:
            raise ValueError("a step has exactly one of call, read, prompt and list")
        if isinstance(self.arguments, str):
            try:
                msgspec.json.decode(self.arguments, type=dict[str, Any])
            except msgspec.DecodeError as bad:
                raise ValueError(f"the arguments are not a JSON object: {bad}") from None

    def arguments_given(self) -> dict[str, Any]:
        """The arguments; those of a JSON text are decoded."""
        if isinstance(self.arguments, str):
            return msgspec.json.decode(self.arguments, type=dict[str, Any])
        return self.arguments


class SuiteTest(Struct, frozen=True, forbid_unknown_fields=True):
    """A test: its steps share a connection and the saved values."""

    name: str
    step: tuple[Step, ...]


class Suite(Struct, frozen=True, forbid_unknown_fields=True):
    """A suite of tests of one server."""

    test: tuple[SuiteTest, ...]
    target: str = ""
    revisions: tuple[str, ...] = (NEWEST,)

    @classmethod
    def load(cls, path: Path) -> Suite:
        """Read a suite. Raises SuiteError for an invalid one, and OSError."""
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
            return msgspec.convert(data, cls)
        except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as bad:
            raise SuiteError(f"{path}: {bad}") from None


class Outcome(Struct, frozen=True):
    """How one test ended.

    Attributes:
        name: The test and its revision, or the connection of a tape.
        problems: What is not as expected, one line each; empty if the test passed.
        seconds: The duration.
    """

    name: str
    problems: tuple[str, ...]
    seconds: float


async def run_suite(
    suite: Suite,
    connect: Callable[[str, ScriptedAnswers], Client],
    *,
    folder: Path,
    update: bool = False,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Run all tests of a suite, each over a connection of its own.

    Args:
        suite: The suite.
        connect: Makes a client with a revision and answers.
        folder: The folder of the snapshots.
        update: Whether snapshots are saved instead of compared.
        on_outcome: Called after each test.
    """
    outcomes = []
    for test in suite.test:
        for revision in suite.revisions:
            began = time.perf_counter()
            run = _Run(folder, update)
            answers = ScriptedAnswers(elicit=run.answers)
            try:
                async with connect(revision, answers) as client:
                    await run.test(test, client)
            except InterlockError as bad:
                run.problems.append(str(bad))
            outcome = Outcome(
                f"{test.name} ({revision})", tuple(run.problems), time.perf_counter() - began
            )
            outcomes.append(outcome)
            on_outcome(outcome)
    return outcomes


class _Run:
    """The state of one test: its variables and problems."""

    def __init__(self, folder: Path, update: bool) -> None:
        self.problems: list[str] = []
        self.answers: dict[str, Any] = {}
        self._folder = folder
        self._update = update
        self._blanks = Blanks()

    async def test(self, test: SuiteTest, client: Client) -> None:
        for number, step in enumerate(test.step, 1):
            self.answers.clear()
            self.answers.update(step.answers)
            found = [f"step {number}: {words}" for words in await self._step(step, client)]
            self.problems += found
            if found:
                return  # later steps depend on it

    async def _step(self, step: Step, client: Client) -> list[str]:
        expect = step.expect
        try:
            arguments = self._blanks.fill(step.arguments_given())
        except ValueError as bad:
            return [str(bad)]
        began = time.perf_counter()
        try:
            result = _plain(await _send(step, arguments, client))
        except t.McpError as bad:
            if expect.error == bad.code:
                return []
            return [f"the server answered with the error {bad.code}: {bad.message}"]
        ms = (time.perf_counter() - began) * 1000
        failed = isinstance(result, dict) and result.get("isError") is True
        if expect.error is not None and not (expect.error == "tool" and failed):
            return [f"expected the error {expect.error}, got a result"]
        if failed and expect.error is None:
            return [f"the tool failed: {msgspec.json.encode(result.get('content')).decode()}"]
        problems = list(self._differences(expect, result))
        if expect.under is not None and ms > expect.under:
            problems.append(f"it took {ms:.0f} ms; expected at most {expect.under:g} ms")
        for name, path in step.save.items():
            try:
                self._blanks.values[name] = at_pointer(result, path)
            except LookupError:
                problems.append(f"{path}: nothing to save as {name}")
        return problems

    def _differences(self, expect: Expectations, result: Any) -> list[str]:
        checks: list[tuple[str, Callable[[Any], Iterable[str]]]] = [
            *(
                (path, partial(self._blanks.differences, each))
                for path, each in expect.equal.items()
            ),
            *((path, partial(_mismatch, each)) for path, each in expect.matches.items()),
            *((path, partial(_violations, each)) for path, each in expect.schema.items()),
        ]
        problems: list[str] = []
        for path, check in checks:
            try:
                value = at_pointer(result, path)
            except LookupError:
                problems.append(f"{path}: expected a value, got nothing")
                continue
            problems += [f"{path}{words}".replace("/: ", ": ", 1) for words in check(value)]
        if expect.snapshot:
            problems += self._compare_snapshot(self._folder / expect.snapshot, result)
        return problems

    def _compare_snapshot(self, path: Path, result: Any) -> list[str]:
        if self._update:
            path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
            return []
        try:
            saved = msgspec.json.decode(path.read_bytes())
        except OSError:
            return [f"there is no snapshot {path}: save it with --update"]
        return [f"{path.name}{words}" for words in self._blanks.differences(saved, result)]


async def _send(step: Step, arguments: dict[str, Any], client: Client) -> Any:
    if step.call is not UNSET:
        return await client.call_tool(step.call, arguments)
    if step.read is not UNSET:
        return await client.read_resource(step.read)
    if step.prompt is not UNSET:
        return await client.get_prompt(step.prompt, arguments)
    return await getattr(client, f"list_{step.list}")()


def _mismatch(pattern: str, value: Any) -> list[str]:
    if isinstance(value, str) and re.search(pattern, value):
        return []
    return [f": expected a text that matches {pattern!r}, got {value!r}"]


def _violations(wanted: Any, value: Any) -> list[str]:
    return [f"{each.path}: {each.message}" for each in schema.compile(wanted).check(value)]


def _plain(result: Any) -> Any:
    return [plain(each) for each in result] if isinstance(result, list) else plain(result)


def at_pointer(value: Any, path: str) -> Any:
    """The value at a JSON Pointer (RFC 6901). Raises LookupError if there is none."""
    for part in path.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = value[name]
        elif isinstance(value, list) and name.isdecimal():
            value = value[int(name)]
        else:
            raise LookupError(path)
    return value
