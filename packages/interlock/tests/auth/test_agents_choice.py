"""Which way to a person is taken, and what is said where there is none."""

from __future__ import annotations

import io
import os
import sys

import pytest

from interlock.auth.agents import Browser, Headless, Terminal, default_agent
from interlock.auth.oauth.errors import Unauthorized
from interlock.auth.oauth.steps import ShowCode


class _Console(io.StringIO):
    """Stands for a terminal: nothing is asked of it but whether it is one."""

    def isatty(self) -> bool:
        return True


_CLOSED = io.StringIO()
_CLOSED.close()


@pytest.mark.parametrize(
    "platform, environ, stdin, kind",
    [
        ("linux", {"DISPLAY": ":0"}, io.StringIO(), Browser),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, _Console(), Browser),
        ("linux", {"BROWSER": "code --openExternal"}, _Console(), Browser),
        ("linux", {"DISPLAY": ""}, _Console(), Terminal),
        ("linux", {"SSH_CONNECTION": "a b"}, _Console(), Terminal),
        ("linux", {"SSH_CONNECTION": "a b", "DISPLAY": ":10"}, _Console(), Browser),
        ("linux", {}, io.StringIO(), Headless),
        ("linux", {}, _CLOSED, Headless),
        ("darwin", {}, io.StringIO(), Browser),
        ("darwin", {"SSH_TTY": "/dev/ttys1"}, _Console(), Terminal),
        ("win32", {}, _Console(), Browser),
        ("win32", {"SSH_CONNECTION": "a b"}, io.StringIO(), Headless),
    ],
)
def test_the_way_that_a_person_can_be_reached(platform, environ, stdin, kind):
    """A browser that they would see, else the terminal they are at, else none."""
    assert type(default_agent(platform=platform, environ=environ, stdin=stdin)) is kind


def test_a_program_without_stdin_reaches_nobody(monkeypatch: pytest.MonkeyPatch):
    """Programs without a console have None there."""
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(os, "environ", {})
    assert type(default_agent(platform="linux")) is Headless


async def test_headless_says_what_to_do():
    """`CCR-01` is one way out, and the words say so."""
    agent = Headless()
    for step in (
        agent.listen(()),
        agent.visit("https://as.example/", "http://127.0.0.1/"),
        agent.show_code(ShowCode("A", "B", None, 1)),
    ):
        with pytest.raises(Unauthorized, match="interlock auth login URL") as refused:
            await step
        assert refused.value.step == "log-in"
        assert refused.value.culprit == "client"
    await agent.aclose()
