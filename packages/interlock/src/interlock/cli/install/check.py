"""Starts a server once, in the way its client starts it, to check that it works."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from ... import Client, Implementation, Stdio, UnsupportedRevision
from ... import types as t
from .. import exits
from ..client.connection import variables_hint
from ..targets.reach import Environment

SECONDS: Final = 120.0
"""The time limit for the start of a server: uvx and npx download it the first time."""


class NotStarted(click.ClickException):
    """The server does not start. Nothing was changed."""

    exit_code = exits.UNREACHABLE


def check(command: Sequence[str], env: Mapping[str, str]) -> str:
    """Start a server once; return the name and version that it reports.

    It gets only the variables that its client will give it, and another working folder. A server
    that works only in the present folder would fail in the client.

    Args:
        command: The program and its arguments.
        env: The variables of its entry.

    Raises:
        NotStarted: It did not start, or did not respond like a server.
    """
    try:
        return asyncio.run(_asked(command, env))
    except (t.InterlockError, UnsupportedRevision) as bad:
        words = str(bad)
    hint = variables_hint(words, Environment(dict(env)).withheld)
    raise NotStarted(
        f"The server does not start, so nothing was changed. {words}\n"
        + (f"{hint}\n" if hint else "")
        + "Use --no-check to install it anyway."
    )


async def _asked(command: Sequence[str], env: Mapping[str, str]) -> str:
    transport = Stdio(list(command), env=env, cwd=Path.home())
    client = Client(transport, info=Implementation(name="interlock-cli", version="1"))
    try:
        async with asyncio.timeout(SECONDS):
            await client.open()
            info = client.server_info
            who = f"{info.name} {info.version}".strip() if info is not None else "The server"
            return f"{who} answers, and speaks {client.revision}."
    except TimeoutError:
        raise t.TimedOut(f"It did not answer within {SECONDS:g} seconds.") from None
    finally:
        with contextlib.suppress(t.InterlockError):
            await client.aclose()
