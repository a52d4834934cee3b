"""Deprecated features of the protocol: marked for type checkers, warned of once at run time, and
still working."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interlock import Client, Context, Server, deprecation
from interlock.testing import ScriptedAnswers
from interlock.wire.revisions import NEWEST, REVISIONS


@pytest.fixture(autouse=True)
def nothing_warned_of() -> Iterator[None]:
    """As in a new process."""
    before = set(deprecation._warned)
    deprecation._warned.clear()
    yield
    deprecation._warned.clear()
    deprecation._warned.update(before)


server = Server("old")


@server.tool
async def ask_model(ctx: Context) -> str:
    """Ask the model of the client."""
    return str((await ctx.sample("Well?")).content)


@server.tool
async def ask_with_context(ctx: Context) -> str:
    """Ask the model of the client, with context."""
    return str((await ctx.sample("Well?", include_context="allServers")).content)


@server.tool
async def folders(ctx: Context) -> str:
    """Ask for the folders of the client."""
    return " ".join(root.uri for root in await ctx.roots())


@server.tool
async def write_log(ctx: Context) -> str:
    """Write to the log of the client."""
    ctx.log.info("Here.")
    return "done"


FEATURES = {
    "ask_model": ("Sampling is deprecated", "SEP-2577", "2027-07-28", "model provider"),
    "ask_with_context": ("include_context", "SEP-2596", "2027-07-28", "leave the argument out"),
    "folders": ("Roots are deprecated", "SEP-2577", "2027-07-28", "arguments of a tool"),
    "write_log": ("Logging is deprecated", "SEP-2577", "2027-07-28", "stderr"),
}


async def warned_of(tool: str, revision: str) -> list[warnings.WarningMessage]:
    """The warnings of two calls, which both must work."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            answers = ScriptedAnswers(sample=["Yes."], roots=["file:///srv"], context=True)
            async with Client(
                server, revision=revision, answers=answers, log_level="info", on_log=print
            ) as client:
                assert not (await client.call_tool(tool)).is_error
    return [one for one in caught if issubclass(one.category, DeprecationWarning)]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("tool", FEATURES)
async def test_a_deprecated_feature_is_warned_of_once_and_works(tool: str, revision: str) -> None:
    """The words name the feature, the SEP, the earliest removal and what to use (`DEP-03`,
    `DEP-04`, `LOG-10`)."""
    told = [str(one.message) for one in await warned_of(tool, revision)]
    (words,) = [text for text in told if text.startswith(FEATURES[tool][0])]
    assert all(part in words for part in FEATURES[tool])


async def test_the_warning_stands_where_the_feature_is_used() -> None:
    """In the author's file, so that Python shows it there (`DEP-04`)."""
    for tool in FEATURES:
        assert {one.filename for one in await warned_of(tool, NEWEST)} == {__file__}


def test_the_older_transport_is_warned_of() -> None:
    """Where a server is told to offer HTTP with SSE, and nowhere else (`DEP-03`, `DEP-04`)."""
    with pytest.warns(DeprecationWarning, match=r"HTTP\+SSE .* SEP-2596.*Streamable HTTP"):
        Server("s").http_app(legacy_sse=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Server("s").http_app()


MARKED: dict[str, Callable[[], Any]] = {
    "sample": lambda: Context.sample,
    "roots": lambda: Context.roots,
    "log": lambda: Context.log.fget,  # type: ignore[attr-defined]  # it is a property
}


@pytest.mark.parametrize("name", MARKED)
def test_deprecated_features_are_marked(name: str) -> None:
    """As PEP 702 has it, with the SEP and the earliest removal (`DEP-03`)."""
    assert re.search(r"SEP-\d+.*2027-07-28", MARKED[name]().__deprecated__)


async def test_what_is_not_deprecated_warns_of_nothing() -> None:
    """Questions, progress and results are no deprecated features (`DEP-04`)."""
    plain = Server("new")

    @plain.tool
    async def work(ctx: Context) -> bool:
        ctx.progress(1)
        return await ctx.confirm("Well?")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for revision in REVISIONS[2:]:
            answers = ScriptedAnswers(elicit=[{"confirm": True}])
            async with Client(plain, revision=revision, answers=answers) as client:
                assert (await client.call_tool("work")).value() is True
