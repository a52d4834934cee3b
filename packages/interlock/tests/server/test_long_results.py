"""Long structured results: encoded once, checked in pieces, and the same on the wire as others."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Raw, Struct
from pydantic import BaseModel

from interlock import REVISIONS, CallToolResult, Client, Server, ToolResult
from interlock.exchange import AnyResult, Exchange, Handler
from interlock.typed import output as module
from interlock.typed.output import LONG_LIST, Output, OutputError, output_of
from tests.server.by_hand import call

MANY = LONG_LIST * 3 + 1
PIECES = 4


@dataclass
class Row:
    id: int
    name: str
    score: float | None = None


class Item(Struct):
    id: int
    name: str


class Model(BaseModel):
    id: int
    name: str


def rows(count: int = MANY) -> list[Row]:
    return [Row(n, f'name "{n}"', n / 2) for n in range(count)]


def returning(annotation: Any) -> Output:
    def function() -> Any: ...

    function.__annotations__ = {"return": annotation}
    return output_of(function)


class Counted:
    """Counts the calls of a function of the module."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self._run: Callable[..., Any] = getattr(module, name)
        self.items = 0
        self.calls = 0
        monkeypatch.setattr(module, name, self)

    def __call__(self, value: Any) -> Any:
        self.calls += 1
        self.items += len(value) if isinstance(value, list) else 1
        return self._run(value)


@pytest.mark.parametrize("count", [1, LONG_LIST, LONG_LIST + 1, MANY, MANY * 10])
async def test_each_row_is_encoded_once(count: int, monkeypatch: pytest.MonkeyPatch):
    """However long the list is, and nothing is decoded to plain data that nobody reads."""
    output = returning(list[Row])
    encoded = Counted(monkeypatch, "_encode")
    decoded = Counted(monkeypatch, "_decode")
    made = output.result(await output.prepare(rows(count)), encoded=True)
    assert isinstance(made, CallToolResult)
    assert type(made.structured_content) is Raw
    assert (encoded.items, decoded.calls) == (count, 0)


async def test_models_are_dumped_once(monkeypatch: pytest.MonkeyPatch):
    """Each by one call of pydantic for its piece."""
    output: Any = returning(list[Model])
    dumped: list[int] = []
    dump = output._adapter.dump
    monkeypatch.setattr(
        output._adapter, "dump", lambda value: (dumped.append(len(value)), dump(value))[1]
    )
    models = [Model(id=n, name="x") for n in range(MANY)]
    made = output.result(await output.prepare(models), encoded=True)
    assert msgspec.json.decode(made.structured_content)["result"][-1] == {
        "id": MANY - 1,
        "name": "x",
    }
    assert dumped == [LONG_LIST] * (PIECES - 1) + [1]


@pytest.mark.parametrize("kind", [Row, Item, Model, dict[str, Any]], ids=str)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_long_lists_on_the_wire(kind: Any, revision: str):
    """The text is the JSON of the rows, and the structured content has the same data."""
    plain = [{"id": n, "name": f'"{n}" \u00e9'} for n in range(MANY)]
    values = plain if kind == dict[str, Any] else [kind(**each) for each in plain]
    if kind is Row:
        plain = [{**each, "score": None} for each in plain]

    async def table() -> Any:
        return values

    table.__annotations__ = {"return": list[kind]}
    server = Server("rows")
    server.add_tool(table)
    async with Client(server, revision=revision) as client:
        result = await client.call_tool("table")
    assert not result.is_error
    assert msgspec.json.decode(result.text) == plain
    if revision >= "2025-06-18":
        assert result.structured_content == {"result": plain}
    else:
        assert result.structured_content is msgspec.UNSET


async def test_data_beside_content():
    """A ToolResult with a long list, whose text is what the author says."""

    async def table() -> ToolResult[list[Row]]:
        return ToolResult(rows(), "Many rows.", meta={"k": 1})

    server = Server("rows")
    server.add_tool(table)
    async with Client(server) as client:
        result = await client.call_tool("table")
    assert result.text == "Many rows."
    assert result.value(list[Row]) == rows()


async def test_other_tasks_run_between_the_pieces(monkeypatch: pytest.MonkeyPatch):
    """One turn of the event loop for each piece that took its time."""
    monkeypatch.setattr(module, "_TURN", -1.0)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    for kind, values in (
        (Row, rows()),
        (Model, [Model(id=n, name="x") for n in range(MANY)]),
    ):
        turns = 0
        counting = asyncio.create_task(count_turns())
        await returning(list[kind]).prepare(values)
        counting.cancel()
        assert turns >= PIECES


async def test_a_long_result_is_a_copy(monkeypatch: pytest.MonkeyPatch):
    """What another task changes while the result is checked does not change what was returned."""
    monkeypatch.setattr(module, "_TURN", -1.0)
    mine = rows()

    async def change() -> None:
        mine[-1].id = -1
        mine.clear()

    changing = asyncio.create_task(change())
    output = returning(list[Row])
    made = output.result(await output.prepare(mine))
    await changing
    assert isinstance(made, CallToolResult)
    assert made.value(list[Row]) == rows()


@pytest.mark.parametrize("kind", [Row, Item, Model])
async def test_what_does_not_fit_is_named_by_its_place_in_the_whole_list(kind: Any):
    """As in a short list, wherever it is."""
    output = returning(list[kind])
    values: list[Any] = [kind(id=n, name="x") for n in range(MANY)]
    values[-2] = {"id": "none", "name": "x"}
    given = await output.prepare(values)
    assert given is values
    with pytest.raises(OutputError, match=rf"{MANY - 2}|does not fit the model"):
        output.result(given)


async def test_infinity_is_found_in_every_piece():
    """Beside absent values, which are null too."""
    output = returning(list[Row])
    values = rows()
    values[5].score = None
    assert (await output.prepare(values)) is not values
    values[-1].score = math.nan
    with pytest.raises(OutputError, match="NaN or infinity"):
        output.result(await output.prepare(values))


@pytest.mark.parametrize(
    "value",
    [{"a": None, "b": "\u02ff\u00ff"}, [None, 10**30], [None, "\ud800"], {"a": None, 1: [0.5]}],
    ids=repr,
)
def test_null_beside_other_values_is_null(value: Any):
    """Values that MessagePack does not have, and bytes that look like infinity, are no reason to
    refuse a result.
    """
    made = returning(Any).result(value)
    assert isinstance(made, CallToolResult)
    assert not made.is_error
    assert "null" in made.text


async def test_only_declared_fields_are_sent():
    """Of subclasses, of objects with further attributes, and of dicts in place of objects."""

    @dataclass
    class More(Row):
        secret: str = "s"

    extended = Row(1, "a")
    extended.secret = "s"  # type: ignore[attr-defined] # an attribute of the instance
    plain = {"id": 1, "name": "a", "score": None}
    for value in (More(1, "a"), extended, {**plain, "secret": "s"}):
        one = returning(Row).result(value)
        assert isinstance(one, CallToolResult)
        assert one.structured_content == plain
        output = returning(list[Row])
        for count in (1, MANY):
            many = output.result(await output.prepare([value] * count))
            assert isinstance(many, CallToolResult)
            assert many.structured_content == {"result": [plain] * count}


async def test_constrained_lists_are_checked_as_a_whole():
    """A list with fewer items than declared does not fit, and neither does a long one of which
    only the pieces fit.
    """
    output = returning(Annotated[list[int], msgspec.Meta(max_length=MANY - 1)])
    with pytest.raises(OutputError, match="length"):
        output.result(await output.prepare(list(range(MANY))))
    made = output.result(await output.prepare(list(range(MANY - 1))))
    assert isinstance(made, CallToolResult)
    assert made.structured_content == {"result": list(range(MANY - 1))}


async def test_code_that_reads_a_result_gets_plain_data():
    """Middleware and callers of `Server.handle` see a dict, whatever the length is."""
    seen: list[Any] = []

    def reading(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            result = await handler(x)
            if isinstance(result, CallToolResult):
                seen.append(result.structured_content)
                result = msgspec.structs.replace(
                    result, structured_content={**result.structured_content, "more": 1}
                )
            return result

        return handle

    async def table(count: int) -> list[Row]:
        return rows(count)

    async def one() -> Row:
        return Row(1, "a")

    plain = Server("plain")
    layered = Server("layered", middleware=[reading])
    for server in (plain, layered):
        server.add_tool(table)
        server.add_tool(one)
    assert (await call(plain, "one")).structured_content == {"id": 1, "name": "a", "score": None}
    for count in (1, MANY):
        result = await call(plain, "table", {"count": count})
        assert len(result.structured_content["result"]) == count
        async with Client(layered) as client:
            result = await client.call_tool("table", {"count": count})
        assert result.structured_content["more"] == 1
        assert seen[-1] == {"result": msgspec.to_builtins(rows(count))}


async def test_text_that_utf_8_cannot_express():
    """Half a surrogate pair in a row, and in the author's words beside it."""

    async def table() -> ToolResult[list[Row]]:
        return ToolResult([replace(row, name="\ud800") for row in rows()], "\ud800")

    server = Server("rows")
    server.add_tool(table)
    async with Client(server) as client:
        result = await client.call_tool("table")
    assert result.text == "\ufffd"
    assert result.structured_content["result"][0]["name"] == "\ufffd"


async def test_older_revisions_get_no_structured_list():
    """An author's schema may describe an array, which structured content cannot be before
    2026-07-28.
    """

    async def table() -> list[int]:
        return [1, 2]

    server = Server("rows")
    server.add_tool(table, output_schema={"type": "array"})
    for revision in REVISIONS:
        async with Client(server, revision=revision) as client:
            result = await client.call_tool("table")
        assert result.text == "[1,2]"
        expected: Any = [1, 2] if revision == REVISIONS[-1] else msgspec.UNSET
        assert result.structured_content == expected


class Tagged(Struct, tag="t", rename="camel", forbid_unknown_fields=True):
    first_name: str
    is_new: bool = False
    size: Annotated[int, msgspec.Meta(ge=0)] = 1


class Short(Struct, array_like=True):
    id: int
    name: str = ""


@pytest.mark.parametrize("values", [[Tagged("a", size=2)], [Short(1)], [Item(1, "a")]], ids=str)
async def test_structs_are_written_in_their_own_form(values: list[Any]):
    """With renamed fields, a tag, or as arrays; alone, in short lists and in long ones."""
    kind = type(values[0])
    (plain,) = msgspec.to_builtins(values)
    one = returning(kind).result(values[0])
    assert isinstance(one, CallToolResult)
    assert one.structured_content == ({"result": plain} if kind is Short else plain)
    output = returning(list[kind])
    for count in (1, MANY):
        made = output.result(await output.prepare(values * count))
        assert isinstance(made, CallToolResult)
        assert made.structured_content == {"result": [plain] * count}


@pytest.mark.parametrize("count", [1, MANY])
async def test_constraints_of_fields_hold(count: int):
    """They are checked in values that were made without a check, too."""
    output = returning(list[Tagged])
    values = [Tagged("a") for _ in range(count)]
    values[-1].size = -1
    with pytest.raises(OutputError, match=r">= 0 - at `\$\[\d+\].size"):
        output.result(await output.prepare(values))
