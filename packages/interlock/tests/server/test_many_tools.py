"""Catalogues with many tools: most are made when they are first needed, and behave the same."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from interlock import Client, Context, McpError, Server, ServerLimits
from interlock.server import app as module
from interlock.server.catalogue.factories import MADE_AT_ONCE
from interlock.server.catalogue.features import FeatureList
from tests.server.by_hand import call, listed, text
from tests.server.test_workers import LONG

MORE = 60


def numbered(number: int) -> Callable[..., Any]:
    """One of many tools."""

    async def tool(a: int, ctx: Context) -> str:
        return f"{number} {a}"

    tool.__name__ = f"tool_{number}"
    tool.__doc__ = f"Say {number}.\n\nArgs:\n    a: What else to say."
    return tool


def build(count: int, **options: Any) -> Server:
    server = Server("many", **options)
    for number in range(count):
        server.add_tool(numbered(number))
    return server


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tools that have been made."""
    names: list[str] = []
    make = module.make_tool

    def counting(name: str, *given: Any) -> Any:
        names.append(name)
        return make(name, *given)

    monkeypatch.setattr(module, "make_tool", counting)
    return names


@pytest.mark.parametrize("more", [0, 1, MORE, MORE * 10])
async def test_a_start_makes_a_bounded_number_of_tools(more: int, made: list[str]):
    """A page of the list makes those on it and the one that follows, and a call makes one."""
    server = build(MADE_AT_ONCE + more, limits=ServerLimits(page_size=MADE_AT_ONCE + 10))
    assert len(made) == MADE_AT_ONCE
    assert len(server.tools) == MADE_AT_ONCE + more
    await listed(server, "tools/list")
    assert len(made) == min(MADE_AT_ONCE + 11, MADE_AT_ONCE + more)
    last = MADE_AT_ONCE + more - 1
    for _ in range(2):
        assert await text(server, f"tool_{last}", {"a": 1}) == f"{last} 1"
    assert len(made) <= MADE_AT_ONCE + 12
    assert len(made) == len(set(made))


async def test_they_are_listed_and_called_like_others():
    """In their order, over all pages, with the same schemas and descriptions."""
    async with Client(build(MADE_AT_ONCE + MORE, limits=ServerLimits(page_size=7))) as client:
        tools = await client.list_tools()
        answers = [
            (await client.call_tool(f"tool_{n}", {"a": n})).text
            for n in (0, MADE_AT_ONCE, MADE_AT_ONCE + MORE - 1)
        ]
    assert [tool.name for tool in tools] == [f"tool_{n}" for n in range(MADE_AT_ONCE + MORE)]
    assert tools[-1].description == f"Say {MADE_AT_ONCE + MORE - 1}."
    assert tools[-1].input_schema == tools[0].input_schema
    assert answers == [f"{n} {n}" for n in (0, MADE_AT_ONCE, MADE_AT_ONCE + MORE - 1)]


async def test_an_idle_server_makes_the_rest(made: list[str], monkeypatch: pytest.MonkeyPatch):
    """Piece by piece, while it waits for calls."""
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    monkeypatch.setattr(module, "_MAKING", 0.0)
    server = build(MADE_AT_ONCE + MORE)
    async with Client(server), asyncio.timeout(LONG):
        while server.tools.has_more:
            before = len(made)
            await asyncio.sleep(0)
            assert len(made) <= before + 3
    assert len(made) == MADE_AT_ONCE + MORE


@pytest.mark.parametrize("seconds", [0.002, -1.0])
async def test_tools_that_cannot_be_made_are_reported_in_one_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, seconds: float
):
    """All of them together, and the others are offered; also if the time for making tools is over
    after each of them, the last one too."""
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    monkeypatch.setattr(module, "_MAKING", seconds)
    server = build(MADE_AT_ONCE)

    async def fine() -> str:
        return "fine"

    async def first(value: complex) -> str:
        return ""

    async def second(*values: int) -> str:
        return ""

    for function in (first, fine, second):
        server.add_tool(function)
    with caplog.at_level(logging.ERROR, "interlock.server"):
        async with Client(server) as client, asyncio.timeout(LONG):
            while server.tools.has_more:  # noqa: ASYNC110 # no event says so
                await asyncio.sleep(0)
            names = [tool.name for tool in await client.list_tools()]
            with pytest.raises(McpError, match="Unknown tool"):
                await client.call_tool("first", {"value": 1})
    assert "fine" in names
    assert not {"first", "second"} & set(names)
    (record,) = caplog.records
    message = record.getMessage()
    assert message.startswith("2 tools cannot be offered: 'first': ")
    assert "complex" in message
    assert "'second': " in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["first", "tool_0"])
async def test_a_call_reports_the_tool_that_it_needs(name: str, caplog: pytest.LogCaptureFixture):
    server = build(MADE_AT_ONCE)

    async def first(value: complex) -> str:
        return ""

    server.add_tool(first)
    if name == "tool_0":
        assert await text(server, name, {"a": 1}) == "0 1"
        assert not caplog.records
        return
    with pytest.raises(McpError, match="Unknown tool"):
        await call(server, name, {"value": 1})
    assert "cannot be offered" in caplog.text


def test_names_of_a_running_function_are_read_at_once(made: list[str]):
    """They are gone when the tool is needed."""
    server = build(MADE_AT_ONCE)

    class Local:
        pass

    async def wrong(value: Local) -> str:
        return ""

    async def lost(value: Nowhere) -> str:  # type: ignore[name-defined] # noqa: F821 # what must fail
        return ""

    for function in (wrong, lost):
        with pytest.raises(TypeError, match=r"wrong|lost"):
            server.add_tool(function)
    assert len(server.tools) == MADE_AT_ONCE


async def test_mistakes_in_options_are_errors_at_once():
    """However many tools there are."""
    server = build(MADE_AT_ONCE + 1)
    tool = numbered(7)
    for options, words in (
        ({"name": "not a name"}, "cannot be the name"),
        ({"titel": "x"}, "did you mean 'title'"),
        ({"timeout": -1}, "timeout"),
        ({"name": f"tool_{MADE_AT_ONCE}"}, "there is a tool"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            server.add_tool(tool, **options)


async def test_changes_before_a_tool_is_made(made: list[str]):
    """It can be removed and replaced unseen."""
    server = build(MADE_AT_ONCE + 3)
    server.remove_tool(f"tool_{MADE_AT_ONCE}")
    server.add_tool(numbered(-1), name=f"tool_{MADE_AT_ONCE + 1}", replace=True)
    with pytest.raises(KeyError):
        server.remove_tool(f"tool_{MADE_AT_ONCE}")
    async with Client(server) as client:
        names = [tool.name for tool in await client.list_tools()]
        assert (await client.call_tool(f"tool_{MADE_AT_ONCE + 1}", {"a": 2})).text == "-1 2"
    assert names[MADE_AT_ONCE:] == [f"tool_{MADE_AT_ONCE + 1}", f"tool_{MADE_AT_ONCE + 2}"]
    assert f"tool_{MADE_AT_ONCE}" not in made


async def test_development_makes_all_tools(made: list[str], caplog: pytest.LogCaptureFixture):
    """So that the author sees at once what is wrong."""
    server = build(MADE_AT_ONCE)

    async def first(value: complex) -> str:
        return ""

    server.add_tool(first)
    server.dev = True
    assert "'first': " in caplog.text
    with pytest.raises(TypeError, match="complex"):
        server.add_tool(first)


def test_adding_a_tool_looks_at_no_other(monkeypatch: pytest.MonkeyPatch):
    """So that many cost as much each as few."""
    looks: list[int] = []
    look = FeatureList.made

    def counting(features: FeatureList[Any]) -> Any:
        looks.append(len(features))
        return look(features)

    monkeypatch.setattr(FeatureList, "made", counting)
    build(MADE_AT_ONCE + MORE)
    assert looks == []
