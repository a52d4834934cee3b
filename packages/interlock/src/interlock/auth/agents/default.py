"""The default agent: a browser, else the terminal, else none."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TextIO

from .browser import Browser
from .headless import Headless
from .interface import Agent
from .terminal import Terminal


def default_agent(
    *,
    redirect_uri: str | None = None,
    environ: Mapping[str, str] | None = None,
    platform: str = sys.platform,
    stdin: TextIO | None = None,
) -> Agent:
    """Return the agent for this machine: a browser if there is a display, else the terminal if
    there is one, else Headless.

    Args:
        redirect_uri: The redirect URI of a client that was registered beforehand.
        environ: The environment variables; those of this process by default.
        platform: The value of `sys.platform`.
        stdin: The terminal; sys.stdin by default.
    """
    if has_browser(os.environ if environ is None else environ, platform):
        return Browser(redirect_uri=redirect_uri)
    given = sys.stdin if stdin is None else stdin
    if is_terminal(given):
        return Terminal(redirect_uri=redirect_uri, stdin=given)
    return Headless()


def has_browser(environ: Mapping[str, str], platform: str) -> bool:
    """Whether a browser that this program opens would be visible to the user."""
    if environ.get("BROWSER") or environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"):
        return True
    if platform in (
        "win32",
        "darwin",
    ):  # these platforms always have a browser, but a user who is connected by SSH does not see it
        return not (environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))
    return False


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person may be typing at this stream. A program without stdin has None or a closed
    stream.
    """
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False
