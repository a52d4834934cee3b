"""Each rule of the doctor finds its seeded fault, and servers without a fault raise nothing."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from interlock import Client, Context, Image, Server, ToolAnnotations
from interlock.doctor import (
    PARTS,
    RULES,
    DiagnosticReport,
    ExamineOptions,
    examine,
    examine_catalogue,
)
from tests.doctor.faults import FAULTS, QUICK, Fault, Workshop, options_with
from tests.doctor.faulty import SOUND, SOUND_STATELESS, TOOL, command_of, offering


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    """Where the faults of a test are made."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with ExitStack() as stack:
        yield Workshop(tmp_path, monkeypatch, stack)


def raised(report: DiagnosticReport) -> set[str]:
    """The rules that found something, but for notes."""
    return {found.rule for found in report.diagnostics if found.severity != "note"}


def words_of(report: DiagnosticReport) -> str:
    """The whole report, for the message of a failed test."""
    return msgspec.json.format(msgspec.json.encode(report)).decode()


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.rule for fault in FAULTS])
async def test_each_seeded_fault_is_named(fault: Fault, workshop: Workshop) -> None:
    """Its rule finds it, and no other rule raises an error or a warning."""
    report = await fault.seed(workshop)
    found = [found for found in report.diagnostics if found.rule == fault.rule]
    assert found, words_of(report)
    assert all(one.words and one.advice for one in found)
    assert raised(report) - {fault.rule} == fault.also, words_of(report)


def test_each_rule_has_one_seeded_fault() -> None:
    """The table of rules and the table of faults are equal, and no id is used twice."""
    assert Counter(fault.rule for fault in FAULTS) == Counter(RULES.keys())
    assert len(RULES) == sum(len(rules) for rules in PARTS.values())
    assert len(FAULTS) >= 40


def test_each_rule_says_what_to_do() -> None:
    """Titles are phrases, advice is sentences, and ids are lower case with hyphens."""
    for rule in RULES.values():
        assert rule.title[0].isupper(), rule.id
        assert not rule.title.endswith("."), rule.id
        assert rule.advice.endswith("."), rule.id
        assert rule.id.replace("-", "").isalpha()
        assert rule.id.islower()


# -- servers without a fault -----------------------------------------------------------------------

ALL = offering(
    TOOL,
    resources=[{"uri": "note://one", "name": "one", "mimeType": "text/plain; charset=utf-8"}],
    templates=[{"uriTemplate": "note://{name}", "name": "notes"}],
    prompts=[{"name": "greet", "description": "Greet.", "arguments": [{"name": "who"}]}],
)


@pytest.mark.parametrize(
    "plan", [SOUND, SOUND_STATELESS, ALL], ids=["handshake", "stateless", "all lists"]
)
async def test_a_server_over_stdio_without_a_fault(
    plan: dict[str, object], workshop: Workshop
) -> None:
    """Not even a note."""
    report = await workshop.stdio(plan)
    assert not report.diagnostics, words_of(report)
    assert [part.part for part in report.parts] == ["command", "start", "connection", "catalogue"]
    assert not any(part.skipped for part in report.parts)


async def test_a_site_without_a_fault(workshop: Workshop) -> None:
    """Not even a note; the session that was started is ended."""
    report = await examine(workshop.site().url, options_with({"keep_alive_seconds": 0.1}))
    assert not report.diagnostics, words_of(report)
    assert [part.part for part in report.parts] == ["network", "http", "connection", "catalogue"]


def everyday() -> Server:
    """A server of ours with a little of everything."""
    server = Server("everyday", "1.0", instructions="Use it every day.")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def add(first: int, second: int = 2) -> int:
        """Add two numbers.

        Args:
            first: One number.
            second: The other number.
        """
        return first + second

    @server.tool(annotations=ToolAnnotations(destructive_hint=False))
    async def ask(ctx: Context) -> str:
        """Ask the user for a yes."""
        return "yes" if await ctx.confirm("Really?") else "no"

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def picture() -> Image:
        """Return a picture."""
        return Image(data=b"\x89PNG\r\n", format="png")

    @server.resource("note://{name}")
    def note(name: str) -> str:
        """A note."""
        return name

    @server.prompt
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Greet {name}."

    return server


async def test_a_server_of_ours_over_http(workshop: Workshop) -> None:
    """Both eras: sessions, the GET stream, the checks of Host and Origin."""
    async with everyday().serve_http(port=0) as http:
        report = await examine(http.url, options_with({"keep_alive_seconds": 0.2}))
    assert not report.diagnostics, words_of(report)


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
async def test_a_server_of_ours_in_this_process(revision: str) -> None:
    """What lint checks, under revisions of both eras."""
    async with Client(everyday(), revision=revision) as client:
        report = await examine_catalogue(client)
    assert not raised(report), words_of(report)
    assert report.target == "everyday 1.0"


# -- what an examination does ----------------------------------------------------------------------


async def test_a_part_that_fails_stops_what_depends_on_it(workshop: Workshop) -> None:
    """The report says which parts were not checked, and why."""
    report = await examine(["no-such-program-anywhere"], QUICK)
    assert [(part.part, bool(part.skipped)) for part in report.parts] == [
        ("command", False),
        ("start", True),
        ("connection", True),
        ("catalogue", True),
    ]


async def test_other_paths_of_the_host_are_tried(workshop: Workshop) -> None:
    """For a wrong path, the advice is the URL at which there is an endpoint."""
    site = workshop.site()
    report = await examine(f"{site.root}/wrong", QUICK)
    (found,) = report.errors
    assert found.advice == f"The server answers at {site.url}: use that URL."


WITHOUT_HTTP = """
import asyncio, sys
sys.modules["httptools"] = None
from interlock.doctor import examine
for target in (sys.argv[1:], "http://127.0.0.1:9/mcp"):
    report = asyncio.run(examine(target))
    print(sum(bool(part.skipped) for part in report.parts), report.parts[-1].skipped)
"""


def test_a_command_is_examined_without_the_extra_for_http(tmp_path: Path) -> None:
    """And a URL is not, with the words that name the extra."""
    command = [sys.executable, "-c", WITHOUT_HTTP, *command_of(tmp_path, SOUND)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    first, second = done.stdout.splitlines()
    assert first.strip() == "0", done.stderr
    assert second.startswith("4 ")
    assert "pip install 'interlock[http]'" in second


@pytest.mark.parametrize("stream, rule", [("silent", "keep-alive"), ("cut", "stream-cut")])
async def test_the_stream_of_a_subscription_is_watched(
    stream: str, rule: str, workshop: Workshop
) -> None:
    """A server of the newest revision alone has no GET stream."""
    site = workshop.site()
    site.plan = SOUND_STATELESS
    site.stream = stream
    watch = {"keep_alive_seconds": 0.3, "idle_seconds": 0.2}
    report = await examine(site.url, options_with(watch))
    assert raised(report) == {rule}, words_of(report)


async def test_secrets_are_not_reported(workshop: Workshop) -> None:
    """Values of variables and headers, and keys by their shape, also in what a server prints."""
    key = "sk-" + "a1b2c3d4" * 4
    program = (
        "import os, sys\n"
        f"sys.exit(' '.join(['I tried', os.environ['A_TOKEN'], os.environ['B_TOKEN'], {key!r}]))\n"
    )
    workshop.patch.setenv("B_TOKEN", "staple-of-the-shop")
    env = {"A_TOKEN": "correct-horse-battery"}
    report = await workshop.script(program, env=env, inherit_env=True)
    text = words_of(report)
    assert "I tried" in text
    for secret in ("correct-horse-battery", "staple-of-the-shop", key):
        assert secret not in text


async def test_nothing_is_started_if_the_options_say_so(workshop: Workshop) -> None:
    """Neither a command nor a request."""
    mark = workshop.folder / "started"
    report = await workshop.script(f"open({str(mark)!r}, 'w')\n", start=False)
    assert not mark.exists()
    assert [part.part for part in report.parts if part.skipped] == [
        "start",
        "connection",
        "catalogue",
    ]
    url = f"http://{'a' * 70}.example/mcp"
    assert not (await examine(url, ExamineOptions(start=False))).diagnostics


@pytest.mark.parametrize("target", ["server.py", "ftp://far.example/mcp", ""])
async def test_a_target_of_another_kind_is_an_error(target: str) -> None:
    """A text is a URL; a command is a list."""
    with pytest.raises(ValueError, match="is not a target"):
        await examine(target)


async def test_parts_are_reported_as_they_are_checked(workshop: Workshop) -> None:
    """For a page or a terminal that shows them."""
    seen: list[str] = []
    report = await examine(
        ["no-such-program-anywhere"],
        QUICK,
        on_part=lambda part: seen.append(part.part),
        on_report=lambda begun: seen.append(begun.target),
    )
    assert seen == [report.target, *(part.part for part in report.parts)]
