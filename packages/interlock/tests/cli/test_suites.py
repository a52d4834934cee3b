"""`interlock test`: suites in TOML and tapes, with JUnit."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Command, Program
from tests.cli.sites import Site

SERVER = """
from interlock import Context, Server, ToolError
server = Server("shop", "1")
@server.tool
async def order(item: str, ctx: Context) -> dict[str, str]:
    count = await ctx.elicit("How many?", int)
    return {"ticket": f"{item}-{count}"}
@server.tool
def cancel(ticket: str) -> str:
    if ticket != "tea-2":
        raise ToolError("no such ticket")
    return f"Cancelled {ticket}"
@server.resource("shop://open")
def is_open() -> str:
    return "yes"
"""
SUITE = """
target = "shop.py"
revisions = ["2025-11-25", "2026-07-28"]

[[test]]
name = "order and cancel"

[[test.step]]
call = "order"
arguments = { item = "tea" }
answers = { "How many" = { value = 2 } }
save = { ticket = "/structuredContent/ticket" }
[test.step.expect]
equal = { "/structuredContent" = { ticket = "tea-${_}" } }
matches = { "/structuredContent/ticket" = "^tea" }
schema = { "/structuredContent" = { type = "object", required = ["ticket"] } }
under = 60000

[[test.step]]
call = "cancel"
arguments = { ticket = "${ticket}" }
expect.snapshot = "cancel.json"

[[test]]
name = "failures"

[[test.step]]
call = "cancel"
arguments = { ticket = "x" }
expect.error = "tool"

[[test.step]]
call = "nowhere"
expect.error = -32602

[[test.step]]
read = "shop://open"
expect.equal = { "/contents/0/text" = "yes" }
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SERVER, encoding="utf-8")
    path = tmp_path / "suite.toml"
    path.write_text(SUITE, encoding="utf-8")
    return path


def test_a_suite_passes_in_both_eras(interlock: Command, suite: Path) -> None:
    """Variables, answers, snapshots, errors; JUnit has a case for each test and revision."""
    unsaved = interlock("test", suite)
    assert unsaved.exit_code == 3
    assert "save it with --update" in unsaved.stdout
    assert interlock("test", suite, "--update").exit_code == 0
    report = suite.with_name("report.xml")
    passed = interlock("test", suite, "--junit", report)
    assert (passed.exit_code, passed.stdout.splitlines()[-1]) == (0, "4 passed, 0 failed.")
    root = ElementTree.parse(report).getroot()
    assert root.attrib.items() >= {"tests": "4", "failures": "0"}.items()
    assert [case.attrib["name"] for case in root] == [
        f"{name} ({revision})"
        for name in ("order and cancel", "failures")
        for revision in ("2025-11-25", "2026-07-28")
    ]


@pytest.mark.parametrize(
    "before, after, words",
    [
        ('"tea-${_}"', '"milk"', '/structuredContent/ticket: expected "milk", got "tea-2"'),
        ('"^tea"', '"^milk"', "expected a text that matches '^milk', got 'tea-2'"),
        ('required = ["ticket"]', 'required = ["price"]', "price"),
        ("under = 60000", "under = 0", "expected at most 0 ms"),
        ('"/structuredContent/ticket" }', '"/none" }', "nothing to save as ticket"),
        ("-32602", "-32000", "the server answered with the error -32602"),
        ('"yes"', '"no"', '/contents/0/text: expected "no", got "yes"'),
        ('error = "tool"', "under = 60000", "the tool failed"),
        ("How many", "Why", "no answer"),
    ],
)
def test_what_is_not_as_expected_is_named(
    interlock: Command, suite: Path, before: str, after: str, words: str
) -> None:
    text = SUITE.replace('expect.snapshot = "cancel.json"', "").replace(before, after, 1)
    suite.write_text(text.replace('["2025-11-25", ', "["), encoding="utf-8")
    failed = interlock("test", suite)
    assert failed.exit_code == 3
    assert words in failed.stdout


@pytest.mark.parametrize(
    "text, words",
    [
        ("[[test]", "suite.toml"),
        ("[[test]]\nname = 'x'\n[[test.step]]\n", "exactly one of call, read, prompt and list"),
        ("[[test]]\nname = 'x'\n[[test.step]]\ncal = 'x'\n", "cal"),
        ("[[test]]\nname = 'x'\n[[test.step]]\ncall = 'x'\n", "names no target"),
    ],
)
def test_an_invalid_suite_is_a_usage_error(
    interlock: Command, suite: Path, text: str, words: str
) -> None:
    suite.write_text(text, encoding="utf-8")
    refused = interlock("test", suite)
    assert refused.exit_code == 2
    assert words in refused.stderr


SHOP = """
import uuid
from interlock import Context, Server
server = Server("shop", "1")
@server.tool
async def order(item: str, ctx: Context, note: str | None = None) -> dict[str, str]:
    if not await ctx.confirm(f"Order {item}?"):
        return {"ticket": "none"}
    return {"ticket": str(uuid.uuid4()), "note": note or "-"}
@server.tool
async def cancel(ticket: str) -> str:
    return f"Cancelled {ticket}"
@server.resource("shop://open")
def is_open() -> str:
    return "yes"
"""


def test_replay_and_record_save_suites(
    interlock: Command, program_run: Program, tmp_path: Path
) -> None:
    """A ticket that differs in each run is sent back where the client sent it."""
    shop = tmp_path / "shop.py"
    shop.write_text(SHOP, encoding="utf-8")
    tape = tmp_path / "shop.tape"
    recorded = tmp_path / "recorded.toml"
    server = [sys.executable, "-m", "interlock", "run", str(shop)]
    program_run(
        *("call", "order", "item=tea", "--yes", "--"),
        *(sys.executable, "-m", "interlock", "record", "-o", tape, "--save-test", recorded, "--"),
        *server,
    )
    text = recorded.read_text(encoding="utf-8")
    assert "Run it: interlock test recorded.toml -- " in text
    assert 'call = "order"' in text
    assert '"Order tea?" = { confirm = true }' in text
    passed = interlock("test", recorded, "--", *server)
    assert (passed.exit_code, passed.stdout.splitlines()[-1]) == (0, "1 passed, 0 failed.")
    saved = tmp_path / "replayed.toml"
    interlock("replay", tape, "--as", "client", "--save-test", saved, "--", *server)
    assert saved.read_text(encoding="utf-8").partition("\n")[2] == text.partition("\n")[2]
    again = interlock("replay", tape, "--as", "client", "--save-test", saved, "--", *server)
    assert again.exit_code != 0
    assert "File exists" in again.stderr


def test_the_ending_chooses_the_kind(interlock: Command, tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"
    tape.write_text("", encoding="utf-8")
    refused = interlock("replay", tape, "--as", "client", "--save-test", "x.yaml", "--", "true")
    assert refused.exit_code == 2
    assert "ends with neither .py nor .toml" in refused.stderr


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


CONVERSATION = (
    '{"about":{"url":"http://127.0.0.1:1/mcp"}}',
    '{"client":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
    '"2025-06-18","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}}',
    '{"server":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":'
    '{"tools":{}},"serverInfo":{"name":"stranger","version":"0"}}}}',
    '{"client":{"jsonrpc":"2.0","method":"notifications/initialized"}}',
    '{"client":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}}',
    '{"server":{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hello"}]}}}',
)


def test_replay_to_a_url(
    interlock: Command, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit codes for the same answers, other answers, and no server; and the saved test."""
    monkeypatch.setenv("KEY", "x1")
    tape = tmp_path / "hello.tape"
    tape.write_text("\n".join(CONVERSATION), encoding="utf-8")
    saved = tmp_path / "test_hello.py"
    same = interlock(
        *("replay", tape, site.url, "--as", "client", "--header", "X-Key: $KEY"),
        *("--save-test", saved),
    )
    assert (same.exit_code, same.stdout) == (0, "No differences in 5 messages.\n")
    assert {head.get("x-key") for head in site.heads} == {"x1"}
    assert site.heads[-1]["mcp-protocol-version"] == "2025-06-18"
    runpy.run_path(str(saved))["test_hello"]()
    assert interlock("test", tape, site.url).stdout.endswith("1 passed, 0 failed.\n")
    suite = tmp_path / "hello.toml"
    interlock("replay", tape, site.url, "--as", "client", "--save-test", suite)
    assert f'target = "{site.url}"' in suite.read_text(encoding="utf-8")
    passed = interlock("test", suite)
    assert (passed.exit_code, passed.stdout.splitlines()[-1]) == (0, "1 passed, 0 failed.")
    assert interlock("test", suite, f"{site.root}/locked").exit_code == 3
    tape.write_text("\n".join(CONVERSATION).replace('"text":"hello"', '"text":"bye"'))
    other = interlock("replay", tape, site.url, "--as", "client")
    assert other.exit_code == 3
    assert 'tools/call hello, /result/content/0/text: expected "bye", got "hello"' in other.stdout
    with pytest.raises(AssertionError):
        runpy.run_path(str(saved))["test_hello"]()
    away = interlock("replay", tape, f"{site.root}/locked", "--as", "client")
    assert away.exit_code == 4
    assert "interlock auth login" in away.stderr
    assert interlock("test", tape, f"{site.root}/locked").exit_code == 4
    for words in ((), (site.url, "--", "true")):
        unclear = interlock("replay", tape, "--as", "client", *words)
        assert unclear.exit_code == 2
        assert "recorded with: http://127.0.0.1:1/mcp" in unclear.stderr
