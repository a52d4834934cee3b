"""The catalogue snapshot: what breaks callers fails, what does not is reported, and a table says
which is which.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, Server
from interlock.testing import check_catalogue, take_catalogue
from interlock.testing.catalogue import condensed
from interlock.testing.drift import compare_catalogues, narrowed, weakened
from interlock.types import INTERNAL_ERROR, METHOD_NOT_FOUND, McpError

S, W, N, B = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))


def obj(required: str = "", /, **properties: Any) -> dict[str, Any]:
    """An object schema."""
    return {"type": "object", "properties": properties, "required": required.split()}


CLOSED = {"additionalProperties": False}
PERSON = {"$defs": {"P": obj("name", name=S)}, **obj("who", who={"$ref": "#/$defs/P"})}
OLDER_PERSON = {
    "$defs": {"P": obj("name age", name=S, age=W)},
    **obj("who", who={"$ref": "#/$defs/P"}),
}

NARROWED = [
    # before, after, what is said of it (nothing: it takes all it took)
    (obj(a=S), obj(a=S), []),
    (obj(a=S), obj(), ["the argument a is gone"]),
    (obj(a=S), obj("a", a=S), ["the argument a is required now"]),
    (obj(), obj("a", a=S), ["the argument a is required now"]),
    (obj("a", a=S), obj(a=S), []),
    (obj(), obj(a=S), []),
    (obj(a=N), obj(a=W), ["the argument a no longer takes number"]),
    (obj(a=W), obj(a=N), []),
    (obj(a={"type": ["string", "null"]}), obj(a=S), ["the argument a no longer takes null"]),
    (obj(a={"anyOf": [S, W]}), obj(a=S), ["the argument a no longer takes integer"]),
    (obj(a=S), obj(a={"anyOf": [W, S]}), []),
    (obj(a={"anyOf": [W, {"type": "null"}]}), obj(a={"anyOf": [N, {"type": "null"}]}), []),
    (obj(a={"enum": ["x", "y"]}), obj(a={"enum": ["x"]}), ["the argument a no longer takes 'y'"]),
    (obj(a={"enum": ["x"]}), obj(a={"enum": ["x", "y"]}), []),
    (obj(a=S), obj(a={"type": "string", "enum": ["x"]}), ["the argument a takes only 'x' now"]),
    (obj(a={"const": 1}), obj(a={"const": 2}), ["the argument a no longer takes 1"]),
    (obj(a=W), obj(a={**W, "minimum": 0}), ["the argument a has a tighter minimum: 0"]),
    (
        obj(a={**W, "minimum": 0}),
        obj(a={**W, "minimum": 1}),
        [("the argument a has a tighter minimum: 1 (it was 0)")],
    ),
    (obj(a={**W, "minimum": 1}), obj(a={**W, "minimum": 0}), []),
    (
        obj(a={**S, "maxLength": 9}),
        obj(a={**S, "maxLength": 5}),
        [("the argument a has a tighter maxLength: 5 (it was 9)")],
    ),
    (obj(a={**S, "maxLength": 5}), obj(a=S), []),
    (obj(a=S), obj(a={**S, "pattern": "^x"}), ["the argument a has another pattern: ^x"]),
    (obj(a={**S, "format": "date"}), obj(a=S), []),
    (
        obj(a={"type": "array", "items": N}),
        obj(a={"type": "array", "items": W}),
        [("the argument a[] no longer takes number")],
    ),
    (
        obj(a={"type": "array"}),
        obj(a={"type": "array", "items": S}),
        [("the argument a[] no longer takes")],
    ),
    (obj(a=obj(b=S)), obj(a=obj("b", b=S)), ["the argument a.b is required now"]),
    (obj(), {**obj(), **CLOSED}, ["it no longer takes members that it does not name"]),
    ({**obj(), **CLOSED}, obj(), []),
    (
        {**obj(), "additionalProperties": N},
        {**obj(), "additionalProperties": W},
        [("the argument * no longer takes number")],
    ),
    (PERSON, OLDER_PERSON, ["the argument who.age is required now"]),
    (OLDER_PERSON, {**PERSON, "$defs": {"P": obj("name", name=S, age=W)}}, []),
    (obj(a=True), obj(a=S), ["the argument a no longer takes"]),
    (obj(a=S), obj(a=True), []),
    (obj(a=S), obj(a=False), ["the argument a no longer takes string"]),
]


@pytest.mark.parametrize("before, after, said", NARROWED)
def test_what_breaks_callers(before: dict, after: dict, said: list[str]):
    """An argument that takes less than before."""
    found = list(narrowed(before, after))
    assert len(found) == len(said), found
    assert all(words in sentence for words, sentence in zip(said, found, strict=True)), found


WEAKENED = [
    (obj("a", a=S), obj("a", a=S, b=S), []),
    (obj("a", a=S), obj(), ["a of its result is gone"]),
    (obj("a", a=S), obj(a=S), ["a of its result may now be missing"]),
    (obj(a=S), obj("a", a=S), []),
    (obj(a=W), obj(a=N), ["a of its result may now be number"]),
    (obj(a=N), obj(a=W), []),
    (obj(a=S), obj(a={"anyOf": [S, {"type": "null"}]}), ["a of its result may now be null"]),
    (obj(a={"anyOf": [S, W]}), obj(a=S), []),
    (
        obj(a={"items": obj("b", b=S)}),
        obj(a={"items": obj(b=S)}),
        [("a[].b of its result may now be missing")],
    ),
    ({"type": "array"}, {"type": "object"}, ["its result may now be object"]),
    (OLDER_PERSON, PERSON, ["who.age of its result is gone"]),
]


@pytest.mark.parametrize("before, after, said", WEAKENED)
def test_what_breaks_readers(before: dict, after: dict, said: list[str]):
    """A result that promises less than before."""
    found = list(weakened(before, after))
    assert len(found) == len(said), found
    assert all(words in sentence for words, sentence in zip(said, found, strict=True)), found


_names = st.sampled_from("abc")
_leaves = st.sampled_from([S, W, N, B, {"enum": ["x", "y"]}, {**W, "minimum": 3}, {}, True])
schemas = st.recursive(
    _leaves,
    lambda inner: (
        st.builds(
            lambda properties, required: {
                "type": "object",
                "properties": properties,
                "required": sorted(required),
            },
            st.dictionaries(_names, inner, max_size=3),
            st.sets(_names, max_size=2),
        )
        | st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda *options: {"anyOf": list(options)}, inner, inner)
    ),
    max_leaves=6,
)


@given(schemas, schemas)
def test_rules_never_stumble(before: Any, after: Any):
    """Any two schemas can be compared, and none has drifted from itself."""
    list(narrowed(before, after))
    list(weakened(before, after))
    assert not list(narrowed(before, before))
    assert not list(weakened(after, after))


def make_server(*, version: int = 1) -> Server:
    """A server that changes from version to version."""
    server = Server("s")
    if version != 2:

        @server.tool
        async def old(a: int) -> int:
            return a

    if version == 3:

        @server.tool
        async def new() -> None:
            """New."""

    @server.prompt
    async def ask(topic: str, tone: str = "kind") -> str:
        return topic + tone

    server.add_resource("note://1", "x", description="One" if version == 1 else "Number one")
    if version != 2:
        server.resource("note://{n}/x")(lambda n: n)
    return server


async def test_a_snapshot_is_kept(tmp_path):
    """It is made where that is asked for, kept as long as nothing breaks, and made anew only on
    demand.
    """
    path = tmp_path / "catalogue.json"
    with pytest.raises(AssertionError, match="--interlock-update"):
        await check_catalogue(make_server(), path)
    assert not await check_catalogue(make_server(), path, update=True)
    saved = path.read_bytes()
    assert sorted(json.loads(saved)) == ["prompts", "resources", "templates", "tools"]
    assert not await check_catalogue(make_server(), path)

    found = await check_catalogue(make_server(version=3), path)
    assert found.compatible == ["tool new: it is new", "resource note://1: its description changed"]
    assert path.read_bytes() == saved

    with pytest.raises(
        AssertionError,
        match=r"(?s)tool old: it is gone\n.*template note://\{n\}/x: it is gone\nIf it is meant",
    ):
        await check_catalogue(make_server(version=2), path)
    assert path.read_bytes() == saved
    found = await check_catalogue(make_server(version=2), path, update=True)
    assert len(found.breaking) == 2
    assert not await check_catalogue(make_server(version=2), path)


async def test_a_client_will_do(tmp_path):
    """What a client sees is what its server offers, under any revision that has the words for
    it.
    """
    async with Client(make_server(), revision="2025-11-25") as client:
        assert await take_catalogue(client) == await take_catalogue(make_server())
    async with Client(Server("empty")) as client:
        assert await take_catalogue(client) == {
            "tools": {},
            "prompts": {},
            "resources": {},
            "templates": {},
        }


@pytest.mark.parametrize("missing", ["tools", "prompts", "resources", "resources/templates"])
@pytest.mark.parametrize("revision", ["2024-11-05", "2026-07-28"])
async def test_a_list_that_the_server_lacks_is_empty(missing, revision):
    """A server with hand-written handlers may lack any one list; the snapshot has the others."""
    server = make_server()

    @server.use
    def lacking(handler):
        async def handle(x):
            if x.method == f"{missing}/list":
                raise McpError(METHOD_NOT_FOUND, "Method not found")
            return await handler(x)

        return handle

    async with Client(server, revision=revision) as client:
        catalogue = await take_catalogue(client)
    empty = [name for name, items in catalogue.items() if not items]
    assert empty == [missing.rpartition("/")[2]]


async def test_any_other_error_of_a_list_is_an_error():
    """Only a method that is missing makes an empty list; a snapshot is never taken of half a
    server.
    """
    server = make_server()

    @server.use
    def failing(handler):
        async def handle(x):
            if x.method == "prompts/list":
                raise McpError(INTERNAL_ERROR, "The database is locked")
            return await handler(x)

        return handle

    with pytest.raises(McpError, match="database is locked"):
        await take_catalogue(server)


def test_prompts_and_tools_in_whole():
    """Each kind of change to each kind of feature."""
    tool = {"inputSchema": obj(a=S), "outputSchema": obj("b", b=S), "description": "x"}
    prompt = {"arguments": [{"name": "a", "required": True}, {"name": "b"}]}

    def changed(kind: str, old: Any, **new: Any) -> tuple[list[str], list[str]]:
        found = compare_catalogues(
            {kind: {"x": old}},
            {kind: {"x": {k: v for k, v in {**old, **new}.items() if v is not None}}},
        )
        return found.breaking, found.compatible

    assert changed("tools", tool) == ([], [])
    assert changed("tools", tool, description="y") == ([], ["tool x: its description changed"])
    assert changed("tools", tool, outputSchema=None) == (
        ["tool x: its results have no schema any more"],
        [],
    )
    assert changed("tools", tool, outputSchema=obj("b c", b=S, c=S)) == (
        [],
        ["tool x: what it gives has changed in a way that breaks nobody"],
    )
    assert changed("tools", tool, inputSchema=obj(a=S, c=S)) == (
        [],
        ["tool x: what it takes has changed in a way that breaks nobody"],
    )
    assert changed("tools", tool, inputSchema=obj()) == (["tool x: the argument a is gone"], [])
    assert changed("tools", tool, annotations={"readOnlyHint": True}) == (
        [],
        ["tool x: its annotations changed"],
    )
    assert changed("prompts", prompt, arguments=[{"name": "a", "required": True}]) == (
        ["prompt x: the argument b is gone"],
        [],
    )
    assert changed("prompts", prompt, arguments=[*prompt["arguments"], {"name": "c"}]) == (
        [],
        ["prompt x: the argument c is new"],
    )
    now = [
        {"name": "a", "required": True},
        {"name": "b", "required": True},
        {"name": "c", "required": True},
    ]
    assert changed("prompts", prompt, arguments=now)[0] == [
        "prompt x: the argument b is required now",
        "prompt x: the argument c is required now",
    ]
    assert compare_catalogues({"resources": {"x": {}}}, {}).breaking == ["resource x: it is gone"]


def test_a_snapshot_keeps_digests_of_words():
    """Schemas are kept without titles and descriptions, and a change of a word is still reported,
    as compatible.
    """

    def tool(description: str, about: str) -> dict[str, Any]:
        schema = obj("title", title={**S, "title": "Title", "description": about})
        return {"tools": {"add": {"description": description, "inputSchema": schema}}}

    long = "Adds two numbers, and answers with their sum as data and as words."
    kept = condensed(tool(long, "what to call it"))["tools"]["add"]
    assert kept["inputSchema"] == obj("title", title=S)
    assert kept["description"].startswith("sha256:")
    before = condensed(tool(long, "what to call it"))
    assert not compare_catalogues(before, condensed(tool(long, "what to call it")))
    changed = compare_catalogues(before, condensed(tool(long + " ", "what to name it")))
    assert changed.breaking == []
    assert changed.compatible == [
        "tool add: the words about its members changed",
        "tool add: its description changed",
    ]
