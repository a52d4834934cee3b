"""Pages that a server sends a person to: what is odd about their address reaches the `elicit`
function with the question.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Client, Context, Server
from interlock import types as t
from interlock.untrusted.urls import examine
from interlock.wire.revisions import NEWEST, R4

DANGEROUS: dict[str, tuple[str, str]] = {
    # an address, and a piece of what is said of it
    "a script": ("javascript:alert(document.cookie)", "begins with javascript"),
    "a script in capitals": ("JavaScript://example.com/%0aalert(1)", "begins with javascript"),
    "a file": ("file:///etc/passwd", "begins with file"),
    "data": ("data:text/html,<script>alert(1)</script>", "begins with data"),
    "a program": ("vscode://extension/install?x=1", "begins with vscode"),
    "another host before the @": ("https://bank.example@evil.example/", "leads to evil.example"),
    "text that is turned around": (
        "https://evil.example/\u202egnp.exe",
        "invisible or invalid characters",
    ),
    "a character of no width": ("https://ban\u200bk.example/", "invisible or invalid characters"),
    "a space": ("https://bank.example /", "invisible or invalid characters"),
    "no encryption": ("http://bank.example/", "not encrypted"),
    "letters of another script": ("https://b\u0430nk.example/", "mixes writing systems"),
    "nothing that is an address": ("https://[::1", "cannot be parsed"),
}


def sender(url: str, revision: str) -> Server:
    """A server that sends the person to a page."""
    server = Server("sender", revisions=revision)

    @server.tool
    async def login(ctx: Context) -> str:
        await ctx.elicit_url("Please sign in.", url)
        return "signed in"

    return server


async def received(url: str, revision: str) -> t.ElicitRequestParams:
    """The question as the client's function gets it."""
    asked: list[t.ElicitRequestParams] = []

    def elicit(question: t.ElicitRequestParams) -> Any:
        asked.append(question)
        return False

    async with Client(sender(url, revision), elicit=elicit) as client:
        await client.call_tool("login")
    (question,) = asked
    return question


@pytest.mark.parametrize("revision", [R4, NEWEST])
@pytest.mark.parametrize("url, words", DANGEROUS.values(), ids=DANGEROUS)
async def test_what_is_odd_about_an_address_reaches_the_function(
    url: str, words: str, revision: str
):
    """In words for the person, and the address itself unchanged (`ELI-25`, `ELI-26`)."""
    question = await received(url, revision)
    assert question.url == url
    assert any(words in danger for danger in question.dangers), question.dangers


@pytest.mark.parametrize("revision", [R4, NEWEST])
async def test_an_ordinary_address_has_no_mark(revision: str):
    """So that a mark means something."""
    question = await received("https://login.example.com/authorize?state=1", revision)
    assert question.dangers == ()


def test_forms_have_no_mark_and_the_signs_are_those_of_the_host():
    """There is one check, for the library and for whatever shows questions to a person."""
    assert t.ElicitRequestParams(message="Who?", requested_schema={}).dangers == ()
    for url, _ in DANGEROUS.values():
        told = t.ElicitRequestParams(message="", mode="url", url=url).dangers
        assert told == tuple(danger.words for danger in examine(url).dangers)
