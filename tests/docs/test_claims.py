"""The numbers and names in the guide match the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import click
import msgspec
import pytest

from interlock import (
    REVISIONS,
    Client,
    Context,
    Http,
    Limits,
    QuestionSettings,
    Rate,
    Server,
    ServerLimits,
    TaskLimits,
    Tasks,
)
from interlock.cli.client.listing import ping
from interlock.cli.program import COMMANDS
from interlock.cli.run.running import run
from interlock.http11.client import HttpFetch
from interlock.server.run.http import DEFAULT_GRACE, http_app, serve_web
from interlock.store import MemoryStore, RedisStore, SqliteStore
from interlock.transport.http import access_log
from interlock.transport.http.server.connection_table import ConnectionTable
from interlock.transport.http.server.limits import ConnectionLimits
from interlock.wire.lines import DEFAULT_LIMIT
from interlock_issuer import Issuer
from interlock_servers.commands import servers_here
from tests.docs.pages import TOP

GUIDE = TOP / "docs" / "guide"


def page(name: str) -> str:
    """The text of a page of the guide."""
    return (GUIDE / name).read_text(encoding="utf-8")


def default(of: Callable[..., object], name: str) -> object:
    """The default of a parameter."""
    return inspect.signature(of).parameters[name].default


@pytest.mark.parametrize(
    "record, option",
    [
        *((ServerLimits, name) for name in ServerLimits.__struct_fields__ if name != "list_ttl_ms"),
        (QuestionSettings, "timeout"),
    ],
)
def test_limits_are_as_stated(record: type, option: str) -> None:
    """The table of limits has the defaults of the option records."""
    value = getattr(record(), option)
    if value is None:
        words = "none"
    elif option == "share":
        words = f"{value:g}"
    elif isinstance(value, float):
        words = f"{value / 60:g} minutes"
    elif option.endswith("_bytes"):
        words = in_words("bodies", value)
    else:
        words = f"{value:,}"
    rows = [
        line
        for line in page("limits.md").splitlines()
        if line.startswith("|") and f"`{option}=`" in line and record.__name__ in line
    ]
    assert rows
    assert all(words in row for row in rows), (option, words)


def test_the_size_of_a_message_is_as_stated() -> None:
    """Both places that name it are correct."""
    stated = f"{DEFAULT_LIMIT // 1024**2} MiB"
    assert stated in page("limits.md")
    assert stated in page("security.md")


def test_the_timeout_of_a_client_is_as_stated() -> None:
    """The page gives it in seconds."""
    assert f"({default(Client, 'timeout'):g} seconds unless told otherwise)" in page("client.md")


def in_words(limit: str, value: float | Rate | None) -> str:
    """A limit in the notation of the guide."""
    if value is None:
        return "none"
    if isinstance(value, Rate):
        return f"{value.per_second:g} a second, {value.burst:g} at once"
    if limit in ("head", "body", "bodies", "opening"):
        return f"{value // 1024**2} MiB" if value >= 1024**2 else f"{value // 1024} KiB"
    return {3600.0: "1 hour", 86400.0: "1 day"}.get(value, f"{value:,g}")


@pytest.mark.parametrize("limit", [field.name for field in msgspec.structs.fields(Limits)])
def test_limits_over_http_are_as_stated(limit: str) -> None:
    """The table of limits of an endpoint lists every limit with its default."""
    value = in_words(limit, getattr(Limits(), limit))
    (row,) = [
        line
        for line in page("http.md").splitlines()
        if line.startswith("|") and f"`{limit}`" in line.split("|")[1]
    ]
    names = re.findall(r"`(\w+)`", row.split("|")[1])
    words = row.split("|")[3].strip().split(", ")
    assert (words[names.index(limit)] if len(names) > 1 else ", ".join(words)) == value


async def test_every_quota_is_an_option_and_a_counter() -> None:
    """The table of quotas has the default of each option, and the counters are all there are."""
    text = (TOP / "docs" / "design" / "limits.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if re.match(r"\| .* \| `\w+\.\w+` \|", line)
    ]
    defaults = {
        "Limits": lambda name: getattr(Limits(), name),
        "ServerLimits": lambda name: getattr(ServerLimits(), name),
        "MemoryStore": lambda name: default(MemoryStore, name),
        "SqliteStore": lambda name: default(SqliteStore, name),
        "RedisStore": lambda name: default(RedisStore, name),
        "TaskLimits": lambda name: getattr(TaskLimits(), name),
        "Issuer": lambda name: getattr(Issuer("https://issuer.example").settings, name),
    }
    counters = set()
    for _, option, value, counter, _ in rows:
        of, _, name = option.strip("`").partition(".")
        amount = defaults[of](name)
        is_size = name in ("bodies", "held_bytes", "event_bytes")
        assert value == (f"{amount // 1024**2} MiB" if is_size else f"{amount:,}")
        counters.add(counter.strip("`"))
    assert len(rows) == 14
    server = Server("x", extensions=[Tasks()])
    app = server.http_app()
    app.connections = ConnectionTable(ConnectionLimits()).usage
    assert callable(MemoryStore().sessions.count)
    assert callable(MemoryStore().events.measure)
    assert callable(Issuer.count_registrations)
    asynchronous = {"store.sessions.count", "store.events.measure", "issuer.count_registrations"}
    await server.enter()
    try:
        assert counters == {*app.usage(), *asynchronous}
    finally:
        await server.leave()


def test_what_is_said_of_http_is_so() -> None:
    """The options, loggers, paths and times on the page on HTTP are correct."""
    text = page("http.md")
    assert set(re.findall(r"`(\w+)=", text)) <= {
        name
        for of in (
            http_app,
            serve_web,
            Server.route,
            Http.__init__,
            HttpFetch.__init__,
            Client.__init__,
            Context.disconnect,
        )
        for name in inspect.signature(of).parameters
    }
    assert {access_log.access.name, access_log.security.name} == set(
        re.findall(r"`(interlock\.(?:access|security))`", text)
    )
    assert f"`grace` seconds ({DEFAULT_GRACE:g})" in text
    assert f"`{default(http_app, 'path')}`, and `/health`" in text
    assert f"`{default(serve_web, 'host')}:{default(serve_web, 'port')}`" in text


def test_options_of_the_command_line_are_named() -> None:
    """The page names the options for HTTP, of servers and clients."""
    text = page("cli.md")
    assert "default: 300" in " ".join(
        str(option.help) for option in ping.params if isinstance(option, click.Option)
    )
    for command, names in (
        (run, ["--http", "--workers", "--store", "--allow-host", "--cors", "--serve-legacy-sse"]),
        (ping, ["--header", "--revision", "--legacy-sse"]),
    ):
        there = {word for option in command.params for word in option.opts}
        assert all(name in there and f"`{name}" in text for name in names)


def test_commands_are_named() -> None:
    """The guide names every command, every included server, and every revision."""
    text = page("cli.md")
    named = set(re.findall(r"`(?:interlock )?([a-z]+)\b", text))
    assert set(COMMANDS) <= named
    assert set(servers_here()) <= named
    assert all(revision in page("revisions.md") for revision in REVISIONS)


def test_environment_variables_are_named() -> None:
    """Every variable that a user can set is on a page of the documentation."""
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in TOP.glob("packages/*/src/**/*.py")
    )
    pages = "\n".join(path.read_text(encoding="utf-8") for path in TOP.glob("docs/**/*.md"))
    read = set(re.findall(r"""["'](INTERLOCK_[A-Z_]*[A-Z])["']""", sources))
    named = set(re.findall(r"\bINTERLOCK_[A-Z_]*[A-Z]\b", pages))
    assert {"INTERLOCK_CONNECT_CLIENT_ID", "INTERLOCK_CONNECT_CLIENT_SECRET"} <= read
    internal = {"INTERLOCK_NEW_KEY"}  # the host sets it for itself, to try a key that is not stored
    assert read - named == internal
