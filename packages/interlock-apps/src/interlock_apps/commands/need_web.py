"""The check for the optional packages of the pages."""

from __future__ import annotations

from importlib import import_module

import click


def need_web(what: str = "host", extra: str = "host") -> None:
    """Check for the extra of a page before anything starts. Raises click.ClickException."""
    try:
        import_module("starlette")
    except ImportError:
        raise click.ClickException(
            f"The browser's {what} needs starlette: pip install 'interlock[{extra}]'"
        ) from None
