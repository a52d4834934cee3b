"""Contract check of a Source: it opens and closes, its lists are cheap and valid, it announces
changes, and it answers for every feature in its lists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ... import types as t
from ...exchange import Caller, Exchange
from ...source import Offered, Source
from ...wire.revisions import REVISIONS
from .promises import promise_of, require, within

MakeSource = Callable[[], Awaitable[Source]]
ChangeSource = Callable[[Source], Awaitable[object]]


async def check_source(
    make_source: MakeSource, *, change: ChangeSource | None = None, patience: float = 5.0
) -> None:
    """Check that sources keep the contract of `interlock.Source`.

    Args:
        make_source: Makes a new source that is not open.
        change: Changes the lists of an open source: adds or removes a feature. Without it, the
            announcement of changes is not checked.
        patience: Seconds that each step waits.

    Raises:
        AssertionError: A promise is broken; the message names it.
    """
    for step in _STEPS:
        source = await make_source()
        async with within(patience, "a source", promise_of(step)):
            await step(source)
    if change is not None:
        source = await make_source()
        async with within(patience, "a source", promise_of(_announces_changes)):
            await _announces_changes(source, change)


async def _opens_again(source: Source) -> None:
    """it has its lists once it is open, and can be closed and opened again"""
    require(bool(source.name), "its name is empty")
    for _ in range(2):
        await source.open()
        try:
            require(source.offered is not None, "it was open, and `offered` was None")
        finally:
            await source.aclose()


async def _lists_are_whole(source: Source) -> None:
    """its lists name each feature once, and stay equal while nothing changes"""
    await source.open()
    try:
        offered = _offered(source)
        for what, names in _names(offered).items():
            double = sorted({name for name in names if names.count(name) > 1})
            require(not double, f"the {what} {', '.join(double)} are listed twice")
        require(_offered(source) == offered, "two readings of `offered` differ")
    finally:
        await source.aclose()


async def _answers_for_its_features(source: Source) -> None:
    """it answers for each tool in its lists, and with an McpError for a tool that it does not have,
    and for a method that it does not have
    """
    await source.open()
    try:
        tools = _names(_offered(source))["tools"]
        missing = next(name for name in ("nothing", "nothing_2") if name not in tools)
        requests: list[tuple[str, t.Params]] = [
            ("tools/call", t.CallToolRequestParams(name=missing)),
            ("com.example/unknown", t.Params()),
        ]
        for method, params in requests:
            try:
                result = await source.handle(Exchange(method, params, _caller()))
            except t.McpError:
                continue
            require(False, f"{method} was answered with {result!r}")
        for name in tools:
            # without arguments a tool may fail, but its source has to know it
            call = Exchange("tools/call", t.CallToolRequestParams(name=name), _caller())
            try:
                result = await source.handle(call)
            except t.McpError as bad:
                require(bad.code != t.METHOD_NOT_FOUND, f"it does not know its tool {name}: {bad}")
            else:
                is_result = hasattr(result, "body") or isinstance(result, t.Result)
                require(is_result, f"its tool {name} gave {result!r}")
    finally:
        await source.aclose()


async def _announces_changes(source: Source, change: ChangeSource) -> None:
    """it calls its listeners when its lists have changed, with the new lists in place, and a
    listener that was stopped no more
    """
    await source.open()
    try:
        before = _offered(source)
        seen: list[Offered | None] = []
        stopped: list[bool] = []
        announced = asyncio.Event()

        def receive() -> None:
            seen.append(source.offered)
            announced.set()

        stop = source.listen(receive)
        source.listen(lambda: stopped.append(True))()
        await change(source)
        await announced.wait()
        require(seen[-1] != before, "it announced a change, and its lists were as before")
        require(not stopped, "a listener that was stopped was called")
        stop()
    finally:
        await source.aclose()


def _caller() -> Caller:
    return Caller(REVISIONS[-1])


def _offered(source: Source) -> Offered:
    offered = source.offered
    require(offered is not None, "it was open, and `offered` was None")
    assert offered is not None
    return offered


def _names(offered: Offered) -> dict[str, list[str]]:
    return {
        "tools": [tool.name for tool in offered.tools],
        "resources": [resource.uri for resource in offered.resources],
        "templates": [template.uri_template for template in offered.templates],
        "prompts": [prompt.name for prompt in offered.prompts],
        "skills": [skill.uri for skill in offered.skills],
    }


_STEPS = (_opens_again, _lists_are_whole, _answers_for_its_features)
