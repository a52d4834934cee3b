"""From functions and words to features: names, descriptions, sizes, MIME types, and what cannot be
one.
"""

from __future__ import annotations

import functools
import inspect
import logging
import typing
from pathlib import Path
from typing import Any

import pytest

from interlock import Icon, Server, ToolAnnotations
from interlock import types as t
from interlock.server.catalogue import factories
from tests.server.by_hand import listed, read, text


async def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    And say what comes of it.

    Args:
        a: The first one.
        b: The other one.
    """
    return a + b


class Adder:
    """Adds what it was made with."""

    def __init__(self, more: int) -> None:
        self.more = more

    async def add(self, a: int) -> int:
        """Add to it."""
        return a + self.more

    async def __call__(self, a: int) -> int:
        """Add by calling."""
        return a + self.more


def only_tool(server: Server) -> t.Tool:
    (tool,) = server.tools
    return tool.listing


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "x" * 64, "x" * 128, "admin/tools/list", "0"])
async def test_names_of_tools(name: str):
    """1 to 128 of A-Z a-z 0-9 _ - . and, because there are servers that have it, / (`TOL-19`,
    `X-12`).
    """
    server = Server("making")
    server.tool(name)(add)
    assert [tool["name"] for tool in (await listed(server, "tools/list"))["tools"]] == [name]
    assert await text(server, name, {"a": 1}) == "2"


@pytest.mark.parametrize("name", ["x" * 129, "two words", "größe", "a:b", "a\n", "a,b", "[]"])
def test_names_that_no_tool_can_have(name: str):
    """They are refused with words that say what is allowed (`TOL-19`)."""
    with pytest.raises(
        ValueError,
        match="cannot be the name of a tool: it has 1 to 128 of the characters A-Z a-z 0-9 _ - . /",
    ):
        Server("making").tool(name)(add)


@pytest.mark.parametrize(
    "name, warned", [("x" * 64, False), ("a.b-c_d", False), ("x" * 65, True), ("a/b", True)]
)
def test_names_that_some_clients_do_not_take(
    name: str, warned: bool, caplog: pytest.LogCaptureFixture
):
    """They are legal, and the author is told (`X-12`)."""
    with caplog.at_level(logging.WARNING, "interlock.server"):
        Server("making").tool(name)(add)
    assert (
        f"the tool name {name!r} is legal, but some models and clients take only 64" in caplog.text
    ) is warned


@pytest.mark.parametrize(
    "function, name, description",
    [
        (add, "add", "Add two numbers.\n\nAnd say what comes of it."),
        (Adder(1).add, "add", "Add to it."),
        (functools.partial(add, b=5), "add", "Add two numbers.\n\nAnd say what comes of it."),
    ],
)
async def test_names_and_words_of_functions(function: Any, name: str, description: str):
    """Functions, methods and partials bring their own."""
    server = Server("making")
    server.add_tool(function)
    assert (only_tool(server).name, only_tool(server).description) == (name, description)


async def test_functions_without_a_name():
    """Lambdas and callable objects are given one, and then are tools like others."""
    server = Server("making")
    for nameless in (lambda a: a, Adder(1)):
        with pytest.raises(ValueError, match="has no name of its own; give it one"):
            server.add_tool(nameless)
        with pytest.raises(ValueError, match="has no name of its own; give it one"):
            server.add_prompt(nameless)
    server.add_tool(Adder(2), name="called")
    server.add_tool(lambda a: a, name="same", description="Give it back.")
    tools = (await listed(server, "tools/list"))["tools"]
    assert [(tool["name"], tool["description"]) for tool in tools] == [
        ("called", "Add by calling."),
        ("same", "Give it back."),
    ]
    assert await text(server, "called", {"a": 1}) == "3"
    assert await text(server, "same", {"a": 1}) == "1"
    await server.aclose()


async def test_everything_that_can_be_said_of_a_tool():
    """All of it is listed as it was given; tags go into `_meta`."""
    server = Server("making")
    icon = Icon(src="https://example.com/a.png", sizes=["48x48"])

    @server.tool(
        "sum",
        title="Sum",
        description="The sum.",
        annotations=ToolAnnotations(read_only_hint=True, title="Older title"),
        icons=[icon],
        meta={"example.com/a": 1},
        tags={"b", "a"},
        output_schema={"type": "object", "properties": {"sum": {"type": "integer"}}},
    )
    async def add(a: int) -> Any:
        return {"sum": a}

    (tool,) = (await listed(server, "tools/list"))["tools"]
    assert tool == {
        "name": "sum",
        "title": "Sum",
        "description": "The sum.",
        "annotations": {"readOnlyHint": True, "title": "Older title"},
        "icons": [{"src": "https://example.com/a.png", "sizes": ["48x48"]}],
        "_meta": {"example.com/a": 1, "interlock/tags": ["a", "b"]},
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": False,
        },
        "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}},
    }


def test_a_description_may_be_empty_on_purpose():
    """The author's own words stand for the docstring's, also where they are none."""
    server = Server("making")
    server.add_tool(add, description="")
    assert only_tool(server).description == ""


async def test_an_output_schema_is_kept_to():
    """A result that is not as declared never leaves the server (`TOL-09`)."""
    server = Server("making")

    @server.tool(output_schema={"type": "object", "required": ["sum"]})
    async def add(good: bool) -> Any:
        return {"sum": 1} if good else {"total": 1}

    assert await text(server, "add", {"good": True}) == '{"sum":1}'
    with pytest.raises(AssertionError, match="gave a result that does not fit what it declares"):
        await text(server, "add", {"good": False})


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"timeout": 0}, ValueError, "the timeout of The tool add must be more than 0 seconds"),
        ({"timeout": -1}, ValueError, "the timeout of The tool add must be more than 0 seconds"),
        ({"concurrency": 0}, ValueError, "a limit lets at least one in"),
        ({"concurrency": 1, "queue": -1}, ValueError, "a queue is not shorter than nothing"),
        ({"output_schema": {"type": "strange"}}, ValueError, "the output schema cannot be used"),
        ({"input_schema": {"type": "object"}}, TypeError, "takes the arguments as one dict"),
        ({"name": 5}, TypeError, "a name is a string, not 5"),
        ({"colour": "red"}, TypeError, "unexpected keyword argument 'colour'"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], error: type[Exception], words: str):
    """It is said when the tool is made, and nothing is added."""
    server = Server("making")
    with pytest.raises(error, match=words):
        server.add_tool(add, **options)
    assert len(server.tools) == 0


# Resources.


async def resource_of(server: Server, uri: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        r for r in (await listed(server, "resources/list"))["resources"] if r["uri"] == uri
    )
    return found


@pytest.mark.parametrize(
    "uri, content, listing, made",
    [
        (
            "docs://a",
            "größe",
            ("a", "text/plain", 7),
            t.ResourceContents(uri="docs://a", mime_type="text/plain", text="größe"),
        ),
        (
            "docs://a.md",
            "# A",
            ("a.md", "text/markdown", 3),
            t.ResourceContents(uri="docs://a.md", mime_type="text/markdown", text="# A"),
        ),
        ("docs://x/y.bin", b"\x00\x01", ("y.bin", "application/octet-stream", 2), None),
        ("docs://x/y.png", b"\x00" * 5, ("y.png", "image/png", 5), None),
        ("docs://x/", "", ("x", "text/plain", 0), None),
        ("urn:a:b", "x", ("urn:a:b", "text/plain", 1), None),
    ],
)
async def test_content_that_is_data(
    uri: str, content: Any, listing: tuple[str, str, int], made: t.ResourceContents | None
):
    """Its name and MIME type come from the URI, its size in bytes from the content (`RES-02`,
    `RES-15`).
    """
    server = Server("making")
    server.add_resource(uri, content)
    found = await resource_of(server, uri)
    assert (found["name"], found["mimeType"], found["size"]) == listing
    if made is not None:
        assert (await read(server, uri)).contents == [made]


async def test_content_made_by_hand():
    """`ResourceContents` stands as it is."""
    server = Server("making")
    made = t.ResourceContents(uri="docs://a", mime_type="x/y", blob="AAE=", meta={"a": 1})
    server.add_resource("docs://a", made)
    assert (await resource_of(server, "docs://a"))["size"] == 2
    assert (await read(server, "docs://a")).contents == [made]


@pytest.mark.parametrize(
    "name, data, mime_type, text, blob",
    [
        ("notes.md", b"# Notes", "text/markdown", "# Notes", None),
        ("data.json", b"{}", "application/json", "{}", None),
        ("data.yaml", b"a: 1", "application/yaml", "a: 1", None),
        ("chart.svg", b"<svg/>", "image/svg+xml", "<svg/>", None),
        ("photo.png", b"\x89PNG", "image/png", None, "iVBORw=="),
        ("notes.txt", b"\xff\xfe", "text/plain", None, "//4="),
        ("strange.qqq", b"words", "text/plain", "words", None),
        ("strange.qqq", b"\x00", "application/octet-stream", None, "AA=="),
    ],
)
async def test_content_that_is_a_file(
    tmp_path: Path, name: str, data: bytes, mime_type: str, text: str | None, blob: str | None
):
    """Its name, type and size are the file's; text is sent as text where it is text, all else as
    base64 (`RES-07`).
    """
    path = tmp_path / name
    path.write_bytes(data)
    server = Server("making")
    server.add_resource("docs://it", path)
    found = await resource_of(server, "docs://it")
    assert (found["name"], found["size"]) == (name, len(data))
    assert found.get("mimeType", mime_type) == mime_type
    assert (await read(server, "docs://it")).contents == [
        t.ResourceContents(uri="docs://it", mime_type=mime_type, text=text, blob=blob)
    ]
    await server.aclose()


async def test_a_file_is_read_each_time(tmp_path: Path):
    """It may change, and go; a file that was never there is refused at once."""
    path = tmp_path / "notes.txt"
    server = Server("making")
    with pytest.raises(FileNotFoundError):
        server.add_resource("docs://notes", path)
    for words in ("one", "another"):
        path.write_text(words)
        server.add_resource("docs://notes", path, replace=True)
        assert (await read(server, "docs://notes")).contents[0].text == words
    path.write_text("and now")
    assert (await read(server, "docs://notes")).contents[0].text == "and now"
    path.unlink()
    with pytest.raises(t.McpError, match="Resource not found: docs://notes") as caught:
        await read(server, "docs://notes")
    assert caught.value.code == t.INVALID_PARAMS
    await server.aclose()


async def test_everything_that_can_be_said_of_a_resource():
    """All of it is listed as it was given (`RES-14`, `RES-15`)."""
    server = Server("making")
    annotations = t.Annotations(audience=["user"], priority=0.5)

    @server.resource(
        "docs://a",
        name="A",
        title="The A",
        description="Words.",
        mime_type="x/y",
        size=7,
        annotations=annotations,
        tags=["t"],
        meta={"m": 1},
    )
    async def a() -> str:
        return ""

    assert await resource_of(server, "docs://a") == {
        "uri": "docs://a",
        "name": "A",
        "title": "The A",
        "description": "Words.",
        "mimeType": "x/y",
        "size": 7,
        "annotations": {"audience": ["user"], "priority": 0.5},
        "_meta": {"m": 1, "interlock/tags": ["t"]},
    }

    @server.resource(
        "docs://t/{name}.md",
        title="Some",
        description="Words.",
        annotations=annotations,
        tags=["t"],
    )
    async def some(name: str) -> str:
        return name

    assert (await listed(server, "resources/templates/list"))["resourceTemplates"] == [
        {
            "uriTemplate": "docs://t/{name}.md",
            "name": "some",
            "title": "Some",
            "description": "Words.",
            "mimeType": "text/markdown",
            "annotations": {"audience": ["user"], "priority": 0.5},
            "_meta": {"interlock/tags": ["t"]},
        }
    ]


async def test_functions_name_their_resources():
    """The function's name and docstring; a lambda's resource is named by the URI, a template's by
    itself.
    """
    server = Server("making")

    @server.resource("docs://intro")
    async def intro() -> str:
        """Read me first."""
        return ""

    server.add_resource("docs://other.md", lambda: "")
    server.add_resource("docs://t/{name}", lambda name: name)
    resources = (await listed(server, "resources/list"))["resources"]
    assert [(r["name"], r.get("description"), r.get("mimeType")) for r in resources] == [
        ("intro", "Read me first.", None),
        ("other.md", None, "text/markdown"),
    ]
    assert (await listed(server, "resources/templates/list"))["resourceTemplates"][0][
        "name"
    ] == "docs://t/{name}"


async def nothing() -> str:
    return ""


async def with_name(name: str) -> str:
    return name


async def with_more(name: str, other: str) -> str:
    return name


@pytest.mark.parametrize(
    "uri, content, error, words",
    [
        (
            "readme",
            "text",
            ValueError,
            "'readme' is no URI: it needs a scheme, as in 'docs://readme'",
        ),
        ("9://a", "text", ValueError, "is no URI"),
        ("{name}", with_name, ValueError, "is no URI"),
        ("docs://a b", "text", ValueError, "' ' at character 8 may not stand in a URI"),
        ("docs://{name", with_name, ValueError, "is never closed"),
        (
            "docs://{name}",
            "text",
            TypeError,
            r"docs://\{name\} is a template: it needs a function that reads what its variables"
            r" name",
        ),
        (
            "docs://a",
            with_name,
            TypeError,
            "the function for docs://a takes name, but the URI has no variables for that",
        ),
        (
            "docs://{name}",
            nothing,
            TypeError,
            r"the function for docs://\{name\} takes nothing, but the template's variables are"
            r" name",
        ),
        (
            "docs://{name}",
            with_more,
            TypeError,
            "takes name, other, but the template's variables are name",
        ),
        (
            "docs://{name}/{other}",
            with_name,
            TypeError,
            "takes name, but the template's variables are name, other",
        ),
    ],
)
def test_resources_that_cannot_be(uri: str, content: Any, error: type[Exception], words: str):
    """It is said when the resource is made, and nothing is added (`RES-12`, `RES-13`)."""
    server = Server("making")
    with pytest.raises(error, match=words):
        server.add_resource(uri, content)
    assert (len(server.resources), len(server.templates)) == (0, 0)


# Prompts.


async def test_everything_that_can_be_said_of_a_prompt():
    """All of it is listed as it was given."""
    server = Server("making")

    @server.prompt(
        "write",
        title="Write",
        description="Words.",
        icons=[Icon(src="https://example.com/a.png")],
        tags=["t"],
        meta={"m": 1},
    )
    async def compose(topic: str, length: int = 3) -> str:
        """Compose.

        Args:
            topic: What about.
        """
        return ""

    assert (await listed(server, "prompts/list"))["prompts"] == [
        {
            "name": "write",
            "title": "Write",
            "description": "Words.",
            "arguments": [
                {"name": "topic", "description": "What about.", "required": True},
                {"name": "length", "required": False},
            ],
            "icons": [{"src": "https://example.com/a.png"}],
            "_meta": {"m": 1, "interlock/tags": ["t"]},
        }
    ]


def test_prompts_that_cannot_be():
    """Options and parameters are checked when the prompt is made."""
    server = Server("making")

    async def many(*words: str) -> str:
        return ""

    with pytest.raises(TypeError, match="cannot be given by name"):
        server.add_prompt(many)
    with pytest.raises(
        ValueError, match="the timeout of The prompt nothing must be more than 0 seconds"
    ):
        server.add_prompt(nothing, timeout=0)
    assert len(server.prompts) == 0


def test_a_signature_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the arguments and for the result together."""
    read: list[str] = []

    def counting(module: Any, name: str) -> None:
        function = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, **named: (read.append(name), function(*given, **named))[1]
        )

    counting(inspect, "signature")
    counting(typing, "get_type_hints")
    counting(factories, "parse")
    server = Server("making")
    server.add_tool(add)
    assert sorted(read) == ["get_type_hints", "parse", "signature"]
