"""What every reference server has: titles, hints, schemas, words beside data, completions, a page,
a place in the lists, and plain refusals.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from interlock import REVISIONS, CallToolResult, Client, Server, TextContent, types
from interlock_servers.calendar import calendar_server
from interlock_servers.commands import serve, servers_here
from interlock_servers.database import database_server
from interlock_servers.everything import everything_server
from interlock_servers.filesystem import filesystem_server
from interlock_servers.git import git_server
from interlock_servers.mail import mail_server
from interlock_servers.memory import memory_server
from interlock_servers.thinking import thinking_server
from interlock_servers.time import time_server
from interlock_servers.travel import travel_server
from interlock_servers.weather import weather_server
from tests.servers.calls import STRUCTURED_SINCE
from tests.servers.database.shop import shop
from tests.servers.everything.test_tools import GIVES_CONTENT
from tests.servers.fetch.site import PLAIN, running
from tests.servers.git.repos import repository
from tests.servers.roads import over_http
from tests.servers.travel_fixtures import stock
from tests.transport.http_peers import ok

TOP = Path(__file__).parents[4]
NAMES = sorted(servers_here())

# Those that need nothing but a folder -> what makes one, and a call of a tool that gives data.
MADE: dict[str, tuple[Callable[[Path], Server], str, dict[str, Any]]] = {
    "calendar": (
        calendar_server,
        "create_event",
        {"title": "A day out", "start_date": "2024-06-15"},
    ),
    "database": (
        lambda folder: database_server([shop(folder / "shop.db")], write=True),
        "query",
        {"sql": "SELECT name FROM customers"},
    ),
    "everything": (lambda folder: everything_server(), "measure", {"place": "Rome"}),
    "filesystem": (lambda folder: filesystem_server([folder]), "find_files", {"pattern": "*.txt"}),
    "git": (lambda folder: git_server(repository(folder / "repo")), "git_log", {}),
    "mail": (
        mail_server,
        "create_draft",
        {"to": "ann@example.com", "subject": "Hello", "body": "words"},
    ),
    "memory": (lambda folder: memory_server(folder / "memory.db"), "graph_statistics", {}),
    "thinking": (
        lambda folder: thinking_server(),
        "sequentialthinking",
        {"thought": "So?", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
    ),
    "time": (
        lambda folder: time_server("UTC"),
        "add_to_time",
        {"time": "2024-06-15T12:00", "duration": "P1D"},
    ),
    "travel": (
        lambda folder: travel_server(stock(folder / "travel.db")),
        "search_flights",
        {"origin": "NYC", "destination": "Barcelona", "date": "2024-06-15", "max_price": 320},
    ),
    "weather": (
        lambda folder: weather_server("http://127.0.0.1:9", 0.1),
        "check_weather",
        {"city": "Barcelona", "date": "2024-06-15"},
    ),
}

# Tools that give no data but text, pictures or links, which have no schema.
GIVES_NO_DATA = {
    "everything": GIVES_CONTENT,  # which shows all that a tool can give
    "weather": {"get_alerts"},  # the tutorial's, a text to be read
}

# Arguments that are said by their names alone; those of the everything server show what a schema
# can be, with words and without.
PLAIN_NAMES = {
    "calendar": {"title", "location", "notes"},
    "git": {
        "context",
        "cursor",
        "ignore_case",
        "limit",
        "most",
        "name",
        "patch",
        "path",
        "repository",
        "revision",
        "text",
    },
}

# Those with tools that have to do with more than what lies here: the web, people, the client's
# model.
OPEN = {"everything", "fetch", "mail", "travel", "weather"}

# Arguments for which nobody can suggest anything: what somebody has to say in their own words,
# numbers and days.
FREE = {
    "database": {"ask_database.question"},
    "everything": {
        "review.code",
        "repeat.times",
        "everything://paths/{+path}.path",
        "everything://words/{letter:1}/{word}.letter",
        "everything://words/{letter:1}/{word}.word",
        "everything://page{#part}.part",
        "everything://file{.suffix}.suffix",
        "everything://segments{/segments*}.segments",
        "everything://points{;x,y}.x",
        "everything://points{;x,y}.y",
        "everything://search{?q,limit}.q",
        "everything://search{?q,limit}.limit",
        "everything://list?kind={kind}{&page}.kind",
        "everything://list?kind={kind}{&page}.page",
        "everything://greetings/{language}/{name}.name",
    },
    "fetch": {"fetch.pdf_pages"},
    "mail": {"out-of-office.first_day", "out-of-office.last_day", "out-of-office.language"},
    "thinking": {"think_through.problem", "think_through.thoughts"},
    "time": {"plan_meeting.day"},
    "travel": {
        f"plan-vacation.{name}"
        for name in ("departure_date", "return_date", "duration", "budget", "travelers")
    },
}

# A variable of the environment that makes no sense, and what is said of it.
WRONG = {
    "database": ("PAGE", "many", "Expected `int`"),
    "everything": ("SECONDS", "0", "Expected `float` > 0"),
    "fetch": ("ROBOTS", "perhaps", "Invalid enum value 'perhaps'"),
    "filesystem": ("HARD_LINKS", "follow", "Invalid enum value 'follow'"),
    "git": ("SECONDS", "nan", "it has to be more than 0"),
    "memory": ("PAGE", "-1", "it has to be more than 0"),
    "thinking": ("SIZE", "1.5", "Expected `int`"),
    "time": ("ZONE", "Europe/Atlantis", "There is no time zone"),
    "weather": ("SECONDS", "soon", "Expected `float`"),
}


@asynccontextmanager
async def offered(name: str, folder: Path) -> AsyncIterator[tuple[Server, str, dict[str, Any]]]:
    """A server, a tool of it that gives data, and what it is called with."""
    (folder / "a.txt").write_text("some words\n", encoding="utf-8")
    if name == "fetch":
        async with running() as site:
            site.pages["/page"] = ok(b"some words", PLAIN)
            yield site.server(), "fetch", {"url": site.url()}
    else:
        make, tool, arguments = MADE[name]
        yield make(folder), tool, arguments


def paragraph(page: str, begins: str) -> str:
    """What stands on a page from some words to the next one in bold, the next row, or the next
    heading.
    """
    text = (TOP / page).read_text(encoding="utf-8")
    start = text.index(f"\n{begins}")
    return re.split(r"\n(?=- \*\*|\||#|[A-Z][a-z]+:\n)", text[start + 1 :], maxsplit=1)[0]


@pytest.mark.parametrize("name", NAMES)
async def test_each_server_says_what_it_is_and_what_its_tools_do(name: str, tmp_path: Path) -> None:
    """Of itself: title, description, instructions.

    Of each tool: title, description, all hints, a schema, what each argument is.

    `TOL-02`, `TOL-04`, `TOL-05`, `TOL-10`.
    """
    async with offered(name, tmp_path) as (server, _, _), Client(server) as client:
        info = client.server_info
        assert info is not None
        assert all((info.title, info.description, client.instructions))
        tools = await client.list_tools()
    assert [tool.name for tool in tools if not tool.title or not tool.description] == []
    for tool in tools:
        hints = tool.annotations or types.ToolAnnotations()
        assert None not in (hints.read_only_hint, hints.open_world_hint), tool.name
        assert hints.read_only_hint or None not in (
            hints.destructive_hint,
            hints.idempotent_hint,
        ), tool.name
    assert any(
        tool.annotations is not None and tool.annotations.open_world_hint for tool in tools
    ) == (name in OPEN)
    assert {tool.name for tool in tools if tool.output_schema is None} == GIVES_NO_DATA.get(
        name, set()
    )
    if name != "everything":
        said = [
            (argument, about)
            for tool in tools
            for argument, about in tool.input_schema.get("properties", {}).items()
        ]
        assert {
            argument for argument, about in said if "description" not in about
        } <= PLAIN_NAMES.get(name, set())


@pytest.mark.parametrize("name", NAMES)
async def test_nothing_is_said_twice(name: str, tmp_path: Path) -> None:
    """Data stand in the structured content, and the text says it in words; who knows no structured
    content gets the data as well (`TOL-09`, `TOL-11`).
    """
    async with offered(name, tmp_path) as (server, tool, arguments):
        async with Client(server) as client:
            await client.list_tools()  # so that the data are checked against the schema
            result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.text
        assert isinstance(result.structured_content, dict)
        assert texts(result)
        assert not any(is_json(text) for text in texts(result))
        async with Client(server, revision=REVISIONS[0]) as client:
            assert client.revision < STRUCTURED_SINCE
            older = await client.call_tool(tool, arguments)
        assert older.structured_content is msgspec.UNSET
        assert json.loads(texts(older)[-1]).keys() == result.structured_content.keys()
        assert len(older.content) == len(result.content) + 1


def texts(result: CallToolResult) -> list[str]:
    """All texts of a result."""
    return [block.text for block in result.content if isinstance(block, TextContent)]


def is_json(text: str) -> bool:
    """Whether a text is an object or an array."""
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


@pytest.mark.parametrize("name", NAMES)
async def test_what_can_be_completed_is(name: str, tmp_path: Path) -> None:
    """Every argument of a prompt and every variable of a template has suggestions, but for those
    that are anybody's guess (`CMP-01`).
    """
    async with offered(name, tmp_path) as (server, _, _), Client(server) as client:
        assert client.server_capabilities.completions is not None
        places = {
            one.listing.uri_template: one.strings.choices
            for one in server.catalogue.templates.all()
        }
        prompts = {
            one.listing.name: (one.strings.choices, one.listing.arguments or [])
            for one in server.catalogue.prompts.all()
        }
    wanted: list[tuple[Any, str, Any]] = []
    for template, choices in places.items():
        names = [
            part.split(":")[0].rstrip("*")
            for found in re.findall(r"{[+#./;?&]?([^}]+)}", template)
            for part in found.split(",")
        ]
        wanted += [
            (types.ResourceTemplateReference(uri=template), variable, choices) for variable in names
        ]
    for prompt, (choices, arguments) in prompts.items():
        wanted += [
            (types.PromptReference(name=prompt), argument.name, choices) for argument in arguments
        ]
    left = {
        f"{ref.name if isinstance(ref, types.PromptReference) else ref.uri}.{argument}"
        for ref, argument, choices in wanted
        if argument not in choices and server.catalogue.completions.get(ref, argument) is None
    }
    assert wanted
    assert left == FREE.get(name, set())


@pytest.mark.parametrize("name", NAMES)
async def test_each_server_has_a_page(name: str, tmp_path: Path) -> None:
    """It names every tool, prompt and template, and how the server is started; the guide, the
    README and the command list the server.
    """
    async with offered(name, tmp_path) as (server, _, _), Client(server) as client:
        can = client.server_capabilities
        tools = [tool.name for tool in await client.list_tools()]
        prompts = (
            [prompt.name for prompt in await client.list_prompts()]
            if can.prompts is not None
            else []
        )
        templates = (
            [one.uri_template for one in await client.list_resource_templates()]
            if can.resources is not None
            else []
        )
    page = (TOP / "docs" / "servers" / f"{name}.md").read_text(encoding="utf-8")
    assert [tool for tool in tools if f"`{tool}`" not in page] == []
    assert [one for one in [*prompts, *templates] if one not in page] == []
    assert f"interlock serve {name}" in page
    assert f"[{name}](../servers/{name}.md)" in paragraph(
        "docs/guide/index.md", "Servers that come with Interlock"
    )
    assert re.search(rf"[` ]{name}`", paragraph("README.md", "- **Servers that come with it**"))
    assert f"`{name}`" in paragraph("docs/guide/cli.md", "| `interlock serve NAME` |")
    assert re.search(rf"^{name}  \S", CliRunner().invoke(serve, []).output, re.M)


@pytest.mark.parametrize(
    "name", ["calendar", "mail", "travel", "weather"]
)  # the tests of the others show it of each
async def test_over_http(name: str, tmp_path: Path) -> None:
    """The same calls over HTTP, in every revision."""
    async with offered(name, tmp_path) as (server, tool, arguments), over_http(server) as address:
        for revision in REVISIONS:
            async with Client(address, revision=revision) as client:
                assert client.revision == revision
                await client.list_tools()
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, result.text


@pytest.mark.parametrize("name", WRONG)
def test_a_setting_that_makes_no_sense_is_told_by_the_command(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`interlock serve NAME` ends with one line, which names the variable where the words do not
    say more.
    """
    setting, value, words = WRONG[name]
    monkeypatch.setenv(f"INTERLOCK_{name.upper()}_{setting}", value)
    ended = CliRunner().invoke(serve, [name])
    assert ended.exit_code == 1
    assert words in ended.output
    assert name == "time" or f"INTERLOCK_{name.upper()}_{setting}={value}: " in ended.output
    assert ended.output.count("\n") == 1
