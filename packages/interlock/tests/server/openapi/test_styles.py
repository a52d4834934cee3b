"""Parameter styles: the table of the specification, and values that come back as they were."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from interlock.server.sources.openapi.operations import ApiParameter, Place
from interlock.server.sources.openapi.styles import (
    cookie_pairs,
    header_text,
    path_text,
    query_pairs,
)

STRING = "blue"
ARRAY = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200, "B": 150}

# OpenAPI 3.1.1, "Style Examples": style, explode, then an empty string, a string, an array and an
# object. None where the table has none.
PATHS = [
    (
        "matrix",
        False,
        ";color",
        ";color=blue",
        ";color=blue,black,brown",
        ";color=R,100,G,200,B,150",
    ),
    (
        "matrix",
        True,
        ";color",
        ";color=blue",
        ";color=blue;color=black;color=brown",
        ";R=100;G=200;B=150",
    ),
    ("label", False, ".", ".blue", ".blue,black,brown", ".R,100,G,200,B,150"),
    ("label", True, ".", ".blue", ".blue.black.brown", ".R=100.G=200.B=150"),
    ("simple", False, "", "blue", "blue,black,brown", "R,100,G,200,B,150"),
    ("simple", True, "", "blue", "blue,black,brown", "R=100,G=200,B=150"),
]  # fmt: skip
QUERIES = [
    ("form", False, "color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"),
    (
        "form",
        True,
        "color=",
        "color=blue",
        "color=blue&color=black&color=brown",
        "R=100&G=200&B=150",
    ),
    (
        "spaceDelimited",
        False,
        None,
        None,
        "color=blue%20black%20brown",
        "color=R%20100%20G%20200%20B%20150",
    ),
    (
        "pipeDelimited",
        False,
        None,
        None,
        "color=blue%7Cblack%7Cbrown",
        "color=R%7C100%7CG%7C200%7CB%7C150",
    ),
    ("deepObject", True, None, None, None, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
]
VALUES: tuple[Any, ...] = ("", STRING, ARRAY, OBJECT)


def parameter(place: Place, style: str, *, explode: bool, **more: Any) -> ApiParameter:
    return ApiParameter(
        name="color", place=place, required=True, schema={}, style=style, explode=explode, **more
    )


@pytest.mark.parametrize("row", PATHS, ids=str)
def test_paths(row: tuple[Any, ...]) -> None:
    style, explode, *texts = row
    made = parameter("path", style, explode=explode)
    assert [path_text(made, value) for value in VALUES] == texts


@pytest.mark.parametrize("row", QUERIES, ids=str)
def test_queries(row: tuple[Any, ...]) -> None:
    style, explode, *texts = row
    made = parameter("query", style, explode=explode)
    for value, text in zip(VALUES, texts, strict=True):
        if text is not None:
            assert "&".join(query_pairs(made, value)) == text


def test_cookies_and_headers() -> None:
    cookie = parameter("cookie", "form", explode=False)
    assert list(cookie_pairs(cookie, ARRAY)) == ["color=blue,black,brown"]
    header = parameter("header", "simple", explode=False)
    assert header_text(header, OBJECT) == "R,100,G,200,B,150"
    exploded = parameter("header", "simple", explode=True)
    assert header_text(exploded, OBJECT) == "R=100,G=200,B=150"
    assert header_text(header, True) == "true"


def test_what_the_table_does_not_say() -> None:
    """Nested objects, JSON parameters, reserved characters, empty arrays, numbers."""
    deep = parameter("query", "deepObject", explode=True)
    nested = {"a": {"b": 1}, "c": ["x", "y"]}
    assert "&".join(query_pairs(deep, nested)) == (
        "color%5Ba%5D%5Bb%5D=1&color%5Bc%5D%5B0%5D=x&color%5Bc%5D%5B1%5D=y"
    )
    json = parameter("query", "form", explode=True, is_json=True)
    assert list(query_pairs(json, {"a": [1]})) == ["color=%7B%22a%22%3A%5B1%5D%7D"]
    reserved = parameter("query", "form", explode=True, reserved=True)
    assert list(query_pairs(reserved, "a/b:c&d#e")) == ["color=a/b:c%26d%23e"]
    plain = parameter("query", "form", explode=True)
    assert list(query_pairs(plain, [])) == []
    assert list(query_pairs(plain, 1.5)) == ["color=1.5"]
    assert list(query_pairs(plain, [{"a": 1}])) == ["color=%7B%22a%22%3A1%7D"]


texts = st.text(st.characters(codec="utf-8"), min_size=1)


@given(texts)
def test_a_path_value_is_one_segment(text: str) -> None:
    """Nothing in it begins a segment, a query or a fragment."""
    written = path_text(parameter("path", "simple", explode=False), text)
    assert unquote(written) == text
    assert not set("/?#;") & set(written)


@given(st.lists(texts, min_size=1))
def test_an_exploded_query_comes_back(items: list[str]) -> None:
    """Read by an ordinary parser of queries, it has the same items and no other pair."""
    written = "&".join(query_pairs(parameter("query", "form", explode=True), items))
    assert parse_qsl(written, keep_blank_values=True, strict_parsing=True) == [
        ("color", item) for item in items
    ]


@given(st.dictionaries(texts, texts, min_size=1))
def test_a_deep_object_comes_back(members: dict[str, str]) -> None:
    written = "&".join(query_pairs(parameter("query", "deepObject", explode=True), members))
    assert parse_qsl(written, keep_blank_values=True, strict_parsing=True) == [
        (f"color[{key}]", item) for key, item in members.items()
    ]


@given(st.lists(texts, min_size=1), st.sampled_from(["form", "pipeDelimited"]))
def test_a_list_in_one_value_comes_back(items: list[str], style: str) -> None:
    (written,) = query_pairs(parameter("query", style, explode=False), items)
    between = {"form": ",", "pipeDelimited": "%7C"}[style]
    # the specification has no way to write a separator within an item
    assume(style != "pipeDelimited" or not any("|" in item for item in items))
    assert [unquote(part) for part in written.removeprefix("color=").split(between)] == items
