"""`interlock migrate`: what it rewrites runs, and what it cannot rewrite has a mark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import Result

from interlock import Client
from interlock.cli.migrate.migration import migrate

Command = Callable[..., Result]


def rewritten(code: str) -> tuple[str, list[str]]:
    """The new text of a file, and its marks."""
    path = Path("server.py")
    changed = migrate({path: code})
    if path not in changed:
        return code, []
    return changed[path].after, [words for _, words in changed[path].marks]


def loaded(code: str) -> ModuleType:
    """The module that a text is."""
    module = ModuleType("migrated")
    exec(compile(code, "migrated.py", "exec"), module.__dict__)
    return module


FASTMCP = '''
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.types import Image
from mcp.types import TextContent, ToolAnnotations

mcp = FastMCP("Shop", instructions="Buy.", mask_error_details=False)


@mcp.tool(annotations=ToolAnnotations(readOnlyHint=True), tags={"stock"})
async def count(name: str, ctx: Context) -> int:
    """Count an item."""
    await ctx.info(f"counting {name}")
    if name == "none":
        raise ValueError("There is no such item")
    await ctx.report_progress(1, 1)
    return len(name)


@mcp.tool
def label() -> list[TextContent]:
    return [TextContent(type="text", text="new")]


@mcp.resource("shop://{item}", mime_type="text/plain")
def item(item: str) -> str:
    return item


@mcp.prompt
def ask(topic: str) -> str:
    return f"What about {topic}?"


if __name__ == "__main__":
    mcp.run(transport="http", host="127.0.0.1", port=9000)
'''


async def test_a_server_with_decorators() -> None:
    """Tools, a template and a prompt do the same, and an error keeps its message."""
    code, marks = rewritten(FASTMCP)
    assert marks == []
    assert "fastmcp" not in code.replace("FastMCP", "")
    assert 'mcp.run("http", host="127.0.0.1", port=9000)' in code
    async with Client(loaded(code).mcp) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert tools["count"].annotations is not None
        assert tools["count"].annotations.read_only_hint is True
        assert (await client.call_tool("count", {"name": "rose"})).value() == 4
        failed = await client.call_tool("count", {"name": "none"})
        assert (failed.is_error, failed.text) == (True, "There is no such item")
        assert (await client.call_tool("label")).text == "new"
        assert (await client.read_resource("shop://bed")).contents[0].text == "bed"
        prompt = await client.get_prompt("ask", {"topic": "tea"})
        assert prompt.messages[0].content.type == "text"
        assert client.instructions == "Buy."


LOW_LEVEL = """
import asyncio
from contextlib import asynccontextmanager

import mcp.server.stdio
import mcp.types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions


@asynccontextmanager
async def lifespan(server):
    yield {"greeting": "Hello"}


server = Server("low", lifespan=lifespan)


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    return [
        types.Tool(
            name="greet",
            description="Greet.",
            inputSchema={
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
        )
    ]


@server.call_tool()
async def call_tool(name: str, arguments: dict) -> list[types.TextContent]:
    if arguments["name"] == "nobody":
        raise ValueError("Nobody is there")
    greeting = server.request_context.lifespan_context["greeting"]
    return [types.TextContent(type="text", text=f"{greeting}, {arguments['name']}")]


async def main():
    async with mcp.server.stdio.stdio_server() as (read, write):
        await server.run(
            read,
            write,
            InitializationOptions(
                server_name="low",
                server_version="1",
                capabilities=server.get_capabilities(NotificationOptions(), {}),
            ),
        )


if __name__ == "__main__":
    asyncio.run(main())
"""
NEWEST_LOW_LEVEL = """
from mcp.server import Server, ServerRequestContext
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)


async def list_tools(ctx: ServerRequestContext, params: PaginatedRequestParams | None):
    return ListToolsResult(
        tools=[Tool(name="greet", input_schema={"type": "object", "required": ["name"]})]
    )


async def call_tool(ctx: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
    args = params.arguments or {}
    text = f"Hello, {args['name']} by {params.name}"
    return CallToolResult(content=[TextContent(type="text", text=text)])


server = Server("low", on_list_tools=list_tools, on_call_tool=call_tool)
"""


async def test_a_low_level_server() -> None:
    """One handler for all tools becomes a tool for each entry of the list; the run is plain."""
    code, marks = rewritten(LOW_LEVEL)
    assert marks == []
    assert "def main():\n    server.run()" in code
    assert code.endswith("    main()\n")
    async with Client(loaded(code).server) as client:
        assert (await client.call_tool("greet", {"name": "Ada"})).text == "Hello, Ada"
        missing = await client.call_tool("greet", {})
        assert missing.is_error
        assert (await client.call_tool("greet", {"name": "nobody"})).text == "Nobody is there"


async def test_a_low_level_server_of_the_sdk_2() -> None:
    """Its handlers get a context and params, and its lists are results."""
    code, marks = rewritten(NEWEST_LOW_LEVEL)
    assert marks == []
    async with Client(loaded(code).server) as client:
        result = await client.call_tool("greet", {"name": "Ada"})
    assert result.text == "Hello, Ada by greet"


CLIENTS = """
import asyncio
import sys

from fastmcp import Client as FastClient
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client


async def sample(context, params: types.CreateMessageRequestParams):
    return types.CreateMessageResult(
        role="assistant", content=types.TextContent(type="text", text="yes"), model="m"
    )


async def by_session(file):
    params = StdioServerParameters(command=sys.executable, args=[file], env=None)
    async with stdio_client(params) as (read, write):
        async with ClientSession(read, write, sampling_callback=sample) as session:
            await session.initialize()
            tools = await session.list_tools()
            result = await session.call_tool("add", arguments={"a": 1, "b": 2})
            return [tool.name for tool in tools.tools], result.structuredContent


async def in_memory(server):
    async with FastClient(server) as client:
        result = await client.call_tool("add", {"a": 1, "b": 2})
        contents = await client.read_resource("data://one")
        return result.data, contents[0].text
"""
SERVER = """
from interlock import Server

server = Server("s")

@server.tool
def add(a: int, b: int) -> int:
    return a + b

@server.resource("data://one")
def one() -> str:
    return "1"

if __name__ == "__main__":
    server.run()
"""


async def test_clients(tmp_path: Path) -> None:
    """A session over stdio is a Client of its command; lists, data and contents read the same."""
    code, marks = rewritten(CLIENTS)
    assert marks == []
    module = loaded(code)
    file = tmp_path / "server.py"
    file.write_text(SERVER, encoding="utf-8")
    assert await module.by_session(str(file)) == (["add"], {"result": 3})
    assert await module.in_memory(loaded(SERVER).server) == (3, "1")


MARKS: dict[str, tuple[str, str]] = {
    "authorization": (
        'from mcp.server.fastmcp import FastMCP\nm = FastMCP("x", auth=1)\n',
        "auth: authorization works in another way",
    ),
    "an unknown option": (
        'from fastmcp import FastMCP\nm = FastMCP("x", novel=1)\n',
        "Server has no option 'novel'",
    ),
    "an unknown name": (
        "from fastmcp.novel import Thing\nThing()\n",
        "Thing: Interlock has nothing of this name from fastmcp.novel",
    ),
    "an unknown method of a context": (
        'from fastmcp import Context, FastMCP\nm = FastMCP("x")\n@m.tool\n'
        "def f(ctx: Context): ctx.novel()\n",
        "ctx.novel does not exist",
    ),
    "elicitation": (
        'from fastmcp import Context, FastMCP\nm = FastMCP("x")\n@m.tool\n'
        "async def f(ctx: Context): await ctx.elicit('Name?', response_type=str)\n",
        "ctx.elicit: ctx.elicit returns the value",
    ),
    "a mount": (
        'from fastmcp import FastMCP\na = FastMCP("a")\nb = FastMCP("b")\na.mount(b, "x")\n',
        "names are PREFIX__NAME",
    ),
    "prompts of a low-level server": (
        'from mcp.server import Server\ns = Server("x")\n@s.list_prompts()\n'
        "async def f(): return []\n",
        "write one function for each prompt",
    ),
    "errors of a helper": (
        'from fastmcp import FastMCP\nm = FastMCP("x")\n'
        'def h(): raise ValueError("secret")\n@m.tool\ndef f(): h()\n',
        "raise ToolError where the model must read it",
    ),
    "a client that raises": (
        'from fastmcp import Client\nasync def f():\n    async with Client("x.py") as c:\n'
        '        await c.call_tool("t")\n',
        "call_tool of FastMCP raises ToolError",
    ),
    "a transport that is chosen at run time": (
        'import sys\nfrom fastmcp import FastMCP\nm = FastMCP("x")\nm.run(transport=sys.argv[1])\n',
        'run() knows "stdio" and "http"',
    ),
}


@pytest.mark.parametrize("name", MARKS)
def test_what_a_person_must_look_at_has_a_mark(name: str) -> None:
    """The mark says why; the file stays valid Python."""
    code, words = MARKS[name]
    after, marks = rewritten(code)
    assert any(words in mark for mark in marks), marks
    compile(after, "after.py", "exec")


def test_the_command_prints_a_diff_and_writes(interlock: Command, home: Path) -> None:
    """Without --write nothing changes; a second run has nothing to do."""
    file = home / "shop.py"
    file.write_text(FASTMCP, encoding="utf-8")
    shown = interlock("migrate", file, "--no-prove")
    assert shown.exit_code == 0, shown.output
    assert "-from fastmcp import Context, FastMCP" in shown.stdout
    assert file.read_text(encoding="utf-8") == FASTMCP
    assert interlock("migrate", home, "--no-prove", "--write").exit_code == 0
    assert "from interlock import" in file.read_text(encoding="utf-8")
    again = interlock("migrate", home, "--no-prove")
    assert "uses another SDK" in again.stdout


def test_imports_across_files_are_followed(tmp_path: Path) -> None:
    """A server that another file imports is known there, and so is a function that runs it."""
    run: Any = LOW_LEVEL.partition("if __name__")[0]
    files = {
        tmp_path / "low.py": run,
        tmp_path / "start.py": "import asyncio\n\nimport mcp\nfrom low import main\n\n"
        "asyncio.run(main())\n",
    }
    changed = migrate(files)
    assert "\nmain()\n" in changed[tmp_path / "start.py"].after


def test_files_in_other_encodings(interlock: Command, home: Path) -> None:
    """One that has nothing to migrate is left alone; any other is named."""
    folder = home / "project"
    folder.mkdir()
    (folder / "server.py").write_text('import fastmcp\n\nmcp = fastmcp.FastMCP("a")\n')
    (folder / "other.py").write_bytes("# -*- coding: latin-1 -*-\nNAME = 'é'\n".encode("latin-1"))
    assert '+mcp = Server("a")' in interlock("migrate", str(folder), "--no-prove").stdout
    (folder / "other.py").write_bytes("# -*- coding: latin-1 -*-\n# fastmcp é\n".encode("latin-1"))
    refused = interlock("migrate", str(folder), "--no-prove")
    assert refused.exit_code == 1
    assert "other.py is not in UTF-8: save it as UTF-8" in refused.stderr
