"""What people and machines are shown of results, kind by kind."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from interlock import types as t
from interlock.cli.client.calling import save, show_block, show_result
from interlock.cli.client.reading import content_of
from interlock.cli.screen import plain, size, size_of
from tests.cli.conftest import Command

BLOCKS = {
    "text": (t.TextContent("two\nlines"), "two\nlines\n"),
    "image": (
        t.ImageContent(data="AAAA", mime_type="image/png"),
        "[image/png, 3 bytes; -o FILE saves it]\n",
    ),
    "sound": (
        t.AudioContent(data="AA==", mime_type="audio/wav"),
        "[audio/wav, 1 bytes; -o FILE saves it]\n",
    ),
    "link": (t.ResourceLink(uri="a://b", name="B"), "[B: a://b; `interlock read` shows it]\n"),
    "embedded text": (
        t.EmbeddedResource(resource=t.ResourceContents(uri="a://b", text="inside")),
        "[a://b]\ninside\n",
    ),
    "embedded bytes": (
        t.EmbeddedResource(resource=t.ResourceContents(uri="a://b", blob="AAA=")),
        "[a://b, binary, 2 bytes; -o FILE saves it]\n",
    ),
    "of tomorrow": (
        t.UnknownContent(block={"type": "hologram", "data": 1}),
        '{\n  "type": "hologram",\n  "data": 1\n}\n',
    ),
}


@pytest.mark.parametrize("block, shown", BLOCKS.values(), ids=BLOCKS)
def test_blocks(capsys: pytest.CaptureFixture[str], block: t.ContentBlock, shown: str) -> None:
    """Text as it is; of anything else what it is, how large, and how to get it."""
    show_block(block)
    assert capsys.readouterr().out == shown


STRUCTURED = {
    "the same as JSON": ([t.TextContent('{"a": 1}')], {"a": 1}, '{"a": 1}\n'),
    "the same in a wrap": ([t.TextContent("5")], {"result": 5}, "5\n"),
    "the same as words": ([t.TextContent("five")], {"result": "five"}, "five\n"),
    "the same, a block each": (
        [t.TextContent("a"), t.TextContent("5")],
        {"result": ["a", 5]},
        "a\n5\n",
    ),
    "something else": ([t.TextContent("see below")], {"a": 1}, 'see below\n{\n  "a": 1\n}\n'),
    "no words": ([], {"a": 1}, '{\n  "a": 1\n}\n'),
}


@pytest.mark.parametrize("content, data, shown", STRUCTURED.values(), ids=STRUCTURED)
def test_structured_content_is_shown_where_nothing_else_says_it(
    capsys: pytest.CaptureFixture[str], content: list[t.ContentBlock], data: object, shown: str
) -> None:
    """Once, not twice."""
    show_result(t.CallToolResult(content=content, structured_content=data))
    assert capsys.readouterr().out == shown


def test_saving(tmp_path: Path) -> None:
    """The one file of a result, or its text; several files are for --json."""
    save(
        [t.TextContent("a picture"), t.ImageContent(data="AAAA", mime_type="image/png")],
        tmp_path / "a",
    )
    assert (tmp_path / "a").read_bytes() == b"\0\0\0"
    save([t.TextContent("a"), t.TextContent("ü")], tmp_path / "b")
    assert (tmp_path / "b").read_text(encoding="utf-8") == "a\nü"
    save([t.EmbeddedResource(resource=t.ResourceContents(uri="a://b", text="x"))], tmp_path / "c")
    assert (tmp_path / "c").read_text() == "x"
    with pytest.raises(click.UsageError, match="has 2 files"):
        save([t.ImageContent(data="AAAA", mime_type="image/png")] * 2, tmp_path / "d")


def test_plain_data_has_no_envelope() -> None:
    """Neither the result type nor who answered; what a server adds of its own stays."""
    meta = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}, "own": 1}
    assert plain(t.GetPromptResult(messages=[], result_type="complete", meta=meta)) == {
        "messages": [],
        "_meta": {"own": 1},
    }
    assert json.dumps(plain(t.UnknownContent(block={"type": "x"}))) == '{"type": "x"}'


def test_sizes() -> None:
    """In words."""
    assert [size(n) for n in (0, 999, 1000, 1_500_000)] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "1.5 MB",
    ]
    assert [size_of(b64) for b64 in ("", "AA==", "AAA=", "AAAA")] == [
        "0 bytes",
        "1 bytes",
        "2 bytes",
        "3 bytes",
    ]


def test_broken_base64_is_the_servers_fault() -> None:
    """And no file is written of it."""
    with pytest.raises(t.ProtocolError, match="is not base64"):
        content_of(t.ResourceContents(uri="a://b", blob="?"))


def test_a_server_is_not_given_twice(interlock: Command, everyday: Path) -> None:
    """A script and a command: which is meant is not guessed."""
    assert "The server is named twice" in interlock("call", everyday, "add", "--", "x").stderr


def test_the_runner_keeps_the_streams_apart() -> None:
    """What these tests rely on: stdout and stderr are told from each other."""

    @click.command()
    def both() -> None:
        click.echo("out")
        click.echo("err", err=True)

    result = CliRunner().invoke(both)
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
