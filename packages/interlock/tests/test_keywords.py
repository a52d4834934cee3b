"""Keyword arguments that are passed on: what is unknown is named,
and typed dicts name what functions take."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from interlock import Client, Server
from interlock.client.options import (
    CallOptions,
    ClientOptions,
    CompleteOptions,
    ListOptions,
    ReadOptions,
    RequestOptions,
    TransportOptions,
)
from interlock.keywords import check_keywords
from interlock.server.run.http import http_app
from interlock.server.run.options import AppOptions


def test_known_keywords_pass() -> None:
    check_keywords(["port"], ["host", "port"], "serve()")


def test_an_unknown_keyword_is_named_with_the_closest_known_one() -> None:
    with pytest.raises(TypeError, match=r"serve\(\) got .* 'prot'; did you mean 'port'\?"):
        check_keywords(["prot"], ["host", "port"], "serve()")


def test_what_resembles_nothing_gets_no_advice() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'colour'$"):
        check_keywords(["colour"], ["host", "port"], "serve()")


@pytest.mark.parametrize(
    "call",
    [
        lambda: Client("server.py", tokn="x"),
        lambda: Server("x").tool(tittle="x")(print),
        lambda: Server("x").add_resource("docs://a", "text", ttl=5),
        lambda: Server("x").run("http", wokers=2),
        lambda: Server("x").serve_http(prot=1),
        lambda: Server("x").http_app(grase=1),
    ],
)
def test_a_misspelt_option_is_an_error_at_once(call: Any) -> None:
    """Before anything is started."""
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        call()


@pytest.mark.parametrize(
    "function, options, own",
    [
        (Client.list_tools, ListOptions, ()),
        (Client.list_prompts, ListOptions, ()),
        (Client.list_resources, ListOptions, ()),
        (Client.list_resource_templates, ListOptions, ()),
        (Client.ping, ListOptions, ()),
        (Client.read_resource, ReadOptions, ()),
        (Client.get_prompt, ReadOptions, ()),
        (Client.call_tool, CallOptions, ()),
        (Client.complete, CompleteOptions, ()),
        (Client.request, RequestOptions, ()),
        (http_app, AppOptions, ()),
        (Client.__init__, ClientOptions, tuple(TransportOptions.__annotations__)),
    ],
)
def test_typed_options_are_those_of_the_function(
    function: Any, options: Any, own: tuple[str, ...]
) -> None:
    """So that what passes them on can pass on all of them, and no others."""
    parameters = inspect.signature(function).parameters.values()
    keywords = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert keywords | set(own) == set(options.__annotations__)
