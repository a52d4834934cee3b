"""`interlock demo`: the whole travel scenario, in the browser or the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from interlock.cli.user_folder import user_folder

from ..demo import WORDS, holiday
from ..host.app import Host
from .need_web import need_web
from .web import run_pages


@click.command("demo")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for bookings, calendar and mail.  [in your data folder]",
)
@click.option(
    "--fresh",
    is_flag=True,
    help="Start over: delete the bookings, events and mail of earlier demos.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="The port; a free one by default.",
)
@click.option("--open", "opens", is_flag=True, help="Open the address in your browser.")
@click.option("--terminal", is_flag=True, help="Run in the terminal instead of the browser.")
def demo(folder: Path | None, fresh: bool, port: int, opens: bool, terminal: bool) -> None:
    """Plan a holiday in Barcelona: a host with the travel, weather, calendar and mail servers.

    Nothing is really booked or sent: everything stays in a folder on this machine. The model is
    rule-based, so the demo needs no network and no key. `interlock host` uses real models.
    """
    place = (folder or user_folder().parent / "demo").expanduser().resolve()
    run = _in_the_terminal() if terminal else _in_the_browser(port, opens)
    try:
        if fresh:
            forget(place)
        prepare(place)
        host = holiday(place)
    except OSError as bad:
        raise click.ClickException(f"{place} cannot be used: {bad.strerror}.") from None
    click.echo(f"Bookings, calendar and mail are kept in {place}.")
    run(host)


def _in_the_terminal() -> Callable[[Host], None]:
    """Return the function that runs the host here. Raises click.UsageError without a terminal."""
    from .chat import need_terminal, run_chat  # late: needs prompt_toolkit and rich

    need_terminal()
    return partial(run_chat, hint=WORDS)


def _in_the_browser(port: int, opens: bool) -> Callable[[Host], None]:
    """Return the function that runs the host in the browser. Raises click.ClickException."""
    need_web()
    return partial(run_pages, port=port, opens=opens, title="Plan a holiday", demo=WORDS)


def prepare(place: Path) -> None:
    """Create the folder. A new or empty one gets a mark that it belongs to the demo."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not any(place.iterdir()):
        (place / MARK).write_text(
            "`interlock demo --fresh` removes what the demo keeps in this folder.\n",
            encoding="utf-8",
        )


def forget(place: Path) -> None:
    """Remove the files and folders of the demo from its own folder, and nothing else.

    Raises click.UsageError for a folder without the demo's mark: a `calendar` or `mail` in it may
    belong to the person.
    """
    if place.is_dir() and any(place.iterdir()) and not (place / MARK).is_file():
        raise click.UsageError(
            f"--fresh: {place} was not made by the demo, so nothing in it is removed. Name "
            "another --folder."
        )
    for name in KEPT:
        path = place / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


MARK = ".interlock-demo"
KEPT = (
    "travel.db", "travel.db-wal", "travel.db-shm", "calendar", "mail",
    "interlock.lock", ".interlock.lock.turn", "log.db", "log.db-wal", "log.db-shm",
)  # fmt: skip
