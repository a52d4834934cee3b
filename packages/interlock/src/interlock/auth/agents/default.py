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
    """A browser where one can be seen, else the terminal where there is one, else Headless.

    `redirect_uri` is the one that a client was registered with before. `environ`, `platform` and
    `stdin` are those of this process where they are left out.
    """
    if has_browser(os.environ if environ is None else environ, platform):
        return Browser(redirect_uri=redirect_uri)
    given = sys.stdin if stdin is None else stdin
    if is_terminal(given):
        return Terminal(redirect_uri=redirect_uri, stdin=given)
    return Headless()


def has_browser(environ: Mapping[str, str], platform: str) -> bool:
    """Whether whoever runs this program would see a browser that it opens."""
    if environ.get("BROWSER") or environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"):
        return True
    if platform in (
        "win32",
        "darwin",
    ):  # there is always one, but not for who has come over the network
        return not (environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))
    return False


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person may be typing there; a program without stdin has None, or a closed one."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False
