"""`interlock demo`: the travel scenario, whole, in the browser or the terminal."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from ...demo import WORDS, holiday
from ...store import data_folder
from .pages import run_pages


@click.command("demo")
@click.option(
    "--folder", type=click.Path(file_okay=False, path_type=Path), help="Where bookings, calendar and mail are kept.  [in your data folder]"
)
@click.option("--fresh", is_flag=True, help="Begin anew: forget what was booked, written and sent in the demo before.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; any that is free unless it is given.")
@click.option("--open", "opens", is_flag=True, help="Open the address in your browser.")
def demo(folder: Path | None, fresh: bool, port: int, opens: bool) -> None:
    """Plan a holiday in Barcelona: a host with the travel, weather, calendar and mail servers.

    Nothing is really booked or sent: all of it is kept in a folder of this machine. The model is a rule-based one, so that no
    network and no key is needed; `interlock host` takes real ones.
    """
    place = (folder or data_folder().parent / "demo").expanduser().resolve()
    if fresh:
        forget(place)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    host = holiday(place)
    click.echo(f"Bookings, calendar and mail are kept in {place}.")
    run_pages(host, port=port, opens=opens, title="Plan a holiday", demo=WORDS)


def forget(place: Path) -> None:
    """Remove what the demo has kept, and nothing else: only the files and folders that it makes itself."""
    for name in KEPT:
        path = place / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


KEPT = ("travel.db", "travel.db-wal", "travel.db-shm", "calendar", "mail", "interlock.lock", "log.db", "log.db-wal", "log.db-shm")
