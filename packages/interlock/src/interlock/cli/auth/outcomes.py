"""Outcomes of the commands of `interlock auth`: an error becomes one line and an exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import click

from ... import types as t
from ...auth import Denied, Unauthorized
from ...http11.headers import is_address
from ...store.errors import StoreError
from .. import exits
from ..screen import note, print_json

NOT_LOGGED_IN = 1


def carry_out(
    work: Callable[[], Coroutine[Any, Any, int | None]],
    *,
    machine: bool = False,
    url: str | None = None,
) -> None:
    """Run the work and exit with its code. With `url`, an error names the command that diagnoses
    it.
    """
    code = _done(work, machine, url)
    if code:
        click.get_current_context().exit(code)


def _done(
    work: Callable[[], Coroutine[Any, Any, int | None]], machine: bool, url: str | None
) -> int | None:
    try:
        return asyncio.run(work())
    except Denied as bad:
        _fail(str(bad), "denied", machine)
        return exits.REFUSED
    except Unauthorized as bad:
        _fail(
            str(bad),
            "unauthorized",
            machine,
            culprit=bad.culprit,
            step=bad.step,
            document=bad.document,
            code=bad.code,
        )
        if url is not None and bad.culprit != "person" and not machine:
            note(f"For details: interlock auth explain {url}", dim=True)
        return exits.UNREACHABLE
    except t.Unreachable as bad:
        _fail(str(bad), "unreachable", machine)
        return exits.UNREACHABLE
    except (StoreError, ImportError) as bad:
        _fail(str(bad), "missing" if isinstance(bad, ImportError) else "vault", machine)
        return exits.UNREACHABLE


def _fail(message: str, kind: str, machine: bool, **detail: str) -> None:
    if machine:
        print_json(
            {
                "error": {
                    "kind": kind,
                    "message": message,
                    **{key: value for key, value in detail.items() if value},
                }
            }
        )
    else:
        note(f"Error: {message}", fg="red")


def address(context: click.Context, parameter: click.Parameter, url: str | None) -> str | None:
    """The URL of a server from the command line. Raises click.UsageError for an invalid URL."""
    if url is not None and not is_address(url):
        raise click.UsageError(f"{url} is not the address of a server; use https://host/path.")
    return url
