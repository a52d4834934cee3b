"""Apps of a server: their pages, the tools that show results in them, and what clients without apps
get.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    Answers,
    Audio,
    CallToolResult,
    Client,
    ClientSettings,
    Context,
    Csp,
    Extension,
    Image,
    McpError,
    Progress,
    ResourceLink,
    Server,
    TextContent,
    ToolResult,
)
from interlock.types import APP_MIME_TYPE, UI_EXTENSION
from interlock.wire.revisions import REVISIONS
from tests.server.by_hand import call, listed

PAGE = "<!doctype html>\n<title>Board</title>\n<p>A board"
DECLARED = {UI_EXTENSION: {"mimeTypes": [APP_MIME_TYPE]}}
# The revisions in which lists and contents have `_meta`.
WITH_META = REVISIONS[2:]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page on the disk."""
    path = tmp_path / "board.html"
    path.write_text(PAGE, encoding="utf-8")
    return path


async def show(text: str = "it") -> str:
    """Show something on the board."""
    return f"shown {text}"


async def refresh() -> str:
    """Refresh the board."""
    return "fresh"


def boards(page: Path, **options: Any) -> Server:
    """A server with an app: a tool for everybody, and one for the app alone."""
    server = Server("boards")
    server.tool(show)
    server.tool(refresh)
    server.app(page, tool=show, **options).link(refresh, visibility=("app",))
    return server


def client(server: Server, *, apps: bool = True, **options: Any) -> Client:
    """A client that shows apps, or does not."""
    return Client(server, answers=Answers(extensions=DECLARED if apps else None), **options)


CSP = Csp(
    connect=["https://api.example.com", "wss://live.example.com:8443"],
    resource=["https://*.example.com"],
    frame=["https://video.example.com"],
    base_uri=["https://cdn.example.com"],
)
UI = {
    "csp": {
        "connectDomains": ["https://api.example.com", "wss://live.example.com:8443"],
        "resourceDomains": ["https://*.example.com"],
        "frameDomains": ["https://video.example.com"],
        "baseUriDomains": ["https://cdn.example.com"],
    },
    "permissions": {"camera": {}, "clipboardWrite": {}},
    "domain": "boards.example.com",
    "prefersBorder": True,
}


@pytest.mark.parametrize("revision", WITH_META)
async def test_the_page_says_in_list_and_read_what_it_uses(page: Path, revision: str) -> None:
    """URI, type, origins and permissions are the same in both (`APP-03`, `APP-35`)."""
    server = boards(
        page,
        title="A board",
        csp=CSP,
        permissions=("camera", "clipboardWrite"),
        domain="boards.example.com",
        prefers_border=True,
    )
    async with client(server, revision=revision) as opened:
        (listed,) = await opened.list_resources()
        (read,) = (await opened.read_resource("ui://boards/board")).contents
    assert (listed.uri, listed.name, listed.title) == ("ui://boards/board", "board", "A board")
    assert listed.mime_type == read.mime_type == APP_MIME_TYPE
    assert listed.meta == read.meta == {"ui": UI}
    assert read.text == PAGE


@pytest.mark.parametrize("revision", WITH_META)
async def test_the_tool_names_the_page_and_who_may_call_it(page: Path, revision: str) -> None:
    """By `_meta.ui`; the default of the visibility is left out (`APP-04`)."""
    async with client(boards(page), revision=revision) as opened:
        metas = {tool.name: tool.meta for tool in await opened.list_tools()}
    assert metas == {
        "show": {"ui": {"resourceUri": "ui://boards/board"}},
        "refresh": {"ui": {"resourceUri": "ui://boards/board", "visibility": ["app"]}},
    }


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_without_apps_has_the_text_and_no_tool_of_the_page(
    page: Path, revision: str
) -> None:
    """Models do not see what only the page calls; results have text (`APP-02`, `APP-05`,
    `APP-36`).
    """
    async with client(boards(page), apps=False, revision=revision) as opened:
        assert [tool.name for tool in await opened.list_tools()] == ["show"]
        assert (await opened.call_tool("show")).text == "shown it"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_with_apps_sees_and_calls_all(page: Path, revision: str) -> None:
    """But under revisions without `_meta` of tools, where it could not tell who a tool is for
    (`APP-34`).
    """
    async with client(boards(page), revision=revision) as opened:
        seen = ["show", "refresh"] if revision in WITH_META else ["show"]
        assert [tool.name for tool in await opened.list_tools()] == seen
        assert (await opened.call_tool("refresh")).text == "fresh"
        assert (opened.server_capabilities.extensions or {}) == {UI_EXTENSION: {}}


async def test_lists_for_one_kind_of_client_are_not_given_to_the_other(page: Path) -> None:
    """Both are kept as bytes, in pages, and no cache between may share them."""
    server = boards(page)
    server.page_size = 1
    async with client(server) as having, client(server, apps=False) as without:
        for _ in range(2):
            assert [tool.name for tool in await having.list_tools()] == ["show", "refresh"]
            assert [tool.name for tool in await without.list_tools()] == ["show"]
        server.tool(later_tool())
        assert [tool.name for tool in await having.list_tools()] == ["show", "refresh", "later"]
        assert [tool.name for tool in await without.list_tools()] == ["show", "later"]
    assert (await listed(server, "tools/list"))["cacheScope"] == "private"


def later_tool() -> Callable[[], Any]:
    """A tool that is added while clients are there."""

    async def later() -> str:
        return "later"

    return later


@pytest.mark.parametrize(
    "declared, sees",
    [
        ({UI_EXTENSION: {"mimeTypes": [APP_MIME_TYPE, "text/x"]}}, True),
        ({UI_EXTENSION: {}}, True),  # against the specification, but meant well
        ({UI_EXTENSION: {"mimeTypes": ["text/x"]}}, False),
        ({"com.example/ui": {"mimeTypes": [APP_MIME_TYPE]}}, False),
        (None, False),
    ],
)
async def test_what_counts_as_having_apps(page: Path, declared: Any, sees: bool) -> None:
    """The extension with the MIME type of apps (`APP-02`, `APP-36`)."""
    async with Client(boards(page), answers=Answers(extensions=declared)) as opened:
        names = [tool.name for tool in await opened.list_tools()]
    assert ("refresh" in names) is sees


async def test_a_server_without_apps_does_not_declare_them() -> None:
    """And one whose author declares the extension by hand keeps the author's settings (`APP-34`,
    `EXT-05`).
    """
    async with client(Server("plain")) as opened:
        assert opened.server_capabilities.extensions is None
    by_hand = Server("by hand", extensions=[Extension(UI_EXTENSION, settings={"a": 1})])
    async with client(by_hand) as opened:
        assert opened.server_capabilities.extensions == {UI_EXTENSION: {"a": 1}}


async def test_the_page_is_read_anew_each_time(page: Path) -> None:
    """What the author saves is what the next reader gets; a page that was removed is not found."""
    async with client(boards(page), settings=ClientSettings(cache=False)) as opened:
        page.write_text(PAGE + " with pins", encoding="utf-8")
        (read,) = (await opened.read_resource("ui://boards/board")).contents
        assert read.text == PAGE + " with pins"
        page.unlink()
        with pytest.raises(McpError, match="Resource not found"):
            await opened.read_resource("ui://boards/board")


async def test_a_relative_path_begins_beside_the_tool(
    tmp_path: Path, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the working folder: a host starts servers anywhere."""
    (tmp_path / "ui").mkdir()
    page.rename(tmp_path / "ui" / "board.html")
    (tmp_path / "app_beside.py").write_text(
        "from interlock import Server\n"
        "server = Server('my boards!', '1')\n"
        "@server.tool\n"
        "def show() -> str:\n    return 'shown'\n"
        "app = server.app('ui/board.html', tool='show')\n",
        encoding="utf-8",
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.syspath_prepend(str(tmp_path))
    import app_beside  # type: ignore[import-not-found]  # written by the lines above

    assert app_beside.app.uri == "ui://my-boards/board"
    async with client(app_beside.server) as opened:
        assert (await opened.read_resource(app_beside.app.uri)).contents[0].text == PAGE


# What is refused.


def nothing() -> None:
    """Has no result."""


def never() -> Image:
    """Shows a picture only."""
    raise AssertionError


def several() -> list[Image | Audio]:
    """Shows pictures and sounds only."""
    raise AssertionError


def perhaps() -> ResourceLink | None:
    """Shows a link, or nothing."""
    raise AssertionError


async def stream() -> AsyncIterator[Progress | Image]:
    """Shows progress, then a picture."""
    yield Progress(1)


def unannotated():
    """Does not say what it returns."""
    return "text"


@pytest.mark.parametrize(
    "function, words",
    [
        (nothing, "nothing returns no text"),
        (never, "never returns no text"),
        (several, "several returns no text"),
        (perhaps, "perhaps returns no text"),
        (stream, "stream returns no text"),
        (unannotated, "unannotated does not say what it returns"),
    ],
)
def test_a_tool_that_cannot_answer_in_text_is_refused(
    page: Path, function: Callable[..., Any], words: str
) -> None:
    """Where its author makes the app; nothing is half done then (`APP-05`)."""
    server = Server("boards")
    server.tool(function)
    with pytest.raises(TypeError, match=words):
        server.app(page, tool=function)
    assert len(server.resources) == 0
    assert server.capabilities().extensions is None
    assert server.tools.all()[0].listing.meta is None
    server.app(page, tool=function, visibility=["app"])  # the page gets what the page wants


def data() -> dict[str, int]:
    """Data are text too."""
    return {"pins": 3}


def both() -> ToolResult[dict[str, int]]:
    """Data, and words."""
    return ToolResult({"pins": 3}, "Three pins.")


def mixed() -> list[Image | str]:
    """A picture with a caption."""
    return ["A caption."]


def vague() -> Any:
    """Anything."""
    return {"pins": 3}


def whole() -> CallToolResult:
    """A finished result."""
    return CallToolResult(content=[TextContent("whole")])


def raw_bytes() -> bytes:
    """Bytes may be a text."""
    return b"text"


def failed() -> CallToolResult:
    """An error needs no text."""
    return CallToolResult(content=[], is_error=True)


@pytest.mark.parametrize("function", [show, data, both, mixed, vague, whole, failed])
async def test_results_pass_as_they_are(page: Path, function: Callable[..., Any]) -> None:
    """A tool with an app answers as it did without one."""
    plain = Server("boards")
    plain.tool(function)
    with_app = Server("boards")
    with_app.tool(function)
    with_app.app(page, tool=function)
    name = function.__name__
    assert await call(with_app, name) == await call(plain, name)


def silent() -> CallToolResult:
    """A finished result without text."""
    return CallToolResult(content=[])


def blank() -> str:
    """White space is not an answer."""
    return " \n"


def pictured() -> ToolResult[dict[str, int]]:
    """Data, and a picture in the place of their text."""
    return ToolResult({"pins": 3}, Image(data=b"\x89PNG\r\n\x1a\n"))


@pytest.mark.parametrize("function", [silent, blank, pictured])
async def test_a_result_without_text_is_an_error(page: Path, function: Callable[..., Any]) -> None:
    """What an annotation does not tell is found when the tool answers (`APP-05`)."""
    server = Server("boards")
    server.dev = True
    server.tool(function)
    server.app(page, tool=function)
    result = await call(server, function.__name__)
    assert result.is_error
    assert "it has no text, and hosts without apps" in result.text


def test_bytes_may_be_text(page: Path) -> None:
    """So a tool that returns them can have an app."""
    server = Server("boards")
    server.tool(raw_bytes)
    assert server.app(page, tool=raw_bytes).uri == "ui://boards/board"


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"tool": refresh}, ValueError, "refresh is not a tool of this server: add it with"),
        ({"tool": "other"}, ValueError, "'other' is not a tool of this server"),
        ({"uri": "https://example.com/board"}, ValueError, "must begin with ui://"),
        ({"visibility": ()}, ValueError, "visibility is empty"),
        ({"visibility": ("model", "user")}, ValueError, "visibility cannot be 'user'"),
        ({"visibility": "app"}, TypeError, r"visibility is a list of names: \['app'\]"),
        ({"permissions": ("usb",)}, ValueError, "permissions cannot be 'usb'; there are camera"),
    ],
)
def test_options_that_cannot_be(
    page: Path, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    """Each is refused where it is written, and nothing is half done."""
    server = Server("boards")
    server.tool(show)
    with pytest.raises(error, match=words):
        server.app(page, **{"tool": show, **options})
    assert len(server.resources) == 0
    assert server.tools.all()[0].listing.meta is None


@pytest.mark.parametrize(
    "content, words",
    [
        (b"<p>no document", "is not an HTML5 document: it must begin with <!doctype html>"),
        (b"<!doctype html PUBLIC '-//W3C//DTD HTML 4.01//EN'>", "is not an HTML5 document"),
        (b"", "is not an HTML5 document"),
        (b"<!doctype html>\xff", "is not in UTF-8"),
    ],
)
def test_files_that_are_no_page(page: Path, content: bytes, words: str) -> None:
    """The content must be an HTML5 document (`APP-03`)."""
    page.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        boards(page)


@pytest.mark.parametrize(
    "content", ["<!DOCTYPE HTML>", "\ufeff<!-- a -->\n<!doctype  html >", "\n<!doctype html><p>"]
)
def test_pages_in_other_spellings(page: Path, content: str) -> None:
    """White space, comments and the byte order mark may stand before the doctype."""
    page.write_text(content, encoding="utf-8")
    assert len(boards(page).resources) == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """The error names the path that was tried."""
    with pytest.raises(FileNotFoundError, match=r"nothing\.html for the app of the tool show"):
        boards(tmp_path / "nothing.html")


def test_a_tool_has_one_app(page: Path, tmp_path: Path) -> None:
    """A second page for it is refused; the same page is linked twice without harm."""
    server = boards(page)
    other = tmp_path / "other.html"
    other.write_text(PAGE, encoding="utf-8")
    with pytest.raises(ValueError, match="show shows its results in ui://boards/board already"):
        server.app(other, tool=show)
    with pytest.raises(ValueError, match="there is a resource 'ui://boards/board' already"):
        server.app(page, tool=show)


def test_a_function_of_two_tools_is_named(page: Path) -> None:
    """Which of them is meant, nobody can know."""
    server = Server("boards")
    server.tool(show)
    server.tool("again")(show)
    with pytest.raises(ValueError, match="show is the function of several tools: name one of show"):
        server.app(page, tool=show)
    assert server.app(page, tool="again").uri == "ui://boards/board"


async def test_other_metadata_of_the_tool_stay(page: Path) -> None:
    """Tags, keys of the author's and other keys of `ui`."""
    server = Server("boards")
    server.tool(tags=["a"], meta={"example.com/x": 1, "ui": {"y": 2}})(show)
    server.app(page, tool=show)
    async with client(server) as opened:
        (tool,) = await opened.list_tools()
    assert tool.meta == {
        "example.com/x": 1,
        "interlock/tags": ["a"],
        "ui": {"y": 2, "resourceUri": "ui://boards/board"},
    }


async def test_a_tool_with_an_app_can_ask(page: Path) -> None:
    """The check of its text leaves questions alone."""
    server = Server("boards")

    @server.tool
    async def clear(ctx: Context) -> str:
        """Clear the board."""
        return "cleared" if await ctx.confirm("Clear the board?") else "kept"

    server.app(page, tool=clear)
    async with Client(server, elicit=lambda _: {"confirm": True}) as opened:
        assert (await opened.call_tool("clear")).text == "cleared"


@pytest.mark.parametrize(
    "name, origin",
    [
        ("connect", "https://a.example.com/path"),
        ("connect", "'self'"),
        ("connect", "*"),
        ("connect", "https://a.example.com; script-src *"),
        ("connect", "api.example.com"),
        ("connect", 7),
        ("resource", "wss://a.example.com"),
        ("frame", "javascript:alert(1)"),
        ("base_uri", "https://user@a.example.com"),
        ("resource", "https://*"),
    ],
)
def test_what_is_no_origin(name: str, origin: Any) -> None:
    """Paths, keywords and more than one directive are refused where they are written (`APP-35`)."""
    with pytest.raises(ValueError, match=rf"Csp\({name}=...\): .* is not an origin such as"):
        Csp(**{name: [origin]})


def test_one_origin_in_the_place_of_a_list() -> None:
    """Its letters would be origins."""
    with pytest.raises(TypeError, match=r"takes a list of origins: connect=\['https://a"):
        Csp(connect="https://a.example.com")


def test_origins_for_development() -> None:
    """Loopback, plain HTTP and addresses: hosts decide whether they allow them."""
    Csp(connect=["http://localhost:5173", "ws://127.0.0.1:9", "http://[::1]:80"])
