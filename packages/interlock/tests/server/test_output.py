"""What becomes of what a tool returns: content, structured content and schema, and that the last
two always agree.
"""

from __future__ import annotations

import datetime as dt
import functools
import math
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Never, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct
from pydantic import BaseModel, ConfigDict, Field, computed_field

from interlock import REVISIONS, Client, Server
from interlock import types as t
from interlock.schema import compile
from interlock.typed.media import Audio, File, Image
from interlock.typed.output import Output, OutputError, ToolResult, output_of
from interlock.typed.progress import Progress
from tests.server.shapes import (
    PLAIN,
    WRITTEN,
    Cat,
    Colour,
    Dog,
    Mixed,
    Node,
    Order,
    Pair,
    Point,
    Seat,
    Weather,
    typed,
)

PNG = b"\x89PNG\r\n\x1a\n"
WAV = b"RIFF\0\0\0\0WAVE"
PICTURE = t.ImageContent(data="iVBORw0KGgo=", mime_type="image/png")
LINK = t.ResourceLink(uri="docs://a", name="a")
CONTENTS = t.ResourceContents(uri="a:b", text="c")
NOT_SAID = object()


def returning(annotation: Any, **options: Any) -> Output:
    """The output of a function with this return annotation."""

    def function() -> Any: ...

    function.__annotations__ = {} if annotation is NOT_SAID else {"return": annotation}
    return output_of(function, **options)


def result(annotation: Any, value: Any) -> t.CallToolResult:
    made = returning(annotation).result(value)
    assert isinstance(made, t.CallToolResult)
    return made


def broken(annotation: Any, value: Any, **options: Any) -> str:
    output = returning(annotation, **options)
    with pytest.raises(OutputError) as caught:
        output.result(value)
    return str(caught.value)


# Content.


class Name(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "annotation, value, content",
    [
        (str, "hello", [t.TextContent("hello")]),
        (str, Name("hello"), [t.TextContent("hello")]),
        (str, 5, [t.TextContent("5")]),
        (str | None, None, []),
        (None, None, []),
        (Never, None, []),
        (Image, Image(data=PNG), [PICTURE]),
        (Audio, Audio(data=WAV), [t.AudioContent(data="UklGRgAAAABXQVZF", mime_type="audio/wav")]),
        (File, File(data="x", name="a.txt"), [File(data="x", name="a.txt").content()]),
        (bytes, PNG, [PICTURE]),
        (bytes, WAV, [t.AudioContent(data="UklGRgAAAABXQVZF", mime_type="audio/wav")]),
        (bytes, b"text", [t.TextContent("text")]),
        (bytes, b"\xff\0", [File(data=b"\xff\0").content()]),
        (t.ResourceLink, LINK, [LINK]),
        (t.ContentBlock, PICTURE, [PICTURE]),
        (t.ResourceContents, CONTENTS, [t.EmbeddedResource(resource=CONTENTS)]),
        (list[t.ContentBlock], [PICTURE, LINK], [PICTURE, LINK]),
        (list[t.ContentBlock], [], []),
        (list[str | Image], ["see", Image(data=PNG)], [t.TextContent("see"), PICTURE]),
        (tuple[str, Image], ("see", Image(data=PNG)), [t.TextContent("see"), PICTURE]),
        (Sequence[bytes | None], [PNG, None], [PICTURE]),
        (AsyncGenerator[str, None], "last", [t.TextContent("last")]),
        (AsyncIterator[Progress | str], "last", [t.TextContent("last")]),
        (Awaitable[str], "later", [t.TextContent("later")]),
        (Annotated[str, "words"], "x", [t.TextContent("x")]),
        (
            NOT_SAID,
            ["see", Image(data=PNG), {"a": 1}],
            [t.TextContent("see"), PICTURE, t.TextContent('{"a":1}')],
        ),
        (NOT_SAID, "hello", [t.TextContent("hello")]),
        (NOT_SAID, None, []),
        (Any, 5, [t.TextContent("5")]),
        (Any, [1, "a"], [t.TextContent('[1,"a"]')]),
        (Any, ["a"], [t.TextContent('["a"]')]),
        (list, [], [t.TextContent("[]")]),
        (Any, dt.date(2026, 7, 28), [t.TextContent("2026-07-28")]),
        (Image | Point, Image(data=PNG), [PICTURE]),
    ],
)
def test_content_without_a_schema(
    annotation: Any, value: Any, content: list[t.ContentBlock]
) -> None:
    """Text, media, blocks and links are content and nothing else, so that no text is sent twice
    (`TOL-12`).
    """
    assert returning(annotation).schema is None
    made = result(annotation, value)
    assert made.content == content
    assert made.structured_content is msgspec.UNSET
    assert all(
        type(block.text) is str for block in made.content if isinstance(block, t.TextContent)
    )


# Structured content.

REPORT = {"temperature": 21.5, "colour": "blue"}


@pytest.mark.parametrize(
    "annotation, value, text, structured",
    [
        (int, 3, "3", 3),
        (int, 10**30, "1" + "0" * 30, 10**30),
        (float, 0.5, "0.5", 0.5),
        (float, 2, "2", 2),
        (bool, True, "true", True),
        (bool, False, "false", False),
        (int | None, None, "null", None),
        (str | int, "a", "a", "a"),
        (Literal["a", "b"], "a", "a", "a"),
        (Decimal, 3, "3", "3"),
        (UUID, "0" * 32, str(UUID(int=0)), str(UUID(int=0))),
        (set[int], [1, 1], "[1]", [1]),
        (Decimal, Decimal("1.50"), "1.50", "1.50"),
        (dt.date, dt.date(2026, 7, 28), "2026-07-28", "2026-07-28"),
        (UUID, UUID(int=1), str(UUID(int=1)), str(UUID(int=1))),
        (Path, Path("a"), "a", "a"),
        (Colour, Colour.RED, "red", "red"),
        (Mixed, Mixed.NUMBER, "1.5", 1.5),
        (Pair, Pair(1), '[1,"none"]', [1, "none"]),
        (list[str], ["a"], '["a"]', ["a"]),
        (
            list[Point],
            [Point(1)],
            '[{"x":1,"y":0.0,"names":[]}]',
            [{"x": 1, "y": 0.0, "names": []}],
        ),
        (list[dict[str, Any]], [{"a": 1}], '[{"a":1}]', [{"a": 1}]),
        (tuple[int, str], (1, "a"), '[1,"a"]', [1, "a"]),
        (Weather | None, Weather(21.5), '{"temperature":21.5,"colour":"blue"}', REPORT),
        (
            Point | Seat,
            {"row": 1, "letter": "A"},
            '{"row":1,"letter":"A"}',
            {"row": 1, "letter": "A"},
        ),
        (list[Order], [{"item": "a"}], '[{"item":"a","count":1}]', [{"item": "a", "count": 1}]),
        (AsyncIterator[int], 3, "3", 3),
        (AsyncGenerator[Progress | int, None], 3, "3", 3),
    ],
)
def test_what_is_not_an_object_is_wrapped(
    annotation: Any, value: Any, text: str, structured: Any
) -> None:
    """Under the key `result`, for an older revision wants an object; the text is its JSON, or the
    string (`TOL-06`, `TOL-11`).
    """
    schema = returning(annotation).schema
    assert schema is not None
    assert (schema["type"], schema["required"], list(schema["properties"])) == (
        "object",
        ["result"],
        ["result"],
    )
    made = result(annotation, value)
    assert (made.content, made.structured_content) == (
        [t.TextContent(text)],
        {"result": structured},
    )
    assert made.value() == structured


class Reading(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)

    value: int = Field(ge=0, alias="theValue")
    note: str | None = None

    @computed_field
    def twice(self) -> int:
        return self.value * 2


@pytest.mark.parametrize(
    "annotation, value, structured",
    [
        (Point, Point(1), {"x": 1, "y": 0.0, "names": []}),
        (Weather, {"temperature": 21.5, "more": 2}, REPORT),
        (Seat, {"row": 1, "letter": "A"}, {"row": 1, "letter": "A"}),
        (Weather, Weather(21.5), REPORT),
        (Node, Node(1, [Node(2)]), {"value": 1, "inner": [{"value": 2, "inner": []}]}),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict[int, Point], {1: Point(2)}, {"1": {"x": 2, "y": 0.0, "names": []}}),
        (Reading, Reading(theValue=2), {"theValue": 2, "note": None, "twice": 4}),
        (Reading, {"theValue": 2}, {"theValue": 2, "note": None, "twice": 4}),
        (Weather | t.CallToolResult, Weather(21.5), REPORT),
        (t.InputRequiredResult | Weather, Weather(21.5), REPORT),
    ],
)
def test_objects_stand_by_themselves(annotation: Any, value: Any, structured: Any) -> None:
    """The schema's root is the type's own, never a reference; the structured content is plain data
    (`TOL-06`, `TOL-09`).
    """
    schema = returning(annotation).schema
    assert schema is not None
    assert schema["type"] == "object"
    assert "$ref" not in schema
    made = result(annotation, value)
    assert made.structured_content == structured
    assert msgspec.json.decode(made.text) == structured
    assert compile(schema).check(structured) == []


@pytest.mark.parametrize("annotation", [dict, dict[str, Any], Any, NOT_SAID, object])
def test_objects_of_which_nothing_is_known(annotation: Any) -> None:
    """They are structured content all the same, without a schema that would say nothing."""
    assert returning(annotation).schema is None
    for value in ({"a": [1]}, Point(1), Order(item="a")):
        made = result(annotation, value)
        assert made.structured_content == msgspec.json.decode(made.text)
        assert isinstance(made.structured_content, dict)


def test_the_schemas_words() -> None:
    """The docstring says what is returned where the type does not."""

    def count() -> int:
        """Count.

        Returns:
            int: How many there are.
        """
        return 1

    def point() -> Point:
        """Point.

        :returns: Where it is.
        """
        return Point(1)

    assert (output_of(count).schema or {})["properties"]["result"] == {
        "description": "How many there are.",
        "type": "integer",
    }
    assert (output_of(point).schema or {})["description"] == "Where it is."


def test_a_format_is_promised_only_where_every_value_has_it() -> None:
    """A datetime without a zone is no `date-time`, and our durations are not RFC 3339's; a client
    may check (`TOL-09`).
    """
    for kind, shown in (
        (dt.datetime, {"type": "string"}),
        (Annotated[dt.datetime, Meta(tz=True)], {"type": "string", "format": "date-time"}),
        (dt.timedelta, {"type": "string"}),
        (dt.date, {"type": "string", "format": "date"}),
        (Decimal, {"type": "string"}),
    ):
        assert (returning(kind).schema or {})["properties"]["result"] == shown


@given(typed(*PLAIN, *WRITTEN).flatmap(lambda pair: st.tuples(st.just(pair[0]), pair[1])))
def test_schema_and_structured_content_agree(case: tuple[Any, Any]) -> None:
    """Any value of any type conforms to the schema, formats included, and the text has the same
    data (`TOL-09`, `JSC-04`).
    """
    annotation, value = case
    output = returning(annotation)
    made = output.result(value)
    assert isinstance(made, t.CallToolResult)
    if output.schema is None:
        return
    structured = msgspec.json.decode(msgspec.json.encode(made.structured_content))
    assert structured == made.structured_content
    assert compile(output.schema).check(structured) == []
    data = structured if "result" not in output.schema.get("required", []) else structured["result"]
    assert made.text == data if isinstance(data, str) else msgspec.json.decode(made.text) == data


@given(typed(*PLAIN, *WRITTEN), typed(*PLAIN, *WRITTEN).flatmap(lambda pair: pair[1]))
def test_a_value_of_another_type_conforms_or_is_refused(kind: tuple[Any, Any], value: Any) -> None:
    """Whatever a tool returns under whatever annotation, nothing gets out that its schema does not
    allow (`TOL-09`).
    """
    output = returning(kind[0])
    try:
        made = output.result(value)
    except OutputError:
        return
    assert isinstance(made, t.CallToolResult)
    assert output.schema is None or compile(output.schema).check(made.structured_content) == []


# What does not fit.


@dataclass
class Reported:
    degrees: float
    note: float | None = None


class Measured(TypedDict):
    degrees: float


@pytest.mark.parametrize(
    "annotation, value, words",
    [
        (
            int,
            True,
            "type bool does not fit the type that the tool declares: Expected `int`, got `bool`",
        ),
        (int, "3", "Expected `int`, got `str`"),
        (int, None, "got `null`"),
        (bool, 1, "Expected `bool`, got `int`"),
        (float, math.nan, "nan, which JSON does not have"),
        (float, -math.inf, "inf, which JSON does not have"),
        (Reported, Reported(math.nan), "NaN or infinity, which JSON does not have"),
        (Reported, Reported(1, math.inf), "NaN or infinity"),
        (float | None, math.nan, "NaN or infinity"),
        (Any, {"a": [math.nan]}, "NaN or infinity"),
        (dict[str, float | None], {"a": math.nan}, "NaN or infinity"),
        (Reported, Reported("hot"), "Expected `float`, got `str` - at `$.degrees`"),  # type: ignore[arg-type] # the mistake
        (Reported, None, "Expected `object`, got `null`"),
        (Measured, {}, "missing required field `degrees`"),
        (list[int], [1, "2"], "at `$[1]`"),
        (Annotated[int, Meta(ge=3)], 2, ">= 3"),
        (Cat | Dog, {"type": "bird"}, "Invalid value 'bird'"),
        (Reading, {"theValue": -1}, "does not fit the model"),
        (
            Reading,
            Reading.model_construct(value=-1),
            "does not conform to the output schema: $.theValue",
        ),
        (Reading, 5, "does not fit the model"),
        (Any, object(), "object cannot be written as JSON"),
        (Any, (n for n in ()), "generator cannot be written as JSON"),
        (list[Any], [1, {2j}], "complex cannot be written"),
    ],
)
def test_what_does_not_fit(annotation: Any, value: Any, words: str) -> None:
    """The author is told what was returned, and where it departs from what the tool declares
    (`TOL-09`).
    """
    assert words in broken(annotation, value)


def test_values_that_only_look_different() -> None:
    """Subclasses and other people's containers are written as what they are."""

    class Big(int):
        pass

    class Box(Struct):
        where: Path
        order: Order

    made = result(
        NOT_SAID,
        {
            "a": Big(3),
            "b": Name("x"),
            "c": (1, 2),
            "d": range(2),
            "e": Box(Path("p"), Order(item="i")),
        },
    )
    assert made.structured_content == {
        "a": 3,
        "b": "x",
        "c": [1, 2],
        "d": [0, 1],
        "e": {"where": "p", "order": {"item": "i", "count": 1}},
    }
    assert result(int, Big(3)).structured_content == {"result": 3}
    assert result(Box, Box(Path("p"), Order(item="i"))).structured_content == {
        "where": "p",
        "order": {"item": "i", "count": 1},
    }


def test_a_result_is_a_copy() -> None:
    """What the author changes later does not change what was returned."""
    kept = {"a": [1]}
    made = result(dict[str, list[int]], kept)
    kept["a"].append(2)
    assert made.structured_content == {"a": [1]}


# Results of the author's own making, and schemas.


def test_finished_results_pass_through() -> None:
    """A CallToolResult, an InputRequiredResult or any other result is the very object that the tool
    returned.
    """
    mine = t.CallToolResult(
        content=[t.TextContent("x")], structured_content={"a": 1}, meta={"k": "v"}
    )
    more = t.InputRequiredResult(request_state="s")
    for annotation in (t.CallToolResult, NOT_SAID, str, t.CallToolResult | t.InputRequiredResult):
        output = returning(annotation)
        assert output.schema is None
        assert output.result(mine) is mine
        assert output.result(more) is more


def test_a_finished_result_keeps_the_promise_too() -> None:
    """Where there is a schema its structured content conforms, unless it is an error (`TOL-09`)."""
    output = returning(int)
    fine = t.CallToolResult(content=[], structured_content={"result": 3})
    failed = t.CallToolResult(content=[], is_error=True)
    assert output.result(fine) is fine
    assert output.result(failed) is failed
    assert "has no structured content" in broken(int, t.CallToolResult(content=[]))
    assert "does not conform" in broken(
        int, t.CallToolResult(content=[], structured_content={"result": "3"})
    )
    made = returning(Order).result(t.CallToolResult(content=[], structured_content=Order(item="a")))
    assert isinstance(made, t.CallToolResult)
    assert made.structured_content == {"item": "a", "count": 1}


# Data, and something else beside them.


@pytest.mark.parametrize(
    "annotation",
    [
        ToolResult[Order],
        ToolResult[Order] | t.InputRequiredResult,
        Awaitable[ToolResult[Order]],
        AsyncIterator[Progress | ToolResult[Order]],
    ],
    ids=str,
)
def test_a_tool_result_has_the_schema_of_its_data(annotation: Any) -> None:
    """Its content is what it says, its structured content its data, and neither is sent twice
    (`TOL-05`, `TOL-09`).
    """
    output = returning(annotation)
    assert output.schema == returning(Order).schema
    made = output.result(
        ToolResult(Order(item="a"), "One a.", Image(data=PNG), LINK, meta={"k": "v"})
    )
    assert made == t.CallToolResult(
        content=[t.TextContent("One a."), PICTURE, LINK],
        structured_content={"item": "a", "count": 1},
        meta={"k": "v"},
    )


def test_a_tool_result_without_content_is_its_data() -> None:
    """As if they had been returned alone."""
    assert returning(ToolResult[Order]).result(ToolResult(Order(item="a"))) == result(
        Order, Order(item="a")
    )
    assert returning(ToolResult[list[int]]).result(ToolResult([1, 2])) == result(list[int], [1, 2])


def test_a_tool_result_among_other_types() -> None:
    """Where nothing else is declared an object is structured content all the same; where a number
    is, it is wrapped as ever.
    """
    made = result(NOT_SAID, ToolResult({"a": 1}, "One."))
    assert (made.content, made.structured_content) == ([t.TextContent("One.")], {"a": 1})
    made = result(ToolResult[int], ToolResult(3, "Three."))
    assert (made.content, made.structured_content) == ([t.TextContent("Three.")], {"result": 3})
    made = result(int | ToolResult[int], 4)
    assert made.structured_content == {"result": 4}


@pytest.mark.parametrize(
    "annotation, value, words",
    [
        (
            ToolResult[Order],
            ToolResult({"item": 1}, "x"),
            "does not fit the model that the tool declares",
        ),
        (ToolResult[int], ToolResult("3", "x"), "does not fit the type that the tool declares"),
        (NOT_SAID, ToolResult([1], "x"), "its data are no object, and it declares no other type"),
        (str, ToolResult("a", "x"), "its data are no object, and it declares no other type"),
    ],
)
def test_a_tool_result_that_does_not_fit(annotation: Any, value: Any, words: str) -> None:
    assert words in broken(annotation, value)


def test_a_tool_result_of_content_is_refused_beforehand() -> None:
    with pytest.raises(TypeError, match="return the content itself"):
        returning(ToolResult[str])


@pytest.mark.parametrize("revision", REVISIONS)
async def test_peers_of_every_revision_get_the_data(revision: str) -> None:
    """Those that have no structured content find them in one more text (`TOL-11`)."""
    server = Server("orders")

    @server.tool
    def order() -> ToolResult[Order]:
        return ToolResult(Order(item="a"), "One a.")

    async with Client(server, revision=revision) as client:
        made = await client.call_tool("order")
    texts = [block.text for block in made.content if isinstance(block, t.TextContent)]
    if revision < "2025-06-18":
        assert (texts, made.structured_content) == (
            ["One a.", '{"item":"a","count":1}'],
            msgspec.UNSET,
        )
    else:
        assert (texts, made.structured_content) == (["One a."], {"item": "a", "count": 1})


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def test_an_explicit_schema() -> None:
    """The author's schema is listed as it is, and values are checked against it whatever the
    annotation says (`TOL-07`, `TOL-09`).
    """
    output = returning(str, output_schema=SCHEMA)
    assert output.schema == SCHEMA
    for value in (
        {"a": 1},
        Struct_with_a(1),
        t.CallToolResult(content=[], structured_content={"a": 1}),
    ):
        made = output.result(value)
        assert isinstance(made, t.CallToolResult)
        assert made.structured_content == {"a": 1}
    assert (
        broken(dict, {"a": "x"}, output_schema=SCHEMA)
        == 'the result does not conform to the output schema: $.a: "x" is not of type "integer"'
    )
    assert "does not conform" in broken(str, "text", output_schema=SCHEMA)
    listed = returning(Any, output_schema={"type": "array"}).result([1])
    assert isinstance(listed, t.CallToolResult)
    assert (listed.structured_content, listed.text) == ([1], "[1]")


class Struct_with_a(Struct):  # noqa: N801 # named by what it has
    a: int


def test_an_explicit_schema_that_cannot_be_used() -> None:
    """It is refused when the tool is made, not when it is called."""
    with pytest.raises(ValueError, match="the output schema cannot be used"):
        returning(dict, output_schema={"type": "nothing"})
    with pytest.raises(ValueError, match="the output schema cannot be used"):
        returning(dict, output_schema={"$ref": "https://example.com/schema.json"})


@pytest.mark.parametrize(
    "annotation, words", [(complex, "complex is not a type"), (Callable[[], int], "annotate Any")]
)
def test_annotations_that_cannot_be_described(annotation: Any, words: str) -> None:
    """The sentence names the function, and says what to do."""
    with pytest.raises(TypeError, match=words):
        returning(annotation)


def test_names_in_annotations() -> None:
    """Names that stand beside the function are found; others are named."""

    class Row(TypedDict):
        z: int

    def found() -> list[Row]: ...

    def lost() -> Nowhere: ...  # type: ignore[name-defined] # noqa: F821 # what must fail

    assert (output_of(found).schema or {})["properties"]["result"]["items"]["required"] == ["z"]
    assert output_of(functools.partial(found)).schema == output_of(found).schema
    with pytest.raises(TypeError, match="lost returns 'Nowhere', which cannot be read here"):
        output_of(lost)
    assert output_of(lost, output_schema=SCHEMA).schema == SCHEMA


def test_pydantic_is_not_loaded_for_others() -> None:
    """Nor is the checker of schemas, for results whose type is not pydantic's."""
    program = """
import sys, dataclasses
from interlock.typed.output import output_of
@dataclasses.dataclass
class Point: x: float
def tool() -> list[Point]: ...
print(output_of(tool).result([Point(1.5)]).structured_content, "pydantic" in sys.modules,
    "jsonschema_rs" in sys.modules)
"""
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert printed == "{'result': [{'x': 1.5}]} False False\n"
